// What a server should never say: the page shows what can be shown, says what cannot, and lives on.
import assert from "node:assert/strict";
import { axe, open, start, test } from "./support.mjs";

const card = (page, status, title) => page.locator(`.column[data-status="${status}"] .card`, { hasText: title });
const make = async (server, title, ...more) => (await server.json(["task", "new", title, ...more])).id;

/** Changes what the server answers, as long as `isOdd()`. */
const changed = (url, change, isOdd = () => true) => (page) => page.route(url, async (route) => {
  const answer = await route.fetch().catch(() => undefined);
  // Nobody is there any more: the test is over.
  if (!answer) return;
  await route.fulfill({ response: answer, json: isOdd() ? change(await answer.json()) : await answer.json() });
});

const odd = {
  frozen: { status: "frozen" },
  nameless: { title: null, phase: null, priority: {}, routing: null, lease: null },
  shapeless: { status: {}, title: { of: "no kind" }, lastTransitionAt: 1e300, metadata: [] },
  unreadable: { card: { tests: {}, verified: "yes", run: { agent: 7 } }, lease: { agent: ["a"], expiresAt: {} }, attempts: "many" },
};
const oddTasks = (body) => ({ ...body, tasks: body.tasks.map((task) => ({ ...task, ...odd[task.title] })) });

test("tasks that are not as they should be are on the board all the same, and nothing else suffers", async (t) => {
  const server = await start(t, { dispatch: false });
  for (const title of [...Object.keys(odd), "An ordinary one"]) await make(server, title, "--ready");
  const stuck = await make(server, "Stuck", "--ready");
  await server.baton(["task", "move", stuck, "blocked", "--reason", "which colour?"]);
  const page = await open(t, server, { before: changed("**/v1/tasks?*", oddTasks) });
  await card(page, "ready", "An ordinary one").waitFor();
  await card(page, "other", "frozen").locator(".mark", { hasText: "frozen" }).waitFor();
  await card(page, "other", "no kind").waitFor();
  assert.deepEqual(await page.locator(".column").evaluateAll((all) => all.map((one) => one.dataset.status)).then((all) => all.at(-1)), "other");
  assert.equal(await page.locator('.column[data-status="ready"] .column-head .count').textContent(), "3");
  assert.equal(await page.locator('.column[data-status="ready"] .card').count(), 3, "each of them is drawn");
  assert.deepEqual(await axe(page), []);
  // Keys lead to the last column, and the list of what needs a person is there.
  for (let step = 0; step < 6; step += 1) await page.keyboard.press("l");
  await page.locator('.column[data-status="other"] .card.is-selected').waitFor();
  await page.getByRole("button", { name: "1 needs you" }).click();
  await page.getByRole("region", { name: "What needs you" }).getByText("which colour?").waitFor();
  await page.keyboard.press("Escape");
  // On a narrow screen the column can be chosen.
  const narrow = await open(t, server, { before: changed("**/v1/tasks?*", oddTasks), width: 360, height: 700 });
  await narrow.locator(".column-strip").getByRole("button", { name: /^other 2/ }).click();
  await card(narrow, "other", "frozen").waitFor();
  assert.deepEqual([...page.problems, ...narrow.problems], []);
});

test("a card that cannot be drawn says so in its place, and is drawn once its task is as it should be", async (t) => {
  const server = await start(t, { dispatch: false });
  const stuck = await make(server, "Stuck", "--ready");
  await make(server, "An ordinary one", "--ready");
  await server.baton(["task", "move", stuck, "blocked", "--reason", "which colour?"]);
  let isOdd = true;
  const noRun = (body) => ({ ...body, tasks: body.tasks.map((task) => (task.title === "Stuck" ? { ...task, card: { run: null } } : task)) });
  const page = await open(t, server, { before: changed("**/v1/tasks?*", noRun, () => isOdd) });
  const place = page.locator('.column[data-status="blocked"]');
  await place.getByText("This card cannot be shown").waitFor();
  await place.getByRole("link", { name: stuck }).waitFor();
  await card(page, "ready", "An ordinary one").waitFor();
  assert.deepEqual(await axe(page), []);
  isOdd = false;
  await server.baton(["task", "log", stuck, "somebody mended it"]);
  await card(page, "blocked", "Stuck").waitFor();
  assert.equal(await page.getByText("This card cannot be shown").count(), 0);
  assert.deepEqual(page.problems, []);
});

test("a screen that cannot be drawn says so, keeps the frame alive, and is tried again", async (t) => {
  const server = await start(t, { dispatch: false });
  const stuck = await make(server, "Stuck", "--ready");
  await server.baton(["task", "move", stuck, "blocked", "--reason", "which colour?"]);
  let isOdd = true;
  const page = await open(t, server, {
    path: "/sessions",
    before: async (fresh) => {
      await changed("**/v1/sessions?*", () => ({ v: 1 }), () => isOdd)(fresh);
      await changed("**/v1/status", (body) => ({ ...body, agents: null }), () => isOdd)(fresh);
    },
  });
  const alert = page.getByRole("alert");
  await alert.getByText("The sessions cannot be shown").waitFor();
  await alert.getByText("not as this page knows it").waitFor();
  assert.deepEqual(await axe(page), []);
  // What needs a person is there, and the other screens are.
  await page.getByRole("button", { name: "1 needs you" }).click();
  await page.getByRole("region", { name: "What needs you" }).getByText("which colour?").waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("link", { name: "Board" }).click();
  await card(page, "blocked", "Stuck").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("h");
  await alert.getByText("This screen cannot be shown").waitFor();
  await page.keyboard.press("g");
  await page.keyboard.press("s");
  await alert.getByText("The sessions cannot be shown").waitFor();
  await page.getByRole("button", { name: "Try again" }).click();
  await alert.getByText("The sessions cannot be shown").waitFor();
  isOdd = false;
  // Something that comes in meanwhile has it tried again without being asked.
  const shown = page.getByText("No session yet").waitFor();
  await Promise.race([page.getByRole("button", { name: "Try again" }).click(), shown]);
  await shown;
  assert.equal(await alert.count(), 0);
  assert.deepEqual(page.problems, []);
});

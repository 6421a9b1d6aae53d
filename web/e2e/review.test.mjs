// Judging what was seen, and nothing that took its place meanwhile: on the board, and on the screen of a task.
import assert from "node:assert/strict";
import { cardIn, dialog, make, report, work } from "./cards.mjs";
import { axe, open, shot, start, test, until } from "./support.mjs";

const show = (server, id) => server.api("GET", `/v1/tasks/${id}`);

/** A task that somebody has finished and nobody has judged. */
async function inReview(server, title) {
  const id = await make(server, title, "--ready");
  await (await work(server, id))();
  return id;
}

/** What happens meanwhile: it is sent back, and somebody else finishes another attempt. */
async function otherAttempt(server, id) {
  await server.baton(["task", "reject", id, "--reason", "not like this"]);
  const { fence } = await server.json(["task", "claim", id, "--agent", "bob"]);
  await report(server, id, "bob", fence, { total: 1, passed: 0, failed: 1 });
  assert.equal((await show(server, id)).status, "review");
}

test("another attempt that came while the dialog stood open on the board is not approved unseen", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await inReview(server, "To be judged");
  const page = await open(t, server);
  await cardIn(page, "review", "To be judged").getByRole("button", { name: /^Approve/ }).click();
  await dialog(page).getByRole("button", { name: "Approve" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await otherAttempt(server, id);
  await dialog(page).getByRole("alert").getByText("another attempt was made at it").waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "board-review-changed");
  const asked = [];
  page.on("request", (request) => { if (request.method() === "POST") asked.push(request.url()); });
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("button", { name: "Approve" }).click({ force: true });
  // Whoever has looked goes on.
  await dialog(page).getByRole("button", { name: "Judge it as it is now" }).click();
  await dialog(page).getByRole("alert").waitFor({ state: "detached" });
  assert.deepEqual(asked, [], "nothing was approved");
  await dialog(page).getByRole("button", { name: "Approve" }).click();
  await cardIn(page, "done", "To be judged").waitFor();
  assert.deepEqual(page.problems, []);
});

test("nor is it where the page had not heard of it yet, and words that were added are in nobody's way", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await inReview(server, "To be judged");
  let meanwhile;
  const page = await open(t, server, {
    // After the person has decided, and before the server hears of that.
    before: (page) => page.route("**/v1/tasks/*/{approve,reject}", async (route) => {
      const act = meanwhile;
      meanwhile = undefined;
      await act?.();
      await route.continue();
    }),
  });
  await cardIn(page, "review", "To be judged").getByRole("button", { name: /^Reject/ }).click();
  await dialog(page).getByLabel("What is wrong with it").fill("it is too slow");
  assert.deepEqual(await axe(page), []);
  meanwhile = () => otherAttempt(server, id);
  await page.keyboard.press("Enter");
  await dialog(page).getByRole("alert").getByText(/another attempt was made|has changed while you looked/).first().waitFor();
  assert.equal((await show(server, id)).status, "review");
  assert.equal(await dialog(page).getByLabel("What is wrong with it").inputValue(), "it is too slow", "what was written stays");
  await dialog(page).getByRole("button", { name: "Judge it as it is now" }).click();
  meanwhile = () => server.baton(["task", "log", id, "a line that changes nothing"]);
  await dialog(page).getByRole("button", { name: "Reject" }).click();
  await cardIn(page, "ready", "To be judged").waitFor();
  const { body } = await show(server, id);
  assert.match(body, /a line that changes nothing/);
  assert.deepEqual(page.problems, []);
});

test("on the screen of a task, too, with the key that asks first", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await inReview(server, "To be judged");
  const page = await open(t, server, { path: `/tasks/${id}` });
  await page.getByRole("button", { name: "Approve", exact: true }).waitFor();
  for (const [key, name] of [["a", "Approve"], ["x", "Reject"]]) {
    const { rev } = await show(server, id);
    await until("the page knows what can be done about it", async () =>
      Number(await page.locator(".task-head").getAttribute("data-rev")) >= rev && (await page.locator(".task-buttons").getAttribute("aria-busy")) === "false");
    await page.locator("body").press(key);
    await dialog(page).getByRole("button", { name, exact: true }).waitFor();
    if (key === "x") await dialog(page).getByRole("textbox").fill("it is too slow");
    assert.deepEqual(await axe(page), [], name);
    await otherAttempt(server, id);
    await dialog(page).getByRole("alert").getByText("another attempt was made at it").waitFor();
    await until("it cannot be pressed", () => dialog(page).getByRole("button", { name, exact: true }).isDisabled());
    await dialog(page).getByRole("button", { name: "Judge it as it is now" }).click();
    await until("it can be again", () => dialog(page).getByRole("button", { name, exact: true }).isEnabled());
    if (key === "x") continue;
    await page.keyboard.press("Escape");
    await dialog(page).waitFor({ state: "detached" });
  }
  await dialog(page).getByRole("button", { name: "Reject", exact: true }).click();
  await until("it was rejected", async () => (await show(server, id)).status === "ready");
  assert.deepEqual(page.problems, []);
});

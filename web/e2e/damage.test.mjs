// A ledger that somebody changed under a server that runs: once the page knows, every place says so that would claim something else.
import assert from "node:assert/strict";
import { axe, binary, open, shot, start, tamper, test, until } from "./support.mjs";

async function trace(server, title, said) {
  const { trace: id } = await server.json(["trace", "new", "--title", title]);
  await server.baton(["trace", "append", id, "--agent", "me"], { input: JSON.stringify({ type: "note", payload: { said } }) });
  return id;
}

const mark = (page) => page.getByRole("alert").getByRole("link", { name: "ledger damaged" });
const line = (page, title) => page.locator(".trace-line", { hasText: title });
const region = (page, name) => page.getByRole("region", { name, exact: true });

test("the list of traces says which it cannot show, and why", async (t) => {
  const server = await start(t, { dispatch: false });
  for (const n of ["one", "two", "three"]) await trace(server, `number ${n}`, n);
  const page = await open(t, server, { path: "/traces" });
  for (const n of ["one", "two", "three"]) await line(page, `number ${n}`).waitFor();
  assert.equal(await page.getByText("The list ends").count(), 0, "every event is in one of them");
  const mend = tamper(server, "number two", "number 222");
  // Something happens, so that the list is fetched again.
  await server.json(["trace", "new", "--title", "number four"]);
  const note = page.getByRole("alert").filter({ hasText: "The list ends at a trace that the server cannot read" });
  await note.waitFor();
  for (const n of ["two", "three"]) await line(page, `number ${n}`).getByText("not listed").waitFor();
  await line(page, "number two").getByText("does not read as a record").waitFor();
  assert.equal(await line(page, "number one").getByText("not listed").count(), 0);
  await mark(page).waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "traces-damaged");
  // Whoever comes now, and never saw the others, is told as well.
  const fresh = await open(t, server, { path: "/traces" });
  await fresh.getByRole("alert").filter({ hasText: "more in others" }).waitFor();
  mend();
  await trace(server, "number five", "five");
  await line(page, "number five").waitFor();
  await note.waitFor({ state: "detached" });
  assert.equal(await page.getByText("not listed").count(), 0);
  assert.deepEqual([...page.problems, ...fresh.problems], []);
});

test("one look-up that failed is tried again, by a button and by a new connection", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await trace(server, "in the end", "it is here");
  let isRefused = true;
  const page = await open(t, server, {
    path: "/traces",
    before: (fresh) => fresh.route(`**/v1/traces/${id}?*`, (route) => (isRefused
      ? route.fulfill({ status: 422, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:baton:error:X000", title: "not just now", status: 422, code: "X000" }) }) : route.continue())),
  });
  await line(page, "not just now").getByText("unreadable").waitFor();
  await page.getByText("1 trace could not be read").waitFor();
  isRefused = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await line(page, "in the end").waitFor();
  assert.equal(await page.getByText("could not be read").count(), 0);
  isRefused = true;
  await page.reload();
  await line(page, "not just now").waitFor();
  isRefused = false;
  await server.restart();
  await line(page, "in the end").waitFor({ timeout: 60_000 });
  assert.deepEqual(page.problems, []);
});

test("what was verified once is not said to be any more: the seal of its card, the open trace, health", async (t) => {
  const agent = (name) => `[agents.${name}]\nharness = "acp"\ncommand = [${JSON.stringify(binary)}, "mock-agent"]\n${name === "bob" ? "fs = true\nterminal = true\n" : ""}`;
  const team = '[team]\nplanner = "ada"\nexecutor = "bob"\ncritic = "cleo"\nauditor = "dora"';
  const server = await start(t, { config: [...["ada", "bob", "cleo", "dora"].map(agent), team].join("\n") });
  const { id } = await server.json(["task", "new", "edit sealed.txt complete done", "--guarded", "--ready"]);
  const page = await open(t, server);
  const seal = page.locator(".card", { hasText: "edit sealed.txt" }).locator(".mark").last();
  await seal.filter({ hasText: /✓ verified$/ }).waitFor({ timeout: 60_000 });
  const { trace: run } = (await server.api("GET", `/v1/tasks/${id}`)).card.verified;

  await page.evaluate((path) => history.replaceState(null, "", path), "/");
  await page.getByRole("link", { name: "Traces" }).click();
  await page.locator(`.trace-line[href="/traces/${run}"]`).click();
  await page.getByRole("tab", { name: "Chain" }).click();
  await page.getByText("All hashes were computed anew here, and are the same.").waitFor();
  const mend = tamper(server, '"exit_status":0', '"exit_status":9');
  await page.keyboard.press("v");
  await page.getByRole("status", { name: "Verdict" }).getByText("HASH_MISMATCH").first().waitFor();
  await page.getByText("what is stored now does not verify").waitFor();
  assert.equal(await page.getByText("All hashes").count(), 0);
  await mark(page).waitFor();
  await shot(page, "trace-damaged");

  await page.keyboard.press("g");
  await page.keyboard.press("b");
  await seal.filter({ hasText: "✕ broken" }).waitFor();
  assert.equal(await page.locator(".card", { hasText: "verified" }).count(), 0);
  assert.deepEqual(await axe(page), []);
  await page.locator(".card-title").click();
  await page.locator(".seal").getByText("verification: broken").waitFor();

  await mark(page).click();
  await page.waitForURL((url) => url.pathname === "/health");
  await page.getByText("Not safe to walk away").waitFor();
  const short = page.getByRole("status", { name: "In short" });
  await short.getByText(/^A trace is damaged: copy the data directory before anything else. HASH_MISMATCH/).waitFor();
  assert.equal(await short.getByRole("link", { name: "Look there" }).first().getAttribute("href"), `/traces/${run}`);
  await region(page, "Ledger").getByRole("button", { name: "Verify now" }).click();
  await region(page, "Ledger").getByRole("status", { name: "Verdict" }).getByText("HASH_MISMATCH").waitFor();
  await page.getByText(/^The ledger is damaged: /).waitFor();

  // It was put right again: whoever verifies finds that, and everything says so.
  mend();
  await region(page, "Ledger").getByRole("button", { name: "Verify now" }).click();
  await page.getByText("The ledger is damaged").waitFor({ state: "detached" });
  await page.goto(new URL(`/traces/${run}`, server.url).href);
  await page.getByRole("status", { name: "Verdict" }).getByText("Passed").waitFor();
  assert.equal(await mark(page).count(), 0);
  assert.deepEqual(page.problems, []);
});

test("health stays full when the ledger is damaged, and what comes to it then can verify", async (t) => {
  const server = await start(t, { dispatch: false });
  await trace(server, "a title", "the truth");
  const page = await open(t, server, { path: "/health" });
  await page.getByRole("heading", { name: "Agents", exact: true }).waitFor();
  // Nobody asks between the start and the change.
  await page.route("**/v1/status", (route) => route.abort());
  await server.restart();
  tamper(server, "the truth", "an untrue");
  await page.unroute("**/v1/status");
  // The server that just began has nothing in memory: it says what it cannot read, and everything else.
  await until("it does not read", async () => /L032/.test((await server.api("GET", "/v1/status")).ledger.unread));
  await page.getByText(/^The ledger is damaged: .* position 3 of the journal does not read as a record/).waitFor({ timeout: 30_000 });
  const fresh = await open(t, server, { path: "/health" });
  for (const one of [page, fresh]) {
    for (const each of ["Agents", "Ledger", "Scheduler", "Store and version", "Checks"]) await one.getByRole("heading", { name: each, exact: true }).waitFor();
    await one.getByText("Not safe to walk away").waitFor();
  }
  await fresh.getByRole("button", { name: "Copy: baton verify" }).first().waitFor();
  await fresh.keyboard.press("v");
  await fresh.getByRole("status", { name: "Verdict" }).getByText("HASH_MISMATCH").waitFor();
  for (const one of [page, fresh]) assert.deepEqual(await axe(one), []);
  await shot(fresh, "health-damaged");
  const narrow = await open(t, server, { path: "/health", width: 360 });
  await mark(narrow).waitFor();
  assert.ok(await narrow.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "nothing to scroll sideways");
  assert.deepEqual([...page.problems, ...fresh.problems, ...narrow.problems], []);
});

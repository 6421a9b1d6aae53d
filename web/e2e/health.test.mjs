// Health in the page: everything that makes it safe to walk away, what is wrong, and what to do about it.
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { axe, open, shot, start, tamper, test } from "./support.mjs";

const part = (page, name) => page.getByRole("region", { name, exact: true });
const isWithin = (page) => page.evaluate(() => document.querySelector("main").scrollWidth <= document.querySelector("main").clientWidth);

test("everything is there, in light and dark, wide and narrow", async (t) => {
  const server = await start(t);
  await server.json(["task", "new", "something"]);
  for (const look of [{}, { dark: true }, { width: 360 }, { dark: true, width: 360 }]) {
    const name = `${look.dark ? "dark" : "light"}-${look.width ?? "wide"}`;
    const page = await open(t, server, { path: "/health", ...look });
    for (const each of ["Agents", "Ledger", "Scheduler", "Store and version", "Refused messages", "Checks"]) await page.getByRole("heading", { name: each, exact: true }).waitFor();
    await part(page, "Scheduler").getByText("hands out tasks").waitFor();
    const store = part(page, "Store and version");
    await store.getByText(/^synced before answers; \d+ events? not signed yet$/).waitFor();
    await store.getByText("0 events and files of 0 tasks behind").waitFor();
    await store.getByText(`process ${server.child.pid}, 0 sessions`).waitFor();
    await page.getByText("None was refused.").waitFor();
    assert.deepEqual(await axe(page), [], name);
    assert.equal(await isWithin(page), true, name);
    await shot(page, `health-${name}`);
    assert.deepEqual(page.problems, []);
    await page.context().close();
  }
});

test("it loads, breaks, and comes back", async (t) => {
  const server = await start(t);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  let isRefused = true;
  const page = await open(t, server, {
    path: "/health",
    before: (fresh) => fresh.route("**/v1/status", async (route) => {
      await held;
      if (!isRefused) return route.continue();
      return route.fulfill({ status: 500, contentType: "application/problem+json", body: JSON.stringify({ type: "urn:baton:error:X000", title: "it broke", status: 500, code: "X000", hint: "baton doctor" }) });
    }),
  });
  await page.getByText("Loading how Baton is…").waitFor();
  release();
  const alert = page.getByRole("alert");
  for (const word of ["cannot be shown", "it broke", "X000", "baton doctor"]) await alert.getByText(word).waitFor();
  isRefused = false;
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("heading", { name: "Agents", exact: true }).waitFor();
  // The server goes and comes back: what is shown stays, is said to be old, and is new again by itself.
  await server.stop();
  await page.getByText(/^\W*as of .* ago$/).waitFor({ timeout: 40_000 });
  await page.getByRole("heading", { name: "Agents", exact: true }).waitFor();
  await server.serve();
  await page.getByText(/^\W*as of .* ago$/).waitFor({ state: "detached", timeout: 40_000 });
  assert.deepEqual(page.problems, []);
});

test("a message that is refused is counted, by its reason", async (t) => {
  const server = await start(t);
  const page = await open(t, server, { path: "/health" });
  await page.getByText("None was refused.").waitFor();
  const headers = { authorization: `Bearer ${server.token}`, "content-type": "application/json" };
  const answer = await fetch(new URL("/v1/messages", server.url), { method: "POST", headers, body: '{"no":1}' });
  assert.equal(answer.status, 422);
  const refused = part(page, "Refused messages").getByRole("row").filter({ hasText: "invalid_envelope" });
  await refused.getByRole("cell", { name: "1", exact: true }).waitFor();
});

test("the ledger is verified from the page, and what does not hold is red", async (t) => {
  const server = await start(t);
  const { trace } = await server.json(["trace", "new"]);
  await server.baton(["trace", "append", trace, "--agent", "me"], { input: '{"type":"note","payload":{"said":"the truth"}}' });
  const page = await open(t, server, { path: "/health" });
  const ledger = part(page, "Ledger");
  await ledger.getByRole("button", { name: "Verify now" }).click();
  await ledger.getByRole("status", { name: "Verdict" }).getByText("Passed with warnings").waitFor();
  await ledger.getByText("last verified").waitFor();
  tamper(server, "the truth", "an untrue");
  await page.keyboard.press("v");
  await ledger.getByRole("status", { name: "Verdict" }).getByText("HASH_MISMATCH").waitFor();
  await page.getByText("Not safe to walk away").waitFor();
  await page.getByText("The ledger was verified and does not hold.").waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "health-broken");
});

test("an agent that is not installed is red, and says what to do", async (t) => {
  const server = await start(t, { config: '[agents.gone]\nharness = "acp"\ncommand = ["no-such-agent-program"]\n' });
  const page = await open(t, server, { path: "/health" });
  const agent = part(page, "Agents").first().getByRole("row").filter({ hasText: "no-such-agent-program" });
  await agent.getByText("not installed").waitFor();
  await agent.getByRole("button", { name: "Copy: baton agent check gone" }).click();
  await page.getByRole("log").getByText("baton agent check gone").waitFor();
  await page.getByText("Not safe to walk away").waitFor();
  await page.getByRole("status", { name: "In short" }).getByText("Agent gone is not installed").waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "health-agent");
  assert.deepEqual(page.problems, []);
});

test("where no agent is configured it says how one is added", async (t) => {
  // Where no program is found, none is configured.
  const server = await start(t, { env: { PATH: "/nonexistent" } });
  const page = await open(t, server, { path: "/health" });
  await part(page, "Agents").first().getByText("No agent is configured, but for the mock that is built in.").waitFor();
  await part(page, "Agents").first().getByRole("button", { name: "Copy: baton agent add --help" }).waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "health-no-agents");
  assert.deepEqual(page.problems, []);
});

test("an agent that fails is counted each time, and files that cannot follow the ledger are red", async (t) => {
  const server = await start(t, { dispatch: false });
  const page = await open(t, server, { path: "/health" });
  const row = part(page, "Agents").first().getByRole("row").filter({ has: page.getByRole("rowheader", { name: "mock", exact: true }) });
  await row.getByRole("cell", { name: "0", exact: true }).last().waitFor();
  for (let count = 0; count < 2; count += 1) {
    const { id } = await server.api("POST", "/v1/sessions", { agent: "mock" });
    await server.api("POST", `/v1/sessions/${id}/input`, { text: "crash 3" });
  }
  await row.getByRole("cell", { name: /2\s*, the last / }).waitFor();
  await page.getByRole("status", { name: "In short" }).getByText("Agent mock failed twice.").waitFor();
  // A file lies where the folder of a status should be.
  const blocked = join(server.dir, ".baton/tasks/blocked");
  const { id } = await server.api("POST", "/v1/tasks", { title: "stuck", status: "ready" });
  rmSync(blocked, { recursive: true, force: true });
  writeFileSync(blocked, "in the way");
  await server.api("POST", `/v1/tasks/${id}/transition`, { to: "blocked", reason: "waits" });
  await part(page, "Store and version").getByText("files of 1 task behind").waitFor();
  await page.getByRole("status", { name: "In short" }).getByText("The files of 1 task could not be written.").waitFor();
  await page.getByText("Not safe to walk away").waitFor();
  assert.deepEqual(await axe(page), []);
  await shot(page, "health-behind");
  rmSync(blocked);
  mkdirSync(blocked);
  await server.api("POST", `/v1/tasks/${id}/log`, { text: "the way is free" });
  await part(page, "Store and version").getByText("0 events and files of 0 tasks behind").waitFor();
  assert.deepEqual(page.problems, []);
});

test("what an agent says that it is, with its version, is shown once it has begun", async (t) => {
  const server = await start(t, { config: '[agents.plain]\nharness = "exec"\ncommand = ["false"]\n\n[agents.talks]\nharness = "mock"\n' });
  const page = await open(t, server, { path: "/health" });
  const agent = (name) => part(page, "Agents").first().getByRole("row").filter({ has: page.getByRole("rowheader", { name, exact: true }) });
  await agent("talks").getByText("not known yet").waitFor();
  assert.equal(await page.getByText("No agent is configured").count(), 0);
  await agent("plain").getByText("does not say").waitFor();
  await server.api("POST", "/v1/sessions", { agent: "talks" });
  await agent("talks").getByText(/^mock \d+\.\d+\.\d+/).waitFor();
  await shot(page, "health-versions");
  assert.deepEqual(page.problems, []);
});

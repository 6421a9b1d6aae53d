// A ledger that is not the one of before, under a page that is open.
import assert from "node:assert/strict";
import { cpSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { open, start, test, until, WAIT_MS } from "./support.mjs";

const card = (page, title) => page.locator(".card", { hasText: title });
const make = async (server, title, ...more) => (await server.json(["task", "new", title, ...more])).id;

/** The data directory and what is kept beside it: as a backup has them. */
const PARTS = [".baton", "state"];
const keep = (server) => PARTS.forEach((part) => cpSync(join(server.dir, part), join(server.dir, `kept-${part}`), { recursive: true, preserveTimestamps: true, filter: (from) => !/\.sock$/.test(from) }));
const restore = (server) => PARTS.forEach((part) => {
  rmSync(join(server.dir, part), { recursive: true });
  renameSync(join(server.dir, `kept-${part}`), join(server.dir, part));
});

test("an older state of the ledger is noticed when the server is back, and shown without a word from anybody", async (t) => {
  const server = await start(t, { dispatch: false });
  const id = await make(server, "There from the start", "--ready");
  await server.stop();
  keep(server);
  await server.serve();
  const page = await open(t, server);
  await make(server, "Made after the backup", "--ready");
  await server.baton(["task", "move", id, "blocked", "--reason", "after the backup"]);
  await card(page, "Made after the backup").waitFor();
  await page.locator('.column[data-status="blocked"] .card', { hasText: "There from the start" }).waitFor();
  await server.kill();
  await page.locator(".link.is-bad").waitFor();
  restore(server);
  await server.serve();
  await page.locator('.column[data-status="ready"] .card', { hasText: "There from the start" }).waitFor({ timeout: 3 * WAIT_MS });
  await card(page, "Made after the backup").waitFor({ state: "detached" });
  await page.getByRole("log").getByText("an older state of it").waitFor();
  await page.getByRole("button", { name: "Nothing needs you" }).waitFor();
  // It goes on from there.
  await make(server, "Made afterwards", "--ready");
  await card(page, "Made afterwards").waitFor();
  assert.deepEqual(page.problems, []);
});

for (const isSlow of [false, true]) test(`an older state that has grown beyond what the page saw is noticed by its hashes${isSlow ? ", also where the page had not looked yet" : ""}`, async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "There from the start", "--ready");
  await server.stop();
  keep(server);
  await server.serve();
  let release;
  const gone = new Promise((resolve) => { release = resolve; });
  let count = 0;
  const page = await open(t, server, {
    before: (fresh) => fresh.route(/follow=false/, async (route) => {
      count += 1;
      if (!isSlow || count > 1) return route.continue();
      await gone;
      await route.abort();
    }),
  });
  await make(server, "Made after the backup", "--ready");
  await card(page, "Made after the backup").waitFor();
  const { size } = await server.api("GET", "/v1/checkpoint");
  await server.kill();
  release();
  await page.locator(".link.is-bad").waitFor();
  restore(server);
  for (const n of [1, 2, 3]) await make(server, `Another history ${n}`, "--ready");
  await server.serve();
  assert.ok((await server.api("GET", "/v1/checkpoint")).size > size, "there is more than the page ever saw");
  await card(page, "Another history 3").waitFor({ timeout: 3 * WAIT_MS });
  await card(page, "Made after the backup").waitFor({ state: "detached" });
  await page.getByRole("log").getByText("another ledger than before").waitFor();
});

test("the same ledger after a restart is the same: nothing is loaded anew", async (t) => {
  const server = await start(t, { dispatch: false });
  await make(server, "Stays", "--ready");
  const page = await open(t, server);
  await card(page, "Stays").waitFor();
  await page.evaluate(() => { globalThis.sameDocument = true; });
  for (const round of [1, 2]) {
    const asked = page.waitForResponse((response) => response.url().includes("follow=false"), { timeout: 3 * WAIT_MS });
    await server.stop();
    await page.locator(".link.is-bad").waitFor();
    await make(server, `Meanwhile ${round}`, "--ready");
    await server.serve();
    await asked;
    await card(page, `Meanwhile ${round}`).waitFor();
  }
  await until("it is live", () => page.locator(".link.is-good").count());
  assert.equal(await page.evaluate(() => globalThis.sameDocument), true);
  assert.equal(await page.getByText("loaded anew").count(), 0);
  assert.deepEqual(page.problems, []);
});

// Agents that die while they are looked at: how soon the page shows it, and what it says of it.
import assert from "node:assert/strict";
import { appendFileSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { start, test, until } from "./support.mjs";
import { opened, say } from "./talker.mjs";

const PROMPTLY_MS = 1000;

/** An agent that writes down when it dies, and does: by an exit code, or by a signal. Told in ACP, or as a command that is run for each turn. */
const DOOMED = `
import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { createInterface } from "node:readline";
function die(how) {
  writeSync(2, "the last words\\n");
  writeFileSync("died", String(Date.now()));
  if (how.includes("signal")) process.kill(process.pid, "SIGKILL");
  process.exit(3);
}
if (process.argv[2] === "exec") die(readFileSync(0, "utf8"));
const answer = (id, result) => process.stdout.write(JSON.stringify({ jsonrpc: "2.0", id, result }) + "\\n");
for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params } = JSON.parse(line);
  if (method === "initialize") answer(id, { protocolVersion: 1, agentCapabilities: {}, authMethods: [] });
  if (method === "session/new") answer(id, { sessionId: "s1" });
  if (method === "session/prompt") die(JSON.stringify(params.prompt));
}
`;

const prepare = ({ dir }) => {
  writeFileSync(join(dir, "doomed.mjs"), DOOMED);
  for (const harness of ["acp", "exec"]) {
    const profile = harness === "exec" ? 'profile = "plain"\n' : "";
    appendFileSync(join(dir, ".baton/baton.toml"), `\n[agents.${harness}]\nharness = "${harness}"\n${profile}command = ["${process.execPath}", "doomed.mjs", "${harness}"]\n`);
  }
};

/** How long after the moment that the agent itself wrote down its end was drawn, with what is told of it. */
async function shownAfter(t, server, agent, how, fact) {
  const died = join(server.dir, "died");
  rmSync(died, { force: true });
  const { page } = await opened(t, server, { agent });
  // Once it is drawn, and not when somebody here hears of it: the frame after the one that has it.
  await page.evaluate((told) => new MutationObserver((_, watcher) => {
    if (!document.querySelector(".ended")?.textContent.includes(told)) return;
    watcher.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => { globalThis.drawnAt = Date.now(); }));
  }).observe(document, { childList: true, subtree: true, characterData: true }), fact);
  await say(page, how);
  await until("its end is drawn", () => page.evaluate(() => globalThis.drawnAt !== undefined));
  assert.ok(existsSync(died), "it died by itself");
  const ended = await page.locator(".ended").textContent();
  assert.match(ended, /^✕ Failed/);
  assert.ok(ended.includes(fact), ended);
  assert.deepEqual(page.problems, []);
  const ms = (await page.evaluate(() => globalThis.drawnAt)) - Number(readFileSync(died, "utf8"));
  await page.context().close();
  return ms;
}

for (const agent of ["acp", "exec"]) {
  for (const [how, fact] of [["exit", "exit code 3"], ["signal", "signal 9 (SIGKILL)"]]) {
    test(`the death of a process of ${agent} by ${how} is drawn within a second of it, with its ${how === "exit" ? "code" : "signal"}`, async (t) => {
      const server = await start(t, { prepare });
      const all = [];
      // Whatever else this machine does only adds to it: one try of three that nothing held up tells how long it takes.
      while (all.length < 3 && !all.some((ms) => ms < PROMPTLY_MS)) all.push(await shownAfter(t, server, agent, how, fact));
      t.diagnostic(`drawn ${all} ms after its death`);
      assert.ok(all.every((ms) => ms > 0) && all.some((ms) => ms < PROMPTLY_MS), `drawn ${all} ms after its death`);
    });
  }
}

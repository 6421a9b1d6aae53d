// The demo ends on the page, with its story in it: in a terminal it serves, says where, and takes everything away at Ctrl-C.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { axe, binary, open, shot, test, until } from "./support.mjs";

test("the demo's story is on the page that it ends with", { timeout: 240_000 }, async (t) => {
  const home = mkdtempSync(join(tmpdir(), "baton-demo-"));
  const page_dir = process.env["BATON_PAGE_DIR"];
  const env = { PATH: process.env["PATH"], HOME: home, TERM: "xterm", ...(page_dir ? { BATON_PAGE_DIR: resolve(page_dir) } : {}) };
  const demo = spawn("script", ["-qefc", `exec ${binary} demo`, "/dev/null"], { cwd: home, env, stdio: ["pipe", "pipe", "inherit"] });
  t.after(() => {
    demo.kill("SIGKILL");
    rmSync(home, { recursive: true, force: true, maxRetries: 5 });
  });
  let said = "";
  demo.stdout.on("data", (text) => { said += text; });
  const gone = once(demo, "exit");
  const link = await until("the link", () => {
    assert.equal(demo.exitCode, null, said.slice(-2000));
    return /Open (\S+\?token=\S+) in a browser/.exec(said)?.[1];
  }, 180_000);
  const linkTo = (path) => {
    const url = new URL(link);
    url.pathname = path;
    return url.href;
  };
  const server = { linkTo };
  const page = await open(t, server);
  await page.getByRole("heading", { name: /done/i }).first().waitFor();
  await page.getByText("doubtful").first().waitFor();
  await shot(page, "demo-board");
  // The guarded task, its run, a session that crashed, and how everything is.
  await page.getByText("doubtful").first().click();
  await page.getByText(/verified/i).first().waitFor();
  await shot(page, "demo-task");
  await page.goto(linkTo("/traces"));
  await page.getByRole("link", { name: /guarded run/i }).first().click();
  await page.getByText(/Passed/).first().waitFor();
  await shot(page, "demo-trace");
  assert.deepEqual(await axe(page), []);
  await page.goto(linkTo("/sessions"));
  const crashed = page.getByRole("link", { name: /failed, crash, exit code 3/ });
  await crashed.getByText("the agent exited with code 3").waitFor();
  await shot(page, "demo-sessions");
  await crashed.click();
  await until("how it ended, with its last words", async () => {
    const ended = (await page.locator(".ended").allTextContents()).join();
    return ["The agent's process went down by itself", "exit code 3", "last tool read_file", "mock: crash line 4 of 4"].every((part) => ended.includes(part));
  });
  await shot(page, "demo-crash");
  await page.goto(linkTo("/health"));
  await page.getByText(/Ledger/i).first().waitFor();
  await shot(page, "demo-health");
  const dark = await open(t, server, { dark: true });
  await dark.getByText("doubtful").first().waitFor();
  await shot(dark, "demo-board-dark");
  assert.deepEqual(page.problems, []);
  demo.stdin.write("\x03");
  const [code] = await gone;
  assert.equal(code, 0, said.slice(-2000));
  const dir = /in (\/\S*baton-demo\S*)/.exec(said)?.[1];
  if (dir) assert.equal(existsSync(dir), false);
});

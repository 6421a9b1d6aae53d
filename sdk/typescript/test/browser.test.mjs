// The story in a real browser: Debian's Chromium, headless, with the SDK bundled by esbuild.
//
// The server has no CORS: it refuses pages of other origins, on purpose. So the page comes from the test's proxy, which forwards `/v1` with `Host` and
// `Origin` rewritten to the server's. The page sends its result to the proxy, so that nobody has to guess when it is done.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { accessSync, constants, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { endsWithUs, test } from "./deadline.mjs";
import { startProxy } from "./proxy.mjs";
import { deferred, startServer } from "./server.mjs";

function find(...names) {
  for (const dir of (process.env["PATH"] ?? "").split(delimiter)) {
    for (const name of names) {
      try {
        accessSync(join(dir, name), constants.X_OK);
        return join(dir, name);
      } catch {
        // It is not there.
      }
    }
  }
  return undefined;
}

const chromium = find("chromium", "chromium-browser", "google-chrome");
const skip = chromium ? false : "there is no Chromium on the PATH; on Debian: apt-get install chromium";

test("the same story in a browser", { skip }, async (t) => {
  const server = await startServer(t);
  const proxy = await startProxy(t, server);
  const story = fileURLToPath(new URL("browser-story.mjs", import.meta.url));
  const bundle = await build({ entryPoints: [story], bundle: true, write: false, format: "iife", platform: "browser", target: "es2022" });
  const page = `<!doctype html><meta charset="utf-8"><title>SDK</title><script src="/test/story.js"></script><script>run(${JSON.stringify(server.token)})</script>`;
  const told = deferred();
  proxy.pages.set("/test/", () => ["text/html", page]);
  proxy.pages.set("/test/story.js", () => ["text/javascript", bundle.outputFiles[0].text]);
  proxy.pages.set("/test/cut", () => (setImmediate(() => proxy.cut()), ["text/plain", ""]));
  proxy.pages.set("/test/result", (text) => (told.resolve(JSON.parse(text)), ["text/plain", ""]));

  const profile = mkdtempSync(join(tmpdir(), "baton-chromium-"));
  const flags = ["--headless", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking", `--user-data-dir=${profile}`];
  // As root there is no sandbox to be had.
  if (process.getuid?.() === 0) flags.push("--no-sandbox");
  const browser = spawn(chromium, [...flags, `${proxy.url}/test/`], { stdio: ["ignore", "ignore", "pipe"], detached: true });
  endsWithUs(browser, { group: true });
  let errors = "";
  browser.stderr.on("data", (text) => (errors = (errors + text).slice(-4000)));
  const gone = once(browser, "exit");
  t.after(async () => {
    // Its whole group: it is many processes.
    if (browser.exitCode === null && browser.signalCode === null) process.kill(-browser.pid, "SIGKILL");
    await gone;
    rmSync(profile, { recursive: true, force: true, maxRetries: 10 });
  });
  const result = await Promise.race([told.promise, gone.then(([code]) => assert.fail(`Chromium ended with ${code}: ${errors}`))]);

  assert.equal(result.failed, undefined);
  assert.deepEqual(result.refusal, ["T001", 404, "baton task ls"]);
  assert.equal(result.cuts, 3);
  assert.deepEqual(result.positions, result.positions.map((_, n) => n + 1), "nothing is lost, and nothing comes twice");
  assert.deepEqual(result.said, ["run_command", "permission: once "]);
  assert.equal(result.terminationInfo.exit_code, 3);
  assert.equal(result.terminationInfo.stderr.head, "mock: crash line 1 of 2\nmock: crash line 2 of 2");
  assert.equal(result.aborted, "L034");
  assert.equal(result.abort, "AbortError");
});

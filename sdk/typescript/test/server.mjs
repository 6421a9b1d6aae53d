// A real server in a directory of its own, for one test: `baton init`, `baton serve`, and its end.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { endsWithUs } from "./deadline.mjs";

const binary = process.env["BATON_BIN"];

/** Starts a server, which ends with the test. */
export async function startServer(t) {
  assert.ok(binary, "BATON_BIN names the program: BATON_BIN=target/debug/baton");
  const dir = mkdtempSync(join(tmpdir(), "baton-sdk-"));
  const state = join(dir, "state");
  // Nothing of whoever runs the tests comes along.
  const env = { PATH: process.env["PATH"], HOME: dir, BATON_STATE_DIR: state };
  const server = new Server(dir, env);
  t.after(async () => {
    await server.stop("SIGTERM");
    rmSync(dir, { recursive: true, force: true });
  });
  execFileSync(binary, ["init", "-q"], { cwd: dir, env, stdio: ["ignore", "ignore", "inherit"] });
  await server.start();
  const [ledger] = readdirSync(state).filter((name) => name.startsWith("led_"));
  server.token = readFileSync(join(state, ledger, "admin.token"), "utf8").trim();
  return server;
}

class Server {
  constructor(dir, env) {
    this.dir = dir;
    this.env = env;
  }

  /** Starts it, or starts it again; then it answers at another port. */
  async start() {
    const child = spawn(binary, ["serve", "--listen", "127.0.0.1:0", "--json", "--no-dispatch"], {
      cwd: this.dir, env: this.env, stdio: ["ignore", "pipe", "pipe"],
    });
    this.child = child;
    endsWithUs(child);
    let errors = "";
    child.stderr.on("data", (text) => (errors += text));
    const lines = createInterface({ input: child.stdout });
    const [first] = await Promise.race([
      once(lines, "line"),
      once(child, "exit").then(([code]) => assert.fail(`baton serve ended with ${code}: ${errors}`)),
    ]);
    this.url = JSON.parse(first).url;
  }

  /** Ends it, and waits until it is gone. */
  async stop(signal) {
    const { child } = this;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    const late = setTimeout(() => child.kill("SIGKILL"), 20_000);
    await gone;
    clearTimeout(late);
  }
}

/** A promise with its ends outside. */
export function deferred() {
  let resolve, reject;
  const promise = new Promise((yes, no) => ([resolve, reject] = [yes, no]));
  return { promise, resolve, reject };
}

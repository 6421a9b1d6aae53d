// Tests that end: each within a deadline, and with it every process that it started, also when the whole file is ended from outside.
import { test as plain } from "node:test";

const DEADLINE_MS = 120_000;

/** A test of `node:test`, with a deadline. */
export function test(name, ...rest) {
  const body = rest.pop();
  return plain(name, { timeout: DEADLINE_MS, ...rest[0] }, body);
}

const started = new Set();

/** Ends a process, and with `group` all that it started, with this one at the latest. */
export function endsWithUs(child, { group = false } = {}) {
  const end = () => {
    try {
      process.kill(group ? -child.pid : child.pid, "SIGKILL");
    } catch {
      // It is gone.
    }
  };
  started.add(end);
  child.once("exit", () => started.delete(end));
}

process.once("exit", () => started.forEach((end) => end()));
// Who is ended by a signal has no last moment, unless it takes one.
for (const signal of ["SIGTERM", "SIGINT", "SIGHUP"]) process.once(signal, () => process.exit(1));

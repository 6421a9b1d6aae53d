// What is wrong, and what to do about it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { commandOf, endOf, troublesOf } = await load("screens/health/trouble.ts");
const now = "2026-02-09T10:00:00.000Z";
const status = (more) => ({
  version: "1", startedAt: now, now, origin: "x", agents: [], refused: [], checks: [], store: { kind: "embedded" }, ledger: { size: 1 },
  scheduler: { isDispatching: true, pollMs: 1000, lastAt: now, running: 0, maxConcurrent: 1, ready: 0, leases: [] }, ...more,
});
const texts = (more) => troublesOf(status(more)).map(({ text, command }) => [text, command]);

test("how often an agent failed is said in plain words", () => {
  const failed = (failures) => texts({ agents: [{ name: "ada", harness: "acp", installed: true, sessions: 0, failures }] });
  assert.deepEqual(failed(0), []);
  assert.deepEqual(failed(1), [["Agent ada failed once.", undefined]]);
  assert.deepEqual(failed(2), [["Agent ada failed twice.", undefined]]);
  assert.deepEqual(failed(3), [["Agent ada failed 3 times.", undefined]]);
});

test("a check that failed is never without a way on", () => {
  const check = (more) => commandOf({ check: "disk", status: "fail", detail: "is full", ...more });
  assert.equal(check({}), "baton doctor");
  assert.equal(check({ status: "warn" }), "baton doctor");
  assert.equal(check({ status: "ok" }), undefined);
  assert.equal(check({ code: "L010" }), "baton explain L010");
  assert.equal(check({ see: "baton events", code: "L010" }), "baton events");
  assert.equal(check({ fix: "baton doctor --fix", see: "baton events" }), "baton doctor --fix");
  // What only a person can do is said in words.
  assert.equal(check({ advice: "make room" }), undefined);
  assert.deepEqual(texts({ checks: [{ check: "disk", status: "fail", detail: "is full" }] }), [["disk: is full.", "baton doctor"]]);
});

test("a lease ends with whatever comes first: its end, or the beat that does not come", () => {
  const lease = (heartbeatBy) => ({ taskId: "t", agent: "ada", expiresAt: "2026-02-09T10:10:00.000Z", ...(heartbeatBy ? { heartbeatBy } : {}) });
  assert.equal(endOf(lease()), "2026-02-09T10:10:00.000Z");
  assert.equal(endOf(lease("2026-02-09T10:05:00.000Z")), "2026-02-09T10:05:00.000Z");
  assert.equal(endOf(lease("2026-02-09T10:15:00.000Z")), "2026-02-09T10:10:00.000Z");
});

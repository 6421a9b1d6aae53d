// What is wrong, and what to do about it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { commandOf, endOf, journalWords, projectionWords, troublesOf } = await load("screens/health/trouble.ts");
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

test("what an agent did wrong long ago does not trouble anybody today", () => {
  const failed = (lastFailureAt) => texts({ agents: [{ name: "ada", harness: "acp", installed: true, sessions: 0, failures: 3, lastFailureAt }] });
  assert.equal(failed("2026-02-08T10:00:01.000Z").length, 1);
  assert.deepEqual(failed("2026-02-08T09:59:59.000Z"), []);
});

test("what is behind the ledger is said in words, and troubles where it does not follow", () => {
  const journal = (more) => journalWords({ durability: "interval", unsynced: 0, unsigned: 0, ...more });
  assert.equal(journal({ unsynced: 1, unsigned: 5 }), "1 event not synced; 5 events not signed yet");
  // Where none is shown before it is on the disk, a zero would say nothing.
  assert.equal(journal({ durability: "commit" }), "synced before answers; 0 events not signed yet");
  const behind = (more) => ({ events: 0, tasks: 0, failed: 0, waitingMs: 0, ...more });
  assert.equal(projectionWords(behind({ events: 2, tasks: 1, waitingMs: 150 })), "2 events and files of 1 task behind");
  assert.equal(projectionWords(behind({ tasks: 3, waitingMs: 12_000 })), "0 events and files of 3 tasks behind, for 12 s");
  const troubles = (projection) => texts({ store: { kind: "embedded", projection: behind(projection) } }).map(([text]) => text);
  assert.deepEqual(troubles({ tasks: 3, waitingMs: 900 }), []);
  assert.deepEqual(troubles({ tasks: 1, failed: 1 }), ["The files of 1 task could not be written."]);
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

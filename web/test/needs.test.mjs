// What waits for a person.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, task } from "./bundle.mjs";

const { needsOf } = await load("state/needs.ts");
const session = (id, more = {}) => ({ id, agent: "ada", harness: "acp", state: "awaiting_permission", ...more });
const asked = (id, kind, requestedAtMs) => ({ id, kind, title: `${kind} ${id}`, requestedAtMs });

test("nothing waits where nothing does", () => {
  assert.deepEqual(needsOf([], []), []);
  const busy = ["backlog", "ready", "in-progress", "done", "cancelled"].map((status) => task(status, { status }));
  assert.deepEqual(needsOf(busy, [session("s1")]), []);
});

test("questions first, then permissions, reviews, what is blocked, what was given up; the oldest of each first", () => {
  const tasks = [
    task("gone", { status: "deadletter", attempts: 3 }),
    task("stuck", { status: "blocked", metadata: { blockReason: "no network" } }),
    task("young", { status: "review", lastTransitionAt: "2026-02-09T11:00:00.000Z" }),
    task("old", { status: "review", lastTransitionAt: "2026-02-09T10:00:00.000Z" }),
  ];
  const sessions = [session("s1", { pendingPermissions: [asked("p2", "permission", 20), asked("p1", "permission", 10), asked("q", "question", 30)] })];
  const needs = needsOf(tasks, sessions);
  assert.deepEqual(needs.map((need) => need.key), ["s1 q", "s1 p1", "s1 p2", "old review", "young review", "stuck blocked", "gone deadletter"]);
  assert.deepEqual(needs.map((need) => need.path).slice(2, 4), ["/sessions/s1", "/tasks/old"]);
  assert.equal(needs[5].detail, "no network");
  assert.match(needs[6].detail, /3 attempts/);
});

test("what ends by itself needs nobody", () => {
  const tasks = [
    task("ci", { status: "review", phase: "CI_PENDING" }),
    task("waits", { status: "blocked", metadata: { blockReason: "dependencies" } }),
  ];
  const ended = session("s1", { pendingPermissions: [asked("p", "permission", 1)], terminationInfo: { reason: "completed", terminated_by: "agent" } });
  assert.deepEqual(needsOf(tasks, [ended]), []);
});

test("a need has the same key as long as it is the same", () => {
  const before = needsOf([task("a", { status: "review", rev: 1 })], [])[0].key;
  assert.equal(needsOf([task("a", { status: "review", rev: 9, title: "other" })], [])[0].key, before);
  assert.notEqual(needsOf([task("a", { status: "blocked" })], [])[0].key, before);
});

test("times that are none, and many tasks, break nothing", () => {
  assert.equal(needsOf([task("a", { status: "review", lastTransitionAt: "soon", updatedAt: undefined })], [])[0].since, 0);
  assert.equal(needsOf(Array.from({ length: 5000 }, (_, n) => task(`t${n}`, { status: "review" })), []).length, 5000);
});

test("what is not as it should be leaves the list out, and nothing else", () => {
  const good = task("good", { status: "review" });
  const odd = [null, task("a", { status: {}, title: null }), task("b", { status: "review", card: null }), good];
  const sessions = [null, session("s1", { pendingPermissions: {} }), session("s2", { pendingPermissions: [asked("p", "permission", 1)] })];
  assert.deepEqual(needsOf(odd, sessions).map((need) => need.key), ["s2 p", "b review", "good review"]);
  assert.deepEqual(needsOf([good], undefined).map((need) => need.key), ["good review"]);
});

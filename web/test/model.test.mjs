// What the page makes of a task: its lease, its agent, why it is blocked.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load, task } from "./bundle.mjs";

const { agentOf, blockReason, cardOf, isExpired, leaseEnd, leaseLeft, tagsOf, COLUMNS, ENDED, LETTERS, STATUSES } = await load("state/model.ts");
const BEGAN = Date.parse("2026-02-09T12:00:00.000Z");
const at = (ms) => new Date(BEGAN + ms).toISOString();
const held = (lease = {}, card = {}) => task("a", { lease: { agent: "ada", fence: 1, acquiredAt: at(0), expiresAt: at(600_000), ...lease }, card });

test("a lease drains from whole to nothing", () => {
  const one = held({}, { leaseTtlMs: 600_000 });
  assert.equal(leaseLeft(one, BEGAN), 1);
  assert.equal(leaseLeft(one, BEGAN + 300_000), 0.5);
  assert.equal(leaseLeft(one, BEGAN + 600_000), 0);
  assert.equal(leaseLeft(one, BEGAN + 900_000), 0);
  assert.equal(leaseLeft(one, BEGAN - 900_000), 1, "a clock that is behind does not overfill it");
});

test("whichever ends first counts, lease or heartbeat", () => {
  const one = held({}, { heartbeatBy: at(100_000), leaseTtlMs: 600_000, beatTtlMs: 100_000 });
  assert.equal(leaseEnd(one), BEGAN + 100_000);
  assert.equal(leaseLeft(one, BEGAN + 50_000), 0.5);
  assert.ok(!isExpired(one, BEGAN + 99_999));
  assert.ok(isExpired(one, BEGAN + 100_000));
  const beaten = held({}, { heartbeatBy: at(150_000), leaseTtlMs: 600_000, beatTtlMs: 100_000 });
  assert.equal(leaseLeft(beaten, BEGAN + 50_000), 1, "a beat fills it again");
});

test("without a length of its own a lease is as long as from its claim to its end", () => {
  assert.equal(leaseLeft(held(), BEGAN + 150_000), 0.75);
});

test("times that are none, and tasks without a lease, break nothing", () => {
  assert.equal(leaseEnd(task("a")), undefined);
  assert.equal(leaseLeft(task("a"), BEGAN), 0);
  assert.equal(isExpired(task("a"), BEGAN), false);
  const odd = held({ expiresAt: "never" });
  assert.equal(leaseLeft(odd, BEGAN), 0);
  assert.equal(isExpired(odd, BEGAN), false);
});

test("whoever holds a task is its agent, else whom it is for", () => {
  assert.equal(agentOf(task("a")), undefined);
  assert.equal(agentOf(task("a", { routing: { agent: "bob" } })), "bob");
  assert.equal(agentOf(task("a", { routing: { agent: 7 } })), undefined);
  assert.equal(agentOf({ ...held(), routing: { agent: "bob" } }), "ada");
});

test("reasons and tags are texts or nothing", () => {
  assert.equal(blockReason(task("a", { metadata: { blockReason: "no network" } })), "no network");
  assert.equal(blockReason(task("a", { metadata: { blockReason: "" } })), undefined);
  assert.equal(blockReason(task("a", { metadata: { blockReason: { no: 1 } } })), undefined);
  assert.deepEqual(tagsOf(task("a", { routing: { tags: ["x", 1, null, "y"] } })), ["x", "y"]);
  assert.deepEqual(tagsOf(task("a", { routing: { tags: "x" } })), []);
  assert.deepEqual(cardOf(task("a")), {});
});

test("every status has a column and a letter of its own", () => {
  assert.deepEqual(STATUSES, [...COLUMNS, ...ENDED]);
  assert.deepEqual([...Object.values(LETTERS)].sort(), [...STATUSES].sort());
  assert.ok(Object.keys(LETTERS).every((letter) => /^[a-z]$/.test(letter)));
});

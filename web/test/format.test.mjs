// Times, sizes and names.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { ago, bytes, plural, shortHash, shortId, span } = await load("state/format.ts");
const MIN = 60_000;

test("how long something took, in its two largest parts", () => {
  const cases = [[0, "0 ms"], [-5, "0 ms"], [999, "999 ms"], [1000, "1 s"], [59_999, "59 s"], [MIN, "1 min"], [MIN + 1000, "1 min 1 s"], [12 * MIN + 5000, "12 min"],
    [60 * MIN, "1 h"], [90 * MIN, "1 h 30 min"], [25 * 60 * MIN, "1 d 1 h"], [400 * 24 * 60 * MIN, "400 d"], [Infinity, ""], [NaN, ""]];
  for (const [ms, text] of cases) assert.equal(span(ms), text);
});

test("a moment as seen from now", () => {
  assert.equal(ago(1000, 1000), "now");
  assert.equal(ago(0, 4999), "now");
  assert.equal(ago(0, 30_000), "30 s ago");
  assert.equal(ago(30_000, 0), "in 30 s");
  assert.equal(ago(0, 3 * 24 * 60 * MIN), "3 d ago");
});

test("sizes", () => {
  for (const [count, text] of [[0, "0 B"], [999, "999 B"], [1000, "1.0 kB"], [123_456, "123 kB"], [5_000_000_000, "5.0 GB"], [9e15, "9000 TB"]]) assert.equal(bytes(count), text);
});

test("ids are shortened where their end tells them apart", () => {
  assert.equal(shortId("sess_01a1e522-bc7e-7fa7-8e0d-3a82de2d9f42"), "de2d9f42");
  assert.equal(shortId("TASK-2026-02-09-057"), "TASK-2026-02-09-057");
  assert.equal(shortId("sess_1"), "sess_1");
  assert.equal(shortHash("sha256:0123456789abcdef"), "0123456789");
});

test("one and many", () => {
  assert.deepEqual([plural(0, "task"), plural(1, "task"), plural(2, "task"), plural(2, "entry", "entries")], ["0 tasks", "1 task", "2 tasks", "2 entries"]);
});

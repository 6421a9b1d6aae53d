// Where a moment stands on the strip of a session.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { lanesOf, placeOf, scaleOf } = await load("screens/session/scale.ts");
const band = (state, from, to) => ({ state, reason: "", from, to });
const bar = (from, to) => ({ from, to });
const folded = ({ pieces }) => pieces.filter(({ isFolded }) => isFolded).map(({ from, to }) => [from, to]);

test("times stand in proportion, from 0 to 1", () => {
  const scale = scaleOf([band("starting", 100, 200), band("calling_llm", 200, undefined)], [], 500, true);
  assert.deepEqual([100, 200, 350, 500].map((at) => placeOf(scale, at)), [0, 0.25, 0.625, 1]);
  assert.deepEqual([placeOf(scale, 0), placeOf(scale, 9999)], [0, 1], "what is outside is at the edge");
});

test("a long wait is folded to a little, and everything else keeps its proportion", () => {
  const bands = [band("calling_llm", 0, 100), band("ready", 100, 100_000), band("calling_llm", 100_000, 100_100)];
  const scale = scaleOf(bands, [], 100_100, true);
  assert.deepEqual(folded(scale), [[100, 100_000]]);
  const [first, wait, last] = [[0, 100], [100, 100_000], [100_000, 100_100]].map(([from, to]) => placeOf(scale, to) - placeOf(scale, from));
  assert.ok(Math.abs(first - last) < 1e-9 && wait < 0.08 && wait > 0.03, `${first} ${wait} ${last}`);
  assert.ok(placeOf(scale, 50_000) > placeOf(scale, 100) && placeOf(scale, 50_000) < placeOf(scale, 100_000), "what happens in it still has its place");
});

test("whole it is where somebody wants it so", () => {
  const bands = [band("calling_llm", 0, 100), band("ready", 100, 10_000)];
  const scale = scaleOf(bands, [], 10_000, false);
  assert.deepEqual(folded(scale), []);
  assert.ok(Math.abs(placeOf(scale, 100) - 0.01) < 1e-9);
});

test("work is never folded, however long it takes, nor is a short wait, nor a session that only waits", () => {
  assert.deepEqual(folded(scaleOf([band("starting", 0, 10), band("calling_llm", 10, 100_000)], [], 100_000, true)), []);
  assert.deepEqual(folded(scaleOf([band("calling_llm", 0, 1000), band("ready", 1000, 1050), band("calling_llm", 1050, 2000)], [], 2000, true)), []);
  assert.deepEqual(folded(scaleOf([band("ready", 0, undefined)], [], 1_000_000, true)), []);
});

test("what ran before the first known state has its place", () => {
  const scale = scaleOf([band("ready", 500, undefined)], [bar(100, 200)], 900, true);
  assert.equal(placeOf(scale, 100), 0);
  assert.equal(placeOf(scale, 500), 0.5);
});

test("without any length everything is at its beginning or its end", () => {
  const scale = scaleOf([band("idle", 5, 5)], [], 5, true);
  assert.deepEqual([placeOf(scale, 5), placeOf(scale, 6)], [0, 1]);
  assert.equal(scaleOf([], [], 5, true).total, 0);
});

test("what overlaps stands below each other, and what is free again is used again", () => {
  assert.deepEqual(lanesOf([bar(0, 10), bar(5, 15), bar(10, 20), bar(12, 14), bar(15, 16)], 20, 8), { lanes: [0, 1, 0, 2, 1], count: 3 });
  assert.deepEqual(lanesOf([], 20, 8), { lanes: [], count: 0 });
});

test("what still runs keeps its lane, and there are no more lanes than fit", () => {
  assert.deepEqual(lanesOf([bar(0, undefined), bar(5, 6), bar(7, 8)], 20, 8), { lanes: [0, 1, 1], count: 2 });
  const many = lanesOf(Array.from({ length: 20 }, () => bar(0, 10)), 10, 4);
  assert.equal(many.count, 4);
  assert.ok(many.lanes.every((lane) => lane < 4));
});

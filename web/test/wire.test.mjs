// The last items of a session's stream, as they came.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { emptyWire, withItem, brief, laidOut, FRAMES_MAX, FRAMES_CHARS_MAX, FRAME_CHARS_MAX } = await load("screens/session/wire.ts");
const said = (at, text) => ({ kind: "stream_event", at, event: { type: "text_delta", payload: { text } } });
const all = (items) => items.reduce(withItem, emptyWire());

test("what came is kept as it came, with its place and its names", () => {
  const gap = { kind: "gap", at: 9, resumeFrom: 8 };
  const odd = { kind: "other", at: 10, name: "of_tomorrow", event: ["a", { b: null }] };
  const { frames, count } = all([said(3, "a <b>"), gap, odd]);
  assert.equal(count, 3);
  assert.deepEqual(frames.map(({ at, channel, type }) => [at, channel, type]), [[3, "stream_event", "text_delta"], [9, "gap", ""], [10, "of_tomorrow", ""]]);
  assert.deepEqual(frames.map((frame) => JSON.parse(laidOut(frame))), [said(3, "a <b>").event, { resumeFrom: 8 }, odd.event]);
});

test("the same item twice stands there twice", () => {
  const { frames } = all([said(1, "a"), said(1, "a")]);
  assert.equal(frames.length, 2);
  assert.notEqual(frames[0].key, frames[1].key);
});

test("however many come, so many are kept, and they are the last", () => {
  const wire = all(Array.from({ length: 3 * FRAMES_MAX }, (_, at) => said(at, `${at}`)));
  assert.equal(wire.frames.length, FRAMES_MAX);
  assert.equal(wire.count, 3 * FRAMES_MAX);
  assert.deepEqual(wire.frames.map(({ at }) => at), Array.from({ length: FRAMES_MAX }, (_, at) => 2 * FRAMES_MAX + at));
  assert.equal(wire.chars, wire.frames.reduce((sum, { json }) => sum + json.length, 0));
});

test("however large they are, they take so much together, and one of them is cut", () => {
  const large = "x".repeat(FRAME_CHARS_MAX - 200);
  const wire = all(Array.from({ length: 50 }, (_, at) => said(at, large)));
  assert.ok(wire.chars <= FRAMES_CHARS_MAX && wire.frames.length > 5, `${wire.chars} of ${wire.frames.length}`);
  assert.equal(wire.frames.at(-1).at, 49);
  const { frames: [cut] } = all([said(1, "y".repeat(5_000_000))]);
  assert.equal(cut.json.length, FRAME_CHARS_MAX);
  assert.ok(cut.cutFrom > 5_000_000);
  assert.ok(laidOut(cut).startsWith('{"type":"text_delta"'));
});

test("what is no event at all breaks nothing", () => {
  for (const event of [undefined, null, 7, "text", { type: 7 }]) assert.equal(all([{ kind: "stream_event", at: 1, event }]).frames[0].type, "");
});

test("a row of it says what is its own", () => {
  const briefs = [said(1, "a"), { kind: "state_event", at: 2, event: { eventId: "evt_1", timestampMs: 3, type: "state_changed", from: "idle", to: "starting" } },
    { kind: "gap", at: 9, resumeFrom: 8 }, { kind: "other", at: 10, name: "x", event: [1] }, { kind: "ended", at: 11 }].map((item) => brief(all([item]).frames[0]));
  assert.deepEqual(briefs, ['{"text":"a"}', '{"from":"idle","to":"starting"}', '{"resumeFrom":8}', "[1]", "{}"]);
});

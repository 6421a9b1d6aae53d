// The parser of streams, and the waits between attempts.
import assert from "node:assert/strict";
import { EventParser, eventsOf } from "../dist/sse.js";
import { backoffMs } from "../dist/wait.js";
import { test } from "./deadline.mjs";

const TEXT = [
  ": alive\n\n", "id: 1\ndata: {\"a\":\"ü😀\"}\n\n", "event: live\ndata: {\"position\":1}\n\n", "event: nothing\n\n",
  "retry: 10\r\nid: 2\r\ndata:one\r\ndata: two\r\n\r\n", "id: x\rdata\r\r", "id: 3\ndata: cut off\n",
].join("");
const EXPECTED = [
  { name: "message", id: 1, data: '{"a":"ü😀"}' },
  { name: "live", id: undefined, data: '{"position":1}' },
  { name: "message", id: 2, data: "one\ntwo" },
  { name: "message", id: undefined, data: "" },
];

const parse = (pieces) => {
  const parser = new EventParser();
  return pieces.flatMap((piece) => parser.push(piece));
};

test("events are read however they are cut, comments are passed over, and what is not whole is none", () => {
  assert.deepEqual(parse([TEXT]), EXPECTED);
  for (let at = 0; at <= TEXT.length; at += 1) assert.deepEqual(parse([TEXT.slice(0, at), TEXT.slice(at)]), EXPECTED, `cut at ${at}`);
  assert.deepEqual(parse([...TEXT]), EXPECTED);
});

test("a character may be cut, too", async () => {
  const bytes = new TextEncoder().encode(TEXT);
  const body = new ReadableStream({
    start(controller) {
      for (const byte of bytes) controller.enqueue(Uint8Array.of(byte));
      controller.close();
    },
  });
  const events = [];
  for await (const event of eventsOf(body, 10_000)) events.push(event);
  assert.deepEqual(events, EXPECTED);
});

test("an event without an end is not collected for ever", () => {
  const parser = new EventParser();
  const piece = "x".repeat(1 << 20);
  parser.push("data: ");
  assert.throws(() => {
    for (let n = 0; n < 20; n += 1) parser.push(piece);
  }, /longer than/);
  const lines = new EventParser();
  assert.throws(() => {
    for (let n = 0; n < 20; n += 1) lines.push(`data: ${piece}\n`);
  }, /longer than/);
});

test("waits double, are bounded, and vary", () => {
  const policy = { attempts: Infinity, firstMs: 100, maxMs: 5000 };
  const longest = (failures) => backoffMs(policy, failures, () => 1);
  assert.deepEqual([1, 2, 3, 4, 7, 8, 5000].map(longest), [100, 200, 400, 800, 5000, 5000, 5000]);
  assert.equal(backoffMs(policy, 1, () => 0), 50);
});

// What the transcript adds to what was heard of a session.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { emptyBook, take, withPrompt, lacksPrompt, withoutGuess, withPrompts, withTail } = await load("screens/session/book.ts", "screens/session/kept.ts");

const state = (at, streamId, reason = "user_input") => ({ kind: "state_event", at, event: { eventId: `evt_${at}`, sessionId: "s", timestampMs: at, type: "state_changed", from: "ready", to: "calling_llm", reason, streamId } });
const delta = (at, seq, text, streamId = "turn_1") => ({ kind: "stream_event", at, event: { streamId, seq, timestampMs: at, type: "text_delta", payload: { text, role: "assistant" } } });
const said = (book) => book.view.turns.flatMap((turn) => turn.parts).map((part) => part.text ?? part.toolName).join("");
const line = (kind, fields) => ({ at: "2026-01-01T00:00:00.000Z", kind, ...fields });

test("a prompt is what the transcript says, whoever wrote it", () => {
  const sent = withPrompt(emptyBook(), "mine");
  const book = take(sent, state(1, "turn_1"));
  assert.deepEqual([book.marks[0].prompt, lacksPrompt(book)], ["mine", true], "what was sent here is shown at once, and is a guess");
  const found = withPrompts(book, [line("prompt", { streamId: "turn_1", text: "another's" })]);
  assert.deepEqual([found.marks[0].prompt, lacksPrompt(found)], ["another's", false]);
  const refused = withoutGuess(book);
  assert.deepEqual([refused.marks[0].prompt, lacksPrompt(refused)], [undefined, true]);
});

test("a prompt that does not come is not looked for without end, and is taken when it comes after all", () => {
  let book = take(emptyBook(), state(1, "turn_1"));
  for (let looks = 0; lacksPrompt(book); looks += 1) {
    assert.ok(looks < 20);
    book = withPrompts(book, []);
  }
  assert.equal(book.marks[0].prompt, "");
  assert.equal(withPrompts(book, [line("prompt", { streamId: "turn_1", text: "late" })]).marks[0].prompt, "late");
});

test("the last words that nobody heard come from the transcript, also where all of them are alike", () => {
  const heard = Array.from({ length: 10 }, () => "tick\n").join("");
  const book = take(take(emptyBook(), state(1, "turn_1")), delta(2, 1, heard));
  const lines = [line("prompt", { streamId: "turn_1", text: "go" }), line("text", { text: "tick\n".repeat(50) }), line("session_error", { code: "x", message: "it crashed" })];
  const whole = withTail(book, lines);
  assert.equal(said(whole), "tick\n".repeat(50));
  assert.equal(said(withTail(whole, lines)), "tick\n".repeat(50), "once");
});

test("what was done between is where it was, and what was kept of less is not taken", () => {
  const book = take(take(emptyBook(), state(1, "turn_1")), delta(2, 1, "first "));
  const lines = [
    line("prompt", { streamId: "turn_0", text: "before" }), line("text", { text: "old" }), line("prompt", { streamId: "turn_1", text: "go" }),
    line("text", { text: "first " }), line("tool", { callId: "c", toolName: "grep", output: "x", error: null }), line("text", { text: "second" }),
  ];
  assert.equal(said(withTail(book, lines)), "first grepsecond");
  assert.equal(said(withTail(take(book, delta(3, 2, "and much more than was written")), lines)), "first and much more than was written");
});

test("of a turn whose beginning is gone only what goes on from its end is taken", () => {
  let book = take(emptyBook(), state(1, "turn_1"));
  const text = Array.from({ length: 30_000 }, (_, n) => `line ${n} of a long, long text that is cut\n`);
  text.slice(0, 29_000).forEach((each, n) => { book = take(book, delta(n + 2, n + 1, each)); });
  assert.ok(book.view.turns[0].leftOut > 0);
  const lines = [line("prompt", { streamId: "turn_1", text: "go" }), ...text.map((each) => line("text", { text: each }))];
  assert.ok(said(withTail(book, lines)).endsWith(text.at(-1)));
  assert.equal(withTail(book, lines.slice(0, 20_000)), book, "what is behind is not taken");
});

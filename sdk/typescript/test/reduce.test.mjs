// The reducer alone, without a server. The events are the examples of docs/protocol/sessions.md, which the Rust code is compared with.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { emptyView, reduce } from "../dist/index.js";
import { test } from "./deadline.mjs";

const page = readFileSync(new URL("../../../docs/protocol/sessions.md", import.meta.url), "utf8");
const examples = (kind) => [...page.matchAll(new RegExp("```json " + kind + "\\n([^]*?)```", "g"))].map(([, text]) => JSON.parse(text));

/** Folds events: those with a `streamId` and a `seq` are stream events. */
function fold(events, view = emptyView()) {
  return events.reduce((now, event) => {
    const kind = "seq" in event ? "stream_event" : "state_event";
    const next = reduce(Object.freeze(now), { kind, at: now.at + 1, event: Object.freeze(event) });
    assert.notEqual(next, now);
    return next;
  }, view);
}

const stated = (type, fields) => ({ eventId: "evt_1", sessionId: "sess_1", timestampMs: 1, type, ...fields });
const changed = (from, to, reason, more = {}) => stated("state_changed", { from, to, reason, ...more });
const streamed = (seq, type, payload, streamId = "turn_1") =>
  ({ schemaVersion: "1.0", eventId: "evt_2", sessionId: "sess_1", harness: "mock", streamId, seq, timestampMs: 2, type, payload });
const toolRun = (runId, status, more = {}) =>
  ({ runId, callId: `call-${runId}`, toolName: "write_file", mutating: true, status, attempt: 1, startedAtMs: 1, ...more });

test("every example of the page is understood", () => {
  const state = examples("state");
  const stream = examples("stream");
  assert.ok(state.length >= 6 && stream.length >= 5);
  for (const event of [...state, ...stream]) assert.deepEqual(fold([event]).unknown, [], event.type);
});

test("a turn with a tool and a hook", () => {
  const view = fold([
    changed("idle", "starting", "spawned"),
    changed("starting", "ready", "harness_ready"),
    changed("ready", "calling_llm", "user_input", { streamId: "turn_1" }),
    streamed(1, "thinking_delta", { text: "hm", role: "assistant" }),
    streamed(2, "thinking_delta", { text: "m", role: "assistant" }),
    streamed(3, "text_delta", { text: "I ", role: "assistant" }),
    streamed(4, "text_delta", { text: "write.", role: "assistant" }),
    streamed(5, "tool_call_delta", { callId: "call-1", toolName: "write_file", arguments: { path: "a" }, status: "pending" }),
    streamed(6, "tool_call_delta", { callId: "call-1", status: "running" }),
    streamed(7, "tool_call_completed", { callId: "call-1", toolName: "write_file", output: "ok", error: null }),
    streamed(8, "status", { message: "waits" }),
    streamed(9, "metadata", { usage: { totalTokens: 3 } }),
    streamed(10, "completed", { reason: "end_turn", usage: null }),
    changed("calling_llm", "processing_response", "stream_completed"),
    changed("processing_response", "executing_tools", "tools_requested"),
    stated("tool_lifecycle", toolRun("toolrun_1", "running")),
    stated("tool_lifecycle", toolRun("toolrun_1", "succeeded", { finishedAtMs: 2 })),
    changed("executing_tools", "post_tools_hook", "tools_completed"),
    stated("hook_lifecycle", { runId: "hookrun_1", hookName: "count", toolRunIds: ["toolrun_1"], status: "succeeded", attempt: 1, startedAtMs: 3 }),
    changed("post_tools_hook", "calling_llm", "hooks_completed", { streamId: "turn_2" }),
    streamed(1, "text_delta", { text: "Done.", role: "assistant" }, "turn_2"),
    streamed(2, "completed", { reason: "end_turn", usage: null }, "turn_2"),
    changed("calling_llm", "processing_response", "stream_completed"),
    changed("processing_response", "ready", "stream_completed"),
  ]);
  assert.equal(view.state, "ready");
  assert.equal(view.streamId, "turn_2");
  assert.deepEqual(view.toolRuns, [toolRun("toolrun_1", "succeeded", { finishedAtMs: 2 })]);
  assert.deepEqual(view.hookRuns.map((run) => [run.runId, run.status]), [["hookrun_1", "succeeded"]]);
  assert.equal(view.turns.length, 2);
  assert.deepEqual(view.turns[0], {
    streamId: "turn_1",
    seq: 10,
    parts: [
      { kind: "thinking", text: "hmm" },
      { kind: "text", role: "assistant", text: "I write." },
      { kind: "tool_call", callId: "call-1", toolName: "write_file", arguments: { path: "a" }, status: "completed", output: "ok", error: null },
      { kind: "status", message: "waits" },
    ],
    usage: { totalTokens: 3 },
    end: { type: "completed", reason: "end_turn" },
  });
  assert.deepEqual(view.unknown, []);
});

test("the last error stays until something goes on, and one of the orchestrator changes nothing", () => {
  const error = { code: "tool_execution_failed", message: "no", retryable: true, source: "tool" };
  const failed = fold([stated("session_error", error), changed("executing_tools", "error", "tool_failed"), changed("error", "ready", "retries_exhausted")]);
  assert.deepEqual(failed.lastError, error);
  assert.deepEqual(fold([stated("session_error", { ...error, source: "orchestrator", message: "does not fit" })], failed).lastError, error);
  assert.deepEqual(fold([changed("executing_tools", "post_tools_hook", "tools_completed")], failed).lastError, error);
  for (const [to, reason] of [["calling_llm", "user_input"], ["executing_tools", "retry"], ["ready", "tools_completed"], ["calling_llm", "hooks_completed"]]) {
    assert.equal(fold([changed("ready", to, reason)], failed).lastError, undefined, reason);
  }
  const warned = fold([stated("session_warning", error)], failed);
  assert.deepEqual(warned.warnings, [error]);
});

test("a permission is pending until it is answered", () => {
  const asked = { id: "1", kind: "tool", title: "make", requestedAtMs: 1, expiresAtMs: 2 };
  const view = fold([stated("permission_requested", asked), stated("permission_requested", { ...asked, id: "2" })]);
  assert.deepEqual(view.pendingPermissions, [asked, { ...asked, id: "2" }]);
  const answered = fold([stated("permission_resolved", { id: "1", answer: "allow", by: "operator" })], view);
  assert.deepEqual(answered.pendingPermissions.map(({ id }) => id), ["2"]);
});

test("what is not known is kept as it came, and so is what does not hold what it should", () => {
  const strange = [
    stated("mood_changed", { mood: "blue" }),
    stated("state_changed", { to: 7 }),
    stated("tool_lifecycle", {}),
    streamed(1, "image_delta", { bytes: "…" }),
    streamed(2, "text_delta", null),
    streamed(3, "text_delta", { text: 5 }),
  ];
  const view = fold(strange);
  assert.deepEqual(view.unknown.map(({ event }) => event), strange);
  assert.deepEqual(view.unknown.map(({ at }) => at), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual({ ...view, at: 0, unknown: [] }, emptyView());
  const other = reduce(view, { kind: "other", at: 7, name: "weather", event: { rain: true } });
  assert.deepEqual(other.unknown.at(-1), { at: 7, channel: "weather", event: { rain: true } });
  for (const event of [null, 5, "text", [], undefined]) assert.equal(reduce(emptyView(), { kind: "state_event", at: 1, event }).unknown.length, 1);
  for (const event of [null, 5, "text", [], undefined]) assert.equal(reduce(emptyView(), { kind: "stream_event", at: 1, event }).unknown.length, 1);
  assert.equal(reduce(view, { kind: "newer", at: 9 }).unknown.length, strange.length + 1);
});

test("what is in the view already changes nothing", () => {
  const item = { kind: "stream_event", at: 1, event: streamed(1, "text_delta", { text: "a", role: "assistant" }) };
  const view = reduce(emptyView(), item);
  assert.equal(reduce(view, item), view);
  const replayed = reduce(view, { ...item, at: 2 });
  assert.deepEqual(replayed.turns, view.turns, "the same part of a stream under another position");
});

test("a gap and the end are part of the view", () => {
  const info = { reason: "error", terminated_by: "agent", exit_code: 3 };
  const gap = reduce(fold([changed("ready", "calling_llm", "user_input")]), { kind: "gap", at: 40, resumeFrom: 40 });
  assert.deepEqual([gap.hasGap, gap.at, gap.state], [true, 40, "calling_llm"]);
  const view = reduce(gap, { kind: "ended", at: 41, terminationInfo: info });
  assert.deepEqual([view.isEnded, view.state, view.terminationInfo], [true, "stopped", info]);
});

test("a session that is over is told again, and what was said in it stays", () => {
  const said = fold([changed("ready", "calling_llm", "user_input"), streamed(1, "text_delta", { text: "a", role: "assistant" })]);
  const again = reduce(said, { kind: "gap", at: said.at, resumeFrom: 0 });
  assert.deepEqual([again.state, again.turns, again.hasGap], ["idle", said.turns, true]);
});

const textOf = (view) => view.turns.flatMap((turn) => turn.parts).map((part) => part.text ?? "").join("");

test("a text that is long goes on in another part, at the end of a line", () => {
  const lines = Array.from({ length: 2000 }, (_, n) => `line ${n} of a long text\n`);
  const view = fold(lines.map((text, n) => streamed(n + 1, "text_delta", { text, role: "assistant" })));
  const { parts } = view.turns[0];
  assert.ok(parts.length > 1 && parts.every((part) => part.text.length <= 8192));
  assert.ok(parts.slice(0, -1).every((part) => part.text.endsWith("\n")));
  assert.equal(textOf(view), lines.join(""));
  // No character is cut in two, and where there are no lines it is cut all the same.
  const faces = "😀".repeat(20_000);
  const one = fold([streamed(1, "text_delta", { text: `x${faces}`, role: "assistant" })]);
  assert.equal(textOf(one), `x${faces}`);
  assert.ok(one.turns[0].parts.length > 1 && one.turns[0].parts.every((part) => part.text.isWellFormed()));
});

test("a view does not grow without bound", () => {  let view = emptyView();
  for (let n = 1; n <= 1100; n += 1) view = reduce(view, { kind: "state_event", at: n, event: stated("tool_lifecycle", toolRun(`toolrun_${n}`, "succeeded")) });
  assert.equal(view.toolRuns.length, 1000);
  assert.equal(view.toolRuns.at(-1).runId, "toolrun_1100");
  for (let n = 1; n <= 300; n += 1) view = reduce(view, { kind: "other", at: 2000 + n, name: "weather", event: { n } });
  assert.deepEqual([view.unknown.length, view.unknown.at(-1).event], [200, { n: 300 }]);
});

/** What the counts of a view say is what is in it. */
function isCounted(view) {
  const parts = view.turns.flatMap((turn) => turn.parts);
  assert.equal(view.held.parts, parts.length);
  assert.ok(view.held.parts <= 1000 && view.held.chars <= 1_000_000, JSON.stringify(view.held));
  if (parts.every((part) => part.text !== undefined)) assert.equal(view.held.chars, textOf(view).length);
}

test("however much is said, the last of it is here and the rest is counted", () => {
  let view = emptyView();
  let at = 0;
  const take = (type, payload, streamId) => {
    at += 1;
    view = reduce(view, { kind: "stream_event", at, event: streamed(at, type, payload, streamId) });
  };
  for (let n = 1; n <= 100_000; n += 1) take("text_delta", { text: `${n}${n % 10 === 0 ? "\n" : " "}and twenty letters, `, role: "assistant" });
  isCounted(view);
  assert.ok(view.held.leftOut > 0 && textOf(view).includes("100000\nand"));
  take("text_delta", { text: "x".repeat(5_000_000), role: "assistant" });
  isCounted(view);
  for (let n = 1; n <= 3000; n += 1) {
    take("tool_call_delta", { callId: `call-${n}`, toolName: "read_file", arguments: { path: `${n}` }, status: "running" }, `turn_${n % 1500}`);
    take("tool_call_completed", { callId: `call-${n}`, toolName: "read_file", output: "y".repeat(5000), error: null }, `turn_${n % 1500}`);
  }
  isCounted(view);
  assert.equal(view.turns.length, 1000);
  assert.equal(view.turns.at(-1).parts.at(-1).callId, "call-3000");
  take("tool_call_completed", { callId: "call-3000", toolName: "read_file", output: { text: "z".repeat(5_000_000) }, error: null }, "turn_0");
  isCounted(view);
  assert.ok(view.turns.at(-1).parts.at(-1).output.length < 70_000);
  take("mumble", { text: "z".repeat(5_000_000) });
  assert.ok(view.unknown.at(-1).event.length < 70_000);
});

test("the plan of a turn is what was said of it last", () => {
  const plan = [{ content: "look around", priority: "medium", status: "completed" }];
  const view = fold([streamed(1, "metadata", { plan: [] }), streamed(2, "metadata", { plan }), streamed(3, "metadata", { usage: { totalTokens: 3 } })]);
  assert.deepEqual([view.turns[0].plan, view.turns[0].usage], [plan, { totalTokens: 3 }]);
  assert.ok(JSON.stringify(fold([streamed(1, "metadata", { plan: "x".repeat(1_000_000) })])).length < 100_000, "however long it is, it is cut");
});

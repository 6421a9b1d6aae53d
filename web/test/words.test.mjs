// The states and ends of sessions in plain words.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";
import { itemsOf, NAMES, viewOf } from "./recorded.mjs";

const { endingOf, endWord, endKind, reasonWord, stateKind, stateWord, whyNoInput } = await load("screens/session/words.ts");
const session = (more = {}) => ({ id: "sess_1", agent: "ada", harness: "acp", state: "stopped", ...more });
const facts = (info, one) => Object.fromEntries(endingOf(info, one).facts);

test("every state and every reason that was ever recorded has words of its own", () => {
  for (const name of NAMES) {
    for (const { event } of itemsOf(name)) {
      if (event?.type !== "state_changed") continue;
      assert.notEqual(stateWord(event.to), "");
      assert.notEqual(reasonWord(event.reason), event.reason, event.reason);
      assert.ok(["good", "warn", "bad", "off", "busy"].includes(stateKind(event.to)));
    }
  }
  assert.deepEqual([stateWord("of_tomorrow"), stateKind("of_tomorrow"), reasonWord("of_tomorrow")], ["of_tomorrow", "off", "of_tomorrow"]);
});

test("input is taken when it is ready, and otherwise it is said why not", () => {
  assert.equal(whyNoInput("ready"), undefined);
  for (const [state, why] of [["idle", /starting/], ["starting", /starting/], ["calling_llm", /at work/], ["executing_tools", /at work/], ["error", /tried again/], ["stopping", /is ending/], ["stopped", /has ended/], ["of_tomorrow", /at work/]]) {
    assert.match(whyNoInput(state), why);
  }
});

test("every end that was recorded is told, with its code or signal and its cause", () => {
  for (const name of NAMES) {
    const info = viewOf(name).terminationInfo;
    if (!info) continue;
    const { kind, title, sentence } = endingOf(info, session({ terminationInfo: info }));
    assert.equal(kind, info.reason === "error" ? "bad" : info.reason === "completed" ? "good" : "off", name);
    assert.notEqual(title, "");
    assert.match(sentence, /[.!?]$/);
    const told = facts(info);
    if (info.exit_code !== undefined) assert.equal(told["exit code"], String(info.exit_code));
    if (info.cause) assert.equal(told.cause, info.cause);
    if (info.last_tool) assert.equal(told["last tool"], info.last_tool);
  }
});

test("what is known of an end stands beside it", () => {
  const info = { reason: "error", terminated_by: "agent", cause: "crash", signal: { name: "SIGKILL", number: 9 }, message: "it died", last_tool: "bash", duration_ms: 90_000, max_rss_bytes: 5_000_000, cpu_ms: 1200 };
  assert.deepEqual(facts(info), { cause: "crash", signal: "9 (SIGKILL)", "last tool": "bash", after: "1 min 30 s", memory: "5.0 MB at most", processor: "1 s" });
  assert.equal(endingOf(info).sentence, "The agent's process went down by itself. It died.");
});

test("whoever was ended for a limit is not said to have died of a signal, and when the limit ends is", () => {
  const told = facts({ reason: "error", terminated_by: "daemon", cause: "quota", signal: { name: "SIGTERM", number: 15 }, resets_at: "2026-02-09T12:00:00Z" });
  assert.deepEqual(told, { cause: "quota", "the limit ends": "2026-02-09T12:00:00Z" });
});

test("an end by Baton is no failure, and whether it was cut short is told", () => {
  const stopped = endingOf({ reason: "terminated", terminated_by: "daemon", duration_ms: 5 }, session());
  assert.deepEqual([stopped.kind, stopped.next], ["off", ""]);
  const cut = endingOf({ reason: "terminated", terminated_by: "daemon", duration_ms: 5 }, session({ cutShort: true }));
  assert.match(cut.sentence, /Baton ended/);
  assert.notEqual(cut.next, "");
  assert.deepEqual([endingOf(undefined, session()).title, endingOf(undefined, session()).kind], ["Cut short", "warn"]);
});

test("a cause that nobody knows is a failure like any other, and a long message is cut", () => {
  const { kind, sentence } = endingOf({ reason: "error", terminated_by: "agent", cause: "of_tomorrow", message: "x".repeat(100_000) });
  assert.equal(kind, "bad");
  assert.ok(sentence.startsWith("The agent failed. X") && sentence.length < 3000);
  assert.equal(endingOf({ reason: "of_tomorrow", terminated_by: "agent" }).kind, "bad");
});

test("in a list an end is a few words", () => {
  const word = (terminationInfo, more) => [endWord(session({ terminationInfo, ...more })), endKind(session({ terminationInfo, ...more }))];
  assert.deepEqual(word({ reason: "error", cause: "crash", exit_code: 3 }), ["failed, crash, exit code 3", "bad"]);
  assert.deepEqual(word({ reason: "error", cause: "oom", signal: { name: "SIGKILL", number: 9 } }), ["failed, oom, SIGKILL", "bad"]);
  assert.deepEqual(word({ reason: "error" }), ["failed", "bad"]);
  assert.deepEqual(word({ reason: "completed" }), ["completed", "good"]);
  assert.deepEqual(word({ reason: "terminated", duration_ms: 1 }), ["ended by Baton", "off"]);
  assert.deepEqual(word({ reason: "terminated" }), ["ended with Baton", "off"]);
  assert.deepEqual(word(undefined, { cutShort: true }), ["cut short: Baton ended", "warn"]);
  assert.deepEqual(word(undefined), ["", "warn"]);
});

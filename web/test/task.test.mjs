// What the records of a task tell: where it has been, its attempts, its hand-offs, its work log in words, and changes line by line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { attemptsOf, handoffsOf, isStory, phaseName, reportOf, staysOf, stepsOf, entriesOf, endInWords, inPlainWords, linesOf, lineChanges } =
  await load("screens/task/story.ts", "screens/task/words.ts", "screens/task/diff.ts");

const BEGAN = Date.parse("2026-02-09T10:00:00.000Z");
let count = 0;
/** A record, so many seconds after the beginning. */
const record = (type, seconds, payload = {}, more = {}) => {
  count += 1;
  return { id: `evt_${count}`, seq: count, pos: count, type, at: new Date(BEGAN + seconds * 1000).toISOString(), actor: { agent: "baton", role: "system" }, payload, artifacts: [], ...more };
};
const created = record("task.created", 0, { status: "ready", phase: "IMPLEMENTATION" });
const moved = (seconds, from, to, reason, more = {}) => record("task.transitioned", seconds, { from, to, reason, ...more });
const phased = (seconds, from, to) => record("task.phase_changed", seconds, { from, to });
const short = (stays) => stays.map(({ status, phase, from, until, why }) => [status, phase, (from - BEGAN) / 1000, until === undefined ? undefined : (until - BEGAN) / 1000, why]);

test("where a task has been, for how long, and why it went on", () => {
  const stays = staysOf([created, moved(10, "ready", "in-progress", "claimed"), moved(30, "in-progress", "blocked", "moved", { blockReason: "no network" })]);
  assert.deepEqual(short(stays), [
    ["ready", "IMPLEMENTATION", 0, 10, "created"], ["in-progress", "IMPLEMENTATION", 10, 30, "claimed"], ["blocked", "IMPLEMENTATION", 30, undefined, "no network"],
  ]);
});

test("what one decision did at once is one step, and the reason stays with it", () => {
  const stays = staysOf([created, moved(10, "ready", "review", "reported"), phased(10, "IMPLEMENTATION", "REVIEW"), record("task.logged", 12), phased(20, "REVIEW", "READY_FOR_MERGE")]);
  assert.deepEqual(short(stays), [["ready", "IMPLEMENTATION", 0, 10, "created"], ["review", "REVIEW", 10, 20, "reported"], ["review", "READY_FOR_MERGE", 20, undefined, ""]]);
});

test("a story without its beginning tells nothing, and no story at all breaks nothing", () => {
  assert.deepEqual(staysOf([moved(10, "ready", "review", "x")]), []);
  assert.deepEqual(staysOf([]), []);
  assert.equal(stepsOf([], "IMPLEMENTATION", undefined, BEGAN).find(({ kind }) => kind === "here").phase, "IMPLEMENTATION");
});

test("the path says what lies behind, what was left out, where it is, and what is ahead", () => {
  const stays = staysOf([created, phased(10, "IMPLEMENTATION", "READY_FOR_REVIEW"), phased(20, "READY_FOR_REVIEW", "IMPLEMENTATION"), phased(50, "IMPLEMENTATION", "READY_FOR_REVIEW")]);
  const steps = stepsOf(stays, "READY_FOR_REVIEW", undefined, BEGAN + 60_000);
  assert.deepEqual(steps.map(({ phase, kind, ms, times }) => [phase, kind, ms / 1000, times]), [
    ["DRAFT", "over", 0, 0], ["IMPLEMENTATION", "been", 40, 2], ["CI_PENDING", "over", 0, 0], ["READY_FOR_REVIEW", "here", 20, 2], ["REVIEW", "ahead", 0, 0], ["READY_FOR_MERGE", "ahead", 0, 0], ["COMPLETED", "ahead", 0, 0],
  ]);
});

test("what is blocked stands where it came from", () => {
  const stays = staysOf([created, phased(10, "IMPLEMENTATION", "BLOCKED")]);
  const kinds = (before) => stepsOf(stays, "BLOCKED", before, BEGAN).filter(({ kind }) => kind === "blocked").map(({ phase }) => phase);
  assert.deepEqual([kinds(undefined), kinds("REVIEW")], [["IMPLEMENTATION"], ["REVIEW"]]);
});

test("what sessions do step by step is theirs to show", () => {
  assert.deepEqual(["state_changed", "lease.renewed", "task.created", "of_tomorrow"].map((type) => isStory(record(type, 0))), [false, false, true, true]);
  assert.deepEqual(["CI_PENDING", "READY_FOR_MERGE"].map(phaseName), ["CI pending", "Ready for merge"]);
});

test("attempts, the newest first, each with its own report and end", () => {
  const runs = [{ id: "run_1", startedAt: "a", endedAt: "b" }, { id: "run_2", startedAt: "c" }];
  const died = { reason: "error", terminated_by: "agent", exit_code: 3 };
  const [second, first] = attemptsOf(runs, [
    record("lease.acquired", 1, { runId: "run_1", agent: "ada", session: "sess_1" }),
    record("session.ended", 2, { reason: "completed", terminated_by: "agent" }, { run: "run_1", session: "sess_other" }),
    record("task.attempt_failed", 3, { runId: "run_1", reason: "session_end_error", termination: died }),
    record("lease.acquired", 4, { runId: "run_2", agent: "bob" }),
    record("task.completed", 5, { runId: "run_2", outcome: "done", report: { notes: "fine", deliverables: ["a.rs", 7], tests: { total: 2, passed: 2, failed: 0 } } }),
    record("task.completed", 6, { runId: "run_9", outcome: "done" }),
  ]);
  assert.deepEqual([first.number, first.agent, first.session, first.failed, first.termination, first.report], [1, "ada", "sess_1", "session_end_error", died, undefined]);
  assert.deepEqual([second.number, second.agent, second.report.outcome, second.report.deliverables, second.report.tests.passed], [2, "bob", "done", ["a.rs"], 2]);
});

test("a report that is none says nothing, and breaks nothing", () => {
  for (const report of [undefined, null, "text", { tests: "all", deliverables: "a", notes: 7 }]) {
    const { notes, deliverables, tests } = reportOf(record("task.completed", 1, { report }));
    assert.deepEqual([notes, deliverables, tests], ["", [], undefined]);
  }
});

test("hand-offs with what was asked for and what was answered", () => {
  const asked = { parentTaskId: "TASK-1", fromAgent: "ada", toAgent: "bob", handoff: { acceptanceCriteria: ["it works"], expectedOutputs: ["a.rs"], dueBy: "soon" } };
  const all = handoffsOf([record("delegation.requested", 1, asked), record("delegation.rejected", 2, { agent: "bob", reason: "no time" }), record("delegation.requested", 3, { ...asked, toAgent: "cleo" }), record("delegation.accepted", 4, {})]);
  assert.deepEqual(all.map(({ to, criteria, answer, reason }) => [to, criteria, answer, reason]), [["bob", ["it works"], "rejected", "no time"], ["cleo", ["it works"], "accepted", ""]]);
  assert.deepEqual(handoffsOf([record("delegation.accepted", 1)]), [], "an answer to nothing");
});

test("the work log is told in words, with who said it and how good it is", () => {
  const entries = entriesOf([
    record("trace.opened", 0), created,
    record("lease.acquired", 1, { agent: "ada", fence: 1 }),
    record("session.started", 1, { agent: "ada" }, { session: "sess_1" }),
    record("permission_requested", 2, { title: "run make" }, { session: "sess_1" }),
    record("session.ended", 3, { reason: "error", exit_code: 3, cause: "crash" }, { session: "sess_1" }),
    record("task.attempt_failed", 4, { attempts: 1, reason: "session_end_error" }),
    record("task.logged", 5, { progress: "half of it", blockers: ["no network"] }, { actor: { agent: "me", role: "operator" } }),
    record("task.rejected", 6, { reason: "too slow" }),
    record("of_tomorrow", 7, { a: 1 }),
  ]);
  assert.deepEqual(entries.map(({ title, tone, who, isPerson }) => [title, tone, who, isPerson]), [
    ["Created in ready, Implementation", "plain", "baton", false], ["ada took it, with fence 1", "plain", "baton", false], ["ada was started", "plain", "baton", false],
    ["Asks: run make", "warn", "ada", false], ["ada exited with code 3", "bad", "baton", false], ["Attempt 1 failed: its session ended: error", "bad", "baton", false],
    ["half of it", "warn", "me", true], ["Rejected: too slow", "warn", "baton", false], ["of_tomorrow", "plain", "baton", false],
  ]);
  assert.equal(entries[4].session, "sess_1");
  assert.match(entries[4].detail, /Exit code: 3\nCause: crash/);
  assert.match(entries[6].detail, /no network/);
  assert.match(entries.at(-1).detail, /"a": 1/, "what nobody knows is shown as it came");
});

test("a message is told by what came of it in the same moment, and by itself where nothing did", () => {
  const received = (seconds) => record("protocol.message.received", seconds, { fromAgent: "ada", type: "status.update", message: { payload: { progress: "half" } } });
  const both = [received(1), record("task.logged", 1, { progress: "half" })];
  assert.deepEqual(entriesOf(both).map(({ title }) => title), ["half"]);
  const alone = [received(1), record("task.logged", 2, { progress: "half" })];
  assert.deepEqual(entriesOf(alone).map(({ title }) => title), ["ada sent status.update", "half"]);
});

test("payloads that are not as agreed are told all the same", () => {
  const types = ["task.created", "task.transitioned", "task.edited", "task.logged", "task.attempt_failed", "task.completed", "session.ended", "delegation.requested", "protocol.message.rejected", "permission_resolved", "AgentSessionCompleted"];
  for (const type of types) {
    for (const payload of [{}, { reason: { no: "text" }, fields: null, report: [], termination: 7, answer: { text: "x" } }]) {
      const [entry] = entriesOf([record(type, 1, payload)]);
      assert.equal(typeof entry.title, "string");
      assert.notEqual(entry.title, "");
    }
  }
});

test("reasons and ends in plain words", () => {
  assert.deepEqual(["claimed", "stale_heartbeat_no_beat", "lease_expired_reclaim", "what somebody wrote"].map(inPlainWords), ["claimed", "no sign of life: no beat", "the lease ran out, taken back", "what somebody wrote"]);
  const end = (more) => endInWords({ terminated_by: "agent", ...more });
  assert.equal(end({ reason: "error", signal: { name: "SIGKILL", number: 9 } }), "died of SIGKILL (signal 9)");
  assert.equal(end({ reason: "completed" }), "ended by itself, well");
  assert.equal(end({ reason: "terminated", terminated_by: "daemon" }), "was ended by Baton");
  assert.equal(end({ reason: "error", exit_code: 3 }), "exited with code 3");
  assert.equal(end({ reason: "error", message: "no program" }), "no program");
  assert.equal(end({ reason: "error" }), "failed");
});

const lined = (lines) => lines.map(({ kind, before, after, text }) => [kind, before, after, text]);

test("a patch is lines with the numbers that they have before and after", () => {
  const patch = "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,3 +1,3 @@ fn\n one\n-two\n+2\n three\n@@ -10 +10,2 @@\n-ten\n\\ No newline at end of file\n+10\n+11\n";
  assert.deepEqual(lined(linesOf(patch)), [
    ["hunk", undefined, undefined, "@@ -1,3 +1,3 @@ fn"], ["same", 1, 1, "one"], ["removed", 2, undefined, "two"], ["added", undefined, 2, "2"], ["same", 3, 3, "three"],
    ["hunk", undefined, undefined, "@@ -10 +10,2 @@"], ["removed", 10, undefined, "ten"], ["note", undefined, undefined, "No newline at end of file"], ["added", undefined, 10, "10"], ["added", undefined, 11, "11"],
  ]);
});

test("what looks like a head of a patch within it is a line like any other", () => {
  assert.deepEqual(lined(linesOf("@@ -1 +1 @@\n--- a/x\n+++ b/x\n")).slice(1), [["removed", 1, undefined, "-- a/x"], ["added", undefined, 1, "++ b/x"]]);
  for (const none of ["", "no patch at all", "Binary files differ\n"]) assert.deepEqual(linesOf(none), []);
});

test("two texts differ in their middle, with a little around it", () => {
  assert.deepEqual(lined(lineChanges("a\nb\nc\nd\ne\nf", "a\nb\nc\nX\ne\nf")), [
    ["same", 2, 2, "b"], ["same", 3, 3, "c"], ["removed", 4, undefined, "d"], ["added", undefined, 4, "X"], ["same", 5, 5, "e"], ["same", 6, 6, "f"],
  ]);
  assert.deepEqual(lined(lineChanges("a\nb", "a\nnew\nb")), [["same", 1, 1, "a"], ["added", undefined, 2, "new"], ["same", 2, 3, "b"]]);
  assert.deepEqual(lined(lineChanges("a\na\na", "a\na")), [["same", 1, 1, "a"], ["same", 2, 2, "a"], ["removed", 3, undefined, "a"]]);
  assert.deepEqual(lineChanges("same", "same").filter(({ kind }) => kind !== "same"), []);
});

// What the records of a guarded run tell as a story, where it stands, and what a report comes to in a sentence.
import assert from "node:assert/strict";
import { test } from "node:test";
import { load } from "./bundle.mjs";

const { isRun, runOf, told, isSound, isUnderWay, sentence, VERDICTS } = await load("screens/trace/steps.ts", "screens/trace/words.ts");

let seq = 0;
const record = (type, agent, payload = {}, more = {}) => {
  seq += 1;
  return { seq, type, payload, actor: { agent, role: "executor" }, artifacts: [], run: "run_1", hash: "ab".repeat(32), ...more };
};
const TEAM = { planner: "ada", executor: "bob", critic: "operator", auditor: "dora" };
const begin = (policy = {}, team = TEAM) => record("session_initialized", "baton", { policy: { profile: "strict", ...policy }, team }, { actor: { agent: "baton", role: "system" } });
const proposal = (id, more = {}) => record("proposal_created", "ada", { proposal_id: id, objective: "what is to be", ...more });
const judged = (id, status) => record("proposal_reviewed", "operator", { proposal_id: id, status });
const intent = (id, more = {}, of = {}) => record("tool_intent_signed", "bob", { intent_id: id, tool_name: "bash", risk_class: "write", proposal_id: "p1", normalized_input_hash: "cd".repeat(32), ...more }, of);
const stands = (...records) => {
  const { state, pending, hasEnded } = runOf(records);
  return [state, pending.map(({ id }) => id), hasEnded];
};

test("a run is known by its beginning, and by nothing that somebody else wrote", () => {
  assert.ok(isRun([record("trace.opened", "baton"), begin()]));
  assert.ok(!isRun([record("trace.opened", "baton"), record("note", "me")]));
  assert.ok(!isRun([{ ...begin(), actor: { agent: "mallory", role: "executor" } }]));
  assert.ok(!isRun([]));
});

test("a run goes from planning to its verification, and what waits for a person is known on the way", () => {
  const all = [];
  const then = (...more) => { all.push(...more); return stands(...all); };
  assert.deepEqual(then(begin()), ["planning", [], false]);
  assert.deepEqual(then(proposal("p1")), ["reviewing", ["p1"], false]);
  assert.deepEqual(then(judged("p1", "rejected")), ["reviewing", [], false]);
  assert.deepEqual(then(proposal("p2", { revises: "p1" })), ["reviewing", ["p2"], false]);
  assert.deepEqual(then(judged("p2", "conditional")), ["executing", [], false]);
  assert.deepEqual(then(intent("i1")), ["executing", ["i1"], false]);
  assert.deepEqual(then(record("tool_intent_reviewed", "operator", { intent_id: "i1", status: "approved" })), ["executing", [], false]);
  assert.deepEqual(then(record("tool_execution_started", "bob", { intent_id: "i1" })), ["executing", [], false]);
  assert.deepEqual(then(record("tool_execution_completed", "bob", { intent_id: "i1", exit_status: 0 })), ["claiming", [], false]);
  assert.deepEqual(then(record("claim_issued", "bob", { claim_id: "c1" })), ["auditing", ["c1"], false]);
  assert.deepEqual(then(record("claim_challenged", "operator", { claim_id: "c1", reason: "thin" })), ["auditing", [], false]);
  assert.deepEqual(then(record("claim_issued", "bob", { claim_id: "c2", revises: "c1" })), ["auditing", ["c2"], false]);
  const note = record("note", "operator", { claim_id: "c2", status: "unchallenged", rationale: "I looked" });
  assert.deepEqual(then({ ...note, actor: { ...note.actor, role: "executor" } }), ["auditing", ["c2"], false]);
  const stand = { ...note, actor: { ...note.actor, role: "critic" } };
  assert.deepEqual(then(stand), ["auditing", [], false]);
  assert.deepEqual([told(stand).start, told(stand).text], ["operator lets c2 stand", "I looked"]);
  assert.deepEqual(then(record("final_statement_signed", "bob")), ["auditing", [], false]);
  assert.deepEqual(then(record("verification_run_completed", "dora", { status: "pass-with-warnings" })), ["completed", [], true]);
});

test("a proposal waits until so many have approved it as the policy asks for", () => {
  const two = begin({ approvals: 2 });
  assert.deepEqual(stands(two, proposal("p1"), judged("p1", "approved")), ["reviewing", ["p1"], false]);
  assert.deepEqual(stands(two, proposal("p1"), judged("p1", "approved"), judged("p1", "approved")), ["executing", [], false]);
});

test("nobody is asked who does not review, nor about an attempt that is over, nor when the run has ended", () => {
  assert.deepEqual(stands(begin({}, { ...TEAM, critic: "cleo" }), proposal("p1"))[1], []);
  const approved = [begin(), proposal("p1"), judged("p1", "approved")];
  assert.deepEqual(stands(...approved, intent("i1"), record("note", "bob", {}, { run: "run_2" }))[1], []);
  assert.deepEqual(stands(...approved, intent("i1"), intent("i2", { retry_of: "i1" }))[1], ["i2"]);
  assert.deepEqual(stands(begin(), proposal("p1"), record("trace_aborted", "operator")), ["aborted", [], true]);
  assert.deepEqual(stands(begin(), proposal("p1"), record("verification_run_completed", "dora", { status: "fail" })), ["failed", [], true]);
});

test("who plays which part, and under which rules", () => {
  const { team, profile } = runOf([begin({}, { ...TEAM, auditor: 7, jester: "x" })]);
  assert.deepEqual([team, profile], [{ planner: "ada", executor: "bob", critic: "operator" }, "strict"]);
});

test("each step is told in a sentence, with the words of whoever did it beside it", () => {
  const start = (one) => told(one).start;
  assert.equal(start(proposal("p2", { revises: "p1" })), "ada proposes p2 instead of p1");
  assert.deepEqual([told(judged("p1", "rejected")).start, told(judged("p1", "rejected")).kind], ["operator rejects p1", "bad"]);
  assert.equal(start(judged("p1", "conditional")), "operator approves p1 on conditions");
  assert.equal(start(judged("p1", "of_tomorrow")), "operator reviews p1");
  assert.equal(start(intent("i2", { retry_of: "i1" })), "bob means to run bash again, instead of i1 (i2, write)");
  const ran = told(record("tool_execution_completed", "bob", { intent_id: "i1", exit_status: 1, artifacts: ["sha256:0123456789abcdef"] }));
  assert.deepEqual([ran.start, ran.kind, ran.below], ["bob ran i1: exit 1", "warn", [["artifacts", "0123456789"]]]);
  assert.equal(start(record("claim_issued", "bob", { claim_id: "c2", revises: "c1", confidence: "high" })), "bob revises c1 as c2 (confidence high)");
  assert.deepEqual(told(proposal("p1", { assumptions: ["a", 7, "b"], required_tools: ["bash", "grep"] })).below, [["tools", "bash, grep"], ["assumes", "a"], ["assumes", "b"]]);
  assert.equal(told(proposal("p1")).text, "what is to be");
  const odd = told(record("of_tomorrow", "bob", { a: 1 }));
  assert.deepEqual([odd.start, odd.text], ["bob records of_tomorrow", '{"a":1}']);
});

test("payloads that are not as agreed are told all the same", () => {
  const types = ["session_initialized", "proposal_created", "proposal_reviewed", "tool_intent_signed", "tool_execution_completed", "claim_issued", "final_statement_signed", "verification_run_completed", "key_bound", "override_recorded"];
  for (const type of types) {
    for (const payload of [{}, { policy: [], team: "x", proposal_id: {}, assumptions: "a", exit_status: null, normalized_input_hash: 7, roles: {} }]) {
      assert.equal(typeof told(record(type, "bob", payload)).start, "string", type);
      runOf([record(type, "bob", payload)]);
    }
  }
});

const report = (verdict, findings = [], more = {}) => ({ verdict, findings, checks: [], subject: { trace: "trc_1", events: 7, ...more.subject }, ...more });
const finding = (code, severity = "high", more = {}) => ({ code, severity, action: "do something", ...more });

test("a verdict in a sentence: what holds, what does not, and from where on nothing is proven", () => {
  assert.equal(sentence(report("pass")), "7 events: unaltered, and nothing is missing at the end.");
  const warnings = [finding("NO_CHECKPOINT", "warning"), finding("KEY_UNPINNED", "warning"), finding("KEY_UNPINNED", "warning")];
  assert.equal(sentence(report("pass-with-warnings", warnings)), "7 events: unaltered, but nothing kept elsewhere vouches for its end and its key is known only from the ledger itself.");
  const bad = [finding("NO_CHECKPOINT", "warning"), finding("HASH_MISMATCH", "critical", { line: 4 })];
  assert.equal(sentence(report("fail", bad, { firstBroken: 4 })), "HASH_MISMATCH at event 4: its content is not what was hashed. Everything from event 4 on is unproven.");
  const whole = { subject: { trace: undefined, events: 1 } };
  assert.match(sentence(report("fail", bad, { ...whole, firstBroken: 4 })), /^HASH_MISMATCH at line 4: .* from line 4 on/);
  assert.equal(sentence(report("fail", [finding("OF_TOMORROW")])), "OF_TOMORROW: it does not hold.");
  assert.equal(sentence(report("unknown", [finding("SCHEMA_INVALID", "high", { found: "hello" })])), "SCHEMA_INVALID: hello");
  assert.equal(sentence(report("unknown")), "There is nothing that could be judged.");
  assert.deepEqual(Object.keys(VERDICTS).sort(), ["fail", "pass", "pass-with-warnings", "unknown"]);
});

test("a run that has not ended is no damage; anything else that is wrong with it is", () => {
  const open = { subject: { events: 7, trace: "trc_1", guarded: { state: "executing" } } };
  const unfinished = finding("FINALIZATION_INCOMPLETE");
  assert.ok(isUnderWay(report("fail", [unfinished], open)) && isSound(report("fail", [unfinished], open)));
  assert.match(sentence(report("fail", [unfinished], open)), /the run has not ended/);
  for (const [findings, more] of [[[unfinished, finding("HASH_MISMATCH")], open], [[unfinished], { subject: { ...open.subject, guarded: { state: "completed" } } }], [[unfinished], {}]]) {
    assert.ok(!isUnderWay(report("fail", findings, more)) && !isSound(report("fail", findings, more)));
  }
  assert.deepEqual(["pass", "pass-with-warnings", "unknown"].map((verdict) => isSound(report(verdict))), [true, true, false]);
});

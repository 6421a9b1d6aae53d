"""The rules of guarded runs for the second verifier, written from docs/reference/guarded.md.

`Guard.check(record)` is called for every record of one trace, in order, as long as the trace is not closed. It raises `Fault` with the code of the
first rule that is broken. Nothing is forgiven afterwards: the second verifier stops there.
"""
import re

STATES = ["planning", "reviewing", "executing", "claiming", "auditing", "completed", "failed", "aborted"]
RISKS = ["low", "medium", "high"]
MAX_TEXT, MAX_ITEMS, MAX_HASHES, MAX_THINGS = 10_000, 100, 256, 10_000
KEY_EVENTS = ("key_bound", "key_rotated", "key_revoked")


class Fault(Exception):
    """A check that failed: the code of the finding (None where the input cannot be judged), and a few words for people."""


def require(condition, code, detail):
    if not condition:
        raise Fault(code, detail)


def role(condition, detail): require(condition, "ROLE_VIOLATION", detail)
def order(condition, detail): require(condition, "ORDER_VIOLATION", detail)
def state(condition, detail): require(condition, "STATE_VIOLATION", detail)
def approved(condition, detail): require(condition, "UNAPPROVED_ACTION", detail)
def proven(condition, detail): require(condition, "CLAIM_UNPROVEN", detail)
def final(condition, detail): require(condition, "FINALIZATION_INCOMPLETE", detail)
def cited(condition, detail): require(condition, "ARTIFACT_MISSING", detail)


# ---- The fields of a step ----

def is_text(value): return isinstance(value, str) and len(value) <= MAX_TEXT
def is_said(value): return is_text(value) and value.strip() != ""
def is_id(value): return isinstance(value, str) and re.fullmatch("[A-Za-z0-9._-]{1,128}", value) is not None
def is_hash(value): return isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None
def is_name(value): return isinstance(value, str) and re.fullmatch("[a-z0-9][a-z0-9._-]{0,63}", value) is not None
def is_integer(value): return type(value) is int
def is_count(value): return type(value) is int and 0 <= value < 2**32
def is_share(value): return type(value) in (int, float) and 0 <= value <= 1
def word(*words): return lambda value: value in words
def many(fits, most): return lambda value: isinstance(value, list) and len(value) <= most and all(map(fits, value))


TEXTS, IDS, HASHES = many(is_said, MAX_ITEMS), many(is_id, MAX_ITEMS), many(is_hash, MAX_HASHES)
EXECUTION = {"intent_id": is_id, "artifacts?": HASHES, "exit_status?": is_integer, "failure?": is_said}
STEPS = {
    "session_initialized": {},
    "proposal_created": {"proposal_id": is_id, "objective": is_said, "assumptions?": TEXTS, "required_tools?": TEXTS,
                         "expected_evidence?": TEXTS, "revises?": is_id},
    "proposal_reviewed": {"proposal_id": is_id, "status": word("approved", "conditional", "rejected"), "conditions?": TEXTS,
                          "risk?": is_text, "rationale": is_said},
    "tool_intent_signed": {"intent_id": is_id, "proposal_id": is_id, "tool_name": is_said, "normalized_input_hash": is_hash,
                           "risk_class": word(*RISKS), "justification": is_said, "retry_of?": is_id},
    "tool_intent_reviewed": {"intent_id": is_id, "status": word("approved", "blocked"), "rationale": is_said},
    "tool_execution_started": EXECUTION,
    "tool_execution_completed": {**EXECUTION, "exit_status": is_integer},
    "tool_execution_failed": {**EXECUTION, "failure": is_said},
    "artifact_recorded": {},
    "claim_issued": {"claim_id": is_id, "claim_text": is_said, "confidence": is_share, "evidence?": HASHES, "executions?": IDS,
                     "revises?": is_id},
    "claim_challenged": {"claim_id": is_id, "reason": is_said, "evidence?": HASHES},
    "final_statement_signed": {"claim_ids?": IDS, "verdict_text": is_said, "disputed?": IDS},
    "verification_run_started": {},
    "verification_run_completed": {"status": word("pass", "pass-with-warnings", "fail"), "report": is_hash, "head": is_hash},
    "trace_aborted": {"reason": is_said},
    "override_recorded": {"target": is_id, "reason": is_said},
}
# The state from which on a step has its place.
FROM = {"proposal_reviewed": "reviewing", "tool_intent_signed": "executing", "tool_intent_reviewed": "executing",
        "tool_execution_started": "executing", "tool_execution_completed": "executing", "tool_execution_failed": "executing",
        "artifact_recorded": "executing", "claim_issued": "claiming", "claim_challenged": "auditing",
        "final_statement_signed": "auditing"}


def is_policy(policy):
    budgets = policy.get("budgets", {}) if isinstance(policy, dict) else None
    return (isinstance(policy, dict) and policy.get("profile") in ("strict", "default", "lenient")
            and policy.get("risk_threshold") in RISKS and policy.get("open_disputes") in ("fail", "warn")
            and all(is_count(policy.get(name)) for name in ("min_evidence", "approvals", "max_fallbacks"))
            and many(word("agent", "person", "rules"), MAX_HASHES)(policy.get("critics"))
            and many(lambda tool: isinstance(tool, str), 2**20)(policy.get("read_only", []))
            and isinstance(policy.get("tool_risks", {}), dict)
            and all(risk in RISKS for risk in policy.get("tool_risks", {}).values())
            and isinstance(budgets, dict)
            and all(value is None or type(value) is int and value >= 0 for value in budgets.values()))


def is_team(team):
    return isinstance(team, dict) and all(is_name(team.get(part)) for part in ("planner", "executor", "critic", "auditor"))


def fits(kind, payload):
    if kind == "session_initialized":
        return is_policy(payload.get("policy")) and is_team(payload.get("team"))
    for name, test in STEPS[kind].items():
        bare = name.rstrip("?")
        if bare in payload and not test(payload[bare]) or bare not in payload and bare == name:
            return False
    return True


# ---- One trace ----

class Guard:
    """What the events of one trace so far say of it as a guarded run; none as long as it has not begun one."""

    def __init__(self):
        self.policy, self.team, self.state = None, None, None
        self.proposals, self.intents, self.claims = {}, {}, {}
        self.players = {"executor": set(), "critic": set()}
        self.calls = self.failures = self.fallbacks = self.last = 0
        self.is_final = self.is_audit_open = False
        self.warnings = set()

    def is_open(self):
        return self.state is not None and self.state not in ("completed", "failed", "aborted")

    def check(self, record):
        kind, actor = record["type"], record["actor"]
        if self.policy is None:
            # In another role it begins nothing, which is found as that.
            if kind == "session_initialized" and actor["role"] == "system":
                self.begin(record)
            return
        who = {actor["agent"], actor.get("key")} - {None}
        self.check_role(kind, actor, who)
        self.check_end(kind, actor)
        is_step = kind in STEPS
        require(not is_step or fits(kind, record["payload"]), "SCHEMA_INVALID", "the fields of the step do not fit")
        if is_step:
            at_least = FROM.get(kind, "planning")
            state(STATES.index(self.state) >= STATES.index(at_least), "the state of the run has no place for it")
            state(kind != "session_initialized", "a run begins once")
            getattr(self, "on_" + kind)(record, record["payload"])
        if kind not in KEY_EVENTS:
            self.last = record["seq"]
        # By steps alone: a note makes nobody executor or critic.
        if is_step and actor["role"] in self.players:
            self.players[actor["role"]] |= who

    def begin(self, record):
        is_whole = fits("session_initialized", record["payload"])
        if is_whole:
            role(record["actor"]["agent"] == "baton", "Baton itself begins a run")
            state("sig" in record and record["seq"] <= 2, "a run begins at its beginning, signed by the ledger")
        require(is_whole, "SCHEMA_INVALID", "the beginning of a run has no policy or no team")
        self.policy, self.team = record["payload"]["policy"], record["payload"]["team"]
        self.state, self.last = "planning", record["seq"]

    def check_role(self, kind, actor, who):
        part, agent, is_step = actor["role"], actor["agent"], kind in STEPS
        if part == "critic":
            if not is_step:
                return
            sort = {"operator": "person", "baton-rules": "rules"}.get(agent, "agent")
            role(sort != "agent" or agent == self.team["critic"], "not the critic of this run")
            role(sort in self.policy["critics"], "the policy does not let this kind of critic")
            role(not who & self.players["executor"] and agent != self.team["executor"], "nobody judges their own work")
        elif part in ("planner", "executor", "auditor"):
            role(not is_step or agent == self.team[part], "not who plays this part in the run")
            role(part != "executor" or not who & self.players["critic"], "who judges does not execute")
        elif kind == "override_recorded":
            role(not who & self.players["executor"] and agent != self.team["executor"], "nobody sets aside what was said of their own work")

    def check_end(self, kind, actor):
        is_over = self.state in ("completed", "failed", "aborted")
        if kind in KEY_EVENTS:
            return
        if kind == "trace.closed":
            return state(is_over, "closed before its end")
        order(not is_over, "nothing follows the end of a run")
        order(not self.is_final or actor["role"] == "auditor" or kind == "trace_aborted", "only the auditor follows the final statement")

    def reach(self, name):
        self.state = max(self.state, name, key=STATES.index)

    def saw(self, record, subject):
        order(record.get("seen", {"seq": 0})["seq"] >= subject, "what is reacted to was not seen")

    def saw_head(self, record):
        order(record.get("seen", {"seq": 0})["seq"] >= self.last, "the head was not seen")

    def is_new(self, name, known):
        approved(len(known) < MAX_THINGS, "too many of a kind")
        is_taken = any(name in things for things in (self.proposals, self.intents, self.claims))
        order(not is_taken, "the name is taken")

    def cites(self, record, hashes, test):
        test(set(hashes) <= {artifact["sha256"] for artifact in record["artifacts"]}, "it is not cited")

    def on_proposal_created(self, record, step):
        self.is_new(step["proposal_id"], self.proposals)
        revised = step.get("revises")
        order(revised is None or revised in self.proposals, "what is revised is not there")
        if STATES.index(self.state) >= STATES.index("executing") and revised is None:
            order(self.fallbacks < min(self.failures, self.policy["max_fallbacks"]), "no more fallbacks")
            self.fallbacks += 1
        if revised is not None:
            self.proposals[revised]["revised"] = True
        self.proposals[step["proposal_id"]] = {"revised": False, "seq": record["seq"], "tools": step.get("required_tools", []), "reviews": {},
                                               "approved": None, "rejected": False, "only": None}
        self.reach("reviewing")

    def on_proposal_reviewed(self, record, step):
        proposal, agent = self.proposals.get(step["proposal_id"]), record["actor"]["agent"]
        order(proposal and agent not in proposal["reviews"], "no such proposal, or reviewed already")
        self.saw(record, proposal["seq"])
        proposal["reviews"][agent] = step["status"]
        proposal["rejected"] |= step["status"] == "rejected"
        if step["status"] == "conditional":
            tools = {condition.split(":")[0].strip() for condition in step.get("conditions", [])}
            proposal["only"] = tools if proposal["only"] is None else proposal["only"] & tools
        approvals = sum(status != "rejected" for status in proposal["reviews"].values())
        if approvals >= self.policy["approvals"] and not proposal["rejected"]:
            proposal["approved"] = proposal["approved"] or record["seq"]
            self.reach("executing")

    def on_tool_intent_signed(self, record, step):
        self.is_new(step["intent_id"], self.intents)
        proposal, before = self.proposals.get(step["proposal_id"]), self.intents.get(step.get("retry_of"))
        order(proposal, "no such proposal")
        order("retry_of" not in step or before and (before["ended"] or before["answer"] == "blocked"), "what is retried is not over")
        approved(proposal["approved"] and not proposal["rejected"] and not proposal["revised"], "the proposal is not approved")
        approved(proposal["only"] is None or step["tool_name"] in proposal["only"], "the conditions do not name the tool")
        self.saw(record, proposal["approved"])
        tool, said = step["tool_name"], RISKS.index(step["risk_class"])
        by_name = "low" if tool in self.policy.get("read_only", []) else "medium"
        risk = max(said, RISKS.index(self.policy.get("tool_risks", {}).get(tool, by_name)))
        same = step["normalized_input_hash"]
        was_blocked = any(other["answer"] == "blocked" and (other["same"] == same or name == step.get("retry_of"))
                          for name, other in self.intents.items())
        changes = tool not in proposal["tools"] and tool not in self.policy.get("read_only", [])
        waits = risk >= RISKS.index(self.policy["risk_threshold"]) or changes or was_blocked
        self.intents[step["intent_id"]] = {"seq": record["seq"], "proposal": proposal, "tool": tool, "same": same, "waits": waits, "answer": None,
                                           "answered": None, "started": None, "ended": None}

    def on_tool_intent_reviewed(self, record, step):
        intent = self.intents.get(step["intent_id"])
        order(intent and not intent["started"] and intent["answer"] != "blocked", "no intent that waits")
        self.saw(record, intent["seq"])
        intent["answer"], intent["answered"] = step["status"], record["seq"]

    def on_tool_execution_started(self, record, step):
        intent = self.intents.get(step["intent_id"])
        order(intent, "no intent was signed")
        order(not intent["started"], "the intent was run already")
        approved(intent["answer"] != "blocked", "the intent was blocked")
        approved(intent["answer"] or not intent["waits"], "nobody has approved the intent")
        approved(not intent["proposal"]["rejected"] and not intent["proposal"]["revised"], "the proposal was rejected or revised")
        only = intent["proposal"]["only"]
        approved(only is None or intent["tool"] in only, "the conditions do not name the tool")
        most = self.policy.get("budgets", {}).get("tool_calls")
        approved(most is None or self.calls < most, "more tools than the budget has")
        self.cites(record, step.get("artifacts", []), cited)
        approved(intent["same"] in step.get("artifacts", []), "another input than was intended")
        self.saw(record, intent["answered"] or intent["seq"])
        intent["started"], self.calls = record["seq"], self.calls + 1

    def end(self, record, step, has_failed):
        intent = self.intents.get(step["intent_id"])
        order(intent and intent["started"], "it was not started")
        order(not intent["ended"], "it has ended already")
        cited(step.get("artifacts"), "nothing is left of it")
        self.cites(record, step["artifacts"], cited)
        self.saw(record, intent["started"])
        intent["ended"], self.failures = record["seq"], self.failures + has_failed
        if not has_failed or self.failures > self.policy["max_fallbacks"]:
            self.reach("claiming")

    def on_tool_execution_completed(self, record, step): self.end(record, step, False)
    def on_tool_execution_failed(self, record, step): self.end(record, step, True)
    def on_artifact_recorded(self, record, _): cited(record["artifacts"], "nothing is recorded")
    def is_evidenced(self, evidence): return len(set(evidence)) >= self.policy["min_evidence"]

    def on_claim_issued(self, record, step):
        self.is_new(step["claim_id"], self.claims)
        if "revises" in step:
            before = self.claims.get(step["revises"])
            order(before and not before["revised"], "what is revised does not stand")
            self.saw(record, before["seq"])
        for name in step.get("executions", []):
            order(name in self.intents and self.intents[name]["ended"], "an execution has not ended")
            self.saw(record, self.intents[name]["ended"])
        evidence = step.get("evidence", [])
        proven(self.is_evidenced(evidence), "too little evidence")
        self.cites(record, evidence, proven)
        if "revises" in step:
            before.update(revised=True, challenges=0)
        self.claims[step["claim_id"]] = {"seq": record["seq"], "evidence": evidence, "challenges": 0, "revised": False}
        self.reach("auditing")

    def on_claim_challenged(self, record, step):
        claim = self.claims.get(step["claim_id"])
        order(claim and not claim["revised"], "no claim that stands")
        self.cites(record, step.get("evidence", []), cited)
        self.saw(record, claim["seq"])
        claim["challenges"] += 1

    def on_final_statement_signed(self, record, step):
        names = step.get("claim_ids", [])
        final(names, "no claims")
        for name in names:
            claim = self.claims.get(name)
            final(claim and not claim["revised"] and self.is_evidenced(claim["evidence"]), "a claim does not stand")
        final(all(intent["ended"] for intent in self.intents.values() if intent["started"]), "a tool is running")
        # Of every claim that stands, whether the statement names it or not.
        disputed = {name for name, claim in self.claims.items() if claim["challenges"] and not claim["revised"]}
        is_named = self.policy["open_disputes"] == "warn" and disputed <= set(step.get("disputed", []))
        require(not disputed or is_named, "CLAIM_DISPUTED", "a challenge is not answered")
        self.saw_head(record)
        self.warnings |= {"CLAIM_DISPUTED"} if disputed else set()
        self.is_final = True

    def on_verification_run_started(self, record, _): self.is_audit_open = True

    def on_verification_run_completed(self, record, step):
        order(self.is_audit_open, "no verification was started")
        final(step["status"] == "fail" or self.is_final, "it passes without a final statement")
        self.cites(record, [step["report"]], cited)
        self.saw_head(record)
        final(record["seen"]["hash"] == step["head"], "it verified something else")
        self.state = "failed" if step["status"] == "fail" else "completed"

    def on_trace_aborted(self, record, _):
        self.saw_head(record)
        self.state = "aborted"

    def on_override_recorded(self, record, step):
        self.saw_head(record)
        name = step["target"]
        order(name in self.proposals or name in self.intents or name in self.claims, "nothing of that name")
        self.warnings.add("OVERRIDE_RECORDED")
        if name in self.proposals:
            proposal = self.proposals[name]
            proposal.update(rejected=False, only=None, approved=proposal["approved"] or record["seq"])
            self.reach("executing")
        elif name in self.intents:
            self.intents[name].update(answer="approved", answered=record["seq"])
        else:
            self.claims[name]["challenges"] = 0

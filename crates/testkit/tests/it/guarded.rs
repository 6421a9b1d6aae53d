//! Every rule of guarded work on both sides: what breaks it is refused before it is sealed, and the same, forged with correct hashes and valid
//! signatures, is found where it stands; by the second verifier too.

use std::cell::RefCell;

use baton_core::guard::{Disputes, Policy, Profile, Risk, Rule};
use baton_core::{ArtifactRef, Event, KeyGrant, Payload, Role, Seen, TraceId};
use baton_ledger::body::{Body, Link};
use baton_ledger::hash::sha256;
use baton_ledger::record::Line;
use baton_ledger::seal::{Checked, Refusal};
use baton_ledger::verify::{Code, Options, Report, Severity, Verdict, code_of};
use baton_store::registry::signed_own;
use baton_store::{AppendError, History as _, Journal as _, MemoryJournal};
use baton_testkit::builders::{agent, decision, event, identity, new_trace, secret};
use baton_testkit::segments::{MemoryArtifacts, verify_bytes};
use serde_json::{Value, json};

const INPUT: &[u8] = b"{\"path\":\"a.txt\"}";
const OUTPUT: &[u8] = b"done";
const ELSE: &[u8] = b"something else";
const REPORT: &[u8] = b"a report";

/// Each with a key of its own, bound for every part: what a part may do is the rules' matter here, not the keys'.
const CAST: [(&str, u8); 7] = [
    ("ada", 11),
    ("bob", 12),
    ("cleo", 13),
    ("dora", 14),
    ("operator", 15),
    ("eve", 16),
    ("baton-rules", 17),
];

type Who = (&'static str, Role);

const PLANNER: Who = ("ada", Role::Planner);
const EXECUTOR: Who = ("bob", Role::Executor);
const CRITIC: Who = ("cleo", Role::Critic);
const AUDITOR: Who = ("dora", Role::Auditor);
const PERSON: Who = ("operator", Role::Operator);
const BATON: Who = ("baton", Role::System);

fn key_of(agent: &str) -> u8 {
    CAST.iter().find(|(name, _)| *name == agent).map_or(1, |(_, key)| *key)
}

/// What is said, and what is cited with it.
#[derive(Clone)]
struct Words {
    event_type: &'static str,
    fields: Value,
    cites: Vec<&'static [u8]>,
    /// How many events of the run its actor does not know of; nothing is said of it where there is none.
    behind: Option<u64>,
}

fn words(event_type: &'static str, fields: Value) -> Words {
    Words { event_type, fields, cites: Vec::new(), behind: Some(0) }
}

impl Words {
    fn citing(mut self, cites: &[&'static [u8]]) -> Words {
        self.cites = cites.to_vec();
        self
    }

    fn behind(mut self, events: u64) -> Words {
        self.behind = Some(events);
        self
    }

    fn with(mut self, field: &str, value: Value) -> Words {
        self.fields[field] = value;
        self
    }
}

fn begun(policy: &Policy) -> Words {
    let team = json!({"planner": "ada", "executor": "bob", "critic": "cleo", "auditor": "dora"});
    words("session_initialized", json!({"policy": serde_json::to_value(policy).unwrap(), "team": team}))
}

fn proposal(id: &str) -> Words {
    words(
        "proposal_created",
        json!({"proposal_id": id, "objective": "mend it", "required_tools": ["make_file", "run_command"]}),
    )
}

fn review(of: &str, status: &str) -> Words {
    words("proposal_reviewed", json!({"proposal_id": of, "status": status, "rationale": "as I see it"}))
}

fn intent(id: &str, risk: &str) -> Words {
    words(
        "tool_intent_signed",
        json!({
            "intent_id": id, "proposal_id": "p1", "tool_name": "make_file", "risk_class": risk,
            "normalized_input_hash": sha256(INPUT).to_string(), "justification": "it is needed",
        }),
    )
}

fn answer(of: &str, status: &str) -> Words {
    words("tool_intent_reviewed", json!({"intent_id": of, "status": status, "rationale": "as I see it"}))
}

fn hashes(contents: &[&[u8]]) -> Value {
    contents.iter().map(|content| sha256(content).to_string()).collect()
}

fn started(of: &str) -> Words {
    words("tool_execution_started", json!({"intent_id": of, "artifacts": hashes(&[INPUT])})).citing(&[INPUT])
}

fn completed(of: &str) -> Words {
    let fields = json!({"intent_id": of, "artifacts": hashes(&[OUTPUT]), "exit_status": 0});
    words("tool_execution_completed", fields).citing(&[OUTPUT])
}

fn failed(of: &str) -> Words {
    let fields = json!({"intent_id": of, "artifacts": hashes(&[OUTPUT]), "failure": "it broke"});
    words("tool_execution_failed", fields).citing(&[OUTPUT])
}

fn claim(id: &str) -> Words {
    words(
        "claim_issued",
        json!({
            "claim_id": id, "claim_text": "it works", "confidence": 0.9, "evidence": hashes(&[OUTPUT]),
            "executions": ["i1"],
        }),
    )
    .citing(&[OUTPUT])
}

fn challenge(of: &str) -> Words {
    words("claim_challenged", json!({"claim_id": of, "reason": "it does not"}))
}

fn statement(claims: &[&str]) -> Words {
    words("final_statement_signed", json!({"claim_ids": claims, "verdict_text": "done"}))
}

fn audit_started() -> Words {
    words("verification_run_started", json!({}))
}

fn aborted() -> Words {
    words("trace_aborted", json!({"reason": "enough"}))
}

thread_local! {
    /// What was forged in this thread, for the second verifier.
    static FORGED: RefCell<Vec<(String, Vec<u8>)>> = const { RefCell::new(Vec::new()) };
}

/// What the histories cite.
pub(crate) fn artifacts() -> MemoryArtifacts {
    MemoryArtifacts([INPUT, OUTPUT, ELSE, REPORT].map(|content| (sha256(content), content.to_vec())).into())
}

/// A ledger with a run in it, which is told honestly as far as it goes.
struct Stage {
    journal: MemoryJournal,
    run: TraceId,
}

impl Stage {
    fn new(policy: &Policy) -> Stage {
        let mut policy = policy.clone();
        policy.tool_risks.insert("make_file".to_owned(), Risk::Low);
        Stage::beginning(&begun(&policy))
    }

    fn beginning(begun: &Words) -> Stage {
        let key = secret(1);
        let mut stage =
            Stage { journal: MemoryJournal::new(identity(&key), &key).unwrap(), run: new_trace() };
        stage.say(BATON, begun);
        let roles = [Role::Planner, Role::Executor, Role::Critic, Role::Auditor, Role::Operator].to_vec();
        for (name, key) in CAST {
            let (roles, public) = (roles.clone(), secret(key).public().to_text());
            let grant = KeyGrant { key: secret(key).id(), public, agent: agent(name), roles };
            let bound = signed_own(stage.run, Payload::KeyBound(grant), &secret(1)).unwrap();
            stage.journal.append(decision(vec![bound])).unwrap();
        }
        stage
    }

    fn default() -> Stage {
        Stage::new(&Policy::of(Profile::Default))
    }

    fn event(&self, who: Who, words: &Words) -> Event {
        let mut event = event(self.run, words.event_type, words.fields.clone());
        (event.actor.agent, event.actor.role) = (agent(who.0), who.1);
        event.artifacts = words.cites.iter().map(|content| cited(content)).collect();
        let head = self.journal.trace(self.run);
        event.seen = words.behind.zip(head).map(|(behind, head)| {
            let stored = self.journal.read_trace(self.run, head.seq - behind, 1).unwrap();
            let line = Line::parse(stored[0].text.as_bytes()).unwrap();
            Seen { seq: line.seq, hash: line.hash }
        });
        event
    }

    fn offer(&mut self, who: Who, words: &Words) -> Result<(), Refusal> {
        let key = secret(key_of(who.0));
        let body = Body::signed(self.event(who, words), &key).unwrap();
        match self.journal.append(decision(vec![Checked::just_signed(body, &key)])) {
            Ok(_) => Ok(()),
            Err(AppendError::Refused(refusal)) => Err(refusal),
            Err(error) => panic!("{error}"),
        }
    }

    #[track_caller]
    fn say(&mut self, who: Who, words: &Words) -> &mut Stage {
        self.offer(who, words).unwrap();
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let lines = self.journal.read(1, usize::MAX).unwrap();
        lines.iter().flat_map(|line| [line.text.as_bytes(), b"\n"].concat()).collect()
    }

    fn audit(&self, status: &str) -> Words {
        let head = self.journal.trace(self.run).unwrap().head.to_string();
        let report = sha256(REPORT).to_string();
        words("verification_run_completed", json!({"status": status, "report": report, "head": head}))
            .citing(&[REPORT])
    }

    fn planned(mut self) -> Stage {
        self.say(PLANNER, &proposal("p1")).say(CRITIC, &review("p1", "approved"));
        self
    }

    fn executed(self) -> Stage {
        let mut stage = self.planned();
        stage.say(EXECUTOR, &intent("i1", "low")).say(EXECUTOR, &started("i1"));
        stage.say(EXECUTOR, &completed("i1"));
        stage
    }

    fn claimed(self) -> Stage {
        let mut stage = self.executed();
        stage.say(EXECUTOR, &claim("c1"));
        stage
    }

    fn finished(self) -> Stage {
        let mut stage = self.claimed();
        stage.say(EXECUTOR, &statement(&["c1"]));
        stage
    }

    /// What stands in the ledger so far, verified.
    fn verified(&self) -> Report {
        judged("honest", self.bytes())
    }

    /// Refused before it is sealed, with the rule; and forged behind what stands there, found with the rule's code.
    #[track_caller]
    fn breaks(&mut self, rule: Rule, who: Who, words: &Words) {
        let before = self.bytes();
        match self.offer(who, words).expect_err("it breaks a rule") {
            Refusal::Guard(breach) => assert_eq!(breach.rule, rule, "{breach}"),
            Refusal::HeadMoved { .. } => assert_eq!(rule, Rule::SeenHead),
            Refusal::Role { .. } => assert_eq!(rule, Rule::RoleTable),
            refusal => panic!("{refusal}"),
        }
        assert_eq!(self.bytes(), before, "nothing of it is written");
        assert!(!self.verified().findings.iter().any(|finding| finding.severity > Severity::Warning));
        let report = self.forged(rule.as_str(), who, words);
        let line = self.journal.size() + 1;
        assert_eq!(first(&report), (Verdict::Fail, Some(code_of(rule)), line), "{}", report.to_json());
        let found = report.findings[0].found.clone().unwrap_or_default();
        assert!(rule == Rule::RoleTable || found.contains(rule.as_str()), "{found}");
    }

    /// The report of a ledger in which it stands all the same.
    fn forged(&self, name: &str, who: Who, words: &Words) -> Report {
        let body = Body::signed(self.event(who, words), &secret(key_of(who.0))).unwrap();
        let head = self.journal.trace(self.run).unwrap();
        let (pos, seq, prev) = (self.journal.size() + 1, head.seq + 1, head.head);
        let mut bytes = self.bytes();
        body.seal(&Link { pos, seq, prev, batch: None, commit: None }, &mut bytes);
        judged(name, bytes)
    }
}

fn cited(content: &[u8]) -> ArtifactRef {
    let (bytes, media_type) = (content.len() as u64, "text/plain".to_owned());
    ArtifactRef { sha256: sha256(content), bytes, media_type, name: "x".to_owned() }
}

fn judged(name: &str, bytes: Vec<u8>) -> Report {
    let options = Options { trust: Some(vec![*secret(1).public()]), ..Options::default() };
    let report = verify_bytes(&bytes, Some(&artifacts()), &options);
    FORGED.with_borrow_mut(|forged| forged.push((name.to_owned(), bytes)));
    report
}

/// Verdict, first finding's code, and its line.
fn first(report: &Report) -> (Verdict, Option<Code>, u64) {
    let first = report.findings.first();
    (report.verdict, first.map(|finding| finding.code), first.map_or(0, |finding| finding.line))
}

fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

impl Words {
    fn behind_nothing(mut self) -> Words {
        self.behind = None;
        self
    }
}

#[test]
fn a_run_that_keeps_every_rule_passes_and_ends_as_completed() {
    let mut stage = Stage::default().finished();
    stage.say(AUDITOR, &audit_started());
    let audit = stage.audit("pass");
    stage.say(AUDITOR, &audit);
    stage.say(BATON, &words("trace.closed", json!({"reason": "done"})));
    let report = stage.verified();
    assert_eq!(codes(&report), [Code::NoCheckpoint], "{}", report.to_json());
    let count = |name: &str| report.checks.iter().find(|check| check.check.as_str() == name).unwrap().count;
    assert_eq!(
        ["STATE", "APPROVAL", "EVIDENCE", "FINALIZATION"].map(count),
        [18, 1, 2, 2],
        "{}",
        report.to_json()
    );
}

#[test]
fn roles_and_parts() {
    let mut stage = Stage::default();
    stage.breaks(Rule::RoleTable, ("bob", Role::Executor), &proposal("p1"));
    stage.breaks(Rule::TeamMember, ("bob", Role::Planner), &proposal("p1"));
    stage.say(PLANNER, &proposal("p1"));
    stage.breaks(Rule::TeamMember, ("eve", Role::Critic), &review("p1", "approved"));
    let team = json!({"planner": "ada", "executor": "bob", "critic": "bob", "auditor": "dora"});
    let mut stage = Stage::beginning(&begun(&Policy::of(Profile::Default)).with("team", team));
    stage.say(PLANNER, &proposal("p1"));
    stage.breaks(Rule::OwnWork, ("bob", Role::Critic), &review("p1", "approved"));
    let people = Policy { critics: vec![baton_core::guard::Critic::Person], ..Policy::of(Profile::Default) };
    let mut stage = Stage::new(&people);
    stage.say(PLANNER, &proposal("p1"));
    stage.breaks(Rule::CriticKind, CRITIC, &review("p1", "approved"));
    stage.say(("operator", Role::Critic), &review("p1", "approved"));
    // Whoever executes sets no judgement of it aside, though its key be an operator's too.
    let mut stage = Stage::default().planned();
    stage.say(EXECUTOR, &intent("i1", "high")).say(CRITIC, &answer("i1", "blocked"));
    let over = words("override_recorded", json!({"target": "i1", "reason": "I want to"}));
    stage.breaks(Rule::OwnWork, ("bob", Role::Operator), &over);
    stage.say(PERSON, &over);
}

#[test]
fn beginnings_and_places() {
    let policy = Policy::of(Profile::Default);
    Stage::default().breaks(Rule::Beginning, BATON, &begun(&policy));
    let mut stage = Stage::default();
    stage.breaks(Rule::Place, CRITIC, &review("p1", "approved"));
    stage.breaks(Rule::Place, EXECUTOR, &intent("i1", "low"));
    stage.breaks(Rule::Place, EXECUTOR, &claim("c1"));
    stage.breaks(Rule::Closing, BATON, &words("trace.closed", json!({"reason": "x"})));
    Stage::default().executed().breaks(Rule::Place, EXECUTOR, &statement(&["c1"]));
    // What begins a run stands at its beginning, and is signed by the ledger.
    let mut stage = Stage::default();
    stage.run = new_trace();
    stage
        .say(BATON, &words("trace.opened", json!({})).behind_nothing())
        .say(BATON, &words("note", json!({})));
    stage.breaks(Rule::Beginning, BATON, &begun(&policy));
}

#[test]
fn names_and_subjects() {
    let mut stage = Stage::default().claimed();
    stage.breaks(Rule::NewName, PLANNER, &proposal("p1").with("revises", json!("p1")));
    stage.breaks(Rule::NewName, EXECUTOR, &intent("i1", "low"));
    stage.breaks(Rule::NewName, EXECUTOR, &claim("c1"));
    stage.breaks(Rule::NewName, EXECUTOR, &claim("i1"));
    stage.breaks(Rule::Subject, PLANNER, &proposal("p2").with("revises", json!("p9")));
    stage.breaks(Rule::Subject, CRITIC, &review("p9", "approved"));
    stage.breaks(Rule::Subject, CRITIC, &review("p1", "rejected"));
    stage.breaks(Rule::Subject, CRITIC, &answer("i9", "approved"));
    stage.breaks(Rule::Subject, CRITIC, &challenge("c9"));
    stage.breaks(Rule::Subject, PERSON, &words("override_recorded", json!({"target": "x", "reason": "y"})));
}

#[test]
fn what_was_seen() {
    let mut stage = Stage::default();
    stage.say(PLANNER, &proposal("p1"));
    stage.breaks(Rule::SeenSubject, CRITIC, &review("p1", "approved").behind(1));
    stage.breaks(Rule::SeenSubject, CRITIC, &review("p1", "approved").behind_nothing());
    let mut stage = Stage::default().claimed();
    stage.breaks(Rule::SeenSubject, CRITIC, &challenge("c1").behind(1));
    stage.breaks(Rule::SeenHead, EXECUTOR, &statement(&["c1"]).behind(1));
    stage.breaks(Rule::SeenHead, PERSON, &aborted().behind(1));
    stage.say(EXECUTOR, &statement(&["c1"])).say(AUDITOR, &audit_started());
    let audit = stage.audit("pass");
    stage.breaks(Rule::SeenHead, AUDITOR, &audit.clone().behind(1));
    stage.say(AUDITOR, &audit);
}

#[test]
fn intents_and_executions() {
    let mut stage = Stage::default().planned();
    stage.breaks(Rule::IntentFirst, EXECUTOR, &started("i1"));
    stage.say(EXECUTOR, &intent("i1", "low"));
    stage.breaks(Rule::IntentFirst, EXECUTOR, &completed("i1"));
    let other_input = started("i1").with("artifacts", hashes(&[ELSE])).citing(&[ELSE]);
    stage.breaks(Rule::SameInput, EXECUTOR, &other_input);
    stage.breaks(Rule::ExecutionEvidence, EXECUTOR, &started("i1").citing(&[]));
    stage.say(EXECUTOR, &started("i1"));
    stage.breaks(Rule::RunOnce, EXECUTOR, &started("i1"));
    stage.breaks(Rule::ExecutionEvidence, EXECUTOR, &completed("i1").with("artifacts", json!([])));
    stage.say(EXECUTOR, &completed("i1"));
    stage.breaks(Rule::RunOnce, EXECUTOR, &failed("i1"));
    stage.say(EXECUTOR, &intent("i2", "low")).say(EXECUTOR, &started("i2"));
    stage.breaks(Rule::ExecutionFirst, EXECUTOR, &claim("c1").with("executions", json!(["i2"])));
    stage.breaks(Rule::ClaimEvidence, EXECUTOR, &claim("c1").with("evidence", json!([])));
}

#[test]
fn approvals() {
    let mut stage = Stage::default();
    stage.say(PLANNER, &proposal("p1")).say(PLANNER, &proposal("p2")).say(PLANNER, &proposal("p3"));
    stage.say(CRITIC, &review("p1", "approved")).say(CRITIC, &review("p2", "rejected"));
    stage.breaks(Rule::ProposalApproved, EXECUTOR, &intent("i1", "low").with("proposal_id", json!("p2")));
    stage.breaks(Rule::ProposalApproved, EXECUTOR, &intent("i1", "low").with("proposal_id", json!("p3")));
    let conditional = review("p3", "conditional").with("conditions", json!(["run_command: only the tests"]));
    stage.say(CRITIC, &conditional);
    stage.breaks(Rule::Conditions, EXECUTOR, &intent("i1", "low").with("proposal_id", json!("p3")));
    stage.say(EXECUTOR, &intent("i1", "medium"));
    stage.breaks(Rule::IntentApproved, EXECUTOR, &started("i1"));
    stage.say(CRITIC, &answer("i1", "blocked"));
    stage.breaks(Rule::IntentBlocked, EXECUTOR, &started("i1"));
    let mut policy = Policy::of(Profile::Default);
    policy.budgets.tool_calls = Some(1);
    let mut stage = Stage::new(&policy).executed();
    stage.say(EXECUTOR, &intent("i2", "low"));
    stage.breaks(Rule::Budget, EXECUTOR, &started("i2"));
    Stage::default().planned().breaks(Rule::Fallbacks, PLANNER, &proposal("p2"));
    let mut stage = Stage::default().planned();
    stage.say(EXECUTOR, &intent("i1", "low")).say(PLANNER, &proposal("p2").with("revises", json!("p1")));
    stage.breaks(Rule::ProposalApproved, EXECUTOR, &intent("i2", "low"));
    stage.breaks(Rule::ProposalApproved, EXECUTOR, &started("i1"));
}

#[test]
fn the_end_of_a_run() {
    let mut stage = Stage::default().claimed();
    stage.breaks(Rule::FinalClaims, EXECUTOR, &statement(&["c9"]));
    stage.say(EXECUTOR, &intent("i2", "low")).say(EXECUTOR, &started("i2"));
    stage.breaks(Rule::FinalRest, EXECUTOR, &statement(&["c1"]));
    stage.say(EXECUTOR, &failed("i2")).say(CRITIC, &challenge("c1"));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c1"]));
    let audit = stage.audit("fail");
    stage.breaks(Rule::AuditStarted, AUDITOR, &audit);
    stage.say(AUDITOR, &audit_started());
    let audit = stage.audit("pass");
    stage.breaks(Rule::AuditFinal, AUDITOR, &audit);
    stage.say(EXECUTOR, &statement(&["c1"]).with("disputed", json!(["c1"])));
    stage.breaks(Rule::AfterFinal, EXECUTOR, &claim("c2"));
    stage.breaks(Rule::AfterFinal, EXECUTOR, &words("note", json!({})));
    let audit = stage.audit("pass-with-warnings");
    stage.breaks(Rule::AuditHead, AUDITOR, &audit.clone().with("head", sha256(b"").to_string().into()));
    stage.say(AUDITOR, &audit);
    stage.breaks(Rule::AfterAudit, AUDITOR, &audit_started());
    // The dispute is allowed, and said.
    assert!(codes(&stage.verified()).contains(&Code::ClaimDisputed));
}

#[test]
fn what_a_judgement_names_is_cited() {
    let mut stage = Stage::default().claimed();
    let grounds = challenge("c1").with("evidence", hashes(&[ELSE]));
    stage.breaks(Rule::Cited, CRITIC, &grounds);
    let mut cited = Stage::default().claimed();
    cited.say(CRITIC, &grounds.citing(&[ELSE]));
    stage.say(EXECUTOR, &statement(&["c1"])).say(AUDITOR, &audit_started());
    let audit = stage.audit("pass");
    stage.breaks(Rule::Cited, AUDITOR, &audit.clone().citing(&[]));
    stage.say(AUDITOR, &audit);
}

#[test]
fn a_challenge_counts_whether_its_claim_is_named_or_not() {
    let mut stage = Stage::default().claimed();
    stage.say(CRITIC, &challenge("c1")).say(EXECUTOR, &claim("c2"));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"]));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"]).with("disputed", json!(["c2"])));
    stage.say(EXECUTOR, &statement(&["c2"]).with("disputed", json!(["c1"])));
    let report = stage.verified();
    let disputed = report.findings.iter().find(|finding| finding.code == Code::ClaimDisputed).unwrap();
    assert_eq!((disputed.severity, disputed.found.as_deref()), (Severity::Warning, Some("c1")));
    // Where disputes fail, naming them is not enough, and neither is another claim.
    let strict = Policy { open_disputes: Disputes::Fail, ..Policy::of(Profile::Default) };
    let mut stage = Stage::new(&strict).claimed();
    stage.say(CRITIC, &challenge("c1")).say(EXECUTOR, &claim("c2"));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c1"]).with("disputed", json!(["c1"])));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"]));
    stage.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"]).with("disputed", json!(["c1"])));
    stage.say(EXECUTOR, &claim("c3").with("revises", json!("c1"))).say(EXECUTOR, &statement(&["c2", "c3"]));
    assert!(!codes(&stage.verified()).contains(&Code::ClaimDisputed));
}

#[test]
fn a_step_whose_fields_do_not_fit_is_refused_and_found() {
    let mut stage = Stage::default();
    let wrong = proposal("p1").with("objective", json!(""));
    let refusal = stage.offer(PLANNER, &wrong).unwrap_err();
    assert!(matches!(&refusal, Refusal::Form(why) if why.contains("payload.objective")), "{refusal}");
    let report = stage.forged("form", PLANNER, &wrong);
    assert_eq!(report.findings[0].code, Code::SchemaInvalid, "{}", report.to_json());
}

#[test]
fn a_run_without_an_end_is_warned_of_and_an_override_too() {
    let mut stage = Stage::default().planned();
    stage.say(EXECUTOR, &intent("i1", "high"));
    assert_eq!(codes(&stage.verified()), [Code::FinalizationIncomplete, Code::NoCheckpoint]);
    stage.say(PERSON, &words("override_recorded", json!({"target": "i1", "reason": "it has to be"})));
    stage.say(EXECUTOR, &started("i1"));
    assert!(codes(&stage.verified()).contains(&Code::OverrideRecorded));
    stage.say(PERSON, &aborted());
    assert!(!codes(&stage.verified()).contains(&Code::FinalizationIncomplete));
}

/// Every history above, told and forged: what both verifiers are asked about.
pub(crate) fn histories() -> Vec<(String, Vec<u8>)> {
    let stories: &[fn()] = &[
        a_run_that_keeps_every_rule_passes_and_ends_as_completed,
        roles_and_parts,
        beginnings_and_places,
        names_and_subjects,
        what_was_seen,
        intents_and_executions,
        approvals,
        the_end_of_a_run,
        what_a_judgement_names_is_cited,
        a_challenge_counts_whether_its_claim_is_named_or_not,
        a_step_whose_fields_do_not_fit_is_refused_and_found,
        a_run_without_an_end_is_warned_of_and_an_override_too,
    ];
    stories.iter().for_each(|story| story());
    FORGED.take()
}

/// This file, which names each rule where it is broken.
const SOURCE: &str = include_str!("guarded.rs");

#[test]
fn every_rule_is_refused_and_found() {
    for rule in Rule::ALL {
        let named = format!("breaks(Rule::{rule:?},");
        assert!(SOURCE.contains(&named), "{named}");
    }
}

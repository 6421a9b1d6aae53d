//! A guarded run, told on the command line: `baton trace show` and `baton verify` for people.

use std::time::Duration;

use baton_core::TraceId;
use baton_core::guard::{Begun, Policy, Profile, Step, Team};
use baton_ledger::hash::sha256;
use baton_ledger::seal::Proposal;
use baton_store::registry::signed_own;
use baton_store::{Journal as _, Layout, Options, Workspace};
use serde_json::{Value, json};

use crate::newcomers::on_terminal;
use crate::support::Home;

const INPUT: &str = r#"{"path":"a.txt"}"#;
const OUTPUT: &str = "done";
const REPORT: &str = "all in order";

/// A data directory with a guarded run, which agents with keys of their own go on with.
pub(crate) struct Stage {
    pub(crate) home: Home,
    pub(crate) run: String,
}

impl Stage {
    pub(crate) fn new() -> Stage {
        let home = Home::new();
        for (agent, roles) in [
            ("ada", "planner"),
            ("bob", "critic"),
            ("cy", "executor"),
            ("dora", "auditor"),
            ("operator", "operator,critic"),
        ] {
            home.json(&["agent", "key", agent, "--role", roles]);
        }
        let run = home.json(&["trace", "new", "--title", "mend it"])["trace"].as_str().unwrap().to_owned();
        begin(&home, run.parse().unwrap());
        std::fs::write(home.work().join("input"), INPUT).unwrap();
        std::fs::write(home.work().join("output"), OUTPUT).unwrap();
        std::fs::write(home.work().join("report"), REPORT).unwrap();
        Stage { home, run }
    }

    pub(crate) fn head(&self) -> Value {
        let shown = self.home.json(&["trace", "show", &self.run]);
        let last = shown["events"].as_array().unwrap().last().unwrap().clone();
        json!({"seq": last["seq"], "hash": last["hash"]})
    }

    /// An agent says something, having seen everything, and cites files.
    pub(crate) fn say(&self, agent: &str, event_type: &str, payload: &Value, cites: &[&str]) {
        let artifacts: Vec<Value> = cites.iter().map(|file| json!({"path": file})).collect();
        let event =
            json!({"type": event_type, "payload": payload, "artifacts": artifacts, "seen": self.head()});
        self.home.append(&self.run, agent, &event);
    }

    pub(crate) fn claim(&self, id: &str, text: &str, more: &Value) {
        let mut claim = json!({
            "claim_id": id, "claim_text": text, "confidence": 0.9, "evidence": [hash(OUTPUT)],
            "executions": ["i2"],
        });
        claim.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        self.say("cy", "claim_issued", &claim, &["output"]);
    }

    /// From the first proposal up to what a tool made.
    pub(crate) fn execute(&self, objective: &str) {
        let proposal = json!({
            "proposal_id": "p1", "objective": objective, "assumptions": ["nobody else writes"],
            "required_tools": ["make_file", "run_command"], "expected_evidence": ["the test's output"],
        });
        self.say("ada", "proposal_created", &proposal, &[]);
        let review = json!({
            "proposal_id": "p1", "status": "conditional", "conditions": ["make_file: below src"],
            "risk": "small", "rationale": "as far as it goes",
        });
        self.say("bob", "proposal_reviewed", &review, &[]);
        self.intend("i1", &json!({"risk_class": "medium"}));
        self.say(
            "bob",
            "tool_intent_reviewed",
            &json!({"intent_id": "i1", "status": "blocked", "rationale": "no"}),
            &[],
        );
        self.intend("i2", &json!({"retry_of": "i1"}));
        self.say(
            "bob",
            "tool_intent_reviewed",
            &json!({"intent_id": "i2", "status": "approved", "rationale": "smaller"}),
            &[],
        );
        self.say(
            "cy",
            "tool_execution_started",
            &json!({"intent_id": "i2", "artifacts": [hash(INPUT)]}),
            &["input"],
        );
        let ended = json!({"intent_id": "i2", "artifacts": [hash(OUTPUT)], "exit_status": 0});
        self.say("cy", "tool_execution_completed", &ended, &["output"]);
    }

    pub(crate) fn intend(&self, id: &str, more: &Value) {
        let mut intent = json!({
            "intent_id": id, "proposal_id": "p1", "tool_name": "make_file", "risk_class": "low",
            "normalized_input_hash": hash(INPUT), "justification": "it is needed",
        });
        intent.as_object_mut().unwrap().append(&mut more.as_object().unwrap().clone());
        self.say("cy", "tool_intent_signed", &intent, &[]);
    }

    fn shown(&self) -> String {
        self.home.run(&["trace", "show", &self.run]).expect(0).stdout.clone()
    }
}

/// Only Baton begins a run.
fn begin(home: &Home, run: TraceId) {
    let team = Team {
        planner: "ada".parse().unwrap(),
        executor: "cy".parse().unwrap(),
        critic: "bob".parse().unwrap(),
        auditor: "dora".parse().unwrap(),
    };
    let begun = Step::Begun(Begun { policy: Policy::of(Profile::Default), team });
    let layout = Layout::new(home.data());
    let workspace =
        Workspace::open(&layout, &home.state(), Options::default(), Duration::from_secs(60)).unwrap();
    let event = signed_own(run, begun.to_payload(), &workspace.ledger_key).unwrap();
    workspace.journal.append(Proposal { events: vec![event], decided_on: Vec::new() }).unwrap();
}

fn hash(content: &str) -> String {
    sha256(content.as_bytes()).to_string()
}

/// Where a reader finds it.
fn stored(content: &str) -> String {
    let hash = hash(content);
    format!("artifacts/sha256/{}/{hash}", &hash[..2])
}

fn short(content: &str) -> String {
    hash(content)[..12].to_owned()
}

/// The sentences of a story, and what stands below them; not when, by whom, and which keys were bound.
fn sentences(shown: &str) -> Vec<&str> {
    let lines = shown.lines().skip_while(|line| !line.is_empty()).skip(2);
    lines
        .filter(|line| !line.contains(" is bound as "))
        .map(|line| if line.starts_with("        ") { line.trim_start() } else { &line[48..] })
        .collect()
}

#[test]
fn a_guarded_run_is_told_as_a_story() {
    let stage = Stage::new();
    stage.execute("mend the login");
    stage.claim("c1", "it works", &json!({}));
    stage.say("bob", "claim_challenged", &json!({"claim_id": "c1", "reason": "not on Mondays"}), &[]);
    stage.claim("c2", "it works from Tuesday on", &json!({"revises": "c1", "confidence": 1}));
    stage.say("bob", "claim_challenged", &json!({"claim_id": "c2", "reason": "nor then"}), &[]);
    let statement = json!({"claim_ids": ["c2"], "verdict_text": "it will do", "disputed": ["c2"]});
    stage.say("cy", "final_statement_signed", &statement, &[]);
    stage.say("dora", "verification_run_started", &json!({}), &[]);
    let head = stage.head()["hash"].as_str().unwrap().to_owned();
    let audit = json!({"status": "pass-with-warnings", "report": hash(REPORT), "head": head});
    stage.say("dora", "verification_run_completed", &audit, &["report"]);
    stage.home.json(&["trace", "close", &stage.run, "--reason", "done"]);
    let shown = stage.shown();
    let lines: Vec<&str> = shown.lines().collect();
    assert!(lines[0].ends_with("  mend it") && lines[1].starts_with("closed, 22 events, head "), "{shown}");
    assert_eq!(lines[2], "completed, profile default; planner ada, executor cy, critic bob, auditor dora");
    // When, by whom, and whether they signed it.
    let proposed = lines.iter().find(|line| line.contains("proposes")).unwrap();
    let (before, time) = (&proposed[..48], &proposed[7..16]);
    assert_eq!(before, format!("    4  {time}  ada/planner           signed  "));
    assert!(shown.contains(" of cy is bound as executor\n"), "{shown}");
    let (input, output, whole) = (short(INPUT), short(OUTPUT), stored(INPUT));
    let expected = format!(
        "the trace is opened
baton begins the run, profile default
ada proposes p1: mend the login
tools      make_file, run_command
assumes    nobody else writes
evidence   the test's output
bob approves p1 on conditions: as far as it goes
condition  make_file: below src
risk       small
cy means to run make_file (i1, medium): it is needed
for        p1
input      {whole}
bob blocks i1: no
cy means to run make_file again, instead of i1 (i2, low): it is needed
for        p1
input      {whole}
bob approves i2: smaller
cy starts i2
input      {input}
cy ran i2: exit 0
artifacts  {output}
cy claims c1 (confidence 0.9): it works
evidence   {output}
rests on   i2
bob challenges c1: not on Mondays
cy revises c1 as c2 (confidence 1): it works from Tuesday on
evidence   {output}
rests on   i2
bob challenges c2: nor then
cy states: it will do (claims c2; disputed c2)
dora begins to verify
dora verified up to {}: pass-with-warnings
report     {}
the trace is closed: done",
        &head[..12],
        short(REPORT),
    );
    assert_eq!(sentences(&shown).join("\n"), expected);
    // For programs it is what it was, and so is what the verifier says of it.
    assert_eq!(stage.home.json(&["trace", "show", &stage.run])["events"].as_array().unwrap().len(), 22);
    let verified = stage.home.run(&["verify", &stage.run]).stdout;
    assert!(verified.contains("\nguarded       completed, profile default\n"), "{verified}");
}

#[test]
fn a_run_that_is_given_up_says_what_went_wrong_and_who_let_it_through() {
    let stage = Stage::new();
    stage.execute("mend it");
    stage.intend("i3", &json!({"risk_class": "high"}));
    stage.say("operator", "override_recorded", &json!({"target": "i3", "reason": "it has to be"}), &[]);
    stage.say(
        "cy",
        "tool_execution_started",
        &json!({"intent_id": "i3", "artifacts": [hash(INPUT)]}),
        &["input"],
    );
    let failed = json!({"intent_id": "i3", "artifacts": [hash(OUTPUT)], "failure": "no room left"});
    stage.say("cy", "tool_execution_failed", &failed, &["output"]);
    stage.say("cy", "artifact_recorded", &json!({}), &["input"]);
    stage.say("cy", "note", &json!({"n": 1}), &[]);
    let again = json!({"proposal_id": "p2", "objective": "mend the rest", "revises": "p1"});
    stage.say("ada", "proposal_created", &again, &[]);
    let review = json!({"proposal_id": "p2", "status": "rejected", "rationale": "too late"});
    stage.say("bob", "proposal_reviewed", &review, &[]);
    stage.home.json(&["trace", "abort", &stage.run, "--reason", "enough"]);
    let shown = stage.shown();
    assert!(shown.contains("\naborted, profile default; "), "{shown}");
    let told = sentences(&shown);
    let from = told.iter().position(|line| line.contains("i3")).unwrap();
    let expected = format!(
        "cy means to run make_file (i3, high): it is needed
for        p1
input      {whole}
operator overrides what holds up i3: it has to be
cy starts i3
input      {input}
i3 failed: no room left
artifacts  {}
cy stores: input ({input})
cy records note: {{\"n\":1}}
ada proposes p2 instead of p1: mend the rest
bob rejects p2: too late
operator aborts: enough
the trace is closed: aborted",
        short(OUTPUT),
        input = short(INPUT),
        whole = stored(INPUT),
    );
    assert_eq!(told[from..].join("\n"), expected);
}

#[test]
fn what_agents_say_in_a_story_is_harmless_and_cut_at_a_terminal_only() {
    let stage = Stage::new();
    let evil =
        format!("red \u{1b}[31m bell \u{7} rtl \u{202e}x\r\n    9  baton/system {}", "long ".repeat(60));
    stage.execute(&evil);
    stage.intend("i3", &json!({"tool_name": "make_file", "justification": evil}));
    stage.claim("c1", &evil, &json!({}));
    let rewritten = "red \u{fffd}[31m bell \u{fffd} rtl \u{fffd}x\u{fffd}⏎    9  baton/system long long";
    let shown = stage.shown();
    assert!(shown.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}')), "{shown:?}");
    assert_eq!(shown.matches(rewritten).count(), 3, "{shown}");
    assert_eq!(shown.matches(evil.trim_start_matches(|c| c != '9')).count(), 3, "it is whole: {shown}");
    let cut = on_terminal(&stage.home, 140, &["trace", "show", &stage.run]);
    let proposed = cut.iter().find(|line| line.contains("ada proposes p1")).unwrap();
    assert!(proposed.ends_with('…') && proposed.chars().count() == 140, "{proposed}");
}

#[test]
fn other_traces_are_shown_as_they_were() {
    let home = Home::new();
    let trace = home.trace();
    home.json(&["agent", "key", "ada", "--role", "planner"]);
    let event = json!({"type": "proposal_created", "payload": {"proposal_id": "p1", "objective": "x"}});
    home.append(&trace, "ada", &event);
    let shown = home.run(&["trace", "show", &trace]).stdout;
    let last = shown.lines().last().unwrap();
    assert!(
        last.contains("proposal_created") && last.ends_with(r#"{"objective":"x","proposal_id":"p1"}"#),
        "{shown}"
    );
    assert!(!home.run(&["verify", &trace]).stdout.contains("guarded"));
}

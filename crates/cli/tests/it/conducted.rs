//! Guarded tasks from the proposal to the verdict: four real agents over ACP, what they may and what they may not, and Baton killed in between.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::runs::{configure, lines};
use crate::serve::Serving;
use crate::support::{Home, until};
use crate::task_support::{text, texts};

/// A data directory with a team of four agents, each a process that speaks ACP.
pub(crate) fn team(more: &str) -> Home {
    team_saying("", "", more)
}

/// The same, and one of them does more than its prompt says.
pub(crate) fn team_saying(who: &str, says: &str, more: &str) -> Home {
    let home = Home::new();
    let exe = env!("CARGO_BIN_EXE_baton");
    for name in ["ada", "bob", "cleo", "dora"] {
        let fs = if name == "bob" { "fs = true\nterminal = true\n" } else { "" };
        let says = if name == who { format!("env = {{ MOCK_SAYS = {says:?} }}\n") } else { String::new() };
        let agent =
            format!("[agents.{name}]\nharness = \"acp\"\ncommand = [{exe:?}, \"mock-agent\"]\n{fs}{says}");
        configure(&home, &agent);
    }
    let parts = ["planner = \"ada\"", "executor = \"bob\"", "critic = \"cleo\"", "auditor = \"dora\""];
    configure(&home, &format!("[team]\n{}\n{more}", parts.join("\n")));
    home
}

impl Home {
    /// Changes what stands in the configuration.
    pub(crate) fn recast(&self, from: &str, to: &str) {
        let path = self.data().join("baton.toml");
        let config = fs::read_to_string(&path).unwrap();
        assert!(config.contains(from), "{config}");
        fs::write(path, config.replace(from, to)).unwrap();
    }

    /// A guarded task that is ready.
    pub(crate) fn guarded(&self, title: &str) -> String {
        text(&self.run(&["task", "new", title, "--guarded", "--ready", "--json"]).value(0)["id"])
    }

    /// Runs it; gives the last object.
    #[track_caller]
    pub(crate) fn conducted(&self, task: &str, outcome: &str) -> Value {
        let ended = self.run(&["run", "--task", task, "--json"]);
        let (_, last) = lines(&ended);
        assert_eq!(last["outcome"], outcome, "{ended:?}\n{}", self.run(&["events"]).stdout);
        last
    }

    /// The trace of a task's last guarded run.
    pub(crate) fn guard_of(&self, task: &str) -> String {
        let opened = self.records(task).into_iter().rev().find(|event| event["type"] == "task.guard_opened");
        text(&opened.unwrap_or_else(|| panic!("no run: {:?}", self.types(task)))["payload"]["trace"])
    }

    /// The events of a trace.
    pub(crate) fn told(&self, trace: &str) -> Vec<Value> {
        let shown = self.run(&["trace", "show", trace, "--json"]);
        shown.expect(0);
        let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
        shown["events"].as_array().unwrap().clone()
    }

    /// What was refused, with its rule.
    pub(crate) fn refusals(&self, task: &str) -> Vec<(String, String)> {
        let all = self.records(task).into_iter().filter(|event| event["type"] == "guard.refused");
        all.map(|event| {
            let rule = event["payload"]["rule"].as_str().unwrap_or("none").to_owned();
            (rule, text(&event["payload"]["why"]))
        })
        .collect()
    }
}

pub(crate) fn steps(events: &[Value]) -> Vec<String> {
    let all = events.iter().map(|event| text(&event["type"]));
    all.filter(|name| name != "key_bound").collect()
}

/// Nothing ran that was not approved, and nothing twice: by the events alone, without Baton's own verifier.
pub(crate) fn expect_accounted(events: &[Value]) {
    let (mut intents, mut approved, mut blocked, mut started) =
        (BTreeMap::new(), BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    for event in events {
        let payload = &event["payload"];
        let id = payload["intent_id"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "tool_intent_signed" => drop(intents.insert(id, payload.clone())),
            "tool_intent_reviewed" if payload["status"] == "approved" => drop(approved.insert(id)),
            "tool_intent_reviewed" => drop(blocked.insert(id)),
            "tool_execution_started" => {
                let intent = &intents[&id];
                assert!(!blocked.contains(&id), "{id} was blocked");
                let is_risky = intent["risk_class"] != "low";
                assert!(!is_risky || approved.contains(&id), "{id} ran without a review: {intent}");
                assert!(texts(&payload["artifacts"]).contains(&text(&intent["normalized_input_hash"])));
                assert!(started.insert(id), "it ran twice: {event}");
            }
            _ => {}
        }
    }
}

#[track_caller]
pub(crate) fn expect_passes(home: &Home, trace: &str) {
    let report = home.run(&["verify", trace, "--json"]);
    report.expect(0);
    let report: Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(report["subject"]["guarded"]["state"], "completed", "{report}");
}

#[test]
fn four_agents_bring_a_task_from_a_proposal_to_a_verdict() {
    let home = team("");
    let task = home
        .guarded("edit forbidden.txt edit good.txt fswrite more.txt term true tool complete done doubtful");
    home.conducted(&task, "done");
    assert_eq!(home.status(&task), "review");
    let events = home.told(&home.guard_of(&task));
    let all = steps(&events);
    let others: Vec<&String> = all.iter().filter(|name| !name.starts_with("tool_")).collect();
    let expected = [
        "trace.opened",
        "session_initialized",
        "proposal_created",
        "proposal_reviewed",
        "claim_issued",
        "claim_challenged",
        "claim_issued",
        "final_statement_signed",
        "verification_run_started",
        "verification_run_completed",
        "trace.closed",
    ];
    assert_eq!(others, expected);
    // One is blocked, and another takes its place; the client writes a file and runs a command; the agent reads something, which waits for nobody.
    let count = |name: &str| all.iter().filter(|step| *step == name).count();
    let tools =
        ["tool_intent_signed", "tool_intent_reviewed", "tool_execution_started", "tool_execution_completed"];
    assert_eq!(tools.map(count), [5, 4, 4, 4]);
    expect_accounted(&events);
    let of = |name: &str| events.iter().filter(|event| event["type"] == name).collect::<Vec<_>>();
    assert_eq!(of("tool_intent_signed")[1]["payload"]["retry_of"], "i1");
    assert_eq!(of("claim_issued")[1]["payload"]["revises"], "c1");
    assert_eq!(of("verification_run_completed")[0]["payload"]["status"], "pass");
    // Each with a key of its own.
    let signed: BTreeMap<String, String> = events
        .iter()
        .filter(|event| event["sig"].is_object())
        .map(|event| (text(&event["actor"]["agent"]), text(&event["actor"]["key"])))
        .collect();
    assert_eq!(
        signed.keys().map(String::as_str).collect::<Vec<_>>(),
        ["ada", "baton", "bob", "cleo", "dora"]
    );
    assert_eq!(signed.values().collect::<BTreeSet<_>>().len(), 5);
    // What ran did what it was to do, and what was blocked did not.
    let exists = |name: &str| home.work().join(name).exists();
    assert!(exists("good.txt") && exists("more.txt") && !exists("forbidden.txt"));
    let verified = home.last(&task, "task.verified");
    assert_eq!(
        (&verified["payload"]["state"], &verified["payload"]["verdict"]),
        (&json!("completed"), &json!("pass"))
    );
    assert_eq!(verified["payload"]["head"], events.last().unwrap()["hash"]);
    let shown = home.run(&["task", "show", &task]).stdout;
    assert!(shown.contains("(rule intent-blocked)") && shown.contains("completed, verdict pass"), "{shown}");
    expect_passes(&home, &home.guard_of(&task));
    home.verifies();
    home.replays();
    // Another verifier, written from the protocol's page, says the same.
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/verify.py");
    let other = Command::new(python).arg(script).arg(home.data()).output().unwrap();
    let said: Value =
        serde_json::from_slice(&other.stdout).unwrap_or_else(|error| panic!("{error}: {other:?}"));
    assert_eq!(
        (&said["verdict"], &said["integrity"]),
        (&json!("pass-with-warnings"), &json!("intact")),
        "{said}"
    );
    // Both claims and the statement are attested.
    let trace = home.guard_of(&task);
    home.run(&["trace", "export", &trace, "--format", "in-toto", "-o", "run.jsonl"]).expect(0);
    assert_eq!(fs::read_to_string(home.work().join("run.jsonl")).unwrap().lines().count(), 3);
    // Nobody outside of the team works on one.
    let other = home.guarded("complete done");
    home.run(&["task", "claim", &other, "--agent", "eve"]).refused(4, "T009", "guarded");
}

#[test]
fn the_rules_and_the_verifier_play_where_nobody_is_named() {
    let home = team("");
    home.recast("critic = \"cleo\"\n", "");
    home.recast("auditor = \"dora\"\n", "");
    let task = home.guarded("tools:write_file edit good.txt term true edit better.txt complete done");
    home.conducted(&task, "done");
    let events = home.told(&home.guard_of(&task));
    expect_accounted(&events);
    let names: BTreeSet<String> = events.iter().map(|event| text(&event["actor"]["agent"])).collect();
    assert!(names.contains("baton-rules") && names.contains("baton-verifier"), "{names:?}");
    // The command is of class high, which the rules let nobody run.
    let started = events.iter().filter(|event| event["type"] == "tool_execution_started").count();
    assert_eq!((started, home.refusals(&task).len()), (2, 1), "{:?}", home.refusals(&task));
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn what_does_not_fit_is_corrected_and_what_is_rejected_is_proposed_anew() {
    let home = team("");
    let task = home.guarded("mumble propose-again edit good.txt complete done");
    home.conducted(&task, "done");
    let events = home.told(&home.guard_of(&task));
    let reviews: Vec<String> = events
        .iter()
        .filter(|event| event["type"] == "proposal_reviewed")
        .map(|event| text(&event["payload"]["status"]))
        .collect();
    assert_eq!(reviews, ["rejected", "approved"]);
    let revised = events.iter().rfind(|event| event["type"] == "proposal_created").unwrap();
    assert_eq!(revised["payload"]["revises"], "p1");
}

#[test]
fn a_person_reviews_where_no_agent_and_no_rule_may() {
    let home = team("[policy]\nprofile = \"strict\"\n");
    home.recast("critic = \"cleo\"\n", "");
    let task = home.guarded("edit good.txt complete done");
    let serving = Serving::start(&home);
    let subjects = ["p1", "i1", "c1"];
    for subject in subjects {
        until(&format!("{subject} waits"), || {
            let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
            opened
                && home.told(&home.guard_of(&task)).iter().any(|event| {
                    ["proposal_id", "intent_id", "claim_id"]
                        .iter()
                        .any(|name| event["payload"][*name] == subject)
                })
        });
        let trace = home.guard_of(&task);
        let review =
            |verdict| home.run(&["trace", "review", &trace, subject, verdict, "--reason", "it is fine"]);
        review("approve").expect(0);
        // Whoever follows the task hears of it.
        let events = home.events();
        let said = events.iter().rfind(|event| event["actor"]["role"] == "critic").unwrap();
        assert_eq!(said["task"], json!(task), "{said}");
        if subject == "p1" {
            // Another person was slower.
            let late = review("block");
            late.refused(4, "G001", "p1 is decided already: operator said approved");
            assert!(late.stderr.contains("another review came first"), "{}", late.stderr);
        }
    }
    until("it is verified", || home.types(&task).contains(&"task.verified".to_owned()));
    assert_eq!(home.status(&task), "review");
    serving.stop();
    let events = home.told(&home.guard_of(&task));
    assert!(
        events
            .iter()
            .any(|event| event["actor"]["agent"] == "operator" && event["actor"]["role"] == "critic")
    );
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn a_person_aborts_a_run_and_its_task_is_cancelled() {
    let home = team("");
    let task = home.guarded("slow slow slow slow slow edit good.txt complete done");
    let serving = Serving::start(&home);
    until("it is at work", || {
        let opened = home.types(&task).contains(&"task.guard_opened".to_owned());
        opened && steps(&home.told(&home.guard_of(&task))).contains(&"proposal_reviewed".to_owned())
    });
    let trace = home.guard_of(&task);
    home.run(&["trace", "abort", &trace, "--reason", "not wanted any more"]).expect(0);
    until("it is cancelled", || home.status(&task) == "cancelled");
    assert_eq!(home.last(&task, "task.verified")["payload"]["state"], "aborted");
    serving.stop();
    home.verifies();
}

#[test]
fn policy_guarded_guards_every_new_task() {
    let home = team("[policy]\nguarded = true\n");
    let task = home.task(&[]);
    assert_eq!(home.show(&task)["guarded"], true);
    home.run(&["task", "claim", &task, "--agent", "bob"]).refused(4, "T009", "guarded");
}

#[test]
fn parts_are_played_through_tools_as_well_as_in_text() {
    let home = team("");
    let task = home.guarded("by-tool edit good.txt complete done doubtful");
    home.conducted(&task, "done");
    let events = home.told(&home.guard_of(&task));
    let count = |name: &str| events.iter().filter(|event| event["type"] == name).count();
    let names =
        ["proposal_created", "proposal_reviewed", "tool_intent_reviewed", "claim_issued", "claim_challenged"];
    assert_eq!(names.map(count), [1, 1, 1, 2, 1]);
    assert_eq!(home.refusals(&task), []);
    expect_passes(&home, &home.guard_of(&task));
}

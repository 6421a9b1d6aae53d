//! The gates between phases: CI, review, merge; blocking and back; the end of a task and of its trace; attempts.

use std::fs;

use baton_ledger::hash::sha256;
use serde_json::{Value, json};

use crate::hints::after;
use crate::support::{Home, until};
use crate::task_support::{answer, handoff, report, signal, text, update};

/// A task that an agent reported done.
fn reported(home: &Home, args: &[&str]) -> String {
    let id = home.task(args);
    home.claim(&id, "swe-backend");
    home.accepted(report(&id, "swe-backend", "done"));
    id
}

#[track_caller]
fn stands(home: &Home, id: &str, status: &str, phase: &str) -> Value {
    let task = home.show(id);
    assert_eq!((&task["status"], &task["phase"]), (&json!(status), &json!(phase)), "{task}");
    task
}

fn with_ci(config: &str) -> Home {
    let home = Home::new().with_env("AGENT_EXIT_PROTOCOL_ENABLED", "1");
    fs::write(home.data().join("baton.toml"), format!("[ci]\ncommand = \"true\"\n{config}")).unwrap();
    home
}

/// The records of one append: all that share a batch with the last one of this type.
fn batch_of(home: &Home, id: &str, event_type: &str) -> Vec<String> {
    let records = home.records(id);
    let at = records.iter().rposition(|record| record["type"] == event_type).expect(event_type);
    let place = |record: &Value| record["batch"][0].as_u64().unwrap_or(1) as usize;
    let size = records[at]["batch"][1].as_u64().unwrap_or(1) as usize;
    let start = at + 1 - place(&records[at]);
    records[start..start + size].iter().map(|record| text(&record["type"])).collect()
}

#[test]
fn a_report_of_done_waits_for_review_and_with_ci_for_ci_first() {
    let plain = Home::new();
    stands(&plain, &reported(&plain, &[]), "review", "READY_FOR_REVIEW");
    stands(&plain, &reported(&plain, &["--no-review"]), "done", "COMPLETED");
    let home = with_ci("");
    stands(&home, &reported(&home, &[]), "review", "CI_PENDING");
    let unreviewed = reported(&home, &["--no-review"]);
    stands(&home, &unreviewed, "review", "CI_PENDING");
    home.run(&["task", "approve", &unreviewed]).refused_with(4, "T012", "CI_PENDING");
    home.run(&["task", "approve", &unreviewed, "--all"]).refused_with(4, "T012", "CI_PENDING");
    home.run(&["ci", "report", &unreviewed, "--passed"]).expect(0);
    stands(&home, &unreviewed, "done", "COMPLETED");
    assert_eq!(home.moves(&unreviewed)[2], "review → done: ci_passed");
}

#[test]
fn a_report_of_part_of_the_work_completes_no_phase() {
    let home = Home::new();
    for outcome in ["partial", "needs_review"] {
        let id = home.task(&[]);
        home.claim(&id, "swe-backend");
        home.accepted(report(&id, "swe-backend", outcome));
        stands(&home, &id, "review", "IMPLEMENTATION");
        home.run(&["task", "approve", &id]).expect(0);
        stands(&home, &id, "done", "COMPLETED");
    }
}

#[test]
fn approval_goes_phase_by_phase_or_all_the_way() {
    let home = Home::with_signals();
    let to_review = || {
        let id = home.task(&[]);
        home.claim(&id, "swe-backend");
        home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
        home.run(&["task", "approve", &id]).refused_with(4, "T012", "CI_PENDING");
        home.run(&["ci", "report", &id, "--passed"]).expect(0);
        stands(&home, &id, "review", "READY_FOR_REVIEW");
        id
    };
    let id = to_review();
    let approved = home.run(&["task", "approve", &id]);
    approved.expect(0);
    assert_eq!(after(&approved.stderr, "hint: "), format!("baton task approve {id}"));
    stands(&home, &id, "review", "READY_FOR_MERGE");
    home.run(&["task", "approve", &id]).expect(0);
    stands(&home, &id, "done", "COMPLETED");
    let approved = home.last(&id, "task.approved");
    assert_eq!(approved["actor"]["role"], "operator");
    assert!(approved["sig"]["value"].is_string(), "signed with the operator's key");
    assert_eq!(
        batch_of(&home, &id, "trace.closed"),
        ["task.approved", "task.phase_changed", "task.transitioned", "trace.closed"],
        "done and COMPLETED in one append"
    );
    home.run(&["task", "approve", &id]).refused_with(4, "T013", "done");

    let id = to_review();
    home.run(&["task", "approve", &id, "--all"]).expect(0);
    stands(&home, &id, "done", "COMPLETED");

    // One that came by a report alone needs one approval.
    let id = reported(&home, &[]);
    home.run(&["task", "approve", &id]).expect(0);
    stands(&home, &id, "done", "COMPLETED");
    home.verifies();
    home.replays();
}

#[test]
fn rejection_goes_back_to_work_with_the_reason_in_the_log() {
    let home = Home::new();
    let id = reported(&home, &[]);
    home.run(&["task", "reject", &id, "--reason", "no test for\nthe empty case"]).expect(0);
    let task = stands(&home, &id, "ready", "IMPLEMENTATION");
    assert!(text(&task["body"]).contains("no test for the empty case"), "{task}");
    assert_eq!(home.moves(&id).last().unwrap(), "review → ready: rejected");
    home.run(&["task", "reject", &id, "--reason", "again"]).refused_with(4, "T013", "ready");
    let long = "x".repeat(513);
    for reason in ["", " ", &long] {
        home.run(&["task", "reject", &id, "--reason", reason]).refused_with(4, "T003", "reason");
    }
    // Who did it before may do it again.
    assert_eq!(home.claim(&id, "swe-backend")["fence"], 2);
}

#[test]
fn ci_reports_are_taken_once_with_their_log_as_evidence() {
    let home = with_ci("");
    let id = home.task(&[]);
    home.run(&["ci", "report", &id, "--passed"]).refused_with(4, "T013", "not waiting for CI");
    home.run(&["ci", "report", &id]).expect(2);
    home.run(&["ci", "report", &id, "--passed", "--failed"]).expect(2);
    home.claim(&id, "swe-backend");
    home.accepted(report(&id, "swe-backend", "done"));
    fs::write(home.work().join("build.log"), "1 test failed\n").unwrap();
    home.run(&["ci", "report", &id, "--failed", "--log", "missing.log"]).refused_with(
        3,
        "U005",
        "missing.log",
    );
    home.run(&["ci", "report", &id, "--failed", "--log", "build.log"]).expect(0);
    let task = stands(&home, &id, "blocked", "BLOCKED");
    assert_eq!(task["phaseBeforeBlock"], "CI_PENDING");
    let reported = home.last(&id, "ci.reported");
    assert_eq!(reported["payload"]["passed"], false);
    let hash = sha256(b"1 test failed\n").to_string();
    assert_eq!(reported["artifacts"][0]["sha256"], hash.as_str());
    let stored = home.data().join("artifacts/sha256").join(&hash[..2]).join(&hash);
    assert_eq!(fs::read_to_string(stored).unwrap(), "1 test failed\n");
    home.run(&["ci", "report", &id, "--passed"]).refused_with(4, "T013", "not waiting for CI");
    // Unblocked, it waits for CI again.
    home.run(&["task", "move", &id, "review", "--reason", "flaky"]).expect(0);
    stands(&home, &id, "review", "CI_PENDING");
    home.run(&["ci", "report", &id, "--passed"]).expect(0);
    stands(&home, &id, "review", "READY_FOR_REVIEW");
    home.verifies();
}

#[test]
fn a_failed_ci_goes_back_to_work_where_that_is_configured() {
    let home = with_ci("on_failure = \"rework\"\n");
    let id = reported(&home, &[]);
    home.run(&["ci", "report", &id, "--failed"]).expect(0);
    stands(&home, &id, "ready", "IMPLEMENTATION");
    assert_eq!(home.moves(&id).last().unwrap(), "review → ready: ci_failed");
}

#[test]
fn unblocking_returns_to_the_phase_it_came_from() {
    let home = Home::with_signals();
    // From review.
    let id = reported(&home, &[]);
    home.run(&["task", "move", &id, "blocked", "--reason", "waiting for legal"]).expect(0);
    assert_eq!(stands(&home, &id, "blocked", "BLOCKED")["phaseBeforeBlock"], "READY_FOR_REVIEW");
    home.run(&["task", "move", &id, "review", "--reason", "legal said yes"]).expect(0);
    let task = stands(&home, &id, "review", "READY_FOR_REVIEW");
    assert!(task.get("phaseBeforeBlock").is_none(), "{task}");
    assert!(task["metadata"].get("blockReason").is_none(), "{task}");
    // From work, by every way to be blocked.
    let ways: [fn(&Home, &str); 4] = [
        |home, id| drop(home.submitted(id, &signal("IMPLEMENTATION", "blocked"))),
        |home, id| drop(home.accepted(report(id, "swe-backend", "blocked"))),
        |home, id| {
            drop(home.accepted(update(id, "swe-backend", &json!({"status": "blocked", "notes": "x"}))))
        },
        |home, id| {
            home.run(&["task", "move", id, "blocked", "--reason", "x"]).expect(0);
        },
    ];
    for block in ways {
        let id = home.task(&[]);
        home.claim(&id, "swe-backend");
        block(&home, &id);
        assert_eq!(stands(&home, &id, "blocked", "BLOCKED")["phaseBeforeBlock"], "IMPLEMENTATION");
        home.run(&["task", "move", &id, "ready", "--reason", "go on"]).expect(0);
        stands(&home, &id, "ready", "IMPLEMENTATION");
    }
    // A draft stays one.
    let id = home.task(&["--phase", "DRAFT"]);
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    home.run(&["task", "move", &id, "ready", "--reason", "x"]).expect(0);
    stands(&home, &id, "ready", "DRAFT");
    // A child that was refused.
    let (parent, child) = (home.task(&[]), home.task(&[]));
    home.claim(&parent, "swe-backend");
    home.accepted(handoff(&child, &parent, "swe-backend", "swe-qa"));
    home.accepted(answer(&child, "swe-qa", Some("no plan")));
    home.run(&["task", "move", &child, "ready", "--reason", "here is one"]).expect(0);
    stands(&home, &child, "ready", "IMPLEMENTATION");
    home.replays();
}

#[test]
fn a_merge_that_is_blocked_is_merged_afterwards_without_a_second_review() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    home.run(&["ci", "report", &id, "--passed"]).expect(0);
    home.run(&["task", "approve", &id]).expect(0);
    home.claim(&id, "merger");
    home.submitted(&id, &signal("READY_FOR_MERGE", "error"));
    assert_eq!(stands(&home, &id, "blocked", "BLOCKED")["phaseBeforeBlock"], "READY_FOR_MERGE");
    home.run(&["task", "move", &id, "review", "--reason", "conflicts are solved"]).expect(0);
    stands(&home, &id, "review", "READY_FOR_MERGE");
    home.claim(&id, "merger");
    let answer = home.submitted(&id, &signal("READY_FOR_MERGE", "completed"));
    assert_eq!(answer["next_phase"], "COMPLETED");
    stands(&home, &id, "done", "COMPLETED");
    let batch = batch_of(&home, &id, "trace.closed");
    assert_eq!(batch.first().map(String::as_str), Some("AgentSessionCompleted"), "{batch:?}");
    assert!(
        batch.contains(&"lease.released".into()) && batch.contains(&"task.phase_changed".into()),
        "{batch:?}"
    );
    home.verifies();
}

#[test]
fn a_trace_is_closed_with_its_task_and_later_words_go_to_the_ledgers() {
    let home = Home::new();
    let done = reported(&home, &["--no-review"]);
    let cancelled = home.task(&[]);
    home.run(&["task", "move", &cancelled, "cancelled", "--reason", "not wanted"]).expect(0);
    for (id, status) in [(&done, "done"), (&cancelled, "cancelled")] {
        let trace = text(&home.show(id)["traceId"]);
        let closed = home.last(id, "trace.closed");
        assert_eq!((&closed["trace"], &closed["payload"]["reason"]), (&json!(trace), &json!(status)));
        home.run(&["task", "log", id, "thank you"]).expect(0);
        let logged = home.last(id, "task.logged");
        assert_eq!(logged["trace"], "ledger");
        assert!(text(&home.show(id)["body"]).contains("thank you"));
        let file = fs::read_to_string(home.task_file(id)).unwrap();
        assert!(file.contains("thank you"), "{file}");
        let listed = home.json(&["trace", "ls"]);
        let listed =
            listed["traces"].as_array().unwrap().iter().find(|t| t["trace"] == trace.as_str()).unwrap();
        assert_eq!(listed["closed"], true);
        home.run(&["task", "move", id, "ready", "--reason", "x"]).refused_with(4, "T004", "nothing follows");
        home.run(&["task", "claim", id, "--agent", "a"]).refused_with(4, "T009", status);
    }
    home.verifies();
    home.replays();
}

#[test]
fn three_failed_attempts_are_the_end_until_somebody_retries() {
    let home = Home::with_short_beats();
    let id = home.task(&[]);
    let other = home.task(&[]);
    for attempt in 1..=3 {
        assert_eq!(home.claim(&id, "swe-backend")["fence"], attempt);
        until("the run is given up", || {
            home.run(&["task", "log", &other, "?"]).expect(0);
            home.status(&id) != "in-progress"
        });
        assert_eq!(home.show(&id)["attempts"], attempt);
        assert_eq!(home.last(&id, "task.attempt_failed")["payload"]["attempts"], attempt);
    }
    let task = home.show(&id);
    assert_eq!(task["status"], "deadletter");
    assert_eq!(
        home.moves(&id).last().unwrap(),
        "in-progress → deadletter: stale_heartbeat (3 failed attempts)"
    );
    assert!(home.task_file(&id).ends_with(format!("tasks/deadletter/{id}.md")));
    home.run(&["task", "claim", &id, "--agent", "swe-backend"]).refused_with(4, "T009", "deadletter");
    let standing = home.json(&[]);
    let needs = standing["tasks"]["needsPerson"].as_array().unwrap();
    assert!(needs.iter().any(|need| need["id"] == id.as_str()), "{standing}");

    home.run(&["task", "retry", &id]).expect(0);
    let task = home.show(&id);
    assert_eq!((&task["status"], &task["attempts"]), (&json!("ready"), &json!(0)));
    home.run(&["task", "retry", &id]).refused_with(4, "T013", "ready");
    // One that waits before its next attempt need not.
    home.claim(&id, "swe-backend");
    until("the run is given up", || {
        home.run(&["task", "log", &other, "?"]).expect(0);
        home.status(&id) != "in-progress"
    });
    assert!(home.show(&id)["notBefore"].is_string());
    home.run(&["task", "retry", &id]).expect(0);
    let task = home.show(&id);
    assert!(task.get("notBefore").is_none(), "{task}");
    home.verifies();
    home.replays();
}

#[test]
fn the_number_of_attempts_is_configured() {
    let home = Home::with_short_beats().with_env("BATON_SCHEDULER_MAX_ATTEMPTS", "1");
    let id = home.task(&[]);
    let other = home.task(&[]);
    home.claim(&id, "swe-backend");
    until("the run is given up", || {
        home.run(&["task", "log", &other, "?"]).expect(0);
        home.status(&id) != "in-progress"
    });
    assert_eq!(home.status(&id), "deadletter");
}

#[test]
fn the_table_of_statuses_holds_for_every_move_by_hand() {
    let table = [
        ("backlog", "ready blocked cancelled"),
        ("ready", "blocked deadletter cancelled"),
        ("in-progress", "review ready blocked deadletter cancelled"),
        ("blocked", "ready review deadletter cancelled"),
        ("review", "done ready blocked cancelled"),
        ("deadletter", "ready"),
        ("done", ""),
        ("cancelled", ""),
    ];
    let home = Home::new();
    let made_in = |status: &str| -> String {
        let moved = |id: &str, to: &str| {
            home.run(&["task", "move", id, to, "--reason", "x"]).expect(0);
        };
        if status == "backlog" {
            return text(&home.run(&["task", "new", "a task", "--json"]).value(0)["id"]);
        }
        let id = home.task(&[]);
        match status {
            "ready" => {}
            "in-progress" => drop(home.claim(&id, "swe-backend")),
            "done" => {
                home.claim(&id, "swe-backend");
                moved(&id, "review");
                moved(&id, "done");
            }
            "review" => {
                home.claim(&id, "swe-backend");
                moved(&id, "review");
            }
            other => moved(&id, other),
        }
        id
    };
    for (from, to) in table {
        let may: Vec<&str> = to.split_whitespace().collect();
        for to in crate::task_support::STATUSES {
            let id = made_in(from);
            let before = home.records(&id).len();
            let ended = home.run(&["task", "move", &id, to, "--reason", "because"]);
            if from == to {
                ended.expect(0);
                assert_eq!(home.records(&id).len(), before, "the same again changes nothing");
            } else if may.contains(&to) {
                ended.expect(0);
                assert_eq!(home.moves(&id).last().unwrap(), &format!("{from} → {to}: because"));
                let moved = home.last(&id, "task.transitioned");
                assert_eq!(moved["actor"]["role"], "operator");
                assert!(home.task_file(&id).ends_with(format!("tasks/{to}/{id}.md")));
                assert!(home.folder(to, &id).is_dir() && !home.folder(from, &id).exists());
                assert!(home.show(&id).get("lease").is_none());
            } else {
                ended.refused_with(4, "T004", if to == "in-progress" && from != "backlog" { "" } else { to });
                assert_eq!(home.records(&id).len(), before, "{from} → {to}");
                assert_eq!(home.status(&id), from);
            }
        }
    }
    home.verifies();
    home.replays();
}

#[test]
fn a_reviewers_report_goes_on_from_the_phase_that_it_claimed() {
    let home = Home::new();
    let id = reported(&home, &[]);
    home.claim(&id, "usher");
    home.accepted(report(&id, "usher", "done"));
    stands(&home, &id, "review", "REVIEW");
    home.run(&["task", "claim", &id, "--agent", "usher"]).refused_with(4, "T010", "REVIEW");
    home.claim(&id, "reviewer");
    home.accepted(report(&id, "reviewer", "blocked"));
    assert_eq!(stands(&home, &id, "blocked", "BLOCKED")["phaseBeforeBlock"], "REVIEW");
    home.run(&["task", "move", &id, "review", "--reason", "explained"]).expect(0);
    home.claim(&id, "reviewer");
    home.accepted(report(&id, "reviewer", "done"));
    stands(&home, &id, "review", "READY_FOR_MERGE");
    home.run(&["task", "claim", &id, "--agent", "reviewer"]).refused_with(4, "T010", "READY_FOR_MERGE");
    home.claim(&id, "merger");
    home.accepted(report(&id, "merger", "done"));
    stands(&home, &id, "done", "COMPLETED");
    home.verifies();
    home.replays();
}

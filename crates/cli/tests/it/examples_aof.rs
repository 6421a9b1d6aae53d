//! The nine examples of the guide to AOF/1, with the files where it puts them and with their fields.

use std::fs;

use serde_json::{Value, json};

use crate::support::{Home, until};
use crate::task_support::{fixture, ms_between, report, text, with};

const PARENT: &str = "TASK-2026-02-09-057";

/// What every task that was claimed begins with.
const CLAIMED: [&str; 4] = ["trace.opened", "task.created", "lease.acquired", "task.transitioned"];

fn write(home: &Home, status: &str, id: &str, path: &str, content: &str) {
    fs::write(home.folder(status, id).join(path), content).unwrap();
}

/// Lets somebody write until a task has left in-progress: without a server it is whoever writes next that notices a death.
fn until_reclaimed(home: &Home, id: &str) {
    let other = home.task(&[]);
    until("an expired heartbeat is acted on", || {
        home.run(&["task", "log", &other, "is anybody there?"]).expect(0);
        home.status(id) != "in-progress"
    });
}

#[test]
fn a_claim_writes_run_json_and_the_first_heartbeat() {
    let home = Home::new();
    home.named_task(PARENT, &[]);
    let lease = home.claim(PARENT, "swe-backend");
    let run = home.run_file(PARENT, "run.json");
    let started_at = run["startedAt"].clone();
    assert_eq!(
        run,
        json!({
            "taskId": PARENT, "agentId": "swe-backend", "startedAt": started_at, "status": "running",
            "artifactPaths": {"inputs": "inputs/", "work": "work/", "output": "outputs/"}, "metadata": {},
            "runId": lease["runId"], "fence": 1,
        })
    );
    let beat = home.run_file(PARENT, "run_heartbeat.json");
    assert_eq!((&beat["taskId"], &beat["agentId"]), (&json!(PARENT), &json!("swe-backend")));
    assert_eq!((&beat["runId"], &beat["fence"]), (&lease["runId"], &json!(1)));
    assert_eq!(beat["lastHeartbeat"], started_at);
    assert_eq!(ms_between(&beat["lastHeartbeat"], &beat["expiresAt"]), 300_000, "five minutes");
    assert_eq!(ms_between(&beat["lastHeartbeat"], &lease["expiresAt"]), 600_000, "ten minutes");

    let count = beat["beatCount"].as_u64().unwrap();
    home.run(&["task", "beat", PARENT, "--agent", "swe-backend", "--fence", "1"]).expect(0);
    let next = home.run_file(PARENT, "run_heartbeat.json");
    assert_eq!(next["beatCount"], count + 1);
    assert!(ms_between(&beat["lastHeartbeat"], &next["lastHeartbeat"]) >= 0);
    assert_eq!(ms_between(&next["lastHeartbeat"], &next["expiresAt"]), 300_000);
    assert_eq!(home.types(PARENT), CLAIMED, "a beat that moves the end by little is not recorded");
}

#[test]
fn example_1_a_report_of_done_is_kept_beside_the_run_and_stops_in_review() {
    let home = Home::new();
    home.named_task(PARENT, &[]);
    let lease = home.claim(PARENT, "swe-backend");
    write(&home, "in-progress", PARENT, "outputs/summary.md", "It works.\n");
    write(&home, "in-progress", PARENT, "outputs/handoff.md", "Here you are.\n");

    let events = home.accepted(fixture("01-completion-done"));
    let led_to = [
        "protocol.message.received",
        "task.completed",
        "task.phase_changed",
        "task.transitioned",
        "lease.released",
    ];
    assert_eq!(events, led_to);
    assert_eq!(home.types(PARENT), [&CLAIMED[..], &led_to].concat());
    assert_eq!(home.moves(PARENT)[1], "in-progress → review: completion_done");

    let result = home.run_file(PARENT, "run_result.json");
    let completed = home.last(PARENT, "task.completed");
    assert_eq!(
        result,
        json!({
            "taskId": PARENT, "agentId": "swe-backend", "completedAt": completed["at"], "outcome": "done",
            "summaryRef": "outputs/summary.md", "handoffRef": "outputs/handoff.md",
            "deliverables": ["src/api/users.ts", "src/api/auth.ts"],
            "tests": {"total": 120, "passed": 120, "failed": 0}, "blockers": [],
            "notes": "All acceptance criteria met. Tests passing. Ready for review.",
            "runId": lease["runId"], "fence": 1,
        })
    );
    let received = home.last(PARENT, "protocol.message.received");
    let sent: Value = serde_json::from_str(&fixture("01-completion-done")).unwrap();
    assert_eq!(received["payload"]["message"], sent, "the message is in the event as it came");
    assert_eq!(received["actor"]["agent"], "swe-backend");

    let task = home.show(PARENT);
    assert_eq!((&task["status"], &task["phase"]), (&json!("review"), &json!("READY_FOR_REVIEW")));
    assert!(task.get("lease").is_none(), "{task}");
    assert_eq!(home.task_file(PARENT), home.data().join("tasks/review").join(format!("{PARENT}.md")));
    let moved = home.folder("review", PARENT);
    assert_eq!(fs::read_to_string(moved.join("outputs/summary.md")).unwrap(), "It works.\n");
    assert!(moved.join("inputs").is_dir() && moved.join("work").is_dir());
    assert!(!home.folder("in-progress", PARENT).exists(), "the folder moves with the task");
    assert_eq!(home.run_file(PARENT, "run.json")["status"], "completed");
    home.verifies();
    home.replays();
}

#[test]
fn a_report_of_done_without_review_goes_through_review_to_done() {
    let home = Home::new();
    home.named_task(PARENT, &["--no-review"]);
    home.claim(PARENT, "swe-backend");
    let events = home.accepted(fixture("01-completion-done"));
    assert_eq!(
        home.moves(PARENT)[1..],
        ["in-progress → review: completion_done", "review → done: completion_done"]
    );
    let warning = home.last(PARENT, "protocol.message.warning");
    assert_eq!(warning["payload"]["reason"], "summary_file_not_found", "{events:?}");
    assert_eq!(warning["payload"]["detail"], "outputs/summary.md");
    assert!(home.run_file(PARENT, "run_result.json").get("handoffRef").is_none());
    assert_eq!(home.show(PARENT)["phase"], "COMPLETED");
    assert_eq!(home.status(PARENT), "done");
}

#[test]
fn example_2_a_report_of_blocked_blocks_with_its_blockers() {
    let home = Home::new();
    let id = "TASK-2026-02-09-058";
    home.named_task(id, &[]);
    home.claim(id, "swe-backend");
    write(&home, "in-progress", id, "outputs/summary.md", "Half of it.\n");
    home.accepted(fixture("02-completion-blocked"));
    assert_eq!(
        home.types(id)[4..],
        [
            "protocol.message.received",
            "task.completed",
            "task.phase_changed",
            "task.transitioned",
            "lease.released"
        ]
    );
    let result = home.run_file(id, "run_result.json");
    assert_eq!((&result["outcome"], &result["taskId"]), (&json!("blocked"), &json!(id)));
    assert_eq!(
        result["blockers"],
        json!(["Awaiting API key for external service", "Need database credentials"])
    );
    let task = home.show(id);
    assert_eq!((&task["status"], &task["phase"]), (&json!("blocked"), &json!("BLOCKED")));
    assert_eq!(task["phaseBeforeBlock"], "IMPLEMENTATION");
    assert!(text(&task["metadata"]["blockReason"]).contains("Awaiting API key for external service"));
    assert!(home.task_file(id).ends_with(format!("tasks/blocked/{id}.md")));
}

#[test]
fn example_3_progress_is_a_line_of_the_work_log_and_nothing_moves() {
    let home = Home::new();
    let id = "TASK-2026-02-09-059";
    home.named_task(id, &[]);
    home.claim(id, "swe-qa");
    let events = home.accepted(fixture("03-status-progress"));
    assert_eq!(events, ["protocol.message.received", "task.logged"]);
    let at = text(&home.last(id, "task.logged")["at"]);
    let line = format!("- {at} Progress: Executed 50/100 test cases | Notes: No issues found so far\n");
    assert_eq!(text(&home.show(id)["body"]), format!("## Work Log\n\n{line}"));
    let file = fs::read_to_string(home.task_file(id)).unwrap();
    assert!(file.ends_with(&format!("## Work Log\n\n{line}")), "{file}");
    assert_eq!(home.status(id), "in-progress");
    assert!(home.task_file(id).ends_with(format!("tasks/in-progress/{id}.md")));
}

#[test]
fn example_4_an_update_with_a_status_moves_the_task_for_its_first_blocker() {
    let home = Home::new();
    let id = "TASK-2026-02-09-060";
    home.named_task(id, &[]);
    home.claim(id, "swe-qa");
    let events = home.accepted(fixture("04-status-transition"));
    assert_eq!(
        events,
        ["protocol.message.received", "task.phase_changed", "task.transitioned", "lease.released"]
    );
    assert_eq!(home.moves(id)[1], "in-progress → blocked: Test environment unreachable");
    assert_eq!(home.last(id, "task.transitioned")["actor"]["agent"], "swe-qa");
    assert_eq!(home.status(id), "blocked");
}

/// A parent that swe-backend works on, and a child with a request to swe-qa.
fn handed_over(home: &Home, child: &str) -> Vec<String> {
    home.named_task(PARENT, &[]);
    home.claim(PARENT, "swe-backend");
    home.named_task(child, &[]);
    home.accepted(fixture("05-handoff-request").replace("TASK-2026-02-09-061", child))
}

#[test]
fn example_5_a_handoff_writes_its_two_files_into_the_childs_inputs() {
    let home = Home::new();
    let id = "TASK-2026-02-09-061";
    let events = handed_over(&home, id);
    assert_eq!(events, ["protocol.message.received", "delegation.requested"]);
    assert_eq!(
        home.types(id),
        ["trace.opened", "task.created", "protocol.message.received", "delegation.requested"]
    );
    let inputs = home.folder("ready", id).join("inputs");
    let json = r#"{
  "taskId": "TASK-2026-02-09-061",
  "parentTaskId": "TASK-2026-02-09-057",
  "fromAgent": "swe-backend",
  "toAgent": "swe-qa",
  "acceptanceCriteria": [
    "All unit tests pass",
    "Integration tests pass",
    "Code coverage >= 80%"
  ],
  "expectedOutputs": [
    "tests/report.md",
    "coverage/report.html"
  ],
  "contextRefs": [
    "tasks/in-progress/TASK-2026-02-09-057.md",
    "tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md",
    "src/api/users.ts",
    "src/api/auth.ts"
  ],
  "constraints": [
    "No new dependencies",
    "Use existing test framework"
  ],
  "dueBy": "2026-02-10T12:00:00.000Z"
}
"#;
    assert_eq!(fs::read_to_string(inputs.join("handoff.json")).unwrap(), json);
    let page = "# Handoff Request

**From:** swe-backend
**To:** swe-qa
**Due By:** 2026-02-10T12:00:00.000Z

## Acceptance Criteria

- All unit tests pass
- Integration tests pass
- Code coverage >= 80%

## Expected Outputs

- tests/report.md
- coverage/report.html

## Context References

- tasks/in-progress/TASK-2026-02-09-057.md
- tasks/in-progress/TASK-2026-02-09-057/outputs/handoff.md
- src/api/users.ts
- src/api/auth.ts

## Constraints

- No new dependencies
- Use existing test framework
";
    assert_eq!(fs::read_to_string(inputs.join("handoff.md")).unwrap(), page);
    let task = home.show(id);
    assert_eq!(task["parentId"], PARENT);
    assert_eq!(task["routing"]["agent"], "swe-qa");
    assert_eq!(task["metadata"]["delegationDepth"], 1);
    assert_eq!(task["status"], "ready");

    assert!(home.appends_nothing(|home| home.accepted(fixture("05-handoff-request"))).is_empty());
    for name in ["handoff.json", "handoff.md"] {
        assert_eq!(
            fs::read(inputs.join(name)).unwrap(),
            if name.ends_with("md") { page } else { json }.as_bytes()
        );
    }
    home.verifies();
}

#[test]
fn example_6_an_accepted_handoff_is_logged_and_nothing_moves() {
    let home = Home::new();
    let id = "TASK-2026-02-09-061";
    handed_over(&home, id);
    let events = home.accepted(fixture("06-handoff-accepted"));
    assert_eq!(events, ["protocol.message.received", "delegation.accepted"]);
    assert_eq!(home.status(id), "ready");
    assert_eq!(home.last(id, "delegation.accepted")["payload"]["agent"], "swe-qa");
    home.claim(id, "swe-qa");
    let inputs = home.folder("in-progress", id).join("inputs");
    assert!(
        inputs.join("handoff.json").is_file() && inputs.join("handoff.md").is_file(),
        "they move with it"
    );
}

#[test]
fn example_7_a_rejected_handoff_blocks_the_child_for_its_reason() {
    let home = Home::new();
    let id = "TASK-2026-02-09-062";
    handed_over(&home, id);
    let events = home.accepted(fixture("07-handoff-rejected"));
    assert_eq!(
        events,
        ["protocol.message.received", "task.phase_changed", "task.transitioned", "delegation.rejected"]
    );
    assert_eq!(home.moves(id), ["ready → blocked: Insufficient context: no test plan provided"]);
    let rejected = home.last(id, "delegation.rejected");
    assert_eq!(rejected["payload"]["reason"], "Insufficient context: no test plan provided");
    assert_eq!(home.status(id), "blocked");
    let inputs = home.folder("blocked", id).join("inputs");
    assert!(inputs.join("handoff.json").is_file(), "the files stay with the child");
}

#[test]
fn the_answers_in_the_section_on_handoffs_do_what_it_says() {
    for (name, status) in [("08-handoff-accepted-060", "ready"), ("09-handoff-rejected-060", "blocked")] {
        let home = Home::new();
        let id = "TASK-2026-02-09-060";
        handed_over(&home, id);
        home.accepted(fixture(name));
        assert_eq!(home.status(id), status, "{name}");
    }
}

/// What an agent leaves in `run_result.json` without a message.
fn leave_result(home: &Home, id: &str, outcome: &str) {
    let path = home.data().join("runs").join(id).join("run_result.json");
    let result = json!({
        "taskId": id, "agentId": "swe-backend", "completedAt": "2026-02-09T21:10:00.000Z", "outcome": outcome,
        "summaryRef": "outputs/summary.md", "handoffRef": "outputs/handoff.md", "deliverables": ["src/foo.ts"],
        "tests": {"total": 10, "passed": 8, "failed": 2}, "blockers": [],
        "notes": "80% complete; needs final polish",
    });
    fs::write(path, result.to_string()).unwrap();
}

#[test]
fn example_8_a_stale_heartbeat_with_a_result_goes_where_the_result_says() {
    let outcomes =
        [("partial", "review"), ("needs_review", "review"), ("blocked", "blocked"), ("done", "review")];
    for (outcome, status) in outcomes {
        let home = Home::with_short_beats();
        home.named_task(PARENT, &[]);
        let lease = home.claim(PARENT, "swe-backend");
        leave_result(&home, PARENT, outcome);
        until_reclaimed(&home, PARENT);
        let task = home.show(PARENT);
        assert_eq!(task["status"], status, "{outcome}");
        assert_eq!(task["attempts"], 0, "a result is no failure");
        let moved = home.last(PARENT, "task.transitioned");
        assert_eq!(moved["payload"]["reason"], format!("stale_heartbeat_{outcome}"));
        let types = home.types(PARENT);
        assert_eq!(types[..5], [&CLAIMED[..], &["task.completed"]].concat(), "{outcome}");
        let result = home.run_file(PARENT, "run_result.json");
        assert_eq!((&result["outcome"], &result["runId"]), (&json!(outcome), &lease["runId"]));
        assert!(task.get("lease").is_none());
        home.verifies();
        home.replays();
    }
}

#[test]
fn a_result_of_done_in_a_dead_run_is_done_only_where_no_review_is_required() {
    let home = Home::with_short_beats();
    home.named_task(PARENT, &["--no-review"]);
    home.claim(PARENT, "swe-backend");
    leave_result(&home, PARENT, "done");
    until_reclaimed(&home, PARENT);
    assert_eq!(
        home.moves(PARENT)[1..],
        ["in-progress → review: stale_heartbeat_done", "review → done: stale_heartbeat_done"]
    );
}

#[test]
fn example_9_a_stale_heartbeat_without_a_result_is_given_back_to_be_tried_again() {
    let home = Home::with_short_beats();
    home.named_task(PARENT, &[]);
    let lease = home.claim(PARENT, "swe-backend");
    until_reclaimed(&home, PARENT);
    assert_eq!(home.moves(PARENT)[1], "in-progress → ready: stale_heartbeat_reclaim");
    assert_eq!(
        home.types(PARENT),
        [&CLAIMED[..], &["lease.expired", "task.attempt_failed", "task.transitioned"]].concat()
    );
    let task = home.show(PARENT);
    assert_eq!((&task["status"], &task["attempts"]), (&json!("ready"), &json!(1)));
    assert!(task.get("lease").is_none());
    let wait = ms_between(&home.last(PARENT, "task.transitioned")["at"], &task["notBefore"]);
    assert!((45_000..=75_000).contains(&wait), "60 s, a quarter more or less: {wait} ms");
    let run = home.run_file(PARENT, "run.json");
    // As the system that the guide describes does it: a status of its own is not among the four that it knows.
    assert_eq!(run["status"], "failed", "{run}");
    assert_eq!(run["metadata"]["expiredReason"], "stale_heartbeat", "{run}");
    assert_eq!(run["metadata"]["expiredAt"], home.last(PARENT, "lease.expired")["at"]);
    assert_eq!(run["runId"], lease["runId"]);
    assert!(home.task_file(PARENT).ends_with(format!("tasks/ready/{PARENT}.md")));

    // Whoever claims by hand need not wait; the earlier run is kept.
    let next = home.claim(PARENT, "swe-qa");
    assert_eq!(next["fence"], 2);
    let history = home.data().join("runs").join(PARENT).join("history").join(text(&lease["runId"]));
    let earlier: Value = serde_json::from_slice(&fs::read(history.join("run.json")).unwrap()).unwrap();
    assert_eq!((&earlier["status"], &earlier["fence"]), (&json!("failed"), &json!(1)));
    assert!(history.join("run_heartbeat.json").is_file());
    assert_eq!(home.run_file(PARENT, "run.json")["runId"], next["runId"]);
    home.verifies();
}

#[test]
fn a_result_that_does_not_read_is_reported_and_moves_nothing() {
    let home = Home::with_short_beats();
    home.named_task(PARENT, &[]);
    home.claim(PARENT, "swe-backend");
    let path = home.data().join("runs").join(PARENT).join("run_result.json");
    fs::write(path, r#"{"outcome": "finished"}"#).unwrap();
    let other = home.task(&[]);
    until("the file is read", || {
        home.run(&["task", "log", &other, "?"]).expect(0);
        home.types(PARENT).iter().any(|t| t == "protocol.message.rejected")
    });
    let rejected = home.last(PARENT, "protocol.message.rejected");
    assert_eq!(rejected["payload"]["type"], "run_result.json", "{rejected}");
    let moves = home.moves(PARENT);
    assert_eq!(moves[0], "ready → in-progress: claimed");
    // One more interval to mend it; then nobody is waited for any longer.
    until_reclaimed(&home, PARENT);
    assert_eq!(home.moves(PARENT)[1], "in-progress → ready: stale_heartbeat_reclaim");
    let count = home.types(PARENT).iter().filter(|t| *t == "protocol.message.rejected").count();
    assert_eq!(count, 1, "said once");
}

#[test]
fn a_result_of_another_fence_is_never_applied() {
    let home = Home::with_short_beats();
    home.named_task(PARENT, &[]);
    home.claim(PARENT, "swe-backend");
    leave_result(&home, PARENT, "done");
    let path = home.data().join("runs").join(PARENT).join("run_result.json");
    let result: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    fs::write(&path, with(result, "fence", json!(7)).to_string()).unwrap();
    until_reclaimed(&home, PARENT);
    assert_eq!(home.moves(PARENT)[1], "in-progress → ready: stale_heartbeat_reclaim");
    assert!(!home.types(PARENT).contains(&"task.completed".to_owned()));
}

#[test]
fn a_beat_keeps_a_run_alive_and_an_expired_lease_says_so() {
    let home = Home::new().with_env("BATON_SCHEDULER_LEASE_TTL", "300ms");
    home.named_task(PARENT, &[]);
    home.claim(PARENT, "swe-backend");
    until_reclaimed(&home, PARENT);
    assert_eq!(home.moves(PARENT)[1], "in-progress → ready: lease_expired_reclaim");
    // A heartbeat that was rewritten counts, also where it was too small a step to be recorded.
    let lasting = Home::new();
    lasting.named_task(PARENT, &[]);
    lasting.claim(PARENT, "swe-backend");
    for _ in 0..3 {
        let beat = lasting.run(&["task", "beat", PARENT, "--agent", "swe-backend", "--fence", "1", "--json"]);
        assert_eq!(beat.object()["fence"], 1);
    }
    assert_eq!(lasting.status(PARENT), "in-progress");
    lasting.accepted(report(PARENT, "swe-backend", "done"));
}

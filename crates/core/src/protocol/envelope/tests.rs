//! Every limit of a message, and the order of the checks.

use serde_json::{Value, json};

use super::*;
use crate::limits::{
    BLOCKERS_MAX, LIST_ITEM_CHARS_MAX, LIST_ITEMS_MAX, NOTES_CHARS_MAX, PATH_CHARS_MAX, PROGRESS_CHARS_MAX,
    REASON_CHARS_MAX,
};
use crate::protocol::{INVALID_ACCEPTANCE_CRITERIA, Tests};
use crate::task::{Outcome, Status};

const TASK: &str = "TASK-2026-02-09-057";

fn envelope(kind: &str, payload: &Value) -> Value {
    json!({
        "protocol": "aof", "version": 1, "type": kind, "taskId": TASK, "fromAgent": "swe-backend",
        "toAgent": "dispatcher", "sentAt": "2026-02-09T21:10:00.000Z", "payload": payload,
    })
}

fn report() -> Value {
    let payload = json!({
        "outcome": "done", "summaryRef": "outputs/summary.md", "deliverables": ["src/a.ts"],
        "tests": {"total": 3, "passed": 1, "failed": 1}, "blockers": [], "notes": "",
    });
    envelope("completion.report", &payload)
}

fn update() -> Value {
    envelope("status.update", &json!({"taskId": TASK, "agentId": "swe-backend", "progress": "half"}))
}

fn request() -> Value {
    let payload = json!({
        "taskId": TASK, "parentTaskId": "TASK-2026-02-09-001", "fromAgent": "swe-backend", "toAgent": "swe-qa",
        "acceptanceCriteria": ["green"], "expectedOutputs": ["tests/report.md"], "contextRefs": ["src/a.ts"],
        "constraints": ["none"], "dueBy": "2026-02-10T12:00:00+01:00",
    });
    envelope("handoff.request", &payload)
}

fn rejected() -> Value {
    envelope("handoff.rejected", &json!({"taskId": TASK, "accepted": false, "reason": "no plan"}))
}

/// The message with the value at a pointer put in, or taken away where it is `null`'s stand-in, `ABSENT`.
fn with(mut message: Value, pointer: &str, value: Value) -> Value {
    let (parent, name) = pointer.rsplit_once('/').unwrap();
    let parent = message.pointer_mut(parent).unwrap().as_object_mut().unwrap();
    if value == json!("ABSENT") {
        parent.remove(name);
    } else {
        parent.insert(name.to_owned(), value);
    }
    message
}

/// What comes of a message: `ok`, or the refusal. Text and value must agree.
fn check(message: &Value, expected: &str) {
    let answer = read(message.to_string().as_bytes());
    assert_eq!(read_value(message.clone()), answer);
    let text = answer.map_or_else(|e| e.to_string(), |_| "ok".to_owned());
    assert_eq!(text, expected, "{message}");
}

fn text(chars: usize) -> Value {
    Value::from("ä".repeat(chars))
}

fn list(items: usize, chars: usize) -> Value {
    vec!["x".repeat(chars); items].into()
}

#[test]
fn a_report_is_read_with_everything_in_it() {
    let message = read(with(report(), "/fence", json!(7)).to_string().as_bytes()).unwrap();
    assert_eq!(message.type_name(), "completion.report");
    assert_eq!((message.task.as_str(), message.from.as_str()), (TASK, "swe-backend"));
    assert_eq!((message.to.as_str(), message.fence), ("dispatcher", Some(7)));
    assert_eq!(message.sent_at, "2026-02-09T21:10:00.000Z");
    let expected = CompletionReport {
        outcome: Outcome::Done,
        summary_ref: "outputs/summary.md".into(),
        deliverables: vec!["src/a.ts".into()],
        tests: Tests { total: 3, passed: 1, failed: 1 },
        blockers: vec![],
        notes: String::new(),
    };
    assert_eq!(message.body, Body::Completion(expected));
}

#[test]
fn what_this_version_does_not_know_is_kept() {
    let message = with(with(report(), "/projectId", json!("p")), "/payload/mood", json!("fine"));
    check(&message, "ok");
    assert_eq!(Value::Object(read_value(message.clone()).unwrap().raw), message);
}

#[test]
fn a_message_larger_than_the_limit_is_not_looked_into() {
    let mut text = report().to_string().into_bytes();
    text.resize(ENVELOPE_BYTES_MAX, b' ');
    assert!(read(&text).is_ok());
    text.push(b' ');
    let rejection = read(&text).unwrap_err();
    assert_eq!(
        rejection.to_string(),
        "payload_too_large: message: expected at most 10485760 bytes, got 10485761 bytes"
    );
    assert_eq!(read(&vec![0xff; ENVELOPE_BYTES_MAX + 1]).unwrap_err().reason, Reason::PayloadTooLarge);
}

#[test]
fn every_field_of_the_envelope_is_needed_and_judged() {
    let bad = |pointer: &str, value: Value, expected: &str| {
        check(&with(report(), pointer, value), &format!("invalid_envelope: {expected}"));
    };
    bad("/version", json!("ABSENT"), "version: expected 1, got nothing");
    bad("/version", json!(2), "version: expected 1, got 2");
    bad("/version", json!("1"), "version: expected 1, got \"1\"");
    bad("/type", json!("ABSENT"), "type: expected a string, got nothing");
    bad("/type", json!(5), "type: expected a string, got 5");
    let task = "taskId: expected a task id (TASK-YYYY-MM-DD- and three or more digits, or a longer suffix of a-z 0-9), got";
    bad("/taskId", json!("TASK-1"), &format!("{task} \"TASK-1\""));
    bad("/taskId", json!("../../etc/passwd"), &format!("{task} \"../../etc/passwd\""));
    bad("/taskId", json!(null), "taskId: expected a string, got null");
    let agent = "fromAgent: expected an agent name (a lower-case letter or digit, then up to 63 of a-z 0-9 . _ -), got";
    bad("/fromAgent", json!("Swe"), &format!("{agent} \"Swe\""));
    bad("/fromAgent", json!(""), &format!("{agent} \"\""));
    bad("/toAgent", json!("ABSENT"), "toAgent: expected a string, got nothing");
    bad("/toAgent", json!(" "), "toAgent: expected a name without control characters, got \" \"");
    bad(
        "/toAgent",
        json!("a\u{1b}"),
        "toAgent: expected a name without control characters, got \"a\\u{1b}\"",
    );
    bad(
        "/toAgent",
        text(RECEIVER_CHARS_MAX + 1),
        "toAgent: expected at most 256 characters, got 257 characters",
    );
    let time = "sentAt: expected a time of RFC 3339, such as 2026-01-31T09:30:00.000Z, got";
    bad("/sentAt", json!("yesterday"), &format!("{time} \"yesterday\""));
    bad("/sentAt", json!(1), "sentAt: expected a string, got 1");
    bad("/fence", json!(-1), "fence: expected an integer from 0 to 2^53−1, got -1");
    bad("/fence", json!(1.5), "fence: expected an integer from 0 to 2^53−1, got 1.5");
    bad("/fence", json!(null), "fence: expected an integer from 0 to 2^53−1, got null");
    bad("/payload", json!("ABSENT"), "payload: expected an object, got nothing");
    bad("/payload", json!([1]), "payload: expected an object, got an array of 1");
    check(&with(report(), "/sentAt", json!("2026-02-09T21:10:00+01:00")), "ok");
    check(&with(report(), "/taskId", json!("TASK-2026-02-09-1000")), "ok");
}

#[test]
fn a_type_that_nobody_knows_is_told_from_a_broken_envelope() {
    let types = "completion.report, status.update, handoff.request, handoff.accepted, handoff.rejected";
    let message = with(report(), "/type", json!("task.delete"));
    check(&message, &format!("unknown_type: type: expected {types}, got \"task.delete\""));
    let broken = with(message, "/sentAt", json!("ABSENT"));
    check(&broken, "invalid_envelope: sentAt: expected a string, got nothing");
}

#[test]
fn a_refusal_says_whose_message_it_was_as_far_as_it_can_be_read() {
    let rejection = read_value(with(report(), "/payload/outcome", json!(1))).unwrap_err();
    assert_eq!(rejection.task, Some(TASK.parse().unwrap()));
    assert_eq!(rejection.from, Some("swe-backend".parse().unwrap()));
    assert_eq!(rejection.message_type.as_deref(), Some("completion.report"));
    let rejection = read_value(with(report(), "/taskId", json!(1))).unwrap_err();
    assert_eq!((rejection.task, rejection.from.is_some()), (None, true));
    let rejection = read_value(with(report(), "/type", json!("x".repeat(200)))).unwrap_err();
    assert_eq!(rejection.message_type.unwrap().chars().count(), 81);
}

#[test]
fn a_payload_must_speak_of_the_task_of_its_envelope() {
    let other = json!("TASK-2026-02-09-058");
    let mismatch = format!("taskId_mismatch: payload.taskId: expected {TASK}, got \"TASK-2026-02-09-058\"");
    for message in [report(), update(), request(), rejected()] {
        check(&with(message, "/payload/taskId", other.clone()), &mismatch);
    }
    check(&with(report(), "/payload/taskId", json!(TASK)), "ok");
    check(
        &with(report(), "/payload/taskId", json!(1)),
        "invalid_envelope: payload.taskId: expected a string, got 1",
    );
    for message in [update(), request(), rejected()] {
        let without = with(message, "/payload/taskId", json!("ABSENT"));
        check(&without, "invalid_envelope: payload.taskId: expected a string, got nothing");
    }
}

#[test]
fn a_report_that_does_not_fit_names_the_field() {
    let bad = |pointer: &str, value: Value, expected: &str| {
        check(&with(report(), pointer, value), &format!("invalid_envelope: payload.{expected}"));
    };
    bad(
        "/payload/outcome",
        json!("DONE"),
        "outcome: expected done, blocked, needs_review or partial, got \"DONE\"",
    );
    bad("/payload/outcome", json!("ABSENT"), "outcome: expected a string, got nothing");
    bad("/payload/summaryRef", json!("ABSENT"), "summaryRef: expected a string, got nothing");
    bad(
        "/payload/summaryRef",
        text(PATH_CHARS_MAX + 1),
        "summaryRef: expected at most 256 characters, got 257 characters",
    );
    let path = "expected a relative path without .. parts, backslashes or control characters, got";
    bad("/payload/summaryRef", json!("/etc/passwd"), &format!("summaryRef: {path} \"/etc/passwd\""));
    bad("/payload/deliverables", json!(["a", "../b"]), &format!("deliverables[1]: {path} \"../b\""));
    bad("/payload/deliverables", json!("a"), "deliverables: expected an array of strings, got \"a\"");
    bad("/payload/deliverables", json!([1]), "deliverables[0]: expected a string, got 1");
    bad(
        "/payload/deliverables",
        list(LIST_ITEMS_MAX + 1, 1),
        "deliverables: expected at most 50 items, got 51 items",
    );
    bad("/payload/tests", json!("ABSENT"), "tests: expected an object, got nothing");
    let integer = "expected an integer from 0 to 2^53−1, got";
    bad("/payload/tests/passed", json!(-1), &format!("tests.passed: {integer} -1"));
    bad("/payload/tests/total", json!(1.0), &format!("tests.total: {integer} 1.0"));
    bad("/payload/tests/failed", json!("ABSENT"), &format!("tests.failed: {integer} nothing"));
    bad("/payload/tests/failed", json!(3), "tests: expected passed + failed ≤ total, got 1 + 3 > 3");
    bad("/payload/blockers", list(BLOCKERS_MAX + 1, 1), "blockers: expected at most 20 items, got 21 items");
    let long = "expected at most 256 characters, got 257 characters";
    bad("/payload/blockers", list(1, LIST_ITEM_CHARS_MAX + 1), &format!("blockers[0]: {long}"));
    bad("/payload/notes", json!("ABSENT"), "notes: expected a string, got nothing");
    bad(
        "/payload/notes",
        text(NOTES_CHARS_MAX + 1),
        "notes: expected at most 10000 characters, got 10001 characters",
    );
}

#[test]
fn a_report_at_its_limits_is_taken() {
    let good = |pointer: &str, value: Value| check(&with(report(), pointer, value), "ok");
    good("/payload/summaryRef", text(PATH_CHARS_MAX));
    good("/payload/deliverables", list(LIST_ITEMS_MAX, LIST_ITEM_CHARS_MAX));
    good("/payload/blockers", list(BLOCKERS_MAX, LIST_ITEM_CHARS_MAX));
    good("/payload/notes", text(NOTES_CHARS_MAX));
    good("/payload/tests/failed", json!(2));
    good("/payload/deliverables", json!("ABSENT"));
    good("/payload/blockers", json!("ABSENT"));
    // Blockers are welcome, not needed, when the outcome is blocked.
    good("/payload/outcome", json!("blocked"));
}

#[test]
fn an_update_says_at_least_one_thing() {
    let nothing = "invalid_envelope: payload.status: expected a status, or progress, blockers or notes that are not empty, got none of them";
    let silent = with(update(), "/payload/progress", json!("ABSENT"));
    check(&silent, nothing);
    check(&with(silent.clone(), "/payload/blockers", json!([])), nothing);
    check(&with(silent.clone(), "/payload/blockers", json!([" "])), nothing);
    check(&with(silent.clone(), "/payload/notes", json!("")), nothing);
    for (field, value) in [("status", json!("review")), ("blockers", json!(["key"])), ("notes", json!("n"))] {
        check(&with(silent.clone(), &format!("/payload/{field}"), value), "ok");
    }
}

#[test]
fn an_update_keeps_its_limits_and_its_words() {
    let bad = |pointer: &str, value: Value, expected: &str| {
        check(&with(update(), pointer, value), &format!("invalid_envelope: payload.{expected}"));
    };
    let statuses = "backlog, ready, in-progress, blocked, review, done, cancelled or deadletter";
    bad("/payload/status", json!("paused"), &format!("status: expected {statuses}, got \"paused\""));
    bad("/payload/status", json!(null), "status: expected a string, got null");
    bad("/payload/agentId", json!("ABSENT"), "agentId: expected a string, got nothing");
    bad(
        "/payload/progress",
        text(PROGRESS_CHARS_MAX + 1),
        "progress: expected at most 1000 characters, got 1001 characters",
    );
    bad(
        "/payload/notes",
        text(NOTES_CHARS_MAX + 1),
        "notes: expected at most 10000 characters, got 10001 characters",
    );
    bad("/payload/blockers", list(BLOCKERS_MAX + 1, 1), "blockers: expected at most 20 items, got 21 items");
    check(&with(update(), "/payload/progress", text(PROGRESS_CHARS_MAX)), "ok");
    let message = read_value(with(update(), "/payload/status", json!("in-progress"))).unwrap();
    assert!(matches!(message.body, Body::Status(StatusUpdate { status: Some(Status::InProgress), .. })));
}

#[test]
fn a_handoff_request_is_judged_but_for_its_criteria() {
    let bad = |pointer: &str, value: Value, expected: &str| {
        check(&with(request(), pointer, value), &format!("invalid_envelope: payload.{expected}"));
    };
    bad("/payload/parentTaskId", json!("ABSENT"), "parentTaskId: expected a string, got nothing");
    bad("/payload/fromAgent", json!("ABSENT"), "fromAgent: expected a string, got nothing");
    bad("/payload/toAgent", json!("ABSENT"), "toAgent: expected a string, got nothing");
    bad("/payload/dueBy", json!("ABSENT"), "dueBy: expected a string, got nothing");
    let path = "expected a relative path without .. parts, backslashes or control characters, got";
    bad("/payload/expectedOutputs", json!([""]), &format!("expectedOutputs[0]: {path} \"\""));
    bad("/payload/contextRefs", json!(["a\\b"]), &format!("contextRefs[0]: {path} \"a\\\\b\""));
    for name in ["expectedOutputs", "contextRefs", "constraints"] {
        let pointer = format!("/payload/{name}");
        bad(&pointer, list(51, 1), &format!("{name}: expected at most 50 items, got 51 items"));
        bad(
            &pointer,
            list(1, 257),
            &format!("{name}[0]: expected at most 256 characters, got 257 characters"),
        );
    }
    for name in ["acceptanceCriteria", "expectedOutputs", "contextRefs", "constraints"] {
        check(&with(request(), &format!("/payload/{name}"), json!("ABSENT")), "ok");
        check(&with(request(), &format!("/payload/{name}"), list(LIST_ITEMS_MAX, 256)), "ok");
    }
}

/// The criteria that are kept, and the warnings in words.
fn criteria(value: Value) -> (Vec<String>, Vec<String>) {
    let message = read_value(with(request(), "/payload/acceptanceCriteria", value)).unwrap();
    let Body::HandoffRequest(request) = message.body else { panic!("a request") };
    assert!(request.warnings.iter().all(|warning| warning.reason == INVALID_ACCEPTANCE_CRITERIA));
    (request.acceptance_criteria, request.warnings.iter().map(|warning| warning.detail.to_string()).collect())
}

#[test]
fn criteria_that_do_not_fit_are_left_out_with_a_warning() {
    let at = "payload.acceptanceCriteria";
    assert_eq!(criteria(json!(["a"])), (vec!["a".to_owned()], vec![]));
    assert_eq!(
        criteria(json!(["a", 1, "x".repeat(257), "b"])),
        (
            vec!["a".to_owned(), "b".to_owned()],
            vec![
                format!("{at}[1]: expected a string, got 1"),
                format!("{at}[2]: expected at most 256 characters, got 257 characters"),
            ]
        )
    );
    assert_eq!(
        criteria(json!("all green")),
        (vec![], vec![format!("{at}: expected an array of strings, got \"all green\"")])
    );
    let (kept, warnings) = criteria(list(LIST_ITEMS_MAX + 1, 1));
    assert_eq!(kept.len(), LIST_ITEMS_MAX);
    assert_eq!(warnings, [format!("{at}: expected at most 50 items, got 51 items")]);
    assert_eq!(criteria(vec![1; 10_000].into()).1.len(), LIST_ITEMS_MAX + 1);
}

#[test]
fn an_answer_to_a_handoff_says_what_its_type_says() {
    let accepted = envelope("handoff.accepted", &json!({"taskId": TASK, "accepted": true}));
    check(&accepted, "ok");
    let bad = |message: Value, pointer: &str, value: Value, expected: &str| {
        check(&with(message, pointer, value), &format!("invalid_envelope: payload.{expected}"));
    };
    bad(accepted.clone(), "/payload/accepted", json!(false), "accepted: expected true, got false");
    bad(accepted, "/payload/accepted", json!("ABSENT"), "accepted: expected true, got nothing");
    check(&rejected(), "ok");
    bad(rejected(), "/payload/accepted", json!(true), "accepted: expected false, got true");
    bad(rejected(), "/payload/reason", json!("ABSENT"), "reason: expected a string, got nothing");
    bad(rejected(), "/payload/reason", json!(" "), "reason: expected a reason in words, got \" \"");
    let long = text(REASON_CHARS_MAX + 1);
    bad(rejected(), "/payload/reason", long, "reason: expected at most 512 characters, got 513 characters");
    check(&with(rejected(), "/payload/reason", text(REASON_CHARS_MAX)), "ok");
}

#[test]
fn what_a_refusal_repeats_is_short() {
    let message = with(report(), "/payload/outcome", json!("\u{1b}".repeat(100_000)));
    let text = read_value(message).unwrap_err().to_string();
    assert!(text.len() < 800, "{}", text.len());
    assert!(!text.contains('\u{1b}'));
}

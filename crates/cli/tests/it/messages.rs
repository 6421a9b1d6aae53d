//! Messages through `baton send`: where they are found, why they are refused, who may send them, and what the same again leads to.

use std::fs;

use serde_json::{Value, json};

use crate::support::Home;
use crate::task_support::{
    answer, envelope, fixture, handoff, merged, report, text, texts, update, with, without,
};

const NOBODY: &str = "TASK-2020-01-01-001";

/// A task that an agent works on.
fn claimed(home: &Home, agent: &str) -> String {
    let id = home.task(&[]);
    home.claim(&id, agent);
    id
}

/// The records after a position.
fn since(home: &Home, count: usize) -> Vec<Value> {
    home.events().split_off(count)
}

#[test]
fn every_bad_fixture_is_refused_for_the_reason_in_its_name_and_logged() {
    let home = Home::new();
    for id in ["057", "058", "059", "060", "061", "062"] {
        home.named_task(&format!("TASK-2026-02-09-{id}"), &[]);
    }
    let dir = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/envelopes");
    let mut seen = 0;
    for entry in fs::read_dir(dir).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(reason) = name.strip_prefix("bad-").and_then(|name| name.split('-').next()) else {
            continue;
        };
        seen += 1;
        let before = home.events().len();
        let answer = home.rejected(fixture(name.trim_end_matches(".json")), reason);
        let logged = since(&home, before);
        let types: Vec<String> = logged.iter().map(|record| text(&record["type"])).collect();
        assert_eq!(types, texts(&answer["events"]), "{name}: what it says is what is there");
        match reason {
            "not_a_message" => assert!(types.is_empty(), "{name}"),
            "unknown_type" => assert_eq!(types, ["protocol.message.unknown"], "{name}"),
            reason => {
                assert_eq!(types[0], "protocol.message.rejected", "{name}");
                assert_eq!(logged[0]["payload"]["reason"], reason, "{name}");
                assert_eq!(logged[0]["actor"]["role"], "system");
                assert_eq!(logged[0]["payload"]["detail"], answer["detail"], "{name}");
            }
        }
    }
    assert!(seen >= 20, "{seen} fixtures");
    home.verifies();
}

#[test]
fn ten_mebibytes_are_read_and_a_byte_more_is_not() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let max = 10 << 20;
    let mut message = update(&id, "swe-backend", &json!({"progress": "a long way"})).to_string();
    message += &" ".repeat(max - message.len());
    let before = home.events().len();
    let answer = home.rejected(format!("{message} "), "payload_too_large");
    assert_eq!(texts(&answer["events"]), ["protocol.message.rejected"]);
    let logged = since(&home, before);
    assert_eq!(logged[0]["payload"]["reason"], "payload_too_large");
    assert_eq!(logged[0]["trace"], "ledger", "nobody has looked whose it is");
    home.rejected("x".repeat(max + 1), "payload_too_large");
    home.accepted(message);
    assert!(text(&home.show(&id)["body"]).contains("Progress: a long way"));
    let received = home.last(&id, "protocol.message.received");
    assert_eq!(received["artifacts"][0]["bytes"], max, "too large for an event, so it is kept beside");
    home.verifies();
}

#[test]
fn a_message_is_found_wherever_an_event_carries_it() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let mut count = 0;
    let mut message = || {
        count += 1;
        update(&id, "swe-backend", &json!({"progress": format!("step {count}")}))
    };
    let mut forms = vec![
        message().to_string(),
        serde_json::to_string_pretty(&message()).unwrap(),
        format!("\n\t {}", message()),
        format!("AOF/1 {}", message()),
        json!(message().to_string()).to_string(),
        json!(format!("AOF/1 {}", message())).to_string(),
    ];
    for place in ["payload", "message", "content"] {
        forms.push(json!({"event": "message_received", place: message()}).to_string());
        forms.push(json!({"event": "message_received", place: message().to_string()}).to_string());
        forms.push(json!({"event": "message_received", place: format!("AOF/1 {}", message())}).to_string());
    }
    let total = forms.len();
    for form in forms {
        assert_eq!(home.accepted(&form), ["protocol.message.received", "task.logged"], "{form}");
    }
    let body = text(&home.show(&id)["body"]);
    assert_eq!(body.lines().filter(|line| line.contains("Progress: step ")).count(), total, "{body}");
    assert_eq!(body.matches("## Work Log").count(), 1);

    let file = home.work().join("message.json");
    fs::write(&file, message().to_string()).unwrap();
    home.run(&["send", "message.json"]).expect(0);
    assert_eq!(home.run(&["send", "missing.json"]).refused_with(3, "U005", "missing.json").stdout, "");
}

#[test]
fn what_was_never_meant_as_a_message_leaves_no_trace() {
    let home = Home::new();
    home.task(&[]);
    let cases = [
        "hello there".to_owned(),
        String::new(),
        " \n".into(),
        "42".into(),
        "true".into(),
        "null".into(),
        "\"just a string\"".into(),
        "aof/1 {\"protocol\":\"aof\"}".into(),
        json!({"event": "message_received", "content": "hello there"}).to_string(),
    ];
    for text in cases {
        let answer = home.appends_nothing(|home| home.rejected(&text, "not_a_message"));
        assert_eq!(answer["events"], json!([]), "{text}");
    }
}

#[test]
fn what_was_meant_and_does_not_parse_is_invalid_json() {
    let home = Home::new();
    let deep = format!("{}{}", "{\"a\":".repeat(10_000), "1").to_string();
    let arrays = format!("AOF/1 {}{}", "[".repeat(10_000), "]".repeat(10_000));
    let cases = [
        "{".to_owned(),
        "{\"protocol\":\"aof\",}".into(),
        "AOF/1 {\"protocol\":".into(),
        "AOF/1 nonsense".into(),
        "{\"protocol\":\"aof\",\"protocol\":\"aof\"}".into(),
        "{\"protocol\":\"aof\"} and more".into(),
        "{\"protocol\":\"aof\",\"n\":1e999}".into(),
        json!({"content": "{\"protocol\":"}).to_string(),
        deep,
        format!("{}1{}", "{\"a\":".repeat(10_000), "}".repeat(10_000)),
        arrays,
    ];
    for message in cases {
        let answer = home.rejected(&message, "invalid_json");
        assert_eq!(texts(&answer["events"]), ["protocol.message.rejected"]);
        assert!(!text(&answer["detail"]["text"]).is_empty(), "it says where");
    }
    // Bytes that are no text.
    let ended = home.run_with(&["send", "--json"], b"{\"protocol\":\"aof\xff\"}".to_vec());
    assert_eq!(ended.value(4)["reason"], "invalid_json");
    home.verifies();
}

#[test]
fn an_unknown_type_is_logged_as_such_against_its_task() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    home.rejected(envelope("party.time", &id, "swe-backend", &json!({})), "unknown_type");
    let logged = home.last(&id, "protocol.message.unknown");
    assert_eq!(logged["payload"]["type"], "party.time");
    assert_eq!(logged["payload"]["fromAgent"], "swe-backend");
    assert!(!home.types(&id).contains(&"protocol.message.rejected".into()));
    // Also where its task is nobody's.
    home.rejected(envelope("party.time", NOBODY, "swe-backend", &json!({})), "unknown_type");
    assert_eq!(home.last(NOBODY, "protocol.message.unknown")["trace"], "ledger");
    // An envelope that is not sound is not of an unknown type.
    let broken = with(envelope("party.time", &id, "swe-backend", &json!({})), "version", json!(2));
    home.rejected(broken, "invalid_envelope");
}

#[test]
fn a_task_that_does_not_exist_is_refused_for_every_type() {
    let home = Home::new();
    let parent = claimed(&home, "swe-backend");
    let messages = [
        report(NOBODY, "swe-backend", "done"),
        update(NOBODY, "swe-backend", &json!({"notes": "x"})),
        handoff(NOBODY, &parent, "swe-backend", "swe-qa"),
        answer(NOBODY, "swe-qa", None),
        answer(NOBODY, "swe-qa", Some("no")),
    ];
    for message in messages {
        let answer = home.rejected(&message, "task_not_found");
        let is_request = message["type"] == "handoff.request";
        let expected: &[&str] = if is_request {
            &["protocol.message.rejected", "delegation.rejected"]
        } else {
            &["protocol.message.rejected"]
        };
        assert_eq!(texts(&answer["events"]), expected, "{message}");
    }
    assert_eq!(home.last(NOBODY, "delegation.rejected")["payload"]["reason"], "task_not_found");
    assert!(home.records(NOBODY).iter().all(|record| record["trace"] == "ledger"));
    assert!(!home.data().join("runs").join(NOBODY).exists());
}

#[test]
fn who_may_send_a_report_or_an_update() {
    let home = Home::new();
    // Nobody works on it, and it is for nobody.
    let free = home.task(&[]);
    for message in
        [report(&free, "swe-backend", "done"), update(&free, "swe-backend", &json!({"notes": "x"}))]
    {
        home.rejected(message, "unassigned_task");
    }
    // It is for somebody, who may speak before it is claimed.
    let routed = home.task(&["--agent", "swe-qa"]);
    let answer = home.rejected(update(&routed, "swe-backend", &json!({"notes": "x"})), "unauthorized_agent");
    assert_eq!(answer["detail"], json!({"expected": "swe-qa", "received": "swe-backend"}));
    home.accepted(update(&routed, "swe-qa", &json!({"notes": "I have seen it"})));
    // The holder of the lease goes before whom it is for.
    home.claim(&routed, "swe-backend");
    for message in [report(&routed, "swe-qa", "done"), update(&routed, "swe-qa", &json!({"notes": "mine"}))] {
        let answer = home.rejected(message, "unauthorized_agent");
        assert_eq!(answer["detail"], json!({"expected": "swe-backend", "received": "swe-qa"}));
    }
    let logged = home.last(&routed, "protocol.message.rejected");
    assert_eq!(logged["payload"]["detail"], json!({"expected": "swe-backend", "received": "swe-qa"}));
    assert_eq!(logged["payload"]["fromAgent"], "swe-qa");
    assert_eq!(home.status(&routed), "in-progress");
    // A name inside the payload gives no rights.
    let forged =
        with(update(&routed, "swe-qa", &json!({"notes": "x"})), "payload.agentId", json!("swe-backend"));
    home.rejected(forged, "unauthorized_agent");
    home.accepted(report(&routed, "swe-backend", "done"));
}

#[test]
fn an_operator_may_always() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    home.accepted(update(&id, "operator", &json!({"notes": "hurry"})));
    assert_eq!(home.last(&id, "task.logged")["actor"]["role"], "operator");
    home.accepted(report(&id, "operator", "needs_review"));
    assert_eq!(home.status(&id), "review");
    // What no agent may ask for by a status.
    home.accepted(update(&id, "operator", &json!({"status": "done", "notes": "good enough"})));
    assert_eq!(home.moves(&id).last().unwrap(), "review → done: good enough");
    assert_eq!(home.phase(&id), "COMPLETED");
    let free = home.task(&[]);
    home.accepted(update(&free, "operator", &json!({"status": "cancelled", "notes": "not wanted"})));
    assert_eq!(home.status(&free), "cancelled");
    // In-progress comes by a claim alone, and the table is the table.
    let other = home.task(&[]);
    let events = home.accepted(update(&other, "operator", &json!({"status": "in-progress", "notes": "go"})));
    assert_eq!(events, ["protocol.message.received", "task.logged"]);
    home.accepted(update(&other, "operator", &json!({"status": "done", "notes": "go"})));
    assert_eq!(home.status(&other), "ready");
    // Dependencies hold for everyone.
    let waits = home.task(&["--depends-on", &other]);
    home.run(&["task", "move", &waits, "blocked", "--reason", "x"]).expect(0);
    home.run(&["task", "move", &waits, "review", "--reason", "x"]).expect(0);
    home.accepted(update(&waits, "operator", &json!({"status": "done", "notes": "now"})));
    assert_eq!(home.status(&waits), "review");
    // Handoffs too.
    let parent = home.task(&[]);
    home.accepted(handoff(&other, &parent, "operator", "swe-qa"));
    home.accepted(answer(&other, "operator", None));
    home.verifies();
    home.replays();
}

#[test]
fn an_agents_update_moves_only_to_review_blocked_and_ready() {
    let home = Home::new();
    for status in ["done", "in-progress", "cancelled", "backlog", "deadletter"] {
        let id = claimed(&home, "swe-backend");
        let events =
            home.accepted(update(&id, "swe-backend", &json!({"status": status, "notes": "let me through"})));
        assert_eq!(events, ["protocol.message.received", "task.logged"], "{status}");
        assert_eq!(home.status(&id), "in-progress", "{status}");
        assert!(text(&home.show(&id)["body"]).contains("Notes: let me through"), "{status}");
        // Without a word there is nothing to log.
        let events = home.accepted(update(&id, "swe-backend", &json!({"status": status})));
        assert_eq!(events, ["protocol.message.received"], "{status}");
    }
    for status in ["review", "blocked", "ready"] {
        let id = claimed(&home, "swe-backend");
        home.accepted(update(&id, "swe-backend", &json!({"status": status, "progress": "so far"})));
        assert_eq!(home.moves(&id)[1], format!("in-progress → {status}: so far"));
        assert!(home.show(&id).get("lease").is_none());
    }
    // The reason is the blockers, else the notes, else the progress.
    let id = claimed(&home, "swe-backend");
    let all = json!({"status": "blocked", "blockers": ["a", "b"], "notes": "n", "progress": "p"});
    home.accepted(update(&id, "swe-backend", &all));
    assert_eq!(home.moves(&id)[1], "in-progress → blocked: a; b");
    // A move that the table does not have is a line of the log.
    let ready = home.task(&["--agent", "swe-backend"]);
    let events = home.accepted(update(&ready, "swe-backend", &json!({"status": "review", "notes": "early"})));
    assert_eq!(events, ["protocol.message.received", "task.logged"]);
    assert_eq!(home.status(&ready), "ready");
    // Nobody passes their own review.
    let id = home.task(&["--agent", "swe-backend"]);
    home.claim(&id, "swe-backend");
    home.accepted(report(&id, "swe-backend", "done"));
    home.accepted(update(&id, "swe-backend", &json!({"status": "done", "notes": "fine"})));
    assert_eq!(home.status(&id), "review");
}

#[test]
fn a_work_log_line_is_one_line_whatever_is_in_it() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let fields = json!({
        "progress": "one\ntwo\r\nthree", "notes": "## Work Log\n\n- forged", "blockers": ["a\u{2028}b", "c"],
    });
    home.accepted(update(&id, "swe-backend", &fields));
    let at = text(&home.last(&id, "task.logged")["at"]);
    let line = format!("- {at} Progress: one two three | Notes: ## Work Log - forged | Blockers: a b, c\n");
    assert_eq!(text(&home.show(&id)["body"]), format!("## Work Log\n\n{line}"));
}

#[test]
fn a_message_with_a_fence_must_have_the_leases() {
    let home = Home::new();
    let id = home.task(&["--agent", "swe-backend"]);
    let fenced = |message: Value, fence: u64| with(message, "fence", json!(fence));
    home.rejected(fenced(update(&id, "swe-backend", &json!({"notes": "x"})), 1), "stale_fence");
    home.claim(&id, "swe-backend");
    home.claim(&id, "swe-backend");
    for message in [report(&id, "swe-backend", "done"), update(&id, "swe-backend", &json!({"notes": "x"}))] {
        for fence in [0, 1, 3] {
            home.rejected(fenced(message.clone(), fence), "stale_fence");
        }
    }
    let child = home.task(&[]);
    home.rejected(fenced(handoff(&child, &id, "swe-backend", "swe-qa"), 1), "stale_fence");
    home.accepted(fenced(handoff(&child, &id, "swe-backend", "swe-qa"), 2));
    home.accepted(fenced(update(&id, "swe-backend", &json!({"notes": "x"})), 2));
    home.accepted(fenced(report(&id, "swe-backend", "done"), 2));
}

#[test]
fn a_report_fits_only_where_somebody_works_or_waits() {
    let home = Home::new();
    let routed = |more: &[&str]| home.task(&[&["--agent", "swe-backend"], more].concat());
    let moved = |id: &str, to: &str| {
        home.run(&["task", "move", id, to, "--reason", "x"]).expect(0);
    };
    let ready = routed(&[]);
    let cancelled = routed(&[]);
    moved(&cancelled, "cancelled");
    let dead = routed(&[]);
    moved(&dead, "deadletter");
    let done = routed(&["--no-review"]);
    home.claim(&done, "swe-backend");
    home.accepted(report(&done, "swe-backend", "done"));
    for id in [&ready, &cancelled, &dead, &done] {
        let status = home.status(id);
        let other = with(report(id, "swe-backend", "done"), "payload.notes", json!("once more"));
        let answer = home.rejected(other, "invalid_state");
        assert!(text(&answer["detail"]["text"]).contains(&status), "{answer}");
        assert_eq!(home.status(id), status);
    }
    // After the end of a task its trace is closed, and what is refused stands in the ledger's own.
    assert_eq!(home.last(&done, "protocol.message.rejected")["trace"], "ledger");
    let blocked = routed(&[]);
    moved(&blocked, "blocked");
    home.accepted(report(&blocked, "swe-backend", "needs_review"));
    assert_eq!(home.status(&blocked), "review");
    home.accepted(report(&blocked, "swe-backend", "blocked"));
    assert_eq!(home.status(&blocked), "blocked");
    home.verifies();
}

#[test]
fn the_same_message_again_is_accepted_and_appends_nothing() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let said = update(&id, "swe-backend", &json!({"progress": "half"}));
    home.accepted(&said);
    let later = with(said.clone(), "sentAt", json!("2026-02-09T23:00:00.000Z"));
    for again in [&said, &later] {
        assert!(home.appends_nothing(|home| home.accepted(again)).is_empty());
    }
    let done = report(&id, "swe-backend", "done");
    home.accepted(&done);
    let moves = home.moves(&id).len();
    // Its lease is gone by now, and the task moved; the same is still the same.
    assert!(home.appends_nothing(|home| home.accepted(&done)).is_empty());
    assert_eq!(home.moves(&id).len(), moves);
    home.run(&["task", "approve", &id]).expect(0);
    assert_eq!(home.status(&id), "done");
    assert!(home.appends_nothing(|home| home.accepted(&done)).is_empty(), "also after its end");

    // Another run is another story.
    let id = claimed(&home, "swe-backend");
    home.accepted(report(&id, "swe-backend", "partial"));
    home.run(&["task", "reject", &id, "--reason", "not yet"]).expect(0);
    home.claim(&id, "swe-backend");
    home.accepted(report(&id, "swe-backend", "partial"));
    assert_eq!(home.status(&id), "review");

    let (parent, child) = (claimed(&home, "swe-backend"), home.task(&[]));
    let request = handoff(&child, &parent, "swe-backend", "swe-qa");
    home.accepted(&request);
    assert!(home.appends_nothing(|home| home.accepted(&request)).is_empty());
    home.accepted(answer(&child, "swe-qa", None));
    assert!(home.appends_nothing(|home| home.accepted(answer(&child, "swe-qa", None))).is_empty());
    home.accepted(answer(&child, "swe-qa", Some("after all")));
    let again = home.appends_nothing(|home| home.accepted(answer(&child, "swe-qa", Some("after all"))));
    assert!(again.is_empty());
}

#[test]
fn unknown_fields_are_ignored_and_kept() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let message = merged(
        &with(update(&id, "swe-backend", &json!({"notes": "x"})), "payload.mood", json!("good")),
        &json!({"projectId": "p-1", "trace": {"a": [1]}}),
    );
    home.accepted(&message);
    assert_eq!(home.last(&id, "protocol.message.received")["payload"]["message"], message);
}

#[test]
fn handoffs_are_refused_for_every_reason_of_their_own() {
    let home = Home::new();
    let parent = claimed(&home, "swe-backend");
    let child = home.task(&[]);
    let refused = |message: &Value, reason: &str| {
        let answer = home.rejected(message, reason);
        assert_eq!(
            texts(&answer["events"]),
            ["protocol.message.rejected", "delegation.rejected"],
            "{reason}"
        );
        let logged = home.last(&text(&message["taskId"]), "delegation.rejected");
        assert_eq!(logged["payload"]["reason"], reason);
        answer
    };
    refused(&handoff(&child, NOBODY, "swe-backend", "swe-qa"), "parent_not_found");
    let answered = refused(&handoff(&child, &parent, "intruder", "swe-qa"), "unauthorized_agent");
    assert_eq!(answered["detail"], json!({"expected": "swe-backend", "received": "intruder"}));
    let lies = with(handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.fromAgent", json!("other"));
    refused(&lies, "unauthorized_agent");
    let free = home.task(&[]);
    refused(&handoff(&child, &free, "swe-backend", "swe-qa"), "unassigned_task");
    refused(&handoff(&parent, &parent, "swe-backend", "swe-qa"), "invalid_state");
    let busy = claimed(&home, "swe-qa");
    refused(&handoff(&busy, &parent, "swe-backend", "swe-qa"), "invalid_state");
    let other = with(handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.taskId", json!(parent));
    home.rejected(other, "taskId_mismatch");
    assert!(!home.folder("ready", &child).join("inputs/handoff.json").exists(), "nothing was written");

    // Nobody answers what nobody asked, and only who was asked does.
    home.rejected(answer(&child, "swe-qa", None), "no_handoff");
    home.rejected(answer(&child, "swe-qa", Some("no")), "no_handoff");
    home.accepted(handoff(&child, &parent, "swe-backend", "swe-qa"));
    let answered = home.rejected(answer(&child, "swe-backend", None), "unauthorized_agent");
    assert_eq!(answered["detail"], json!({"expected": "swe-qa", "received": "swe-backend"}));
    home.accepted(answer(&child, "swe-qa", None));

    // What was handed over is not handed on.
    home.claim(&child, "swe-qa");
    let grandchild = home.task(&[]);
    refused(&handoff(&grandchild, &child, "swe-qa", "swe-docs"), "nested_delegation");
    assert!(home.show(&grandchild).get("parentId").is_none());
    // By then it is too late to refuse it.
    home.accepted(report(&child, "swe-qa", "done"));
    home.run(&["task", "approve", &child]).expect(0);
    home.rejected(answer(&child, "swe-qa", Some("too much")), "invalid_state");
    home.verifies();
}

#[test]
fn criteria_that_do_not_fit_are_left_out_with_a_warning() {
    let home = Home::new();
    let (parent, child) = (claimed(&home, "swe-backend"), home.task(&[]));
    let criteria = json!(["All tests pass", 7, "x".repeat(257), "Update docs"]);
    let message =
        with(handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.acceptanceCriteria", criteria);
    let events = home.accepted(message);
    assert_eq!(events.iter().filter(|t| *t == "protocol.message.warning").count(), 2, "{events:?}");
    let warning = home.last(&child, "protocol.message.warning");
    assert_eq!(warning["payload"]["reason"], "invalid_acceptance_criteria");
    let written = fs::read_to_string(home.folder("ready", &child).join("inputs/handoff.json")).unwrap();
    let written: Value = serde_json::from_str(&written).unwrap();
    assert_eq!(written["acceptanceCriteria"], json!(["All tests pass", "Update docs"]));
    let none = home.task(&[]);
    let message = with(
        handoff(&none, &parent, "swe-backend", "swe-qa"),
        "payload.acceptanceCriteria",
        json!("not a list"),
    );
    home.accepted(message);
}

#[test]
fn a_handoff_in_other_words_replaces_the_files() {
    let home = Home::new();
    let (parent, child) = (claimed(&home, "swe-backend"), home.task(&[]));
    home.accepted(handoff(&child, &parent, "swe-backend", "swe-qa"));
    let page = home.folder("ready", &child).join("inputs/handoff.md");
    let first = fs::read_to_string(&page).unwrap();
    let other = with(
        handoff(&child, &parent, "swe-backend", "swe-docs"),
        "payload.constraints",
        json!(["No new dependencies"]),
    );
    home.accepted(other);
    let second = fs::read_to_string(&page).unwrap();
    assert_ne!(first, second);
    assert!(second.contains("**To:** swe-docs\n") && second.ends_with("- No new dependencies\n"), "{second}");
    assert_eq!(home.show(&child)["routing"]["agent"], "swe-docs");
    // The one who was asked before has nothing to say any more.
    home.rejected(answer(&child, "swe-qa", None), "unauthorized_agent");
}

#[test]
fn what_a_person_sees_of_a_message() {
    let home = Home::new();
    let id = claimed(&home, "swe-backend");
    let ended = home.run_with(&["send"], update(&id, "swe-backend", &json!({"notes": "x"})).to_string());
    assert_eq!(ended.expect(0).stdout, "accepted\n");
    let ended = home.run_with(&["send"], report(&id, "intruder", "done").to_string());
    assert_eq!(
        ended.expect(4).stdout,
        "rejected unauthorized_agent: expected agent swe-backend, got intruder\n"
    );
    let hostile = with(report(&id, "swe-backend", "done"), "payload.outcome", json!("\u{1b}[2Jdone"));
    let ended = home.run_with(&["send"], hostile.to_string());
    assert!(!ended.expect(4).stdout.contains('\u{1b}'), "{:?}", ended.stdout);
    let missing = without(report(&id, "swe-backend", "done"), "payload.notes");
    let ended = home.run_with(&["send"], missing.to_string());
    assert_eq!(ended.stdout, "rejected invalid_envelope: payload.notes: expected a string, got nothing\n");
}

//! What a person says about the work of a trace: `baton trace review`, `baton trace abort`, and both over HTTP.

use serde_json::{Value, json};

use crate::support::Home;
use crate::web_support::Web;

/// A trace with a proposal `prop-1` and an intent `intent-1`.
fn proposed(home: &Home) -> String {
    let trace = home.trace();
    if !home.events().iter().any(|event| event["payload"]["agent"] == "pat") {
        home.json(&["agent", "key", "pat", "--role", "planner"]);
        home.json(&["agent", "key", "eve", "--role", "executor"]);
    }
    home.append(
        &trace,
        "pat",
        &json!({"type": "proposal_created", "payload": {"proposal_id": "prop-1", "objective": "x"}}),
    );
    home.append(
        &trace,
        "eve",
        &json!({"type": "tool_intent_signed", "payload": {"intent_id": "intent-1", "proposal_id": "prop-1"}}),
    );
    trace
}

/// The last event of a type.
fn last(home: &Home, event_type: &str) -> Value {
    let events = home.events();
    let event = events.iter().rfind(|event| event["type"] == event_type);
    event.unwrap_or_else(|| panic!("no {event_type} in {events:?}")).clone()
}

fn operators_key(home: &Home) -> Value {
    home.json(&["agent", "key", "operator"])["key"].clone()
}

#[test]
fn a_review_is_signed_by_the_operator_in_role_critic() {
    let home = Home::new();
    let trace = proposed(&home);
    let said = home.run(&["trace", "review", &trace, "prop-1", "approve", "--reason", "small"]);
    assert_eq!(said.expect(0).stdout, "approved prop-1\n");
    let review = last(&home, "proposal_reviewed");
    assert_eq!(
        review["payload"],
        json!({"proposal_id": "prop-1", "status": "approved", "conditions": [], "risk": "unstated", "rationale": "small"})
    );
    let key = operators_key(&home);
    assert_eq!(review["actor"], json!({"agent": "operator", "role": "critic", "key": key}));
    assert_eq!(review["sig"]["key"], key);
    assert!(review["seen"]["seq"].as_u64().unwrap() >= 4, "it has seen the proposal: {review}");

    home.json(&["trace", "review", &trace, "prop-1", "block", "--reason", "too large"]);
    assert_eq!(last(&home, "proposal_reviewed")["payload"]["status"], "rejected");
    home.json(&["trace", "review", &trace, "intent-1", "block", "--reason", "it deletes"]);
    assert_eq!(
        last(&home, "tool_intent_reviewed")["payload"],
        json!({"intent_id": "intent-1", "status": "blocked", "rationale": "it deletes"})
    );
    let printed = home.json(&["trace", "review", &trace, "intent-1", "approve", "--reason", "well then"]);
    let review = last(&home, "tool_intent_reviewed");
    assert_eq!(review["payload"]["status"], "approved");
    assert_eq!((&printed["trace"], &printed["events"][0]["id"]), (&json!(trace), &review["id"]));
    // Somebody approves a task with the same key.
    assert_eq!(home.json(&["agent", "key", "operator"])["roles"], json!(["operator", "critic"]));
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_cannot_be_reviewed_is_refused_and_changes_nothing() {
    let home = Home::new();
    let (trace, other) = (proposed(&home), proposed(&home));
    home.append(&other, "pat", &json!({"type": "proposal_created", "payload": {"proposal_id": "prop-2"}}));
    home.json(&["trace", "review", &trace, "prop-1", "approve", "--reason", "so that there is a key"]);
    let refuse = |args: &[&str], exit: i32, code: &str, names: &str| {
        let ended = home.changes_nothing(|home| home.run(&[&["trace", "review"], args].concat()));
        ended.refused(exit, code, names);
    };
    refuse(&[&trace, "prop-2", "approve", "--reason", "x"], 3, "L037", "no proposal, intent or claim prop-2");
    refuse(&[&trace, "prop-", "approve", "--reason", "x"], 3, "L037", "no proposal, intent or claim");
    refuse(&[&trace, "", "approve", "--reason", "x"], 3, "L037", "no proposal, intent or claim");
    refuse(&["ledger", "prop-1", "approve", "--reason", "x"], 3, "L037", "no proposal, intent or claim");
    refuse(&["trc_ffff", "prop-1", "approve", "--reason", "x"], 3, "L014", "no trace");
    refuse(&[&trace, "prop-1", "approve", "--reason", ""], 2, "U009", "the reason");
    refuse(&[&trace, "prop-1", "approve", "--reason", &"x".repeat(513)], 2, "U009", "the reason");
    for bad in [&["prop-1", "maybe", "--reason", "x"][..], &["prop-1", "approve"], &["prop-1"]] {
        home.changes_nothing(|home| home.run(&[&["trace", "review", &trace], bad].concat())).expect(2);
    }
    home.append(&trace, "pat", &json!({"type": "proposal_created", "payload": {"proposal_id": "intent-1"}}));
    refuse(&[&trace, "intent-1", "approve", "--reason", "x"], 2, "L016", "an intent and a proposal");
    home.json(&["trace", "close", &trace, "--reason", "done"]);
    refuse(&[&trace, "prop-1", "block", "--reason", "x"], 4, "L017", "it is closed");
    home.append(&other, "eve", &json!({"type": "final_statement_signed"}));
    refuse(&[&other, "prop-1", "block", "--reason", "x"], 4, "L017", "final statement");
}

#[test]
fn the_operators_key_must_be_for_critics_and_must_not_have_done_the_work() {
    let home = Home::new();
    home.json(&["agent", "key", "operator", "--role", "operator,executor"]);
    let trace = proposed(&home);
    let review = ["trace", "review", &trace, "prop-1", "approve", "--reason", "x"];
    let hint = "hint: baton agent key operator --rotate --role executor,operator,critic\n";
    home.changes_nothing(|home| home.run(&review)).refused(4, "L021", hint);
    home.json(&["agent", "key", "operator", "--rotate", "--role", "operator,executor,critic"]);
    home.run_with(
        &["trace", "append", &trace, "--role", "executor"],
        r#"{"type":"claim_issued","payload":{"claim_id":"c"}}"#,
    )
    .expect(0);
    home.changes_nothing(|home| home.run(&review)).refused(4, "T010", "cannot review");
    home.json(&["trace", "abort", &trace, "--reason", "whoever did the work may give it up"]);
    home.run(&["verify"]).expect(0);
}

#[test]
fn an_abort_is_the_end_of_a_trace() {
    let home = Home::new();
    let trace = proposed(&home);
    let printed = home.json(&["trace", "abort", &trace, "--reason", "superseded"]);
    let aborted = last(&home, "trace_aborted");
    assert_eq!(aborted["payload"], json!({"reason": "superseded"}));
    let key = operators_key(&home);
    assert_eq!(aborted["actor"], json!({"agent": "operator", "role": "operator", "key": key}));
    assert_eq!(aborted["sig"]["key"], key);
    let shown = home.json(&["trace", "show", &trace]);
    let types: Vec<&str> =
        shown["events"].as_array().unwrap().iter().map(|event| event["type"].as_str().unwrap()).collect();
    assert!(types.ends_with(&["key_bound", "trace_aborted", "trace.closed"]), "{types:?}");
    // What it has seen is the head, and the key was bound behind that.
    assert_eq!(aborted["seen"]["seq"], types.len() - 3);
    assert_eq!(printed["events"][0]["id"], aborted["id"]);
    assert_eq!(printed["events"].as_array().unwrap().len(), 2);
    assert_eq!(shown["closed"], true);
    for again in [
        &["trace", "abort", &trace, "--reason", "x"][..],
        &["trace", "review", &trace, "prop-1", "approve", "--reason", "x"],
    ] {
        home.changes_nothing(|home| home.run(again)).refused(4, "L017", "has ended");
    }
    home.run_with(&["trace", "append", &trace], r#"{"type":"note"}"#).refused(4, "L017", "closed");
    home.run(&["verify"]).expect(0);
    // One that was only recorded as aborted has ended as well.
    let trace = proposed(&home);
    home.append(&trace, "operator", &json!({"type": "trace_aborted", "payload": {"reason": "by hand"}}));
    home.changes_nothing(|home| home.run(&["trace", "abort", &trace, "--reason", "x"])).refused(
        4,
        "L017",
        "it is aborted",
    );
}

#[test]
fn an_abort_that_has_not_seen_the_head_is_refused() {
    let home = Home::new();
    let trace = proposed(&home);
    home.json(&["agent", "key", "operator", "--role", "operator,critic"]);
    let head = |home: &Home| home.json(&["trace", "show", &trace])["events"].as_array().unwrap().len();
    let seen = head(&home).to_string();
    home.append(&trace, "eve", &json!({"type": "note"}));
    let abort = ["trace", "abort", &trace, "--reason", "x", "--seen", &seen];
    let now = format!("now at {}", head(&home));
    home.changes_nothing(|home| home.run(&abort)).refused(5, "L018", &now);
    home.changes_nothing(|home| home.run(&["trace", "abort", &trace, "--reason", ""])).refused(
        2,
        "U009",
        "the reason",
    );
    home.changes_nothing(|home| home.run(&["trace", "abort", &trace])).expect(2);
    home.changes_nothing(|home| home.run(&["trace", "abort", "ledger", "--reason", "x"]))
        .refused(4, "L025", "ledger");
    home.run(&["task", "new", "x"]).expect(0);
    let task = last(&home, "task.created")["trace"].as_str().unwrap().to_owned();
    home.changes_nothing(|home| home.run(&["trace", "abort", &task, "--reason", "x"])).refused(
        4,
        "L025",
        "baton task move",
    );
    let seen = head(&home).to_string();
    home.run(&["trace", "abort", &trace, "--reason", "x", "--seen", &seen]).expect(0);
}

#[test]
fn both_are_routes_for_people() {
    let home = Home::new();
    let (trace, other) = (proposed(&home), proposed(&home));
    let web = Web::start(&home);
    let (reviews, abort) = (format!("/v1/traces/{trace}/reviews"), format!("/v1/traces/{trace}/abort"));
    let review = json!({"id": "prop-1", "verdict": "approve", "reason": "small"});
    let answer = web.post(&reviews, &review).expect(201);
    let stored = last(&home, "proposal_reviewed");
    assert_eq!((&answer["trace"], &answer["events"][0]["id"]), (&json!(trace), &stored["id"]));
    assert_eq!(
        (&stored["actor"]["role"], &stored["payload"]["rationale"]),
        (&json!("critic"), &json!("small"))
    );
    // Words that look like options are words.
    let named = json!({"id": "--help", "verdict": "block", "reason": "--help"});
    web.post(&reviews, &named).refuses(404, "L037");

    let with = |name: &str, value: Value| {
        let mut body = review.clone();
        body[name] = value;
        body
    };
    for (body, names) in [
        (with("id", Value::Null), "id is missing"),
        (with("id", "x".repeat(257).into()), "id: expected at most 256"),
        (with("verdict", "maybe".into()), "verdict: expected one of approve, block"),
        (with("reason", 7.into()), "reason: expected a text"),
        (with("reason", "x".repeat(513).into()), "reason: expected at most 512"),
        (with("why", "x".into()), "no argument \"why\""),
    ] {
        let answer = web.post(&reviews, &body);
        answer.refuses(400, "W004");
        assert!(answer.json()["title"].as_str().unwrap().contains(names), "{names}: {}", answer.json());
    }
    web.post(&reviews, &with("reason", "".into())).refuses(400, "U009");
    web.post(&reviews, &with("id", "prop-9".into())).refuses(404, "L037");
    web.post("/v1/traces/trc_nothing/reviews", &review).refuses(404, "L014");
    let gone = "/v1/traces/trc_0192f0c1-2345-7abc-8def-0123456789ab";
    web.post(&format!("{gone}/reviews"), &review).refuses(404, "L014");
    web.post(&format!("{gone}/abort"), &json!({"reason": "x"})).refuses(404, "L014");

    let size = web.get(&format!("/v1/traces/{trace}")).expect(200)["size"].as_u64().unwrap();
    web.post(&abort, &json!({})).refuses(400, "W004");
    web.post(&abort, &json!({"reason": "x", "seen": 0})).refuses(400, "W004");
    web.post(&abort, &json!({"reason": "x", "seen": size - 1})).refuses(409, "L018");
    let aborted = web.post(&abort, &json!({"reason": "superseded", "seen": size})).expect(201);
    assert_eq!(aborted["events"][0]["id"], last(&home, "trace_aborted")["id"]);
    assert_eq!(web.get(&format!("/v1/traces/{trace}")).expect(200)["closed"], true);
    web.post(&abort, &json!({"reason": "again"})).refuses(422, "L017");
    web.post(&reviews, &review).refuses(422, "L017");

    // With a key it is done once.
    let (path, body) = (
        format!("/v1/traces/{other}/reviews"),
        json!({"id": "intent-1", "verdict": "block", "reason": "no"}),
    );
    let key = [("Idempotency-Key", "once")];
    let first = web.ask_as(&web.token, "POST", &path, Some(&body), &key).expect(201);
    assert_eq!(web.ask_as(&web.token, "POST", &path, Some(&body), &key).expect(201), first);
    let blocked = home.events().iter().filter(|event| event["type"] == "tool_intent_reviewed").count();
    assert_eq!(blocked, 1);
    web.serving.stop();
    home.run(&["verify"]).expect(0);
}

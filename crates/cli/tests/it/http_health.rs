//! How agents did and how far things are behind, as `/v1/status` and `/v1/nodes` tell it.

use serde_json::{Value, json};

use crate::conducted::team;
use crate::runs::configure;
use crate::support::{Home, until};
use crate::task_support::text;
use crate::web_support::Web;

fn agent(web: &Web, name: &str) -> Value {
    let status = web.get("/v1/status").expect(200);
    assert_eq!(status["counted"]["to"], status["counted"]["of"], "a short ledger is read at once");
    let agents = status["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|agent| agent["name"] == name).unwrap()
}

fn failures(web: &Web, name: &str) -> u64 {
    agent(web, name)["failures"].as_u64().unwrap()
}

#[test]
fn every_attempt_that_failed_counts_and_stays_counted() {
    let home = Home::with_signals();
    configure(
        &home,
        "[agents.mute]\nharness = \"exec\"\nexit_protocol = true\ncommand = [\"sh\", \"-c\", \"cat >/dev/null; echo working\"]\n",
    );
    let web = Web::start(&home);
    let id = text(&web.post("/v1/tasks", &json!({"title": "crash 3", "status": "ready"})).expect(201)["id"]);
    for attempt in 1..=2 {
        home.run(&["run", "--task", &id, "--agent", "mock"]).expect(6);
        assert_eq!(failures(&web, "mock"), attempt);
    }
    // Whoever takes it next takes nothing back.
    web.post(&format!("/v1/tasks/{id}/claim"), &json!({"agent": "mute"})).expect(200);
    let mock = agent(&web, "mock");
    assert_eq!(mock["failures"], 2);
    assert!(text(&mock["lastFailureAt"]) >= text(&mock["lastStartAt"]), "{mock}");
    // Its session ended as sessions do; that there was no exit signal makes it a failure, once.
    assert_eq!((failures(&web, "mute"), agent(&web, "mute")["lastFailureAt"].is_null()), (0, true));
    home.run(&["run", "anything", "--agent", "mute"]).expect(6);
    assert_eq!(failures(&web, "mute"), 1);
    let before = (agent(&web, "mock"), agent(&web, "mute"));
    web.serving.stop();
    let web = Web::start(&home);
    assert_eq!((agent(&web, "mock"), agent(&web, "mute")), before, "the same after a restart");
    web.serving.stop();
}

#[test]
fn a_session_without_a_task_begins_and_fails_like_any_other() {
    let home = Home::new();
    let web = Web::start(&home);
    assert!(agent(&web, "mock").get("lastStartAt").is_none());
    for count in 1..=3 {
        let session = text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
        assert!(agent(&web, "mock")["lastStartAt"].is_string());
        web.post(&format!("/v1/sessions/{session}/input"), &json!({"text": "crash 3"})).expect(200);
        until("its end is recorded", || failures(&web, "mock") == count);
    }
    // One that a person ends has not failed; and whoever appends by hand counts for nothing.
    let session = text(&web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201)["id"]);
    web.post(&format!("/v1/sessions/{session}/stop"), &json!({})).expect(200);
    let (trace, forged) = (home.trace(), "sess_019c4180-0a00-7000-8000-000000000001");
    for (kind, payload) in [
        ("session.started", json!({"agent": "mock", "harness": "acp"})),
        ("session.ended", json!({"reason": "error"})),
    ] {
        let event = json!({"type": kind, "session": forged, "payload": payload}).to_string();
        home.run_with(&["trace", "append", &trace, "--agent", "ada"], event).expect(0);
    }
    assert_eq!(failures(&web, "mock"), 3);
    web.serving.stop();
}

#[test]
fn whoever_plays_a_part_in_a_guarded_run_has_begun_and_may_fail() {
    let home = team("");
    let id = home.guarded("edit good.txt complete done");
    home.conducted(&id, "done");
    let web = Web::start(&home);
    for name in ["ada", "bob", "cleo", "dora"] {
        let agent = agent(&web, name);
        assert!(agent["lastStartAt"].is_string() && agent["failures"] == 0, "{agent}");
    }
    web.serving.stop();
    let home = team("");
    let id = home.guarded("crash 1 1");
    home.conducted(&id, "failed");
    let events = home.events();
    let ended = |event: &&Value| event["type"] == "session.ended" && event["payload"]["reason"] == "error";
    let expected = events.iter().filter(ended).count() as u64;
    let web = Web::start(&home);
    let counted: u64 = ["ada", "bob", "cleo", "dora"].map(|name| failures(&web, name)).iter().sum();
    assert!(counted > 0 && counted == expected, "{counted} of {expected}");
    web.serving.stop();
}

#[test]
fn what_is_behind_the_ledger_is_told_and_catches_up() {
    let home = Home::new();
    let settings = ["ledger.durability=interval", "ledger.checkpoint_every=1000000"];
    let web = Web::start_with(&home, &["--no-dispatch", "--set", settings[0], "--set", settings[1]]);
    let store = || web.get("/v1/status").expect(200)["store"].clone();
    let signed = store()["journal"]["unsigned"].as_u64().unwrap();
    for n in 0..20 {
        web.task(&format!("task {n}"));
    }
    let after = store();
    assert_eq!(after["journal"]["durability"], "interval");
    assert!(after["journal"]["unsigned"].as_u64() > Some(signed + 20), "no checkpoint covers them: {after}");
    until("everything is on the disk, and in its files", || {
        let store = store();
        store["journal"]["unsynced"] == 0 && store["projection"]["tasks"] == 0
    });
    // A folder that cannot be written to: recorded, but no file says so.
    let blocked = home.data().join("tasks/blocked");
    let id = web.task("its file cannot follow");
    let _ = std::fs::remove_dir_all(&blocked);
    std::fs::write(&blocked, "in the way").unwrap();
    web.post(&format!("/v1/tasks/{id}/transition"), &json!({"to": "blocked", "reason": "waits"})).expect(200);
    until("it is told that its files are behind", || {
        let projection = store()["projection"].clone();
        projection["failed"] == 1 && projection["tasks"] == 1
    });
    std::fs::remove_file(&blocked).unwrap();
    std::fs::create_dir(&blocked).unwrap();
    until("they have followed", || store()["projection"]["failed"] == 0);
    web.serving.stop();
}

#[test]
fn the_machine_that_works_is_named_with_what_runs_on_it() {
    let home = Home::new();
    let web = Web::start(&home);
    let node = || web.get("/v1/nodes").expect(200)["nodes"][0].clone();
    let pid = web.serving.pid();
    assert_eq!((&node()["pid"], &node()["sessions"]), (&json!(pid), &json!(0)));
    web.post("/v1/sessions", &json!({"agent": "mock"})).expect(201);
    assert_eq!((&node()["sessions"], &node()["version"]), (&json!(1), &json!(env!("CARGO_PKG_VERSION"))));
    web.serving.stop();
}

//! Sessions that clients lead, as the command line and the routes of sessions see them: followed and ended there, and spoken to by their clients alone.

use std::io::{BufRead as _, BufReader};

use serde_json::{Value, json};

use crate::acp_support::{Acp, request, until_method};
use crate::support::{Home, wait};
use crate::web_support::{Event, Web};

const ENDED: &str = "_sandboxagent/session/ended";

/// What Baton calls the process of a server.
fn baton_id(web: &Web) -> String {
    web.get("/v1/acp").expect(200)["servers"][0]["sessionId"].as_str().unwrap().to_owned()
}

fn read(line: &str) -> Value {
    serde_json::from_str(line).unwrap()
}

/// That everybody was told of the end, and whoever asks later is.
fn expect_stopped(web: &Web, acp: &Acp<'_>, session: &str, id: &str, heard: &Event) {
    let data = &heard.data["params"]["data"];
    assert_eq!((&data["reason"], &data["terminated_by"]), (&json!("terminated"), &json!("daemon")));
    assert_eq!(heard.data["params"]["session_id"], session);
    let answer = acp.prompt(9, session, "more");
    assert_eq!(
        (&answer["error"]["code"], &answer["error"]["data"]["reason"]),
        (&json!(-32000), &data["reason"])
    );
    assert!(!acp.is_listed());
    let shown = web.get(&format!("/v1/sessions/{id}")).expect(200);
    assert_eq!((&shown["state"], &shown["terminationInfo"]["reason"]), (&json!("stopped"), &data["reason"]));
    acp.delete();
}

#[test]
fn stopping_a_session_that_clients_lead_ends_it_and_tells_them() {
    let home = Home::new();
    let web = Web::start(&home);
    // By the route, while somebody waits for an answer.
    let (acp, session) = Acp::open(&web, "one", "mock");
    let (id, mut events) = (baton_id(&web), acp.events(None));
    let waiting = acp.prompt_apart(2, &session, "hang");
    let stopped = web.post(&format!("/v1/sessions/{id}/stop"), &json!({})).expect(200);
    assert_eq!(
        (&stopped["state"], &stopped["terminationInfo"]["reason"]),
        (&json!("stopped"), &json!("terminated"))
    );
    assert_eq!(waiting.join().unwrap().expect(200)["error"]["code"], -32000);
    let heard = until_method(&mut events, ENDED);
    expect_stopped(&web, &acp, &session, &id, &heard);
    web.post(&format!("/v1/sessions/{id}/stop"), &json!({})).refuses(422, "A003");
    // By the command, while it is idle.
    let (acp, session) = Acp::open(&web, "two", "mock");
    let (id, mut events) = (baton_id(&web), acp.events(None));
    home.run(&["session", "stop", &id]).expect(0);
    let heard = until_method(&mut events, ENDED);
    expect_stopped(&web, &acp, &session, &id, &heard);
    web.serving.stop();
}

#[test]
fn a_session_that_clients_lead_is_followed_to_its_end() {
    let home = Home::new();
    let web = Web::start(&home);
    let (acp, session) = Acp::open(&web, "one", "mock");
    let id = baton_id(&web);
    let mut events = web.events(&format!("/v1/sessions/{id}/events"), None);
    let states: Vec<Value> = events.by_ref().take(2).map(|event| event.data["to"].clone()).collect();
    assert_eq!(states, ["starting", "ready"]);
    // A turn is between its clients and it.
    acp.prompt(2, &session, "hello");
    let mut attached = home.command(&["session", "attach", &id, "--json"]).spawn().unwrap();
    let mut lines = BufReader::new(attached.stdout.take().unwrap()).lines().map(|line| read(&line.unwrap()));
    let told: Vec<Value> = lines.by_ref().take(2).map(|line| line["to"].clone()).collect();
    assert_eq!(told, ["starting", "ready"]);
    acp.delete();
    let rest: Vec<Event> = events.collect();
    let names: Vec<&str> = rest.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["state_event", "ended"], "{rest:?}");
    assert_eq!(rest[0].data["to"], "stopped");
    assert_eq!(rest[1].data["reason"], "terminated");
    let told: Vec<Value> = lines.collect();
    assert_eq!((&told[0]["to"], &told[1]["type"]), (&json!("stopped"), &json!("session.ended")), "{told:?}");
    assert!(wait(&mut attached).success());
    // Once it is over the ledger tells the same.
    let after: Vec<Event> = web.events(&format!("/v1/sessions/{id}/events"), None).collect();
    assert_eq!(after.iter().filter(|event| event.name == "state_event").count(), 3);
    web.serving.stop();
}

#[test]
fn only_its_clients_speak_to_a_session_that_they_lead() {
    let home = Home::new();
    let web = Web::start(&home);
    let (acp, session) = Acp::open(&web, "one", "mock");
    let id = baton_id(&web);
    let words = "is led by clients of its own, who alone speak to it";
    home.run(&["session", "send", &id, "x"]).refused(4, "A003", words);
    home.run(&["session", "permit", &id, "r", "allow"]).refused(4, "A003", words);
    web.post(&format!("/v1/sessions/{id}/input"), &json!({"text": "x"})).refuses(422, "A003");
    web.post(&format!("/v1/sessions/{id}/permissions/r"), &json!({"answer": "allow"})).refuses(422, "A003");
    // And nothing of that came to them.
    assert_eq!(acp.prompt(2, &session, "hello")["result"]["stopReason"], "end_turn");
    let listed = acp.post(&request(3, "session/list", &json!({}))).expect(200);
    assert_eq!(listed["result"]["sessions"].as_array().unwrap().len(), 1);
    acp.delete();
    web.serving.stop();
}

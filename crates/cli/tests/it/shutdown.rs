//! The end of a server on SIGTERM: nothing new begins, what is under way is finished, and sessions are ended, to be begun anew or gone on with.

use std::io::Write as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::runs::configure;
use crate::serve::Serving;
use crate::support::{Home, finish, until};
use crate::web_support::Web;

/// A command that the server has begun and that goes on until its input ends: while it does, a server that ends is not at its end.
fn hold(home: &Home) -> (std::process::Child, String) {
    let trace = home.trace();
    let mut held = home.command(&["trace", "append", &trace]).stdin(Stdio::piped()).spawn().unwrap();
    held.stdin.as_mut().unwrap().write_all(b"{\"type\":\"note\"}\n").unwrap();
    let is_note = |event: &Value| event["type"] == "note" && event["trace"] == *trace;
    until("it is begun", || home.events().iter().any(is_note));
    (held, trace)
}

#[test]
fn while_a_server_ends_no_task_is_given_out() {
    let home = Home::new();
    let web = Web::start_with(&home, &[]);
    let backlog = web.post("/v1/tasks", &json!({"title": "later"})).expect(201);
    let backlog = format!("/v1/tasks/{}/claim", backlog["id"].as_str().unwrap());
    // For an agent that is nobody's, so that it is claimed by hand.
    let routed = json!({"title": "mine", "status": "ready", "routing": {"agent": "ada"}});
    let mine = web.post("/v1/tasks", &routed).expect(201)["id"].as_str().unwrap().to_owned();
    let lease = web.post(&format!("/v1/tasks/{mine}/claim"), &json!({"agent": "ada"})).expect(200);
    let (mut held, _) = hold(&home);
    let claim = json!({"agent": "ada"});
    web.post(&backlog, &claim).refuses(422, "T009");

    web.serving.signal("-TERM");
    until("it ends", || web.post(&backlog, &claim).status == 503);
    let routed = json!({"title": "complete done", "status": "ready", "routing": {"agent": "mock"}});
    let ready = web.post("/v1/tasks", &routed).expect(201)["id"].as_str().unwrap().to_owned();
    let refused = web.post(&format!("/v1/tasks/{ready}/claim"), &json!({"agent": "mock"}));
    refused.refuses(503, "W016");
    assert_eq!(refused.header("retry-after"), Some("1"));
    // Whoever works goes on.
    let beat = json!({"agent": "ada", "fence": lease["fence"]});
    web.post(&format!("/v1/tasks/{mine}/beat"), &beat).expect(200);
    assert_eq!(web.get(&format!("/v1/tasks/{ready}")).expect(200)["status"], "ready");
    drop(held.stdin.take());
    finish(held, None).expect(0);
    let said = web.serving.stop_signalled();
    assert_eq!(said, "", "nothing went wrong");

    assert_eq!(home.status(&ready), "ready");
    let types = home.types(&ready);
    assert!(!types.iter().any(|name| name.starts_with("lease.")), "nobody ever had it: {types:?}");
    // It would have been given out: the next server does.
    let serving = Serving::start(&home);
    until("it is worked on", || home.status(&ready) == "review");
    serving.stop();
    home.verifies();
}

/// A server is told to end while an agent works; the next one works on. Gives the first session and the second.
fn ended_in_the_middle(setting: &str) -> (Value, Value) {
    let home = Home::new();
    configure(&home, setting);
    let task = home.run(&["task", "new", "hang", "--agent", "mock", "--ready", "--json"]).value(0);
    let task = task["id"].as_str().unwrap();
    let newest = |home: &Home| home.json(&["session", "ls"])["sessions"][0]["id"].clone();
    let show = |id: &Value| home.json(&["session", "show", id.as_str().unwrap()]);

    let serving = Serving::start(&home);
    until("it works", || home.run(&["session", "ls", "--live", "--json"]).stdout.contains("calling_llm"));
    let first = newest(&home);
    serving.stop();
    assert_eq!((home.status(task).as_str(), &home.show(task)["attempts"]), ("ready", &json!(0)));

    home.run(&["task", "edit", task, "--title", "complete done"]).expect(0);
    let serving = Serving::start(&home);
    until("it is done", || home.status(task) == "review");
    let second = newest(&home);
    serving.stop();
    assert_ne!(first, second);
    home.verifies();
    home.replays();
    (show(&first), show(&second))
}

#[test]
fn a_session_that_a_server_s_end_cut_short_is_ended_and_its_task_begun_anew() {
    let (first, second) = ended_in_the_middle("[session]\nresume = false");
    assert_eq!(first["state"], "stopped");
    assert_eq!(first["terminationInfo"]["terminated_by"], "daemon", "{first}");
    assert!(second["resumes"].is_null(), "{second}");
}

#[test]
fn a_session_that_a_server_s_end_cut_short_is_gone_on_with_where_that_is_wanted() {
    let (first, second) = ended_in_the_middle("[session]\nresume = true");
    assert_eq!(first["terminationInfo"]["terminated_by"], "daemon", "{first}");
    assert_eq!(second["resumes"], first["id"], "{second}");
}

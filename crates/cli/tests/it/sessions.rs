//! `baton session`: by hand, with a server and without, and the same after a restart.

use std::io::Read as _;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::hints::after;
use crate::serve::Serving;
use crate::support::{Home, finish, until};

fn start(home: &Home) -> String {
    let session = home.json(&["session", "start", "--agent", "mock"]);
    assert_eq!(
        (&session["agent"], &session["harness"], &session["state"]),
        (&json!("mock"), &json!("mock"), &json!("ready"))
    );
    for list in ["pendingPermissions", "toolRuns", "hookRuns"] {
        assert!(session[list].as_array().unwrap().is_empty(), "{session}");
    }
    session["id"].as_str().unwrap().to_owned()
}

fn show(home: &Home, id: &str) -> Value {
    home.json(&["session", "show", id])
}

fn until_state(home: &Home, id: &str, state: &str) {
    until(state, || show(home, id)["state"] == state);
}

#[test]
fn a_session_is_talked_to_answered_and_ended() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let id = start(&home);
    home.run(&["session", "send", &id, "permission"]).expect(0);
    until("it asks", || !show(&home, &id)["pendingPermissions"].as_array().unwrap().is_empty());
    let asked = show(&home, &id)["pendingPermissions"][0].clone();
    let request = asked["id"].as_str().unwrap();
    let busy = home.run(&["session", "send", &id, "more"]);
    busy.refused(4, "A003", "is in calling_llm: it takes input when it is ready");
    assert_eq!(after(&busy.stderr, "hint: "), format!("baton session attach {id}"));
    home.run(&["session", "send", &id, " "]).refused(2, "U012", "the text is empty");
    let unknown = home.run(&["session", "permit", &id, "nothing", "allow"]);
    unknown.refused(3, "A008", "nothing that is called nothing");
    assert!(unknown.stderr.contains(&format!("it waits for {request}  run_command: make")), "{unknown:?}");
    assert_eq!(after(&unknown.stderr, "hint: "), format!("baton session permit {id} {request} allow"));
    home.run(&["session", "permit", &id, request, "perhaps"]).refused(2, "U009", "allow or deny");
    home.run(&["session", "permit", &id, request, "allow"]).expect(0);
    until_state(&home, &id, "ready");
    home.run(&["session", "permit", &id, request, "allow"]).refused(3, "A008", "it waits for no answer");
    let run = show(&home, &id)["toolRuns"][0].clone();
    assert_eq!(run["status"], "succeeded");
    let run = run["runId"].as_str().unwrap();
    home.run(&["session", "retry-tool", &id, run]).refused(4, "A003", "it did not fail, it is succeeded");
    let run = "toolrun_019b76da-addc-7101-8101-010101010101";
    home.run(&["session", "retry-tool", &id, run]).refused(3, "A008", run);
    let run = "hookrun_019b76da-addc-7101-8101-010101010101";
    home.run(&["session", "retry-hook", &id, run]).refused(3, "A008", run);
    // Any unique beginning will do.
    let stopped = home.json(&["session", "stop", &id[..id.len() - 4]]);
    assert_eq!(stopped["state"], "stopped");
    assert_eq!(
        (&stopped["terminationInfo"]["reason"], &stopped["terminationInfo"]["terminated_by"]),
        (&json!("terminated"), &json!("daemon"))
    );
    home.run(&["session", "send", &id, "x"]).refused(4, "A003", "has ended");
    let before = show(&home, &id);
    serving.stop();
    assert_eq!(show(&home, &id), before, "the same before and after");
    home.run(&["session", "show", "sess_0000"]).refused(3, "A001", "sess_0000");
    let events = home.events();
    let ends: Vec<&Value> = events.iter().filter(|event| event["type"] == "session.ended").collect();
    assert_eq!(ends.len(), 1);
    assert_eq!(ends[0]["session"], *id);
    home.verifies();
}

#[test]
fn without_a_server_one_is_started_that_ends_with_its_last_session() {
    let home = Home::new();
    let id = start(&home);
    home.run(&["session", "send", &id, "hello you"]).expect(0);
    until_state(&home, &id, "ready");
    home.run(&["session", "stop", &id]).expect(0);
    let lock = home.data().join("lock");
    until("nobody owns the data directory", || {
        home.run(&["task", "new", "x"]).code == Some(0) && lock.exists()
    });
    let transcript = home.data().join("sessions").join(&id).join("transcript.jsonl");
    let said = std::fs::read_to_string(transcript).unwrap();
    assert!(said.contains("\"kind\":\"prompt\"") && said.contains("hello you"), "{said}");
}

#[test]
fn a_question_of_an_agent_is_answered_by_a_text() {
    let home = Home::new();
    let _serving = Serving::start(&home);
    let id = start(&home);
    let ask = |home: &Home| {
        home.command(&["session", "ask", &id, "--text", "which one?", "--json"])
            .stdin(Stdio::null())
            .spawn()
            .unwrap()
    };
    finish(ask(&home), None).refused_json(4, "A003");
    home.run(&["session", "send", &id, "permission"]).expect(0);
    until("it asks", || !show(&home, &id)["pendingPermissions"].as_array().unwrap().is_empty());
    let asking = ask(&home);
    until("both are asked", || show(&home, &id)["pendingPermissions"].as_array().unwrap().len() == 2);
    let question = show(&home, &id)["pendingPermissions"][1].clone();
    assert_eq!((&question["kind"], &question["title"]), (&json!("question"), &json!("which one?")));
    home.run(&["session", "permit", &id, question["id"].as_str().unwrap(), "the second"]).expect(0);
    let answered = finish(asking, None);
    answered.expect(0);
    assert_eq!(
        (&answered.object()["answered"], &answered.object()["text"]),
        (&json!(true), &json!("the second"))
    );
    // At the end of the session whoever still asks is told that nobody answered.
    let asking = ask(&home);
    until("it is asked again", || show(&home, &id)["pendingPermissions"].as_array().unwrap().len() == 2);
    home.run(&["session", "stop", &id]).expect(0);
    assert_eq!(finish(asking, None).object()["answered"], false);
}

#[test]
fn whoever_attaches_sees_it_all_until_it_ends() {
    let home = Home::new();
    let _serving = Serving::start(&home);
    let id = start(&home);
    let attached = home.command(&["session", "attach", &id, "--json"]).spawn().unwrap();
    home.run(&["session", "send", &id, "one two"]).expect(0);
    until_state(&home, &id, "ready");
    home.run(&["session", "stop", &id]).expect(0);
    let ended = finish(attached, None);
    ended.expect(0);
    assert!(ended.stdout.contains("text_delta") && ended.stdout.contains("\"to\":\"stopped\""), "{ended:?}");
    let ls = home.json(&["session", "ls"]);
    assert_eq!(ls["sessions"][0]["state"], "stopped");
}

#[test]
fn an_agent_that_dies_in_front_of_whoever_attached_is_a_failure() {
    let home = Home::new();
    let _serving = Serving::start(&home);
    for flags in [&["--json"][..], &[]] {
        let id = start(&home);
        home.run(&["session", "send", &id, "one two"]).expect(0);
        until_state(&home, &id, "ready");
        let mut attached = home.command(&[&["session", "attach", &id], flags].concat()).spawn().unwrap();
        // What was said before is shown to whoever attaches: from then on it watches.
        attached.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        home.run(&["session", "send", &id, "crash 3 2"]).expect(0);
        let ended = finish(attached, None);
        ended.expect(6);
        if flags.is_empty() {
            assert!(ended.stdout.contains("exit code 3, cause crash"), "{ended:?}");
            continue;
        }
        let last: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(
            (&last["type"], &last["sessionId"], &last["reason"]),
            (&json!("session.ended"), &json!(id), &json!("error"))
        );
    }
}

#[test]
fn what_failed_is_named_with_the_command_that_tries_it_again() {
    let home = Home::new();
    let hooks = json!({"hooks": [{"name": "tests", "command": ["sh", "-c", "test -e repaired"]}]});
    std::fs::write(home.data().join("hooks.json"), hooks.to_string()).unwrap();
    let _serving = Serving::start(&home);
    let id = start(&home);
    home.run(&["session", "send", &id, "write"]).expect(0);
    until("the hook failed", || {
        let shown = show(&home, &id);
        shown["state"] == "ready" && shown["hookRuns"][0]["status"] == "failed"
    });
    let first = show(&home, &id)["hookRuns"][0]["runId"].as_str().unwrap().to_owned();
    let shown = home.run(&["session", "show", &id]);
    assert!(shown.stdout.contains(&format!("hook       tests  failed: exit 1  {first}\n")), "{shown:?}");
    let hint = format!("baton session retry-hook {id} {first}");
    assert_eq!(after(&shown.stderr, "hint: "), hint);
    std::fs::write(home.work().join("repaired"), "").unwrap();
    home.run(&["session", "retry-hook", &id, &first]).expect(0);
    until("it is repaired", || show(&home, &id)["hookRuns"][0]["status"] == "succeeded");
    // What failed before the last error cannot be tried again.
    std::fs::remove_file(home.work().join("repaired")).unwrap();
    let mut failed = Vec::new();
    for n in 1..=2 {
        until_state(&home, &id, "ready");
        home.run(&["session", "send", &id, "write"]).expect(0);
        until("the hook failed", || {
            let shown = show(&home, &id);
            shown["state"] == "ready" && shown["hookRuns"][n]["status"] == "failed"
        });
        failed.push(show(&home, &id)["hookRuns"][n]["runId"].as_str().unwrap().to_owned());
    }
    let refused = home.run(&["session", "retry-hook", &id, &failed[0]]);
    refused.refused(4, "A003", "only what the last error is about can be retried");
    assert_eq!(after(&refused.stderr, "hint: "), format!("baton session retry-hook {id} {}", failed[1]));
}

#[test]
fn agents_are_listed_added_and_checked() {
    let home = Home::new();
    assert_eq!(home.json(&["agent", "ls"])["agents"][0]["name"], "mock");
    let checked = home.json(&["agent", "check", "mock", "--turn"]);
    assert_eq!(checked["works"], true, "{checked}");
    home.run(&["agent", "add", "gone", "--", "no-such-agent", "--acp"]).expect(0);
    home.run(&["agent", "add", "gone", "--", "x"]).refused(2, "U001", "already");
    let failed = home.run(&["agent", "check", "gone", "--json"]);
    failed.expect(6);
    assert!(failed.stdout.contains("no-such-agent: not found"), "{failed:?}");
    home.run(&["agent", "add", "dies", "--", "sh", "-c", "echo 'no licence' >&2; exit 3"]).expect(0);
    let failed = home.run(&["agent", "check", "dies"]);
    failed.expect(6);
    assert!(failed.stdout.contains("exit code 3") && failed.stdout.contains("no licence"), "{failed:?}");
    home.run(&["agent", "add", "plain", "--profile", "plain", "--", "sh", "-c", "cat >/dev/null; echo OK"])
        .expect(0);
    let checked = home.run(&["agent", "check", "plain"]);
    checked.expect(0);
    assert!(checked.stdout.contains("OK"), "{checked:?}");
    home.run(&["agent", "check", "nobody"]).refused(3, "A002", "nobody");
    let names = home.json(&["agent", "ls"])["agents"].as_array().unwrap().len();
    assert_eq!(names, 4);
}

#[test]
fn a_conversation_is_gone_on_with_and_its_replay_is_not_kept() {
    let home = Home::new();
    let _serving = Serving::start(&home);
    let first = start(&home);
    home.run(&["session", "send", &first, "hello"]).expect(0);
    until_state(&home, &first, "ready");
    home.run(&["session", "stop", &first]).expect(0);
    let second = home.json(&["session", "start", "--agent", "mock", "--resume", &first]);
    assert_eq!((&second["state"], &second["resumes"]), (&json!("ready"), &json!(first)));
    let id = second["id"].as_str().unwrap();
    home.run(&["session", "send", id, "again"]).expect(0);
    until_state(&home, id, "ready");
    let folder = home.data().join("sessions").join(id);
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("wire.log").contains("said before"), "the agent plays it again");
    let transcript = read("transcript.jsonl");
    assert!(transcript.contains("again") && !transcript.contains("said before"), "{transcript}");
}

#[test]
fn what_baton_s_death_cut_short_is_gone_on_with_where_that_is_wanted() {
    let home = Home::new();
    crate::runs::configure(&home, "[session]\nresume = true");
    let task = home.run(&["task", "new", "hang", "--agent", "mock", "--ready", "--json"]).value(0);
    let task = task["id"].as_str().unwrap();
    let mut run = home.command(&["run", "--task", task]).spawn().unwrap();
    until("it works", || home.run(&["session", "ls", "--live", "--json"]).stdout.contains("calling_llm"));
    let first = home.json(&["session", "ls"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    run.kill().unwrap();
    run.wait().unwrap();
    home.run(&["task", "edit", task, "--title", "complete done"]).expect(0);
    let ended = show(&home, &first);
    assert_eq!(ended["terminationInfo"]["terminated_by"], "daemon", "{ended}");
    assert_eq!(home.show(task)["attempts"], 1);
    home.run(&["run", "--task", task]).expect(0);
    let sessions = home.json(&["session", "ls"]);
    let second = show(&home, sessions["sessions"][0]["id"].as_str().unwrap());
    assert_eq!(second["resumes"], *first, "{second}");
    home.verifies();
}

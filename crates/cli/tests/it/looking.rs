//! What is shown of runs and sessions: by the task, in the list, and word for word.

use std::fs::{self, File};
use std::io::Write as _;

use serde_json::{Value, json};

use crate::runs::lines;
use crate::serve::Serving;
use crate::support::{Home, finish, terminal, until};

/// Runs a prompt with the mock agent; gives the task and the session.
fn ran(home: &Home, prompt: &str) -> (String, String) {
    let ended = home.run(&["run", prompt, "--agent", "mock", "--yes", "--json"]);
    let (_, last) = lines(&ended);
    let text = |key: &str| last[key].as_str().unwrap().to_owned();
    (text("taskId"), text("sessionId"))
}

#[track_caller]
fn says(home: &Home, args: &[&str], wanted: &[&str]) -> String {
    let ended = home.run(args);
    ended.expect(0);
    for text in wanted {
        assert!(ended.stdout.contains(text), "{text:?} in {}", ended.stdout);
    }
    ended.stdout
}

#[test]
fn a_task_says_who_worked_on_it_and_what_came_of_it() {
    let home = Home::new();
    let (task, session) = ran(&home, "complete done");
    let summary = home.data().join("tasks/review").join(&task).join("outputs/summary.md");
    let shown = says(
        &home,
        &["task", "show", &task],
        &[
            "last run    by mock, reported done",
            &format!("session     {session}  stopped by Baton after its work"),
            "notes       reported by the mock agent",
            &format!("summary     Done by the mock agent.  ({})", summary.display()),
        ],
    );
    assert!(!shown.contains("worktree"), "{shown}");
    let last = home.show(&task)["lastRun"].clone();
    assert_eq!(
        (&last["sessionId"], &last["agent"], &last["outcome"], &last["sessionState"]),
        (&json!(session), &json!("mock"), &json!("done"), &json!("stopped"))
    );
    assert_eq!(last["terminationInfo"]["terminated_by"], "daemon", "what is recorded stays as it is");
    let (task, session) = ran(&home, "crash 3 1");
    says(
        &home,
        &["task", "show", &task],
        &["last run    by mock, failed", &format!("session     {session}  the agent exited with code 3")],
    );
    assert_eq!(home.show(&task)["lastRun"]["failed"], true);
    says(&home, &["session", "show", &session], &["standard error, 1 line:\n"]);
}

#[test]
fn a_task_that_is_worked_on_names_its_session_and_how_to_follow_it() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let task = home.run(&["task", "new", "hang", "--agent", "mock", "--ready", "--json"]).value(0);
    let task = task["id"].as_str().unwrap();
    until("it works", || home.show(task)["lastRun"]["sessionState"] == "calling_llm");
    let session = home.show(task)["lastRun"]["sessionId"].as_str().unwrap().to_owned();
    let shown = home.run(&["task", "show", task]);
    assert!(shown.stdout.contains(&format!("session     {session}  calling_llm")), "{shown:?}");
    assert!(shown.stderr.contains(&format!("hint: baton session attach {session}")), "{shown:?}");
    home.run(&["session", "stop", &session]).expect(0);
    serving.stop();
}

#[test]
fn an_end_says_whose_doing_it_was() {
    let home = Home::new();
    let (_, after_work) = ran(&home, "complete done");
    let _serving = Serving::start_with(&home, &["--no-dispatch"]);
    let by_hand = home.json(&["session", "start", "--agent", "mock"])["id"].as_str().unwrap().to_owned();
    home.run(&["session", "stop", &by_hand]).expect(0);
    let mut run = home.command(&["run", "hang", "--agent", "mock"]).spawn().unwrap();
    until("it works", || home.run(&["session", "ls", "--live", "--json"]).stdout.contains("calling_llm"));
    let stopped = home.json(&["session", "ls", "--live"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    home.run(&["session", "stop", &stopped]).expect(0);
    crate::support::wait(&mut run);
    let listed = home.run(&["session", "ls"]).stdout;
    for (id, words) in [
        (&after_work, "stopped by Baton after its work"),
        (&by_hand, "stopped by a person"),
        (&stopped, "stopped by a person"),
    ] {
        says(&home, &["session", "show", id], &[&format!("ended      {words}\n")]);
        let row = listed.lines().find(|row| row.starts_with(id.as_str())).unwrap();
        assert!(row.ends_with(words), "{row}");
        home.run(&["session", "send", id, "x"]).refused(4, "A003", words);
    }
}

#[test]
fn a_session_is_named_by_either_end_of_its_id() {
    let home = Home::new();
    let (_, first) = ran(&home, "one");
    let (_, second) = ran(&home, "two");
    let end = |id: &str| id[id.len() - 8..].to_owned();
    for id in [&first, &second] {
        assert_eq!(home.json(&["session", "show", &end(id)])["id"], **id);
        assert_eq!(home.json(&["session", "show", &id[..id.len() - 2]])["id"], **id);
    }
    home.run(&["session", "show", "sess_0"]).refused(2, "L016", "2 sessions begin or end with sess_0");
    let resumed = home.json(&["session", "start", "--agent", "mock", "--resume", &end(&first)]);
    assert_eq!(resumed["resumes"], *first);
    home.run(&["session", "stop", resumed["id"].as_str().unwrap()]).expect(0);
}

#[test]
fn a_transcript_has_all_that_was_said_and_what_happened_between() {
    let home = Home::new();
    let hooks = json!({"hooks": [{"name": "tests", "command": ["sh", "-c", "seq 30"]}]});
    fs::write(home.data().join("hooks.json"), hooks.to_string()).unwrap();
    let (_, session) = ran(&home, "permission write complete done");
    let shown = says(
        &home,
        &["session", "show", &session, "--transcript"],
        &[
            "prompt    permission write complete done",
            "wants     run_command: make",
            "answered  allow",
            "tool      write_file  done\n",
            "says      permission: once",
            "hook      tests  succeeded\n",
            "          20\n          … and 10 more lines\n",
        ],
    );
    let place = |text: &str| shown.find(text).unwrap();
    assert!(place("prompt") < place("wants") && place("wants") < place("answered"), "{shown}");
    assert!(place("answered") < place("write_file  done") && place("write_file") < place("hook"), "{shown}");
    let printed = home.run(&["session", "show", &session, "--transcript", "--json"]);
    let records: Vec<Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = records.iter().map(|record| record["kind"].as_str().unwrap()).collect();
    for kind in ["prompt", "text", "tool", "permission_requested", "permission_resolved", "hook_lifecycle"] {
        assert!(kinds.contains(&kind), "{kind} in {kinds:?}");
    }
    assert!(records.iter().all(|record| record["v"] == 1 && record["at"].is_string()));
}

#[test]
fn a_transcript_is_read_as_something_hostile() {
    let home = Home::new();
    let (_, session) = ran(&home, "one");
    let path = home.data().join("sessions").join(&session).join("transcript.jsonl");
    let at = "2026-01-01T00:00:00.000Z";
    let thought = json!({"at": at, "kind": "thought", "text": "first\u{1b}[2J\nsecond"});
    let other = json!({"at": at, "kind": "\u{1b}]0;x", "x": "\u{1b}[31m"});
    let long = format!("{{\"at\":\"{at}\",\"kind\":\"text\",\"text\":\"{}\"}}", "x".repeat(17 << 20));
    fs::write(&path, format!("{thought}\n{other}\nno json\n{long}\n[]\n{{\"at\": \"{at}")).unwrap();
    let shown = says(
        &home,
        &["session", "show", &session, "--transcript"],
        &["thinks    first\u{fffd}[2J\n          second\n", "left out  a piece that is too long"],
    );
    assert!(!shown.contains('\u{1b}'), "{shown:?}");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
    let refused = home.run(&["session", "show", &session, "--transcript"]);
    assert!(refused.code != Some(0) && !refused.stdout.contains("root"), "{refused:?}");
}

#[test]
fn what_went_wrong_in_a_session_is_said_also_afterwards() {
    let home = Home::new();
    fs::write(home.data().join("hooks.json"), "{\"hooks\": [{}]}").unwrap();
    let (_, session) = ran(&home, "write");
    says(&home, &["session", "show", &session], &["error      hook_config_invalid: ", "hooks.json:1:"]);
    assert_eq!(home.json(&["session", "show", &session])["errors"][0]["code"], "hook_config_invalid");
}

#[test]
fn whoever_attaches_at_a_terminal_talks_and_answers_and_is_not_asked_twice() {
    let home = Home::new();
    let _serving = Serving::start_with(&home, &["--no-dispatch"]);
    let id = home.json(&["session", "start", "--agent", "mock"])["id"].as_str().unwrap().to_owned();
    let show = || home.json(&["session", "show", &id]);
    let (ours, theirs) = terminal();
    let mut keys = File::from(ours);
    let attached = home.command(&["session", "attach", &id]).stdin(theirs).spawn().unwrap();
    keys.write_all(b"permission\n").unwrap();
    until("it asks", || !show()["pendingPermissions"].as_array().unwrap().is_empty());
    keys.write_all(b"allow\n").unwrap();
    until("it is done", || show()["state"] == "ready" && show()["toolRuns"][0]["status"] == "succeeded");
    // Whoever comes later sees that it was asked and answered, and is asked for nothing.
    let (_kept, theirs) = terminal();
    let seen = home.path("seen.txt");
    let mut later = home.command(&["session", "attach", &id]);
    let later = later.stdin(theirs).stdout(File::create(&seen).unwrap()).spawn().unwrap();
    let seen = || fs::read_to_string(&seen).unwrap();
    until("it is shown", || seen().contains("answered  allow"));
    keys.write_all(b"more words\n").unwrap();
    let transcript = || home.run(&["session", "show", &id, "--transcript"]).stdout;
    until("it has answered that too", || transcript().contains("says      more words"));
    home.run(&["session", "stop", &id]).expect(0);
    let first = finish(attached, None);
    finish(later, None).expect(0);
    assert!(first.stderr.contains("what you type is sent"), "{first:?}");
    assert!(first.stdout.contains("allow it? [y/n]"), "{first:?}");
    assert!(seen().contains("which is answered") && !seen().contains("[y/n]"), "{}", seen());
}

//! Tasks while somebody owns the data directory: the same commands, what people do to the files, and what is due.

use std::fs;
use std::io::BufRead as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::serve::{Serving, redact};
use crate::support::{Home, until};

const SOON: Duration = Duration::from_secs(2);

/// Events of a type about a task. Only reads, so that nothing is taken in by looking.
fn events(home: &Home, event_type: &str, task: &str) -> Vec<Value> {
    let is_wanted = |event: &Value| event["type"] == event_type && event["task"] == task;
    home.events().into_iter().filter(is_wanted).collect()
}

fn file(home: &Home, status: &str, task: &str) -> PathBuf {
    home.data().join(format!("tasks/{status}/{task}.md"))
}

/// A task, which carries a version of its own.
fn task(home: &Home, args: &[&str]) -> Value {
    let ended = home.run(&[args, &["--json"]].concat());
    ended.expect(0);
    serde_json::from_str(&ended.stdout).unwrap()
}

fn new(home: &Home, args: &[&str]) -> String {
    task(home, &[&["task", "new"], args].concat())["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn soon(what: &str, holds: impl FnMut() -> bool) {
    let start = Instant::now();
    until(what, holds);
    assert!(start.elapsed() < SOON, "{what}: only after {:?}", start.elapsed());
}

#[test]
fn what_a_person_does_to_the_files_is_taken_in_soon() {
    let home = Home::new();
    let serving = Serving::start(&home);
    let id = new(&home, &["Write it down", "--ready"]);
    let path = file(&home, "ready", &id);

    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, format!("{text}\nA thought of mine.\n")).unwrap();
    soon("the body is taken in", || !events(&home, "task.edited", &id).is_empty());
    assert!(task(&home, &["task", "show", &id])["body"].as_str().unwrap().contains("A thought of mine."));

    // As editors do it: a new file takes the place of the old one.
    let text = fs::read_to_string(&path).unwrap();
    let beside = home.data().join("tasks/ready/.edit.swp");
    fs::write(&beside, text.replace("priority: normal", "priority: high")).unwrap();
    fs::rename(&beside, &path).unwrap();
    soon("the priority is taken in", || events(&home, "task.edited", &id).len() == 2);
    assert_eq!(task(&home, &["task", "show", &id])["priority"], "high");

    let moved = events(&home, "task.transitioned", &id).len();
    fs::rename(&path, file(&home, "blocked", &id)).unwrap();
    soon("the move is taken in", || events(&home, "task.transitioned", &id).len() > moved);
    assert_eq!(task(&home, &["task", "show", &id])["status"], "blocked");

    // A new file is a new task.
    let made = "TASK-2026-01-02-003";
    fs::write(file(&home, "backlog", made), "---\ntitle: By hand\n---\nText\n").unwrap();
    soon("the new task is taken in", || !events(&home, "task.created", made).is_empty());

    // A folder that was removed is made again and watched again.
    fs::remove_dir_all(home.data().join("tasks/review")).unwrap();
    soon("the folder is there again", || home.data().join("tasks/review").is_dir());
    serving.stop();
    assert_eq!(home.json(&["replay"])["equal"], true);
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_lease_that_runs_out_is_acted_on_within_a_second_and_told() {
    let home = Home::new();
    let mut serving =
        Serving::start_with(&home, &["--set", "scheduler.max_attempts=1", "--set", "scheduler.poll=10m"]);
    let id = new(&home, &["Do it", "--ready"]);
    let claimed = home.json(&["task", "claim", &id, "--agent", "worker", "--ttl", "1s"]);
    let start = Instant::now();
    assert_eq!(claimed["fence"], 1);
    // The claim itself is told first.
    let mut line = String::new();
    for _ in 0..2 {
        line.clear();
        serving.said.as_mut().unwrap().read_line(&mut line).unwrap();
    }
    let took = start.elapsed();
    assert!(took < Duration::from_millis(2_200), "a lease of a second was acted on after {took:?}");
    let told: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&told["moved"]["task"], &told["moved"]["to"]), (&json!(id), &json!("deadletter")), "{told}");
    assert_eq!(task(&home, &["task", "show", &id])["status"], "deadletter");
    serving.stop();
}

/// The life of a task, and everything that was said.
fn story(home: &Home) -> Vec<String> {
    let mut told = Vec::new();
    fs::write(home.work().join("text.md"), "What is to be done.\n").unwrap();
    let mut tell = |args: &[&str], stdin: &str| {
        let ended = home.run_with(args, stdin);
        told.push(redact(&format!("{args:?} {:?}\n{}\n{}", ended.code, ended.stdout, ended.stderr), home));
        ended.stdout
    };
    let id = tell(&["task", "new", "A story", "-f", "text.md", "--no-review"], "");
    let id = id.trim().to_owned();
    tell(&["task", "new", "From a pipe", "-f", "-", "--ready"], "Text from a pipe.\n");
    tell(&["task", "new", "No such file", "-f", "missing.md"], "");
    tell(&["task", "show", &id], "");
    tell(&["task", "claim", &id, "--agent", "me"], "");
    tell(&["task", "move", &id, "ready", "--reason", "go"], "");
    tell(&["task", "claim", &id, "--agent", "me"], "");
    tell(&["task", "claim", &id, "--agent", "you"], "");
    tell(&["task", "beat", &id, "--agent", "you", "--fence", "1"], "");
    tell(&["task", "log", &id, "thinking"], "");
    tell(&["send", "-", "--color", "always"], "no message at all");
    tell(&["exit", "check", "-"], "{}");
    tell(&["task", "release", &id, "--agent", "me", "--fence", "1"], "");
    tell(&["task", "ls"], "");
    tell(&["task", "show", "TASK-nothing"], "");
    tell(&["ci", "report", &id, "--passed"], "");
    told
}

#[test]
fn tasks_through_an_owner_are_the_same_as_without_one() {
    let alone = Home::new();
    let expected = story(&alone);
    let home = Home::new();
    let serving = Serving::start(&home);
    let told = story(&home);
    for (told, expected) in told.iter().zip(&expected) {
        // Where the switch of exit signals is, is where they differ.
        let is_switch =
            |line: &&str| line.contains("AGENT_EXIT_PROTOCOL_ENABLED=true") || line.contains("baton serve");
        let same =
            |text: &str| text.lines().filter(|line| !is_switch(line)).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(same(told), same(expected));
    }
    serving.stop();
    let types =
        |home: &Home| -> Vec<Value> { home.events().iter().map(|event| event["type"].clone()).collect() };
    assert_eq!(types(&home), types(&alone));
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn two_agents_race_through_an_owner_and_one_wins() {
    let home = Home::new();
    let serving = Serving::start(&home);
    for round in 0..4 {
        let id = new(&home, &[&format!("Round {round}"), "--ready"]);
        let claims: Vec<_> = (0..6)
            .map(|n| home.command(&["task", "claim", &id, "--agent", &format!("agent-{n}")]).spawn().unwrap())
            .collect();
        let codes: Vec<_> =
            claims.into_iter().map(|child| crate::support::finish(child, None).code).collect();
        assert_eq!(codes.iter().filter(|code| **code == Some(0)).count(), 1, "{codes:?}");
        assert_eq!(codes.iter().filter(|code| **code == Some(5)).count(), 5, "{codes:?}");
    }
    serving.stop();
    assert_eq!(home.json(&["replay"])["equal"], true);
}

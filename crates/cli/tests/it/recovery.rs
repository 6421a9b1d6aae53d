//! Baton killed while an agent works: whoever comes next finds the task where it belongs, the agent gone, and everything that was said.

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command};

use serde_json::{Value, json};

use crate::deaths::living;
use crate::serve::Serving;
use crate::support::{Home, finish, until, wait};
use crate::task_support::text;

/// Who is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Serve,
    Run,
}

/// What an agent has said of its task, and what becomes of that (seed 003).
const TABLE: [(&str, &str, u64); 5] = [
    ("", "ready", 1),
    ("partial", "review", 0),
    ("needs_review", "review", 0),
    ("done", "review", 0),
    ("blocked", "blocked", 0),
];

/// The only session there is, and where it is kept.
fn session(home: &Home) -> Option<(String, PathBuf)> {
    let entries = fs::read_dir(home.data().join("sessions")).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let mut names = names.filter(|name| name.starts_with("sess_"));
    let name = names.next()?;
    assert!(names.next().is_none(), "one session");
    Some((name.clone(), home.data().join("sessions").join(name)))
}

fn transcript(dir: &std::path::Path) -> String {
    fs::read_to_string(dir.join("transcript.jsonl")).unwrap_or_default()
}

fn kill(pid: u32) {
    assert!(Command::new("kill").args(["-KILL", &pid.to_string()]).status().unwrap().success());
}

/// The agent at work under whoever is to be killed.
fn start(home: &Home, owner: Owner, prompt: &str) -> (Child, Option<Serving>) {
    let serving = (owner == Owner::Serve).then(|| Serving::start_with(home, &["--no-dispatch"]));
    (home.command(&["run", prompt, "--agent", "mock", "--json"]).spawn().unwrap(), serving)
}

fn check(owner: Owner, outcome: &str, status: &str, attempts: u64) {
    let name = format!("{owner:?} {outcome}");
    let home = Home::new();
    let report = if outcome.is_empty() { String::new() } else { format!("complete {outcome} ") };
    let (mut run, serving) = start(&home, owner, &format!("{report}tool slow hang"));
    // A tool is written at once; what is said after it within a second or so.
    until("it is at work", || {
        session(&home).is_some_and(|(_, dir)| {
            let said = transcript(&dir);
            said.contains("read_file") && said.contains("slow 20")
        })
    });
    let (id, dir) = session(&home).unwrap();
    let said = transcript(&dir);
    assert!(!living(&id).is_empty(), "{name}: the agent works");
    match &serving {
        Some(serving) => {
            serving.signal("-KILL");
            let ended = finish(run, None);
            assert!(!matches!(ended.code, Some(0)), "{name}: whoever waited is told: {ended:?}");
        }
        None => {
            kill(run.id());
            wait(&mut run);
        }
    }
    drop(serving);
    let again = Serving::start_with(&home, &["--no-dispatch"]);
    assert_eq!(living(&id), [0; 0], "{name}: the agent is gone");
    let shown = home.json(&["session", "show", &id]);
    let end = &shown["terminationInfo"];
    assert_eq!(
        (&end["reason"], &end["terminated_by"]),
        (&json!("terminated"), &json!("daemon")),
        "{name}: {shown}"
    );
    assert_eq!(shown["state"], "stopped", "{name}");
    let runs: Vec<String> =
        shown["toolRuns"].as_array().unwrap().iter().map(|run| text(&run["status"])).collect();
    assert_eq!(runs, ["succeeded"], "{name}");
    assert_eq!(transcript(&dir), said, "{name}: nothing of it is lost");
    let task = text(&shown["taskId"]);
    let found = home.show(&task);
    assert_eq!(found["status"], status, "{name}: {found}");
    assert_eq!(found["attempts"].as_u64().unwrap_or(0), attempts, "{name}: {found}");
    assert!(found.get("lease").is_none_or(Value::is_null), "{name}: {found}");
    let ends = home.events().into_iter().filter(|event| event["type"] == "session.ended");
    assert_eq!(ends.count(), 1, "{name}");
    again.stop();
    // Another start finds nothing more to do.
    let before = home.events().len();
    Serving::start_with(&home, &["--no-dispatch"]).stop();
    let ends = home.events().into_iter().skip(before).filter(|event| event["type"] != "ledger.opened");
    assert!(
        ends.clone().all(|event| event["type"] != "session.ended"),
        "{name}: {:?}",
        ends.collect::<Vec<_>>()
    );
    assert_eq!(home.json(&["session", "show", &id]), shown, "{name}: the same before and after");
    assert_eq!(home.show(&task)["status"], status, "{name}");
    home.verifies();
}

/// How often; `make soak` asks for more.
fn rounds() -> usize {
    std::env::var("BATON_RECOVERY_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

fn check_all(owner: Owner) {
    for _ in 0..rounds() {
        std::thread::scope(|scope| {
            for (outcome, status, attempts) in TABLE {
                scope.spawn(move || check(owner, outcome, status, attempts));
            }
        });
    }
    eprintln!("{owner:?}: {} kills", rounds() * TABLE.len());
}

#[test]
fn a_signal_that_was_written_stands_whenever_baton_dies() {
    let home = Home::with_signals();
    let signal = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;
    fs::write(home.work().join("signal.json"), format!("{signal}\n")).unwrap();
    let command = "cat >/dev/null; cat signal.json; sleep 1000";
    let agent = format!("[agents.sh]\nharness = \"exec\"\ncommand = [\"sh\", \"-c\", \"{command}\"]\n");
    crate::runs::configure(&home, &agent);
    let mut run = home.command(&["run", "do it", "--agent", "sh", "--json"]).spawn().unwrap();
    let kept = |dir: PathBuf| fs::read_to_string(dir.join("session.json")).unwrap_or_default();
    until("it has said so", || session(&home).is_some_and(|(_, dir)| kept(dir).contains("apm2_agent_exit")));
    kill(run.id());
    wait(&mut run);
    let listed = home.json(&["task", "ls"]);
    let task = text(&listed["tasks"][0]["id"]);
    home.run(&["task", "log", &task, "somebody looks"]).expect(0);
    assert_eq!((home.phase(&task).as_str(), home.show(&task)["attempts"].as_u64()), ("CI_PENDING", Some(0)));
    home.verifies();
}

#[test]
fn an_end_that_was_recorded_is_the_end_also_where_baton_died_right_after() {
    let home = Home::new();
    home.run(&["run", "crash 3 2", "--agent", "mock"]).expect(6);
    let (id, dir) = session(&home).unwrap();
    let shown = home.json(&["session", "show", &id]);
    // As it is on the disk when the end is in the ledger and nowhere else.
    let path = dir.join("session.json");
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    kept.as_object_mut().unwrap().retain(|name, _| !matches!(name.as_str(), "ended" | "endedAt"));
    fs::write(&path, kept.to_string()).unwrap();
    fs::write(home.data().join("sessions/live").join(&id), "").unwrap();
    home.run(&["task", "new", "another"]).expect(0);
    let again = home.json(&["session", "show", &id]);
    assert_eq!(again["terminationInfo"], shown["terminationInfo"]);
    assert_eq!(again["terminationInfo"]["exit_code"], 3);
    let ends = home.events().into_iter().filter(|event| event["type"] == "session.ended").count();
    assert_eq!(ends, 1);
    home.verifies();
}

#[test]
fn a_run_that_died_with_its_server_is_where_its_report_says() {
    check_all(Owner::Serve);
}

#[test]
fn a_run_that_died_with_itself_is_where_its_report_says() {
    check_all(Owner::Run);
}

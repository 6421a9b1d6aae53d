//! What people meet with their first agents: names that nobody has, servers that are older than the configuration, places without git.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::hints::after;
use crate::newcomers::paste;
use crate::runs::configure;
use crate::serve::Serving;
use crate::support::{Home, until, wait};

fn verdict(home: &Home, check: &str) -> Value {
    let ended = home.run(&["doctor", "--json"]);
    let checks = ended.object()["checks"].clone();
    checks.as_array().unwrap().iter().find(|found| found["check"] == check).unwrap().clone()
}

#[test]
fn the_doctor_says_why_no_hook_runs() {
    let home = Home::new();
    assert_eq!(verdict(&home, "hooks")["status"], "ok");
    let path = home.data().join("hooks.json");
    fs::write(&path, "{\"hooks\": [\n  {\"name\": \"tests\", \"comand\": [\"make\"]}\n]}").unwrap();
    let broken = verdict(&home, "hooks");
    assert_eq!((&broken["status"], &broken["see"]), (&json!("fail"), &json!("baton hooks check")));
    let detail = broken["detail"].as_str().unwrap();
    assert!(detail.contains("hooks.json:2:") && detail.contains("comand"), "{detail}");
    home.run(&["doctor"]).expect(1);
    let hooks = json!({"hooks": [{"name": "tests", "command": ["no-such-program"]}]});
    fs::write(&path, hooks.to_string()).unwrap();
    let missing = verdict(&home, "hooks");
    assert_eq!(missing["status"], "warn");
    assert!(missing["detail"].as_str().unwrap().ends_with("not found: tests"), "{missing}");
}

#[test]
fn a_worktree_needs_a_repository_and_that_is_said_before_and_once() {
    let home = Home::new();
    configure(
        &home,
        "[agents.apart]\nharness = \"exec\"\nworkspace = \"worktree\"\ncommand = [\"sh\", \"-c\", \"cat\"]\n\
         [scheduler]\npoll = \"50ms\"",
    );
    let warned = verdict(&home, "agents");
    assert_eq!(warned["status"], "warn", "{warned}");
    assert!(warned["detail"].as_str().unwrap().starts_with("apart works in git worktrees, and "), "{warned}");
    assert!(warned["detail"].as_str().unwrap().contains("is not in a git repository"), "{warned}");
    assert!(warned["advice"].as_str().unwrap().contains("git init"), "{warned}");
    let checked = home.run(&["agent", "check", "apart"]);
    checked.expect(6);
    assert!(checked.stdout.contains("worktree   failed"), "{checked:?}");
    let refused = home.run(&["run", "x", "--agent", "apart"]);
    refused.refused(4, "A007", "could not be made");
    assert_eq!(after(&refused.stderr, "hint: "), "baton doctor");
    let serving = Serving::start(&home);
    let other = home.run(&["task", "new", "complete done", "--agent", "mock", "--ready", "--json"]).value(0);
    until("others are worked on", || home.status(other["id"].as_str().unwrap()) == "review");
    let told = serving.stop();
    assert_eq!(told.matches("could not be made").count(), 1, "{told}");
    let git = |words: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org"]).args(words);
        assert!(git.current_dir(home.work()).status().unwrap().success(), "{words:?}");
    };
    git(&["init", "-q"]);
    assert!(verdict(&home, "agents")["detail"].as_str().unwrap().contains("has no commit yet"));
    git(&["commit", "-q", "--allow-empty", "-m", "first"]);
    assert_eq!(verdict(&home, "agents")["status"], "ok");
}

#[test]
fn a_server_that_is_older_than_an_agent_is_said_to_be() {
    let home = Home::new();
    let serving = Serving::start_with(&home, &["--no-dispatch"]);
    let added = home.run(&["agent", "add", "late", "--", "sh", "-c", "exit 3"]);
    added.expect(0);
    assert!(added.stderr.contains("knows it once it is started again"), "{added:?}");
    home.run(&["run", "x", "--agent", "late"]).refused(3, "A002", "end it, and start it again");
    home.run(&["session", "start", "--agent", "late"]).refused(3, "A002", "; baton serve");
    let made = home.run(&["task", "new", "x", "--agent", "late"]);
    assert!(made.stderr.contains("does not know it"), "{made:?}");
    home.run(&["run", "x", "--agent", "nobody"]).refused(3, "A002", "there is no agent nobody");
    serving.stop();
    home.run(&["run", "x", "--agent", "late"]).expect(6);
}

#[test]
fn a_server_that_was_started_for_a_session_is_not_to_be_killed() {
    let home = Home::new();
    let session = home.json(&["session", "start", "--agent", "mock"])["id"].as_str().unwrap().to_owned();
    let bare = home.run(&[]).stdout;
    assert!(bare.contains("serve --until-idle), which ends with its last session\n"), "{bare}");
    let added = home.run(&["agent", "add", "late", "--", "sh", "-c", "exit 3"]);
    assert!(added.stderr.contains("does not know it; that ends with its last session"), "{added:?}");
    let refused = home.run(&["session", "start", "--agent", "late"]);
    refused.refused(3, "A002", "ends with its last one");
    assert_eq!(after(&refused.stderr, "hint: "), "baton session ls --live");
    assert_eq!(home.json(&["session", "show", &session])["state"], "ready", "which goes on");
    home.run(&["session", "stop", &session]).expect(0);
}

#[test]
fn a_check_finds_what_a_session_finds_and_says_what_else_may_be_meant() {
    let home = Home::new();
    let script = home.work().join("agent.sh");
    fs::write(&script, "#!/bin/sh\nread -r first; echo \"I was told: $first\"\n").unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    home.run(&["agent", "add", "once", "--profile", "plain", "--", "./agent.sh"]).expect(0);
    let checked = home.run(&["agent", "check", "once"]);
    checked.expect(0);
    assert!(checked.stdout.contains("I was told: Reply"), "{checked:?}");
    home.run(&["agent", "add", "mute", "--", "sh", "./agent.sh"]).expect(0);
    configure(
        &home,
        "[agents.slow]\nharness = \"acp\"\ncommand = [\"sh\", \"-c\", \"exec sleep 1000\"]\n\
                      [agents.slow.deadlines]\nhandshake = \"100ms\"",
    );
    for (agent, command) in [("mute", "sh ./agent.sh"), ("slow", "sh -c 'exec sleep 1000'")] {
        let failed = home.run(&["agent", "check", agent]);
        failed.expect(6);
        assert!(failed.stdout.contains("handshake  failed"), "{failed:?}");
        let hint = after(&failed.stderr, "hint: ");
        assert_eq!(hint, format!("baton agent add {agent}-plain --profile plain -- {command}"));
    }
    let hint = after(&home.run(&["agent", "check", "mute"]).stderr, "hint: ").to_owned();
    paste(&home, &hint).expect(0);
    home.run(&["agent", "check", "mute-plain"]).expect(0);
    // Scripts get one object, and what is not there is nothing that another profile would mend.
    assert_eq!(home.run(&["agent", "check", "mute", "--json"]).stdout.lines().count(), 1);
    home.run(&["agent", "add", "gone", "--", "./nowhere.sh"]).expect(0);
    let failed = home.run(&["agent", "check", "gone"]);
    assert!(failed.stdout.contains("nowhere.sh: not found"), "{failed:?}");
    assert!(!failed.stderr.contains("hint: "), "{failed:?}");
    let listed = home.run(&["agent", "ls"]).stdout;
    assert!(listed.contains("sh -c 'exec sleep 1000'"), "{listed}");
}

#[test]
fn a_check_says_what_it_finds_when_it_finds_it() {
    let home = Home::new();
    let go = home.path("go");
    let script = format!("until test -e '{}'; do sleep 0.05; done; exit 3", go.display());
    home.run(&["agent", "add", "mute", "--", "sh", "-c", &script]).expect(0);
    let mut check = home.command(&["agent", "check", "mute"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut out = BufReader::new(check.stdout.take().unwrap());
    let mut first = String::new();
    out.read_line(&mut first).unwrap();
    assert!(first.starts_with("start      ok  process"), "{first}");
    // The agent has not said a word, and goes on only now.
    fs::write(&go, "").unwrap();
    let mut rest = String::new();
    out.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("exit code 3"), "{rest}");
    assert_eq!(wait(&mut check).code(), Some(6));
}

#[test]
fn a_model_that_wants_a_key_is_said_to() {
    let home = Home::new();
    let add = |name: &str, more: &[&str]| {
        let added = home.run(&[&["agent", "add", name, "--model", "m"], more].concat());
        added.expect(0);
        added.stderr
    };
    let told = add("a", &["--api", "anthropic"]);
    assert!(told.contains("--api-key-env ANTHROPIC_API_KEY"), "{told}");
    let told = add("b", &["--api", "openai", "--base-url", "https://api.openai.com/v1"]);
    assert!(told.contains("--api-key-env OPENAI_API_KEY"), "{told}");
    assert!(!add("c", &["--api", "openai", "--api-key-env", "KEY"]).contains("wants a key"));
    let local = ["--api", "openai", "--base-url", "http://127.0.0.1:8080/v1"];
    assert!(!add("d", &local).contains("wants a key"));
}

#[test]
fn what_can_be_worked_on_is_offered_to_the_agents_that_there_are() {
    let home = Home::new();
    let new = |args: &[&str]| {
        let made = home.run(&[&["task", "new", "x", "--ready"], args].concat());
        (made.stdout.trim().to_owned(), made.stderr)
    };
    let hint = |id: &str| after(&home.run(&["task", "show", id]).stderr, "hint: ").to_owned();
    let (anybodys, _) = new(&[]);
    assert_eq!(hint(&anybodys), format!("baton task claim {anybodys} --agent NAME"));
    let (mocks, _) = new(&["--agent", "mock"]);
    assert_eq!(hint(&mocks), format!("baton run --task {mocks}"));
    let (others, _) = new(&["--agent", "script"]);
    assert_eq!(hint(&others), format!("baton task claim {others} --agent NAME"));
    let (reviewers, told) = new(&["--role", "reviewer"]);
    assert!(told.contains("no agent takes the role reviewer"), "{told}");
    configure(&home, "[agents.one]\nharness = \"exec\"\ncommand = [\"sh\", \"-c\", \"echo ok\"]");
    assert_eq!(hint(&anybodys), format!("baton run --task {anybodys}"));
    assert_eq!(hint(&reviewers), format!("baton task claim {reviewers} --agent NAME"));
    let bare = home.run(&[]).stdout;
    assert!(bare.contains(&format!("baton run --task {anybodys}  ")), "{bare}");
    configure(
        &home,
        "[agents.two]\nharness = \"exec\"\nroles = [\"reviewer\"]\ncommand = [\"sh\", \"-c\", \"echo ok\"]",
    );
    assert_eq!(hint(&reviewers), format!("baton run --task {reviewers} --agent two"));
    assert_eq!(new(&["--role", "reviewer"]).1, "");
    let ran = home.run(&["run", "--task", &reviewers, "--agent", "two"]);
    ran.expect(0);
}

#[test]
fn a_report_that_a_hook_refuses_is_not_what_the_run_came_to() {
    let home = Home::new();
    let hooks =
        json!({"hooks": [{"name": "tests", "command": ["sh", "-c", "exit 7"], "timeout_ms": 120_000}]});
    fs::write(home.data().join("hooks.json"), hooks.to_string()).unwrap();
    let listed = home.run(&["hooks", "check"]).stdout;
    assert!(listed.contains("  2m  ") && !listed.contains(" ms"), "{listed}");
    let ran = home.run(&["run", "write complete done", "--agent", "mock"]);
    ran.expect(6);
    let task = home.json(&["task", "ls"])["tasks"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(after(&ran.stderr, "hint: "), format!("baton task show {task}"));
    let shown = home.run(&["task", "show", &task]);
    assert!(shown.stdout.contains("last run    by mock, failed "), "{shown:?}");
    assert!(shown.stdout.contains(": hook tests: exit 7\n"), "{shown:?}");
    assert!(shown.stdout.contains("reported    done, which does not count\n"), "{shown:?}");
    assert!(!shown.stdout.contains("summary "), "{shown:?}");
    assert_eq!(after(&shown.stderr, "hint: "), format!("baton run --task {task}"));
    paste(&home, after(&shown.stderr, "hint: ")).expect(6);
    assert_eq!(home.show(&task)["attempts"], 2);
    assert_eq!(home.show(&task)["lastRun"]["refused"], true);
}

#[test]
fn an_agent_at_its_limit_was_not_killed_and_its_task_waits() {
    let home = Home::new();
    let ran = home.run(&["run", "limit", "--agent", "mock"]);
    ran.expect(6);
    assert!(!ran.stdout.contains("SIGTERM") && !ran.stderr.contains("SIGTERM"), "{ran:?}");
    let task = home.json(&["task", "ls"])["tasks"][0].clone();
    assert!(ran.stdout.contains(" is in ready, and waits until 20"), "{ran:?}");
    assert!(after(&ran.stderr, "hint: ").ends_with(task["id"].as_str().unwrap()), "{ran:?}");
}

#[test]
fn hints_about_agents_can_be_pasted() {
    let home = Home::new();
    let refused = home.run(&["run", "complete done; x"]);
    refused.refused(3, "A002", "no agent is configured");
    assert_eq!(after(&refused.stderr, "hint: "), "baton run 'complete done; x' --agent mock");
    let refused = home.run(&["session", "start"]);
    refused.refused(3, "A002", "no agent is configured");
    assert_eq!(after(&refused.stderr, "hint: "), "baton session start --agent mock");
    let refused = home.run(&["session", "start", "--agent", "mock", "--cwd", "no where"]);
    refused.refused(4, "A007", "no directory");
    let dir = home.work().join("no where");
    assert_eq!(after(&refused.stderr, "hint: "), format!("mkdir -p '{}'", dir.display()));
    home.run(&["run", " ", "--agent", "mock"]).refused(2, "U012", "the prompt is empty");
    let made = home.run(&["task", "new", "x", "--agent", "mok"]);
    assert!(made.stderr.contains("no agent mok is configured"), "{made:?}");
    assert!(made.stderr.contains("did you mean `mock`"), "{made:?}");
}

#[test]
fn a_run_whose_owner_was_killed_is_not_called_alive() {
    let home = Home::new();
    let mut run = home.command(&["run", "hang", "--agent", "mock"]).spawn().unwrap();
    until("it works", || home.run(&["session", "ls", "--live", "--json"]).stdout.contains("calling_llm"));
    let task = home.json(&[])["tasks"]["running"][0].as_str().unwrap().to_owned();
    assert!(home.json(&[])["tasks"]["cutShort"].as_array().unwrap().is_empty());
    run.kill().unwrap();
    run.wait().unwrap();
    let shown = home.run(&[]);
    assert!(shown.stdout.contains(&format!("was cut short   {task}")), "{shown:?}");
    assert!(shown.stdout.contains("baton serve ") && !shown.stdout.contains("\nruns"), "{shown:?}");
    assert_eq!(home.json(&[])["tasks"]["cutShort"], json!([task]));
    let listed = home.run(&["session", "ls"]).stdout;
    assert!(listed.contains("cut short: its owner is gone"), "{listed}");
    assert_eq!(home.json(&["session", "ls"])["sessions"][0]["cutShort"], true);
    let session = home.json(&["session", "ls"])["sessions"][0]["id"].as_str().unwrap().to_owned();
    let shown = home.run(&["session", "show", &session]);
    assert!(shown.stdout.contains("ended      cut short: its owner is gone"), "{shown:?}");
    assert!(shown.stderr.contains("hint: baton serve"), "{shown:?}");
    assert!(shown.stdout.contains("state      stopped\n"), "{shown:?}");
    let seen = home.json(&["session", "show", &session]);
    assert_eq!((&seen["state"], &seen["cutShort"]), (&json!("stopped"), &json!(true)), "{seen}");
    assert_eq!(home.show(&task)["lastRun"]["sessionState"], "stopped");
    // Whoever owns it next sees to it.
    home.run(&["task", "log", &task, "x"]).expect(0);
    assert_eq!(home.show(&task)["lastRun"]["sessionId"], *session);
    let shown = home.run(&["task", "show", &task]).stdout;
    assert!(
        shown.contains("last run    by mock, failed") && shown.contains(": Baton itself ended\n"),
        "{shown}"
    );
    let shown = home.run(&["session", "show", &session]).stdout;
    assert!(shown.contains("ended      cut short: Baton itself ended while it ran"), "{shown}");
}

//! What people meet with their first agents: names that nobody has, servers that are older than the configuration, places without git.

use std::fs;
use std::process::Command;

use serde_json::{Value, json};

use crate::hints::after;
use crate::runs::configure;
use crate::serve::Serving;
use crate::support::{Home, until};

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
    assert!(warned["detail"].as_str().unwrap().contains("is not in a git repository"), "{warned}");
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

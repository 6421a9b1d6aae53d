//! Notifications through the binary: one process sends each, and what a server runs does not outlive it.

use std::fs;
use std::path::{Path, PathBuf};

use baton_store::tasks::tree::{RealTree, Tree as _};

use crate::serve::Serving;
use crate::support::{Home, finish, until};
use crate::task_support::signal;

/// A home whose notifications are given to a script in its working directory.
fn telling(script: &str) -> Home {
    let home = Home::new();
    let path = home.work().join("tell.sh");
    fs::write(&path, script).unwrap();
    let config = home.data().join("baton.toml");
    let text = fs::read_to_string(&config).unwrap_or_default();
    fs::write(config, format!("{text}\n[notify]\ncommand = [\"sh\", {:?}]\n", path.display().to_string()))
        .unwrap();
    home
}

fn lines(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn outbox(home: &Home) -> usize {
    fs::read_dir(home.data().join("notifications/outbox")).map_or(0, Iterator::count)
}

/// Whether the process whose number the file has is gone; one that nobody reaped yet is.
fn is_gone(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_none_or(|rest| rest.is_empty() || rest.starts_with('Z'))
}

/// A server in the middle of a command that never ends and does not want to, with a second process of its own.
fn hanging() -> (Home, Serving, Vec<String>) {
    let home = telling("trap '' TERM; sleep 1000 & echo $$ >> pids; echo $! >> pids; wait; sleep 1000\n");
    let id = home.task(&[]);
    let serving = Serving::start(&home);
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    let pids: PathBuf = home.work().join("pids");
    until("it runs", || lines(&pids).len() == 2);
    let pids = lines(&pids);
    assert!(pids.iter().all(|pid| !is_gone(pid)), "{pids:?}");
    (home, serving, pids)
}

#[test]
fn a_command_that_hangs_is_gone_when_the_server_has_ended() {
    let (home, serving, pids) = hanging();
    serving.stop();
    assert!(pids.iter().all(|pid| is_gone(pid)), "{pids:?}");
    assert_eq!(outbox(&home), 1, "it is told in the next life");
}

#[test]
fn a_command_that_hangs_is_gone_when_the_server_was_killed() {
    let (home, serving, pids) = hanging();
    // Killed, not asked.
    drop(serving);
    until("what it ran is gone", || pids.iter().all(|pid| is_gone(pid)));
    assert_eq!(outbox(&home), 1, "it is told in the next life");
    fs::write(home.work().join("tell.sh"), "echo \"$BATON_TASK_ID\" >> told\n").unwrap();
    home.run(&["notify", "flush"]).expect(0);
    assert_eq!((lines(&home.work().join("told")).len(), outbox(&home)), (1, 0));
}

#[test]
fn what_cannot_be_run_is_given_up_by_its_name() {
    let home = telling("");
    let config = home.data().join("baton.toml");
    let text = fs::read_to_string(&config).unwrap().replace("\"sh\", ", "\"no-such-program\", ");
    fs::write(config, text).unwrap();
    let id = home.task(&[]);
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    until("given up", || home.run(&["notify", "ls"]).stdout.contains("not found: no-such-program"));
}

/// Runs a command in this many processes at once.
fn at_once(home: &Home, count: usize, args: &[&str]) {
    let all: Vec<_> = (0..count).map(|_| home.command(args).spawn().unwrap()).collect();
    for child in all {
        finish(child, None).expect(0);
    }
}

/// Tasks that were blocked while nobody was told.
fn untold(home: &Home, count: usize) {
    let config = home.data().join("baton.toml");
    let told = fs::read_to_string(&config).unwrap();
    fs::write(&config, told.split("[notify]").next().unwrap()).unwrap();
    for _ in 0..count {
        let id = home.task(&[]);
        home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    }
    fs::write(&config, told).unwrap();
}

#[test]
fn of_eight_processes_that_flush_at_once_one_sends_each() {
    let home = telling("echo \"$BATON_DELIVERY\" >> told\n");
    untold(&home, 6);
    at_once(&home, 8, &["notify", "flush", "--since", "0"]);
    let told = home.work().join("told");
    let check = |expected: usize| {
        // Whoever had none to send ends before the one who sends has ended.
        until("all are told", || outbox(&home) == 0 && lines(&told).len() >= expected);
        let mut ids = lines(&told);
        assert_eq!(ids.len(), expected, "each once: {ids:?}");
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), expected);
    };
    check(6);
    // And what was told is not told again.
    at_once(&home, 2, &["notify", "flush", "--since", "0"]);
    check(6);
    // Given up, and tried again by eight at once.
    fs::write(home.work().join("tell.sh"), "exit 1\n").unwrap();
    untold(&home, 3);
    home.run(&["notify", "flush", "--since", "0"]).expect(0);
    assert_eq!(home.json(&["notify", "ls"])["dead"].as_array().unwrap().len(), 3);
    fs::write(home.work().join("tell.sh"), "echo \"$BATON_DELIVERY\" >> told\n").unwrap();
    at_once(&home, 8, &["notify", "retry"]);
    check(9);
    assert_eq!(home.json(&["notify", "ls"])["dead"].as_array().unwrap().len(), 0);
}

#[test]
fn what_waits_in_the_outbox_is_sent_by_one_of_a_server_and_those_who_flush() {
    let home = telling("echo \"$BATON_DELIVERY\" >> told\n");
    untold(&home, 5);
    // Kept and not sent: whoever was to send was killed.
    fs::write(home.work().join("tell.sh"), "echo $$ >> begun; sleep 1000\n").unwrap();
    let mut flush = home.command(&["notify", "flush", "--since", "0"]).spawn().unwrap();
    until("it sends", || !lines(&home.work().join("begun")).is_empty());
    flush.kill().unwrap();
    flush.wait().unwrap();
    assert_eq!(outbox(&home), 5);
    fs::write(home.work().join("tell.sh"), "echo \"$BATON_DELIVERY\" >> told\n").unwrap();
    let serving = Serving::start(&home);
    at_once(&home, 7, &["notify", "flush", "--since", "0"]);
    until("all are told", || outbox(&home) == 0);
    serving.stop();
    assert_eq!(lines(&home.work().join("told")).len(), 5);
    until("the first one is gone", || lines(&home.work().join("begun")).iter().all(|pid| is_gone(pid)));
}

#[test]
fn commands_without_a_server_and_the_next_server_tell_each_once() {
    let home = telling("echo \"$BATON_TASK_ID\" >> told\n");
    let ids: Vec<String> = (0..4).map(|_| home.task(&[])).collect();
    for id in &ids {
        home.run(&["task", "move", id, "blocked", "--reason", "x"]).expect(0);
    }
    let serving = Serving::start(&home);
    until("all are told", || lines(&home.work().join("told")).len() >= 4 && outbox(&home) == 0);
    serving.stop();
    let mut told = lines(&home.work().join("told"));
    told.sort();
    assert_eq!(told, ids);
}

#[test]
fn checks_that_run_are_gone_when_the_server_was_killed_and_run_again_in_the_next_life() {
    let home = Home::with_signals();
    let script = "echo $$ >> pids; [ -e again ] || { trap '' TERM; sleep 1000 & echo $! >> pids; wait; }\n";
    fs::write(home.work().join("check.sh"), script).unwrap();
    let command = format!("[\"sh\", {:?}]", home.work().join("check.sh").display().to_string());
    fs::write(home.data().join("baton.toml"), format!("[ci]\ncommand = {command}\n")).unwrap();
    let id = home.task(&[]);
    home.claim(&id, "ada");
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    assert_eq!(home.phase(&id), "CI_PENDING");
    let serving = Serving::start(&home);
    let pids: PathBuf = home.work().join("pids");
    until("it runs", || lines(&pids).len() == 2);
    drop(serving);
    until("what it ran is gone", || lines(&pids).iter().all(|pid| is_gone(pid)));
    assert_eq!(home.phase(&id), "CI_PENDING", "a run without an end has no verdict");
    fs::write(home.work().join("again"), "").unwrap();
    let serving = Serving::start(&home);
    until("it is judged", || home.phase(&id) == "READY_FOR_REVIEW");
    serving.stop();
}

/// A file that is no program.
fn not_a_program(home: &Home) -> PathBuf {
    let path = home.work().join("plain.sh");
    fs::write(&path, "#!/bin/sh\nexit 0\n").unwrap();
    path
}

#[test]
fn a_file_that_may_not_be_run_is_said_to_be_one() {
    let home = Home::with_signals();
    let path = not_a_program(&home);
    let words = format!("[{:?}]", path.display().to_string());
    let shown = format!("not executable: {}", path.display());
    fs::write(home.data().join("baton.toml"), format!("[ci]\ncommand = {words}\n")).unwrap();
    let id = home.task(&[]);
    home.claim(&id, "ada");
    home.submitted(&id, &signal("IMPLEMENTATION", "completed"));
    let serving = Serving::start(&home);
    until("it is judged", || home.phase(&id) != "CI_PENDING" || home.status(&id) != "in-progress");
    serving.stop();
    let records = serde_json::Value::from(home.records(&id)).to_string();
    assert!(records.contains(&shown), "{records}");

    fs::write(home.data().join("baton.toml"), format!("[notify]\ncommand = {words}\n")).unwrap();
    let id = home.task(&[]);
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    until("given up", || home.run(&["notify", "ls"]).stdout.contains(&shown));
}

#[test]
fn a_flush_says_what_it_delivered_and_what_another_process_sends() {
    let home = telling("echo x >> begun; until test -e go; do sleep 0.01; done\n");
    assert_eq!(home.run(&["notify", "flush"]).expect(0).stdout, "Nothing waits to be delivered.\n");
    untold(&home, 1);
    let first = home.command(&["notify", "flush", "--since", "0"]).spawn().unwrap();
    until("it sends", || !lines(&home.work().join("begun")).is_empty());
    let other = home.run(&["notify", "flush"]);
    assert_eq!(other.expect(0).stdout, "1 notification being sent by another process.\n");
    let other = home.json(&["notify", "flush"]);
    assert_eq!((&other["elsewhere"], &other["waiting"]), (&1.into(), &0.into()), "{other}");
    fs::write(home.work().join("go"), "").unwrap();
    let first = finish(first, None);
    assert_eq!(first.expect(0).stdout, "1 notification delivered.\n");
    assert_eq!((lines(&home.work().join("begun")).len(), outbox(&home)), (1, 0));
}

#[test]
fn a_server_sends_what_another_process_began_and_did_not_deliver() {
    let home = telling("echo $$ >> begun; until test -e go; do sleep 0.01; done\n");
    untold(&home, 1);
    let mut flush = home.command(&["notify", "flush", "--since", "0"]).spawn().unwrap();
    until("it sends", || !lines(&home.work().join("begun")).is_empty());
    let serving = Serving::start(&home);
    flush.kill().unwrap();
    flush.wait().unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    until("the server sends it", || outbox(&home) == 0);
    serving.stop();
    assert_eq!(lines(&home.work().join("begun")).len(), 2);
}

#[test]
fn a_server_starts_while_another_process_tells_and_goes_on_once_that_has_ended() {
    let home = telling("echo \"$BATON_TASK_ID\" >> told\n");
    let id = home.task(&[]);
    home.run(&["notify", "flush"]).expect(0);
    let tree = RealTree::open(&home.data()).unwrap();
    let turn = tree.claim("notifications/sending/telling").unwrap().unwrap();
    let serving = Serving::start(&home);
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    drop(turn);
    until("it is told", || lines(&home.work().join("told")) == [id.as_str()]);
    let warned = serving.stop();
    assert!(warned.contains("another process is still telling what happened"), "{warned}");
    home.run(&["notify", "flush", "--since", "0"]).expect(0);
    assert_eq!(lines(&home.work().join("told")).len(), 1);
}

#[test]
fn what_could_not_be_kept_is_told_in_the_next_life() {
    let home = telling("echo $$ >> begun; until test -e go; do sleep 0.01; done; echo x >> told\n");
    let id = home.task(&[]);
    let serving = Serving::start(&home);
    let (sending, away) = (home.data().join("notifications/sending"), home.path("away"));
    fs::rename(&sending, &away).unwrap();
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    until("it sends", || !lines(&home.work().join("begun")).is_empty());
    assert_eq!(outbox(&home), 0, "it is in no file");
    // Killed: nobody but the ledger knows of it. What it ran is ended too, a moment later.
    drop(serving);
    let begun = PathBuf::from("/proc").join(&lines(&home.work().join("begun"))[0]);
    until("its command has ended", || !begun.exists());
    fs::rename(&away, &sending).unwrap();
    fs::write(home.work().join("go"), "").unwrap();
    let serving = Serving::start(&home);
    until("it is told", || lines(&home.work().join("told")).len() == 1);
    serving.stop();
    assert_eq!(lines(&home.work().join("told")).len(), 1);
}

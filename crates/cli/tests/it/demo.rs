//! The demo tells its whole story, ends by itself, and leaves nothing behind, also where it is interrupted.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Home, finish, until, wait};

/// Every part of the story, in order.
const HEADINGS: [&str; 23] = [
    "# A data directory, and somebody who does what is due",
    "# A task is created",
    "# Ada claims it; Bob comes too late",
    "# Ada reports progress",
    "# Ada hands the tests over to Bob",
    "# Bob does his part and reports it; a person lets it through",
    "# Ada ends her phase with an exit signal",
    "# CI: the configured command decides",
    "# Review: not by whoever did the work",
    "# A person approves it, and it is done",
    "# Baton drives an agent itself: tools, a hook after them, a report",
    "# An agent asks before it does something; a person answers",
    "# An agent crashes: how, after which tool, and what it wrote, within a second",
    "# From now on an agent that is silent for two seconds is taken for dead",
    "# An agent dies without a word: its task is ready again",
    "# Another one leaves a result before it dies: its work goes to review",
    "# A guarded task: one plans, one works, one doubts, one verifies, and each signs",
    "# What was blocked did not run, and that it was tried is recorded",
    "# The run keeps every rule, whoever asks; its claims are attested to others",
    "# Everything that happened to the first task, exported and verified",
    "# One event, proved from a checkpoint alone",
    "# Somebody turns the verdict of CI around in a copy",
    "# Or cuts off the end, and the checkpoints beside it: only the one that was kept tells",
];

/// A place for the demo's directory that holds nothing else.
fn stage() -> Home {
    let home = Home::empty();
    fs::create_dir(home.path("tmp")).unwrap();
    let tmp = home.path("tmp").display().to_string();
    home.with_env("TMPDIR", &tmp)
}

/// Processes that work below a directory, or did while it was there.
fn processes_in(dir: &Path) -> Vec<String> {
    let dir = dir.canonicalize().unwrap();
    let links =
        fs::read_dir("/proc").unwrap().filter_map(|entry| fs::read_link(entry.ok()?.path().join("cwd")).ok());
    links.filter(|cwd| cwd.starts_with(&dir)).map(|cwd| cwd.display().to_string()).collect()
}

fn expect_nothing_left(home: &Home) {
    let tmp = home.path("tmp");
    let left: Vec<_> = fs::read_dir(&tmp).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(left.is_empty(), "{left:?}");
    until("no process is left", || processes_in(&tmp).is_empty());
}

#[test]
fn the_demo_tells_the_life_of_a_task_and_leaves_nothing_behind() {
    let home = stage();
    let ended = home.run(&["demo", "--no-serve"]);
    ended.expect(0);
    let found: Vec<&str> = ended.stdout.lines().filter(|line| HEADINGS.contains(line)).collect();
    assert_eq!(found, HEADINGS, "{}", ended.stdout);
    assert!(ended.stdout.ends_with("# Done. Nothing of this is left behind.\n"), "{}", ended.stdout);
    for words in [
        "(exit code 5)",
        "next is CI_PENDING",
        "did the work before it",
        "hook  count  succeeded",
        "waits for  ",
        "permission: once",
        "exit code 3, cause crash, last tool read_file",
        "mock: crash line 4 of 4",
        "\"status\": \"failed\"",
        "stale_heartbeat_partial",
        "kim approves p1",
        "kim blocks i1",
        "joe means to run write_file again, instead of i1 (i2, medium)",
        "joe ran i2: exit 0",
        "kim challenges c1",
        "joe revises c1 as c2",
        "the trace is closed: completed",
        "rule intent-blocked",
        "guarded       completed, profile default",
        "wrote 3 attestations of trc_",
        "\"predicateType\":\"urn:baton:final-statement:v1\"",
        "verdict       pass, with warnings",
        "completeness  complete",
        "critical HASH_MISMATCH",
        "critical TAIL_CUT",
    ] {
        assert!(ended.stdout.contains(words), "{words}: {}", ended.stdout);
    }
    // The auditor's verdict, and that of whoever asks again.
    let (_, guarded) = ended.stdout.split_once("# A guarded task").unwrap();
    let (guarded, _) = guarded.split_once("# Everything that happened to").unwrap();
    let is_verdict = |line: &&str| line.contains("lou verified up to ") && line.ends_with(": pass");
    assert_eq!(guarded.lines().filter(is_verdict).count(), 1, "{guarded}");
    assert!(guarded.contains("completeness  complete\nverdict       pass\n"), "{guarded}");
    let place = home.path("").display().to_string();
    assert!(!ended.stdout.contains(&place), "no path of this machine: {}", ended.stdout);
    expect_nothing_left(&home);
}

#[test]
fn an_interrupted_demo_cleans_up() {
    let home = stage();
    let mut child = home.command(&["demo", "--json"]).stdout(Stdio::piped()).spawn().unwrap();
    // Read from to the end of the test: a reader that goes away would end the demo too.
    let mut said = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut steps = 0;
    for line in said.by_ref() {
        let step: Value = serde_json::from_str(&line.unwrap()).unwrap();
        steps += 1;
        assert_eq!((&step["v"], &step["step"]), (&1.into(), &steps.into()), "{step}");
        assert!(
            step["heading"].is_string() && step["command"].is_string() && step["exit"].is_i64(),
            "{step}"
        );
        if step["command"].as_str().unwrap().ends_with("--agent ada") {
            let pid = child.id().to_string();
            assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
            break;
        }
    }
    assert!(steps > 4);
    assert_eq!(wait(&mut child).code(), Some(130));
    expect_nothing_left(&home);
}

#[test]
fn a_demo_without_a_place_says_so() {
    let home = Home::empty();
    let nowhere = home.path("nowhere").display().to_string();
    let child = home.command(&["demo"]).env("TMPDIR", &nowhere).spawn().unwrap();
    let ended = finish(child, None);
    ended.expect(1);
    assert!(ended.stderr.contains("error[U013]: no directory for the demo"), "{}", ended.stderr);
}

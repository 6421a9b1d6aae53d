//! Baton killed at any moment of a guarded run: whoever goes on with it brings it to the same end.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baton_testkit::rng::{Rng, from_env};
use serde_json::{Value, json};

use crate::conducted::{expect_accounted, expect_passes, steps, team};
use crate::support::{Home, until, wait};
use crate::task_support::text;

#[test]
fn whenever_baton_is_killed_a_guarded_run_comes_to_the_same_end() {
    // How many moments; `make soak` asks for more.
    let count = from_env("BATON_GUARDED_KILLS", 10);
    let by_clock = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as u64;
    let seed = from_env("BATON_SEED", by_clock);
    eprintln!("replay: BATON_SEED={seed} BATON_GUARDED_KILLS={count}");
    let (lanes, mut survived) = (4, 0);
    let killed: u64 = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes)
            .map(|lane| {
                scope.spawn(move || {
                    (lane..count).step_by(lanes as usize).filter(|n| killed_at(*n, seed)).count() as u64
                })
            })
            .collect();
        lanes.into_iter().map(|lane| lane.join().unwrap()).sum()
    });
    survived += count - killed;
    eprintln!("{count} runs, {killed} killed on the way, {survived} were quicker");
    assert!(killed * 2 >= count, "most of them were killed in between");
}

/// What a tool does that is more than once to be seen: a line for every time that it ran.
const COUNTED: &str = "#!/bin/sh\necho ran >>\"${0%/*}/counted.txt\"\n";

/// Kills Baton at a random moment of a run, goes on with it, and looks what it came to. Gives whether it was killed before the end.
fn killed_at(n: u64, seed: u64) -> bool {
    let home = team("");
    let counted = home.work().join("count.sh");
    fs::write(&counted, COUNTED).unwrap();
    fs::set_permissions(&counted, Permissions::from_mode(0o755)).unwrap();
    let task = home.guarded(&format!(
        "edit forbidden.txt edit one.txt term {} fswrite two.txt complete done doubtful",
        counted.display()
    ));
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    // At some event of the run, and some moment after it: between any two things that it does.
    let mut rng = Rng::new(seed ^ n.wrapping_mul(0x9e37_79b9));
    let (moment, later) = (12 + rng.below(190), Duration::from_micros(rng.below(20_000)));
    let segment = home.segment();
    let events = || fs::read_to_string(&segment).unwrap_or_default().matches('\n').count() as u64;
    let mut has_ended = false;
    until("the moment has come", || {
        has_ended = run.try_wait().unwrap().is_some();
        has_ended || events() >= moment
    });
    let came = Instant::now();
    while came.elapsed() < later {
        std::thread::yield_now();
    }
    let _ = Command::new("kill").args(["-KILL", &run.id().to_string()]).status();
    wait(&mut run);
    let before = home.types(&task);
    let was_cut = !before.contains(&"task.verified".to_owned());
    // The wait after an attempt that failed is not this test's matter.
    let mut tries = 0;
    while !home.types(&task).contains(&"task.verified".to_owned()) {
        tries += 1;
        assert!(tries < 4, "{n}: {}", home.run(&["events"]).stdout);
        home.run(&["task", "retry", &task]);
        let ended = home.run(&["run", "--task", &task, "--json"]);
        assert!(ended.code.is_some(), "{ended:?}");
    }
    let verified = home.last(&task, "task.verified");
    assert_eq!(
        (&verified["payload"]["state"], &verified["payload"]["verdict"]),
        (&json!("completed"), &json!("pass")),
        "{n}: {}",
        home.run(&["events"]).stdout
    );
    let events = home.told(&home.guard_of(&task));
    expect_accounted(&events);
    expect_counted(&home, &events);
    assert_eq!(
        home.types(&task).iter().filter(|name| *name == "task.guard_opened").count(),
        1,
        "{n}: one run"
    );
    assert_eq!(home.status(&task), "review", "{n}");
    assert!(!home.work().join("forbidden.txt").exists(), "{n}");
    expect_passes(&home, &home.guard_of(&task));
    home.verifies();
    was_cut
}

/// By what the tools did, and not by what is said of it: each ran at most once for each intent that was let run.
fn expect_counted(home: &Home, events: &[Value]) {
    let ran = fs::read_to_string(home.work().join("counted.txt")).unwrap_or_default().lines().count();
    let intents = events.iter().filter(|event| event["type"] == "tool_intent_signed");
    let commands = intents.filter(|event| event["payload"]["tool_name"] != "write_file");
    let intents: Vec<&Value> = commands.map(|event| &event["payload"]["intent_id"]).collect();
    let started = events.iter().filter(|event| event["type"] == "tool_execution_started");
    let started = started.filter(|event| intents.contains(&&event["payload"]["intent_id"])).count();
    assert!((1..=started).contains(&ran), "it ran {ran} times, and {started} were let: {events:?}");
}

/// How often tools were started in the run of a task.
fn started(home: &Home, task: &str) -> usize {
    let all = steps(&home.told(&home.guard_of(task)));
    all.iter().filter(|name| *name == "tool_execution_started").count()
}

#[test]
fn an_executor_that_died_after_a_claim_is_set_to_work_again() {
    let home = team("");
    let script = r#"
test -e died && exit 0
touch died
until "$BATON" trace show "$BATON_GUARD_TRACE" --json | grep -q tool_execution_completed; do sleep 0.05; done
printf '{"claims":[{"claim_text":"half of it is done","confidence":1}]}' | "$BATON" session submit "$BATON_SESSION_ID"
kill -KILL $PPID
"#;
    fs::write(home.work().join("die.sh"), script).unwrap();
    let task = home.guarded("edit one.txt shell die.sh edit two.txt complete done");
    let end = home.conducted(&task, "failed");
    assert!(text(&end["why"]).contains("the executor is gone"), "{end}");
    assert!(steps(&home.told(&home.guard_of(&task))).contains(&"claim_issued".to_owned()));
    home.run(&["task", "retry", &task]).expect(0);
    home.conducted(&task, "done");
    assert!(home.work().join("two.txt").exists());
    // What was done after that claim is claimed too, and stated.
    let events = home.told(&home.guard_of(&task));
    let claims: Vec<&Value> = events.iter().filter(|event| event["type"] == "claim_issued").collect();
    assert_eq!(claims.len(), 2, "{claims:?}");
    assert!(text(&claims[1]["payload"]["claim_text"]).contains("The executor reports done"), "{claims:?}");
    let end = events.iter().find(|event| event["type"] == "final_statement_signed").unwrap();
    assert_eq!(end["payload"]["claim_ids"], json!(["c1", "c2"]));
    expect_passes(&home, &home.guard_of(&task));
}

/// Work that is claimed without a report, and Baton killed as soon as it is.
fn killed_after_a_claim(title: &str) -> (Home, String) {
    let home = team("");
    let pay = home.work().join("count.sh");
    fs::write(&pay, COUNTED).unwrap();
    fs::set_permissions(&pay, Permissions::from_mode(0o755)).unwrap();
    let task = home.guarded(&format!("term {} {title}", pay.display()));
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    let segment = home.segment();
    until("it is claimed", || fs::read_to_string(&segment).unwrap_or_default().contains("\"claim_issued\""));
    let _ = Command::new("kill").args(["-KILL", &run.id().to_string()]).status();
    wait(&mut run);
    (home, task)
}

fn counted(home: &Home) -> usize {
    fs::read_to_string(home.work().join("counted.txt")).unwrap_or_default().lines().count()
}

#[test]
fn what_was_claimed_before_a_kill_is_not_done_again() {
    let (home, task) = killed_after_a_claim("");
    home.run(&["task", "retry", &task]);
    home.conducted(&task, "needs_review");
    assert_eq!(counted(&home), 1, "{}", home.run(&["trace", "show", &home.guard_of(&task)]).stdout);
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn what_is_done_in_the_place_of_rejected_work_is_what_is_stated() {
    let (home, task) = killed_after_a_claim("edit one.txt");
    let trace = home.guard_of(&task);
    home.run(&["trace", "review", &trace, "p1", "block", "--reason", "not like this"]).expect(0);
    home.run(&["task", "retry", &task]);
    home.conducted(&task, "needs_review");
    let events = home.told(&trace);
    let claims: Vec<&Value> = events.iter().filter(|event| event["type"] == "claim_issued").collect();
    let end = events.iter().find(|event| event["type"] == "final_statement_signed").unwrap();
    let last = claims.last().unwrap();
    assert_eq!(end["payload"]["claim_ids"], json!([last["payload"]["claim_id"]]), "{claims:?}");
    // It rests on what was done for the proposal that was let through, and on nothing else.
    let on = |id: &Value| {
        let intents = events.iter().filter(|event| event["type"] == "tool_intent_signed");
        let of = intents.map(|event| &event["payload"]).find(|intent| intent["intent_id"] == *id);
        text(&of.unwrap()["proposal_id"])
    };
    let rests_on: Vec<String> = last["payload"]["executions"].as_array().unwrap().iter().map(on).collect();
    assert!(!rests_on.is_empty() && rests_on.iter().all(|of| of == "p2"), "{rests_on:?}");
    expect_passes(&home, &trace);
}

#[test]
fn what_was_reported_before_a_death_is_not_worked_on_again() {
    let home = team("");
    let task = home.guarded("edit one.txt complete done slow slow slow slow slow");
    let mut run = home.command(&["run", "--task", &task, "--json"]).spawn().unwrap();
    until("it is reported", || home.types(&task).contains(&"task.completed".to_owned()));
    let _ = Command::new("kill").args(["-KILL", &run.id().to_string()]).status();
    wait(&mut run);
    assert_eq!(started(&home, &task), 1);
    home.run(&["task", "retry", &task]);
    home.conducted(&task, "done");
    assert_eq!(started(&home, &task), 1);
    let claimed = home.told(&home.guard_of(&task)).into_iter().find(|event| event["type"] == "claim_issued");
    let claimed = claimed.unwrap();
    assert!(text(&claimed["payload"]["claim_text"]).contains("reported by the mock agent"), "{claimed}");
    expect_passes(&home, &home.guard_of(&task));
}

#[test]
fn a_report_of_what_failed_does_not_hide_a_death_in_what_followed() {
    let home = team("");
    let script = r#"
test -e failed && kill -KILL $PPID
touch failed
"#;
    fs::write(home.work().join("die.sh"), script).unwrap();
    let task = home.guarded("shell die.sh fail complete done");
    let end = home.conducted(&task, "failed");
    assert!(text(&end["why"]).contains("the executor is gone"), "{end}");
    let proposals = steps(&home.told(&home.guard_of(&task)));
    assert_eq!(proposals.iter().filter(|name| *name == "proposal_created").count(), 2);
    assert_eq!(home.status(&task), "ready");
}

//! Baton killed at any moment of a guarded run: whoever goes on with it brings it to the same end.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use baton_testkit::rng::{Rng, from_env};
use serde_json::json;

use crate::conducted::{expect_accounted, expect_passes, team};
use crate::support::{until, wait};

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
    assert!(killed > 0, "somebody was killed in between");
}

/// Kills Baton at a random moment of a run, goes on with it, and looks what it came to. Gives whether it was killed before the end.
fn killed_at(n: u64, seed: u64) -> bool {
    let home = team("");
    let task =
        home.guarded("edit forbidden.txt edit one.txt fswrite two.txt term true complete done doubtful");
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

//! CI runs of real commands on a real data directory.

use std::io::Read as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::Digest;
use baton_core::task::decide::Move;
use baton_core::task::{Phase, Status};
use baton_ledger::verify::{ArtifactState, Artifacts as _};
use baton_runtime::ci::{Ci, CiRunner};
use baton_runtime::limits::OUTPUT_FILE_BYTES_MAX;
use baton_runtime::occupancy::Occupancy;
use baton_store::ArtifactStore as _;

use crate::support::{Bench, is_gone, sh, wait_for};

static NEVER: AtomicBool = AtomicBool::new(false);

fn runner(bench: &Bench, command: Vec<String>) -> CiRunner {
    with(bench, Ci::new(command, Duration::from_secs(20), false))
}

fn with(bench: &Bench, mut ci: Ci) -> CiRunner {
    ci.grace = Duration::from_millis(200);
    CiRunner::new(bench.engine.clone(), ci, Occupancy::new(&bench.work_dir))
}

/// The output that the last verdict cites, checked.
fn log_text(bench: &Bench) -> String {
    let reported = bench.events("ci.reported").pop().unwrap();
    let cited = &reported["artifacts"][0];
    let sha256 = Digest::from_hex(cited["sha256"].as_str().unwrap().as_bytes()).unwrap();
    let artifacts = &bench.engine.ground().artifacts;
    let bytes = cited["bytes"].as_u64().unwrap();
    assert_eq!(artifacts.check(&sha256, bytes), ArtifactState::Good);
    let mut text = String::new();
    artifacts.open(&sha256).unwrap().read_to_string(&mut text).unwrap();
    text
}

#[test]
fn success_lets_the_task_through_with_its_output_kept() {
    let bench = Bench::new();
    let id = bench.task_in_ci("good");
    assert_eq!(bench.task(&id).phase, Phase::CiPending);
    let runner = runner(&bench, sh("echo $BATON_TASK_ID; pwd"));
    assert_eq!(runner.run_pending(&NEVER), 1);
    let task = bench.task(&id);
    assert_eq!((task.status, task.phase), (Status::Review, Phase::ReadyForReview));
    let work_dir = bench.work_dir.canonicalize().unwrap();
    assert_eq!(log_text(&bench), format!("{id}\n{}\n", work_dir.display()));
    assert_eq!(runner.run_pending(&NEVER), 0, "nothing waits any more");
    assert!(runner.take_notices().is_empty());
    assert_eq!(
        std::fs::read_dir(bench.data_dir.join("ci")).unwrap().count(),
        0,
        "the log is an artifact now"
    );
}

#[test]
fn failure_blocks_with_a_short_reason() {
    let bench = Bench::new();
    let id = bench.task_in_ci("bad");
    assert_eq!(runner(&bench, sh("echo broken; exit 3")).run_pending(&NEVER), 1);
    let task = bench.task(&id);
    assert_eq!((task.status, task.block_reason()), (Status::Blocked, Some("exit 3")));
    assert_eq!(log_text(&bench), "broken\n");
}

#[test]
fn failure_goes_back_to_work_where_that_is_configured() {
    let bench = Bench::new();
    let id = bench.task_in_ci("bad");
    let ci = Ci::new(sh("exit 1"), Duration::from_secs(20), true);
    assert_eq!(with(&bench, ci).run_pending(&NEVER), 1);
    let task = bench.task(&id);
    assert_eq!((task.status, task.phase), (Status::Ready, Phase::Implementation));
}

#[test]
fn a_run_that_takes_too_long_is_ended_with_everything_it_started() {
    let bench = Bench::new();
    let id = bench.task_in_ci("slow");
    let command = sh("(trap '' TERM; sleep 60) & echo $! > child; echo started; wait");
    let ci = Ci::new(command, Duration::from_millis(600), false);
    assert_eq!(with(&bench, ci).run_pending(&NEVER), 1);
    assert_eq!(bench.task(&id).block_reason(), Some("timed out after 600ms"));
    assert_eq!(log_text(&bench), "started\n");
    wait_for("the grandchild is gone", || is_gone(&bench.work_dir.join("child")));
}

#[test]
fn a_missing_command_is_named() {
    let bench = Bench::new();
    let id = bench.task_in_ci("lost");
    assert_eq!(runner(&bench, vec!["no-such-program".into()]).run_pending(&NEVER), 1);
    assert_eq!(bench.task(&id).block_reason(), Some("not found: no-such-program"));
}

#[test]
fn huge_output_is_cut_with_a_note() {
    let bench = Bench::new();
    let id = bench.task_in_ci("loud");
    let more = OUTPUT_FILE_BYTES_MAX + (1 << 20);
    let command = sh(&format!("head -c {more} /dev/zero | tr '\\0' 'x'"));
    assert_eq!(runner(&bench, command).run_pending(&NEVER), 1);
    assert_eq!(bench.task(&id).phase, Phase::ReadyForReview);
    let log = log_text(&bench);
    let cut = usize::try_from(OUTPUT_FILE_BYTES_MAX).unwrap();
    assert!(log[..cut].bytes().all(|byte| byte == b'x'));
    assert!(log[cut..].contains("the rest is left out"), "{}", &log[cut..]);
}

#[test]
fn the_oldest_goes_first_and_each_has_one_run() {
    let bench = Bench::new();
    let ids: Vec<_> = ["one", "two", "three"].iter().map(|title| bench.task_in_ci(title)).collect();
    let runner = runner(&bench, sh("echo $BATON_TASK_ID >> order"));
    assert_eq!(runner.run_pending(&NEVER), 3);
    let order = std::fs::read_to_string(bench.work_dir.join("order")).unwrap();
    let expected: String = ids.iter().map(|id| format!("{id}\n")).collect();
    assert_eq!(order, expected);
}

#[test]
fn a_run_that_is_stopped_has_no_verdict_and_is_made_again() {
    let bench = Bench::new();
    let id = bench.task_in_ci("cut");
    let first = runner(&bench, sh("touch started; sleep 60"));
    let stop = Arc::new(AtomicBool::new(false));
    let in_thread = stop.clone();
    let thread = std::thread::spawn(move || first.run_pending(&in_thread));
    wait_for("it has started", || bench.work_dir.join("started").exists());
    stop.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().unwrap(), 0);
    assert_eq!(bench.task(&id).phase, Phase::CiPending);
    // As after a crash: another runner, and all it knows is the phase.
    assert_eq!(runner(&bench, sh("true")).run_pending(&NEVER), 1);
    assert_eq!(bench.task(&id).phase, Phase::ReadyForReview);
}

#[test]
fn what_outlived_baton_is_ended_before_the_next_run() {
    let bench = Bench::new();
    let id = bench.task_in_ci("orphan");
    let logs = bench.data_dir.canonicalize().unwrap().join("ci");
    std::fs::create_dir(&logs).unwrap();
    // As a Baton that died leaves it: a log, and a process that has left every group it was in.
    let log = logs.join(format!("{id}.log"));
    std::fs::write(&log, "half").unwrap();
    let mut orphan = std::process::Command::new("setsid");
    orphan.args(["sh", "-c", "trap '' TERM; echo $$ > orphan; while :; do sleep 0.05; done"]);
    let mut orphan = orphan.current_dir(&bench.work_dir).env("BATON_RUN_LOG", &log).spawn().unwrap();
    let pid = bench.work_dir.join("orphan");
    wait_for("it runs", || std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    assert_eq!(runner(&bench, sh("echo fine")).run_pending(&NEVER), 1);
    wait_for("it is gone", || is_gone(&pid));
    orphan.wait().unwrap();
    assert_eq!(log_text(&bench), "fine\n");
}

#[test]
fn a_verdict_on_a_task_that_has_left_is_dropped_and_its_run_ended() {
    let bench = Bench::new();
    let id = bench.task_in_ci("gone");
    let runner = runner(&bench, sh("touch started; sleep 60"));
    let thread = std::thread::spawn(move || (runner.run_pending(&NEVER), runner.take_notices()));
    wait_for("it has started", || bench.work_dir.join("started").exists());
    let cancel = Move { task: id.clone(), to: Status::Cancelled, reason: "not needed".into() };
    bench.engine.transition(&cancel).unwrap();
    assert_eq!(thread.join().unwrap(), (0, Vec::new()));
    assert_eq!(bench.task(&id).status, Status::Cancelled);
    assert!(bench.events("ci.reported").is_empty());
}

#[test]
fn a_workspace_in_use_is_waited_for() {
    let bench = Bench::new();
    let id = bench.task_in_ci("waits");
    let place = Occupancy::new(&bench.work_dir);
    let session = place.try_enter("session").unwrap();
    let ci = Ci::new(sh("true"), Duration::from_secs(20), false);
    let runner = CiRunner::new(bench.engine.clone(), ci, place.clone());
    let stop = AtomicBool::new(true);
    assert_eq!(runner.run_pending(&stop), 0);
    let thread = std::thread::spawn(move || runner.run_pending(&NEVER));
    assert_eq!(place.who().as_deref(), Some("session"));
    assert_eq!(bench.task(&id).phase, Phase::CiPending);
    drop(session);
    assert_eq!(thread.join().unwrap(), 1);
    assert_eq!(place.who(), None);
}

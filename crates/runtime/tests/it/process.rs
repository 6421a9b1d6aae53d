//! Commands that end, hang, flood, hide and refuse.

use std::time::{Duration, Instant};

use baton_runtime::limits::{OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES};
use baton_runtime::process::{Command, Ended, Error, Ran};

use crate::support::{is_gone, sh, wait_for};

const LONG: Duration = Duration::from_secs(20);

fn command(text: &str) -> Command {
    let mut command = Command::new(sh(text), std::env::temp_dir(), LONG);
    command.grace = Duration::from_millis(300);
    command
}

fn run(command: &Command) -> Ran {
    command.run(None, &mut || false).unwrap()
}

#[test]
fn both_outputs_come_in_order_and_the_exit_code_with_them() {
    let ran = run(&command("echo one; echo two >&2; echo three; exit 3"));
    assert_eq!((ran.ended, ran.output.text().as_str()), (Ended::Exit(3), "one\ntwo\nthree\n"));
}

#[test]
fn a_signal_is_told_apart_from_an_exit() {
    assert_eq!(run(&command("kill -9 $$")).ended, Ended::Signal(9));
}

#[test]
fn only_the_allow_list_and_what_is_given_is_in_the_environment() {
    let mut command = command("env");
    command.env.insert("BATON_TASK_ID".into(), "TASK-1".into());
    let text = run(&command).output.text();
    assert!(text.contains("BATON_TASK_ID=TASK-1\n"), "{text}");
    // Cargo sets this for every test.
    assert!(
        std::env::var_os("CARGO_MANIFEST_DIR").is_some() && !text.contains("CARGO_MANIFEST_DIR"),
        "{text}"
    );
}

#[test]
fn stdin_is_given_whole_and_one_that_is_not_read_does_no_harm() {
    let mut reads = command("wc -c");
    reads.stdin = vec![b'x'; 1 << 20];
    assert_eq!(run(&reads).output.text().trim(), "1048576");
    let mut ignores = command("exec 0<&-; sleep 0.05; echo fine");
    ignores.stdin = vec![b'x'; 1 << 20];
    let ran = run(&ignores);
    assert_eq!((ran.ended, ran.output.text().as_str()), (Ended::Exit(0), "fine\n"));
}

#[test]
fn what_cannot_be_run_says_why() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("plain"), "echo no").unwrap();
    let check = |words: &[&str], dir: &std::path::Path| {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        Command::new(words, dir, LONG).run(None, &mut || false).unwrap_err()
    };
    assert!(matches!(check(&[], dir.path()), Error::Empty));
    let missing = check(&["no-such-program", "x"], dir.path());
    assert_eq!(missing.to_string(), "not found: no-such-program");
    assert_eq!(check(&["./plain"], dir.path()).to_string(), "not executable: ./plain");
    assert!(matches!(check(&["true"], &dir.path().join("gone")), Error::NoDirectory(_)));
}

#[test]
fn a_command_that_ignores_the_request_to_end_is_killed_with_its_children() {
    let dir = tempfile::tempdir().unwrap();
    let mut stuck =
        command("trap '' TERM; (trap '' TERM; sleep 60) & echo $! > child; echo started; wait; sleep 60");
    stuck.dir = dir.path().to_owned();
    (stuck.timeout, stuck.grace) = (Duration::from_millis(600), Duration::from_millis(200));
    let ran = run(&stuck);
    assert_eq!((ran.ended, ran.output.text().as_str()), (Ended::TimedOut, "started\n"));
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    wait_for("the grandchild is gone", || is_gone(&dir.path().join("child")));
}

#[test]
fn a_command_that_ends_when_asked_can_say_so() {
    let mut polite = command("trap 'echo bye; exit 0' TERM; echo hello; while :; do sleep 0.01; done");
    (polite.timeout, polite.grace) = (Duration::from_millis(600), LONG);
    let ran = run(&polite);
    // The shell may say in between that what it waited for was ended too.
    let text = ran.output.text();
    assert_eq!(
        (ran.ended, text.starts_with("hello\n"), text.ends_with("bye\n")),
        (Ended::TimedOut, true, true)
    );
}

#[test]
fn a_child_left_behind_does_not_hold_up_the_answer() {
    let dir = tempfile::tempdir().unwrap();
    let mut leaves = command("(trap '' TERM; sleep 60) & echo $! > child; echo done");
    leaves.dir = dir.path().to_owned();
    let ran = run(&leaves);
    assert_eq!((ran.ended, ran.output.text().as_str()), (Ended::Exit(0), "done\n"));
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
    wait_for("the child is gone", || is_gone(&dir.path().join("child")));
}

#[test]
fn a_child_that_left_the_group_does_not_hold_up_the_answer() {
    let ran = run(&command("setsid sleep 3 & echo done"));
    assert_eq!((ran.ended, ran.output.text().as_str()), (Ended::Exit(0), "done\n"));
    assert!(ran.took < Duration::from_secs(2), "{:?}", ran.took);
}

#[test]
fn a_flood_is_bounded_in_memory_and_copied_whole() {
    let mut copy = Vec::new();
    let flood = command("head -c 3000000 /dev/zero | tr '\\0' 'x'; echo end");
    let ran = flood.run(Some(&mut copy), &mut || false).unwrap();
    assert_eq!((ran.ended, ran.output.bytes, copy.len()), (Ended::Exit(0), 3_000_004, 3_000_004));
    assert_eq!(ran.output.left_out(), 3_000_004 - (OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES) as u64);
    assert!(ran.output.text().ends_with("xend\n"));
}

#[test]
fn one_that_never_pauses_still_has_a_deadline() {
    let mut endless = command("yes");
    endless.timeout = Duration::from_millis(200);
    let ran = run(&endless);
    assert_eq!(ran.ended, Ended::TimedOut);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
}

#[test]
fn a_stop_ends_it() {
    let start = Instant::now();
    let ran = command("sleep 60").run(None, &mut || start.elapsed() > Duration::from_millis(50)).unwrap();
    assert_eq!(ran.ended, Ended::Stopped);
    assert!(ran.took < Duration::from_secs(5), "{:?}", ran.took);
}

//! `baton events`: filters, following a live writer, and readers that go away.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::{Home, finish, until, wait};

#[test]
fn events_are_the_stored_lines_and_can_be_filtered() {
    let home = Home::new();
    let (one, two) = (home.trace(), home.trace());
    home.append(&one, "a", &json!({"type": "note", "task": "TASK-1"}));
    home.append(&two, "b", &json!({"type": "step.done", "task": "TASK-2"}));
    let all = home.run(&["events", "--json"]);
    let stored = std::fs::read_to_string(home.segment()).unwrap();
    assert_eq!(all.stdout, stored, "byte for byte");
    let positions = |args: &[&str]| {
        let ended = home.run(&[&["events", "--json"], args].concat());
        ended.expect(0);
        let pos = |line| serde_json::from_str::<Value>(line).unwrap()["pos"].as_u64().unwrap();
        ended.stdout.lines().map(pos).collect::<Vec<u64>>()
    };
    assert_eq!(positions(&["--since", "3"]), [4, 5], "what comes after a position");
    assert_eq!(positions(&["--since", "5"]), [] as [u64; 0]);
    assert_eq!(positions(&["--since", "99"]), [] as [u64; 0]);
    assert_eq!(positions(&["--type", "note"]), [4]);
    assert_eq!(positions(&["--type", "note", "--type", "trace.opened"]), [2, 3, 4]);
    assert_eq!(positions(&["--task", "TASK-2"]), [5]);
    assert_eq!(positions(&["--trace", &two]), [3, 5]);
    assert_eq!(positions(&["--trace", "ledger"]), [1]);
    home.run(&["events", "--trace", "ffff"]).refused(3, "L014", "no trace");
    home.run(&["events", "--type", "not a type"]).expect(2);
    let people = home.run(&["events"]).stdout;
    assert!(
        people.contains("a/executor") && !people.contains("unsigned") && people.lines().count() == 5,
        "{people}"
    );
}

#[test]
fn following_shows_each_event_once_while_others_write() {
    let home = Home::new()
        .with_env("BATON_LEDGER_SEGMENT_BYTES", "4096")
        .with_env("BATON_LEDGER_DURABILITY", "none");
    let trace = home.trace();
    let mut follower = home.command(&["events", "--follow", "--json", "--type", "note"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    for round in 0..4 {
        let input: String = (0..50)
            .map(|n| format!("{{\"type\":\"note\",\"payload\":{{\"n\":{}}}}}\n", round * 50 + n))
            .collect();
        home.run_with(&["trace", "append", &trace], input).expect(0);
    }
    for n in 0..200 {
        let event: Value = serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap();
        assert_eq!(event["payload"]["n"], n);
    }
    interrupt(follower.id());
    assert_eq!(wait(&mut follower).code(), Some(130));
    assert!(std::fs::read_dir(home.data().join("events")).unwrap().count() > 3, "over several segments");
}

fn interrupt(pid: u32) {
    let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
}

#[test]
fn following_waits_for_the_rest_of_a_line_that_is_being_written() {
    let home = Home::new();
    let trace = home.trace();
    home.append(&trace, "a", &json!({"type": "note"}));
    let whole = std::fs::read_to_string(home.segment()).unwrap();
    let last = whole.lines().last().unwrap();
    let (before, after) = (whole.len() - last.len() - 1, last.len() / 2);
    std::fs::write(home.segment(), &whole.as_bytes()[..before + after]).unwrap();
    // The index would vouch for the line that is half gone.
    std::fs::remove_dir_all(home.data().join("index")).unwrap();
    let mut follower = home.command(&["events", "--follow", "--json", "--since", "2"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    std::thread::sleep(std::time::Duration::from_millis(300));
    let mut segment = std::fs::OpenOptions::new().append(true).open(home.segment()).unwrap();
    segment.write_all(&whole.as_bytes()[before + after..]).unwrap();
    assert_eq!(lines.next().unwrap().unwrap(), last);
    follower.kill().unwrap();
    wait(&mut follower);
}

#[test]
fn following_ends_where_what_was_shown_is_replaced() {
    let home = Home::new();
    let trace = home.trace();
    home.append(&trace, "a", &json!({"type": "note"}));
    let mut follower = home.command(&["events", "--follow", "--json", "--since", "2"]).spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let shown = lines.next().unwrap().unwrap();
    // A longer line in its place, in one write: the file never gets shorter.
    let whole = std::fs::read_to_string(home.segment()).unwrap();
    let place = u64::try_from(whole.find(&shown).unwrap()).unwrap();
    let longer = shown.replace("\"note\"", "\"another.note\"") + "\n";
    let segment = std::fs::OpenOptions::new().write(true).open(home.segment()).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&segment, longer.as_bytes(), place).unwrap();
    let ended = finish(follower, None);
    ended.refused_json(7, "L032");
    assert!(ended.stderr.contains("after it was shown"), "{}", ended.stderr);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let home = Home::new().with_env("BATON_LEDGER_DURABILITY", "none");
    let trace = home.trace();
    let input: String = (0..3000).map(|_| "{\"type\":\"note\"}\n".to_owned()).collect();
    home.run_with(&["trace", "append", &trace, "-q"], input).expect(0);
    for args in [&["events", "--json"][..], &["events"], &["events", "--follow"], &["trace", "show", &trace]]
    {
        let mut child = home.command(args).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        reader.read_line(&mut String::new()).unwrap();
        drop(reader);
        let start = Instant::now();
        let ended = finish(child, None);
        assert_eq!((ended.code, ended.stderr.as_str()), (Some(0), ""), "{args:?}");
        assert!(start.elapsed().as_secs() < 20, "noticed also where nothing more happens");
    }
    // A full disk behind standard output is an error, not silence.
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let child = home.command(&["events"]).stdout(Stdio::from(full)).spawn().unwrap();
    finish(child, None).refused(1, "U008", "standard output");
}

#[test]
fn following_starts_on_an_empty_filter_and_prints_at_once() {
    let home = Home::new();
    let trace = home.trace();
    let out = home.path("followed");
    let file = std::fs::File::create(&out).unwrap();
    let mut follower =
        home.command(&["events", "--follow", "--trace", &trace[..20]]).stdout(file).spawn().unwrap();
    home.append(&trace, "a", &json!({"type": "note"}));
    until("the line is there", || std::fs::read_to_string(&out).unwrap().contains("a/executor"));
    interrupt(follower.id());
    assert_eq!(wait(&mut follower).code(), Some(130));
}

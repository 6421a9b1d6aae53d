//! Segments as nobody should find them: verifying and writing refuse with a code, and nothing is changed.

use std::fs;
use std::path::PathBuf;

use serde_json::json;

use crate::support::{Ended, Home};

/// A ledger over several segments.
fn story() -> (Home, String) {
    let home = Home::new().with_env("BATON_LEDGER_SEGMENT_BYTES", "4096");
    let trace = home.trace();
    for n in 0..20 {
        home.append(&trace, "a", &json!({"type": "note", "payload": {"n": n, "text": "x".repeat(300)}}));
    }
    (home, trace)
}

fn segments(home: &Home) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(home.data().join("events")).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    assert!(all.len() >= 3);
    all
}

/// Every command copes: verify and the write path with these exit codes, reading with any of ours.
fn check(home: &Home, trace: &str, verify: i32, write: i32) -> (Ended, Ended) {
    let verified = home.changes_nothing(|home| home.run(&["verify", "--json"]));
    verified.expect(verify);
    let is_clean =
        |ended: &Ended| !ended.stderr.contains("panicked") && ended.code.is_some_and(|code| code <= 8);
    for args in [
        &[][..],
        &["events"],
        &["replay"],
        &["trace", "ls"],
        &["trace", "show", trace],
        &["doctor"],
        &["verify", trace],
    ] {
        let ended = home.changes_nothing(|home| home.run(args));
        assert!(is_clean(&ended), "{args:?}: {ended:?}");
    }
    // What the index vouches for is not read again at every opening; without it the writer reads everything.
    let (index, aside) = (home.data().join("index"), home.path("index"));
    fs::rename(&index, &aside).unwrap();
    let written =
        home.changes_nothing(|home| home.run_with(&["trace", "append", trace], r#"{"type":"note"}"#));
    written.expect(write);
    assert!(is_clean(&written) && written.stderr.contains("error["), "{written:?}");
    fs::rename(&aside, &index).unwrap();
    (verified, written)
}

#[test]
fn lines_that_are_no_records_are_refused() {
    let (home, trace) = story();
    let middle = segments(&home)[1].clone();
    let good = fs::read(&middle).unwrap();
    let end_of_first = good.iter().position(|b| *b == b'\n').unwrap() + 1;
    let deep = [b"{\"a\":".repeat(100), b"1".to_vec(), b"}".repeat(100)].concat();
    let bad: [&[u8]; 8] =
        [b"hello", b"{\"v\":1}", b"\xff\xfe\xfd", b"\0\0\0\0", b"", b"{\"actor\":", b"[]", &deep];
    for line in bad {
        let bytes = [&good[..end_of_first], line, b"\n", &good[end_of_first..]].concat();
        fs::write(&middle, bytes).unwrap();
        check(&home, &trace, 7, 7);
    }
    fs::write(&middle, good).unwrap();
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_line_of_a_hundred_megabytes_is_refused_in_bounded_memory() {
    let (home, trace) = story();
    let middle = segments(&home)[1].clone();
    let good = fs::read(&middle).unwrap();
    for filler in [b'x', 0, b'{'] {
        fs::write(&middle, [vec![filler; 100 << 20], vec![b'\n'], good.clone()].concat()).unwrap();
        let limited =
            format!("ulimit -v 1000000; exec {} verify --threads 2 --json", env!("CARGO_BIN_EXE_baton"));
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &limited])
            .env("BATON_DATA_DIR", home.data())
            .env("BATON_STATE_DIR", home.state());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
        crate::support::finish(command.spawn().unwrap(), None).expect(7);
        check(&home, &trace, 7, 7);
    }
}

#[test]
fn segments_that_are_missing_renamed_or_empty_are_refused() {
    let (home, trace) = story();
    // Where nothing vouches for the end, a last segment that is gone leaves no trace.
    home.run(&["trace", "checkpoint"]).expect(0);
    let all = segments(&home);
    let last = all.len() - 1;
    for at in [0, 1, last] {
        let aside = home.path("aside");
        fs::rename(&all[at], &aside).unwrap();
        check(&home, &trace, 7, 7);
        // Under the name of another position.
        let other = home.data().join("events/00000000000000000777.jsonl");
        fs::rename(&aside, &other).unwrap();
        check(&home, &trace, 7, 7);
        fs::rename(&other, &all[at]).unwrap();
        // Emptied.
        let good = fs::read(&all[at]).unwrap();
        for empty in [&b""[..], b"\n", b"\n\n\n\n"] {
            fs::write(&all[at], empty).unwrap();
            check(&home, &trace, 7, 7);
        }
        fs::write(&all[at], good).unwrap();
    }
    // Names that are none of ours are no part of the journal.
    fs::write(home.data().join("events/notes.txt"), "hello").unwrap();
    fs::write(home.data().join("events/0001.jsonl"), "hello\n").unwrap();
    home.run(&["verify"]).expect(0);
    home.append(&trace, "a", &json!({"type": "note"}));
    // A directory under a segment's name.
    fs::create_dir(home.data().join("events/00000000000000000778.jsonl")).unwrap();
    let verified = home.run(&["verify"]);
    assert!(matches!(verified.code, Some(7 | 8)), "{verified:?}");
    assert_ne!(home.run(&["trace", "new"]).code, Some(0));
}

#[test]
fn a_newer_version_cannot_be_judged_and_is_not_written() {
    let (home, trace) = story();
    let newer = |line: &str| line.replacen("\"v\":1}", "\"v\":2}", 1);
    for at in [0, 1] {
        let path = segments(&home)[at].clone();
        let good = fs::read_to_string(&path).unwrap();
        fs::write(&path, newer(&good)).unwrap();
        let (verified, written) = check(&home, &trace, 8, 8);
        assert_eq!(verified.object()["verdict"], "unknown");
        assert!(written.stderr.contains("error[L006]"), "{}", written.stderr);
        fs::write(&path, good).unwrap();
    }
    home.run(&["verify"]).expect(0);
}

#[test]
fn checkpoints_that_cannot_be_read_are_not_passed_over() {
    let (home, _) = story();
    home.run(&["trace", "checkpoint"]).expect(0);
    let kept = home.data().join("checkpoints");
    // `latest` is a copy for opening; the verifier goes by the notes themselves.
    let is_note = |path: &std::path::PathBuf| path.is_file() && !path.ends_with("latest");
    let note = fs::read_dir(&kept).unwrap().map(|e| e.unwrap().path()).find(is_note).unwrap();
    let good = fs::read(&note).unwrap();
    for bad in [&b""[..], b"hello", &[0xff; 100], &vec![b'x'; 1 << 20]] {
        fs::write(&note, bad).unwrap();
        home.changes_nothing(|home| home.run(&["verify"])).expect(7);
    }
    fs::remove_file(&note).unwrap();
    fs::create_dir(&note).unwrap();
    home.changes_nothing(|home| home.run(&["verify"])).expect(8);
    fs::remove_dir(&note).unwrap();
    fs::write(&note, good).unwrap();
    home.run(&["verify"]).expect(0);
}

//! `baton verify`: the report's shape, exit codes, what the reader brings along, and what can be named.

use std::fs;

use serde_json::json;

use crate::support::{Ended, Home, finish};

fn story() -> (Home, String) {
    let home = Home::new();
    let trace = home.trace();
    for n in 0..6 {
        home.append(&trace, "a", &json!({"type": "note", "payload": {"n": n}}));
    }
    (home, trace)
}

fn codes(ended: &Ended) -> Vec<String> {
    let report = ended.object();
    let findings = report["findings"].as_array().unwrap();
    findings.iter().map(|finding| finding["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn the_report_has_its_documented_shape() {
    let (home, trace) = story();
    let report = home.json(&["verify", home.data().to_str().unwrap()]);
    assert_eq!(report["verdict"], "pass-with-warnings");
    assert_eq!(
        (&report["integrity"], &report["completeness"]),
        (&json!("intact"), &json!("self-consistent"))
    );
    assert_eq!(report["subject"]["events"], 8);
    assert_eq!(report["subject"]["head"].as_str().unwrap().len(), 64);
    let checks = report["checks"].as_array().unwrap();
    assert_eq!(checks[0], json!({"check": "SCHEMA", "status": "pass", "count": 8}));
    for finding in report["findings"].as_array().unwrap() {
        assert!(["code", "severity", "action"].iter().all(|name| finding[name].is_string()), "{finding}");
    }
    let one = home.json(&["verify", &trace]);
    assert_eq!((&one["subject"]["trace"], &one["subject"]["events"]), (&json!(trace), &json!(7)));
    assert_eq!(home.json(&["verify", &trace[4..14]])["subject"], one["subject"], "by a unique beginning");
    assert_eq!(home.json(&["verify", "ledger"])["subject"]["events"], 1);
    // Threads and batches change nothing about the report.
    for args in [&["--threads", "1"][..], &["--threads", "7"], &["--each"]] {
        assert_eq!(home.json(&[&["verify"], args].concat()), report, "{args:?}");
    }
    home.run(&["verify", "--threads", "0"]).expect(2);
    let text = home.run(&["verify"]).stdout;
    for part in
        ["SIGNATURE", "warning NO_CHECKPOINT", "integrity     intact", "verdict       pass, with warnings"]
    {
        assert!(text.contains(part), "expected {part:?} in {text}");
    }
}

#[test]
fn what_the_reader_kept_makes_it_complete() {
    let (home, _) = story();
    fs::write(home.work().join("kept"), home.run(&["trace", "checkpoint"]).stdout).unwrap();
    let made = home.json(&["trace", "show", "ledger"]);
    let key = made["events"][0]["payload"]["public"].as_str().unwrap();
    fs::write(home.work().join("trust"), format!("# ours\n\n{key} the ledger of this project\n")).unwrap();
    let full = ["verify", "--checkpoint", "kept", "--trust", "trust", "--strict"];
    let report = home.json(&full);
    assert_eq!((&report["verdict"], &report["completeness"]), (&json!("pass"), &json!("complete")));
    home.run(&["verify", "--strict"]).expect(7);
    // Another key is trusted: not this ledger.
    let other = Home::new().json(&["trace", "show", "ledger"])["events"][0]["payload"]["public"].clone();
    fs::write(home.work().join("trust"), other.as_str().unwrap()).unwrap();
    let ended = home.run(&["verify", "--trust", "trust", "--json"]);
    ended.expect(7);
    assert!(codes(&ended).contains(&"KEY_UNKNOWN".to_owned()));
    // Another checkpoint, or none at all.
    fs::write(home.work().join("kept"), Home::new().run(&["trace", "checkpoint"]).stdout).unwrap();
    home.run(&["verify", "--checkpoint", "kept"]).expect(7);
    fs::write(home.work().join("kept"), "x".repeat(1 << 20)).unwrap();
    let ended = home.run(&["verify", "--checkpoint", "kept", "--json"]);
    ended.expect(7);
    assert!(codes(&ended).contains(&"CHECKPOINT_MISMATCH".to_owned()));
    home.run(&["verify", "--checkpoint", "nowhere"]).refused(3, "U005", "nowhere");
}

#[test]
fn a_trust_file_that_names_no_key_is_a_usage_error_with_its_line() {
    let (home, _) = story();
    let check = |text: &[u8], names: &str| {
        fs::write(home.work().join("trust"), text).unwrap();
        home.run(&["verify", "--trust", "trust"]).refused(2, "U002", names);
    };
    check(b"", "names no key");
    check(b"# only a comment\n\n", "names no key");
    check(b"# one\nhello\n", "line 2");
    check(b"rsa:AAAA\n", "line 1");
    check(b"ed25519:short\n", "line 1");
    check(&[0xff], "not text");
    home.run(&["verify", "--trust", "nowhere"]).refused(3, "U005", "nowhere");
}

#[test]
fn every_kind_of_tampering_is_named_with_the_first_broken_line() {
    let (home, trace) = story();
    let good = fs::read_to_string(home.segment()).unwrap();
    let lines: Vec<&str> = good.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    let check = |text: String, code: &str, broken: u64| {
        fs::write(home.segment(), &text).unwrap();
        let ended = home.changes_nothing(|home| home.run(&["verify", "--json"]));
        ended.expect(7);
        let report = ended.object();
        assert_eq!(report["verdict"], "fail");
        assert!(codes(&ended).contains(&code.to_owned()), "expected {code}: {report}");
        assert_eq!(
            (&report["firstBroken"], &report["lastTrusted"]),
            (&json!(broken), &json!(broken - 1)),
            "{report}"
        );
        let text = home.run(&["verify"]).stdout;
        assert!(
            text.contains(&format!("first broken  line {broken}")) && text.contains("integrity     broken"),
            "{text}"
        );
        // The trace says so too, and nothing is written.
        home.run(&["verify", &trace]).expect(7);
        // The index vouches for what it covers; without it the writer reads every line.
        fs::rename(home.data().join("index"), home.path("index")).unwrap();
        home.changes_nothing(|home| home.run(&["trace", "new"])).refused(
            7,
            "L004",
            &format!("line {broken}"),
        );
        fs::rename(home.path("index"), home.data().join("index")).unwrap();
    };
    check(join(&lines).replace("{\"n\":2}", "{\"n\":9}"), "HASH_MISMATCH", 5);
    check(join(&[&lines[..4], &lines[5..]].concat()), "SEQUENCE_GAP", 5);
    check(join(&[&lines[..5], &lines[4..]].concat()), "SEQUENCE_GAP", 6);
    check(join(&[&lines[..4], &[lines[5], lines[4]], &lines[6..]].concat()), "SEQUENCE_GAP", 5);
    check(join(&lines).replacen("\"type\":\"note\"", "\"type\": \"note\"", 1), "SCHEMA_INVALID", 3);
    fs::write(home.segment(), &good).unwrap();
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_cut_off_end_is_found_by_a_checkpoint_and_stops_writing() {
    let (home, _) = story();
    fs::write(home.work().join("kept"), home.run(&["trace", "checkpoint"]).stdout).unwrap();
    let good = fs::read_to_string(home.segment()).unwrap();
    let cut: String = good.lines().take(6).map(|line| format!("{line}\n")).collect();
    fs::write(home.segment(), cut).unwrap();
    let ended = home.run(&["verify", "--checkpoint", "kept", "--json"]);
    ended.expect(7);
    assert!(codes(&ended).contains(&"TAIL_CUT".to_owned()));
    assert_eq!(ended.object()["completeness"], "incomplete");
    let ended = home.changes_nothing(|home| home.run(&["trace", "new"]));
    ended.refused(7, "L005", "covers 8");
    for part in ["nothing was changed", "hint: keep this directory, put a copy", "baton explain L005"] {
        assert!(ended.stderr.contains(part), "expected {part:?} in {}", ended.stderr);
    }
    assert!(home.run(&["doctor"]).stdout.contains("see: baton explain L005"));
    // Also where only the index remembers.
    fs::remove_dir_all(home.data().join("checkpoints")).unwrap();
    home.changes_nothing(|home| home.run(&["trace", "new"])).refused(7, "L005", "the index");
    home.changes_nothing(|home| home.run(&["doctor", "--fix"])).refused(7, "L005", "the index");
    // What the page says: the rest is intact, and a copy in its place makes it right.
    home.run(&["verify"]).expect(0);
    fs::write(home.segment(), good).unwrap();
    home.run(&["verify", "--checkpoint", "kept"]).expect(0);
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn a_torn_tail_is_a_warning_and_is_mended_by_the_next_writer() {
    let (home, trace) = story();
    let mut text = fs::read_to_string(home.segment()).unwrap();
    text.push_str("{\"actor\":{\"agent\":\"a\",\"ro");
    fs::write(home.segment(), &text).unwrap();
    let ended = home.changes_nothing(|home| home.run(&["verify", "--json"]));
    ended.expect(0);
    assert!(codes(&ended).contains(&"TORN_TAIL".to_owned()));
    assert_eq!(ended.object()["completeness"], "incomplete");
    home.run(&["verify", "--strict"]).expect(7);
    home.run(&["events"]).expect(0);
    let ended = home.run_with(&["trace", "append", &trace], r#"{"type":"note"}"#);
    ended.expect(0);
    assert!(ended.stderr.contains("set aside"), "{}", ended.stderr);
    assert_eq!(fs::read_dir(home.data().join("quarantine")).unwrap().count(), 1);
    assert_eq!(home.events()[8]["type"], "ledger.recovered");
    assert_eq!(home.json(&["verify"])["completeness"], "self-consistent");
}

#[test]
fn directories_bundles_and_segments_are_told_apart() {
    let (home, trace) = story();
    let first = home.data().join("events/00000000000000000001.jsonl");
    home.run(&["verify", first.to_str().unwrap()]).expect(0);
    fs::copy(&first, home.work().join("copy.jsonl")).unwrap();
    fs::copy(&first, home.work().join("copy")).unwrap();
    home.run(&["verify", "copy.jsonl"]).expect(0);
    home.run(&["verify", "copy"]).expect(0);
    fs::copy(&first, home.work().join("00000000000000000009.jsonl")).unwrap();
    home.run(&["verify", "00000000000000000009.jsonl"]).refused(8, "L033", "cannot be judged alone");
    // A working directory with its `.baton` in it.
    let child = home.command(&["init", "--data-dir", ".baton"]).spawn().unwrap();
    finish(child, None).expect(0);
    assert_eq!(home.json(&["verify", "."])["subject"]["events"], 1);
    // Nothing to verify.
    for (name, text) in [("empty.jsonl", ""), ("blank.jsonl", "\n\n\n"), ("empty", "")] {
        fs::write(home.work().join(name), text).unwrap();
        home.run(&["verify", name]).expect(8);
    }
    fs::create_dir(home.work().join("dir")).unwrap();
    let ended = home.run(&["verify", "dir", "--json"]);
    ended.expect(8);
    assert_eq!(
        (codes(&ended), &ended.object()["verdict"]),
        (vec!["NO_EVENTS".to_owned()], &json!("unknown"))
    );
    home.run(&["verify", "--proof", "dir"]).expect(8);
    home.run(&["verify", "empty/x"]).refused(3, "U005", "empty/x");
    fs::write(home.work().join("junk"), "hello\n").unwrap();
    home.run(&["verify", "junk"]).expect(7);
    home.run(&["verify", "./nowhere"]).refused(3, "U005", "nowhere");
    home.run(&["verify", "nowhere"]).refused(3, "L014", "no file nowhere");
    home.run(&["verify", "trc_0192f0c1-2345-7abc-bdef-0123456789ab"]).refused(3, "L014", "no trace");
    home.run(&["verify", &trace, "--proof", "x"]).expect(2);
    // No data directory around.
    let without = |args: &[&str]| {
        let child =
            home.command(args).env_remove("BATON_DATA_DIR").current_dir(home.path("")).spawn().unwrap();
        finish(child, None)
    };
    without(&["verify", "work/copy"]).expect(0);
    without(&["verify"]).refused(3, "L001", "baton init");
    without(&["verify", &trace]).refused(3, "L001", "baton init");
}

#[test]
fn a_trace_that_was_taken_out_is_missed_by_its_kept_head() {
    let (home, _) = story();
    let short = home.trace();
    let head = home.run(&["trace", "checkpoint", &short]).stdout;
    fs::write(home.work().join("head"), head).unwrap();
    fs::remove_dir_all(home.data().join("index")).unwrap();
    fs::remove_file(home.data().join("checkpoints").join("00000000000000000009")).ok();
    let good = fs::read_to_string(home.segment()).unwrap();
    let without: String =
        good.lines().filter(|line| !line.contains(&short)).map(|line| format!("{line}\n")).collect();
    fs::write(home.segment(), without).unwrap();
    let ended = home.run(&["verify", "--json"]);
    ended.expect(7);
    assert!(codes(&ended).contains(&"TAIL_CUT".to_owned()), "the head is kept beside the journal");
    assert_ne!(home.run(&["verify", &short, "--checkpoint", "head"]).code, Some(0));
}

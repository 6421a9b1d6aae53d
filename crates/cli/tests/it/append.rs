//! `baton trace append`: the three forms of input, artifacts, and what is refused with nothing changed.

use std::fs;

use baton_ledger::hash::sha256;
use serde_json::{Value, json};

use crate::support::Home;

#[test]
fn one_event_an_array_and_lines_are_recorded() {
    let home = Home::new();
    let trace = home.trace();
    let append = |stdin: &str| {
        let ended = home.run_with(&["trace", "append", &trace, "--agent", "a", "--json"], stdin);
        ended.expect(0);
        ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>()
    };
    let one = append("{\n \"type\": \"note\",\n \"payload\": {\"text\": \"hello\"}\n}\n");
    assert_eq!((one.len(), &one[0]["v"], &one[0]["trace"]), (1, &json!(1), &json!(trace)));
    let receipt = &one[0]["events"][0];
    let stored = home.events().pop().unwrap();
    for member in ["id", "pos", "seq", "hash"] {
        assert_eq!(receipt[member], stored[member], "{member}");
    }
    assert_eq!(stored["actor"], json!({"agent": "a", "role": "executor"}));

    let batch = append(r#"[{"type":"note"},{"type":"note"},{"type":"note"}]"#);
    assert_eq!((batch.len(), batch[0]["events"].as_array().unwrap().len()), (1, 3));
    assert_eq!(home.events().pop().unwrap()["batch"], json!([3, 3]));

    let lines = append("{\"type\":\"note\"}\n\n{\"type\":\"note\"}\n");
    assert_eq!(lines.len(), 2);
    assert!(home.events().pop().unwrap().get("batch").is_none(), "each line is its own decision");

    let file = home.work().join("events.json");
    fs::write(&file, r#"{"type":"note","task":"TASK-1","run":"r1","session":"s1","fence":3}"#).unwrap();
    home.run(&["trace", "append", &trace, "events.json"]).expect(0);
    let stored = home.events().pop().unwrap();
    assert_eq!(stored["actor"], json!({"agent": "operator", "role": "operator"}), "nobody was named");
    assert_eq!((&stored["task"], &stored["fence"]), (&json!("TASK-1"), &json!(3)));
    let text = home.run_with(&["trace", "append", &trace], r#"{"type":"note"}"#).stdout;
    assert!(text.starts_with("pos ") && text.contains("note  evt_"), "{text}");
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_is_not_an_event_is_refused_and_changes_nothing() {
    let home = Home::new();
    let trace = home.trace();
    let deep = format!("{{\"type\":\"note\",\"payload\":{}1{}}}", "{\"a\":".repeat(70), "}".repeat(70));
    let check = |stdin: &[u8], code: &str, names: &str| {
        let ended = home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], stdin));
        ended.refused(4, code, names);
        assert_eq!(ended.stdout, "");
    };
    check(b"", "U004", "no event");
    check(b"hello", "U004", "not JSON");
    check(b"{\"type\":\"note\"", "U004", "not JSON");
    check(b"[]", "U004", "no event");
    check(b"[{\"type\":\"note\"},7]", "U004", "in event 2 of the array");
    check(b"{\"type\":\"note\",\"payload\":{\"a\":1,\"a\":2}}", "U004", "occurs twice");
    check(b"{\"type\":\"note\",\"payload\":{\"a\":9007199254740993}}", "U004", "9007199254740993");
    check(b"{\"type\":\"no\xffte\"}", "U004", "not JSON");
    check(b"{\"type\":\"no\0te\"}", "U004", "not JSON");
    check(b"\0\0\0\0", "U004", "not JSON");
    check(deep.as_bytes(), "U004", "nested deeper");
    check(&[b"[".repeat(200_000), b"]".repeat(200_000)].concat(), "U004", "nested deeper");
    check(b"{\"type\":\"note\",\"colour\":1}", "U004", "unknown member \"colour\"");
    check(b"{\"type\":\"not a type\"}", "U004", "type: expected an event type");
    check(b"{\"type\":\"note\",\"payload\":[]}", "U004", "payload: expected an object");
    check(b"{\"type\":\"note\",\"seen\":{\"seq\":0,\"hash\":\"\"}}", "U004", "seen.seq");
    check(b"{\"type\":\"note\",\"at\":\"yesterday\"}", "U004", "at: ");
    check(b"{\"type\":\"note\",\"at\":\"2020-01-01T00:00:00.000Z\"}", "L027", "clock");
    check(b"{\"type\":\"note\",\"trace\":\"ledger\"}", "U004", "trace: expected");
    let absent = r#"{"type":"note","artifacts":[{"path":"/nowhere/x"}]}"#;
    home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], absent)).refused(
        3,
        "U005",
        "/nowhere/x",
    );
}

#[test]
fn input_beyond_every_bound_is_refused_and_changes_nothing() {
    let home = Home::new();
    let trace = home.trace();
    let check = |stdin: Vec<u8>, code: &str, names: &str| {
        let ended = home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], stdin));
        ended.refused(4, code, names);
    };
    let hundred = 100 << 20;
    check(vec![b'x'; hundred], "U003", "line 1 of the input is too long");
    check(vec![0; hundred], "U003", "line 1 of the input is too long");
    check(
        [b"{\"type\":\"note\",\"payload\":{\"a\":\"".to_vec(), vec![b'x'; hundred], b"\"}}".to_vec()]
            .concat(),
        "U003",
        "line 1",
    );
    check([b"[".to_vec(), vec![b' '; hundred], b"]".to_vec()].concat(), "U003", "the input is too long");
    // Short enough to read, too long to store.
    let long = format!("{{\"type\":\"note\",\"payload\":{{\"a\":\"{}\"}}}}", "x".repeat(1 << 20));
    check(long.into_bytes(), "L028", "put the bulk into an artifact");
    // Too many events for one decision.
    let many = format!("[{}]", vec!["{\"type\":\"note\"}"; 1025].join(","));
    check(many.into_bytes(), "L028", "1025");
}

#[test]
fn what_came_before_a_bad_line_is_recorded_and_said_so() {
    let home = Home::new();
    let trace = home.trace();
    let ended = home
        .run_with(&["trace", "append", &trace, "--json"], "{\"type\":\"note\"}\n{\"type\":\"note\"}\noops\n");
    ended.refused_json(4, "U004");
    assert_eq!(ended.stdout.lines().count(), 2);
    assert!(
        ended.stderr.contains("in line 3 of the input")
            && ended.stderr.contains("2 events before it are recorded")
    );
    assert_eq!(home.events().len(), 4);
}

#[test]
fn what_is_batons_own_is_refused_with_the_command_that_does_it() {
    let home = Home::new();
    let trace = home.trace();
    let check = |args: &[&str], event: &str, code: &str, hint: &str| {
        let ended = home.changes_nothing(|home| home.run_with(&[&["trace", "append"], args].concat(), event));
        ended.refused(4, code, hint);
    };
    check(&[&trace], r#"{"type":"ledger.created"}"#, "L025", "hint: baton init");
    check(&[&trace], r#"{"type":"ledger.recovered"}"#, "L025", "hint: baton doctor --fix");
    check(&[&trace], r#"{"type":"key_bound"}"#, "L025", "hint: baton agent key");
    check(&[&trace], r#"{"type":"key_rotated"}"#, "L025", "hint: baton agent key");
    check(&[&trace], r#"{"type":"key_revoked"}"#, "L025", "hint: baton agent key");
    check(&[&trace], r#"{"type":"trace.opened"}"#, "L025", "hint: baton trace new");
    check(&[&trace], r#"{"type":"trace.closed"}"#, "L025", "hint: baton trace close");
    check(&["ledger"], r#"{"type":"note"}"#, "L025", "hint: baton trace new");
    check(&[&trace, "--agent", "baton"], r#"{"type":"note"}"#, "L031", "Baton itself");
    check(&[&trace], r#"{"type":"note","actor":{"agent":"baton","role":"system"}}"#, "L031", "Baton itself");
}

#[test]
fn files_are_stored_before_the_event_that_cites_them() {
    let home = Home::new();
    let trace = home.trace();
    fs::write(home.work().join("report.md"), "# All well\n").unwrap();
    home.append(&trace, "a", &json!({"type": "artifact_recorded", "artifacts": [{"path": "report.md"}]}));
    let cited = home.events().pop().unwrap()["artifacts"][0].clone();
    let hash = sha256(b"# All well\n").to_string();
    assert_eq!(
        cited,
        json!({"bytes": 11, "media_type": "text/markdown", "name": "report.md", "sha256": hash})
    );
    // What is stored can be cited again, by its hash.
    home.append(&trace, "a", &json!({"type": "note", "artifacts": [cited]}));
    let named = json!({"path": "report.md", "name": "report", "media_type": "text/x-report"});
    home.append(&trace, "a", &json!({"type": "note", "artifacts": [named]}));
    assert_eq!(home.events().pop().unwrap()["artifacts"][0]["name"], "report");

    let refuse = |artifact: &Value, names: &str| {
        let event = json!({"type": "note", "artifacts": [artifact]}).to_string();
        home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], event))
            .refused(4, "L026", names);
    };
    let mut other = cited.clone();
    other["bytes"] = 12.into();
    refuse(&other, "stored with 11 bytes");
    other["sha256"] = "0".repeat(64).into();
    refuse(&other, "not stored");
    fs::write(home.work().join("small"), "x").unwrap();
    home.append(&trace, "a", &json!({"type": "note", "artifacts": [{"path": "small"}]}));
    let mut small = home.events().pop().unwrap()["artifacts"][0].clone();
    small["bytes"] = 2.into();
    refuse(&small, "stored with 1 byte, not 2");
    home.run(&["verify"]).expect(0);
}

#[test]
fn nothing_is_stored_for_a_decision_that_cites_beyond_a_bound() {
    let home = Home::new();
    let trace = home.trace();
    fs::write(home.work().join("good"), "good").unwrap();
    // Without content, but as long as it says: copying it would never end.
    fs::File::create(home.work().join("huge")).unwrap().set_len(1 << 40).unwrap();
    let good = json!({"path": "good"});
    let check = |artifacts: &[Value], code: &str, names: &str| {
        // The first event would pass by itself; the decision is one.
        let decision = json!([
            {"type": "note", "artifacts": [good]},
            {"type": "note", "artifacts": artifacts},
        ]);
        let ended =
            home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], decision.to_string()));
        ended.refused(4, code, names);
    };
    check(&vec![good.clone(); 257], "L028", "at most 256");
    check(&[good.clone(), json!({"path": "huge"})], "L026", "huge is too large");
    check(&[json!({"path": "good", "media_type": "x".repeat(128)})], "L028", "artifacts.media_type");
    check(&[json!({"path": "good", "media_type": ""})], "L028", "artifacts.media_type");
    check(&[json!({"path": "good", "name": "x".repeat(256)})], "L028", "artifacts.name");
    home.append(&trace, "a", &json!({"type": "note", "artifacts": vec![good.clone(); 256]}));
    home.run(&["verify"]).expect(0);
}

#[test]
fn a_claim_may_cite_what_is_missing_and_the_verifier_finds_it() {
    let home = Home::new();
    let trace = home.trace();
    home.json(&["agent", "key", "worker"]);
    let missing = json!({"sha256": "0".repeat(64), "bytes": 1, "media_type": "text/plain", "name": "x"});
    home.append(&trace, "worker", &json!({"type": "claim_issued", "artifacts": [missing]}));
    let ended = home.run(&["verify", "--json"]);
    ended.expect(7);
    assert_eq!(ended.object()["findings"][0]["code"], "ARTIFACT_MISSING");
    // A bundle cannot be made with it, and one without artifacts says so.
    home.run(&["trace", "export", &trace, "-o", "x"]).refused(4, "L026", "--no-artifacts");
    assert_eq!(fs::read_dir(home.work()).unwrap().count(), 0, "neither the file nor the beginning of it");
    home.run(&["trace", "export", &trace, "-o", "x", "--no-artifacts"]).expect(0);
    home.run(&["verify", "x"]).expect(0);
}

#[test]
fn seen_must_be_known_and_what_closes_must_have_seen_the_head() {
    let home = Home::new();
    let trace = home.trace();
    home.json(&["agent", "key", "worker"]);
    let first = home.append(&trace, "worker", &json!({"type": "note"}));
    let seen = json!({"seq": first["seq"], "hash": first["hash"]});
    home.append(&trace, "worker", &json!({"type": "note", "seen": seen}));
    let append =
        |event: Value| home.run_with(&["trace", "append", &trace, "--agent", "worker"], event.to_string());
    home.changes_nothing(|_| append(json!({"type": "note", "seen": {"seq": 1, "hash": "0".repeat(64)}})))
        .refused(4, "L023", "seen.seq 1");
    home.changes_nothing(|_| append(json!({"type": "final_statement_signed", "seen": seen}))).refused(
        5,
        "L018",
        "the head of",
    );
    let head = &home.json(&["trace", "ls"])["traces"][1];
    let seen = json!({"seq": head["events"], "hash": head["head"]});
    append(json!({"type": "final_statement_signed", "seen": seen})).expect(0);
}

#[test]
fn the_same_id_is_recorded_once() {
    let home = Home::new();
    let trace = home.trace();
    let event = json!({"type": "note", "id": "evt_0192f0c1-2345-7abc-8def-0123456789ab"});
    home.append(&trace, "a", &event);
    home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], event.to_string())).refused(
        4,
        "L024",
        "already in the ledger",
    );
    let twice = json!([event, event]).to_string().replace("89ab", "89ac");
    home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], twice))
        .refused(4, "L024", "89ac");
    let future = json!({"type": "note", "id": "evt_ffffffff-2345-7abc-8def-0123456789ab"}).to_string();
    home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], future)).refused(
        4,
        "L027",
        "a time in the future",
    );
}

#[test]
fn a_reader_that_goes_away_is_told_that_not_everything_is_recorded() {
    let home = Home::new();
    let trace = home.trace();
    for (events, code) in [(1, 0), (3, 1)] {
        let mut command = home.command(&["trace", "append", &trace]);
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let mut child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let input = "{\"type\":\"note\"}\n".repeat(events);
        let ended = crate::support::finish(child, Some(input.into_bytes()));
        ended.expect(code);
        assert_eq!(ended.stderr.contains("U008"), code == 1, "{}", ended.stderr);
        assert_eq!(ended.stderr.contains("1 event before it is recorded"), code == 1, "{}", ended.stderr);
    }
    home.run(&["verify"]).expect(0);
}

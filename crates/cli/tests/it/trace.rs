//! `baton trace new`, `ls`, `show` and `close`, and how traces are named.

use serde_json::json;

use crate::support::Home;

#[test]
fn a_trace_is_started_listed_shown_and_closed() {
    let home = Home::new();
    let printed = home.run(&["trace", "new", "--title", "Fix the login"]);
    printed.expect(0);
    let trace = printed.stdout.trim().to_owned();
    assert!(trace.starts_with("trc_") && trace.len() == 40, "only the id: {trace:?}");
    home.append(&trace, "a", &json!({"type": "note", "payload": {"n": 1}}));

    let list = home.json(&["trace", "ls"]);
    let row = list["traces"].as_array().unwrap().iter().find(|row| row["trace"] == trace.as_str()).unwrap();
    assert_eq!((row["events"].as_u64(), row["closed"].as_bool()), (Some(2), Some(false)));
    assert_eq!(row["head"].as_str().unwrap().len(), 64);
    assert_eq!(row["title"], "Fix the login");
    assert!(home.run(&["trace", "ls"]).stdout.contains("Fix the login"));

    let shown = home.json(&["trace", "show", &trace]);
    assert_eq!(shown["trace"], trace.as_str());
    let events = shown["events"].as_array().unwrap();
    assert_eq!(
        events.iter().map(|e| e["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["trace.opened", "note"]
    );
    assert_eq!(events[1], home.events()[2], "the records as they are stored");
    assert!(home.run(&["trace", "show", &trace]).stdout.contains("{\"n\":1}"));

    let closed = home.json(&["trace", "close", &trace, "--reason", "done"]);
    assert_eq!(closed["events"][0]["seq"], 3);
    home.run_with(&["trace", "append", &trace], r#"{"type":"note"}"#).refused(4, "L017", "is closed");
    home.run(&["trace", "close", &trace, "--reason", "again"]).refused(4, "L017", "is closed");
    assert_eq!(home.json(&["trace", "show", &trace])["closed"], true);
    home.run(&["verify", "--strict"]).expect(7);
    home.run(&["verify"]).expect(0);
}

#[test]
fn any_unique_beginning_names_a_trace() {
    let home = Home::new();
    let trace = home.trace();
    for name in [&trace[..], &trace[..12], &trace[4..], &trace[4..10], "0"] {
        assert_eq!(home.json(&["trace", "show", name])["trace"], trace.as_str(), "{name}");
    }
    assert_eq!(home.json(&["trace", "show", "ledger"])["events"][0]["type"], "ledger.created");
    // The second trace of the same minute starts alike.
    let other = home.trace();
    let ended = home.run(&["trace", "show", "trc_0"]);
    ended.refused(2, "L016", "more than one");
    assert!(ended.stderr.contains(&trace) && ended.stderr.contains(&other), "{}", ended.stderr);
    for nothing in ["ffff", "trc_ffffffff", "trc_", "hello", "", "../x", "evt_0"] {
        home.run(&["trace", "show", nothing]).refused(3, "L014", "no trace");
    }
    let absent = "trc_0192f0c1-2345-7abc-bdef-0123456789ab";
    home.run(&["trace", "show", absent]).refused(3, "L014", absent);
    home.run_with(&["trace", "append", absent], r#"{"type":"note"}"#).refused(3, "L014", absent);
}

#[test]
fn titles_and_reasons_are_bounded_and_the_ledger_is_never_closed() {
    let home = Home::new();
    let trace = home.trace();
    home.changes_nothing(|home| {
        home.run(&["trace", "new", "--title", &"x".repeat(201)]).refused(2, "U009", "201 characters");
        home.run(&["trace", "new", "--title", ""]).refused(2, "U009", "0 characters");
        home.run(&["trace", "close", &trace, "--reason", &"x".repeat(513)]).refused(
            2,
            "U009",
            "513 characters",
        );
        home.run(&["trace", "close", "ledger", "--reason", "x"])
    })
    .refused(4, "L025", "never closed");
}

#[test]
fn a_long_trace_is_shown_whole_and_in_order() {
    let home = Home::new()
        .with_env("BATON_LEDGER_DURABILITY", "none")
        .with_env("BATON_LEDGER_SEGMENT_BYTES", "65536");
    let (one, two) = (home.trace(), home.trace());
    // By turns, over many segments and many reads.
    for (trace, count) in [(&one, 2500), (&two, 5), (&one, 2500)] {
        let lines: String =
            (0..count).map(|n| format!("{{\"type\":\"note\",\"payload\":{{\"n\":{n}}}}}\n")).collect();
        home.run_with(&["trace", "append", trace, "-q"], lines).expect(0);
    }
    let shown = home.json(&["trace", "show", &one]);
    let seqs: Vec<u64> =
        shown["events"].as_array().unwrap().iter().map(|e| e["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (1..=5001).collect::<Vec<u64>>());
    assert_eq!(home.json(&["trace", "show", &two])["events"].as_array().unwrap().len(), 6);
    assert_eq!(home.run(&["trace", "show", &one]).stdout.lines().count(), 5001 + 3);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn a_list_that_ends_at_what_does_not_read_says_so() {
    let home = Home::new();
    let (one, two) = (home.trace(), home.trace());
    assert_eq!(home.json(&["trace", "ls"]).get("damage"), None);
    home.append(&two, "a", &json!({"type": "note"}));
    home.trace();
    let text = std::fs::read_to_string(home.segment()).unwrap();
    std::fs::write(home.segment(), text.replacen("\"type\":\"note\"", "\"type\":\"nope\"", 1)).unwrap();
    std::fs::remove_dir_all(home.data().join("index")).unwrap();
    let list = home.json(&["trace", "ls"]);
    let traces: Vec<&str> =
        list["traces"].as_array().unwrap().iter().map(|trace| trace["trace"].as_str().unwrap()).collect();
    assert_eq!(traces, ["ledger", &one, &two]);
    assert_eq!(list["damage"]["pos"], 4, "{list}");
    let said = home.run(&["trace", "ls"]);
    said.expect(0);
    assert!(
        said.stderr.contains("damaged from event 4 on, and what comes after is not listed"),
        "{}",
        said.stderr
    );
}

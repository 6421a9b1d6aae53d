//! What only reads takes no lock and writes nothing; `baton replay`; text from records on a terminal.

use std::fs;
use std::time::Duration;

use baton_store::lock::OwnerLock;
use serde_json::json;

use crate::support::Home;

fn story(home: &Home) -> String {
    let trace = home.trace();
    home.json(&["agent", "key", "worker"]);
    home.append(&trace, "worker", &json!({"type": "note", "payload": {"n": 1}}));
    home.append(&trace, "other", &json!({"type": "note", "payload": {"n": 2}}));
    trace
}

#[test]
fn what_only_reads_takes_no_lock_and_writes_nothing() {
    let home = Home::new().with_env("BATON_LOCK_WAIT_MS", "0");
    let trace = story(&home);
    let proof = home.run(&["trace", "prove", home.events()[3]["id"].as_str().unwrap()]);
    fs::write(home.path("proof"), proof.stdout).unwrap();
    let proof = home.path("proof").to_str().unwrap().to_owned();
    let held = OwnerLock::acquire(&baton_store::Layout::new(home.data()), Duration::ZERO).unwrap();
    let data = home.data().to_str().unwrap().to_owned();
    let commands: [&[&str]; 13] = [
        &[],
        &["trace", "ls"],
        &["trace", "show", &trace],
        &["events"],
        &["verify"],
        &["verify", &data],
        &["verify", &trace],
        &["verify", "--proof", &proof],
        &["replay"],
        &["replay", "--until", "2"],
        &["doctor"],
        &["agent", "key", "worker"],
        &["explain", "L003"],
    ];
    for json in [&[][..], &["--json"]] {
        for command in commands {
            home.changes_nothing(|home| home.run(&[command, json].concat())).expect(0);
        }
    }
    home.run(&["trace", "new"]).refused(5, "L003", &std::process::id().to_string());
    assert!(home.run(&[]).stdout.contains(&format!("process {}", std::process::id())));
    drop(held);
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn replay_rebuilds_the_same_state_at_every_position() {
    let home = Home::new().with_env("BATON_LEDGER_SEGMENT_BYTES", "4096");
    let trace = story(&home);
    home.json(&["agent", "key", "worker", "--rotate"]);
    home.json(&["trace", "close", &trace, "--reason", "done"]);
    let full = home.json(&["replay"]);
    assert_eq!((&full["equal"], &full["differences"]), (&json!(true), &json!([])));
    let size = full["pos"].as_u64().unwrap();
    assert_eq!(size, home.events().len() as u64);
    for until in 1..=size {
        let at = home.json(&["replay", "--until", &until.to_string()]);
        assert_eq!((&at["equal"], &at["pos"]), (&json!(true), &json!(until)), "{at}");
    }
    home.run(&["replay", "--until", &(size + 1).to_string()]).refused(3, "L034", "no position");
    home.run(&["replay", "--until", "0"]).expect(2);
    assert!(home.run(&["replay"]).stdout.contains("equal to the live state"));
}

#[test]
fn replay_finds_an_index_that_lies() {
    let home = Home::new();
    story(&home);
    // Opening reads again what no checkpoint covers, and would notice.
    home.run(&["trace", "checkpoint"]).expect(0);
    let nodes = home.data().join("index/nodes");
    let mut bytes = fs::read(&nodes).unwrap();
    // The second leaf: neither the last line nor a subtree that the root is made of.
    bytes[32] ^= 1;
    fs::write(&nodes, bytes).unwrap();
    let ended = home.run(&["replay", "--json"]);
    ended.expect(7);
    assert_eq!(ended.object()["equal"], false);
    assert!(
        ended.object()["differences"][0].as_str().unwrap().contains("leaf of line 2"),
        "{}",
        ended.stdout
    );
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn replay_finds_a_journal_that_was_changed_behind_the_index() {
    let home = Home::new();
    story(&home);
    // Opening reads again what no checkpoint covers, and would notice.
    home.run(&["trace", "checkpoint"]).expect(0);
    let text = fs::read_to_string(home.segment()).unwrap();
    fs::write(home.segment(), text.replace("{\"n\":1}", "{\"n\":7}")).unwrap();
    let ended = home.run(&["replay", "--json"]);
    ended.expect(7);
    assert!(ended.stdout.contains("does not read"), "{}", ended.stdout);
}

#[test]
fn hostile_text_does_not_reach_the_terminal() {
    let home = Home::new();
    let evil = "red \u{1b}[31m bell \u{7} csi \u{9b}2J rtl \u{202e}x\r\n";
    let trace = home.run(&["trace", "new", "--title", evil]).stdout.trim().to_owned();
    let name = "name\u{1b}]0;pwned\u{7}";
    let event = json!({"type": "note", "payload": {"text": evil, "del": "\u{7f}\u{85}"}});
    home.append(&trace, "a", &event);
    fs::write(home.work().join("f"), "x").unwrap();
    home.append(&trace, "a", &json!({"type": "note", "artifacts": [{"path": "f", "name": name}]}));
    let is_clean = |text: &str| text.chars().all(|c| c == '\n' || !(c.is_control() || c == '\u{202e}'));
    for args in [&[][..], &["trace", "ls"], &["trace", "show", &trace], &["events"], &["verify"], &["doctor"]]
    {
        let ended = home.run(args);
        assert!(is_clean(&ended.stdout) && is_clean(&ended.stderr), "{args:?}: {:?}", ended.stdout);
    }
    for args in [
        &["trace", "show", evil][..],
        &["explain", evil],
        &["verify", evil],
        &["verify", &trace, "--trust", evil],
    ] {
        let ended = home.run(args);
        assert!(ended.code != Some(0) && is_clean(&ended.stderr), "{args:?}: {:?}", ended.stderr);
    }
    // For programs everything comes through as it was.
    let events = home.events();
    assert_eq!(events[2]["payload"]["text"], evil);
    assert_eq!(home.json(&["trace", "ls"])["traces"][1]["title"], evil);
}

#[test]
fn colours_come_only_when_asked_for() {
    let home = Home::new();
    assert!(!home.run(&["verify"]).stdout.contains('\u{1b}'));
    assert!(home.run(&["verify", "--color", "always"]).stdout.contains("\u{1b}[32mpass"));
    let forced = home.command(&["verify"]).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1").spawn().unwrap();
    assert!(crate::support::finish(forced, None).stdout.contains('\u{1b}'));
    let piped = home.command(&["verify"]).env_remove("NO_COLOR").spawn().unwrap();
    assert!(!crate::support::finish(piped, None).stdout.contains('\u{1b}'));
    home.run(&["verify", "--color", "sometimes"]).expect(2);
}

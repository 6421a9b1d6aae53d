//! What is printed to be typed next works when it is pasted.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::support::{Ended, Home, finish};

/// Runs a printed line as a shell would, with `baton` on PATH and nothing else that names a data directory.
pub(crate) fn paste(home: &Home, line: &str) -> Ended {
    let baton = std::path::Path::new(env!("CARGO_BIN_EXE_baton"));
    let path = format!("{}:/usr/bin:/bin", baton.parent().unwrap().display());
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", line]).current_dir(home.work()).env_clear().env("PATH", path);
    shell.env("HOME", home.path("home")).env("BATON_STATE_DIR", home.state());
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    finish(shell.spawn().unwrap(), None)
}

/// What follows the word in the one line that has it.
pub(crate) fn after<'a>(text: &'a str, word: &str) -> &'a str {
    text.lines().find_map(|line| line.trim_start().strip_prefix(word)).unwrap_or_else(|| panic!("{text}"))
}

/// A ledger at `work/it's mine`, whose first note was altered, beside a good one that is found without a flag.
fn damaged(home: &Home) -> &'static str {
    let dir = "it's mine";
    for place in [".baton", dir] {
        home.run(&["--data-dir", place, "init"]).expect(0);
    }
    let made = home.run(&["--data-dir", dir, "trace", "new"]);
    let trace = made.stdout.trim();
    let notes = "{\"type\":\"note\"}\n".repeat(3);
    home.run_with(&["--data-dir", dir, "trace", "append", trace], notes).expect(0);
    let segment = home.work().join(dir).join("events/00000000000000000001.jsonl");
    let text = fs::read_to_string(&segment).unwrap();
    fs::write(&segment, text.replacen("\"type\":\"note\"", "\"type\":\"nope\"", 1)).unwrap();
    fs::remove_dir_all(home.work().join(dir).join("index")).unwrap();
    dir
}

#[test]
fn hints_are_about_the_data_directory_that_was_named() {
    let home = Home::empty();
    let dir = damaged(&home);
    paste(&home, "baton verify").expect(0);
    let ended = home.run(&["--data-dir", dir, "events"]);
    ended.refused(7, "L032", r"hint: baton --data-dir 'it'\''s mine' verify");
    paste(&home, after(&ended.stderr, "hint: ")).expect(7);
    let ended = home.run(&["events", "--json", "--data-dir", dir]);
    let error: Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["hint"], r"baton --data-dir 'it'\''s mine' verify");
    // Without the flag there is nothing to repeat.
    home.run(&["--data-dir", ".baton", "trace", "show", "ff"]).refused(
        3,
        "L014",
        "hint: baton --data-dir .baton trace ls",
    );
    paste(&home, "baton trace show ff").refused(3, "L014", "hint: baton trace ls");
    // Pages are the same everywhere.
    let unexplained = home.run(&["--data-dir", dir, "explain", "L999"]);
    unexplained.refused(3, "U007", "hint: baton explain\n");
}

#[test]
fn what_doctor_init_and_baton_say_next_carries_the_data_directory() {
    let home = Home::empty();
    let made = home.run(&["init", "--data-dir", "a copy"]);
    let next = after(&made.stdout, "Next: ");
    assert!(next.starts_with("baton --data-dir 'a copy' task new "), "{next}");
    paste(&home, next).expect(0);
    let status = home.run(&["--data-dir", "a copy"]).stdout;
    assert!(status.contains("  baton --data-dir 'a copy' task ls  "), "{status}");
    assert!(status.contains("  baton --data-dir 'a copy' verify  "), "{status}");
    fs::remove_dir_all(home.work().join("a copy/index")).unwrap();
    let doctor = home.run(&["--data-dir", "a copy", "doctor"]).stdout;
    assert_eq!(after(&doctor, "fix: "), "baton --data-dir 'a copy' doctor --fix");
    let checks = home.json(&["--data-dir", "a copy", "doctor"])["checks"].clone();
    let index = checks.as_array().unwrap().iter().find(|check| check["check"] == "index").unwrap();
    assert_eq!(index["fix"], "baton --data-dir 'a copy' doctor --fix");
    paste(&home, after(&doctor, "fix: ")).expect(0);
    // A way to make what is not there.
    let absent = home.run(&["--data-dir", "not yet", "events"]);
    paste(&home, after(&absent.stderr, "hint: ")).expect(0);
    home.run(&["--data-dir", "not yet", "events"]).expect(0);
}

#[test]
fn columns_stay_apart_and_quiet_leaves_advice_out() {
    let home = Home::empty();
    let long = "a-directory-with-a-name-that-is-longer-than-any-column";
    let ended = home.run(&["--data-dir", long]);
    assert!(
        ended.stdout.contains(&format!("  baton init --data-dir {long}  make one\n")),
        "{}",
        ended.stdout
    );
    let made = home.run(&["--data-dir", long, "init", "-q"]);
    made.expect(0);
    assert!(made.stdout.contains("public key  ") && !made.stdout.contains("Next"), "{}", made.stdout);
    let status = home.run(&["--data-dir", long, "-q"]);
    assert!(!status.stdout.contains("  baton "), "{}", status.stdout);
}

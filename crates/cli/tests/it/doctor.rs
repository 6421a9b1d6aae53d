//! `baton doctor`: each verdict with a cause, and what `--fix` mends.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::Home;

fn check(home: &Home, name: &str, exit: i32) -> Value {
    let ended = home.changes_nothing(|home| home.run(&["doctor", "--json"]));
    ended.expect(exit);
    let checks = ended.object()["checks"].clone();
    checks.as_array().unwrap().iter().find(|check| check["check"] == name).cloned().unwrap_or(Value::Null)
}

fn secrets(home: &Home) -> PathBuf {
    fs::read_dir(home.state()).unwrap().next().unwrap().unwrap().path()
}

fn ledger_key(home: &Home) -> PathBuf {
    let mut files = fs::read_dir(secrets(home)).unwrap().map(|entry| entry.unwrap().path());
    files.find(|path| path.extension().is_some_and(|extension| extension == "key")).unwrap()
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn a_healthy_directory_has_a_verdict_for_everything() {
    let home = Home::new();
    home.trace();
    let ended = home.changes_nothing(|home| home.run(&["doctor", "--json"]));
    ended.expect(0);
    let checks = ended.object()["checks"].clone();
    let names: Vec<&str> =
        checks.as_array().unwrap().iter().map(|check| check["check"].as_str().unwrap()).collect();
    let all = [
        "config",
        "ledger",
        "checkpoint",
        "index",
        "keys",
        "clock",
        "permissions",
        "disk",
        "lock",
        "quarantine",
        "wall",
        "hooks",
        "agents",
        "tasks",
    ];
    assert_eq!(names, all);
    // What the kernel has is not the directory's doing.
    for check in checks.as_array().unwrap().iter().filter(|check| check["check"] != "wall") {
        assert!(check["status"] == "ok" && check["detail"].is_string(), "{check}");
    }
    home.run(&["trace", "checkpoint"]).expect(0);
    assert!(check(&home, "checkpoint", 0)["detail"].as_str().unwrap().contains("agrees"));
    assert!(home.run(&["doctor"]).stdout.contains("ledger       ok"));
    Home::empty().run(&["doctor"]).refused(3, "L001", "no ledger in");
}

#[test]
fn the_ledger_is_not_called_unaltered_by_what_does_not_read_it() {
    let home = Home::new().with_env("BATON_LEDGER_SEGMENT_BYTES", "4096");
    let trace = home.trace();
    home.run_with(&["trace", "append", &trace], "{\"type\":\"note\"}\n".repeat(40)).expect(0);
    home.run(&["trace", "checkpoint"]).expect(0);
    let first = home.data().join("events/00000000000000000001.jsonl");
    let good = fs::read_to_string(&first).unwrap();
    fs::write(&first, good.replacen("\"type\":\"note\"", "\"type\":\"nope\"", 1)).unwrap();
    let detail = check(&home, "ledger", 0)["detail"].as_str().unwrap().to_owned();
    assert!(detail.starts_with("it opens: 42 events in "), "{detail}");
    assert!(detail.contains(&format!("checked by `baton verify {}`", home.data().display())), "{detail}");
    home.run(&["verify"]).expect(7);
}

#[test]
fn a_torn_tail_is_a_warning_and_fixed() {
    let home = Home::new();
    home.trace();
    let mut text = fs::read_to_string(home.segment()).unwrap();
    text.push_str("{\"actor\":{");
    fs::write(home.segment(), text).unwrap();
    let verdict = check(&home, "ledger", 0);
    assert_eq!((&verdict["status"], &verdict["fix"]), (&json!("warn"), &json!("baton doctor --fix")));
    let fixed = home.run(&["doctor", "--fix", "--json"]);
    fixed.expect(0);
    assert!(fixed.object()["fixed"][0].as_str().unwrap().contains("set aside"), "{}", fixed.stdout);
    assert_eq!(check(&home, "ledger", 0)["status"], "ok");
    assert!(check(&home, "quarantine", 0)["detail"].as_str().unwrap().starts_with("1 file"));
    home.run(&["verify"]).expect(0);
}

#[test]
fn an_index_that_is_gone_or_wrong_is_a_warning_and_rebuilt() {
    let home = Home::new();
    home.trace();
    let index = home.data().join("index");
    fs::remove_dir_all(&index).unwrap();
    assert_eq!(check(&home, "index", 0)["status"], "warn");
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(check(&home, "index", 0)["status"], "ok");
    fs::write(index.join("meta"), "nonsense").unwrap();
    assert_eq!(check(&home, "index", 0)["status"], "warn");
    home.run(&["events"]).expect(0);
    home.run(&["doctor", "--fix"]).expect(0);
    // Entries that do not agree with the journal.
    let entries = fs::read(index.join("entries")).unwrap();
    fs::write(index.join("entries"), vec![0x70; entries.len()]).unwrap();
    assert_eq!(check(&home, "index", 0)["status"], "warn");
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(fs::read(index.join("entries")).unwrap(), entries);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn keys_that_others_can_read_fail_and_are_restricted() {
    let home = Home::new();
    let key = ledger_key(&home);
    set_mode(&key, 0o644);
    assert_eq!(check(&home, "keys", 1)["status"], "fail");
    home.changes_nothing(|home| home.run(&["trace", "new"])).refused(4, "L008", "chmod 600");
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    home.run(&["trace", "new"]).expect(0);
    // The directories as well.
    set_mode(&home.state(), 0o755);
    assert_eq!(check(&home, "permissions", 0)["status"], "warn");
    set_mode(&secrets(&home), 0o750);
    assert_eq!(check(&home, "keys", 1)["status"], "fail");
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(fs::metadata(home.state()).unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(check(&home, "keys", 0)["status"], "ok");
}

#[test]
fn keys_that_cannot_be_used_fail_with_the_reason_and_stop_writing() {
    let home = Home::new();
    let key = ledger_key(&home);
    let good = fs::read(&key).unwrap();
    let broken = |code: &str, exit: i32, names: &str| {
        let verdict = check(&home, "keys", 1);
        assert_eq!(verdict["status"], "fail", "{verdict}");
        home.changes_nothing(|home| home.run(&["trace", "new"])).refused(exit, code, names);
        home.run(&["verify"]).expect(0);
        home.run(&["events"]).expect(0);
    };
    for (content, names) in [
        (&b"garbage"[..], "not a private key of Baton"),
        (b"", "not a private key of Baton"),
        (b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n", "not a private key of Baton"),
        (b"ed25519-secret:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n", "another key than its name says"),
        (&[0xff; 40], "cannot read"),
    ] {
        fs::write(&key, content).unwrap();
        broken("L009", 1, names);
    }
    fs::remove_file(&key).unwrap();
    broken("L007", 1, "no private key");
    // A directory in the key's place.
    fs::create_dir(&key).unwrap();
    set_mode(&key, 0o700);
    broken("L009", 1, "cannot read");
    fs::remove_dir(&key).unwrap();
    fs::write(&key, good).unwrap();
    set_mode(&key, 0o600);
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn damage_fails_and_nothing_is_fixed_about_it() {
    let home = Home::new();
    let trace = home.trace();
    for _ in 0..3 {
        home.append(&trace, "a", &json!({"type": "note"}));
    }
    let text = fs::read_to_string(home.segment()).unwrap();
    fs::write(home.segment(), text.replacen("\"type\":\"note\"", "\"type\":\"nope\"", 1)).unwrap();
    fs::remove_dir_all(home.data().join("index")).unwrap();
    let verdict = check(&home, "ledger", 1);
    assert_eq!(verdict["status"], "fail");
    assert!(verdict["see"].as_str().unwrap().starts_with("baton verify"), "{verdict}");
    home.changes_nothing(|home| home.run(&["doctor", "--fix"])).refused(7, "L004", "line 3");
    let config = home.data().join("baton.toml");
    fs::write(config, "[ledgr]\n").unwrap();
    assert_eq!(check(&home, "config", 1)["status"], "fail");
}

/// Every verdict of one check: its status and what it says.
fn all(home: &Home, name: &str) -> Vec<(String, String)> {
    let checks = home.run(&["doctor", "--json"]).object()["checks"].clone();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let named = checks.as_array().unwrap().iter().filter(|check| check["check"] == name);
    named.map(|check| (text(&check["status"]), text(&check["detail"]))).collect()
}

fn key_file(home: &Home, args: &[&str]) -> PathBuf {
    let made = home.json(&[&["agent", "key"], args].concat());
    secrets(home).join(format!("{}.key", made["key"].as_str().unwrap()))
}

#[test]
fn secrets_are_called_private_only_if_all_are_and_each_that_is_not_has_its_line() {
    let home = Home::new();
    let pat = key_file(&home, &["pat"]);
    let private = "data can be written, secrets are private";
    assert_eq!(all(&home, "permissions"), [("ok".to_owned(), private.to_owned())]);
    let own = fs::read_dir(secrets(&home)).unwrap().map(|entry| entry.unwrap().path());
    let own = own.into_iter().find(|path| *path != pat).unwrap();
    set_mode(&pat, 0o644);
    set_mode(&own, 0o640);
    let mut expected = [(&pat, "644"), (&own, "640")].map(|(path, mode)| {
        ("fail".to_owned(), format!("{} is open to others (mode {mode})", path.display()))
    });
    let mut found = all(&home, "keys");
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
    assert_eq!(all(&home, "permissions"), [("ok".to_owned(), "data can be written".to_owned())]);
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(all(&home, "permissions"), [("ok".to_owned(), private.to_owned())]);
    set_mode(&home.state(), 0o755);
    let open = format!("{} is open to others (mode 755)", home.state().display());
    assert_eq!(all(&home, "permissions"), [("warn".to_owned(), open)]);
}

#[test]
fn an_agents_key_that_does_not_read_is_reported() {
    let home = Home::new();
    let (pat, old) = (key_file(&home, &["pat"]), key_file(&home, &["sam"]));
    home.json(&["agent", "key", "sam", "--rotate"]);
    fs::write(&pat, "garbage").unwrap();
    fs::write(&old, "ed25519-secret:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n").unwrap();
    let mut found = all(&home, "keys");
    found.sort();
    assert_eq!(found.len(), 2, "{found:?}");
    assert_eq!(found[0].0, "fail");
    let names = format!("the key of agent pat: {} is not a private key of Baton", pat.display());
    assert!(found[0].1.starts_with(&names), "{found:?}");
    let names = format!("a former key of agent sam: {} holds another key", old.display());
    assert!(found[1].0 == "warn" && found[1].1.starts_with(&names), "{found:?}");
    home.run(&["doctor"]).expect(1);
    fs::remove_file(&pat).unwrap();
    fs::remove_file(&old).unwrap();
    home.run(&["doctor"]).expect(0);
}

#[test]
fn fix_says_that_the_index_was_rebuilt_only_where_it_was_not_in_order() {
    let home = Home::new();
    home.trace();
    let ended = home.run(&["doctor", "--fix"]);
    assert!(ended.stderr.contains("made anew") && !ended.stderr.contains("fixed"), "{}", ended.stderr);
    assert_eq!(home.json(&["doctor", "--fix"])["fixed"], json!([]));
    fs::remove_dir_all(home.data().join("index")).unwrap();
    let fixed = home.json(&["doctor", "--fix"])["fixed"].clone();
    assert_eq!(fixed, json!(["the index was missing or damaged, and was rebuilt from 2 events"]));
}

#[test]
fn a_fault_of_the_configuration_is_mended_where_it_is() {
    let home = Home::new();
    let user = home.path("home/.config/baton/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    fs::write(&user, "[ledgr]\n").unwrap();
    assert_eq!(check(&home, "config", 1)["advice"], format!("edit {}", user.display()));
    fs::remove_file(user).unwrap();
    let home = home.with_env("BATON_LEDGER_DURABILITY", "maybe");
    assert_eq!(check(&home, "config", 1)["fix"], "unset BATON_LEDGER_DURABILITY");
}

#[test]
fn keys_that_others_can_read_are_restricted_also_where_the_journal_is_damaged() {
    let home = Home::new();
    home.task(&[]);
    let text = fs::read_to_string(home.segment()).unwrap();
    let (first, rest) = text.split_once('\n').unwrap();
    let rest = rest.replacen("\"actor\"", "\"act0r\"", 1);
    fs::write(home.segment(), format!("{first}\n{rest}")).unwrap();
    let key = ledger_key(&home);
    set_mode(&key, 0o644);
    let damaged = fs::read(home.segment()).unwrap();
    home.run(&["doctor", "--fix"]).refused(7, "L004", "");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read(home.segment()).unwrap(), damaged);
}

//! `baton` alone and `baton init`.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use crate::support::{Home, finish};

#[test]
fn without_a_data_directory_baton_says_what_to_type() {
    let home = Home::empty();
    let ended = home.run(&[]);
    ended.expect(0);
    assert!(ended.stdout.contains("baton init"), "{}", ended.stdout);
    assert_eq!(home.json(&[])["dataDir"], serde_json::Value::Null);
    assert!(!home.data().exists(), "looking makes nothing");
}

#[test]
fn init_makes_a_ledger_with_a_key_and_says_what_is_next() {
    let home = Home::empty();
    let made = home.json(&["init"]);
    assert_eq!(made["dataDir"], fs::canonicalize(home.data()).unwrap().to_str().unwrap());
    assert!(made["origin"].as_str().unwrap().starts_with("baton/led_"));
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("key_ed25519_") && made["public"].as_str().unwrap().starts_with("ed25519:"));
    assert_eq!(fs::read_to_string(home.data().join(".gitignore")).unwrap(), "*\n");
    assert!(home.data().join("keys").join(format!("{key}.pub")).is_file());
    let ledger = made["origin"].as_str().unwrap().strip_prefix("baton/").unwrap();
    let secret = home.state().join(ledger).join(format!("{key}.key"));
    assert_eq!(made["secret"], secret.to_str().unwrap());
    assert_eq!(fs::metadata(&secret).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(secret.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);

    let events = home.events();
    assert_eq!(events.len(), 1);
    assert_eq!(events[0]["type"], "ledger.created");
    assert_eq!(events[0]["payload"]["durability"], "commit");
    home.run(&["verify"]).expect(0);

    let people = Home::empty().run(&["init"]);
    people.expect(0);
    assert!(people.stdout.contains("baton task new"), "{}", people.stdout);
}

#[test]
fn a_second_init_is_refused_and_changes_nothing() {
    let home = Home::new();
    home.changes_nothing(|home| home.run(&["init"])).refused(4, "L002", "already holds a ledger");
    let ended = home.run(&["init", "--json"]);
    let error: serde_json::Value = serde_json::from_str(&ended.stderr).unwrap();
    assert_eq!(error["error"]["code"], "L002");
    assert!(error["error"]["message"].is_string() && error["error"]["hint"].is_string());
    assert_eq!(ended.stdout, "");
}

#[test]
fn init_keeps_out_of_directories_that_are_used_for_something_else() {
    let home = Home::empty();
    fs::create_dir(home.data()).unwrap();
    fs::write(home.data().join("main.rs"), "fn main() {}").unwrap();
    home.changes_nothing(|home| home.run(&["init"])).refused(4, "L036", "main.rs");
    // A configuration that was written beforehand is welcome, and used.
    fs::remove_file(home.data().join("main.rs")).unwrap();
    fs::write(home.data().join("baton.toml"), "[ledger]\ndurability = \"none\"\n").unwrap();
    home.run(&["init"]).expect(0);
    assert_eq!(home.events()[0]["payload"]["durability"], "none");
    assert_eq!(
        fs::read_to_string(home.data().join("baton.toml")).unwrap(),
        "[ledger]\ndurability = \"none\"\n"
    );
}

#[test]
fn agents_on_the_path_are_named_in_the_configuration() {
    let home = Home::empty();
    let bin = home.path("bin");
    fs::create_dir(&bin).unwrap();
    symlink("/bin/sh", bin.join("opencode")).unwrap();
    fs::write(bin.join("codex"), "not a program").unwrap();
    let child = home.command(&["init", "--json"]).env("PATH", &bin).spawn().unwrap();
    assert_eq!(finish(child, None).object()["agents"], serde_json::json!(["opencode"]));
    let config = fs::read_to_string(home.data().join("baton.toml")).unwrap();
    assert!(
        config.contains("[agents.opencode]\nharness = \"acp\"\ncommand = [\"opencode\", \"acp\"]"),
        "{config}"
    );
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn every_agent_that_is_found_gets_a_command_that_works() {
    // The programs that are there, and what is written for them: an adapter goes before the program that it is for.
    let exec_claude = "harness = \"exec\"\nprofile = \"claude\"\n\
        command = [\"claude\", \"-p\", \"--output-format\", \"stream-json\", \"--verbose\"]";
    let cases: &[(&[&str], &str, &str)] = &[
        (&["claude"], "claude", exec_claude),
        (&["claude", "claude-agent-acp"], "claude", "harness = \"acp\"\ncommand = [\"claude-agent-acp\"]"),
        (
            &["codex"],
            "codex",
            "harness = \"exec\"\nprofile = \"codex\"\ncommand = [\"codex\", \"exec\", \"--json\", \"-\"]",
        ),
        (&["codex-acp", "codex"], "codex", "harness = \"acp\"\ncommand = [\"codex-acp\"]"),
        (&["gemini"], "gemini", "harness = \"acp\"\ncommand = [\"gemini\", \"--acp\"]"),
        (&["qwen"], "qwen", "harness = \"acp\"\ncommand = [\"qwen\", \"--acp\"]"),
        (&["copilot"], "copilot", "harness = \"acp\"\ncommand = [\"copilot\", \"--acp\"]"),
        (&["vibe-acp"], "vibe", "harness = \"acp\"\ncommand = [\"vibe-acp\"]"),
    ];
    for (programs, name, settings) in cases {
        let home = Home::empty();
        let bin = home.path("bin");
        fs::create_dir(&bin).unwrap();
        for program in *programs {
            symlink("/bin/sh", bin.join(program)).unwrap();
        }
        let child = home.command(&["init", "--json"]).env("PATH", &bin).spawn().unwrap();
        assert_eq!(finish(child, None).object()["agents"], serde_json::json!([name]));
        let config = fs::read_to_string(home.data().join("baton.toml")).unwrap();
        assert!(config.contains(&format!("[agents.{name}]\n{settings}\n")), "{config}");
        let listed = home.json(&["agent", "ls"]);
        let names: Vec<&str> =
            listed["agents"].as_array().unwrap().iter().filter_map(|agent| agent["name"].as_str()).collect();
        assert!(names.contains(name) && names.contains(&"mock"), "{listed}");
    }
}

#[test]
fn the_data_directory_is_found_upwards_like_git() {
    let home = Home::empty();
    let without = |args: &[&str], dir: &str| {
        let child =
            home.command(args).env_remove("BATON_DATA_DIR").current_dir(home.path(dir)).spawn().unwrap();
        finish(child, None)
    };
    fs::create_dir_all(home.path("work/deep/er")).unwrap();
    without(&["trace", "ls"], "work/deep").refused(3, "L001", "no data directory");
    without(&["init"], "work").expect(0);
    assert!(home.path("work/.baton/events").is_dir());
    without(&["trace", "ls"], "work/deep/er").expect(0);
    // A data directory of one's own serves where there is none above.
    let child = home.command(&["init", "--data-dir"]).arg(home.path("xdg/baton")).spawn().unwrap();
    finish(child, None).expect(0);
    let elsewhere = home
        .command(&["trace", "ls"])
        .env_remove("BATON_DATA_DIR")
        .env("XDG_DATA_HOME", home.path("xdg"))
        .current_dir(home.path("home-less").parent().unwrap())
        .spawn()
        .unwrap();
    finish(elsewhere, None).expect(0);
}

#[test]
fn the_state_directory_follows_the_environment() {
    let home = Home::empty();
    let child = home
        .command(&["init"])
        .env_remove("BATON_STATE_DIR")
        .env("XDG_STATE_HOME", home.path("xdg-state"))
        .spawn()
        .unwrap();
    finish(child, None).expect(0);
    assert!(home.path("xdg-state/baton").is_dir());
    // With another state directory the key is not there.
    home.run(&["trace", "new"]).refused(1, "L007", "no private key");
}

#[test]
fn baton_alone_tells_where_one_stands() {
    let home = Home::new();
    let trace = home.trace();
    home.append(&trace, "a", &serde_json::json!({"type": "note"}));
    let status = home.changes_nothing(|home| home.run(&["--json"])).object();
    assert_eq!((status["events"].as_u64(), status["traces"].as_u64()), (Some(3), Some(2)));
    assert_eq!(status["last"]["type"], "note");
    assert_eq!(status["owner"], serde_json::Value::Null);
    assert_eq!(home.json(&["replay"])["traces"], status["traces"], "counted in the same way");
    let text = home.run(&[]).stdout;
    for part in ["3 events in 2 traces", "note by a, ", "in use by       nobody", "baton verify"] {
        assert!(text.contains(part), "expected {part:?} in {text}");
    }
}

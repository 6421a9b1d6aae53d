//! Configuration: which layer wins, and what is wrong with a value.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::{Ended, Home, finish};

/// Every key, with values that are not built in.
const FULL: &str = include_str!("../../src/config/full.toml");

fn write(path: &Path, text: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn run_with(home: &Home, variables: &[(&str, &str)], args: &[&str]) -> Ended {
    let mut command = home.command(args);
    command.envs(variables.iter().copied());
    finish(command.spawn().unwrap(), None)
}

fn schema() -> Value {
    let home = Home::empty();
    let ended = home.run(&["config", "schema"]);
    ended.expect(0);
    let schema = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(home.json(&["config", "schema"])["schema"], schema);
    schema
}

/// The dotted names of all keys in a table of the schema.
fn keys(table: &Value, prefix: &str, out: &mut Vec<String>) {
    for (name, key) in table["properties"].as_object().unwrap() {
        match key["properties"].is_object() {
            true => keys(key, &format!("{prefix}{name}."), out),
            false => out.push(format!("{prefix}{name}")),
        }
    }
}

fn segments(home: &Home) -> usize {
    fs::read_dir(home.data().join("events")).unwrap().count()
}

#[test]
fn environment_beats_the_data_directory_beats_the_user() {
    let durability = |user: Option<&str>, data: Option<&str>, variable: Option<&str>| {
        let home = Home::empty();
        let write = |path: &str, value: &str| {
            let path = home.path(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, format!("[ledger]\ndurability = \"{value}\"\n")).unwrap();
        };
        user.into_iter().for_each(|value| write("home/.config/baton/config.toml", value));
        data.into_iter().for_each(|value| write("data/baton.toml", value));
        let mut command = home.command(&["init"]);
        if let Some(value) = variable {
            command.env("BATON_LEDGER_DURABILITY", value);
        }
        finish(command.spawn().unwrap(), None).expect(0);
        home.events()[0]["payload"]["durability"].as_str().unwrap().to_owned()
    };
    assert_eq!(durability(None, None, None), "commit");
    assert_eq!(durability(Some("none"), None, None), "none");
    assert_eq!(durability(Some("none"), Some("interval"), None), "interval");
    assert_eq!(durability(Some("none"), Some("interval"), Some("commit")), "commit");
}

#[test]
fn settings_have_an_effect() {
    let home = Home::new();
    fs::write(home.data().join("baton.toml"), "[ledger]\nsegment_bytes = 4096\ncheckpoint_every = 5\n")
        .unwrap();
    let trace = home.trace();
    home.run_with(&["trace", "append", &trace], "{\"type\":\"note\"}\n".repeat(40)).expect(0);
    assert!(segments(&home) > 3);
    assert!(fs::read_dir(home.data().join("checkpoints")).unwrap().count() > 1);
    home.run(&["verify"]).expect(0);
}

#[test]
fn mistakes_name_the_place_and_the_nearest_name() {
    let home = Home::new();
    let check = |text: &str, names: &str| {
        fs::write(home.data().join("baton.toml"), text).unwrap();
        let ended = home.changes_nothing(|home| home.run(&["trace", "new"]));
        ended.refused(2, "U001", names);
        assert!(ended.stderr.contains("baton.toml:"), "{}", ended.stderr);
    };
    check("[ledgr]\n", "did you mean `ledger`?");
    check("[ledger]\nsegment_byte = 1\n", "did you mean `segment_bytes`?");
    check("[ledger]\nsegment_bytes = 4095\n", "expected an integer of at least 4096, got 4095");
    check("[ledger]\nsegment_bytes = \"big\"\n", "got \"big\"");
    check("[ledger]\ncheckpoint_every = 0\n", "expected an integer of at least 1, got 0");
    check(
        "[ledger]\ndurability = \"always\"\n",
        "expected \"commit\", \"interval\" or \"none\", got \"always\"",
    );
    check("[ledger\n", "error[U001]");
    check("colour = 1\n", "unknown section [colour]");
    // Reading does not depend on it.
    home.run(&["events"]).expect(0);
    home.run(&["verify"]).expect(0);
    check("[agents.x]\nanything = 1\n", "unknown key `anything` in [agents.x]");
    fs::write(
        home.data().join("baton.toml"),
        "[scheduler]\npoll = \"30s\"\n[agents.x]\nharness = \"mock\"\n",
    )
    .unwrap();
    home.run(&["trace", "new"]).expect(0);
    for (variable, value) in [
        ("BATON_LEDGER_DURABILITY", "sometimes"),
        ("BATON_LEDGER_SEGMENT_BYTES", "1"),
        ("BATON_LEDGER_CHECKPOINT_EVERY", "-1"),
        ("BATON_LOCK_WAIT_MS", "soon"),
    ] {
        let ended = finish(home.command(&["trace", "new"]).env(variable, value).spawn().unwrap(), None);
        ended.expect(2);
        assert!(ended.stderr.contains(variable) && ended.stderr.contains("hint: unset"), "{}", ended.stderr);
    }
    // A file that is not one.
    fs::remove_file(home.data().join("baton.toml")).unwrap();
    fs::create_dir(home.data().join("baton.toml")).unwrap();
    home.run(&["trace", "new"]).refused(2, "U001", "cannot read the configuration");
}

#[test]
fn config_show_says_which_of_the_five_layers_won() {
    let home = Home::empty();
    let (user, data) = (home.path("home/.config/baton/config.toml"), home.data().join("baton.toml"));
    let check = |variables: &[(&str, &str)], args: &[&str], value: &str, origin: &str| {
        let all = [&["config", "show", "--origin"], args].concat();
        let ended = run_with(&home, variables, &all);
        ended.expect(0);
        let line = ended.stdout.lines().find(|line| line.starts_with("poll = ")).unwrap();
        let (shown, comment) = line.split_once("  # ").unwrap();
        assert_eq!((shown.trim_end(), comment), (format!("poll = \"{value}\"").as_str(), origin));
        let json = run_with(&home, variables, &[&all[..], &["--json"]].concat()).object();
        assert_eq!(json["config"]["scheduler"]["poll"], value);
        assert_eq!(json["origins"]["scheduler.poll"], origin);
    };
    check(&[], &[], "30s", "built in");
    write(&user, "[scheduler]\npoll = \"1s\"\n");
    check(&[], &[], "1s", &format!("{}:2", user.display()));
    write(&data, "# mine\r\n[scheduler]\r\n\r\npoll = \"2s\"\r\n");
    check(&[], &[], "2s", &format!("{}:4", data.display()));
    let variables = [("BATON_SCHEDULER_POLL", "3s")];
    check(&variables, &[], "3s", "BATON_SCHEDULER_POLL");
    check(&[("BATON_SCHEDULER_POLL", "")], &[], "2s", &format!("{}:4", data.display()));
    check(&variables, &["--set", "scheduler.poll=4s"], "4s", "--set");
}

#[test]
fn config_show_works_without_a_data_directory() {
    let home = Home::empty();
    write(&home.path("home/.config/baton/config.toml"), "[scheduler]\npoll = \"1s\"\n");
    let mut command = home.command(&["config", "show"]);
    command.env_remove("BATON_DATA_DIR");
    let ended = finish(command.spawn().unwrap(), None);
    ended.expect(0);
    assert!(ended.stdout.contains("\npoll = \"1s\"\n") && !ended.stdout.contains(" # "), "{}", ended.stdout);
    assert_eq!(ended.stderr, "");
    assert!(!home.data().exists(), "looking makes nothing");
}

#[test]
fn what_config_show_prints_can_be_used_as_a_file() {
    let home = Home::empty();
    let path = home.data().join("baton.toml");
    write(&path, format!("\u{feff}{}", FULL.replace('\n', "\r\n")));
    let first = home.run(&["config", "show", "--origin"]);
    first.expect(0);
    assert!(first.stdout.contains("[agents.\"open.code\"]\n"), "{}", first.stdout);
    let (sections, _) = first.stdout.split_once("[agents.").unwrap();
    let unset = sections.lines().filter(|line| line.starts_with("# ")).collect::<Vec<_>>();
    assert_eq!(unset, ["# url is not set: in the data directory"], "the full file sets every other key");
    let config = home.json(&["config", "show"])["config"].clone();
    write(&path, &first.stdout);
    assert_eq!(home.json(&["config", "show"])["config"], config);
}

#[test]
fn every_key_is_in_the_schema_and_shown() {
    let home = Home::empty();
    write(&home.data().join("baton.toml"), FULL);
    let shown = home.json(&["config", "show"]);
    let (schema, mut known) = (schema(), Vec::new());
    for (section, table) in schema["properties"].as_object().unwrap() {
        if section != "agents" {
            keys(table, &format!("{section}."), &mut known);
        }
    }
    assert!(known.len() > 40, "{known:?}");
    for path in known.iter().filter(|path| *path != "store.url") {
        assert!(shown["origins"][path].as_str().unwrap().contains("baton.toml:"), "{path}");
        let value = shown["config"].pointer(&format!("/{}", path.replace('.', "/"))).unwrap();
        assert!(!value.is_null(), "{path}");
    }
    let mut agent = Vec::new();
    keys(&schema["properties"]["agents"]["additionalProperties"], "", &mut agent);
    let agents = ["\"open.code\"", "claude", "local", "mock"];
    for key in &agent {
        let is_shown = |agent: &str| shown["origins"][format!("agents.{agent}.{key}")].is_string();
        assert!(agents.iter().any(|agent| is_shown(agent)), "{key}");
    }
}

#[test]
fn a_mistake_is_shown_with_its_line_and_a_caret() {
    let home = Home::empty();
    let path = home.data().join("baton.toml");
    write(&path, "[scheduler]\n\tpol = \"5s\" # \u{1b}[31m\n".replace('\u{1b}', "x"));
    let ended = home.run(&["config", "show"]);
    ended.refused(2, "U001", "unknown key `pol` in [scheduler]; did you mean `poll`?");
    let place = format!("  {}:2:2\n  2 |  pol = \"5s\" # x[31m\n    |  ^^^\n", path.display());
    assert!(ended.stderr.contains(&place), "{}", ended.stderr);
    home.run(&["config", "show", "--json"]).refused_json(2, "U001");
}

#[test]
fn files_that_are_none_are_refused_by_config_show_too() {
    let home = Home::empty();
    let path = home.data().join("baton.toml");
    let check = |names: &str| {
        let ended = home.run(&["config", "show"]);
        ended.refused(2, "U001", "cannot read the configuration");
        assert!(ended.stderr.contains(names), "{}", ended.stderr);
    };
    fs::create_dir_all(&path).unwrap();
    check("is a directory");
    fs::remove_dir(&path).unwrap();
    crate::files::pipe(&path);
    check("not a regular file");
    fs::remove_file(&path).unwrap();
    fs::write(&path, [&b"# a\n"[..], &[0xff]].concat()).unwrap();
    check("it is not text: line 2 is not UTF-8");
    fs::write(&path, "#".repeat((1 << 20) + 1)).unwrap();
    check("more than 1048576 bytes");
    // As much as there may be, and as deep as it goes.
    fs::write(&path, "#".repeat(1 << 20)).unwrap();
    home.run(&["config", "show"]).expect(0);
    for text in ["[".repeat(1 << 19), "a.".repeat(1 << 19), format!("x = {}", "{a=[".repeat(1 << 17))] {
        fs::write(&path, text).unwrap();
        home.run(&["config", "show"]).refused(2, "U001", "error[U001]");
    }
}

#[test]
fn secrets_are_not_shown() {
    let home = Home::empty();
    let path = home.data().join("baton.toml");
    write(&path, "[agents.mock]\nenv = { API_TOKEN = \"hunter2\", LANG = \"C\" }\n");
    let variables = [("BATON_TELEMETRY_OTLP_ENDPOINT", "http://me:hunter2@db/x?password=hunter2")];
    for args in [&["config", "show"][..], &["config", "show", "--json"]] {
        let ended = run_with(&home, &variables, args);
        ended.expect(0);
        assert!(!ended.stdout.contains("hunter2"), "{}", ended.stdout);
        assert!(ended.stdout.contains("http://me:***@db/x?password=***"), "{}", ended.stdout);
    }
    write(&path, "[telemetry]\notlp_endpoint = \"http://me:hunter2@db/x\"\n");
    let ended = home.run(&["config", "show"]);
    ended.refused(2, "U001", "a file does not hold secrets, BATON_TELEMETRY_OTLP_ENDPOINT may");
    assert!(!ended.stderr.contains("hunter2"), "{}", ended.stderr);
}

#[test]
fn set_works_with_every_command_and_says_what_is_wrong() {
    let home = Home::empty();
    home.run(&["init", "--set", "ledger.durability=none"]).expect(0);
    assert_eq!(home.events()[0]["payload"]["durability"], "none");
    let shown = home.run(&[
        "--set",
        "scheduler.poll=1s",
        "config",
        "--set",
        "ci.timeout=1m",
        "show",
        "--set",
        "ci.timeout=2m",
    ]);
    shown.expect(0);
    assert!(
        shown.stdout.contains("poll = \"1s\"") && shown.stdout.contains("timeout = \"2m\""),
        "{}",
        shown.stdout
    );
    let misspelt = run_with(&home, &[("BATON_SCHEDULER_POL", "1s")], &["config", "show"]);
    misspelt.expect(0);
    assert!(misspelt.stderr.contains("did you mean BATON_SCHEDULER_POLL?"), "{}", misspelt.stderr);
    let bad = |value: &str, names: &str| {
        home.run(&["config", "show", "--set", value]).refused(2, "U001", names);
    };
    bad("ledger.durabilty=none", "did you mean `ledger.durability`?");
    bad("ledger.durability=maybe", "ledger.durability: expected \"commit\", \"interval\" or \"none\"");
    bad("agents.mock.fs=true", "agents are configured in a file");
    let ended = home.run(&["config", "show", "--set", "ledger"]);
    ended.expect(2);
    assert!(ended.stderr.contains("expected KEY=VALUE"), "{}", ended.stderr);
}

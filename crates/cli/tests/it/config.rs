//! Configuration: which layer wins, and what is wrong with a value.

use std::fs;

use crate::support::{Home, finish};

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
    fs::write(home.data().join("baton.toml"), "[scheduler]\npoll = \"30s\"\n[agents.x]\nanything = 1\n")
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

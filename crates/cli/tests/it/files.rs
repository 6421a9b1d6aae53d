//! Files that are named, or lie where Baton looks, and are not what they should be: the same flaw ends in the same way everywhere.

use std::fs;
use std::path::Path;

use baton_core::limits::SMALL_FILE_BYTES_MAX;
use rustix::fs::{CWD, Mode, mkfifoat};
use serde_json::json;

use crate::support::Home;

pub(crate) fn pipe(path: &Path) {
    mkfifoat(CWD, path, Mode::RUSR | Mode::WUSR).unwrap();
}

/// Exit codes for a file that is absent, a directory, empty, not text, too long, and a pipe that nobody writes to.
fn check(home: &Home, args: &[&str], expected: [i32; 6]) {
    let work = home.work();
    let long = vec![b'x'; usize::try_from(SMALL_FILE_BYTES_MAX).unwrap() * 2];
    fs::create_dir(work.join("directory")).unwrap();
    fs::write(work.join("empty"), "").unwrap();
    fs::write(work.join("binary"), [0xff, 0xfe, 0xfd]).unwrap();
    fs::write(work.join("long"), long).unwrap();
    pipe(&work.join("pipe"));
    let names = ["absent", "directory", "empty", "binary", "long", "pipe"];
    let found = names.map(|name| {
        let ended = home.changes_nothing(|home| home.run(&[args, &[name]].concat()));
        assert!(!ended.stderr.contains("panicked"), "{args:?} {name}: {ended:?}");
        ended.code.unwrap()
    });
    assert_eq!(found, expected, "{args:?}: {names:?}");
    fs::remove_dir_all(&work).unwrap();
    fs::create_dir(&work).unwrap();
}

#[test]
fn the_same_flaw_of_a_file_has_the_same_exit_code_everywhere() {
    let home = Home::new();
    let trace = home.trace();
    // What is judged.
    check(&home, &["verify", "--proof"], [3, 8, 7, 7, 7, 7]);
    check(&home, &["verify", "--checkpoint"], [3, 8, 7, 7, 7, 7]);
    check(&home, &["verify"], [3, 8, 8, 7, 7, 8]);
    // What an option takes.
    check(&home, &["verify", "--trust"], [3, 1, 2, 2, 2, 2]);
    check(&home, &["trace", "prove", "--consistency"], [3, 1, 2, 2, 2, 2]);
    // Data.
    check(&home, &["agent", "key", "own", "--public"], [3, 1, 4, 4, 4, 4]);
    // A pipe without a writer is waited for here: whoever feeds it may come later.
    let append = ["trace", "append", &trace];
    for (name, code) in [("absent", 3), ("empty", 4), ("binary", 4)] {
        fs::write(home.work().join("empty"), "").unwrap();
        fs::write(home.work().join("binary"), [0xff]).unwrap();
        home.run(&[&append[..], &[name]].concat()).expect(code);
    }
    home.run(&[&append[..], &["."]].concat()).refused(1, "U006", "cannot read .\n");
    // Where to look for what is not there: in the nearest directory that is.
    fs::create_dir(home.work().join("my files")).unwrap();
    for (name, place) in
        [("absent", "."), ("my files/absent", "'my files'"), ("my files/no/no", "'my files'")]
    {
        let hint = format!("hint: ls -l {place}\n");
        home.run(&[&append[..], &[name]].concat()).refused(3, "U005", &hint);
        home.run(&["verify", "--trust", name]).refused(3, "U005", &hint);
    }
    for (name, exit, code) in [("absent", 3, "U005"), (".", 1, "U006"), ("pipe", 1, "U006")] {
        let _ = fs::remove_file(home.work().join("pipe"));
        pipe(&home.work().join("pipe"));
        let event = json!({"type": "note", "artifacts": [{"path": name}]}).to_string();
        home.changes_nothing(|home| home.run_with(&append, event)).refused(exit, code, name);
    }
}

#[test]
fn what_never_ends_is_read_up_to_a_bound() {
    let home = Home::new();
    home.run(&["verify", "--trust", "/dev/zero"]).refused(2, "U002", "more than");
    home.run(&["agent", "key", "a", "--public", "/dev/zero"]).refused(4, "U010", "more than");
    home.run(&["verify", "--proof", "/dev/zero"]).expect(7);
    home.run(&["verify", "--checkpoint", "/dev/zero"]).expect(7);
}

#[test]
fn a_pipe_with_a_writer_is_as_good_as_a_file() {
    let home = Home::new();
    let trace = home.trace();
    let key = fs::read_dir(home.data().join("keys")).unwrap().next().unwrap().unwrap().path();
    home.run(&["trace", "export", &trace, "-o", "bundle"]).expect(0);
    let script = format!(
        "cat {} | {baton} verify --trust /dev/stdin && cat bundle | {baton} verify /dev/stdin",
        key.display(),
        baton = env!("CARGO_BIN_EXE_baton")
    );
    let mut command = std::process::Command::new("sh");
    command.args(["-c", &script]).current_dir(home.work()).env("BATON_DATA_DIR", home.data());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    crate::support::finish(command.spawn().unwrap(), None).expect(0);
}

#[test]
fn a_configuration_that_is_no_regular_file_stops_nothing_for_long() {
    let home = Home::new();
    let user = home.path("home/.config/baton/config.toml");
    fs::create_dir_all(user.parent().unwrap()).unwrap();
    for config in [home.data().join("baton.toml"), user] {
        let _ = fs::remove_file(&config);
        let check = |names: &str| {
            let ended = home.run(&["trace", "new"]);
            ended.refused(2, "U001", "cannot read the configuration");
            assert!(ended.stderr.contains(names), "{}", ended.stderr);
            fs::remove_file(&config).unwrap();
        };
        pipe(&config);
        check("not a regular file");
        std::os::unix::fs::symlink("/dev/zero", &config).unwrap();
        check("not a regular file");
        fs::write(&config, vec![b'#'; usize::try_from(SMALL_FILE_BYTES_MAX).unwrap() + 1]).unwrap();
        check("more than");
        fs::write(&config, [b'#', 0xff]).unwrap();
        check("not text");
    }
    home.run(&["trace", "new"]).expect(0);
}

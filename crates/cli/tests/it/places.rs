//! Something else in the place of a file or directory of Baton's own: refused by its path, moved aside by `doctor --fix`, never followed and never
//! deleted; and what the doctor calls a fix is one.

use std::fs;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, RenameFlags, mkfifoat, renameat_with};
use serde_json::Value;

use crate::hints::{after, paste};
use crate::serve::Serving;
use crate::support::{Home, until};
use crate::task_support::{report, text, texts};

/// What is put in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Dir,
    File,
    Link,
    Pipe,
}

/// Where the links lead; it must stay as it is.
fn outside(home: &Home) -> PathBuf {
    let outside = home.path("outside");
    let _ = fs::create_dir(&outside);
    fs::write(outside.join("mine"), "mine").unwrap();
    outside
}

/// Puts it there in one step: a server that looks in between would make anew what is missing.
fn put(home: &Home, place: &str, kind: Kind) {
    let (path, new) = (home.data().join(place), home.path("new"));
    match kind {
        Kind::Dir => {
            fs::create_dir(&new).unwrap();
            fs::write(new.join("mine"), "mine").unwrap();
        }
        Kind::File => fs::write(&new, "mine").unwrap(),
        Kind::Link => symlink(outside(home), &new).unwrap(),
        Kind::Pipe => mkfifoat(CWD, &new, Mode::RUSR | Mode::WUSR).unwrap(),
    }
    if fs::symlink_metadata(&path).is_err() {
        return fs::rename(new, path).unwrap();
    }
    renameat_with(CWD, &new, CWD, &path, RenameFlags::EXCHANGE).unwrap();
    if fs::symlink_metadata(&new).unwrap().is_dir() {
        fs::remove_dir_all(new).unwrap();
    } else {
        fs::remove_file(new).unwrap();
    }
}

fn is_kind(path: &Path, kind: Kind) -> bool {
    let found = fs::symlink_metadata(path).unwrap().file_type();
    match kind {
        Kind::Dir => found.is_dir() && fs::read_to_string(path.join("mine")).unwrap() == "mine",
        Kind::File => found.is_file() && fs::read_to_string(path).unwrap() == "mine",
        Kind::Link => found.is_symlink(),
        Kind::Pipe => found.is_fifo(),
    }
}

fn kept(home: &Home, place: &str) -> Vec<PathBuf> {
    let start = format!("{}.", place.replace('/', "."));
    let all = fs::read_dir(home.data().join("quarantine")).unwrap().map(|entry| entry.unwrap().path());
    all.filter(|path| path.file_name().unwrap().to_str().unwrap().starts_with(&start)).collect()
}

/// Refused by its path, mended by the command that the refusal names, and then as if nothing had been.
#[track_caller]
fn check(place: &str, kind: Kind, code: &str) {
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    put(&home, place, kind);
    let shown = format!("{} is not a", home.data().join(place).display());
    let refused = home.appends_nothing(|home| home.run(&["task", "log", &id, "more"]));
    refused.refused(1, code, &shown);
    assert!(refused.stderr.contains("\nhint: baton doctor --fix\n"), "{place}: {}", refused.stderr);
    assert!(is_kind(&home.data().join(place), kind), "{place}: it was left alone");

    let doctor = home.run(&["doctor"]);
    doctor.expect(1);
    assert!(doctor.stdout.contains(&shown), "{place}: {}", doctor.stdout);
    let fixed = home.run(&["doctor", "--fix", "--json"]);
    fixed.expect(0);
    assert!(fixed.object()["fixed"].to_string().contains(&shown), "{place}: {}", fixed.stdout);
    let kept = kept(&home, place);
    assert!(kept.len() == 1 && is_kind(&kept[0], kind), "{place} {kind:?}: {kept:?}");
    assert_eq!(fs::read_dir(outside(&home)).unwrap().count(), 1, "{place}: nothing went through a link");

    home.run(&["task", "log", &id, "more"]).expect(0);
    assert!(fs::read_to_string(home.task_file(&id)).unwrap().contains("more"), "{place}");
    assert_eq!(home.run_file(&id, "run.json")["status"], "running", "{place}");
    home.run(&["doctor"]).expect(0);
    home.replays();
    home.verifies();
}

#[test]
fn what_lies_in_the_place_of_an_index_file_is_refused_by_its_path_and_moved_aside() {
    let names = ["tasks", "tasks.places", "tasks.open", "meta", "entries", "nodes", "keys", "traces.1"];
    for (at, name) in names.iter().enumerate() {
        let kind = [Kind::Dir, Kind::Link, Kind::Pipe][at % 3];
        check(&format!("index/{name}"), kind, "L012");
    }
    for kind in [Kind::Link, Kind::Pipe] {
        check("index/tasks", kind, "L012");
    }
    check("index", Kind::File, "L012");
    check("index", Kind::Link, "L012");
}

#[test]
fn what_lies_in_the_place_of_a_folder_is_refused_by_its_path_and_moved_aside() {
    check("tasks", Kind::Link, "T014");
    check("tasks", Kind::File, "T014");
    check("runs", Kind::Link, "T014");
    check("runs", Kind::Pipe, "T014");
    check("quarantine", Kind::Link, "L012");
    check("quarantine", Kind::File, "L012");
    check("tasks/in-progress", Kind::Link, "T014");
    check("tasks/blocked", Kind::File, "T014");
    check("tasks/.spare", Kind::Link, "T014");
}

#[test]
fn a_torn_write_is_not_set_aside_through_a_link() {
    let home = Home::new();
    let torn = fs::read_to_string(home.segment()).unwrap() + "{\"actor\":{";
    fs::write(home.segment(), &torn).unwrap();
    put(&home, "quarantine", Kind::Link);
    home.run(&["trace", "new"]).refused(1, "L012", "quarantine is not a directory");
    assert_eq!(fs::read_to_string(home.segment()).unwrap(), torn, "nothing was changed");
    home.run(&["doctor", "--fix"]).expect(0);
    assert_eq!(fs::read_dir(outside(&home)).unwrap().count(), 1);
    home.run(&["trace", "new"]).expect(0);
}

#[test]
fn nothing_is_mended_before_what_is_in_the_way_of_the_index_is_gone() {
    let home = Home::new();
    home.task(&[]);
    let torn = fs::read_to_string(home.segment()).unwrap() + "{\"actor\":{";
    fs::write(home.segment(), &torn).unwrap();
    put(&home, "index/tasks", Kind::Link);
    for args in [&["trace", "new"][..], &["task", "new", "more"]] {
        home.run(args).refused(1, "L012", "index/tasks is not a file");
        assert_eq!(fs::read_to_string(home.segment()).unwrap(), torn, "nothing was changed");
        let aside = fs::read_dir(home.data().join("quarantine")).map_or(0, Iterator::count);
        assert_eq!(aside, 0, "nothing was set aside");
    }
    home.run(&["doctor", "--fix"]).expect(0);
    home.verifies();
}

#[test]
fn what_is_in_the_way_of_notifications_is_no_failure_of_the_ledger() {
    for place in ["notifications", "notifications/outbox"] {
        let home = Home::new();
        home.run(&["notify", "flush"]).expect(0);
        put(&home, place, Kind::Link);
        home.task(&[]);
        let doctor = home.run(&["doctor"]);
        doctor.expect(0);
        assert!(doctor.stdout.contains(&format!("{place} is not a directory")), "{}", doctor.stdout);
        home.run(&["doctor", "--fix"]).expect(0);
        assert_eq!(kept(&home, place).len(), 1);
    }
}

#[test]
fn only_what_is_in_the_way_of_a_task_is_blamed_for_its_files() {
    let home = Home::new();
    let id = home.task(&[]);
    let serving = Serving::start(&home);
    put(&home, "tasks/backlog", Kind::Link);
    put(&home, "tasks/blocked", Kind::Link);
    let moved = home.run(&["task", "move", &id, "blocked", "--reason", "x"]);
    moved.expect(0);
    let told = moved.stderr.lines().find(|line| line.contains(&id)).unwrap_or_default();
    assert!(told.contains("tasks/blocked is not a directory"), "{}", moved.stderr);
    assert!(!told.contains("tasks/backlog"), "{}", moved.stderr);
    // And what the system said.
    assert!(told.contains(&format!("tasks/blocked/{id}.md: Not a directory")), "{}", moved.stderr);
    serving.stop();
    home.run(&["doctor", "--fix"]).expect(0);
    home.task_file(&id);
}

#[test]
fn several_things_in_the_way_are_moved_aside_at_once() {
    let home = Home::new();
    let id = home.task(&[]);
    for (place, kind) in
        [("quarantine", Kind::File), ("tasks", Kind::Link), ("index/tasks", Kind::Dir), ("runs", Kind::Pipe)]
    {
        put(&home, place, kind);
    }
    let fixed = texts(&home.json(&["doctor", "--fix"])["fixed"]);
    let moved = fixed.iter().filter(|text| text.contains(" was moved to ")).count();
    assert_eq!(moved, 4, "{fixed:?}");
    assert_eq!(
        fs::read_dir(home.data().join("quarantine")).unwrap().count(),
        4,
        "each once, and nothing else"
    );
    home.task_file(&id);
    assert_eq!(fs::read_dir(outside(&home)).unwrap().count(), 1);
}

#[test]
fn what_lies_in_the_place_of_a_run_is_told_and_moved_aside() {
    for kind in [Kind::Link, Kind::File, Kind::Pipe] {
        let home = Home::new();
        let id = home.task(&[]);
        let place = format!("runs/{id}");
        // Before the first claim.
        put(&home, &place, kind);
        let doctor = home.run(&["doctor"]);
        doctor.expect(0);
        let shown = format!("{} is not a directory", home.data().join(&place).display());
        assert!(doctor.stdout.contains(&shown), "{}", doctor.stdout);
        let claimed = home.run(&["task", "claim", &id, "--agent", "swe-backend"]);
        claimed.expect(0);
        assert!(claimed.stderr.contains(&format!("{place} was in the way")), "{}", claimed.stderr);
        assert_eq!(home.run_file(&id, "run.json")["status"], "running");
        // In the middle of a run: the beat counts, and the other files come back.
        put(&home, &place, kind);
        let beat = home.run(&["task", "beat", &id, "--agent", "swe-backend", "--fence", "1"]);
        beat.expect(0);
        assert!(beat.stderr.contains(&format!("{place} was in the way")), "{}", beat.stderr);
        assert_eq!(home.run_file(&id, "run.json")["status"], "running");
        assert_eq!(home.run_file(&id, "run_heartbeat.json")["beatCount"], 1);
        // By the doctor.
        put(&home, &place, kind);
        let fixed = home.json(&["doctor", "--fix"])["fixed"].to_string();
        assert!(fixed.contains(&shown), "{fixed}");
        assert_eq!(home.run_file(&id, "run.json")["status"], "running");
        home.accepted(report(&id, "swe-backend", "done"));
        assert_eq!(home.run_file(&id, "run_result.json")["outcome"], "done");
        assert_eq!(fs::read_dir(outside(&home)).unwrap().count(), 1);
        assert!(home.run(&["doctor"]).expect(0).stdout.contains("each with its file"));
    }
}

#[test]
fn what_is_in_the_way_of_a_server_is_named_and_the_doctor_mends_it_there() {
    let home = Home::new();
    let id = home.task(&[]);
    let serving = Serving::start(&home);
    put(&home, "tasks/blocked", Kind::Link);
    let moved = home.run(&["task", "move", &id, "blocked", "--reason", "x"]);
    moved.expect(0);
    assert!(moved.stderr.contains("tasks/blocked is not a directory"), "{}", moved.stderr);
    assert!(moved.stderr.contains("baton doctor --fix"), "{}", moved.stderr);
    assert_eq!(fs::read_dir(outside(&home)).unwrap().count(), 1);
    home.run(&["doctor", "--fix"]).expect(0);
    until("its file is where it belongs", || home.data().join(format!("tasks/blocked/{id}.md")).is_file());
    assert_eq!(kept(&home, "tasks/blocked").len(), 1);
    serving.stop();
    home.task_file(&id);
    home.run(&["doctor"]).expect(0);
}

fn verdicts(home: &Home) -> Vec<Value> {
    let checks = home.run(&["doctor", "--json", "--data-dir", home.data().to_str().unwrap()]).object();
    checks["checks"].as_array().unwrap().clone()
}

/// Whatever is called a fix mends what it stands beside; whatever is called worth seeing can be seen; the rest is advice, and no command.
fn lines_hold(home: &Home) {
    for verdict in verdicts(home) {
        assert!(verdict["status"] != "ok" || verdict.get("fix").is_none(), "nothing to fix: {verdict}");
        if let Some(see) = verdict.get("see") {
            let code = paste(home, see.as_str().unwrap()).code;
            assert!(matches!(code, Some(0 | 7)), "{verdict}: {code:?}");
        }
        if let Some(fix) = verdict.get("fix") {
            paste(home, fix.as_str().unwrap()).expect(0);
            let is_same =
                |now: &Value| now["check"] == verdict["check"] && now["detail"] == verdict["detail"];
            assert!(!verdicts(home).iter().any(is_same), "not mended: {verdict}");
        }
    }
}

#[test]
fn every_fix_of_the_doctor_mends_when_it_is_pasted() {
    type Break<'a> = (&'a str, &'a dyn Fn(&Home, &str));
    let write = |home: &Home, name: &str, text: &str| fs::write(home.data().join(name), text).unwrap();
    let breaks: [Break<'_>; 12] = [
        ("a stray name", &|home, _| write(home, "tasks/ready/notes.md", "# notes")),
        ("a new task", &|home, _| {
            write(home, "tasks/backlog/TASK-2026-01-01-001.md", "---\ntitle: by hand\n---\n\nbody\n");
        }),
        ("nonsense for a new task", &|home, _| {
            write(home, "tasks/backlog/TASK-2026-01-01-001.md", "nonsense")
        }),
        ("an edit", &|home, id| {
            let path = home.task_file(id);
            let edited = fs::read_to_string(&path).unwrap().replacen("a task", "an edited task", 1);
            fs::write(path, edited).unwrap();
        }),
        ("a refused edit", &|home, id| {
            fs::write(home.task_file(id), "nonsense").unwrap();
            home.run(&["doctor", "--fix"]).expect(0);
        }),
        ("a file that is gone", &|home, id| fs::remove_file(home.task_file(id)).unwrap()),
        ("a row of the saved board", &|home, _| {
            let path = home.data().join("index/tasks");
            let rows = fs::read_to_string(&path).unwrap();
            fs::write(&path, rows.replacen("a task", "a trap", 1)).unwrap();
            let shown = home.run(&["doctor"]).stdout;
            assert!(shown.contains("index/tasks is not as Baton saved it"), "{shown}");
        }),
        ("the index", &|home, _| fs::remove_dir_all(home.data().join("index")).unwrap()),
        ("a torn tail", &|home, _| {
            fs::write(home.segment(), fs::read_to_string(home.segment()).unwrap() + "{\"a").unwrap();
        }),
        ("something in quarantine", &|home, _| write(home, "quarantine/old", "old")),
        ("an unknown setting", &|home, _| write(home, "baton.toml", "[ledgr]\n")),
        ("in the way", &|home, _| put(home, "tasks/done", Kind::Link)),
    ];
    for (what, make) in breaks {
        let home = Home::new();
        let id = home.task(&[]);
        make(&home, &id);
        println!("{what}");
        lines_hold(&home);
    }
}

#[test]
fn a_stray_name_is_advice_and_no_fix() {
    let home = Home::new();
    home.task(&[]);
    fs::write(home.data().join("tasks/ready/notes.md"), "# notes").unwrap();
    let shown = home.run(&["doctor"]).stdout;
    assert!(shown.contains("1 file not taken in: tasks/ready/notes.md"), "{shown}");
    assert!(!shown.contains("fix: "), "{shown}");
    assert!(after(&shown, "advice: ").starts_with("move it elsewhere, or name it after a task"), "{shown}");
    let all = home.json(&["doctor"])["checks"].clone();
    let stray = all.as_array().unwrap().iter().find(|check| check["check"] == "tasks").unwrap();
    assert_eq!(text(&stray["status"]), "warn");
    assert!(stray.get("fix").is_none() && stray["advice"].is_string(), "{stray}");
}

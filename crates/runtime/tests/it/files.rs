//! What people and agents put among the files of tasks: one bad file is that file's trouble alone, and nothing of it is lost.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use baton_core::TaskId;
use baton_core::task::decide::{Log, Move};
use baton_core::task::{Status, Task};

use crate::support::Bench;

fn file(bench: &Bench, id: &TaskId) -> std::path::PathBuf {
    bench.at(&format!("tasks/{}/{id}.md", bench.task(id).status))
}

/// Changes the text of a task's file as a person does.
fn edit(bench: &Bench, id: &TaskId, change: impl FnOnce(String) -> String) -> String {
    let path = file(bench, id);
    let before = fs::read_to_string(&path).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after, "the edit changes something");
    fs::write(&path, &after).unwrap();
    after
}

fn title(bench: &Bench, id: &TaskId) -> String {
    let Task { title, .. } = bench.task(id);
    title
}

#[test]
fn a_value_that_no_event_may_have_is_refused_and_the_others_are_taken_in() {
    let bench = Bench::new();
    let (bad, good) = (bench.ready("bad"), bench.ready("good"));
    let (large, fresh) = (bench.ready("large"), "TASK-2026-02-09-700");
    let number = "  id: 9007199254740993\n";
    let saved = edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    assert!(saved.contains(number), "{saved}");
    edit(&bench, &large, |text| text + &"words ".repeat(190_000) + "\n");
    let new = format!("---\ntitle: new\nmetadata:\n{number}---\n");
    fs::write(bench.at(&format!("tasks/ready/{fresh}.md")), &new).unwrap();
    edit(&bench, &good, |text| text.replace("title: good", "title: better"));
    let found = bench.engine.reconcile().unwrap();
    assert_eq!(title(&bench, &good), "better", "{found:?}");
    for id in [bad.as_str(), fresh] {
        assert_eq!(found.notices.iter().filter(|notice| notice.contains(id)).count(), 1, "{id}: {found:?}");
    }
    assert!(bench.quarantined().iter().any(|path| fs::read_to_string(path).unwrap() == saved), "kept");
    assert!(fs::read_to_string(file(&bench, &bad)).unwrap().contains("title: bad\n"), "written again");
    assert_eq!(fs::read_to_string(bench.at(&format!("tasks/ready/{fresh}.md"))).unwrap(), new, "not touched");
    // The same for one task, and for whoever opens after a crash.
    edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    bench.engine.look_at(&BTreeSet::from([bad.clone()])).unwrap();
    edit(&bench, &bad, |text| text.replace("metadata:\n", &format!("metadata:\n{number}")));
    let again = bench.open_again();
    assert_eq!(again.task(&bad).unwrap().0.title, "bad");
}

#[test]
fn a_directory_with_the_name_of_an_unfinished_file_is_kept_aside() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    bench.engine.claim(&id, &"swe-backend".parse().unwrap(), None, None).unwrap();
    for dir in ["tasks/ready", "tasks/.spare", &format!("runs/{id}")] {
        let name = if dir.starts_with("runs") { ".run.json.1.tmp".into() } else { format!(".{id}.md.1.tmp") };
        fs::create_dir_all(bench.at(dir).join(&name)).unwrap();
        fs::write(bench.at(dir).join(&name).join("mine.txt"), "keep me").unwrap();
    }
    let again = bench.open_again();
    let move_it = Move { task: id.clone(), to: Status::Blocked, reason: "x".into() };
    again.transition(&move_it).unwrap();
    let kept = bench.quarantined();
    assert_eq!(kept.iter().filter(|path| path.join("mine.txt").is_file()).count(), 3, "{kept:?}");
    assert!(bench.at(&format!("tasks/blocked/{id}.md")).is_file());
}

#[test]
fn one_file_is_taken_in_once_also_where_it_moves_the_task() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    edit(&bench, &id, |text| text.replace("title: a task", "title: moved"));
    fs::rename(file(&bench, &id), bench.at(&format!("tasks/blocked/{id}.md"))).unwrap();
    bench.engine.reconcile().unwrap();
    assert_eq!((bench.task(&id).status, title(&bench, &id)), (Status::Blocked, "moved".to_owned()));
    assert_eq!(bench.events("task.edited").len(), 1);
    assert_eq!(bench.events("task.transitioned").len(), 1);
    // A possible move with an impossible value.
    let saved = edit(&bench, &id, |text| text.replace("title: moved", "title: ''"));
    fs::rename(file(&bench, &id), bench.at(&format!("tasks/ready/{id}.md"))).unwrap();
    bench.engine.reconcile().unwrap();
    assert_eq!(bench.events("task.edit_refused").len(), 1);
    let kept = bench.quarantined();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(&kept[0]).unwrap(), saved);
    bench.engine.reconcile().unwrap();
    assert_eq!((bench.events("task.edit_refused").len(), bench.quarantined().len()), (1, 1));
}

fn transition(bench: &Bench, id: &TaskId, to: Status) {
    bench.engine.transition(&Move { task: id.clone(), to, reason: "x".into() }).unwrap();
}

#[test]
fn a_tasks_folder_moves_with_it_whatever_is_in_the_way() {
    let bench = Bench::new();
    for stray in [None, Some("stray.txt")] {
        let id = bench.ready("a task");
        fs::write(bench.at(&format!("tasks/ready/{id}/work/notes.txt")), "half a day").unwrap();
        let way = bench.at(&format!("tasks/blocked/{id}"));
        fs::create_dir_all(way.join("work")).unwrap();
        if let Some(name) = stray {
            fs::write(way.join(name), "mine").unwrap();
        }
        transition(&bench, &id, Status::Blocked);
        assert_eq!(fs::read_to_string(way.join("work/notes.txt")).unwrap(), "half a day", "{stray:?}");
        assert!(!bench.at(&format!("tasks/ready/{id}")).exists());
        let (kept, notices) = (bench.quarantined(), bench.engine.take_notices());
        let has_kept = kept.iter().any(|path| path.join("stray.txt").is_file());
        assert_eq!(has_kept, stray.is_some(), "{kept:?}");
        let is_told =
            notices.iter().any(|notice| notice.contains("quarantine/") && notice.contains(id.as_str()));
        assert_eq!(is_told, stray.is_some(), "{notices:?}");
    }
}

#[test]
fn of_two_folders_the_one_with_something_in_it_is_the_tasks_where_nobody_remembers() {
    let bench = Bench::new();
    let (first, second) = (bench.ready("a task"), bench.ready("another"));
    for id in [&first, &second] {
        let (ready, done) = (format!("tasks/ready/{id}"), format!("tasks/done/{id}"));
        fs::rename(bench.at(&ready), bench.at(&done)).unwrap();
        fs::write(bench.at(&done).join("work/notes.txt"), "elsewhere").unwrap();
        fs::create_dir_all(bench.at(&ready).join("work")).unwrap();
    }
    fs::write(bench.at(&format!("tasks/ready/{second}/work/notes.txt")), "here").unwrap();
    bench.engine.reconcile().unwrap();
    let notes =
        |id: &TaskId| fs::read_to_string(bench.at(&format!("tasks/ready/{id}/work/notes.txt"))).unwrap();
    assert_eq!((notes(&first).as_str(), notes(&second).as_str()), ("elsewhere", "here"));
    let kept = bench.quarantined();
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(fs::read_to_string(kept[0].join("work/notes.txt")).unwrap(), "elsewhere");
}

#[test]
fn links_in_the_place_of_directories_do_not_stop_a_tasks_file() {
    let bench = Bench::new();
    let outside = bench.at("outside");
    fs::create_dir(&outside).unwrap();
    let id = bench.ready("a task");
    let agent = "swe-backend".parse().unwrap();
    symlink(&outside, bench.at(&format!("runs/{id}"))).unwrap();
    for name in ["inputs", "work", "outputs"] {
        let path = bench.at(&format!("tasks/ready/{id}/{name}"));
        fs::remove_dir(&path).unwrap();
        symlink(&outside, &path).unwrap();
    }
    bench.engine.claim(&id, &agent, None, None).unwrap();
    assert!(fs::read_to_string(file(&bench, &id)).unwrap().contains("status: in-progress\n"));
    for dir in [format!("runs/{id}"), format!("tasks/in-progress/{id}/outputs")] {
        assert!(fs::symlink_metadata(bench.at(&dir)).unwrap().is_dir(), "{dir}");
    }
    assert_eq!(bench.quarantined().len(), 4);
    let notices = bench.engine.take_notices();
    assert_eq!(notices.iter().filter(|notice| notice.contains("in the way")).count(), 4, "{notices:?}");
    // The history of runs, which the next claim moves the first run's files into.
    symlink(&outside, bench.at(&format!("runs/{id}/history"))).unwrap();
    transition(&bench, &id, Status::Ready);
    bench.engine.claim(&id, &agent, None, None).unwrap();
    assert!(fs::read_to_string(file(&bench, &id)).unwrap().contains("status: in-progress\n"));
    assert!(fs::symlink_metadata(bench.at(&format!("runs/{id}/history"))).unwrap().is_dir());
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "nothing went through a link");
}

#[test]
fn a_tasks_file_is_written_also_where_its_run_files_cannot_be_and_that_is_told_once() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    fs::remove_dir(bench.at("runs")).unwrap();
    fs::write(bench.at("runs"), "in the way").unwrap();
    bench.engine.claim(&id, &"swe-backend".parse().unwrap(), None, None).unwrap();
    bench.engine.log(&Log { task: id.clone(), text: "one".into() }).unwrap();
    bench.engine.log(&Log { task: id.clone(), text: "two".into() }).unwrap();
    let text = fs::read_to_string(file(&bench, &id)).unwrap();
    assert!(text.contains("status: in-progress\n") && text.contains("Notes: two"), "{text}");
    let notices = bench.engine.take_notices();
    assert_eq!(notices.len(), 1, "{notices:?}");
    let runs = format!("{} is not a directory", bench.at("runs").display());
    assert!(notices[0].contains(&runs) && notices[0].contains("baton doctor --fix"), "{notices:?}");
    // It is tried again.
    fs::remove_file(bench.at("runs")).unwrap();
    fs::create_dir(bench.at("runs")).unwrap();
    bench.engine.log(&Log { task: id.clone(), text: "three".into() }).unwrap();
    assert!(bench.at(&format!("runs/{id}/run.json")).is_file());
}

/// Everything that is in files below a directory.
fn everything(dir: &Path, all: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            everything(&path, all);
        } else {
            all.push_str(&String::from_utf8_lossy(&fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn a_save_in_the_instant_of_a_projection_is_not_lost() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    let path = file(&bench, &id);
    let is_over = AtomicBool::new(false);
    let saves = std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut saves = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let n = saves.len();
                // As an editor does that saves in place.
                let Ok(mut opened) = fs::OpenOptions::new().write(true).truncate(true).open(&path) else {
                    continue;
                };
                if n % 3 > 0 {
                    std::thread::sleep(Duration::from_micros(40 * (n as u64 % 50)));
                }
                opened.write_all(format!("saved as <{n}>\n").as_bytes()).unwrap();
                saves.push(format!("saved as <{n}>"));
                // The next one goes into another file, so that nobody but Baton can lose this one.
                let mine = opened.metadata().unwrap().ino();
                drop(opened);
                while fs::metadata(&path).is_ok_and(|now| now.ino() == mine)
                    && !is_over.load(Ordering::Relaxed)
                {
                    std::thread::yield_now();
                }
            }
            saves
        });
        let start = Instant::now();
        while start.elapsed() < Duration::from_millis(1500) {
            bench.engine.log(&Log { task: id.clone(), text: "on".into() }).unwrap();
        }
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    assert!(saves.len() > 20, "{}", saves.len());
    let lost = || {
        let mut all = String::new();
        ["tasks", "quarantine", "artifacts"].iter().for_each(|dir| everything(&bench.at(dir), &mut all));
        saves.iter().filter(|save| !all.contains(save.as_str())).cloned().collect::<Vec<String>>()
    };
    assert_eq!(lost(), [""; 0], "of {}", saves.len());
    // Later, when what lay aside has been looked at again.
    std::thread::sleep(Duration::from_millis(2100));
    bench.engine.reconcile().unwrap();
    assert_eq!(lost(), [""; 0], "of {}", saves.len());
    let left: Vec<String> = fs::read_dir(bench.at("tasks/.spare"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with('.'))
        .collect();
    assert_eq!(left, [""; 0], "everything has been looked at");
    println!("{} saves", saves.len());
}

#[test]
fn files_that_are_nobodys_are_told_of_once() {
    let bench = Bench::new();
    let write = |path: &str, text: &str| fs::write(bench.at(path), text).unwrap();
    fs::create_dir(bench.at("tasks/doing")).unwrap();
    write("tasks/doing/TASK-2026-02-09-700.md", "---\ntitle: x\n---\n");
    write("tasks/TASK-2026-02-09-701.md", "---\ntitle: x\n---\n");
    write("tasks/ready/notes.md", "mine");
    let invalid = "tasks/ready/TASK-2026-02-09-702.md";
    write(invalid, "---\ntitle: [x]\n---\n");
    let told = bench.engine.reconcile().unwrap().notices;
    assert_eq!(told.len(), 4, "{told:?}");
    for path in ["tasks/doing", "tasks/TASK-2026-02-09-701.md", "tasks/ready/notes.md", invalid] {
        let place = bench.at(path).display().to_string();
        assert!(told.iter().any(|notice| notice.starts_with(&place)), "{place}: {told:?}");
    }
    assert_eq!(bench.engine.reconcile().unwrap().notices, [""; 0], "once");
    write(invalid, "---\ntitle: [y]\n---\n");
    assert_eq!(bench.engine.reconcile().unwrap().notices.len(), 1, "another content is news");
}

#[test]
fn a_long_work_log_is_shown_in_part_and_can_be_edited_all_the_same() {
    let bench = Bench::new();
    let id = bench.ready("a task");
    let whole = |id: &TaskId| bench.engine.task(id).unwrap().1.log;
    for n in 0..12 {
        let text = format!("<{n}> {}", "long ".repeat(1600));
        bench.engine.log(&Log { task: id.clone(), text }).unwrap();
    }
    let text = fs::read_to_string(file(&bench, &id)).unwrap();
    let before = whole(&id);
    assert!(before.len() > 90_000 && text.len() < 70_000, "{} {}", before.len(), text.len());
    assert!(text.contains("## Work Log\n\n- (4 older entries are in the ledger)\n- "), "{}", &text[..900]);
    assert!(text.contains("<11>") && !text.contains("<3>"));
    // The text alone: the log stays.
    edit(&bench, &id, |text| text.replace("\n## Work Log", "\nMore words.\n\n## Work Log"));
    bench.engine.reconcile().unwrap();
    assert_eq!(bench.events("task.edited").len(), 1);
    assert!(bench.engine.task(&id).unwrap().1.text.contains("More words."));
    assert!(whole(&id) == before, "the whole log stays");
    // A shown entry: the older ones stay.
    edit(&bench, &id, |text| text.replace("<11> long", "<11> short"));
    let found = bench.engine.reconcile().unwrap();
    let (after, expected) = (whole(&id), before.replace("<11> long", "<11> short"));
    let at = after.bytes().zip(expected.bytes()).position(|(a, b)| a != b);
    assert!(after == expected, "{found:?}: {} and {} from {at:?}", after.len(), expected.len());
    // Whoever takes out the line about them takes them out.
    edit(&bench, &id, |text| text.replace("- (4 older entries are in the ledger)\n", ""));
    bench.engine.reconcile().unwrap();
    assert!(whole(&id).len() < 66_000 && !whole(&id).contains("<3>"));
    assert_eq!((bench.events("task.edit_refused").len(), bench.quarantined().len()), (0, 0));
    assert_eq!(bench.engine.reconcile().unwrap().notices, [""; 0]);
}

#[test]
fn while_many_files_are_taken_in_others_get_their_turn() {
    const CHANGED: usize = 200;
    let bench = Bench::new();
    let ids: Vec<TaskId> = (0..CHANGED).map(|_| bench.ready("plain")).collect();
    for id in &ids {
        edit(&bench, id, |text| text.replace("title: plain", "title: changed"));
    }
    let is_over = AtomicBool::new(false);
    let turns = std::thread::scope(|scope| {
        let other = scope.spawn(|| {
            let mut seen = BTreeSet::new();
            while !is_over.load(Ordering::Relaxed) {
                let is_changed = |task: &&Task| task.title == "changed";
                seen.insert(bench.engine.look(|board| board.tasks().filter(is_changed).count()).unwrap());
            }
            seen
        });
        bench.engine.reconcile().unwrap();
        is_over.store(true, Ordering::Relaxed);
        other.join().unwrap()
    });
    let between = turns.iter().filter(|changed| (1..CHANGED).contains(*changed)).count();
    assert!(between >= 5, "{turns:?}");
    assert!(ids.iter().all(|id| title(&bench, id) == "changed"));
}

#[test]
fn looking_at_everything_ends_when_it_is_not_wanted_any_more() {
    let bench = Bench::new();
    let ids: Vec<TaskId> = (0..100).map(|_| bench.ready("plain")).collect();
    for id in &ids {
        edit(&bench, id, |text| text.replace("title: plain", "title: changed"));
    }
    let is_changed = |id: &&TaskId| title(&bench, id) == "changed";
    let found = bench.engine.reconcile_while(&|| !is_changed(&&ids[0])).unwrap();
    let changed = ids.iter().filter(is_changed).count();
    assert!((1..100).contains(&changed), "{changed}");
    assert_eq!(found.looked_at, changed);
    bench.engine.reconcile().unwrap();
    assert_eq!(ids.iter().filter(is_changed).count(), 100, "the rest is not forgotten");
}

#[test]
fn what_was_read_before_a_crash_and_not_recorded_is_taken_in_however_much_later() {
    let bench = Bench::new();
    let id = bench.ready("plain");
    let edited = fs::read_to_string(file(&bench, &id)).unwrap().replace("title: plain", "title: saved");
    let digest = baton_ledger::hash::sha256(edited.as_bytes());
    // As it lies there when Baton dies between reading and recording it.
    let path = bench.at(&format!("tasks/.spare/.{id}.md.{digest}.01a1e059-8f0f-7b85-8742-d49e902fba34.tmp"));
    fs::write(&path, edited).unwrap();
    let again = bench.open_again();
    assert_eq!(again.task(&id).unwrap().0.title, "plain", "somebody may still be writing it");
    for entry in fs::read_dir(bench.at("tasks/.spare")).unwrap() {
        let file = fs::OpenOptions::new().write(true).open(entry.unwrap().path()).unwrap();
        file.set_modified(std::time::SystemTime::now() - Duration::from_secs(10)).unwrap();
    }
    again.reconcile().unwrap();
    assert_eq!(again.task(&id).unwrap().0.title, "saved");
}

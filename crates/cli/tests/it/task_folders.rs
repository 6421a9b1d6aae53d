//! Files and folders of tasks that a person moves, removes, copies or replaces: followed where that makes sense, put back where it does not.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use serde_json::json;

use crate::support::Home;
use crate::task_files::{edit, quarantined, refuses};
use crate::task_support::{report, signal, text};

/// What a person puts in a file's place.
type Make<'a> = &'a dyn Fn(&PathBuf);

#[test]
fn a_file_moved_to_another_folder_moves_the_task_where_the_table_allows_it() {
    let home = Home::new();
    let id = home.task(&[]);
    fs::write(home.folder("ready", &id).join("inputs/data.txt"), "keep me").unwrap();
    let to = |status: &str| home.data().join("tasks").join(status).join(format!("{id}.md"));
    fs::rename(to("ready"), to("blocked")).unwrap();
    let task = home.show(&id);
    assert_eq!((&task["status"], &task["phase"]), (&json!("blocked"), &json!("BLOCKED")));
    assert_eq!(home.moves(&id), ["ready → blocked: moved by hand"]);
    assert_eq!(home.last(&id, "task.transitioned")["actor"]["role"], "operator");
    assert_eq!(fs::read_to_string(home.folder("blocked", &id).join("inputs/data.txt")).unwrap(), "keep me");
    assert!(!home.folder("ready", &id).exists());
    assert!(fs::read_to_string(home.task_file(&id)).unwrap().contains("status: blocked\n"));
    // By the word in the file, too.
    edit(&home, &id, |text| text.replace("status: blocked", "status: ready"));
    let listed = home.run(&["task", "ls", "--status", "ready", "--json"]).value(0);
    assert_eq!(listed["tasks"][0]["id"], id.as_str());
    assert_eq!(home.moves(&id)[1], "blocked → ready: moved by hand");
    home.task_file(&id);
    // With an edit of the text in the same breath.
    edit(&home, &id, |text| text.replace("title: a task", "title: never mind"));
    fs::rename(to("ready"), to("cancelled")).unwrap();
    let task = home.show(&id);
    assert_eq!((&task["status"], &task["title"]), (&json!("cancelled"), &json!("never mind")));
    home.task_file(&id);
    home.verifies();
    home.replays();
}

#[test]
fn a_file_moved_by_hand_is_seen_by_whatever_comes_next() {
    let to =
        |home: &Home, id: &str, status: &str| home.data().join("tasks").join(status).join(format!("{id}.md"));
    // A claim of a task whose file somebody put on hold.
    let home = Home::new();
    let id = home.task(&[]);
    fs::rename(to(&home, &id, "ready"), to(&home, &id, "blocked")).unwrap();
    home.run(&["task", "claim", &id, "--agent", "swe-backend"]).refused_with(4, "T009", "blocked");
    assert_eq!(home.status(&id), "blocked");
    home.task_file(&id);
    // A report of a task whose file somebody cancelled.
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    fs::rename(to(&home, &id, "in-progress"), to(&home, &id, "cancelled")).unwrap();
    home.rejected(report(&id, "swe-backend", "done"), "unassigned_task");
    assert_eq!(home.status(&id), "cancelled");
    // A beat of the same.
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    fs::rename(to(&home, &id, "in-progress"), to(&home, &id, "blocked")).unwrap();
    home.run(&["task", "beat", &id, "--agent", "swe-backend", "--fence", "1"]).expect(5);
    assert_eq!(home.status(&id), "blocked");
    // An exit signal of the same.
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    fs::rename(to(&home, &id, "in-progress"), to(&home, &id, "cancelled")).unwrap();
    home.not_submitted(&id, &signal("IMPLEMENTATION", "completed"), "no_lease");
    assert_eq!(home.status(&id), "cancelled");
}

#[test]
fn an_impossible_move_changes_nothing_and_the_file_goes_back() {
    for target in ["done", "review", "backlog", "in-progress"] {
        let home = Home::new();
        let id = home.task(&[]);
        let to = |status: &str| home.data().join("tasks").join(status).join(format!("{id}.md"));
        let before = fs::read(to("ready")).unwrap();
        fs::rename(to("ready"), to(target)).unwrap();
        let ended = home.run(&["task", "show", &id, "--json"]);
        assert_eq!(ended.value(0)["status"], "ready", "{target}");
        assert!(ended.stderr.contains(&id) && ended.stderr.contains("quarantine/"), "{}", ended.stderr);
        refuses(&home, &id, &before, if target == "in-progress" { "claim" } else { target });
        assert!(home.moves(&id).is_empty());
    }
}

#[test]
fn a_deleted_file_is_restored_and_reported() {
    let home = Home::new();
    let id = home.task(&[]);
    let path = home.task_file(&id);
    let before = fs::read_to_string(&path).unwrap();
    fs::remove_file(&path).unwrap();
    let ended = home.run(&["task", "ls", "--json"]);
    assert_eq!(ended.value(0)["tasks"][0]["id"], id.as_str());
    assert!(ended.stderr.contains(&format!("{id}: its file was gone")), "{}", ended.stderr);
    assert!(text(&home.last(&id, "task.edit_refused")["payload"]["reason"]).contains("deleted"));
    let after = fs::read_to_string(&path).unwrap();
    let plain = |text: &str| -> String {
        text.lines().filter(|l| !l.starts_with("rev") && !l.starts_with("updatedAt")).collect()
    };
    assert_eq!(plain(&before), plain(&after));
    // Its folder, and its whole status folder.
    fs::remove_dir_all(home.folder("ready", &id)).unwrap();
    home.run(&["task", "move", &id, "blocked", "--reason", "x"]).expect(0);
    assert!(home.folder("blocked", &id).join("inputs").is_dir());
    fs::remove_dir_all(home.data().join("tasks")).unwrap();
    assert_eq!(home.show(&id)["status"], "blocked");
    home.task_file(&id);
    home.verifies();
}

#[test]
fn a_new_file_with_an_unused_id_becomes_a_task() {
    let home = Home::new();
    home.task(&[]);
    let write = |id: &str, status: &str, text: &str| {
        fs::write(home.data().join("tasks").join(status).join(format!("{id}.md")), text).unwrap();
    };
    let id = "TASK-2026-02-09-500";
    write(
        id,
        "ready",
        &format!(
            "---\nid: {id}\ntitle: Written by hand\npriority: high # now\nmood: good\n---\nDo it well.\n"
        ),
    );
    let task = home.show(id);
    assert_eq!((&task["title"], &task["priority"]), (&json!("Written by hand"), &json!("high")));
    assert_eq!((&task["status"], text(&task["body"]).trim()), (&json!("ready"), "Do it well."));
    assert_eq!(home.types(id), ["trace.opened", "task.created"]);
    let file = fs::read_to_string(home.task_file(id)).unwrap();
    assert!(file.contains("mood: good\n") && file.contains("# now") && file.contains("rev: "), "{file}");
    assert!(home.folder("ready", id).join("outputs").is_dir());
    home.claim(id, "swe-backend");
    assert!(fs::read_to_string(home.task_file(id)).unwrap().contains("mood: good\n"));
    // Seen by ls too, and by the shortest file that says what is to be done.
    let other = "TASK-2026-02-09-501";
    write(other, "backlog", "---\ntitle: Short\n---\n");
    let listed = home.run(&["task", "ls", "--json"]).value(0);
    assert!(listed["tasks"].as_array().unwrap().iter().any(|task| task["id"] == other), "{listed}");
    // What makes no task stays where it is, and is told.
    for (n, status, text) in [
        ("502", "ready", "no frontmatter\n"),
        ("503", "done", "---\ntitle: Already done\n---\n"),
        ("504", "ready", "---\nid: TASK-2026-02-09-999\ntitle: Somebody else\n---\n"),
        ("505", "ready", "---\ntitle: [x]\n---\n"),
        ("506", "ready", "---\ntitle: x\ndependsOn: [TASK-2020-01-01-001]\n---\n"),
    ] {
        let id = format!("TASK-2026-02-09-{n}");
        write(&id, status, text);
        let path = home.data().join("tasks").join(status).join(format!("{id}.md"));
        let ended = home.appends_nothing(|home| home.run(&["task", "ls"]));
        assert!(ended.expect(0).stderr.contains(&id), "{n}: {}", ended.stderr);
        home.run(&["task", "show", &id]).expect(3);
        assert_eq!(fs::read_to_string(&path).unwrap(), text, "{n}: not touched");
        fs::remove_file(&path).unwrap();
    }
    // Names that are no ids make no tasks, and no command that only looks makes much of them.
    fs::write(home.data().join("tasks/ready/notes.md"), "---\ntitle: x\n---\n").unwrap();
    let told = home.appends_nothing(|home| home.run(&["task", "ls"]).expect(0).stderr.clone());
    assert_eq!(told, "");
    home.verifies();
    home.replays();
}

#[test]
fn a_file_replaced_by_something_else_is_written_anew_and_that_is_kept() {
    let home = Home::new();
    let outside = home.path("outside.md");
    fs::write(&outside, "---\ntitle: not yours\n---\n").unwrap();
    let makers: [(&str, Make<'_>); 3] = [
        ("directory", &|path| {
            fs::create_dir(path).unwrap();
            fs::write(path.join("inner.txt"), "keep me").unwrap();
        }),
        ("link", &|path| symlink(&outside, path).unwrap()),
        ("pipe", &|path| {
            let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
            assert!(status.success());
        }),
    ];
    for (name, make) in makers {
        let id = home.task(&[]);
        let path = home.task_file(&id);
        fs::remove_file(&path).unwrap();
        make(&path);
        let ended = home.run(&["task", "show", &id, "--json"]);
        assert_eq!(ended.value(0)["title"], "a task", "{name}");
        assert!(ended.stderr.contains(&id), "{name}: {}", ended.stderr);
        let kind = fs::symlink_metadata(&path).unwrap();
        assert!(kind.is_file(), "{name}: a file again");
        home.run(&["task", "log", &id, "still there"]).expect(0);
        assert!(fs::read_to_string(&path).unwrap().contains("still there"), "{name}");
    }
    assert!(quarantined(&home).iter().any(|path| path.join("inner.txt").is_file()), "the directory is kept");
    assert_eq!(
        fs::read_to_string(&outside).unwrap(),
        "---\ntitle: not yours\n---\n",
        "nothing went through the link"
    );
    home.verifies();
}

#[test]
fn two_copies_in_two_folders_become_one_task_again() {
    let home = Home::new();
    let id = home.task(&[]);
    let to = |status: &str| home.data().join("tasks").join(status).join(format!("{id}.md"));
    // An equal copy is a move by hand: where it lies says so.
    fs::copy(to("ready"), to("blocked")).unwrap();
    home.run(&["task", "ls"]).expect(0);
    home.task_file(&id);
    assert_eq!(home.moves(&id), ["ready → blocked: moved by hand"]);
    // A copy in an impossible place is kept aside.
    let id = home.task(&[]);
    let to = |status: &str| home.data().join("tasks").join(status).join(format!("{id}.md"));
    let copy = fs::read_to_string(to("ready")).unwrap().replace("title: a task", "title: a copy");
    fs::write(to("done"), &copy).unwrap();
    home.run(&["task", "log", &id, "x"]).expect(0);
    home.run(&["task", "ls"]).expect(0);
    assert_eq!(home.status(&id), "ready");
    home.task_file(&id);
    assert!(
        quarantined(&home).iter().any(|path| fs::read_to_string(path).unwrap_or_default() == copy),
        "kept"
    );
    home.verifies();
    home.replays();
}

#[test]
fn the_folders_of_tasks_are_there_from_the_beginning() {
    let home = Home::new();
    for status in ["backlog", "ready", "in-progress", "blocked", "review", "done", "cancelled", "deadletter"]
    {
        assert!(home.data().join("tasks").join(status).is_dir(), "{status}");
    }
    // So that a file can be put there before anything was done.
    let id = "TASK-2026-02-09-500";
    fs::write(home.data().join(format!("tasks/ready/{id}.md")), "---\ntitle: First\n---\n").unwrap();
    assert_eq!(home.show(id)["title"], "First");
}

#[test]
fn a_folder_moved_without_its_file_comes_back_with_everything_in_it() {
    let home = Home::new();
    let id = home.task(&[]);
    fs::write(home.folder("ready", &id).join("work/notes.txt"), "half a day").unwrap();
    fs::rename(home.folder("ready", &id), home.folder("cancelled", &id)).unwrap();
    home.claim(&id, "swe-backend");
    let notes = home.folder("in-progress", &id).join("work/notes.txt");
    assert_eq!(fs::read_to_string(notes).unwrap(), "half a day");
    assert!(!home.folder("cancelled", &id).exists());
    assert!(home.folder("in-progress", &id).join("outputs").is_dir());
}

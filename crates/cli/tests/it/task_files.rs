//! Files of tasks that a person edits while nothing runs: taken in field by field, or refused without losing anything.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use baton_ledger::hash::sha256;
use serde_json::{Value, json};

use crate::support::{Ended, Home};
use crate::task_support::{report, signal, text, update};

/// What a person makes of a file's text.
type Change = Box<dyn Fn(String) -> String>;

/// What a person puts in a file's place.
type Make<'a> = &'a dyn Fn(&PathBuf);

/// Changes the text of a task's file.
#[track_caller]
fn edit(home: &Home, id: &str, change: impl FnOnce(String) -> String) -> String {
    let path = home.task_file(id);
    let before = fs::read_to_string(&path).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after, "the edit changes something");
    fs::write(&path, &after).unwrap();
    after
}

/// What is kept aside.
fn quarantined(home: &Home) -> Vec<PathBuf> {
    let all = fs::read_dir(home.data().join("quarantine")).unwrap();
    all.map(|entry| entry.unwrap().path()).collect()
}

/// Looks at a task whose file makes no sense: nothing changes, nothing is lost, and it is told.
#[track_caller]
fn refuses(home: &Home, id: &str, kept: &[u8], says: &str) -> Ended {
    home.run(&["task", "show", "--json", id]).expect(0);
    let count = home.types(id).iter().filter(|t| *t == "task.edit_refused").count();
    assert_eq!(count, 1, "recorded once");
    let kept_now = quarantined(home);
    let same = kept_now.iter().filter(|path| path.is_file() && fs::read(path).unwrap() == kept).count();
    assert_eq!(same, 1, "the person's version is kept, once: {kept_now:?}");
    let refused = home.last(id, "task.edit_refused");
    assert!(text(&refused["payload"]["reason"]).contains(says), "expected {says:?}: {refused}");
    assert_eq!(refused["actor"]["role"], "system");
    let name = text(&refused["payload"]["quarantine"]);
    assert_eq!(fs::read(home.data().join("quarantine").join(name)).unwrap(), kept);
    let again = home.appends_nothing(|home| home.run(&["task", "show", id, "--json"]));
    assert_eq!(again.stderr, "", "told once");
    home.task_file(id);
    again
}

#[test]
fn title_priority_and_body_are_taken_in_as_the_operators_edit() {
    let home = Home::new();
    let id = home.task(&[]);
    let edited = edit(&home, &id, |text| {
        text.replace("title: a task", "title: A better title").replace("priority: normal", "priority: high")
            + "\nWhat it is about.\n"
    });
    let task = home.show(&id);
    assert_eq!((&task["title"], &task["priority"]), (&json!("A better title"), &json!("high")));
    assert_eq!(text(&task["body"]).trim(), "What it is about.");
    let record = home.last(&id, "task.edited");
    assert_eq!(record["actor"]["role"], "operator");
    let mut fields: Vec<&String> = record["payload"]["fields"].as_object().unwrap().keys().collect();
    fields.sort();
    assert_eq!(fields, ["body", "priority", "title"], "field by field");
    let hash = sha256(edited.as_bytes()).to_string();
    assert_eq!(record["artifacts"][0]["sha256"], hash.as_str(), "the edited bytes are an artifact");
    let stored = home.data().join("artifacts/sha256").join(&hash[..2]).join(&hash);
    assert_eq!(fs::read_to_string(stored).unwrap(), edited);
    home.appends_nothing(|home| home.show(&id));
    home.verifies();
    home.replays();
}

#[test]
fn every_command_that_touches_a_task_takes_edits_in() {
    let home = Home::with_signals();
    let id = home.task(&["--agent", "swe-backend"]);
    let mut count = 0;
    let mut checked = |name: &str, run: &dyn Fn()| {
        count += 1;
        let title = format!("title {count}");
        let old = text(&home.show(&id)["title"]);
        edit(&home, &id, |text| text.replace(&format!("title: {old}"), &format!("title: {title}")));
        run();
        let file = fs::read_to_string(home.task_file(&id)).unwrap();
        assert!(file.contains(&format!("title: {title}\n")), "{name}: {file}");
        let taken = |record: &Value| record["payload"]["fields"]["title"] == title.as_str();
        assert_eq!(home.records(&id).iter().filter(|record| taken(record)).count(), 1, "{name}: once");
        assert!(quarantined(&home).is_empty(), "{name}");
    };
    let run = |args: &[&str]| {
        home.run(args).expect(0);
    };
    checked("show", &|| run(&["task", "show", &id]));
    checked("ls", &|| run(&["task", "ls"]));
    checked("log", &|| run(&["task", "log", &id, "x"]));
    checked("edit", &|| run(&["task", "edit", &id, "--priority", "low"]));
    checked("edit --no-editor", &|| run(&["task", "edit", &id, "--no-editor"]));
    checked("move", &|| run(&["task", "move", &id, "blocked", "--reason", "x"]));
    checked("move back", &|| run(&["task", "move", &id, "ready", "--reason", "x"]));
    checked("claim", &|| run(&["task", "claim", &id, "--agent", "swe-backend"]));
    checked("send", &|| drop(home.accepted(update(&id, "swe-backend", &json!({"notes": "x"})))));
    checked("release", &|| run(&["task", "release", &id, "--agent", "swe-backend", "--fence", "1"]));
    checked("claim again", &|| run(&["task", "claim", &id, "--agent", "swe-backend"]));
    checked("submit", &|| drop(home.submitted(&id, &signal("IMPLEMENTATION", "completed"))));
    checked("ci report", &|| run(&["ci", "report", &id, "--passed"]));
    checked("approve", &|| run(&["task", "approve", &id]));
    checked("reject", &|| run(&["task", "reject", &id, "--reason", "x"]));
    checked("after another task's change", &|| {
        home.task(&[]);
        run(&["task", "ls"]);
    });
    home.verifies();
    home.replays();
}

#[test]
fn unknown_keys_order_and_comments_survive_what_baton_writes() {
    let home = Home::new();
    let id = home.task(&[]);
    edit(&home, &id, |text| {
        text.replace("---\nschemaVersion", "---\n# mine, do not touch\nschemaVersion").replace(
            "priority: normal",
            "estimate: 3 # days\npriority: normal # for now\nlinks:\n  - https://example.com # one",
        )
    });
    home.claim(&id, "swe-backend");
    home.accepted(update(&id, "swe-backend", &json!({"progress": "half"})));
    home.run(&["task", "edit", &id, "--priority", "high"]).expect(0);
    home.accepted(report(&id, "swe-backend", "done"));
    home.run(&["task", "approve", &id]).expect(0);
    let file = fs::read_to_string(home.task_file(&id)).unwrap();
    for kept in [
        "---\n# mine, do not touch\nschemaVersion: 1\n",
        "estimate: 3 # days\n",
        "links:\n  - https://example.com # one\n",
        "# for now\n",
        "priority: high",
        "status: done\n",
        "Progress: half",
    ] {
        assert!(file.contains(kept), "expected {kept:?}: {file}");
    }
    let place = |key: &str| file.find(key).unwrap();
    assert!(place("estimate") < place("priority") && place("priority") < place("links"), "in their place");
    assert!(place("links") < place("routing"));
    home.verifies();
}

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
fn what_makes_no_sense_changes_nothing_loses_nothing_and_is_told() {
    let bomb = "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b]\n\
                d: &d [*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d]\nf: [*e,*e,*e,*e,*e,*e,*e,*e]\n";
    let deep = format!("deep: {}1{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let cases: Vec<(&str, Change, &str)> = vec![
        ("no frontmatter", Box::new(|_| "just words\n".into()), ""),
        ("an open list", Box::new(|text| text.replace("title: a task", "title: [a task")), ""),
        ("no end of the frontmatter", Box::new(|text| text.replacen("\n---\n", "\nand so on\n", 1)), ""),
        ("a key twice", Box::new(|text| text.replace("title: a task", "title: a\ntitle: b")), "title"),
        ("an unknown status", Box::new(|text| text.replace("status: ready", "status: somewhere")), "status"),
        ("another id", Box::new(|text| text.replace("id: TASK-", "id: TASK-1")), "id"),
        ("no id", Box::new(|text| text.replacen("id: TASK-", "was: TASK-", 1)), "id"),
        (
            "an unknown priority",
            Box::new(|text| text.replace("priority: normal", "priority: urgent")),
            "priority",
        ),
        ("a title that is no text", Box::new(|text| text.replace("title: a task", "title: [1, 2]")), "title"),
        ("no title", Box::new(|text| text.replace("title: a task", "title: ''")), "title"),
        (
            "a routing that is none",
            Box::new(|text| text.replace("routing: {}", "routing: {agent: A B}")),
            "agent",
        ),
        (
            "dependencies on nothing",
            Box::new(|text| text.replace("dependsOn: []", "dependsOn: [x]")),
            "dependsOn",
        ),
        ("a bomb", Box::new(move |text| text.replacen("---\n", &format!("---\n{bomb}"), 1)), ""),
        ("a pit", Box::new(move |text| text.replacen("---\n", &format!("---\n{deep}"), 1)), ""),
        ("a tag", Box::new(|text| text.replace("title: a task", "title: !!python/object:os.system x")), ""),
        ("a NUL", Box::new(|text| text + "a\0b\n"), ""),
        // What Baton alone writes.
        ("attempts", Box::new(|text| text.replace("attempts: 0", "attempts: 7")), "attempts"),
        ("a phase", Box::new(|text| text.replace("phase: IMPLEMENTATION", "phase: COMPLETED")), "phase"),
        ("a later revision", Box::new(|text| text.replace("rev: 2", "rev: 99")), "rev"),
        ("no revision", Box::new(|text| text.replace("rev: 2\n", "")), "rev"),
        (
            "a lease",
            Box::new(|text| text.replace("attempts: 0", "lease: {agent: me, fence: 9}\nattempts: 0")),
            "lease",
        ),
        ("who made it", Box::new(|text| text.replace("createdBy: operator", "createdBy: me")), "createdBy"),
        ("its trace", Box::new(|text| text.replace("traceId: trc_", "traceId: trc-")), "traceId"),
        (
            "a review that may be required",
            Box::new(|text| text.replace("  reviewRequired: true", "  reviewRequired: perhaps")),
            "reviewRequired",
        ),
        (
            "how deep it is handed over",
            Box::new(|text| {
                text.replace("  reviewRequired: true", "  reviewRequired: true\n  delegationDepth: 0")
            }),
            "delegationDepth",
        ),
    ];
    let home = Home::new();
    for (name, change, says) in cases {
        let id = home.task(&[]);
        let before = home.show(&id);
        let edited = edit(&home, &id, change);
        let ended = home.run(&["task", "show", &id, "--json"]);
        let after = ended.value(0);
        for key in
            ["title", "status", "phase", "priority", "attempts", "body", "routing", "dependsOn", "traceId"]
        {
            assert_eq!(after[key], before[key], "{name}: {key}");
        }
        assert!(after.get("lease").is_none(), "{name}");
        assert!(
            ended.stderr.contains(&id) && ended.stderr.contains("quarantine/"),
            "{name}: {}",
            ended.stderr
        );
        refuses(&home, &id, edited.as_bytes(), says);
        let file = fs::read_to_string(home.task_file(&id)).unwrap();
        assert!(file.contains("title: a task\n"), "{name}: the file is as it should be again: {file}");
    }
    home.verifies();
    home.replays();
}

#[test]
fn a_file_that_is_no_text_at_all_is_kept_and_written_anew() {
    let home = Home::new();
    for bytes in [b"\xff\xfe\x00garbage".to_vec(), vec![b'x'; 3 << 20]] {
        let id = home.task(&[]);
        let path = home.task_file(&id);
        fs::write(&path, &bytes).unwrap();
        let ended = home.run(&["task", "show", &id, "--json"]);
        assert_eq!(ended.value(0)["title"], "a task");
        assert!(ended.stderr.contains(&id), "{}", ended.stderr);
        assert!(quarantined(&home).iter().any(|path| fs::read(path).unwrap() == bytes), "kept");
        assert!(fs::read_to_string(&path).unwrap().contains("title: a task\n"));
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
fn where_the_ledger_changed_the_same_since_it_wins_and_the_persons_version_is_kept() {
    let home = Home::new();
    let id = home.task(&[]);
    // A person opened the file, the task went on, and now the old file is saved with changes.
    let opened = fs::read_to_string(home.task_file(&id)).unwrap();
    home.run(&["task", "edit", &id, "--title", "Baton's title", "--priority", "low"]).expect(0);
    let saved = opened.replace("title: a task", "title: My title").replace("---\n\n", "---\n");
    let saved = format!("{saved}\nMy text.\n");
    fs::write(home.task_file(&id), &saved).unwrap();
    let ended = home.run(&["task", "show", &id, "--json"]);
    let task = ended.value(0);
    assert_eq!(task["title"], "Baton's title", "the ledger wins");
    assert_eq!(task["priority"], "low", "what the person did not touch stays");
    assert_eq!(text(&task["body"]).trim(), "My text.", "what only the person changed is taken in");
    assert!(ended.stderr.contains("title") && ended.stderr.contains("quarantine/"), "{}", ended.stderr);
    let refused = home.last(&id, "task.edit_refused");
    assert!(text(&refused["payload"]["reason"]).contains("title"), "{refused}");
    let kept = home.data().join("quarantine").join(text(&refused["payload"]["quarantine"]));
    assert_eq!(fs::read_to_string(kept).unwrap(), saved);
    home.appends_nothing(|home| home.show(&id));
    home.verifies();
    home.replays();
}

#[test]
fn an_old_file_that_nobody_changed_is_merely_behind() {
    let home = Home::new();
    let id = home.task(&[]);
    let old = fs::read(home.task_file(&id)).unwrap();
    home.run(&["task", "edit", &id, "--title", "newer"]).expect(0);
    fs::write(home.task_file(&id), &old).unwrap();
    let ended = home.appends_nothing(|home| home.run(&["task", "show", &id, "--json"]));
    assert_eq!(ended.value(0)["title"], "newer");
    assert!(fs::read_to_string(home.task_file(&id)).unwrap().contains("title: newer\n"));
    assert!(quarantined(&home).is_empty());
}

#[test]
fn a_file_that_cannot_be_read_is_told_and_nothing_is_lost() {
    let home = Home::new();
    let id = home.task(&[]);
    let path = home.task_file(&id);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if fs::read(&path).is_ok() {
        // Root reads everything: what is left to show is that the rights alone are no edit.
        println!("not shown as root: a file that cannot be read");
        home.appends_nothing(|home| home.show(&id));
        return;
    }
    let ended = home.run(&["task", "log", &id, "x"]);
    assert!(ended.code == Some(0) || ended.stderr.contains("T014"), "{ended:?}");
    assert_eq!(home.show(&id)["title"], "a task");
}

#[test]
fn doctor_and_the_event_stream_tell_of_edits_that_were_not_taken_in() {
    let home = Home::new();
    let id = home.task(&[]);
    edit(&home, &id, |text| text.replace("status: ready", "status: somewhere"));
    home.run(&["task", "ls"]).expect(0);
    let ended = home.run(&["events", "--type", "task.edit_refused", "--json"]);
    assert_eq!(ended.expect(0).stdout.lines().count(), 1);
    let doctor: Value = serde_json::from_str(&home.run(&["doctor", "--json"]).stdout).unwrap();
    let checks = doctor["checks"].as_array().unwrap();
    let check = checks.iter().find(|check| check["check"] == "quarantine").unwrap();
    assert!(text(&check["detail"]).starts_with("1 file"), "kept once: {check}");
}

#[test]
fn an_editor_edits_the_file_and_what_it_saved_is_taken_in() {
    let home = Home::new().with_env("EDITOR", "sed -i 's/title: a task/title: edited/'");
    let id = home.task(&[]);
    home.run(&["task", "edit", &id]).expect(0);
    assert_eq!(home.show(&id)["title"], "edited");
    let failing = home.with_env("VISUAL", "false");
    let ended = failing.appends_nothing(|home| home.run(&["task", "edit", &id]));
    ended.refused_with(2, "U009", "editor");
    let none = Home::new();
    let id = none.task(&[]);
    none.run(&["task", "edit", &id]).refused_with(2, "U009", "no editor");
}

#[test]
fn line_ends_and_a_mark_at_the_beginning_are_the_persons_own() {
    let home = Home::new();
    let id = home.task(&[]);
    edit(&home, &id, |text| {
        format!("\u{feff}{}", text.replace("title: a task", "title: edited").replace('\n', "\r\n"))
    });
    assert_eq!(home.show(&id)["title"], "edited");
    assert!(quarantined(&home).is_empty());
    home.claim(&id, "swe-backend");
    let file = fs::read_to_string(home.task_file(&id)).unwrap();
    assert!(file.contains("title: edited\r\n") && file.contains("status: in-progress\r\n"), "{file:?}");
    home.appends_nothing(|home| home.show(&id));
    home.replays();
}

#[test]
fn there_is_one_work_log_whoever_writes_it() {
    let home = Home::new();
    let id = home.task(&[]);
    home.run(&["task", "log", &id, "first"]).expect(0);
    // The whole body as it was shown, changed and given back.
    let body = text(&home.show(&id)["body"]);
    let edited = format!("Better said.\n\n{body}");
    let task = home.run_with(&["task", "edit", &id, "-f", "-", "--json"], edited.as_str()).value(0);
    assert_eq!(text(&task["body"]), edited);
    home.run(&["task", "log", &id, "second"]).expect(0);
    let body = text(&home.show(&id)["body"]);
    assert_eq!(body.matches("## Work Log").count(), 1, "{body}");
    assert!(body.starts_with(&edited) && body.contains("Notes: second"), "{body}");
    // A text without a log leaves the log alone.
    home.run_with(&["task", "edit", &id, "-f", "-"], "Shorter.\n").expect(0);
    let body = text(&home.show(&id)["body"]);
    assert!(body.starts_with("Shorter.\n\n## Work Log\n\n- ") && body.contains("second"), "{body}");
    // In the file a person may take lines out.
    edit(&home, &id, |text| {
        text.lines().filter(|l| !l.contains("first")).map(|l| format!("{l}\n")).collect()
    });
    let body = text(&home.show(&id)["body"]);
    assert!(!body.contains("first") && body.contains("second"), "{body}");
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

//! Files of tasks that a person edits while nothing runs: taken in field by field, or refused without losing anything.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use baton_ledger::hash::sha256;
use serde_json::{Value, json};

use crate::support::{Ended, Home};
use crate::task_support::{report, signal, text, update};

/// What a person makes of a file's text.
type Change = Box<dyn Fn(String) -> String>;

/// Changes the text of a task's file.
#[track_caller]
pub(crate) fn edit(home: &Home, id: &str, change: impl FnOnce(String) -> String) -> String {
    let path = home.task_file(id);
    let before = fs::read_to_string(&path).unwrap();
    let after = change(before.clone());
    assert_ne!(before, after, "the edit changes something");
    fs::write(&path, &after).unwrap();
    after
}

/// What is kept aside.
pub(crate) fn quarantined(home: &Home) -> Vec<PathBuf> {
    let all = fs::read_dir(home.data().join("quarantine")).unwrap();
    all.map(|entry| entry.unwrap().path()).collect()
}

/// Looks at a task whose file makes no sense: nothing changes, nothing is lost, and it is told.
#[track_caller]
pub(crate) fn refuses(home: &Home, id: &str, kept: &[u8], says: &str) -> Ended {
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

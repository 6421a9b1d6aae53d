//! The commands about tasks as scripts and people meet them: ids, beginnings of ids, shapes of JSON, words on the terminal.

use std::collections::BTreeSet;
use std::thread;

use serde_json::{Value, json};

use crate::support::{Home, finish};
use crate::task_support::{report, signal, text, texts, update};

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(value: &Value, expected: &[&str]) {
    let missing: Vec<&&str> = expected.iter().filter(|key| !keys(value).contains(**key)).collect();
    assert!(missing.is_empty(), "{missing:?} missing in {value}");
}

/// The day on which the next task is made, as its id says.
fn today(home: &Home) -> String {
    home.task(&[])[5..15].to_owned()
}

#[test]
fn numbers_go_on_past_999_and_are_never_given_twice() {
    let home = Home::new();
    let day = today(&home);
    let first = format!("TASK-{day}-001");
    assert_eq!(home.status(&first), "ready");
    home.named_task(&format!("TASK-{day}-998"), &[]);
    let made: Vec<String> = (0..3).map(|_| home.task(&[])).collect();
    if made[0].contains(&day) {
        assert_eq!(made, ["999", "1000", "1001"].map(|n| format!("TASK-{day}-{n}")));
    }
    home.named_task("TASK-2026-02-09-k3v9wq2m", &[]);
    assert_eq!(home.status("TASK-2026-02-09-k3v9wq2m"), "ready");
    // One that is done or cancelled keeps its number.
    home.run(&["task", "move", &first, "cancelled", "--reason", "x"]).expect(0);
    let again = home.appends_nothing(|home| home.run(&["task", "new", "x", "--id", &first]));
    again.refused(4, "T002", &first);
    let file = std::fs::read_to_string(home.task_file(&first)).unwrap();
    assert!(file.contains("title: a task\n"), "not overwritten: {file}");
    // Sorted by number, not by letters.
    let listed = home.run(&["task", "ls", "--json"]).value(0);
    assert_eq!(listed["tasks"].as_array().unwrap().len(), 6);
}

#[test]
fn forty_tasks_made_at_once_have_forty_ids() {
    let home = Home::new();
    let children: Vec<_> = (0..40)
        .map(|i| home.command(&["task", "new", &format!("task {i}"), "--json"]).spawn().unwrap())
        .collect();
    let workers: Vec<_> =
        children.into_iter().map(|child| thread::spawn(move || finish(child, None))).collect();
    let made: Vec<Value> = workers.into_iter().map(|worker| worker.join().unwrap().value(0)).collect();
    let ids: BTreeSet<String> = made.iter().map(|task| text(&task["id"])).collect();
    assert_eq!(ids.len(), 40);
    let traces: BTreeSet<String> = made.iter().map(|task| text(&task["traceId"])).collect();
    assert_eq!(traces.len(), 40);
    for task in &made {
        let shown = home.show(&text(&task["id"]));
        assert_eq!(shown["title"], task["title"], "each is what it was made as");
    }
    home.verifies();
    home.replays();
}

#[test]
fn the_beginning_of_an_id_is_enough_where_only_one_begins_so() {
    let home = Home::new();
    home.named_task("TASK-2026-02-09-057", &[]);
    home.named_task("TASK-2026-02-09-058", &[]);
    home.named_task("TASK-2026-03-01-001", &[]);
    for name in ["TASK-2026-02-09-057", "2026-02-09-057", "TASK-2026-03", "2026-03"] {
        home.run(&["task", "show", name]).expect(0);
    }
    let shown = home.run(&["task", "show", "2026-03", "--json"]).value(0);
    assert_eq!(shown["id"], "TASK-2026-03-01-001");
    for command in [&["task", "show", "2026-02"][..], &["task", "log", "2026-02", "x"]] {
        let ended = home.appends_nothing(|home| home.run(command));
        ended.refused(2, "L016", "TASK-2026-02-09-057");
        assert!(ended.stderr.contains("TASK-2026-02-09-058"), "{}", ended.stderr);
    }
    for name in ["TASK-2027", "nothing", "", "TASK-"] {
        home.run(&["task", "show", name]).refused(3, "T001", "no task");
    }
    // An id is itself, also where others begin like it.
    home.named_task("TASK-2026-02-09-0570", &[]);
    assert_eq!(home.show("TASK-2026-02-09-057")["id"], "TASK-2026-02-09-057");
    home.claim("2026-03", "swe-backend");
    assert_eq!(home.status("TASK-2026-03-01-001"), "in-progress");
}

const TASK_KEYS: &[&str] = &[
    "schemaVersion",
    "id",
    "title",
    "status",
    "phase",
    "priority",
    "routing",
    "createdAt",
    "updatedAt",
    "lastTransitionAt",
    "createdBy",
    "dependsOn",
    "traceId",
    "attempts",
    "metadata",
    "rev",
];

#[test]
fn json_has_the_shapes_that_scripts_rely_on() {
    let home = Home::with_signals();
    let new = home.run(&[
        "task",
        "new",
        "Fix the login",
        "--ready",
        "--json",
        "--agent",
        "swe-backend",
        "--role",
        "implementer",
        "--tag",
        "web",
        "--tag",
        "urgent",
        "--priority",
        "critical",
        "--no-review",
    ]);
    let task = new.value(0);
    has_keys(&task, TASK_KEYS);
    has_keys(&task, &["body"]);
    assert_eq!(task["schemaVersion"], 1);
    assert_eq!(
        task["routing"],
        json!({"agent": "swe-backend", "role": "implementer", "tags": ["web", "urgent"]})
    );
    assert_eq!(task["metadata"]["reviewRequired"], false);
    let id = text(&task["id"]);
    assert_eq!(home.show(&id), task, "show prints what new printed");

    let listed = home.run(&["task", "ls", "--json"]).value(0);
    assert_eq!(listed["v"], 1);
    let row = &listed["tasks"][0];
    has_keys(row, TASK_KEYS);
    assert!(row.get("body").is_none(), "without its text");
    let none = home.run(&["task", "ls", "--status", "done,review", "--json"]).value(0);
    assert_eq!(none["tasks"], json!([]));

    let lease = home.run(&["task", "claim", &id, "--agent", "swe-backend", "--json"]).value(0);
    has_keys(&lease, &["v", "taskId", "agent", "fence", "expiresAt", "runId"]);
    assert!(text(&lease["runId"]).starts_with("run_"));
    let held = home.show(&id);
    let expected = ["acquiredAt", "agent", "expiresAt", "fence", "renewCount"];
    assert_eq!(keys(&held["lease"]), BTreeSet::from(expected));

    let beat = home.run(&["task", "beat", &id, "--agent", "swe-backend", "--fence", "1", "--json"]).value(0);
    has_keys(&beat, &["v", "taskId", "agent", "fence", "expiresAt"]);

    let sent = home.send(update(&id, "swe-backend", &json!({"notes": "x"}))).value(0);
    assert_eq!(keys(&sent), BTreeSet::from(["v", "accepted", "events"]));
    let refused = home.send(report(&id, "intruder", "done")).value(4);
    assert_eq!(keys(&refused), BTreeSet::from(["v", "accepted", "reason", "detail", "events"]));

    let check =
        home.run_with(&["exit", "check", "--json"], signal("DRAFT", "completed").to_string()).value(0);
    assert_eq!(check, json!({"v": 1, "valid": true, "next_phase": "IMPLEMENTATION"}));
    let check = home.run_with(&["exit", "check", "--json"], "{}").value(4);
    assert_eq!(keys(&check), BTreeSet::from(["v", "valid", "error"]));
    let refused = home.submit(&id, &signal("REVIEW", "completed")).value(4);
    assert_eq!(keys(&refused), BTreeSet::from(["v", "accepted", "error", "phase", "next_phase", "warnings"]));
    let accepted = home.submit(&id, &signal("IMPLEMENTATION", "completed")).value(0);
    assert_eq!(keys(&accepted), BTreeSet::from(["v", "accepted", "phase", "next_phase", "warnings"]));

    let task = home.run(&["ci", "report", &id, "--passed", "--json"]).value(0);
    has_keys(&task, TASK_KEYS);
    has_keys(&task, &["body"]);
    assert_eq!(task["status"], "done", "no review is required");
    let other = home.task(&[]);
    let moved = home.run(&["task", "move", &other, "blocked", "--reason", "x", "--json"]).value(0);
    has_keys(&moved, TASK_KEYS);
    has_keys(&moved, &["body", "phaseBeforeBlock"]);
    for args in [
        &["task", "log", &other, "x", "--json"][..],
        &["task", "edit", &other, "--title", "y", "--json"],
        &["task", "move", &other, "blocked", "--reason", "the same again", "--json"],
    ] {
        assert_eq!(home.run(args).value(0)["id"], other.as_str(), "{args:?}");
    }
}

#[test]
fn errors_under_json_are_json_on_stderr_with_code_message_and_hint() {
    let home = Home::new();
    let id = home.task(&[]);
    home.claim(&id, "holder");
    let missing = "TASK-2020-01-01-001";
    let cases: &[(&[&str], i32, &str)] = &[
        (&["task", "show", missing], 3, "T001"),
        (&["task", "new", "x", "--id", &id], 4, "T002"),
        (&["task", "new", "a\nb"], 4, "T003"),
        (&["task", "move", &id, "done", "--reason", "x"], 4, "T004"),
        (&["task", "new", "x", "--depends-on", missing], 3, "T006"),
        (&["task", "edit", &id, "--depends-on", &id], 4, "T007"),
        (&["task", "claim", &id, "--agent", "other"], 5, "T008"),
        (&["task", "beat", &id, "--agent", "other", "--fence", "1"], 5, "T011"),
        (&["task", "release", &id, "--agent", "other", "--fence", "1"], 5, "T011"),
        (&["ci", "report", &id, "--passed"], 4, "T013"),
        (&["task", "approve", &id], 4, "T013"),
        (&["task", "retry", &id], 4, "T013"),
        (&["send", "missing.json"], 3, "U005"),
    ];
    for (args, exit, code) in cases {
        let ended = home.run(&[args, &["--json"][..]].concat());
        ended.refused_json(*exit, code);
        assert!(ended.stdout.is_empty(), "{args:?}");
        let error: Value = serde_json::from_str(&ended.stderr).unwrap();
        assert!(!text(&error["error"]["message"]).is_empty(), "{error}");
        // The same for people, and a page for each code.
        home.run(args).refused_with(*exit, code, "");
        home.run(&["explain", code]).expect(0);
    }
    assert_eq!(home.status(&id), "in-progress");
}

#[test]
fn what_a_person_reads_has_words_and_no_colours_in_a_pipe() {
    let home = Home::new();
    let made = home.run(&["task", "new", "Fix the login", "--priority", "high"]);
    let id = made.expect(0).stdout.trim().to_owned();
    assert_eq!(made.stdout, format!("{id}\n"), "the id alone, to be copied");
    assert!(made.stderr.contains(&format!("baton task move {id} ready")), "{}", made.stderr);
    let moved = home.run(&["task", "move", &id, "ready", "--reason", "now"]);
    assert_eq!(moved.expect(0).stdout, format!("{id}  ready  IMPLEMENTATION  Fix the login\n"));
    let claimed = home.run(&["task", "claim", &id, "--agent", "swe-backend"]);
    assert_eq!(claimed.expect(0).stdout, format!("{id} is swe-backend's with fence 1\n"));
    let listed = home.run(&["task", "ls"]);
    for word in [id.as_str(), "in-progress", "high", "swe-backend", "Fix the login"] {
        assert!(listed.expect(0).stdout.contains(word), "{word}: {}", listed.stdout);
    }
    let shown = home.run(&["task", "show", &id]);
    for word in ["Fix the login", "in-progress, phase IMPLEMENTATION", "swe-backend with fence 1", "trc_"] {
        assert!(shown.expect(0).stdout.contains(word), "{word}: {}", shown.stdout);
    }
    let standing = home.run(&[]);
    assert!(standing.expect(0).stdout.contains("runs"), "{}", standing.stdout);
    for ended in [&made, &moved, &claimed, &listed, &shown, &standing] {
        assert!(!ended.stdout.contains('\u{1b}') && !ended.stderr.contains('\u{1b}'), "{ended:?}");
    }
    let empty = Home::new();
    let ended = empty.run(&["task", "ls"]);
    assert!(ended.expect(0).stdout.is_empty() && ended.stderr.contains("baton task new"), "{}", ended.stderr);
}

#[test]
fn bare_baton_says_what_runs_waits_is_blocked_and_needs_a_person() {
    let home = Home::new();
    let [runs, waits, blocked, review] = [0; 4].map(|_| home.task(&[]));
    home.claim(&runs, "swe-backend");
    home.run(&["task", "move", &blocked, "blocked", "--reason", "no key"]).expect(0);
    home.claim(&review, "swe-backend");
    home.accepted(report(&review, "swe-backend", "done"));
    let tasks = &home.json(&[])["tasks"];
    assert_eq!(texts(&tasks["running"]), [runs.as_str()]);
    assert_eq!(texts(&tasks["waiting"]), [waits.as_str()]);
    assert_eq!(texts(&tasks["blocked"]), [blocked.as_str()]);
    let needs: BTreeSet<String> =
        tasks["needsPerson"].as_array().unwrap().iter().map(|need| text(&need["id"])).collect();
    assert_eq!(needs, BTreeSet::from([blocked, review]));
    assert_eq!((&tasks["counts"]["ready"], &tasks["counts"]["in-progress"]), (&json!(1), &json!(1)));
}

#[test]
fn a_task_is_edited_by_flags_and_every_edit_is_one_event() {
    let home = Home::new();
    let id = home.task(&["--tag", "web"]);
    let other = home.task(&[]);
    home.run(&["task", "edit", &id, "--title", "New", "--priority", "low", "--agent", "swe-qa"]).expect(0);
    let task = home
        .run_with(&["task", "edit", &id, "-f", "-", "--depends-on", &other, "--json"], "Text.\n")
        .value(0);
    assert_eq!((&task["title"], &task["priority"]), (&json!("New"), &json!("low")));
    assert_eq!(task["routing"], json!({"agent": "swe-qa", "tags": ["web"]}), "what is not named stays");
    assert_eq!((text(&task["body"]).as_str(), &task["dependsOn"]), ("Text.\n", &json!([other])));
    let edits = home.types(&id).iter().filter(|t| *t == "task.edited").count();
    assert_eq!(edits, 2);
    home.verifies();
}

#[test]
fn a_saved_row_that_somebody_altered_is_not_shown() {
    let home = Home::new();
    let id = home.task(&["--priority", "low"]);
    let shown = home.show(&id);
    let (path, good) = (home.data().join("index/tasks"), r#""title":"a task""#);
    let rows = std::fs::read_to_string(&path).unwrap();
    assert!(rows.contains(good), "{rows}");
    // Of the same length, so that nothing but the signature tells.
    std::fs::write(&path, rows.replace(good, &good.replace("a task", "a trap"))).unwrap();
    assert_eq!(home.show(&id), shown);
    assert_eq!(home.json(&["task", "ls"])["tasks"][0]["title"], "a task");
    // Whoever writes next saves it anew.
    home.run(&["task", "log", &id, "a line"]).expect(0);
    assert!(!std::fs::read_to_string(&path).unwrap().contains("a trap"));
    // An earlier row is as well signed, and is not what the file says.
    let places = home.data().join("index/tasks.places");
    let first = std::fs::read(&places).unwrap();
    home.run(&["task", "edit", &id, "--title", "another"]).expect(0);
    let mut mixed = std::fs::read(&places).unwrap();
    let end = mixed.len() - 8;
    mixed[end..].copy_from_slice(&first[end..]);
    std::fs::write(&places, mixed).unwrap();
    assert_eq!(home.show(&id)["title"], "another");
}

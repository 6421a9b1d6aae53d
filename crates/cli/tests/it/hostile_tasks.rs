//! What nobody should send or leave lying about: wrong types everywhere, names and paths that lead elsewhere, texts without end, links.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::Home;
use crate::task_support::{answer, handoff, report, signal, text, update, with, without};

/// A task that swe-backend works on, and one that it may hand over.
fn pair(home: &Home) -> (String, String) {
    let (parent, child) = (home.task(&[]), home.task(&[]));
    home.claim(&parent, "swe-backend");
    (parent, child)
}

/// Every place of a message with what stands there, the envelope's and the payload's.
fn places(message: &Value) -> Vec<String> {
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let mut all = keys(message);
    all.extend(keys(&message["payload"]).into_iter().map(|key| format!("payload.{key}")));
    if message["payload"].get("tests").is_some() {
        all.extend(["total", "passed", "failed"].map(|key| format!("payload.tests.{key}")));
    }
    all
}

/// Whether a place may be left out.
fn is_optional(kind: &str, place: &str) -> bool {
    let lists =
        ["deliverables", "blockers", "expectedOutputs", "contextRefs", "constraints", "acceptanceCriteria"];
    let field = place.trim_start_matches("payload.");
    match kind {
        "status.update" => ["blockers", "progress", "notes", "status"].contains(&field),
        _ => lists.contains(&field),
    }
}

#[test]
fn a_wrong_type_in_any_field_of_any_message_is_refused_by_its_name() {
    let home = Home::new();
    let (parent, child) = pair(&home);
    let all = json!({"status": "blocked", "progress": "p", "notes": "n", "blockers": ["b"]});
    let messages = [
        report(&parent, "swe-backend", "done"),
        update(&parent, "swe-backend", &all),
        handoff(&child, &parent, "swe-backend", "swe-qa"),
        answer(&child, "swe-qa", None),
        answer(&child, "swe-qa", Some("no")),
    ];
    let wrong =
        [Value::Null, json!(true), json!(-7), json!(1.5), json!([[]]), json!({"a": 1}), json!("\u{0}/../x")];
    let before = [home.status(&parent), home.status(&child)];
    for message in messages {
        let kind = text(&message["type"]);
        for place in places(&message) {
            for value in &wrong {
                let original = message.pointer(&format!("/{}", place.replace('.', "/"))).unwrap();
                let field = place.trim_start_matches("payload.");
                // Free text may be any text; a handoff is not refused for its criteria; and true is true.
                let is_text = value.is_string() && ["notes", "progress", "reason"].contains(&field);
                if is_text || original == value || field == "acceptanceCriteria" {
                    continue;
                }
                let reason = match (place.as_str(), value) {
                    ("type", Value::String(_)) => "unknown_type",
                    ("protocol", _) => "invalid_envelope",
                    ("payload.taskId", Value::String(_)) => "taskId_mismatch",
                    _ => "invalid_envelope",
                };
                let answer = home.rejected(with(message.clone(), &place, value.clone()), reason);
                let named = text(&answer["detail"]["field"]);
                assert!(named.starts_with(&place), "{kind} {place} {value}: {answer}");
                assert!(answer["detail"]["expected"].is_string() && answer["detail"]["got"].is_string());
            }
            let left_out = without(message.clone(), &place);
            if is_optional(&kind, &place) {
                continue;
            }
            let answer = home.rejected(left_out, "invalid_envelope");
            assert_eq!(text(&answer["detail"]["field"]), place, "{kind}: {answer}");
        }
    }
    assert_eq!([home.status(&parent), home.status(&child)], before, "nothing moved");
    assert!(!home.types(&parent).contains(&"protocol.message.received".into()), "nothing was taken");
    home.verifies();
}

#[test]
fn every_limit_is_where_it_is_said_to_be() {
    let home = Home::new();
    let (parent, child) = pair(&home);
    let long = |count: usize| Value::String("é".repeat(count));
    let many = |count: usize| Value::Array(vec![json!("x"); count]);
    let done = || report(&parent, "swe-backend", "done");
    let all = json!({"progress": "p", "notes": "n", "blockers": ["b"]});
    let said = || update(&parent, "swe-backend", &all);
    let asked = || handoff(&child, &parent, "swe-backend", "swe-qa");
    let too_much = [
        (done(), "payload.summaryRef", long(257)),
        (done(), "payload.notes", long(10_001)),
        (done(), "payload.deliverables", many(51)),
        (done(), "payload.deliverables", json!([long(257)])),
        (done(), "payload.blockers", many(21)),
        (done(), "payload.tests", json!({"total": 1, "passed": 1, "failed": 1})),
        (said(), "payload.progress", long(1_001)),
        (said(), "payload.notes", long(10_001)),
        (said(), "payload.blockers", many(21)),
        (said(), "payload.blockers", json!([long(257)])),
        (asked(), "payload.expectedOutputs", many(51)),
        (asked(), "payload.contextRefs", many(51)),
        (asked(), "payload.constraints", many(51)),
        (asked(), "payload.constraints", json!([long(257)])),
        (asked(), "payload.dueBy", json!("tomorrow")),
        (asked(), "payload.dueBy", json!("2026-02-30T00:00:00Z")),
        (asked(), "sentAt", json!("2026-02-09")),
        (asked(), "toAgent", long(257)),
        (asked(), "fromAgent", json!("a".repeat(65))),
    ];
    for (message, place, value) in too_much {
        let answer = home.rejected(with(message, place, value), "invalid_envelope");
        assert!(text(&answer["detail"]["field"]).starts_with(place), "{answer}");
    }
    let enough = [
        (said(), "payload.progress", long(1_000)),
        (said(), "payload.notes", long(10_000)),
        (said(), "payload.blockers", many(20)),
        (said(), "payload.blockers", json!([long(256)])),
        (asked(), "payload.constraints", many(50)),
        (asked(), "payload.expectedOutputs", json!([long(256)])),
        (asked(), "payload.dueBy", json!("2026-02-10T13:00:00+01:00")),
        (done(), "payload.summaryRef", long(256)),
    ];
    for (message, place, value) in enough {
        home.accepted(with(message, place, value));
    }
    let other = home.task(&[]);
    home.accepted(handoff(&other, &home.task(&[]), "operator", "swe-qa"));
    home.rejected(answer(&other, "swe-qa", Some(&"é".repeat(513))), "invalid_envelope");
    home.accepted(answer(&other, "swe-qa", Some(&"é".repeat(512))));
    home.verifies();
}

#[test]
fn ids_that_are_none_are_refused_wherever_they_are_typed_or_sent() {
    let home = Home::new();
    let (parent, _) = pair(&home);
    let bad = [
        "../TASK-2026-02-09-057",
        "TASK-2026-02-09-057/..",
        "TASK-2026-02-09-057/../../x",
        "TASK-2026-02-09-../",
        "TASK-2026-02-09-01",
        "TASK-2026-02-09-0 1",
        "TASK-2026-02-09-057\n",
        "task-2026-02-09-057",
        "TASK-2026-02-09-ABCD",
        "",
        ".",
        "/etc/passwd",
        &format!("TASK-2026-02-09-{}", "9".repeat(300)),
    ];
    for id in bad {
        let of_envelope = with(update(&parent, "swe-backend", &json!({"notes": "x"})), "taskId", json!(id));
        let answer = home.rejected(of_envelope, "invalid_envelope");
        assert_eq!(answer["detail"]["field"], "taskId", "{id:?}");
        let of_parent =
            with(handoff(&parent, &parent, "swe-backend", "b"), "payload.parentTaskId", json!(id));
        home.rejected(of_parent, "invalid_envelope");
        let ended = home.run(&["task", "new", "x", "--id", id]);
        ended.expect(2);
        for args in
            [&["task", "show", id][..], &["task", "claim", id, "--agent", "a"], &["task", "log", id, "x"]]
        {
            let ended = home.run(args);
            assert!(matches!(ended.code, Some(2 | 3)), "{id:?}: {ended:?}");
            assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        }
    }
    let with_nul = format!("{{\"id\":\"{}\"}}", "TASK-2026-02-09-057\\u0000");
    let id: Value = serde_json::from_str(&with_nul).unwrap();
    let message = with(update(&parent, "swe-backend", &json!({"notes": "x"})), "taskId", id["id"].clone());
    home.rejected(message, "invalid_envelope");
    assert!(!home.path("x").exists());
}

#[test]
fn paths_that_lead_elsewhere_are_refused_in_every_field() {
    let home = Home::new();
    let (parent, child) = pair(&home);
    let tricks = [
        "/etc/passwd",
        "..",
        "../x",
        "a/../../x",
        "a/..",
        "./../x",
        "",
        ".",
        "a\\..\\x",
        "a\u{0}b",
        "a\nb",
        "//x",
        "outputs/../../../../etc/passwd",
    ];
    for path in tricks {
        let one = json!(path);
        let list = json!(["fine.txt", path]);
        let cases = [
            (report(&parent, "swe-backend", "done"), "payload.summaryRef", one.clone()),
            (report(&parent, "swe-backend", "done"), "payload.deliverables", list.clone()),
            (handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.expectedOutputs", list.clone()),
            (handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.contextRefs", list),
        ];
        for (message, place, value) in cases {
            let is_list = value.is_array();
            let answer = home.rejected(with(message, place, value), "invalid_envelope");
            let field = if is_list { format!("{place}[1]") } else { place.to_owned() };
            assert_eq!(answer["detail"]["field"], field.as_str(), "{path:?}: {answer}");
        }
    }
    // What stays inside is fine, also by another task's id in whatever folder it was.
    let refs = json!([format!("tasks/ready/{parent}.md"), "src/..hidden", "a/./b"]);
    home.accepted(with(handoff(&child, &parent, "swe-backend", "swe-qa"), "payload.contextRefs", refs));
}

#[test]
fn a_summary_is_found_in_the_folder_by_id_and_in_the_workspace_and_never_through_a_link() {
    let warns = |make: &dyn Fn(&Home, &str), path: &str| -> bool {
        let home = Home::new();
        let id = home.task(&[]);
        home.claim(&id, "swe-backend");
        make(&home, &id);
        let path = path.replace("ID", &id);
        let events =
            home.accepted(with(report(&id, "swe-backend", "done"), "payload.summaryRef", json!(path)));
        events.contains(&"protocol.message.warning".to_owned())
    };
    let in_folder = |home: &Home, id: &str| {
        fs::write(home.folder("in-progress", id).join("outputs/summary.md"), "x").unwrap();
    };
    assert!(!warns(&in_folder, "outputs/summary.md"));
    assert!(!warns(&in_folder, "tasks/ready/ID/outputs/summary.md"), "by id, wherever it is now");
    assert!(!warns(&|home, _| fs::write(home.work().join("summary.md"), "x").unwrap(), "summary.md"));
    assert!(warns(&|_, _| {}, "outputs/summary.md"));
    let linked = |home: &Home, id: &str| {
        fs::write(home.path("secret"), "x").unwrap();
        symlink(home.path("secret"), home.folder("in-progress", id).join("outputs/summary.md")).unwrap();
    };
    assert!(warns(&linked, "outputs/summary.md"), "a link is not followed");
}

#[test]
fn titles_and_texts_that_do_not_fit_are_refused() {
    let home = Home::new();
    for title in ["", "  ", "two\nlines", "bell\u{7}", "esc\u{1b}[31m", "tab\tbed", &"é".repeat(257)] {
        let ended = home.appends_nothing(|home| home.run(&["task", "new", title]));
        ended.refused_with(4, "T003", "title");
    }
    home.run(&["task", "new", &"é".repeat(256)]).expect(0);
    let id = home.task(&[]);
    home.run(&["task", "edit", &id, "--title", "a\u{1b}b"]).refused_with(4, "T003", "title");
    let log = "é".repeat(10_001);
    for text in ["", " \n", &log] {
        home.run(&["task", "log", &id, text]).refused_with(4, "T003", "text");
    }
    home.run(&["task", "log", &id, &"é".repeat(10_000)]).expect(0);
    for reason in ["", &"x".repeat(513)] {
        home.run(&["task", "move", &id, "blocked", "--reason", reason]).refused_with(4, "T003", "reason");
    }
    // What is in a text is shown as text.
    home.run(&["task", "log", &id, "red\u{1b}[31m\u{7}"]).expect(0);
    let shown = home.run(&["task", "show", &id]);
    assert!(!shown.expect(0).stdout.contains('\u{1b}'), "{:?}", shown.stdout);
    home.verifies();
}

#[test]
fn a_tasks_text_comes_from_a_file_that_is_one() {
    let home = Home::new();
    let work = home.work();
    fs::write(work.join("good.md"), "Do it.\n").unwrap();
    fs::write(work.join("most.md"), "x".repeat(128 << 10)).unwrap();
    fs::write(work.join("large.md"), "x".repeat((128 << 10) + 1)).unwrap();
    fs::write(work.join("latin.md"), b"caf\xe9").unwrap();
    fs::write(work.join("nul.md"), b"a\0b").unwrap();
    fs::create_dir(work.join("dir")).unwrap();
    let new = |file: &str| home.run(&["task", "new", "x", "--json", "-f", file]);
    assert_eq!(text(&new("good.md").value(0)["body"]), "Do it.\n");
    new("most.md").value(0);
    home.appends_nothing(|_| {
        new("large.md").refused_json(4, "U003");
        new("latin.md").refused_json(4, "U004");
        new("nul.md").refused_json(4, "T003");
        new("dir").refused_json(1, "U006");
        new("missing.md").refused_json(3, "U005");
    });
    let ended = home.run_with(&["task", "new", "x", "--json", "-f", "-"], "From a pipe.\n");
    assert_eq!(text(&ended.value(0)["body"]), "From a pipe.\n");
    // A work log that a person wrote is one.
    let body = "Text.\n\n## Work Log\n\n- yesterday: began\n";
    let id = text(&home.run_with(&["task", "new", "x", "--json", "-f", "-"], body).value(0)["id"]);
    home.run(&["task", "log", &id, "went on"]).expect(0);
    let shown = text(&home.show(&id)["body"]);
    assert!(shown.starts_with(body) && shown.matches("## Work Log").count() == 1, "{shown}");
}

#[test]
fn words_that_do_not_exist_are_usage_errors() {
    let home = Home::new();
    let id = home.task(&[]);
    let cases: &[&[&str]] = &[
        &["task", "new", "x", "--priority", "urgent"],
        &["task", "new", "x", "--phase", "implementation"],
        &["task", "new", "x", "--phase", "DONE"],
        &["task", "new", "x", "--agent", "Not A Name"],
        &["task", "new"],
        &["task", "new", "x", "--shiny"],
        &["task", "ls", "--status", "somewhere"],
        &["task", "move", &id, "somewhere", "--reason", "x"],
        &["task", "move", &id, "blocked"],
        &["task", "edit", &id, "--priority", "urgent"],
        &["task", "claim", &id],
        &["task", "beat", &id, "--agent", "a", "--fence", "-1"],
        &["task", "beat", &id, "--agent", "a", "--fence", "x"],
        &["task", "reject", &id],
        &["task", "dance"],
        &["exit", "submit", "-"],
        &["exit", "dance"],
    ];
    for args in cases {
        let ended = home.appends_nothing(|home| home.run(args));
        ended.expect(2);
        assert!(ended.stdout.is_empty() && !ended.stderr.is_empty(), "{args:?}");
    }
    for phase in ["CI_PENDING", "REVIEW", "COMPLETED", "BLOCKED"] {
        home.run(&["task", "new", "x", "--phase", phase]).refused_with(4, "T003", "phase");
    }
}

/// Whether nothing was written into a directory.
fn is_empty(dir: &Path) -> bool {
    fs::read_dir(dir).unwrap().next().is_none()
}

/// Whether a link was put aside and not followed.
fn is_kept_aside(home: &Home) -> bool {
    let all = fs::read_dir(home.data().join("quarantine")).unwrap();
    all.into_iter().any(|entry| entry.unwrap().path().is_symlink())
}

#[test]
fn nothing_is_written_through_a_link_in_the_childs_folder() {
    for place in ["inputs", ""] {
        let home = Home::new();
        let (parent, child) = pair(&home);
        let outside = home.path("outside");
        fs::create_dir(&outside).unwrap();
        let folder = home.folder("ready", &child);
        let link = if place.is_empty() { folder.clone() } else { folder.join(place) };
        fs::remove_dir_all(&link).unwrap();
        symlink(&outside, &link).unwrap();
        home.accepted(handoff(&child, &parent, "swe-backend", "swe-qa"));
        assert!(is_empty(&outside), "{place:?}: nothing is written outside");
        assert!(is_kept_aside(&home), "{place:?}");
        assert!(folder.join("inputs/handoff.json").is_file() && folder.join("inputs/handoff.md").is_file());
        assert!(!folder.join("inputs").is_symlink());
        home.run(&["task", "log", &child, "go on"]).expect(0);
        home.claim(&child, "swe-qa");
        assert!(is_empty(&outside), "{place:?}: nor afterwards");
        home.task_file(&child);
        home.verifies();
    }
}

#[test]
fn nothing_is_written_through_links_in_place_of_runs() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    let outside = home.path("outside");
    fs::create_dir(&outside).unwrap();
    let runs = home.data().join("runs");
    fs::remove_dir_all(&runs).unwrap();
    symlink(&outside, &runs).unwrap();
    let ended = home.appends_nothing(|home| home.run(&["task", "claim", &id, "--agent", "swe-backend"]));
    ended.refused(1, "T014", "runs is not a directory");
    assert!(is_empty(&outside));
    assert_eq!(home.status(&id), "ready");
    // The link of one run alone.
    fs::remove_file(&runs).unwrap();
    fs::create_dir(&runs).unwrap();
    symlink(&outside, runs.join(&id)).unwrap();
    home.claim(&id, "swe-backend");
    home.accepted(report(&id, "swe-backend", "done"));
    assert!(is_empty(&outside) && is_kept_aside(&home));
    assert_eq!(home.run_file(&id, "run_result.json")["outcome"], "done");
    home.task_file(&id);
    // And of the files in it.
    fs::write(outside.join("target"), "untouched").unwrap();
    let other = home.task(&[]);
    fs::create_dir(runs.join(&other)).unwrap();
    for name in ["run.json", "run_heartbeat.json", "run_result.json"] {
        symlink(outside.join("target"), runs.join(&other).join(name)).unwrap();
    }
    home.claim(&other, "swe-backend");
    home.run(&["task", "beat", &other, "--agent", "swe-backend", "--fence", "1"]).expect(0);
    home.accepted(report(&other, "swe-backend", "done"));
    assert_eq!(fs::read_to_string(outside.join("target")).unwrap(), "untouched");
    assert_eq!(home.run_file(&other, "run_result.json")["outcome"], "done");
    assert!(!runs.join(&other).join("run.json").is_symlink());
    home.verifies();
}

#[test]
fn nothing_is_written_through_a_link_in_place_of_a_status_folder() {
    let home = Home::new();
    let id = home.task(&[]);
    let outside = home.path("outside");
    fs::create_dir(&outside).unwrap();
    let blocked = home.data().join("tasks/blocked");
    fs::remove_dir_all(&blocked).unwrap();
    symlink(&outside, &blocked).unwrap();
    let ended = home.appends_nothing(|home| home.run(&["task", "move", &id, "blocked", "--reason", "x"]));
    ended.refused(1, "T014", "tasks/blocked is not a directory");
    assert!(is_empty(&outside), "nothing is written outside");
    // Once the link is gone, everything is in its place again.
    fs::remove_file(&blocked).unwrap();
    home.run(&["task", "log", &id, "go on"]).expect(0);
    home.task_file(&id);
    home.verifies();
}

#[test]
fn signals_and_messages_in_anything_but_a_file_are_told_as_such() {
    let home = Home::with_signals();
    let id = home.task(&[]);
    home.claim(&id, "swe-backend");
    fs::create_dir(home.work().join("dir")).unwrap();
    for args in [&["send", "dir"][..], &["exit", "check", "dir"], &["exit", "submit", "--task", &id, "dir"]] {
        home.run(args).refused_with(1, "U006", "dir");
    }
    for args in [&["send", "no"][..], &["exit", "check", "no"], &["exit", "submit", "--task", &id, "no"]] {
        home.run(args).refused_with(3, "U005", "no");
    }
    let deep = format!("{}1{}", "[".repeat(10_000), "]".repeat(10_000));
    let ended = home.run_with(&["exit", "check", "--json"], deep);
    assert!(text(&ended.value(4)["error"]).starts_with("invalid JSON: "));
    let broken = home.run_with(&["exit", "check", "--json"], b"\xff\xfe{}".to_vec());
    assert!(text(&broken.value(4)["error"]).starts_with("invalid JSON: "));
    assert_eq!(home.submitted(&id, &signal("IMPLEMENTATION", "completed"))["accepted"], true);
}

//! `fixtures/sessions/`: what whole sessions said, and the view that it folds into. The reducer of the SDK is tested with the same files.
//!
//! Each is recorded by a real session: its own thread, machine, ledger, hooks and tools; only the agent is played, and the clock counts what it is
//! asked, so that the same session says the same every time. The files are compared, and rewritten when asked: `BATON_REGENERATE=1`.

mod rig;
mod stories;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use baton_core::session::{SessionEvent, View};
use serde_json::{Map, Value, json};

/// What a recording and its view are called, and everything that there is.
const NAMES: &[&str] = &[
    "crash",
    "hook-tried-by-hand",
    "hooks",
    "killed",
    "limit-reached",
    "long",
    "parallel-tools",
    "permission-allowed",
    "permission-denied",
    "permission-pending",
    "plain-turn",
    "request-tried-again",
    "start-fails",
    "stop-in-stream",
    "tool-succeeds",
    "tool-tried-again",
    "tool-waits-for-another-try",
    "two-turns",
];

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sessions")
}

/// What was said in a session, by kind, as its transcript has it.
#[derive(Debug, Default)]
struct Words {
    text: String,
    thought: String,
}

/// A session as it was followed.
struct Recording {
    /// Lines of `{"id", "event", "data"}`, the three fields of a server-sent event.
    lines: Vec<String>,
    /// What the session itself says of where it stands.
    view: View,
    words: Words,
}

/// Compares a file with what it should hold, or makes it so.
fn settle(name: &str, text: &str) {
    let path = dir().join(name);
    if std::env::var_os("BATON_REGENERATE").is_some() {
        fs::write(&path, text).unwrap();
    }
    let found = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        found == text,
        "{} is not what a session says; BATON_REGENERATE=1 rewrites it.\n{}",
        path.display(),
        first_difference(&found, text)
    );
}

fn first_difference(found: &str, made: &str) -> String {
    let pair = found.lines().zip(made.lines()).enumerate().find(|(_, (found, made))| found != made);
    match pair {
        Some((at, (found, made))) => format!("line {}:\n  there {found}\n  now   {made}", at + 1),
        None => format!("{} lines there, {} now", found.lines().count(), made.lines().count()),
    }
}

/// A recording is what a session says today, and folds into the view that stands beside it.
fn check(name: &str, recording: &Recording) {
    assert!(NAMES.contains(&name), "{name} is not in the list");
    settle(&format!("{name}.jsonl"), &(recording.lines.join("\n") + "\n"));
    let committed = fs::read_to_string(dir().join(format!("{name}.jsonl"))).unwrap();
    let (view, mut expected) = fold(&committed);
    assert_eq!(view, recording.view, "{name}: the events say what the session is");
    let Words { text, thought } = &recording.words;
    expected.insert("words".to_owned(), json!({"text": text, "thought": thought}));
    let text = serde_json::to_string_pretty(&Value::Object(expected)).unwrap();
    settle(&format!("{name}.view.json"), &(text + "\n"));
}

/// The view after the last event, and everything of it that is written down, with how it came about.
fn fold(lines: &str) -> (View, Map<String, Value>) {
    let (mut view, mut end) = (View::default(), None);
    let (mut along, mut last) = (Vec::new(), String::new());
    for line in lines.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let data = line["data"].as_object().unwrap();
        match line["event"].as_str().unwrap() {
            "state_event" => {
                let kind = data["type"].as_str().unwrap();
                view.apply(&SessionEvent::read(kind, data).unwrap().unwrap());
            }
            "stream_event" => {}
            "ended" => end = Some(line["data"].clone()),
            other => panic!("{other}"),
        }
        let now = short(&view);
        if last != now {
            along.push(format!("{}: {now}", line["id"]));
            last = now;
        }
    }
    let View { state, stream, tool_runs, hook_runs, permissions, last_error, exit_code } = &view;
    let fields = json!({
        "state": state,
        "streamId": stream,
        "toolRuns": tool_runs,
        "hookRuns": hook_runs,
        "pendingPermissions": permissions,
        "lastError": last_error,
        "exitCode": exit_code,
        "terminationInfo": end,
        "along": along,
    });
    let Value::Object(fields) = fields else { unreachable!() };
    let fields = fields.into_iter().filter(|(_, value)| !value.is_null()).collect();
    (view, fields)
}

/// A view in a line: the state, the last run of each kind, what is asked, the error.
fn short(view: &View) -> String {
    let tool = view.tool_runs.last().map(|run| format!("{} {} #{}", run.tool_name, run.status, run.attempt));
    let hook = view.hook_runs.last().map(|run| format!("{} {} #{}", run.hook_name, run.status, run.attempt));
    let error = view.last_error.as_ref().map(|error| error.code.as_str());
    let (tool, hook) = (tool.unwrap_or_default(), hook.unwrap_or_default());
    format!("{}|{tool}|{hook}|{}|{}", view.state, view.permissions.len(), error.unwrap_or_default())
}

#[test]
fn every_recording_in_the_folder_is_one_that_is_made() {
    let files = fs::read_dir(dir()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let wanted = NAMES.iter().flat_map(|name| [format!("{name}.jsonl"), format!("{name}.view.json")]);
    let wanted: BTreeSet<String> = wanted.chain(["README.md".to_owned()]).collect();
    if std::env::var_os("BATON_REGENERATE").is_some() {
        // The others are being made.
        let strangers = files.filter(|file| !wanted.contains(file));
        return strangers.for_each(|file| fs::remove_file(dir().join(file)).unwrap());
    }
    assert_eq!(files.collect::<BTreeSet<_>>(), wanted);
}

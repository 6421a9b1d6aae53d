//! The pages for people who write agents: every example is taken by the real parser, every table is the one of the code.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use baton_core::protocol::Reason;
use baton_core::task::TaskEvent;
use serde_json::Value;

use crate::support::Home;

const PARENT: &str = "TASK-2026-01-31-001";
const CHILD: &str = "TASK-2026-01-31-002";
const EVENTS: &str = include_str!("../../../core/src/task/event.rs");

pub(crate) fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
}

pub(crate) fn page(name: &str) -> String {
    fs::read_to_string(root().join("docs/protocol").join(name)).unwrap()
}

/// The fenced blocks of a page, each with its info string.
fn blocks(text: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut open: Option<(String, String)> = None;
    for line in text.lines() {
        match (open.take(), line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((info.to_owned(), String::new())),
            (None, None) => {}
            (Some(block), Some(_)) => out.push(block),
            (Some((info, text)), None) => open = Some((info, format!("{text}{line}\n"))),
        }
    }
    assert!(open.is_none(), "a block that does not end");
    out
}

pub(crate) fn of_kind(name: &str, kind: &str) -> Vec<(String, String)> {
    let fits = |info: &str| info == kind || info.starts_with(&format!("{kind} "));
    blocks(&page(name)).into_iter().filter(|(info, _)| fits(info)).collect()
}

fn only(name: &str, kind: &str) -> String {
    let mut found = of_kind(name, kind);
    assert_eq!(found.len(), 1, "{name}: {kind}");
    found.remove(0).1
}

/// The rows of the table below this head, as cells.
pub(crate) fn table(text: &str, head: &str) -> Vec<Vec<String>> {
    let mut lines = text.lines().skip_while(|line| *line != head);
    assert_eq!(lines.next(), Some(head));
    let rows = lines.skip(1).take_while(|line| line.starts_with('|'));
    // A bar in a cell is written with a backslash.
    rows.map(|row| {
        let row = row.replace("\\|", "\u{1}");
        row.trim().trim_matches('|').split('|').map(|cell| cell.trim().replace('\u{1}', "|")).collect()
    })
    .collect()
}

/// A task that Ada holds with fence 1, and one that is to be handed over.
fn prepared(ttl: &str) -> Home {
    let home = Home::new().with_env("AGENT_EXIT_PROTOCOL_ENABLED", "true");
    home.run(&["task", "new", "Limit the upload size", "--id", PARENT, "--ready"]).expect(0);
    home.run(&["task", "new", "Test the limit", "--id", CHILD, "--ready"]).expect(0);
    home.run(&["task", "claim", PARENT, "--agent", "ada", "--ttl", ttl]).expect(0);
    home
}

fn task(home: &Home) -> Value {
    serde_json::from_str(&home.run(&["task", "show", PARENT, "--json"]).stdout).unwrap()
}

#[test]
fn every_block_of_json_is_of_a_kind_that_is_tested() {
    let kinds = ["envelope", "handoff", "run_result", "exit", "run", "heartbeat"];
    for name in ["aof.md", "exit-signal.md", "tasks.md"] {
        for (info, text) in blocks(&page(name)).iter().filter(|(info, _)| info.starts_with("json")) {
            let kind = info.split(' ').nth(1).unwrap_or_default();
            assert!(kinds.contains(&kind), "{name}: a block of {info:?}");
            serde_json::from_str::<Value>(text).unwrap_or_else(|e| panic!("{name}: {e}: {text}"));
        }
    }
}

#[test]
fn every_message_on_the_page_is_answered_as_the_page_says() {
    let messages = of_kind("aof.md", "json envelope");
    let request = messages.iter().find(|(_, text)| text.contains("handoff.request")).unwrap().1.clone();
    let mut types = Vec::new();
    for (info, text) in &messages {
        let home = prepared("10m");
        let value: Value = serde_json::from_str(text).unwrap();
        let kind = value["type"].as_str().unwrap().to_owned();
        if kind == "handoff.accepted" || kind == "handoff.rejected" {
            home.run_with(&["send", "-"], request.clone()).expect(0);
        }
        let ended = home.run_with(&["send", "-", "--json"], text.clone());
        let answer = ended.object();
        match info.split(' ').nth(2) {
            None => assert_eq!((ended.code, &answer["accepted"]), (Some(0), &true.into()), "{answer} {text}"),
            Some(reason) => {
                assert_eq!((ended.code, &answer["reason"]), (Some(4), &reason.into()), "{answer} {text}");
            }
        }
        if kind == "handoff.request" {
            let written = home.data().join(format!("tasks/ready/{CHILD}/inputs/handoff.json"));
            assert_eq!(fs::read_to_string(written).unwrap(), only("aof.md", "json handoff"));
        }
        types.push(kind);
    }
    types.sort();
    types.dedup();
    assert_eq!(
        types,
        ["completion.report", "handoff.accepted", "handoff.rejected", "handoff.request", "status.update"]
    );
}

#[test]
fn the_result_file_on_the_page_counts_when_its_agent_is_silent() {
    let home = prepared("1s");
    let dir = home.data().join("runs").join(PARENT);
    let run: Value = serde_json::from_slice(&fs::read(dir.join("run.json")).unwrap()).unwrap();
    let mut result: Value = serde_json::from_str(&only("aof.md", "json run_result")).unwrap();
    result["runId"] = run["runId"].clone();
    fs::write(dir.join("run_result.json"), result.to_string()).unwrap();
    crate::support::until("the time of the lease is over", || {
        std::thread::sleep(Duration::from_millis(50));
        home.run(&["task", "log", CHILD, "looking"]).expect(0);
        task(&home)["status"] == "review"
    });
    let moved = home.events().into_iter().rfind(|event| event["type"] == "task.transitioned").unwrap();
    assert_eq!(moved["payload"]["reason"], "lease_expired_partial");
}

#[test]
fn every_reason_is_in_the_table() {
    let rows = table(&page("aof.md"), "| reason | why | what to do |");
    let listed: Vec<String> = rows.iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    let known: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(listed, known);
}

#[test]
fn every_signal_on_the_page_is_one_and_every_error_is_word_for_word() {
    let home = Home::empty().with_env("AGENT_EXIT_PROTOCOL_ENABLED", "true");
    let check = |text: &str| home.run_with(&["exit", "check", "-", "--json"], text).object();
    let signals = of_kind("exit-signal.md", "json exit");
    for (_, text) in &signals {
        assert_eq!(check(text)["valid"], true, "{text}");
    }
    let base: Value = serde_json::from_str(&signals[0].1).unwrap();
    let mut tested = 0;
    for row in table(&page("exit-signal.md"), "| different | error |") {
        let answer = |signal: &str| check(signal)["error"].as_str().unwrap_or("valid").to_owned();
        let error = row[1].trim_matches('`');
        let Ok(Value::Object(changes)) = serde_json::from_str(row[0].trim_matches('`')) else {
            match row[0].as_str() {
                "the switch is off" => {
                    let off = Home::empty().run_with(&["exit", "check", "-", "--json"], signals[0].1.clone());
                    assert_eq!(off.object()["error"], error);
                }
                "more than 64 KiB" => assert_eq!(answer(&" ".repeat(65537)), error),
                "no JSON" => assert!(answer("{").starts_with(error.trim_end_matches('…'))),
                _ => {
                    let mut signal = base.clone();
                    signal["notes"] = "x".repeat(10241).into();
                    assert_eq!(answer(&signal.to_string()), error);
                }
            }
            continue;
        };
        let mut signal = base.clone();
        for (key, value) in changes {
            match value {
                Value::Null => drop(signal.as_object_mut().unwrap().remove(&key)),
                value => signal[key] = value,
            }
        }
        assert_eq!(answer(&signal.to_string()), error);
        tested += 1;
    }
    assert!(tested > 10, "{tested}");
}

#[test]
fn the_evidence_on_the_page_is_taken_without_a_warning() {
    let home = prepared("10m");
    let outputs = home.data().join(format!("tasks/in-progress/{PARENT}/outputs"));
    fs::write(outputs.join("evidence.yaml"), only("exit-signal.md", "yaml evidence")).unwrap();
    fs::write(outputs.join("tests.log"), "12 passed").unwrap();
    fs::write(outputs.join("change.diff"), "+limit").unwrap();
    let signal = of_kind("exit-signal.md", "json exit").remove(0).1;
    let answer = home.run_with(&["exit", "submit", "--task", PARENT, "-", "--json"], signal.clone()).object();
    assert_eq!(answer["accepted"], true, "{answer}");
    assert_eq!(answer["warnings"], Value::Array(Vec::new()), "{answer}");
    // Again, by then without a lease: answered in the same way. Another one is told why not.
    let again = home.run_with(&["exit", "submit", "--task", PARENT, "-", "--json"], signal.clone()).object();
    assert_eq!((&again["accepted"], &again["next_phase"]), (&true.into(), &"CI_PENDING".into()));
    let text = page("exit-signal.md");
    let refusals = table(&text, "| the task | error |");
    let error = |task: &str| {
        let row = refusals.iter().find(|row| row[0] == task).unwrap();
        row[1].trim_matches('`').replace("\u{1}", "|")
    };
    let submit = |task: &str, phase: &str| {
        let other = signal.replace("IMPLEMENTATION", phase);
        let ended = home.run_with(&["exit", "submit", "--task", task, "-", "--json"], other);
        ended.expect(4);
        ended.object()["error"].as_str().unwrap().to_owned()
    };
    assert_eq!(submit(PARENT, "REVIEW"), error("waits for CI").replace("``", ""));
    assert_eq!(submit(CHILD, "IMPLEMENTATION"), error("is held by nobody"));
}

#[test]
fn the_tables_of_statuses_and_phases_are_those_of_the_code() {
    let statuses = fs::read_to_string(root().join("crates/core/src/task/statuses.md")).unwrap();
    let phases = fs::read_to_string(root().join("crates/core/src/protocol/phases.md")).unwrap();
    for (name, head, source) in [
        ("tasks.md", "| from | to |", &statuses),
        ("tasks.md", "| phase | waits in | an agent may claim it there |", &statuses),
        ("exit-signal.md", "| phase completed | exit reason | next phase |", &phases),
    ] {
        assert_eq!(table(&page(name), head), table(source, head), "{name}: {head}");
    }
}

fn keys(value: &Value) -> BTreeSet<&String> {
    value.as_object().unwrap().keys().collect()
}

#[test]
fn the_files_on_the_page_have_the_keys_of_real_ones() {
    let home = prepared("10m");
    home.run(&["task", "beat", PARENT, "--agent", "ada", "--fence", "1"]).expect(0);
    for (kind, file) in [("json run", "run.json"), ("json heartbeat", "run_heartbeat.json")] {
        let written = fs::read(home.data().join("runs").join(PARENT).join(file)).unwrap();
        let written: Value = serde_json::from_slice(&written).unwrap();
        let shown: Value = serde_json::from_str(&only("tasks.md", kind)).unwrap();
        assert_eq!(keys(&shown), keys(&written), "{file}");
        if kind == "json run" {
            assert_eq!(shown["artifactPaths"], written["artifactPaths"]);
        }
    }
    // Every key that a task's file can have is in the table.
    let rows = table(&page("tasks.md"), "| key | written by | value |");
    let listed: Vec<String> =
        rows.iter().flat_map(|row| row[0].split(", ").map(|key| key.trim_matches('`').to_owned())).collect();
    let beside = ["body", "lastRun", "worktree"];
    for key in task(&home).as_object().unwrap().keys().filter(|key| !beside.contains(&key.as_str())) {
        assert!(listed.contains(key), "{key}");
    }
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |out, word| out + &word[..1].to_uppercase() + &word[1..])
}

/// The payload keys of each type, as the source declares them.
fn declared() -> BTreeMap<String, String> {
    let mut structs = BTreeMap::new();
    for part in EVENTS.split("fields!(").skip(1) {
        let part = part.split(");\n").next().unwrap();
        let (before, body) = part.split_once('{').unwrap();
        let name = before.split_whitespace().next_back().unwrap().to_owned();
        let (mut list, mut attribute) = (Vec::new(), String::new());
        for piece in body
            .split('\n')
            .flat_map(|line| if line.contains("#[") { vec![line] } else { line.split(", ").collect() })
        {
            let piece = piece.trim().trim_end_matches([',', '}', ' ']);
            if piece.starts_with("#[") {
                attribute.push_str(piece);
            } else if let Some((field, _)) = piece.split_once(": ").filter(|_| !piece.starts_with("//")) {
                let renamed = attribute.split("rename = \"").nth(1).and_then(|rest| rest.split('"').next());
                let plain = if before.contains("snake") { field.to_owned() } else { camel(field) };
                let key = renamed.map_or(plain, str::to_owned);
                let mark = if attribute.contains("default") { "?" } else { "" };
                list.push(format!("`{key}`{mark}"));
                attribute.clear();
            }
        }
        structs.insert(name, list.join(", "));
    }
    let mut out = BTreeMap::new();
    for line in EVENTS.lines().filter(|line| line.starts_with("    ") && line.contains(") = \"")) {
        let (variant, name) = line.split_once(") = ").unwrap();
        let fields = variant.split_once('(').unwrap().1;
        let name = name.trim_matches(['"', ',']).to_owned();
        out.insert(name, structs[fields].clone());
    }
    out
}

#[test]
fn every_event_of_a_task_is_in_the_table_with_its_keys() {
    let declared = declared();
    let known: Vec<&str> = TaskEvent::TYPES.to_vec();
    assert_eq!(declared.len(), known.len());
    let expected: Vec<Vec<String>> =
        known.iter().map(|name| vec![format!("`{name}`"), declared[*name].clone()]).collect();
    let rows = table(&page("tasks.md"), "| type | payload |");
    let shown: Vec<String> = expected.iter().map(|row| format!("| {} | {} |", row[0], row[1])).collect();
    assert_eq!(rows, expected, "expected:\n{}", shown.join("\n"));
}

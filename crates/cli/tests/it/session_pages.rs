//! The pages about sessions: the table is the machine's, every example has the keys of a real one, and every test that is named exists.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use baton_core::session::{ErrorCode, Reason, StateKind};
use serde_json::Value;

use crate::protocol_pages::{of_kind, page, root, table};
use crate::support::Home;

const PAGE: &str = "sessions.md";

/// A directory with a hook that says something.
fn home() -> Home {
    let home = Home::new();
    let hooks = r#"{"hooks": [{"name": "count", "command": ["echo", "1 file"]}]}"#;
    fs::write(home.data().join("hooks.json"), hooks).unwrap();
    home
}

/// Everything that a run says, and how it ends.
fn run(home: &Home, prompt: &str, code: i32) -> Vec<Value> {
    let ended = home.run(&["run", prompt, "--agent", "mock", "--yes", "--json"]);
    ended.expect(code);
    ended.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The names of an object's fields, and whether each holds a text, a number, a list or an object.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(|(key, value)| (key.clone(), shape(value))).collect(),
        Value::Array(items) => items.first().map(shape).into_iter().collect(),
        Value::String(_) => "text".into(),
        Value::Number(_) => "number".into(),
        Value::Bool(_) => "yes or no".into(),
        Value::Null => Value::Null,
    }
}

fn on(channel: &str, said: &[Value]) -> Vec<Value> {
    let of_channel = said.iter().filter(|value| value["channel"] == channel);
    of_channel
        .map(|value| {
            let mut value = value.clone();
            let fields = value.as_object_mut().unwrap();
            fields.remove("v");
            fields.remove("channel");
            value
        })
        .collect()
}

/// Each example is of the same form as something that was really said.
fn compare(kind: &str, real: &[Value]) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    for (_, text) in of_kind(PAGE, kind) {
        let shown: Value = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
        let of_type: Vec<&Value> = real.iter().filter(|value| value["type"] == shown["type"]).collect();
        let fits = of_type.iter().any(|value| shape(value) == shape(&shown));
        assert!(fits, "{kind}: shown\n{shown}\nand said\n{of_type:#?}");
        seen.insert(shown["type"].as_str().unwrap_or_default().to_owned());
    }
    seen
}

#[test]
fn every_event_on_the_page_has_the_form_of_a_real_one() {
    let home = home();
    let mut said = run(&home, "hello write permission complete done", 0);
    said.extend(run(&home, "tool crash 3 2", 6));
    let (states, streams) = (on("agent:state_event", &said), on("agent:stream_event", &said));
    let types = |all: &[Value]| -> BTreeSet<String> {
        all.iter().map(|value| value["type"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(compare("json state", &states), types(&states), "each type is shown, and said");
    let shown = compare("json stream", &streams);
    assert_eq!(shown, types(&streams));
    let text = page(PAGE);
    let listed: BTreeSet<String> =
        table(&text, "| type | payload |").iter().map(|row| row[0].trim_matches('`').to_owned()).collect();
    assert!(shown.is_subset(&listed), "{listed:?}");
    // In order and without a gap within a stream, and nothing after its end.
    let mut last: BTreeMap<String, (u64, bool)> = BTreeMap::new();
    for event in &streams {
        let stream = event["streamId"].as_str().unwrap().to_owned();
        let (seq, is_over) = last.get(&stream).copied().unwrap_or((0, false));
        assert!(!is_over && event["seq"] == seq + 1, "{event}");
        let ends = event["type"] == "completed" || event["type"] == "error";
        last.insert(stream, (seq + 1, ends));
    }
    assert!(last.values().all(|(_, is_over)| *is_over), "{last:?}");
    // What was told is what was recorded, under the same ids.
    let recorded: BTreeMap<String, Value> = home
        .events()
        .into_iter()
        .map(|event| (event["id"].as_str().unwrap().to_owned(), event["payload"].clone()))
        .collect();
    for mut event in states {
        let payload = &recorded[event["eventId"].as_str().unwrap()];
        for key in ["eventId", "sessionId", "timestampMs", "type"] {
            assert!(event.as_object_mut().unwrap().remove(key).is_some(), "{event}");
        }
        assert_eq!(event, *payload);
    }
}

#[test]
fn the_end_on_the_page_is_a_real_one() {
    let home = home();
    let said = run(&home, "tool crash 3 2", 6);
    let ended = home.events().into_iter().rfind(|event| event["type"] == "session.ended").unwrap();
    let payload = &ended["payload"];
    let examples = of_kind(PAGE, "json ended");
    let shown: Value = serde_json::from_str(&examples[0].1).unwrap();
    assert_eq!(shape(&shown), shape(payload), "{payload}");
    for key in ["reason", "terminated_by", "message", "exit_code", "stderr", "cause", "last_tool"] {
        assert_eq!(shown[key], payload[key], "{key}");
    }
    let last = said.last().unwrap();
    assert_eq!((&last["type"], &last["terminationInfo"]), (&"run.ended".into(), payload));
    let lines = compare("json run", &said);
    assert_eq!(lines, BTreeSet::from(["run.started", "session.ended", "run.ended"].map(str::to_owned)));
    assert_eq!(said[0]["type"], "run.started", "before anything else");
    let session = last["sessionId"].as_str().unwrap();
    assert_eq!(home.json(&["session", "show", session])["terminationInfo"], *payload);
    // More than twice fifty lines: both ends, and how many there were.
    let last = run(&home, "crash 3 120", 6).pop().unwrap();
    let stderr = &last["terminationInfo"]["stderr"];
    let lines = |part: &str| stderr[part].as_str().unwrap().lines().count();
    assert_eq!((lines("head"), lines("tail")), (50, 50));
    assert_eq!((&stderr["truncated"], &stderr["total_lines"]), (&true.into(), &120.into()));
}

#[test]
fn the_table_of_transitions_is_the_machine_s() {
    let source = fs::read_to_string(root().join("crates/core/src/session/transitions.md")).unwrap();
    let head = "| from | what comes | when | to (reason) | then |";
    assert_eq!(table(&page(PAGE), head), table(&source, head));
    let states = table(&page(PAGE), "| state | what it means | what it waits for |");
    let listed: Vec<&str> = states.iter().map(|row| row[0].trim_matches('`')).collect();
    assert_eq!(listed, StateKind::ALL.iter().map(|kind| kind.as_str()).collect::<Vec<_>>());
}

#[test]
fn every_reason_of_a_state_change_is_on_the_page() {
    let first = |head: &str| -> Vec<String> {
        table(&page(PAGE), head).iter().map(|row| row[0].trim_matches('`').to_owned()).collect()
    };
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(first("| reason | the session goes on because |"), reasons);
    let codes: Vec<&str> = ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(first("| code | source | what follows |"), codes);
}

fn sources(dir: &Path, out: &mut String) {
    for entry in fs::read_dir(dir).unwrap() {
        let path: PathBuf = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            out.push_str(&fs::read_to_string(path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let mut all = String::new();
    sources(&root().join("crates"), &mut all);
    let text = page(PAGE);
    let amended = table(&text, "| | the draft | Baton | why | shown by |");
    let wrong = table(&text, "| there | here | shown by |");
    let named = amended.iter().map(|row| &row[4]).chain(wrong.iter().map(|row| &row[2]));
    let mut count = 0;
    for name in named.flat_map(|cell| cell.split(", ")) {
        let name = name.trim_matches('`');
        assert!(all.contains(&format!("fn {name}()")), "there is no test {name}");
        count += 1;
    }
    assert!(count > 30, "{count}");
}

#[test]
fn every_word_of_the_mock_is_in_the_reference() {
    let source = include_str!("../../src/commands/mock_agent/turn.rs");
    let known = source.lines().filter_map(|line| {
        let (word, rest) = line.trim().strip_prefix('"')?.split_once("\" => ")?;
        (line.starts_with("            \"") && !rest.is_empty()).then(|| word.to_owned())
    });
    let page = fs::read_to_string(root().join("docs/reference/harnesses.md")).unwrap();
    let first = |row: &Vec<String>| row[0].split('`').nth(1).unwrap().to_owned();
    let listed: BTreeSet<String> = table(&page, "| word | does |").iter().map(first).collect();
    assert_eq!(listed, known.collect::<BTreeSet<String>>());
}

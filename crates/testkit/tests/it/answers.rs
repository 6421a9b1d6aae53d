//! What players of a guarded run answer: the reader, the published schema and the page say the same of it.
//!
//! The schema is judged by an implementation that knows nothing of Baton (`jsonschema_rs`, which comes with schemathesis): of the fixtures, of the
//! examples on the page, and of everything that one change makes of a good answer.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use baton_core::Role;
use baton_core::guard::{Begun, Policy, Profile, Reply, Run, Said, Step, Team};
use baton_core::limits::{ARTIFACTS_MAX, GUARD_ITEMS_MAX, GUARD_REPLY_ITEMS_MAX, GUARD_TEXT_CHARS_MAX};
use baton_core::roles::OWN_AGENT;
use serde_json::{Map, Value, json};

/// Reads the schema from its argument and a value from each line, and says `true` or `false` of each.
const JUDGE: &str = "
import json, sys
import jsonschema_rs
schema = jsonschema_rs.Draft202012Validator(json.load(open(sys.argv[1])))
for line in sys.stdin:
    print('true' if schema.is_valid(json.loads(line)) else 'false')
";

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The fixtures of a folder, each with what its name says before the dashes.
fn fixtures(folder: &str) -> Vec<(String, String, Value)> {
    let dir = root().join("fixtures/answers").join(folder);
    let mut all: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    let one = |path: PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let first = name.split("--").next().unwrap().to_owned();
        (name, first, serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap())
    };
    all.into_iter().map(one).collect()
}

/// A run that has just begun.
fn run() -> Run {
    let name = |name: &str| name.parse().unwrap();
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("cleo"), auditor: name("dora") };
    let step = Step::Begun(Begun { policy: Policy::of(Profile::Default), team });
    let said = Said {
        event_type: step.event_type(),
        step: Some(&step),
        agent: OWN_AGENT,
        role: Role::System,
        key: None,
        seq: 2,
        seen: None,
        cited: &[],
    };
    Run::begin(&said).unwrap()
}

fn take(answer: &Value) -> Result<Reply, String> {
    let object = answer.as_object().cloned().unwrap_or_default();
    Reply::read(&object, &run()).map_err(|error| error.to_string())
}

/// What the schema says of each.
fn judged(answers: &[Value]) -> Vec<bool> {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut child = Command::new(&python)
        .args(["-c", JUDGE])
        .arg(root().join("docs/reference/roles.schema.json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{python}: {e}; run `make test`, which sets it up"));
    let mut stdin = child.stdin.take().unwrap();
    let lines: String = answers.iter().map(|answer| format!("{answer}\n")).collect();
    let writer = std::thread::spawn(move || stdin.write_all(lines.as_bytes()));
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap().unwrap();
    assert!(ended.status.success(), "{python} has no jsonschema_rs? `make test` sets it up");
    let said = String::from_utf8(ended.stdout).unwrap();
    assert_eq!(said.lines().count(), answers.len());
    said.lines().map(|line| line == "true").collect()
}

/// Where the reader and the schema do not agree.
fn differences(answers: &[Value]) -> Vec<String> {
    let differs = |(answer, fits): (&Value, bool)| {
        let taken = take(answer);
        let text: String = answer.to_string().chars().take(300).collect();
        (taken.is_ok() != fits).then(|| format!("{text}: read {taken:?}, the schema says {fits}"))
    };
    answers.iter().zip(judged(answers)).filter_map(differs).collect()
}

fn kind(reply: &Reply) -> &'static str {
    match reply {
        Reply::Proposal(_) => "proposal",
        Reply::Review(_) => "review",
        Reply::IntentReview(_) => "intent-review",
        Reply::Intent(_) => "intent",
        Reply::Claims(_) => "claims",
        Reply::Challenges(_) => "challenges",
        Reply::Stands(_) => "stands",
        Reply::Verdict { .. } => "verdict",
    }
}

#[test]
fn good_answers_are_taken_as_what_they_are_and_bad_ones_refused_for_what_is_wrong_with_them() {
    let (good, bad) = (fixtures("good"), fixtures("bad"));
    let mut kinds = BTreeSet::new();
    for (name, first, answer) in &good {
        let reply = take(answer).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(kind(&reply), first, "{name}");
        kinds.insert(kind(&reply));
    }
    assert_eq!(kinds.len(), 8, "each kind: {kinds:?}");
    for (name, first, answer) in &bad {
        let error = take(answer).expect_err(name);
        assert!(error.starts_with(&format!("payload.{first}: expected ")), "{name}: {error}");
    }
    let answers: Vec<Value> = good.iter().chain(&bad).map(|(_, _, answer)| answer.clone()).collect();
    let found = judged(&answers);
    let (fits, others) = found.split_at(good.len());
    assert!(fits.iter().all(|fits| *fits), "{fits:?}");
    assert!(others.iter().all(|fits| !fits), "{others:?}");
}

/// What stands in the place of something, or beside it.
fn others() -> Vec<Value> {
    let long = "x".repeat(GUARD_TEXT_CHARS_MAX);
    let (id, hash) = ("x".repeat(128), "0a".repeat(32));
    let many = |item: &Value, count: usize| Value::Array(vec![item.clone(); count]);
    let claim = json!({"claim_text": "t", "confidence": 0.5});
    vec![
        Value::Null,
        json!(true),
        json!(0),
        json!(-0.1),
        json!(1.1),
        json!(""),
        json!(" \n"),
        json!("a b"),
        json!("p1\n"),
        json!(long),
        json!("ä".repeat(GUARD_TEXT_CHARS_MAX)),
        json!(long + "x"),
        json!(id),
        json!(id.clone() + "x"),
        json!(hash),
        json!(hash.to_uppercase()),
        json!([]),
        json!({}),
        json!([1]),
        json!([" "]),
        many(&json!("x"), GUARD_ITEMS_MAX),
        many(&json!("x"), GUARD_ITEMS_MAX + 1),
        many(&json!(hash), ARTIFACTS_MAX),
        many(&json!(hash), ARTIFACTS_MAX + 1),
        many(&claim, GUARD_REPLY_ITEMS_MAX),
        many(&claim, GUARD_REPLY_ITEMS_MAX + 1),
    ]
}

/// Everything that one change at one place makes of a value.
fn changed(value: &Value) -> Vec<Value> {
    let mut out = others();
    match value {
        Value::Object(fields) => {
            for (name, inner) in fields {
                let with = |inner: Option<Value>| {
                    let mut fields: Map<String, Value> = fields.clone();
                    match inner {
                        Some(inner) => drop(fields.insert(name.clone(), inner)),
                        None => drop(fields.remove(name)),
                    }
                    Value::Object(fields)
                };
                out.push(with(None));
                out.extend(changed(inner).into_iter().map(|inner| with(Some(inner))));
            }
            let beside = |name: &str| {
                let mut fields = fields.clone();
                fields.entry(name).or_insert(json!("x"));
                Value::Object(fields)
            };
            out.extend(["proposal_id", "intent_id", "claim_id", "revises", "other", "stands"].map(beside));
        }
        Value::Array(items) => {
            for (at, inner) in items.iter().enumerate() {
                let with = |inner: Value| {
                    let mut items = items.clone();
                    items[at] = inner;
                    Value::Array(items)
                };
                out.extend(changed(inner).into_iter().map(with));
            }
        }
        _ => {}
    }
    out
}

#[test]
fn the_reader_and_the_schema_agree_on_every_change_of_a_good_answer() {
    let good = fixtures("good");
    let answers: Vec<Value> = good.iter().flat_map(|(_, _, answer)| changed(answer)).collect();
    let answers: Vec<Value> = answers.into_iter().filter(Value::is_object).collect();
    let taken = answers.iter().filter(|answer| take(answer).is_ok()).count();
    let found = differences(&answers);
    println!("{} answers, {taken} of them are taken, {} differences", answers.len(), found.len());
    assert!(found.is_empty(), "{}: {:#?}", found.len(), &found[..found.len().min(10)]);
    assert!(taken > 100 && answers.len() - taken > 1000, "{taken} of {}", answers.len());
}

#[test]
fn every_example_on_the_page_is_an_answer() {
    let page = read("docs/reference/roles.md");
    let blocks = page.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let answers: Vec<Value> = blocks.map(|text| serde_json::from_str(text).unwrap()).collect();
    let kinds: BTreeSet<&str> = answers.iter().map(|answer| kind(&take(answer).unwrap())).collect();
    assert_eq!(kinds.len(), 8, "each kind: {kinds:?}");
    assert!(judged(&answers).into_iter().all(|fits| fits));
}

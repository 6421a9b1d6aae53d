//! `baton trace export --format in-toto`: claims and final statements for others, checked by libraries that know nothing of Baton.
//!
//! `make test` gives Python the packages that `tools/check_attestations.py` needs; without them the test says how to get them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_ledger::attest;
use baton_ledger::hash::sha256;
use baton_store::{Layout, Options, Workspace};
use serde_json::{Value, json};

use crate::story::Stage;
use crate::support::Home;
use crate::web_support::Web;

/// A run with two claims, of which the second takes the place of the first, and a final statement.
fn stated() -> Stage {
    let stage = Stage::new();
    stage.execute("mend the login");
    stage.claim("c1", "it works", &json!({}));
    // Another content, under the name that the first had.
    fs::create_dir(stage.home.work().join("again")).unwrap();
    fs::write(stage.home.work().join("again/output"), "done again").unwrap();
    let evidence = json!([sha256(b"done").to_string(), sha256(b"done again").to_string()]);
    let claim = json!({
        "claim_id": "c2", "claim_text": "it works twice", "confidence": 0.75, "evidence": evidence,
        "executions": ["i2"], "revises": "c1",
    });
    stage.say("cy", "claim_issued", &claim, &["output", "again/output"]);
    let statement = json!({"claim_ids": ["c2"], "verdict_text": "it will do"});
    stage.say("cy", "final_statement_signed", &statement, &[]);
    stage
}

fn export(stage: &Stage, file: &str) -> Vec<u8> {
    stage.home.run(&["trace", "export", &stage.run, "--format", "in-toto", "-o", file]).expect(0);
    fs::read(stage.home.work().join(file)).unwrap()
}

/// The statement in an envelope.
fn statement(line: &[u8]) -> Value {
    serde_json::from_slice(&payload(line)).unwrap()
}

fn payload(line: &[u8]) -> Vec<u8> {
    let envelope: Value = serde_json::from_slice(line).unwrap();
    BASE64.decode(envelope["payload"].as_str().unwrap()).unwrap()
}

/// The envelope with another payload and the signature that it had.
fn with_payload(line: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut envelope: Value = serde_json::from_slice(line).unwrap();
    envelope["payload"] = BASE64.encode(payload).into();
    format!("{envelope}\n").into_bytes()
}

fn lines(export: &[u8]) -> Vec<Vec<u8>> {
    export.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect()
}

/// The ledger's public key, and those of agents.
fn public_keys(home: &Home) -> (String, Vec<String>) {
    let events = home.events();
    let public = |event: &Value| event["payload"]["public"].as_str().unwrap().to_owned();
    let bound = events.iter().filter(|event| event["trace"] == "ledger" && event["type"] == "key_bound");
    (public(&events[0]), bound.map(public).collect())
}

/// What Python says of an export: how many attestations, or what is wrong with which.
fn checked(home: &Home, export: &[u8], public: &str, agents: &[String]) -> Result<u64, String> {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    let file = home.path("export");
    fs::write(&file, export).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/check_attestations.py");
    let mut command = Command::new(&python);
    command.arg("-B").arg(script).arg(&file).arg(public);
    command.args(agents.iter().flat_map(|agent| ["--agent", agent.as_str()]));
    let said = command.output().unwrap_or_else(|e| panic!("{python}: {e}"));
    let (out, err) = (String::from_utf8(said.stdout).unwrap(), String::from_utf8(said.stderr).unwrap());
    match said.status.code() {
        Some(0) => Ok(out.trim().parse().unwrap()),
        Some(7) => Err(out),
        _ => panic!("{python}: {err}; run `make test`, which sets it up"),
    }
}

#[test]
fn attestations_hold_for_others_and_whatever_is_changed_is_refused() {
    let stage = stated();
    let home = &stage.home;
    let whole = export(&stage, "run.jsonl");
    let (public, agents) = public_keys(home);
    let check = |export: &[u8]| checked(home, export, &public, &agents);
    let refused = |export: &[u8], why: &str| {
        let said = check(export).expect_err("it was changed");
        assert!(said.contains(why), "expected {why:?}: {said}");
    };
    assert_eq!(check(&whole), Ok(3));
    let all = lines(&whole);
    let one = &all[1];

    // A byte of the payload; the hash of a subject.
    let original = String::from_utf8(payload(one)).unwrap();
    refused(&with_payload(one, original.replace("twice", "thrice").as_bytes()), "VerificationError");
    let (was, is) = (sha256(b"done again").to_string(), sha256(b"something else").to_string());
    let (before, subjects) = original.rsplit_once(r#""subject":"#).unwrap();
    let other_subject = format!(r#"{before}"subject":{}"#, subjects.replace(&was, &is));
    assert_ne!(other_subject, original);
    refused(&with_payload(one, other_subject.as_bytes()), "VerificationError");
    let mut flipped = payload(one);
    for at in (0..flipped.len()).step_by(flipped.len() / 8) {
        flipped[at] ^= 1;
        refused(&with_payload(one, &flipped), "VerificationError");
        flipped[at] ^= 1;
    }
    // Another type of payload, another key, no signature.
    let changed = String::from_utf8(one.clone()).unwrap();
    refused(changed.replace("vnd.in-toto+json", "vnd.in-toto+jsom").as_bytes(), "VerificationError");
    let mut unsigned: Value = serde_json::from_slice(one).unwrap();
    unsigned["signatures"] = json!([]);
    refused(format!("{unsigned}\n").as_bytes(), "VerificationError");
    let said = checked(home, &whole, &agents[0], &agents).expect_err("another key");
    assert!(said.starts_with("line 1: VerificationError"), "{said}");

    // What the ledger's key itself signs is still held against the record.
    let layout = Layout::new(home.data());
    let wait = Duration::from_secs(60);
    let key = Workspace::open(&layout, &home.state(), Options::default(), wait).unwrap().ledger_key.clone();
    let signed = |payload: &str| attest::envelope(payload.as_bytes(), &key);
    assert_eq!(signed(&original), *one, "it is what was exported");
    refused(&signed(&other_subject), "the subjects are not the evidence");
    refused(&signed(&original.replace("twice", "thrice")), "HASH_MISMATCH");
    refused(&signed(&original.replace("urn:baton:claim:v1", "urn:baton:claim:v2")), "another type");
    refused(&signed(&original.replace("Statement/v1", "Statement/v0")), "Wrong statement type");
    // Exchanged, or cut to nothing.
    refused(&[&all[1][..], &all[0], &all[2]].concat(), "out of order");
    assert!(check(b"").is_err());
}

#[test]
fn each_claim_and_the_final_statement_is_about_its_evidence() {
    let stage = stated();
    let whole = export(&stage, "run.jsonl");
    assert_eq!(export(&stage, "again.jsonl"), whole, "two exports are equal");
    let piped = stage.home.run(&["trace", "export", &stage.run, "--format", "in-toto", "-o", "-"]);
    assert_eq!(piped.expect(0).stdout.as_bytes(), whole);
    let told = stage.home.json(&["trace", "export", &stage.run, "--format=in-toto", "-o", "told.jsonl"]);
    let bytes = whole.len();
    assert_eq!(
        told,
        json!({"v": 1, "trace": stage.run, "attestations": 3, "file": "told.jsonl", "bytes": bytes})
    );
    let said = stage.home.run(&["trace", "export", &stage.run, "--format", "in-toto", "-o", "run.jsonl"]);
    assert!(said.stderr.contains(&format!("wrote 3 attestations of {}", stage.run)), "{}", said.stderr);

    let statements: Vec<Value> = lines(&whole).iter().map(|line| statement(line)).collect();
    let subject = |name: &str, content: &str| json!({"name": name, "digest": {"sha256": sha256(content.as_bytes()).to_string()}});
    let both = json!([subject("output", "done"), subject("output (2)", "done again")]);
    let about: Vec<&Value> = statements.iter().map(|statement| &statement["subject"]).collect();
    assert_eq!(about, [&json!([subject("output", "done")]), &both, &both]);
    let types: Vec<&Value> = statements.iter().map(|statement| &statement["predicateType"]).collect();
    assert_eq!(types, ["urn:baton:claim:v1", "urn:baton:claim:v1", "urn:baton:final-statement:v1"]);
    // The predicate is the record as it stands in the ledger.
    let events = stage.home.events();
    assert!(statements.iter().all(|statement| events.contains(&statement["predicate"]["record"])));
    assert_eq!(statements[2]["predicate"]["origin"], events[0]["payload"]["origin"]);

    // What is appended later changes nothing that was attested; a bundle is what it was.
    stage.say("dora", "verification_run_started", &json!({}), &[]);
    assert_eq!(export(&stage, "later.jsonl"), whole);
    stage.home.run(&["trace", "export", &stage.run, "-o", "a.bundle"]).expect(0);
    stage.home.run(&["trace", "export", &stage.run, "--format", "bundle", "-o", "b.bundle"]).expect(0);
    let read = |name: &str| fs::read(stage.home.work().join(name)).unwrap();
    assert_eq!(read("a.bundle"), read("b.bundle"));
    stage.home.run(&["verify", "a.bundle"]).expect(0);
}

#[test]
fn a_trace_without_claims_has_no_attestations_and_says_so() {
    let home = Home::new();
    let trace = home.trace();
    home.append(&trace, "ada", &json!({"type": "note"}));
    for output in ["none.jsonl", "-"] {
        let ended = home.run(&["trace", "export", &trace, "--format", "in-toto", "-o", output]);
        ended.refused(3, "L037", "no claim and no final statement");
        assert_eq!(ended.stdout, "");
    }
    let files = || fs::read_dir(home.work()).unwrap().count();
    assert_eq!(files(), 0, "nothing is left behind");
    let json = home.run(&["trace", "export", &trace, "--format", "in-toto", "-o", "none.jsonl", "--json"]);
    json.refused_json(3, "L037");
    home.run(&["trace", "export", &trace, "--format", "slsa", "-o", "none.jsonl"]).expect(2);
}

#[test]
fn a_server_hands_out_the_same_attestations() {
    let stage = stated();
    let whole = export(&stage, "run.jsonl");
    let none = stage.home.trace();
    let web = Web::start(&stage.home);
    let answer = web.get(&format!("/v1/traces/{}/bundle?format=in-toto", stage.run));
    assert_eq!((answer.status, answer.body.as_slice()), (200, whole.as_slice()));
    let named = answer.header("content-disposition").unwrap_or_default();
    assert!(named.contains(".intoto.jsonl"), "{named}");
    web.get(&format!("/v1/traces/{none}/bundle?format=in-toto")).refuses(404, "L037");
    web.get(&format!("/v1/traces/{none}/bundle?format=other")).refuses(400, "W004");
    assert!(web.get(&format!("/v1/traces/{}/bundle", stage.run)).body.starts_with(b"{\"bundle\":1,"));

    let away = Home::empty()
        .with_env("BATON_SERVER", &format!("http://{}", web.address))
        .with_env("BATON_TOKEN", &web.token)
        .with_env("BATON_DATA_DIR", "");
    let fetched = |name: &str| -> PathBuf { away.work().join(name) };
    let said = away.run(&["trace", "export", &stage.run, "--format", "in-toto", "-o", "run.jsonl"]);
    let wrote = format!("wrote 3 attestations of {}", stage.run);
    assert!(said.expect(0).stderr.contains(&wrote), "{said:?}");
    assert_eq!(fs::read(fetched("run.jsonl")).unwrap(), whole);
    let piped = away.run(&["trace", "export", &stage.run, "--format", "in-toto", "-o", "-"]);
    assert_eq!(piped.expect(0).stdout.as_bytes(), whole);
    away.run(&["trace", "export", &none, "--format", "in-toto", "-o", "no.jsonl"]).expect(3);
    assert!(!fetched("no.jsonl").exists());
    web.serving.stop();
}

//! `fixtures/ledgers/`: one good ledger and tampered ones, each with the verdict that both verifiers must give.
//!
//! The files are made by this test and committed. It compares them, and rewrites them when asked: `BATON_REGENERATE=1`.

use baton_core::json::Sorted;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use baton_ledger::hash::{leaf, sha256};
use baton_ledger::record::Line;
use baton_ledger::verify::{Options, Segments, verify_journal};
use baton_store::Layout;
use baton_store::artifacts::ArtifactDir;
use baton_store::disk::RealDisk;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::journal::segments::SegmentReader;
use baton_testkit::fixtures::{self, Fixture};
use serde_json::{Value, json};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A ledger as files, and what a verifier must say.
struct Ledger {
    name: &'static str,
    files: Files,
    verdict: &'static str,
    /// The first failure, or the warning that matters.
    code: Option<&'static str>,
    line: Option<u64>,
}

/// Names below the data directory, and what is in them.
type Files = BTreeMap<String, Vec<u8>>;

const SEGMENT: &str = "events/00000000000000000001.jsonl";

fn good_files(fixture: &Fixture) -> BTreeMap<String, Vec<u8>> {
    let count = fixture.journal.iter().filter(|b| **b == b'\n').count();
    let mut files = BTreeMap::from([
        (SEGMENT.to_owned(), fixture.journal.clone()),
        (format!("checkpoints/{count:020}"), fixture.checkpoint.clone().into_bytes()),
        (format!("checkpoints/{:020}", count / 2), fixture.early_checkpoint.clone().into_bytes()),
    ]);
    for (hash, bytes) in &fixture.artifacts.0 {
        let name = hash.to_string();
        files.insert(format!("artifacts/sha256/{}/{name}", &name[..2]), bytes.clone());
    }
    files
}

fn ledgers(fixture: &Fixture) -> Vec<Ledger> {
    let lines: Vec<&[u8]> = fixture.journal.split_inclusive(|b| *b == b'\n').collect();
    let count = lines.len();
    let tampered = |name, verdict, code, line, change: &dyn Fn(&mut Files)| {
        let mut files = good_files(fixture);
        change(&mut files);
        Ledger { name, files, verdict, code, line }
    };
    let journal = |bytes: Vec<u8>| {
        move |files: &mut BTreeMap<String, Vec<u8>>| drop(files.insert(SEGMENT.into(), bytes.clone()))
    };
    let mut swapped = lines.clone();
    swapped.swap(5, 6);
    let changed = String::from_utf8(fixture.journal.clone()).unwrap().replacen(
        "\"exit_status\":0",
        "\"exit_status\":1",
        1,
    );
    let newer = [fixture.journal.as_slice(), b"{\"v\":2}\n"].concat();
    let torn = [fixture.journal.as_slice(), b"{\"actor\":{\"ag"].concat();
    let artifact = good_files(fixture).into_keys().find(|name| name.starts_with("artifacts")).unwrap();
    vec![
        tampered("good", "pass-with-warnings", None, None, &|_| ()),
        tampered("tampered-payload", "fail", Some("HASH_MISMATCH"), Some(5), &journal(changed.into_bytes())),
        tampered(
            "tampered-removed",
            "fail",
            Some("SEQUENCE_GAP"),
            Some(6),
            &journal([&lines[..5], &lines[6..]].concat().concat()),
        ),
        tampered(
            "tampered-doubled",
            "fail",
            Some("SEQUENCE_GAP"),
            Some(7),
            &journal([&lines[..6], &lines[5..]].concat().concat()),
        ),
        tampered("tampered-swapped", "fail", Some("SEQUENCE_GAP"), Some(6), &journal(swapped.concat())),
        tampered("tampered-cut", "fail", Some("TAIL_CUT"), None, &journal(lines[..count - 2].concat())),
        tampered("tampered-artifact-missing", "fail", Some("ARTIFACT_MISSING"), Some(5), &|files| {
            drop(files.remove(&artifact))
        }),
        tampered("tampered-artifact-changed", "fail", Some("ARTIFACT_HASH_MISMATCH"), Some(5), &|files| {
            drop(files.insert(artifact.clone(), b"something else".to_vec()));
        }),
        tampered("tampered-checkpoint", "fail", Some("CHECKPOINT_MISMATCH"), None, &|files| {
            let note = fixture.checkpoint.replacen(&format!("\n{count}\n"), &format!("\n{}\n", count - 1), 1);
            files.remove(&format!("checkpoints/{count:020}"));
            files.insert(format!("checkpoints/{:020}", count - 1), note.into_bytes());
        }),
        tampered("torn-tail", "pass-with-warnings", Some("TORN_TAIL"), None, &journal(torn)),
        tampered("newer-version", "unknown", None, None, &journal(newer)),
    ]
}

/// Compares a directory with what it should hold, or makes it so.
fn settle(dir: &Path, files: &BTreeMap<String, Vec<u8>>) {
    if std::env::var_os("BATON_REGENERATE").is_some() {
        let _ = fs::remove_dir_all(dir);
        for (name, bytes) in files {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
    }
    for (name, bytes) in files {
        let found = fs::read(dir.join(name)).unwrap_or_else(|e| panic!("{}: {e}", dir.join(name).display()));
        assert!(
            found == *bytes,
            "{} is not what the code makes; BATON_REGENERATE=1 rewrites it",
            dir.join(name).display()
        );
    }
}

fn ours(dir: &Path) -> Value {
    let layout = Layout::new(dir);
    let open = || -> Result<Box<dyn Segments>, String> {
        Ok(Box::new(SegmentReader::open(Arc::new(RealDisk), &layout).map_err(|e| e.to_string())?))
    };
    let kept = NoteDir::new(Arc::new(RealDisk), &layout).all().unwrap();
    let artifacts = ArtifactDir::new(Arc::new(RealDisk), layout.artifacts());
    verify_journal(&open, Some(&artifacts), &Options { kept, threads: 2, ..Options::default() }).to_json()
}

fn theirs(dir: &Path) -> Value {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    let output = Command::new(&python).arg(root().join("tools/verify.py")).arg(dir).output().unwrap();
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|e| panic!("{python}: {e}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn every_fixture_is_judged_as_it_says_by_both_verifiers() {
    let fixture = fixtures::make();
    for ledger in ledgers(&fixture) {
        let mut files = ledger.files;
        let expected = json!({"verdict": ledger.verdict, "code": ledger.code, "line": ledger.line});
        let expected = serde_json::to_string(&Sorted(&expected)).unwrap();
        files.insert("expected.json".into(), format!("{expected}\n").into_bytes());
        let dir = root().join("fixtures/ledgers").join(ledger.name);
        settle(&dir, &files);
        for (who, report) in [("ours", ours(&dir)), ("theirs", theirs(&dir))] {
            assert_eq!(report["verdict"], ledger.verdict, "{}, {who}: {report}", ledger.name);
            let findings = report["findings"].as_array().unwrap();
            if let Some(code) = ledger.code {
                let found = findings.iter().find(|finding| finding["code"] == code);
                let found =
                    found.unwrap_or_else(|| panic!("{}, {who}: {code} not among {findings:?}", ledger.name));
                if let Some(line) = ledger.line {
                    assert_eq!(found["line"], line, "{}, {who}", ledger.name);
                }
            }
        }
    }
    let files = BTreeMap::from([
        ("trace.bundle".to_owned(), fixture.bundle.clone()),
        ("event.proof".to_owned(), fixture.proof.clone().into_bytes()),
        ("consistency.proof".to_owned(), fixture.consistency.clone().into_bytes()),
        ("trace-head.note".to_owned(), fixture.head.clone().into_bytes()),
    ]);
    settle(&root().join("fixtures/proofs"), &files);
}

#[test]
fn the_protocol_page_shows_the_fixture_s_own_vectors() {
    let fixture = fixtures::make();
    let page = fs::read_to_string(root().join("docs/protocol/ledger.md")).unwrap();
    let first = fixture.journal.split(|b| *b == b'\n').next().unwrap();
    let line = Line::parse(first).unwrap();
    let body = line.body_digest();
    let vectors = [
        ("the first record", line.text.to_owned()),
        ("its bd", body.to_string()),
        ("its hash", line.hash.to_string()),
        ("its leaf", leaf(&line.hash).to_string()),
        ("the journal's SHA-256", sha256(&fixture.journal).to_string()),
        ("the checkpoint", fixture.checkpoint.clone()),
    ];
    let missing: Vec<_> = vectors.iter().filter(|(_, value)| !page.contains(value.trim_end())).collect();
    assert!(missing.is_empty(), "docs/protocol/ledger.md does not show: {missing:#?}");
}

//! The index is only a way to find things: whatever happens to it, nobody is shown a wrong event and nothing wrong is sealed.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::{Digest, Role, Seen};
use baton_ledger::body::Body;
use baton_ledger::hash::sha256;
use baton_ledger::record::Line;
use baton_ledger::seal::Checked;
use baton_ledger::verify::{OpenSegments, Options as VerifyOptions, Segments, Severity, verify_journal};
use baton_store::disk::{Mode, RealDisk};
use baton_store::export::Exporter;
use baton_store::journal::Reader;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::journal::index::Index;
use baton_store::journal::segments::SegmentReader;
use baton_store::registry::{self, signed_own};
use baton_store::{AppendError, FsJournal, History, Journal as _, Layout, Options, ReadError};
use baton_testkit::builders::{agent, decision, event, identity, new_trace, note, secret};
use serde_json::json;
use tempfile::TempDir;

fn options() -> Options {
    // One checkpoint in the middle, so that there are events on both sides of it.
    Options { segment_bytes: 4096, checkpoint_every: 10, ..Options::default() }
}

/// A ledger with keys, two traces and a few events.
fn ledger() -> TempDir {
    let (dir, key, signer) = (tempfile::tempdir().unwrap(), secret(1), secret(2));
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options()).unwrap();
    let (worker, roles) = (agent("worker"), [Role::Executor]);
    registry::bind(&journal, &key, &worker, signer.public(), &roles).unwrap();
    let registered = registry::agent_key(&journal, &worker).unwrap().unwrap();
    for trace in [new_trace(), new_trace()] {
        let mut first = decision(Vec::new());
        registry::preface(&journal, &key, trace, &registered, &mut first).unwrap();
        first.events.push(note(trace, 0, 0));
        journal.append(first).unwrap();
    }
    for n in 0..10 {
        let trace = journal.traces()[1 + (n % 2) as usize].trace;
        journal.append(decision(vec![note(trace, 1, n)])).unwrap();
    }
    journal.close().unwrap();
    dir
}

/// Everything that a reader can ask for, in one list; an answer is a value or an error, never another value.
fn answers(journal: &dyn History, notes: &NoteDir) -> Vec<Result<String, ReadError>> {
    let key = secret(1);
    let exporter = Exporter { journal, key: &key, notes };
    let mut out = vec![Ok(format!("{:?}", journal.traces()))];
    for summary in journal.traces() {
        out.push(journal.keys(summary.trace).map(|keys| format!("{keys:?}")));
        for seq in 1..=summary.seq {
            out.push(journal.read_trace(summary.trace, seq, 1).map(|lines| format!("{lines:?}")));
        }
    }
    for pos in 1..=journal.size() {
        let lines = journal.read(pos, 1);
        let id = lines.as_ref().ok().and_then(|lines| Some(Line::parse(lines[0].text.as_bytes()).ok()?.id));
        out.push(lines.map(|lines| format!("{lines:?}")));
        out.push(match id {
            Some(id) => journal.find(id).map(|found| format!("{found:?}")),
            None => Err(ReadError::Index("not asked".into())),
        });
        out.push(exporter.prove(pos).map_err(|error| ReadError::Index(error.to_string())));
    }
    out
}

fn index_files(dir: &TempDir) -> Vec<PathBuf> {
    let mut files: Vec<_> =
        fs::read_dir(dir.path().join("index")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
}

#[test]
fn a_flipped_bit_in_any_byte_of_the_index_never_shows_anything_wrong() {
    let dir = ledger();
    let layout = Layout::new(dir.path());
    let notes = NoteDir::new(Arc::new(RealDisk), &layout);
    let good: Vec<String> = {
        let reader = Reader::open(Arc::new(RealDisk), &layout).unwrap();
        answers(&reader, &notes).into_iter().map(Result::unwrap).collect()
    };
    for path in index_files(&dir) {
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            fs::write(&path, changed).unwrap();
            let reader = Reader::open(Arc::new(RealDisk), &layout).unwrap();
            let got = answers(&reader, &notes);
            assert_eq!(got.len(), good.len(), "{} byte {at}", path.display());
            for (got, good) in got.iter().zip(&good) {
                assert!(
                    got.as_ref().is_err() || got.as_ref().ok() == Some(good),
                    "{} byte {at}",
                    path.display()
                );
            }
        }
        fs::write(&path, bytes).unwrap();
    }
}

#[test]
fn a_flipped_bit_in_the_index_never_seals_anything_wrong() {
    for (file, step) in [("entries", 41), ("keys", 3), ("nodes", 61), ("traces.1", 23)] {
        let length = fs::metadata(ledger().path().join("index").join(file)).unwrap().len() as usize;
        for at in (0..length).step_by(step) {
            let dir = ledger();
            let (layout, path) = (Layout::new(dir.path()), dir.path().join("index").join(file));
            let mut bytes = fs::read(&path).unwrap();
            bytes[at] ^= 1;
            fs::write(&path, bytes).unwrap();
            let opened = FsJournal::open(Arc::new(RealDisk), &layout, |_| Ok(secret(1)), options());
            let (journal, _) = opened.unwrap_or_else(|e| panic!("{file} byte {at}: {e}"));
            let summary = journal.traces()[1].clone();
            let mut seeing = event(summary.trace, "note", json!({"n": 1}));
            let hash = journal.read_trace(summary.trace, 2, 1).ok();
            let hash = hash.map_or(Digest::ZERO, |lines| Line::parse(lines[0].text.as_bytes()).unwrap().hash);
            seeing.seen = Some(Seen { seq: 2, hash });
            let signer = secret(2);
            let seeing = Checked::just_signed(Body::signed(seeing, &signer).unwrap(), &signer);
            // Either it is refused as unreadable, or everything that was sealed verifies.
            for event in [seeing, note(summary.trace, 1, 99)] {
                let appended = journal.append(decision(vec![event]));
                let is_honest = matches!(appended, Ok(_) | Err(AppendError::Unreadable(_)));
                assert!(is_honest, "{file} byte {at}: {appended:?}");
            }
            journal.close().unwrap();
            let reader = || -> Result<Box<dyn Segments>, String> {
                SegmentReader::open(Arc::new(RealDisk), &layout)
                    .map(|reader| Box::new(reader) as Box<dyn Segments>)
                    .map_err(|e| e.to_string())
            };
            let kept = NoteDir::new(Arc::new(RealDisk), &layout).all().unwrap();
            let options = VerifyOptions { kept, ..VerifyOptions::default() };
            let report = verify_journal(&reader as OpenSegments<'_>, None, &options);
            let mut alarms = report.findings.iter().filter(|found| found.severity > Severity::Warning);
            assert_eq!(alarms.next(), None, "{file} byte {at}");
        }
    }
}

#[test]
fn every_flipped_bit_of_entries_and_nodes_is_found_by_looking_at_all_of_them() {
    let (dir, key) = (ledger(), secret(1));
    let load = || Index::load(&RealDisk, dir.path().join("index"), key.public(), Mode::Read);
    load().unwrap().check().unwrap();
    for file in ["entries", "nodes"] {
        let path = dir.path().join("index").join(file);
        let bytes = fs::read(&path).unwrap();
        // A changed leaf makes another tree; whether it is the journal's is for those who read the journal.
        for at in (0..bytes.len()).filter(|at| file == "entries" || at / 32 == 2) {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            fs::write(&path, changed).unwrap();
            assert!(load().is_none_or(|index| index.check().is_err()), "{file} byte {at}");
        }
        fs::write(&path, bytes).unwrap();
    }
}

/// Changes the index of a ledger, and expects that it is rebuilt from the journal.
fn is_rebuilt(change: impl FnOnce(&TempDir)) {
    let dir = ledger();
    let layout = Layout::new(dir.path());
    change(&dir);
    let (journal, opening) =
        FsJournal::open(Arc::new(RealDisk), &layout, |_| Ok(secret(1)), options()).unwrap();
    assert!(opening.index_rebuilt);
    let trace = journal.traces()[1].trace;
    let closed = baton_core::Payload::TraceClosed { reason: "done".into() };
    journal.append(decision(vec![signed_own(trace, closed, &secret(1)).unwrap()])).unwrap();
}

#[test]
fn an_index_of_an_earlier_form_is_rebuilt() {
    is_rebuilt(|dir| {
        let meta = dir.path().join("index/meta");
        let text = fs::read_to_string(&meta).unwrap();
        fs::write(&meta, text.replace("baton-index 3", "baton-index 2")).unwrap();
    });
}

#[test]
fn an_index_that_the_ledger_did_not_sign_is_rebuilt() {
    // Larger than the journal, and whole, but of another ledger.
    is_rebuilt(|dir| {
        let (other, key) = (tempfile::tempdir().unwrap(), secret(9));
        let layout = Layout::new(other.path());
        let journal =
            FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options()).unwrap();
        for n in 0..50 {
            journal.append(decision(vec![note(new_trace(), 0, n)])).unwrap();
        }
        journal.close().unwrap();
        fs::remove_dir_all(dir.path().join("index")).unwrap();
        fs::rename(other.path().join("index"), dir.path().join("index")).unwrap();
    });
    // The last key event left out, all numbers and hashes made to fit.
    is_rebuilt(|dir| {
        let (keys, meta) = (dir.path().join("index/keys"), dir.path().join("index/meta"));
        let bytes = fs::read(&keys).unwrap();
        let shorter = &bytes[..bytes.len() - 16];
        let text = fs::read_to_string(&meta).unwrap();
        let text = text.replace(&sha256(&bytes).to_string(), &sha256(shorter).to_string());
        let text = text.replacen(&format!(" {}\n", bytes.len()), &format!(" {}\n", shorter.len()), 1);
        fs::write(&keys, shorter).unwrap();
        fs::write(&meta, text).unwrap();
    });
}

#[test]
fn a_key_event_that_was_changed_behind_a_checkpoint_gives_nobody_a_key() {
    let dir = ledger();
    let layout = Layout::new(dir.path());
    let path = layout.segment(1);
    let text = fs::read_to_string(&path).unwrap();
    let (at, old) = text.lines().enumerate().find(|(_, line)| line.contains("key_bound")).unwrap();
    // The same length, so that every other line stays where it is; the hash is made to fit.
    let new = old.replace("\"roles\":[\"executor\"]", "\"roles\":[\"operator\"]");
    let line = Line::parse(new.as_bytes()).unwrap();
    let new = new.replace(&line.hash.to_string(), &line.link_hash(&line.body_digest()).to_string());
    assert!(new != old && new.len() == old.len());
    let changed: String = text
        .lines()
        .enumerate()
        .map(|(n, line)| format!("{}\n", if n == at { &new } else { line }))
        .collect();
    fs::write(&path, changed).unwrap();
    let reader = Reader::open(Arc::new(RealDisk), &layout).unwrap();
    assert!(matches!(reader.keys(baton_core::TraceId::Ledger), Err(ReadError::Damaged { pos: 2, .. })));
    assert!(registry::agent_key(&reader, &agent("worker")).is_err());
}

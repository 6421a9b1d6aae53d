//! Opening: what is mended, what is refused, and that a refusal changes nothing.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use baton_core::Role;
use baton_core::guard::{Begun, Policy, Profile, Proposal, Rule, Step, Team};
use baton_ledger::body::Body;
use baton_ledger::hash::sha256;
use baton_ledger::record::Line;
use baton_ledger::seal::{Checked, Refusal};
use baton_store::disk::RealDisk;
use baton_store::export::Exporter;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::{AppendError, FsJournal, History as _, Journal as _, Layout, OpenError, Options, registry};
use baton_testkit::builders::{decision, event, identity, new_trace, note, secret};
use baton_testkit::deadline::within;
use tempfile::TempDir;

fn options() -> Options {
    Options { segment_bytes: 4096, checkpoint_every: 1_000_000, ..Options::default() }
}

/// A closed ledger of `events` notes in several segments.
fn ledger(events: u64) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    let key = secret(1);
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options()).unwrap();
    let trace = new_trace();
    for n in 0..events {
        journal.append(decision(vec![note(trace, 0, n)])).unwrap();
    }
    journal.close().unwrap();
    dir
}

fn open(dir: &TempDir) -> Result<FsJournal, OpenError> {
    let layout = Layout::new(dir.path());
    FsJournal::open(Arc::new(RealDisk), &layout, |_| Ok(secret(1)), options()).map(|(journal, _)| journal)
}

/// Every file below a directory with its hash.
fn fingerprint(dir: &Path) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut dirs = vec![dir.to_owned()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                dirs.push(path);
            } else {
                out.push((path.display().to_string(), sha256(&fs::read(&path).unwrap()).to_string()));
            }
        }
    }
    out.sort();
    out
}

fn segments(dir: &TempDir) -> Vec<std::path::PathBuf> {
    let mut paths: Vec<_> =
        fs::read_dir(dir.path().join("events")).unwrap().map(|e| e.unwrap().path()).collect();
    paths.sort();
    paths
}

fn forget_index(dir: &TempDir) {
    fs::remove_dir_all(dir.path().join("index")).unwrap();
}

/// Damages the ledger, and expects that opening refuses and changes nothing.
fn refused(events: u64, damage: impl FnOnce(&TempDir)) -> OpenError {
    let dir = ledger(events);
    damage(&dir);
    let before = fingerprint(dir.path());
    let error = open(&dir).map(drop).unwrap_err();
    assert_eq!(fingerprint(dir.path()), before, "a refusal changed something: {error}");
    error
}

#[test]
fn a_lost_index_is_rebuilt_and_nothing_else_changes() {
    let dir = ledger(50);
    forget_index(&dir);
    let before = fingerprint(&dir.path().join("events"));
    let journal = open(&dir).unwrap();
    assert_eq!(journal.size(), 51);
    journal.close().unwrap();
    assert_eq!(fingerprint(&dir.path().join("events")), before);
    assert!(dir.path().join("index/meta").exists());
}

#[test]
fn a_damaged_index_is_rebuilt() {
    for file in ["meta", "entries", "nodes", "traces.1"] {
        let dir = ledger(50);
        let path = dir.path().join("index").join(file);
        let mut bytes = fs::read(&path).unwrap();
        let last = bytes.len() - 20;
        bytes[last] ^= 1;
        fs::write(&path, bytes).unwrap();
        let journal = open(&dir).unwrap_or_else(|e| panic!("{file}: {e}"));
        assert_eq!(journal.size(), 51, "{file}");
        let trace = journal.traces()[1].trace;
        journal.append(decision(vec![note(trace, 0, 99)])).unwrap_or_else(|e| panic!("{file}: {e}"));
    }
}

#[test]
fn what_was_being_made_when_its_maker_died_is_removed() {
    let dir = ledger(3);
    let unfinished = ["checkpoints/.latest.1.tmp", "index/.meta.2.tmp", "artifacts/sha256/.artifact.3.tmp"];
    for name in unfinished {
        fs::write(dir.path().join(name), "half").unwrap();
    }
    // A clean end leaves nothing behind, so it is only looked for after another one.
    let segment = &segments(&dir)[0];
    let mut bytes = fs::read(segment).unwrap();
    bytes.extend_from_slice(b"{\"torn");
    fs::write(segment, bytes).unwrap();
    open(&dir).unwrap();
    assert!(unfinished.iter().all(|name| !dir.path().join(name).exists()));
}

#[test]
fn a_torn_tail_is_set_aside_and_recorded() {
    let dir = ledger(10);
    let path = segments(&dir).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend_from_slice(b"{\"actor\":{\"agent\":\"wor");
    fs::write(&path, &bytes).unwrap();
    let journal = open(&dir).unwrap();
    let lines = journal.read(12, 10).unwrap();
    assert_eq!(lines.len(), 1);
    let line = Line::parse(lines[0].text.as_bytes()).unwrap();
    assert_eq!(line.event_type, "ledger.recovered");
    assert!(line.sig.is_some());
    let fields: serde_json::Value = serde_json::from_str(line.payload).unwrap();
    let aside = fs::read(dir.path().join("quarantine").join(fields["quarantine"].as_str().unwrap())).unwrap();
    assert_eq!(aside, b"{\"actor\":{\"agent\":\"wor");
    assert_eq!(fields["sha256"], sha256(&aside).to_string());
    assert_eq!((&fields["bytes"], &fields["after"]), (&22.into(), &11.into()));
    journal.close().unwrap();
    open(&dir).unwrap();
}

#[test]
fn an_incomplete_decision_is_set_aside_whole() {
    let dir = ledger(3);
    let trace = new_trace();
    let journal = open(&dir).unwrap();
    journal.append(decision((0..4).map(|n| note(trace, 1, n)).collect())).unwrap();
    drop(journal);
    let path = segments(&dir).pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    let lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
    fs::write(&path, lines[..lines.len() - 1].concat()).unwrap();
    let journal = open(&dir).unwrap();
    assert_eq!(journal.size(), 5, "three of four events are not a decision; the fifth is the recovery");
    assert!(journal.trace(trace).is_none());
}

#[test]
fn pre_fill_after_a_crash_is_no_damage() {
    let dir = ledger(3);
    let path = segments(&dir).pop().unwrap();
    let mut bytes = fs::read(&path).unwrap();
    let length = bytes.len();
    bytes.extend_from_slice(&[b'\n'; 10_000]);
    fs::write(&path, &bytes).unwrap();
    let journal = open(&dir).unwrap();
    assert_eq!(journal.size(), 4);
    journal.close().unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), length, "a clean close cuts it");
}

#[test]
fn a_changed_line_that_was_durable_is_refused() {
    let error = refused(40, |dir| {
        let path = &segments(dir)[1];
        let text = fs::read_to_string(path).unwrap().replacen("\"n\":1", "\"n\":7", 1);
        fs::write(path, text).unwrap();
        forget_index(dir);
    });
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_last_segment_whose_first_decision_is_damaged_is_refused() {
    // It got its name only when that decision was durable, so no crash explains it; the rest must not be overwritten.
    let damages: [fn(&mut Vec<u8>); 4] = [
        |bytes| bytes[100] ^= 1,
        |bytes| bytes.truncate(200),
        |bytes| bytes.fill(b'\n'),
        |bytes| {
            bytes.truncate(200);
            bytes.extend_from_slice(b"\n\n\n");
        },
    ];
    for damage in damages {
        let error = refused(40, |dir| {
            let path = segments(dir).pop().unwrap();
            let mut bytes = fs::read(&path).unwrap();
            damage(&mut bytes);
            fs::write(&path, bytes).unwrap();
            forget_index(dir);
        });
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

#[test]
fn a_changed_line_after_the_last_checkpoint_is_refused_also_with_an_index() {
    let error = refused(40, |dir| {
        let path = &segments(dir)[1];
        let text = fs::read_to_string(path).unwrap().replacen("\"n\":1", "\"n\":7", 1);
        fs::write(path, text).unwrap();
    });
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_missing_segment_is_refused() {
    let missing_middle = refused(40, |dir| fs::remove_file(&segments(dir)[1]).unwrap());
    assert!(matches!(missing_middle, OpenError::Damaged { .. } | OpenError::Cut { .. }), "{missing_middle}");
    let missing_first = refused(40, |dir| fs::remove_file(&segments(dir)[0]).unwrap());
    assert!(matches!(missing_first, OpenError::Damaged { line: 1, .. }), "{missing_first}");
    let missing_last = refused(40, |dir| fs::remove_file(segments(dir).pop().unwrap()).unwrap());
    assert!(matches!(missing_last, OpenError::Damaged { .. } | OpenError::Cut { .. }), "{missing_last}");
}

#[test]
fn a_missing_middle_segment_is_refused_also_without_the_index() {
    let error = refused(40, |dir| {
        fs::remove_file(&segments(dir)[1]).unwrap();
        forget_index(dir);
    });
    assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
}

#[test]
fn a_renamed_or_empty_segment_is_refused() {
    let renamed = refused(40, |dir| {
        let path = segments(dir).pop().unwrap();
        fs::rename(&path, path.with_file_name("00000000000000009999.jsonl")).unwrap();
    });
    assert!(matches!(renamed, OpenError::Damaged { .. } | OpenError::Cut { .. }), "{renamed}");
    let empty = refused(40, |dir| {
        fs::write(segments(dir).pop().unwrap(), b"").unwrap();
        forget_index(dir);
    });
    assert!(matches!(empty, OpenError::Damaged { .. }), "{empty}");
}

#[test]
fn more_than_a_write_can_leave_behind_is_refused_and_not_copied() {
    let endless = |dir: &TempDir, byte: &[u8]| {
        let mut file = fs::OpenOptions::new().append(true).open(segments(dir).pop().unwrap()).unwrap();
        std::io::Write::write_all(&mut file, byte).unwrap();
        file.set_len(1 << 40).unwrap();
    };
    for start in [&b""[..], b"{}\n", b"\n"] {
        let dir = ledger(3);
        endless(&dir, start);
        let error = within(60, "an endless segment", move || open(&dir).map(drop).unwrap_err());
        assert!(matches!(&error, OpenError::Damaged { line: 5, .. }), "{error}");
    }
}

#[test]
fn a_newer_version_is_refused_as_such() {
    let error = refused(5, |dir| {
        let path = segments(dir).pop().unwrap();
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("{\"new\":true,\"v\":2}\n");
        fs::write(&path, text).unwrap();
    });
    assert!(matches!(error, OpenError::Newer(2)), "{error}");
}

#[test]
fn a_tail_that_a_checkpoint_covers_is_never_dropped() {
    let dir = ledger(5);
    let journal = open(&dir).unwrap();
    let notes = baton_store::journal::checkpoints::NoteDir::new(Arc::new(RealDisk), &Layout::new(dir.path()));
    let key = secret(1);
    baton_store::export::Exporter { journal: &journal, key: &key, notes: &notes }.checkpoint().unwrap();
    journal.close().unwrap();
    assert!(dir.path().join("checkpoints/latest").exists(), "opening need not list all checkpoints");
    forget_index(&dir);
    let path = segments(&dir).pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    fs::write(&path, &bytes[..bytes.len() - 10]).unwrap();
    let before = fingerprint(dir.path());
    let error = open(&dir).map(drop).unwrap_err();
    assert!(matches!(error, OpenError::Cut { have: 5, expected: 6, .. }), "{error}");
    assert_eq!(fingerprint(dir.path()), before);
}

#[test]
fn a_changed_last_line_that_a_checkpoint_covers_is_damage_and_not_a_cut() {
    let error = refused(5, |dir| {
        let journal = open(dir).unwrap();
        let (notes, key) = (NoteDir::new(Arc::new(RealDisk), &Layout::new(dir.path())), secret(1));
        Exporter { journal: &journal, key: &key, notes: &notes }.checkpoint().unwrap();
        journal.close().unwrap();
        let last = segments(dir).pop().unwrap();
        let text = fs::read_to_string(&last).unwrap();
        let at = text.rfind("\"n\":4").unwrap();
        fs::write(&last, format!("{}\"n\":5{}", &text[..at], &text[at + 5..])).unwrap();
    });
    assert!(matches!(&error, OpenError::Damaged { line: 6, .. }), "{error}");
}

#[test]
fn every_event_of_a_trace_is_found_by_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let key = secret(1);
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options()).unwrap();
    let traces = [new_trace(), new_trace(), new_trace()];
    for n in 0..300u64 {
        journal.append(decision(vec![note(traces[(n % 7 % 3) as usize], 0, n)])).unwrap();
    }
    let check = |journal: &FsJournal, life: &str| {
        for trace in traces {
            let all = journal.read_trace(trace, 1, 1000).unwrap();
            assert_eq!(all.len() as u64, journal.trace(trace).unwrap().seq);
            for (i, stored) in all.iter().enumerate() {
                let one = journal.read_trace(trace, i as u64 + 1, 1).unwrap();
                assert_eq!(one, std::slice::from_ref(stored), "number {} of {trace}, {life}", i + 1);
            }
        }
    };
    check(&journal, "while writing");
    journal.close().unwrap();
    check(&open(&dir).unwrap(), "reopened");
    forget_index(&dir);
    check(&open(&dir).unwrap(), "rebuilt");
}

#[test]
fn a_writer_under_load_pre_fills_and_a_clean_close_cuts_it() {
    let dir = tempfile::tempdir().unwrap();
    let key = secret(1);
    let layout = Layout::new(dir.path());
    let journal =
        FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, Options::default()).unwrap();
    let trace = new_trace();
    for n in 0..100 {
        journal.append(decision(vec![note(trace, 0, n)])).unwrap();
    }
    let path = segments(&dir).pop().unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.ends_with(b"\n\n\n\n"), "pre-filled with line feeds");
    journal.close().unwrap();
    let bytes = fs::read(&path).unwrap();
    assert!(bytes.ends_with(b"}\n"));
    assert_eq!(bytes.split(|b| *b == b'\n').count(), 102);
}

#[test]
fn a_guarded_run_is_held_to_its_rules_after_opening_anew() {
    let dir = tempfile::tempdir().unwrap();
    let (key, planner) = (secret(1), secret(2));
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options()).unwrap();
    let (run, plain) = (new_trace(), new_trace());
    let name = |name: &str| name.parse().unwrap();
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("cleo"), auditor: name("dora") };
    let begun = Step::Begun(Begun { policy: Policy::of(Profile::Default), team });
    let proposal = |id: &str| {
        let step = Step::Proposed(Proposal {
            proposal_id: id.parse().unwrap(),
            objective: "mend it".into(),
            assumptions: Vec::new(),
            required_tools: Vec::new(),
            expected_evidence: Vec::new(),
            revises: None,
        });
        let mut event =
            event(run, step.event_type(), serde_json::Value::Object(step.to_payload().fields().into_owned()));
        (event.actor.agent, event.actor.role) = (name("ada"), Role::Planner);
        Checked::just_signed(Body::signed(event, &planner).unwrap(), &planner)
    };
    let roles = [Role::Planner];
    registry::bind(&journal, &key, &name("ada"), planner.public(), &roles).unwrap();
    let registered = registry::agent_key(&journal, &name("ada")).unwrap().unwrap();
    let begin = |trace| decision(vec![registry::signed_own(trace, begun.to_payload(), &key).unwrap()]);
    journal.append(begin(run)).unwrap();
    let mut first = decision(Vec::new());
    registry::preface(&journal, &key, run, &registered, &mut first).unwrap();
    first.events.push(proposal("p1"));
    journal.append(first).unwrap();
    for n in 0..3 {
        journal.append(decision(vec![note(plain, 0, n)])).unwrap();
    }
    journal.close().unwrap();
    for forgets in [false, true] {
        if forgets {
            forget_index(&dir);
        }
        let journal = open(&dir).unwrap();
        let taken = journal.append(decision(vec![proposal("p1")])).unwrap_err();
        let rule = |error: AppendError| match error {
            AppendError::Refused(Refusal::Guard(breach)) => breach.rule,
            other => panic!("{other}"),
        };
        assert_eq!(rule(taken), Rule::NewName);
        assert_eq!(rule(journal.append(begin(run)).unwrap_err()), Rule::Beginning);
        // A trace that is none goes on as ever, and becomes none.
        journal.append(decision(vec![note(plain, 0, 9)])).unwrap();
        assert_eq!(rule(journal.append(begin(plain)).unwrap_err()), Rule::Beginning);
        journal.append(decision(vec![proposal(if forgets { "p3" } else { "p2" })])).unwrap();
        journal.close().unwrap();
    }
}

//! Each code of the page's table, reached by the smallest journal that has it, as the first finding. [`super::code_keys`] has those
//! about signatures, keys and roles.

use baton_core::{Digest, Role, TraceId};
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::verify::{Code, KeptNote, Options, Report, Segments, Verdict, verify_journal};
use serde_json::{Value, json};

use crate::forger::{Record, lines, read, reseal};
use crate::reader::{Memory, Shelf, codes, options, shown, verdict, verify, verify_segments};
use crate::writer::{
    Writer, artifact, bound, event, grant, id, ledger, note, other, sample, secret, signed, trace, unsigned,
};

/// Line 1 creates the ledger, line 2 binds key 5 to `worker` in trace 1, line 3 is a claim by it.
pub(crate) fn base() -> Vec<Record> {
    let mut writer = Writer::new();
    writer.append(vec![signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1)]).unwrap();
    let claim = event(3, trace(1), "worker", Role::Executor, other("claim_issued", &json!({})));
    writer.append(vec![signed(claim, 5)]).unwrap();
    read(&writer.bytes)
}

/// One more line: an event that the forger makes up, unsigned.
pub(crate) fn extra(
    n: u64,
    trace: TraceId,
    agent: &str,
    role: &str,
    event_type: &str,
    payload: Value,
) -> Record {
    let record = read(&Writer::new().bytes).remove(0).stripped();
    record
        .set("actor", json!({"agent": agent, "role": role}))
        .set("id", id(n).to_string())
        .set("payload", payload)
        .set("trace", trace.to_string())
        .set("type", event_type)
}

pub(crate) fn system(event_type: &str, payload: Value) -> Record {
    extra(4, trace(1), "baton", "system", event_type, payload)
}

#[track_caller]
pub(crate) fn first(report: &Report, code: Code, line: u64) {
    assert_eq!(verdict(report), (Verdict::Fail, Some(code), line), "{}", shown(report));
}

/// With these records as they stand.
#[track_caller]
pub(crate) fn as_is(records: &[Record], code: Code, line: u64) {
    first(&verify(&lines(records), &options(None)), code, line);
}

/// With these records numbered, linked and hashed anew.
#[track_caller]
pub(crate) fn sealed(records: Vec<Record>, code: Code, line: u64) {
    as_is(&reseal(records), code, line);
}

/// With one more record at the end.
#[track_caller]
pub(crate) fn followed_by(record: Record, code: Code) {
    sealed([base(), vec![record]].concat(), code, 4);
}

#[test]
fn the_base_itself_is_good() {
    assert_eq!(codes(&verify(&lines(&base()), &options(None))), [Code::NoCheckpoint]);
}

#[test]
fn schema_invalid() {
    sealed([base(), vec![system("note", json!({})).set("task", "a b")]].concat(), Code::SchemaInvalid, 4);
    let mut journal = lines(&base());
    journal.extend_from_slice(b"{}\n");
    first(&verify(&journal, &options(None)), Code::SchemaInvalid, 4);
}

#[test]
fn hash_mismatch() {
    for (name, value) in [
        ("at", json!("2026-02-09T21:00:00.777Z")),
        ("payload", json!({"x": 1})),
        ("hash", json!("1".repeat(64))),
    ] {
        let mut records = base();
        records[2] = records[2].clone().set(name, value);
        as_is(&records, Code::HashMismatch, 3);
    }
}

#[test]
fn sequence_gap_by_position_number_or_doubled_id() {
    let mut records = base();
    records[2] = records[2].clone().set("pos", 4).rehash();
    as_is(&records, Code::SequenceGap, 3);
    let mut records = base();
    records[2] = records[2].clone().set("seq", 3).rehash();
    as_is(&records, Code::SequenceGap, 3);
    let doubled = system("note", json!({})).set("id", id(2).to_string());
    followed_by(doubled, Code::SequenceGap);
}

#[test]
fn sequence_gap_by_the_name_of_a_segment() {
    let records = base();
    let (one, two) = (lines(&records[..1]), lines(&records[1..]));
    let check = |segments: &[(u64, &[u8])]| verify_segments(segments, &Shelf::default(), &options(None));
    assert_eq!(codes(&check(&[(1, &one), (2, &two)])), [Code::NoCheckpoint]);
    first(&check(&[(1, &one), (3, &two)]), Code::SequenceGap, 2);
    first(&check(&[(0, &one), (2, &two)]), Code::SequenceGap, 1);
}

#[test]
fn sequence_gap_by_batch_and_commit() {
    let with = |marks: &[(Value, Value)]| {
        let notes =
            (0..marks.len() as u64).map(|n| extra(10 + n, trace(2), "helper", "operator", "note", json!({})));
        let mut records = reseal([base(), notes.collect()].concat());
        let mut prev = "0".repeat(64);
        for (record, (batch, commit)) in records[3..].iter_mut().zip(marks) {
            for (name, mark) in [("batch", batch), ("commit", commit)] {
                if !mark.is_null() {
                    *record = record.clone().set(name, mark.clone());
                }
            }
            *record = record.clone().set("prev", prev).rehash();
            prev = record.text("hash");
        }
        records
    };
    let none = Value::Null;
    let good = [
        (json!([1, 2]), none.clone()),
        (json!([2, 2]), json!(4)),
        (none.clone(), json!(4)),
        (none.clone(), none.clone()),
    ];
    assert_eq!(codes(&verify(&lines(&with(&good)), &options(None))), [Code::NoCheckpoint]);
    for (marks, line) in [
        // A batch that does not start, skips, changes its length, stops early, or is torn into two writes.
        (vec![(json!([2, 2]), none.clone())], 4),
        (vec![(json!([1, 3]), none.clone()), (json!([3, 3]), json!(4))], 5),
        (vec![(json!([1, 3]), none.clone()), (json!([2, 4]), json!(4))], 5),
        (vec![(json!([1, 2]), none.clone()), (none.clone(), json!(4))], 5),
        (vec![(json!([1, 2]), none.clone()), (json!([1, 2]), json!(4))], 5),
        (vec![(json!([1, 2]), none.clone()), (json!([2, 2]), none.clone())], 5),
        // A write that names another start than the line before it.
        (vec![(none.clone(), json!(1))], 4),
        (vec![(none.clone(), none.clone()), (none.clone(), json!(3))], 5),
    ] {
        as_is(&with(&marks), Code::SequenceGap, line);
    }
}

#[test]
fn chain_break_by_predecessor_or_seen() {
    let mut records = base();
    records[2] = records[2].clone().set("prev", "0".repeat(64)).rehash();
    as_is(&records, Code::ChainBreak, 3);
    // The first event of a trace has no predecessor.
    let mut records = base();
    records[1] = records[1].clone().set("prev", "1".repeat(64)).rehash();
    as_is(&records, Code::ChainBreak, 2);
    let head = base()[2].text("hash");
    for (seq, hash) in [(2, "1".repeat(64)), (1, head.clone()), (3, head.clone()), (4, head)] {
        let blind = system("note", json!({})).set("seen", json!({"hash": hash, "seq": seq}));
        followed_by(blind, Code::ChainBreak);
    }
}

#[test]
fn chain_break_where_seen_is_right_but_too_far_back() {
    let mut writer = Writer::new();
    let hashes: Vec<_> =
        (2..=4098).map(|n| writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap()[0].hash).collect();
    let last = extra(4099, trace(1), "helper", "operator", "note", json!({}));
    let seeing =
        |seq: usize| last.clone().set("seen", json!({"hash": hashes[seq - 1].to_string(), "seq": seq}));
    // The last event is number 4098 of its trace.
    let journal = |seq| lines(&reseal([read(&writer.bytes), vec![seeing(seq)]].concat()));
    assert_eq!(codes(&verify(&journal(2), &options(None))), [Code::NoCheckpoint]);
    first(&verify(&journal(1), &options(None)), Code::ChainBreak, 4099);
}

#[test]
fn order_violation() {
    let closed = |n, trace| extra(n, trace, "baton", "system", "trace.closed", json!({"reason": "r"}));
    sealed(
        [base(), vec![closed(4, trace(1)), extra(5, trace(1), "x", "operator", "note", json!({}))]].concat(),
        Code::OrderViolation,
        5,
    );
    sealed([base(), vec![closed(4, trace(1)), closed(5, trace(1))]].concat(), Code::OrderViolation, 5);
    // What such an event has seen is not looked at, right or wrong.
    for (seq, hash) in [(3, base()[2].text("hash")), (3, "1".repeat(64)), (9, "1".repeat(64))] {
        let late = extra(5, trace(1), "x", "operator", "note", json!({}));
        let late = late.set("seen", json!({"hash": hash, "seq": seq}));
        sealed([base(), vec![closed(4, trace(1)), late]].concat(), Code::OrderViolation, 5);
    }
    followed_by(closed(4, TraceId::Ledger), Code::OrderViolation);
    // `ledger.created` anywhere else; its payload is not looked at.
    for (place, payload) in [
        (trace(1), json!({})),
        (trace(2), base()[0].0["payload"].clone()),
        (TraceId::Ledger, json!({"x": 1})),
    ] {
        followed_by(
            extra(4, place, "baton", "system", "ledger.created", payload).signed(&secret(1)),
            Code::OrderViolation,
        );
    }
    // Another first record, or the right one in another trace: nothing else can be judged.
    for wrong in [
        extra(4, TraceId::Ledger, "x", "operator", "note", json!({})),
        base()[0].clone().set("trace", trace(2).to_string()).signed(&secret(1)),
    ] {
        let report = verify(&lines(&reseal([vec![wrong], base()].concat())), &options(None));
        first(&report, Code::OrderViolation, 1);
        assert_eq!(codes(&report), [Code::OrderViolation]);
    }
}

/// A journal that cites two artifacts in line 2.
fn citing() -> (Vec<u8>, String) {
    let mut writer = Writer::new();
    let mut citing = note(2, trace(1));
    citing.artifacts = vec![artifact(b"one", "1"), artifact(b"two", "2")];
    writer.append(vec![unsigned(&citing)]).unwrap();
    (writer.bytes.clone(), writer.checkpoint())
}

#[test]
fn artifacts_missing_differing_or_not_at_hand() {
    let (journal, checkpoint) = citing();
    let check = |shelf: &Shelf| verify_segments(&[(1, &journal)], shelf, &options(Some(&checkpoint)));
    let whole = Shelf::holding(&[b"one", b"two"]);
    assert_eq!(check(&whole).verdict, Verdict::Pass);
    first(&check(&Shelf::holding(&[b"two"])), Code::ArtifactMissing, 2);
    let mut other = whole.clone();
    other.0.values_mut().for_each(|content| content.push(b'!'));
    first(&check(&other), Code::ArtifactHashMismatch, 2);
    other.0.pop_first();
    first(&check(&other), Code::ArtifactMissing, 2);
    // What was good once is good again, but not with another size.
    let mut writer = Writer::new();
    for (n, bytes) in [(2, 3), (3, 3), (4, 2)] {
        let mut citing = note(n, trace(1));
        citing.artifacts = vec![artifact(b"one", "1")];
        citing.artifacts[0].bytes = bytes;
        writer.append(vec![unsigned(&citing)]).unwrap();
    }
    first(&verify_segments(&[(1, &writer.bytes)], &whole, &options(None)), Code::ArtifactHashMismatch, 4);
    // Without the store's artifacts nobody can say, and the report says that.
    let open = || Ok(Box::new(Memory::new(&[(1, &journal)], usize::MAX)) as Box<dyn Segments>);
    let report = verify_journal(&open, None, &options(Some(&checkpoint)));
    assert_eq!((report.verdict, codes(&report)), (Verdict::PassWithWarnings, vec![Code::ArtifactUnchecked]));
    let count = report.checks.iter().find(|c| c.check.as_str() == "ARTIFACT_HASH").unwrap().count;
    assert_eq!(count, 0, "what was not looked at is not counted");
}

#[test]
fn checkpoints_that_do_not_fit_and_tails_that_are_cut() {
    let sample = sample();
    let good = Checkpoint { origin: ledger().origin, size: 13, root: sample.chain.frontier().root() };
    let head = TraceHead {
        origin: ledger().origin,
        trace: trace(0xb),
        seq: 3,
        hash: sample.chain.trace(trace(0xb)).unwrap().hash,
    };
    let elsewhere: baton_core::Origin = "baton/other".parse().unwrap();
    let (mismatch, cut) = (Code::CheckpointMismatch, Code::TailCut);
    let cases = [
        (Checkpoint { root: Digest([1; 32]), ..good.clone() }.sign(&secret(1)), mismatch),
        (Checkpoint { size: 12, ..good.clone() }.sign(&secret(1)), mismatch),
        (Checkpoint { size: 0, ..good.clone() }.sign(&secret(1)), mismatch),
        (Checkpoint { size: 14, ..good.clone() }.sign(&secret(1)), cut),
        (Checkpoint { origin: elsewhere.clone(), ..good.clone() }.sign(&secret(1)), mismatch),
        (good.sign(&secret(2)), mismatch),
        // The note is judged before what it says.
        (Checkpoint { size: 14, ..good.clone() }.sign(&secret(2)), mismatch),
        ("no note".to_owned(), mismatch),
        (TraceHead { hash: Digest([1; 32]), ..head.clone() }.sign(&secret(1)), mismatch),
        (TraceHead { seq: 2, ..head.clone() }.sign(&secret(1)), mismatch),
        (TraceHead { seq: 0, ..head.clone() }.sign(&secret(1)), mismatch),
        (TraceHead { seq: 4, ..head.clone() }.sign(&secret(1)), cut),
        (TraceHead { trace: trace(0xc), ..head.clone() }.sign(&secret(1)), cut),
        (TraceHead { origin: elsewhere, ..head.clone() }.sign(&secret(1)), mismatch),
    ];
    for (note, code) in cases {
        let report = verify(&sample.bytes, &options(Some(&note)));
        assert_eq!((verdict(&report), codes(&report).len()), ((Verdict::Fail, Some(code), 0), 1), "{note}");
        assert_eq!(report.integrity, if code == cut { "intact" } else { "broken" });
        // Kept beside the journal it counts just as much.
        let kept = vec![KeptNote { name: format!("{:020}", 13), bytes: note.into_bytes() }];
        let report = verify(&sample.bytes, &Options { kept, ..options(Some(&good.sign(&secret(1)))) });
        assert_eq!(verdict(&report), (Verdict::Fail, Some(mismatch), 0), "the name is another one");
    }
    // A good head counts as a checkpoint, but does not speak for the whole journal's end.
    let report = verify(&sample.bytes, &options(Some(&head.sign(&secret(1)))));
    assert_eq!((report.verdict, report.completeness), (Verdict::Pass, "self-consistent"));
    // An older checkpoint agrees, and does not speak for the end either.
    let root = Writer::new().chain.frontier().root();
    let report =
        verify(&sample.bytes, &options(Some(&Checkpoint { size: 1, root, ..good }.sign(&secret(1)))));
    assert_eq!((report.verdict, report.completeness), (Verdict::Pass, "self-consistent"));
}

#[test]
fn nothing_to_judge_is_unknown() {
    for journal in [b"".as_slice(), b"\n", b"\n\n\n", b"{", b"{\"actor\"\n\n"] {
        let report = verify(journal, &options(None));
        assert_eq!(verdict(&report), (Verdict::Unknown, Some(Code::NoEvents), 0));
        assert_eq!((report.integrity, report.completeness), ("unknown", "unknown"));
    }
    let report = verify_journal(&|| Err("no such directory".into()), None, &options(None));
    assert_eq!(verdict(&report), (Verdict::Unknown, Some(Code::Unreadable), 0));
}

#[test]
fn a_checkpoint_over_a_line_that_cannot_be_read_adds_nothing_to_its_finding() {
    let mut writer = Writer::new();
    let mut checkpoints = Vec::new();
    for n in 2..=6 {
        writer.append(vec![unsigned(&note(n, trace(n as u8)))]).unwrap();
        checkpoints.push(writer.checkpoint());
    }
    let mut lines = writer.lines();
    lines[2] = b"{}";
    let journal = [lines.join(&b'\n'), b"\n".to_vec()].concat();
    let found = |checkpoint: &String| codes(&verify(&journal, &options(Some(checkpoint))));
    assert_eq!(found(&checkpoints[0]), [Code::SchemaInvalid]);
    for checkpoint in &checkpoints[1..] {
        assert_eq!(found(checkpoint), [Code::SchemaInvalid, Code::NoCheckpoint]);
    }
}

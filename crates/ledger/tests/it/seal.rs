//! What the chain admits, the verifier passes: in one thread and in two, in batches and one by one.

use std::collections::BTreeMap;

use baton_core::{Digest, Durability, EventId, Payload, Role, Seen, TraceId};
use baton_ledger::body::Body;
use baton_ledger::merkle::Frontier;
use baton_ledger::note::Statement;
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::record::Line;
use baton_ledger::seal::{Chain, Checked, Past, Proposal, Refusal};
use baton_ledger::verify::{
    Code, KeptNote, Options, Report, Segments, Verdict, file_name, verify_journal, verify_trace,
};
use serde_json::json;

use crate::forger;
use crate::reader::{Memory, codes, options, shown, verify};
use crate::writer::{
    self, MemoryPast, Writer, bound, event, grant, id, ledger, note, other, sample, secret, signed, trace,
    unsigned,
};

/// The report, required to be the same for every way to verify.
fn verify_all_ways(journal: &[u8], checkpoint: Option<&str>) -> Report {
    let report = verify(journal, &options(checkpoint));
    for (threads, each, step) in
        [(2, false, usize::MAX), (1, true, usize::MAX), (2, true, 1000), (8, false, 77)]
    {
        let options = Options { threads, each, ..options(checkpoint) };
        let open = || Ok(Box::new(Memory::new(&[(1, journal)], step)) as Box<dyn Segments>);
        let other = verify_journal(&open, Some(&writer::shelf()), &options);
        assert_eq!(shown(&other), shown(&report), "{threads} threads, each: {each}, {step} bytes at a time");
    }
    report
}

/// Many traces with keys of their own, large enough for several chunks and real batches.
fn large() -> Writer {
    let mut writer = Writer::new();
    let mut n = 2;
    for t in 0..8u8 {
        writer
            .append(vec![signed(bound(n, trace(t), grant(10 + t, "worker", &[Role::Executor])), 1)])
            .unwrap();
        n += 1;
    }
    let filler = "x".repeat(6000);
    for round in 0..90u64 {
        let decisions = (0..8u8).map(|t| {
            let claim = other("claim_issued", &json!({"round": round, "filler": filler}));
            let claim = event(n + u64::from(t), trace(t), "worker", Role::Executor, claim);
            vec![signed(claim, 10 + t)]
        });
        writer.write(decisions.collect());
        n += 8;
    }
    writer
}

#[test]
fn the_sample_passes_whole_and_says_what_is_missing_from_the_reader() {
    let sample = sample();
    let report = verify_all_ways(&sample.bytes, Some(&sample.checkpoint()));
    assert_eq!(
        (report.verdict, report.integrity, report.completeness),
        (Verdict::Pass, "intact", "complete")
    );
    assert_eq!((report.subject.events, report.first_broken, report.more), (13, None, 0));
    assert_eq!(report.subject.origin.as_deref(), Some("baton/test"));

    let report = verify_all_ways(&sample.bytes, None);
    assert_eq!((report.verdict, report.completeness), (Verdict::PassWithWarnings, "self-consistent"));
    assert_eq!(codes(&report), [Code::NoCheckpoint]);
    let nothing = verify(&sample.bytes, &Options::default());
    assert_eq!(codes(&nothing), [Code::NoCheckpoint, Code::KeyUnpinned]);
    assert_eq!((nothing.verdict, nothing.completeness), (Verdict::PassWithWarnings, "self-consistent"));
}

#[test]
fn a_journal_of_several_chunks_gives_the_same_report_in_every_way() {
    let large = large();
    assert!(large.bytes.len() > 4 << 20, "more than one chunk");
    assert_eq!(verify_all_ways(&large.bytes, Some(&large.checkpoint())).verdict, Verdict::Pass);
    // Three broken signatures with correct hashes, in different chunks; everything after them is sealed again.
    let mut records = forger::read(&large.bytes);
    for at in [40, 300, 700] {
        records[at] = records[at].clone().with_signature_of(&records[20].clone());
    }
    let forged = forger::lines(&forger::relink(records));
    let report = verify_all_ways(&forged, None);
    let found: Vec<_> = report.findings.iter().map(|finding| (finding.code, finding.line)).collect();
    let broken = [41, 301, 701].map(|line| (Code::SigInvalid, line));
    assert_eq!(found, [broken.as_slice(), &[(Code::NoCheckpoint, 0)]].concat());
    assert_eq!((report.verdict, report.first_broken), (Verdict::Fail, Some(41)));
}

#[test]
fn an_independent_sealer_makes_the_same_lines() {
    let sample = sample();
    let records = forger::read(&sample.bytes);
    assert_eq!(forger::lines(&records), sample.bytes, "every line is canonical");
    assert_eq!(forger::lines(&forger::relink(records.clone())), sample.bytes, "and has the page's hash");
    for (line, record) in sample.lines().into_iter().zip(&records) {
        let read = Line::parse(line).unwrap();
        assert_eq!(read.link_hash(&read.body_digest()).to_string(), record.link_hash());
    }
}

#[test]
fn decisions_carry_their_numbers_and_writes_their_start() {
    let sample = sample();
    let marks: Vec<_> = sample
        .lines()
        .into_iter()
        .map(|line| Line::parse(line).unwrap())
        .map(|l| (l.batch, l.commit))
        .collect();
    let expected = [
        (None, None),
        (Some((1, 3)), None),
        (Some((2, 3)), Some(2)),
        (Some((3, 3)), Some(2)),
        (None, Some(2)),
        (None, None),
        (None, None),
        (None, Some(7)),
        (None, None),
        (None, None),
        (None, Some(10)),
        (None, None),
        (None, None),
    ];
    assert_eq!(marks, expected);
}

#[test]
fn one_decision_over_several_traces_is_one_batch() {
    let mut writer = Writer::new();
    let events = [(2, trace(1)), (3, trace(2)), (4, trace(1)), (5, TraceId::Ledger), (6, trace(2))];
    let receipts =
        writer.append(events.iter().map(|(n, trace)| unsigned(&note(*n, *trace))).collect()).unwrap();
    let places: Vec<_> = receipts.iter().map(|r| (r.trace, r.pos, r.seq)).collect();
    assert_eq!(
        places,
        [(trace(1), 2, 1), (trace(2), 3, 1), (trace(1), 4, 2), (TraceId::Ledger, 5, 2), (trace(2), 6, 2)]
    );
    for (i, line) in writer.lines().iter().skip(1).enumerate() {
        assert_eq!(Line::parse(line).unwrap().batch, Some((i as u32 + 1, 5)));
    }
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn a_key_bound_and_used_in_the_same_decision_passes() {
    let mut writer = Writer::new();
    let claim = event(3, trace(1), "worker", Role::Executor, other("claim_issued", &json!({})));
    let revoked = Payload::KeyRevoked { key: secret(5).id(), reason: "done".into() };
    let events = vec![
        signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1),
        signed(claim, 5),
        signed(event(4, trace(1), "baton", Role::System, revoked), 1),
    ];
    writer.append(events).unwrap();
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn what_was_signed_before_a_rotation_or_revocation_stays_valid() {
    // The sample has both: keys 2 and 3 signed before they went, and the verdict over it is a pass.
    let sample = sample();
    let signers: Vec<_> = sample
        .lines()
        .into_iter()
        .filter_map(|line| Line::parse(line).unwrap().sig)
        .map(|sig| sig.key)
        .collect();
    assert!(signers.contains(&secret(2).id()) && signers.contains(&secret(3).id()));
    let keys = &sample.chain.trace(trace(0xa)).unwrap().keys;
    assert!(
        !keys.is_valid(secret(2).id()) && !keys.is_valid(secret(3).id()) && keys.is_valid(secret(4).id())
    );
    assert!(keys.knows(secret(2).id()) && !keys.knows(secret(1).id()));
    assert_eq!(keys.iter().count(), 3);
    assert_eq!(verify(&sample.bytes, &options(Some(&sample.checkpoint()))).verdict, Verdict::Pass);
}

#[test]
fn seen_may_reach_4096_events_back_and_is_judged_by_the_verifier_too() {
    let mut writer = Writer::new();
    let first = writer.append(vec![unsigned(&note(2, trace(1)))]).unwrap().remove(0);
    for n in 3..=4097 {
        writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap();
    }
    let mut far = note(4098, trace(1));
    far.seen = Some(Seen { seq: 1, hash: first.hash });
    // Sequence number 4097, which is 4096 after the first.
    assert_eq!(writer.append(vec![unsigned(&far)]).unwrap()[0].seq, 4097);
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn undoing_a_write_restores_everything() {
    let mut writer = sample();
    let (size, root) = (writer.size(), writer.chain.frontier().root());
    let traces = writer.chain.traces().clone();
    writer.chain.begin_write();
    let mut lost = Vec::new();
    let mut seal = |writer: &mut Writer, events: Vec<Checked>| {
        let proposal = Proposal { events, decided_on: Vec::new() };
        writer.chain.seal(&proposal, &writer.past, size + 1, &mut lost, |_| ()).unwrap()
    };
    let b = trace(0xb);
    seal(
        &mut writer,
        vec![signed(bound(20, b, grant(6, "x", &[Role::Auditor])), 1), unsigned(&note(21, trace(9)))],
    );
    let closed = Payload::TraceClosed { reason: "r".into() };
    seal(&mut writer, vec![unsigned(&event(22, b, "baton", Role::System, closed))]);
    assert_ne!(writer.chain.traces(), &traces);
    writer.chain.undo_write();
    assert_eq!((writer.size(), writer.chain.frontier().root()), (size, root));
    assert_eq!(writer.chain.traces(), &traces);
    // The same ids, the same key and the same trace can be used again, as if nothing had been there.
    let again = vec![signed(bound(20, b, grant(6, "x", &[Role::Auditor])), 1), unsigned(&note(21, trace(9)))];
    let receipts = writer.append(again).unwrap();
    assert_eq!((receipts[0].pos, receipts[0].seq, receipts[1].seq), (14, 4, 1));
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn kept_notes_are_compared_by_name_and_content() {
    let sample = sample();
    let mut kept = Vec::new();
    let mut frontier = Frontier::default();
    for line in sample.lines() {
        let line = Line::parse(line).unwrap();
        frontier.push(baton_ledger::hash::leaf(&line.hash), |_| ());
        let checkpoint = Checkpoint { origin: ledger().origin, size: line.pos, root: frontier.root() };
        let head = TraceHead { origin: ledger().origin, trace: line.trace, seq: line.seq, hash: line.hash };
        let statements = [
            (checkpoint.sign(&secret(1)), file_name(&Statement::Checkpoint(checkpoint))),
            (head.sign(&secret(1)), file_name(&Statement::TraceHead(head))),
        ];
        kept.extend(statements.map(|(note, name)| KeptNote { name, bytes: note.into_bytes() }));
    }
    let check =
        |kept: Vec<KeptNote>| verify(&sample.bytes, &Options { kept, ..options(Some(&sample.checkpoint())) });
    assert_eq!(check(kept.clone()).verdict, Verdict::Pass);
    for i in 0..kept.len() {
        let mut wrong = kept.clone();
        wrong[i].name = kept[(i + 2) % kept.len()].name.clone();
        assert_eq!(codes(&check(wrong)), [Code::CheckpointMismatch], "{}", kept[i].name);
    }
}

#[test]
fn one_trace_can_be_verified_alone_and_its_head_vouches_for_its_end() {
    let sample = sample();
    let open = || Ok(Box::new(Memory::new(&[(1, &sample.bytes)], 100)) as Box<dyn Segments>);
    for (which, events) in [(trace(0xa), 9), (trace(0xb), 3), (TraceId::Ledger, 1)] {
        let shelf = writer::shelf();
        let check = |note: &str| verify_trace(&open, Some(&shelf), &options(Some(note)), which, ledger());
        let report = check(&sample.head(which));
        assert_eq!(
            (report.verdict, report.completeness, report.subject.events),
            (Verdict::Pass, "complete", events)
        );
        let state = sample.chain.trace(which).unwrap();
        let more = TraceHead { origin: ledger().origin, trace: which, seq: events + 1, hash: state.hash };
        assert_eq!(codes(&check(&more.sign(&secret(1)))), [Code::TailCut]);
        let other = TraceHead { seq: events, hash: Digest([1; 32]), ..more };
        assert_eq!(codes(&check(&other.sign(&secret(1)))), [Code::CheckpointMismatch]);
    }
    let report = verify_trace(&open, None, &options(None), trace(0xc), ledger());
    assert_eq!(report.verdict, Verdict::Unknown, "a trace that is not there");
}

#[test]
fn an_event_signed_elsewhere_is_checked_and_then_as_good_as_any() {
    let mut writer = Writer::new();
    writer.append(vec![signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1)]).unwrap();
    let mut claim = event(3, trace(1), "worker", Role::Executor, other("claim_issued", &json!({"x": 1.5})));
    claim.actor.key = Some(secret(5).id());
    let value = secret(5).sign_event(&Body::signed(claim.clone(), &secret(5)).unwrap().digest);
    let body = Body::signed_elsewhere(&claim, value).unwrap();
    writer.append(vec![Checked::check(body, secret(5).public()).unwrap()]).unwrap();
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn the_longest_event_that_is_taken_makes_a_line_within_the_limit() {
    let of = |length: usize| {
        let payload = other("claim_issued", &json!({"x": "y".repeat(length)}));
        Body::signed(event(3, trace(1), "worker", Role::Executor, payload), &secret(5))
    };
    let (mut fits, mut too_long) = (1_000_000, 1_100_000);
    while fits + 1 < too_long {
        let middle = (fits + too_long) / 2;
        if of(middle).is_ok() { fits = middle } else { too_long = middle }
    }
    let mut writer = Writer::new();
    writer.append(vec![signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1)]).unwrap();
    writer.append(vec![Checked::just_signed(of(fits).unwrap(), &secret(5))]).unwrap();
    let longest = writer.lines()[2].len();
    assert!((1_047_552..=1_048_576).contains(&longest), "{longest}");
    assert_eq!(verify_all_ways(&writer.bytes, Some(&writer.checkpoint())).verdict, Verdict::Pass);
}

#[test]
fn every_kind_of_durability_may_stand_in_the_first_event() {
    for durability in [Durability::Commit, Durability::Interval, Durability::None] {
        let mut writer = Writer::empty();
        let mut first = writer::created(1);
        if let Payload::LedgerCreated { durability: d, .. } = &mut first.payload {
            *d = durability;
        }
        writer.append(vec![signed(first, 1)]).unwrap();
        assert_eq!(verify(&writer.bytes, &options(Some(&writer.checkpoint()))).verdict, Verdict::Pass);
    }
}

#[test]
fn an_id_below_the_window_is_not_taken_twice_by_one_write() {
    // The past knows only what is durable, and two decisions of one write are not.
    let past = MemoryPast::default();
    let mut frontier = Frontier::default();
    frontier.push(Digest([1; 32]), |_| ());
    let mut chain = Chain::resume(ledger(), frontier, BTreeMap::new(), Some(id(1000)));
    let (mut out, late) =
        (Vec::new(), Proposal { events: vec![unsigned(&note(5, trace(1)))], decided_on: Vec::new() });
    chain.begin_write();
    chain.seal(&late, &past, 2, &mut out, |_| ()).unwrap();
    assert_eq!(chain.seal(&late, &past, 2, &mut out, |_| ()), Err(Refusal::IdTaken(id(5))));
    chain.undo_write();
    chain.begin_write();
    assert_eq!(chain.seal(&late, &past, 2, &mut out, |_| ()).unwrap()[0].seq, 1);
}

#[test]
fn a_past_that_cannot_be_read_decides_nothing() {
    #[derive(Debug)]
    struct Gone;
    impl Past for Gone {
        fn hash_of(&self, _: TraceId, _: u64) -> Result<Option<Digest>, String> {
            Err("gone".into())
        }

        fn has_id(&self, _: EventId) -> Result<bool, String> {
            Err("gone".into())
        }
    }
    let writer = sample();
    let (frontier, traces) = (writer.chain.frontier().clone(), writer.chain.traces().clone());
    let mut chain = Chain::resume(ledger(), frontier.clone(), traces.clone(), Some(id(13)));
    let mut seeing = note(14, trace(0xb));
    seeing.seen = Some(Seen { seq: 1, hash: Digest::ZERO });
    for event in [note(12, trace(0xb)), seeing] {
        let mut out = Vec::new();
        let answer = chain.seal(
            &Proposal { events: vec![unsigned(&event)], decided_on: Vec::new() },
            &Gone,
            14,
            &mut out,
            |_| (),
        );
        assert_eq!((answer, out.len()), (Err(Refusal::Unreadable("gone".into())), 0));
        assert_eq!((chain.frontier(), chain.traces()), (&frontier, &traces));
    }
}

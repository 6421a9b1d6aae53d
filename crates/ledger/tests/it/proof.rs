//! Proofs of single events and of consistency: good ones for every place, and nothing one step away from them.

use baton_core::{Digest, Role};
use baton_ledger::merkle::{prove_consistency, prove_inclusion};
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::proof::{consistency_proof, event_proof, verify_proof};
use baton_ledger::verify::{Code, Report, Verdict};
use serde_json::json;

use crate::forger::Record;
use crate::reader::{codes, is_refused, shown};
use crate::writer::{Writer, event, ledger, note, other, secret, signed, trace, unsigned};

/// Forty events, some of them signed by the ledger's key.
fn journal() -> Writer {
    let mut writer = Writer::new();
    for n in 2..=40 {
        let remark = event(n, trace(n as u8 % 3), "baton", Role::System, other("remark", &json!({"n": n})));
        let event = if n % 4 == 0 { signed(remark, 1) } else { unsigned(&note(n, trace(n as u8 % 3))) };
        writer.append(vec![event]).unwrap();
    }
    writer
}

fn prove(writer: &Writer, index: u64) -> String {
    let path = prove_inclusion(index, writer.size(), |at| writer.node(at)).unwrap();
    let record = std::str::from_utf8(writer.lines()[index as usize]).unwrap();
    event_proof(&ledger(), record, index, &path, &writer.checkpoint())
}

fn trusting(proof: &[u8]) -> Report {
    verify_proof(proof, Some(&[ledger().key]), None)
}

#[track_caller]
fn fails(proof: &str, code: Code) {
    let report = trusting(proof.as_bytes());
    assert_eq!((report.verdict, codes(&report)), (Verdict::Fail, vec![code]), "{}", shown(&report));
}

#[test]
fn every_event_of_a_journal_can_be_proved_alone() {
    let writer = journal();
    for index in 0..40 {
        let proof = prove(&writer, index);
        let report = trusting(proof.as_bytes());
        let expected = (Verdict::Pass, "self-consistent");
        assert_eq!((report.verdict, report.completeness), expected, "{}", shown(&report));
        assert_eq!((report.subject.events, report.subject.origin.as_deref()), (1, Some("baton/test")));
        assert_eq!(codes(&verify_proof(proof.as_bytes(), None, None)), [Code::KeyUnpinned]);
        let stranger = verify_proof(proof.as_bytes(), Some(&[*secret(2).public()]), None);
        assert_eq!((stranger.verdict, codes(&stranger)), (Verdict::Fail, vec![Code::KeyUnknown]));
    }
}

#[test]
fn a_proof_is_held_against_the_checkpoint_that_its_reader_kept() {
    let (mut writer, origin) = (journal(), ledger().origin);
    let (proof, kept) = (prove(&writer, 7), writer.checkpoint());
    let against = |proof: &str, given: &str| {
        let report = verify_proof(proof.as_bytes(), Some(&[ledger().key]), Some(given.as_bytes()));
        (report.verdict, report.completeness, codes(&report))
    };
    assert_eq!(against(&proof, &kept), (Verdict::Pass, "complete", vec![]));
    // One of another size says nothing; another history of the same size is found, and so is what is no checkpoint of this ledger.
    writer.append(vec![unsigned(&note(41, trace(1)))]).unwrap();
    let (later, warned) = (writer.checkpoint(), Verdict::PassWithWarnings);
    assert_eq!(against(&proof, &later), (warned, "self-consistent", vec![Code::NoCheckpoint]));
    let forged = Checkpoint { origin: origin.clone(), size: 40, root: Digest::ZERO };
    let head = TraceHead { origin, trace: trace(1), seq: 1, hash: Digest::ZERO }.sign(&secret(1));
    for given in [forged.sign(&secret(1)), forged.sign(&secret(2)), head, "no note".to_owned()] {
        assert_eq!(against(&proof, &given), (Verdict::Fail, "unknown", vec![Code::CheckpointMismatch]));
    }
    // A proof of consistency is for two of them.
    let path = prove_consistency(40, 41, |at| writer.node(at)).unwrap();
    let growth = consistency_proof(&ledger(), &path, &kept, &later);
    for given in [&kept, &later] {
        assert_eq!(against(&growth, given), (Verdict::Pass, "complete", vec![]));
    }
}

#[test]
fn the_only_event_of_a_ledger_has_an_empty_path() {
    let proof = prove(&Writer::new(), 0);
    assert!(proof.contains("\nindex 0\n\nbaton/test\n1\n"));
    assert_eq!(trusting(proof.as_bytes()).verdict, Verdict::Pass);
}

#[test]
fn no_bit_of_an_event_proof_can_flip_and_no_byte_be_cut() {
    let writer = journal();
    for index in [0, 3, 22, 39] {
        let proof = prove(&writer, index).into_bytes();
        for bit in 0..proof.len() * 8 {
            let mut flipped = proof.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let report = trusting(&flipped);
            assert!(is_refused(&report), "bit {bit}: {}", String::from_utf8_lossy(&flipped));
        }
        for end in 0..proof.len() {
            assert!(is_refused(&trusting(&proof[..end])), "cut at {end}");
        }
    }
}

#[test]
fn lines_of_a_proof_cannot_be_left_out_doubled_or_exchanged() {
    let writer = journal();
    let path = prove_consistency(17, 40, |at| writer.node(at)).unwrap();
    let older = journal_of(17).checkpoint();
    for proof in [prove(&writer, 21), consistency_proof(&ledger(), &path, &older, &writer.checkpoint())] {
        let lines: Vec<&str> = proof.split_inclusive('\n').collect();
        for i in 0..lines.len() {
            let mut without = lines.clone();
            without.remove(i);
            assert!(is_refused(&trusting(without.concat().as_bytes())), "line {i} left out");
            let mut doubled = lines.clone();
            doubled.insert(i, lines[i]);
            // A signature twice is a signature; in the middle of a pair it still is one.
            if !lines[i].starts_with('\u{2014}') {
                assert!(is_refused(&trusting(doubled.concat().as_bytes())), "line {i} doubled");
            }
            for j in i + 1..lines.len() {
                let mut swapped = lines.clone();
                swapped.swap(i, j);
                let is_same = lines[i] == lines[j];
                assert!(is_same || is_refused(&trusting(swapped.concat().as_bytes())), "lines {i} and {j}");
            }
        }
    }
}

/// The first events of the journal.
fn journal_of(size: usize) -> Writer {
    let whole = journal();
    let mut writer = Writer::empty();
    let mut frontier = baton_ledger::merkle::Frontier::default();
    for line in &whole.lines()[..size] {
        let hash = baton_ledger::record::Line::parse(line).unwrap().hash;
        frontier.push(baton_ledger::hash::leaf(&hash), |node| writer.nodes.push(node));
    }
    writer.chain =
        baton_ledger::seal::Chain::resume(ledger(), frontier, std::collections::BTreeMap::new(), None);
    writer
}

#[test]
fn every_older_checkpoint_is_consistent_with_every_newer_one() {
    let writer = journal();
    let notes: Vec<String> = (1..=40).map(|size| journal_of(size).checkpoint()).collect();
    for new in 1..=40u64 {
        for old in 1..=new {
            let path = prove_consistency(old, new, |at| writer.node(at)).unwrap();
            let (older, newer) = (&notes[old as usize - 1], &notes[new as usize - 1]);
            let report = trusting(consistency_proof(&ledger(), &path, older, newer).as_bytes());
            assert_eq!((report.verdict, report.subject.events), (Verdict::Pass, new), "{old} {new}");
            if old < new {
                fails(&consistency_proof(&ledger(), &path, newer, older), Code::CheckpointMismatch);
            }
        }
    }
}

#[test]
fn no_bit_of_a_consistency_proof_can_flip() {
    let writer = journal();
    let path = prove_consistency(13, 40, |at| writer.node(at)).unwrap();
    let proof =
        consistency_proof(&ledger(), &path, &journal_of(13).checkpoint(), &writer.checkpoint()).into_bytes();
    assert_eq!(trusting(&proof).verdict, Verdict::Pass);
    for bit in 0..proof.len() * 8 {
        let mut flipped = proof.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        assert!(is_refused(&trusting(&flipped)), "bit {bit}: {}", String::from_utf8_lossy(&flipped));
    }
    for end in 0..proof.len() {
        assert!(is_refused(&trusting(&proof[..end])), "cut at {end}");
    }
}

#[test]
fn two_histories_are_not_consistent() {
    let writer = journal();
    let path = prove_consistency(13, 40, |at| writer.node(at)).unwrap();
    let other = Checkpoint { origin: ledger().origin, size: 13, root: Digest([1; 32]) }.sign(&secret(1));
    fails(&consistency_proof(&ledger(), &path, &other, &writer.checkpoint()), Code::CheckpointMismatch);
    let nothing =
        Checkpoint { origin: ledger().origin, size: 0, root: Writer::empty().chain.frontier().root() };
    fails(
        &consistency_proof(&ledger(), &[], &nothing.sign(&secret(1)), &writer.checkpoint()),
        Code::CheckpointMismatch,
    );
    let head = TraceHead { origin: ledger().origin, trace: trace(1), seq: 1, hash: Digest([1; 32]) }
        .sign(&secret(1));
    fails(&consistency_proof(&ledger(), &path, &head, &writer.checkpoint()), Code::CheckpointMismatch);
    let foreign = Checkpoint { origin: ledger().origin, size: 13, root: Digest([1; 32]) }.sign(&secret(2));
    fails(&consistency_proof(&ledger(), &path, &foreign, &writer.checkpoint()), Code::CheckpointMismatch);
}

#[test]
fn the_checks_of_an_event_proof_come_in_their_order() {
    let writer = journal();
    // Signed by the ledger's key, so its own signature is checked too.
    let index = 3;
    let path = prove_inclusion(index, 40, |at| writer.node(at)).unwrap();
    let record = Record::read(writer.lines()[index as usize]);
    let note = writer.checkpoint();
    let build = |record: &Record, index: u64, note: &str| {
        let line = String::from_utf8(record.line()).unwrap();
        event_proof(&ledger(), line.trim_end(), index, &path, note)
    };
    assert_eq!(trusting(build(&record, index, &note).as_bytes()).verdict, Verdict::Pass);
    let bad_note = journal_of(39).checkpoint();
    // Each is wrong in one more way, earlier in the order.
    fails(&build(&record, index, &bad_note), Code::CheckpointMismatch);
    let unsigned = record.clone().with_signature_of(&Record::read(writer.lines()[0])).rehash();
    fails(&build(&unsigned, index, &bad_note), Code::SigInvalid);
    fails(&build(&unsigned, index + 1, &bad_note), Code::SequenceGap);
    let unhashed = unsigned.clone().set("seq", 999);
    fails(&build(&unhashed, index + 1, &bad_note), Code::HashMismatch);
    fails(&build(&unhashed.set("seq", 0), index + 1, &bad_note), Code::SchemaInvalid);
    let newer = trusting(build(&record.set("v", 2), index, &note).as_bytes());
    assert_eq!((newer.verdict, codes(&newer)), (Verdict::Unknown, vec![Code::VersionNewer]));
}

#[test]
fn the_head_of_a_proof_must_be_well_formed() {
    let writer = journal();
    let proof = prove(&writer, 5);
    for (from, to) in [
        ("baton/proof/v1", "baton/proof/v2"),
        ("baton/proof/v1\n", ""),
        ("\nbaton/test\n", "\nBaton\n"),
        ("\nbaton/test\n", "\nbaton/trace/test\n"),
        ("ed25519:", "rsa:"),
        ("index 5", "index 05"),
        ("index 5", "index -5"),
        ("index 5", "index"),
        ("index 5", "Index 5"),
        ("index 5\n", "index 5\nAAAA\n"),
        ("\n\n", "\n"),
    ] {
        assert!(proof.contains(from));
        fails(&proof.replacen(from, to, 1), Code::SchemaInvalid);
    }
    let node = format!("index 5\n{}=\n", "A".repeat(43));
    fails(&proof.replacen("index 5\n", &node, 1), Code::CheckpointMismatch);
    fails(
        &proof.replacen("index 5\n", &format!("index 5\n{}", node[8..].repeat(70)), 1),
        Code::SchemaInvalid,
    );
    fails(&format!("{proof}\n"), Code::CheckpointMismatch);
    fails(&"x".repeat(2 << 20), Code::SchemaInvalid);
    fails("", Code::SchemaInvalid);
    assert!(is_refused(&trusting(b"baton/proof/v1\n\xff\n")));
}

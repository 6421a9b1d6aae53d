//! Proofs that stand alone: one event against a checkpoint, and one checkpoint against a later one.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::Digest;
use baton_core::limits::{PROOF_BYTES_MAX, PROOF_HASHES_MAX};

use crate::hash::leaf;
use crate::key::PublicKey;
use crate::keyring::LedgerIdentity;
use crate::merkle::{check_consistency, check_inclusion};
use crate::note::{Checkpoint, Note, parse_decimal, parse_digest};
use crate::record::{Flaw, Line};
use crate::verify::{Check, Code, Counts, Finding, Findings, Report, Subject, Vouched, judge_key};

const EVENT: &str = "baton/proof/v1";
const CONSISTENCY: &str = "baton/consistency/v1";

/// The text of a proof of one event. `record` is the stored line without its line feed.
pub fn event_proof(
    ledger: &LedgerIdentity,
    record: &str,
    index: u64,
    path: &[Digest],
    checkpoint: &str,
) -> String {
    let mut out = format!("{EVENT}\n{}\n{}\n{record}\nindex {index}\n", ledger.origin, ledger.key.to_text());
    push_hashes(&mut out, path);
    let _ = write!(out, "\n{checkpoint}");
    out
}

/// The text of a proof that an older checkpoint is a beginning of a newer one.
pub fn consistency_proof(ledger: &LedgerIdentity, path: &[Digest], older: &str, newer: &str) -> String {
    let mut out = format!("{CONSISTENCY}\n{}\n{}\n", ledger.origin, ledger.key.to_text());
    push_hashes(&mut out, path);
    let _ = write!(out, "\n{older}\n{newer}");
    out
}

fn push_hashes(out: &mut String, path: &[Digest]) {
    for hash in path {
        out.push_str(&BASE64.encode(hash.0));
        out.push('\n');
    }
}

/// A proof as it was read; nothing of it is verified yet.
enum Proof<'a> {
    Event { ledger: LedgerIdentity, record: &'a str, index: u64, path: Vec<Digest>, checkpoint: &'a [u8] },
    Consistency { ledger: LedgerIdentity, path: Vec<Digest>, older: Vec<u8>, newer: &'a [u8] },
}

/// Verifies either kind of proof with nothing else at hand, or against a checkpoint that the reader kept.
pub fn verify_proof(bytes: &[u8], trust: Option<&[PublicKey]>, given: Option<&[u8]>) -> Report {
    let mut findings = Findings::default();
    let mut subject = Subject::default();
    let mut counts = Counts::default();
    counts.add(Check::Schema, 1);
    let mut vouched = Vouched::default();
    match parse(bytes) {
        Err(why) => findings.push(Finding::new(Code::SchemaInvalid).expected("a proof").found(why)),
        Ok(proof) => {
            let ledger = match &proof {
                Proof::Event { ledger, .. } | Proof::Consistency { ledger, .. } => ledger.clone(),
            };
            subject.origin = Some(ledger.origin.to_string());
            let outcome = match &proof {
                Proof::Event { ledger, record, index, path, checkpoint } => {
                    check_event(ledger, record, *index, path, checkpoint, &mut subject, &mut counts)
                        .map(|checkpoint| vec![checkpoint])
                }
                Proof::Consistency { ledger, path, older, newer } => {
                    check_pair(ledger, path, older, newer, &mut subject, &mut counts).map(Vec::from)
                }
            };
            let compared = outcome.and_then(|proved| match given {
                Some(given) => compare(&ledger, &proved, given, &mut counts).map(Some),
                None => Ok(None),
            });
            match compared {
                Ok(Some(is_proved)) => {
                    vouched.by_checkpoint = is_proved;
                    if !is_proved {
                        let expected = "a checkpoint of the size that the proof is for";
                        findings.push(Finding::new(Code::NoCheckpoint).expected(expected));
                    }
                }
                Ok(None) => {}
                Err(finding) => findings.push(finding),
            }
            vouched.by_key = judge_key(&mut findings, trust, &ledger.key);
        }
    }
    Report::conclude(subject, &counts, findings, vouched)
}

fn parse(bytes: &[u8]) -> Result<Proof<'_>, String> {
    if bytes.len() > PROOF_BYTES_MAX {
        return Err(format!("{} bytes, at most {PROOF_BYTES_MAX} are allowed", bytes.len()));
    }
    let (kind, rest) = line(bytes, "the kind of proof")?;
    let (origin, rest) = line(rest, "an origin")?;
    let (public, rest) = line(rest, "a public key")?;
    let origin = origin.parse().map_err(|_| "expected an origin in the second line")?;
    let ledger = LedgerIdentity { origin, key: PublicKey::parse(public).map_err(|e| e.to_string())? };
    match kind {
        EVENT => {
            let (record, rest) = line(rest, "a record")?;
            let (index, rest) = line(rest, "an index")?;
            let index = index
                .strip_prefix("index ")
                .and_then(parse_decimal)
                .ok_or("expected `index` and a number")?;
            let (path, checkpoint) = hashes(rest)?;
            Ok(Proof::Event { ledger, record, index, path, checkpoint })
        }
        CONSISTENCY => {
            let (path, rest) = hashes(rest)?;
            let (older, newer) = split_notes(rest);
            Ok(Proof::Consistency { ledger, path, older, newer })
        }
        _ => Err(format!("expected {EVENT} or {CONSISTENCY} in the first line")),
    }
}

/// Each note has one empty line of its own; the next one separates the two. What is missing is left empty, which is no good note.
fn split_notes(bytes: &[u8]) -> (Vec<u8>, &[u8]) {
    let mut ends = memchr::memmem::find_iter(bytes, b"\n\n").skip(1);
    match ends.next() {
        Some(end) => (bytes[..=end].to_vec(), &bytes[end + 2..]),
        None => (bytes.to_vec(), &[]),
    }
}

fn line<'a>(bytes: &'a [u8], expected: &str) -> Result<(&'a str, &'a [u8]), String> {
    let end = memchr::memchr(b'\n', bytes).ok_or_else(|| format!("expected {expected}, found the end"))?;
    let text =
        std::str::from_utf8(&bytes[..end]).map_err(|_| format!("expected {expected}, found no UTF-8"))?;
    Ok((text, &bytes[end + 1..]))
}

/// Lines of base64 up to the empty one.
fn hashes(mut rest: &[u8]) -> Result<(Vec<Digest>, &[u8]), String> {
    let mut out = Vec::new();
    loop {
        let (next, after) = line(rest, "an empty line after the hashes")?;
        rest = after;
        if next.is_empty() {
            return Ok((out, rest));
        }
        if out.len() == PROOF_HASHES_MAX {
            return Err("more hashes than any proof has".into());
        }
        out.push(parse_digest(next).ok_or("expected base64 of 32 bytes")?);
    }
}

fn check_event(
    ledger: &LedgerIdentity,
    record: &str,
    index: u64,
    path: &[Digest],
    checkpoint: &[u8],
    subject: &mut Subject,
    counts: &mut Counts,
) -> Result<Checkpoint, Finding> {
    let line = Line::parse(record.as_bytes()).map_err(|flaw| match flaw {
        Flaw::Newer(version) => Finding::new(Code::VersionNewer).expected("format version 1").found(version),
        flaw => Finding::new(Code::SchemaInvalid).expected("a record").found(flaw),
    })?;
    (subject.trace, subject.head, subject.events) = (Some(line.trace), Some(line.hash), 1);
    let body = line.body_digest();
    counts.add(Check::EventHash, 1);
    let hash = line.link_hash(&body);
    if hash != line.hash {
        return Err(Finding::new(Code::HashMismatch).expected(hash).found(line.hash).event(line.id));
    }
    counts.add(Check::Sequence, 1);
    if line.pos - 1 != index {
        let finding = Finding::new(Code::SequenceGap).expected(format!("index {}", line.pos - 1));
        return Err(finding.found(index).event(line.id));
    }
    if let Some(sig) = line.sig.filter(|sig| sig.key == ledger.key.id()) {
        counts.add(Check::Signature, 1);
        if !ledger.key.verify_event(&body, &sig.value) {
            return Err(Finding::new(Code::SigInvalid)
                .expected("a signature by the ledger's key")
                .event(line.id));
        }
    }
    let checkpoint = read_checkpoint(ledger, checkpoint, counts)?;
    if !check_inclusion(index, checkpoint.size, leaf(&hash), path, &checkpoint.root) {
        let finding = Finding::new(Code::CheckpointMismatch).expected("a path to the checkpoint's root");
        return Err(finding.found("one that leads elsewhere").event(line.id));
    }
    Ok(checkpoint)
}

fn check_pair(
    ledger: &LedgerIdentity,
    path: &[Digest],
    older: &[u8],
    newer: &[u8],
    subject: &mut Subject,
    counts: &mut Counts,
) -> Result<[Checkpoint; 2], Finding> {
    let (old, new) = (read_checkpoint(ledger, older, counts)?, read_checkpoint(ledger, newer, counts)?);
    (subject.head, subject.events) = (Some(new.root), new.size);
    if !check_consistency(old.size, new.size, &old.root, &new.root, path) {
        let expected = format!("the first {} of {} events unchanged", old.size, new.size);
        return Err(Finding::new(Code::CheckpointMismatch).expected(expected).found("another history"));
    }
    Ok([old, new])
}

/// Whether the reader's own checkpoint is one of those that the proof is for. One of another size says nothing.
fn compare(
    ledger: &LedgerIdentity,
    proved: &[Checkpoint],
    given: &[u8],
    counts: &mut Counts,
) -> Result<bool, Finding> {
    let given = read_checkpoint(ledger, given, counts)?;
    match proved.iter().find(|proved| proved.size == given.size) {
        Some(proved) if proved.root != given.root => {
            let expected = format!("the root of the given checkpoint over {} events", given.size);
            Err(Finding::new(Code::CheckpointMismatch).expected(expected).found("another history"))
        }
        found => Ok(found.is_some()),
    }
}

fn read_checkpoint(
    ledger: &LedgerIdentity,
    bytes: &[u8],
    counts: &mut Counts,
) -> Result<Checkpoint, Finding> {
    counts.add(Check::Checkpoint, 1);
    let mismatch =
        |why: String| Finding::new(Code::CheckpointMismatch).expected("a good checkpoint").found(why);
    let note = Note::parse(bytes).map_err(|e| mismatch(e.to_string()))?;
    note.check(&ledger.origin, &ledger.key).map_err(|e| mismatch(e.to_string()))?;
    note.checkpoint().cloned().ok_or_else(|| mismatch("the head of a trace".into()))
}

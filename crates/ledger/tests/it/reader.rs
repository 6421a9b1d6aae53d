//! Bytes in memory for the verifier, and one way to ask it.

use std::collections::BTreeMap;

use baton_core::Digest;
use baton_ledger::hash::sha256;
use baton_ledger::key::PublicKey;
use baton_ledger::verify::{
    ArtifactState, Artifacts, Code, Options, Report, Segments, Verdict, verify_bundle, verify_journal,
};

use crate::writer::ledger;

/// Segments in memory. `step` bounds how much one read gives.
#[derive(Debug, Clone)]
pub(crate) struct Memory {
    segments: Vec<(u64, Vec<u8>)>,
    next: usize,
    at: usize,
    step: usize,
}

impl Memory {
    pub(crate) fn new(segments: &[(u64, &[u8])], step: usize) -> Self {
        let segments = segments.iter().map(|(first, bytes)| (*first, bytes.to_vec())).collect();
        Memory { segments, next: 0, at: 0, step }
    }
}

impl Segments for Memory {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        self.at = 0;
        self.next += 1;
        Ok(self.segments.get(self.next - 1).map(|(first, _)| *first))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let rest = &self.segments[self.next - 1].1[self.at..];
        let count = rest.len().min(buffer.len()).min(self.step);
        buffer[..count].copy_from_slice(&rest[..count]);
        self.at += count;
        Ok(count)
    }
}

/// Artifacts in memory, by their hash; what is filed under a hash may be something else.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shelf(pub BTreeMap<Digest, Vec<u8>>);

impl Shelf {
    pub(crate) fn holding(contents: &[&[u8]]) -> Self {
        Shelf(contents.iter().map(|content| (sha256(content), content.to_vec())).collect())
    }
}

impl Artifacts for Shelf {
    fn check(&self, digest: &Digest, bytes: u64) -> ArtifactState {
        match self.0.get(digest) {
            None => ArtifactState::Missing,
            Some(content) if sha256(content) == *digest && content.len() as u64 == bytes => {
                ArtifactState::Good
            }
            Some(content) => ArtifactState::Differs(format!("{} other bytes", content.len())),
        }
    }
}

/// What a careful reader brings along: the ledger's key, and perhaps a checkpoint.
pub(crate) fn options(checkpoint: Option<&str>) -> Options {
    Options {
        trust: Some(vec![ledger().key]),
        checkpoint: checkpoint.map(|note| note.as_bytes().to_vec()),
        ..Options::default()
    }
}

/// Verifies segments whose artifacts are at hand.
pub(crate) fn verify_segments(segments: &[(u64, &[u8])], shelf: &Shelf, options: &Options) -> Report {
    let open = || Ok(Box::new(Memory::new(segments, usize::MAX)) as Box<dyn Segments>);
    verify_journal(&open, Some(shelf), options)
}

/// Verifies a journal in one segment that cites no artifacts, or only those on the sample's shelf.
pub(crate) fn verify(journal: &[u8], options: &Options) -> Report {
    verify_segments(&[(1, journal)], &crate::writer::shelf(), options)
}

pub(crate) fn verify_bundle_bytes(bundle: &[u8], options: &Options) -> Report {
    let mut rest = bundle;
    verify_bundle(
        &mut |buffer: &mut [u8]| {
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            rest = &rest[count..];
            Ok(count)
        },
        options,
    )
}

/// Everything that a report says, for comparing whole.
pub(crate) fn shown(report: &Report) -> String {
    report.to_json().to_string()
}

/// Verdict, first finding's code, and the line it is at (0 where it concerns none).
pub(crate) fn verdict(report: &Report) -> (Verdict, Option<Code>, u64) {
    let first = report.findings.first();
    (report.verdict, first.map(|finding| finding.code), first.map_or(0, |finding| finding.line))
}

pub(crate) fn codes(report: &Report) -> Vec<Code> {
    report.findings.iter().map(|finding| finding.code).collect()
}

/// Neither a pass nor a pass with warnings.
pub(crate) fn is_refused(report: &Report) -> bool {
    matches!(report.verdict, Verdict::Fail | Verdict::Unknown)
}

pub(crate) fn untrusting(key: &PublicKey) -> Options {
    Options { trust: Some(vec![*key]), ..Options::default() }
}

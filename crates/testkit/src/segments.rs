//! A journal that lies in memory, for the verifier.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::Digest;
use baton_ledger::hash::sha256;
use baton_ledger::verify::{ArtifactState, Artifacts, Options, Report, Segments, verify_journal};

/// One segment, named 1.
#[derive(Debug, Clone)]
pub struct OneSegment {
    bytes: Arc<Vec<u8>>,
    at: usize,
    is_started: bool,
}

impl OneSegment {
    pub fn new(bytes: &[u8]) -> Self {
        OneSegment { bytes: Arc::new(bytes.to_vec()), at: 0, is_started: false }
    }
}

impl Segments for OneSegment {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.is_started, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let count = buffer.len().min(self.bytes.len() - self.at);
        buffer[..count].copy_from_slice(&self.bytes[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

/// Artifacts by their hash.
#[derive(Debug, Clone, Default)]
pub struct MemoryArtifacts(pub BTreeMap<Digest, Vec<u8>>);

impl Artifacts for MemoryArtifacts {
    fn check(&self, wanted: &Digest, length: u64) -> ArtifactState {
        match self.0.get(wanted) {
            None => ArtifactState::Missing,
            Some(bytes) if sha256(bytes) == *wanted && bytes.len() as u64 == length => ArtifactState::Good,
            Some(bytes) => ArtifactState::Differs(format!("{} bytes", bytes.len())),
        }
    }
}

/// Verifies the bytes of a journal in one segment.
pub fn verify_bytes(bytes: &[u8], artifacts: Option<&MemoryArtifacts>, options: &Options) -> Report {
    let segment = OneSegment::new(bytes);
    let open = || -> Result<Box<dyn Segments>, String> { Ok(Box::new(segment.clone())) };
    verify_journal(&open, artifacts.map(|artifacts| artifacts as &dyn Artifacts), options)
}

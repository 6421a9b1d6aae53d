//! A bundle: one trace in one file, with everything that is needed to verify it. Written here, read in [`crate::verify`].
//!
//! Every line is canonical JSON and every signature deterministic, so two bundles made at the same size of the ledger are equal to the byte.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::BUNDLE_CHUNK_BYTES;
use baton_core::{Digest, TraceId};
use serde_json::{Value, json};

use crate::canonical::to_bytes;
use crate::keyring::LedgerIdentity;

/// The first line's facts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    pub ledger: LedgerIdentity,
    pub trace: TraceId,
    pub events: u64,
    /// Size of the ledger that the checkpoint is for.
    pub size: u64,
    /// Whether the artifacts themselves are in the bundle.
    pub inline: bool,
}

/// The last line's facts; a verifier counts them itself and compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    pub artifacts: u64,
    pub closed: bool,
    pub events: u64,
    pub head: Digest,
    /// SHA-256 over the events' positions, each in decimal and a line feed.
    pub positions: Digest,
    pub signed: u64,
    pub trace: TraceId,
}

impl Header {
    pub fn to_line(&self) -> Vec<u8> {
        line(&json!({
            "bundle": 1,
            "events": self.events,
            "inline": self.inline,
            "origin": self.ledger.origin.as_str(),
            "public": self.ledger.key.to_text().as_str(),
            "size": self.size,
            "trace": self.trace.to_string(),
        }))
    }
}

impl Summary {
    pub fn to_line(&self) -> Vec<u8> {
        line(&json!({"report": {
            "artifacts": self.artifacts,
            "closed": self.closed,
            "events": self.events,
            "head": self.head.to_string(),
            "positions": self.positions.to_string(),
            "signed": self.signed,
            "trace": self.trace.to_string(),
        }}))
    }
}

/// A stored record, wrapped as it stands.
pub fn event_line(record: &[u8]) -> Vec<u8> {
    [b"{\"event\":", record, b"}\n"].concat()
}

/// Number of lines that an artifact of this length takes.
pub fn artifact_chunks(bytes: u64) -> u64 {
    bytes.div_ceil(BUNDLE_CHUNK_BYTES as u64).max(1)
}

/// The `chunk`-th piece of an artifact, from 1.
pub fn artifact_line(sha256: &Digest, bytes: u64, chunk: u64, data: &[u8]) -> Vec<u8> {
    line(&json!({"artifact": {
        "bytes": bytes,
        "chunk": chunk,
        "chunks": artifact_chunks(bytes),
        "data": BASE64.encode(data),
        "sha256": sha256.to_string(),
    }}))
}

pub fn head_line(note: &str) -> Vec<u8> {
    line(&json!({ "head": note }))
}

pub fn checkpoint_line(note: &str) -> Vec<u8> {
    line(&json!({ "checkpoint": note }))
}

pub fn proof_line(index: u64, path: &[Digest]) -> Vec<u8> {
    let hashes: Vec<String> = path.iter().map(|hash| BASE64.encode(hash.0)).collect();
    line(&json!({"proof": {"hashes": hashes, "index": index}}))
}

fn line(value: &Value) -> Vec<u8> {
    #[expect(clippy::expect_used, reason = "lines of a bundle hold small integers and strings only")]
    let mut bytes = to_bytes(value).expect("canonical");
    bytes.push(b'\n');
    bytes
}

//! Signed notes in C2SP's form: checkpoints of the ledger, and heads of single traces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::{INTEGER_MAX, NOTE_BYTES_MAX, NOTE_SIGNATURES_MAX};
use baton_core::{Digest, Origin, TraceId};

use crate::hash::sha256;
use crate::key::{PublicKey, SecretKey, Signature};

/// Why a text is not a good note.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("not a signed note: expected {0}")]
    Form(&'static str),
    #[error("the note's origin is {found:?}, expected {expected:?}")]
    Origin { expected: String, found: String },
    #[error("no signature line of the ledger's key")]
    Unsigned,
    #[error("the ledger's signature under the note does not check")]
    Signature,
}

/// The size and root of a ledger's tree at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub origin: Origin,
    pub size: u64,
    pub root: Digest,
}

/// The last event of a trace at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceHead {
    pub origin: Origin,
    pub trace: TraceId,
    pub seq: u64,
    pub hash: Digest,
}

/// What a note can state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Checkpoint(Checkpoint),
    TraceHead(TraceHead),
}

/// A note as it was read: its text, what it states, its signature lines. The signatures are not judged yet.
#[derive(Debug, Clone)]
pub struct Note {
    text: String,
    pub statement: Statement,
    signatures: Vec<NoteSignature>,
}

#[derive(Debug, Clone)]
struct NoteSignature {
    name: String,
    key_hash: [u8; 4],
    bytes: Vec<u8>,
}

impl Checkpoint {
    pub fn sign(&self, key: &SecretKey) -> String {
        sign_text(&three_lines(self.origin.as_str(), self.size, &self.root), &self.origin, key)
    }
}

impl TraceHead {
    pub fn sign(&self, key: &SecretKey) -> String {
        let name = format!("{}/trace/{}", self.origin, self.trace);
        sign_text(&three_lines(&name, self.seq, &self.hash), &self.origin, key)
    }
}

fn three_lines(name: &str, number: u64, digest: &Digest) -> String {
    format!("{name}\n{number}\n{}\n", BASE64.encode(digest.0))
}

fn sign_text(text: &str, origin: &Origin, key: &SecretKey) -> String {
    let mut bytes = key_hash(origin.as_str(), key.public()).to_vec();
    bytes.extend_from_slice(&key.sign(text.as_bytes()).0);
    format!("{text}\n\u{2014} {origin} {}\n", BASE64.encode(bytes))
}

/// C2SP's short name of a key under a name; 1 stands for Ed25519.
fn key_hash(name: &str, key: &PublicKey) -> [u8; 4] {
    let mut input = name.as_bytes().to_vec();
    input.extend_from_slice(b"\n\x01");
    input.extend_from_slice(key.as_bytes());
    let digest = sha256(&input).0;
    [digest[0], digest[1], digest[2], digest[3]]
}

/// The key as other tools of this family want it: name, key hash, algorithm and key.
pub fn verifier_key(origin: &Origin, key: &PublicKey) -> String {
    let hash = key_hash(origin.as_str(), key);
    let mut bytes = vec![1];
    bytes.extend_from_slice(key.as_bytes());
    format!("{origin}+{:08x}+{}", u32::from_be_bytes(hash), BASE64.encode(bytes))
}

/// A decimal number without leading zeros.
pub(crate) fn parse_decimal(text: &str) -> Option<u64> {
    let canonical = !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text == "0" || !text.starts_with('0'));
    canonical.then(|| text.parse().ok()).flatten().filter(|n| *n <= INTEGER_MAX as u64)
}

/// Standard base64 of exactly 32 bytes.
pub(crate) fn parse_digest(text: &str) -> Option<Digest> {
    Some(Digest(BASE64.decode(text).ok()?.try_into().ok()?))
}

impl Note {
    pub fn parse(bytes: &[u8]) -> Result<Note, Error> {
        if bytes.len() > NOTE_BYTES_MAX {
            return Err(Error::Form("at most 16 KiB"));
        }
        let note = std::str::from_utf8(bytes).map_err(|_| Error::Form("UTF-8"))?;
        if note.bytes().any(|b| b < 0x20 && b != b'\n') {
            return Err(Error::Form("no control characters"));
        }
        let (text, signatures) =
            note.split_once("\n\n").ok_or(Error::Form("an empty line before the signatures"))?;
        let text = format!("{text}\n");
        let lines: Vec<&str> = text.lines().collect();
        let [name, number, digest] = lines[..] else {
            return Err(Error::Form("three lines: name, number, base64 digest"));
        };
        let number = parse_decimal(number).ok_or(Error::Form("a decimal number in the second line"))?;
        let digest = parse_digest(digest).ok_or(Error::Form("base64 of 32 bytes in the third line"))?;
        let origin =
            |text: &str| text.parse::<Origin>().map_err(|_| Error::Form("an origin in the first line"));
        let statement = match name.rsplit_once("/trace/") {
            None => Statement::Checkpoint(Checkpoint { origin: origin(name)?, size: number, root: digest }),
            Some((prefix, trace)) => Statement::TraceHead(TraceHead {
                origin: origin(prefix)?,
                trace: trace.parse().map_err(|_| Error::Form("a trace id in the first line"))?,
                seq: number,
                hash: digest,
            }),
        };
        Ok(Note { statement, signatures: parse_signatures(signatures)?, text })
    }

    /// Whether the ledger's key signed this, under this origin. Signature lines of other keys are ignored.
    pub fn check(&self, origin: &Origin, key: &PublicKey) -> Result<(), Error> {
        let found = match &self.statement {
            Statement::Checkpoint(checkpoint) => &checkpoint.origin,
            Statement::TraceHead(head) => &head.origin,
        };
        if found != origin {
            return Err(Error::Origin { expected: origin.to_string(), found: found.to_string() });
        }
        let hash = key_hash(origin.as_str(), key);
        let mut ours =
            self.signatures.iter().filter(|s| s.name == origin.as_str() && s.key_hash == hash).peekable();
        if ours.peek().is_none() {
            return Err(Error::Unsigned);
        }
        let holds = |signature: &NoteSignature| {
            let bytes: Option<[u8; 64]> = signature.bytes.as_slice().try_into().ok();
            bytes.is_some_and(|bytes| key.verify_strict(self.text.as_bytes(), &Signature(bytes)))
        };
        if ours.all(holds) { Ok(()) } else { Err(Error::Signature) }
    }

    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        match &self.statement {
            Statement::Checkpoint(checkpoint) => Some(checkpoint),
            Statement::TraceHead(_) => None,
        }
    }
}

fn parse_signatures(text: &str) -> Result<Vec<NoteSignature>, Error> {
    let lines = text.strip_suffix('\n').ok_or(Error::Form("a line feed at the end"))?;
    let signatures: Vec<NoteSignature> = lines
        .split('\n')
        .take(NOTE_SIGNATURES_MAX + 1)
        .map(|line| {
            let (name, encoded) = line.strip_prefix("\u{2014} ")?.split_once(' ')?;
            let bytes = BASE64.decode(encoded).ok()?;
            let key_hash = bytes.get(..4)?.try_into().ok()?;
            (!name.is_empty() && !name.contains(['+', ' ']) && bytes.len() > 4).then(|| NoteSignature {
                name: name.to_owned(),
                key_hash,
                bytes: bytes[4..].to_vec(),
            })
        })
        .collect::<Option<_>>()
        .ok_or(Error::Form("signature lines: an em dash, a name, base64"))?;
    if signatures.len() > NOTE_SIGNATURES_MAX {
        return Err(Error::Form("at most 16 signature lines"));
    }
    Ok(signatures)
}

//! The record: an event as one stored line, read without building values.
//!
//! [`Line`] is a borrowed view of a canonical line; because the line is canonical, every digest is taken over pieces of it. The way
//! in is [`crate::body`].

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::{ARTIFACTS_MAX, LINE_BYTES_MAX};
use baton_core::{
    AgentName, Digest, EventId, EventType, KeyId, Payload, Role, Seen, Timestamp, Token, TraceId,
};

use crate::canonical::scan::RawStr;
use crate::canonical::{self, Scanner};
use crate::hash::{Hasher, LINK_DOMAIN, sha256};
use crate::key::Signature;

/// Why a line is not a record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error("the line is {0} bytes long, at most {LINE_BYTES_MAX} are allowed")]
    TooLong(usize),
    #[error("not UTF-8 at byte {0}")]
    NotUtf8(usize),
    #[error(transparent)]
    Json(#[from] canonical::Error),
    #[error("{field}: expected {expected}")]
    Field { field: &'static str, expected: &'static str },
    #[error("format version {0} is newer than this reader's (1)")]
    Newer(i64),
}

/// A record as it stands in a line. Well-formed; nothing about it is verified yet.
#[derive(Debug, Clone)]
pub struct Line<'a> {
    pub text: &'a str,
    pub agent: &'a str,
    pub role: Role,
    pub artifacts: Vec<CitedArtifact<'a>>,
    pub at: Timestamp,
    pub batch: Option<(u32, u32)>,
    pub commit: Option<u64>,
    pub fence: Option<u64>,
    pub hash: Digest,
    pub id: EventId,
    pub payload: &'a str,
    pub pos: u64,
    pub prev: Digest,
    pub run: Option<&'a str>,
    pub seen: Option<Seen>,
    pub seq: u64,
    pub session: Option<&'a str>,
    pub sig: Option<Sig>,
    pub task: Option<&'a str>,
    pub trace: TraceId,
    pub event_type: &'a str,
    spans: Spans<'a>,
}

/// The members that the link's hash takes over as they stand, and the pieces of the body.
#[derive(Debug, Clone, Default)]
struct Spans<'a> {
    batch: &'a str,
    commit: &'a str,
    prev: &'a str,
    seq: &'a str,
    sig: &'a str,
    body: [&'a str; 8],
    pieces: usize,
}

/// A signature and the key it claims.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sig {
    pub key: KeyId,
    pub value: Signature,
}

/// One element of `artifacts`.
#[derive(Debug, Clone, Copy)]
pub struct CitedArtifact<'a> {
    pub sha256: Digest,
    pub bytes: u64,
    pub media_type: RawStr<'a>,
    pub name: RawStr<'a>,
}

impl<'a> Line<'a> {
    /// Reads a line without its line feed.
    pub fn parse(line: &'a [u8]) -> Result<Line<'a>, Flaw> {
        if line.len() > LINE_BYTES_MAX {
            return Err(Flaw::TooLong(line.len()));
        }
        let text = std::str::from_utf8(line).map_err(|e| Flaw::NotUtf8(e.valid_up_to()))?;
        parse_members(text).map_err(|flaw| newer_version(text).map_or(flaw, Flaw::Newer))
    }

    /// The position of the first event of the same physical write.
    pub fn effective_commit(&self) -> u64 {
        self.commit.unwrap_or(self.pos)
    }

    /// SHA-256 of the body: the line without the seven members that are not part of it.
    pub fn body_digest(&self) -> Digest {
        let mut hasher = Hasher::default();
        for piece in &self.spans.body[..self.spans.pieces] {
            hasher.update(piece.as_bytes());
        }
        hasher.finish()
    }

    /// The hash that the record's members give.
    pub fn link_hash(&self, body: &Digest) -> Digest {
        let spans = &self.spans;
        link_hash(spans.batch, body, spans.commit, spans.prev, spans.seq, spans.sig)
    }

    /// The record as an event. Fails where the payload does not fit its type.
    pub fn to_payload(&self) -> Result<Payload, String> {
        let event_type: EventType = self.event_type.parse().map_err(|e| format!("{e}"))?;
        match canonical::parse(self.payload.as_bytes()).map_err(|e| e.to_string())? {
            serde_json::Value::Object(fields) => {
                Payload::read(&event_type, fields).map_err(|e| e.to_string())
            }
            _ => Err("payload: expected an object".to_owned()),
        }
    }
}

/// The hash of a link over its members' JSON texts; an empty text stands for an absent member.
pub(crate) fn link_hash(
    batch: &str,
    body: &Digest,
    commit: &str,
    prev: &str,
    seq: &str,
    sig: &str,
) -> Digest {
    let mut out = Vec::with_capacity(512);
    let put = |out: &mut Vec<u8>, name: &[u8], value: &str| {
        out.extend_from_slice(name);
        out.extend_from_slice(if value.is_empty() { b"null" } else { value.as_bytes() });
    };
    out.extend_from_slice(LINK_DOMAIN);
    put(&mut out, b"{\"batch\":", batch);
    out.extend_from_slice(b",\"bd\":\"");
    body.push_hex(&mut out);
    put(&mut out, b"\",\"commit\":", commit);
    put(&mut out, b",\"prev\":", prev);
    put(&mut out, b",\"seq\":", seq);
    put(&mut out, b",\"sig\":", sig);
    out.push(b'}');
    sha256(&out)
}

/// The version of a canonical object whose `v` is an integer above 1.
fn newer_version(text: &str) -> Option<i64> {
    let mut scanner = Scanner::new(text);
    let mut version = None;
    scanner
        .object(1, |scanner, name| {
            let start = scanner.at();
            scanner.value(2)?;
            if name.plain() == Some("v") {
                version = scanner.since(start).parse::<i64>().ok();
            }
            Ok(())
        })
        .ok()?;
    scanner.end().ok()?;
    version.filter(|v| *v > 1)
}

fn field<T>(found: Option<T>, field: &'static str, expected: &'static str) -> Result<T, Flaw> {
    found.ok_or(Flaw::Field { field, expected })
}

/// Everything read so far, with a place for each member.
#[derive(Default)]
struct Members<'a> {
    agent: Option<&'a str>,
    role: Option<Role>,
    actor_key: Option<KeyId>,
    artifacts: Option<Vec<CitedArtifact<'a>>>,
    at: Option<Timestamp>,
    batch: Option<(u32, u32)>,
    commit: Option<u64>,
    fence: Option<u64>,
    hash: Option<Digest>,
    id: Option<EventId>,
    payload: Option<&'a str>,
    pos: Option<u64>,
    prev: Option<Digest>,
    run: Option<&'a str>,
    seen: Option<Seen>,
    seq: Option<u64>,
    session: Option<&'a str>,
    sig: Option<Sig>,
    task: Option<&'a str>,
    trace: Option<TraceId>,
    event_type: Option<&'a str>,
    version: Option<u64>,
    spans: Spans<'a>,
}

fn parse_members(text: &str) -> Result<Line<'_>, Flaw> {
    let mut members = Members::default();
    let mut flaw = None;
    let mut scanner = Scanner::new(text);
    // The body is made of the pieces between the members that are left out; each piece starts with its comma.
    let mut piece_start = 0;
    let mut member_end = 0;
    let scanned = scanner.object(1, |scanner, name| {
        let name = name.plain().unwrap_or("(escaped name)");
        let start = scanner.at();
        if let Err(found) = members.read(name, scanner) {
            let error = scanner.expected("a record of version 1");
            return Err(match flaw.insert(found) {
                Flaw::Json(error) => error.clone(),
                _ => error,
            });
        }
        if !members.spans.keep(name, scanner.since(start)) {
            members.spans.push_piece(&text[piece_start..member_end]);
            piece_start = scanner.at();
        }
        member_end = scanner.at();
        Ok(())
    });
    scanned.map_err(|error| flaw.unwrap_or(Flaw::Json(error)))?;
    scanner.end()?;
    members.spans.push_piece(&text[piece_start..]);
    members.finish(text)
}

impl<'a> Spans<'a> {
    /// Notes a member's text where the link's hash needs it; true where the member belongs to the body.
    fn keep(&mut self, name: &str, value: &'a str) -> bool {
        match name {
            "batch" => self.batch = value,
            "commit" => self.commit = value,
            "prev" => self.prev = value,
            "seq" => self.seq = value,
            "sig" => self.sig = value,
            "hash" | "pos" => {}
            _ => return true,
        }
        false
    }

    fn push_piece(&mut self, piece: &'a str) {
        // Seven members are left out, so there are at most eight pieces; a piece after a doubled cut is empty.
        if !piece.is_empty() && self.pieces < self.body.len() {
            self.body[self.pieces] = piece;
            self.pieces += 1;
        }
    }
}

const HEX64: &str = "64 lower-case hex digits";

impl<'a> Members<'a> {
    fn read(&mut self, name: &str, scanner: &mut Scanner<'a>) -> Result<(), Flaw> {
        match name {
            "actor" => self.read_actor(scanner)?,
            "artifacts" => self.artifacts = Some(read_artifacts(scanner)?),
            "at" => self.at = Some(parsed(scanner, "at", "a time like 2026-01-31T09:30:00.000Z")?),
            "batch" => self.batch = Some(read_batch(scanner)?),
            "commit" => self.commit = Some(positive(scanner, "commit")?),
            "fence" => self.fence = Some(positive(scanner, "fence")?),
            "hash" => self.hash = Some(digest(scanner, "hash")?),
            "id" => self.id = Some(parsed(scanner, "id", "evt_ and a UUID of version 7")?),
            "payload" => {
                if scanner.peek() != Some(b'{') {
                    return Err(Flaw::Field { field: "payload", expected: "an object" });
                }
                let start = scanner.at();
                scanner.value(2)?;
                self.payload = Some(scanner.since(start));
            }
            "pos" => self.pos = Some(positive(scanner, "pos")?),
            "prev" => self.prev = Some(digest(scanner, "prev")?),
            "run" => self.run = Some(text(scanner, "run", "a token", Token::is_valid)?),
            "seen" => self.seen = Some(read_seen(scanner)?),
            "seq" => self.seq = Some(positive(scanner, "seq")?),
            "session" => self.session = Some(text(scanner, "session", "a token", Token::is_valid)?),
            "sig" => self.sig = Some(read_sig(scanner)?),
            "task" => self.task = Some(text(scanner, "task", "a token", Token::is_valid)?),
            "trace" => {
                self.trace = Some(parsed(scanner, "trace", "`ledger`, or trc_ and a UUID of version 7")?)
            }
            "type" => self.event_type = Some(text(scanner, "type", "an event type", EventType::is_valid)?),
            "v" => self.version = Some(positive(scanner, "v")?),
            _ => {
                return Err(Flaw::Field {
                    field: "record",
                    expected: "no other member than those of version 1",
                });
            }
        }
        Ok(())
    }

    fn read_actor(&mut self, scanner: &mut Scanner<'a>) -> Result<(), Flaw> {
        object(scanner, 2, "actor", |scanner, name| {
            match name {
                "agent" => {
                    self.agent = Some(text(scanner, "actor.agent", "an agent name", AgentName::is_valid)?)
                }
                "key" => self.actor_key = Some(parsed(scanner, "actor.key", "a key id")?),
                "role" => self.role = Some(parsed(scanner, "actor.role", "one of the six roles")?),
                _ => return Err(Flaw::Field { field: "actor", expected: "agent, role and key only" }),
            }
            Ok(())
        })
    }

    fn finish(self, text: &'a str) -> Result<Line<'a>, Flaw> {
        if self.version != Some(1) {
            return Err(Flaw::Field { field: "v", expected: "1" });
        }
        if self.sig.map(|sig| sig.key) != self.actor_key {
            return Err(Flaw::Field { field: "sig.key", expected: "the same key as in actor, or neither" });
        }
        let pos = field(self.pos, "pos", "an integer ≥ 1")?;
        if self.commit.is_some_and(|commit| commit >= pos) {
            return Err(Flaw::Field { field: "commit", expected: "a position before this one" });
        }
        Ok(Line {
            text,
            agent: field(self.agent, "actor.agent", "an agent name")?,
            role: field(self.role, "actor.role", "one of the six roles")?,
            artifacts: field(self.artifacts, "artifacts", "an array")?,
            at: field(self.at, "at", "a time")?,
            batch: self.batch,
            commit: self.commit,
            fence: self.fence,
            hash: field(self.hash, "hash", HEX64)?,
            id: field(self.id, "id", "evt_ and a UUID of version 7")?,
            payload: field(self.payload, "payload", "an object")?,
            pos,
            prev: field(self.prev, "prev", HEX64)?,
            run: self.run,
            seen: self.seen,
            seq: field(self.seq, "seq", "an integer ≥ 1")?,
            session: self.session,
            sig: self.sig,
            task: self.task,
            trace: field(self.trace, "trace", "a trace id")?,
            event_type: field(self.event_type, "type", "an event type")?,
            spans: self.spans,
        })
    }
}

/// An object whose members a closure reads; a flaw that it finds is kept as it is.
fn object<'a>(
    scanner: &mut Scanner<'a>,
    depth: usize,
    name: &'static str,
    mut member: impl FnMut(&mut Scanner<'a>, &str) -> Result<(), Flaw>,
) -> Result<(), Flaw> {
    if scanner.peek() != Some(b'{') {
        return Err(Flaw::Field { field: name, expected: "an object" });
    }
    let mut flaw = None;
    let scanned = scanner.object(depth, |scanner, name| {
        member(scanner, name.plain().unwrap_or("(escaped name)")).map_err(|found| {
            flaw = Some(found);
            scanner.expected("a record of version 1")
        })
    });
    scanned.map_err(|error| flaw.unwrap_or(Flaw::Json(error)))
}

fn text<'a>(
    scanner: &mut Scanner<'a>,
    name: &'static str,
    expected: &'static str,
    is_valid: fn(&str) -> bool,
) -> Result<&'a str, Flaw> {
    if scanner.peek() != Some(b'"') {
        return Err(Flaw::Field { field: name, expected });
    }
    field(scanner.string()?.plain().filter(|text| is_valid(text)), name, expected)
}

fn parsed<T: std::str::FromStr>(
    scanner: &mut Scanner<'_>,
    name: &'static str,
    expected: &'static str,
) -> Result<T, Flaw> {
    field(text(scanner, name, expected, |_| true)?.parse().ok(), name, expected)
}

fn digest(scanner: &mut Scanner<'_>, name: &'static str) -> Result<Digest, Flaw> {
    field(Digest::from_hex(text(scanner, name, HEX64, |_| true)?.as_bytes()), name, HEX64)
}

fn integer(scanner: &mut Scanner<'_>, name: &'static str, min: i64) -> Result<u64, Flaw> {
    let expected = if min == 0 { "an integer ≥ 0" } else { "an integer ≥ 1" };
    let number = scanner.integer().map_err(|error| match error {
        canonical::Error::NotCanonical { .. } => Flaw::Field { field: name, expected },
        other => Flaw::Json(other),
    })?;
    field((number >= min).then(|| number.unsigned_abs()), name, expected)
}

fn positive(scanner: &mut Scanner<'_>, name: &'static str) -> Result<u64, Flaw> {
    integer(scanner, name, 1)
}

fn read_batch(scanner: &mut Scanner<'_>) -> Result<(u32, u32), Flaw> {
    const EXPECTED: Flaw = Flaw::Field { field: "batch", expected: "[i, n] with 1 ≤ i ≤ n and n ≥ 2" };
    let mut numbers = Vec::new();
    scanner
        .array(2, |scanner| {
            numbers.push(scanner.integer()?);
            if numbers.len() > 2 { Err(scanner.expected("two integers")) } else { Ok(()) }
        })
        .map_err(|_| EXPECTED)?;
    match numbers[..] {
        [i, n] if n >= 2 && (1..=n).contains(&i) => {
            Ok((u32::try_from(i).map_err(|_| EXPECTED)?, u32::try_from(n).map_err(|_| EXPECTED)?))
        }
        _ => Err(EXPECTED),
    }
}

fn read_seen(scanner: &mut Scanner<'_>) -> Result<Seen, Flaw> {
    let (mut hash, mut seq) = (None, None);
    object(scanner, 2, "seen", |scanner, name| {
        match name {
            "hash" => hash = Some(digest(scanner, "seen.hash")?),
            "seq" => seq = Some(positive(scanner, "seen.seq")?),
            _ => return Err(Flaw::Field { field: "seen", expected: "hash and seq only" }),
        }
        Ok(())
    })?;
    Ok(Seen { hash: field(hash, "seen.hash", HEX64)?, seq: field(seq, "seen.seq", "an integer ≥ 1")? })
}

fn read_sig(scanner: &mut Scanner<'_>) -> Result<Sig, Flaw> {
    let (mut alg, mut key, mut value) = (None, None, None);
    object(scanner, 2, "sig", |scanner, name| {
        match name {
            "alg" => alg = Some(text(scanner, "sig.alg", "\"ed25519\"", |alg| alg == "ed25519")?),
            "key" => key = Some(parsed(scanner, "sig.key", "a key id")?),
            "value" => {
                let expected = "base64 of 64 bytes";
                let encoded = text(scanner, "sig.value", expected, |text| text.len() == 88)?;
                let mut bytes = [0; 66];
                let length = BASE64.decode_slice(encoded, &mut bytes).unwrap_or(0);
                let bytes: Option<[u8; 64]> = bytes[..length].try_into().ok();
                value = Some(Signature(field(bytes, "sig.value", expected)?));
            }
            _ => return Err(Flaw::Field { field: "sig", expected: "alg, key and value only" }),
        }
        Ok(())
    })?;
    field(alg, "sig.alg", "\"ed25519\"")?;
    Ok(Sig {
        key: field(key, "sig.key", "a key id")?,
        value: field(value, "sig.value", "base64 of 64 bytes")?,
    })
}

fn read_artifacts<'a>(scanner: &mut Scanner<'a>) -> Result<Vec<CitedArtifact<'a>>, Flaw> {
    if scanner.peek() != Some(b'[') {
        return Err(Flaw::Field { field: "artifacts", expected: "an array" });
    }
    let mut list = Vec::new();
    let mut flaw = None;
    let scanned = scanner.array(2, |scanner| {
        let item = if list.len() < ARTIFACTS_MAX {
            read_artifact(scanner)
        } else {
            Err(Flaw::Field { field: "artifacts", expected: "at most 256 of them" })
        };
        match item {
            Ok(item) => list.push(item),
            Err(found) => {
                flaw = Some(found);
                return Err(scanner.expected("an artifact"));
            }
        }
        Ok(())
    });
    scanned.map_err(|error| flaw.unwrap_or(Flaw::Json(error)))?;
    Ok(list)
}

fn read_artifact<'a>(scanner: &mut Scanner<'a>) -> Result<CitedArtifact<'a>, Flaw> {
    let (mut bytes, mut media_type, mut label, mut sha256) = (None, None, None, None);
    object(scanner, 3, "artifacts", |scanner, name| {
        match name {
            "bytes" => bytes = Some(integer(scanner, "artifacts.bytes", 0)?),
            "media_type" => media_type = Some(bounded(scanner, "artifacts.media_type", 127)?),
            "name" => label = Some(bounded(scanner, "artifacts.name", 255)?),
            "sha256" => sha256 = Some(digest(scanner, "artifacts.sha256")?),
            _ => {
                let expected = "bytes, media_type, name and sha256 only";
                return Err(Flaw::Field { field: "artifacts", expected });
            }
        }
        Ok(())
    })?;
    Ok(CitedArtifact {
        sha256: field(sha256, "artifacts.sha256", HEX64)?,
        bytes: field(bytes, "artifacts.bytes", "an integer ≥ 0")?,
        media_type: field(media_type, "artifacts.media_type", "a string")?,
        name: field(label, "artifacts.name", "a string")?,
    })
}

fn bounded<'a>(scanner: &mut Scanner<'a>, name: &'static str, max: usize) -> Result<RawStr<'a>, Flaw> {
    let expected =
        if max == 127 { "a string of 1 to 127 characters" } else { "a string of 1 to 255 characters" };
    if scanner.peek() != Some(b'"') {
        return Err(Flaw::Field { field: name, expected });
    }
    let text = scanner.string()?;
    field((1..=max).contains(&text.char_count()).then_some(text), name, expected)
}

//! An event on its way in: its canonical bytes, its digest, and the signature that its actor made over that digest.
//!
//! All of this happens in the caller's thread, outside of the append's lock. The sequencer only puts in the members that are not part
//! of the body (position, chain, signature), at five places where the bytes are cut.

use std::fmt::{self, Display, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::{ARTIFACTS_MAX, INTEGER_MAX, LINE_BYTES_MAX};
use baton_core::{AgentName, Digest, Event, EventId, EventType, KeyGrant, Payload, Role, Seen, TraceId};

use crate::canonical::{self, push_integer, push_string};
use crate::guard::Heard;
use crate::hash::sha256;
use crate::key::{SecretKey, Signature};
use crate::record::{Sig, link_hash};

/// A canonical body with its digest and, where its actor signed it, the signature.
#[derive(Debug, Clone)]
pub struct Body {
    pub trace: TraceId,
    pub id: EventId,
    pub agent: AgentName,
    pub role: Role,
    pub event_type: EventType,
    pub seen: Option<Seen>,
    pub digest: Digest,
    pub sig: Option<Sig>,
    /// Typed only where the chain itself needs it: key events.
    pub key_event: Option<KeyEvent>,
    /// What the rules of guarded work would have to know of it.
    pub heard: Heard,
    bytes: Vec<u8>,
    cuts: [usize; 5],
}

/// What a key event does to the keys of its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyEvent {
    Bound(KeyGrant),
    Rotated { old: baton_core::KeyId, new: KeyGrant },
    Revoked(baton_core::KeyId),
}

impl KeyEvent {
    /// Whether this key may sign after the event.
    pub fn binds(&self, key: baton_core::KeyId) -> bool {
        match self {
            KeyEvent::Bound(grant) | KeyEvent::Rotated { new: grant, .. } => grant.key == key,
            KeyEvent::Revoked(_) => false,
        }
    }

    pub fn of(payload: &Payload) -> Option<KeyEvent> {
        match payload {
            Payload::KeyBound(grant) => Some(KeyEvent::Bound(grant.clone())),
            Payload::KeyRotated { old, new } => Some(KeyEvent::Rotated { old: *old, new: new.clone() }),
            Payload::KeyRevoked { key, .. } => Some(KeyEvent::Revoked(*key)),
            Payload::LedgerCreated { .. }
            | Payload::LedgerRecovered { .. }
            | Payload::TraceOpened { .. }
            | Payload::TraceClosed { .. }
            | Payload::Other { .. } => None,
        }
    }
}

/// Why an event cannot be stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("payload: {0}")]
    Payload(#[from] canonical::Error),
    #[error("{field}: expected {expected}, got {got}")]
    Field { field: &'static str, expected: &'static str, got: String },
    #[error(
        "the event is {bytes} bytes long, at most {LINE_BYTES_MAX} are allowed; put the bulk into an artifact"
    )]
    TooLong { bytes: usize },
}

/// What sealing adds to a body, at most: four numbers, two hashes, a signature and their names.
const SEALED_BYTES_MAX: usize = 512;

/// Where a line stands; what the sequencer decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub pos: u64,
    pub seq: u64,
    pub prev: Digest,
    /// The i-th of n events of one decision; `None` where n is 1.
    pub batch: Option<(u32, u32)>,
    /// Position of the first event of the same physical write; `None` where it is its own.
    pub commit: Option<u64>,
}

impl Body {
    /// Prints an event that nobody signs.
    pub fn unsigned(event: &Event) -> Result<Body, Error> {
        match event.actor.key {
            None => Body::print(event),
            Some(key) => Err(field("actor.key", "no key on an unsigned event", key)),
        }
    }

    /// Prints an event and signs it here and now.
    pub fn signed(mut event: Event, key: &SecretKey) -> Result<Body, Error> {
        event.actor.key = Some(key.id());
        let mut body = Body::print(&event)?;
        body.sig = Some(Sig { key: key.id(), value: key.sign_event(&body.digest) });
        Ok(body)
    }

    /// Takes a signature that was made elsewhere. It is judged when the event is admitted.
    pub fn signed_elsewhere(event: &Event, value: Signature) -> Result<Body, Error> {
        let key =
            event.actor.key.ok_or_else(|| field("actor.key", "the id of the signing key", "nothing"))?;
        let mut body = Body::print(event)?;
        body.sig = Some(Sig { key, value });
        Ok(body)
    }

    /// The bytes whose digest is signed.
    pub fn canonical_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// An upper bound of the sealed line's length, line feed included.
    pub fn line_bytes_max(&self) -> usize {
        self.bytes.len() + SEALED_BYTES_MAX
    }

    /// Appends the sealed line with its line feed, and gives the record's hash.
    pub fn seal(&self, link: &Link, out: &mut Vec<u8>) -> Digest {
        let link = LinkText::print(link, self.sig.as_ref());
        let [batch, commit, prev, seq, pos, sig] = link.parts();
        let hash = link_hash(batch, &self.digest, commit, prev, seq, sig);

        let [at, fence, payload, seen, session] = self.cuts;
        let put = |out: &mut Vec<u8>, name: &str, value: &str| {
            if !value.is_empty() {
                out.extend_from_slice(name.as_bytes());
                out.extend_from_slice(value.as_bytes());
            }
        };
        out.reserve(self.line_bytes_max());
        out.extend_from_slice(&self.bytes[..at]);
        put(out, ",\"batch\":", batch);
        put(out, ",\"commit\":", commit);
        out.extend_from_slice(&self.bytes[at..fence]);
        out.extend_from_slice(b",\"hash\":\"");
        hash.push_hex(out);
        out.push(b'"');
        out.extend_from_slice(&self.bytes[fence..payload]);
        put(out, ",\"pos\":", pos);
        put(out, ",\"prev\":", prev);
        out.extend_from_slice(&self.bytes[payload..seen]);
        put(out, ",\"seq\":", seq);
        out.extend_from_slice(&self.bytes[seen..session]);
        put(out, ",\"sig\":", sig);
        out.extend_from_slice(&self.bytes[session..]);
        out.push(b'\n');
        hash
    }

    fn print(event: &Event) -> Result<Body, Error> {
        let (bytes, cuts) = print_canonical(event)?;
        let length = bytes.len() + SEALED_BYTES_MAX;
        if length > LINE_BYTES_MAX {
            return Err(Error::TooLong { bytes: length });
        }
        let event_type = event.payload.event_type();
        Ok(Body {
            trace: event.trace,
            id: event.id,
            agent: event.actor.agent.clone(),
            role: event.actor.role,
            event_type: event_type.parse().map_err(|_| field("type", "an event type", event_type))?,
            seen: event.seen,
            digest: sha256(&bytes),
            sig: None,
            key_event: key_event(&event.payload)?,
            heard: Heard::of_event(event),
            bytes,
            cuts,
        })
    }
}

/// A key event's meaning, also where its fields came untyped.
fn key_event(payload: &Payload) -> Result<Option<KeyEvent>, Error> {
    let Payload::Other { event_type, fields } = payload else { return Ok(KeyEvent::of(payload)) };
    if !matches!(event_type.as_str(), "key_bound" | "key_rotated" | "key_revoked") {
        return Ok(None);
    }
    let typed = Payload::read(event_type, fields.clone());
    Ok(KeyEvent::of(&typed.map_err(|e| field("payload", "the fields of its type", e))?))
}

/// The members of a link as JSON, one after the other in one text; an absent one is empty.
struct LinkText {
    text: String,
    ends: [usize; 6],
}

impl LinkText {
    fn print(link: &Link, sig: Option<&Sig>) -> Self {
        let mut text = String::with_capacity(384);
        let mut ends = [0; 6];
        // Writing to memory does not fail.
        if let Some((i, n)) = link.batch {
            let _ = write!(text, "[{i},{n}]");
        }
        ends[0] = text.len();
        if let Some(commit) = link.commit {
            let _ = write!(text, "{commit}");
        }
        ends[1] = text.len();
        let _ = write!(text, "\"{}\"", link.prev);
        ends[2] = text.len();
        let _ = write!(text, "{}", link.seq);
        ends[3] = text.len();
        let _ = write!(text, "{}", link.pos);
        ends[4] = text.len();
        if let Some(sig) = sig {
            let _ = write!(text, "{{\"alg\":\"ed25519\",\"key\":\"{}\",\"value\":\"", sig.key);
            BASE64.encode_string(sig.value.0, &mut text);
            text.push_str("\"}");
        }
        ends[5] = text.len();
        LinkText { text, ends }
    }

    fn parts(&self) -> [&str; 6] {
        let mut start = 0;
        self.ends.map(|end| &self.text[std::mem::replace(&mut start, end)..end])
    }
}

fn field(name: &'static str, expected: &'static str, got: impl std::fmt::Display) -> Error {
    Error::Field { field: name, expected, got: got.to_string().chars().take(80).collect() }
}

/// Prints the body's members in canonical order and notes the five places where others will stand between them.
fn print_canonical(event: &Event) -> Result<(Vec<u8>, [usize; 5]), Error> {
    let mut out = Vec::with_capacity(768);
    let mut cuts = [0; 5];
    out.extend_from_slice(b"{\"actor\":{\"agent\":");
    push_string(&mut out, event.actor.agent.as_str());
    if let Some(key) = event.actor.key {
        put_plain(&mut out, ",\"key\":", key);
    }
    put_text(&mut out, ",\"role\":", event.actor.role.as_str());
    out.extend_from_slice(b"},\"artifacts\":[");
    print_artifacts(&mut out, event)?;
    out.push(b']');
    put_plain(&mut out, ",\"at\":", event.at);
    cuts[0] = out.len();
    if let Some(fence) = event.fence {
        put_number(&mut out, ",\"fence\":", fence, "fence")?;
    }
    cuts[1] = out.len();
    put_plain(&mut out, ",\"id\":", event.id);
    out.extend_from_slice(b",\"payload\":");
    canonical::write_members(&mut out, &event.payload.fields(), 2)?;
    cuts[2] = out.len();
    if let Some(run) = &event.run {
        put_text(&mut out, ",\"run\":", run.as_str());
    }
    if let Some(seen) = &event.seen {
        put_plain(&mut out, ",\"seen\":{\"hash\":", seen.hash);
        put_number(&mut out, ",\"seq\":", seen.seq, "seen.seq")?;
        out.push(b'}');
    }
    cuts[3] = out.len();
    if let Some(session) = &event.session {
        put_text(&mut out, ",\"session\":", session.as_str());
    }
    cuts[4] = out.len();
    if let Some(task) = &event.task {
        put_text(&mut out, ",\"task\":", task.as_str());
    }
    put_plain(&mut out, ",\"trace\":", event.trace);
    put_text(&mut out, ",\"type\":", event.payload.event_type());
    out.extend_from_slice(b",\"v\":1}");
    Ok((out, cuts))
}

fn put_text(out: &mut Vec<u8>, name: &str, value: &str) {
    out.extend_from_slice(name.as_bytes());
    push_string(out, value);
}

/// A value whose grammar has nothing to escape.
fn put_plain(out: &mut Vec<u8>, name: &str, value: impl Display) {
    struct Printer<'a>(&'a mut Vec<u8>);
    impl fmt::Write for Printer<'_> {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.extend_from_slice(text.as_bytes());
            Ok(())
        }
    }
    out.extend_from_slice(name.as_bytes());
    // Writing to memory does not fail.
    let _ = write!(Printer(out), "\"{value}\"");
}

fn put_number(out: &mut Vec<u8>, name: &str, value: u64, shown: &'static str) -> Result<(), Error> {
    if value == 0 || value > INTEGER_MAX as u64 {
        return Err(field(shown, "an integer from 1 to 2^53−1", value));
    }
    out.extend_from_slice(name.as_bytes());
    push_integer(out, value.cast_signed());
    Ok(())
}

fn print_artifacts(out: &mut Vec<u8>, event: &Event) -> Result<(), Error> {
    if event.artifacts.len() > ARTIFACTS_MAX {
        return Err(field("artifacts", "at most 256 of them", event.artifacts.len()));
    }
    for (i, artifact) in event.artifacts.iter().enumerate() {
        if artifact.bytes > INTEGER_MAX as u64 {
            return Err(field("artifacts.bytes", "an integer up to 2^53−1", artifact.bytes));
        }
        if !(1..=127).contains(&artifact.media_type.chars().count()) {
            return Err(field("artifacts.media_type", "1 to 127 characters", &artifact.media_type));
        }
        if !(1..=255).contains(&artifact.name.chars().count()) {
            return Err(field("artifacts.name", "1 to 255 characters", &artifact.name));
        }
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(b"{\"bytes\":");
        push_integer(out, artifact.bytes.cast_signed());
        put_text(out, ",\"media_type\":", &artifact.media_type);
        put_text(out, ",\"name\":", &artifact.name);
        put_plain(out, ",\"sha256\":", artifact.sha256);
        out.push(b'}');
    }
    Ok(())
}

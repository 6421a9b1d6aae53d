//! Identifiers as newtypes that parse and print themselves; nothing else constructs them.
//!
//! Ids made of a UUID are version 7: 48 bits of time, then random bits. Both arrive as data.

use std::fmt;
use std::str::FromStr;

use crate::time::Timestamp;

/// Why a text is not the identifier it was taken for.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}, got {got:?}")]
pub struct Error {
    pub expected: &'static str,
    pub got: String,
}

fn refuse<T>(expected: &'static str, got: &str) -> Result<T, Error> {
    Err(Error { expected, got: got.chars().take(80).collect() })
}

/// A UUID of version 7 as its 16 bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uuid7([u8; 16]);

impl Uuid7 {
    /// Joins a moment and random bytes; the six fixed bits of the version and variant are set here.
    pub fn from_parts(at: Timestamp, random: [u8; 10]) -> Self {
        let mut bytes = [0; 16];
        bytes[..6].copy_from_slice(&at.unix_ms().max(0).to_be_bytes()[2..]);
        bytes[6..].copy_from_slice(&random);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid7(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }

    /// The moment that it carries, in milliseconds since 1970.
    pub fn unix_ms(&self) -> i64 {
        self.0[..6].iter().fold(0, |ms, byte| ms << 8 | i64::from(*byte))
    }

    /// Takes the 16 bytes back, or `None` where they are not of version 7.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes[6] >> 4 == 7 && bytes[8] >> 6 == 2).then_some(Uuid7(bytes))
    }

    fn parse(text: &[u8]) -> Option<Self> {
        if text.len() != 36 {
            return None;
        }
        let mut bytes = [0; 16];
        let mut at = 0;
        for (i, byte) in bytes.iter_mut().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                if text[at] != b'-' {
                    return None;
                }
                at += 1;
            }
            *byte = hex_digit(text[at])? << 4 | hex_digit(text[at + 1])?;
            at += 2;
        }
        Uuid7::from_bytes(bytes)
    }
}

impl fmt::Display for Uuid7 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = [b'-'; 36];
        let mut at = 0;
        for (i, byte) in self.0.iter().enumerate() {
            if matches!(i, 4 | 6 | 8 | 10) {
                at += 1;
            }
            text[at] = HEX[usize::from(byte >> 4)];
            text[at + 1] = HEX[usize::from(byte & 15)];
            at += 2;
        }
        f.write_str(ascii(&text))
    }
}

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Hex digits of as many bytes as fit.
fn hex<const DIGITS: usize>(bytes: &[u8]) -> [u8; DIGITS] {
    let mut text = [0; DIGITS];
    for (pair, byte) in text.chunks_exact_mut(2).zip(bytes) {
        pair[0] = HEX[usize::from(byte >> 4)];
        pair[1] = HEX[usize::from(byte & 15)];
    }
    text
}

fn ascii(bytes: &[u8]) -> &str {
    // Only hex digits and hyphens are ever put in.
    std::str::from_utf8(bytes).unwrap_or_default()
}

fn hex_digit(b: u8) -> Option<u8> {
    match b {
        b'0'..=b'9' => Some(b - b'0'),
        b'a'..=b'f' => Some(b - b'a' + 10),
        _ => None,
    }
}

/// Shows an identifier in debug output as it prints.
macro_rules! debug_as_display {
    ($($name:ty),*) => {$(
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}
debug_as_display!(
    Uuid7, EventId, TraceId, Digest, KeyId, LedgerId, RunId, SessionId, StreamId, ToolRunId, HookRunId
);

/// Declares an identifier that is a prefix and a UUID of version 7.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal, $expected:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid7);

        impl $name {
            pub fn new(uuid: Uuid7) -> Self {
                $name(uuid)
            }

            pub fn uuid(&self) -> &Uuid7 {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                match text.strip_prefix($prefix).and_then(|rest| Uuid7::parse(rest.as_bytes())) {
                    Some(uuid) => Ok($name(uuid)),
                    None => refuse($expected, text),
                }
            }
        }
    };
}

uuid_id!(
    /// The identity of one event, chosen by whoever made it.
    EventId, "evt_", "an event id (evt_ and a UUID of version 7)"
);
uuid_id!(
    /// The identity of one ledger; names its state directory.
    LedgerId, "led_", "a ledger id (led_ and a UUID of version 7)"
);

uuid_id!(
    /// The identity of one attempt at a task under one lease.
    RunId, "run_", "a run id (run_ and a UUID of version 7)"
);
uuid_id!(
    /// The identity of one supervised conversation with an agent.
    SessionId, "sess_", "a session id (sess_ and a UUID of version 7)"
);

uuid_id!(
    /// The identity of one request to a model or agent, and of what streams back.
    StreamId, "turn_", "a stream id (turn_ and a UUID of version 7)"
);
uuid_id!(
    /// The identity of one call of a tool, however often it is tried.
    ToolRunId, "toolrun_", "a tool run id (toolrun_ and a UUID of version 7)"
);
uuid_id!(
    /// The identity of one hook after one batch of tools, however often it is tried.
    HookRunId, "hookrun_", "a hook run id (hookrun_ and a UUID of version 7)"
);

/// The identity of a trace: the reserved `ledger`, or `trc_` and a UUID of version 7.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TraceId {
    /// The trace that holds what belongs to no other.
    Ledger,
    Work(Uuid7),
}

impl TraceId {
    /// Sixteen bytes that stand for the trace in an index; all zero is `ledger`, which no UUID of version 7 is.
    pub fn to_key(self) -> [u8; 16] {
        match self {
            TraceId::Ledger => [0; 16],
            TraceId::Work(uuid) => uuid.0,
        }
    }

    pub fn from_key(key: [u8; 16]) -> Option<Self> {
        if key == [0; 16] { Some(TraceId::Ledger) } else { Uuid7::from_bytes(key).map(TraceId::Work) }
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceId::Ledger => f.write_str("ledger"),
            TraceId::Work(uuid) => write!(f, "trc_{uuid}"),
        }
    }
}

impl FromStr for TraceId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "ledger" {
            return Ok(TraceId::Ledger);
        }
        match text.strip_prefix("trc_").and_then(|rest| Uuid7::parse(rest.as_bytes())) {
            Some(uuid) => Ok(TraceId::Work(uuid)),
            None => refuse("a trace id (`ledger`, or trc_ and a UUID of version 7)", text),
        }
    }
}

/// A SHA-256 digest, printed as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// What stands before the first event of a trace.
    pub const ZERO: Digest = Digest([0; 32]);

    /// Writes the 64 hex digits without going through a formatter.
    pub fn push_hex(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&hex::<64>(&self.0));
    }

    /// Reads exactly 64 lower-case hex digits.
    pub fn from_hex(text: &[u8]) -> Option<Self> {
        let digits: &[u8; 64] = text.try_into().ok()?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
        }
        Some(Digest(bytes))
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(ascii(&hex::<64>(&self.0)))
    }
}

impl FromStr for Digest {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Digest::from_hex(text.as_bytes()).map_or_else(|| refuse("64 lower-case hex digits", text), Ok)
    }
}

/// The short name of a public key: its algorithm and the first eight bytes of its SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId([u8; 8]);

impl KeyId {
    /// The id of the Ed25519 key whose public half hashes to `digest`.
    pub fn from_digest(digest: &Digest) -> Self {
        let mut id = [0; 8];
        id.copy_from_slice(&digest.0[..8]);
        KeyId(id)
    }

    pub fn to_bytes(self) -> [u8; 8] {
        self.0
    }

    pub fn from_bytes(bytes: [u8; 8]) -> Self {
        KeyId(bytes)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("key_ed25519_")?;
        f.write_str(ascii(&hex::<16>(&self.0)))
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let parse = |text: &str| {
            let digits: &[u8; 16] = text.strip_prefix("key_ed25519_")?.as_bytes().try_into().ok()?;
            let mut id = [0; 8];
            for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
                *byte = hex_digit(pair[0])? << 4 | hex_digit(pair[1])?;
            }
            Some(KeyId(id))
        };
        parse(text).map_or_else(|| refuse("a key id (key_ed25519_ and 16 hex digits)", text), Ok)
    }
}

/// Declares an identifier that is a text of a stated grammar.
macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident, $expected:literal, $is_valid:expr) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Box<str>);

        impl $name {
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// Whether a text has this grammar, without making one.
            pub fn is_valid(text: &str) -> bool {
                let is_valid: fn(&[u8]) -> bool = $is_valid;
                is_valid(text.as_bytes())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self, Error> {
                if $name::is_valid(text) { Ok($name(text.into())) } else { refuse($expected, text) }
            }
        }
    };
}

/// Longest suffix of a task's id: room for every counter, and for the ids of other systems.
const TASK_SUFFIX_MAX: usize = 32;

fn is_task_id(b: &[u8]) -> bool {
    let Some((date, suffix)) = b.strip_prefix(b"TASK-").and_then(|rest| rest.split_at_checked(11)) else {
        return false;
    };
    let is_dated = date.iter().enumerate().all(|(i, c)| match i {
        4 | 7 | 10 => *c == b'-',
        _ => c.is_ascii_digit(),
    });
    let is_numbered = match suffix.len() {
        3 => suffix.iter().all(u8::is_ascii_digit),
        4..=TASK_SUFFIX_MAX => suffix.iter().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit()),
        _ => false,
    };
    is_dated && is_numbered
}

impl TaskId {
    /// The id of the n-th task of a day.
    pub fn of_day(day: Timestamp, number: u64) -> Self {
        let date = &day.to_string()[..10];
        TaskId(format!("TASK-{date}-{number:03}").into())
    }

    /// The date in the id, and its number where the suffix is one.
    pub fn parts(&self) -> (&str, Option<u64>) {
        let suffix = &self.0[16..];
        let is_number = suffix.bytes().all(|c| c.is_ascii_digit());
        (&self.0[5..15], if is_number { suffix.parse().ok() } else { None })
    }

    /// The same id as the ledger carries it.
    pub fn to_token(&self) -> Token {
        Token(self.0.clone())
    }
}

fn is_name(b: &[u8], length_max: usize, extra: &[u8]) -> bool {
    let plain = |c: &u8| c.is_ascii_lowercase() || c.is_ascii_digit();
    !b.is_empty() && b.len() <= length_max && plain(&b[0]) && b.iter().all(|c| plain(c) || extra.contains(c))
}

text_id!(
    /// The name of an agent: a configuration, a script, a person.
    AgentName,
    "an agent name (a lower-case letter or digit, then up to 63 of a-z 0-9 . _ -)",
    |b| is_name(b, 64, b"._-")
);
text_id!(
    /// The name under which a ledger signs its checkpoints.
    Origin,
    "an origin (a lower-case letter or digit, then up to 127 of a-z 0-9 . _ / -, without /trace/)",
    // The name of a trace's head is an origin, `/trace/` and the trace: an origin may not look like one.
    |b| is_name(b, 128, b"._/-") && !b.windows(7).any(|part| part == b"/trace/")
);
text_id!(
    /// The id of a task, a run or a session where the ledger only carries it.
    Token,
    "1 to 128 of A-Z a-z 0-9 . _ -",
    |b| (1..=128).contains(&b.len()) && b.iter().all(|c| c.is_ascii_alphanumeric() || b"._-".contains(c))
);
text_id!(
    /// The id of a task: `TASK-`, its date, and a number of three digits or more. Ids that other systems gave, with a longer suffix of
    /// lower-case letters and digits, are taken too.
    TaskId,
    "a task id (TASK-YYYY-MM-DD- and three or more digits, or a longer suffix of a-z 0-9)",
    |b| is_task_id(b)
);
text_id!(
    /// The type of an event, such as `task.transitioned` or `tool_intent_signed`.
    TypeName,
    "an event type (a letter, then up to 63 of letters, digits, _ and .)",
    |b| (1..=64).contains(&b.len())
        && b[0].is_ascii_alphabetic()
        && b.iter().all(|c| c.is_ascii_alphanumeric() || b"_.".contains(c))
);
text_id!(
    /// A public key in text: `ed25519:` and base64 of 32 bytes. Whether it is a point of the curve is judged by `ledger`.
    PublicKeyText,
    "a public key (ed25519: and base64 of 32 bytes)",
    |b| b.len() == 52
        && b.starts_with(b"ed25519:")
        && b[51] == b'='
        && b[8..51].iter().all(|c| c.is_ascii_alphanumeric() || b"+/".contains(c))
);

crate::as_text!(
    EventId, TraceId, RunId, SessionId, StreamId, ToolRunId, HookRunId, Digest, AgentName, Token, TaskId
);

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: FromStr<Err = Error> + fmt::Display>(text: &str) {
        assert_eq!(text.parse::<T>().map(|id| id.to_string()), Ok(text.to_owned()));
    }

    #[test]
    fn well_formed_ids_survive_the_round_trip() {
        round_trip::<EventId>("evt_0192f0c1-2345-7abc-8def-0123456789ab");
        round_trip::<TraceId>("trc_0192f0c1-2345-7abc-bdef-0123456789ab");
        round_trip::<TraceId>("ledger");
        round_trip::<LedgerId>("led_0192f0c1-2345-7abc-9def-0123456789ab");
        round_trip::<KeyId>("key_ed25519_0123456789abcdef");
        round_trip::<Digest>(&"0f".repeat(32));
        round_trip::<AgentName>("swe-backend_2.x");
        round_trip::<Token>("TASK-2026-01-01-001");
        round_trip::<TypeName>("task.transitioned");
        round_trip::<TaskId>("TASK-2026-02-09-057");
        round_trip::<TaskId>("TASK-2026-02-09-1000");
        round_trip::<TaskId>("TASK-2026-02-09-k3v9wq2m");
        round_trip::<Origin>("baton/0192f0c1");
    }

    #[test]
    fn ill_formed_ids_are_refused_with_what_was_expected() {
        assert!("evt_0192F0C1-2345-7abc-8def-0123456789ab".parse::<EventId>().is_err(), "upper case");
        assert!("evt_0192f0c1-2345-4abc-8def-0123456789ab".parse::<EventId>().is_err(), "version 4");
        assert!("evt_0192f0c1-2345-7abc-cdef-0123456789ab".parse::<EventId>().is_err(), "variant");
        assert!("evt_0192f0c123457abc8def0123456789ab".parse::<EventId>().is_err(), "no hyphens");
        assert!("trc_é192f0c1-2345-7abc-8def-0123456789a".parse::<TraceId>().is_err());
        assert!("key_ed25519_0123456789ABCDEF".parse::<KeyId>().is_err());
        assert!("baton/trace/x".parse::<Origin>().is_err());
        for name in ["", "Agent", "-a", "a b", &"a".repeat(65)] {
            assert!(name.parse::<AgentName>().is_err(), "{name:?}");
        }
        for id in [
            "TASK-2026-02-09-57",
            "TASK-2026-02-09-abc",
            "TASK-2026-2-9-057",
            "task-2026-02-09-057",
            "TASK-2026-02-09-0/1",
        ] {
            assert!(id.parse::<TaskId>().is_err(), "{id:?}");
        }
        let error = "x".repeat(500).parse::<Digest>().unwrap_err();
        assert_eq!(error.got.len(), 80, "what came is bounded");
    }

    #[test]
    fn a_uuid_keeps_its_time_and_sorts_by_it() {
        let early = Uuid7::from_parts("2026-01-01T00:00:00.000Z".parse().unwrap(), [255; 10]);
        let late = Uuid7::from_parts("2026-01-01T00:00:00.001Z".parse().unwrap(), [0; 10]);
        assert!(early < late);
        assert_eq!(Uuid7::from_bytes(*late.as_bytes()), Some(late));
    }
}

//! Events: what is declared to have happened, before it is sealed into a record.
//!
//! Payloads of the types that exist so far are typed; every other type carries its own fields as JSON. Typed and raw
//! forms meet in [`Payload::fields`], so there is one spelling on disk.

use std::borrow::Cow;

use serde_json::{Map, Value};

pub use crate::ids::TypeName as EventType;
use crate::ids::{AgentName, Digest, EventId, KeyId, Origin, PublicKeyText, Token, TraceId};
use crate::limits::SHOWN_CHARS_MAX;
use crate::roles::Role;
use crate::time::Timestamp;

/// The type of what somebody notes, and no rule asks for.
pub const NOTE: &str = "note";

/// One immutable fact, as its actor states it. Position, chain and signature are added when it is sealed.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub trace: TraceId,
    pub id: EventId,
    pub at: Timestamp,
    pub actor: Actor,
    pub task: Option<Token>,
    pub run: Option<Token>,
    pub session: Option<Token>,
    pub fence: Option<u64>,
    pub payload: Payload,
    pub artifacts: Vec<ArtifactRef>,
    pub seen: Option<Seen>,
}

/// Who says so. `key` is present exactly when the event is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actor {
    pub agent: AgentName,
    pub role: Role,
    pub key: Option<KeyId>,
}

/// Bytes that an event cites, by their SHA-256.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRef {
    pub sha256: Digest,
    pub bytes: u64,
    pub media_type: String,
    pub name: String,
}

/// An earlier event of the same trace that the actor knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub seq: u64,
    pub hash: Digest,
}

/// The fields of an event's own type.
#[derive(Debug, Clone, PartialEq)]
pub enum Payload {
    /// The first record of every ledger.
    LedgerCreated {
        origin: Origin,
        key: KeyId,
        public: PublicKeyText,
        durability: Durability,
    },
    /// A torn tail was cut off and kept aside.
    LedgerRecovered {
        segment: String,
        bytes: u64,
        sha256: Digest,
        quarantine: String,
        after: u64,
    },
    KeyBound(KeyGrant),
    KeyRotated {
        old: KeyId,
        new: KeyGrant,
    },
    KeyRevoked {
        key: KeyId,
        reason: String,
    },
    TraceOpened {
        title: Option<String>,
    },
    TraceClosed {
        reason: String,
    },
    /// Any other type, with its fields as they came.
    Other {
        event_type: EventType,
        fields: Map<String, Value>,
    },
}

/// A public key and what it may be used for in a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyGrant {
    pub key: KeyId,
    pub public: PublicKeyText,
    pub agent: AgentName,
    pub roles: Vec<Role>,
}

/// What an acknowledged append promises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// It is on the disk.
    Commit,
    /// It is written, and synced within a second.
    Interval,
    /// It is written; the operating system decides when it reaches the disk.
    None,
}

impl Durability {
    pub fn as_str(self) -> &'static str {
        match self {
            Durability::Commit => "commit",
            Durability::Interval => "interval",
            Durability::None => "none",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Durability::Commit, Durability::Interval, Durability::None].into_iter().find(|d| d.as_str() == text)
    }
}

/// Why fields do not make a payload of their type.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("payload.{field}: expected {expected}, got {got}")]
pub struct PayloadError {
    pub field: &'static str,
    pub expected: String,
    pub got: String,
}

impl PayloadError {
    /// A member that is not what was expected, with what came in its place.
    pub(crate) fn of(fields: &Map<String, Value>, field: &'static str, expected: impl Into<String>) -> Self {
        let got = match fields.get(field) {
            None => "nothing".to_owned(),
            Some(value) => value.to_string().chars().take(SHOWN_CHARS_MAX).collect(),
        };
        PayloadError { field, expected: expected.into(), got }
    }
}

impl Payload {
    /// What a struct of texts, numbers and lists is stored as.
    /// What somebody notes, and no rule asks for.
    pub fn note(fields: Map<String, Value>) -> Payload {
        Payload::stored(NOTE, Ok(Value::Object(fields)))
    }

    pub(crate) fn stored(event_type: &'static str, fields: serde_json::Result<Value>) -> Payload {
        let fields = match fields {
            Ok(Value::Object(fields)) => fields,
            // Such a struct always makes an object.
            _ => Map::new(),
        };
        #[expect(clippy::expect_used, reason = "names of types are well-formed; tests read them all")]
        let event_type = event_type.parse().expect("a type's name");
        Payload::Other { event_type, fields }
    }

    /// The name of the event's type.
    pub fn event_type(&self) -> &str {
        match self {
            Payload::LedgerCreated { .. } => "ledger.created",
            Payload::LedgerRecovered { .. } => "ledger.recovered",
            Payload::KeyBound(_) => "key_bound",
            Payload::KeyRotated { .. } => "key_rotated",
            Payload::KeyRevoked { .. } => "key_revoked",
            Payload::TraceOpened { .. } => "trace.opened",
            Payload::TraceClosed { .. } => "trace.closed",
            Payload::Other { event_type, .. } => event_type.as_str(),
        }
    }

    /// The types that have fields of their own here, by name.
    pub const TYPES: [&'static str; 7] = [
        "ledger.created",
        "ledger.recovered",
        "key_bound",
        "key_rotated",
        "key_revoked",
        "trace.opened",
        "trace.closed",
    ];

    /// Whether only Baton itself appends events of this type, through an operation of its own.
    pub fn is_reserved(event_type: &str) -> bool {
        let is_framing = Payload::TYPES.contains(&event_type);
        // What tasks are made of; and the families that later types of them will be in.
        let families = ["task.", "lease.", "delegation.", "protocol.", "ci."];
        is_framing
            || crate::task::TaskEvent::TYPES.contains(&event_type)
            || families.iter().any(|family| event_type.starts_with(family))
    }

    /// The fields as they are stored; those of an untyped payload are not copied.
    pub fn fields(&self) -> Cow<'_, Map<String, Value>> {
        match self {
            Payload::Other { fields, .. } => Cow::Borrowed(fields),
            typed => Cow::Owned(typed.typed_fields()),
        }
    }

    fn typed_fields(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
        match self {
            Payload::LedgerCreated { origin, key, public, durability } => {
                put("origin", origin.as_str().into());
                put("key", key.to_string().into());
                put("public", public.as_str().into());
                put("durability", durability.as_str().into());
            }
            Payload::LedgerRecovered { segment, bytes, sha256, quarantine, after } => {
                put("segment", segment.as_str().into());
                put("bytes", (*bytes).into());
                put("sha256", sha256.to_string().into());
                put("quarantine", quarantine.as_str().into());
                put("after", (*after).into());
            }
            Payload::KeyBound(grant) => grant.put(&mut put, "key"),
            Payload::KeyRotated { old, new } => {
                put("key", old.to_string().into());
                new.put(&mut put, "by");
            }
            Payload::KeyRevoked { key, reason } => {
                put("key", key.to_string().into());
                put("reason", reason.as_str().into());
            }
            Payload::TraceOpened { title } => {
                if let Some(title) = title {
                    put("title", title.as_str().into());
                }
            }
            Payload::TraceClosed { reason } => put("reason", reason.as_str().into()),
            Payload::Other { fields, .. } => out.clone_from(fields),
        }
        out
    }

    /// Reads stored fields back. Fields that the type does not know are tolerated beside those it needs.
    pub fn read(event_type: &EventType, fields: Map<String, Value>) -> Result<Payload, PayloadError> {
        let read = Fields(&fields);
        Ok(match event_type.as_str() {
            "ledger.created" => Payload::LedgerCreated {
                origin: read.parsed("origin")?,
                key: read.parsed("key")?,
                public: read.parsed("public")?,
                durability: Durability::parse(read.text("durability")?)
                    .ok_or_else(|| read.refuse("durability", "commit, interval or none"))?,
            },
            "ledger.recovered" => Payload::LedgerRecovered {
                segment: read.text("segment")?.to_owned(),
                bytes: read.number("bytes")?,
                sha256: read.parsed("sha256")?,
                quarantine: read.text("quarantine")?.to_owned(),
                after: read.number("after")?,
            },
            "key_bound" => Payload::KeyBound(KeyGrant::read(&read, "key")?),
            "key_rotated" => {
                Payload::KeyRotated { old: read.parsed("key")?, new: KeyGrant::read(&read, "by")? }
            }
            "key_revoked" => {
                Payload::KeyRevoked { key: read.parsed("key")?, reason: read.text("reason")?.to_owned() }
            }
            "trace.opened" => Payload::TraceOpened {
                title: match fields.get("title") {
                    None => None,
                    Some(_) => Some(read.text("title")?.to_owned()),
                },
            },
            "trace.closed" => Payload::TraceClosed { reason: read.text("reason")?.to_owned() },
            _ => Payload::Other { event_type: event_type.clone(), fields },
        })
    }
}

impl KeyGrant {
    fn put(&self, put: &mut impl FnMut(&str, Value), key_field: &str) {
        put(key_field, self.key.to_string().into());
        put("public", self.public.as_str().into());
        put("agent", self.agent.as_str().into());
        put("roles", self.roles.iter().map(|role| role.as_str()).collect());
    }

    fn read(read: &Fields<'_>, key_field: &'static str) -> Result<Self, PayloadError> {
        let expected = "an array of one or more roles";
        let list = read.0.get("roles").and_then(Value::as_array);
        let roles: Option<Vec<Role>> =
            list.and_then(|list| list.iter().map(|role| role.as_str()?.parse().ok()).collect());
        Ok(KeyGrant {
            key: read.parsed(key_field)?,
            public: read.parsed("public")?,
            agent: read.parsed("agent")?,
            roles: roles.filter(|r| !r.is_empty()).ok_or_else(|| read.refuse("roles", expected))?,
        })
    }
}

/// Fields of a stored payload, read with errors that name the field.
struct Fields<'a>(&'a Map<String, Value>);

impl<'a> Fields<'a> {
    fn refuse(&self, field: &'static str, expected: impl Into<String>) -> PayloadError {
        PayloadError::of(self.0, field, expected)
    }

    fn text(&self, field: &'static str) -> Result<&'a str, PayloadError> {
        self.0.get(field).and_then(Value::as_str).ok_or_else(|| self.refuse(field, "a string"))
    }

    fn number(&self, field: &'static str) -> Result<u64, PayloadError> {
        self.0.get(field).and_then(Value::as_u64).ok_or_else(|| self.refuse(field, "an integer"))
    }

    fn parsed<T: std::str::FromStr<Err = crate::ids::Error>>(
        &self,
        field: &'static str,
    ) -> Result<T, PayloadError> {
        self.text(field)?.parse().map_err(|e: crate::ids::Error| self.refuse(field, e.expected))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(payload: Payload) {
        let event_type = payload.event_type().parse().unwrap();
        assert_eq!(Payload::read(&event_type, payload.fields().into_owned()), Ok(payload));
    }

    fn grant() -> KeyGrant {
        KeyGrant {
            key: "key_ed25519_0123456789abcdef".parse().unwrap(),
            public: format!("ed25519:{}=", "A".repeat(43)).parse().unwrap(),
            agent: "planner-1".parse().unwrap(),
            roles: vec![Role::Planner, Role::Critic],
        }
    }

    #[test]
    fn typed_payloads_survive_the_round_trip() {
        check(Payload::LedgerCreated {
            origin: "baton/x".parse().unwrap(),
            key: grant().key,
            public: grant().public,
            durability: Durability::Interval,
        });
        check(Payload::LedgerRecovered {
            segment: "s".into(),
            bytes: 3,
            sha256: Digest([7; 32]),
            quarantine: "q".into(),
            after: 9,
        });
        check(Payload::KeyBound(grant()));
        check(Payload::KeyRotated { old: "key_ed25519_ffffffffffffffff".parse().unwrap(), new: grant() });
        check(Payload::KeyRevoked { key: grant().key, reason: "lost".into() });
        check(Payload::TraceOpened { title: None });
        check(Payload::TraceOpened { title: Some("t".into()) });
        check(Payload::TraceClosed { reason: "done".into() });
        check(Payload::Other { event_type: "note".parse().unwrap(), fields: Map::new() });
    }

    #[test]
    fn a_payload_that_does_not_fit_names_the_field_and_what_came() {
        let mut fields = Payload::KeyBound(grant()).fields().into_owned();
        fields.insert("roles".into(), serde_json::json!(["planner", "boss"]));
        let error = Payload::read(&"key_bound".parse().unwrap(), fields).unwrap_err();
        assert_eq!(
            error.to_string(),
            r#"payload.roles: expected an array of one or more roles, got ["planner","boss"]"#
        );
        let error = Payload::read(&"trace.closed".parse().unwrap(), Map::new()).unwrap_err();
        assert_eq!(error.to_string(), "payload.reason: expected a string, got nothing");
    }
}

//! One event as it was handed in: every member known and of its form, nothing decided yet.

use std::path::PathBuf;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::nearest::nearest;
use baton_core::{
    Actor, AgentName, ArtifactRef, Digest, EventId, EventType, KeyId, Role, Seen, Timestamp, Token, TraceId,
};
use baton_ledger::key::Signature;
use serde_json::{Map, Value};

use crate::error::{CliError, Code};

/// An event without what Baton adds.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    pub(crate) event_type: EventType,
    pub(crate) payload: Map<String, Value>,
    pub(crate) artifacts: Vec<Citation>,
    pub(crate) seen: Option<Seen>,
    pub(crate) task: Option<Token>,
    pub(crate) run: Option<Token>,
    pub(crate) session: Option<Token>,
    pub(crate) fence: Option<u64>,
    pub(crate) id: Option<EventId>,
    pub(crate) at: Option<Timestamp>,
    pub(crate) actor: Option<Actor>,
    pub(crate) trace: Option<TraceId>,
    pub(crate) sig: Option<DraftSig>,
}

/// A signature that came along.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DraftSig {
    pub(crate) key: KeyId,
    pub(crate) value: Signature,
}

/// What an event cites: something that is stored already, or a file that is to be stored.
#[derive(Debug, Clone)]
pub(crate) enum Citation {
    Stored(ArtifactRef),
    File { path: PathBuf, media_type: Option<String>, name: Option<String> },
}

const MEMBERS: [&str; 14] = [
    "type",
    "payload",
    "artifacts",
    "seen",
    "task",
    "run",
    "session",
    "fence",
    "id",
    "at",
    "actor",
    "sig",
    "trace",
    "v",
];

impl Draft {
    pub(crate) fn read(value: Value) -> Result<Draft, CliError> {
        let mut members = Members::of(value, "event", &MEMBERS)?;
        // A whole body may be handed in as it was signed; these two then say what they must.
        if let Some(version) = members.take("v").filter(|v| *v != 1) {
            return Err(wrong("v", "1", &version));
        }
        let artifacts = match members.take("artifacts") {
            None => Vec::new(),
            Some(Value::Array(items)) => items.into_iter().map(read_citation).collect::<Result<_, _>>()?,
            Some(other) => return Err(wrong("artifacts", "an array", &other)),
        };
        let payload = match members.take("payload") {
            None => Map::new(),
            Some(Value::Object(fields)) => fields,
            Some(other) => return Err(wrong("payload", "an object", &other)),
        };
        let draft = Draft {
            event_type: members
                .parsed("type")?
                .ok_or_else(|| CliError::new(Code::InputForm, "type: expected an event type, got nothing"))?,
            payload,
            artifacts,
            seen: members.take("seen").map(read_seen).transpose()?,
            task: members.parsed("task")?,
            run: members.parsed("run")?,
            session: members.parsed("session")?,
            fence: members.positive("fence")?,
            id: members.parsed("id")?,
            at: match members.text("at")? {
                None => None,
                Some(text) => {
                    Some(text.parse().map_err(|e| CliError::new(Code::InputForm, format!("at: {e}")))?)
                }
            },
            actor: members.take("actor").map(read_actor).transpose()?,
            trace: members.parsed("trace")?,
            sig: members.take("sig").map(read_sig).transpose()?,
        };
        if draft.sig.is_some() {
            draft.expect_whole()?;
        }
        Ok(draft)
    }

    /// A signature covers the event as its actor stated it, so nothing of it may be left for Baton to choose.
    fn expect_whole(&self) -> Result<(), CliError> {
        let actor_key = self.actor.as_ref().and_then(|actor| actor.key);
        let missing = [
            ("id", self.id.is_none()),
            ("at", self.at.is_none()),
            ("actor", self.actor.is_none()),
            ("actor.key", actor_key.is_none()),
        ];
        if let Some((field, _)) = missing.into_iter().find(|(_, is_missing)| *is_missing) {
            return Err(CliError::new(Code::InputForm, format!("{field}: a signed event must carry it")));
        }
        if actor_key != self.sig.map(|sig| sig.key) {
            return Err(CliError::new(Code::InputForm, "sig.key: expected the same key as in actor"));
        }
        if self.artifacts.iter().any(|citation| matches!(citation, Citation::File { .. })) {
            let what = "artifacts: a signed event cites by sha256, bytes, media_type and name, not by path";
            return Err(CliError::new(Code::InputForm, what));
        }
        Ok(())
    }
}

/// Members of one object, taken out one by one; an unknown one is refused by name before anything else is looked at.
struct Members {
    of: &'static str,
    map: Map<String, Value>,
}

impl Members {
    fn of(value: Value, of: &'static str, known: &[&str]) -> Result<Members, CliError> {
        let Value::Object(map) = value else { return Err(wrong(of, "an object", &value)) };
        if let Some(name) = map.keys().find(|name| !known.contains(&name.as_str())) {
            let shown: String = name.chars().take(80).collect();
            let error = CliError::new(Code::InputForm, format!("{of}: unknown member {shown:?}"));
            return Err(match nearest(name, known.iter().copied(), 1).first() {
                Some(near) => error.cause(format!("did you mean {near:?}?")),
                None => error.cause(format!("known are {}", known.join(", "))),
            });
        }
        Ok(Members { of, map })
    }

    fn field(&self, name: &str) -> String {
        if self.of == "event" { name.to_owned() } else { format!("{}.{name}", self.of) }
    }

    fn take(&mut self, name: &str) -> Option<Value> {
        self.map.remove(name)
    }

    fn text(&mut self, name: &str) -> Result<Option<String>, CliError> {
        match self.take(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(wrong(&self.field(name), "a string", &other)),
        }
    }

    fn parsed<T: std::str::FromStr<Err: std::fmt::Display>>(
        &mut self,
        name: &str,
    ) -> Result<Option<T>, CliError> {
        let field = self.field(name);
        let parse =
            |text: String| text.parse().map_err(|e| CliError::new(Code::InputForm, format!("{field}: {e}")));
        self.text(name)?.map(parse).transpose()
    }

    fn positive(&mut self, name: &str) -> Result<Option<u64>, CliError> {
        match self.take(name) {
            None => Ok(None),
            Some(value) => match value.as_u64().filter(|n| *n >= 1) {
                Some(n) => Ok(Some(n)),
                None => Err(wrong(&self.field(name), "an integer of at least 1", &value)),
            },
        }
    }

    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, CliError> {
        value.ok_or_else(|| CliError::new(Code::InputForm, format!("{}: it is missing", self.field(name))))
    }
}

fn wrong(field: &str, expected: &str, got: &Value) -> CliError {
    let got: String = got.to_string().chars().take(80).collect();
    CliError::new(Code::InputForm, format!("{field}: expected {expected}, got {got}"))
}

fn read_seen(value: Value) -> Result<Seen, CliError> {
    let mut members = Members::of(value, "seen", &["seq", "hash"])?;
    let (seq, hash) = (members.positive("seq")?, members.parsed::<Digest>("hash")?);
    Ok(Seen { seq: members.required("seq", seq)?, hash: members.required("hash", hash)? })
}

fn read_actor(value: Value) -> Result<Actor, CliError> {
    let mut members = Members::of(value, "actor", &["agent", "role", "key"])?;
    let (agent, role) = (members.parsed::<AgentName>("agent")?, members.parsed::<Role>("role")?);
    Ok(Actor {
        agent: members.required("agent", agent)?,
        role: members.required("role", role)?,
        key: members.parsed("key")?,
    })
}

fn read_sig(value: Value) -> Result<DraftSig, CliError> {
    let mut members = Members::of(value, "sig", &["key", "alg", "value"])?;
    let alg = members.text("alg")?;
    let alg = members.required("alg", alg)?;
    if alg != "ed25519" {
        return Err(wrong("sig.alg", "\"ed25519\"", &alg.into()));
    }
    let (key, value) = (members.parsed::<KeyId>("key")?, members.text("value")?);
    let (key, value) = (members.required("key", key)?, members.required("value", value)?);
    let bytes = BASE64.decode(&value).ok().and_then(|bytes| <[u8; 64]>::try_from(bytes).ok());
    let bytes = bytes.ok_or_else(|| wrong("sig.value", "base64 of 64 bytes", &value.into()))?;
    Ok(DraftSig { key, value: Signature(bytes) })
}

fn read_citation(value: Value) -> Result<Citation, CliError> {
    let mut members = Members::of(value, "artifacts", &["sha256", "bytes", "media_type", "name", "path"])?;
    let (media_type, name) = (members.text("media_type")?, members.text("name")?);
    let (sha256, bytes) = (members.parsed::<Digest>("sha256")?, members.take("bytes"));
    if let Some(path) = members.text("path")? {
        if sha256.is_some() || bytes.is_some() {
            let what = "artifacts: either a path, or sha256 and bytes of what is stored already; not both";
            return Err(CliError::new(Code::InputForm, what));
        }
        return Ok(Citation::File { path: path.into(), media_type, name });
    }
    let bytes = match bytes {
        None => None,
        Some(value) => Some(value.as_u64().ok_or_else(|| wrong("artifacts.bytes", "an integer", &value))?),
    };
    Ok(Citation::Stored(ArtifactRef {
        sha256: members.required("sha256", sha256)?,
        bytes: members.required("bytes", bytes)?,
        media_type: members.required("media_type", media_type)?,
        name: members.required("name", name)?,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "reads better without & at the call")]
    fn refused(value: Value, what: &str) {
        assert_eq!(Draft::read(value.clone()).unwrap_err().what, what, "{value}");
    }

    #[test]
    fn only_the_type_is_needed() {
        let draft = Draft::read(json!({"type": "note"})).unwrap();
        assert_eq!(draft.event_type.as_str(), "note");
        assert!(draft.payload.is_empty() && draft.artifacts.is_empty() && draft.sig.is_none());
    }

    #[test]
    fn members_are_refused_by_name_with_what_was_expected() {
        refused(json!(3), "event: expected an object, got 3");
        refused(json!({"payload": {}}), "type: expected an event type, got nothing");
        refused(json!({"type": "note", "pyload": {}}), "event: unknown member \"pyload\"");
        refused(json!({"type": "note", "payload": []}), "payload: expected an object, got []");
        refused(json!({"type": "note", "fence": 0}), "fence: expected an integer of at least 1, got 0");
        refused(json!({"type": "note", "task": null}), "task: expected a string, got null");
        refused(json!({"type": "note", "seen": {"seq": 1}}), "seen.hash: it is missing");
        refused(json!({"type": "note", "v": 2}), "v: expected 1, got 2");
        refused(
            json!({"type": "note", "artifacts": [{"path": "x", "bytes": 1}]}),
            "artifacts: either a path, or sha256 and bytes of what is stored already; not both",
        );
        let error = Draft::read(json!({"type": "note", "pyload": {}})).unwrap_err();
        assert_eq!(error.causes, ["did you mean \"payload\"?"]);
    }

    #[test]
    fn a_signed_event_carries_everything_that_was_signed() {
        let key = "key_ed25519_0123456789abcdef";
        let sig = json!({"alg": "ed25519", "key": key, "value": BASE64.encode([0; 64])});
        refused(json!({"type": "note", "sig": sig}), "id: a signed event must carry it");
        let mut other = sig.clone();
        other["alg"] = "rsa".into();
        refused(json!({"type": "note", "sig": other}), "sig.alg: expected \"ed25519\", got \"rsa\"");
        let event = json!({"type": "note", "sig": sig, "id": "evt_0192f0c1-2345-7abc-8def-0123456789ab",
            "at": "2026-01-01T00:00:00.000Z", "actor": {"agent": "a", "role": "executor"}});
        refused(event, "actor.key: a signed event must carry it");
    }
}

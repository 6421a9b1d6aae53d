//! The exit signal: how an agent says that it is done with a phase of the work, and what phase follows.
//!
//! Read strictly, because a signal moves a task: checks stand in the order flag, size, JSON, protocol, version, `pr_url`,
//! `evidence_bundle_ref`, `notes`. The table of phases is `phases.md` beside this file; a test compares the two.

use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value};

use super::fields::{quoted, shown};
use super::paths;
use super::reject::cut;
use crate::json;
use crate::limits::{
    EXIT_EVIDENCE_BYTES_MAX, EXIT_NOTES_BYTES_MAX, EXIT_SIGNAL_BYTES_MAX, EXIT_URL_BYTES_MAX,
    EXIT_VERSION_BYTES_MAX,
};
use crate::task::Phase;

/// The phase of a task, under the name that agents know.
pub type WorkPhase = Phase;

/// What `protocol` must be.
pub const PROTOCOL: &str = "apm2_agent_exit";

/// The version that new signals carry.
pub const VERSION: &str = "1.0.0";

/// Why a session ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ExitReason {
    Completed,
    Blocked,
    Error,
}

impl ExitReason {
    pub const ALL: [ExitReason; 3] = [ExitReason::Completed, ExitReason::Blocked, ExitReason::Error];

    pub fn as_str(self) -> &'static str {
        match self {
            ExitReason::Completed => "completed",
            ExitReason::Blocked => "blocked",
            ExitReason::Error => "error",
        }
    }
}

impl std::fmt::Display for ExitReason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A signal. One that was read is valid; one that was built is valid once [`ExitSignal::validate`] says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitSignal {
    pub protocol: String,
    pub version: String,
    pub phase_completed: WorkPhase,
    pub exit_reason: ExitReason,
    pub pr_url: Option<String>,
    pub evidence_bundle_ref: Option<String>,
    pub notes: Option<String>,
}

/// Why something is not an exit signal. What it repeats of the signal is cut short.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExitSignalError {
    #[error("exit signal validation is disabled (AGENT_EXIT_PROTOCOL_ENABLED=false)")]
    Disabled,
    #[error("exit signal too large: more than {max} bytes")]
    TooLarge { max: usize },
    #[error("invalid JSON: {0}")]
    InvalidJson(String),
    #[error("invalid JSON: unknown field {field}")]
    UnknownField { field: String },
    /// A field that is missing, of another type, or a word that does not exist.
    #[error("invalid JSON: {field}: expected {expected}, got {got}")]
    InvalidField { field: &'static str, expected: &'static str, got: String },
    #[error("unknown protocol: expected '{PROTOCOL}', got '{got}'")]
    UnknownProtocol { got: String },
    #[error("unsupported version: expected '1.x', got '{got}'")]
    UnsupportedVersion { got: String },
    #[error("{field}: expected at most {max} bytes, got {actual}")]
    FieldTooLong { field: &'static str, actual: usize, max: usize },
    #[error("pr_url: expected an https:// address, got {got}")]
    InsecureUrl { got: String },
    #[error("pr_url: expected none of ; | ` $, white space and control characters, got {found:?}")]
    UrlCharacter { found: char },
    #[error("evidence_bundle_ref: expected {expected}, got {got}", expected = paths::EXPECTED)]
    EvidencePath { got: String },
}

const FIELDS: [&str; 7] =
    ["protocol", "version", "phase_completed", "exit_reason", "pr_url", "evidence_bundle_ref", "notes"];

impl ExitSignal {
    /// A signal of the current version without the optional fields.
    pub fn new(phase_completed: WorkPhase, exit_reason: ExitReason) -> Self {
        ExitSignal {
            protocol: PROTOCOL.to_owned(),
            version: VERSION.to_owned(),
            phase_completed,
            exit_reason,
            pr_url: None,
            evidence_bundle_ref: None,
            notes: None,
        }
    }

    pub fn with_pr_url(mut self, url: impl Into<String>) -> Self {
        self.pr_url = Some(url.into());
        self
    }

    pub fn with_evidence_bundle_ref(mut self, path: impl Into<String>) -> Self {
        self.evidence_bundle_ref = Some(path.into());
        self
    }

    pub fn with_notes(mut self, notes: impl Into<String>) -> Self {
        self.notes = Some(notes.into());
        self
    }

    /// Reads and validates a signal. An optional field that is `null` counts as absent; fields that do not exist are refused.
    pub fn from_json(text: &str) -> Result<Self, ExitSignalError> {
        if text.len() > EXIT_SIGNAL_BYTES_MAX {
            return Err(ExitSignalError::TooLarge { max: EXIT_SIGNAL_BYTES_MAX });
        }
        let value = json::parse(text.as_bytes()).map_err(|e| ExitSignalError::InvalidJson(e.to_string()))?;
        let Value::Object(map) = &value else {
            let what = format!("expected an object, got {}", shown(Some(&value)));
            return Err(ExitSignalError::InvalidJson(what));
        };
        let signal = read_fields(map)?;
        signal.validate()?;
        Ok(signal)
    }

    /// The same where the protocol is switched on, and a refusal where it is not. Whoever decides reads the switch: [`parse_flag`].
    pub fn from_json_if_enabled(text: &str, is_enabled: bool) -> Result<Self, ExitSignalError> {
        if is_enabled { ExitSignal::from_json(text) } else { Err(ExitSignalError::Disabled) }
    }

    /// Checks what the fields say, in the order that the head of this file gives.
    pub fn validate(&self) -> Result<(), ExitSignalError> {
        if self.protocol != PROTOCOL {
            return Err(ExitSignalError::UnknownProtocol { got: cut(&self.protocol) });
        }
        if !is_supported(&self.version) {
            return Err(ExitSignalError::UnsupportedVersion { got: cut(&self.version) });
        }
        if let Some(url) = &self.pr_url {
            check_url(url)?;
        }
        if let Some(path) = &self.evidence_bundle_ref {
            check_length("evidence_bundle_ref", path, EXIT_EVIDENCE_BYTES_MAX)?;
            if !paths::is_inside(path) {
                return Err(ExitSignalError::EvidencePath { got: quoted(path) });
            }
        }
        if let Some(notes) = &self.notes {
            check_length("notes", notes, EXIT_NOTES_BYTES_MAX)?;
        }
        Ok(())
    }
}

/// Whether the value of `AGENT_EXIT_PROTOCOL_ENABLED` switches the protocol on: `true`, `1` or `yes` in any case.
pub fn parse_flag(value: Option<&str>) -> bool {
    value.is_some_and(|value| ["true", "1", "yes"].iter().any(|on| value.eq_ignore_ascii_case(on)))
}

fn read_fields(map: &Map<String, Value>) -> Result<ExitSignal, ExitSignalError> {
    if let Some(unknown) = map.keys().find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(ExitSignalError::UnknownField { field: quoted(unknown) });
    }
    let refuse =
        |field, expected| ExitSignalError::InvalidField { field, expected, got: shown(map.get(field)) };
    let text =
        |field: &'static str| map.get(field).and_then(Value::as_str).ok_or_else(|| refuse(field, "a string"));
    let optional = |field: &'static str| match map.get(field) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(field).map(|text| Some(text.to_owned())),
    };
    let phase: Result<WorkPhase, _> = text("phase_completed")?.parse();
    let reason_word = text("exit_reason")?;
    let reason = ExitReason::ALL.into_iter().find(|reason| reason.as_str() == reason_word);
    Ok(ExitSignal {
        protocol: text("protocol")?.to_owned(),
        version: text("version")?.to_owned(),
        phase_completed: phase.map_err(|e| refuse("phase_completed", e.expected))?,
        exit_reason: reason.ok_or_else(|| refuse("exit_reason", "completed, blocked or error"))?,
        pr_url: optional("pr_url")?,
        evidence_bundle_ref: optional("evidence_bundle_ref")?,
        notes: optional("notes")?,
    })
}

/// Whether a version is `1.` and two numbers.
fn is_supported(version: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    version.len() <= EXIT_VERSION_BYTES_MAX
        && version
            .strip_prefix("1.")
            .and_then(|rest| rest.split_once('.'))
            .is_some_and(|(minor, patch)| is_number(minor) && is_number(patch))
}

fn check_length(field: &'static str, text: &str, max: usize) -> Result<(), ExitSignalError> {
    if text.len() <= max {
        Ok(())
    } else {
        Err(ExitSignalError::FieldTooLong { field, actual: text.len(), max })
    }
}

/// The address is shown to people and may be handed to commands: nothing in it may mean something to a shell or a terminal.
fn check_url(url: &str) -> Result<(), ExitSignalError> {
    check_length("pr_url", url, EXIT_URL_BYTES_MAX)?;
    if url.strip_prefix("https://").is_none_or(|rest| rest.is_empty() || rest.starts_with('/')) {
        return Err(ExitSignalError::InsecureUrl { got: quoted(url) });
    }
    let is_bad = |c: &char| matches!(c, ';' | '|' | '`' | '$') || c.is_whitespace() || c.is_control();
    match url.chars().find(is_bad) {
        Some(found) => Err(ExitSignalError::UrlCharacter { found }),
        None => Ok(()),
    }
}

impl Serialize for ExitSignal {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("ExitSignal", FIELDS.len())?;
        out.serialize_field("protocol", &self.protocol)?;
        out.serialize_field("version", &self.version)?;
        out.serialize_field("phase_completed", self.phase_completed.as_str())?;
        out.serialize_field("exit_reason", self.exit_reason.as_str())?;
        for (name, value) in optional_fields(self) {
            out.serialize_field(name, value)?;
        }
        out.end()
    }
}

/// The optional fields that are there.
fn optional_fields(signal: &ExitSignal) -> impl Iterator<Item = (&'static str, &String)> {
    let fields = [
        ("pr_url", &signal.pr_url),
        ("evidence_bundle_ref", &signal.evidence_bundle_ref),
        ("notes", &signal.notes),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
}

/// A phase that cannot be completed, because nothing follows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("phase {0} cannot be completed: no phase follows it")]
pub struct NoNextPhase(pub WorkPhase);

/// The phase that follows when `phase` ends for `reason`.
///
/// Refuses `completed` for COMPLETED, which is the end, and for BLOCKED, which only a person leaves.
pub fn next_phase(phase: WorkPhase, reason: ExitReason) -> Result<WorkPhase, NoNextPhase> {
    match (reason, phase) {
        (ExitReason::Blocked | ExitReason::Error, _) => Ok(Phase::Blocked),
        (ExitReason::Completed, Phase::Draft) => Ok(Phase::Implementation),
        (ExitReason::Completed, Phase::Implementation) => Ok(Phase::CiPending),
        (ExitReason::Completed, Phase::CiPending) => Ok(Phase::ReadyForReview),
        (ExitReason::Completed, Phase::ReadyForReview) => Ok(Phase::Review),
        (ExitReason::Completed, Phase::Review) => Ok(Phase::ReadyForMerge),
        (ExitReason::Completed, Phase::ReadyForMerge) => Ok(Phase::Completed),
        (ExitReason::Completed, Phase::Completed | Phase::Blocked) => Err(NoNextPhase(phase)),
    }
}

/// The event of an accepted signal. Its id and its time are the record's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentSessionCompleted {
    pub session_id: String,
    pub actor_id: String,
    pub next_phase: WorkPhase,
    pub signal: ExitSignal,
}

impl AgentSessionCompleted {
    /// The name of the event's type.
    pub const EVENT_TYPE: &'static str = "AgentSessionCompleted";

    /// Joins a signal with who sent it, or refuses a phase that cannot be completed.
    pub fn from_exit_signal(
        session: impl Into<String>,
        actor: impl Into<String>,
        signal: ExitSignal,
    ) -> Result<Self, NoNextPhase> {
        Ok(AgentSessionCompleted {
            session_id: session.into(),
            actor_id: actor.into(),
            next_phase: next_phase(signal.phase_completed, signal.exit_reason)?,
            signal,
        })
    }

    /// The fields of the event's payload; optional ones are absent, never `null`.
    pub fn fields(&self) -> Map<String, Value> {
        let mut out = Map::new();
        let mut put = |name: &str, text: &str| drop(out.insert(name.to_owned(), text.into()));
        put("session_id", &self.session_id);
        put("actor_id", &self.actor_id);
        put("phase_completed", self.signal.phase_completed.as_str());
        put("exit_reason", self.signal.exit_reason.as_str());
        put("next_phase", self.next_phase.as_str());
        for (name, value) in optional_fields(&self.signal) {
            put(name, value);
        }
        out
    }
}

#[cfg(test)]
mod tests;

//! Why a message is refused: the reason that is logged, and what exactly did not fit.

use std::fmt;

use serde_json::{Value, json};

use crate::ids::{AgentName, TaskId};
use crate::limits::SHOWN_CHARS_MAX;

/// Declares the reasons with the words under which they are logged.
macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $word:literal),+ $(,)?) => {
        /// The reason of a refusal. Reading a message gives the first six; the others need a task's state.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Reason { $($(#[$doc])* $variant),+ }

        impl Reason {
            pub const ALL: &'static [Reason] = &[$(Reason::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Reason::$variant => $word),+ }
            }
        }
    };
}

reasons!(
    /// Larger than any message may be; not looked into.
    PayloadTooLarge = "payload_too_large",
    /// It began like a message and is not JSON.
    InvalidJson = "invalid_json",
    /// A field of the envelope or of its payload does not fit.
    InvalidEnvelope = "invalid_envelope",
    /// A sound envelope of a type that this version does not know.
    UnknownType = "unknown_type",
    /// The payload speaks of another task than the envelope.
    TaskIdMismatch = "taskId_mismatch",
    /// Prose, or a value that nobody meant as a message. Nothing is logged.
    NotAMessage = "not_a_message",
    TaskNotFound = "task_not_found",
    UnassignedTask = "unassigned_task",
    UnauthorizedAgent = "unauthorized_agent",
    StaleFence = "stale_fence",
    InvalidState = "invalid_state",
    NoHandoff = "no_handoff",
    ParentNotFound = "parent_not_found",
    NestedDelegation = "nested_delegation",
);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What exactly did not fit. Whatever it repeats of the message is cut short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// A field by its path, such as `payload.tests.passed`.
    Field {
        field: Box<str>,
        expected: Box<str>,
        got: Box<str>,
    },
    /// Who should have spoken, and who did.
    Agents {
        expected: String,
        received: String,
    },
    Text(String),
}

impl Detail {
    pub fn field(
        field: impl Into<Box<str>>,
        expected: impl Into<Box<str>>,
        got: impl Into<Box<str>>,
    ) -> Self {
        Detail::Field { field: field.into(), expected: expected.into(), got: got.into() }
    }

    /// The detail as an event's payload carries it.
    pub fn to_json(&self) -> Value {
        match self {
            Detail::Field { field, expected, got } => {
                json!({"field": field, "expected": expected, "got": got})
            }
            Detail::Agents { expected, received } => json!({"expected": expected, "received": received}),
            Detail::Text(text) => json!({"text": text}),
        }
    }
}

impl fmt::Display for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Detail::Field { field, expected, got } => write!(f, "{field}: expected {expected}, got {got}"),
            Detail::Agents { expected, received } => write!(f, "expected agent {expected}, got {received}"),
            Detail::Text(text) => f.write_str(text),
        }
    }
}

/// A refused message, with as much of its sender and subject as could be read.
///
/// `task`, `from` and `message_type` are what the message claims; they say where to log the refusal, not who is to blame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rejection {
    pub reason: Reason,
    pub detail: Option<Detail>,
    pub task: Option<TaskId>,
    pub from: Option<AgentName>,
    /// The type as it came, cut short: it may be no type that exists.
    pub message_type: Option<String>,
}

impl Rejection {
    /// A refusal of something whose sender and subject are not known.
    pub fn new(reason: Reason, detail: Option<Detail>) -> Self {
        Rejection { reason, detail, task: None, from: None, message_type: None }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.detail {
            Some(detail) => write!(f, "{}: {detail}", self.reason),
            None => write!(f, "{}", self.reason),
        }
    }
}

impl std::error::Error for Rejection {}

/// The beginning of a text from outside, short enough to repeat.
pub(super) fn cut(text: &str) -> String {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_word_of_its_own() {
        let mut words: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(words.len(), 14);
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 14);
    }

    fn check(detail: &Detail, text: &str, value: &Value) {
        assert_eq!(detail.to_string(), text);
        assert_eq!(detail.to_json(), *value);
    }

    #[test]
    fn details_read_well_and_keep_their_parts() {
        check(
            &Detail::field("version", "1", "2"),
            "version: expected 1, got 2",
            &json!({"field": "version", "expected": "1", "got": "2"}),
        );
        check(
            &Detail::Agents { expected: "a".into(), received: "b".into() },
            "expected agent a, got b",
            &json!({"expected": "a", "received": "b"}),
        );
        check(&Detail::Text("so".into()), "so", &json!({"text": "so"}));
    }

    #[test]
    fn a_rejection_prints_its_reason_first() {
        let detail = Detail::Text("the task has no lease".into());
        let rejection = Rejection::new(Reason::InvalidState, Some(detail));
        assert_eq!(rejection.to_string(), "invalid_state: the task has no lease");
        assert_eq!(Rejection::new(Reason::NotAMessage, None).to_string(), "not_a_message");
    }
}

//! What the machine declares to have happened, as it is stored and as it goes over the wire.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::model::{HookRun, Permission, SessionError, ToolRun};
use super::permission::Answer;
use super::words::{Reason, StateKind};
use crate::event::Payload;
use crate::ids::{EventId, StreamId};
use crate::time::Timestamp;

/// An event with its identity and time.
#[derive(Debug, Clone, PartialEq)]
pub struct Stated {
    pub id: EventId,
    pub at: Timestamp,
    pub event: SessionEvent,
}

/// One event of a session. The names are those of `agent:state_event`.
#[derive(Debug, Clone, PartialEq)]
pub enum SessionEvent {
    StateChanged(StateChanged),
    ToolLifecycle(ToolRun),
    HookLifecycle(HookRun),
    Error(SessionError),
    /// Something failed that stops nobody.
    Warning(SessionError),
    PermissionRequested(Permission),
    PermissionResolved(Resolved),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StateChanged {
    pub from: StateKind,
    pub to: StateKind,
    pub reason: Reason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_id: Option<StreamId>,
    /// Of the agent's process, where that is gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Resolved {
    pub id: String,
    pub answer: Answer,
    pub by: String,
}

/// What is recorded of a session beside what its machine declares.
pub(super) const NOTES: &[&str] = &["session.started", "session.ready", "turn.ended", "session.ended"];

/// Whether an event of this type tells of a session. Such events stand in the trace of the session's task, and change nothing about the task.
pub fn is_of_a_session(event_type: &str) -> bool {
    SessionEvent::TYPES.contains(&event_type) || NOTES.contains(&event_type)
}

impl SessionEvent {
    /// Every type, by name.
    pub const TYPES: &'static [&'static str] = &[
        "state_changed",
        "tool_lifecycle",
        "hook_lifecycle",
        "session_error",
        "session_warning",
        "permission_requested",
        "permission_resolved",
    ];

    pub fn event_type(&self) -> &'static str {
        match self {
            SessionEvent::StateChanged(_) => "state_changed",
            SessionEvent::ToolLifecycle(_) => "tool_lifecycle",
            SessionEvent::HookLifecycle(_) => "hook_lifecycle",
            SessionEvent::Error(_) => "session_error",
            SessionEvent::Warning(_) => "session_warning",
            SessionEvent::PermissionRequested(_) => "permission_requested",
            SessionEvent::PermissionResolved(_) => "permission_resolved",
        }
    }

    /// The fields of its type, as they are stored.
    pub fn fields(&self) -> Map<String, Value> {
        let fields = match self {
            SessionEvent::StateChanged(changed) => serde_json::to_value(changed),
            SessionEvent::ToolLifecycle(run) => serde_json::to_value(run),
            SessionEvent::HookLifecycle(run) => serde_json::to_value(run),
            SessionEvent::Error(error) | SessionEvent::Warning(error) => serde_json::to_value(error),
            SessionEvent::PermissionRequested(permission) => serde_json::to_value(permission),
            SessionEvent::PermissionResolved(resolved) => serde_json::to_value(resolved),
        };
        match fields {
            Ok(Value::Object(fields)) => fields,
            // Structs of texts and numbers become objects.
            _ => Map::new(),
        }
    }

    /// Reads stored fields; `None` where the type is not one of these.
    pub fn read(event_type: &str, fields: &Map<String, Value>) -> Option<Result<SessionEvent, String>> {
        fn of<T: for<'de> Deserialize<'de>>(
            fields: &Map<String, Value>,
            make: impl FnOnce(T) -> SessionEvent,
        ) -> Option<Result<SessionEvent, String>> {
            let read = T::deserialize(Value::Object(fields.clone()));
            Some(read.map(make).map_err(|error| error.to_string()))
        }
        match event_type {
            "state_changed" => of(fields, SessionEvent::StateChanged),
            "tool_lifecycle" => of(fields, SessionEvent::ToolLifecycle),
            "hook_lifecycle" => of(fields, SessionEvent::HookLifecycle),
            "session_error" => of(fields, SessionEvent::Error),
            "session_warning" => of(fields, SessionEvent::Warning),
            "permission_requested" => of(fields, SessionEvent::PermissionRequested),
            "permission_resolved" => of(fields, SessionEvent::PermissionResolved),
            _ => None,
        }
    }

    pub fn to_payload(&self) -> Payload {
        #[expect(clippy::expect_used, reason = "fixed names are names of types")]
        let event_type = self.event_type().parse().expect("the name of a type");
        Payload::Other { event_type, fields: self.fields() }
    }
}

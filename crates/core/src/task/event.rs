//! What happens to tasks, as it is stored. One struct for the fields of each type; names and spelling are a format.
//!
//! Read by [`TaskEvent::read`] from any record; types that are not a task's give `None`. Fields that a newer version added are ignored.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{Outcome, Phase, Priority, Routing, Status};
use crate::event::Payload;
use crate::guard::{Outcome as GuardOutcome, State};
use crate::ids::{AgentName, Digest, RunId, TaskId, Token, TraceId};
use crate::time::Timestamp;

/// Declares the types of events and their fields together.
macro_rules! task_events {
    ($($(#[$doc:meta])* $variant:ident($fields:ty) = $name:literal,)+) => {
        /// One event of a task.
        #[derive(Debug, Clone, PartialEq)]
        pub enum TaskEvent { $($(#[$doc])* $variant($fields)),+ }

        impl TaskEvent {
            /// Every type, by name.
            pub const TYPES: &'static [&'static str] = &[$($name),+];

            pub fn event_type(&self) -> &'static str {
                match self { $(TaskEvent::$variant(_) => $name),+ }
            }

            fn fields(&self) -> serde_json::Result<Value> {
                match self { $(TaskEvent::$variant(fields) => serde_json::to_value(fields)),+ }
            }

            /// Reads stored fields; `None` where the type is not one of these.
            pub fn read(event_type: &str, fields: &Map<String, Value>) -> Option<Result<TaskEvent, String>> {
                let value = || Value::Object(fields.clone());
                match event_type {
                    $($name => Some(
                        serde_json::from_value(value()).map(TaskEvent::$variant).map_err(|error| error.to_string()),
                    ),)+
                    _ => None,
                }
            }
        }
    };
}

task_events! {
    Created(Created) = "task.created",
    Transitioned(Transitioned) = "task.transitioned",
    PhaseChanged(PhaseChanged) = "task.phase_changed",
    Edited(Edited) = "task.edited",
    /// An edit by hand that was not taken in.
    EditRefused(EditRefused) = "task.edit_refused",
    Logged(Logged) = "task.logged",
    Completed(Completed) = "task.completed",
    AttemptFailed(AttemptFailed) = "task.attempt_failed",
    /// A person, or a reviewer, lets it through.
    Approved(Approved) = "task.approved",
    Rejected(Rejected) = "task.rejected",
    CiReported(CiReported) = "ci.reported",
    LeaseAcquired(LeaseAcquired) = "lease.acquired",
    LeaseRenewed(LeaseRenewed) = "lease.renewed",
    LeaseReleased(LeaseEnded) = "lease.released",
    LeaseExpired(LeaseEnded) = "lease.expired",
    /// The exit signal, accepted.
    SessionCompleted(SessionCompleted) = "AgentSessionCompleted",
    DelegationRequested(DelegationRequested) = "delegation.requested",
    DelegationAccepted(DelegationAnswered) = "delegation.accepted",
    DelegationRejected(DelegationAnswered) = "delegation.rejected",
    MessageReceived(MessageReceived) = "protocol.message.received",
    MessageRejected(MessageRejected) = "protocol.message.rejected",
    MessageUnknown(MessageUnknown) = "protocol.message.unknown",
    MessageWarning(MessageWarning) = "protocol.message.warning",
    /// A guarded run began, in a trace of its own.
    GuardOpened(GuardOpened) = "task.guard_opened",
    /// What a guarded run came to.
    Verified(Verified) = "task.verified",
    /// Somebody tried what the rules of guarded work forbid.
    GuardRefused(GuardRefused) = "guard.refused",
}

impl TaskEvent {
    /// Whether it only records what was said, and refused or noted.
    pub fn is_said_to_others(&self) -> bool {
        matches!(
            self,
            TaskEvent::MessageRejected(_)
                | TaskEvent::MessageUnknown(_)
                | TaskEvent::MessageWarning(_)
                | TaskEvent::GuardRefused(_)
        )
    }

    /// The event as the ledger stores it.
    pub fn to_payload(&self) -> Payload {
        Payload::stored(self.event_type(), self.fields())
    }
}

/// Declares the fields of one type of event. Keys are camelCase, as in a task's file, unless the guide of the type says otherwise.
macro_rules! fields {
    (snake $(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub struct $name { $($(#[$fdoc])* pub $field: $type,)* }
    };
    ($(#[$doc:meta])* $name:ident { $($(#[$fdoc:meta])* $field:ident: $type:ty),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        pub struct $name { $($(#[$fdoc])* pub $field: $type,)* }
    };
}

fields!(Created {
    title: String,
    status: Status,
    phase: Phase,
    priority: Priority,
    #[serde(default)]
    routing: Routing,
    created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    parent_id: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    depends_on: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "is_false")]
    guarded: bool,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    metadata: Map<String, Value>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    body: String,
    /// The file that a person made it with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layout: Option<Digest>,
});

fn is_false(value: &bool) -> bool {
    !value
}

fields!(Transitioned {
    from: Status,
    to: Status,
    reason: String,
    /// Why it is blocked, for `metadata.blockReason`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    block_reason: Option<String>,
    /// When it may be dispatched again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    not_before: Option<Timestamp>,
    /// Whether a report alone brought it here.
    #[serde(default, skip_serializing_if = "is_false")]
    by_report: bool,
    /// Whether failed attempts are forgotten.
    #[serde(default, skip_serializing_if = "is_false")]
    revived: bool,
});

fields!(PhaseChanged {
    from: Phase,
    to: Phase,
    /// Who completed the phase before, where somebody did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    completed_by: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Token>,
});

fields!(
    /// Only what changed is present; an absent key that can be empty is set to null.
    Edited {
        fields: Map<String, Value>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        layout: Option<Digest>,
    }
);

fields!(EditRefused {
    reason: String,
    /// The file in `quarantine/` that keeps the person's version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    quarantine: Option<String>,
    /// Of that version: met again, it has been answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    layout: Option<Digest>,
});

fields!(Logged {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    progress: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    blockers: Vec<String>,
});

fields!(Completed {
    agent: AgentName,
    run_id: Option<RunId>,
    fence: u64,
    outcome: Outcome,
    digest: Digest,
    /// The report as it came.
    report: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handoff_ref: Option<String>,
});

fields!(AttemptFailed {
    attempts: u32,
    reason: String,
    /// How the agent ended, as far as it is known.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    termination: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
});

fields!(Approved {
    phase: Phase,
    next_phase: Phase,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    notes: String,
});

fields!(Rejected { phase: Phase, reason: String });

fields!(CiReported {
    passed: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    reason: String,
});

fields!(LeaseAcquired {
    agent: AgentName,
    run_id: RunId,
    fence: u64,
    expires_at: Timestamp,
    beat_until: Timestamp,
    ttl_ms: i64,
    beat_ttl_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session: Option<Token>,
});

fields!(LeaseRenewed {
    fence: u64,
    expires_at: Timestamp,
    beat_until: Timestamp,
    renew_count: u64,
    /// A result file that does not read, for which the run is given more time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bad_result: Option<Digest>,
});

fields!(LeaseEnded { agent: AgentName, fence: u64, run_id: RunId, reason: String });

fields!(snake SessionCompleted {
    session_id: String,
    actor_id: String,
    phase_completed: Phase,
    exit_reason: String,
    next_phase: Phase,
    source: String,
    digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pr_url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evidence_bundle_ref: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    notes: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    evidence: Vec<Evidence>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
});

fields!(
    /// One item of an evidence bundle, as it was found.
    Evidence {
        name: String,
        path: String,
        #[serde(default, skip_serializing_if = "String::is_empty")]
        kind: String,
        /// What is stored; absent where the file was missing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sha256: Option<Digest>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        problem: Option<String>,
    }
);

fields!(DelegationRequested {
    parent_task_id: TaskId,
    from_agent: AgentName,
    to_agent: AgentName,
    depth: u64,
    digest: Digest,
    /// The request, as `handoff.json` shows it.
    handoff: Map<String, Value>,
});

fields!(DelegationAnswered {
    agent: AgentName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    digest: Option<Digest>,
});

fields!(MessageReceived {
    #[serde(rename = "type")]
    message_type: String,
    from_agent: AgentName,
    /// So that the same message again is noticed.
    digest: Digest,
    /// The envelope as it came; absent where it is so large that it is an artifact.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    message: Map<String, Value>,
});

fields!(MessageRejected {
    reason: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    detail: Value,
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    message_type: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_agent: Option<String>,
});

fields!(MessageUnknown {
    #[serde(rename = "type")]
    message_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from_agent: Option<String>,
});

fields!(MessageWarning {
    reason: String,
    #[serde(default, skip_serializing_if = "Value::is_null")]
    detail: Value,
});

fields!(GuardOpened {
    trace: TraceId,
    /// Whoever plays a part in it.
    #[serde(default)]
    players: Vec<AgentName>,
});

fields!(
    /// The task's trace cites the trace of its run: where that ended, and how.
    Verified {
        trace: TraceId,
        head: Digest,
        state: State,
        /// What the verifier said; absent where a person aborted the run.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        verdict: Option<GuardOutcome>,
        /// Why it did not end well.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    }
);

fields!(GuardRefused {
    agent: AgentName,
    /// What was tried.
    what: String,
    /// The rule, where one of the rules of guarded work forbids it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    why: String,
});

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TypeName;

    #[test]
    fn every_type_has_a_well_formed_name_of_its_own() {
        let mut names = TaskEvent::TYPES.to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TaskEvent::TYPES.len());
        names.iter().for_each(|name| drop(name.parse::<TypeName>().unwrap()));
    }

    #[test]
    fn stored_fields_read_back_and_unknown_ones_are_ignored() {
        let event = TaskEvent::Transitioned(Transitioned {
            from: Status::Ready,
            to: Status::InProgress,
            reason: "claimed".into(),
            block_reason: None,
            not_before: None,
            by_report: false,
            revived: false,
        });
        let Payload::Other { event_type, mut fields } = event.to_payload() else { panic!() };
        let stored = serde_json::json!({"from": "ready", "reason": "claimed", "to": "in-progress"});
        assert_eq!(serde_json::Value::Object(fields.clone()), stored);
        fields.insert("future".into(), 1.into());
        assert_eq!(TaskEvent::read(event_type.as_str(), &fields), Some(Ok(event)));
        assert_eq!(TaskEvent::read("note", &fields), None);
        fields.insert("to".into(), "nowhere".into());
        assert!(TaskEvent::read(event_type.as_str(), &fields).unwrap().is_err());
    }
}

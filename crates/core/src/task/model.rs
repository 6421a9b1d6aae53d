//! A task as the ledger says it stands: everything but its texts, which are [`super::Papers`].

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::{Outcome, Phase, Priority, Status};
use crate::guard::{Outcome as GuardOutcome, State};
use crate::ids::{AgentName, Digest, RunId, TaskId, Token, TraceId};
use crate::protocol::Tests;
use crate::time::Timestamp;

/// One task. Changed by events alone: [`Task::apply`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    pub id: TaskId,
    pub trace: TraceId,
    /// The number of the last event of the trace that was applied.
    pub seq: u64,
    /// The number of the last of them that its file shows. What a session of the task goes through is in its trace too, and not in its file.
    pub shown_seq: u64,
    pub title: String,
    pub status: Status,
    pub phase: Phase,
    pub priority: Priority,
    pub routing: Routing,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease: Option<Lease>,
    /// The last fence that was given; none is ever given again.
    pub fence: u64,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
    pub last_transition_at: Timestamp,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub depends_on: Vec<TaskId>,
    #[serde(default, skip_serializing_if = "is_false")]
    pub guarded: bool,
    /// The trace of its guarded run, from its beginning until its end is cited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub guard: Option<TraceId>,
    /// Whoever plays a part in that run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub players: Vec<AgentName>,
    /// How often somebody was kept from something in its last guarded run, and after it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refusals: u32,
    /// Failed attempts since the task was last made ready by a person.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_before: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase_before_block: Option<Phase>,
    pub metadata: Map<String, Value>,
    /// The last run, live or ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub said: Said,
    /// The tests of the last completion report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<Tests>,
    /// What the last guarded run came to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verified: Option<Verdict>,
    /// Who completed which phase last.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workers: BTreeMap<Phase, Worker>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Handoff>,
    /// Whether a report alone brought it to review: then one approval ends it.
    #[serde(default, skip_serializing_if = "is_false")]
    pub by_report: bool,
    /// Whether its dependencies have just become done, and it waits to be made ready.
    #[serde(default, skip_serializing_if = "is_false")]
    pub promotable: bool,
    /// Whether its trace has ended: what still happens to it is recorded in the trace `ledger`.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_closed: bool,
    /// Positions of what happened after that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub afterwards: Vec<u64>,
    /// The last text of the file that a person wrote: its layout, comments and unknown keys live on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layout: Option<Digest>,
}

fn is_default(said: &Said) -> bool {
    *said == Said::default()
}

fn is_false(value: &bool) -> bool {
    !value
}

fn is_zero(value: &u32) -> bool {
    *value == 0
}

/// Who should take a task.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Routing {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
}

/// The right of one agent to work on one task until a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Lease {
    pub agent: AgentName,
    pub run: RunId,
    pub fence: u64,
    pub acquired_at: Timestamp,
    pub expires_at: Timestamp,
    /// When the agent is taken for dead unless it beats again.
    pub beat_until: Timestamp,
    pub renew_count: u64,
    pub ttl_ms: i64,
    pub beat_ttl_ms: i64,
    /// The session of Baton's own that works under it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Token>,
}

impl Lease {
    /// The first moment at which it no longer holds.
    pub fn ends_at(&self) -> Timestamp {
        self.expires_at.min(self.beat_until)
    }

    /// How far a beat reaches that was not recorded: a beat that reached further would have been.
    pub fn beaten_until(&self, beat_until: Timestamp, lease_until: Timestamp) -> Timestamp {
        let beat_max = self.beat_until.plus_ms(self.beat_ttl_ms / 4);
        let lease_max = self.expires_at.plus_ms(self.ttl_ms / 4);
        beat_until.min(beat_max).min(lease_until.min(lease_max))
    }

    /// Whether it no longer holds. `beaten_until` is how far a beat reaches that was too small a step to be recorded.
    pub fn is_over(&self, now: Timestamp, beaten_until: Option<Timestamp>) -> bool {
        self.ends_at() <= now && beaten_until.is_none_or(|until| until <= now)
    }
}

/// One attempt at a task under one lease.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Run {
    pub id: RunId,
    pub agent: AgentName,
    pub fence: u64,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Token>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<RunEnd>,
}

/// What was accepted from whoever works on the task, since it was last claimed: the same again is answered as before.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub report: Option<Reported>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signalled>,
    /// A result file that did not read, so that it is complained of once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bad_result: Option<Digest>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    pub at: Timestamp,
    /// Whether it counts as an attempt that failed.
    pub failed: bool,
    pub reason: String,
}

/// What a guarded run came to, as its task cites it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    pub trace: TraceId,
    pub state: State,
    /// What the verifier said; absent where a person aborted the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<GuardOutcome>,
}

/// An accepted report, as far as decisions need it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reported {
    pub outcome: Outcome,
    pub agent: AgentName,
    pub digest: Digest,
    /// Why, where the outcome is `blocked`.
    pub reason: String,
    /// Whether its transitions are made.
    pub applied: bool,
    /// Where it stands in the ledger.
    #[serde(default)]
    pub pos: u64,
}

/// An accepted exit signal, so that the same one again is answered as before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Signalled {
    pub digest: Digest,
    pub phase: Phase,
    pub next_phase: Phase,
}

/// Who did a phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Worker {
    pub agent: AgentName,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<Token>,
}

/// A request to take a task over from its parent's agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handoff {
    pub from: AgentName,
    pub to: AgentName,
    pub digest: Digest,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Digest>,
}

impl Task {
    /// Whether `done` must pass a review.
    pub fn is_review_required(&self) -> bool {
        self.metadata.get("reviewRequired") != Some(&Value::Bool(false))
    }

    /// How deep in a chain of handoffs it is.
    pub fn delegation_depth(&self) -> u64 {
        self.metadata.get("delegationDepth").and_then(Value::as_u64).unwrap_or(0)
    }

    pub fn block_reason(&self) -> Option<&str> {
        self.metadata.get("blockReason").and_then(Value::as_str)
    }

    /// Whether it waits for other tasks and for nothing else.
    pub fn is_blocked_by_dependencies(&self) -> bool {
        self.status == Status::Blocked && self.block_reason() == Some(super::BLOCKED_BY_DEPENDENCIES)
    }

    /// The live run, which is the one that the lease is for.
    pub fn live_run(&self) -> Option<&Run> {
        let lease = self.lease.as_ref()?;
        self.run.as_ref().filter(|run| run.id == lease.run && run.ended.is_none())
    }

    /// Whether it is worked on by the rules of guarded work now. Who judges what came of that does so as with any other task.
    pub fn is_held_to_rules(&self) -> bool {
        self.guarded && !self.phase_before_block.unwrap_or(self.phase).is_judgement()
    }

    /// Where the task goes when nobody works on it any more: where its phase waits.
    pub fn waiting_status(&self) -> Status {
        self.phase.waits_in()
    }

    /// The keys of the task's file, in their order. `rev` and everything else a reader needs; absent values are `None`.
    pub fn frontmatter(&self) -> Vec<(&'static str, Option<Value>)> {
        let text = |text: &dyn std::fmt::Display| Some(Value::String(text.to_string()));
        let some = |value: Option<String>| value.map(Value::String);
        vec![
            ("schemaVersion", Some(1.into())),
            ("id", text(&self.id)),
            ("title", text(&self.title)),
            ("status", text(&self.status)),
            ("phase", text(&self.phase)),
            ("priority", text(&self.priority)),
            ("routing", Some(self.routing.to_json())),
            ("lease", self.lease.as_ref().map(Lease::to_json)),
            ("createdAt", text(&self.created_at)),
            ("updatedAt", text(&self.updated_at)),
            ("lastTransitionAt", text(&self.last_transition_at)),
            ("createdBy", text(&self.created_by)),
            ("parentId", some(self.parent.as_ref().map(ToString::to_string))),
            ("dependsOn", Some(self.depends_on.iter().map(TaskId::as_str).collect())),
            ("traceId", text(&self.trace)),
            ("guarded", self.guarded.then_some(Value::Bool(true))),
            ("attempts", Some(self.attempts.into())),
            ("notBefore", some(self.not_before.map(|at| at.to_string()))),
            ("phaseBeforeBlock", some(self.phase_before_block.map(|phase| phase.to_string()))),
            ("metadata", Some(Value::Object(self.metadata.clone()))),
            ("rev", Some(self.rev().into())),
        ]
    }

    /// What the file is a projection of: the last event of the trace that concerns it, and how often the task was changed after the trace's end.
    pub fn rev(&self) -> u64 {
        self.shown_seq + self.afterwards.len() as u64
    }

    /// The task as scripts see it: the keys of the file.
    pub fn to_json(&self) -> Map<String, Value> {
        let keys = self.frontmatter().into_iter();
        keys.filter_map(|(key, value)| Some((key.to_owned(), value?))).collect()
    }
}

impl Routing {
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        if let Some(agent) = &self.agent {
            map.insert("agent".into(), agent.as_str().into());
        }
        if let Some(role) = &self.role {
            map.insert("role".into(), role.as_str().into());
        }
        if !self.tags.is_empty() {
            map.insert("tags".into(), self.tags.clone().into());
        }
        Value::Object(map)
    }
}

impl Lease {
    pub fn to_json(&self) -> Value {
        json!({
            "agent": self.agent.as_str(),
            "acquiredAt": self.acquired_at.to_string(),
            "expiresAt": self.expires_at.to_string(),
            "renewCount": self.renew_count,
            "fence": self.fence,
        })
    }
}

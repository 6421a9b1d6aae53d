//! Why something is not done to a task. Nothing was changed, and nothing is recorded unless the caller says so.

use super::{Phase, Status};
use crate::ids::{AgentName, TaskId};
use crate::time::Timestamp;

/// A rule that forbids what was asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no task {0}")]
    NotFound(TaskId),
    #[error("there is a task {0} already")]
    Exists(TaskId),
    #[error("{field}: expected {expected}, got {got:?}")]
    Field { field: &'static str, expected: String, got: String },
    #[error("a task in {from} cannot go to {to}{}", hint_of(.from))]
    Transition { from: Status, to: Status },
    #[error("a task gets to in-progress by a claim, which says who works on it and until when")]
    ByClaimOnly,
    #[error("it depends on {}, not done yet", list(.0))]
    DependenciesOpen(Vec<TaskId>),
    #[error("it cannot depend on {0}, which does not exist")]
    DependencyNotFound(TaskId),
    #[error("its dependencies would go in a circle: {}", path(.0))]
    Cycle(Vec<TaskId>),
    #[error("there is no task {0} to be its parent")]
    ParentNotFound(TaskId),
    #[error("it would be a part of itself: {}", path(.0))]
    ParentCycle(Vec<TaskId>),
    #[error("{agent} holds it until {until} with fence {fence}")]
    Held { agent: AgentName, until: Timestamp, fence: u64 },
    #[error("a task in {status}, phase {phase}, is not to be claimed")]
    NotClaimable { status: Status, phase: Phase },
    #[error("{agent} did the work before it and cannot do {phase} too")]
    OwnWork { agent: AgentName, phase: Phase },
    #[error("{agent} does not hold it with fence {fence}: {now}")]
    LostLease { agent: AgentName, fence: u64, now: String },
    #[error("no_lease: nobody holds it, so there is no one whose phase could end")]
    NoLease,
    #[error("session {given} is not the one that works on it ({works})")]
    OtherSession { given: String, works: String },
    #[error("phase mismatch: task is in {task}, signal completes {signal}")]
    PhaseMismatch { task: Phase, signal: Phase },
    #[error("a task in {0} has no phase to complete")]
    NoNextPhase(Phase),
    #[error("in CI_PENDING only Baton's own run of the checks, or `ci report`, goes on")]
    CiPending,
    #[error("a task in {status}, phase {phase}, is not waiting for CI")]
    NotInCi { status: Status, phase: Phase },
    #[error("the verdict is of a run that began before the task last came to wait for one")]
    LateVerdict,
    #[error("a task in {status}, phase {phase}, is not waiting for a review")]
    NotInReview { status: Status, phase: Phase },
    #[error("a task in {0} cannot be retried; a deadletter can, or one that waits before its next attempt")]
    NotRetryable(Status),
    #[error("a guarded task is worked on by its team, whose every step is checked: {0}")]
    Guarded(&'static str),
    #[error("{0}")]
    Limit(String),
}

impl Refusal {
    /// A short word for programs.
    pub fn reason(&self) -> &'static str {
        match self {
            Refusal::NotFound(_) => "task_not_found",
            Refusal::Exists(_) => "task_exists",
            Refusal::Field { .. } => "invalid_field",
            Refusal::Transition { .. } => "invalid_transition",
            Refusal::ByClaimOnly => "claim_required",
            Refusal::DependenciesOpen(_) => "dependencies_open",
            Refusal::DependencyNotFound(_) => "dependency_not_found",
            Refusal::Cycle(_) => "dependency_cycle",
            Refusal::ParentNotFound(_) => "parent_not_found",
            Refusal::ParentCycle(_) => "parent_cycle",
            Refusal::Held { .. } => "held",
            Refusal::NotClaimable { .. } => "not_claimable",
            Refusal::OwnWork { .. } => "own_work",
            Refusal::LostLease { .. } => "stale_fence",
            Refusal::NoLease => "no_lease",
            Refusal::OtherSession { .. } => "other_session",
            Refusal::PhaseMismatch { .. } => "phase_mismatch",
            Refusal::NoNextPhase(_) => "no_next_phase",
            Refusal::CiPending => "ci_pending",
            Refusal::NotInCi { .. } => "not_in_ci",
            Refusal::LateVerdict => "late_verdict",
            Refusal::NotInReview { .. } => "not_in_review",
            Refusal::NotRetryable(_) => "not_retryable",
            Refusal::Guarded(_) => "guarded",
            Refusal::Limit(_) => "limit",
        }
    }
}

fn list(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(", ")
}

fn path(ids: &[TaskId]) -> String {
    ids.iter().map(TaskId::as_str).collect::<Vec<_>>().join(" → ")
}

/// Where it can be moved by hand, which is not where only a claim leads.
fn hint_of(from: &Status) -> String {
    let by_hand = from.successors().iter().filter(|status| **status != Status::InProgress);
    let words: Vec<&str> = by_hand.map(|status| status.as_str()).collect();
    if words.is_empty() {
        "; nothing follows it".to_owned()
    } else {
        format!("; it can go to {}", words.join(", "))
    }
}

//! What is asked of tasks, and what it leads to: state, time and input in; events, or a refusal, out.
//!
//! One file for each family of inputs. All of them work on a copy of the task, through [`Act::emit`], so that every step sees what the one before
//! it did, in the same way as replay will. The order of the events in a decision is the order in which they became true.

mod actions;
mod claim;
mod create;
mod edit;
mod exit;
mod gate;
mod guarded;
mod message;
mod moves;
mod recover;
#[cfg(test)]
mod tests;

pub use actions::Actions;
pub use claim::{Beat, Claim, Holder};
pub use create::New;
pub use edit::{EDITABLE, Edit, HEARTBEAT_TTL, LEASE_TTL, RefusedEdit, read_routing};
pub use exit::{Submit, Submitted};
pub use gate::{Approve, CiVerdict, Reject};
pub use guarded::{GuardBegins, GuardEnded};
pub use message::Told;
pub use moves::{Log, Move, Retry};
pub use recover::{AfterSession, Ending, FoundResult, Rules, RunEnded, SessionEnded};

use super::apply::At;
use super::board::Board;
use super::event::{LeaseEnded, PhaseChanged, Transitioned};
use super::{Phase, Refusal, Status, Task, TaskEvent};
use crate::event::{Actor, ArtifactRef, Event, Payload};
use crate::ids::{AgentName, RunId, TaskId, TraceId};
pub use crate::moment::{Ids, Moment};
use crate::roles::{OPERATOR, OWN_AGENT, Role};
use crate::time::Timestamp;

/// Why a guarded task is not let through while its run is open.
pub(crate) const UNVERIFIED: &str = "its run is not verified yet, and a person may abort that";
pub(crate) const UNENDED: &str = "its run is open: a person who aborts that cancels the task, too";

/// Facts to record, and who should hear of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decided {
    pub events: Vec<Event>,
    /// The heads that it was decided on.
    pub decided_on: Vec<(TraceId, u64)>,
}

impl Decided {
    /// Nothing happens: what was asked for is so already.
    pub fn nothing() -> Self {
        Decided::default()
    }

    /// The types of the events, in order.
    pub fn types(&self) -> Vec<&str> {
        self.events.iter().map(|event| event.payload.event_type()).collect()
    }
}

/// The actor that Baton itself is.
pub fn system() -> Actor {
    #[expect(clippy::expect_used, reason = "Baton's own name is a name")]
    let agent = OWN_AGENT.parse().expect("an agent name");
    Actor { agent, role: Role::System, key: None }
}

/// The person in front of the machine.
pub fn operator() -> Actor {
    #[expect(clippy::expect_used, reason = "a fixed name is a name")]
    let agent = OPERATOR.parse().expect("an agent name");
    Actor { agent, role: Role::Operator, key: None }
}

/// An agent that works on tasks.
pub fn executor(agent: &AgentName) -> Actor {
    if agent.as_str() == OPERATOR {
        return operator();
    }
    Actor { agent: agent.clone(), role: Role::Executor, key: None }
}

/// One decision about one task in the making.
#[derive(Debug)]
pub(crate) struct Act<'a> {
    pub(crate) board: &'a Board,
    /// The task as it is after the events so far.
    pub(crate) task: Task,
    pub(crate) now: Timestamp,
    pub(crate) ids: Ids,
    events: Vec<Event>,
    decided_on: Vec<(TraceId, u64)>,
}

impl<'a> Act<'a> {
    pub(crate) fn on(board: &'a Board, id: &TaskId, moment: Moment) -> Result<Self, Refusal> {
        let task = board.get(id).ok_or_else(|| Refusal::NotFound(id.clone()))?;
        Ok(Act::of(board, task.clone(), moment))
    }

    pub(crate) fn of(board: &'a Board, task: Task, moment: Moment) -> Self {
        let decided_on = if task.is_closed { Vec::new() } else { vec![(task.trace, task.seq)] };
        Act { board, task, now: moment.now, ids: Ids::new(moment), events: Vec::new(), decided_on }
    }

    /// Where events of this task go: its own trace, or after its end the trace `ledger`.
    fn trace(&self) -> TraceId {
        if self.task.is_closed { TraceId::Ledger } else { self.task.trace }
    }

    /// Records an event and lets the task be what it makes of it.
    pub(crate) fn emit(&mut self, by: &Actor, event: &TaskEvent) {
        self.emit_with(by, event, Vec::new());
    }

    pub(crate) fn emit_with(&mut self, by: &Actor, event: &TaskEvent, artifacts: Vec<ArtifactRef>) {
        let trace = self.trace();
        let run = self.task.lease.as_ref().map(|lease| (lease.run, lease.fence));
        let session = self.task.lease.as_ref().and_then(|lease| lease.session.clone());
        self.push(by, trace, event.to_payload(), artifacts, run, session);
        self.task.apply(event, At { pos: 0, trace, seq: self.task.seq + 1, time: self.now });
    }

    fn push(
        &mut self,
        by: &Actor,
        trace: TraceId,
        payload: Payload,
        artifacts: Vec<ArtifactRef>,
        run: Option<(RunId, u64)>,
        session: Option<crate::ids::Token>,
    ) {
        self.events.push(Event {
            trace,
            id: self.ids.event(),
            at: self.now,
            actor: by.clone(),
            task: Some(self.task.id.to_token()),
            // A run's id is a token: `run_`, hex digits and hyphens.
            run: run.and_then(|(run, _)| run.to_string().parse().ok()),
            session,
            fence: run.map(|(_, fence)| fence),
            payload,
            artifacts,
            seen: None,
        });
    }

    /// Moves the task, and its phase with it, and ends the lease where it leaves in-progress.
    pub(crate) fn go(&mut self, by: &Actor, to: Status, reason: &str) {
        self.go_with(
            by,
            to,
            Transitioned {
                from: self.task.status,
                to,
                reason: reason.to_owned(),
                block_reason: None,
                not_before: None,
                by_report: false,
                revived: false,
            },
        );
    }

    pub(crate) fn go_with(&mut self, by: &Actor, to: Status, moved: Transitioned) {
        debug_assert!(self.task.status.may_become(to), "{} → {to}", self.task.status);
        let phase = phase_after(&self.task, to);
        if phase != self.task.phase {
            self.change_phase(by, phase, None);
        }
        let lease = self.task.lease.clone().filter(|_| to != Status::InProgress);
        let reason = moved.reason.clone();
        self.emit(by, &TaskEvent::Transitioned(moved));
        if let Some(lease) = lease {
            self.emit(
                by,
                &TaskEvent::LeaseReleased(LeaseEnded {
                    agent: lease.agent,
                    fence: lease.fence,
                    run_id: lease.run,
                    reason,
                }),
            );
        }
    }

    pub(crate) fn change_phase(&mut self, by: &Actor, to: Phase, completed_by: Option<super::model::Worker>) {
        let (completed_by, session) = match completed_by {
            Some(worker) => (Some(worker.agent), worker.session),
            None => (None, None),
        };
        let from = self.task.phase;
        self.emit(by, &TaskEvent::PhaseChanged(PhaseChanged { from, to, completed_by, session }));
    }

    /// Ends the decision. A task that has come to its end closes its trace.
    pub(crate) fn done(mut self) -> Decided {
        if self.task.status.is_final() && !self.task.is_closed && !self.events.is_empty() {
            let reason = self.task.status.as_str().to_owned();
            let trace = self.task.trace;
            self.push(&system(), trace, Payload::TraceClosed { reason }, Vec::new(), None, None);
        }
        Decided { events: self.events, decided_on: self.decided_on }
    }

    /// Says that the decision also rests on another task.
    pub(crate) fn rests_on(&mut self, other: &Task) {
        if !other.is_closed && other.trace != self.task.trace {
            self.decided_on.push((other.trace, other.seq));
        }
    }

    /// Refuses `done` while a dependency is not.
    pub(crate) fn expect_dependencies_done(&mut self) -> Result<(), Refusal> {
        let open: Vec<TaskId> = self.board.open_dependencies(&self.task).cloned().collect();
        if open.is_empty() { Ok(()) } else { Err(Refusal::DependenciesOpen(open)) }
    }
}

/// The phase of a task once it is in another status: the two never contradict each other.
fn phase_after(task: &Task, to: Status) -> Phase {
    let before = task.phase_before_block.unwrap_or(task.phase);
    match to {
        Status::Blocked => Phase::Blocked,
        Status::Done => Phase::Completed,
        Status::Ready => match before {
            Phase::Draft => Phase::Draft,
            _ => Phase::Implementation,
        },
        // A review of a phase that does not wait there is one of a report, or of a person's making.
        Status::Review => match before {
            Phase::Blocked | Phase::Completed => Phase::Implementation,
            phase => phase,
        },
        Status::Backlog | Status::InProgress | Status::Cancelled | Status::Deadletter => task.phase,
    }
}

/// A text that fits a field.
pub(crate) fn expect_text(field: &'static str, text: &str, max: usize) -> Result<(), Refusal> {
    let refuse = |expected: String| Refusal::Field { field, expected, got: text.chars().take(80).collect() };
    if text.trim().is_empty() {
        return Err(refuse("a text".into()));
    }
    if text.chars().count() > max {
        return Err(refuse(format!("at most {max} characters")));
    }
    Ok(())
}

//! The exit signal: an agent says that its phase has ended, and a fresh one may take the next.

use super::{Act, Decided, Moment, system};
use crate::event::ArtifactRef;
use crate::ids::{AgentName, Digest, TaskId, Token};
use crate::protocol::exit_signal::{ExitReason, ExitSignal, next_phase};
use crate::task::event::{Evidence, SessionCompleted, Transitioned};
use crate::task::model::Worker;
use crate::task::{Board, Phase, Refusal, Status, TaskEvent};

/// A signal that reads well, for a task, with what the edge found of its evidence.
#[derive(Debug, Clone, PartialEq)]
pub struct Submit {
    pub task: TaskId,
    pub session: Option<Token>,
    /// Who says so and with which fence, where that is known: then it must be the lease's.
    pub agent: Option<AgentName>,
    pub fence: Option<u64>,
    pub signal: ExitSignal,
    pub digest: Digest,
    pub evidence: Vec<Evidence>,
    /// The stored items of the bundle, and the bundle itself.
    pub artifacts: Vec<ArtifactRef>,
    pub warnings: Vec<String>,
}

/// What a signal led to.
#[derive(Debug, Clone, PartialEq)]
pub struct Submitted {
    pub phase: Phase,
    pub next_phase: Phase,
    pub decided: Decided,
}

impl Board {
    /// Accepts a signal in one step: the completion, the phase, the transition, the lease's end. Or nothing.
    pub fn submit(&self, submit: &Submit, moment: Moment) -> Result<Submitted, Refusal> {
        let mut act = Act::on(self, &submit.task, moment)?;
        if let Some(before) = act.task.said.signal.as_ref().filter(|before| before.digest == submit.digest) {
            let (phase, next_phase) = (before.phase, before.next_phase);
            return Ok(Submitted { phase, next_phase, decided: Decided::nothing() });
        }
        if act.task.guard.is_some() {
            return Err(Refusal::Guarded("it ends with its verification, and with no signal"));
        }
        let phase = act.task.phase;
        if phase == Phase::CiPending {
            return Err(Refusal::CiPending);
        }
        let lease = act.task.lease.clone().ok_or(Refusal::NoLease)?;
        if let Some(given) = submit.session.as_ref().filter(|given| lease.session.as_ref() != Some(given)) {
            let works = lease.session.as_ref().map_or("none of Baton's own", Token::as_str).to_owned();
            return Err(Refusal::OtherSession { given: given.to_string(), works });
        }
        let is_other = submit.agent.as_ref().is_some_and(|agent| *agent != lease.agent);
        if is_other || submit.fence.is_some_and(|fence| fence != lease.fence) {
            let agent = submit.agent.clone().unwrap_or_else(|| lease.agent.clone());
            let now = format!("{} does with fence {}", lease.agent, lease.fence);
            return Err(Refusal::LostLease { agent, fence: submit.fence.unwrap_or(lease.fence), now });
        }
        let signal = &submit.signal;
        if signal.phase_completed != phase {
            return Err(Refusal::PhaseMismatch { task: phase, signal: signal.phase_completed });
        }
        let next = next_phase(phase, signal.exit_reason).map_err(|error| Refusal::NoNextPhase(error.0))?;
        if next == Phase::Completed {
            act.expect_dependencies_done()?;
        }
        let by = system();
        let session_id = lease.session.as_ref().map_or_else(|| lease.run.to_string(), ToString::to_string);
        let completed = TaskEvent::SessionCompleted(SessionCompleted {
            session_id,
            actor_id: lease.agent.to_string(),
            phase_completed: phase,
            exit_reason: signal.exit_reason.as_str().to_owned(),
            next_phase: next,
            source: "agent_exit_protocol".into(),
            digest: submit.digest,
            pr_url: signal.pr_url.clone(),
            evidence_bundle_ref: signal.evidence_bundle_ref.clone(),
            notes: signal.notes.clone(),
            evidence: submit.evidence.clone(),
            warnings: submit.warnings.clone(),
        });
        act.emit_with(&by, &completed, submit.artifacts.clone());
        let worker = Worker { agent: lease.agent, session: lease.session };
        match signal.exit_reason {
            ExitReason::Completed => {
                act.change_phase(&by, next, Some(worker));
                // In-progress goes to done by way of review, as everything does.
                let to = if next == Phase::Completed { Status::Review } else { next.waits_in() };
                act.go_to_waiting(&by, to, "phase_completed");
                if next == Phase::Completed {
                    act.go(&by, Status::Done, "phase_completed");
                }
            }
            reason @ (ExitReason::Blocked | ExitReason::Error) => {
                let why = signal.notes.clone().unwrap_or_else(|| format!("exit_{}", reason.as_str()));
                let moved = Transitioned {
                    from: act.task.status,
                    to: Status::Blocked,
                    reason: format!("exit_{}", reason.as_str()),
                    block_reason: Some(why),
                    not_before: None,
                    by_report: false,
                    revived: false,
                };
                act.go_with(&by, Status::Blocked, moved);
            }
        }
        Ok(Submitted { phase, next_phase: next, decided: act.done() })
    }
}

impl Act<'_> {
    /// Moves a task without touching the phase that was just set.
    fn go_to_waiting(&mut self, by: &crate::event::Actor, to: Status, reason: &str) {
        let phase = self.task.phase;
        self.go(by, to, reason);
        if self.task.phase != phase {
            self.change_phase(by, phase, None);
        }
    }
}

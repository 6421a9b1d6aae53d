//! How events change a task. The only way in which one changes, live and in replay.

use serde_json::Value;

use super::event::{Created, LeaseEnded, Transitioned, Verified};
use super::model::{Handoff, Lease, Reported, Run, RunEnd, Said, Signalled, Verdict, Worker};
use super::{Phase, Status, Task, TaskEvent};
use crate::ids::{TaskId, TraceId};
use crate::protocol::Tests;
use crate::session::is_of_a_session;
use crate::time::Timestamp;

/// Where and when an event stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    pub pos: u64,
    pub trace: TraceId,
    pub seq: u64,
    pub time: Timestamp,
}

impl Task {
    /// The task that its first event makes.
    pub fn create(id: TaskId, created: &Created, at: At) -> Task {
        let mut metadata = created.metadata.clone();
        metadata.entry("reviewRequired").or_insert(Value::Bool(true));
        Task {
            id,
            trace: at.trace,
            seq: at.seq,
            shown_seq: at.seq,
            title: created.title.clone(),
            status: created.status,
            phase: created.phase,
            priority: created.priority,
            routing: created.routing.clone(),
            lease: None,
            fence: 0,
            created_at: at.time,
            updated_at: at.time,
            last_transition_at: at.time,
            created_by: created.created_by.clone(),
            parent: created.parent_id.clone(),
            depends_on: created.depends_on.clone(),
            guarded: created.guarded,
            guard: None,
            players: Vec::new(),
            refusals: 0,
            attempts: 0,
            not_before: None,
            phase_before_block: None,
            metadata,
            run: None,
            said: Said::default(),
            tests: None,
            verified: None,
            workers: Default::default(),
            handoff: None,
            by_report: false,
            promotable: false,
            is_closed: false,
            afterwards: Vec::new(),
            layout: created.layout,
        }
    }

    /// Notes that an event of its trace, of whatever type, stands there.
    pub fn advance(&mut self, event_type: &str, at: At) {
        if at.trace == self.trace {
            self.seq = at.seq;
            if !is_of_a_session(event_type) {
                self.shown_seq = at.seq;
            }
        } else {
            self.afterwards.push(at.pos);
        }
    }

    /// Takes one event in.
    pub fn apply(&mut self, event: &TaskEvent, at: At) {
        if matches!(event, TaskEvent::GuardRefused(_)) {
            self.refusals = self.refusals.saturating_add(1);
        }
        let is_afterwards = at.trace != self.trace;
        if is_afterwards && event.is_said_to_others() {
            // Whatever is said to a task that has ended changes nothing about it, and its file is not written for it.
            return;
        }
        self.advance(event.event_type(), at);
        match event {
            // A second creation of the same task is none: the first one counts.
            TaskEvent::Created(_) => return,
            TaskEvent::Transitioned(moved) => self.apply_transition(moved, at.time),
            TaskEvent::PhaseChanged(changed) => {
                // What somebody completed while the task was blocked is the phase that it was blocked in.
                let completed = match changed.from {
                    Phase::Blocked => self.phase_before_block.unwrap_or(Phase::Blocked),
                    phase => phase,
                };
                self.phase_before_block = (changed.to == Phase::Blocked).then_some(changed.from);
                if let Some(agent) = &changed.completed_by {
                    let worker = Worker { agent: agent.clone(), session: changed.session.clone() };
                    self.workers.insert(completed, worker);
                }
                self.phase = changed.to;
            }
            TaskEvent::Edited(edited) => self.apply_edit(edited),
            TaskEvent::EditRefused(refused) => {
                if refused.layout.is_some() {
                    self.layout = refused.layout;
                }
            }
            TaskEvent::MessageReceived(received) => {
                if received.message_type == "status.update" {
                    self.said.update = Some(received.digest);
                }
            }
            TaskEvent::Completed(completed) => {
                self.said.report = Some(Reported {
                    outcome: completed.outcome,
                    agent: completed.agent.clone(),
                    digest: completed.digest,
                    reason: super::report::reason_of(&completed.report),
                    applied: false,
                    pos: at.pos,
                });
                self.tests = Tests::of_report(&completed.report);
            }
            TaskEvent::AttemptFailed(failed) => {
                self.attempts = failed.attempts;
                // Where no run is named, it had ended before, and well: what failed is what others made of its work.
                if failed.run_id.is_some() {
                    self.end_run(at.time, true, &failed.reason);
                }
            }
            TaskEvent::LeaseAcquired(acquired) => {
                self.fence = acquired.fence;
                // What was reported of a guarded run stays as long as the run is open.
                let report = self.said.report.take().filter(|_| self.guard.is_some());
                self.said = Said { report, ..Said::default() };
                self.lease = Some(Lease {
                    agent: acquired.agent.clone(),
                    run: acquired.run_id,
                    fence: acquired.fence,
                    acquired_at: at.time,
                    expires_at: acquired.expires_at,
                    beat_until: acquired.beat_until,
                    renew_count: 0,
                    ttl_ms: acquired.ttl_ms,
                    beat_ttl_ms: acquired.beat_ttl_ms,
                    session: acquired.session.clone(),
                });
                self.run = Some(Run {
                    id: acquired.run_id,
                    agent: acquired.agent.clone(),
                    fence: acquired.fence,
                    started_at: at.time,
                    session: acquired.session.clone(),
                    ended: None,
                });
            }
            TaskEvent::LeaseRenewed(renewed) => {
                if let Some(lease) = self.lease.as_mut().filter(|lease| lease.fence == renewed.fence) {
                    lease.expires_at = renewed.expires_at;
                    lease.beat_until = renewed.beat_until;
                    lease.renew_count = renewed.renew_count;
                }
                if renewed.bad_result.is_some() {
                    self.said.bad_result = renewed.bad_result;
                }
            }
            TaskEvent::LeaseReleased(ended) | TaskEvent::LeaseExpired(ended) => {
                self.apply_lease_end(ended, at.time);
            }
            TaskEvent::SessionCompleted(completed) => {
                self.said.signal = Some(Signalled {
                    digest: completed.digest,
                    phase: completed.phase_completed,
                    next_phase: completed.next_phase,
                });
            }
            TaskEvent::DelegationRequested(requested) => {
                self.parent = Some(requested.parent_task_id.clone());
                self.routing.agent = Some(requested.to_agent.clone());
                self.metadata.insert("delegationDepth".into(), requested.depth.into());
                self.handoff = Some(Handoff {
                    from: requested.from_agent.clone(),
                    to: requested.to_agent.clone(),
                    digest: requested.digest,
                    answer: None,
                });
            }
            TaskEvent::DelegationAccepted(answered) | TaskEvent::DelegationRejected(answered) => {
                if let (Some(handoff), Some(digest)) = (&mut self.handoff, answered.digest) {
                    handoff.answer = Some(digest);
                }
            }
            TaskEvent::GuardOpened(opened) => {
                self.guard = Some(opened.trace);
                self.players.clone_from(&opened.players);
                self.refusals = 0;
            }
            TaskEvent::Verified(verified) => {
                let Verified { trace, state, verdict, .. } = *verified;
                self.verified = Some(Verdict { trace, state, verdict });
                if self.guard == Some(trace) {
                    self.guard = None;
                    self.players.clear();
                }
            }
            TaskEvent::Approved(_)
            | TaskEvent::Rejected(_)
            | TaskEvent::CiReported(_)
            | TaskEvent::Logged(_)
            | TaskEvent::MessageRejected(_)
            | TaskEvent::MessageUnknown(_)
            | TaskEvent::MessageWarning(_)
            | TaskEvent::GuardRefused(_) => {}
        }
        self.updated_at = at.time;
    }

    fn apply_transition(&mut self, moved: &Transitioned, at: Timestamp) {
        if moved.to != Status::InProgress && self.lease.take().is_some() {
            self.end_run(at, false, &moved.reason);
        }
        if let Some(report) = self.said.report.as_mut() {
            report.applied = true;
        }
        self.metadata.remove("blockReason");
        if moved.to == Status::Blocked {
            let why = moved.block_reason.as_ref().unwrap_or(&moved.reason);
            self.metadata.insert("blockReason".into(), why.as_str().into());
        }
        if moved.revived {
            self.attempts = 0;
        }
        self.status = moved.to;
        self.last_transition_at = at;
        self.not_before = moved.not_before;
        self.by_report = moved.by_report;
        self.promotable = false;
    }

    fn apply_edit(&mut self, edited: &super::event::Edited) {
        for (key, value) in &edited.fields {
            match key.as_str() {
                "title" => self.title = value.as_str().unwrap_or_default().to_owned(),
                "priority" => {
                    if let Some(priority) = value.as_str().and_then(|word| word.parse().ok()) {
                        self.priority = priority;
                    }
                }
                "routing" => {
                    self.routing = serde_json::from_value(value.clone()).unwrap_or_default();
                }
                "dependsOn" => {
                    self.depends_on = serde_json::from_value(value.clone()).unwrap_or_default();
                }
                "parentId" => self.parent = value.as_str().and_then(|id| id.parse().ok()),
                "notBefore" => self.not_before = value.as_str().and_then(|at| at.parse().ok()),
                "metadata" => {
                    self.metadata = value.as_object().cloned().unwrap_or_default();
                }
                // Texts are in the papers.
                _ => {}
            }
        }
        if edited.layout.is_some() {
            self.layout = edited.layout;
        }
    }

    fn apply_lease_end(&mut self, ended: &LeaseEnded, at: Timestamp) {
        if self.lease.as_ref().is_some_and(|lease| lease.fence == ended.fence) {
            self.lease = None;
            self.end_run(at, false, &ended.reason);
        }
    }

    /// The first end of a run counts, but a failure is never lost.
    fn end_run(&mut self, at: Timestamp, failed: bool, reason: &str) {
        if let Some(run) = self.run.as_mut() {
            match &mut run.ended {
                Some(end) => end.failed |= failed,
                None => run.ended = Some(RunEnd { at, failed, reason: reason.to_owned() }),
            }
        }
    }
}

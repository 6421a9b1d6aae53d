//! What becomes of a run that nobody answers for any more, and of tasks that waited for others. State is read again at the moment of acting.

use serde_json::Value;

use super::{Act, Decided, Moment, executor, system};
use crate::event::Actor;
use crate::ids::{Digest, RunId, TaskId};
use crate::limits::STOPPED_WAIT_MS;
use crate::task::event::{AttemptFailed, Completed, LeaseRenewed, MessageRejected, Transitioned};
use crate::task::model::Worker;
use crate::task::{Board, Outcome, Phase, Refusal, Status, TaskEvent, backoff};
use crate::time::Timestamp;

/// What the configuration says about attempts and gates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    pub max_attempts: u32,
    /// Whether a command is configured that checks a finished implementation.
    pub has_ci: bool,
}

/// A run that has ended, or that is taken for dead.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnded {
    pub task: TaskId,
    /// The ends of the lease as the last beat moved them, where the ledger does not know of it.
    pub beaten_until: Option<Timestamp>,
    /// What the run left in its result file, where the ledger has no report.
    pub result: Option<FoundResult>,
}

/// A result file that no message announced.
#[derive(Debug, Clone, PartialEq)]
pub enum FoundResult {
    Report(Box<Completed>),
    /// It does not read, is of another run, or says nonsense.
    Bad {
        digest: Digest,
        detail: String,
    },
}

impl Board {
    /// Acts on a lease or a heartbeat that has run out; `None` where it has not, or where it is nobody's any more.
    pub fn expire(&self, ended: &RunEnded, rules: Rules, moment: Moment) -> Option<Decided> {
        let mut act = Act::on(self, &ended.task, moment).ok()?;
        let lease = act.task.lease.clone()?;
        let is_stale_beat = lease.beat_until <= lease.expires_at;
        if !lease.is_over(moment.now, ended.beaten_until) {
            return None;
        }
        let by = system();
        let run = act.task.live_run().map(|run| run.id);
        if act.task.said.report.is_none() {
            match &ended.result {
                Some(FoundResult::Report(report)) if report.run_id == run && report.fence == lease.fence => {
                    act.emit(&executor(&lease.agent), &TaskEvent::Completed((**report).clone()));
                }
                Some(FoundResult::Bad { digest, detail }) if act.task.said.bad_result.is_none() => {
                    act.emit(
                        &by,
                        &TaskEvent::MessageRejected(MessageRejected {
                            reason: "invalid_envelope".into(),
                            detail: detail.as_str().into(),
                            message_type: Some("run_result.json".into()),
                            from_agent: Some(lease.agent.to_string()),
                        }),
                    );
                    // Once: whoever wrote it has one more interval to mend it.
                    act.emit(
                        &by,
                        &TaskEvent::LeaseRenewed(LeaseRenewed {
                            fence: lease.fence,
                            expires_at: moment.now.plus_ms(lease.ttl_ms).max(lease.expires_at),
                            beat_until: moment.now.plus_ms(lease.beat_ttl_ms),
                            renew_count: lease.renew_count,
                            bad_result: Some(*digest),
                        }),
                    );
                    return Some(act.done());
                }
                Some(FoundResult::Report(_) | FoundResult::Bad { .. }) | None => {}
            }
        }
        let cause = if is_stale_beat { "stale_heartbeat" } else { "lease_expired" };
        match act.task.said.report.clone().filter(|_| act.task.guard.is_none()) {
            Some(report) => {
                let reason = format!("{cause}_{}", report.outcome);
                apply_outcome(
                    &mut act,
                    &executor(&report.agent),
                    report.outcome,
                    &report.reason,
                    &reason,
                    rules,
                );
            }
            None => {
                act.emit(&by, &TaskEvent::LeaseExpired(super::claim::ended(&lease, cause)));
                let reason = format!("{cause}_reclaim");
                let failed = Failed {
                    run_id: run,
                    cause,
                    reason: &reason,
                    is_permanent: false,
                    termination: Value::Null,
                };
                fail_attempt(&mut act, &failed, rules, moment.seed);
            }
        }
        Some(act.done())
    }

    /// Makes tasks ready whose dependencies have become done, at most `max` of them.
    pub fn promote(&self, max: usize, moment: Moment) -> Decided {
        let mut all = Decided::nothing();
        let mut seed = moment.seed;
        for id in self.promotable().take(max) {
            // Each task's events get ids of their own.
            seed[0] = seed[0].wrapping_add(1);
            let Ok(mut act) = Act::on(self, id, Moment { now: moment.now, seed }) else { continue };
            if act.task.status.may_become(Status::Ready) {
                act.go(&system(), Status::Ready, "dependencies_done");
            }
            let decided = act.done();
            all.events.extend(decided.events);
            all.decided_on.extend(decided.decided_on);
        }
        all
    }
}

/// An attempt that failed.
#[derive(Debug)]
pub(crate) struct Failed<'a> {
    run_id: Option<RunId>,
    cause: &'a str,
    /// Of the transition.
    reason: &'a str,
    /// Whether another attempt would fail in the same way.
    is_permanent: bool,
    termination: Value,
}

impl<'a> Failed<'a> {
    /// What became of the work after its run had ended well.
    pub(super) fn after_its_run(cause: &'a str) -> Self {
        Failed { run_id: None, cause, reason: cause, is_permanent: false, termination: Value::Null }
    }
}

/// A session of Baton's own that worked on a task and has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionEnded {
    pub task: TaskId,
    pub run: RunId,
    pub fence: u64,
    pub ending: Ending,
    /// What the run left in its result file, where the ledger has no report.
    pub result: Option<FoundResult>,
    /// How the agent ended, for whoever asks why.
    pub termination: Value,
}

/// How a session ended, as far as its task is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// The turn ended as turns do. `is_reminded` says whether the agent was asked for its report; `needs_signal`, whether it had to end with a signal.
    Finished { is_reminded: bool, needs_signal: bool },
    /// The agent died, was refused, or stopped in mid-turn.
    Failed { cause: String },
    /// It failed in a way that no other attempt mends: the command is not there, the credentials are refused.
    Permanent { cause: String },
    /// The agent's usage limit is reached, until then.
    Limited { until: Timestamp },
    /// Whatever the agent reports, what runs after its tools says that the work is not good.
    Refused { cause: String },
    /// Whoever handed it out is gone: it waits as before.
    Stopped,
    /// A person did not want it to go on: it waits for a person, or for a while.
    Held,
}

/// What the end of a session asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum AfterSession {
    /// The run goes on with a reminder: no report came.
    Remind,
    Decided(Decided),
}

impl Board {
    /// Takes the end of a session in: its report is applied, or its attempt is judged. A session of another run changes nothing.
    pub fn session_end(
        &self,
        ended: &SessionEnded,
        rules: Rules,
        moment: Moment,
    ) -> Result<AfterSession, Refusal> {
        let mut act = Act::on(self, &ended.task, moment)?;
        let is_its_own =
            act.task.lease.as_ref().is_some_and(|lease| lease.run == ended.run && lease.fence == ended.fence);
        if !is_its_own {
            return Ok(AfterSession::Decided(Decided::nothing()));
        }
        if let (None, Some(FoundResult::Report(report))) = (&act.task.said.report, &ended.result)
            && report.run_id == Some(ended.run)
            && report.fence == ended.fence
        {
            act.emit(&executor(&report.agent), &TaskEvent::Completed((**report).clone()));
        }
        let is_refused = matches!(ended.ending, Ending::Refused { .. });
        // A report alone ends no guarded run: whoever takes it up goes on with it.
        let counts = !is_refused && act.task.guard.is_none();
        if let Some(report) = act.task.said.report.clone().filter(|_| counts) {
            let reason = format!("session_end_{}", report.outcome);
            let by = executor(&report.agent);
            apply_outcome(&mut act, &by, report.outcome, &report.reason, &reason, rules);
            return Ok(AfterSession::Decided(act.done()));
        }
        let run_id = Some(ended.run);
        let termination = ended.termination.clone();
        match &ended.ending {
            Ending::Finished { is_reminded: false, .. } => return Ok(AfterSession::Remind),
            Ending::Finished { needs_signal: false, .. } => {
                // Never done: nobody said so.
                let by = system();
                let report = serde_json::json!({"outcome": Outcome::NeedsReview.as_str(), "notes": "the agent ended without a report"});
                act.emit(
                    &by,
                    &TaskEvent::Completed(Completed {
                        agent: by.agent.clone(),
                        run_id,
                        fence: ended.fence,
                        outcome: Outcome::NeedsReview,
                        digest: Digest::ZERO,
                        report: report.as_object().cloned().unwrap_or_default(),
                        handoff_ref: None,
                    }),
                );
                apply_outcome(&mut act, &by, Outcome::NeedsReview, "", "ended_without_report", rules);
            }
            Ending::Finished { needs_signal: true, .. } => {
                let (cause, reason) = ("exit_signal_missing", "exit_signal_missing");
                let failed = Failed { run_id, cause, reason, is_permanent: false, termination };
                fail_attempt(&mut act, &failed, rules, moment.seed);
            }
            Ending::Failed { cause } | Ending::Refused { cause } => {
                let failed = Failed { run_id, cause, reason: cause, is_permanent: false, termination };
                fail_attempt(&mut act, &failed, rules, moment.seed);
            }
            Ending::Permanent { cause } => {
                let failed = Failed { run_id, cause, reason: cause, is_permanent: true, termination };
                fail_attempt(&mut act, &failed, rules, moment.seed);
            }
            Ending::Stopped => {
                let to = act.task.waiting_status();
                act.go(&system(), to, "stopped");
            }
            Ending::Limited { .. } | Ending::Held => {
                let to = act.task.waiting_status();
                let (reason, until) = match &ended.ending {
                    Ending::Limited { until } => ("usage_limit", *until),
                    _ => ("stopped", act.now.plus_ms(STOPPED_WAIT_MS)),
                };
                let moved = Transitioned {
                    from: act.task.status,
                    to,
                    reason: reason.into(),
                    block_reason: None,
                    not_before: Some(until),
                    by_report: false,
                    revived: false,
                };
                act.go_with(&system(), to, moved);
            }
        }
        Ok(AfterSession::Decided(act.done()))
    }
}

/// Records that an attempt failed: another one after a while, or the end of trying.
pub(crate) fn fail_attempt(act: &mut Act<'_>, failed: &Failed<'_>, rules: Rules, seed: [u8; 10]) {
    let (by, attempts) = (&system(), act.task.attempts + 1);
    let Failed { cause, reason, is_permanent, .. } = *failed;
    let (run_id, termination) = (failed.run_id, failed.termination.clone());
    let reason_of = cause.to_owned();
    act.emit(
        by,
        &TaskEvent::AttemptFailed(AttemptFailed { attempts, reason: reason_of, termination, run_id }),
    );
    let waiting = act.task.waiting_status();
    let is_last =
        (is_permanent || attempts >= rules.max_attempts) && act.task.status.may_become(Status::Deadletter);
    let (to, not_before, reason) = if is_last {
        (Status::Deadletter, None, format!("{cause} ({attempts} failed attempts)"))
    } else {
        let wait = backoff::wait_ms(attempts, u16::from_be_bytes([seed[0], seed[1]]));
        (waiting, Some(act.now.plus_ms(wait)), reason.to_owned())
    };
    let moved = Transitioned {
        from: act.task.status,
        to,
        reason,
        block_reason: None,
        not_before,
        by_report: false,
        revived: false,
    };
    act.go_with(by, to, moved);
}

/// Makes the transitions of a report's outcome. Where the task is already, it stays.
pub(crate) fn apply_outcome(
    act: &mut Act<'_>,
    by: &Actor,
    outcome: Outcome,
    why: &str,
    reason: &str,
    rules: Rules,
) {
    let lease = act.task.lease.clone();
    let worker = lease.map(|lease| Worker { agent: lease.agent, session: lease.session });
    let worker = worker.or_else(|| {
        act.task.said.report.as_ref().map(|report| Worker { agent: report.agent.clone(), session: None })
    });
    // One approval ends what a report on the work itself brought to review; a reviewer's report does not make it so.
    let phase = act.task.phase_before_block.unwrap_or(act.task.phase);
    let is_work = matches!(phase, Phase::Draft | Phase::Implementation) || act.task.by_report;
    let moved = |from: Status, to: Status, block: Option<String>| Transitioned {
        from,
        to,
        reason: reason.to_owned(),
        block_reason: block,
        not_before: None,
        by_report: to == Status::Review && is_work,
        revived: false,
    };
    match outcome {
        Outcome::Done => {
            let phase = act.task.phase_before_block.unwrap_or(act.task.phase);
            let next = match phase {
                Phase::Implementation if rules.has_ci => Some(Phase::CiPending),
                Phase::Implementation => Some(Phase::ReadyForReview),
                Phase::ReadyForReview if act.task.status == Status::InProgress => Some(Phase::Review),
                Phase::Review if act.task.status == Status::InProgress => Some(Phase::ReadyForMerge),
                Phase::ReadyForMerge if act.task.status == Status::InProgress => Some(Phase::Completed),
                Phase::Draft
                | Phase::CiPending
                | Phase::ReadyForReview
                | Phase::Review
                | Phase::ReadyForMerge
                | Phase::Completed
                | Phase::Blocked => None,
            };
            let is_open = act.expect_dependencies_done().is_err();
            let ends = next == Some(Phase::Completed)
                || next == Some(Phase::ReadyForReview) && !act.task.is_review_required();
            if let Some(next) = next.filter(|next| *next != Phase::Completed) {
                act.change_phase(by, next, worker);
            }
            if act.task.status.may_become(Status::Review) {
                act.go_with(by, Status::Review, moved(act.task.status, Status::Review, None));
            }
            if ends && !is_open && act.task.status == Status::Review {
                act.go_with(by, Status::Done, moved(Status::Review, Status::Done, None));
            }
        }
        Outcome::Blocked => {
            if act.task.status.may_become(Status::Blocked) {
                let why = if why.is_empty() { reason } else { why };
                act.go_with(
                    by,
                    Status::Blocked,
                    moved(act.task.status, Status::Blocked, Some(why.to_owned())),
                );
            }
        }
        Outcome::NeedsReview | Outcome::Partial => {
            if act.task.status.may_become(Status::Review) {
                act.go_with(by, Status::Review, moved(act.task.status, Status::Review, None));
            }
        }
    }
}

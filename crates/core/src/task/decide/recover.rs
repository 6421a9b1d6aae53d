//! What becomes of a run that nobody answers for any more, and of tasks that waited for others. State is read again at the moment of acting.

use super::{Act, Decided, Moment, executor, system};
use crate::event::Actor;
use crate::ids::{Digest, RunId, TaskId};
use crate::task::event::{AttemptFailed, Completed, LeaseRenewed, MessageRejected, Transitioned};
use crate::task::model::Worker;
use crate::task::{Board, Outcome, Phase, Status, TaskEvent, backoff};
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
                Some(FoundResult::Bad { digest, detail }) if act.task.said.bad_result != Some(*digest) => {
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
        match act.task.said.report.clone() {
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
                fail_attempt(&mut act, &by, run, cause, &format!("{cause}_reclaim"), rules, moment.seed);
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

/// Records that an attempt failed: another one after a while, or the end of trying.
pub(crate) fn fail_attempt(
    act: &mut Act<'_>,
    by: &Actor,
    run_id: Option<RunId>,
    cause: &str,
    reason: &str,
    rules: Rules,
    seed: [u8; 10],
) {
    let attempts = act.task.attempts + 1;
    act.emit(by, &TaskEvent::AttemptFailed(AttemptFailed { attempts, reason: cause.to_owned(), run_id }));
    let waiting = act.task.waiting_status();
    let is_last = attempts >= rules.max_attempts && act.task.status.may_become(Status::Deadletter);
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
    let moved = |from: Status, to: Status, block: Option<String>| Transitioned {
        from,
        to,
        reason: reason.to_owned(),
        block_reason: block,
        not_before: None,
        by_report: to == Status::Review,
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

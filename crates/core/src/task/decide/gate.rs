//! The gates that no agent opens for itself: the verdict of CI, and a person's yes or no.

use super::recover::{Failed, Rules, fail_attempt};
use super::{Act, Decided, Moment, UNVERIFIED, expect_text, system};
use crate::event::{Actor, ArtifactRef};
use crate::ids::TaskId;
use crate::limits::REASON_CHARS_MAX;
use crate::task::event::{Approved, CiReported, Rejected, Transitioned};
use crate::task::{Board, Phase, Refusal, Status, TaskEvent};
use crate::time::Timestamp;

/// What CI found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CiVerdict {
    pub task: TaskId,
    pub passed: bool,
    pub exit_code: Option<i32>,
    /// Why it failed, in a few words.
    pub reason: String,
    /// The output, stored.
    pub log: Option<ArtifactRef>,
    /// Whether a failure goes back to work instead of to a person.
    pub rework: bool,
    /// When the task came to wait for the run that this is the verdict of. Where it has left since, and come back, another run is waited for.
    pub since: Option<Timestamp>,
}

/// A yes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Approve {
    pub task: TaskId,
    /// Through every phase that is left.
    pub all: bool,
}

/// A no, with what is missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reject {
    pub task: TaskId,
    pub reason: String,
}

impl Board {
    /// Takes the verdict on a task in CI_PENDING, of Baton's own run or of someone who may report it.
    ///
    /// Work that is sent back was a failed attempt, like any other: an agent and its checks do not go on for ever.
    pub fn ci(
        &self,
        verdict: &CiVerdict,
        by: &Actor,
        rules: Rules,
        moment: Moment,
    ) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &verdict.task, moment)?;
        if verdict.since.is_some_and(|since| since != act.task.last_transition_at) {
            return Err(Refusal::LateVerdict);
        }
        // A task that was cancelled or given up keeps its phase, and waits for nothing.
        if act.task.phase != Phase::CiPending || act.task.status != Status::Review {
            return Err(Refusal::NotInCi { status: act.task.status, phase: act.task.phase });
        }
        let reported = TaskEvent::CiReported(CiReported {
            passed: verdict.passed,
            exit_code: verdict.exit_code,
            reason: verdict.reason.clone(),
        });
        act.emit_with(by, &reported, verdict.log.iter().cloned().collect());
        let by = system();
        if verdict.passed {
            act.change_phase(&by, Phase::ReadyForReview, None);
            if !act.task.is_review_required() && act.expect_dependencies_done().is_ok() {
                act.go(&by, Status::Done, "ci_passed");
            }
        } else if verdict.rework {
            act.change_phase(&by, Phase::Implementation, None);
            if act.task.attempts + 1 >= rules.max_attempts {
                // Nothing is given up from review.
                act.go(&by, Status::Ready, "ci_failed");
            }
            fail_attempt(&mut act, &Failed::after_its_run("ci_failed"), rules, moment.seed);
        } else {
            let why = if verdict.reason.is_empty() { "ci_failed" } else { &verdict.reason };
            let moved = Transitioned {
                from: act.task.status,
                to: Status::Blocked,
                reason: "ci_failed".into(),
                block_reason: Some(why.to_owned()),
                not_before: None,
                by_report: false,
                revived: false,
            };
            act.go_with(&by, Status::Blocked, moved);
        }
        Ok(act.done())
    }

    /// Lets a task in review through: one phase, all that are left, or to its end where a report alone brought it here.
    pub fn approve(&self, asked: &Approve, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &asked.task, moment)?;
        if act.task.guard.is_some() {
            return Err(Refusal::Guarded(UNVERIFIED));
        }
        let task = &act.task;
        let by_report = task.by_report && task.phase != Phase::CiPending;
        if task.status != Status::Review {
            return Err(Refusal::NotInReview { status: task.status, phase: task.phase });
        }
        let next = match task.phase {
            _ if by_report || asked.all && task.phase != Phase::CiPending => Phase::Completed,
            Phase::ReadyForReview | Phase::Review => Phase::ReadyForMerge,
            Phase::ReadyForMerge => Phase::Completed,
            Phase::CiPending => return Err(Refusal::CiPending),
            // A person moved it here without a phase of its own being reviewed.
            Phase::Draft | Phase::Implementation => Phase::Completed,
            phase @ (Phase::Completed | Phase::Blocked) => {
                return Err(Refusal::NotInReview { status: task.status, phase });
            }
        };
        if next == Phase::Completed {
            act.expect_dependencies_done()?;
        }
        let phase = act.task.phase;
        act.emit(by, &TaskEvent::Approved(Approved { phase, next_phase: next, notes: String::new() }));
        match next {
            Phase::Completed => act.go(by, Status::Done, "approved"),
            next => act.change_phase(by, next, None),
        }
        Ok(act.done())
    }

    /// Sends a task in review back to work, with the reason in its log.
    pub fn reject(&self, asked: &Reject, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &asked.task, moment)?;
        expect_text("reason", &asked.reason, REASON_CHARS_MAX)?;
        let task = &act.task;
        if task.status != Status::Review {
            return Err(Refusal::NotInReview { status: task.status, phase: task.phase });
        }
        let phase = task.phase;
        act.emit(by, &TaskEvent::Rejected(Rejected { phase, reason: asked.reason.clone() }));
        if phase != Phase::Implementation {
            act.change_phase(by, Phase::Implementation, None);
        }
        act.go(by, Status::Ready, "rejected");
        Ok(act.done())
    }
}

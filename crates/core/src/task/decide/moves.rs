//! What a person does to a task by hand: moves it, writes into its log, revives it.

use super::{Act, Decided, Moment, UNENDED, UNVERIFIED, expect_text};
use crate::event::Actor;
use crate::ids::TaskId;
use crate::limits::{LOG_CHARS_MAX, REASON_CHARS_MAX};
use crate::task::event::{Logged, Transitioned};
use crate::task::{BLOCKED_BY_DEPENDENCIES, Board, Phase, Refusal, Status, TaskEvent};

/// Another status.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Move {
    pub task: TaskId,
    pub to: Status,
    pub reason: String,
}

/// A line of the work log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Log {
    pub task: TaskId,
    pub text: String,
}

/// Another chance for a task that failed too often.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Retry {
    pub task: TaskId,
}

impl Board {
    /// Moves a task by hand. The status that it has is a success that changes nothing.
    pub fn transition(&self, asked: &Move, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &asked.task, moment)?;
        let (from, to) = (act.task.status, asked.to);
        if from == to {
            return Ok(Decided::nothing());
        }
        expect_text("reason", &asked.reason, REASON_CHARS_MAX)?;
        if !from.may_become(to) {
            return Err(Refusal::Transition { from, to });
        }
        match to {
            Status::InProgress => return Err(Refusal::ByClaimOnly),
            Status::Review | Status::Done if act.task.guard.is_some() => {
                return Err(Refusal::Guarded(UNVERIFIED));
            }
            Status::Cancelled if act.task.guard.is_some() => return Err(Refusal::Guarded(UNENDED)),
            Status::Done if act.task.phase == Phase::CiPending => return Err(Refusal::CiPending),
            Status::Done => act.expect_dependencies_done()?,
            Status::Blocked
                if asked.reason == BLOCKED_BY_DEPENDENCIES
                    && self.open_dependencies(&act.task).next().is_none() =>
            {
                // Such a block ends when the last of them is done: this one would have no end.
                let expected = "another reason: none of its dependencies is open".to_owned();
                return Err(Refusal::Field { field: "reason", expected, got: asked.reason.clone() });
            }
            Status::Backlog
            | Status::Ready
            | Status::Blocked
            | Status::Review
            | Status::Cancelled
            | Status::Deadletter => {}
        }
        let moved = Transitioned {
            from,
            to,
            reason: asked.reason.clone(),
            block_reason: None,
            not_before: None,
            by_report: to == Status::Review && act.task.by_report,
            revived: to == Status::Ready,
        };
        act.go_with(by, to, moved);
        Ok(act.done())
    }

    /// Adds a line to the work log, also of a task that has ended.
    pub fn log(&self, asked: &Log, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &asked.task, moment)?;
        expect_text("text", &asked.text, LOG_CHARS_MAX)?;
        let notes = Some(asked.text.clone());
        act.emit(by, &TaskEvent::Logged(Logged { progress: None, notes, blockers: Vec::new() }));
        Ok(act.done())
    }

    /// Revives a deadletter, or lets one that waits go on at once.
    pub fn retry(&self, asked: &Retry, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &asked.task, moment)?;
        match act.task.status {
            Status::Deadletter => {
                let moved = Transitioned {
                    from: Status::Deadletter,
                    to: Status::Ready,
                    reason: "retried".into(),
                    block_reason: None,
                    not_before: None,
                    by_report: false,
                    revived: true,
                };
                act.go_with(by, Status::Ready, moved);
            }
            Status::Ready if act.task.not_before.is_some() => {
                let fields = [("notBefore".to_owned(), serde_json::Value::Null)].into_iter().collect();
                act.emit(by, &TaskEvent::Edited(crate::task::event::Edited { fields, layout: None }));
            }
            status => return Err(Refusal::NotRetryable(status)),
        }
        Ok(act.done())
    }
}

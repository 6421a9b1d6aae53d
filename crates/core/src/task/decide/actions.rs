//! What a person may do to a task now: the decisions that would be made, asked without anything being done.

use super::{Approve, Moment, Move, Reject, Retry, operator};
use crate::ids::TaskId;
use crate::task::{Board, Refusal, Status};

/// What would come of each thing that a person can ask for. Nothing is in the way where there is no refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Actions {
    /// To every status but the present one.
    pub moves: Vec<(Status, Option<Refusal>)>,
    pub approve: Option<Refusal>,
    pub reject: Option<Refusal>,
    pub retry: Option<Refusal>,
}

/// A reason like any other: what a person writes is not known yet.
const SOME_REASON: &str = "by hand";

impl Board {
    /// Asks every decision about one task what it would say.
    pub fn actions(&self, id: &TaskId, moment: Moment) -> Result<Actions, Refusal> {
        let present = self.get(id).ok_or_else(|| Refusal::NotFound(id.clone()))?.status;
        let (by, reason) = (operator(), || SOME_REASON.to_owned());
        let to = |to: Status| {
            let asked = Move { task: id.clone(), to, reason: reason() };
            (to, self.transition(&asked, &by, moment).err())
        };
        let approve = Approve { task: id.clone(), all: false };
        let reject = Reject { task: id.clone(), reason: reason() };
        Ok(Actions {
            moves: Status::ALL
                .iter()
                .filter(|status| **status != present)
                .map(|status| to(*status))
                .collect(),
            approve: self.approve(&approve, &by, moment).err(),
            reject: self.reject(&reject, &by, moment).err(),
            retry: self.retry(&Retry { task: id.clone() }, &by, moment).err(),
        })
    }
}

//! How the lines of a journal follow each other: events of one decision (`batch`), decisions of one physical write (`commit`).
//!
//! The rule is that of §3 of the protocol page, and stands here once: who opens a journal and who verifies one ask [`Order::follows`]. Positions,
//! hashes and traces are not looked at.

use crate::record::Line;

/// Where a journal stands after a line. The default is its start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The last event's number in its decision, and how many the decision has.
    batch: Option<(u32, u32)>,
    /// Position of the first event of the last write; no event has the position 0.
    commit: u64,
}

/// Why a line cannot stand where it does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OutOfOrder {
    #[error("it is of another write than the line before it, and does not start one")]
    Write,
    #[error("it is not the next event of the decision before it")]
    Decision,
    #[error("it is in the middle of a decision that did not start")]
    Start,
}

impl Order {
    /// The place after a line, wherever the line stands.
    pub fn after(line: &Line<'_>) -> Order {
        Order { batch: line.batch, commit: line.effective_commit() }
    }

    /// The place after this line, if it may stand here.
    pub fn follows(&self, line: &Line<'_>) -> Result<Order, OutOfOrder> {
        if line.commit.is_some_and(|commit| commit != self.commit) {
            return Err(OutOfOrder::Write);
        }
        match self.unfinished() {
            // A decision is never divided between two writes, so its next event does not start one.
            Some((i, n)) if line.batch != Some((i + 1, n)) || line.commit.is_none() => {
                Err(OutOfOrder::Decision)
            }
            None if line.batch.is_some_and(|(i, _)| i != 1) => Err(OutOfOrder::Start),
            _ => Ok(Order::after(line)),
        }
    }

    /// Position of the first event of the last write; 0 at the start.
    pub fn commit(&self) -> u64 {
        self.commit
    }

    /// How many events of the last decision are there, and how many it has, where some are still to come.
    pub fn unfinished(&self) -> Option<(u32, u32)> {
        self.batch.filter(|(i, n)| i < n)
    }
}

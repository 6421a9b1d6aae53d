//! Tasks: what they are, what may happen to them, and what each answer records.
//!
//! [`Board`] is all tasks; what is asked of it is in [`decide`], what it becomes in [`apply`], what is stored in [`event`]. `statuses.md` has
//! the tables.

pub mod apply;
pub mod backoff;
mod board;
mod card;
pub mod decide;
pub mod dispatch;
pub mod event;
mod model;
mod papers;
mod refusal;
mod report;
mod transition;
mod words;
pub mod worklog;

pub use board::{BLOCKED_BY_DEPENDENCIES, Board};
pub use event::TaskEvent;
pub use model::{Handoff, Lease, Reported, Routing, Run, RunEnd, Said, Signalled, Task, Verdict, Worker};
pub use papers::{EARLIER, Papers};
pub use refusal::Refusal;
pub use words::{Outcome, Phase, Priority, Status};

pub use crate::words::UnknownWord;

//! A session: one supervised conversation with one agent, as a machine without I/O.
//!
//! [`Machine::handle`] takes an [`Input`], a moment and gives a [`Decision`]: what has become true, in order, and what is to be done now. What is done
//! comes back as another input; that is the only loop. `transitions.md` has the table of states, `README.md` the shape.

mod causes;
mod effect;
mod ending;
mod event;
mod hooks;
mod input;
mod machine;
mod model;
mod permission;
mod retry;
mod stderr;
mod stop;
#[cfg(test)]
mod tests;
mod tools;
mod turn;
mod view;
mod words;

pub use causes::{Clue, Evidence, reset_in};
pub use effect::{Decision, Effect, Sent};
pub use ending::{Cause, EndReason, Ended, ProcessEnd, SessionEndedData, Signal, TerminatedBy};
pub use event::{SessionEvent, StateChanged, Stated, is_of_a_session};
pub use hooks::{FailurePolicy, Hook, ToolFilter};
pub use input::{Input, StreamEnd};
pub use machine::{Machine, Rules, ToolsBy};
pub use model::{HookRun, Permission, PermissionKind, SessionError, ToolCall, ToolRun};
pub use permission::Answer;
pub use stderr::{StderrCapture, StderrOutput};
pub use tools::is_mutating;
pub use view::View;
pub use words::{ErrorCode, ErrorSource, Reason, RetryTarget, RunStatus, StateKind};

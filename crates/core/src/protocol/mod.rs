//! What agents say: AOF/1 messages, and the signal with which a phase of work ends. Text in, typed values or reasons out.
//!
//! [`read`] is the one door for messages; start at `envelope.rs`. [`exit_signal`] is the other protocol, and [`scan`] finds its
//! signals in an agent's output. Nothing here knows a task's state: who may say what, and when, is judged where tasks are.

mod completion;
mod detect;
mod envelope;
pub mod exit_signal;
mod fields;
mod files;
mod follow;
mod handoff;
mod paths;
mod reject;
pub mod scan;
mod status;

pub use completion::{CompletionReport, RunResult, Tests};
pub use envelope::{Body, Message, read, read_value};
pub use handoff::{
    HandoffAccepted, HandoffRejected, HandoffRequest, INVALID_ACCEPTANCE_CRITERIA, Warning, handoff_json,
    handoff_md,
};
pub use paths::is_inside;
pub use reject::{Detail, Reason, Rejection};
pub use status::StatusUpdate;

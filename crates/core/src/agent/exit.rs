//! The exit protocol as its guide names it; it lives in [`crate::protocol::exit_signal`].

pub use crate::protocol::exit_signal::{AgentSessionCompleted, ExitReason, ExitSignal, WorkPhase};

//! What can be seen of sessions from outside: log lines and spans by way of `tracing`, and numbers for whoever collects them.
//!
//! [`Observer`] folds the events of one session, after they are recorded; nothing here decides anything. [`Metrics`] are this process's numbers,
//! [`Lines`] turns what is logged into lines of `key=value` for a terminal, [`Spans`] sends spans to a
//! collector. `docs/reference/telemetry.md` lists fields and names.

mod lines;
mod metrics;
mod observer;
mod spans;
#[cfg(test)]
mod tests;

pub use lines::{Lines, Watching};
pub use metrics::{Metrics, metrics};
pub use observer::Observer;
pub use spans::Spans;

/// What every line and span of a session is filed under.
pub const TARGET: &str = "baton::session";

//! What needs files or a clock to be shown.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on should say where")]

mod envelopes;
mod speed;

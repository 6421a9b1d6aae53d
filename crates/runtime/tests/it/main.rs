//! What Baton does by itself, with real processes, real sockets and a real data directory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod ci;
mod process;
mod support;

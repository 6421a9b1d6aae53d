//! What Baton does by itself, with real processes, real sockets and a real data directory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod ci;
mod notify;
mod process;
mod receiver;
mod support;

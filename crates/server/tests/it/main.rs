//! The server with real sockets and real processes as agents, and with less patience than it has for people.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod deadlines;
mod support;
mod unread;

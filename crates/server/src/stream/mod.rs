//! Live streams: the ledger's and those of sessions, as server-sent events.

pub mod sse;
pub mod tail;

//! The store's promises, on a real disk and in memory.

#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up fails")]

mod conformance;
mod export;
mod hostile;
mod index;
mod lock;
mod open;
mod registry;
mod sequencer;

//! The store's promises, on a real disk and in memory.

mod conformance;
mod open;
mod sequencer;

//! Tasks: what they are, what may happen to them, and what each answer records.

mod words;

pub use words::{Outcome, Phase, Priority, Status, UnknownWord};

//! What a pure machine answers: events to record, then effects to carry out.

use crate::event::Event;

/// The answer of a machine to one input.
///
/// The events are appended together or not at all, in this order; the effects are carried out only after the append
/// has returned. An empty decision is a valid answer: nothing happened.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision<E> {
    /// Facts to record, in the order in which they became true.
    pub events: Vec<Event>,
    /// What the runtime must do once the events are durable.
    pub effects: Vec<E>,
}

impl<E> Decision<E> {
    /// A decision that records and asks for nothing.
    pub fn none() -> Self {
        Decision { events: Vec::new(), effects: Vec::new() }
    }

    /// A decision that records events and asks for nothing else.
    pub fn record(events: Vec<Event>) -> Self {
        Decision { events, effects: Vec::new() }
    }
}

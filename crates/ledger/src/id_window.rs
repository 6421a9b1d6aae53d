//! Notices a doubled event id in bounded memory.
//!
//! Ids carry their time, so they arrive nearly sorted. The window keeps the largest ones seen; an id above everything that was ever
//! dropped from it is judged exactly. One below came late and cannot be judged here: the caller looks it up elsewhere.

use std::collections::VecDeque;

use baton_core::EventId;
use baton_core::limits::ID_WINDOW;

/// The most recent ids, by their own order.
#[derive(Debug, Default)]
pub struct IdWindow {
    /// Sorted. Nearly every id goes to the end, so a ring beats a tree.
    recent: VecDeque<EventId>,
    /// The largest id that was dropped; everything above it is either in `recent` or new.
    floor: Option<EventId>,
}

/// What the window can say of an id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sighting {
    New,
    Doubled,
    /// Below the window: seen or not, the window does not know.
    Late,
}

impl IdWindow {
    /// Judges an id without remembering it.
    pub fn look(&self, id: EventId) -> Sighting {
        if self.place(id).is_ok() {
            Sighting::Doubled
        } else if self.floor.is_some_and(|floor| id <= floor) {
            Sighting::Late
        } else {
            Sighting::New
        }
    }

    /// Judges an id and remembers it.
    pub fn insert(&mut self, id: EventId) -> Sighting {
        let sighting = self.look(id);
        if sighting == Sighting::New {
            if let Err(place) = self.place(id) {
                self.recent.insert(place, id);
            }
            if self.recent.len() > ID_WINDOW {
                self.floor = self.recent.pop_front();
            }
        }
        sighting
    }

    /// Forgets an id that was inserted and then taken back.
    pub fn remove(&mut self, id: EventId) {
        if let Ok(place) = self.place(id) {
            self.recent.remove(place);
        }
    }

    /// Where the id is, or where it belongs.
    fn place(&self, id: EventId) -> Result<usize, usize> {
        if self.recent.back().is_none_or(|last| *last < id) {
            Err(self.recent.len())
        } else {
            self.recent.binary_search(&id)
        }
    }

    /// Says that ids up to and including this one may have been seen before the window began.
    pub fn start_above(floor: Option<EventId>) -> Self {
        IdWindow { recent: VecDeque::new(), floor }
    }
}

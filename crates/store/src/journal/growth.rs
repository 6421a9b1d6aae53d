//! Says when a journal has grown. Whoever appends never waits for whoever waits here.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How many events there are, for those who wait for more.
#[derive(Debug, Default)]
pub(super) struct Growth {
    size: Mutex<u64>,
    grown: Condvar,
}

impl Growth {
    pub(super) fn new(size: u64) -> Self {
        Growth { size: Mutex::new(size), grown: Condvar::new() }
    }

    /// There are so many now, and they can be read.
    pub(super) fn grew(&self, size: u64) {
        *self.size.lock().unwrap_or_else(PoisonError::into_inner) = size;
        self.grown.notify_all();
    }

    /// Waits until there are more than so many, at most for this long; gives how many there are.
    pub(super) fn wait_beyond(&self, seen: u64, time: Duration) -> u64 {
        let size = self.size.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.grown.wait_timeout_while(size, time, |size| *size <= seen);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

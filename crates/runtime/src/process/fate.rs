//! Commands that end together: with the session that they belong to, and before that is called ended.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What commands share: whether it is over, and how many of them run.
#[derive(Debug, Default)]
pub struct Fate {
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    running: usize,
}

/// Somebody who takes part, as long as this lives.
#[derive(Debug)]
pub(crate) struct Part(Arc<Fate>);

impl Fate {
    /// Takes part. Once it is over nobody does.
    pub(crate) fn join(self: &Arc<Self>) -> Option<Part> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        state.running += 1;
        Some(Part(self.clone()))
    }

    /// From now on nothing begins, and what runs is ended with a short grace.
    pub fn end(&self) {
        self.lock().is_over = true;
    }

    pub(crate) fn is_over(&self) -> bool {
        self.lock().is_over
    }

    /// Waits until nobody takes part any more, at most this long; says whether that is so.
    pub fn wait(&self, at_most: Duration) -> bool {
        let until = Instant::now() + at_most;
        let mut state = self.lock();
        while state.running > 0 {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            state = self.left.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
        self.0.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_takes_part_is_waited_for_and_nobody_comes_after_the_end() {
        let fate = Arc::new(Fate::default());
        let part = fate.join().unwrap();
        assert!(!fate.wait(Duration::ZERO));
        fate.end();
        assert!(fate.join().is_none() && !fate.wait(Duration::from_millis(1)));
        drop(part);
        assert!(fate.wait(Duration::ZERO));
    }
}

//! Who works in a workspace: one at a time, be it a session or a CI run.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often a wait for the workspace looks whether it is still wanted.
const LOOK: Duration = Duration::from_millis(100);

/// A workspace and who is in it. Clones are the same workspace.
#[derive(Debug, Clone)]
pub struct Occupancy {
    place: Arc<Place>,
}

#[derive(Debug)]
struct Place {
    dir: PathBuf,
    who: Mutex<Option<String>>,
    left: Condvar,
}

/// The workspace is somebody's until this is dropped.
#[derive(Debug)]
#[must_use]
pub struct WorkspaceGuard {
    place: Arc<Place>,
}

impl Occupancy {
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Occupancy { place: Arc::new(Place { dir: dir.into(), who: Mutex::new(None), left: Condvar::new() }) }
    }

    pub fn dir(&self) -> &Path {
        &self.place.dir
    }

    /// Who is there: a session, or a task whose CI runs.
    pub fn who(&self) -> Option<String> {
        self.place.lock().clone()
    }

    /// Takes the workspace where it is free.
    pub fn try_enter(&self, who: &str) -> Option<WorkspaceGuard> {
        let mut now = self.place.lock();
        now.is_none().then(|| self.take(&mut now, who))
    }

    /// Waits for the workspace until `stop` says that it is not wanted any more.
    pub fn enter(&self, who: &str, stop: &mut dyn FnMut() -> bool) -> Option<WorkspaceGuard> {
        let mut now = self.place.lock();
        while now.is_some() {
            // Asked without the lock: whoever answers may look at who is here.
            drop(now);
            if stop() {
                return None;
            }
            now = self.place.lock();
            if now.is_some() {
                let waited = self.place.left.wait_timeout(now, LOOK);
                now = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
        }
        Some(self.take(&mut now, who))
    }

    fn take(&self, now: &mut Option<String>, who: &str) -> WorkspaceGuard {
        *now = Some(who.to_owned());
        WorkspaceGuard { place: self.place.clone() }
    }
}

impl Place {
    fn lock(&self) -> MutexGuard<'_, Option<String>> {
        // A name is whole or not there, whatever panicked.
        self.who.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for WorkspaceGuard {
    fn drop(&mut self) {
        *self.place.lock() = None;
        self.place.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_next_when_the_first_has_left() {
        let place = Occupancy::new("/work");
        let first = place.try_enter("one").unwrap();
        assert!(place.clone().try_enter("two").is_none());
        assert_eq!(place.who().as_deref(), Some("one"));
        let waiting = place.clone();
        let second = std::thread::spawn(move || waiting.enter("two", &mut || false));
        drop(first);
        let second = second.join().unwrap().unwrap();
        assert_eq!(place.who().as_deref(), Some("two"));
        drop(second);
        assert_eq!(place.who(), None);
    }

    #[test]
    fn a_wait_that_is_not_wanted_any_more_ends() {
        let place = Occupancy::new("/work");
        let _first = place.try_enter("one").unwrap();
        assert!(place.enter("two", &mut || true).is_none());
    }
}

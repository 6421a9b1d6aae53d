//! The owner's lock: one at a time, and whoever waits gets its turn.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use baton_store::lock::{Error, OwnerLock, holder};
use baton_testkit::deadline::within;

fn lock_file() -> (tempfile::TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("lock");
    (dir, path)
}

#[test]
fn a_held_lock_is_refused_with_its_owner_and_free_once_dropped() {
    let (_dir, path) = lock_file();
    let lock = OwnerLock::acquire(&path, Duration::ZERO).unwrap();
    let refused = OwnerLock::acquire(&path, Duration::ZERO).unwrap_err();
    assert!(matches!(refused, Error::Held { pid, .. } if pid == std::process::id()), "{refused}");
    assert_eq!(holder(&path).unwrap().unwrap().pid, std::process::id());
    drop(lock);
    assert_eq!(holder(&path).unwrap(), None);
    OwnerLock::acquire(&path, Duration::ZERO).unwrap();
}

#[test]
fn an_owner_that_wants_more_at_once_lets_those_go_first_who_wait() {
    within(60, "fairness", || {
        let (_dir, path) = lock_file();
        let (turns, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Held nearly always, as by a stream of appends.
                while !is_done.load(Ordering::Relaxed) {
                    let lock = OwnerLock::acquire(&path, Duration::from_secs(30)).unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                    drop(lock);
                }
            });
            for _ in 0..20 {
                let before = turns.load(Ordering::Relaxed);
                drop(OwnerLock::acquire(&path, Duration::from_secs(30)).unwrap());
                let passed = turns.load(Ordering::Relaxed) - before;
                // The one that is running, and some that begin before this wait does; without turns it would be any number.
                assert!(passed <= 10, "{passed} others went first");
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn a_lock_file_that_was_replaced_does_not_make_two_owners() {
    let (_dir, path) = lock_file();
    let first = OwnerLock::acquire(&path, Duration::ZERO).unwrap();
    std::fs::remove_file(&path).unwrap();
    // The file is another one now; an owner of the new one is an owner as far as the name goes.
    let second = OwnerLock::acquire(&path, Duration::ZERO).unwrap();
    drop(first);
    assert!(OwnerLock::acquire(&path, Duration::ZERO).is_err());
    drop(second);
}

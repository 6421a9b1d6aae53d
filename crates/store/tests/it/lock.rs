//! The owner's lock: one at a time, and whoever waits gets its turn.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_store::Layout;
use baton_store::lock::{Error, OwnerLock, holder};
use baton_testkit::deadline::within;

fn data_dir() -> (tempfile::TempDir, Layout) {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    std::fs::create_dir(layout.events()).unwrap();
    (dir, layout)
}

#[test]
fn a_held_lock_is_refused_with_its_owner_and_free_once_dropped() {
    let (_dir, layout) = data_dir();
    let lock = OwnerLock::acquire(&layout, Duration::ZERO).unwrap();
    let refused = OwnerLock::acquire(&layout, Duration::ZERO).unwrap_err();
    assert!(matches!(refused, Error::Held { pid, .. } if pid == std::process::id()), "{refused}");
    assert_eq!(holder(&layout).unwrap().unwrap().pid, std::process::id());
    drop(lock);
    assert_eq!(holder(&layout).unwrap(), None);
    OwnerLock::acquire(&layout, Duration::ZERO).unwrap();
}

#[test]
fn an_owner_that_wants_more_at_once_lets_those_go_first_who_wait() {
    within(60, "fairness", || {
        let (_dir, layout) = data_dir();
        let (turns, is_done) = (AtomicU64::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Held nearly always, as by a stream of appends.
                while !is_done.load(Ordering::Relaxed) {
                    let lock = OwnerLock::acquire(&layout, Duration::from_secs(30)).unwrap();
                    turns.fetch_add(1, Ordering::Relaxed);
                    std::thread::sleep(Duration::from_millis(5));
                    drop(lock);
                }
            });
            for _ in 0..20 {
                let before = turns.load(Ordering::Relaxed);
                drop(OwnerLock::acquire(&layout, Duration::from_secs(30)).unwrap());
                let passed = turns.load(Ordering::Relaxed) - before;
                // The one that is running, and some that begin before this wait does; without turns it would be any number.
                assert!(passed <= 10, "{passed} others went first");
            }
            is_done.store(true, Ordering::Relaxed);
        });
    });
}

#[test]
fn removing_or_replacing_the_lock_file_makes_no_second_owner() {
    let (_dir, layout) = data_dir();
    let first = OwnerLock::acquire(&layout, Duration::ZERO).unwrap();
    std::fs::remove_file(layout.lock()).unwrap();
    assert!(OwnerLock::acquire(&layout, Duration::ZERO).is_err());
    assert!(holder(&layout).unwrap().is_some());
    std::fs::write(layout.lock(), "").unwrap();
    assert!(OwnerLock::acquire(&layout, Duration::ZERO).is_err());
    drop(first);
    OwnerLock::acquire(&layout, Duration::ZERO).unwrap();
}

#[test]
fn a_name_is_one_process_s_at_a_time_and_free_when_it_is_given_back() {
    use baton_store::tasks::tree::{RealTree, Tree as _};
    use std::sync::atomic::{AtomicUsize, Ordering};
    let dir = tempfile::tempdir().unwrap();
    let tree = RealTree::open(dir.path()).unwrap();
    let held = tree.claim("name").unwrap().expect("it is free");
    assert!(RealTree::open(dir.path()).unwrap().claim("name").unwrap().is_none());
    drop(held);
    assert!(!dir.path().join("name").exists());
    let (inside, had) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let end = Instant::now() + Duration::from_secs(60);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let tree = RealTree::open(dir.path()).unwrap();
                let mut mine = 0;
                while mine < 200 {
                    assert!(Instant::now() < end, "a turn comes: {mine} of 200 so far");
                    let Some(_claim) = tree.claim("name").unwrap() else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                    had.fetch_add(1, Ordering::SeqCst);
                    inside.fetch_sub(1, Ordering::SeqCst);
                    mine += 1;
                }
            });
        }
    });
    assert_eq!(had.load(Ordering::SeqCst), 1600);
    std::os::unix::fs::symlink(dir.path().join("elsewhere"), dir.path().join("link")).unwrap();
    assert!(tree.claim("link").is_err() && !dir.path().join("elsewhere").exists());
}

//! What cannot be brought about from outside.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use super::Options;
use super::feed::Segments;
use super::join::{Join, Scope};
use super::workers::{Alarm, Shared, lock};

/// Two segments of one bad line each, so two chunks.
#[derive(Default)]
struct TwoChunks {
    segments: u64,
    has_read: bool,
}

impl Segments for TwoChunks {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        self.segments += 1;
        self.has_read = false;
        Ok(Some(self.segments).filter(|segments| *segments <= 2))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        buffer[..2].copy_from_slice(b"x\n");
        Ok(if std::mem::replace(&mut self.has_read, true) { 0 } else { 2 })
    }
}

#[test]
fn a_worker_that_panics_before_its_turn_lets_the_others_go() {
    let shared = Arc::new(Shared::new(Join::new(Scope::Journal, None), TwoChunks::default()));
    let (taken, wait_taken) = mpsc::channel();
    let lost = thread::spawn({
        let shared = shared.clone();
        move || {
            let _alarm = Alarm(&*shared);
            let chunk = lock(&shared.feed).next().unwrap();
            taken.send(()).unwrap();
            panic!("with {chunk:?} in its hands");
        }
    });
    wait_taken.recv().unwrap();
    let (done, wait_done) = mpsc::channel();
    thread::spawn({
        let shared = shared.clone();
        move || {
            shared.work(None, &Options::default(), Scope::Journal);
            let _ = done.send(());
        }
    });
    wait_done.recv_timeout(Duration::from_secs(60)).expect("an end, not a hang");
    assert!(lost.join().is_err());
    assert!(lock(&shared.turn).error.is_some());
}

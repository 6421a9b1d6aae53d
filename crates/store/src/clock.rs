//! The one place that reads the clock and the operating system's randomness, and turns both into values.

use std::cell::RefCell;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_core::{EventId, Timestamp, Uuid7};
use zeroize::Zeroizing;

/// The present moment.
pub fn now() -> Timestamp {
    let ms = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    };
    // A clock outside the years 0000 to 9999 is set wrong; the nearest moment that can be written says so as well as any.
    Timestamp::nearest(ms)
}

/// Fills a buffer from the operating system's source of randomness.
fn fill_random(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(count) => filled += count,
            Err(rustix::io::Errno::INTR) => {}
            #[expect(
                clippy::panic,
                reason = "without randomness no key and no id is safe; there is nothing to fall back on"
            )]
            Err(error) => panic!("the operating system gives no randomness: {error}"),
        }
    }
}

/// Random bytes of ids, fetched for many at a time. A child process never goes on with its parent's: we start none without a program of its own.
struct Pool {
    bytes: [u8; 640],
    used: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; 640], used: 640 }) };
}

impl Pool {
    fn take(&mut self) -> [u8; 10] {
        if self.used == self.bytes.len() {
            fill_random(&mut self.bytes);
            self.used = 0;
        }
        let mut random = [0; 10];
        random.copy_from_slice(&self.bytes[self.used..self.used + 10]);
        self.used += 10;
        random
    }
}

/// A fresh UUID of version 7.
pub fn new_uuid() -> Uuid7 {
    Uuid7::from_parts(now(), POOL.with_borrow_mut(Pool::take))
}

/// A fresh event id.
pub fn new_event_id() -> EventId {
    EventId::new(new_uuid())
}

/// Seed of a fresh key, wiped when dropped.
pub fn new_seed() -> Zeroizing<[u8; 32]> {
    let mut seed = Zeroizing::new([0; 32]);
    fill_random(seed.as_mut());
    seed
}

/// Ten random bytes, as ids are made of.
pub fn random() -> [u8; 10] {
    POOL.with_borrow_mut(Pool::take)
}

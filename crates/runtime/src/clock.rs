//! Time as a port: the machine's clock, or one that a test turns.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use baton_core::Timestamp;
use baton_core::task::decide::Moment;
use baton_store::clock;

/// What the time is, and random bytes for ids.
///
/// What breaks if an implementation lies: if time goes backwards, a lease lives longer than it was promised (the fence still protects the work);
/// if seeds repeat within a millisecond, an event's id is taken and the append is refused.
pub trait Clock: Send + Sync + fmt::Debug {
    fn now(&self) -> Timestamp;
    fn seed(&self) -> [u8; 10];

    fn moment(&self) -> Moment {
        Moment { now: self.now(), seed: self.seed() }
    }
}

/// The machine's clock and its randomness.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        clock::now()
    }

    fn seed(&self) -> [u8; 10] {
        clock::random()
    }
}

/// A clock that only moves when it is told to, with seeds that are the same in every run.
#[derive(Debug)]
pub struct VirtualClock {
    now_ms: AtomicI64,
    seed: AtomicU64,
}

impl VirtualClock {
    pub fn new(start: Timestamp, seed: u64) -> Self {
        VirtualClock { now_ms: AtomicI64::new(start.unix_ms()), seed: AtomicU64::new(seed << 32) }
    }

    pub fn advance_ms(&self, ms: i64) {
        self.now_ms.fetch_add(ms, Ordering::Relaxed);
    }

    pub fn set(&self, now: Timestamp) {
        self.now_ms.store(now.unix_ms(), Ordering::Relaxed);
    }
}

impl Clock for VirtualClock {
    fn now(&self) -> Timestamp {
        Timestamp::nearest(self.now_ms.load(Ordering::Relaxed))
    }

    fn seed(&self) -> [u8; 10] {
        // Spread well, so that the counters that are added to it never meet another seed.
        let n = self.seed.fetch_add(1, Ordering::Relaxed);
        let mixed = (n ^ (n >> 29)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut seed = [0; 10];
        seed[..8].copy_from_slice(&mixed.to_be_bytes());
        seed
    }
}

//! Who writes when: of all callers that wait, one leads; it takes everything that waits, serves it with one write and one sync, and passes the
//! lead on.
//!
//! There is no thread of its own: a lone caller serves itself without a single switch of threads, and under load the running sync is the window
//! in which the next batch gathers. The queue is bounded; callers beyond the bound wait for room.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};

use baton_core::limits::QUEUE_DECISIONS_MAX;

/// Orders jobs of many threads; `A` is the answer to a job `J`.
#[derive(Debug)]
pub struct Sequencer<J, A> {
    state: Mutex<State<J, A>>,
    room: Condvar,
}

#[derive(Debug)]
struct State<J, A> {
    waiting: VecDeque<(J, Arc<Slot<A>>)>,
    is_led: bool,
}

/// Where a waiting caller finds its answer.
#[derive(Debug)]
struct Slot<A> {
    thread: Thread,
    signal: AtomicU8,
    answer: Mutex<Option<A>>,
}

const WAIT: u8 = 0;
const LEAD: u8 = 1;
const DONE: u8 = 2;

impl<J, A> Default for Sequencer<J, A> {
    fn default() -> Self {
        let state = State { waiting: VecDeque::new(), is_led: false };
        Sequencer { state: Mutex::new(state), room: Condvar::new() }
    }
}

impl<J, A> Sequencer<J, A> {
    fn lock(&self) -> MutexGuard<'_, State<J, A>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a job and returns its answer. `serve` is called by whoever leads, with everything that waits; it gives one answer for each job, in their
    /// order.
    ///
    /// `None` where the leader went away without answering; it panicked.
    pub fn submit(&self, job: J, serve: impl Fn(&[J]) -> Vec<A>) -> Option<A> {
        let slot = Arc::new(Slot {
            thread: thread::current(),
            signal: AtomicU8::new(WAIT),
            answer: Mutex::new(None),
        });
        let mut state = self.lock();
        while state.waiting.len() >= QUEUE_DECISIONS_MAX {
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.waiting.push_back((job, slot.clone()));
        let leads = !std::mem::replace(&mut state.is_led, true);
        drop(state);
        if !leads {
            loop {
                match slot.signal.load(Ordering::Acquire) {
                    DONE => return slot.take(),
                    LEAD => break,
                    _ => thread::park(),
                }
            }
        }
        self.lead(&serve);
        slot.take()
    }

    /// Serves everything that waits, passes the lead on, then answers; also when serving panics.
    ///
    /// In this order, because those who are woken by an answer take the processor away from whoever woke them.
    fn lead(&self, serve: &impl Fn(&[J]) -> Vec<A>) {
        struct PassOn<'a, J, A> {
            sequencer: &'a Sequencer<J, A>,
            slots: Vec<Arc<Slot<A>>>,
            answers: Vec<A>,
        }
        impl<J, A> Drop for PassOn<'_, J, A> {
            fn drop(&mut self) {
                let mut state = self.sequencer.lock();
                match state.waiting.front() {
                    Some((_, next)) => next.wake(LEAD),
                    None => state.is_led = false,
                }
                drop(state);
                let mut answers = self.answers.drain(..);
                for slot in &self.slots {
                    // Whoever was not answered learns it by finding nothing.
                    *slot.answer.lock().unwrap_or_else(PoisonError::into_inner) = answers.next();
                    slot.wake(DONE);
                }
            }
        }
        let batch = std::mem::take(&mut self.lock().waiting);
        self.room.notify_all();
        let (jobs, slots): (Vec<J>, Vec<_>) = batch.into_iter().unzip();
        let mut pass_on = PassOn { sequencer: self, slots, answers: Vec::new() };
        pass_on.answers = serve(&jobs);
    }
}

impl<A> Slot<A> {
    fn wake(&self, signal: u8) {
        self.signal.store(signal, Ordering::Release);
        self.thread.unpark();
    }

    fn take(&self) -> Option<A> {
        self.answer.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

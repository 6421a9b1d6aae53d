//! Tells people that a task went to review, blocked, done or deadletter, and never holds up whoever says so.
//!
//! [`tell`](Notifier::tell) puts a transition into a bounded queue and returns. Threads write it to the outbox and send it; a receiver gets each at least once,
//! with the same delivery id every time. Of several processes that send from one outbox, one sends each. What a receiver does not take ends among the dead letters, from where a person can have it tried
//! again. What is in the outbox when Baton ends or dies is sent in its next life.

mod letter;
mod outbox;
mod pace;
mod sink;
mod webhook;
mod worker;

use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use baton_store::tasks::tree::Tree;

pub use letter::DeadLetter;
pub use outbox::dead_letters;
pub use pace::Pace;
pub use sink::{Sink, SinkKind};
pub use webhook::{Refused, Secret, Webhook};

use crate::clock::Clock;
use crate::engine::Moved;
use crate::limits::{DRAIN, KILLED_WAIT, NOTIFY_QUEUE_MAX};
use outbox::Outbox;
use sink::Outcome;
use worker::{Shared, Told};

/// Tells receivers of transitions. Owned by whoever owns the data directory.
#[derive(Debug)]
pub struct Notifier {
    shared: Arc<Shared>,
    /// `None` once it is stopped.
    queue: Mutex<Option<SyncSender<Told>>>,
}

/// How things stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Told and not delivered yet.
    pub pending: usize,
    /// Of these, what another process is sending.
    pub elsewhere: usize,
    /// Since the start.
    pub delivered: u64,
    /// Since the start: what went among the dead letters.
    pub given_up: u64,
    /// Since the start: what was told while the queue was full, and is lost.
    pub dropped: u64,
    /// Ever: the oldest dead letters, of which there were too many.
    pub dead_dropped: u64,
}

impl Notifier {
    /// Starts the threads, and with them the sending of what an earlier life left in the outbox. `tree` is the data directory.
    ///
    /// There is at most one receiver of each kind; the first one counts.
    pub fn start(
        tree: Arc<dyn Tree>,
        sinks: Vec<Sink>,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> io::Result<Self> {
        let (outbox, left) = Outbox::open(tree)?;
        let mut unique: Vec<Sink> = Vec::new();
        for sink in sinks {
            if unique.iter().all(|other| other.kind() != sink.kind()) {
                unique.push(sink);
            }
        }
        let shared = Arc::new(Shared::new(outbox, &unique, clock, pace));
        for letter in left {
            shared.enqueue(letter);
        }
        let (queue, told) = sync_channel(NOTIFY_QUEUE_MAX);
        // From here on an error leaves threads only until the queue is dropped.
        let kinds: Vec<SinkKind> = unique.iter().map(Sink::kind).collect();
        let keeper = shared.clone();
        thread::Builder::new()
            .name("notify-keep".into())
            .spawn(move || worker::keep(&keeper, &told, &kinds))?;
        for (index, sink) in unique.into_iter().enumerate() {
            let (sender, name) = (shared.clone(), format!("notify-{}", sink.kind()));
            let open = sink.open(&pace);
            shared.add_sender();
            let spawned =
                thread::Builder::new().name(name).spawn(move || worker::send(&sender, index, &open));
            if let Err(error) = spawned {
                shared.abort.store(true, Ordering::Relaxed);
                return Err(error);
            }
        }
        Ok(Notifier { shared, queue: Mutex::new(Some(queue)) })
    }

    /// Notes a transition to be told of. Returns at once, whatever the receivers and the disk do.
    pub fn tell(&self, moved: &Moved) {
        if !self.queue(Told::Moved(moved.clone())) {
            self.shared.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Does something once everything that was told before is in the outbox, or sent. Returns at once. It is not done where something could be neither, or
    /// where the queue is full: whoever notes how far it told notes it the next time.
    pub fn once_kept(&self, note: Box<dyn FnOnce() + Send>) {
        self.queue(Told::Then(note));
    }

    fn queue(&self, told: Told) -> bool {
        let queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.as_ref().is_some_and(|queue| queue.try_send(told).is_ok())
    }

    /// Puts transitions into the outbox before it returns, and sends them. For what is told from the ledger: once this is done, nobody need tell it again.
    pub fn keep(&self, moved: &[Moved]) -> io::Result<()> {
        let (kinds, mut kept) = (self.shared.kinds(), Ok(()));
        for moved in moved {
            for kind in &kinds {
                // Also after one that failed: each is sent, kept or not.
                kept = kept.and(worker::keep_one(&self.shared, moved, *kind));
            }
        }
        kept
    }

    /// What was given up, oldest first.
    pub fn dead_letters(&self) -> io::Result<Vec<DeadLetter>> {
        dead_letters(self.shared.outbox.tree())
    }

    /// Tries what was given up again, as if for the first time, and gives how many. What has no receiver any more stays where it is.
    pub fn retry_dead(&self) -> io::Result<usize> {
        let mut revived = 0;
        for dead in self.dead_letters()? {
            if self.shared.has_sink(dead.sink) {
                let letter = dead.revived();
                if self.shared.outbox.revive(&letter)? {
                    self.shared.enqueue(letter);
                    revived += 1;
                }
            }
        }
        Ok(revived)
    }

    pub fn tally(&self) -> Tally {
        let shared = &self.shared;
        Tally {
            pending: shared.pending(),
            elsewhere: shared.elsewhere(),
            delivered: shared.delivered.load(Ordering::Relaxed),
            given_up: shared.given_up.load(Ordering::Relaxed),
            dropped: shared.dropped.load(Ordering::Relaxed),
            dead_dropped: shared.outbox.dropped(),
        }
    }

    /// What a person should be told, once.
    pub fn take_notices(&self) -> Vec<String> {
        self.shared.take_notices()
    }

    /// Ends: takes nothing more, sends what can be sent now for at most `wait`, and ends a command that still runs. Gives how many stay in the outbox.
    ///
    /// A post that waits for its answer is not waited for beyond that; whether it arrived, its delivery id will tell the receiver.
    pub fn stop(&self, wait: Duration) -> usize {
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.shared.finish(wait, self.shared.pace.command_grace + DRAIN + KILLED_WAIT);
        self.shared.pending()
    }
}

impl Drop for Notifier {
    fn drop(&mut self) {
        self.stop(Duration::ZERO);
    }
}

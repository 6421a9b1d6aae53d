//! The end of the ledger, for all who follow it: the last events in memory, read once for everybody. Whoever is further behind reads from the disk.
//!
//! Nobody who appends waits for anyone here: one thread looks after the journal, and readers come for what they have room for.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_store::{Journal, ReadError, StoredLine};
use tokio::sync::watch;

use crate::limits::{READ_AT_ONCE, STREAM_CHUNK_BYTES, STREAM_CHUNK_EVENTS, TAIL_BYTES_MAX, TAIL_EVENTS_MAX};

/// The end of the ledger.
#[derive(Clone)]
pub struct Tail {
    kept: Arc<Mutex<Kept>>,
    journal: Arc<dyn Journal>,
    /// How many events there are.
    size: Arc<watch::Sender<u64>>,
    /// How many wait at the end. As long as nobody does, nothing is read for them: whoever is behind, or reads nothing, costs nothing here.
    waiting: Arc<AtomicUsize>,
}

/// Somebody who waits for the next event, as long as this is there.
#[derive(Debug)]
pub struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for Tail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tail").field("size", &*self.size.borrow()).finish_non_exhaustive()
    }
}

/// An event as it is stored.
pub type Stored = Arc<str>;

#[derive(Debug, Default)]
struct Kept {
    /// The last one stands at `last`, those before it at the numbers before.
    events: VecDeque<Stored>,
    bytes: usize,
    last: u64,
}

/// How long the thread sleeps before it looks whether anybody is left to look for.
const LOOK: Duration = Duration::from_secs(1);

impl Tail {
    /// Follows a journal until nobody has this any more.
    pub fn start(journal: Arc<dyn Journal>) -> io::Result<Tail> {
        let begins = journal.size();
        let size = Arc::new(watch::Sender::new(begins));
        let kept = Arc::new(Mutex::new(Kept { last: begins, ..Kept::default() }));
        let waiting = Arc::new(AtomicUsize::new(0));
        let (follower, followed) = (Arc::downgrade(&kept), journal.clone());
        let (sender, awaited) = (size.clone(), waiting.clone());
        std::thread::Builder::new().name("tail".into()).spawn(move || {
            let mut seen = begins;
            loop {
                let now = followed.wait_beyond(seen, LOOK);
                let Some(kept) = follower.upgrade() else { return };
                while seen < now && awaited.load(Ordering::Relaxed) > 0 {
                    // What does not read is shown by whoever wants to read it.
                    let Ok(lines) = read_some(&*followed, seen) else { break };
                    let Some(last) = lines.last().map(|line| line.pos) else { break };
                    let mut kept = lock(&kept);
                    for line in lines {
                        kept.push(line.text.into());
                    }
                    seen = last;
                }
                if seen < now {
                    *lock(&kept) = Kept { last: now, ..Kept::default() };
                    seen = now;
                }
                sender.send_replace(now);
            }
        })?;
        Ok(Tail { kept, journal, size, waiting })
    }

    /// How many events there are, and where to hear of more.
    pub fn size(&self) -> watch::Receiver<u64> {
        self.size.subscribe()
    }

    /// Says that somebody waits for the next event.
    pub fn waits(&self) -> Waiting {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        Waiting(self.waiting.clone())
    }

    /// The events after a position, as many as are sent in one piece. From memory where they are there, else from the disk.
    pub async fn after(&self, position: u64) -> Result<Vec<(u64, Stored)>, ReadError> {
        if let Some(found) = lock(&self.kept).after(position) {
            return Ok(found);
        }
        let journal = self.journal.clone();
        let read = tokio::task::spawn_blocking(move || read_some(&*journal, position));
        let lines = read.await.map_err(|_| ReadError::Index("a reader came to grief".into()))??;
        Ok(lines.into_iter().map(|line| (line.pos, line.text.into())).collect())
    }
}

impl Kept {
    fn push(&mut self, event: Stored) {
        self.last += 1;
        self.bytes += event.len();
        self.events.push_back(event);
        while self.events.len() > TAIL_EVENTS_MAX || self.bytes > TAIL_BYTES_MAX && self.events.len() > 1 {
            self.bytes -= self.events.pop_front().map_or(0, |event| event.len());
        }
    }

    fn after(&self, position: u64) -> Option<Vec<(u64, Stored)>> {
        let before = self.last - self.events.len() as u64;
        if position < before {
            return None;
        }
        let skip = usize::try_from(position - before).unwrap_or(usize::MAX);
        let mut bytes = 0;
        let fits = |event: &&Stored| {
            let is_room = bytes < STREAM_CHUNK_BYTES;
            bytes += event.len();
            is_room
        };
        let events = self.events.iter().skip(skip).take(STREAM_CHUNK_EVENTS).take_while(fits).cloned();
        Some((position + 1..).zip(events).collect())
    }
}

/// The events after a position, as many as are sent in one piece.
fn read_some(journal: &dyn Journal, position: u64) -> Result<Vec<StoredLine>, ReadError> {
    let bounds = (STREAM_CHUNK_EVENTS, STREAM_CHUNK_BYTES);
    read_within(bounds, |have, count| journal.read(position + 1 + have, count))
}

/// Reads lines, a few at a time, until there are so many, or so many bytes of them. They may be large, and nobody is to hold many of those.
pub(crate) fn read_within(
    (most, bytes_max): (usize, usize),
    read: impl Fn(u64, usize) -> Result<Vec<StoredLine>, ReadError>,
) -> Result<Vec<StoredLine>, ReadError> {
    let (mut lines, mut bytes): (Vec<StoredLine>, usize) = (Vec::new(), 0);
    while lines.len() < most && bytes < bytes_max {
        let some = read(lines.len() as u64, READ_AT_ONCE.min(most - lines.len()))?;
        if some.is_empty() {
            break;
        }
        bytes += some.iter().map(|line| line.text.len()).sum::<usize>();
        lines.extend(some);
    }
    Ok(lines)
}

fn lock(kept: &Mutex<Kept>) -> MutexGuard<'_, Kept> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Signs checkpoints beside the writer, so that no append waits for one: after so many events, after so long, and at the end of every trace.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::event::Durability;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::merkle::Frontier;
use baton_ledger::note::{Checkpoint, Statement};

use super::checkpoints::NoteDir;
use super::fs::{Keeping, Options};
use crate::disk::DiskFile;
use crate::ports::Lag;

/// How long to wait before a checkpoint that could not be kept is tried again.
const RETRY: Duration = Duration::from_secs(1);

/// A thread that is started with the first append and ends with the journal.
#[derive(Debug)]
pub(crate) struct Keeper {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    notes: NoteDir,
    ledger: LedgerIdentity,
    key: Arc<SecretKey>,
    options: Options,
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Debug)]
struct State {
    latest: Frontier,
    signed: u64,
    /// Events that are known to be on the disk. What was synced by the writer itself, or before, is known where appends are synced.
    synced: u64,
    signed_at: Instant,
    trace_closed: bool,
    /// Written and not yet synced; only where appends are not synced themselves.
    unsynced: Option<Arc<dyn DiskFile>>,
    /// A sync beside the writer failed: nothing more may be written.
    failed: Option<String>,
    stop: bool,
}

impl Keeper {
    pub(crate) fn new(notes: NoteDir, ledger: LedgerIdentity, key: Arc<SecretKey>, options: Options) -> Self {
        let signed = notes.latest_signed(&ledger).map_or(0, |checkpoint| checkpoint.size);
        let state = State {
            latest: Frontier::default(),
            signed,
            // What a checkpoint vouches for is durable.
            synced: signed,
            signed_at: Instant::now(),
            trace_closed: false,
            unsynced: None,
            failed: None,
            stop: false,
        };
        let inner = Inner { notes, ledger, key, options, state: Mutex::new(state), wake: Condvar::new() };
        Keeper { inner: Arc::new(inner), thread: Mutex::new(None) }
    }

    /// Tells of a durable append.
    pub(crate) fn notice(&self, tree: &Frontier, trace_closed: bool, segment: Option<Arc<dyn DiskFile>>) {
        let mut state = self.inner.lock();
        state.latest.clone_from(tree);
        state.trace_closed |= trace_closed;
        match self.inner.options.durability {
            Durability::Commit => state.synced = tree.size(),
            Durability::Interval | Durability::None => state.unsynced = segment,
        }
        let is_due = self.inner.is_due(&state);
        if self.inner.options.keeping == Keeping::Inline {
            // As beside: what could not be kept is due again.
            if is_due {
                drop(self.inner.keep(state));
            }
            return;
        }
        if is_due {
            self.inner.wake.notify_one();
        }
        drop(state);
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let inner = self.inner.clone();
            *thread = std::thread::Builder::new().name("baton-keeper".into()).spawn(move || inner.run()).ok();
        }
    }

    /// Why nothing more may be written, where a sync beside the writer failed.
    pub(crate) fn failure(&self) -> Option<String> {
        self.inner.lock().failed.clone()
    }

    pub(crate) fn stop(&self) {
        self.inner.lock().stop = true;
        self.inner.wake.notify_one();
        if let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() {
            let _ = thread.join();
        }
    }

    /// The ledger's key, which signs the index too.
    pub(crate) fn key(&self) -> &SecretKey {
        &self.inner.key
    }

    /// How long events wait for a checkpoint at most.
    pub(crate) fn checkpoint_after(&self) -> Duration {
        self.inner.options.checkpoint_after
    }

    /// Number of events that the latest checkpoint covers.
    pub(crate) fn covered(&self) -> u64 {
        self.inner.lock().signed
    }

    /// How far the disk and the signatures are behind so many events. What was there before the first append was made durable when it was opened.
    pub(crate) fn lag(&self, size: u64) -> Lag {
        let state = self.inner.lock();
        let durability = self.inner.options.durability;
        let written = state.latest.size();
        Lag {
            durability,
            unsynced: written.saturating_sub(state.synced),
            unsigned: size.saturating_sub(state.signed),
        }
    }

    /// Ends the thread and signs what is due; everything that is new where that has waited long.
    pub(crate) fn finish(&self, is_waiting_long: bool) -> io::Result<()> {
        self.stop();
        let state = self.inner.lock();
        let is_due = self.inner.is_due(&state) || (is_waiting_long && state.latest.size() > state.signed);
        if is_due { self.inner.keep(state).map(drop) } else { Ok(()) }
    }
}

/// How often it is looked whether something is due that nobody told of; where appends are not synced, also how long they wait for that.
const LOOK: Duration = Duration::from_secs(1);

/// The least time between two checkpoints that are signed because a trace ended.
const CLOSING_PAUSE: Duration = Duration::from_millis(200);

impl Inner {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_due(&self, state: &State) -> bool {
        let new = state.latest.size().saturating_sub(state.signed);
        new >= self.options.checkpoint_every || (new > 0 && state.trace_closed)
    }

    /// How long until a checkpoint is signed, where there is anything new. Many traces that end one after the other share one.
    fn due_in(&self, state: &State) -> Option<Duration> {
        let new = state.latest.size().saturating_sub(state.signed);
        let after = |pause: Duration| Some(pause.saturating_sub(state.signed_at.elapsed()));
        match new {
            0 => None,
            _ if new >= self.options.checkpoint_every => Some(Duration::ZERO),
            _ if state.trace_closed => after(CLOSING_PAUSE.min(self.options.checkpoint_after)),
            _ => after(self.options.checkpoint_after),
        }
    }

    fn run(&self) {
        let mut state = self.lock();
        while !state.stop {
            let wait = self.due_in(&state).map_or(LOOK, |due| due.min(LOOK));
            if !wait.is_zero() {
                state = self.wake.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
            }
            if self.options.durability == Durability::Interval
                && let Some(file) = state.unsynced.take()
            {
                let size = state.latest.size();
                drop(state);
                let synced = file.sync();
                state = self.lock();
                if let Err(error) = synced {
                    state.failed = Some(format!("sync failed: {error}"));
                    return;
                }
                state.synced = state.synced.max(size);
            }
            if self.due_in(&state).is_some_and(|due| due.is_zero()) {
                state = match self.keep(state) {
                    Ok(state) => state,
                    // A checkpoint that could not be kept is tried again after a while; the journal does not depend on it.
                    Err(_) => {
                        let state = self.lock();
                        if state.failed.is_some() || state.stop {
                            return;
                        }
                        self.wake.wait_timeout(state, RETRY).unwrap_or_else(PoisonError::into_inner).0
                    }
                };
            }
        }
    }

    /// Signs and keeps without holding the lock, so that no append waits.
    fn keep<'a>(&'a self, mut state: MutexGuard<'a, State>) -> io::Result<MutexGuard<'a, State>> {
        let tree = state.latest.clone();
        let unsynced = state.unsynced.take();
        let trace_closed = std::mem::take(&mut state.trace_closed);
        drop(state);
        // What a checkpoint vouches for is durable, whatever appends promise.
        if let Some(Err(error)) = unsynced.map(|file| file.sync()) {
            self.lock().failed = Some(format!("sync failed: {error}"));
            return Err(error);
        }
        let written = self.write(&tree);
        let mut state = self.lock();
        if let Err(error) = written {
            state.trace_closed |= trace_closed;
            return Err(error);
        }
        state.signed = state.signed.max(tree.size());
        state.synced = state.synced.max(tree.size());
        state.signed_at = Instant::now();
        Ok(state)
    }

    fn write(&self, tree: &Frontier) -> io::Result<()> {
        let checkpoint =
            Checkpoint { origin: self.ledger.origin.clone(), size: tree.size(), root: tree.root() };
        let note = checkpoint.sign(&self.key);
        self.notes.keep(&Statement::Checkpoint(checkpoint), &note)
    }
}

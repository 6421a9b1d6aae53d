//! The threads behind a notifier: one keeps what is told in files, and one for each receiver sends. None of them knows the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_store::tasks::tree::Claim;

use super::SinkKind;
use super::letter::{Kept, Letter};
use super::outbox::Outbox;
use super::pace::Pace;
use super::sink::{Open, Outcome, Sink};
use crate::clock::Clock;
use crate::engine::Moved;
use crate::limits::{NOTICES_MAX, NOTIFY_KEEP_WAIT, NOTIFY_OUTBOX_MAX};

/// What the threads share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) outbox: Outbox,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) pace: Pace,
    state: Mutex<State>,
    changed: Condvar,
    /// Nothing more is begun, and what can be ended is.
    pub(super) abort: AtomicBool,
    pub(super) delivered: AtomicU64,
    pub(super) given_up: AtomicU64,
    /// Told while the queue was full or after the end.
    pub(super) dropped: AtomicU64,
    notices: Mutex<Vec<String>>,
}

#[derive(Debug, Default)]
struct State {
    /// What waits to be sent, for each receiver.
    lines: Vec<Line>,
    /// Nothing more comes.
    has_all: bool,
    senders: usize,
    /// Commands that run, whose process groups must not be left behind.
    commands: usize,
    /// What is being sent here and by nobody else, by its name.
    claims: BTreeMap<String, Claim>,
    /// What waits or is being sent, and is in no file: it is lost if this process dies.
    unkept: usize,
}

#[derive(Debug)]
struct Line {
    kind: SinkKind,
    waiting: Vec<(Instant, Letter)>,
    /// The names of what waits and of what is just being sent.
    known: BTreeSet<String>,
    /// Those of them that another process was sending when this one last looked.
    elsewhere: BTreeSet<String>,
}

/// Whose turn it is to send a letter.
enum Turn {
    Ours,
    /// Somebody else is at it.
    Elsewhere,
    /// Somebody else was at it and failed: tried after this time.
    Later(Duration),
    /// Sent or given up by somebody else.
    Gone,
}

/// What the thread that keeps is told, in this order.
pub(super) enum Told {
    Moved(Moved),
    /// To be done once everything before it is kept.
    Then(Box<dyn FnOnce() + Send>),
}

impl Shared {
    pub(super) fn new(outbox: Outbox, sinks: &[Sink], clock: Arc<dyn Clock>, pace: Pace) -> Self {
        let line = |sink: &Sink| Line {
            kind: sink.kind(),
            waiting: Vec::new(),
            known: BTreeSet::new(),
            elsewhere: BTreeSet::new(),
        };
        let state = State { lines: sinks.iter().map(line).collect(), ..State::default() };
        Shared {
            outbox,
            clock,
            pace,
            state: Mutex::new(state),
            changed: Condvar::new(),
            abort: AtomicBool::new(false),
            delivered: AtomicU64::new(0),
            given_up: AtomicU64::new(0),
            dropped: AtomicU64::new(0),
            notices: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Lines are whole between any two statements; a panic elsewhere does not stop the others.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(text);
        }
    }

    /// Whom there is to tell.
    pub(super) fn kinds(&self) -> Vec<SinkKind> {
        self.lock().lines.iter().map(|line| line.kind).collect()
    }

    pub(super) fn has_sink(&self, kind: SinkKind) -> bool {
        self.lock().lines.iter().any(|line| line.kind == kind)
    }

    /// Letters that are not delivered yet.
    pub(super) fn pending(&self) -> usize {
        self.lock().lines.iter().map(|line| line.known.len()).sum()
    }

    /// Those of them that another process is sending.
    pub(super) fn elsewhere(&self) -> usize {
        self.lock().lines.iter().map(|line| line.elsewhere.len()).sum()
    }

    /// Whether the death of this process would lose something that it was told.
    fn has_unkept(&self) -> bool {
        self.lock().unkept > 0
    }

    /// Takes a letter that is in its file already, to be sent at once. One that is known is not taken twice.
    pub(super) fn enqueue(&self, letter: Letter) {
        let mut state = self.lock();
        let Some(line) = state.lines.iter_mut().find(|line| line.kind == letter.sink) else {
            drop(state);
            return self.bury_unclaimed(letter, "no such receiver is configured any more");
        };
        if line.known.contains(&letter.name()) {
            return;
        }
        if line.known.len() >= NOTIFY_OUTBOX_MAX {
            drop(state);
            return self.bury_unclaimed(letter, "too many wait to be sent");
        }
        line.known.insert(letter.name());
        let is_unkept = letter.kept == Kept::Nowhere;
        line.waiting.push((Instant::now(), letter));
        state.unkept += usize::from(is_unkept);
        drop(state);
        self.changed.notify_all();
    }

    /// Gives up a letter that this process does not send. While another one sends it, it is that one's.
    fn bury_unclaimed(&self, letter: Letter, reason: &str) {
        let claim = self.outbox.claim(&letter);
        let is_ours = match &claim {
            Ok(Some(_)) => letter.kept == Kept::Nowhere || self.outbox.has(&letter),
            Ok(None) => false,
            // Nobody can have it, and without a file it is nobody else's to tell of.
            Err(_) => letter.kept == Kept::Nowhere,
        };
        if is_ours {
            self.bury(letter, reason.to_owned());
        }
        drop(claim);
    }

    fn bury(&self, letter: Letter, reason: String) {
        let delivery = letter.delivery.clone();
        if let Err(error) = self.outbox.bury(letter, reason, self.clock.now()) {
            self.notice(format!("notification {delivery} was given up and could not be kept: {error}"));
        }
        self.given_up.fetch_add(1, Ordering::Relaxed);
    }

    /// The next letter of a line when it is due; `None` when nothing more is to be sent in this life.
    fn next(&self, index: usize) -> Option<Letter> {
        let mut state = self.lock();
        loop {
            if self.abort.load(Ordering::Relaxed) {
                return None;
            }
            let waiting = &mut state.lines[index].waiting;
            let first = (0..waiting.len()).min_by_key(|at| waiting[*at].0);
            let due = first.map(|at| waiting[at].0);
            let now = Instant::now();
            match (first, due) {
                (Some(at), Some(due)) if due <= now => {
                    let (_, letter) = waiting.remove(at);
                    if letter.sink == SinkKind::Command {
                        state.commands += 1;
                    }
                    return Some(letter);
                }
                // What is to be tried again later is tried in the next life.
                _ if state.has_all => return None,
                (_, Some(due)) => {
                    let waited = self.changed.wait_timeout(state, due - now);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
                (_, None) => {
                    state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Takes a letter for this process, where it is this one's turn to send it.
    fn claim(&self, letter: &mut Letter) -> Turn {
        match self.outbox.claim(letter) {
            Ok(Some(claim)) => {
                if letter.kept != Kept::Nowhere {
                    let Some(attempts) = self.outbox.attempts(letter) else { return Turn::Gone };
                    if attempts > letter.attempts {
                        // Whoever tried meanwhile failed: the receiver gets the same rest from all.
                        letter.attempts = attempts;
                        return Turn::Later(self.rest(attempts, None));
                    }
                }
                self.lock().claims.insert(letter.name(), claim);
                Turn::Ours
            }
            Ok(None) if letter.kept == Kept::Nowhere || self.outbox.has(letter) => Turn::Elsewhere,
            Ok(None) => Turn::Gone,
            // On a disk that does not even take a name, twice is better than never.
            Err(_) => Turn::Ours,
        }
    }

    /// Takes the turn, or puts the letter where it belongs.
    fn take_turn(&self, index: usize, mut letter: Letter) -> Option<Letter> {
        let turn = self.claim(&mut letter);
        let mut state = self.lock();
        let line = &mut state.lines[index];
        line.elsewhere.remove(&letter.name());
        let wait = match turn {
            Turn::Ours => return Some(letter),
            Turn::Later(wait) => wait,
            Turn::Elsewhere => {
                line.elsewhere.insert(letter.name());
                self.pace.elsewhere_wait
            }
            Turn::Gone => {
                drop(state);
                self.forget(index, &letter);
                return None;
            }
        };
        line.waiting.push((Instant::now() + wait, letter));
        None
    }

    /// How long a receiver is left alone after so many failures.
    fn rest(&self, failures: u32, after: Option<Duration>) -> Duration {
        let seed = self.clock.seed();
        self.pace.wait(failures, u16::from_be_bytes([seed[0], seed[1]]), after)
    }

    /// Books what became of an attempt.
    fn settle(&self, index: usize, mut letter: Letter, outcome: Outcome) {
        letter.attempts += 1;
        let name = letter.name();
        match outcome {
            Outcome::Delivered => {
                if let Err(error) = self.outbox.remove(&letter) {
                    let delivery = &letter.delivery;
                    self.notice(format!(
                        "notification {delivery} was delivered and stays in the outbox: {error}"
                    ));
                }
                self.forget(index, &letter);
                self.delivered.fetch_add(1, Ordering::Relaxed);
            }
            Outcome::Again { why, after } if letter.attempts < self.pace.attempts => {
                let due = Instant::now() + self.rest(letter.attempts, after);
                let kept = self.outbox.put(&letter);
                let mut state = self.lock();
                match kept {
                    Ok(()) if letter.kept == Kept::Nowhere => {
                        letter.kept = Kept::Here;
                        state.unkept -= 1;
                    }
                    Ok(()) => {}
                    Err(error) => {
                        self.notice(format!("notification {}: {why}; not kept: {error}", letter.delivery));
                    }
                }
                state.lines[index].waiting.push((due, letter));
            }
            // Forgotten first: whoever revives it once it is among the dead finds its place free.
            Outcome::Again { why, .. } => {
                let times = letter.attempts;
                self.forget(index, &letter);
                self.bury(letter, format!("{why} (tried {times} times)"));
            }
            Outcome::Never(why) => {
                self.forget(index, &letter);
                self.bury(letter, why);
            }
            // Its file stays for the next life.
            Outcome::Stopped => {}
        }
        // Last: whoever has the name next finds the files as they are meant to be.
        let claim = self.lock().claims.remove(&name);
        drop(claim);
    }

    fn forget(&self, index: usize, letter: &Letter) {
        let mut state = self.lock();
        let line = &mut state.lines[index];
        line.elsewhere.remove(&letter.name());
        if line.known.remove(&letter.name()) && letter.kept == Kept::Nowhere {
            state.unkept -= 1;
        }
    }

    fn has_run(&self, kind: SinkKind) {
        if kind == SinkKind::Command {
            self.lock().commands -= 1;
        }
        self.changed.notify_all();
    }

    /// Says that nothing more comes.
    fn close(&self) {
        self.lock().has_all = true;
        self.changed.notify_all();
    }

    pub(super) fn add_sender(&self) {
        self.lock().senders += 1;
    }

    fn leave(&self) {
        self.lock().senders -= 1;
        self.changed.notify_all();
    }

    /// Waits until everything that was told is kept and everything that could be sent was, then at most as long as it takes to end the commands that still run.
    pub(super) fn finish(&self, wait: Duration, ladder: Duration) {
        self.wait(wait.max(NOTIFY_KEEP_WAIT), |state| !state.has_all);
        self.wait(wait, |state| state.senders > 0);
        self.abort.store(true, Ordering::Relaxed);
        self.changed.notify_all();
        self.wait(ladder, |state| state.commands > 0);
        // A post that still waits for its answer is the next life's to repeat.
        let claims = std::mem::take(&mut self.lock().claims);
        drop(claims);
    }

    fn wait(&self, wait: Duration, is_busy: impl Fn(&State) -> bool) {
        let waited = self.changed.wait_timeout_while(self.lock(), wait, |state| is_busy(state));
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }
}

/// Keeps what is told, in the order in which it is told.
pub(super) fn keep(shared: &Shared, told: &Receiver<Told>, kinds: &[SinkKind]) {
    while let Ok(told) = told.recv() {
        match told {
            Told::Moved(moved) => kinds.iter().for_each(|kind| drop(keep_one(shared, &moved, *kind))),
            // What is not kept is told again by whoever comes next, unless it is sent before the next such note.
            Told::Then(note) if !shared.has_unkept() => note(),
            Told::Then(_) => {}
        }
    }
    shared.close();
}

/// Puts one into the outbox, to be sent.
pub(super) fn keep_one(shared: &Shared, moved: &Moved, kind: SinkKind) -> std::io::Result<()> {
    let mut letter = Letter::of(moved, kind);
    let kept = shared.outbox.put(&letter);
    if let Err(error) = &kept {
        // It is sent all the same; only a death of Baton would lose it.
        shared.notice(format!("notification {} is not kept: {error}", letter.delivery));
        letter.kept = Kept::Nowhere;
    }
    shared.enqueue(letter);
    kept
}

/// Sends one letter after the other to one receiver.
pub(super) fn send(shared: &Shared, index: usize, sink: &Open) {
    struct Leaving<'a>(&'a Shared);
    impl Drop for Leaving<'_> {
        fn drop(&mut self) {
            self.0.leave();
        }
    }
    let _leaving = Leaving(shared);
    while let Some(letter) = shared.next(index) {
        let kind = letter.sink;
        let Some(letter) = shared.take_turn(index, letter) else {
            shared.has_run(kind);
            continue;
        };
        let mut stop = || shared.abort.load(Ordering::Relaxed);
        let outcome = sink.attempt(&letter, shared.clock.now(), &shared.pace, &mut stop);
        shared.settle(index, letter, outcome);
        shared.has_run(kind);
    }
}

//! Does what is due when it is due: sleeps until the next lease or heartbeat runs out, until somebody wakes it, or until the poll.
//!
//! The poll is the safety net: for clocks that were set, and for whatever nobody thought of.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

use baton_core::Timestamp;

use crate::dispatch::{Dispatcher, dispatch};
use crate::engine::{Engine, Fault, Ticked};

/// Wakes a scheduler, and ends it.
#[derive(Debug, Default)]
pub struct Wake {
    asked: Mutex<Asked>,
    changed: Condvar,
    /// When what is due was last looked at.
    last: Mutex<Option<Timestamp>>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Asked {
    wakes: bool,
    ends: bool,
}

impl Wake {
    /// Something happened: what is due, and when the next thing is, is looked at again.
    pub fn wake(&self) {
        self.ask(|asked| asked.wakes = true);
    }

    /// Ends whoever waits, now and from now on.
    pub fn end(&self) {
        self.ask(|asked| asked.ends = true);
    }

    /// When what is due was last looked at, by whoever is woken by this.
    pub fn last_round(&self) -> Option<Timestamp> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note_round(&self, at: Timestamp) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(at);
    }

    fn ask(&self, ask: impl FnOnce(&mut Asked)) {
        ask(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_all();
    }

    /// Waits for at most this long, and says whether to go on.
    pub fn wait(&self, time: Duration) -> bool {
        let asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(asked, time, |asked| !asked.wakes && !asked.ends);
        let (mut asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        asked.wakes = false;
        !asked.ends
    }
}

/// After a failure, and where something is due that cannot be done: how long until it is tried again.
const RETRY: Duration = Duration::from_millis(500);

/// Something that is due this very moment is looked at after this long, so that a clock of whole milliseconds cannot make it too early.
const SOON: Duration = Duration::from_millis(2);

/// What is due, again and again.
#[derive(Debug)]
pub struct Scheduler;

impl Scheduler {
    /// Runs until it is ended. Where there is a dispatcher, what may start is started; `told` hears of every round.
    pub fn run(
        engine: &Engine,
        poll: Duration,
        wake: &Wake,
        dispatcher: Option<&dyn Dispatcher>,
        told: impl Fn(&Result<Ticked, Fault>),
    ) {
        loop {
            let ticked = round(engine, dispatcher);
            wake.note_round(engine.now());
            engine.sign_heads();
            told(&ticked);
            let time = match &ticked {
                Err(_) => RETRY.min(poll),
                Ok(ticked) => match ticked.next {
                    None => poll,
                    Some(next) => {
                        let ms = u64::try_from(next.unix_ms().saturating_sub(engine.now().unix_ms()));
                        (Duration::from_millis(ms.unwrap_or(0)) + SOON).min(poll)
                    }
                },
            };
            if !wake.wait(time) {
                return;
            }
        }
    }
}

/// What is due, then what may start.
fn round(engine: &Engine, dispatcher: Option<&dyn Dispatcher>) -> Result<Ticked, Fault> {
    let mut ticked = engine.tick()?;
    if let Some(dispatcher) = dispatcher {
        let started = dispatch(engine, dispatcher)?;
        ticked.acted.extend(started.into_iter().map(|assignment| assignment.task));
        let next = engine.look(|board| board.next_start(engine.now()))?;
        ticked.next = [ticked.next, next].into_iter().flatten().min();
    }
    Ok(ticked)
}

//! What `baton serve` does beside taking commands: runs the configured checks, and tells people.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use baton_runtime::ci::{Ci, CiRunner};
use baton_runtime::engine::Moved;
use baton_runtime::notify::Notifier;
use baton_runtime::scheduler::Wake;
use baton_store::{History as _, Layout};

use crate::config::{OnFailure, Settings};
use crate::context::{Context, visit};
use crate::error::Stop;
use crate::limits::{CHECKS_POLL, TELLING_START_WAIT, TOLD_WAIT};
use crate::notices::{Begun, MYSELF, Telling, sinks, start};
use crate::serve::Owner;
use crate::serve::server::Poke;
use crate::ui::Ui;

/// The configured checks, run for every task that waits for them.
pub(super) struct Checks {
    stop: Arc<AtomicBool>,
    wake: Arc<Wake>,
    thread: Option<JoinHandle<()>>,
}

impl Checks {
    pub(super) fn start(owner: &Arc<Owner>, settings: &Settings, poke: &Arc<Poke>) -> io::Result<Self> {
        let (stop, wake) = (Arc::new(AtomicBool::new(false)), Arc::new(Wake::default()));
        let Some(command) = settings.ci.command.clone() else {
            return Ok(Checks { stop, wake, thread: None });
        };
        let mut ci = Ci::new(command, settings.ci.timeout, settings.ci.on_failure == OnFailure::Rework);
        ci.warden = Some(MYSELF.into());
        let runner = CiRunner::new(owner.engine.clone(), ci, owner.occupancy.clone());
        // Not the owner itself: at the end nobody but the server may hold it.
        let (told, poke) = (Arc::downgrade(owner), poke.clone());
        let (stopped, woken) = (stop.clone(), wake.clone());
        let work = move || {
            loop {
                let done = runner.run_pending(&stopped);
                let notices = runner.take_notices();
                if let (Some(owner), true) = (told.upgrade(), done > 0 || !notices.is_empty()) {
                    owner.tell(notices);
                    owner.wake.wake();
                    poke.poke();
                }
                if !woken.wait(CHECKS_POLL) {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("checks".into()).spawn(work)?;
        Ok(Checks { stop, wake, thread: Some(thread) })
    }

    /// Wakes it, from elsewhere.
    pub(super) fn waker(&self) -> Arc<Wake> {
        self.wake.clone()
    }

    /// Something happened: there may be a task that waits now.
    pub(super) fn wake(&self) {
        self.wake.wake();
    }

    /// Ends a check that runs; it is run again by whoever serves next.
    pub(super) fn end(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.wake.end();
        if let Some(thread) = self.thread {
            let _ = thread.join();
        }
    }
}

/// Whoever wants to be told, and up to where they were.
pub(super) struct Told {
    notifier: Option<Notifier>,
    layout: Layout,
    turn: Turn,
}

/// The right to tell, which one process has at a time.
enum Turn {
    /// As long as this serves: nobody else tells meanwhile.
    Ours(Arc<Telling>),
    /// Another process still tells: what happens from this position on is told once it has come to its end.
    Theirs { since: u64 },
}

impl Told {
    /// Starts with what happened while nobody served.
    pub(super) fn start(ctx: &Context, ui: &Ui, layout: &Layout, settings: &Settings) -> Result<Self, Stop> {
        let sinks = sinks(settings, ctx.work_dir(layout.root()))?;
        let turn = Turn::Theirs { since: visit(layout)?.reader.size() };
        let notifier = if sinks.is_empty() { None } else { Some(start(layout, sinks)?) };
        let mut told = Told { notifier, layout: layout.clone(), turn };
        told.take_turn(ui, TELLING_START_WAIT)?;
        if told.notifier.is_some() && matches!(told.turn, Turn::Theirs { .. }) {
            ui.warn("another process is still telling what happened; notifications wait until it has ended");
        }
        Ok(told)
    }

    /// Catches up as soon as nobody else tells.
    fn take_turn(&mut self, ui: &Ui, wait: Duration) -> Result<(), Stop> {
        let (Some(notifier), Turn::Theirs { since }) = (&self.notifier, &self.turn) else { return Ok(()) };
        let Begun::Ours(mut telling) = Telling::begin(&self.layout, wait, &|| false)? else { return Ok(()) };
        let visit = visit(&self.layout).map_err(Stop::from);
        let missed = visit.and_then(|visit| telling.catch_up(notifier, &visit, Some(*since)));
        // Once: what cannot be read or kept now is not sent over and over.
        self.turn = Turn::Ours(Arc::new(telling));
        missed?.notice().iter().for_each(|notice| ui.warn(notice));
        Ok(())
    }

    /// Tells what happened. While another process has the turn, that is left to the ledger.
    pub(super) fn tell(&mut self, ui: &Ui, moved: &[Moved]) {
        if let Err(Stop::Error(error)) = self.take_turn(ui, Duration::ZERO) {
            ui.warn(&format!("some notifications may be missing: {}", error.what));
        }
        let (Some(notifier), Turn::Ours(telling)) = (&self.notifier, &self.turn) else { return };
        // What was caught up with is told.
        let news = moved.iter().filter(|moved| moved.pos > telling.until());
        let Some(until) = news.clone().map(|moved| moved.pos).max() else { return };
        news.filter(|moved| moved.to.is_notable()).for_each(|moved| notifier.tell(moved));
        let telling = telling.clone();
        // Not before: a death in between would lose what is only in the queue.
        notifier.once_kept(Box::new(move || telling.has_told(until)));
    }

    pub(super) fn end(self, ui: &Ui) {
        if let Some(notifier) = self.notifier {
            notifier.stop(TOLD_WAIT);
            notifier.take_notices().iter().for_each(|notice| ui.warn(notice));
        }
    }
}

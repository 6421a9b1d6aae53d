//! What `baton serve` does beside taking commands: runs the configured checks, and tells people.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use baton_runtime::ci::{Ci, CiRunner};
use baton_runtime::engine::Moved;
use baton_runtime::notify::Notifier;
use baton_runtime::occupancy::Occupancy;
use baton_runtime::scheduler::Wake;
use baton_store::Layout;

use crate::config::{OnFailure, Settings};
use crate::context::Context;
use crate::error::Stop;
use crate::notices::{MYSELF, Telling, sinks, start};
use crate::serve::Owner;
use crate::serve::server::Poke;
use crate::ui::Ui;

/// Looked for at least this often, whatever nobody told us of.
const CHECKS_POLL: Duration = Duration::from_secs(5);

/// How long deliveries that are under way are waited for at the end; the rest is kept.
const TOLD_WAIT: Duration = Duration::from_secs(2);

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
        let workspace = Occupancy::new(owner.engine.ground().workspace.clone());
        let runner = CiRunner::new(owner.engine.clone(), ci, workspace);
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
    notifier: Option<(Notifier, Telling)>,
}

impl Told {
    /// Starts with what happened while nobody served.
    pub(super) fn start(ctx: &Context, layout: &Layout, settings: &Settings) -> Result<Self, Stop> {
        let sinks = sinks(settings, ctx.work_dir(layout.root()))?;
        if sinks.is_empty() {
            return Ok(Told { notifier: None });
        }
        let notifier = start(layout, sinks)?;
        // Kept as long as this serves: nobody else tells meanwhile.
        let Some(mut telling) = Telling::begin(layout, &|| false)? else {
            return Ok(Told { notifier: None });
        };
        telling.catch_up(&notifier, &ctx.visit()?, None)?;
        Ok(Told { notifier: Some((notifier, telling)) })
    }

    pub(super) fn tell(&self, moved: &[Moved], pos: impl FnOnce() -> u64) {
        if let (Some((notifier, telling)), false) = (&self.notifier, moved.is_empty()) {
            moved.iter().filter(|moved| moved.to.is_notable()).for_each(|moved| notifier.tell(moved));
            telling.has_told(pos());
        }
    }

    pub(super) fn end(self, ui: &Ui) {
        if let Some((notifier, _)) = self.notifier {
            notifier.stop(TOLD_WAIT);
            notifier.take_notices().iter().for_each(|notice| ui.warn(notice));
        }
    }
}

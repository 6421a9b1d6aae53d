//! A process that owns the data directory: it takes the commands of others, does what is due, and runs agents. `baton serve` is nothing else;
//! `baton run` is one for as long as its agent works.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use baton_core::task::{Board, Status};
use baton_runtime::engine::Moved;
use baton_runtime::scheduler::Scheduler;
use baton_runtime::watch::Watch;
use baton_server::house::Scheduling;
use baton_store::lock;
use serde_json::json;

use crate::commands::beside::{Checks, Told};
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::limits::{CLOSE_WAIT, OWNER_FDS};
use crate::serve::Owner;
use crate::serve::server::{Poke, Server};
use crate::serve::socket::Listening;
use crate::serve::web;
use crate::telemetry;
use crate::ui::Ui;
use crate::ui::text::printable;

/// Everything is looked at after this many polls.
const POLLS_PER_LOOK: u32 = 10;

/// An owner with everything that runs beside it.
pub(super) struct House {
    pub(super) owner: Arc<Owner>,
    pub(super) path: String,
    /// The server over HTTP, where there is one.
    pub(super) web: Option<baton_server::listen::Listening>,
    server: Server,
    scheduler: JoinHandle<()>,
    watch: Watch,
    checks: Checks,
    told: Told,
}

impl House {
    /// Takes the data directory, and begins. Another owner that takes commands is not waited for. `stopped` gets a byte when it is time to stop;
    /// `dispatches` says whether tasks are handed to agents without being asked.
    pub(super) fn open(
        ctx: &Context,
        ui: &Ui,
        stopped: UnixStream,
        dispatches: bool,
        web: Option<web::Asked>,
    ) -> Result<House, Stop> {
        let layout = ctx.layout()?;
        let config = ctx.config(Some(layout.root()))?;
        let settings = config.settings();
        let workspace = own(ctx, ui)?;
        let fail = |error: io::Error| CliError::io("serve", layout.root(), &error);
        telemetry::send(&settings.telemetry).map_err(fail)?;
        let engine = ctx.open_engine(&workspace)?;
        let owner = Arc::new(Owner::new(ctx, workspace, engine, &config)?);
        allow_descriptors();
        let (poke, shown) = Poke::pair().map_err(fail)?;
        let listening = Listening::start(ctx, &layout)?;
        let path = listening.path.display().to_string();
        let is_configured = config.is_set("server", "listen");
        let poll = settings.scheduler.poll;
        let scheduling = Scheduling {
            is_dispatching: dispatches,
            poll,
            max_concurrent: settings.scheduler.max_concurrent as usize,
            wake: owner.wake.clone(),
        };
        // Before agents are started: they are told where it listens.
        let web = web
            .map(|asked| web::start(&owner, &poke, &settings.server, is_configured, asked, scheduling))
            .transpose()?;
        let scheduler = start_scheduler(&owner, poll, &poke, dispatches).map_err(fail)?;
        let watch = start_watch(&owner, poll * POLLS_PER_LOOK, &poke).map_err(fail)?;
        let checks = Checks::start(&owner, &settings, &poke).map_err(fail)?;
        let told = Told::start(ctx, ui, &layout, &settings)?;
        let server = Server { owner: owner.clone(), listening, shown, stopped, poke };
        Ok(House { owner, path, web, server, scheduler, watch, checks, told })
    }

    /// Serves until it is told to stop, and shows what happens.
    pub(super) fn serve(self, ui: &mut Ui) -> io::Result<()> {
        let House { owner, web, server, scheduler, watch, checks, mut told, .. } = self;
        let served = server.run(|| {
            show(ui, &owner, &mut told, true);
            checks.wake();
        });
        // Before sessions end: whoever follows one is told why.
        if let Some(web) = web {
            web.end();
        }
        end(ui, owner, scheduler, watch, checks, told);
        served
    }

    /// Serves beside something else that this process does, and ends with it. `stop` is the other end of `stopped`.
    pub(super) fn serve_beside<T>(
        self,
        ui: &mut Ui,
        stop: &UnixStream,
        work: impl FnOnce(&Arc<Owner>, &mut Ui) -> T,
    ) -> io::Result<T> {
        let House { owner, server, scheduler, watch, checks, mut told, .. } = self;
        let wake = checks.waker();
        let served =
            std::thread::Builder::new().name("serving".into()).spawn(move || server.run(|| wake.wake()))?;
        let done = work(&owner, ui);
        let _ = io::Write::write(&mut &*stop, &[0]);
        let _ = served.join();
        show(ui, &owner, &mut told, false);
        end(ui, owner, scheduler, watch, checks, told);
        Ok(done)
    }
}

fn end(
    ui: &mut Ui,
    owner: Arc<Owner>,
    scheduler: JoinHandle<()>,
    watch: Watch,
    checks: Checks,
    mut told: Told,
) {
    owner.wake.end();
    let _ = scheduler.join();
    owner.crew.end_all();
    owner.broker.end_all();
    checks.end();
    show(ui, &owner, &mut told, false);
    told.end(ui);
    watch.end();
    telemetry::end();
    close(ui, owner);
}

/// Takes the data directory. Another owner that takes commands is not waited for.
fn own(ctx: &Context, ui: &Ui) -> Result<baton_store::Workspace, Stop> {
    let mut is_served = false;
    let opened = ctx.open(ui, &mut |_| {
        is_served = true;
        true
    });
    if is_served {
        let owner = lock::holder(&ctx.layout()?).ok().flatten();
        let pid = owner.map_or(0, |owner| owner.pid);
        let what = format!("process {pid} already owns the data directory and takes commands");
        return Err(CliError::new(Code::LockHeld, what).hint("baton").into());
    }
    match opened? {
        Writing::Own { workspace, .. } => Ok(*workspace),
        Writing::Shared(_) => Err(CliError::new(Code::NotServed, "this process serves already").into()),
    }
}

/// Every command that is handed over brings descriptors along, and every agent has pipes. Where more are not allowed, some of many at once are refused.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OWNER_FDS, |maximum| maximum.min(OWNER_FDS));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

fn start_scheduler(
    owner: &Arc<Owner>,
    poll: Duration,
    poke: &Arc<Poke>,
    dispatches: bool,
) -> io::Result<JoinHandle<()>> {
    let (owner, poke) = (owner.clone(), poke.clone());
    std::thread::Builder::new().name("scheduler".into()).spawn(move || {
        let crew = owner.crew.clone();
        let dispatcher = dispatches.then_some(&crew as &dyn baton_runtime::dispatch::Dispatcher);
        Scheduler::run(&owner.engine, poll, &owner.wake, dispatcher, |ticked| {
            if let Err(fault) = ticked {
                owner.tell(vec![format!("what is due could not be done: {fault}")]);
            }
            poke.poke();
        });
    })
}

fn start_watch(owner: &Arc<Owner>, every: Duration, poke: &Arc<Poke>) -> io::Result<Watch> {
    let (told, poke) = (Arc::downgrade(owner), poke.clone());
    Watch::start(owner.engine.clone(), every, move |notices| {
        if let Some(owner) = told.upgrade() {
            owner.tell(notices);
            // What was taken in may have made something due.
            owner.wake.wake();
        }
        poke.poke();
    })
}

/// Shows what happened since, and tells whoever is to be told.
fn show(ui: &mut Ui, owner: &Owner, told: &mut Told, lists_moves: bool) {
    let moved = owner.engine.take_moved();
    moved.iter().filter(|moved| moved.to == Status::Done).for_each(|moved| owner.crew.tidy(&moved.task));
    told.tell(ui, &moved);
    for moved in moved.into_iter().filter(|_| lists_moves) {
        let worker = worker(owner, &moved);
        // Whoever read this has gone, which is no reason to stop working.
        let _ = if ui.json {
            ui.object(&json!({"v": 1, "moved": {
                "task": moved.task.as_str(),
                "agent": worker,
                "title": moved.title,
                "from": moved.from.to_string(),
                "to": moved.to.to_string(),
                "reason": moved.reason,
                "at": moved.at.to_string(),
                "pos": moved.pos,
            }}))
        } else {
            let reason = printable(&moved.reason);
            let by = worker.map(|agent| format!("  ({agent})")).unwrap_or_default();
            ui.line(&format!("{}  {} → {}  {reason}{by}", moved.task, moved.from, moved.to))
        };
    }
    let _ = ui.flush();
    owner.tell_once(owner.crew.take_notices());
    owner.drain().iter().for_each(|notice| ui.warn(notice));
}

/// Who works on a task that was taken, or worked on one that was let go.
fn worker(owner: &Owner, moved: &Moved) -> Option<String> {
    let is_work = [moved.from, moved.to].contains(&Status::InProgress);
    let agent = |board: &Board| Some(board.get(&moved.task)?.run.as_ref()?.agent.to_string());
    owner.engine.look(agent).ok().flatten().filter(|_| is_work)
}

/// Saves and lets go. Where a command still runs, its events are recorded as far as they are, and whoever opens next does the rest.
fn close(ui: &Ui, owner: Arc<Owner>) {
    let Some(owner) = alone(owner) else {
        ui.warn("a command was still running; what it had recorded is recorded");
        return;
    };
    let Owner { workspace, engine, broker, crew, .. } = owner;
    drop((broker, crew));
    if let Some(engine) = alone(engine) {
        // It is a projection: whoever opens next makes what is missing.
        let _ = engine.close();
    }
    if let Err(error) = workspace.close() {
        ui.warn(&format!("the ledger did not close cleanly; what was acknowledged is recorded: {error}"));
    }
}

/// What is shared, once nobody else has it: threads that have done their work may still hold it for a moment.
fn alone<T>(mut shared: Arc<T>) -> Option<T> {
    let until = Instant::now() + CLOSE_WAIT;
    loop {
        shared = match Arc::try_unwrap(shared) {
            Ok(alone) => return Some(alone),
            Err(shared) if Instant::now() < until => shared,
            Err(_) => return None,
        };
        std::thread::sleep(Duration::from_millis(5));
    }
}

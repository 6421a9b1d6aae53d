//! `baton serve`: owns the data directory until it is told to stop. Does what is due, takes in what people change, and takes the commands of others.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use baton_runtime::scheduler::Scheduler;
use baton_runtime::watch::Watch;
use baton_store::lock;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::Serve;
use crate::commands::Ended;
use crate::commands::beside::{Checks, Told};
use crate::commands::config::warn_of_unused;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::limits::OWNER_FDS;
use crate::serve::Owner;
use crate::serve::server::{Poke, Server};
use crate::serve::socket::Listening;
use crate::ui::Ui;
use crate::ui::text::printable;

/// Everything is looked at after this many polls.
const POLLS_PER_LOOK: u32 = 10;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Serve) -> Ended {
    let layout = ctx.layout()?;
    let config = ctx.config(Some(layout.root()))?;
    let settings = config.settings();
    warn_of_unused(ui, &config);
    let workspace = own(ctx, ui)?;
    let engine = ctx.open_engine(&workspace)?;
    let owner = Arc::new(Owner::new(workspace, engine, &config)?);
    if args.no_dispatch {
        ui.detail("no agents are started");
    }
    let fail = |error: io::Error| CliError::io("serve", layout.root(), &error);
    allow_descriptors();
    let stopped = stop_on_signals(ctx).map_err(fail)?;
    let (poke, shown) = Poke::pair().map_err(fail)?;
    let listening = Listening::start(ctx, &layout)?;
    let path = listening.path.display().to_string();

    let poll = settings.scheduler.poll;
    let scheduler = start_scheduler(&owner, poll, &poke).map_err(fail)?;
    let watch = start_watch(&owner, poll * POLLS_PER_LOOK, &poke).map_err(fail)?;
    let checks = Checks::start(&owner, &settings, &poke).map_err(fail)?;
    let mut told = Told::start(ctx, ui, &layout, &settings)?;
    if ui.json {
        ui.object(&json!({"v": 1, "listening": path, "pid": std::process::id()}))?;
    } else {
        ui.line(&format!("taking commands at {}; Ctrl-C ends it", printable(&path)))?;
    }
    ui.flush()?;

    let server = Server { owner: owner.clone(), listening, shown, stopped, poke };
    let served = server.run(|| {
        show(ui, &owner, &mut told);
        checks.wake();
    });
    checks.end();
    told.end(ui);
    owner.wake.end();
    watch.end();
    let _ = scheduler.join();
    close(ui, owner);
    served.map_err(fail)?;
    Ok(Exit::Ok)
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

/// Every command that is handed over brings descriptors along. Where more are not allowed, some of many at once are refused.
fn allow_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    let wanted = limit.maximum.map_or(OWNER_FDS, |maximum| maximum.min(OWNER_FDS));
    if limit.current.is_some_and(|current| current < wanted) {
        limit.current = Some(wanted);
        let _ = setrlimit(Resource::Nofile, limit);
    }
}

/// The first signal asks to stop; the second ends the process at once.
fn stop_on_signals(ctx: &Context) -> io::Result<UnixStream> {
    let (stopped, stop) = UnixStream::pair()?;
    ctx.ends_at_once.store(false, Ordering::Relaxed);
    let interrupted = i32::from(Exit::Interrupted.code());
    let flag = &ctx.ends_at_once;
    // In this order: a signal ends the process if there was one before it. For SIGINT that stands already.
    signal_hook::flag::register_conditional_shutdown(SIGTERM, interrupted, flag.clone())?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, flag.clone())?;
        signal_hook::low_level::pipe::register(signal, stop.try_clone()?)?;
    }
    Ok(stopped)
}

fn start_scheduler(
    owner: &Arc<Owner>,
    poll: Duration,
    poke: &Arc<Poke>,
) -> io::Result<std::thread::JoinHandle<()>> {
    let (owner, poke) = (owner.clone(), poke.clone());
    std::thread::Builder::new().name("scheduler".into()).spawn(move || {
        Scheduler::run(&owner.engine, poll, &owner.wake, None, |ticked| {
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

/// Shows what happened since.
fn show(ui: &mut Ui, owner: &Owner, told: &mut Told) {
    let moved = owner.engine.take_moved();
    told.tell(ui, &moved);
    for moved in moved {
        // Whoever read this has gone, which is no reason to stop working.
        let _ = if ui.json {
            ui.object(&json!({"v": 1, "moved": {
                "task": moved.task.as_str(),
                "title": moved.title,
                "from": moved.from.to_string(),
                "to": moved.to.to_string(),
                "reason": moved.reason,
                "at": moved.at.to_string(),
                "pos": moved.pos,
            }}))
        } else {
            let reason = printable(&moved.reason);
            ui.line(&format!("{}  {} → {}  {reason}", moved.task, moved.from, moved.to))
        };
    }
    let _ = ui.flush();
    owner.drain().iter().for_each(|notice| ui.warn(notice));
}

/// Saves and lets go. Where a command still runs, its events are recorded as far as they are, and whoever opens next does the rest.
fn close(ui: &Ui, owner: Arc<Owner>) {
    let Some(owner) = Arc::into_inner(owner) else {
        ui.warn("a command was still running; what it had recorded is recorded");
        return;
    };
    let Owner { workspace, engine, .. } = owner;
    if let Some(engine) = Arc::into_inner(engine) {
        // It is a projection: whoever opens next makes what is missing.
        let _ = engine.close();
    }
    if let Err(error) = workspace.close() {
        ui.warn(&format!("the ledger did not close cleanly; what was acknowledged is recorded: {error}"));
    }
}

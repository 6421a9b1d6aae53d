//! `baton serve`: owns the data directory until it is told to stop. Does what is due, hands tasks to agents, takes in what people change, and takes the
//! commands of others.

use std::io;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baton_server::listen::Listening;
use serde_json::json;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::Serve;
use crate::commands::Ended;
use crate::commands::house::House;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::serve::web;
use crate::ui::Ui;
use crate::ui::text::printable;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Serve) -> Ended {
    let layout = ctx.layout()?;
    let fail = |error: io::Error| CliError::io("serve", layout.root(), &error);
    let stopped = stop_on_signals(ctx).map_err(fail)?;
    if args.no_dispatch {
        ui.detail("tasks are not handed to agents");
    }
    let asked = web::Asked { listen: args.listen, is_exposed: args.expose_tokens_unencrypted };
    // One that was started for sessions alone is not asked over HTTP.
    let asked = (!args.until_idle && !args.until_eof).then_some(asked);
    if args.until_eof {
        end_with_input().map_err(fail)?;
    }
    let house = House::open(ctx, ui, stopped, !args.no_dispatch, asked)?;
    if args.until_idle {
        end_when_idle(&house).map_err(fail)?;
    }
    // Made where there is none yet: whoever is to call needs one, however this was started.
    let token = house.web.as_ref().map(|_| house.owner.tokens.own()).transpose().map_err(CliError::from)?;
    if ui.json {
        let url = house.web.as_ref().map(Listening::url);
        ui.object(&json!({"v": 1, "listening": house.path, "pid": std::process::id(), "url": url}))?;
    } else {
        ui.line(&format!("taking commands at {}; Ctrl-C ends it", printable(&house.path)))?;
        if let (Some(web), Some(token)) = (&house.web, token) {
            ui.line(&format!("answering at {}/?token={token}", web.url()))?;
        }
    }
    ui.flush()?;
    house.serve(ui).map_err(fail)?;
    Ok(Exit::Ok)
}

/// Ends this process once there was a session and there is none any more, or none came for a while.
fn end_when_idle(house: &House) -> io::Result<()> {
    let broker = Arc::downgrade(&house.owner.broker);
    let watch = move || {
        let mut idle_since = Instant::now();
        let mut wait = IDLE_FIRST;
        while idle_since.elapsed() < wait {
            std::thread::sleep(IDLE_LOOK);
            let Some(broker) = broker.upgrade() else { return };
            if !broker.live().is_empty() {
                (idle_since, wait) = (Instant::now(), IDLE_LAST);
            }
        }
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    std::thread::Builder::new().name("idle".into()).spawn(watch).map(drop)
}

/// Ends this process once whoever started it has ended its input, also where that died. A server is never handed over: the input is its own.
fn end_with_input() -> io::Result<()> {
    let watch = || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = signal_hook::low_level::raise(SIGTERM);
    };
    std::thread::Builder::new().name("input".into()).spawn(watch).map(drop)
}

/// How long a server that was started for a session waits for the first, and after the last one.
const IDLE_FIRST: Duration = Duration::from_secs(30);
const IDLE_LAST: Duration = Duration::from_secs(1);
const IDLE_LOOK: Duration = Duration::from_millis(100);

/// The first signal asks to stop; the second ends the process at once.
pub(super) fn stop_on_signals(ctx: &Context) -> io::Result<UnixStream> {
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

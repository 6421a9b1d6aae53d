//! `baton demo`: the life of a task in a throw-away directory, with real processes. Every command is shown with what it prints.
//!
//! [`story`] is what is told, [`stage`] is how: each line is run by a shell that finds this very executable as `baton`, and must end as the
//! story says. Whatever happens, the server is stopped and the directory removed.

mod stage;
mod story;

use std::io::IsTerminal as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::args::Demo;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::ui::Ui;
use stage::{Broken, Stage};

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Demo) -> Ended {
    // Where nobody looks, nobody would end it.
    let serves = !args.no_serve && !ui.json && std::io::stdout().is_terminal();
    let interrupted = clean_up_on_signals(ctx).map_err(|error| {
        CliError::new(Code::DemoFailed, "the demo cannot watch for signals").cause(error.to_string())
    })?;
    let mut stage = Stage::set(ui, interrupted)?;
    let told = story::tell(&mut stage).and_then(|()| match serves {
        true => {
            stage.heading("All of it, on the page")?;
            stage.show_page()
        }
        false => Ok(()),
    });
    // Also where the story broke off: nothing is left behind.
    let cleared = stage.clear();
    match told {
        Ok(()) => cleared.map(|()| Exit::Ok).map_err(Into::into),
        Err(Broken::Interrupted) => Ok(Exit::Interrupted),
        Err(Broken::Stop(stop)) => Err(stop),
    }
}

/// The first signal ends the story and cleans up; a second one ends the process at once.
fn clean_up_on_signals(ctx: &Context) -> std::io::Result<Arc<AtomicBool>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    ctx.ends_at_once.store(false, Ordering::Relaxed);
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, ctx.ends_at_once.clone())?;
        signal_hook::flag::register(signal, interrupted.clone())?;
    }
    Ok(interrupted)
}

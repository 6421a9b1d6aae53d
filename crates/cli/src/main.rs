//! Speaks. The one binary, `baton`: arguments in, a command of the ledger, data on standard output, a public exit code.
//!
//! Start at [`args`] for what can be typed and [`commands`] for what it does.

mod args;
mod commands;
mod config;
mod context;
mod error;
mod exit;
mod help;
mod ids;
mod input;
mod limits;
mod lines;
mod nearest;
mod task_args;
mod tasks;
mod ui;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use context::Context;
use error::{CliError, Code, Stop};
use exit::Exit;
use ui::color::{Paint, When};
use ui::shell::Place;
use ui::text::printable_lines;
use ui::{Loudness, Ui};

fn main() -> ExitCode {
    // What is acknowledged is durable and what is not can be lost, so an interruption ends the process at once, with its public code.
    let interrupted = i32::from(Exit::Interrupted.code());
    let _ = signal_hook::flag::register_conditional_shutdown(
        signal_hook::consts::SIGINT,
        interrupted,
        Arc::new(AtomicBool::new(true)),
    );
    // A limit on file sizes is an error to be told, not a reason to be killed in the middle of a write.
    let _ = signal_hook::flag::register(signal_hook::consts::signal::SIGXFSZ, Arc::default());
    let cli = match help::parse() {
        Ok(cli) => cli,
        Err(error) => {
            if !error.use_stderr() {
                let _ = error.print();
                return Exit::Ok.code().into();
            }
            return misused(&error).into();
        }
    };
    let (ctx, mut ui) = prepare(&cli.globals);
    let ended = commands::run(&ctx, &mut ui, cli.command).and_then(|exit| ui.flush().map(|()| exit));
    match ended {
        Ok(exit) => exit.code(),
        Err(Stop::PipeClosed) => Exit::Ok.code(),
        Err(Stop::Error(error)) => {
            // What was found before the error is data too.
            let _ = ui.flush();
            ui.fail(&error);
            error.exit().code()
        }
    }
    .into()
}

/// Gives clap's own words, as JSON where that was asked for as far as can be told.
fn misused(error: &clap::Error) -> u8 {
    let words = error.render().to_string();
    let is_json = std::env::args_os().skip(1).take_while(|word| word != "--").any(|word| word == "--json");
    if is_json {
        let words = words.trim_end().trim_start_matches("error: ");
        let error = CliError::new(Code::Usage, words);
        error.print(true, Paint::decide(When::Never, false, false, false), &Place::default());
        return error.exit().code();
    }
    // It repeats arguments as they came. There is nowhere to report that standard error is gone.
    let _ = std::io::stderr().write_all(printable_lines(&words).as_bytes());
    Exit::Usage.code()
}

fn prepare(globals: &args::Globals) -> (Context, Ui) {
    let ctx = Context::new(globals.data_dir.clone(), globals.set.clone());
    let loudness = match (globals.quiet, globals.verbose) {
        (true, _) => Loudness::Quiet,
        (_, true) => Loudness::Verbose,
        _ => Loudness::Normal,
    };
    let (no_color, force) =
        (ctx.env.get("NO_COLOR").is_some(), ctx.env.get("CLICOLOR_FORCE").is_some_and(|value| value != "0"));
    let paint = |is_terminal| Paint::decide(globals.color, no_color, force, is_terminal);
    let (out, err) = (paint(std::io::stdout().is_terminal()), paint(std::io::stderr().is_terminal()));
    (ctx, Ui::new(globals.json, loudness, out, err, Place::new(globals.data_dir.clone())))
}

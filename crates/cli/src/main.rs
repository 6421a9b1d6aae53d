//! Speaks. The one binary, `baton`: arguments in, a command of the ledger, data on standard output, a public exit code.
//!
//! Start at [`args`] for what can be typed and [`commands`] for what it does.

mod agent_args;
mod args;
mod commands;
mod config;
mod console;
mod context;
mod error;
mod exit;
mod help;
mod ids;
mod input;
mod limits;
mod lines;
mod notices;
mod operate_args;
mod remote;
mod repository;
mod serve;
mod session_args;
mod sessions;
mod task_args;
mod task_names;
mod tasks;
mod telemetry;
mod trace_args;
mod ui;
mod usage;
mod wall;
mod warden;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use console::Console;
use context::{Caller, Context};
use error::{CliError, Code, Stop};
use exit::Exit;
use limits::{CALL_READ_MS, HAND_OVERS_MAX, SOCKET_RETRY_MS};
use serve::HandOver;
use serve::call::Ended;
use ui::color::Paint;
use ui::shell::Place;
use ui::{Loudness, Ui};

fn main() -> ExitCode {
    let argv: Vec<OsString> = std::env::args_os().collect();
    if let Some(code) = warden::run(&argv).or_else(|| wall::run(&argv)) {
        return code;
    }
    // What is acknowledged is durable and what is not can be lost, so an interruption ends the process at once, with its public code.
    let interrupted = i32::from(Exit::Interrupted.code());
    let ends_at_once = Arc::new(AtomicBool::new(true));
    let _ = signal_hook::flag::register_conditional_shutdown(
        signal_hook::consts::SIGINT,
        interrupted,
        ends_at_once.clone(),
    );
    // A limit on file sizes is an error to be told, not a reason to be killed in the middle of a write.
    let _ = signal_hook::flag::register(signal_hook::consts::signal::SIGXFSZ, Arc::default());
    let (mut tries, mut fed) = (0, None);
    loop {
        let cli = match help::parse(&argv) {
            Ok(cli) => cli,
            Err(error) => {
                if !error.use_stderr() {
                    let _ = error.print();
                    return Exit::Ok.code().into();
                }
                return usage::fail(&error, &argv).into();
            }
        };
        let (Ok(console), Ok(kept)) = (Console::own(fed.as_ref()), Console::own(fed.as_ref())) else {
            return Exit::Unexpected.code().into();
        };
        let (ctx, mut ui) = prepare(&cli.globals, console, None, ends_at_once.clone());
        telemetry::install(&ctx.env, cli.globals.verbose);
        if let Err(error) = config::expect_flags(&cli.globals.set) {
            ui.fail(&error);
            return error.exit().code().into();
        }
        let done = match remote::wanted(&cli) {
            Ok(None) => None,
            Ok(Some(server)) => Some(remote::run(&argv, &cli, &mut ui, &server)),
            Err(error) => Some(Err(error)),
        };
        if let Some(done) = done {
            return match done {
                Ok(code) => code.into(),
                Err(error) => {
                    ui.fail(&error);
                    error.exit().code().into()
                }
            };
        }
        let hand_over = match execute(&ctx, &mut ui, cli.command) {
            Ok(code) => return code.into(),
            Err(hand_over) => hand_over,
        };
        tries += 1;
        let patience = ctx.lock_wait().unwrap_or_default().max(Duration::from_millis(CALL_READ_MS));
        let error = match hand_over.run(&argv, &kept, patience) {
            Ok(Ended::Code(code)) => return code.into(),
            // It has not begun, so it is begun anew: here, or by the next owner.
            Ok(Ended::NotBegun(rest)) if tries < HAND_OVERS_MAX => {
                fed = rest.or(fed);
                std::thread::sleep(Duration::from_millis(SOCKET_RETRY_MS));
                continue;
            }
            Ok(Ended::NotBegun(_)) => {
                let what = "the process that owns the data directory does not take this command";
                CliError::new(Code::LockHeld, what).hint("baton doctor")
            }
            Err(error) => error,
        };
        ui.fail(&error);
        return error.exit().code().into();
    }
}

/// Runs a command to its public exit code, or to where another process should do it.
fn execute(ctx: &Context, ui: &mut Ui, command: Option<args::Command>) -> Result<u8, Box<HandOver>> {
    let ended = commands::run(ctx, ui, command).and_then(|exit| ui.flush().map(|()| exit));
    Ok(match ended {
        Ok(exit) => exit.code(),
        Err(Stop::PipeClosed) => Exit::Ok.code(),
        Err(Stop::HandOver(hand_over)) => return Err(hand_over),
        Err(Stop::Error(error)) => {
            // What was found before the error is data too.
            let _ = ui.flush();
            ui.fail(&error);
            error.exit().code()
        }
    })
}

/// Where a command works and whom it speaks to.
fn prepare(
    globals: &args::Globals,
    console: Console,
    caller: Option<Caller>,
    ends_at_once: Arc<AtomicBool>,
) -> (Context, Ui) {
    let Console { stdin, stdout, stderr } = console;
    let ctx = Context::new(globals.data_dir.clone(), globals.set.clone(), stdin, caller, ends_at_once);
    let loudness = match (globals.quiet, globals.verbose) {
        (true, _) => Loudness::Quiet,
        (_, true) => Loudness::Verbose,
        _ => Loudness::Normal,
    };
    let (no_color, force) =
        (ctx.env.get("NO_COLOR").is_some(), ctx.env.get("CLICOLOR_FORCE").is_some_and(|value| value != "0"));
    let paint = |is_terminal| Paint::decide(globals.color, no_color, force, is_terminal);
    let paints = (paint(stdout.is_terminal()), paint(stderr.is_terminal()));
    let place = Place::new(globals.data_dir.clone());
    (ctx, Ui::new((stdout, stderr), paints, globals.json, loudness, place))
}

//! `baton exit check` and `baton exit submit`: the signal with which an agent ends a phase.

use std::path::Path;

use baton_core::limits::EXIT_SIGNAL_BYTES_MAX;
use baton_core::protocol::exit_signal::{ExitReason, ExitSignal, next_phase, parse_flag};
use baton_runtime::Fault;
use baton_runtime::engine::From;
use serde_json::json;

use crate::commands::Ended;
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::input::read_bytes;
use crate::task_args::{ExitCheck, ExitSignal as Command, ExitSubmit};
use crate::task_names::find;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::printable;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Command) -> Ended {
    match command {
        Command::Check(args) => check(ctx, ui, &args),
        Command::Submit(args) => submit(ctx, ui, &args),
    }
}

/// The variable that switches signals on.
pub(crate) const SWITCH: &str = "AGENT_EXIT_PROTOCOL_ENABLED";

/// The switch of the process that decides, which is not always the one that was typed.
fn is_on(ctx: &Context) -> bool {
    parse_flag(ctx.own_variable(SWITCH).as_deref())
}

/// How to switch signals on, where that is what is missing.
fn hint_of_switch(ctx: &Context, ui: &Ui) {
    if is_on(ctx) {
        return;
    }
    if ctx.is_served() {
        ui.note("The process that runs `baton serve` decides this: stop it, and start it again with the switch on.");
        ui.hint(&format!("{SWITCH}=true {}", ui.command("baton serve")));
    } else {
        ui.hint(&format!("export {SWITCH}=true"));
    }
}

/// The signal in a file, judged as the switch says; or why it is none.
fn read(ctx: &Context, file: &Path) -> Result<Result<ExitSignal, String>, Stop> {
    let is_enabled = is_on(ctx);
    let bytes = read_bytes(ctx, file, EXIT_SIGNAL_BYTES_MAX as u64 + 1)?;
    let text = String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
    Ok(ExitSignal::from_json_if_enabled(&text, is_enabled).map_err(|error| error.to_string()))
}

fn check(ctx: &Context, ui: &mut Ui, args: &ExitCheck) -> Ended {
    let answer = read(ctx, &args.file)?.and_then(|signal| {
        next_phase(signal.phase_completed, signal.exit_reason).map_err(|error| error.to_string())
    });
    if ui.json {
        ui.object(&match &answer {
            Ok(next) => json!({"v": 1, "valid": true, "next_phase": next.as_str()}),
            Err(error) => json!({"v": 1, "valid": false, "error": error}),
        })?;
    } else {
        match &answer {
            Ok(next) => {
                ui.line(&format!("{}: the next phase is {next}", ui.paint.mark(Mark::Good, "valid")))?
            }
            Err(error) => {
                ui.line(&format!("{}: {}", ui.paint.mark(Mark::Bad, "invalid"), printable(error)))?;
                hint_of_switch(ctx, ui);
            }
        }
    }
    Ok(if answer.is_ok() { Exit::Ok } else { Exit::Refused })
}

fn submit(ctx: &Context, ui: &mut Ui, args: &ExitSubmit) -> Ended {
    // Whoever owns the data directory decides, the switch included.
    ctx.reach()?;
    let signal = read(ctx, &args.file)?;
    let signal = match signal {
        Ok(signal) => signal,
        Err(error) => {
            // Said of the task where there is one, so that whoever waits for it can look.
            let board = ctx.board()?;
            let id = find(&board.board, &args.task)?;
            let phase = board.board.get(&id).map(|task| task.phase.as_str());
            let ended = refused(ui, phase, &error)?;
            hint_of_switch(ctx, ui);
            return Ok(ended);
        }
    };
    let acting = ctx.acting().map(|acting| acting.agent.clone());
    let agent = acting.or_else(|| args.agent.clone());
    let from = From { session: args.session.clone(), agent, fence: args.fence };
    let tasks = ctx.tasks(ui)?;
    let answer = tasks.look(|board| find(board, &args.task)).map_err(Stop::from).and_then(|found| {
        let id = found?;
        let phase = tasks.look(|board| board.get(&id).map(|task| task.phase.as_str()))?;
        match tasks.submit(&id, &from, &signal) {
            Ok(submission) => Ok(Ok(submission)),
            Err(Fault::Refused(refusal)) => Ok(Err((phase, refusal.to_string()))),
            Err(fault) => Err(fault.into()),
        }
    });
    let submission = match tasks.finish(ui, answer)? {
        Ok(submission) => submission,
        Err((phase, error)) => return refused(ui, phase, &error),
    };
    let (phase, next) = (submission.phase.as_str(), submission.next_phase.as_str());
    if ui.json {
        ui.object(&json!({
            "v": 1,
            "accepted": true,
            "phase": phase,
            "next_phase": next,
            "warnings": submission.warnings,
        }))?;
    } else {
        let word = ui.paint.mark(Mark::Good, "accepted");
        match signal.exit_reason {
            ExitReason::Completed => ui.line(&format!("{word}: {phase} is completed, next is {next}"))?,
            reason @ (ExitReason::Blocked | ExitReason::Error) => {
                ui.line(&format!("{word}: {phase} ended with {}, the task is {next}", reason.as_str()))?;
            }
        }
        submission.warnings.iter().for_each(|warning| ui.warn(warning));
    }
    Ok(Exit::Ok)
}

fn refused(ui: &mut Ui, phase: Option<&str>, error: &str) -> Ended {
    if ui.json {
        ui.object(&json!({
            "v": 1,
            "accepted": false,
            "error": error,
            "phase": phase,
            "next_phase": phase,
            "warnings": [],
        }))?;
    } else {
        ui.line(&format!("{}: {}", ui.paint.mark(Mark::Bad, "refused"), printable(error)))?;
    }
    Ok(Exit::Refused)
}

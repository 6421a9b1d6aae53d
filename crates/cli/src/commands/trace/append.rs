//! `baton trace append ID`: events from a file or a pipe, each decision durable before it is printed.
//!
//! The data directory is held only while there is something to write: between two lines of a slow pipe it is free for others. Where the
//! input never pauses, it is given back now and then all the same.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::path::Path;

use baton_core::TraceId;
use baton_ledger::seal::Receipt;

use super::receipts_json;
use super::speaker::Speaker;
use crate::args::TraceAppend;
use crate::commands::Ended;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::ids;
use crate::input::Input;
use crate::ui::Ui;
use crate::ui::text::count;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TraceAppend) -> Ended {
    // Known before anything is read: nobody types events for a trace that does not exist.
    let trace = ids::trace(&ctx.visit()?.reader, &args.id.trace)?;
    if trace == TraceId::Ledger {
        let what = "the trace `ledger` is Baton's own; nothing is appended to it by hand";
        return Err(CliError::new(Code::Reserved, what).hint("baton trace new").into());
    }
    if args.file == Path::new("-") && std::io::stdin().is_terminal() {
        ui.note("Reading events from standard input; Ctrl-D ends it.");
    }
    let mut input = Input::open(&args.file)?;
    let speaker = Speaker { trace, agent: args.agent.as_ref(), role: args.role };
    let (mut writing, mut recorded) = (None, 0);
    let ended = append_all(ctx, ui, &mut input, &speaker, &mut writing, &mut recorded);
    if let Err(stop) = ended {
        writing.into_iter().for_each(Writing::abandon);
        return Err(match stop {
            Stop::Error(error) if recorded > 0 => {
                let are = if recorded == 1 { "is" } else { "are" };
                error.cause(format!("{} before it {are} recorded", count(recorded, "event"))).into()
            }
            stop => stop,
        });
    }
    writing.map_or(Ok(()), |writing| writing.close(ui))?;
    if recorded == 0 {
        return Err(CliError::new(Code::InputForm, "the input holds no event").into());
    }
    Ok(Exit::Ok)
}

fn append_all(
    ctx: &Context,
    ui: &mut Ui,
    input: &mut Input,
    speaker: &Speaker<'_>,
    writing: &mut Option<Writing>,
    recorded: &mut u64,
) -> Result<(), Stop> {
    let mut agents = BTreeMap::new();
    while let Some(decision) = input.next()? {
        let locate = |error: CliError| {
            if input.line() > 1 {
                error.cause(format!("in line {} of the input", input.line()))
            } else {
                error
            }
        };
        decision.events.iter().try_for_each(|draft| speaker.check(draft)).map_err(locate)?;
        let open = match writing {
            Some(open) => open,
            None => {
                // What is known of agents' keys holds only while nobody else can change it.
                agents = BTreeMap::new();
                writing.insert(ctx.write(ui)?)
            }
        };
        let receipts = speaker.append(open, &mut agents, decision).map_err(locate)?;
        *recorded += receipts.len() as u64;
        match print(ui, speaker.trace, &receipts) {
            // Nobody hears any more what is recorded: that is fine only if it was the last.
            Err(Stop::PipeClosed) if input.next()?.is_some() => {
                let what = "standard output was closed before everything was recorded";
                return Err(CliError::new(Code::Output, what).hint("baton events --follow").into());
            }
            printed => printed?,
        }
        if let Some(open) = writing.take_if(|open| open.is_due() || input.may_wait()) {
            open.close(ui)?;
        }
    }
    Ok(())
}

fn print(ui: &mut Ui, trace: TraceId, receipts: &[(Receipt, String)]) -> Result<(), Stop> {
    if ui.json {
        ui.object(&receipts_json(trace, receipts.iter().map(|(receipt, _)| receipt)))?;
    } else {
        for (receipt, event_type) in receipts {
            ui.line(&format!("pos {}  seq {}  {event_type}  {}", receipt.pos, receipt.seq, receipt.id))?;
        }
    }
    ui.flush()
}

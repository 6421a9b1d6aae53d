//! `baton trace append ID`: events from a file or a pipe, each decision durable before it is printed.
//!
//! The data directory is held only while there is something to write: between two lines of a slow pipe it is free for others. Where the
//! input never pauses, it is given back now and then all the same.

use std::collections::BTreeMap;
use std::path::Path;

use baton_core::{AgentName, TraceId};
use baton_ledger::seal::Receipt;

use super::receipts_json;
use super::speaker::{Known, Speaker};
use crate::commands::{Ended, guarded};
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::input::{Decision, Input};
use crate::limits::DECISIONS_MAX;
use crate::trace_args::TraceAppend;
use crate::ui::Ui;
use crate::ui::text::count;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TraceAppend) -> Ended {
    // Known before anything is read: nobody types events for a trace that does not exist.
    let trace = ctx.trace(&args.id.trace)?;
    if trace == TraceId::Ledger {
        let what = "the trace `ledger` is Baton's own; nothing is appended to it by hand";
        return Err(CliError::new(Code::Reserved, what).hint("baton trace new").into());
    }
    let mut input = Input::open(ctx, &args.file)?;
    if args.file == Path::new("-") && ctx.stdin()?.is_terminal() {
        ui.note("Reading events from standard input; Ctrl-D ends it.");
    }
    let speaker = Speaker { ctx, trace, agent: args.agent.as_ref(), role: args.role };
    let (mut writing, mut recorded) = (None, 0);
    let ended = append_all(ctx, ui, &mut input, &speaker, &mut writing, &mut recorded);
    if let Err(stop) = ended {
        writing.into_iter().for_each(Writing::abandon);
        if let Stop::Error(error) = &stop {
            guarded::note_unappended(ctx, ui, trace, args.agent.as_ref(), error);
        }
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
        let mut drafts = decision.events.iter();
        drafts.try_for_each(|draft| guarded::expect_unplayed(ctx, speaker.trace, draft)).map_err(locate)?;
        let open = match writing {
            Some(open) => open,
            None => {
                // What is known of agents' keys holds only while nobody else can change it.
                agents = BTreeMap::new();
                // Somebody may have begun to serve since: the rest is done there.
                writing.insert(match ctx.write_on(ui) {
                    Err(Stop::HandOver(mut hand_over)) => {
                        hand_over.feeding = input.pass_on()?;
                        return Err(Stop::HandOver(hand_over));
                    }
                    opened => opened?,
                })
            }
        };
        if ctx.is_abandoned() {
            // Whoever handed this over has gone; what it did not hear of is not done.
            return Err(Stop::PipeClosed);
        }
        let receipts = append(speaker, open, &mut agents, decision).map_err(locate)?;
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

/// Appends one decision. Where others write at the same time, what is known of keys is looked up anew, and a register that moved on
/// meanwhile is no conflict.
fn append(
    speaker: &Speaker<'_>,
    open: &Writing,
    agents: &mut BTreeMap<AgentName, Known>,
    decision: Decision,
) -> Result<Vec<(Receipt, String)>, CliError> {
    let is_bound = decision.events.iter().any(|draft| draft.seen.is_some());
    if !open.is_shared() {
        return speaker.append(open, agents, decision);
    }
    for _ in 1..DECISIONS_MAX {
        agents.clear();
        match speaker.append(open, agents, decision.clone()) {
            Err(error) if error.code == Code::HeadMoved && !is_bound => {}
            ended => return ended,
        }
    }
    speaker.append(open, agents, decision)
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

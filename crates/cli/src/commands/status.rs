//! Bare `baton`: where you stand, and what to type next.

use std::path::Path;

use baton_ledger::record::Line;
use baton_runtime::conduct::Asks;
use baton_store::journal::recover::Tail;
use baton_store::{History as _, Visit, clock, lock};
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::commands::standing::{Standing, ci_runs};
use crate::context::{Context, visit};
use crate::error::{CliError, Stop};
use crate::exit::Exit;
use crate::serve::is_until_idle;
use crate::tasks::read_board;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable};
use crate::ui::time::ago;

pub(super) fn run(ctx: &Context, ui: &mut Ui) -> Ended {
    let layout = match ctx.layout() {
        Ok(layout) => layout,
        Err(error) => {
            warn_of_config(ctx, ui, None);
            return nothing_yet(ui, &error);
        }
    };
    let has_config = warn_of_config(ctx, ui, Some(layout.root()));
    let visit = visit(&layout)?;
    let owner = lock::holder(&layout).ok().flatten();
    // The ledger's own trace is one of them, here as everywhere.
    let traces = visit.reader.traces();
    let has_work = traces.iter().any(|trace| trace.trace != baton_core::TraceId::Ledger);
    let last = last_event(&visit)?;
    let board = read_board(&visit)?.board;
    let standing = Standing::of(&board, owner.is_some(), |task| Asks::of(&visit.reader, task));
    if ui.json {
        let owner = owner.map(|owner| json!({"pid": owner.pid, "command": owner.command}));
        ui.object(&json!({
            "v": 1,
            "dataDir": layout.root().display().to_string(),
            "origin": visit.reader.ledger().origin.as_str(),
            "events": visit.reader.size(),
            "traces": traces.len(),
            "last": last.as_ref().map(|(last, _)| last.clone()),
            "owner": owner,
            "tasks": standing.to_json(),
        }))?;
        return Ok(Exit::Ok);
    }
    let mut say = |name: &str, text: &str| ui.line(&format!("{name:<15} {text}"));
    say("data directory", &printable(&layout.root().display().to_string()))?;
    say(
        "ledger",
        &format!("{} in {}", count(visit.reader.size(), "event"), count(traces.len() as u64, "trace")),
    )?;
    if let Some((_, text)) = last {
        say("last event", &text)?;
    }
    match owner {
        Some(owner) => {
            let until = if is_until_idle(&owner.command) { ", which ends with its last session" } else { "" };
            say("in use by", &format!("process {} ({}){until}", owner.pid, printable(&owner.command)))?;
        }
        None => say("in use by", "nobody")?,
    }
    standing.print(ui, clock::now())?;
    let mut steps = standing.next(ctx, ci_runs(ctx));
    match visit.reader.tail {
        Tail::Damaged { .. } => {
            ui.warn("the ledger is damaged; nothing can be appended");
            steps = vec![("baton verify".to_owned(), "see what is wrong")];
        }
        _ if !has_config => {
            steps = vec![("baton config show".to_owned(), "see what is wrong with the configuration")];
        }
        _ if has_work => {
            steps.push(("baton events --follow".to_owned(), "watch what happens"));
            steps.push(("baton verify".to_owned(), "check that nothing was altered"));
        }
        _ => {}
    }
    let steps: Vec<(&str, &str)> = steps.iter().map(|(command, why)| (command.as_str(), *why)).collect();
    next(ui, &steps)?;
    Ok(Exit::Ok)
}

/// Says in one line what is wrong with the configuration, and whether nothing is: every command that uses it is going to fail.
fn warn_of_config(ctx: &Context, ui: &Ui, data_dir: Option<&Path>) -> bool {
    let Err(error) = ctx.config(data_dir) else { return true };
    // A file's errors start with `path:line:column`; the rest of them is an excerpt.
    let text = match error.causes.first() {
        Some(place) => format!("the configuration cannot be used: {place}: {}", error.what),
        None => format!("the configuration cannot be used: {}", error.what),
    };
    ui.warn(&text);
    false
}

fn nothing_yet(ui: &mut Ui, error: &CliError) -> Ended {
    let init = error.hint.as_deref().unwrap_or("baton init");
    if ui.json {
        ui.object(&json!({"v": 1, "dataDir": null, "next": init}))?;
    } else {
        ui.line(&format!("There is {}.", printable(&error.what)))?;
        next(ui, &[(init, "make one"), ("baton --help", "see all commands")])?;
    }
    Ok(Exit::Ok)
}

/// What to type next, each command with what it is for; a long one does not run into that.
fn next(ui: &mut Ui, steps: &[(&str, &str)]) -> Result<(), Stop> {
    if ui.is_quiet() {
        return Ok(());
    }
    ui.line("")?;
    let commands: Vec<String> = steps.iter().map(|(command, _)| printable(&ui.command(command))).collect();
    let width = commands.iter().map(|command| command.chars().count()).max().unwrap_or(0).max(28);
    for (command, (_, why)) in commands.iter().zip(steps) {
        let command = ui.paint.mark(Mark::Hint, &format!("{command:<width$}"));
        ui.line(&format!("  {command}  {why}"))?;
    }
    Ok(())
}

/// The last event, for programs and for people.
fn last_event(visit: &Visit) -> Result<Option<(Value, String)>, baton_store::ReadError> {
    let lines = visit.reader.read(visit.reader.size(), 1)?;
    Ok(lines.first().and_then(|stored| {
        let line = Line::parse(stored.text.as_bytes()).ok()?;
        let value = json!({"pos": line.pos, "type": line.event_type, "at": line.at.to_string()});
        Some((value, format!("{} by {}, {}", line.event_type, line.agent, ago(line.at, clock::now()))))
    }))
}

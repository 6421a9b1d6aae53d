//! `baton notify`: what could not be delivered, and another try.

use baton_runtime::notify::{Tally, dead_letters};
use serde_json::{Value, json};

use crate::args::{Notify, NotifyFlush};
use crate::commands::Ended;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::limits::{FLUSH_WAIT, TELLING_WAIT};
use crate::notices::{Begun, Telling, late, sinks, start, tree};
use crate::serve::socket;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};
use crate::ui::text::{count, printable};
use crate::ui::time::ago;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: &Notify) -> Ended {
    match command {
        Notify::Ls => list(ctx, ui),
        Notify::Retry => deliver(ctx, ui, None, true),
        Notify::Flush(NotifyFlush { since }) => deliver(ctx, ui, *since, false),
    }
}

fn list(ctx: &Context, ui: &mut Ui) -> Ended {
    let layout = ctx.layout()?;
    let dead = dead_letters(&tree(&layout)?)
        .map_err(|error| CliError::io("read", &layout.root().join("notifications"), &error))?;
    if ui.json {
        let list: Vec<Value> = dead
            .iter()
            .map(|letter| {
                json!({
                    "sink": letter.sink.as_str(),
                    "delivery": letter.delivery,
                    "attempts": letter.attempts,
                    "reason": letter.reason,
                    "at": letter.at.to_string(),
                    "event": letter.event,
                })
            })
            .collect();
        ui.object(&json!({"v": 1, "dead": list}))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new(&[
        ("given up", Align::Left),
        ("receiver", Align::Left),
        ("attempts", Align::Right),
        ("task", Align::Left),
        ("reason", Align::Left),
    ]);
    for letter in &dead {
        let task = letter.event.get("task").and_then(Value::as_str).unwrap_or_default();
        table.row(vec![
            ago(letter.at, baton_store::clock::now()),
            letter.sink.as_str().to_owned(),
            letter.attempts.to_string(),
            printable(task),
            printable(&letter.reason),
        ]);
    }
    if dead.is_empty() {
        ui.note("Everything was delivered.");
        return Ok(Exit::Ok);
    }
    ui.table(table)?;
    ui.hint("baton notify retry");
    Ok(Exit::Ok)
}

fn deliver(ctx: &Context, ui: &mut Ui, since: Option<u64>, is_retry: bool) -> Ended {
    let layout = ctx.layout()?;
    let settings = ctx.settings(Some(layout.root()))?;
    let sinks = sinks(&settings, ctx.work_dir(layout.root()))?;
    let notifier = start(&layout, sinks)?;
    let mut told = 0;
    if let Some(since) = since {
        // Looked at in its turn: what others told until then is told.
        match Telling::begin(&layout, TELLING_WAIT, &|| socket::connect(ctx, &layout).is_some())? {
            Begun::Ours(mut telling) => {
                let missed = telling.catch_up(&notifier, &ctx.visit()?, Some(since))?;
                missed.notice().iter().for_each(|notice| ui.warn(notice));
                told = missed.moved.len();
            }
            Begun::Elsewhere => {
                ui.note("the process that owns the data directory tells of what happens itself")
            }
            Begun::Late => return Err(late(&layout).into()),
        }
    }
    let mut revived = 0;
    if is_retry {
        revived = notifier
            .retry_dead()
            .map_err(|error| CliError::io("read", &layout.root().join("notifications"), &error))?;
    }
    let left = notifier.stop(FLUSH_WAIT);
    for notice in notifier.take_notices() {
        ui.warn(&notice);
    }
    let Tally { elsewhere, delivered, given_up, .. } = notifier.tally();
    let waiting = left.saturating_sub(elsewhere) as u64;
    let elsewhere = elsewhere as u64;
    if ui.json {
        ui.object(&json!({
            "v": 1, "told": told, "revived": revived, "delivered": delivered, "givenUp": given_up,
            "elsewhere": elsewhere, "waiting": waiting,
        }))?;
        return Ok(Exit::Ok);
    }
    let notifications = |number| count(number, "notification");
    if delivered > 0 {
        ui.line(&format!("{} delivered.", notifications(delivered)))?;
    }
    if elsewhere > 0 {
        ui.line(&format!("{} being sent by another process.", notifications(elsewhere)))?;
    }
    if waiting > 0 {
        ui.line(&format!("{} not delivered yet.", notifications(waiting)))?;
    }
    if given_up > 0 {
        ui.line(&format!("{} given up.", notifications(given_up)))?;
        ui.hint("baton notify ls");
    }
    if delivered + elsewhere + waiting + given_up == 0 {
        ui.line("Nothing waits to be delivered.")?;
    }
    Ok(Exit::Ok)
}

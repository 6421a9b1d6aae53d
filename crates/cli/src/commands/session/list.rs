//! `baton session ls`: all of them, or page by page.

use baton_core::Timestamp;
use baton_core::session::StateKind;
use baton_runtime::session::{Row, Wanted, list_in};
use baton_store::clock;
use serde_json::{Value, json};

use super::show::put;
use crate::commands::Ended;
use crate::commands::ending::{Stopped, ending};
use crate::context::Context;
use crate::exit::Exit;
use crate::session_args::SessionLs;
use crate::sessions;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};
use crate::ui::time::ago;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &SessionLs) -> Ended {
    let owner = super::owner(ctx, ui)?;
    let wanted = Wanted {
        is_live: args.live,
        ids: args.ids.iter().copied().collect(),
        before: args.before,
        limit: args.limit.map(|limit| limit as usize),
    };
    let page = match &owner {
        Some(owner) => owner.broker.list(&wanted),
        None => list_in(&sessions::dir_of(&ctx.layout()?), &wanted),
    };
    let next = page.rows.last().filter(|_| page.has_more).map(|row| row.snapshot.id.to_string());
    if ui.json {
        let rows: Vec<Value> = page.rows.iter().map(|row| to_json(row, owner.is_some())).collect();
        let mut object = json!({"v": 1, "sessions": rows});
        put(&mut object, "next", next.map(Value::String));
        ui.object(&object)?;
        return Ok(Exit::Ok);
    }
    if page.rows.is_empty() {
        ui.note("no sessions");
        ui.hint("baton run \"what is to be done\" --agent mock");
        return Ok(Exit::Ok);
    }
    let left = Align::Left;
    let columns = ["session", "agent", "state", "started", "task", "end"].map(|name| (name, left));
    let mut table = Table::new(&columns);
    let now: Timestamp = clock::now();
    let board = super::board(ctx);
    for Row { snapshot, state, .. } in &page.rows {
        let state = state.unwrap_or(StateKind::Stopped);
        let end = match (&snapshot.ended, state) {
            (Some(data), _) => ending(data, &Stopped::on(&board, snapshot)),
            // Whoever owns the data directory next sees to it.
            (None, StateKind::Stopped) if owner.is_none() => "cut short: its owner is gone".to_owned(),
            (None, _) => String::new(),
        };
        table.row(vec![
            snapshot.id.to_string(),
            snapshot.agent.to_string(),
            state.to_string(),
            ago(snapshot.started_at, now),
            snapshot.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            end,
        ]);
    }
    ui.table(table)?;
    if let (Some(next), Some(limit)) = (next, args.limit) {
        let live = if args.live { " --live" } else { "" };
        ui.hint(&format!("baton session ls{live} --limit {limit} --before {next}"));
    }
    Ok(Exit::Ok)
}

/// A session of a list. What it wrote on its standard error may be long, and is shown with the session itself.
fn to_json(row: &Row, is_owned: bool) -> Value {
    let Row { snapshot, state, permissions } = row;
    let mut object = json!({
        "id": snapshot.id.to_string(),
        "agent": snapshot.agent.as_str(),
        "harness": snapshot.harness,
        "state": state.unwrap_or(StateKind::Stopped).as_str(),
        "startedAt": snapshot.started_at.to_string(),
    });
    put(&mut object, "taskId", snapshot.task.as_ref().map(|task| task.as_str().into()));
    put(&mut object, "endedAt", snapshot.ended_at.map(|at| at.to_string().into()));
    let asks = Some(permissions).filter(|asks| !asks.is_empty());
    put(&mut object, "pendingPermissions", asks.and_then(|asks| serde_json::to_value(asks).ok()));
    let is_cut = !is_owned && snapshot.ended.is_none();
    put(&mut object, "cutShort", (is_cut || snapshot.is_cut_short).then_some(true.into()));
    let ended = snapshot.ended.clone().map(|mut data| {
        data.stderr = None;
        data
    });
    put(&mut object, "terminationInfo", ended.and_then(|data| serde_json::to_value(data).ok()));
    object
}

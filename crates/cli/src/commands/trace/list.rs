//! `baton trace ls`: every trace at a glance, in the order of their first events.

use baton_core::{Payload, Timestamp, TraceId};
use baton_store::journal::recover::Tail;
use baton_store::{History, TraceSummary, clock};
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::commands::events::parse;
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::ids::unique_lengths;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;
use crate::ui::time::ago;

pub(super) fn run(ctx: &Context, ui: &mut Ui) -> Ended {
    let visit = ctx.visit()?;
    let traces = visit.reader.traces();
    if ui.json {
        let list =
            traces.iter().map(|summary| to_json(&visit.reader, summary)).collect::<Result<Vec<_>, _>>()?;
        let mut shown = json!({"v": 1, "traces": list});
        if let Tail::Damaged { line, why } = &visit.reader.tail {
            shown["damage"] = json!({"pos": line, "why": why});
        }
        ui.object(&shown)?;
        return Ok(Exit::Ok);
    }
    let ids: Vec<String> = traces.iter().map(|summary| summary.trace.to_string()).collect();
    let lengths = unique_lengths(&ids);
    let now = clock::now();
    let mut table = Table::new(&[
        ("trace", Align::Left),
        ("events", Align::Right),
        ("state", Align::Left),
        ("last event", Align::Left),
        ("title", Align::Left),
    ]);
    for ((summary, id), length) in traces.iter().zip(&ids).zip(lengths) {
        let (enough, rest) = id.split_at(length);
        let id = ui.paint.mark(Mark::Id, enough) + &ui.paint.mark(Mark::Dim, rest);
        let last = last_at(&visit.reader, summary)?.map(|at| ago(at, now)).unwrap_or_default();
        let title = title(&visit.reader, summary)?.unwrap_or_default();
        let state = if summary.is_closed { "closed" } else { "open" };
        table.row(vec![id, summary.seq.to_string(), state.into(), last, printable(&title)]);
    }
    ui.table(table)?;
    if let Tail::Damaged { line, why } = &visit.reader.tail {
        ui.warn(&format!(
            "the ledger is damaged from event {line} on, and what comes after is not listed: {why}"
        ));
        ui.hint("baton verify");
        return Ok(Exit::Ok);
    }
    if !traces.iter().any(|summary| summary.trace != TraceId::Ledger) {
        ui.hint("baton trace new --title \"what you are about to do\"");
    }
    Ok(Exit::Ok)
}

fn to_json(journal: &dyn History, summary: &TraceSummary) -> Result<Value, Stop> {
    let mut out = json!({
        "trace": summary.trace.to_string(),
        "events": summary.seq,
        "head": summary.head.to_string(),
        "closed": summary.is_closed,
    });
    if let Some(title) = title(journal, summary)? {
        out["title"] = title.into();
    }
    Ok(out)
}

/// The title that a trace was opened with.
pub(super) fn title(journal: &dyn History, summary: &TraceSummary) -> Result<Option<String>, Stop> {
    let lines = journal.read(summary.first_pos, 1)?;
    let Some(stored) = lines.first() else { return Ok(None) };
    let line = parse(stored)?;
    Ok(match line.to_payload() {
        Ok(Payload::TraceOpened { title }) => title,
        _ => None,
    })
}

fn last_at(journal: &dyn History, summary: &TraceSummary) -> Result<Option<Timestamp>, Stop> {
    let lines = journal.read(summary.last_pos, 1)?;
    Ok(lines.first().map(parse).transpose()?.map(|line| line.at))
}

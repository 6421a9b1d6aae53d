//! `baton trace show ID`: the events of one trace, in order; of a guarded run, as a story.

use baton_ledger::record::Line;
use baton_store::{History as _, ReadError, StoredLine, TraceSummary, Visit};

use super::list::title;
use super::story;
use crate::commands::Ended;
use crate::commands::events::parse;
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::ids;
use crate::limits::READ_LINES;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable, shorten};
use crate::ui::time::exact;

/// Characters of a payload that are shown at a terminal.
const PAYLOAD_CHARS: usize = 48;

pub(super) fn run(ctx: &Context, ui: &mut Ui, id: &str) -> Ended {
    let visit = ctx.visit()?;
    let trace = ids::trace_of(&visit, id)?;
    let Some(summary) = visit.reader.trace(trace) else { return Ok(Exit::Ok) };
    if ui.json {
        // Written piece by piece: a trace may be larger than memory.
        ui.raw(&format!("{{\"v\":1,\"trace\":\"{trace}\",\"closed\":{},\"events\":[", summary.is_closed))?;
        let mut is_first = true;
        each_line(&visit, &summary, &mut |stored| {
            if !std::mem::take(&mut is_first) {
                ui.raw(",")?;
            }
            ui.raw(&stored.text)
        })?;
        ui.line("]}")?;
        return Ok(Exit::Ok);
    }
    let title =
        title(&visit.reader, &summary)?.map(|title| format!("  {}", printable(&title))).unwrap_or_default();
    let state = if summary.is_closed { "closed" } else { "open" };
    ui.line(&format!("{}{title}", ui.paint.mark(Mark::Id, &trace.to_string())))?;
    ui.line(&format!("{state}, {}, head {}", count(summary.seq, "event"), summary.head))?;
    if let Some(run) = story::run_of(&visit, &summary)? {
        ui.line(&story::standing(ui, &run))?;
        ui.line("")?;
        story::tell(ui, &visit, &summary)?;
        return Ok(Exit::Ok);
    }
    ui.line("")?;
    each_line(&visit, &summary, &mut |stored| {
        let row = row(ui, &parse(stored)?);
        ui.line(&row)
    })?;
    Ok(Exit::Ok)
}

fn row(ui: &Ui, line: &Line<'_>) -> String {
    let mark = |text: &str| ui.paint.mark(Mark::Dim, text);
    let actor = format!("{}/{}", line.agent, line.role);
    let signed = if line.sig.is_some() { "signed" } else { "" };
    let payload = if line.payload == "{}" { String::new() } else { printable(line.payload) };
    // What is piped is not cut.
    let payload = if ui.width().is_some() { shorten(&payload, PAYLOAD_CHARS) } else { payload };
    let text = format!(
        "{:>5}  {}  {:<22}  {actor:<20}  {signed:<6}  {}",
        line.seq,
        mark(&exact(line.at)),
        line.event_type,
        mark(&payload)
    );
    text.trim_end().to_owned()
}

/// Hands out the lines of a trace, in bounded memory.
pub(super) fn each_line(
    visit: &Visit,
    summary: &TraceSummary,
    show: &mut dyn FnMut(&StoredLine) -> Result<(), Stop>,
) -> Result<(), Stop> {
    let mut seq = 1;
    while seq <= summary.seq {
        let lines = visit.reader.read_trace(summary.trace, seq, READ_LINES)?;
        if lines.is_empty() {
            let why = format!("number {seq} of {} is missing", summary.trace);
            return Err(ReadError::Damaged { pos: summary.last_pos, why }.into());
        }
        seq += lines.len() as u64;
        lines.iter().try_for_each(&mut *show)?;
    }
    Ok(())
}

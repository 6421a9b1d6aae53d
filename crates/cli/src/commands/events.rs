//! `baton events`: the journal in order, one line per event; `--follow` goes on with what a running writer adds.

use std::time::Duration;

use baton_core::TraceId;
use baton_ledger::record::{Flaw, Line};
use baton_store::journal::recover::Tail;
use baton_store::{History as _, ReadError, StoredLine};

use crate::args::Events;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::ids;
use crate::limits::FOLLOW_POLL_MS;
use crate::lines::{Lines, Next};
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::time::exact;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Events) -> Ended {
    let visit = ctx.visit()?;
    let trace = args.trace.as_deref().map(|text| ids::trace(&visit.reader, text)).transpose()?;
    let filter = Filter { args, trace };
    let mut lines = Lines::open(&visit.layout, args.since.saturating_add(1))?;
    let size = visit.reader.size();
    let mut pos = args.since;
    while pos < size {
        match lines.next()? {
            Next::Line(line) => {
                pos = line.pos;
                filter.show(ui, &line)?;
            }
            Next::Bad { pos, why } => return Err(ReadError::Damaged { pos, why }.into()),
            Next::End => {
                return Err(ReadError::Damaged { pos: pos + 1, why: "it is missing".into() }.into());
            }
        }
    }
    if let Tail::Damaged { line, why } = &visit.reader.tail {
        ui.flush()?;
        let why = why.clone();
        return Err(ReadError::Damaged { pos: *line, why }.into());
    }
    if !args.follow {
        return Ok(Exit::Ok);
    }
    ui.flush()?;
    follow(ui, &mut lines, &filter)
}

/// Shows what comes, as it comes. Ends only by a signal, a closed pipe or an error.
fn follow(ui: &mut Ui, lines: &mut Lines, filter: &Filter<'_>) -> Ended {
    loop {
        match lines.next()? {
            Next::Line(line) => {
                if filter.show(ui, &line)? {
                    ui.flush()?;
                }
            }
            // A line that is just being written is bad until it is whole.
            Next::End | Next::Bad { .. } => ui.wait(Duration::from_millis(FOLLOW_POLL_MS))?,
        }
    }
}

/// What is shown of the stream.
struct Filter<'a> {
    args: &'a Events,
    trace: Option<TraceId>,
}

impl Filter<'_> {
    fn show(&self, ui: &mut Ui, stored: &StoredLine) -> Result<bool, Stop> {
        let line = parse(stored)?;
        let is_wanted = self.trace.is_none_or(|trace| trace == line.trace)
            && (self.args.types.is_empty() || self.args.types.iter().any(|t| t.as_str() == line.event_type))
            && self.args.task.as_ref().is_none_or(|task| line.task == Some(task.as_str()));
        if is_wanted {
            if ui.json {
                ui.line(line.text)?;
            } else {
                let row = row(ui, &line);
                ui.line(&row)?;
            }
        }
        Ok(is_wanted)
    }
}

/// A stored line as a record.
pub(super) fn parse(stored: &StoredLine) -> Result<Line<'_>, ReadError> {
    Line::parse(stored.text.as_bytes())
        .map_err(|flaw: Flaw| ReadError::Damaged { pos: stored.pos, why: flaw.to_string() })
}

/// One event in one line, for people.
fn row(ui: &Ui, line: &Line<'_>) -> String {
    let trace = ui.paint.mark(Mark::Id, &format!("{:<17}", ids::short(line.trace)));
    let time = ui.paint.mark(Mark::Dim, &exact(line.at));
    let actor = format!("{}/{}", line.agent, line.role);
    let signed = if line.sig.is_some() { ui.paint.mark(Mark::Good, "signed") } else { "unsigned".to_owned() };
    // Every part has a grammar without control characters.
    format!("{:>8}  {time}  {trace}  {:<26}  {actor:<24}  {signed}", line.pos, line.event_type)
}

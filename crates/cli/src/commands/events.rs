//! `baton events`: the journal in order, one line per event; `--follow` goes on with what a running writer adds.

use std::collections::BTreeSet;
use std::time::Duration;

use baton_core::nearest::nearest;
use baton_core::roles::role_required;
use baton_core::task::TaskEvent;
use baton_core::{EventType, Payload, Token, TraceId};
use baton_ledger::record::{Flaw, Line};
use baton_store::journal::recover::Tail;
use baton_store::{History as _, ReadError, StoredLine, Visit};

use crate::args::Events;
use crate::commands::{Ended, event_row};
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::ids;
use crate::limits::FOLLOW_POLL_MS;
use crate::lines::{Lines, Next};
use crate::task_names::find;
use crate::tasks::{no_task, read_board};
use crate::ui::Ui;

/// Types that are remembered of those that were come across.
const TYPES_MAX: usize = 256;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Events) -> Ended {
    let visit = ctx.visit()?;
    let trace = args.trace.as_deref().map(|text| ids::trace(&visit.reader, text)).transpose()?;
    let task = args.task.as_ref().map(|task| known_task(&visit, task)).transpose()?;
    let filter = Filter { args, trace, task };
    let mut found = Found::default();
    // Whether there is such a task at all may show only in events before the first that is wanted.
    let since = if filter.has_unknown_task() { 0 } else { args.since };
    let mut lines = Lines::open(&visit.layout, since.saturating_add(1))?;
    let size = visit.reader.size();
    let mut pos = since;
    while pos < size {
        match lines.next()? {
            Next::Line(line) => {
                pos = line.pos;
                filter.look(ui, &line, &mut found)?;
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
    ui.flush()?;
    filter.say_missing(ui, &found)?;
    if !args.follow {
        return Ok(Exit::Ok);
    }
    follow(ui, &mut lines, &filter)
}

/// A task as the filter names it.
struct TaskFilter {
    id: String,
    /// Whether the board has it. Events may also be about tasks that Baton does not keep.
    is_known: bool,
}

/// The task that a text names, or a text that only events know.
fn known_task(visit: &Visit, text: &Token) -> Result<TaskFilter, CliError> {
    let unknown = || TaskFilter { id: text.to_string(), is_known: false };
    // Where the board cannot be read, the events are shown all the same, up to where they cannot be.
    let Ok(saved) = read_board(visit) else { return Ok(unknown()) };
    match find(&saved.board, text.as_str()) {
        Ok(id) => Ok(TaskFilter { id: id.to_string(), is_known: true }),
        Err(error) if error.code == Code::NoTask => Ok(unknown()),
        Err(error) => Err(error),
    }
}

/// Shows what comes, as it comes. Ends only by a signal, a closed pipe or an error.
fn follow(ui: &mut Ui, lines: &mut Lines, filter: &Filter<'_>) -> Ended {
    loop {
        match lines.next()? {
            Next::Line(line) => {
                if filter.look(ui, &line, &mut Found::default())? {
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
    task: Option<TaskFilter>,
}

/// What was come across while events were looked at.
#[derive(Default)]
struct Found {
    has_shown: bool,
    has_task: bool,
    /// Bounded: who invents more has typed none of them.
    types: BTreeSet<String>,
}

impl Filter<'_> {
    fn has_unknown_task(&self) -> bool {
        self.task.as_ref().is_some_and(|task| !task.is_known)
    }

    /// Shows an event if it is wanted, and says whether it is.
    fn look(&self, ui: &mut Ui, stored: &StoredLine, found: &mut Found) -> Result<bool, Stop> {
        let line = parse(stored)?;
        let is_of_task = self.task.as_ref().is_none_or(|task| line.task == Some(task.id.as_str()));
        found.has_task |= is_of_task;
        if found.types.len() < TYPES_MAX && !found.types.contains(line.event_type) {
            found.types.insert(line.event_type.to_owned());
        }
        let is_wanted = line.pos > self.args.since
            && self.trace.is_none_or(|trace| trace == line.trace)
            && (self.args.types.is_empty() || self.args.types.iter().any(|t| t.as_str() == line.event_type))
            && is_of_task;
        found.has_shown |= is_wanted;
        if is_wanted {
            if ui.json {
                ui.line(line.text)?;
            } else {
                let row = event_row::row(ui, &line);
                ui.line(&row)?;
            }
        }
        Ok(is_wanted)
    }

    /// Nothing is shown for a name that was mistyped: that is said, and so is that nothing matches.
    fn say_missing(&self, ui: &Ui, found: &Found) -> Result<(), CliError> {
        if let Some(task) = self.task.as_ref().filter(|task| !task.is_known && !found.has_task) {
            if !self.args.follow {
                return Err(no_task(&task.id));
            }
            ui.warn(&format!("there is no task {} yet", task.id));
        }
        for given in self.args.types.iter().map(EventType::as_str) {
            if !is_known_type(given) && !found.types.contains(given) {
                let mut known: Vec<&str> = known_types().collect();
                known.extend(found.types.iter().map(String::as_str));
                let near = nearest(given, known, 1);
                let near = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                let after = match self.args.since {
                    0 => String::new(),
                    since => format!(" after {since}"),
                };
                ui.warn(&format!("no event{after} has the type {given}{near}"));
            }
        }
        if !found.has_shown {
            let waits = if self.args.follow { " yet" } else { "" };
            ui.note(&format!("No events match{waits}."));
        }
        Ok(())
    }
}

/// Types that Baton itself knows of; agents may record others.
fn known_types() -> impl Iterator<Item = &'static str> {
    Payload::TYPES.iter().chain(TaskEvent::TYPES).copied().chain(["note"])
}

fn is_known_type(event_type: &str) -> bool {
    known_types().any(|known| known == event_type) || role_required(event_type).is_some()
}

/// A stored line as a record.
pub(super) fn parse(stored: &StoredLine) -> Result<Line<'_>, ReadError> {
    Line::parse(stored.text.as_bytes())
        .map_err(|flaw: Flaw| ReadError::Damaged { pos: stored.pos, why: flaw.to_string() })
}

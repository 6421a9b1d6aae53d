//! Tasks rebuilt from the ledger: the board from every event, or one task from its own.

use std::collections::BTreeSet;

use baton_core::TaskId;
use baton_core::event::Payload;
use baton_core::ids::TypeName;
use baton_core::task::apply::At;
use baton_core::task::{Board, Papers, Task, TaskEvent};
use baton_ledger::record::Line;

use crate::ports::{History, ReadError, StoredLine};

/// Lines that are read at once.
pub const LINES_AT_ONCE: usize = 1024;

/// The parts of a stored record that tasks are folded from.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    pub at: At,
    pub task: Option<String>,
    pub payload: Payload,
}

impl Fact {
    /// Reads a stored line.
    pub fn read(stored: &StoredLine) -> Result<Fact, ReadError> {
        let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
        let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
        Fact::of(&line).map_err(damaged)
    }

    /// Takes a record's parts.
    pub fn of(line: &Line<'_>) -> Result<Fact, String> {
        let at = At { pos: line.pos, trace: line.trace, seq: line.seq, time: line.at };
        let task = line.task.map(str::to_owned);
        // Only what tasks are made of is taken apart.
        let is_wanted = line.event_type == "trace.closed" || TaskEvent::TYPES.contains(&line.event_type);
        let payload = match (is_wanted, line.event_type.parse::<TypeName>()) {
            (true, _) => line.to_payload()?,
            (false, Ok(event_type)) => Payload::Other { event_type, fields: Default::default() },
            (false, Err(error)) => return Err(error.to_string()),
        };
        Ok(Fact { at, task, payload })
    }

    pub fn event(&self) -> Option<TaskEvent> {
        match &self.payload {
            Payload::Other { event_type, fields } => TaskEvent::read(event_type.as_str(), fields)?.ok(),
            _ => None,
        }
    }
}

/// Applies everything that the journal has beyond what the board knows, and gives the tasks that it touched.
pub fn catch_up(board: &mut Board, history: &dyn History) -> Result<BTreeSet<TaskId>, ReadError> {
    catch_up_with(board, history, &mut |_, _| {})
}

/// The same, and shows each event once it is applied.
pub fn catch_up_with(
    board: &mut Board,
    history: &dyn History,
    show: &mut dyn FnMut(&Board, &Fact),
) -> Result<BTreeSet<TaskId>, ReadError> {
    let mut touched = BTreeSet::new();
    while board.pos() < history.size() {
        let lines = history.read(board.pos() + 1, LINES_AT_ONCE)?;
        if lines.is_empty() {
            let why = "it is missing".to_owned();
            return Err(ReadError::Damaged { pos: board.pos() + 1, why });
        }
        for stored in &lines {
            let fact = Fact::read(stored)?;
            // A task's event that does not read is nothing that Baton wrote: the verifier's business, not a reason to stop.
            let _ = board.apply(fact.task.as_deref(), &fact.payload, fact.at);
            let id = match &fact.task {
                Some(task) => task.parse().ok().filter(|id| board.get(id).is_some()),
                None => board.of_trace(fact.at.trace).map(|task| task.id.clone()),
            };
            touched.extend(id);
            show(board, &fact);
        }
    }
    Ok(touched)
}

/// One task as it was at a revision of its file (or is now), with its texts.
pub fn fold(history: &dyn History, task: &Task, rev: Option<u64>) -> Result<(Task, Papers), ReadError> {
    let mut made: Option<Task> = None;
    let mut papers = Papers::default();
    let mut take = |fact: &Fact| {
        if rev.is_some_and(|rev| made.as_ref().is_some_and(|task| task.rev() >= rev)) {
            return;
        }
        let event = fact.event();
        match (&mut made, &event) {
            (None, Some(TaskEvent::Created(created))) => {
                made = Some(Task::create(task.id.clone(), created, fact.at));
            }
            (Some(made), Some(event)) => made.apply(event, fact.at),
            (Some(made), None) => {
                made.advance(fact.payload.event_type(), fact.at);
                made.is_closed |= matches!(fact.payload, Payload::TraceClosed { .. });
            }
            (None, _) => {}
        }
        if let Some(event) = &event {
            papers.apply(event, fact.at.time);
        }
    };
    each_fact(history, task, &mut take)?;
    let missing =
        || ReadError::Damaged { pos: 0, why: format!("the trace of {} does not begin with it", task.id) };
    Ok((made.ok_or_else(missing)?, papers))
}

/// Shows everything that happened to a task, in order: its trace, and what came after that was closed.
pub fn each_fact(history: &dyn History, task: &Task, show: &mut dyn FnMut(&Fact)) -> Result<(), ReadError> {
    let mut seq = 1;
    loop {
        let lines = history.read_trace(task.trace, seq, LINES_AT_ONCE)?;
        for stored in &lines {
            let fact = Fact::read(stored)?;
            show(&fact);
            seq = fact.at.seq + 1;
        }
        if lines.len() < LINES_AT_ONCE {
            break;
        }
    }
    for pos in &task.afterwards {
        if let Some(stored) = history.read(*pos, 1)?.first() {
            show(&Fact::read(stored)?);
        }
    }
    Ok(())
}

//! Wishes that wait together are recorded with one sync. Their files follow, when nobody waits.
//!
//! Those that have nothing to do with each other, each about another task that depends on no other, are decided on the same board, which is the same as one after
//! the other. Everything else is decided by itself: what makes a task, changes its fields, or looks at other tasks.

use std::collections::{BTreeSet, VecDeque};
use std::sync::{PoisonError, TryLockError};
use std::time::{Duration, Instant};

use baton_core::TaskId;
use baton_core::event::{Actor, Event};
use baton_core::task::decide::Moment;
use baton_core::task::{Board, Papers, Task};
use baton_ledger::seal::Refusal as Unsealed;
use baton_store::AppendError;
use baton_store::tasks::files::file_path;
use baton_store::tasks::tree::Found;

use super::record::Proposed;
use super::{Engine, Fault, State, Wish};

/// A wish, whose it is, and what it depends on.
#[derive(Debug, Clone)]
pub struct Wished {
    pub wish: Wish,
    pub by: Actor,
    /// What is recorded for it is made of this moment, where one is given: whoever keeps that can find out later whether it was done.
    pub moment: Option<Moment>,
    /// The task must be at one of these revisions; any will do where nothing is said.
    pub revs: Option<Vec<u64>>,
}

/// What a wish comes to, while others are decided.
enum Prepared {
    Proposed(Proposed),
    /// It is decided when they are through: it looks at other tasks, or there is nothing to record.
    Alone,
}

/// What comes of a wish: the task as it is then, and its texts.
pub type Granted = Result<(Task, Papers), Fault>;

/// Tasks whose files are to be written, each once, in the order in which they changed, and since when they wait.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    queue: VecDeque<(Instant, TaskId)>,
    known: BTreeSet<TaskId>,
}

impl Unwritten {
    fn push(&mut self, id: TaskId) {
        if self.known.insert(id.clone()) {
            self.queue.push_back((Instant::now(), id));
        }
    }

    /// The next one, if it has waited for so long.
    fn pop(&mut self, waited: Duration) -> Option<TaskId> {
        let (_, id) = self.queue.pop_front_if(|(since, _)| since.elapsed() >= waited)?;
        self.known.remove(&id);
        Some(id)
    }

    pub(super) fn contains(&self, id: &TaskId) -> bool {
        self.known.contains(id)
    }
}

/// How far what is made of the ledger is behind it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lag {
    /// Events that the board has not taken in: the next one who asks it for anything does.
    pub events: u64,
    /// Tasks whose files are not what the ledger says, and since when the first of them waits.
    pub tasks: usize,
    pub waited: Duration,
    /// Those of them whose files could not be written, which is tried again.
    pub failed: usize,
}

impl Engine {
    /// How far the board and the files are behind the ledger, as they are found: nothing is brought up to date for it.
    pub fn lag(&self) -> Lag {
        let state = self.lock();
        let Unwritten { queue, known } = &state.unwritten;
        let only_failed = state.behind.iter().filter(|id| !known.contains(id)).count();
        Lag {
            events: self.ground.journal.size().saturating_sub(state.board.pos()),
            tasks: known.len() + only_failed,
            waited: queue.front().map_or(Duration::ZERO, |(since, _)| since.elapsed()),
            failed: state.behind.len(),
        }
    }

    /// Does what is wished for and gives what came of each. What was recorded is durable; its files are written by [`write_files`](Engine::write_files).
    pub fn grant_all(&self, wishes: &[Wished]) -> Vec<Granted> {
        let mut state = self.lock();
        let (mut granted, mut rest) = (Vec::with_capacity(wishes.len()), wishes);
        while !rest.is_empty() {
            let (round, others) = rest.split_at(round_length(&state.board, rest));
            granted.extend(self.grant_round(&mut state, round));
            rest = others;
        }
        granted
    }

    /// Wishes that have nothing to do with each other: decided on the same board, appended together, then applied.
    fn grant_round(&self, state: &mut State, round: &[Wished]) -> Vec<Granted> {
        if let [only] = round {
            return vec![self.grant_alone(state, only)];
        }
        if self.tick_locked(state).is_err() {
            // Each meets it again, and says it.
            return round.iter().map(|wished| self.grant_alone(state, wished)).collect();
        }
        let (mut proposals, mut waiting) = (Vec::new(), Vec::new());
        for wished in round {
            waiting.push(self.prepare(state, wished).map(|prepared| match prepared {
                Prepared::Proposed(Proposed { proposal, events }) => {
                    proposals.push(proposal);
                    Some(events)
                }
                Prepared::Alone => None,
            }));
        }
        let mut appended = self.ground.journal.append_all(proposals).into_iter();
        let mut land = |events: Option<Vec<Option<Event>>>| {
            let Some(events) = events else { return Ok(false) };
            match appended.next().unwrap_or(Err(AppendError::Write("there was no answer".into()))) {
                Ok(receipts) => {
                    let touched = self.land(state, &events, &receipts)?;
                    touched.into_iter().for_each(|id| state.unwritten.push(id));
                    Ok(true)
                }
                // Something was recorded of the task since it was looked at: decided anew.
                Err(AppendError::Refused(Unsealed::HeadMoved { .. })) => Ok(false),
                Err(error) => Err(Fault::from(error)),
            }
        };
        let landed: Vec<Result<bool, Fault>> =
            waiting.into_iter().map(|events| events.and_then(&mut land)).collect();
        // A task that is done may free others. What fails here is none of theirs: it is met again when it is next looked what is due.
        let _ = self.tick_locked(state);
        let granted = round.iter().zip(landed).map(|(wished, landed)| match (landed?, wished.wish.task()) {
            (true, Some(id)) => self.shown(state, id),
            (_, _) => self.grant_alone(state, wished),
        });
        granted.collect()
    }

    /// Decides a wish, and makes what it comes to ready to be appended.
    fn prepare(&self, state: &mut State, wished: &Wished) -> Result<Prepared, Fault> {
        if let Some(id) = wished.wish.task() {
            if !self.is_as_written(state, id) {
                self.take_edits_of(state, id)?;
            }
            wished.expect_rev(state)?;
        }
        // What a person has just saved may have made it depend on others.
        if !wished.is_of_one_task(&state.board) {
            return Ok(Prepared::Alone);
        }
        let moment = wished.moment.unwrap_or_else(|| self.ground.clock.moment());
        let (_, decided) = wished.wish.decide(&state.board, &self.settings, &wished.by, moment)?;
        match decided.events.is_empty() {
            true => Ok(Prepared::Alone),
            false => Ok(Prepared::Proposed(self.propose(state, decided)?)),
        }
    }

    /// Does one thing that is wished for, by itself; its files are written when this returns.
    pub(super) fn grant_alone(&self, state: &mut State, wished: &Wished) -> Granted {
        self.tick_locked(state)?;
        if let Some(id) = wished.wish.task() {
            self.take_edits_of(state, id)?;
            wished.expect_rev(state)?;
        }
        let moment = wished.moment.unwrap_or_else(|| self.ground.clock.moment());
        let (id, _) = self
            .act(state, |board, settings| Ok(wished.wish.decide(board, settings, &wished.by, moment)?))?;
        self.tick_locked(state)?;
        self.shown(state, &id)
    }

    /// Whether a task's file is where and what Baton last wrote. A copy that somebody saves elsewhere is met by whoever watches the folders.
    fn is_as_written(&self, state: &State, id: &TaskId) -> bool {
        let Some(was) = state.projected.get(id).filter(|was| !was.has_leftovers) else { return false };
        let found = self.files.tree().look(&file_path(was.status, id));
        found.is_ok_and(|found| found == Some(Found::File(was.stamp)))
    }

    /// Writes the files of at most so many tasks that wait for it, and gives whether there are more.
    pub fn write_files(&self, most: usize) -> bool {
        self.write_late_files(most, Duration::ZERO)
    }

    /// The same, of those that have waited for so long.
    pub fn write_late_files(&self, most: usize, waited: Duration) -> bool {
        let mut state = self.lock();
        self.write_some(&mut state, most, waited);
        !state.unwritten.queue.is_empty()
    }

    pub(super) fn write_some(&self, state: &mut State, most: usize, waited: Duration) {
        for _ in 0..most {
            let Some(id) = state.unwritten.pop(waited) else { return };
            if !state.is_projected(&id) {
                self.project(state, &id);
            }
        }
    }

    /// A task and its texts, if that needs no waiting: nobody is deciding at this moment, and nothing has to be read.
    pub fn task_at_once(&self, id: &TaskId) -> Option<(Task, Papers)> {
        let state = match self.state.try_lock() {
            Ok(state) => state,
            Err(TryLockError::Poisoned(panicked)) => PoisonError::into_inner(panicked),
            Err(TryLockError::WouldBlock) => return None,
        };
        let pos = state.board.pos();
        if self.ground.journal.wait_beyond(pos, Duration::ZERO) > pos {
            return None;
        }
        let task = state.board.get(id)?;
        let (rev, papers) = state.papers.get(id)?;
        (*rev == task.rev()).then(|| (task.clone(), papers.clone()))
    }
}

impl Wished {
    fn expect_rev(&self, state: &State) -> Result<(), Fault> {
        let (Some(revs), Some(task)) = (&self.revs, self.wish.task().and_then(|id| state.board.get(id)))
        else {
            return Ok(());
        };
        match revs.contains(&task.rev()) {
            true => Ok(()),
            false => Err(Fault::Changed { task: task.id.clone(), rev: task.rev() }),
        }
    }

    /// Whether it depends on its own task alone, so that what is decided of others at the same moment is nothing to it.
    fn is_of_one_task(&self, board: &Board) -> bool {
        match &self.wish {
            Wish::Create(_) | Wish::Edit(_) => false,
            wish => wish.task().and_then(|id| board.get(id)).is_none_or(|task| task.depends_on.is_empty()),
        }
    }
}

/// How many of these, from the first on, can be decided on one board.
fn round_length(board: &Board, wishes: &[Wished]) -> usize {
    let mut tasks = BTreeSet::new();
    let mut fits =
        |wished: &Wished| wished.is_of_one_task(board) && tasks.insert(wished.wish.task().cloned());
    wishes.iter().take_while(|wished| fits(wished)).count().max(1)
}

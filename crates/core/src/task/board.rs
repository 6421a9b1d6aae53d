//! All tasks, and what follows from all of them together: who depends on whom, what is due when, what number comes next.

use std::collections::{BTreeMap, BTreeSet};

use super::apply::At;
use super::{Status, Task, TaskEvent};
use crate::event::Payload;
use crate::ids::{TaskId, TraceId};
use crate::time::Timestamp;

/// Every task of a ledger, as far as its events were applied.
#[derive(Debug, Clone, Default)]
pub struct Board {
    tasks: BTreeMap<TaskId, Task>,
    by_trace: BTreeMap<TraceId, TaskId>,
    dependents: BTreeMap<TaskId, BTreeSet<TaskId>>,
    /// When a lease ends, unless it is renewed.
    timers: BTreeSet<(Timestamp, TaskId)>,
    promotable: BTreeSet<TaskId>,
    by_status: BTreeMap<Status, BTreeSet<TaskId>>,
    /// The highest number given on a day.
    numbers: BTreeMap<String, u64>,
    pos: u64,
}

impl PartialEq for Board {
    /// Everything else is derived from these.
    fn eq(&self, other: &Board) -> bool {
        self.tasks == other.tasks && self.pos == other.pos
    }
}

impl Board {
    pub fn get(&self, id: &TaskId) -> Option<&Task> {
        self.tasks.get(id)
    }

    pub fn tasks(&self) -> impl Iterator<Item = &Task> {
        self.tasks.values()
    }

    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// The task whose trace this is.
    pub fn of_trace(&self, trace: TraceId) -> Option<&Task> {
        self.tasks.get(self.by_trace.get(&trace)?)
    }

    pub fn with_status(&self, status: Status) -> impl Iterator<Item = &Task> {
        self.by_status.get(&status).into_iter().flatten().filter_map(|id| self.tasks.get(id))
    }

    pub fn count(&self, status: Status) -> usize {
        self.by_status.get(&status).map_or(0, BTreeSet::len)
    }

    pub fn dependents(&self, id: &TaskId) -> impl Iterator<Item = &Task> {
        self.dependents.get(id).into_iter().flatten().filter_map(|id| self.tasks.get(id))
    }

    /// Position of the last event that was applied.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// Tasks whose lease ended at or before this moment, the earliest first.
    pub fn due(&self, now: Timestamp) -> impl Iterator<Item = &TaskId> {
        self.timers.iter().take_while(move |(at, _)| *at <= now).map(|(_, id)| id)
    }

    /// When the next lease ends, after this moment.
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        self.timers.iter().map(|(at, _)| *at).find(|at| *at > now)
    }

    /// Tasks whose dependencies have just become done.
    pub fn promotable(&self) -> impl Iterator<Item = &TaskId> {
        self.promotable.iter()
    }

    /// The id that the next task of this day gets.
    pub fn next_id(&self, now: Timestamp) -> TaskId {
        let day = &now.to_string()[..10];
        TaskId::of_day(now, self.numbers.get(day).copied().unwrap_or(0) + 1)
    }

    /// Dependencies that are not done, in order.
    pub fn open_dependencies<'a>(&'a self, task: &'a Task) -> impl Iterator<Item = &'a TaskId> {
        let is_open = |id: &&TaskId| self.get(id).is_none_or(|dependency| dependency.status != Status::Done);
        task.depends_on.iter().filter(is_open)
    }

    /// A way from `from` back to itself if it depended on `on`: the ids along it.
    pub fn cycle(&self, from: &TaskId, on: &[TaskId]) -> Option<Vec<TaskId>> {
        // How each task was reached, so that the way can be told without keeping all of them.
        let mut reached: BTreeMap<&TaskId, Option<&TaskId>> = on.iter().map(|id| (id, None)).collect();
        let mut stack: Vec<&TaskId> = on.iter().collect();
        while let Some(id) = stack.pop() {
            if id == from {
                let mut path = vec![id.clone()];
                let mut at = id;
                while let Some(Some(before)) = reached.get(at) {
                    path.push((*before).clone());
                    at = before;
                }
                path.reverse();
                return Some(path);
            }
            for next in self.get(id).map_or(&[][..], |task| &task.depends_on) {
                if !reached.contains_key(next) {
                    reached.insert(next, Some(id));
                    stack.push(next);
                }
            }
        }
        None
    }

    /// The way from a task up to itself if this were its parent.
    pub fn parent_cycle(&self, from: &TaskId, parent: &TaskId) -> Option<Vec<TaskId>> {
        let mut way = vec![from.clone()];
        let mut next = Some(parent);
        while let Some(id) = next.filter(|_| way.len() <= self.len() + 1) {
            way.push(id.clone());
            if id == from {
                return Some(way);
            }
            next = self.get(id).and_then(|task| task.parent.as_ref());
        }
        None
    }

    /// Takes the next event of the ledger in, whatever it is.
    ///
    /// An event of a task's type whose fields do not read changes nothing but positions; the reason is given back.
    pub fn apply(&mut self, task: Option<&str>, payload: &Payload, at: At) -> Result<(), String> {
        self.pos = at.pos;
        let id = match task {
            Some(token) => token.parse().ok(),
            None => self.by_trace.get(&at.trace).cloned(),
        };
        let Some(id) = id else { return Ok(()) };
        let event = match payload {
            Payload::Other { event_type, fields } => TaskEvent::read(event_type.as_str(), fields).transpose(),
            _ => Ok(None),
        };
        let Some(mut task) = self.remove(&id) else {
            if let Ok(Some(TaskEvent::Created(created))) = event {
                self.insert(Task::create(id, &created, at));
            }
            return Ok(());
        };
        let is_own = at.trace == task.trace;
        let (mut has_moved, mut is_edited) = (false, false);
        let applied = match event {
            Ok(Some(event)) => {
                task.apply(&event, at);
                has_moved = matches!(event, TaskEvent::Transitioned(_));
                is_edited = matches!(event, TaskEvent::Edited(_));
                Ok(())
            }
            // An event of another kind counts where it is in the task's own trace.
            other => {
                if is_own {
                    task.advance(payload.event_type(), at);
                    task.is_closed |= matches!(payload, Payload::TraceClosed { .. });
                }
                other.map(drop)
            }
        };
        let is_done = task.status == Status::Done;
        if is_edited {
            // What it waits for may be another now: nothing that is open, or something that is.
            let is_free = self.open_dependencies(&task).next().is_none();
            task.promotable = is_free && (task.promotable || task.is_blocked_by_dependencies());
        }
        self.insert(task);
        if is_done && has_moved {
            self.mark_promotable(&id);
        }
        applied
    }

    /// Marks those that waited for this task alone.
    fn mark_promotable(&mut self, done: &TaskId) {
        let waits = |task: &&Task| {
            let is_waiting = match task.status {
                Status::Backlog => true,
                _ => task.is_blocked_by_dependencies(),
            };
            is_waiting && self.open_dependencies(task).next().is_none()
        };
        let ready: Vec<TaskId> = self.dependents(done).filter(waits).map(|task| task.id.clone()).collect();
        for id in ready {
            if let Some(mut task) = self.remove(&id) {
                task.promotable = true;
                self.insert(task);
            }
        }
    }

    /// Puts a task that was saved back in its place.
    pub fn restore(&mut self, task: Task) {
        self.remove(&task.id.clone());
        self.insert(task);
    }

    /// Says up to where the restored tasks are current.
    pub fn set_pos(&mut self, pos: u64) {
        self.pos = pos;
    }

    fn insert(&mut self, task: Task) {
        let id = task.id.clone();
        if task.trace != TraceId::Ledger {
            self.by_trace.insert(task.trace, id.clone());
        }
        for dependency in &task.depends_on {
            self.dependents.entry(dependency.clone()).or_default().insert(id.clone());
        }
        if let Some(lease) = &task.lease {
            self.timers.insert((lease.ends_at(), id.clone()));
        }
        if task.promotable {
            self.promotable.insert(id.clone());
        }
        self.by_status.entry(task.status).or_default().insert(id.clone());
        if let (day, Some(number)) = id.parts()
            && number < NUMBER_MAX
        {
            let last = self.numbers.entry(day.to_owned()).or_default();
            *last = number.max(*last);
        }
        self.tasks.insert(id, task);
    }

    fn remove(&mut self, id: &TaskId) -> Option<Task> {
        let task = self.tasks.remove(id)?;
        for dependency in &task.depends_on {
            if let Some(dependents) = self.dependents.get_mut(dependency) {
                dependents.remove(id);
                if dependents.is_empty() {
                    self.dependents.remove(dependency);
                }
            }
        }
        if let Some(lease) = &task.lease {
            self.timers.remove(&(lease.ends_at(), id.clone()));
        }
        self.promotable.remove(id);
        if let Some(others) = self.by_status.get_mut(&task.status) {
            others.remove(id);
        }
        Some(task)
    }
}

/// A number that somebody gave by hand and that lies beyond this is not counted on from.
const NUMBER_MAX: u64 = 1_000_000_000;

/// The reason of a block that ends by itself when the dependencies are done.
pub const BLOCKED_BY_DEPENDENCIES: &str = "dependencies";

//! How the tasks stand, for bare `baton`: what runs, what waits, what is blocked, what needs a person.

use baton_core::task::{BLOCKED_BY_DEPENDENCIES, Board, Phase, Status, Task};
use baton_core::{TaskId, Timestamp};
use baton_runtime::conduct::Asks;
use baton_store::lock;
use serde_json::{Value, json};

use crate::commands::offer::begin;
use crate::context::Context;
use crate::error::Stop;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable, shorten};
use crate::ui::time::{ago, duration};

/// Tasks that are shown of each kind; the rest is counted.
const SHOWN_MAX: usize = 5;

/// Of a title and of a reason so many characters are shown, however narrow the terminal is.
const PART_CHARS_MIN: usize = 12;

/// More of a title is not needed to know which task it is.
const TITLE_CHARS: usize = 40;

/// Who runs the checks of tasks that wait for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ci {
    /// The server that runs now.
    Here,
    /// A server, once there is one.
    WhenServed,
    /// Nobody here: somebody reports.
    Elsewhere,
}

pub(super) fn ci_runs(ctx: &Context) -> Ci {
    let Ok(layout) = ctx.layout() else { return Ci::Elsewhere };
    let has_command = ctx.settings(Some(layout.root())).is_ok_and(|settings| settings.ci.command.is_some());
    match (has_command, lock::holder(&layout)) {
        (false, _) => Ci::Elsewhere,
        (true, Ok(Some(_))) => Ci::Here,
        (true, _) => Ci::WhenServed,
    }
}

/// The board at a glance.
pub(super) struct Standing<'a> {
    board: &'a Board,
    running: Vec<&'a Task>,
    /// Those of them whose session was Baton's own, where no process owns the data directory: nobody runs it any more.
    cut_short: Vec<&'a Task>,
    waiting: Vec<&'a Task>,
    /// Those whose checks have not said anything yet.
    checking: Vec<&'a Task>,
    blocked: Vec<&'a Task>,
    /// With why; each task once, however many reasons there are.
    needs_person: Vec<(&'a Task, String)>,
}

impl<'a> Standing<'a> {
    /// `is_owned` says whether a process owns the data directory now; `asks`, what of a guarded run waits for a person.
    pub(super) fn of(board: &'a Board, is_owned: bool, asks: impl Fn(&Task) -> Option<Asks>) -> Self {
        let mut waiting: Vec<&Task> = board.with_status(Status::Ready).collect();
        waiting.sort_by_key(|task| (task.priority, task.created_at));
        let (mut needs_person, mut checking) = (Vec::new(), Vec::new());
        for task in board.tasks().filter(|task| task.guard.is_some()) {
            if let Some(asks) = asks(task) {
                needs_person.push((task, format!("{} waits for your review", asks.id)));
            }
        }
        for task in board.with_status(Status::Review) {
            match task.phase {
                Phase::CiPending => checking.push(task),
                phase => needs_person.push((task, format!("review, {phase}"))),
            }
        }
        for task in board.with_status(Status::Blocked) {
            let why = task.block_reason().unwrap_or("no reason given");
            if why != BLOCKED_BY_DEPENDENCIES {
                needs_person.push((task, format!("blocked: {why}")));
            }
        }
        for task in board.with_status(Status::Deadletter) {
            needs_person.push((task, format!("given up after {} failed attempts", task.attempts)));
        }
        let open = [Status::Backlog, Status::Ready, Status::Blocked];
        for task in open.iter().flat_map(|status| board.with_status(*status)) {
            let is_there = needs_person.iter().any(|(other, _): &(&Task, String)| other.id == task.id);
            if let (Some((id, status)), false) = (dead_dependency(board, task), is_there) {
                needs_person.push((task, format!("waits for {id}, which is {status}")));
            }
        }
        let blocked = board.with_status(Status::Blocked).collect();
        let running: Vec<&Task> = board.with_status(Status::InProgress).collect();
        let is_cut =
            |task: &&Task| !is_owned && task.lease.as_ref().is_some_and(|lease| lease.session.is_some());
        Standing {
            board,
            cut_short: running.iter().copied().filter(is_cut).collect(),
            running,
            waiting,
            checking,
            blocked,
            needs_person,
        }
    }

    pub(super) fn to_json(&self) -> Value {
        let ids = |tasks: &[&Task]| tasks.iter().map(|task| task.id.to_string()).collect::<Vec<_>>();
        let counts: serde_json::Map<String, Value> =
            Status::ALL.iter().map(|status| (status.to_string(), self.board.count(*status).into())).collect();
        let needs: Vec<Value> =
            self.needs_person.iter().map(|(task, why)| json!({"id": task.id.as_str(), "why": why})).collect();
        json!({
            "counts": counts,
            "running": ids(&self.running),
            "cutShort": ids(&self.cut_short),
            "waiting": ids(&self.waiting),
            "checking": ids(&self.checking),
            "blocked": ids(&self.blocked),
            "needsPerson": needs,
        })
    }

    pub(super) fn print(&self, ui: &mut Ui, now: Timestamp) -> Result<(), Stop> {
        if self.board.is_empty() {
            return Ok(());
        }
        let is_alive = |task: &&&Task| !self.cut_short.iter().any(|other| other.id == task.id);
        let running = self.running.iter().filter(is_alive).map(|task| (*task, self.held(task, now)));
        section(ui, "runs", running)?;
        let cut_short = self.cut_short.iter().map(|task| {
            let agent = task.lease.as_ref().map_or("an agent", |lease| lease.agent.as_str());
            (*task, format!("{agent} worked on it; the process that ran it is gone"))
        });
        section(ui, "was cut short", cut_short)?;
        // What needs a person is shown there, with what it needs, and not twice.
        let is_settled = |task: &&&Task| !self.needs_person.iter().any(|(other, _)| other.id == task.id);
        let waiting =
            self.waiting.iter().filter(is_settled).map(|task| {
                (*task, format!("{}, ready {}", task.priority, ago(task.last_transition_at, now)))
            });
        section(ui, "waits", waiting)?;
        let checking =
            self.checking.iter().map(|task| (*task, format!("since {}", ago(task.last_transition_at, now))));
        section(ui, "waits for CI", checking)?;
        let blocked = self
            .blocked
            .iter()
            .filter(is_settled)
            .map(|task| (*task, task.block_reason().unwrap_or_default().to_owned()));
        section(ui, "is blocked", blocked)?;
        section(ui, "needs you", self.needs_person.iter().map(|(task, why)| (*task, why.clone())))
    }

    fn held(&self, task: &Task, now: Timestamp) -> String {
        match &task.lease {
            Some(lease) => {
                let left = u64::try_from((lease.ends_at().unix_ms() - now.unix_ms()) / 1000).unwrap_or(0);
                format!("{}, for another {}", lease.agent, duration(left))
            }
            None => "nobody".to_owned(),
        }
    }

    /// The commands that help most now.
    pub(super) fn next(&self, ctx: &Context, ci: Ci) -> Vec<(String, &'static str)> {
        let mut steps = Vec::new();
        if !self.cut_short.is_empty() {
            steps.push(("baton serve".to_owned(), "go on with what was cut short"));
        }
        if let Some((task, _)) = self.needs_person.first() {
            steps.push((format!("baton task show {}", task.id), "see what needs you"));
        }
        if let Some(task) = self.checking.first() {
            match ci {
                Ci::Here => {}
                Ci::WhenServed if !self.cut_short.is_empty() => {}
                Ci::WhenServed => steps.push(("baton serve".to_owned(), "run the checks (ci.command)")),
                Ci::Elsewhere => {
                    steps
                        .push((format!("baton ci report {} --passed", task.id), "report what CI found, or:"));
                    steps.push((format!("baton ci report {} --failed", task.id), "that it failed"));
                }
            }
        }
        if let Some(task) = self.waiting.first() {
            steps.push((begin(ctx, task), "take the next task"));
        }
        if self.board.is_empty() {
            steps.push(("baton task new \"…\" --ready".to_owned(), "write down what is to be done"));
        } else {
            steps.push(("baton task ls".to_owned(), "see all tasks"));
        }
        steps
    }
}

/// A dependency that will never be done unless a person does something.
fn dead_dependency<'b>(board: &'b Board, task: &'b Task) -> Option<(&'b TaskId, Status)> {
    task.depends_on.iter().find_map(|id| {
        let status = board.get(id)?.status;
        matches!(status, Status::Cancelled | Status::Deadletter).then_some((id, status))
    })
}

fn section<'t>(ui: &mut Ui, name: &str, tasks: impl Iterator<Item = (&'t Task, String)>) -> Result<(), Stop> {
    let tasks: Vec<(&Task, String)> = tasks.collect();
    for (i, (task, why)) in tasks.iter().take(SHOWN_MAX).enumerate() {
        let head = if i == 0 { name } else { "" };
        let id = ui.paint.mark(Mark::Id, task.id.as_str());
        let (title, why) = fit(printable(&task.title), printable(why), task.id.as_str(), ui.width());
        let why = ui.paint.mark(Mark::Dim, &why);
        ui.line(&format!("{head:<15} {id}  {title}  {why}"))?;
    }
    match tasks.len().saturating_sub(SHOWN_MAX) {
        0 => Ok(()),
        more => ui.line(&format!("{:<15} … and {}", "", count(more as u64, "more task"))),
    }
}

/// A title and a reason that fit into the line of a terminal beside the id; the title gives way first. What is piped is not cut.
fn fit(title: String, why: String, id: &str, width: Option<usize>) -> (String, String) {
    let Some(width) = width else { return (title, why) };
    let room = width.saturating_sub(15 + 1 + id.chars().count() + 2 + 2).max(2 * PART_CHARS_MIN);
    let beside_why = room.saturating_sub(why.chars().count());
    let title = shorten(&title, beside_why.clamp(PART_CHARS_MIN, TITLE_CHARS.max(room / 2)));
    let why = shorten(&why, room.saturating_sub(title.chars().count()));
    (title, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_the_terminal_and_are_whole_elsewhere() {
        let check = |title: &str, why: &str, width, expected: (&str, &str)| {
            let (title, why) = fit(title.to_owned(), why.to_owned(), "TASK-2026-02-09-057", width);
            assert_eq!((title.as_str(), why.as_str()), expected, "{width:?}");
        };
        let (title, why) = ("Take uploads of more than 10 MiB", "blocked: waiting for the credentials");
        check(title, why, None, (title, why));
        check(title, why, Some(120), (title, why));
        check(title, why, Some(90), ("Take uploads o…", why));
        check(title, why, Some(20), ("Take upload…", "blocked: wa…"));
    }
}

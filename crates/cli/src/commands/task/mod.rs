//! `baton task …`: one file for each family. Who writes goes through the engine; who looks takes no lock.

mod edit;
mod last_run;
mod lease;
mod list;
mod new;
mod show;

use baton_core::task::decide::{Approve, Log, Move, Reject, Retry};
use baton_core::task::{Papers, Phase, Status, Task};
use baton_core::{TaskId, task};
use baton_runtime::Fault;
use serde_json::Value;

use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Stop};
use crate::exit::Exit;
use crate::task_args::Task as Command;
use crate::task_names::find;
use crate::tasks::Tasks;
use crate::ui::Ui;
use crate::ui::text::printable;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Command) -> Ended {
    match command {
        Command::New(args) => new::run(ctx, ui, args),
        Command::Ls(args) => list::run(ctx, ui, &args),
        Command::Show(args) => show::run(ctx, ui, &args),
        Command::Edit(args) => edit::run(ctx, ui, &args),
        Command::Claim(args) => lease::claim(ctx, ui, &args),
        Command::Beat(args) => lease::beat(ctx, ui, &args),
        Command::Release(args) => lease::release(ctx, ui, &args),
        Command::Move(args) => change(ctx, ui, &args.name.task, |tasks, task| {
            tasks.transition(&Move { task, to: args.status, reason: args.reason.clone() })
        }),
        Command::Log(args) => change(ctx, ui, &args.name.task, |tasks, task| {
            tasks.log_as(&Log { task, text: args.text.clone() }, &ctx.actor())
        }),
        Command::Retry(args) => change(ctx, ui, &args.task, |tasks, task| tasks.retry(&Retry { task })),
        Command::Approve(args) => {
            let mut next = None;
            let ended = change(ctx, ui, &args.name.task, |tasks, task| {
                let approved = tasks.approve(&Approve { task, all: args.all })?;
                // One more approval ends it.
                next = (approved.0.phase == Phase::ReadyForMerge && approved.0.status == Status::Review)
                    .then(|| approved.0.id.clone());
                Ok(approved)
            })?;
            next.iter().for_each(|id| ui.hint(&format!("baton task approve {id}")));
            Ok(ended)
        }
        Command::Reject(args) => change(ctx, ui, &args.name.task, |tasks, task| {
            tasks.reject(&Reject { task, reason: args.reason.clone() })
        }),
    }
}

/// Does one thing to one task, and shows how the task stands afterwards.
pub(super) fn change(
    ctx: &Context,
    ui: &mut Ui,
    name: &str,
    ask: impl FnOnce(&Tasks, TaskId) -> Result<(Task, Papers), Fault>,
) -> Ended {
    let tasks = ctx.tasks(ui)?;
    let answer = named(&tasks, name, |id| ask(&tasks, id));
    let (task, papers) = tasks.finish(ui, answer)?;
    print(ui, &task, &papers)
}

/// Asks for something about the task that a text names; where that is refused, the hint is about that task.
pub(super) fn named<T>(
    tasks: &Tasks,
    name: &str,
    ask: impl FnOnce(TaskId) -> Result<T, Fault>,
) -> Result<T, Stop> {
    let id = tasks.look(|board| find(board, name))??;
    ask(id.clone()).map_err(|fault| {
        let task = tasks.look(|board| board.get(&id).cloned()).ok().flatten();
        CliError::about(fault, &id, task.as_ref()).into()
    })
}

/// A task after something was done to it.
pub(super) fn print(ui: &mut Ui, task: &Task, papers: &Papers) -> Ended {
    if ui.json {
        ui.object(&to_json(task, papers))?;
    } else {
        ui.line(&format!("{}  {}  {}  {}", task.id, task.status, task.phase, printable(&task.title)))?;
    }
    Ok(Exit::Ok)
}

/// A task as scripts see it: the keys of its file, and the body.
pub(super) fn to_json(task: &task::Task, papers: &Papers) -> Value {
    let mut map = task.to_json();
    map.insert("body".into(), papers.body().into());
    Value::Object(map)
}

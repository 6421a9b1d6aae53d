//! `baton task ls`.

use baton_core::task::{Board, Status, Task};
use baton_store::clock;
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::context::Context;
use crate::exit::Exit;
use crate::task_args::TaskLs;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;
use crate::ui::time::ago;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TaskLs) -> Ended {
    let read = ctx.board()?;
    if read.has_strangers() || !read.edited(read.board.tasks()).is_empty() {
        // What people changed in the files is taken in first.
        let tasks = ctx.tasks(ui)?;
        let answer = tasks.reconcile().map_err(Into::into).and_then(|found| {
            found.notices.iter().for_each(|notice| ui.warn(notice));
            Ok(tasks.look(Board::clone)?)
        });
        let board = tasks.finish(ui, answer)?;
        return show(ui, &board, args);
    }
    let unfinished = read.unfinished();
    if !unfinished.is_empty() {
        let tasks = ctx.tasks(ui)?;
        let answer = tasks.look_at(&unfinished).and_then(|()| tasks.look(Board::clone)).map_err(Into::into);
        let board = tasks.finish(ui, answer)?;
        return show(ui, &board, args);
    }
    show(ui, &read.board, args)
}

fn show(ui: &mut Ui, board: &Board, args: &TaskLs) -> Ended {
    let is_wanted = |task: &&Task| args.status.is_empty() || args.status.contains(&task.status);
    let tasks: Vec<&Task> = board.tasks().filter(is_wanted).collect();
    if ui.json {
        let list: Vec<Value> = tasks.iter().map(|task| Value::Object(task.to_json())).collect();
        ui.object(&json!({"v": 1, "tasks": list}))?;
        return Ok(Exit::Ok);
    }
    if tasks.is_empty() {
        say_none(ui, board, args);
        return Ok(Exit::Ok);
    }
    let now = clock::now();
    let mut table = Table::new(&[
        ("task", Align::Left),
        ("status", Align::Left),
        ("priority", Align::Left),
        ("agent", Align::Left),
        ("since", Align::Left),
        ("title", Align::Left),
    ]);
    for task in &tasks {
        let agent = task.lease.as_ref().map(|lease| &lease.agent).or(task.routing.agent.as_ref());
        table.row(vec![
            ui.paint.mark(Mark::Id, task.id.as_str()),
            colored(ui, task.status),
            task.priority.to_string(),
            agent.map(ToString::to_string).unwrap_or_default(),
            ago(task.last_transition_at, now),
            printable(&task.title),
        ]);
    }
    ui.table(table)?;
    Ok(Exit::Ok)
}

/// That nothing is listed, and why: there is nothing, or nothing of what was asked for.
fn say_none(ui: &Ui, board: &Board, args: &TaskLs) {
    let all = board.tasks().count();
    if all == 0 {
        ui.note("There are no tasks yet.");
        ui.hint("baton task new \"what is to be done\" --ready");
        return;
    }
    let wanted: Vec<&str> = args.status.iter().map(|status| status.as_str()).collect();
    let others = if all == 1 { "1 has another one".to_owned() } else { format!("{all} have another one") };
    ui.note(&format!("No task has the status {}; {others}.", wanted.join(" or ")));
    ui.hint("baton task ls");
}

/// A status with its colour; the word says it too.
pub(in crate::commands) fn colored(ui: &Ui, status: Status) -> String {
    let mark = match status {
        Status::Done => Mark::Good,
        Status::Review | Status::Blocked => Mark::Warn,
        Status::Deadletter => Mark::Bad,
        Status::Cancelled | Status::Backlog => Mark::Dim,
        Status::Ready | Status::InProgress => Mark::Hint,
    };
    ui.paint.mark(mark, status.as_str())
}

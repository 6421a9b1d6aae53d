//! `baton task show`.

use baton_core::limits::TASK_FILE_BYTES_MAX;
use baton_core::task::{Board, Papers, Phase, Status, Task, worklog};
use baton_runtime::conduct::Asks;
use baton_store::clock;
use baton_store::tasks::files::file_path;
use baton_store::tasks::tree::{RealTree, Tree as _};
use baton_store::tasks::{Document, table};

use super::last_run::LastRun;
use super::to_json;
use crate::commands::Ended;
use crate::commands::offer::begin;
use crate::commands::standing::{Ci, ci_runs};
use crate::commands::trace::story::stored;
use crate::context::{Context, disk};
use crate::error::Stop;
use crate::exit::Exit;
use crate::task_args::TaskName;
use crate::task_names::find;
use crate::tasks::is_elsewhere;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{count, printable, printable_lines};
use crate::ui::time::{ago, duration};

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &TaskName) -> Ended {
    if let Some((task, body)) = look_up(ctx, args)? {
        return show_alone(ctx, ui, &task, &body);
    }
    let read = ctx.board()?;
    let found = find(&read.board, &args.task);
    let is_edited = match &found {
        Ok(id) => read.board.get(id).is_some_and(|task| {
            let is_edited = !read.edited(std::iter::once(task)).is_empty();
            is_edited || read.is_elsewhere(task) || read.unfinished().contains(id)
        }),
        // Somebody may have put its file there a moment ago.
        Err(_) => read.has_strangers(),
    };
    if is_edited {
        return take_in(ctx, ui, args);
    }
    let id = found?;
    let Some(task) = read.board.get(&id) else { return Ok(Exit::NotFound) };
    let papers = read.papers(task)?;
    show(ctx, ui, &read.board, task, &papers)
}

/// The task as it was saved, where that is how it stands and nobody has changed its file: no other task is read for it.
fn look_up(ctx: &Context, args: &TaskName) -> Result<Option<(Task, String)>, Stop> {
    let layout = ctx.layout()?;
    let Ok(id) = args.task.parse() else { return Ok(None) };
    let Some((task, Some(files))) = table::look_up(&*disk(), &layout, &id) else { return Ok(None) };
    let Ok(tree) = RealTree::open(layout.root()) else { return Ok(None) };
    let max = TASK_FILE_BYTES_MAX as u64;
    match tree.read(&file_path(files.status, &id), max) {
        Ok((bytes, stamp))
            if stamp == files.stamp
                && files.rev == task.rev()
                && !files.has_leftovers
                && task.depends_on.is_empty()
                && !is_elsewhere(&tree, &task) =>
        {
            Ok(Document::parse(&bytes).ok().map(|document| (task, document.body().to_owned())))
        }
        _ => Ok(None),
    }
}

fn show_alone(ctx: &Context, ui: &mut Ui, task: &Task, body: &str) -> Ended {
    let (text, log) = worklog::split(body);
    let papers = Papers { text, log, ..Papers::default() };
    show(ctx, ui, &Board::default(), task, &papers)
}

/// A person changed the file: that is taken in first, and then shown.
fn take_in(ctx: &Context, ui: &mut Ui, args: &TaskName) -> Ended {
    let tasks = ctx.tasks(ui)?;
    let answer = (|| {
        tasks.reconcile_named(&args.task)?;
        let board = tasks.look(Board::clone)?;
        let id = find(&board, &args.task)?;
        let (task, papers) = tasks.task(&id)?;
        Ok::<_, Stop>((board, task, papers))
    })();
    let (board, task, papers) = tasks.finish(ui, answer)?;
    show(ctx, ui, &board, &task, &papers)
}

fn show(ctx: &Context, ui: &mut Ui, board: &Board, task: &Task, papers: &Papers) -> Ended {
    let last_run = LastRun::of(ctx, task, papers)?;
    if ui.json {
        let mut object = to_json(task, papers);
        if let (Some(last_run), Some(object)) = (&last_run, object.as_object_mut()) {
            last_run.put_into(object);
        }
        ui.object(&object)?;
        return Ok(Exit::Ok);
    }
    let now = clock::now();
    ui.line(&format!("{}  {}", ui.paint.mark(Mark::Id, task.id.as_str()), printable(&task.title)))?;
    let mut say = |name: &str, text: String| ui.line(&format!("{name:<11} {}", printable(&text)));
    say("status", format!("{}, phase {}, {}", task.status, task.phase, ago(task.last_transition_at, now)))?;
    say("priority", task.priority.to_string())?;
    if task.guarded {
        let run =
            task.guard.map_or("its work is done by a team".to_owned(), |run| format!("its run is {run}"));
        say("guarded", run)?;
        let asks = ctx.visit().ok().and_then(|visit| Asks::of(&visit.reader, task));
        if let Some(asks) = asks {
            let input =
                asks.input.map(|hash| format!("; its input is {}", stored(&hash))).unwrap_or_default();
            say("needs you", format!("{} waits for your review: {}{input}", asks.id, asks.command()))?;
        }
    }
    if let Some(agent) = &task.routing.agent {
        say("for", agent.to_string())?;
    }
    if let Some(role) = &task.routing.role {
        say("for role", role.clone())?;
    }
    if let Some(lease) = &task.lease {
        let left = (lease.ends_at().unix_ms() - now.unix_ms()) / 1000;
        let until = match u64::try_from(left) {
            Ok(left) => format!("for another {}", duration(left)),
            Err(_) => "whose time is over: free to claim".to_owned(),
        };
        say("held by", format!("{} with fence {}, {until}", lease.agent, lease.fence))?;
    }
    if let Some(why) = task.block_reason() {
        say("blocked by", why.to_owned())?;
    }
    if task.attempts > 0 {
        say("failed", count(u64::from(task.attempts), "attempt"))?;
    }
    if let Some(at) = task.not_before.filter(|at| *at > now) {
        let left = u64::try_from((at.unix_ms() - now.unix_ms()) / 1000).unwrap_or(0);
        say("given out", format!("in {}; a claim by hand need not wait", duration(left)))?;
    }
    for dependency in &task.depends_on {
        let status = board.get(dependency).map_or("unknown", |task| task.status.as_str());
        say("depends on", format!("{dependency} ({status})"))?;
    }
    if let Some(parent) = &task.parent {
        say("part of", parent.to_string())?;
    }
    for (name, text) in last_run.iter().flat_map(|last_run| last_run.rows(now)) {
        say(name, text)?;
    }
    say("trace", task.trace.to_string())?;
    let body = papers.body();
    if !body.is_empty() {
        ui.line("")?;
        ui.line(printable_lines(&body).trim_end())?;
    }
    next(ctx, board, task, last_run.as_ref()).iter().for_each(|step| ui.hint(step));
    Ok(Exit::Ok)
}

/// What to type next about a task; of several one is chosen.
fn next(ctx: &Context, board: &Board, task: &Task, last_run: Option<&LastRun>) -> Vec<String> {
    let id = &task.id;
    let waits_for = board.open_dependencies(task).next();
    match task.status {
        Status::Backlog => vec![format!("baton task move {id} ready --reason \"worth doing now\"")],
        Status::Ready | Status::Blocked if let Some(other) = waits_for => {
            vec![format!("baton task show {other}")]
        }
        Status::Ready => vec![begin(ctx, task)],
        Status::Blocked => vec![format!("baton task move {id} ready --reason \"…\"")],
        Status::Review if task.phase == Phase::CiPending => match ci_runs(ctx) {
            Ci::Here => Vec::new(),
            Ci::WhenServed => vec!["baton serve".to_owned()],
            Ci::Elsewhere => {
                ["--passed", "--failed"].map(|found| format!("baton ci report {id} {found}")).to_vec()
            }
        },
        Status::Review => vec![format!("baton task approve {id}")],
        Status::Deadletter => vec![format!("baton task retry {id}")],
        Status::InProgress if let Some(session) = last_run.and_then(LastRun::session) => {
            vec![format!("baton session attach {session}")]
        }
        Status::InProgress | Status::Done | Status::Cancelled => Vec::new(),
    }
}

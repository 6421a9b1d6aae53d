//! Guarded runs as commands meet them: followed step by step, and what their players try in vain.

use std::time::Duration;

use baton_core::guard::Rule;
use baton_core::{AgentName, TaskId, TraceId};
use baton_runtime::conduct::Playing;
use baton_runtime::engine::Engine;
use baton_runtime::work::{Attempt, RunEnd};
use baton_store::{History as _, Journal as _};
use serde_json::json;

use super::events::parse;
use super::run::is_wanted;
use super::trace::story::Teller;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::input::Draft;
use crate::limits::READ_LINES;
use crate::serve::{Acting, Owner};
use crate::tasks::ReadBoard;
use crate::ui::Ui;

/// How long is waited for the next step before it is looked whether anybody still waits.
const LOOK: Duration = Duration::from_millis(100);

pub(super) fn follow(
    ctx: &Context,
    ui: &mut Ui,
    owner: &Owner,
    attempt: &Attempt,
    playing: &Playing,
) -> Result<RunEnd, Stop> {
    let (journal, trace) = (&owner.workspace.journal, playing.trace());
    let (mut seq, mut is_stopped, mut teller) = (0, false, Teller::default());
    loop {
        let end = attempt.end();
        let size = journal.size();
        let lines = journal.read_trace(trace, seq + 1, READ_LINES)?;
        for stored in &lines {
            let line = parse(stored)?;
            seq = line.seq;
            match ui.json {
                true => {
                    let event: serde_json::Value = serde_json::from_str(&stored.text).unwrap_or_default();
                    ui.object(&json!({"v": 1, "type": "guard.step", "event": event}))?;
                }
                false => teller.tell(ui, &line)?,
            }
        }
        playing.take_notes().iter().for_each(|note| ui.warn(note));
        ui.flush()?;
        if let Some(end) = end.filter(|_| lines.is_empty()) {
            return Ok(end);
        }
        if (!is_wanted(ctx) || ctx.is_abandoned()) && !std::mem::replace(&mut is_stopped, true) {
            attempt.stop();
        }
        if lines.is_empty() {
            journal.wait_beyond(size, LOOK);
        }
    }
}

/// Records what an agent of a guarded run was refused.
pub(crate) fn note_refused(ctx: &Context, what: &str, error: &CliError) {
    if let (Some(owner), Some(acting)) = (ctx.owner(), ctx.acting()) {
        note(owner, acting, what, error);
    }
}

/// The same of a task that somebody else works on.
pub(crate) fn note_about(ctx: &Context, task: &TaskId, what: &str, error: &CliError) {
    if let Some(owner) = ctx.owner().filter(|owner| is_guarded(owner, task)) {
        record(&owner.engine, task, &ctx.actor().agent, what, error);
    }
}

/// The same for whoever knows who acts. What cannot be recorded was refused all the same.
pub(crate) fn note(owner: &Owner, acting: &Acting, what: &str, error: &CliError) {
    let Some(task) = &acting.task else { return };
    if is_guarded(owner, task) {
        record(&owner.engine, task, &acting.agent, what, error);
    }
}

/// Records an append that was refused: whatever an agent of a guarded run tried, and what anybody tried in a run, also when that is over.
pub(super) fn note_unappended(
    ctx: &Context,
    ui: &Ui,
    trace: TraceId,
    agent: Option<&AgentName>,
    error: &CliError,
) {
    let what = "trace append";
    let own = ctx.acting().and_then(|acting| acting.task.as_ref());
    if ctx.owner().zip(own).is_some_and(|(owner, task)| is_guarded(owner, task)) {
        return note_refused(ctx, what, error);
    }
    let is_about_who_may = matches!(
        error.code,
        Code::Guard
            | Code::TraceClosed
            | Code::KeyNotAllowed
            | Code::RoleNotAllowed
            | Code::SignatureMissing
            | Code::SignatureInvalid
            | Code::SeenUnknown
            | Code::Reserved
            | Code::AgentReserved
    );
    if !is_about_who_may {
        return;
    }
    let Some(task) = ctx.board().ok().and_then(|read| task_of(&read, trace)) else { return };
    let Ok(tasks) = ctx.tasks(ui) else { return };
    let by = ctx.actor().agent;
    let agent = agent.filter(|_| ctx.acting().is_none()).unwrap_or(&by);
    record(&tasks, &task, agent, what, error);
    let _ = tasks.finish(ui, Ok(()));
}

/// The task that a trace is, or was, a guarded run of.
fn task_of(read: &ReadBoard, trace: TraceId) -> Option<TaskId> {
    let first = read.visit.reader.read_trace(trace, 1, 1).ok()?;
    let named = parse(first.first()?).ok()?.task?.parse().ok()?;
    read.board.get(&named).filter(|task| task.guarded && task.trace != trace).map(|task| task.id.clone())
}

fn is_guarded(owner: &Owner, task: &TaskId) -> bool {
    owner.engine.look(|board| board.get(task).is_some_and(|task| task.guarded)).unwrap_or(false)
}

fn record(engine: &Engine, task: &TaskId, agent: &AgentName, what: &str, error: &CliError) {
    let rule = Rule::ALL.iter().find(|rule| error.what.contains(&format!("(rule {})", rule.as_str())));
    let why =
        [&error.what].into_iter().chain(&error.causes).map(String::as_str).collect::<Vec<_>>().join(": ");
    let _ = engine.refuse_guarded(task, agent, what, rule.map(|rule| rule.as_str()), &why);
}

/// Refuses what an agent would have Baton sign for it in a guarded run: whoever plays a part speaks through its own tools, and who has a key of its own
/// signs.
pub(super) fn expect_unplayed(ctx: &Context, trace: TraceId, draft: &Draft) -> Result<(), CliError> {
    let (Some(owner), Some(acting)) = (ctx.owner(), ctx.acting()) else { return Ok(()) };
    let is_run = owner.engine.look(|board| board.tasks().any(|task| task.guard == Some(trace)))?;
    if !is_run || draft.sig.is_some() {
        return Ok(());
    }
    let name = draft.event_type.as_str();
    let rule = Rule::TeamMember.as_str();
    let what = format!(
        "{name} is not signed for {}: a guarded run is played through Baton's tools (rule {rule})",
        acting.agent
    );
    Err(CliError::new(Code::Guard, what)
        .hint("call the tool itself, or hand in what you signed with your own key"))
}

/// Whether a task has a guarded run that is open.
pub(super) fn is_open(ctx: &Context, task: &TaskId) -> bool {
    let Some(owner) = ctx.owner() else { return false };
    owner.engine.look(|board| board.get(task).is_some_and(|task| task.guard.is_some())).unwrap_or(true)
}

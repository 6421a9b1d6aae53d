//! `baton session show`.

use baton_core::moment::Moment;
use baton_core::session::{
    ErrorCode, ErrorSource, RunStatus, SessionEndedData, SessionError, SessionEvent, StateKind, View,
};
use baton_runtime::session::{Live, Snapshot, events};
use baton_store::clock;
use serde_json::{Value, json};

use crate::commands::Ended;
use crate::commands::ending::{Stopped, ending_lines};
use crate::context::Context;
use crate::error::Stop;
use crate::exit::Exit;
use crate::limits::ERRORS_SHOWN_MAX;
use crate::session_args::SessionShow;
use crate::sessions;
use crate::ui::Ui;
use crate::ui::text::printable;

/// What is shown of a session: as its events make it, what went wrong in it, and why it was stopped.
pub(super) struct Seen {
    view: View,
    /// Everything that went wrong, also what has been made good since.
    errors: Vec<SessionError>,
    stopped: Stopped,
    /// Its owner is gone, and nobody has recorded its end yet.
    is_cut: bool,
}

impl Seen {
    /// Reads it from the ledger; of one that runs, its owner knows how it stands.
    pub(super) fn of(ctx: &Context, snapshot: &Snapshot, live: Option<&Live>) -> Result<Seen, Stop> {
        let visit = ctx.visit()?;
        let (mut view, mut errors) = (View::default(), Vec::new());
        events(&visit.reader, snapshot, &mut |_, event| {
            view.apply(event);
            match event {
                // What did not fit changed nothing.
                SessionEvent::Error(error) if error.code == ErrorCode::StateTransitionInvalid => {}
                SessionEvent::Error(error) if errors.len() < ERRORS_SHOWN_MAX => errors.push(error.clone()),
                _ => {}
            }
        })?;
        let mut view = live.map_or(view, |live| live.handle.view());
        // Whoever owns the data directory has seen to those of the one before.
        let is_cut = !ctx.is_served() && live.is_none() && snapshot.ended.is_none();
        if is_cut {
            // As whoever owns the data directory next is going to record it.
            let moment = Moment { now: clock::now(), seed: clock::random() };
            view.abandon(moment).iter().for_each(|stated| view.apply(&stated.event));
        }
        let stopped = Stopped::on(&super::board(ctx), snapshot);
        Ok(Seen { view, errors, stopped, is_cut })
    }
}

pub(super) fn show(ctx: &Context, ui: &mut Ui, args: &SessionShow) -> Ended {
    let owner = super::owner(ctx, ui)?;
    let snapshot = sessions::find(&sessions::dir_of(&ctx.layout()?), &args.one.session)?;
    if args.transcript {
        return super::transcript::print(ctx, ui, &snapshot, args.last);
    }
    let live = owner.and_then(|owner| owner.broker.get(snapshot.id));
    // It may have ended since it was read.
    let snapshot = match live {
        None if snapshot.ended.is_none() => {
            sessions::find(&sessions::dir_of(&ctx.layout()?), &snapshot.id.to_string())?
        }
        _ => snapshot,
    };
    let seen = Seen::of(ctx, &snapshot, live.as_ref())?;
    print(ui, &snapshot, &seen)
}

/// A session as scripts see it.
fn to_json(snapshot: &Snapshot, seen: &Seen) -> Value {
    let Seen { view: seen, errors, is_cut, .. } = seen;
    let mut object = json!({
        "v": 1,
        "id": snapshot.id.to_string(),
        "agent": snapshot.agent.as_str(),
        "harness": snapshot.harness,
        "state": seen.state.as_str(),
        "trace": snapshot.trace.to_string(),
        "cwd": snapshot.cwd.display().to_string(),
        "startedAt": snapshot.started_at.to_string(),
        "pendingPermissions": seen.permissions,
        "toolRuns": seen.tool_runs,
        "hookRuns": seen.hook_runs,
        "errors": errors,
    });
    put(
        &mut object,
        "lastError",
        seen.last_error.as_ref().and_then(|error| serde_json::to_value(error).ok()),
    );
    put(&mut object, "taskId", snapshot.task.as_ref().map(|task| task.as_str().into()));
    put(&mut object, "pid", snapshot.process.as_ref().map(|process| process.pid.into()));
    put(&mut object, "program", snapshot.program.clone().map(Value::String));
    put(&mut object, "wall", snapshot.wall.clone().map(Value::String));
    put(&mut object, "mode", snapshot.mode.clone().map(Value::String));
    put(&mut object, "resumes", snapshot.resumes.map(|id| id.to_string().into()));
    put(&mut object, "endedAt", snapshot.ended_at.map(|at| at.to_string().into()));
    put(&mut object, "cutShort", (*is_cut || snapshot.is_cut_short).then_some(true.into()));
    put(&mut object, "terminationInfo", termination(snapshot));
    object
}

pub(super) fn put(object: &mut Value, key: &str, value: Option<Value>) {
    if let Some(value) = value {
        object[key] = value;
    }
}

fn termination(snapshot: &Snapshot) -> Option<Value> {
    snapshot.ended.as_ref().and_then(|data| serde_json::to_value(data).ok())
}

pub(super) fn print(ui: &mut Ui, snapshot: &Snapshot, seen: &Seen) -> Ended {
    if ui.json {
        ui.object(&to_json(snapshot, seen))?;
        return Ok(Exit::Ok);
    }
    let Seen { view: seen, errors, stopped, is_cut } = seen;
    let mut row = |name: &str, value: String| ui.line(&format!("{name:<10} {}", printable(&value)));
    row("session", snapshot.id.to_string())?;
    row("agent", format!("{} ({})", snapshot.agent, snapshot.harness))?;
    if let Some(program) = &snapshot.program {
        row("program", program.clone())?;
    }
    row("state", seen.state.to_string())?;
    if let Some(task) = &snapshot.task {
        row("task", task.to_string())?;
    }
    row("directory", snapshot.cwd.display().to_string())?;
    row("started", snapshot.started_at.to_string())?;
    if let Some(wall) = &snapshot.wall {
        row("wall", wall.clone())?;
    }
    for run in &seen.tool_runs {
        let id = (run.status == RunStatus::Failed).then(|| run.run_id.to_string());
        row("tool", lifecycle(&run.tool_name, run.status, run.attempt, run.error.as_deref(), id))?;
    }
    for run in &seen.hook_runs {
        let id = (run.status == RunStatus::Failed).then(|| run.run_id.to_string());
        row("hook", lifecycle(&run.hook_name, run.status, run.attempt, run.error.as_deref(), id))?;
    }
    for error in errors {
        row("error", format!("{}: {}", error.code, error.message))?;
    }
    for permission in &seen.permissions {
        row("waits for", format!("{}  {}", permission.id, permission.title))?;
    }
    match &snapshot.ended {
        Some(data) => print_ending(ui, data, stopped)?,
        None if *is_cut => {
            row("ended", "cut short: its owner is gone, and whoever serves next records it".to_owned())?;
            ui.hint("baton serve");
            return Ok(Exit::Ok);
        }
        None => {}
    }
    if let Some(permission) = seen.permissions.first() {
        ui.hint(&format!("baton session permit {} {} allow", snapshot.id, permission.id));
    } else if let Some((verb, run)) = retryable(seen) {
        ui.hint(&format!("baton session {verb} {} {run}", snapshot.id));
    }
    Ok(Exit::Ok)
}

/// What can be tried again by hand: of a session that waits, what its last error is about. The verb, and the run.
pub(super) fn retryable(view: &View) -> Option<(&'static str, String)> {
    if !matches!(view.state, StateKind::Ready | StateKind::Error) {
        return None;
    }
    match view.last_error.as_ref()?.source {
        ErrorSource::Tool => {
            let run = view.tool_runs.iter().rfind(|run| run.status == RunStatus::Failed)?;
            Some(("retry-tool", run.run_id.to_string()))
        }
        ErrorSource::Hook => {
            let run = view.hook_runs.iter().rfind(|run| run.status == RunStatus::Failed)?;
            Some(("retry-hook", run.run_id.to_string()))
        }
        _ => None,
    }
}

fn print_ending(ui: &mut Ui, data: &SessionEndedData, stopped: &Stopped) -> Result<(), Stop> {
    let lines = ending_lines(data, stopped);
    lines
        .iter()
        .enumerate()
        .try_for_each(|(i, line)| ui.line(&format!("{:<10} {line}", if i == 0 { "ended" } else { "" })))
}

fn lifecycle(name: &str, status: RunStatus, attempt: u32, error: Option<&str>, id: Option<String>) -> String {
    let attempt = if attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
    let error = error.map(|error| format!(": {error}")).unwrap_or_default();
    // What failed is named, for a retry.
    let id = id.map(|id| format!("  {id}")).unwrap_or_default();
    format!("{name}  {}{attempt}{error}{id}", status.as_str())
}

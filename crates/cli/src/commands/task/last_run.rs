//! The last run of a task, for `baton task show`: who worked on it, in which session, what they said of it, and where.

use std::path::PathBuf;

use baton_core::ids::SessionId;
use baton_core::session::{SessionEndedData, StateKind};
use baton_core::task::{Outcome, Papers, Run, Task};
use baton_core::{AgentName, Timestamp};
use baton_runtime::session::{BATON_DIED, Snapshot, view};
use baton_runtime::work::Worktrees;
use baton_store::tasks::files::folder_path;
use baton_store::tasks::fold::fold;
use baton_store::tasks::tree::{RealTree, Tree as _};
use baton_store::{Layout, lock};
use serde_json::{Map, Value, json};

use crate::commands::ending::{Stopped, ending};
use crate::context::Context;
use crate::error::Stop;
use crate::limits::{SUMMARY_BYTES_MAX, SUMMARY_CHARS};
use crate::sessions;
use crate::ui::text::shorten;
use crate::ui::time::ago;

/// What is known of it.
pub(super) struct LastRun {
    run: Run,
    session: Option<Session>,
    report: Option<Report>,
    worktree: Option<PathBuf>,
}

struct Session {
    id: SessionId,
    state: StateKind,
    ended: Option<SessionEndedData>,
    /// For people.
    stands: String,
}

/// What the agent said came of it.
struct Report {
    outcome: Outcome,
    /// The run failed in spite of it: a hook or an exit signal had the last word.
    is_refused: bool,
    notes: String,
    /// Where the summary is, as the report has it.
    summary_ref: String,
    /// Its text and its path, where it is in the task's folder.
    summary: Option<(String, PathBuf)>,
}

impl LastRun {
    /// Looks it up; `None` where nobody has worked on the task.
    pub(super) fn of(ctx: &Context, task: &Task, papers: &Papers) -> Result<Option<LastRun>, Stop> {
        let Some(run) = task.run.clone() else { return Ok(None) };
        let layout = ctx.layout()?;
        let session = run.session.as_ref().and_then(|token| token.as_str().parse::<SessionId>().ok());
        let session = match session {
            Some(id) => find_session(ctx, &layout, task, id)?,
            None => None,
        };
        let report = report(ctx, &layout, task, papers)?;
        let worktree = Worktrees::new(&ctx.work_dir(layout.root()), None).path(&task.id);
        let worktree = worktree.join(".git").exists().then_some(worktree);
        Ok(Some(LastRun { run, session, report, worktree }))
    }

    pub(super) fn session(&self) -> Option<SessionId> {
        self.session.as_ref().map(|session| session.id)
    }

    /// Rows for people: a name and a text.
    pub(super) fn rows(&self, now: Timestamp) -> Vec<(&'static str, String)> {
        let agent: &AgentName = &self.run.agent;
        let mut rows = vec![match (&self.run.ended, &self.report) {
            (None, None) => ("run", format!("by {agent}, began {}", ago(self.run.started_at, now))),
            (None, Some(report)) => ("run", format!("by {agent}, reported {}", report.outcome)),
            (Some(end), Some(report)) if !report.is_refused => {
                ("last run", format!("by {agent}, reported {}, ended {}", report.outcome, ago(end.at, now)))
            }
            (Some(end), _) => {
                let how = if end.failed { "failed" } else { "ended" };
                let why = if end.reason == BATON_DIED { "Baton itself ended" } else { &end.reason };
                ("last run", format!("by {agent}, {how} {}: {why}", ago(end.at, now)))
            }
        }];
        if let Some(session) = &self.session {
            rows.push(("session", format!("{}  {}", session.id, session.stands)));
        }
        if let Some(report) = self.report.as_ref().filter(|report| report.is_refused) {
            rows.push(("reported", format!("{}, which does not count", report.outcome)));
        } else if let Some(report) = &self.report {
            rows.extend((!report.notes.is_empty()).then(|| ("notes", report.notes.clone())));
            rows.push(("summary", report.summary_line()));
        }
        rows.extend(self.worktree.as_ref().map(|path| ("worktree", path.display().to_string())));
        rows.retain(|(_, text)| !text.is_empty());
        rows
    }

    /// Adds what scripts get of it to the task.
    pub(super) fn put_into(&self, object: &mut Map<String, Value>) {
        let mut last = json!({
            "runId": self.run.id.to_string(),
            "agent": self.run.agent.as_str(),
            "fence": self.run.fence,
            "startedAt": self.run.started_at.to_string(),
        });
        let mut put = |key: &str, value: Value| last[key] = value;
        if let Some(end) = &self.run.ended {
            put("endedAt", end.at.to_string().into());
            put("endReason", end.reason.as_str().into());
            put("failed", end.failed.into());
        }
        if let Some(session) = &self.session {
            put("sessionId", session.id.to_string().into());
            put("sessionState", session.state.as_str().into());
            if let Some(Ok(data)) = session.ended.as_ref().map(serde_json::to_value) {
                put("terminationInfo", data);
            }
        }
        if let Some(report) = &self.report {
            put("outcome", report.outcome.as_str().into());
            if report.is_refused {
                put("refused", true.into());
            }
            put("notes", report.notes.as_str().into());
            put("summaryRef", report.summary_ref.as_str().into());
            report.summary.iter().for_each(|(text, _)| put("summary", text.as_str().into()));
        }
        object.insert("lastRun".to_owned(), last);
        if let Some(path) = &self.worktree {
            object.insert("worktree".to_owned(), path.display().to_string().into());
        }
    }
}

impl Report {
    /// The first line of the summary, and where the rest is.
    fn summary_line(&self) -> String {
        let Some((text, path)) = &self.summary else { return self.summary_ref.clone() };
        let first = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
        format!("{}  ({})", shorten(first, SUMMARY_CHARS), path.display())
    }
}

fn find_session(ctx: &Context, layout: &Layout, task: &Task, id: SessionId) -> Result<Option<Session>, Stop> {
    let Ok(snapshot) = Snapshot::load(&sessions::dir_of(layout).join(id.to_string())) else {
        return Ok(None);
    };
    let (state, stands) = match &snapshot.ended {
        Some(data) => (StateKind::Stopped, ending(data, &Stopped::of(task, &snapshot))),
        None => {
            let seen = view(&ctx.visit()?.reader, &snapshot)?;
            let is_owned = matches!(lock::holder(layout), Ok(Some(_)));
            let stands = match (is_owned, seen.permissions.len()) {
                (false, _) => "cut short: its owner is gone".to_owned(),
                (true, 0) => seen.state.to_string(),
                (true, _) => format!("{}, waits for a permission", seen.state),
            };
            (if is_owned { seen.state } else { StateKind::Stopped }, stands)
        }
    };
    Ok(Some(Session { id, state, ended: snapshot.ended, stands }))
}

/// The report of the last run, and its summary. What was read of the task may be its file alone: then the ledger is asked.
fn report(ctx: &Context, layout: &Layout, task: &Task, papers: &Papers) -> Result<Option<Report>, Stop> {
    let Some(said) = &task.said.report else { return Ok(None) };
    let result = match &papers.result {
        Some(result) => Some(result.clone()),
        None => fold(&ctx.visit()?.reader, task, None)?.1.result,
    };
    let text = |key: &str| {
        let report = result.as_ref().map(|(done, _)| &done.report);
        report.and_then(|report| report.get(key)?.as_str()).unwrap_or_default().to_owned()
    };
    let summary_ref = text("summaryRef");
    let path = format!("{}/{summary_ref}", folder_path(task.status, &task.id));
    let read = RealTree::open(layout.root()).and_then(|tree| tree.read(&path, SUMMARY_BYTES_MAX));
    let summary = read.ok().filter(|_| !summary_ref.is_empty());
    let place = layout.root().join(&path);
    let summary = summary.map(|(bytes, _)| (String::from_utf8_lossy(&bytes).into_owned(), place));
    let is_refused = task.run.as_ref().and_then(|run| run.ended.as_ref()).is_some_and(|end| end.failed);
    Ok(Some(Report { outcome: said.outcome, is_refused, notes: text("notes"), summary_ref, summary }))
}

//! A session as people see it: folded from its events alone, so that it is the same before and after a restart.

use super::event::{Resolved, SessionEvent, StateChanged, Stated};
use super::model::{HookRun, Permission, SessionError, ToolRun};
use super::permission::{Answer, BY_BATON};
use super::words::{Reason, RunStatus, StateKind};
use crate::ids::StreamId;
use crate::moment::{Ids, Moment};

/// Most runs that a view keeps of each kind; the ledger has all.
const RUNS_MAX: usize = 1000;

/// What is shown of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    pub state: StateKind,
    pub stream: Option<StreamId>,
    pub tool_runs: Vec<ToolRun>,
    pub hook_runs: Vec<HookRun>,
    pub permissions: Vec<Permission>,
    pub last_error: Option<SessionError>,
    pub exit_code: Option<i32>,
}

impl Default for View {
    fn default() -> Self {
        View {
            state: StateKind::Idle,
            stream: None,
            tool_runs: Vec::new(),
            hook_runs: Vec::new(),
            permissions: Vec::new(),
            last_error: None,
            exit_code: None,
        }
    }
}

impl View {
    /// What is to be recorded of a session whose end nobody saw: everything that was open is canceled, then it is over.
    pub fn abandon(&self, moment: Moment) -> Vec<Stated> {
        if self.state == StateKind::Stopped {
            return Vec::new();
        }
        let mut ids = Ids::new(moment);
        let (now, error) = (Some(moment.now.unix_ms()), Some("Baton ended".to_owned()));
        let mut events = Vec::new();
        for run in self.tool_runs.iter().filter(|run| !run.status.is_terminal()) {
            let status = RunStatus::Canceled;
            let run = ToolRun { status, finished_at_ms: now, error: error.clone(), ..run.clone() };
            events.push(SessionEvent::ToolLifecycle(run));
        }
        for run in self.hook_runs.iter().filter(|run| !run.status.is_terminal()) {
            let status = RunStatus::Canceled;
            let run = HookRun { status, finished_at_ms: now, error: error.clone(), ..run.clone() };
            events.push(SessionEvent::HookLifecycle(run));
        }
        for permission in &self.permissions {
            let (id, by) = (permission.id.clone(), BY_BATON.to_owned());
            events.push(SessionEvent::PermissionResolved(Resolved { id, answer: Answer::Canceled, by }));
        }
        events.push(SessionEvent::StateChanged(StateChanged {
            from: self.state,
            to: StateKind::Stopped,
            reason: Reason::HarnessExited,
            stream_id: self.stream,
            exit_code: None,
        }));
        let stated = |event| Stated { id: ids.event(), at: moment.now, event };
        events.into_iter().map(stated).collect()
    }

    /// Takes the next event in.
    pub fn apply(&mut self, event: &SessionEvent) {
        match event {
            SessionEvent::StateChanged(changed) => {
                self.state = changed.to;
                self.stream = changed.stream_id.or(self.stream);
                self.exit_code = changed.exit_code.or(self.exit_code);
                let clears = match changed.reason {
                    Reason::UserInput | Reason::Retry => true,
                    Reason::ToolsCompleted | Reason::HooksCompleted => {
                        matches!(changed.to, StateKind::CallingLlm | StateKind::Ready)
                    }
                    _ => false,
                };
                if clears {
                    self.last_error = None;
                }
            }
            SessionEvent::ToolLifecycle(run) => {
                let same = |other: &ToolRun| other.run_id == run.run_id;
                put(&mut self.tool_runs, run.clone(), same);
            }
            SessionEvent::HookLifecycle(run) => {
                let same = |other: &HookRun| other.run_id == run.run_id;
                put(&mut self.hook_runs, run.clone(), same);
            }
            // What did not fit changed nothing.
            SessionEvent::Error(error) if error.source == super::ErrorSource::Orchestrator => {}
            SessionEvent::Error(error) => self.last_error = Some(error.clone()),
            SessionEvent::Warning(_) => {}
            SessionEvent::PermissionRequested(permission) => self.permissions.push(permission.clone()),
            SessionEvent::PermissionResolved(resolved) => {
                self.permissions.retain(|permission| permission.id != resolved.id);
            }
        }
    }
}

/// Replaces what is the same, from the end, where it mostly is; else adds it.
fn put<T>(all: &mut Vec<T>, item: T, same: impl Fn(&T) -> bool) {
    match all.iter().rposition(same) {
        Some(at) => all[at] = item,
        None => {
            if all.len() >= RUNS_MAX {
                all.remove(0);
            }
            all.push(item);
        }
    }
}

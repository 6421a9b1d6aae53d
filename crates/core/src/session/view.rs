//! A session as people see it: folded from its events alone, so that it is the same before and after a restart.

use super::event::SessionEvent;
use super::model::{HookRun, Permission, SessionError, ToolRun};
use super::words::{Reason, StateKind};
use crate::ids::StreamId;

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

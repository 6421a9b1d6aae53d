//! A batch of tools: asked for, run, and finished when every run of it is.

use super::effect::{Effect, Sent};
use super::event::SessionEvent;
use super::machine::{Called, Machine, Step, ToolsBy, Unfit};
use super::model::{SessionError, ToolCall, ToolRun};
use super::words::{ErrorCode, ErrorSource, Reason, RetryTarget, RunStatus, StateKind};
use crate::ids::ToolRunId;

/// Whether a tool of this name changes something, where its name says.
pub fn is_mutating(name: &str) -> Option<bool> {
    match name {
        "read_file" | "list_files" | "grep" | "search" => Some(false),
        "edit_file" | "write_file" | "apply_patch" | "bash" | "run_command" => Some(true),
        name if name.starts_with("git_") => Some(true),
        _ => None,
    }
}

impl Machine {
    pub(super) fn request_tool(&mut self, step: &mut Step, call: ToolCall) -> Result<(), Unfit> {
        if self.kind != StateKind::CallingLlm {
            return Err(Unfit::here(self.kind, "tools are asked for in an answer"));
        }
        match self.rules.tools_by {
            ToolsBy::Baton => {
                if self.pending.iter().any(|other| other.call_id == call.call_id) {
                    return Err(Unfit::here(self.kind, format!("call {} was asked for", call.call_id)));
                }
                self.pending.push(call);
            }
            // Agents announce a call more than once.
            ToolsBy::Agent if self.run_of(&call.call_id).is_some() => {}
            ToolsBy::Agent => self.queue(step, call),
        }
        Ok(())
    }

    fn queue(&mut self, step: &mut Step, call: ToolCall) {
        let run = ToolRun {
            run_id: step.ids().tool_run(),
            call_id: call.call_id.clone(),
            tool_name: call.name.clone(),
            mutating: call.mutating,
            status: RunStatus::Queued,
            attempt: 1,
            started_at_ms: step.now().unix_ms(),
            finished_at_ms: None,
            error: None,
        };
        self.tools.push(Called { call, run });
    }

    /// Runs what the answer asked for.
    pub(super) fn execute_pending(&mut self, step: &mut Step) {
        self.tools.clear();
        self.hooks.clear();
        for call in std::mem::take(&mut self.pending) {
            self.queue(step, call);
        }
        self.execute_queued(step);
    }

    pub(super) fn execute_queued(&self, step: &mut Step) {
        let queued = self.tools.iter().filter(|called| called.run.status == RunStatus::Queued);
        let runs = queued.map(|called| (called.run.run_id, called.call.clone())).collect();
        step.act(Effect::ExecuteTools { runs });
    }

    /// Whether tools may run now: in their state, or within the agent's own turn.
    fn are_tools_running(&self) -> bool {
        match self.rules.tools_by {
            ToolsBy::Baton => self.kind == StateKind::ExecutingTools,
            ToolsBy::Agent => self.kind == StateKind::CallingLlm,
        }
    }

    pub(super) fn start_tool(&mut self, step: &mut Step, run: ToolRunId) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopping {
            return Ok(());
        }
        if !self.are_tools_running() {
            return Err(Unfit::here(self.kind, "no tool runs"));
        }
        let now = step.now().unix_ms();
        let kind = self.kind;
        let Some(called) = self.tools.iter_mut().find(|called| called.run.run_id == run) else {
            return Err(Unfit::here(kind, format!("there is no {run} in the batch")));
        };
        if called.run.status != RunStatus::Queued {
            return Err(Unfit::here(kind, format!("{run} is {}", called.run.status)));
        }
        called.run.status = RunStatus::Running;
        called.run.started_at_ms = now;
        step.say(SessionEvent::ToolLifecycle(called.run.clone()));
        Ok(())
    }

    pub(super) fn complete_tool(
        &mut self,
        step: &mut Step,
        run: ToolRunId,
        status: RunStatus,
        error: Option<String>,
    ) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopping {
            // It has been canceled already.
            return Ok(());
        }
        if !self.are_tools_running() {
            return Err(Unfit::here(self.kind, "no tool runs"));
        }
        let kind = self.kind;
        let Some(called) = self.tools.iter_mut().find(|called| called.run.run_id == run) else {
            return Err(Unfit::here(kind, format!("there is no {run} in the batch")));
        };
        if called.run.status.is_terminal() || !status.is_terminal() {
            return Err(Unfit::here(
                kind,
                format!("{run} is {} and cannot become {status}", called.run.status),
            ));
        }
        end(step, called, status, error);
        let is_finished = self.tools.iter().all(|called| called.run.status.is_terminal());
        if self.rules.tools_by == ToolsBy::Baton && is_finished {
            self.finish_batch(step, false);
        }
        Ok(())
    }

    /// What follows when every run of the batch is at its end.
    pub(super) fn finish_batch(&mut self, step: &mut Step, is_tree_changed: bool) {
        let failed = self.tools.iter().find(|called| called.run.status == RunStatus::Failed);
        if let Some(Called { run, .. }) = failed
            && self.rules.tools_by == ToolsBy::Baton
        {
            let why = run.error.as_deref().unwrap_or("it failed");
            let message = format!("{}: {why}", run.tool_name);
            let wait = self.rules.tool_waits_ms.get(run.attempt.saturating_sub(1) as usize).copied();
            let target = RetryTarget::Tool(run.run_id);
            let (code, source) = (ErrorCode::ToolExecutionFailed, ErrorSource::Tool);
            self.cancel_permissions(step);
            self.fail(step, SessionError { code, message, retryable: true, source });
            self.go(step, StateKind::Error, Reason::ToolFailed);
            return self.wait_or_give_up(step, wait, target);
        }
        self.queue_hooks(step, is_tree_changed);
        if self.hooks.is_empty() {
            self.go_on(step, Reason::ToolsCompleted);
        } else {
            self.go(step, StateKind::PostToolsHook, Reason::ToolsCompleted);
            self.run_next_hook(step);
        }
    }

    /// After the tools and their hooks: the outputs go to the model, or the agent waits for what comes next.
    pub(super) fn go_on(&mut self, step: &mut Step, reason: Reason) {
        match self.rules.tools_by {
            ToolsBy::Baton => {
                self.attempt = 1;
                self.last_error = None;
                self.call(step, reason, Sent::ToolOutputs);
            }
            ToolsBy::Agent => {
                self.last_error = None;
                self.go(step, StateKind::Ready, reason);
            }
        }
    }

    /// Ends what still runs, or never began.
    pub(super) fn cancel_tools(&mut self, step: &mut Step, why: &str) {
        let mut canceled = Vec::new();
        for called in self.tools.iter_mut().filter(|called| !called.run.status.is_terminal()) {
            canceled.push(called.run.run_id);
            end(step, called, RunStatus::Canceled, Some(why.to_owned()));
        }
        if self.rules.tools_by == ToolsBy::Baton && !canceled.is_empty() {
            step.act(Effect::CancelRuns { tools: canceled, hooks: Vec::new() });
        }
    }
}

fn end(step: &mut Step, called: &mut Called, status: RunStatus, error: Option<String>) {
    called.run.status = status;
    called.run.finished_at_ms = Some(step.now().unix_ms());
    called.run.error = error;
    step.say(SessionEvent::ToolLifecycle(called.run.clone()));
}

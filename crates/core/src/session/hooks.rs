//! What runs after a batch of tools: one hook at a time, in the order of the configuration.

use super::effect::Effect;
use super::event::SessionEvent;
use super::machine::{Hooked, Machine, Step, Unfit};
use super::model::{HookRun, SessionError};
use super::words::{ErrorCode, ErrorSource, Reason, RetryTarget, RunStatus, StateKind};
use crate::ids::HookRunId;

/// A command that runs after tools.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hook {
    pub name: String,
    pub command: Vec<String>,
    pub timeout_ms: u64,
    pub failure_policy: FailurePolicy,
    pub tool_filter: ToolFilter,
}

/// What a failure leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailurePolicy {
    FailSession,
    WarnContinue,
    Retry { max_attempts: u32, delay_ms: u64 },
}

/// After which tools it runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolFilter {
    AnyMutating,
    /// Also where none of them changes anything.
    ToolNames(Vec<String>),
}

impl Machine {
    /// Lists the hooks that this batch calls for.
    pub(super) fn queue_hooks(&mut self, step: &mut Step, is_tree_changed: bool) {
        let is_mutating = is_tree_changed || self.tools.iter().any(|called| called.run.mutating);
        let is_wanted = |hook: &Hook| match &hook.tool_filter {
            ToolFilter::AnyMutating => is_mutating,
            ToolFilter::ToolNames(names) => {
                self.tools.iter().any(|called| names.contains(&called.run.tool_name))
            }
        };
        let tool_run_ids: Vec<_> = self.tools.iter().map(|called| called.run.run_id).collect();
        let started_at_ms = step.now().unix_ms();
        let wanted = self.rules.hooks.iter().enumerate().filter(|(_, hook)| is_wanted(hook));
        self.hooks = wanted
            .map(|(at, hook)| Hooked {
                hook: at,
                run: HookRun {
                    run_id: step.ids().hook_run(),
                    hook_name: hook.name.clone(),
                    tool_run_ids: tool_run_ids.clone(),
                    status: RunStatus::Queued,
                    attempt: 1,
                    started_at_ms,
                    finished_at_ms: None,
                    error: None,
                    output: None,
                },
            })
            .collect();
    }

    /// The next one, or what comes after the last.
    pub(super) fn run_next_hook(&mut self, step: &mut Step) {
        match self.hooks.iter().find(|hooked| hooked.run.status == RunStatus::Queued) {
            Some(Hooked { hook, run }) => {
                step.act(Effect::RunHook { run: run.run_id, hook: *hook, attempt: run.attempt });
            }
            None => self.go_on(step, Reason::HooksCompleted),
        }
    }

    pub(super) fn start_hook(&mut self, step: &mut Step, run: HookRunId) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopping {
            return Ok(());
        }
        if self.kind != StateKind::PostToolsHook {
            return Err(Unfit::here(self.kind, "no hook runs"));
        }
        let kind = self.kind;
        // In order, one at a time: only the first that is not at its end may begin.
        let first = self.hooks.iter_mut().find(|hooked| !hooked.run.status.is_terminal());
        match first.filter(|hooked| hooked.run.run_id == run && hooked.run.status == RunStatus::Queued) {
            Some(hooked) => {
                hooked.run.status = RunStatus::Running;
                hooked.run.started_at_ms = step.now().unix_ms();
                step.say(SessionEvent::HookLifecycle(hooked.run.clone()));
                Ok(())
            }
            None => Err(Unfit::here(kind, format!("{run} is not the next hook"))),
        }
    }

    pub(super) fn complete_hook(
        &mut self,
        step: &mut Step,
        run: HookRunId,
        status: RunStatus,
        error: Option<String>,
        output: Option<String>,
    ) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopping {
            return Ok(());
        }
        if self.kind != StateKind::PostToolsHook {
            return Err(Unfit::here(self.kind, "no hook runs"));
        }
        let kind = self.kind;
        let first = self.hooks.iter_mut().find(|hooked| !hooked.run.status.is_terminal());
        let Some(hooked) = first.filter(|hooked| hooked.run.run_id == run && status.is_terminal()) else {
            return Err(Unfit::here(kind, format!("{run} is not the hook that runs")));
        };
        hooked.run.output = output;
        end(step, hooked, status, error);
        let (at, ended) = (hooked.hook, hooked.run.clone());
        if status == RunStatus::Failed {
            self.judge_failure(step, at, &ended);
        } else {
            self.run_next_hook(step);
        }
        Ok(())
    }

    fn judge_failure(&mut self, step: &mut Step, hook: usize, run: &HookRun) {
        let policy =
            self.rules.hooks.get(hook).map_or(FailurePolicy::FailSession, |hook| hook.failure_policy);
        let why = run.error.as_deref().unwrap_or("it failed");
        let message = format!("hook {}: {why}", run.hook_name);
        let (code, source) = (ErrorCode::HookExecutionFailed, ErrorSource::Hook);
        let wait = match policy {
            FailurePolicy::WarnContinue => {
                step.say(SessionEvent::Warning(SessionError { code, message, retryable: false, source }));
                return self.run_next_hook(step);
            }
            FailurePolicy::FailSession => None,
            FailurePolicy::Retry { max_attempts, delay_ms } => {
                (run.attempt < max_attempts).then(|| i64::try_from(delay_ms).unwrap_or(i64::MAX))
            }
        };
        let retryable = matches!(policy, FailurePolicy::Retry { .. });
        self.fail(step, SessionError { code, message, retryable, source });
        if wait.is_none() {
            self.cancel_hooks(step, "a hook before it failed");
        }
        self.go(step, StateKind::Error, Reason::HookFailed);
        self.wait_or_give_up(step, wait, RetryTarget::Hook(run.run_id));
    }

    /// Ends the hook that runs, and those that never began.
    pub(super) fn cancel_hooks(&mut self, step: &mut Step, why: &str) {
        let mut running = Vec::new();
        for hooked in self.hooks.iter_mut().filter(|hooked| !hooked.run.status.is_terminal()) {
            if hooked.run.status == RunStatus::Running {
                running.push(hooked.run.run_id);
            }
            end(step, hooked, RunStatus::Canceled, Some(why.to_owned()));
        }
        if !running.is_empty() {
            step.act(Effect::CancelRuns { tools: Vec::new(), hooks: running });
        }
    }
}

fn end(step: &mut Step, hooked: &mut Hooked, status: RunStatus, error: Option<String>) {
    hooked.run.status = status;
    hooked.run.finished_at_ms = Some(step.now().unix_ms());
    hooked.run.error = error;
    step.say(SessionEvent::HookLifecycle(hooked.run.clone()));
}

//! Another attempt: after a wait, or because a person wants one. What succeeded is not run again.

use super::effect::{Effect, Sent};
use super::machine::{Machine, Step, Unfit};
use super::words::{ErrorSource, Reason, RetryTarget, RunStatus, StateKind};

impl Machine {
    /// Waits for another attempt, or lets it be: the error stays, and the session is ready for something else.
    pub(super) fn wait_or_give_up(&mut self, step: &mut Step, wait_ms: Option<i64>, target: RetryTarget) {
        match wait_ms {
            Some(wait_ms) => {
                self.retry = Some(target);
                step.act(Effect::SetTimer { at: step.now().plus_ms(wait_ms), target });
            }
            None => {
                self.retry = None;
                self.go(step, StateKind::Ready, Reason::RetriesExhausted);
            }
        }
    }

    pub(super) fn retry_in_time(&mut self, step: &mut Step, target: RetryTarget) -> Result<(), Unfit> {
        if self.kind != StateKind::Error || self.retry != Some(target) {
            return Err(Unfit::here(self.kind, "nothing waits for this attempt"));
        }
        self.try_again(step, target);
        Ok(())
    }

    pub(super) fn retry_by_hand(&mut self, step: &mut Step, target: RetryTarget) -> Result<(), Unfit> {
        if !matches!(self.kind, StateKind::Error | StateKind::Ready) {
            return Err(Unfit::here(self.kind, "it is tried again after a failure"));
        }
        let source = self.last_error.as_ref().map(|error| error.source);
        let is_failed = match target {
            RetryTarget::Llm => source == Some(ErrorSource::Harness),
            RetryTarget::Tool(id) => {
                let is_it = |status, run| run == id && status == RunStatus::Failed;
                source == Some(ErrorSource::Tool)
                    && self.tools.iter().any(|called| is_it(called.run.status, called.run.run_id))
            }
            RetryTarget::Hook(id) => {
                let is_it = |status, run| run == id && status == RunStatus::Failed;
                source == Some(ErrorSource::Hook)
                    && self.hooks.iter().any(|hooked| is_it(hooked.run.status, hooked.run.run_id))
            }
        };
        if !is_failed {
            return Err(Unfit::here(self.kind, "that did not fail last"));
        }
        self.try_again(step, target);
        Ok(())
    }

    fn try_again(&mut self, step: &mut Step, target: RetryTarget) {
        self.retry = None;
        self.last_error = None;
        match target {
            RetryTarget::Llm => {
                self.attempt += 1;
                self.call(step, Reason::Retry, Sent::Again);
            }
            RetryTarget::Tool(_) => {
                for called in self.tools.iter_mut().filter(|called| called.run.status == RunStatus::Failed) {
                    called.run.status = RunStatus::Queued;
                    called.run.attempt += 1;
                    (called.run.finished_at_ms, called.run.error) = (None, None);
                }
                self.go(step, StateKind::ExecutingTools, Reason::Retry);
                self.execute_queued(step);
            }
            RetryTarget::Hook(_) => {
                // Those that were canceled because of it have never run; one that only warned has had its chance.
                let first = self.hooks.iter().position(|hooked| match target {
                    RetryTarget::Hook(id) => hooked.run.run_id == id,
                    _ => false,
                });
                for hooked in self.hooks.iter_mut().skip(first.unwrap_or(0)) {
                    if matches!(hooked.run.status, RunStatus::Failed | RunStatus::Canceled) {
                        hooked.run.status = RunStatus::Queued;
                        hooked.run.attempt += 1;
                        (hooked.run.finished_at_ms, hooked.run.error) = (None, None);
                        hooked.run.output = None;
                    }
                }
                self.go(step, StateKind::PostToolsHook, Reason::Retry);
                self.run_next_hook(step);
            }
        }
    }
}

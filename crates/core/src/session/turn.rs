//! From nothing to ready, and from one request to the end of its answer.

use super::effect::{Effect, Sent};
use super::machine::{Machine, Step, ToolsBy, Unfit};
use super::model::SessionError;
use super::words::{ErrorCode, ErrorSource, Reason, RetryTarget, StateKind};

impl Machine {
    pub(super) fn spawn(&mut self, step: &mut Step) -> Result<(), Unfit> {
        if self.kind != StateKind::Idle {
            return Err(Unfit::here(self.kind, "it has begun"));
        }
        self.go(step, StateKind::Starting, Reason::Spawned);
        step.act(Effect::SpawnHarness);
        Ok(())
    }

    pub(super) fn become_ready(&mut self, step: &mut Step) -> Result<(), Unfit> {
        if self.kind != StateKind::Starting {
            return Err(Unfit::here(self.kind, "only a session that starts becomes ready by itself"));
        }
        self.go(step, StateKind::Ready, Reason::HarnessReady);
        Ok(())
    }

    pub(super) fn begin_turn(&mut self, step: &mut Step, text: String) -> Result<(), Unfit> {
        if self.kind != StateKind::Ready {
            return Err(Unfit::here(self.kind, "input is taken when it is ready"));
        }
        self.last_error = None;
        self.attempt = 1;
        self.call(step, Reason::UserInput, Sent::Prompt(text));
        Ok(())
    }

    /// Sends a request: a stream of its own, and a batch of its own.
    pub(super) fn call(&mut self, step: &mut Step, reason: Reason, sent: Sent) {
        let stream = step.ids().stream();
        self.stream = Some(stream);
        self.pending.clear();
        self.tools.clear();
        self.hooks.clear();
        self.retry = None;
        self.go(step, StateKind::CallingLlm, reason);
        step.act(Effect::SendToHarness { stream, attempt: self.attempt, sent });
    }

    pub(super) fn end_stream(&mut self, step: &mut Step, is_tree_changed: bool) -> Result<(), Unfit> {
        if self.kind != StateKind::CallingLlm {
            return Err(Unfit::here(self.kind, "no answer is under way"));
        }
        self.cancel_permissions(step);
        self.cancel_tools(step, "the turn ended before it did");
        self.go(step, StateKind::ProcessingResponse, Reason::StreamCompleted);
        match self.rules.tools_by {
            ToolsBy::Baton if self.pending.is_empty() => {
                self.go(step, StateKind::Ready, Reason::StreamCompleted);
            }
            ToolsBy::Baton => {
                self.go(step, StateKind::ExecutingTools, Reason::ToolsRequested);
                self.execute_pending(step);
            }
            ToolsBy::Agent if self.tools.is_empty() && !is_tree_changed => {
                self.go(step, StateKind::Ready, Reason::StreamCompleted);
            }
            ToolsBy::Agent => {
                // They have been run; what is left is what follows from it.
                self.go(step, StateKind::ExecutingTools, Reason::ToolsRequested);
                self.finish_batch(step, is_tree_changed);
            }
        }
        Ok(())
    }

    pub(super) fn fail_stream(
        &mut self,
        step: &mut Step,
        message: String,
        retryable: bool,
    ) -> Result<(), Unfit> {
        if self.kind != StateKind::CallingLlm {
            return Err(Unfit::here(self.kind, "no answer is under way"));
        }
        self.cancel_permissions(step);
        self.cancel_tools(step, "the request failed");
        self.pending.clear();
        let wait = self.rules.llm_waits_ms.get(self.attempt.saturating_sub(1) as usize).copied();
        let wait = wait.filter(|_| retryable);
        let (code, source) = (ErrorCode::StreamingFailed, ErrorSource::Harness);
        self.fail(step, SessionError { code, message, retryable, source });
        self.go(step, StateKind::Error, Reason::LlmFailed);
        self.wait_or_give_up(step, wait, RetryTarget::Llm);
        Ok(())
    }
}

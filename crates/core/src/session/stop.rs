//! The end: because somebody wants it, or because the agent's process is gone.

use super::effect::Effect;
use super::machine::{Machine, Step, Unfit};
use super::model::SessionError;
use super::words::{ErrorCode, ErrorSource, Reason, StateKind};

impl Machine {
    /// Stopping always wins.
    pub(super) fn stop(&mut self, step: &mut Step) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopping {
            return Ok(());
        }
        self.end_everything(step, "the session was stopped");
        self.go(step, StateKind::Stopping, Reason::StopRequested);
        step.act(Effect::StopHarness);
        Ok(())
    }

    pub(super) fn exit(&mut self, step: &mut Step, code: Option<i32>, message: String) -> Result<(), Unfit> {
        let is_expected = match self.kind {
            StateKind::Stopping => true,
            StateKind::Ready => code == Some(0),
            _ => false,
        };
        self.end_everything(step, "the agent ended");
        if !is_expected {
            let (code, source) = (ErrorCode::HarnessFailed, ErrorSource::Harness);
            self.fail(step, SessionError { code, message, retryable: true, source });
            if self.kind != StateKind::Error {
                self.go(step, StateKind::Error, Reason::HarnessExited);
            }
        }
        self.go_with(step, StateKind::Stopped, Reason::HarnessExited, code);
        Ok(())
    }

    /// Nothing runs, waits or is asked for any more.
    fn end_everything(&mut self, step: &mut Step, why: &str) {
        self.cancel_permissions(step);
        self.cancel_tools(step, why);
        self.cancel_hooks(step, why);
        self.pending.clear();
        self.retry = None;
    }
}

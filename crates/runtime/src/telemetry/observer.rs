//! One session as it is logged: a line for everything that a person asks after later, and the spans of its turns.
//!
//! A turn is a span; the requests to the model, the runs of tools and of hooks in it are its children. A session is driven by events, so spans are
//! held here and end when they are dropped; nothing is ever entered.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::ids::{HookRunId, SessionId, ToolRunId};
use baton_core::session::{
    HookRun, Input, RunStatus, SessionEndedData, SessionError, SessionEvent, StateKind, Stated, ToolRun,
};
use tracing::{Span, debug, error, info, info_span, warn};

use super::TARGET;
use super::metrics::Metrics;

/// Watches one session.
#[derive(Debug)]
pub struct Observer {
    session: String,
    metrics: Arc<Metrics>,
    /// The request of the moment, or the last one.
    stream: Option<String>,
    turn: Span,
    request: Option<Span>,
    tools: BTreeMap<ToolRunId, Span>,
    hooks: BTreeMap<HookRunId, Span>,
}

impl Observer {
    pub fn new(session: SessionId, metrics: Arc<Metrics>) -> Self {
        Observer {
            session: session.to_string(),
            metrics,
            stream: None,
            turn: Span::none(),
            request: None,
            tools: BTreeMap::new(),
            hooks: BTreeMap::new(),
        }
    }

    /// Takes note of what comes. Only what a tool is called with is said, and only to whoever debugs: there may be secrets in it.
    pub fn hear(&self, input: &Input) {
        if let Input::ToolRequested { call } = input {
            let (session_id, tool_name) = (self.session.as_str(), call.name.as_str());
            let (call_id, arguments) = (call.call_id.as_str(), &call.arguments);
            debug!(target: TARGET, parent: &self.turn, session_id, tool_name, call_id, %arguments, "tool requested");
        }
    }

    /// Takes the next event in.
    pub fn observe(&mut self, stated: &Stated) {
        match &stated.event {
            SessionEvent::StateChanged(changed) => {
                self.stream = changed.stream_id.map(|stream| stream.to_string()).or(self.stream.take());
                let (from, to, reason) = (changed.from, changed.to, changed.reason.as_str());
                self.metrics.count_transition(from, to);
                self.open_for(to);
                let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
                let (old, new, exit_code) = (from.as_str(), to.as_str(), changed.exit_code);
                info!(
                    target: TARGET, parent: &self.turn, session_id, from = old, to = new, reason, stream_id, exit_code,
                    "state changed"
                );
                self.close_for(from, to);
            }
            SessionEvent::ToolLifecycle(run) => self.tool(run),
            SessionEvent::HookLifecycle(run) => self.hook(run),
            SessionEvent::Error(told) => {
                self.metrics.count_error(told.code);
                let SessionError { code, message, retryable, source } = told;
                let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
                let (error_code, source) = (code.as_str(), source.as_str());
                error!(
                    target: TARGET, parent: &self.turn, session_id, stream_id, error_code, source, retryable,
                    error = message.as_str(), "session error"
                );
            }
            SessionEvent::Warning(told) => {
                let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
                let (error_code, error) = (told.code.as_str(), told.message.as_str());
                warn!(target: TARGET, parent: &self.turn, session_id, stream_id, error_code, error, "session warning");
            }
            // Their titles may repeat what a tool is called with.
            SessionEvent::PermissionRequested(permission) => {
                let (session_id, kind) = (self.session.as_str(), permission.kind.as_str());
                info!(target: TARGET, parent: &self.turn, session_id, kind, "permission requested");
            }
            SessionEvent::PermissionResolved(resolved) => {
                let (session_id, by) = (self.session.as_str(), resolved.by.as_str());
                info!(target: TARGET, parent: &self.turn, session_id, by, "permission resolved");
            }
        }
    }

    /// Takes the end in: how the agent's process went, and why.
    pub fn ended(&self, data: &SessionEndedData) {
        let (session_id, exit_code, duration_ms) = (self.session.as_str(), data.exit_code, data.duration_ms);
        let (reason, terminated_by) = (data.reason.as_str(), data.terminated_by.as_str());
        let signal = data.signal.as_ref().map(|signal| signal.name.as_str());
        let cause = data.cause.map(baton_core::session::Cause::as_str);
        info!(
            target: TARGET, session_id, reason, terminated_by, exit_code, signal, cause, duration_ms, "harness exited"
        );
    }

    /// Opens what begins with a state.
    fn open_for(&mut self, to: StateKind) {
        let is_turn =
            matches!(to, StateKind::CallingLlm | StateKind::ExecutingTools | StateKind::PostToolsHook);
        let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
        if is_turn && self.turn.is_none() {
            self.turn = info_span!(target: TARGET, parent: None, "turn", session_id, stream_id);
        }
        if to == StateKind::CallingLlm {
            let span = info_span!(target: TARGET, parent: &self.turn, "llm_request", session_id, stream_id);
            self.request = Some(span);
        }
    }

    /// Ends what ends with a state.
    fn close_for(&mut self, from: StateKind, to: StateKind) {
        if from == StateKind::CallingLlm && to != StateKind::CallingLlm {
            self.request = None;
        }
        if matches!(to, StateKind::Ready | StateKind::Stopping | StateKind::Stopped) {
            (self.request, self.turn) = (None, Span::none());
            self.tools.clear();
            self.hooks.clear();
        }
    }

    fn tool(&mut self, run: &ToolRun) {
        let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
        let (run_id, attempt) = (run.run_id.to_string(), run.attempt);
        let (run_id, tool_name) = (run_id.as_str(), run.tool_name.as_str());
        match run.status {
            RunStatus::Queued => {}
            RunStatus::Running => {
                let span = info_span!(
                    target: TARGET, parent: &self.turn, "tool_run", session_id, run_id, tool_name, attempt
                );
                info!(target: TARGET, parent: &span, session_id, stream_id, run_id, tool_name, attempt, "tool started");
                self.tools.insert(run.run_id, span);
            }
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => {
                let span = self.tools.remove(&run.run_id).unwrap_or_else(|| self.turn.clone());
                let duration_ms = duration(run.started_at_ms, run.finished_at_ms);
                let (status, error_code) = (run.status.as_str(), failed(run.status, "tool_execution_failed"));
                self.metrics.time_tool(duration_ms);
                info!(
                    target: TARGET, parent: &span, session_id, stream_id, run_id, tool_name, attempt, status, duration_ms,
                    error_code, "tool ended"
                );
            }
        }
    }

    fn hook(&mut self, run: &HookRun) {
        let (session_id, stream_id) = (self.session.as_str(), self.stream.as_deref());
        let (run_id, attempt) = (run.run_id.to_string(), run.attempt);
        let (run_id, hook_name) = (run_id.as_str(), run.hook_name.as_str());
        match run.status {
            RunStatus::Queued => {}
            RunStatus::Running => {
                let span = info_span!(
                    target: TARGET, parent: &self.turn, "hook_run", session_id, run_id, hook_name, attempt
                );
                info!(target: TARGET, parent: &span, session_id, stream_id, run_id, hook_name, attempt, "hook started");
                self.hooks.insert(run.run_id, span);
            }
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => {
                let span = self.hooks.remove(&run.run_id).unwrap_or_else(|| self.turn.clone());
                let duration_ms = duration(run.started_at_ms, run.finished_at_ms);
                let (status, error_code) = (run.status.as_str(), failed(run.status, "hook_execution_failed"));
                self.metrics.time_hook(duration_ms);
                info!(
                    target: TARGET, parent: &span, session_id, stream_id, run_id, hook_name, attempt, status, duration_ms,
                    error_code, "hook ended"
                );
            }
        }
    }
}

/// The code of an error, where there was one.
fn failed(status: RunStatus, code: &'static str) -> Option<&'static str> {
    (status == RunStatus::Failed).then_some(code)
}

/// A clock that was set back makes no run shorter than nothing.
fn duration(started_at_ms: i64, finished_at_ms: Option<i64>) -> u64 {
    finished_at_ms.and_then(|finished| u64::try_from(finished - started_at_ms).ok()).unwrap_or(0)
}

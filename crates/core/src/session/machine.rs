//! The machine itself: which input goes where, and what an input that does not fit leads to. Each family of transitions is in a file of its own.

use super::effect::{Decision, Effect};
use super::event::{SessionEvent, StateChanged, Stated};
use super::hooks::Hook;
use super::input::{Input, StreamEnd};
use super::model::{HookRun, Permission, SessionError, ToolCall, ToolRun};
use super::words::{ErrorCode, ErrorSource, Reason, RetryTarget, StateKind};
use crate::ids::{SessionId, StreamId};
use crate::moment::{Ids, Moment};
use crate::time::Timestamp;

/// Who runs the tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsBy {
    /// The answer asks for them, Baton runs them and sends their outputs.
    Baton,
    /// The agent, within its turn; Baton sees them.
    Agent,
}

/// What a session goes by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    pub tools_by: ToolsBy,
    pub hooks: Vec<Hook>,
    /// The wait before each further attempt at a request, in milliseconds; as many as there are waits.
    pub llm_waits_ms: Vec<i64>,
    pub tool_waits_ms: Vec<i64>,
    /// How long somebody may think about a permission.
    pub permission_ms: i64,
    /// The same for a question of the agent's own.
    pub question_ms: i64,
}

impl Rules {
    pub fn new(tools_by: ToolsBy, hooks: Vec<Hook>) -> Self {
        Rules {
            tools_by,
            hooks,
            llm_waits_ms: vec![250, 1000],
            tool_waits_ms: vec![500],
            permission_ms: 5 * 60_000,
            question_ms: 10 * 60_000,
        }
    }
}

/// A call of the batch with its run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Called {
    pub(super) call: ToolCall,
    pub(super) run: ToolRun,
}

/// A hook of the batch with its run.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Hooked {
    /// Its place in the configuration.
    pub(super) hook: usize,
    pub(super) run: HookRun,
}

/// One session's state.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    pub(super) id: SessionId,
    pub(super) rules: Rules,
    pub(super) kind: StateKind,
    pub(super) stream: Option<StreamId>,
    /// Of the request that is under way, or was last.
    pub(super) attempt: u32,
    /// Calls that the answer under way asks for.
    pub(super) pending: Vec<ToolCall>,
    /// The batch: everything that the last answer called for.
    pub(super) tools: Vec<Called>,
    pub(super) hooks: Vec<Hooked>,
    pub(super) permissions: Vec<Permission>,
    pub(super) last_error: Option<SessionError>,
    /// What a timer will try again.
    pub(super) retry: Option<RetryTarget>,
}

impl Machine {
    pub fn new(id: SessionId, rules: Rules) -> Self {
        Machine {
            id,
            rules,
            kind: StateKind::Idle,
            stream: None,
            attempt: 0,
            pending: Vec::new(),
            tools: Vec::new(),
            hooks: Vec::new(),
            permissions: Vec::new(),
            last_error: None,
            retry: None,
        }
    }

    pub fn id(&self) -> SessionId {
        self.id
    }

    pub fn kind(&self) -> StateKind {
        self.kind
    }

    pub fn rules(&self) -> &Rules {
        &self.rules
    }

    pub fn last_error(&self) -> Option<&SessionError> {
        self.last_error.as_ref()
    }

    /// What the timer is for that was asked for last; nothing, where it has become pointless.
    pub fn waits_for(&self) -> Option<RetryTarget> {
        self.retry
    }

    pub fn stream(&self) -> Option<StreamId> {
        self.stream
    }

    pub fn permissions(&self) -> &[Permission] {
        &self.permissions
    }

    /// The calls of the batch, in the order of the answer.
    pub fn calls(&self) -> impl Iterator<Item = (&ToolCall, &ToolRun)> {
        self.tools.iter().map(|called| (&called.call, &called.run))
    }

    pub fn hook_runs(&self) -> impl Iterator<Item = &HookRun> {
        self.hooks.iter().map(|hooked| &hooked.run)
    }

    /// The run of a call in this batch, by the name that the agent gave the call.
    pub fn run_of(&self, call_id: &str) -> Option<&ToolRun> {
        self.tools.iter().find(|called| called.call.call_id == call_id).map(|called| &called.run)
    }

    /// Takes one input. What does not fit changes nothing, and is told as an error.
    pub fn handle(&mut self, session: SessionId, input: Input, moment: Moment) -> Decision {
        let mut step = Step::new(moment);
        let name = input.name();
        let taken = if session == self.id {
            self.take(&mut step, input)
        } else {
            let message = format!("there is no session {session} here");
            Err(Unfit { code: ErrorCode::SessionNotFound, message })
        };
        if let Err(Unfit { code, message }) = taken {
            step = Step::new(moment);
            let message = format!("{name}: {message}");
            let source = ErrorSource::Orchestrator;
            step.say(SessionEvent::Error(SessionError { code, message, retryable: false, source }));
        }
        step.decision
    }

    fn take(&mut self, step: &mut Step, input: Input) -> Result<(), Unfit> {
        if self.kind == StateKind::Stopped {
            return Err(Unfit::here(self.kind, "it has ended"));
        }
        match input {
            Input::Spawn => self.spawn(step),
            Input::HarnessReady => self.become_ready(step),
            Input::UserInput { text } => self.begin_turn(step, text),
            Input::StreamDelta => Ok(()),
            Input::StreamEnded(StreamEnd::Completed { is_tree_changed }) => {
                self.end_stream(step, is_tree_changed)
            }
            Input::StreamEnded(StreamEnd::Failed { message, retryable }) => {
                self.fail_stream(step, message, retryable)
            }
            Input::ToolRequested { call } => self.request_tool(step, call),
            Input::ToolStarted { run } => self.start_tool(step, run),
            Input::ToolCompleted { run, status, error } => self.complete_tool(step, run, status, error),
            Input::HookStarted { run } => self.start_hook(step, run),
            Input::HookCompleted { run, status, error, output } => {
                self.complete_hook(step, run, status, error, output)
            }
            Input::PermissionRequested { id, kind, title, call_id } => {
                self.request_permission(step, (id, kind, title, call_id))
            }
            Input::PermissionAnswered { id, answer, by } => self.answer_permission(step, &id, answer, by),
            Input::RetryTimeout { target } => self.retry_in_time(step, target),
            Input::RetryTool { run } => self.retry_by_hand(step, RetryTarget::Tool(run)),
            Input::RetryHook { run } => self.retry_by_hand(step, RetryTarget::Hook(run)),
            Input::StopRequested => self.stop(step),
            Input::HarnessExited { code, message } => self.exit(step, code, message),
        }
    }

    /// Goes to another state.
    pub(super) fn go(&mut self, step: &mut Step, to: StateKind, reason: Reason) {
        self.go_with(step, to, reason, None);
    }

    pub(super) fn go_with(&mut self, step: &mut Step, to: StateKind, reason: Reason, exit_code: Option<i32>) {
        let changed = StateChanged { from: self.kind, to, reason, stream_id: self.stream, exit_code };
        self.kind = to;
        step.say(SessionEvent::StateChanged(changed));
    }

    /// Tells of an error and keeps it.
    pub(super) fn fail(&mut self, step: &mut Step, error: SessionError) {
        step.say(SessionEvent::Error(error.clone()));
        self.last_error = Some(error);
    }
}

impl Input {
    /// What it is called in messages.
    pub fn name(&self) -> &'static str {
        match self {
            Input::Spawn => "Spawn",
            Input::HarnessReady => "HarnessReady",
            Input::UserInput { .. } => "UserInput",
            Input::StreamDelta => "HarnessStream(delta)",
            Input::StreamEnded(StreamEnd::Completed { .. }) => "HarnessStream(completed)",
            Input::StreamEnded(StreamEnd::Failed { .. }) => "HarnessStream(error)",
            Input::ToolRequested { .. } => "ToolRequested",
            Input::ToolStarted { .. } => "ToolStarted",
            Input::ToolCompleted { .. } => "ToolCompleted",
            Input::HookStarted { .. } => "HookStarted",
            Input::HookCompleted { .. } => "HookCompleted",
            Input::PermissionRequested { .. } => "PermissionRequested",
            Input::PermissionAnswered { .. } => "PermissionAnswered",
            Input::RetryTimeout { .. } => "RetryTimeout",
            Input::RetryTool { .. } => "RetryTool",
            Input::RetryHook { .. } => "RetryHook",
            Input::StopRequested => "StopRequested",
            Input::HarnessExited { .. } => "HarnessExited",
        }
    }
}

/// Why an input changes nothing.
#[derive(Debug)]
pub(super) struct Unfit {
    pub(super) code: ErrorCode,
    pub(super) message: String,
}

impl Unfit {
    pub(super) fn here(kind: StateKind, why: impl Into<String>) -> Self {
        let message = format!("in {kind}: {}", why.into());
        Unfit { code: ErrorCode::StateTransitionInvalid, message }
    }
}

/// A decision in the making.
pub(super) struct Step {
    ids: Ids,
    now: Timestamp,
    decision: Decision,
}

impl Step {
    fn new(moment: Moment) -> Self {
        Step { ids: Ids::new(moment), now: moment.now, decision: Decision::default() }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    pub(super) fn ids(&mut self) -> &mut Ids {
        &mut self.ids
    }

    pub(super) fn say(&mut self, event: SessionEvent) {
        let id = self.ids.event();
        self.decision.events.push(Stated { id, at: self.now, event });
    }

    pub(super) fn act(&mut self, effect: Effect) {
        self.decision.effects.push(effect);
    }
}

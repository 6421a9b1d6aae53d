//! The machine in the hands of tests: every step is followed by all that must hold after any step.

mod bugs;
mod random;
mod table;

use super::*;
use crate::ids::{SessionId, ToolRunId, Uuid7};
use crate::moment::Moment;
use crate::time::Timestamp;
use serde_json::json;

/// A machine, what its events say, and a clock that the test moves.
pub(super) struct Rig {
    pub(super) machine: Machine,
    pub(super) view: View,
    now: Timestamp,
    count: u32,
    /// Everything that was said, for invariants that need the past.
    said: Vec<SessionEvent>,
    /// Requests that were sent and not yet answered.
    open_requests: usize,
}

pub(super) fn session() -> SessionId {
    SessionId::new(Uuid7::from_parts(at(0), [1; 10]))
}

fn at(ms: i64) -> Timestamp {
    Timestamp::nearest(1_770_000_000_000 + ms)
}

pub(super) fn hook(name: &str, failure_policy: FailurePolicy, tool_filter: ToolFilter) -> Hook {
    Hook { name: name.into(), command: vec!["true".into()], timeout_ms: 1000, failure_policy, tool_filter }
}

pub(super) fn call(id: &str, name: &str) -> ToolCall {
    let mutating = is_mutating(name).unwrap_or(false);
    ToolCall { call_id: id.into(), name: name.into(), arguments: json!({"of": id}), mutating }
}

pub(super) fn completed() -> Input {
    Input::StreamEnded(StreamEnd::Completed { is_tree_changed: false })
}

pub(super) fn failed(retryable: bool) -> Input {
    Input::StreamEnded(StreamEnd::Failed { message: "overloaded".into(), retryable })
}

pub(super) fn ended(run: ToolRunId, status: RunStatus) -> Input {
    let error = (status == RunStatus::Failed).then(|| "timed out".to_owned());
    Input::ToolCompleted { run, status, error }
}

pub(super) fn exited(code: Option<i32>) -> Input {
    Input::HarnessExited { code, message: "it is gone".into() }
}

impl Rig {
    pub(super) fn new(tools_by: ToolsBy, hooks: Vec<Hook>) -> Rig {
        let machine = Machine::new(session(), Rules::new(tools_by, hooks));
        Rig { machine, view: View::default(), now: at(0), count: 0, said: Vec::new(), open_requests: 0 }
    }

    /// Ready for input.
    pub(super) fn ready(tools_by: ToolsBy, hooks: Vec<Hook>) -> Rig {
        let mut rig = Rig::new(tools_by, hooks);
        rig.give(Input::Spawn);
        rig.give(Input::HarnessReady);
        rig
    }

    /// In its first request.
    pub(super) fn calling(tools_by: ToolsBy, hooks: Vec<Hook>) -> Rig {
        let mut rig = Rig::ready(tools_by, hooks);
        rig.give(Input::UserInput { text: "go".into() });
        rig
    }

    /// In a batch of these tools, all of which have begun.
    pub(super) fn executing(tools: &[&str], hooks: Vec<Hook>) -> Rig {
        let mut rig = Rig::calling(ToolsBy::Baton, hooks);
        for (i, name) in tools.iter().enumerate() {
            rig.give(Input::ToolRequested { call: call(&format!("c{i}"), name) });
        }
        rig.give(completed());
        for run in rig.runs() {
            rig.give(Input::ToolStarted { run });
        }
        rig
    }

    pub(super) fn runs(&self) -> Vec<ToolRunId> {
        self.machine.tools.iter().map(|called| called.run.run_id).collect()
    }

    pub(super) fn hook_run(&self, at: usize) -> crate::ids::HookRunId {
        self.machine.hooks[at].run.run_id
    }

    pub(super) fn end_hook(&mut self, at: usize, status: RunStatus) -> Decision {
        let run = self.hook_run(at);
        self.give(Input::HookStarted { run });
        let error = (status == RunStatus::Failed).then(|| "exit 1".to_owned());
        self.give(Input::HookCompleted { run, status, error, output: None })
    }

    pub(super) fn give(&mut self, input: Input) -> Decision {
        self.give_to(session(), input)
    }

    pub(super) fn give_to(&mut self, to: SessionId, input: Input) -> Decision {
        self.count += 1;
        self.now = self.now.plus_ms(10);
        let mut seed = [0; 10];
        seed[..4].copy_from_slice(&self.count.to_be_bytes());
        let before = self.machine.clone();
        let is_end = matches!(input, Input::StreamEnded(_));
        let decision = self.machine.handle(to, input, Moment { now: self.now, seed });
        self.check(&before, &decision, is_end);
        decision
    }

    /// What must hold after every step.
    #[track_caller]
    fn check(&mut self, before: &Machine, decision: &Decision, is_end: bool) {
        let machine = &self.machine;
        let is_refused = is_refused(decision);
        if is_refused {
            assert_eq!(machine, before, "what does not fit changes nothing");
            assert!(decision.effects.is_empty());
        }
        // One request at a time.
        if is_end && !is_refused || machine.kind != before.kind && before.kind == StateKind::CallingLlm {
            self.open_requests = 0;
        }
        let sent: Vec<_> = decision
            .effects
            .iter()
            .filter_map(|effect| match effect {
                Effect::SendToHarness { stream, .. } => Some(*stream),
                _ => None,
            })
            .collect();
        self.open_requests += sent.len();
        assert!(self.open_requests <= 1, "{machine:?}");
        // The stream changes only with a new request.
        match sent[..] {
            [stream] => {
                assert_ne!(before.stream, Some(stream), "a stream id is used once");
                assert_eq!(machine.stream, Some(stream));
            }
            _ => assert_eq!(machine.stream, before.stream),
        }
        if machine.kind == StateKind::Ready {
            assert!(machine.pending.is_empty());
            assert!(machine.tools.iter().all(|called| called.run.status.is_terminal()));
        }
        assert_ne!(machine.kind, StateKind::ProcessingResponse, "it is passed through");
        let running = machine.hooks.iter().filter(|hooked| hooked.run.status == RunStatus::Running).count();
        assert!(running <= 1, "hooks never overlap");
        if !machine.hooks.is_empty() && machine.kind == StateKind::PostToolsHook {
            assert!(
                machine.tools.iter().all(|called| called.run.status.is_terminal()),
                "after the whole batch"
            );
        }
        if matches!(machine.kind, StateKind::Stopping | StateKind::Stopped) {
            assert!(machine.tools.iter().all(|called| called.run.status.is_terminal()));
            assert!(machine.hooks.iter().all(|hooked| hooked.run.status.is_terminal()));
            assert!(machine.permissions.is_empty() && machine.retry.is_none());
        }
        assert!(
            machine.retry.is_none() || machine.kind == StateKind::Error,
            "only an error waits for another attempt"
        );
        if machine.kind == StateKind::Error {
            assert!(machine.retry.is_some(), "it never rests in error without a way on");
        }
        self.check_events(before, decision);
        for stated in &decision.events {
            self.view.apply(&stated.event);
        }
        self.check_view();
        self.said.extend(decision.events.iter().map(|stated| stated.event.clone()));
    }

    #[track_caller]
    fn check_events(&self, before: &Machine, decision: &Decision) {
        let mut kind = before.kind;
        let mut last_error_at = None;
        for (i, stated) in decision.events.iter().enumerate() {
            match &stated.event {
                SessionEvent::StateChanged(changed) => {
                    assert_eq!(changed.from, kind, "every transition is told");
                    assert_ne!(changed.from, changed.to);
                    if changed.to == StateKind::Error {
                        assert!(last_error_at.is_some(), "the error is told before the state");
                    }
                    kind = changed.to;
                }
                SessionEvent::Error(_) => last_error_at = Some(i),
                SessionEvent::ToolLifecycle(run) => {
                    let is_over = self.said.iter().any(|event| match event {
                        SessionEvent::ToolLifecycle(old) => {
                            old.run_id == run.run_id && old.attempt == run.attempt && old.status.is_terminal()
                        }
                        _ => false,
                    });
                    assert!(!is_over, "one terminal status for each attempt: {run:?}");
                    assert_eq!(run.status.is_terminal(), run.finished_at_ms.is_some());
                }
                SessionEvent::HookLifecycle(_)
                | SessionEvent::Warning(_)
                | SessionEvent::PermissionRequested(_)
                | SessionEvent::PermissionResolved(_) => {}
            }
        }
        assert_eq!(kind, self.machine.kind, "every transition is told");
        let mut ids: Vec<_> = decision.events.iter().map(|stated| stated.id).collect();
        ids.sort();
        ids.dedup();
        assert_eq!(ids.len(), decision.events.len());
    }

    /// What the events say is what the machine is.
    #[track_caller]
    fn check_view(&self) {
        let (machine, view) = (&self.machine, &self.view);
        assert_eq!(view.state, machine.kind);
        assert_eq!(view.last_error, machine.last_error);
        assert_eq!(view.permissions, machine.permissions);
        assert_eq!(view.stream, machine.stream);
        for called in machine.tools.iter().filter(|called| called.run.status != RunStatus::Queued) {
            let seen = view.tool_runs.iter().rfind(|run| run.run_id == called.run.run_id);
            assert_eq!(seen, Some(&called.run));
        }
        for hooked in machine.hooks.iter().filter(|hooked| hooked.run.status != RunStatus::Queued) {
            let seen = view.hook_runs.iter().rfind(|run| run.run_id == hooked.run.run_id);
            assert_eq!(seen, Some(&hooked.run));
        }
    }
}

pub(super) fn is_refused(decision: &Decision) -> bool {
    let [Stated { event: SessionEvent::Error(error), .. }] = &decision.events[..] else { return false };
    matches!(error.code, ErrorCode::StateTransitionInvalid | ErrorCode::SessionNotFound)
}

/// The events of a decision in short.
pub(super) fn told(decision: &Decision) -> Vec<String> {
    let short = |stated: &Stated| match &stated.event {
        SessionEvent::StateChanged(changed) => {
            format!("{} -> {} ({})", changed.from, changed.to, changed.reason)
        }
        SessionEvent::ToolLifecycle(run) => format!("{} {} #{}", run.tool_name, run.status, run.attempt),
        SessionEvent::HookLifecycle(run) => format!("{} {} #{}", run.hook_name, run.status, run.attempt),
        SessionEvent::Error(error) => format!("error {}", error.code),
        SessionEvent::Warning(error) => format!("warning {}", error.code),
        SessionEvent::PermissionRequested(permission) => format!("asks {}", permission.id),
        SessionEvent::PermissionResolved(resolved) => format!("{:?} to {}", resolved.answer, resolved.id),
    };
    decision.events.iter().map(short).collect()
}

pub(super) fn done(decision: &Decision) -> Vec<String> {
    let short = |effect: &Effect| match effect {
        Effect::SpawnHarness => "SpawnHarness".to_owned(),
        Effect::SendToHarness { sent: Sent::Prompt(_), .. } => "SendToHarness(prompt)".to_owned(),
        Effect::SendToHarness { sent: Sent::ToolOutputs, .. } => "SendToHarness(outputs)".to_owned(),
        Effect::SendToHarness { sent: Sent::Again, .. } => "SendToHarness(again)".to_owned(),
        Effect::ExecuteTools { .. } => "ExecuteTools".to_owned(),
        Effect::RunHook { .. } => "RunPostToolHooks".to_owned(),
        Effect::CancelRuns { .. } => "CancelRuns".to_owned(),
        Effect::AnswerPermission { answer, .. } => {
            format!("AnswerPermission({})", format!("{answer:?}").to_lowercase())
        }
        Effect::SetTimer { .. } => "SetTimer".to_owned(),
        Effect::ExpirePermission { .. } => "ExpirePermission".to_owned(),
        Effect::StopHarness => "StopHarness".to_owned(),
    };
    decision.effects.iter().map(short).collect()
}

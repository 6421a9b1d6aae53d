//! What a decision asks for, done. What comes of it is another input, by way of the mailbox.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use baton_core::ids::{HookRunId, StreamId};
use baton_core::session::{Answer, Effect, Input, ProcessEnd, RunStatus, Sent, StreamEnd, ToolsBy};
use baton_store::AppendError;
use serde_json::{Value, json};

use super::actor::{Letter, Running, Spawn, Stream, object};
use super::hook_run::HookRunner;
use super::snapshot::Process;
use crate::agent::Exit;
use crate::harness::signal::Overheard;
use crate::harness::{Failure, Harness, Told};

impl Running {
    pub(super) fn act(&mut self, effect: Effect) -> Result<(), AppendError> {
        match effect {
            Effect::SpawnHarness => self.spawn(),
            Effect::SendToHarness { stream, sent, .. } => self.send(stream, &sent),
            Effect::RunHook { run, hook, .. } => {
                self.run_hook(run, hook);
                Ok(())
            }
            Effect::CancelRuns { tools, hooks } => {
                if !tools.is_empty() {
                    self.tooling.cancel();
                }
                if !hooks.is_empty() {
                    self.hooks_stop.store(true, Ordering::Relaxed);
                    self.hooks_stop = Arc::default();
                }
                Ok(())
            }
            Effect::AnswerPermission { id, answer } => {
                self.permissions.retain(|(_, waiting)| *waiting != id);
                self.resolve_gate(&id);
                let call = self.calls_asked_for.remove(&id).filter(|_| answer == Answer::Deny);
                self.denied.extend(call);
                if self.permit_tool(&id, &answer)? {
                    return Ok(());
                }
                if let Some(asking) = self.asking.remove(&id) {
                    // Whoever asked may have gone.
                    let _ = asking.try_send(answer);
                } else if let Some(harness) = &mut self.harness {
                    harness.answer(&id, &answer);
                }
                Ok(())
            }
            Effect::SetTimer { at, target } => {
                self.retry = Some((at, target));
                Ok(())
            }
            Effect::ExpirePermission { at, id } => {
                self.permissions.push((at, id));
                Ok(())
            }
            Effect::StopHarness => {
                self.is_stopping = true;
                self.stop_harness();
                match self.harness {
                    Some(_) => Ok(()),
                    // There is nothing to wait for.
                    None => self.end(Exit::without_process(ProcessEnd::Exited(0), true)),
                }
            }
            Effect::ExecuteTools { runs } => self.execute_tools(runs),
        }
    }

    pub(super) fn spawn(&mut self) -> Result<(), AppendError> {
        let mailbox = self.mailbox.clone();
        // Full means that the agent is held back; gone means that nobody listens any more.
        let tell = Box::new(move |told: Told| {
            told.bounded().parts().into_iter().for_each(|told| drop(mailbox.send(Letter::Told(told))));
        });
        let none: Spawn = Box::new(|_| Err(std::io::ErrorKind::Unsupported.into()));
        let spawn = std::mem::replace(&mut self.start.spawn, none);
        match spawn(tell) {
            Ok(harness) => {
                self.harness = Some(harness);
                self.note_process();
                Ok(())
            }
            Err(error) => self.end(Exit::without_process(ProcessEnd::NotSpawned(error.to_string()), false)),
        }
    }

    pub(super) fn send(&mut self, stream: StreamId, sent: &Sent) -> Result<(), AppendError> {
        self.stream = Some(Stream { id: stream, seq: 0, is_over: false });
        // What went wrong before is not what will go wrong now.
        self.blamed = None;
        self.overheard = Overheard::default();
        match sent {
            Sent::Prompt(text) => {
                let mut fields = object(json!({"text": text, "streamId": stream.to_string()}));
                if !self.more.is_empty() {
                    fields.insert("more".to_owned(), self.more.clone().into());
                }
                let _ = self.start.transcript.put(self.start.clock.now(), "prompt", fields);
                if let Some(remark) = self.remark.take() {
                    self.stream_event("status", &json!({"message": remark}));
                }
                self.sent = vec![text.clone()];
                self.sent.append(&mut self.more);
                // What was denied before is another matter.
                self.denied.clear();
                return self.prompt_after_look();
            }
            Sent::ToolOutputs => {
                let outputs = self.tooling.take_outputs();
                self.deliver(|harness| harness.outputs(&outputs));
            }
            Sent::Again if self.machine.rules().tools_by == ToolsBy::Baton => {
                self.deliver(|harness| harness.again());
            }
            Sent::Again => self.prompt(),
        }
        Ok(())
    }

    /// Sends what is to be sent.
    pub(super) fn prompt(&mut self) {
        let sent = std::mem::take(&mut self.sent);
        self.deliver(|harness| harness.prompt(&sent));
        self.sent = sent;
    }

    fn deliver(&mut self, how: impl FnOnce(&mut dyn Harness) -> Result<(), Failure>) {
        let failed = match &mut self.harness {
            Some(harness) => how(harness.as_mut()).err(),
            None => Some(Failure::new("there is no agent")),
        };
        self.note_process();
        if let Some(failure) = failed {
            let end = StreamEnd::Failed { message: failure.message, retryable: failure.retryable };
            // Later: this decision is not done with yet.
            self.own.push_back(Letter::Input(Input::StreamEnded(end)));
        }
    }

    /// Remembers the process, so that it is found should Baton die. A command that is run for each prompt has another one each time.
    fn note_process(&mut self) {
        let pid = self.harness.as_ref().and_then(|harness| harness.pid());
        self.pid.store(pid.unwrap_or(0), Ordering::Relaxed);
        if pid != self.start.snapshot.process.as_ref().map(|process| process.pid) {
            self.start.snapshot.process = pid.and_then(|pid| Process::of(pid, &self.start.boot));
            self.save();
        }
    }

    pub(super) fn run_hook(&mut self, run: HookRunId, hook: usize) {
        let Some(hook) = self.machine.rules().hooks.get(hook).cloned() else { return };
        let tools: Vec<Value> =
            self.machine.calls().filter_map(|(_, run)| serde_json::to_value(run).ok()).collect();
        let session = self.start.id.to_string();
        let runner = HookRunner {
            run,
            env: vec![("BATON_SESSION_ID".to_owned(), session.clone())],
            told: json!({"sessionId": session, "hook": hook.name, "toolRuns": tools}),
            hook,
            workspace: self.start.workspace.clone(),
            warden: self.start.tools.as_ref().and_then(|tools| tools.warden()),
            fate: self.fate.clone(),
            stop: self.hooks_stop.clone(),
        };
        let mailbox = self.mailbox.clone();
        let work = move || runner.run(&|input| drop(mailbox.send(Letter::Input(input))));
        if std::thread::Builder::new().name("hook".into()).spawn(work).is_err() {
            let error = Some("no thread for it".to_owned());
            let failed = Input::HookCompleted { run, status: RunStatus::Failed, error, output: None };
            self.own.push_back(Letter::Input(failed));
        }
    }

    pub(super) fn stop_harness(&mut self) {
        if let Some(harness) = &mut self.harness {
            harness.stop();
        }
    }
}

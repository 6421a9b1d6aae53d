//! Tools that Baton runs for a model: one after the other, in the order of the answer, each in a thread of its own.
//!
//! One at a time, because models ask for two edits of the same file in one answer. Outputs are kept by call until the machine wants them sent.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::ids::ToolRunId;
use baton_core::session::{Answer, Input, PermissionKind, RunStatus, ToolCall};
use baton_store::AppendError;
use serde_json::json;

use super::actor::{Letter, Running, object};
use super::gate::{Gave, ToolGate, Wish};
use crate::harness::ToolOutput;
use crate::limits::{TOOL_ARGUMENTS_KEPT_BYTES_MAX, TOOL_TITLE_CHARS_MAX};
use crate::tools::{ToolRan, ToolRunner};

/// The tools of the last answer.
#[derive(Debug, Default)]
pub(super) struct Tooling {
    batch: Vec<(ToolRunId, ToolCall)>,
    outputs: BTreeMap<ToolRunId, ToolOutput>,
    queue: VecDeque<ToolRunId>,
    running: Option<ToolRunId>,
    /// What waits for a yes, and what has it: another attempt at the same call does not ask again.
    asked: BTreeSet<ToolRunId>,
    allowed: BTreeSet<ToolRunId>,
    stop: Arc<AtomicBool>,
}

impl Tooling {
    fn call(&self, run: ToolRunId) -> Option<ToolCall> {
        self.batch.iter().find(|(id, _)| *id == run).map(|(_, call)| call.clone())
    }

    /// Ends what runs and forgets what waits.
    pub(super) fn cancel(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.stop = Arc::default();
        self.queue.clear();
        self.asked.clear();
        self.running = None;
    }

    /// What came of every call, in the order of the answer. One without an output gets an error: a model is owed a result for each.
    pub(super) fn take_outputs(&mut self) -> Vec<ToolOutput> {
        let mut outputs = std::mem::take(&mut self.outputs);
        let batch = std::mem::take(&mut self.batch);
        let of = |(run, call): (ToolRunId, ToolCall)| {
            outputs.remove(&run).unwrap_or_else(|| bad(&call, "it was not run to its end"))
        };
        batch.into_iter().map(of).collect()
    }
}

fn bad(call: &ToolCall, why: &str) -> ToolOutput {
    let (call_id, name) = (call.call_id.clone(), call.name.clone());
    ToolOutput { call_id, name, output: why.to_owned(), is_error: true }
}

impl Running {
    /// Queues what an answer asked for, or another attempt at what failed of it.
    pub(super) fn execute_tools(&mut self, runs: Vec<(ToolRunId, ToolCall)>) -> Result<(), AppendError> {
        let is_again = runs.iter().any(|(run, _)| self.tooling.call(*run).is_some());
        if !is_again {
            self.tooling = Tooling { batch: runs.clone(), ..Tooling::default() };
        }
        for (run, call) in runs {
            self.tooling.outputs.remove(&run);
            let is_mutating = baton_core::session::is_mutating(&call.name).unwrap_or(true);
            if !self.start.asks_before_tools || !is_mutating || self.tooling.allowed.contains(&run) {
                self.tooling.queue.push_back(run);
                continue;
            }
            self.tooling.asked.insert(run);
            let (id, kind, title) = (run.to_string(), PermissionKind::Tool, title(&call));
            self.decide(Input::PermissionRequested { id, kind, title, call_id: Some(call.call_id) })?;
        }
        self.run_next_tool();
        Ok(())
    }

    /// Takes an answer about a tool of Baton's own; false where it is about something else.
    pub(super) fn permit_tool(&mut self, id: &str, answer: &Answer) -> Result<bool, AppendError> {
        let Some(run) = self.tooling.asked.iter().copied().find(|run| run.to_string() == id) else {
            return Ok(false);
        };
        self.tooling.asked.remove(&run);
        match answer {
            Answer::Allow | Answer::Text(_) => {
                self.tooling.allowed.insert(run);
                self.tooling.queue.push_back(run);
                self.run_next_tool();
            }
            Answer::Deny => {
                if let Some(call) = self.tooling.call(run) {
                    let denied = ToolRan { output: "denied".into(), is_error: true, ..ToolRan::default() };
                    self.keep(run, &call, &denied);
                }
                let (status, error) = (RunStatus::Canceled, Some("denied".to_owned()));
                self.decide(Input::ToolCompleted { run, status, error })?;
            }
            // The machine has ended it.
            Answer::Canceled => {}
        }
        Ok(true)
    }

    fn run_next_tool(&mut self) {
        if self.tooling.running.is_some() {
            return;
        }
        let Some(run) = self.tooling.queue.pop_front() else { return };
        let Some(call) = self.tooling.call(run) else { return };
        self.tooling.running = Some(run);
        let (tools, stop) = (self.start.tools.clone(), self.tooling.stop.clone());
        let gate = self.start.gate.clone();
        let mailbox = self.mailbox.clone();
        let work = move || {
            let _ = mailbox.send(Letter::Input(Input::ToolStarted { run }));
            let ran = match tools {
                Some(tools) => run_through(gate.as_deref(), &tools, &call, &stop),
                None => cannot("this session has no tools"),
            };
            let _ = mailbox.send(Letter::Tool(run, Box::new(ran)));
        };
        if std::thread::Builder::new().name("tool".into()).spawn(work).is_err() {
            self.own.push_back(Letter::Tool(run, Box::new(cannot("no thread for it"))));
        }
    }

    /// Takes what came of a tool. What was canceled meanwhile has been dealt with.
    pub(super) fn tool_ran(&mut self, run: ToolRunId, ran: &ToolRan) -> Result<(), AppendError> {
        if self.tooling.running != Some(run) {
            return Ok(());
        }
        self.tooling.running = None;
        if let Some(call) = self.tooling.call(run) {
            self.keep(run, &call, ran);
        }
        let (status, error) = match &ran.failed {
            Some(why) => (RunStatus::Failed, Some(why.clone())),
            None => (RunStatus::Succeeded, ran.is_error.then(|| last_line(&ran.output))),
        };
        self.decide(Input::ToolCompleted { run, status, error })?;
        self.run_next_tool();
        Ok(())
    }

    /// Keeps an output for the model, and puts it into the transcript.
    fn keep(&mut self, run: ToolRunId, call: &ToolCall, ran: &ToolRan) {
        let arguments = Some(&call.arguments)
            .filter(|arguments| arguments.to_string().len() <= TOOL_ARGUMENTS_KEPT_BYTES_MAX);
        let artifact =
            ran.artifact.map(|(digest, bytes)| json!({"sha256": digest.to_string(), "bytes": bytes}));
        let fields = json!({
            "callId": call.call_id,
            "toolName": call.name,
            "arguments": arguments,
            "output": ran.output,
            "isError": ran.is_error || ran.failed.is_some(),
            "error": ran.failed,
            "artifact": artifact,
        });
        let _ = self.start.transcript.put(self.start.clock.now(), "tool", object(fields));
        let output = match &ran.failed {
            Some(why) => bad(call, &format!("{}\n{why}", ran.output)),
            None => ToolOutput { output: ran.output.clone(), is_error: ran.is_error, ..bad(call, "") },
        };
        self.tooling.outputs.insert(run, output);
    }
}

/// Runs a tool, where the gate lets it through.
fn run_through(
    gate: Option<&dyn ToolGate>,
    tools: &ToolRunner,
    call: &ToolCall,
    stop: &AtomicBool,
) -> ToolRan {
    let Some(gate) = gate else { return tools.run(call, stop) };
    let (tool, input) = (call.name.clone(), call.arguments.clone());
    let wish = Wish { tool, input, why: title(call), ..Wish::default() };
    match gate.enter(&wish, stop) {
        Ok(entry) => {
            let ran = tools.run(call, stop);
            let ToolRan { output, artifact, exit_code, is_error, failed } = ran.clone();
            gate.leave(entry, &Gave { output, whole: artifact, exit_code, is_error, failed });
            ran
        }
        Err(why) => ToolRan { output: why, is_error: true, ..ToolRan::default() },
    }
}

fn cannot(why: &str) -> ToolRan {
    ToolRan { failed: Some(why.to_owned()), ..ToolRan::default() }
}

/// What a person is asked to allow: the tool, and what it is about.
fn title(call: &ToolCall) -> String {
    let about = ["command", "path", "args"].iter().find_map(|name| call.arguments.get(name));
    let about = about.map(|about| about.as_str().map_or_else(|| about.to_string(), str::to_owned));
    let text = about.map_or(call.name.clone(), |about| format!("{}: {about}", call.name));
    cut(&text)
}

/// Why it is bad news, in a line.
fn last_line(output: &str) -> String {
    cut(output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it has bad news"))
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(TOOL_TITLE_CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

//! The end of a session: what kind of end it was, told once and recorded last.

use baton_core::session::{Clue, Ended, Evidence, Input, ProcessEnd, StateKind};
use baton_store::AppendError;
use serde_json::json;

use super::actor::{Running, object};
use crate::agent::Exit;
use crate::harness::Failure;
use crate::limits::RUNS_END_WAIT;

impl Running {
    /// The last thing that happens: how it ended, once.
    pub(super) fn end(&mut self, exit: Exit) -> Result<(), AppendError> {
        if self.ended.is_some() {
            return Ok(());
        }
        self.fate.end();
        let open = match self.machine.kind() {
            StateKind::Starting => Some("before it took any input"),
            _ if !self.machine.permissions().is_empty() => Some("while it waited for a permission"),
            StateKind::CallingLlm if self.machine.calls().any(|(_, run)| !run.status.is_terminal()) => {
                Some("while a tool ran")
            }
            StateKind::CallingLlm
            | StateKind::ProcessingResponse
            | StateKind::ExecutingTools
            | StateKind::Error => Some("in a turn"),
            StateKind::PostToolsHook => Some("while a hook ran"),
            StateKind::Idle | StateKind::Ready | StateKind::Stopping | StateKind::Stopped => None,
        };
        self.overhear_end();
        let blamed = self.blamed.take();
        let is_clean = open.is_none() && matches!(exit.process, ProcessEnd::Exited(0) | ProcessEnd::Absent);
        let clue = if is_clean { None } else { self.clue(&exit, blamed.as_ref()) };
        let mut ended = Ended::new(exit.process.clone());
        ended.is_asked = self.is_stopping && !self.is_condemned;
        ended.open = open;
        ended.cause = blamed.as_ref().and_then(|failure| failure.cause).or(clue.as_ref().map(|c| c.cause));
        let told = blamed.as_ref().and_then(|failure| failure.resets_at);
        ended.resets_at = told.or(clue.and_then(|clue| clue.resets_at));
        ended.told = blamed.map(|failure| failure.message);
        ended.stderr = exit.stderr;
        ended.last_tool = self.last_tool.clone();
        ended.duration_ms = u64::try_from(self.began.elapsed().as_millis()).ok();
        (ended.max_rss_bytes, ended.cpu_ms) = (exit.max_rss_bytes, exit.cpu_ms);
        let data = ended.classify();
        let code = match exit.process {
            ProcessEnd::Exited(code) => Some(code),
            // A model that is not asked any more has ended well.
            ProcessEnd::Absent => Some(0),
            ProcessEnd::Signalled(_) | ProcessEnd::NotSpawned(_) | ProcessEnd::Lost(_) => None,
        };
        // First of all: whatever still waits is answered by this.
        self.ended = Some(data.clone());
        let message = data.message.clone().unwrap_or_default();
        self.decide(Input::HarnessExited { code, message })?;
        if self.stream.as_ref().is_some_and(|stream| !stream.is_over) {
            self.end_stream("error", &json!({"code": "process_exit", "message": data.message}))?;
            self.start.recorder.record_after(self.noted.take(), &[])?;
        }
        // Nothing of it runs once it is called ended. What even a kill does not end in this time is beyond help.
        self.fate.wait(RUNS_END_WAIT);
        self.telemetry.ended(&data);
        let fields = serde_json::to_value(&data).map(object).unwrap_or_default();
        self.start.recorder.note("session.ended", fields, self.moment())?;
        self.is_end_noted = true;
        self.start.recorder.close(data.reason.as_str(), self.moment())
    }

    /// What was said before an end that is an error shows more than the end.
    fn clue(&self, exit: &Exit, blamed: Option<&Failure>) -> Option<Clue> {
        let stderr = exit.stderr.as_ref();
        let mut said: Vec<&str> = blamed.iter().map(|failure| failure.message.as_str()).collect();
        said.extend(stderr.and_then(|stderr| stderr.head.as_deref()));
        said.extend(stderr.and_then(|stderr| stderr.tail.as_deref()));
        if self.start.harness == "exec" {
            // Commands complain where they speak.
            said.push(self.overheard.tail());
        }
        let evidence = Evidence {
            said: &said,
            process: Some(&exit.process),
            is_starting: self.machine.kind() == StateKind::Starting,
            is_memory_short: exit.is_memory_short,
            now: self.start.clock.now(),
        };
        evidence.clue()
    }

    /// Something could not be recorded: the agent is ended, and nothing more is done. Its end is recorded where at least that can be.
    pub(super) fn abandon(&mut self, why: &str) {
        self.fate.end();
        self.stop_harness();
        let ended = Ended::new(ProcessEnd::Lost(format!("the ledger could not be written: {why}")));
        let data = self.ended.get_or_insert_with(|| ended.classify()).clone();
        let fields = serde_json::to_value(&data).map(object).unwrap_or_default();
        if !self.is_end_noted && self.start.recorder.note("session.ended", fields, self.moment()).is_ok() {
            let _ = self.start.recorder.close(data.reason.as_str(), self.moment());
        }
    }
}

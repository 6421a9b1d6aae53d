//! The end of the process: recorded, then told to whoever waits, and to everybody.

use baton_core::session::{Ended, Evidence, ProcessEnd, SessionEndedData};
use serde_json::{Value, json};

use super::message::notification;
use super::ring::Kind;
use super::state::{Relay, State};
use crate::agent::Exit;

impl Relay {
    /// The last thing that happens, once.
    ///
    /// In this order: that the process is gone, then the record, then the answers to whoever waits, then how each session ended. A client that creates a
    /// session looks for the first before it believes the answer.
    pub(super) fn die(&self, exit: Exit) {
        let code = match exit.process {
            ProcessEnd::Exited(code) => Some(code),
            _ => None,
        };
        let data = self.change(|state| {
            state.is_dying = true;
            let params = json!({"success": code == Some(0), "code": code});
            state.tell(Kind::Notification, &notification("_adapter/agent_exited", &params));
            self.classify(state, exit)
        });
        self.over.notify_all();
        let mut recorded = self.recorded();
        if let Err(error) = recorded.ended(&data) {
            tracing::warn!(session = %self.session, %error, "how an agent ended cannot be recorded");
        }
        self.change(|state| {
            state.ended = Some(data.clone());
            state.calls.asked.clear();
            let calls = std::mem::take(&mut state.calls.waiting);
            for call in calls.into_values() {
                state.answer(call.waits, self.gone(&Value::Null, &data));
            }
            let now = self.clock.now();
            for session in state.sessions.living() {
                state.sessions.end(&session, &data, now);
                self.tell_ended(state, &session, &data);
            }
            if state.is_left {
                state.close();
            }
        });
        self.over.notify_all();
        recorded.leave();
    }

    fn classify(&self, state: &State, exit: Exit) -> SessionEndedData {
        let is_starting = state.initialized.is_none();
        let waits_for = |method: &str| state.calls.waiting.values().any(|call| call.method == method);
        let open = match () {
            () if is_starting => Some("before it took any input"),
            () if !state.calls.asked.is_empty() => Some("while it waited for a permission"),
            () if waits_for("session/prompt") => Some("in a turn"),
            () if !state.calls.waiting.is_empty() => Some("while it was asked something"),
            () => None,
        };
        let stderr = exit.stderr.as_ref();
        let mut said: Vec<&str> = state.blamed.iter().map(|(_, told)| told.as_str()).collect();
        said.extend(stderr.and_then(|stderr| stderr.head.as_deref()));
        said.extend(stderr.and_then(|stderr| stderr.tail.as_deref()));
        let is_clean = open.is_none() && exit.process == ProcessEnd::Exited(0);
        let evidence = Evidence {
            said: &said,
            process: Some(&exit.process),
            is_starting,
            is_memory_short: exit.is_memory_short,
            now: self.clock.now(),
        };
        let clue = if is_clean { None } else { evidence.clue() };
        let mut ended = Ended::new(exit.process.clone());
        ended.is_asked = state.is_stopping;
        ended.open = open;
        ended.cause = state.blamed.as_ref().map(|(cause, _)| *cause).or(clue.as_ref().map(|clue| clue.cause));
        ended.resets_at = clue.and_then(|clue| clue.resets_at);
        ended.told = state.blamed.as_ref().map(|(_, told)| told.clone());
        ended.stderr = exit.stderr;
        ended.last_tool = state.last_tool.clone();
        ended.duration_ms = u64::try_from(exit.took.as_millis()).ok();
        (ended.max_rss_bytes, ended.cpu_ms) = (exit.max_rss_bytes, exit.cpu_ms);
        ended.classify()
    }
}

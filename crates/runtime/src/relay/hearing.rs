//! What the agent says: to everybody, or to the one who asked.

use std::sync::{Arc, PoisonError};
use std::time::Instant;

use baton_core::session::Cause;
use serde_json::{Map, Value, json};

use super::added::is_own;
use super::calls::Asked;
use super::message::{ERROR_INTERNAL, Message, error, notification, session_of};
use super::ring::Kind;
use super::state::{Relay, State};
use crate::agent::Heard;
use crate::harness::bounds::{beginning, cut, is_simple};
use crate::limits::{
    AGENT_LINE_BYTES_MAX, AGENT_VALUES_MAX, CLOSED_GRACE, RELAY_ASKED_MAX, RELAY_NAME_BYTES_MAX,
    TOLD_NAME_BYTES_MAX,
};

impl Relay {
    /// Takes what comes from the process, in order and from one thread.
    pub(super) fn hear(self: &Arc<Self>, heard: Heard) {
        match heard {
            Heard::Line(line) => self.hear_line(&line),
            Heard::TooLong(bytes) => {
                let why =
                    format!("a line of {bytes} bytes, and at most {AGENT_LINE_BYTES_MAX} are a message");
                self.change(|state| state.invalid(&why, ""));
            }
            Heard::Closed => self.expect_end("the agent closed its output"),
            Heard::Deaf => self.expect_end("the agent closed its input"),
            Heard::Ended(exit) => self.die(*exit),
        }
    }

    fn hear_line(&self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        let read = match is_simple(line) {
            true => serde_json::from_slice::<Value>(line).map_err(|error| error.to_string()),
            false => Err(format!("more than {AGENT_VALUES_MAX} values")),
        };
        let message = read.and_then(|value| Message::read(value).map_err(|why| why.to_string()));
        match message {
            Err(why) => self.change(|state| state.invalid(&why, &beginning(line))),
            Ok(message) if message.method().is_some_and(is_own) => {
                self.change(|state| {
                    state.invalid("a method that is not the agent's to use", &beginning(line))
                });
            }
            Ok(Message::Notification { method, body }) => self.change(|state| {
                state.hear();
                if method == "session/update" {
                    self.note_update(state, &body);
                }
                state.tell(Kind::Notification, &Value::Object(body));
            }),
            Ok(Message::Request { id, method, body }) => {
                self.change(|state| {
                    state.hear();
                    self.ask(state, id, method, body);
                });
            }
            Ok(Message::Reply { id, body }) => self.hear_reply(&id, body),
        }
    }

    fn note_update(&self, state: &mut State, body: &Map<String, Value>) {
        let (Some(session), Some(update)) = (session_of(body), body["params"].get("update")) else { return };
        state.sessions.update(session, update, self.clock.now());
        if update["sessionUpdate"] == "tool_call"
            && let Some(title) = update["title"].as_str()
        {
            let mut title = title.to_owned();
            cut(&mut title, TOLD_NAME_BYTES_MAX);
            state.last_tool = Some(title);
        }
    }

    /// The agent asks its clients: all of them, and the first to decide counts.
    fn ask(&self, state: &mut State, id: Value, method: String, mut body: Map<String, Value>) {
        if state.calls.asked.len() >= RELAY_ASKED_MAX {
            let why = format!("{RELAY_ASKED_MAX} requests wait for an answer, and no more may");
            let _ = self.write(&error(&id, ERROR_INTERNAL, &why, None));
            return;
        }
        let session = session_of(&body).filter(|id| id.len() <= RELAY_NAME_BYTES_MAX).map(str::to_owned);
        let asked = Asked { id, method, session, is_due: false, given: None };
        let name = state.calls.ask(asked);
        body.insert("id".to_owned(), (*name).into());
        state.tell(Kind::Request(name), &Value::Object(body));
    }

    fn hear_reply(&self, id: &Value, mut body: Map<String, Value>) {
        let call = self.change(|state| {
            state.hear();
            state.calls.take(id)
        });
        // What was answered for it meanwhile is not answered twice.
        let Some(call) = call else { return };
        let is_well = body.get("error").is_none_or(Value::is_null);
        body.remove(if is_well { "error" } else { "result" });
        if is_well && call.method == "initialize" {
            self.note_ready(&body["result"]);
        }
        self.change(|state| {
            let now = self.clock.now();
            match call.method.as_str() {
                "initialize" if is_well => state.initialized = Some(body["result"].clone()),
                "session/new" | "session/fork" if is_well => {
                    if let Some(id) = body["result"].get("sessionId").and_then(Value::as_str) {
                        state.sessions.begin(id, call.cwd.as_deref(), now);
                    }
                }
                "session/load" | "session/resume" if is_well => {
                    if let Some(id) = &call.session {
                        state.sessions.begin(id, call.cwd.as_deref(), now);
                    }
                }
                "session/list" if is_well => {
                    if let Some(listed) = body.get_mut("result") {
                        state.sessions.add_meta(listed, self.agent.as_str(), &self.session.to_string());
                    }
                }
                _ => {}
            }
            state.answer(call.waits, Value::Object(body));
        });
    }

    fn note_ready(&self, answer: &Value) {
        let said = |key: &str| answer.get("agentInfo")?.get(key)?.as_str();
        let mut program = [said("name"), said("version")].into_iter().flatten().collect::<Vec<_>>().join(" ");
        cut(&mut program, TOLD_NAME_BYTES_MAX);
        let program = Some(program).filter(|program| !program.is_empty());
        if let Err(error) = self.recorded().ready(program) {
            tracing::warn!(session = %self.session, %error, "that an agent is ready cannot be recorded");
        }
    }

    /// Who closes its streams is about to end. Whoever does not is of no use to anybody, and is ended.
    fn expect_end(self: &Arc<Self>, why: &'static str) {
        let relay = self.clone();
        let wait = move || {
            let until = Instant::now() + CLOSED_GRACE;
            let mut state = relay.state();
            while !state.is_dying {
                let left = until.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    drop(state);
                    return relay.condemn(Cause::Protocol, why);
                }
                state = relay.over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
            }
        };
        if std::thread::Builder::new().name("closed".into()).spawn(wait).is_err() {
            self.condemn(Cause::Protocol, why);
        }
    }
}

impl State {
    /// Tells everybody of something that is no message.
    fn invalid(&mut self, why: &str, raw: &str) {
        let params = json!({"error": why, "raw": raw});
        self.tell(Kind::Notification, &notification("_adapter/invalid_stdout", &params));
    }
}

//! What an agent tells, as inputs of the machine; and what passes by, for whoever follows.

use std::sync::PoisonError;
use std::time::Instant;

use baton_core::protocol::scan::Found;
use baton_core::session::{Answer, Cause, Input, PermissionKind, RunStatus, StateKind, StreamEnd, ToolCall};
use baton_core::{EventId, Uuid7};
use baton_store::AppendError;
use serde_json::{Map, Value, json};

use super::actor::{Running, object};
use super::feed::Channel;
use crate::harness::bounds::{cut, is_small};
use crate::harness::{Asked, Failure, Progress, Ready, Told, ToolSeen};
use crate::limits::{CLOSED_GRACE, PERMISSIONS_MAX, TOLD_ERROR_BYTES_MAX, TURN_TOOLS_MAX};

impl Running {
    /// Translates what the agent tells.
    pub(super) fn hear(&mut self, told: Told) -> Result<(), AppendError> {
        let is_sign_of_life = match self.machine.kind() {
            // Whoever chats instead of taking input has its time all the same, unless it plays a conversation again.
            StateKind::Starting => told.is_of_a_turn() && self.start.snapshot.resumes.is_some(),
            _ => !matches!(told, Told::Noise { .. }),
        };
        if is_sign_of_life {
            self.silence = None;
        }
        if self.machine.kind() == StateKind::Starting && told.is_of_a_turn() {
            // An agent that loads a conversation plays it again; what was said is in the transcript already.
            self.watch_silence();
            return Ok(());
        }
        match told {
            Told::Ready(ready) => {
                self.start.recorder.note("session.ready", ready_fields(&ready), self.moment())?;
                let snapshot = &mut self.start.snapshot;
                (snapshot.native_id, snapshot.program) = (ready.native_id, ready.agent);
                (snapshot.can_load, snapshot.mode) = (ready.can_load, ready.mode);
                self.save();
                self.decide(Input::HarnessReady)?;
            }
            Told::Broken(failure) => {
                // One that is ended for its silence says so too, on its way out.
                self.blamed.get_or_insert(failure);
                self.condemn();
            }
            Told::Blamed(failure) => {
                self.blamed.get_or_insert(failure);
            }
            Told::Text { text, is_thought } => {
                let (kind, wire) =
                    if is_thought { ("thought", "thinking_delta") } else { ("text", "text_delta") };
                let _ = self.start.transcript.say(self.start.clock.now(), kind, &text);
                if !is_thought {
                    let found = self.overheard.hear(&text);
                    self.signal(found);
                }
                self.stream_event(wire, &json!({"text": text, "role": "assistant"}));
                self.decide(Input::StreamDelta)?;
            }
            Told::Calls(call) => {
                self.last_tool = Some(call.name.clone());
                // The asking is complete; what comes of it is after the end of this stream.
                let fields = json!({"callId": call.call_id, "toolName": call.name});
                let arguments = Some(&call.arguments).filter(|arguments| is_small(arguments));
                self.stream_event("tool_call_delta", &with(&fields, "arguments", json!(arguments)));
                self.stream_event("tool_call_completed", &fields);
                self.decide(Input::ToolRequested { call })?;
            }
            Told::Tool(seen) => {
                self.watch_gate(&seen);
                self.see_tool(&seen)?;
            }
            Told::Asked(Asked { id, title, call_id, wish }) => {
                let kind = PermissionKind::Tool;
                let asked = id.clone();
                if self.machine.permissions().len() < PERMISSIONS_MAX {
                    self.calls_asked_for.extend(call_id.clone().map(|call| (id.clone(), call)));
                    self.decide(Input::PermissionRequested { id, kind, title, call_id: call_id.clone() })?;
                }
                let is_pending = self.machine.permissions().iter().any(|pending| pending.id == asked);
                if is_pending {
                    self.ask_gate(&asked, call_id.as_deref(), wish.map(|wish| *wish));
                }
                if let Some(harness) = self.harness.as_mut().filter(|_| !is_pending) {
                    // Nobody is asked: then nobody waits either.
                    harness.answer(&asked, &Answer::Canceled);
                }
            }
            Told::Usage(usage) if !is_small(&usage) => {}
            Told::Usage(usage) => {
                self.stream_event("metadata", &json!({"usage": usage}));
                self.usage = Some(usage);
            }
            Told::Plan(entries) if !is_small(&entries) => {}
            Told::Plan(entries) => {
                let fields = object(json!({"entries": entries}));
                let _ = self.start.transcript.put(self.start.clock.now(), "plan", fields);
                self.stream_event("metadata", &json!({"plan": entries}));
            }
            Told::Status(text) => self.stream_event("status", &json!({"message": text})),
            // The turn has not begun, or its end was told before.
            Told::TurnEnded { .. } | Told::TurnFailed(_) if self.looking.is_some() => {}
            Told::TurnEnded { stop, usage } => {
                self.overhear_end();
                self.settle_gate();
                self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone_from(&stop);
                let usage = usage.or_else(|| self.usage.take());
                self.end_turn_after_look(stop, usage)?;
            }
            Told::TurnFailed(failure) => {
                self.overhear_end();
                self.settle_gate();
                let failure = failure.explained(self.start.clock.now());
                let Failure { message, retryable, cause, resets_at } = failure.clone();
                let payload = json!({"message": message, "recoverable": retryable,
                    "cause": cause.map(Cause::as_str), "resetsAt": resets_at.map(|at| at.to_string())});
                self.end_stream("error", &Value::Object(object(payload)))?;
                if failure.cause.is_some() {
                    self.blamed = Some(failure);
                }
                self.decide(Input::StreamEnded(StreamEnd::Failed { message, retryable }))?;
                if matches!(cause, Some(Cause::Auth | Cause::Quota)) && !retryable {
                    // Nothing that is asked of it from now on would end otherwise.
                    self.condemn();
                }
            }
            Told::Unknown { what, raw } | Told::Noise { what, raw } => {
                let fields = json!({"what": what, "raw": raw});
                let _ = self.start.transcript.put(self.start.clock.now(), "unknown", object(fields));
            }
            Told::Closed(what) => {
                // Its end may be a moment behind: then it says more.
                if !self.is_stopping && self.harness.is_some() {
                    self.closed.get_or_insert((Instant::now() + CLOSED_GRACE, what));
                }
            }
            Told::Exited(exit) => {
                self.settle_gate();
                self.drop_look()?;
                self.end(*exit)?;
            }
        }
        self.watch_silence();
        Ok(())
    }

    /// The text of the turn has ended: what was begun in it is given up.
    pub(super) fn overhear_end(&mut self) {
        let found = self.overheard.end();
        self.signal(found);
    }

    fn signal(&mut self, found: Vec<Found>) {
        if self.start.signals.is_none() || found.is_empty() {
            return;
        }
        // The last one stands, whatever becomes of Baton before it is submitted.
        let valid = found.iter().rev().find_map(|found| match found {
            Found::Signal(signal) => serde_json::to_string(signal).ok(),
            Found::Invalid(_) => None,
        });
        if valid.is_some() && valid != self.start.snapshot.signal {
            self.start.snapshot.signal = valid;
            self.save();
        }
        if let Some(signals) = &self.start.signals {
            found.into_iter().for_each(signals);
        }
    }

    pub(super) fn see_tool(&mut self, seen: &ToolSeen) -> Result<(), AppendError> {
        if self.machine.kind() != StateKind::CallingLlm {
            return Ok(());
        }
        if self.machine.run_of(&seen.call_id).is_none() {
            if self.machine.calls().count() >= TURN_TOOLS_MAX {
                return Ok(());
            }
            let name = seen.name.clone().unwrap_or_else(|| "a tool".to_owned());
            self.last_tool = Some(name.clone());
            let call = ToolCall {
                call_id: seen.call_id.clone(),
                name,
                arguments: seen.arguments.clone().unwrap_or(Value::Null),
                mutating: seen.mutating.unwrap_or(false),
            };
            self.decide(Input::ToolRequested { call })?;
        }
        self.tell_of_tool(seen);
        let Some(run) = self.machine.run_of(&seen.call_id).cloned() else { return Ok(()) };
        let (id, name) = (run.run_id, run.tool_name);
        let is_begun =
            matches!(seen.progress, Some(Progress::Running | Progress::Succeeded | Progress::SaysNo));
        if is_begun && run.status == RunStatus::Queued {
            self.decide(Input::ToolStarted { run: id })?;
        }
        let ended = matches!(seen.progress, Some(Progress::Succeeded | Progress::SaysNo));
        if ended && !run.status.is_terminal() {
            let mut error = (seen.progress == Some(Progress::SaysNo))
                .then(|| seen.output.clone().unwrap_or_else(|| "it says no".to_owned()));
            if let Some(error) = &mut error {
                cut(error, TOLD_ERROR_BYTES_MAX);
            }
            let fields =
                json!({"callId": seen.call_id, "toolName": name, "output": seen.output, "error": error});
            let _ = self.start.transcript.put(self.start.clock.now(), "tool", object(fields.clone()));
            self.stream_event("tool_call_completed", &fields);
            // The agent calls it a failure; that somebody said no is what it was.
            let is_denied = error.is_some() && self.denied.remove(&seen.call_id);
            let (status, error) = match is_denied {
                true => (RunStatus::Canceled, Some("denied".to_owned())),
                false => (RunStatus::Succeeded, error),
            };
            self.decide(Input::ToolCompleted { run: id, status, error })?;
        }
        Ok(())
    }

    /// What is new of a tool that the agent runs.
    fn tell_of_tool(&mut self, seen: &ToolSeen) {
        let status = match seen.progress {
            Some(Progress::Announced) => Some("pending"),
            Some(Progress::Running) => Some("running"),
            // Its end is told by what is for that.
            Some(Progress::Succeeded | Progress::SaysNo) => return,
            None => None,
        };
        let arguments = seen.arguments.as_ref().filter(|arguments| is_small(arguments));
        let fields =
            json!({"callId": seen.call_id, "toolName": seen.name, "arguments": arguments, "status": status});
        self.stream_event("tool_call_delta", &Value::Object(object(fields)));
    }

    /// Says that the stream is over. That is recorded with the decision that follows.
    pub(super) fn end_stream(&mut self, kind: &str, payload: &Value) -> Result<(), AppendError> {
        let now = self.start.clock.now();
        self.stream_event(kind, payload);
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.is_over) else { return Ok(()) };
        stream.is_over = true;
        let stream = stream.id.to_string();
        let sealed = self.start.transcript.seal(now).ok();
        let transcript = sealed.map(|(digest, bytes)| json!({"sha256": digest.to_string(), "bytes": bytes}));
        let fields = json!({"streamId": stream, "type": kind, "payload": payload, "transcript": transcript});
        self.noted = Some(self.start.recorder.noted("turn.ended", object(fields), self.moment())?);
        Ok(())
    }

    /// Says something that passes by, in the order of its stream.
    pub(super) fn stream_event(&mut self, kind: &str, payload: &Value) {
        let now = self.start.clock.now();
        let id = EventId::new(Uuid7::from_parts(now, self.moment().seed));
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.is_over) else { return };
        stream.seq += 1;
        self.feed.push(
            Channel::Stream,
            &json!({
                "schemaVersion": "1.0",
                "eventId": id.to_string(),
                "sessionId": self.start.id.to_string(),
                "harness": self.start.harness,
                "streamId": stream.id.to_string(),
                "seq": stream.seq,
                "timestampMs": now.unix_ms(),
                "type": kind,
                "payload": payload,
            }),
        );
    }
}

fn with(fields: &Value, name: &str, value: Value) -> Value {
    let mut all = object(fields.clone());
    if !value.is_null() {
        all.insert(name.to_owned(), value);
    }
    Value::Object(all)
}

fn ready_fields(ready: &Ready) -> Map<String, Value> {
    object(json!({
        "nativeId": ready.native_id,
        "agent": ready.agent,
        "canLoad": ready.can_load,
        "mode": ready.mode,
    }))
}

//! What a run tells, line by line, in the words of the protocol. Pure: lines in, things to be done out.

use std::collections::BTreeMap;

use baton_core::session::SessionEndedData;
use serde_json::{Value, json};

use crate::commands::ending::{Stopped, ending_lines};
use crate::limits::ACP_HISTORY_BYTES_MAX;

/// What a line asks for.
#[derive(Debug, PartialEq)]
pub(super) enum Act {
    /// The editor is told this.
    Update(Value),
    /// The editor is asked whether this may be done.
    Ask { id: String, title: String, call: Value },
    /// Somebody has answered this.
    Answered(String),
}

/// One run, as far as it has been told.
#[derive(Debug, Default)]
pub(super) struct Translator {
    task: String,
    session: String,
    /// What each call is named in the editor, and how it stands there.
    calls: BTreeMap<String, Call>,
    count: u64,
    /// The end of what the agent said.
    said: String,
    /// How the last turn of the agent ended.
    stop: String,
    ended: Option<Value>,
}

#[derive(Debug)]
struct Call {
    name: String,
    status: &'static str,
}

/// The end of a prompt: a last message, and why it stopped.
#[derive(Debug, PartialEq)]
pub(super) struct Last {
    pub(super) words: String,
    pub(super) stop: &'static str,
}

impl Translator {
    /// Takes a line.
    pub(super) fn take(&mut self, line: &Value) -> Vec<Act> {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        match text("type") {
            "run.started" => {
                (self.task, self.session) = (text("taskId").to_owned(), text("sessionId").to_owned());
                vec![thought(&format!(
                    "{} is worked on by {} in {}.\n",
                    self.task,
                    text("agent"),
                    self.session
                ))]
            }
            "run.waiting" => {
                self.task = text("taskId").to_owned();
                vec![thought(&format!("{} waits: {}.\n", self.task, text("why")))]
            }
            "run.ended" => {
                self.task = text("taskId").to_owned();
                self.ended = Some(line.clone());
                Vec::new()
            }
            "tool_lifecycle" => {
                let status = status_of(text("status"));
                self.call(text("callId"), text("toolName"), Some(status), json!({}), line.get("error"))
            }
            "hook_lifecycle" => {
                let title = format!("hook {}", text("hookName"));
                let status = status_of(text("status"));
                self.call(text("runId"), &title, Some(status), json!({}), line.get("error"))
            }
            "permission_requested" => self.ask(line),
            "permission_resolved" => vec![Act::Answered(text("id").to_owned())],
            "session_error" | "session_warning" => {
                vec![thought(&format!("{}: {}\n", text("code"), text("message")))]
            }
            kind => self.stream(kind, &line["payload"]),
        }
    }

    fn stream(&mut self, kind: &str, payload: &Value) -> Vec<Act> {
        let text = |key: &str| payload[key].as_str().unwrap_or_default();
        match kind {
            "text_delta" => {
                keep_end(&mut self.said, text("text"));
                vec![Act::Update(chunk("agent_message_chunk", text("text")))]
            }
            "thinking_delta" => vec![thought(text("text"))],
            "status" => vec![thought(&format!("{}\n", text("message")))],
            "metadata" if payload["plan"].is_array() => {
                vec![Act::Update(json!({"sessionUpdate": "plan", "entries": payload["plan"]}))]
            }
            "tool_call_delta" => {
                let status = match text("status") {
                    "running" => Some("in_progress"),
                    "pending" => Some("pending"),
                    _ => None,
                };
                let mut fields = json!({});
                if !payload["arguments"].is_null() {
                    fields["rawInput"] = payload["arguments"].clone();
                    let path = ["path", "file_path", "filePath"]
                        .iter()
                        .find_map(|key| payload["arguments"][key].as_str());
                    if let Some(path) = path.filter(|path| path.starts_with('/')) {
                        fields["locations"] = json!([{"path": path}]);
                    }
                }
                self.call(text("callId"), text("toolName"), status, fields, None)
            }
            // What says neither is the end of the asking, and not of the tool.
            "tool_call_completed" if payload.get("output").is_some() || payload.get("error").is_some() => {
                let status = if payload["error"].is_null() { "completed" } else { "failed" };
                let mut fields = json!({});
                if let Some(output) = payload["output"].as_str() {
                    fields["content"] = content(output);
                }
                self.call(text("callId"), text("toolName"), Some(status), fields, payload.get("error"))
            }
            "completed" => {
                self.stop = text("reason").to_owned();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// Tells of a call: as a new one the first time, and again where an agent takes a name a second time.
    fn call(
        &mut self,
        id: &str,
        name: &str,
        status: Option<&'static str>,
        mut fields: Value,
        error: Option<&Value>,
    ) -> Vec<Act> {
        if let Some(why) = error.and_then(Value::as_str).filter(|_| fields.get("content").is_none()) {
            fields["content"] = content(why);
        }
        let is_over = |status: &str| matches!(status, "completed" | "failed");
        match self.calls.get_mut(id) {
            // Its end was told, with all that there is to say.
            Some(call) if is_over(call.status) && status.is_some_and(is_over) => Vec::new(),
            Some(call) if !is_over(call.status) => {
                let is_news = status.is_some_and(|status| status != call.status);
                if !is_news && fields == json!({}) {
                    return Vec::new();
                }
                fields["sessionUpdate"] = "tool_call_update".into();
                fields["toolCallId"] = call.name.clone().into();
                if let Some(status) = status.filter(|status| *status != call.status && *status != "pending") {
                    call.status = status;
                    fields["status"] = status.into();
                }
                vec![Act::Update(fields)]
            }
            _ => {
                self.count += 1;
                let call = Call {
                    name: format!("{}/{}", self.session, self.count),
                    status: status.unwrap_or("pending"),
                };
                let title = if name.is_empty() { "a tool" } else { name };
                fields["sessionUpdate"] = "tool_call".into();
                fields["toolCallId"] = call.name.clone().into();
                fields["title"] = title.into();
                fields["kind"] = kind_of(title).into();
                fields["status"] = call.status.into();
                self.calls.insert(id.to_owned(), call);
                vec![Act::Update(fields)]
            }
        }
    }

    fn ask(&mut self, line: &Value) -> Vec<Act> {
        let text = |key: &str| line[key].as_str().unwrap_or_default();
        let (id, title) = (text("id").to_owned(), text("title").to_owned());
        if line["kind"] == "question" {
            // The protocol has no question that is answered by a text and that every editor knows.
            let how = format!(
                "\n\n**{title}**\n\nAnswer with `baton session permit {} {id} \"…\"`\n\n",
                self.session
            );
            return vec![Act::Update(chunk("agent_message_chunk", &how))];
        }
        let known = line["callId"].as_str().and_then(|call| self.calls.get(call));
        let call = match known {
            Some(call) => json!({"toolCallId": call.name, "title": title}),
            None => {
                json!({"toolCallId": format!("{}/permission-{id}", self.session), "title": title, "status": "pending"})
            }
        };
        vec![Act::Ask { id, title, call }]
    }

    /// What is known of the end of the run.
    pub(super) fn ended(&self) -> Option<&Value> {
        self.ended.as_ref()
    }

    /// The end of what the agent said.
    pub(super) fn said(&self) -> &str {
        &self.said
    }

    /// The last word about the run, once it has told its end.
    pub(super) fn last(&self, is_canceled: bool) -> Option<Last> {
        let ended = self.ended.as_ref()?;
        let why = ended["why"].as_str().map(|why| format!(": {why}")).unwrap_or_default();
        let task = &self.task;
        let (words, stop) = match ended["outcome"].as_str().unwrap_or_default() {
            "stopped" if is_canceled => return Some(Last { words: String::new(), stop: "cancelled" }),
            "stopped" => (format!("{task} was stopped{why}."), "cancelled"),
            "done" => (format!("{task} is done{why}."), "end_turn"),
            "needs_review" => (format!("{task} is to be reviewed{why}."), "end_turn"),
            "partial" => (format!("{task} is done in part{why}."), "end_turn"),
            "blocked" => (format!("{task} is blocked{why}."), "end_turn"),
            "limited" => (format!("{task} waits, since the agent has reached its limit{why}."), "end_turn"),
            "lost" => (format!("{task} is not this attempt's any more{why}."), "end_turn"),
            _ => (format!("The attempt at {task} failed{why}.{}", facts(ended)), self.stop_of_failure()),
        };
        Some(Last { words: format!("\n\n{words} `baton task show {task}` tells more.\n"), stop })
    }

    /// A turn that was cut short says so; every other end is one.
    fn stop_of_failure(&self) -> &'static str {
        ["refusal", "max_tokens", "max_turn_requests"]
            .into_iter()
            .find(|reason| *reason == self.stop)
            .unwrap_or("end_turn")
    }
}

/// How the process of the agent ended, and what it wrote last.
fn facts(ended: &Value) -> String {
    let Ok(data) = serde_json::from_value::<SessionEndedData>(ended["terminationInfo"].clone()) else {
        return String::new();
    };
    let said = usize::from(data.message.as_deref() == ended["why"].as_str());
    let lines = ending_lines(&data, &Stopped::Unknown).split_off(said);
    if lines.is_empty() {
        String::new()
    } else {
        format!("\n\n```\n{}\n```\n", lines.join("\n").replace("```", "'''"))
    }
}

/// A piece of a message.
pub(super) fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionUpdate": kind, "content": {"type": "text", "text": text}})
}

fn thought(text: &str) -> Act {
    Act::Update(chunk("agent_thought_chunk", text))
}

/// A text as what a tool gave.
pub(super) fn content(text: &str) -> Value {
    json!([{"type": "content", "content": {"type": "text", "text": text}}])
}

fn status_of(status: &str) -> &'static str {
    match status {
        "running" => "in_progress",
        "succeeded" => "completed",
        // The protocol has no word for what was called off.
        "failed" | "canceled" => "failed",
        _ => "pending",
    }
}

/// What kind of tool it is, by its name.
pub(super) fn kind_of(name: &str) -> &'static str {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["edit", "write", "patch", "replace"]) => "edit",
        () if has(&["delete", "remove"]) => "delete",
        () if has(&["move", "rename"]) => "move",
        () if has(&["grep", "search", "glob", "find"]) => "search",
        () if has(&["fetch", "http", "web"]) => "fetch",
        () if has(&["bash", "shell", "run", "exec", "terminal", "command", "hook"]) => "execute",
        () if has(&["read", "list", "view"]) => "read",
        () if has(&["think"]) => "think",
        () => "other",
    }
}

/// Adds to a text of which only the end is kept.
pub(super) fn keep_end(kept: &mut String, more: &str) {
    kept.push_str(more);
    if let Some(over) = kept.len().checked_sub(ACP_HISTORY_BYTES_MAX).filter(|over| *over > 0) {
        kept.drain(..kept.ceil_char_boundary(over));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started() -> Translator {
        let mut translator = Translator::default();
        translator.take(
            &json!({"type": "run.started", "taskId": "TASK-1", "sessionId": "sess_1", "agent": "mock"}),
        );
        translator
    }

    #[track_caller]
    fn updates(translator: &mut Translator, line: &Value) -> Vec<Value> {
        let acts = translator.take(line);
        acts.into_iter()
            .map(|act| match act {
                Act::Update(update) => update,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn stream(kind: &str, payload: &Value) -> Value {
        json!({"channel": "agent:stream_event", "type": kind, "payload": payload})
    }

    #[test]
    fn a_tool_is_announced_once_and_ends_once() {
        let mut run = started();
        let delta =
            json!({"callId": "c", "toolName": "read_file", "arguments": {"path": "/a"}, "status": "pending"});
        assert_eq!(
            updates(&mut run, &stream("tool_call_delta", &delta)),
            [
                json!({"sessionUpdate": "tool_call", "toolCallId": "sess_1/1", "title": "read_file", "kind": "read",
                "status": "pending", "rawInput": {"path": "/a"}, "locations": [{"path": "/a"}]})
            ]
        );
        let running =
            json!({"type": "tool_lifecycle", "callId": "c", "toolName": "read_file", "status": "running"});
        let update =
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "sess_1/1", "status": "in_progress"});
        assert_eq!(updates(&mut run, &running), [update]);
        assert_eq!(updates(&mut run, &running), [] as [Value; 0], "nothing new");
        let end = json!({"callId": "c", "toolName": "read_file", "output": "text", "error": null});
        assert_eq!(
            updates(&mut run, &stream("tool_call_completed", &end)),
            [json!({"sessionUpdate": "tool_call_update", "toolCallId": "sess_1/1", "status": "completed",
                "content": [{"type": "content", "content": {"type": "text", "text": "text"}}]})]
        );
        let done =
            json!({"type": "tool_lifecycle", "callId": "c", "toolName": "read_file", "status": "succeeded"});
        assert_eq!(updates(&mut run, &done), [] as [Value; 0]);
        let again = updates(&mut run, &stream("tool_call_delta", &delta));
        assert_eq!(
            (&again[0]["sessionUpdate"], &again[0]["toolCallId"]),
            (&json!("tool_call"), &json!("sess_1/2"))
        );
        let asked = stream("tool_call_completed", &json!({"callId": "c", "toolName": "read_file"}));
        assert_eq!(updates(&mut run, &asked), [] as [Value; 0], "the end of the asking alone");
    }

    #[test]
    fn permissions_name_their_call_and_questions_how_they_are_answered() {
        let mut run = started();
        run.take(&stream(
            "tool_call_delta",
            &json!({"callId": "c", "toolName": "bash", "status": "pending"}),
        ));
        let asked = json!({"type": "permission_requested", "id": "7", "kind": "tool", "title": "bash: make", "callId": "c"});
        let call = json!({"toolCallId": "sess_1/1", "title": "bash: make"});
        assert_eq!(run.take(&asked), [Act::Ask { id: "7".into(), title: "bash: make".into(), call }]);
        assert_eq!(run.take(&json!({"type": "permission_resolved", "id": "7"})), [Act::Answered("7".into())]);
        let question = json!({"type": "permission_requested", "id": "question-1", "kind": "question", "title": "Which?"});
        let told = updates(&mut run, &question)[0]["content"]["text"].as_str().unwrap().to_owned();
        assert!(told.contains("Which?") && told.contains("baton session permit sess_1 question-1"), "{told}");
    }

    #[test]
    fn every_end_has_a_stop_reason() {
        let last = |outcome: &str, reason: &str, is_canceled| {
            let mut run = started();
            run.take(&stream("completed", &json!({"reason": reason})));
            run.take(&json!({"type": "run.ended", "taskId": "TASK-1", "outcome": outcome, "why": "because"}));
            let last = run.last(is_canceled).unwrap();
            assert!(last.words.is_empty() || last.words.contains("TASK-1"), "{}", last.words);
            last.stop
        };
        for outcome in ["done", "needs_review", "partial", "blocked", "limited", "lost", "failed", "new"] {
            assert_eq!(last(outcome, "end_turn", false), "end_turn", "{outcome}");
        }
        assert_eq!(last("failed", "refusal", false), "refusal");
        assert_eq!(last("failed", "max_tokens", false), "max_tokens");
        assert_eq!((last("stopped", "", true), last("stopped", "", false)), ("cancelled", "cancelled"));
        assert_eq!(started().last(false), None);
    }

    #[test]
    fn of_what_is_said_the_end_is_kept() {
        let mut kept = String::new();
        (0..ACP_HISTORY_BYTES_MAX).for_each(|_| keep_end(&mut kept, "äö"));
        assert!(kept.len() <= ACP_HISTORY_BYTES_MAX && kept.ends_with('ö'));
    }
}

//! Lines of Claude Code's `stream-json`, and of what has taken that form over.

use serde_json::Value;

use super::profile::{
    Outcome, Read, Reader, field, is_mutating, object, output, progress, text, thought, tool, unknown,
};
use crate::harness::{Failure, Progress, Told, ToolSeen};

/// What has been said so far.
#[derive(Debug, Default)]
pub(super) struct Claude {
    /// Parts of messages are told as they come; then the messages themselves say nothing new.
    has_parts: bool,
    has_spoken: bool,
}

impl Reader for Claude {
    fn line(&mut self, line: &[u8]) -> Vec<Read> {
        let value = match object(line) {
            Ok(value) => value,
            Err(read) => return read,
        };
        match field(&value, "type") {
            "system" => Vec::new(),
            "stream_event" => self.part(&value).into_iter().collect(),
            "assistant" => self.message(&value),
            "user" => results(&value),
            "result" => self.result(&value),
            _ => vec![unknown("a line of another type", line)],
        }
    }
}

impl Claude {
    fn part(&mut self, value: &Value) -> Option<Read> {
        let delta = &value["event"]["delta"];
        if field(&value["event"], "type") != "content_block_delta" {
            return None;
        }
        self.has_parts = true;
        match field(delta, "type") {
            // What is said within a tool is not said to anyone here.
            "text_delta" if is_within(value) => Some(thought(field(delta, "text"))),
            "text_delta" => {
                self.has_spoken = true;
                Some(text(field(delta, "text")))
            }
            "thinking_delta" => Some(thought(field(delta, "thinking"))),
            _ => None,
        }
    }

    fn message(&mut self, value: &Value) -> Vec<Read> {
        let mut all = Vec::new();
        for block in value["message"]["content"].as_array().into_iter().flatten() {
            match field(block, "type") {
                "text" | "thinking" if self.has_parts => {}
                "text" if is_within(value) => all.push(thought(field(block, "text"))),
                "text" => {
                    self.has_spoken = true;
                    all.push(text(format!("{}\n", field(block, "text"))));
                }
                "thinking" => all.push(thought(field(block, "thinking"))),
                "tool_use" => all.push(tool(ToolSeen {
                    tool: None,
                    kind: None,
                    diffs: None,
                    call_id: field(block, "id").to_owned(),
                    name: Some(field(block, "name").to_owned()),
                    arguments: Some(block["input"].clone()),
                    mutating: is_mutating(field(block, "name")),
                    progress: Some(Progress::Running),
                    output: None,
                })),
                _ => {}
            }
        }
        all
    }

    fn result(&mut self, value: &Value) -> Vec<Read> {
        let mut all = Vec::new();
        let said = field(value, "result");
        let is_error = value["is_error"].as_bool().unwrap_or(false);
        if !self.has_spoken && !is_error && !said.is_empty() {
            all.push(text(said));
        }
        let usage = value["usage"].is_object().then(|| value["usage"].clone());
        all.extend(usage.clone().map(|usage| Read::Told(Told::Usage(usage))));
        let subtype = field(value, "subtype");
        let outcome = match subtype {
            "error_max_turns" => Outcome::Ended { stop: "max_turn_requests".to_owned(), usage },
            _ if is_error || subtype.starts_with("error") => {
                let message = if said.is_empty() { subtype } else { said };
                Outcome::Failed(Failure::new(message))
            }
            _ => {
                let stop = value["stop_reason"].as_str().unwrap_or("end_turn");
                Outcome::Ended { stop: stop.to_owned(), usage }
            }
        };
        all.push(Read::Ended(outcome));
        all
    }
}

/// Whether a tool says it: an agent that another one has started.
fn is_within(value: &Value) -> bool {
    value["parent_tool_use_id"].is_string()
}

fn results(value: &Value) -> Vec<Read> {
    let blocks = value["message"]["content"].as_array().into_iter().flatten();
    let results = blocks.filter(|block| block["type"] == "tool_result");
    let seen = |block: &Value| ToolSeen {
        call_id: field(block, "tool_use_id").to_owned(),
        progress: progress(!block["is_error"].as_bool().unwrap_or(false)),
        output: output(&block["content"]),
        ..ToolSeen::default()
    };
    results.map(|block| tool(seen(block))).collect()
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::super::profile::tests::shown;

    #[test]
    fn a_turn_is_read_whole() {
        let lines = [
            r#"{"type":"system","subtype":"init","session_id":"s"}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":"I look."},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}}]},"parent_tool_use_id":null}"#,
            r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":[{"type":"text","text":"a.txt"}],"is_error":true}]}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"inner"}]},"parent_tool_use_id":"t1"}"#,
            r#"{"type":"result","subtype":"success","is_error":false,"result":"I look.","stop_reason":"end_turn","usage":{"input_tokens":1}}"#,
        ];
        assert_eq!(
            shown(Profile::Claude, &lines),
            [
                "thought hm",
                "text I look.\n",
                "tool t1 Bash Running ",
                "tool t1  SaysNo a.txt",
                "thought inner",
                "usage {\"input_tokens\":1}",
                "ended end_turn"
            ]
        );
    }

    #[test]
    fn parts_are_not_told_twice() {
        let lines = [
            r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"he"}}}"#,
            r#"{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"llo"}}}"#,
            r#"{"type":"assistant","message":{"content":[{"type":"text","text":"hello"}]}}"#,
            r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached|1770674400"}"#,
        ];
        assert_eq!(
            shown(Profile::Claude, &lines),
            ["text he", "text llo", "failed Claude AI usage limit reached|1770674400"]
        );
    }
}

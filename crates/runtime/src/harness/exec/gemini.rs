//! Lines of Gemini's `stream-json`.

use super::profile::{
    Outcome, Read, Reader, field, is_mutating, object, output, progress, text, tool, unknown,
};
use crate::harness::{Failure, Progress, Told, ToolSeen};

#[derive(Debug)]
pub(super) struct Gemini;

impl Reader for Gemini {
    fn line(&mut self, line: &[u8]) -> Vec<Read> {
        let value = match object(line) {
            Ok(value) => value,
            Err(read) => return read,
        };
        match field(&value, "type") {
            "init" => Vec::new(),
            // The prompt comes back as a message, too.
            "message" if value["role"] != "assistant" => Vec::new(),
            "message" => vec![text(field(&value, "content"))],
            "tool_use" => vec![tool(ToolSeen {
                tool: None,
                kind: None,
                diffs: None,
                call_id: field(&value, "tool_id").to_owned(),
                name: Some(field(&value, "tool_name").to_owned()),
                arguments: Some(value["parameters"].clone()),
                mutating: is_mutating(field(&value, "tool_name")),
                progress: Some(Progress::Running),
                output: None,
            })],
            "tool_result" => vec![tool(ToolSeen {
                call_id: field(&value, "tool_id").to_owned(),
                progress: progress(value["status"] != "error"),
                output: output(&value["output"]).or_else(|| output(&value["error"]["message"])),
                ..ToolSeen::default()
            })],
            "result" => {
                let usage = value["stats"].is_object().then(|| value["stats"].clone());
                let told = usage.clone().map(|usage| Read::Told(Told::Usage(usage)));
                let outcome = if value["status"] == "success" {
                    Outcome::Ended { stop: "end_turn".to_owned(), usage }
                } else {
                    let message = match field(&value["error"], "message") {
                        "" => "the turn failed",
                        message => message,
                    };
                    Outcome::Failed(Failure::new(message))
                };
                told.into_iter().chain([Read::Ended(outcome)]).collect()
            }
            _ => vec![unknown("a line of another type", line)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::super::profile::tests::shown;

    #[test]
    fn a_turn_is_read_whole() {
        let lines = [
            r#"{"type":"init","session_id":"s","model":"m"}"#,
            r#"{"type":"message","role":"user","content":"go"}"#,
            r#"{"type":"tool_use","tool_name":"write_file","tool_id":"w1","parameters":{"file_path":"a"}}"#,
            r#"{"type":"tool_result","tool_id":"w1","status":"success","output":"ok"}"#,
            r#"{"type":"message","role":"assistant","content":"all ","delta":true}"#,
            r#"{"type":"message","role":"assistant","content":"done","delta":true}"#,
            r#"{"type":"result","status":"success","stats":{"total_tokens":9}}"#,
        ];
        assert_eq!(
            shown(Profile::Gemini, &lines),
            [
                "tool w1 write_file Running ",
                "tool w1  Succeeded ok",
                "text all ",
                "text done",
                "usage {\"total_tokens\":9}",
                "ended end_turn"
            ]
        );
        let failed = [r#"{"type":"result","status":"error","error":{"message":"quota exceeded"}}"#];
        assert_eq!(shown(Profile::Gemini, &failed), ["failed quota exceeded"]);
    }
}

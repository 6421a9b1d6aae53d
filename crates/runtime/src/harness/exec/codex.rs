//! Lines of `codex exec --json`.

use serde_json::{Value, json};

use super::profile::{Outcome, Read, Reader, field, object, output, progress, text, thought, tool, unknown};
use crate::harness::{Failure, Progress, Told, ToolSeen};

#[derive(Debug)]
pub(super) struct Codex;

impl Reader for Codex {
    fn line(&mut self, line: &[u8]) -> Vec<Read> {
        let value = match object(line) {
            Ok(value) => value,
            Err(read) => return read,
        };
        match field(&value, "type") {
            "thread.started" | "turn.started" => Vec::new(),
            "item.started" => item(&value["item"], false).into_iter().collect(),
            "item.updated" => Vec::new(),
            "item.completed" => {
                item(&value["item"], true).map_or_else(|| vec![unknown("an item", line)], |read| vec![read])
            }
            "turn.completed" => {
                let usage = value["usage"].is_object().then(|| value["usage"].clone());
                let told = usage.clone().map(|usage| Read::Told(Told::Usage(usage)));
                let ended = Outcome::Ended { stop: "end_turn".to_owned(), usage };
                told.into_iter().chain([Read::Ended(ended)]).collect()
            }
            "turn.failed" => {
                let message = match field(&value["error"], "message") {
                    "" => "the turn failed",
                    message => message,
                };
                vec![Read::Ended(Outcome::Failed(Failure::new(message)))]
            }
            // An error by itself may precede a good turn.
            _ => vec![unknown("a line of another type", line)],
        }
    }
}

/// What an item means that has begun, or is done with.
fn item(item: &Value, is_done: bool) -> Option<Read> {
    let kind = field(item, "type");
    let (name, arguments, mutating) = match kind {
        "agent_message" if is_done => return Some(text(format!("{}\n", field(item, "text")))),
        "reasoning" if is_done => return Some(thought(field(item, "text"))),
        "command_execution" => ("bash", json!({"command": item["command"]}), true),
        "file_change" => ("apply_patch", json!({"changes": item["changes"]}), true),
        "mcp_tool_call" => (field(item, "tool"), item["arguments"].clone(), true),
        "web_search" => ("web_search", json!({"query": item["query"]}), false),
        _ => return None,
    };
    let is_good = !matches!(field(item, "status"), "failed" | "declined")
        && item["exit_code"].as_i64().unwrap_or(0) == 0;
    Some(tool(ToolSeen {
        tool: None,
        kind: None,
        diffs: None,
        call_id: field(item, "id").to_owned(),
        name: Some(name.to_owned()),
        arguments: Some(arguments),
        mutating: Some(mutating),
        progress: if is_done { progress(is_good) } else { Some(Progress::Running) },
        output: output(&item["aggregated_output"]).or_else(|| output(&item["result"])).filter(|_| is_done),
    }))
}

#[cfg(test)]
mod tests {
    use super::super::profile::Profile;
    use super::super::profile::tests::shown;

    #[test]
    fn a_turn_is_read_whole() {
        let lines = [
            r#"{"type":"thread.started","thread_id":"t"}"#,
            r#"{"type":"turn.started"}"#,
            r#"{"type":"item.completed","item":{"id":"item_0","type":"error","message":"a warning"}}"#,
            r#"{"type":"item.started","item":{"id":"item_1","type":"command_execution","command":"ls","status":"in_progress"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_1","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":3,"status":"failed"}}"#,
            r#"{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"done"}}"#,
            r#"{"type":"turn.completed","usage":{"input_tokens":5}}"#,
        ];
        assert_eq!(
            shown(Profile::Codex, &lines),
            [
                "unknown an item",
                "tool item_1 bash Running ",
                "tool item_1 bash SaysNo a\n",
                "text done\n",
                "usage {\"input_tokens\":5}",
                "ended end_turn"
            ]
        );
        let failed = [r#"{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}"#];
        assert_eq!(shown(Profile::Codex, &failed), ["failed unexpected status 401 Unauthorized"]);
    }
}

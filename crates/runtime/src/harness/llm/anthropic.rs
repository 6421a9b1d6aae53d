//! Messages, as Anthropic has them.

use serde_json::{Value, json};

use super::LlmSetup;
use super::answer::{Answer, Piece, event};
use super::conversation::{Message, Said};
use super::http::failure_of_event;
use crate::harness::Failure;

/// Longest answer where the configuration has no bound: this API wants one.
const MAX_TOKENS: u32 = 8192;

/// The body of a request.
pub(super) fn request(setup: &LlmSetup, messages: &[Message]) -> Value {
    let mut merged: Vec<Value> = Vec::new();
    for message in messages {
        let (role, content) = content(message);
        match merged.last_mut() {
            // Results and the prompt that follows them are one message.
            Some(last) if last["role"] == role => {
                if let (Some(before), Value::Array(more)) = (last["content"].as_array_mut(), content) {
                    before.extend(more);
                }
            }
            _ => merged.push(json!({"role": role, "content": content})),
        }
    }
    let mut request = json!({
        "model": setup.model,
        "max_tokens": setup.max_tokens.unwrap_or(MAX_TOKENS),
        "messages": merged,
        "stream": true,
    });
    if let Some(system) = &setup.system {
        request["system"] = system.as_str().into();
    }
    if !setup.tools.is_empty() {
        let tool = |tool: &super::ToolDefinition| json!({"name": tool.name, "description": tool.description, "input_schema": tool.schema});
        request["tools"] = setup.tools.iter().map(tool).collect();
    }
    request
}

fn content(message: &Message) -> (&'static str, Value) {
    let text = |text: &String| json!({"type": "text", "text": text});
    match message {
        // Empty texts are refused.
        Message::Prompt(blocks) => {
            ("user", blocks.iter().filter(|text| !text.is_empty()).map(text).collect())
        }
        Message::Answer(Said { text: said, calls }) => {
            let said = (!said.is_empty()).then(|| text(said));
            let calls = calls.iter().map(|call| {
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": call.sound_arguments()})
            });
            ("assistant", said.into_iter().chain(calls).collect())
        }
        Message::Outputs(outputs) => {
            let result = |output: &crate::harness::ToolOutput| {
                json!({"type": "tool_result", "tool_use_id": output.call_id, "content": output.output,
                    "is_error": output.is_error})
            };
            ("user", outputs.iter().map(result).collect())
        }
    }
}

/// Takes one event of an answer.
pub(super) fn hear(answer: &mut Answer, data: &str) -> Result<Vec<Piece>, Failure> {
    let Some(event) = event(data)? else { return Ok(Vec::new()) };
    let place = event["index"].as_u64().unwrap_or_default();
    let mut piece = None;
    match event["type"].as_str().unwrap_or_default() {
        "message_start" => count(answer, &event["message"]["usage"]),
        "content_block_start" => {
            let block = &event["content_block"];
            match block["type"].as_str().unwrap_or_default() {
                "tool_use" => answer.call(place, block["id"].as_str(), block["name"].as_str(), ""),
                "text" => piece = answer.say(block["text"].as_str().unwrap_or_default(), false),
                _ => {}
            }
        }
        "content_block_delta" => {
            let delta = &event["delta"];
            let part = |field: &str| delta[field].as_str().unwrap_or_default();
            match delta["type"].as_str().unwrap_or_default() {
                "text_delta" => piece = answer.say(part("text"), false),
                "thinking_delta" => piece = answer.say(part("thinking"), true),
                "input_json_delta" => answer.call(place, None, None, part("partial_json")),
                _ => {}
            }
        }
        "message_delta" => {
            count(answer, &event["usage"]);
            if let Some(stop) = event["delta"]["stop_reason"].as_str() {
                answer.end(stop);
            }
        }
        "message_stop" => answer.is_whole = true,
        "error" => return Err(failure_of_event(&event["error"])),
        _ => {}
    }
    Ok(piece.into_iter().collect())
}

/// Later counts stand in for earlier ones.
fn count(answer: &mut Answer, usage: &Value) {
    let Some(more) = usage.as_object() else { return };
    let counted = answer.usage.get_or_insert_with(|| json!({}));
    if let Some(counted) = counted.as_object_mut() {
        counted.extend(more.iter().map(|(name, value)| (name.clone(), value.clone())));
    }
}

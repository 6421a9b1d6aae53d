//! Chat completions, as OpenAI and many others have them.

use serde_json::{Value, json};

use super::LlmSetup;
use super::answer::{Answer, Piece, event};
use super::conversation::{Message, Said};
use super::http::failure_of_event;
use crate::harness::Failure;

/// The body of a request.
pub(super) fn request(setup: &LlmSetup, messages: &[Message]) -> Value {
    let system = setup.system.iter().map(|text| json!({"role": "system", "content": text}));
    let messages: Vec<Value> = system.chain(messages.iter().flat_map(message)).collect();
    let mut request = json!({
        "model": setup.model,
        "messages": messages,
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    if let Some(max) = setup.max_tokens {
        request["max_tokens"] = max.into();
    }
    if !setup.tools.is_empty() {
        let tool = |tool: &super::ToolDefinition| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.schema});
            json!({"type": "function", "function": function})
        };
        request["tools"] = setup.tools.iter().map(tool).collect();
    }
    request
}

fn message(message: &Message) -> Vec<Value> {
    match message {
        Message::Prompt(blocks) => {
            let parts: Vec<Value> = blocks.iter().map(|text| json!({"type": "text", "text": text})).collect();
            // A single text in its plain form: not every server takes parts.
            let content = if let [text] = &blocks[..] { json!(text) } else { json!(parts) };
            vec![json!({"role": "user", "content": content})]
        }
        Message::Answer(Said { text, calls }) => {
            let mut answer = json!({"role": "assistant", "content": text});
            if !calls.is_empty() {
                let call = |call: &super::conversation::Called| {
                    let function =
                        json!({"name": call.name, "arguments": call.sound_arguments().to_string()});
                    json!({"id": call.id, "type": "function", "function": function})
                };
                answer["tool_calls"] = calls.iter().map(call).collect();
            }
            vec![answer]
        }
        Message::Outputs(outputs) => outputs
            .iter()
            .map(|output| {
                // There is no field for it, so the text says it.
                let text = match output.is_error && !output.output.starts_with("error") {
                    true => format!("error: {}", output.output),
                    false => output.output.clone(),
                };
                json!({"role": "tool", "tool_call_id": output.call_id, "content": text})
            })
            .collect(),
    }
}

/// Takes one event of an answer.
pub(super) fn hear(answer: &mut Answer, data: &str) -> Result<Vec<Piece>, Failure> {
    if data == "[DONE]" {
        answer.is_whole = true;
        return Ok(Vec::new());
    }
    let Some(event) = event(data)? else { return Ok(Vec::new()) };
    if event["error"].is_object() {
        return Err(failure_of_event(&event["error"]));
    }
    if event["usage"].is_object() {
        answer.usage = Some(event["usage"].clone());
    }
    let (choice, mut pieces) = (&event["choices"][0], Vec::new());
    let delta = &choice["delta"];
    for (field, is_thought) in
        [("reasoning_content", true), ("reasoning", true), ("content", false), ("refusal", false)]
    {
        let text = delta[field].as_str().unwrap_or_default();
        pieces.extend(answer.say(text, is_thought));
    }
    for (number, call) in delta["tool_calls"].as_array().into_iter().flatten().enumerate() {
        let place = call["index"].as_u64().unwrap_or(number as u64);
        let function = &call["function"];
        let arguments = function["arguments"].as_str().unwrap_or_default();
        answer.call(place, call["id"].as_str(), function["name"].as_str(), arguments);
    }
    if let Some(stop) = choice["finish_reason"].as_str() {
        answer.end(stop);
    }
    Ok(pieces)
}

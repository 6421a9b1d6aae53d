//! Answers in the two forms, in parts and whole.

use std::io;
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::script::Reply;
use super::{PAUSE, http};

/// Which form a client speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wire {
    OpenAi,
    Anthropic,
}

impl Wire {
    /// What a tool gave, where a message says that.
    pub(super) fn result_in(self, message: &Value) -> Option<String> {
        let result = match self {
            Wire::OpenAi if message["role"] == "tool" => Some(&message["content"]),
            Wire::OpenAi => None,
            Wire::Anthropic => {
                // A prompt that follows results is part of the same message.
                let last = message["content"].as_array()?.last()?;
                (last["type"] == "tool_result").then(|| &last["content"])
            }
        }?;
        Some(result.as_str().map_or_else(|| result.to_string(), str::to_owned))
    }
}

/// Calls are counted for the whole process, so that no two have the same name.
static CALLS: AtomicU64 = AtomicU64::new(1);

fn call_id() -> String {
    format!("call_{}", CALLS.fetch_add(1, Ordering::Relaxed))
}

/// The words of a text, each with what follows it.
fn words(reply: &Reply) -> Vec<String> {
    match reply {
        Reply::Text(text) | Reply::Thought(text) | Reply::Stopped(_, text) => {
            text.split_inclusive(' ').map(str::to_owned).collect()
        }
        Reply::Slow => (1..=100).map(|n| format!("{n} ")).collect(),
        Reply::Call(..) | Reply::Fault(_) => Vec::new(),
    }
}

const USAGE: (u64, u64) = (11, 7);

/// The events of an answer, in order.
fn events(wire: Wire, reply: &Reply) -> Vec<Value> {
    match wire {
        Wire::OpenAi => chunks(reply),
        Wire::Anthropic => blocks(reply),
    }
}

fn chunks(reply: &Reply) -> Vec<Value> {
    let chunk = |delta: Value, finish: Value| {
        json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake-model",
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
    };
    let mut all = vec![chunk(json!({"role": "assistant", "content": ""}), Value::Null)];
    let field = if matches!(reply, Reply::Thought(_)) { "reasoning_content" } else { "content" };
    all.extend(words(reply).into_iter().map(|word| chunk(json!({field: word}), Value::Null)));
    if matches!(reply, Reply::Thought(_)) {
        all.push(chunk(json!({"content": "thought"}), Value::Null));
    }
    let mut finish = if let Reply::Stopped(reason, _) = reply { reason } else { "stop" };
    if let Reply::Call(name, arguments) = reply {
        finish = "tool_calls";
        let call = |fields: Value| chunk(json!({"tool_calls": [fields]}), Value::Null);
        let function = json!({"name": name, "arguments": ""});
        all.push(call(json!({"index": 0, "id": call_id(), "type": "function", "function": function})));
        // In two parts, as models do.
        let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
        for part in [first, second] {
            all.push(call(json!({"index": 0, "function": {"arguments": part}})));
        }
    }
    all.push(chunk(json!({}), finish.into()));
    let (input, output) = USAGE;
    all.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "fake-model",
        "choices": [], "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}}));
    all
}

fn blocks(reply: &Reply) -> Vec<Value> {
    let (input, output) = USAGE;
    let message = json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-model", "content": [],
        "stop_reason": null, "usage": {"input_tokens": input, "output_tokens": 1}});
    let mut all = vec![json!({"type": "message_start", "message": message}), json!({"type": "ping"})];
    let mut index = 0;
    let mut block = |all: &mut Vec<Value>, start: Value, deltas: Vec<Value>| {
        all.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
        all.extend(
            deltas
                .into_iter()
                .map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        all.push(json!({"type": "content_block_stop", "index": index}));
        index += 1;
    };
    let mut stop = if let Reply::Stopped(reason, _) = reply { reason } else { "end_turn" };
    let text = |word: String| json!({"type": "text_delta", "text": word});
    match reply {
        Reply::Thought(_) => {
            let thinking = |word| json!({"type": "thinking_delta", "thinking": word});
            let start = json!({"type": "thinking", "thinking": ""});
            block(&mut all, start, words(reply).into_iter().map(thinking).collect());
            block(&mut all, json!({"type": "text", "text": ""}), vec![text("thought".to_owned())]);
        }
        Reply::Call(name, arguments) => {
            stop = "tool_use";
            let (first, second) = arguments.split_at(arguments.floor_char_boundary(arguments.len() / 2));
            let part = |part: &str| json!({"type": "input_json_delta", "partial_json": part});
            let start = json!({"type": "tool_use", "id": call_id(), "name": name, "input": {}});
            block(&mut all, start, vec![part(first), part(second)]);
        }
        Reply::Text(_) | Reply::Stopped(..) | Reply::Slow | Reply::Fault(_) => {
            let start = json!({"type": "text", "text": ""});
            block(&mut all, start, words(reply).into_iter().map(text).collect());
        }
    }
    let delta = json!({"stop_reason": stop, "stop_sequence": null});
    all.push(json!({"type": "message_delta", "delta": delta, "usage": {"output_tokens": output}}));
    all.push(json!({"type": "message_stop"}));
    all
}

fn event(wire: Wire, value: &Value) -> String {
    match wire {
        Wire::OpenAi => format!("data: {value}\n\n"),
        Wire::Anthropic => {
            format!("event: {}\ndata: {value}\n\n", value["type"].as_str().unwrap_or_default())
        }
    }
}

pub(super) fn stream(wire: Wire, to: &mut TcpStream, reply: &Reply, pause: Duration) -> io::Result<()> {
    let pause = if *reply == Reply::Slow { PAUSE } else { pause };
    http::begin(to)?;
    for value in events(wire, reply) {
        http::part(to, &event(wire, &value))?;
        std::thread::sleep(pause);
    }
    if wire == Wire::OpenAi {
        http::part(to, "data: [DONE]\n\n")?;
    }
    http::end(to)
}

/// The first part of an answer, and then no more of it.
pub(super) fn cut(wire: Wire, to: &mut TcpStream) -> io::Result<()> {
    http::begin(to)?;
    for value in events(wire, &Reply::Text("this breaks off here".to_owned())).iter().take(4) {
        http::part(to, &event(wire, value))?;
    }
    Ok(())
}

pub(super) fn whole(wire: Wire, reply: &Reply) -> Value {
    let text: String = words(reply).concat();
    let (input, output) = USAGE;
    match wire {
        Wire::OpenAi => {
            let mut message = json!({"role": "assistant", "content": text});
            let mut finish = "stop";
            if let Reply::Call(name, arguments) = reply {
                let function = json!({"name": name, "arguments": arguments});
                message["tool_calls"] = json!([{"id": call_id(), "type": "function", "function": function}]);
                finish = "tool_calls";
            }
            json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "fake-model",
                "choices": [{"index": 0, "message": message, "finish_reason": finish}],
                "usage": {"prompt_tokens": input, "completion_tokens": output, "total_tokens": input + output}})
        }
        Wire::Anthropic => {
            let (content, stop) = match reply {
                Reply::Call(name, arguments) => {
                    let input: Value = serde_json::from_str(arguments).unwrap_or_default();
                    let call = json!({"type": "tool_use", "id": call_id(), "name": name, "input": input});
                    (call, "tool_use")
                }
                _ => (json!({"type": "text", "text": text}), "end_turn"),
            };
            json!({"id": "msg_1", "type": "message", "role": "assistant", "model": "fake-model", "content": [content],
                "stop_reason": stop, "usage": {"input_tokens": input, "output_tokens": output}})
        }
    }
}

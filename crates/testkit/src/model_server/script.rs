//! What the words of a prompt lead to.
//!
//! | word | what happens |
//! | --- | --- |
//! | `say TEXT` | the text, word by word |
//! | `think TEXT` | the text as a thought, then `thought` |
//! | `write PATH CONTENT` | a call of the tool that writes files, by whatever name it is offered |
//! | `run COMMAND` | a call of the tool that runs commands |
//! | `call NAME JSON` | a call of that tool with these arguments, sound or not |
//! | `complete` | a call of the tool whose name ends in `report_completion` |
//! | `stop REASON TEXT` | the text, and that reason for its end |
//! | `slow` | a hundred words, twenty a second |
//! | `fail-STATUS N`, `refuse-401` | that status, N times (once); for ever |
//! | `limit-429 SECONDS` | a limit that ends in so many seconds, once |
//! | `cut N`, `reset N` | an answer that breaks off in the middle, a connection that is reset, N times (once) |
//! | `hang` | nothing |
//!
//! A player of guarded work that is asked for its claims claims that it is done. After a tool's result the answer is `result: ` and its beginning. Anything else is said back.

use serde_json::{Value, json};

use super::answer::Wire;
use super::tools;

/// What is answered.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Reply {
    Text(String),
    Thought(String),
    /// Why it ends, and what it says before.
    Stopped(String, String),
    /// A hundred words, in their time.
    Slow,
    /// A tool's name and its arguments as they are sent.
    Call(String, String),
    Fault(Fault),
}

/// What goes wrong.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Fault {
    Status {
        status: u16,
        retry_after: Option<u64>,
    },
    Cut,
    Reset,
    Hang,
    /// So many times.
    Unless {
        times: u32,
        fault: Box<Fault>,
    },
}

const WORDS: &[&str] = &[
    "say",
    "think",
    "write",
    "run",
    "call",
    "complete",
    "stop",
    "slow",
    "refuse-401",
    "limit-429",
    "cut",
    "reset",
    "hang",
];

/// The words that decided, and what they lead to.
pub(super) fn decide(wire: Wire, request: &Value) -> (String, Reply) {
    let messages = request["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    if let Some(result) = messages.last().and_then(|last| wire.result_in(last)) {
        let start: String = result.chars().take(200).collect();
        return (String::new(), Reply::Text(format!("result: {start}")));
    }
    let said = messages.iter().rev().find(|message| message["role"] == "user").map(text).unwrap_or_default();
    if said.lines().any(|line| line == "Asked for: claims") {
        let claim = json!({"claim_text": "It is done, says the model.", "confidence": 0.8});
        return (String::new(), Reply::Text(json!({"claims": [claim]}).to_string()));
    }
    // Agents put their own words around a prompt.
    let is_known = |line: &&str| {
        let word = line.split(' ').next().unwrap_or_default();
        WORDS.contains(&word) || word.starts_with("fail-")
    };
    let line = said.lines().map(str::trim).rfind(is_known).unwrap_or(said.trim()).to_owned();
    let reply = reply(&line, &tools::offered(wire, request));
    (line, reply)
}

/// The text of a message, in whichever form.
fn text(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            parts.iter().filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

fn reply(line: &str, offered: &[tools::Tool]) -> Reply {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let called = |call: Option<(String, Value)>| match call {
        Some((name, arguments)) => Reply::Call(name, arguments.to_string()),
        None => Reply::Text("there is no tool for that".to_owned()),
    };
    let times = rest.trim().parse().unwrap_or(1);
    let unless = |fault| Reply::Fault(Fault::Unless { times, fault: Box::new(fault) });
    match word {
        "say" => Reply::Text(rest.to_owned()),
        "think" => Reply::Thought(rest.to_owned()),
        "write" => {
            let (path, content) = rest.split_once(' ').unwrap_or((rest, ""));
            called(tools::write(offered, path, content))
        }
        "run" => called(tools::run(offered, rest)),
        "call" => {
            let (name, arguments) = rest.split_once(' ').unwrap_or((rest, "{}"));
            Reply::Call(name.to_owned(), arguments.to_owned())
        }
        "complete" => {
            let report = json!({"outcome": "done", "summary": "Done as asked."});
            let named = |name: &str| offered.iter().find(|tool| tool.name.ends_with(name));
            called(match named("report_completion") {
                Some(tool) => Some((tool.name.clone(), report)),
                // Some agents keep the tools of servers behind one of their own.
                None => named("tool_call").map(|tool| {
                    let hidden = json!({"name": "mcp__baton__report_completion", "arguments": report});
                    (tool.name.clone(), hidden)
                }),
            })
        }
        "stop" => {
            let (reason, text) = rest.split_once(' ').unwrap_or((rest, ""));
            Reply::Stopped(reason.to_owned(), text.to_owned())
        }
        "slow" => Reply::Slow,
        "refuse-401" => Reply::Fault(Fault::Status { status: 401, retry_after: None }),
        "limit-429" => {
            let fault = Fault::Status { status: 429, retry_after: rest.trim().parse().ok() };
            Reply::Fault(Fault::Unless { times: 1, fault: Box::new(fault) })
        }
        "cut" => unless(Fault::Cut),
        "reset" => unless(Fault::Reset),
        "hang" => Reply::Fault(Fault::Hang),
        _ => match word.strip_prefix("fail-").and_then(|status| status.parse().ok()) {
            Some(status) => unless(Fault::Status { status, retry_after: None }),
            None => Reply::Text(line.to_owned()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(wire: Wire, request: &Value) -> Reply {
        decide(wire, request).1
    }

    #[test]
    fn the_last_word_of_the_last_user_counts() {
        let request = json!({"messages": [
            {"role": "user", "content": "hang"},
            {"role": "assistant", "content": "?"},
            {"role": "user", "content": [{"type": "text", "text": "some context\nsay hello there\n"}]},
        ]});
        assert_eq!(of(Wire::OpenAi, &request), Reply::Text("hello there".into()));
    }

    #[test]
    fn after_a_result_it_says_what_it_was() {
        let request = json!({"messages": [
            {"role": "user", "content": "run ls"},
            {"role": "tool", "tool_call_id": "c", "content": "a.txt"},
        ]});
        assert_eq!(of(Wire::OpenAi, &request), Reply::Text("result: a.txt".into()));
        let request = json!({"messages": [
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "b.txt"}]},
        ]});
        assert_eq!(of(Wire::Anthropic, &request), Reply::Text("result: b.txt".into()));
    }

    #[test]
    fn faults_are_counted() {
        let request = json!({"messages": [{"role": "user", "content": "fail-503 2"}]});
        let fault = Box::new(Fault::Status { status: 503, retry_after: None });
        assert_eq!(of(Wire::OpenAi, &request), Reply::Fault(Fault::Unless { times: 2, fault }));
    }
}

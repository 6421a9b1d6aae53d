//! What was said so far, as it is sent each time.
//!
//! Every call that the model made has an output before the next request goes out: the one that came, or a word that there was none. A server refuses
//! a conversation with a gap in it, and with it everything that follows.

use std::collections::BTreeSet;

use baton_core::session::{ToolCall, is_mutating};
use serde_json::{Value, json};

use super::answer::Answer;
use super::{Api, LlmSetup, anthropic, openai};
use crate::harness::bounds::is_simple;
use crate::harness::{Failure, ToolOutput};
use crate::limits::AGENT_VALUES_MAX;
use crate::limits::LLM_CONVERSATION_BYTES_MAX;

/// One contribution.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    Prompt(Vec<String>),
    Answer(Said),
    /// What came of the calls of the answer before, in its order.
    Outputs(Vec<ToolOutput>),
}

/// What the model said.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Said {
    pub(super) text: String,
    pub(super) calls: Vec<Called>,
}

/// A call of a tool.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Called {
    pub(super) id: String,
    pub(super) name: String,
    /// An object; or, where the model wrote no JSON, the text that it wrote and why that is none.
    pub(super) arguments: Result<Value, (String, String)>,
}

impl Called {
    /// Arguments that a server takes back.
    pub(super) fn sound_arguments(&self) -> Value {
        match &self.arguments {
            Ok(arguments) => arguments.clone(),
            Err((text, _)) => json!({"_invalid": text}),
        }
    }
}

/// The conversation with one model.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    messages: Vec<Message>,
    /// Names of calls, so that no two are the same.
    known: BTreeSet<String>,
    bytes: usize,
}

impl Conversation {
    pub(super) fn prompt(&mut self, blocks: &[String]) {
        self.fill();
        self.push(Message::Prompt(blocks.to_vec()));
    }

    /// Takes what came of the last calls. What nobody asked for is left out, and what is missing is filled in.
    pub(super) fn outputs(&mut self, outputs: &[ToolOutput]) {
        if let Some(Message::Answer(said)) = self.messages.last() {
            let outputs = said.calls.iter().map(|call| output_of(call, outputs)).collect();
            self.push(Message::Outputs(outputs));
        }
    }

    fn fill(&mut self) {
        if matches!(self.messages.last(), Some(Message::Answer(said)) if !said.calls.is_empty()) {
            self.outputs(&[]);
        }
    }

    /// Takes an answer that is whole, and gives the calls in it.
    ///
    /// Arguments that are no JSON object come as the text that they are: whoever runs tools says no to that, and the model is told why.
    pub(super) fn hear(&mut self, answer: &Answer) -> Vec<ToolCall> {
        let mut said = Said { text: answer.text.clone(), calls: Vec::new() };
        let mut calls = Vec::new();
        for asked in answer.calls.values() {
            let mut id = asked.id.clone();
            // Some servers name no call, or all of them alike.
            while id.is_empty() || !self.known.insert(id.clone()) {
                id = format!("call_{}", self.known.len() + 1);
                if self.known.insert(id.clone()) {
                    break;
                }
                id.push_str("_more");
            }
            let arguments = arguments(&asked.arguments);
            calls.push(ToolCall {
                call_id: id.clone(),
                name: asked.name.clone(),
                arguments: match &arguments {
                    Ok(arguments) => arguments.clone(),
                    Err((text, _)) => Value::String(text.clone()),
                },
                mutating: is_mutating(&asked.name).unwrap_or(true),
            });
            said.calls.push(Called { id, name: asked.name.clone(), arguments });
        }
        // An answer without a word is none; the next prompt simply follows.
        if !said.text.is_empty() || !said.calls.is_empty() {
            self.push(Message::Answer(said));
        }
        calls
    }

    /// Takes an answer that was broken off on purpose: its words count, its calls never were.
    pub(super) fn hear_part(&mut self, text: &str) {
        if !text.is_empty() {
            self.push(Message::Answer(Said { text: text.to_owned(), calls: Vec::new() }));
        }
    }

    /// Takes back a prompt that the server will never take: it would spoil everything after it.
    pub(super) fn refuse(&mut self) {
        if let Some(Message::Prompt(blocks)) = self.messages.last() {
            self.bytes -= blocks.iter().map(String::len).sum::<usize>();
            self.messages.pop();
        }
    }

    /// The body of the next request.
    pub(super) fn request(&self, setup: &LlmSetup) -> Result<Value, Failure> {
        if self.bytes > LLM_CONVERSATION_BYTES_MAX {
            let message = format!("the conversation has more than {LLM_CONVERSATION_BYTES_MAX} bytes");
            return Err(Failure::new(message));
        }
        Ok(match setup.api {
            Api::OpenAi => openai::request(setup, &self.messages),
            Api::Anthropic => anthropic::request(setup, &self.messages),
        })
    }

    fn push(&mut self, message: Message) {
        self.bytes += match &message {
            Message::Prompt(blocks) => blocks.iter().map(String::len).sum(),
            Message::Answer(said) => {
                let sizes = said.calls.iter().map(|call| call.sound_arguments().to_string().len());
                said.text.len() + sizes.sum::<usize>()
            }
            Message::Outputs(outputs) => outputs.iter().map(|output| output.output.len()).sum(),
        };
        self.messages.push(message);
    }
}

/// What the model is told of a call.
fn output_of(call: &Called, outputs: &[ToolOutput]) -> ToolOutput {
    let came = outputs.iter().find(|output| output.call_id == call.id);
    let error = |output: String| ToolOutput {
        call_id: call.id.clone(),
        name: call.name.clone(),
        output,
        is_error: true,
    };
    match (came, &call.arguments) {
        // Whatever was said of it: this is why.
        (_, Err((_, why))) => error(format!("error: the tool was not run: its arguments are {why}")),
        (Some(output), Ok(_)) => output.clone(),
        (None, Ok(_)) => error("error: the tool was not run".to_owned()),
    }
}

/// Arguments as an object; or the text and what is wrong with it.
fn arguments(text: &str) -> Result<Value, (String, String)> {
    if text.trim().is_empty() {
        return Ok(json!({}));
    }
    if !is_simple(text.as_bytes()) {
        return Err((String::new(), format!("of more than {AGENT_VALUES_MAX} values")));
    }
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(Value::Object(object)),
        Ok(_) => Err((text.to_owned(), "no object".to_owned())),
        Err(error) => Err((text.to_owned(), format!("no JSON ({error})"))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::answer::Asked;
    use super::*;

    fn answer(calls: &[(&str, &str, &str)]) -> Answer {
        let asked = |(id, name, arguments): &(&str, &str, &str)| Asked {
            id: (*id).to_owned(),
            name: (*name).to_owned(),
            arguments: (*arguments).to_owned(),
        };
        Answer { calls: (0..).zip(calls.iter().map(asked)).collect(), ..Answer::default() }
    }

    fn last_outputs(conversation: &Conversation) -> Vec<(String, String, bool)> {
        let outputs = conversation.messages.iter().rev().find_map(|message| match message {
            Message::Outputs(outputs) => Some(outputs),
            _ => None,
        });
        let shown = |output: &ToolOutput| (output.call_id.clone(), output.output.clone(), output.is_error);
        outputs.unwrap().iter().map(shown).collect()
    }

    #[test]
    fn every_call_has_an_output_before_the_next_request() {
        let mut conversation = Conversation::default();
        conversation.prompt(&["go".into()]);
        conversation.hear(&answer(&[("a", "grep", "{}"), ("b", "bash", "")]));
        let output =
            ToolOutput { call_id: "b".into(), name: "bash".into(), output: "ok".into(), is_error: false };
        conversation.outputs(&[output]);
        let missing = "error: the tool was not run".to_owned();
        assert_eq!(
            last_outputs(&conversation),
            [("a".into(), missing.clone(), true), ("b".into(), "ok".into(), false)]
        );
        // A turn that was left in the middle.
        conversation.hear(&answer(&[("c", "grep", "{}")]));
        conversation.prompt(&["something else".into()]);
        assert_eq!(last_outputs(&conversation), [("c".into(), missing, true)]);
    }

    #[test]
    fn arguments_that_are_no_json_cost_no_turn() {
        let mut conversation = Conversation::default();
        conversation.prompt(&["go".into()]);
        let calls = conversation.hear(&answer(&[("a", "bash", "{\"command\": "), ("b", "bash", "[1]")]));
        assert_eq!(calls[0].arguments, Value::String("{\"command\": ".into()));
        conversation.outputs(&[]);
        let outputs = last_outputs(&conversation);
        assert!(outputs[0].1.contains("no JSON (EOF") && outputs[0].2, "{outputs:?}");
        assert!(outputs[1].1.ends_with("no object"), "{outputs:?}");
    }

    #[test]
    fn no_two_calls_have_the_same_name() {
        let mut conversation = Conversation::default();
        let calls =
            conversation.hear(&answer(&[("", "a", ""), ("x", "b", ""), ("x", "c", ""), ("", "d", "")]));
        let names: BTreeSet<&str> = calls.iter().map(|call| call.call_id.as_str()).collect();
        assert_eq!(names.len(), 4, "{names:?}");
    }

    #[test]
    fn what_the_server_will_never_take_is_taken_back() {
        let mut conversation = Conversation::default();
        conversation.prompt(&["too long".into()]);
        conversation.refuse();
        assert_eq!((conversation.messages.len(), conversation.bytes), (0, 0));
    }
}

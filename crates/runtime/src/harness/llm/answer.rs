//! An answer in the making, in whichever form it comes.

use std::collections::BTreeMap;

use baton_core::session::Cause;
use serde_json::Value;

use crate::harness::Failure;
use crate::harness::bounds::is_simple;

/// Most calls of one answer. A model that wants more has lost its way.
const CALLS_MAX: usize = 128;

/// What has come so far.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) text: String,
    /// By their place in the answer.
    pub(super) calls: BTreeMap<u64, Asked>,
    pub(super) usage: Option<Value>,
    /// Why it ended, once it has.
    pub(super) stop: Option<String>,
    /// Whether nothing more will come.
    pub(super) is_whole: bool,
    /// What all of it takes.
    pub(super) bytes: usize,
}

/// A call of a tool as the model writes it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) id: String,
    pub(super) name: String,
    /// JSON, if all is well.
    pub(super) arguments: String,
}

/// A part of the text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) text: String,
    pub(super) is_thought: bool,
}

/// Reads one event. What is no object is something that nobody here knows, and costs no answer; an object that does not read would: a part of the text
/// or of a call would be missing.
pub(super) fn event(data: &str) -> Result<Option<Value>, Failure> {
    if !data.starts_with('{') {
        return Ok(None);
    }
    let read = if is_simple(data.as_bytes()) { serde_json::from_str(data).ok() } else { None };
    let message = "the model's server sent a part of its answer that does not read";
    read.map(Some).ok_or_else(|| Failure { retryable: true, ..Failure::of(Cause::Protocol, message) })
}

impl Answer {
    /// Takes a part of the text.
    pub(super) fn say(&mut self, text: &str, is_thought: bool) -> Option<Piece> {
        self.bytes += text.len();
        if text.is_empty() {
            return None;
        }
        if !is_thought {
            self.text.push_str(text);
        }
        Some(Piece { text: text.to_owned(), is_thought })
    }

    /// Takes a part of a call; one that there are too many of counts as bytes only.
    pub(super) fn call(&mut self, place: u64, id: Option<&str>, name: Option<&str>, arguments: &str) {
        self.bytes += arguments.len();
        if self.calls.len() >= CALLS_MAX && !self.calls.contains_key(&place) {
            return;
        }
        let asked = self.calls.entry(place).or_default();
        // Some servers repeat them in every part.
        if let Some(id) = id.filter(|_| asked.id.is_empty()) {
            id.clone_into(&mut asked.id);
        }
        if let Some(name) = name.filter(|_| asked.name.is_empty()) {
            name.clone_into(&mut asked.name);
        }
        asked.arguments.push_str(arguments);
    }

    /// Takes why it ended, in the words of this house.
    pub(super) fn end(&mut self, stop: &str) {
        let stop = match stop {
            "stop" | "end_turn" | "stop_sequence" => "end_turn",
            "length" | "max_tokens" => "max_tokens",
            "tool_calls" | "function_call" | "tool_use" => "tool_calls",
            "content_filter" | "refusal" => "refusal",
            other => other,
        };
        self.stop = Some(stop.to_owned());
    }
}

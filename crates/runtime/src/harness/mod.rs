//! What drives an agent, whatever it speaks: one small trait for what is asked of it, one enum for what it tells.
//!
//! A harness owns its agent's process or connection and knows its protocol; nothing beyond this module does. What it tells comes in order, from
//! whichever thread, through the function that it was started with, and ends with [`Told::Exited`].

pub mod acp;
pub(crate) mod bounds;
mod catalog;
pub mod exec;
pub mod llm;
pub(crate) mod signal;

pub use catalog::{AgentSpec, Drive, Waits};

use baton_core::Timestamp;
use baton_core::session::{Answer, Cause, Evidence, ToolCall};
use serde_json::Value;

use crate::agent::Exit;
use crate::limits::TEXT_BYTES_MAX;
use crate::session::Wish;

/// What is asked of an agent. Nothing here waits: what comes of it is told.
pub trait Harness: Send + std::fmt::Debug {
    /// Begins a turn.
    fn prompt(&mut self, blocks: &[String]) -> Result<(), Failure>;

    /// Goes on with a turn: what came of the tools that the answer asked for, in its order. For models whose tools Baton runs.
    fn outputs(&mut self, outputs: &[ToolOutput]) -> Result<(), Failure> {
        let _ = outputs;
        Err(Failure::new("this agent runs its own tools"))
    }

    /// Sends once more what was sent last, after a failure that may pass. For models; an agent's turn is its own.
    fn again(&mut self) -> Result<(), Failure> {
        Err(Failure::new("this agent repeats its own requests"))
    }

    /// Asks to end the turn early; the end is told as any other.
    fn cancel(&mut self);

    /// Answers what was asked for under this name.
    fn answer(&mut self, id: &str, answer: &Answer);

    /// Ends the agent, within its grace.
    fn stop(&mut self);

    /// Ends the agent for what it did or did not do: sooner than one that is asked to stop.
    fn end(&mut self) {
        self.stop();
    }

    /// The number of its process, where it has one.
    fn pid(&self) -> Option<u32>;
}

/// What an agent does.
#[derive(Debug)]
pub enum Told {
    /// It takes input.
    Ready(Ready),
    /// It cannot be talked to, or not any more: it is to be ended for this.
    Broken(Failure),
    /// What it said of its end, before that.
    Blamed(Failure),
    Text {
        text: String,
        is_thought: bool,
    },
    /// The model asks for a tool, which Baton runs once the answer is complete.
    Calls(ToolCall),
    /// The agent runs a tool of its own.
    Tool(ToolSeen),
    Asked(Asked),
    Usage(Value),
    /// What it means to do: a list of entries, as the protocol has them. The last one counts.
    Plan(Value),
    /// What it does besides, in a few words for whoever follows.
    Status(String),
    TurnEnded {
        stop: String,
        usage: Option<Value>,
    },
    TurnFailed(Failure),
    /// Something that nobody here knows; kept, and of no consequence.
    Unknown {
        what: &'static str,
        raw: String,
    },
    /// Something that is not said in any language: no sign of life either.
    Noise {
        what: &'static str,
        raw: String,
    },
    /// It will say or hear nothing more, though it may live: it has closed this.
    Closed(&'static str),
    Exited(Box<Exit>),
}

impl Told {
    /// Whether it is a part of an answer.
    pub fn is_of_a_turn(&self) -> bool {
        matches!(self, Told::Text { .. } | Told::Tool(_) | Told::Calls(_) | Told::Usage(_) | Told::Plan(_))
    }

    /// The same in parts that are not too long to wait in a mailbox together.
    pub(crate) fn parts(self) -> Vec<Told> {
        match self {
            Told::Text { text, is_thought } if text.len() > TEXT_BYTES_MAX => {
                let mut rest = text.as_str();
                let mut parts = Vec::new();
                while !rest.is_empty() {
                    let (part, after) = rest.split_at(rest.floor_char_boundary(TEXT_BYTES_MAX));
                    parts.push(Told::Text { text: part.to_owned(), is_thought });
                    rest = after;
                }
                parts
            }
            other => vec![other],
        }
    }
}

/// Why a turn ended that did not come to an end of its own, where its stop reason says so. What was said and done in it stays.
pub(crate) fn cut_short(stop: &str) -> Option<&'static str> {
    match stop {
        "refusal" => Some("the agent refused to go on (refusal)"),
        "max_tokens" => Some("the answer was cut off at its greatest length (max_tokens)"),
        "max_turn_requests" => Some("the turn was cut off after its last request (max_turn_requests)"),
        _ => None,
    }
}

/// What is known of an agent that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ready {
    /// What the agent calls the session, where it has a name for it.
    pub native_id: Option<String>,
    pub agent: Option<String>,
    pub can_load: bool,
    pub mode: Option<String>,
}

/// Why something did not work, as far as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub message: String,
    pub cause: Option<Cause>,
    /// Whether the same request may work a moment later.
    pub retryable: bool,
    /// When a limit ends.
    pub resets_at: Option<Timestamp>,
}

impl Failure {
    pub fn new(message: impl Into<String>) -> Self {
        Failure { message: message.into(), cause: None, retryable: false, resets_at: None }
    }

    /// The same with its cause, where the message gives that away.
    pub fn explained(self, now: Timestamp) -> Self {
        if self.cause.is_some() {
            return self;
        }
        let said = &[self.message.as_str()];
        let evidence = Evidence { said, process: None, is_starting: false, is_memory_short: false, now };
        match evidence.clue() {
            Some(clue) => {
                Failure { cause: Some(clue.cause), resets_at: self.resets_at.or(clue.resets_at), ..self }
            }
            None => self,
        }
    }

    pub fn of(cause: Cause, message: impl Into<String>) -> Self {
        Failure { cause: Some(cause), ..Failure::new(message) }
    }
}

/// A tool that the agent runs itself, as far as it tells. What is not told again stays as it was.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ToolSeen {
    pub call_id: String,
    pub name: Option<String>,
    /// The name by which rules know it, or its kind where its name is a sentence.
    pub tool: Option<String>,
    /// What kind of tool it is, in the protocol's word.
    pub kind: Option<String>,
    /// What it would change, where it says so.
    pub diffs: Option<Value>,
    pub arguments: Option<Value>,
    pub mutating: Option<bool>,
    pub progress: Option<Progress>,
    /// What it gave, as text.
    pub output: Option<String>,
}

/// What came of a tool that the model asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutput {
    pub call_id: String,
    pub name: String,
    pub output: String,
    /// Whether the model is told that it went wrong.
    pub is_error: bool,
}

/// How far a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    Announced,
    Running,
    Succeeded,
    /// It ran, and what it says is bad news: that is for the agent to deal with.
    SaysNo,
}

/// Something that the agent wants to be allowed.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    pub id: String,
    pub title: String,
    pub call_id: Option<String>,
    /// The tool and its whole input, where the request says so.
    pub wish: Option<Box<Wish>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_told_in_parts_that_make_it_up() {
        let long = "é€x".repeat(50_000);
        let parts = Told::Text { text: long.clone(), is_thought: true }.parts();
        let mut whole = String::new();
        for part in parts {
            let Told::Text { text, is_thought: true } = part else { panic!("{part:?}") };
            assert!(text.len() <= TEXT_BYTES_MAX && text.len() > TEXT_BYTES_MAX / 4, "{}", text.len());
            whole.push_str(&text);
        }
        assert_eq!(whole, long);
        assert!(matches!(&Told::Closed("output").parts()[..], [Told::Closed(_)]));
    }
}

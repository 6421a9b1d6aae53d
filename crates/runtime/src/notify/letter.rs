//! One notification for one receiver: what is sent, under which name it waits, and how it is kept in a file.

use std::collections::BTreeMap;

use baton_core::Timestamp;
use baton_core::json::Sorted;
use baton_ledger::hash::sha256;
use serde_json::{Map, Value, json};

use super::SinkKind;
use crate::engine::Moved;

/// The version of the event and of the file around it.
const VERSION: u64 = 1;

/// The variable that tells a command its delivery, and by which what it started is found again.
pub(super) const DELIVERY_VARIABLE: &str = "BATON_DELIVERY";

/// A notification on its way. Its content never changes, so that a repeat is the same to the byte.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Letter {
    pub(super) sink: SinkKind,
    /// The same in every attempt, and for the same transition in every run of Baton: receivers notice a repeat by it.
    pub(super) delivery: String,
    pub(super) attempts: u32,
    pub(super) event: Map<String, Value>,
    pub(super) kept: Kept,
}

/// Whether a notification is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Here,
    /// By somebody else, or in an earlier life: what that one started may still be at work.
    Left,
    /// It could not be written; it is sent all the same.
    Nowhere,
}

/// A notification that was given up.
#[derive(Debug, Clone, PartialEq)]
pub struct DeadLetter {
    pub sink: SinkKind,
    pub delivery: String,
    pub attempts: u32,
    pub event: Map<String, Value>,
    pub reason: String,
    pub at: Timestamp,
}

impl Letter {
    pub(super) fn of(moved: &Moved, sink: SinkKind) -> Self {
        let Moved { pos, task, title, from, to, reason, at } = moved;
        let what = format!("{pos} {task} {from} {to} {at} {sink}");
        let hash = sha256(what.as_bytes()).to_string();
        let delivery = format!("dlv_{}", &hash[..32]);
        let event = json!({
            "v": VERSION, "type": "task.transitioned", "delivery": delivery, "pos": pos, "taskId": task.to_string(),
            "title": title, "from": from.to_string(), "to": to.to_string(), "reason": reason, "at": at.to_string(),
        });
        let event = if let Value::Object(event) = event { event } else { Map::new() };
        Letter { sink, delivery, attempts: 0, event, kept: Kept::Here }
    }

    /// What it is called among the files; in the order of the ledger.
    pub(super) fn name(&self) -> String {
        format!("{:020}-{}.json", self.event.get("pos").and_then(Value::as_u64).unwrap_or(0), self.sink)
    }

    /// What is sent.
    pub(super) fn body(&self) -> Vec<u8> {
        Sorted(&Value::Object(self.event.clone())).to_string().into_bytes()
    }

    /// The event for those who would rather not read JSON. One line each: titles and reasons are what agents wrote.
    pub(super) fn variables(&self) -> BTreeMap<String, String> {
        let text = |key: &str| {
            let text = self.event.get(key).and_then(Value::as_str).unwrap_or_default();
            text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect::<String>()
        };
        let names = [
            ("BATON_TASK_ID", "taskId"),
            ("BATON_TASK_TITLE", "title"),
            ("BATON_TASK_FROM", "from"),
            ("BATON_TASK_TO", "to"),
            ("BATON_TASK_REASON", "reason"),
            ("BATON_TASK_AT", "at"),
            (DELIVERY_VARIABLE, "delivery"),
        ];
        names.into_iter().map(|(name, key)| (name.to_owned(), text(key))).collect()
    }

    pub(super) fn to_file(&self) -> Vec<u8> {
        let file = json!({
            "v": VERSION, "sink": self.sink.as_str(), "delivery": self.delivery, "attempts": self.attempts,
            "event": self.event,
        });
        format!("{}\n", Sorted(&file)).into_bytes()
    }

    /// `None` where it is not what [`to_file`](Self::to_file) writes.
    pub(super) fn from_file(bytes: &[u8]) -> Option<Self> {
        Letter::from_value(&serde_json::from_slice(bytes).ok()?)
    }

    fn from_value(value: &Value) -> Option<Self> {
        let event = value["event"].as_object()?.clone();
        event.get("pos")?.as_u64()?;
        if value["v"] != VERSION {
            return None;
        }
        Some(Letter {
            sink: SinkKind::parse(value["sink"].as_str()?)?,
            delivery: value["delivery"].as_str()?.to_owned(),
            attempts: u32::try_from(value["attempts"].as_u64()?).ok()?,
            event,
            kept: Kept::Here,
        })
    }
}

impl DeadLetter {
    pub(super) fn new(letter: Letter, reason: String, at: Timestamp) -> Self {
        let Letter { sink, delivery, attempts, event, kept: _ } = letter;
        DeadLetter { sink, delivery, attempts, event, reason, at }
    }

    /// The same notification, as if it had never been tried.
    pub(super) fn revived(&self) -> Letter {
        let (sink, delivery, event) = (self.sink, self.delivery.clone(), self.event.clone());
        Letter { sink, delivery, attempts: 0, event, kept: Kept::Here }
    }

    pub fn to_json(&self) -> Value {
        json!({
            "v": VERSION, "sink": self.sink.as_str(), "delivery": self.delivery, "attempts": self.attempts,
            "event": self.event, "reason": self.reason, "at": self.at.to_string(),
        })
    }

    pub(super) fn from_file(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let at = Timestamp::from_rfc3339(value["at"].as_str()?).ok()?;
        Some(DeadLetter::new(Letter::from_value(&value)?, value["reason"].as_str()?.to_owned(), at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::task::Status;

    pub(crate) fn moved() -> Moved {
        Moved {
            pos: 7,
            task: "TASK-2026-02-09-057".parse().unwrap(),
            title: "A\ttitle".into(),
            from: Status::InProgress,
            to: Status::Review,
            reason: "done".into(),
            at: Timestamp::nearest(1_770_000_000_000),
        }
    }

    #[test]
    fn a_file_reads_back_and_a_repeat_is_the_same_to_the_byte() {
        let mut letter = Letter::of(&moved(), SinkKind::Webhook);
        letter.attempts = 3;
        let again = Letter::from_file(&letter.to_file()).unwrap();
        assert_eq!(again, letter);
        assert_eq!(again.body(), Letter::of(&moved(), SinkKind::Webhook).body());
        assert_eq!(letter.name(), "00000000000000000007-webhook.json");
        let dead = DeadLetter::new(letter, "no".into(), moved().at);
        assert_eq!(DeadLetter::from_file(dead.to_json().to_string().as_bytes()), Some(dead.clone()));
        assert_eq!(dead.revived().attempts, 0);
    }

    #[test]
    fn each_receiver_and_each_transition_has_an_id_of_its_own() {
        let one = Letter::of(&moved(), SinkKind::Webhook).delivery;
        assert_ne!(one, Letter::of(&moved(), SinkKind::Command).delivery);
        assert_ne!(one, Letter::of(&Moved { pos: 8, ..moved() }, SinkKind::Webhook).delivery);
    }

    #[test]
    fn variables_are_one_line_each() {
        let variables = Letter::of(&moved(), SinkKind::Command).variables();
        assert_eq!(variables["BATON_TASK_TITLE"], "A title");
        assert_eq!(variables["BATON_TASK_TO"], "review");
    }

    #[test]
    fn what_is_no_letter_is_none() {
        for text in
            ["", "{}", "[]", r#"{"v":2,"sink":"webhook","delivery":"d","attempts":0,"event":{"pos":1}}"#]
        {
            assert_eq!(Letter::from_file(text.as_bytes()), None, "{text}");
        }
    }
}

//! What is open between both sides of a conversation: their requests that wait for an answer, and ours. The library takes whatever it is given; here
//! is said how much that may be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::limits::{
    ANSWERS_BYTES_MAX, FILE_ANSWER_BYTES_MAX, OPEN_REQUESTS_BYTES_MAX, OPEN_REQUESTS_MAX, TERMINAL_BYTES_MAX,
};

/// The ids of what is open.
#[derive(Debug, Default)]
pub(super) struct Desk {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// What the agent asked for, how long it was, and how long the answer may be.
    theirs: BTreeMap<String, (usize, usize)>,
    bytes: usize,
    answers: usize,
    ours: BTreeSet<String>,
}

/// A message as far as it matters here.
#[derive(Deserialize)]
struct Head {
    id: Option<Value>,
    method: Option<IgnoredAny>,
}

impl Desk {
    /// Takes a request of the agent's, unless there are too many.
    pub(super) fn admit(&self, id: &Value, bytes: usize, method: &str) -> Result<(), String> {
        let (id, mut open) = (id.to_string(), self.open());
        // As much as it may take once it is made.
        let answer = match method {
            "fs/read_text_file" => FILE_ANSWER_BYTES_MAX,
            "terminal/output" => TERMINAL_BYTES_MAX,
            _ => 0,
        };
        if open.theirs.contains_key(&id) {
            return Err(format!("id: expected one that is not in use, got {id}"));
        }
        if open.theirs.len() >= OPEN_REQUESTS_MAX {
            return Err(format!("expected at most {OPEN_REQUESTS_MAX} requests at a time, got another"));
        }
        // One that is as long as a message may be goes alone.
        if open.bytes > 0 && open.bytes + bytes > OPEN_REQUESTS_BYTES_MAX {
            return Err(format!("expected at most {OPEN_REQUESTS_BYTES_MAX} bytes of requests at a time"));
        }
        open.bytes += bytes;
        open.answers += answer;
        open.theirs.insert(id, (bytes, answer));
        Ok(())
    }

    /// Whether so much is to be answered that nothing more should be asked meanwhile.
    pub(super) fn is_crowded(&self) -> bool {
        self.open().answers >= ANSWERS_BYTES_MAX
    }

    /// Takes an answer of the agent's: whether anybody waits for it.
    pub(super) fn is_awaited(&self, id: &Value) -> bool {
        self.open().ours.remove(&id.to_string())
    }

    /// Takes a line that is sent to the agent.
    pub(super) fn sent(&self, line: &str) {
        let Ok(Head { id: Some(id), method }) = serde_json::from_str(line) else { return };
        let (id, mut open) = (id.to_string(), self.open());
        if method.is_some() {
            open.ours.insert(id);
        } else if let Some((bytes, answer)) = open.theirs.remove(&id) {
            open.bytes -= bytes;
            open.answers -= answer;
        }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn requests_are_bounded_in_number_and_size_until_they_are_answered() {
        let desk = Desk::default();
        for id in 0..OPEN_REQUESTS_MAX {
            desk.admit(&json!(id), 10, "m").unwrap();
        }
        assert!(desk.admit(&json!("more"), 10, "m").unwrap_err().contains("at a time"));
        desk.sent(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        desk.admit(&json!("more"), 10, "m").unwrap();
        let twice = desk.admit(&json!("more"), 10, "m").unwrap_err();
        assert_eq!(twice, r#"id: expected one that is not in use, got "more""#);
        let desk = Desk::default();
        desk.admit(&json!(1), OPEN_REQUESTS_BYTES_MAX * 2, "m").unwrap();
        assert!(desk.admit(&json!(2), 1, "m").unwrap_err().contains("bytes"));
        desk.sent(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#);
        desk.admit(&json!(2), 1, "m").unwrap();
    }

    #[test]
    fn long_answers_make_a_crowd() {
        let desk = Desk::default();
        for id in 0..ANSWERS_BYTES_MAX / FILE_ANSWER_BYTES_MAX {
            assert!(!desk.is_crowded());
            desk.admit(&json!(id), 10, "fs/read_text_file").unwrap();
        }
        assert!(desk.is_crowded());
        desk.sent(r#"{"jsonrpc":"2.0","id":0,"result":{}}"#);
        assert!(!desk.is_crowded());
    }

    #[test]
    fn an_answer_is_taken_once_and_only_to_what_was_asked() {
        let desk = Desk::default();
        desk.sent(r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{}}"#);
        desk.sent(r#"{"jsonrpc":"2.0","method":"session/cancel","params":{}}"#);
        assert!(!desk.is_awaited(&json!("b")));
        assert!(desk.is_awaited(&json!("a")));
        assert!(!desk.is_awaited(&json!("a")));
    }
}

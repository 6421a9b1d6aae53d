//! What is open between both sides of a conversation: their requests that wait for an answer, and ours. The library takes whatever it is given; here
//! is said how much that may be.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::limits::{OPEN_REQUESTS_BYTES_MAX, OPEN_REQUESTS_MAX};

/// The ids of what is open.
#[derive(Debug, Default)]
pub(super) struct Desk {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    /// What the agent asked for, and how long it was.
    theirs: BTreeMap<String, usize>,
    bytes: usize,
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
    pub(super) fn admit(&self, id: &Value, bytes: usize) -> Result<(), String> {
        let (id, mut open) = (id.to_string(), self.open());
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
        open.theirs.insert(id, bytes);
        Ok(())
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
        } else if let Some(bytes) = open.theirs.remove(&id) {
            open.bytes -= bytes;
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
            desk.admit(&json!(id), 10).unwrap();
        }
        assert!(desk.admit(&json!("more"), 10).unwrap_err().contains("at a time"));
        desk.sent(r#"{"jsonrpc":"2.0","id":3,"result":{}}"#);
        desk.admit(&json!("more"), 10).unwrap();
        let twice = desk.admit(&json!("more"), 10).unwrap_err();
        assert_eq!(twice, r#"id: expected one that is not in use, got "more""#);
        let desk = Desk::default();
        desk.admit(&json!(1), OPEN_REQUESTS_BYTES_MAX * 2).unwrap();
        assert!(desk.admit(&json!(2), 1).unwrap_err().contains("bytes"));
        desk.sent(r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}"#);
        desk.admit(&json!(2), 1).unwrap();
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

//! One JSON object on each line: written whole, and answers brought to whoever asked.

use std::collections::BTreeMap;
use std::io::{Write as _, stdout};
use std::sync::{Condvar, Mutex, PoisonError};

use serde_json::{Value, json};

/// Standard output as a place for messages, and what came back.
#[derive(Debug, Default)]
pub(super) struct Wire {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    answers: BTreeMap<String, Value>,
    cancels: u64,
}

impl Wire {
    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn say(&self, message: &Value) {
        self.raw(&format!("{message}\n"));
    }

    /// Writes text that may be no message at all. Whoever does not read any more is not written to any more.
    pub(super) fn raw(&self, text: &str) {
        let mut out = stdout().lock();
        let _ = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    }

    pub(super) fn result(&self, id: &Value, result: &Value) {
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(super) fn error(&self, id: &Value, code: i64, message: &str, data: &Value) {
        self.say(
            &json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": data}}),
        );
    }

    /// Asks the client something and waits for its answer; nothing comes back where the turn is canceled meanwhile.
    pub(super) fn ask(&self, method: &str, params: &Value) -> Option<Value> {
        let (id, cancels) = {
            let mut state = self.state();
            state.asked += 1;
            (state.asked, state.cancels)
        };
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let key = id.to_string();
        let mut state = self.state();
        loop {
            if let Some(answer) = state.answers.remove(&key) {
                return Some(answer);
            }
            if state.cancels != cancels {
                return None;
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    pub(super) fn answered(&self, id: &Value, message: &Value) {
        self.state().answers.insert(id.to_string(), message.clone());
        self.changed.notify_all();
    }

    pub(super) fn cancel_asked(&self) {
        self.state().cancels += 1;
        self.changed.notify_all();
    }
}

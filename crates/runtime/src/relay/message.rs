//! One message of JSON-RPC, as far as a relay looks at it.

use serde_json::{Map, Value, json};

/// What the agent's end is answered with: the termination is in its `data`.
pub const ERROR_ENDED: i64 = -32000;
/// What Baton could not do.
pub const ERROR_INTERNAL: i64 = -32603;
pub(super) const ERROR_PARAMS: i64 = -32602;
pub(super) const ERROR_NOT_FOUND: i64 = -32002;

/// A message, sorted by what it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Message {
    /// Wants an answer under this id.
    Request {
        id: Value,
        method: String,
        body: Map<String, Value>,
    },
    Notification {
        method: String,
        body: Map<String, Value>,
    },
    /// An answer to what the other side asked.
    Reply {
        id: Value,
        body: Map<String, Value>,
    },
}

/// Why something is no message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("expected one JSON-RPC object")]
    NoObject,
    #[error("expected jsonrpc \"2.0\"")]
    Version,
    #[error("method: expected a text")]
    Method,
    #[error("id: expected a text or a number")]
    Id,
    #[error("expected a method, or an id with a result or an error")]
    Neither,
}

impl Message {
    /// Sorts a value. A version that is left out is meant.
    pub fn read(value: Value) -> Result<Message, Malformed> {
        let Value::Object(mut body) = value else { return Err(Malformed::NoObject) };
        if body.get("jsonrpc").is_some_and(|version| version != "2.0") {
            return Err(Malformed::Version);
        }
        body.insert("jsonrpc".to_owned(), "2.0".into());
        let id = match body.get("id") {
            None | Some(Value::Null) => None,
            Some(id @ (Value::String(_) | Value::Number(_))) => Some(id.clone()),
            Some(_) => return Err(Malformed::Id),
        };
        let method = match body.get("method") {
            None => None,
            Some(Value::String(method)) => Some(method.clone()),
            Some(_) => return Err(Malformed::Method),
        };
        let is_answer = body.contains_key("result") || body.contains_key("error");
        match (method, id) {
            (Some(method), Some(id)) => Ok(Message::Request { id, method, body }),
            (Some(method), None) => {
                body.remove("id");
                Ok(Message::Notification { method, body })
            }
            (None, Some(id)) if is_answer => Ok(Message::Reply { id, body }),
            (None, _) => Err(Malformed::Neither),
        }
    }

    /// The method, where it has one.
    pub fn method(&self) -> Option<&str> {
        match self {
            Message::Request { method, .. } | Message::Notification { method, .. } => Some(method),
            Message::Reply { .. } => None,
        }
    }
}

/// An answer that says what went wrong.
pub fn error(id: &Value, code: i64, message: &str, data: Option<Value>) -> Value {
    let mut error = json!({"code": code, "message": message});
    if let Some(data) = data {
        error["data"] = data;
    }
    json!({"jsonrpc": "2.0", "id": id, "error": error})
}

pub(super) fn result(id: &Value, result: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

pub(super) fn notification(method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": params})
}

/// The session that a message is about, by either spelling.
pub(super) fn session_of(body: &Map<String, Value>) -> Option<&str> {
    let params = body.get("params")?;
    params.get("sessionId").or_else(|| params.get("session_id"))?.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_request_a_notification_or_a_reply_and_nothing_else() {
        let read = |value: Value| Message::read(value);
        assert!(matches!(read(json!({"id": 0, "method": "x"})), Ok(Message::Request { id, .. }) if id == 0));
        assert!(matches!(read(json!({"method": "x", "id": null})), Ok(Message::Notification { .. })));
        assert!(matches!(read(json!({"id": "a", "result": null})), Ok(Message::Reply { .. })));
        assert_eq!(read(json!([{"id": 1, "method": "x"}])), Err(Malformed::NoObject));
        assert_eq!(read(json!({"jsonrpc": "1.0", "method": "x"})), Err(Malformed::Version));
        assert_eq!(read(json!({"id": {}, "method": "x"})), Err(Malformed::Id));
        assert_eq!(read(json!({"method": 1})), Err(Malformed::Method));
        assert_eq!(read(json!({"id": 1})), Err(Malformed::Neither));
        assert_eq!(read(json!({"nonsense": true})), Err(Malformed::Neither));
    }
}

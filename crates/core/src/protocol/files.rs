//! Files that stand for messages: read as strictly as the message, written the same every time.

use serde::ser::Serialize;
use serde_json::Value;

use super::fields::{Fields, Read, shown};
use super::reject::{Detail, Reason, Rejection};
use crate::json;
use crate::limits::ENVELOPE_BYTES_MAX;

/// Reads the object of a file. A refusal says whose it is as far as it can be read; `agent` is the member that names the agent.
pub(super) fn read<T>(
    bytes: &[u8],
    agent: &str,
    read_fields: impl FnOnce(Fields<'_>) -> Read<T>,
) -> Result<T, Rejection> {
    let refuse = |reason, detail| Err(Rejection::new(reason, Some(detail)));
    if bytes.len() > ENVELOPE_BYTES_MAX {
        let expected = format!("at most {ENVELOPE_BYTES_MAX} bytes");
        return refuse(
            Reason::PayloadTooLarge,
            Detail::field("file", expected, format!("{} bytes", bytes.len())),
        );
    }
    let map = match json::parse(bytes) {
        Ok(Value::Object(map)) => map,
        Ok(value) => {
            return refuse(Reason::InvalidEnvelope, Detail::field("file", "an object", shown(Some(&value))));
        }
        Err(e) => return refuse(Reason::InvalidJson, Detail::Text(e.to_string())),
    };
    let fields = Fields { map: &map, path: "" };
    read_fields(fields).map_err(|flaw| Rejection {
        reason: flaw.reason,
        detail: Some(flaw.detail),
        task: fields.id("taskId").ok(),
        from: fields.agent(agent).ok(),
        message_type: None,
    })
}

/// JSON in the order of its fields, two spaces deep, with a final line feed.
pub(super) fn write<T: Serialize>(value: &T) -> String {
    // Text, numbers and lists into memory: nothing in it can fail.
    serde_json::to_string_pretty(value).unwrap_or_default() + "\n"
}

//! What an agent tells is cut to what an event can hold before anybody sees it: names, titles, messages, numbers.

use baton_core::limits::INTEGER_MAX;
use serde_json::Value;

use super::{Asked, Failure, Ready, Told, ToolSeen};
use crate::limits::{
    AGENT_VALUES_MAX, TOLD_DEPTH_MAX, TOLD_MESSAGE_BYTES_MAX, TOLD_NAME_BYTES_MAX, TOLD_OUTPUT_BYTES_MAX,
    TOLD_VALUE_BYTES_MAX, UNKNOWN_BYTES_MAX,
};

/// Cuts a text at a character's boundary, and says so.
pub(crate) fn cut(text: &mut String, max: usize) {
    if text.len() > max {
        text.truncate(text.floor_char_boundary(max));
        text.push('…');
    }
}

/// As much of a line as is kept of what nobody understands.
pub(crate) fn beginning(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(UNKNOWN_BYTES_MAX)]).into_owned()
}

/// Whether a line, read as JSON, holds no more values than a message may: they are counted before anything is made of them.
pub(crate) fn is_simple(line: &[u8]) -> bool {
    if line.len() <= AGENT_VALUES_MAX {
        return true;
    }
    let (mut values, mut is_text, mut is_escaped) = (0, false, false);
    for byte in line {
        match (byte, is_text) {
            (_, true) if is_escaped => is_escaped = false,
            (b'\\', true) => is_escaped = true,
            (b'"', _) => is_text = !is_text,
            (b',' | b'[' | b'{', false) => values += 1,
            _ => {}
        }
    }
    values <= AGENT_VALUES_MAX
}

fn cut_some(text: &mut Option<String>, max: usize) {
    if let Some(text) = text {
        cut(text, max);
    }
}

/// Whether a value is small, flat and exact enough for an event.
pub(crate) fn is_small(value: &Value) -> bool {
    fn size(value: &Value, depth: usize) -> Option<usize> {
        if depth > TOLD_DEPTH_MAX {
            return None;
        }
        let size = match value {
            Value::Null | Value::Bool(_) => 5,
            Value::Number(number) => {
                let is_exact = number.as_f64().is_some_and(|n| n.abs() <= INTEGER_MAX as f64);
                return is_exact.then_some(20);
            }
            Value::String(text) => text.len() + 2,
            Value::Array(items) => {
                items.iter().try_fold(2, |all, item| Some(all + 1 + size(item, depth + 1)?))?
            }
            Value::Object(map) => map
                .iter()
                .try_fold(2, |all, (name, item)| Some(all + name.len() + 4 + size(item, depth + 1)?))?,
        };
        (size <= TOLD_VALUE_BYTES_MAX).then_some(size)
    }
    size(value, 0).is_some()
}

impl Failure {
    fn cut(&mut self) {
        cut(&mut self.message, TOLD_MESSAGE_BYTES_MAX);
    }
}

impl Told {
    /// The same, as small as it must be.
    pub(crate) fn bounded(mut self) -> Told {
        match &mut self {
            Told::Ready(Ready { native_id, agent, mode, .. }) => {
                for text in [native_id, agent, mode] {
                    cut_some(text, TOLD_NAME_BYTES_MAX);
                }
            }
            Told::Broken(failure) | Told::Blamed(failure) | Told::TurnFailed(failure) => failure.cut(),
            Told::Tool(ToolSeen { call_id, name, arguments, output, .. }) => {
                cut(call_id, TOLD_NAME_BYTES_MAX);
                cut_some(name, TOLD_NAME_BYTES_MAX);
                cut_some(output, TOLD_OUTPUT_BYTES_MAX);
                arguments.take_if(|arguments| !is_small(arguments));
            }
            Told::Asked(Asked { id, title, call_id, .. }) => {
                cut(id, TOLD_NAME_BYTES_MAX);
                cut(title, TOLD_NAME_BYTES_MAX);
                cut_some(call_id, TOLD_NAME_BYTES_MAX);
            }
            Told::TurnEnded { stop, usage } => {
                cut(stop, TOLD_NAME_BYTES_MAX);
                usage.take_if(|usage| !is_small(usage));
            }
            Told::Status(text) => cut(text, TOLD_NAME_BYTES_MAX),
            Told::Text { .. }
            | Told::Calls(_)
            | Told::Usage(_)
            | Told::Plan(_)
            | Told::Unknown { .. }
            | Told::Noise { .. }
            | Told::Closed(_)
            | Told::Exited(_) => {}
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_are_counted_and_texts_are_not() {
        let text =
            format!(r#"{{"a":"{}\"{}"}}"#, ",[".repeat(AGENT_VALUES_MAX), "{".repeat(AGENT_VALUES_MAX));
        assert!(is_simple(text.as_bytes()));
        assert!(!is_simple(format!("[{}0]", "0,".repeat(AGENT_VALUES_MAX)).as_bytes()));
        assert!(!is_simple("[".repeat(AGENT_VALUES_MAX + 1).as_bytes()));
    }

    #[test]
    fn what_is_too_long_is_cut_and_what_no_event_holds_is_left_out() {
        let mut text = "é".repeat(10);
        cut(&mut text, 5);
        assert_eq!(text, "éé…");
        assert!(is_small(&json!({"inputTokens": 11, "cost": {"amount": 0.5}})));
        assert!(!is_small(&json!(u64::MAX)));
        assert!(!is_small(&json!("x".repeat(TOLD_VALUE_BYTES_MAX))));
        let deep = (0..100).fold(json!(1), |inner, _| json!([inner]));
        assert!(!is_small(&deep));
        let seen = ToolSeen {
            name: Some("x".repeat(1 << 20)),
            output: Some("y".repeat(8 << 20)),
            ..ToolSeen::default()
        };
        let Told::Tool(seen) = Told::Tool(seen).bounded() else { panic!() };
        assert!(seen.name.unwrap().len() < 1000 && seen.output.unwrap().len() < 1 << 20);
    }
}

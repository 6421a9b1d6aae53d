//! What is wrong with a text, and where.

use std::fmt;

use serde_json::Value;

/// Most characters of somebody's text that a problem repeats.
const GOT_CHARS_MAX: usize = 80;

/// Why a text was refused: the place, what would have been right, and what is there.
///
/// Lines and columns count from 1, columns in characters. `got` is bounded and has no control characters in it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {}expected {expected}, got {got}", Prefix(.field.as_deref()))]
pub struct Problem {
    pub line: usize,
    pub column: usize,
    /// The path of the field, such as `routing.agent`.
    pub field: Option<String>,
    pub expected: String,
    pub got: String,
}

struct Prefix<'a>(Option<&'a str>);

impl fmt::Display for Prefix<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(field) => write!(f, "{field}: "),
            None => Ok(()),
        }
    }
}

impl Problem {
    pub(super) fn at(
        line: usize,
        column: usize,
        expected: impl Into<String>,
        got: impl Into<String>,
    ) -> Problem {
        Problem { line, column, field: None, expected: expected.into(), got: got.into() }
    }

    /// The same problem, said of a field. An empty path is no field.
    pub(super) fn of(mut self, field: &str) -> Problem {
        self.field = (!field.is_empty()).then(|| shorten(field));
        self
    }
}

/// Somebody's text in quotes, escaped and bounded.
pub(super) fn quoted(text: &str) -> String {
    if text.chars().nth(GOT_CHARS_MAX).is_none() {
        return format!("{text:?}");
    }
    let start: String = text.chars().take(GOT_CHARS_MAX).collect();
    format!("{start:?}…")
}

/// A value in a few words.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(b) => b.to_string(),
        Value::Number(n) => n.to_string(),
        Value::String(s) => quoted(s),
        Value::Array(_) => "a list".into(),
        Value::Object(_) => "a mapping".into(),
    }
}

fn shorten(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).take(GOT_CHARS_MAX).collect()
}

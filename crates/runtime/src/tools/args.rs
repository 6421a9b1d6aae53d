//! The arguments of a call, read strictly: a refusal names the field, what was expected and what came.

use serde_json::{Map, Value};

use crate::limits::TOOL_ARGUMENT_BYTES_MAX;

/// The arguments of one call. What nobody asked for is an error at the end.
pub(super) struct Args<'a> {
    fields: &'a Map<String, Value>,
    known: Vec<&'static str>,
}

impl<'a> Args<'a> {
    pub(super) fn new(value: &'a Value) -> Result<Self, String> {
        match value {
            Value::Object(fields) => Ok(Args { fields, known: Vec::new() }),
            other => Err(format!("arguments: expected an object, got {}", shown(other))),
        }
    }

    fn get(&mut self, name: &'static str) -> Option<&'a Value> {
        self.known.push(name);
        self.fields.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn text(&mut self, name: &'static str) -> Result<Option<&'a str>, String> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) if text.len() > TOOL_ARGUMENT_BYTES_MAX => {
                let bytes = text.len();
                Err(format!("{name}: expected at most {TOOL_ARGUMENT_BYTES_MAX} bytes, got {bytes}"))
            }
            Some(Value::String(text)) => Ok(Some(text)),
            Some(other) => Err(format!("{name}: expected a string, got {}", shown(other))),
        }
    }

    pub(super) fn expect_text(&mut self, name: &'static str) -> Result<&'a str, String> {
        self.text(name)?.ok_or_else(|| format!("{name}: expected a string, got nothing"))
    }

    /// A path: a text that is not empty and has no NUL.
    pub(super) fn path(&mut self, name: &'static str) -> Result<Option<&'a str>, String> {
        match self.text(name)? {
            Some(text) if text.is_empty() || text.contains('\0') => {
                Err(format!("{name}: expected a path, got {text:?}"))
            }
            other => Ok(other),
        }
    }

    pub(super) fn expect_path(&mut self, name: &'static str) -> Result<&'a str, String> {
        self.path(name)?.ok_or_else(|| format!("{name}: expected a path, got nothing"))
    }

    pub(super) fn number(
        &mut self,
        name: &'static str,
        least: u64,
        most: u64,
    ) -> Result<Option<u64>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        match value.as_u64().filter(|number| (least..=most).contains(number)) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("{name}: expected an integer from {least} to {most}, got {}", shown(value))),
        }
    }

    pub(super) fn flag(&mut self, name: &'static str) -> Result<bool, String> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(is_set)) => Ok(*is_set),
            Some(other) => Err(format!("{name}: expected true or false, got {}", shown(other))),
        }
    }

    pub(super) fn words(&mut self, name: &'static str) -> Result<Option<Vec<String>>, String> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let expected = || format!("{name}: expected a list of strings, got {}", shown(value));
        let words = value.as_array().ok_or_else(expected)?.iter();
        let words: Option<Vec<String>> = words.map(|word| word.as_str().map(str::to_owned)).collect();
        let words = words.ok_or_else(expected)?;
        if words.iter().any(|word| word.contains('\0')) {
            return Err(format!("{name}: expected strings without NUL, got one with it"));
        }
        match words.iter().map(String::len).sum::<usize>() {
            bytes if bytes > TOOL_ARGUMENT_BYTES_MAX => {
                Err(format!("{name}: expected at most {TOOL_ARGUMENT_BYTES_MAX} bytes, got {bytes}"))
            }
            _ => Ok(Some(words)),
        }
    }

    /// Refuses what nobody asked for: a misspelt name would else be a wish that is not heard.
    pub(super) fn done(self) -> Result<(), String> {
        match self.fields.keys().find(|name| !self.known.contains(&name.as_str())) {
            None => Ok(()),
            Some(name) => Err(format!("{name}: expected one of {}, got this", self.known.join(", "))),
        }
    }
}

/// A value as far as it helps to recognise it.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(80) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_names_the_field_what_was_expected_and_what_came() {
        let value = json!({"path": 7, "line": 0, "all": "yes", "words": ["a", 1], "empty": "", "pth": "x"});
        let mut args = Args::new(&value).unwrap();
        assert_eq!(args.text("path").unwrap_err(), "path: expected a string, got 7");
        assert_eq!(args.number("line", 1, 9).unwrap_err(), "line: expected an integer from 1 to 9, got 0");
        assert_eq!(args.flag("all").unwrap_err(), "all: expected true or false, got \"yes\"");
        assert_eq!(args.words("words").unwrap_err(), "words: expected a list of strings, got [\"a\",1]");
        assert_eq!(args.path("empty").unwrap_err(), "empty: expected a path, got \"\"");
        assert_eq!(args.expect_text("gone").unwrap_err(), "gone: expected a string, got nothing");
        assert!(args.done().unwrap_err().starts_with("pth: expected one of path, line,"));
        assert_eq!(Args::new(&json!([])).err().unwrap(), "arguments: expected an object, got []");
    }
}

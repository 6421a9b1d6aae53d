//! Reads the members of a JSON object with refusals that name the field, what was expected and what came.

use serde_json::{Map, Value};

use super::paths;
use super::reject::{Detail, Reason, cut};
use crate::ids::{self, AgentName};
use crate::limits::{INTEGER_MAX, LIST_ITEM_CHARS_MAX, PATH_CHARS_MAX};
use crate::time::Timestamp;

/// A part of a message that does not fit, before it is known whose message it is.
#[derive(Debug)]
pub(super) struct Flaw {
    pub(super) reason: Reason,
    pub(super) detail: Detail,
}

pub(super) type Read<T> = Result<T, Flaw>;

/// The members of one object, and the path that leads to it (`payload.`, or nothing for the envelope).
#[derive(Debug, Clone, Copy)]
pub(super) struct Fields<'a> {
    pub(super) map: &'a Map<String, Value>,
    pub(super) path: &'static str,
}

impl<'a> Fields<'a> {
    pub(super) fn get(self, name: &str) -> Option<&'a Value> {
        self.map.get(name)
    }

    /// Refuses a member for what it is.
    pub(super) fn refuse<T>(self, name: &str, expected: impl Into<Box<str>>) -> Read<T> {
        self.refuse_as(name, expected, shown(self.get(name)))
    }

    /// Refuses a member and says in other words what came.
    pub(super) fn refuse_as<T>(
        self,
        name: &str,
        expected: impl Into<Box<str>>,
        got: impl Into<Box<str>>,
    ) -> Read<T> {
        let detail = Detail::field(format!("{}{name}", self.path), expected, got);
        Err(Flaw { reason: Reason::InvalidEnvelope, detail })
    }

    pub(super) fn text(self, name: &str) -> Read<&'a str> {
        match self.get(name).and_then(Value::as_str) {
            Some(text) => Ok(text),
            None => self.refuse(name, "a string"),
        }
    }

    /// A string of at most so many characters.
    pub(super) fn text_within(self, name: &str, chars_max: usize) -> Read<&'a str> {
        let text = self.text(name)?;
        match count_beyond(text, chars_max) {
            None => Ok(text),
            Some(count) => self.refuse_as(name, at_most(chars_max), format!("{count} characters")),
        }
    }

    /// The same where the member may be absent; `null` is not absent.
    pub(super) fn optional_text(self, name: &str, chars_max: usize) -> Read<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(_) => Ok(Some(self.text_within(name, chars_max)?.to_owned())),
        }
    }

    pub(super) fn id<T: std::str::FromStr<Err = ids::Error>>(self, name: &str) -> Read<T> {
        let text = self.text(name)?;
        text.parse().or_else(|e: ids::Error| self.refuse(name, e.expected))
    }

    pub(super) fn agent(self, name: &str) -> Read<AgentName> {
        self.id(name)
    }

    /// A moment of RFC 3339, kept as it was written.
    pub(super) fn moment(self, name: &str) -> Read<String> {
        let text = self.text(name)?;
        match Timestamp::from_rfc3339(text) {
            Ok(_) => Ok(text.to_owned()),
            Err(_) => self.refuse(name, "a time of RFC 3339, such as 2026-01-31T09:30:00.000Z"),
        }
    }

    /// An integer from 0 to 2^53 − 1.
    pub(super) fn count(self, name: &str) -> Read<u64> {
        match self.get(name).and_then(Value::as_u64) {
            Some(count) if count <= INTEGER_MAX as u64 => Ok(count),
            _ => self.refuse(name, "an integer from 0 to 2^53−1"),
        }
    }

    pub(super) fn object(self, name: &str, path: &'static str) -> Read<Fields<'a>> {
        match self.get(name).and_then(Value::as_object) {
            Some(map) => Ok(Fields { map, path }),
            None => self.refuse(name, "an object"),
        }
    }

    pub(super) fn path(self, name: &str) -> Read<String> {
        let text = self.text_within(name, PATH_CHARS_MAX)?;
        if paths::is_inside(text) { Ok(text.to_owned()) } else { self.refuse(name, paths::EXPECTED) }
    }

    /// A list of strings; absent is empty.
    pub(super) fn list(self, name: &str, items_max: usize) -> Read<Vec<String>> {
        let items = match self.get(name) {
            None => return Ok(Vec::new()),
            Some(Value::Array(items)) => items,
            Some(_) => return self.refuse(name, "an array of strings"),
        };
        if items.len() > items_max {
            return self.refuse_as(
                name,
                format!("at most {items_max} items"),
                format!("{} items", items.len()),
            );
        }
        let mut out = Vec::with_capacity(items.len());
        for (i, item) in items.iter().enumerate() {
            match list_item(item) {
                Ok(text) => out.push(text.to_owned()),
                Err((expected, got)) => return self.refuse_as(&format!("{name}[{i}]"), expected, got),
            }
        }
        Ok(out)
    }

    /// A list of paths; absent is empty.
    pub(super) fn path_list(self, name: &str, items_max: usize) -> Read<Vec<String>> {
        let list = self.list(name, items_max)?;
        match list.iter().position(|path| !paths::is_inside(path)) {
            None => Ok(list),
            Some(i) => self.refuse_as(&format!("{name}[{i}]"), paths::EXPECTED, quoted(&list[i])),
        }
    }
}

/// One string of a list, or what was expected and what came.
pub(super) fn list_item(item: &Value) -> Result<&str, (String, String)> {
    let Some(text) = item.as_str() else {
        return Err(("a string".to_owned(), shown(Some(item))));
    };
    match count_beyond(text, LIST_ITEM_CHARS_MAX) {
        None => Ok(text),
        Some(count) => Err((at_most(LIST_ITEM_CHARS_MAX), format!("{count} characters"))),
    }
}

fn at_most(chars_max: usize) -> String {
    format!("at most {chars_max} characters")
}

fn count_beyond(text: &str, chars_max: usize) -> Option<usize> {
    // A text has at most as many characters as bytes, so the common case is not counted.
    let count = if text.len() <= chars_max { text.len() } else { text.chars().count() };
    (count > chars_max).then_some(count)
}

/// A value in a few words: scalars as they are, strings cut short, collections by their size.
pub(super) fn shown(value: Option<&Value>) -> String {
    match value {
        None => "nothing".to_owned(),
        Some(Value::String(text)) => quoted(text),
        Some(Value::Array(items)) => format!("an array of {}", items.len()),
        Some(Value::Object(members)) => format!("an object of {}", members.len()),
        Some(scalar @ (Value::Null | Value::Bool(_) | Value::Number(_))) => scalar.to_string(),
    }
}

/// A string in quotes, cut short, with nothing in it that a terminal would obey.
pub(super) fn quoted(text: &str) -> String {
    format!("{:?}", cut(text))
}

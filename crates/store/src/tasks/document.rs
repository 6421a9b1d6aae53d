//! A task file, split at its fences and read.

use baton_core::limits::{TASK_FILE_BYTES_MAX, TASK_HEAD_BYTES_MAX, YAML_DEPTH_MAX};
use serde_json::{Map, Value};

use super::problem::{Problem, described, quoted};
use super::yaml::{self, Place, Shape};

/// A task file that was read: the fields of its head, and its body.
#[derive(Debug, Clone)]
pub struct Document {
    fields: Map<String, Value>,
    body: String,
    shape: Shape,
}

impl Document {
    /// Splits and reads a file.
    ///
    /// The first line is a fence of three dashes; the head reaches to the next such line. A head without content has no fields.
    /// Anything that is too large or too deep, that two readers could read differently, or that is no text is refused.
    pub fn parse(bytes: &[u8]) -> Result<Document, Problem> {
        let text = yaml::check_text(bytes, TASK_FILE_BYTES_MAX)?;
        let parts = Parts::split(text)?;
        let (fields, shape) = read_head(parts.head)?;
        Ok(Document { fields, body: parts.body.to_owned(), shape })
    }

    /// The fields of the head.
    pub fn fields(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// Every byte after the closing fence and the one blank line that may follow it.
    pub fn body(&self) -> &str {
        &self.body
    }

    /// Says of a field, by its path such as `routing.agent`, that it should have been something else.
    pub fn refuse(&self, field: &str, expected: impl Into<String>) -> Problem {
        let (mut shape, mut value, mut at) = (&self.shape, None, (1, 1));
        let mut map = Some(&self.fields);
        for key in field.split('.') {
            let entry = shape.entries().iter().find(|entry| entry.key == key);
            value = map.and_then(|map| map.get(key));
            map = value.and_then(Value::as_object);
            let Some(entry) = entry else { break };
            (shape, at) = (&entry.value, entry.at);
        }
        Problem::at(at.0, at.1, expected, value.map_or_else(|| "nothing".into(), described)).of(field)
    }
}

/// Reads the lines between the fences.
pub(super) fn read_head(head: &str) -> Result<(Map<String, Value>, Shape), Problem> {
    match yaml::read(head, 2, YAML_DEPTH_MAX, Place::Head)? {
        (Value::Object(fields), shape) => Ok((fields, shape)),
        (Value::Null, shape) if shape.span.start == head.len() => Ok((Map::new(), shape)),
        (other, _) => Err(Problem::at(2, 1, "a mapping of fields", described(&other))),
    }
}

/// The parts of a file. One after the other, they are the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Parts<'a> {
    /// A byte order mark, if there is one, and the first fence with its line end.
    pub(super) opening: &'a str,
    /// Empty, or whole lines.
    pub(super) head: &'a str,
    /// The second fence, with its line end unless the file ends there.
    pub(super) closing: &'a str,
    /// The blank line after it, or nothing.
    pub(super) blank: &'a str,
    pub(super) body: &'a str,
}

impl<'a> Parts<'a> {
    pub(super) fn split(text: &'a str) -> Result<Parts<'a>, Problem> {
        let mark = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
        let first = line(&text[mark..]);
        if !is_fence(first) || !first.ends_with('\n') {
            return Err(Problem::at(1, 1, "a line of three dashes", quoted(first.trim_end())));
        }
        let (opening, rest) = text.split_at(mark + first.len());
        let (mut at, mut lines) = (0, 1);
        loop {
            let here = line(&rest[at..]);
            lines += 1;
            if is_fence(here) {
                let (head, rest) = rest.split_at(at);
                let (closing, rest) = rest.split_at(here.len());
                let blank_bytes =
                    ["\n", "\r\n"].iter().find(|end| rest.starts_with(**end)).map_or(0, |end| end.len());
                let (blank, body) = rest.split_at(blank_bytes);
                return Ok(Parts { opening, head, closing, blank, body });
            }
            at += here.len();
            if here.is_empty() {
                return Err(Problem::at(lines, 1, "a line of three dashes", "the end"));
            }
            if at > TASK_HEAD_BYTES_MAX {
                let expected = format!("a line of three dashes within {TASK_HEAD_BYTES_MAX} bytes");
                return Err(Problem::at(lines, 1, expected, "more fields"));
            }
        }
    }

    /// The line end that the file uses.
    pub(super) fn line_end(&self) -> &'static str {
        if self.opening.ends_with("\r\n") { "\r\n" } else { "\n" }
    }
}

/// The first line of a text, with its line end.
fn line(text: &str) -> &str {
    memchr::memchr(b'\n', text.as_bytes()).map_or(text, |end| &text[..=end])
}

/// Three dashes, and at most white space after them.
fn is_fence(line: &str) -> bool {
    line.strip_prefix("---").is_some_and(|rest| rest.trim_end_matches([' ', '\t', '\r', '\n']).is_empty())
}

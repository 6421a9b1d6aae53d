//! Writes YAML that every reader takes for the same value: block style, and quotes wherever some reader could see something else.

use serde_json::{Map, Value};

/// Longest key that stands before its colon on a line; YAML's readers give up looking for the colon at 1,024 characters.
const KEY_BYTES_MAX: usize = 1000;

/// A new file: the fields in this order, then the body as it is.
///
/// It reads back as the same fields and the same body, as long as it is within the bounds of reading and the body has no NUL.
pub fn render(fields: &[(&str, Value)], body: &str) -> String {
    let mut out = String::with_capacity(64 + fields.len() * 48 + body.len());
    out.push_str("---\n");
    for (key, value) in fields {
        entry(&mut out, &Line { indent: 0, end: "\n" }, &key_text(key), "", value);
    }
    out.push_str("---\n");
    if !body.is_empty() {
        out.push('\n');
        out.push_str(body);
    }
    out
}

/// How lines are written at some depth.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) indent: usize,
    pub(super) end: &'a str,
}

impl Line<'_> {
    fn deeper(self) -> Self {
        Line { indent: self.indent + 2, ..self }
    }

    fn start(self, out: &mut String) {
        out.extend(std::iter::repeat_n(' ', self.indent));
    }
}

/// An entry of a block mapping on lines of its own. `key` is as it is to be written, `comment` is empty or goes beside it.
pub(super) fn entry(out: &mut String, line: &Line<'_>, key: &str, comment: &str, value: &Value) {
    line.start(out);
    entry_here(out, *line, key, comment, value);
}

fn entry_here(out: &mut String, line: Line<'_>, key: &str, comment: &str, value: &Value) {
    if key.len() > KEY_BYTES_MAX {
        out.push_str("? ");
        out.push_str(key);
        out.push_str(line.end);
        line.start(out);
    } else {
        out.push_str(key);
    }
    out.push(':');
    if is_inline(value) {
        out.push(' ');
        inline(out, value);
    }
    if !comment.is_empty() {
        out.push(' ');
        out.push_str(comment);
    }
    out.push_str(line.end);
    if !is_inline(value) {
        collection(out, line.deeper(), value);
    }
}

/// The lines of a mapping or list that has some.
fn collection(out: &mut String, line: Line<'_>, value: &Value) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                entry(out, &line, &key_text(key), "", value);
            }
        }
        Value::Array(items) => {
            for value in items {
                line.start(out);
                out.push('-');
                item(out, line, value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// What follows the dash of a list.
fn item(out: &mut String, line: Line<'_>, value: &Value) {
    match value {
        value if is_inline(value) => {
            out.push(' ');
            inline(out, value);
            out.push_str(line.end);
        }
        Value::Object(map) => {
            out.push(' ');
            for (at, (key, value)) in map.iter().enumerate() {
                if at > 0 {
                    line.deeper().start(out);
                }
                entry_here(out, line.deeper(), &key_text(key), "", value);
            }
        }
        other => {
            out.push_str(line.end);
            collection(out, line.deeper(), other);
        }
    }
}

/// Whether a value is written on the line of its key.
pub(super) fn is_inline(value: &Value) -> bool {
    match value {
        Value::Object(map) => map.is_empty(),
        Value::Array(items) => !items.iter().any(|item| item.is_array() || item.is_object()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

/// A value on one line, where it stands in a block mapping or list.
pub(super) fn inline(out: &mut String, value: &Value) {
    match value {
        Value::String(text) => scalar(out, text, Around::Block),
        other => flow(out, other),
    }
}

/// A value on one line, where it stands between brackets.
pub(super) fn flow(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        Value::Number(n) => out.push_str(&n.to_string()),
        Value::String(text) => scalar(out, text, Around::Flow),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                flow(out, item);
            }
            out.push(']');
        }
        Value::Object(map) => flow_map(out, map),
    }
}

fn flow_map(out: &mut String, map: &Map<String, Value>) {
    out.push('{');
    for (at, (key, value)) in map.iter().enumerate() {
        out.push_str(if at == 0 { "" } else { ", " });
        flow_entry(out, key, value);
    }
    out.push('}');
}

/// An entry of a mapping between braces.
pub(super) fn flow_entry(out: &mut String, key: &str, value: &Value) {
    let key = key_text(key);
    if key.len() > KEY_BYTES_MAX {
        out.push_str("? ");
    }
    out.push_str(&key);
    out.push_str(": ");
    flow(out, value);
}

/// A key as it is written.
pub(super) fn key_text(key: &str) -> String {
    let mut out = String::with_capacity(key.len() + 2);
    scalar(&mut out, key, Around::Flow);
    out
}

/// What a scalar stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Around {
    Block,
    /// Between brackets, or as a key: fewer characters may stand without quotes.
    Flow,
}

fn scalar(out: &mut String, text: &str, around: Around) {
    if is_plain(text, around) {
        out.push_str(text);
    } else {
        quote(out, text);
    }
}

/// Whether every reader, also of YAML 1.1, takes the text without quotes for itself.
fn is_plain(text: &str, around: Around) -> bool {
    const WORDS: [&str; 10] = ["true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan"];
    let bytes = text.as_bytes();
    let (Some(first), Some(last)) = (text.chars().next(), bytes.last()) else { return false };
    if !(first.is_alphanumeric() || first == '_' || first == '/') || matches!(last, b' ' | b':') {
        return false;
    }
    let is_wrong = |(at, c): (usize, char)| match c {
        '#' => bytes[at - 1] == b' ',
        ':' => around == Around::Flow || bytes.get(at + 1) == Some(&b' '),
        // Between brackets some readers take a dash after a space for the start of an item.
        '-' => around == Around::Flow && bytes[at - 1] == b' ',
        ' ' | '_' | '.' | '/' | '@' | '+' => false,
        '!'..='~' => around == Around::Flow && !c.is_ascii_alphanumeric(),
        _ => !c.is_alphanumeric(),
    };
    if text.char_indices().any(is_wrong) {
        return false;
    }
    if first.is_ascii_digit() {
        // A number, a date, a time, minutes and seconds: in letters, none has others than these.
        let may_be_number = |b: &u8| {
            matches!(b, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F' | b'_' | b'.' | b':' | b'+' | b'-' | b' ')
                || matches!(b, b'x' | b'X' | b'o' | b'O' | b'T' | b't' | b'Z' | b'z')
        };
        return !bytes.iter().all(may_be_number);
    }
    !WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
}

/// Text in double quotes on one line. What cannot be seen, or changes how the rest is seen, is escaped.
fn quote(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{0}'..='\u{1f}'
            | '\u{7f}'..='\u{9f}'
            | '\u{ad}'
            | '\u{200b}'
            | '\u{200e}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fff0}'..='\u{ffff}' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
}

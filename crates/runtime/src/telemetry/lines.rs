//! What is logged, as lines of `key=value`: small enough to be our own, and enough for a terminal.

use std::fmt::{self, Write as _};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Longest value of a line, in characters. What is longer is cut: the whole is in the ledger.
const VALUE_CHARS_MAX: usize = 512;

/// Writes a line for each event of ours; spans are for collectors, and leave none.
pub struct Lines {
    level: Level,
    write: Box<dyn Fn(&str) + Send + Sync>,
}

impl fmt::Debug for Lines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lines").field("level", &self.level).finish_non_exhaustive()
    }
}

impl Lines {
    /// Lines up to a level; `write` gets each without its end.
    pub fn new(level: Level, write: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Lines { level, write: Box::new(write) }
    }

    /// Hands everything that is logged in this process to these lines. The first one stays.
    pub fn install(self) {
        let _ = tracing::subscriber::set_global_default(self);
    }
}

impl Subscriber for Lines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries have much to say, to their authors.
        metadata.is_event() && *metadata.level() <= self.level && metadata.target().starts_with("baton")
    }

    fn new_span(&self, _span: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let level = event.metadata().level().as_str().to_ascii_lowercase();
        (self.write)(&format!("level={level} msg={}{}", quoted(&line.message), line.fields));
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}
}

/// One event as it becomes a line.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: String,
}

impl Line {
    fn put(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            name => drop(write!(self.fields, " {name}={}", quoted(value))),
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, &format!("{value:?}"));
    }
}

/// A value that stays one: in quotes where it has anything but the letters of words, ids and paths, and without what a terminal obeys.
fn quoted(value: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.:/+".contains(c);
    if !value.is_empty() && value.len() <= VALUE_CHARS_MAX && value.chars().all(is_plain) {
        return value.to_owned();
    }
    let mut out = String::from("\"");
    for (n, c) in value.chars().enumerate() {
        match c {
            _ if n == VALUE_CHARS_MAX => {
                out.push('…');
                break;
            }
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            // Also what turns the direction of writing around.
            c if c.is_control()
                || matches!(c, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}') =>
            {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn values_stay_one_and_are_cut() {
        for (value, shown) in [
            ("sess_1-a", "sess_1-a"),
            ("", "\"\""),
            ("two words", "\"two words\""),
            ("a=b", "\"a=b\""),
            ("say \"hi\"\\\n\u{1b}[31m\u{202e}", "\"say \\\"hi\\\"\\\\\\n\\u{1b}[31m\\u{202e}\""),
        ] {
            assert_eq!(quoted(value), shown);
        }
        let long = quoted(&"x".repeat(100_000));
        assert_eq!(long.chars().count(), 512 + 3);
    }
}

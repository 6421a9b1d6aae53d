//! What is logged, as lines of `key=value`: small enough to be our own, and enough for a terminal. Spans go to a collector, where there is one.

use std::fmt::{self, Write as _};
use std::sync::{Arc, OnceLock};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use super::spans::Spans;

/// Longest value of a line, in characters. What is longer is cut: the whole is in the ledger.
const VALUE_CHARS_MAX: usize = 512;

/// Writes a line for each event of ours.
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
}

/// Whoever watches what is logged in this process: lines for a terminal, spans for a collector, either or both.
#[derive(Debug, Clone, Default)]
pub struct Watching(Arc<Watched>);

#[derive(Debug, Default)]
struct Watched {
    lines: Option<Lines>,
    spans: OnceLock<Spans>,
}

impl Watching {
    pub fn new(lines: Option<Lines>) -> Self {
        Watching(Arc::new(Watched { lines, spans: OnceLock::new() }))
    }

    /// Hands everything that is logged in this process to these. The first one stays.
    pub fn install(&self) {
        let _ = tracing::subscriber::set_global_default(self.clone());
    }

    /// Sends spans from now on. The first collector stays.
    pub fn send_to(&self, spans: Spans) {
        let _ = self.0.spans.set(spans);
        // Whether anybody listens is remembered at each place that logs.
        tracing::callsite::rebuild_interest_cache();
    }

    /// Sends what is left.
    pub fn end(&self) {
        if let Some(spans) = self.0.spans.get() {
            spans.end();
        }
    }
}

impl Subscriber for Watching {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Libraries have much to say, to their authors.
        let is_ours = metadata.target().starts_with("baton");
        let level = self.0.lines.as_ref().map(|lines| lines.level);
        let has_spans = self.0.spans.get().is_some();
        // A failure that an event tells of is said of its span, too.
        is_ours
            && (metadata.is_event() && level.is_some_and(|level| *metadata.level() <= level)
                || has_spans && *metadata.level() <= Level::INFO)
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        Id::from_u64(self.0.spans.get().map_or(1, |spans| spans.open(span)))
    }

    fn record(&self, _span: &Id, _values: &Record<'_>) {}

    fn record_follows_from(&self, _span: &Id, _follows: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        if let (Some(spans), Some(parent), Some(code)) =
            (self.0.spans.get(), event.parent(), &line.error_code)
        {
            spans.fail(parent.into_u64(), code.clone());
        }
        if let Some(lines) = self.0.lines.as_ref().filter(|lines| *event.metadata().level() <= lines.level) {
            let level = event.metadata().level().as_str().to_ascii_lowercase();
            (lines.write)(&format!("level={level} msg={}{}", quoted(&line.message), line.fields));
        }
    }

    fn enter(&self, _span: &Id) {}

    fn exit(&self, _span: &Id) {}

    fn clone_span(&self, id: &Id) -> Id {
        if let Some(spans) = self.0.spans.get() {
            spans.hold(id.into_u64());
        }
        id.clone()
    }

    fn try_close(&self, id: Id) -> bool {
        if let Some(spans) = self.0.spans.get() {
            spans.release(id.into_u64());
        }
        true
    }
}

/// One event as it becomes a line.
#[derive(Debug, Default)]
struct Line {
    message: String,
    fields: String,
    error_code: Option<String>,
}

impl Line {
    fn put(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => value.clone_into(&mut self.message),
            "error_code" => {
                self.error_code = Some(value.to_owned());
                let _ = write!(self.fields, " error_code={}", quoted(value));
            }
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

//! The strict reader: one YAML document as a JSON value, and the places of its parts.
//!
//! YAML is read by the core schema of YAML 1.2 and no further: what is not plainly null, a boolean or a number stays the text it is.
//! Whatever lets a small text become a large value, or two readers see two values, is refused: anchors, aliases, tags, merge keys,
//! further documents, repeated keys, keys that are not text. Start at [`read`].

use std::ops::Range;

use baton_core::limits::{DEPTH_MAX, YAML_BYTES_MAX, YAML_DEPTH_MAX};
use baton_ledger::canonical;
use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, Span, StrInput, Tag};
use serde_json::{Map, Number, Value};

use super::problem::{Problem, described, quoted};

/// How much [`read_yaml`] reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    pub bytes_max: usize,
    /// Deepest nesting; a mapping or list at the top is depth 1.
    pub depth_max: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds { bytes_max: YAML_BYTES_MAX, depth_max: YAML_DEPTH_MAX }
    }
}

/// Reads a whole YAML or JSON document. A text without content is null.
pub fn read_yaml(bytes: &[u8], bounds: Bounds) -> Result<Value, Problem> {
    let text = check_text(bytes, bounds.bytes_max)?;
    // JSON has a few spellings that YAML has not: escaped surrogates, tabs between tokens, names of any length.
    if text.trim_start().starts_with(['{', '['])
        && let Ok(value) = canonical::parse(bytes)
        && depth(&value) <= bounds.depth_max
    {
        return Ok(value);
    }
    read(text, 1, bounds.depth_max, Place::Whole).map(|(value, _)| value)
}

/// What the text is a part of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// The head of a task file, whose fences are the document's markers.
    Head,
    /// A file of its own.
    Whole,
}

/// Where a value stands in the text, in bytes.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    /// From the first byte of the value. Of block collections and of nothing at all it has a start only.
    pub(super) span: Range<usize>,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Null, because nothing is written.
    Empty,
    /// On a line, or quoted, or plain over several lines.
    Scalar,
    /// After `|` or `>`. The span begins after the indicator.
    BlockScalar,
    FlowList,
    /// With where the last item ends.
    BlockList(usize),
    FlowMap(Vec<Entry>),
    BlockMap(Vec<Entry>),
}

/// A key of a mapping and the place of its value.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub(super) key: String,
    /// The key as it is written, with its quotes.
    pub(super) key_span: Range<usize>,
    /// Line and column in the file, from 1.
    pub(super) at: (usize, usize),
    pub(super) value: Shape,
}

impl Entry {
    /// Where the last byte of the entry's content ends, as far as the text must be read to know it.
    pub(super) fn content_end(&self) -> usize {
        self.value.content_end().max(self.key_span.end)
    }
}

impl Shape {
    fn content_end(&self) -> usize {
        match &self.kind {
            Kind::Empty => self.span.start,
            // Where it has no text, its place is that of what follows.
            Kind::BlockScalar if self.span.is_empty() => 0,
            Kind::Scalar | Kind::BlockScalar | Kind::FlowList | Kind::FlowMap(_) => self.span.end,
            Kind::BlockList(end) => *end,
            Kind::BlockMap(entries) => entries.last().map_or(self.span.start, Entry::content_end),
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        match &self.kind {
            Kind::FlowMap(entries) | Kind::BlockMap(entries) => entries,
            Kind::Empty | Kind::Scalar | Kind::BlockScalar | Kind::FlowList | Kind::BlockList(_) => &[],
        }
    }
}

/// Bytes as text of a bounded size without NUL.
pub(super) fn check_text(bytes: &[u8], bytes_max: usize) -> Result<&str, Problem> {
    if bytes.len() > bytes_max {
        return Err(Problem::at(1, 1, format!("at most {bytes_max} bytes"), bytes.len().to_string()));
    }
    let text = std::str::from_utf8(bytes).map_err(|e| {
        let before = String::from_utf8_lossy(&bytes[..e.valid_up_to()]);
        let (line, column) = place(&before, before.len());
        Problem::at(line, column, "UTF-8", format!("byte 0x{:02x}", bytes[e.valid_up_to()]))
    })?;
    match memchr::memchr(0, bytes) {
        None => Ok(text),
        Some(nul) => {
            let (line, column) = place(text, nul);
            Err(Problem::at(line, column, "text", "a NUL byte"))
        }
    }
}

/// The line and column of a byte, from 1.
pub(super) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..at];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    (1 + before.matches('\n').count(), 1 + before[start..].chars().count())
}

/// Reads one document whose first line is line `first_line` of its file.
pub(super) fn read(
    text: &str,
    first_line: usize,
    depth_max: usize,
    place: Place,
) -> Result<(Value, Shape), Problem> {
    refuse_controls(text, first_line)?;
    let mut walk = Walk {
        parser: Parser::new_from_str(text),
        text,
        bytes_of_chars: byte_offsets(text),
        path: String::new(),
        first_line,
        depth_max: depth_max.min(DEPTH_MAX),
    };
    walk.next()?;
    let (event, span) = walk.next()?;
    let Event::DocumentStart(is_explicit) = event else {
        return Ok((Value::Null, Shape { span: text.len()..text.len(), kind: Kind::Empty }));
    };
    if is_explicit && place == Place::Head {
        return Err(walk.refuse(span.start, "a key", "a document marker"));
    }
    let (event, span) = walk.next()?;
    let read = walk.node(event, span, 1)?;
    let (_, end) = walk.next()?;
    if !end.is_empty() && place == Place::Head {
        return Err(walk.refuse(end.start, "a key", "a document marker"));
    }
    let (event, span) = walk.next()?;
    if !matches!(event, Event::StreamEnd) {
        return Err(walk.refuse(span.start, "one document", "another one"));
    }
    Ok(read)
}

/// Control characters belong into escapes; a carriage return alone would be a line break to some and none to others.
fn refuse_controls(text: &str, first_line: usize) -> Result<(), Problem> {
    let bytes = text.as_bytes();
    let is_wrong = |(at, byte): (usize, &u8)| match byte {
        b'\t' | b'\n' => false,
        b'\r' => bytes.get(at + 1) != Some(&b'\n'),
        _ => *byte < 0x20 || *byte == 0x7f,
    };
    match bytes.iter().enumerate().position(is_wrong) {
        None => Ok(()),
        Some(at) => {
            let (line, column) = place(text, at);
            let got = format!("the control character 0x{:02x}", bytes[at]);
            Err(Problem::at(line - 1 + first_line, column, "text", got))
        }
    }
}

/// The parser counts characters. Empty where these are the bytes.
fn byte_offsets(text: &str) -> Vec<usize> {
    if text.is_ascii() {
        return Vec::new();
    }
    text.char_indices().map(|(at, _)| at).collect()
}

struct Walk<'a> {
    parser: Parser<'a, StrInput<'a>>,
    text: &'a str,
    bytes_of_chars: Vec<usize>,
    /// Where the walk is, for problems: `routing.tags[2]`.
    path: String,
    first_line: usize,
    depth_max: usize,
}

impl<'a> Walk<'a> {
    fn next(&mut self) -> Result<(Event<'a>, Span), Problem> {
        match self.parser.next_event() {
            Some(Ok(event)) => Ok(event),
            Some(Err(error)) => Err(self.syntax(&error)),
            None => Ok((Event::StreamEnd, Span::default())),
        }
    }

    fn node(&mut self, event: Event<'a>, span: Span, depth: usize) -> Result<(Value, Shape), Problem> {
        let start = self.byte(span.start);
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag)
            | Event::SequenceStart(anchor, tag)
            | Event::MappingStart(anchor, tag) => (*anchor, tag.as_deref()),
            _ => (0, None),
        };
        self.refuse_properties(span.start, anchor, tag)?;
        if depth > self.depth_max && !matches!(event, Event::Scalar(..)) {
            let expected = format!("at most {} levels", self.depth_max);
            return Err(self.refuse(span.start, expected, "a deeper one"));
        }
        // A flow collection's first event covers its bracket; a block collection has none.
        let is_flow = !span.is_empty() && matches!(self.text.as_bytes().get(start), Some(b'[' | b'{'));
        match event {
            Event::Scalar(text, style, ..) => {
                let end = self.byte(span.end);
                let (end, kind) = match style {
                    // Its span may be that of the next token.
                    ScalarStyle::Plain if text.is_empty() => (start, Kind::Empty),
                    ScalarStyle::Plain => (end, Kind::Scalar),
                    ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => {
                        (quoted_end(self.text, start), Kind::Scalar)
                    }
                    // What follows the last line of text is blank, or belongs to the next entry.
                    ScalarStyle::Literal | ScalarStyle::Folded => {
                        (start + self.text[start..end].trim_end().len(), Kind::BlockScalar)
                    }
                };
                let value =
                    if style == ScalarStyle::Plain { plain(&text) } else { Value::String(text.into()) };
                Ok((value, Shape { span: start..end, kind }))
            }
            Event::SequenceStart(..) => {
                let (mut items, mut last) = (Vec::new(), start);
                let path = self.path.len();
                loop {
                    let (event, span) = self.next()?;
                    if matches!(event, Event::SequenceEnd) {
                        let (end, kind) = if is_flow {
                            (bracket_end(self.text, self.byte(span.start)), Kind::FlowList)
                        } else {
                            (start, Kind::BlockList(last))
                        };
                        return Ok((Value::Array(items), Shape { span: start..end, kind }));
                    }
                    self.path.push_str(&format!("[{}]", items.len()));
                    let (value, shape) = self.node(event, span, depth + 1)?;
                    self.path.truncate(path);
                    last = shape.content_end();
                    items.push(value);
                }
            }
            Event::MappingStart(..) => self.mapping(start, is_flow, depth),
            Event::Alias(_) => Err(self.refuse(span.start, "a value", "an alias")),
            Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd
            | Event::DocumentStart(_)
            | Event::DocumentEnd
            | Event::SequenceEnd
            | Event::MappingEnd => Err(self.refuse(span.start, "a value", "the end of one")),
        }
    }

    fn mapping(&mut self, start: usize, is_flow: bool, depth: usize) -> Result<(Value, Shape), Problem> {
        let (mut map, mut entries) = (Map::new(), Vec::new());
        let path = self.path.len();
        loop {
            let (event, span) = self.next()?;
            if matches!(event, Event::MappingEnd) {
                let (end, kind) = if is_flow {
                    (bracket_end(self.text, self.byte(span.start)), Kind::FlowMap(entries))
                } else {
                    (start, Kind::BlockMap(entries))
                };
                return Ok((Value::Object(map), Shape { span: start..end, kind }));
            }
            let key = self.key(event, span)?;
            if path > 0 {
                self.path.push('.');
            }
            self.path.push_str(&key);
            if map.contains_key(&key) {
                return Err(self.refuse(span.start, "each key once", "it again"));
            }
            let start = self.byte(span.start);
            let key_span = match self.text.as_bytes().get(start) {
                Some(b'"' | b'\'') => start..quoted_end(self.text, start),
                _ => start..self.byte(span.end),
            };
            let at = self.at(span.start);
            let (event, span) = self.next()?;
            let (value, shape) = self.node(event, span, depth + 1)?;
            self.path.truncate(path);
            map.insert(key.clone(), value);
            entries.push(Entry { key, key_span, at, value: shape });
        }
    }

    fn key(&self, event: Event<'a>, span: Span) -> Result<String, Problem> {
        let Event::Scalar(text, style, anchor, tag) = event else {
            return Err(self.refuse(span.start, "a key that is text", "something else"));
        };
        self.refuse_properties(span.start, anchor, tag.as_deref())?;
        if style != ScalarStyle::Plain {
            return Ok(text.into());
        }
        if text == "<<" {
            return Err(self.refuse(span.start, "a key", "a merge key"));
        }
        match plain(&text) {
            Value::String(key) => Ok(key),
            other => {
                Err(self.refuse(span.start, "a key that is text, in quotes if need be", described(&other)))
            }
        }
    }

    fn refuse_properties(&self, at: Marker, anchor: usize, tag: Option<&Tag>) -> Result<(), Problem> {
        match (anchor, tag) {
            (0, None) => Ok(()),
            (0, Some(_)) => Err(self.refuse(at, "a plain value", "a tag")),
            _ => Err(self.refuse(at, "a plain value", "an anchor")),
        }
    }

    fn syntax(&self, error: &ScanError) -> Problem {
        let at = *error.marker();
        let rest = &self.text[self.byte(at)..];
        if rest.starts_with('*') {
            return self.refuse(at, "a value", "an alias");
        }
        let from = self.text[..self.byte(at)].rfind('\n').map_or(0, |end| end + 1);
        let line = self.text[from..].lines().next().unwrap_or_default();
        let got = if line.is_empty() { "the end".into() } else { quoted(line) };
        self.refuse(at, format!("valid YAML ({})", error.info()), got)
    }

    fn refuse(&self, at: Marker, expected: impl Into<String>, got: impl Into<String>) -> Problem {
        let (line, column) = self.at(at);
        Problem::at(line, column, expected, got).of(&self.path)
    }

    fn at(&self, marker: Marker) -> (usize, usize) {
        (marker.line().max(1) - 1 + self.first_line, marker.col() + 1)
    }

    fn byte(&self, marker: Marker) -> usize {
        let at = if self.bytes_of_chars.is_empty() {
            marker.index()
        } else {
            self.bytes_of_chars.get(marker.index()).copied().unwrap_or(self.text.len())
        };
        at.min(self.text.len())
    }
}

/// After the bracket that closes a collection. The parser's place may be that of a last comma; between them are at most comments.
fn bracket_end(text: &str, mut at: usize) -> usize {
    let bytes = text.as_bytes();
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'}' | b']' => return at + 1,
            b'#' => at = memchr::memchr(b'\n', &bytes[at..]).map_or(bytes.len(), |end| at + end),
            _ => at += 1,
        }
    }
    at
}

/// Where the text that starts at a quote ends. The parser counts what follows on the line to it.
fn quoted_end(text: &str, start: usize) -> usize {
    let bytes = text.as_bytes();
    let Some(quote) = bytes.get(start) else { return start };
    let mut at = start + 1;
    while let Some(byte) = bytes.get(at) {
        let is_escape = match quote {
            b'"' => *byte == b'\\',
            _ => *byte == b'\'' && bytes.get(at + 1) == Some(&b'\''),
        };
        match byte {
            _ if is_escape => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    text.len()
}

/// A plain scalar by the core schema. Numbers that JSON cannot keep exactly, or not at all, stay text.
pub(super) fn plain(text: &str) -> Value {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => number(text).map_or_else(|| Value::String(text.into()), Value::Number),
    }
}

fn number(text: &str) -> Option<Number> {
    if let Some(digits) =
        text.strip_prefix("0o").filter(|digits| is_all(digits, |b| matches!(b, b'0'..=b'7')))
    {
        return u64::from_str_radix(digits, 8).ok().map(Number::from);
    }
    if let Some(digits) = text.strip_prefix("0x").filter(|digits| is_all(digits, |b| b.is_ascii_hexdigit())) {
        return u64::from_str_radix(digits, 16).ok().map(Number::from);
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if is_all(unsigned, |b| b.is_ascii_digit()) {
        return text
            .parse::<i64>()
            .map(Number::from)
            .ok()
            .or_else(|| text.parse::<u64>().map(Number::from).ok());
    }
    is_float(unsigned).then(|| text.parse().ok().and_then(Number::from_f64)).flatten()
}

fn is_all(text: &str, test: impl Fn(u8) -> bool) -> bool {
    !text.is_empty() && text.bytes().all(test)
}

/// `(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`
fn is_float(text: &str) -> bool {
    let (mantissa, exponent) = text.split_once(['e', 'E']).map_or((text, None), |(m, e)| (m, Some(e)));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let is_mantissa = !(whole.is_empty() && fraction.is_empty())
        && whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit());
    is_mantissa
        && exponent.is_none_or(|e| is_all(e.strip_prefix(['-', '+']).unwrap_or(e), |b| b.is_ascii_digit()))
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

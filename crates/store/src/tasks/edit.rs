//! Changes fields of a task file in place: only the bytes of what changes are replaced.
//!
//! The reader says where each key and value stands; from that come patches, each a range of bytes and its new text. What the patches
//! give is read again. If it is not exactly what was asked for, fields are changed one by one, at last by writing their entries anew;
//! if that is not right either, the edit is refused. Start at [`edit`].

use std::ops::Range;

use serde_json::{Map, Value};

use super::document::{Document, Parts, read_head};
use super::problem::Problem;
use super::render::{self, Line};
use super::yaml::{Entry, Kind, Shape};

/// The file with these top-level fields set to these values (`None`: removed) and this body; every other byte is as it was.
///
/// A field that already has an equal value is not touched. A mapping is changed key by key, so that comments inside it stay. New
/// fields follow the last one. The result reads as exactly what was asked for, or there is none.
pub fn edit(base: &str, want: &[(&str, Option<Value>)], body: &str) -> Result<String, Problem> {
    let parts = Parts::split(base)?;
    let before = Head::read(parts.head.to_owned())?;
    let mut expected = before.fields.clone();
    for (key, value) in want {
        set(&mut expected, key, value.as_ref());
    }
    let keys: Vec<&str> = want.iter().map(|(key, _)| *key).collect();
    let head = match before.changed(&expected, &keys, Way::InPlace, parts.line_end()) {
        Some(head) => head,
        None => one_by_one(before, want, parts.line_end())?,
    };
    let text = assemble(&parts, &head.text, body);
    let read = Document::parse(text.as_bytes())?;
    if *read.fields() != expected || read.body() != body {
        return Err(Problem::at(1, 1, "a file that takes the change", "one that reads differently after it"));
    }
    Ok(text)
}

fn one_by_one(mut head: Head, want: &[(&str, Option<Value>)], line_end: &str) -> Result<Head, Problem> {
    for (key, value) in want {
        let mut expected = head.fields.clone();
        set(&mut expected, key, value.as_ref());
        let changed = [Way::InPlace, Way::Whole, Way::WholeWithBlanks]
            .into_iter()
            .find_map(|way| head.changed(&expected, &[key], way, line_end));
        head = changed.ok_or_else(|| {
            let at =
                head.shape.entries().iter().find(|entry| entry.key == *key).map_or((1, 1), |entry| entry.at);
            Problem::at(at.0, at.1, "an entry that can be changed in its place", "one that cannot").of(key)
        })?;
    }
    Ok(head)
}

fn set(fields: &mut Map<String, Value>, key: &str, value: Option<&Value>) {
    match value {
        Some(value) => drop(fields.insert(key.to_owned(), value.clone())),
        None => drop(fields.remove(key)),
    }
}

fn assemble(parts: &Parts<'_>, head: &str, body: &str) -> String {
    let end = parts.line_end();
    let mut out = String::with_capacity(head.len() + body.len() + 16);
    out.push_str(parts.opening);
    out.push_str(head);
    out.push_str(parts.closing);
    if body != parts.body && !parts.closing.ends_with('\n') {
        out.push_str(end);
    }
    let needs_blank = parts.blank.is_empty() && body != parts.body;
    out.push_str(if needs_blank { end } else { parts.blank });
    out.push_str(body);
    out
}

/// How an entry is changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// Only the value's bytes, inside mappings only what differs.
    InPlace,
    /// The entry's lines are written anew.
    Whole,
    /// And blank lines after it go, which would become part of a text before it; new entries go to the very end.
    WholeWithBlanks,
}

/// The lines between the fences and what they say.
struct Head {
    text: String,
    fields: Map<String, Value>,
    shape: Shape,
}

impl Head {
    fn read(text: String) -> Result<Head, Problem> {
        let (fields, shape) = read_head(&text)?;
        Ok(Head { text, fields, shape })
    }

    /// The head with these fields, where this way leads to exactly them. New keys are added in the order of `keys`.
    fn changed(
        &self,
        expected: &Map<String, Value>,
        keys: &[&str],
        way: Way,
        line_end: &str,
    ) -> Option<Head> {
        let mut edit = Edit { text: &self.text, line_end, way, patches: Vec::new() };
        let limit = self.text.len();
        match &self.shape.kind {
            _ if self.fields == *expected => {}
            Kind::FlowMap(entries) => edit.flow_map(&self.shape, entries, &self.fields, expected, keys)?,
            _ => edit.block_map(&self.shape, limit, &self.fields, expected, keys)?,
        }
        let head = Head::read(edit.apply()?).ok()?;
        (head.fields == *expected).then_some(head)
    }
}

/// Patches in the making. Methods give nothing where a place is too odd to be edited there.
struct Edit<'a> {
    text: &'a str,
    line_end: &'a str,
    way: Way,
    patches: Vec<(Range<usize>, String)>,
}

/// The lines of an entry of a block mapping.
struct Lines {
    start: usize,
    /// After the last line that has some of its value on it, and what is written beside that.
    value_end: usize,
    /// After the comments that are indented more than the key.
    end: usize,
    /// Whether the key stands after a question mark.
    is_explicit: bool,
}

impl Edit<'_> {
    fn apply(mut self) -> Option<String> {
        // Stable: of two insertions at one place, the first made comes first.
        self.patches.sort_by_key(|(range, _)| range.start);
        let mut out = String::with_capacity(self.text.len() + 256);
        let mut at = 0;
        for (range, text) in self.patches {
            out.push_str(self.text.get(at..range.start)?);
            out.push_str(&text);
            at = range.end;
        }
        out.push_str(self.text.get(at..)?);
        Some(out)
    }

    /// Turns a block mapping, whose lines end before `limit`, from `old` into `new`.
    fn block_map(
        &mut self,
        shape: &Shape,
        limit: usize,
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        keys: &[&str],
    ) -> Option<()> {
        let entries = shape.entries();
        let indent = match entries {
            [] => 0,
            _ => self.indent_at(shape.span.start)?,
        };
        let mut insert_at = limit;
        for (at, entry) in entries.iter().enumerate() {
            let next = match entries.get(at + 1) {
                Some(next) => self.first_line(next, indent)?.0,
                None => limit,
            };
            let (was, is) = (old.get(&entry.key)?, new.get(&entry.key));
            let is_last = at + 1 == entries.len();
            if is == Some(was) && !is_last {
                continue;
            }
            let lines = self.lines(entry, indent, next)?;
            if is_last && self.way != Way::WholeWithBlanks {
                insert_at = lines.end;
            }
            match is {
                Some(value) if value == was => {}
                Some(value) => self.replace(entry, &lines, indent, was, value)?,
                None => self.remove(&lines, next),
            }
        }
        let mut added = String::new();
        for key in keys.iter().filter(|key| !old.contains_key(**key)) {
            if let Some(value) = new.get(*key) {
                let line = Line { indent, end: self.line_end };
                render::entry(&mut added, &line, &render::key_text(key), "", value);
            }
        }
        self.patch(insert_at..insert_at, added);
        Some(())
    }

    fn remove(&mut self, lines: &Lines, next: usize) {
        if self.way != Way::WholeWithBlanks {
            return self.patch(lines.start..lines.end, String::new());
        }
        let kept =
            self.text[lines.end..next].split_inclusive('\n').filter(|line| !line.trim().is_empty()).collect();
        self.patch(lines.start..next, kept);
    }

    fn replace(
        &mut self,
        entry: &Entry,
        lines: &Lines,
        indent: usize,
        was: &Value,
        is: &Value,
    ) -> Option<()> {
        let patches = self.patches.len();
        if self.way == Way::InPlace && !lines.is_explicit {
            if self.replace_in_place(entry, lines, was, is).is_some() {
                return Some(());
            }
            self.patches.truncate(patches);
        }
        let mut text = String::new();
        let line = Line { indent, end: self.line_end };
        let written = &self.text[entry.key_span.clone()];
        if lines.is_explicit || written.contains('\n') {
            render::entry(&mut text, &line, &render::key_text(&entry.key), "", is);
        } else {
            render::entry(&mut text, &line, written, self.comment_beside(entry), is);
        }
        let end = match entry.value.kind {
            Kind::Empty | Kind::Scalar | Kind::FlowList | Kind::FlowMap(_) => lines.value_end,
            Kind::BlockScalar | Kind::BlockList(_) | Kind::BlockMap(_) => lines.end,
        };
        self.patch(lines.start..end, text);
        Some(())
    }

    fn replace_in_place(&mut self, entry: &Entry, lines: &Lines, was: &Value, is: &Value) -> Option<()> {
        match (&entry.value.kind, was, is) {
            (Kind::BlockMap(_), Value::Object(old), Value::Object(new)) if !new.is_empty() => {
                let keys: Vec<&str> = new.keys().map(String::as_str).collect();
                self.block_map(&entry.value, lines.end, old, new, &keys)
            }
            (Kind::FlowMap(entries), Value::Object(old), Value::Object(new)) if !new.is_empty() => {
                let keys: Vec<&str> = new.keys().map(String::as_str).collect();
                self.flow_map(&entry.value, entries, old, new, &keys)
            }
            (Kind::Scalar | Kind::FlowList | Kind::FlowMap(_), _, is) if render::is_inline(is) => {
                let mut text = String::new();
                render::inline(&mut text, is);
                self.patch(entry.value.span.clone(), text);
                Some(())
            }
            (Kind::Empty, _, is) if render::is_inline(is) => {
                let mut text = String::from(" ");
                render::inline(&mut text, is);
                let at = self.after_colon(entry)?;
                self.patch(at..at, text);
                Some(())
            }
            _ => None,
        }
    }

    /// Turns a mapping between braces from `old` into `new`. What goes takes the comma after it along, or the one before.
    fn flow_map(
        &mut self,
        shape: &Shape,
        entries: &[Entry],
        old: &Map<String, Value>,
        new: &Map<String, Value>,
        keys: &[&str],
    ) -> Option<()> {
        for (at, entry) in entries.iter().enumerate() {
            let (was, is) = (old.get(&entry.key)?, new.get(&entry.key));
            let Some(is) = is else {
                let is_kept_later = entries[at + 1..].iter().any(|later| new.contains_key(&later.key));
                if is_kept_later {
                    self.patch(entry.key_span.start..entries[at + 1].key_span.start, String::new());
                }
                continue;
            };
            if is == was {
                continue;
            }
            let mut text = String::new();
            match (entry.value.kind.clone(), self.after_colon(entry)) {
                (Kind::Empty, Some(colon)) => {
                    text.push(' ');
                    render::flow(&mut text, is);
                    self.patch(colon..colon, text);
                }
                (Kind::Empty, None) => {
                    text.push_str(": ");
                    render::flow(&mut text, is);
                    self.patch(entry.key_span.end..entry.key_span.end, text);
                }
                _ => {
                    render::flow(&mut text, is);
                    self.patch(entry.value.span.clone(), text);
                }
            }
        }
        let kept = entries.iter().rposition(|entry| new.contains_key(&entry.key));
        let from = match kept {
            Some(at) => self.flow_end(&entries[at]),
            None => shape.span.start + 1,
        };
        let to = match entries.last() {
            Some(last) if kept.is_none_or(|at| at + 1 < entries.len()) => self.flow_end(last),
            _ => from,
        };
        let mut added = String::new();
        for key in keys.iter().filter(|key| !old.contains_key(**key)) {
            if let Some(value) = new.get(*key) {
                added.push_str(if kept.is_none() && added.is_empty() { "" } else { ", " });
                render::flow_entry(&mut added, key, value);
            }
        }
        // Where nothing is left, neither is a comma.
        let to = if kept.is_none() && added.is_empty() { shape.span.end - 1 } else { to };
        self.patch(from..to, added);
        Some(())
    }

    /// Where an entry between braces ends, with its colon where it has no value.
    fn flow_end(&self, entry: &Entry) -> usize {
        match entry.value.kind {
            Kind::Empty => self.after_colon(entry).unwrap_or(entry.key_span.end),
            _ => entry.content_end(),
        }
    }

    fn patch(&mut self, range: Range<usize>, text: String) {
        if !range.is_empty() || !text.is_empty() {
            self.patches.push((range, text));
        }
    }

    /// How far the line that a byte is on is indented, where there is only indentation before it.
    fn indent_at(&self, at: usize) -> Option<usize> {
        let start = self.line_start(at);
        self.text[start..at].bytes().all(|b| b == b' ').then_some(at - start)
    }

    /// Where an entry's first line starts, and whether its key stands after a question mark.
    fn first_line(&self, entry: &Entry, indent: usize) -> Option<(usize, bool)> {
        let mut start = self.line_start(entry.key_span.start);
        if self.indent_at(entry.key_span.start) == Some(indent) {
            return Some((start, false));
        }
        loop {
            let line = &self.text[start..];
            if line.bytes().take_while(|b| *b == b' ').count() == indent && line[indent..].starts_with('?') {
                return Some((start, true));
            }
            start = self.line_start(start.checked_sub(1)?);
        }
    }

    fn lines(&self, entry: &Entry, indent: usize, next: usize) -> Option<Lines> {
        let (start, is_explicit) = self.first_line(entry, indent)?;
        let value_end = self.line_end_after(entry.content_end().min(next.saturating_sub(1))).min(next);
        let (mut end, mut at) = (value_end, value_end);
        for line in self.text.get(value_end..next)?.split_inclusive('\n') {
            at += line.len();
            let text = line.trim_start_matches(' ');
            if text.starts_with('#') && line.len() - text.len() <= indent {
                break;
            }
            if !text.trim().is_empty() {
                end = at;
            }
        }
        Some(Lines { start, value_end, end, is_explicit })
    }

    fn line_start(&self, at: usize) -> usize {
        self.text[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    fn line_end_after(&self, at: usize) -> usize {
        self.text[at..].find('\n').map_or(self.text.len(), |end| at + end + 1)
    }

    /// The byte after the colon that follows a key, where it follows on the same line.
    fn after_colon(&self, entry: &Entry) -> Option<usize> {
        let rest = &self.text[entry.key_span.end..];
        let space = rest.len() - rest.trim_start_matches([' ', '\t']).len();
        rest[space..].starts_with(':').then_some(entry.key_span.end + space + 1)
    }

    /// The comment on the line of an entry's key or at the end of its value, or nothing.
    fn comment_beside(&self, entry: &Entry) -> &str {
        let from = match entry.value.kind {
            Kind::Scalar | Kind::FlowList | Kind::FlowMap(_) => Some(entry.value.span.end),
            Kind::Empty | Kind::BlockScalar | Kind::BlockList(_) | Kind::BlockMap(_) => {
                self.after_colon(entry)
            }
        };
        let Some(from) = from else { return "" };
        let line = self.text[from..self.line_end_after(from)].trim();
        line.find('#').map_or("", |at| &line[at..])
    }
}

//! Events as people and programs hand them in: one object, an array (one decision), or one object per line (each a decision of its own).
//!
//! [`Input`] finds out which of the three it is and reads it within bounds; [`draft`] checks the members of one event. [`file`] reads the
//! other files that a person names.

mod draft;
pub(crate) mod file;

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use baton_core::limits::{BODY_BYTES_MAX, INPUT_BYTES_MAX};
use baton_ledger::canonical;
use baton_ledger::verify::is_cut_short;
use serde_json::Value;

pub(crate) use draft::{Citation, Draft, DraftSig};
use file::Named;

use crate::console::{Stdin, is_ready};
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::limits::INPUT_LINE_BYTES_MAX;
use crate::serve::call::{Feeding, Rest};

/// The events of one decision.
#[derive(Debug, Clone)]
pub(crate) struct Decision {
    pub(crate) events: Vec<Draft>,
}

/// A stream of decisions.
pub(crate) struct Input {
    source: Source,
    buffer: Vec<u8>,
    start: usize,
    is_at_end: bool,
    line: u64,
    form: Form,
    /// The text of the decision that was read last, and how many line feeds came before it.
    last: (u64, Vec<u8>),
}

/// Where the bytes come from, as far as it matters whether reading waits for somebody.
enum Source {
    File(Named, File),
    Stdin(Stdin),
    #[cfg(test)]
    Bytes(io::Cursor<Vec<u8>>),
}

impl Source {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Source::File(_, file) => file.read(buffer),
            Source::Stdin(stdin) => stdin.read(buffer),
            #[cfg(test)]
            Source::Bytes(bytes) => bytes.read(buffer),
        }
    }

    fn fail(&self, error: &io::Error) -> CliError {
        match self {
            Source::File(named, _) => named.error(error),
            _ => CliError::new(Code::FileUnreadable, "cannot read standard input").cause(error.to_string()),
        }
    }

    /// Whether something can be read at once.
    fn is_ready(&self) -> bool {
        match self {
            Source::File(_, file) => is_ready(file),
            Source::Stdin(stdin) => stdin.is_ready(),
            #[cfg(test)]
            Source::Bytes(_) => true,
        }
    }
}

/// A whole file that a person named, or standard input for `-`, up to a bound: more is cut off, and so is seen to be too much.
pub(crate) fn read_bytes(ctx: &Context, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Stop> {
    let mut bytes = Vec::new();
    if path == Path::new("-") || ctx.is_fed() {
        ctx.stdin()?.take(bytes_max).read_to_end(&mut bytes).map_err(|error| {
            CliError::new(Code::FileUnreadable, "cannot read standard input").cause(error.to_string())
        })?;
        ctx.has_taken(&bytes);
    } else {
        let named = ctx.name(path);
        let opened = file::open(&named.real).and_then(|file| file.take(bytes_max).read_to_end(&mut bytes));
        opened.map_err(|error| named.error(&error))?;
    }
    Ok(bytes)
}

/// A text of a task.
pub(crate) fn read_text(ctx: &Context, path: &Path) -> Result<String, Stop> {
    let bytes = read_bytes(ctx, path, BODY_BYTES_MAX as u64 + 1)?;
    if bytes.len() > BODY_BYTES_MAX {
        let what = format!("a task's text has at most {BODY_BYTES_MAX} bytes");
        let error = CliError::new(Code::InputTooLarge, what);
        return Err(error.cause("put the rest into a file in its inputs/").into());
    }
    String::from_utf8(bytes).map_err(|error| {
        CliError::new(Code::InputForm, "the text is not UTF-8").cause(error.to_string()).into()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Unknown,
    Lines,
    Done,
}

const READ_BYTES: usize = 1 << 16;

impl Input {
    /// Opens a file, or standard input for `-`.
    pub(crate) fn open(ctx: &Context, file: &Path) -> Result<Input, Stop> {
        let source = if file == Path::new("-") || ctx.is_fed() {
            Source::Stdin(ctx.stdin()?)
        } else {
            let named = ctx.name(file);
            let file = File::open(&named.real).map_err(|error| named.error(&error))?;
            Source::File(named, file)
        };
        Ok(Input::new(source))
    }

    fn new(source: Source) -> Input {
        let (buffer, form) = (Vec::new(), Form::Unknown);
        Input { source, buffer, start: 0, is_at_end: false, line: 0, form, last: (0, Vec::new()) }
    }

    /// The decision that was read last and everything after it, for another process to go on with. Line feeds stand for what came before, so
    /// that lines keep their numbers.
    pub(crate) fn pass_on(&mut self) -> Result<Feeding, CliError> {
        let rest = match &self.source {
            Source::Stdin(stdin) => Rest::Stdin(stdin.clone()),
            Source::File(named, file) => Rest::File(file.try_clone().map_err(|error| named.error(&error))?),
            #[cfg(test)]
            Source::Bytes(_) => return Ok(Feeding::Nothing),
        };
        let (before, text) = &self.last;
        let before = vec![b'\n'; usize::try_from(*before).unwrap_or(usize::MAX).min(INPUT_LINE_BYTES_MAX)];
        Ok(Feeding::Rest([&before, &text[..], b"\n", &self.buffer[self.start..]].concat(), rest))
    }

    /// Whether asking for the next decision can make us wait for whoever writes the input.
    pub(crate) fn may_wait(&self) -> bool {
        let has_line = self.buffer[self.start..].contains(&b'\n');
        !(self.is_at_end || self.form == Form::Done || has_line || self.source.is_ready())
    }

    /// The line that was read last, from 1.
    pub(crate) fn line(&self) -> u64 {
        self.line
    }

    /// The next decision, or `None` at the end.
    pub(crate) fn next(&mut self) -> Result<Option<Decision>, CliError> {
        loop {
            if self.form == Form::Done {
                return Ok(None);
            }
            if self.form == Form::Unknown && self.peek()? == Some(b'[') {
                self.form = Form::Done;
                let whole = self.read_rest(Vec::new())?;
                return self.decide_on(self.line, whole, false).map(Some);
            }
            let Some(line) = self.read_line()? else { return Ok(None) };
            let text = trim(&line);
            if text.is_empty() {
                continue;
            }
            if self.form == Form::Lines {
                return self.decide_on(self.line - 1, line, true).map(Some);
            }
            // An object that is whole in the first line may have others below it; one that is not ends where the input ends.
            if !is_cut_short(text) {
                self.form = Form::Lines;
                return self.decide_on(self.line - 1, line, true).map(Some);
            }
            self.form = Form::Done;
            let whole = self.read_rest([line, vec![b'\n']].concat())?;
            return self.decide_on(self.line - 1, whole, false).map(Some);
        }
    }

    fn decide_on(&mut self, before: u64, text: Vec<u8>, is_line: bool) -> Result<Decision, CliError> {
        let decision = self.decide(trim(&text), is_line);
        self.last = (before, text);
        decision
    }

    fn decide(&self, text: &[u8], is_line: bool) -> Result<Decision, CliError> {
        let locate = |error: CliError| {
            if is_line { error.cause(format!("in line {} of the input", self.line)) } else { error }
        };
        let value = canonical::parse(text).map_err(|error| {
            locate(
                CliError::new(Code::InputForm, "the input is not JSON that can be recorded")
                    .cause(error.to_string()),
            )
        })?;
        let events = match value {
            Value::Array(items) if !is_line => {
                if items.is_empty() {
                    return Err(CliError::new(Code::InputForm, "the array holds no event"));
                }
                let one = |(i, item): (usize, Value)| {
                    Draft::read(item).map_err(|error| error.cause(format!("in event {} of the array", i + 1)))
                };
                items.into_iter().enumerate().map(one).collect::<Result<_, _>>()?
            }
            value => vec![Draft::read(value).map_err(locate)?],
        };
        Ok(Decision { events })
    }

    /// The first byte that is not white space, without taking it.
    fn peek(&mut self) -> Result<Option<u8>, CliError> {
        loop {
            match self.buffer.get(self.start) {
                Some(b'\n') => self.line += 1,
                Some(b) if b.is_ascii_whitespace() => {}
                Some(b) => return Ok(Some(*b)),
                None if self.is_at_end => return Ok(None),
                None => {
                    (self.buffer, self.start) = (Vec::new(), 0);
                    self.fill()?;
                    continue;
                }
            }
            self.start += 1;
        }
    }

    /// The next line without its line feed. Its length is bounded before it is kept.
    fn read_line(&mut self) -> Result<Option<Vec<u8>>, CliError> {
        let mut searched = self.start;
        loop {
            if let Some(at) = self.buffer[searched..].iter().position(|b| *b == b'\n') {
                let line = self.buffer[self.start..searched + at].to_vec();
                self.start = searched + at + 1;
                self.line += 1;
                return Ok(Some(line));
            }
            if self.buffer.len() - self.start > INPUT_LINE_BYTES_MAX {
                let what = format!("line {} of the input is too long", self.line + 1);
                return Err(too_large(what, INPUT_LINE_BYTES_MAX as u64));
            }
            if self.is_at_end {
                let rest = self.buffer.split_off(self.start);
                (self.buffer, self.start) = (Vec::new(), 0);
                self.line += u64::from(!rest.is_empty());
                return Ok(if rest.is_empty() { None } else { Some(rest) });
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            self.fill()?;
        }
    }

    /// Everything to the end, after a first line.
    fn read_rest(&mut self, mut whole: Vec<u8>) -> Result<Vec<u8>, CliError> {
        loop {
            whole.extend_from_slice(&self.buffer[self.start..]);
            (self.buffer, self.start) = (Vec::new(), 0);
            if whole.len() as u64 > INPUT_BYTES_MAX {
                return Err(too_large("the input is too long".to_owned(), INPUT_BYTES_MAX));
            }
            if self.is_at_end {
                return Ok(whole);
            }
            self.fill()?;
        }
    }

    fn fill(&mut self) -> Result<(), CliError> {
        let filled = self.buffer.len();
        self.buffer.resize(filled + READ_BYTES, 0);
        let count = loop {
            match self.source.read(&mut self.buffer[filled..]) {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.source.fail(&error)),
            }
        };
        self.buffer.truncate(filled + count);
        self.is_at_end = count == 0;
        Ok(())
    }
}

fn trim(text: &[u8]) -> &[u8] {
    text.trim_ascii()
}

fn too_large(what: String, bytes_max: u64) -> CliError {
    CliError::new(Code::InputTooLarge, what)
        .cause(format!(
            "at most {bytes_max} bytes are read; what is larger is stored as an artifact and cited"
        ))
        .hint("baton explain U003")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(text: &[u8]) -> Input {
        Input::new(Source::Bytes(io::Cursor::new(text.to_vec())))
    }

    fn sizes(text: &str) -> Result<Vec<usize>, CliError> {
        let mut input = input(text.as_bytes());
        let mut out = Vec::new();
        while let Some(decision) = input.next()? {
            out.push(decision.events.len());
        }
        Ok(out)
    }

    #[test]
    fn one_object_an_array_and_lines_are_told_apart() {
        let check = |text: &str, expected: &[usize]| assert_eq!(sizes(text).unwrap(), expected, "{text}");
        check("", &[]);
        check("\n \n", &[]);
        check(r#"{"type":"note"}"#, &[1]);
        check("\n\n{\"type\":\"note\"}\n", &[1]);
        check("{\n  \"type\": \"note\",\n  \"payload\": {\"a\": 1}\n}\n", &[1]);
        check(r#"[{"type":"a"},{"type":"b"}]"#, &[2]);
        check("[\n{\"type\":\"a\"},\n{\"type\":\"b\"}\n]\n", &[2]);
        check("{\"type\":\"a\"}\n\n{\"type\":\"b\"}\r\n{\"type\":\"c\"}", &[1, 1, 1]);
    }

    #[test]
    fn what_is_none_of_the_three_is_refused_with_its_line() {
        let check = |text: &str, cause: &str| {
            let error = sizes(text).unwrap_err();
            assert!(error.causes.iter().any(|c| c.contains(cause)), "{text}: {error:?}");
        };
        check("hello", "in line 1");
        check("{\"type\":\"a\"}\n{oops}\n", "in line 2");
        check("{\"type\":\"a\"}\n[1]\n", "in line 2");
        check("{\"type\":\"a\",\"type\":\"b\"}", "occurs twice");
        check("[{\"type\":\"a\"},3]", "in event 2");
        assert!(sizes("[]").is_err());
        assert!(sizes("{\"type\": \"a\"").is_err());
        assert_eq!(
            input(&[b'x'; INPUT_LINE_BYTES_MAX + READ_BYTES]).next().unwrap_err().code,
            Code::InputTooLarge
        );
    }
}

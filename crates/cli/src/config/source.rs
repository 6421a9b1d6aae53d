//! A file of configuration: read within bounds, and errors that show the place in it.

use std::ops::Range;
use std::path::{Path, PathBuf};

use baton_core::limits::SMALL_FILE_BYTES_MAX;

use crate::error::{CliError, Code};
use crate::input::file::{open_regular, read_bounded};
use crate::ui::shell;

/// Widest part of a line that an error shows, in characters.
const EXCERPT_CHARS: usize = 100;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn new(path: impl Into<PathBuf>, text: &str) -> Self {
        // A mark of the byte order is no part of the first line.
        Source { path: path.into(), text: text.strip_prefix('\u{feff}').unwrap_or(text).to_owned() }
    }

    /// The file, if there is one.
    pub(super) fn read(path: &Path) -> Result<Option<Source>, CliError> {
        let fail = |why: String| {
            let what = format!("cannot read the configuration {}", path.display());
            CliError::new(Code::Config, what).cause(why).hint(format!("ls -l {}", shell::path(path)))
        };
        // Nobody named this file: a pipe in its place would make every command wait for whoever put it there.
        match open_regular(path).and_then(|file| read_bounded(file, SMALL_FILE_BYTES_MAX)) {
            Ok(Some(bytes)) => match String::from_utf8(bytes) {
                Ok(text) => Ok(Some(Source::new(path, &text))),
                Err(error) => {
                    let good = error.utf8_error().valid_up_to();
                    let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
                    Err(fail(format!("it is not text: line {line} is not UTF-8")))
                }
            },
            Ok(None) => Err(fail(format!("it has more than {SMALL_FILE_BYTES_MAX} bytes"))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(fail(error.to_string())),
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// A path that stands in this file: relative ones start where the file is.
    pub(super) fn resolve(&self, path: &str) -> PathBuf {
        self.path.parent().unwrap_or(Path::new("")).join(path)
    }

    /// What stands at a place, cut short.
    pub(super) fn part(&self, span: Range<usize>) -> String {
        let part = self.text.get(span).unwrap_or("another value");
        let line = part.lines().next().unwrap_or_default();
        match line.chars().count() <= 60 && line.len() == part.len() {
            true => part.to_owned(),
            false => line.chars().take(59).chain(['…']).collect(),
        }
    }

    /// `path:line`.
    pub(super) fn line(&self, span: &Range<usize>) -> String {
        format!("{}:{}", self.path.display(), self.locate(span.start).0)
    }

    fn locate(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset.min(self.text.len())).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
        (line, column)
    }

    /// The error with its place alone, for lines that nobody should read over a shoulder.
    pub(super) fn fail_unshown(&self, what: impl Into<String>, span: &Range<usize>) -> CliError {
        let (line, column) = self.locate(span.start);
        CliError::new(Code::Config, what)
            .cause(format!("{}:{line}:{column}", self.path.display()))
            .hint("baton explain U001")
    }

    /// The error with an excerpt of the file and a caret under the place.
    pub(super) fn fail(&self, what: impl Into<String>, span: &Range<usize>) -> CliError {
        let (number, column) = self.locate(span.start);
        let line = self.text.lines().nth(number - 1).unwrap_or_default();
        let marked = self.text.get(span.clone()).unwrap_or_default().lines().next().unwrap_or_default();
        // Of a long line the part around the place is shown.
        let skipped = if column > EXCERPT_CHARS - 20 { column - 21 } else { 0 };
        let excerpt: String =
            line.chars().skip(skipped).take(EXCERPT_CHARS).map(|c| if c == '\t' { ' ' } else { c }).collect();
        let indent = column - 1 - skipped;
        let room = excerpt.chars().count().saturating_sub(indent).max(1);
        let carets = "^".repeat(marked.chars().count().clamp(1, room).min(60));
        let gutter = number.to_string();
        let blank = " ".repeat(gutter.len());
        let mut error = self.fail_unshown(what, span);
        error.causes.push(format!("{gutter} | {excerpt}"));
        error.causes.push(format!("{blank} | {}{carets}", " ".repeat(indent)));
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, needle: &str, causes: [&str; 3]) {
        let source = Source::new("x.toml", text);
        let start = source.text().find(needle).unwrap();
        let error = source.fail("wrong", &(start..start + needle.len()));
        assert_eq!(error.causes, causes, "{text:?}");
    }

    #[test]
    fn the_caret_stands_under_the_place() {
        check("a = 1\nbc = 2\n", "bc", ["x.toml:2:1", "2 | bc = 2", "  | ^^"]);
        check("a = 1\r\nbc = 2\r\n", "2", ["x.toml:2:6", "2 | bc = 2", "  |      ^"]);
        check("\u{feff}bc = 2", "bc", ["x.toml:1:1", "1 | bc = 2", "  | ^^"]);
        check("\té = \"ü\" # x", "\"ü\"", ["x.toml:1:6", "1 |  é = \"ü\" # x", "  |      ^^^"]);
        check("a = [1,\n2]", "[1,\n2]", ["x.toml:1:5", "1 | a = [1,", "  |     ^^^"]);
        let long = format!("{} = 7", "k".repeat(500));
        let shown = format!("1 | {} = 7", "k".repeat(17));
        check(&long, "7", ["x.toml:1:504", &shown, &format!("  | {}^", " ".repeat(20))]);
    }

    #[test]
    fn a_place_at_the_end_or_nowhere_is_shown_as_well_as_it_can_be() {
        let source = Source::new("x.toml", "a");
        assert_eq!(source.fail("w", &(1..1)).causes, ["x.toml:1:2", "1 | a", "  |  ^"]);
        assert_eq!(source.fail("w", &(90..95)).causes[0], "x.toml:1:2");
        assert_eq!(Source::new("x.toml", "").fail("w", &(0..0)).causes, ["x.toml:1:1", "1 | ", "  | ^"]);
    }
}

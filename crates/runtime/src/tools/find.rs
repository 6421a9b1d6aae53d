//! Tools that look for something: text in files, files by name.

use std::path::Path;

use regex_lite::{Regex, RegexBuilder};

use super::ToolRunner;
use super::args::Args;
use super::files::{Given, at};
use super::root::{Kind, Refused};
use super::walk::{Walk, show};
use crate::limits::{
    TOOL_ENTRIES_MAX, TOOL_GREP_FILE_BYTES_MAX, TOOL_LINE_CHARS_MAX, TOOL_PATTERN_BYTES_MAX,
};

impl ToolRunner {
    pub(super) fn grep(&self, mut args: Args<'_>, walk: &mut Walk<'_>) -> Given {
        let pattern = args.expect_text("pattern")?;
        let path = args.path("path")?.unwrap_or(".");
        let glob = args.text("glob")?.map(|glob| compile_glob("glob", glob)).transpose()?;
        let is_blind = args.flag("ignore_case")?;
        args.done()?;
        let pattern = compile("pattern", pattern, is_blind)?;
        let mut lines = Vec::new();
        let mut look = |shown: &str, bytes: &[u8]| search_in(shown, bytes, &pattern, &mut lines);
        // One file is looked at as well as a directory.
        match self.root.read(Path::new(path), TOOL_GREP_FILE_BYTES_MAX) {
            Ok(bytes) => {
                look(path, &bytes);
                return Ok(walk.close(lines));
            }
            Err(Refused::NotAFile(_, "a directory")) => {}
            Err(refused) => return Err(at("path")(refused)),
        }
        walk.go(&self.root, Path::new(path), true, &mut |seen| {
            let shown = show(seen.path);
            let is_wanted = glob.as_ref().is_none_or(|glob| glob.is_match(&shown));
            if seen.kind == Kind::File
                && is_wanted
                && let Some(bytes) = self.root.read_in(seen.dir, seen.name, TOOL_GREP_FILE_BYTES_MAX)
            {
                return look(&shown, &bytes);
            }
            true
        })
        .map_err(at("path"))?;
        Ok(walk.close(lines))
    }

    pub(super) fn search(&self, mut args: Args<'_>, walk: &mut Walk<'_>) -> Given {
        let glob = compile_glob("glob", args.expect_text("glob")?)?;
        let path = args.path("path")?.unwrap_or(".");
        args.done()?;
        let mut lines = Vec::new();
        walk.go(&self.root, Path::new(path), true, &mut |seen| {
            let shown = show(seen.path);
            if seen.kind != Kind::Dir && glob.is_match(&shown) {
                lines.push(shown);
            }
            lines.len() < TOOL_ENTRIES_MAX
        })
        .map_err(at("path"))?;
        Ok(walk.close(lines))
    }
}

/// Adds the lines of a file that match; false once there are enough. What has a NUL near its beginning is no text.
fn search_in(shown: &str, bytes: &[u8], pattern: &Regex, lines: &mut Vec<String>) -> bool {
    if bytes[..bytes.len().min(8192)].contains(&0) {
        return true;
    }
    let text = String::from_utf8_lossy(bytes);
    for (at, line) in text.lines().enumerate() {
        if pattern.is_match(line) {
            let end = line.char_indices().nth(TOOL_LINE_CHARS_MAX);
            let line = end.map_or(line.to_owned(), |(end, _)| format!("{}…", &line[..end]));
            lines.push(format!("{shown}:{}:{line}", at + 1));
            if lines.len() >= TOOL_ENTRIES_MAX {
                return false;
            }
        }
    }
    true
}

fn compile(field: &str, pattern: &str, is_blind: bool) -> Result<Regex, String> {
    if pattern.len() > TOOL_PATTERN_BYTES_MAX {
        let bytes = pattern.len();
        return Err(format!("{field}: expected at most {TOOL_PATTERN_BYTES_MAX} bytes, got {bytes}"));
    }
    let built = RegexBuilder::new(pattern).case_insensitive(is_blind).build();
    built.map_err(|error| format!("{field}: expected a regular expression, got {pattern:?} ({error})"))
}

/// A glob as a regular expression: `*` and `?` within a name, `**` across directories, `{a,b}`, `[a-z]`. One without a slash is about names alone.
fn compile_glob(field: &str, glob: &str) -> Result<Regex, String> {
    let mut out = String::from(if glob.contains('/') { "^" } else { "^(?:.*/)?" });
    let mut rest = glob.strip_prefix("./").unwrap_or(glob).chars().peekable();
    let (mut braces, mut is_class) = (0, false);
    while let Some(c) = rest.next() {
        match c {
            ']' if is_class => {
                is_class = false;
                out.push(']');
            }
            c if is_class => {
                out.push_str(&if c == '\\' || c == '[' { format!("\\{c}") } else { c.to_string() })
            }
            '*' if rest.next_if_eq(&'*').is_some() => {
                out.push_str(if rest.next_if_eq(&'/').is_some() { "(?:.*/)?" } else { ".*" });
            }
            '*' => out.push_str("[^/]*"),
            '?' => out.push_str("[^/]"),
            '[' => {
                is_class = true;
                out.push('[');
                if rest.next_if(|next| matches!(next, '!' | '^')).is_some() {
                    out.push('^');
                }
            }
            '{' => {
                braces += 1;
                out.push_str("(?:");
            }
            '}' if braces > 0 => {
                braces -= 1;
                out.push(')');
            }
            ',' if braces > 0 => out.push('|'),
            c => out.push_str(&regex_lite::escape(&c.to_string())),
        }
    }
    out.push('$');
    compile(field, &out, false).map_err(|_| format!("{field}: expected a glob, got {glob:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_mean_what_shells_mean() {
        for (glob, yes, no) in [
            ("*.rs", "src/a.rs", "src/a.rsx"),
            ("src/*.rs", "src/a.rs", "src/b/a.rs"),
            ("src/**/*.rs", "src/b/c/a.rs", "lib/a.rs"),
            ("src/**/*.rs", "src/a.rs", "src/a.c"),
            ("**/a", "x/y/a", "x/ab"),
            ("a?.{txt,md}", "ab.md", "a.md"),
            ("[!a]b", "cb", "ab"),
            ("./a.b", "a.b", "axb"),
        ] {
            let pattern = compile_glob("glob", glob).unwrap();
            assert!(pattern.is_match(yes) && !pattern.is_match(no), "{glob}: {pattern}");
        }
        assert!(compile_glob("glob", "[").unwrap_err().starts_with("glob: expected a glob"));
    }
}

//! Tools for single files and directories.

use std::path::{Path, PathBuf};

use super::ToolRunner;
use super::args::Args;
use super::root::{Kind, Refused};
use super::walk::{Walk, show};
use crate::limits::{TOOL_ENTRIES_MAX, TOOL_FILE_BYTES_MAX};

/// What a tool gives: its output, or bad news that is for the model.
pub(super) type Given = Result<String, String>;

/// What is refused is told with the field that it came from.
pub(super) fn at(field: &str) -> impl Fn(Refused) -> String {
    let field = field.to_owned();
    move |refused| format!("{field}: {refused}")
}

impl ToolRunner {
    pub(super) fn read_file(&self, mut args: Args<'_>) -> Given {
        let path = args.expect_path("path")?;
        let line = args.number("line", 1, u64::from(u32::MAX))?;
        let limit = args.number("limit", 1, u64::from(u32::MAX))?;
        args.done()?;
        self.read_lines(Path::new(path), line, limit).map_err(at("path"))
    }

    /// The text of a file, or some lines of it. What is no text is shown as well as it can be.
    pub fn read_lines(&self, path: &Path, line: Option<u64>, limit: Option<u64>) -> Result<String, Refused> {
        let bytes = self.root.read(path, TOOL_FILE_BYTES_MAX)?;
        let text = String::from_utf8_lossy(&bytes);
        if line.is_none() && limit.is_none() {
            return Ok(text.into_owned());
        }
        let skip = usize::try_from(line.unwrap_or(1).saturating_sub(1)).unwrap_or(usize::MAX);
        let count = limit.map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX));
        Ok(text.split_inclusive('\n').skip(skip).take(count).collect())
    }

    pub(super) fn list_files(&self, mut args: Args<'_>, walk: &mut Walk<'_>) -> Given {
        let path = args.path("path")?.unwrap_or(".");
        let is_recursive = args.flag("recursive")?;
        args.done()?;
        let mut lines = Vec::new();
        walk.go(&self.root, Path::new(path), is_recursive, &mut |seen| {
            let mark = match seen.kind {
                Kind::File => "",
                Kind::Dir => "/",
                Kind::Link => "@",
                Kind::Other => "?",
            };
            lines.push(format!("{}{mark}", show(seen.path)));
            lines.len() < TOOL_ENTRIES_MAX
        })
        .map_err(at("path"))?;
        Ok(walk.close(lines))
    }

    pub(super) fn write_file(&self, mut args: Args<'_>) -> Given {
        let path = args.expect_path("path")?;
        let content = args.expect_text("content")?;
        args.done()?;
        self.write_text(Path::new(path), content).map_err(at("path"))?;
        Ok(format!("wrote {} bytes to {path}", content.len()))
    }

    /// Writes a file as a whole.
    pub fn write_text(&self, path: &Path, content: &str) -> Result<(), Refused> {
        self.root.write(path, content.as_bytes())
    }

    pub(super) fn edit_file(&self, mut args: Args<'_>) -> Given {
        let path = args.expect_path("path")?;
        let (old, new) = (args.expect_text("old")?, args.expect_text("new")?);
        args.done()?;
        if old.is_empty() {
            return Err("old: expected text that is in the file, got nothing".to_owned());
        }
        let text = self.text_of(Path::new(path)).map_err(at("path"))?;
        match text.matches(old).count() {
            0 => {
                Err(format!("old: expected text that is in {path} exactly once, got text that is not in it"))
            }
            1 => {
                self.write_text(Path::new(path), &text.replacen(old, new, 1)).map_err(at("path"))?;
                let line = text.find(old).map_or(1, |start| text[..start].matches('\n').count() + 1);
                Ok(format!("replaced one place in {path}, at line {line}"))
            }
            count => Err(format!(
                "old: expected text that is in {path} exactly once, got text that is there {count} times; give more of what is around it"
            )),
        }
    }

    /// A file that is to be changed: it must be text, or the change would change what it does not mean to.
    pub(super) fn text_of(&self, path: &Path) -> Result<String, Refused> {
        let bytes = self.root.read(path, TOOL_FILE_BYTES_MAX)?;
        String::from_utf8(bytes).map_err(|_| Refused::NotAFile(PathBuf::from(path), "not text in UTF-8"))
    }
}

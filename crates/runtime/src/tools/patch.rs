//! A unified diff, whole or not at all: everything is worked out before the first file is written, and what was written is put back should a later write fail.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use diffy::patch_set::{FileOperation, ParseOptions, PatchKind, PatchSet};

use super::ToolRunner;
use super::args::Args;
use super::files::Given;
use super::root::Refused;
use crate::limits::TOOL_PATCH_FILES_MAX;

/// What a file is to become: a text, or nothing.
type Planned = BTreeMap<PathBuf, (Option<String>, Option<String>)>;

impl ToolRunner {
    pub(super) fn apply_patch(&self, mut args: Args<'_>) -> Given {
        let patch = args.expect_text("patch")?;
        args.done()?;
        let planned = self.plan(patch).map_err(|why| format!("patch: {why}"))?;
        if planned.is_empty() {
            return Err("patch: expected a unified diff, got no file in it".to_owned());
        }
        self.carry_out(&planned).map_err(|why| format!("patch: {why}; nothing was changed"))?;
        let lines = planned.iter().map(|(path, (before, after))| {
            let word = match (before, after) {
                (None, _) => "created",
                (_, None) => "deleted",
                _ => "changed",
            };
            format!("{word} {}\n", path.display())
        });
        Ok(lines.collect())
    }

    /// Works out what each file becomes. A file may be in the patch more than once.
    fn plan(&self, patch: &str) -> Result<Planned, String> {
        let is_git = patch.lines().any(|line| line.starts_with("diff --git "));
        let options = if is_git { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
        let mut planned = Planned::new();
        for file in PatchSet::parse(patch, options) {
            let file = file.map_err(|error| format!("expected a unified diff: {error}"))?;
            let operation = file.operation();
            let operation =
                if has_prefixes(operation) { operation.strip_prefix(1) } else { operation.clone() };
            let (from, to) = match &operation {
                FileOperation::Delete(path) => (Some(path), None),
                FileOperation::Create(path) => (None, Some(path)),
                FileOperation::Modify { original, modified } => (Some(original), Some(modified)),
                FileOperation::Rename { from, to } | FileOperation::Copy { from, to } => {
                    (Some(from), Some(to))
                }
            };
            let relative =
                |path: &str| self.root.relative(Path::new(path)).map_err(|refused| refused.to_string());
            let from = from.map(|path| relative(path)).transpose()?;
            let to = to.map(|path| relative(path)).transpose()?;
            let PatchKind::Text(hunks) = file.patch() else {
                return Err("expected changes of text, got those of a binary file".to_owned());
            };
            let before = match &from {
                Some(path) => {
                    self.current(&planned, path)?.ok_or_else(|| Refused::Missing(path.clone()).to_string())?
                }
                None => String::new(),
            };
            let after = diffy::apply(&before, hunks).map_err(|error| {
                let name = from.as_ref().or(to.as_ref()).map(|path| path.display().to_string());
                format!("{}: {error}", name.unwrap_or_default())
            })?;
            let is_kept = matches!(operation, FileOperation::Copy { .. });
            if let Some(from) = from.as_ref().filter(|from| !is_kept && Some(*from) != to.as_ref()) {
                self.put(&mut planned, from, None)?;
            }
            if let Some(to) = &to {
                if from.as_ref() != Some(to) && self.current(&planned, to)?.is_some() {
                    return Err(format!("{} exists already", to.display()));
                }
                self.put(&mut planned, to, Some(after))?;
            }
            if planned.len() > TOOL_PATCH_FILES_MAX {
                return Err(format!("expected at most {TOOL_PATCH_FILES_MAX} files, got more"));
            }
        }
        Ok(planned)
    }

    /// What a file is by now: as planned, else as it is.
    fn current(&self, planned: &Planned, path: &Path) -> Result<Option<String>, String> {
        match planned.get(path) {
            Some((_, after)) => Ok(after.clone()),
            None => match self.text_of(path) {
                Ok(text) => Ok(Some(text)),
                Err(Refused::Missing(_)) => Ok(None),
                Err(refused) => Err(refused.to_string()),
            },
        }
    }

    fn put(&self, planned: &mut Planned, path: &Path, after: Option<String>) -> Result<(), String> {
        match planned.get_mut(path) {
            Some(entry) => entry.1 = after,
            None => {
                let before = self.current(planned, path)?;
                planned.insert(path.to_owned(), (before, after));
            }
        }
        Ok(())
    }

    fn carry_out(&self, planned: &Planned) -> Result<(), String> {
        let mut done = Vec::new();
        for (path, (before, after)) in planned {
            if let Err(refused) = self.become_text(path, after.as_deref()) {
                for (path, before) in done {
                    // As far as the disk lets us.
                    let _ = self.become_text(path, before);
                }
                return Err(refused.to_string());
            }
            done.push((path, before.as_deref()));
        }
        Ok(())
    }

    fn become_text(&self, path: &Path, text: Option<&str>) -> Result<(), Refused> {
        match text {
            Some(text) => self.write_text(path, text),
            None if self.root.exists(path)? => self.root.remove(path),
            None => Ok(()),
        }
    }
}

/// Whether names have the `a/` and `b/` that git puts before them.
fn has_prefixes(operation: &FileOperation<'_, str>) -> bool {
    match operation {
        FileOperation::Delete(path) => path.starts_with("a/"),
        FileOperation::Create(path) => path.starts_with("b/"),
        FileOperation::Modify { original, modified } => {
            original.starts_with("a/") && modified.starts_with("b/")
        }
        // What git says of these has none.
        FileOperation::Rename { .. } | FileOperation::Copy { .. } => false,
    }
}

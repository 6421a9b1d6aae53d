//! Goes through a directory, downwards only and by its own descriptors, within bounds of number, depth and time.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use super::root::{Kind, Refused, Root};
use crate::limits::{TOOL_DEPTH_MAX, TOOL_WALK_ENTRIES_MAX};

/// One thing on the way.
pub(super) struct Seen<'a> {
    pub(super) path: &'a Path,
    pub(super) kind: Kind,
    pub(super) dir: &'a OwnedFd,
    pub(super) name: &'a OsString,
}

/// A way through a directory, and why it was not gone to its end.
pub(super) struct Walk<'a> {
    stop: &'a AtomicBool,
    deadline: Instant,
    left: usize,
    cut: Option<&'static str>,
}

impl<'a> Walk<'a> {
    pub(super) fn new(stop: &'a AtomicBool, deadline: Instant) -> Self {
        Walk { stop, deadline, left: TOOL_WALK_ENTRIES_MAX, cut: None }
    }

    /// Visits everything in name order until `visit` has enough. What git keeps for itself and what is Baton's own is left out.
    pub(super) fn go(
        &mut self,
        root: &Root,
        start: &Path,
        is_recursive: bool,
        visit: &mut dyn FnMut(&Seen<'_>) -> bool,
    ) -> Result<(), Refused> {
        let dir = root.dir(start)?;
        let shown = root.relative(start)?;
        let shown = if shown == Path::new(".") { PathBuf::new() } else { shown };
        let depth = if is_recursive { TOOL_DEPTH_MAX } else { 0 };
        self.step(root, &dir, &shown, depth, visit).map(drop)
    }

    fn step(
        &mut self,
        root: &Root,
        dir: &OwnedFd,
        path: &Path,
        depth: usize,
        visit: &mut dyn FnMut(&Seen<'_>) -> bool,
    ) -> Result<bool, Refused> {
        for entry in root.entries(dir, path, TOOL_WALK_ENTRIES_MAX)? {
            self.left = self.left.saturating_sub(1);
            self.cut = match () {
                () if self.left == 0 => Some("there are too many files"),
                () if Instant::now() >= self.deadline => Some("it took too long"),
                () if self.stop.load(Ordering::Relaxed) => Some("it was stopped"),
                () => None,
            };
            if self.cut.is_some() {
                return Ok(false);
            }
            let inner = path.join(&entry.name);
            let below = match entry.kind {
                Kind::Dir if entry.name == ".git" => continue,
                Kind::Dir => match root.enter(dir, &entry.name, &inner) {
                    Ok(below) => Some(below),
                    Err(Refused::Own(_)) => continue,
                    // Gone, or closed to us: the rest is still worth seeing.
                    Err(_) => None,
                },
                _ => None,
            };
            if !visit(&Seen { path: &inner, kind: entry.kind, dir, name: &entry.name }) {
                self.cut = Some("there is more than is shown");
                return Ok(false);
            }
            if let (Some(below), true) = (below, depth > 0) {
                // One directory that cannot be read does not hide the others.
                let went = self.step(root, &below, &inner, depth - 1, visit).unwrap_or(true);
                if !went {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Lines as an output, with a last one where something is missing.
    pub(super) fn close(&self, mut lines: Vec<String>) -> String {
        if let Some(why) = self.cut {
            lines.push(format!("[not everything: {why}]"));
        }
        if lines.is_empty() { "nothing found\n".to_owned() } else { lines.join("\n") + "\n" }
    }
}

/// A path on one line, whatever it is made of.
pub(super) fn show(path: &Path) -> String {
    path.to_string_lossy().replace(|c: char| c.is_control(), "\u{fffd}")
}

//! Whether files changed during a turn, where the agent's own tools do not say so. Cheap and bounded; never more than a hint.
//!
//! In a work tree of git: its head, what git calls changed, and the stamps of those files. Elsewhere: names, sizes and stamps of everything, up to a bound.
//! What is Baton's own does not count.

use std::collections::BTreeMap;
use std::io::Write;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use baton_core::Digest;
use baton_ledger::hash::Hasher;
use rustix::fs::AtFlags;

use super::ToolRunner;
use super::root::Kind;
use super::walk::Walk;
use crate::limits::{TREE_FILES_MAX, TREE_LOOK_TIME, TREE_STATUS_BYTES_MAX};
use crate::process::Ended;

/// A work tree as it was at a moment, to be compared with another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look(Digest);

impl ToolRunner {
    /// Looks at the work tree; nothing where that takes too long.
    pub fn look(&self) -> Option<Look> {
        let is_git = self.root.path().join(".git").exists();
        if is_git { self.look_by_git() } else { self.look_at_all() }
    }

    fn look_by_git(&self) -> Option<Look> {
        let mut hasher = Hasher::default();
        // A repository without a commit has no head, and that is as good as one.
        let head = self.ask_git(&["rev-parse", "--verify", "--quiet", "HEAD"]).unwrap_or_default();
        hasher.update(&head);
        let status =
            self.ask_git(&["status", "--porcelain=v1", "-z", "--untracked-files=all", "--no-renames"])?;
        for entry in status.split(|byte| *byte == 0).filter(|entry| entry.len() > 3).take(TREE_FILES_MAX) {
            let name = Path::new(std::ffi::OsStr::from_bytes(&entry[3..]));
            let path = self.root.path().join(name);
            if self.root.own().iter().any(|own| path.starts_with(own)) {
                continue;
            }
            hasher.update(entry);
            if let Ok(stat) = rustix::fs::lstat(&path) {
                hasher.update(&stamp(&stat));
            }
            hasher.update(&[0]);
        }
        Some(Look(hasher.finish()))
    }

    /// Behind the wall as any other program: what a repository configures for git is run by git.
    fn ask_git(&self, words: &[&str]) -> Option<Vec<u8>> {
        let first = ["git", "--no-optional-locks", "-c", "core.fsmonitor=false"];
        let words = first.iter().chain(words).map(|word| (*word).to_owned()).collect();
        let command = self.command(words, self.root.path().to_owned(), TREE_LOOK_TIME, &BTreeMap::new());
        let mut said = Kept(Vec::new());
        let ran = command.run(Some(&mut said), &mut || false).ok()?;
        (ran.ended == Ended::Exit(0)).then_some(said.0)
    }

    fn look_at_all(&self) -> Option<Look> {
        let (mut hasher, never) = (Hasher::default(), AtomicBool::new(false));
        let deadline = Instant::now() + TREE_LOOK_TIME;
        let mut walk = Walk::new(&never, deadline);
        let mut left = TREE_FILES_MAX;
        walk.go(&self.root, Path::new("."), true, &mut |seen| {
            if seen.kind == Kind::Dir {
                return true;
            }
            hasher.update(seen.path.as_os_str().as_bytes());
            if let Ok(stat) = rustix::fs::statat(seen.dir, seen.name, AtFlags::SYMLINK_NOFOLLOW) {
                hasher.update(&stamp(&stat));
            }
            hasher.update(&[0]);
            left -= 1;
            left > 0
        })
        .ok()?;
        (Instant::now() < deadline).then(|| Look(hasher.finish()))
    }
}

/// What is different once a file is written anew.
fn stamp(stat: &rustix::fs::Stat) -> Vec<u8> {
    format!("{} {} {} {}", stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec).into_bytes()
}

/// Keeps the first part of what is written.
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = TREE_STATUS_BYTES_MAX.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::ToolSettings;
    use std::fs;

    fn tools(dir: &Path) -> ToolRunner {
        fs::create_dir_all(dir.join("work/.baton")).unwrap();
        let mut settings = ToolSettings::new(dir.join("work"), dir.join("private"));
        settings.own = vec![dir.join("work/.baton")];
        ToolRunner::new(settings, None).unwrap()
    }

    #[test]
    fn a_change_is_seen_and_batons_own_writing_is_none() {
        for is_git in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let tools = tools(dir.path());
            let at = |name: &str| dir.path().join("work").join(name);
            if is_git {
                let words = ["git", "init", "-q"].map(str::to_owned).to_vec();
                tools
                    .command(words, at(""), TREE_LOOK_TIME, &BTreeMap::new())
                    .run(None, &mut || false)
                    .unwrap();
            }
            fs::write(at("a"), "one").unwrap();
            let before = tools.look().unwrap();
            fs::write(at(".baton/events"), "more").unwrap();
            assert_eq!(tools.look().unwrap(), before, "git: {is_git}");
            fs::write(at("a"), "three").unwrap();
            let changed = tools.look().unwrap();
            assert_ne!(changed, before, "git: {is_git}");
            fs::create_dir(at("d")).unwrap();
            fs::write(at("d/b"), "").unwrap();
            assert_ne!(tools.look().unwrap(), changed, "git: {is_git}");
        }
    }

    #[test]
    fn a_commit_is_a_change() {
        let dir = tempfile::tempdir().unwrap();
        let tools = tools(dir.path());
        let git = |words: &[&str]| {
            let first = ["git", "-c", "user.name=a", "-c", "user.email=b"];
            let words = first.iter().chain(words).map(|word| (*word).to_owned()).collect();
            tools
                .command(words, tools.root().path().to_owned(), TREE_LOOK_TIME, &BTreeMap::new())
                .run(None, &mut || false)
                .unwrap();
        };
        git(&["init", "-q"]);
        let before = tools.look().unwrap();
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        assert_ne!(tools.look().unwrap(), before);
    }
}

//! Where the repository of a work tree is: found by reading, without git, and believed only where it cannot have been made up.
//!
//! Agents write what is in a work tree, also the file `.git` that names another place. Such a place counts only if it names the work tree in turn:
//! whoever could write that can write there anyway. What it says is shared must be where it lies.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

/// The repository of a work tree, by real names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitDirs {
    /// What belongs to this work tree alone.
    pub(crate) own: PathBuf,
    /// What all work trees of the repository share. The same, where there is only one.
    pub(crate) common: PathBuf,
}

/// What of the shared part is written by a commit, a branch or a tag. Its configuration, its hooks and other work trees are not among it.
const SHARED: &[&str] = &["objects", "refs", "logs", "reftable", "lfs"];

/// Bytes of a file that is nothing but a path.
const LINK_BYTES_MAX: u64 = 8 << 10;

impl GitDirs {
    /// The repository of this work tree itself.
    pub(crate) fn of(work: &Path) -> Option<GitDirs> {
        let here = work.canonicalize().ok()?.join(".git");
        let kind = here.symlink_metadata().ok()?.file_type();
        if kind.is_dir() {
            return Some(GitDirs { own: here.clone(), common: here });
        }
        if !kind.is_file() {
            return None;
        }
        let own = named(work, read(&here)?.strip_prefix("gitdir:")?)?;
        let back = named(&own, &read(&own.join("gitdir"))?)?;
        let (parent, common) = (own.parent()?, own.parent()?.parent()?.to_owned());
        let shares = named(&own, &read(&own.join("commondir"))?)? == common;
        let is_linked = back == here && shares && parent.file_name().is_some_and(|name| name == "worktrees");
        is_linked.then_some(GitDirs { own, common })
    }

    /// Whether it is one of several work trees, with a repository elsewhere.
    pub(crate) fn is_linked(&self) -> bool {
        self.own != self.common
    }

    /// What programs in a linked work tree write for a commit.
    pub(crate) fn written(&self) -> Vec<PathBuf> {
        let shared = SHARED.iter().map(|name| self.common.join(name)).filter(|path| path.is_dir());
        std::iter::once(self.own.clone()).chain(shared).collect()
    }
}

/// The real name of what a file names, relative to where it is.
fn named(dir: &Path, text: &str) -> Option<PathBuf> {
    dir.join(text.trim()).canonicalize().ok()
}

/// A short file as text. Nothing is waited for: a pipe in its place is no file.
pub(crate) fn read(path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty()).ok()?);
    let found = file.metadata().ok()?;
    let mut text = String::new();
    let is_read = || file.take(LINK_BYTES_MAX).read_to_string(&mut text).is_ok();
    (found.is_file() && found.len() <= LINK_BYTES_MAX).then(is_read)?.then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_work_tree_names_its_repository_only_if_that_names_it_too() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let at = |name: &str| root.join(name);
        for name in ["main/.git/worktrees/one/sub", "main/src", "one", "two", "three"] {
            fs::create_dir_all(at(name)).unwrap();
        }
        let of = |name: &str| GitDirs::of(&at(name));
        let main = GitDirs { own: at("main/.git"), common: at("main/.git") };
        assert_eq!(of("main"), Some(main));
        assert_eq!((of("main/src"), of("one")), (None, None));
        let points = |name: &str, to: &str| fs::write(at(name), format!("gitdir: {}\n", at(to).display()));
        points("one/.git", "main/.git/worktrees/one").unwrap();
        assert_eq!(of("one"), None, "nobody answers");
        let back =
            |to: &str| fs::write(at("main/.git/worktrees/one/gitdir"), format!("{}\n", at(to).display()));
        back("one/.git").unwrap();
        let shares = |what: &str| fs::write(at("main/.git/worktrees/one/commondir"), what);
        for what in ["", "/", ".."] {
            shares(what).unwrap();
            assert_eq!(of("one"), None, "something else is shared: {what:?}");
        }
        shares("../..\n").unwrap();
        let one = GitDirs { own: at("main/.git/worktrees/one"), common: at("main/.git") };
        assert_eq!(of("one"), Some(one));
        // Another's work tree, another's repository, and a link.
        points("two/.git", "main/.git/worktrees/one").unwrap();
        points("one/.git", "main/.git").unwrap();
        std::os::unix::fs::symlink(at("main/.git"), at("three/.git")).unwrap();
        assert_eq!((of("two"), of("one"), of("three")), (None, None, None));
    }
}

//! What was changed for a task: the difference between its work tree and where its branch left, with what is not committed and what is not tracked.
//!
//! Agents write the work tree and what git is configured with. So git is run behind the same wall as for everything else, without programs of others that
//! make a difference readable, and everything is bounded: time, bytes, files.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use baton_core::TaskId;

use super::{For, GitDirs, Kept, Worktrees, is_half_made};
use crate::limits::{CHANGED_FILES_MAX, CHANGES_BYTES_MAX, CHANGES_LIST_BYTES_MAX, PATCH_BYTES_MAX};
use crate::tools::{Refused, Root};

/// What of a difference the configuration could choose: all of it is said here. What is very large is not compared line by line.
const DIFF: &[&str] = &[
    "-c",
    "core.bigFileThreshold=16m",
    "-c",
    "core.quotePath=false",
    "diff",
    "--no-ext-diff",
    "--no-textconv",
    "--no-color",
    "--no-relative",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--inter-hunk-context=0",
    "--find-renames",
    "-l1000",
    "--ignore-submodules=dirty",
    "--submodule=short",
    "--ws-error-highlight=none",
    "-O/dev/null",
];

/// Where work for a task is to be looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In its own work tree.
    Worktree,
    /// Where others work too.
    Workspace,
}

/// What was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes {
    pub path: PathBuf,
    pub branch: Option<String>,
    /// The commit that it is compared with.
    pub base: String,
    pub files: Vec<Change>,
    /// Whether there is more than this.
    pub is_truncated: bool,
}

/// One file that was changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: String,
    pub old_path: Option<String>,
    pub kind: Kind,
    pub added: u64,
    pub removed: u64,
    /// A unified diff; absent where there is nothing to show line by line.
    pub patch: Option<String>,
    pub is_binary: bool,
    /// Whether the patch is not whole, or left out for want of room.
    pub is_truncated: bool,
}

/// What became of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Added,
    Modified,
    Deleted,
    Renamed,
    Untracked,
}

impl Kind {
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Added => "added",
            Kind::Modified => "modified",
            Kind::Deleted => "deleted",
            Kind::Renamed => "renamed",
            Kind::Untracked => "untracked",
        }
    }
}

impl Worktrees {
    /// What was changed for a task, there.
    pub fn changes(&self, task: &TaskId, place: Place) -> io::Result<Changes> {
        let (tree, dirs) = match place {
            Place::Worktree => {
                let path = self.path(task);
                let dirs = self.known(&path)?;
                if is_half_made(&dirs) {
                    return Err(io::Error::other("its worktree is being made"));
                }
                (path, dirs)
            }
            Place::Workspace => (self.repository.clone(), self.dirs()?),
        };
        let look = |words: &[&str]| {
            let mut kept = Kept::new(4 << 10);
            self.git_for(&tree, &dirs, For::Looking, words, Some(&mut kept))?;
            Ok::<_, io::Error>(String::from_utf8_lossy(&kept.bytes).trim().to_owned())
        };
        let no_commit = |_| io::Error::other(format!("{} has no commit yet", tree.display()));
        let head = commit(&look(&["rev-parse", "--verify", "--quiet", "HEAD"]).map_err(no_commit)?)?;
        let base = match place {
            Place::Workspace => head,
            Place::Worktree => {
                let main = commit(&self.git(For::Looking, &["rev-parse", "--verify", "HEAD"])?)?;
                commit(&look(&["merge-base", &head, &main])?)?
            }
        };
        let branch =
            look(&["symbolic-ref", "--quiet", "--short", "HEAD"]).ok().filter(|name| !name.is_empty());
        let mut found = Found { files: Vec::new(), room: CHANGES_BYTES_MAX, is_truncated: false };
        self.tracked(&tree, &dirs, &base, &mut found)?;
        self.untracked(&tree, &dirs, &mut found)?;
        let Found { files, is_truncated, .. } = found;
        Ok(Changes { path: tree, branch, base, files, is_truncated })
    }

    /// What git knows, committed or not.
    fn tracked(&self, tree: &Path, dirs: &GitDirs, base: &str, found: &mut Found) -> io::Result<()> {
        let words = |more: &[&'static str]| [DIFF, more].concat();
        let mut list = Kept::new(CHANGES_LIST_BYTES_MAX);
        let mut listed = words(&["--raw", "--numstat", "-z"]);
        listed.extend([base, "--"]);
        self.git_for(tree, dirs, For::Looking, &listed, Some(&mut list))?;
        if list.is_full.load(Ordering::Relaxed) {
            return Err(io::Error::other("so many files are changed that they are not listed"));
        }
        let mut changes = read_list(&list.bytes);
        if changes.is_empty() {
            return Ok(());
        }
        let mut patches = Kept::new(found.room);
        let mut patched = words(&["--patch", "--unified=3"]);
        patched.extend([base, "--"]);
        self.git_for(tree, dirs, For::Looking, &patched, Some(&mut patches))?;
        let is_cut = patches.is_full.load(Ordering::Relaxed);
        let mut sections = sections(&patches.bytes).into_iter().peekable();
        // In the same order. One that became something else has two; where somebody changes files meanwhile one may have none.
        for change in &mut changes {
            let mut patch = Vec::new();
            while let Some(section) = sections.next_if(|section| names(section, change, patch.is_empty())) {
                patch.extend_from_slice(section);
            }
            match (change.is_binary, patch.is_empty()) {
                (true, _) => {}
                (false, true) => change.is_truncated = true,
                (false, false) => change.set_patch(&patch, is_cut && sections.peek().is_none()),
            }
        }
        found.room -= patches.bytes.len();
        found.is_truncated |= is_cut;
        changes.into_iter().for_each(|change| found.push(change));
        Ok(())
    }

    /// What git does not know, but for what it is told to leave alone.
    fn untracked(&self, tree: &Path, dirs: &GitDirs, found: &mut Found) -> io::Result<()> {
        let mut list = Kept::new(CHANGES_LIST_BYTES_MAX);
        let words = ["ls-files", "--others", "--exclude-standard", "-z"];
        self.git_for(tree, dirs, For::Looking, &words, Some(&mut list))?;
        let is_cut = list.is_full.load(Ordering::Relaxed);
        found.is_truncated |= is_cut;
        let own = self.walling.as_ref().map(|walling| walling.own.clone()).unwrap_or_default();
        let root = Root::open(tree, own)?;
        let mut names: Vec<&[u8]> =
            list.bytes.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
        if is_cut {
            // Of the last one only the beginning is there.
            names.pop();
        }
        for name in names {
            if found.files.len() >= CHANGED_FILES_MAX {
                found.is_truncated = true;
                break;
            }
            let path = String::from_utf8_lossy(name).into_owned();
            if let Some(change) = new_file(&root, tree, path, found.room) {
                found.room = found.room.saturating_sub(change.patch.as_ref().map_or(0, String::len));
                found.push(change);
            }
        }
        Ok(())
    }
}

/// What is found, and how much more there may be.
struct Found {
    files: Vec<Change>,
    room: usize,
    is_truncated: bool,
}

impl Found {
    fn push(&mut self, change: Change) {
        match self.files.len() < CHANGED_FILES_MAX {
            true => self.files.push(change),
            false => self.is_truncated = true,
        }
    }
}

impl Change {
    fn new(path: String, kind: Kind) -> Change {
        let (old_path, patch) = (None, None);
        Change { path, old_path, kind, added: 0, removed: 0, patch, is_binary: false, is_truncated: false }
    }

    /// Takes a patch, up to a whole line that fits.
    fn set_patch(&mut self, bytes: &[u8], is_cut: bool) {
        let fits = &bytes[..bytes.len().min(PATCH_BYTES_MAX)];
        self.is_truncated = is_cut || fits.len() < bytes.len();
        let fits = match self.is_truncated {
            true => &fits[..fits.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1)],
            false => fits,
        };
        self.patch = Some(String::from_utf8_lossy(fits).into_owned());
    }
}

/// The name of a commit, and nothing that could be taken for an option.
fn commit(text: &str) -> io::Result<String> {
    let text = text.trim();
    match text.len() >= 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        true => Ok(text.to_owned()),
        false => Err(io::Error::other("git names no commit")),
    }
}

/// What `--raw --numstat -z` prints: first what became of each file, then how many lines.
fn read_list(bytes: &[u8]) -> Vec<Change> {
    let mut parts = bytes.split(|byte| *byte == 0).map(|part| String::from_utf8_lossy(part).into_owned());
    let mut changes = Vec::new();
    let mut counts = BTreeMap::new();
    while let Some(part) = parts.next() {
        if let Some(raw) = part.strip_prefix(':') {
            let letter = raw.rsplit(' ').next().and_then(|word| word.chars().next());
            let Some(path) = parts.next() else { break };
            let kind = match letter {
                Some('A') => Kind::Added,
                Some('D') => Kind::Deleted,
                Some('R' | 'C') => {
                    let Some(new) = parts.next() else { break };
                    changes.push(Change { old_path: Some(path), ..Change::new(new, Kind::Renamed) });
                    continue;
                }
                _ => Kind::Modified,
            };
            // A conflict may stand there once more, as what it is in the work tree.
            if changes.last().is_some_and(|last: &Change| last.path == path) {
                changes.pop();
            }
            changes.push(Change::new(path, kind));
        } else if let Some((added, rest)) = part.split_once('\t')
            && let Some((removed, path)) = rest.split_once('\t')
        {
            // One that was renamed has both names behind it.
            let path = if path.is_empty() { parts.nth(1).unwrap_or_default() } else { path.to_owned() };
            counts.insert(path, (added.to_owned(), removed.to_owned()));
        }
    }
    for change in &mut changes {
        if let Some((added, removed)) = counts.get(&change.path) {
            change.is_binary = added == "-";
            change.added = added.parse().unwrap_or(0);
            change.removed = removed.parse().unwrap_or(0);
        }
    }
    changes
}

/// The patches, one for each file: what belongs to one begins with a blank or a sign.
fn sections(bytes: &[u8]) -> Vec<&[u8]> {
    const BEGIN: &[u8] = b"diff --git ";
    let mut starts = Vec::new();
    let mut at = 0;
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if line.starts_with(BEGIN) {
            starts.push(at);
        }
        at += line.len();
    }
    let ends = starts.iter().skip(1).copied().chain([bytes.len()]);
    starts.iter().zip(ends).map(|(start, end)| &bytes[*start..end]).collect()
}

/// Whether a patch is of this file, as far as its first line says. A name that needs quotes is written in another way: the first is believed.
fn names(section: &[u8], change: &Change, is_first: bool) -> bool {
    let first = section.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let first = String::from_utf8_lossy(first);
    is_first && first.ends_with('"') || first.ends_with(&format!(" b/{}", change.path))
}

/// A file that git does not know, as if it had been added.
fn new_file(root: &Root, tree: &Path, path: String, room: usize) -> Option<Change> {
    let mut change = Change::new(path, Kind::Untracked);
    let at = Path::new(&change.path);
    // A repository within this one, which is nobody's to look into.
    if change.path.ends_with('/') {
        return Some(change);
    }
    let found = tree.join(at).symlink_metadata().ok();
    let bytes = match found.as_ref().map(std::fs::Metadata::file_type) {
        // As git has it: a link is where it leads to.
        Some(kind) if kind.is_symlink() => {
            let to = std::fs::read_link(tree.join(at)).ok()?;
            to.to_string_lossy().into_owned().into_bytes()
        }
        _ => match root.read(at, PATCH_BYTES_MAX.min(room) as u64) {
            Ok(bytes) => bytes,
            Err(Refused::TooLarge { .. }) => {
                change.is_truncated = true;
                return Some(change);
            }
            Err(Refused::Own(_)) => return None,
            // A pipe, or what is gone meanwhile.
            Err(_) => return Some(change),
        },
    };
    if bytes.iter().take(8000).any(|byte| *byte == 0) {
        change.is_binary = true;
        return Some(change);
    }
    let text = String::from_utf8_lossy(&bytes);
    change.added = text.split_inclusive('\n').count() as u64;
    let name = change.path.clone();
    let mut patch = format!("diff --git a/{name} b/{name}\nnew file\n--- /dev/null\n+++ b/{name}\n");
    if change.added > 0 {
        patch.push_str(&format!("@@ -0,0 +1,{} @@\n", change.added));
    }
    for line in text.split_inclusive('\n') {
        patch.push('+');
        patch.push_str(line);
    }
    if !text.is_empty() && !text.ends_with('\n') {
        patch.push_str("\n\\ No newline at end of file\n");
    }
    change.set_patch(patch.as_bytes(), false);
    Some(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_git_writes_it() {
        let bytes = b":100644 100644 a b M\0one.txt\0:100644 100644 a b R090\0old name\0new\tname\0:000000 100644 0 b A\0:odd\0\
            1\t2\tone.txt\x003\t0\t\0old name\0new\tname\0-\t-\t:odd\0";
        let read = read_list(bytes);
        let shown: Vec<_> = read
            .iter()
            .map(|one| {
                (one.path.as_str(), one.old_path.as_deref(), one.kind, one.added, one.removed, one.is_binary)
            })
            .collect();
        let expected = [
            ("one.txt", None, Kind::Modified, 1, 2, false),
            ("new\tname", Some("old name"), Kind::Renamed, 3, 0, false),
            (":odd", None, Kind::Added, 0, 0, true),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_list_that_is_cut_anywhere_is_read_without_harm() {
        let bytes = b":1 1 a b R1\0x\0y\0:1 1 a b M\0z\x001\t1\t\0x\0y\x001\t1\tz\0";
        (0..bytes.len()).for_each(|end| drop(read_list(&bytes[..end])));
    }

    #[test]
    fn patches_are_divided_where_they_begin_and_nowhere_else() {
        let bytes = b"diff --git a/x b/x\n@@ -1 +1 @@\n+diff --git a/y b/y\ndiff --git a/z b/z\nBinary files differ\n";
        let found = sections(bytes);
        assert_eq!(found.len(), 2);
        assert!(names(found[0], &Change::new("x".into(), Kind::Added), true));
        assert!(!names(found[0], &Change::new("z".into(), Kind::Added), true));
    }

    #[test]
    fn a_long_patch_ends_with_a_whole_line() {
        let mut change = Change::new("x".into(), Kind::Added);
        let line = format!("+{}\n", "ä".repeat(100));
        change.set_patch(line.repeat(2000).as_bytes(), false);
        let patch = change.patch.unwrap();
        assert!(change.is_truncated && patch.len() <= PATCH_BYTES_MAX && patch.ends_with("ä\n"));
    }
}

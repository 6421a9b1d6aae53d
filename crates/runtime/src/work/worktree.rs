//! A git worktree for each task: on a branch of its own, kept while the task is open, removed when it is done. Nothing that is not saved elsewhere is
//! ever removed.

mod changes;

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::TaskId;

use crate::limits::{GIT_LOOK_TIMEOUT, GIT_TIMEOUT};
use crate::process::{Command, Ended, end_leftovers, short};
use crate::tools::Walling;
use crate::tools::git_dirs::{self, GitDirs};
use crate::tools::random;
use crate::tools::wall::Wall;

pub use changes::{Change, Changes, Kind, Place};

/// Agents can write what the repository is configured with, and git runs much of it: filters, remotes that are asked for what is missing, and more. All of that stays
/// behind the wall; what is easily left out is left out.
const UNHOOKED: &[&str] =
    &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"];

/// What git reads first. Where an agent has put a pipe instead, git waits for whoever writes to it.
const READ_FIRST: &[&str] = &[
    "HEAD",
    "commondir",
    "config",
    "config.worktree",
    "gitdir",
    "index",
    "info/attributes",
    "info/exclude",
    "info/sparse-checkout",
    "objects/info/alternates",
    "packed-refs",
    "shallow",
];

/// The variable that everything has which one call of git starts.
const CALL_VARIABLE: &str = "BATON_GIT_CALL";

/// The worktrees of one repository.
#[derive(Debug, Clone)]
pub struct Worktrees {
    repository: PathBuf,
    /// Where in it work is done: the workspace may be a part of it.
    part: PathBuf,
    /// Where they are made: beside the repository, since tools of agents may not enter the data directory.
    dir: PathBuf,
    /// What stands around git; without it nothing does.
    walling: Option<Walling>,
}

/// What a call of git is for, and so what it may write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    /// To see how things are. What is run for that writes nothing of the repository but what is the worktree's own.
    Looking,
    /// To change what the repository knows.
    Changing,
    /// To make a worktree or to remove one, which takes its time.
    Moving,
}

/// What became of a worktree that is not needed any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removed {
    Yes,
    /// There was none.
    None,
    /// It stays, and why.
    Kept(String),
}

impl Worktrees {
    /// Those of the repository that this workspace is, or is in.
    pub fn new(workspace: &Path, walling: Option<Walling>) -> Self {
        let workspace = workspace.canonicalize().unwrap_or_else(|_| workspace.to_owned());
        let has_git = |dir: &&Path| dir.join(".git").symlink_metadata().is_ok();
        let repository = workspace.ancestors().find(has_git).unwrap_or(&workspace).to_owned();
        let part = workspace.strip_prefix(&repository).map(Path::to_owned).unwrap_or_default();
        let mut name = repository.file_name().unwrap_or_default().to_owned();
        name.push(".worktrees");
        let dir = repository.with_file_name(name);
        // Somebody may have put it elsewhere.
        let dir = dir.canonicalize().unwrap_or(dir);
        Worktrees { repository, part, dir, walling }
    }

    pub fn path(&self, task: &TaskId) -> PathBuf {
        self.dir.join(task.as_str())
    }

    fn branch(task: &TaskId) -> String {
        format!("baton/{task}")
    }

    /// Whether a task has one.
    pub fn has(&self, task: &TaskId) -> bool {
        self.path(task).join(".git").exists()
    }

    /// Where a task is worked on: in the worktree that is there, or in a new one at what the repository has checked out.
    pub fn open(&self, task: &TaskId) -> io::Result<PathBuf> {
        let path = self.open_whole(task)?;
        let part = path.join(&self.part);
        // What is not committed yet is not there, and a link in it may lead anywhere.
        let is_there = part.canonicalize().is_ok_and(|real| real == part && real.is_dir());
        Ok(if is_there { part } else { path })
    }

    fn open_whole(&self, task: &TaskId) -> io::Result<PathBuf> {
        let path = self.path(task);
        let (shown, branch) = (path.display().to_string(), Self::branch(task));
        if self.has(task) {
            if !is_half_made(&self.known(&path)?) {
                return Ok(path);
            }
            // Nobody has worked in it.
            self.git(For::Moving, &["worktree", "remove", "-f", "-f", "--", &shown])?;
        }
        // A folder that somebody removed by hand is still known to git.
        self.git(For::Changing, &["worktree", "prune"])?;
        std::fs::create_dir_all(&self.dir)?;
        let name = format!("refs/heads/{branch}");
        let has_branch = self.git(For::Looking, &["rev-parse", "--verify", "--quiet", &name]).is_ok();
        match has_branch {
            true => self.git(For::Moving, &["worktree", "add", "--", &shown, &branch])?,
            false => self.git(For::Moving, &["worktree", "add", "-b", &branch, "--", &shown])?,
        };
        // What git ran could write here.
        self.known(&path)?;
        Ok(path)
    }

    /// Removes the worktree of a task that is done, and its branch, where everything in it is committed and merged.
    pub fn close(&self, task: &TaskId) -> io::Result<Removed> {
        let path = self.path(task);
        if !self.has(task) {
            return Ok(Removed::None);
        }
        let (shown, branch) = (path.display().to_string(), Self::branch(task));
        let dirs = match self.known(&path) {
            Ok(dirs) => dirs,
            Err(why) => return Ok(Removed::Kept(format!("its worktree stays: {why}"))),
        };
        let look = |words: &[&str]| self.git_in(&path, &dirs, For::Looking, words);
        // What is committed in a part that is a repository of its own is nowhere else.
        let has_parts = look(&["ls-files", "--stage"])?.lines().any(|line| line.starts_with("160000 "));
        if has_parts || dirs.own.join("modules").symlink_metadata().is_ok() {
            return Ok(Removed::Kept(format!("{shown} has submodules")));
        }
        let unsaved = || {
            let all = ["--untracked-files=all", "--ignored=no", "--ignore-submodules=none"];
            let status = look(&[&["status", "--porcelain"], &all[..]].concat())?;
            Ok::<_, io::Error>(!status.trim().is_empty())
        };
        let not_committed = || Removed::Kept(format!("{shown} has work that is not committed"));
        if unsaved()? {
            return Ok(not_committed());
        }
        // What is checked out there need not be the task's branch.
        let head = look(&["rev-parse", "--verify", "HEAD"])?;
        for commit in [branch.as_str(), head.trim()] {
            if self.git(For::Looking, &["merge-base", "--is-ancestor", commit, "HEAD"]).is_err() {
                return Ok(Removed::Kept(format!("{commit} is not merged; its worktree is {shown}")));
            }
        }
        // Once more, as git itself would, but not by the `.git` that somebody may have put there meanwhile. One that is locked stays, also by force.
        if unsaved()? {
            return Ok(not_committed());
        }
        self.git(For::Moving, &["worktree", "remove", "--force", "--", &shown])?;
        self.git(For::Changing, &["branch", "-d", "--", &branch])?;
        Ok(Removed::Yes)
    }

    /// Removes what a task that is done no longer needs; gives what somebody should know of what stays.
    pub fn tidy(&self, task: &TaskId) -> Option<String> {
        match self.close(task) {
            Ok(Removed::Kept(why)) => Some(format!("{task} is done, and {why}")),
            Ok(Removed::Yes | Removed::None) => None,
            // Somebody else has just removed it.
            Err(_) if !self.has(task) => None,
            Err(error) => Some(format!("{task}: its worktree stays: {error}")),
        }
    }

    /// The repository's own directories.
    fn dirs(&self) -> io::Result<GitDirs> {
        GitDirs::of(&self.repository).ok_or_else(|| {
            let shown = self.repository.display();
            let what = "a directory .git in it or above, or that of a worktree";
            io::Error::other(format!("{shown} has no repository of git that knows it: {what}"))
        })
    }

    /// The directories of a worktree that is where its name says, and this repository's. Agents write there: a link in its place would have somebody work
    /// elsewhere, and another repository would have git do what that is configured with.
    fn known(&self, path: &Path) -> io::Result<GitDirs> {
        let shown = path.display();
        if !path.symlink_metadata()?.is_dir() {
            return Err(io::Error::other(format!("{shown} is not a directory")));
        }
        let common = self.dirs()?.common;
        GitDirs::of(path)
            .filter(|dirs| dirs.is_linked() && dirs.common == common)
            .ok_or_else(|| io::Error::other(format!("{shown}: its .git is not the repository's")))
    }

    fn git(&self, purpose: For, words: &[&str]) -> io::Result<String> {
        self.git_in(&self.repository, &self.dirs()?, purpose, words)
    }

    /// Runs git in a work tree, with the directories that were found to be its own: what lies there since is not asked.
    fn git_in(&self, tree: &Path, dirs: &GitDirs, purpose: For, words: &[&str]) -> io::Result<String> {
        self.git_for(tree, dirs, purpose, words, None)
    }

    /// The same; where there is something to be kept, that is all of its standard output, until there is no room.
    fn git_for(
        &self,
        tree: &Path,
        dirs: &GitDirs,
        purpose: For,
        words: &[&str],
        kept: Option<&mut Kept>,
    ) -> io::Result<String> {
        are_files(&dirs.common)?;
        are_files(&dirs.own)?;
        let first = ["git", "--no-optional-locks"];
        let words = first.iter().chain(UNHOOKED).chain(words).map(|word| (*word).to_owned()).collect();
        let timeout = if purpose == For::Moving { GIT_TIMEOUT } else { GIT_LOOK_TIMEOUT };
        let mut command = Command::new(words, tree, timeout);
        let home = Home::make()?;
        let shown = home.0.display().to_string();
        let text = |path: &Path| path.display().to_string();
        let mut env = vec![
            ("HOME", shown.clone()),
            ("TMPDIR", shown.clone()),
            ("XDG_CONFIG_HOME", shown.clone()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_ASKPASS", "true".to_owned()),
            ("SSH_ASKPASS_REQUIRE", "never".to_owned()),
            ("GIT_DIR", text(&dirs.own)),
            ("GIT_WORK_TREE", text(tree)),
            (CALL_VARIABLE, shown.clone()),
        ];
        if dirs.is_linked() {
            env.push(("GIT_COMMON_DIR", text(&dirs.common)));
        }
        command.env.extend(env.into_iter().map(|(name, value)| (name.to_owned(), value)));
        if let Some(Walling { myself, own }) = &self.walling {
            let mut write = vec![home.0.clone()];
            match purpose {
                For::Changing | For::Moving => write.extend([dirs.common.clone(), self.dir.clone()]),
                // What a filter of git-lfs keeps is nothing that git runs.
                For::Looking if dirs.is_linked() => write.extend([dirs.own.clone(), dirs.common.join("lfs")]),
                For::Looking => {}
            }
            let read = vec![self.repository.clone(), dirs.common.clone(), tree.to_owned()];
            Wall { write, read, own: own.clone() }.around(myself, &mut command);
        }
        let ran = match kept {
            None => command.run(None, &mut || false),
            Some(kept) => {
                command.is_quiet = true;
                let is_full = kept.is_full.clone();
                command.run(Some(kept), &mut || is_full.load(Ordering::Relaxed))
            }
        };
        // What git ran may have left its group; it has no business here any more.
        end_leftovers(CALL_VARIABLE, &shown, Duration::ZERO);
        let ran = ran.map_err(io::Error::other)?;
        match ran.ended {
            Ended::Exit(0) => Ok(ran.output.text()),
            // Whoever wanted more of it has enough.
            Ended::Stopped => Ok(String::new()),
            Ended::TimedOut => Err(io::Error::other(format!("git: timed out after {}", short(timeout)))),
            _ => Err(io::Error::other(format!("git: {}", ran.output.text().trim()))),
        }
    }
}

/// What a call of git prints, within a bound.
struct Kept {
    bytes: Vec<u8>,
    max: usize,
    /// Whether more was printed.
    is_full: Arc<AtomicBool>,
}

impl Kept {
    fn new(max: usize) -> Kept {
        Kept { bytes: Vec::new(), max, is_full: Arc::default() }
    }
}

impl io::Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let fits = bytes.len().min(self.max - self.bytes.len());
        self.bytes.extend_from_slice(&bytes[..fits]);
        if fits < bytes.len() {
            self.is_full.store(true, Ordering::Relaxed);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Whether git was killed before it had checked everything out: what is missing would look as if it had been deleted.
fn is_half_made(dirs: &GitDirs) -> bool {
    git_dirs::read(&dirs.own.join("locked")).is_some_and(|why| why.trim() == "initializing")
}

/// Refuses a repository that git would wait for.
fn are_files(dir: &Path) -> io::Result<()> {
    for name in READ_FIRST {
        let path = dir.join(name);
        // A link is judged by what it leads to.
        if path.metadata().is_ok_and(|found| !found.is_file()) {
            return Err(io::Error::other(format!("{} is not a regular file", path.display())));
        }
    }
    Ok(())
}

/// Removes the homes of calls of git that a death of Baton cut short.
pub(crate) fn sweep_homes() {
    let Ok(entries) = std::env::temp_dir().read_dir() else { return };
    for entry in entries.flatten() {
        let is_home = entry.file_name().to_str().is_some_and(|name| name.starts_with(HOME_NAME));
        let is_old = || entry.metadata().and_then(|found| found.modified()).ok()?.elapsed().ok();
        if is_home && is_old().is_some_and(|age| age > 2 * GIT_TIMEOUT) {
            // Another user's is theirs.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

/// How the homes of calls of git begin.
const HOME_NAME: &str = "baton-git-";

/// A home for one call of git, with nothing in it. What a person has configured for themselves is not for programs that agents choose.
struct Home(PathBuf);

impl Home {
    fn make() -> io::Result<Home> {
        let dir = std::env::temp_dir().canonicalize()?.join(format!("{HOME_NAME}{:016x}", random()));
        std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
        Ok(Home(dir))
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Git as a person runs it.
    #[track_caller]
    fn git(dir: &Path, words: &[&str]) -> String {
        let words = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"].iter().chain(words);
        let command = Command::new(words.map(|word| (*word).to_owned()).collect(), dir, GIT_TIMEOUT);
        let ran = command.run(None, &mut || false).unwrap();
        assert_eq!(ran.ended, Ended::Exit(0), "{}", ran.output.text());
        ran.output.text().trim().to_owned()
    }

    fn repository() -> (tempfile::TempDir, Worktrees) {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("project");
        std::fs::create_dir(&repository).unwrap();
        let trees = Worktrees::new(&repository, None);
        git(&trees.repository, &["init", "-q", "-b", "main"]);
        std::fs::write(repository.join("a.txt"), "a\n").unwrap();
        git(&trees.repository, &["add", "."]);
        git(&trees.repository, &["commit", "-q", "-m", "a"]);
        (dir, trees)
    }

    fn id() -> TaskId {
        "TASK-2026-02-09-001".parse().unwrap()
    }

    #[test]
    fn a_task_has_one_on_a_branch_of_its_own_and_keeps_it() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        assert!(path.join("a.txt").exists());
        std::fs::write(path.join("b.txt"), "b\n").unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
        assert!(path.join("b.txt").exists(), "opening it again changes nothing in it");
        let branch = git(&path, &["branch", "--show-current"]);
        assert_eq!(branch.trim(), "baton/TASK-2026-02-09-001");
    }

    #[test]
    fn unsaved_work_is_never_removed() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        std::fs::write(path.join("new.txt"), "new\n").unwrap();
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains("not committed")));
        git(&path, &["add", "."]);
        git(&path, &["commit", "-q", "-m", "new"]);
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains("not merged")));
        assert!(path.join("new.txt").exists());
        git(&trees.repository, &["merge", "-q", "baton/TASK-2026-02-09-001"]);
        // What is committed beside the branch is work too.
        git(&path, &["checkout", "-q", "--detach"]);
        std::fs::write(path.join("beside.txt"), "beside\n").unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "-q", "-m", "beside"]);
        let beside = git(&path, &["rev-parse", "HEAD"]);
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains(beside.trim())));
        git(&trees.repository, &["merge", "-q", beside.trim()]);
        assert_eq!(trees.close(&id()).unwrap(), Removed::Yes);
        assert!(!path.exists());
        assert_eq!(trees.close(&id()).unwrap(), Removed::None);
    }

    #[test]
    fn one_that_was_half_made_when_git_was_killed_is_made_anew() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        // As git leaves it: what is not checked out yet is missing, and a lock says why.
        std::fs::remove_file(path.join("a.txt")).unwrap();
        std::fs::write(GitDirs::of(&path).unwrap().own.join("locked"), "initializing\n").unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
        assert!(path.join("a.txt").exists() && !is_half_made(&trees.known(&path).unwrap()));
        // One that a person has locked is theirs.
        std::fs::write(GitDirs::of(&path).unwrap().own.join("locked"), "on a stick\n").unwrap();
        std::fs::remove_file(path.join("a.txt")).unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
        assert!(!path.join("a.txt").exists());
    }

    #[test]
    fn a_workspace_that_is_a_part_of_the_repository_is_the_same_part_of_its_worktree() {
        let (dir, trees) = repository();
        let part = dir.path().join("project/pkg/a");
        std::fs::create_dir_all(&part).unwrap();
        let within = Worktrees::new(&part, None);
        let root = dir.path().canonicalize().unwrap();
        let whole = root.join("project.worktrees").join(id().as_str());
        assert_eq!(within.open(&id()).unwrap(), whole, "the part is not committed");
        std::fs::write(part.join("b.txt"), "b\n").unwrap();
        git(&trees.repository, &["add", "."]);
        git(&trees.repository, &["commit", "-q", "-m", "b"]);
        let next: TaskId = "TASK-2026-02-09-002".parse().unwrap();
        let there = within.open(&next).unwrap();
        assert_eq!(there, root.join("project.worktrees/TASK-2026-02-09-002/pkg/a"));
        assert!(there.join("b.txt").exists());
    }

    #[test]
    fn one_that_was_removed_by_hand_is_made_anew_with_its_branch() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        std::fs::write(path.join("b.txt"), "b\n").unwrap();
        git(&path, &["add", "."]);
        git(&path, &["commit", "-q", "-m", "b"]);
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
        assert!(path.join("b.txt").exists(), "what was committed is there");
    }

    #[test]
    fn one_whose_git_is_another_repository_is_neither_opened_nor_closed() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        let link = std::fs::read_to_string(path.join(".git")).unwrap();
        std::fs::remove_file(path.join(".git")).unwrap();
        git(&path, &["init", "-q", "."]);
        let why = trees.open(&id()).unwrap_err().to_string();
        assert!(why.contains("its .git is not the repository's"), "{why}");
        let kept = trees.close(&id()).unwrap();
        assert!(matches!(&kept, Removed::Kept(why) if why.contains("its .git is not the repository's")));
        // Nor what its own directory says is shared.
        std::fs::remove_dir_all(path.join(".git")).unwrap();
        std::fs::write(path.join(".git"), link).unwrap();
        let dirs = trees.known(&path).unwrap();
        std::fs::write(dirs.own.join("commondir"), "/nowhere\n").unwrap();
        trees.known(&path).unwrap_err();
        // Should that happen a moment later, it still is not what git is configured by.
        let look = |words: &[&str]| trees.git_in(&path, &dirs, For::Looking, words);
        assert_eq!(look(&["rev-parse", "--git-common-dir"]).unwrap().trim(), dirs.common.to_str().unwrap());
        std::fs::write(dirs.own.join("commondir"), "../..\n").unwrap();
        assert_eq!(trees.close(&id()).unwrap(), Removed::Yes);
    }

    #[test]
    fn a_pipe_that_git_would_wait_for_is_refused_at_once() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        let dirs = trees.known(&path).unwrap();
        let places = [dirs.common.join("config"), dirs.common.join("packed-refs"), dirs.own.join("index")];
        for place in places {
            let kept = std::fs::read(&place).ok();
            let _ = std::fs::remove_file(&place);
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, &place, rustix::fs::FileType::Fifo, mode, 0).unwrap();
            let began = std::time::Instant::now();
            let why = trees.close(&id()).unwrap_err().to_string();
            assert!(why.contains("is not a regular file"), "{why}");
            assert!(began.elapsed() < GIT_LOOK_TIMEOUT);
            std::fs::remove_file(&place).unwrap();
            kept.into_iter().for_each(|kept| std::fs::write(&place, kept).unwrap());
        }
        // What it is not known to read costs little.
        let lock = dirs.own.join("locked");
        rustix::fs::mknodat(rustix::fs::CWD, &lock, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
    }

    #[test]
    fn one_that_has_submodules_stays() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        std::fs::create_dir(trees.known(&path).unwrap().own.join("modules")).unwrap();
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains("submodules")));
        assert!(path.join("a.txt").exists());
    }
}

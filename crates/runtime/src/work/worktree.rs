//! A git worktree for each task: on a branch of its own, kept while the task is open, removed when it is done. Nothing that is not saved elsewhere is
//! ever removed.

use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::TaskId;

use crate::limits::GIT_TIMEOUT;
use crate::process::{Command, Ended, end_leftovers};
use crate::tools::Walling;
use crate::tools::git_dirs::GitDirs;
use crate::tools::random;
use crate::tools::wall::Wall;

/// Agents can write what the repository is configured with, and git runs much of it: filters, remotes that are asked for what is missing, and more. All of that stays
/// behind the wall; what is easily left out is left out.
const UNHOOKED: &[&str] =
    &["-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "submodule.recurse=false"];

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
            if !is_half_made(&path) {
                return genuine(path);
            }
            // Nobody has worked in it.
            self.git(&["worktree", "remove", "-f", "-f", "--", &shown])?;
        }
        // A folder that somebody removed by hand is still known to git.
        self.git(&["worktree", "prune"])?;
        std::fs::create_dir_all(&self.dir)?;
        let has_branch =
            self.git(&["rev-parse", "--verify", "--quiet", &format!("refs/heads/{branch}")]).is_ok();
        match has_branch {
            true => self.git(&["worktree", "add", "--", &shown, &branch])?,
            false => self.git(&["worktree", "add", "-b", &branch, "--", &shown])?,
        };
        genuine(path)
    }

    /// Removes the worktree of a task that is done, and its branch, where everything in it is committed and merged.
    pub fn close(&self, task: &TaskId) -> io::Result<Removed> {
        let path = self.path(task);
        if !path.join(".git").exists() {
            return Ok(Removed::None);
        }
        let (shown, branch) = (path.display().to_string(), Self::branch(task));
        let status =
            self.git_in(&path, &["status", "--porcelain", "--untracked-files=all", "--ignored=no"])?;
        if !status.trim().is_empty() {
            return Ok(Removed::Kept(format!("{shown} has work that is not committed")));
        }
        // What is checked out there need not be the task's branch.
        let head = self.git_in(&path, &["rev-parse", "--verify", "HEAD"])?;
        for commit in [branch.as_str(), head.trim()] {
            if self.git(&["merge-base", "--is-ancestor", commit, "HEAD"]).is_err() {
                return Ok(Removed::Kept(format!("{commit} is not merged; its worktree is {shown}")));
            }
        }
        // Without force: git looks once more.
        self.git(&["worktree", "remove", "--", &shown])?;
        self.git(&["branch", "-d", "--", &branch])?;
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

    fn git(&self, words: &[&str]) -> io::Result<String> {
        self.git_in(&self.repository, words)
    }

    fn git_in(&self, dir: &Path, words: &[&str]) -> io::Result<String> {
        let words = ["git"].iter().chain(UNHOOKED).chain(words).map(|word| (*word).to_owned()).collect();
        let mut command = Command::new(words, dir, GIT_TIMEOUT);
        let home = Home::make()?;
        let shown = home.0.display().to_string();
        let env = [
            ("HOME", shown.as_str()),
            ("TMPDIR", &shown),
            ("XDG_CONFIG_HOME", &shown),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_ASKPASS", "true"),
            ("SSH_ASKPASS_REQUIRE", "never"),
            (CALL_VARIABLE, &shown),
        ];
        command.env.extend(env.map(|(name, value)| (name.to_owned(), value.to_owned())));
        if let Some(Walling { myself, own }) = &self.walling {
            let none = || {
                let shown = self.repository.display();
                let what = "a directory .git in it or above, or that of a worktree";
                io::Error::other(format!("{shown} has no repository of git that knows it: {what}"))
            };
            let common = GitDirs::find(&self.repository).ok_or_else(none)?.common;
            let write = vec![common, self.dir.clone(), home.0.clone()];
            let wall = Wall { write, read: vec![self.repository.clone()], own: own.clone() };
            wall.around(myself, &mut command);
        }
        let ran = command.run(None, &mut || false).map_err(io::Error::other);
        // What git ran may have left its group; it has no business here any more.
        end_leftovers(CALL_VARIABLE, &shown, Duration::ZERO);
        let ran = ran?;
        match ran.ended {
            Ended::Exit(0) => Ok(ran.output.text()),
            _ => Err(io::Error::other(format!("git: {}", ran.output.text().trim()))),
        }
    }
}

/// Whether git was killed before it had checked everything out: what is missing would look as if it had been deleted.
fn is_half_made(path: &Path) -> bool {
    let lock = GitDirs::of(path).map(|dirs| dirs.own.join("locked"));
    lock.and_then(|lock| std::fs::read_to_string(lock).ok()).is_some_and(|why| why.trim() == "initializing")
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

/// A worktree that is where its name says. What git ran could write here: a link in its place would have an agent work elsewhere.
fn genuine(path: PathBuf) -> io::Result<PathBuf> {
    match path.symlink_metadata()?.is_dir() {
        true => Ok(path),
        false => Err(io::Error::other(format!("{} is not a directory", path.display()))),
    }
}

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

    fn repository() -> (tempfile::TempDir, Worktrees) {
        let dir = tempfile::tempdir().unwrap();
        let repository = dir.path().join("project");
        std::fs::create_dir(&repository).unwrap();
        let trees = Worktrees::new(&repository, None);
        trees.git(&["init", "-q", "-b", "main"]).unwrap();
        trees.git(&["config", "user.email", "a@example.org"]).unwrap();
        trees.git(&["config", "user.name", "A"]).unwrap();
        std::fs::write(repository.join("a.txt"), "a\n").unwrap();
        trees.git(&["add", "."]).unwrap();
        trees.git(&["commit", "-q", "-m", "a"]).unwrap();
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
        let branch = trees.git_in(&path, &["branch", "--show-current"]).unwrap();
        assert_eq!(branch.trim(), "baton/TASK-2026-02-09-001");
    }

    #[test]
    fn unsaved_work_is_never_removed() {
        let (_dir, trees) = repository();
        let path = trees.open(&id()).unwrap();
        std::fs::write(path.join("new.txt"), "new\n").unwrap();
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains("not committed")));
        trees.git_in(&path, &["add", "."]).unwrap();
        trees.git_in(&path, &["commit", "-q", "-m", "new"]).unwrap();
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains("not merged")));
        assert!(path.join("new.txt").exists());
        trees.git(&["merge", "-q", "baton/TASK-2026-02-09-001"]).unwrap();
        // What is committed beside the branch is work too.
        trees.git_in(&path, &["checkout", "-q", "--detach"]).unwrap();
        std::fs::write(path.join("beside.txt"), "beside\n").unwrap();
        trees.git_in(&path, &["add", "."]).unwrap();
        trees.git_in(&path, &["commit", "-q", "-m", "beside"]).unwrap();
        let beside = trees.git_in(&path, &["rev-parse", "HEAD"]).unwrap();
        assert!(matches!(trees.close(&id()).unwrap(), Removed::Kept(why) if why.contains(beside.trim())));
        trees.git(&["merge", "-q", beside.trim()]).unwrap();
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
        assert!(path.join("a.txt").exists() && !is_half_made(&path));
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
        trees.git(&["add", "."]).unwrap();
        trees.git(&["commit", "-q", "-m", "b"]).unwrap();
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
        trees.git_in(&path, &["add", "."]).unwrap();
        trees.git_in(&path, &["commit", "-q", "-m", "b"]).unwrap();
        std::fs::remove_dir_all(&path).unwrap();
        assert_eq!(trees.open(&id()).unwrap(), path);
        assert!(path.join("b.txt").exists(), "what was committed is there");
    }
}

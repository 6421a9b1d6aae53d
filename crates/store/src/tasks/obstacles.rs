//! What lies in the place of a file or directory of Baton's own: a link, a pipe, a file where a directory belongs.
//!
//! It is found without being followed, and goes to `quarantine/` as it is: never read, never deleted. What belongs in its place is a projection, and is
//! made anew from the ledger. Nothing here touches `events/`, `artifacts/`, `checkpoints/` or `keys/`, which are none.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use baton_core::task::Status;

use super::files::SPARE_DIR;
use super::tree::{Found, Tree};
use crate::disk::unfinished_name;

const QUARANTINE: &str = "quarantine";
const INDEX: &str = "index";
const RUNS: &str = "runs";
const NOTIFICATIONS: &str = "notifications";

/// What a path should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    File,
    Dir,
}

/// Something else in its place. The path is relative to the data directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Obstacle {
    pub path: String,
    pub expected: Expected,
    pub found: Found,
}

/// The same as an error: nothing is done until it is out of the way.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{} is not {expected}: {} is in its place", path.display(), kind(*found))]
pub struct InTheWay {
    pub path: PathBuf,
    pub expected: Expected,
    pub found: Found,
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Expected::File => "a file",
            Expected::Dir => "a directory",
        })
    }
}

/// What was found, in a few words.
pub fn kind(found: Found) -> &'static str {
    match found {
        Found::File(_) => "a file",
        Found::Dir => "a directory",
        Found::Other => "a link, a pipe or a device",
    }
}

impl Obstacle {
    /// As an error about a data directory.
    pub fn at(&self, root: &Path) -> InTheWay {
        InTheWay { path: root.join(&self.path), expected: self.expected, found: self.found }
    }

    /// Whether nothing is written until it is gone. What lies in the place of one run is moved aside by whoever writes the run, and without
    /// notifications there is still a ledger.
    pub fn stops_writing(&self) -> bool {
        !self.is_of(NOTIFICATIONS) && (self.path == RUNS || !self.is_of(RUNS))
    }

    /// Whether it is this path, or below it.
    fn is_of(&self, dir: &str) -> bool {
        Path::new(&self.path).starts_with(dir)
    }

    /// Whether it stands in the way of whoever wants to use this path.
    pub fn blocks(&self, path: &str) -> bool {
        Path::new(path).starts_with(&self.path)
    }

    /// Moves it into `quarantine/`, makes the directory that belongs there, and gives its name in `quarantine/`.
    ///
    /// For the owner of the data directory. A crash on the way leaves it in the one place or the other.
    pub fn clear(&self, tree: &dyn Tree) -> io::Result<String> {
        let name = unfinished_name(&self.path.replace('/', "."));
        let name = name.trim_start_matches('.').trim_end_matches(".tmp").to_owned();
        let kept = format!("{QUARANTINE}/{name}");
        if self.path == QUARANTINE {
            // It cannot be moved into itself.
            tree.rename(QUARANTINE, &name)?;
            tree.make_dir(QUARANTINE)?;
            tree.rename(&name, &kept)?;
        } else {
            tree.make_dir(QUARANTINE)?;
            tree.rename(&self.path, &kept)?;
        }
        match self.expected {
            Expected::Dir => tree.make_dir(&self.path)?,
            Expected::File => {}
        }
        Ok(name)
    }
}

/// What is in the way of everybody who writes: in the place of `quarantine/`, and of what the index is made of.
pub fn of_index(tree: &dyn Tree) -> Vec<Obstacle> {
    let mut found = of_ledger(tree);
    found.extend(inside(tree, INDEX, Expected::File));
    found
}

/// What is in the place of the directories without which nothing opens.
pub fn of_ledger(tree: &dyn Tree) -> Vec<Obstacle> {
    of_dirs(tree, [QUARANTINE, INDEX])
}

/// What is in the way of whoever writes the files of tasks.
pub fn of_tasks(tree: &dyn Tree) -> Vec<Obstacle> {
    let folders: Vec<String> = Status::ALL.iter().map(|status| format!("tasks/{status}")).collect();
    let dirs = ["tasks", RUNS, SPARE_DIR].into_iter().chain(folders.iter().map(String::as_str));
    of_dirs(tree, dirs)
}

/// What is in the way of notifications.
pub fn of_notifications(tree: &dyn Tree) -> Vec<Obstacle> {
    of_dirs(tree, [NOTIFICATIONS, "notifications/outbox", "notifications/dead", "notifications/sending"])
}

/// Everything that can be moved aside. A directory comes before what is in it; what is behind an obstacle is not looked at.
pub fn all(tree: &dyn Tree) -> Vec<Obstacle> {
    let mut found = of_index(tree);
    found.extend(of_tasks(tree));
    found.extend(inside(tree, RUNS, Expected::Dir));
    found.extend(of_notifications(tree));
    found
}

fn of_dirs<'a>(tree: &dyn Tree, dirs: impl IntoIterator<Item = &'a str>) -> Vec<Obstacle> {
    dirs.into_iter().filter_map(|dir| of(tree, dir.to_owned(), Expected::Dir)).collect()
}

fn inside(tree: &dyn Tree, dir: &str, expected: Expected) -> Vec<Obstacle> {
    let mut names = tree.list(dir).unwrap_or_default();
    names.sort();
    names.into_iter().filter_map(|name| of(tree, format!("{dir}/{name}"), expected)).collect()
}

fn of(tree: &dyn Tree, path: String, expected: Expected) -> Option<Obstacle> {
    // What cannot be looked at lies behind another obstacle, or its rights are gone: whoever uses it says so.
    let found = tree.look(&path).ok().flatten()?;
    let fits = matches!((expected, found), (Expected::File, Found::File(_)) | (Expected::Dir, Found::Dir));
    (!fits).then_some(Obstacle { path, expected, found })
}

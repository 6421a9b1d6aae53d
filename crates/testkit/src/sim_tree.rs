//! Files of tasks in memory: nothing is ever synced, so a power cut takes back the last changes of names and leaves contents cut short.
//!
//! Shares its count of operations with a [`SimDisk`], so that one crash can be put between any two effects of either.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_store::tasks::tree::{Found, Stamp, Tree};

use crate::rng::Rng;
use crate::sim_disk::SimDisk;

/// Changes of names that a power cut can take back, at most.
const UNCOMMITTED_MAX: usize = 40;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Dir,
    File { bytes: Vec<u8>, stamp: Stamp },
}

type Nodes = BTreeMap<String, Node>;

/// What was at the paths that one operation changed.
type Change = Vec<(String, Option<Node>)>;

impl Inner {
    /// Puts something at a path, or takes it away, and remembers what was there.
    fn set(&mut self, change: &mut Change, path: String, node: Option<Node>) {
        let before = match node {
            Some(node) => self.nodes.insert(path.clone(), node),
            None => self.nodes.remove(&path),
        };
        change.push((path, before));
    }

    /// Takes a node and everything below it out.
    fn take(&mut self, change: &mut Change, path: &str) -> io::Result<Vec<(String, Node)>> {
        let below = format!("{path}/");
        let names: Vec<String> =
            self.nodes.keys().filter(|name| *name == path || name.starts_with(&below)).cloned().collect();
        if names.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let taken = names.iter().filter_map(|name| self.nodes.get_key_value(name));
        let taken = taken.map(|(name, node)| (name.clone(), node.clone())).collect();
        names.into_iter().for_each(|name| self.set(change, name, None));
        Ok(taken)
    }

    fn put(&mut self, change: &mut Change, taken: Vec<(String, Node)>, from: &str, to: &str) {
        for (name, node) in taken {
            self.set(change, format!("{to}{}", &name[from.len()..]), Some(node));
        }
    }
}

#[derive(Debug)]
struct Inner {
    nodes: Nodes,
    /// What each of the last changes replaced, the newest last.
    before: Vec<Change>,
    next: u64,
    /// Files whose content was changed in place: a power cut may leave any part of it.
    rewritten: BTreeSet<u64>,
}

/// The tree; clones share it.
#[derive(Debug, Clone)]
pub struct SimTree {
    inner: Arc<Mutex<Inner>>,
    disk: SimDisk,
}

impl SimTree {
    pub fn new(disk: &SimDisk) -> Self {
        SimTree::of(disk, BTreeMap::from([(".".to_owned(), Node::Dir)]), 1)
    }

    fn of(disk: &SimDisk, nodes: Nodes, next: u64) -> Self {
        SimTree {
            inner: Arc::new(Mutex::new(Inner {
                nodes,
                before: Vec::new(),
                next,
                rewritten: BTreeSet::new(),
            })),
            disk: disk.clone(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is found after the process alone died.
    #[must_use]
    pub fn after_process_death(&self, disk: &SimDisk) -> SimTree {
        let inner = self.lock();
        SimTree::of(disk, inner.nodes.clone(), inner.next)
    }

    /// What is found after a power cut: the names as they were some changes ago, and contents since then cut short.
    #[must_use]
    pub fn after_power_cut(&self, disk: &SimDisk, rng: &mut Rng) -> SimTree {
        let inner = self.lock();
        let back = rng.below(inner.before.len() as u64 + 1) as usize;
        let undo = |nodes: &mut Nodes, change: &Change| {
            for (path, node) in change.iter().rev() {
                match node {
                    Some(node) => drop(nodes.insert(path.clone(), node.clone())),
                    None => drop(nodes.remove(path)),
                }
            }
        };
        let mut nodes = inner.nodes.clone();
        inner.before.iter().rev().take(back).for_each(|change| undo(&mut nodes, change));
        let mut oldest = nodes.clone();
        inner.before.iter().rev().skip(back).for_each(|change| undo(&mut oldest, change));
        let settled: BTreeSet<u64> = oldest.values().filter_map(inode).collect();
        let mut next = inner.next;
        for node in nodes.values_mut() {
            if let Node::File { bytes, stamp } = node
                && (!settled.contains(&stamp.inode) || inner.rewritten.contains(&stamp.inode))
                && rng.chance(3)
            {
                match rng.below(3) {
                    0 => bytes.clear(),
                    1 => bytes.truncate(rng.below(bytes.len() as u64 + 1) as usize),
                    _ => bytes.fill(0),
                }
                next += 1;
                *stamp =
                    Stamp { bytes: bytes.len() as u64, modified_ns: next.cast_signed(), inode: stamp.inode };
            }
        }
        SimTree::of(disk, nodes, next)
    }

    /// Changes a file as a person does, behind Baton's back. Gives whether it is there.
    pub fn edit(&self, path: &str, change: impl FnOnce(&str) -> String) -> bool {
        let mut inner = self.lock();
        inner.next += 1;
        let now = inner.next;
        let Some(Node::File { bytes, stamp }) = inner.nodes.get_mut(path) else { return false };
        let text = String::from_utf8_lossy(bytes).into_owned();
        *bytes = change(&text).into_bytes();
        *stamp = Stamp { bytes: bytes.len() as u64, modified_ns: now.cast_signed(), inode: now };
        // A person's save is one that reached the disk.
        inner.before.clear();
        true
    }

    /// Moves a file as a person does.
    pub fn carry(&self, from: &str, to: &str) -> bool {
        let mut inner = self.lock();
        let Some(node) = inner.nodes.remove(from) else { return false };
        inner.nodes.insert(to.to_owned(), node);
        inner.before.clear();
        true
    }

    /// Every path below a prefix.
    pub fn paths(&self, prefix: &str) -> Vec<String> {
        self.lock().nodes.keys().filter(|path| path.starts_with(prefix)).cloned().collect()
    }

    /// What a file holds.
    pub fn content(&self, path: &str) -> Option<Vec<u8>> {
        match self.lock().nodes.get(path)? {
            Node::File { bytes, .. } => Some(bytes.clone()),
            Node::Dir => None,
        }
    }

    fn change<T>(&self, act: impl FnOnce(&mut Inner, &mut Change) -> io::Result<T>) -> io::Result<T> {
        self.disk.count_step()?;
        let mut inner = self.lock();
        let mut change = Change::new();
        let done = act(&mut inner, &mut change)?;
        inner.before.push(change);
        if inner.before.len() > UNCOMMITTED_MAX {
            inner.before.remove(0);
        }
        Ok(done)
    }
}

fn inode(node: &Node) -> Option<u64> {
    match node {
        Node::File { stamp, .. } => Some(stamp.inode),
        Node::Dir => None,
    }
}

fn parent(path: &str) -> &str {
    path.rsplit_once('/').map_or(".", |(dir, _)| dir)
}

fn expect_dir(nodes: &Nodes, path: &str) -> io::Result<()> {
    match nodes.get(parent(path)) {
        Some(Node::Dir) => Ok(()),
        Some(Node::File { .. }) => Err(io::ErrorKind::NotADirectory.into()),
        None => Err(io::ErrorKind::NotFound.into()),
    }
}

impl Tree for SimTree {
    fn look(&self, path: &str) -> io::Result<Option<Found>> {
        self.disk.expect_alive()?;
        Ok(self.lock().nodes.get(path).map(|node| match node {
            Node::Dir => Found::Dir,
            Node::File { stamp, .. } => Found::File(*stamp),
        }))
    }

    fn read(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, Stamp)> {
        self.disk.expect_alive()?;
        match self.lock().nodes.get(path) {
            Some(Node::File { bytes, .. }) if bytes.len() as u64 > max => {
                Err(io::ErrorKind::FileTooLarge.into())
            }
            Some(Node::File { bytes, stamp }) => Ok((bytes.clone(), *stamp)),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        self.disk.expect_alive()?;
        let inner = self.lock();
        let names = inner.nodes.keys().filter(|path| path.as_str() != "." && parent(path) == dir);
        Ok(names
            .map(|path| path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name).to_owned())
            .collect())
    }

    fn create(&self, path: &str, bytes: &[u8]) -> io::Result<Stamp> {
        self.change(|inner, change| {
            expect_dir(&inner.nodes, path)?;
            if inner.nodes.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            inner.next += 1;
            let stamp =
                Stamp { bytes: bytes.len() as u64, modified_ns: inner.next.cast_signed(), inode: inner.next };
            inner.set(change, path.to_owned(), Some(Node::File { bytes: bytes.to_vec(), stamp }));
            Ok(stamp)
        })
    }

    fn rewrite(&self, path: &str, bytes: &[u8], known: Option<Stamp>) -> io::Result<Stamp> {
        self.change(|inner, change| {
            inner.next += 1;
            let now = inner.next;
            let Some(Node::File { stamp, .. }) = inner.nodes.get(path) else {
                return Err(io::ErrorKind::NotFound.into());
            };
            if known.is_some_and(|known| known != *stamp) {
                return Err(io::ErrorKind::ResourceBusy.into());
            }
            let stamp =
                Stamp { bytes: bytes.len() as u64, modified_ns: now.cast_signed(), inode: stamp.inode };
            inner.set(change, path.to_owned(), Some(Node::File { bytes: bytes.to_vec(), stamp }));
            inner.rewritten.insert(stamp.inode);
            Ok(stamp)
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|inner, change| {
            expect_dir(&inner.nodes, to)?;
            if !inner.nodes.contains_key(from) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if inner.nodes.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let taken = inner.take(change, from)?;
            inner.put(change, taken, from, to);
            Ok(())
        })
    }

    fn exchange(&self, a: &str, b: &str) -> io::Result<()> {
        self.change(|inner, change| {
            let (at_a, at_b) = (inner.take(change, a)?, inner.take(change, b)?);
            inner.put(change, at_a, a, b);
            inner.put(change, at_b, b, a);
            Ok(())
        })
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        if let Some(found) = self.look(dir)? {
            return if found == Found::Dir { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) };
        }
        self.change(|inner, change| {
            expect_dir(&inner.nodes, dir)?;
            inner.set(change, dir.to_owned(), Some(Node::Dir));
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.change(|inner, change| match inner.nodes.get(path) {
            Some(Node::File { .. }) => {
                inner.set(change, path.to_owned(), None);
                Ok(())
            }
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn now_ns(&self) -> i64 {
        // Half of the time whatever is there is long unchanged; otherwise it was written a moment ago.
        let next = self.lock().next.cast_signed();
        if next % 2 == 0 { next } else { next.saturating_add(1 << 40) }
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        self.change(|inner, change| {
            let below = format!("{dir}/");
            if inner.nodes.keys().any(|path| path.starts_with(&below)) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            if !inner.nodes.contains_key(dir) {
                return Err(io::ErrorKind::NotFound.into());
            }
            inner.set(change, dir.to_owned(), None);
            Ok(())
        })
    }
}

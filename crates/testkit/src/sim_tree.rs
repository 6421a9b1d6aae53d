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

#[derive(Debug)]
struct Inner {
    nodes: Nodes,
    /// How it was before each of the last changes.
    before: Vec<Nodes>,
    next: u64,
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
        SimTree { inner: Arc::new(Mutex::new(Inner { nodes, before: Vec::new(), next })), disk: disk.clone() }
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
        let mut nodes = match back {
            0 => inner.nodes.clone(),
            back => inner.before[inner.before.len() - back].clone(),
        };
        let oldest = inner.before.first().cloned().unwrap_or_default();
        let settled: BTreeSet<u64> = oldest.values().filter_map(inode).collect();
        let mut next = inner.next;
        for node in nodes.values_mut() {
            if let Node::File { bytes, stamp } = node
                && !settled.contains(&stamp.inode)
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

    fn change<T>(&self, change: impl FnOnce(&mut Inner) -> io::Result<T>) -> io::Result<T> {
        self.disk.count_step()?;
        let mut inner = self.lock();
        let before = inner.nodes.clone();
        let done = change(&mut inner)?;
        inner.before.push(before);
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

/// Takes a node and everything below it out.
fn take(nodes: &mut Nodes, path: &str) -> io::Result<Vec<(String, Node)>> {
    let below = format!("{path}/");
    let names: Vec<String> =
        nodes.keys().filter(|name| *name == path || name.starts_with(&below)).cloned().collect();
    if names.is_empty() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(names.into_iter().filter_map(|name| nodes.remove_entry(&name)).collect())
}

fn put(nodes: &mut Nodes, taken: Vec<(String, Node)>, from: &str, to: &str) {
    nodes.extend(taken.into_iter().map(|(name, node)| (format!("{to}{}", &name[from.len()..]), node)));
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
            .filter_map(|path| Some(path.rsplit_once('/').map_or(path.as_str(), |(_, name)| name).to_owned()))
            .collect())
    }

    fn create(&self, path: &str, bytes: &[u8]) -> io::Result<Stamp> {
        self.change(|inner| {
            expect_dir(&inner.nodes, path)?;
            if inner.nodes.contains_key(path) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            inner.next += 1;
            let stamp =
                Stamp { bytes: bytes.len() as u64, modified_ns: inner.next.cast_signed(), inode: inner.next };
            inner.nodes.insert(path.to_owned(), Node::File { bytes: bytes.to_vec(), stamp });
            Ok(stamp)
        })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.change(|inner| {
            expect_dir(&inner.nodes, to)?;
            if !inner.nodes.contains_key(from) {
                return Err(io::ErrorKind::NotFound.into());
            }
            if inner.nodes.contains_key(to) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            let taken = take(&mut inner.nodes, from)?;
            put(&mut inner.nodes, taken, from, to);
            Ok(())
        })
    }

    fn exchange(&self, a: &str, b: &str) -> io::Result<()> {
        self.change(|inner| {
            let (at_a, at_b) = (take(&mut inner.nodes, a)?, take(&mut inner.nodes, b)?);
            put(&mut inner.nodes, at_a, a, b);
            put(&mut inner.nodes, at_b, b, a);
            Ok(())
        })
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        if let Some(found) = self.look(dir)? {
            return if found == Found::Dir { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) };
        }
        self.change(|inner| {
            expect_dir(&inner.nodes, dir)?;
            inner.nodes.insert(dir.to_owned(), Node::Dir);
            Ok(())
        })
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        self.change(|inner| match inner.nodes.get(path) {
            Some(Node::File { .. }) => Ok(drop(inner.nodes.remove(path))),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        })
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        self.change(|inner| {
            let below = format!("{dir}/");
            if inner.nodes.keys().any(|path| path.starts_with(&below)) {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            inner.nodes.remove(dir).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
        })
    }
}

//! A disk in memory that keeps only what was synced: after a crash, every write that was not synced is there in part, or not at all.
//!
//! It can also fail at a chosen operation: a short write, an error, a full disk, a sync that fails and loses pages, sudden death.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_store::disk::{Disk, DiskFile, Mode};

use crate::rng::Rng;

/// What goes wrong at an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An input/output error; nothing of a write is done.
    Error,
    /// The disk is full; a write does its first half.
    Full,
    /// A write does its first half and says so.
    Short,
    /// The machine stops before the operation.
    Crash,
}

/// The disk; clones share it.
#[derive(Debug, Clone)]
pub struct SimDisk {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    files: BTreeMap<u64, FileState>,
    names: BTreeMap<PathBuf, u64>,
    durable_names: BTreeMap<PathBuf, u64>,
    /// Durable as soon as they are made, as [`Disk::create_dir_all`] promises.
    dirs: BTreeSet<PathBuf>,
    next_file: u64,
    rng: Rng,
    operations: u64,
    faults: BTreeMap<u64, Fault>,
    is_dead: bool,
    capacity: Option<u64>,
}

#[derive(Debug, Clone, Default)]
struct FileState {
    current: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
}

/// A change that is not synced yet.
#[derive(Debug, Clone)]
enum Pending {
    Write { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

impl Pending {
    fn apply(self, bytes: &mut Vec<u8>) {
        match self {
            Pending::Write { offset, bytes: written } => put(bytes, offset, &written),
            Pending::Length(length) => bytes.resize(length, 0),
        }
    }
}

/// Writes reach the platter in pieces of this size, in any order.
const SECTOR: usize = 512;

impl SimDisk {
    pub fn new(seed: u64) -> Self {
        SimDisk {
            inner: Arc::new(Mutex::new(Inner {
                files: BTreeMap::new(),
                names: BTreeMap::new(),
                durable_names: BTreeMap::new(),
                dirs: BTreeSet::new(),
                next_file: 0,
                rng: Rng::new(seed),
                operations: 0,
                faults: BTreeMap::new(),
                is_dead: false,
                capacity: None,
            })),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the operation after this many more go wrong.
    pub fn fail_after(&self, operations: u64, fault: Fault) {
        let mut inner = self.lock();
        let at = inner.operations + operations;
        inner.faults.insert(at, fault);
    }

    /// Bounds the sum of all files' lengths, or lifts the bound.
    pub fn set_capacity(&self, bytes: Option<u64>) {
        self.lock().capacity = bytes;
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.lock().used()
    }

    pub fn is_dead(&self) -> bool {
        self.lock().is_dead
    }

    /// Counts an operation of something that fails together with this disk.
    pub fn count_step(&self) -> io::Result<()> {
        self.lock().whole_step()
    }

    /// Refuses everything once the machine is off.
    pub fn expect_alive(&self) -> io::Result<()> {
        self.lock().alive()
    }

    /// Number of writes, syncs and changes of names so far.
    pub fn operations(&self) -> u64 {
        self.lock().operations
    }

    /// What a machine finds that starts again after a power cut: synced bytes, and an arbitrary part of the rest.
    #[must_use]
    pub fn after_power_cut(&self) -> SimDisk {
        let mut inner = self.lock();
        let Inner { files, names, durable_names, rng, .. } = &mut *inner;
        let mut kept_names = durable_names.clone();
        for (path, file) in names.iter() {
            if durable_names.get(path) != Some(file) && rng.chance(2) {
                // A rename takes the old name away in the same step.
                kept_names.retain(|_, kept| kept != file);
                kept_names.insert(path.clone(), *file);
            }
        }
        let kept_files = files
            .iter()
            .map(|(id, state)| {
                let bytes = state.survive(rng);
                (*id, FileState { current: bytes.clone(), durable: bytes, pending: Vec::new() })
            })
            .collect();
        SimDisk {
            inner: Arc::new(Mutex::new(Inner {
                files: kept_files,
                names: kept_names.clone(),
                durable_names: kept_names,
                dirs: inner.dirs.clone(),
                next_file: inner.next_file,
                rng: Rng::new(inner.rng.number()),
                operations: 0,
                faults: BTreeMap::new(),
                is_dead: false,
                capacity: inner.capacity,
            })),
        }
    }

    /// What is found after the process alone died: everything that was handed to the operating system.
    #[must_use]
    pub fn after_process_death(&self) -> SimDisk {
        let inner = self.lock();
        SimDisk {
            inner: Arc::new(Mutex::new(Inner {
                files: inner.files.clone(),
                names: inner.names.clone(),
                durable_names: inner.durable_names.clone(),
                dirs: inner.dirs.clone(),
                next_file: inner.next_file,
                rng: inner.rng.clone(),
                operations: 0,
                faults: BTreeMap::new(),
                is_dead: false,
                capacity: inner.capacity,
            })),
        }
    }
}

impl FileState {
    /// The synced bytes with an arbitrary part of the unsynced changes, sector by sector.
    fn survive(&self, rng: &mut Rng) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for pending in &self.pending {
            match pending {
                Pending::Length(length) => {
                    if rng.chance(2) {
                        bytes.resize(*length, 0);
                    }
                }
                Pending::Write { offset, bytes: written } => {
                    let mut at = 0;
                    while at < written.len() {
                        let end = ((offset + at) / SECTOR + 1) * SECTOR - offset;
                        let end = end.min(written.len());
                        if rng.chance(2) {
                            put(&mut bytes, offset + at, &written[at..end]);
                        }
                        at = end;
                    }
                }
            }
        }
        bytes
    }
}

fn put(bytes: &mut Vec<u8>, offset: usize, part: &[u8]) {
    if bytes.len() < offset + part.len() {
        bytes.resize(offset + part.len(), 0);
    }
    bytes[offset..offset + part.len()].copy_from_slice(part);
}

fn eio() -> io::Error {
    io::Error::other("input/output error (injected)")
}

impl Inner {
    fn used(&self) -> u64 {
        self.files.values().map(|file| file.current.len() as u64).sum()
    }

    fn alive(&self) -> io::Result<()> {
        if self.is_dead { Err(io::Error::other("the machine is off")) } else { Ok(()) }
    }

    /// A file can only be where its directory was made.
    fn expect_dir(&self, path: &Path) -> io::Result<()> {
        match path.parent().is_some_and(|dir| self.dirs.contains(dir)) {
            true => Ok(()),
            false => Err(io::ErrorKind::NotFound.into()),
        }
    }

    /// Counts an operation that changes something, and gives what goes wrong with it.
    fn step(&mut self) -> io::Result<Option<Fault>> {
        self.alive()?;
        self.operations += 1;
        let fault = self.faults.remove(&self.operations);
        if fault == Some(Fault::Crash) {
            self.is_dead = true;
            return Err(io::Error::other("the machine is off"));
        }
        Ok(fault)
    }

    /// A step that is done or not.
    fn whole_step(&mut self) -> io::Result<()> {
        match self.step()? {
            None | Some(Fault::Short) => Ok(()),
            Some(Fault::Full) => Err(io::ErrorKind::StorageFull.into()),
            Some(Fault::Error | Fault::Crash) => Err(eio()),
        }
    }
}

/// An open file of a [`SimDisk`].
#[derive(Debug)]
struct SimFile {
    disk: SimDisk,
    id: u64,
}

impl Disk for SimDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut inner = self.lock();
        inner.alive()?;
        let id = match (inner.names.get(path).copied(), mode) {
            (Some(_), Mode::CreateNew) => return Err(io::ErrorKind::AlreadyExists.into()),
            (Some(id), _) => id,
            (None, Mode::Read | Mode::Write) => return Err(io::ErrorKind::NotFound.into()),
            (None, Mode::Create | Mode::CreateNew) => {
                inner.expect_dir(path)?;
                inner.whole_step()?;
                inner.next_file += 1;
                let id = inner.next_file;
                inner.files.insert(id, FileState::default());
                inner.names.insert(path.to_owned(), id);
                id
            }
        };
        Ok(Arc::new(SimFile { disk: self.clone(), id }))
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let inner = self.lock();
        inner.alive()?;
        let names = inner.names.keys().filter(|path| path.parent() == Some(dir));
        Ok(names.filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned())).collect())
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.alive()?;
        if !inner.dirs.contains(dir) {
            inner.whole_step()?;
            inner.dirs.extend(dir.ancestors().map(Path::to_owned));
        }
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.expect_dir(to)?;
        inner.whole_step()?;
        let id = inner.names.remove(from).ok_or(io::ErrorKind::NotFound)?;
        inner.names.insert(to.to_owned(), id);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.whole_step()?;
        inner.names.remove(path).map(drop).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        let mut inner = self.lock();
        inner.whole_step()?;
        let is_inside = |path: &PathBuf| path.parent() == Some(dir);
        inner.durable_names.retain(|path, _| !is_inside(path));
        let now: Vec<_> =
            inner.names.iter().filter(|(path, _)| is_inside(path)).map(|(p, i)| (p.clone(), *i)).collect();
        inner.durable_names.extend(now);
        Ok(())
    }
}

impl DiskFile for SimFile {
    fn length(&self) -> io::Result<u64> {
        let inner = self.disk.lock();
        inner.alive()?;
        Ok(inner.files.get(&self.id).map_or(0, |file| file.current.len() as u64))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let inner = self.disk.lock();
        inner.alive()?;
        let bytes = inner.files.get(&self.id).map_or(&[][..], |file| &file.current);
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let count = buffer.len().min(bytes.len() - from);
        buffer[..count].copy_from_slice(&bytes[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut inner = self.disk.lock();
        let fault = inner.step()?;
        let offset = usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput)?;
        let length = inner.files.get(&self.id).map_or(0, |file| file.current.len());
        let growth = (offset + bytes.len()).saturating_sub(length) as u64;
        let over = inner.capacity.map_or(0, |capacity| (inner.used() + growth).saturating_sub(capacity));
        let mut count = match fault {
            None => bytes.len(),
            Some(Fault::Error | Fault::Crash) => return Err(eio()),
            Some(Fault::Full | Fault::Short) => (bytes.len() / 2).max(1),
        };
        if over > 0 {
            count = count.min(bytes.len().saturating_sub(over as usize));
            if count == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
        }
        let Some(file) = inner.files.get_mut(&self.id) else { return Err(eio()) };
        put(&mut file.current, offset, &bytes[..count]);
        file.pending.push(Pending::Write { offset, bytes: bytes[..count].to_vec() });
        if fault == Some(Fault::Full) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        Ok(count)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        let mut inner = self.disk.lock();
        inner.whole_step()?;
        let length = usize::try_from(length).map_err(|_| io::ErrorKind::InvalidInput)?;
        let Some(file) = inner.files.get_mut(&self.id) else { return Err(eio()) };
        file.current.resize(length, 0);
        file.pending.push(Pending::Length(length));
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut inner = self.disk.lock();
        let fault = inner.step()?;
        let Inner { files, rng, .. } = &mut *inner;
        let Some(file) = files.get_mut(&self.id) else { return Err(eio()) };
        if matches!(fault, Some(Fault::Error | Fault::Full)) {
            // The kernel reports the error once and marks the pages clean: what did not reach the disk never will.
            file.durable = file.survive(rng);
            file.pending.clear();
            return Err(if fault == Some(Fault::Full) { io::ErrorKind::StorageFull.into() } else { eio() });
        }
        // Only what was written since: pages that an earlier, failed sync marked clean stay as they are.
        let mut pending = std::mem::take(&mut file.pending);
        pending.drain(..).for_each(|change| change.apply(&mut file.durable));
        Ok(())
    }
}

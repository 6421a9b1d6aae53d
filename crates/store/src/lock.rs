//! The owner's lock: one process at a time writes. A dead owner's lock is free at once, because the kernel holds it, not a file.
//!
//! Whoever wants the ledger first takes the turn (a lock on the data directory itself), then ownership, then gives the turn back. An owner that
//! lets go and at once wants more finds the turn taken by whoever waits, and comes after it.
//!
//! Ownership is a lock on two things: the file `lock`, which says who it is, and the directory of the segments, so that removing a lock file that
//! looks forgotten does not make a second owner.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::disk::{open_own, open_regular};
use crate::layout::Layout;

/// Held as long as this value lives; released by the kernel when the process ends, however it ends.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
    _segments: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the data directory is in use by process {pid} ({command}); waited {waited_ms} ms")]
    Held { pid: u32, command: String, waited_ms: u64 },
    #[error("cannot use the lock {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    /// Whoever waited found another way.
    #[error("no longer waiting for the data directory")]
    Left,
}

/// Who holds a lock, as the holder wrote it down. Only a hint for people: the kernel's lock is what counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    pub command: String,
}

/// How often a held lock is tried again, by how long one has waited, both in milliseconds: at once at first, then rarely, then ever more often,
/// so that of many who wait those win who have waited long.
const RETRY_MS: [(u64, u64); 4] = [(20, 2), (500, 15), (2_000, 4), (u64::MAX, 1)];

/// Whoever looks who owns the ledger holds the lock for a moment; nobody gives up for that.
const GRACE: Duration = Duration::from_millis(20);

impl OwnerLock {
    /// Takes the lock, waiting for at most `wait` while another process holds it.
    pub fn acquire(layout: &Layout, wait: Duration) -> Result<OwnerLock, Error> {
        OwnerLock::acquire_unless(layout, wait, &mut || false)
    }

    /// The same, but while it is held `leaves` is asked now and then; where it says yes, the wait ends with [`Error::Left`].
    pub fn acquire_unless(
        layout: &Layout,
        wait: Duration,
        leaves: &mut dyn FnMut() -> bool,
    ) -> Result<OwnerLock, Error> {
        let path = &layout.lock();
        let fail = |source| Error::Io { path: path.to_owned(), source };
        let start = Instant::now();
        let mut waiting = Waiting { path, start, wait: wait.max(GRACE), leaves };
        let turn = open_dir(layout.root())?;
        waiting.lock(&turn)?;
        let segments = open_dir(&layout.events())?;
        waiting.lock(&segments)?;
        loop {
            let file = open(path).map_err(fail)?;
            waiting.lock(&file)?;
            // Somebody may have replaced the file while we waited: then others lock another one.
            let is_current = |there: std::fs::Metadata| {
                file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
            };
            if std::fs::metadata(path).is_ok_and(is_current) {
                let mut lock = OwnerLock { file, _segments: segments };
                // Only a hint for people: on a full disk the lock holds all the same.
                let _ = lock.sign();
                return Ok(lock);
            }
        }
    }

    /// Writes down who holds it.
    fn sign(&mut self) -> io::Result<()> {
        let words = std::env::args_os().take(3).map(|word| word.to_string_lossy().into_owned());
        let command = words.collect::<Vec<_>>().join(" ");
        let command: String = command.chars().filter(|c| !c.is_control()).take(120).collect();
        self.file.set_len(0)?;
        self.file.seek(io::SeekFrom::Start(0))?;
        writeln!(self.file, "{}\n{command}", std::process::id())
    }
}

fn open_dir(path: &Path) -> Result<File, Error> {
    File::open(path).map_err(|source| Error::Io { path: path.to_owned(), source })
}

/// A wait for a lock with an end.
struct Waiting<'a> {
    path: &'a Path,
    start: Instant,
    wait: Duration,
    leaves: &'a mut dyn FnMut() -> bool,
}

impl Waiting<'_> {
    fn lock(&mut self, file: &File) -> Result<(), Error> {
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(()),
                Err(TryLockError::Error(source)) => {
                    return Err(Error::Io { path: self.path.to_owned(), source });
                }
                Err(TryLockError::WouldBlock) if (self.leaves)() => return Err(Error::Left),
                Err(TryLockError::WouldBlock) if self.start.elapsed() < self.wait => {
                    let waited = self.start.elapsed().as_millis();
                    let retry = RETRY_MS.iter().find(|(until, _)| waited < u128::from(*until));
                    std::thread::sleep(Duration::from_millis(retry.map_or(1, |(_, every)| *every)));
                }
                Err(TryLockError::WouldBlock) => {
                    let owner = read_owner(self.path).unwrap_or(Owner { pid: 0, command: "unknown".into() });
                    let waited_ms = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(Error::Held { pid: owner.pid, command: owner.command, waited_ms });
                }
            }
        }
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // The name is wiped while the lock is still held, so a stale name never stands beside a free lock.
        let _ = self.file.set_len(0);
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    open_own(options.read(true).write(true).create(true).truncate(false).mode(0o644), path)
}

fn read_owner(path: &Path) -> Option<Owner> {
    let mut text = String::new();
    open_regular(OpenOptions::new().read(true), path).ok()?.take(512).read_to_string(&mut text).ok()?;
    let (pid, command) = text.split_once('\n')?;
    Some(Owner { pid: pid.parse().ok()?, command: command.trim().to_owned() })
}

/// Who holds the lock now, without waiting; `None` where nobody does.
pub fn holder(layout: &Layout) -> io::Result<Option<Owner>> {
    let path = &layout.lock();
    for file in [open_regular(OpenOptions::new().read(true), path), File::open(layout.events())] {
        let file = match file {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Ok(Some(read_owner(path).unwrap_or(Owner { pid: 0, command: "unknown".into() })));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
    Ok(None)
}

//! The owner's lock: one process at a time writes. A dead owner's lock is free at once, because the kernel holds it, not a file.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Held as long as this value lives; released by the kernel when the process ends, however it ends.
#[derive(Debug)]
pub struct OwnerLock {
    file: File,
}

/// Why the lock was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the data directory is in use by process {pid} ({command}); waited {waited_ms} ms")]
    Held { pid: u32, command: String, waited_ms: u64 },
    #[error("cannot use the lock {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

/// Who holds a lock, as the holder wrote it down. Only a hint for people: the kernel's lock is what counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    pub pid: u32,
    pub command: String,
}

/// How often a held lock is tried again.
const RETRY: Duration = Duration::from_millis(10);

impl OwnerLock {
    /// Takes the lock, waiting for at most `wait` while another process holds it.
    pub fn acquire(path: &Path, wait: Duration) -> Result<OwnerLock, Error> {
        let fail = |source| Error::Io { path: path.to_owned(), source };
        let file = open(path).map_err(fail)?;
        let start = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(source)) => return Err(fail(source)),
                Err(TryLockError::WouldBlock) if start.elapsed() < wait => std::thread::sleep(RETRY),
                Err(TryLockError::WouldBlock) => {
                    let owner = read_owner(path).unwrap_or(Owner { pid: 0, command: "unknown".into() });
                    let waited_ms = u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX);
                    return Err(Error::Held { pid: owner.pid, command: owner.command, waited_ms });
                }
            }
        }
        let mut lock = OwnerLock { file };
        lock.sign().map_err(fail)?;
        Ok(lock)
    }

    /// Writes down who holds it.
    fn sign(&mut self) -> io::Result<()> {
        let command = std::env::args().take(3).collect::<Vec<_>>().join(" ");
        let command: String = command.chars().filter(|c| !c.is_control()).take(120).collect();
        self.file.set_len(0)?;
        self.file.seek(io::SeekFrom::Start(0))?;
        writeln!(self.file, "{}\n{command}", std::process::id())
    }
}

impl Drop for OwnerLock {
    fn drop(&mut self) {
        // The name is wiped while the lock is still held, so a stale name never stands beside a free lock.
        let _ = self.file.set_len(0);
    }
}

fn open(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o644).open(path)
}

fn read_owner(path: &Path) -> Option<Owner> {
    let mut text = String::new();
    File::open(path).ok()?.take(512).read_to_string(&mut text).ok()?;
    let (pid, command) = text.split_once('\n')?;
    Some(Owner { pid: pid.parse().ok()?, command: command.trim().to_owned() })
}

/// Who holds the lock now, without waiting; `None` where nobody does.
pub fn holder(path: &Path) -> io::Result<Option<Owner>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    match file.try_lock_shared() {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => {
            Ok(Some(read_owner(path).unwrap_or(Owner { pid: 0, command: "unknown".into() })))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

//! The files of tasks and runs, below one directory: projections, which nothing waits for and which are made again if they are lost.
//!
//! Agents and people write here too. So no path is followed through a symbolic link, nothing leaves the directory, and only regular files are read:
//! whoever puts a link, a pipe or a device in the place of a file gets an error, not Baton's hands.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, Stat, mkdirat, open, openat2,
    renameat_with, statat, unlinkat,
};

use super::writers::{FileId, open_for_writing};

/// How often a name is tried that somebody gives back at that very moment. Each try fails only where another one succeeded.
const CLAIM_TRIES_MAX: usize = 100;

/// How a file looked when it was last seen: another stamp is another content.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Stamp {
    pub bytes: u64,
    pub modified_ns: i64,
    pub inode: u64,
}

/// What is at a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    File(Stamp),
    Dir,
    /// A link, a pipe, a device: nothing of ours.
    Other,
}

/// Files below one directory. Paths are relative, with `/`; nothing is synced.
///
/// What breaks if an implementation lies: if `rename` replaces what is there, or `exchange` is not one step, a person's edit of that very moment is lost;
/// if a link is followed, an agent makes Baton write where the agent may not.
pub trait Tree: Send + Sync + fmt::Debug {
    /// What is there; `None` where nothing is.
    fn look(&self, path: &str) -> io::Result<Option<Found>>;
    /// Whether anything is there, asked as cheaply as possible: what it is, and whether it may be read, is not said.
    fn is_there(&self, path: &str) -> bool {
        self.look(path).is_ok_and(|found| found.is_some())
    }
    /// A whole file of at most `max` bytes, and how it looked when it was read.
    fn read(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, Stamp)>;
    /// The first `max` bytes of a file, and how it looked when they were read.
    fn read_start(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, Stamp)> {
        let (mut bytes, stamp) = self.read(path, u64::from(u32::MAX))?;
        bytes.truncate(usize::try_from(max).unwrap_or(usize::MAX));
        Ok((bytes, stamp))
    }
    /// Names in a directory, unordered; empty where there is none.
    fn list(&self, dir: &str) -> io::Result<Vec<String>>;
    /// Makes a new file; fails where there is one.
    fn create(&self, path: &str, bytes: &[u8]) -> io::Result<Stamp>;
    /// Replaces what a file holds, in place: no other file is made. A crash may leave a part of it. Fails with `ResourceBusy`, and changes
    /// nothing, where the file does not look as `known` says.
    fn rewrite(&self, path: &str, bytes: &[u8], known: Option<Stamp>) -> io::Result<Stamp>;
    /// Gives a file or directory another name; fails where there is one.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Lets two names change places.
    fn exchange(&self, a: &str, b: &str) -> io::Result<()>;
    /// Makes a directory; one that is there already is fine.
    fn make_dir(&self, dir: &str) -> io::Result<()>;
    fn remove(&self, path: &str) -> io::Result<()>;
    /// What the time is for whoever compares it with a stamp's.
    fn now_ns(&self) -> i64;
    /// Whether somebody has a file open for writing, as far as that can be known. A tree that only one process has is nobody else's.
    fn is_being_written(&self, path: &str) -> bool {
        let _ = path;
        false
    }
    /// Removes a directory that is empty.
    fn remove_dir(&self, dir: &str) -> io::Result<()>;
    /// Takes a name for one at a time, until what is given back is dropped or its process ends, however it ends; `None` while another has it.
    /// A tree that only one process has gives it to everybody.
    fn claim(&self, path: &str) -> io::Result<Option<Claim>> {
        let _ = path;
        Ok(Some(Claim { held: None }))
    }
}

/// A name that nobody else has. An empty file of that name lies there meanwhile.
#[derive(Debug)]
pub struct Claim {
    /// The directory, the name in it, and the file that the kernel's lock is on.
    held: Option<(OwnedFd, String, File)>,
}

impl Drop for Claim {
    fn drop(&mut self) {
        if let Some((dir, name, _locked)) = &self.held {
            // While the lock is still held: whoever waits for it finds that the name is gone, and makes it anew.
            let _ = unlinkat(dir, name.as_str(), AtFlags::empty());
        }
    }
}

/// A directory of the operating system.
#[derive(Debug)]
pub struct RealTree {
    root: OwnedFd,
    /// Who was writing when that was last looked at: many files at once are not worth as many looks.
    writers: Mutex<Option<Writers>>,
}

/// The files that were open for writing at a moment.
#[derive(Debug)]
struct Writers {
    at_ns: i64,
    files: BTreeSet<FileId>,
}

/// A file that changed longer ago than this is not asked after: whoever holds it open has stopped writing.
const WRITING_NS: i64 = 60_000_000_000;

/// How long it counts who was writing.
const WRITERS_NS: i64 = 100_000_000;

/// By how much a file's time may be behind the clock: the kernel stamps files with the last tick.
const TICK_NS: i64 = 20_000_000;

/// A path divided into its directory and its name.
fn divide(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or((".", path))
}

impl RealTree {
    pub fn open(root: &Path) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(RealTree { root: open(root, flags, Mode::empty())?, writers: Mutex::default() })
    }

    /// Opens something below, without following a link on the way.
    fn enter(&self, path: &str, flags: OFlags, mode: Mode) -> io::Result<OwnedFd> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        loop {
            match openat2(&self.root, path, flags, mode, resolve) {
                // Something was renamed on the way while the kernel looked.
                Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => {}
                opened => return Ok(opened?),
            }
        }
    }

    fn dir(&self, path: &str) -> io::Result<OwnedFd> {
        self.enter(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty())
    }
}

fn stamp(stat: &Stat) -> Stamp {
    Stamp {
        bytes: stat.st_size.unsigned_abs(),
        modified_ns: stat
            .st_mtime
            .saturating_mul(1_000_000_000)
            .saturating_add(stat.st_mtime_nsec.cast_signed()),
        inode: stat.st_ino,
    }
}

impl Tree for RealTree {
    fn look(&self, path: &str) -> io::Result<Option<Found>> {
        let (dir, name) = divide(path);
        let stat = match self.dir(dir) {
            Ok(dir) => match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => stat,
                Err(rustix::io::Errno::NOENT) => return Ok(None),
                Err(error) => return Err(error.into()),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Found::File(stamp(&stat)),
            FileType::Directory => Found::Dir,
            _ => Found::Other,
        }))
    }

    fn is_there(&self, path: &str) -> bool {
        statat(&self.root, path, AtFlags::SYMLINK_NOFOLLOW).is_ok()
    }

    fn read(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, Stamp)> {
        let (bytes, stamp) = self.read_start(path, max.saturating_add(1))?;
        if bytes.len() as u64 > max {
            let why = format!("more than {max} bytes");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
        }
        Ok((bytes, stamp))
    }

    fn read_start(&self, path: &str, max: u64) -> io::Result<(Vec<u8>, Stamp)> {
        let file = self.enter(path, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => {}
            FileType::Directory => return Err(io::ErrorKind::IsADirectory.into()),
            _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
        }
        let mut bytes = Vec::new();
        File::from(file).take(max).read_to_end(&mut bytes)?;
        Ok((bytes, stamp(&stat)))
    }

    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        let dir = match self.enter(dir, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            dir => dir?,
        };
        let mut names = Vec::new();
        for entry in Dir::new(dir)? {
            let name = entry?.file_name().to_string_lossy().into_owned();
            if name != "." && name != ".." {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn create(&self, path: &str, bytes: &[u8]) -> io::Result<Stamp> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL;
        let mut file = File::from(self.enter(path, flags, Mode::from_raw_mode(0o644))?);
        file.write_all(bytes)?;
        Ok(stamp(&rustix::fs::fstat(&file)?))
    }

    fn rewrite(&self, path: &str, bytes: &[u8], known: Option<Stamp>) -> io::Result<Stamp> {
        let file = self.enter(path, OFlags::WRONLY | OFlags::NONBLOCK, Mode::empty())?;
        let stat = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
        }
        if known.is_some_and(|known| known != stamp(&stat)) {
            return Err(io::ErrorKind::ResourceBusy.into());
        }
        let mut file = File::from(file);
        file.write_all(bytes)?;
        file.set_len(bytes.len() as u64)?;
        Ok(stamp(&rustix::fs::fstat(&file)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let ((from_dir, from), (to_dir, to)) = (divide(from), divide(to));
        let (from_dir, to_dir) = (self.dir(from_dir)?, self.dir(to_dir)?);
        Ok(renameat_with(from_dir, from, to_dir, to, RenameFlags::NOREPLACE)?)
    }

    fn exchange(&self, a: &str, b: &str) -> io::Result<()> {
        let ((a_dir, a), (b_dir, b)) = (divide(a), divide(b));
        let (a_dir, b_dir) = (self.dir(a_dir)?, self.dir(b_dir)?);
        Ok(renameat_with(a_dir, a, b_dir, b, RenameFlags::EXCHANGE)?)
    }

    fn make_dir(&self, dir: &str) -> io::Result<()> {
        let (parent, name) = divide(dir);
        match mkdirat(self.dir(parent)?, name, Mode::from_raw_mode(0o777)) {
            Err(rustix::io::Errno::EXIST) => match self.look(dir)? {
                Some(Found::Dir) => Ok(()),
                _ => Err(io::Error::new(io::ErrorKind::NotADirectory, format!("{dir} is not a directory"))),
            },
            made => Ok(made?),
        }
    }

    fn remove(&self, path: &str) -> io::Result<()> {
        let (dir, name) = divide(path);
        Ok(unlinkat(self.dir(dir)?, name, AtFlags::empty())?)
    }

    fn now_ns(&self) -> i64 {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
        i64::try_from(now.as_nanos()).unwrap_or(i64::MAX)
    }

    fn is_being_written(&self, path: &str) -> bool {
        let (dir, name) = divide(path);
        let stat = self.dir(dir).ok().and_then(|dir| statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW).ok());
        let Some(stat) = stat else { return false };
        let (now, modified) = (self.now_ns(), stamp(&stat).modified_ns);
        if !(-TICK_NS..WRITING_NS).contains(&now.saturating_sub(modified)) {
            return false;
        }
        let mut writers = self.writers.lock().unwrap_or_else(PoisonError::into_inner);
        // Whoever changed it after the last look may have come after it too.
        let counts = |known: &Writers| known.at_ns > modified + TICK_NS && now - known.at_ns < WRITERS_NS;
        if !writers.as_ref().is_some_and(counts) {
            *writers = Some(Writers { at_ns: self.now_ns(), files: open_for_writing() });
        }
        writers.as_ref().is_some_and(|known| known.files.contains(&(stat.st_dev, stat.st_ino)))
    }

    fn remove_dir(&self, dir: &str) -> io::Result<()> {
        let (parent, name) = divide(dir);
        Ok(unlinkat(self.dir(parent)?, name, AtFlags::REMOVEDIR)?)
    }

    fn claim(&self, path: &str) -> io::Result<Option<Claim>> {
        let (parent, name) = divide(path);
        let dir = self.dir(parent)?;
        for _ in 0..CLAIM_TRIES_MAX {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NONBLOCK;
            let file = File::from(self.enter(path, flags, Mode::from_raw_mode(0o644))?);
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(error)) => return Err(error),
            }
            // Whoever had it may have removed the name between the two: then others lock another file.
            let ours = rustix::fs::fstat(&file)?;
            match statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(there) if (there.st_dev, there.st_ino) == (ours.st_dev, ours.st_ino) => {
                    return Ok(Some(Claim { held: Some((dir, name.to_owned(), file)) }));
                }
                Ok(_) | Err(rustix::io::Errno::NOENT) => {}
                Err(error) => return Err(error.into()),
            }
        }
        // Somebody was quicker each time.
        Ok(None)
    }
}

//! The workspace as file tools see it: everything is opened from its directory downwards, by the kernel's own rule that nothing may lead out of it.
//!
//! A path is never checked first and opened afterwards. The directory that holds the last name is opened beneath the root (`openat2`), looked at once it
//! is open (is it in a place that is Baton's own?), and the last name is opened in it without following a link. So `..`, absolute paths, links that are
//! there and links that are put there meanwhile all meet the same rule. Links that stay inside are followed for reading, never for writing.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::limits::{TOOL_DEPTH_MAX, TOOL_LINKS_MAX, TOOL_OPEN_TRIES_MAX};

/// Why a file is not read or written.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    #[error("{0:?} is not in the workspace")]
    Outside(PathBuf),
    #[error("{0:?} is Baton's own and no tool's business")]
    Own(PathBuf),
    #[error("{0:?} does not exist")]
    Missing(PathBuf),
    #[error("{0:?} is {1}, not a file")]
    NotAFile(PathBuf, &'static str),
    #[error("{0:?} is not a directory")]
    NotADirectory(PathBuf),
    #[error("{0:?} is a symbolic link; write to the file that it leads to")]
    Link(PathBuf),
    #[error("{path:?} has {bytes} bytes, more than {max}")]
    TooLarge { path: PathBuf, bytes: u64, max: u64 },
    #[error("this kernel has no openat2 (Linux 5.6), without which files cannot be opened safely")]
    OldKernel,
    #[error("{0:?}: {1}")]
    Io(PathBuf, io::Error),
}

/// A workspace, held by its directory: wherever that is moved to, it stays the same one.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    dir: OwnedFd,
    /// Places that are Baton's own, inside the workspace or not.
    own: Vec<PathBuf>,
}

/// What is found in a directory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    File,
    Dir,
    Link,
    Other,
}

const DIR: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC);

impl Root {
    /// Holds a workspace. `own` are the places in which tools have no business even where they lie inside.
    pub fn open(path: &Path, own: Vec<PathBuf>) -> io::Result<Root> {
        let path = path.canonicalize()?;
        // A link that somebody put there since is not followed.
        let dir = rustix::fs::open(&path, OFlags::PATH | OFlags::NOFOLLOW | DIR, Mode::empty())?;
        Ok(Root { path, dir, own })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn own(&self) -> &[PathBuf] {
        &self.own
    }

    /// A path as it is seen from the root: absolute ones inside become relative, others are refused. Only names are looked at here.
    pub fn relative(&self, path: &Path) -> Result<PathBuf, Refused> {
        let inner = match path.is_absolute() {
            true => path.strip_prefix(&self.path).map_err(|_| Refused::Outside(path.to_owned()))?,
            false => path,
        };
        let kept: PathBuf = inner.components().filter(|part| *part != Component::CurDir).collect();
        Ok(if kept.as_os_str().is_empty() { PathBuf::from(".") } else { kept })
    }

    /// The bytes of a file. Links that stay inside are followed.
    pub fn read(&self, path: &Path, bytes_max: u64) -> Result<Vec<u8>, Refused> {
        let (file, stat) = self.open_file(path)?;
        let size = u64::try_from(stat.st_size).unwrap_or(0);
        let too_large = |bytes| Refused::TooLarge { path: path.to_owned(), bytes, max: bytes_max };
        if size > bytes_max {
            return Err(too_large(size));
        }
        let mut bytes = Vec::new();
        // It may grow while it is read.
        file.take(bytes_max + 1).read_to_end(&mut bytes).map_err(|error| Refused::Io(path.into(), error))?;
        if bytes.len() as u64 > bytes_max { Err(too_large(bytes.len() as u64)) } else { Ok(bytes) }
    }

    fn open_file(&self, path: &Path) -> Result<(File, Stat), Refused> {
        let mut at = self.relative(path)?;
        for _ in 0..TOOL_LINKS_MAX {
            let (parent, name) = self.parent(&at)?;
            // A pipe is not waited for.
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
            match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
                Ok(file) => {
                    let stat = rustix::fs::fstat(&file).map_err(|errno| refusal(path, errno))?;
                    return match FileType::from_raw_mode(stat.st_mode) {
                        FileType::RegularFile => Ok((file.into(), stat)),
                        other => Err(Refused::NotAFile(path.to_owned(), name_of(other))),
                    };
                }
                Err(Errno::LOOP) => {
                    let target = rustix::fs::readlinkat(&parent, &name, Vec::new());
                    let target = target.map_err(|errno| refusal(path, errno))?.into_bytes();
                    let target = PathBuf::from(OsString::from_vec(target));
                    let dir = at.parent().unwrap_or(Path::new("")).to_owned();
                    at = self.relative(&dir.join(target)).map_err(|_| Refused::Outside(path.to_owned()))?;
                }
                Err(errno) => return Err(refusal(path, errno)),
            }
        }
        Err(Refused::Io(path.to_owned(), Errno::LOOP.into()))
    }

    /// Writes a file anew beside its place and puts it there, so that it is whole or as it was, and another name of the old file keeps the old text.
    ///
    /// Directories on the way are made. A link in its place is not followed and not replaced.
    pub fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), Refused> {
        let at = self.relative(path)?;
        if let Some(dir) = at.parent().filter(|dir| !dir.as_os_str().is_empty()) {
            self.make_dirs(dir, 0)?;
        }
        let (parent, name) = self.parent(&at)?;
        let mode = self.mode_at(&parent, &name, path)?;
        let beside = format!(".{:016x}.tmp", random());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let made = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
        let file = rustix::fs::openat(&parent, &beside, flags, made).map_err(|errno| refusal(path, errno))?;
        let put = (|| {
            let mut file = File::from(file);
            file.write_all(bytes)?;
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            rustix::fs::renameat(&parent, &beside, &parent, &name)?;
            Ok(())
        })();
        put.map_err(|error| {
            let _ = rustix::fs::unlinkat(&parent, &beside, AtFlags::empty());
            Refused::Io(path.to_owned(), error)
        })
    }

    /// Removes a file; only its name goes, whatever it leads to stays.
    pub fn remove(&self, path: &Path) -> Result<(), Refused> {
        let (parent, name) = self.parent(&self.relative(path)?)?;
        self.mode_at(&parent, &name, path)?;
        rustix::fs::unlinkat(&parent, &name, AtFlags::empty()).map_err(|errno| refusal(path, errno))
    }

    /// Whether something has this name, be it a link to nowhere.
    pub fn exists(&self, path: &Path) -> Result<bool, Refused> {
        let (parent, name) = match self.parent(&self.relative(path)?) {
            Err(Refused::Missing(_)) => return Ok(false),
            other => other?,
        };
        match rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(errno) => Err(refusal(path, errno)),
        }
    }

    /// A directory, once it is known to be nobody else's.
    pub(super) fn dir(&self, path: &Path) -> Result<OwnedFd, Refused> {
        let at = self.relative(path)?;
        let dir = self.beneath(&at, path)?;
        self.expect_free(&dir, path)?;
        Ok(dir)
    }

    /// A directory in another one, not through a link.
    pub(super) fn enter(&self, dir: &OwnedFd, name: &OsString, path: &Path) -> Result<OwnedFd, Refused> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | DIR;
        let inner =
            rustix::fs::openat(dir, name, flags, Mode::empty()).map_err(|errno| refusal(path, errno))?;
        let stat = rustix::fs::fstat(&inner).map_err(|errno| refusal(path, errno))?;
        if self.own_ids().contains(&id(&stat)) {
            return Err(Refused::Own(path.to_owned()));
        }
        Ok(inner)
    }

    /// What is in a directory, by name.
    pub(super) fn entries(
        &self,
        dir: &OwnedFd,
        path: &Path,
        count_max: usize,
    ) -> Result<Vec<Entry>, Refused> {
        let failed = |errno| refusal(path, errno);
        let mut found = Vec::new();
        for entry in Dir::read_from(dir).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            if found.len() >= count_max {
                break;
            }
            let name = OsString::from_vec(name.to_vec());
            let kind = match entry.file_type() {
                FileType::Unknown => rustix::fs::statat(dir, &name, AtFlags::SYMLINK_NOFOLLOW)
                    .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
                known => known,
            };
            let kind = match kind {
                FileType::RegularFile => Kind::File,
                FileType::Directory => Kind::Dir,
                FileType::Symlink => Kind::Link,
                _ => Kind::Other,
            };
            found.push(Entry { name, kind });
        }
        found.sort();
        Ok(found)
    }

    /// A file in an open directory, within a bound; nothing where it is not a file, or too large.
    pub(super) fn read_in(&self, dir: &OwnedFd, name: &OsString, bytes_max: u64) -> Option<Vec<u8>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&file).ok()?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        if !is_file || u64::try_from(stat.st_size).ok()? > bytes_max {
            return None;
        }
        let mut bytes = Vec::new();
        File::from(file).take(bytes_max).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    }

    /// The directory that holds the last name of a path, and that name.
    fn parent(&self, at: &Path) -> Result<(OwnedFd, OsString), Refused> {
        let Some(Component::Normal(name)) = at.components().next_back() else {
            return Err(Refused::NotAFile(at.to_owned(), "a directory"));
        };
        let dir = at.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let parent = self.beneath(dir, at)?;
        self.expect_free(&parent, at)?;
        Ok((parent, name.to_owned()))
    }

    /// Opens a directory by the kernel's rule. A rename beside it makes the kernel unsure, and then it is asked again.
    fn beneath(&self, at: &Path, told: &Path) -> Result<OwnedFd, Refused> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..TOOL_OPEN_TRIES_MAX {
            match rustix::fs::openat2(&self.dir, at, OFlags::RDONLY | DIR, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                Ok(dir) => return Ok(dir),
                Err(Errno::NOTDIR) => return Err(Refused::NotADirectory(told.to_owned())),
                Err(errno) => return Err(refusal(told, errno)),
            }
        }
        Err(refusal(told, Errno::AGAIN))
    }

    /// Goes up from an open directory to the root: nothing on the way may be Baton's own. What was opened stays where it was opened, so this needs no hurry.
    fn expect_free(&self, dir: &OwnedFd, told: &Path) -> Result<(), Refused> {
        let own = self.own_ids();
        let failed = |errno| refusal(told, errno);
        let root = id(&rustix::fs::fstat(&self.dir).map_err(failed)?);
        let mut at = None;
        for _ in 0..TOOL_DEPTH_MAX {
            let here = at.as_ref().map_or(dir.as_fd(), OwnedFd::as_fd);
            let stat = rustix::fs::fstat(here).map_err(failed)?;
            if own.contains(&id(&stat)) {
                return Err(Refused::Own(told.to_owned()));
            }
            if id(&stat) == root {
                return Ok(());
            }
            at = Some(rustix::fs::openat(here, "..", OFlags::PATH | DIR, Mode::empty()).map_err(failed)?);
        }
        Err(Refused::Outside(told.to_owned()))
    }

    /// By number and not by name: the same directory is the same however one comes to it.
    fn own_ids(&self) -> Vec<(u64, u64)> {
        self.own.iter().filter_map(|path| rustix::fs::stat(path).ok()).map(|stat| id(&stat)).collect()
    }

    fn make_dirs(&self, dir: &Path, depth: usize) -> Result<(), Refused> {
        match self.dir(dir) {
            Err(Refused::Missing(_)) if depth < TOOL_DEPTH_MAX => {}
            other => return other.map(drop),
        }
        if let Some(above) = dir.parent().filter(|above| !above.as_os_str().is_empty()) {
            self.make_dirs(above, depth + 1)?;
        }
        let (parent, name) = self.parent(dir)?;
        match rustix::fs::mkdirat(&parent, &name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => self.dir(dir).map(drop),
            Err(errno) => Err(refusal(dir, errno)),
        }
    }

    /// The permissions of the file that is there; an error where it is something else.
    fn mode_at(&self, parent: &OwnedFd, name: &OsString, told: &Path) -> Result<Option<Mode>, Refused> {
        match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match FileType::from_raw_mode(stat.st_mode) {
                // Not the bits that would make it somebody else's.
                FileType::RegularFile => Ok(Some(Mode::from_raw_mode(stat.st_mode & 0o777))),
                FileType::Symlink => Err(Refused::Link(told.to_owned())),
                other => Err(Refused::NotAFile(told.to_owned(), name_of(other))),
            },
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(refusal(told, errno)),
        }
    }
}

fn id(stat: &Stat) -> (u64, u64) {
    (stat.st_dev, stat.st_ino)
}

pub(crate) fn random() -> u64 {
    let mut bytes = [0; 8];
    // A name that is taken is an error, so nothing depends on this but comfort.
    let _ = rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty());
    u64::from_ne_bytes(bytes)
}

fn name_of(kind: FileType) -> &'static str {
    match kind {
        FileType::Directory => "a directory",
        FileType::Fifo => "a pipe",
        FileType::Socket => "a socket",
        FileType::Symlink => "a symbolic link",
        _ => "a device",
    }
}

fn refusal(path: &Path, errno: Errno) -> Refused {
    match errno {
        Errno::XDEV => Refused::Outside(path.to_owned()),
        Errno::NOENT => Refused::Missing(path.to_owned()),
        Errno::NOSYS => Refused::OldKernel,
        errno => Refused::Io(path.to_owned(), errno.into()),
    }
}

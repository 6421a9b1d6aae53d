//! The file layer: the few operations that durable code is made of, behind a trait so that tests can make them fail.

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, FileExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::OFlags;

/// How a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// It must exist; it is not written.
    Read,
    /// It must exist.
    Write,
    /// It must not exist.
    CreateNew,
    /// It is made where it does not exist.
    Create,
}

/// A file system.
///
/// What breaks if an implementation lies: if `sync` returns before the bytes are on stable storage, an acknowledged event can be lost by a power
/// cut; if `rename` is not atomic, a half-written segment can appear under its final name; if `sync_dir` does nothing, or `create_dir_all` returns
/// before the new names are durable, a new segment can vanish with everything acknowledged in it; if `open` waits for the other end of a pipe
/// that somebody put in a file's place, every command hangs.
pub trait Disk: Send + Sync + fmt::Debug {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>>;
    /// Names in a directory, unordered; empty where the directory does not exist.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;
    /// Makes a directory and those above it, where they are missing; durable when this returns.
    fn create_dir_all(&self, dir: &Path) -> io::Result<()>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes creations, renames and removals in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// An open file, used by position.
pub trait DiskFile: Send + Sync + fmt::Debug {
    fn length(&self) -> io::Result<u64>;
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    /// May write less than it was given.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize>;
    fn set_len(&self, length: u64) -> io::Result<()>;
    /// Makes content and length durable. After an error nothing is known about what is on the disk.
    fn sync(&self) -> io::Result<()>;

    /// Writes everything, or fails having written an unknown part.
    fn write_all_at(&self, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write_at(bytes, offset) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    bytes = &bytes[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads exactly as much as the buffer holds.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    buffer = &mut buffer[count..];
                    offset += count as u64;
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The operating system's file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct RealDisk;

#[derive(Debug)]
struct RealFile(File);

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: Mode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).mode(0o644);
        match mode {
            Mode::Read => {}
            Mode::Write => drop(options.write(true)),
            Mode::CreateNew => drop(options.write(true).create_new(true)),
            Mode::Create => drop(options.write(true).create(true)),
        }
        match mode {
            Mode::Read => Ok(Arc::new(RealFile(open_regular(&mut options, path)?))),
            Mode::Write | Mode::CreateNew | Mode::Create => {
                Ok(Arc::new(RealFile(open_own(&mut options, path)?)))
            }
        }
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        let entries = match fs::read_dir(dir) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn create_dir_all(&self, dir: &Path) -> io::Result<()> {
        make_dirs(dir, 0o777)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

impl DiskFile for RealFile {
    fn length(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(bytes, offset)
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// Opens a file that must be a regular one: a pipe or a device in its place would block, or never end.
pub fn open_regular(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_with(options, path, OFlags::NONBLOCK)
}

/// The same for a file that Baton writes: a link in its place would lead its hands elsewhere.
pub fn open_own(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_with(options, path, OFlags::NONBLOCK | OFlags::NOFOLLOW)
}

fn open_with(options: &mut OpenOptions, path: &Path, flags: OFlags) -> io::Result<File> {
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()? {
        found if found.is_file() => Ok(file),
        found if found.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// Makes a directory and those above it, where they are missing; each new name is durable when this returns.
pub fn make_dirs(dir: &Path, mode: u32) -> io::Result<()> {
    if dir.as_os_str().is_empty() || dir.is_dir() {
        return Ok(());
    }
    let parent = dir.parent().unwrap_or(dir);
    make_dirs(parent, mode)?;
    match DirBuilder::new().mode(mode).create(dir) {
        // Somebody else was quicker: that is as good, once its name is durable.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => {}
        made => made?,
    }
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    File::open(parent)?.sync_all()
}

/// Makes durable what is about to be shown. A medium that cannot be written has nothing to sync and says so.
pub fn sync_shown(file: &dyn DiskFile) -> io::Result<()> {
    nothing_to_sync(file.sync())
}

/// The same for the names in a directory.
pub fn sync_shown_names(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    nothing_to_sync(disk.sync_dir(dir))
}

fn nothing_to_sync(synced: io::Result<()>) -> io::Result<()> {
    match synced {
        Err(error)
            if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::ReadOnlyFilesystem) =>
        {
            Ok(())
        }
        synced => synced,
    }
}

/// Reads a whole file of at most `max` bytes.
pub fn read_file(disk: &dyn Disk, path: &Path, max: u64) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Mode::Read)?;
    let length = file.length()?;
    if length > max {
        let why = format!("{length} bytes, at most {max} are expected");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
    }
    let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// Reads an open file from its start to its end.
#[derive(Debug)]
pub struct Reading {
    file: Arc<dyn DiskFile>,
    offset: u64,
}

impl Reading {
    pub fn new(file: Arc<dyn DiskFile>) -> Self {
        Reading { file, offset: 0 }
    }
}

impl io::Read for Reading {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(buffer, self.offset)?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Puts a file in place whole or not at all: written beside, synced, renamed, directory synced.
pub fn write_atomic(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> io::Result<()> {
    let dir = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let name = path.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    let beside = dir.join(unfinished_name(&name));
    let file = disk.open(&beside, Mode::CreateNew)?;
    let written = file.write_all_at(bytes, 0).and_then(|()| file.sync());
    if let Err(error) = written.and_then(|()| disk.rename(&beside, path)) {
        // Best effort: the error that matters is the first one.
        let _ = disk.remove(&beside);
        return Err(error);
    }
    disk.sync_dir(dir)
}

/// The name of a file that is being made, apart from every other one.
pub fn unfinished_name(name: &str) -> String {
    format!(".{name}.{}.tmp", crate::clock::new_uuid())
}

/// Removes what was being made in a directory when its maker died. Only for the owner of the directory, before it makes anything itself.
pub fn remove_unfinished(disk: &dyn Disk, dir: &Path) -> io::Result<()> {
    let names = disk.list(dir)?;
    let mut unfinished = names.iter().filter(|name| name.starts_with('.') && name.ends_with(".tmp"));
    unfinished.try_for_each(|name| disk.remove(&dir.join(name)))
}

//! Files that a person named, or may have put where Baton looks: opened without waiting, read within bounds.
//!
//! A file that is absent, cannot be read or is too long is told in the same way by every command. What its content should be is up to whoever
//! asked for it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_store::disk;
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

use crate::error::{CliError, Code};
use crate::ui::shell;

/// Opens for reading. A pipe that nobody writes to is empty, not something to wait for.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file =
        OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed()).open(path)?;
    // Only opening must not wait: whoever has the other end open may take its time.
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens a regular file; nothing else has an end that can be relied on.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    disk::open_regular(OpenOptions::new().read(true), path)
}

/// Reads to the end, or gives `None` where there is more than the bound.
pub(crate) fn read_bounded(file: File, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(bytes_max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= bytes_max).then_some(bytes))
}

/// A file as a person named it, and where that leads from where the person is.
#[derive(Debug, Clone)]
pub(crate) struct Named {
    pub(crate) shown: PathBuf,
    pub(crate) real: PathBuf,
}

impl Named {
    /// A name that is meant from this process's own working directory.
    fn here(path: &Path) -> Named {
        Named { shown: path.to_owned(), real: path.to_owned() }
    }

    /// It does not open or read.
    pub(crate) fn error(&self, error: &io::Error) -> CliError {
        tell(self, error)
    }

    /// Reads a small file; `None` where it is longer than what it should be can ever be.
    pub(crate) fn read_small(&self, bytes_max: u64) -> Result<Option<Vec<u8>>, CliError> {
        open(&self.real).and_then(|file| read_bounded(file, bytes_max)).map_err(|error| self.error(&error))
    }
}

/// Reads a small file that a person named; `None` where it is longer than what it should be can ever be.
pub(crate) fn read_small(path: &Path, bytes_max: u64) -> Result<Option<Vec<u8>>, CliError> {
    Named::here(path).read_small(bytes_max)
}

/// A file that a person named and that does not open or read.
pub(crate) fn file_error(path: &Path, error: &io::Error) -> CliError {
    tell(&Named::here(path), error)
}

fn tell(named: &Named, error: &io::Error) -> CliError {
    let path = &named.shown;
    let (code, what) = match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => {
            (Code::FileNotFound, format!("no file {}", path.display()))
        }
        _ => (Code::FileUnreadable, format!("cannot read {}", path.display())),
    };
    let hint = match code {
        Code::FileNotFound => format!("ls -l {}", shell::path(holder(named))),
        _ => format!("ls -ld {}", shell::path(path)),
    };
    CliError::new(code, what).cause(error.to_string()).hint(hint)
}

/// The nearest directory above that exists: where to look for a name that does not.
fn holder(named: &Named) -> &Path {
    let mut above = named.shown.ancestors().zip(named.real.ancestors()).skip(1);
    let found = above.find(|(_, real)| real.is_dir()).map(|(shown, _)| shown);
    found.filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

//! Everything that an agent writes beside its protocol, in a file that never grows beyond a bound: the newest part and the part before it.

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use crate::limits::STDERR_FILE_BYTES_MAX;

/// A file that begins anew when it is full; what was in it is kept under another name, once.
#[derive(Debug)]
pub struct RotatingFile {
    path: PathBuf,
    file: File,
    written: u64,
    max: u64,
}

impl RotatingFile {
    /// Makes the file anew. A link in its place is refused, not followed.
    pub fn create(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        Ok(RotatingFile { file: anew(&path)?, path, written: 0, max: STDERR_FILE_BYTES_MAX })
    }

    /// Goes on with what is there, as [`RotatingFile::create`] otherwise: for one file of several processes, one after the other.
    pub fn append(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        let file = options().append(true).open(&path)?;
        let written = file.metadata()?.len();
        Ok(RotatingFile { file, path, written, max: STDERR_FILE_BYTES_MAX })
    }

    pub(crate) fn push(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.written + bytes.len() as u64 > self.max {
            std::fs::rename(&self.path, before(&self.path))?;
            (self.file, self.written) = (anew(&self.path)?, 0);
        }
        self.file.write_all(bytes)?;
        self.written += bytes.len() as u64;
        Ok(())
    }
}

fn before(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    PathBuf::from(name)
}

fn anew(path: &Path) -> io::Result<File> {
    options().write(true).truncate(true).open(path)
}

fn options() -> OpenOptions {
    let flags = i32::try_from(rustix::fs::OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut options = OpenOptions::new();
    options.create(true).mode(0o600).custom_flags(flags);
    options
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_part_and_the_one_before_it_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stderr.log");
        let mut file = RotatingFile { max: 10, ..RotatingFile::create(&path).unwrap() };
        for part in ["first ", "then\n", "third\n", "fourth\n"] {
            file.push(part.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "fourth\n");
        assert_eq!(std::fs::read_to_string(before(&path)).unwrap(), "third\n");
    }

    #[test]
    fn what_several_processes_say_is_in_one_file_and_bounded_as_one() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("stderr.log");
        for part in ["first\n", "then\n", "third\n"] {
            let mut file = RotatingFile { max: 12, ..RotatingFile::append(&path).unwrap() };
            file.push(part.as_bytes()).unwrap();
        }
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "third\n");
        assert_eq!(std::fs::read_to_string(before(&path)).unwrap(), "first\nthen\n");
    }

    #[test]
    fn a_link_is_not_written_through() {
        let dir = tempfile::tempdir().unwrap();
        let (path, other) = (dir.path().join("stderr.log"), dir.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(RotatingFile::create(&path).is_err() && RotatingFile::append(&path).is_err());
        assert!(!other.exists());
    }
}

//! Content-addressed bytes: written and synced before any event cites them, never changed afterwards.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::Digest;
use baton_core::limits::ARTIFACT_BYTES_MAX;
use baton_ledger::hash::Hasher;
use baton_ledger::verify::{ArtifactState, Artifacts};

use crate::disk::{Disk, Mode, Reading, unfinished_name};
use crate::ports::ArtifactStore;

/// The artifacts of a data directory.
#[derive(Debug, Clone)]
pub struct ArtifactDir {
    disk: Arc<dyn Disk>,
    root: PathBuf,
}

impl ArtifactDir {
    pub fn new(disk: Arc<dyn Disk>, root: impl Into<PathBuf>) -> Self {
        ArtifactDir { disk, root: root.into() }
    }

    pub fn path(&self, sha256: &Digest) -> PathBuf {
        let name = sha256.to_string();
        self.root.join(&name[..2]).join(&name)
    }

    fn write(&self, path: &Path, source: &mut dyn Read) -> io::Result<(Digest, u64)> {
        let file = self.disk.open(path, Mode::CreateNew).map_err(at(&self.root))?;
        let mut hasher = Hasher::default();
        let (mut buffer, mut length) = (vec![0; 1 << 16], 0u64);
        loop {
            let count = source.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            if length + count as u64 > ARTIFACT_BYTES_MAX {
                let why = format!("an artifact has at most {ARTIFACT_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            hasher.update(&buffer[..count]);
            file.write_all_at(&buffer[..count], length).map_err(at(&self.root))?;
            length += count as u64;
        }
        file.sync().map_err(at(&self.root))?;
        Ok((hasher.finish(), length))
    }
}

/// Says where it failed: whoever stores something names what it is, and not where it goes.
fn at(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    let path = path.display().to_string();
    move |error| io::Error::new(error.kind(), format!("{path}: {error}"))
}

impl ArtifactStore for ArtifactDir {
    fn put(&self, source: &mut dyn Read) -> io::Result<(Digest, u64)> {
        self.disk.create_dir_all(&self.root).map_err(at(&self.root))?;
        let beside = self.root.join(unfinished_name("artifact"));
        let stored = self.write(&beside, source).and_then(|(sha256, length)| {
            let path = self.path(&sha256);
            let dir = path.parent().unwrap_or(&self.root);
            self.disk.create_dir_all(dir).map_err(at(dir))?;
            self.disk.rename(&beside, &path).map_err(at(&path))?;
            self.disk.sync_dir(dir).map_err(at(dir))?;
            Ok((sha256, length))
        });
        if stored.is_err() {
            let _ = self.disk.remove(&beside);
        }
        stored
    }

    fn open(&self, sha256: &Digest) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(Reading::new(self.disk.open(&self.path(sha256), Mode::Read)?)))
    }

    fn length(&self, sha256: &Digest) -> io::Result<Option<u64>> {
        match self.disk.open(&self.path(sha256), Mode::Read) {
            Ok(file) => file.length().map(Some),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Artifacts for ArtifactDir {
    fn check(&self, sha256: &Digest, bytes: u64) -> ArtifactState {
        let read = || {
            let file = self.disk.open(&self.path(sha256), Mode::Read)?;
            let length = file.length()?;
            // What is longer than it should be is not read: it could be endless.
            if length != bytes {
                return Ok(ArtifactState::Differs(format!("{length} bytes")));
            }
            let (mut hasher, mut buffer) = (Hasher::default(), vec![0; 1 << 16]);
            let mut reading = Reading::new(file).take(bytes);
            loop {
                match reading.read(&mut buffer)? {
                    0 => break,
                    count => hasher.update(&buffer[..count]),
                }
            }
            let found = hasher.finish();
            let is_good = found == *sha256;
            Ok(if is_good { ArtifactState::Good } else { ArtifactState::Differs(format!("SHA-256 {found}")) })
        };
        read().unwrap_or_else(|error: io::Error| match error.kind() {
            io::ErrorKind::NotFound => ArtifactState::Missing,
            _ => ArtifactState::Differs(error.to_string()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::RealDisk;

    #[test]
    fn a_failure_names_where_the_bytes_were_to_go() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("artifacts");
        std::fs::write(&root, "in the way").unwrap();
        let failed = ArtifactDir::new(Arc::new(RealDisk), &root).put(&mut &b"bytes"[..]).unwrap_err();
        assert!(failed.to_string().starts_with(&format!("{}: ", root.display())), "{failed}");
    }
}

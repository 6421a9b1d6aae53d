//! Content-addressed bytes: written and synced before any event cites them, never changed afterwards.

use std::fs::{self, File};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::Digest;
use baton_core::limits::ARTIFACT_BYTES_MAX;
use baton_ledger::hash::Hasher;
use baton_ledger::verify::{ArtifactState, Artifacts};

use crate::ports::ArtifactStore;

/// The artifacts of a data directory.
#[derive(Debug, Clone)]
pub struct ArtifactDir {
    root: PathBuf,
}

/// Tells files apart that one process writes at the same time.
static COUNTER: AtomicU64 = AtomicU64::new(0);

impl ArtifactDir {
    pub fn new(root: impl Into<PathBuf>) -> Self {
        ArtifactDir { root: root.into() }
    }

    pub fn path(&self, sha256: &Digest) -> PathBuf {
        let name = sha256.to_string();
        self.root.join(&name[..2]).join(&name)
    }

    fn write(&self, path: &Path, source: &mut dyn Read) -> io::Result<(Digest, u64)> {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).mode(0o444).open(path)?;
        let mut hasher = Hasher::default();
        let (mut buffer, mut length) = (vec![0; 1 << 16], 0u64);
        loop {
            let count = source.read(&mut buffer)?;
            if count == 0 {
                break;
            }
            length += count as u64;
            if length > ARTIFACT_BYTES_MAX {
                let why = format!("an artifact has at most {ARTIFACT_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::FileTooLarge, why));
            }
            hasher.update(&buffer[..count]);
            file.write_all(&buffer[..count])?;
        }
        file.sync_all()?;
        Ok((hasher.finish(), length))
    }
}

impl ArtifactStore for ArtifactDir {
    fn put(&self, source: &mut dyn Read) -> io::Result<(Digest, u64)> {
        fs::create_dir_all(&self.root)?;
        let unique = COUNTER.fetch_add(1, Ordering::Relaxed);
        let beside = self.root.join(format!(".{}.{unique}.tmp", std::process::id()));
        let stored = self.write(&beside, source).and_then(|(sha256, length)| {
            let path = self.path(&sha256);
            let dir = path.parent().unwrap_or(&self.root);
            fs::create_dir_all(dir)?;
            fs::rename(&beside, &path)?;
            File::open(dir)?.sync_all()?;
            File::open(&self.root)?.sync_all()?;
            Ok((sha256, length))
        });
        if stored.is_err() {
            let _ = fs::remove_file(&beside);
        }
        stored
    }

    fn open(&self, sha256: &Digest) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(File::open(self.path(sha256))?))
    }

    fn length(&self, sha256: &Digest) -> io::Result<Option<u64>> {
        match fs::metadata(self.path(sha256)) {
            Ok(metadata) => Ok(Some(metadata.len())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Artifacts for ArtifactDir {
    fn check(&self, sha256: &Digest, bytes: u64) -> ArtifactState {
        let mut file = match self.open(sha256) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return ArtifactState::Missing,
            Err(error) => return ArtifactState::Differs(error.to_string()),
        };
        let mut hasher = Hasher::default();
        let (mut buffer, mut length) = (vec![0; 1 << 16], 0u64);
        loop {
            match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => {
                    hasher.update(&buffer[..count]);
                    length += count as u64;
                }
                Err(error) => return ArtifactState::Differs(error.to_string()),
            }
        }
        let found = hasher.finish();
        if found == *sha256 && length == bytes {
            ArtifactState::Good
        } else {
            ArtifactState::Differs(format!("{length} bytes with SHA-256 {found}"))
        }
    }
}

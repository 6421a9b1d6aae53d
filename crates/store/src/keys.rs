//! Private keys as files, outside the workspace: directory 0700, files 0600, never in a log, an event or an answer.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use baton_core::limits::KEY_FILE_BYTES_MAX;
use baton_core::{KeyId, Origin};
use baton_ledger::key::{PublicKey, SecretKey};
use zeroize::Zeroizing;

use crate::disk::{make_dirs, open_regular};

/// The directory of one ledger's secrets.
#[derive(Debug, Clone)]
pub struct KeyStore {
    dir: PathBuf,
}

/// Why a key file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no private key {key} in {dir}")]
    Missing { key: KeyId, dir: PathBuf },
    #[error("{path} can be read by others (mode {mode:o}); a private key must be its owner's alone")]
    Exposed { path: PathBuf, mode: u32 },
    #[error("{path} is not a private key of Baton: {source}")]
    Form { path: PathBuf, source: baton_ledger::key::Error },
    #[error("{path} holds another key than its name says")]
    OtherKey { path: PathBuf },
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { action, path, source }
}

impl KeyStore {
    /// The secrets of the ledger with this origin, below the state directory.
    pub fn new(state_dir: &Path, origin: &Origin) -> Self {
        let name = origin.as_str().rsplit('/').next().unwrap_or(origin.as_str());
        KeyStore { dir: state_dir.join(name) }
    }

    pub fn dir(&self) -> &Path {
        &self.dir
    }

    pub fn path(&self, key: KeyId) -> PathBuf {
        self.dir.join(format!("{key}.key"))
    }

    /// Makes a key and keeps it; durable when this returns.
    pub fn create(&self) -> Result<SecretKey, Error> {
        let key = SecretKey::from_seed(&crate::clock::new_seed());
        self.keep(&key)?;
        Ok(key)
    }

    fn keep(&self, key: &SecretKey) -> Result<(), Error> {
        make_dirs(&self.dir, 0o700).map_err(io_error("make", &self.dir))?;
        let path = self.path(key.id());
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&path)
            .map_err(io_error("write", &path))?;
        file.write_all(key.to_file_text().as_bytes())
            .and_then(|()| file.sync_all())
            .and_then(|()| File::open(&self.dir)?.sync_all())
            .map_err(io_error("write", &path))
    }

    pub fn has(&self, key: KeyId) -> bool {
        self.path(key).exists()
    }

    /// Reads a key, or says exactly why it cannot be used.
    pub fn load(&self, key: KeyId) -> Result<SecretKey, Error> {
        let path = self.path(key);
        let file = match open_regular(OpenOptions::new().read(true), &path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing { key, dir: self.dir.clone() });
            }
            Err(error) => return Err(io_error("read", &path)(error)),
        };
        let metadata = file.metadata().map_err(io_error("read", &path))?;
        let mode = metadata.mode() & 0o777;
        if mode & 0o077 != 0 {
            return Err(Error::Exposed { path, mode });
        }
        // With room for all of it from the start: a buffer that grows leaves copies behind that nobody wipes.
        let mut text = Zeroizing::new(String::with_capacity(KEY_FILE_BYTES_MAX));
        if metadata.len() <= KEY_FILE_BYTES_MAX as u64 {
            let mut file = file.take(KEY_FILE_BYTES_MAX as u64);
            file.read_to_string(&mut text).map_err(io_error("read", &path))?;
        }
        let secret =
            SecretKey::parse_file(&text).map_err(|source| Error::Form { path: path.clone(), source })?;
        if secret.id() == key { Ok(secret) } else { Err(Error::OtherKey { path }) }
    }

    /// Files and directories that others can read, for the doctor.
    pub fn exposed(&self) -> io::Result<Vec<(PathBuf, u32)>> {
        let mut out = Vec::new();
        let mut look = |path: PathBuf| -> io::Result<()> {
            let mode = fs::metadata(&path)?.permissions().mode() & 0o777;
            if mode & 0o077 != 0 {
                out.push((path, mode));
            }
            Ok(())
        };
        look(self.dir.clone())?;
        for entry in fs::read_dir(&self.dir)? {
            look(entry?.path())?;
        }
        Ok(out)
    }

    /// Takes others' rights away from everything in the directory.
    pub fn restrict(&self) -> io::Result<()> {
        for (path, mode) in self.exposed()? {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode & 0o700))?;
        }
        Ok(())
    }
}

/// Writes a public key where people look for it.
pub fn publish(dir: &Path, key: &PublicKey, agent: &str) -> io::Result<()> {
    let text = format!("{} {} {agent}\n", key.to_text(), key.id());
    crate::disk::write_atomic(&crate::disk::RealDisk, &published(dir, key.id()), text.as_bytes())
}

/// Where a public key is published.
pub fn published(dir: &Path, key: KeyId) -> PathBuf {
    dir.join(format!("{key}.pub"))
}

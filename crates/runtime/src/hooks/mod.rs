//! `hooks.json` of the data directory: what runs after tools. Read strictly, because a hook that is not run is noticed too late.
//!
//! Start at [`load`]. Whoever starts a session and gets an error goes on without hooks and says so.

mod place;
mod read;
#[cfg(test)]
mod tests;

use std::fs::OpenOptions;
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use baton_core::session::{ErrorCode, Hook};
use rustix::fs::OFlags;

pub use read::parse;

use crate::limits::HOOKS_FILE_BYTES_MAX;

/// Why there are no hooks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct HooksError {
    /// `hook_config_invalid` or `hook_config_read_failed`.
    pub code: ErrorCode,
    /// With the file and the place in it.
    pub message: String,
}

/// What is wrong in the text of the file, and where. Lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{line}:{column}: {}{}{what}", field, if field.is_empty() { "" } else { ": " })]
pub struct Flaw {
    pub line: usize,
    pub column: usize,
    /// Such as `hooks[0].timeout_ms`; empty where it is no JSON at all.
    pub field: String,
    /// What was expected and what came.
    pub what: String,
}

/// Reads the hooks in a file. No file, no hooks; what does not read is an error, and nothing of it counts.
pub fn load(path: &Path) -> Result<Vec<Hook>, HooksError> {
    let bytes = match read_bounded(path) {
        Ok(Some(bytes)) => bytes,
        Ok(None) => return Ok(Vec::new()),
        Err(error) => {
            let message = format!("{}: cannot be read: {error}", path.display());
            return Err(HooksError { code: ErrorCode::HookConfigReadFailed, message });
        }
    };
    parse(&bytes).map_err(|flaw| {
        let message = format!("{}:{flaw}", path.display());
        HooksError { code: ErrorCode::HookConfigInvalid, message }
    })
}

/// The whole file, and a byte more than it may have; nothing where there is none. A pipe in its place is not waited for.
fn read_bounded(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(HOOKS_FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

//! Where torn bytes go: copied aside and synced before anything is written over them.

use std::io;
use std::path::Path;

use baton_core::Digest;
use baton_ledger::hash::Hasher;

use crate::disk::{Disk, Mode};
use crate::layout::Layout;

/// Torn bytes that were set aside.
pub(super) struct Cut {
    pub name: String,
    pub bytes: u64,
    pub sha256: Digest,
}

/// Copies the bytes of a file from an offset on into `quarantine/`, without trailing pre-fill; `None` where nothing else is there.
pub(super) fn quarantine(
    disk: &dyn Disk,
    layout: &Layout,
    path: &Path,
    offset: u64,
) -> io::Result<Option<Cut>> {
    let source = disk.open(path, Mode::Read)?;
    let mut end = source.length()?;
    let mut buffer = vec![0; 1 << 16];
    while end > offset {
        let from = end.saturating_sub(buffer.len() as u64).max(offset);
        let part = &mut buffer[..(end - from) as usize];
        source.read_exact_at(part, from)?;
        match part.iter().rposition(|b| *b != b'\n') {
            Some(at) => {
                end = from + at as u64 + 1;
                break;
            }
            None => end = from,
        }
    }
    if end <= offset {
        return Ok(None);
    }
    let stem = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let taken = disk.list(&layout.quarantine())?;
    let name =
        (0..).map(|n| format!("{stem}.{offset}.{n}")).find(|name| !taken.contains(name)).unwrap_or_default();
    let target = disk.open(&layout.quarantine().join(&name), Mode::CreateNew)?;
    let (mut at, mut hasher) = (offset, Hasher::default());
    while at < end {
        let count = (end - at).min(buffer.len() as u64) as usize;
        source.read_exact_at(&mut buffer[..count], at)?;
        target.write_all_at(&buffer[..count], at - offset)?;
        hasher.update(&buffer[..count]);
        at += count as u64;
    }
    target.sync()?;
    disk.sync_dir(&layout.quarantine())?;
    Ok(Some(Cut { name, bytes: end - offset, sha256: hasher.finish() }))
}

//! What a tool prints, within a bound: its beginning and its end, and where the whole is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write as _};
use std::path::Path;

use baton_core::Digest;
use baton_store::ArtifactStore;
use rustix::fs::{Mode, OFlags};

/// An output as it is passed on.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Bounded {
    pub(super) text: String,
    pub(super) artifact: Option<(Digest, u64)>,
}

/// Cuts what is too long: a third of the bound from its beginning, the rest from its end, where errors are. The whole is stored first.
pub(super) fn bound<S: Read + Seek>(
    whole: &mut S,
    bytes_max: usize,
    store: Option<&dyn ArtifactStore>,
) -> io::Result<Bounded> {
    let total = whole.seek(SeekFrom::End(0))?;
    let part = |whole: &mut S, from: u64, count: usize| {
        whole.seek(SeekFrom::Start(from))?;
        let mut bytes = vec![0; count];
        whole.read_exact(&mut bytes).map(|()| bytes)
    };
    let fits = usize::try_from(total).ok().filter(|total| *total <= bytes_max);
    if let Some(total) = fits {
        let bytes = part(whole, 0, total)?;
        return Ok(Bounded { text: String::from_utf8_lossy(&bytes).into_owned(), artifact: None });
    }
    let head = bytes_max / 3;
    let tail = bytes_max - head;
    let (first, last) = (part(whole, 0, head)?, part(whole, total - tail as u64, tail)?);
    whole.seek(SeekFrom::Start(0))?;
    let stored = store.map(|store| store.put(whole));
    let (artifact, place) = match stored {
        Some(Ok((digest, bytes))) => {
            (Some((digest, bytes)), format!("the whole, {total} bytes, is artifact sha256:{digest}"))
        }
        Some(Err(error)) => (None, format!("the whole could not be stored: {error}")),
        None => (None, "the whole is not kept".to_owned()),
    };
    let (first, last) = (on_boundary_before(&first), on_boundary_after(&last));
    let missing = total - (first.len() + last.len()) as u64;
    let (first, last) = (String::from_utf8_lossy(first), String::from_utf8_lossy(last));
    Ok(Bounded { text: format!("{first}\n[… {missing} bytes left out; {place} …]\n{last}"), artifact })
}

/// Without a character that is cut at the end.
fn on_boundary_before(bytes: &[u8]) -> &[u8] {
    match std::str::from_utf8(bytes) {
        Err(error) if error.error_len().is_none() => &bytes[..error.valid_up_to()],
        _ => bytes,
    }
}

/// Without a character that is cut at the beginning.
fn on_boundary_after(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    &bytes[start..]
}

/// A file without a name: gone with whoever holds it.
pub(super) fn unnamed(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::CLOEXEC;
    match rustix::fs::open(dir, flags, Mode::from_raw_mode(0o600)) {
        Ok(file) => Ok(file.into()),
        // Not every file system has them.
        Err(_) => {
            let path = dir.join(format!(".output-{}-{:?}", std::process::id(), std::thread::current().id()));
            let mut file = File::options().read(true).write(true).create_new(true).open(&path)?;
            std::fs::remove_file(&path)?;
            file.flush()?;
            Ok(file)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;
    use std::sync::Arc;

    #[test]
    fn what_is_too_long_keeps_its_ends_and_says_where_the_whole_is() {
        let dir = tempfile::tempdir().unwrap();
        let store =
            baton_store::artifacts::ArtifactDir::new(Arc::new(baton_store::disk::RealDisk), dir.path());
        let little = bound(&mut Cursor::new("äöü"), 6, Some(&store)).unwrap();
        assert_eq!((little.text.as_str(), little.artifact), ("äöü", None));
        let text = "äöü".repeat(100);
        let much = bound(&mut Cursor::new(&text), 100, Some(&store)).unwrap();
        let digest = baton_ledger::hash::sha256(text.as_bytes());
        assert_eq!(much.artifact, Some((digest, 600)));
        assert!(much.text.starts_with("äöü") && much.text.ends_with("äöü"), "{}", much.text);
        assert!(!much.text.contains('\u{fffd}') && much.text.contains(&digest.to_string()), "{}", much.text);
        let lost = bound(&mut Cursor::new(&text), 100, None).unwrap();
        assert!(lost.text.contains("the whole is not kept"));
    }
}

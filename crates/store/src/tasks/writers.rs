//! Who is writing: the files that some process has open for writing at this moment, as far as this user may see.
//!
//! An editor that saves in place truncates first and writes then, and what lies between is nobody's text. The kernel knows who has a file open; it
//! tells in `/proc`, for the processes of the same user, and of everybody where that is root.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

/// A file of this machine: device and inode.
pub(super) type FileId = (u64, u64);

/// Descriptors that are looked at in one process. More than this is no editor.
const DESCRIPTORS_MAX: usize = 4096;

/// Every file that is open for writing.
pub(super) fn open_for_writing() -> BTreeSet<FileId> {
    let mut open = BTreeSet::new();
    let Ok(processes) = fs::read_dir("/proc") else { return open };
    for process in processes.flatten() {
        let is_process =
            process.file_name().to_str().is_some_and(|name| name.bytes().all(|b| b.is_ascii_digit()));
        if is_process {
            collect(&process.path(), &mut open);
        }
    }
    open
}

fn collect(process: &Path, open: &mut BTreeSet<FileId>) {
    // Somebody else's, or gone.
    let Ok(descriptors) = fs::read_dir(process.join("fd")) else { return };
    for descriptor in descriptors.flatten().take(DESCRIPTORS_MAX) {
        let Ok(file) = fs::metadata(descriptor.path()) else { continue };
        if file.is_file() && is_writing(process, &descriptor.file_name().to_string_lossy()) {
            open.insert((file.dev(), file.ino()));
        }
    }
}

/// Whether a descriptor can be written through; the kernel shows its flags in octal.
fn is_writing(process: &Path, descriptor: &str) -> bool {
    let Ok(info) = fs::read_to_string(process.join("fdinfo").join(descriptor)) else { return false };
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
    let flags = flags.and_then(|flags| u32::from_str_radix(flags.trim(), 8).ok()).unwrap_or(0);
    flags & 0o3 != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{File, OpenOptions};

    #[test]
    fn a_file_is_being_written_while_somebody_has_it_open_for_that() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let writer = File::create(&path).unwrap();
        let meta = writer.metadata().unwrap();
        let file = (meta.dev(), meta.ino());
        assert!(open_for_writing().contains(&file));
        drop(writer);
        assert!(!open_for_writing().contains(&file));
        let reader = File::open(&path).unwrap();
        assert!(!open_for_writing().contains(&file), "reading is not writing");
        let both = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        assert!(open_for_writing().contains(&file));
        drop((reader, both));
    }
}

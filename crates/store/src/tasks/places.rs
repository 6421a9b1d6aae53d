//! Where each task's row is in the saved board, so that showing one task does not read the others.
//!
//! Believed only while the table has the length, and the journal the end, that it had when this was saved; and the row that is found must
//! be of the task that was looked for.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use baton_core::TaskId;

use crate::disk::{Disk, DiskFile, Mode};
use crate::journal::segments;
use crate::layout::Layout;

const MAGIC: u64 = u64::from_be_bytes(*b"batonpl1");
const HEAD: usize = 5 * 8;
const ENTRY: usize = 2 * 8;

/// Offsets of rows by the hash of the task's id.
#[derive(Debug, Default)]
pub(super) struct Places {
    by_hash: BTreeMap<u64, u64>,
}

pub(super) fn places_path(table: &Path) -> PathBuf {
    table.with_file_name("tasks.places")
}

/// FNV-1a: spreads well enough; two ids of one hash cost a lookup, never a wrong answer.
fn hash(id: &TaskId) -> u64 {
    let step = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    id.as_str().bytes().fold(0xcbf2_9ce4_8422_2325, step)
}

impl Places {
    pub(super) fn set(&mut self, id: &TaskId, offset: u64) {
        self.by_hash.insert(hash(id), offset);
    }

    /// Writes everything anew: a few bytes a task, in place and unsynced.
    pub(super) fn save(
        &self,
        disk: &dyn Disk,
        path: &Path,
        table_length: u64,
        pos: u64,
        journal_end: Option<(u64, u64)>,
    ) -> io::Result<()> {
        let (segment, end) = journal_end.unwrap_or((0, 0));
        let mut bytes = Vec::with_capacity(HEAD + ENTRY * self.by_hash.len());
        for number in [MAGIC, table_length, pos, segment, end] {
            bytes.extend_from_slice(&number.to_be_bytes());
        }
        for (hash, offset) in &self.by_hash {
            bytes.extend_from_slice(&hash.to_be_bytes());
            bytes.extend_from_slice(&offset.to_be_bytes());
        }
        let file = disk.open(path, Mode::Create)?;
        file.write_all_at(&bytes, 0)?;
        file.set_len(bytes.len() as u64)
    }

    /// The offset of a task's row, where the table is current.
    pub(super) fn find(
        disk: &dyn Disk,
        path: &Path,
        table: &Path,
        layout: &Layout,
        id: &TaskId,
    ) -> Option<u64> {
        let file = disk.open(path, Mode::Read).ok()?;
        let numbers = read::<5>(&*file, 0)?;
        let [magic, table_length, _, segment, end] = numbers;
        let length = |path: &Path| disk.open(path, Mode::Read).ok()?.length().ok();
        let last = segments::list(disk, layout).ok()?.last().copied();
        let is_current = magic == MAGIC
            && length(table) == Some(table_length)
            && last == Some(segment)
            && length(&layout.segment(segment)) == Some(end);
        if !is_current {
            return None;
        }
        let wanted = hash(id);
        let (mut low, mut high) = (0, (file.length().ok()? - HEAD as u64) / ENTRY as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            let [found, offset] = read::<2>(&*file, HEAD as u64 + middle * ENTRY as u64)?;
            match found.cmp(&wanted) {
                std::cmp::Ordering::Equal => return Some(offset),
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        None
    }
}

fn read<const N: usize>(file: &dyn DiskFile, offset: u64) -> Option<[u64; N]> {
    let mut numbers = [0; N];
    for (i, number) in numbers.iter_mut().enumerate() {
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, offset + 8 * i as u64).ok()?;
        *number = u64::from_be_bytes(bytes);
    }
    Some(numbers)
}

//! The board, saved: one line for each task, so that no command reads the whole journal. A projection: lost, torn or altered, it is made anew.
//!
//! Rows are appended as tasks change; the last row of a task counts. A seal closes every save: the position up to which the rows are current,
//! and a signature of the ledger over all bytes before. What does not end with a good seal is not believed. Each row has a signature of its own
//! too, so that one of them can be shown without reading the others.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::TaskId;
use baton_core::task::{Board, Task};
use baton_ledger::hash::Hasher;
use baton_ledger::key::{PublicKey, SecretKey, Signature};
use serde::{Deserialize, Serialize};

use super::files::Projected;
use super::places::{Places, places_path};
use crate::disk::{Disk, DiskFile, Mode, read_file, write_atomic};
use crate::journal::recover::read_identity;
use crate::layout::Layout;

/// Largest table that is read: ten times a very large board.
const TABLE_BYTES_MAX: u64 = 1 << 30;

/// What a seal's signature is made over, before the digest.
const SEAL_PREFIX: &[u8] = b"baton/tasks/v3\n";

/// The same for a single row.
const ROW_PREFIX: &[u8] = b"baton/task/v3\n";

/// A row: a task and how its files were left.
#[derive(Debug, Serialize, Deserialize)]
struct Row {
    task: Task,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    files: Option<Projected>,
}

/// What was saved.
#[derive(Debug)]
pub struct Loaded {
    pub board: Board,
    pub projected: BTreeMap<TaskId, Projected>,
    /// Which start of the machine it was saved in: files that were written before another one may not have reached the disk.
    pub boot: String,
    pub table: Table,
}

/// What is to be saved.
#[derive(Debug, Clone, Copy)]
pub struct Saving<'a> {
    pub board: &'a Board,
    pub projected: &'a BTreeMap<TaskId, Projected>,
    /// The tasks whose rows are out of date.
    pub changed: &'a BTreeSet<TaskId>,
    pub boot: &'a str,
    pub journal_end: Option<(u64, u64)>,
}

/// The saved board, to be saved on.
#[derive(Debug)]
pub struct Table {
    path: PathBuf,
    file: Option<Arc<dyn DiskFile>>,
    length: u64,
    rows: u64,
    pos: u64,
    hasher: Hasher,
    places: Places,
}

impl Table {
    fn empty(path: PathBuf) -> Table {
        Table {
            path,
            file: None,
            length: 0,
            rows: 0,
            pos: 0,
            hasher: Hasher::default(),
            places: Places::default(),
        }
    }

    /// The position up to which the rows are current.
    pub fn pos(&self) -> u64 {
        self.pos
    }

    /// Reads what was saved; an empty board where nothing usable was.
    pub fn load(disk: &dyn Disk, index: &Path, key: &PublicKey) -> Loaded {
        let path = index.join("tasks");
        let nothing = || Loaded {
            board: Board::default(),
            projected: BTreeMap::new(),
            boot: String::new(),
            table: Table::empty(path.clone()),
        };
        let Ok(bytes) = read_file(disk, &path, TABLE_BYTES_MAX) else { return nothing() };
        read(&bytes, key, &path).unwrap_or_else(nothing)
    }

    /// Whether what was saved is as it was saved; `None` where nothing was.
    pub fn is_sound(disk: &dyn Disk, index: &Path, key: &PublicKey) -> Option<bool> {
        let path = index.join("tasks");
        let bytes = read_file(disk, &path, TABLE_BYTES_MAX).ok()?;
        Some(read(&bytes, key, &path).is_some())
    }

    /// Saves the rows that changed. Nothing is synced: what a crash takes away is made again.
    pub fn save(&mut self, disk: &dyn Disk, key: &SecretKey, saving: &Saving<'_>) -> io::Result<()> {
        let Saving { board, projected, changed, boot, journal_end } = *saving;
        let is_due = self.rows + changed.len() as u64 > 4 * board.len() as u64 + 64;
        let is_new = self.length == 0 || is_due;
        if is_new {
            *self = Table::empty(self.path.clone());
        }
        let (mut text, start) = (String::new(), self.length);
        let places = &mut self.places;
        let mut put = |task: &Task| -> io::Result<()> {
            places.set(&task.id, start + text.len() as u64);
            let row = Row { task: task.clone(), files: projected.get(&task.id).cloned() };
            let row = serde_json::to_string(&row).map_err(io::Error::other)?;
            let signature = key.sign(&[ROW_PREFIX, row.as_bytes()].concat());
            text.push_str(&row);
            text.push(' ');
            text.push_str(&BASE64.encode(signature.0));
            text.push('\n');
            Ok(())
        };
        if is_new {
            board.tasks().try_for_each(&mut put)?;
            self.rows = board.len() as u64;
        } else {
            changed.iter().filter_map(|id| board.get(id)).try_for_each(&mut put)?;
            self.rows += changed.len() as u64;
        }
        self.hasher.update(text.as_bytes());
        self.pos = board.pos();
        let seal = format!("#{} {boot} ", board.pos());
        let digest = {
            let mut hasher = self.hasher.clone();
            hasher.update(seal.as_bytes());
            hasher.finish()
        };
        let signature = key.sign(&[SEAL_PREFIX, &digest.0].concat());
        let seal = format!("{seal}{}\n", BASE64.encode(signature.0));
        self.hasher.update(seal.as_bytes());
        text.push_str(&seal);
        if is_new {
            write_atomic(disk, &self.path, text.as_bytes())?;
            self.length = text.len() as u64;
            return self.save_places(disk, journal_end);
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(disk.open(&self.path, Mode::Write)?).clone(),
        };
        file.write_all_at(text.as_bytes(), self.length)?;
        self.length += text.len() as u64;
        self.save_places(disk, journal_end)
    }

    fn save_places(&self, disk: &dyn Disk, journal_end: Option<(u64, u64)>) -> io::Result<()> {
        self.places.save(disk, &places_path(&self.path), self.length, self.pos, journal_end)
    }
}

fn is_signed(key: &PublicKey, message: &[u8], signature: &str) -> bool {
    let signature = BASE64.decode(signature).ok().and_then(|bytes| bytes.try_into().ok());
    signature.is_some_and(|signature| key.verify_strict(message, &Signature(signature)))
}

/// The row of one task, where the table is current: looked up, not searched for. Whether a later row says something else is not known here: how its
/// file was left tells, if it is still as the row has it.
pub fn look_up(disk: &dyn Disk, layout: &Layout, id: &TaskId) -> Option<(Task, Option<Projected>)> {
    let path = layout.index().join("tasks");
    let offset = Places::find(disk, &places_path(&path), &path, layout, id)?;
    let file = disk.open(&path, Mode::Read).ok()?;
    let mut bytes = vec![0; ROW_BYTES_MAX.min(usize::try_from(file.length().ok()? - offset).ok()?)];
    file.read_exact_at(&mut bytes, offset).ok()?;
    let line = bytes.split(|byte| *byte == b'\n').next()?;
    let (row, signature) = std::str::from_utf8(line).ok()?.rsplit_once(' ')?;
    let key = read_identity(disk, layout).ok()?.key;
    if !is_signed(&key, &[ROW_PREFIX, row.as_bytes()].concat(), signature) {
        return None;
    }
    let row: Row = serde_json::from_str(row).ok()?;
    (row.task.id == *id).then_some((row.task, row.files))
}

/// Longest row that is looked up; a longer one is found by reading the table.
const ROW_BYTES_MAX: usize = 256 << 10;

fn read(bytes: &[u8], key: &PublicKey, path: &Path) -> Option<Loaded> {
    let text = std::str::from_utf8(bytes).ok()?;
    let whole = text.strip_suffix('\n')?;
    let seal_at = whole.rfind("\n#").map_or(0, |at| at + 1);
    let seal = &whole[seal_at..];
    let (pos, rest) = seal.strip_prefix('#')?.split_once(' ')?;
    let (boot, signature) = rest.split_once(' ')?;
    let mut hasher = Hasher::default();
    hasher.update(&bytes[..seal_at]);
    let digest = {
        let mut hasher = hasher.clone();
        hasher.update(format!("#{pos} {boot} ").as_bytes());
        hasher.finish()
    };
    if !is_signed(key, &[SEAL_PREFIX, &digest.0].concat(), signature) {
        return None;
    }
    hasher.update(&bytes[seal_at..]);
    let mut last: BTreeMap<&str, &str> = BTreeMap::new();
    let (mut rows, mut at) = (0, 0);
    let mut places = Places::default();
    for line in text[..seal_at].split_inclusive('\n') {
        let start = at;
        at += line.len() as u64;
        if line.starts_with('#') {
            continue;
        }
        // Every row starts with the id, so that only the last one of a task is taken apart.
        let id = line.strip_prefix(r#"{"task":{"id":""#)?.split('"').next()?;
        last.insert(id, line);
        places.set(&id.parse().ok()?, start);
        rows += 1;
    }
    let (mut board, mut projected) = (Board::default(), BTreeMap::new());
    for line in last.values() {
        let (row, _) = line.rsplit_once(' ')?;
        let row: Row = serde_json::from_str(row).ok()?;
        if let Some(files) = row.files {
            projected.insert(row.task.id.clone(), files);
        }
        board.restore(row.task);
    }
    let pos = pos.parse().ok()?;
    board.set_pos(pos);
    let table =
        Table { path: path.to_owned(), file: None, length: bytes.len() as u64, rows, pos, hasher, places };
    Some(Loaded { board, projected, boot: boot.to_owned(), table })
}

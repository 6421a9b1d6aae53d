//! The index: a projection of the journal that is rebuilt when lost, so that no call reads everything.
//!
//! Four files only ever grow: `entries` (72 bytes an event), `nodes` (32 bytes a tree node, in order of completion), `traces` (the ends of traces, the last one
//! of each counts) and `keys` (where key events lie). `meta` says how much of each is good; it is replaced atomically after the others are synced. What the journal
//! has beyond that is read again at open.
//!
//! Nothing in it is believed because it is there: each entry carries a check of its own, `meta` the hashes of `traces` and `keys` and the tree's root and the ledger's signature over them, a
//! proof is checked before it is handed out, and lines that it leads to are hashed again. What does not hold together is rebuilt.

mod format;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::{Digest, EventId, TraceId};
use baton_ledger::hash::Hasher;
use baton_ledger::key::{PublicKey, SecretKey};
use baton_ledger::merkle::{Frontier, stored_count, stored_index};

pub use self::format::Entry;
use self::format::{ENTRY, KEY, Meta, NODE, TRACE, number, read_row, write_row};
use crate::disk::{Disk, DiskFile, Mode, read_file, write_atomic};
use crate::ports::TraceSummary;

/// Entries or rows that are read at a time.
const ROWS_AT_ONCE: usize = 1024;

/// The number that an event's second pointer leads to: its own with the lowest bit cleared. 0 is none.
fn skip_target(seq: u64) -> u64 {
    seq & seq.wrapping_sub(1)
}

/// What a new event brings along.
#[derive(Debug, Clone, Copy)]
pub struct Added {
    pub id: EventId,
    pub trace: TraceId,
    pub seq: u64,
    pub hash: Digest,
    pub segment: u64,
    pub offset: u64,
    pub length: u32,
    pub closes: bool,
    pub is_key_event: bool,
}

/// A place in the journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    pub segment: u64,
    pub offset: u64,
}

#[derive(Debug, Clone)]
struct TraceRow {
    no: u32,
    summary: TraceSummary,
    is_dirty: bool,
}

/// An append-only file with a part that is not written yet.
#[derive(Debug, Default)]
struct Column {
    file: Option<Arc<dyn DiskFile>>,
    written: u64,
    tail: Vec<u8>,
    /// Over everything that is written; only for the columns that are read whole.
    hasher: Hasher,
}

impl Column {
    fn read(&self, at: u64, buffer: &mut [u8]) -> io::Result<()> {
        match (at.checked_sub(self.written), &self.file) {
            (Some(from), _) => {
                let from = usize::try_from(from).map_err(|_| io::ErrorKind::UnexpectedEof)?;
                let bytes = self.tail.get(from..from + buffer.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
                buffer.copy_from_slice(bytes);
                Ok(())
            }
            (None, Some(file)) => file.read_exact_at(buffer, at),
            (None, None) => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    fn write_out(&mut self, disk: &dyn Disk, path: &Path) -> io::Result<()> {
        if self.tail.is_empty() {
            return Ok(());
        }
        let file = match &self.file {
            Some(file) => file.clone(),
            None => self.file.insert(disk.open(path, Mode::Create)?).clone(),
        };
        file.write_all_at(&self.tail, self.written)?;
        self.hasher.update(&self.tail);
        self.written += self.tail.len() as u64;
        self.tail.clear();
        Ok(())
    }
}

/// The index in use: what is in the files and what is not written yet.
#[derive(Debug)]
pub struct Index {
    dir: PathBuf,
    count: u64,
    entries: Column,
    nodes: Column,
    trace_log: Column,
    key_log: Column,
    traces: BTreeMap<TraceId, TraceRow>,
    by_no: Vec<TraceId>,
    keys: BTreeMap<TraceId, Vec<u64>>,
    id_max: Option<EventId>,
    saved: u64,
    /// Number in the name of the file of traces.
    generation: u64,
}

impl Index {
    /// An index of nothing.
    pub fn empty(dir: impl Into<PathBuf>) -> Self {
        Index {
            dir: dir.into(),
            count: 0,
            entries: Column::default(),
            nodes: Column::default(),
            trace_log: Column::default(),
            key_log: Column::default(),
            traces: BTreeMap::new(),
            by_no: Vec::new(),
            keys: BTreeMap::new(),
            id_max: None,
            saved: 0,
            generation: 0,
        }
    }

    /// Reads the index, or gives `None` where there is none or it does not hold together: then it is rebuilt.
    ///
    /// `meta` must be signed with the ledger's key: the index of another ledger, or one that somebody made, is none.
    pub fn load(disk: &dyn Disk, dir: impl Into<PathBuf>, key: &PublicKey, mode: Mode) -> Option<Self> {
        let mut index = Index::empty(dir);
        let meta = Meta::parse(&read_file(disk, &index.dir.join("meta"), 4096).ok()?, key)?;
        let column = |name: &str, length: u64| -> Option<Column> {
            let file = disk.open(&index.dir.join(name), mode).ok()?;
            let is_long_enough = file.length().ok()? >= length;
            is_long_enough.then_some(Column { file: Some(file), written: length, ..Column::default() })
        };
        index.entries = column("entries", meta.count * ENTRY as u64)?;
        index.nodes = column("nodes", stored_count(meta.count) * NODE as u64)?;
        index.trace_log = column(&format!("traces.{}", meta.generation), meta.trace_log)?;
        index.key_log = column("keys", meta.key_log).or_else(|| (meta.key_log == 0).then(Column::default))?;
        (index.count, index.saved, index.id_max) = (meta.count, meta.count, meta.id_max);
        index.generation = meta.generation;
        index.load_traces()?;
        index.load_keys()?;
        let holds = (meta.trace_hash, meta.key_hash, meta.root)
            == (index.trace_log.hash(), index.key_log.hash(), index.frontier(index.count).ok()?.root());
        holds.then_some(index)
    }

    fn load_traces(&mut self) -> Option<()> {
        let mut log = std::mem::take(&mut self.trace_log);
        log.read_rows(TRACE, |row| {
            let summary = read_row(row)?;
            if summary.last_pos > self.count {
                return None;
            }
            let trace = summary.trace;
            match self.traces.get_mut(&trace) {
                Some(row) => row.summary = summary,
                None => {
                    let no = u32::try_from(self.by_no.len()).ok()?;
                    self.by_no.push(trace);
                    self.traces.insert(trace, TraceRow { no, summary, is_dirty: false });
                }
            }
            Some(())
        })?;
        self.trace_log = log;
        Some(())
    }

    fn load_keys(&mut self) -> Option<()> {
        let mut log = std::mem::take(&mut self.key_log);
        log.read_rows(KEY, |row| {
            let no = u32::from_le_bytes(row[..4].try_into().ok()?);
            let trace = *self.by_no.get(no as usize)?;
            self.keys.entry(trace).or_default().push(number(&row[8..16])?);
            Some(())
        })?;
        self.key_log = log;
        Some(())
    }

    /// Number of events that the index knows.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Number of events when it was last saved.
    pub fn saved(&self) -> u64 {
        self.saved
    }

    pub fn id_max(&self) -> Option<EventId> {
        self.id_max
    }

    pub fn trace(&self, trace: TraceId) -> Option<&TraceSummary> {
        self.traces.get(&trace).map(|row| &row.summary)
    }

    /// Every trace, in the order of their first events.
    pub fn traces(&self) -> impl Iterator<Item = &TraceSummary> {
        self.by_no.iter().filter_map(|trace| self.trace(*trace))
    }

    /// The trace with this number.
    pub fn trace_of(&self, no: u32) -> Option<TraceId> {
        self.by_no.get(no as usize).copied()
    }

    /// Positions of the key events of a trace.
    pub fn key_events(&self, trace: TraceId) -> &[u64] {
        self.keys.get(&trace).map_or(&[], Vec::as_slice)
    }

    /// Takes the next event in. `nodes` are the tree's nodes that it completes.
    pub fn add(&mut self, added: &Added, nodes: &[Digest]) {
        let pos = self.count + 1;
        let next_no = self.by_no.len() as u32;
        let row = self.traces.entry(added.trace).or_insert_with(|| {
            self.by_no.push(added.trace);
            let (trace, head) = (added.trace, Digest::ZERO);
            let summary = TraceSummary { trace, first_pos: pos, last_pos: 0, seq: 0, head, is_closed: false };
            TraceRow { no: next_no, summary, is_dirty: true }
        });
        let (prev_pos, trace_no) = (row.summary.last_pos, row.no);
        let skip_pos = self.skip_pos(added.seq, prev_pos);
        let entry = Entry {
            id: added.id,
            segment: added.segment,
            offset: added.offset,
            length: added.length,
            trace_no,
            seq: added.seq,
            prev_pos,
            skip_pos,
        };
        let Some(row) = self.traces.get_mut(&added.trace) else { return };
        row.is_dirty = true;
        (row.summary.last_pos, row.summary.seq, row.summary.head) = (pos, added.seq, added.hash);
        row.summary.is_closed |= added.closes;
        entry.write(pos, &mut self.entries.tail);
        nodes.iter().for_each(|node| self.nodes.tail.extend_from_slice(&node.0));
        if added.is_key_event {
            self.key_log.tail.extend_from_slice(&trace_no.to_le_bytes());
            self.key_log.tail.extend_from_slice(&[0; 4]);
            self.key_log.tail.extend_from_slice(&pos.to_le_bytes());
            self.keys.entry(added.trace).or_default().push(pos);
        }
        self.id_max = self.id_max.max(Some(added.id));
        self.count = pos;
    }

    /// Where the second pointer of the event after `prev_pos` leads. On average it takes one step to find.
    fn skip_pos(&self, seq: u64, prev_pos: u64) -> u64 {
        let (target, mut at, mut pos) = (skip_target(seq), seq - 1, prev_pos);
        while at > target {
            // Without the pointer the way back is longer, not wrong.
            let Ok(entry) = self.entry(pos) else { return 0 };
            (at, pos) = (skip_target(at), entry.skip_pos);
        }
        if target == 0 { 0 } else { pos }
    }

    /// Where the event at a position lies.
    pub fn entry(&self, pos: u64) -> io::Result<Entry> {
        if pos == 0 || pos > self.count {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut bytes = [0; ENTRY];
        self.entries.read((pos - 1) * ENTRY as u64, &mut bytes)?;
        Entry::read(pos, &bytes).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Where the next event will lie, as far as the index knows.
    pub fn end(&self) -> io::Result<Option<Place>> {
        if self.count == 0 {
            return Ok(None);
        }
        let last = self.entry(self.count)?;
        Ok(Some(Place { segment: last.segment, offset: last.offset + u64::from(last.length) + 1 }))
    }

    /// A stored node of the tree.
    pub fn node(&self, index: u64) -> io::Result<Digest> {
        let mut bytes = [0; NODE];
        self.nodes.read(index * NODE as u64, &mut bytes)?;
        Ok(Digest(bytes))
    }

    /// The tree at an earlier size.
    pub fn frontier(&self, size: u64) -> io::Result<Frontier> {
        Frontier::load(size, &mut |index| self.node(index))
    }

    /// The tree's leaf of an event.
    pub fn leaf(&self, pos: u64) -> io::Result<Digest> {
        self.node(stored_index(0, pos - 1))
    }

    /// The position of an event of a trace, found by going back from its end in steps that double.
    pub fn position_of(&self, trace: TraceId, seq: u64) -> io::Result<Option<u64>> {
        let Some(summary) = self.trace(trace).filter(|summary| seq >= 1 && seq <= summary.seq) else {
            return Ok(None);
        };
        let (mut at, mut pos) = (summary.seq, summary.last_pos);
        while at > seq {
            let entry = self.entry(pos)?;
            (at, pos) = match skip_target(at) {
                target if target >= seq && entry.skip_pos > 0 => (target, entry.skip_pos),
                _ => (at - 1, entry.prev_pos),
            };
        }
        Ok(Some(pos))
    }

    /// Positions of the events of a trace from a number on, at most `limit`, in order.
    pub fn positions(&self, trace: TraceId, from_seq: u64, limit: usize) -> io::Result<Vec<u64>> {
        let Some(summary) = self.trace(trace) else { return Ok(Vec::new()) };
        let from = from_seq.max(1);
        let last = summary.seq.min(from.saturating_add(limit as u64).saturating_sub(1));
        if last < from {
            return Ok(Vec::new());
        }
        let Some(mut pos) = self.position_of(trace, last)? else { return Ok(Vec::new()) };
        let mut out = vec![pos];
        for _ in from..last {
            pos = self.entry(pos)?.prev_pos;
            out.push(pos);
        }
        out.reverse();
        Ok(out)
    }

    /// The position of an event. Ids are nearly in order of time, so it looks where it should be before it looks everywhere.
    pub fn find(&self, id: EventId) -> io::Result<Option<u64>> {
        if self.id_max.is_none_or(|max| id > max) {
            return Ok(None);
        }
        let (mut low, mut high) = (1, self.count + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.entry(middle)?.id < id { low = middle + 1 } else { high = middle }
        }
        const NEAR: u64 = 2048;
        let mut found = None;
        let mut look = |pos, known| {
            found = (known == id).then_some(pos);
            found.is_none()
        };
        if self.scan(low.saturating_sub(NEAR).max(1), low + NEAR, &mut look)? {
            self.scan(1, self.count, &mut look)?;
        }
        Ok(found)
    }

    /// Every id that starts with these characters, at most `limit`.
    pub fn find_prefix(&self, prefix: &str, limit: usize) -> io::Result<Vec<(EventId, u64)>> {
        let mut out = Vec::new();
        self.scan(1, self.count, &mut |pos, id: EventId| {
            if id.to_string().starts_with(prefix) {
                out.push((id, pos));
            }
            out.len() < limit
        })?;
        Ok(out)
    }

    /// Shows the ids at a range of positions, in order, as long as `look` wants more. Gives whether it still did at the end.
    fn scan(&self, from: u64, to: u64, look: &mut dyn FnMut(u64, EventId) -> bool) -> io::Result<bool> {
        let (mut pos, to) = (from, to.min(self.count));
        while pos <= to {
            // Where the file ends and the unwritten part begins, one read does not cover both.
            let written = self.entries.written / ENTRY as u64;
            let end = if pos <= written { to.min(written) } else { to };
            let count = (end - pos + 1).min(ROWS_AT_ONCE as u64);
            let mut bytes = vec![0; count as usize * ENTRY];
            self.entries.read((pos - 1) * ENTRY as u64, &mut bytes)?;
            for entry in bytes.as_chunks::<ENTRY>().0 {
                let entry = Entry::read(pos, entry).ok_or(io::ErrorKind::InvalidData)?;
                if !look(pos, entry.id) {
                    return Ok(false);
                }
                pos += 1;
            }
        }
        Ok(true)
    }

    /// Looks at every entry and every node of the tree: whether they hold together, not whether the journal says the same.
    pub fn check(&self) -> io::Result<()> {
        self.scan(1, self.count, &mut |_, _| true)?;
        let (mut tree, mut next) = (Frontier::default(), 0);
        for pos in 1..=self.count {
            let mut nodes = Vec::new();
            tree.push(self.leaf(pos)?, |node| nodes.push(node));
            for node in nodes {
                if self.node(next)? != node {
                    return Err(io::ErrorKind::InvalidData.into());
                }
                next += 1;
            }
        }
        Ok(())
    }

    /// Number of bytes that are not written yet.
    pub fn pending(&self) -> usize {
        self.entries.tail.len() + self.nodes.tail.len()
    }

    /// Hands the new parts to the operating system, without waiting for the disk.
    pub fn write_out(&mut self, disk: &dyn Disk) -> io::Result<()> {
        let dir = self.dir.clone();
        self.entries.write_out(disk, &dir.join("entries"))?;
        self.nodes.write_out(disk, &dir.join("nodes"))?;
        self.key_log.write_out(disk, &dir.join("keys"))
    }

    /// Makes everything durable and says so in `meta`. The journal up to here must be durable already.
    pub fn save(&mut self, disk: &dyn Disk, key: &SecretKey) -> io::Result<()> {
        self.write_out(disk)?;
        // A log with many outdated ends is written anew under another name; `meta` names the one that counts.
        let rows = (self.trace_log.written + self.trace_log.tail.len() as u64) / TRACE as u64;
        if self.trace_log.file.is_none() || rows > 4 * self.by_no.len() as u64 + 4096 {
            self.generation += 1;
            self.trace_log = Column::default();
            self.traces.values_mut().for_each(|row| row.is_dirty = true);
        }
        for trace in &self.by_no {
            if let Some(row) = self.traces.get_mut(trace).filter(|row| row.is_dirty) {
                write_row(&mut self.trace_log.tail, &row.summary);
                row.is_dirty = false;
            }
        }
        self.trace_log.write_out(disk, &self.dir.join(format!("traces.{}", self.generation)))?;
        for column in [&self.entries, &self.nodes, &self.trace_log, &self.key_log] {
            if let Some(file) = &column.file {
                file.sync()?;
            }
        }
        let meta = Meta {
            count: self.count,
            generation: self.generation,
            trace_log: self.trace_log.written,
            key_log: self.key_log.written,
            id_max: self.id_max,
            trace_hash: self.trace_log.hash(),
            key_hash: self.key_log.hash(),
            root: self.frontier(self.count)?.root(),
        };
        write_atomic(disk, &self.dir.join("meta"), meta.to_text(key).as_bytes())?;
        self.saved = self.count;
        for name in disk.list(&self.dir)? {
            if name.starts_with("traces.") && name != format!("traces.{}", self.generation) {
                disk.remove(&self.dir.join(name))?;
            }
        }
        Ok(())
    }
}

impl Column {
    /// Shows every row that is written, which the hash then covers. Ends at the first one that is not taken.
    fn read_rows(&mut self, row: usize, mut take: impl FnMut(&[u8]) -> Option<()>) -> Option<()> {
        let mut at = 0;
        while at < self.written {
            let count = (self.written - at).min((row * ROWS_AT_ONCE) as u64);
            let mut bytes = vec![0; usize::try_from(count).ok()?];
            self.read(at, &mut bytes).ok()?;
            bytes.chunks_exact(row).try_for_each(&mut take)?;
            self.hasher.update(&bytes);
            at += count;
        }
        Some(())
    }

    fn hash(&self) -> Digest {
        self.hasher.clone().finish()
    }
}

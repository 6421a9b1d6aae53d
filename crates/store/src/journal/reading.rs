//! The reading half of the journal on disk: lines by position and by trace, keys, the tree. Needs no lock.
//!
//! Every line that the index leads to is read and hashed again before anyone sees it.

use std::io;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

use baton_core::guard::{RUN_BEGINS, Run};
use baton_core::{Digest, EventId, TraceId};
use baton_ledger::body::KeyEvent;
use baton_ledger::guard::{Heard, Speaker};
use baton_ledger::hash::leaf;
use baton_ledger::keyring::{KeyRing, LedgerIdentity};
use baton_ledger::merkle::{Frontier, check_inclusion, prove_inclusion};
use baton_ledger::record::Line;
use baton_ledger::seal::Past;

use super::index::{Entry, Index};
use super::recover::{self, Tail};
use crate::disk::{Disk, DiskFile, Mode, sync_shown, sync_shown_names};
use crate::layout::Layout;
use crate::ports::{History, OpenError, ReadError, StoredLine, TraceSummary};

/// Lines of a guarded run that are read at once.
const RUN_LINES: usize = 256;

/// A journal's files and the index that leads through them.
#[derive(Debug)]
pub(crate) struct Reading {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) layout: Layout,
    pub(super) ledger: LedgerIdentity,
    pub(super) index: RwLock<Index>,
}

/// The segment that was read last, so that neighbours do not open it again.
type OpenSegment = Option<(u64, Arc<dyn DiskFile>)>;

impl Reading {
    pub(super) fn index(&self) -> RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn index_error(&self) -> impl Fn(io::Error) -> ReadError {
        |source| match source.kind() {
            io::ErrorKind::InvalidData => ReadError::Index("an entry does not check".into()),
            io::ErrorKind::UnexpectedEof => ReadError::Index("it ends too soon".into()),
            _ => ReadError::Io { path: self.layout.index(), source },
        }
    }

    /// Reads the lines at these positions.
    fn lines(&self, positions: &[u64]) -> Result<Vec<StoredLine>, ReadError> {
        let index = self.index();
        let mut open = None;
        let read = |pos: &u64| {
            let entry = index.entry(*pos).map_err(self.index_error())?;
            self.line(&index, *pos, &entry, &mut open)
        };
        positions.iter().map(read).collect()
    }

    fn line(
        &self,
        index: &Index,
        pos: u64,
        entry: &Entry,
        open: &mut OpenSegment,
    ) -> Result<StoredLine, ReadError> {
        let path = self.layout.segment(entry.segment);
        let fail = |source| ReadError::Io { path: path.clone(), source };
        let file = match open {
            Some((segment, file)) if *segment == entry.segment => file.clone(),
            _ => {
                let file = self.disk.open(&path, Mode::Read).map_err(fail)?;
                open.insert((entry.segment, file)).1.clone()
            }
        };
        let mut bytes = vec![0; entry.length as usize];
        file.read_exact_at(&mut bytes, entry.offset).map_err(fail)?;
        let damaged = |why: String| ReadError::Damaged { pos, why };
        let line = Line::parse(&bytes).map_err(|flaw| damaged(flaw.to_string()))?;
        if line.link_hash(&line.body_digest()) != line.hash {
            return Err(damaged("its hash does not fit its content".into()));
        }
        let trace = index.trace_of(entry.trace_no);
        if (line.pos, line.seq, line.id, Some(line.trace)) != (pos, entry.seq, entry.id, trace) {
            return Err(damaged("it is not the record that the index knows".into()));
        }
        Ok(StoredLine { pos, text: line.text.to_owned() })
    }

    /// The keys that the key events of a trace leave behind. Who may sign hangs on them, so they are believed only as the ledger signed them and where
    /// they stand in its tree.
    pub(super) fn read_keys(&self, trace: TraceId, positions: &[u64]) -> Result<KeyRing, ReadError> {
        let mut keys = KeyRing::default();
        for stored in self.lines(positions)? {
            let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
            let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
            let event = line.to_payload().ok().as_ref().and_then(KeyEvent::of);
            let event = event.ok_or_else(|| damaged("not a key event".into()))?;
            let sig = line.sig.filter(|sig| {
                sig.key == self.ledger.key.id()
                    && self.ledger.key.verify_event(&line.body_digest(), &sig.value)
            });
            if sig.is_none() || line.trace != trace {
                return Err(damaged("a key event that the ledger did not sign for this trace".into()));
            }
            if !self.is_in_tree(stored.pos, &line.hash)? {
                return Err(damaged("a key event that is not the one that was sealed here".into()));
            }
            keys.apply(&self.ledger, &event, sig.map(|sig| sig.key))
                .map_err(|fault| damaged(fault.to_string()))?;
        }
        Ok(keys)
    }

    /// The guarded run that a trace is, if it is one, as its events tell. Each is believed only as it was sealed.
    pub(super) fn read_run(&self, trace: TraceId) -> Result<Option<Arc<Run>>, ReadError> {
        let (mut run, mut next) = (None, 1);
        loop {
            // Most traces are none: two lines say so.
            let most = if run.is_none() { RUN_BEGINS as usize } else { RUN_LINES };
            let positions = self.index().positions(trace, next, most).map_err(self.index_error())?;
            for stored in self.lines(&positions)? {
                let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
                let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
                if !self.is_in_tree(stored.pos, &line.hash)? {
                    return Err(damaged("an event that is not the one that was sealed here".into()));
                }
                Heard::of_line(&line).apply(&mut run, &Speaker::of_line(&line));
                next = line.seq + 1;
            }
            if positions.len() < most || run.is_none() {
                return Ok(run);
            }
        }
    }

    /// Whether the event at a position is the one that the tree was made of.
    fn is_in_tree(&self, pos: u64, hash: &Digest) -> Result<bool, ReadError> {
        let index = self.index();
        let prove = || {
            let path = prove_inclusion(pos - 1, index.count(), |at| index.node(at))?;
            let root = index.frontier(index.count())?.root();
            Ok(check_inclusion(pos - 1, index.count(), leaf(hash), &path, &root))
        };
        prove().map_err(self.index_error())
    }

    /// Makes everything durable that can be read, whatever appends promise.
    fn settle(&self) -> io::Result<()> {
        // Asked first, so that no append waits for the disk here.
        let end = self.index().end()?;
        match end {
            Some(end) => sync_shown(&*self.disk.open(&self.layout.segment(end.segment), Mode::Read)?),
            None => Ok(()),
        }
    }
}

/// The durable past, as the sequencer asks for it.
impl Past for Reading {
    fn hash_of(&self, trace: TraceId, seq: u64) -> Result<Option<Digest>, String> {
        let position = self.index().position_of(trace, seq).map_err(|e| e.to_string())?;
        let Some(pos) = position else { return Ok(None) };
        let stored = self.lines(&[pos]).map_err(|e| e.to_string())?;
        let line = stored.first().and_then(|stored| Line::parse(stored.text.as_bytes()).ok());
        let line = line.filter(|line| line.trace == trace && line.seq == seq);
        line.map(|line| Some(line.hash)).ok_or_else(|| format!("{trace} has no seq {seq} at {pos}"))
    }

    fn has_id(&self, id: EventId) -> Result<bool, String> {
        self.index().find(id).map(|found| found.is_some()).map_err(|e| e.to_string())
    }
}

/// Who has a [`Reading`]: the owner and every visitor.
pub(crate) trait Reads: Send + Sync {
    fn reading(&self) -> &Reading;
}

impl<T: Reads> History for T {
    fn ledger(&self) -> LedgerIdentity {
        self.reading().ledger.clone()
    }

    fn size(&self) -> u64 {
        self.reading().index().count()
    }

    fn end(&self) -> Option<(u64, u64)> {
        let end = self.reading().index().end().ok()??;
        Some((end.segment, end.offset))
    }

    fn tree(&self) -> Result<Frontier, ReadError> {
        let reading = self.reading();
        let index = reading.index();
        index.frontier(index.count()).map_err(reading.index_error())
    }

    fn settle(&self) -> Result<(), ReadError> {
        self.reading()
            .settle()
            .map_err(|source| ReadError::Io { path: self.reading().layout.events(), source })
    }

    fn node(&self, at: u64) -> Result<Digest, ReadError> {
        self.reading().index().node(at).map_err(self.reading().index_error())
    }

    fn trace(&self, trace: TraceId) -> Option<TraceSummary> {
        self.reading().index().trace(trace).cloned()
    }

    fn traces(&self) -> Vec<TraceSummary> {
        self.reading().index().traces().cloned().collect()
    }

    fn keys(&self, trace: TraceId) -> Result<KeyRing, ReadError> {
        let positions = self.reading().index().key_events(trace).to_vec();
        self.reading().read_keys(trace, &positions)
    }

    fn read(&self, from: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError> {
        let from = from.max(1);
        let last = self.size().min(from.saturating_add(limit as u64) - 1);
        self.reading().lines(&(from..=last).collect::<Vec<_>>())
    }

    fn read_trace(&self, trace: TraceId, from_seq: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError> {
        let reading = self.reading();
        let positions = reading.index().positions(trace, from_seq, limit).map_err(reading.index_error())?;
        reading.lines(&positions)
    }

    fn find(&self, id: EventId) -> Result<Option<u64>, ReadError> {
        self.reading().index().find(id).map_err(self.reading().index_error())
    }
}

/// A journal that is only read. Takes no lock; shows what was there when it was opened, and makes sure first that it is durable.
///
/// One thing can still be shown and then disappear: part of a write that fails half-way, seen in the moment before its writer takes it back.
#[derive(Debug)]
pub struct Reader {
    reading: Reading,
    pub tail: Tail,
}

impl Reader {
    pub fn open(disk: Arc<dyn Disk>, layout: &Layout) -> Result<Reader, OpenError> {
        let opened = recover::open(&disk, layout, Mode::Read)?;
        // The writer may be between its write and its sync. Only the last segment can hold such bytes.
        let path = layout.segment(opened.end.segment);
        disk.open(&path, Mode::Read)
            .and_then(|file| sync_shown(&*file))
            .and_then(|()| sync_shown_names(&*disk, &layout.events()))
            .map_err(OpenError::io("sync", &path))?;
        let index = RwLock::new(opened.index);
        let reading = Reading { disk, layout: layout.clone(), ledger: opened.ledger, index };
        Ok(Reader { reading, tail: opened.tail })
    }

    /// Event ids that start with these characters.
    pub fn find_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<(EventId, u64)>, ReadError> {
        self.reading.index().find_prefix(prefix, limit).map_err(self.reading.index_error())
    }
}

impl Reads for Reader {
    fn reading(&self) -> &Reading {
        &self.reading
    }
}

//! The journal on disk: opens, recovers, appends with group commit, reads.
//!
//! [`FsJournal`] owns the data directory for writing; [`Reader`] needs no lock and sees what was durable when it was made.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use baton_core::event::Durability;
use baton_core::limits::WRITE_BYTES_MAX;
use baton_core::{Actor, Digest, Event, EventId, Payload, Role, TraceId};
use baton_ledger::body::{Body, KeyEvent};
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::{KeyRing, LEDGER_AGENT, LedgerIdentity};
use baton_ledger::merkle::Frontier;
use baton_ledger::record::Line;
use baton_ledger::seal::{Chain, Checked, Past, Proposal, Receipt, Refusal, TraceState};

use super::checkpoints::NoteDir;
use super::index::{Added, Index, Place};
use super::keeper::Keeper;
use super::quarantine::quarantine;
use super::recover::{self, Opened, Tail};
use super::segments;
use super::sequencer::Sequencer;
use super::writer::{SegmentWriter, WriteError};
use crate::clock;
use crate::disk::{Disk, Mode};
use crate::layout::Layout;
use crate::ports::{AppendError, Journal, OpenError, ReadError, StoredLine, TraceSummary};

/// How a journal writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    pub durability: Durability,
    /// A segment that has grown to this size is followed by a new one.
    pub segment_bytes: u64,
    /// A checkpoint is signed after this many events …
    pub checkpoint_every: u64,
    /// … and after this long, where there is something new.
    pub checkpoint_after: Duration,
    pub keeping: Keeping,
}

/// Who signs checkpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keeping {
    /// A thread beside the writer; no append waits.
    Beside,
    /// The writer itself, when one is due: for tests that must run the same way every time.
    Inline,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            durability: Durability::Commit,
            segment_bytes: 64 << 20,
            checkpoint_every: 1024,
            checkpoint_after: Duration::from_secs(10),
            keeping: Keeping::Beside,
        }
    }
}

/// The journal of a data directory, open for writing. Its owner holds the lock.
#[derive(Debug)]
pub struct FsJournal {
    sequencer: Sequencer<Proposal, Answer>,
    core: Mutex<Core>,
    shared: Arc<Shared>,
    keeper: Keeper,
}

/// What a caller of `append` gets.
type Answer = Result<Vec<Receipt>, AppendError>;

/// What readers and the writer share.
#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    layout: Layout,
    ledger: LedgerIdentity,
    index: RwLock<Index>,
}

/// What only the leader of a write touches.
#[derive(Debug)]
struct Core {
    chain: Chain,
    segment: SegmentWriter,
    /// Traces whose keys have not been read from the journal yet.
    keys_unread: BTreeMap<TraceId, Vec<u64>>,
    poison: Option<String>,
    buffer: Vec<u8>,
}

/// What opening had to do.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Opening {
    /// Torn bytes were moved to these files in `quarantine/`.
    pub quarantined: Vec<String>,
    pub index_rebuilt: bool,
}

/// After this many events the index is saved while writing, which bounds what a crash makes us read again.
const SAVE_EVERY: u64 = 1 << 16;

/// Bytes of the index that are kept in memory before they are handed to the operating system.
const INDEX_PENDING_MAX: usize = 1 << 18;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl FsJournal {
    /// Makes a new ledger: its first segment appears with its first event in it, or not at all.
    pub fn create(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        ledger: LedgerIdentity,
        key: &Arc<SecretKey>,
        options: Options,
    ) -> Result<FsJournal, OpenError> {
        for dir in layout.dirs() {
            disk.create_dir_all(&dir).map_err(OpenError::io("make", &dir))?;
        }
        let created = Payload::LedgerCreated {
            origin: ledger.origin.clone(),
            key: ledger.key.id(),
            public: ledger.key.to_text(),
            durability: options.durability,
        };
        let core = Core {
            chain: Chain::new(ledger.clone()),
            segment: SegmentWriter::new(disk.clone(), layout, options),
            keys_unread: BTreeMap::new(),
            poison: None,
            buffer: Vec::new(),
        };
        let index = Index::empty(layout.index());
        let journal = FsJournal::assemble(disk, layout, ledger, key.clone(), options, core, index);
        let recorded = journal.append_own(created, key);
        recorded.map_err(|e| OpenError::Recovery(e.to_string()))?;
        Ok(journal)
    }

    /// Opens a ledger for writing. A torn tail is moved to `quarantine/` and recorded; anything else that does not fit is refused.
    ///
    /// The caller holds the owner's lock. `key` gives the ledger's secret key once its id is known.
    pub fn open(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        key: impl FnOnce(&LedgerIdentity) -> Result<Arc<SecretKey>, crate::keys::Error>,
        options: Options,
    ) -> Result<(FsJournal, Opening), OpenError> {
        let opened = recover::open(&disk, layout, Mode::Write)?;
        if let Tail::Damaged { line, why } = &opened.tail {
            let file = format!("segment {:020}", opened.end.segment);
            return Err(OpenError::Damaged { line: *line, file, why: why.clone() });
        }
        let key = key(&opened.ledger)?;
        for dir in layout.dirs() {
            disk.create_dir_all(&dir).map_err(OpenError::io("make", &dir))?;
        }
        let mut opening = Opening { quarantined: Vec::new(), index_rebuilt: opened.is_rebuilt };
        let Opened { ledger, index, frontier, end, tail, .. } = opened;
        let traces = index.traces().map(|summary| (summary.trace, state_of(summary))).collect();
        let keys_unread = index
            .traces()
            .map(|summary| (summary.trace, index.key_events(summary.trace).to_vec()))
            .filter(|(_, keys)| !keys.is_empty())
            .collect();
        let segment = SegmentWriter::resume(disk.clone(), layout, options, end)
            .map_err(OpenError::io("open", layout.segment(end.segment)))?;
        let chain = Chain::resume(ledger.clone(), frontier, traces, index.id_max());
        let core = Core { chain, segment, keys_unread, poison: None, buffer: Vec::new() };
        let torn = matches!(tail, Tail::Torn(_));
        let journal = FsJournal::assemble(disk, layout, ledger, key.clone(), options, core, index);
        journal.recover(&key, end, torn, &mut opening)?;
        Ok((journal, opening))
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        ledger: LedgerIdentity,
        key: Arc<SecretKey>,
        options: Options,
        core: Core,
        index: Index,
    ) -> FsJournal {
        let notes = NoteDir::new(disk.clone(), layout);
        let keeper = Keeper::new(notes, ledger.clone(), key, options);
        let shared = Shared { disk, layout: layout.clone(), ledger, index: RwLock::new(index) };
        FsJournal {
            sequencer: Sequencer::default(),
            core: Mutex::new(core),
            shared: Arc::new(shared),
            keeper,
        }
    }

    /// Moves torn bytes aside and records it. A crash on the way leaves either the torn bytes or the record, never neither.
    fn recover(
        &self,
        key: &SecretKey,
        end: Place,
        torn: bool,
        opening: &mut Opening,
    ) -> Result<(), OpenError> {
        let layout = &self.shared.layout;
        let disk = &*self.shared.disk;
        let mut found = Vec::new();
        if torn {
            found.push((layout.segment(end.segment), end.offset));
        }
        for name in segments::unfinished(disk, layout).map_err(OpenError::io("list", layout.events()))? {
            found.push((layout.events().join(name), 0));
        }
        for (path, offset) in found {
            let cut = quarantine(disk, layout, &path, offset).map_err(OpenError::io("set aside", &path))?;
            let is_unfinished = path.extension().is_some_and(|extension| extension == "new");
            if let Some(cut) = cut {
                opening.quarantined.push(cut.name.clone());
                let payload = Payload::LedgerRecovered {
                    segment: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
                    bytes: cut.bytes,
                    sha256: cut.sha256,
                    quarantine: cut.name,
                    after: self.size(),
                };
                // The write goes over the torn bytes and cuts the rest, in this order, then syncs.
                self.append_own(payload, key).map_err(|e| OpenError::Recovery(e.to_string()))?;
            }
            if is_unfinished {
                disk.remove(&path).map_err(OpenError::io("remove", &path))?;
                disk.sync_dir(&layout.events()).map_err(OpenError::io("sync", layout.events()))?;
            }
        }
        Ok(())
    }

    /// Appends an event of Baton's own to the trace `ledger`.
    fn append_own(&self, payload: Payload, key: &SecretKey) -> Result<Vec<Receipt>, AppendError> {
        let event = own_event(TraceId::Ledger, payload)?;
        let body = Body::signed(event, key).map_err(|e| Refusal::Form(e.to_string()))?;
        self.append(Proposal { events: vec![Checked::just_signed(body, key)], decided_on: Vec::new() })
    }

    /// Ends cleanly: pre-fill cut, index saved, a checkpoint signed where one is due.
    pub fn close(self) -> Result<(), OpenError> {
        let layout = &self.shared.layout;
        let mut core = lock(&self.core);
        if core.poison.is_none() {
            core.segment.close().map_err(OpenError::io("close", layout.events()))?;
            let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
            if index.saved() != index.count() {
                index.save(&*self.shared.disk).map_err(OpenError::io("save", layout.index()))?;
            }
        }
        drop(core);
        self.keeper.finish().map_err(OpenError::io("write", layout.checkpoints()))
    }

    /// Serves one batch: seals, writes once, syncs once, brings the index up to date; then everyone is answered.
    fn serve(&self, jobs: &[Proposal]) -> Vec<Answer> {
        let mut core = match self.core.lock() {
            Ok(core) => core,
            // The chain may be ahead of the disk: only opening anew tells.
            Err(panicked) => {
                let mut core = panicked.into_inner();
                core.poison.get_or_insert_with(|| "a thread panicked while writing".into());
                core
            }
        };
        if core.poison.is_none() {
            core.poison = self.keeper.failure();
        }
        let mut answers: Vec<Answer> = Vec::with_capacity(jobs.len());
        while answers.len() < jobs.len() {
            match &core.poison {
                Some(why) => answers.push(Err(AppendError::Poisoned(why.clone()))),
                None => self.serve_write(&mut core, jobs, &mut answers),
            }
        }
        answers
    }

    /// One physical write of as many decisions as fit.
    fn serve_write(&self, core: &mut Core, jobs: &[Proposal], answers: &mut Vec<Answer>) {
        let start = core.chain.frontier().size() + 1;
        let (first, mut nodes, mut added) = (answers.len(), Vec::new(), Vec::new());
        core.buffer.clear();
        core.chain.begin_write();
        for job in &jobs[first..] {
            if core.buffer.len() >= WRITE_BYTES_MAX {
                break;
            }
            let before = core.buffer.len();
            let sealed = self.seal(core, job, start, &mut nodes);
            if let Ok(receipts) = &sealed {
                note_lines(job, receipts, &core.buffer[before..], before, &mut added);
            }
            answers.push(sealed);
        }
        if added.is_empty() {
            return;
        }
        match core.segment.write(&core.buffer, start) {
            Ok(place) => {
                let closes = added.iter().any(|added| added.closes);
                self.project(place, &mut added, &nodes);
                self.keeper.notice(core.chain.frontier(), closes, core.segment.current());
            }
            Err(error) => {
                let error = match error {
                    WriteError::TakenBack { full: true, why } => AppendError::Full(why),
                    WriteError::TakenBack { full: false, why } => AppendError::Write(why),
                    WriteError::Unknown(why) => {
                        core.poison = Some(why.clone());
                        AppendError::Poisoned(why)
                    }
                };
                core.chain.undo_write();
                let sealed = answers[first..].iter_mut().filter(|answer| answer.is_ok());
                sealed.for_each(|answer| *answer = Err(error.clone()));
            }
        }
    }

    fn seal(
        &self,
        core: &mut Core,
        job: &Proposal,
        start: u64,
        nodes: &mut Vec<Digest>,
    ) -> Result<Vec<Receipt>, AppendError> {
        for checked in &job.events {
            let trace = checked.body().trace;
            if let Some(positions) = core.keys_unread.remove(&trace) {
                match self.shared.read_keys(&positions) {
                    Ok(keys) => core.chain.set_keys(trace, keys),
                    Err(error) => {
                        core.keys_unread.insert(trace, positions);
                        return Err(AppendError::Write(error.to_string()));
                    }
                }
            }
        }
        let index = self.shared.index.read().unwrap_or_else(PoisonError::into_inner);
        let sealed =
            core.chain.seal(job, &IndexPast(&index), start, &mut core.buffer, |node| nodes.push(node));
        sealed.map_err(|refusal| match refusal {
            Refusal::Unreadable(why) => AppendError::Write(why),
            refusal => AppendError::Refused(refusal),
        })
    }

    /// Brings the index up to what was just made durable.
    fn project(&self, place: Place, added: &mut [Added], nodes: &[Digest]) {
        let mut index = self.shared.index.write().unwrap_or_else(PoisonError::into_inner);
        let mut rest = nodes;
        for added in added {
            added.segment = place.segment;
            added.offset += place.offset;
            // The leaf and one node for each subtree that it completes.
            let count = 1 + (index.count() + 1).trailing_zeros() as usize;
            let (mine, others) = rest.split_at(count.min(rest.len()));
            index.add(added, mine);
            rest = others;
        }
        let disk = &*self.shared.disk;
        // The index can be rebuilt: an error here costs a slower start, never an event.
        if index.count() - index.saved() >= SAVE_EVERY {
            let _ = lock_free_sync(&self.shared, place).and_then(|()| index.save(disk));
        } else if index.pending() > INDEX_PENDING_MAX {
            let _ = index.write_out(disk);
        }
    }
}

/// What the index vouches for must be durable first, also where appends are not.
fn lock_free_sync(shared: &Shared, place: Place) -> io::Result<()> {
    shared.disk.open(&shared.layout.segment(place.segment), Mode::Write)?.sync()
}

impl Drop for FsJournal {
    fn drop(&mut self) {
        self.keeper.stop();
    }
}

/// Finds the lines of a decision in what was sealed for it.
fn note_lines(job: &Proposal, receipts: &[Receipt], bytes: &[u8], before: usize, added: &mut Vec<Added>) {
    let mut offset = 0;
    for (checked, receipt) in job.events.iter().zip(receipts) {
        let length = bytes[offset..].iter().position(|b| *b == b'\n').unwrap_or(0);
        let body = checked.body();
        added.push(Added {
            id: receipt.id,
            trace: receipt.trace,
            seq: receipt.seq,
            hash: receipt.hash,
            segment: 0,
            offset: (before + offset) as u64,
            length: length as u32,
            closes: body.event_type.as_str() == "trace.closed",
            is_key_event: body.key_event.is_some(),
        });
        offset += length + 1;
    }
}

fn state_of(summary: &TraceSummary) -> TraceState {
    TraceState {
        seq: summary.seq,
        hash: summary.head,
        last_pos: summary.last_pos,
        is_closed: summary.is_closed,
        keys: Arc::default(),
    }
}

/// An event that Baton itself states, now.
pub fn own_event(trace: TraceId, payload: Payload) -> Result<Event, Refusal> {
    let agent = LEDGER_AGENT.parse().map_err(|e| Refusal::Form(format!("{e}")))?;
    Ok(Event {
        trace,
        id: clock::new_event_id(),
        at: clock::now(),
        actor: Actor { agent, role: Role::System, key: None },
        task: None,
        run: None,
        session: None,
        fence: None,
        payload,
        artifacts: Vec::new(),
        seen: None,
    })
}

/// The durable past, as the sequencer asks for it.
struct IndexPast<'a>(&'a Index);

impl Past for IndexPast<'_> {
    fn leaf_of(&self, trace: TraceId, seq: u64) -> Result<Option<Digest>, String> {
        let read = || self.0.position_of(trace, seq)?.map(|pos| self.0.leaf(pos)).transpose();
        read().map_err(|e: io::Error| e.to_string())
    }

    fn has_id(&self, id: EventId) -> Result<bool, String> {
        self.0.find(id).map(|found| found.is_some()).map_err(|e| e.to_string())
    }
}

impl Shared {
    fn index(&self) -> std::sync::RwLockReadGuard<'_, Index> {
        self.index.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads the lines at these positions.
    fn lines(&self, positions: &[u64]) -> Result<Vec<StoredLine>, ReadError> {
        let index = self.index();
        let mut out = Vec::with_capacity(positions.len());
        let mut open: Option<(u64, Arc<dyn crate::disk::DiskFile>)> = None;
        for pos in positions {
            let path = self.layout.index();
            let entry = index.entry(*pos).map_err(|source| ReadError::Io { path, source })?;
            let path = self.layout.segment(entry.segment);
            let fail = |source| ReadError::Io { path: path.clone(), source };
            let file = match &open {
                Some((segment, file)) if *segment == entry.segment => file.clone(),
                _ => {
                    let file = self.disk.open(&path, Mode::Read).map_err(fail)?;
                    open.insert((entry.segment, file)).1.clone()
                }
            };
            let mut bytes = vec![0; entry.length as usize];
            file.read_exact_at(&mut bytes, entry.offset).map_err(fail)?;
            let damaged = |why: String| ReadError::Damaged { pos: *pos, why };
            let line = Line::parse(&bytes).map_err(|flaw| damaged(flaw.to_string()))?;
            if line.pos != *pos || line.link_hash(&line.body_digest()) != line.hash {
                return Err(damaged("it is not the record that the index knows".into()));
            }
            out.push(StoredLine { pos: *pos, text: line.text.to_owned() });
        }
        Ok(out)
    }

    /// The keys that the key events at these positions leave behind.
    fn read_keys(&self, positions: &[u64]) -> Result<KeyRing, ReadError> {
        let mut keys = KeyRing::default();
        for stored in self.lines(positions)? {
            let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
            let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
            let event = line.to_payload().ok().as_ref().and_then(KeyEvent::of);
            let event = event.ok_or_else(|| damaged("not a key event".into()))?;
            let signer = line.sig.map(|sig| sig.key);
            keys.apply(&self.ledger, &event, signer).map_err(|fault| damaged(fault.to_string()))?;
        }
        Ok(keys)
    }
}

/// The reading half, the same for owner and visitor.
trait Reads {
    fn shared(&self) -> &Shared;

    fn index_error(&self) -> impl Fn(io::Error) -> ReadError {
        |source| ReadError::Io { path: self.shared().layout.index(), source }
    }
}

impl Reads for FsJournal {
    fn shared(&self) -> &Shared {
        &self.shared
    }
}

impl Reads for Reader {
    fn shared(&self) -> &Shared {
        &self.shared
    }
}

macro_rules! reading_half {
    () => {
        fn ledger(&self) -> LedgerIdentity {
            self.shared().ledger.clone()
        }

        fn size(&self) -> u64 {
            self.shared().index().count()
        }

        fn tree(&self) -> Frontier {
            let index = self.shared().index();
            index.frontier(index.count()).unwrap_or_default()
        }

        fn node(&self, at: u64) -> Result<Digest, ReadError> {
            self.shared().index().node(at).map_err(self.index_error())
        }

        fn trace(&self, trace: TraceId) -> Option<TraceSummary> {
            self.shared().index().trace(trace).cloned()
        }

        fn traces(&self) -> Vec<TraceSummary> {
            self.shared().index().traces().cloned().collect()
        }

        fn keys(&self, trace: TraceId) -> Result<KeyRing, ReadError> {
            let positions = self.shared().index().key_events(trace).to_vec();
            self.shared().read_keys(&positions)
        }

        fn read(&self, from: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError> {
            let from = from.max(1);
            let last = self.size().min(from.saturating_add(limit as u64) - 1);
            self.shared().lines(&(from..=last).collect::<Vec<_>>())
        }

        fn read_trace(
            &self,
            trace: TraceId,
            from_seq: u64,
            limit: usize,
        ) -> Result<Vec<StoredLine>, ReadError> {
            let positions =
                self.shared().index().positions(trace, from_seq, limit).map_err(self.index_error())?;
            self.shared().lines(&positions)
        }

        fn find(&self, id: EventId) -> Result<Option<u64>, ReadError> {
            self.shared().index().find(id).map_err(self.index_error())
        }
    };
}

impl Journal for FsJournal {
    fn append(&self, proposal: Proposal) -> Result<Vec<Receipt>, AppendError> {
        let answer = self.sequencer.submit(proposal, |jobs| self.serve(jobs));
        answer.unwrap_or_else(|| Err(AppendError::Poisoned("the writing thread panicked".into())))
    }

    reading_half!();
}

/// A journal that is only read. Takes no lock; shows what was there when it was opened.
#[derive(Debug)]
pub struct Reader {
    shared: Shared,
    pub tail: Tail,
}

impl Reader {
    pub fn open(disk: Arc<dyn Disk>, layout: &Layout) -> Result<Reader, OpenError> {
        let opened = recover::open(&disk, layout, Mode::Read)?;
        let index = RwLock::new(opened.index);
        let shared = Shared { disk, layout: layout.clone(), ledger: opened.ledger, index };
        Ok(Reader { shared, tail: opened.tail })
    }

    /// Event ids that start with these characters.
    pub fn find_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<(EventId, u64)>, ReadError> {
        self.shared.index().find_prefix(prefix, limit).map_err(self.index_error())
    }
}

impl Journal for Reader {
    fn append(&self, _: Proposal) -> Result<Vec<Receipt>, AppendError> {
        Err(AppendError::Write("this journal is open for reading only".into()))
    }

    reading_half!();
}

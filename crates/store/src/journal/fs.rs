//! The journal on disk, as its one owner writes it: opens, recovers, appends with group commit. How it is read: [`super::reading`].

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockWriteGuard};
use std::time::Duration;

use baton_core::event::Durability;
use baton_core::limits::WRITE_BYTES_MAX;
use baton_core::roles::OWN_AGENT;
use baton_core::{Actor, Digest, Event, Payload, Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::record::Line;
use baton_ledger::seal::{Chain, Checked, Proposal, Receipt, Refusal, TraceState};

use super::checkpoints::NoteDir;
use super::growth::Growth;
use super::index::{Added, Index, Place};
use super::keeper::Keeper;
use super::quarantine::quarantine;
use super::reading::{Reading, Reads};
use super::recover::{self, Opened, Tail};
use super::segments;
use super::sequencer::Sequencer;
use super::writer::{SegmentWriter, WriteError};
use crate::clock;
use crate::disk::{Disk, Mode, remove_unfinished};
use crate::layout::Layout;
use crate::ports::{AppendError, History as _, Journal, Lag, OpenError, TraceSummary};

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
    sequencer: Sequencer<Vec<Proposal>, Vec<Answer>>,
    core: Mutex<Core>,
    reading: Reading,
    keeper: Keeper,
    growth: Growth,
}

/// What a caller of `append` gets.
type Answer = Result<Vec<Receipt>, AppendError>;

/// What only the leader of a write touches.
#[derive(Debug)]
struct Core {
    chain: Chain,
    segment: SegmentWriter,
    /// Traces whose keys have not been read from the journal yet.
    keys_unread: BTreeMap<TraceId, Vec<u64>>,
    /// Open traces of which it is not known yet whether they are guarded runs.
    runs_unread: BTreeSet<TraceId>,
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
            runs_unread: BTreeSet::new(),
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
        let Opened { ledger, index, frontier, end, last_write, tail, .. } = opened;
        let traces = index.traces().map(|summary| (summary.trace, state_of(summary))).collect();
        let keys_unread = index
            .traces()
            .map(|summary| (summary.trace, index.key_events(summary.trace).to_vec()))
            .filter(|(_, keys)| !keys.is_empty())
            .collect();
        let is_open = |summary: &&TraceSummary| !summary.is_closed && summary.trace != TraceId::Ledger;
        let runs_unread = index.traces().filter(is_open).map(|summary| summary.trace).collect();
        // A clean end saves the index and cuts the pre-fill. After any other, the last write may be in the cache alone.
        let is_clean = index.saved() == index.count() && tail == Tail::Clean;
        let doubtful = last_write.filter(|_| !is_clean);
        if !is_clean {
            for dir in layout.dirs().iter().chain([&layout.checkpoints()]) {
                // They are in nobody's way: what cannot be removed now is removed another time.
                let _ = remove_unfinished(&*disk, dir);
            }
        }
        let segment = SegmentWriter::resume(disk.clone(), layout, options, end, doubtful)
            .map_err(OpenError::io("open", layout.segment(end.segment)))?;
        let chain = Chain::resume(ledger.clone(), frontier, traces, index.id_max());
        let core = Core { chain, segment, keys_unread, runs_unread, poison: None, buffer: Vec::new() };
        let torn = matches!(tail, Tail::Torn { .. });
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
        let reading = Reading { disk, layout: layout.clone(), ledger, index: RwLock::new(index) };
        let growth = Growth::new(reading.index().count());
        let (sequencer, core) = (Sequencer::default(), Mutex::new(core));
        FsJournal { sequencer, core, reading, keeper, growth }
    }

    /// Moves torn bytes aside and records it. A crash on the way leaves either the torn bytes or the record, never neither.
    fn recover(
        &self,
        key: &SecretKey,
        end: Place,
        torn: bool,
        opening: &mut Opening,
    ) -> Result<(), OpenError> {
        let layout = &self.reading.layout;
        let disk = &*self.reading.disk;
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
        let layout = &self.reading.layout;
        let mut core = lock(&self.core);
        if core.poison.is_none() {
            core.segment.close().map_err(OpenError::io("close", layout.events()))?;
            let mut index = self.index_mut();
            if index.saved() != index.count() {
                index
                    .save(&*self.reading.disk, self.keeper.key())
                    .map_err(OpenError::io("save", layout.index()))?;
            }
        }
        drop(core);
        self.keeper.finish(self.is_waiting_long()).map_err(OpenError::io("write", layout.checkpoints()))
    }

    /// Whether the first event that no checkpoint covers is old enough for one, whoever appended it.
    fn is_waiting_long(&self) -> bool {
        let first = self.read(self.keeper.covered() + 1, 1).unwrap_or_default();
        let line = first.first().and_then(|stored| Line::parse(stored.text.as_bytes()).ok());
        let age_ms = line.map_or(0, |line| clock::now().unix_ms() - line.at.unix_ms());
        u128::from(age_ms.max(0).unsigned_abs()) >= self.keeper.checkpoint_after().as_millis()
    }

    /// Serves one batch: seals, writes once, syncs once, brings the index up to date; then everyone is answered.
    fn serve(&self, callers: &[Vec<Proposal>]) -> Vec<Vec<Answer>> {
        let jobs: Vec<&Proposal> = callers.iter().flatten().collect();
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
                None => self.serve_write(&mut core, &jobs, &mut answers),
            }
        }
        let mut answers = answers.into_iter();
        callers.iter().map(|caller| answers.by_ref().take(caller.len()).collect()).collect()
    }

    /// One physical write of as many decisions as fit.
    fn serve_write(&self, core: &mut Core, jobs: &[&Proposal], answers: &mut Vec<Answer>) {
        let start = core.chain.frontier().size() + 1;
        let (first, mut nodes, mut added) = (answers.len(), Vec::new(), Vec::new());
        core.buffer.clear();
        core.chain.begin_write();
        for job in &jobs[first..] {
            // A write holds whole decisions; one that does not fit any more opens the next write.
            if !core.buffer.is_empty() && core.buffer.len() + job.line_bytes_max() > WRITE_BYTES_MAX {
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
                // Refusals too: they may rest on what has just been taken back.
                answers[first..].iter_mut().for_each(|answer| *answer = Err(error.clone()));
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
                match self.reading.read_keys(trace, &positions) {
                    Ok(keys) => core.chain.set_keys(trace, keys),
                    Err(error) => {
                        core.keys_unread.insert(trace, positions);
                        return Err(AppendError::Unreadable(error.to_string()));
                    }
                }
            }
            if core.runs_unread.contains(&trace) {
                let run = self.reading.read_run(trace);
                let run = run.map_err(|error| AppendError::Unreadable(error.to_string()))?;
                core.runs_unread.remove(&trace);
                if let Some(run) = run {
                    core.chain.set_run(trace, run);
                }
            }
        }
        let sealed = core.chain.seal(job, &self.reading, start, &mut core.buffer, |node| nodes.push(node));
        sealed.map_err(|refusal| match refusal {
            Refusal::Unreadable(why) => AppendError::Unreadable(why),
            refusal => AppendError::Refused(refusal),
        })
    }

    fn index_mut(&self) -> RwLockWriteGuard<'_, Index> {
        self.reading.index.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Brings the index up to what was just made durable.
    fn project(&self, place: Place, added: &mut [Added], nodes: &[Digest]) {
        let mut index = self.index_mut();
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
        let disk = &*self.reading.disk;
        // The index can be rebuilt: an error here costs a slower start, never an event.
        if index.count() - index.saved() >= SAVE_EVERY {
            let segment = self.reading.layout.segment(place.segment);
            // What the index vouches for must be durable first, also where appends are not.
            let _ = disk
                .open(&segment, Mode::Write)
                .and_then(|file| file.sync())
                .and_then(|()| index.save(disk, self.keeper.key()));
        } else if index.pending() > INDEX_PENDING_MAX {
            let _ = index.write_out(disk);
        }
        let size = index.count();
        drop(index);
        self.growth.grew(size);
    }
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
        let length = memchr::memchr(b'\n', &bytes[offset..]).unwrap_or(0);
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
        run: None,
    }
}

/// An event that Baton itself states, now.
pub fn own_event(trace: TraceId, payload: Payload) -> Result<Event, Refusal> {
    let agent = OWN_AGENT.parse().map_err(|e| Refusal::Form(format!("{e}")))?;
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

/// What whoever waited for somebody who panicked learns.
fn unanswered() -> Answer {
    Err(AppendError::Poisoned("the writing thread panicked".into()))
}

impl Reads for FsJournal {
    fn reading(&self) -> &Reading {
        &self.reading
    }
}

impl Journal for FsJournal {
    fn append(&self, proposal: Proposal) -> Result<Vec<Receipt>, AppendError> {
        self.append_all(vec![proposal]).pop().unwrap_or_else(unanswered)
    }

    fn append_all(&self, proposals: Vec<Proposal>) -> Vec<Answer> {
        let count = proposals.len();
        let answers = self.sequencer.submit(proposals, |jobs| self.serve(jobs));
        answers.unwrap_or_else(|| (0..count).map(|_| unanswered()).collect())
    }

    fn wait_beyond(&self, seen: u64, time: Duration) -> u64 {
        self.growth.wait_beyond(seen, time)
    }

    fn lag(&self) -> Option<Lag> {
        Some(self.keeper.lag(self.size()))
    }
}

//! The promises behind which durable things live. An implementation keeps them or says so with an error; [`crate::conformance`] is one suite for all.
//!
//! The calls block. An asynchronous runtime gives them a thread; a database behind them is reached over its own connection.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use baton_core::{Digest, Durability, EventId, TraceId};
use baton_ledger::keyring::{KeyRing, LedgerIdentity};
use baton_ledger::merkle::Frontier;
use baton_ledger::seal::{Proposal, Receipt, Refusal};

/// What is in a journal, for those who only look.
///
/// What breaks if an implementation lies:
/// - positions are handed out that later disappear: readers that follow by position skip events;
/// - something is shown before it is durable: a reader reacts to what a crash undoes;
/// - a line is shown that is not the one that was sealed: every proof made of it is refused elsewhere.
pub trait History: Send + Sync {
    /// The name and key of this ledger.
    fn ledger(&self) -> LedgerIdentity;

    /// Number of durable events.
    fn size(&self) -> u64;

    /// The tree over all durable events.
    fn tree(&self) -> Result<Frontier, ReadError>;

    /// Where the last event ends: the first position of its segment, and the offset behind it. `None` where there are no segments.
    fn end(&self) -> Option<(u64, u64)> {
        None
    }

    /// Makes sure that what was shown so far survives a power cut, also where appends promise less. Called before anything is signed about it.
    fn settle(&self) -> Result<(), ReadError>;

    /// A stored node of the tree, by its place in order of completion.
    fn node(&self, index: u64) -> Result<Digest, ReadError>;

    /// The present end of a trace.
    fn trace(&self, trace: TraceId) -> Option<TraceSummary>;

    /// Every trace, in the order of their first events.
    fn traces(&self) -> Vec<TraceSummary>;

    /// The keys that a trace knows.
    fn keys(&self, trace: TraceId) -> Result<KeyRing, ReadError>;

    /// At most `limit` lines from a position on, in order.
    fn read(&self, from: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError>;

    /// At most `limit` lines of one trace from a number on, in order.
    fn read_trace(&self, trace: TraceId, from_seq: u64, limit: usize) -> Result<Vec<StoredLine>, ReadError>;

    /// The position of an event, or `None`.
    fn find(&self, id: EventId) -> Result<Option<u64>, ReadError>;
}

/// One append-only, hash-chained journal.
///
/// What breaks if an implementation lies:
/// - `append` returns before the events are durable: a crash loses what a caller already acted on;
/// - `append` is not atomic: a decision is half recorded and replay reaches a state that never was;
/// - `append` ignores `decided_on`: two agents win the same race.
pub trait Journal: History {
    /// Appends the events of one decision, all or none, in order, and returns once they are durable.
    fn append(&self, proposal: Proposal) -> Result<Vec<Receipt>, AppendError>;

    /// Appends several decisions in their order, each by itself: one that is refused keeps no other back. They share what makes them durable where that can be shared.
    fn append_all(&self, proposals: Vec<Proposal>) -> Vec<Result<Vec<Receipt>, AppendError>> {
        proposals.into_iter().map(|proposal| self.append(proposal)).collect()
    }

    /// Waits until there are more than so many events, at most for this long, and gives how many there are: those can be read. No append waits for this.
    fn wait_beyond(&self, seen: u64, time: Duration) -> u64;

    /// How far what stands behind appends is behind them. `None` where there is no such thing.
    fn lag(&self) -> Option<Lag> {
        None
    }
}

/// How far the disk and the signatures are behind the events of a journal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lag {
    /// When events are on the disk. With [`Durability::Commit`] none is ever shown before.
    pub durability: Durability,
    /// Events of which nobody knows whether they would survive a power cut.
    pub unsynced: u64,
    /// Events that no signed checkpoint covers yet.
    pub unsigned: u64,
}

/// Content-addressed bytes.
///
/// What breaks if an implementation lies:
/// - `put` returns before the bytes are durable: an event cites what a crash takes away;
/// - a stored artifact can change: the cited hash no longer holds, and the verifier reports a tampering that nobody did;
/// - `length` answers for something that cannot be read: an event is admitted whose evidence nobody will ever see.
pub trait ArtifactStore: Send + Sync {
    /// Stores bytes and gives their hash and length; durable when this returns. Storing the same bytes twice is the same as once.
    fn put(&self, source: &mut dyn io::Read) -> io::Result<(Digest, u64)>;

    /// The stored bytes; an error of kind `NotFound` where there are none.
    fn open(&self, sha256: &Digest) -> io::Result<Box<dyn io::Read + Send>>;

    /// The stored length, or `None` where it is not stored.
    fn length(&self, sha256: &Digest) -> io::Result<Option<u64>>;
}

/// A record as it is stored, without its line feed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredLine {
    pub pos: u64,
    pub text: String,
}

/// A trace at a glance.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceSummary {
    pub trace: TraceId,
    pub first_pos: u64,
    pub last_pos: u64,
    pub seq: u64,
    pub head: Digest,
    pub is_closed: bool,
}

/// Why nothing was appended.
#[derive(Debug, Clone, thiserror::Error)]
pub enum AppendError {
    /// A rule forbids it. The journal goes on.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The disk is full; nothing was written. The journal goes on once there is room.
    #[error("the disk is full: {0}")]
    Full(String),
    /// Writing failed before anything was promised; it was taken back. The journal goes on.
    #[error("writing failed and was taken back: {0}")]
    Write(String),
    /// What is needed to judge the decision could not be read; nothing was written. The journal goes on.
    #[error("the ledger's past could not be read: {0}")]
    Unreadable(String),
    /// A sync failed, or a write could not be taken back. Whether the events are durable is unknown; nothing more is written until the
    /// journal is opened anew.
    #[error("the journal stopped: {0}")]
    Poisoned(String),
}

/// Why something stored could not be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read {path}: {source}")]
    Io { path: PathBuf, source: io::Error },
    #[error("position {pos} of the journal does not read as a record: {why}")]
    Damaged { pos: u64, why: String },
    /// The index leads astray. The journal may be whole: rebuilding the index tells.
    #[error("the index is damaged: {0}")]
    Index(String),
}

/// Why a journal does not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{0} holds no ledger")]
    NotFound(PathBuf),
    #[error("cannot {action} {path}: {source}")]
    Io { action: &'static str, path: PathBuf, source: io::Error },
    /// The disk is full: nothing could be changed.
    #[error("the disk is full, at {0}")]
    Full(PathBuf),
    /// Damage that no crash explains. Nothing was changed.
    #[error("the ledger is damaged at line {line} ({file}): {why}")]
    Damaged { line: u64, file: String, why: String },
    /// Events that a checkpoint or the index vouches for are gone. Nothing was changed.
    #[error("the ledger ends at {have} events, but {witness} covers {expected}")]
    Cut { have: u64, expected: u64, witness: String },
    #[error("the ledger is of format version {0}; this Baton reads version 1")]
    Newer(i64),
    #[error(transparent)]
    Key(#[from] crate::keys::Error),
    #[error("the recovery could not be recorded: {0}")]
    Recovery(String),
}

impl OpenError {
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> OpenError {
        let path = path.into();
        move |source| {
            if source.kind() == io::ErrorKind::StorageFull {
                OpenError::Full(path)
            } else {
                OpenError::Io { action, path, source }
            }
        }
    }
}

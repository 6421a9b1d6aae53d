//! A data directory in use: the lock, the journal, the keys, the artifacts and the notes together.
//!
//! [`Workspace`] writes and holds the owner's lock; [`Visit`] only reads and takes none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_core::{Origin, Payload, TraceId};
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::seal::{Proposal, Receipt};

use crate::artifacts::ArtifactDir;
use crate::clock;
use crate::disk::{Disk, RealDisk};
use crate::export::Exporter;
use crate::journal::checkpoints::NoteDir;
use crate::journal::fs::Opening;
use crate::journal::{FsJournal, Options, Reader};
use crate::keys::{self, KeyStore};
use crate::layout::Layout;
use crate::lock::{self, OwnerLock};
use crate::ports::{AppendError, Journal, OpenError};
use crate::registry::signed_own;
use crate::tasks::obstacles::{self, InTheWay};
use crate::tasks::tree::RealTree;

/// Why a data directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0} already holds a ledger")]
    Exists(PathBuf),
    #[error(transparent)]
    Lock(#[from] lock::Error),
    #[error(transparent)]
    Open(#[from] OpenError),
    #[error(transparent)]
    Key(#[from] keys::Error),
    #[error(transparent)]
    InTheWay(#[from] InTheWay),
}

/// A data directory that this process owns.
#[derive(Debug)]
pub struct Workspace {
    pub layout: Layout,
    pub journal: Arc<FsJournal>,
    pub keys: KeyStore,
    pub ledger_key: Arc<SecretKey>,
    pub artifacts: ArtifactDir,
    pub notes: NoteDir,
    pub disk: Arc<dyn Disk>,
    /// What opening had to mend.
    pub opening: Opening,
    _lock: OwnerLock,
}

impl Workspace {
    /// Makes a new ledger with a key of its own, and publishes the public half in `keys/`.
    pub fn create(
        layout: &Layout,
        state_dir: &Path,
        options: Options,
        wait: Duration,
    ) -> Result<Self, Error> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        disk.create_dir_all(&layout.events()).map_err(OpenError::io("make", layout.events()))?;
        let lock = OwnerLock::acquire(layout, wait)?;
        let segments = crate::journal::segments::list(&*disk, layout);
        if !segments.map_err(OpenError::io("list", layout.events()))?.is_empty() {
            return Err(Error::Exists(layout.root().to_owned()));
        }
        let uuid = clock::new_uuid();
        #[expect(clippy::expect_used, reason = "a UUID and a fixed prefix always make an origin")]
        let origin: Origin = format!("baton/led_{uuid}").parse().expect("an origin");
        let keys = KeyStore::new(state_dir, &origin);
        let ledger_key = Arc::new(keys.create()?);
        let ledger = LedgerIdentity { origin, key: *ledger_key.public() };
        let journal = FsJournal::create(disk.clone(), layout, ledger, &ledger_key, options)?;
        keys::publish(&layout.keys(), ledger_key.public(), "baton")
            .map_err(OpenError::io("write", layout.keys()))?;
        Ok(Workspace::assemble(disk, layout, journal, keys, ledger_key, Opening::default(), lock))
    }

    /// Opens a ledger for writing, waiting for the lock for at most `wait`. Mends what a crash left behind.
    pub fn open(layout: &Layout, state_dir: &Path, options: Options, wait: Duration) -> Result<Self, Error> {
        Workspace::open_unless(layout, state_dir, options, wait, &mut || false)
    }

    /// The same, but the wait for the lock ends where `leaves` says so, with [`lock::Error::Left`].
    pub fn open_unless(
        layout: &Layout,
        state_dir: &Path,
        options: Options,
        wait: Duration,
        leaves: &mut dyn FnMut() -> bool,
    ) -> Result<Self, Error> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        // Without a journal there is nothing to lock, and a typo in a path should not leave a file behind.
        let segments = crate::journal::segments::list(&*disk, layout);
        if segments.map_err(OpenError::io("list", layout.events()))?.is_empty() {
            return Err(OpenError::NotFound(layout.root().to_owned()).into());
        }
        let lock = OwnerLock::acquire_unless(layout, wait, leaves)?;
        // Before anything is mended: what is torn goes to `quarantine/`, and nowhere that a link in its place leads to, and whoever is refused finds everything
        // as it was.
        let tree = RealTree::open(layout.root()).map_err(OpenError::io("open", layout.root()))?;
        if let Some(obstacle) = obstacles::of_index(&tree).first() {
            return Err(obstacle.at(layout.root()).into());
        }
        let mut found = None;
        let load = |ledger: &LedgerIdentity| {
            let keys = KeyStore::new(state_dir, &ledger.origin);
            let key = Arc::new(keys.load(ledger.key.id())?);
            found = Some((keys, key.clone()));
            Ok(key)
        };
        let (journal, opening) = FsJournal::open(disk.clone(), layout, load, options)?;
        let Some((keys, ledger_key)) = found else {
            return Err(OpenError::NotFound(layout.root().to_owned()).into());
        };
        // Whoever made the ledger may have died before this. The journal has the key too, so it is no reason to stop.
        if !keys::published(&layout.keys(), ledger_key.id()).exists() {
            let _ = keys::publish(&layout.keys(), ledger_key.public(), "baton");
        }
        Ok(Workspace::assemble(disk, layout, journal, keys, ledger_key, opening, lock))
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        journal: FsJournal,
        keys: KeyStore,
        ledger_key: Arc<SecretKey>,
        opening: Opening,
        lock: OwnerLock,
    ) -> Self {
        Workspace {
            artifacts: ArtifactDir::new(disk.clone(), layout.artifacts()),
            notes: NoteDir::new(disk.clone(), layout),
            disk,
            layout: layout.clone(),
            journal: Arc::new(journal),
            keys,
            ledger_key,
            opening,
            _lock: lock,
        }
    }

    /// Checkpoints, proofs and bundles of this ledger.
    pub fn exporter(&self) -> Exporter<'_> {
        Exporter { journal: &*self.journal, key: &self.ledger_key, notes: &self.notes }
    }

    /// Starts a trace.
    pub fn new_trace(&self, title: Option<String>) -> Result<Receipt, AppendError> {
        let trace = TraceId::Work(clock::new_uuid());
        let opened = signed_own(trace, Payload::TraceOpened { title }, &self.ledger_key)?;
        self.append_one(opened)
    }

    /// Ends a trace and keeps its head.
    pub fn close_trace(&self, trace: TraceId, reason: &str) -> Result<Receipt, AppendError> {
        let closed = signed_own(trace, Payload::TraceClosed { reason: reason.to_owned() }, &self.ledger_key)?;
        let receipt = self.append_one(closed)?;
        // The head note can be made again at any time; the event is what counts.
        let _ = self.exporter().trace_head(trace);
        Ok(receipt)
    }

    fn append_one(&self, checked: baton_ledger::seal::Checked) -> Result<Receipt, AppendError> {
        let receipts = self.journal.append(Proposal { events: vec![checked], decided_on: Vec::new() })?;
        receipts.into_iter().next().ok_or_else(|| AppendError::Write("nothing was appended".into()))
    }

    /// Ends cleanly and gives the lock back.
    pub fn close(self) -> Result<(), OpenError> {
        match Arc::into_inner(self.journal) {
            Some(journal) => journal.close(),
            // Somebody still appends: whoever opens next does what is left.
            None => Ok(()),
        }
    }
}

/// A data directory that is only looked at.
#[derive(Debug)]
pub struct Visit {
    pub layout: Layout,
    pub reader: Reader,
    pub artifacts: ArtifactDir,
    pub notes: NoteDir,
}

impl Visit {
    pub fn open(layout: &Layout) -> Result<Self, OpenError> {
        let disk: Arc<dyn Disk> = Arc::new(RealDisk);
        let reader = Reader::open(disk.clone(), layout)?;
        let artifacts = ArtifactDir::new(disk.clone(), layout.artifacts());
        Ok(Visit { layout: layout.clone(), reader, artifacts, notes: NoteDir::new(disk, layout) })
    }
}

//! Remembers. The ports that durable things hide behind, and their implementations: the journal on disk and in memory, its index,
//! artifacts, key files, the owner's lock.
//!
//! Start at [`ports`] for the promises, [`journal`] for how an append becomes durable, [`journal::recover`] for what opening does after a crash.

pub mod artifacts;
pub mod clock;
pub mod conformance;
pub mod disk;
pub mod export;
pub mod journal;
pub mod keys;
pub mod layout;
pub mod lock;
pub mod ports;
pub mod registry;
pub mod tasks;
pub mod workspace;

pub use journal::{FsJournal, MemoryJournal, Options};
pub use layout::Layout;
pub use ports::{
    AppendError, ArtifactStore, History, Journal, Lag, OpenError, ReadError, StoredLine, TraceSummary,
};
pub use workspace::{Visit, Workspace};

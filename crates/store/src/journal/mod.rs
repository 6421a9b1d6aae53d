//! The journal: numbered segments of JSON lines, one sequencer, an index beside them.
//!
//! [`fs`] is the journal on disk, made of [`segments`] (where lines lie), [`sequencer`] (who writes when), [`recover`] (what opening finds),
//! `reading` (how lines are found again) and [`index`] (so that nothing reads everything). [`memory`] keeps the same promises without a disk.

pub mod checkpoints;
pub mod fs;
mod growth;
pub mod index;
mod keeper;
pub mod memory;
mod quarantine;
mod reading;
pub mod recover;
pub mod segments;
pub mod sequencer;
mod writer;

pub use fs::{FsJournal, Keeping, Options};
pub use memory::MemoryJournal;
pub use reading::Reader;

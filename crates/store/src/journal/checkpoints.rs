//! Kept notes: checkpoints of the ledger and heads of traces, one small file each, put in place atomically.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::TraceId;
use baton_core::limits::NOTE_BYTES_MAX;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::note::{Checkpoint, Note, Statement};
use baton_ledger::verify::{KeptNote, file_name};

use crate::disk::{Disk, read_file, write_atomic};
use crate::layout::{Layout, position};

/// Held while a note is put in place.
static KEEPING: Mutex<()> = Mutex::new(());

/// The notes of a data directory.
#[derive(Debug, Clone)]
pub struct NoteDir {
    disk: Arc<dyn Disk>,
    layout: Layout,
}

impl NoteDir {
    pub fn new(disk: Arc<dyn Disk>, layout: &Layout) -> Self {
        NoteDir { disk, layout: layout.clone() }
    }

    fn path(&self, statement: &Statement) -> PathBuf {
        self.layout.checkpoints().join(file_name(statement))
    }

    /// Keeps a note; durable when this returns. Keeping it twice is the same as once.
    pub fn keep(&self, statement: &Statement, note: &str) -> io::Result<()> {
        // One at a time: the keeper and an export may both have something to keep.
        let _turn = KEEPING.lock().unwrap_or_else(PoisonError::into_inner);
        // The copy first, so that a crash in between leaves it ahead, never behind.
        match statement {
            Statement::Checkpoint(new)
                if self.latest_copy().is_none_or(|(known, _)| known.size < new.size) =>
            {
                write_atomic(&*self.disk, &self.latest_path(), note.as_bytes())?;
            }
            _ => {}
        }
        write_atomic(&*self.disk, &self.path(statement), note.as_bytes())
    }

    /// A copy of the largest checkpoint, so that opening need not look through all of them.
    fn latest_path(&self) -> PathBuf {
        self.layout.checkpoints().join("latest")
    }

    fn latest_copy(&self) -> Option<(Checkpoint, Note)> {
        let bytes = read_file(&*self.disk, &self.latest_path(), NOTE_BYTES_MAX as u64).ok()?;
        let note = Note::parse(&bytes).ok()?;
        Some((note.checkpoint()?.clone(), note))
    }

    /// The largest kept checkpoint that this ledger signed.
    pub fn latest_signed(&self, ledger: &LedgerIdentity) -> Option<Checkpoint> {
        let is_signed = |(_, note): &(Checkpoint, Note)| note.check(&ledger.origin, &ledger.key).is_ok();
        let mut sizes = self.sizes().ok()?.into_iter().rev();
        let search = || sizes.find_map(|size| self.checkpoint(size).ok()?.ok().filter(is_signed));
        self.latest_copy().filter(is_signed).or_else(search).map(|(checkpoint, _)| checkpoint)
    }

    /// The largest kept checkpoint, as it was read; not verified.
    pub fn latest(&self) -> Option<(Checkpoint, Note)> {
        let search =
            || self.sizes().ok()?.into_iter().rev().find_map(|size| self.checkpoint(size).ok()?.ok());
        self.latest_copy().or_else(search)
    }

    /// The note that is kept in the place of this one, and its text; not verified.
    pub fn kept(&self, statement: &Statement) -> Option<(Note, String)> {
        let bytes = read_file(&*self.disk, &self.path(statement), NOTE_BYTES_MAX as u64).ok()?;
        Some((Note::parse(&bytes).ok()?, String::from_utf8(bytes).ok()?))
    }

    /// Sizes of the kept checkpoints, ascending.
    pub fn sizes(&self) -> io::Result<Vec<u64>> {
        let names = self.disk.list(&self.layout.checkpoints())?;
        let mut sizes: Vec<u64> = names.iter().filter_map(|name| position(name)).collect();
        sizes.sort_unstable();
        Ok(sizes)
    }

    /// A kept checkpoint by its size, as it was read; not verified.
    pub fn checkpoint(&self, size: u64) -> io::Result<Result<(Checkpoint, Note), String>> {
        let path = self.layout.checkpoints().join(format!("{size:020}"));
        let bytes = read_file(&*self.disk, &path, NOTE_BYTES_MAX as u64)?;
        Ok(match Note::parse(&bytes) {
            Ok(note) => match note.checkpoint().cloned() {
                Some(checkpoint) => Ok((checkpoint, note)),
                None => Err("not a checkpoint".to_owned()),
            },
            Err(error) => Err(error.to_string()),
        })
    }

    /// All notes, for the verifier.
    pub fn all(&self) -> io::Result<Vec<KeptNote>> {
        let mut out = Vec::new();
        let mut take = |name: String| -> io::Result<()> {
            let path = self.layout.checkpoints().join(&name);
            let bytes = match read_file(&*self.disk, &path, NOTE_BYTES_MAX as u64 + 1) {
                Ok(bytes) => bytes,
                // Too large to be a note: the verifier says so.
                Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Vec::new(),
                Err(error) => return Err(error),
            };
            out.push(KeptNote { name, bytes });
            Ok(())
        };
        let mut names = self.disk.list(&self.layout.checkpoints())?;
        names.sort_unstable();
        names.into_iter().filter(|name| position(name).is_some()).try_for_each(&mut take)?;
        let mut heads = self.disk.list(&self.layout.trace_heads())?;
        let is_head =
            |(trace, seq): (&str, &str)| trace.parse::<TraceId>().is_ok() && position(seq).is_some();
        heads.retain(|name| name.rsplit_once('-').is_some_and(is_head));
        heads.sort_unstable();
        heads.into_iter().map(|name| format!("traces/{name}")).try_for_each(&mut take)?;
        Ok(out)
    }
}

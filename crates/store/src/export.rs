//! What leaves the ledger: checkpoints, trace heads, proofs, bundles and attestations. Reads a journal and writes elsewhere; appends nothing.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write};

use baton_core::limits::BUNDLE_CHUNK_BYTES;
use baton_core::{Digest, TraceId};
use baton_ledger::attest::{self, Attestor};
use baton_ledger::bundle::{self, Header, Summary};
use baton_ledger::hash::{Hasher, leaf};
use baton_ledger::key::SecretKey;
use baton_ledger::merkle::{
    Frontier, check_consistency, check_inclusion, prove_consistency, prove_inclusion,
};
use baton_ledger::note::{Checkpoint, Statement, TraceHead};
use baton_ledger::proof;
use baton_ledger::record::Line;
use baton_ledger::verify::file_name;

use crate::journal::checkpoints::NoteDir;
use crate::ports::{ArtifactStore, History, ReadError, StoredLine, TraceSummary};

/// Why something could not be exported.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("artifact {sha256} is cited and cannot be read: {source}")]
    Artifact { sha256: Digest, source: io::Error },
    #[error("cannot write: {0}")]
    Write(#[from] io::Error),
    #[error("the ledger has {size} events; there is no position {pos}")]
    NoSuchPosition { pos: u64, size: u64 },
}

/// Signs what a ledger states about itself.
#[derive(Debug)]
pub struct Exporter<'a> {
    pub journal: &'a dyn History,
    pub key: &'a SecretKey,
    pub notes: &'a NoteDir,
}

impl std::fmt::Debug for dyn History + '_ {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "History({} events)", self.size())
    }
}

impl Exporter<'_> {
    /// The checkpoint for the present size, and its note; signed and kept where there is none yet.
    pub fn checkpoint(&self) -> Result<(Checkpoint, String), Error> {
        let tree = self.journal.tree()?;
        let origin = self.journal.ledger().origin;
        let checkpoint = Checkpoint { origin, size: tree.size(), root: tree.root() };
        let note = self.kept(&Statement::Checkpoint(checkpoint.clone()), || checkpoint.sign(self.key))?;
        Ok((checkpoint, note))
    }

    /// The head of a trace as a note, or `None` where there is no such trace.
    pub fn trace_head(&self, trace: TraceId) -> Result<Option<String>, Error> {
        self.journal.trace(trace).map(|end| self.head_of(&end)).transpose()
    }

    fn head_of(&self, end: &TraceSummary) -> Result<String, Error> {
        let origin = self.journal.ledger().origin;
        let head = TraceHead { origin, trace: end.trace, seq: end.seq, hash: end.head };
        self.kept(&Statement::TraceHead(head.clone()), || head.sign(self.key))
    }

    fn kept(&self, statement: &Statement, sign: impl FnOnce() -> String) -> Result<String, Error> {
        let ledger = self.journal.ledger();
        if let Some((kept, text)) = self.notes.kept(statement) {
            let is_signed = kept.check(&ledger.origin, &ledger.key).is_ok();
            match kept.statement == *statement {
                true if is_signed => return Ok(text),
                // It says another thing about the same place, under our own name: that is evidence, and stays.
                false if is_signed => {
                    let why = format!("a kept note says otherwise: {}", file_name(statement));
                    return Err(ReadError::Damaged { pos: self.journal.size(), why }.into());
                }
                _ => {}
            }
        }
        self.journal.settle()?;
        let note = sign();
        self.notes.keep(statement, &note)?;
        Ok(note)
    }

    /// The proof of the event at a position against the present checkpoint.
    pub fn prove(&self, pos: u64) -> Result<String, Error> {
        let (checkpoint, note) = self.checkpoint()?;
        if pos == 0 || pos > checkpoint.size {
            return Err(Error::NoSuchPosition { pos, size: checkpoint.size });
        }
        let lines = self.journal.read(pos, 1)?;
        let record = lines.first().ok_or(Error::NoSuchPosition { pos, size: checkpoint.size })?;
        let path = self.path_to(pos, parse(record)?.hash, &checkpoint)?;
        Ok(proof::event_proof(&self.journal.ledger(), &record.text, pos - 1, &path, &note))
    }

    /// The path from an event to the root. What would not convince anyone else is not handed out.
    fn path_to(&self, pos: u64, hash: Digest, checkpoint: &Checkpoint) -> Result<Vec<Digest>, Error> {
        let path = prove_inclusion(pos - 1, checkpoint.size, |index| self.journal.node(index))?;
        if !check_inclusion(pos - 1, checkpoint.size, leaf(&hash), &path, &checkpoint.root) {
            return Err(ReadError::Index(format!("its tree does not lead from {pos} to the root")).into());
        }
        Ok(path)
    }

    /// The proof that the ledger of an earlier size is a beginning of the present one.
    pub fn prove_consistency(&self, old: u64) -> Result<String, Error> {
        let (checkpoint, newer) = self.checkpoint()?;
        if old == 0 || old > checkpoint.size {
            return Err(Error::NoSuchPosition { pos: old, size: checkpoint.size });
        }
        let tree = Frontier::load(old, &mut |index| self.journal.node(index))?;
        let earlier = Checkpoint { size: old, root: tree.root(), ..checkpoint.clone() };
        let path = prove_consistency(old, checkpoint.size, |index| self.journal.node(index))?;
        if !check_consistency(old, checkpoint.size, &earlier.root, &checkpoint.root, &path) {
            return Err(
                ReadError::Index(format!("its tree does not lead from size {old} to the root")).into()
            );
        }
        let older = self.kept(&Statement::Checkpoint(earlier.clone()), || earlier.sign(self.key))?;
        Ok(proof::consistency_proof(&self.journal.ledger(), &path, &older, &newer))
    }

    /// Writes the bundle of a trace; gives the number of its events, or `None` where there is no such trace.
    pub fn bundle(
        &self,
        trace: TraceId,
        artifacts: Option<&dyn ArtifactStore>,
        out: &mut dyn Write,
    ) -> Result<Option<u64>, Error> {
        // The end first: a checkpoint that is made afterwards covers it, whatever is appended meanwhile.
        let Some(end) = self.journal.trace(trace) else { return Ok(None) };
        let head = self.head_of(&end)?;
        let (checkpoint, note) = self.checkpoint()?;
        let header = Header {
            ledger: self.journal.ledger(),
            trace,
            events: end.seq,
            size: checkpoint.size,
            inline: artifacts.is_some(),
        };
        out.write_all(&header.to_line())?;
        let (cited, signed, positions) = self.write_events(trace, end.seq, out)?;
        if let Some(artifacts) = artifacts {
            for (sha256, bytes) in &cited {
                write_artifact(artifacts, sha256, *bytes, out)?;
            }
        }
        out.write_all(&bundle::head_line(&head))?;
        out.write_all(&bundle::checkpoint_line(&note))?;
        let path = self.path_to(end.last_pos, end.head, &checkpoint)?;
        out.write_all(&bundle::proof_line(end.last_pos - 1, &path))?;
        let summary = Summary {
            artifacts: cited.len() as u64,
            closed: end.is_closed,
            events: end.seq,
            head: end.head,
            positions,
            signed,
            trace,
        };
        out.write_all(&summary.to_line())?;
        Ok(Some(end.seq))
    }

    fn write_events(
        &self,
        trace: TraceId,
        last: u64,
        out: &mut dyn Write,
    ) -> Result<(BTreeMap<Digest, u64>, u64, Digest), Error> {
        let (mut cited, mut signed, mut positions) = (BTreeMap::new(), 0, Hasher::default());
        self.each_line(trace, last, &mut |stored| {
            let line = parse(stored)?;
            cited.extend(line.artifacts.iter().map(|artifact| (artifact.sha256, artifact.bytes)));
            signed += u64::from(line.sig.is_some());
            positions.update(format!("{}\n", stored.pos).as_bytes());
            Ok(out.write_all(&bundle::event_line(stored.text.as_bytes()))?)
        })?;
        Ok((cited, signed, positions.finish()))
    }

    /// Writes an attestation of each claim and each final statement of a trace, in their order; gives their number, or `None` where there is no such trace.
    pub fn attestations(&self, trace: TraceId, out: &mut dyn Write) -> Result<Option<u64>, Error> {
        let Some(end) = self.journal.trace(trace) else { return Ok(None) };
        // What is signed is also there after a power cut.
        self.journal.settle()?;
        let origin = self.journal.ledger().origin;
        let (mut attestor, mut written) = (Attestor::new(&origin), 0);
        self.each_line(trace, end.seq, &mut |stored| {
            let Some(statement) = attestor.statement(&parse(stored)?) else { return Ok(()) };
            written += 1;
            Ok(out.write_all(&attest::envelope(&statement, self.key))?)
        })?;
        Ok(Some(written))
    }

    /// Hands out the lines of a trace up to the last one that is wanted, in bounded memory.
    fn each_line(
        &self,
        trace: TraceId,
        last: u64,
        take: &mut dyn FnMut(&StoredLine) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut seq = 1;
        while seq <= last {
            let lines = self.journal.read_trace(trace, seq, (last - seq + 1).min(1024) as usize)?;
            if lines.is_empty() {
                return Err(
                    ReadError::Damaged { pos: 0, why: format!("seq {seq} of {trace} is missing") }.into()
                );
            }
            seq += lines.len() as u64;
            lines.iter().try_for_each(&mut *take)?;
        }
        Ok(())
    }
}

fn parse(stored: &StoredLine) -> Result<Line<'_>, ReadError> {
    Line::parse(stored.text.as_bytes())
        .map_err(|flaw| ReadError::Damaged { pos: stored.pos, why: flaw.to_string() })
}

fn write_artifact(
    artifacts: &dyn ArtifactStore,
    sha256: &Digest,
    bytes: u64,
    out: &mut dyn Write,
) -> Result<(), Error> {
    let fail = |source| Error::Artifact { sha256: *sha256, source };
    let mut file = artifacts.open(sha256).map_err(fail)?;
    let (mut left, mut hasher) = (bytes, Hasher::default());
    for chunk in 1..=bundle::artifact_chunks(bytes) {
        let mut data = vec![0; left.min(BUNDLE_CHUNK_BYTES as u64) as usize];
        file.read_exact(&mut data).map_err(fail)?;
        left -= data.len() as u64;
        hasher.update(&data);
        out.write_all(&bundle::artifact_line(sha256, bytes, chunk, &data))?;
    }
    // Nobody could verify the bundle: better to say so now, where the artifact may still be mended.
    if hasher.finish() != *sha256 || file.read(&mut [0]).map_err(fail)? != 0 {
        return Err(fail(io::Error::new(io::ErrorKind::InvalidData, "its content was changed")));
    }
    Ok(())
}

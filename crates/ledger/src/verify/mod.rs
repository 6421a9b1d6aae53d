//! The verifier: needs nothing but the bytes, never writes, streams in bounded memory, uses every core it is given.
//!
//! The [`workers`] take chunks of lines from the [`feed`], parse and hash them on their own, pass them in turn through the [`join`] (all that
//! depends on order), then check signatures and artifacts on their own again. See the README beside this file.

mod bundle;
mod code;
mod feed;
mod guarded;
mod join;
mod late;
mod lines;
mod notes;
mod report;
mod signatures;
#[cfg(test)]
mod tests;
mod workers;

use baton_core::{Digest, TraceId};

pub use bundle::verify_bundle;
pub use code::{Check, Code, Severity};
pub use feed::{CHUNK_BYTES, Segments};
pub use guarded::code_of;
pub use join::identity;
pub use lines::is_cut_short;
pub use notes::file_name;
pub use report::{CheckResult, Counts, Finding, Findings, Report, Subject, Verdict, Vouched};

use crate::key::PublicKey;
use crate::keyring::LedgerIdentity;
use join::{Join, Scope};
use notes::{Notes, judge_note};

/// What the reader brings along.
#[derive(Debug, Default)]
pub struct Options {
    /// Keys that the reader trusts; `None` where none were named.
    pub trust: Option<Vec<PublicKey>>,
    /// A checkpoint or trace head that the reader kept.
    pub checkpoint: Option<Vec<u8>>,
    /// Notes that lie beside the journal, by file name.
    pub kept: Vec<KeptNote>,
    /// Check signatures one by one instead of in batches.
    pub each: bool,
    /// Skip signatures altogether: only for measuring what the rest costs.
    pub links_only: bool,
    /// Whether whoever asks is the auditor, whose own record is what is still missing at the end of a run.
    pub audits: bool,
    /// Number of threads; 0 and 1 are the same.
    pub threads: usize,
}

/// A note found beside the journal, and what its file name says about it.
#[derive(Debug, Clone)]
pub struct KeptNote {
    pub name: String,
    pub bytes: Vec<u8>,
}

/// What the store knows of a cited artifact.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ArtifactState {
    Good,
    Missing,
    /// The bytes are there and are not the cited ones.
    Differs(String),
}

/// Access to cited artifacts.
///
/// If an implementation says `Good` without having hashed the bytes, a replaced artifact goes unnoticed.
pub trait Artifacts: Sync {
    fn check(&self, sha256: &Digest, bytes: u64) -> ArtifactState;
}

/// Opens the journal from its start; called again for the rare second pass.
pub type OpenSegments<'a> = &'a (dyn Fn() -> Result<Box<dyn Segments>, String> + Sync);

/// Verifies a whole journal.
pub fn verify_journal(
    open: OpenSegments<'_>,
    artifacts: Option<&dyn Artifacts>,
    options: &Options,
) -> Report {
    run(open, artifacts, options, Scope::Journal, None)
}

/// Verifies the lines of one trace of a journal whose identity is known from its first record.
pub fn verify_trace(
    open: OpenSegments<'_>,
    artifacts: Option<&dyn Artifacts>,
    options: &Options,
    trace: TraceId,
    ledger: LedgerIdentity,
) -> Report {
    run(open, artifacts, options, Scope::Trace(trace), Some(ledger))
}

fn run(
    open: OpenSegments<'_>,
    artifacts: Option<&dyn Artifacts>,
    options: &Options,
    scope: Scope,
    ledger: Option<LedgerIdentity>,
) -> Report {
    let source = match open() {
        Ok(source) => source,
        Err(why) => return Report::cannot_tell(Code::Unreadable, why),
    };
    let mut join = Join::new(scope, ledger);
    join.audits = options.audits;
    let notes = Notes::read(options, &mut join);
    let mut join = match workers::pass_through(join, source, artifacts, options, scope) {
        Ok(join) => join,
        Err(why) => return Report::cannot_tell(Code::Unreadable, why),
    };
    join.finish();
    if let Err(why) = late::second_pass(open, scope, &mut join) {
        return Report::cannot_tell(Code::Unreadable, why);
    }
    if join.line() == 0 && !join.findings.has_failure() {
        return Report::cannot_tell(Code::NoEvents, "no events");
    }
    conclude(join, &notes, options, scope)
}

/// Judges notes and keys, and draws the conclusion.
fn conclude(mut join: Join, notes: &Notes, options: &Options, scope: Scope) -> Report {
    let subject = Subject {
        origin: join.ledger.as_ref().map(|ledger| ledger.origin.to_string()),
        trace: match scope {
            Scope::Journal => None,
            Scope::Trace(trace) => Some(trace),
        },
        head: join.head,
        events: match scope {
            Scope::Journal => join.line(),
            Scope::Trace(trace) => join.events_of(trace),
        },
        run: match scope {
            Scope::Journal => None,
            Scope::Trace(trace) => join.run_of(trace),
        },
    };
    let mut vouched = Vouched::default();
    // A checkpoint that says nothing about this subject is as good as none.
    let mut was_compared = false;
    if let Some(ledger) = join.ledger.clone().filter(|_| !join.has_stopped) {
        for (name, is_given, note) in &notes.list {
            join.counts.add(Check::Checkpoint, 1);
            match judge_note(&join, &ledger, scope, *is_given, note) {
                Ok(covers_end) => {
                    was_compared |= *is_given;
                    vouched.by_checkpoint |= *is_given && covers_end;
                }
                Err(Some(finding)) => {
                    was_compared |= *is_given;
                    let found = finding.found.clone().unwrap_or_default();
                    join.findings.push(finding.found(format!("{name}: {found}")));
                }
                Err(None) => {}
            }
        }
        vouched.by_key = judge_key(&mut join.findings, options.trust.as_deref(), &ledger.key);
        if join.unchecked_artifacts > 0 {
            let found = format!("no artifacts at hand; citations: {}", join.unchecked_artifacts);
            join.findings.push(Finding::new(Code::ArtifactUnchecked).found(found));
        }
        if !was_compared {
            let expected = match scope {
                Scope::Journal => "a checkpoint kept by the reader",
                Scope::Trace(_) => "a head of this trace kept by the reader",
            };
            join.findings.push(Finding::new(Code::NoCheckpoint).expected(expected));
        }
    }
    Report::conclude(subject, &join.counts, join.findings, vouched)
}

/// Whether the reader trusts the ledger's key; says so where not.
pub(crate) fn judge_key(findings: &mut Findings, trust: Option<&[PublicKey]>, key: &PublicKey) -> bool {
    match trust {
        Some(trusted) if trusted.contains(key) => return true,
        Some(_) => {
            let finding = Finding::new(Code::KeyUnknown).expected("one of the trusted keys");
            findings.push(finding.found(format!("the ledger's key is {}", key.id())));
        }
        None => findings.push(Finding::new(Code::KeyUnpinned).found(key.id())),
    }
    false
}

//! The verifier: needs nothing but the bytes, never writes, streams in bounded memory, uses every core it is given.
//!
//! Workers take chunks of lines from the [`feed`], parse and hash them on their own, pass them in turn through the [`join`] (all that
//! depends on order), then check signatures and artifacts on their own again. See the README beside this file.

mod bundle;
mod feed;
mod join;
mod report;
mod signatures;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use baton_core::limits::LINE_BYTES_MAX;
use baton_core::{Digest, EventId, TraceId};

pub use bundle::verify_bundle;
pub use feed::{CHUNK_BYTES, Segments};
pub use join::identity;
pub use report::{
    Check, CheckResult, Code, Counts, Finding, Findings, Report, Severity, Subject, Verdict, Vouched,
};

use crate::key::PublicKey;
use crate::keyring::LedgerIdentity;
use crate::note::{Note, Statement};
use crate::record::{Flaw, Line};
use feed::{Chunk, Feed};
use join::{Join, Judged, Pending, Promise, Scope};
use signatures::Checker;

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
    let notes = Notes::read(options, &mut join);
    let shared = Shared {
        feed: Mutex::new(Feed::new(source)),
        turn: Mutex::new(Turn { next: 0, join, error: None }),
        moved: Condvar::new(),
    };
    std::thread::scope(|threads| {
        let spawn = |_| threads.spawn(|| shared.work(artifacts, options, scope));
        let others: Vec<_> = (1..options.threads).map(spawn).collect();
        shared.work(artifacts, options, scope);
        for other in others {
            // The panic goes on here as it was, so that whoever asked sees its own words.
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let Turn { mut join, error, .. } = shared.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    if let Some(why) = error {
        return Report::cannot_tell(Code::Unreadable, why);
    }
    join.finish();
    if let Err(why) = second_pass(open, scope, &mut join) {
        return Report::cannot_tell(Code::Unreadable, why);
    }
    if join.line == 0 && !join.findings.has_failure() {
        return Report::cannot_tell(Code::NoEvents, "no events");
    }
    conclude(join, &notes, options, scope)
}

/// What the workers share.
struct Shared<S> {
    feed: Mutex<Feed<S>>,
    turn: Mutex<Turn>,
    moved: Condvar,
}

struct Turn {
    /// The chunk whose lines come next.
    next: u64,
    join: Join,
    error: Option<String>,
}

/// Lets the other workers go when one panics: the turn of its chunk never comes, and they would wait for it for ever.
struct Alarm<'a, S>(&'a Shared<S>);

impl<S> Drop for Alarm<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.turn).error.get_or_insert_with(|| "a worker panicked".to_owned());
            self.0.moved.notify_all();
        }
    }
}

/// A lock that a panic poisoned is taken all the same: its [`Alarm`] ends the verification, and the panic goes on from there.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Segments for Box<dyn Segments> {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        (**self).next_segment()
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        (**self).read(buffer)
    }
}

impl<S: Segments> Shared<S> {
    fn work(&self, artifacts: Option<&dyn Artifacts>, options: &Options, scope: Scope) {
        // Made first, so that it goes off last, when this worker holds no lock any more.
        let _alarm = Alarm(self);
        let mut checker = Checker::new(options.each);
        let mut seen_artifacts = BTreeSet::new();
        loop {
            let chunk = match lock(&self.feed).next() {
                Ok(Some(chunk)) => chunk,
                Ok(None) => return,
                Err(why) => {
                    lock(&self.turn).error.get_or_insert(why);
                    return;
                }
            };
            let lines = Lines::split(&chunk);
            let mut judged: Vec<Result<Judged<'_>, Flaw>> = Vec::with_capacity(lines.whole.len());
            let all = lines.whole.iter().map(|line| Judged::new(line));
            judged.extend(
                all.filter(|judged| scope.includes(judged.as_ref().ok().map(|judged| judged.line.trace))),
            );
            let taken = self.in_turn(&chunk, &lines, &judged, artifacts.is_some());
            let mut found = Vec::new();
            if !options.links_only {
                found.extend(bad_signatures(&mut checker, &taken.pending));
            }
            if let Some(artifacts) = artifacts {
                let cited = judged.iter().zip(taken.lines);
                let cited = cited.filter_map(|(judged, line)| Some((judged.as_ref().ok()?, line)));
                found.extend(bad_artifacts(artifacts, cited, &mut seen_artifacts));
            }
            if !found.is_empty() {
                lock(&self.turn).join.findings.extend(found);
            }
            if !taken.goes_on {
                return;
            }
        }
    }

    /// Waits for this chunk's turn and passes its lines on.
    fn in_turn(
        &self,
        chunk: &Chunk,
        lines: &Lines<'_>,
        judged: &[Result<Judged<'_>, Flaw>],
        has_artifacts: bool,
    ) -> Taken {
        let mut turn = lock(&self.turn);
        while turn.next != chunk.number && turn.error.is_none() {
            turn = self.moved.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.error.is_some() {
            // There will be no report on any line.
            return Taken { pending: Vec::new(), lines: 0..0, goes_on: false };
        }
        let join = &mut turn.join;
        if chunk.starts_segment.is_some() || !lines.whole.is_empty() {
            join.settle();
        }
        let first_line = join.line + 1;
        let mut pending = Vec::with_capacity(judged.len());
        let mut segment = chunk.starts_segment;
        for line in judged {
            pending.extend(join.accept(line.as_ref(), segment.take()));
        }
        let taken = first_line..join.line + 1;
        if segment.is_some() && lines.whole.is_empty() && lines.unterminated.is_none() {
            join.empty_segment();
        } else {
            join.blank(lines.blank);
        }
        if let Some(bytes) = lines.unterminated {
            join.unterminated(bytes);
        }
        let cited = judged.iter().zip(taken.clone()).filter_map(|(judged, _)| judged.as_ref().ok());
        let cited = cited.map(|judged| judged.line.artifacts.len() as u64).sum();
        if has_artifacts {
            join.counts.add(Check::ArtifactExists, cited);
            join.counts.add(Check::ArtifactHash, cited);
        } else {
            join.unchecked_artifacts += cited;
        }
        let goes_on = !join.has_stopped;
        turn.next += 1;
        self.moved.notify_all();
        Taken { pending, lines: taken, goes_on }
    }
}

/// What is left to do for a chunk after its turn.
struct Taken {
    /// Signatures to check, also those before a line at which verification ended.
    pending: Vec<Pending>,
    /// The numbers of the lines that were judged.
    lines: std::ops::Range<u64>,
    goes_on: bool,
}

impl Scope {
    fn includes(self, trace: Option<TraceId>) -> bool {
        match (self, trace) {
            (Scope::Journal, _) | (Scope::Trace(_), None) => true,
            (Scope::Trace(wanted), Some(trace)) => trace == wanted,
        }
    }
}

/// The lines of a chunk; blank ones at its end are counted, since only what follows tells what they are.
struct Lines<'a> {
    whole: Vec<&'a [u8]>,
    blank: u64,
    unterminated: Option<u64>,
}

impl<'a> Lines<'a> {
    fn split(chunk: &'a Chunk) -> Self {
        let (mut bytes, mut unterminated) = (chunk.bytes.as_slice(), None);
        if chunk.is_unterminated {
            let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
            unterminated = Some((bytes.len() - end) as u64);
            bytes = &bytes[..end];
        }
        let mut whole = Vec::with_capacity(bytes.len() / 512);
        let mut start = 0;
        let text_end = bytes.iter().rposition(|b| *b != b'\n').map_or(0, |at| at + 2);
        for end in memchr::memchr_iter(b'\n', &bytes[..text_end]) {
            whole.push(&bytes[start..end]);
            start = end + 1;
        }
        let mut blank = (bytes.len() - text_end) as u64;
        // A killed writer leaves the beginning of a line in front of the pre-fill.
        if let Some(last) = whole.last().filter(|last| blank > 0 && is_cut_short(last)) {
            unterminated = Some(unterminated.unwrap_or(0) + last.len() as u64);
            blank = 0;
            whole.pop();
            // The line feeds before it belong to the tail as well.
            let end = whole.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
            whole.truncate(end);
        }
        Lines { whole, blank, unterminated }
    }
}

/// Whether a line starts an object and never ends it.
pub fn is_cut_short(line: &[u8]) -> bool {
    // What is longer than a record may be was never the beginning of one.
    if line.first() != Some(&b'{') || line.len() > LINE_BYTES_MAX {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0i64, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    true
}

fn bad_signatures(checker: &mut Checker, pending: &[Pending]) -> Vec<Finding> {
    let bad = checker.failing(pending);
    bad.into_iter()
        .map(|i| {
            let expected = format!("a signature by {}", pending[i].task.key.id());
            let finding = Finding::new(Code::SigInvalid).expected(expected);
            finding.found("one that does not check").at(pending[i].line).event(pending[i].event)
        })
        .collect()
}

/// How many artifacts a worker remembers as good, so that one that is cited often is not hashed often.
const GOOD_ARTIFACTS_MAX: usize = 1 << 16;

fn bad_artifacts<'a>(
    artifacts: &dyn Artifacts,
    cited: impl Iterator<Item = (&'a Judged<'a>, u64)>,
    good: &mut BTreeSet<(Digest, u64)>,
) -> Vec<Finding> {
    let mut found = Vec::new();
    for (judged, line) in cited {
        let mut worst: Option<Finding> = None;
        for artifact in &judged.line.artifacts {
            let cited = (artifact.sha256, artifact.bytes);
            if good.contains(&cited) {
                continue;
            }
            let finding = match artifacts.check(&artifact.sha256, artifact.bytes) {
                ArtifactState::Good => {
                    if good.len() < GOOD_ARTIFACTS_MAX {
                        good.insert(cited);
                    }
                    continue;
                }
                ArtifactState::Missing => Finding::new(Code::ArtifactMissing).found("nothing"),
                ArtifactState::Differs(found) => Finding::new(Code::ArtifactHashMismatch).found(found),
            };
            let expected = format!("{} bytes with SHA-256 {}", artifact.bytes, artifact.sha256);
            let finding = finding.expected(expected).at(line).event(judged.line.id);
            if worst.as_ref().is_none_or(|worst| finding.code < worst.code) {
                worst = Some(finding);
            }
        }
        found.extend(worst);
    }
    found
}

/// Looks for the ids that came too late for the window. An honest ledger has none, or a handful.
fn second_pass(open: OpenSegments<'_>, scope: Scope, join: &mut Join) -> Result<(), String> {
    let late = std::mem::take(&mut join.late);
    if late.is_empty() || join.has_stopped {
        return Ok(());
    }
    let mut lines_of: BTreeMap<EventId, u64> = BTreeMap::new();
    let mut doubled = Vec::new();
    for (id, line) in late {
        match lines_of.get(&id) {
            Some(_) => doubled.push((id, line)),
            None => drop(lines_of.insert(id, line)),
        }
    }
    let mut feed = Feed::new(open()?);
    let mut number = 0;
    while let Some(chunk) = feed.next()? {
        for line in Lines::split(&chunk).whole {
            let parsed = Line::parse(line).ok().filter(|line| scope.includes(Some(line.trace)));
            let Some(parsed) = parsed else {
                number += u64::from(scope == Scope::Journal);
                continue;
            };
            number += 1;
            if lines_of.get(&parsed.id).is_some_and(|late| *late > number) {
                doubled.extend(lines_of.remove(&parsed.id).map(|line| (parsed.id, line)));
            }
        }
    }
    for (id, line) in doubled {
        let finding = Finding::new(Code::SequenceGap).expected("an id that occurs once").found(id);
        join.findings.push(finding.at(line).event(id));
    }
    Ok(())
}

/// The notes to compare with: what they promise, and how to judge their signatures once the ledger's key is known.
#[derive(Default)]
struct Notes {
    list: Vec<(String, bool, Result<Note, String>)>,
}

impl Notes {
    fn read(options: &Options, join: &mut Join) -> Notes {
        let given = options
            .checkpoint
            .iter()
            .map(|bytes| ("the given checkpoint".to_owned(), true, bytes.as_slice()));
        let kept = options.kept.iter().map(|kept| (kept.name.clone(), false, kept.bytes.as_slice()));
        let mut notes = Notes::default();
        for (name, is_given, bytes) in given.chain(kept) {
            let note = Note::parse(bytes).map_err(|e| e.to_string()).and_then(|note| {
                if is_given || file_name(&note.statement) == name {
                    Ok(note)
                } else {
                    Err(format!("the file is named {name}, its content is {}", file_name(&note.statement)))
                }
            });
            if let Ok(note) = &note {
                expect(join, &note.statement);
            }
            notes.list.push((name, is_given, note));
        }
        notes
    }
}

/// The name under which a note is kept in `checkpoints/`.
pub fn file_name(statement: &Statement) -> String {
    match statement {
        Statement::Checkpoint(checkpoint) => format!("{:020}", checkpoint.size),
        Statement::TraceHead(head) => format!("traces/{}-{:020}", head.trace, head.seq),
    }
}

fn expect(join: &mut Join, statement: &Statement) {
    match statement {
        Statement::Checkpoint(c) => {
            let is_kept = (c.size == 0).then(|| c.root == join.frontier.root());
            join.roots.entry(c.size).or_default().push(Promise { digest: c.root, is_kept });
        }
        Statement::TraceHead(head) => {
            // No event has the number 0, so nothing keeps such a promise.
            let is_kept = (head.seq == 0).then_some(false);
            join.heads
                .entry((head.trace, head.seq))
                .or_default()
                .push(Promise { digest: head.hash, is_kept });
        }
    }
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
            Scope::Journal => join.line,
            Scope::Trace(trace) => join.events_of(trace),
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
            let found = format!("{} citations, and no artifacts at hand", join.unchecked_artifacts);
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

/// `Ok` where the note holds, with whether it covers the last event; `Err(None)` where it concerns something else.
fn judge_note(
    join: &Join,
    ledger: &LedgerIdentity,
    scope: Scope,
    is_given: bool,
    note: &Result<Note, String>,
) -> Result<bool, Option<Finding>> {
    let mismatch = |found: String| {
        Some(Finding::new(Code::CheckpointMismatch).expected("a note that fits").found(found))
    };
    let note = note.as_ref().map_err(|why| mismatch(why.clone()))?;
    note.check(&ledger.origin, &ledger.key).map_err(|e| mismatch(e.to_string()))?;
    let (kept, number, last) = match &note.statement {
        Statement::Checkpoint(_) if scope != Scope::Journal => return Err(None),
        Statement::Checkpoint(c) => {
            let kept = join.roots.get(&c.size).and_then(|list| list.iter().find(|p| p.digest == c.root));
            (kept, c.size, join.line)
        }
        Statement::TraceHead(head) => {
            if matches!(scope, Scope::Trace(trace) if trace != head.trace) {
                // Heads of other traces lie beside every journal; one that the reader gave is a mistake to be told.
                return Err(is_given.then(|| mismatch("the head of another trace".into())).flatten());
            }
            let kept = join.heads.get(&(head.trace, head.seq));
            let kept = kept.and_then(|list| list.iter().find(|p| p.digest == head.hash));
            (kept, head.seq, join.events_of(head.trace))
        }
    };
    match kept.and_then(|promise| promise.is_kept) {
        // The head of one trace says nothing about the end of a whole journal.
        Some(true) => Ok(number == last && (note.checkpoint().is_some() || scope != Scope::Journal)),
        Some(false) => Err(mismatch(format!("another history at {number}"))),
        None if number > last => {
            let finding = Finding::new(Code::TailCut).expected(format!("at least {number} events"));
            Err(Some(finding.found(format!("{last} events"))))
        }
        // The lines up to there could not be read; they have their own findings.
        None => Err(None),
    }
}

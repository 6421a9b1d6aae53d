//! The workers: each takes a chunk, passes its lines through the join in turn, then checks signatures and artifacts on its own.

use std::collections::BTreeSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use baton_core::Digest;

use super::code::{Check, Code};
use super::feed::{Chunk, Feed, Segments};
use super::join::{Join, Judged, Pending, Scope};
use super::lines::Lines;
use super::report::Finding;
use super::signatures::Checker;
use super::{ArtifactState, Artifacts, Options};
use crate::record::Flaw;

/// Passes every line through the join; `Err` where the journal cannot be read.
pub(super) fn pass_through<S: Segments>(
    join: Join,
    source: S,
    artifacts: Option<&dyn Artifacts>,
    options: &Options,
    scope: Scope,
) -> Result<Join, String> {
    let shared = Shared::new(join, source);
    std::thread::scope(|threads| {
        let spawn = |_| threads.spawn(|| shared.work(artifacts, options, scope));
        let others: Vec<_> = (1..options.threads).map(spawn).collect();
        shared.work(artifacts, options, scope);
        for other in others {
            // The panic goes on here as it was, so that whoever asked sees its own words.
            other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        }
    });
    let Turn { join, error, .. } = shared.turn.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(join), Err)
}

/// What the workers share.
pub(super) struct Shared<S> {
    pub(super) feed: Mutex<Feed<S>>,
    pub(super) turn: Mutex<Turn>,
    moved: Condvar,
}

pub(super) struct Turn {
    /// The chunk whose lines come next.
    next: u64,
    join: Join,
    pub(super) error: Option<String>,
}

/// Lets the other workers go when one panics: the turn of its chunk never comes, and they would wait for it for ever.
pub(super) struct Alarm<'a, S: Segments>(pub(super) &'a Shared<S>);

impl<S: Segments> Drop for Alarm<'_, S> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            lock(&self.0.turn).error.get_or_insert_with(|| "a worker panicked".to_owned());
            self.0.moved.notify_all();
        }
    }
}

/// A lock that a panic poisoned is taken all the same: its [`Alarm`] ends the verification, and the panic goes on from there.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<S: Segments> Shared<S> {
    pub(super) fn new(join: Join, source: S) -> Self {
        Shared {
            feed: Mutex::new(Feed::new(source)),
            turn: Mutex::new(Turn { next: 0, join, error: None }),
            moved: Condvar::new(),
        }
    }

    pub(super) fn work(&self, artifacts: Option<&dyn Artifacts>, options: &Options, scope: Scope) {
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
                    // Those who wait for a turn that will not come must look again.
                    self.moved.notify_all();
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
            join.settle(chunk.starts_segment.is_some());
        }
        let first_line = join.line() + 1;
        let mut pending = Vec::with_capacity(judged.len());
        let mut segment = chunk.starts_segment;
        for line in judged {
            pending.extend(join.accept(line.as_ref(), segment.take()));
        }
        let taken = first_line..join.line() + 1;
        join.hold(chunk.starts_segment.is_some(), lines);
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

pub(super) fn bad_signatures(checker: &mut Checker, pending: &[Pending]) -> Vec<Finding> {
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

//! The ordered half of verification: everything that depends on what came before.
//!
//! Workers parse and hash lines on their own; each then passes its lines through here in turn. This must stay cheap: it is the one part that is
//! not parallel. Signatures are looked up here (the key must be valid at this place) and checked by the worker afterwards.

use std::collections::{BTreeMap, VecDeque};

use baton_core::guard::{Profile, State};
use baton_core::limits::SEEN_BACK_MAX;
use baton_core::roles::{must_be_signed, role_required};
use baton_core::{Digest, EventId, Seen, TraceId};
use serde_json::Value;

use super::code::{Check, Code};
use super::guarded::Guarded;
use super::late::Ids;
use super::lines::{Lines, Numbers, Stray};
use super::report::{Counts, Finding, Findings};
use super::signatures::Task;
use crate::body::KeyEvent;
use crate::canonical;
use crate::hash::leaf;
use crate::id_window::Sighting;
use crate::key::PublicKey;
use crate::keyring::{Fault, KeyRing, LedgerIdentity, SharedBindings};
use crate::merkle::Frontier;
use crate::order::Order;
use crate::record::{Flaw, Line};

/// A line after the part that needs no context.
#[derive(Debug)]
pub(crate) struct Judged<'a> {
    pub line: Line<'a>,
    pub body: Digest,
    pub hash: Digest,
}

impl<'a> Judged<'a> {
    pub(crate) fn new(line: &'a [u8]) -> Result<Self, Flaw> {
        let line = Line::parse(line)?;
        let body = line.body_digest();
        let hash = line.link_hash(&body);
        Ok(Judged { line, body, hash })
    }
}

/// Which lines there are to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// Every line of a journal.
    Journal,
    /// The lines of one trace, with others left out between them.
    Trace(TraceId),
}

impl Scope {
    pub(crate) fn includes(self, trace: Option<TraceId>) -> bool {
        match (self, trace) {
            (Scope::Journal, _) | (Scope::Trace(_), None) => true,
            (Scope::Trace(wanted), Some(trace)) => trace == wanted,
        }
    }
}

/// A signature to check once the turn is over.
#[derive(Debug)]
pub(crate) struct Pending {
    pub line: u64,
    pub event: EventId,
    pub task: Task,
}

impl AsRef<Task> for Pending {
    fn as_ref(&self) -> &Task {
        &self.task
    }
}

/// The end of one trace so far.
#[derive(Debug, Default)]
struct TraceEnd {
    seq: u64,
    hash: Option<Digest>,
    is_closed: bool,
    keys: KeyRing,
    pub(super) guarded: Guarded,
    /// Hashes of the last events, for `seen`; none once the trace is closed, after which `seen` is not looked at.
    recent: VecDeque<Digest>,
}

/// A root or a hash that a note promises.
#[derive(Debug, Clone)]
pub(crate) struct Promise {
    pub digest: Digest,
    pub is_kept: Option<bool>,
}

#[derive(Debug)]
pub(crate) struct Join {
    scope: Scope,
    /// Whether the auditor asks.
    pub audits: bool,
    pub ledger: Option<LedgerIdentity>,
    numbers: Numbers,
    pub head: Option<Digest>,
    pub signed: u64,
    /// Nothing more can be judged.
    pub has_stopped: bool,
    pub findings: Findings,
    pub counts: Counts,
    /// Citations that nobody looked at, because no artifacts are at hand.
    pub unchecked_artifacts: u64,
    pub frontier: Frontier,
    /// Promises by size of the tree, and by trace and number.
    pub roots: BTreeMap<u64, Vec<Promise>>,
    pub heads: BTreeMap<(TraceId, u64), Vec<Promise>>,
    traces: BTreeMap<TraceId, TraceEnd>,
    /// What the keys of closed traces are bound to.
    bindings: SharedBindings,
    pub ids: Ids,
    last_pos: u64,
    /// Where the line before left decisions and writes; `None` where it could not be read.
    order: Option<Order>,
    tree_is_known: bool,
}

impl Join {
    pub(crate) fn new(scope: Scope, ledger: Option<LedgerIdentity>) -> Self {
        Join {
            scope,
            audits: false,
            ledger,
            numbers: Numbers::default(),
            head: None,
            signed: 0,
            has_stopped: false,
            findings: Findings::default(),
            counts: Counts::default(),
            unchecked_artifacts: 0,
            frontier: Frontier::default(),
            roots: BTreeMap::new(),
            heads: BTreeMap::new(),
            traces: BTreeMap::new(),
            bindings: SharedBindings::default(),
            ids: Ids::default(),
            last_pos: 0,
            order: Some(Order::default()),
            tree_is_known: true,
        }
    }

    pub(crate) fn is_closed(&self, trace: TraceId) -> bool {
        self.traces.get(&trace).is_some_and(|end| end.is_closed)
    }

    pub(crate) fn events_of(&self, trace: TraceId) -> u64 {
        self.traces.get(&trace).map_or(0, |end| end.seq)
    }

    /// Where the guarded run stands that a trace is.
    pub(crate) fn run_of(&self, trace: TraceId) -> Option<(State, Profile)> {
        self.traces.get(&trace).and_then(|end| end.guarded.standing())
    }

    /// The number of the last line.
    pub(crate) fn line(&self) -> u64 {
        self.numbers.line
    }

    /// How many hashes are kept for `seen`, in all traces.
    #[cfg(test)]
    pub(crate) fn hashes_kept(&self) -> usize {
        self.traces.values().map(|end| end.recent.capacity()).sum()
    }

    /// Takes note of what stands behind the whole lines of a chunk; see [`Numbers::hold`].
    pub(crate) fn hold(&mut self, starts_segment: bool, lines: &Lines<'_>) {
        self.numbers.hold(starts_segment, lines);
    }

    /// Something follows: what was held back is now in the middle, where it does not belong.
    pub(crate) fn settle(&mut self, starts_segment: bool) {
        if self.has_stopped {
            return;
        }
        for Stray { line, expected, found } in self.numbers.settle(starts_segment) {
            self.findings.push(Finding::new(Code::SchemaInvalid).expected(expected).found(found).at(line));
            self.lose_track();
        }
    }

    fn lose_track(&mut self) {
        self.order = None;
        self.tree_is_known = false;
        // Without the first record no key is known.
        if self.scope == Scope::Journal && self.ledger.is_none() {
            self.has_stopped = true;
        }
    }

    /// Takes the next line. `segment` is the position in the name of the segment that it starts, if it does.
    pub(crate) fn accept(
        &mut self,
        judged: Result<&Judged<'_>, &Flaw>,
        segment: Option<u64>,
    ) -> Option<Pending> {
        if self.has_stopped {
            return None;
        }
        self.settle(false);
        if self.has_stopped {
            return None;
        }
        self.numbers.line += 1;
        self.counts.add(Check::Schema, 1);
        let judged = match judged {
            Ok(judged) => judged,
            Err(Flaw::Newer(version)) => {
                let finding = Finding::new(Code::VersionNewer).expected("format version 1").found(version);
                self.findings.push(finding.at(self.numbers.line));
                self.has_stopped = true;
                return None;
            }
            Err(flaw) => {
                self.findings.push(Finding::new(Code::SchemaInvalid).found(flaw).at(self.numbers.line));
                self.lose_track();
                return None;
            }
        };
        let line = &judged.line;
        let mut found: Vec<Finding> = Vec::new();
        if judged.hash != line.hash {
            found.push(Finding::new(Code::HashMismatch).expected(judged.hash).found(line.hash));
        }
        self.check_place(line, segment, &mut found);
        self.check_chain(line, &mut found);
        if self.numbers.line == 1 && self.scope == Scope::Journal {
            self.begin(line, &mut found);
        }
        let pending = self.check_actor(judged, &mut found);
        // What follows the end of a trace is found by that alone.
        if !self.is_closed(line.trace) {
            let end = self.traces.entry(line.trace).or_default();
            end.guarded.check(line, &mut self.counts, &mut found);
        }
        self.check_order(line, &mut found);
        self.grow(line);
        // One finding for each line: the first in the order of the checks.
        if let Some(first) = found.into_iter().min_by_key(|finding| finding.code) {
            self.findings.push(first.at(self.numbers.line).event(line.id));
        }
        pending
    }

    /// Position, batch and physical write.
    fn check_place(&mut self, line: &Line<'_>, segment: Option<u64>, found: &mut Vec<Finding>) {
        self.counts.add(Check::Sequence, 1);
        let gap =
            |expected: String, got: String| Finding::new(Code::SequenceGap).expected(expected).found(got);
        let (is_next, expected) = match self.scope {
            Scope::Journal => (line.pos == self.numbers.line, format!("pos {}", self.numbers.line)),
            Scope::Trace(_) => (line.pos > self.last_pos, format!("pos above {}", self.last_pos)),
        };
        if !is_next {
            found.push(gap(expected, format!("pos {}", line.pos)));
        }
        if let Some(name) = segment.filter(|name| *name != self.numbers.line && self.scope == Scope::Journal)
        {
            found.push(gap(format!("a segment named {:020}", self.numbers.line), format!("{name:020}")));
        }
        self.last_pos = line.pos;
        // Between the lines of one trace, others are left out.
        let follows = self.order.filter(|_| self.scope == Scope::Journal).map(|order| order.follows(line));
        if let Some(Err(_)) = follows {
            found.push(gap("the next event of the same decision or write".into(), shown(line)));
        }
        self.order = Some(Order::after(line));
        if self.ids.insert(line.id, self.numbers.line) == Sighting::Doubled {
            found.push(gap("an id that occurs once".into(), line.id.to_string()));
        }
    }

    /// Number in the trace, predecessor, and what the actor had seen.
    fn check_chain(&mut self, line: &Line<'_>, found: &mut Vec<Finding>) {
        self.counts.add(Check::EventHash, 1);
        self.counts.add(Check::Chain, 1);
        let end = self.traces.entry(line.trace).or_default();
        let expected = end.hash.unwrap_or(Digest::ZERO);
        if line.seq != end.seq + 1 {
            let expected = format!("seq {} of {}", end.seq + 1, line.trace);
            found.push(Finding::new(Code::SequenceGap).expected(expected).found(format!("seq {}", line.seq)));
        } else if line.prev != expected {
            found.push(Finding::new(Code::ChainBreak).expected(expected).found(line.prev));
        }
        if let Some(seen) = line.seen.filter(|seen| !end.is_closed && !end.has_seen(seen, line.seq)) {
            let expected =
                format!("the hash of seq {} of this trace, at most {SEEN_BACK_MAX} back", seen.seq);
            found.push(Finding::new(Code::ChainBreak).expected(expected).found(seen.hash));
        }
        if !end.is_closed {
            if line.seq != end.seq + 1 {
                end.recent.clear();
            }
            if end.recent.len() as u64 == SEEN_BACK_MAX {
                end.recent.pop_front();
            }
            end.recent.push_back(line.hash);
        }
        (end.seq, end.hash) = (line.seq, Some(line.hash));
    }

    /// The first record names the ledger and its key.
    fn begin(&mut self, line: &Line<'_>, found: &mut Vec<Finding>) {
        if line.event_type != "ledger.created" || line.trace != TraceId::Ledger {
            let finding = Finding::new(Code::OrderViolation).expected("ledger.created in trace ledger");
            found.push(finding.found(line.event_type));
            self.has_stopped = true;
            return;
        }
        match identity(line) {
            Ok(identity) => self.ledger = Some(identity),
            Err(why) => {
                if line.sig.is_none() {
                    found.push(sig_missing(line));
                }
                found.push(Finding::new(Code::KeyUnknown).expected("the ledger's key").found(why));
                self.has_stopped = true;
            }
        }
    }

    /// Signature, key and role. Gives the signature to check.
    fn check_actor(&mut self, judged: &Judged<'_>, found: &mut Vec<Finding>) -> Option<Pending> {
        let line = &judged.line;
        let ledger = self.ledger.as_ref()?;
        let end = self.traces.entry(line.trace).or_default();
        let mut pending = None;
        if let Some(sig) = line.sig {
            self.signed += 1;
            self.counts.add(Check::Signature, 1);
            self.counts.add(Check::KeyStatus, 1);
            match end.keys.judge(ledger, sig.key, line.agent, line.role) {
                Ok((key, role)) => {
                    let task = Task { key, body: judged.body, signature: sig.value };
                    pending = Some(Pending { line: self.numbers.line, event: line.id, task });
                    found.extend(role.err().map(|fault| key_finding(&fault)));
                }
                Err(fault) => found.push(key_finding(&fault)),
            }
        } else if must_be_signed(line.event_type) {
            self.counts.add(Check::Signature, 1);
            found.push(sig_missing(line));
        }
        if matches!(line.event_type, "key_bound" | "key_rotated" | "key_revoked") {
            let applied = line
                .to_payload()
                .and_then(|payload| KeyEvent::of(&payload).ok_or_else(|| "not a key event".to_owned()))
                .and_then(|event| {
                    end.keys
                        .apply(ledger, &event, line.sig.map(|sig| sig.key))
                        .map_err(|fault| fault.to_string())
                });
            if let Err(why) = applied {
                found.push(Finding::new(Code::KeyUnknown).expected("a key event that fits").found(why));
            }
        }
        self.counts.add(Check::Role, 1);
        if let Some(required) = role_required(line.event_type).filter(|required| *required != line.role) {
            found.push(
                Finding::new(Code::RoleViolation).expected(format!("role {required}")).found(line.role),
            );
        }
        pending
    }

    /// Nothing after the end; nothing that belongs elsewhere.
    fn check_order(&mut self, line: &Line<'_>, found: &mut Vec<Finding>) {
        self.counts.add(Check::Order, 1);
        let end = self.traces.entry(line.trace).or_default();
        let wrong = if end.is_closed {
            Some("nothing after trace.closed")
        } else if line.event_type == "trace.closed" && line.trace == TraceId::Ledger {
            Some("the trace ledger is never closed")
        } else if (line.event_type == "ledger.created") != (line.trace == TraceId::Ledger && line.seq == 1)
            || (line.event_type == "ledger.created" && line.pos != 1)
        {
            Some("ledger.created as the first record, and only there")
        } else {
            None
        };
        if let Some(expected) = wrong {
            found.push(Finding::new(Code::OrderViolation).expected(expected).found(line.event_type));
        }
        if line.event_type == "trace.closed" && line.trace != TraceId::Ledger {
            // A ledger has few open traces and any number of closed ones: only the former may cost 128 KiB each, and keys of their own.
            (end.is_closed, end.recent) = (true, VecDeque::new());
            end.keys.share(&mut self.bindings);
        }
    }

    /// Adds the leaf, and compares what was promised for this place.
    fn grow(&mut self, line: &Line<'_>) {
        self.head = Some(line.hash);
        if let Some(promises) = self.heads.get_mut(&(line.trace, line.seq)) {
            promises.iter_mut().for_each(|promise| promise.is_kept = Some(promise.digest == line.hash));
        }
        if self.scope != Scope::Journal || !self.tree_is_known {
            return;
        }
        self.frontier.push(leaf(&line.hash), |_| ());
        if let Some(promises) = self.roots.get_mut(&self.frontier.size()) {
            let root = self.frontier.root();
            promises.iter_mut().for_each(|promise| promise.is_kept = Some(promise.digest == root));
        }
    }

    /// The end of the input: what was held back is a torn tail.
    pub(crate) fn finish(&mut self) {
        if self.has_stopped {
            return;
        }
        let (torn, is_empty_segment) = self.numbers.end();
        // Alone, a segment without a line is a journal without events.
        if is_empty_segment && self.line() > 0 {
            self.settle(true);
        }
        if let Some(bytes) = torn {
            let found = format!("{bytes} bytes without a line feed");
            self.findings.push(Finding::new(Code::TornTail).expected("whole lines").found(found));
        }
        for (trace, end) in &self.traces {
            let unfinished = end.guarded.unfinished(*trace, self.scope);
            self.findings.extend(unfinished.filter(|_| !(self.audits && end.guarded.is_being_audited())));
        }
        let unfinished =
            self.order.filter(|_| self.scope == Scope::Journal).and_then(|order| order.unfinished());
        if let Some((i, n)) = unfinished {
            let finding =
                Finding::new(Code::TornTail).expected(format!("all {n} events of the last decision"));
            self.findings.push(finding.found(format!("{i} of them")));
        }
    }
}

impl TraceEnd {
    fn has_seen(&self, seen: &Seen, seq: u64) -> bool {
        let Some(back) = seq.checked_sub(seen.seq).filter(|back| (1..=SEEN_BACK_MAX).contains(back)) else {
            return false;
        };
        let at = (self.recent.len() as u64).checked_sub(back);
        at.and_then(|at| self.recent.get(at as usize)) == Some(&seen.hash)
    }
}

fn sig_missing(line: &Line<'_>) -> Finding {
    Finding::new(Code::SigMissing).expected("a signature").found(line.event_type)
}

fn key_finding(fault: &Fault) -> Finding {
    let code = match fault {
        Fault::NotBound(_) | Fault::OtherAgent { .. } | Fault::Event(_) => Code::KeyUnknown,
        Fault::NotValid(_) => Code::KeyRevoked,
        Fault::Role { .. } => Code::RoleViolation,
    };
    Finding::new(code).expected("a key that is valid here for this actor").found(fault)
}

/// The name and key of a ledger from its first record.
pub fn identity(line: &Line<'_>) -> Result<LedgerIdentity, String> {
    if line.event_type != "ledger.created" {
        return Err(format!("the first record is {}, not ledger.created", line.event_type));
    }
    // Read by hand: how the ledger syncs is for people, and a later version may know more ways.
    let payload = canonical::parse(line.payload.as_bytes()).map_err(|e| e.to_string())?;
    let text = |name: &str| {
        payload.get(name).and_then(Value::as_str).ok_or_else(|| format!("payload.{name}: expected a string"))
    };
    text("durability")?;
    let origin = text("origin")?.parse().map_err(|_| "payload.origin: expected an origin")?;
    let key = PublicKey::parse(text("public")?).map_err(|e| e.to_string())?;
    if text("key")? != key.id().to_string() {
        return Err("payload.key is not the id of the public key beside it".to_owned());
    }
    Ok(LedgerIdentity { origin, key })
}

fn shown(line: &Line<'_>) -> String {
    let batch = line.batch.map_or("none".to_owned(), |(i, n)| format!("[{i},{n}]"));
    format!("batch {batch}, commit {}", line.effective_commit())
}

//! Seals bodies into records: the state of all chains, the rules of admission, and the bytes of one physical write.
//!
//! Pure and shared by every journal. A decision is admitted whole or refused with a reason; a write that the disk refuses is taken back
//! with [`Chain::undo_write`]. What lies in the past and is not kept in memory is asked of a [`Past`].

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::guard::{Breach, Rule, Run};
use baton_core::limits::{DECISION_BYTES_MAX, DECISION_EVENTS_MAX, SEEN_BACK_MAX};
use baton_core::roles::{must_be_signed, role_required};
use baton_core::{Digest, EventId, KeyId, Role, TraceId};

use crate::body::{Body, Link};
use crate::guard::{Broken, Speaker};
use crate::hash::leaf;
use crate::id_window::{IdWindow, Sighting};
use crate::key::PublicKey;
use crate::keyring::{Fault, KeyRing, LedgerIdentity};
use crate::merkle::Frontier;

/// The present end of one trace.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceState {
    pub seq: u64,
    pub hash: Digest,
    pub last_pos: u64,
    pub is_closed: bool,
    pub keys: Arc<KeyRing>,
    /// The guarded run that this trace is, if it is one.
    pub run: Option<Arc<Run>>,
}

impl Default for TraceState {
    fn default() -> Self {
        TraceState {
            seq: 0,
            hash: Digest::ZERO,
            last_pos: 0,
            is_closed: false,
            keys: Arc::default(),
            run: None,
        }
    }
}

/// What is durable and not in memory.
///
/// If an implementation lies here, a doubled id or a `seen` that points nowhere can be sealed; the verifier finds both.
pub trait Past {
    /// The hash of an event of this trace, or `None` where there is none.
    fn hash_of(&self, trace: TraceId, seq: u64) -> Result<Option<Digest>, String>;
    /// Whether an event with this id is already stored.
    fn has_id(&self, id: EventId) -> Result<bool, String>;
}

/// The events of one decision, each with the signature check that was made outside the sequencer.
#[derive(Debug, Clone)]
pub struct Proposal {
    pub events: Vec<Checked>,
    /// The heads that the decision was made on. A trace that is not named is appended to wherever it stands.
    pub decided_on: Vec<(TraceId, u64)>,
}

impl Proposal {
    /// An upper bound of the bytes that sealing it makes.
    pub fn line_bytes_max(&self) -> usize {
        self.events.iter().map(|checked| checked.body.line_bytes_max()).sum()
    }
}

/// A body whose signature, if it has one, was checked with a known key (or just made with it).
#[derive(Debug, Clone)]
pub struct Checked {
    body: Body,
    by: Option<PublicKey>,
}

impl Checked {
    /// A body without a signature.
    pub fn unsigned(body: Body) -> Result<Self, Refusal> {
        match body.sig {
            None => Ok(Checked { body, by: None }),
            Some(sig) => Err(Refusal::SignatureInvalid { key: sig.key }),
        }
    }

    /// A body that the holder of this key has just signed in this process; not checked again.
    pub fn just_signed(body: Body, key: &crate::key::SecretKey) -> Self {
        Checked { by: Some(*key.public()), body }
    }

    /// A body that was signed elsewhere: checked strictly, here, in the caller's thread.
    pub fn check(body: Body, key: &PublicKey) -> Result<Self, Refusal> {
        match body.sig {
            Some(sig) if sig.key == key.id() && key.verify_event(&body.digest, &sig.value) => {
                Ok(Checked { by: Some(*key), body })
            }
            Some(sig) => Err(Refusal::SignatureInvalid { key: sig.key }),
            None => Err(Refusal::SignatureMissing { event_type: body.event_type.to_string() }),
        }
    }

    pub fn body(&self) -> &Body {
        &self.body
    }
}

/// Where an event ended up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    pub id: EventId,
    pub trace: TraceId,
    pub pos: u64,
    pub seq: u64,
    pub hash: Digest,
}

/// Why a decision is not appended. Nothing of it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the head of {trace} moved: decided on {expected}, now at {seq} ({hash})")]
    HeadMoved { trace: TraceId, expected: u64, seq: u64, hash: Digest },
    #[error("{0} is closed; nothing can follow its end")]
    Closed(TraceId),
    #[error("an event of type {event_type} must be signed")]
    SignatureMissing { event_type: String },
    #[error("the signature by {key} does not check against the event's body")]
    SignatureInvalid { key: KeyId },
    #[error(transparent)]
    Key(#[from] Fault),
    #[error("an event of type {event_type} comes from role {required}, not from {role}")]
    Role { event_type: String, required: Role, role: Role },
    #[error("seen.seq {seq} is not an event of {trace} with that hash, at most {SEEN_BACK_MAX} back")]
    Seen { trace: TraceId, seq: u64 },
    #[error("event id {0} is already in the ledger")]
    IdTaken(EventId),
    /// A rule of guarded work.
    #[error(transparent)]
    Guard(Breach),
    #[error("{0}")]
    Form(String),
    /// Not the caller's fault: what is needed to judge could not be read.
    #[error("the ledger's past could not be read: {0}")]
    Unreadable(String),
}

/// The state of every chain of a ledger.
#[derive(Debug)]
pub struct Chain {
    ledger: LedgerIdentity,
    frontier: Frontier,
    traces: BTreeMap<TraceId, TraceState>,
    ids: IdWindow,
    undo: Undo,
}

#[derive(Debug, Default)]
struct Undo {
    frontier: Frontier,
    traces: Vec<(TraceId, Option<TraceState>)>,
    ids: Vec<EventId>,
}

impl Chain {
    pub fn new(ledger: LedgerIdentity) -> Self {
        Chain::resume(ledger, Frontier::default(), BTreeMap::new(), None)
    }

    /// Takes a chain up where it was left. Ids up to `ids_before` may be in the past.
    pub fn resume(
        ledger: LedgerIdentity,
        frontier: Frontier,
        traces: BTreeMap<TraceId, TraceState>,
        ids_before: Option<EventId>,
    ) -> Self {
        Chain { ledger, frontier, traces, ids: IdWindow::start_above(ids_before), undo: Undo::default() }
    }

    pub fn ledger(&self) -> &LedgerIdentity {
        &self.ledger
    }

    pub fn frontier(&self) -> &Frontier {
        &self.frontier
    }

    pub fn traces(&self) -> &BTreeMap<TraceId, TraceState> {
        &self.traces
    }

    pub fn trace(&self, trace: TraceId) -> Option<&TraceState> {
        self.traces.get(&trace)
    }

    /// Gives a trace the keys that its earlier events bound, where they were not known when the chain was resumed.
    pub fn set_keys(&mut self, trace: TraceId, keys: KeyRing) {
        if let Some(state) = self.traces.get_mut(&trace) {
            state.keys = Arc::new(keys);
        }
    }

    /// Gives a trace the run that its earlier events tell of, where it was not known when the chain was resumed.
    pub fn set_run(&mut self, trace: TraceId, run: Arc<Run>) {
        if let Some(state) = self.traces.get_mut(&trace) {
            state.run = Some(run);
        }
    }

    /// Starts a physical write: what follows can be taken back up to here.
    pub fn begin_write(&mut self) {
        self.undo = Undo { frontier: self.frontier.clone(), ..Undo::default() };
    }

    /// Takes back everything since [`Chain::begin_write`]; the bytes must not stay on the disk.
    pub fn undo_write(&mut self) {
        let undo = std::mem::take(&mut self.undo);
        self.frontier = undo.frontier;
        for (trace, state) in undo.traces.into_iter().rev() {
            match state {
                Some(state) => drop(self.traces.insert(trace, state)),
                None => drop(self.traces.remove(&trace)),
            }
        }
        undo.ids.into_iter().for_each(|id| self.ids.remove(id));
    }

    /// Admits a decision and appends its lines to `out`, or refuses it and changes nothing.
    ///
    /// `write_start` is the position of the first event of the physical write. `completed` is handed every tree node that the new leaves
    /// complete, in order.
    pub fn seal(
        &mut self,
        proposal: &Proposal,
        past: &dyn Past,
        write_start: u64,
        out: &mut Vec<u8>,
        mut completed: impl FnMut(Digest),
    ) -> Result<Vec<Receipt>, Refusal> {
        let mut touched = self.admit(proposal, past)?;
        let count = proposal.events.len() as u32;
        let mut receipts = Vec::with_capacity(proposal.events.len());
        for (i, checked) in proposal.events.iter().enumerate() {
            let body = &checked.body;
            let pos = self.frontier.size() + 1;
            let Some(state) = touched.iter_mut().find(|(trace, _)| *trace == body.trace).map(|(_, s)| s)
            else {
                return Err(Refusal::Form("an event of a trace that was not admitted".into()));
            };
            let link = Link {
                pos,
                seq: state.seq + 1,
                prev: state.hash,
                batch: (count > 1).then_some((i as u32 + 1, count)),
                commit: (pos != write_start).then_some(write_start),
            };
            let hash = body.seal(&link, out);
            (state.seq, state.hash, state.last_pos) = (link.seq, hash, pos);
            self.frontier.push(leaf(&hash), &mut completed);
            self.ids.insert(body.id);
            self.undo.ids.push(body.id);
            receipts.push(Receipt { id: body.id, trace: body.trace, pos, seq: link.seq, hash });
        }
        for (trace, state) in touched {
            let before = self.traces.insert(trace, state);
            self.undo.traces.push((trace, before));
        }
        Ok(receipts)
    }

    /// Checks every rule, event by event, on copies of the traces' states; the copies' keys and ends are those after the decision.
    fn admit(&self, proposal: &Proposal, past: &dyn Past) -> Result<Vec<(TraceId, TraceState)>, Refusal> {
        // A key is revoked in every trace that knows it, in one decision, however many there are.
        let count = proposal.events.iter().filter(|checked| checked.body.key_event.is_none()).count();
        if proposal.events.is_empty() || count > DECISION_EVENTS_MAX {
            return Err(Refusal::Form(format!(
                "a decision has 1 to {DECISION_EVENTS_MAX} events, got {count}"
            )));
        }
        let bytes = proposal.line_bytes_max();
        if bytes > DECISION_BYTES_MAX && count > 0 {
            return Err(Refusal::Form(format!(
                "a decision has at most {DECISION_BYTES_MAX} bytes, got {bytes}; put the bulk into artifacts"
            )));
        }
        for (trace, expected) in &proposal.decided_on {
            let state = self.traces.get(trace).cloned().unwrap_or_default();
            if state.seq != *expected {
                let (seq, hash) = (state.seq, state.hash);
                return Err(Refusal::HeadMoved { trace: *trace, expected: *expected, seq, hash });
            }
        }
        let mut touched: Vec<(TraceId, TraceState)> = Vec::with_capacity(1);
        for (i, checked) in proposal.events.iter().enumerate() {
            let body = &checked.body;
            if proposal.events[..i].iter().any(|earlier| earlier.body.id == body.id) {
                return Err(Refusal::IdTaken(body.id));
            }
            let at = match touched.iter().position(|(trace, _)| *trace == body.trace) {
                Some(at) => at,
                None => {
                    touched.push((body.trace, self.traces.get(&body.trace).cloned().unwrap_or_default()));
                    touched.len() - 1
                }
            };
            self.admit_event(checked, i as u64, &mut touched[at].1, past)?;
            let before = proposal.events[..i].iter().filter(|other| other.body.trace == body.trace).count();
            self.admit_step(body, before as u64, &mut touched[at].1)?;
        }
        Ok(touched)
    }

    fn admit_event(
        &self,
        checked: &Checked,
        ahead: u64,
        state: &mut TraceState,
        past: &dyn Past,
    ) -> Result<(), Refusal> {
        let body = &checked.body;
        let event_type = body.event_type.as_str();
        if state.is_closed {
            return Err(Refusal::Closed(body.trace));
        }
        let is_first = self.frontier.size() == 0 && ahead == 0;
        let is_created = event_type == "ledger.created";
        if is_created != is_first || (is_created && body.trace != TraceId::Ledger) {
            return Err(Refusal::Form("the first event of a ledger, and no other, is ledger.created".into()));
        }
        let taken = match self.ids.look(body.id) {
            Sighting::New => false,
            Sighting::Doubled => true,
            // The past does not know what this write holds so far.
            Sighting::Late => {
                self.undo.ids.contains(&body.id) || past.has_id(body.id).map_err(Refusal::Unreadable)?
            }
        };
        if taken {
            return Err(Refusal::IdTaken(body.id));
        }
        self.admit_seen(body, ahead, past)?;
        self.admit_signature(checked, state)?;
        if let Some(event) = &body.key_event {
            let signer = body.sig.map(|sig| sig.key);
            Arc::make_mut(&mut state.keys).apply(&self.ledger, event, signer)?;
        }
        if event_type == "trace.closed" {
            if body.trace == TraceId::Ledger {
                return Err(Refusal::Form("the trace `ledger` is never closed".into()));
            }
            state.is_closed = true;
        }
        Ok(())
    }

    /// The rules of guarded work. `before` events of the same trace come before it in this decision.
    fn admit_step(&self, body: &Body, before: u64, state: &mut TraceState) -> Result<(), Refusal> {
        if state.run.is_none() && body.heard.step.is_none() {
            return Ok(());
        }
        let by = Speaker {
            event_type: body.event_type.as_str(),
            agent: body.agent.as_str(),
            role: body.role,
            key: body.sig.map(|sig| sig.key),
            seq: state.seq + before + 1,
            seen: body.seen,
        };
        body.heard.admit(state.run.as_deref(), &by).map_err(|broken| match (broken, body.seen) {
            (Broken::Form(why), _) => Refusal::Form(why),
            // Whoever closes something reads what came, and tries again.
            (Broken::Rule(Breach { rule: Rule::SeenHead, .. }), Some(seen)) => {
                let (trace, expected) = (body.trace, seen.seq);
                Refusal::HeadMoved { trace, expected, seq: state.seq, hash: state.hash }
            }
            (Broken::Rule(breach), _) => Refusal::Guard(breach),
        })?;
        body.heard.apply(&mut state.run, &by);
        Ok(())
    }

    /// `ahead` bounds how many events of this decision come before, and so how far back `seen` will reach.
    fn admit_seen(&self, body: &Body, ahead: u64, past: &dyn Past) -> Result<(), Refusal> {
        let Some(seen) = body.seen else { return Ok(()) };
        // Only what was acknowledged can have been seen, so the state before this decision is the one to compare with.
        let head = self.traces.get(&body.trace);
        let seq = head.map_or(0, |head| head.seq);
        let known = match head {
            Some(head) if head.seq == seen.seq => head.hash == seen.hash,
            Some(_) if seen.seq < seq && seq + 1 + ahead - seen.seq <= SEEN_BACK_MAX => {
                past.hash_of(body.trace, seen.seq).map_err(Refusal::Unreadable)? == Some(seen.hash)
            }
            _ => false,
        };
        if known { Ok(()) } else { Err(Refusal::Seen { trace: body.trace, seq: seen.seq }) }
    }

    fn admit_signature(&self, checked: &Checked, state: &TraceState) -> Result<(), Refusal> {
        let body = &checked.body;
        let event_type = body.event_type.as_str();
        if let Some(required) = role_required(event_type).filter(|required| *required != body.role) {
            return Err(Refusal::Role { event_type: event_type.to_owned(), required, role: body.role });
        }
        let Some(sig) = body.sig else {
            let missing = Refusal::SignatureMissing { event_type: event_type.to_owned() };
            return if must_be_signed(event_type) { Err(missing) } else { Ok(()) };
        };
        let (public, role) = state.keys.judge(&self.ledger, sig.key, body.agent.as_str(), body.role)?;
        // The check was made with the key of that id; a second key with the same id would be another key.
        if checked.by != Some(public) {
            return Err(Refusal::SignatureInvalid { key: sig.key });
        }
        role.map_err(Refusal::Key)
    }
}

//! What a session declares, into the ledger: one decision, one append.

use std::cell::Cell;
use std::sync::Arc;

use baton_core::Timestamp;
use baton_core::event::{Event, Payload};
use baton_core::ids::{EventId, RunId, SessionId, TaskId, Token, TraceId};
use baton_core::moment::{Ids, Moment};
use baton_core::session::Stated;
use baton_core::task::decide::system;
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::seal::{Checked, Proposal, Refusal};
use baton_store::{AppendError, Journal};
use serde_json::{Map, Value};

/// The task that a session works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    pub task: TaskId,
    pub run: RunId,
    pub fence: u64,
    pub trace: TraceId,
}

/// Writes the events of one session.
pub struct Recorder {
    journal: Arc<dyn Journal>,
    key: Arc<SecretKey>,
    session: SessionId,
    bound: Option<Bound>,
    /// Where it writes: its task's trace, or its own, also once its task's has ended.
    trace: Cell<TraceId>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder")
            .field("session", &self.session)
            .field("trace", &self.trace.get())
            .finish_non_exhaustive()
    }
}

impl Recorder {
    /// Writes into the trace of its task, or into one of its own, which is opened here.
    pub fn open(
        journal: Arc<dyn Journal>,
        key: Arc<SecretKey>,
        session: SessionId,
        bound: Option<Bound>,
        moment: Moment,
    ) -> Result<Self, AppendError> {
        let mut ids = Ids::new(moment);
        let own = ids.trace();
        let trace = bound.as_ref().map_or(own, |bound| bound.trace);
        let recorder = Recorder { journal, key, session, bound, trace: Cell::new(trace) };
        if recorder.bound.is_none() {
            recorder.begin_own(ids, moment)?;
        }
        Ok(recorder)
    }

    /// Goes on where another life of Baton stopped writing.
    pub fn reopen(
        journal: Arc<dyn Journal>,
        key: Arc<SecretKey>,
        session: SessionId,
        bound: Option<Bound>,
        trace: TraceId,
    ) -> Self {
        Recorder { journal, key, session, bound, trace: Cell::new(trace) }
    }

    pub fn trace(&self) -> TraceId {
        self.trace.get()
    }

    fn begin_own(&self, mut ids: Ids, moment: Moment) -> Result<(), AppendError> {
        let title = Some(format!("session {}", self.session));
        let opened = self.event(ids.event(), moment.now, Payload::TraceOpened { title });
        self.append_to_trace(vec![opened])
    }

    /// Records what a decision declares.
    pub fn record(&self, stated: &[Stated]) -> Result<(), AppendError> {
        self.record_after(None, stated)
    }

    /// The same after a note, in one append.
    pub fn record_after(&self, noted: Option<Event>, stated: &[Stated]) -> Result<(), AppendError> {
        let declared =
            stated.iter().map(|stated| self.event(stated.id, stated.at, stated.event.to_payload()));
        let events: Vec<Event> = noted.into_iter().chain(declared).collect();
        if events.is_empty() {
            return Ok(());
        }
        self.append(events)
    }

    /// Records something about the session beside what its machine declares.
    pub fn note(&self, name: &str, fields: Map<String, Value>, moment: Moment) -> Result<(), AppendError> {
        self.append(vec![self.noted(name, fields, moment)?])
    }

    /// Something about the session, not recorded yet.
    pub fn noted(
        &self,
        name: &str,
        fields: Map<String, Value>,
        moment: Moment,
    ) -> Result<Event, AppendError> {
        let form = |error: baton_core::ids::Error| AppendError::Refused(Refusal::Form(error.to_string()));
        let payload = Payload::Other { event_type: name.parse().map_err(form)?, fields };
        Ok(self.event(Ids::new(moment).event(), moment.now, payload))
    }

    /// Ends a trace of its own.
    pub fn close(&self, reason: &str, moment: Moment) -> Result<(), AppendError> {
        if self.bound.as_ref().is_some_and(|bound| bound.trace == self.trace.get()) {
            return Ok(());
        }
        let closed = Payload::TraceClosed { reason: reason.to_owned() };
        self.append(vec![self.event(Ids::new(moment).event(), moment.now, closed)])
    }

    fn event(&self, id: EventId, at: Timestamp, payload: Payload) -> Event {
        let token = |text: String| text.parse::<Token>().ok();
        Event {
            trace: self.trace.get(),
            id,
            at,
            actor: system(),
            task: self.bound.as_ref().map(|bound| bound.task.to_token()),
            run: self.bound.as_ref().and_then(|bound| token(bound.run.to_string())),
            session: token(self.session.to_string()),
            fence: self.bound.as_ref().map(|bound| bound.fence),
            payload,
            artifacts: Vec::new(),
            seen: None,
        }
    }

    /// Appends; where the task's trace has ended meanwhile, what is left of the session gets one of its own.
    fn append(&self, mut events: Vec<Event>) -> Result<(), AppendError> {
        match self.append_to_trace(events.clone()) {
            Err(AppendError::Refused(Refusal::Closed(closed))) if closed == self.trace.get() => {
                let Some(first) = events.first() else { return Ok(()) };
                let moment = Moment { now: first.at, seed: baton_store::clock::random() };
                let mut ids = Ids::new(moment);
                self.trace.set(ids.trace());
                self.begin_own(ids, moment)?;
                events.iter_mut().for_each(|event| event.trace = self.trace.get());
                self.append_to_trace(events)
            }
            appended => appended,
        }
    }

    fn append_to_trace(&self, events: Vec<Event>) -> Result<(), AppendError> {
        let unsealed =
            |error: baton_ledger::body::Error| AppendError::Refused(Refusal::Form(error.to_string()));
        let mut proposal = Proposal { events: Vec::with_capacity(events.len()), decided_on: Vec::new() };
        for event in events {
            let is_framing =
                matches!(event.payload, Payload::TraceOpened { .. } | Payload::TraceClosed { .. });
            proposal.events.push(if is_framing {
                Checked::just_signed(Body::signed(event, &self.key).map_err(unsealed)?, &self.key)
            } else {
                Checked::unsigned(Body::unsigned(&event).map_err(unsealed)?).map_err(AppendError::Refused)?
            });
        }
        self.journal.append(proposal).map(drop)
    }
}

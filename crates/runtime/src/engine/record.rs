//! From a decision to the ledger and from there to the board: sealed, appended, applied.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::event::{Event, Payload};
use baton_core::roles::must_be_signed;
use baton_core::task::apply::At;
use baton_core::task::decide::Decided;
use baton_core::task::{Board, Papers, TaskEvent};
use baton_core::{Role, TaskId, TraceId};
use baton_ledger::body::Body;
use baton_ledger::canonical;
use baton_ledger::key::SecretKey;
use baton_ledger::seal::{Checked, Proposal, Receipt, Refusal as Unsealed};
use baton_store::AppendError;
use baton_store::registry::{self, AgentKey};

use super::{Engine, Fault, Moved, State, keep_papers};

/// A decision that is ready to be appended.
#[derive(Debug)]
pub(super) struct Proposed {
    pub(super) proposal: Proposal,
    /// What stands at each place of the proposal, to be applied once it is recorded; nothing for what only binds a key.
    pub(super) events: Vec<Option<Event>>,
}

/// Rows that are saved together while the engine runs.
const SAVE_EVERY: usize = 4096;

impl Engine {
    /// Appends a decision, applies it and brings the files up to date.
    pub(super) fn record(&self, state: &mut State, decided: Decided) -> Result<Vec<Receipt>, Fault> {
        if decided.events.is_empty() {
            return Ok(Vec::new());
        }
        let Proposed { proposal, events } = self.propose(state, decided)?;
        let receipts = self.ground.journal.append(proposal)?;
        for id in &self.land(state, &events, &receipts)? {
            self.project(state, id);
        }
        Ok(receipts)
    }

    /// Makes a decision ready to be appended.
    pub(super) fn propose(&self, state: &mut State, decided: Decided) -> Result<Proposed, Fault> {
        let mut proposal = Proposal { events: Vec::new(), decided_on: decided.decided_on };
        let mut events = Vec::new();
        for mut event in decided.events {
            if let Payload::Other { fields, .. } = &mut event.payload {
                // What is applied is what the ledger will say.
                fields.values_mut().for_each(canonical::settle);
            }
            let checked = self.seal(state, &event, &mut proposal)?;
            events.resize_with(proposal.events.len(), || None);
            proposal.events.push(checked);
            events.push(Some(event));
        }
        Ok(Proposed { proposal, events })
    }

    /// Applies what was appended, and gives the tasks that it touched, whose files are to be brought up to date.
    pub(super) fn land(
        &self,
        state: &mut State,
        events: &[Option<Event>],
        receipts: &[Receipt],
    ) -> Result<BTreeSet<TaskId>, Fault> {
        let mut touched = BTreeSet::new();
        for (event, receipt) in events.iter().zip(receipts) {
            let next = state.board.pos() + 1;
            if receipt.pos > next {
                // Others appended in between: the journal has everything in its order.
                touched.extend(self.catch_up_noting(state)?);
            } else if receipt.pos == next {
                self.apply(state, event.as_ref(), receipt, &mut touched);
            }
        }
        state.changed.extend(touched.iter().cloned());
        if state.changed.len() >= SAVE_EVERY {
            // It is a projection: saved another time if not now.
            let _ = self.save(state);
        }
        Ok(touched)
    }

    fn apply(
        &self,
        state: &mut State,
        event: Option<&Event>,
        receipt: &Receipt,
        touched: &mut BTreeSet<TaskId>,
    ) {
        let time = event.map_or_else(|| self.now(), |event| event.at);
        let at = At { pos: receipt.pos, trace: receipt.trace, seq: receipt.seq, time };
        let task = event.and_then(|event| event.task.as_ref()).map(|token| token.as_str());
        let other = Payload::Other { event_type: key_bound(), fields: Default::default() };
        let payload = event.map_or(&other, |event| &event.payload);
        // Events that were made here read back as what they are.
        let _ = state.board.apply(task, payload, at);
        let id = match task {
            Some(task) => task.parse().ok().filter(|id| state.board.get(id).is_some()),
            None => state.board.of_trace(receipt.trace).map(|task| task.id.clone()),
        };
        let State { board, moved, ended, .. } = state;
        note_event(board, id.as_ref(), payload, at, moved, ended);
        let Some(id) = id else { return };
        if let Payload::Other { event_type, fields } = payload
            && let Some(Ok(event)) = TaskEvent::read(event_type.as_str(), fields)
        {
            if let Some((_, papers)) = state.papers.get_mut(&id) {
                papers.apply(&event, at.time);
            } else if matches!(event, TaskEvent::Created(_)) {
                state.fresh.insert(id.clone());
                let mut papers = Papers::default();
                papers.apply(&event, at.time);
                keep_papers(&mut state.papers, id.clone(), (0, papers));
            }
        }
        if let Some(task) = state.board.get(&id) {
            if let Some((rev, _)) = state.papers.get_mut(&id) {
                *rev = task.rev();
            }
            if task.lease.is_none() {
                state.beats.remove(&id);
            }
        }
        touched.insert(id);
    }

    /// Makes an event ready to be appended, signed where its type must be.
    fn seal(&self, state: &mut State, event: &Event, proposal: &mut Proposal) -> Result<Checked, Fault> {
        let unsealed = |error: baton_ledger::body::Error| {
            Fault::Append(AppendError::Refused(Unsealed::Form(error.to_string())))
        };
        // What frames a trace, and what everything in a guarded run is held against.
        let is_framing = matches!(event.payload, Payload::TraceOpened { .. } | Payload::TraceClosed { .. })
            || event.payload.event_type() == "session_initialized";
        match event.actor.role {
            Role::System if is_framing || must_be_signed(event.payload.event_type()) => {
                let key = &self.ground.ledger_key;
                let body = Body::signed(event.clone(), key).map_err(unsealed)?;
                Ok(Checked::just_signed(body, key))
            }
            Role::Operator if must_be_signed(event.payload.event_type()) => {
                let (key, registered) = self.operator(state)?;
                let ground = &self.ground;
                registry::preface(&*ground.journal, &ground.ledger_key, event.trace, &registered, proposal)?;
                let body = Body::signed(event.clone(), &key).map_err(unsealed)?;
                Ok(Checked::just_signed(body, &key))
            }
            _ => {
                let body = Body::unsigned(event).map_err(unsealed)?;
                Ok(Checked::unsigned(body).map_err(AppendError::Refused)?)
            }
        }
    }

    /// The person's key; made and registered when it is first needed.
    fn operator(&self, state: &mut State) -> Result<(Arc<SecretKey>, AgentKey), Fault> {
        if let Some(known) = &state.operator
            && registry::agent_key(&*self.ground.journal, &known.1.agent)?.as_ref() == Some(&known.1)
        {
            return Ok(known.clone());
        }
        let ground = &self.ground;
        let known = ground.operator.get(&*ground.journal, &ground.ledger_key)?;
        self.catch_up(state)?;
        Ok(state.operator.insert(known).clone())
    }
}

/// Notes what somebody should be told of, and which trace ended.
pub(super) fn note_event(
    board: &Board,
    id: Option<&TaskId>,
    payload: &Payload,
    at: At,
    moved: &mut Vec<Moved>,
    ended: &mut Vec<TraceId>,
) {
    match payload {
        Payload::TraceClosed { .. } => ended.push(at.trace),
        Payload::Other { event_type, fields } if event_type.as_str() == "task.transitioned" => {
            let event = TaskEvent::read(event_type.as_str(), fields);
            if let (Some(Ok(TaskEvent::Transitioned(to))), Some(task)) =
                (event, id.and_then(|id| board.get(id)))
            {
                moved.push(Moved {
                    pos: at.pos,
                    task: task.id.clone(),
                    title: task.title.clone(),
                    from: to.from,
                    to: to.to,
                    reason: to.reason,
                    at: at.time,
                });
            }
        }
        _ => {}
    }
}

/// The type of what stands before a key's first use; it is nothing to a task.
fn key_bound() -> baton_core::EventType {
    #[expect(clippy::expect_used, reason = "a fixed name is a type's name")]
    "key_bound".parse().expect("a type's name")
}

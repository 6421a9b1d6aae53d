//! What of a guarded run waits for a person, as anybody can tell who reads its trace.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::event::NOTE;
use baton_core::guard::{Run, Step};
use baton_core::ids::{Digest, Token};
use baton_core::roles::OPERATOR;
use baton_core::task::Task;
use baton_core::{Role, TraceId};
use baton_ledger::guard::{Heard, Speaker};
use baton_ledger::record::Line;
use baton_store::History;

use baton_store::tasks::fold::LINES_AT_ONCE;

/// What of a guarded run waits for a person's review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asks {
    pub trace: TraceId,
    pub id: Token,
    /// What a tool would be given.
    pub input: Option<Digest>,
}

impl Asks {
    /// Looks through the run of a task that is open, if one is.
    pub fn of(history: &dyn History, task: &Task) -> Option<Asks> {
        let trace = task.guard?;
        let (run, stands) = run_of(history, trace)?;
        let critic = &run.team().critic;
        let is_person = critic.as_str() == OPERATOR;
        let proposals = run.proposals().filter(|proposed| {
            let is_open = proposed.approved.is_none() && !proposed.is_rejected && !proposed.is_revised;
            is_open && (is_person || proposed.reviews.iter().any(|(by, _, _)| by == critic))
        });
        let intents = run.intents().filter(|intended| {
            let is_open = intended.is_risky && intended.answer.is_none() && intended.started.is_none();
            is_open && !intended.is_retried && is_person
        });
        let proposals = proposals.map(|proposed| (proposed.seq, proposed.proposal.proposal_id.clone(), None));
        let intents = intents.map(|intended| {
            let intent = &intended.intent;
            (intended.seq, intent.intent_id.clone(), Some(intent.normalized_input_hash))
        });
        let claims = run.claims().filter(|claimed| {
            let is_open = !claimed.is_revised && claimed.open_challenges == 0 && !run.is_final();
            is_open && is_person && !stands.contains(&claimed.claim.claim_id)
        });
        let claims = claims.map(|claimed| (claimed.seq, claimed.claim.claim_id.clone(), None));
        let (_, id, input) = proposals.chain(intents).chain(claims).min_by_key(|(seq, _, _)| *seq)?;
        Some(Asks { trace, id, input })
    }

    /// The command that lets it through.
    pub fn command(&self) -> String {
        format!("baton trace review {} {} approve --reason \"…\"", self.trace, self.id)
    }
}

/// The claim that a person who is the critic lets stand. No rule asks for it, so that it is a note; signed all the same.
pub(super) fn let_stand(line: &Line<'_>) -> Option<Token> {
    let is_person = line.event_type == NOTE && line.role == Role::Critic && line.agent == OPERATOR;
    let payload = line.to_payload().ok().filter(|_| is_person && line.sig.is_some())?;
    payload.fields().get("claim_id")?.as_str()?.parse().ok()
}

/// A run as its trace tells it, and the claims that a person lets stand.
fn run_of(history: &dyn History, trace: TraceId) -> Option<(Arc<Run>, BTreeSet<Token>)> {
    let (mut run, mut stands, mut next) = (None, BTreeSet::new(), 1);
    loop {
        let lines = history.read_trace(trace, next, LINES_AT_ONCE).ok()?;
        for stored in &lines {
            let line = Line::parse(stored.text.as_bytes()).ok()?;
            next = line.seq + 1;
            let heard = Heard::of_line(&line);
            heard.apply(&mut run, &Speaker::of_line(&line));
            if let Some(Ok(Step::Overridden(over))) = heard.step.as_deref() {
                stands.insert(over.target.clone());
            }
            stands.extend(let_stand(&line));
        }
        if lines.len() < LINES_AT_ONCE {
            return run.map(|run| (run, stands));
        }
    }
}

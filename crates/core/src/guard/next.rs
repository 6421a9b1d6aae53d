//! What comes next in a run, and who does it. Asked at the beginning, after every step and after a crash, always of the run and of little else: so a
//! run is taken up at the next valid step, and at no other.

use super::run::{Intended, Proposed, Run};
use super::words::State;
use crate::ids::Token;

/// What the events of a run do not tell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Known {
    /// Whether the executor is at work right now.
    pub is_executing: bool,
    /// Whether the executor has said that it is through.
    pub has_report: bool,
    /// Whether the critic has looked at the claims that stand.
    pub is_examined: bool,
    /// Whether the executor was asked to answer the challenges that are open.
    pub is_answered: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// The planner proposes: the first time, or in the place of what was rejected.
    Propose { instead_of: Option<Token> },
    /// A critic reviews a proposal.
    Review(Token),
    /// A critic reviews an intent.
    ReviewIntent(Token),
    /// The executor works.
    Execute,
    /// Nobody runs this tool any more, and nobody knows how it ended: it is recorded as failed.
    Settle(Token),
    /// The executor says what came of it.
    Claim,
    /// The critic looks at these claims.
    Examine(Vec<Token>),
    /// The executor answers a challenge.
    Answer(Token),
    /// The executor signs the final statement.
    Finish,
    /// The auditor verifies.
    Audit,
    /// The run has ended, and its trace is closed.
    Close,
    /// The executor is through, and has run nothing that could be claimed.
    Stuck,
}

impl Run {
    /// The next step.
    pub fn next(&self, known: Known) -> Next {
        if self.state().is_end() {
            return Next::Close;
        }
        if self.is_final() {
            return Next::Audit;
        }
        if let Some(step) = self.next_of_intents(known) {
            return step;
        }
        if let Some(step) = self.next_of_proposals() {
            return step;
        }
        match self.state() {
            _ if known.is_executing => Next::Execute,
            // A claim may be made in the middle of the work: it is not examined before the work is done, and what was done after it is claimed, too.
            State::Auditing if known.has_report && !self.has_unclaimed() => self.next_of_claims(known),
            State::Auditing | State::Claiming if known.has_report => Next::Claim,
            State::Auditing => Next::Execute,
            _ if known.has_report => Next::Stuck,
            _ => Next::Execute,
        }
    }

    fn next_of_intents(&self, known: Known) -> Option<Next> {
        let mut in_order: Vec<_> = self.intents().collect();
        in_order.sort_unstable_by_key(|intended| intended.seq);
        let id = |intended: &Intended| intended.intent.intent_id.clone();
        let is_running = |intended: &&&Intended| intended.started.is_some() && intended.ended.is_none();
        if let Some(running) = in_order.iter().find(is_running).filter(|_| !known.is_executing) {
            return Some(Next::Settle(id(running)));
        }
        let waits = |intended: &&&Intended| {
            intended.is_risky
                && intended.answer.is_none()
                && intended.started.is_none()
                && !intended.is_retried
        };
        // Of an executor that is gone nobody asks any more what it meant to do.
        in_order
            .iter()
            .find(waits)
            .filter(|_| known.is_executing)
            .map(|waiting| Next::ReviewIntent(id(waiting)))
    }

    fn next_of_proposals(&self) -> Option<Next> {
        let mut in_order: Vec<&Proposed> = self.proposals().collect();
        in_order.sort_unstable_by_key(|proposed| proposed.seq);
        let id = |proposed: &Proposed| proposed.proposal.proposal_id.clone();
        let is_open = |proposed: &&&Proposed| {
            proposed.approved.is_none() && !proposed.is_rejected && !proposed.is_revised
        };
        if let Some(open) = in_order.iter().find(is_open) {
            return Some(Next::Review(id(open)));
        }
        match self.approved() {
            Some(_) => None,
            None => Some(Next::Propose { instead_of: in_order.last().map(|last| id(last)) }),
        }
    }

    /// Whether a tool ran to its end after the last claim.
    fn has_unclaimed(&self) -> bool {
        let claimed = self.claims().map(|claimed| claimed.seq).max();
        self.done().any(|done| done.ended > claimed)
    }

    fn next_of_claims(&self, known: Known) -> Next {
        let mut standing: Vec<_> = self.claims().filter(|claimed| !claimed.is_revised).collect();
        standing.sort_unstable_by_key(|claimed| claimed.seq);
        let challenged = standing.iter().find(|claimed| claimed.open_challenges > 0);
        match challenged.filter(|_| !known.is_answered) {
            Some(claimed) => Next::Answer(claimed.claim.claim_id.clone()),
            None if !known.is_examined => {
                Next::Examine(standing.iter().map(|claimed| claimed.claim.claim_id.clone()).collect())
            }
            None => Next::Finish,
        }
    }
}

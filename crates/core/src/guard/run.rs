//! A guarded run as far as its events tell: what was proposed, intended, done, claimed, and by whom.
//!
//! [`Run::apply`] is total: what breaks a rule is taken in as what it says it is, so that a verifier can go on after it. Whether it may be said at
//! all is [`Run::admit`]'s matter.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::policy::Policy;
use super::step::{Begun, Claim, Execution, Intent, Proposal, Step, Team};
use super::words::{Answer, Outcome, Review, State};
use crate::ids::{AgentName, Digest, KeyId, Token};
use crate::roles::Role;

/// A run begins with the first event of its trace, or with the second where something opens the trace.
pub const RUN_BEGINS: u64 = 2;

/// A step as it is said: who says it, where it would stand, and what it knew.
#[derive(Debug, Clone, Copy)]
pub struct Said<'a> {
    pub event_type: &'a str,
    /// `None` where its type is not part of the protocol.
    pub step: Option<&'a Step>,
    pub agent: &'a str,
    pub role: Role,
    pub key: Option<KeyId>,
    /// Its number in the trace.
    pub seq: u64,
    /// The last event that its actor knew.
    pub seen: Option<(u64, Digest)>,
    /// The artifacts that the event cites.
    pub cited: &'a [Digest],
}

/// The state of one guarded run.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    pub(super) state: State,
    pub(super) policy: Policy,
    pub(super) team: Team,
    pub(super) proposals: BTreeMap<Token, Arc<Proposed>>,
    pub(super) intents: BTreeMap<Token, Arc<Intended>>,
    pub(super) claims: BTreeMap<Token, Arc<Claimed>>,
    /// Who has executed and who has judged: no name and no key is in both.
    pub(super) executors: Players,
    pub(super) critics: Players,
    /// Tools that were started, those that failed, and the proposals that followed them.
    pub(super) calls: u64,
    pub(super) failures: u32,
    pub(super) fallbacks: u32,
    /// The last event that is not about keys.
    pub(super) last: u64,
    pub(super) is_final: bool,
    pub(super) is_audit_open: bool,
}

/// Names and keys that have played a part.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Players {
    pub(super) names: BTreeSet<String>,
    pub(super) keys: BTreeSet<KeyId>,
}

/// A proposal, and what was said of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposed {
    pub proposal: Proposal,
    pub seq: u64,
    /// Who has reviewed it, with what, and where.
    pub reviews: Vec<(AgentName, Review, u64)>,
    /// Where it was let through.
    pub approved: Option<u64>,
    pub is_rejected: bool,
    /// The tools that a conditional approval names; `None` where all are let through.
    pub only: Option<BTreeSet<String>>,
    pub is_revised: bool,
}

/// An intent, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intended {
    pub intent: Intent,
    pub seq: u64,
    /// Whether it waits for a review before it is run: by the policy, or because what it repeats was blocked.
    pub is_risky: bool,
    pub answer: Option<(Answer, u64)>,
    pub started: Option<u64>,
    pub ended: Option<u64>,
    pub has_failed: bool,
    /// A later intent takes its place.
    pub is_retried: bool,
}

/// A claim, and whether it stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub claim: Claim,
    pub seq: u64,
    /// Challenges that no revision has answered and no person has set aside.
    pub open_challenges: u32,
    pub is_revised: bool,
}

impl Run {
    /// The run that an event begins; `None` where it is no beginning.
    pub fn begin(said: &Said<'_>) -> Option<Run> {
        let Some(Step::Begun(Begun { policy, team })) = said.step else { return None };
        Some(Run {
            state: State::Planning,
            policy: policy.clone(),
            team: team.clone(),
            proposals: BTreeMap::new(),
            intents: BTreeMap::new(),
            claims: BTreeMap::new(),
            executors: Players::default(),
            critics: Players::default(),
            calls: 0,
            failures: 0,
            fallbacks: 0,
            last: said.seq,
            is_final: false,
            is_audit_open: false,
        })
    }

    pub fn state(&self) -> State {
        self.state
    }

    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    pub fn team(&self) -> &Team {
        &self.team
    }

    pub fn proposals(&self) -> impl Iterator<Item = &Proposed> {
        self.proposals.values().map(|proposed| &**proposed)
    }

    pub fn intents(&self) -> impl Iterator<Item = &Intended> {
        self.intents.values().map(|intended| &**intended)
    }

    pub fn claims(&self) -> impl Iterator<Item = &Claimed> {
        self.claims.values().map(|claimed| &**claimed)
    }

    pub fn intent(&self, id: &Token) -> Option<&Intended> {
        self.intents.get(id).map(|intended| &**intended)
    }

    pub fn proposal(&self, id: &Token) -> Option<&Proposed> {
        self.proposals.get(id).map(|proposed| &**proposed)
    }

    pub fn claim(&self, id: &Token) -> Option<&Claimed> {
        self.claims.get(id).map(|claimed| &**claimed)
    }

    /// What ran to its end, for proposals that nobody has rejected.
    pub fn done(&self) -> impl Iterator<Item = &Intended> {
        let is_rejected = |intended: &Intended| {
            self.proposal(&intended.intent.proposal_id).is_some_and(|of| of.is_rejected)
        };
        self.intents().filter(move |known| known.ended.is_some() && !known.has_failed && !is_rejected(known))
    }

    /// Whether a claim rests on nothing but what was done for proposals that were rejected since. One that does not say what it rests on rests on what
    /// was done before it.
    pub fn is_groundless(&self, claimed: &Claimed) -> bool {
        let of = |id: &Token| self.proposal(&self.intent(id)?.intent.proposal_id);
        let named = &claimed.claim.executions;
        let has_rejected = self.proposals().any(|proposed| proposed.is_rejected);
        match named.is_empty() {
            true => has_rejected && !self.done().any(|done| done.ended < Some(claimed.seq)),
            false => named.iter().all(|id| of(id).is_some_and(|of| of.is_rejected)),
        }
    }

    /// Whether the final statement is signed.
    pub fn is_final(&self) -> bool {
        self.is_final
    }

    /// Whether a proposal, an intent or a claim has this name.
    pub fn has_named(&self, id: &Token) -> bool {
        self.proposals.contains_key(id) || self.intents.contains_key(id) || self.claims.contains_key(id)
    }

    /// A name of this kind that the run does not have yet; `more` is how many were just given.
    pub fn fresh(&self, kind: &str, more: usize) -> Token {
        let known = match kind {
            "p" => self.proposals.len(),
            "i" => self.intents.len(),
            _ => self.claims.len(),
        };
        let names = (known + more + 1..).filter_map(|n| format!("{kind}{n}").parse::<Token>().ok());
        #[expect(clippy::expect_used, reason = "there are more numbers than things in a run")]
        names.into_iter().find(|id| !self.has_named(id)).expect("a number that is free")
    }

    /// The proposal that work is done for: the last one that is approved, and was not rejected or revised since.
    pub fn approved(&self) -> Option<&Proposed> {
        let stands = |proposed: &&Proposed| {
            proposed.approved.is_some() && !proposed.is_rejected && !proposed.is_revised
        };
        self.proposals().filter(stands).max_by_key(|proposed| proposed.seq)
    }

    /// Whether the policy lets another proposal follow what failed.
    pub fn may_fall_back(&self) -> bool {
        self.state >= State::Executing && self.fallbacks < self.failures.min(self.policy.max_fallbacks)
    }

    /// Whether the auditor is at it.
    pub fn is_audit_open(&self) -> bool {
        self.is_audit_open
    }

    /// Claims whose challenge nobody answered, whatever else is claimed beside them.
    pub fn disputed(&self) -> impl Iterator<Item = &Token> {
        let is_open = |claimed: &&Claimed| !claimed.is_revised && claimed.open_challenges > 0;
        self.claims().filter(is_open).map(|claimed| &claimed.claim.claim_id)
    }

    /// Takes a step in, whatever the rules say of it.
    pub fn apply(&mut self, said: &Said<'_>) {
        if !is_about_keys(said.event_type) {
            self.last = said.seq;
        }
        let Some(step) = said.step else { return };
        // By steps alone: a note, which nobody need sign, makes nobody executor or critic.
        match said.role {
            Role::Executor => self.executors.note(said),
            Role::Critic => self.critics.note(said),
            Role::Planner | Role::Auditor | Role::Operator | Role::System => {}
        }
        match step {
            Step::Begun(_) | Step::Recorded(_) => {}
            Step::Proposed(proposal) => self.apply_proposal(proposal, said.seq),
            Step::Reviewed(review) => {
                let tools = || review.tools().map(str::to_owned).collect();
                let only = (review.status == Review::Conditional).then(tools);
                self.apply_review(&review.proposal_id, said, review.status, only);
            }
            Step::Intended(intent) => self.apply_intent(intent, said.seq),
            Step::IntentReviewed(review) => {
                self.of_intent(&review.intent_id, |intended| {
                    // What was blocked stays so, whoever else approves it.
                    if !matches!(intended.answer, Some((Answer::Blocked, _))) {
                        intended.answer = Some((review.status, said.seq));
                    }
                });
            }
            Step::Started(execution) => {
                self.calls += 1;
                self.of_intent(&execution.intent_id, |intended| intended.started = Some(said.seq));
            }
            Step::Completed(execution) => self.apply_end(execution, said.seq, false),
            Step::Failed(execution) => self.apply_end(execution, said.seq, true),
            Step::Claimed(claim) => self.apply_claim(claim, said.seq),
            Step::Challenged(challenge) => {
                self.of_claim(&challenge.claim_id, |claimed| claimed.open_challenges += 1);
            }
            Step::Finished(_) => self.is_final = true,
            Step::AuditStarted(_) => self.is_audit_open = true,
            Step::Audited(audit) => {
                self.is_audit_open = false;
                self.state = match audit.status {
                    Outcome::Pass | Outcome::Warnings => State::Completed,
                    Outcome::Fail => State::Failed,
                };
            }
            Step::Aborted(_) => self.state = State::Aborted,
            Step::Overridden(over) => self.apply_override(&over.target, said.seq),
        }
    }

    fn reach(&mut self, state: State) {
        self.state = self.state.max(state);
    }

    fn apply_proposal(&mut self, proposal: &Proposal, seq: u64) {
        if self.state >= State::Executing && proposal.revises.is_none() {
            self.fallbacks += 1;
        }
        if let Some(revised) = proposal.revises.as_ref().and_then(|id| self.proposals.get_mut(id)) {
            Arc::make_mut(revised).is_revised = true;
        }
        let proposed = Proposed {
            proposal: proposal.clone(),
            seq,
            reviews: Vec::new(),
            approved: None,
            is_rejected: false,
            only: None,
            is_revised: false,
        };
        self.proposals.insert(proposal.proposal_id.clone(), Arc::new(proposed));
        self.reach(State::Reviewing);
    }

    fn apply_review(&mut self, id: &Token, said: &Said<'_>, status: Review, only: Option<BTreeSet<String>>) {
        let needed = self.policy.approvals as usize;
        let Some(proposed) = self.proposals.get_mut(id).map(Arc::make_mut) else { return };
        if let Ok(by) = said.agent.parse() {
            proposed.reviews.push((by, status, said.seq));
        }
        proposed.is_rejected |= status == Review::Rejected;
        if let Some(only) = only {
            // What every conditional approval names.
            proposed.only = Some(match proposed.only.take() {
                Some(before) => before.intersection(&only).cloned().collect(),
                None => only,
            });
        }
        let approvals = proposed.reviews.iter().filter(|(_, status, _)| *status != Review::Rejected).count();
        if approvals >= needed && !proposed.is_rejected {
            proposed.approved.get_or_insert(said.seq);
            self.reach(State::Executing);
        }
    }

    fn apply_intent(&mut self, intent: &Intent, seq: u64) {
        let is_foreseen = self
            .proposal(&intent.proposal_id)
            .is_some_and(|proposed| proposed.proposal.required_tools.contains(&intent.tool_name));
        let is_risky = self.policy.needs_review(&intent.tool_name, intent.risk_class, is_foreseen)
            || self.is_blocked_before(intent);
        if let Some(before) = &intent.retry_of {
            self.of_intent(before, |intended| intended.is_retried = true);
        }
        let intended = Intended {
            intent: intent.clone(),
            seq,
            is_risky,
            answer: None,
            started: None,
            ended: None,
            has_failed: false,
            is_retried: false,
        };
        self.intents.insert(intent.intent_id.clone(), Arc::new(intended));
    }

    /// Whether it takes the place of an intent that was blocked, or is the same again under another name, or of another tool.
    fn is_blocked_before(&self, intent: &Intent) -> bool {
        self.intents().any(|before| {
            let is_same = before.intent.normalized_input_hash == intent.normalized_input_hash;
            let is_blocked = matches!(before.answer, Some((Answer::Blocked, _)));
            is_blocked && (is_same || intent.retry_of.as_ref() == Some(&before.intent.intent_id))
        })
    }

    fn apply_end(&mut self, execution: &Execution, seq: u64, has_failed: bool) {
        self.of_intent(&execution.intent_id, |intended| {
            (intended.ended, intended.has_failed) = (Some(seq), has_failed);
        });
        self.failures += u32::from(has_failed);
        if !has_failed || self.failures > self.policy.max_fallbacks {
            self.reach(State::Claiming);
        }
    }

    fn apply_claim(&mut self, claim: &Claim, seq: u64) {
        if let Some(revised) = &claim.revises {
            self.of_claim(revised, |claimed| (claimed.is_revised, claimed.open_challenges) = (true, 0));
        }
        let claimed = Claimed { claim: claim.clone(), seq, open_challenges: 0, is_revised: false };
        self.claims.insert(claim.claim_id.clone(), Arc::new(claimed));
        self.reach(State::Auditing);
    }

    /// A person lets something through: a proposal, an intent or a claim.
    fn apply_override(&mut self, target: &Token, seq: u64) {
        if let Some(proposed) = self.proposals.get_mut(target).map(Arc::make_mut) {
            (proposed.is_rejected, proposed.only) = (false, None);
            proposed.approved.get_or_insert(seq);
            self.reach(State::Executing);
        } else if self.intents.contains_key(target) {
            self.of_intent(target, |intended| intended.answer = Some((Answer::Approved, seq)));
        } else {
            self.of_claim(target, |claimed| claimed.open_challenges = 0);
        }
    }

    fn of_intent(&mut self, id: &Token, change: impl FnOnce(&mut Intended)) {
        if let Some(intended) = self.intents.get_mut(id) {
            change(Arc::make_mut(intended));
        }
    }

    fn of_claim(&mut self, id: &Token, change: impl FnOnce(&mut Claimed)) {
        if let Some(claimed) = self.claims.get_mut(id) {
            change(Arc::make_mut(claimed));
        }
    }
}

impl Players {
    fn note(&mut self, said: &Said<'_>) {
        if !self.names.contains(said.agent) {
            self.names.insert(said.agent.to_owned());
        }
        self.keys.extend(said.key);
    }

    pub(super) fn has(&self, said: &Said<'_>) -> bool {
        self.names.contains(said.agent) || said.key.is_some_and(|key| self.keys.contains(&key))
    }
}

/// Events that bind, rotate or revoke keys stand between others and are nobody's reaction.
pub(super) fn is_about_keys(event_type: &str) -> bool {
    matches!(event_type, "key_bound" | "key_rotated" | "key_revoked")
}

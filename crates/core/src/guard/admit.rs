//! The guards: whether a step may be said, asked before it is written and asked again by whoever verifies.
//!
//! Pure: the run so far and the step give an answer, always the same. The first rule that is broken is named; the order is that of the questions.

use std::fmt::Display;

use super::rule::{Breach, Rule};
use super::run::{Intended, Proposed, RUN_BEGINS, Run, Said, is_about_keys};
use super::step::{
    Audit, Challenge, Claim, Execution, FinalStatement, Intent, IntentReview, Proposal, ProposalReview, Step,
};
use super::words::{Answer, Critic, Disputes, Outcome, State};
use crate::ids::{Digest, Token};
use crate::limits::GUARD_THINGS_MAX;
use crate::roles::{OPERATOR, OWN_AGENT, RULES, Role, role_required};

type Admitted = Result<(), Breach>;

fn refuse<T>(rule: Rule, expected: impl Into<String>, found: impl Display) -> Result<T, Breach> {
    Err(Breach { rule, expected: expected.into(), found: found.to_string() })
}

impl Run {
    /// Whether a trace that is no guarded run may take this: a run is begun by Baton itself, as the first thing that is said in its trace.
    pub fn admit_beginning(said: &Said<'_>) -> Admitted {
        match said.step {
            Some(Step::Begun(_)) if said.role != Role::System || said.agent != OWN_AGENT => {
                refuse(Rule::RoleTable, "Baton itself begins a run", said.agent)
            }
            // Everything after it is held against what it says.
            Some(Step::Begun(_)) if said.key.is_none() => {
                refuse(Rule::Beginning, "session_initialized signed by the ledger's key", "no signature")
            }
            // Only what opens the trace may stand before it.
            Some(Step::Begun(_)) if said.seq > RUN_BEGINS => refuse(
                Rule::Beginning,
                "session_initialized at the beginning",
                format!("number {}", said.seq),
            ),
            _ => Ok(()),
        }
    }

    /// Whether this may be said now.
    pub fn admit(&self, said: &Said<'_>) -> Admitted {
        self.admit_role(said)?;
        self.admit_end(said)?;
        let Some(step) = said.step else { return Ok(()) };
        self.admit_place(step, said)?;
        match step {
            Step::Begun(_) => refuse(Rule::Beginning, "one session_initialized", "a second one"),
            Step::Proposed(proposal) => self.admit_proposal(proposal),
            Step::Reviewed(review) => self.admit_review(review, said),
            Step::Intended(intent) => self.admit_intent(intent, said),
            Step::IntentReviewed(review) => self.admit_intent_review(review, said),
            Step::Started(execution) => self.admit_start(execution, said),
            Step::Completed(execution) | Step::Failed(execution) => self.admit_stop(execution, said),
            Step::Recorded(_) => match said.cited.is_empty() {
                true => refuse(Rule::ExecutionEvidence, "an artifact that is recorded", "none is cited"),
                false => Ok(()),
            },
            Step::Claimed(claim) => self.admit_claim(claim, said),
            Step::Challenged(challenge) => self.admit_challenge(challenge, said),
            Step::Finished(statement) => self.admit_final(statement, said),
            Step::AuditStarted(_) => Ok(()),
            Step::Audited(audit) => self.admit_audit(audit, said),
            Step::Aborted(_) => self.expect_head(said),
            Step::Overridden(over) => {
                self.expect_head(said)?;
                match self.has_named(&over.target) {
                    true => Ok(()),
                    false => {
                        refuse(Rule::Subject, "a proposal, an intent or a claim of this run", &over.target)
                    }
                }
            }
        }
    }

    fn admit_role(&self, said: &Said<'_>) -> Admitted {
        if let Some(required) = role_required(said.event_type).filter(|required| *required != said.role) {
            let expected = format!("{} from role {required}", said.event_type);
            return refuse(Rule::RoleTable, expected, format!("it came from {}", said.role));
        }
        let member = match said.role {
            Role::Planner => &self.team.planner,
            Role::Executor => &self.team.executor,
            Role::Auditor => &self.team.auditor,
            Role::Critic => return self.admit_critic(said),
            Role::Operator => return self.admit_operator(said),
            Role::System => return Ok(()),
        };
        if said.step.is_some() && member.as_str() != said.agent {
            let expected = format!("{member}, who is the {} of this run", said.role);
            return refuse(Rule::TeamMember, expected, format!("it came from {}", said.agent));
        }
        if said.role == Role::Executor && self.critics.has(said) {
            let found = format!("{} or its key has judged in this run", said.agent);
            return refuse(Rule::OwnWork, "an executor who is not critic", found);
        }
        Ok(())
    }

    fn admit_critic(&self, said: &Said<'_>) -> Admitted {
        if said.step.is_none() {
            return Ok(());
        }
        let kind = match said.agent {
            OPERATOR => Critic::Person,
            RULES => Critic::Rules,
            _ => Critic::Agent,
        };
        if kind == Critic::Agent && said.agent != self.team.critic.as_str() {
            let expected = format!("{}, who is the critic of this run", self.team.critic);
            return refuse(Rule::TeamMember, expected, format!("it came from {}", said.agent));
        }
        if !self.policy.critics.contains(&kind) {
            let words: Vec<&str> = self.policy.critics.iter().map(|critic| critic.as_str()).collect();
            let expected = format!("a critic of these kinds: {}", words.join(", "));
            return refuse(Rule::CriticKind, expected, format!("{} is of kind {kind}", said.agent));
        }
        if self.executors.has(said) || said.agent == self.team.executor.as_str() {
            let found = format!("{} or its key executes in this run", said.agent);
            return refuse(Rule::OwnWork, "a critic who does not execute", found);
        }
        Ok(())
    }

    /// A person may set a judgement aside, an executor its own not, whatever else its key is for. It may abort.
    fn admit_operator(&self, said: &Said<'_>) -> Admitted {
        let is_override = matches!(said.step, Some(Step::Overridden(_)));
        if is_override && (self.executors.has(said) || said.agent == self.team.executor.as_str()) {
            let found = format!("{} or its key executes in this run", said.agent);
            return refuse(Rule::OwnWork, "an override by somebody who does not execute", found);
        }
        Ok(())
    }

    /// What may still be said after the final statement and after the verification.
    fn admit_end(&self, said: &Said<'_>) -> Admitted {
        if is_about_keys(said.event_type) {
            return Ok(());
        }
        if said.event_type == "trace.closed" {
            return match self.state.is_end() {
                true => Ok(()),
                false => refuse(
                    Rule::Closing,
                    "an end of the run",
                    format!("trace.closed while it is {}", self.state),
                ),
            };
        }
        if self.state.is_end() {
            let found = format!("{} after the run was {}", said.event_type, self.state);
            return refuse(Rule::AfterAudit, "trace.closed, and nothing else", found);
        }
        let is_abort = matches!(said.step, Some(Step::Aborted(_)));
        if self.is_final && said.role != Role::Auditor && !is_abort {
            let found = format!("{} from {} after final_statement_signed", said.event_type, said.role);
            return refuse(Rule::AfterFinal, "the auditor's record, and nothing else", found);
        }
        Ok(())
    }

    /// Whether the state of the run has a place for it. A state allows what the earlier ones did.
    fn admit_place(&self, step: &Step, said: &Said<'_>) -> Admitted {
        let from = match step {
            Step::Begun(_)
            | Step::Proposed(_)
            | Step::Aborted(_)
            | Step::Overridden(_)
            | Step::AuditStarted(_)
            | Step::Audited(_) => State::Planning,
            Step::Reviewed(_) => State::Reviewing,
            // Whether this proposal is approved is asked by itself.
            Step::Intended(_)
            | Step::IntentReviewed(_)
            | Step::Started(_)
            | Step::Completed(_)
            | Step::Failed(_)
            | Step::Recorded(_) => State::Executing,
            Step::Claimed(_) => State::Claiming,
            Step::Challenged(_) | Step::Finished(_) => State::Auditing,
        };
        if self.state >= from {
            return Ok(());
        }
        let found = format!("{} while it is {}", said.event_type, self.state);
        refuse(Rule::Place, format!("the run in state {from} or later"), found)
    }

    fn admit_proposal(&self, proposal: &Proposal) -> Admitted {
        self.expect_new("proposal_id", &proposal.proposal_id, self.proposals.len())?;
        if let Some(revised) = &proposal.revises
            && !self.proposals.contains_key(revised)
        {
            return refuse(Rule::Subject, "`revises` names a proposal of this run", revised);
        }
        if self.state < State::Executing || proposal.revises.is_some() {
            return Ok(());
        }
        let allowed = self.failures.min(self.policy.max_fallbacks);
        if self.fallbacks < allowed {
            return Ok(());
        }
        let expected =
            format!("at most {} proposals that follow tools that failed", self.policy.max_fallbacks);
        let found = format!("{} failed, {} followed already", self.failures, self.fallbacks);
        refuse(Rule::Fallbacks, expected, found)
    }

    /// A name is one thing's in the whole run: whoever reviews or overrides it means no other.
    fn expect_new(&self, field: &str, id: &Token, count: usize) -> Admitted {
        if count >= GUARD_THINGS_MAX {
            let expected = format!("at most {GUARD_THINGS_MAX} of a kind in one run");
            return refuse(Rule::Budget, expected, "one more");
        }
        match self.has_named(id) {
            true => refuse(Rule::NewName, format!("a new {field}"), format!("{id} is taken")),
            false => Ok(()),
        }
    }

    fn admit_review(&self, review: &ProposalReview, said: &Said<'_>) -> Admitted {
        let Some(proposed) = self.proposal(&review.proposal_id) else {
            return refuse(Rule::Subject, "a proposal of this run", &review.proposal_id);
        };
        if proposed.reviews.iter().any(|(by, _, _)| by.as_str() == said.agent) {
            let found = format!("{} has reviewed {} already", said.agent, review.proposal_id);
            return refuse(Rule::Subject, "one review of a proposal by each critic", found);
        }
        expect_seen(said, proposed.seq, &review.proposal_id)
    }

    fn admit_intent(&self, intent: &Intent, said: &Said<'_>) -> Admitted {
        self.expect_new("intent_id", &intent.intent_id, self.intents.len())?;
        let Some(proposed) = self.proposal(&intent.proposal_id) else {
            return refuse(Rule::Subject, "a proposal of this run", &intent.proposal_id);
        };
        if let Some(before) = &intent.retry_of {
            let Some(before) = self.intent(before) else {
                return refuse(Rule::Subject, "`retry_of` names an intent of this run", before);
            };
            let is_over = before.ended.is_some() || matches!(before.answer, Some((Answer::Blocked, _)));
            if !is_over {
                let found = format!("{} was neither blocked nor run to its end", before.intent.intent_id);
                return refuse(Rule::Subject, "`retry_of` names an intent that is over", found);
            }
        }
        let approved = expect_standing(proposed)?;
        expect_named(proposed, intent)?;
        expect_seen(said, approved, &intent.proposal_id)
    }

    fn admit_intent_review(&self, review: &IntentReview, said: &Said<'_>) -> Admitted {
        let Some(intended) = self.intent(&review.intent_id) else {
            return refuse(Rule::Subject, "an intent of this run", &review.intent_id);
        };
        if intended.started.is_some() || matches!(intended.answer, Some((Answer::Blocked, _))) {
            let found = format!("{} was blocked or run already", review.intent_id);
            return refuse(Rule::Subject, "an intent that waits", found);
        }
        expect_seen(said, intended.seq, &review.intent_id)
    }

    fn admit_start(&self, execution: &Execution, said: &Said<'_>) -> Admitted {
        let intended = self.expect_intent(execution)?;
        let intent = &intended.intent;
        if intended.started.is_some() {
            let found = format!("{} was run already", intent.intent_id);
            return refuse(Rule::RunOnce, "an intent that was not run", found);
        }
        let answered = match intended.answer {
            Some((Answer::Blocked, _)) => {
                let found = format!("{} was blocked", intent.intent_id);
                return refuse(Rule::IntentBlocked, "an intent that nobody blocked", found);
            }
            None if intended.is_risky => {
                let expected = format!("an approval of {} ({})", intent.intent_id, intent.tool_name);
                return refuse(Rule::IntentApproved, expected, "nobody has reviewed it");
            }
            Some((Answer::Approved, at)) => at,
            None => intended.seq,
        };
        // Another critic may have rejected the proposal since, or let it through for some tools only; or its planner has put another one in its place.
        if let Some(proposed) = self.proposal(&intent.proposal_id) {
            expect_standing(proposed)?;
            expect_named(proposed, intent)?;
        }
        if let Some(most) = self.policy.budgets.tool_calls.filter(|most| self.calls >= *most) {
            return refuse(Rule::Budget, format!("at most {most} tools"), "another one is started");
        }
        expect_cited(execution, said)?;
        if !execution.artifacts.contains(&intent.normalized_input_hash) {
            let expected = format!("the input {} of {}", intent.normalized_input_hash, intent.intent_id);
            return refuse(Rule::SameInput, expected, listed(&execution.artifacts));
        }
        expect_seen(said, answered, &intent.intent_id)
    }

    fn admit_stop(&self, execution: &Execution, said: &Said<'_>) -> Admitted {
        let intended = self.expect_intent(execution)?;
        let id = &execution.intent_id;
        let Some(started) = intended.started else {
            return refuse(Rule::IntentFirst, format!("{id} to be started first"), said.event_type);
        };
        if intended.ended.is_some() {
            return refuse(
                Rule::RunOnce,
                format!("one end of {id}"),
                format!("a second {}", said.event_type),
            );
        }
        if execution.artifacts.is_empty() {
            return refuse(Rule::ExecutionEvidence, "an artifact of what the tool gave", "none is cited");
        }
        expect_cited(execution, said)?;
        expect_seen(said, started, id)
    }

    fn expect_intent(&self, execution: &Execution) -> Result<&Intended, Breach> {
        match self.intent(&execution.intent_id) {
            Some(intended) => Ok(intended),
            None => {
                let found = format!("{} is none of this run", execution.intent_id);
                refuse(Rule::IntentFirst, "an intent that was signed before", found)
            }
        }
    }

    fn admit_claim(&self, claim: &Claim, said: &Said<'_>) -> Admitted {
        self.expect_new("claim_id", &claim.claim_id, self.claims.len())?;
        if let Some(revised) = &claim.revises {
            let Some(before) = self.claim(revised) else {
                return refuse(Rule::Subject, "`revises` names a claim of this run", revised);
            };
            if before.is_revised {
                let found = format!("{revised} was revised already");
                return refuse(Rule::Subject, "`revises` names a claim that stands", found);
            }
            expect_seen(said, before.seq, revised)?;
        }
        for id in &claim.executions {
            let Some(ended) = self.intent(id).and_then(|intended| intended.ended) else {
                let found = format!("{id} was not run to its end");
                return refuse(Rule::ExecutionFirst, "executions that have ended", found);
            };
            expect_seen(said, ended, id)?;
        }
        self.expect_evidence(claim)?;
        match claim.evidence.iter().find(|hash| !said.cited.contains(hash)) {
            Some(missing) => {
                let expected = "every artifact of `evidence` among the artifacts that the event cites";
                refuse(Rule::ClaimEvidence, expected, format!("{missing} is not"))
            }
            None => Ok(()),
        }
    }

    fn expect_evidence(&self, claim: &Claim) -> Admitted {
        let mut hashes: Vec<&Digest> = claim.evidence.iter().collect();
        hashes.sort_unstable();
        hashes.dedup();
        let least = self.policy.min_evidence;
        if hashes.len() >= least as usize {
            return Ok(());
        }
        let expected = format!("at least {least} artifacts as evidence of {}", claim.claim_id);
        refuse(Rule::ClaimEvidence, expected, hashes.len().to_string())
    }

    fn admit_challenge(&self, challenge: &Challenge, said: &Said<'_>) -> Admitted {
        let Some(claimed) = self.claim(&challenge.claim_id).filter(|claimed| !claimed.is_revised) else {
            return refuse(Rule::Subject, "a claim of this run that stands", &challenge.claim_id);
        };
        expect_all_cited(&challenge.evidence, said)?;
        expect_seen(said, claimed.seq, &challenge.claim_id)
    }

    fn admit_final(&self, statement: &FinalStatement, said: &Said<'_>) -> Admitted {
        let expected = "claims of this run that stand";
        if statement.claim_ids.is_empty() {
            return refuse(Rule::FinalClaims, expected, "none");
        }
        for id in &statement.claim_ids {
            match self.claim(id) {
                None => return refuse(Rule::FinalClaims, expected, format!("{id} is none of this run")),
                Some(claimed) if claimed.is_revised => {
                    return refuse(Rule::FinalClaims, expected, format!("{id} was revised"));
                }
                Some(claimed) => self
                    .expect_evidence(&claimed.claim)
                    .map_err(|breach| Breach { rule: Rule::FinalClaims, ..breach })?,
            }
        }
        let running = self.intents().find(|intended| intended.started.is_some() && intended.ended.is_none());
        if let Some(running) = running {
            let found = format!("{} is running", running.intent.intent_id);
            return refuse(Rule::FinalRest, "every tool to have ended", found);
        }
        // Also those that it does not name: another claim beside a challenged one answers nothing.
        for id in self.disputed() {
            let found = format!("{id} is challenged");
            match self.policy.open_disputes {
                Disputes::Fail => return refuse(Rule::Disputes, "no challenge that nobody answered", found),
                Disputes::Warn if !statement.disputed.contains(id) => {
                    return refuse(Rule::Disputes, "every such claim in `disputed`", found);
                }
                Disputes::Warn => {}
            }
        }
        self.expect_head(said)
    }

    fn admit_audit(&self, audit: &Audit, said: &Said<'_>) -> Admitted {
        if !self.is_audit_open {
            return refuse(Rule::AuditStarted, "verification_run_started before it", "there is none");
        }
        if audit.status != Outcome::Fail && !self.is_final {
            let found = format!("status {} without one", audit.status);
            return refuse(Rule::AuditFinal, "a final statement", found);
        }
        expect_all_cited(&[audit.report], said)?;
        self.expect_head(said)?;
        match said.seen {
            Some((_, hash)) if hash == audit.head => Ok(()),
            _ => refuse(Rule::AuditHead, "`head` to be the event that `seen` names", audit.head.to_string()),
        }
    }

    /// Whoever closes something must have seen everything, events about keys aside.
    fn expect_head(&self, said: &Said<'_>) -> Admitted {
        match said.seen {
            Some((seq, _)) if seq >= self.last => Ok(()),
            seen => {
                let found = seen.map_or("nothing".to_owned(), |(seq, _)| format!("number {seq}"));
                refuse(Rule::SeenHead, format!("`seen` to name number {}", self.last), found)
            }
        }
    }
}

/// Whoever reacts to something must have seen it.
fn expect_seen(said: &Said<'_>, subject: u64, what: &Token) -> Admitted {
    match said.seen {
        Some((seq, _)) if seq >= subject => Ok(()),
        seen => {
            let found =
                seen.map_or("nothing was seen".to_owned(), |(seq, _)| format!("number {seq} was seen"));
            refuse(Rule::SeenSubject, format!("number {subject} ({what}) or later in `seen`"), found)
        }
    }
}

/// Where a proposal was let through that work may still be done for.
fn expect_standing(proposed: &Proposed) -> Result<u64, Breach> {
    let how = match proposed.approved {
        _ if proposed.is_rejected => "was rejected",
        _ if proposed.is_revised => "was revised",
        Some(approved) => return Ok(approved),
        None => "is not approved yet",
    };
    let found = format!("{} {how}", proposed.proposal.proposal_id);
    refuse(Rule::ProposalApproved, "a proposal that is approved, and that none has taken the place of", found)
}

/// Refuses a tool that the conditions of an approval do not name.
fn expect_named(proposed: &Proposed, intent: &Intent) -> Admitted {
    let Some(only) = proposed.only.as_ref().filter(|only| !only.contains(&intent.tool_name)) else {
        return Ok(());
    };
    let names: Vec<&str> = only.iter().map(String::as_str).collect();
    let expected = format!("one of the tools that the conditions name: {}", names.join(", "));
    refuse(Rule::Conditions, expected, &intent.tool_name)
}

/// What an execution names is what its event cites, and so what is stored.
fn expect_cited(execution: &Execution, said: &Said<'_>) -> Admitted {
    match execution.artifacts.iter().find(|hash| !said.cited.contains(hash)) {
        None => Ok(()),
        Some(missing) => {
            let expected = "every artifact of the execution among the artifacts that the event cites";
            refuse(Rule::ExecutionEvidence, expected, format!("{missing} is not"))
        }
    }
}

/// What a judgement names as its grounds is what its event cites, so that whoever verifies it looks for it.
fn expect_all_cited(hashes: &[Digest], said: &Said<'_>) -> Admitted {
    match hashes.iter().find(|hash| !said.cited.contains(hash)) {
        None => Ok(()),
        Some(missing) => {
            let expected = "every artifact that it names among the artifacts that the event cites";
            refuse(Rule::Cited, expected, format!("{missing} is not"))
        }
    }
}

fn listed(hashes: &[Digest]) -> String {
    match hashes {
        [] => "no artifact".to_owned(),
        [first, rest @ ..] => {
            let more = if rest.is_empty() { String::new() } else { format!(" and {} more", rest.len()) };
            format!("{first}{more}")
        }
    }
}

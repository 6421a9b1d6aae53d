//! Reads the members of a step with errors that name the field, what was expected and what came.

use serde_json::{Map, Value};

use super::policy::Policy;
use super::step::{
    Abort, Audit, Bare, Begun, Challenge, Claim, Execution, FinalStatement, Intent, IntentReview, Override,
    Proposal, ProposalReview, Team,
};
use crate::event::PayloadError;
use crate::ids::{AgentName, Digest, Token};
use crate::limits::{ARTIFACTS_MAX, GUARD_ITEMS_MAX, GUARD_TEXT_CHARS_MAX};
use crate::words::UnknownWord;

/// The members of a step, read with errors that name the field.
#[derive(Clone, Copy)]
pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

pub(super) type Read<T> = Result<T, PayloadError>;

impl Fields<'_> {
    pub(super) fn refuse(self, field: &'static str, expected: impl Into<String>) -> PayloadError {
        PayloadError::of(self.0, field, expected)
    }

    /// A text that may be empty; absent is empty.
    fn text(self, field: &'static str) -> Read<String> {
        let expected = || format!("a string of at most {GUARD_TEXT_CHARS_MAX} characters");
        match self.0.get(field) {
            None => Ok(String::new()),
            Some(Value::String(text)) if is_within(text) => Ok(text.clone()),
            Some(_) => Err(self.refuse(field, expected())),
        }
    }

    /// A text that says something.
    pub(super) fn said(self, field: &'static str) -> Read<String> {
        let text = self.text(field)?;
        let expected = || format!("a string of 1 to {GUARD_TEXT_CHARS_MAX} characters that is not blank");
        if text.trim().is_empty() { Err(self.refuse(field, expected())) } else { Ok(text) }
    }

    fn id(self, field: &'static str) -> Read<Token> {
        let text = self.0.get(field).and_then(Value::as_str);
        let expected = "an id of 1 to 128 of A-Z a-z 0-9 . _ -";
        text.and_then(|text| text.parse().ok()).ok_or_else(|| self.refuse(field, expected))
    }

    pub(super) fn maybe_id(self, field: &'static str) -> Read<Option<Token>> {
        self.0.contains_key(field).then(|| self.id(field)).transpose()
    }

    pub(super) fn word<T: std::str::FromStr<Err = UnknownWord>>(self, field: &'static str) -> Read<T> {
        let text = self.0.get(field).and_then(Value::as_str).unwrap_or_default();
        text.parse().map_err(|error: UnknownWord| self.refuse(field, error.expected))
    }

    fn digest(self, field: &'static str) -> Read<Digest> {
        let text = self.0.get(field).and_then(Value::as_str);
        text.and_then(|text| text.parse().ok())
            .ok_or_else(|| self.refuse(field, "a SHA-256 of 64 lower hex digits"))
    }

    /// A list; absent is empty.
    fn list<T>(
        self,
        field: &'static str,
        most: usize,
        of: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Read<Vec<T>> {
        let Some(value) = self.0.get(field) else { return Ok(Vec::new()) };
        let items = value.as_array().filter(|items| items.len() <= most);
        let read: Option<Vec<T>> =
            items.and_then(|items| items.iter().map(|item| read(item.as_str()?)).collect());
        read.ok_or_else(|| self.refuse(field, format!("an array of at most {most} {of}")))
    }

    fn texts(self, field: &'static str) -> Read<Vec<String>> {
        let read = |text: &str| (!text.trim().is_empty() && is_within(text)).then(|| text.to_owned());
        self.list(field, GUARD_ITEMS_MAX, "texts", read)
    }

    fn ids(self, field: &'static str) -> Read<Vec<Token>> {
        self.list(field, GUARD_ITEMS_MAX, "ids", |text| text.parse().ok())
    }

    fn digests(self, field: &'static str) -> Read<Vec<Digest>> {
        self.list(field, ARTIFACTS_MAX, "SHA-256 of artifacts", |text| text.parse().ok())
    }

    fn share(self, field: &'static str) -> Read<f64> {
        let number = self.0.get(field).and_then(Value::as_f64).filter(|share| (0.0..=1.0).contains(share));
        number.ok_or_else(|| self.refuse(field, "a number from 0 to 1"))
    }
}

/// One for each type.
impl Fields<'_> {
    pub(super) fn begun(self) -> Read<Begun> {
        Ok(Begun { policy: self.policy()?, team: self.team()? })
    }

    pub(super) fn proposal(self) -> Read<Proposal> {
        Ok(Proposal {
            proposal_id: self.id("proposal_id")?,
            objective: self.said("objective")?,
            assumptions: self.texts("assumptions")?,
            required_tools: self.texts("required_tools")?,
            expected_evidence: self.texts("expected_evidence")?,
            revises: self.maybe_id("revises")?,
        })
    }

    pub(super) fn proposal_review(self) -> Read<ProposalReview> {
        Ok(ProposalReview {
            proposal_id: self.id("proposal_id")?,
            status: self.word("status")?,
            conditions: self.texts("conditions")?,
            risk: self.text("risk")?,
            rationale: self.said("rationale")?,
        })
    }

    pub(super) fn intent(self) -> Read<Intent> {
        Ok(Intent {
            intent_id: self.id("intent_id")?,
            proposal_id: self.id("proposal_id")?,
            tool_name: self.said("tool_name")?,
            normalized_input_hash: self.digest("normalized_input_hash")?,
            risk_class: self.word("risk_class")?,
            justification: self.said("justification")?,
            retry_of: self.maybe_id("retry_of")?,
        })
    }

    pub(super) fn intent_review(self) -> Read<IntentReview> {
        Ok(IntentReview {
            intent_id: self.id("intent_id")?,
            status: self.word("status")?,
            rationale: self.said("rationale")?,
        })
    }

    pub(super) fn started(self) -> Read<Execution> {
        let exit_status = match self.0.get("exit_status") {
            None => None,
            Some(status) => Some(status.as_i64().ok_or_else(|| self.refuse("exit_status", "an integer"))?),
        };
        Ok(Execution {
            intent_id: self.id("intent_id")?,
            artifacts: self.digests("artifacts")?,
            exit_status,
            failure: self.0.contains_key("failure").then(|| self.said("failure")).transpose()?,
        })
    }

    pub(super) fn completed(self) -> Read<Execution> {
        let execution = self.started()?;
        match execution.exit_status {
            Some(_) => Ok(execution),
            None => Err(self.refuse("exit_status", "an integer")),
        }
    }

    pub(super) fn failed(self) -> Read<Execution> {
        let execution = self.started()?;
        match execution.failure {
            Some(_) => Ok(execution),
            None => Err(self.refuse("failure", "what went wrong, as text")),
        }
    }

    pub(super) fn claim(self) -> Read<Claim> {
        Ok(Claim {
            claim_id: self.id("claim_id")?,
            claim_text: self.said("claim_text")?,
            confidence: self.share("confidence")?,
            evidence: self.digests("evidence")?,
            executions: self.ids("executions")?,
            revises: self.maybe_id("revises")?,
        })
    }

    pub(super) fn challenge(self) -> Read<Challenge> {
        Ok(Challenge {
            claim_id: self.id("claim_id")?,
            reason: self.said("reason")?,
            evidence: self.digests("evidence")?,
        })
    }

    pub(super) fn final_statement(self) -> Read<FinalStatement> {
        Ok(FinalStatement {
            claim_ids: self.ids("claim_ids")?,
            verdict_text: self.said("verdict_text")?,
            disputed: self.ids("disputed")?,
        })
    }

    pub(super) fn audit(self) -> Read<Audit> {
        Ok(Audit { status: self.word("status")?, report: self.digest("report")?, head: self.digest("head")? })
    }

    pub(super) fn abort(self) -> Read<Abort> {
        Ok(Abort { reason: self.said("reason")? })
    }

    pub(super) fn override_(self) -> Read<Override> {
        Ok(Override { target: self.id("target")?, reason: self.said("reason")? })
    }

    pub(super) fn bare(self) -> Read<Bare> {
        Ok(Bare {})
    }

    fn policy(self) -> Read<Policy> {
        let value = self.0.get("policy").cloned().unwrap_or_default();
        serde_json::from_value(value)
            .map_err(|error| self.refuse("policy", format!("the rules of a run ({error})")))
    }

    fn team(self) -> Read<Team> {
        let team = self.0.get("team");
        let part = |part: &str| -> Read<AgentName> {
            let name = team.and_then(|team| team.get(part)).and_then(Value::as_str);
            let expected = || format!("an object whose {part} is the name of an agent");
            name.and_then(|name| name.parse().ok()).ok_or_else(|| self.refuse("team", expected()))
        };
        Ok(Team {
            planner: part("planner")?,
            executor: part("executor")?,
            critic: part("critic")?,
            auditor: part("auditor")?,
        })
    }
}

fn is_within(text: &str) -> bool {
    text.len() <= GUARD_TEXT_CHARS_MAX || text.chars().count() <= GUARD_TEXT_CHARS_MAX
}

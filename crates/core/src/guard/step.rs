//! The steps of a guarded run, as they are stored. Names and spelling are a format.
//!
//! Read by [`Step::read`] from any record; types that are not part of the protocol give `None`. Members that a step does not need may stand beside
//! those it does.

use serde::Serialize;
use serde_json::{Map, Value};

use super::policy::Policy;
use super::read::Fields;
use super::words::{Answer, Outcome, Review, Risk};
use crate::event::{Payload, PayloadError};
use crate::ids::{AgentName, Digest, Token};

/// Declares the steps, their fields and the names of their types together.
macro_rules! steps {
    ($($(#[$doc:meta])* $variant:ident($fields:ty) = $name:literal by $read:ident,)+) => {
        /// One step.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Step { $($(#[$doc])* $variant($fields)),+ }

        impl Step {
            /// Every type that is part of the protocol.
            pub const TYPES: &'static [&'static str] = &[$($name),+];

            pub fn event_type(&self) -> &'static str {
                match self { $(Step::$variant(_) => $name),+ }
            }

            fn fields(&self) -> serde_json::Result<Value> {
                match self { $(Step::$variant(fields) => serde_json::to_value(fields)),+ }
            }

            /// Reads the fields of an event; `None` where its type is no step.
            pub fn read(event_type: &str, fields: &Map<String, Value>) -> Option<Result<Step, PayloadError>> {
                let of = Fields(fields);
                match event_type {
                    $($name => Some(of.$read().map(Step::$variant)),)+
                    _ => None,
                }
            }
        }
    };
}

steps! {
    Begun(Begun) = "session_initialized" by begun,
    Proposed(Proposal) = "proposal_created" by proposal,
    Reviewed(ProposalReview) = "proposal_reviewed" by proposal_review,
    Intended(Intent) = "tool_intent_signed" by intent,
    IntentReviewed(IntentReview) = "tool_intent_reviewed" by intent_review,
    Started(Execution) = "tool_execution_started" by started,
    Completed(Execution) = "tool_execution_completed" by completed,
    Failed(Execution) = "tool_execution_failed" by failed,
    /// Something was stored that no tool made.
    Recorded(Bare) = "artifact_recorded" by bare,
    Claimed(Claim) = "claim_issued" by claim,
    Challenged(Challenge) = "claim_challenged" by challenge,
    Finished(FinalStatement) = "final_statement_signed" by final_statement,
    AuditStarted(Bare) = "verification_run_started" by bare,
    Audited(Audit) = "verification_run_completed" by audit,
    Aborted(Abort) = "trace_aborted" by abort,
    Overridden(Override) = "override_recorded" by override_,
}

impl Step {
    /// The step as the ledger stores it.
    pub fn to_payload(&self) -> Payload {
        Payload::stored(self.event_type(), self.fields())
    }
}

/// The beginning of a run: its rules, and who plays which part.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Begun {
    pub policy: Policy,
    pub team: Team,
}

/// Who plays which part. A person may always speak as critic where the policy lets one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Team {
    pub planner: AgentName,
    pub executor: AgentName,
    pub critic: AgentName,
    pub auditor: AgentName,
}

impl Team {
    /// Whoever plays a part, each once.
    pub fn players(&self) -> Vec<AgentName> {
        let parts = [&self.planner, &self.executor, &self.critic, &self.auditor];
        let mut players: Vec<AgentName> = parts.into_iter().cloned().collect();
        players.sort();
        players.dedup();
        players
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Proposal {
    pub proposal_id: Token,
    pub objective: String,
    pub assumptions: Vec<String>,
    pub required_tools: Vec<String>,
    pub expected_evidence: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revises: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProposalReview {
    pub proposal_id: Token,
    pub status: Review,
    /// Each begins with the name of a tool; what follows a colon is for people.
    pub conditions: Vec<String>,
    pub risk: String,
    pub rationale: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Intent {
    pub intent_id: Token,
    pub proposal_id: Token,
    pub tool_name: String,
    /// Of the canonical bytes of what the tool is given. The artifact with this hash is cited when it is run.
    pub normalized_input_hash: Digest,
    pub risk_class: Risk,
    pub justification: String,
    /// The intent that this one takes the place of: it was blocked, or it failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_of: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IntentReview {
    pub intent_id: Token,
    pub status: Answer,
    pub rationale: String,
}

/// A tool that is run, at its beginning or at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Execution {
    pub intent_id: Token,
    pub artifacts: Vec<Digest>,
    /// Where it ran to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i64>,
    /// Where it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Claim {
    pub claim_id: Token,
    pub claim_text: String,
    /// From 0 to 1.
    pub confidence: f64,
    pub evidence: Vec<Digest>,
    /// The intents whose executions it rests on.
    pub executions: Vec<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revises: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Challenge {
    pub claim_id: Token,
    pub reason: String,
    pub evidence: Vec<Digest>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FinalStatement {
    pub claim_ids: Vec<Token>,
    pub verdict_text: String,
    /// The claims of the run whose challenge nobody answered, also those that it does not rest on.
    pub disputed: Vec<Token>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub status: Outcome,
    pub report: Digest,
    /// The event up to which it was verified.
    pub head: Digest,
}

/// A person lets something through that the rules hold up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Override {
    /// A proposal, an intent or a claim.
    pub target: Token,
    pub reason: String,
}

/// Why an operator ends a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Abort {
    pub reason: String,
}

/// What says nothing but that it happened; what stands beside it is for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Bare {}

impl ProposalReview {
    /// The tools that the conditions name.
    pub fn tools(&self) -> impl Iterator<Item = &str> {
        self.conditions.iter().map(|condition| condition.split(':').next().unwrap_or_default().trim())
    }
}

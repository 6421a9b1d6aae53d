//! The critic that knows the policy and nothing else: what it lets through, it lets through for reasons that stand in the policy.

use super::policy::Policy;
use super::run::{Claimed, Intended, Proposed, Run};
use super::step::{Challenge, IntentReview, ProposalReview};
use super::words::{Answer, Review, Risk};
use crate::limits::GUARD_TEXT_CHARS_MAX;

/// The tools that Baton itself offers to agents, by the names that its server gives them.
pub const OWN_TOOLS: [&str; 17] = [
    "get_task",
    "list_ready",
    "claim_task",
    "heartbeat",
    "report_progress",
    "report_completion",
    "request_handoff",
    "answer_handoff",
    "create_task",
    "ask_human",
    "submit_proposal",
    "submit_review",
    "declare_intent",
    "submit_claim",
    "challenge_claim",
    "finish_phase",
    "verify_trace",
];

impl Policy {
    /// The class of a tool as far as the policy or its name tells; an executor may say worse.
    pub fn class_of(&self, tool: &str) -> Risk {
        let by_name = if self.changes_something(tool) { Risk::Medium } else { Risk::Low };
        self.tool_risks.get(tool).copied().unwrap_or(by_name)
    }

    /// Whether the policy says something of a tool of this name.
    pub fn knows(&self, tool: &str) -> bool {
        self.tool_risks.contains_key(tool) || !self.changes_something(tool)
    }
}

impl Run {
    /// What the rules say of a proposal: the tools of the highest class are not theirs to allow.
    pub fn review_by_rules(&self, proposed: &Proposed) -> ProposalReview {
        let tools = &proposed.proposal.required_tools;
        let (high, others): (Vec<_>, Vec<_>) =
            tools.iter().partition(|tool| self.policy.class_of(tool) == Risk::High);
        let names = |tools: &[&String]| tools.iter().map(|tool| tool.as_str()).collect::<Vec<_>>().join(", ");
        let short = |text: String| text.chars().take(GUARD_TEXT_CHARS_MAX).collect::<String>();
        let (status, conditions, rationale) = match (high.is_empty(), others.is_empty()) {
            (true, _) => (Review::Approved, vec![], "no tool that it needs is of class high".to_owned()),
            (false, false) => {
                let conditions = others.iter().map(|tool| (*tool).clone()).collect();
                let why = format!("{} is of class high, which a critic has to allow", names(&high));
                (Review::Conditional, conditions, why)
            }
            (false, true) => {
                let why = format!("every tool that it needs is of class high: {}", names(&high));
                (Review::Rejected, vec![], why)
            }
        };
        let risk = tools.iter().map(|tool| self.policy.class_of(tool)).max().unwrap_or(Risk::Low);
        let proposal_id = proposed.proposal.proposal_id.clone();
        ProposalReview {
            proposal_id,
            status,
            conditions,
            risk: risk.to_string(),
            rationale: short(rationale),
        }
    }

    /// What the rules say of an intent: what the proposal foresees is let through below the highest class.
    pub fn review_intent_by_rules(&self, intended: &Intended) -> IntentReview {
        let intent = &intended.intent;
        let proposed = self.proposal(&intent.proposal_id);
        let is_foreseen =
            proposed.is_some_and(|proposed| proposed.proposal.required_tools.contains(&intent.tool_name));
        let class = self.policy.risk(&intent.tool_name, intent.risk_class);
        let (status, rationale) = match (is_foreseen, class) {
            (_, Risk::High) => (Answer::Blocked, format!("{} is of class high", intent.tool_name)),
            (false, _) => (Answer::Blocked, format!("the proposal does not name {}", intent.tool_name)),
            (true, class) => (Answer::Approved, format!("the proposal names it, and it is of class {class}")),
        };
        IntentReview { intent_id: intent.intent_id.clone(), status, rationale }
    }

    /// What the rules object to in a claim: that it rests on something that failed.
    pub fn challenge_by_rules(&self, claimed: &Claimed) -> Option<Challenge> {
        let claim = &claimed.claim;
        let failed = claim.executions.iter().find(|id| self.intent(id).is_some_and(|run| run.has_failed))?;
        let reason = format!("it rests on {failed}, which failed");
        Some(Challenge { claim_id: claim.claim_id.clone(), reason, evidence: Vec::new() })
    }
}

//! Who may emit what: the role table of a trace, and the types that must be signed.

use std::fmt;
use std::str::FromStr;

/// The part an actor plays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    Planner,
    Executor,
    Critic,
    Auditor,
    /// A person.
    Operator,
    /// Baton itself.
    System,
}

/// The agent name under which Baton itself acts.
pub const OWN_AGENT: &str = "baton";

/// The agent name under which a person acts.
pub const OPERATOR: &str = "operator";

/// The agent name of the critic that knows the policy and nothing else.
pub const RULES: &str = "baton-rules";

/// The agent name of the auditor that is the verifier.
pub const VERIFIER: &str = "baton-verifier";

/// Whether an agent name is one under which Baton itself speaks.
pub fn is_own_name(agent: &str) -> bool {
    matches!(agent, OWN_AGENT | RULES | VERIFIER)
}

/// Why a text is not a [`Role`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected a role (planner, executor, critic, auditor, operator, system), got {0:?}")]
pub struct UnknownRole(String);

impl Role {
    pub const ALL: [Role; 6] =
        [Role::Planner, Role::Executor, Role::Critic, Role::Auditor, Role::Operator, Role::System];

    pub fn as_str(self) -> &'static str {
        match self {
            Role::Planner => "planner",
            Role::Executor => "executor",
            Role::Critic => "critic",
            Role::Auditor => "auditor",
            Role::Operator => "operator",
            Role::System => "system",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = UnknownRole;

    fn from_str(text: &str) -> Result<Self, UnknownRole> {
        Role::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| UnknownRole(text.chars().take(40).collect()))
    }
}

/// Whether events of this type close something: what they say they have seen must be the head.
pub fn closes(event_type: &str) -> bool {
    matches!(
        event_type,
        "final_statement_signed" | "verification_run_completed" | "trace_aborted" | "override_recorded"
    )
}

/// The only role that may emit events of this type, or `None` where every role may.
pub fn role_required(event_type: &str) -> Option<Role> {
    Some(match event_type {
        "proposal_created" => Role::Planner,
        "tool_intent_signed"
        | "tool_execution_started"
        | "tool_execution_completed"
        | "tool_execution_failed"
        | "artifact_recorded"
        | "claim_issued"
        | "final_statement_signed" => Role::Executor,
        "proposal_reviewed" | "tool_intent_reviewed" | "claim_challenged" => Role::Critic,
        "verification_run_started" | "verification_run_completed" => Role::Auditor,
        "trace_aborted" | "override_recorded" => Role::Operator,
        "session_initialized"
        | "key_bound"
        | "key_rotated"
        | "key_revoked"
        | "ledger.created"
        | "ledger.recovered"
        | "trace.opened"
        | "trace.closed" => Role::System,
        _ => return None,
    })
}

/// Whether an event of this type is refused without a signature.
pub fn must_be_signed(event_type: &str) -> bool {
    matches!(
        event_type,
        "proposal_created"
            | "proposal_reviewed"
            | "tool_intent_signed"
            | "tool_intent_reviewed"
            | "claim_issued"
            | "claim_challenged"
            | "final_statement_signed"
            | "verification_run_completed"
            | "override_recorded"
            | "trace_aborted"
            | "AgentSessionCompleted"
            | "key_bound"
            | "key_rotated"
            | "key_revoked"
            | "ledger.created"
            | "ledger.recovered"
            | "task.approved"
            | "task.rejected"
            | "ci.reported"
    )
}

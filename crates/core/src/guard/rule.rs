//! The rules of guarded work on one page: what each asks for, which question of the verifier looks for it, and what satisfies it.

/// Declares the rules.
macro_rules! rules {
    ($($variant:ident $name:literal $question:ident $says:literal $remedy:literal)+) => {
        /// A rule that a step can break.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Rule { $(#[doc = $says] $variant),+ }

        impl Rule {
            pub const ALL: &'static [Rule] = &[$(Rule::$variant),+];

            /// The name under which refusals, reports and the table of rules have it.
            pub fn as_str(self) -> &'static str {
                match self { $(Rule::$variant => $name),+ }
            }

            /// The question that finds it.
            pub fn question(self) -> Question {
                match self { $(Rule::$variant => Question::$question),+ }
            }

            /// What it asks for, in a sentence.
            pub fn says(self) -> &'static str {
                match self { $(Rule::$variant => $says),+ }
            }

            /// What satisfies it.
            pub fn remedy(self) -> &'static str {
                match self { $(Rule::$variant => $remedy),+ }
            }
        }
    };
}

rules! {
    RoleTable "role-table" Role
        "Events of each type come from one role."
        "Let an agent of the right role say it, with its own key."
    TeamMember "team-member" Role
        "Who plays a part is who the run names for it."
        "Let the agent that the run's first event names for this part say it, or begin a run with another team."
    CriticKind "critic-kind" Role
        "The policy says who may be critic."
        "Let a critic say it that the policy's `critics` names: an agent, a person or the rules."
    OwnWork "own-work" Role
        "Nobody judges what they did."
        "Let somebody else judge it: an agent and a key are executor or critic of a run, never both."
    Beginning "beginning" State
        "A run begins with `session_initialized`, and with nothing else."
        "Leave it to Baton to begin a run: one session_initialized, signed by the ledger, at its beginning."
    Place "place" State
        "The state of the run has a place for it."
        "Go through the states in their order; `baton trace show` lists what was said so far."
    NewName "new-name" Order
        "A name is given once."
        "Give it an id that does not occur in the run."
    Subject "subject" Order
        "What a step is about stands before it."
        "Name something that stands in the run before it; `baton trace show` lists it."
    SeenSubject "seen-subject" Order
        "Whoever reacts to something knew of it."
        "Read the run anew, and say in `seen` an event that is not older than what is reacted to."
    SeenHead "seen-head" Order
        "Whoever closes something knew of everything."
        "Read the run anew up to its end, say in `seen` its last event, and try again."
    IntentFirst "intent-first" Order
        "No tool runs without an intent."
        "Sign a tool_intent_signed for it first, and name its intent_id in the execution."
    RunOnce "run-once" Order
        "One intent, one execution: a retry needs a new one."
        "Sign a new intent, with `retry_of`, and run that."
    ExecutionFirst "execution-first" Order
        "No claim before what it rests on has ended."
        "Wait until the executions that it names are completed or failed, or leave them out."
    Fallbacks "fallbacks" Order
        "As many proposals may follow tools that failed as the policy says."
        "Revise a proposal (`revises`), or let the policy's `max_fallbacks` allow more after tools that failed."
    ProposalApproved "proposal-approved" Approval
        "Nothing is done for a proposal that is not approved."
        "Have the proposal approved, or propose anew where it was rejected."
    Conditions "conditions" Approval
        "A condition lets only the tools through that it names."
        "Use a tool that the conditions name, or have a proposal approved that needs this one."
    IntentApproved "intent-approved" Approval
        "A risky tool waits for its review."
        "Wait for a tool_intent_reviewed that approves it."
    IntentBlocked "intent-blocked" Approval
        "What was blocked stays blocked."
        "Sign a revised intent, with `retry_of`, and have that approved."
    SameInput "same-input" Approval
        "What is run is what was intended."
        "Run the tool with the input whose hash the intent has, and cite that input as an artifact."
    Budget "budget" Approval
        "A run uses no more than its budget."
        "The run has used what it may; finish it, or begin one with another policy."
    ExecutionEvidence "execution-evidence" Evidence
        "Every execution leaves its input or its output."
        "Store the tool's input or output as an artifact, and cite it."
    ClaimEvidence "claim-evidence" Evidence
        "A claim cites enough."
        "Cite as many artifacts in `evidence` as the policy's `min_evidence` asks for."
    Cited "cited" Evidence
        "A challenge and a verdict cite what they name."
        "Store the evidence or the report as an artifact, and cite it among the event's `artifacts`."
    FinalClaims "final-claims" Finalization
        "The final statement rests on claims that stand."
        "Name claims of this run, at least one, that no later claim revises and that have their evidence."
    FinalRest "final-rest" Finalization
        "Nothing is running when it is made."
        "Wait until every tool that was started is completed or failed."
    Disputes "disputes" Dispute
        "Challenges are answered, or named where the policy only warns."
        "Answer the challenge with a revised claim; where the policy only warns, name the claim in `disputed`."
    AfterFinal "after-final" Order
        "After the final statement only the auditor speaks."
        "The work is stated to be final: begin another run for what is left."
    AfterAudit "after-audit" Order
        "After the verification nothing comes but the end."
        "The run is verified and ends: begin another one."
    AuditStarted "audit-started" Order
        "A verification begins before it ends."
        "Record a verification_run_started first."
    AuditFinal "audit-final" Finalization
        "Nothing passes without a final statement."
        "Sign the final statement first; a verification that fails needs none."
    AuditHead "audit-head" Finalization
        "What was verified is what stands there."
        "Verify up to the last event, and give its hash in `head` and in `seen`."
    Closing "closing" State
        "A run is closed when it has ended."
        "Have the run verified or aborted first."
}

/// A group of questions that the verifier asks together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Question {
    Role,
    Order,
    State,
    Evidence,
    Approval,
    Finalization,
    /// As the policy says: a failure or a warning.
    Dispute,
}

impl Question {
    /// The guard that asks it at the append.
    pub fn guard(self) -> &'static str {
        match self {
            Question::Role => "role",
            Question::Order | Question::State => "order",
            Question::Approval => "action",
            Question::Evidence => "evidence",
            Question::Finalization | Question::Dispute => "finalization",
        }
    }
}

/// A rule that is broken, and by what.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("expected {expected}; {found} (rule {})", rule.as_str())]
pub struct Breach {
    pub rule: Rule,
    pub expected: String,
    pub found: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_rule_has_a_name_of_its_own_and_says_what_satisfies_it() {
        let names: BTreeSet<&str> = Rule::ALL.iter().map(|rule| rule.as_str()).collect();
        assert_eq!(names.len(), Rule::ALL.len());
        assert!(Rule::ALL.iter().all(|rule| rule.remedy().ends_with('.')));
    }
}

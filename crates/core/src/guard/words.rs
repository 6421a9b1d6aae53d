//! The words of guarded work: states, classes of risk, answers of reviews, profiles.

use crate::words::words;

words!(
    /// Where a guarded run stands. They are passed through from the first to the last; the last three are ends.
    State,
    "initialized, planning, reviewing, executing, claiming, auditing, completed, failed or aborted" {
        Initialized = "initialized",
        Planning = "planning",
        Reviewing = "reviewing",
        Executing = "executing",
        Claiming = "claiming",
        Auditing = "auditing",
        Completed = "completed",
        Failed = "failed",
        Aborted = "aborted",
    }
);

impl State {
    pub fn is_end(self) -> bool {
        self >= State::Completed
    }
}

words!(
    /// What may go wrong if a tool is run.
    Risk, "low, medium or high" {
        Low = "low",
        Medium = "medium",
        High = "high",
    }
);

words!(
    /// What a critic says of a proposal.
    Review, "approved, conditional or rejected" {
        Approved = "approved",
        /// For the tools that the conditions name, and no others.
        Conditional = "conditional",
        Rejected = "rejected",
    }
);

words!(
    /// What a critic says of an intent.
    Answer, "approved or blocked" {
        Approved = "approved",
        Blocked = "blocked",
    }
);

words!(
    /// What the verifier said of a run.
    Outcome, "pass, pass-with-warnings or fail" {
        Pass = "pass",
        Warnings = "pass-with-warnings",
        Fail = "fail",
    }
);

words!(
    /// A set of rules that has a name.
    Profile, "strict, default or lenient" {
        Strict = "strict",
        Default = "default",
        Lenient = "lenient",
    }
);

words!(
    /// What a challenge that nobody answered does.
    Disputes, "fail or warn" {
        /// Nothing is finished with one.
        Fail = "fail",
        /// It has to be named in the final statement, and is warned of.
        Warn = "warn",
    }
);

words!(
    /// Who a critic is.
    Critic, "agent, person or rules" {
        Agent = "agent",
        Person = "person",
        /// Baton's own, which knows the policy and nothing else.
        Rules = "rules",
    }
);

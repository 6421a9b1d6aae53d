//! Guarded work: planned, reviewed, executed, claimed and audited by different agents, where the rules hold before anything is written.
//!
//! One [`Run`] is folded from the events of its trace. [`Run::admit`] is asked before an event is sealed, and again by whoever verifies: one rule,
//! two sides. See the README beside this file.

mod admit;
mod critic;
mod next;
mod policy;
mod read;
mod reply;
mod rule;
mod run;
mod step;
#[cfg(test)]
mod tests;
mod words;

pub use critic::OWN_TOOLS;
pub use next::{Known, Next};
pub use policy::{Budgets, Policy};
pub use reply::{Declared, Reply};
pub use rule::{Breach, Question, Rule};
pub use run::{Claimed, Intended, Proposed, RUN_BEGINS, Run, Said};
pub use step::{
    Abort, Audit, Bare, Begun, Challenge, Claim, Execution, FinalStatement, Intent, IntentReview, Override,
    Proposal, ProposalReview, Step, Team,
};
pub use words::{Answer, Critic, Disputes, Outcome, Profile, Review, Risk, State};

//! What a guarded run has to observe, as data: it stands in the first event of the run, so that whoever verifies it later asks for the same.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::words::{Critic, Disputes, Profile, Risk};

/// The rules of one run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    pub profile: Profile,
    /// From this class on an intent waits for its review.
    pub risk_threshold: Risk,
    /// Classes of single tools. An executor may say that a tool is worse than this, never that it is better.
    #[serde(default)]
    pub tool_risks: BTreeMap<String, Risk>,
    /// Tools that change nothing. Every other one that the proposal does not name waits for a review, whatever its class.
    #[serde(default)]
    pub read_only: Vec<String>,
    /// Artifacts that a claim has to cite.
    pub min_evidence: u32,
    pub open_disputes: Disputes,
    pub critics: Vec<Critic>,
    /// Critics who have to approve a proposal.
    pub approvals: u32,
    /// Proposals that may follow a tool that failed.
    pub max_fallbacks: u32,
    #[serde(default)]
    pub budgets: Budgets,
}

/// Where a run ends, whatever it has reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budgets {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_clock_ms: Option<u64>,
    /// Tools that are run, those that fail included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
}

impl Budgets {
    /// Why a run may not go on: what it took of time and tokens. How many tools it runs is held against a rule, tool by tool.
    pub fn overspent(&self, took_ms: u64, tokens: u64) -> Option<String> {
        if let Some(most) = self.wall_clock_ms.filter(|most| took_ms > *most) {
            return Some(format!("budget: the run took longer than {most} ms"));
        }
        let most = self.tokens.filter(|most| tokens > *most)?;
        Some(format!("budget: {tokens} tokens were used, and at most {most} may be"))
    }
}

/// Tools that only look, by the names that Baton and the agent protocol give them.
const READ_ONLY: [&str; 6] = ["read_file", "list_files", "grep", "search", "read", "think"];

/// Tools whose names tell what they can do.
const RISKS: [(&str, Risk); 12] = [
    ("apply_patch", Risk::Medium),
    ("bash", Risk::High),
    ("delete", Risk::High),
    ("edit", Risk::Medium),
    ("edit_file", Risk::Medium),
    ("execute", Risk::High),
    ("fetch", Risk::High),
    ("git_push", Risk::High),
    ("move", Risk::Medium),
    ("run_command", Risk::High),
    ("shell", Risk::High),
    ("write_file", Risk::Medium),
];

impl Policy {
    /// A profile, with nothing changed.
    pub fn of(profile: Profile) -> Policy {
        let (risk_threshold, open_disputes, max_fallbacks, critics) = match profile {
            Profile::Strict => (Risk::Low, Disputes::Fail, 0, vec![Critic::Agent, Critic::Person]),
            Profile::Default => {
                (Risk::Medium, Disputes::Warn, 1, vec![Critic::Agent, Critic::Person, Critic::Rules])
            }
            Profile::Lenient => {
                (Risk::High, Disputes::Warn, 3, vec![Critic::Agent, Critic::Person, Critic::Rules])
            }
        };
        Policy {
            profile,
            risk_threshold,
            tool_risks: RISKS.map(|(tool, risk)| (tool.to_owned(), risk)).into_iter().collect(),
            read_only: READ_ONLY.map(str::to_owned).to_vec(),
            min_evidence: 1,
            open_disputes,
            critics,
            approvals: 1,
            max_fallbacks,
            budgets: Budgets::default(),
        }
    }

    /// The class of a tool: what the executor says of it, or what the policy or its name tells, whichever is worse.
    pub fn risk(&self, tool: &str, said: Risk) -> Risk {
        self.class_of(tool).max(said)
    }

    /// Whether a tool waits for a review before it is run.
    pub fn needs_review(&self, tool: &str, said: Risk, is_foreseen: bool) -> bool {
        self.risk(tool, said) >= self.risk_threshold || !is_foreseen && self.changes_something(tool)
    }

    /// Whether a tool may change something, as far as its name tells.
    pub fn changes_something(&self, tool: &str) -> bool {
        !self.read_only.iter().any(|known| known == tool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_is_read_back_as_it_was_written() {
        for profile in Profile::ALL {
            let mut policy = Policy::of(*profile);
            policy.tool_risks.insert("deploy".into(), Risk::High);
            policy.budgets.tool_calls = Some(9);
            let text = serde_json::to_string(&policy).unwrap();
            assert_eq!(serde_json::from_str::<Policy>(&text).unwrap(), policy, "{text}");
        }
    }

    #[test]
    fn a_budget_is_used_up_by_what_is_more_than_it() {
        let budgets = Budgets { wall_clock_ms: Some(1000), tool_calls: None, tokens: Some(50) };
        assert_eq!(budgets.overspent(1000, 50), None);
        assert_eq!(budgets.overspent(1001, 51).as_deref(), Some("budget: the run took longer than 1000 ms"));
        assert_eq!(
            budgets.overspent(0, 51).as_deref(),
            Some("budget: 51 tokens were used, and at most 50 may be")
        );
        assert_eq!(Budgets::default().overspent(u64::MAX, u64::MAX), None);
    }

    #[test]
    fn the_worse_of_two_classes_counts() {
        let mut policy = Policy::of(Profile::Default);
        policy.tool_risks.insert("deploy".into(), Risk::High);
        policy.tool_risks.insert("look".into(), Risk::Low);
        assert_eq!(policy.risk("deploy", Risk::Low), Risk::High);
        assert_eq!(policy.risk("look", Risk::Medium), Risk::Medium);
        // Of a tool that nobody knows, the one who wants to run it does not say that it is harmless.
        assert_eq!(policy.risk("other", Risk::Low), Risk::Medium);
        assert_eq!(policy.risk("read_file", Risk::Low), Risk::Low);
    }

    #[test]
    fn what_is_risky_waits_for_a_review() {
        let policy = Policy::of(Profile::Default);
        for (tool, risk, is_foreseen, waits) in [
            ("list_files", Risk::Low, true, false),
            ("list_files", Risk::Medium, true, true),
            ("make", Risk::Low, true, true),
            ("make", Risk::Low, false, true),
            // Nobody makes it harmless by saying so.
            ("write_file", Risk::Low, true, true),
            ("run_command", Risk::Low, true, true),
            ("read_file", Risk::Low, false, false),
            ("read_file", Risk::High, true, true),
        ] {
            assert_eq!(policy.needs_review(tool, risk, is_foreseen), waits, "{tool} {risk} {is_foreseen}");
        }
        assert!(Policy::of(Profile::Strict).needs_review("read_file", Risk::Low, true));
    }
}

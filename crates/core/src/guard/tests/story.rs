//! A run that is told step by step.

use crate::guard::*;
use crate::ids::{Digest, KeyId, Token};
use crate::roles::{OPERATOR, OWN_AGENT, Role};

pub(super) const PLANNER: (&str, Role) = ("ada", Role::Planner);
pub(super) const EXECUTOR: (&str, Role) = ("bob", Role::Executor);
pub(super) const CRITIC: (&str, Role) = ("cleo", Role::Critic);
pub(super) const AUDITOR: (&str, Role) = ("dora", Role::Auditor);
pub(super) const PERSON: (&str, Role) = (OPERATOR, Role::Operator);

pub(super) fn id(text: &str) -> Token {
    text.parse().unwrap()
}

pub(super) fn hash(n: u8) -> Digest {
    Digest([n; 32])
}

pub(super) fn key(n: u8) -> KeyId {
    format!("key_ed25519_{n:016x}").parse().unwrap()
}

pub(super) fn begun(policy: Policy) -> Step {
    let name = |name: &str| name.parse().unwrap();
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("cleo"), auditor: name("dora") };
    Step::Begun(Begun { policy, team })
}

pub(super) fn proposal(name: &str) -> Step {
    Step::Proposed(Proposal {
        proposal_id: id(name),
        objective: "mend it".into(),
        assumptions: vec![],
        required_tools: vec!["make_file".into(), "run_command".into()],
        expected_evidence: vec!["the test's output".into()],
        revises: None,
    })
}

pub(super) fn revision(name: &str, of: &str) -> Step {
    let Step::Proposed(proposal) = proposal(name) else { unreachable!() };
    Step::Proposed(Proposal { revises: Some(id(of)), ..proposal })
}

pub(super) fn review(of: &str, status: Review) -> Step {
    let conditions = if status == Review::Conditional { vec!["make_file: below src".into()] } else { vec![] };
    let (risk, rationale) = ("small".into(), "as I see it".into());
    Step::Reviewed(ProposalReview { proposal_id: id(of), status, conditions, risk, rationale })
}

pub(super) fn intent_of(name: &str, tool: &str, risk_class: Risk) -> Intent {
    Intent {
        intent_id: id(name),
        proposal_id: id("p1"),
        tool_name: tool.into(),
        normalized_input_hash: hash(1),
        risk_class,
        justification: "it is needed".into(),
        retry_of: None,
    }
}

pub(super) fn intent(name: &str, risk: Risk) -> Step {
    Step::Intended(intent_of(name, "make_file", risk))
}

pub(super) fn retry(name: &str, of: &str) -> Step {
    Step::Intended(Intent { retry_of: Some(id(of)), ..intent_of(name, "make_file", Risk::Low) })
}

pub(super) fn answer(of: &str, status: Answer) -> Step {
    Step::IntentReviewed(IntentReview { intent_id: id(of), status, rationale: "as I see it".into() })
}

pub(super) fn execution(of: &str, artifact: u8) -> Execution {
    Execution { intent_id: id(of), artifacts: vec![hash(artifact)], exit_status: None, failure: None }
}

pub(super) fn started(of: &str) -> Step {
    Step::Started(execution(of, 1))
}

pub(super) fn completed(of: &str) -> Step {
    Step::Completed(Execution { exit_status: Some(0), ..execution(of, 2) })
}

pub(super) fn failed(of: &str) -> Step {
    Step::Failed(Execution { failure: Some("it was not there".into()), ..execution(of, 2) })
}

pub(super) fn claim_of(name: &str) -> Claim {
    Claim {
        claim_id: id(name),
        claim_text: "it works".into(),
        confidence: 0.9,
        evidence: vec![hash(2)],
        executions: vec![id("i1")],
        revises: None,
    }
}

pub(super) fn claim(name: &str) -> Step {
    Step::Claimed(claim_of(name))
}

pub(super) fn challenge(of: &str) -> Step {
    Step::Challenged(Challenge { claim_id: id(of), reason: "it does not".into(), evidence: vec![] })
}

pub(super) fn statement(claims: &[&str], disputed: &[&str]) -> Step {
    let ids = |names: &[&str]| names.iter().map(|name| id(name)).collect();
    let verdict_text = "done".into();
    Step::Finished(FinalStatement { claim_ids: ids(claims), verdict_text, disputed: ids(disputed) })
}

pub(super) fn audit_started() -> Step {
    Step::AuditStarted(Bare {})
}

/// The hash of an event is its number here.
pub(super) fn at(seq: u64) -> Digest {
    hash(seq as u8)
}

/// A run that is being told.
pub(super) struct Story {
    pub(super) run: Run,
    pub(super) seq: u64,
}

/// What is told differently from how it usually is.
#[derive(Default)]
pub(super) struct Odd {
    pub(super) seen: Option<u64>,
    pub(super) is_blind: bool,
    pub(super) key: Option<KeyId>,
    pub(super) cites_nothing: bool,
}

impl Story {
    pub(super) fn new(mut policy: Policy) -> Story {
        policy.tool_risks.insert("make_file".into(), Risk::Low);
        let step = begun(policy);
        let said = Said {
            event_type: step.event_type(),
            step: Some(&step),
            agent: OWN_AGENT,
            role: Role::System,
            key: Some(key(0)),
            seq: 1,
            seen: None,
            cited: &[],
        };
        Run::admit_beginning(&said).unwrap();
        Story { run: Run::begin(&said).unwrap(), seq: 1 }
    }

    pub(super) fn default() -> Story {
        Story::new(Policy::of(Profile::Default))
    }

    pub(super) fn try_odd(&mut self, who: (&str, Role), step: &Step, odd: &Odd) -> Result<(), Breach> {
        let cited: Vec<Digest> = match step {
            _ if odd.cites_nothing => vec![],
            Step::Started(execution) | Step::Completed(execution) | Step::Failed(execution) => {
                execution.artifacts.clone()
            }
            Step::Claimed(claim) => claim.evidence.clone(),
            Step::Challenged(challenge) => challenge.evidence.clone(),
            Step::Audited(audit) => vec![audit.report],
            _ => vec![],
        };
        let seen = odd.seen.unwrap_or(self.seq);
        let said = Said {
            event_type: step.event_type(),
            step: Some(step),
            agent: who.0,
            role: who.1,
            key: odd.key,
            seq: self.seq + 1,
            seen: (!odd.is_blind).then(|| (seen, at(seen))),
            cited: &cited,
        };
        self.run.admit(&said)?;
        self.run.apply(&said);
        self.seq += 1;
        Ok(())
    }

    pub(super) fn try_say(&mut self, who: (&str, Role), step: &Step) -> Result<(), Breach> {
        self.try_odd(who, step, &Odd::default())
    }

    /// Says what keeps the rules.
    pub(super) fn say(&mut self, who: (&str, Role), step: &Step) -> &mut Story {
        self.try_say(who, step).unwrap();
        self
    }

    /// What has no step: a note, the end.
    pub(super) fn try_other(&mut self, who: (&str, Role), event_type: &str) -> Result<(), Breach> {
        let said = Said {
            event_type,
            step: None,
            agent: who.0,
            role: who.1,
            key: None,
            seq: self.seq + 1,
            seen: None,
            cited: &[],
        };
        self.run.admit(&said)?;
        self.run.apply(&said);
        self.seq += 1;
        Ok(())
    }

    pub(super) fn audit(&self, status: Outcome) -> Step {
        Step::Audited(Audit { status, report: hash(9), head: at(self.seq) })
    }

    pub(super) fn planned(mut self) -> Story {
        self.say(PLANNER, &proposal("p1")).say(CRITIC, &review("p1", Review::Approved));
        self
    }

    pub(super) fn executed(self) -> Story {
        let mut story = self.planned();
        story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &started("i1"));
        story.say(EXECUTOR, &completed("i1"));
        story
    }

    pub(super) fn claimed(self) -> Story {
        let mut story = self.executed();
        story.say(EXECUTOR, &claim("c1"));
        story
    }

    pub(super) fn finished(self) -> Story {
        let mut story = self.claimed();
        story.say(EXECUTOR, &statement(&["c1"], &[]));
        story
    }

    #[track_caller]
    pub(super) fn breaks(&mut self, rule: Rule, who: (&str, Role), step: &Step) {
        self.breaks_oddly(rule, who, step, &Odd::default());
    }

    #[track_caller]
    pub(super) fn breaks_oddly(&mut self, rule: Rule, who: (&str, Role), step: &Step, odd: &Odd) {
        let before = self.run.clone();
        let breach = self.try_odd(who, step, odd).expect_err("it breaks a rule");
        assert_eq!(breach.rule, rule, "{breach}");
        assert!(!breach.expected.is_empty() && !breach.found.is_empty(), "{breach}");
        assert_eq!(self.run, before, "what is refused changes nothing");
    }
}

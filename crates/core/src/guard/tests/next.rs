//! A run that only ever does what comes next comes to its end; and wherever it is cut off, it goes on from there.

use super::story::*;
use crate::guard::*;
use crate::roles::Role;

const IDLE: Known = Known { is_executing: false, has_report: false, is_examined: false, is_answered: false };
const AT_WORK: Known = Known { is_executing: true, ..IDLE };
const THROUGH: Known = Known { has_report: true, ..IDLE };

#[test]
fn one_step_follows_another_to_the_end() {
    let mut story = Story::default();
    let propose = |instead_of: Option<&str>| Next::Propose { instead_of: instead_of.map(id) };
    assert_eq!(story.run.next(IDLE), propose(None));
    story.say(PLANNER, &proposal("p1"));
    assert_eq!(story.run.next(IDLE), Next::Review(id("p1")));
    story.say(CRITIC, &review("p1", Review::Rejected));
    assert_eq!(story.run.next(IDLE), propose(Some("p1")));
    story.say(PLANNER, &revision("p2", "p1"));
    assert_eq!(story.run.next(IDLE), Next::Review(id("p2")));
    story.say(CRITIC, &review("p2", Review::Approved));
    assert_eq!(story.run.next(IDLE), Next::Execute);
    assert_eq!(story.run.next(THROUGH), Next::Stuck);
    let on_p2 = |name: &str, risk| {
        Step::Intended(Intent { proposal_id: id("p2"), ..intent_of(name, "make_file", risk) })
    };
    story.say(EXECUTOR, &on_p2("i1", Risk::High));
    assert_eq!(story.run.next(AT_WORK), Next::ReviewIntent(id("i1")));
    assert_eq!(story.run.next(IDLE), Next::Execute, "whoever meant to do it is gone");
    story.say(CRITIC, &answer("i1", Answer::Approved)).say(EXECUTOR, &started("i1"));
    assert_eq!(story.run.next(AT_WORK), Next::Execute);
    assert_eq!(story.run.next(IDLE), Next::Settle(id("i1")));
    story.say(EXECUTOR, &completed("i1"));
    assert_eq!(story.run.next(IDLE), Next::Execute);
    assert_eq!(story.run.next(THROUGH), Next::Claim);
    story.say(EXECUTOR, &claim("c1"));
    assert_eq!(story.run.next(THROUGH), Next::Examine(vec![id("c1")]));
    story.say(CRITIC, &challenge("c1"));
    assert_eq!(story.run.next(THROUGH), Next::Answer(id("c1")));
    let examined = Known { is_examined: true, is_answered: true, ..THROUGH };
    assert_eq!(story.run.next(examined), Next::Finish, "the policy only warns");
    story.say(EXECUTOR, &Step::Claimed(Claim { revises: Some(id("c1")), ..claim_of("c2") }));
    assert_eq!(story.run.next(THROUGH), Next::Examine(vec![id("c2")]));
    assert_eq!(story.run.next(examined), Next::Finish);
    story.say(EXECUTOR, &statement(&["c2"], &[]));
    assert_eq!(story.run.next(IDLE), Next::Audit);
    story.say(AUDITOR, &audit_started());
    assert_eq!(story.run.next(IDLE), Next::Audit);
    let audit = story.audit(Outcome::Pass);
    story.say(AUDITOR, &audit);
    assert_eq!(story.run.next(IDLE), Next::Close);
}

#[test]
fn a_tool_whose_end_nobody_knows_is_settled_before_anything_else() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &intent("i2", Risk::Low));
    story.say(EXECUTOR, &started("i2")).say(EXECUTOR, &started("i1"));
    // In the order in which they were intended.
    assert_eq!(story.run.next(THROUGH), Next::Settle(id("i1")));
    story.say(EXECUTOR, &failed("i1"));
    assert_eq!(story.run.next(THROUGH), Next::Settle(id("i2")));
    story.say(EXECUTOR, &failed("i2"));
    assert_eq!(story.run.next(IDLE), Next::Execute);
}

#[test]
fn a_proposal_that_follows_a_failure_is_reviewed_like_any_other() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &started("i1")).say(EXECUTOR, &failed("i1"));
    story.say(PLANNER, &proposal("p2"));
    assert_eq!(story.run.next(IDLE), Next::Review(id("p2")));
    story.say(("operator", Role::Critic), &review("p2", Review::Rejected));
    assert_eq!(story.run.next(IDLE), Next::Execute, "the first one is still approved");
}

#[test]
fn a_claim_in_the_middle_of_the_work_does_not_end_the_work() {
    let mut story = Story::default().executed();
    story.say(EXECUTOR, &claim("c1"));
    assert_eq!(story.run.next(AT_WORK), Next::Execute);
    assert_eq!(story.run.next(IDLE), Next::Execute, "whoever made the claim is gone, and was not through");
    assert_eq!(story.run.next(THROUGH), Next::Examine(vec![id("c1")]));
    story.say(CRITIC, &challenge("c1"));
    assert_eq!(story.run.next(IDLE), Next::Execute, "a challenge does not end it either");
    assert_eq!(story.run.next(THROUGH), Next::Answer(id("c1")));
}

#[test]
fn what_was_done_after_a_claim_is_claimed_too() {
    let mut story = Story::default().claimed();
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(EXECUTOR, &started("i2"));
    assert_eq!(story.run.next(AT_WORK), Next::Execute);
    story.say(EXECUTOR, &completed("i2"));
    assert_eq!(story.run.next(THROUGH), Next::Claim);
    story.say(EXECUTOR, &claim("c2"));
    assert_eq!(story.run.next(THROUGH), Next::Examine(vec![id("c1"), id("c2")]));
    // What nobody would let through any more is not claimed, and a claim that rests on nothing else has no ground.
    let is_groundless = |run: &Run| run.claim(&id("c1")).is_some_and(|claimed| run.is_groundless(claimed));
    assert!(!is_groundless(&story.run));
    story.say(("operator", Role::Critic), &review("p1", Review::Rejected));
    assert!(is_groundless(&story.run));
    assert_eq!(story.run.done().count(), 0);
    // Nor has one that does not say what it rests on.
    let silent = Step::Claimed(Claim { executions: vec![], ..claim_of("c3") });
    story.say(EXECUTOR, &silent);
    assert!(story.run.claim(&id("c3")).is_some_and(|claimed| story.run.is_groundless(claimed)));
    story.say(PLANNER, &revision("p2", "p1")).say(CRITIC, &review("p2", Review::Approved));
    assert_eq!(story.run.next(IDLE), Next::Execute);
}

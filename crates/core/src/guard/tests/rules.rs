//! Every rule as a pair: a history that keeps it, and one that breaks it.

use super::story::*;
use crate::guard::*;
use crate::ids::Digest;
use crate::roles::{OPERATOR, OWN_AGENT, RULES, Role};

#[test]
fn a_run_goes_through_its_states_in_their_order() {
    let mut story = Story::default();
    assert_eq!(story.run.state(), State::Planning);
    story.say(PLANNER, &proposal("p1"));
    assert_eq!(story.run.state(), State::Reviewing);
    story.say(CRITIC, &review("p1", Review::Approved));
    assert_eq!(story.run.state(), State::Executing);
    story.say(EXECUTOR, &intent("i1", Risk::High)).say(CRITIC, &answer("i1", Answer::Approved));
    story.say(EXECUTOR, &started("i1"));
    assert_eq!(story.run.state(), State::Executing);
    story.say(EXECUTOR, &completed("i1"));
    assert_eq!(story.run.state(), State::Claiming);
    story.say(EXECUTOR, &claim("c1"));
    assert_eq!(story.run.state(), State::Auditing);
    // Earlier things stay possible until the final statement.
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(PLANNER, &revision("p2", "p1"));
    story.say(EXECUTOR, &statement(&["c1"], &[])).say(AUDITOR, &audit_started());
    let audit = story.audit(Outcome::Pass);
    story.say(AUDITOR, &audit);
    assert_eq!(story.run.state(), State::Completed);
    story.try_other((OWN_AGENT, Role::System), "trace.closed").unwrap();
}

#[test]
fn a_verification_that_fails_and_an_abort_end_a_run_in_any_state() {
    let stories = [
        Story::default(),
        Story::default().planned(),
        Story::default().executed(),
        Story::default().claimed(),
        Story::default().finished(),
    ];
    for mut story in stories {
        let mut aborted = Story { run: story.run.clone(), seq: story.seq };
        story.say(AUDITOR, &audit_started());
        let audit = story.audit(Outcome::Fail);
        story.say(AUDITOR, &audit);
        assert_eq!(story.run.state(), State::Failed);
        aborted.say(PERSON, &Step::Aborted(Abort { reason: "enough".into() }));
        assert_eq!(aborted.run.state(), State::Aborted);
    }
}

#[test]
fn only_the_role_of_a_type_says_it() {
    let table: [(&[&str], Role); 6] = [
        (&["proposal_created"], Role::Planner),
        (
            &[
                "tool_intent_signed",
                "tool_execution_started",
                "tool_execution_completed",
                "tool_execution_failed",
                "artifact_recorded",
                "claim_issued",
                "final_statement_signed",
            ],
            Role::Executor,
        ),
        (&["proposal_reviewed", "tool_intent_reviewed", "claim_challenged"], Role::Critic),
        (&["verification_run_started", "verification_run_completed"], Role::Auditor),
        (&["trace_aborted", "override_recorded"], Role::Operator),
        (&["session_initialized"], Role::System),
    ];
    assert_eq!(table.iter().map(|(types, _)| types.len()).sum::<usize>(), Step::TYPES.len());
    for (types, required) in table {
        for event_type in types {
            assert_eq!(crate::roles::role_required(event_type), Some(required), "{event_type}");
            for role in Role::ALL.into_iter().filter(|role| *role != required) {
                let mut story = Story::default();
                let refused = story.try_other(("x", role), event_type).unwrap_err();
                assert_eq!(refused.rule, Rule::RoleTable, "{event_type} by {role}");
            }
        }
    }
}

#[test]
fn a_part_is_played_by_whom_the_run_names_for_it() {
    Story::default().say(PLANNER, &proposal("p1"));
    Story::default().breaks(Rule::TeamMember, ("bob", Role::Planner), &proposal("p1"));
    let mut story = Story::default().planned();
    story.breaks(Rule::TeamMember, ("ada", Role::Executor), &intent("i1", Risk::Low));
    let mut story = Story::default();
    story.say(PLANNER, &proposal("p1"));
    story.breaks(Rule::TeamMember, ("eve", Role::Critic), &review("p1", Review::Approved));
    Story::default().finished().breaks(Rule::TeamMember, ("eve", Role::Auditor), &audit_started());
}

#[test]
fn who_may_be_critic_is_said_by_the_policy() {
    for (profile, critic, may) in [
        (Profile::Default, OPERATOR, true),
        (Profile::Default, RULES, true),
        (Profile::Strict, OPERATOR, true),
        (Profile::Strict, RULES, false),
    ] {
        let mut story = Story::new(Policy::of(profile));
        story.say(PLANNER, &proposal("p1"));
        let (who, step) = ((critic, Role::Critic), review("p1", Review::Approved));
        match may {
            true => drop(story.say(who, &step)),
            false => story.breaks(Rule::CriticKind, who, &step),
        }
    }
    let people = Policy { critics: vec![Critic::Person], ..Policy::of(Profile::Default) };
    let mut story = Story::new(people);
    story.say(PLANNER, &proposal("p1"));
    story.breaks(Rule::CriticKind, CRITIC, &review("p1", Review::Approved));
}

#[test]
fn nobody_judges_their_own_work_by_name_or_by_key() {
    let with = |n| Odd { key: Some(key(n)), ..Odd::default() };
    let mut story = Story::default().planned();
    story.try_odd(EXECUTOR, &intent("i1", Risk::High), &with(1)).unwrap();
    story.breaks_oddly(Rule::OwnWork, CRITIC, &answer("i1", Answer::Approved), &with(1));
    story.try_odd(CRITIC, &answer("i1", Answer::Approved), &with(2)).unwrap();
    story.breaks_oddly(Rule::OwnWork, EXECUTOR, &started("i1"), &with(2));
    // What was blocked is not let through by who wants to run it, though its key be an operator's too.
    let mut story = Story::default().planned();
    story.try_odd(EXECUTOR, &intent("i1", Risk::High), &with(1)).unwrap();
    story.say(CRITIC, &answer("i1", Answer::Blocked));
    let over = Step::Overridden(Override { target: id("i1"), reason: "I want to".into() });
    story.breaks(Rule::OwnWork, ("bob", Role::Operator), &over);
    story.breaks_oddly(Rule::OwnWork, PERSON, &over, &with(1));
    story.try_odd(PERSON, &over, &with(3)).unwrap();
    // A note makes nobody executor or critic.
    let mut story = Story::default();
    story.try_other(("cleo", Role::Executor), "note").unwrap();
    story.try_other(("bob", Role::Critic), "note").unwrap();
    let mut story = story.planned();
    story.say(EXECUTOR, &intent("i1", Risk::High)).say(CRITIC, &answer("i1", Answer::Approved));
    story.say(EXECUTOR, &started("i1"));
    // A team whose critic executes.
    let policy = Policy::of(Profile::Default);
    let name = |name: &str| name.parse().unwrap();
    let team =
        Team { planner: name("ada"), executor: name("bob"), critic: name("bob"), auditor: name("dora") };
    let mut story = Story::default();
    story.run = Run { team, policy, ..story.run };
    story.say(PLANNER, &proposal("p1"));
    story.breaks(Rule::OwnWork, ("bob", Role::Critic), &review("p1", Review::Approved));
}

#[test]
fn a_challenge_and_a_verdict_cite_what_they_name() {
    let mut story = Story::default().claimed();
    let grounds = Challenge { claim_id: id("c1"), reason: "see there".into(), evidence: vec![hash(3)] };
    let challenged = Step::Challenged(grounds);
    let uncited = Odd { cites_nothing: true, ..Odd::default() };
    story.breaks_oddly(Rule::Cited, CRITIC, &challenged, &uncited);
    story.say(CRITIC, &challenged);
    let mut story = Story::default().finished();
    story.say(AUDITOR, &audit_started());
    let audit = story.audit(Outcome::Pass);
    story.breaks_oddly(Rule::Cited, AUDITOR, &audit, &uncited);
    story.say(AUDITOR, &audit);
}

#[test]
fn a_run_begins_once_and_baton_begins_it() {
    let step = begun(Policy::of(Profile::Default));
    Story::default().breaks(Rule::Beginning, (OWN_AGENT, Role::System), &step);
    let said = Said {
        event_type: step.event_type(),
        step: Some(&step),
        agent: "eve",
        role: Role::System,
        key: None,
        seq: 1,
        seen: None,
        cited: &[],
    };
    assert_eq!(Run::admit_beginning(&said).unwrap_err().rule, Rule::RoleTable);
    let unsigned = Said { agent: OWN_AGENT, seq: 2, ..said };
    assert_eq!(Run::admit_beginning(&unsigned).unwrap_err().rule, Rule::Beginning);
    let own = Said { key: Some(key(0)), ..unsigned };
    assert_eq!(Run::admit_beginning(&own), Ok(()));
    let late = Said { seq: 3, ..own };
    assert_eq!(Run::admit_beginning(&late).unwrap_err().rule, Rule::Beginning);
}

#[test]
fn every_state_refuses_what_it_has_no_place_for_yet() {
    let planning = || Story::default();
    let reviewing = || {
        let mut story = Story::default();
        story.say(PLANNER, &proposal("p1"));
        story
    };
    let executing = || Story::default().planned();
    let claiming = || Story::default().executed();
    planning().breaks(Rule::Place, CRITIC, &review("p1", Review::Approved));
    let early = [intent("i1", Risk::Low), started("i1"), completed("i1"), failed("i1")];
    for step in early.iter().chain([&Step::Recorded(Bare {})]) {
        planning().breaks(Rule::Place, EXECUTOR, step);
        reviewing().breaks(Rule::Place, EXECUTOR, step);
    }
    reviewing().breaks(Rule::Place, CRITIC, &answer("i1", Answer::Approved));
    for story in [planning, reviewing, executing as fn() -> Story] {
        story().breaks(Rule::Place, EXECUTOR, &claim("c1"));
    }
    for story in [planning, reviewing, executing, claiming as fn() -> Story] {
        story().breaks(Rule::Place, CRITIC, &challenge("c1"));
        story().breaks(Rule::Place, EXECUTOR, &statement(&["c1"], &[]));
    }
}

#[test]
fn a_name_is_given_once() {
    Story::default().planned().breaks(Rule::NewName, PLANNER, &revision("p1", "p1"));
    let mut story = Story::default().claimed();
    story.breaks(Rule::NewName, EXECUTOR, &intent("i1", Risk::Low));
    story.breaks(Rule::NewName, EXECUTOR, &claim("c1"));
    // A name is one thing's, whatever its kind: else a person who overrides it would mean two.
    story.breaks(Rule::NewName, EXECUTOR, &intent("p1", Risk::Low));
    story.breaks(Rule::NewName, EXECUTOR, &claim("i1"));
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(EXECUTOR, &claim("c2"));
}

#[test]
fn what_a_step_is_about_stands_before_it() {
    let mut story = Story::default();
    story.breaks(Rule::Subject, PLANNER, &revision("p2", "p1"));
    story.say(PLANNER, &proposal("p0")).say(PLANNER, &revision("p1", "p0"));
    story.breaks(Rule::Subject, CRITIC, &review("p9", Review::Approved));
    story.say(CRITIC, &review("p1", Review::Approved));
    story.breaks(Rule::Subject, CRITIC, &review("p1", Review::Rejected));
    story.breaks(
        Rule::Subject,
        EXECUTOR,
        &Step::Intended(Intent { proposal_id: id("p9"), ..intent_of("i1", "make_file", Risk::Low) }),
    );
    story.breaks(Rule::Subject, EXECUTOR, &retry("i2", "i1"));
    story.breaks(Rule::Subject, CRITIC, &answer("i1", Answer::Approved));
    story.say(EXECUTOR, &intent("i1", Risk::Low));
    story.breaks(Rule::Subject, EXECUTOR, &retry("i2", "i1"));
    story.say(EXECUTOR, &started("i1"));
    story.breaks(Rule::Subject, CRITIC, &answer("i1", Answer::Blocked));
    story.say(EXECUTOR, &completed("i1")).say(EXECUTOR, &claim("c1"));
    let revised = |name, of| Step::Claimed(Claim { revises: Some(id(of)), ..claim_of(name) });
    story.breaks(Rule::Subject, EXECUTOR, &revised("c2", "c9"));
    story.breaks(Rule::Subject, CRITIC, &challenge("c9"));
    story.say(EXECUTOR, &revised("c2", "c1"));
    story.breaks(Rule::Subject, EXECUTOR, &revised("c3", "c1"));
    story.breaks(Rule::Subject, CRITIC, &challenge("c1"));
    let over = |target| Step::Overridden(Override { target: id(target), reason: "I say so".into() });
    story.breaks(Rule::Subject, PERSON, &over("x9"));
    story.say(PERSON, &over("c2"));
}

#[test]
fn whoever_reacts_to_something_has_seen_it() {
    let mut story = Story::default();
    // Each time the event before the one that is reacted to was the last that was known, or none was.
    story.say(PLANNER, &proposal("p1"));
    let react = |story: &mut Story, who, step: &Step| {
        let before = Odd { seen: Some(story.seq - 1), ..Odd::default() };
        let blind = Odd { is_blind: true, ..Odd::default() };
        story.breaks_oddly(Rule::SeenSubject, who, step, &before);
        story.breaks_oddly(Rule::SeenSubject, who, step, &blind);
        story.say(who, step);
    };
    react(&mut story, CRITIC, &review("p1", Review::Approved));
    react(&mut story, EXECUTOR, &intent("i1", Risk::High));
    react(&mut story, CRITIC, &answer("i1", Answer::Approved));
    react(&mut story, EXECUTOR, &started("i1"));
    react(&mut story, EXECUTOR, &completed("i1"));
    react(&mut story, EXECUTOR, &claim("c1"));
    react(&mut story, CRITIC, &challenge("c1"));
    // A revision knows the claim that it revises; the challenge came after that.
    let revised = Step::Claimed(Claim { revises: Some(id("c1")), ..claim_of("c2") });
    let early = Odd { seen: Some(story.seq - 2), ..Odd::default() };
    story.breaks_oddly(Rule::SeenSubject, EXECUTOR, &revised, &early);
    story.say(EXECUTOR, &revised);
}

#[test]
fn whoever_closes_something_has_seen_the_head() {
    let behind = |story: &Story| Odd { seen: Some(story.seq - 1), ..Odd::default() };
    let mut story = Story::default().claimed();
    let odd = behind(&story);
    story.breaks_oddly(Rule::SeenHead, EXECUTOR, &statement(&["c1"], &[]), &odd);
    story.breaks_oddly(Rule::SeenHead, PERSON, &Step::Aborted(Abort { reason: "x".into() }), &odd);
    let over = Step::Overridden(Override { target: id("c1"), reason: "x".into() });
    story.breaks_oddly(Rule::SeenHead, PERSON, &over, &odd);
    // A key that is bound in between is nothing to anybody.
    let seen = story.seq;
    story.try_other((OWN_AGENT, Role::System), "key_bound").unwrap();
    let odd = Odd { seen: Some(seen), ..Odd::default() };
    story.try_odd(EXECUTOR, &statement(&["c1"], &[]), &odd).unwrap();
    story.say(AUDITOR, &audit_started());
    let (odd, audit) = (behind(&story), story.audit(Outcome::Pass));
    story.breaks_oddly(Rule::SeenHead, AUDITOR, &audit, &odd);
    story.say(AUDITOR, &audit);
}

#[test]
fn no_tool_runs_without_an_intent_and_none_twice_with_one() {
    let mut story = Story::default().planned();
    story.breaks(Rule::IntentFirst, EXECUTOR, &started("i1"));
    story.say(EXECUTOR, &intent("i1", Risk::Low));
    story.breaks(Rule::IntentFirst, EXECUTOR, &completed("i1"));
    story.breaks(Rule::IntentFirst, EXECUTOR, &failed("i1"));
    story.say(EXECUTOR, &started("i1"));
    story.breaks(Rule::RunOnce, EXECUTOR, &started("i1"));
    story.say(EXECUTOR, &failed("i1"));
    story.breaks(Rule::RunOnce, EXECUTOR, &completed("i1"));
    story.breaks(Rule::RunOnce, EXECUTOR, &started("i1"));
    // A retry is a new intent; the one before stays in the history.
    story.say(EXECUTOR, &retry("i2", "i1")).say(EXECUTOR, &started("i2")).say(EXECUTOR, &completed("i2"));
    assert!(story.run.intent(&id("i1")).unwrap().is_retried);
}

#[test]
fn no_claim_before_what_it_rests_on_has_ended() {
    let mut story = Story::default().executed();
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(EXECUTOR, &started("i2"));
    let on = |of: &str| Step::Claimed(Claim { executions: vec![id(of)], ..claim_of("c1") });
    story.breaks(Rule::ExecutionFirst, EXECUTOR, &on("i2"));
    story.breaks(Rule::ExecutionFirst, EXECUTOR, &on("i9"));
    // A tool that failed has ended too.
    story.say(EXECUTOR, &failed("i2")).say(EXECUTOR, &on("i2"));
}

#[test]
fn a_tool_that_failed_may_be_followed_by_as_many_proposals_as_the_policy_says() {
    let mut story = Story::default().planned();
    story.breaks(Rule::Fallbacks, PLANNER, &proposal("p2"));
    story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &started("i1")).say(EXECUTOR, &failed("i1"));
    assert_eq!(story.run.state(), State::Executing, "one more way is open");
    story.say(PLANNER, &proposal("p2"));
    story.breaks(Rule::Fallbacks, PLANNER, &proposal("p3"));
    story.say(PLANNER, &revision("p3", "p2"));
    story.say(EXECUTOR, &retry("i2", "i1")).say(EXECUTOR, &started("i2")).say(EXECUTOR, &failed("i2"));
    assert_eq!(story.run.state(), State::Claiming, "what failed is what can be said");
    story.breaks(Rule::Fallbacks, PLANNER, &proposal("p4"));
}

#[test]
fn nothing_is_done_for_a_proposal_that_is_not_approved() {
    let on = |of: &str, n: &str| {
        Step::Intended(Intent { proposal_id: id(of), ..intent_of(n, "make_file", Risk::Low) })
    };
    let mut story = Story::default();
    story.say(PLANNER, &proposal("p1")).say(PLANNER, &proposal("p2")).say(PLANNER, &proposal("p3"));
    story.say(CRITIC, &review("p1", Review::Approved)).say(CRITIC, &review("p2", Review::Rejected));
    story.breaks(Rule::ProposalApproved, EXECUTOR, &on("p2", "i1"));
    story.breaks(Rule::ProposalApproved, EXECUTOR, &on("p3", "i1"));
    story.say(EXECUTOR, &on("p1", "i1"));
    // Another critic's no counts as much, also when the intent is signed.
    story.say((OPERATOR, Role::Critic), &review("p1", Review::Rejected));
    story.breaks(Rule::ProposalApproved, EXECUTOR, &started("i1"));
    // A person who is not asked as critic can let it through, and signs for it.
    story.say(PERSON, &Step::Overridden(Override { target: id("p1"), reason: "it has to be".into() }));
    story.say(EXECUTOR, &started("i1"));
    // What has another one in its place is worked on no more, though nobody has looked at that one yet.
    story.say(EXECUTOR, &on("p1", "i2")).say(PLANNER, &revision("p4", "p1"));
    story.breaks(Rule::ProposalApproved, EXECUTOR, &on("p1", "i3"));
    story.breaks(Rule::ProposalApproved, EXECUTOR, &started("i2"));
    story.say(EXECUTOR, &completed("i1"));
}

#[test]
fn a_proposal_needs_as_many_approvals_as_the_policy_says() {
    let mut story = Story::new(Policy { approvals: 2, ..Policy::of(Profile::Default) });
    story.say(PLANNER, &proposal("p1")).say(CRITIC, &review("p1", Review::Approved));
    assert_eq!(story.run.state(), State::Reviewing);
    story.breaks(Rule::Place, EXECUTOR, &intent("i1", Risk::Low));
    story.say((OPERATOR, Role::Critic), &review("p1", Review::Approved));
    story.say(EXECUTOR, &intent("i1", Risk::Low));
}

#[test]
fn a_condition_lets_only_the_tools_through_that_it_names() {
    let mut story = Story::default();
    story.say(PLANNER, &proposal("p1")).say(CRITIC, &review("p1", Review::Conditional));
    let other = Step::Intended(intent_of("i1", "run_command", Risk::Low));
    story.breaks(Rule::Conditions, EXECUTOR, &other);
    story.say(EXECUTOR, &intent("i1", Risk::Low));
    // Also where the condition comes after the intent was signed.
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &Step::Intended(intent_of("i1", "list_files", Risk::Low)));
    story.say((OPERATOR, Role::Critic), &review("p1", Review::Conditional));
    story.breaks(Rule::Conditions, EXECUTOR, &started("i1"));
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(EXECUTOR, &started("i2"));
}

#[test]
fn a_risky_tool_waits_for_its_review_and_a_blocked_one_for_ever() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &intent("i2", Risk::Medium));
    story.say(EXECUTOR, &Step::Intended(intent_of("i3", "deploy", Risk::Low)));
    story.say(EXECUTOR, &started("i1"));
    story.breaks(Rule::IntentApproved, EXECUTOR, &started("i2"));
    story.breaks(Rule::IntentApproved, EXECUTOR, &started("i3"));
    story.say(CRITIC, &answer("i2", Answer::Approved)).say(EXECUTOR, &started("i2"));
    story.say(CRITIC, &answer("i3", Answer::Blocked));
    story.breaks(Rule::IntentBlocked, EXECUTOR, &started("i3"));
    story.breaks(Rule::Subject, (OPERATOR, Role::Critic), &answer("i3", Answer::Approved));
    // Under another name it waits as well, and so does what takes its place, however harmless that is said to be.
    let mut again = Story { run: story.run.clone(), seq: story.seq };
    again.say(EXECUTOR, &intent("i5", Risk::Low)).say(CRITIC, &answer("i5", Answer::Blocked));
    again.say(EXECUTOR, &intent("i6", Risk::Low));
    again.breaks(Rule::IntentApproved, EXECUTOR, &started("i6"));
    again.say(
        EXECUTOR,
        &Step::Intended(Intent {
            normalized_input_hash: hash(8),
            retry_of: Some(id("i5")),
            ..intent_of("i7", "make_file", Risk::Low)
        }),
    );
    again.breaks(Rule::IntentApproved, EXECUTOR, &Step::Started(execution("i7", 8)));
    // A revision that is approved.
    let revised = Intent { retry_of: Some(id("i3")), ..intent_of("i4", "deploy", Risk::Low) };
    story.say(EXECUTOR, &Step::Intended(revised)).say(CRITIC, &answer("i4", Answer::Approved));
    story.say(EXECUTOR, &started("i4"));
}

#[test]
fn what_is_run_is_what_was_intended() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low));
    story.breaks(Rule::SameInput, EXECUTOR, &Step::Started(execution("i1", 7)));
    let nothing = Execution { artifacts: vec![], ..execution("i1", 1) };
    story.breaks(Rule::SameInput, EXECUTOR, &Step::Started(nothing));
    story.say(EXECUTOR, &started("i1"));
}

#[test]
fn no_more_tools_are_run_than_the_budget_has() {
    let mut policy = Policy::of(Profile::Default);
    policy.budgets.tool_calls = Some(1);
    let mut story = Story::new(policy).executed();
    story.say(EXECUTOR, &intent("i2", Risk::Low));
    story.breaks(Rule::Budget, EXECUTOR, &started("i2"));
}

#[test]
fn every_execution_leaves_an_artifact_that_its_event_cites() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low));
    let odd = Odd { cites_nothing: true, ..Odd::default() };
    story.breaks_oddly(Rule::ExecutionEvidence, EXECUTOR, &started("i1"), &odd);
    story.say(EXECUTOR, &started("i1"));
    let bare = Execution { artifacts: vec![], exit_status: Some(0), ..execution("i1", 1) };
    story.breaks(Rule::ExecutionEvidence, EXECUTOR, &Step::Completed(bare));
    story.breaks_oddly(Rule::ExecutionEvidence, EXECUTOR, &completed("i1"), &odd);
    story.breaks(Rule::ExecutionEvidence, EXECUTOR, &Step::Recorded(Bare {}));
    story.say(EXECUTOR, &completed("i1"));
}

#[test]
fn a_claim_cites_enough() {
    let with = |evidence: Vec<Digest>| Step::Claimed(Claim { evidence, ..claim_of("c1") });
    let mut story = Story::default().executed();
    story.breaks(Rule::ClaimEvidence, EXECUTOR, &with(vec![]));
    story.breaks_oddly(
        Rule::ClaimEvidence,
        EXECUTOR,
        &claim("c1"),
        &Odd { cites_nothing: true, ..Odd::default() },
    );
    story.say(EXECUTOR, &claim("c1"));
    let mut story = Story::new(Policy { min_evidence: 2, ..Policy::of(Profile::Default) }).executed();
    story.breaks(Rule::ClaimEvidence, EXECUTOR, &with(vec![hash(2), hash(2)]));
    story.say(EXECUTOR, &with(vec![hash(2), hash(3)]));
    Story::new(Policy { min_evidence: 0, ..Policy::of(Profile::Default) })
        .executed()
        .say(EXECUTOR, &with(vec![]));
}

#[test]
fn the_final_statement_rests_on_claims_that_stand_when_everything_is_at_rest() {
    let mut story = Story::default().claimed();
    story.breaks(Rule::FinalClaims, EXECUTOR, &statement(&[], &[]));
    story.breaks(Rule::FinalClaims, EXECUTOR, &statement(&["c1", "c9"], &[]));
    let revised = Step::Claimed(Claim { revises: Some(id("c1")), ..claim_of("c2") });
    story.say(EXECUTOR, &revised);
    story.breaks(Rule::FinalClaims, EXECUTOR, &statement(&["c1"], &[]));
    story.say(EXECUTOR, &intent("i2", Risk::Low)).say(EXECUTOR, &started("i2"));
    story.breaks(Rule::FinalRest, EXECUTOR, &statement(&["c2"], &[]));
    story.say(EXECUTOR, &completed("i2")).say(EXECUTOR, &statement(&["c2"], &[]));
}

#[test]
fn a_challenge_is_answered_or_where_the_policy_only_warns_named() {
    let mut story = Story::default().claimed();
    story.say(CRITIC, &challenge("c1"));
    story.breaks(Rule::Disputes, EXECUTOR, &statement(&["c1"], &[]));
    story.say(EXECUTOR, &statement(&["c1"], &["c1"]));

    let strict = Policy { risk_threshold: Risk::High, ..Policy::of(Profile::Strict) };
    let mut story = Story::new(strict).claimed();
    story.say(CRITIC, &challenge("c1"));
    story.breaks(Rule::Disputes, EXECUTOR, &statement(&["c1"], &["c1"]));
    let revised = Step::Claimed(Claim { revises: Some(id("c1")), ..claim_of("c2") });
    // Another claim beside it answers nothing.
    let mut beside = Story { run: story.run.clone(), seq: story.seq };
    beside.say(EXECUTOR, &claim("c2"));
    beside.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"], &[]));
    beside.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"], &["c1"]));
    story.say(EXECUTOR, &revised).say(EXECUTOR, &statement(&["c2"], &[]));
}

#[test]
fn a_challenge_is_not_walked_around_by_another_claim() {
    let mut story = Story::default().claimed();
    story.say(CRITIC, &challenge("c1")).say(EXECUTOR, &claim("c2"));
    story.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"], &[]));
    story.breaks(Rule::Disputes, EXECUTOR, &statement(&["c2"], &["c2"]));
    let mut named = Story { run: story.run.clone(), seq: story.seq };
    named.say(EXECUTOR, &statement(&["c2"], &["c1"]));
    // A person may set the challenge aside.
    story.say(PERSON, &Step::Overridden(Override { target: id("c1"), reason: "it does".into() }));
    story.say(EXECUTOR, &statement(&["c2"], &[]));
}

#[test]
fn after_the_final_statement_only_the_auditor_speaks() {
    let mut story = Story::default().finished();
    for (who, step) in [
        (PLANNER, revision("p2", "p1")),
        (EXECUTOR, intent("i2", Risk::Low)),
        (EXECUTOR, claim("c2")),
        (EXECUTOR, statement(&["c1"], &[])),
        (CRITIC, challenge("c1")),
    ] {
        story.breaks(Rule::AfterFinal, who, &step);
    }
    let note = story.try_other(EXECUTOR, "note").unwrap_err();
    assert_eq!(note.rule, Rule::AfterFinal);
    story.say(AUDITOR, &audit_started());
}

#[test]
fn after_the_verification_nothing_comes_but_the_end() {
    let mut story = Story::default().finished();
    story.say(AUDITOR, &audit_started());
    let audit = story.audit(Outcome::Warnings);
    story.say(AUDITOR, &audit);
    story.breaks(Rule::AfterAudit, AUDITOR, &audit_started());
    story.breaks(Rule::AfterAudit, PERSON, &Step::Aborted(Abort { reason: "x".into() }));
    story.breaks(Rule::AfterAudit, EXECUTOR, &claim("c2"));
    story.try_other((OWN_AGENT, Role::System), "trace.closed").unwrap();
}

#[test]
fn a_verification_begins_before_it_ends_needs_the_final_statement_and_names_what_it_saw() {
    let mut story = Story::default().claimed();
    let audit = story.audit(Outcome::Fail);
    story.breaks(Rule::AuditStarted, AUDITOR, &audit);
    story.say(AUDITOR, &audit_started());
    let audit = story.audit(Outcome::Pass);
    story.breaks(Rule::AuditFinal, AUDITOR, &audit);
    let mut story = Story::default().finished();
    story.say(AUDITOR, &audit_started());
    let other = Step::Audited(Audit { status: Outcome::Pass, report: hash(9), head: hash(99) });
    story.breaks(Rule::AuditHead, AUDITOR, &other);
    let audit = story.audit(Outcome::Pass);
    story.say(AUDITOR, &audit);
}

#[test]
fn a_run_is_closed_when_it_has_ended() {
    let mut story = Story::default().finished();
    let closed = story.try_other((OWN_AGENT, Role::System), "trace.closed").unwrap_err();
    assert_eq!(closed.rule, Rule::Closing);
}

/// This file, which names each rule where it is broken.
const SOURCE: &str = include_str!("rules.rs");

#[test]
fn every_rule_is_broken_by_a_test() {
    for rule in Rule::ALL {
        let named = format!("Rule::{rule:?}");
        let is_named = SOURCE.split(&named).skip(1).any(|after| !after.starts_with(char::is_alphanumeric));
        assert!(is_named, "no test breaks {named}");
    }
}

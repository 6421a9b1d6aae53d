//! Answers of players: what reads, what does not and why, and what the rules say by themselves.

use serde_json::{Map, Value, json};

use super::story::*;
use crate::guard::*;

fn read(value: Value) -> Result<Reply, String> {
    let Value::Object(object) = value else { panic!("an object") };
    let mut story = Story::default();
    story.say(PLANNER, &proposal("p1"));
    Reply::read(&object, &story.run).map_err(|error| error.to_string())
}

#[test]
fn every_kind_of_answer_reads_and_ids_are_baton_s_to_give() {
    let proposed =
        json!({"proposal": {"objective": "mend it", "required_tools": ["edit"], "proposal_id": "mine"}});
    let Ok(Reply::Proposal(proposal)) = read(proposed) else { panic!() };
    assert_eq!((proposal.proposal_id, proposal.required_tools), (id("p2"), vec!["edit".to_owned()]));
    let review =
        json!({"proposal_id": "p1", "status": "conditional", "conditions": ["edit"], "rationale": "r"});
    assert!(
        matches!(read(json!({"review": review})), Ok(Reply::Review(review)) if review.status == Review::Conditional)
    );
    let review = json!({"intent_id": "i1", "status": "blocked", "rationale": "r"});
    assert!(matches!(read(json!({"review": review})), Ok(Reply::IntentReview(_))));
    let intent =
        json!({"tool_name": "edit", "input": {"path": "a"}, "justification": "j", "risk_class": "high"});
    assert!(
        matches!(read(json!({"intent": intent})), Ok(Reply::Intent(said)) if said.risk_class == Some(Risk::High))
    );
    let claim = json!({"claim_text": "t", "confidence": 0.5});
    let Ok(Reply::Claims(claims)) = read(json!({"claims": [claim, claim]})) else { panic!() };
    assert_eq!(claims.iter().map(|claim| claim.claim_id.clone()).collect::<Vec<_>>(), [id("c1"), id("c2")]);
    assert_eq!(read(json!({"challenges": []})), Ok(Reply::Challenges(vec![])));
    assert_eq!(read(json!({"stands": "it is so"})), Ok(Reply::Stands("it is so".into())));
    let verdict = read(json!({"verdict": {"status": "fail", "summary": "s"}}));
    assert_eq!(verdict, Ok(Reply::Verdict { status: Outcome::Fail, summary: "s".into() }));
}

#[test]
fn what_does_not_read_is_told_by_its_field() {
    for (answer, says) in [
        (json!({}), "answer: expected an object with one of proposal"),
        (json!({"proposal": {}, "review": {}}), "answer: expected an object with one of"),
        (json!({"proposal": 1}), "proposal: expected an object"),
        (json!({"proposal": {"objective": " "}}), "objective: expected a string"),
        (
            json!({"review": {"proposal_id": "p1", "status": "fine", "rationale": "r"}}),
            "status: expected approved",
        ),
        (json!({"claims": []}), "claims: expected an array of 1 to 32"),
        (
            json!({"claims": [{"claim_text": "t", "confidence": 2}]}),
            "confidence: expected a number from 0 to 1",
        ),
        (json!({"challenges": [{"claim_id": "c1"}]}), "reason: expected a string"),
        (json!({"verdict": {"status": "pass"}}), "summary: expected a string"),
        (
            json!({"intent": {"tool_name": "edit", "justification": "j", "risk_class": "tiny"}}),
            "risk_class: expected low",
        ),
    ] {
        let error = read(answer.clone()).unwrap_err();
        assert!(error.trim_start_matches("payload.").starts_with(says), "{answer}: {error}");
    }
}

#[test]
fn an_answer_is_found_in_whatever_stands_around_it() {
    let found = |text: &str| Reply::find(text).map(Value::Object);
    let answer = json!({"stands": "yes"});
    assert_eq!(found("{\"stands\": \"yes\"}"), Some(answer.clone()));
    assert_eq!(
        found("First {\"a\": 1}, then:\n```json\n{\"stands\": \"yes\"}\n```\nThat is {all}."),
        Some(answer.clone())
    );
    assert_eq!(found("{\"stands\": \"no\"} or rather {\"stands\": \"yes\"}"), Some(answer));
    assert_eq!(found("nothing {\"a\": {\"stands\": 1}} here"), None);
    assert_eq!(found(&"{".repeat(100_000)), None);
    assert_eq!(Reply::find("").map(|map: Map<String, Value>| map.len()), None);
}

#[test]
fn the_rules_let_through_what_is_foreseen_and_not_of_the_highest_class() {
    let mut story = Story::default();
    story.say(PLANNER, &proposal("p1"));
    let said = story.run.review_by_rules(story.run.proposal(&id("p1")).unwrap());
    assert_eq!((said.status, said.conditions), (Review::Conditional, vec!["make_file".to_owned()]));
    let mut story = Story::default().planned();
    let intents = [
        ("i1", "make_file", Risk::Medium, Answer::Approved),
        ("i2", "make_file", Risk::High, Answer::Blocked),
        ("i3", "edit_file", Risk::Low, Answer::Blocked),
    ];
    for (name, tool, risk, expected) in intents {
        story.say(EXECUTOR, &Step::Intended(intent_of(name, tool, risk)));
        let said = story.run.review_intent_by_rules(story.run.intent(&id(name)).unwrap());
        assert_eq!(said.status, expected, "{name}: {}", said.rationale);
    }
}

#[test]
fn the_rules_challenge_what_rests_on_a_failure() {
    let mut story = Story::default().planned();
    story.say(EXECUTOR, &intent("i1", Risk::Low)).say(EXECUTOR, &started("i1")).say(EXECUTOR, &failed("i1"));
    story
        .say(EXECUTOR, &intent("i2", Risk::Low))
        .say(EXECUTOR, &started("i2"))
        .say(EXECUTOR, &completed("i2"));
    for (name, rests_on, is_challenged) in [("c1", "i1", true), ("c2", "i2", false)] {
        story.say(EXECUTOR, &Step::Claimed(Claim { executions: vec![id(rests_on)], ..claim_of(name) }));
        let said = story.run.challenge_by_rules(story.run.claim(&id(name)).unwrap());
        assert_eq!(said.is_some(), is_challenged, "{name}");
    }
}

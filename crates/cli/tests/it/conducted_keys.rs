//! Whose keys count in guarded runs: kept elsewhere, rotated, revoked.

use std::collections::BTreeSet;
use std::fs;

use baton_core::{Actor, Event, Payload, Role};
use baton_ledger::body::Body;
use baton_ledger::key::{SecretKey, Signature};
use baton_store::clock;
use serde_json::{Value, json};

use crate::conducted::{expect_passes, team};
use crate::task_support::text;

#[test]
fn whoever_holds_its_own_key_signs_elsewhere_and_hands_in() {
    let home = team("");
    let key = SecretKey::from_seed(&[7; 32].into());
    fs::write(home.work().join("ada.pub"), key.public().to_text().as_str()).unwrap();
    home.json(&["agent", "key", "ada", "--public", "ada.pub", "--role", "planner"]);
    let task = home.guarded("edit good.txt complete done");
    // Nobody here can sign for the planner.
    let end = home.conducted(&task, "failed");
    assert!(text(&end["why"]).contains("the planner ada gave no answer that fits"), "{end}");
    let trace = home.guard_of(&task);
    let fields =
        json!({"proposal_id": "mine", "objective": "as the task says", "required_tools": ["write_file"]});
    let Value::Object(fields) = fields else { unreachable!() };
    let event = Event {
        trace: trace.parse().unwrap(),
        id: clock::new_event_id(),
        at: clock::now(),
        actor: Actor { agent: "ada".parse().unwrap(), role: Role::Planner, key: Some(key.id()) },
        task: None,
        run: None,
        session: None,
        fence: None,
        payload: Payload::Other { event_type: "proposal_created".parse().unwrap(), fields: fields.clone() },
        artifacts: Vec::new(),
        seen: None,
    };
    let signature = key.sign_event(&Body::signed_elsewhere(&event, Signature([0; 64])).unwrap().digest);
    let signed = json!({
        "type": "proposal_created", "payload": fields, "id": event.id.to_string(), "at": event.at.to_string(),
        "actor": {"agent": "ada", "role": "planner", "key": key.id().to_string()},
        "sig": {"alg": "ed25519", "key": key.id().to_string(), "value": format!("{signature:?}")},
    });
    home.run_with(&["trace", "append", &trace], signed.to_string()).expect(0);
    home.run(&["task", "retry", &task]).expect(0);
    home.conducted(&task, "done");
    let events = home.told(&trace);
    let proposed: Vec<&Value> = events.iter().filter(|event| event["type"] == "proposal_created").collect();
    assert_eq!((proposed.len(), &proposed[0]["payload"]["proposal_id"]), (1, &json!("mine")));
    expect_passes(&home, &trace);
}

#[test]
fn a_key_that_was_rotated_is_used_anew_and_one_that_was_revoked_is_not_replaced() {
    let home = team("");
    let first = home.guarded("edit one.txt complete done");
    home.conducted(&first, "done");
    let before = home.json(&["agent", "key", "bob"])["key"].clone();
    home.json(&["agent", "key", "bob", "--rotate"]);
    let second = home.guarded("edit two.txt complete done");
    home.conducted(&second, "done");
    let keys = |task: &str| -> BTreeSet<String> {
        let events = home.told(&home.guard_of(task));
        let own = events.iter().filter(|event| event["actor"]["agent"] == "bob");
        own.map(|event| text(&event["actor"]["key"])).collect()
    };
    assert_eq!(keys(&first), BTreeSet::from([text(&before)]));
    assert!(!keys(&second).contains(&text(&before)));
    expect_passes(&home, &home.guard_of(&first));
    home.json(&["agent", "key", "cleo", "--revoke", "--reason", "lost"]);
    let third = home.guarded("edit three.txt complete done");
    let end = home.conducted(&third, "failed");
    assert!(text(&end["why"]).contains("the critic cleo gave no answer that fits"), "{end}");
    let refusal = home.refusals(&third).pop().unwrap().1;
    assert!(refusal.contains("was revoked: baton agent key cleo --role critic"), "{refusal}");
    assert!(!home.work().join("three.txt").exists());
    home.verifies();
}

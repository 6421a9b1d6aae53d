//! `baton agent key`, and events that are signed here or elsewhere.

use std::fs;

use baton_core::{Actor, Event, Payload, Timestamp};
use baton_ledger::body::Body;
use baton_ledger::key::{SecretKey, Signature};
use baton_store::clock;
use serde_json::{Map, Value, json};

use crate::support::Home;

fn secret(n: u8) -> SecretKey {
    SecretKey::from_seed(&[n; 32].into())
}

/// A signed event as an agent that holds its own key would hand it in.
struct Signed {
    event: Event,
    signature: Option<Signature>,
}

impl Signed {
    fn new(trace: &str, agent: &str, key: &SecretKey, event_type: &str) -> Signed {
        let actor =
            Actor { agent: agent.parse().unwrap(), role: baton_core::Role::Executor, key: Some(key.id()) };
        let payload = Payload::Other { event_type: event_type.parse().unwrap(), fields: Map::new() };
        let event = Event {
            trace: trace.parse().unwrap(),
            id: clock::new_event_id(),
            at: clock::now(),
            actor,
            task: None,
            run: None,
            session: None,
            fence: None,
            payload,
            artifacts: Vec::new(),
            seen: None,
        };
        Signed { event, signature: None }.sign(key)
    }

    fn sign(mut self, key: &SecretKey) -> Signed {
        let blank = Body::signed_elsewhere(&self.event, Signature([0; 64])).unwrap();
        self.signature = Some(key.sign_event(&blank.digest));
        self
    }

    fn at(mut self, ms_from_now: i64, key: &SecretKey) -> Signed {
        self.event.at = Timestamp::from_unix_ms(clock::now().unix_ms() + ms_from_now).unwrap();
        self.sign(key)
    }

    fn json(&self) -> Value {
        let key = self.event.actor.key.unwrap().to_string();
        json!({
            "type": self.event.payload.event_type(),
            "id": self.event.id.to_string(),
            "at": self.event.at.to_string(),
            "actor": {"agent": self.event.actor.agent.as_str(), "role": "executor", "key": key},
            "sig": {"alg": "ed25519", "key": key, "value": format!("{:?}", self.signature.unwrap())},
        })
    }
}

#[test]
fn a_key_is_made_shown_rotated_and_revoked() {
    let home = Home::new();
    let made = home.json(&["agent", "key", "planner-1", "--role", "planner", "--role", "critic"]);
    assert_eq!((&made["agent"], &made["status"]), (&json!("planner-1"), &json!("active")));
    assert_eq!(made["roles"], json!(["planner", "critic"]));
    let id = made["key"].as_str().unwrap();
    let published = fs::read_to_string(home.data().join(format!("keys/{id}.pub"))).unwrap();
    assert_eq!(published, format!("{} {id} planner-1\n", made["public"].as_str().unwrap()));

    let secret = made["secret"].as_str().unwrap();
    assert!(secret.ends_with(&format!("/{id}.key")) && std::path::Path::new(secret).is_file(), "{secret}");
    let again = home.changes_nothing(|home| home.run(&["agent", "key", "planner-1", "--json"]));
    assert_eq!(again.object(), made, "asking again shows it");
    let same = ["agent", "key", "planner-1", "--role", "critic,planner", "--json"];
    assert_eq!(home.changes_nothing(|home| home.run(&same)).object(), made);
    home.changes_nothing(|home| home.run(&["agent", "key", "planner-1", "--role", "executor"])).refused(
        4,
        "L029",
        "--rotate --role executor",
    );

    let rotated = home.json(&["agent", "key", "planner-1", "--rotate"]);
    assert_ne!(rotated["key"], made["key"]);
    assert_eq!((&rotated["roles"], &rotated["status"]), (&made["roles"], &json!("active")));
    let revoked = home.json(&["agent", "key", "planner-1", "--revoke", "--reason", "laptop lost"]);
    assert_eq!((&revoked["key"], &revoked["status"]), (&rotated["key"], &json!("revoked")));
    let shown = home.changes_nothing(|home| home.run(&["agent", "key", "planner-1", "--json"]));
    assert_eq!(shown.object()["status"], "revoked", "looking makes no new key");
    home.run(&["agent", "key", "planner-1", "--revoke", "--reason", "x"]).refused(3, "L030", "has no key");
    home.run(&["agent", "key", "planner-1", "--rotate"]).refused(3, "L030", "has no key");
    let fresh = home.json(&["agent", "key", "planner-1", "--role", "planner"]);
    assert_eq!(fresh["status"], "active");
    let types: Vec<Value> = home.events().iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["ledger.created", "key_bound", "key_rotated", "key_revoked", "key_bound"]);
    home.run(&["verify"]).expect(0);
}

#[test]
fn misuse_of_agent_key_is_a_usage_error_or_refused() {
    let home = Home::new();
    home.run(&["agent", "key"]).expect(2);
    home.run(&["agent", "key", "Not A Name"]).expect(2);
    home.run(&["agent", "key", "a", "--role", "boss"]).expect(2);
    home.run(&["agent", "key", "a", "--revoke"]).expect(2);
    home.run(&["agent", "key", "a", "--revoke", "--rotate", "--reason", "x"]).expect(2);
    home.changes_nothing(|home| home.run(&["agent", "key", "baton"])).refused(4, "L031", "Baton itself");
}

#[test]
fn an_agents_key_signs_and_its_one_role_is_the_default() {
    let home = Home::new();
    let trace = home.trace();
    let key = home.json(&["agent", "key", "pat", "--role", "planner"])["key"].clone();
    let proposal = json!({"type": "proposal_created", "payload": {"proposal_id": "p1"}});
    home.append(&trace, "pat", &proposal);
    let events = home.events();
    let (bound, signed) = (&events[events.len() - 2], &events[events.len() - 1]);
    assert_eq!(bound["type"], "key_bound", "the key is bound in the trace before its first use");
    assert_eq!(signed["actor"], json!({"agent": "pat", "role": "planner", "key": key}));
    assert_eq!(signed["sig"]["key"], key);
    home.append(&trace, "pat", &json!({"type": "note"}));
    assert_eq!(home.events().len(), events.len() + 1, "bound once");
    // The key does not stretch to another role.
    home.run_with(&["trace", "append", &trace, "--agent", "pat", "--role", "critic"], r#"{"type":"note"}"#)
        .refused(4, "L021", "bound for planner")
        .refused(4, "L021", "hint: baton agent key pat --rotate --role critic\n");
    // Without a key of its own nobody proposes.
    home.run_with(&["trace", "append", &trace, "--agent", "sam", "--role", "planner"], proposal.to_string())
        .refused(4, "L019", "baton agent key sam --role planner");
    home.run_with(&["trace", "append", &trace, "--agent", "sam"], r#"{"type":"verification_run_started"}"#)
        .refused(4, "L022", "auditor");
    // After a rotation the new key signs, in the same trace.
    home.json(&["agent", "key", "pat", "--rotate"]);
    home.append(&trace, "pat", &proposal);
    home.json(&["agent", "key", "pat", "--revoke", "--reason", "left"]);
    home.run_with(&["trace", "append", &trace, "--agent", "pat", "--role", "planner"], proposal.to_string())
        .refused(4, "L019", "must be signed")
        .refused(4, "L019", "hint: baton agent key pat --role planner\n");
    home.run(&["verify"]).expect(0);
    assert_eq!(home.json(&["replay"])["equal"], true);
}

#[test]
fn an_agent_with_several_roles_acts_in_the_one_that_the_type_requires() {
    let home = Home::new();
    let trace = home.trace();
    let role_of = |agent: &str, event_type: &str| {
        home.append(&trace, agent, &json!({"type": event_type}));
        home.events().pop().unwrap()["actor"]["role"].clone()
    };
    home.json(&["agent", "key", "pat", "--role", "auditor,critic,planner"]);
    assert_eq!(role_of("pat", "proposal_created"), "planner");
    assert_eq!(role_of("pat", "claim_challenged"), "critic");
    assert_eq!(role_of("pat", "verification_run_started"), "auditor");
    assert_eq!(role_of("pat", "note"), "planner", "the first of its key");
    assert_eq!(role_of("sam", "note"), "executor", "without a key");
    // The operator's key decides as well.
    assert_eq!(role_of("operator", "note"), "operator");
    home.json(&["agent", "key", "operator", "--role", "executor,operator"]);
    assert_eq!(role_of("operator", "trace_aborted"), "operator");
    assert_eq!(role_of("operator", "note"), "executor");
    home.run(&["verify"]).expect(0);
}

#[test]
fn what_is_suggested_for_a_revoked_agent_gives_it_the_roles_that_it_had() {
    let home = Home::new();
    let trace = home.trace();
    home.json(&["agent", "key", "pat", "--role", "executor"]);
    home.json(&["agent", "key", "pat", "--rotate", "--role", "planner,critic"]);
    home.json(&["agent", "key", "pat", "--revoke", "--reason", "left"]);
    let again = "hint: baton agent key pat --role planner,critic\n";
    let append = ["trace", "append", &trace, "--agent", "pat"];
    home.run_with(&append, r#"{"type":"note"}"#).refused(4, "L019", again);
    home.run_with(&append, r#"{"type":"claim_issued"}"#).refused(
        4,
        "L019",
        "hint: baton agent key pat --role planner,critic,executor\n",
    );
    for change in [&["--rotate"][..], &["--revoke", "--reason", "x"]] {
        home.run(&[&["agent", "key", "pat"], change].concat()).refused(3, "L030", again);
    }
    home.run(&["agent", "key", "pat", "--rotate", "--role", "auditor"]).refused(
        3,
        "L030",
        "hint: baton agent key pat --role auditor\n",
    );
    assert!(home.run(&["agent", "key", "pat"]).stderr.contains(again));
    home.run(&["agent", "key", "new", "--rotate"]).refused(3, "L030", "hint: baton agent key new\n");
    home.json(&["agent", "key", "pat", "--role", "planner,critic"]);
    home.run_with(&append, r#"{"type":"note"}"#).expect(0);
}

#[test]
fn a_key_that_is_kept_elsewhere_is_shown_and_not_replaced_where_its_role_does_not_fit() {
    let home = Home::new();
    let trace = home.trace();
    fs::write(home.work().join("own.pub"), secret(7).public().to_text().as_str()).unwrap();
    home.json(&["agent", "key", "own", "--public", "own.pub", "--role", "planner"]);
    let signed = Signed::new(&trace, "own", &secret(7), "note").json().to_string();
    let ended = home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], signed));
    ended.refused(4, "L021", "hint: baton agent key own\n");
}

#[test]
fn an_agent_may_hold_its_own_key_and_hand_in_signed_events() {
    let home = Home::new();
    let trace = home.trace();
    let key = secret(7);
    fs::write(home.work().join("own.pub"), key.public().to_text().as_str()).unwrap();
    let registered = home.json(&["agent", "key", "own", "--public", "own.pub"]);
    assert_eq!((&registered["key"], &registered["secret"]), (&json!(key.id().to_string()), &Value::Null));
    assert!(home.run(&["agent", "key", "own"]).stdout.contains("not on this machine"));

    let signed = Signed::new(&trace, "own", &key, "claim_issued");
    let receipt = home.append(&trace, "own", &signed.json());
    assert_eq!(receipt["id"], signed.event.id.to_string());
    let stored = home.events().pop().unwrap();
    assert_eq!(stored["sig"], signed.json()["sig"], "taken as it is");
    // The whole body may be handed in as well, and in an array.
    let mut whole = Signed::new(&trace, "own", &key, "note").json();
    whole["v"] = 1.into();
    whole["trace"] = trace.as_str().into();
    home.run_with(&["trace", "append", &trace], json!([whole]).to_string()).expect(0);
    home.run(&["verify"]).expect(0);
}

#[test]
fn an_agent_with_a_key_never_speaks_unsigned() {
    let home = Home::new();
    let trace = home.trace();
    let refuse = |agent: &str, event: &str, names: &str| {
        let append = ["trace", "append", &trace, "--agent", agent];
        let ended = home.changes_nothing(|home| home.run_with(&append, event));
        ended.refused(4, "L019", names);
    };
    // The private key was never here.
    fs::write(home.work().join("own.pub"), secret(7).public().to_text().as_str()).unwrap();
    home.json(&["agent", "key", "own", "--public", "own.pub"]);
    refuse("own", r#"{"type":"note"}"#, "is not on this machine");
    refuse("own", r#"{"type":"claim_issued"}"#, "is not on this machine");
    // It was here and is gone.
    let key = home.json(&["agent", "key", "pat"])["key"].as_str().unwrap().to_owned();
    let secrets = fs::read_dir(home.state()).unwrap().next().unwrap().unwrap().path();
    fs::rename(secrets.join(format!("{key}.key")), home.path("aside")).unwrap();
    refuse("pat", r#"{"type":"note"}"#, "is not on this machine");
    fs::rename(home.path("aside"), secrets.join(format!("{key}.key"))).unwrap();
    home.append(&trace, "pat", &json!({"type": "note"}));
    // It was revoked.
    home.json(&["agent", "key", "pat", "--revoke", "--reason", "left"]);
    refuse("pat", r#"{"type":"note"}"#, "its key was revoked");
    refuse("pat", r#"{"type":"note"}"#, "hint: baton agent key pat --role executor");
    // Others are not concerned, and a new key makes it right again.
    home.append(&trace, "sam", &json!({"type": "note"}));
    home.json(&["agent", "key", "pat", "--role", "executor"]);
    home.append(&trace, "pat", &json!({"type": "note"}));
    assert!(home.events().pop().unwrap()["sig"].is_object());
    home.run(&["verify"]).expect(0);
}

#[test]
fn signed_events_that_do_not_check_are_refused_and_change_nothing() {
    let home = Home::new();
    let trace = home.trace();
    let (key, other) = (secret(7), secret(8));
    fs::write(home.work().join("own.pub"), key.public().to_text().as_str()).unwrap();
    home.json(&["agent", "key", "own", "--public", "own.pub"]);
    let refuse = |event: &Value, code: &str, names: &str| {
        let ended =
            home.changes_nothing(|home| home.run_with(&["trace", "append", &trace], event.to_string()));
        ended.refused(4, code, names);
    };
    let good = Signed::new(&trace, "own", &key, "note");
    let mut changed = good.json();
    changed["payload"] = json!({"forged": true});
    refuse(&changed, "L020", "does not check");
    let mut moved = good.json();
    moved["actor"]["role"] = "critic".into();
    refuse(&moved, "L020", "does not check");
    refuse(&Signed::new(&trace, "own", &other, "note").json(), "L021", "not registered");
    refuse(&Signed::new(&trace, "someone", &key, "note").json(), "L021", "not registered");
    let late = Signed::new(&trace, "own", &key, "note").at(-6 * 60 * 1000, &key);
    refuse(&late.json(), "L027", "clock");
    let early = Signed::new(&trace, "own", &key, "note").at(6 * 60 * 1000, &key);
    refuse(&early.json(), "L027", "clock");
    for member in ["id", "at", "actor"] {
        let mut partial = good.json();
        partial.as_object_mut().unwrap().remove(member);
        refuse(&partial, "U004", &format!("{member}: a signed event must carry it"));
    }
    let mut algorithm = good.json();
    algorithm["sig"]["alg"] = "rsa".into();
    refuse(&algorithm, "U004", "sig.alg");
    let mut short = good.json();
    short["sig"]["value"] = "AAAA".into();
    refuse(&short, "U004", "sig.value");
    let stolen = Signed::new(&trace, "own", &key, "note").json();
    home.run_with(&["trace", "append", &trace, "--agent", "me"], stolen.to_string()).refused(
        4,
        "U004",
        "actor.agent",
    );
    // In another trace the same signature is worth nothing.
    let elsewhere = home.trace();
    home.run_with(&["trace", "append", &elsewhere], good.json().to_string()).refused(
        4,
        "L020",
        "does not check",
    );
    home.append(&trace, "own", &good.json());
    // What is revoked signs no more.
    home.json(&["agent", "key", "own", "--revoke", "--reason", "x"]);
    let after = Signed::new(&trace, "own", &key, "note").json();
    home.run_with(&["trace", "append", &trace], after.to_string()).refused(4, "L021", "revoked");
    home.run(&["verify"]).expect(0);
}

#[test]
fn public_keys_come_as_text_or_pem_and_others_are_refused() {
    let home = Home::new();
    let file = home.work().join("key");
    let register = |text: &str| {
        fs::write(&file, text).unwrap();
        home.run(&["agent", "key", "own", "--public", "key"])
    };
    let der = |prefix: &[u8], key: &[u8]| {
        use base64::Engine as _;
        let encoded = base64::engine::general_purpose::STANDARD.encode([prefix, key].concat());
        format!("-----BEGIN PUBLIC KEY-----\n{encoded}\n-----END PUBLIC KEY-----\n")
    };
    let spki = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
    let x25519 = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x6e, 0x03, 0x21, 0x00];
    home.changes_nothing(|home| {
        register("").refused(4, "U010", "holds no public key");
        register("rsa:AAAA").refused(4, "U010", "another algorithm");
        register(&der(&x25519, secret(1).public().as_bytes())).refused(4, "U010", "another algorithm");
        register(&secret(1).to_file_text()).refused(4, "U010", "private key");
        register("ed25519:AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=").refused(4, "U010", "small order");
        register("-----BEGIN PRIVATE KEY-----\nAAAA\n").refused(4, "U010", "private key");
        fs::write(&file, [0xff, 0xfe]).unwrap();
        home.run(&["agent", "key", "own", "--public", "key"]).refused(4, "U010", "not text");
        home.run(&["agent", "key", "own", "--public", "nowhere"])
    })
    .refused(3, "U005", "no file nowhere");
    register(&der(&spki, secret(1).public().as_bytes())).expect(0);
    // A key belongs to one agent.
    home.run(&["agent", "key", "second", "--public", "key"]).refused(4, "L021", "already known");
    // Rotating to a key that the agent made itself.
    fs::write(&file, secret(2).public().to_text().as_str()).unwrap();
    home.run(&["agent", "key", "own", "--public", "key"]).refused(4, "L029", "--rotate --public key");
    let rotated = home.json(&["agent", "key", "own", "--rotate", "--public", "key"]);
    assert_eq!(rotated["key"], secret(2).id().to_string());
}

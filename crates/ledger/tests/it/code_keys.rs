//! The codes about signatures, keys and roles, each by the smallest journal that has it.

use baton_core::{Payload, Role};
use baton_ledger::verify::Code;
use serde_json::{Value, json};

use crate::codes::{base, extra, first, followed_by, sealed, system};
use crate::forger::{lines, reseal};
use crate::reader::{codes, options, untrusting, verify};
use crate::writer::{grant, id, secret, trace};

#[test]
fn sig_missing() {
    let types = "proposal_created proposal_reviewed tool_intent_signed tool_intent_reviewed claim_issued claim_challenged \
        final_statement_signed verification_run_completed override_recorded trace_aborted AgentSessionCompleted key_bound \
        key_rotated key_revoked ledger.created ledger.recovered task.approved task.rejected ci.reported";
    for event_type in types.split(' ') {
        followed_by(system(event_type, json!({})), Code::SigMissing);
    }
    let mut records = base();
    records[0] = records[0].clone().stripped();
    sealed(records, Code::SigMissing, 1);
    // An unsigned first record with a payload that does not fit: the signature is asked for first.
    let mut records = base();
    records[0] = records[0].clone().stripped().set("payload", json!({}));
    sealed(records, Code::SigMissing, 1);
}

#[test]
fn key_unknown_by_actor() {
    let claim = |agent: &str, role: &str| extra(4, trace(1), agent, role, "claim_issued", json!({}));
    followed_by(claim("worker", "executor").signed(&secret(6)), Code::KeyUnknown);
    followed_by(claim("boss", "executor").signed(&secret(5)), Code::KeyUnknown);
    followed_by(
        claim("worker", "executor").set("trace", trace(2).to_string()).signed(&secret(5)),
        Code::KeyUnknown,
    );
    followed_by(
        extra(4, trace(1), "worker", "system", "ci.reported", json!({})).signed(&secret(1)),
        Code::KeyUnknown,
    );
}

#[test]
fn key_unknown_by_a_key_event_that_does_not_fit() {
    let grant = |key: u8| Payload::KeyBound(grant(key, "other", &[Role::Critic])).fields().into_owned();
    let with = |key: u8, name: &str, value: Value| {
        let mut fields = grant(key);
        fields.insert(name.into(), value);
        Value::Object(fields)
    };
    let weak = format!("ed25519:{}=", "A".repeat(43));
    // y = 2^255 − 19, which is another spelling of 0.
    let mut high = [0xff; 32];
    (high[0], high[31]) = (0xed, 0x7f);
    let high =
        format!("ed25519:{}", base64::Engine::encode(&base64::engine::general_purpose::STANDARD, high));
    for (event_type, payload) in [
        ("key_bound", json!({})),
        ("key_bound", with(5, "x", json!(1))),
        ("key_bound", with(1, "x", json!(1))),
        ("key_bound", with(6, "roles", json!([]))),
        ("key_bound", with(6, "roles", json!(["boss"]))),
        ("key_bound", with(6, "roles", json!("critic"))),
        ("key_bound", with(6, "agent", json!("Other"))),
        ("key_bound", with(6, "key", json!(secret(7).id().to_string()))),
        ("key_bound", with(6, "public", json!(weak))),
        ("key_bound", with(6, "public", json!(high))),
        ("key_rotated", with(6, "by", json!(secret(6).id().to_string()))),
        ("key_rotated", with(6, "key", json!(secret(5).id().to_string()))),
        ("key_revoked", json!({"key": secret(6).id().to_string(), "reason": "r"})),
        ("key_revoked", json!({"key": secret(1).id().to_string(), "reason": "r"})),
        ("key_revoked", json!({"key": secret(5).id().to_string()})),
        ("key_revoked", json!({"key": secret(5).id().to_string(), "reason": 1})),
    ] {
        followed_by(system(event_type, payload).signed(&secret(1)), Code::KeyUnknown);
    }
    // Signed by a bound key instead of the ledger's.
    let mut records = base();
    records
        .push(system("key_bound", Value::Object(grant(6))).set("id", id(10).to_string()).signed(&secret(1)));
    records[3] = records[3].clone().set("payload", with(6, "roles", json!(["system"]))).signed(&secret(1));
    let by_other =
        extra(11, trace(1), "other", "system", "key_bound", Value::Object(grant(7))).signed(&secret(6));
    records.push(by_other);
    sealed(records, Code::KeyUnknown, 5);
    // Revoked twice.
    let revoked = |n| {
        system("key_revoked", json!({"key": secret(5).id().to_string(), "reason": "r"}))
            .set("id", id(n).to_string())
            .signed(&secret(1))
    };
    sealed([base(), vec![revoked(10), revoked(11)]].concat(), Code::KeyUnknown, 5);
}

#[test]
fn key_unknown_where_the_first_record_does_not_name_the_ledger() {
    let created = |name: &str, value: Value| {
        let mut records = base();
        records[0].0["payload"][name] = value;
        records[0] = records[0].clone().signed(&secret(1));
        records
    };
    for (name, value) in [
        ("key", json!(secret(2).id().to_string())),
        ("public", json!(secret(2).public().to_text().as_str())),
        ("public", json!("ed25519:")),
        ("origin", json!("")),
        ("origin", json!("Baton")),
        ("origin", json!("baton/trace/x")),
        ("durability", json!(1)),
        ("durability", Value::Null),
    ] {
        sealed(created(name, value), Code::KeyUnknown, 1);
    }
    let report = verify(&lines(&reseal(created("durability", json!("a way of later")))), &options(None));
    assert_eq!(codes(&report), [Code::NoCheckpoint], "how it syncs is for people");
    // Another key signs the first record.
    let mut records = base();
    records[0] = records[0].clone().signed(&secret(2));
    sealed(records, Code::KeyUnknown, 1);
}

#[test]
fn key_unknown_where_the_reader_trusts_another() {
    let report = verify(&lines(&base()), &untrusting(secret(9).public()));
    first(&report, Code::KeyUnknown, 0);
    assert_eq!((report.integrity, report.completeness), ("broken", "unknown"));
}

#[test]
fn key_revoked_after_rotation_and_revocation() {
    let claim = |n| extra(n, trace(1), "worker", "executor", "claim_issued", json!({})).signed(&secret(5));
    let revoked = system("key_revoked", json!({"key": secret(5).id().to_string(), "reason": "r"}));
    sealed([base(), vec![revoked.signed(&secret(1)), claim(5)]].concat(), Code::KeyRevoked, 5);
    let mut fields = Payload::KeyBound(grant(6, "worker", &[Role::Executor])).fields().into_owned();
    fields.insert("by".into(), json!(secret(6).id().to_string()));
    fields.insert("key".into(), json!(secret(5).id().to_string()));
    let rotated = system("key_rotated", Value::Object(fields)).signed(&secret(1));
    sealed([base(), vec![rotated, claim(5)]].concat(), Code::KeyRevoked, 5);
}

#[test]
fn sig_invalid() {
    let mut records = base();
    records[2] = records[2].clone().with_signature_of(&records[1].clone());
    sealed(records, Code::SigInvalid, 3);
    let mut records = base();
    records[0] = records[0].clone().with_signature_of(&records[1].clone());
    sealed(records, Code::SigInvalid, 1);
}

#[test]
fn role_violation_by_type_or_by_key() {
    let roles = [
        ("planner", "proposal_created"),
        (
            "executor",
            "tool_intent_signed tool_execution_started tool_execution_completed tool_execution_failed artifact_recorded claim_issued final_statement_signed",
        ),
        ("critic", "proposal_reviewed tool_intent_reviewed claim_challenged"),
        ("auditor", "verification_run_started verification_run_completed"),
        ("operator", "trace_aborted override_recorded"),
        ("system", "session_initialized ledger.recovered trace.opened trace.closed"),
    ];
    let all = [Role::Planner, Role::Executor, Role::Critic, Role::Auditor, Role::Operator, Role::System];
    let binding = Payload::KeyBound(grant(6, "any", &all)).fields().into_owned();
    let binding = system("key_bound", Value::Object(binding)).signed(&secret(1));
    for (role, types) in roles {
        for event_type in types.split(' ') {
            for other in all.map(Role::as_str) {
                let signed = extra(9, trace(1), "any", other, event_type, json!({})).signed(&secret(6));
                let records = [base(), vec![binding.clone(), signed]].concat();
                if other == role {
                    // It begins a guarded run, of which this one says nothing.
                    let is_beginning = event_type == "session_initialized";
                    let expected: &[Code] = match is_beginning {
                        true => &[Code::SchemaInvalid, Code::NoCheckpoint],
                        false => &[Code::NoCheckpoint],
                    };
                    let found = codes(&verify(&lines(&reseal(records)), &options(None)));
                    assert_eq!(found, expected, "{event_type}");
                } else {
                    sealed(records, Code::RoleViolation, 5);
                }
            }
        }
    }
    // A free type, but not a role of the key.
    followed_by(
        extra(4, trace(1), "worker", "critic", "remark", json!({})).signed(&secret(5)),
        Code::RoleViolation,
    );
    followed_by(
        extra(4, trace(1), "baton", "operator", "remark", json!({})).signed(&secret(1)),
        Code::RoleViolation,
    );
}

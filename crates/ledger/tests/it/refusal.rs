//! What the chain refuses: each reason by a small case, with the state unchanged and the next append going on correctly.

use baton_core::limits::ID_WINDOW;
use baton_core::{Digest, Event, KeyGrant, Payload, Role, Seen, TraceId};
use baton_ledger::body::{Body, Error};
use baton_ledger::key::Signature;
use baton_ledger::keyring::Fault;
use baton_ledger::seal::{Chain, Checked, Proposal, Refusal};
use baton_ledger::verify::Verdict;
use serde_json::json;

use crate::reader::{options, verify};
use crate::writer::{
    Writer, bound, created, event, grant, id, ledger, note, other, sample, secret, signed, trace, unsigned,
};

/// The proposal is refused for this reason, nothing has changed, and a next event is sealed where it belongs.
#[track_caller]
fn refused(writer: &mut Writer, proposal: &Proposal, expected: &Refusal) {
    let (bytes, nodes) = (writer.bytes.clone(), writer.nodes.clone());
    let (frontier, traces) = (writer.chain.frontier().clone(), writer.chain.traces().clone());
    assert_eq!(writer.offer(proposal).as_ref(), Err(expected));
    assert_eq!((&writer.bytes, &writer.nodes), (&bytes, &nodes));
    assert_eq!((writer.chain.frontier(), writer.chain.traces()), (&frontier, &traces));
    if frontier.size() > 0 {
        let next =
            writer.append(vec![unsigned(&note(1_000_000 + frontier.size(), TraceId::Ledger))]).unwrap();
        assert_eq!(next[0].pos, frontier.size() + 1);
        let report = verify(&writer.bytes, &options(Some(&writer.checkpoint())));
        assert_eq!(report.verdict, Verdict::Pass, "{:?}", report.findings);
    }
}

fn of(events: Vec<Checked>) -> Proposal {
    Proposal { events, decided_on: Vec::new() }
}

fn claim(n: u64, agent: &str, role: Role) -> Event {
    event(n, trace(1), agent, role, other("claim_issued", &json!({"n": n})))
}

fn system(n: u64, trace: TraceId, payload: Payload) -> Event {
    event(n, trace, "baton", Role::System, payload)
}

fn revoke(n: u64, key: u8) -> Checked {
    signed(system(n, trace(1), Payload::KeyRevoked { key: secret(key).id(), reason: "lost".into() }), 1)
}

fn rotate(n: u64, old: u8, new: KeyGrant) -> Checked {
    signed(system(n, trace(1), Payload::KeyRotated { old: secret(old).id(), new }), 1)
}

/// A ledger in whose trace 1 key 5 is bound to `worker` as executor.
fn with_worker() -> Writer {
    let mut writer = Writer::new();
    writer.append(vec![signed(bound(2, trace(1), grant(5, "worker", &[Role::Executor])), 1)]).unwrap();
    writer
}

#[test]
fn a_head_that_moved_is_named_with_where_it_stands() {
    let mut writer = with_worker();
    let head = writer.chain.trace(trace(1)).unwrap().clone();
    let proposal =
        |on: Vec<(TraceId, u64)>| Proposal { events: vec![unsigned(&note(3, trace(1)))], decided_on: on };
    let moved = |trace, expected, seq, hash| Refusal::HeadMoved { trace, expected, seq, hash };
    refused(&mut writer, &proposal(vec![(trace(1), 0)]), &moved(trace(1), 0, 1, head.hash));
    refused(&mut writer, &proposal(vec![(trace(1), 2)]), &moved(trace(1), 2, 1, head.hash));
    refused(&mut writer, &proposal(vec![(trace(1), 1), (trace(2), 7)]), &moved(trace(2), 7, 0, Digest::ZERO));
    assert_eq!(writer.offer(&proposal(vec![(trace(1), 1), (trace(2), 0)])).unwrap()[0].seq, 2);
}

#[test]
fn nothing_follows_the_end_of_a_trace_not_even_in_the_same_decision() {
    let mut writer = with_worker();
    let close = |n| unsigned(&system(n, trace(1), Payload::TraceClosed { reason: "done".into() }));
    refused(&mut writer, &of(vec![close(3), unsigned(&note(4, trace(1)))]), &Refusal::Closed(trace(1)));
    writer.append(vec![close(5), unsigned(&note(6, trace(2)))]).unwrap();
    refused(&mut writer, &of(vec![unsigned(&note(7, trace(1)))]), &Refusal::Closed(trace(1)));
    refused(&mut writer, &of(vec![close(8)]), &Refusal::Closed(trace(1)));
    refused(
        &mut writer,
        &of(vec![unsigned(&note(9, trace(2))), signed(claim(10, "worker", Role::Executor), 5)]),
        &Refusal::Closed(trace(1)),
    );
}

#[test]
fn the_trace_ledger_is_never_closed() {
    let close = unsigned(&system(3, TraceId::Ledger, Payload::TraceClosed { reason: "done".into() }));
    refused(
        &mut Writer::new(),
        &of(vec![close]),
        &Refusal::Form("the trace `ledger` is never closed".into()),
    );
}

#[test]
fn a_type_that_must_be_signed_is_refused_without_a_signature() {
    let missing = |event_type: &str| Refusal::SignatureMissing { event_type: event_type.to_owned() };
    let mut writer = with_worker();
    refused(&mut writer, &of(vec![unsigned(&claim(3, "worker", Role::Executor))]), &missing("claim_issued"));
    let binding = bound(4, trace(1), grant(6, "other", &[Role::Critic]));
    refused(&mut writer, &of(vec![unsigned(&binding)]), &missing("key_bound"));
    let body = Body::unsigned(&note(5, trace(1))).unwrap();
    assert_eq!(Checked::check(body, secret(5).public()).unwrap_err(), missing("note"));
}

#[test]
fn a_signature_counts_only_with_the_key_that_made_it() {
    let mut signed_by_5 = claim(3, "worker", Role::Executor);
    let body = Body::signed(signed_by_5.clone(), &secret(5)).unwrap();
    let invalid = |key: u8| Refusal::SignatureInvalid { key: secret(key).id() };
    assert_eq!(Checked::check(body.clone(), secret(6).public()).unwrap_err(), invalid(5), "another key");
    assert_eq!(Checked::unsigned(body.clone()).unwrap_err(), invalid(5), "a signature that nobody checked");
    signed_by_5.actor.key = Some(secret(5).id());
    let good = body.sig.unwrap().value;
    for bit in [0, 255, 256, 511] {
        let mut bytes = good.0;
        bytes[bit / 8] ^= 1 << (bit % 8);
        let body = Body::signed_elsewhere(&signed_by_5, Signature(bytes)).unwrap();
        assert_eq!(Checked::check(body, secret(5).public()).unwrap_err(), invalid(5), "bit {bit}");
    }
    assert!(Checked::check(Body::signed_elsewhere(&signed_by_5, good).unwrap(), secret(5).public()).is_ok());
    // Checked with a key that is not the one bound under that id.
    let mut by_other = claim(4, "worker", Role::Executor);
    by_other.actor.key = Some(secret(5).id());
    let other_body = Body::signed_elsewhere(&by_other, good).unwrap();
    refused(&mut with_worker(), &of(vec![Checked::just_signed(other_body, &secret(6))]), &invalid(5));
}

#[test]
fn a_body_says_whether_it_is_signed() {
    let mut keyed = note(3, trace(1));
    keyed.actor.key = Some(secret(5).id());
    assert!(matches!(Body::unsigned(&keyed), Err(Error::Field { field: "actor.key", .. })));
    let value = Signature([0; 64]);
    assert!(matches!(
        Body::signed_elsewhere(&note(3, trace(1)), value),
        Err(Error::Field { field: "actor.key", .. })
    ));
}

#[test]
fn a_key_must_be_bound_in_this_trace_to_this_agent_for_this_role() {
    let mut writer = with_worker();
    let key = secret(5).id();
    let executor = Role::Executor;
    let stranger = signed(claim(3, "worker", executor), 6);
    refused(&mut writer, &of(vec![stranger]), &Fault::NotBound(secret(6).id()).into());
    let elsewhere = event(4, trace(2), "worker", executor, other("claim_issued", &json!({})));
    refused(&mut writer, &of(vec![signed(elsewhere, 5)]), &Fault::NotBound(key).into());
    let named = signed(claim(5, "boss", executor), 5);
    refused(
        &mut writer,
        &of(vec![named]),
        &Fault::OtherAgent { key, bound: "worker".into(), actor: "boss".into() }.into(),
    );
    let critic = event(6, trace(1), "worker", Role::Critic, other("note", &json!({})));
    refused(
        &mut writer,
        &of(vec![signed(critic, 5)]),
        &Fault::Role { key, role: Role::Critic, allowed: "executor".into() }.into(),
    );
    let key = secret(1).id();
    let posing = event(7, trace(1), "worker", Role::System, other("note", &json!({})));
    refused(
        &mut writer,
        &of(vec![signed(posing, 1)]),
        &Fault::OtherAgent { key, bound: "baton".into(), actor: "worker".into() }.into(),
    );
    let operator = event(8, trace(1), "baton", Role::Operator, other("note", &json!({})));
    refused(
        &mut writer,
        &of(vec![signed(operator, 1)]),
        &Fault::Role { key, role: Role::Operator, allowed: "system".into() }.into(),
    );
}

#[test]
fn a_type_comes_from_its_role_also_where_nobody_signs() {
    let wrong =
        |event_type: &str, required, role| Refusal::Role { event_type: event_type.into(), required, role };
    let mut writer = with_worker();
    let started = event(3, trace(1), "worker", Role::Critic, other("tool_execution_started", &json!({})));
    refused(
        &mut writer,
        &of(vec![unsigned(&started)]),
        &wrong("tool_execution_started", Role::Executor, Role::Critic),
    );
    let opened = event(4, trace(2), "worker", Role::Operator, Payload::TraceOpened { title: None });
    refused(&mut writer, &of(vec![unsigned(&opened)]), &wrong("trace.opened", Role::System, Role::Operator));
    let claimed = claim(5, "worker", Role::Planner);
    refused(
        &mut writer,
        &of(vec![signed(claimed, 5)]),
        &wrong("claim_issued", Role::Executor, Role::Planner),
    );
}

#[test]
fn a_key_that_went_signs_nothing_more() {
    let gone = |key: u8| Refusal::Key(Fault::NotValid(secret(key).id()));
    let claim = |n, key| signed(claim(n, "worker", Role::Executor), key);
    let mut writer = with_worker();
    refused(&mut writer, &of(vec![revoke(3, 5), claim(4, 5)]), &gone(5));
    writer
        .append(vec![claim(5, 5), rotate(6, 5, grant(6, "worker", &[Role::Executor])), claim(7, 6)])
        .unwrap();
    refused(&mut writer, &of(vec![claim(8, 5)]), &gone(5));
    writer.append(vec![revoke(9, 6)]).unwrap();
    refused(&mut writer, &of(vec![claim(10, 6)]), &gone(6));
}

#[test]
fn key_events_that_do_not_fit_are_refused_with_what_is_wrong() {
    let fault = |text: String| Refusal::Key(Fault::Event(text));
    let [k1, k5, k6] = [1, 5, 6].map(|key| secret(key).id());
    let mut writer = with_worker();
    let worker = |key| grant(key, "worker", &[Role::Executor]);
    let known = |key| fault(format!("key {key} is already known in this trace"));
    refused(&mut writer, &of(vec![signed(bound(3, trace(1), worker(5)), 1)]), &known(k5));
    refused(&mut writer, &of(vec![signed(bound(4, trace(1), worker(1)), 1)]), &known(k1));
    refused(&mut writer, &of(vec![rotate(5, 5, worker(5))]), &known(k5));
    refused(&mut writer, &of(vec![revoke(6, 6)]), &fault(format!("key {k6} is not bound in this trace")));
    refused(&mut writer, &of(vec![revoke(7, 1)]), &fault(format!("key {k1} is not bound in this trace")));
    let liar = KeyGrant { key: k6, ..worker(7) };
    let wrong_id = fault(format!("key id {k6} is not that of the public key beside it"));
    refused(&mut writer, &of(vec![signed(bound(8, trace(1), liar), 1)]), &wrong_id);
    let idle = KeyGrant { roles: Vec::new(), ..worker(6) };
    refused(
        &mut writer,
        &of(vec![signed(bound(9, trace(1), idle), 1)]),
        &fault(format!("key {k6} is bound for no role")),
    );
    let weak = KeyGrant { public: format!("ed25519:{}=", "A".repeat(43)).parse().unwrap(), ..worker(6) };
    let small = "the public key is not a point that can sign (not canonical, or of small order)";
    refused(&mut writer, &of(vec![signed(bound(10, trace(1), weak), 1)]), &fault(small.into()));
    writer.append(vec![revoke(11, 5)]).unwrap();
    refused(
        &mut writer,
        &of(vec![revoke(12, 5)]),
        &fault(format!("key {k5} is no longer valid in this trace")),
    );
    refused(
        &mut writer,
        &of(vec![rotate(13, 5, worker(6))]),
        &fault(format!("key {k5} is no longer valid in this trace")),
    );
    refused(&mut writer, &of(vec![signed(bound(14, trace(1), worker(5)), 1)]), &known(k5));
}

#[test]
fn a_key_event_is_signed_by_the_ledger_also_where_its_fields_come_untyped() {
    let mut writer = with_worker();
    writer.append(vec![signed(bound(3, trace(1), grant(6, "deputy", &[Role::System])), 1)]).unwrap();
    let by_deputy = |n, payload| signed(event(n, trace(1), "deputy", Role::System, payload), 6);
    let own = Refusal::Key(Fault::Event("a key event is signed by the ledger's own key".into()));
    let typed = Payload::KeyBound(grant(7, "friend", &[Role::Auditor]));
    let untyped =
        Payload::Other { event_type: "key_bound".parse().unwrap(), fields: typed.fields().into_owned() };
    refused(&mut writer, &of(vec![by_deputy(4, typed)]), &own);
    refused(&mut writer, &of(vec![by_deputy(5, untyped.clone())]), &own);
    let senseless = system(6, trace(1), other("key_revoked", &json!({"key": "mine"})));
    assert!(matches!(Body::signed(senseless, &secret(1)), Err(Error::Field { field: "payload", .. })));
    // By the ledger's key the untyped form is as good as the typed one, and the key is bound from then on.
    writer.append(vec![signed(system(7, trace(1), untyped), 1)]).unwrap();
    let audit = event(8, trace(1), "friend", Role::Auditor, other("verification_run_completed", &json!({})));
    writer.append(vec![signed(audit, 7)]).unwrap();
    assert_eq!(verify(&writer.bytes, &options(Some(&writer.checkpoint()))).verdict, Verdict::Pass);
}

#[test]
fn seen_must_be_an_earlier_event_of_the_trace_within_reach() {
    let mut writer = with_worker();
    let first = writer.chain.trace(trace(1)).unwrap().hash;
    let second = writer.append(vec![unsigned(&note(3, trace(1)))]).unwrap()[0].hash;
    let seeing = |n, trace, seq, hash| {
        let mut event = note(n, trace);
        event.seen = Some(Seen { seq, hash });
        of(vec![unsigned(&event)])
    };
    let wrong = |trace, seq| Refusal::Seen { trace, seq };
    refused(&mut writer, &seeing(4, trace(1), 2, first), &wrong(trace(1), 2));
    refused(&mut writer, &seeing(5, trace(1), 1, second), &wrong(trace(1), 1));
    refused(&mut writer, &seeing(6, trace(1), 3, second), &wrong(trace(1), 3));
    refused(&mut writer, &seeing(7, trace(2), 1, first), &wrong(trace(2), 1));
    assert_eq!(writer.offer(&seeing(8, trace(1), 1, first)).unwrap()[0].seq, 3, "an older one");
    assert_eq!(
        writer.offer(&seeing(9, trace(1), 3, writer.chain.trace(trace(1)).unwrap().hash)).unwrap()[0].seq,
        4
    );
    for n in 10..=4102 {
        writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap();
    }
    // The next number is 4098: the first event is 4097 back, the second 4096.
    refused(&mut writer, &seeing(4103, trace(1), 1, first), &wrong(trace(1), 1));
    assert_eq!(writer.offer(&seeing(4104, trace(1), 2, second)).unwrap()[0].seq, 4098);
}

#[test]
fn seen_counts_from_where_the_event_will_stand_in_its_decision() {
    let mut writer = with_worker();
    let second = writer.append(vec![unsigned(&note(3, trace(1)))]).unwrap()[0].hash;
    for n in 4..=4097 {
        writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap();
    }
    let mut last = note(4099, trace(1));
    last.seen = Some(Seen { seq: 2, hash: second });
    // Alone it would be number 4097, and 4095 back; after two others in the same decision it is too far.
    let two = |a, b| vec![unsigned(&note(a, trace(1))), unsigned(&note(b, trace(1))), unsigned(&last)];
    refused(&mut writer, &of(two(4098, 5000)), &Refusal::Seen { trace: trace(1), seq: 2 });
    writer.append(vec![unsigned(&note(6000, trace(1))), unsigned(&last)]).unwrap();
    assert_eq!(verify(&writer.bytes, &options(Some(&writer.checkpoint()))).verdict, Verdict::Pass);
}

#[test]
fn an_id_is_taken_once_near_and_far_and_within_one_decision() {
    let mut writer = with_worker();
    refused(&mut writer, &of(vec![unsigned(&note(2, trace(2)))]), &Refusal::IdTaken(id(2)));
    refused(
        &mut writer,
        &of(vec![unsigned(&note(3, trace(1))), unsigned(&note(3, trace(2)))]),
        &Refusal::IdTaken(id(3)),
    );
    for n in 10..20 + ID_WINDOW as u64 {
        writer.append(vec![unsigned(&note(n, trace(2)))]).unwrap();
    }
    // Below the window, the past answers.
    refused(&mut writer, &of(vec![unsigned(&note(2, trace(2)))]), &Refusal::IdTaken(id(2)));
    writer.append(vec![unsigned(&note(5, trace(2)))]).unwrap();
    refused(&mut writer, &of(vec![unsigned(&note(5, trace(1)))]), &Refusal::IdTaken(id(5)));
}

#[test]
fn a_ledger_begins_with_ledger_created_and_has_no_other() {
    let form = Refusal::Form("the first event of a ledger, and no other, is ledger.created".into());
    let first = |n| signed(created(n), 1);
    refused(&mut Writer::empty(), &of(vec![unsigned(&note(1, trace(1)))]), &form);
    refused(&mut Writer::empty(), &of(vec![unsigned(&note(1, TraceId::Ledger))]), &form);
    refused(&mut Writer::empty(), &of(vec![first(1), first(2)]), &form);
    let mut misplaced = created(1);
    misplaced.trace = trace(1);
    refused(&mut Writer::empty(), &of(vec![signed(misplaced.clone(), 1)]), &form);
    refused(&mut Writer::new(), &of(vec![first(2)]), &form);
    misplaced.id = id(2);
    refused(&mut Writer::new(), &of(vec![signed(misplaced, 1)]), &form);
}

#[test]
fn a_decision_has_between_one_and_1024_events() {
    let count = |n: usize| Refusal::Form(format!("a decision has 1 to 1024 events, got {n}"));
    let many = |n: u64| of((0..n).map(|i| unsigned(&note(100 + i, trace(1)))).collect());
    let mut writer = Writer::new();
    refused(&mut writer, &many(0), &count(0));
    refused(&mut writer, &many(1025), &count(1025));
    assert_eq!(writer.offer(&many(1024)).unwrap().len(), 1024);
    assert_eq!(verify(&writer.bytes, &options(Some(&writer.checkpoint()))).verdict, Verdict::Pass);
}

#[test]
fn a_chain_that_is_taken_up_again_goes_on_where_it_was_left() {
    let mut writer = sample();
    let (frontier, traces) = (writer.chain.frontier().clone(), writer.chain.traces().clone());
    writer.chain = Chain::resume(ledger(), frontier, traces, Some(id(13)));
    refused(&mut writer, &of(vec![unsigned(&note(13, trace(1)))]), &Refusal::IdTaken(id(13)));
    let closed = trace(0xa);
    refused(&mut writer, &of(vec![unsigned(&note(14, closed))]), &Refusal::Closed(closed));
    assert_eq!(writer.append(vec![unsigned(&note(15, trace(0xb)))]).unwrap()[0].seq, 4);
}

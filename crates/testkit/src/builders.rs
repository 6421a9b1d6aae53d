//! Small ledgers to start from.

use std::sync::Arc;

use baton_core::{Actor, AgentName, Event, Origin, Payload, Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::seal::{Checked, Proposal};
use baton_store::clock;
use serde_json::{Value, json};
use zeroize::Zeroizing;

/// A key from a number: the same every time.
#[must_use]
pub fn secret(n: u8) -> Arc<SecretKey> {
    Arc::new(SecretKey::from_seed(&Zeroizing::new([n; 32])))
}

/// The identity of a test ledger with that key.
pub fn identity(key: &SecretKey) -> LedgerIdentity {
    LedgerIdentity { origin: origin(), key: *key.public() }
}

#[expect(clippy::expect_used, reason = "fixed texts that parse")]
fn origin() -> Origin {
    "baton/test".parse().expect("an origin")
}

#[expect(clippy::expect_used, reason = "fixed texts that parse")]
pub fn agent(name: &str) -> AgentName {
    name.parse().expect("an agent name")
}

/// A new trace id.
pub fn new_trace() -> TraceId {
    TraceId::Work(clock::new_uuid())
}

/// An event of any type with these fields, by an executor named `worker`.
#[expect(clippy::expect_used, reason = "fixed texts that parse")]
pub fn event(trace: TraceId, event_type: &str, fields: Value) -> Event {
    let Value::Object(fields) = fields else { return event(trace, event_type, json!({})) };
    Event {
        trace,
        id: clock::new_event_id(),
        at: clock::now(),
        actor: Actor { agent: agent("worker"), role: Role::Executor, key: None },
        task: None,
        run: None,
        session: None,
        fence: None,
        payload: Payload::Other { event_type: event_type.parse().expect("a type"), fields },
        artifacts: Vec::new(),
        seen: None,
    }
}

/// An unsigned note that can be recognised again.
#[expect(clippy::expect_used, reason = "a small note always has a canonical form")]
pub fn note(trace: TraceId, writer: u64, n: u64) -> Checked {
    let body = Body::unsigned(&event(trace, "note", json!({"writer": writer, "n": n}))).expect("a body");
    Checked::unsigned(body).expect("unsigned")
}

/// One decision of these events, wherever their traces stand.
pub fn decision(events: Vec<Checked>) -> Proposal {
    Proposal { events, decided_on: Vec::new() }
}

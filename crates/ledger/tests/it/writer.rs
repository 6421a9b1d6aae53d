//! Honest journals, sealed by the crate's own chain into memory.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{
    Actor, ArtifactRef, Digest, Durability, Event, EventId, KeyGrant, Payload, Role, Timestamp, TraceId,
    Uuid7,
};
use baton_ledger::body::Body;
use baton_ledger::hash::sha256;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::seal::{Chain, Checked, Past, Proposal, Receipt, Refusal};
use serde_json::{Value, json};

use crate::reader::Shelf;

/// The n-th key of the tests; 1 is the ledger's.
pub(crate) fn secret(n: u8) -> SecretKey {
    SecretKey::from_seed(&[n; 32].into())
}

pub(crate) fn ledger() -> LedgerIdentity {
    LedgerIdentity { origin: "baton/test".parse().unwrap(), key: *secret(1).public() }
}

/// The n-th trace of work.
pub(crate) fn trace(n: u8) -> TraceId {
    TraceId::Work(Uuid7::from_parts(at(0), [n; 10]))
}

/// Time goes on by a millisecond with each event.
pub(crate) fn at(n: u64) -> Timestamp {
    Timestamp::from_unix_ms(1_770_670_800_000 + n as i64).unwrap()
}

/// Ids ascend with their number.
pub(crate) fn id(n: u64) -> EventId {
    EventId::new(Uuid7::from_parts(at(n), [7; 10]))
}

/// An event with nothing optional.
pub(crate) fn event(n: u64, trace: TraceId, agent: &str, role: Role, payload: Payload) -> Event {
    Event {
        trace,
        id: id(n),
        at: at(n),
        actor: Actor { agent: agent.parse().unwrap(), role, key: None },
        task: None,
        run: None,
        session: None,
        fence: None,
        payload,
        artifacts: Vec::new(),
        seen: None,
    }
}

/// A payload that the ledger does not look into.
pub(crate) fn other(event_type: &str, fields: &Value) -> Payload {
    Payload::Other { event_type: event_type.parse().unwrap(), fields: fields.as_object().unwrap().clone() }
}

pub(crate) fn note(n: u64, trace: TraceId) -> Event {
    event(n, trace, "helper", Role::Operator, other("note", &json!({"n": n})))
}

pub(crate) fn created(n: u64) -> Event {
    let ledger = ledger();
    let payload = Payload::LedgerCreated {
        origin: ledger.origin,
        key: ledger.key.id(),
        public: ledger.key.to_text(),
        durability: Durability::Commit,
    };
    event(n, TraceId::Ledger, "baton", Role::System, payload)
}

pub(crate) fn grant(key: u8, agent: &str, roles: &[Role]) -> KeyGrant {
    let key = secret(key);
    KeyGrant {
        key: key.id(),
        public: key.public().to_text(),
        agent: agent.parse().unwrap(),
        roles: roles.to_vec(),
    }
}

pub(crate) fn bound(n: u64, trace: TraceId, grant: KeyGrant) -> Event {
    event(n, trace, "baton", Role::System, Payload::KeyBound(grant))
}

pub(crate) fn artifact(content: &[u8], name: &str) -> ArtifactRef {
    ArtifactRef {
        sha256: sha256(content),
        bytes: content.len() as u64,
        media_type: "text/plain".into(),
        name: name.into(),
    }
}

pub(crate) fn signed(event: Event, key: u8) -> Checked {
    let key = secret(key);
    Checked::just_signed(Body::signed(event, &key).unwrap(), &key)
}

pub(crate) fn unsigned(event: &Event) -> Checked {
    Checked::unsigned(Body::unsigned(event).unwrap()).unwrap()
}

/// What a journal in memory remembers of its past.
#[derive(Debug, Default)]
pub(crate) struct MemoryPast {
    hashes: BTreeMap<(TraceId, u64), Digest>,
    ids: BTreeSet<EventId>,
}

impl Past for MemoryPast {
    fn hash_of(&self, trace: TraceId, seq: u64) -> Result<Option<Digest>, String> {
        Ok(self.hashes.get(&(trace, seq)).copied())
    }

    fn has_id(&self, id: EventId) -> Result<bool, String> {
        Ok(self.ids.contains(&id))
    }
}

/// A journal in memory with its chain, its tree and its past.
#[derive(Debug)]
pub(crate) struct Writer {
    pub chain: Chain,
    pub bytes: Vec<u8>,
    pub nodes: Vec<Digest>,
    pub past: MemoryPast,
}

impl Writer {
    /// A ledger without its first event.
    pub(crate) fn empty() -> Self {
        Writer {
            chain: Chain::new(ledger()),
            bytes: Vec::new(),
            nodes: Vec::new(),
            past: MemoryPast::default(),
        }
    }

    /// A ledger with its first event.
    pub(crate) fn new() -> Self {
        let mut writer = Writer::empty();
        writer.append(vec![signed(created(1), 1)]).unwrap();
        writer
    }

    /// One decision in a physical write of its own.
    pub(crate) fn append(&mut self, events: Vec<Checked>) -> Result<Vec<Receipt>, Refusal> {
        self.offer(&Proposal { events, decided_on: Vec::new() })
    }

    pub(crate) fn offer(&mut self, proposal: &Proposal) -> Result<Vec<Receipt>, Refusal> {
        self.chain.begin_write();
        self.seal(proposal, self.size() + 1)
    }

    /// Several decisions in one physical write.
    pub(crate) fn write(&mut self, decisions: Vec<Vec<Checked>>) {
        let start = self.size() + 1;
        self.chain.begin_write();
        for events in decisions {
            self.seal(&Proposal { events, decided_on: Vec::new() }, start).unwrap();
        }
    }

    fn seal(&mut self, proposal: &Proposal, start: u64) -> Result<Vec<Receipt>, Refusal> {
        let nodes = &mut self.nodes;
        let receipts =
            self.chain.seal(proposal, &self.past, start, &mut self.bytes, |node| nodes.push(node))?;
        for receipt in &receipts {
            self.past.hashes.insert((receipt.trace, receipt.seq), receipt.hash);
            self.past.ids.insert(receipt.id);
        }
        Ok(receipts)
    }

    pub(crate) fn size(&self) -> u64 {
        self.chain.frontier().size()
    }

    pub(crate) fn node(&self, at: u64) -> Result<Digest, String> {
        self.nodes.get(at as usize).copied().ok_or_else(|| format!("no node {at}"))
    }

    pub(crate) fn checkpoint(&self) -> String {
        let frontier = self.chain.frontier();
        Checkpoint { origin: ledger().origin, size: frontier.size(), root: frontier.root() }.sign(&secret(1))
    }

    pub(crate) fn head(&self, trace: TraceId) -> String {
        let state = self.chain.trace(trace).unwrap();
        TraceHead { origin: ledger().origin, trace, seq: state.seq, hash: state.hash }.sign(&secret(1))
    }

    /// The lines without their line feeds.
    pub(crate) fn lines(&self) -> Vec<&[u8]> {
        self.bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()).collect()
    }
}

const PLAN: &[u8] = b"a plan";
const LOG: &[u8] = b"";

/// What the sample cites.
pub(crate) fn shelf() -> Shelf {
    Shelf::holding(&[PLAN, LOG])
}

/// A small ledger with a little of everything: three traces, a batch, writes of several decisions, keys that are bound, rotated and
/// revoked, artifacts, `seen`, a closed trace. Every signed event is of a type that must be signed.
pub(crate) fn sample() -> Writer {
    let (a, b) = (trace(0xa), trace(0xb));
    let system = |n, trace, payload| event(n, trace, "baton", Role::System, payload);
    let mut writer = Writer::new();
    let opened = |title: &str| Payload::TraceOpened { title: Some(title.into()) };
    writer.write(vec![
        vec![
            unsigned(&system(2, a, opened("Möbius 😀"))),
            signed(bound(3, a, grant(2, "planner-1", &[Role::Planner])), 1),
            signed(bound(4, a, grant(3, "worker", &[Role::Executor, Role::Critic])), 1),
        ],
        vec![unsigned(&system(5, b, opened("b")))],
    ]);
    let mut proposal = event(
        6,
        a,
        "planner-1",
        Role::Planner,
        other("proposal_created", &json!({"cost": 0.1, "\u{fb33}": [null, -1]})),
    );
    proposal.artifacts = vec![artifact(PLAN, "plan.md"), artifact(LOG, "log")];
    writer.append(vec![signed(proposal, 2)]).unwrap();
    let state = writer.chain.trace(a).unwrap();
    let seen = baton_core::Seen { seq: state.seq, hash: state.hash };
    let mut intent =
        event(7, a, "worker", Role::Executor, other("tool_intent_signed", &json!({"tool": "rm\n\"-r\""})));
    intent.seen = Some(seen);
    let mut session = system(8, b, other("session.started", &json!({})));
    session.task = Some("TASK-1".parse().unwrap());
    session.run = Some("run.1".parse().unwrap());
    session.session = Some("s_1".parse().unwrap());
    session.fence = Some(3);
    writer.write(vec![vec![signed(intent, 3)], vec![unsigned(&session)]]);
    let rotated = Payload::KeyRotated { old: secret(3).id(), new: grant(4, "worker", &[Role::Executor]) };
    writer.append(vec![signed(system(9, a, rotated), 1)]).unwrap();
    let claim = event(10, a, "worker", Role::Executor, other("claim_issued", &json!({"claim": true})));
    let revoked = Payload::KeyRevoked { key: secret(2).id(), reason: "lost".into() };
    writer.write(vec![vec![signed(claim, 4)], vec![signed(system(11, a, revoked), 1)]]);
    writer.append(vec![unsigned(&system(12, a, Payload::TraceClosed { reason: "done".into() }))]).unwrap();
    writer.append(vec![signed(system(13, b, other("ci.reported", &json!({"ok": 1}))), 1)]).unwrap();
    writer
}

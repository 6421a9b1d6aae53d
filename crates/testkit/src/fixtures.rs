//! The small ledger behind `fixtures/ledgers/`: fixed keys, ids and times, so that its bytes are the same wherever it is made.

use std::collections::BTreeMap;

use baton_core::{
    Actor, ArtifactRef, Digest, Durability, Event, EventId, KeyGrant, Payload, Role, Seen, Timestamp,
    TraceId, Uuid7,
};
use baton_ledger::body::Body;
use baton_ledger::bundle::{self, Header, Summary};
use baton_ledger::hash::{Hasher, sha256};
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::merkle::{prove_consistency, prove_inclusion};
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::proof;
use baton_ledger::record::Line;
use baton_ledger::seal::{Chain, Checked, Past, Proposal, Receipt};
use serde_json::{Value, json};

use crate::builders::{agent, identity, secret};
use crate::segments::MemoryArtifacts;

/// A finished ledger with everything that can be made from it.
#[derive(Debug)]
pub struct Fixture {
    pub journal: Vec<u8>,
    pub ledger: LedgerIdentity,
    pub artifacts: MemoryArtifacts,
    /// Of all events.
    pub checkpoint: String,
    /// Of the first half.
    pub early_checkpoint: String,
    pub head: String,
    pub bundle: Vec<u8>,
    pub bundle_without_artifacts: Vec<u8>,
    pub proof: String,
    pub consistency: String,
}

/// Builds a ledger line by line.
struct Builder {
    chain: Chain,
    journal: Vec<u8>,
    nodes: Vec<Digest>,
    count: u64,
}

/// Nothing that is looked up here lies further back than the head.
struct NoPast;

impl Past for NoPast {
    fn hash_of(&self, _: TraceId, _: u64) -> Result<Option<Digest>, String> {
        Ok(None)
    }

    fn has_id(&self, _: EventId) -> Result<bool, String> {
        Ok(false)
    }
}

#[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
fn at(n: u64) -> Timestamp {
    Timestamp::from_unix_ms(1_767_225_600_000 + n as i64 * 1500).expect("a time")
}

fn uuid(n: u64) -> Uuid7 {
    Uuid7::from_parts(at(n), [n as u8; 10])
}

fn artifact(name: &str, media_type: &str, bytes: &[u8]) -> ArtifactRef {
    ArtifactRef {
        sha256: sha256(bytes),
        bytes: bytes.len() as u64,
        media_type: media_type.to_owned(),
        name: name.to_owned(),
    }
}

impl Builder {
    fn event(&mut self, trace: TraceId, name: &str, role: Role, payload: Payload) -> Event {
        self.count += 1;
        Event {
            trace,
            id: EventId::new(uuid(self.count)),
            at: at(self.count),
            actor: Actor { agent: agent(name), role, key: None },
            task: None,
            run: None,
            session: None,
            fence: None,
            payload,
            artifacts: Vec::new(),
            seen: None,
        }
    }

    fn system(&mut self, trace: TraceId, payload: Payload) -> Checked {
        let event = self.event(trace, "baton", Role::System, payload);
        signed(event, &secret(1))
    }

    #[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
    fn other(&mut self, trace: TraceId, event_type: &str, fields: Value) -> Event {
        let Value::Object(fields) = fields else { return self.other(trace, event_type, json!({})) };
        let payload = Payload::Other { event_type: event_type.parse().expect("a type"), fields };
        self.event(trace, "worker", Role::Executor, payload)
    }

    /// Seals decisions as one physical write.
    #[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
    fn write(&mut self, decisions: Vec<Vec<Checked>>) -> Vec<Receipt> {
        let start = self.chain.frontier().size() + 1;
        self.chain.begin_write();
        let mut receipts = Vec::new();
        for events in decisions {
            let proposal = Proposal { events, decided_on: Vec::new() };
            let nodes = &mut self.nodes;
            let sealed =
                self.chain.seal(&proposal, &NoPast, start, &mut self.journal, |node| nodes.push(node));
            receipts.extend(sealed.expect("admitted"));
        }
        receipts
    }
}

#[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
fn signed(event: Event, key: &SecretKey) -> Checked {
    Checked::just_signed(Body::signed(event, key).expect("a body"), key)
}

#[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
fn unsigned(event: &Event) -> Checked {
    Checked::unsigned(Body::unsigned(event).expect("a body")).expect("unsigned")
}

fn grant(key: &SecretKey) -> KeyGrant {
    KeyGrant {
        key: key.id(),
        public: key.public().to_text(),
        agent: agent("worker"),
        roles: vec![Role::Executor, Role::Planner],
    }
}

/// Makes the ledger.
#[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
pub fn make() -> Fixture {
    let (ledger_key, old, new) = (secret(1), secret(2), secret(3));
    let ledger = identity(&ledger_key);
    let mut b =
        Builder { chain: Chain::new(ledger.clone()), journal: Vec::new(), nodes: Vec::new(), count: 0 };
    let (work, talk) = (TraceId::Work(uuid(101)), TraceId::Work(uuid(102)));
    let created = Payload::LedgerCreated {
        origin: ledger.origin.clone(),
        key: ledger_key.id(),
        public: ledger_key.public().to_text(),
        durability: Durability::Commit,
    };
    let created = b.system(TraceId::Ledger, created);
    b.write(vec![vec![created]]);

    let opened = b.system(work, Payload::TraceOpened { title: Some("add a limit".into()) });
    let bound = b.system(work, Payload::KeyBound(grant(&old)));
    let intent =
        json!({"intent_id": "i1", "tool_name": "run_tests", "risk_class": "low", "justification": "check"});
    let intent = b.other(work, "tool_intent_signed", intent);
    let receipts = b.write(vec![vec![opened], vec![bound, signed(intent, &old)]]);

    let mut done = b.other(work, "tool_execution_completed", json!({"intent_id": "i1", "exit_status": 0}));
    done.artifacts = vec![
        artifact("in.json", "application/json", b"{}"),
        artifact("out.txt", "text/plain", b"ok: 12 passed\n"),
    ];
    done.seen = receipts.last().map(|r| Seen { seq: r.seq, hash: r.hash });
    (done.task, done.fence) = (Some("TASK-2026-01-01-001".parse().expect("a token")), Some(1));
    b.write(vec![vec![signed(done, &old)]]);

    let opened = b.system(talk, Payload::TraceOpened { title: None });
    let fields = json!({"text": "Gr\u{fc}\u{df}e \u{1f44b}\n\"quoted\" \\ \u{1}", "ratio": 0.1, "big": 1e21, "list": [null, true, -7]});
    let note = b.other(talk, "note", fields);
    b.write(vec![vec![opened, unsigned(&note)]]);

    let rotated = b.system(work, Payload::KeyRotated { old: old.id(), new: grant(&new) });
    b.write(vec![vec![rotated]]);
    let claim = b.other(
        work,
        "claim_issued",
        json!({"claim_id": "c1", "claim_text": "all tests pass", "confidence": 0.9}),
    );
    b.write(vec![vec![signed(claim, &new)]]);
    let revoked = b.system(work, Payload::KeyRevoked { key: new.id(), reason: "laptop lost".into() });
    let closed = b.system(work, Payload::TraceClosed { reason: "done".into() });
    b.write(vec![vec![revoked], vec![closed]]);
    let mut last = b.other(talk, "note", json!({}));
    (last.run, last.session) =
        (Some("run_1".parse().expect("a token")), Some("sess_1".parse().expect("a token")));
    b.write(vec![vec![unsigned(&last)]]);
    finish(b, ledger, &ledger_key, work)
}

#[expect(clippy::expect_used, reason = "a fixture is made of fixed values")]
fn finish(b: Builder, ledger: LedgerIdentity, key: &SecretKey, trace: TraceId) -> Fixture {
    let read = |index: u64| Ok::<_, ()>(b.nodes[index as usize]);
    let tree = b.chain.frontier();
    let (size, origin) = (tree.size(), ledger.origin.clone());
    let checkpoint = Checkpoint { origin: origin.clone(), size, root: tree.root() }.sign(key);
    let early = size / 2;
    let early_root = baton_ledger::merkle::Frontier::load(early, &mut |i| read(i)).expect("nodes").root();
    let early_checkpoint = Checkpoint { origin: origin.clone(), size: early, root: early_root }.sign(key);
    let end = b.chain.trace(trace).expect("the trace");
    let head = TraceHead { origin, trace, seq: end.seq, hash: end.hash }.sign(key);
    let lines: Vec<Line<'_>> = b
        .journal
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| Line::parse(line).expect("a record"))
        .collect();

    let artifacts: BTreeMap<Digest, Vec<u8>> =
        [&b"{}"[..], b"ok: 12 passed\n"].into_iter().map(|bytes| (sha256(bytes), bytes.to_vec())).collect();
    let make_bundle = |inline: bool| {
        let mine: Vec<&Line<'_>> = lines.iter().filter(|line| line.trace == trace).collect();
        let events = mine.len() as u64;
        let mut out = Header { ledger: ledger.clone(), trace, events, size, inline }.to_line();
        let mut positions = Hasher::default();
        for line in &mine {
            out.extend(bundle::event_line(line.text.as_bytes()));
            positions.update(format!("{}\n", line.pos).as_bytes());
        }
        for (hash, bytes) in artifacts.iter().filter(|_| inline) {
            out.extend(bundle::artifact_line(hash, bytes.len() as u64, 1, bytes));
        }
        out.extend(bundle::head_line(&head));
        out.extend(bundle::checkpoint_line(&checkpoint));
        let index = end.last_pos - 1;
        out.extend(bundle::proof_line(index, &prove_inclusion(index, size, read).expect("nodes")));
        let signed = mine.iter().filter(|line| line.sig.is_some()).count() as u64;
        let summary = Summary {
            artifacts: artifacts.len() as u64,
            closed: end.is_closed,
            events,
            head: end.hash,
            positions: positions.finish(),
            signed,
            trace,
        };
        out.extend(summary.to_line());
        out
    };
    let (bundle, bundle_without_artifacts) = (make_bundle(true), make_bundle(false));
    let path = prove_inclusion(4, size, read).expect("nodes");
    let event_proof = proof::event_proof(&ledger, lines[4].text, 4, &path, &checkpoint);
    let path = prove_consistency(early, size, read).expect("nodes");
    let consistency = proof::consistency_proof(&ledger, &path, &early_checkpoint, &checkpoint);
    Fixture {
        ledger,
        artifacts: MemoryArtifacts(artifacts),
        checkpoint,
        early_checkpoint,
        head,
        bundle,
        bundle_without_artifacts,
        proof: event_proof,
        consistency,
        journal: b.journal,
    }
}

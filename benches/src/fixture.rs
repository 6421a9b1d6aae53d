//! Ledgers to measure with: sixteen traces, sixteen keys, every event signed, lines of about 800 bytes.

use std::sync::Arc;
use std::thread;

use baton_core::event::Durability;
use baton_core::{Actor, AgentName, Event, KeyGrant, Origin, Payload, Role, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::seal::{Checked, Proposal};
use baton_store::disk::RealDisk;
use baton_store::registry::signed_own;
use baton_store::{FsJournal, History as _, Journal as _, Layout, Options, clock};
use serde_json::json;
use tempfile::TempDir;

/// A ledger on disk with agents that sign.
pub(crate) struct Ledger {
    pub dir: TempDir,
    pub journal: FsJournal,
    pub agents: Vec<Agent>,
    pub traces: Vec<TraceId>,
    pub key: Arc<SecretKey>,
}

pub(crate) struct Agent {
    pub name: AgentName,
    pub key: SecretKey,
}

/// Below the target directory: the same disk as the project, not a memory file system.
pub(crate) fn temp_dir() -> TempDir {
    let root = std::env::current_dir().expect("a working directory").join("target/bench-data");
    std::fs::create_dir_all(&root).expect("a directory for data");
    TempDir::new_in(root).expect("a directory for data")
}

pub(crate) fn make(traces: usize, agents: usize, durability: Durability) -> Ledger {
    let dir = temp_dir();
    let key = Arc::new(SecretKey::from_seed(&clock::new_seed()));
    let origin: Origin = "baton/bench".parse().expect("an origin");
    let ledger = LedgerIdentity { origin, key: *key.public() };
    let options = Options { durability, ..Options::default() };
    let layout = Layout::new(dir.path());
    let journal = FsJournal::create(Arc::new(RealDisk), &layout, ledger, &key, options).expect("a ledger");
    let agents: Vec<Agent> = (0..agents)
        .map(|i| Agent {
            name: format!("agent-{i}").parse().expect("a name"),
            key: SecretKey::from_seed(&clock::new_seed()),
        })
        .collect();
    let traces: Vec<TraceId> = (0..traces).map(|_| TraceId::Work(clock::new_uuid())).collect();
    for trace in &traces {
        let opened = signed_own(*trace, Payload::TraceOpened { title: None }, &key).expect("an event");
        let mut events = vec![opened];
        for agent in &agents {
            let grant = KeyGrant {
                key: agent.key.id(),
                public: agent.key.public().to_text(),
                agent: agent.name.clone(),
                roles: vec![Role::Executor],
            };
            events.push(signed_own(*trace, Payload::KeyBound(grant), &key).expect("an event"));
        }
        journal.append(Proposal { events, decided_on: Vec::new() }).expect("bound keys");
    }
    Ledger { dir, journal, agents, traces, key }
}

/// An event as an agent would record a tool call: a few fields and some text.
pub(crate) fn event(trace: TraceId, agent: &AgentName, n: u64) -> Event {
    let fields = json!({
        "tool": "run_tests",
        "n": n,
        "command": ["cargo", "test", "--workspace", "--", "--nocapture"],
        "exit_status": 0,
        "summary": "212 passed, 0 failed; the flaky network test was not touched by this change",
    });
    let serde_json::Value::Object(fields) = fields else { unreachable!("an object") };
    Event {
        trace,
        id: clock::new_event_id(),
        at: clock::now(),
        actor: Actor { agent: agent.clone(), role: Role::Executor, key: None },
        task: Some("TASK-2026-01-01-001".parse().expect("a token")),
        run: None,
        session: None,
        fence: Some(1),
        payload: Payload::Other { event_type: "tool_execution_completed".parse().expect("a type"), fields },
        artifacts: Vec::new(),
        seen: None,
    }
}

/// What a caller of `append` does: make the event, sign it, hand it over, wait until it is durable.
pub(crate) fn append_signed(journal: &FsJournal, trace: TraceId, agent: &Agent, n: u64) {
    let body = Body::signed(event(trace, &agent.name, n), &agent.key).expect("a body");
    let events = vec![Checked::just_signed(body, &agent.key)];
    journal.append(Proposal { events, decided_on: Vec::new() }).expect("appended");
}

/// The same without a signature, as Baton records what it did itself on a request.
pub(crate) fn append_unsigned(journal: &FsJournal, trace: TraceId, agent: &Agent, n: u64) {
    let body = Body::unsigned(&event(trace, &agent.name, n)).expect("a body");
    let events = vec![Checked::unsigned(body).expect("no signature needed")];
    journal.append(Proposal { events, decided_on: Vec::new() }).expect("appended");
}

/// The same with a signature that came from elsewhere: checked strictly before the queue.
pub(crate) fn append_foreign(journal: &FsJournal, trace: TraceId, agent: &Agent, n: u64) {
    let body = Body::signed(event(trace, &agent.name, n), &agent.key).expect("a body");
    let events = vec![Checked::check(body, agent.key.public()).expect("a good signature")];
    journal.append(Proposal { events, decided_on: Vec::new() }).expect("appended");
}

/// A closed ledger for reading.
pub(crate) struct Closed {
    pub dir: TempDir,
    pub events: u64,
    pub key: Arc<SecretKey>,
}

fn closed(events: u64) -> Closed {
    eprintln!("making a ledger of {events} events …");
    let ledger = make(16, 16, Durability::None);
    let writers = 32;
    thread::scope(|scope| {
        for writer in 0..writers {
            let ledger = &ledger;
            scope.spawn(move || {
                let (agent, trace) = (&ledger.agents[writer % 16], ledger.traces[writer / 2]);
                for n in 0..events / writers as u64 {
                    append_signed(&ledger.journal, trace, agent, n);
                }
            });
        }
    });
    let events = ledger.journal.size();
    ledger.journal.close().expect("closed");
    Closed { dir: ledger.dir, events, key: ledger.key }
}

pub(crate) fn large() -> Closed {
    closed(1_000_000)
}

pub(crate) fn small() -> Closed {
    closed(10_000)
}

//! One suite that every journal passes: the promises of [`Journal`] as small cases.
//!
//! An implementation calls [`run`] with a way to make an empty ledger. Each case panics with a sentence when a promise is broken.

use std::sync::Barrier;
use std::thread;

use baton_core::{Actor, Event, KeyGrant, Payload, Role, Seen, TraceId};
use baton_ledger::body::Body;
use baton_ledger::hash::leaf;
use baton_ledger::key::SecretKey;
use baton_ledger::merkle::{Frontier, check_inclusion, prove_inclusion};
use baton_ledger::record::Line;
use baton_ledger::seal::{Checked, Proposal, Receipt, Refusal};
use serde_json::{Map, Value, json};

use crate::clock;
use crate::ports::{AppendError, ArtifactStore, Journal};
use crate::registry::{self, signed_own};

/// An empty ledger and the key that it signs with.
pub struct Subject<'a> {
    pub journal: Box<dyn Journal + 'a>,
    pub ledger_key: &'a SecretKey,
}

impl std::fmt::Debug for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Subject({} events)", self.journal.size())
    }
}

/// A case of the suite.
type Case = (&'static str, fn(&Subject<'_>));

/// Runs every case on a ledger of its own.
pub fn run<'a>(make: impl Fn() -> Subject<'a>) {
    let cases: [Case; 10] = [
        ("a new ledger holds its creation and nothing else", starts_with_its_creation),
        ("positions and numbers have no gap and links hold", has_no_gaps),
        ("a decision over several traces is whole and in order", is_atomic_over_traces),
        ("a refused decision leaves nothing behind", refuses_whole),
        ("a moved head is a conflict", notices_a_moved_head),
        ("of several decisions each stands by itself, in order", answers_each_of_several),
        ("of many racing writers exactly one wins each place", lets_one_win_each_race),
        ("keys are bound, rotated and revoked at their place", judges_keys_at_their_place),
        ("what was seen must be there", checks_what_was_seen),
        ("every event can be proved from stored nodes", proves_every_event),
    ];
    for (name, case) in cases {
        println!("conformance: {name}");
        case(&make());
    }
}

fn event(trace: TraceId, event_type: &str, fields: Value) -> Event {
    Event {
        trace,
        id: clock::new_event_id(),
        at: clock::now(),
        actor: Actor { agent: parse("worker"), role: Role::Executor, key: None },
        task: None,
        run: None,
        session: None,
        fence: None,
        payload: Payload::Other {
            event_type: parse(event_type),
            fields: match fields {
                Value::Object(fields) => fields,
                _ => Map::new(),
            },
        },
        artifacts: Vec::new(),
        seen: None,
    }
}

fn parse<T: std::str::FromStr<Err = baton_core::ids::Error>>(text: &str) -> T {
    text.parse().unwrap_or_else(|error| panic!("{error}"))
}

fn unsigned(event: &Event) -> Checked {
    let body = Body::unsigned(event).unwrap_or_else(|error| panic!("{error}"));
    Checked::unsigned(body).unwrap_or_else(|error| panic!("{error}"))
}

fn note(trace: TraceId, n: u64) -> Checked {
    unsigned(&event(trace, "note", json!({ "n": n })))
}

fn new_trace() -> TraceId {
    TraceId::Work(clock::new_uuid())
}

fn append(subject: &Subject<'_>, events: Vec<Checked>) -> Vec<Receipt> {
    let appended = subject.journal.append(Proposal { events, decided_on: Vec::new() });
    appended.unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(subject: &Subject<'_>, proposal: Proposal) -> Refusal {
    match subject.journal.append(proposal) {
        Err(AppendError::Refused(refusal)) => refusal,
        other => panic!("expected a refusal, got {other:?}"),
    }
}

fn starts_with_its_creation(subject: &Subject<'_>) {
    let journal = &subject.journal;
    assert_eq!(journal.size(), 1);
    let lines = read(subject, 1, 10);
    assert_eq!(lines.len(), 1);
    let line = Line::parse(lines[0].as_bytes()).unwrap_or_else(|flaw| panic!("{flaw}"));
    assert_eq!((line.event_type, line.trace, line.seq, line.pos), ("ledger.created", TraceId::Ledger, 1, 1));
    assert_eq!(journal.traces().len(), 1);
    let again = signed_own(TraceId::Ledger, created(subject), subject.ledger_key);
    let again = again.unwrap_or_else(|error| panic!("{error}"));
    refusal(subject, Proposal { events: vec![again], decided_on: Vec::new() });
}

fn created(subject: &Subject<'_>) -> Payload {
    let ledger = subject.journal.ledger();
    Payload::LedgerCreated {
        origin: ledger.origin,
        key: ledger.key.id(),
        public: ledger.key.to_text(),
        durability: baton_core::Durability::Commit,
    }
}

fn read(subject: &Subject<'_>, from: u64, limit: usize) -> Vec<String> {
    let lines = subject.journal.read(from, limit).unwrap_or_else(|error| panic!("{error}"));
    lines.into_iter().map(|stored| stored.text).collect()
}

fn has_no_gaps(subject: &Subject<'_>) {
    let traces = [new_trace(), new_trace()];
    for n in 0..20 {
        let receipts = append(subject, vec![note(traces[n as usize % 2], n)]);
        assert_eq!(receipts[0].pos, n + 2);
        assert_eq!(receipts[0].seq, n / 2 + 1);
        assert_eq!(subject.journal.size(), n + 2, "durable at once");
    }
    for (i, text) in read(subject, 1, 100).iter().enumerate() {
        let line = Line::parse(text.as_bytes()).unwrap_or_else(|flaw| panic!("{flaw}"));
        assert_eq!(line.pos, i as u64 + 1);
        assert_eq!(line.link_hash(&line.body_digest()), line.hash);
        assert_eq!(subject.journal.find(line.id).unwrap_or_else(|e| panic!("{e}")), Some(line.pos));
    }
    let of_one = subject.journal.read_trace(traces[1], 3, 4).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(of_one.iter().map(|line| line.pos).collect::<Vec<_>>(), [7, 9, 11, 13]);
    assert!(read(subject, 100, 10).is_empty());
    let summary = subject.journal.trace(traces[0]).unwrap_or_else(|| panic!("the trace is known"));
    assert_eq!((summary.seq, summary.first_pos, summary.last_pos), (10, 2, 20));
    assert_eq!(subject.journal.find(clock::new_event_id()).unwrap_or_else(|e| panic!("{e}")), None);
}

fn is_atomic_over_traces(subject: &Subject<'_>) {
    let (a, b) = (new_trace(), new_trace());
    let receipts = append(subject, vec![note(a, 1), note(b, 2), note(a, 3)]);
    assert_eq!(receipts.iter().map(|r| (r.pos, r.seq)).collect::<Vec<_>>(), [(2, 1), (3, 1), (4, 2)]);
    for (i, text) in read(subject, 2, 3).iter().enumerate() {
        let line = Line::parse(text.as_bytes()).unwrap_or_else(|flaw| panic!("{flaw}"));
        assert_eq!(line.batch, Some((i as u32 + 1, 3)));
        assert_eq!(line.effective_commit(), 2);
    }
}

fn refuses_whole(subject: &Subject<'_>) {
    let trace = new_trace();
    append(subject, vec![note(trace, 1)]);
    let bad = unsigned(&event(trace, "claim_issued", json!({})));
    let proposal = Proposal { events: vec![note(trace, 2), bad], decided_on: Vec::new() };
    assert!(matches!(refusal(subject, proposal), Refusal::SignatureMissing { .. }));
    assert_eq!(subject.journal.size(), 2, "nothing of it was appended");
    let doubled = note(trace, 3);
    let twice = Proposal { events: vec![doubled.clone(), doubled.clone()], decided_on: Vec::new() };
    assert!(matches!(refusal(subject, twice), Refusal::IdTaken(_)));
    append(subject, vec![doubled.clone()]);
    let again = Proposal { events: vec![doubled], decided_on: Vec::new() };
    assert!(matches!(refusal(subject, again), Refusal::IdTaken(_)));
    let closed = signed_own(trace, Payload::TraceClosed { reason: "done".into() }, subject.ledger_key);
    append(subject, vec![closed.unwrap_or_else(|error| panic!("{error}"))]);
    let after = Proposal { events: vec![note(trace, 4)], decided_on: Vec::new() };
    assert!(matches!(refusal(subject, after), Refusal::Closed(closed) if closed == trace));
    assert_eq!(append(subject, vec![note(new_trace(), 5)])[0].pos, 5, "the journal goes on");
}

fn notices_a_moved_head(subject: &Subject<'_>) {
    let trace = new_trace();
    let decided = |on, n| Proposal { events: vec![note(trace, n)], decided_on: vec![(trace, on)] };
    subject.journal.append(decided(0, 1)).unwrap_or_else(|error| panic!("{error}"));
    let moved = refusal(subject, decided(0, 2));
    let head = subject.journal.trace(trace).unwrap_or_else(|| panic!("the trace is known"));
    assert_eq!(moved, Refusal::HeadMoved { trace, expected: 0, seq: 1, hash: head.head });
    subject.journal.append(decided(1, 2)).unwrap_or_else(|error| panic!("{error}"));
}

fn answers_each_of_several(subject: &Subject<'_>) {
    let (trace, other) = (new_trace(), new_trace());
    let decided = |trace, on, n| Proposal { events: vec![note(trace, n)], decided_on: vec![(trace, on)] };
    let all = vec![decided(trace, 0, 1), decided(trace, 0, 2), decided(other, 0, 3), decided(trace, 1, 4)];
    let answers = subject.journal.append_all(all);
    let place = |n: usize| match &answers[n] {
        Ok(receipts) => receipts[0].pos,
        Err(error) => panic!("{error}"),
    };
    assert_eq!([place(0), place(2), place(3)], [2, 3, 4]);
    let refused = matches!(&answers[1], Err(AppendError::Refused(Refusal::HeadMoved { seq: 1, .. })));
    assert!(refused, "it was decided on a head that the one before it moved: {:?}", answers[1]);
    assert_eq!(subject.journal.size(), 4);
    assert!(subject.journal.append_all(Vec::new()).is_empty());
}

fn lets_one_win_each_race(subject: &Subject<'_>) {
    const WRITERS: usize = 8;
    const ROUNDS: u64 = 20;
    let trace = new_trace();
    let start = Barrier::new(WRITERS);
    let journal = &subject.journal;
    let wins: u64 = thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS)
            .map(|_| {
                scope.spawn(|| {
                    let mut wins = 0;
                    for round in 0..ROUNDS {
                        start.wait();
                        let proposal =
                            Proposal { events: vec![note(trace, round)], decided_on: vec![(trace, round)] };
                        match journal.append(proposal) {
                            Ok(_) => wins += 1,
                            Err(AppendError::Refused(Refusal::HeadMoved { .. })) => {}
                            Err(error) => panic!("{error}"),
                        }
                    }
                    wins
                })
            })
            .collect();
        writers.into_iter().map(|writer| writer.join().unwrap_or_else(|_| panic!("a writer panicked"))).sum()
    });
    assert_eq!(wins, ROUNDS);
    assert_eq!(journal.trace(trace).map(|summary| summary.seq), Some(ROUNDS));
}

fn judges_keys_at_their_place(subject: &Subject<'_>) {
    let journal = &*subject.journal;
    let (old, new) = (SecretKey::from_seed(&clock::new_seed()), SecretKey::from_seed(&clock::new_seed()));
    let (agent, trace) = (parse("worker"), new_trace());
    let by = |key: &SecretKey| {
        let body =
            Body::signed(event(trace, "claim_issued", json!({})), key).unwrap_or_else(|e| panic!("{e}"));
        Checked::just_signed(body, key)
    };
    let one = |checked: Checked| Proposal { events: vec![checked], decided_on: Vec::new() };
    assert!(matches!(refusal(subject, one(by(&old))), Refusal::Key(_)), "not bound");
    let fail = |error: registry::Error| -> Vec<Receipt> { panic!("{error}") };
    registry::bind(journal, subject.ledger_key, &agent, old.public(), &[Role::Executor]).unwrap_or_else(fail);
    assert!(matches!(refusal(subject, one(by(&old))), Refusal::Key(_)), "bound elsewhere only");
    let grant = KeyGrant {
        key: old.id(),
        public: old.public().to_text(),
        agent: agent.clone(),
        roles: vec![Role::Executor],
    };
    let bound = signed_own(trace, Payload::KeyBound(grant), subject.ledger_key);
    append(subject, vec![bound.unwrap_or_else(|error| panic!("{error}")), by(&old)]);
    let forged = Checked::check(by(&old).body().clone(), new.public());
    assert!(matches!(forged, Err(Refusal::SignatureInvalid { .. })));
    registry::rotate(journal, subject.ledger_key, &agent, new.public(), &[Role::Executor])
        .unwrap_or_else(fail);
    assert!(matches!(refusal(subject, one(by(&old))), Refusal::Key(_)), "rotated away");
    append(subject, vec![by(&new)]);
    registry::revoke(journal, subject.ledger_key, &agent, "lost").unwrap_or_else(fail);
    assert!(matches!(refusal(subject, one(by(&new))), Refusal::Key(_)), "revoked");
    let keys = journal.keys(trace).unwrap_or_else(|error| panic!("{error}"));
    assert!(
        keys.knows(old.id()) && keys.knows(new.id()) && !keys.is_valid(old.id()) && !keys.is_valid(new.id())
    );
}

fn checks_what_was_seen(subject: &Subject<'_>) {
    let trace = new_trace();
    let first = append(subject, vec![note(trace, 1)]).remove(0);
    append(subject, vec![note(trace, 2)]);
    let reacting = |seq, hash| {
        let mut event = event(trace, "note", json!({}));
        event.seen = Some(Seen { seq, hash });
        Proposal { events: vec![unsigned(&event)], decided_on: Vec::new() }
    };
    assert!(matches!(refusal(subject, reacting(2, first.hash)), Refusal::Seen { .. }));
    assert!(matches!(refusal(subject, reacting(3, first.hash)), Refusal::Seen { .. }));
    subject.journal.append(reacting(1, first.hash)).unwrap_or_else(|error| panic!("{error}"));
}

fn proves_every_event(subject: &Subject<'_>) {
    let trace = new_trace();
    for n in 0..30 {
        append(subject, vec![note(trace, n)]);
    }
    let journal = &subject.journal;
    let (tree, size) = (journal.tree().unwrap_or_else(|e| panic!("{e}")), journal.size());
    assert_eq!(tree.size(), size);
    let loaded =
        Frontier::load(size, &mut |index| journal.node(index)).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(loaded, tree);
    for (index, text) in read(subject, 1, 100).iter().enumerate() {
        let line = Line::parse(text.as_bytes()).unwrap_or_else(|flaw| panic!("{flaw}"));
        let path =
            prove_inclusion(index as u64, size, |at| journal.node(at)).unwrap_or_else(|e| panic!("{e}"));
        assert!(check_inclusion(index as u64, size, leaf(&line.hash), &path, &tree.root()));
    }
}

/// The promises of an artifact store, on an empty one.
pub fn run_artifacts(store: &dyn ArtifactStore) {
    let fail = |error: std::io::Error| -> ! { panic!("{error}") };
    for bytes in [&b""[..], b"a", &vec![7; 3 << 20]] {
        let put = || store.put(&mut &bytes[..]).unwrap_or_else(|e| fail(e));
        let (sha256, length) = put();
        assert_eq!((sha256, length), (baton_ledger::hash::sha256(bytes), bytes.len() as u64));
        assert_eq!(put(), (sha256, length), "twice is the same as once");
        assert_eq!(store.length(&sha256).unwrap_or_else(|e| fail(e)), Some(length));
        let mut read = Vec::new();
        let mut source = store.open(&sha256).unwrap_or_else(|e| fail(e));
        source.read_to_end(&mut read).unwrap_or_else(|e| fail(e));
        assert_eq!(read, bytes);
    }
    let absent = baton_ledger::hash::sha256(b"never stored");
    assert_eq!(store.length(&absent).unwrap_or_else(|e| fail(e)), None);
    assert_eq!(store.open(&absent).err().map(|e| e.kind()), Some(std::io::ErrorKind::NotFound));
}

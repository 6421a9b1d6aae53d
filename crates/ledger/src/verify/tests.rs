//! What cannot be brought about from outside.

use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use baton_core::limits::ID_WINDOW;
use baton_core::{Digest, EventId, Timestamp, TraceId, Uuid7};

use super::feed::Segments;
use super::join::{Join, Scope};
use super::late::{self, Ids};
use super::report::{Report, Subject, Vouched};
use super::workers::{self, Alarm, Shared, lock};
use super::{Code, Options};
use crate::key::SecretKey;
use crate::keyring::LedgerIdentity;
use crate::record::Line;

/// Two segments of one bad line each, so two chunks.
#[derive(Default)]
struct TwoChunks {
    segments: u64,
    has_read: bool,
}

impl Segments for TwoChunks {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        self.segments += 1;
        self.has_read = false;
        Ok(Some(self.segments).filter(|segments| *segments <= 2))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        buffer[..2].copy_from_slice(b"x\n");
        Ok(if std::mem::replace(&mut self.has_read, true) { 0 } else { 2 })
    }
}

#[test]
fn a_worker_that_panics_before_its_turn_lets_the_others_go() {
    let shared = Arc::new(Shared::new(Join::new(Scope::Journal, None), TwoChunks::default()));
    let (taken, wait_taken) = mpsc::channel();
    let lost = thread::spawn({
        let shared = shared.clone();
        move || {
            let _alarm = Alarm(&*shared);
            let chunk = lock(&shared.feed).next().unwrap();
            taken.send(()).unwrap();
            panic!("with {chunk:?} in its hands");
        }
    });
    wait_taken.recv().unwrap();
    let (done, wait_done) = mpsc::channel();
    thread::spawn({
        let shared = shared.clone();
        move || {
            shared.work(None, &Options::default(), Scope::Journal);
            let _ = done.send(());
        }
    });
    wait_done.recv_timeout(Duration::from_secs(60)).expect("an end, not a hang");
    assert!(lost.join().is_err());
    assert!(lock(&shared.turn).error.is_some());
}

fn uuid(ms: u64) -> Uuid7 {
    Uuid7::from_parts(Timestamp::from_unix_ms(1_770_670_800_000 + ms as i64).unwrap(), [7; 10])
}

/// One trace whose events have ids of these times; the last is of this type.
fn trace_of(times: &[u64], last: &str) -> Vec<u8> {
    let (trace, mut prev, mut out) = (TraceId::Work(uuid(0)), Digest::ZERO, Vec::new());
    for (time, number) in times.iter().zip(1..) {
        let kind = if number == times.len() { last } else { "note" };
        let with = |hash: Digest| {
            let id = EventId::new(uuid(*time));
            let start =
                r#"{"actor":{"agent":"a","role":"operator"},"artifacts":[],"at":"2026-01-01T00:00:00.000Z","#;
            let middle =
                format!(r#""hash":"{hash}","id":"{id}","payload":{{}},"pos":{number},"prev":"{prev}","#);
            format!(r#"{start}{middle}"seq":{number},"trace":"{trace}","type":"{kind}","v":1}}"#)
        };
        let draft = with(Digest::ZERO);
        let line = Line::parse(draft.as_bytes()).unwrap();
        let hash = line.link_hash(&line.body_digest());
        out.extend_from_slice(with(hash).as_bytes());
        out.push(b'\n');
        prev = hash;
    }
    out
}

/// One segment in memory.
struct Memory(Vec<u8>, bool);

impl Segments for Memory {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.1, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let count = self.0.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0.drain(..count);
        Ok(count)
    }
}

fn scope() -> Scope {
    Scope::Trace(TraceId::Work(uuid(0)))
}

/// After the first pass over such a trace.
fn joined(source: Box<dyn Segments>, max: usize) -> Join {
    let key = *SecretKey::from_seed(&[1; 32].into()).public();
    let ledger = LedgerIdentity { origin: "baton/test".parse().unwrap(), key };
    let mut join = Join::new(scope(), Some(ledger));
    join.ids = Ids::kept(max);
    let mut join = workers::pass_through(join, source, None, &Options::default(), scope()).unwrap();
    join.finish();
    join
}

/// The lines at which an id is found to be doubled, with room for so many late ids at once; and how often the journal was read.
fn doubled(times: &[u64], max: usize) -> (Vec<u64>, u32) {
    let bytes = trace_of(times, "note");
    let reads = std::sync::atomic::AtomicU32::new(0);
    let open = || {
        reads.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Box::new(Memory(bytes.clone(), false)) as Box<dyn Segments>)
    };
    let mut join = joined(open().unwrap(), max);
    late::second_pass(&open, scope(), &mut join).unwrap();
    let report = Report::conclude(Subject::default(), &join.counts, join.findings, Vouched::default());
    assert!(report.findings.iter().all(|f| f.code == Code::SequenceGap), "{:?}", report.findings);
    (report.findings.iter().map(|finding| finding.line).collect(), reads.into_inner())
}

#[test]
fn late_ids_are_all_judged_however_few_are_kept_at_once() {
    let window = ID_WINDOW as u64;
    // Numbers 10, 20 … 90 come once before the window has passed; behind it come late ones, some of them for the second or third time.
    let early = (1..10).map(|n| n * 10);
    let filler = 1000..1000 + window + 20;
    let late = [11, 20, 12, 13, 50, 14, 20, 12, 15, 90, 16, 10];
    let times: Vec<u64> = early.chain(filler).chain(late).collect();
    let first = times.len() as u64 - late.len() as u64 + 1;
    let expected: Vec<u64> = [1, 4, 6, 7, 9, 11].map(|at| first + at).to_vec();
    for (max, reads) in [(1, 13), (2, 7), (5, 4), (11, 3), (12, 2), (100, 2)] {
        assert_eq!(doubled(&times, max), (expected.clone(), reads), "{max} at once");
    }
    let honest: Vec<u64> = (1000..1000 + window + 20).chain([11, 12, 13, 14, 15]).collect();
    assert_eq!(doubled(&honest, 2), (Vec::new(), 4));
}

#[test]
fn what_seen_needs_is_kept_while_a_trace_is_open() {
    let kept = |last: &str| {
        let bytes = trace_of(&[1, 2, 3], last);
        joined(Box::new(Memory(bytes, false)), 1).hashes_kept()
    };
    assert!(kept("note") >= 3);
    assert_eq!(kept("trace.closed"), 0);
}

//! Verifying: links, signatures, threads, memory.

use std::process::{Command, ExitCode};
use std::sync::Arc;
use std::time::Instant;

use baton_ledger::hash::sha256;
use baton_ledger::key::SecretKey;
use baton_ledger::verify::{OpenSegments, Options, Segments, Verdict, verify_journal};
use baton_store::artifacts::ArtifactDir;
use baton_store::disk::RealDisk;
use baton_store::journal::segments::SegmentReader;
use baton_store::{Layout, clock};
use baton_testkit::segments::OneSegment;

use crate::fixture::Closed;
use crate::{Figure, Goal, median};

const ROUNDS: usize = 3;

/// The first this many bytes of the large ledger are enough to measure rates; they are read into memory before.
const SAMPLE_BYTES: usize = 64 << 20;

pub(crate) fn run(small: &Closed, large: &Closed) -> Vec<Figure> {
    // In memory, so that the disk plays no part.
    let bytes = sample(large);
    let segment = OneSegment::new(&bytes);
    let events = bytes.iter().filter(|b| **b == b'\n').count() as f64;
    let rate = |options: &Options| {
        let open = || -> Result<Box<dyn Segments>, String> { Ok(Box::new(segment.clone())) };
        let start = Instant::now();
        let report = verify_journal(&open as OpenSegments<'_>, None, options);
        assert_eq!(report.verdict, Verdict::PassWithWarnings, "{:?}", report.findings);
        events / start.elapsed().as_secs_f64()
    };
    let links = Options { links_only: true, threads: 1, ..Options::default() };
    let each = Options { each: true, threads: 1, ..Options::default() };
    let batch = Options { threads: 1, ..Options::default() };
    let both = Options { threads: 2, ..Options::default() };
    let mut rates: [Vec<f64>; 6] = Default::default();
    for _ in 0..ROUNDS {
        rates[0].push(parse_rate(&bytes, events));
        rates[1].push(rate(&links));
        rates[2].push(raw_verify_rate());
        rates[3].push(rate(&each));
        rates[4].push(rate(&batch));
        rates[5].push(rate(&both));
    }
    let [parse, links, raw, each, batch, both] = rates.map(median);
    eprintln!(
        "events/s: JSON parsing {parse:.0}, links only {links:.0}, raw strict checks {raw:.0}, strict {each:.0}, batch {batch:.0}, \
         batch on two threads {both:.0}"
    );
    let memory = |closed: &Closed| peak_memory(closed);
    let (memory_small, memory_large) = (memory(small), memory(large));
    eprintln!(
        "peak memory: {memory_small:.0} kB at {} events, {memory_large:.0} kB at {}",
        small.events, large.events
    );
    vec![
        Figure { name: "verify.links_vs_json_parsing", value: links / parse, goal: Goal::AtLeast(0.5) },
        Figure { name: "verify.strict_vs_raw_signature_rate", value: each / raw, goal: Goal::AtLeast(0.85) },
        Figure { name: "verify.batch_vs_strict", value: batch / each, goal: Goal::AtLeast(2.5) },
        Figure { name: "verify.two_threads_vs_one", value: both / batch, goal: Goal::AtLeast(1.8) },
        Figure {
            name: "verify.memory_1000000_vs_10000",
            value: memory_large / memory_small,
            goal: Goal::AtMost(1.5),
        },
    ]
}

/// The first whole lines of a journal.
fn sample(closed: &Closed) -> Vec<u8> {
    let mut reader =
        SegmentReader::open(Arc::new(RealDisk), &Layout::new(closed.dir.path())).expect("segments");
    let mut bytes = vec![0; SAMPLE_BYTES];
    let mut filled = 0;
    while filled < bytes.len() && reader.next_segment().expect("a segment").is_some() {
        loop {
            let count = reader.read(&mut bytes[filled..]).expect("bytes");
            filled += count;
            if count == 0 || filled == bytes.len() {
                break;
            }
        }
    }
    bytes.truncate(filled);
    let end = bytes.iter().rposition(|b| *b == b'\n').expect("a line");
    bytes.truncate(end + 1);
    bytes
}

/// Plain parsing of the same lines into values.
fn parse_rate(bytes: &[u8], events: f64) -> f64 {
    let start = Instant::now();
    for line in bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty()) {
        let value: serde_json::Value = serde_json::from_slice(line).expect("JSON");
        std::hint::black_box(value);
    }
    events / start.elapsed().as_secs_f64()
}

/// Strict checks of single signatures and nothing else.
fn raw_verify_rate() -> f64 {
    const COUNT: u32 = 20_000;
    let keys: Vec<SecretKey> = (0..16).map(|_| SecretKey::from_seed(&clock::new_seed())).collect();
    let signed: Vec<_> = (0..COUNT)
        .map(|n| {
            let (body, key) = (sha256(&n.to_le_bytes()), &keys[n as usize % 16]);
            (body, key, key.sign_event(&body))
        })
        .collect();
    let start = Instant::now();
    for (body, key, signature) in &signed {
        assert!(key.public().verify_event(body, signature));
    }
    f64::from(COUNT) / start.elapsed().as_secs_f64()
}

pub(crate) fn peak_memory(closed: &Closed) -> f64 {
    let this = std::env::current_exe().expect("this program");
    let output = Command::new(this).arg("verify-memory").arg(closed.dir.path()).output().expect("a child");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("kilobytes")
}

/// What the events of a data directory cite.
pub(crate) fn artifacts_of(layout: &Layout) -> ArtifactDir {
    ArtifactDir::new(Arc::new(RealDisk), layout.artifacts())
}

/// Verifies a data directory and prints its own peak memory in kilobytes.
pub(crate) fn memory_child(path: &str) -> ExitCode {
    let layout = Layout::new(path);
    let open = || -> Result<Box<dyn Segments>, String> {
        Ok(Box::new(SegmentReader::open(Arc::new(RealDisk), &layout).map_err(|e| e.to_string())?))
    };
    let options = Options { threads: 2, ..Options::default() };
    let report = verify_journal(&open as OpenSegments<'_>, Some(&artifacts_of(&layout)), &options);
    assert_eq!(report.verdict, Verdict::PassWithWarnings, "{:?}", report.findings);
    let status = std::fs::read_to_string("/proc/self/status").expect("a status");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    println!("{}", peak.trim().trim_end_matches(" kB"));
    ExitCode::SUCCESS
}

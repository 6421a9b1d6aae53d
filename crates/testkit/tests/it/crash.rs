//! Nothing acknowledged is ever lost: a real process is killed again and again, and what it acknowledged is compared with what is there.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use baton_ledger::record::Line;
use baton_ledger::verify::{
    Code, OpenSegments, Options as VerifyOptions, Segments, Severity, verify_journal,
};
use baton_store::disk::RealDisk;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::journal::segments::SegmentReader;
use baton_store::{FsJournal, History as _, Journal as _, Layout, Options};
use baton_testkit::builders::{decision, identity, new_trace, note, secret};
use baton_testkit::deadline::within;
use baton_testkit::kill_disk::Moment;
use baton_testkit::rng::{Rng, from_env};

const WRITERS: u64 = 8;
const SEGMENT_BYTES: u64 = 48 * 1024;

/// One ledger that lives through many deaths of its writer.
struct Victim {
    dir: tempfile::TempDir,
    traces: String,
    acknowledged: BTreeSet<(u64, u64)>,
    /// Every note that is there, with its position.
    present: BTreeMap<(u64, u64), u64>,
    read_up_to: u64,
    deaths: u64,
    recoveries: u64,
}

impl Victim {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let key = secret(1);
        let options = Options { segment_bytes: SEGMENT_BYTES, ..Options::default() };
        let layout = Layout::new(dir.path());
        let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options).unwrap();
        let traces: Vec<_> = (0..3).map(|_| new_trace()).collect();
        for trace in &traces {
            journal.append(decision(vec![note(*trace, 999, 0)])).unwrap();
        }
        journal.close().unwrap();
        let traces = traces.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
        let (acknowledged, present) = (BTreeSet::new(), BTreeMap::new());
        Victim { dir, traces, acknowledged, present, read_up_to: 0, deaths: 0, recoveries: 0 }
    }

    /// Starts the writer and kills it after a while, or lets it kill itself at a chosen moment.
    fn live_and_die(&mut self, rng: &mut Rng, moment: Option<(Moment, u64)>) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hammer"));
        command
            .arg(self.dir.path())
            .arg(WRITERS.to_string())
            .arg(&self.traces)
            .arg(SEGMENT_BYTES.to_string());
        if let Some((moment, count)) = moment {
            command.arg(moment.as_str()).arg(count.to_string());
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().unwrap();
        let stdout = child.stdout.take().unwrap();
        let reader = thread::spawn(move || {
            let mut acknowledged = Vec::new();
            let mut lines = BufReader::new(stdout);
            let mut line = String::new();
            while lines.read_line(&mut line).unwrap() > 0 {
                // A line without its end was cut by the kill: it acknowledged nothing.
                if let Some((writer, n)) = line.strip_suffix('\n').and_then(|line| line.split_once(' ')) {
                    acknowledged.push((writer.parse().unwrap(), n.parse().unwrap()));
                }
                line.clear();
            }
            acknowledged
        });
        if moment.is_none() {
            // The moment of death is the random choice of this test, not a wait for anything.
            thread::sleep(Duration::from_micros(500 + rng.below(40_000)));
            child.kill().unwrap();
        } else {
            // A moment that never comes (no rename in a short life) ends by an ordinary kill.
            let start = Instant::now();
            while child.try_wait().unwrap().is_none() {
                if start.elapsed() > Duration::from_millis(400) {
                    child.kill().unwrap();
                }
                thread::yield_now();
            }
        }
        let status = child.wait().unwrap();
        assert!(status.code().is_none(), "the writer ended by itself: {status}");
        self.acknowledged.extend(reader.join().unwrap());
        self.deaths += 1;
    }

    /// Opens again as the next owner would, and compares.
    fn examine(&mut self, seed: u64) {
        let layout = Layout::new(self.dir.path());
        // Before anyone mends anything, the verifier may warn of a torn tail; it must not cry tampering.
        self.verify(&layout, seed);
        let options = Options { segment_bytes: SEGMENT_BYTES, checkpoint_every: 64, ..Options::default() };
        let (journal, opening) = FsJournal::open(Arc::new(RealDisk), &layout, |_| Ok(secret(1)), options)
            .unwrap_or_else(|e| panic!("seed {seed}: refused after a kill: {e}"));
        self.recoveries += opening.quarantined.len() as u64;
        while self.read_up_to < journal.size() {
            for stored in journal.read(self.read_up_to + 1, 1024).unwrap() {
                self.read_up_to = stored.pos;
                let line = Line::parse(stored.text.as_bytes()).unwrap();
                if line.event_type == "note" {
                    let fields: serde_json::Value = serde_json::from_str(line.payload).unwrap();
                    let note = (fields["writer"].as_u64().unwrap(), fields["n"].as_u64().unwrap());
                    let doubled = self.present.insert(note, stored.pos);
                    assert!(note.0 == 999 || doubled.is_none(), "seed {seed}: {note:?} is there twice");
                }
            }
        }
        let lost: Vec<_> = self.acknowledged.iter().filter(|note| !self.present.contains_key(note)).collect();
        assert!(lost.is_empty(), "seed {seed}: acknowledged and lost: {lost:?}");
        journal.close().unwrap();
    }

    fn verify(&self, layout: &Layout, seed: u64) {
        let open = || -> Result<Box<dyn Segments>, String> {
            Ok(Box::new(SegmentReader::open(Arc::new(RealDisk), layout).map_err(|e| e.to_string())?))
        };
        let kept = NoteDir::new(Arc::new(RealDisk), layout).all().unwrap();
        let options = VerifyOptions { kept, threads: 2, ..VerifyOptions::default() };
        let report = verify_journal(&open as OpenSegments<'_>, None, &options);
        let alarms: Vec<_> = report
            .findings
            .iter()
            .filter(|f| f.severity > Severity::Warning || f.code == Code::TailCut)
            .collect();
        assert!(alarms.is_empty(), "seed {seed}: false alarm after a kill: {alarms:?}");
    }
}

fn kill_many(kills: u64, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut victim = Victim::new();
    let (mut acknowledged, mut recoveries) = (0, 0);
    for i in 0..kills {
        // A fresh ledger now and then keeps the comparison cheap.
        if victim.present.len() > 30_000 {
            acknowledged += victim.acknowledged.len();
            recoveries += victim.recoveries;
            victim = Victim::new();
        }
        let moment = match i % 2 {
            0 => None,
            _ => Some((Moment::ALL[(i as usize / 2) % Moment::ALL.len()], rng.below(24))),
        };
        victim.live_and_die(&mut rng, moment);
        victim.examine(seed + i);
    }
    acknowledged += victim.acknowledged.len();
    recoveries += victim.recoveries;
    println!(
        "{kills} kills: {acknowledged} acknowledged, 0 lost, 0 doubled, 0 false alarms; {recoveries} torn tails set aside"
    );
    assert!(acknowledged > 0, "the writers never got to acknowledge anything");
}

#[test]
fn a_writer_that_is_killed_again_and_again_loses_nothing_that_it_acknowledged() {
    let kills = from_env("BATON_KILLS", 200);
    let seed = from_env("BATON_SEED", 1);
    println!("replay: BATON_SEED={seed} BATON_KILLS={kills} cargo test -p baton-testkit --test it crash");
    within(600 + kills, "crash", move || kill_many(kills, seed));
}

#[test]
fn a_dead_owner_does_not_hold_the_lock() {
    let victim = Victim::new();
    let mut child = Command::new(env!("CARGO_BIN_EXE_hammer"))
        .arg(victim.dir.path())
        .args(["2", &victim.traces, "65536"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
    let layout = Layout::new(victim.dir.path());
    let owner = baton_store::lock::holder(&layout).unwrap().expect("the writer holds it");
    assert_eq!(owner.pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(baton_store::lock::holder(&layout).unwrap(), None);
    baton_store::lock::OwnerLock::acquire(&layout, Duration::ZERO).expect("taken over at once");
}

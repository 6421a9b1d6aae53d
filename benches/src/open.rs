//! Opening a small and a large ledger, and one proof from the large one.

use std::sync::Arc;
use std::time::Instant;

use baton_ledger::proof::verify_proof;
use baton_ledger::verify::Verdict;
use baton_store::disk::RealDisk;
use baton_store::export::Exporter;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::{FsJournal, Layout, Options};

use crate::fixture::Closed;
use crate::{Figure, Goal, median};

const ROUNDS: usize = 21;

pub(crate) fn run(small: &Closed, large: &Closed) -> Vec<Figure> {
    let (mut of_small, mut of_large) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        of_small.push(open(small));
        of_large.push(open(large));
    }
    let (of_small, of_large) = (median(of_small), median(of_large));
    eprintln!(
        "opening: {:.2} ms at {} events, {:.2} ms at {}",
        of_small * 1e3,
        small.events,
        of_large * 1e3,
        large.events
    );
    let (bytes, seconds) = prove(large);
    vec![
        Figure { name: "open.1000000_vs_10000", value: of_large / of_small, goal: Goal::AtMost(2.0) },
        Figure { name: "proof.bytes_of_one_in_1000000", value: bytes, goal: Goal::AtMost(4096.0) },
        Figure { name: "proof.check_ms", value: seconds * 1e3, goal: Goal::AtMost(1.0) },
    ]
}

fn journal(closed: &Closed) -> FsJournal {
    let layout = Layout::new(closed.dir.path());
    let key = |_: &_| Ok(closed.key.clone());
    FsJournal::open(Arc::new(RealDisk), &layout, key, Options::default()).expect("opened").0
}

fn open(closed: &Closed) -> f64 {
    let start = Instant::now();
    let journal = journal(closed);
    let elapsed = start.elapsed().as_secs_f64();
    journal.close().expect("closed");
    elapsed
}

fn prove(closed: &Closed) -> (f64, f64) {
    let journal = journal(closed);
    let notes = NoteDir::new(Arc::new(RealDisk), &Layout::new(closed.dir.path()));
    let exporter = Exporter { journal: &journal, key: &closed.key, notes: &notes };
    let proof = exporter.prove(closed.events / 3).expect("a proof");
    let times = (0..ROUNDS).map(|_| {
        let start = Instant::now();
        assert_eq!(verify_proof(proof.as_bytes(), None, None).verdict, Verdict::PassWithWarnings);
        start.elapsed().as_secs_f64()
    });
    (proof.len() as f64, median(times.collect()))
}

//! The same promise on a disk that fails and forgets: short writes, errors, a full disk, syncs that lie dead, power cuts between any two operations.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::Digest;
use baton_ledger::record::Line;
use baton_ledger::verify::{
    ArtifactState, Artifacts as _, OpenSegments, Options as VerifyOptions, Segments, Severity, verify_journal,
};
use baton_store::artifacts::ArtifactDir;
use baton_store::journal::Keeping;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::journal::segments::SegmentReader;
use baton_store::{AppendError, ArtifactStore as _, FsJournal, History as _, Journal as _, Layout, Options};
use baton_testkit::builders::{decision, identity, new_trace, note, secret};
use baton_testkit::deadline::within;
use baton_testkit::rng::{Rng, from_env};
use baton_testkit::sim_disk::{Fault, SimDisk};

fn options() -> Options {
    // Small segments and frequent checkpoints, so that every operation happens often; nothing beside the writer, so that a seed gives the same run.
    Options { segment_bytes: 6_000, checkpoint_every: 7, keeping: Keeping::Inline, ..Options::default() }
}

fn layout() -> Layout {
    Layout::new("/sim")
}

fn create(disk: &SimDisk) -> FsJournal {
    let key = secret(1);
    FsJournal::create(Arc::new(disk.clone()), &layout(), identity(&key), &key, options()).unwrap()
}

fn open(disk: &SimDisk, why: &str) -> FsJournal {
    FsJournal::open(Arc::new(disk.clone()), &layout(), |_| Ok(secret(1)), options())
        .unwrap_or_else(|e| panic!("{why}: refused: {e}"))
        .0
}

/// The notes that are there, in order; checks that decisions are whole.
fn present(journal: &FsJournal, why: &str) -> Vec<u64> {
    let mut out = Vec::new();
    let mut open_batch: Option<(u32, u32)> = None;
    for stored in journal.read(1, usize::MAX >> 1).unwrap() {
        let line = Line::parse(stored.text.as_bytes()).unwrap();
        if let Some((i, n)) = open_batch {
            assert_eq!(line.batch, Some((i + 1, n)), "{why}: a decision is not whole");
        }
        open_batch = line.batch.filter(|(i, n)| i < n);
        if line.event_type == "note" {
            let fields: serde_json::Value = serde_json::from_str(line.payload).unwrap();
            out.push(fields["n"].as_u64().unwrap());
        }
    }
    assert_eq!(open_batch, None, "{why}: the last decision is not whole");
    out
}

fn verify(disk: &SimDisk, why: &str) {
    let reader = || -> Result<Box<dyn Segments>, String> {
        Ok(Box::new(SegmentReader::open(Arc::new(disk.clone()), &layout()).map_err(|e| e.to_string())?))
    };
    let kept = NoteDir::new(Arc::new(disk.clone()), &layout()).all().unwrap();
    let report = verify_journal(
        &reader as OpenSegments<'_>,
        None,
        &VerifyOptions { kept, ..VerifyOptions::default() },
    );
    let alarms: Vec<_> = report.findings.iter().filter(|f| f.severity > Severity::Warning).collect();
    assert!(alarms.is_empty(), "{why}: {alarms:?}");
}

/// One life after the other on one ledger, each ended by a fault; everything acknowledged must be in every later life.
fn simulate(seed: u64, lives: u64) -> (usize, u64) {
    let mut rng = Rng::new(seed);
    let mut disk = SimDisk::new(seed);
    create(&disk).close().unwrap();
    let traces: Vec<_> = (0..3).map(|_| new_trace()).collect();
    let mut acknowledged: BTreeSet<u64> = BTreeSet::new();
    let mut stored: BTreeSet<(Digest, u64)> = BTreeSet::new();
    let mut faults = 0;
    let mut n = 0;
    for life in 0..lives {
        let why = format!("seed {seed}, life {life}");
        let journal = open(&disk, &why);
        let there = present(&journal, &why);
        let unique: BTreeSet<u64> = there.iter().copied().collect();
        assert_eq!(unique.len(), there.len(), "{why}: doubled");
        let lost: Vec<_> = acknowledged.difference(&unique).collect();
        assert!(lost.is_empty(), "{why}: acknowledged and lost: {lost:?}");
        verify(&disk, &why);
        let artifacts = ArtifactDir::new(Arc::new(disk.clone()), layout().artifacts());
        for (sha256, bytes) in &stored {
            assert_eq!(artifacts.check(sha256, *bytes), ArtifactState::Good, "{why}: {sha256}");
        }

        let fault = [Fault::Error, Fault::Full, Fault::Short, Fault::Crash][rng.below(4) as usize];
        disk.fail_after(1 + rng.below(40), fault);
        for _ in 0..30 {
            let trace = traces[rng.below(3) as usize];
            let numbers: Vec<u64> = (0..1 + rng.below(4)).map(|i| n + i).collect();
            n += 4;
            if rng.chance(6) {
                // Stored is stored, also where the event that would cite it never comes.
                match artifacts.put(&mut format!("artifact {n}").repeat(100).as_bytes()) {
                    Ok(artifact) => drop(stored.insert(artifact)),
                    Err(_) => faults += 1,
                }
            }
            match journal.append(decision(numbers.iter().map(|n| note(trace, 0, *n)).collect())) {
                Ok(_) => acknowledged.extend(numbers),
                Err(AppendError::Full(_) | AppendError::Write(_) | AppendError::Unreadable(_)) => faults += 1,
                Err(AppendError::Poisoned(_)) => {
                    faults += 1;
                    let again = journal.append(decision(vec![note(trace, 0, n)]));
                    assert!(
                        matches!(again, Err(AppendError::Poisoned(_))),
                        "{why}: written after a failed sync"
                    );
                    break;
                }
                Err(AppendError::Refused(refusal)) => panic!("{why}: {refusal}"),
            }
        }
        // Mostly a crash; sometimes a clean end, which may itself meet the fault.
        if rng.chance(4) {
            let _ = journal.close();
        } else {
            drop(journal);
        }
        disk = if rng.chance(3) { disk.after_process_death() } else { disk.after_power_cut() };
    }
    (acknowledged.len(), faults)
}

#[test]
fn no_fault_of_the_disk_loses_or_doubles_what_was_acknowledged() {
    let seeds = from_env("BATON_SIM_SEEDS", 250);
    let first = from_env("BATON_SEED", 1);
    println!(
        "replay: BATON_SEED={first} BATON_SIM_SEEDS={seeds} cargo test -p baton-testkit --test it faults"
    );
    within(600 + seeds, "faults", move || {
        let (mut acknowledged, mut faults) = (0, 0);
        for seed in first..first + seeds {
            let (more, met) = simulate(seed, 12);
            acknowledged += more;
            faults += met;
        }
        println!(
            "{seeds} seeds: {acknowledged} acknowledged, {faults} faults met, 0 lost, 0 doubled, 0 false alarms"
        );
        assert!(faults > 0);
    });
}

#[test]
fn a_full_disk_is_named_refuses_and_works_again_when_there_is_room() {
    let disk = SimDisk::new(7);
    let journal = create(&disk);
    let trace = new_trace();
    journal.append(decision(vec![note(trace, 0, 0)])).unwrap();
    disk.set_capacity(Some(disk.used() + 2_000));
    let mut n = 1;
    let refused = loop {
        match journal.append(decision(vec![note(trace, 0, n)])) {
            Ok(_) => n += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AppendError::Full(_)), "{refused}");
    assert!(
        matches!(journal.append(decision(vec![note(trace, 0, n)])), Err(AppendError::Full(_))),
        "still full"
    );
    disk.set_capacity(None);
    journal.append(decision(vec![note(trace, 0, n)])).expect("there is room again");
    let there = present(&journal, "full disk");
    assert_eq!(there, (0..=n).collect::<Vec<_>>());
    verify(&disk, "full disk");
}

#[test]
fn after_a_failed_sync_nothing_more_is_written_until_the_journal_is_opened_anew() {
    let disk = SimDisk::new(11);
    let journal = create(&disk);
    let trace = new_trace();
    for n in 0..5 {
        journal.append(decision(vec![note(trace, 0, n)])).unwrap();
    }
    // The next append is a write, then its sync.
    disk.fail_after(2, Fault::Error);
    let failed = journal.append(decision(vec![note(trace, 0, 5)]));
    assert!(matches!(failed, Err(AppendError::Poisoned(_))), "{failed:?}");
    let operations = disk.operations();
    assert!(matches!(journal.append(decision(vec![note(trace, 0, 6)])), Err(AppendError::Poisoned(_))));
    assert_eq!(disk.operations(), operations, "nothing was tried again");
    drop(journal);
    let disk = disk.after_power_cut();
    let journal = open(&disk, "after a failed sync");
    let there = present(&journal, "after a failed sync");
    assert_eq!(there[..5], [0, 1, 2, 3, 4]);
    journal.append(decision(vec![note(trace, 0, 7)])).expect("works again");
}

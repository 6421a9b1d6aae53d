//! The same suite on every journal.

use std::sync::Arc;

use baton_store::artifacts::ArtifactDir;
use baton_store::conformance::{Subject, run, run_artifacts};
use baton_store::disk::RealDisk;
use baton_store::{FsJournal, Layout, MemoryJournal, Options};
use baton_testkit::builders::{identity, secret};
use baton_testkit::deadline::within;
use baton_testkit::sim_disk::SimDisk;

#[test]
fn the_journal_in_memory_keeps_the_promises() {
    within(120, "memory", || {
        let key = secret(1);
        run(|| {
            let journal = MemoryJournal::new(identity(&key), &key).unwrap();
            Subject { journal: Box::new(journal), ledger_key: &key }
        });
    });
}

#[test]
fn the_journal_on_disk_keeps_the_promises() {
    within(120, "disk", || {
        let (key, dir) = (secret(1), tempfile::tempdir().unwrap());
        let count = std::cell::Cell::new(0);
        run(|| {
            count.set(count.get() + 1);
            let layout = Layout::new(dir.path().join(count.get().to_string()));
            // A segment holds a few events only, so that every case crosses from one to the next.
            let options = Options { segment_bytes: 4096, checkpoint_every: 5, ..Options::default() };
            let journal = FsJournal::create(Arc::new(RealDisk), &layout, identity(&key), &key, options);
            Subject { journal: Box::new(journal.unwrap()), ledger_key: &key }
        });
    });
}

#[test]
fn artifacts_on_disk_keep_the_promises() {
    let dir = tempfile::tempdir().unwrap();
    run_artifacts(&ArtifactDir::new(Arc::new(RealDisk), dir.path().join("sha256")));
}

#[test]
fn the_journal_on_a_simulated_disk_keeps_the_promises() {
    within(120, "simulated", || {
        let key = secret(1);
        run(|| {
            let (disk, layout) = (Arc::new(SimDisk::new(3)), Layout::new("/sim"));
            let journal = FsJournal::create(disk, &layout, identity(&key), &key, Options::default());
            Subject { journal: Box::new(journal.unwrap()), ledger_key: &key }
        });
    });
}

//! What leaves the ledger is what its readers can check, and checkpoints are signed in time.

use std::fs;
use std::path::Path;
use std::time::Duration;

use baton_core::{ArtifactRef, Digest};
use baton_ledger::body::Body;
use baton_ledger::note::Checkpoint;
use baton_ledger::seal::Checked;
use baton_store::export::Error;
use baton_store::{ArtifactStore as _, Journal as _, Layout, Options, ReadError, Workspace};
use baton_testkit::builders::{decision, event};
use serde_json::json;

fn create(root: &Path, options: Options) -> Workspace {
    Workspace::create(&Layout::new(root.join("data")), &root.join("state"), options, Duration::ZERO).unwrap()
}

fn reopen(root: &Path, options: Options) -> Workspace {
    Workspace::open(&Layout::new(root.join("data")), &root.join("state"), options, Duration::ZERO).unwrap()
}

#[test]
fn a_changed_artifact_is_not_exported() {
    let dir = tempfile::tempdir().unwrap();
    let made = create(dir.path(), Options::default());
    let trace = made.new_trace(None).unwrap().trace;
    let (sha256, bytes) = made.artifacts.put(&mut &b"evidence"[..]).unwrap();
    let mut citing = event(trace, "note", json!({}));
    citing.artifacts =
        vec![ArtifactRef { sha256, bytes, media_type: "text/plain".into(), name: "e.txt".into() }];
    let checked = Checked::unsigned(Body::unsigned(&citing).unwrap()).unwrap();
    made.journal.append(decision(vec![checked])).unwrap();
    assert!(made.exporter().bundle(trace, Some(&made.artifacts), &mut Vec::new()).is_ok());
    for changed in ["evidencE", "evidence and more", "short"] {
        fs::write(made.artifacts.path(&sha256), changed).unwrap();
        let exported = made.exporter().bundle(trace, Some(&made.artifacts), &mut Vec::new());
        assert!(matches!(exported, Err(Error::Artifact { .. })), "{changed}: {exported:?}");
    }
}

#[test]
fn a_checkpoint_is_signed_once_events_have_waited_long_also_when_nobody_stays() {
    let latest =
        |workspace: &Workspace| workspace.notes.latest().map_or(0, |(checkpoint, _)| checkpoint.size);
    for (after, expected) in [(Duration::from_secs(3600), 0), (Duration::ZERO, 3)] {
        let dir = tempfile::tempdir().unwrap();
        let options = Options { checkpoint_after: after, ..Options::default() };
        create(dir.path(), options).close().unwrap();
        for _ in 0..2 {
            let workspace = reopen(dir.path(), options);
            workspace.new_trace(None).unwrap();
            workspace.close().unwrap();
        }
        assert_eq!(latest(&reopen(dir.path(), options)), expected);
    }
}

#[test]
fn a_new_ledger_in_a_new_directory_has_all_its_directories_and_keys() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("a/b");
    let made = create(&root, Options::default());
    let mode = |path: &Path| {
        use std::os::unix::fs::PermissionsExt as _;
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    };
    assert!(made.layout.dirs().iter().all(|dir| dir.is_dir()));
    assert_eq!(mode(made.keys.dir()), 0o700);
    assert_eq!(mode(&made.keys.path(made.ledger_key.id())), 0o600);
}

#[test]
fn a_kept_note_is_handed_out_only_if_it_would_convince_and_another_history_is_never_written_over() {
    let dir = tempfile::tempdir().unwrap();
    let made = create(dir.path(), Options::default());
    let (checkpoint, note) = made.exporter().checkpoint().unwrap();
    let path = dir.path().join(format!("data/checkpoints/{:020}", checkpoint.size));
    // A byte of the signature decayed: it is signed again.
    fs::write(&path, note.replacen(" baton/", " Baton/", 1)).unwrap();
    assert_eq!(made.exporter().checkpoint().unwrap().1, note);
    assert_eq!(fs::read_to_string(&path).unwrap(), note);
    // The ledger itself once said another thing.
    let other = Checkpoint { root: Digest::ZERO, ..checkpoint }.sign(&made.ledger_key);
    fs::write(&path, &other).unwrap();
    assert!(matches!(made.exporter().checkpoint(), Err(Error::Read(ReadError::Damaged { .. }))));
    assert!(made.exporter().prove(1).is_err());
    assert_eq!(fs::read_to_string(&path).unwrap(), other);
}

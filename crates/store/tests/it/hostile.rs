//! A pipe or a device in the place of a file: every operation ends, with an error or without it.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_store::artifacts::ArtifactDir;
use baton_store::disk::RealDisk;
use baton_store::{ArtifactStore as _, History as _, Layout, Options, Visit, Workspace};
use baton_testkit::deadline::within;
use rustix::fs::{CWD, Mode, mkfifoat};

fn workspace(root: &Path) -> Workspace {
    let layout = Layout::new(root.join("data"));
    Workspace::create(&layout, &root.join("state"), Options::default(), Duration::ZERO).unwrap()
}

/// Puts a pipe where a file was, and does everything that opens it.
fn with_pipe_at(file: &str) -> (Result<u64, String>, Result<u64, String>) {
    let dir = tempfile::tempdir().unwrap();
    let made = workspace(dir.path());
    made.new_trace(None).unwrap();
    made.exporter().checkpoint().unwrap();
    made.close().unwrap();
    let path = dir.path().join("data").join(file);
    fs::remove_file(&path).unwrap();
    mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
    let (root, name) = (dir.path().to_owned(), file.to_owned());
    within(20, file, move || {
        let layout = Layout::new(root.join("data"));
        let read = Visit::open(&layout).map(|visit| visit.reader.size()).map_err(|e| e.to_string());
        let options = Options::default();
        let written = Workspace::open(&layout, &root.join("state"), options, Duration::ZERO);
        let written = written.map_err(|e| e.to_string()).and_then(|workspace| {
            let size = workspace.journal.size();
            workspace.new_trace(None).map_err(|e| format!("{name}: {e}"))?;
            Ok(size)
        });
        (read, written)
    })
}

#[test]
fn a_pipe_in_the_place_of_a_segment_is_refused() {
    let (read, written) = with_pipe_at("events/00000000000000000001.jsonl");
    assert!(read.unwrap_err().contains("not a regular file"));
    assert!(written.unwrap_err().contains("not a regular file"));
}

#[test]
fn a_pipe_in_the_place_of_the_lock_is_refused() {
    let (read, written) = with_pipe_at("lock");
    assert_eq!(read, Ok(2));
    assert!(written.unwrap_err().contains("not a regular file"));
}

#[test]
fn a_pipe_in_the_place_of_an_index_file_stops_nobody_who_reads_and_is_refused_to_those_who_write() {
    for file in ["index/meta", "index/entries", "index/nodes", "index/traces.1"] {
        let (read, written) = with_pipe_at(file);
        assert_eq!(read, Ok(2), "{file}");
        let refused = written.unwrap_err();
        assert!(refused.contains(&format!("{file} is not a file")), "{refused}");
    }
}

#[test]
fn a_pipe_in_the_place_of_a_checkpoint_is_passed_over() {
    for file in ["checkpoints/latest", "checkpoints/00000000000000000002"] {
        assert_eq!(with_pipe_at(file), (Ok(2), Ok(2)), "{file}");
    }
}

#[test]
fn a_device_in_the_place_of_an_artifact_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let artifacts = ArtifactDir::new(Arc::new(RealDisk), dir.path());
    let (sha256, _) = artifacts.put(&mut &b"text"[..]).unwrap();
    let path = artifacts.path(&sha256);
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(artifacts.open(&sha256).is_err());
    assert!(artifacts.length(&sha256).is_err());
}

#[test]
fn a_private_key_that_is_a_pipe_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let made = workspace(dir.path());
    let path = made.keys.path(made.ledger_key.id());
    let (keys, id) = (made.keys.clone(), made.ledger_key.id());
    made.close().unwrap();
    fs::remove_file(&path).unwrap();
    mkfifoat(CWD, &path, Mode::from_raw_mode(0o600)).unwrap();
    let error = within(20, "key", move || keys.load(id).map(drop).unwrap_err());
    assert!(error.to_string().contains("not a regular file"), "{error}");
}

//! A panic while verifying reaches whoever asked; no worker waits for a turn that never comes.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use baton_core::Digest;
use baton_ledger::verify::{ArtifactState, Artifacts, Options, Segments, verify_journal};

use crate::writer::{Writer, artifact, note, trace, unsigned};

/// The words of the panic, or `None` where there was none. A hang becomes a failure.
fn panic_of(verify: impl FnOnce() + Send + 'static) -> Option<String> {
    let (done, wait) = mpsc::channel();
    thread::spawn(move || {
        let panic = catch_unwind(AssertUnwindSafe(verify)).err();
        let _ =
            done.send(panic.map(|panic| panic.downcast_ref::<&str>().map_or("?", |text| text).to_owned()));
    });
    wait.recv_timeout(Duration::from_secs(60)).expect("an end, not a hang")
}

/// Two good events, the second of which cites an artifact.
fn journal() -> Vec<u8> {
    let mut writer = Writer::new();
    let mut citing = note(2, trace(1));
    citing.artifacts = vec![artifact(b"content", "n")];
    writer.append(vec![unsigned(&citing)]).unwrap();
    writer.bytes
}

/// Panics where an artifact is looked at.
struct Shaky;

impl Artifacts for Shaky {
    fn check(&self, _: &Digest, _: u64) -> ArtifactState {
        panic!("artifact")
    }
}

/// A journal that is followed by bad lines without end: who goes on reading after the panic reads for ever.
struct Endless {
    journal: Vec<u8>,
    /// How many reads succeed.
    reads: Option<u32>,
    has_started: bool,
}

impl Segments for Endless {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.has_started, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        match &mut self.reads {
            Some(0) => panic!("read"),
            Some(left) => *left -= 1,
            None => {}
        }
        let count = self.journal.len().min(buffer.len());
        buffer[..count].copy_from_slice(&self.journal[..count]);
        self.journal.drain(..count);
        buffer[count..].fill(b'x');
        buffer[count..].iter_mut().step_by(4096).for_each(|byte| *byte = b'\n');
        Ok(buffer.len())
    }
}

/// Verifies an endless journal; `None` reads for ever and panics at the artifact.
fn panic_while_verifying(reads: Option<u32>, threads: usize) -> Option<String> {
    panic_of(move || {
        let open =
            || Ok(Box::new(Endless { journal: journal(), reads, has_started: false }) as Box<dyn Segments>);
        let artifacts = if reads.is_none() { Some(&Shaky as &dyn Artifacts) } else { None };
        verify_journal(&open, artifacts, &Options { threads, ..Options::default() });
    })
}

#[test]
fn a_panic_while_an_artifact_is_looked_at_ends_the_verification() {
    for threads in [1, 2, 4] {
        assert_eq!(panic_while_verifying(None, threads).as_deref(), Some("artifact"), "{threads} threads");
    }
}

#[test]
fn a_panic_while_reading_ends_the_verification() {
    for threads in [1, 2, 4] {
        for reads in [0, 3, 20] {
            let panic = panic_while_verifying(Some(reads), threads);
            assert_eq!(panic.as_deref(), Some("read"), "{threads} threads, {reads} reads");
        }
    }
}

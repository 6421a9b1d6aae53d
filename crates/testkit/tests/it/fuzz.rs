//! The fuzz targets on the stable toolchain: a seeded mutator works on good inputs for a bounded time.

use std::time::{Duration, Instant};

use baton_core::protocol::exit_signal::{ExitReason, ExitSignal, WorkPhase};
use baton_testkit::deadline::within;
use baton_testkit::fixtures;
use baton_testkit::fuzz;
use baton_testkit::rng::{Rng, from_env};

/// Changes a few places: flips, overwrites, removes, doubles, joins with another input.
fn mutate(rng: &mut Rng, base: &[u8], other: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 18] = [
        b"{",
        b"}",
        b"[",
        b"\"",
        b"\\u0000",
        b"\n",
        b"9007199254740992",
        b"1e400",
        b"-0",
        b"null",
        b"\xff",
        b",\"v\":2",
        b": ",
        b"- ",
        b" # ",
        b": |\n ",
        b"? ",
        b"\n---\n",
    ];
    let mut bytes = base.to_vec();
    for _ in 0..1 + rng.below(4) {
        let at = rng.below(bytes.len() as u64 + 1) as usize;
        let end = (at + rng.below(40) as usize).min(bytes.len());
        match rng.below(6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
            1 if at < bytes.len() => bytes[at] = rng.below(256) as u8,
            2 => drop(bytes.drain(at..end)),
            3 => {
                let piece = bytes[at..end].to_vec();
                drop(bytes.splice(at..at, piece));
            }
            4 => {
                let word = WORDS[rng.below(WORDS.len() as u64) as usize];
                drop(bytes.splice(at..at, word.iter().copied()));
            }
            _ => {
                let from = rng.below(other.len() as u64 + 1) as usize;
                let to = (from + rng.below(200) as usize).min(other.len());
                drop(bytes.splice(at..end, other[from..to].iter().copied()));
            }
        }
    }
    bytes
}

fn drive(name: &str, target: fn(&[u8]), bases: &[Vec<u8>]) {
    let seconds = from_env("BATON_FUZZ_SECONDS", 5);
    let seed = from_env("BATON_SEED", 1);
    let mut rng = Rng::new(seed);
    let start = Instant::now();
    let mut count = 0u64;
    while start.elapsed() < Duration::from_secs(seconds) {
        let base = &bases[rng.below(bases.len() as u64) as usize];
        let other = &bases[rng.below(bases.len() as u64) as usize];
        let input = mutate(&mut rng, base, other);
        let caught = std::panic::catch_unwind(|| target(&input));
        assert!(
            caught.is_ok(),
            "{name}: input {count} of seed {seed} panicked: {:?}",
            String::from_utf8_lossy(&input)
        );
        count += 1;
    }
    println!(
        "{name}: {count} inputs in {seconds} s; again: BATON_SEED={seed} cargo test -p baton-testkit --test it fuzz"
    );
    assert!(count > 0);
}

fn envelopes() -> Vec<Vec<u8>> {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/envelopes");
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    // The order of a folder is the file system's; a seed must give the same inputs everywhere.
    paths.sort();
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn outputs() -> Vec<Vec<u8>> {
    let signal = ExitSignal::new(WorkPhase::Implementation, ExitReason::Completed)
        .with_pr_url("https://example.org/pull/1")
        .with_evidence_bundle_ref("evidence/a.yaml")
        .with_notes("{\"done\"}");
    let compact = serde_json::to_string(&signal).unwrap();
    let pretty = serde_json::to_string_pretty(&signal).unwrap();
    vec![
        format!("Working.\n{compact}\nBye.\n").into_bytes(),
        format!("```json\n{pretty}\n```\n").into_bytes(),
        format!("fn main() {{\n{{\"a\": {compact}}} {compact}").into_bytes(),
    ]
}

/// Task files as they are written by Baton and by people.
const TASKS: [&str; 3] = [
    include_str!("../../../../fixtures/tasks/plain.md"),
    include_str!("../../../../fixtures/tasks/by-hand.md"),
    include_str!("../../../../fixtures/tasks/braces.md"),
];

#[test]
fn no_parser_panics_on_mutated_input() {
    within(3000, "fuzz", || {
        let fixture = fixtures::make();
        let lines: Vec<Vec<u8>> = fixture
            .journal
            .split(|b| *b == b'\n')
            .filter(|line| !line.is_empty())
            .map(<[u8]>::to_vec)
            .collect();
        drive("line", fuzz::line, &lines);
        let notes =
            [&fixture.checkpoint, &fixture.early_checkpoint, &fixture.head].map(|n| n.clone().into_bytes());
        drive("note", fuzz::note, &notes);
        let proofs = [fixture.proof.clone().into_bytes(), fixture.consistency.clone().into_bytes()];
        drive("proof", fuzz::proof, &proofs);
        drive("bundle", fuzz::bundle, &[fixture.bundle.clone(), fixture.bundle_without_artifacts.clone()]);
        drive("envelope", fuzz::envelope, &envelopes());
        drive("exit_scan", fuzz::exit_scan, &outputs());
        drive("frontmatter", fuzz::frontmatter, &TASKS.map(|task| task.as_bytes().to_vec()));
    });
}

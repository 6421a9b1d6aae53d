//! Two verifiers that know nothing of each other must agree: ours, and `tools/verify.py`, which was written from the protocol page.
//!
//! Python runs as one process and answers line by line. `make test` gives it the signature package; without that the test says how to get it.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use baton_core::limits::PROOF_BYTES_MAX;
use baton_core::{Digest, EventId, Timestamp, Uuid7};
use baton_ledger::proof::verify_proof;
use baton_ledger::record::Line;
use baton_ledger::verify::{Options, Report, Severity, verify_bundle};
use baton_testkit::deadline::within;
use baton_testkit::fixtures::{self, Fixture};
use baton_testkit::segments::{MemoryArtifacts, verify_bytes};
use serde_json::{Value, json};

/// An input for both.
#[derive(Debug, Clone)]
struct Case {
    name: String,
    kind: &'static str,
    data: Vec<u8>,
    checkpoint: Option<String>,
    artifacts: Option<MemoryArtifacts>,
}

/// What a verifier says, as far as both must say the same.
#[derive(Debug, PartialEq, Eq)]
struct Answer {
    verdict: String,
    code: Option<String>,
    /// The broken line; only a journal's lines are numbered the same by both.
    line: Option<u64>,
    integrity: String,
    /// Where nothing is broken: behind the first break theirs looks no further, and so cannot tell of the end.
    completeness: Option<String>,
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn ours(case: &Case) -> Answer {
    let options = Options {
        checkpoint: case.checkpoint.clone().map(String::into_bytes),
        threads: 1,
        ..Options::default()
    };
    let report: Report = match case.kind {
        "journal" => verify_bytes(&case.data, case.artifacts.as_ref(), &options),
        "bundle" => {
            let mut rest = case.data.as_slice();
            let mut read =
                |buffer: &mut [u8]| std::io::Read::read(&mut rest, buffer).map_err(|e| e.to_string());
            verify_bundle(&mut read, &options)
        }
        _ => verify_proof(&case.data, None, case.checkpoint.as_deref().map(str::as_bytes)),
    };
    let first = report.findings.first().filter(|f| f.severity > Severity::Warning);
    let is_unknown = report.verdict.as_str() == "unknown";
    Answer {
        verdict: report.verdict.as_str().to_owned(),
        code: first.filter(|_| !is_unknown).map(|f| f.code.as_str().to_owned()),
        line: first.filter(|f| case.kind == "journal" && f.line > 0 && !is_unknown).map(|f| f.line),
        integrity: report.integrity.to_owned(),
        completeness: (report.integrity == "intact").then(|| report.completeness.to_owned()),
    }
}

fn request(case: &Case) -> Value {
    let mut out = json!({"kind": case.kind, "data": BASE64.encode(&case.data)});
    if let Some(checkpoint) = &case.checkpoint {
        out["checkpoint"] = checkpoint.clone().into();
    }
    if let Some(artifacts) = &case.artifacts {
        out["artifacts"] =
            artifacts.0.iter().map(|(hash, bytes)| (hash.to_string(), BASE64.encode(bytes))).collect();
    }
    out
}

fn start_python() -> Child {
    let python = std::env::var("BATON_PYTHON").unwrap_or_else(|_| "python3".into());
    Command::new(&python)
        .arg(root().join("tools/verify.py"))
        .arg("--batch")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|e| panic!("{python}: {e}; run `make test`, which sets it up"))
}

/// Asks both about every case, and lists where they differ.
fn compare(cases: &[Case]) {
    let mut python = start_python();
    let (mut stdin, stdout) = (python.stdin.take().unwrap(), python.stdout.take().unwrap());
    let requests: Vec<Value> = cases.iter().map(request).collect();
    let writer = thread::spawn(move || {
        for request in requests {
            if writeln!(stdin, "{request}").is_err() {
                return;
            }
        }
    });
    let mut answers = BufReader::new(stdout).lines();
    let mut differences = Vec::new();
    let mut passed = 0;
    for case in cases {
        let mine = ours(case);
        let line = answers.next().expect("an answer for every question; see the message above").unwrap();
        let theirs: Value = serde_json::from_str(&line).unwrap();
        let theirs = Answer {
            verdict: theirs["verdict"].as_str().unwrap().to_owned(),
            code: theirs["code"].as_str().filter(|_| theirs["verdict"] != "unknown").map(str::to_owned),
            line: theirs["line"]
                .as_u64()
                .filter(|_| case.kind == "journal" && theirs["verdict"] != "unknown"),
            integrity: theirs["integrity"].as_str().unwrap().to_owned(),
            completeness: theirs["completeness"]
                .as_str()
                .filter(|_| theirs["integrity"] == "intact")
                .map(str::to_owned),
        };
        passed += usize::from(mine.verdict.starts_with("pass"));
        if mine != theirs {
            differences.push(format!("{}: ours {mine:?}, theirs {theirs:?}", case.name));
        }
    }
    writer.join().unwrap();
    assert!(python.wait().unwrap().success());
    println!("{} inputs, {passed} of them pass, {} differences", cases.len(), differences.len());
    let shown: Vec<_> = differences.iter().take(20).collect();
    assert!(differences.is_empty(), "{} of {} differ: {shown:#?}", differences.len(), cases.len());
}

/// One bit of every byte, a different one each time.
fn flips(base: &Case) -> impl Iterator<Item = Case> + '_ {
    (0..base.data.len()).map(move |at| {
        let mut case =
            Case { name: format!("{}: bit {} of byte {at} flipped", base.name, at % 8), ..base.clone() };
        case.data[at] ^= 1 << (at % 8);
        case
    })
}

/// Lines removed, doubled, exchanged and cut off.
fn line_mutations(base: &Case) -> Vec<Case> {
    let lines: Vec<&[u8]> = base.data.split_inclusive(|b| *b == b'\n').collect();
    let case = |name: String, lines: Vec<&[u8]>| Case {
        name: format!("{}: {name}", base.name),
        data: lines.concat(),
        ..base.clone()
    };
    let mut out = Vec::new();
    for i in 0..lines.len() {
        out.push(case(format!("line {i} removed"), [&lines[..i], &lines[i + 1..]].concat()));
        out.push(case(format!("line {i} doubled"), [&lines[..=i], &lines[i..]].concat()));
        out.push(case(format!("cut before line {i}"), lines[..i].to_vec()));
        out.push(case(
            format!("an empty line before line {i}"),
            [&lines[..i], &[&b"\n"[..]], &lines[i..]].concat(),
        ));
        for j in i + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(i, j);
            out.push(case(format!("lines {i} and {j} exchanged"), swapped));
        }
    }
    for length in (0..base.data.len()).step_by(7) {
        let data = base.data[..length].to_vec();
        out.push(Case { name: format!("{}: cut at byte {length}", base.name), data, ..base.clone() });
    }
    out
}

fn bases(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, kind, data: &[u8], checkpoint: Option<&str>, artifacts: bool| Case {
        name: name.to_owned(),
        kind,
        data: data.to_vec(),
        checkpoint: checkpoint.map(str::to_owned),
        artifacts: artifacts.then(|| fixture.artifacts.clone()),
    };
    vec![
        case("journal", "journal", &fixture.journal, None, true),
        case("journal with checkpoint", "journal", &fixture.journal, Some(&fixture.checkpoint), false),
        case("bundle", "bundle", &fixture.bundle, None, false),
        case(
            "bundle without artifacts",
            "bundle",
            &fixture.bundle_without_artifacts,
            Some(&fixture.head),
            false,
        ),
        case("proof", "proof", fixture.proof.as_bytes(), None, false),
        case("consistency proof", "proof", fixture.consistency.as_bytes(), None, false),
    ]
}

#[test]
fn both_verifiers_agree_on_every_mutation_of_every_fixture() {
    within(600, "second verifier", || {
        let fixture = fixtures::make();
        let bases = bases(&fixture);
        let mut cases = Vec::new();
        for base in &bases {
            assert!(ours(base).verdict.starts_with("pass"), "{}: {:?}", base.name, ours(base));
            cases.push(base.clone());
            cases.extend(flips(base));
            cases.extend(line_mutations(base));
        }
        compare(&cases);
    });
}

#[test]
fn both_verifiers_agree_on_proofs_that_are_too_long() {
    within(600, "second verifier, long proofs", || {
        let fixture = fixtures::make();
        let mut cases = Vec::new();
        for base in bases(&fixture) {
            let text = String::from_utf8(base.data.clone()).unwrap();
            let node = BASE64.encode([7; 32]);
            for nodes in [60, 63, 64, 65, 66, 200] {
                let data = match base.kind {
                    "proof" => {
                        text.replacen("\n\n", &format!("\n{}\n", format!("{node}\n").repeat(nodes)), 1)
                    }
                    "bundle" => {
                        let hashes = vec![format!("\"{node}\""); nodes].join(",");
                        text.replacen("{\"hashes\":[", &format!("{{\"hashes\":[{hashes},"), 1)
                    }
                    _ => continue,
                };
                let name = format!("{} with {nodes} nodes more", base.name);
                cases.push(Case { name, data: data.into_bytes(), ..base.clone() });
            }
            if base.kind == "proof" {
                for length in [PROOF_BYTES_MAX, PROOF_BYTES_MAX + 1] {
                    let mut data = base.data.clone();
                    data.resize(length, b'x');
                    cases.push(Case {
                        name: format!("{} of {length} bytes", base.name),
                        data,
                        ..base.clone()
                    });
                }
            }
        }
        compare(&cases);
    });
}

#[test]
fn both_verifiers_agree_on_flipped_bits_of_a_checkpoint_and_on_pre_fill() {
    within(600, "second verifier, checkpoints", || {
        let fixture = fixtures::make();
        let base = Case {
            name: "journal".into(),
            kind: "journal",
            data: fixture.journal.clone(),
            checkpoint: None,
            artifacts: None,
        };
        let mut cases = Vec::new();
        for note in [&fixture.checkpoint, &fixture.early_checkpoint, &fixture.head] {
            for base in bases(&fixture) {
                cases.push(Case { checkpoint: Some(note.clone()), ..base.clone() });
                let (name, notes) = (format!("{}, a byte of its note", base.name), note.len());
                let changed = (0..notes).step_by(7).filter_map(|at| {
                    let mut bytes = note.clone().into_bytes();
                    bytes[at] ^= 1 << (at % 7);
                    String::from_utf8(bytes).ok()
                });
                cases.extend(changed.map(|note| Case {
                    name: name.clone(),
                    checkpoint: Some(note),
                    ..base.clone()
                }));
            }
            for at in 0..note.len() {
                let mut bytes = note.clone().into_bytes();
                bytes[at] ^= 1 << (at % 7);
                // A note travels as text here, so only flips that leave it UTF-8 can be asked about.
                if let Ok(note) = String::from_utf8(bytes) {
                    cases.push(Case {
                        name: format!("byte {at} of a note"),
                        checkpoint: Some(note),
                        ..base.clone()
                    });
                }
            }
        }
        for length in (1..fixture.journal.len()).step_by(11) {
            // A writer killed in the middle of a write, in front of pre-fill.
            let mut data = fixture.journal[..length].to_vec();
            data.extend_from_slice(b"\n\n\n\n");
            cases.push(Case { name: format!("cut at {length}, then pre-fill"), data, ..base.clone() });
        }
        compare(&cases);
    });
}

/// A journal with one more note: an executor's, unsigned, with correct hashes, in the trace of the given line.
fn with_note(journal: &mut Vec<u8>, pos: i64, last_of_trace: &[u8], id: &str, seen: Option<(u64, &str)>) {
    let last = Line::parse(last_of_trace).unwrap();
    let (seq, prev, trace) = (last.seq + 1, last.hash, last.trace);
    let seen =
        seen.map_or(String::new(), |(seq, hash)| format!(r#""seen":{{"hash":"{hash}","seq":{seq}}},"#));
    let with = |hash: Digest| {
        let start = r#"{"actor":{"agent":"worker","role":"executor"},"artifacts":[],"at":"2026-01-01T00:01:00.000Z","#;
        let middle =
            format!(r#""hash":"{hash}","id":"{id}","payload":{{}},"pos":{pos},"prev":"{prev}",{seen}"#);
        format!(r#"{start}{middle}"seq":{seq},"trace":"{trace}","type":"note","v":1}}"#) + "\n"
    };
    let draft = with(Digest::ZERO);
    let line = Line::parse(draft.trim_end().as_bytes()).unwrap();
    journal.extend_from_slice(with(line.link_hash(&line.body_digest())).as_bytes());
}

fn event_id(ms: i64) -> String {
    let at = Timestamp::from_unix_ms(1_800_000_000_000 + ms).unwrap();
    EventId::new(Uuid7::from_parts(at, [5; 10])).to_string()
}

#[test]
fn both_verifiers_agree_behind_the_end_of_a_trace_and_on_ids_that_come_late() {
    within(600, "second verifier, late", || {
        let fixture = fixtures::make();
        let lines: Vec<&[u8]> = fixture.journal.split(|b| *b == b'\n').filter(|l| !l.is_empty()).collect();
        let case = |name: &str, data: Vec<u8>| Case {
            name: name.into(),
            kind: "journal",
            data,
            checkpoint: None,
            artifacts: None,
        };
        let mut cases = Vec::new();
        // Line 11 closes its trace; what an event behind it has seen is not looked at.
        let first = Line::parse(lines[1]).unwrap().hash.to_string();
        for seen in [None, Some((1, first.as_str())), Some((2, first.as_str())), Some((99, first.as_str()))] {
            let mut data = fixture.journal.clone();
            with_note(&mut data, 13, lines[10], &event_id(0), seen);
            cases.push(case(&format!("behind the end of a trace, seen {seen:?}"), data));
        }
        // More events than a window of ids holds, then one whose id is older than all of them.
        let mut long = fixture.journal.clone();
        let mut last = lines[11].to_vec();
        for n in 1..8300 {
            let start = long.len();
            with_note(&mut long, 12 + n, &last, &event_id(n), None);
            last = long[start..long.len() - 1].to_vec();
        }
        let known = Line::parse(lines[6]).unwrap().id.to_string();
        for (name, id) in [("late", event_id(-1)), ("late and doubled", known), ("doubled", event_id(8000))] {
            let mut data = long.clone();
            with_note(&mut data, 8312, &last, &id, None);
            cases.push(case(name, data));
        }
        let verdicts: Vec<_> = cases.iter().map(|case| (ours(case).code, ours(case).line)).collect();
        let (closed, gap) = (Some("ORDER_VIOLATION".to_owned()), Some("SEQUENCE_GAP".to_owned()));
        let mut expected = vec![(closed, Some(13)); 4];
        expected.extend([(None, None), (gap.clone(), Some(8312)), (gap, Some(8312))]);
        assert_eq!(verdicts, expected);
        compare(&cases);
    });
}

#[test]
fn both_verifiers_agree_on_guarded_runs() {
    within(600, "second verifier, guarded runs", || {
        let case = |(name, data): (String, Vec<u8>)| {
            let artifacts = Some(crate::guarded::artifacts());
            Case { name, kind: "journal", data, checkpoint: None, artifacts }
        };
        compare(&crate::guarded::histories().into_iter().map(case).collect::<Vec<_>>());
    });
}

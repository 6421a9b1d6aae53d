//! Bundles of one trace: good ones pass, and nothing one step away from them does.

use baton_core::{Digest, Role, TraceId};
use baton_ledger::bundle::{Summary, artifact_line, event_line};
use baton_ledger::hash::sha256;
use baton_ledger::note::{Checkpoint, TraceHead};
use baton_ledger::record::Line;
use baton_ledger::verify::{Code, Options, Report, Verdict};
use serde_json::json;

use crate::forger::{self, Record};
use crate::packer::{Parts, artifact_lines, citing};
use crate::reader::{codes, is_refused, options, shown, verdict, verify_bundle_bytes};
use crate::writer::{Writer, artifact, event, ledger, note, other, sample, secret, signed, trace, unsigned};

/// With the trace's own head given, so that a good bundle passes without any warning.
fn check(writer: &Writer, trace: TraceId, bundle: &[u8]) -> Report {
    verify_bundle_bytes(bundle, &options(Some(&writer.head(trace))))
}

#[track_caller]
fn first(report: &Report, code: Code, line: u64) {
    assert_eq!(verdict(report), (Verdict::Fail, Some(code), line), "{}", shown(report));
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i * 31 % 251) as u8).collect()
}

#[test]
fn bundles_of_every_trace_of_the_sample_pass() {
    let sample = sample();
    for (which, contents) in
        [(trace(0xa), vec![b"a plan".as_slice(), b""]), (trace(0xb), vec![]), (TraceId::Ledger, vec![])]
    {
        let bundle = Parts::new(&sample, which, Some(&contents)).bytes();
        let report = check(&sample, which, &bundle);
        assert_eq!(
            (report.verdict, report.integrity, report.completeness),
            (Verdict::Pass, "intact", "complete"),
            "{}",
            shown(&report)
        );
        assert_eq!(report.subject.trace, Some(which));
        let each = Options { each: true, ..options(Some(&sample.head(which))) };
        assert_eq!(shown(&verify_bundle_bytes(&bundle, &each)), shown(&report));
    }
}

#[test]
fn artifacts_of_all_sizes_are_checked_inline_and_counted_where_they_are_not() {
    let large = [pattern(524_288), pattern(1_200_000), pattern(524_289)];
    let contents = [b"".as_slice(), b"x", &large[0], &large[1], &large[2]];
    let writer = citing(&contents);
    let inline = Parts::new(&writer, trace(1), Some(&contents));
    assert_eq!(inline.artifacts.len(), 1 + 1 + 1 + 3 + 2);
    let report = check(&writer, trace(1), &inline.bytes());
    assert_eq!(report.verdict, Verdict::Pass, "{}", shown(&report));
    let outside = check(&writer, trace(1), &Parts::new(&writer, trace(1), None).bytes());
    assert_eq!(
        (outside.verdict, codes(&outside)),
        (Verdict::PassWithWarnings, vec![Code::ArtifactUnchecked])
    );
}

#[test]
fn no_bit_of_a_bundle_can_flip() {
    let writer = citing(&[b"", b"x"]);
    let bundle = Parts::new(&writer, trace(1), Some(&[b"", b"x"])).bytes();
    assert_eq!(check(&writer, trace(1), &bundle).verdict, Verdict::Pass);
    let mut flipped = bundle.clone();
    for bit in 0..bundle.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        // Alternately with what the reader kept and without anything.
        let options = if bit % 2 == 0 { options(None) } else { options(Some(&writer.head(trace(1)))) };
        let report = verify_bundle_bytes(&flipped, &options);
        assert!(is_refused(&report), "byte {} bit {}: {}", bit / 8, bit % 8, shown(&report));
        flipped[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn no_bit_of_an_inline_artifact_can_flip() {
    for (content, stride) in [(pattern(3000), 97), (pattern(1_200_000), 131_071)] {
        let writer = citing(&[&content]);
        let bundle = Parts::new(&writer, trace(1), Some(&[&content])).bytes();
        let start = bundle.windows(8).position(|window| window == b"\"data\":\"").unwrap();
        let end = bundle.windows(8).rposition(|window| window == b"{\"head\":").unwrap();
        let mut flipped = bundle.clone();
        for bit in (start * 8..end * 8).step_by(stride) {
            flipped[bit / 8] ^= 1 << (bit % 8);
            let report = check(&writer, trace(1), &flipped);
            assert!(is_refused(&report), "bit {bit}: {}", shown(&report));
            flipped[bit / 8] ^= 1 << (bit % 8);
        }
    }
}

#[test]
fn lines_of_a_bundle_cannot_be_left_out_doubled_exchanged_or_added() {
    let contents = [b"".as_slice(), b"x", &pattern(600_000)];
    let writer = citing(&contents);
    let bundle = Parts::new(&writer, trace(1), Some(&contents)).bytes();
    let lines: Vec<&[u8]> = bundle.split_inclusive(|b| *b == b'\n').collect();
    let refused = |lines: &[&[u8]], what: &str| {
        let report = check(&writer, trace(1), &lines.concat());
        assert_eq!(report.verdict, Verdict::Fail, "{what}: {}", shown(&report));
    };
    for i in 0..lines.len() {
        let mut changed = lines.clone();
        changed.remove(i);
        refused(&changed, &format!("line {i} left out"));
        changed.insert(i, lines[i]);
        changed.insert(i, lines[i]);
        refused(&changed, &format!("line {i} doubled"));
        for foreign in [b"\n".as_slice(), b"{}\n", b"null\n"] {
            changed[i] = foreign;
            refused(&changed, &format!("a foreign line at {i}"));
        }
        for j in i + 1..lines.len() {
            let mut changed = lines.clone();
            changed.swap(i, j);
            refused(&changed, &format!("lines {i} and {j}"));
        }
    }
    for more in [b"\n".as_slice(), b"{}\n", b"x", lines[lines.len() - 1]] {
        refused(&[lines.clone(), vec![more]].concat(), "something after the end");
    }
    for end in (1..bundle.len()).filter(|end| *end < 4000 || *end + 3000 > bundle.len() || *end % 50_021 == 0)
    {
        let report = check(&writer, trace(1), &bundle[..end]);
        assert_eq!(report.verdict, Verdict::Fail, "cut at {end}");
    }
    let empty = verify_bundle_bytes(b"", &options(None));
    assert_eq!((empty.verdict, codes(&empty)), (Verdict::Unknown, vec![Code::NoEvents]));
}

#[test]
fn each_part_of_a_bundle_has_its_code() {
    let writer = citing(&[b"x"]);
    let good = Parts::new(&writer, trace(1), Some(&[b"x"]));
    let after_events = 4;
    let found = |code, line, change: &dyn Fn(&mut Parts)| {
        first(&check(&writer, trace(1), &good.with(change)), code, line);
    };
    found(Code::SchemaInvalid, after_events, &|p| p.artifacts = artifact_lines(b"y"));
    found(Code::SchemaInvalid, after_events, &|p| p.artifacts.clear());
    found(Code::SchemaInvalid, after_events, &|p| {
        p.artifacts = vec![artifact_line(&sha256(b"x"), 1, 2, b"x")]
    });
    found(Code::SchemaInvalid, after_events, &|p| {
        p.artifacts = vec![artifact_line(&sha256(b"x"), 2, 1, b"x")]
    });
    found(Code::SchemaInvalid, after_events, &|p| {
        p.artifacts = vec![artifact_line(&sha256(b"x"), 1, 1, b"xy")]
    });
    found(Code::SchemaInvalid, after_events, &|p| {
        p.artifacts = vec![artifact_line(&sha256(b"x"), 1, 1, b"")]
    });
    found(Code::ArtifactHashMismatch, 0, &|p| p.artifacts = vec![artifact_line(&sha256(b"x"), 1, 1, b"y")]);
    found(Code::CheckpointMismatch, 0, &|p| p.index += 1);
    found(Code::CheckpointMismatch, 0, &|p| p.path.truncate(1));
    found(Code::CheckpointMismatch, 0, &|p| p.path.push(Digest::ZERO));
    found(Code::CheckpointMismatch, 0, &|p| p.header.size += 1);
    found(Code::CheckpointMismatch, 0, &|p| p.head = p.checkpoint.clone());
    found(Code::CheckpointMismatch, 0, &|p| p.checkpoint = p.head.clone());
    found(Code::CheckpointMismatch, 0, &|p| p.head = sample().head(trace(0xa)));
    found(Code::CheckpointMismatch, 0, &|p| p.checkpoint = sample().checkpoint());
    found(Code::CheckpointMismatch, 0, &|p| p.checkpoint = "no note".into());
    found(Code::ReportMismatch, 0, &|p| p.summary.artifacts += 1);
    found(Code::ReportMismatch, 0, &|p| p.summary.closed = true);
    found(Code::ReportMismatch, 0, &|p| p.summary.events += 1);
    found(Code::ReportMismatch, 0, &|p| p.summary.head = Digest::ZERO);
    found(Code::ReportMismatch, 0, &|p| p.summary.positions = Digest::ZERO);
    found(Code::ReportMismatch, 0, &|p| p.summary.signed = 0);
    found(Code::ReportMismatch, 0, &|p| p.summary.trace = trace(2));
    found(Code::SchemaInvalid, 4, &|p| p.header.events = 4);
    found(Code::SchemaInvalid, 3, &|p| p.header.events = 2);
    found(Code::SchemaInvalid, 1, &|p| p.header.events = 0);
    found(Code::SchemaInvalid, 1, &|p| p.header.trace = trace(2));
    found(Code::KeyUnknown, 1, &|p| p.header.ledger.key = *secret(2).public());
    found(Code::SchemaInvalid, after_events, &|p| p.header.inline = false);
    let origin = format!("\"origin\":\"{}\"", ledger().origin);
    let posing = String::from_utf8(good.bytes()).unwrap().replacen(&origin, "\"origin\":\"a/trace/b\"", 1);
    first(&check(&writer, trace(1), posing.as_bytes()), Code::SchemaInvalid, 1);
    // The report's line with a byte that is no UTF-8 is not canonical JSON at all.
    let mut bytes = good.bytes();
    let at = bytes.len() - 30;
    bytes[at] = 0xff;
    first(&check(&writer, trace(1), &bytes), Code::SchemaInvalid, after_events);
}

/// A bundle of these records, all notes and counts made to fit them.
fn forged(writer: &Writer, which: TraceId, records: &[Record]) -> Vec<u8> {
    let mut parts = Parts::new(writer, which, None);
    let last = &records[records.len() - 1];
    let hash: Digest = last.text("hash").parse().unwrap();
    let positions: String = records.iter().map(|record| format!("{}\n", record.0["pos"])).collect();
    parts.header.events = records.len() as u64;
    parts.events = records.iter().map(|record| event_line(record.line().trim_ascii_end())).collect();
    let head = TraceHead { origin: ledger().origin, trace: which, seq: records.len() as u64, hash };
    parts.head = head.sign(&secret(1));
    parts.header.size = last.0["pos"].as_u64().unwrap();
    parts.index = parts.header.size - 1;
    parts.path = vec![Digest([7; 32]); 40];
    let signed = records.iter().filter(|record| record.is_signed()).count() as u64;
    parts.summary = Summary {
        events: records.len() as u64,
        head: hash,
        positions: sha256(positions.as_bytes()),
        signed,
        ..parts.summary
    };
    parts.bytes()
}

#[test]
fn the_events_of_a_bundle_are_checked_like_those_of_a_journal() {
    let writer = citing(&[]);
    let records: Vec<Record> =
        forger::read(&writer.bytes).into_iter().filter(|r| r.text("trace") == trace(1).to_string()).collect();
    let found = |code, line, change: &dyn Fn(&mut Vec<Record>)| {
        let mut changed = records.clone();
        change(&mut changed);
        first(&check(&writer, trace(1), &forged(&writer, trace(1), &changed)), code, line);
    };
    found(Code::HashMismatch, 2, &|r| r[1] = r[1].clone().set("payload", json!({})));
    found(Code::SequenceGap, 2, &|r| r[1] = r[1].clone().set("pos", 2));
    found(Code::SequenceGap, 2, &|r| r[1] = r[1].clone().set("seq", 3).rehash());
    found(Code::SequenceGap, 3, &|r| r[2] = r[2].clone().set("id", r[0].text("id")).rehash());
    found(Code::ChainBreak, 2, &|r| r[1] = r[1].clone().set("prev", "0".repeat(64)).rehash());
    found(Code::SigMissing, 2, &|r| r[1] = r[1].clone().stripped().rehash());
    found(Code::KeyUnknown, 2, &|r| r[1] = r[1].clone().signed(&secret(9)).rehash());
    found(Code::SigInvalid, 2, &|r| r[1] = r[1].clone().with_signature_of(&r[0].clone()).rehash());
    found(Code::SchemaInvalid, 2, &|r| r[1] = r[1].clone().set("trace", trace(2).to_string()).rehash());
    found(Code::SchemaInvalid, 3, &|r| r[2] = r[2].clone().set("extra", 1).rehash());
    // A bad signature counts also where the bundle breaks off behind it, and before a line that cannot be judged.
    let bad = |r: &mut Vec<Record>| r[1] = r[1].clone().with_signature_of(&r[0].clone()).rehash();
    found(Code::SigInvalid, 2, &|r| {
        bad(r);
        r[2] = r[2].clone().set("v", 2);
    });
    let mut changed = records.clone();
    bad(&mut changed);
    let bundle = forged(&writer, trace(1), &changed);
    let third = bundle.split_inclusive(|b| *b == b'\n').take(3).map(<[u8]>::len).sum::<usize>();
    let report = check(&writer, trace(1), &bundle[..third + 10]);
    assert_eq!(
        (verdict(&report), report.first_broken),
        ((Verdict::Fail, Some(Code::SigInvalid), 2), Some(2))
    );
    let mut changed = records.clone();
    changed[2] = changed[2].clone().set("v", 2);
    let newer = check(&writer, trace(1), &forged(&writer, trace(1), &changed));
    assert_eq!((newer.verdict, codes(&newer)), (Verdict::Unknown, vec![Code::VersionNewer]));
}

#[test]
fn the_position_of_the_last_event_is_proved_and_the_others_are_only_reported() {
    let writer = citing(&[]);
    let good = Parts::new(&writer, trace(1), None);
    let positions: Vec<u64> = good
        .events
        .iter()
        .map(|line| Record::read(&line[9..line.len() - 2]).0["pos"].as_u64().unwrap())
        .collect();
    assert_eq!(positions, [2, 4, 6]);
    // No hash covers `pos`, so a forger changes it together with the report's digest over all of them.
    let moved = |to: [u64; 3]| {
        good.with(|parts| {
            for (line, pos) in parts.events.iter_mut().zip(to) {
                let record = Record::read(&line[9..line.len() - 2]).set("pos", pos);
                *line = event_line(record.line().trim_ascii_end());
            }
            let digits: String = to.iter().map(|pos| format!("{pos}\n")).collect();
            parts.summary.positions = sha256(digits.as_bytes());
        })
    };
    assert_eq!(check(&writer, trace(1), &moved([2, 4, 6])).verdict, Verdict::Pass);
    for last in [5, 7] {
        first(&check(&writer, trace(1), &moved([2, 4, last])), Code::CheckpointMismatch, 0);
    }
    assert_eq!(check(&writer, trace(1), &moved([1, 3, 6])).verdict, Verdict::Pass, "as the page says");
    first(&check(&writer, trace(1), &moved([4, 4, 6])), Code::SequenceGap, 2);
}

#[test]
fn one_hash_has_one_size() {
    let mut writer = Writer::new();
    for (n, bytes) in [(2, 1), (3, 2)] {
        let mut citing = note(n, trace(1));
        citing.artifacts = vec![artifact(b"x", "n")];
        citing.artifacts[0].bytes = bytes;
        writer.append(vec![unsigned(&citing)]).unwrap();
    }
    let bundle = Parts::new(&writer, trace(1), None).bytes();
    first(&check(&writer, trace(1), &bundle), Code::ArtifactHashMismatch, 2);
}

#[test]
fn a_bundle_of_the_trace_ledger_names_itself() {
    let mut writer = Writer::new();
    writer.append(vec![unsigned(&note(2, trace(1)))]).unwrap();
    writer.append(vec![unsigned(&note(3, TraceId::Ledger))]).unwrap();
    let good = Parts::new(&writer, TraceId::Ledger, None);
    assert_eq!(check(&writer, TraceId::Ledger, &good.bytes()).verdict, Verdict::Pass);
    let renamed = good.with(|parts| parts.header.ledger.origin = "baton/else".parse().unwrap());
    first(&verify_bundle_bytes(&renamed, &options(None)), Code::KeyUnknown, 1);
    // No hash covers `pos`; the ledger's first event is the journal's first all the same.
    let moved = good.with(|parts| {
        let record = Record::read(writer.lines()[0]).set("pos", 2);
        parts.events[0] = event_line(record.line().trim_ascii_end());
        parts.summary.positions = sha256(b"2\n3\n");
    });
    first(&check(&writer, TraceId::Ledger, &moved), Code::OrderViolation, 1);
}

#[test]
fn what_the_reader_gives_beside_a_bundle_is_compared() {
    let writer = citing(&[]);
    let bundle = Parts::new(&writer, trace(1), Some(&[])).bytes();
    let given = |note: &str| verify_bundle_bytes(&bundle, &options(Some(note)));
    let state = writer.chain.trace(trace(1)).unwrap();
    let lines: Vec<Line<'_>> = writer.lines().into_iter().map(|line| Line::parse(line).unwrap()).collect();
    let hash_of = |seq| lines.iter().find(|line| line.trace == trace(1) && line.seq == seq).unwrap().hash;
    let head = |seq, hash| TraceHead { origin: ledger().origin, trace: trace(1), seq, hash }.sign(&secret(1));
    let passes = |report: Report, completeness: &str| {
        assert_eq!(
            (report.verdict, report.completeness),
            (Verdict::Pass, completeness),
            "{}",
            shown(&report)
        );
    };
    passes(given(&head(3, state.hash)), "complete");
    passes(given(&head(2, hash_of(2))), "self-consistent");
    passes(given(&writer.checkpoint()), "self-consistent");
    // A checkpoint of another size says nothing about this trace: as good as none.
    let other_size = given(&sample().checkpoint());
    assert_eq!(other_size.verdict, Verdict::PassWithWarnings, "{}", shown(&other_size));
    assert_eq!(other_size.findings[0].code, Code::NoCheckpoint);
    first(&given(&head(4, state.hash)), Code::TailCut, 0);
    for wrong in [
        head(3, hash_of(2)),
        head(2, state.hash),
        head(0, state.hash),
        writer.head(trace(2)),
        Checkpoint { origin: ledger().origin, size: writer.size(), root: Digest::ZERO }.sign(&secret(1)),
        Checkpoint { origin: ledger().origin, size: 1, root: Digest::ZERO }.sign(&secret(2)),
        "no note".to_owned(),
    ] {
        first(&given(&wrong), Code::CheckpointMismatch, 0);
    }
    let nothing = verify_bundle_bytes(&bundle, &Options::default());
    assert_eq!(codes(&nothing), [Code::NoCheckpoint, Code::KeyUnpinned]);
    let stranger = Options { trust: Some(vec![*secret(2).public()]), ..Options::default() };
    first(&verify_bundle_bytes(&bundle, &stranger), Code::KeyUnknown, 0);
    let broken = baton_ledger::verify::verify_bundle(&mut |_: &mut [u8]| Err("gone".into()), &options(None));
    assert_eq!((broken.verdict, codes(&broken)), (Verdict::Unknown, vec![Code::Unreadable]));
}

#[test]
fn no_line_of_a_bundle_has_a_member_too_many() {
    let writer = citing(&[b"x"]);
    let good = Parts::new(&writer, trace(1), Some(&[b"x"])).bytes();
    let lines: Vec<&str> = std::str::from_utf8(&good).unwrap().split_inclusive('\n').collect();
    // The header, three events, an artifact, head, checkpoint, proof; a report that is not the expected one has another code.
    let expected_at = [1, 1, 2, 3, 4, 4, 4, 4];
    assert_eq!(lines.len(), expected_at.len() + 1);
    for (i, line_number) in expected_at.into_iter().enumerate() {
        let line = lines[i].trim_end();
        let outer = line.strip_suffix('}').map(|start| format!("{start},\"z\":1}}\n"));
        let inner = line.strip_suffix("}}").map(|start| format!("{start},\"z\":1}}}}\n"));
        for longer in [outer, inner].into_iter().flatten() {
            let bundle = [lines[..i].concat(), longer, lines[i + 1..].concat()].concat();
            first(&check(&writer, trace(1), bundle.as_bytes()), Code::SchemaInvalid, line_number);
        }
    }
}

#[test]
fn a_bad_signature_is_found_also_in_front_of_thousands_of_good_ones() {
    let mut writer = Writer::new();
    for n in 2..4200 {
        let event = event(n, trace(1), "baton", Role::System, other("ci.reported", &json!({})));
        writer.append(vec![signed(event, 1)]).unwrap();
    }
    let mut parts = Parts::new(&writer, trace(1), None);
    let (second, third) = (parts.events[1].clone(), parts.events[2].clone());
    let record = |line: &[u8]| Record::read(&line[b"{\"event\":".len()..line.len() - 2]);
    let forged = record(&second).with_signature_of(&record(&third)).rehash().line();
    parts.events[1] = event_line(forged.trim_ascii_end());
    let report = check(&writer, trace(1), &parts.bytes());
    let signatures: Vec<_> = report.findings.iter().filter(|f| f.code == Code::SigInvalid).collect();
    assert_eq!(signatures.iter().map(|f| f.line).collect::<Vec<_>>(), [2]);
}

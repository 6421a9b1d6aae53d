//! Segments and their tails: pre-filled, torn, empty, wherever the reads happen to end.

use baton_ledger::verify::{
    CHUNK_BYTES, Code, Options, Report, Segments, Verdict, is_cut_short, verify_journal,
};
use serde_json::json;

use crate::reader::{Memory, codes, options, shown, verdict};
use crate::writer::{self, Writer, event, note, other, sample, trace, unsigned};

/// The report over these segments, the same for every length of a read.
#[track_caller]
fn check(segments: &[(u64, &[u8])], checkpoint: Option<&str>) -> Report {
    let report = |step: usize, threads| {
        let open = || Ok(Box::new(Memory::new(segments, step)) as Box<dyn Segments>);
        verify_journal(&open, Some(&writer::shelf()), &Options { threads, ..options(checkpoint) })
    };
    let whole = report(usize::MAX, 1);
    for (step, threads) in [(1, 1), (7, 2), (4096, 2)] {
        if segments.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() / step < 100_000 {
            assert_eq!(shown(&report(step, threads)), shown(&whole), "{step} bytes at a time");
        }
    }
    whole
}

/// The sample in several segments.
fn cut_into(sizes: &[usize]) -> Vec<(u64, Vec<u8>)> {
    let sample = sample();
    let mut lines = sample.lines().into_iter();
    let mut first = 1;
    let mut cut = |size: usize| {
        let bytes: Vec<u8> = lines.by_ref().take(size).flat_map(|line| [line, b"\n"].concat()).collect();
        first += size as u64;
        (first - size as u64, bytes)
    };
    sizes.iter().map(|size| cut(*size)).collect()
}

fn borrowed(segments: &[(u64, Vec<u8>)]) -> Vec<(u64, &[u8])> {
    segments.iter().map(|(first, bytes)| (*first, bytes.as_slice())).collect()
}

#[test]
fn it_does_not_matter_how_the_journal_is_cut_into_segments() {
    let checkpoint = sample().checkpoint();
    let whole = shown(&check(&borrowed(&cut_into(&[13])), Some(&checkpoint)));
    for sizes in [vec![1, 12], vec![12, 1], vec![3, 2, 8], vec![1; 13]] {
        assert_eq!(shown(&check(&borrowed(&cut_into(&sizes)), Some(&checkpoint))), whole, "{sizes:?}");
    }
}

#[test]
fn line_feeds_at_the_end_of_the_last_segment_are_not_lines() {
    let checkpoint = sample().checkpoint();
    for feeds in [1, 2, 1000] {
        let mut segments = cut_into(&[5, 8]);
        segments[1].1.extend(vec![b'\n'; feeds]);
        assert_eq!(check(&borrowed(&segments), Some(&checkpoint)).verdict, Verdict::Pass);
    }
    // More of them than one chunk holds.
    let mut segments = cut_into(&[13]);
    segments[0].1.extend(vec![b'\n'; 2 * CHUNK_BYTES]);
    assert_eq!(check(&borrowed(&segments), Some(&checkpoint)).verdict, Verdict::Pass);
}

#[test]
fn an_empty_line_anywhere_else_does_not_parse() {
    let mut segments = cut_into(&[5, 8]);
    segments[0].1.push(b'\n');
    let report = check(&borrowed(&segments), None);
    assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SchemaInvalid), 6));
    let mut segments = cut_into(&[5, 8]);
    segments[1].1.insert(0, b'\n');
    assert_eq!(verdict(&check(&borrowed(&segments), None)), (Verdict::Fail, Some(Code::SchemaInvalid), 6));
    // Before a tail that is torn in a later segment as well: the first segment was not the last.
    let mut segments = cut_into(&[13]);
    segments[0].1.push(b'\n');
    segments.push((14, b"{\"torn".to_vec()));
    assert_eq!(verdict(&check(&borrowed(&segments), None)), (Verdict::Fail, Some(Code::SchemaInvalid), 14));
}

/// Tails that the last segment may have after a crash, each with and without what follows it.
const TORN: [&[u8]; 9] = [
    b"{",
    b"x",
    b"{\"actor\":{\"agent\":\"b",
    b"\n\n{\"a",
    b"{\"a\":[1,2",
    b"{\"a\":\"}\\\"}\"\n\n",
    b"{\"actor\":{\n\n\n\n",
    b"\n\n{\"a\n\n",
    b"{\"a\":{}\n\n\n{\"b",
];

#[test]
fn a_torn_tail_is_a_warning_in_the_last_segment() {
    let checkpoint = sample().checkpoint();
    for tail in TORN {
        for sizes in [vec![13], vec![12, 1]] {
            let mut segments = cut_into(&sizes);
            segments.last_mut().unwrap().1.extend_from_slice(tail);
            let report = check(&borrowed(&segments), Some(&checkpoint));
            let shown = String::from_utf8_lossy(tail);
            assert_eq!(verdict(&report), (Verdict::PassWithWarnings, Some(Code::TornTail), 0), "{shown:?}");
            assert_eq!((report.integrity, report.completeness), ("intact", "incomplete"));
        }
        // A segment that holds nothing but the tail is not one without a line.
        let mut segments = cut_into(&[13]);
        segments.push((14, tail.to_vec()));
        assert_eq!(codes(&check(&borrowed(&segments), Some(&checkpoint))), [Code::TornTail]);
    }
}

#[test]
fn a_torn_tail_in_any_other_segment_is_a_line_that_does_not_parse() {
    for tail in TORN {
        let mut segments = cut_into(&[5, 8]);
        segments[0].1.extend_from_slice(tail);
        let report = check(&borrowed(&segments), None);
        let shown = String::from_utf8_lossy(tail);
        assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SchemaInvalid), 6), "{shown:?}");
        // Also where the segment after it has nothing but a torn tail of its own.
        let mut segments = cut_into(&[13]);
        segments[0].1.extend_from_slice(tail);
        segments.push((14, b"{\"torn".to_vec()));
        assert_eq!(
            verdict(&check(&borrowed(&segments), None)),
            (Verdict::Fail, Some(Code::SchemaInvalid), 14),
            "{shown:?}"
        );
    }
}

#[test]
fn what_looks_torn_but_is_closed_or_followed_is_a_line() {
    for tail in [
        b"{\n".as_slice(),
        b"{}\n\n",
        b"{\"a\":[]}x\n\n",
        b"x\n\n",
        b"[\n\n",
        b"{\"a\n{\"b\n\n",
        b"{\"a\n\n{\"b\n",
        b"{\"a\nx",
    ] {
        let mut segments = cut_into(&[13]);
        segments[0].1.extend_from_slice(tail);
        let report = check(&borrowed(&segments), None);
        let shown = String::from_utf8_lossy(tail);
        assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SchemaInvalid), 14), "{shown:?}");
    }
}

#[test]
fn an_object_is_cut_short_while_its_depth_has_not_come_back_to_zero() {
    for open in ["{", "{\"a\":\"}", "{\"a\":{}", "{\"a\":\"\\\"}", "{[}", "{\"\\\\\":["] {
        assert!(is_cut_short(open.as_bytes()), "{open}");
    }
    for closed in ["", "x", "[", "{}", "{\"a\":\"\\\\\"}", "{]", "{}{", "{\"a\":{}}"] {
        assert!(!is_cut_short(closed.as_bytes()), "{closed}");
    }
}

#[test]
fn a_segment_without_a_line_is_found_where_its_first_line_would_be() {
    for nothing in [b"".as_slice(), b"\n", b"\n\n\n"] {
        for place in 0..3 {
            let mut segments = cut_into(&[5, 8]);
            let first = [1, 6, 14][place];
            segments.insert(place, (first, nothing.to_vec()));
            let report = check(&borrowed(&segments), None);
            assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SchemaInvalid), first), "{place}");
        }
        let report = check(&[(1, nothing)], None);
        assert_eq!((report.verdict, codes(&report)), (Verdict::Unknown, vec![Code::NoEvents]), "alone");
        assert_eq!(check(&[(1, nothing), (1, nothing)], None).verdict, Verdict::Fail);
    }
}

#[test]
fn a_journal_that_ends_inside_a_decision_has_lost_its_end() {
    // Lines 2 to 4 are one decision.
    for size in [2, 3] {
        let report = check(&borrowed(&cut_into(&[size])), None);
        assert_eq!(codes(&report), [Code::TornTail, Code::NoCheckpoint]);
        assert_eq!((report.verdict, report.completeness), (Verdict::PassWithWarnings, "incomplete"));
    }
    assert_eq!(codes(&check(&borrowed(&cut_into(&[4])), None)), [Code::NoCheckpoint]);
}

/// A journal that, with `tail`, fills a chunk up to some bytes after (or before) the tail's first line feed.
fn filling_a_chunk(tail: &[u8], beyond: i64) -> (Writer, Vec<u8>) {
    let mut writer = Writer::new();
    let mut n = 2;
    let feed = tail.iter().position(|b| *b == b'\n').unwrap() as i64 + 1;
    let target = CHUNK_BYTES as i64 - feed - beyond;
    loop {
        let left = target - writer.bytes.len() as i64;
        if left == 0 {
            break;
        }
        // The last line is made as long as is left; all before it stay clear of that.
        let empty =
            event(n, trace(1), "helper", baton_core::Role::Operator, other("note", &json!({"x": ""})));
        let mut probe = Vec::new();
        let link = baton_ledger::body::Link {
            pos: writer.size() + 1,
            seq: writer.chain.trace(trace(1)).map_or(1, |state| state.seq + 1),
            prev: baton_core::Digest::ZERO,
            batch: None,
            commit: None,
        };
        baton_ledger::body::Body::unsigned(&empty).unwrap().seal(&link, &mut probe);
        let room = left - probe.len() as i64;
        let length = if room <= 600_000 { room } else { 500_000 };
        let filler = other("note", &json!({"x": "y".repeat(length as usize)}));
        writer
            .append(vec![unsigned(&event(n, trace(1), "helper", baton_core::Role::Operator, filler))])
            .unwrap();
        n += 1;
    }
    let bytes = [writer.bytes.as_slice(), tail].concat();
    (writer, bytes)
}

#[test]
fn a_torn_line_is_torn_also_where_a_chunk_ends_right_behind_it() {
    let prefill = [b"{\"torn".as_slice(), &[b'\n'; 100]].concat();
    for beyond in -2..=3 {
        let (writer, bytes) = filling_a_chunk(&prefill, beyond);
        let report = check(&[(1, &bytes)], Some(&writer.checkpoint()));
        assert_eq!(
            (report.verdict, codes(&report)),
            (Verdict::PassWithWarnings, vec![Code::TornTail]),
            "{beyond}"
        );
    }
}

#[test]
fn lines_on_both_sides_of_a_chunks_end_are_all_judged() {
    for beyond in -2..=3 {
        let (mut writer, _) = filling_a_chunk(b"\n", beyond);
        for n in 50..60 {
            writer.append(vec![unsigned(&note(n, trace(2)))]).unwrap();
        }
        let report = check(&[(1, &writer.bytes)], Some(&writer.checkpoint()));
        assert_eq!((report.verdict, report.subject.events), (Verdict::Pass, writer.size()), "{beyond}");
    }
}

#[test]
fn an_artifact_is_missed_at_the_line_that_cites_it_also_after_lines_that_do_not_count() {
    // The empty line ends a chunk, so it is only known as a line once the next chunk begins.
    let (mut writer, _) = filling_a_chunk(b"\n", 0);
    let whole = writer.size();
    let end = writer.bytes.len();
    let mut citing = note(100, trace(2));
    citing.artifacts = vec![writer::artifact(b"nowhere", "n")];
    writer.append(vec![unsigned(&citing)]).unwrap();
    let bytes = [&writer.bytes[..end], b"\n", &writer.bytes[end..]].concat();
    let report = check(&[(1, &bytes)], None);
    let found: Vec<_> = report.findings.iter().map(|f| (f.code, f.line)).collect();
    let expected = [
        (Code::SchemaInvalid, whole + 1),
        (Code::SequenceGap, whole + 2),
        (Code::ArtifactMissing, whole + 2),
        (Code::NoCheckpoint, 0),
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_read_that_fails_makes_the_verdict_unknown() {
    #[derive(Debug)]
    struct Broken(bool);
    impl Segments for Broken {
        fn next_segment(&mut self) -> Result<Option<u64>, String> {
            if self.0 { Ok(Some(1)) } else { Err("cannot list".into()) }
        }

        fn read(&mut self, _: &mut [u8]) -> Result<usize, String> {
            Err("cannot read".into())
        }
    }
    for (starts, why) in [(true, "cannot read"), (false, "cannot list")] {
        for threads in [1, 2] {
            let open = || Ok(Box::new(Broken(starts)) as Box<dyn Segments>);
            let report = verify_journal(&open, None, &Options { threads, ..options(None) });
            assert_eq!((report.verdict, codes(&report)), (Verdict::Unknown, vec![Code::Unreadable]));
            assert_eq!(report.findings[0].found.as_deref(), Some(why));
        }
    }
}

#[test]
fn a_read_that_fails_late_ends_every_worker() {
    /// A journal, many chunks of lines that are no records, then an error.
    #[derive(Debug)]
    struct FailsLate(Vec<u8>, usize);
    impl Segments for FailsLate {
        fn next_segment(&mut self) -> Result<Option<u64>, String> {
            Ok(Some(1))
        }

        fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
            let count = self.0.len().min(buffer.len());
            if count > 0 {
                buffer[..count].copy_from_slice(&self.0.drain(..count).collect::<Vec<_>>());
                return Ok(count);
            }
            self.1 = self.1.checked_sub(1).ok_or("cannot read")?;
            buffer.fill(b'{');
            buffer.iter_mut().step_by(512).for_each(|byte| *byte = b'\n');
            Ok(buffer.len())
        }
    }
    let (done, wait) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let journal = sample().bytes;
        for round in 0..60 {
            let open = || Ok(Box::new(FailsLate(journal.clone(), 40 + round % 7)) as Box<dyn Segments>);
            let report = verify_journal(&open, None, &Options { threads: 4, ..options(None) });
            assert_eq!((report.verdict, codes(&report)), (Verdict::Unknown, vec![Code::Unreadable]));
        }
        let _ = done.send(());
    });
    wait.recv_timeout(std::time::Duration::from_secs(120))
        .expect("a worker waits for ever, or the report is another");
}

#[test]
fn a_torn_line_behind_chunks_of_line_feeds_is_a_torn_tail() {
    let sample = sample();
    let torn = [vec![b'\n'; 2 * CHUNK_BYTES], b"{\"actor\":".to_vec()].concat();
    let next = sample.size() + 1;
    let report = check(&[(1, &sample.bytes), (next, &torn)], Some(&sample.checkpoint()));
    assert_eq!(codes(&report), [Code::TornTail]);
}

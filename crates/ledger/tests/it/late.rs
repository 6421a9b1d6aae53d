//! Ids that come too late for the window of recent ones: looked for in a second pass, never taken for doubled where they are not.

use baton_ledger::bundle::event_line;
use baton_ledger::verify::{
    CHUNK_BYTES, Code, Options, Report, Segments, Verdict, verify_journal, verify_trace,
};

use crate::forger::Record;
use crate::packer::Parts;
use crate::reader::{Memory, options, verdict, verify, verify_bundle_bytes};
use crate::writer::{Writer, ledger, note, trace, unsigned};

/// Events of one trace whose ids have the numbers 10, 20, 30, then more than the window holds, then this one.
fn journal(last: u64) -> (Writer, Vec<u8>) {
    let mut writer = Writer::new();
    for n in [10, 20, 30].into_iter().chain(1000..9300) {
        writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap();
    }
    // The writer would refuse a doubled one, so the forger makes it.
    let line = Record::read(writer.lines().last().unwrap());
    let (pos, seq) = (line.0["pos"].as_u64().unwrap(), line.0["seq"].as_u64().unwrap());
    let prev = line.text("hash");
    let line = line.set("id", note(last, trace(1)).id.to_string()).set("prev", prev);
    let line = line.set("pos", pos + 1).set("seq", seq + 1).rehash().line();
    let bytes = [writer.bytes.as_slice(), &line].concat();
    (writer, bytes)
}

/// The lines whose ids are said to be doubled.
fn doubled(report: &Report) -> Vec<u64> {
    let ids = report.findings.iter().filter(|f| f.expected.as_deref() == Some("an id that occurs once"));
    ids.map(|finding| finding.line).collect()
}

/// Asks about the journal with line 3 exchanged for something that is no record: what it is, its segments, the number of its last line.
fn damaged(journal: &[u8], ask: impl Fn(&str, &[Vec<u8>], u64)) {
    let lines: Vec<&[u8]> = journal.split_inclusive(|b| *b == b'\n').collect();
    let before = lines[..2].concat();
    // Positions fit again after it, or every line would have a finding.
    let after = |count: u64| -> Vec<u8> {
        let renumbered = lines[3..].iter().zip(4u64..).map(|(line, pos)| {
            let line = std::str::from_utf8(line).unwrap();
            line.replacen(&format!("\"pos\":{pos},"), &format!("\"pos\":{},", pos - 1 + count), 1)
        });
        renumbered.collect::<String>().into_bytes()
    };
    let check = |what, middle: &[&[u8]], count: u64| {
        let mut segments = vec![before.clone()];
        segments[0].extend_from_slice(middle[0]);
        segments.extend(middle[1..].iter().map(|piece| piece.to_vec()));
        segments.last_mut().unwrap().extend_from_slice(&after(count));
        ask(what, &segments, lines.len() as u64 - 1 + count);
    };
    check("nothing", &[b""], 0);
    check("an empty line", &[b"\n"], 1);
    check("three empty lines", &[b"\n\n\n"], 3);
    // Up to the end of the second chunk: behind it, each would have a finding of its own.
    let blank = vec![b'\n'; 2 * CHUNK_BYTES - before.len()];
    check("empty lines over several chunks", &[&blank], blank.len() as u64);
    check("a broken line", &[b"{}\n"], 1);
    let long = [vec![b'x'; 3 * CHUNK_BYTES], b"\n".to_vec()].concat();
    check("a line that is too long", &[&long], 1);
    check("a segment that ends without a line feed", &[b"{\"a\":", b""], 1);
    check("a segment that ends with line feeds", &[b"\n\n", b""], 2);
    check("a segment without a line", &[b"", b"\n\n", b""], 0);
}

/// Verifies the journal, then its one trace.
fn reports(segments: &[Vec<u8>], threads: usize) -> [Report; 2] {
    let segments: Vec<(u64, &[u8])> = segments.iter().map(|bytes| (1, bytes.as_slice())).collect();
    let open = || Ok(Box::new(Memory::new(&segments, usize::MAX)) as Box<dyn Segments>);
    // Findings about positions would fill the report, so what is asked is only which ids are doubled.
    let options = Options { threads, ..options(None) };
    [verify_journal(&open, None, &options), verify_trace(&open, None, &options, trace(1), ledger())]
}

#[test]
fn a_late_id_that_occurs_once_is_not_doubled_whatever_stands_before_it() {
    damaged(&journal(15).1, |what, segments, _| {
        for report in reports(segments, 1) {
            assert_eq!(doubled(&report), [0; 0], "{what}");
        }
    });
}

#[test]
fn a_late_id_that_is_doubled_is_found_at_its_line_whatever_stands_before_it() {
    damaged(&journal(30).1, |what, segments, last| {
        let [whole, alone] = reports(segments, 2);
        assert_eq!(doubled(&whole), [last], "{what}");
        // The lines of other traces do not count there: the first one is of the ledger's.
        assert_eq!(doubled(&alone), [last - 1], "{what}");
    });
}

#[test]
fn a_late_id_that_is_doubled_decides_also_before_a_line_that_cannot_be_judged() {
    let (_, mut journal) = journal(30);
    let last = journal.iter().filter(|b| **b == b'\n').count() as u64;
    journal.extend_from_slice(b"{\"v\":2}\n");
    let report = verify(&journal, &options(None));
    assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SequenceGap), last));
}

#[test]
fn a_doubled_id_is_found_in_a_bundle_however_far_apart() {
    for (last, expected) in [(10, vec![8304]), (30, vec![8304]), (9299, vec![8304]), (15, vec![])] {
        let (writer, journal) = journal(last);
        let mut parts = Parts::new(&writer, trace(1), None);
        parts.header.events += 1;
        parts.events.push(event_line(journal[writer.bytes.len()..].trim_ascii_end()));
        let report = verify_bundle_bytes(&parts.bytes(), &options(None));
        assert_eq!(doubled(&report), expected, "{last}");
    }
}

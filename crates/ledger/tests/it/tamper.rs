//! The bytes of a small journal, damaged in every simple way: nothing passes but what the page says cannot be seen.

use baton_ledger::record::Line;
use baton_ledger::verify::{Code, Options, Report, Verdict};

use crate::reader::{codes, is_refused, options, shown, verify};
use crate::writer::{Writer, sample};

/// Every line ends at one of these places.
fn borders(journal: &[u8]) -> Vec<usize> {
    (0..journal.len()).filter(|at| journal[*at] == b'\n').map(|at| at + 1).collect()
}

fn joined(lines: &[&[u8]]) -> Vec<u8> {
    lines.iter().flat_map(|line| [line, b"\n".as_slice()].concat()).collect()
}

/// Refused without a checkpoint and with the true one, at a line no later than the one that was changed.
#[track_caller]
fn refused(sample: &Writer, journal: &[u8], changed: u64, what: &str) {
    for checkpoint in [None, Some(sample.checkpoint())] {
        let report = verify(journal, &options(checkpoint.as_deref()));
        assert_eq!(report.verdict, Verdict::Fail, "{what}: {}", shown(&report));
        assert_names_the_place(&report, changed, what);
    }
}

/// The first broken line is where the change begins, and the last trusted one is before it.
#[track_caller]
fn assert_names_the_place(report: &Report, changed: u64, what: &str) {
    assert_eq!(report.first_broken, Some(changed), "{what}: {}", shown(report));
    let json = report.to_json();
    assert_eq!(json["firstBroken"], changed, "{what}");
    assert_eq!(json["lastTrusted"], changed - 1, "{what}");
    assert_eq!(json["findings"][0]["line"], changed, "{what}");
}

/// Hands out the journal with every single bit flipped, and the number of the line that the bit is in.
fn flip_every_bit(journal: &[u8], mut judge: impl FnMut(&[u8], usize, u64)) {
    let mut flipped = journal.to_vec();
    let mut line = 1;
    for bit in 0..journal.len() * 8 {
        flipped[bit / 8] ^= 1 << (bit % 8);
        judge(&flipped, bit, line);
        flipped[bit / 8] ^= 1 << (bit % 8);
        line += u64::from(bit % 8 == 7 && journal[bit / 8] == b'\n');
    }
    assert_eq!(flipped, journal);
}

/// Without signatures the verifier makes fewer checks, so what it refuses here it refuses with them too.
fn verify_links(journal: &[u8], checkpoint: Option<&str>) -> Report {
    verify(journal, &Options { links_only: true, ..options(checkpoint) })
}

#[test]
fn no_single_bit_can_flip_unnoticed() {
    let sample = sample();
    let mut torn = 0;
    flip_every_bit(&sample.bytes, |journal, bit, line| {
        let report = verify_links(journal, None);
        if report.verdict == Verdict::PassWithWarnings {
            // Only the very last line feed can turn its line into a torn tail.
            assert_eq!(
                (bit / 8, codes(&report)),
                (journal.len() - 1, vec![Code::TornTail, Code::NoCheckpoint])
            );
            torn += 1;
        } else {
            assert!(is_refused(&report), "bit {bit}: {}", shown(&report));
            assert_names_the_place(&report, line, &format!("bit {bit}"));
        }
    });
    assert_eq!(torn, 8);
}

#[test]
fn no_single_bit_can_flip_against_a_checkpoint() {
    let sample = sample();
    let checkpoint = sample.checkpoint();
    let mut unknown = 0;
    flip_every_bit(&sample.bytes, |journal, bit, _| {
        let report = verify_links(journal, Some(&checkpoint));
        if report.verdict == Verdict::Unknown {
            assert_eq!(codes(&report), [Code::VersionNewer], "bit {bit}");
            unknown += 1;
        } else {
            assert_eq!(report.verdict, Verdict::Fail, "bit {bit}: {}", shown(&report));
        }
        if bit / 8 == journal.len() - 1 {
            assert_eq!(codes(&report), [Code::TailCut, Code::TornTail]);
        }
        if bit % 29 == 0 {
            let each = Options { each: bit % 2 == 0, ..options(Some(&checkpoint)) };
            assert!(is_refused(&verify(journal, &each)), "bit {bit}");
        }
    });
    assert_eq!(unknown, 13 * 3, "v = 3, 5 and 9 of each line");
}

#[test]
fn a_removed_line_leaves_a_gap() {
    let sample = sample();
    let lines = sample.lines();
    for gone in 0..lines.len() - 1 {
        let rest: Vec<&[u8]> =
            lines.iter().enumerate().filter(|(i, _)| *i != gone).map(|(_, line)| *line).collect();
        refused(&sample, &joined(&rest), gone as u64 + 1, &format!("line {} removed", gone + 1));
    }
}

#[test]
fn a_line_cannot_stand_twice_anywhere() {
    let sample = sample();
    let lines = sample.lines();
    for copied in 0..lines.len() {
        for place in 0..=lines.len() {
            let mut more = lines.clone();
            more.insert(place, lines[copied]);
            // Beside itself, the first of the two is in its place.
            let changed = if place == copied { place + 2 } else { place + 1 } as u64;
            refused(&sample, &joined(&more), changed, &format!("line {} again at {}", copied + 1, place + 1));
        }
    }
}

#[test]
fn two_lines_cannot_change_places() {
    let sample = sample();
    let lines = sample.lines();
    for a in 0..lines.len() {
        for b in a + 1..lines.len() {
            let mut swapped = lines.clone();
            swapped.swap(a, b);
            refused(&sample, &joined(&swapped), a as u64 + 1, &format!("lines {} and {}", a + 1, b + 1));
        }
    }
}

#[test]
fn foreign_lines_are_found_where_they_stand() {
    let sample = sample();
    let lines = sample.lines();
    for foreign in [b"".as_slice(), b"{}", b"null", b"{\"v\":1}", b"\xff\xfe", b"{", b" ", &[0; 50]] {
        for place in 0..lines.len() {
            let mut more = lines.clone();
            more.insert(place, foreign);
            let what = format!("{foreign:?} at {}", place + 1);
            refused(&sample, &joined(&more), place as u64 + 1, &what);
        }
    }
}

#[test]
fn a_line_of_a_newer_version_makes_the_verdict_unknown_unless_an_earlier_one_is_broken() {
    let sample = sample();
    let lines = sample.lines();
    let newer = br#"{"new":true,"v":2}"#.as_slice();
    for place in 0..=lines.len() {
        let mut more = lines.clone();
        more.insert(place, newer);
        let report = verify(&joined(&more), &options(None));
        assert_eq!((report.verdict, report.integrity), (Verdict::Unknown, "unknown"));
        assert_eq!(codes(&report), [Code::VersionNewer]);
        // A bad signature shows only after a line has had its turn; it must count all the same.
        if place > 5 {
            let broken = crate::forger::read(&joined(&more[..place]));
            let mut broken = broken;
            broken[5] = broken[5].clone().with_signature_of(&broken[0].clone());
            let journal =
                [crate::forger::lines(&crate::forger::relink(broken)), joined(&more[place..])].concat();
            let report = verify(&journal, &options(None));
            assert_eq!((report.verdict, report.first_broken), (Verdict::Fail, Some(6)), "{}", shown(&report));
            assert_eq!(report.findings[0].code, Code::SigInvalid);
        }
    }
}

#[test]
fn a_cut_at_a_border_is_seen_by_a_checkpoint_only_and_any_other_cut_is_a_torn_tail() {
    let sample = sample();
    let (journal, checkpoint) = (&sample.bytes, sample.checkpoint());
    let borders = borders(journal);
    let batch_of = |lines: usize| Line::parse(sample.lines()[lines - 1]).unwrap().batch;
    for end in 0..journal.len() {
        let cut = &journal[..end];
        let (alone, against) = (verify(cut, &options(None)), verify(cut, &options(Some(&checkpoint))));
        let whole = borders.iter().filter(|border| **border <= end).count();
        if whole == 0 {
            assert_eq!((alone.verdict, against.verdict), (Verdict::Unknown, Verdict::Unknown), "{end}");
            assert_eq!(codes(&alone), [Code::NoEvents]);
            continue;
        }
        let inside_batch = batch_of(whole).is_some_and(|(i, n)| i < n);
        let mut torn =
            vec![Code::TornTail; usize::from(inside_batch) + usize::from(borders[whole - 1] != end)];
        assert_eq!(alone.verdict, Verdict::PassWithWarnings, "{end}");
        assert_eq!(codes(&alone), [torn.clone(), vec![Code::NoCheckpoint]].concat(), "{end}");
        assert_eq!(alone.completeness, if torn.is_empty() { "self-consistent" } else { "incomplete" });
        torn.insert(0, Code::TailCut);
        assert_eq!(codes(&against), torn, "{end}");
        assert_eq!(
            (against.verdict, against.integrity, against.completeness),
            (Verdict::Fail, "intact", "incomplete")
        );
    }
}

#[test]
fn a_cut_at_the_front_is_never_taken_for_a_journal() {
    let sample = sample();
    for start in 1..sample.bytes.len() {
        let report = verify(&sample.bytes[start..], &options(None));
        assert!(is_refused(&report), "{start}: {}", shown(&report));
    }
}

#[test]
fn a_hole_of_any_length_is_noticed() {
    let sample = sample();
    let borders = borders(&sample.bytes);
    let checkpoint = sample.checkpoint();
    // Every hole that starts at a border or in the middle of a line, of many lengths, up to the last border.
    for (i, border) in borders.iter().enumerate() {
        let start = i.checked_sub(1).map_or(0, |before| borders[before]);
        for from in [start, (start + border) / 2] {
            for to in borders[i..].iter().flat_map(|to| [*to, *to - 1]).filter(|to| *to > from) {
                let holed = [&sample.bytes[..from], &sample.bytes[to..]].concat();
                if to >= sample.bytes.len() - 1 {
                    continue;
                }
                for checkpoint in [None, Some(checkpoint.as_str())] {
                    let report = verify(&holed, &options(checkpoint));
                    assert!(is_refused(&report), "{from}..{to}: {}", shown(&report));
                }
            }
        }
    }
}

#[test]
fn findings_beyond_the_hundredth_are_counted_and_still_decide() {
    use crate::writer::{note, trace, unsigned};
    let mut writer = Writer::new();
    for n in 2..=150 {
        writer.append(vec![unsigned(&note(n, trace(1)))]).unwrap();
    }
    let mut records = crate::forger::read(&writer.bytes);
    // Lines 2 to 140 have another hash; the last one lacks a signature that it needs, and a checkpoint promises more.
    for record in &mut records[1..140] {
        *record = record.clone().set("hash", "0".repeat(64));
    }
    let last = records.pop().unwrap().set("type", "claim_issued").rehash();
    records.push(last);
    let mut more = writer;
    more.append(vec![unsigned(&note(151, trace(1)))]).unwrap();
    let report = verify(&crate::forger::lines(&records), &options(Some(&more.checkpoint())));
    assert_eq!((report.findings.len(), report.first_broken), (100, Some(2)));
    // 139 wrong hashes, one chain that breaks after them, the missing signature, the cut tail.
    assert_eq!(report.more, 42);
    assert_eq!(report.completeness, "incomplete", "the cut tail is not listed, but it counts");
    let status = |name: &str| report.checks.iter().find(|c| c.check.as_str() == name).unwrap().status;
    assert_eq!(
        ["EVENT_HASH", "SIGNATURE", "CHECKPOINT", "ARTIFACT_HASH"].map(status),
        ["fail", "fail", "fail", "skipped"]
    );
}

//! Bytes of any kind: nothing panics, and what is too long is noticed without being kept.

use std::sync::OnceLock;

use baton_ledger::canonical;
use baton_ledger::key::{PublicKey, SecretKey};
use baton_ledger::merkle::prove_inclusion;
use baton_ledger::note::Note;
use baton_ledger::proof::{event_proof, verify_proof};
use baton_ledger::record::Line;
use baton_ledger::verify::{Code, Options, Segments, Verdict, verify_bundle, verify_journal};
use proptest::prelude::*;

use crate::packer::{Parts, citing};
use crate::reader::{Memory, codes, is_refused, options, verdict, verify_bundle_bytes};
use crate::writer::{Writer, ledger, sample, trace};

/// One good input of each kind.
struct Good {
    journal: Vec<u8>,
    bundle: Vec<u8>,
    proof: Vec<u8>,
    note: Vec<u8>,
}

fn good() -> &'static Good {
    static GOOD: OnceLock<Good> = OnceLock::new();
    GOOD.get_or_init(|| {
        let sample = sample();
        let path = prove_inclusion(5, sample.size(), |at| sample.node(at)).unwrap();
        let record = std::str::from_utf8(sample.lines()[5]).unwrap();
        Good {
            bundle: Parts::new(&citing(&[b"", b"xyz"]), trace(1), Some(&[b"", b"xyz"])).bytes(),
            proof: event_proof(&ledger(), record, 5, &path, &sample.checkpoint()).into_bytes(),
            note: sample.checkpoint().into_bytes(),
            journal: sample.bytes,
        }
    })
}

/// Runs every reader over the bytes; each must come back with some answer.
fn read_all(bytes: &[u8]) {
    let half = bytes.len() / 2;
    let segments: [&[(u64, &[u8])]; 2] = [&[(1, bytes)], &[(1, &bytes[..half]), (2, &bytes[half..])]];
    for (segments, threads) in segments.into_iter().zip([1, 2]) {
        let open = || Ok(Box::new(Memory::new(segments, 333)) as Box<dyn Segments>);
        let options = Options { threads, checkpoint: Some(bytes.to_vec()), ..options(None) };
        verify_journal(&open, None, &options).to_json();
    }
    verify_bundle_bytes(bytes, &options(None)).to_json();
    verify_proof(bytes, None, None).to_json();
    let _ = Note::parse(bytes).map(|note| note.check(&ledger().origin, &ledger().key));
    let _ = canonical::parse(bytes).map(|value| canonical::to_bytes(&value));
    for line in bytes.split(|b| *b == b'\n') {
        let _ = Line::parse(line).map(|line| (line.link_hash(&line.body_digest()), line.to_payload()));
        let text = String::from_utf8_lossy(line);
        let _ = canonical::scan::check(&text);
        let _ = (PublicKey::parse_file(&text), SecretKey::parse_file(&text));
    }
}

/// One change of a text: a byte, a piece moved or left out, a number or a name exchanged.
#[derive(Debug, Clone)]
enum Edit {
    Replace(prop::sample::Index, u8),
    Insert(prop::sample::Index, Vec<u8>),
    Remove(prop::sample::Index, usize),
    Copy(prop::sample::Index, prop::sample::Index, usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let index = any::<prop::sample::Index>;
    let pieces = [
        "9007199254740992",
        "-1",
        "null",
        "\\u0000",
        "{\"v\":2}",
        "\n",
        "\n\n",
        "[[[[",
        "\u{2014} ",
        "=",
        "1e400",
        "index ",
    ];
    let piece = prop_oneof![
        prop::sample::select(pieces.map(|piece| piece.as_bytes().to_vec()).to_vec()),
        prop::collection::vec(any::<u8>(), 1..8),
    ];
    prop_oneof![
        (index(), any::<u8>()).prop_map(|(at, byte)| Edit::Replace(at, byte)),
        (index(), piece).prop_map(|(at, piece)| Edit::Insert(at, piece)),
        (index(), 1..400usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        (index(), index(), 1..400usize).prop_map(|(from, to, length)| Edit::Copy(from, to, length)),
    ]
}

fn edited(bytes: &[u8], edits: &[Edit]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for edit in edits {
        let length = out.len() + 1;
        match edit {
            Edit::Replace(at, byte) => set(&mut out, at.index(length), *byte),
            Edit::Insert(at, piece) => drop(out.splice(at.index(length)..at.index(length), piece.clone())),
            Edit::Remove(at, count) => {
                let from = at.index(length);
                let to = (from + count).min(out.len());
                out.drain(from..to);
            }
            Edit::Copy(from, to, count) => {
                let from = from.index(length);
                let piece = out[from..(from + count).min(out.len())].to_vec();
                let to = to.index(length);
                out.splice(to..to, piece);
            }
        }
    }
    out
}

fn set(out: &mut [u8], at: usize, byte: u8) {
    if let Some(place) = out.get_mut(at) {
        *place = byte;
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_reader_panics_on_arbitrary_bytes(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
        read_all(&bytes);
    }

    #[test]
    fn no_reader_panics_on_bytes_that_look_like_json(text in "[\\[\\]{}\",:\\\\0-9eE+.\\-a-z\n ]{0,400}") {
        read_all(text.as_bytes());
    }

    #[test]
    fn no_reader_panics_on_an_edited_input_of_any_kind(which in 0..4usize, edits in prop::collection::vec(edit(), 1..6)) {
        let good = good();
        let bytes = edited([&good.journal, &good.bundle, &good.proof, &good.note][which], &edits);
        read_all(&bytes);
    }

    #[test]
    fn no_edited_input_passes_for_another_one(edits in prop::collection::vec(edit(), 1..4)) {
        let good = good();
        let proof = edited(&good.proof, &edits);
        if proof != good.proof {
            let report = verify_proof(&proof, Some(&[ledger().key]), None);
            // A further signature line may be added; everything else is refused.
            let is_note_only = proof.starts_with(&good.proof);
            prop_assert!(is_refused(&report) || is_note_only, "{}", String::from_utf8_lossy(&proof));
        }
        let bundle = edited(&good.bundle, &edits);
        prop_assert!(bundle == good.bundle || is_refused(&verify_bundle_bytes(&bundle, &options(None))));
    }
}

#[test]
fn very_deep_and_very_long_texts_do_not_exhaust_anything() {
    for text in [
        "[".repeat(1 << 20),
        "{\"a\":".repeat(200_000),
        "\"".repeat(1 << 20),
        "9".repeat(1 << 20),
        format!("0.{}", "1".repeat(1 << 20)),
    ] {
        assert!(Line::parse(text.as_bytes()).is_err());
        let _ = canonical::parse(text.as_bytes());
        assert!(canonical::scan::check(&text).is_err());
    }
}

/// A good first line, then one line that is generated while it is read.
#[derive(Debug)]
struct LongLine {
    start: Vec<u8>,
    /// Bytes of the long line that are left.
    left: u64,
    end: Vec<u8>,
    has_started: bool,
}

impl LongLine {
    fn new(length: u64, end: &[u8]) -> Self {
        LongLine { start: Writer::new().bytes, left: length, end: end.to_vec(), has_started: false }
    }

    fn fill(&mut self, buffer: &mut [u8]) -> usize {
        for piece in [&mut self.start, &mut self.end] {
            if piece.is_empty() || (self.left > 0 && piece.first() == Some(&b'\n')) {
                continue;
            }
            let count = piece.len().min(buffer.len());
            buffer[..count].copy_from_slice(&piece[..count]);
            piece.drain(..count);
            return count;
        }
        let count = buffer.len().min(usize::try_from(self.left).unwrap());
        buffer[..count].fill(b'a');
        self.left -= count as u64;
        count
    }
}

impl Segments for LongLine {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.has_started, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        Ok(self.fill(buffer))
    }
}

/// The largest amount of memory that this process ever held, in bytes, where the system tells.
fn memory_peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[test]
fn a_line_of_four_hundred_megabytes_is_noticed_in_bounded_memory() {
    const LENGTH: u64 = 400_000_000;
    for threads in [1, 2] {
        let open = || Ok(Box::new(LongLine::new(LENGTH, b"\n{}\n")) as Box<dyn Segments>);
        let report = verify_journal(&open, None, &Options { threads, ..options(None) });
        let found: Vec<_> = report.findings.iter().map(|finding| (finding.code, finding.line)).collect();
        let expected = [(Code::SchemaInvalid, 2), (Code::SchemaInvalid, 3), (Code::NoCheckpoint, 0)];
        assert_eq!((report.verdict, found.as_slice()), (Verdict::Fail, expected.as_slice()));
    }
    let open = || Ok(Box::new(LongLine::new(LENGTH, b"")) as Box<dyn Segments>);
    let torn = verify_journal(&open, None, &options(None));
    assert_eq!(codes(&torn), [Code::TornTail, Code::NoCheckpoint]);
    if let Some(peak) = memory_peak() {
        assert!(peak < LENGTH / 2, "{peak} bytes were held");
    }
}

#[test]
fn a_bundle_is_not_read_on_behind_a_line_that_is_too_long() {
    let mut read = 0;
    let mut source = LongLine::new(u64::MAX / 2, b"");
    source.start = b"{\"bundle\":1,".to_vec();
    let endless = |buffer: &mut [u8]| {
        let count = source.fill(&mut buffer[..65_536]);
        read += count;
        Ok(count)
    };
    let report = verify_bundle(&mut { endless }, &options(None));
    assert_eq!(verdict(&report), (Verdict::Fail, Some(Code::SchemaInvalid), 1));
    assert!(read < 3 << 20, "{read} bytes");
}

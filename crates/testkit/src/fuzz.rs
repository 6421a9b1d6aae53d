//! Fuzz targets as plain functions: each takes arbitrary bytes, must not panic, and checks what must hold if the bytes are accepted.
//!
//! Driven by a seeded mutator in `make test`, by libFuzzer in `make fuzz`.

use baton_core::limits::LINE_BYTES_MAX;
use baton_ledger::canonical::{self, scan};
use baton_ledger::note::Note;
use baton_ledger::proof::verify_proof;
use baton_ledger::record::Line;
use baton_ledger::verify::{Options, Verdict, verify_bundle};

use crate::segments::verify_bytes;

/// A line of the journal. What is accepted is canonical, and parses to the same bytes again.
pub fn line(bytes: &[u8]) {
    if let Ok(line) = Line::parse(bytes) {
        assert!(line.text.len() <= LINE_BYTES_MAX);
        assert!(scan::check(line.text).is_ok(), "a record is canonical JSON");
        let again = canonical::parse(bytes).and_then(|value| canonical::to_bytes(&value));
        assert_eq!(again.as_deref(), Ok(bytes), "a record prints as it was read");
        let _ = line.to_payload();
    } else if let Ok(text) = std::str::from_utf8(bytes)
        && scan::check(text).is_ok()
    {
        let again = canonical::parse(bytes).and_then(|value| canonical::to_bytes(&value));
        assert_eq!(again.as_deref(), Ok(bytes), "what the scanner accepts is canonical");
    }
    let report = verify_bytes(bytes, None, &Options::default());
    assert_ne!(report.verdict, Verdict::Pass, "without a checkpoint there is always a warning");
}

/// A checkpoint or trace head.
pub fn note(bytes: &[u8]) {
    if let Ok(note) = Note::parse(bytes) {
        let key = crate::builders::secret(9);
        let identity = crate::builders::identity(&key);
        assert!(note.check(&identity.origin, &identity.key).is_err(), "nobody has signed with this key");
    }
}

/// A proof of either kind.
pub fn proof(bytes: &[u8]) {
    assert_ne!(
        verify_proof(bytes, None, None).verdict,
        Verdict::Pass,
        "without a trusted key there is always a warning"
    );
}

/// A bundle.
pub fn bundle(bytes: &[u8]) {
    let mut rest = bytes;
    let mut read = |buffer: &mut [u8]| std::io::Read::read(&mut rest, buffer).map_err(|e| e.to_string());
    assert_ne!(verify_bundle(&mut read, &Options::default()).verdict, Verdict::Pass);
}

//! Fuzz targets as plain functions: each takes arbitrary bytes, must not panic, and checks what must hold if the bytes are accepted.
//!
//! Driven by a seeded mutator in `make test`, by libFuzzer in `make fuzz`.

use baton_core::limits::{ENVELOPE_BYTES_MAX, LINE_BYTES_MAX};
use baton_core::protocol::exit_signal::ExitSignal;
use baton_core::protocol::scan::{Found, Scanner};
use baton_core::protocol::{self, Body, CompletionReport, Reason};
use baton_ledger::canonical::{self, scan};
use baton_ledger::note::Note;
use baton_ledger::proof::verify_proof;
use baton_ledger::record::Line;
use baton_ledger::verify::{Options, Verdict, verify_bundle};
use baton_store::tasks::{Bounds, Document, edit, read_yaml, render};
use serde_json::{Value, json};

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

/// A message of an agent. What is accepted is read the same again from the envelope that it keeps; what is refused says why in few words.
pub fn envelope(bytes: &[u8]) {
    match protocol::read(bytes) {
        Ok(message) => {
            assert!(bytes.len() <= ENVELOPE_BYTES_MAX);
            let again = protocol::read_value(serde_json::Value::Object(message.raw.clone()));
            assert_eq!(again.as_ref(), Ok(&message), "a message survives its own envelope");
            if let Body::HandoffRequest(request) = &message.body {
                let page = protocol::handoff_md(request);
                assert_eq!(page.matches("\n## ").count(), 4, "no value forges a heading");
                assert!(baton_core::json::parse(protocol::handoff_json(request).as_bytes()).is_ok());
            }
        }
        Err(rejection) => {
            assert!(rejection.to_string().len() < 2000, "a refusal repeats little");
            assert!(Reason::ALL.contains(&rejection.reason));
        }
    }
    if let Ok(result) = CompletionReport::from_result_json(bytes) {
        assert_eq!(CompletionReport::from_result_json(result.to_json().as_bytes()), Ok(result));
    }
}

/// The output of an agent. Cut anywhere it gives the same, and every signal in it is one.
pub fn exit_scan(bytes: &[u8]) {
    let scan = |pieces: &mut dyn Iterator<Item = &[u8]>| {
        let mut scanner = Scanner::new();
        let mut found: Vec<Found> = pieces.flat_map(|piece| scanner.push(piece)).collect();
        found.extend(scanner.finish());
        found
    };
    let whole = scan(&mut std::iter::once(bytes));
    assert_eq!(scan(&mut bytes.chunks(1)), whole, "cuts make no difference");
    assert_eq!(scan(&mut bytes.chunks(7)), whole, "cuts make no difference");
    for found in whole {
        match found {
            Found::Signal(signal) => {
                let text = serde_json::to_string(&signal).unwrap_or_default();
                assert_eq!(ExitSignal::from_json(&text), Ok(signal), "a signal survives the round trip");
            }
            Found::Invalid(error) => assert!(error.to_string().len() < 2000, "a refusal repeats little"),
        }
    }
}

/// A task file. What is read and written back unchanged is the same text; what is written anew reads as the same fields; what is edited
/// reads as what was asked for.
pub fn frontmatter(bytes: &[u8]) {
    let _ = read_yaml(bytes, Bounds::default());
    let (Ok(document), Ok(base)) = (Document::parse(bytes), std::str::from_utf8(bytes)) else { return };
    let fields = document.fields();
    let same: Vec<(&str, Option<Value>)> =
        fields.iter().map(|(key, value)| (key.as_str(), Some(value.clone()))).collect();
    assert_eq!(
        edit(base, &same, document.body()).as_deref(),
        Ok(base),
        "nothing changes, nothing is touched"
    );

    let anew: Vec<(&str, Value)> = fields.iter().map(|(key, value)| (key.as_str(), value.clone())).collect();
    let text = render(&anew, document.body());
    // Escapes may make it larger than a file may be.
    if let Ok(again) = Document::parse(text.as_bytes()) {
        assert_eq!((again.fields(), again.body()), (fields, document.body()), "what is written reads back");
    } else {
        assert!(text.len() > 32 << 10, "what is written reads back: {text:?}");
    }

    for key in fields.keys().take(4) {
        for value in [None, Some(json!("x: y")), Some(json!({"a": 1}))] {
            let Ok(text) = edit(base, &[(key, value.clone())], "") else { continue };
            let again = Document::parse(text.as_bytes());
            assert!(again.is_ok_and(|again| again.fields().get(key) == value.as_ref()), "{key:?} {text:?}");
        }
    }
}

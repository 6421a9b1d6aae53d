//! Signals among everything that a process can print.

use proptest::prelude::*;

use super::*;
use crate::protocol::exit_signal::{ExitReason, WorkPhase};

fn signal(notes: &str) -> ExitSignal {
    ExitSignal::new(WorkPhase::Implementation, ExitReason::Completed).with_notes(notes)
}

fn compact(notes: &str) -> String {
    serde_json::to_string(&signal(notes)).unwrap()
}

fn all_at_once(bytes: &[u8]) -> Vec<Found> {
    let mut scanner = Scanner::new();
    let mut found = scanner.push(bytes);
    found.extend(scanner.finish());
    found
}

fn byte_by_byte(bytes: &[u8]) -> Vec<Found> {
    let mut scanner = Scanner::new();
    let mut found: Vec<Found> = bytes.chunks(1).flat_map(|byte| scanner.push(byte)).collect();
    found.extend(scanner.finish());
    found
}

/// What is found, in words: the notes of a signal, or the error.
fn check(text: impl AsRef<[u8]>, expected: &[&str]) {
    let bytes = text.as_ref();
    let found = all_at_once(bytes);
    assert_eq!(byte_by_byte(bytes), found);
    let words: Vec<String> = found
        .iter()
        .map(|found| match found {
            Found::Signal(signal) => signal.notes.clone().unwrap_or_default(),
            Found::Invalid(error) => error.to_string(),
        })
        .collect();
    assert_eq!(words, expected, "{}", String::from_utf8_lossy(&bytes[..bytes.len().min(500)]));
}

#[test]
fn a_signal_is_found_alone_after_text_and_in_a_fence() {
    let one = compact("a");
    check(&one, &["a"]);
    check(format!("All done. {one} Bye."), &["a"]);
    check(format!("```json\n{}\n```\n", serde_json::to_string_pretty(&signal("a")).unwrap()), &["a"]);
    check(format!("\u{1b}[32m{one}\u{1b}[0m\r\n"), &["a"]);
    check(format!("[{one}]"), &["a"]);
    check(format!("{one}{}\n{}", compact("b"), compact("c")), &["a", "b", "c"]);
    check("", &[]);
    check("nothing to see", &[]);
}

#[test]
fn a_signal_is_returned_with_the_piece_that_ends_it() {
    let text = compact("a");
    let mut scanner = Scanner::new();
    assert_eq!(scanner.push(&text.as_bytes()[..text.len() - 1]), []);
    assert_eq!(scanner.push(b"}"), [Found::Signal(signal("a"))]);
    assert_eq!(scanner.finish(), []);
}

#[test]
fn bytes_that_are_no_text_hide_nothing() {
    check([&b"\xff\xfe\x00\x80"[..], compact("a").as_bytes(), b"\xc3"].concat(), &["a"]);
    let text = compact("a").into_bytes();
    let at = text.windows(3).position(|part| part == b"\"a\"").unwrap() + 1;
    let broken = [&text[..at], b"\xff", &text[at..]].concat();
    check(broken, &["invalid JSON: invalid unicode code point at line 1 column 119"]);
}

#[test]
fn braces_and_quotes_in_strings_are_text() {
    for notes in ["}", "{", "\"}", "\\", "\\\"}{", "{\"a\":1}", "\u{1f600}\n"] {
        check(compact(notes), &[notes]);
    }
}

#[test]
fn stray_braces_and_quotes_hide_nothing() {
    let one = compact("a");
    for junk in [
        "{",
        "{{{",
        "}",
        "{\"",
        "{\"x\": \n",
        "{\"x\": [1, \n",
        "{ \"x\" : {",
        "\"",
        "fn main() {\n",
        "{}",
        "{\"x\":1,",
        "{\"x\":\"y\n",
    ] {
        check(format!("{junk}\n{one}\nDone.\n"), &["a"]);
    }
    // Even where only the end shows that the outer object never was one.
    check(format!("{{\"x\": {one}"), &["a"]);
}

#[test]
fn an_object_inside_another_is_not_a_signal() {
    let one = compact("a");
    check(format!("{{\"tool_output\": {one}}}"), &[]);
    check(format!("{{\"items\": [{one}, {one}]}}"), &[]);
    check(format!("{{\"text\": {}}}", serde_json::Value::from(one.clone())), &[]);
    let padding = "x".repeat(2 * EXIT_SIGNAL_BYTES_MAX);
    check(format!("{{\"a\": \"{padding}\", \"tool_output\": {one}}}{}", compact("b")), &["b"]);
}

#[test]
fn other_protocols_are_nobodys_business() {
    check(compact("a").replace("apm2_agent_exit", "aof"), &[]);
    check(r#"{"protocol":1} {"protocol":null} {"version":"1.0.0"} {"x":"apm2_agent_exit"}"#, &[]);
    check(r#"{"protocol":{"protocol":"apm2_agent_exit"}}"#, &[]);
}

#[test]
fn a_signal_that_names_the_protocol_and_is_invalid_is_reported() {
    let one = compact("a");
    check(one.replace("1.0.0", "2.0.0"), &["unsupported version: expected '1.x', got '2.0.0'"]);
    check(one.replace("\"notes\"", "\"note\""), &["invalid JSON: unknown field \"note\""]);
    check(one.replace("\"a\"}", "\"a\",}"), &["invalid JSON: trailing comma at line 1 column 122"]);
    check(
        one.replace("{", "{\"protocol\":\"aof\","),
        &["invalid JSON: member \"protocol\" occurs twice at line 1 column 28"],
    );
    check(
        r#"{"protocol":"apm2_agent_exit", ...}"#,
        &["invalid JSON: key must be a string at line 1 column 32"],
    );
    check(
        r#"{"protocol":"apm2_agent_exit","n":1e999}"#,
        &["invalid JSON: number out of range at line 1 column 39"],
    );
    let deep = format!("{{\"protocol\":\"apm2_agent_exit\",\"x\":{}", "[".repeat(100));
    check(deep, &["invalid JSON: nested deeper than 64 levels at line 1 column 98"]);
    // The name may be spelled with escapes.
    check(one.replace("apm2", "\\u0061pm2"), &["a"]);
}

#[test]
fn a_signal_that_is_cut_off_is_reported_at_the_end() {
    let one = compact("a");
    check(&one[..one.len() - 1], &["invalid JSON: EOF while parsing an object at line 1 column 120"]);
    check(
        format!("{}\n{}", &one[..one.len() - 1], compact("b")),
        &["invalid JSON: expected `,` or `}` at line 2 column 1", "b"],
    );
}

#[test]
fn a_signal_of_the_largest_size_is_found_and_one_byte_more_is_not() {
    let pad = |length: usize| {
        let one = compact("a");
        one.replacen('{', &format!("{{{}", " ".repeat(length - one.len())), 1)
    };
    check(pad(EXIT_SIGNAL_BYTES_MAX), &["a"]);
    check(pad(EXIT_SIGNAL_BYTES_MAX + 1), &["exit signal too large: more than 65536 bytes"]);
    let long = compact(&"n".repeat(EXIT_SIGNAL_BYTES_MAX));
    check(format!("{long}{}", compact("b")), &["exit signal too large: more than 65536 bytes", "b"]);
}

#[test]
fn little_is_kept_whatever_comes() {
    let mut scanner = Scanner::new();
    for piece in
        [&b"{\"a\":\""[..], &[b'x'; 1 << 20], b"\\\"", &[b'{'; 1 << 20], b"\n", &b"{\"a\":".repeat(1 << 18)]
    {
        scanner.push(piece);
        assert!(scanner.held.len() <= EXIT_SIGNAL_BYTES_MAX + PIECE_BYTES, "{}", scanner.held.len());
        assert!(scanner.held.capacity() <= 4 * EXIT_SIGNAL_BYTES_MAX, "{}", scanner.held.capacity());
    }
}

/// Text that is likely to be nearly JSON, or a signal, or neither.
fn pieces() -> impl Strategy<Value = Vec<u8>> {
    let fixed = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"",
        "\\",
        ":",
        ",",
        "1",
        " ",
        "\n",
        "null",
        "\"a\"",
        "{\"a\":",
        "\"protocol\":",
        "\"apm2_agent_exit\"",
        "{\"protocol\":\"apm2_agent_exit\",",
    ]);
    let piece = prop_oneof![
        6 => fixed.prop_map(|text| text.as_bytes().to_vec()),
        1 => Just(compact("a").into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..6),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn where_the_output_is_cut_makes_no_difference(text in pieces(), cuts in prop::collection::vec(1usize..40, 1..20)) {
        let whole = all_at_once(&text);
        prop_assert_eq!(&byte_by_byte(&text), &whole);
        let mut scanner = Scanner::new();
        let (mut found, mut rest) = (Vec::new(), &text[..]);
        for cut in cuts.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, left) = rest.split_at((*cut).min(rest.len()));
            found.extend(scanner.push(piece));
            rest = left;
        }
        found.extend(scanner.finish());
        prop_assert_eq!(found, whole);
    }

    #[test]
    fn a_signal_in_junk_without_braces_and_quotes_is_always_found(
        before in prop::collection::vec(any::<u8>(), 0..300),
        after in prop::collection::vec(any::<u8>(), 0..300),
        notes in ".{0,40}",
        is_pretty in any::<bool>(),
    ) {
        let junk = |bytes: Vec<u8>| bytes.into_iter().filter(|b| !b"{}\"".contains(b)).collect::<Vec<u8>>();
        let signal = signal(&notes);
        let text = if is_pretty { serde_json::to_string_pretty(&signal) } else { serde_json::to_string(&signal) }.unwrap();
        let output = [junk(before), text.into_bytes(), junk(after)].concat();
        prop_assert_eq!(all_at_once(&output), vec![Found::Signal(signal)]);
    }
}

//! Detection: whether something that an agent said is meant as a message, and where in it the envelope is.
//!
//! An envelope is an object whose `protocol` is `aof`: bare, or the `payload`, `message` or `content` of an event (in this order), as
//! an object or as text. Text is an envelope's JSON, a JSON string that holds it, or either after `AOF/1 `.
//!
//! | what came | answer |
//! | --- | --- |
//! | text that begins with `{` or `AOF/1 ` and is not JSON | `invalid_json` |
//! | an object that is no envelope and holds none | `invalid_envelope`, field `protocol` |
//! | an event without `protocol` whose payload, message or content is prose | `not_a_message` |
//! | an array; anything but an object after `AOF/1 ` | `invalid_envelope` |
//! | any other text; numbers, `true`, `null` | `not_a_message` |

use serde_json::{Map, Value};

use super::fields::shown;
use super::reject::{Detail, Reason, Rejection};
use crate::json;

/// The word that every envelope carries as `protocol`.
pub(super) const PROTOCOL: &str = "aof";

/// What text may begin with to say that a message follows.
const PREFIX: &str = "AOF/1 ";

/// Where an event may carry a message, in the order in which they are looked at.
const PLACES: [&str; 3] = ["payload", "message", "content"];

/// JSON strings in JSON strings that are looked into. Nobody quotes twice on purpose; the bound is for whoever does it a million times.
const QUOTES_MAX: usize = 2;

/// Finds the envelope in a text.
pub(super) fn in_text(text: &[u8]) -> Result<Map<String, Value>, Rejection> {
    text_at(text, 0, true)
}

/// Finds the envelope in a value that was parsed before.
pub(super) fn in_value(value: Value) -> Result<Map<String, Value>, Rejection> {
    match value {
        Value::Object(map) => in_object(map),
        Value::String(text) => text_at(text.as_bytes(), 0, true),
        Value::Array(_) => Err(not_an_object(&value)),
        Value::Null | Value::Bool(_) | Value::Number(_) => Err(not_a_message()),
    }
}

/// `is_outer` says whether an object may still be an event around the envelope.
fn text_at(text: &[u8], quotes: usize, is_outer: bool) -> Result<Map<String, Value>, Rejection> {
    let text = text.trim_ascii_start();
    let marked = text.strip_prefix(PREFIX.as_bytes());
    let body = marked.unwrap_or(text).trim_ascii_start();
    let is_meant = marked.is_some() || body.first() == Some(&b'{');
    let value = match body.first() {
        Some(b'{' | b'[' | b'"') => json::parse(body),
        // Numbers and words are prose to us, unless they stand after the prefix.
        _ if is_meant => json::parse(body),
        _ => return Err(not_a_message()),
    };
    match value {
        Ok(Value::Object(map)) if is_outer => in_object(map),
        Ok(Value::Object(map)) => own_protocol(map),
        Ok(Value::String(inner)) if quotes < QUOTES_MAX => text_at(inner.as_bytes(), quotes + 1, is_outer),
        Ok(Value::String(_)) => Err(not_a_message()),
        Ok(value @ Value::Array(_)) => Err(not_an_object(&value)),
        Ok(value) if is_meant => Err(not_an_object(&value)),
        Ok(_) => Err(not_a_message()),
        Err(e) if is_meant => Err(Rejection::new(Reason::InvalidJson, Some(Detail::Text(e.to_string())))),
        Err(_) => Err(not_a_message()),
    }
}

/// The object itself, or the first of its places that holds an envelope; where none does, the first that was meant to.
fn in_object(mut map: Map<String, Value>) -> Result<Map<String, Value>, Rejection> {
    if is_envelope(&map) {
        return Ok(map);
    }
    let (mut refusal, mut has_prose) = (None, false);
    for place in PLACES {
        let found = match map.get_mut(place) {
            Some(Value::Object(inner)) if is_envelope(inner) => Ok(std::mem::take(inner)),
            Some(Value::String(text)) => text_at(text.as_bytes(), 0, false),
            _ => continue,
        };
        match found {
            Ok(envelope) => return Ok(envelope),
            Err(e) if e.reason == Reason::NotAMessage => has_prose = true,
            Err(e) => drop(refusal.get_or_insert(e)),
        }
    }
    match refusal {
        Some(e) => Err(e),
        None if has_prose && !map.contains_key("protocol") => Err(not_a_message()),
        None => own_protocol(map),
    }
}

fn is_envelope(map: &Map<String, Value>) -> bool {
    map.get("protocol").and_then(Value::as_str) == Some(PROTOCOL)
}

fn own_protocol(map: Map<String, Value>) -> Result<Map<String, Value>, Rejection> {
    if is_envelope(&map) {
        return Ok(map);
    }
    let detail = Detail::field("protocol", format!("{PROTOCOL:?}"), shown(map.get("protocol")));
    Err(Rejection::new(Reason::InvalidEnvelope, Some(detail)))
}

fn not_an_object(value: &Value) -> Rejection {
    let detail = Detail::field("message", "an object", shown(Some(value)));
    Rejection::new(Reason::InvalidEnvelope, Some(detail))
}

fn not_a_message() -> Rejection {
    Rejection::new(Reason::NotAMessage, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENVELOPE: &str = r#"{"protocol":"aof","n":1}"#;

    /// Whether the envelope is found, or the refusal in words.
    fn check(text: &str, expected: &str) {
        let answer = match in_text(text.as_bytes()) {
            Ok(map) => {
                assert_eq!(map.get("n"), Some(&Value::from(1)), "{text}");
                "found".to_owned()
            }
            Err(e) => e.to_string(),
        };
        assert_eq!(answer, expected, "{text}");
        // A caller that parsed first gets the same answer.
        if let (Ok(value), true) = (json::parse(text.as_bytes()), answer == "found") {
            assert!(in_value(value).is_ok(), "{text}");
        }
    }

    fn quote(text: &str) -> String {
        Value::from(text).to_string()
    }

    #[test]
    fn an_envelope_is_found_wherever_it_may_be() {
        check(ENVELOPE, "found");
        check(&format!(" \n{ENVELOPE}\n"), "found");
        check(&format!("AOF/1 {ENVELOPE}"), "found");
        check(&format!("AOF/1   {ENVELOPE}"), "found");
        check(&quote(ENVELOPE), "found");
        check(&quote(&format!("AOF/1 {ENVELOPE}")), "found");
        check(&quote(&quote(ENVELOPE)), "found");
        for place in PLACES {
            check(&format!(r#"{{"type":"message_received","{place}":{ENVELOPE}}}"#), "found");
            check(&format!(r#"{{"{place}":{}}}"#, quote(ENVELOPE)), "found");
            check(&format!(r#"{{"{place}":{}}}"#, quote(&format!("AOF/1 {ENVELOPE}"))), "found");
            check(&format!(r#"{{"protocol":"other","{place}":{ENVELOPE}}}"#), "found");
        }
        check(&format!(r#"{{"payload":{{"x":1}},"message":"hello","content":{ENVELOPE}}}"#), "found");
        check(&format!(r#"{{"payload":"{{broken","content":{ENVELOPE}}}"#), "found");
    }

    #[test]
    fn the_payload_of_an_envelope_is_not_taken_for_the_envelope() {
        check(r#"{"protocol":"aof","n":1,"payload":{"protocol":"aof","n":2}}"#, "found");
    }

    #[test]
    fn text_that_begins_like_a_message_and_does_not_parse_is_invalid_json() {
        check("{", "invalid_json: EOF while parsing an object at line 1 column 1");
        check("{hello}", "invalid_json: key must be a string at line 1 column 2");
        check("AOF/1 hello", "invalid_json: expected value at line 1 column 1");
        check("AOF/1 ", "invalid_json: EOF while parsing a value at line 1 column 0");
        check(r#"{"content":"{x"}"#, "invalid_json: key must be a string at line 1 column 2");
        check(r#""{x""#, "invalid_json: key must be a string at line 1 column 2");
        check(r#"{"a":1,"a":2}"#, "invalid_json: member \"a\" occurs twice at line 1 column 10");
    }

    #[test]
    fn prose_is_no_message() {
        for text in [
            "",
            "hello",
            "[INFO] ready",
            "42",
            "null",
            "true",
            "AOF/1",
            "AOF/2 {}",
            "\"hi\"",
            "\"hi",
            "\u{feff}{}",
        ] {
            check(text, "not_a_message");
        }
        check(r#"{"type":"message_received","content":"hello"}"#, "not_a_message");
        assert_eq!(in_text(b"\xff\xfe").unwrap_err().reason, Reason::NotAMessage);
        assert_eq!(in_value(Value::Null).unwrap_err().reason, Reason::NotAMessage);
        check(&quote(&quote(&quote(&quote(ENVELOPE)))), "not_a_message");
    }

    #[test]
    fn json_that_is_no_envelope_names_what_is_missing() {
        check("{}", "invalid_envelope: protocol: expected \"aof\", got nothing");
        check(r#"{"protocol":"AOF"}"#, "invalid_envelope: protocol: expected \"aof\", got \"AOF\"");
        check(
            r#"{"protocol":"x","content":"hello"}"#,
            "invalid_envelope: protocol: expected \"aof\", got \"x\"",
        );
        check(r#"{"payload":{}}"#, "invalid_envelope: protocol: expected \"aof\", got nothing");
        check("[1,2]", "invalid_envelope: message: expected an object, got an array of 2");
        check("AOF/1 [1]", "invalid_envelope: message: expected an object, got an array of 1");
        check("AOF/1 42", "invalid_envelope: message: expected an object, got 42");
        // An event in an event is not looked into.
        let nested = format!(r#"{{"payload":{}}}"#, quote(&format!(r#"{{"payload":{ENVELOPE}}}"#)));
        check(&nested, "invalid_envelope: protocol: expected \"aof\", got nothing");
    }
}

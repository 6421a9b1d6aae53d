//! Reads JSON strictly: names that occur twice, integers out of range and deep nesting are refused.
//!
//! `serde_json` alone keeps the last of two equal names and turns large integers into doubles; both would let two readers see two
//! different things in the same bytes. Everything foreign that Baton acts on or records comes through here.

use std::fmt;

use serde::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde::ser::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::limits::{DEPTH_MAX, INTEGER_MAX};

/// What is wrong with a JSON text, and where. Lines and columns count from 1, columns in bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at line {line} column {column}")]
pub struct Error {
    pub what: String,
    pub line: usize,
    pub column: usize,
}

/// Parses one JSON text, or says what is wrong with it and where.
///
/// Nothing but white space may stand around the one value. A text that is refused has no part that is believed.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    refuse_long_integers(text)?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    DeserializeSeed::deserialize(Strict { depth: 1 }, &mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|e| Error::from_serde(&e))
}

/// A value that is written with the names of every object in order.
///
/// How `serde_json` keeps its maps is a choice of any crate in the build. What is compared, signed or read by scripts does not depend on it.
#[derive(Debug, Clone, Copy)]
pub struct Sorted<'a>(pub &'a Value);

impl Serialize for Sorted<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(map) => {
                let mut entries: Vec<(&String, &Value)> = map.iter().collect();
                entries.sort_unstable_by_key(|(name, _)| *name);
                serializer.collect_map(entries.into_iter().map(|(name, value)| (name, Sorted(value))))
            }
            Value::Array(items) => serializer.collect_seq(items.iter().map(Sorted)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                self.0.serialize(serializer)
            }
        }
    }
}

/// In one line; with `{:#}` two spaces deep.
impl fmt::Display for Sorted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text =
            if f.alternate() { serde_json::to_string_pretty(self) } else { serde_json::to_string(self) };
        f.write_str(&text.map_err(|_| fmt::Error)?)
    }
}

impl Error {
    pub(crate) fn from_serde(error: &serde_json::Error) -> Self {
        let (line, column) = (error.line(), error.column());
        let text = error.to_string();
        let place = format!(" at line {line} column {column}");
        Error { what: text.strip_suffix(&place).unwrap_or(&text).to_owned(), line, column }
    }
}

fn out_of_range(shown: &str) -> String {
    format!("integer {shown} is outside ±(2^53−1); send it as a string")
}

/// An integer of more digits than 64 bits hold reaches a visitor as a double, rounded: it is refused by its text.
fn refuse_long_integers(text: &[u8]) -> Result<(), Error> {
    let (mut at, mut is_string) = (0, false);
    while let Some(byte) = text.get(at) {
        at += 1;
        match byte {
            b'"' => is_string = !is_string,
            b'\\' if is_string => at += 1,
            b'0'..=b'9' if !is_string => {
                let start = at - 1;
                let is_part = |b: &u8| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-');
                at = text[at..].iter().position(|b| !is_part(b)).map_or(text.len(), |length| at + length);
                let token = &text[start..at];
                if token.len() > 19 && token.iter().all(u8::is_ascii_digit) {
                    let what = out_of_range(&(String::from_utf8_lossy(&token[..19]) + "…"));
                    let line = text[..start].iter().filter(|b| **b == b'\n').count() + 1;
                    let column = text[..start].iter().rev().take_while(|b| **b != b'\n').count() + 1;
                    return Err(Error { what, line, column });
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// One value at a known depth.
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(&self) -> Result<Strict, E> {
        if self.depth > DEPTH_MAX {
            return Err(E::custom(format!("nested deeper than {DEPTH_MAX} levels")));
        }
        Ok(Strict { depth: self.depth + 1 })
    }
}

impl<'de> DeserializeSeed<'de> for Strict {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(Value::Bool(v))
    }

    fn visit_i64<E: de::Error>(self, v: i64) -> Result<Value, E> {
        if v < -INTEGER_MAX { Err(E::custom(out_of_range(&v.to_string()))) } else { Ok(v.into()) }
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Value, E> {
        if v > INTEGER_MAX as u64 { Err(E::custom(out_of_range(&v.to_string()))) } else { Ok(v.into()) }
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Value, E> {
        // The same judgement as the printer's, so that what is read can always be printed.
        if v.fract() == 0.0 && v.abs() > INTEGER_MAX as f64 && v.abs() < 1e21 {
            return Err(E::custom(out_of_range(&v.to_string())));
        }
        serde_json::Number::from_f64(v)
            .map(Value::Number)
            .ok_or_else(|| E::custom("expected a finite number"))
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(Value::String(v.to_owned()))
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(Value::String(v))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = access.next_element_seed(self.deeper()?)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<Value, A::Error> {
        let inner = self.deeper::<A::Error>()?.depth;
        let mut members = Map::new();
        while let Some(name) = access.next_key::<String>()? {
            if members.contains_key(&name) {
                let shown: String = name.chars().take(80).collect();
                return Err(de::Error::custom(format!("member {shown:?} occurs twice")));
            }
            let value = access.next_value_seed(Strict { depth: inner })?;
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, error: &str) {
        assert_eq!(parse(text.as_bytes()).unwrap_err().to_string(), error, "{text}");
    }

    #[test]
    fn what_is_refused_says_what_and_where() {
        check("{\"a\":1,\n \"a\":2}", "member \"a\" occurs twice at line 2 column 4");
        check(
            "[9007199254740992]",
            "integer 9007199254740992 is outside ±(2^53−1); send it as a string at line 1 column 17",
        );
        check(
            "[\n 12345678901234567890123]",
            "integer 1234567890123456789… is outside ±(2^53−1); send it as a string at line 2 column 2",
        );
        check("{\"a\" 1}", "expected `:` at line 1 column 6");
        check("{} x", "trailing characters at line 1 column 4");
        let deep = "[".repeat(65);
        check(&deep, "nested deeper than 64 levels at line 1 column 65");
    }

    #[test]
    fn the_deepest_nesting_and_the_largest_integers_are_read() {
        let deep = "[".repeat(DEPTH_MAX) + &"]".repeat(DEPTH_MAX);
        assert!(parse(deep.as_bytes()).is_ok());
        assert_eq!(
            parse(b"[9007199254740991,-9007199254740991]"),
            Ok(serde_json::json!([INTEGER_MAX, -INTEGER_MAX]))
        );
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }
    }

    #[test]
    fn names_are_written_in_order_however_they_were_put() {
        let value = parse(br#"{"b": [{"z": 1, "a": {}}], "a": "x", "B": null}"#).unwrap();
        assert_eq!(Sorted(&value).to_string(), r#"{"B":null,"a":"x","b":[{"a":{},"z":1}]}"#);
        let value = parse(br#"{"b": 1, "a": []}"#).unwrap();
        assert_eq!(format!("{:#}", Sorted(&value)), "{\n  \"a\": [],\n  \"b\": 1\n}");
    }
}

//! Reads foreign JSON strictly: duplicate names, integers out of range and deep nesting are refused by name.
//!
//! `serde_json` keeps the last of two equal names and turns large integers into doubles; both would let two readers
//! see two different events.

use std::fmt;

use baton_core::limits::{DEPTH_MAX, INTEGER_MAX};
use serde_json::{Map, Value};

use super::Error;

/// Parses one JSON text, or says what is wrong with it and where.
pub fn parse(text: &[u8]) -> Result<Value, Error> {
    refuse_long_integers(text)?;
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = serde_core::de::DeserializeSeed::deserialize(Strict { depth: 1 }, &mut reader)
        .and_then(|value| reader.end().map(|()| value))
        .map_err(|e| Error::Json(e.to_string()))?;
    Ok(value)
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
                    return Err(Error::IntegerRange(
                        String::from_utf8_lossy(&token[..19]).into_owned() + "…",
                    ));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

use serde_core::de::{self, DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};

/// One value at a known depth.
struct Strict {
    depth: usize,
}

impl Strict {
    fn deeper<E: de::Error>(&self) -> Result<Strict, E> {
        if self.depth > DEPTH_MAX {
            return Err(E::custom(Error::Depth(DEPTH_MAX)));
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
        if v < -INTEGER_MAX { Err(E::custom(Error::IntegerRange(v.to_string()))) } else { Ok(v.into()) }
    }

    fn visit_u64<E: de::Error>(self, v: u64) -> Result<Value, E> {
        if v > INTEGER_MAX as u64 { Err(E::custom(Error::IntegerRange(v.to_string()))) } else { Ok(v.into()) }
    }

    fn visit_f64<E: de::Error>(self, v: f64) -> Result<Value, E> {
        // The same judgement as the printer's, so that what is read can always be printed.
        if v.fract() == 0.0 && v.abs() > INTEGER_MAX as f64 && v.abs() < 1e21 {
            return Err(E::custom(Error::IntegerRange(format!("{v}"))));
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
            let value = access.next_value_seed(Strict { depth: inner })?;
            if members.contains_key(&name) {
                let shown: String = name.chars().take(80).collect();
                return Err(de::Error::custom(format!("member {shown:?} occurs twice")));
            }
            members.insert(name, value);
        }
        Ok(Value::Object(members))
    }
}

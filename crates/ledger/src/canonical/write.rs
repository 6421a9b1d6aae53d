//! Prints values in RFC 8785 form.

use baton_core::limits::{DEPTH_MAX, INTEGER_MAX};
use serde_json::{Map, Number, Value};

use super::Error;

/// Prints a value canonically, or refuses what has no faithful form.
pub fn to_bytes(value: &Value) -> Result<Vec<u8>, Error> {
    let mut out = Vec::with_capacity(256);
    write_value(&mut out, value)?;
    Ok(out)
}

/// Makes a value what it is read back as once it was printed: a double without a fraction comes back as an integer.
pub fn settle(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|n| number.is_f64() && n.fract() == 0.0);
            if let Some(n) = whole.filter(|n| n.abs() <= INTEGER_MAX as f64) {
                *number = Number::from(n as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        Value::Object(members) => members.values_mut().for_each(settle),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Appends a value's canonical form. On an error, `out` holds an unspecified beginning of it.
pub fn write_value(out: &mut Vec<u8>, value: &Value) -> Result<(), Error> {
    write_nested(out, value, 1)
}

fn write_nested(out: &mut Vec<u8>, value: &Value, depth: usize) -> Result<(), Error> {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(true) => out.extend_from_slice(b"true"),
        Value::Bool(false) => out.extend_from_slice(b"false"),
        Value::Number(number) => write_number(out, number)?,
        Value::String(text) => push_string(out, text),
        Value::Array(items) => {
            bound(depth)?;
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_nested(out, item, depth + 1)?;
            }
            out.push(b']');
        }
        Value::Object(members) => {
            write_members(out, members, depth)?;
        }
    }
    Ok(())
}

fn bound(depth: usize) -> Result<(), Error> {
    if depth > DEPTH_MAX { Err(Error::Depth(DEPTH_MAX)) } else { Ok(()) }
}

/// Sorts by UTF-16 code units, which is neither the order of the map nor that of UTF-8.
pub(crate) fn write_members(
    out: &mut Vec<u8>,
    members: &Map<String, Value>,
    depth: usize,
) -> Result<(), Error> {
    bound(depth)?;
    let mut sorted: Vec<_> = members.iter().collect();
    sorted.sort_unstable_by(|(a, _), (b, _)| super::scan::compare_utf16(a, b));
    out.push(b'{');
    for (i, (name, value)) in sorted.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        push_string(out, name);
        out.push(b':');
        write_nested(out, value, depth + 1)?;
    }
    out.push(b'}');
    Ok(())
}

fn write_number(out: &mut Vec<u8>, number: &Number) -> Result<(), Error> {
    let out_of_range = || Error::IntegerRange(number.to_string());
    if let Some(n) = number.as_i64() {
        if !(-INTEGER_MAX..=INTEGER_MAX).contains(&n) {
            return Err(out_of_range());
        }
        push_integer(out, n);
    } else if number.as_u64().is_some() {
        return Err(out_of_range());
    } else {
        let n = number.as_f64().unwrap_or(f64::NAN);
        if !n.is_finite() {
            return Err(Error::Json(format!("{number} is not a finite number")));
        }
        // A double beyond 2^53 that prints as an integer would be read back as an integer out of range.
        if n.fract() == 0.0 && n.abs() > INTEGER_MAX as f64 && n.abs() < 1e21 {
            return Err(out_of_range());
        }
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(n).as_bytes());
    }
    Ok(())
}

/// Prints an integer without going through a formatter.
pub(crate) fn push_integer(out: &mut Vec<u8>, n: i64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = n.unsigned_abs();
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    if n < 0 {
        out.push(b'-');
    }
    out.extend_from_slice(&digits[at..]);
}

/// Prints a string with the shortest escapes.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut from = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0x08 => out.extend_from_slice(b"\\b"),
            0x09 => out.extend_from_slice(b"\\t"),
            0x0a => out.extend_from_slice(b"\\n"),
            0x0c => out.extend_from_slice(b"\\f"),
            0x0d => out.extend_from_slice(b"\\r"),
            _ => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                let [high, low] = [HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]];
                out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
            }
        }
    }
    out.extend_from_slice(&bytes[from..]);
    out.push(b'"');
}

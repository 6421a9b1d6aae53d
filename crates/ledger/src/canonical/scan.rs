//! Checks in one pass that bytes are canonical JSON, and hands out spans of them. Builds no values.
//!
//! This is what makes verification quick: a stored line is canonical or refused, so every digest can be taken over
//! pieces of the line itself.

use std::cmp::Ordering;

use baton_core::limits::{DEPTH_MAX, INTEGER_MAX};

use super::Error;

/// A cursor over text that is being checked.
#[derive(Debug, Clone)]
pub struct Scanner<'a> {
    text: &'a str,
    at: usize,
}

/// A string as it stands between its quotes.
#[derive(Debug, Clone, Copy)]
pub struct RawStr<'a> {
    raw: &'a str,
    is_plain: bool,
}

impl<'a> RawStr<'a> {
    /// The text, where nothing in it is escaped. Every grammar of an identifier has no character that would be.
    pub fn plain(self) -> Option<&'a str> {
        self.is_plain.then_some(self.raw)
    }

    /// Number of Unicode scalar values that the string means.
    pub fn char_count(self) -> usize {
        if self.is_plain { self.raw.chars().count() } else { self.unescaped().chars().count() }
    }

    /// The text that the string means. The escapes have been checked before.
    pub fn unescaped(self) -> String {
        let mut out = String::with_capacity(self.raw.len());
        let mut chars = self.raw.chars();
        while let Some(c) = chars.next() {
            if c != '\\' {
                out.push(c);
                continue;
            }
            out.push(match chars.next() {
                Some('b') => '\u{8}',
                Some('t') => '\t',
                Some('n') => '\n',
                Some('f') => '\u{c}',
                Some('r') => '\r',
                Some('u') => {
                    let code = chars.by_ref().take(4).fold(0, |n, d| n * 16 + d.to_digit(16).unwrap_or(0));
                    char::from_u32(code).unwrap_or('\u{fffd}')
                }
                Some(other) => other,
                None => '\\',
            });
        }
        out
    }
}

/// Checks a whole text: one canonical value and nothing else.
pub fn check(text: &str) -> Result<(), Error> {
    let mut scanner = Scanner::new(text);
    scanner.value(1)?;
    scanner.end()
}

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Scanner { text, at: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// The text from an earlier place to here.
    pub fn since(&self, from: usize) -> &'a str {
        self.text.get(from..self.at).unwrap_or_default()
    }

    /// An error at this place.
    pub fn expected(&self, expected: &'static str) -> Error {
        Error::NotCanonical { at: self.at, expected }
    }

    pub fn end(&self) -> Result<(), Error> {
        if self.at == self.text.len() { Ok(()) } else { Err(self.expected("the end of the line")) }
    }

    pub fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    pub fn expect(&mut self, byte: u8, expected: &'static str) -> Result<(), Error> {
        if self.eat(byte) { Ok(()) } else { Err(self.expected(expected)) }
    }

    /// Any value, at a depth counted from 1 for the outermost container.
    pub fn value(&mut self, depth: usize) -> Result<(), Error> {
        match self.peek() {
            Some(b'{') => self.object(depth, |scanner, _| scanner.value(depth + 1)),
            Some(b'[') => self.array(depth, |scanner| scanner.value(depth + 1)),
            Some(b'"') => self.string().map(drop),
            Some(b't') => self.word("true"),
            Some(b'f') => self.word("false"),
            Some(b'n') => self.word("null"),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => Err(self.expected("a JSON value")),
        }
    }

    fn word(&mut self, word: &'static str) -> Result<(), Error> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return Err(self.expected("true, false or null"));
        }
        self.at += word.len();
        Ok(())
    }

    /// An object; `member` reads the value that belongs to each name. Names ascend strictly.
    pub fn object(
        &mut self,
        depth: usize,
        mut member: impl FnMut(&mut Self, RawStr<'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(Error::Depth(DEPTH_MAX));
        }
        self.expect(b'{', "an object")?;
        if self.eat(b'}') {
            return Ok(());
        }
        let mut before: Option<RawStr<'a>> = None;
        loop {
            let start = self.at;
            let name = self.string()?;
            if before.is_some_and(|before| !ascends(before, name)) {
                return Err(Error::NotCanonical { at: start, expected: "names in strictly ascending order" });
            }
            before = Some(name);
            self.expect(b':', "a colon")?;
            member(self, name)?;
            if self.eat(b'}') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the object")?;
        }
    }

    /// An array; `item` reads each element.
    pub fn array(
        &mut self,
        depth: usize,
        mut item: impl FnMut(&mut Self) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if depth > DEPTH_MAX {
            return Err(Error::Depth(DEPTH_MAX));
        }
        self.expect(b'[', "an array")?;
        if self.eat(b']') {
            return Ok(());
        }
        loop {
            item(self)?;
            if self.eat(b']') {
                return Ok(());
            }
            self.expect(b',', "a comma or the end of the array")?;
        }
    }

    /// A string with the shortest escapes.
    pub fn string(&mut self) -> Result<RawStr<'a>, Error> {
        self.expect(b'"', "a string")?;
        let bytes = self.text.as_bytes();
        let start = self.at;
        let mut is_plain = true;
        loop {
            self.at += plain_run(&bytes[self.at..]);
            match bytes.get(self.at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    is_plain = false;
                    self.at += escape_length(&bytes[self.at..])
                        .ok_or_else(|| self.expected("the shortest escape"))?;
                }
                Some(_) => return Err(self.expected("no bare control character")),
                None => return Err(self.expected("the end of the string")),
            }
        }
        let raw = &self.text[start..self.at];
        self.at += 1;
        Ok(RawStr { raw, is_plain })
    }

    /// A number as ECMAScript prints it.
    fn number(&mut self) -> Result<(), Error> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let length = bytes[start..]
            .iter()
            .take_while(|b| matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .count();
        let token = &self.text[start..start + length];
        let wrong = Error::NotCanonical { at: start, expected: "a number as ECMAScript prints it" };
        if token.bytes().any(|b| matches!(b, b'.' | b'e' | b'E' | b'+')) {
            let n: f64 = token.parse().map_err(|_| wrong.clone())?;
            if !n.is_finite() || ryu_js::Buffer::new().format_finite(n) != token {
                return Err(wrong);
            }
        } else {
            let digits = token.strip_prefix('-').unwrap_or(token);
            if digits.is_empty() || digits.contains('-') || (digits.starts_with('0') && token != "0") {
                return Err(wrong);
            }
            if token.parse::<i64>().map_or(true, |n| n.unsigned_abs() > INTEGER_MAX as u64) {
                return Err(Error::IntegerRange(token.chars().take(40).collect()));
            }
        }
        self.at += length;
        Ok(())
    }

    /// An integer in the canonical range.
    pub fn integer(&mut self) -> Result<i64, Error> {
        let start = self.at;
        let wrong = Error::NotCanonical { at: start, expected: "an integer" };
        if !matches!(self.peek(), Some(b'-' | b'0'..=b'9')) {
            return Err(wrong);
        }
        self.number()?;
        self.since(start).parse().map_err(|_| wrong)
    }
}

/// Length of the run of bytes that stand for themselves, eight at a time.
fn plain_run(bytes: &[u8]) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    while let Some(chunk) = bytes.get(at..at + 8) {
        let word = u64::from_le_bytes(chunk.try_into().unwrap_or_default());
        // The classic "has a byte below n / equal to n" tricks; a false alarm only ends the fast run early.
        let control = word.wrapping_sub(ONES * 0x20) & !word & HIGH;
        let quote = word ^ (ONES * u64::from(b'"'));
        let slash = word ^ (ONES * u64::from(b'\\'));
        let quote = quote.wrapping_sub(ONES) & !quote & HIGH;
        let slash = slash.wrapping_sub(ONES) & !slash & HIGH;
        if control | quote | slash != 0 {
            break;
        }
        at += 8;
    }
    at + bytes[at..].iter().take_while(|b| **b >= 0x20 && **b != b'"' && **b != b'\\').count()
}

/// Length of a canonical escape at the start of `bytes`, or `None`.
fn escape_length(bytes: &[u8]) -> Option<usize> {
    match bytes.get(1)? {
        b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r' => Some(2),
        b'u' => {
            let [b'0', b'0', high @ (b'0' | b'1'), low] = bytes.get(2..6)? else { return None };
            let low = match low {
                b'0'..=b'9' => low - b'0',
                b'a'..=b'f' => low - b'a' + 10,
                _ => return None,
            };
            let code = (high - b'0') * 16 + low;
            (!matches!(code, 0x08 | 0x09 | 0x0a | 0x0c | 0x0d)).then_some(6)
        }
        _ => None,
    }
}

fn ascends(a: RawStr<'_>, b: RawStr<'_>) -> bool {
    match (a.plain(), b.plain()) {
        (Some(a), Some(b)) => compare_utf16(a, b).is_lt(),
        _ => compare_utf16(&a.unescaped(), &b.unescaped()).is_lt(),
    }
}

/// Order by UTF-16 code units. Differs from the order of UTF-8 only where a character beyond U+FFFF meets one from U+E000.
pub(crate) fn compare_utf16(a: &str, b: &str) -> Ordering {
    if a.is_ascii() && b.is_ascii() { a.cmp(b) } else { a.encode_utf16().cmp(b.encode_utf16()) }
}

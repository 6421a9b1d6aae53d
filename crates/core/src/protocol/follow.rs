//! Follows one JSON object byte by byte, from its opening brace to its closing one, without keeping any of it.
//!
//! The grammar is JSON's, exactly: the byte that cannot continue a JSON text is noticed when it comes. That is what lets the scanner give
//! up on a stray brace at once. Whether names repeat, escapes pair up or bytes are UTF-8 is left to the reader of the whole.

use crate::limits::DEPTH_MAX;

// The open containers are the bits of one word.
const _: () = assert!(DEPTH_MAX == u64::BITS as usize);

/// What one byte did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The object goes on.
    More,
    /// The object ended with this byte.
    Done,
    /// No JSON goes on like this.
    Broken,
    /// One container more than any reader takes.
    TooDeep,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    /// After `{`: a name or the end.
    FirstName,
    /// After a comma in an object.
    Name,
    Colon,
    Value,
    /// After `[`: a value or the end.
    FirstItem,
    /// After a value.
    Next,
    Text {
        is_name: bool,
    },
    Escape {
        is_name: bool,
    },
    Hex {
        is_name: bool,
        left: u8,
    },
    Number(Digits),
    /// What is left of `true`, `false` or `null`.
    Word(&'static [u8]),
}

/// Where in a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Digits {
    Minus,
    Zero,
    Whole,
    Point,
    Fraction,
    E,
    Sign,
    Exponent,
}

/// The state after an opening brace and some bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Follower {
    at: At,
    /// Open containers; the innermost is the lowest bit of `kinds`, set for an object.
    depth: usize,
    kinds: u64,
}

impl Follower {
    /// Right after the opening brace.
    pub(super) fn after_brace() -> Self {
        Follower { at: At::FirstName, depth: 1, kinds: 1 }
    }

    pub(super) fn step(&mut self, byte: u8) -> Step {
        let is_space = matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        match self.at {
            At::Text { is_name } => match byte {
                b'"' => self.go(if is_name { At::Colon } else { At::Next }),
                b'\\' => self.go(At::Escape { is_name }),
                0..0x20 => Step::Broken,
                _ => Step::More,
            },
            At::Escape { is_name } => match byte {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.go(At::Text { is_name }),
                b'u' => self.go(At::Hex { is_name, left: 4 }),
                _ => Step::Broken,
            },
            At::Hex { is_name, left } if byte.is_ascii_hexdigit() => {
                self.go(if left == 1 { At::Text { is_name } } else { At::Hex { is_name, left: left - 1 } })
            }
            At::Hex { .. } => Step::Broken,
            At::Word(left) => match left.split_first() {
                Some((first, [])) if *first == byte => self.go(At::Next),
                Some((first, rest)) if *first == byte => self.go(At::Word(rest)),
                _ => Step::Broken,
            },
            At::Number(digits) => self.number(digits, byte),
            _ if is_space => Step::More,
            At::FirstName if byte == b'}' => self.close(byte),
            At::FirstName | At::Name if byte == b'"' => self.go(At::Text { is_name: true }),
            At::FirstName | At::Name => Step::Broken,
            At::Colon if byte == b':' => self.go(At::Value),
            At::Colon => Step::Broken,
            At::FirstItem if byte == b']' => self.close(byte),
            At::FirstItem | At::Value => self.value(byte),
            At::Next => self.next(byte),
        }
    }

    fn go(&mut self, at: At) -> Step {
        self.at = at;
        Step::More
    }

    fn value(&mut self, byte: u8) -> Step {
        match byte {
            b'{' => self.open(At::FirstName, 1),
            b'[' => self.open(At::FirstItem, 0),
            b'"' => self.go(At::Text { is_name: false }),
            b'-' => self.go(At::Number(Digits::Minus)),
            b'0' => self.go(At::Number(Digits::Zero)),
            b'1'..=b'9' => self.go(At::Number(Digits::Whole)),
            b't' => self.go(At::Word(b"rue")),
            b'f' => self.go(At::Word(b"alse")),
            b'n' => self.go(At::Word(b"ull")),
            _ => Step::Broken,
        }
    }

    fn number(&mut self, digits: Digits, byte: u8) -> Step {
        use Digits::{E, Exponent, Fraction, Minus, Point, Sign, Whole, Zero};
        let then = match (digits, byte) {
            (Minus, b'0') => Zero,
            (Minus, b'1'..=b'9') | (Whole, b'0'..=b'9') => Whole,
            (Zero | Whole, b'.') => Point,
            (Point | Fraction, b'0'..=b'9') => Fraction,
            (Zero | Whole | Fraction, b'e' | b'E') => E,
            (E, b'+' | b'-') => Sign,
            (E | Sign | Exponent, b'0'..=b'9') => Exponent,
            // A number has no end of its own: the byte after it belongs to what follows.
            (Zero | Whole | Fraction | Exponent, _) => {
                self.at = At::Next;
                return self.step(byte);
            }
            (Minus | Point | E | Sign, _) => return Step::Broken,
        };
        self.go(At::Number(then))
    }

    fn next(&mut self, byte: u8) -> Step {
        match byte {
            b',' => self.go(if self.is_object() { At::Name } else { At::Value }),
            b'}' | b']' => self.close(byte),
            _ => Step::Broken,
        }
    }

    fn is_object(&self) -> bool {
        self.kinds & 1 == 1
    }

    fn open(&mut self, at: At, kind: u64) -> Step {
        if self.depth == DEPTH_MAX {
            return Step::TooDeep;
        }
        self.depth += 1;
        self.kinds = self.kinds << 1 | kind;
        self.go(at)
    }

    fn close(&mut self, byte: u8) -> Step {
        if (byte == b'}') != self.is_object() {
            return Step::Broken;
        }
        self.depth -= 1;
        self.kinds >>= 1;
        if self.depth == 0 { Step::Done } else { self.go(At::Next) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json;
    use proptest::prelude::*;

    /// The last step, and how many bytes were looked at after the brace.
    fn follow(text: &[u8]) -> (Step, usize) {
        let mut follower = Follower::after_brace();
        for (i, byte) in text[1..].iter().enumerate() {
            match follower.step(*byte) {
                Step::More => {}
                step => return (step, i + 1),
            }
        }
        (Step::More, text.len() - 1)
    }

    fn check(text: &str, step: Step, at: usize) {
        assert_eq!(follow(text.as_bytes()), (step, at), "{text}");
    }

    #[test]
    fn objects_are_followed_to_their_own_end() {
        check("{} {", Step::Done, 1);
        check(r#"{"a":"}\"}"} x"#, Step::Done, 11);
        check(r#"{"a":[{},[1,-0.5e+3,true,false,null]],"b":"\u00e4\n"}"#, Step::Done, 52);
        check("{ \"a\"\r\n\t: 0 }", Step::Done, 12);
    }

    #[test]
    fn what_is_not_json_is_noticed_at_its_first_byte() {
        check("{x", Step::Broken, 1);
        check("{{", Step::Broken, 1);
        check("{\"a\nb", Step::Broken, 3);
        check(r#"{"a":1,}"#, Step::Broken, 7);
        check(r#"{"a":[1}"#, Step::Broken, 7);
        check(r#"{"a":01}"#, Step::Broken, 6);
        check(r#"{"a":1."#, Step::More, 6);
        check(r#"{"a":1.}"#, Step::Broken, 7);
        check(r#"{"a":tru}"#, Step::Broken, 8);
        check(r#"{"a":"\x"#, Step::Broken, 7);
        check(r#"{"a":"\u00g"#, Step::Broken, 10);
    }

    #[test]
    fn the_deepest_nesting_is_that_of_the_strict_reader() {
        let text = |depth: usize| format!("{{\"a\":{}{}}}", "[".repeat(depth - 1), "]".repeat(depth - 1));
        assert_eq!(follow(text(DEPTH_MAX).as_bytes()).0, Step::Done);
        assert!(json::parse(text(DEPTH_MAX).as_bytes()).is_ok());
        assert_eq!(follow(text(DEPTH_MAX + 1).as_bytes()).0, Step::TooDeep);
        assert!(json::parse(text(DEPTH_MAX + 1).as_bytes()).is_err());
    }

    proptest! {
        #[test]
        fn it_agrees_with_a_parser_about_what_is_an_object(text in r#"\{[ {}\[\]",:a0-9eE.+ntrueflsn\\-]{0,24}\}"#) {
            let is_object = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert_eq!(follow(text.as_bytes()) == (Step::Done, text.len() - 1), is_object, "{}", text);
        }
    }
}

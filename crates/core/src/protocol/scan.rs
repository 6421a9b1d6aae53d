//! Finds exit signals in what an agent prints, while it prints.
//!
//! An object counts where a brace in the text begins one: alone, after other words, in a code fence, in an array. An object inside
//! another object does not count; the outer one is what the agent said. A brace that begins no object is passed over and the text after
//! it looked at anew, so that junk hides nothing. Objects of another protocol are nobody's business and are not reported.
//!
//! **Bounds.** At most [`EXIT_SIGNAL_BYTES_MAX`] bytes are kept, and a piece. An object that is longer is followed to its end without being
//! kept: what is inside it does not count, also where it breaks off. An object that nests deeper than any reader takes is given up where
//! it does. A byte is looked at again only for another brace from which the text so far could be JSON; of these there are never more
//! than two (inside strings and outside) for each level of nesting.

use std::fmt;

use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use super::exit_signal::{ExitSignal, ExitSignalError, PROTOCOL};
use super::follow::{Follower, Step};
use crate::json;
use crate::limits::EXIT_SIGNAL_BYTES_MAX;

/// What was found in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Signal(ExitSignal),
    /// It names this protocol and is no signal.
    Invalid(ExitSignalError),
}

/// The state between two pieces of output. Where the pieces are cut makes no difference.
#[derive(Debug, Default)]
pub struct Scanner {
    /// What may still be looked at again: from the candidate's brace on.
    held: Vec<u8>,
    /// The first byte of `held` that was not looked at.
    next: usize,
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Between objects.
    #[default]
    Idle,
    /// In what may be an object; its brace is at `start` of `held`.
    Candidate { start: usize, follower: Follower },
    /// In an object that is too large to be a signal.
    Passing(Follower),
}

/// Bytes that are taken over at a time.
const PIECE_BYTES: usize = 4096;

impl Scanner {
    pub fn new() -> Self {
        Scanner::default()
    }

    /// Takes more output, and returns what ended in it, in order.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<Found> {
        let mut found = Vec::new();
        for piece in bytes.chunks(PIECE_BYTES) {
            self.held.extend_from_slice(piece);
            self.advance(&mut found);
        }
        found
    }

    /// Says that no more comes: what was begun is given up, and what it hid is looked at. The scanner is then as new.
    pub fn finish(&mut self) -> Vec<Found> {
        let mut found = Vec::new();
        while let State::Candidate { start, .. } = self.state {
            found.extend(judge(&self.held[start..]));
            self.retreat(start);
            self.advance(&mut found);
        }
        *self = Scanner::new();
        found
    }

    /// Looks at everything that is held and was not looked at.
    fn advance(&mut self, found: &mut Vec<Found>) {
        while self.next < self.held.len() {
            match &mut self.state {
                State::Idle => match self.held[self.next..].iter().position(|byte| *byte == b'{') {
                    Some(distance) => {
                        let start = self.next + distance;
                        self.next = start + 1;
                        self.state = State::Candidate { start, follower: Follower::after_brace() };
                    }
                    None => self.next = self.held.len(),
                },
                State::Candidate { start, follower } if self.next - *start == EXIT_SIGNAL_BYTES_MAX => {
                    if names_protocol(&self.held[*start..self.next]) {
                        found.push(Found::Invalid(ExitSignalError::TooLarge { max: EXIT_SIGNAL_BYTES_MAX }));
                    }
                    self.state = State::Passing(*follower);
                }
                State::Candidate { start, follower } => {
                    let start = *start;
                    let step = follower.step(self.held[self.next]);
                    self.next += 1;
                    match step {
                        Step::More => {}
                        Step::Done => {
                            found.extend(judge(&self.held[start..self.next]));
                            self.state = State::Idle;
                        }
                        Step::Broken => {
                            found.extend(judge(&self.held[start..self.next]));
                            self.retreat(start);
                        }
                        Step::TooDeep => {
                            // Not back to the brace: every level would be looked at as often as there are levels.
                            found.extend(judge(&self.held[start..self.next]));
                            self.next -= 1;
                            self.state = State::Idle;
                        }
                    }
                }
                State::Passing(follower) => match follower.step(self.held[self.next]) {
                    Step::More => self.next += 1,
                    Step::Done => {
                        self.next += 1;
                        self.state = State::Idle;
                    }
                    // The byte may be the brace of the next object.
                    Step::Broken | Step::TooDeep => self.state = State::Idle,
                },
            }
        }
        self.forget();
    }

    /// Goes back to the byte after a brace that began nothing.
    fn retreat(&mut self, start: usize) {
        self.next = start + 1;
        self.state = State::Idle;
    }

    /// Drops what nobody will look at again.
    fn forget(&mut self) {
        let until = match &mut self.state {
            State::Idle | State::Passing(_) => self.next,
            State::Candidate { start, .. } => std::mem::take(start),
        };
        self.held.drain(..until);
        self.next -= until;
    }
}

/// What an object is to us, whole or broken off.
fn judge(text: &[u8]) -> Option<Found> {
    if !names_protocol(text) {
        return None;
    }
    let signal = match std::str::from_utf8(text) {
        Ok(text) => ExitSignal::from_json(text),
        Err(_) => match json::parse(text) {
            Err(e) => Err(ExitSignalError::InvalidJson(e.to_string())),
            // Not reached: strict JSON is UTF-8.
            Ok(_) => Err(ExitSignalError::InvalidJson("invalid unicode code point".to_owned())),
        },
    };
    Some(match signal {
        Ok(signal) => Found::Signal(signal),
        Err(e) => Found::Invalid(e),
    })
}

/// Whether an object, as far as it goes, has a member `protocol` that is ours. Nothing else of it needs to be sound.
fn names_protocol(text: &[u8]) -> bool {
    // Nearly everything that is not ours ends here, without a parser. An escape could spell the name in another way.
    let has_name =
        text.contains(&b'\\') || text.windows(PROTOCOL.len()).any(|part| part == PROTOCOL.as_bytes());
    if !has_name {
        return false;
    }
    let mut is_named = false;
    // Where it stops makes no difference: what was seen until then was seen.
    let lossy = String::from_utf8_lossy(text);
    let _ = serde_json::Deserializer::from_str(&lossy).deserialize_map(Names(&mut is_named));
    is_named
}

struct Names<'a>(&'a mut bool);

impl<'de> Visitor<'de> for Names<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut access: A) -> Result<(), A::Error> {
        while let Some(name) = access.next_key::<String>()? {
            if name == "protocol" {
                let value: serde_json::Value = access.next_value()?;
                *self.0 |= value.as_str() == Some(PROTOCOL);
            } else {
                access.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

//! What an agent's own words hold besides their meaning: exit signals, and what it said last. For every harness alike: what tools print is not looked at.

use baton_core::protocol::scan::{Found, Scanner};

use crate::limits::SAID_TAIL_BYTES;

/// The words of one turn so far.
#[derive(Debug, Default)]
pub(crate) struct Overheard {
    scanner: Scanner,
    tail: String,
}

impl Overheard {
    /// Takes a part of the text, and gives the signals that end in it.
    pub(crate) fn hear(&mut self, text: &str) -> Vec<Found> {
        self.tail.push_str(text);
        if self.tail.len() > 2 * SAID_TAIL_BYTES {
            let cut = self.tail.ceil_char_boundary(self.tail.len() - SAID_TAIL_BYTES);
            self.tail.drain(..cut);
        }
        self.scanner.push(text.as_bytes())
    }

    /// Says that the text has ended, and gives what that brings to light.
    pub(crate) fn end(&mut self) -> Vec<Found> {
        self.scanner.finish()
    }

    /// What was said last.
    pub(crate) fn tail(&self) -> &str {
        &self.tail[self.tail.ceil_char_boundary(self.tail.len().saturating_sub(SAID_TAIL_BYTES))..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_found_across_parts_and_the_tail_is_bounded() {
        let signal = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;
        let mut overheard = Overheard::default();
        let mut found = overheard.hear(&"é".repeat(10_000));
        for part in signal.as_bytes().chunks(7) {
            found.extend(overheard.hear(std::str::from_utf8(part).unwrap()));
        }
        assert!(matches!(found[..], [Found::Signal(_)]), "{found:?}");
        assert!(overheard.tail().len() <= SAID_TAIL_BYTES && overheard.tail().ends_with("\"completed\"}"));
        assert!(overheard.end().is_empty());
    }
}

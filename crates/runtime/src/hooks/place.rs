//! Where something stands in a JSON text that is known to read.

/// One step from a value to what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step<'a> {
    /// The value of a member.
    Member(&'a str),
    /// The name of a member.
    Name(&'a str),
    Item(usize),
}

/// Line and column of what the steps lead to, from 1, the column in bytes; as far as they lead.
pub(super) fn locate(text: &[u8], steps: &[Step<'_>]) -> (usize, usize) {
    let mut walk = Walk { text, at: 0 };
    walk.skip_space();
    let mut found = walk.at;
    for step in steps {
        match walk.enter(*step) {
            Some(at) => found = at,
            None => break,
        }
    }
    let before = text.get(..found).unwrap_or(text);
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count() + 1;
    (line, column)
}

struct Walk<'t> {
    text: &'t [u8],
    at: usize,
}

impl Walk<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Goes into the value at hand, to what the step names, and stays there.
    fn enter(&mut self, step: Step<'_>) -> Option<usize> {
        let opening = self.peek()?;
        self.at += 1;
        let mut count = 0;
        loop {
            self.skip_space();
            match self.peek()? {
                b'}' | b']' => return None,
                b',' => {
                    self.at += 1;
                    continue;
                }
                _ => {}
            }
            let start = self.at;
            if opening == b'{' {
                self.skip_value();
                let name: Option<String> = serde_json::from_slice(self.text.get(start..self.at)?).ok();
                if matches!(step, Step::Name(wanted) if name.as_deref() == Some(wanted)) {
                    return Some(start);
                }
                self.skip_space();
                // The colon.
                self.at += 1;
                self.skip_space();
                if matches!(step, Step::Member(wanted) if name.as_deref() == Some(wanted)) {
                    return Some(self.at);
                }
            } else if step == Step::Item(count) {
                return Some(start);
            }
            self.skip_value();
            count += 1;
        }
    }

    /// Goes behind the value at hand.
    fn skip_value(&mut self) {
        let (mut depth, mut is_text) = (0usize, false);
        while let Some(byte) = self.peek() {
            match byte {
                b'"' => is_text = !is_text,
                b'\\' if is_text => self.at += 1,
                _ if is_text => {}
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth == 0 => return,
                b'}' | b']' => depth -= 1,
                b',' | b':' if depth == 0 => return,
                _ if depth == 0 && byte.is_ascii_whitespace() => return,
                _ => {}
            }
            self.at += 1;
            let is_whole = matches!(byte, b'"' | b'}' | b']');
            if depth == 0 && !is_text && is_whole {
                return;
            }
        }
    }
}

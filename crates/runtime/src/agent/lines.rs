//! Bytes of an agent cut into lines, in bounded memory.

use crate::limits::AGENT_LINE_BYTES_MAX;

/// A line, or what there is of one that is longer than any message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Whole(Vec<u8>),
    /// How long it was.
    TooLong(u64),
}

/// What has come of a line so far.
#[derive(Debug, Default)]
pub(super) struct Lines {
    open: Vec<u8>,
    /// Bytes of it that were let go.
    dropped: u64,
}

impl Lines {
    /// Takes bytes and gives the lines that they end.
    pub(super) fn take(&mut self, mut bytes: &[u8], mut give: impl FnMut(Line)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            self.keep(&bytes[..end]);
            give(self.end());
            bytes = &bytes[end + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        if self.dropped > 0 || self.open.len() + bytes.len() > AGENT_LINE_BYTES_MAX {
            self.dropped += (self.open.len() + bytes.len()) as u64;
            self.open = Vec::new();
        } else {
            self.open.extend_from_slice(bytes);
        }
    }

    fn end(&mut self) -> Line {
        let mut line = std::mem::take(&mut self.open);
        if self.dropped > 0 {
            return Line::TooLong(std::mem::take(&mut self.dropped));
        }
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        Line::Whole(line)
    }

    /// What came after the last line feed.
    pub(super) fn finish(&mut self) -> Option<Line> {
        (self.dropped > 0 || !self.open.is_empty()).then(|| self.end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(parts: &[&[u8]]) -> Vec<Line> {
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        parts.iter().for_each(|part| lines.take(part, |line| found.push(line)));
        found.extend(lines.finish());
        found
    }

    #[test]
    fn bytes_become_lines_however_they_come() {
        let whole = |text: &str| Line::Whole(text.as_bytes().to_vec());
        assert_eq!(
            lines(&[b"one\ntw", b"o\r\n", b"\nthree"]),
            [whole("one"), whole("two"), whole(""), whole("three")]
        );
        assert_eq!(lines(&[]), []);
    }

    #[test]
    fn a_line_without_end_is_counted_and_not_kept() {
        let part = vec![b'x'; 1 << 20];
        let (mut lines, mut found) = (Lines::default(), Vec::new());
        for _ in 0..40 {
            lines.take(&part, |line| found.push(line));
            assert!(lines.open.len() <= AGENT_LINE_BYTES_MAX);
        }
        lines.take(b"\nnext\n", |line| found.push(line));
        assert_eq!(found, [Line::TooLong(40 << 20), Line::Whole(b"next".to_vec())]);
    }
}

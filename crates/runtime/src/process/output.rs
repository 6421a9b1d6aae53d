//! What a command prints, within bounds: its beginning and its end in memory, and where wanted all of it in a file.

use std::collections::VecDeque;
use std::io::{self, Write};

use crate::limits::{OUTPUT_FILE_BYTES_MAX, OUTPUT_HEAD_BYTES, OUTPUT_TAIL_BYTES};

/// Standard output and standard error in the order in which they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Output {
    head: Vec<u8>,
    tail: VecDeque<u8>,
    /// Everything that was printed, kept or not.
    pub bytes: u64,
}

impl Output {
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = OUTPUT_HEAD_BYTES - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        bytes = rest;
        // Of more than fits, only the end can stay.
        bytes = &bytes[bytes.len().saturating_sub(OUTPUT_TAIL_BYTES)..];
        let excess = (self.tail.len() + bytes.len()).saturating_sub(OUTPUT_TAIL_BYTES);
        self.tail.drain(..excess);
        self.tail.extend(bytes);
    }

    /// Bytes between the beginning and the end that were not kept.
    pub fn left_out(&self) -> u64 {
        self.bytes - (self.head.len() + self.tail.len()) as u64
    }

    /// What was kept, as text, with a note where something is missing.
    pub fn text(&self) -> String {
        let tail: Vec<u8> = self.tail.iter().copied().collect();
        match self.left_out() {
            0 => String::from_utf8_lossy(&[self.head.as_slice(), &tail].concat()).into_owned(),
            left_out => {
                let (head, tail) = (String::from_utf8_lossy(&self.head), String::from_utf8_lossy(&tail));
                format!("{head}\n[… {left_out} bytes left out …]\n{tail}")
            }
        }
    }
}

/// A bounded copy of everything. What cannot be written does not stop the command; it is told at the end.
pub(super) struct Copy<'a> {
    to: Option<&'a mut dyn Write>,
    room: u64,
    failed: Option<io::Error>,
}

impl<'a> Copy<'a> {
    pub(super) fn to(to: Option<&'a mut dyn Write>) -> Self {
        Copy { to, room: OUTPUT_FILE_BYTES_MAX, failed: None }
    }

    pub(super) fn push(&mut self, bytes: &[u8]) {
        let Some(to) = self.to.as_mut().filter(|_| self.failed.is_none() && self.room > 0) else { return };
        let fits = bytes.len().min(usize::try_from(self.room).unwrap_or(usize::MAX));
        let mut written = to.write_all(&bytes[..fits]);
        self.room -= fits as u64;
        if self.room == 0 && written.is_ok() {
            let note = format!(
                "\n[the output is longer than {OUTPUT_FILE_BYTES_MAX} bytes; the rest is left out]\n"
            );
            written = to.write_all(note.as_bytes());
        }
        self.failed = written.err();
    }

    /// Whether everything that fits was written.
    pub(super) fn finish(self) -> io::Result<()> {
        match (self.failed, self.to) {
            (Some(error), _) => Err(error),
            (None, Some(to)) => to.flush(),
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_kept_whole() {
        let mut output = Output::default();
        output.push(b"one ");
        output.push(b"two");
        assert_eq!((output.text().as_str(), output.left_out()), ("one two", 0));
    }

    #[test]
    fn much_keeps_its_beginning_and_its_end() {
        let mut output = Output::default();
        let total = OUTPUT_HEAD_BYTES + OUTPUT_TAIL_BYTES + 1000;
        let bytes: Vec<u8> = (0..total).map(|n| b'a' + (n % 26) as u8).collect();
        for chunk in bytes.chunks(777) {
            output.push(chunk);
        }
        let mut at_once = Output::default();
        at_once.push(&bytes);
        assert_eq!(output, at_once, "how it arrived does not matter");
        assert_eq!((output.left_out(), output.bytes), (1000, total as u64));
        assert_eq!(output.head, bytes[..OUTPUT_HEAD_BYTES]);
        assert_eq!(output.tail, &bytes[total - OUTPUT_TAIL_BYTES..]);
        assert!(output.text().contains("[… 1000 bytes left out …]"));
    }

    #[test]
    fn a_copy_ends_with_a_note_at_its_bound() {
        let mut file = Vec::new();
        let mut copy = Copy::to(Some(&mut file));
        copy.room = 5;
        copy.push(b"abc");
        copy.push(b"defg");
        copy.push(b"more");
        copy.finish().unwrap();
        let text = String::from_utf8(file).unwrap();
        assert!(text.starts_with("abcde\n[the output is longer"), "{text}");
        assert!(!text.contains("more"), "{text}");
    }

    #[test]
    fn a_copy_that_cannot_be_written_is_told_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut full = Full;
        let mut copy = Copy::to(Some(&mut full));
        copy.push(b"abc");
        assert_eq!(copy.finish().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}

//! What an agent writes beside its protocol: the first lines and the last ones, in bounded memory whatever it writes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

/// Bytes of each end, as they are written in an event; 50 long lines fit, and both ends fit into one event.
const END_BYTES_MAX: usize = 440 << 10;

/// Longest part of a line that is kept, in bytes.
const LINE_BYTES_MAX: usize = 4096;

/// The first lines and the last lines of a stream, as it is told to others.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StderrOutput {
    /// The first lines; all of them where nothing was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
    /// The last lines, where something was left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tail: Option<String>,
    pub truncated: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_lines: Option<u64>,
}

/// Takes bytes as they come and keeps the two ends of them.
#[derive(Debug)]
pub struct StderrCapture {
    /// How many lines each end has.
    lines: usize,
    head: Vec<Vec<u8>>,
    tail: VecDeque<Vec<u8>>,
    total: u64,
    /// The line that has not ended yet, as far as it is kept.
    open: Vec<u8>,
    is_open: bool,
}

impl StderrCapture {
    pub fn new(lines: usize) -> Self {
        let (head, tail) = (Vec::new(), VecDeque::new());
        StderrCapture { lines, head, tail, total: 0, open: Vec::new(), is_open: false }
    }

    pub fn take(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let part = &bytes[..end.unwrap_or(bytes.len())];
            let room = LINE_BYTES_MAX.saturating_sub(self.open.len());
            self.open.extend_from_slice(&part[..part.len().min(room)]);
            self.is_open = true;
            match end {
                Some(end) => {
                    self.end_line();
                    bytes = &bytes[end + 1..];
                }
                None => break,
            }
        }
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.open);
        self.is_open = false;
        if line.last() == Some(&b'\r') {
            line.pop();
        }
        if line.len() >= LINE_BYTES_MAX {
            // A character that was cut in two is left out.
            let start = line.len()
                - line.iter().rev().take(4).position(|byte| is_start(*byte)).map_or(0, |at| at + 1);
            if std::str::from_utf8(&line[start..]).is_err_and(|error| error.error_len().is_none()) {
                line.truncate(start);
            }
        }
        self.total += 1;
        if self.head.len() < self.lines {
            self.head.push(line);
        } else if self.lines > 0 {
            if self.tail.len() == self.lines {
                self.tail.pop_front();
            }
            self.tail.push_back(line);
        }
    }

    /// Leaves out what an event could not hold: the later lines of the head, the earlier ones of the tail.
    fn fit(&mut self) {
        let mut room = END_BYTES_MAX;
        let fitting = |line: &Vec<u8>, room: &mut usize| {
            let size = line.iter().map(|byte| if byte.is_ascii_control() { 6 } else { 2 }).sum::<usize>();
            let fits = size <= *room;
            *room = if fits { *room - size } else { 0 };
            fits
        };
        let kept = self.head.iter().take_while(|line| fitting(line, &mut room)).count();
        if kept < self.head.len() && self.tail.is_empty() {
            // Nothing was left out so far: the rest of the head is the tail.
            self.tail.extend(self.head.drain(kept..));
        }
        self.head.truncate(kept);
        let mut room = END_BYTES_MAX;
        let kept = self.tail.iter().rev().take_while(|line| fitting(line, &mut room)).count();
        self.tail.drain(..self.tail.len() - kept);
    }

    /// What there was, or nothing where there was no line. A last line without an end counts.
    pub fn finish(mut self) -> Option<StderrOutput> {
        if self.is_open {
            self.end_line();
        }
        if self.total == 0 {
            return None;
        }
        self.fit();
        let kept = (self.head.len() + self.tail.len()) as u64;
        let truncated = self.total > kept;
        let text = |lines: &mut dyn Iterator<Item = &Vec<u8>>| {
            let lines: Vec<String> = lines.map(|line| String::from_utf8_lossy(line).into_owned()).collect();
            lines.join("\n")
        };
        let (head, tail) = if truncated {
            (text(&mut self.head.iter()), Some(text(&mut self.tail.iter())))
        } else {
            (text(&mut self.head.iter().chain(&self.tail)), None)
        };
        let total_lines = Some(self.total);
        Some(StderrOutput { head: Some(head), tail, truncated, total_lines })
    }
}

fn is_start(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(lines: usize, text: &[u8]) -> Option<StderrOutput> {
        let mut capture = StderrCapture::new(lines);
        for part in text.chunks(7) {
            capture.take(part);
        }
        capture.finish()
    }

    fn numbered(count: u64) -> String {
        (1..=count).map(|n| format!("line {n}\n")).collect()
    }

    #[test]
    fn nothing_is_nothing_and_a_little_is_all_in_the_head() {
        assert_eq!(of(50, b""), None);
        let all = of(50, numbered(100).as_bytes()).unwrap();
        assert_eq!(all.head.as_deref(), Some(numbered(100).trim_end()));
        assert_eq!((all.tail, all.truncated, all.total_lines), (None, false, Some(100)));
        let one = of(50, b"no line feed").unwrap();
        assert_eq!((one.head.as_deref(), one.total_lines), (Some("no line feed"), Some(1)));
        assert_eq!(of(50, b"\n").unwrap().total_lines, Some(1), "an empty line is a line");
    }

    #[test]
    fn much_is_its_first_and_its_last_lines() {
        let much = of(50, numbered(250).as_bytes()).unwrap();
        let (head, tail) = (much.head.unwrap(), much.tail.unwrap());
        assert_eq!((head.lines().count(), tail.lines().count()), (50, 50));
        assert!(head.starts_with("line 1\n") && head.ends_with("line 50"));
        assert!(tail.starts_with("line 201\n") && tail.ends_with("line 250"));
        assert_eq!((much.truncated, much.total_lines), (true, Some(250)));
        let none = of(0, b"a\nb\n").unwrap();
        assert_eq!((none.truncated, none.total_lines), (true, Some(2)), "kept or not, they are counted");
    }

    #[test]
    fn a_long_line_is_cut_between_two_characters() {
        for ahead in 0..4 {
            let line = "x".repeat(ahead) + &"€".repeat(3000);
            let cut = of(50, line.as_bytes()).unwrap().head.unwrap();
            assert!(line.starts_with(&cut) && cut.len() > LINE_BYTES_MAX - 4, "{ahead}: {}", cut.len());
        }
        let cut = of(50, &vec![b'y'; 1 << 20]).unwrap();
        assert_eq!((cut.head.unwrap().len(), cut.total_lines), (LINE_BYTES_MAX, Some(1)));
        let binary = of(50, &[0xff; 5000]).unwrap().head.unwrap();
        assert!(binary.chars().all(|c| c == '\u{fffd}'), "what is no text is shown as such");
    }
}

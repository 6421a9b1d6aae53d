//! The lines of a chunk, and the number of each in the journal.

use baton_core::limits::LINE_BYTES_MAX;

use super::feed::Chunk;

/// The lines of a chunk; blank ones at its end are counted, since only what follows tells what they are.
pub(super) struct Lines<'a> {
    pub(super) whole: Vec<&'a [u8]>,
    pub(super) blank: u64,
    pub(super) unterminated: Option<u64>,
}

impl<'a> Lines<'a> {
    pub(super) fn split(chunk: &'a Chunk) -> Self {
        let (mut bytes, mut unterminated) = (chunk.bytes.as_slice(), None);
        if chunk.is_unterminated {
            let end = memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1);
            unterminated = Some((bytes.len() - end) as u64);
            bytes = &bytes[..end];
        }
        let mut whole = Vec::with_capacity(bytes.len() / 512);
        let mut start = 0;
        let text_end = bytes.iter().rposition(|b| *b != b'\n').map_or(0, |at| at + 2);
        for end in memchr::memchr_iter(b'\n', &bytes[..text_end]) {
            whole.push(&bytes[start..end]);
            start = end + 1;
        }
        let mut blank = (bytes.len() - text_end) as u64;
        // A killed writer leaves the beginning of a line in front of the pre-fill.
        if let Some(last) = whole.last().filter(|last| blank > 0 && is_cut_short(last)) {
            unterminated = Some(unterminated.unwrap_or(0) + last.len() as u64);
            blank = 0;
            whole.pop();
            // The line feeds before it belong to the tail as well.
            let end = whole.iter().rposition(|line| !line.is_empty()).map_or(0, |at| at + 1);
            whole.truncate(end);
        }
        Lines { whole, blank, unterminated }
    }
}

/// Numbers the lines of a journal; every pass over it counts with this, so that all give a line the same number.
///
/// What may turn out to be no line at all is held back until it is known whether anything follows it.
#[derive(Debug, Default)]
pub(super) struct Numbers {
    /// The number of the last line, from 1.
    pub(super) line: u64,
    blank: u64,
    unterminated: Option<u64>,
    /// A segment without a line; segments are created with their first event.
    has_empty_segment: bool,
}

/// Something that is no record, in the place of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stray {
    pub(super) line: u64,
    pub(super) expected: &'static str,
    pub(super) found: &'static str,
}

impl Numbers {
    /// Something follows, in this segment or at the start of the next: what was held back is in the middle, where it does not belong.
    pub(super) fn settle(&mut self, starts_segment: bool) -> Vec<Stray> {
        let mut strays = Vec::new();
        let mut stray = |line, expected, found| strays.push(Stray { line, expected, found });
        // A segment without a record is in nobody's place: the next line counts on from the last.
        if std::mem::take(&mut self.has_empty_segment) && starts_segment {
            self.blank = 0;
            stray(self.line + 1, "a record", "a segment without one");
        }
        if self.blank > 0 {
            stray(self.line + 1, "a record", "an empty line");
            self.line += std::mem::take(&mut self.blank);
        }
        if self.unterminated.take().is_some() {
            self.line += 1;
            stray(self.line, "a line feed", "the end of the segment");
        }
        strays
    }

    /// Holds back what stands behind the whole lines of a chunk.
    pub(super) fn hold(&mut self, starts_segment: bool, lines: &Lines<'_>) {
        self.blank += lines.blank;
        self.has_empty_segment |= starts_segment && lines.whole.is_empty();
        if lines.unterminated.is_some() {
            // Line feeds before it belong to the tail as well.
            self.unterminated = lines.unterminated;
            self.has_empty_segment = false;
        }
    }

    /// The bytes of a torn line at the end, and whether the last segment is one without a line.
    pub(super) fn end(&self) -> (Option<u64>, bool) {
        (self.unterminated, self.has_empty_segment)
    }
}

/// Whether a line starts an object and never ends it.
pub fn is_cut_short(line: &[u8]) -> bool {
    // What is longer than a record may be was never the beginning of one.
    if line.first() != Some(&b'{') || line.len() > LINE_BYTES_MAX {
        return false;
    }
    let (mut depth, mut in_string, mut escaped) = (0i64, false, false);
    for byte in line {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'{' | b'[' if !in_string => depth += 1,
            b'}' | b']' if !in_string => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return false;
        }
    }
    true
}

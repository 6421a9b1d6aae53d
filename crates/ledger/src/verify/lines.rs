//! The lines of a chunk, and what the end of a journal makes of those that are none.

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

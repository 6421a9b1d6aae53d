//! Cuts a journal's bytes into chunks of whole lines, in bounded memory.

use baton_core::limits::LINE_BYTES_MAX;

/// Bytes of a journal, segment by segment. The only door through which the verifier reads; nothing can be written through it.
///
/// If an implementation hands out other bytes than are stored, the verdict is about those other bytes.
pub trait Segments: Send {
    /// Goes on to the next segment and gives the position in its name, or `None` after the last.
    fn next_segment(&mut self) -> Result<Option<u64>, String>;
    /// Reads some of the current segment; 0 at its end.
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String>;
}

impl Segments for Box<dyn Segments> {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        (**self).next_segment()
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        (**self).read(buffer)
    }
}

/// Whole lines of one segment, in order.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub bytes: Vec<u8>,
    /// The position in the segment's name, where this chunk starts a segment.
    pub starts_segment: Option<u64>,
    /// The last line of the segment has no line feed; it is `bytes` after the last line feed.
    pub is_unterminated: bool,
    /// Number of this chunk, from 0.
    pub number: u64,
}

/// How much is read before workers take over. Large enough that checking signatures in batches pays.
pub const CHUNK_BYTES: usize = 3 << 19;

/// How much is asked for at once, so that a small journal costs little.
const READ_BYTES: usize = 256 << 10;

/// Reads chunk after chunk.
pub(crate) struct Feed<S> {
    source: S,
    carry: Vec<u8>,
    in_segment: bool,
    starts_segment: Option<u64>,
    chunks: u64,
}

impl<S: Segments> Feed<S> {
    pub(crate) fn new(source: S) -> Self {
        Feed { source, carry: Vec::new(), in_segment: false, starts_segment: None, chunks: 0 }
    }

    /// The next chunk, or `None` at the end of the journal.
    pub(crate) fn next(&mut self) -> Result<Option<Chunk>, String> {
        if !self.in_segment {
            match self.source.next_segment()? {
                None => return Ok(None),
                Some(first) => (self.in_segment, self.starts_segment) = (true, Some(first)),
            }
        }
        // One allocation of one size for every chunk: memory stays flat however many there are.
        let mut bytes = Vec::with_capacity(CHUNK_BYTES);
        bytes.append(&mut self.carry);
        let mut is_unterminated = false;
        let mut searched = 0;
        loop {
            let filled = bytes.len();
            bytes.resize((filled + READ_BYTES).min(CHUNK_BYTES), 0);
            let count = self.source.read(&mut bytes[filled..])?;
            bytes.truncate(filled + count);
            if count == 0 {
                self.in_segment = false;
                is_unterminated = bytes.last().is_some_and(|b| *b != b'\n');
                break;
            }
            if bytes.len() < CHUNK_BYTES {
                continue;
            }
            if let Some(end) = bytes[searched..].iter().rposition(|b| *b == b'\n') {
                self.carry = bytes.split_off(cut(&bytes, searched + end));
                break;
            }
            // One line that is longer than a chunk: keep only as much of it as shows that it is too long.
            bytes.truncate(LINE_BYTES_MAX + 1);
            searched = bytes.len();
        }
        let number = self.chunks;
        self.chunks += 1;
        Ok(Some(Chunk { bytes, starts_segment: self.starts_segment.take(), is_unterminated, number }))
    }
}

/// Where to end a chunk whose last line feed is at `end`.
///
/// Whether a line is torn shows in what follows it, so a last line of which nothing is known beyond its line feed waits.
fn cut(bytes: &[u8], end: usize) -> usize {
    if end + 1 < bytes.len() || bytes[..end].last() == Some(&b'\n') {
        return end + 1;
    }
    memchr::memrchr(b'\n', &bytes[..end]).unwrap_or(end) + 1
}

//! Where lines lie: the segments of a journal, listed and read.

use std::io;
use std::sync::Arc;

use baton_core::limits::{LINE_BYTES_MAX, TORN_BYTES_MAX};
use baton_ledger::verify::Segments;

use crate::disk::{Disk, DiskFile, Mode};
use crate::layout::{Layout, parse_segment_name};

/// The positions in the names of all segments, ascending.
pub fn list(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<u64>> {
    let mut firsts: Vec<u64> =
        disk.list(&layout.events())?.iter().filter_map(|name| parse_segment_name(name)).collect();
    firsts.sort_unstable();
    Ok(firsts)
}

/// Names in `events/` of segments that were being made when their writer died.
pub fn unfinished(disk: &dyn Disk, layout: &Layout) -> io::Result<Vec<String>> {
    let mut names = disk.list(&layout.events())?;
    let is_segment = |name: &str| name.get(..26).is_some_and(|name| parse_segment_name(name).is_some());
    names.retain(|name| name.ends_with(".new") && is_segment(name));
    names.sort_unstable();
    Ok(names)
}

/// Reads a journal from its start, for the verifier and for rebuilding the index.
#[derive(Debug)]
pub struct SegmentReader {
    disk: Arc<dyn Disk>,
    layout: Layout,
    firsts: std::vec::IntoIter<u64>,
    current: Option<Arc<dyn DiskFile>>,
    offset: u64,
}

impl SegmentReader {
    pub fn open(disk: Arc<dyn Disk>, layout: &Layout) -> io::Result<Self> {
        let firsts = list(&*disk, layout)?.into_iter();
        Ok(SegmentReader { disk, layout: layout.clone(), firsts, current: None, offset: 0 })
    }
}

impl Segments for SegmentReader {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        let Some(first) = self.firsts.next() else { return Ok(None) };
        let path = self.layout.segment(first);
        let file = self.disk.open(&path, Mode::Read).map_err(|e| format!("{}: {e}", path.display()))?;
        (self.current, self.offset) = (Some(file), 0);
        Ok(Some(first))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let Some(file) = &self.current else { return Ok(0) };
        let count = file.read_at(buffer, self.offset).map_err(|e| e.to_string())?;
        self.offset += count as u64;
        Ok(count)
    }
}

/// Lines of one segment from an offset on, each at most as long as a record may be.
#[derive(Debug)]
pub struct LineReader {
    file: Arc<dyn DiskFile>,
    /// Offset of `buffer[start]` in the file.
    offset: u64,
    buffer: Vec<u8>,
    start: usize,
}

/// What stands at a place of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found<'a> {
    /// A line without its line feed, and where it starts.
    Line(&'a [u8], u64),
    /// Bytes without a line feed, more than a record may have or at the end of the file. They are not returned.
    Broken(u64),
    End,
}

const READ_BYTES: usize = 1 << 18;

impl LineReader {
    pub fn new(file: Arc<dyn DiskFile>, offset: u64) -> Self {
        LineReader { file, offset, buffer: Vec::new(), start: 0 }
    }

    /// Up to where the file was read.
    pub fn read_to(&self) -> u64 {
        self.offset + (self.buffer.len() - self.start) as u64
    }

    /// The next line. After `Broken` at an over-long line, reading goes on behind its end, or in its middle where it is far too long.
    pub fn next_line(&mut self) -> io::Result<Found<'_>> {
        let line_max = LINE_BYTES_MAX;
        let mut searched = self.start;
        let mut skipped_from = None;
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[searched..]) {
                let (start, end) = (self.start, searched + at);
                let place = self.offset;
                self.offset += (end + 1 - start) as u64;
                self.start = end + 1;
                return Ok(match skipped_from {
                    Some(from) => Found::Broken(from),
                    None => Found::Line(&self.buffer[start..end], place),
                });
            }
            if self.buffer.len() - self.start > line_max {
                skipped_from.get_or_insert(self.offset);
                self.offset += (self.buffer.len() - self.start) as u64;
                self.start = self.buffer.len();
            }
            // Nobody needs to know where such a line ends.
            if let Some(from) = skipped_from.filter(|from| self.offset - from > TORN_BYTES_MAX) {
                return Ok(Found::Broken(from));
            }
            self.buffer.drain(..self.start);
            self.start = 0;
            searched = self.buffer.len();
            self.buffer.resize(searched + READ_BYTES, 0);
            let count = self.file.read_at(&mut self.buffer[searched..], self.offset + searched as u64)?;
            self.buffer.truncate(searched + count);
            if count == 0 {
                return Ok(match skipped_from {
                    Some(from) => Found::Broken(from),
                    None if self.buffer.is_empty() => Found::End,
                    None => {
                        let place = self.offset;
                        self.offset += self.buffer.len() as u64;
                        self.start = self.buffer.len();
                        Found::Broken(place)
                    }
                });
            }
        }
    }
}

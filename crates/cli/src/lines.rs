//! The journal's lines in order, from any position on, without the index and without a lock.
//!
//! [`Lines::next`] gives one whole line after the other, each checked against its own hash, and never the beginning of a decision whose rest is
//! not there yet. At the end it can be asked again: what a running writer has added since is then found, at little cost.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use baton_ledger::record::Line;
use baton_store::disk::{Disk, Mode};
use baton_store::journal::segments::{self, Found, LineReader};
use baton_store::{Layout, ReadError, StoredLine};

use crate::context::disk;

/// A place in the journal that moves forward.
#[derive(Debug)]
pub(crate) struct Lines {
    disk: Arc<dyn Disk>,
    layout: Layout,
    /// Positions before this one are passed over.
    from: u64,
    /// The segment that is being read, by the position in its name.
    segment: u64,
    /// Where the first line that was not handed out starts in that segment, and its position.
    offset: u64,
    pos: u64,
    reader: Option<LineReader>,
    ready: VecDeque<StoredLine>,
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    Line(StoredLine),
    /// Nothing more, for now.
    End,
    /// Something that is not, or not yet, the line at this position.
    Bad {
        pos: u64,
        why: String,
    },
}

/// What was found behind the last good line.
enum Progress {
    Decision,
    End,
    Bad(String),
}

impl Lines {
    /// Starts at a position, in the segment that holds it.
    pub(crate) fn open(layout: &Layout, from: u64) -> Result<Lines, ReadError> {
        let disk = disk();
        let fail = |source| ReadError::Io { path: layout.events(), source };
        let firsts = segments::list(&*disk, layout).map_err(fail)?;
        let segment = firsts.iter().rfind(|first| **first <= from).or(firsts.first()).copied().unwrap_or(1);
        Ok(Lines {
            disk,
            layout: layout.clone(),
            from,
            segment,
            offset: 0,
            pos: segment,
            reader: None,
            ready: VecDeque::new(),
        })
    }

    /// The next line. After `End` or `Bad` the same place is read anew.
    pub(crate) fn next(&mut self) -> Result<Next, ReadError> {
        loop {
            if let Some(line) = self.ready.pop_front() {
                if line.pos < self.from {
                    continue;
                }
                return Ok(Next::Line(line));
            }
            let found = self.read_decision();
            let path = self.layout.segment(self.segment);
            match found.map_err(|source| ReadError::Io { path, source })? {
                Progress::Decision => {}
                Progress::End => {
                    self.reader = None;
                    // A segment is named after the position of its first line, and gets its name with that line in it.
                    if self.pos == self.segment || !self.layout.segment(self.pos).exists() {
                        return Ok(Next::End);
                    }
                    (self.segment, self.offset) = (self.pos, 0);
                }
                Progress::Bad(why) => {
                    self.reader = None;
                    return Ok(Next::Bad { pos: self.pos, why });
                }
            }
        }
    }

    /// Whether the segment being read has become shorter than what was handed out of it.
    pub(crate) fn was_cut(&self) -> bool {
        let length = std::fs::metadata(self.layout.segment(self.segment)).map(|metadata| metadata.len());
        length.is_ok_and(|length| length < self.offset)
    }

    /// Reads the events of one decision, all or none.
    fn read_decision(&mut self) -> io::Result<Progress> {
        let mut reader = match self.reader.take() {
            Some(reader) => reader,
            None => {
                let file = match self.disk.open(&self.layout.segment(self.segment), Mode::Read) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::NotFound && self.offset == 0 => {
                        return Ok(Progress::End);
                    }
                    Err(error) => return Err(error),
                };
                LineReader::new(file, self.offset)
            }
        };
        let mut pos = self.pos;
        let mut taken = Vec::new();
        loop {
            let (bytes, offset) = match reader.next_line()? {
                Found::End | Found::Line(b"", _) if taken.is_empty() => return Ok(Progress::End),
                Found::End => return Ok(Progress::Bad("the decision is not complete".into())),
                Found::Broken(_) => return Ok(Progress::Bad("a line without an end".into())),
                Found::Line(bytes, offset) => (bytes, offset),
            };
            let line = match Line::parse(bytes) {
                Ok(line) => line,
                Err(flaw) => return Ok(Progress::Bad(flaw.to_string())),
            };
            if line.pos != pos {
                return Ok(Progress::Bad(format!("it says that its position is {}", line.pos)));
            }
            if line.link_hash(&line.body_digest()) != line.hash {
                return Ok(Progress::Bad("its hash does not fit its content".into()));
            }
            taken.push(StoredLine { pos, text: line.text.to_owned() });
            let is_whole = line.batch.is_none_or(|(i, n)| i == n);
            pos += 1;
            if is_whole {
                (self.pos, self.offset) = (pos, offset + bytes.len() as u64 + 1);
                self.ready.extend(taken);
                self.reader = Some(reader);
                return Ok(Progress::Decision);
            }
        }
    }
}

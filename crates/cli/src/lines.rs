//! The journal's lines in order, from any position on, without the index and without a lock.
//!
//! [`Lines::next`] gives one whole line after the other, each checked against its own hash, and never the beginning of a decision whose rest is
//! not there yet. At the end it can be asked again: what a running writer has added since is then found, at little cost. Where a
//! writer took back what was handed out already, the place is no longer the beginning of a line, and that is an error.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use baton_ledger::record::Line;
use baton_store::disk::{Disk, DiskFile, Mode, sync_shown};
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
    /// The line before that place, with its line feed; empty at the start of a segment.
    last: Vec<u8>,
    reader: Option<(LineReader, Arc<dyn DiskFile>)>,
    /// Up to here the segment is known to be on the disk: nothing beyond is handed out.
    durable: u64,
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
    TakenBack,
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
            last: Vec::new(),
            reader: None,
            durable: 0,
            ready: VecDeque::new(),
        })
    }

    /// The next line. After `End` or `Bad` the same place is read anew.
    ///
    /// Fails where the line before that place no longer stands there.
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
                    (self.segment, self.offset, self.durable) = (self.pos, 0, 0);
                    self.last.clear();
                }
                Progress::Bad(why) => {
                    self.reader = None;
                    return Ok(Next::Bad { pos: self.pos, why });
                }
                Progress::TakenBack => {
                    let why = "it was taken back after it was shown".to_owned();
                    return Err(ReadError::Damaged { pos: self.pos - 1, why });
                }
            }
        }
    }

    /// Whether what was handed out last is still there. If another line stands in its place, going on would begin in the middle of that.
    fn is_last_in(&self, file: &dyn DiskFile) -> io::Result<bool> {
        let mut found = vec![0; self.last.len()];
        match file.read_exact_at(&mut found, self.offset - self.last.len() as u64) {
            Ok(()) => Ok(found == self.last),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Reads the events of one decision, all or none.
    fn read_decision(&mut self) -> io::Result<Progress> {
        let (mut reader, file) = match self.reader.take() {
            Some(open) => open,
            None => {
                let file = match self.disk.open(&self.layout.segment(self.segment), Mode::Read) {
                    Ok(file) => file,
                    Err(error) if error.kind() == io::ErrorKind::NotFound && self.offset == 0 => {
                        return Ok(Progress::End);
                    }
                    Err(error) => return Err(error),
                };
                if !self.is_last_in(&*file)? {
                    return Ok(Progress::TakenBack);
                }
                (LineReader::new(file.clone(), self.offset), file)
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
                self.last = [bytes, b"\n"].concat();
                (self.pos, self.offset) = (pos, offset + bytes.len() as u64 + 1);
                if self.offset > self.durable {
                    // The writer may be between its write and its sync. What it adds later lies behind what was read here, pre-fill or not.
                    let read_to = reader.read_to();
                    sync_shown(&*file)?;
                    self.durable = read_to;
                }
                self.ready.extend(taken);
                self.reader = Some((reader, file));
                return Ok(Progress::Decision);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::Durability;
    use baton_store::{Options, Workspace};
    use baton_testkit::builders::{decision, event};
    use std::path::Path;
    use std::time::Duration;

    /// The lines of a small ledger; a longer text makes longer notes.
    fn story(dir: &Path, text: &str) -> Vec<String> {
        use baton_ledger::{body::Body, seal::Checked};
        let layout = Layout::new(dir.join("data"));
        let options = Options { durability: Durability::None, ..Options::default() };
        let workspace = Workspace::create(&layout, &dir.join("state"), options, Duration::ZERO).unwrap();
        let trace = workspace.new_trace(None).unwrap().trace;
        for n in 0..4 {
            let note = event(trace, "note", serde_json::json!({"n": n, "text": text}));
            let note = Checked::unsigned(Body::unsigned(&note).unwrap()).unwrap();
            baton_store::Journal::append(&*workspace.journal, decision(vec![note])).unwrap();
        }
        workspace.close().unwrap();
        let stored = std::fs::read_to_string(layout.segment(1)).unwrap();
        stored.lines().map(|line| format!("{line}\n")).collect()
    }

    /// Writes the segment anew: lines and the beginning of one.
    struct Segment {
        layout: Layout,
        _dir: tempfile::TempDir,
    }

    impl Segment {
        fn new() -> Segment {
            let dir = tempfile::tempdir().unwrap();
            let layout = Layout::new(dir.path());
            std::fs::create_dir_all(layout.events()).unwrap();
            Segment { layout, _dir: dir }
        }

        fn hold(&self, parts: &[&str]) {
            std::fs::write(self.layout.segment(1), parts.concat()).unwrap();
        }
    }

    fn shown(lines: &mut Lines) -> Vec<String> {
        let mut out = Vec::new();
        while let Next::Line(line) = lines.next().unwrap() {
            out.push(format!("{}\n", line.text));
        }
        out
    }

    #[test]
    fn a_line_that_is_taken_back_before_it_was_whole_is_read_anew() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (story(one.path(), "short"), story(two.path(), &"long".repeat(100)));
        for (first, second) in
            [(&a, &b), (&b, &a), (&a, &story(tempfile::tempdir().unwrap().path(), "SHORT"))]
        {
            let segment = Segment::new();
            // Half a line; the first of two lines of one decision would be the same.
            segment.hold(&[&a[0], &a[1], &first[2][..first[2].len() / 2]]);
            let mut lines = Lines::open(&segment.layout, 1).unwrap();
            assert_eq!(shown(&mut lines), a[..2]);
            assert!(matches!(lines.next().unwrap(), Next::Bad { pos: 3, .. }));
            segment.hold(&[&a[0], &a[1]]);
            assert!(matches!(lines.next().unwrap(), Next::End));
            segment.hold(&[&a[0], &a[1], &second[2], &second[3]]);
            assert_eq!(shown(&mut lines), second[2..4]);
        }
    }

    #[test]
    fn a_shown_line_that_another_one_replaced_is_an_error_and_never_waited_for() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (a, b) = (story(one.path(), "short"), story(two.path(), &"long".repeat(100)));
        let check = |parts: &[&str]| {
            let segment = Segment::new();
            segment.hold(&[&a[0], &a[1], &a[2]]);
            let mut lines = Lines::open(&segment.layout, 1).unwrap();
            assert_eq!(shown(&mut lines), a[..3]);
            segment.hold(parts);
            let error = lines.next().unwrap_err();
            assert!(matches!(error, ReadError::Damaged { pos: 3, .. }), "{error}");
        };
        check(&[&a[0], &a[1]]);
        check(&[&a[0], &a[1], &b[2]]);
        check(&[&a[0], &a[1], &b[2], &b[3]]);
        // As long to the byte.
        let same = a[2].replace("short", "SHORT");
        check(&[&a[0], &a[1], &same]);
        check(&[&a[0], &a[1], &same, &a[3]]);
        // What was not shown may change.
        let segment = Segment::new();
        segment.hold(&[&a[0], &a[1]]);
        let mut lines = Lines::open(&segment.layout, 1).unwrap();
        assert_eq!(shown(&mut lines), a[..2]);
        segment.hold(&[&a[0], &a[1], &b[2]]);
        assert_eq!(shown(&mut lines), b[2..3]);
    }
}

//! The active segment: one write and one sync at a time, rotation by size, pre-fill under load.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::event::Durability;

use super::fs::Options;
use super::index::Place;
use crate::disk::{Disk, DiskFile, Mode};
use crate::layout::Layout;

/// Why a write did not happen.
#[derive(Debug, Clone)]
pub(crate) enum WriteError {
    /// Nothing of it remains; writing can go on.
    TakenBack { full: bool, why: String },
    /// What is on the disk is unknown.
    Unknown(String),
}

/// The end of the journal.
#[derive(Debug)]
pub(crate) struct SegmentWriter {
    disk: Arc<dyn Disk>,
    layout: Layout,
    options: Options,
    active: Option<Active>,
    writes: u64,
    last_sync: Instant,
}

#[derive(Debug)]
struct Active {
    file: Arc<dyn DiskFile>,
    first: u64,
    /// Where the next line goes.
    end: u64,
    /// Length of the file; beyond `end` lies pre-fill.
    length: u64,
}

/// Writers that make only a few appends leave no pre-fill; it pays from here on.
const FILL_AFTER_WRITES: u64 = 64;

/// Pre-fill at a time. A file whose length does not change makes a sync cheaper; more at once would show as a pause.
const FILL_BYTES: u64 = 1 << 20;

/// With durability `interval`, at most this long until a sync.
const INTERVAL: Duration = Duration::from_secs(1);

impl SegmentWriter {
    pub(crate) fn new(disk: Arc<dyn Disk>, layout: &Layout, options: Options) -> Self {
        SegmentWriter {
            disk,
            layout: layout.clone(),
            options,
            active: None,
            writes: 0,
            last_sync: Instant::now(),
        }
    }

    /// Goes on at the end of an existing journal. What lies beyond the end is cut by the first write.
    ///
    /// `doubtful` is where the last write begins, if nobody knows whether it was synced. Where a sync failed, its pages may count as clean although
    /// they never reached the disk: only writing the same bytes again makes the next sync mean something.
    pub(crate) fn resume(
        disk: Arc<dyn Disk>,
        layout: &Layout,
        options: Options,
        end: Place,
        doubtful: Option<Place>,
    ) -> io::Result<Self> {
        let file = disk.open(&layout.segment(end.segment), Mode::Write)?;
        if let Some(start) = doubtful.filter(|start| start.segment == end.segment) {
            let mut bytes = vec![0; end.offset.saturating_sub(start.offset) as usize];
            file.read_exact_at(&mut bytes, start.offset)?;
            file.write_all_at(&bytes, start.offset)?;
        }
        // What is built on is made durable first, the segment's name too.
        file.sync()?;
        disk.sync_dir(&layout.events())?;
        let length = file.length()?;
        let active = Active { file, first: end.segment, end: end.offset, length };
        Ok(SegmentWriter { active: Some(active), ..SegmentWriter::new(disk, layout, options) })
    }

    /// The active segment's file.
    pub(crate) fn current(&self) -> Option<Arc<dyn DiskFile>> {
        self.active.as_ref().map(|active| active.file.clone())
    }

    /// Appends bytes whose first line has this position, and makes them as durable as promised. Gives where they lie.
    pub(crate) fn write(&mut self, bytes: &[u8], first_pos: u64) -> Result<Place, WriteError> {
        self.writes += 1;
        let is_full =
            |active: &Active| active.end > 0 && active.end + bytes.len() as u64 > self.options.segment_bytes;
        match &self.active {
            Some(active) if !is_full(active) => {}
            _ => return self.start_segment(bytes, first_pos),
        }
        let fill = self.writes > FILL_AFTER_WRITES && self.options.durability == Durability::Commit;
        let Some(active) = &mut self.active else {
            return Err(WriteError::Unknown("no active segment".into()));
        };
        let place = Place { segment: active.first, offset: active.end };
        active.write(bytes, fill, self.options.segment_bytes)?;
        let is_due = match self.options.durability {
            Durability::Commit => true,
            Durability::Interval => self.last_sync.elapsed() >= INTERVAL,
            Durability::None => false,
        };
        if is_due {
            // After a failed sync the kernel may have dropped the pages and call the next sync a success: never try again here.
            active.file.sync().map_err(|e| WriteError::Unknown(format!("sync failed: {e}")))?;
            self.last_sync = Instant::now();
        }
        active.end += bytes.len() as u64;
        Ok(place)
    }

    /// Closes the active segment and makes a new one, which gets its name only with its first events durable in it.
    fn start_segment(&mut self, bytes: &[u8], first_pos: u64) -> Result<Place, WriteError> {
        if let Some(active) = &mut self.active {
            active.trim().map_err(|e| taken_back(&e))?;
            active.file.sync().map_err(|e| WriteError::Unknown(format!("sync failed: {e}")))?;
        }
        if self.disk.open(&self.layout.segment(first_pos), Mode::Read).is_ok() {
            return Err(WriteError::Unknown(format!("there is already a segment named {first_pos:020}")));
        }
        let unique = crate::clock::new_uuid().to_string();
        let (beside, path) = (self.layout.new_segment(first_pos, &unique), self.layout.segment(first_pos));
        let made = self.disk.open(&beside, Mode::CreateNew).and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.sync()?;
            Ok(file)
        });
        let file = made.map_err(|error| {
            let _ = self.disk.remove(&beside);
            taken_back(&error)
        })?;
        let unknown =
            |error: io::Error| WriteError::Unknown(format!("a new segment could not be named: {error}"));
        self.disk.rename(&beside, &path).map_err(unknown)?;
        self.disk.sync_dir(&self.layout.events()).map_err(unknown)?;
        let length = bytes.len() as u64;
        self.active = Some(Active { file, first: first_pos, end: length, length });
        Ok(Place { segment: first_pos, offset: 0 })
    }

    /// Cuts the pre-fill and makes everything durable, whatever was promised while running.
    pub(crate) fn close(&mut self) -> io::Result<()> {
        match &mut self.active {
            None => Ok(()),
            Some(active) => {
                active.trim()?;
                active.file.sync()
            }
        }
    }
}

impl Active {
    /// Writes at the end. On failure the file is cut back to where it was.
    fn write(&mut self, bytes: &[u8], fill: bool, segment_bytes: u64) -> Result<(), WriteError> {
        let end = self.end + bytes.len() as u64;
        let written = self.file.write_all_at(bytes, self.end).and_then(|()| {
            // Torn bytes of an earlier life, or pre-fill that nobody will use: cut, after the write over their beginning.
            if !fill && self.length > end {
                self.file.set_len(end)?;
                self.length = end;
            }
            Ok(())
        });
        if let Err(error) = written {
            return Err(match self.file.set_len(self.end) {
                Ok(()) => {
                    self.length = self.end;
                    taken_back(&error)
                }
                Err(second) => {
                    WriteError::Unknown(format!("{error}, and it could not be taken back: {second}"))
                }
            });
        }
        self.length = self.length.max(end);
        if fill && self.length == end && end < segment_bytes {
            // A full disk stops the pre-fill, not the journal.
            let target = (end + FILL_BYTES).min(segment_bytes);
            if self.file.write_all_at(&vec![b'\n'; (target - end) as usize], end).is_ok() {
                self.length = target;
            } else if self.file.set_len(end).is_err() {
                return Err(WriteError::Unknown("the pre-fill could not be taken back".into()));
            }
        }
        Ok(())
    }

    fn trim(&mut self) -> io::Result<()> {
        if self.length > self.end {
            self.file.set_len(self.end)?;
            self.length = self.end;
        }
        Ok(())
    }
}

fn taken_back(error: &io::Error) -> WriteError {
    WriteError::TakenBack { full: error.kind() == io::ErrorKind::StorageFull, why: error.to_string() }
}

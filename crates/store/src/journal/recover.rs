//! What opening finds: the last good place, and whether what lies beyond it is a torn write or something that no crash explains.
//!
//! Reading starts where the index ends. A write is torn if nothing valid was written after it: every line names the first event of its physical
//! write (`commit`), and a write starts only after the one before is synced, so damage at or after the largest `commit` of any valid line was never
//! acknowledged. Everything else is refused and left exactly as it is.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use baton_core::limits::TORN_BYTES_MAX;
use baton_core::{Digest, TraceId};
use baton_ledger::hash::leaf;
use baton_ledger::keyring::LedgerIdentity;
use baton_ledger::merkle::Frontier;
use baton_ledger::note::Checkpoint;
use baton_ledger::order::Order;
use baton_ledger::record::{Flaw, Line};
use baton_ledger::verify::{identity, is_cut_short};

use super::checkpoints::NoteDir;
use super::index::{Added, Index, Place};
use super::segments::{self, Found, LineReader};
use crate::disk::{Disk, DiskFile, Mode};
use crate::layout::Layout;
use crate::ports::OpenError;

/// A journal as it was found.
#[derive(Debug)]
pub struct Opened {
    pub ledger: LedgerIdentity,
    /// Up to the last good event.
    pub index: Index,
    pub frontier: Frontier,
    /// Where the next line goes.
    pub end: Place,
    /// Where the last physical write begins.
    pub last_write: Option<Place>,
    pub tail: Tail,
    /// Whether the index had to be read again from the first line.
    pub is_rebuilt: bool,
}

/// What lies after the last good event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tail {
    Clean,
    /// Pre-fill that a clean close would have cut.
    Filled,
    /// The rest of a write that was never acknowledged.
    Torn {
        why: String,
        /// It ends too soon; otherwise whole lines are there that do not check.
        is_cut: bool,
    },
    /// Something else: the line, and why.
    Damaged {
        line: u64,
        why: String,
    },
}

/// Finds the end of a journal. Changes nothing on the disk.
pub fn open(disk: &Arc<dyn Disk>, layout: &Layout, mode: Mode) -> Result<Opened, OpenError> {
    // Read before the journal: a checkpoint that is signed meanwhile covers what this reader has not seen.
    let notes = NoteDir::new(disk.clone(), layout);
    let newest = notes.latest();
    let ledger = read_identity(&**disk, layout)?;
    // Loaded before the segments are listed: a writer may make a new one meanwhile, and the index may know it by then.
    let loaded = Index::load(&**disk, layout.index(), &ledger.key, mode);
    let firsts = segments::list(&**disk, layout).map_err(OpenError::io("list", layout.events()))?;
    let latest = match newest {
        Some((checkpoint, note)) if note.check(&ledger.origin, &ledger.key).is_ok() => Some(checkpoint),
        Some(_) => notes.latest_signed(&ledger),
        None => None,
    };

    let witnessed = loaded.as_ref().map_or(0, Index::count);
    let trusted = loaded.and_then(|index| {
        let order = check_index(&**disk, layout, &firsts, &index, latest.as_ref())?;
        Some((index, order))
    });
    if let Some((index, order)) = trusted {
        let opened = read_on(&**disk, layout, &firsts, &ledger, index, order)?;
        if agrees(&opened, latest.as_ref()) {
            refuse_loss(&opened, witnessed, latest.as_ref())?;
            return Ok(opened);
        }
    }
    let mut opened =
        read_on(&**disk, layout, &firsts, &ledger, Index::empty(layout.index()), Order::default())?;
    opened.is_rebuilt = true;
    refuse_loss(&opened, witnessed, latest.as_ref())?;
    let is_other = !agrees(&opened, latest.as_ref());
    if let Some(signed) = latest.filter(|_| is_other) {
        let why = "the events up to here are not those that the last checkpoint was signed for".into();
        opened.tail = Tail::Damaged { line: signed.size, why };
    }
    Ok(opened)
}

/// Reads from the end of the index to the end of the journal.
fn read_on(
    disk: &dyn Disk,
    layout: &Layout,
    firsts: &[u64],
    ledger: &LedgerIdentity,
    index: Index,
    order: Order,
) -> Result<Opened, OpenError> {
    let mut scan = Scan::start(index, order).map_err(OpenError::io("read", layout.index()))?;
    let tail = scan.run(disk, layout, firsts)?;
    let first = scan.index.entry(scan.commit).ok();
    Ok(Opened {
        ledger: ledger.clone(),
        last_write: first.map(|entry| Place { segment: entry.segment, offset: entry.offset }),
        end: scan.end.unwrap_or(Place { segment: 1, offset: 0 }),
        index: scan.index,
        frontier: scan.frontier,
        tail,
        is_rebuilt: false,
    })
}

/// Whether the tree is the one that was signed, as far as both reach.
fn agrees(opened: &Opened, latest: Option<&Checkpoint>) -> bool {
    latest
        .filter(|signed| signed.size <= opened.index.count())
        .is_none_or(|signed| opened.index.frontier(signed.size).is_ok_and(|tree| tree.root() == signed.root))
}

/// The name and key of a ledger, from its first line.
pub fn read_identity(disk: &dyn Disk, layout: &Layout) -> Result<LedgerIdentity, OpenError> {
    let path = layout.segment(1);
    let file_name = || path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let damaged = |why: String| OpenError::Damaged { line: 1, file: file_name(), why };
    let file = match disk.open(&path, Mode::Read) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let others = segments::list(disk, layout).map_err(OpenError::io("list", layout.events()))?;
            return Err(match others.first() {
                Some(_) => damaged("the first segment is missing".into()),
                None => OpenError::NotFound(layout.root().to_owned()),
            });
        }
        Err(error) => return Err(OpenError::io("read", &path)(error)),
    };
    let mut lines = LineReader::new(file, 0);
    match lines.next_line().map_err(OpenError::io("read", &path))? {
        Found::Line(line, _) => match Line::parse(line) {
            Ok(line) => identity(&line).map_err(damaged),
            Err(Flaw::Newer(version)) => Err(OpenError::Newer(version)),
            Err(flaw) => Err(damaged(flaw.to_string())),
        },
        Found::Broken(_) => Err(damaged("the first line has no end".into())),
        Found::End => Err(damaged("the segment is empty".into())),
    }
}

/// Whether the index agrees with the segments that are there and with every line after the last checkpoint. Gives the last line's place in the order.
fn check_index(
    disk: &dyn Disk,
    layout: &Layout,
    firsts: &[u64],
    index: &Index,
    latest: Option<&Checkpoint>,
) -> Option<Order> {
    // What the last checkpoint covers is vouched for by its root; what follows it is read again, and at least the last line.
    let signed = latest.map_or(0, |signed| signed.size).min(index.count().checked_sub(1)?);
    let mut order = None;
    let mut open: Option<(u64, Arc<dyn DiskFile>)> = None;
    for pos in signed + 1..=index.count() {
        let entry = index.entry(pos).ok()?;
        let file = match &open {
            Some((segment, file)) if *segment == entry.segment => file.clone(),
            _ => {
                let file = disk.open(&layout.segment(entry.segment), Mode::Read).ok()?;
                open.insert((entry.segment, file)).1.clone()
            }
        };
        let mut bytes = vec![0; entry.length as usize + 1];
        file.read_exact_at(&mut bytes, entry.offset).ok()?;
        let line = Line::parse(bytes.strip_suffix(b"\n")?).ok()?;
        let hash = line.link_hash(&line.body_digest());
        if line.pos != pos || hash != line.hash || index.leaf(pos).ok()? != leaf(&hash) {
            return None;
        }
        order = Some(Order::after(&line));
    }
    let known: Vec<u64> = firsts.iter().copied().filter(|first| *first <= index.count()).collect();
    for (i, first) in known.iter().enumerate() {
        let next = known.get(i + 1);
        let last = index.entry(next.map_or(index.count(), |next| next - 1)).ok()?;
        let length = disk.open(&layout.segment(*first), Mode::Read).ok()?.length().ok()?;
        let end = last.offset + u64::from(last.length) + 1;
        // A segment that is followed by another one is closed: it ends with its last line.
        let is_whole = length == end || (next.is_none() && length > end);
        if index.entry(*first).ok()?.segment != *first || last.segment != *first || !is_whole {
            return None;
        }
    }
    order
}

/// Acknowledged events may not disappear: neither those that a kept checkpoint covers nor those that were saved in the index.
fn refuse_loss(opened: &Opened, witnessed: u64, latest: Option<&Checkpoint>) -> Result<(), OpenError> {
    let have = opened.index.count();
    if matches!(opened.tail, Tail::Damaged { .. }) {
        return Ok(());
    }
    let cut = |expected, witness: String| {
        let is_there = match &opened.tail {
            Tail::Torn { why, is_cut: false } => Some(why),
            Tail::Torn { .. } | Tail::Clean | Tail::Filled | Tail::Damaged { .. } => None,
        };
        // Something stands where the covered events were: it is not gone, it was changed.
        Err(match is_there {
            Some(why) => {
                let file = format!("segment {:020}", opened.end.segment);
                let why = format!("{why}; {witness} covers {expected} events, so this was whole once");
                OpenError::Damaged { line: have + 1, file, why }
            }
            None => OpenError::Cut { have, expected, witness },
        })
    };
    match latest.filter(|signed| signed.size > have) {
        Some(signed) => cut(signed.size, format!("checkpoints/{:020}", signed.size)),
        None if witnessed > have => cut(witnessed, "the index".into()),
        None => Ok(()),
    }
}

/// Reads on from the end of the index.
struct Scan {
    index: Index,
    frontier: Frontier,
    /// End of the last whole decision.
    end: Option<Place>,
    /// `commit` of that decision.
    commit: u64,
    order: Order,
    /// Events of a decision whose last one has not come yet.
    open: Vec<Added>,
    /// Ends of traces as moved by the events in `open`.
    ahead: BTreeMap<TraceId, (u64, Digest)>,
}

impl Scan {
    fn start(index: Index, order: Order) -> io::Result<Scan> {
        let (end, frontier) = (index.end()?, index.frontier(index.count())?);
        Ok(Scan {
            index,
            frontier,
            end,
            commit: order.commit(),
            order,
            open: Vec::new(),
            ahead: BTreeMap::new(),
        })
    }

    fn run(&mut self, disk: &dyn Disk, layout: &Layout, firsts: &[u64]) -> Result<Tail, OpenError> {
        let from = self.end.unwrap_or(Place { segment: 1, offset: 0 });
        for (i, first) in firsts.iter().enumerate().skip_while(|(_, first)| **first < from.segment) {
            let path = layout.segment(*first);
            let is_last = i + 1 == firsts.len();
            let offset = if *first == from.segment { from.offset } else { 0 };
            let next = self.index.count() + self.open.len() as u64 + 1;
            if offset == 0 && *first != next {
                let why = format!("a segment named {next:020} is expected here, this one is {first:020}");
                return Ok(Tail::Damaged { line: next, why });
            }
            let file = disk.open(&path, Mode::Read).map_err(OpenError::io("read", &path))?;
            let length = file.length().map_err(OpenError::io("read", &path))?;
            if length < offset {
                // The index knows more than is there; whoever opens decides by its count.
                return Ok(Tail::Damaged {
                    line: next,
                    why: "the segment is shorter than the index says".into(),
                });
            }
            let mut lines = LineReader::new(file, offset);
            let found = self
                .read_segment(&mut lines, (*first, length), is_last)
                .map_err(OpenError::io("read", &path))?;
            // A segment gets its name once its first decision is durable, and a later one is made only after it was synced: damage of the first decision, or
            // in a segment that is not the last, was durable once.
            let may_be_torn = is_last && self.end.is_some_and(|end| end.segment == *first);
            match found {
                SegmentEnd::Newer(version) => return Err(OpenError::Newer(version)),
                SegmentEnd::Whole if self.open.is_empty() || !is_last || may_be_torn => {}
                SegmentEnd::Filled if may_be_torn => return Ok(Tail::Filled),
                SegmentEnd::Bad { line, why, is_cut, commit_after }
                    if may_be_torn && commit_after.is_none_or(|commit| commit <= line) =>
                {
                    return Ok(Tail::Torn { why, is_cut });
                }
                SegmentEnd::Bad { line, why, .. } => return Ok(Tail::Damaged { line, why }),
                SegmentEnd::Whole | SegmentEnd::Filled => {
                    let line = self.index.count() + 1;
                    return Ok(Tail::Damaged {
                        line,
                        why: "the segment's first decision is not whole".into(),
                    });
                }
            }
        }
        if self.open.is_empty() {
            Ok(Tail::Clean)
        } else {
            Ok(Tail::Torn { why: "the last decision is incomplete".into(), is_cut: true })
        }
    }

    fn read_segment(
        &mut self,
        lines: &mut LineReader,
        (segment, length): (u64, u64),
        is_last: bool,
    ) -> io::Result<SegmentEnd> {
        let mut bad: Option<Bad> = None;
        let mut commit_after: Option<u64> = None;
        let mut only_blank_since_bad = false;
        let mut count = 0u64;
        loop {
            if let Some(bad) = bad.as_mut().filter(|bad| length.saturating_sub(bad.offset) > TORN_BYTES_MAX) {
                bad.why.push_str(", and more follows than one write has");
                (commit_after, only_blank_since_bad) = (Some(u64::MAX), false);
                break;
            }
            let next = self.index.count() + self.open.len() as u64 + 1;
            let (line, offset) = match lines.next_line()? {
                Found::Line(line, offset) => (line, offset),
                Found::Broken(offset) => {
                    let why = "a line without an end".into();
                    bad.get_or_insert(Bad { line: next, why, is_cut: true, offset });
                    only_blank_since_bad = false;
                    continue;
                }
                Found::End => break,
            };
            count += 1;
            if bad.is_some() {
                only_blank_since_bad &= line.is_empty();
                if line.is_empty() {
                    continue;
                }
                // Only what was written later can show that this was durable once.
                if let Ok(parsed) = Line::parse(line)
                    && parsed.link_hash(&parsed.body_digest()) == parsed.hash
                {
                    commit_after = commit_after.max(Some(parsed.effective_commit()));
                }
                continue;
            }
            if line.is_empty() {
                bad = Some(Bad { line: next, why: "an empty line".into(), is_cut: true, offset });
                only_blank_since_bad = true;
                continue;
            }
            match self.take(line, segment, offset) {
                Ok(()) => {}
                Err(Refused::Newer(version)) => return Ok(SegmentEnd::Newer(version)),
                Err(Refused::Bad(why)) => {
                    let is_cut = is_cut_short(line);
                    let why = if is_cut { format!("a line that was cut short: {why}") } else { why };
                    bad = Some(Bad { line: next, why, is_cut, offset });
                }
            }
        }
        Ok(match bad {
            None if count == 0 && self.end.is_none_or(|end| end.segment != segment) => {
                let (line, why) = (self.index.count() + 1, "the segment is empty".to_owned());
                // Segments get their name only once their first event is durable.
                SegmentEnd::Bad { line, why, is_cut: true, commit_after: Some(u64::MAX) }
            }
            None => SegmentEnd::Whole,
            Some(_) if only_blank_since_bad && is_last && self.open.is_empty() && self.end.is_some() => {
                SegmentEnd::Filled
            }
            Some(Bad { line, why, is_cut, .. }) => SegmentEnd::Bad { line, why, is_cut, commit_after },
        })
    }

    /// Takes one line in, or says why it does not follow.
    fn take(&mut self, bytes: &[u8], segment: u64, offset: u64) -> Result<(), Refused> {
        let bad = |why: String| Refused::Bad(why);
        let line = Line::parse(bytes).map_err(|flaw| match flaw {
            Flaw::Newer(version) => Refused::Newer(version),
            flaw => bad(flaw.to_string()),
        })?;
        let hash = line.link_hash(&line.body_digest());
        if hash != line.hash {
            return Err(bad("its hash does not fit its content".into()));
        }
        let next = self.index.count() + self.open.len() as u64 + 1;
        if line.pos != next {
            return Err(bad(format!("pos {} where {next} is expected", line.pos)));
        }
        let (seq, prev) = self.ahead.get(&line.trace).copied().unwrap_or_else(|| {
            self.index.trace(line.trace).map_or((0, Digest::ZERO), |summary| (summary.seq, summary.head))
        });
        if line.seq != seq + 1 || line.prev != prev {
            return Err(bad(format!("it does not follow the end of {}", line.trace)));
        }
        self.order = self.order.follows(&line).map_err(|out_of_order| bad(out_of_order.to_string()))?;
        self.ahead.insert(line.trace, (line.seq, hash));
        self.open.push(Added {
            id: line.id,
            trace: line.trace,
            seq: line.seq,
            hash,
            segment,
            offset,
            length: bytes.len() as u32,
            closes: line.event_type == "trace.closed",
            is_key_event: matches!(line.event_type, "key_bound" | "key_rotated" | "key_revoked"),
        });
        if self.order.unfinished().is_none() {
            self.close_decision(Place { segment, offset: offset + bytes.len() as u64 + 1 });
        }
        Ok(())
    }

    fn close_decision(&mut self, end: Place) {
        let mut nodes = Vec::new();
        for added in self.open.drain(..) {
            nodes.clear();
            self.frontier.push(leaf(&added.hash), |node| nodes.push(node));
            self.index.add(&added, &nodes);
        }
        self.ahead.clear();
        self.end = Some(end);
        self.commit = self.order.commit();
    }
}

enum Refused {
    Newer(i64),
    Bad(String),
}

enum SegmentEnd {
    Whole,
    Filled,
    Newer(i64),
    Bad { line: u64, why: String, is_cut: bool, commit_after: Option<u64> },
}

/// The first thing that does not follow.
struct Bad {
    line: u64,
    why: String,
    is_cut: bool,
    offset: u64,
}

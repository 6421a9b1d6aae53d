//! Doubled ids, however far apart, in bounded memory.
//!
//! Ids are nearly in the order of time, so a window of recent ones notices a doubled one. An id that comes too late for the window is neither
//! good nor bad yet: it is kept, and looked for in a second pass. An honest ledger has none, or a handful; one that has more than are kept
//! at once gets as many passes as it takes.

use std::collections::BTreeSet;

use baton_core::EventId;
use baton_core::limits::LATE_IDS_MAX;

use super::OpenSegments;
use super::code::Code;
use super::feed::Feed;
use super::join::{Join, Scope};
use super::lines::{Lines, Numbers};
use super::report::Finding;
use crate::id_window::{IdWindow, Sighting};
use crate::record::Line;

/// The ids so far.
#[derive(Debug)]
pub(crate) enum Ids {
    /// Of a journal, which can be read again: the recent ones, and those that came late.
    Recent(IdWindow, Late),
    /// Of a bundle, which cannot. 16 bytes for each event are little beside its line.
    All(BTreeSet<EventId>),
}

/// Late ids with their lines: those of one round.
#[derive(Debug)]
pub(crate) struct Late {
    list: Vec<(EventId, u64)>,
    max: usize,
    /// Late ids that earlier rounds have dealt with; they come first.
    past: u64,
    /// Whether there are more than fit into this round.
    has_more: bool,
}

impl Default for Ids {
    fn default() -> Self {
        Ids::kept(LATE_IDS_MAX)
    }
}

impl Ids {
    /// With at most so many late ids in memory.
    pub(crate) fn kept(max: usize) -> Self {
        Ids::Recent(IdWindow::default(), Late { list: Vec::new(), max, past: 0, has_more: false })
    }

    pub(crate) fn all() -> Self {
        Ids::All(BTreeSet::new())
    }

    pub(crate) fn insert(&mut self, id: EventId, line: u64) -> Sighting {
        match self {
            Ids::All(ids) => {
                if ids.insert(id) {
                    Sighting::New
                } else {
                    Sighting::Doubled
                }
            }
            Ids::Recent(window, late) => {
                let sighting = window.insert(id);
                if sighting == Sighting::Late {
                    late.push(id, line);
                }
                sighting
            }
        }
    }

    /// Takes the late ids of this round out.
    fn take_late(&mut self) -> Option<Late> {
        match std::mem::replace(self, Ids::all()) {
            Ids::Recent(_, late) => Some(late).filter(|late| !late.list.is_empty()),
            Ids::All(_) => None,
        }
    }
}

impl Late {
    fn push(&mut self, id: EventId, line: u64) {
        if self.past > 0 {
            self.past -= 1;
        } else if self.list.len() < self.max {
            self.list.push((id, line));
        } else {
            self.has_more = true;
        }
    }
}

/// Looks for the late ids in the lines before them.
pub(super) fn second_pass(open: OpenSegments<'_>, scope: Scope, join: &mut Join) -> Result<(), String> {
    let last = join.line();
    let mut past = 0;
    while let Some(mut late) = join.ids.take_late() {
        past += late.list.len() as u64;
        late.list.sort_unstable();
        // Of an id that came late twice, the first is the one to look for.
        let mut before = None;
        late.list.retain(|(id, line)| {
            let is_first = before.replace(*id) != Some(*id);
            if !is_first {
                join.findings.push(doubled(*id, *line));
            }
            is_first
        });
        // What does not fit into this round is collected again while this one's are looked for.
        if late.has_more {
            let next = Late { list: Vec::new(), max: late.max, past, has_more: false };
            join.ids = Ids::Recent(IdWindow::default(), next);
        }
        for_each_id(open, scope, last, |id, line| {
            let place = late.list.binary_search_by_key(&id, |(id, _)| *id);
            // Each is reported once: what was found is no longer above any line.
            if let Some((_, late)) = place.ok().map(|at| &mut late.list[at]).filter(|(_, late)| *late > line)
            {
                join.findings.push(doubled(id, std::mem::take(late)));
            }
            if late.has_more {
                join.ids.insert(id, line);
            }
        })?;
    }
    Ok(())
}

fn doubled(id: EventId, line: u64) -> Finding {
    Finding::new(Code::SequenceGap).expected("an id that occurs once").found(id).at(line).event(id)
}

/// Reads the journal again, up to the last line that was judged.
fn for_each_id(
    open: OpenSegments<'_>,
    scope: Scope,
    last: u64,
    mut each: impl FnMut(EventId, u64),
) -> Result<(), String> {
    let mut feed = Feed::new(open()?);
    let mut numbers = Numbers::default();
    while let Some(chunk) = feed.next()? {
        let lines = Lines::split(&chunk);
        let starts_segment = chunk.starts_segment.is_some();
        if starts_segment || !lines.whole.is_empty() {
            numbers.settle(starts_segment);
        }
        for line in &lines.whole {
            let parsed = Line::parse(line).ok();
            if !scope.includes(parsed.as_ref().map(|line| line.trace)) {
                continue;
            }
            if numbers.line >= last {
                return Ok(());
            }
            numbers.line += 1;
            if let Some(parsed) = parsed {
                each(parsed.id, numbers.line);
            }
        }
        numbers.hold(starts_segment, &lines);
    }
    Ok(())
}

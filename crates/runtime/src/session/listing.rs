//! Sessions page by page, the newest first: of a page what stands on it is read, and nothing else, however many sessions there ever were.
//!
//! Whoever owns the data directory keeps their ids in memory, and knows those that run without the disk. Where nobody does, the folder is looked
//! through once for each list.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::{fs, io};

use baton_core::ids::{AgentName, SessionId, TaskId};
use baton_core::session::{Permission, StateKind};

use super::broker::Broker;
use super::snapshot::Snapshot;
use crate::limits::SESSIONS_LOOKED_AT;

/// Which sessions are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Only those that run.
    pub is_live: bool,
    /// Only these, where some are named.
    pub ids: BTreeSet<SessionId>,
    /// Only those that began before this one.
    pub before: Option<SessionId>,
    /// How many, at most.
    pub limit: Option<usize>,
}

/// Sessions, the newest first.
#[derive(Debug, Default)]
pub struct Page {
    pub rows: Vec<Row>,
    /// Whether there are older ones.
    pub has_more: bool,
}

/// A session of a list.
#[derive(Debug)]
pub struct Row {
    /// As it is kept; of one that runs, as it began.
    pub snapshot: Snapshot,
    /// Where it stands, as long as it runs.
    pub state: Option<StateKind>,
    /// What it waits for.
    pub permissions: Vec<Permission>,
}

/// The ids of all sessions, once somebody has asked for them.
#[derive(Debug, Default)]
pub(super) struct Shelf(Mutex<Option<BTreeSet<SessionId>>>);

impl Shelf {
    /// Does something with the ids of the sessions that have a folder. That is looked through once: who owns it makes all that come.
    fn with<T>(&self, dir: &Path, act: impl FnOnce(&mut BTreeSet<SessionId>) -> T) -> T {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        act(ids.get_or_insert_with(|| ids_in(dir).into_iter().collect()))
    }

    /// Notes one whose folder was made. Where nobody has looked yet, whoever does will find it.
    pub(super) fn add(&self, id: SessionId) {
        if let Some(ids) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            ids.insert(id);
        }
    }

    /// The newest one before another.
    fn before(&self, dir: &Path, before: Option<SessionId>) -> Option<SessionId> {
        self.with(dir, |ids| match before {
            Some(before) => ids.range(..before).next_back().copied(),
            None => ids.last().copied(),
        })
    }
}

impl Broker {
    /// The sessions that are asked for.
    pub fn list(&self, wanted: &Wanted) -> Page {
        let dir = &self.setting().dir;
        let row = |id| {
            let row = self.running_row(id).or_else(|| {
                let found = Snapshot::load(&dir.join(id.to_string()));
                if found.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
                    // Somebody has made room.
                    self.shelf.with(dir, |ids| ids.remove(&id));
                }
                found.ok().map(|snapshot| Row { snapshot, state: self.state_of(id), permissions: Vec::new() })
            });
            row.filter(|row| !wanted.is_live || row.state.is_some())
        };
        if wanted.is_live || !wanted.ids.is_empty() {
            let named = match wanted.is_live {
                true => self.ids_running(),
                false => wanted.ids.clone(),
            };
            return page(wanted, named.into_iter().rev(), row);
        }
        let mut last = wanted.before;
        let ids = std::iter::from_fn(|| {
            last = self.shelf.before(dir, last);
            last
        });
        page(wanted, ids, row)
    }

    /// The sessions that run.
    fn ids_running(&self) -> BTreeSet<SessionId> {
        let running = self.running();
        running.sessions.keys().chain(running.relayed.keys()).copied().collect()
    }

    /// Where a session stands, as long as it runs.
    fn state_of(&self, id: SessionId) -> Option<StateKind> {
        self.get(id).map(|live| live.handle.state()).or_else(|| self.relayed(id))
    }

    /// One that runs, without the disk. What has stopped is about to leave, and how it ended is written down.
    fn running_row(&self, id: SessionId) -> Option<Row> {
        let (begun, view) = match self.get(id) {
            Some(live) => (live.begun, live.handle.view()),
            None => self.relayed_row(id)?,
        };
        let (state, permissions) = (Some(view.state), view.permissions);
        (view.state != StateKind::Stopped).then(|| Row { snapshot: (*begun).clone(), state, permissions })
    }

    /// The last session of an agent on a task, where Baton's end cut it short and it may be gone on with.
    pub fn resumable(&self, task: &TaskId, agent: &AgentName) -> Option<SessionId> {
        if !self.bounds().resume {
            return None;
        }
        let dir = &self.setting().dir;
        let newest = ids_in(dir).into_iter().rev().take(SESSIONS_LOOKED_AT);
        let mut snapshots = newest.filter_map(|id| Snapshot::load(&dir.join(id.to_string())).ok());
        let last = snapshots.find(|snapshot| snapshot.task.as_ref() == Some(task))?;
        (last.agent == *agent && last.can_load && last.is_cut_short).then_some(last.id)
    }
}

/// The sessions of a folder that nobody owns: none of them runs.
pub fn list_in(dir: &Path, wanted: &Wanted) -> Page {
    if wanted.is_live {
        return Page::default();
    }
    let ids = match wanted.ids.is_empty() {
        true => ids_in(dir),
        false => wanted.ids.iter().copied().collect(),
    };
    page(wanted, ids.into_iter().rev(), |id| {
        let snapshot = Snapshot::load(&dir.join(id.to_string())).ok()?;
        Some(Row { snapshot, state: None, permissions: Vec::new() })
    })
}

/// What stands on a page, of ids from the newest on. One more than fits is looked at, so that nobody asks for a page with nothing on it.
fn page(
    wanted: &Wanted,
    ids: impl Iterator<Item = SessionId>,
    row: impl FnMut(SessionId) -> Option<Row>,
) -> Page {
    let is_wanted = |id: &SessionId| {
        wanted.before.is_none_or(|before| *id < before) && (wanted.ids.is_empty() || wanted.ids.contains(id))
    };
    let limit = wanted.limit.unwrap_or(usize::MAX);
    let mut rows: Vec<Row> = ids.filter(is_wanted).filter_map(row).take(limit.saturating_add(1)).collect();
    let has_more = rows.len() > limit;
    rows.truncate(limit);
    Page { rows, has_more }
}

/// The sessions that have something of this name in a folder, the oldest first.
pub(super) fn ids_in(dir: &Path) -> Vec<SessionId> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut ids: Vec<SessionId> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok()).collect();
    ids.sort_unstable();
    ids
}

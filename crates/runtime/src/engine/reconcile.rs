//! Ledger and files brought together: a task in two folders, in none, in the wrong one; half-made files; what people changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::limits::TASK_FILE_BYTES_MAX;
use baton_core::nearest::nearest;
use baton_core::task::{Status, Task, TaskEvent};
use baton_core::{Digest, TaskId, Timestamp};
use baton_ledger::hash::sha256;
use baton_ledger::seal::Refusal as Unsealed;
use baton_store::AppendError;
use baton_store::disk::unfinished_name;
use baton_store::tasks::files::{Displaced, SPARE_DIR, file_path, folder_path, leftover_of};
use baton_store::tasks::fold::each_fact;
use baton_store::tasks::tree::Found;

use super::{Engine, Fault, State};

/// When a file that somebody may be writing is looked at again: a little after it has been still for as long as it must be.
const LOOK_AGAIN_MS: i64 = 2_100;

/// Things told once that are remembered.
const TOLD_MAX: usize = 10_000;

/// What bringing ledger and files together found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reconciled {
    pub looked_at: usize,
    /// What a person should know.
    pub notices: Vec<String>,
}

/// Where the files of a task lie, and which revision of it they were seen beside.
#[derive(Debug, Default)]
struct Seen {
    files: Vec<Status>,
    folders: Vec<Status>,
    rev: Option<u64>,
}

/// Tasks that are looked at before whoever waits goes on.
const LOOKED_AT_ONCE: usize = 16;

impl Engine {
    /// Looks at every file of every task.
    pub fn reconcile(&self) -> Result<Reconciled, Fault> {
        self.reconcile_while(&|| true)
    }

    /// The same, as long as it is wanted. Thousands of changed files take a while: others get their turn in between.
    pub fn reconcile_while(&self, is_wanted: &dyn Fn() -> bool) -> Result<Reconciled, Fault> {
        let seen: Vec<(TaskId, Seen)> = {
            while self.write_files(LOOKED_AT_ONCE) {}
            let mut state = self.lock();
            self.catch_up(&mut state)?;
            self.survey(&mut state)?.into_iter().collect()
        };
        let (mut looked_at, mut notices) = (0, self.take_notices());
        for slice in seen.chunks(LOOKED_AT_ONCE) {
            if !is_wanted() {
                break;
            }
            let mut state = self.lock();
            self.catch_up(&mut state)?;
            for (id, seen) in slice {
                let looked = self.reconcile_seen(&mut state, id, seen);
                go_on(&mut state, id.as_str(), looked)?;
            }
            looked_at += slice.len();
            // Now: whoever gets its turn in between would take them for its own.
            notices.append(&mut state.notices);
        }
        Ok(Reconciled { looked_at, notices })
    }

    /// Takes in what a person changed in the files of these tasks.
    pub fn look_at(&self, ids: &BTreeSet<TaskId>) -> Result<(), Fault> {
        let mut state = self.lock();
        self.catch_up(&mut state)?;
        for id in ids {
            let looked = self.take_edits_of(&mut state, id);
            go_on(&mut state, id.as_str(), looked)?;
        }
        Ok(())
    }

    /// Looks at everything at once, while nobody else is there yet.
    pub(super) fn reconcile_all(&self, state: &mut State) -> Result<(), Fault> {
        for (id, seen) in &self.survey(state)? {
            let looked = self.reconcile_seen(state, id, seen);
            go_on(state, id.as_str(), looked)?;
        }
        if state.is_after_crash {
            self.rewrite_runs(state);
        }
        Ok(())
    }

    /// Lists what is in the folders, clears what is nobody's, and gives every task with the places of its files.
    fn survey(&self, state: &mut State) -> Result<BTreeMap<TaskId, Seen>, Fault> {
        let mut seen: BTreeMap<TaskId, Seen> = BTreeMap::new();
        for status in Status::ALL {
            let dir = format!("tasks/{status}");
            for name in self.files.tree().list(&dir).map_err(Fault::files(&dir))? {
                let path = format!("{dir}/{name}");
                if let Some((id, _)) = leftover_of(&name) {
                    let cleared = self.clear_unfinished(state, &path, &id);
                    go_on(state, &path, cleared)?;
                } else if let Some(id) = name.strip_suffix(".md").and_then(|id| id.parse().ok()) {
                    seen.entry(id).or_default().files.push(*status);
                } else if let Ok(id) = name.parse() {
                    seen.entry(id).or_default().folders.push(*status);
                } else if is_task_like(&name) {
                    let place = self.place(&path);
                    let notice = format!("{place} is not a task's file: its name is no task id");
                    state.tell_once(path, notice);
                }
            }
        }
        self.look_for_strays(state);
        self.look_at_spares(state)?;
        for task in state.board.tasks() {
            seen.entry(task.id.clone()).or_default().rev = Some(task.rev());
        }
        // A folder alone makes no task.
        seen.retain(|_, seen| seen.rev.is_some() || !seen.files.is_empty());
        Ok(seen)
    }

    /// Brings one task and its files together. What was seen counts only as long as nothing has happened to the task since.
    fn reconcile_seen(&self, state: &mut State, id: &TaskId, seen: &Seen) -> Result<(), Fault> {
        let task = state.board.get(id);
        if task.map(Task::rev) != seen.rev {
            let found = self.places_of(state, id)?;
            return self.reconcile_one(state, id, &found);
        }
        if task.is_some_and(|task| seen.folders.iter().any(|status| *status != task.status)) {
            // Folders are put where they belong by whoever does not remember where they were.
            state.projected.remove(id);
        }
        let is_there = |status: &Status| {
            self.files.tree().look(&file_path(*status, id)).is_ok_and(|found| found.is_some())
        };
        if seen.files.is_empty() || !seen.files.iter().all(is_there) {
            // It is elsewhere by now, or was: an editor takes it away for a moment.
            let found = self.places_of(state, id)?;
            return self.reconcile_one(state, id, &found);
        }
        self.reconcile_one(state, id, &seen.files)
    }

    /// The folders in which a task's file lies now.
    fn places_of(&self, state: &State, id: &TaskId) -> Result<Vec<Status>, Fault> {
        let own = state.board.get(id).map(|task| task.status);
        let mut found = Vec::new();
        for status in Status::ALL {
            let path = file_path(*status, id);
            let tree = self.files.tree();
            let is_there = match own == Some(*status) {
                true => tree.look(&path).map_err(Fault::files(&path))?.is_some(),
                // Mostly nothing is there; and where something else lies in the place of that folder, there is no task's file in it.
                false => tree.is_there(&path) && tree.look(&path).is_ok_and(|found| found.is_some()),
            };
            if is_there {
                found.push(*status);
            }
        }
        Ok(found)
    }

    /// Tells of files that look like tasks and lie where no tasks are.
    fn look_for_strays(&self, state: &mut State) {
        let tree = self.files.tree();
        // Nothing depends on it: what cannot be read is not told of.
        for name in tree.list("tasks").unwrap_or_default() {
            if name.starts_with('.') || name.parse::<Status>().is_ok() {
                continue;
            }
            let path = format!("tasks/{name}");
            let strays = match tree.look(&path) {
                Ok(Some(Found::Dir)) => tree.list(&path).unwrap_or_default(),
                Ok(Some(Found::File(_))) if is_task_like(&name) => {
                    let place = self.place(&path);
                    let notice = format!("{place} is not taken in: it is in no folder of a status");
                    state.tell_once(path, notice);
                    continue;
                }
                _ => continue,
            };
            let count = strays.iter().filter(|name| is_task_like(name)).count();
            if count > 0 {
                let near = nearest(&name, Status::ALL.iter().map(|status| status.as_str()), 1);
                let near = near.first().map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                let place = self.place(&path);
                let notice = format!("{place} has {count} .md, not taken in: {name} is no status{near}");
                state.tell_once(path, notice);
            }
        }
    }

    /// Looks at the files that are kept aside: somebody may have saved into one, or a crash left one half-way.
    fn look_at_spares(&self, state: &mut State) -> Result<(), Fault> {
        for name in self.files.tree().list(SPARE_DIR).map_err(Fault::files(SPARE_DIR))? {
            let path = format!("{SPARE_DIR}/{name}");
            let looked = if let Some((id, _)) = leftover_of(&name) {
                self.clear_unfinished(state, &path, &id)
            } else if let Some(id) = name.strip_suffix(".md").and_then(|id| id.parse::<TaskId>().ok()) {
                self.look_at_spare(state, &path, &id)
            } else {
                continue;
            };
            go_on(state, &path, looked)?;
        }
        Ok(())
    }

    fn look_at_spare(&self, state: &mut State, path: &str, id: &TaskId) -> Result<(), Fault> {
        let tree = self.files.tree();
        let known = state.projected.get(id).and_then(|was| was.spare);
        let found = tree.look(path).map_err(Fault::files(path))?;
        if found.is_some() && known.map(Found::File) == found {
            if state.board.get(id).is_none_or(|task| task.is_closed) {
                tree.remove(path).map_err(Fault::files(path))?;
                state.forget_spare(id);
            }
            return Ok(());
        }
        // Out of the way first: taking it in writes the task's file anew, by way of this very place.
        let aside = format!("{SPARE_DIR}/{}", unfinished_name(&format!("{id}.md")));
        tree.rename(path, &aside).map_err(Fault::files(path))?;
        state.forget_spare(id);
        self.clear_unfinished(state, &aside, id)
    }

    /// Run files are written again after a crash: nobody knows which of them reached the disk.
    fn rewrite_runs(&self, state: &mut State) {
        let has_run = |task: &&Task| task.run.is_some() || task.handoff.is_some();
        let ids: Vec<TaskId> = state.board.tasks().filter(has_run).map(|task| task.id.clone()).collect();
        for id in ids {
            if let Some(was) = state.projected.get_mut(&id) {
                (was.run, was.result, was.handoff) = (None, None, None);
            }
            self.project(state, &id);
        }
    }

    /// Looks at everything of one task that a person may have written: also what was set aside while somebody may have been writing it.
    pub(super) fn take_edits_of(&self, state: &mut State, id: &TaskId) -> Result<(), Fault> {
        match state.projected.get(id).is_some_and(|was| was.has_leftovers) {
            true => self.look_at_unfinished(state, id),
            false => self.look_at_file(state, id),
        }
    }

    /// Looks at one task's file where it should be, and elsewhere: an editor that had it open saves it to where it was.
    fn look_at_file(&self, state: &mut State, id: &TaskId) -> Result<(), Fault> {
        let found = self.places_of(state, id)?;
        if let (Some(was), [only]) = (state.projected.get(id), found.as_slice())
            && was.status == *only
        {
            let path = file_path(was.status, id);
            let now = self.files.tree().look(&path).map_err(Fault::files(&path))?;
            if now == Some(Found::File(was.stamp)) {
                return Ok(());
            }
        }
        self.reconcile_one(state, id, &found)
    }

    /// Brings one task and its files together, given the folders in which its file was found.
    fn reconcile_one(&self, state: &mut State, id: &TaskId, found: &[Status]) -> Result<(), Fault> {
        let is_known = state.board.get(id).is_some();
        let was = state.projected.get(id).cloned();
        let mut judged: Vec<Displaced> = Vec::new();
        let mut is_unfinished = false;
        for status in found {
            let path = file_path(*status, id);
            let tree = self.files.tree();
            if let (Some(was), Some(Found::File(stamp))) =
                (&was, tree.look(&path).map_err(Fault::files(&path))?)
                && was.status == *status
                && was.stamp == stamp
            {
                continue;
            }
            if tree.is_being_written(&path) {
                // A part of something, which is looked at once it is whole. Until then it stays as it is, wherever it is.
                state.look_again(id, self.now());
                is_unfinished = true;
                continue;
            }
            match tree.read(&path, TASK_FILE_BYTES_MAX as u64) {
                Ok((bytes, _)) => {
                    let displaced = Displaced { id: id.clone(), status: *status, bytes };
                    self.take_displaced(state, &displaced)?;
                    judged.push(displaced);
                }
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => {
                    // A directory, a pipe, something without end or rights: nothing to read, and not to be lost.
                    state.notices.push(format!("{} cannot be read: {error}", self.place(&path)));
                    if is_known {
                        self.files.set_aside(&path, id).map(drop).map_err(Fault::files(&path))?;
                        state.projected.remove(id);
                    }
                }
            }
        }
        if is_known && found.is_empty() && was.is_some() && !state.is_after_crash {
            state.notices.push(format!("{id}: its file was gone and has been written again"));
            self.record_deletion(state, id)?;
        }
        let Some(task) = state.board.get(id) else { return Ok(()) };
        let (status, rev) = (task.status, task.rev());
        if is_unfinished && was.is_some_and(|was| was.rev == rev && was.status == status) {
            return Ok(());
        }
        // What was looked at and does not belong there goes, unless somebody has written it anew since.
        for place in judged.iter().filter(|place| place.status != status) {
            if let Some(again) = self.files.clear(place).map_err(Fault::files(id.as_str()))? {
                self.take_displaced(state, &again)?;
            }
        }
        let is_current = state.projected.get(id).is_some_and(|now| {
            let path = file_path(now.status, id);
            let is_there = self.files.tree().look(&path).ok().flatten() == Some(Found::File(now.stamp));
            is_there && now.status == status && now.rev == rev
        });
        if !is_current {
            state.projected.remove(id);
            self.project(state, id);
        }
        self.restore_folder(state, id)
    }

    fn record_deletion(&self, state: &mut State, id: &TaskId) -> Result<(), Fault> {
        use baton_core::task::decide::{RefusedEdit, system};
        state.projected.remove(id);
        let reason = "the file was deleted; it has been written again".to_owned();
        let refused = RefusedEdit { task: id.clone(), reason, quarantine: None, digest: None };
        let moment = self.ground.clock.moment();
        self.act(state, |board, _| Ok(((), board.refuse_edit(&refused, &system(), moment)?)))?;
        Ok(())
    }

    fn restore_folder(&self, state: &mut State, id: &TaskId) -> Result<(), Fault> {
        let Some(task) = state.board.get(id) else { return Ok(()) };
        let path = folder_path(task.status, id);
        match self.files.tree().look(&path).map_err(Fault::files(&path))? {
            Some(Found::Dir) => Ok(()),
            Some(Found::File(_) | Found::Other) => {
                self.keep_away(state, &path, id, "is no directory")?;
                state.projected.remove(id);
                self.project(state, id);
                Ok(())
            }
            None => {
                state.projected.remove(id);
                self.project(state, id);
                Ok(())
            }
        }
    }

    /// Moves something that Baton did not make out of the way, and tells where it is kept.
    fn keep_away(&self, state: &mut State, path: &str, id: &TaskId, why: &str) -> Result<(), Fault> {
        let name = self.files.set_aside(path, id).map_err(Fault::files(path))?;
        let kept = self.place(&format!("quarantine/{name}"));
        state.notices.push(format!("{} {why}; it is kept in {kept}", self.place(path)));
        Ok(())
    }

    /// Whether the ledger has an answer to this text of a task's file: taken in, or refused.
    fn is_recorded(&self, state: &State, id: &TaskId, digest: &Digest) -> Result<bool, Fault> {
        let Some(task) = state.board.get(id) else { return Ok(false) };
        let mut is_recorded = task.layout == Some(*digest);
        each_fact(&*self.ground.journal, task, &mut |fact| {
            is_recorded |= match fact.event() {
                Some(TaskEvent::EditRefused(refused)) => refused.digest == Some(*digest),
                Some(TaskEvent::Edited(edited)) => edited.layout == Some(*digest),
                Some(TaskEvent::Created(created)) => created.layout == Some(*digest),
                _ => false,
            };
        })?;
        Ok(is_recorded)
    }

    /// Looks again at what lay aside, or was being written, when it was last met.
    pub(super) fn look_at_unfinished(&self, state: &mut State, id: &TaskId) -> Result<(), Fault> {
        for name in self.files.tree().list(SPARE_DIR).map_err(Fault::files(SPARE_DIR))? {
            if leftover_of(&name).is_some_and(|(of, _)| of == *id) {
                let path = format!("{SPARE_DIR}/{name}");
                let cleared = self.clear_unfinished(state, &path, id);
                go_on(state, &path, cleared)?;
            }
        }
        let looked = self.look_at_file(state, id);
        go_on(state, id.as_str(), looked)?;
        let left = self.files.tree().list(SPARE_DIR).map_err(Fault::files(SPARE_DIR))?;
        let has_leftovers = left.iter().any(|name| leftover_of(name).is_some_and(|(of, _)| of == *id));
        if let Some(was) = state.projected.get_mut(id).filter(|was| was.has_leftovers != has_leftovers) {
            was.has_leftovers = has_leftovers;
            state.changed.insert(id.clone());
        }
        Ok(())
    }

    /// A file that was being made, or just taken out of the way, when its maker died.
    fn clear_unfinished(&self, state: &mut State, path: &str, id: &TaskId) -> Result<(), Fault> {
        let tree = self.files.tree();
        match tree.look(path).map_err(Fault::files(path))? {
            Some(Found::File(_)) => {}
            Some(Found::Dir | Found::Other) => {
                // Nothing that Baton made.
                return self.keep_away(state, path, id, "is no file");
            }
            None => return Ok(()),
        }
        let Ok((bytes, stamp)) = tree.read(path, TASK_FILE_BYTES_MAX as u64) else {
            return self.keep_away(state, path, id, "cannot be read");
        };
        if path.starts_with(SPARE_DIR) && self.files.may_be_written(path, &stamp) {
            // Somebody may still be writing it: it is looked at another time.
            state.look_again(id, self.now());
            if state.is_after_crash {
                // By then nobody will know any more that what was read may not have been recorded.
                self.files.leave_unseen(path, id).map_err(Fault::files(path))?;
            }
            return Ok(());
        }
        let seen = path.rsplit('/').next().and_then(leftover_of).and_then(|(_, seen)| seen);
        let digest = sha256(&bytes);
        let is_known = seen == Some(digest) && !state.is_after_crash;
        // Whether what was read was also recorded, after a crash only the ledger knows.
        let is_news = !is_known && !self.is_recorded(state, id, &digest)?;
        // Half of what Baton wrote is nothing that a person did.
        let is_whole = || baton_store::tasks::Document::parse(&bytes).is_ok();
        if let Some(status) = state.board.get(id).map(|task| task.status)
            && is_news
            && (seen.is_some() || is_whole())
        {
            self.take_leftover(state, &Displaced { id: id.clone(), status, bytes })?;
        }
        match tree.look(path).map_err(Fault::files(path))? {
            Some(Found::File(now)) if now == stamp => tree.remove(path).map_err(Fault::files(path)),
            // Written again meanwhile, or gone.
            _ => Ok(()),
        }
    }
}

/// Makes a notice of what went wrong with one task's files, so that the others are looked at. What is wrong with the ledger stops everything.
fn go_on(state: &mut State, what: &str, done: Result<(), Fault>) -> Result<(), Fault> {
    let Err(fault) = done else { return Ok(()) };
    match fault {
        Fault::Append(AppendError::Refused(Unsealed::Unreadable(_)))
        | Fault::Read(_)
        | Fault::InTheWay(_)
        | Fault::Registry(_) => Err(fault),
        Fault::Append(AppendError::Refused(_)) | Fault::Refused(_) | Fault::Files { .. } | Fault::Key(_) => {
            state.notices.push(format!("{what}: what its files say could not be taken in: {fault}"));
            Ok(())
        }
        Fault::Append(_) | Fault::Busy | Fault::Changed { .. } | Fault::Ending => Err(fault),
    }
}

fn is_task_like(name: &str) -> bool {
    name.ends_with(".md") && !name.starts_with('.')
}

impl State {
    /// Whether a task's file is what the board says: what a session goes through is not in it.
    pub(super) fn is_projected(&self, id: &TaskId) -> bool {
        let (task, was) = (self.board.get(id), self.projected.get(id));
        task.zip(was).is_some_and(|(task, was)| was.rev == task.rev() && was.status == task.status)
            && !self.behind.contains(id)
    }

    /// Tells something that is not the case only now.
    pub(super) fn tell_once(&mut self, key: String, notice: String) {
        if self.told.len() >= TOLD_MAX {
            self.told.clear();
        }
        if self.told.insert(key) {
            self.notices.push(notice);
        }
    }

    /// Has a task's files looked at again after a while: by whoever does what is due.
    pub(super) fn look_again(&mut self, id: &TaskId, now: Timestamp) {
        self.unfinished.insert(id.clone(), now.plus_ms(LOOK_AGAIN_MS));
    }

    fn forget_spare(&mut self, id: &TaskId) {
        if let Some(was) = self.projected.get_mut(id) {
            was.spare = None;
        }
    }
}

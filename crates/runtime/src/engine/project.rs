//! The files of tasks, brought up to what the ledger says; what they come across that Baton did not write is taken in.

use baton_core::TaskId;
use baton_core::task::Task;
use baton_store::tasks::files::{Displaced, SPARE_DIR, SetAside, file_path};
use baton_store::tasks::obstacles;

use super::{Engine, Fault, State, inspect};

/// Edits that are taken in one after the other before whoever waits goes on.
const TAKEN_IN_MAX: usize = 64;

impl Engine {
    /// Brings a task's files up to date. What fails is told and tried again: the ledger has it.
    pub(super) fn project(&self, state: &mut State, id: &TaskId) {
        match self.try_project(state, id) {
            Ok((displaced, failed)) => {
                state.behind.remove(id);
                if let Some(error) = failed {
                    self.fall_behind(state, id, &error);
                }
                self.take_all(state, displaced);
            }
            Err(fault) => self.fall_behind(state, id, &fault),
        }
    }

    /// Remembers that a task's files are not what they should be, and tells it once.
    pub(super) fn fall_behind(&self, state: &mut State, id: &TaskId, why: &dyn std::fmt::Display) {
        state.behind.insert(id.clone());
        let what = format!("{id}: recorded, but its files could not be written: ");
        if state.notices.iter().any(|notice| notice.starts_with(&what)) {
            return;
        }
        // What the system says of a link on the way helps little; which path it is does, where it is one that this task uses.
        let status = state.board.get(id).map(|task| task.status);
        let was = state.projected.get(id).map(|was| was.status);
        let files = status.into_iter().chain(was).map(|status| file_path(status, id));
        let paths: Vec<String> = files.chain([format!("runs/{id}"), SPARE_DIR.to_owned()]).collect();
        let in_the_way = obstacles::of_tasks(self.files.tree());
        let blocks = |found: &&obstacles::Obstacle| paths.iter().any(|path| found.blocks(path));
        let notice = match in_the_way.iter().find(blocks) {
            Some(found) => {
                let found = found.at(self.ground.layout.root());
                format!("{what}{why}; {found}; `baton doctor --fix` moves it aside")
            }
            None => format!("{what}{why}"),
        };
        state.notices.push(notice);
    }

    /// Takes in what projections came across. That projects again, and may come across more: one after the other, not one within the other.
    fn take_all(&self, state: &mut State, displaced: Vec<Displaced>) {
        let taking = state.taking.clone();
        let is_news = |found: &Displaced| !inspect::is_same_file(taking.as_ref(), found);
        state.found.extend(displaced.into_iter().filter(is_news));
        if std::mem::replace(&mut state.is_taking_in, true) {
            return;
        }
        let mut count = 0;
        while let Some(edit) = state.found.pop_front() {
            count += 1;
            let id = &edit.id;
            let why = match count <= TAKEN_IN_MAX {
                true => self.take_displaced(state, &edit).err().map(|fault| fault.to_string()),
                // Somebody writes as quickly as this does: at some time it must go on.
                false => Some("too many at once".to_owned()),
            };
            if let Some(why) = why {
                let kept = self.files.keep_aside(id, &edit.bytes).unwrap_or_default();
                let kept = self.place(&format!("quarantine/{kept}"));
                let notice = format!("{id}: an edit could not be taken in: {why}; it is kept in {kept}");
                state.notices.push(notice);
            }
        }
        state.is_taking_in = false;
    }

    fn try_project(
        &self,
        state: &mut State,
        id: &TaskId,
    ) -> Result<(Vec<Displaced>, Option<std::io::Error>), Fault> {
        let Some(task) = state.board.get(id).cloned() else { return Ok((Vec::new(), None)) };
        let papers = self.papers(state, &task)?;
        let layout = self.layout_of(&task);
        let is_new = state.fresh.remove(id);
        let was = state.projected.get(id).filter(|_| !state.behind.contains(id));
        let done = self
            .files
            .project(&task, &papers, layout.as_deref(), was, is_new)
            .map_err(Fault::files(id.as_str()))?;
        if done.projected.has_leftovers {
            state.look_again(id, self.now());
        }
        state.projected.insert(id.clone(), done.projected);
        state.changed.insert(id.clone());
        for SetAside { path, name } in done.set_aside {
            let kept = self.place(&format!("quarantine/{name}"));
            state.notices.push(format!("{id}: {} was in the way; it is kept in {kept}", self.place(&path)));
        }
        Ok((done.displaced, done.failed))
    }

    /// A path of the data directory, so that whoever is told of it can use it from where they are.
    pub(super) fn place(&self, path: &str) -> String {
        let root = self.ground.layout.root();
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        root.join(path).display().to_string()
    }

    /// The last text of a task's file that a person wrote.
    pub(super) fn layout_of(&self, task: &Task) -> Option<String> {
        use baton_store::ArtifactStore as _;
        use std::io::Read as _;
        let mut text = String::new();
        let max = baton_core::limits::TASK_FILE_BYTES_MAX as u64;
        self.ground.artifacts.open(&task.layout?).ok()?.take(max).read_to_string(&mut text).ok()?;
        Some(text)
    }
}

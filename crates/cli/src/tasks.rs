//! Tasks for commands: an engine that this process owns, or a board that is only read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::TaskId;
use baton_core::task::decide::Rules;
use baton_core::task::{Board, Papers, Status, Task};
use baton_runtime::clock::SystemClock;
use baton_runtime::tools::Walling;
use baton_runtime::work::Worktrees;
use baton_runtime::{Engine, Ground, Settings};
use baton_store::tasks::files::{Projected, file_path};
use baton_store::tasks::fold::{catch_up, fold};
use baton_store::tasks::table::Table;
use baton_store::tasks::tree::{Found, RealTree, Tree as _};
use baton_store::{History as _, Visit, Workspace};

use crate::config::{self, OnFailure};
use crate::context::{Context, Writing, disk};
use crate::error::{CliError, Code, Stop};
use crate::limits::CANDIDATES_MAX;
use crate::notices;
use crate::serve::Owner;
use crate::ui::Ui;

/// The tasks of a data directory, to be changed: opened and saved by this command, or those of the process that owns the directory.
#[derive(Debug)]
pub(crate) enum Tasks {
    Own { engine: Box<Engine>, writing: Writing, after: After },
    Shared(Arc<Owner>),
}

/// What is done once the data directory is free again.
#[derive(Debug)]
pub(crate) struct After {
    here: Option<PathBuf>,
    settings: Box<config::Settings>,
    /// What stands around git where worktrees are removed.
    walling: Walling,
}

impl std::ops::Deref for Tasks {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Tasks::Own { engine, .. } => engine,
            Tasks::Shared(owner) => &owner.engine,
        }
    }
}

impl Context {
    /// Opens the tasks for writing. Where another process owns the data directory, the command is handed over; see [`Context::write`].
    pub(crate) fn tasks(&self, ui: &Ui) -> Result<Tasks, Stop> {
        match self.write(ui)? {
            Writing::Shared(owner) => Ok(Tasks::Shared(owner)),
            writing => {
                let settings = self.settings(Some(writing.layout.root()))?;
                let engine = Box::new(self.open_engine(&writing)?);
                let walling = crate::sessions::walling(self, writing.layout.root())?;
                let after = After { here: self.here().ok(), settings: Box::new(settings), walling };
                Ok(Tasks::Own { engine, writing, after })
            }
        }
    }

    /// Opens the tasks of a data directory that this process owns.
    pub(crate) fn open_engine(&self, workspace: &Workspace) -> Result<Engine, CliError> {
        let root = workspace.layout.root();
        let settings = engine_settings(&self.settings(Some(root))?);
        let ground = Ground::of(workspace, self.work_dir(root), Arc::new(SystemClock))?;
        let engine = Engine::open(ground, settings)?;
        // Whoever owns the data directory now has no session yet: those that still look alive died with the one before.
        baton_runtime::session::recover(&engine, &crate::sessions::dir_of(&workspace.layout))?;
        Ok(engine)
    }

    /// Where the work is: beside `.baton`, else where the command was typed.
    pub(crate) fn work_dir(&self, data_dir: &Path) -> PathBuf {
        let here = || self.here().unwrap_or_else(|_| PathBuf::from("."));
        match data_dir.canonicalize() {
            Ok(dir) if dir.file_name().is_some_and(|name| name == ".baton") => {
                dir.parent().map_or_else(here, Path::to_owned)
            }
            _ => here(),
        }
    }

    /// The board as it is, without a lock.
    pub(crate) fn board(&self) -> Result<ReadBoard, Stop> {
        ReadBoard::of(self.visit()?)
    }
}

/// The board of a data directory, and how its files were left.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) board: Board,
    projected: BTreeMap<TaskId, Projected>,
}

/// Reads the saved board and what the journal has beyond it.
pub(crate) fn read_board(visit: &Visit) -> Result<Saved, Stop> {
    let key = visit.reader.ledger().key;
    let mut loaded = Table::load(&*disk(), &visit.layout.index(), &key);
    if loaded.board.pos() > visit.reader.size() {
        (loaded.board, loaded.projected) = (Board::default(), BTreeMap::new());
    }
    catch_up(&mut loaded.board, &visit.reader)?;
    Ok(Saved { board: loaded.board, projected: loaded.projected })
}

/// The board, to be looked at.
#[derive(Debug)]
pub(crate) struct ReadBoard {
    pub(crate) visit: Visit,
    pub(crate) board: Board,
    projected: BTreeMap<TaskId, Projected>,
}

impl ReadBoard {
    pub(crate) fn of(visit: Visit) -> Result<Self, Stop> {
        let Saved { board, projected } = read_board(&visit)?;
        Ok(ReadBoard { visit, board, projected })
    }

    pub(crate) fn papers(&self, task: &Task) -> Result<Papers, Stop> {
        Ok(fold(&self.visit.reader, task, None)?.1)
    }

    /// Tasks whose files somebody changed since Baton wrote them.
    pub(crate) fn edited<'a>(&self, tasks: impl Iterator<Item = &'a Task>) -> Vec<TaskId> {
        let Ok(tree) = RealTree::open(self.visit.layout.root()) else { return Vec::new() };
        let is_edited = |task: &&Task| match self.projected.get(&task.id) {
            Some(was) => {
                // Where the files are behind the ledger, whoever wrote last did not come to the end of it.
                was.rev != task.rev()
                    || tree.look(&file_path(was.status, &task.id)).ok().flatten()
                        != Some(Found::File(was.stamp))
            }
            None => true,
        };
        tasks.filter(is_edited).map(|task| task.id.clone()).collect()
    }

    /// Tasks with a file that was set aside while somebody may have been writing it.
    pub(crate) fn unfinished(&self) -> BTreeSet<TaskId> {
        self.projected.iter().filter(|(_, was)| was.has_leftovers).map(|(id, _)| id.clone()).collect()
    }

    /// Whether a task's file lies in a folder where it does not belong: saved there by an editor that had it open before it moved.
    pub(crate) fn is_elsewhere(&self, task: &Task) -> bool {
        RealTree::open(self.visit.layout.root()).is_ok_and(|tree| is_elsewhere(&tree, task))
    }

    /// Files of tasks in folders where they do not belong.
    pub(crate) fn elsewhere(&self) -> Vec<String> {
        let Ok(tree) = RealTree::open(self.visit.layout.root()) else { return Vec::new() };
        let mut found = Vec::new();
        for status in Status::ALL {
            for name in tree.list(&format!("tasks/{status}")).unwrap_or_default() {
                let id = name.strip_suffix(".md").and_then(|id| id.parse::<TaskId>().ok());
                if id.and_then(|id| self.board.get(&id)).is_some_and(|task| task.status != *status) {
                    found.push(format!("tasks/{status}/{name}"));
                }
            }
        }
        found
    }

    /// Whether a folder of tasks has a file that no task is known for, or that belongs into another.
    pub(crate) fn has_strangers(&self) -> bool {
        let Ok(tree) = RealTree::open(self.visit.layout.root()) else { return false };
        Status::ALL.iter().any(|status| {
            let names = tree.list(&format!("tasks/{status}")).unwrap_or_default();
            names
                .iter()
                .filter_map(|name| name.strip_suffix(".md")?.parse::<TaskId>().ok())
                .any(|id| self.board.get(&id).is_none_or(|task| task.status != *status))
        })
    }
}

/// Whether there is a file of a task beside the one in its own folder.
pub(crate) fn is_elsewhere(tree: &RealTree, task: &Task) -> bool {
    let mut others = Status::ALL.iter().filter(|status| **status != task.status);
    others.any(|status| tree.is_there(&file_path(*status, &task.id)))
}

/// What the configuration says, as the engine wants it.
pub(crate) fn engine_settings(settings: &config::Settings) -> Settings {
    let ms = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Settings {
        lease_ttl_ms: ms(settings.scheduler.lease_ttl),
        beat_ttl_ms: ms(settings.scheduler.heartbeat_ttl),
        rules: Rules { max_attempts: settings.scheduler.max_attempts, has_ci: settings.ci.command.is_some() },
        guards: settings.policy.guarded,
        ci_rework: settings.ci.on_failure == OnFailure::Rework,
    }
}

impl Tasks {
    /// Ends cleanly and says what a person should know.
    pub(crate) fn close(self, ui: &Ui) -> Result<(), Stop> {
        let (notices, own) = match self {
            Tasks::Shared(owner) => (owner.take_notices(), None),
            Tasks::Own { engine, writing, after } => (engine.take_notices(), Some((engine, writing, after))),
        };
        notices.iter().for_each(|notice| ui.warn(notice));
        if let Some((engine, writing, after)) = own {
            let (moved, layout) = (engine.take_moved(), writing.layout.clone());
            let done = moved.iter().filter(|moved| moved.to == Status::Done);
            let trees = Worktrees::new(&engine.ground().workspace, Some(after.walling));
            done.filter_map(|moved| trees.tidy(&moved.task)).for_each(|notice| ui.warn(&notice));
            // It is a projection: whoever opens next makes what is missing.
            let _ = engine.close();
            writing.close(ui)?;
            notices::tell_beside(after.here.as_deref(), &layout, &after.settings, &moved);
        }
        Ok(())
    }

    /// What was said about edits of a task that were not taken in, instead of the warnings.
    pub(crate) fn take_refused(&self, name: &str) -> Vec<String> {
        let (refused, others): (Vec<String>, Vec<String>) = self
            .take_notices()
            .into_iter()
            .partition(|notice| notice.contains("an edit was not taken in") && notice.contains(name));
        self.put_back(others);
        refused
    }

    /// Takes in what people changed in the files: of one task, or of all where no id is named.
    pub(crate) fn reconcile_named(&self, name: &str) -> Result<(), Stop> {
        match name.parse::<TaskId>() {
            Ok(id) => self.look_at(&BTreeSet::from([id]))?,
            Err(_) => drop(self.reconcile()?),
        }
        Ok(())
    }

    /// Ends as cleanly as possible and goes on with what there was to say.
    pub(crate) fn finish<T>(self, ui: &Ui, answer: Result<T, Stop>) -> Result<T, Stop> {
        match answer {
            Ok(answer) => self.close(ui).map(|()| answer),
            Err(stop) => {
                let _ = self.close(ui);
                Err(stop)
            }
        }
    }
}

/// That no task is called so.
pub(crate) fn no_task(text: &str) -> CliError {
    CliError::new(Code::NoTask, format!("no task {text}")).hint("baton task ls")
}

/// The task that a text names: an id, or a unique beginning of one, with or without `TASK-`.
pub(crate) fn find(board: &Board, text: &str) -> Result<TaskId, CliError> {
    let missing = || no_task(text);
    if let Ok(id) = text.parse::<TaskId>()
        && board.get(&id).is_some()
    {
        return Ok(id);
    }
    let wanted = format!("TASK-{}", text.strip_prefix("TASK-").unwrap_or(text));
    if text.is_empty() || text == "TASK-" {
        return Err(missing());
    }
    let found: Vec<&TaskId> = board
        .tasks()
        .map(|task| &task.id)
        .filter(|id| id.as_str().starts_with(&wanted))
        .take(CANDIDATES_MAX + 1)
        .collect();
    match found[..] {
        [one] => Ok(one.clone()),
        [] => Err(missing()),
        _ => {
            let error = CliError::new(Code::Ambiguous, format!("{text} names more than one"));
            let shown = found.iter().take(CANDIDATES_MAX);
            let error = shown.fold(error, |error, id| error.cause(id.as_str()));
            Err(error.hint("type more characters of the one you mean"))
        }
    }
}

//! Tasks for commands: an engine that this process owns, or a board that is only read.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::TaskId;
use baton_core::task::decide::Rules;
use baton_core::task::{Board, Papers, Task};
use baton_runtime::clock::SystemClock;
use baton_runtime::{Engine, Ground, Settings};
use baton_store::tasks::files::{Projected, file_path};
use baton_store::tasks::fold::{catch_up, fold};
use baton_store::tasks::table::Table;
use baton_store::tasks::tree::{Found, RealTree, Tree as _};
use baton_store::{History as _, Visit};

use crate::config::{self, OnFailure};
use crate::context::{Context, Writing, disk};
use crate::error::{CliError, Code, Stop};
use crate::limits::CANDIDATES_MAX;
use crate::ui::Ui;

/// The tasks of a data directory, to be changed.
#[derive(Debug)]
pub(crate) struct Tasks {
    engine: Engine,
    writing: Writing,
}

impl std::ops::Deref for Tasks {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

impl Context {
    /// Opens the tasks for writing.
    pub(crate) fn tasks(&self, ui: &Ui) -> Result<Tasks, Stop> {
        let writing = self.write(ui)?;
        let settings = engine_settings(&self.settings(Some(writing.layout.root()))?);
        let ground = Ground::of(&writing, self.work_dir(writing.layout.root()), Arc::new(SystemClock))?;
        let engine = Engine::open(ground, settings)?;
        Ok(Tasks { engine, writing })
    }

    /// Where the work is: beside `.baton`, else where the command was typed.
    fn work_dir(&self, data_dir: &Path) -> PathBuf {
        let here = || std::env::current_dir().unwrap_or_else(|_| PathBuf::from("."));
        match data_dir.canonicalize() {
            Ok(dir) if dir.file_name().is_some_and(|name| name == ".baton") => {
                dir.parent().map_or_else(here, Path::to_owned)
            }
            _ => here(),
        }
    }

    /// The board as it is, without a lock.
    pub(crate) fn board(&self) -> Result<ReadBoard, Stop> {
        let visit = self.visit()?;
        let Saved { board, projected } = read_board(&visit)?;
        Ok(ReadBoard { visit, board, projected })
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
    pub(crate) fn papers(&self, task: &Task) -> Result<Papers, Stop> {
        Ok(fold(&self.visit.reader, task, None)?.1)
    }

    /// Tasks whose files somebody changed since Baton wrote them.
    pub(crate) fn edited<'a>(&self, tasks: impl Iterator<Item = &'a Task>) -> Vec<TaskId> {
        let Ok(tree) = RealTree::open(self.visit.layout.root()) else { return Vec::new() };
        let is_edited = |task: &&Task| match self.projected.get(&task.id) {
            Some(was) => {
                tree.look(&file_path(was.status, &task.id)).ok().flatten() != Some(Found::File(was.stamp))
            }
            None => true,
        };
        tasks.filter(is_edited).map(|task| task.id.clone()).collect()
    }

    /// Whether a folder of tasks has a file that no task is known for, or that belongs into another.
    pub(crate) fn has_strangers(&self) -> bool {
        let Ok(tree) = RealTree::open(self.visit.layout.root()) else { return false };
        baton_core::task::Status::ALL.iter().any(|status| {
            let names = tree.list(&format!("tasks/{status}")).unwrap_or_default();
            names
                .iter()
                .filter_map(|name| name.strip_suffix(".md")?.parse::<TaskId>().ok())
                .any(|id| self.board.get(&id).is_none_or(|task| task.status != *status))
        })
    }
}

/// What the configuration says, as the engine wants it.
pub(crate) fn engine_settings(settings: &config::Settings) -> Settings {
    let ms = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    Settings {
        lease_ttl_ms: ms(settings.scheduler.lease_ttl),
        beat_ttl_ms: ms(settings.scheduler.heartbeat_ttl),
        rules: Rules { max_attempts: settings.scheduler.max_attempts, has_ci: settings.ci.command.is_some() },
        ci_rework: settings.ci.on_failure == OnFailure::Rework,
    }
}

impl Tasks {
    /// Ends cleanly and says what a person should know.
    pub(crate) fn close(self, ui: &Ui) -> Result<(), Stop> {
        for notice in self.engine.take_notices() {
            ui.warn(&notice);
        }
        // It is a projection: whoever opens next makes what is missing.
        let _ = self.engine.close();
        Ok(self.writing.close(ui)?)
    }

    /// Takes in what people changed in the files: of one task, or of all where no id is named.
    pub(crate) fn reconcile_named(&self, name: &str) -> Result<(), Stop> {
        match name.parse::<TaskId>() {
            Ok(id) => self.engine.look_at(&BTreeSet::from([id]))?,
            Err(_) => drop(self.engine.reconcile()?),
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

/// The task that a text names: an id, or a unique beginning of one, with or without `TASK-`.
pub(crate) fn find(board: &Board, text: &str) -> Result<TaskId, CliError> {
    let missing = || CliError::new(Code::NoTask, format!("no task {text}")).hint("baton task ls");
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

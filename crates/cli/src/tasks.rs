//! Tasks for one command: opened and saved by it, or those of the process that owns the data directory.

use std::ops::Deref;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::task::decide::Rules;
use baton_runtime::clock::SystemClock;
use baton_runtime::{Engine, Fault, Ground, Settings};
use baton_store::Workspace;

use crate::config;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::serve::Owner;
use crate::ui::Ui;

/// The tasks of a data directory that this process writes.
#[derive(Debug)]
pub(crate) enum Tasks {
    Own { engine: Box<Engine>, writing: Writing },
    Shared(Arc<Owner>),
}

impl Deref for Tasks {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Tasks::Own { engine, .. } => engine,
            Tasks::Shared(owner) => &owner.engine,
        }
    }
}

impl Tasks {
    #[expect(dead_code, reason = "the commands of tasks come with the next change")]
    /// Ends cleanly, and says what a person should know. What fails here is recorded already.
    pub(crate) fn close(self, ui: &Ui) -> Result<(), Stop> {
        match self {
            Tasks::Shared(owner) => {
                owner.take_notices().iter().for_each(|notice| ui.warn(notice));
                Ok(())
            }
            Tasks::Own { engine, writing } => {
                engine.take_notices().iter().for_each(|notice| ui.warn(notice));
                save(*engine, ui);
                Ok(writing.close(ui)?)
            }
        }
    }
}

/// Saves the board; without that the next one reads more of the journal.
pub(crate) fn save(engine: Engine, ui: &Ui) {
    if let Err(error) = engine.close() {
        ui.detail(&format!("the list of tasks was not saved and will be made anew: {error}"));
    }
}

impl Context {
    #[expect(dead_code, reason = "the commands of tasks come with the next change")]
    /// The tasks, to be changed. Where another process owns the data directory, the command is handed over; see [`Context::write`].
    pub(crate) fn tasks(&self, ui: &Ui) -> Result<Tasks, Stop> {
        match self.write(ui)? {
            Writing::Shared(owner) => Ok(Tasks::Shared(owner)),
            writing => {
                let engine = Box::new(self.open_engine(&writing)?);
                Ok(Tasks::Own { engine, writing })
            }
        }
    }

    /// Opens the tasks of a data directory that this process owns.
    pub(crate) fn open_engine(&self, workspace: &Workspace) -> Result<Engine, CliError> {
        let settings = self.settings(Some(workspace.layout.root()))?;
        let ground = Ground::of(workspace, self.work_dir(workspace)?, Arc::new(SystemClock));
        ground.and_then(|ground| Engine::open(ground, engine_settings(&settings))).map_err(tell)
    }

    /// Where the work is: beside the data directory, or where the command was given.
    fn work_dir(&self, workspace: &Workspace) -> Result<PathBuf, CliError> {
        let root = workspace.layout.root();
        let fail = |error| CliError::io("find", root, &error);
        let root = root.canonicalize().map_err(fail)?;
        match root.parent().filter(|_| root.file_name().is_some_and(|name| name == ".baton")) {
            Some(beside) => Ok(beside.to_owned()),
            None => self.here().map_err(fail),
        }
    }
}

fn engine_settings(settings: &config::Settings) -> Settings {
    let ms = |time: std::time::Duration| i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let scheduler = &settings.scheduler;
    Settings {
        lease_ttl_ms: ms(scheduler.lease_ttl),
        beat_ttl_ms: ms(scheduler.heartbeat_ttl),
        rules: Rules { max_attempts: scheduler.max_attempts, has_ci: settings.ci.command.is_some() },
        ci_rework: settings.ci.on_failure == config::OnFailure::Rework,
    }
}

/// Why the tasks do not open.
fn tell(fault: Fault) -> CliError {
    let text = fault.to_string();
    match fault {
        Fault::Append(error) => error.into(),
        Fault::Read(error) => error.into(),
        Fault::Registry(error) => error.into(),
        Fault::Key(error) => error.into(),
        Fault::Files { what, source } => CliError::io("use", what.as_ref(), &source),
        Fault::Refused(_) | Fault::Busy => CliError::new(Code::Io, text).hint("baton doctor"),
    }
}

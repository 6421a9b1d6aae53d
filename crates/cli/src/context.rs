//! Where a command works: the data directory, the directory of secrets, how long it waits. Decided once, from flags and environment.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::Durability;
use baton_core::limits::LOCK_WAIT_MS;
use baton_store::disk::{Disk, RealDisk};
use baton_store::journal::recover::Tail;
use baton_store::{History as _, Layout, OpenError, Options, Visit, Workspace, lock};

use crate::config::{self, Flag, Resolved, Settings};
use crate::error::{CliError, Code};
use crate::limits::{HOLD_MS_MAX, LIVE_RETRIES, LIVE_RETRY_MS};
use crate::ui::Ui;
use crate::ui::shell;
use crate::ui::text::count;

/// The process's environment variables; the only place that reads them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Environment;

impl Environment {
    /// A variable that is set to something.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// The same as the system gives it, which need not be text.
    pub(crate) fn raw(&self, name: &str) -> Option<OsString> {
        std::env::var_os(name).filter(|value| !value.is_empty())
    }

    /// The names of all variables that are text.
    pub(crate) fn names(&self) -> Vec<String> {
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).collect()
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.raw(name).map(PathBuf::from)
    }

    /// A base directory of the XDG specification, which ignores relative ones.
    fn base(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let given = self.path(variable).filter(|path| path.is_absolute());
        given.or_else(|| Some(self.path("HOME").filter(|home| home.is_absolute())?.join(below_home)))
    }

    pub(crate) fn config_home(&self) -> Option<PathBuf> {
        self.base("XDG_CONFIG_HOME", ".config")
    }
}

/// What every command needs to know.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) env: Environment,
    given: Option<PathBuf>,
    flags: Vec<Flag>,
}

impl Context {
    /// `flags` are the settings that the command line itself makes.
    pub(crate) fn new(data_dir: Option<PathBuf>, flags: Vec<Flag>) -> Self {
        let env = Environment;
        Context { given: data_dir.or_else(|| env.path("BATON_DATA_DIR")), env, flags }
    }

    /// Where `init` makes a data directory: what was asked for, else `.baton` right here.
    pub(crate) fn new_data_dir(&self) -> PathBuf {
        self.given.clone().unwrap_or_else(|| PathBuf::from(".baton"))
    }

    /// The data directory, if there is one: given, else `.baton` here or above, else the user's own.
    pub(crate) fn find_data_dir(&self) -> Option<PathBuf> {
        if let Some(given) = &self.given {
            return Some(given.clone());
        }
        let here = std::env::current_dir().ok()?;
        let above = here.ancestors().map(|dir| dir.join(".baton")).find(|dir| dir.is_dir());
        above.or_else(|| {
            let own = self.env.base("XDG_DATA_HOME", ".local/share")?.join("baton");
            own.join("events").is_dir().then_some(own)
        })
    }

    /// The paths of the data directory in use.
    pub(crate) fn layout(&self) -> Result<Layout, CliError> {
        let Some(dir) = self.find_data_dir() else {
            return Err(CliError::new(Code::NoLedger, "no data directory here or above").hint("baton init"));
        };
        let layout = Layout::new(dir);
        if layout.events().is_dir() {
            return Ok(layout);
        }
        let what = format!("no ledger in {}", layout.root().display());
        let hint = match &self.given {
            Some(given) => format!("baton init --data-dir {}", shell::path(given)),
            None => "baton init".to_owned(),
        };
        Err(CliError::new(Code::NoLedger, what).hint(hint))
    }

    /// Where private keys are kept.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, CliError> {
        let state = self.env.path("BATON_STATE_DIR");
        state.or_else(|| Some(self.env.base("XDG_STATE_HOME", ".local/state")?.join("baton"))).ok_or_else(
            || {
                CliError::new(
                    Code::Value,
                    "no place for private keys: neither HOME nor BATON_STATE_DIR is set",
                )
                .hint("export BATON_STATE_DIR=/path/to/a/private/directory")
            },
        )
    }

    /// How long to wait for the owner's lock.
    pub(crate) fn lock_wait(&self) -> Result<Duration, CliError> {
        let ms = match self.env.get("BATON_LOCK_WAIT_MS") {
            None => LOCK_WAIT_MS,
            Some(text) => text.parse().map_err(|_| {
                let what = format!("BATON_LOCK_WAIT_MS: expected milliseconds, got {text:?}");
                CliError::new(Code::Value, what).hint("unset BATON_LOCK_WAIT_MS")
            })?,
        };
        Ok(Duration::from_millis(ms))
    }

    /// Every key of the configuration with its value and where that came from; without a data directory from the other layers alone.
    pub(crate) fn config(&self, data_dir: Option<&Path>) -> Result<Resolved, CliError> {
        config::load(data_dir, &self.env, &self.flags)
    }

    /// The whole configuration, typed.
    pub(crate) fn settings(&self, data_dir: Option<&Path>) -> Result<Settings, CliError> {
        Ok(self.config(data_dir)?.settings())
    }

    /// How the journal writes.
    pub(crate) fn options(&self, data_dir: &Path) -> Result<Options, CliError> {
        Ok(self.settings(Some(data_dir))?.ledger)
    }

    /// Opens the ledger for writing and says what had to be mended.
    pub(crate) fn write(&self, ui: &Ui) -> Result<Writing, CliError> {
        let layout = self.layout()?;
        let options = self.options(layout.root())?;
        let workspace = Workspace::open(&layout, &self.state_dir()?, options, self.lock_wait()?)?;
        for name in &workspace.opening.quarantined {
            let kept = layout.quarantine().join(name);
            ui.warn(&format!("a write that was cut off earlier was set aside: {}", kept.display()));
        }
        if workspace.opening.index_rebuilt {
            ui.detail(&format!("the index was rebuilt from {}", count(workspace.journal.size(), "event")));
        }
        Ok(Writing::new(workspace, options.durability))
    }

    /// Opens the ledger for reading: no lock, nothing written.
    pub(crate) fn visit(&self) -> Result<Visit, CliError> {
        visit(&self.layout()?).map_err(CliError::from)
    }
}

/// Opens for reading beside a writer that may be at work: what looks broken is looked at again while it still changes.
pub(crate) fn visit(layout: &Layout) -> Result<Visit, OpenError> {
    let mut tries = 0;
    loop {
        let before = Activity::observe(layout);
        let visit = Visit::open(layout);
        let is_suspect = match &visit {
            Ok(visit) => matches!(visit.reader.tail, Tail::Damaged { .. }),
            Err(error) => matches!(error, OpenError::Damaged { .. } | OpenError::Cut { .. }),
        };
        tries += 1;
        if !is_suspect || tries >= LIVE_RETRIES || !before.goes_on(layout) {
            return visit;
        }
        std::thread::sleep(Duration::from_millis(LIVE_RETRY_MS));
    }
}

/// Whether somebody writes: a held lock, and the lengths and times of the segments.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Activity {
    has_owner: bool,
    files: Vec<(u64, u64, Option<std::time::SystemTime>)>,
}

impl Activity {
    pub(crate) fn observe(layout: &Layout) -> Self {
        let firsts = baton_store::journal::segments::list(&RealDisk, layout).unwrap_or_default();
        // Only the last two can change: one is being closed while the next is made.
        let files = firsts.iter().rev().take(2).filter_map(|first| {
            let metadata = std::fs::metadata(layout.segment(*first)).ok()?;
            Some((*first, metadata.len(), metadata.modified().ok()))
        });
        let has_owner = matches!(lock::holder(layout), Ok(Some(_)));
        Activity { has_owner, files: files.collect() }
    }

    pub(crate) fn has_owner(&self) -> bool {
        self.has_owner
    }

    /// Whether an owner was or is there, or something changed since.
    pub(crate) fn goes_on(&self, layout: &Layout) -> bool {
        let now = Activity::observe(layout);
        self.has_owner || now.has_owner || now.files != self.files
    }
}

/// The file layer of the operating system.
pub(crate) fn disk() -> Arc<dyn Disk> {
    Arc::new(RealDisk)
}

/// A data directory that this process writes.
#[derive(Debug)]
pub(crate) struct Writing {
    workspace: Workspace,
    durability: Durability,
    since: Instant,
}

impl std::ops::Deref for Writing {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        &self.workspace
    }
}

impl Writing {
    pub(crate) fn new(workspace: Workspace, durability: Durability) -> Self {
        Writing { workspace, durability, since: Instant::now() }
    }

    /// Whether others have waited long enough, even if there is more to write.
    pub(crate) fn is_due(&self) -> bool {
        self.since.elapsed() >= Duration::from_millis(HOLD_MS_MAX)
    }

    /// Ends as cleanly as possible after something else has failed, which is what there is to say.
    pub(crate) fn abandon(self) {
        let _ = self.workspace.close();
    }

    /// Ends cleanly. What was acknowledged is on the disk already, so what fails here is said and is no reason to do it again.
    pub(crate) fn close(self, ui: &Ui) -> Result<(), CliError> {
        match self.workspace.close() {
            Ok(()) => Ok(()),
            Err(error) if self.durability == Durability::Commit => {
                ui.warn(&format!("everything is recorded, but the ledger did not close cleanly: {error}"));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

//! Where a command works: the data directory, the directory of secrets, how long it waits. Decided once, from flags and environment.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use baton_core::event::Actor;
use baton_core::limits::LOCK_WAIT_MS;
use baton_core::task::decide::{executor, operator};
use baton_core::{Durability, TraceId};
use baton_store::disk::{Disk, RealDisk};
use baton_store::journal::recover::Tail;
use baton_store::{History as _, Layout, OpenError, Options, Visit, Workspace, lock};

use crate::config::{self, Flag, Resolved, Settings};
use crate::console::Stdin;
use crate::error::{CliError, Code, Stop};
use crate::input::file::Named;
use crate::limits::{HOLD_MS_MAX, LIVE_RETRIES, LIVE_RETRY_MS, SOCKET_RETRY_MS};
use crate::serve::call::Rest;
use crate::serve::{Acting, Feeding, HandOver, Owner, socket};
use crate::ui::Ui;
use crate::ui::shell;
use crate::ui::text::count;

/// The environment variables of whoever gave the command; the only place that reads them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Environment {
    /// Those of a caller, as far as Baton reads them; `None` is this process's own.
    pub(crate) captured: Option<BTreeMap<OsString, OsString>>,
}

impl Environment {
    /// A variable that is set to something.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.raw(name).and_then(|value| value.into_string().ok())
    }

    /// The same as the system gives it, which need not be text.
    pub(crate) fn raw(&self, name: &str) -> Option<OsString> {
        let value = match &self.captured {
            Some(captured) => captured.get(OsStr::new(name)).cloned(),
            None => std::env::var_os(name),
        };
        value.filter(|value| !value.is_empty())
    }

    /// The names of all variables that are text.
    pub(crate) fn names(&self) -> Vec<String> {
        let names: Vec<OsString> = match &self.captured {
            Some(captured) => captured.keys().cloned().collect(),
            None => std::env::vars_os().map(|(name, _)| name).collect(),
        };
        names.into_iter().filter_map(|name| name.into_string().ok()).collect()
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
    stdin: Stdin,
    /// Where the caller is, if it is another process.
    here: Option<PathBuf>,
    /// The data directory that this process owns while it serves others.
    owner: Option<Arc<Owner>>,
    /// Whether standard input was handed out: from then on the command is done here.
    has_begun: Cell<bool>,
    /// Everything that was read of it, where that is known: with it the command can still be handed over.
    taken: RefCell<Option<Vec<u8>>>,
    is_fed: bool,
    is_elsewhere: bool,
    acting: Option<Acting>,
    /// While this holds, Ctrl-C ends the process at once.
    pub(crate) ends_at_once: Arc<AtomicBool>,
}

/// Who gave a command that this process does for another.
#[derive(Debug)]
pub(crate) struct Caller {
    pub(crate) env: Environment,
    pub(crate) here: PathBuf,
    pub(crate) owner: Arc<Owner>,
    /// Whether its standard input is what the command reads, whatever file it names.
    pub(crate) is_fed: bool,
    /// Whether it may be on another machine: then no path that it names means anything here.
    pub(crate) is_elsewhere: bool,
    /// The agent that it is, where it is a process of a session.
    pub(crate) acting: Option<Acting>,
}

impl Context {
    /// `flags` are the settings that the command line itself makes.
    pub(crate) fn new(
        data_dir: Option<PathBuf>,
        flags: Vec<Flag>,
        stdin: Stdin,
        caller: Option<Caller>,
        ends_at_once: Arc<AtomicBool>,
    ) -> Self {
        let is_elsewhere = caller.as_ref().is_some_and(|caller| caller.is_elsewhere);
        let (env, here, owner, is_fed, acting) = match caller {
            Some(Caller { env, here, owner, is_fed, acting, .. }) => {
                (env, Some(here), Some(owner), is_fed, acting)
            }
            None => (Environment::default(), None, None, stdin.is_fed(), None),
        };
        let given = data_dir.or_else(|| env.path("BATON_DATA_DIR"));
        let has_begun = Cell::new(false);
        let taken = RefCell::new(None);
        Context {
            env,
            given,
            flags,
            stdin,
            here,
            owner,
            has_begun,
            taken,
            is_fed,
            is_elsewhere,
            acting,
            ends_at_once,
        }
    }

    /// Whether whoever gave the command may be on another machine.
    pub(crate) fn is_elsewhere(&self) -> bool {
        self.is_elsewhere
    }

    /// The process that owns the data directory, where this is done by it.
    pub(crate) fn owner(&self) -> Option<&Arc<Owner>> {
        self.owner.as_ref()
    }

    /// The agent that gives the command from within its session; nobody, where a person gives it.
    pub(crate) fn acting(&self) -> Option<&Acting> {
        self.acting.as_ref()
    }

    /// Who acts: the agent of a session, or the person at the terminal.
    pub(crate) fn actor(&self) -> Actor {
        self.acting.as_ref().map_or_else(operator, |acting| executor(&acting.agent))
    }

    /// A variable of this very process, also where it serves another: a switch of whoever decides.
    pub(crate) fn own_variable(&self, name: &str) -> Option<String> {
        std::env::var(name).ok().filter(|value| !value.is_empty())
    }

    /// Where a path leads that whoever gave the command named.
    pub(crate) fn path(&self, path: &Path) -> PathBuf {
        match &self.here {
            Some(here) => here.join(path),
            None => path.to_owned(),
        }
    }

    /// A file that whoever gave the command named.
    pub(crate) fn name(&self, path: &Path) -> Named {
        Named { shown: path.to_owned(), real: self.path(path) }
    }

    /// The working directory of whoever gave the command.
    pub(crate) fn here(&self) -> io::Result<PathBuf> {
        self.here.clone().map_or_else(std::env::current_dir, Ok)
    }

    /// Standard input. Whoever asks for it may read it, so before the first time a command that another process should do is handed over.
    pub(crate) fn stdin(&self) -> Result<Stdin, Stop> {
        if !self.has_begun.get() {
            self.reach_with(Feeding::Input)?;
            self.has_begun.set(true);
        }
        Ok(self.stdin.clone())
    }

    /// Says what was read of standard input so far, which is all that was read.
    pub(crate) fn has_taken(&self, bytes: &[u8]) {
        if self.owner.is_none() {
            self.taken.replace(Some(bytes.to_vec()));
        }
    }

    /// Whether the command's input comes on standard input, whatever file it names.
    pub(crate) fn is_fed(&self) -> bool {
        self.is_fed
    }

    /// Whether whoever handed the command over has gone.
    pub(crate) fn is_abandoned(&self) -> bool {
        self.stdin.is_abandoned()
    }

    /// Whether this process owns the data directory and does the command for another.
    pub(crate) fn is_served(&self) -> bool {
        self.owner.is_some()
    }

    /// Hands the command over if another process owns the data directory and takes commands. For commands that do something before they write.
    pub(crate) fn reach(&self) -> Result<(), Stop> {
        self.reach_with(Feeding::Nothing)
    }

    fn reach_with(&self, feeding: Feeding) -> Result<(), Stop> {
        if self.owner.is_some() {
            return Ok(());
        }
        // Without a ledger there is nobody to reach, and whoever needs one says so.
        let Ok(layout) = self.layout() else { return Ok(()) };
        if matches!(lock::holder(&layout), Ok(Some(_)))
            && let Some(stream) = socket::connect(self, &layout)
        {
            return Err(Stop::HandOver(Box::new(HandOver { stream, feeding })));
        }
        Ok(())
    }

    /// Where `init` makes a data directory: what was asked for, else `.baton` right here.
    pub(crate) fn new_data_dir(&self) -> PathBuf {
        self.path(self.given.as_deref().unwrap_or(Path::new(".baton")))
    }

    /// The data directory, if there is one: given, else `.baton` here or above, else the user's own.
    pub(crate) fn find_data_dir(&self) -> Option<PathBuf> {
        self.find_data_dir_from(&self.here().ok()?)
    }

    fn find_data_dir_from(&self, here: &Path) -> Option<PathBuf> {
        if let Some(given) = &self.given {
            return Some(self.path(given));
        }
        let above = here.ancestors().map(|dir| dir.join(".baton")).find(|dir| dir.is_dir());
        above.or_else(|| {
            let own = self.env.base("XDG_DATA_HOME", ".local/share")?.join("baton");
            own.join("events").is_dir().then_some(own)
        })
    }

    /// The paths of the data directory in use.
    pub(crate) fn layout(&self) -> Result<Layout, CliError> {
        self.layout_of(self.find_data_dir(), "here")
    }

    /// The paths of the data directory that a command in another directory would use.
    pub(crate) fn layout_from(&self, here: &Path) -> Result<Layout, CliError> {
        self.layout_of(self.find_data_dir_from(here), &format!("in {}", here.display()))
    }

    fn layout_of(&self, dir: Option<PathBuf>, place: &str) -> Result<Layout, CliError> {
        let Some(dir) = dir else {
            let what = format!("no data directory {place} or above");
            return Err(CliError::new(Code::NoLedger, what).hint("baton init"));
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

    /// The home of whoever gave the command.
    pub(crate) fn home(&self) -> Option<PathBuf> {
        self.env.path("HOME").filter(|dir| dir.is_absolute())
    }

    /// Where the system keeps what lives as long as the user is logged in.
    pub(crate) fn runtime_dir(&self) -> Option<PathBuf> {
        self.env.path("XDG_RUNTIME_DIR").filter(|dir| dir.is_absolute())
    }

    /// Where private keys are kept.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, CliError> {
        let state = self.env.path("BATON_STATE_DIR").map(|dir| self.path(&dir));
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

    /// What the command line sets and the process that owns the data directory does not heed. What is wrong with it says the command itself.
    pub(crate) fn unheeded(&self) -> Vec<String> {
        let Some(owner) = self.owner.as_ref().filter(|_| !self.flags.is_empty()) else { return Vec::new() };
        let theirs = self.config(Some(owner.workspace.layout.root()));
        theirs.map(|theirs| owner.unheeded(&self.flags, &theirs)).unwrap_or_default()
    }

    /// The whole configuration, typed.
    pub(crate) fn settings(&self, data_dir: Option<&Path>) -> Result<Settings, CliError> {
        Ok(self.config(data_dir)?.settings())
    }

    /// How the journal writes.
    pub(crate) fn options(&self, data_dir: &Path) -> Result<Options, CliError> {
        Ok(self.settings(Some(data_dir))?.ledger)
    }

    /// Opens the ledger for writing and says what had to be mended. Where another process owns it and takes commands, the command is handed
    /// over instead; in the process that owns it, this is what it owns.
    pub(crate) fn write(&self, ui: &Ui) -> Result<Writing, Stop> {
        let has_begun = self.has_begun.get();
        let passes = !has_begun || self.taken.borrow().is_some();
        match self.write_or_pass(ui, passes) {
            Err(Stop::HandOver(mut hand_over)) if has_begun => {
                let taken = self.taken.take().unwrap_or_default();
                hand_over.feeding = Feeding::Rest(taken, Rest::Stdin(self.stdin.clone()));
                Err(Stop::HandOver(hand_over))
            }
            ended => ended,
        }
    }

    /// The same for a command that can pass on what it has read: it gets [`Stop::HandOver`] also where it has begun, and says in it what is
    /// left to do.
    pub(crate) fn write_on(&self, ui: &Ui) -> Result<Writing, Stop> {
        self.write_or_pass(ui, true)
    }

    fn write_or_pass(&self, ui: &Ui, passes: bool) -> Result<Writing, Stop> {
        if let Some(owner) = &self.owner {
            owner.expect(&self.layout()?)?;
            self.options(owner.workspace.layout.root())?;
            return Ok(Writing::Shared(owner.clone()));
        }
        let mut found = None;
        let opened = self.open(ui, &mut |stream| {
            found = passes.then_some(stream);
            passes
        });
        match found {
            Some(stream) => Err(Stop::HandOver(Box::new(HandOver { stream, feeding: Feeding::Nothing }))),
            None => Ok(opened?),
        }
    }

    /// Opens the ledger for writing in this process. While another one owns it, `found` gets a connection to it where it takes commands, and
    /// says whether the wait ends with that.
    pub(crate) fn open(
        &self,
        ui: &Ui,
        found: &mut dyn FnMut(UnixStream) -> bool,
    ) -> Result<Writing, CliError> {
        let layout = self.layout()?;
        let options = self.options(layout.root())?;
        let mut looked: Option<Instant> = None;
        let mut leaves = || {
            if looked.is_some_and(|at| at.elapsed() < Duration::from_millis(SOCKET_RETRY_MS)) {
                return false;
            }
            looked = Some(Instant::now());
            socket::connect(self, &layout).is_some_and(&mut *found)
        };
        let wait = self.lock_wait()?;
        let workspace = Workspace::open_unless(&layout, &self.state_dir()?, options, wait, &mut leaves)?;
        Acting::expect_no_agent(&crate::sessions::dir_of(&layout))?;
        for name in &workspace.opening.quarantined {
            let kept = layout.quarantine().join(name);
            ui.warn(&format!("a write that was cut off earlier was set aside: {}", kept.display()));
        }
        if workspace.opening.index_rebuilt {
            ui.detail(&format!("the index was rebuilt from {}", count(workspace.journal.size(), "event")));
        }
        Ok(Writing::new(workspace, options.durability))
    }

    /// The trace that a text names. Whoever owns the ledger knows it without reading.
    pub(crate) fn trace(&self, text: &str) -> Result<TraceId, CliError> {
        match &self.owner {
            Some(owner) => {
                owner.expect(&self.layout()?)?;
                crate::ids::trace(&*owner.workspace.journal, text)
            }
            None => crate::ids::trace(&self.visit()?.reader, text),
        }
    }

    /// Opens the ledger for reading: no lock, nothing written.
    pub(crate) fn visit(&self) -> Result<Visit, CliError> {
        visit(&self.layout()?).map_err(CliError::from)
    }
}

/// Opens for reading beside a writer that may be at work.
pub(crate) fn visit(layout: &Layout) -> Result<Visit, OpenError> {
    settled(layout, || Visit::open(layout), |visit| matches!(visit.reader.tail, Tail::Damaged { .. }))
}

/// Reads beside a writer that may be at work: what looks broken is looked at again while it still changes.
pub(crate) fn settled<T>(
    layout: &Layout,
    read: impl Fn() -> Result<T, OpenError>,
    is_damaged: impl Fn(&T) -> bool,
) -> Result<T, OpenError> {
    let mut tries = 0;
    loop {
        let before = Activity::observe(layout);
        let found = read();
        let is_suspect = match &found {
            Ok(found) => is_damaged(found),
            Err(error) => matches!(error, OpenError::Damaged { .. } | OpenError::Cut { .. }),
        };
        tries += 1;
        if !is_suspect || tries >= LIVE_RETRIES || !before.goes_on(layout) {
            return found;
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
pub(crate) enum Writing {
    /// For one command.
    Own { workspace: Box<Workspace>, durability: Durability, since: Instant },
    /// For all the commands that others hand over.
    Shared(Arc<Owner>),
}

impl std::ops::Deref for Writing {
    type Target = Workspace;

    fn deref(&self) -> &Workspace {
        match self {
            Writing::Own { workspace, .. } => workspace,
            Writing::Shared(owner) => &owner.workspace,
        }
    }
}

impl Writing {
    pub(crate) fn new(workspace: Workspace, durability: Durability) -> Self {
        Writing::Own { workspace: Box::new(workspace), durability, since: Instant::now() }
    }

    /// Whether others write at the same time.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Writing::Shared(_))
    }

    /// Whether others have waited long enough, even if there is more to write.
    pub(crate) fn is_due(&self) -> bool {
        match self {
            Writing::Own { since, .. } => since.elapsed() >= Duration::from_millis(HOLD_MS_MAX),
            Writing::Shared(_) => false,
        }
    }

    /// Ends as cleanly as possible after something else has failed, which is what there is to say.
    pub(crate) fn abandon(self) {
        if let Writing::Own { workspace, .. } = self {
            let _ = workspace.close();
        }
    }

    /// Ends cleanly. What was acknowledged is on the disk already, so what fails here is said and is no reason to do it again.
    pub(crate) fn close(self, ui: &Ui) -> Result<(), CliError> {
        let Writing::Own { workspace, durability, .. } = self else { return Ok(()) };
        match workspace.close() {
            Ok(()) => Ok(()),
            Err(error) if durability == Durability::Commit => {
                ui.warn(&format!(
                    "the ledger did not close cleanly; what was acknowledged is recorded: {error}"
                ));
                Ok(())
            }
            Err(error) => Err(error.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often something is read that looks broken until the third time.
    fn looks(layout: &Layout) -> (u32, bool) {
        let tries = Cell::new(0);
        let read = || {
            tries.set(tries.get() + 1);
            Ok(tries.get())
        };
        let found = settled(layout, read, |tries| *tries < 3).unwrap();
        (tries.get(), found >= 3)
    }

    #[test]
    fn what_looks_broken_is_looked_at_again_only_beside_a_writer() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        std::fs::create_dir(layout.events()).unwrap();
        assert_eq!(looks(&layout), (1, false), "nobody writes: it is what it is");
        let _lock = lock::OwnerLock::acquire(&layout, Duration::ZERO).unwrap();
        assert_eq!(looks(&layout), (3, true));
    }
}

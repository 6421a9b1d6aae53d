//! Tools that Baton runs for models, and what keeps them in the workspace.
//!
//! File tools work through [`Root`], which nothing leads out of. Programs run through [`wall`]: the same binary, started between, which shuts itself in
//! before it becomes the program. A tool that ran and has bad news is a result like any other; `failed` is for one that could not be run to its end.
//!
//! Start at [`ToolRunner::run`]. What each tool takes and gives, and what is not prevented, is in `docs/reference/tools.md`.

mod args;
mod child;
mod definitions;
mod files;
mod find;
pub(crate) mod git_dirs;
mod mounts;
mod output;
mod patch;
mod root;
pub mod tree_change;
pub(crate) mod variables;
mod walk;
pub mod wall;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Cursor};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use baton_core::Digest;
use baton_core::session::ToolCall;
use baton_store::ArtifactStore;

pub use definitions::{Definition, definitions};
pub(crate) use root::random;
pub use root::{Refused, Root};
pub use wall::{WALL_WORD, Walled, Walling, wall_report};

use self::args::Args;
use self::git_dirs::GitDirs;
use self::output::{Bounded, bound};
use self::walk::Walk;
use crate::limits::{TOOL_OUTPUT_BYTES, TOOL_TIMEOUT};
use crate::process::Fate;

/// What tools go by.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The workspace.
    pub root: PathBuf,
    /// Places that no tool sees, inside the workspace or not: the data directory, the state directory, and where Baton's socket is, because whoever
    /// can speak to that can have things done outside the wall.
    pub own: Vec<PathBuf>,
    /// A directory for what programs write beside their work; made where it is missing. Not in one of `own`.
    pub tmp: PathBuf,
    /// What programs may read besides the system's own directories and the workspace.
    pub home_read: Vec<PathBuf>,
    /// How long a tool may take, and which may take another time.
    pub timeout: Duration,
    pub timeouts: BTreeMap<String, Duration>,
    /// How much of an output is passed on.
    pub output_bytes: usize,
    /// What programs get besides the allow-list of every command; only they, inside the wall.
    pub env: BTreeMap<String, String>,
    /// By what Baton knows whose a process is. Nothing that a program is given overwrites it.
    pub marks: BTreeMap<String, String>,
    /// Baton's own binary: it stands between and ends a program should this process be killed, and puts up the wall. Without it there is none.
    pub myself: Option<PathBuf>,
}

impl ToolSettings {
    pub fn new(root: impl Into<PathBuf>, tmp: impl Into<PathBuf>) -> Self {
        ToolSettings {
            root: root.into(),
            own: Vec::new(),
            tmp: tmp.into(),
            home_read: Vec::new(),
            timeout: TOOL_TIMEOUT,
            timeouts: BTreeMap::new(),
            output_bytes: TOOL_OUTPUT_BYTES,
            env: BTreeMap::new(),
            marks: BTreeMap::new(),
            myself: None,
        }
    }
}

/// What came of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRan {
    /// For the model, bounded.
    pub output: String,
    /// With which code its program ended, where it ran one.
    pub exit_code: Option<i32>,
    /// It ran, and has bad news.
    pub is_error: bool,
    /// The whole output, where it is longer.
    pub artifact: Option<(Digest, u64)>,
    /// Why it was not run to its end.
    pub failed: Option<String>,
}

/// Runs tools in one workspace.
pub struct ToolRunner {
    settings: ToolSettings,
    root: Root,
    /// The repository, where it is not in the workspace.
    git: Option<GitDirs>,
    store: Option<Arc<dyn ArtifactStore>>,
    /// Everything that runs here ends with it.
    fate: Arc<Fate>,
    /// Who commits: known once it was asked for.
    identity: OnceLock<Vec<(String, String)>>,
}

impl std::fmt::Debug for ToolRunner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolRunner").field("root", &self.settings.root).finish_non_exhaustive()
    }
}

/// What a tool gave, before it is bounded.
enum Gave {
    Text(Result<String, String>),
    Program(child::Ran),
}

impl ToolRunner {
    /// Prepares tools for a workspace. Whole outputs go to the store, where there is one.
    pub fn new(mut settings: ToolSettings, store: Option<Arc<dyn ArtifactStore>>) -> io::Result<Self> {
        for dir in [settings.tmp.clone(), settings.tmp.join("tmp"), settings.tmp.join("home")] {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
        }
        settings.tmp = settings.tmp.canonicalize()?;
        let canonical = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        settings.own = settings.own.iter().map(canonical).collect();
        settings.home_read = settings.home_read.iter().map(canonical).collect();
        variables::checked(settings.env.clone().into_iter().collect())
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidInput, why))?;
        if let Some(own) = settings.own.iter().find(|own| settings.tmp.starts_with(own)) {
            let (tmp, own) = (settings.tmp.display(), own.display());
            let why = format!("{tmp} is in {own}, which programs never see");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        let root = Root::open(&settings.root, settings.own.clone())?;
        settings.root = root.path().to_owned();
        let git = GitDirs::of(root.path()).filter(GitDirs::is_linked);
        Ok(ToolRunner { settings, root, git, store, fate: Arc::default(), identity: OnceLock::new() })
    }

    pub fn root(&self) -> &Root {
        &self.root
    }

    /// What ends a program should this process be killed.
    pub(crate) fn warden(&self) -> Option<PathBuf> {
        self.settings.myself.clone()
    }

    /// Ends everything that runs here, once.
    pub fn fate(&self) -> &Arc<Fate> {
        &self.fate
    }

    /// What stands around the programs that are run here.
    pub fn walled(&self) -> Walled {
        match self.settings.myself {
            Some(_) => wall_report(),
            None => Walled::None("nothing stands between Baton and its programs here".to_owned()),
        }
    }

    /// Runs a tool to its end, within its time and until `stop`.
    pub fn run(&self, call: &ToolCall, stop: &AtomicBool) -> ToolRan {
        let Some(_part) = self.fate.join() else {
            return ToolRan { failed: Some("the session has ended".to_owned()), ..ToolRan::default() };
        };
        let timeout = self.settings.timeouts.get(&call.name).copied().unwrap_or(self.settings.timeout);
        let gave = match Args::new(&call.arguments) {
            Ok(args) => self.dispatch(&call.name, args, timeout, stop),
            Err(why) => Gave::Text(Err(why)),
        };
        let (bounded, exit_code, is_error, failed) = match gave {
            Gave::Text(given) => {
                let (text, is_error) = given.map_or_else(|bad| (bad, true), |good| (good, false));
                (self.bound(&mut Cursor::new(text)), None, is_error, None)
            }
            Gave::Program(child::Ran { mut output, exit_code, is_error, failed }) => {
                (self.bound(&mut output), exit_code, is_error, failed)
            }
        };
        match bounded {
            Ok(Bounded { text, artifact }) => ToolRan { output: text, exit_code, is_error, artifact, failed },
            Err(error) => {
                let failed = Some(format!("its output could not be read: {error}"));
                ToolRan { failed, ..ToolRan::default() }
            }
        }
    }

    /// A place for what a program prints, until [`ToolRunner::keep`] has it.
    pub(crate) fn spool(&self) -> io::Result<File> {
        output::unnamed(&self.settings.tmp)
    }

    /// Everything that was printed: short enough to be told, or where the whole is stored.
    pub(crate) fn keep(&self, mut spool: File) -> io::Result<(String, Option<(Digest, u64)>)> {
        self.bound(&mut spool).map(|Bounded { text, artifact }| (text, artifact))
    }

    fn bound<S: io::Read + io::Seek>(&self, whole: &mut S) -> io::Result<Bounded> {
        bound(whole, self.settings.output_bytes, self.store.as_deref())
    }

    fn dispatch(&self, name: &str, args: Args<'_>, timeout: Duration, stop: &AtomicBool) -> Gave {
        let mut walk = Walk::new(stop, Instant::now() + timeout);
        Gave::Text(match name {
            "read_file" => self.read_file(args),
            "list_files" => self.list_files(args, &mut walk),
            "grep" => self.grep(args, &mut walk),
            "search" => self.search(args, &mut walk),
            "edit_file" => self.edit_file(args),
            "write_file" => self.write_file(args),
            "apply_patch" => self.apply_patch(args),
            "bash" => return self.bash(args, timeout, stop),
            "run_command" => return self.run_command(args, timeout, stop),
            name => match name.strip_prefix("git_").filter(|command| child::is_git_command(command)) {
                Some(command) => return self.git(command, args, timeout, stop),
                None => Err(format!("there is no tool {name:?}; there are {}", definitions::names())),
            },
        })
    }

    /// The directory of a path for programs: relative to the workspace, and in it.
    pub fn place(&self, path: &Path) -> Result<PathBuf, Refused> {
        self.root.dir(path)?;
        Ok(self.root.path().join(self.root.relative(path)?))
    }
}

#[cfg(test)]
mod tests;

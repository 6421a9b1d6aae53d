//! The data directory that this process owns: the ledger, the tasks, and what people should be told of them.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::protocol::exit_signal::parse_flag;
use baton_runtime::Engine;
use baton_runtime::conduct::Guarding;
use baton_runtime::occupancy::Occupancy;
use baton_runtime::scheduler::Wake;
use baton_runtime::session::Broker;
use baton_runtime::work::Crew;
use baton_server::access::Tokens;
use baton_store::{Layout, Workspace};

use super::acting::AgentCalls;
use crate::commands::EXIT_SWITCH;
use crate::config::{Flag, Resolved, TABLE, Value};
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::sessions;

/// A data directory for all the commands that others hand over.
#[derive(Debug)]
pub(crate) struct Owner {
    /// Where it really is.
    root: PathBuf,
    pub(crate) workspace: Workspace,
    pub(crate) engine: Arc<Engine>,
    /// Wakes whoever does what is due.
    pub(crate) wake: Arc<Wake>,
    /// Who works in the workspace.
    pub(crate) occupancy: Occupancy,
    pub(crate) broker: Arc<Broker>,
    pub(crate) crew: Arc<Crew>,
    /// Who may ask over HTTP.
    pub(crate) tokens: Arc<Tokens>,
    /// What agents have done here at the moment.
    pub(crate) agent_calls: Arc<AgentCalls>,
    notices: Mutex<Vec<String>>,
    /// What agents could not do, and when that was last said or left unsaid.
    repeats: Mutex<BTreeMap<String, Instant>>,
    /// The configuration that rules as long as it serves: `section.key` and value.
    rules: BTreeMap<String, Value>,
}

/// Notices that are kept until they are shown; there are seldom any.
const NOTICES_MAX: usize = 1024;

/// After so long without it a notice is news again.
const REPEATS_WAIT: Duration = Duration::from_secs(600);

/// What a process is started with that serves for sessions alone.
pub(crate) const UNTIL_IDLE: &str = "--until-idle";

/// The same for sessions of a process that ends it by itself.
pub(crate) const UNTIL_EOF: &str = "--until-eof";

/// Whether the owner of the data directory with this command ends with its last session.
pub(crate) fn is_until_idle(command: &str) -> bool {
    command.split(' ').any(|word| [UNTIL_IDLE, UNTIL_EOF].contains(&word))
}

/// The same of this very process.
pub(crate) fn ends_with_sessions() -> bool {
    std::env::args_os().any(|word| word == UNTIL_IDLE || word == UNTIL_EOF)
}

impl Owner {
    pub(crate) fn new(
        ctx: &Context,
        workspace: Workspace,
        engine: Engine,
        config: &Resolved,
    ) -> Result<Owner, CliError> {
        let root = workspace.layout.root();
        let root = fs::canonicalize(root).map_err(|error| CliError::io("find", root, &error))?;
        let (engine, wake) = (Arc::new(engine), Arc::new(Wake::default()));
        let rules =
            TABLE.iter().filter_map(|key| Some((key.path(), config.get(key)?.value.clone()))).collect();
        let settings = config.settings();
        let occupancy = Occupancy::new(engine.ground().workspace.clone());
        let broker = sessions::broker(ctx, &workspace, &engine, &settings)?;
        let max_concurrent = settings.scheduler.max_concurrent as usize;
        let heeds_signals = parse_flag(ctx.own_variable(EXIT_SWITCH).as_deref());
        let crew = Crew::new(
            engine.clone(),
            broker.clone(),
            occupancy.clone(),
            wake.clone(),
            max_concurrent,
            heeds_signals,
            Guarding {
                team: settings.team.clone(),
                policy: settings.policy.rules.clone(),
                keys: workspace.keys.clone(),
            },
        );
        let (notices, repeats) = (Mutex::default(), Mutex::default());
        let agent_calls = Arc::default();
        let tokens = Arc::new(Tokens::new(workspace.keys.dir()));
        Ok(Owner {
            root,
            workspace,
            engine,
            wake,
            occupancy,
            broker,
            crew,
            tokens,
            agent_calls,
            notices,
            repeats,
            rules,
        })
    }

    /// What a caller sets for its command and does not get, in sentences: what is done here is done as this process was told to.
    pub(crate) fn unheeded(&self, flags: &[Flag], theirs: &Resolved) -> Vec<String> {
        let mut paths: Vec<&str> = flags.iter().map(|flag| flag.path.as_str()).collect();
        paths.sort_unstable();
        paths.dedup();
        let told = paths.iter().filter_map(|path| {
            let key = TABLE.iter().find(|key| key.path() == **path)?;
            let (asked, rules) = (theirs.get(key).map(|setting| &setting.value), self.rules.get(*path));
            if asked == rules {
                return None;
            }
            let pid = std::process::id();
            let rules = rules.map_or("unset".to_owned(), |value| value.masked().to_toml());
            Some(format!(
                "--set {path} has no effect: `baton serve` (process {pid}) does this, with {path} = {rules}"
            ))
        });
        told.collect()
    }

    /// Refuses what is about another data directory.
    pub(crate) fn expect(&self, layout: &Layout) -> Result<(), CliError> {
        if fs::canonicalize(layout.root()).is_ok_and(|root| root == self.root) {
            return Ok(());
        }
        let what = format!(
            "the command is about {}, and this process owns {}",
            layout.root().display(),
            self.root.display()
        );
        Err(CliError::new(Code::NotServed, what))
    }

    /// Takes the engine's notices; whoever serves is told of them too.
    pub(crate) fn take_notices(&self) -> Vec<String> {
        let notices = self.engine.take_notices();
        self.tell(notices.clone());
        notices
    }

    /// Keeps notices for whoever serves.
    pub(crate) fn tell(&self, more: Vec<String>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        let room = NOTICES_MAX.saturating_sub(notices.len());
        notices.extend(more.into_iter().take(room));
    }

    /// Keeps notices for whoever serves, but not what is said again and again: work that cannot begin is tried at every turn.
    pub(crate) fn tell_once(&self, more: Vec<String>) {
        let (mut repeats, now) =
            (self.repeats.lock().unwrap_or_else(PoisonError::into_inner), Instant::now());
        repeats.retain(|_, said| now.duration_since(*said) < REPEATS_WAIT);
        // What finds no room is told, rather too often than never.
        let is_new = |notice: &String| match repeats.len() >= NOTICES_MAX && !repeats.contains_key(notice) {
            true => true,
            false => repeats.insert(notice.clone(), now).is_none(),
        };
        self.tell(more.into_iter().filter(is_new).collect());
    }

    /// Everything that was not shown yet.
    pub(crate) fn drain(&self) -> Vec<String> {
        self.tell(self.engine.take_notices());
        std::mem::take(&mut *self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

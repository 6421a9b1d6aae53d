//! Who has which session: starts them, finds them, ends them, and sees to those that a death of Baton left behind.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use baton_core::Role;
use baton_core::ids::{AgentName, SessionId, Token, TraceId, Uuid7};
use baton_core::session::{ErrorSource, Hook, Rules, SessionEndedData, SessionError, ToolsBy, View};
use baton_core::task::dispatch::Load;
use baton_ledger::key::SecretKey;
use baton_store::{AppendError, ArtifactStore, Journal};

use super::actor::{Actor, Ask, Deadlines, Handle, Signals, Start};
use super::gate::ToolGate;
use super::listing::Shelf;
use super::pass::Pass;
use super::recorder::{Bound, Recorder};
use super::relayed::Led;
use super::snapshot::Snapshot;
use super::spawning::{SESSION_VARIABLE, Surroundings, spawner};
use super::transcript::Transcript;
use crate::clock::Clock;
use crate::harness::{AgentSpec, Drive};
use crate::hooks::HooksError;
use crate::limits::{GATED_PERMISSION_MS, LEFTOVERS_GRACE, LLM_SLACK};
use crate::process::end_leftovers;
use crate::tools::{ToolRunner, ToolSettings, Walling};

/// What sessions stand on.
pub struct Setting {
    pub journal: Arc<dyn Journal>,
    pub key: Arc<SecretKey>,
    pub artifacts: Arc<dyn ArtifactStore>,
    pub clock: Arc<dyn Clock>,
    /// Where each session has a folder.
    pub dir: PathBuf,
    pub boot: String,
    pub agents: BTreeMap<AgentName, AgentSpec>,
    pub bounds: SessionBounds,
    /// Where the hooks are configured: read once, as long as this lives.
    pub hooks: Result<Vec<Hook>, HooksError>,
    pub surroundings: Surroundings,
}

impl std::fmt::Debug for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Setting").field("dir", &self.dir).finish_non_exhaustive()
    }
}

/// What the configuration says of every session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionBounds {
    pub max_sessions: usize,
    pub llm_timeout: Duration,
    pub tool_timeout: Duration,
    pub tool_timeouts: BTreeMap<String, Duration>,
    pub permission_timeout: Duration,
    pub stop_grace: Duration,
    pub exit_grace: Duration,
    pub stderr_lines: usize,
    pub output_bytes: usize,
    /// What programs of tools may read besides the workspace and the system's own.
    pub home_read: Vec<PathBuf>,
    /// Whether a conversation that Baton's end cut short is gone on with.
    pub resume: bool,
}

/// A session that is to begin.
pub struct Begin {
    pub agent: AgentName,
    /// Where it works, by its real name: whatever a link leads to is not what was meant.
    pub cwd: PathBuf,
    pub bound: Option<Bound>,
    /// Its id, where somebody had to know that before.
    pub id: Option<SessionId>,
    /// One that has ended and is to be gone on with.
    pub resumes: Option<SessionId>,
    /// Gets the exit signals that the agent writes.
    pub signals: Option<Signals>,
    /// What stands between it and its tools, and the part that it plays, where its work is guarded.
    pub gate: Option<Arc<dyn ToolGate>>,
    pub part: Option<Part>,
}

/// The part that a session plays in a guarded run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub role: Role,
    /// The trace of the run.
    pub trace: TraceId,
}

impl std::fmt::Debug for Begin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Begin").field("agent", &self.agent).field("cwd", &self.cwd).finish_non_exhaustive()
    }
}

/// Why a session did not begin.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    #[error("there is no agent {0}")]
    UnknownAgent(AgentName),
    #[error("{running} sessions run, and at most {max} may")]
    TooMany { running: usize, max: usize },
    #[error("agent {agent} runs {running} sessions, and at most {max} may")]
    TooManyOfAgent { agent: AgentName, running: usize, max: usize },
    #[error("no directory {0}")]
    NoDirectory(PathBuf),
    #[error("the conversation of {0} cannot be gone on with: {1}")]
    NotResumable(SessionId, String),
    #[error("{0}: {1}")]
    Io(PathBuf, io::Error),
    #[error(transparent)]
    Append(#[from] AppendError),
    #[error("Baton is ending, and begins nothing any more")]
    Ending,
    #[error("agent {0} does not speak the Agent Client Protocol: its harness is {1}")]
    NotRelayable(AgentName, &'static str),
}

/// A session that runs.
#[derive(Debug, Clone)]
pub struct Live {
    pub handle: Handle,
    pub agent: AgentName,
    pub bound: Option<Bound>,
    pub cwd: PathBuf,
    /// What it plays in a guarded run.
    pub part: Option<Part>,
    /// What was known of it when it began.
    pub(super) begun: Arc<Snapshot>,
}

/// All sessions of one data directory.
#[derive(Debug)]
pub struct Broker {
    setting: Setting,
    live: Mutex<Running>,
    pub(super) changed: Condvar,
    pub(super) shelf: Shelf,
    itself: Weak<Broker>,
    /// Where the server listens, if there is one.
    pub(super) door: OnceLock<String>,
}

#[derive(Debug, Default)]
pub(super) struct Running {
    pub(super) sessions: BTreeMap<SessionId, Live>,
    /// Those that are led from outside.
    pub(super) relayed: BTreeMap<SessionId, Led>,
    /// What opens the server to those for tasks.
    pub(super) passes: BTreeMap<SessionId, Pass>,
    /// Begun, and not yet in the list.
    beginning: Vec<AgentName>,
    is_ending: bool,
}

impl Running {
    /// The agent of every session that runs or begins.
    fn agents(&self) -> impl Iterator<Item = &AgentName> {
        let relayed = self.relayed.values().map(|led| &led.agent);
        self.sessions.values().map(|live| &live.agent).chain(relayed).chain(&self.beginning)
    }
}

/// What hears of an end.
pub type OnEnd = Box<dyn FnOnce(&SessionEndedData, &View) + Send>;

impl Broker {
    pub fn new(setting: Setting) -> Arc<Self> {
        Arc::new_cyclic(|itself| Broker {
            setting,
            live: Mutex::default(),
            changed: Condvar::new(),
            shelf: Shelf::default(),
            itself: itself.clone(),
            door: OnceLock::new(),
        })
    }

    pub fn agents(&self) -> &BTreeMap<AgentName, AgentSpec> {
        &self.setting.agents
    }

    pub fn bounds(&self) -> &SessionBounds {
        &self.setting.bounds
    }

    /// What it takes to put up a wall as those around sessions.
    pub fn walling(&self) -> Walling {
        let Surroundings { program, own, .. } = &self.setting.surroundings;
        Walling { myself: program.clone(), own: own.clone() }
    }

    pub(super) fn setting(&self) -> &Setting {
        &self.setting
    }

    /// A new id.
    pub fn new_id(&self) -> SessionId {
        let moment = self.setting.clock.moment();
        SessionId::new(Uuid7::from_parts(moment.now, moment.seed))
    }

    /// The folder of a session.
    pub fn dir_of(&self, id: SessionId) -> PathBuf {
        self.setting.dir.join(id.to_string())
    }

    pub fn get(&self, id: SessionId) -> Option<Live> {
        self.running().sessions.get(&id).cloned()
    }

    pub fn live(&self) -> Vec<Live> {
        self.running().sessions.values().cloned().collect()
    }

    /// How much runs, for whoever hands out work.
    pub fn load(&self, max_concurrent: usize) -> Load {
        let running = self.running();
        let mut load = Load { max_concurrent, ..Load::default() };
        running.agents().for_each(|agent| *load.running.entry(agent.clone()).or_default() += 1);
        load
    }

    /// Begins a session; it goes on by itself. `ended` hears of its end once that is recorded.
    pub fn begin(&self, mut begin: Begin, ended: OnEnd) -> Result<Live, NotBegun> {
        let spec = self
            .setting
            .agents
            .get(&begin.agent)
            .ok_or_else(|| NotBegun::UnknownAgent(begin.agent.clone()))?;
        let _place = self.reserve(spec)?;
        if !begin.cwd.is_dir() {
            return Err(NotBegun::NoDirectory(begin.cwd));
        }
        let load = begin.resumes.map(|before| self.native_id(before)).transpose()?;
        let id = begin.id.unwrap_or_else(|| self.new_id());
        let dir = self.dir_of(id);
        let io = |error| NotBegun::Io(dir.clone(), error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(io)?;
        let mut unfinished = Unfinished { dir: self.setting.dir.clone(), id, is_begun: false };
        let tools = self.tools(&begin.cwd, id).map_err(io)?;
        let transcript = Transcript::open(&dir).map_err(io)?;
        let Setting { journal, key, clock, bounds, hooks, boot, .. } = &self.setting;
        let recorder = Recorder::open(journal.clone(), key.clone(), id, begin.bound.clone(), clock.moment())?;
        let bound = begin.bound.as_ref();
        let snapshot = Snapshot {
            task: bound.map(|bound| bound.task.clone()),
            run: bound.map(|bound| bound.run),
            fence: bound.map(|bound| bound.fence),
            resumes: begin.resumes,
            ..Snapshot::new(
                id,
                begin.agent.clone(),
                spec.harness(),
                recorder.trace(),
                begin.cwd.clone(),
                clock.now(),
            )
        };
        // From here on it is one that lives: whoever comes after a crash looks at it.
        snapshot.save(&dir).map_err(io)?;
        mark_live(&self.setting.dir, id).map_err(io)?;
        self.shelf.add(id);
        let begun = Arc::new(snapshot.clone());
        let tools_by = match spec.drive {
            Drive::Llm { .. } => ToolsBy::Baton,
            Drive::Acp { .. } | Drive::Exec { .. } | Drive::Mock { .. } => ToolsBy::Agent,
        };
        let mut rules = Rules::new(tools_by, hooks.clone().unwrap_or_default());
        rules.permission_ms = match begin.gate {
            // Whoever reviews takes the time that the run has.
            Some(_) => GATED_PERMISSION_MS,
            None => i64::try_from(bounds.permission_timeout.as_millis()).unwrap_or(i64::MAX),
        };
        let start = Start {
            id,
            agent: begin.agent.to_string(),
            harness: spec.harness(),
            rules,
            recorder,
            transcript,
            workspace: begin.cwd.clone(),
            deadlines: Deadlines {
                handshake: spec.waits.handshake,
                inactivity: match spec.drive {
                    // The request has its own deadline, and says more about it.
                    Drive::Llm { .. } => bounds.llm_timeout + LLM_SLACK,
                    _ => spec.waits.inactivity,
                },
                cancel: spec.waits.cancel,
            },
            clock: clock.clone(),
            boot: boot.clone(),
            spawn: spawner(self, spec, id, &dir, &begin, load, &tools),
            asks_before_tools: matches!(spec.drive, Drive::Llm { .. }) && spec.mode.as_deref() == Some("ask"),
            tools: Some(tools),
            faults: hooks.as_ref().err().map(unusable).into_iter().collect(),
            gate: begin.gate.clone(),
            signals: begin.signals.take(),
            dir: dir.clone(),
            snapshot,
        };
        let (itself, tmp) = (self.itself.clone(), tmp_of(id));
        let is_over = Arc::<AtomicBool>::default();
        let over = is_over.clone();
        let handle = Actor::start(start, move |data, view| {
            if let Some(broker) = itself.upgrade() {
                broker.revoke(id);
            }
            // Whatever left its group: what a session started ends with it, before somebody else works in its place.
            end_leftovers(SESSION_VARIABLE, &id.to_string(), LEFTOVERS_GRACE);
            ended(data, view);
            let _ = fs::remove_dir_all(&tmp);
            if let Some(broker) = itself.upgrade() {
                unmark_live(&broker.setting.dir, id);
                over.store(true, Ordering::Release);
                broker.forget(id);
            }
        });
        let handle = handle.inspect_err(|_| self.revoke(id)).map_err(io)?;
        unfinished.is_begun = true;
        let Begin { agent, bound, cwd, part, .. } = begin;
        let live = Live { handle, agent, bound, cwd, part, begun };
        let mut running = self.running();
        // One that has ended already is not listed.
        if !is_over.load(Ordering::Acquire) {
            running.sessions.insert(id, live.clone());
            if running.is_ending {
                // Whoever ends all of them has asked those that were there.
                leave(live.handle.clone());
            }
        }
        Ok(live)
    }

    /// What runs tools in a workspace: for a model, and for agents that are given files or terminals.
    fn tools(&self, cwd: &Path, id: SessionId) -> io::Result<Arc<ToolRunner>> {
        let Setting { bounds, surroundings, artifacts, .. } = &self.setting;
        let settings = ToolSettings {
            own: surroundings.own.clone(),
            timeout: bounds.tool_timeout,
            timeouts: bounds.tool_timeouts.clone(),
            output_bytes: bounds.output_bytes,
            home_read: bounds.home_read.clone(),
            marks: BTreeMap::from([(SESSION_VARIABLE.to_owned(), id.to_string())]),
            myself: Some(surroundings.program.clone()),
            ..ToolSettings::new(cwd, tmp_of(id))
        };
        let tools = ToolRunner::new(settings, Some(artifacts.clone()))?;
        match tools.root().path() == cwd {
            true => Ok(Arc::new(tools)),
            false => Err(io::Error::other(format!("{} is not its real name", cwd.display()))),
        }
    }

    /// Ends every session, and waits for their ends as long as their grace allows.
    pub fn end_all(&self) {
        let handles: Vec<Handle> = {
            let mut running = self.running();
            running.is_ending = true;
            running.sessions.values().map(|live| live.handle.clone()).collect()
        };
        handles.into_iter().for_each(leave);
        let until = Instant::now() + self.setting.bounds.stop_grace + Duration::from_secs(3);
        let mut running = self.running();
        while !running.sessions.is_empty() || !running.beginning.is_empty() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            running = self.changed.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn native_id(&self, before: SessionId) -> Result<String, NotBegun> {
        let not = |why: &str| NotBegun::NotResumable(before, why.to_owned());
        let snapshot = Snapshot::load(&self.dir_of(before)).map_err(|_| not("nothing is kept of it"))?;
        if !snapshot.can_load {
            return Err(not("the agent cannot load a session"));
        }
        snapshot.native_id.ok_or_else(|| not("the agent never named it"))
    }

    pub(super) fn itself(&self) -> Option<Arc<Broker>> {
        self.itself.upgrade()
    }

    /// Whether another session of an agent may begin now.
    pub fn has_place(&self, agent: &AgentName) -> Result<(), NotBegun> {
        let spec = self.setting.agents.get(agent).ok_or_else(|| NotBegun::UnknownAgent(agent.clone()))?;
        self.reserve(spec).map(drop)
    }

    pub(super) fn reserve(&self, spec: &AgentSpec) -> Result<Place<'_>, NotBegun> {
        let mut running = self.running();
        if running.is_ending {
            return Err(NotBegun::Ending);
        }
        let all = running.agents().count();
        let max = self.setting.bounds.max_sessions;
        if all >= max {
            return Err(NotBegun::TooMany { running: all, max });
        }
        let of_agent = running.agents().filter(|name| **name == spec.name).count();
        if let Some(max) = spec.max_sessions.filter(|max| of_agent >= *max) {
            return Err(NotBegun::TooManyOfAgent { agent: spec.name.clone(), running: of_agent, max });
        }
        running.beginning.push(spec.name.clone());
        Ok(Place { broker: self, agent: spec.name.clone() })
    }

    fn forget(&self, id: SessionId) {
        self.running().sessions.remove(&id);
        self.changed.notify_all();
    }

    pub(super) fn running(&self) -> MutexGuard<'_, Running> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Asks a session to end because Baton does, without waiting for it. One that has ended meanwhile needs nothing.
fn leave(handle: Handle) {
    let _ = std::thread::Builder::new().name("ending".into()).spawn(move || handle.ask(Ask::Leave));
}

/// What is on the disk of a session that has not begun: gone, unless it does.
pub(super) struct Unfinished {
    pub(super) dir: PathBuf,
    pub(super) id: SessionId,
    pub(super) is_begun: bool,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if !self.is_begun {
            let _ = fs::remove_dir_all(tmp_of(self.id));
            let _ = fs::remove_dir_all(self.dir.join(self.id.to_string()));
            unmark_live(&self.dir, self.id);
        }
    }
}

/// A place among the sessions that may run, until the session is in the list or did not begin.
pub(super) struct Place<'a> {
    broker: &'a Broker,
    agent: AgentName,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        let mut running = self.broker.running();
        if let Some(at) = running.beginning.iter().position(|agent| *agent == self.agent) {
            running.beginning.swap_remove(at);
        }
        drop(running);
        self.broker.changed.notify_all();
    }
}

/// Where the sessions that run have an empty file each, so that whoever comes after a crash need not look at all that ever were.
pub(super) fn live_dir(dir: &Path) -> PathBuf {
    dir.join("live")
}

pub(super) fn mark_live(dir: &Path, id: SessionId) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(live_dir(dir))?;
    fs::File::create(live_dir(dir).join(id.to_string())).map(drop)
}

pub(super) fn unmark_live(dir: &Path, id: SessionId) {
    // One that stays is looked at once more by whoever opens next.
    let _ = fs::remove_file(live_dir(dir).join(id.to_string()));
}

/// Hooks that cannot be read are told of at the beginning of every session, which goes on without them.
fn unusable(error: &HooksError) -> SessionError {
    let (code, message) = (error.code, error.message.clone());
    SessionError { code, message, retryable: false, source: ErrorSource::Orchestrator }
}

/// Where the programs of a session's tools write beside their work; gone with the session.
pub(super) fn tmp_of(id: SessionId) -> PathBuf {
    std::env::temp_dir().join(format!("baton-{id}"))
}

/// A session's id as events name it.
pub fn token(id: SessionId) -> Option<Token> {
    id.to_string().parse().ok()
}

//! Agents at work on tasks: a claimed task gets a session, the session a prompt, the lease its beats, and the end of it all a judgement.
//!
//! Start at [`Crew::begin`]; [`run`] has the life of one attempt.

mod guarded;
mod prompt;
mod run;
mod worktree;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use baton_core::ids::{AgentName, SessionId, TaskId};
use baton_core::protocol::scan::Found;
use baton_core::task::Status;
use baton_core::task::dispatch::{Assignment, Load, Willing};

use crate::conduct::Guarding;
use crate::dispatch::Dispatcher;
use crate::engine::{Engine, Fault};
use crate::limits::{NOTICES_MAX, WORKTREE_PAUSE};
use crate::occupancy::{Occupancy, WorkspaceGuard};
use crate::scheduler::Wake;
use crate::session::{Ask, Begin, Bound, Broker, NotBegun, Signals, token};

pub(crate) use prompt::text_of;
pub(crate) use run::ending_of;
pub use run::{Attempt, Outcome, RunEnd};
pub(crate) use run::{Pulse, Watched};
pub(crate) use worktree::sweep_homes;
pub use worktree::{Change, Changes, Kind as ChangeKind, Place as ChangePlace, Removed, Worktrees};

/// Everybody who can be given work, and what they do at the moment.
#[derive(Debug)]
pub struct Crew {
    pub(crate) engine: Arc<Engine>,
    pub(crate) broker: Arc<Broker>,
    workspace: Occupancy,
    worktrees: Worktrees,
    max_concurrent: usize,
    /// Whether exit signals are heeded.
    pub(crate) heeds_signals: bool,
    guarding: Guarding,
    /// Woken when something has ended, since something else may begin.
    wake: Arc<Wake>,
    attempts: Mutex<BTreeMap<TaskId, Arc<Attempt>>>,
    /// Held by whoever begins something.
    turn: Mutex<()>,
    notices: Mutex<Vec<String>>,
    /// Tasks whose worktree could not be made, and when that was. They are not handed out for a while; a person may begin one at any time.
    without_place: Mutex<BTreeMap<TaskId, Instant>>,
}

/// Why no attempt began.
#[derive(Debug, thiserror::Error)]
pub enum NotStarted {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error(transparent)]
    Session(#[from] NotBegun),
    #[error("{who} works in {dir}; one task at a time is worked on there")]
    Occupied { who: String, dir: PathBuf },
    #[error("a worktree for {task} could not be made: {why}")]
    Worktree { task: TaskId, why: String },
    #[error("the team of the guarded task {task} cannot play: {why}")]
    Team { task: TaskId, why: String },
}

/// Where an attempt works, and what keeps others out of it.
struct Place {
    dir: PathBuf,
    guard: Option<WorkspaceGuard>,
}

impl Crew {
    pub fn new(
        engine: Arc<Engine>,
        broker: Arc<Broker>,
        workspace: Occupancy,
        wake: Arc<Wake>,
        max_concurrent: usize,
        heeds_signals: bool,
        guarding: Guarding,
    ) -> Arc<Self> {
        let worktrees = Worktrees::new(workspace.dir(), Some(broker.walling()));
        Arc::new(Crew {
            engine,
            broker,
            workspace,
            worktrees,
            max_concurrent,
            heeds_signals,
            guarding,
            wake,
            attempts: Mutex::default(),
            turn: Mutex::default(),
            notices: Mutex::default(),
            without_place: Mutex::default(),
        })
    }

    pub fn broker(&self) -> &Arc<Broker> {
        &self.broker
    }

    /// Keeps work from being handed out meanwhile: for whoever makes a task and begins it in one go.
    pub fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The attempt that is made at a task right now.
    pub fn attempt(&self, task: &TaskId) -> Option<Arc<Attempt>> {
        self.attempts().get(task).cloned()
    }

    /// Claims a task for an agent and sets it to work. The attempt goes on by itself.
    pub fn begin(self: &Arc<Self>, task: &TaskId, agent: &AgentName) -> Result<Arc<Attempt>, NotStarted> {
        let (found, _) = self.engine.task(task)?;
        if found.is_held_to_rules() {
            return self.begin_guarded(&found, agent);
        }
        let spec = self.broker.agents().get(agent).cloned();
        let spec = spec.ok_or_else(|| NotBegun::UnknownAgent(agent.clone()))?;
        let id = self.broker.new_id();
        let place = self.place(task, spec.worktree, id)?;
        let trace = found.trace;
        let claimed = self.engine.claim(task, agent, None, token(id))?;
        let bound = Bound { task: task.clone(), run: claimed.run, fence: claimed.lease.fence, trace };
        let resumes = self.broker.resumable(task, agent);
        let attempt = Arc::new(Attempt::new(bound.clone(), agent.clone(), id));
        let begin = Begin {
            gate: None,
            part: None,
            signals: self.heeds_signals.then(|| self.signals_to(&attempt)),
            agent: agent.clone(),
            cwd: place.dir.clone(),
            bound: Some(bound),
            id: Some(id),
            resumes,
        };
        let telling = attempt.clone();
        let live =
            match self.broker.begin(begin, Box::new(move |data, _| telling.session_ended(data.clone()))) {
                Ok(live) => live,
                Err(why) => {
                    self.give_back(&attempt, &why)?;
                    return Err(why.into());
                }
            };
        attempt.set_live(live.clone());
        self.attempts().insert(task.clone(), attempt.clone());
        let (crew, working) = (self.clone(), attempt.clone());
        let work = move || {
            let end = working.work(&crew, &spec);
            drop(place.guard);
            crew.attempts().remove(&working.bound().task);
            working.finish(end);
            crew.wake.wake();
        };
        if let Err(error) = std::thread::Builder::new().name("attempt".into()).spawn(work) {
            self.attempts().remove(task);
            // One that has ended meanwhile needs nothing.
            let _ = live.handle.ask(Ask::Finish);
            let why = NotBegun::Io(self.workspace.dir().to_owned(), error);
            self.give_back(&attempt, &why)?;
            return Err(why.into());
        }
        Ok(attempt)
    }

    /// Takes the exit signals of an attempt's agent; what is none is told.
    fn signals_to(self: &Arc<Self>, attempt: &Arc<Attempt>) -> Signals {
        let (crew, attempt) = (Arc::downgrade(self), Arc::downgrade(attempt));
        Box::new(move |found| match (found, attempt.upgrade(), crew.upgrade()) {
            (Found::Signal(signal), Some(attempt), _) => attempt.take_signal(signal),
            (Found::Invalid(error), Some(attempt), Some(crew)) => {
                crew.notice(format!("{}: an exit signal that is none: {error}", attempt.bound().task));
            }
            _ => {}
        })
    }

    /// Ends every attempt, as a person's stop would, and waits for that.
    pub fn end_all(&self) {
        let all: Vec<Arc<Attempt>> = self.attempts().values().cloned().collect();
        all.iter().for_each(|attempt| attempt.leave());
        all.iter().for_each(|attempt| drop(attempt.wait()));
    }

    /// What somebody should be told, once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(text);
        }
    }

    /// Says something that somebody has to do before anything goes on: at once.
    pub(crate) fn notice_now(&self, text: String) {
        self.notice(text);
        self.wake.wake();
    }

    fn place(&self, task: &TaskId, is_apart: bool, session: SessionId) -> Result<Place, NotStarted> {
        // Whoever reviews or goes on sees the work where it was done.
        if is_apart || self.worktrees.has(task) {
            let opened = self.worktrees.open(task);
            let dir = opened
                .map_err(|error| NotStarted::Worktree { task: task.clone(), why: error.to_string() })?;
            return Ok(Place { dir, guard: None });
        }
        let dir = self.workspace.dir();
        let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
        match self.workspace.try_enter(&session.to_string()) {
            Some(guard) => Ok(Place { dir, guard: Some(guard) }),
            None => {
                let who = self.workspace.who().unwrap_or_else(|| "somebody".to_owned());
                Err(NotStarted::Occupied { who, dir })
            }
        }
    }

    /// A claim without a session is no attempt: the task waits as before.
    fn give_back(&self, attempt: &Attempt, why: &dyn std::fmt::Display) -> Result<(), Fault> {
        self.notice(format!("{}: {why}", attempt.bound().task));
        match self.engine.release(&attempt.holder()) {
            Ok(_) | Err(Fault::Refused(_)) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Removes what tasks that are done no longer need.
    pub fn tidy(&self, task: &TaskId) {
        let is_done =
            self.engine.look(|board| board.get(task).is_some_and(|task| task.status == Status::Done));
        if !matches!(is_done, Ok(true)) {
            return;
        }
        if let Some(notice) = self.worktrees.tidy(task) {
            self.notice(notice);
        }
    }

    fn without_place(&self) -> MutexGuard<'_, BTreeMap<TaskId, Instant>> {
        self.without_place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn attempts(&self) -> MutexGuard<'_, BTreeMap<TaskId, Arc<Attempt>>> {
        self.attempts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Dispatcher for Arc<Crew> {
    fn willing(&self) -> Vec<Willing> {
        let willing = self.broker.agents().values().map(|spec| Willing {
            name: spec.name.clone(),
            roles: spec.roles.clone(),
            max_sessions: spec.max_sessions.unwrap_or(self.max_concurrent),
            takes_any: spec.takes_any(),
            is_shared: !spec.worktree,
        });
        willing.collect()
    }

    fn load(&self) -> Load {
        let mut without = self.without_place();
        without.retain(|_, since| since.elapsed() < WORKTREE_PAUSE);
        let set_aside = without.keys().cloned().collect();
        let is_shared_taken = self.workspace.who().is_some();
        let executor = self.executor();
        Load { is_shared_taken, set_aside, executor, ..self.broker.load(self.max_concurrent) }
    }

    fn start(&self, assignment: &Assignment) -> Result<bool, Fault> {
        let _turn = self.turn();
        match self.begin(&assignment.task, &assignment.agent) {
            Ok(_) => Ok(true),
            // Somebody was quicker, or it changed meanwhile: the next round sees it as it is. At the end there is none.
            Err(NotStarted::Fault(Fault::Refused(_) | Fault::Ending) | NotStarted::Occupied { .. }) => {
                Ok(false)
            }
            Err(NotStarted::Fault(fault)) => Err(fault),
            Err(why) => {
                if let NotStarted::Worktree { task, .. } = &why {
                    self.without_place().insert(task.clone(), Instant::now());
                }
                self.notice(format!("{}: {why}", assignment.task));
                Ok(false)
            }
        }
    }
}

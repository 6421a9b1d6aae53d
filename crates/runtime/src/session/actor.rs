//! One session's owner: a thread with a mailbox. What comes is translated, decided, recorded, told and done, in this order and one at a time.
//!
//! Deadlines are this thread's too: the handshake, silence in a turn, permissions that nobody answers, waits before another attempt. Nothing in any
//! protocol supplies them.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::event::Event;
use baton_core::ids::{SessionId, StreamId};
use baton_core::moment::Ids;
use baton_core::protocol::scan::Found;
use baton_core::session::{
    Answer, Decision, Ended, Input, Machine, PermissionKind, ProcessEnd, RetryTarget, Rules,
    SessionEndedData, SessionError, SessionEvent, StateKind, Stated, View,
};
use baton_store::AppendError;
use serde_json::{Map, Value, json};

use super::feed::{Channel, Feed};
use super::gate::{Entry, Gating, ToolGate, Wish};
use super::looking::Looking;
use super::recorder::Recorder;
use super::snapshot::Snapshot;
use super::tool_run::Tooling;
use super::transcript::Transcript;
use crate::clock::Clock;
use crate::harness::signal::Overheard;
use crate::harness::{Failure, Harness, Told};
use crate::limits::MAILBOX_MAX;
use crate::process::Fate;
use crate::telemetry::{Observer, metrics};
use crate::tools::tree_change::Look;
use crate::tools::{ToolRan, ToolRunner};

/// Takes what an agent tells.
pub type Tell = Box<dyn Fn(Told) + Send + Sync>;

/// Starts an agent.
pub type Spawn = Box<dyn FnOnce(Tell) -> std::io::Result<Box<dyn Harness>> + Send>;

/// Takes an exit signal, or what is wrong with one.
pub type Signals = Box<dyn Fn(Found) + Send>;

/// Everything that a session begins with.
pub struct Start {
    pub id: SessionId,
    pub agent: String,
    pub harness: &'static str,
    pub rules: Rules,
    pub recorder: Recorder,
    pub transcript: Transcript,
    pub workspace: PathBuf,
    /// Its own folder.
    pub dir: PathBuf,
    /// What is kept of it there.
    pub snapshot: Snapshot,
    pub deadlines: Deadlines,
    pub clock: Arc<dyn Clock>,
    /// Which start of the machine this is.
    pub boot: String,
    /// Runs tools for a model, and looks whether an agent's turn changed files.
    pub tools: Option<Arc<ToolRunner>>,
    /// Whether somebody is asked before a tool of Baton's own changes something.
    pub asks_before_tools: bool,
    /// What is wrong from the beginning, and stops nobody.
    pub faults: Vec<SessionError>,
    /// Starts the agent, told by way of the function.
    pub spawn: Spawn,
    /// What stands between it and its tools, where its work is guarded.
    pub gate: Option<Arc<dyn ToolGate>>,
    /// Gets every exit signal that the agent's text holds, while it comes. Called by the session's own thread, which it must not wait for.
    pub signals: Option<Signals>,
}

impl std::fmt::Debug for Start {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Start").field("id", &self.id).field("agent", &self.agent).finish_non_exhaustive()
    }
}

/// How long is waited for what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Deadlines {
    /// From the start of the process until it takes input.
    pub handshake: Duration,
    /// In a turn, without a word.
    pub inactivity: Duration,
    /// For the end of a turn that was cancelled.
    pub cancel: Duration,
}

/// What is asked of a session from outside.
#[derive(Debug)]
pub enum Ask {
    Send(String),
    /// A prompt in several parts.
    Prompt(Vec<String>),
    /// The same, and what whoever follows is told of it.
    Remind(Vec<String>, &'static str),
    /// The turn is to end; the session goes on.
    Cancel,
    /// A person wants it to end.
    Stop,
    /// The same because nothing more is wanted of it.
    Finish,
    /// The same because Baton ends: what is cut short by that can be gone on with.
    Leave,
    /// The agent asks a person; whoever asked gets the answer there.
    Question {
        text: String,
        answer: SyncSender<Answer>,
    },
    Permit {
        id: String,
        answer: Answer,
        by: String,
    },
    RetryTool(baton_core::ids::ToolRunId),
    RetryHook(baton_core::ids::HookRunId),
}

/// One thing for the mailbox.
pub(super) enum Letter {
    Told(Told),
    Input(Input),
    /// What the gate said of a permission.
    Gated {
        id: String,
        call: String,
        /// What it was asked about.
        wish: Box<Wish>,
        entered: Result<Entry, String>,
    },
    /// What came of a tool.
    Tool(baton_core::ids::ToolRunId, Box<ToolRan>),
    /// What a look at the work tree saw, by its number.
    Looked(u64, Option<Look>),
    /// With a place for the answer: whether it was taken, or why not.
    Ask(Ask, SyncSender<Result<(), String>>),
}

/// A session that runs, as others hold it.
#[derive(Debug, Clone)]
pub struct Handle {
    id: SessionId,
    mailbox: SyncSender<Letter>,
    feed: Arc<Feed>,
    view: Arc<Mutex<View>>,
    pid: Arc<AtomicU32>,
    stop_reason: Arc<Mutex<String>>,
}

impl std::fmt::Debug for Letter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Letter::Told(told) => told.fmt(f),
            Letter::Input(input) => input.fmt(f),
            Letter::Tool(run, _) => run.fmt(f),
            Letter::Gated { id, .. } => write!(f, "gated {id}"),
            Letter::Looked(number, _) => write!(f, "look {number}"),
            Letter::Ask(ask, _) => ask.fmt(f),
        }
    }
}

impl Handle {
    pub fn id(&self) -> SessionId {
        self.id
    }

    pub fn feed(&self) -> &Arc<Feed> {
        &self.feed
    }

    /// The session as it is.
    pub fn view(&self) -> View {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The number of its process and of that process's group, where there is one at the moment.
    pub fn pid(&self) -> Option<u32> {
        Some(self.pid.load(Ordering::Relaxed)).filter(|pid| *pid != 0)
    }

    /// How its last turn ended, in the agent's word; empty before there was one.
    pub fn stop_reason(&self) -> String {
        self.stop_reason.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it does at the moment.
    pub fn state(&self) -> StateKind {
        self.view.lock().unwrap_or_else(PoisonError::into_inner).state
    }

    /// Asks for something and waits until it is recorded, or refused.
    pub fn ask(&self, ask: Ask) -> Result<(), String> {
        let (answer, answered) = sync_channel(1);
        let over = || "the session has ended".to_owned();
        self.mailbox.send(Letter::Ask(ask, answer)).map_err(|_| over())?;
        answered.recv().unwrap_or_else(|_| Err(over()))
    }
}

/// The owner.
#[derive(Debug)]
pub struct Actor;

impl Actor {
    /// Starts a session. It goes on by itself until its agent has ended; `ended` is told how.
    pub fn start(
        start: Start,
        ended: impl FnOnce(&SessionEndedData, &View) + Send + 'static,
    ) -> std::io::Result<Handle> {
        let (mailbox, letters) = sync_channel(MAILBOX_MAX);
        let feed = Arc::new(Feed::default());
        let view = Arc::<Mutex<View>>::default();
        let pid = Arc::<AtomicU32>::default();
        let stop_reason = Arc::<Mutex<String>>::default();
        let handle = Handle {
            id: start.id,
            mailbox: mailbox.clone(),
            feed: feed.clone(),
            view: view.clone(),
            pid: pid.clone(),
            stop_reason: stop_reason.clone(),
        };
        let mut running = Running::new(start, mailbox, feed, view);
        (running.pid, running.stop_reason) = (pid, stop_reason);
        let (dir, feed) = (running.start.dir.clone(), running.feed.clone());
        let work = move || {
            let ran = catch_unwind(AssertUnwindSafe(|| running.run(&letters)));
            let (data, view) = ran.unwrap_or_else(|_| (broken(&dir), View::default()));
            feed.push(Channel::Ended, &serde_json::to_value(&data).unwrap_or_default());
            ended(&data, &view);
            feed.end();
        };
        std::thread::Builder::new().name("session".into()).spawn(work)?;
        Ok(handle)
    }
}

/// What is going on in the answer of the moment.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) id: StreamId,
    pub(super) seq: u64,
    pub(super) is_over: bool,
}

/// A session as its own thread sees it.
pub(super) struct Running {
    pub(super) start: Start,
    pub(super) machine: Machine,
    pub(super) view: Arc<Mutex<View>>,
    pub(super) mailbox: SyncSender<Letter>,
    /// What it has for itself, once the decision of the moment is done with.
    pub(super) own: VecDeque<Letter>,
    pub(super) feed: Arc<Feed>,
    pub(super) harness: Option<Box<dyn Harness>>,
    /// What was sent last, for another attempt.
    pub(super) sent: Vec<String>,
    /// What goes with the next prompt, after its first part.
    pub(super) more: Vec<String>,
    /// What is said of the next prompt.
    pub(super) remark: Option<&'static str>,
    /// Whoever waits for the answer to a question of theirs.
    pub(super) asking: BTreeMap<String, SyncSender<Answer>>,
    questions: u64,
    /// When a turn that was cancelled must have ended.
    pub(super) cancelled: Option<Instant>,
    pub(super) stream: Option<Stream>,
    /// What the turn used so far, as the agent says.
    pub(super) usage: Option<Value>,
    pub(super) retry: Option<(Timestamp, RetryTarget)>,
    pub(super) permissions: Vec<(Timestamp, String)>,
    /// Which call a permission is for, and which calls were denied.
    pub(super) calls_asked_for: BTreeMap<String, String>,
    pub(super) denied: BTreeSet<String>,
    /// When silence is too long: of a handshake, or of a turn.
    pub(super) silence: Option<(Instant, &'static str)>,
    pub(super) hooks_stop: Arc<AtomicBool>,
    /// What runs for the session ends with it.
    pub(super) fate: Arc<Fate>,
    /// The process of the moment, for whoever asks whose a process is.
    pub(super) pid: Arc<AtomicU32>,
    pub(super) stop_reason: Arc<Mutex<String>>,
    pub(super) tooling: Tooling,
    pub(super) gating: Gating,
    /// The work tree as it was before the turn, and the look at it that is being taken.
    pub(super) tree: Option<Look>,
    pub(super) looking: Option<Looking>,
    pub(super) looks: u64,
    pub(super) began: Instant,
    pub(super) last_tool: Option<String>,
    /// What was said of the end before it came.
    pub(super) blamed: Option<Failure>,
    /// Until when it may live with what it closed, unless it has been told that this will not do.
    pub(super) closed: Option<(Instant, &'static str)>,
    pub(super) overheard: Overheard,
    pub(super) is_stopping: bool,
    /// Whether it is ended for what it did, whoever asks for its end besides.
    pub(super) is_condemned: bool,
    pub(super) ended: Option<SessionEndedData>,
    pub(super) is_end_noted: bool,
    /// What the next decision is recorded with.
    pub(super) noted: Option<Event>,
    pub(super) telemetry: Observer,
}

impl Running {
    fn new(start: Start, mailbox: SyncSender<Letter>, feed: Arc<Feed>, view: Arc<Mutex<View>>) -> Self {
        Running {
            machine: Machine::new(start.id, start.rules.clone()),
            fate: start.tools.as_ref().map_or_else(Arc::default, |tools| tools.fate().clone()),
            telemetry: Observer::new(start.id, metrics()),
            start,
            view,
            mailbox,
            own: VecDeque::new(),
            feed,
            harness: None,
            sent: Vec::new(),
            more: Vec::new(),
            remark: None,
            asking: BTreeMap::new(),
            questions: 0,
            cancelled: None,
            stream: None,
            usage: None,
            retry: None,
            permissions: Vec::new(),
            calls_asked_for: BTreeMap::new(),
            denied: BTreeSet::new(),
            silence: None,
            hooks_stop: Arc::default(),
            pid: Arc::default(),
            stop_reason: Arc::default(),
            tooling: Tooling::default(),
            gating: Gating::default(),
            tree: None,
            looking: None,
            looks: 0,
            began: Instant::now(),
            last_tool: None,
            blamed: None,
            closed: None,
            overheard: Overheard::default(),
            is_stopping: false,
            is_condemned: false,
            ended: None,
            is_end_noted: false,
            noted: None,
        }
    }

    /// Its whole life; gives how it ended.
    fn run(mut self, letters: &Receiver<Letter>) -> (SessionEndedData, View) {
        let mut went = self.begin();
        while went.is_ok() && self.ended.is_none() {
            if let Some(letter) = self.own.pop_front() {
                went = self.take(letter);
                continue;
            }
            went = match letters.recv_timeout(self.next_deadline()) {
                Ok(letter) => self.take(letter),
                Err(RecvTimeoutError::Timeout) => Ok(()),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if went.is_ok() && self.ended.is_none() {
                // Also after a letter: one that never pauses puts no deadline off.
                went = self.do_what_is_due();
            }
        }
        if let Err(error) = went {
            // Without the ledger nothing may be done any more, and nothing is: the agent is ended.
            self.abandon(&error.to_string());
        }
        let data = self.ended.take().unwrap_or_else(lost);
        self.start.snapshot.ended_at = Some(self.start.clock.now());
        self.start.snapshot.ended = Some(data.clone());
        self.save();
        let view = self.view.lock().unwrap_or_else(PoisonError::into_inner).clone();
        (data, view)
    }

    fn begin(&mut self) -> Result<(), AppendError> {
        let Start { agent, harness, workspace, tools, .. } = &self.start;
        let wall = tools.as_ref().map(|tools| tools.walled().to_string());
        let cwd = workspace.display().to_string();
        let fields = json!({"agent": agent, "harness": harness, "cwd": cwd, "wall": wall});
        self.start.snapshot.wall = wall;
        self.start.recorder.note("session.started", object(fields), self.moment())?;
        let (moment, faults) = (self.moment(), std::mem::take(&mut self.start.faults));
        let mut ids = Ids::new(moment);
        let stated = faults.into_iter().map(|fault| Stated {
            id: ids.event(),
            at: moment.now,
            event: SessionEvent::Error(fault),
        });
        self.declare(&stated.collect::<Vec<_>>())?;
        self.decide(Input::Spawn)
    }

    pub(super) fn moment(&self) -> baton_core::moment::Moment {
        self.start.clock.moment()
    }

    /// Decides on one input, records what follows, tells it and does it.
    pub(super) fn decide(&mut self, input: Input) -> Result<(), AppendError> {
        self.telemetry.hear(&input);
        let Decision { events, effects } = self.machine.handle(self.start.id, input, self.moment());
        self.declare(&events)?;
        for effect in effects {
            self.act(effect)?;
        }
        self.watch_silence();
        if self.machine.waits_for().is_none() {
            self.retry = None;
        }
        Ok(())
    }

    /// Records what has become true, then tells it.
    fn declare(&mut self, events: &[Stated]) -> Result<(), AppendError> {
        self.start.recorder.record_after(self.noted.take(), events)?;
        for stated in events {
            self.view.lock().unwrap_or_else(PoisonError::into_inner).apply(&stated.event);
            self.telemetry.observe(stated);
            self.feed.push(Channel::State, &self.state_event(stated));
        }
        Ok(())
    }

    /// The same for what people ask: what does not fit is refused, and recorded as such.
    fn ask(&mut self, ask: Ask) -> Result<Result<(), String>, AppendError> {
        self.remark = if let Ask::Remind(_, remark) = ask { Some(remark) } else { None };
        let input = match ask {
            Ask::Send(text) => Input::UserInput { text },
            Ask::Prompt(blocks) | Ask::Remind(blocks, _) => {
                let mut blocks = blocks.into_iter();
                let text = blocks.next().unwrap_or_default();
                self.more = blocks.collect();
                Input::UserInput { text }
            }
            Ask::Cancel => return self.cancel(),
            Ask::Question { text, answer } => {
                self.questions += 1;
                let id = format!("question-{}", self.questions);
                self.asking.insert(id.clone(), answer);
                Input::PermissionRequested { id, kind: PermissionKind::Question, title: text, call_id: None }
            }
            Ask::Stop | Ask::Finish | Ask::Leave => {
                if !self.is_stopping {
                    self.start.snapshot.is_by_person = matches!(ask, Ask::Stop);
                    self.start.snapshot.is_cut_short = matches!(ask, Ask::Leave);
                }
                self.drop_look()?;
                Input::StopRequested
            }
            Ask::Permit { id, answer, .. } if answer != Answer::Deny && self.is_gated(&id) => {
                let why = "its tools are let through by reviews of its guarded run: baton trace review";
                return Ok(Err(why.to_owned()));
            }
            Ask::Permit { id, answer, by } => Input::PermissionAnswered { id, answer, by },
            Ask::RetryTool(run) => Input::RetryTool { run },
            Ask::RetryHook(run) => Input::RetryHook { run },
        };
        let before = self.machine.clone();
        self.decide(input)?;
        let is_refused = self.machine == before && before.kind() != StateKind::Stopping;
        if is_refused {
            // Nobody will answer: whoever asked learns it by the end of the channel.
            let waits = |id: &String| self.machine.permissions().iter().any(|waiting| waiting.id == *id);
            self.asking.retain(|id, _| waits(id));
        }
        Ok(match is_refused {
            true => Err(format!("a session in {} does not take that", before.kind())),
            false => Ok(()),
        })
    }

    fn take(&mut self, letter: Letter) -> Result<(), AppendError> {
        match letter {
            Letter::Told(told) => self.hear(told),
            Letter::Input(input) => self.decide(input),
            Letter::Tool(run, ran) => self.tool_ran(run, &ran),
            Letter::Gated { id, call, wish, entered } => self.gated(id, call, *wish, entered),
            Letter::Looked(number, seen) => self.looked(number, seen),
            Letter::Ask(ask, answer) => {
                let taken = self.ask(ask)?;
                // Whoever asked may have gone.
                let _ = answer.send(taken);
                Ok(())
            }
        }
    }

    /// Keeps what is known of the session. What cannot be written is missing after a restart, and is no reason to stop now.
    pub(super) fn save(&mut self) {
        let (trace, snapshot) = (self.start.recorder.trace(), &mut self.start.snapshot);
        snapshot.continued = (trace != snapshot.trace).then_some(trace);
        let _ = self.start.snapshot.save(&self.start.dir);
    }

    fn state_event(&self, stated: &Stated) -> Value {
        state_event(self.start.id, &stated.id.to_string(), stated.at, &stated.event)
    }
}

/// An event as the stream of state events has it.
pub(super) fn state_event(session: SessionId, id: &str, at: Timestamp, event: &SessionEvent) -> Value {
    let mut value = json!({
        "eventId": id,
        "sessionId": session.to_string(),
        "timestampMs": at.unix_ms(),
        "type": event.event_type(),
    });
    if let Some(object) = value.as_object_mut() {
        object.extend(event.fields());
    }
    value
}

fn lost() -> SessionEndedData {
    Ended::new(ProcessEnd::Lost("its session ended by a fault of Baton".to_owned())).classify()
}

/// The end of a session whose own thread came to grief: whoever waits for it hears of it all the same.
fn broken(dir: &Path) -> SessionEndedData {
    let data = lost();
    if let Ok(mut snapshot) = Snapshot::load(dir) {
        snapshot.ended = Some(data.clone());
        // What cannot be kept is seen by whoever comes next, and ended then.
        let _ = snapshot.save(dir);
    }
    data
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}

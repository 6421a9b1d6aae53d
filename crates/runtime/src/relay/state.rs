//! One agent and its clients: what waits, what was said, and how a message of a client gets to the agent and back.

use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::ids::{AgentName, SessionId};
use baton_core::session::{Cause, ProcessEnd, SessionEndedData};
use futures::channel::oneshot::{Receiver, Sender, channel};
use serde_json::{Map, Value};

use super::added::TERMINATE;
use super::calls::{Answered, Asked, Call, Calls, is_abstention};
use super::message::{ERROR_INTERNAL, Message, error, result, session_of};
use super::ring::{Kind, Ring};
use super::sessions::AcpSessions;
use crate::agent::{Agent, Exit, Launch, NotWritten};
use crate::clock::Clock;
use crate::harness::Waits;
use crate::limits::RELAY_CALLS_MAX;
use crate::session::Relayed;

/// What became of a message.
#[derive(Debug)]
pub enum Posted {
    /// It is on its way; nothing comes back.
    Taken,
    /// It is answered by this, in any case: by the agent, or by its end.
    Held(Receiver<Answered>),
}

/// One agent that is led from outside.
#[derive(Debug)]
pub struct Relay {
    pub server: String,
    pub agent: AgentName,
    /// What Baton calls the life of this process.
    pub session: SessionId,
    pub created_at: Timestamp,
    pub waits: Waits,
    pub(super) clock: Arc<dyn Clock>,
    process: OnceLock<Agent>,
    pub(super) recorded: Mutex<Relayed>,
    state: Mutex<State>,
    /// Says that the process has ended.
    pub(super) over: Condvar,
}

#[derive(Debug)]
pub(super) struct State {
    pub(super) ring: Ring,
    pub(super) calls: Calls,
    pub(super) sessions: AcpSessions,
    /// What the agent answered to the first `initialize`; later ones get the same.
    pub(super) initialized: Option<Value>,
    initializes: u64,
    pub(super) readers: BTreeMap<u64, Follower>,
    pub(super) last_reader: u64,
    /// Whether there was more than one client: then nobody is sent what others are answered as if it were their own.
    pub(super) is_shared: bool,
    /// Whoever waits until the readers have been told.
    takers: Vec<Waker>,
    has_changed: bool,
    pub(super) is_stopping: bool,
    /// The process has ended, though that is not recorded yet.
    pub(super) is_dying: bool,
    pub(super) ended: Option<SessionEndedData>,
    /// Nobody is to know it any more once it has ended.
    pub(super) is_left: bool,
    /// Nobody is to follow it any more.
    is_closed: bool,
    /// What it is ended for.
    pub(super) blamed: Option<(Cause, String)>,
    pub(super) last_tool: Option<String>,
    heard: Instant,
    used: Instant,
}

/// A reader as the relay knows it.
#[derive(Debug, Default)]
pub(super) struct Follower {
    /// Up to where it has been told.
    pub(super) position: u64,
    pub(super) waker: Option<Waker>,
}

impl Relay {
    /// Starts the process. One that cannot be started has ended, and says why to whoever asks.
    pub(super) fn start(
        server: &str,
        agent: &AgentName,
        waits: Waits,
        clock: Arc<dyn Clock>,
        recorded: Relayed,
        launch: Launch,
    ) -> Arc<Relay> {
        let now = Instant::now();
        let state = State {
            ring: Ring::default(),
            calls: Calls::default(),
            sessions: AcpSessions::default(),
            initialized: None,
            initializes: 0,
            readers: BTreeMap::new(),
            last_reader: 0,
            is_shared: false,
            takers: Vec::new(),
            has_changed: false,
            is_stopping: false,
            is_dying: false,
            ended: None,
            is_left: false,
            is_closed: false,
            blamed: None,
            last_tool: None,
            heard: now,
            used: now,
        };
        let relay = Arc::new(Relay {
            server: server.to_owned(),
            agent: agent.clone(),
            session: recorded.id(),
            created_at: clock.now(),
            waits,
            clock,
            process: OnceLock::new(),
            recorded: Mutex::new(recorded),
            state: Mutex::new(state),
            over: Condvar::new(),
        });
        let listener = relay.clone();
        match Agent::start(launch, move |heard| listener.hear(heard)) {
            Ok(process) => {
                relay.recorded().spawned(process.pid());
                let _ = relay.process.set(process);
            }
            Err(error) => relay.die(Exit::without_process(ProcessEnd::NotSpawned(error.to_string()), false)),
        }
        relay
    }

    /// Takes a message of a client.
    pub fn post(&self, message: Message) -> Posted {
        match message {
            Message::Request { id, method, body } => Posted::Held(self.request(id, method, body)),
            Message::Notification { method, body } => {
                self.change(|state| self.notify(state, &method, &body));
                Posted::Taken
            }
            Message::Reply { id, body } => {
                self.change(|state| self.reply(state, &id, body));
                Posted::Taken
            }
        }
    }

    fn request(&self, id: Value, method: String, mut body: Map<String, Value>) -> Receiver<Answered> {
        let (sender, receiver) = channel();
        self.change(|state| {
            let session = session_of(&body).map(str::to_owned);
            if let Some(answer) = self.own_answer(state, &id, &method, session.as_deref()) {
                return state.answer(vec![(id, sender)], answer);
            }
            if method == "initialize" {
                state.initializes += 1;
                state.is_shared |= state.initializes > 1;
                if let Some(known) = state.initialized.clone() {
                    return state.answer(vec![(id, sender)], result(&Value::Null, &known));
                }
                if let Some(call) = state.calls.find("initialize") {
                    return call.waits.push((id, sender));
                }
            }
            let cwd = body.get("params").and_then(|params| params.get("cwd")).and_then(Value::as_str);
            let cwd = cwd.map(str::to_owned);
            let number = state.calls.add(Call { waits: vec![(id, sender)], method, session, cwd });
            body.insert("id".to_owned(), number.into());
            // One that takes no more is about to end, which answers.
            if let Err(why @ NotWritten::Full) = self.write(&Value::Object(body))
                && let Some(call) = state.calls.take(&number.into())
            {
                state.answer(call.waits, error(&Value::Null, ERROR_INTERNAL, &why.to_string(), None));
            }
        });
        receiver
    }

    /// What Baton answers itself: its own methods, and what the agent cannot be asked.
    fn own_answer(
        &self,
        state: &mut State,
        id: &Value,
        method: &str,
        session: Option<&str>,
    ) -> Option<Value> {
        match method {
            TERMINATE => return Some(self.terminate(state, id, session)),
            "session/list" if state.ended.is_some() || !state.lists_sessions() => {
                return Some(self.list(state, id));
            }
            _ => {}
        }
        if let Some(data) = &state.ended {
            return Some(self.gone(id, data));
        }
        if let Some(data) = session.and_then(|id| state.sessions.get(id)?.ended.as_ref())
            && !matches!(method, "session/load" | "session/resume" | "session/fork")
        {
            return Some(self.gone(id, data));
        }
        if state.calls.waiting.len() >= RELAY_CALLS_MAX {
            // Those whose client has gone away make room.
            state.calls.waiting.retain(|_, call| call.waits.iter().any(|(_, sender)| !sender.is_canceled()));
        }
        let why = match method {
            _ if state.calls.waiting.len() >= RELAY_CALLS_MAX => {
                format!("{RELAY_CALLS_MAX} requests wait for the agent, and no more may")
            }
            "session/new" | "session/load" | "session/fork" if !state.sessions.has_room() => {
                "the agent has as many sessions as one may have".to_owned()
            }
            _ => return None,
        };
        Some(error(id, ERROR_INTERNAL, &why, None))
    }

    fn notify(&self, state: &mut State, method: &str, body: &Map<String, Value>) {
        let _ = self.write(&Value::Object(body.clone()));
        if method == "session/cancel" {
            let session = session_of(body);
            let about = state.calls.asked.values_mut().filter(|asked| asked.session.as_deref() == session);
            about.for_each(|asked| asked.is_due = true);
            self.pass_abstentions(state);
        }
    }

    /// Takes an answer to what the agent asked. The first that decides counts; one that is late is of no interest to anybody.
    fn reply(&self, state: &mut State, id: &Value, body: Map<String, Value>) {
        let Some(asked) = id.as_str().and_then(|name| state.calls.asked.get_mut(name)) else { return };
        let count = asked.given.as_ref().map_or(0, |(_, count)| *count) + 1;
        asked.is_due |= !is_abstention(&body);
        asked.given = Some((body, count));
        self.pass_abstentions(state);
    }

    /// Passes on what nobody else is going to decide.
    pub(super) fn pass_abstentions(&self, state: &mut State) {
        let most = state.readers.len();
        let is_due =
            |asked: &Asked| asked.given.as_ref().is_some_and(|(_, count)| asked.is_due || *count >= most);
        let due = state.calls.asked.extract_if(.., |_, asked| is_due(asked));
        for (_, asked) in due {
            if let Some((mut body, _)) = asked.given {
                body.insert("id".to_owned(), asked.id);
                let _ = self.write(&Value::Object(body));
            }
        }
    }

    /// Writes a message to the agent.
    pub(super) fn write(&self, message: &Value) -> Result<(), NotWritten> {
        match self.process.get() {
            Some(process) => process.write(format!("{message}\n").as_bytes()),
            None => Err(NotWritten::Closed),
        }
    }

    /// Ends the process; everybody is told when it has ended.
    pub fn stop(&self) {
        self.change(|state| self.stop_in(state));
    }

    pub(super) fn stop_in(&self, state: &mut State) {
        state.is_stopping = true;
        if let Some(process) = self.process.get() {
            process.stop();
        }
    }

    /// Ends the process for what it did.
    pub(super) fn condemn(&self, cause: Cause, why: &str) {
        self.change(|state| {
            state.blamed.get_or_insert((cause, why.to_owned()));
        });
        if let Some(process) = self.process.get() {
            process.end();
        }
    }

    /// Ends it because Baton does.
    pub(super) fn cut_short(&self) {
        self.recorded().cut_short();
        self.stop();
    }

    /// Lets everybody go who follows it, once they have been told everything.
    pub(super) fn close(&self) {
        self.change(State::close);
    }

    /// The same once it has ended.
    pub(super) fn leave_when_ended(&self) {
        self.change(|state| match state.ended {
            Some(_) => state.close(),
            None => state.is_left = true,
        });
    }

    /// Waits until the process has ended, within a time.
    pub(super) fn wait(&self, until: Instant) {
        let mut state = self.state();
        while state.ended.is_none() {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            state = self.over.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    pub fn is_alive(&self) -> bool {
        !self.state().is_dying
    }

    /// How it ended, once it has.
    pub fn ended(&self) -> Option<SessionEndedData> {
        self.state().ended.clone()
    }

    /// For how long nothing was heard of the agent, unless it waits for a client.
    pub fn silence(&self) -> Option<Duration> {
        let state = self.state();
        state.calls.asked.is_empty().then(|| state.heard.elapsed())
    }

    /// For how long nobody has used it: nothing waits, nobody follows.
    pub(super) fn idle(&self) -> Duration {
        let state = self.state();
        match state.readers.is_empty() && state.calls.waiting.is_empty() {
            true => state.used.elapsed(),
            false => Duration::ZERO,
        }
    }

    /// Waits until all who follow have been told up to a position.
    pub fn poll_told(&self, position: u64, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.state();
        if state.readers.values().all(|reader| reader.position >= position) {
            return Poll::Ready(());
        }
        state.takers.push(cx.waker().clone());
        Poll::Pending
    }

    pub(super) fn recorded(&self) -> MutexGuard<'_, Relayed> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes something, and wakes whoever waits for that.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        state.used = Instant::now();
        let changed = change(&mut state);
        let wakers = state.wakers();
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
        changed
    }
}

impl State {
    /// Tells everybody.
    pub(super) fn tell(&mut self, kind: Kind, message: &Value) -> u64 {
        self.has_changed = true;
        self.ring.push(kind, message.to_string().into())
    }

    /// Answers whoever waits, each by its own id. Who has gone away is not missed.
    pub(super) fn answer(&mut self, waits: Vec<(Value, Sender<Answered>)>, mut message: Value) {
        for (id, sender) in waits {
            message["id"] = id;
            let text: Arc<str> = message.to_string().into();
            let after = self.ring.push(Kind::Response, text.clone());
            let _ = sender.send(Answered { text, after });
        }
        self.has_changed = true;
    }

    /// The agent said something.
    pub(super) fn hear(&mut self) {
        self.heard = Instant::now();
    }

    pub(super) fn close(&mut self) {
        self.is_closed = true;
        self.has_changed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Whether the agent lists its sessions itself.
    fn lists_sessions(&self) -> bool {
        let capabilities = self.initialized.as_ref().and_then(|known| known.get("agentCapabilities"));
        let listing = capabilities.and_then(|known| known.get("sessionCapabilities")?.get("list"));
        listing.is_some_and(|listing| !listing.is_null() && *listing != false)
    }

    /// Whoever waits for what has changed.
    fn wakers(&mut self) -> Vec<Waker> {
        let mut wakers = Vec::new();
        if std::mem::take(&mut self.has_changed) {
            wakers.extend(self.readers.values_mut().filter_map(|reader| reader.waker.take()));
        }
        wakers
    }

    /// Whoever waits until readers have been told.
    pub(super) fn take_takers(&mut self) -> Vec<Waker> {
        std::mem::take(&mut self.takers)
    }
}

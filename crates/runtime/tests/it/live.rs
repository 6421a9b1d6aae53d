//! A session with any harness, and waiting for what it says.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use baton_core::protocol::scan::Found;
use baton_core::session::{Rules, SessionEndedData, StateKind, ToolsBy, View};
use baton_core::{SessionId, Uuid7};
use baton_runtime::clock::{Clock as _, SystemClock};
use baton_runtime::harness::Harness;
use baton_runtime::session::{
    Actor, Ask, Channel, Deadlines, Handle, Next, Recorder, Start, Tell, Transcript, path_in,
};
use serde_json::Value;

use crate::session::snapshot;
use crate::support::Bench;

pub(crate) const SOON: Duration = Duration::from_secs(60);

/// A session at work, and how it ended.
pub(crate) struct Live {
    pub(crate) bench: Bench,
    pub(crate) handle: Handle,
    pub(crate) workspace: PathBuf,
    pub(crate) signals: Arc<Mutex<Vec<Found>>>,
    ended: Receiver<(SessionEndedData, View)>,
    dir: PathBuf,
    seen: std::cell::Cell<u64>,
}

/// What a session is like.
pub(crate) struct Kind {
    pub(crate) harness: &'static str,
    pub(crate) tools_by: ToolsBy,
    pub(crate) inactivity: Duration,
}

impl Live {
    /// `spawn` gets the workspace.
    pub(crate) fn start(
        kind: &Kind,
        spawn: impl FnOnce(PathBuf, Tell) -> std::io::Result<Box<dyn Harness>> + Send + 'static,
    ) -> Live {
        let bench = Bench::new();
        let clock = Arc::new(SystemClock);
        let moment = clock.moment();
        let id = SessionId::new(Uuid7::from_parts(moment.now, moment.seed));
        let ground = bench.engine.ground().clone();
        let dir = bench.at(&format!("sessions/{id}"));
        std::fs::create_dir_all(&dir).unwrap();
        let workspace = bench.at("work");
        std::fs::create_dir_all(&workspace).unwrap();
        let (place, signals) = (workspace.clone(), Arc::new(Mutex::new(Vec::new())));
        let found = signals.clone();
        let recorder =
            Recorder::open(ground.journal.clone(), ground.ledger_key.clone(), id, None, moment).unwrap();
        let start = Start {
            gate: None,
            id,
            agent: "someone".into(),
            harness: kind.harness,
            rules: Rules::new(kind.tools_by, Vec::new()),
            transcript: Transcript::open(&dir).unwrap(),
            workspace: workspace.clone(),
            deadlines: Deadlines { handshake: SOON, inactivity: kind.inactivity, cancel: SOON },
            snapshot: snapshot(id, &recorder, &workspace),
            recorder,
            dir: dir.clone(),
            boot: "boot".into(),
            tools: None,
            asks_before_tools: false,
            faults: Vec::new(),
            clock,
            spawn: Box::new(move |tell| spawn(place, tell)),
            signals: Some(Box::new(move |signal| found.lock().unwrap().push(signal))),
        };
        let (say, ended) = channel();
        let tell = move |data: &SessionEndedData, view: &View| drop(say.send((data.clone(), view.clone())));
        let handle = Actor::start(start, tell).unwrap();
        Live { bench, handle, workspace, signals, ended, dir, seen: std::cell::Cell::new(0) }
    }

    /// Waits for the next item of the feed that this is true of.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_it: impl Fn(Channel, &Value) -> bool) -> Value {
        until(&self.handle, &self.seen, what, is_it)
    }

    #[track_caller]
    pub(crate) fn until_state(&self, state: StateKind) {
        self.until(state.as_str(), |_, value| {
            value["type"] == "state_changed" && value["to"] == state.as_str()
        });
    }

    /// A prompt to a session that is ready.
    #[track_caller]
    pub(crate) fn prompt(&self, text: &str) {
        self.handle.ask(Ask::Send(text.into())).unwrap();
    }

    /// A whole turn.
    #[track_caller]
    pub(crate) fn turn(&self, text: &str) -> String {
        self.prompt(text);
        let said = self.said();
        self.until_state(StateKind::Ready);
        said
    }

    /// The text of the turn, to its end.
    #[track_caller]
    pub(crate) fn said(&self) -> String {
        let said = std::cell::RefCell::new(String::new());
        self.until("the end of the turn", |channel, value| {
            if value["type"] == "text_delta" {
                said.borrow_mut().push_str(value["payload"]["text"].as_str().unwrap());
            }
            channel == Channel::Stream && (value["type"] == "completed" || value["type"] == "error")
        });
        said.into_inner()
    }

    #[track_caller]
    pub(crate) fn stop(&self) -> (SessionEndedData, View) {
        self.handle.ask(Ask::Stop).unwrap();
        self.end()
    }

    #[track_caller]
    pub(crate) fn end(&self) -> (SessionEndedData, View) {
        self.ended.recv_timeout(SOON).unwrap()
    }

    pub(crate) fn transcript(&self) -> String {
        std::fs::read_to_string(path_in(&self.dir)).unwrap()
    }
}

/// Waits for the next item of a session's feed that this is true of; `seen` is where the last one stood.
#[track_caller]
pub(crate) fn until(
    handle: &Handle,
    seen: &std::cell::Cell<u64>,
    what: &str,
    is_it: impl Fn(Channel, &Value) -> bool,
) -> Value {
    let (end, mut passed) = (Instant::now() + SOON, Vec::new());
    while Instant::now() < end {
        match handle.feed().after(seen.get(), Duration::from_secs(1)) {
            Next::Items(items) => {
                for item in items {
                    seen.set(item.at);
                    if is_it(item.channel, &item.value) {
                        return item.value.as_ref().clone();
                    }
                    passed.push(item.value);
                }
            }
            Next::Nothing => {}
            other => panic!("{what}: {other:?} after {passed:?}"),
        }
    }
    panic!("{what} does not come; {passed:?}");
}

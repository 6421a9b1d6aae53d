//! A session whose agent is the test, and everything that it says.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

use baton_core::session::{Answer, ProcessEnd, Rules, StateKind, StderrOutput, ToolCall, is_mutating};
use baton_core::{SessionId, Timestamp, Uuid7};
use baton_runtime::agent::Exit;
use baton_runtime::clock::Clock;
use baton_runtime::harness::{Asked, Failure, Harness, Progress, Ready, Told, ToolOutput, ToolSeen};
use baton_runtime::session::{
    Actor, Ask, Channel, Handle, Next, Recorder, Spawn, Start, Tell, Transcript, path_in,
};
use serde_json::{Value, json};

use super::{Recording, Words};
use crate::session::{SOON, patient, snapshot};
use crate::support::Bench;

/// The moment at which every recording begins.
const BEGINNING_MS: i64 = 1_770_000_000_000;

/// A clock that goes on by a step whenever an id is asked for, and by nothing else: what is decided in the same order is decided at the same times.
#[derive(Debug)]
struct CountingClock {
    now_ms: AtomicI64,
    count: AtomicU32,
}

impl Clock for CountingClock {
    fn now(&self) -> Timestamp {
        Timestamp::nearest(self.now_ms.load(Ordering::SeqCst))
    }

    fn seed(&self) -> [u8; 10] {
        self.now_ms.fetch_add(5, Ordering::SeqCst);
        let mut seed = [0; 10];
        // The last two bytes are counted on within a decision.
        seed[4..8].copy_from_slice(&self.count.fetch_add(1, Ordering::SeqCst).to_be_bytes());
        seed
    }
}

/// The agent. It does nothing by itself but end when it is asked to.
struct Played {
    tell: Arc<Tell>,
    asked: Sender<()>,
}

impl std::fmt::Debug for Played {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Played")
    }
}

impl Played {
    fn was_asked(&self) -> Result<(), Failure> {
        // Whoever does not listen any more has what it wanted.
        let _ = self.asked.send(());
        Ok(())
    }
}

impl Harness for Played {
    fn prompt(&mut self, _: &[String]) -> Result<(), Failure> {
        self.was_asked()
    }

    fn outputs(&mut self, _: &[ToolOutput]) -> Result<(), Failure> {
        self.was_asked()
    }

    fn again(&mut self) -> Result<(), Failure> {
        self.was_asked()
    }

    fn cancel(&mut self) {}

    fn answer(&mut self, _: &str, _: &Answer) {}

    fn stop(&mut self) {
        (self.tell)(exited(ProcessEnd::Exited(0), None));
    }

    fn pid(&self) -> Option<u32> {
        None
    }
}

/// Something that the session said: its position, and its text.
type Heard = (u64, Channel, String);

/// A session that is being recorded.
pub(super) struct Rig {
    pub(super) handle: Handle,
    tell: Option<Arc<Tell>>,
    asked: Receiver<()>,
    clock: Arc<CountingClock>,
    /// What it said so far, and how much of that was looked at.
    heard: RefCell<(Vec<Heard>, usize)>,
    dir: std::path::PathBuf,
    bench: Bench,
}

impl Rig {
    /// A session that is ready.
    pub(super) fn ready(rules: Rules) -> Rig {
        Rig::prepared(rules, |_| {})
    }

    /// The same with something of its own.
    pub(super) fn prepared(rules: Rules, prepare: impl FnOnce(&mut Start)) -> Rig {
        let rig = Rig::open(rules, prepare);
        rig.tell(Told::Ready(Ready { agent: Some("played".into()), ..Ready::default() }));
        rig.until_state(StateKind::Ready);
        rig
    }

    pub(super) fn open(rules: Rules, prepare: impl FnOnce(&mut Start)) -> Rig {
        let bench = Bench::new();
        let clock =
            Arc::new(CountingClock { now_ms: AtomicI64::new(BEGINNING_MS), count: AtomicU32::new(1) });
        let moment = clock.moment();
        let id = SessionId::new(Uuid7::from_parts(moment.now, moment.seed));
        let ground = bench.engine.ground().clone();
        let dir = bench.at(&format!("sessions/{id}"));
        let workspace = bench.at("work");
        for dir in [&dir, &workspace] {
            std::fs::create_dir_all(dir).unwrap();
        }
        let recorder =
            Recorder::open(ground.journal.clone(), ground.ledger_key.clone(), id, None, clock.moment());
        let recorder = recorder.unwrap();
        let ((say, asked), (give, given)) = (channel(), channel());
        let spawn: Spawn = Box::new(move |tell| {
            let tell = Arc::new(tell);
            give.send(tell.clone()).unwrap();
            Ok(Box::new(Played { tell, asked: say }) as Box<dyn Harness>)
        });
        let mut start = Start {
            gate: None,
            id,
            agent: "played".into(),
            harness: "acp",
            rules,
            transcript: Transcript::open(&dir).unwrap(),
            snapshot: snapshot(id, &recorder, &workspace),
            recorder,
            dir: dir.clone(),
            boot: "boot".into(),
            workspace,
            deadlines: patient(),
            clock: clock.clone(),
            tools: None,
            asks_before_tools: false,
            faults: Vec::new(),
            spawn,
            signals: None,
        };
        prepare(&mut start);
        let handle = Actor::start(start, |_, _| {}).unwrap();
        // One that could not be started gives nothing, and its end is what there is.
        let tell = given.recv_timeout(SOON).ok();
        Rig { handle, tell, asked, clock, heard: RefCell::default(), dir, bench }
    }

    pub(super) fn workspace(&self) -> std::path::PathBuf {
        self.bench.at("work")
    }

    /// Lets time pass for whatever waits.
    pub(super) fn pass_ms(&self, ms: i64) {
        self.clock.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    pub(super) fn ask(&self, ask: Ask) {
        self.handle.ask(ask).unwrap();
    }

    /// Sends a prompt, and waits until the agent has it.
    pub(super) fn prompt(&self, text: &str) {
        self.ask(Ask::Send(text.into()));
        self.until_asked();
    }

    /// Waits until the agent is sent something.
    pub(super) fn until_asked(&self) {
        self.asked.recv_timeout(SOON).unwrap();
    }

    pub(super) fn tell(&self, told: Told) {
        self.tell.as_ref().unwrap()(told);
    }

    pub(super) fn text(&self, text: &str) {
        self.tell(Told::Text { text: text.into(), is_thought: false });
    }

    pub(super) fn thought(&self, text: &str) {
        self.tell(Told::Text { text: text.into(), is_thought: true });
    }

    /// Something about a tool that the agent runs itself.
    pub(super) fn tool(&self, id: &str, name: &str, progress: Progress, output: Option<&str>) {
        let arguments = (progress == Progress::Announced).then(|| json!({"path": format!("{id}.txt")}));
        self.tell(Told::Tool(ToolSeen {
            call_id: id.into(),
            name: Some(name.into()),
            arguments,
            mutating: is_mutating(name),
            progress: Some(progress),
            output: output.map(str::to_owned),
            ..ToolSeen::default()
        }));
    }

    /// A call that Baton is asked to run.
    pub(super) fn call(&self, id: &str, name: &str, arguments: Value) {
        let mutating = is_mutating(name).unwrap();
        self.tell(Told::Calls(ToolCall { call_id: id.into(), name: name.into(), arguments, mutating }));
    }

    pub(super) fn wants(&self, id: &str, title: &str, call: Option<&str>) {
        let call_id = call.map(str::to_owned);
        self.tell(Told::Asked(Asked { id: id.into(), title: title.into(), call_id, wish: None }));
        self.until("it asks", |value| value["type"] == "permission_requested" && value["id"] == id);
    }

    pub(super) fn permit(&self, id: &str, answer: Answer) {
        self.ask(Ask::Permit { id: id.into(), answer, by: "operator".into() });
    }

    /// Ends the answer.
    pub(super) fn end_turn(&self) {
        self.tell(Told::TurnEnded {
            stop: "end_turn".into(),
            usage: Some(json!({"inputTokens": 11, "outputTokens": 7})),
        });
    }

    /// Ends it, and with it the turn.
    pub(super) fn done(&self) {
        self.end_turn();
        self.until_state(StateKind::Ready);
    }

    pub(super) fn exit(&self, process: ProcessEnd, stderr: Option<StderrOutput>) {
        self.tell(exited(process, stderr));
    }

    /// Waits for the next thing of the session's that this is true of.
    #[track_caller]
    pub(super) fn until(&self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let end = Instant::now() + SOON;
        loop {
            let mut heard = self.heard.borrow_mut();
            while let Some((_, _, text)) = heard.0.get(heard.1) {
                let value: Value = serde_json::from_str(text).unwrap();
                heard.1 += 1;
                if is_it(&value) {
                    return value;
                }
            }
            drop(heard);
            assert!(Instant::now() < end, "{what} does not come: {:#?}", self.heard);
            self.hear(Duration::from_millis(500));
        }
    }

    #[track_caller]
    pub(super) fn until_state(&self, state: StateKind) {
        self.until(state.as_str(), |value| value["type"] == "state_changed" && value["to"] == state.as_str());
    }

    /// Waits until a tool or a hook is so.
    #[track_caller]
    pub(super) fn until_run(&self, name: &str, status: &str) -> Value {
        self.until(&format!("{name} {status}"), |value| {
            (value["toolName"] == name || value["hookName"] == name) && value["status"] == status
        })
    }

    /// Takes what came.
    fn hear(&self, time: Duration) -> bool {
        let mut heard = self.heard.borrow_mut();
        let position = heard.0.last().map_or(0, |(at, _, _)| *at);
        match self.handle.feed().after(position, time) {
            Next::Items(items) => {
                let taken = items.iter().map(|item| (item.at, item.channel, item.value.text().to_owned()));
                heard.0.extend(taken);
                true
            }
            Next::Nothing => true,
            Next::Over => false,
            gap @ Next::Gap(_) => panic!("{gap:?}"),
        }
    }

    /// The recording up to what was waited for last, while the session goes on; it is stopped then. Words may not be written yet: for sessions without.
    pub(super) fn cut(self) -> Recording {
        let (view, count) = (self.handle.view(), self.heard.borrow().1);
        let words = self.words();
        self.ask(Ask::Stop);
        self.handle.feed().wait_for_end();
        let mut heard = self.heard.into_inner().0;
        heard.truncate(count);
        Recording { lines: lines(&heard), view, words }
    }

    /// The recording of the whole session, once it has ended.
    pub(super) fn finish(self) -> Recording {
        while self.hear(SOON) {}
        let words = self.words();
        let view = self.handle.view();
        Recording { lines: lines(&self.heard.into_inner().0), view, words }
    }

    pub(super) fn stop(self) -> Recording {
        self.ask(Ask::Stop);
        self.finish()
    }

    fn words(&self) -> Words {
        let mut words = Words::default();
        for line in std::fs::read_to_string(path_in(&self.dir)).unwrap().lines() {
            let piece: Value = serde_json::from_str(line).unwrap();
            let text = piece["text"].as_str().unwrap_or_default();
            match piece["kind"].as_str() {
                Some("text") => words.text.push_str(text),
                Some("thought") => words.thought.push_str(text),
                _ => {}
            }
        }
        words
    }
}

fn exited(process: ProcessEnd, stderr: Option<StderrOutput>) -> Told {
    Told::Exited(Box::new(Exit { stderr, ..Exit::without_process(process, false) }))
}

/// As the server gives them out. How long it took is all that no counting clock makes the same.
fn lines(heard: &[Heard]) -> Vec<String> {
    let line = |(at, channel, text): &Heard| {
        let (name, text) = match channel {
            Channel::State => ("state_event", text.clone()),
            Channel::Stream => ("stream_event", text.clone()),
            Channel::Ended => {
                let mut data: Value = serde_json::from_str(text).unwrap();
                data["duration_ms"] = json!(1000);
                ("ended", data.to_string())
            }
        };
        format!(r#"{{"id":{at},"event":"{name}","data":{text}}}"#)
    };
    heard.iter().map(line).collect()
}

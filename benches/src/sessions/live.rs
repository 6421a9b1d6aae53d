//! Sessions as Baton has them, in this process: a ledger, and agents that are processes.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use baton_core::event::Durability;
use baton_core::session::{EndReason, Rules, StateKind, ToolsBy};
use baton_core::{SessionId, Uuid7};
use baton_runtime::Ground;
use baton_runtime::agent::Launch;
use baton_runtime::clock::{Clock as _, SystemClock};
use baton_runtime::harness::Harness;
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::session::{
    Actor, Ask, Deadlines, Handle, Item, Next, Recorder, Snapshot, Start, Transcript,
};
use baton_store::{Layout, Options, Workspace};
use serde_json::Value;
use tempfile::TempDir;

use crate::fixture::temp_dir;

/// Far beyond anything that is measured: whoever waits this long waits for ever.
const AT_MOST: Duration = Duration::from_secs(120);

/// A data directory with a ledger.
pub(super) struct Place {
    pub(super) dir: TempDir,
    workspace: Workspace,
    ground: Ground,
}

impl Place {
    pub(super) fn new(durability: Durability) -> Place {
        let dir = temp_dir();
        let (layout, state) = (Layout::new(dir.path().join("data")), dir.path().join("state"));
        let options = Options { durability, ..Options::default() };
        let workspace = Workspace::create(&layout, &state, options, Duration::ZERO).expect("a ledger");
        let ground = Ground::of(&workspace, dir.path().to_owned(), Arc::new(SystemClock)).expect("a ground");
        Place { dir, workspace, ground }
    }

    pub(super) fn close(self) {
        drop(self.ground);
        self.workspace.close().expect("closed");
    }

    /// Starts a session and waits until it takes input.
    pub(super) fn session(&self, words: &[String]) -> Live {
        let moment = SystemClock.moment();
        let id = SessionId::new(Uuid7::from_parts(moment.now, moment.seed));
        let dir = self.dir.path().join("data/sessions").join(id.to_string());
        std::fs::create_dir_all(&dir).expect("a folder");
        let cwd = self.dir.path().to_owned();
        let (journal, key) = (self.ground.journal.clone(), self.ground.ledger_key.clone());
        let recorder = Recorder::open(journal, key, id, None, moment).expect("a recorder");
        let agent = "bench-agent".parse().expect("a name");
        let start = Start {
            gate: None,
            id,
            agent: "bench-agent".into(),
            harness: "acp",
            rules: Rules::new(ToolsBy::Agent, Vec::new()),
            transcript: Transcript::open(&dir).expect("a transcript"),
            snapshot: Snapshot::new(id, agent, "acp", recorder.trace(), cwd.clone(), moment.now),
            recorder,
            workspace: cwd.clone(),
            dir,
            deadlines: Deadlines { handshake: AT_MOST, inactivity: AT_MOST, cancel: AT_MOST },
            clock: Arc::new(SystemClock),
            boot: "boot".into(),
            tools: None,
            asks_before_tools: false,
            faults: Vec::new(),
            spawn: Box::new({
                let words = words.to_vec();
                move |tell| {
                    let harness = AcpHarness::start(
                        launch(words, cwd.clone()),
                        Setup { cwd, ..Setup::default() },
                        tell,
                    )?;
                    Ok(Box::new(harness) as Box<dyn Harness>)
                }
            }),
            signals: None,
        };
        let (say, ended) = channel();
        let handle = Actor::start(start, move |data, _| say.send(data.reason).unwrap_or_default())
            .expect("a session begins");
        let mut live = Live { handle, ended, seen: 0 };
        live.until(|item| is_state(item, StateKind::Ready));
        live
    }
}

fn launch(words: Vec<String>, dir: PathBuf) -> Launch {
    let env = BTreeMap::from([("PATH".to_owned(), "/usr/bin:/bin".to_owned())]);
    Launch { words, dir, env, stderr_lines: 50, stderr_copy: None, grace: Duration::from_secs(2) }
}

/// Whether the session has come to a state.
pub(super) fn is_state(item: &Item, state: StateKind) -> bool {
    item.value["type"] == "state_changed" && item.value["to"] == state.as_str()
}

/// A session and whoever follows it.
pub(super) struct Live {
    handle: Handle,
    ended: Receiver<EndReason>,
    seen: u64,
}

impl Live {
    pub(super) fn prompt(&self, text: &str) {
        self.handle.ask(Ask::Send(text.to_owned())).expect("it takes a prompt");
    }

    /// Reads on until an item is the one. Nothing may be missing between.
    pub(super) fn until(&mut self, mut is_it: impl FnMut(&Item) -> bool) {
        loop {
            match self.handle.feed().after(self.seen, AT_MOST) {
                Next::Items(items) => {
                    for item in items {
                        assert_eq!(item.at, self.seen + 1, "the feed has no gap");
                        self.seen = item.at;
                        if is_it(&item) {
                            return;
                        }
                    }
                }
                other => panic!("the session says nothing more: {other:?}"),
            }
        }
    }

    /// Follows a turn to its end and sees that its stream is whole: numbered from 1, with exactly these pieces. Gives how many there were.
    pub(super) fn follow_turn(&mut self, pieces: &[String]) -> usize {
        let (mut seq, mut heard, mut is_over) = (0, 0, false);
        self.until(|item| {
            let value: &Value = &item.value;
            if let Some(number) = value["seq"].as_u64() {
                assert!(!is_over, "nothing follows the end of a stream");
                seq += 1;
                assert_eq!(number, seq, "a stream has no gap");
                match value["type"].as_str() {
                    Some("text_delta") => {
                        assert_eq!(value["payload"]["text"], pieces[heard], "in the order of the agent");
                        heard += 1;
                    }
                    Some("metadata") => {}
                    Some("completed") => is_over = true,
                    other => panic!("an event that was not expected: {other:?}"),
                }
            }
            is_state(item, StateKind::Ready)
        });
        assert!(is_over, "the stream has ended");
        assert_eq!(heard, pieces.len(), "nothing is lost");
        heard
    }

    pub(super) fn stop(&self) {
        self.handle.ask(Ask::Stop).expect("it can be stopped");
        let reason = self.ended.recv_timeout(AT_MOST).expect("an end");
        assert_eq!(reason, EndReason::Terminated, "ended by nobody else");
    }
}

//! A session whose conversation is led from outside: begun, counted, recorded and ended as any other, without a machine of its own.
//!
//! What is recorded is the life of the process: that it was started, that it took input, how it ended. What was said is between its clients and it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use baton_core::ids::{AgentName, SessionId};
use baton_core::moment::Ids;
use baton_core::session::{Reason, SessionEndedData, SessionEvent, StateChanged, StateKind, Stated, View};
use baton_store::AppendError;
use serde_json::{Map, Value, json};

use super::actor::{object, state_event};
use super::broker::{Begin, Broker, NotBegun, Setting, Unfinished, mark_live, tmp_of, unmark_live};
use super::feed::{Channel, Feed};
use super::recorder::Recorder;
use super::snapshot::{Process, Snapshot};
use super::spawning::SESSION_VARIABLE;
use crate::agent::{Launch, RotatingFile};
use crate::harness::Drive;
use crate::limits::{KILLED_WAIT, LEFTOVERS_GRACE};
use crate::process::end_leftovers;

/// A session that is led from outside.
pub struct Relayed {
    broker: Arc<Broker>,
    folder: PathBuf,
    recorder: Recorder,
    snapshot: Snapshot,
    view: View,
    /// For whoever follows: where it stands, and how it ended.
    feed: Arc<Feed>,
    is_over: bool,
}

/// What ends one.
pub type Stop = Arc<dyn Fn() + Send + Sync>;

/// One that runs, as others know it.
pub(super) struct Led {
    pub(super) agent: AgentName,
    state: StateKind,
    /// What was known of it when it began.
    begun: Arc<Snapshot>,
    feed: Arc<Feed>,
    stop: Option<Stop>,
    /// Whether somebody has asked for its end, also before anybody could be told.
    is_stopping: bool,
}

impl std::fmt::Debug for Led {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Led").field("agent", &self.agent).field("state", &self.state).finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Relayed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Relayed").field("id", &self.snapshot.id).finish_non_exhaustive()
    }
}

impl Broker {
    /// Begins the record of a session that is led from outside, and says how its process is to be started.
    ///
    /// Agents without the protocol on their standard streams have none: see [`NotBegun::NotRelayable`].
    pub fn begin_relayed(&self, agent: &AgentName, cwd: &Path) -> Result<(Relayed, Launch), NotBegun> {
        let spec = self.agents().get(agent).ok_or_else(|| NotBegun::UnknownAgent(agent.clone()))?;
        let (Drive::Acp { command } | Drive::Mock { command }) = &spec.drive else {
            return Err(NotBegun::NotRelayable(agent.clone(), spec.harness()));
        };
        let broker = self.itself().ok_or(NotBegun::Ending)?;
        let _place = self.reserve(spec)?;
        if !cwd.is_dir() {
            return Err(NotBegun::NoDirectory(cwd.to_owned()));
        }
        let Setting { journal, key, clock, bounds, surroundings, dir, .. } = self.setting();
        let id = self.new_id();
        let folder = self.dir_of(id);
        let io = |error| NotBegun::Io(folder.clone(), error);
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(io)?;
        let mut unfinished = Unfinished { dir: dir.clone(), id, is_begun: false };
        let recorder = Recorder::open(journal.clone(), key.clone(), id, None, clock.moment())?;
        let (trace, at) = (recorder.trace(), clock.now());
        let snapshot = Snapshot::new(id, agent.clone(), spec.harness(), trace, cwd.to_owned(), at);
        snapshot.save(&folder).map_err(io)?;
        mark_live(dir, id).map_err(io)?;
        self.shelf.add(id);
        let begin = Begin {
            gate: None,
            part: None,
            agent: agent.clone(),
            cwd: cwd.to_owned(),
            bound: None,
            id: Some(id),
            resumes: None,
            signals: None,
        };
        let mut env: BTreeMap<String, String> = spec.environment(&*surroundings.variable);
        env.extend(surroundings.binding(id, &begin));
        let launch = Launch {
            words: command.clone(),
            dir: cwd.to_owned(),
            env,
            stderr_lines: bounds.stderr_lines,
            stderr_copy: Some(RotatingFile::append(folder.join("stderr.log")).map_err(io)?),
            grace: bounds.stop_grace.min(spec.waits.exit),
        };
        let mut relayed = Relayed {
            broker,
            folder: folder.clone(),
            recorder,
            snapshot,
            view: View::default(),
            feed: Arc::default(),
            is_over: false,
        };
        self.add_relayed(&relayed.snapshot, relayed.feed.clone());
        let fields =
            json!({"agent": agent.as_str(), "harness": spec.harness(), "cwd": cwd.display().to_string()});
        relayed.recorder.note("session.started", object(fields), clock.moment())?;
        relayed.change(StateKind::Starting, Reason::Spawned, None)?;
        unfinished.is_begun = true;
        Ok((relayed, launch))
    }

    /// Where a session stands that is led from outside, while it runs.
    pub fn relayed(&self, id: SessionId) -> Option<StateKind> {
        self.running().relayed.get(&id).map(|led| led.state)
    }

    /// What is told of such a session, while it runs. What is said in it is between its clients and it.
    pub fn relayed_feed(&self, id: SessionId) -> Option<Arc<Feed>> {
        self.running().relayed.get(&id).map(|led| led.feed.clone())
    }

    /// Says how such a session is ended.
    pub fn relayed_ends_by(&self, id: SessionId, stop: Stop) {
        let asked = self.running().relayed.get_mut(&id).and_then(|led| {
            let stop = led.stop.insert(stop);
            led.is_stopping.then(|| stop.clone())
        });
        // Not under the lock: what ends it looks at the sessions too.
        if let Some(stop) = asked {
            stop();
        }
    }

    /// Ends such a session, and waits for that as long as its grace allows. Says whether it is over.
    pub fn stop_relayed(&self, id: SessionId) -> bool {
        let stop = self.running().relayed.get_mut(&id).and_then(|led| {
            led.is_stopping = true;
            led.stop.clone()
        });
        if let Some(stop) = stop {
            stop();
        }
        let until = Instant::now() + self.bounds().stop_grace + LEFTOVERS_GRACE + 2 * KILLED_WAIT;
        let mut running = self.running();
        while running.relayed.contains_key(&id) {
            let left = until.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                return false;
            }
            running = self.changed.wait_timeout(running, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        true
    }

    /// One that runs, as a list has it.
    pub(super) fn relayed_row(&self, id: SessionId) -> Option<(Arc<Snapshot>, View)> {
        let running = self.running();
        let led = running.relayed.get(&id)?;
        Some((led.begun.clone(), View { state: led.state, ..View::default() }))
    }

    fn add_relayed(&self, snapshot: &Snapshot, feed: Arc<Feed>) {
        let begun = Arc::new(snapshot.clone());
        let (agent, state) = (begun.agent.clone(), StateKind::Starting);
        let led = Led { agent, state, begun, feed, stop: None, is_stopping: false };
        self.running().relayed.insert(snapshot.id, led);
    }

    fn note_relayed(&self, id: SessionId, state: StateKind) {
        if let Some(led) = self.running().relayed.get_mut(&id) {
            led.state = state;
        }
    }

    fn remove_relayed(&self, id: SessionId) {
        self.running().relayed.remove(&id);
        self.changed.notify_all();
    }
}

impl Relayed {
    pub fn id(&self) -> SessionId {
        self.snapshot.id
    }

    /// Remembers the process, so that it is found should Baton die.
    pub fn spawned(&mut self, pid: u32) {
        self.snapshot.process = Process::of(pid, &self.broker.setting().boot);
        self.save();
    }

    /// Records that it takes input, and what program it says to be.
    pub fn ready(&mut self, program: Option<String>) -> Result<(), AppendError> {
        if self.view.state != StateKind::Starting {
            return Ok(());
        }
        let fields = program.iter().map(|program| ("agent".to_owned(), Value::from(program.as_str())));
        let fields = Map::from_iter(fields);
        self.recorder.note("session.ready", fields, self.broker.setting().clock.moment())?;
        self.change(StateKind::Ready, Reason::HarnessReady, None)?;
        self.snapshot.program = program;
        self.save();
        Ok(())
    }

    /// Remembers that Baton's own end is its end.
    pub fn cut_short(&mut self) {
        self.snapshot.is_cut_short = true;
    }

    /// Records how it ended, once.
    pub fn ended(&mut self, data: &SessionEndedData) -> Result<(), AppendError> {
        if self.snapshot.ended.is_some() {
            return Ok(());
        }
        let clock = self.broker.setting().clock.clone();
        let is_left = self.change(StateKind::Stopped, Reason::HarnessExited, data.exit_code);
        (self.snapshot.ended, self.snapshot.ended_at) = (Some(data.clone()), Some(clock.now()));
        let fields = serde_json::to_value(data).map(object).unwrap_or_default();
        let is_noted = is_left.and_then(|()| self.recorder.note("session.ended", fields, clock.moment()));
        let is_closed = is_noted.and_then(|()| self.recorder.close(data.reason.as_str(), clock.moment()));
        // Shown also where the ledger could not be written: it has ended.
        self.save();
        self.feed.push(Channel::Ended, &serde_json::to_value(data).unwrap_or_default());
        self.feed.end();
        is_closed
    }

    fn change(&mut self, to: StateKind, reason: Reason, exit_code: Option<i32>) -> Result<(), AppendError> {
        let moment = self.broker.setting().clock.moment();
        let changed = StateChanged { from: self.view.state, to, reason, stream_id: None, exit_code };
        let event = SessionEvent::StateChanged(changed);
        self.view.apply(&event);
        self.broker.note_relayed(self.snapshot.id, to);
        let (id, at) = (Ids::new(moment).event(), moment.now);
        let told = state_event(self.snapshot.id, &id.to_string(), at, &event);
        self.recorder.record(&[Stated { id, at, event }])?;
        self.feed.push(Channel::State, &told);
        Ok(())
    }

    fn save(&self) {
        if let Err(error) = self.snapshot.save(&self.folder) {
            tracing::warn!(session = %self.snapshot.id, %error, "what is known of a session cannot be kept");
        }
    }

    /// Sees to what it started and left behind. Nothing of it runs after this.
    pub fn leave(&mut self) {
        if std::mem::replace(&mut self.is_over, true) {
            return;
        }
        let id = self.snapshot.id;
        end_leftovers(SESSION_VARIABLE, &id.to_string(), LEFTOVERS_GRACE);
        let _ = fs::remove_dir_all(tmp_of(id));
        unmark_live(&self.broker.setting().dir, id);
        self.broker.remove_relayed(id);
    }
}

impl Drop for Relayed {
    fn drop(&mut self) {
        self.leave();
    }
}

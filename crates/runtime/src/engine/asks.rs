//! What is asked of tasks: each call decides, records, projects, and gives what the caller wants to know.
//!
//! Before every one, what is due is done: without a running server it is whoever next writes that notices an agent's death.

use baton_core::event::{Actor, ArtifactRef};
use baton_core::ids::{AgentName, RunId, TaskId, Token};
use baton_core::protocol::{self, Body, Message, Reason, Rejection};
use baton_core::task::decide::{
    AfterSession, Approve, CiVerdict, Claim, Decided, Edit, Holder, Log, Moment, Move, New, Reject, Retry,
    SessionEnded, Told, operator,
};
use baton_core::task::{Board, Lease, Papers, Refusal, Task};
use baton_core::{Digest, Timestamp};
use baton_ledger::canonical;
use baton_ledger::hash::sha256;
use baton_store::ArtifactStore as _;
use baton_store::tasks::runs::Heartbeat;
use baton_store::tasks::tree::{Found, RealTree, Tree as _};
use serde_json::{Value, json};

use super::{Engine, Fault, Settings, State, Wished};

/// A lease that was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    pub task: TaskId,
    pub run: RunId,
    pub lease: Lease,
}

/// What became of a message.
#[derive(Debug, Clone, PartialEq)]
pub struct Sent {
    pub rejected: Option<Rejection>,
    /// The types of the events that it led to.
    pub events: Vec<String>,
}

/// A message that is larger, or deeper, is kept as an artifact and not in the event.
const INLINE_BYTES_MAX: usize = 64 << 10;
const INLINE_DEPTH_MAX: usize = 24;

/// What somebody wants of a task, whoever it is and however it came.
#[derive(Debug, Clone, PartialEq)]
pub enum Wish {
    Create(Box<New>),
    Move(Move),
    Edit(Edit),
    Log(Log),
    Retry(Retry),
    Approve(Approve),
    Reject(Reject),
    /// A verdict of CI: a person's report, or Baton's own run.
    Ci(CiVerdict),
}

impl Wish {
    /// The task that it is about; nothing where that is still to be made.
    pub fn task(&self) -> Option<&TaskId> {
        Some(match self {
            Wish::Create(_) => return None,
            Wish::Move(asked) => &asked.task,
            Wish::Edit(asked) => &asked.task,
            Wish::Log(asked) => &asked.task,
            Wish::Retry(asked) => &asked.task,
            Wish::Approve(asked) => &asked.task,
            Wish::Reject(asked) => &asked.task,
            Wish::Ci(verdict) => &verdict.task,
        })
    }

    /// The task that it comes to be about, and what is decided.
    pub(super) fn decide(
        &self,
        board: &Board,
        settings: &Settings,
        by: &Actor,
        moment: Moment,
    ) -> Result<(TaskId, Decided), Refusal> {
        let (task, decided) = match self {
            Wish::Create(new) if !new.guarded && (settings.guards || board.is_in_a_guarded_run(by)) => {
                return board.create(&New { guarded: true, ..(**new).clone() }, by, moment);
            }
            Wish::Create(new) => return board.create(new, by, moment),
            Wish::Move(asked) => (&asked.task, board.transition(asked, by, moment)),
            Wish::Edit(asked) => (&asked.task, board.edit(asked, by, moment)),
            Wish::Log(asked) => (&asked.task, board.log(asked, by, moment)),
            Wish::Retry(asked) => (&asked.task, board.retry(asked, by, moment)),
            Wish::Approve(asked) => (&asked.task, board.approve(asked, by, moment)),
            Wish::Reject(asked) => (&asked.task, board.reject(asked, by, moment)),
            Wish::Ci(verdict) => (&verdict.task, board.ci(verdict, by, settings.rules, moment)),
        };
        Ok((task.clone(), decided?))
    }
}

impl Engine {
    /// Does what is wished for.
    pub fn grant(&self, wish: &Wish, by: &Actor) -> Result<(Task, Papers), Fault> {
        let wished = Wished { wish: wish.clone(), by: by.clone(), moment: None, revs: None };
        self.grant_alone(&mut self.lock(), &wished)
    }

    /// Makes a task.
    pub fn create(&self, new: &New) -> Result<(Task, Papers), Fault> {
        self.create_as(new, &operator())
    }

    /// The same, for somebody else.
    pub fn create_as(&self, new: &New, by: &Actor) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Create(Box::new(new.clone())), by)
    }

    /// Moves a task by hand.
    pub fn transition(&self, asked: &Move) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Move(asked.clone()), &operator())
    }

    /// Changes fields by hand.
    pub fn edit(&self, asked: &Edit) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Edit(asked.clone()), &operator())
    }

    pub fn log(&self, asked: &Log) -> Result<(Task, Papers), Fault> {
        self.log_as(asked, &operator())
    }

    pub fn log_as(&self, asked: &Log, by: &Actor) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Log(asked.clone()), by)
    }

    pub fn retry(&self, asked: &Retry) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Retry(asked.clone()), &operator())
    }

    pub fn approve(&self, asked: &Approve) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Approve(asked.clone()), &operator())
    }

    pub fn reject(&self, asked: &Reject) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Reject(asked.clone()), &operator())
    }

    /// Takes a verdict of CI: a person's report, or Baton's own run.
    pub fn ci(&self, verdict: &CiVerdict, by: &Actor) -> Result<(Task, Papers), Fault> {
        self.grant(&Wish::Ci(verdict.clone()), by)
    }

    /// Gives out no more tasks, from the moment on that this returns. What was given out goes on.
    pub fn end_claims(&self) {
        self.lock().is_ending = true;
    }

    /// Gives a task to an agent. `ttl_ms` is how long, where the configuration's default is not wanted.
    pub fn claim(
        &self,
        task: &TaskId,
        agent: &AgentName,
        ttl_ms: Option<i64>,
        session: Option<Token>,
    ) -> Result<Claimed, Fault> {
        self.claim_at(task, agent, ttl_ms, session, None)
    }

    /// The same, made of a moment that is given.
    pub fn claim_at(
        &self,
        task: &TaskId,
        agent: &AgentName,
        ttl_ms: Option<i64>,
        session: Option<Token>,
        moment: Option<Moment>,
    ) -> Result<Claimed, Fault> {
        let mut state = self.ready_for(task)?;
        if state.is_ending {
            return Err(Fault::Ending);
        }
        let moment = moment.unwrap_or_else(|| self.ground.clock.moment());
        let lease = state.board.get(task).and_then(|task| task.lease.as_ref());
        if lease.is_some_and(|lease| lease.is_over(moment.now, self.beaten_until(&state, task))) {
            // It ended since what was due was done: its run failed, whoever comes now.
            self.tick_locked(&mut state)?;
        }
        let (own_ttl, own_beat_ttl) = state.board.get(task).map_or((None, None), Task::own_ttls_ms);
        let claim = Claim {
            task: task.clone(),
            agent: agent.clone(),
            ttl_ms: ttl_ms.or(own_ttl).unwrap_or(self.settings.lease_ttl_ms),
            beat_ttl_ms: own_beat_ttl.unwrap_or(self.settings.beat_ttl_ms),
            session,
            beaten_until: self.beaten_until(&state, task),
        };
        let (run, _) = self.act(&mut state, |board, _| Ok(board.claim(&claim, moment)?))?;
        let lease = state.board.get(task).and_then(|task| task.lease.clone());
        let lease = lease.ok_or_else(|| Fault::not_found(task))?;
        Ok(Claimed { task: task.clone(), run, lease })
    }

    /// Keeps a lease alive, and gives the moment at which it now ends.
    pub fn beat(&self, holder: &Holder) -> Result<Timestamp, Fault> {
        let mut state = self.ready_for(&holder.task)?;
        let moment = self.ground.clock.moment();
        let holder = &Holder { beaten_until: self.beaten_until(&state, &holder.task), ..holder.clone() };
        let (beat, _) = self.act(&mut state, |board, _| {
            let beat = board.beat(holder, moment)?;
            Ok(((beat.expires_at, beat.beat_until), beat.decided))
        })?;
        let (lease_until, until) = beat;
        if let Some(task) = state.board.get(&holder.task).cloned()
            && let Some(run) = task.live_run()
        {
            if !self.files.has_run_dir(&task.id) {
                // Gone, or something else lies there, which is moved aside and told: the other files of the run are written again too.
                if let Some(was) = state.projected.get_mut(&task.id) {
                    (was.run, was.result) = (None, None);
                }
                self.project(&mut state, &task.id);
            }
            let count = self.files.heartbeat(&task.id, run.id).map_or(0, |beat| beat.count) + 1;
            let beat = Heartbeat { at: moment.now, count, until, lease_until };
            self.files.write_heartbeat(&task, run, &beat).map_err(Fault::files(task.id.as_str()))?;
            state.beats.insert(task.id.clone(), until.min(lease_until));
        }
        Ok(lease_until.min(until))
    }

    /// Gives a task back.
    pub fn release(&self, holder: &Holder) -> Result<(Task, Papers), Fault> {
        self.release_at(holder, None)
    }

    /// The same, made of a moment that is given.
    pub fn release_at(&self, holder: &Holder, moment: Option<Moment>) -> Result<(Task, Papers), Fault> {
        let holder = Holder { beaten_until: self.beaten_until(&self.lock(), &holder.task), ..holder.clone() };
        let mut state = self.ready_for(&holder.task)?;
        let moment = moment.unwrap_or_else(|| self.ground.clock.moment());
        self.act(&mut state, |board, _| Ok(((), board.release(&holder, moment)?)))?;
        self.tick_locked(&mut state)?;
        self.shown(&mut state, &holder.task)
    }

    /// How far the last beat of a task's holder reaches, where its lease looks over and may not be.
    fn beaten_until(&self, state: &State, id: &TaskId) -> Option<Timestamp> {
        let task = state.board.get(id)?;
        let lease = task.lease.as_ref().filter(|lease| lease.is_over(self.now(), None))?;
        let beat = self.files.heartbeat(id, task.live_run()?.id)?;
        Some(lease.beaten_until(beat.until, beat.lease_until))
    }

    /// Takes the end of a session of Baton's own in. `Remind` says that the run goes on.
    pub fn session_end(&self, ended: &SessionEnded) -> Result<AfterSession, Fault> {
        let mut state = self.ready()?;
        let result = state.board.get(&ended.task).and_then(|task| self.found_result(task));
        let ended = &SessionEnded { result, ..ended.clone() };
        let moment = self.ground.clock.moment();
        let (after, _) = self.act(&mut state, |board, settings| {
            Ok(match board.session_end(ended, settings.rules, moment)? {
                AfterSession::Remind => (AfterSession::Remind, Decided::nothing()),
                AfterSession::Decided(decided) => (AfterSession::Decided(decided.clone()), decided),
            })
        })?;
        self.tick_locked(&mut state)?;
        Ok(after)
    }

    /// Routes one message. What is refused is recorded; what is no message is not.
    pub fn send(&self, bytes: &[u8]) -> Result<Sent, Fault> {
        let message = match protocol::read(bytes) {
            Ok(message) => message,
            Err(rejection) => return self.refuse_message(rejection),
        };
        let digest = message_digest(&message);
        let mut state = self.ready_for(&message.task)?;
        let task = state.board.get(&message.task).cloned();
        let raw = Value::Object(message.raw.clone());
        let is_large = bytes.len() > INLINE_BYTES_MAX || depth(&raw) > INLINE_DEPTH_MAX;
        let original = match is_large && task.is_some() {
            true => Some(self.store_bytes(bytes, "application/json", "message.json")?),
            false => None,
        };
        let (has_summary, handoff_ref) = match (&message.body, &task) {
            (Body::Completion(report), Some(task)) => {
                let handoff = "outputs/handoff.md";
                let handoff = self.files.has(task, handoff).then(|| handoff.to_owned());
                (self.has_file(&state, task, &report.summary_ref), handoff)
            }
            _ => (true, None),
        };
        let lease = task.as_ref().and_then(|task| task.lease.as_ref());
        let has_session = lease.is_some_and(|lease| lease.session.is_some());
        let told = Told { message, digest, original, has_summary, handoff_ref, has_session };
        let moment = self.ground.clock.moment();
        let ((rejected, events), _) = self.act(&mut state, |board, settings| {
            let (answer, decided) = board.tell(&told, settings.rules, moment);
            let types = decided.types().into_iter().map(str::to_owned).collect();
            Ok(((answer.err(), types), decided))
        })?;
        self.tick_locked(&mut state)?;
        Ok(Sent { rejected, events })
    }

    fn refuse_message(&self, rejection: Rejection) -> Result<Sent, Fault> {
        let mut events = Vec::new();
        if rejection.reason != Reason::NotAMessage {
            let mut state = self.ready()?;
            let moment = self.ground.clock.moment();
            let (types, _) = self.act(&mut state, |board, _| {
                let decided = board.reject_message(&rejection, moment);
                let types: Vec<String> = decided.types().into_iter().map(str::to_owned).collect();
                Ok((types, decided))
            })?;
            events = types;
        }
        Ok(Sent { rejected: Some(rejection), events })
    }

    /// Stores bytes that an event will cite.
    pub fn store_bytes(&self, bytes: &[u8], media_type: &str, name: &str) -> Result<ArtifactRef, Fault> {
        let mut source = bytes;
        let (sha256, length) = self.ground.artifacts.put(&mut source).map_err(Fault::files(name))?;
        Ok(ArtifactRef { sha256, bytes: length, media_type: media_type.to_owned(), name: name.to_owned() })
    }

    /// Whether a path of a message leads to a file: in the task's folder, in another task's by its id, or in the workspace.
    fn has_file(&self, state: &State, task: &Task, path: &str) -> bool {
        if self.files.has(task, path) {
            return true;
        }
        if let Some(path) = self.by_id(&state.board, path) {
            return matches!(self.files.tree().look(&path), Ok(Some(Found::File(_))));
        }
        let Ok(workspace) = RealTree::open(&self.ground.workspace) else { return false };
        matches!(workspace.look(path), Ok(Some(Found::File(_))))
    }

    /// `tasks/<any>/<id>…` as it is called now: tasks move, and whoever names one need not know where to.
    pub(super) fn by_id(&self, board: &Board, path: &str) -> Option<String> {
        let (_, rest) = path.strip_prefix("tasks/")?.split_once('/')?;
        let (id, rest) = match rest.split_once('/') {
            Some((id, rest)) => (id, format!("/{rest}")),
            None => (rest.strip_suffix(".md")?, ".md".to_owned()),
        };
        let task = board.get(&id.parse().ok()?)?;
        Some(format!("tasks/{}/{id}{rest}", task.status))
    }

    /// Does what is due and gives the state for one call.
    fn ready(&self) -> Result<std::sync::MutexGuard<'_, State>, Fault> {
        let mut state = self.lock();
        self.tick_locked(&mut state)?;
        Ok(state)
    }

    /// The same for a call about one task: what a person did to its file came first.
    pub(super) fn ready_for(&self, id: &TaskId) -> Result<std::sync::MutexGuard<'_, State>, Fault> {
        let mut state = self.ready()?;
        if state.unwritten.contains(id) {
            self.project(&mut state, id);
        }
        self.take_edits_of(&mut state, id)?;
        Ok(state)
    }

    pub(super) fn shown(&self, state: &mut State, id: &TaskId) -> Result<(Task, Papers), Fault> {
        let task = state.board.get(id).cloned().ok_or_else(|| Fault::not_found(id))?;
        let papers = self.papers(state, &task)?;
        Ok((task, papers))
    }
}

/// What makes two messages the same: type, sender, payload. When they were sent does not.
fn message_digest(message: &Message) -> Digest {
    let value = json!({
        "type": message.type_name(),
        "fromAgent": message.from.as_str(),
        "payload": message.raw.get("payload").cloned().unwrap_or(Value::Null),
    });
    sha256(&canonical::to_bytes(&value).unwrap_or_default())
}

/// How deep a value is nested.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(map) => 1 + map.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

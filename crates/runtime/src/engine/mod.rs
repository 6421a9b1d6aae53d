//! The one road of everything that happens to tasks: decide on the board, append, apply, then bring the files up to date.
//!
//! One decision at a time. The board is in memory and is always what the ledger says; files are written after the append and can be
//! made again at any time. What people change in the files comes in through [`reconcile`](Engine::reconcile).

mod asks;
mod error;
mod evidence;
mod inspect;
mod opening;
mod reconcile;
mod tick;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::event::{Event, Payload};
use baton_core::roles::must_be_signed;
use baton_core::task::apply::At;
use baton_core::task::decide::{Decided, Rules};
use baton_core::task::{Board, Papers, Status, Task, TaskEvent};
use baton_core::{Digest, Role, TaskId, Timestamp, TraceId};
use baton_ledger::body::Body;
use baton_ledger::key::SecretKey;
use baton_ledger::seal::{Checked, Proposal, Receipt, Refusal as Unsealed};
use baton_store::artifacts::ArtifactDir;
use baton_store::disk::Disk;
use baton_store::export::Exporter;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::registry::{self, AgentKey};
use baton_store::tasks::files::{Displaced, Projected, SPARE_DIR, SetAside, TaskFiles, file_path};
use baton_store::tasks::fold::{Fact, catch_up_with, fold};
use baton_store::tasks::obstacles;
use baton_store::tasks::table::{Saving, Table};
use baton_store::tasks::tree::Tree;
use baton_store::{AppendError, Journal, Layout};

pub use asks::{Claimed, Sent, Wish};
pub use error::Fault;
pub use evidence::{From, Submission};
pub use opening::OperatorKey;
pub use reconcile::Reconciled;
pub use tick::Ticked;

use crate::clock::Clock;

/// What an engine stands on: a ledger that this process owns, and the files beside it.
#[derive(Clone)]
pub struct Ground {
    pub disk: Arc<dyn Disk>,
    pub layout: Layout,
    pub journal: Arc<dyn Journal>,
    pub artifacts: ArtifactDir,
    pub ledger_key: Arc<SecretKey>,
    pub operator: Arc<dyn OperatorKey>,
    pub tree: Arc<dyn Tree>,
    /// Where the work is: evidence and summaries are looked for there, and CI runs there.
    pub workspace: PathBuf,
    /// Which start of the machine this is.
    pub boot: String,
    pub clock: Arc<dyn Clock>,
}

impl std::fmt::Debug for Ground {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ground").field("layout", &self.layout).finish_non_exhaustive()
    }
}

/// What the configuration says about tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    pub lease_ttl_ms: i64,
    pub beat_ttl_ms: i64,
    pub rules: Rules,
    /// Whether a CI run that fails goes back to work instead of to a person.
    pub ci_rework: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease_ttl_ms: 10 * 60_000,
            beat_ttl_ms: 5 * 60_000,
            rules: Rules { max_attempts: 3, has_ci: false },
            ci_rework: false,
        }
    }
}

/// Tasks in use.
#[derive(Debug)]
pub struct Engine {
    ground: Ground,
    files: TaskFiles,
    settings: Settings,
    /// Held by whoever goes next.
    turn: Mutex<()>,
    state: Mutex<State>,
}

/// What one decision after the other changes.
#[derive(Debug)]
struct State {
    board: Board,
    projected: BTreeMap<TaskId, Projected>,
    table: Table,
    /// Tasks whose rows are to be saved.
    changed: BTreeSet<TaskId>,
    /// Tasks whose files could not be written: tried again.
    behind: BTreeSet<TaskId>,
    /// Texts of tasks that are at work, so that a trace is not read again for each event.
    papers: BTreeMap<TaskId, (u64, Papers)>,
    /// Until when beats reach that were not recorded.
    beats: BTreeMap<TaskId, Timestamp>,
    operator: Option<(Arc<SecretKey>, AgentKey)>,
    /// What a person should know, until somebody asks.
    notices: Vec<String>,
    moved: Vec<Moved>,
    /// Tasks that were made this moment, and whose files are nowhere yet.
    fresh: BTreeSet<TaskId>,
    /// Traces that ended, whose heads are to be signed.
    ended: Vec<TraceId>,
    /// A file that is being taken in or refused at this moment: met again, it is no news.
    taking: Option<(TaskId, Digest)>,
    /// What projections came across, to be taken in.
    found: VecDeque<Displaced>,
    is_taking_in: bool,
    /// What was told of files that are nobody's, so that it is told once.
    told: BTreeSet<String>,
    /// Tasks with files that somebody may be writing, and when they are looked at again.
    unfinished: BTreeMap<TaskId, Timestamp>,
    /// Whether files are looked at that a crash may have left: what is missing was not deleted by anyone.
    is_after_crash: bool,
    /// Whether Baton ends, and nobody is given anything any more.
    is_ending: bool,
}

/// A transition. Whether somebody should be told of it, [`Status::is_notable`] says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Moved {
    pub pos: u64,
    pub task: TaskId,
    pub title: String,
    pub from: Status,
    pub to: Status,
    pub reason: String,
    pub at: Timestamp,
}

/// Most texts that are kept.
const PAPERS_MAX: usize = 256;

/// How often a decision is made anew when the ledger moved on meanwhile.
const DECISIONS_MAX: usize = 16;

/// Edits that are taken in one after the other before whoever waits goes on.
const TAKEN_IN_MAX: usize = 64;

/// Rows that are saved together while the engine runs.
const SAVE_EVERY: usize = 4096;

impl Engine {
    /// The state, for one at a time. Whoever waits goes before the one that has just had it.
    fn lock(&self) -> MutexGuard<'_, State> {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        // Whatever a panicking thread was doing is in the ledger or is not; the board is caught up before it is used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn now(&self) -> Timestamp {
        self.ground.clock.now()
    }

    pub fn ground(&self) -> &Ground {
        &self.ground
    }

    /// Shows the board as it is.
    pub fn look<T>(&self, look: impl FnOnce(&Board) -> T) -> Result<T, Fault> {
        let mut state = self.lock();
        self.catch_up(&mut state)?;
        Ok(look(&state.board))
    }

    /// A task and its texts.
    pub fn task(&self, id: &TaskId) -> Result<(Task, Papers), Fault> {
        let mut state = self.lock();
        self.catch_up(&mut state)?;
        let task = state.board.get(id).cloned().ok_or_else(|| Fault::not_found(id))?;
        let papers = self.papers(&mut state, &task)?;
        Ok((task, papers))
    }

    /// Leaves what was taken for whoever asks next.
    pub fn put_back(&self, notices: Vec<String>) {
        self.lock().notices.splice(0..0, notices);
    }

    /// What a person should be told, once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notices)
    }

    /// The transitions since the last call.
    pub fn take_moved(&self) -> Vec<Moved> {
        std::mem::take(&mut self.lock().moved)
    }

    /// Decides, records and projects; decided anew where somebody else was quicker.
    fn act<T>(
        &self,
        state: &mut State,
        decide: impl Fn(&Board, &Settings) -> Result<(T, Decided), Fault>,
    ) -> Result<(T, Vec<Receipt>), Fault> {
        for _ in 0..DECISIONS_MAX {
            self.catch_up(state)?;
            let (answer, decided) = decide(&state.board, &self.settings)?;
            match self.record(state, decided) {
                Ok(receipts) => return Ok((answer, receipts)),
                Err(Fault::Append(AppendError::Refused(Unsealed::HeadMoved { .. }))) => {}
                Err(fault) => return Err(fault),
            }
        }
        Err(Fault::Busy)
    }

    /// Applies what others have appended in this process.
    fn catch_up(&self, state: &mut State) -> Result<(), Fault> {
        if state.board.pos() < self.ground.journal.size() {
            let touched = self.catch_up_noting(state)?;
            state.changed.extend(touched.iter().cloned());
            for id in touched.iter().filter(|id| !state.is_projected(id)).cloned().collect::<Vec<_>>() {
                self.project(state, &id);
            }
        }
        Ok(())
    }

    /// Applies what the journal has beyond the board, and notes what somebody should be told of.
    fn catch_up_noting(&self, state: &mut State) -> Result<BTreeSet<TaskId>, Fault> {
        let State { board, moved, ended, beats, .. } = state;
        let mut note = |board: &Board, fact: &Fact| {
            let id = fact.task.as_deref().and_then(|id| id.parse().ok());
            note_event(board, id.as_ref(), &fact.payload, fact.at, moved, ended);
            if let Some(id) = id.filter(|id| board.get(id).is_none_or(|task| task.lease.is_none())) {
                beats.remove(&id);
            }
        };
        Ok(catch_up_with(board, &*self.ground.journal, &mut note)?)
    }

    /// Appends a decision, applies it and brings the files up to date.
    fn record(&self, state: &mut State, decided: Decided) -> Result<Vec<Receipt>, Fault> {
        if decided.events.is_empty() {
            return Ok(Vec::new());
        }
        let journal = &*self.ground.journal;
        let mut proposal = Proposal { events: Vec::new(), decided_on: decided.decided_on };
        // What stands at each place of the proposal, to be applied once it is recorded.
        let mut applied: Vec<Option<&Event>> = Vec::new();
        for event in &decided.events {
            let checked = self.seal(state, event, &mut proposal)?;
            applied.resize(proposal.events.len(), None);
            proposal.events.push(checked);
            applied.push(Some(event));
        }
        let receipts = journal.append(proposal)?;
        let mut touched = BTreeSet::new();
        for (event, receipt) in applied.iter().zip(&receipts) {
            if receipt.pos != state.board.pos() + 1 {
                // Others appended in between: the journal has everything in its order.
                touched.extend(self.catch_up_noting(state)?);
                break;
            }
            self.apply(state, *event, receipt, &mut touched);
        }
        state.changed.extend(touched.iter().cloned());
        for id in &touched {
            self.project(state, id);
        }
        if state.changed.len() >= SAVE_EVERY {
            // It is a projection: saved another time if not now.
            let _ = self.save(state);
        }
        Ok(receipts)
    }

    fn apply(
        &self,
        state: &mut State,
        event: Option<&Event>,
        receipt: &Receipt,
        touched: &mut BTreeSet<TaskId>,
    ) {
        let time = event.map_or_else(|| self.now(), |event| event.at);
        let at = At { pos: receipt.pos, trace: receipt.trace, seq: receipt.seq, time };
        let task = event.and_then(|event| event.task.as_ref()).map(|token| token.as_str());
        let other = Payload::Other { event_type: key_bound(), fields: Default::default() };
        let payload = event.map_or(&other, |event| &event.payload);
        // Events that were made here read back as what they are.
        let _ = state.board.apply(task, payload, at);
        let id = match task {
            Some(task) => task.parse().ok().filter(|id| state.board.get(id).is_some()),
            None => state.board.of_trace(receipt.trace).map(|task| task.id.clone()),
        };
        let State { board, moved, ended, .. } = state;
        note_event(board, id.as_ref(), payload, at, moved, ended);
        let Some(id) = id else { return };
        if let Payload::Other { event_type, fields } = payload
            && let Some(Ok(event)) = TaskEvent::read(event_type.as_str(), fields)
        {
            if let Some((_, papers)) = state.papers.get_mut(&id) {
                papers.apply(&event, at.time);
            } else if matches!(event, TaskEvent::Created(_)) {
                state.fresh.insert(id.clone());
                let mut papers = Papers::default();
                papers.apply(&event, at.time);
                keep_papers(&mut state.papers, id.clone(), (0, papers));
            }
        }
        if let Some(task) = state.board.get(&id) {
            if let Some((rev, _)) = state.papers.get_mut(&id) {
                *rev = task.rev();
            }
            if task.lease.is_none() {
                state.beats.remove(&id);
            }
        }
        touched.insert(id);
    }

    /// Makes an event ready to be appended, signed where its type must be.
    fn seal(&self, state: &mut State, event: &Event, proposal: &mut Proposal) -> Result<Checked, Fault> {
        let unsealed = |error: baton_ledger::body::Error| {
            Fault::Append(AppendError::Refused(Unsealed::Form(error.to_string())))
        };
        let is_framing = matches!(event.payload, Payload::TraceOpened { .. } | Payload::TraceClosed { .. });
        match event.actor.role {
            Role::System if is_framing || must_be_signed(event.payload.event_type()) => {
                let key = &self.ground.ledger_key;
                let body = Body::signed(event.clone(), key).map_err(unsealed)?;
                Ok(Checked::just_signed(body, key))
            }
            Role::Operator if must_be_signed(event.payload.event_type()) => {
                let (key, registered) = self.operator(state)?;
                let ground = &self.ground;
                registry::preface(&*ground.journal, &ground.ledger_key, event.trace, &registered, proposal)?;
                let body = Body::signed(event.clone(), &key).map_err(unsealed)?;
                Ok(Checked::just_signed(body, &key))
            }
            _ => {
                let body = Body::unsigned(event).map_err(unsealed)?;
                Ok(Checked::unsigned(body).map_err(AppendError::Refused)?)
            }
        }
    }

    /// The person's key; made and registered when it is first needed.
    fn operator(&self, state: &mut State) -> Result<(Arc<SecretKey>, AgentKey), Fault> {
        if let Some(known) = &state.operator
            && registry::agent_key(&*self.ground.journal, &known.1.agent)?.as_ref() == Some(&known.1)
        {
            return Ok(known.clone());
        }
        let ground = &self.ground;
        let known = ground.operator.get(&*ground.journal, &ground.ledger_key)?;
        self.catch_up(state)?;
        Ok(state.operator.insert(known).clone())
    }

    /// The texts of a task, from memory or from its trace.
    fn papers(&self, state: &mut State, task: &Task) -> Result<Papers, Fault> {
        if let Some((rev, papers)) = state.papers.get(&task.id)
            && *rev == task.rev()
        {
            return Ok(papers.clone());
        }
        let (_, papers) = fold(&*self.ground.journal, task, None)?;
        keep_papers(&mut state.papers, task.id.clone(), (task.rev(), papers.clone()));
        Ok(papers)
    }

    /// Brings a task's files up to date. What fails is told and tried again: the ledger has it.
    fn project(&self, state: &mut State, id: &TaskId) {
        match self.try_project(state, id) {
            Ok((displaced, failed)) => {
                state.behind.remove(id);
                if let Some(error) = failed {
                    self.fall_behind(state, id, &error);
                }
                self.take_all(state, displaced);
            }
            Err(fault) => self.fall_behind(state, id, &fault),
        }
    }

    /// Remembers that a task's files are not what they should be, and tells it once.
    fn fall_behind(&self, state: &mut State, id: &TaskId, why: &dyn std::fmt::Display) {
        state.behind.insert(id.clone());
        let what = format!("{id}: recorded, but its files could not be written: ");
        if state.notices.iter().any(|notice| notice.starts_with(&what)) {
            return;
        }
        // What the system says of a link on the way helps little; which path it is does, where it is one that this task uses.
        let status = state.board.get(id).map(|task| task.status);
        let was = state.projected.get(id).map(|was| was.status);
        let files = status.into_iter().chain(was).map(|status| file_path(status, id));
        let paths: Vec<String> = files.chain([format!("runs/{id}"), SPARE_DIR.to_owned()]).collect();
        let in_the_way = obstacles::of_tasks(self.files.tree());
        let blocks = |found: &&obstacles::Obstacle| paths.iter().any(|path| found.blocks(path));
        let notice = match in_the_way.iter().find(blocks) {
            Some(found) => {
                let found = found.at(self.ground.layout.root());
                format!("{what}{why}; {found}; `baton doctor --fix` moves it aside")
            }
            None => format!("{what}{why}"),
        };
        state.notices.push(notice);
    }

    /// Takes in what projections came across. That projects again, and may come across more: one after the other, not one within the other.
    fn take_all(&self, state: &mut State, displaced: Vec<Displaced>) {
        let taking = state.taking.clone();
        let is_news = |found: &Displaced| !inspect::is_same_file(taking.as_ref(), found);
        state.found.extend(displaced.into_iter().filter(is_news));
        if std::mem::replace(&mut state.is_taking_in, true) {
            return;
        }
        let mut count = 0;
        while let Some(edit) = state.found.pop_front() {
            count += 1;
            let id = &edit.id;
            let why = match count <= TAKEN_IN_MAX {
                true => self.take_displaced(state, &edit).err().map(|fault| fault.to_string()),
                // Somebody writes as quickly as this does: at some time it must go on.
                false => Some("too many at once".to_owned()),
            };
            if let Some(why) = why {
                let kept = self.files.keep_aside(id, &edit.bytes).unwrap_or_default();
                let kept = self.place(&format!("quarantine/{kept}"));
                let notice = format!("{id}: an edit could not be taken in: {why}; it is kept in {kept}");
                state.notices.push(notice);
            }
        }
        state.is_taking_in = false;
    }

    fn try_project(
        &self,
        state: &mut State,
        id: &TaskId,
    ) -> Result<(Vec<Displaced>, Option<std::io::Error>), Fault> {
        let Some(task) = state.board.get(id).cloned() else { return Ok((Vec::new(), None)) };
        let papers = self.papers(state, &task)?;
        let layout = self.layout_of(&task);
        let is_new = state.fresh.remove(id);
        let was = state.projected.get(id).filter(|_| !state.behind.contains(id));
        let done = self
            .files
            .project(&task, &papers, layout.as_deref(), was, is_new)
            .map_err(Fault::files(id.as_str()))?;
        if done.projected.has_leftovers {
            state.look_again(id, self.now());
        }
        state.projected.insert(id.clone(), done.projected);
        state.changed.insert(id.clone());
        for SetAside { path, name } in done.set_aside {
            let kept = self.place(&format!("quarantine/{name}"));
            state.notices.push(format!("{id}: {} was in the way; it is kept in {kept}", self.place(&path)));
        }
        Ok((done.displaced, done.failed))
    }

    /// A path of the data directory, so that whoever is told of it can use it from where they are.
    fn place(&self, path: &str) -> String {
        let root = self.ground.layout.root();
        let root = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
        root.join(path).display().to_string()
    }

    /// The last text of a task's file that a person wrote.
    fn layout_of(&self, task: &Task) -> Option<String> {
        use baton_store::ArtifactStore as _;
        use std::io::Read as _;
        let mut text = String::new();
        let max = baton_core::limits::TASK_FILE_BYTES_MAX as u64;
        self.ground.artifacts.open(&task.layout?).ok()?.take(max).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Saves the board, so that the next one need not read the journal.
    fn save(&self, state: &mut State) -> std::io::Result<()> {
        if state.changed.is_empty() && state.table.pos() == state.board.pos() {
            return Ok(());
        }
        let State { table, board, projected, changed, .. } = state;
        let ground = &self.ground;
        let (boot, journal_end) = (ground.boot.as_str(), ground.journal.end());
        let saving = Saving { board, projected, changed, boot, journal_end };
        table.save(&*ground.disk, &ground.ledger_key, &saving)?;
        state.changed.clear();
        Ok(())
    }

    /// Signs and keeps the heads of the traces that ended since the last call. They can be made again at any time, so what fails is left.
    pub fn sign_heads(&self) {
        let ended = std::mem::take(&mut self.lock().ended);
        let ground = &self.ground;
        let notes = NoteDir::new(ground.disk.clone(), &ground.layout);
        let exporter = Exporter { journal: &*ground.journal, key: &ground.ledger_key, notes: &notes };
        for trace in ended {
            let _ = exporter.trace_head(trace);
        }
    }

    /// Ends cleanly.
    pub fn close(self) -> std::io::Result<()> {
        self.sign_heads();
        let mut state = self.lock();
        self.save(&mut state)?;
        if state.behind.is_empty() {
            self.ground.disk.remove(&self.live_mark())?;
        }
        Ok(())
    }

    /// A file that is there while an engine is open: who finds it at the start knows that the last one did not end well.
    fn live_mark(&self) -> PathBuf {
        self.ground.layout.index().join("tasks.open")
    }
}

/// Notes what somebody should be told of, and which trace ended.
fn note_event(
    board: &Board,
    id: Option<&TaskId>,
    payload: &Payload,
    at: At,
    moved: &mut Vec<Moved>,
    ended: &mut Vec<TraceId>,
) {
    match payload {
        Payload::TraceClosed { .. } => ended.push(at.trace),
        Payload::Other { event_type, fields } if event_type.as_str() == "task.transitioned" => {
            let event = TaskEvent::read(event_type.as_str(), fields);
            if let (Some(Ok(TaskEvent::Transitioned(to))), Some(task)) =
                (event, id.and_then(|id| board.get(id)))
            {
                moved.push(Moved {
                    pos: at.pos,
                    task: task.id.clone(),
                    title: task.title.clone(),
                    from: to.from,
                    to: to.to,
                    reason: to.reason,
                    at: at.time,
                });
            }
        }
        _ => {}
    }
}

fn keep_papers(all: &mut BTreeMap<TaskId, (u64, Papers)>, id: TaskId, papers: (u64, Papers)) {
    while all.len() >= PAPERS_MAX {
        all.pop_first();
    }
    all.insert(id, papers);
}

/// The type of what stands before a key's first use; it is nothing to a task.
fn key_bound() -> baton_core::EventType {
    #[expect(clippy::expect_used, reason = "a fixed name is a type's name")]
    "key_bound".parse().expect("a type's name")
}

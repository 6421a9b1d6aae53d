//! The one road of everything that happens to tasks: decide on the board, append, apply, then bring the files up to date.
//!
//! One decision after the other, or several that have nothing to do with each other. The board is in memory and is always what the ledger says; files are written after the append and can be
//! made again at any time. What people change in the files comes in through [`reconcile`](Engine::reconcile).

mod asks;
mod error;
mod evidence;
mod guarded;
mod inspect;
mod opening;
mod project;
mod reconcile;
mod record;
mod tick;
mod together;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::task::decide::{Decided, Rules};
use baton_core::task::{Board, Papers, Status, Task};
use baton_core::{Digest, TaskId, Timestamp, TraceId};
use baton_ledger::key::SecretKey;
use baton_ledger::seal::{Receipt, Refusal as Unsealed};
use baton_store::artifacts::ArtifactDir;
use baton_store::disk::Disk;
use baton_store::export::Exporter;
use baton_store::journal::checkpoints::NoteDir;
use baton_store::registry::AgentKey;
use baton_store::tasks::files::{Displaced, Projected, TaskFiles};
use baton_store::tasks::fold::{Fact, catch_up_with, fold};
use baton_store::tasks::table::{Saving, Table};
use baton_store::tasks::tree::Tree;
use baton_store::{AppendError, Journal, Layout};

pub use asks::{Claimed, Sent, Wish};
pub use error::Fault;
pub use evidence::{From, Submission};
pub use opening::OperatorKey;
pub use reconcile::Reconciled;
pub use tick::Ticked;
pub use together::{Granted, Lag, Wished};

use crate::clock::Clock;
use record::note_event;
use together::Unwritten;

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
    /// Whether new tasks are guarded without being asked to.
    pub guards: bool,
    /// Whether a CI run that fails goes back to work instead of to a person.
    pub ci_rework: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            lease_ttl_ms: 10 * 60_000,
            beat_ttl_ms: 5 * 60_000,
            rules: Rules { max_attempts: 3, has_ci: false },
            guards: false,
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
    /// Tasks whose files are to be written when nobody waits.
    unwritten: Unwritten,
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
        self.write_some(&mut state, usize::MAX, Duration::ZERO);
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

fn keep_papers(all: &mut BTreeMap<TaskId, (u64, Papers)>, id: TaskId, papers: (u64, Papers)) {
    while all.len() >= PAPERS_MAX {
        all.pop_first();
    }
    all.insert(id, papers);
}

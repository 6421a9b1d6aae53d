//! Works the phase CI_PENDING: the configured command in the workspace, its output as an artifact, its verdict in the ledger.
//!
//! Nothing of a run is remembered but the task's phase. A run that a crash or a stop cut short has no verdict, so the task still waits, and the next
//! pass runs it again, once what the first one had started is ended. A verdict counts only for the task as it was when the run began. Start at [`CiRunner::run_pending`].

use std::fs::{File, OpenOptions};
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::event::ArtifactRef;
use baton_core::task::decide::{CiVerdict, system};
use baton_core::task::{Phase, Refusal, Status, Task};
use baton_core::{TaskId, Timestamp};
use baton_store::ArtifactStore as _;

use crate::engine::{Engine, Fault, Ground};
use crate::limits::{CI_LOOK, NOTICES_MAX, STOP_GRACE};
use crate::occupancy::Occupancy;
use crate::process::{self, Command, Ended, Ran, end_leftovers, short};

/// What the configuration says of CI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ci {
    /// A program and its arguments.
    pub command: Vec<String>,
    pub timeout: Duration,
    /// Whether a failure goes back to work instead of to a person.
    pub rework: bool,
    /// Between the request to end and the end.
    pub grace: Duration,
    /// What ends the command should Baton be killed; see [`Command::warden`].
    pub warden: Option<PathBuf>,
}

impl Ci {
    pub fn new(command: Vec<String>, timeout: Duration, rework: bool) -> Self {
        Ci { command, timeout, rework, grace: STOP_GRACE, warden: None }
    }
}

/// Runs CI for the tasks that wait for it.
#[derive(Debug)]
pub struct CiRunner {
    engine: Arc<Engine>,
    ci: Ci,
    workspace: Occupancy,
    notices: Mutex<Vec<String>>,
}

/// A task as it was when its run began.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Waiting {
    since: Timestamp,
    id: TaskId,
}

/// Why a run led to no verdict.
enum NoVerdict {
    /// Baton stops; the next pass runs it again.
    Stopped,
    /// The task does not wait for it any more.
    Left,
    Failed(String),
}

impl From<Fault> for NoVerdict {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Refused(Refusal::NotInCi { .. } | Refusal::LateVerdict | Refusal::NotFound(_)) => {
                NoVerdict::Left
            }
            fault => NoVerdict::Failed(fault.to_string()),
        }
    }
}

impl CiRunner {
    pub fn new(engine: Arc<Engine>, ci: Ci, workspace: Occupancy) -> Self {
        CiRunner { engine, ci, workspace, notices: Mutex::default() }
    }

    /// Works every task that waits now or comes to wait meanwhile, oldest first, each at most once; gives how many got a verdict.
    ///
    /// Ends soon after `stop` is set; what was running is ended and has no verdict.
    pub fn run_pending(&self, stop: &AtomicBool) -> usize {
        let (mut done, mut seen) = (0, Vec::new());
        while !stop.load(Ordering::Relaxed) {
            let next = match self.waiting() {
                Ok(waiting) => waiting.into_iter().find(|waiting| !seen.contains(waiting)),
                Err(fault) => {
                    self.notice(format!("CI: {fault}"));
                    break;
                }
            };
            let Some(next) = next else { break };
            match self.work(&next, stop) {
                Ok(()) => done += 1,
                Err(NoVerdict::Left) => {}
                Err(NoVerdict::Stopped) => break,
                Err(NoVerdict::Failed(why)) => self.notice(format!("{}: CI gave no verdict: {why}", next.id)),
            }
            seen.push(next);
        }
        done
    }

    /// What a person should be told, once.
    pub fn take_notices(&self) -> Vec<String> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn notice(&self, text: String) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        if notices.len() < NOTICES_MAX {
            notices.push(text);
        }
    }

    /// The tasks that wait, oldest first.
    fn waiting(&self) -> Result<Vec<Waiting>, Fault> {
        let mut waiting: Vec<Waiting> = self.engine.look(|board| {
            let in_review = board.with_status(Status::Review);
            in_review.filter(|task| task.phase == Phase::CiPending).map(Waiting::of).collect()
        })?;
        waiting.sort();
        Ok(waiting)
    }

    fn is_waiting(&self, waiting: &Waiting) -> bool {
        let is_same = |task: &Task| {
            task.phase == Phase::CiPending && task.status == Status::Review && Waiting::of(task) == *waiting
        };
        // A ledger that cannot be read just now is no reason to end a run; the verdict will tell.
        self.engine.look(|board| board.get(&waiting.id).is_some_and(is_same)).unwrap_or(true)
    }

    /// One run and its verdict.
    fn work(&self, waiting: &Waiting, stop: &AtomicBool) -> Result<(), NoVerdict> {
        let mut looked = Instant::now();
        let mut has_left = false;
        let mut unwanted = || {
            if looked.elapsed() >= CI_LOOK {
                looked = Instant::now();
                has_left = !self.is_waiting(waiting);
            }
            has_left || stop.load(Ordering::Relaxed)
        };
        let guard = self.workspace.enter(&format!("CI of {}", waiting.id), &mut unwanted);
        let Some(_guard) = guard.filter(|_| self.is_waiting(waiting)) else {
            return Err(if stop.load(Ordering::Relaxed) { NoVerdict::Stopped } else { NoVerdict::Left });
        };
        let mut command = Command::new(self.ci.command.clone(), self.workspace.dir(), self.ci.timeout);
        (command.grace, command.warden) = (self.ci.grace, self.ci.warden.clone());
        command.env.insert("BATON_TASK_ID".into(), waiting.id.to_string());
        // What tools commonly look at to know that nobody sits in front of them.
        command.env.insert("CI".into(), "true".into());
        let log = Log::create(self.engine.ground(), &waiting.id, self.ci.grace);
        let mut log = log.map_err(|error| NoVerdict::Failed(format!("its log cannot be made: {error}")))?;
        command.env.insert(LOG_VARIABLE.into(), log.path.to_string_lossy().into_owned());
        let ran = command.run(Some(&mut log.file), &mut unwanted);
        if matches!(ran, Ok(Ran { ended: Ended::Stopped, .. })) {
            return Err(if self.is_waiting(waiting) { NoVerdict::Stopped } else { NoVerdict::Left });
        }
        let log = match &ran {
            Ok(Ran { copy_failed: Some(error), .. }) => Err(io::Error::new(error.kind(), error.to_string())),
            Ok(_) => log.store(&self.engine).map(Some),
            Err(_) => Ok(None),
        };
        let log = log.map_err(|error| NoVerdict::Failed(format!("its output cannot be kept: {error}")))?;
        self.engine.ci(&self.verdict(waiting, &ran, log), &system())?;
        Ok(())
    }

    fn verdict(
        &self,
        waiting: &Waiting,
        ran: &Result<Ran, process::Error>,
        log: Option<ArtifactRef>,
    ) -> CiVerdict {
        let exit_code = match ran {
            Ok(Ran { ended: Ended::Exit(code), .. }) => Some(*code),
            _ => None,
        };
        let reason = match ran {
            Ok(Ran { ended: Ended::Exit(0), .. }) => String::new(),
            Ok(Ran { ended: Ended::Exit(code), .. }) => format!("exit {code}"),
            Ok(Ran { ended: Ended::Signal(signal), .. }) => format!("ended by signal {signal}"),
            Ok(Ran { ended: Ended::TimedOut, .. }) => format!("timed out after {}", short(self.ci.timeout)),
            Ok(Ran { ended: Ended::Stopped, .. }) => "stopped".into(),
            Err(error) => error.to_string(),
        };
        let (task, passed) = (waiting.id.clone(), exit_code == Some(0));
        CiVerdict { task, passed, exit_code, reason, log, rework: self.ci.rework, since: Some(waiting.since) }
    }
}

impl Waiting {
    fn of(task: &Task) -> Self {
        Waiting { since: task.last_transition_at, id: task.id.clone() }
    }
}

/// The variable by which the processes of a run are known, should they outlive Baton: where its log is.
const LOG_VARIABLE: &str = "BATON_RUN_LOG";

/// Where logs are while they are written, below the data directory.
const LOGS: &str = "ci";

/// The output of a run while it is written: one can look at it meanwhile. It is gone once it is stored.
struct Log {
    file: File,
    path: PathBuf,
}

impl Log {
    fn create(ground: &Ground, task: &TaskId, grace: Duration) -> io::Result<Self> {
        // Refuses a link in the directory's place.
        ground.tree.make_dir(LOGS)?;
        let root = ground.layout.root();
        let path = root.canonicalize()?.join(LOGS).join(format!("{task}.log"));
        if path.symlink_metadata().is_ok() {
            // The run before had no end: Baton died, and what it had started may still be at work in there.
            end_leftovers(LOG_VARIABLE, &path.to_string_lossy(), grace);
        }
        // What a crash left, or a link that somebody put there: removed, not written through.
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
        Ok(Log { file, path })
    }

    fn store(&mut self, engine: &Engine) -> io::Result<ArtifactRef> {
        use io::Seek as _;
        // Read through the same descriptor: another file under the name would not be what was printed.
        self.file.rewind()?;
        let (sha256, bytes) = engine.ground().artifacts.put(&mut self.file)?;
        Ok(ArtifactRef { sha256, bytes, media_type: "text/plain".into(), name: "ci.log".into() })
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

//! What is known of a session beside its events, on the disk: who it is, where its process is, how it ended. Found again after a restart.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_core::Timestamp;
use baton_core::ids::{AgentName, RunId, SessionId, TaskId, TraceId};
use baton_core::session::SessionEndedData;
use serde::{Deserialize, Serialize};

use crate::limits::SNAPSHOT_BYTES_MAX;

/// One session, as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    pub v: u32,
    pub id: SessionId,
    pub agent: AgentName,
    pub harness: String,
    /// Where its events are.
    pub trace: TraceId,
    /// Where they go on, if the trace of its task ended before it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub continued: Option<TraceId>,
    pub cwd: PathBuf,
    pub started_at: Timestamp,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<Process>,
    /// What the agent calls the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<String>,
    /// The program and its version, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<String>,
    #[serde(default)]
    pub can_load: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What keeps the programs of its tools in the workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall: Option<String>,
    /// The last exit signal that the agent wrote, until its end has been judged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// Whether a person wanted it to end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_by_person: bool,
    /// Whether Baton's own end was its end.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut_short: bool,
    /// The session that this one goes on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resumes: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<SessionEndedData>,
}

/// A process that cannot be mistaken for another one that got its number later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Process {
    pub pid: u32,
    /// When the kernel started it, in its own ticks.
    pub start: u64,
    /// Which start of the machine that was in.
    pub boot: String,
}

const NAME: &str = "session.json";

impl Snapshot {
    /// A session that is about to begin.
    pub fn new(
        id: SessionId,
        agent: AgentName,
        harness: &str,
        trace: TraceId,
        cwd: PathBuf,
        at: Timestamp,
    ) -> Self {
        Snapshot {
            v: 1,
            id,
            agent,
            harness: harness.to_owned(),
            trace,
            continued: None,
            cwd,
            started_at: at,
            task: None,
            run: None,
            fence: None,
            process: None,
            native_id: None,
            program: None,
            can_load: false,
            mode: None,
            wall: None,
            signal: None,
            is_by_person: false,
            is_cut_short: false,
            resumes: None,
            ended_at: None,
            ended: None,
        }
    }

    /// Writes it into the session's folder, whole or not at all.
    pub fn save(&self, dir: &Path) -> io::Result<()> {
        let bytes = serde_json::to_vec(self).map_err(io::Error::other)?;
        let (path, new) = (dir.join(NAME), dir.join("session.json.new"));
        let mut file =
            fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(&bytes)?;
        fs::rename(new, path)
    }

    /// Reads the one of a session's folder.
    pub fn load(dir: &Path) -> io::Result<Snapshot> {
        let mut bytes = Vec::new();
        let file = fs::File::open(dir.join(NAME))?;
        file.take(SNAPSHOT_BYTES_MAX).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(io::Error::other)
    }
}

impl Process {
    /// What is to be remembered of a process that runs now.
    pub fn of(pid: u32, boot: &str) -> Option<Process> {
        Some(Process { pid, start: start_ticks(pid)?, boot: boot.to_owned() })
    }

    /// Whether that very process still runs.
    pub fn is_alive(&self, boot: &str) -> bool {
        self.boot == boot && start_ticks(self.pid) == Some(self.start)
    }
}

/// When a process was started, as the kernel counts it: the 22nd field, after a name that may hold anything.
fn start_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after) = stat.rsplit_once(')')?;
    after.split_ascii_whitespace().nth(19)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_known_again_and_no_other_is_taken_for_it() {
        let own = Process::of(std::process::id(), "boot").unwrap();
        assert!(own.is_alive("boot"));
        assert!(!own.is_alive("another boot"));
        assert!(!Process { start: own.start + 1, ..own.clone() }.is_alive("boot"));
        assert!(!Process { pid: u32::MAX, ..own }.is_alive("boot"));
    }
}

//! The files of a task's runs: `run.json`, its heartbeat, its result, and the history of earlier ones. Nobody edits them, so they are written in
//! place; only a result may come from the agent itself.

use std::io;

use baton_core::json::Sorted;
use baton_core::protocol::CompletionReport;
use baton_core::task::event::Completed;
use baton_core::task::{Papers, Run, Task};
use baton_core::{Digest, RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::files::{Met, Projected, TaskFiles};
use super::tree::Found;
use crate::disk::unfinished_name;

/// Largest run file that is read.
pub const RUN_FILE_BYTES_MAX: u64 = 256 << 10;

/// What `run.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    pub id: RunId,
    pub is_ended: bool,
}

const RUN_FILES: [&str; 3] = ["run.json", "run_heartbeat.json", "run_result.json"];

fn run_dir(id: &TaskId) -> String {
    format!("runs/{id}")
}

impl TaskFiles {
    /// Removes what was being written of a run when its writer died.
    fn clear_unfinished_runs(&self, dir: &str, id: &TaskId, met: &mut Met) -> io::Result<()> {
        for name in self.tree().list(dir)? {
            if name.starts_with('.') && name.ends_with(".tmp") {
                let path = format!("{dir}/{name}");
                match self.tree().look(&path)? {
                    Some(Found::File(_)) => self.tree().remove(&path)?,
                    Some(Found::Dir | Found::Other) => self.out_of_the_way(&path, id, met)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Brings the files of the last run up to date.
    pub(super) fn write_run(
        &self,
        task: &Task,
        papers: &Papers,
        was: Option<&Projected>,
        met: &mut Met,
    ) -> io::Result<(Option<RunState>, Option<Digest>)> {
        let Some(run) = &task.run else { return Ok((None, None)) };
        let dir = run_dir(&task.id);
        let state = RunState { id: run.id, is_ended: run.ended.is_some() };
        let known = was.and_then(|was| was.run.as_ref());
        if known != Some(&state) {
            self.own_dir(&dir, &task.id, met)?;
            if known.is_none() {
                self.clear_unfinished_runs(&dir, &task.id, met)?;
            }
            if known.is_none_or(|known| known.id != run.id) {
                self.retire_run(&dir, &task.id, run.id, met)?;
            }
            self.put(&dir, "run.json", pretty(&run_json(task, run)).as_bytes())?;
        }
        let beat = format!("{dir}/run_heartbeat.json");
        if let Some(lease) = task.lease.as_ref().filter(|lease| lease.run == run.id)
            && known.is_none_or(|known| known.id != run.id)
            && self.tree().look(&beat)?.is_none()
        {
            let first = Heartbeat {
                at: lease.acquired_at,
                count: 0,
                until: lease.beat_until,
                lease_until: lease.expires_at,
            };
            self.write_heartbeat(task, run, &first)?;
        }
        let Some((completed, at)) = papers.result.as_ref().filter(|(done, _)| done.run_id == Some(run.id))
        else {
            return Ok((Some(state), None));
        };
        if was.is_none_or(|was| was.result != Some(completed.digest)) {
            self.own_dir(&dir, &task.id, met)?;
            if let Some(text) = result_json(task, completed, *at) {
                self.put(&dir, "run_result.json", text.as_bytes())?;
            }
        }
        Ok((Some(state), Some(completed.digest)))
    }

    /// Moves the files of an earlier run into its history.
    fn retire_run(&self, dir: &str, id: &TaskId, now: RunId, met: &mut Met) -> io::Result<()> {
        let read = self.tree().read(&format!("{dir}/run.json"), RUN_FILE_BYTES_MAX);
        let of_file = |bytes: &[u8]| {
            let value: Value = serde_json::from_slice(bytes).ok()?;
            value.get("runId")?.as_str()?.parse::<RunId>().ok()
        };
        let earlier = match &read {
            Ok((bytes, _)) => of_file(bytes),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(_) => None,
        };
        if earlier == Some(now) {
            return Ok(());
        }
        let has_any = RUN_FILES.iter().try_fold(false, |any, name| {
            self.tree().look(&format!("{dir}/{name}")).map(|found| any || found.is_some())
        })?;
        if !has_any {
            return Ok(());
        }
        let name = earlier
            .map_or_else(|| unfinished_name("unknown").trim_matches('.').to_owned(), |run| run.to_string());
        let history = format!("{dir}/history");
        self.own_dir(&history, id, met)?;
        self.own_dir(&format!("{history}/{name}"), id, met)?;
        for file in RUN_FILES {
            let (from, to) = (format!("{dir}/{file}"), format!("{history}/{name}/{file}"));
            match self.tree().rename(&from, &to) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // It was moved before a crash, and this is a leftover of the same run.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.tree().remove(&from)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Whether the files of a task's runs have their directory.
    pub fn has_run_dir(&self, task: &TaskId) -> bool {
        matches!(self.tree().look(&run_dir(task)), Ok(Some(Found::Dir)))
    }

    /// Writes the heartbeat of a run.
    pub fn write_heartbeat(&self, task: &Task, run: &Run, beat: &Heartbeat) -> io::Result<()> {
        let value = json!({
            "taskId": task.id.as_str(),
            "agentId": run.agent.as_str(),
            "runId": run.id.to_string(),
            "fence": run.fence,
            "lastHeartbeat": beat.at.to_string(),
            "beatCount": beat.count,
            "expiresAt": beat.until.to_string(),
            "leaseExpiresAt": beat.lease_until.to_string(),
        });
        let (dir, text) = (run_dir(&task.id), pretty(&value));
        match self.put(&dir, "run_heartbeat.json", text.as_bytes()) {
            Ok(()) => Ok(()),
            // Its directory is gone, or is something else.
            Err(_) => {
                self.own_dir(&dir, &task.id, &mut Met::default())?;
                self.put(&dir, "run_heartbeat.json", text.as_bytes())
            }
        }
    }

    /// The heartbeat of a run, where its file reads and is of this run.
    pub fn heartbeat(&self, task: &TaskId, run: RunId) -> Option<Heartbeat> {
        let (bytes, _) =
            self.tree().read(&format!("{}/run_heartbeat.json", run_dir(task)), RUN_FILE_BYTES_MAX).ok()?;
        let value: Value = serde_json::from_slice(&bytes).ok()?;
        let time = |key: &str| value.get(key)?.as_str()?.parse::<Timestamp>().ok();
        if value.get("runId")?.as_str()? != run.to_string() {
            return None;
        }
        Some(Heartbeat {
            at: time("lastHeartbeat")?,
            count: value.get("beatCount")?.as_u64()?,
            until: time("expiresAt")?,
            lease_until: time("leaseExpiresAt").or_else(|| time("expiresAt"))?,
        })
    }

    /// The result file of a task as it is, if there is one.
    pub fn result_file(&self, task: &TaskId) -> Option<io::Result<Vec<u8>>> {
        match self.tree().read(&format!("{}/run_result.json", run_dir(task)), RUN_FILE_BYTES_MAX) {
            Ok((bytes, _)) => Some(Ok(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(error)),
        }
    }
}

/// A sign of life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Heartbeat {
    pub at: Timestamp,
    pub count: u64,
    pub until: Timestamp,
    pub lease_until: Timestamp,
}

fn pretty(value: &Value) -> String {
    format!("{:#}\n", Sorted(value))
}

fn run_json(task: &Task, run: &Run) -> Value {
    let (status, metadata) = match &run.ended {
        None => ("running", json!({})),
        Some(end) => {
            let is_expired =
                end.reason.starts_with("stale_heartbeat") || end.reason.starts_with("lease_expired");
            let has_spoken = task.said.report.is_some() || task.said.signal.is_some();
            let status = match (end.failed, has_spoken) {
                (true, _) => "failed",
                (false, true) => "completed",
                (false, false) => "abandoned",
            };
            let at = end.at.to_string();
            let metadata = match is_expired && end.failed {
                true => {
                    json!({"expiredAt": at, "expiredReason": end.reason, "endedAt": at, "endReason": end.reason})
                }
                false => json!({"endedAt": at, "endReason": end.reason}),
            };
            (status, metadata)
        }
    };
    json!({
        "taskId": task.id.as_str(),
        "agentId": run.agent.as_str(),
        "runId": run.id.to_string(),
        "fence": run.fence,
        "startedAt": run.started_at.to_string(),
        "status": status,
        "artifactPaths": {"inputs": "inputs/", "work": "work/", "output": "outputs/"},
        "metadata": metadata,
    })
}

fn result_json(task: &Task, completed: &Completed, at: Timestamp) -> Option<String> {
    let report = CompletionReport::from_fields(&completed.report)?;
    let (run, fence, handoff) = (completed.run_id, completed.fence, completed.handoff_ref.as_deref());
    Some(report.result_json(&task.id, &completed.agent, run, fence, at, handoff))
}

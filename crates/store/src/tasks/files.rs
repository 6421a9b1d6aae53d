//! The files of one task as its state says they should be: written after the append, again and again with the same result.
//!
//! A person may save a task's file in the very moment in which it is written here. So a file is never replaced unseen: the new one changes places
//! with the old one, and the old one is looked at afterwards. What is not as Baton left it comes back as [`Displaced`], to be taken in.

use std::io;
use std::sync::Arc;

use baton_core::limits::TASK_FILE_BYTES_MAX;
use baton_core::protocol::{CompletionReport, handoff_json, handoff_md};
use baton_core::task::event::Completed;
use baton_core::task::{Papers, Run, Status, Task};
use baton_core::{Digest, RunId, TaskId, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::tree::{Found, Stamp, Tree};
use super::{edit, render};
use crate::disk::unfinished_name;

/// Largest run file that is read.
pub const RUN_FILE_BYTES_MAX: u64 = 256 << 10;

/// What was last written of a task, so that only what changed is written again and what others changed is noticed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Projected {
    /// The folder that its file is in.
    pub status: Status,
    pub rev: u64,
    pub stamp: Stamp,
    /// The file that is kept aside for the next time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spare: Option<Stamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Digest>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<Digest>,
}

/// What `run.json` says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunState {
    pub id: RunId,
    pub is_ended: bool,
}

/// A file that was not as Baton left it, and what was in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Displaced {
    pub id: TaskId,
    /// The folder that it was found in.
    pub status: Status,
    pub bytes: Vec<u8>,
}

/// Writes the files of tasks and runs.
#[derive(Debug, Clone)]
pub struct TaskFiles {
    tree: Arc<dyn Tree>,
}

/// The path of a task's file in a folder.
pub fn file_path(status: Status, id: &TaskId) -> String {
    format!("tasks/{status}/{id}.md")
}

/// The path of a task's own folder.
pub fn folder_path(status: Status, id: &TaskId) -> String {
    format!("tasks/{status}/{id}")
}

/// The folder of files that are kept aside.
pub const SPARE_DIR: &str = "tasks/.spare";

/// The path of a task's file that is not in use.
pub fn spare_path(id: &TaskId) -> String {
    format!("{SPARE_DIR}/{id}.md")
}

fn run_dir(id: &TaskId) -> String {
    format!("runs/{id}")
}

const FOLDERS: [&str; 3] = ["inputs", "work", "outputs"];
const RUN_FILES: [&str; 3] = ["run.json", "run_heartbeat.json", "run_result.json"];

/// A task's file as text. The layout is the last text that a person wrote, if any.
pub fn file_text(task: &Task, papers: &Papers, layout: Option<&str>) -> String {
    let fields = task.frontmatter();
    let body = papers.body();
    if let Some(text) = layout.and_then(|layout| edit(layout, &fields, &body).ok()) {
        return text;
    }
    let present: Vec<(&str, Value)> =
        fields.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    render(&present, &body)
}

impl TaskFiles {
    pub fn new(tree: Arc<dyn Tree>) -> Self {
        TaskFiles { tree }
    }

    pub fn tree(&self) -> &dyn Tree {
        &*self.tree
    }

    /// Makes the folders in which everything lies.
    pub fn prepare(&self) -> io::Result<()> {
        self.tree.make_dir("tasks")?;
        self.tree.make_dir("runs")?;
        self.tree.make_dir(SPARE_DIR)?;
        self.tree.make_dir("quarantine")?;
        Status::ALL.iter().try_for_each(|status| self.tree.make_dir(&format!("tasks/{status}")))
    }

    /// Brings all files of a task up to date. `was` is what was last written, where that is known.
    pub fn project(
        &self,
        task: &Task,
        papers: &Papers,
        layout: Option<&str>,
        was: Option<&Projected>,
    ) -> io::Result<(Projected, Vec<Displaced>)> {
        let mut displaced = Vec::new();
        self.place_folder(task, was.map(|was| was.status))?;
        let handoff = self.write_handoff(task, papers, was)?;
        let (run, result) = self.write_run(task, papers, was)?;
        let text = file_text(task, papers, layout);
        let (stamp, spare) = self.place_file(task, text.as_bytes(), was, &mut displaced)?;
        let projected =
            Projected { status: task.status, rev: task.rev(), stamp, spare, run, result, handoff };
        Ok((projected, displaced))
    }

    /// Puts the task's folder where its status is, with the three inside.
    fn place_folder(&self, task: &Task, was: Option<Status>) -> io::Result<()> {
        let here = folder_path(task.status, &task.id);
        if was == Some(task.status) {
            return Ok(());
        }
        if let Some(Found::File(_) | Found::Other) = self.tree.look(&here)? {
            self.set_aside(&here, &task.id)?;
        }
        // Somebody may have moved the folder alone: then it is looked for everywhere.
        let is_there = |was: &Status| {
            self.tree.look(&folder_path(*was, &task.id)).is_ok_and(|found| found == Some(Found::Dir))
        };
        let others: Vec<Status> = match was.filter(is_there) {
            Some(was) => vec![was],
            None => Status::ALL.iter().copied().filter(|status| *status != task.status).collect(),
        };
        for other in others {
            let there = folder_path(other, &task.id);
            match self.tree.rename(&there, &here) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Both are there: what the ledger's status has stays, the other is kept aside.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.set_aside(&there, &task.id)?
                }
                Err(error) => return Err(error),
            }
        }
        self.own_dir(&here, &task.id)?;
        FOLDERS.iter().try_for_each(|folder| self.own_dir(&format!("{here}/{folder}"), &task.id))
    }

    /// Makes a directory of Baton's own. Anything else in its place, a link before all, is kept aside: who works on the task can put it there.
    fn own_dir(&self, dir: &str, id: &TaskId) -> io::Result<()> {
        if let Some(Found::File(_) | Found::Other) = self.tree.look(dir)? {
            self.set_aside(dir, id)?;
        }
        self.tree.make_dir(dir)
    }

    /// Moves something that is in the way, and that may be somebody's work, into `quarantine/`.
    pub fn set_aside(&self, path: &str, id: &TaskId) -> io::Result<()> {
        let name = unfinished_name(id.as_str());
        let name = name.trim_start_matches('.').trim_end_matches(".tmp");
        self.tree.make_dir("quarantine")?;
        self.tree.rename(path, &format!("quarantine/{name}"))
    }

    /// Keeps a person's version of a file.
    pub fn keep_aside(&self, id: &TaskId, bytes: &[u8]) -> io::Result<String> {
        let name = unfinished_name(id.as_str());
        let name = format!("{}.md", name.trim_start_matches('.').trim_end_matches(".tmp"));
        self.tree.make_dir("quarantine")?;
        self.tree.create(&format!("quarantine/{name}"), bytes)?;
        Ok(name)
    }

    /// Writes the task's file into its folder and takes it away from where it was. Two files take turns: what was the task's file until now is
    /// kept aside, because a person may still save into it, and is looked at before it is used again.
    fn place_file(
        &self,
        task: &Task,
        bytes: &[u8],
        was: Option<&Projected>,
        displaced: &mut Vec<Displaced>,
    ) -> io::Result<(Stamp, Option<Stamp>)> {
        let id = &task.id;
        let (path, aside) = (file_path(task.status, id), spare_path(id));
        let stamp = self.write_aside(task, bytes, was.and_then(|was| was.spare), displaced)?;
        match self.tree.rename(&aside, &path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.tree.exchange(&aside, &path)?;
                let known = was.filter(|was| was.status == task.status).map(|was| was.stamp);
                self.look_aside(id, task.status, known, displaced)?;
            }
            Err(error) => return Err(error),
        }
        let others: Vec<Status> = match was {
            Some(was) if was.status == task.status => Vec::new(),
            Some(was) => vec![was.status],
            None => Status::ALL.iter().copied().filter(|status| *status != task.status).collect(),
        };
        for other in others {
            match self.tree.rename(&file_path(other, id), &aside) {
                Ok(()) => {
                    let known = was.filter(|was| was.status == other).map(|was| was.stamp);
                    self.look_aside(id, other, known, displaced)?;
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // More than one was in the way: the one aside has been looked at.
                    self.tree.remove(&aside)?;
                    self.tree.rename(&file_path(other, id), &aside)?;
                    self.look_aside(id, other, None, displaced)?;
                }
                Err(error) => return Err(error),
            }
        }
        let spare = match self.tree.look(&aside)? {
            Some(Found::File(stamp)) => Some(stamp),
            _ => None,
        };
        Ok((stamp, spare))
    }

    /// Writes the new text beside: into the file that was set aside the last time, if nobody has touched it since.
    fn write_aside(
        &self,
        task: &Task,
        bytes: &[u8],
        known: Option<Stamp>,
        displaced: &mut Vec<Displaced>,
    ) -> io::Result<Stamp> {
        let aside = spare_path(&task.id);
        match self.tree.look(&aside)? {
            None => return self.tree.create(&aside, bytes),
            Some(Found::File(stamp)) if Some(stamp) == known => {}
            Some(_) => self.look_aside(&task.id, task.status, None, displaced)?,
        }
        match self.tree.rewrite(&aside, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.tree.create(&aside, bytes),
            written => written,
        }
    }

    /// Looks at a file that has just been set aside: whether it is as Baton left it.
    fn look_aside(
        &self,
        id: &TaskId,
        status: Status,
        known: Option<Stamp>,
        displaced: &mut Vec<Displaced>,
    ) -> io::Result<()> {
        let path = spare_path(id);
        match self.tree.look(&path)? {
            Some(Found::File(stamp)) if Some(stamp) == known => Ok(()),
            Some(Found::File(_)) => match self.tree.read(&path, TASK_FILE_BYTES_MAX as u64) {
                Ok((bytes, _)) => {
                    displaced.push(Displaced { id: id.clone(), status, bytes });
                    Ok(())
                }
                // Too large or unreadable: kept as it is.
                Err(_) => self.set_aside(&path, id),
            },
            Some(Found::Dir | Found::Other) => self.set_aside(&path, id),
            None => Ok(()),
        }
    }

    /// Removes a file that was looked at and does not belong there; gives it back where it is not the same any more.
    pub fn clear(&self, judged: &Displaced) -> io::Result<Option<Displaced>> {
        let path = file_path(judged.status, &judged.id);
        let aside = format!("tasks/{}/{}", judged.status, unfinished_name(&format!("{}.md", judged.id)));
        match self.tree.rename(&path, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        match self.tree.read(&aside, TASK_FILE_BYTES_MAX as u64) {
            Ok((bytes, _)) => {
                self.tree.remove(&aside)?;
                let again = Displaced { id: judged.id.clone(), status: judged.status, bytes };
                Ok((again != *judged).then_some(again))
            }
            Err(_) => self.set_aside(&aside, &judged.id).map(|()| None),
        }
    }

    /// Removes what was being written of a run when its writer died.
    fn clear_unfinished_runs(&self, dir: &str, id: &TaskId) -> io::Result<()> {
        for name in self.tree.list(dir)? {
            if name.starts_with('.') && name.ends_with(".tmp") {
                let path = format!("{dir}/{name}");
                match self.tree.look(&path)? {
                    Some(Found::File(_)) => self.tree.remove(&path)?,
                    Some(Found::Dir | Found::Other) => self.set_aside(&path, id)?,
                    None => {}
                }
            }
        }
        Ok(())
    }

    /// Writes a file of Baton's own: a new one whole or not at all, one that is there in place.
    pub fn put(&self, dir: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = format!("{dir}/{name}");
        match self.tree.look(&path)? {
            Some(Found::File(_)) => return self.tree.rewrite(&path, bytes).map(drop),
            // Somebody put something else there.
            Some(Found::Dir | Found::Other) => {
                self.tree.make_dir("quarantine")?;
                let name = unfinished_name(name);
                self.tree.rename(&path, &format!("quarantine/{}", name.trim_matches('.')))?;
            }
            None => {}
        }
        let beside = format!("{dir}/{}", unfinished_name(name));
        self.tree.create(&beside, bytes)?;
        self.tree.rename(&beside, &path)
    }

    fn write_handoff(
        &self,
        task: &Task,
        papers: &Papers,
        was: Option<&Projected>,
    ) -> io::Result<Option<Digest>> {
        let (Some(handoff), Some(fields)) = (&task.handoff, &papers.handoff) else { return Ok(None) };
        if was.is_some_and(|was| was.handoff == Some(handoff.digest)) {
            return Ok(Some(handoff.digest));
        }
        let dir = format!("{}/inputs", folder_path(task.status, &task.id));
        self.own_dir(&folder_path(task.status, &task.id), &task.id)?;
        self.own_dir(&dir, &task.id)?;
        self.put(&dir, "handoff.json", handoff_json(fields).as_bytes())?;
        self.put(&dir, "handoff.md", handoff_md(fields).as_bytes())?;
        Ok(Some(handoff.digest))
    }

    fn write_run(
        &self,
        task: &Task,
        papers: &Papers,
        was: Option<&Projected>,
    ) -> io::Result<(Option<RunState>, Option<Digest>)> {
        let Some(run) = &task.run else { return Ok((None, None)) };
        let dir = run_dir(&task.id);
        let state = RunState { id: run.id, is_ended: run.ended.is_some() };
        let known = was.and_then(|was| was.run.as_ref());
        if known != Some(&state) {
            self.own_dir(&dir, &task.id)?;
            if known.is_none() {
                self.clear_unfinished_runs(&dir, &task.id)?;
            }
            if known.is_none_or(|known| known.id != run.id) {
                self.retire_run(&dir, run.id)?;
            }
            self.put(&dir, "run.json", pretty(&run_json(task, run)).as_bytes())?;
        }
        let beat = format!("{dir}/run_heartbeat.json");
        if let Some(lease) = task.lease.as_ref().filter(|lease| lease.run == run.id)
            && known.is_none_or(|known| known.id != run.id)
            && self.tree.look(&beat)?.is_none()
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
            self.own_dir(&dir, &task.id)?;
            if let Some(text) = result_json(task, completed, *at) {
                self.put(&dir, "run_result.json", text.as_bytes())?;
            }
        }
        Ok((Some(state), Some(completed.digest)))
    }

    /// Moves the files of an earlier run into its history.
    fn retire_run(&self, dir: &str, now: RunId) -> io::Result<()> {
        let read = self.tree.read(&format!("{dir}/run.json"), RUN_FILE_BYTES_MAX);
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
            self.tree.look(&format!("{dir}/{name}")).map(|found| any || found.is_some())
        })?;
        if !has_any {
            return Ok(());
        }
        let name = earlier
            .map_or_else(|| unfinished_name("unknown").trim_matches('.').to_owned(), |run| run.to_string());
        let history = format!("{dir}/history");
        self.tree.make_dir(&history)?;
        self.tree.make_dir(&format!("{history}/{name}"))?;
        for file in RUN_FILES {
            let (from, to) = (format!("{dir}/{file}"), format!("{history}/{name}/{file}"));
            match self.tree.rename(&from, &to) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // It was moved before a crash, and this is a leftover of the same run.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.tree.remove(&from)?,
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
        self.put(&run_dir(&task.id), "run_heartbeat.json", pretty(&value).as_bytes())
    }

    /// The heartbeat of a run, where its file reads and is of this run.
    pub fn heartbeat(&self, task: &TaskId, run: RunId) -> Option<Heartbeat> {
        let (bytes, _) =
            self.tree.read(&format!("{}/run_heartbeat.json", run_dir(task)), RUN_FILE_BYTES_MAX).ok()?;
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
        match self.tree.read(&format!("{}/run_result.json", run_dir(task)), RUN_FILE_BYTES_MAX) {
            Ok((bytes, _)) => Some(Ok(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => Some(Err(error)),
        }
    }

    /// Whether a task's folder has this file.
    pub fn has(&self, task: &Task, path: &str) -> bool {
        let path = format!("{}/{path}", folder_path(task.status, &task.id));
        matches!(self.tree.look(&path), Ok(Some(Found::File(_))))
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
    let mut text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.push('\n');
    text
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

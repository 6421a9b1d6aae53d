//! The files of one task as its state says they should be: written after the append, again and again with the same result.
//!
//! A person may save a task's file in the very moment in which it is written here. So a file is never replaced unseen: the new one changes places
//! with the old one, and the old one is looked at afterwards. What is not as Baton left it comes back as [`Displaced`], to be taken in.

use std::io;
use std::sync::Arc;

use baton_core::limits::TASK_FILE_BYTES_MAX;
use baton_core::protocol::{handoff_json, handoff_md};
use baton_core::task::{Papers, Status, Task, worklog};
use baton_core::{Digest, TaskId};
use baton_ledger::hash::sha256;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::runs::RunState;
use super::tree::{Found, Stamp, Tree};
use super::{edit, render};
use crate::disk::unfinished_name;

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
    /// Whether files lie aside that somebody may still be writing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_leftovers: bool,
}

/// What a projection did.
#[derive(Debug)]
pub struct Done {
    pub projected: Projected,
    pub displaced: Vec<Displaced>,
    /// What a person should know of.
    pub set_aside: Vec<SetAside>,
    /// What could not be written beside the task's file.
    pub failed: Option<io::Error>,
}

/// Something that was in the way of a task's files, and is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetAside {
    /// Where it was, in the data directory.
    pub path: String,
    /// Its name in `quarantine/`.
    pub name: String,
}

/// What a projection comes across on its way.
#[derive(Debug, Default)]
pub(super) struct Met {
    displaced: Vec<Displaced>,
    set_aside: Vec<SetAside>,
    has_leftovers: bool,
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

/// A file that changed less than this long ago may be one that somebody is still writing.
const FRESH_NS: i64 = 2_000_000_000;

/// Where a file lies until it is sure that nobody writes it any more. Its name says what was read of it.
fn leftover_path(id: &TaskId, read: Digest) -> String {
    format!("{SPARE_DIR}/{}", unfinished_name(&format!("{id}.md.{read}")))
}

/// The task of a file that is being made or lies aside, and the digest of what was read of it.
pub fn leftover_of(name: &str) -> Option<(TaskId, Option<Digest>)> {
    let (id, rest) = name.strip_prefix('.')?.strip_suffix(".tmp")?.split_once(".md.")?;
    let read = rest.split_once('.').and_then(|(read, _)| read.parse().ok());
    Some((id.parse().ok()?, read))
}

/// Whether a file has no content: truncated by somebody who is about to write, or half-made when the power went.
fn is_blank(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

/// Says which path an error is about.
fn at<T>(path: &str, done: io::Result<T>) -> io::Result<T> {
    done.map_err(|error| io::Error::new(error.kind(), format!("{path}: {error}")))
}

/// Where the files of a task may be left beside its own folder. One that was made this moment was never elsewhere.
fn elsewhere(task: &Task, is_new: bool) -> Vec<Status> {
    if is_new {
        return Vec::new();
    }
    Status::ALL.iter().copied().filter(|status| *status != task.status).collect()
}

const FOLDERS: [&str; 3] = ["inputs", "work", "outputs"];

/// Most of a work log that a task's file shows: with the largest body and head the file can still be read, and a log of twice this size can still
/// be given back whole in one edit.
const LOG_SHOWN_MAX: usize = 64 << 10;

/// The older part of a work log, which the ledger alone has, and the newest entries, which the file shows.
fn divide_log(log: &str) -> (&str, &str) {
    let Some(over) = log.len().checked_sub(LOG_SHOWN_MAX).filter(|over| *over > 0) else { return ("", log) };
    // Before the first whole line of the rest.
    let line_end = log.as_bytes()[over - 1..].iter().position(|byte| *byte == b'\n');
    log.split_at(line_end.map_or(log.len(), |end| over + end))
}

/// What says at the beginning of a log that there is more.
fn older_entries(older: &str) -> String {
    match older.lines().count() {
        0 => String::new(),
        1 => "- (1 older entry is in the ledger)\n".to_owned(),
        count => format!("- ({count} older entries are in the ledger)\n"),
    }
}

/// A work log as a task's file shows it.
pub fn shown_log(log: &str) -> String {
    let (older, newest) = divide_log(log);
    older_entries(older) + newest
}

/// The whole log that a person means by what the file shows after an edit. Who takes out the line about older entries takes them out.
pub fn meant_log(whole: &str, edited: &str) -> String {
    let (older, _) = divide_log(whole);
    match edited.strip_prefix(&older_entries(older)) {
        Some(newest) => format!("{older}{newest}"),
        None => edited.to_owned(),
    }
}

/// A task's file as text. The layout is the last text that a person wrote, if any.
pub fn file_text(task: &Task, papers: &Papers, layout: Option<&str>) -> String {
    let fields = task.frontmatter();
    let body = worklog::join(&papers.text, &shown_log(&papers.log));
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
        is_new: bool,
    ) -> io::Result<Done> {
        let mut met = Met::default();
        let folder = self.place_folder(task, was.map(|was| was.status), is_new, &mut met);
        let handoff = self.write_handoff(task, papers, was, &mut met);
        let run = self.write_run(task, papers, was, &mut met);
        // Whatever is wrong with the rest: the task's file says what the ledger says.
        let text = file_text(task, papers, layout);
        // Whoever is asked to looks at them, with the ledger at hand.
        met.has_leftovers = was.is_some_and(|was| was.has_leftovers);
        let (stamp, spare) = self.place_file(task, text.as_bytes(), was, is_new, &mut met)?;
        let (handoff, unwritten) =
            handoff.map_or_else(|error| (None, Some(error)), |handoff| (handoff, None));
        let ((run, result), not_run) =
            run.map_or_else(|error| ((None, None), Some(error)), |run| (run, None));
        let Met { displaced, set_aside, has_leftovers } = met;
        let (status, rev) = (task.status, task.rev());
        let projected = Projected { status, rev, stamp, spare, run, result, handoff, has_leftovers };
        Ok(Done { projected, displaced, set_aside, failed: folder.err().or(unwritten).or(not_run) })
    }

    /// Puts the task's folder where its status is, with the three inside.
    fn place_folder(&self, task: &Task, was: Option<Status>, is_new: bool, met: &mut Met) -> io::Result<()> {
        let id = &task.id;
        let here = folder_path(task.status, id);
        if was == Some(task.status) {
            return Ok(());
        }
        if let Some(Found::File(_) | Found::Other) = self.tree.look(&here)? {
            self.out_of_the_way(&here, id, met)?;
        }
        // Somebody may have moved the folder alone: then it is looked for everywhere.
        let is_there = |was: &Status| {
            self.tree.look(&folder_path(*was, id)).is_ok_and(|found| found == Some(Found::Dir))
        };
        let others: Vec<Status> = match was.filter(is_there) {
            Some(was) => vec![was],
            None => elsewhere(task, is_new),
        };
        for other in others {
            let there = folder_path(other, id);
            match self.tree.rename(&there, &here) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Both are there. The task's is the one where it was last; where that is not known, the one that has something in it, and of two
                // such the one where the ledger says.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    if was == Some(other) || (!self.has_content(&here) && self.has_content(&there)) {
                        self.out_of_the_way(&here, id, met)?;
                        at(&there, self.tree.rename(&there, &here))?;
                    } else {
                        self.out_of_the_way(&there, id, met)?;
                    }
                }
                Err(error) => return at(&there, Err(error)),
            }
        }
        self.own_dir(&here, id, met)?;
        FOLDERS.iter().try_for_each(|folder| self.own_dir(&format!("{here}/{folder}"), id, met))
    }

    /// Whether there is anything in a task's folder but the three that Baton makes.
    fn has_content(&self, folder: &str) -> bool {
        let Ok(names) = self.tree.list(folder) else { return true };
        names.iter().any(|name| {
            let is_empty = || self.tree.list(&format!("{folder}/{name}")).is_ok_and(|names| names.is_empty());
            !(FOLDERS.contains(&name.as_str()) && is_empty())
        })
    }

    /// Makes room: what has nothing in it goes, anything else is kept aside.
    pub(super) fn out_of_the_way(&self, path: &str, id: &TaskId, met: &mut Met) -> io::Result<()> {
        if self.tree.look(path)? == Some(Found::Dir) && !self.has_content(path) {
            for folder in FOLDERS {
                // Not there, or written into at this moment: then the whole stays.
                let _ = self.tree.remove_dir(&format!("{path}/{folder}"));
            }
            if self.tree.remove_dir(path).is_ok() {
                return Ok(());
            }
        }
        let name = self.set_aside(path, id)?;
        met.set_aside.push(SetAside { path: path.to_owned(), name });
        Ok(())
    }

    /// Makes a directory of Baton's own. Anything else in its place, a link before all, is kept aside: who works on the task can put it there.
    pub(super) fn own_dir(&self, dir: &str, id: &TaskId, met: &mut Met) -> io::Result<()> {
        match at(dir, self.tree.look(dir))? {
            Some(Found::Dir) => return Ok(()),
            Some(Found::File(_) | Found::Other) => self.out_of_the_way(dir, id, met)?,
            None => {}
        }
        at(dir, self.tree.make_dir(dir))
    }

    /// Moves something that is in the way, and that may be somebody's work, into `quarantine/`.
    pub fn set_aside(&self, path: &str, id: &TaskId) -> io::Result<String> {
        let name = unfinished_name(id.as_str());
        let name = name.trim_start_matches('.').trim_end_matches(".tmp");
        self.tree.make_dir("quarantine")?;
        at(path, self.tree.rename(path, &format!("quarantine/{name}")))?;
        Ok(name.to_owned())
    }

    /// Keeps a person's version of a file.
    pub fn keep_aside(&self, id: &TaskId, bytes: &[u8]) -> io::Result<String> {
        let name = unfinished_name(id.as_str());
        let name = format!("{}.md", name.trim_start_matches('.').trim_end_matches(".tmp"));
        let path = format!("quarantine/{name}");
        at("quarantine", self.tree.make_dir("quarantine"))?;
        at(&path, self.tree.create(&path, bytes))?;
        Ok(name)
    }

    /// Writes the task's file into its folder and takes it away from where it was. Two files take turns: what was the task's file until now is
    /// kept aside, because a person may still save into it, and is looked at before it is used again.
    fn place_file(
        &self,
        task: &Task,
        bytes: &[u8],
        was: Option<&Projected>,
        is_new: bool,
        met: &mut Met,
    ) -> io::Result<(Stamp, Option<Stamp>)> {
        let id = &task.id;
        let (path, aside) = (file_path(task.status, id), spare_path(id));
        let stamp = at(&aside, self.write_aside(task, bytes, was.and_then(|was| was.spare), met))?;
        let mut spare = None;
        match self.tree.rename(&aside, &path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                at(&path, self.tree.exchange(&aside, &path))?;
                let known = was.filter(|was| was.status == task.status).map(|was| was.stamp);
                spare = self.look_aside(id, task.status, known, met)?;
            }
            Err(error) => return at(&path, Err(error)),
        }
        let others: Vec<Status> = match was {
            Some(was) if was.status == task.status => Vec::new(),
            Some(was) => vec![was.status],
            None => elsewhere(task, is_new),
        };
        for other in others {
            let there = file_path(other, id);
            match self.tree.rename(&there, &aside) {
                Ok(()) => {}
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    // More than one was in the way: the one aside has been looked at.
                    self.leave(id, met)?;
                    self.tree.rename(&there, &aside)?;
                }
                Err(error) => return at(&there, Err(error)),
            }
            let known = was.filter(|was| was.status == other).map(|was| was.stamp);
            spare = self.look_aside(id, other, known, met)?;
        }
        Ok((stamp, spare))
    }

    /// Writes the new text beside: into the file that was set aside the last time, if nobody has touched it since.
    fn write_aside(
        &self,
        task: &Task,
        bytes: &[u8],
        known: Option<Stamp>,
        met: &mut Met,
    ) -> io::Result<Stamp> {
        let (id, aside) = (&task.id, spare_path(&task.id));
        let found = self.tree.look(&aside)?;
        let usable = known.filter(|known| found == Some(Found::File(*known)));
        // What somebody saved into it is not recorded yet: until then the only copy is here.
        if found.is_some() && usable.is_none() && self.look_aside(id, task.status, None, met)?.is_some() {
            self.leave(id, met)?;
        }
        if let Some(stamp) = usable {
            match self.tree.rewrite(&aside, bytes, Some(stamp)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                // Somebody was quicker.
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    if self.look_aside(id, task.status, None, met)?.is_some() {
                        self.leave(id, met)?;
                    }
                }
                written => return written,
            }
        }
        self.tree.create(&aside, bytes)
    }

    /// Looks at a file that has just been set aside: whether it is as Baton left it. Gives its stamp if it may be used again: then what it holds
    /// has been seen, and nobody is writing it. Anything else is left alone under another name, to be looked at later.
    fn look_aside(
        &self,
        id: &TaskId,
        status: Status,
        known: Option<Stamp>,
        met: &mut Met,
    ) -> io::Result<Option<Stamp>> {
        let path = spare_path(id);
        match self.tree.look(&path)? {
            Some(Found::File(stamp)) if Some(stamp) == known => return Ok(known),
            Some(Found::File(_)) => {}
            Some(Found::Dir | Found::Other) => return self.out_of_the_way(&path, id, met).map(|()| None),
            None => return Ok(None),
        }
        let Ok((bytes, stamp)) = self.tree.read(&path, TASK_FILE_BYTES_MAX as u64) else {
            // Too large or unreadable: kept as it is.
            return self.out_of_the_way(&path, id, met).map(|()| None);
        };
        if self.tree.is_being_written(&path) {
            // What is there is a part of something: nothing of it has been seen.
            self.tree.rename(&path, &leftover_path(id, Digest::ZERO))?;
            met.has_leftovers = true;
            return Ok(None);
        }
        let is_settled = !is_blank(&bytes) && bytes.len() as u64 == stamp.bytes && !self.is_fresh(&stamp);
        if !is_settled {
            self.tree.rename(&path, &leftover_path(id, sha256(&bytes)))?;
            met.has_leftovers = true;
        }
        if !is_blank(&bytes) {
            met.displaced.push(Displaced { id: id.clone(), status, bytes });
        }
        Ok(is_settled.then_some(stamp))
    }

    /// Leaves the file that is aside alone, under another name: somebody may have written it since it was looked at.
    fn leave(&self, id: &TaskId, met: &mut Met) -> io::Result<()> {
        match self.leave_unseen(&spare_path(id), id) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            left => left?,
        }
        met.has_leftovers = true;
        Ok(())
    }

    /// Gives a file that lies aside a name that says: nothing of it has been seen.
    pub fn leave_unseen(&self, path: &str, id: &TaskId) -> io::Result<()> {
        self.tree.rename(path, &leftover_path(id, Digest::ZERO))
    }

    /// Whether somebody writes a file, or has changed it so lately that more may come.
    pub fn may_be_written(&self, path: &str, stamp: &Stamp) -> bool {
        self.is_fresh(stamp) || self.tree.is_being_written(path)
    }

    /// Whether a file changed so lately that somebody may still be writing it.
    fn is_fresh(&self, stamp: &Stamp) -> bool {
        (0..FRESH_NS).contains(&self.tree.now_ns().saturating_sub(stamp.modified_ns))
    }

    /// Removes a file that was looked at and does not belong there; gives it back where it is not the same any more.
    pub fn clear(&self, judged: &Displaced) -> io::Result<Option<Displaced>> {
        let path = file_path(judged.status, &judged.id);
        let aside = leftover_path(&judged.id, sha256(&judged.bytes));
        match self.tree.rename(&path, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error),
        }
        match self.tree.read(&aside, TASK_FILE_BYTES_MAX as u64) {
            Ok((bytes, stamp)) if bytes == judged.bytes => {
                // Somebody may still be writing it.
                if !self.may_be_written(&aside, &stamp) {
                    self.tree.remove(&aside)?;
                }
                Ok(None)
            }
            Ok((bytes, _)) => {
                // Not recorded yet: until then the only copy is here.
                self.leave_unseen(&aside, &judged.id)?;
                Ok(Some(Displaced { id: judged.id.clone(), status: judged.status, bytes }))
            }
            Err(_) => self.set_aside(&aside, &judged.id).map(|_| None),
        }
    }

    /// Writes a file of Baton's own: a new one whole or not at all, one that is there in place.
    pub fn put(&self, dir: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        let path = format!("{dir}/{name}");
        at(&path, self.put_at(&path, dir, name, bytes))
    }

    fn put_at(&self, path: &str, dir: &str, name: &str, bytes: &[u8]) -> io::Result<()> {
        match self.tree.look(path)? {
            Some(Found::File(_)) => return self.tree.rewrite(path, bytes, None).map(drop),
            // Somebody put something else there.
            Some(Found::Dir | Found::Other) => {
                self.tree.make_dir("quarantine")?;
                let name = unfinished_name(name);
                self.tree.rename(path, &format!("quarantine/{}", name.trim_matches('.')))?;
            }
            None => {}
        }
        let beside = format!("{dir}/{}", unfinished_name(name));
        self.tree.create(&beside, bytes)?;
        self.tree.rename(&beside, path)
    }

    fn write_handoff(
        &self,
        task: &Task,
        papers: &Papers,
        was: Option<&Projected>,
        met: &mut Met,
    ) -> io::Result<Option<Digest>> {
        let (Some(handoff), Some(fields)) = (&task.handoff, &papers.handoff) else { return Ok(None) };
        if was.is_some_and(|was| was.handoff == Some(handoff.digest)) {
            return Ok(Some(handoff.digest));
        }
        let dir = format!("{}/inputs", folder_path(task.status, &task.id));
        self.own_dir(&folder_path(task.status, &task.id), &task.id, met)?;
        self.own_dir(&dir, &task.id, met)?;
        self.put(&dir, "handoff.json", handoff_json(fields).as_bytes())?;
        self.put(&dir, "handoff.md", handoff_md(fields).as_bytes())?;
        Ok(Some(handoff.digest))
    }

    /// Whether a task's folder has this file.
    pub fn has(&self, task: &Task, path: &str) -> bool {
        let path = format!("{}/{path}", folder_path(task.status, &task.id));
        matches!(self.tree.look(&path), Ok(Some(Found::File(_))))
    }
}

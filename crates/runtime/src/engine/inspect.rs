//! What a task's file says that Baton did not write: compared, field by field, with what Baton wrote at the file's own revision.

use baton_core::task::decide::{EDITABLE, Edit, Move, New, RefusedEdit, operator, read_routing, system};
use baton_core::task::{Papers, Phase, Priority, Routing, Status, Task, worklog};
use baton_core::{Digest, TaskId};
use baton_ledger::hash::sha256;
use baton_ledger::seal::Refusal as Unsealed;
use baton_store::AppendError;
use baton_store::tasks::Document;
use baton_store::tasks::files::{Displaced, file_text, meant_log, shown_log};
use baton_store::tasks::fold::fold;
use serde_json::{Map, Value};

use super::{Engine, Fault, State};

/// What a file that is not as it should be turns out to be.
#[derive(Debug, PartialEq)]
pub(super) enum Judged {
    /// As Baton wrote it at some moment, or taken in already.
    Own,
    Edited(Edited),
    /// It changes nothing, and is kept.
    Nonsense(String),
}

/// What a person changed.
#[derive(Debug, PartialEq, Default)]
pub(super) struct Edited {
    fields: Map<String, Value>,
    status: Option<Status>,
    /// Fields that the ledger changed too since the person opened the file.
    conflicts: Vec<&'static str>,
}

impl Engine {
    /// Takes in what a person saved, or says why not. Nothing of it is lost either way.
    pub(super) fn take_displaced(&self, state: &mut State, found: &Displaced) -> Result<(), Fault> {
        once(state, found, |state| self.take_found(state, found))
    }

    fn take_found(&self, state: &mut State, found: &Displaced) -> Result<(), Fault> {
        let Some(task) = state.board.get(&found.id).cloned() else {
            return self.take_new(state, &found.id, found.status, &found.bytes);
        };
        match self.judge(state, &task, found.status, &found.bytes)? {
            Judged::Own => Ok(()),
            Judged::Nonsense(reason) => self.refuse_edit(state, &found.id, &reason, &found.bytes),
            Judged::Edited(edited) => self.take_edit(state, &task, edited, &found.bytes),
        }
    }

    /// Takes in a file that lay aside when its maker died. Where it lies says nothing: Baton put it there.
    pub(super) fn take_leftover(&self, state: &mut State, found: &Displaced) -> Result<(), Fault> {
        let Some(task) = state.board.get(&found.id).cloned() else { return Ok(()) };
        once(state, found, |state| match self.judge(state, &task, task.status, &found.bytes)? {
            Judged::Own => Ok(()),
            Judged::Nonsense(reason) => self.refuse_edit(state, &found.id, &reason, &found.bytes),
            Judged::Edited(edited) => {
                let edited = Edited { status: None, ..edited };
                self.take_edit(state, &task, edited, &found.bytes)
            }
        })
    }

    fn take_edit(&self, state: &mut State, task: &Task, edited: Edited, bytes: &[u8]) -> Result<(), Fault> {
        let id = &task.id;
        let file = self.store_bytes(bytes, "text/markdown", "task.md")?;
        let edit = Edit { task: id.clone(), fields: edited.fields, file: Some(file) };
        // The move first: where it is impossible, the rest of the edit makes no sense either.
        if let Some(to) = edited.status {
            let moment = self.ground.clock.moment();
            let asked = Move { task: id.clone(), to, reason: "moved by hand".into() };
            let moved = self.act(state, |board, _| Ok(((), board.transition(&asked, &operator(), moment)?)));
            if let Err(fault) = moved {
                return self.refuse_edit(state, id, &why_refused(fault)?, bytes);
            }
        }
        let moment = self.ground.clock.moment();
        if let Err(fault) = self.act(state, |board, _| Ok(((), board.edit(&edit, &operator(), moment)?))) {
            return self.refuse_edit(state, id, &why_refused(fault)?, bytes);
        }
        match edited.conflicts.as_slice() {
            [] => Ok(()),
            conflicts => {
                let fields = conflicts.join(", ");
                self.refuse_edit(
                    state,
                    id,
                    &format!("{fields}: changed in the ledger at the same time"),
                    bytes,
                )
            }
        }
    }

    /// Keeps a person's version aside and records that it was not taken in.
    pub(super) fn refuse_edit(
        &self,
        state: &mut State,
        id: &TaskId,
        reason: &str,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let name = self.files.keep_aside(id, bytes).map_err(Fault::files(id.as_str()))?;
        let kept = self.place(&format!("quarantine/{name}"));
        state.notices.push(format!("{id}: an edit was not taken in: {reason}; it is kept in {kept}"));
        let reason: String = reason.chars().take(1024).collect();
        let digest = Some(sha256(bytes));
        let refused = RefusedEdit { task: id.clone(), reason, quarantine: Some(name), digest };
        let moment = self.ground.clock.moment();
        self.act(state, |board, _| Ok(((), board.refuse_edit(&refused, &system(), moment)?))).map(drop)
    }

    /// Compares a file with what Baton wrote at the revision that it names.
    pub(super) fn judge(
        &self,
        state: &mut State,
        task: &Task,
        found: Status,
        bytes: &[u8],
    ) -> Result<Judged, Fault> {
        // A file without content is one that a crash left half-made.
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(Judged::Own);
        }
        if task.layout == Some(sha256(bytes)) && found == task.status {
            return Ok(Judged::Own);
        }
        let document = match Document::parse(bytes) {
            Ok(document) => document,
            Err(_) if self.is_torn(state, task, bytes)? => return Ok(Judged::Own),
            Err(problem) => return Ok(Judged::Nonsense(problem.to_string())),
        };
        let fields = document.fields();
        if fields.get("id").and_then(Value::as_str) != Some(task.id.as_str()) {
            let problem = document.refuse("id", format!("{}, as the file is called", task.id));
            return Ok(Judged::Nonsense(problem.to_string()));
        }
        let rev = match fields.get("rev").and_then(Value::as_u64) {
            Some(rev) if rev >= 1 && rev <= task.rev() => rev,
            _ => {
                let problem =
                    document.refuse("rev", format!("a number from 1 to {}, as Baton wrote it", task.rev()));
                return Ok(Judged::Nonsense(problem.to_string()));
            }
        };
        let (then, papers) = match rev == task.rev() {
            true => (task.clone(), self.papers(state, task)?),
            false => fold(&*self.ground.journal, task, Some(rev))?,
        };
        if bytes == file_text(&then, &papers, self.layout_of(&then).as_deref()).as_bytes() {
            return Ok(if found == then.status || found == task.status {
                Judged::Own
            } else {
                Judged::Edited(Edited { status: Some(found), ..Edited::default() })
            });
        }
        let now = self.papers(state, task)?;
        Ok(compare(&document, found, (&then, &papers), (task, &now)))
    }

    /// Whether a file is the beginning of what Baton was writing when it died.
    fn is_torn(&self, state: &mut State, task: &Task, bytes: &[u8]) -> Result<bool, Fault> {
        let end = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        let papers = self.papers(state, task)?;
        let text = file_text(task, &papers, self.layout_of(task).as_deref());
        if text.as_bytes().starts_with(&bytes[..end]) {
            return Ok(true);
        }
        let Some(rev) = state.projected.get(&task.id).map(|was| was.rev) else { return Ok(false) };
        let (then, papers) = fold(&*self.ground.journal, task, Some(rev))?;
        let text = file_text(&then, &papers, self.layout_of(&then).as_deref());
        Ok(text.as_bytes().starts_with(&bytes[..end]))
    }

    /// Makes a task of a file that nobody knew.
    pub(super) fn take_new(
        &self,
        state: &mut State,
        id: &TaskId,
        status: Status,
        bytes: &[u8],
    ) -> Result<(), Fault> {
        let new = match read_new(id, status, bytes) {
            Ok(new) => new,
            Err(why) => {
                self.not_taken(state, id, status, bytes, &why);
                return Ok(());
            }
        };
        let file = self.store_bytes(bytes, "text/markdown", "task.md")?;
        let new = New { file: Some(file), guarded: new.guarded || self.settings.guards, ..new };
        let moment = self.ground.clock.moment();
        if let Err(fault) = self.act(state, |board, _| Ok(board.create(&new, &operator(), moment)?)) {
            let why = why_refused(fault)?;
            self.not_taken(state, id, status, bytes, &why);
        }
        Ok(())
    }

    /// Tells of a file that makes no task; once, as long as it stays as it is.
    fn not_taken(&self, state: &mut State, id: &TaskId, status: Status, bytes: &[u8], why: &str) {
        let path = format!("tasks/{status}/{id}.md");
        let notice = format!("{} is not taken in: {why}", self.place(&path));
        state.tell_once(format!("{path} {}", sha256(bytes)), notice);
    }
}

/// Whether this file is the one that is being taken in.
pub(super) fn is_same_file(taking: Option<&(TaskId, Digest)>, found: &Displaced) -> bool {
    taking.is_some_and(|(id, digest)| *id == found.id && *digest == sha256(&found.bytes))
}

/// Does this for a file once: what is recorded of it writes the task's file anew, and so comes across the same bytes again.
fn once(
    state: &mut State,
    found: &Displaced,
    take: impl FnOnce(&mut State) -> Result<(), Fault>,
) -> Result<(), Fault> {
    if is_same_file(state.taking.as_ref(), found) {
        return Ok(());
    }
    let outer = state.taking.replace((found.id.clone(), sha256(&found.bytes)));
    let taken = take(state);
    state.taking = outer;
    taken
}

/// Why what a file says cannot be recorded, where that is the file's fault: a rule, or a value or size that no event may have.
fn why_refused(fault: Fault) -> Result<String, Fault> {
    match fault {
        Fault::Refused(refusal) => Ok(refusal.to_string()),
        Fault::Append(AppendError::Refused(Unsealed::Form(why))) => Ok(why),
        fault => Err(fault),
    }
}

/// What differs from the file's own revision, as far as a person may change it.
fn compare(
    document: &Document,
    found: Status,
    (then, papers_then): (&Task, &Papers),
    (now, papers_now): (&Task, &Papers),
) -> Judged {
    let mut edited = Edited::default();
    let values_now = now.frontmatter();
    for (key, value_then) in then.frontmatter() {
        let value = document.fields().get(key).filter(|value| !is_nothing(value));
        if key == "rev" || is_same(value, value_then.as_ref()) {
            continue;
        }
        let value_now =
            values_now.iter().find(|(name, _)| *name == key).and_then(|(_, value)| value.as_ref());
        if is_same(value, value_now) {
            continue;
        }
        if key == "status" {
            match value.and_then(Value::as_str).map(str::parse::<Status>) {
                Some(Ok(status)) => edited.status = Some(status),
                _ => return Judged::Nonsense(document.refuse("status", "a status").to_string()),
            }
        } else if !EDITABLE.contains(&key) {
            return Judged::Nonsense(document.refuse(key, "what Baton wrote: nobody else does").to_string());
        } else if is_same(value_then.as_ref(), value_now) {
            edited.fields.insert(key.to_owned(), value.cloned().unwrap_or(empty(key)));
        } else {
            edited.conflicts.push(key);
        }
    }
    // Where the file lies says more than what stands in it.
    if found != then.status && found != now.status {
        edited.status = Some(found);
    }
    edited.status = edited.status.filter(|status| *status != now.status);
    let (text, log) = worklog::split(document.body());
    let (then, now) = (&papers_then.text, &papers_now.text);
    if text != *then && text != *now {
        if then == now {
            edited.fields.insert("body".to_owned(), text.into());
        } else {
            edited.conflicts.push("body");
        }
    }
    let (then, now) = (&papers_then.log, &papers_now.log);
    if log != shown_log(then) && log != shown_log(now) {
        if then == now {
            edited.fields.insert("workLog".to_owned(), meant_log(now, &log).into());
        } else {
            edited.conflicts.push("workLog");
        }
    }
    Judged::Edited(edited)
}

/// Whether two values of the file mean the same: nothing, null, and an empty list or mapping do.
fn is_same(a: Option<&Value>, b: Option<&Value>) -> bool {
    let some = |value: Option<&Value>| value.filter(|value| !is_nothing(value)).cloned();
    some(a) == some(b)
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// What an editable field is when a person took it out.
fn empty(key: &str) -> Value {
    match key {
        "dependsOn" => Value::Array(Vec::new()),
        "routing" | "metadata" => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

/// Reads a file that a person made as a new task.
fn read_new(id: &TaskId, status: Status, bytes: &[u8]) -> Result<New, String> {
    let document = Document::parse(bytes).map_err(|problem| problem.to_string())?;
    let fields = document.fields();
    let refuse = |field: &str, expected: &str| document.refuse(field, expected).to_string();
    let text = |key: &str| match fields.get(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(refuse(key, "a string")),
    };
    if text("id")?.is_some_and(|given| given != id.as_str()) {
        return Err(refuse("id", "the id that the file is named by"));
    }
    let ids = |key: &str| -> Result<Vec<TaskId>, String> {
        let list = match fields.get(key) {
            None | Some(Value::Null) => return Ok(Vec::new()),
            Some(Value::Array(list)) => list,
            Some(_) => return Err(refuse(key, "a list of task ids")),
        };
        let ids: Option<Vec<TaskId>> = list.iter().map(|id| id.as_str()?.parse().ok()).collect();
        ids.ok_or_else(|| refuse(key, "a list of task ids"))
    };
    let title = text("title")?.ok_or_else(|| refuse("title", "a title"))?;
    let routing = match fields.get("routing") {
        None | Some(Value::Null) => Routing::default(),
        Some(value) => read_routing(value).map_err(|refusal| refusal.to_string())?,
    };
    let metadata = match fields.get("metadata") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(map)) => map.clone(),
        Some(_) => return Err(refuse("metadata", "a mapping")),
    };
    let parent =
        text("parentId")?.map(|id| id.parse::<TaskId>().map_err(|_| refuse("parentId", "a task id")));
    let priority =
        text("priority")?.map(|word| word.parse::<Priority>().map_err(|e| refuse("priority", e.expected)));
    let phase = text("phase")?.map(|word| word.parse::<Phase>().map_err(|e| refuse("phase", e.expected)));
    Ok(New {
        id: Some(id.clone()),
        body: document.body().to_owned(),
        status,
        phase: phase.transpose()?.unwrap_or(Phase::Implementation),
        priority: priority.transpose()?.unwrap_or(Priority::Normal),
        routing,
        depends_on: ids("dependsOn")?,
        parent: parent.transpose()?,
        guarded: fields.get("guarded") == Some(&Value::Bool(true)),
        metadata,
        ..New::titled(title)
    })
}

//! A new task.

use serde_json::{Map, Value};

use super::edit::{expect_metadata, read_routing};
use super::{Decided, Ids, Moment, expect_text, system};
use crate::event::{Actor, ArtifactRef, Event, Payload};
use crate::ids::TaskId;
use crate::limits::{BODY_BYTES_MAX, DEPENDENCIES_MAX, TITLE_CHARS_MAX};
use crate::task::event::Created;
use crate::task::{Board, Phase, Priority, Refusal, Routing, Status, TaskEvent};
use crate::time::Timestamp;

/// What a new task is to be.
#[derive(Debug, Clone, PartialEq)]
pub struct New {
    /// The id that it must have; else the next number of the day.
    pub id: Option<TaskId>,
    pub title: String,
    pub body: String,
    pub status: Status,
    pub phase: Phase,
    pub priority: Priority,
    pub routing: Routing,
    pub depends_on: Vec<TaskId>,
    pub parent: Option<TaskId>,
    pub guarded: bool,
    pub metadata: Map<String, Value>,
    /// The file that a person made it with, stored as an artifact.
    pub file: Option<ArtifactRef>,
}

impl New {
    pub fn titled(title: impl Into<String>) -> Self {
        New {
            id: None,
            title: title.into(),
            body: String::new(),
            status: Status::Backlog,
            phase: Phase::Implementation,
            priority: Priority::Normal,
            routing: Routing::default(),
            depends_on: Vec::new(),
            parent: None,
            guarded: false,
            metadata: Map::new(),
            file: None,
        }
    }
}

/// Checks what any text of a task must be, new or edited.
pub(super) fn expect_fitting(title: Option<&str>, body: Option<&str>) -> Result<(), Refusal> {
    if let Some(title) = title {
        expect_text("title", title, TITLE_CHARS_MAX)?;
        if title.chars().any(char::is_control) {
            let expected = "one line without control characters".to_owned();
            let got = title.chars().take(80).collect();
            return Err(Refusal::Field { field: "title", expected, got });
        }
    }
    match body {
        Some(body) if body.len() > BODY_BYTES_MAX => {
            let expected = format!("at most {BODY_BYTES_MAX} bytes; put the rest into a file in inputs/");
            Err(Refusal::Field { field: "body", expected, got: format!("{} bytes", body.len()) })
        }
        Some(body) if body.contains('\0') => {
            let expected = "text without NUL".to_owned();
            Err(Refusal::Field { field: "body", expected, got: "a NUL".into() })
        }
        _ => Ok(()),
    }
}

impl Board {
    /// Checks that a task may depend on these.
    pub(super) fn expect_dependencies(&self, id: &TaskId, on: &[TaskId]) -> Result<(), Refusal> {
        if on.len() > DEPENDENCIES_MAX {
            let expected = format!("at most {DEPENDENCIES_MAX} tasks");
            return Err(Refusal::Field { field: "dependsOn", expected, got: on.len().to_string() });
        }
        if let Some(mut cycle) = self.cycle(id, on) {
            cycle.insert(0, id.clone());
            return Err(Refusal::Cycle(cycle));
        }
        match on.iter().find(|dependency| self.get(dependency).is_none()) {
            Some(missing) => Err(Refusal::DependencyNotFound(missing.clone())),
            None => Ok(()),
        }
    }

    /// Makes a task and opens its trace.
    pub fn create(&self, new: &New, by: &Actor, moment: Moment) -> Result<(TaskId, Decided), Refusal> {
        expect_fitting(Some(&new.title), Some(&new.body))?;
        let id = new.id.clone().unwrap_or_else(|| self.next_id(moment.now));
        if self.get(&id).is_some() {
            return Err(Refusal::Exists(id));
        }
        // Not in the id itself: a ledger that has such a one stays readable.
        if Timestamp::from_rfc3339(&format!("{}T00:00:00Z", id.parts().0)).is_err() {
            let expected = "TASK-YYYY-MM-DD-NNN with a date that there is".to_owned();
            return Err(Refusal::Field { field: "id", expected, got: id.to_string() });
        }
        if !matches!(new.status, Status::Backlog | Status::Ready) {
            let expected = "backlog or ready for a new task".to_owned();
            return Err(Refusal::Field { field: "status", expected, got: new.status.to_string() });
        }
        if !matches!(new.phase, Phase::Draft | Phase::Implementation) {
            let expected = "DRAFT or IMPLEMENTATION for a new task".to_owned();
            return Err(Refusal::Field { field: "phase", expected, got: new.phase.to_string() });
        }
        self.expect_dependencies(&id, &new.depends_on)?;
        expect_metadata(&new.metadata, None)?;
        // What an edit could not say, a new task cannot either.
        read_routing(&new.routing.to_json())?;
        if let Some(parent) = new.parent.as_ref().filter(|parent| self.get(parent).is_none()) {
            return Err(Refusal::ParentNotFound(parent.clone()));
        }
        let mut depends_on = new.depends_on.clone();
        depends_on.sort();
        depends_on.dedup();
        let mut ids = Ids::new(moment);
        let trace = ids.trace();
        let created = TaskEvent::Created(Created {
            title: new.title.clone(),
            status: new.status,
            phase: new.phase,
            priority: new.priority,
            routing: new.routing.clone(),
            created_by: by.agent.to_string(),
            parent_id: new.parent.clone(),
            depends_on,
            guarded: new.guarded,
            metadata: new.metadata.clone(),
            body: new.body.clone(),
            layout: new.file.as_ref().map(|file| file.sha256),
        });
        let event = |ids: &mut Ids, actor: Actor, payload, artifacts| Event {
            trace,
            id: ids.event(),
            at: moment.now,
            actor,
            task: Some(id.to_token()),
            run: None,
            session: None,
            fence: None,
            payload,
            artifacts,
            seen: None,
        };
        let title = Some(new.title.clone());
        let events = vec![
            event(&mut ids, system(), Payload::TraceOpened { title }, Vec::new()),
            event(&mut ids, by.clone(), created.to_payload(), new.file.iter().cloned().collect()),
        ];
        Ok((id, Decided { events, decided_on: vec![(trace, 0)] }))
    }
}

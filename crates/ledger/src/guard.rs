//! The rules of guarded work, at the two places where they are asked: before a body is sealed, and of a line that was.

use std::sync::Arc;

use baton_core::guard::{Breach, Run, Said, Step};
use baton_core::{Digest, Event, KeyId, Role, Seen};
use serde_json::Value;

use crate::canonical;
use crate::record::Line;

/// What the rules need to know of an event beside who says it: its step, read from its payload, and what it cites.
#[derive(Debug, Clone, Default)]
pub struct Heard {
    /// `None` where its type is no part of the protocol; otherwise what its fields say, or why they do not.
    pub step: Option<Box<Result<Step, String>>>,
    pub cited: Vec<Digest>,
}

/// Who says something, and where it stands or would stand.
#[derive(Debug, Clone, Copy)]
pub struct Speaker<'a> {
    pub event_type: &'a str,
    pub agent: &'a str,
    pub role: Role,
    pub key: Option<KeyId>,
    pub seq: u64,
    pub seen: Option<Seen>,
}

/// Why the rules do not let an event stand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Broken {
    /// Its fields are not those of its type.
    Form(String),
    Rule(Breach),
}

impl Heard {
    pub fn of_event(event: &Event) -> Heard {
        let event_type = event.payload.event_type();
        let is_step = Step::TYPES.contains(&event_type);
        let read = is_step.then(|| Step::read(event_type, &event.payload.fields())).flatten();
        let Some(step) = read else { return Heard::default() };
        Heard {
            step: Some(Box::new(step.map_err(|error| error.to_string()))),
            cited: event.artifacts.iter().map(|artifact| artifact.sha256).collect(),
        }
    }

    pub fn of_line(line: &Line<'_>) -> Heard {
        if !Step::TYPES.contains(&line.event_type) {
            return Heard::default();
        }
        let step = match canonical::parse(line.payload.as_bytes()) {
            Ok(Value::Object(fields)) => match Step::read(line.event_type, &fields) {
                Some(read) => read.map_err(|error| error.to_string()),
                None => return Heard::default(),
            },
            Ok(_) => Err("payload: expected an object".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        let cited = line.artifacts.iter().map(|artifact| artifact.sha256).collect();
        Heard { step: Some(Box::new(step)), cited }
    }

    fn said<'a>(&'a self, by: &Speaker<'a>) -> Said<'a> {
        Said {
            event_type: by.event_type,
            step: self.step.as_deref().and_then(|step| step.as_ref().ok()),
            agent: by.agent,
            role: by.role,
            key: by.key,
            seq: by.seq,
            seen: by.seen.map(|seen| (seen.seq, seen.hash)),
            cited: &self.cited,
        }
    }

    /// Whether a run, or a trace that is none, may go on with this.
    pub fn admit(&self, run: Option<&Run>, by: &Speaker<'_>) -> Result<(), Broken> {
        let said = self.said(by);
        match run {
            Some(run) => run.admit(&said).map_err(Broken::Rule)?,
            None => Run::admit_beginning(&said).map_err(Broken::Rule)?,
        }
        match self.step.as_deref() {
            // In a trace that is no run these types are anybody's own.
            Some(Err(why)) if run.is_some() || by.event_type == "session_initialized" => {
                Err(Broken::Form(why.clone()))
            }
            _ => Ok(()),
        }
    }

    /// The run after this; `None` as long as none has begun.
    pub fn apply(&self, run: &mut Option<Arc<Run>>, by: &Speaker<'_>) {
        let said = self.said(by);
        match run {
            Some(run) => Arc::make_mut(run).apply(&said),
            None => *run = Run::begin(&said).map(Arc::new),
        }
    }
}

impl<'a> Speaker<'a> {
    pub fn of_line(line: &Line<'a>) -> Speaker<'a> {
        Speaker {
            event_type: line.event_type,
            agent: line.agent,
            role: line.role,
            key: line.sig.map(|sig| sig.key),
            seq: line.seq,
            seen: line.seen,
        }
    }
}

//! Edits by a person, in the file or by command: field by field, checked like everything else.

use serde_json::{Map, Value};

use super::create::expect_fitting;
use super::{Act, Decided, Moment};
use crate::event::{Actor, ArtifactRef};
use crate::ids::{AgentName, Digest, TaskId};
use crate::limits::{LEASE_MS_MAX, LEASE_MS_MIN, METADATA_BYTES_MAX, TAG_CHARS_MAX, TAGS_MAX};
use crate::task::event::{EditRefused, Edited};
use crate::task::{Board, Priority, Refusal, Routing, Task, TaskEvent};
use crate::time::Timestamp;

/// What a person wants to be different. Keys are those of the file; an absent value is null.
#[derive(Debug, Clone, PartialEq)]
pub struct Edit {
    pub task: TaskId,
    pub fields: Map<String, Value>,
    /// The file as the person left it, stored.
    pub file: Option<ArtifactRef>,
}

/// An edit that makes no sense, so that it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedEdit {
    pub task: TaskId,
    pub reason: String,
    /// Where the person's version is kept.
    pub quarantine: Option<String>,
    pub digest: Option<Digest>,
}

/// The keys of a task's file that a person may change, and the two parts of its body.
pub const EDITABLE: &[&str] =
    &["title", "priority", "routing", "dependsOn", "parentId", "notBefore", "metadata", "body", "workLog"];

impl Board {
    /// Takes an edit in. Fields that are as they should be already change nothing.
    pub fn edit(&self, edit: &Edit, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &edit.task, moment)?;
        let mut fields = Map::new();
        let given = match edit.file {
            None => with_log_apart(&edit.fields),
            // Whoever compared the file has told the two apart.
            Some(_) => edit.fields.clone(),
        };
        for (key, value) in &given {
            let value = self.checked(&act.task, key, value)?;
            fields.insert(key.clone(), value);
        }
        if fields.is_empty() && edit.file.is_none() {
            return Ok(Decided::nothing());
        }
        let layout = edit.file.as_ref().map(|file| file.sha256);
        let edited = TaskEvent::Edited(Edited { fields, layout });
        act.emit_with(by, &edited, edit.file.iter().cloned().collect());
        Ok(act.done())
    }

    /// Records that an edit was not taken in.
    pub fn refuse_edit(&self, refused: &RefusedEdit, by: &Actor, moment: Moment) -> Result<Decided, Refusal> {
        let mut act = Act::on(self, &refused.task, moment)?;
        let event = TaskEvent::EditRefused(EditRefused {
            reason: refused.reason.clone(),
            quarantine: refused.quarantine.clone(),
            digest: refused.digest,
            layout: None,
        });
        act.emit(by, &event);
        Ok(act.done())
    }

    /// One field as it will be stored.
    fn checked(&self, task: &Task, key: &str, value: &Value) -> Result<Value, Refusal> {
        let refuse = |field: &'static str, expected: &str| Refusal::Field {
            field,
            expected: expected.to_owned(),
            got: shown(value),
        };
        match key {
            "title" => {
                let title = value.as_str().ok_or_else(|| refuse("title", "a string"))?;
                expect_fitting(Some(title), None)?;
            }
            "body" | "workLog" => {
                let body = value.as_str().ok_or_else(|| refuse("body", "a string"))?;
                expect_fitting(None, Some(body))?;
            }
            "priority" => {
                let word = value.as_str().unwrap_or_default();
                word.parse::<Priority>().map_err(|e| refuse("priority", e.expected))?;
            }
            "routing" => return read_routing(value).map(|routing| routing.to_json()),
            "dependsOn" => {
                let expected = "a list of task ids";
                let list = value.as_array().ok_or_else(|| refuse("dependsOn", expected))?;
                let ids: Option<Vec<TaskId>> = list.iter().map(|id| id.as_str()?.parse().ok()).collect();
                self.expect_dependencies(&task.id, &ids.ok_or_else(|| refuse("dependsOn", expected))?)?;
            }
            "parentId" => match value {
                Value::Null => {}
                value => {
                    let id = value.as_str().and_then(|id| id.parse::<TaskId>().ok());
                    let id = id.ok_or_else(|| refuse("parentId", "a task id, or nothing"))?;
                    if self.get(&id).is_none() {
                        return Err(Refusal::ParentNotFound(id));
                    }
                    if let Some(circle) = self.parent_cycle(&task.id, &id) {
                        return Err(Refusal::ParentCycle(circle));
                    }
                }
            },
            "notBefore" => match value {
                Value::Null => {}
                value => {
                    let at = value.as_str().and_then(|at| at.parse::<Timestamp>().ok());
                    at.ok_or_else(|| {
                        refuse("notBefore", "a time like 2026-01-31T09:30:00.000Z, or nothing")
                    })?;
                }
            },
            "metadata" => {
                let map = value.as_object().ok_or_else(|| refuse("metadata", "a mapping"))?;
                expect_metadata(map, Some(task))?;
            }
            other => {
                return Err(Refusal::Field {
                    field: "frontmatter",
                    expected: format!("{} to change, which only Baton does not write", EDITABLE.join(", ")),
                    got: other.chars().take(80).collect(),
                });
            }
        }
        Ok(value.clone())
    }
}

/// What came, cut short. A text stands without the quotes of JSON: whoever prints it puts its own around it.
fn shown(value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text.chars().take(80).collect()
}

/// A body that ends in a work log is a text and a log: there is one such section.
fn with_log_apart(fields: &Map<String, Value>) -> Map<String, Value> {
    let mut fields = fields.clone();
    if let Some(body) = fields.get("body").and_then(Value::as_str)
        && !fields.contains_key("workLog")
    {
        let (text, log) = crate::task::worklog::split(body);
        if !log.is_empty() {
            fields.insert("body".into(), text.into());
            fields.insert("workLog".into(), log.into());
        }
    }
    fields
}

/// Checks what a person may write into `metadata`, of a new task or of one that is there.
pub(super) fn expect_metadata(map: &Map<String, Value>, task: Option<&Task>) -> Result<(), Refusal> {
    let refuse = |expected: String, got: Option<&Value>| Refusal::Field {
        field: "metadata",
        expected,
        got: got.map(shown).unwrap_or_default(),
    };
    let bytes = map.iter().map(|(key, value)| key.len() + value.to_string().len()).sum::<usize>();
    if bytes > METADATA_BYTES_MAX {
        return Err(refuse(format!("at most {METADATA_BYTES_MAX} bytes"), None));
    }
    if let Some(value) = map.get("reviewRequired").filter(|value| !value.is_boolean()) {
        return Err(refuse("reviewRequired to be true or false".into(), Some(value)));
    }
    for key in [LEASE_TTL, HEARTBEAT_TTL] {
        if let Some(value) = map.get(key).filter(|value| ttl_ms(value).is_none()) {
            return Err(refuse(format!("{key} to be a time from 1s to 7d, such as 10m"), Some(value)));
        }
    }
    // How deep it is in a chain of handoffs, and why it is blocked, are Baton's to say.
    for own in ["delegationDepth", "blockReason"] {
        if map.get(own) != task.and_then(|task| task.metadata.get(own)) {
            return Err(refuse(format!("{own} left to Baton"), map.get(own)));
        }
    }
    Ok(())
}

/// The keys of `metadata` that say how long leases of one task last.
pub const LEASE_TTL: &str = "leaseTtl";
pub const HEARTBEAT_TTL: &str = "heartbeatTtl";

fn ttl_ms(value: &Value) -> Option<i64> {
    let time = crate::duration::parse(value.as_str()?)?;
    i64::try_from(time.as_millis()).ok().filter(|ms| (LEASE_MS_MIN..=LEASE_MS_MAX).contains(ms))
}

impl Task {
    /// How long its leases last where the task itself says so: `leaseTtl` and `heartbeatTtl` of its metadata.
    pub fn own_ttls_ms(&self) -> (Option<i64>, Option<i64>) {
        let of = |key| self.metadata.get(key).and_then(ttl_ms);
        (of(LEASE_TTL), of(HEARTBEAT_TTL))
    }
}

/// Reads who should take a task.
pub fn read_routing(value: &Value) -> Result<Routing, Refusal> {
    let refuse = |expected: &str| Refusal::Field {
        field: "routing",
        expected: expected.to_owned(),
        got: shown(value),
    };
    let map = value.as_object().ok_or_else(|| refuse("a mapping of agent, role and tags"))?;
    if let Some(unknown) = map.keys().find(|key| !matches!(key.as_str(), "agent" | "role" | "tags")) {
        return Err(Refusal::Field {
            field: "routing",
            expected: "agent, role and tags".into(),
            got: unknown.chars().take(80).collect(),
        });
    }
    let text = |key: &str| map.get(key).filter(|value| !value.is_null());
    let agent = text("agent")
        .map(|agent| {
            agent
                .as_str()
                .and_then(|agent| agent.parse::<AgentName>().ok())
                .ok_or_else(|| refuse("agent: an agent name"))
        })
        .transpose()?;
    let role = text("role")
        .map(|role| match role.as_str() {
            Some(role) if AgentName::is_valid(role) => Ok(role.to_owned()),
            _ => Err(refuse("role: a name of a-z 0-9 . _ -")),
        })
        .transpose()?;
    let tags = match text("tags") {
        None => Vec::new(),
        Some(Value::Array(list)) if list.len() <= TAGS_MAX => {
            let tag = |tag: &Value| match tag.as_str() {
                Some(tag) if !tag.is_empty() && tag.chars().count() <= TAG_CHARS_MAX => Ok(tag.to_owned()),
                _ => Err(refuse("tags: short strings")),
            };
            list.iter().map(tag).collect::<Result<_, _>>()?
        }
        Some(_) => return Err(refuse("tags: a short list of strings")),
    };
    Ok(Routing { agent, role, tags })
}

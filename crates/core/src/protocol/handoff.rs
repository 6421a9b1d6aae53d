//! Handoffs: the request with its two files, and the child's answer.
//!
//! `handoff.json` is the request; `handoff.md` is made from it for whoever reads rather than parses.

use serde::ser::{Serialize, SerializeStruct, Serializer};

use serde_json::{Map, Value};

use super::fields::{Fields, Read, list_item, shown};
use super::files;
use super::reject::{Detail, Rejection};
use crate::ids::{AgentName, TaskId};
use crate::limits::{LIST_ITEMS_MAX, REASON_CHARS_MAX};

/// The payload of a `handoff.request`: a child task for another agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRequest {
    pub task: TaskId,
    pub parent: TaskId,
    pub from: AgentName,
    pub to: AgentName,
    pub acceptance_criteria: Vec<String>,
    pub expected_outputs: Vec<String>,
    pub context_refs: Vec<String>,
    pub constraints: Vec<String>,
    /// A moment of RFC 3339, as it was written.
    pub due_by: String,
    /// What was left out of the request. Not part of its files.
    pub warnings: Vec<Warning>,
}

/// Something that did not fit and was left out, while the rest was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The word under which it is logged.
    pub reason: &'static str,
    pub detail: Detail,
}

/// The warning of acceptance criteria that were left out.
pub const INVALID_ACCEPTANCE_CRITERIA: &str = "invalid_acceptance_criteria";

/// The payload of a `handoff.accepted`; it says nothing but that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HandoffAccepted;

/// The payload of a `handoff.rejected`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoffRejected {
    pub reason: String,
}

impl HandoffRequest {
    pub(super) fn read(payload: Fields<'_>) -> Read<Self> {
        let mut warnings = Vec::new();
        Ok(HandoffRequest {
            task: payload.id("taskId")?,
            parent: payload.id("parentTaskId")?,
            from: payload.agent("fromAgent")?,
            to: payload.agent("toAgent")?,
            acceptance_criteria: read_criteria(payload, &mut warnings),
            expected_outputs: payload.path_list("expectedOutputs", LIST_ITEMS_MAX)?,
            context_refs: payload.path_list("contextRefs", LIST_ITEMS_MAX)?,
            constraints: payload.list("constraints", LIST_ITEMS_MAX)?,
            due_by: payload.moment("dueBy")?,
            warnings,
        })
    }

    /// Reads an `inputs/handoff.json` back, as strictly as the request that it stands for.
    pub fn from_handoff_json(bytes: &[u8]) -> Result<Self, Rejection> {
        files::read(bytes, "fromAgent", HandoffRequest::read)
    }
}

impl HandoffRequest {
    /// The request as an event keeps it.
    pub fn fields(&self) -> Map<String, Value> {
        match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // Text and lists always make an object.
            _ => Map::new(),
        }
    }

    /// Reads a request that an event keeps; `None` where it is none.
    pub fn from_fields(fields: &Map<String, Value>) -> Option<Self> {
        HandoffRequest::read(Fields { map: fields, path: "" }).ok()
    }
}

/// Takes the criteria that fit. A handoff is not refused for its criteria: the child can ask, a lost handoff cannot.
fn read_criteria(payload: Fields<'_>, warnings: &mut Vec<Warning>) -> Vec<String> {
    const NAME: &str = "acceptanceCriteria";
    let mut warn = |name: &str, expected: String, got: String| {
        let detail = Detail::field(format!("{}{name}", payload.path), expected, got);
        warnings.push(Warning { reason: INVALID_ACCEPTANCE_CRITERIA, detail });
    };
    let Some(value) = payload.get(NAME) else {
        return Vec::new();
    };
    let Some(items) = value.as_array() else {
        warn(NAME, "an array of strings".to_owned(), shown(Some(value)));
        return Vec::new();
    };
    let mut criteria = Vec::new();
    for (i, item) in items.iter().enumerate().take(LIST_ITEMS_MAX) {
        match list_item(item) {
            Ok(text) => criteria.push(text.to_owned()),
            Err((expected, got)) => warn(&format!("{NAME}[{i}]"), expected, got),
        }
    }
    if items.len() > LIST_ITEMS_MAX {
        warn(NAME, format!("at most {LIST_ITEMS_MAX} items"), format!("{} items", items.len()));
    }
    criteria
}

impl HandoffAccepted {
    pub(super) fn read(payload: Fields<'_>) -> Read<Self> {
        match payload.get("accepted") {
            Some(serde_json::Value::Bool(true)) => Ok(HandoffAccepted),
            _ => payload.refuse("accepted", "true"),
        }
    }
}

impl HandoffRejected {
    pub(super) fn read(payload: Fields<'_>) -> Read<Self> {
        if payload.get("accepted") != Some(&serde_json::Value::Bool(false)) {
            return payload.refuse("accepted", "false");
        }
        let reason = payload.text_within("reason", REASON_CHARS_MAX)?;
        if reason.trim().is_empty() {
            return payload.refuse("reason", "a reason in words");
        }
        Ok(HandoffRejected { reason: reason.to_owned() })
    }
}

impl Serialize for HandoffRequest {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("HandoffRequest", 9)?;
        out.serialize_field("taskId", self.task.as_str())?;
        out.serialize_field("parentTaskId", self.parent.as_str())?;
        out.serialize_field("fromAgent", self.from.as_str())?;
        out.serialize_field("toAgent", self.to.as_str())?;
        out.serialize_field("acceptanceCriteria", &self.acceptance_criteria)?;
        out.serialize_field("expectedOutputs", &self.expected_outputs)?;
        out.serialize_field("contextRefs", &self.context_refs)?;
        out.serialize_field("constraints", &self.constraints)?;
        out.serialize_field("dueBy", &self.due_by)?;
        out.end()
    }
}

/// The text of `inputs/handoff.json`. The same request gives the same bytes.
pub fn handoff_json(request: &HandoffRequest) -> String {
    files::write(request)
}

/// The text of `inputs/handoff.md`. The same request gives the same bytes; an empty list says `None`.
pub fn handoff_md(request: &HandoffRequest) -> String {
    let mut out = format!(
        "# Handoff Request\n\n**From:** {}\n**To:** {}\n**Due By:** {}\n",
        request.from, request.to, request.due_by
    );
    let sections = [
        ("Acceptance Criteria", &request.acceptance_criteria),
        ("Expected Outputs", &request.expected_outputs),
        ("Context References", &request.context_refs),
        ("Constraints", &request.constraints),
    ];
    for (title, items) in sections {
        out += &format!("\n## {title}\n\n");
        for item in items {
            out += &format!("- {}\n", one_line(item));
        }
        if items.is_empty() {
            out += "- None\n";
        }
    }
    out
}

/// A value on one line: line breaks of any kind become spaces.
fn one_line(text: &str) -> String {
    let is_break = |c| matches!(c, '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}');
    text.replace("\r\n", " ").replace(is_break, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> HandoffRequest {
        let list = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        HandoffRequest {
            task: "TASK-2026-02-09-060".parse().unwrap(),
            parent: "TASK-2026-02-09-057".parse().unwrap(),
            from: "swe-backend".parse().unwrap(),
            to: "swe-qa".parse().unwrap(),
            acceptance_criteria: list(&["All tests pass", "Update docs"]),
            expected_outputs: list(&["tests/report.md", "docs/QA.md"]),
            context_refs: list(&["tasks/in-progress/TASK-2026-02-09-057.md"]),
            constraints: list(&["No new dependencies"]),
            due_by: "2026-02-10T12:00:00.000Z".to_owned(),
            warnings: Vec::new(),
        }
    }

    #[test]
    fn the_json_has_the_fields_in_their_order() {
        let expected = r#"{
  "taskId": "TASK-2026-02-09-060",
  "parentTaskId": "TASK-2026-02-09-057",
  "fromAgent": "swe-backend",
  "toAgent": "swe-qa",
  "acceptanceCriteria": [
    "All tests pass",
    "Update docs"
  ],
  "expectedOutputs": [
    "tests/report.md",
    "docs/QA.md"
  ],
  "contextRefs": [
    "tasks/in-progress/TASK-2026-02-09-057.md"
  ],
  "constraints": [
    "No new dependencies"
  ],
  "dueBy": "2026-02-10T12:00:00.000Z"
}
"#;
        assert_eq!(handoff_json(&request()), expected);
    }

    #[test]
    fn the_json_is_read_back_as_the_request() {
        assert_eq!(HandoffRequest::from_handoff_json(handoff_json(&request()).as_bytes()), Ok(request()));
        let rejection = HandoffRequest::from_handoff_json(b"{\"fromAgent\":\"a\"}").unwrap_err();
        assert_eq!(rejection.to_string(), "invalid_envelope: taskId: expected a string, got nothing");
        assert_eq!(rejection.from, Some("a".parse().unwrap()));
    }

    #[test]
    fn the_page_shows_the_same_request() {
        let expected = "# Handoff Request

**From:** swe-backend
**To:** swe-qa
**Due By:** 2026-02-10T12:00:00.000Z

## Acceptance Criteria

- All tests pass
- Update docs

## Expected Outputs

- tests/report.md
- docs/QA.md

## Context References

- tasks/in-progress/TASK-2026-02-09-057.md

## Constraints

- No new dependencies
";
        assert_eq!(handoff_md(&request()), expected);
    }

    #[test]
    fn an_empty_list_says_so_and_a_line_break_cannot_forge_a_heading() {
        let request = HandoffRequest {
            constraints: Vec::new(),
            acceptance_criteria: vec!["a\r\n## Constraints\n\n- b\u{2028}c".to_owned()],
            ..request()
        };
        let page = handoff_md(&request);
        assert!(page.contains("\n- a ## Constraints  - b c\n"), "{page}");
        assert!(page.ends_with("\n## Constraints\n\n- None\n"), "{page}");
    }

    #[test]
    fn what_was_left_out_is_not_in_the_files() {
        let detail = Detail::Text("x".to_owned());
        let warnings = vec![Warning { reason: INVALID_ACCEPTANCE_CRITERIA, detail }];
        let warned = HandoffRequest { warnings, ..request() };
        assert_eq!(handoff_json(&warned), handoff_json(&request()));
        assert_eq!(handoff_md(&warned), handoff_md(&request()));
    }
}

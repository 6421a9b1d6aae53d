//! `completion.report`: what an agent says of its own work, and `run_result.json`, the file that keeps it beside the run.

use serde::Deserialize;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::{Map, Value, json};

use super::fields::{Fields, Read};
use super::files;
use super::reject::Rejection;
use crate::ids::{AgentName, RunId, TaskId};
use crate::limits::{BLOCKERS_MAX, LIST_ITEMS_MAX, NOTES_CHARS_MAX};
use crate::task::Outcome;
use crate::time::Timestamp;

/// The payload of a `completion.report`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompletionReport {
    pub outcome: Outcome,
    pub summary_ref: String,
    pub deliverables: Vec<String>,
    pub tests: Tests,
    pub blockers: Vec<String>,
    pub notes: String,
}

/// How many tests ran, passed and failed; `passed + failed ≤ total`, the rest was skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub struct Tests {
    pub total: u64,
    pub passed: u64,
    pub failed: u64,
}

/// What a `run_result.json` holds: a report, and which run made it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    pub task: TaskId,
    pub agent: AgentName,
    /// Absent only in files that an agent wrote by hand; whether such a file counts is judged by its reader.
    pub run: Option<RunId>,
    pub fence: Option<u64>,
    /// A moment of RFC 3339, as it was written.
    pub completed_at: String,
    pub handoff_ref: Option<String>,
    pub report: CompletionReport,
}

impl CompletionReport {
    pub(super) fn read(payload: Fields<'_>) -> Read<Self> {
        let word = payload.text("outcome")?;
        Ok(CompletionReport {
            outcome: word
                .parse()
                .or_else(|e: crate::task::UnknownWord| payload.refuse("outcome", e.expected))?,
            summary_ref: payload.path("summaryRef")?,
            deliverables: payload.path_list("deliverables", LIST_ITEMS_MAX)?,
            tests: Tests::read(payload)?,
            blockers: payload.list("blockers", BLOCKERS_MAX)?,
            notes: payload.text_within("notes", NOTES_CHARS_MAX)?.to_owned(),
        })
    }

    /// The report as an event keeps it.
    pub fn fields(&self) -> Map<String, Value> {
        let Value::Object(fields) = json!({
            "outcome": self.outcome.as_str(),
            "summaryRef": self.summary_ref,
            "deliverables": self.deliverables,
            "tests": {"total": self.tests.total, "passed": self.tests.passed, "failed": self.tests.failed},
            "blockers": self.blockers,
            "notes": self.notes,
        }) else {
            return Map::new();
        };
        fields
    }

    /// Reads a report that an event keeps; `None` where it is none.
    pub fn from_fields(fields: &Map<String, Value>) -> Option<Self> {
        CompletionReport::read(Fields { map: fields, path: "" }).ok()
    }

    /// The text of `run_result.json` for this report: two spaces, a final line feed, the same bytes every time.
    pub fn result_json(
        &self,
        task: &TaskId,
        agent: &AgentName,
        run: Option<RunId>,
        fence: u64,
        completed_at: Timestamp,
        handoff_ref: Option<&str>,
    ) -> String {
        let result = RunResult {
            task: task.clone(),
            agent: agent.clone(),
            run,
            fence: Some(fence),
            completed_at: completed_at.to_string(),
            handoff_ref: handoff_ref.map(str::to_owned),
            report: self.clone(),
        };
        result.to_json()
    }

    /// Reads a `run_result.json` as strictly as the message that it stands for.
    ///
    /// Refuses with `payload_too_large`, `invalid_json` or `invalid_envelope`. Members that it does not know are ignored.
    pub fn from_result_json(bytes: &[u8]) -> Result<RunResult, Rejection> {
        files::read(bytes, "agentId", RunResult::read)
    }
}

impl Tests {
    /// Those of a report that an event keeps.
    pub fn of_report(report: &Map<String, Value>) -> Option<Self> {
        serde_json::from_value(report.get("tests")?.clone()).ok()
    }

    fn read(payload: Fields<'_>) -> Read<Self> {
        // The file has the report's members at its top, the message has them in its payload.
        let path = if payload.path.is_empty() { "tests." } else { "payload.tests." };
        let tests = payload.object("tests", path)?;
        let (total, passed, failed) = (tests.count("total")?, tests.count("passed")?, tests.count("failed")?);
        // Each is below 2^53, so the sum cannot overflow.
        if passed + failed > total {
            let got = format!("{passed} + {failed} > {total}");
            return payload.refuse_as("tests", "passed + failed ≤ total", got);
        }
        Ok(Tests { total, passed, failed })
    }
}

impl RunResult {
    fn read(fields: Fields<'_>) -> Read<Self> {
        Ok(RunResult {
            task: fields.id("taskId")?,
            agent: fields.agent("agentId")?,
            run: fields.get("runId").map(|_| fields.id("runId")).transpose()?,
            fence: fields.get("fence").map(|_| fields.count("fence")).transpose()?,
            completed_at: fields.moment("completedAt")?,
            handoff_ref: fields.get("handoffRef").map(|_| fields.path("handoffRef")).transpose()?,
            report: CompletionReport::read(fields)?,
        })
    }

    /// The text of the file: two spaces, a final line feed, the same bytes every time.
    pub fn to_json(&self) -> String {
        files::write(self)
    }
}

impl Serialize for RunResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("RunResult", 12)?;
        out.serialize_field("taskId", self.task.as_str())?;
        out.serialize_field("agentId", self.agent.as_str())?;
        if let Some(run) = &self.run {
            out.serialize_field("runId", &run.to_string())?;
        }
        if let Some(fence) = &self.fence {
            out.serialize_field("fence", fence)?;
        }
        out.serialize_field("completedAt", &self.completed_at)?;
        out.serialize_field("outcome", self.report.outcome.as_str())?;
        out.serialize_field("summaryRef", &self.report.summary_ref)?;
        if let Some(handoff_ref) = &self.handoff_ref {
            out.serialize_field("handoffRef", handoff_ref)?;
        }
        out.serialize_field("deliverables", &self.report.deliverables)?;
        out.serialize_field("tests", &self.report.tests)?;
        out.serialize_field("blockers", &self.report.blockers)?;
        out.serialize_field("notes", &self.report.notes)?;
        out.end()
    }
}

impl Serialize for Tests {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut out = serializer.serialize_struct("Tests", 3)?;
        out.serialize_field("total", &self.total)?;
        out.serialize_field("passed", &self.passed)?;
        out.serialize_field("failed", &self.failed)?;
        out.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::ENVELOPE_BYTES_MAX;
    use crate::protocol::Reason;

    const FILE: &str = r#"{
  "taskId": "TASK-2026-02-09-057",
  "agentId": "swe-backend",
  "runId": "run_0192f0c1-2345-7abc-8def-0123456789ab",
  "fence": 7,
  "completedAt": "2026-02-09T21:10:00.000Z",
  "outcome": "done",
  "summaryRef": "outputs/summary.md",
  "handoffRef": "outputs/handoff.md",
  "deliverables": [
    "src/foo.ts"
  ],
  "tests": {
    "total": 120,
    "passed": 120,
    "failed": 0
  },
  "blockers": [],
  "notes": "All criteria met."
}
"#;

    fn check(file: &str, rejection: &str) {
        let error = CompletionReport::from_result_json(file.as_bytes()).unwrap_err();
        assert_eq!(error.to_string(), rejection);
    }

    #[test]
    fn a_result_file_survives_the_round_trip_byte_for_byte() {
        let result = CompletionReport::from_result_json(FILE.as_bytes()).unwrap();
        assert_eq!(result.to_json(), FILE);
        let again = result.report.result_json(
            &result.task,
            &result.agent,
            result.run,
            7,
            "2026-02-09T21:10:00.000Z".parse().unwrap(),
            Some("outputs/handoff.md"),
        );
        assert_eq!(again, FILE);
    }

    #[test]
    fn a_result_that_an_agent_wrote_by_hand_may_lack_run_fence_and_handoff() {
        let file = FILE.lines().filter(|l| !["runId", "fence", "handoffRef"].iter().any(|n| l.contains(n)));
        let result = CompletionReport::from_result_json(file.collect::<String>().as_bytes()).unwrap();
        assert_eq!((result.run, result.fence, result.handoff_ref), (None, None, None));
    }

    #[test]
    fn a_result_file_that_does_not_fit_names_the_field_without_a_payload_before_it() {
        check("{", "invalid_json: EOF while parsing an object at line 1 column 1");
        check("[]", "invalid_envelope: file: expected an object, got an array of 0");
        check(
            &FILE.replace("\"done\"", "\"finished\""),
            "invalid_envelope: outcome: expected done, blocked, needs_review or partial, got \"finished\"",
        );
        check(
            &FILE.replace("\"failed\": 0", "\"failed\": -1"),
            "invalid_envelope: tests.failed: expected an integer from 0 to 2^53−1, got -1",
        );
        check(
            &FILE.replace("outputs/handoff.md", "../handoff.md"),
            "invalid_envelope: handoffRef: expected a relative path without .. parts, backslashes or control characters, got \"../handoff.md\"",
        );
        check(
            &FILE.replace("run_0192", "run-0192"),
            "invalid_envelope: runId: expected a run id (run_ and a UUID of version 7), got \"run-0192f0c1-2345-7abc-8def-0123456789ab\"",
        );
        check(
            &FILE.replace("21:10:00.000Z", "21:10"),
            "invalid_envelope: completedAt: expected a time of RFC 3339, such as 2026-01-31T09:30:00.000Z, got \"2026-02-09T21:10\"",
        );
        let rejection = CompletionReport::from_result_json(&vec![b' '; ENVELOPE_BYTES_MAX + 1]).unwrap_err();
        assert_eq!(rejection.reason, Reason::PayloadTooLarge);
    }

    #[test]
    fn a_refused_result_file_still_says_whose_it_is() {
        let error = CompletionReport::from_result_json(FILE.replace("\"done\"", "1").as_bytes()).unwrap_err();
        assert_eq!(error.task, Some("TASK-2026-02-09-057".parse().unwrap()));
        assert_eq!(error.from, Some("swe-backend".parse().unwrap()));
    }
}

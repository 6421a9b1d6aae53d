//! What a report says in a few words.

use serde_json::{Map, Value};

/// Why a report blocks: its blockers, else its notes.
pub(super) fn reason_of(report: &Map<String, Value>) -> String {
    let blockers = report.get("blockers").and_then(Value::as_array).into_iter().flatten();
    let blockers: Vec<&str> = blockers.filter_map(Value::as_str).collect();
    if !blockers.is_empty() {
        return blockers.join("; ");
    }
    report.get("notes").and_then(Value::as_str).unwrap_or_default().to_owned()
}

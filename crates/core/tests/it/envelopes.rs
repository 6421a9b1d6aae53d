//! The messages under `fixtures/envelopes/`: what each is read as. A file without a row fails, and a row without a file.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use baton_core::protocol::read;

/// The file without `.json`, and the type it is read as, or the refusal in words.
const TABLE: [(&str, &str); 31] = [
    ("01-completion-done", "completion.report"),
    ("02-completion-blocked", "completion.report"),
    ("03-status-progress", "status.update"),
    ("04-status-transition", "status.update"),
    ("05-handoff-request", "handoff.request"),
    ("06-handoff-accepted", "handoff.accepted"),
    ("07-handoff-rejected", "handoff.rejected"),
    ("08-handoff-accepted-060", "handoff.accepted"),
    ("09-handoff-rejected-060", "handoff.rejected"),
    ("bad-invalid_envelope-array", "invalid_envelope: message: expected an object, got an array of 2"),
    ("bad-invalid_envelope-no-payload", "invalid_envelope: payload: expected an object, got nothing"),
    ("bad-invalid_envelope-no-reason", "invalid_envelope: payload.reason: expected a string, got nothing"),
    ("bad-invalid_envelope-not-accepted", "invalid_envelope: payload.accepted: expected true, got false"),
    ("bad-invalid_envelope-other-protocol", "invalid_envelope: protocol: expected \"aof\", got \"aof2\""),
    (
        "bad-invalid_envelope-outcome",
        "invalid_envelope: payload.outcome: expected done, blocked, needs_review or partial, got \"finished\"",
    ),
    (
        "bad-invalid_envelope-sender",
        "invalid_envelope: fromAgent: expected an agent name (a lower-case letter or digit, then up to 63 of a-z 0-9 . _ -), got \"SWE Backend\"",
    ),
    (
        "bad-invalid_envelope-sent-at",
        "invalid_envelope: sentAt: expected a time of RFC 3339, such as 2026-01-31T09:30:00.000Z, got \"2026-02-09\"",
    ),
    (
        "bad-invalid_envelope-silent-update",
        "invalid_envelope: payload.status: expected a status, or progress, blockers or notes that are not empty, got none of them",
    ),
    (
        "bad-invalid_envelope-status",
        "invalid_envelope: payload.status: expected backlog, ready, in-progress, blocked, review, done, cancelled or deadletter, got \"paused\"",
    ),
    (
        "bad-invalid_envelope-summary-outside",
        "invalid_envelope: payload.summaryRef: expected a relative path without .. parts, backslashes or control characters, got \"../../.ssh/id_ed25519\"",
    ),
    (
        "bad-invalid_envelope-task-id",
        "invalid_envelope: taskId: expected a task id (TASK-YYYY-MM-DD- and three or more digits, or a longer suffix of a-z 0-9), got \"TASK-57\"",
    ),
    (
        "bad-invalid_envelope-tests",
        "invalid_envelope: payload.tests: expected passed + failed ≤ total, got 120 + 1 > 120",
    ),
    ("bad-invalid_envelope-version", "invalid_envelope: version: expected 1, got 2"),
    ("bad-invalid_json-cut-off", "invalid_json: EOF while parsing an object at line 9 column 0"),
    (
        "bad-invalid_json-integer",
        "invalid_json: integer 9007199254740993 is outside ±(2^53−1); send it as a string at line 17 column 31",
    ),
    ("bad-invalid_json-twice", "invalid_json: member \"version\" occurs twice at line 4 column 11"),
    ("bad-not_a_message-event", "not_a_message"),
    ("bad-not_a_message-prose", "not_a_message"),
    (
        "bad-taskId_mismatch-handoff",
        "taskId_mismatch: payload.taskId: expected TASK-2026-02-09-061, got \"TASK-2026-02-09-001\"",
    ),
    (
        "bad-taskId_mismatch-status",
        "taskId_mismatch: payload.taskId: expected TASK-2026-02-09-059, got \"TASK-2026-02-09-001\"",
    ),
    (
        "bad-unknown_type-delete",
        "unknown_type: type: expected completion.report, status.update, handoff.request, handoff.accepted, handoff.rejected, got \"task.delete\"",
    ),
];

fn files() -> BTreeMap<String, String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/envelopes");
    let entry = |entry: std::io::Result<fs::DirEntry>| {
        let path = entry.unwrap().path();
        (path.file_stem().unwrap().to_str().unwrap().to_owned(), fs::read_to_string(&path).unwrap())
    };
    fs::read_dir(folder).unwrap().map(entry).collect()
}

#[test]
fn every_file_is_read_as_its_row_says() {
    let files = files();
    let table = BTreeMap::from(TABLE);
    assert_eq!(
        files.keys().map(String::as_str).collect::<Vec<_>>(),
        table.keys().copied().collect::<Vec<_>>(),
        "a file without a row, or a row without a file"
    );
    for (name, text) in files {
        let answer = read(text.as_bytes()).map_or_else(|e| e.to_string(), |m| m.type_name().to_owned());
        assert_eq!(answer, table[name.as_str()], "{name}");
        // The name of a bad file says its reason.
        if let Some(rest) = name.strip_prefix("bad-") {
            assert_eq!(rest.split_once('-').unwrap().0, answer.split(':').next().unwrap(), "{name}");
        }
    }
}

#[test]
fn every_good_file_is_read_the_same_in_every_wrapping() {
    for (name, text) in files().iter().filter(|(name, _)| !name.starts_with("bad-")) {
        let bare = read(text.as_bytes()).unwrap();
        let quoted = serde_json::Value::from(text.as_str()).to_string();
        for wrapped in [
            format!("AOF/1 {text}"),
            quoted.clone(),
            format!("{{\"type\":\"message_received\",\"payload\":{text}}}"),
            format!("{{\"type\":\"message_received\",\"content\":{quoted}}}"),
        ] {
            assert_eq!(read(wrapped.as_bytes()).as_ref(), Ok(&bare), "{name}");
        }
    }
}

//! One event in one line, for people: where, when, about what, by whom, and in a few words what happened.

use baton_ledger::record::Line;
use serde_json::{Map, Value};

use crate::ids;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{printable, shorten};
use crate::ui::time::exact;

/// Characters that a value of a payload is shown with at most.
const VALUE_CHARS: usize = 40;

/// Characters of the words about an event, where no terminal says how many fit.
const WORDS_CHARS: usize = 100;

/// Values of a payload that has no words of its own.
const VALUES_MAX: usize = 3;

/// Narrower terminals get the same in fewer characters: the time without the day, the id without its prefix, who without the role.
const WIDE: usize = 120;

/// An event as a row. Where standard output is a terminal, it is no wider than that.
pub(super) fn row(ui: &Ui, line: &Line<'_>) -> String {
    let is_narrow = ui.width().is_some_and(|width| width < WIDE);
    let (mut time, mut who) = (exact(line.at), format!("{}/{}", line.agent, line.role));
    let mut subject = line.task.map_or_else(|| ids::short(line.trace), |task| shorten(task, 24));
    let mut widths = [8, 19, 20, 17];
    if is_narrow {
        time = time[11..19].to_owned();
        line.agent.clone_into(&mut who);
        subject = subject.strip_prefix("TASK-").unwrap_or(&subject).chars().take(14).collect();
        widths = [4, 14, 18, 8];
    }
    let [pos, of, what, by] = widths;
    let (pos, subject) = (format!("{:>pos$}", line.pos), format!("{subject:<of$}"));
    let tail = format!("{:<what$}  {who:<by$}", line.event_type);
    let (words, signed) =
        (words(line.event_type, line.payload), if line.sig.is_some() { "signed" } else { "" });
    let gap = if signed.is_empty() || words.is_empty() { "" } else { "  " };
    let plain = format!("{pos}  {time}  {subject}  {tail}  {signed}");
    let room = match ui.width() {
        // Narrower than the columns themselves: what fits of them, without colours.
        Some(width) if width < plain.chars().count() => return shorten(plain.trim_end(), width),
        Some(width) => width.saturating_sub(plain.chars().count() + gap.len()),
        None => WORDS_CHARS,
    };
    let mark = |mark, text: &str| if text.is_empty() { String::new() } else { ui.paint.mark(mark, text) };
    let (time, subject) = (mark(Mark::Dim, &time), mark(Mark::Id, &subject));
    let (signed, words) = (mark(Mark::Good, signed), mark(Mark::Dim, &shorten(&words, room)));
    format!("{pos}  {time}  {subject}  {tail}  {signed}{gap}{words}").trim_end().to_owned()
}

/// What happened, from the payload; empty where there is nothing to say.
fn words(event_type: &str, payload: &str) -> String {
    let Ok(Value::Object(fields)) = serde_json::from_str::<Value>(payload) else { return String::new() };
    let get = |key: &str| fields.get(key).and_then(plain);
    let joined = |parts: &[Option<String>]| parts.iter().flatten().cloned().collect::<Vec<_>>().join("  ");
    let fence = || get("fence").map(|fence| format!("fence {fence}"));
    match event_type {
        "task.transitioned" | "task.phase_changed" | "state_changed" => {
            let way = get("from").zip(get("to")).map(|(from, to)| format!("{from} → {to}"));
            joined(&[way, get("reason"), get("completedBy")])
        }
        "tool_lifecycle" => joined(&[get("toolName"), get("status"), get("error")]),
        "hook_lifecycle" => joined(&[get("hookName"), get("status"), get("error")]),
        "session_error" | "session_warning" => joined(&[get("code"), get("message")]),
        "permission_requested" => joined(&[get("title"), get("kind")]),
        "permission_resolved" => {
            let text = fields.get("answer").and_then(|answer| answer.get("text")).and_then(plain);
            joined(&[get("answer").or(text), get("by").map(|by| format!("by {by}"))])
        }
        "session.started" => joined(&[get("agent"), get("harness")]),
        "session.ready" => joined(&[get("agent"), get("mode")]),
        "session.ended" => joined(&[
            get("reason"),
            get("terminated_by").map(|by| format!("by {by}")),
            get("cause"),
            get("message"),
        ]),
        "turn.ended" => {
            let payload = fields.get("payload").cloned().unwrap_or_default();
            joined(&[get("type"), plain(&payload["reason"]), plain(&payload["message"])])
        }
        "task.edited" => {
            let names = fields.get("fields").and_then(Value::as_object);
            names
                .map(|names| names.keys().map(|name| printable(name)).collect::<Vec<_>>().join(", "))
                .unwrap_or_default()
        }
        "task.created" => joined(&[get("title"), get("status")]),
        "AgentSessionCompleted" => joined(&[get("phase_completed"), get("exit_reason"), get("notes")]),
        _ if event_type.starts_with("lease.") => joined(&[get("agent"), fence(), get("reason")]),
        _ if event_type.starts_with("protocol.message.") => {
            joined(&[get("type"), get("reason"), get("fromAgent")])
        }
        _ => some_of(&fields),
    }
}

/// The first few values of a payload that can be said in a word.
fn some_of(fields: &Map<String, Value>) -> String {
    let said = fields.iter().filter_map(|(key, value)| Some(format!("{} {}", printable(key), plain(value)?)));
    said.take(VALUES_MAX).collect::<Vec<_>>().join("  ")
}

/// A value in a word or a short line. Hashes and what is nested say nothing to people.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if text.starts_with("sha256:") || text.is_empty() => None,
        Value::String(text) => Some(shorten(&printable(&text.replace('\n', " ")), VALUE_CHARS)),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_says_in_a_few_words_what_happened() {
        let check = |event_type: &str, payload: &str, expected: &str| {
            assert_eq!(words(event_type, payload), expected, "{event_type}");
        };
        let moved = r#"{"from":"ready","to":"in-progress","reason":"claimed by ada"}"#;
        check("task.transitioned", moved, "ready → in-progress  claimed by ada");
        check(
            "lease.acquired",
            r#"{"agent":"ada","fence":2,"runId":"run_1","ttlMs":600000}"#,
            "ada  fence 2",
        );
        check(
            "lease.expired",
            r#"{"agent":"ada","fence":2,"reason":"stale_heartbeat"}"#,
            "ada  fence 2  stale_heartbeat",
        );
        let message = r#"{"digest":"sha256:00","fromAgent":"ada","message":{"x":1},"type":"status.update"}"#;
        check("protocol.message.received", message, "status.update  ada");
        check(
            "protocol.message.rejected",
            r#"{"reason":"stale_fence","type":"status.update"}"#,
            "status.update  stale_fence",
        );
        check("task.edited", r#"{"fields":{"priority":"high","title":"x"}}"#, "priority, title");
        check(
            "note",
            r#"{"a":1,"b":{"c":2},"d":"two\nlines","e":true,"f":"left out"}"#,
            "a 1  d two lines  e true",
        );
        let changed = r#"{"from":"ready","reason":"user_input","streamId":"turn_1","to":"calling_llm"}"#;
        check("state_changed", changed, "ready → calling_llm  user_input");
        let tool = r#"{"attempt":1,"callId":"c","status":"canceled","toolName":"bash","error":"denied"}"#;
        check("tool_lifecycle", tool, "bash  canceled  denied");
        let ended = r#"{"cause":"crash","cpu_ms":4,"exit_code":3,"message":"it exited","reason":"error","terminated_by":"agent"}"#;
        check("session.ended", ended, "error  by agent  crash  it exited");
        check(
            "permission_resolved",
            r#"{"answer":{"text":"two"},"by":"operator","id":"1"}"#,
            "two  by operator",
        );
        check("note", "{}", "");
        assert!(words("note", &format!(r#"{{"a":"{}"}}"#, "x".repeat(500))).chars().count() < 50);
    }
}

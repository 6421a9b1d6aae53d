//! What came of a command, in words for an agent: the data, or what went wrong and what to do next.

use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use crate::commands::runner::Ran;

/// What a call gives: a text, or a refusal in words.
pub(super) type Answer = Result<String, String>;

/// The data that a command printed, or why there is none.
pub(super) fn of(ran: &Ran) -> Answer {
    let said: Option<Value> = serde_json::from_str(ran.stdout.trim()).ok();
    match (ran.code, said) {
        (Some(0), _) => Ok(with_warnings(ran.stdout.trim(), &ran.stderr)),
        (Some(4), Some(said)) if said["accepted"] == false => Err(refusal(&said)),
        _ => Err(error(ran)),
    }
}

/// As the protocol has it.
pub(super) fn to_result(answer: Answer) -> CallToolResult {
    match answer {
        Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
        Err(text) => CallToolResult::error(vec![ContentBlock::text(text)]),
    }
}

/// Warnings stand below the data: they concern whoever asked.
fn with_warnings(data: &str, stderr: &str) -> String {
    let mut text = data.to_owned();
    for line in stderr.lines() {
        let said: Option<Value> = serde_json::from_str(line).ok();
        if let Some(message) = said.as_ref().and_then(|said| said["warning"]["message"].as_str()) {
            text.push_str(&format!("\nwarning: {message}"));
        }
    }
    text
}

/// A message or a signal that was not taken.
fn refusal(said: &Value) -> String {
    if let Some(error) = said["error"].as_str() {
        return lines(&format!("refused: {error}"), &[], None, signal_next(error));
    }
    let reason = said["reason"].as_str().unwrap_or("no reason");
    let detail = &said["detail"];
    let words = |name: &str| detail[name].as_str().map(str::to_owned);
    let shown = match (words("field"), words("expected"), words("got"), words("received"), words("text")) {
        (Some(field), Some(expected), Some(got), ..) => format!(": {field}: expected {expected}, got {got}"),
        (_, Some(expected), _, Some(received), _) => format!(": expected {expected}, got {received}"),
        (.., Some(text)) => format!(": {text}"),
        _ if detail.is_null() => String::new(),
        _ => format!(": {detail}"),
    };
    lines(&format!("refused: {reason}{shown}"), &[], None, reason_next(reason))
}

/// An error that the command told on standard error.
fn error(ran: &Ran) -> String {
    let last = ran.stderr.lines().rev().find_map(|line| {
        let said: Value = serde_json::from_str(line).ok()?;
        said.get("error").cloned()
    });
    let Some(error) = last else {
        let code = ran.code.map_or("a signal".to_owned(), |code| format!("exit code {code}"));
        let tail: String = ran.stderr.trim().chars().take(400).collect();
        return lines(&format!("the command ended with {code}: {tail}"), &[], None, AGAIN);
    };
    let code = error["code"].as_str().unwrap_or_default();
    let what = format!("{} [{code}]", error["message"].as_str().unwrap_or("it failed"));
    let causes: Vec<&str> =
        error["causes"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    lines(&what, &causes, error["hint"].as_str(), code_next(code))
}

/// What, why, the command that a person would type, and what an agent does now.
fn lines(what: &str, causes: &[&str], hint: Option<&str>, next: &str) -> String {
    let mut text = what.to_owned();
    for cause in causes {
        text.push_str(&format!("\n  {cause}"));
    }
    if let Some(hint) = hint {
        text.push_str(&format!("\nhint: {hint}"));
    }
    text.push_str(&format!("\nnext: {next}"));
    text
}

const AGAIN: &str =
    "call the same tool again, once; if it fails again, report the problem in your last message and stop";
const LOST: &str = "stop working on this task: it is not yours any more, and somebody else may be at work. Change nothing else, and end";
const LOOK: &str = "read the task with get_task, and do what fits its status and phase";

/// What to do about a refused message.
fn reason_next(reason: &str) -> &'static str {
    match reason {
        "stale_fence" => LOST,
        "unauthorized_agent" => {
            "read the task with get_task: if somebody else holds it, stop working on it; if nobody does, claim it first"
        }
        "unassigned_task" => "claim the task first, then say it again",
        "task_not_found" | "parent_not_found" => "look for the right id, and use it whole",
        "invalid_envelope" | "invalid_json" | "payload_too_large" => {
            "mend the argument that is named, and call the tool again"
        }
        "no_handoff" => "nobody asked for this handoff: claim the task, or leave it",
        "nested_delegation" => "do this part yourself, or report the outcome blocked with the reason",
        _ => LOOK,
    }
}

/// What to do about a refused signal.
fn signal_next(error: &str) -> &'static str {
    if error.contains("AGENT_EXIT_PROTOCOL_ENABLED") {
        return "phases are not ended by signals here: report with report_completion instead";
    }
    LOOK
}

/// What to do about an error of a command.
fn code_next(code: &str) -> &'static str {
    match code {
        "T001" => "look for the right id, and use it whole",
        "T003" | "T006" | "T007" | "U003" | "U009" | "U012" => {
            "mend the argument that is named, and call the tool again"
        }
        "T008" => "somebody else holds it: take another task, with list_ready",
        "T011" => LOST,
        "L003" | "T015" | "S001" => AGAIN,
        "T004" | "T005" | "T009" | "T010" | "T012" | "T013" => LOOK,
        _ => "this is nothing that a tool can mend: report the problem in your last message, or ask a person",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(code: i32, stdout: &str, stderr: &str) -> Answer {
        of(&Ran { code: Some(code), stdout: stdout.to_owned(), stderr: stderr.to_owned() })
    }

    #[test]
    fn every_refusal_says_what_to_do_next() {
        let refused = |code, stdout, stderr| ran(code, stdout, stderr).unwrap_err();
        let stale = refused(4, r#"{"accepted":false,"reason":"stale_fence","events":[]}"#, "");
        assert!(stale.starts_with("refused: stale_fence\nnext: stop working"), "{stale}");
        let detail = r#"{"accepted":false,"reason":"invalid_envelope","detail":{"field":"payload.notes","expected":"a text","got":"1"}}"#;
        let field = refused(4, detail, "");
        assert!(
            field.starts_with("refused: invalid_envelope: payload.notes: expected a text, got 1\nnext: mend"),
            "{field}"
        );
        let signal = refused(4, r#"{"accepted":false,"error":"phase is REVIEW","phase":"REVIEW"}"#, "");
        assert!(signal.starts_with("refused: phase is REVIEW\nnext: read the task"), "{signal}");
        let stderr = r#"{"warning":{"message":"w"}}
{"error":{"code":"T008","message":"bob holds it","causes":["since noon"],"hint":"baton task ls"}}"#;
        let held = refused(5, "", stderr);
        assert_eq!(
            held,
            "bob holds it [T008]\n  since noon\nhint: baton task ls\nnext: somebody else holds it: take another task, with list_ready"
        );
        let odd = refused(101, "", "thread panicked");
        assert!(odd.contains("exit code 101: thread panicked") && odd.contains("next: "), "{odd}");
    }

    #[test]
    fn warnings_stand_below_the_data() {
        assert_eq!(ran(0, "{\"v\":1}\n", "").unwrap(), "{\"v\":1}");
        let warned = ran(0, "{\"v\":1}\n", r#"{"warning":{"message":"offered to bob"}}"#).unwrap();
        assert_eq!(warned, "{\"v\":1}\nwarning: offered to bob");
    }
}

//! Lines of an agent before the library sees them. Lenient: what is not known is told and never costs a turn.

use agent_client_protocol::v1::schema::{
    ContentBlock, SessionNotification, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};
use serde_json::{Map, Value};

use crate::harness::{Progress, Told, ToolSeen};

/// Longest part of something unknown that is kept, in bytes.
const RAW_BYTES_MAX: usize = 4096;

/// How a turn may end, as the protocol has it.
const STOP_REASONS: &[&str] = &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];

/// What a line turned out to be.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) told: Option<Told>,
    pub(super) for_library: Option<String>,
}

impl Sorted {
    fn told(told: Told) -> Self {
        Sorted { told: Some(told), for_library: None }
    }

    fn noise(what: &'static str, line: &[u8]) -> Self {
        Sorted::told(Told::Noise { what, raw: part(line) })
    }

    fn unknown(what: &'static str, line: &[u8]) -> Self {
        Sorted::told(Told::Unknown { what, raw: part(line) })
    }
}

pub(super) fn sort(line: &[u8]) -> Sorted {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Sorted::default();
    }
    let Ok(Value::Object(mut message)) = serde_json::from_slice::<Value>(line) else {
        return Sorted::noise("a line that is no message", line);
    };
    let is_request = message.get("id").is_some_and(|id| !id.is_null());
    match (message.get("method").and_then(Value::as_str), is_request) {
        (Some("session/update"), false) => {
            let params = message.remove("params").unwrap_or_default();
            match serde_json::from_value::<SessionNotification>(params) {
                Ok(notification) => translate(notification.update).map_or_else(
                    || Sorted::unknown("an update", line),
                    |told| Sorted { told, for_library: None },
                ),
                Err(_) => Sorted::unknown("an update", line),
            }
        }
        (Some(_), false) => Sorted::unknown("a notification", line),
        // The library answers what it does not know.
        (Some(_), true) => Sorted { told: None, for_library: text(line) },
        (None, true) => {
            let stop =
                message.get("result").and_then(|result| result.get("stopReason")).and_then(Value::as_str);
            match stop.filter(|stop| !STOP_REASONS.contains(stop)) {
                None => Sorted { told: usage(&message), for_library: text(line) },
                // The turn ended, and ended well as far as anyone can tell.
                Some(_) => {
                    let told = Sorted::unknown("a stop reason", line).told;
                    message["result"]["stopReason"] = "end_turn".into();
                    Sorted { told, for_library: Some(Value::Object(message).to_string()) }
                }
            }
        }
        (None, false) => Sorted::noise("an object that is no message", line),
    }
}

/// As much of a line as is kept of what nobody understands.
fn part(line: &[u8]) -> String {
    String::from_utf8_lossy(&line[..line.len().min(RAW_BYTES_MAX)]).into_owned()
}

/// What a turn used, where its end says so.
fn usage(message: &Map<String, Value>) -> Option<Told> {
    let result = message.get("result").filter(|result| result.get("stopReason").is_some())?;
    result.get("usage").filter(|usage| usage.is_object()).cloned().map(Told::Usage)
}

fn text(line: &[u8]) -> Option<String> {
    std::str::from_utf8(line).ok().map(str::to_owned)
}

/// What an update means here; nothing where it means nothing, `None` where it is not known.
fn translate(update: SessionUpdate) -> Option<Option<Told>> {
    let said = |content: ContentBlock, is_thought| match content {
        ContentBlock::Text(text) => Some(Told::Text { text: text.text, is_thought }),
        // Pictures and sounds are not shown.
        _ => None,
    };
    Some(match update {
        SessionUpdate::AgentMessageChunk(chunk) => said(chunk.content, false),
        SessionUpdate::AgentThoughtChunk(chunk) => said(chunk.content, true),
        SessionUpdate::ToolCall(call) => Some(Told::Tool(announced(call))),
        SessionUpdate::ToolCallUpdate(update) => Some(Told::Tool(updated(update))),
        SessionUpdate::UsageUpdate(usage) => serde_json::to_value(usage).ok().map(Told::Usage),
        SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::Plan(_)
        | SessionUpdate::AvailableCommandsUpdate(_)
        | SessionUpdate::CurrentModeUpdate(_)
        | SessionUpdate::ConfigOptionUpdate(_)
        | SessionUpdate::SessionInfoUpdate(_)
        | SessionUpdate::Notice(_)
        | SessionUpdate::CompactionUpdate(_)
        | SessionUpdate::CompactionSummaryChunk(_) => None,
        _ => return None,
    })
}

fn announced(call: ToolCall) -> ToolSeen {
    let name = call.name.unwrap_or(call.title);
    ToolSeen {
        call_id: call.tool_call_id.to_string(),
        mutating: Some(is_mutating(&name, call.kind)),
        name: Some(name),
        arguments: call.raw_input,
        progress: Some(progress(call.status)),
        output: output(&call.content),
    }
}

pub(super) fn updated(update: ToolCallUpdate) -> ToolSeen {
    let fields = update.fields;
    let name = fields.name.or(fields.title);
    ToolSeen {
        call_id: update.tool_call_id.to_string(),
        mutating: fields.kind.map(|kind| is_mutating(name.as_deref().unwrap_or_default(), kind)),
        name,
        arguments: fields.raw_input,
        progress: fields.status.map(progress),
        output: fields.content.as_deref().and_then(output),
    }
}

/// By its name where that says, else by its kind. Reading changes nothing; what nobody knows may change anything.
fn is_mutating(name: &str, kind: ToolKind) -> bool {
    baton_core::session::is_mutating(name).unwrap_or(match kind {
        ToolKind::Read | ToolKind::Search | ToolKind::Think | ToolKind::Fetch | ToolKind::SwitchMode => false,
        ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Execute => true,
        // Compared with the work tree at the end of the turn.
        _ => false,
    })
}

fn progress(status: ToolCallStatus) -> Progress {
    match status {
        ToolCallStatus::InProgress => Progress::Running,
        ToolCallStatus::Completed => Progress::Succeeded,
        ToolCallStatus::Failed => Progress::SaysNo,
        _ => Progress::Announced,
    }
}

fn output(content: &[ToolCallContent]) -> Option<String> {
    let texts: Vec<&str> = content
        .iter()
        .filter_map(|content| match content {
            ToolCallContent::Content(content) => match &content.content {
                ContentBlock::Text(text) => Some(text.text.as_str()),
                _ => None,
            },
            _ => None,
        })
        .collect();
    (!texts.is_empty()).then(|| texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Sorted {
        sort(line.as_bytes())
    }

    #[track_caller]
    fn update(update: &str) -> Option<Told> {
        let line = format!(
            r#"{{"jsonrpc":"2.0","method":"session/update","params":{{"sessionId":"s","update":{update}}}}}"#
        );
        let sorted = of(&line);
        assert_eq!(sorted.for_library, None, "updates are not the library's");
        sorted.told
    }

    #[test]
    fn what_is_no_message_is_told_and_kept_from_the_library() {
        for line in ["hello", "[1]", "{\"a\":", "{\"jsonrpc\":\"2.0\"}", "\u{0}"] {
            let sorted = of(line);
            assert!(matches!(sorted.told, Some(Told::Noise { .. })), "{line}: {sorted:?}");
            assert_eq!(sorted.for_library, None, "{line}");
        }
        assert!(of("  ").told.is_none());
        let long = of(&"x".repeat(100_000));
        assert!(matches!(long.told, Some(Told::Noise { raw, .. }) if raw.len() == RAW_BYTES_MAX));
    }

    #[test]
    fn updates_become_what_they_mean() {
        let text = update(r#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"hi"}}"#);
        assert!(matches!(text, Some(Told::Text { text, is_thought: false }) if text == "hi"));
        let tool = update(
            r#"{"sessionUpdate":"tool_call","toolCallId":"c","title":"write","kind":"edit","status":"pending","rawInput":{"a":1}}"#,
        );
        let Some(Told::Tool(seen)) = tool else { panic!("{tool:?}") };
        assert_eq!(
            (seen.call_id.as_str(), seen.mutating, seen.progress),
            ("c", Some(true), Some(Progress::Announced))
        );
        let tool = update(r#"{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"failed"}"#);
        let Some(Told::Tool(seen)) = tool else { panic!("{tool:?}") };
        assert_eq!((seen.name, seen.progress), (None, Some(Progress::SaysNo)));
        assert!(update(r#"{"sessionUpdate":"plan","entries":[]}"#).is_none(), "known, and of no consequence");
    }

    #[test]
    fn an_unknown_update_is_told_and_costs_nothing() {
        let told = update(r#"{"sessionUpdate":"hologram","x":1}"#);
        assert!(matches!(told, Some(Told::Unknown { what: "an update", .. })), "{told:?}");
        let told = of(r#"{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}"#).told;
        assert!(matches!(told, Some(Told::Unknown { what: "a notification", .. })), "{told:?}");
    }

    #[test]
    fn an_unknown_stop_reason_ends_the_turn_all_the_same() {
        let sorted = of(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"enlightened","usage":null}}"#);
        assert!(matches!(sorted.told, Some(Told::Unknown { what: "a stop reason", .. })));
        let line: Value = serde_json::from_str(&sorted.for_library.unwrap()).unwrap();
        assert_eq!(line["result"]["stopReason"], "end_turn");
        let used =
            of(r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"end_turn","usage":{"inputTokens":11}}}"#);
        assert!(matches!(used.told, Some(Told::Usage(usage)) if usage["inputTokens"] == 11));
        let plain = r#"{"jsonrpc":"2.0","id":3,"result":{"stopReason":"cancelled"}}"#;
        assert_eq!(of(plain).for_library.as_deref(), Some(plain), "what is known is left as it is");
    }

    #[test]
    fn requests_and_answers_are_the_library_s() {
        for line in [
            r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"craft/drainMidTurnQueue"}"#,
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"no"}}"#,
        ] {
            assert_eq!(of(line).for_library.as_deref(), Some(line));
        }
    }
}

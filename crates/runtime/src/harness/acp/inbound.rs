//! Lines of an agent before the library sees them. Lenient: what is not known is told and never costs a turn.

use agent_client_protocol::v1::schema::{
    ContentBlock, SessionNotification, SessionUpdate, ToolCall, ToolCallContent, ToolCallStatus,
    ToolCallUpdate, ToolKind,
};
use baton_core::session::Cause;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::desk::Desk;
use crate::harness::bounds::{beginning, is_simple};
use crate::harness::{Failure, Progress, Told, ToolSeen};
use crate::limits::AGENT_VALUES_MAX;

/// How a turn may end, as the protocol has it.
const STOP_REASONS: &[&str] = &["end_turn", "max_tokens", "max_turn_requests", "refusal", "cancelled"];

/// A request that is not taken, and what went wrong without a number, as JSON-RPC has it.
const INVALID_REQUEST: i32 = -32600;
const INTERNAL_ERROR: i32 = -32603;

/// What a line turned out to be.
#[derive(Debug, Default)]
pub(super) struct Sorted {
    pub(super) told: Option<Told>,
    pub(super) for_library: Option<String>,
    /// What the agent is answered at once.
    pub(super) answer: Option<String>,
}

impl Sorted {
    fn told(told: Told) -> Self {
        Sorted { told: Some(told), ..Sorted::default() }
    }

    fn noise(what: &'static str, line: &[u8]) -> Self {
        Sorted::told(Told::Noise { what, raw: beginning(line) })
    }

    fn unknown(what: &'static str, line: &[u8]) -> Self {
        Sorted::told(Told::Unknown { what, raw: beginning(line) })
    }
}

pub(super) fn sort(line: &[u8], desk: &Desk) -> Sorted {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Sorted::default();
    }
    if !is_simple(line) {
        let message =
            format!("the agent sent a message of more than {AGENT_VALUES_MAX} values, which is none");
        return Sorted::told(Told::Broken(Failure::of(Cause::Protocol, message)));
    }
    let Ok(Value::Object(mut message)) = serde_json::from_slice::<Value>(line) else {
        return loose(line, desk);
    };
    let is_request = message.get("id").is_some_and(|id| !id.is_null());
    match (message.get("method").and_then(Value::as_str), is_request) {
        (Some("session/update"), false) => {
            let params = message.remove("params").unwrap_or_default();
            match serde_json::from_value::<SessionNotification>(params) {
                Ok(notification) => translate(notification.update).map_or_else(
                    || Sorted::unknown("an update", line),
                    |told| Sorted { told, ..Sorted::default() },
                ),
                Err(_) => Sorted::unknown("an update", line),
            }
        }
        (Some(_), false) => Sorted::unknown("a notification", line),
        (Some(method), true) => match desk.admit(&message["id"], line.len(), method) {
            // The library answers what it does not know.
            Ok(()) => Sorted { for_library: text(line), ..Sorted::default() },
            Err(why) => Sorted { answer: Some(refusal(&message["id"], &why)), ..Sorted::default() },
        },
        (None, true) if !desk.is_awaited(&message["id"]) => Sorted::unknown("an answer to nothing", line),
        (None, true) => {
            normalise(&mut message);
            let stop =
                message.get("result").and_then(|result| result.get("stopReason")).and_then(Value::as_str);
            match stop.filter(|stop| !STOP_REASONS.contains(stop)) {
                None => {
                    let told = usage(&message);
                    let for_library = Some(Value::Object(message).to_string());
                    Sorted { told, for_library, ..Sorted::default() }
                }
                // The turn ended, and ended well as far as anyone can tell.
                Some(_) => {
                    let told = Sorted::unknown("a stop reason", line).told;
                    message["result"]["stopReason"] = "end_turn".into();
                    let for_library = Some(Value::Object(message).to_string());
                    Sorted { told, for_library, ..Sorted::default() }
                }
            }
        }
        (None, false) => Sorted::noise("an object that is no message", line),
    }
}

/// An answer in the one form that the library takes: agents leave out what everybody knows, say both or neither, or give an error as a text.
fn normalise(message: &mut Map<String, Value>) {
    message.insert("jsonrpc".to_owned(), "2.0".into());
    let error = message.remove("error").filter(|error| !error.is_null());
    match error {
        // One that says both has failed.
        Some(error) => {
            message.remove("result");
            let is_whole = error["code"].is_i64() && error["message"].is_string();
            let said = || error.as_str().map_or_else(|| error.to_string(), str::to_owned);
            let whole =
                if is_whole { error.clone() } else { json!({"code": INTERNAL_ERROR, "message": said()}) };
            message.insert("error".to_owned(), whole);
        }
        None => {
            message.entry("result").or_insert(Value::Null);
        }
    }
}

/// As much of a message as can be read where all of it cannot, such as one with a number that is none.
#[derive(Deserialize)]
struct Loose {
    id: Option<Value>,
    method: Option<String>,
    result: Option<LooseResult>,
}

#[derive(Deserialize)]
struct LooseResult {
    #[serde(rename = "stopReason")]
    stop_reason: Option<String>,
}

/// A line that does not read. Where it answers something, or asks for something, nobody waits for ever.
fn loose(line: &[u8], desk: &Desk) -> Sorted {
    let noise = Sorted::noise("a line that is no message", line);
    let Ok(Loose { id: Some(id), method, result }) = serde_json::from_slice(line) else { return noise };
    if method.is_some() {
        return Sorted { answer: Some(refusal(&id, "it does not read as JSON")), ..noise };
    }
    if !desk.is_awaited(&id) {
        return noise;
    }
    // The end of a turn is one, whatever stands beside it.
    let answer = match result.and_then(|result| result.stop_reason) {
        Some(stop) => json!({"jsonrpc": "2.0", "id": id, "result": {"stopReason": known(&stop)}}),
        None => {
            let error =
                json!({"code": INTERNAL_ERROR, "message": "the agent's answer does not read as JSON"});
            json!({"jsonrpc": "2.0", "id": id, "error": error})
        }
    };
    Sorted { for_library: Some(answer.to_string()), ..noise }
}

/// A stop reason that the library knows.
fn known(stop: &str) -> &str {
    if STOP_REASONS.contains(&stop) { stop } else { "end_turn" }
}

fn refusal(id: &Value, why: &str) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": INVALID_REQUEST, "message": why}}).to_string()
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
        SessionUpdate::Plan(plan) => serde_json::to_value(plan.entries).ok().map(Told::Plan),
        SessionUpdate::UsageUpdate(usage) => serde_json::to_value(usage).ok().map(Told::Usage),
        SessionUpdate::CurrentModeUpdate(update) => {
            Some(Told::Status(format!("the agent is in mode {}", update.current_mode_id)))
        }
        SessionUpdate::UserMessageChunk(_)
        | SessionUpdate::AvailableCommandsUpdate(_)
        | SessionUpdate::ConfigOptionUpdate(_)
        | SessionUpdate::SessionInfoUpdate(_)
        | SessionUpdate::Notice(_)
        | SessionUpdate::CompactionUpdate(_)
        | SessionUpdate::CompactionSummaryChunk(_) => None,
        _ => return None,
    })
}

fn announced(call: ToolCall) -> ToolSeen {
    let tool = tool_of(call.name.as_deref(), Some(&call.title), Some(call.kind));
    let name = call.name.unwrap_or(call.title);
    ToolSeen {
        tool,
        kind: kind_of(Some(call.kind)),
        diffs: diffs(&call.content),
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
    let tool = tool_of(fields.name.as_deref(), fields.title.as_deref(), fields.kind);
    let name = fields.name.or(fields.title);
    ToolSeen {
        tool,
        kind: kind_of(fields.kind),
        diffs: fields.content.as_deref().and_then(diffs),
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

/// What rules call a tool: its name, a title that is a name, or its kind.
fn tool_of(name: Option<&str>, title: Option<&str>, kind: Option<ToolKind>) -> Option<String> {
    let is_name = |text: &&str| {
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        !text.is_empty() && text.len() <= 64 && text.chars().all(is_part)
    };
    name.filter(is_name).or(title.filter(is_name)).map(str::to_owned).or_else(|| kind_of(kind))
}

/// A kind in the protocol's word; none where it is none of them.
fn kind_of(kind: Option<ToolKind>) -> Option<String> {
    let word = serde_json::to_value(kind?).ok()?;
    word.as_str().filter(|word| *word != "other").map(str::to_owned)
}

fn progress(status: ToolCallStatus) -> Progress {
    match status {
        ToolCallStatus::InProgress => Progress::Running,
        ToolCallStatus::Completed => Progress::Succeeded,
        ToolCallStatus::Failed => Progress::SaysNo,
        _ => Progress::Announced,
    }
}

/// What a call would change, as far as its content says.
fn diffs(content: &[ToolCallContent]) -> Option<Value> {
    let all: Vec<Value> = content
        .iter()
        .filter(|content| matches!(content, ToolCallContent::Diff(_)))
        .filter_map(|content| serde_json::to_value(content).ok())
        .collect();
    (!all.is_empty()).then(|| Value::Array(all))
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
    use crate::limits::UNKNOWN_BYTES_MAX;

    /// Sorts a line of an agent that was asked for everything from 0 to 9.
    fn of(line: &str) -> Sorted {
        let desk = Desk::default();
        (0..10).for_each(|id| desk.sent(&format!(r#"{{"id":{id},"method":"m"}}"#)));
        sort(line.as_bytes(), &desk)
    }

    /// What the library gets of a line.
    #[track_caller]
    fn passed(line: &str) -> Value {
        serde_json::from_str(&of(line).for_library.unwrap()).unwrap()
    }

    #[test]
    fn an_answer_that_does_not_read_is_one_all_the_same() {
        for odd in [r#""_meta":{"x":1e999}"#, r#""note":"\ud83d""#] {
            let end = passed(&format!(r#"{{"id":1,"result":{{"stopReason":"refusal",{odd}}}}}"#));
            assert_eq!(end["result"]["stopReason"], "refusal", "{odd}");
            let other = passed(&format!(r#"{{"id":1,"result":{{"sessionId":"s",{odd}}}}}"#));
            assert_eq!(other["error"]["code"], INTERNAL_ERROR, "{odd}");
            let asked =
                of(&format!(r#"{{"id":9,"method":"session/request_permission","params":{{{odd}}}}}"#));
            assert!(asked.answer.unwrap().contains("does not read"), "{odd}");
            let stray = of(&format!(r#"{{"id":77,"result":{{{odd}}}}}"#));
            assert!(stray.for_library.is_none() && stray.told.is_some(), "{odd}");
        }
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
        assert!(matches!(long.told, Some(Told::Noise { raw, .. }) if raw.len() == UNKNOWN_BYTES_MAX));
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
        let plan = update(
            r#"{"sessionUpdate":"plan","entries":[{"content":"look","priority":"high","status":"pending"}]}"#,
        );
        assert!(matches!(plan, Some(Told::Plan(entries)) if entries[0]["content"] == "look"));
        let commands = update(r#"{"sessionUpdate":"available_commands_update","availableCommands":[]}"#);
        assert!(commands.is_none(), "known, and of no consequence");
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
        let plain = json!({"jsonrpc": "2.0", "id": 3, "result": {"stopReason": "cancelled"}});
        assert_eq!(passed(&plain.to_string()), plain, "what is known is left as it is");
    }

    #[test]
    fn requests_and_answers_are_the_library_s() {
        for line in [
            r#"{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{}}"#,
            r#"{"jsonrpc":"2.0","id":"x","method":"craft/drainMidTurnQueue"}"#,
        ] {
            assert_eq!(of(line).for_library.as_deref(), Some(line));
        }
    }

    #[test]
    fn answers_that_say_both_or_answer_nothing_confuse_nobody() {
        let both = passed(r#"{"id":1,"result":null,"error":{"code":1,"message":"no"}}"#);
        assert_eq!(both, json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "no"}}));
        let good = passed(r#"{"id":1,"result":{"a":1},"error":null}"#);
        assert_eq!(good, json!({"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}));
        let text = passed(r#"{"id":1,"error":"boom"}"#);
        assert_eq!(text["error"], json!({"code": INTERNAL_ERROR, "message": "boom"}));
        let stray = of(r#"{"id":77,"result":{}}"#);
        assert!(matches!(stray.told, Some(Told::Unknown { what: "an answer to nothing", .. })));
        assert_eq!(stray.for_library, None);
    }

    #[test]
    fn what_is_too_much_is_answered_at_once_or_ends_the_agent() {
        let desk = Desk::default();
        let line = br#"{"id":5,"method":"fs/read_text_file"}"#;
        assert!(sort(line, &desk).for_library.is_some());
        let again: Value = serde_json::from_str(&sort(line, &desk).answer.unwrap()).unwrap();
        assert_eq!((&again["id"], &again["error"]["code"]), (&json!(5), &json!(INVALID_REQUEST)));
        let many = format!(r#"{{"method":"session/update","params":[{}0]}}"#, "0,".repeat(AGENT_VALUES_MAX));
        assert!(matches!(sort(many.as_bytes(), &desk).told, Some(Told::Broken(_))));
    }
}

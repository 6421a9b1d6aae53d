//! A conversation from the ledger: which tasks it led to, which sessions worked on them, and what was said in those.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use baton_core::task::EARLIER;
use serde_json::{Value, json};

use super::program::{Place, Program};
use super::translate::{chunk, content, kind_of};
use super::wire::Refusal;
use super::{CWD_KEY, SESSION_KEY};

/// One thing that was said: by whom, for the next prompt, and what the editor is told.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    Prompt(String),
    Update(Value),
    Words(String),
}

/// What stands between a prompt and what was said before it, in the text of a task. Agents are given the two apart.
pub(super) fn seam(session: &str) -> String {
    format!("{EARLIER}{session} -->\n")
}

/// The tasks of a conversation, the oldest first; none where nobody knows it.
pub(super) async fn tasks(program: &Program, place: &Place, session: &str) -> Result<Vec<Value>, Refusal> {
    let mut tasks = all_tasks(program, place).await?;
    tasks.retain(|task| task["metadata"][SESSION_KEY] == session);
    tasks.sort_by_key(|task| text(task, "createdAt").to_owned() + text(task, "id"));
    Ok(tasks)
}

async fn all_tasks(program: &Program, place: &Place) -> Result<Vec<Value>, Refusal> {
    let printed = program.ask(place, &["task", "ls"]).await?;
    Ok(printed.first().and_then(|list| list["tasks"].as_array()).cloned().unwrap_or_default())
}

/// The conversations of a data directory as the protocol lists them, the one that was last worked on first.
pub(super) async fn list(program: &Program, place: &Place, cwd: Option<&str>) -> Result<Vec<Value>, Refusal> {
    let mut all: BTreeMap<String, Value> = BTreeMap::new();
    let mut tasks = all_tasks(program, place).await?;
    tasks.sort_by_key(|task| text(task, "createdAt").to_owned() + text(task, "id"));
    for task in &tasks {
        let metadata = &task["metadata"];
        let (Some(session), Some(dir)) = (metadata[SESSION_KEY].as_str(), metadata[CWD_KEY].as_str()) else {
            continue;
        };
        if cwd.is_some_and(|cwd| Path::new(cwd) != Path::new(dir)) {
            continue;
        }
        let title = text(task, "title");
        let known = all
            .entry(session.to_owned())
            .or_insert_with(|| json!({"sessionId": session, "cwd": dir, "title": title, "updatedAt": ""}));
        if text(task, "updatedAt") > text(known, "updatedAt") {
            known["updatedAt"] = task["updatedAt"].clone();
        }
    }
    let mut all: Vec<Value> = all.into_values().collect();
    all.sort_by(|one, other| text(other, "updatedAt").cmp(text(one, "updatedAt")));
    Ok(all)
}

/// All that was said in a conversation, in order.
pub(super) async fn said(program: &Program, place: &Place, tasks: &[Value]) -> Result<Vec<Said>, Refusal> {
    let printed = program.ask(place, &["session", "ls"]).await?;
    let mut sessions =
        printed.first().and_then(|list| list["sessions"].as_array()).cloned().unwrap_or_default();
    sessions.sort_by_key(|one| text(one, "startedAt").to_owned() + text(one, "id"));
    let mut all = Vec::new();
    for task in tasks {
        let mut is_first = true;
        for one in sessions.iter().filter(|one| one["taskId"] == task["id"]) {
            let pieces = program.ask(place, &["session", "show", text(one, "id"), "--transcript"]).await?;
            all.extend(of_session(&pieces, text(one, "id"), std::mem::take(&mut is_first)));
        }
        if is_first {
            // Nobody came to work on it.
            all.push(Said::Prompt(text(task, "title").to_owned()));
        }
        let words = format!("\n\n{} is in {}.\n", text(task, "id"), text(task, "status"));
        all.push(Said::Update(chunk("agent_message_chunk", &words)));
    }
    Ok(all)
}

/// What was said in one session of an agent. The first prompt is the editor's where it is the first session of a task; the others are Baton's.
fn of_session(pieces: &[Value], id: &str, is_first: bool) -> Vec<Said> {
    let mut all = Vec::new();
    let (mut is_prompted, mut count) = (!is_first, 0_usize);
    let mut denied = BTreeSet::new();
    let mut asked = BTreeMap::new();
    for piece in pieces {
        match text(piece, "kind") {
            "prompt" if !is_prompted => {
                is_prompted = true;
                all.push(Said::Prompt(text(piece, "text").to_owned()));
            }
            "text" => all.push(Said::Words(text(piece, "text").to_owned())),
            "thought" => all.push(Said::Update(chunk("agent_thought_chunk", text(piece, "text")))),
            "plan" if piece["entries"].is_array() => {
                all.push(Said::Update(json!({"sessionUpdate": "plan", "entries": piece["entries"]})));
            }
            "permission_requested" => {
                asked.insert(text(piece, "id"), text(piece, "callId"));
            }
            "permission_resolved" if piece["answer"] != "allow" => {
                denied.extend(asked.get(text(piece, "id")).copied());
            }
            "tool" => {
                count += 1;
                let is_bad = !piece["error"].is_null() || denied.contains(text(piece, "callId"));
                let output = piece["output"].as_str().or(piece["error"].as_str());
                let title = text(piece, "toolName");
                let mut call = json!({
                    "sessionUpdate": "tool_call",
                    "toolCallId": format!("{id}/said-{count}"),
                    "title": title,
                    "kind": kind_of(title),
                    "status": if is_bad { "failed" } else { "completed" },
                });
                if let Some(output) = output {
                    call["content"] = content(output);
                }
                all.push(Said::Update(call));
            }
            _ => {}
        }
    }
    all
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transcript_is_told_as_it_was_said() {
        let pieces = [
            json!({"kind": "prompt", "text": "do it", "more": ["User: before", "You are agent mock"]}),
            json!({"kind": "thought", "text": "hm"}),
            json!({"kind": "permission_requested", "id": "1", "callId": "c", "title": "run"}),
            json!({"kind": "permission_resolved", "id": "1", "answer": "deny"}),
            json!({"kind": "tool", "callId": "c", "toolName": "bash", "error": "no"}),
            json!({"kind": "text", "text": "done"}),
            json!({"kind": "prompt", "text": "there is no report yet"}),
            json!({"kind": "session_error", "message": "x"}),
        ];
        let call = json!({"sessionUpdate": "tool_call", "toolCallId": "sess_1/said-1", "title": "bash", "kind": "execute",
            "status": "failed", "content": content("no")});
        assert_eq!(
            of_session(&pieces, "sess_1", true),
            [
                Said::Prompt("do it".to_owned()),
                Said::Update(chunk("agent_thought_chunk", "hm")),
                Said::Update(call),
                Said::Words("done".to_owned()),
            ]
        );
        assert_eq!(of_session(&pieces[..1], "sess_2", false), [], "another attempt has no prompt of its own");
    }
}

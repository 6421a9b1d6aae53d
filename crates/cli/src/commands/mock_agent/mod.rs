//! `baton mock-agent`: a small agent that speaks the Agent Client Protocol over its standard streams and does what the words of its prompt say.
//!
//! It knows nothing of Baton: everything that Baton does with it, it would do with any agent. Written by hand, because half of what it is for is to
//! misbehave. One thread reads; each turn runs in another, so that a cancel or an answer reaches it.

mod mcp;
mod part;
mod turn;
mod wire;

use std::collections::BTreeMap;
use std::io::{BufRead as _, stdin};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use self::mcp::Server;
use self::turn::Turn;
use self::wire::Wire;
use crate::commands::Ended;
use crate::exit::Exit;

/// A session that a client made.
#[derive(Debug, Clone)]
struct Session {
    cwd: PathBuf,
    servers: Vec<Server>,
    is_canceled: Arc<AtomicBool>,
}

pub(super) fn run() -> Ended {
    let wire = Arc::new(Wire::default());
    let mut sessions: BTreeMap<String, Session> = BTreeMap::new();
    for line in stdin().lock().lines() {
        let Ok(line) = line else { break };
        let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
        let (id, params) = (message.get("id").cloned(), &message["params"]);
        match (message["method"].as_str(), id) {
            (Some(method), Some(id)) => answer(&wire, &mut sessions, method, id, params),
            (Some("session/cancel"), None) => {
                if let Some(session) = sessions.get(name_of(params)) {
                    session.is_canceled.store(true, Ordering::Relaxed);
                    wire.cancel_asked();
                }
            }
            (None, Some(id)) => wire.answered(&id, &message),
            _ => {}
        }
    }
    Ok(Exit::Ok)
}

fn name_of(params: &Value) -> &str {
    params["sessionId"].as_str().unwrap_or_default()
}

fn answer(
    wire: &Arc<Wire>,
    sessions: &mut BTreeMap<String, Session>,
    method: &str,
    id: Value,
    params: &Value,
) {
    match method {
        "initialize" => wire.result(
            &id,
            &json!({
                "protocolVersion": 1,
                "agentCapabilities": {
                    "loadSession": true,
                    "promptCapabilities": {"image": false, "audio": false, "embeddedContext": true},
                    "mcpCapabilities": {"http": false, "sse": false},
                },
                "agentInfo": {"name": "mock", "title": "Mock", "version": env!("CARGO_PKG_VERSION")},
                "authMethods": [],
            }),
        ),
        "session/new" | "session/load" => {
            let session = Session {
                cwd: params["cwd"].as_str().unwrap_or(".").into(),
                servers: params["mcpServers"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter_map(Server::read)
                    .collect(),
                is_canceled: Arc::default(),
            };
            let name = match params["sessionId"].as_str() {
                Some(name) => name.to_owned(),
                None => format!("mock-session-{}", sessions.len() + 1),
            };
            sessions.insert(name.clone(), session);
            if method == "session/load" {
                // As real ones do: what was said before comes once more.
                let content = json!({"type": "text", "text": "said before"});
                let update = json!({"sessionUpdate": "agent_message_chunk", "content": content});
                let params = json!({"sessionId": name, "update": update});
                wire.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
            }
            let modes = json!({
                "currentModeId": "ask",
                "availableModes": [{"id": "ask", "name": "Ask"}, {"id": "code", "name": "Code"}],
            });
            wire.result(&id, &json!({"sessionId": name, "modes": modes}));
        }
        "session/set_mode" if matches!(params["modeId"].as_str(), Some("ask" | "code")) => {
            wire.result(&id, &json!({}));
        }
        "session/set_mode" => wire.error(&id, -32602, "no such mode", &Value::Null),
        "session/prompt" => match sessions.get(name_of(params)).cloned() {
            Some(session) => {
                session.is_canceled.store(false, Ordering::Relaxed);
                let turn = Turn::new(wire.clone(), name_of(params), session, params);
                std::thread::spawn(move || turn.run(&id));
            }
            None => wire.error(&id, -32002, "no such session", &Value::Null),
        },
        _ => wire.error(&id, -32601, "method not found", &Value::Null),
    }
}

//! The fastest agent there is: it speaks ACP over its standard streams and answers every prompt at once, with one word. For measuring what lies
//! between it and whoever asks.

use std::io::{BufRead as _, Write as _, stdin, stdout};

use serde_json::{Value, json};

fn main() -> std::io::Result<()> {
    let mut out = stdout().lock();
    for line in stdin().lock().lines() {
        let message: Value = serde_json::from_str(&line?)?;
        let id = &message["id"];
        let result = match message["method"].as_str() {
            Some("initialize") => json!({"protocolVersion": 1, "agentCapabilities": {}, "authMethods": []}),
            Some("session/new") => json!({"sessionId": "s"}),
            Some("session/prompt") => {
                let update = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "yes"}});
                let params = json!({"sessionId": "s", "update": update});
                writeln!(out, "{}", json!({"jsonrpc": "2.0", "method": "session/update", "params": params}))?;
                json!({"stopReason": "end_turn"})
            }
            _ => continue,
        };
        writeln!(out, "{}", json!({"jsonrpc": "2.0", "id": id, "result": result}))?;
        out.flush()?;
    }
    Ok(())
}

//! Just enough of the Model Context Protocol to call one tool of a server over its standard streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// A server that the client named.
#[derive(Debug, Clone)]
pub(super) struct Server {
    command: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Server {
    pub(super) fn read(value: &Value) -> Option<Self> {
        let args =
            value["args"].as_array()?.iter().filter_map(|arg| arg.as_str().map(str::to_owned)).collect();
        let env = value["env"].as_array().into_iter().flatten();
        let env = env
            .filter_map(|pair| Some((pair["name"].as_str()?.to_owned(), pair["value"].as_str()?.to_owned())));
        Some(Server { command: value["command"].as_str()?.to_owned(), args, env: env.collect() })
    }

    /// Starts it, calls a tool, and gives the text of the answer.
    pub(super) fn call(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        let mut child = Command::new(&self.command)
            .args(&self.args)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| format!("{}: {error}", self.command))?;
        let answer = talk(&mut child, tool, arguments);
        // Its input ends with the child's handle, and it with that.
        drop(child.stdin.take());
        let _ = child.wait();
        answer
    }
}

fn talk(child: &mut Child, tool: &str, arguments: &Value) -> Result<String, String> {
    let (Some(input), Some(output)) = (child.stdin.as_mut(), child.stdout.take()) else {
        return Err("no streams".to_owned());
    };
    let mut lines = BufReader::new(output).lines();
    let mut say = |message: &Value| writeln!(input, "{message}").map_err(|error| error.to_string());
    let mut hear = |id: u64| loop {
        let line = lines.next().ok_or("the server went away")?.map_err(|error| error.to_string())?;
        let message: Value = serde_json::from_str(&line).map_err(|error| error.to_string())?;
        if message["id"] == id {
            return Ok::<Value, String>(message);
        }
    };
    let client = json!({"name": "mock", "version": env!("CARGO_PKG_VERSION")});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    say(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}))?;
    hear(1)?;
    say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))?;
    let call = json!({"name": tool, "arguments": arguments});
    say(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))?;
    let answer = hear(2)?;
    let text = answer["result"]["content"][0]["text"].as_str().map(str::to_owned);
    match (answer["result"]["isError"].as_bool().unwrap_or(false), text, &answer["error"]) {
        (false, Some(text), _) => Ok(text),
        (true, Some(text), _) => Err(text),
        (_, None, error) => Err(error.to_string()),
    }
}

//! The mock agent as a client meets it: every word of its prompt, over real pipes.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, wait};

const SOON: Duration = Duration::from_secs(30);

/// A client with one session.
struct Client {
    child: Child,
    input: ChildStdin,
    lines: Receiver<String>,
    home: Home,
}

impl Client {
    fn new() -> Client {
        let home = Home::empty();
        let mut command = home.command(&["mock-agent"]);
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        let mut client = Client { child, input, lines, home };
        client.say(1, "initialize", &json!({"protocolVersion": 1, "clientCapabilities": {}}));
        assert_eq!(client.answer(1)["result"]["protocolVersion"], 1);
        let cwd = client.home.path("").display().to_string();
        client.say(2, "session/new", &json!({"cwd": cwd, "mcpServers": []}));
        assert_eq!(client.answer(2)["result"]["sessionId"], "mock-session-1");
        client
    }

    fn say(&mut self, id: u64, method: &str, params: &Value) {
        writeln!(self.input, "{}", json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
            .unwrap();
    }

    fn prompt(&mut self, text: &str) {
        let prompt = json!([{"type": "text", "text": text}]);
        self.say(3, "session/prompt", &json!({"sessionId": "mock-session-1", "prompt": prompt}));
    }

    #[track_caller]
    fn line(&self) -> String {
        self.lines.recv_timeout(SOON).unwrap()
    }

    #[track_caller]
    fn message(&self) -> Value {
        serde_json::from_str(&self.line()).unwrap()
    }

    #[track_caller]
    fn answer(&self, id: u64) -> Value {
        loop {
            let message = self.message();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
        }
    }

    /// Everything until the answer to the prompt.
    #[track_caller]
    fn turn(&mut self, text: &str) -> (Vec<Value>, Value) {
        self.prompt(text);
        let mut updates = Vec::new();
        loop {
            let message = self.message();
            if message["id"] == 3 {
                return (updates, message);
            }
            updates.push(message["params"]["update"].clone());
        }
    }

    /// Its end, which comes by itself.
    fn end(mut self) -> (Option<i32>, Option<i32>, String) {
        use std::io::Read as _;
        let mut errors = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = wait(&mut self.child);
        (status.code(), status.signal(), errors)
    }
}

fn text(updates: &[Value]) -> String {
    updates.iter().filter_map(|update| update["content"]["text"].as_str()).collect()
}

#[test]
fn it_says_the_prompt_back_word_by_word() {
    let mut client = Client::new();
    let (updates, answer) = client.turn("good morning to you");
    assert_eq!(updates.len(), 4);
    assert_eq!(text(&updates), "good morning to you ");
    assert_eq!(answer["result"]["stopReason"], "end_turn");
    assert_eq!(text(&client.turn("echo tool crash").0), "echo tool crash ", "echo is echo");
    drop(client.input);
    assert_eq!(wait(&mut client.child).code(), Some(0), "it ends with its input");
}

#[test]
fn tools_are_announced_and_a_write_is_one() {
    let mut client = Client::new();
    let (updates, _) = client.turn("tool then write");
    let seen: Vec<String> = updates
        .iter()
        .map(|update| {
            format!("{} {}", update["toolCallId"].as_str().unwrap(), update["status"].as_str().unwrap())
        })
        .collect();
    assert_eq!(
        seen,
        [
            "call-read_file pending",
            "call-read_file in_progress",
            "call-read_file completed",
            "call-write_file pending",
            "call-write_file in_progress",
            "call-write_file completed"
        ]
    );
    assert_eq!(std::fs::read_to_string(client.home.path("mock.txt")).unwrap(), "tool then write\n");
}

#[test]
fn a_permission_is_asked_for_and_a_cancel_ends_the_wait() {
    let mut client = Client::new();
    for (answer, expected) in [("once", "permission: once "), ("no", "permission: no ")] {
        client.prompt("permission");
        let asked = loop {
            let message = client.message();
            if message["method"] == "session/request_permission" {
                break message;
            }
        };
        let outcome = json!({"outcome": {"outcome": "selected", "optionId": answer}});
        writeln!(client.input, "{}", json!({"jsonrpc": "2.0", "id": asked["id"], "result": outcome}))
            .unwrap();
        let mut said = String::new();
        loop {
            let message = client.message();
            if message["id"] == 3 {
                break;
            }
            said += message["params"]["update"]["content"]["text"].as_str().unwrap_or_default();
        }
        assert_eq!(said, expected);
    }
    client.prompt("permission");
    while client.message()["method"] != "session/request_permission" {}
    writeln!(
        client.input,
        r#"{{"jsonrpc":"2.0","method":"session/cancel","params":{{"sessionId":"mock-session-1"}}}}"#
    )
    .unwrap();
    assert_eq!(client.answer(3)["result"]["stopReason"], "cancelled");
}

#[test]
fn it_dies_as_it_is_told() {
    let mut client = Client::new();
    client.prompt("crash 5 3");
    let (code, _, errors) = client.end();
    assert_eq!((code, errors.lines().count()), (Some(5), 3), "{errors}");
    let mut client = Client::new();
    client.prompt("crash");
    let (code, _, errors) = client.end();
    assert_eq!((code, errors.lines().count()), (Some(1), 2), "{errors}");
    let mut client = Client::new();
    client.prompt("signal");
    assert_eq!(client.end().1, Some(9));
}

#[test]
fn it_misbehaves_as_it_is_told() {
    let mut client = Client::new();
    client.prompt("garbage");
    assert_eq!(client.line(), "this is no message");
    assert!(serde_json::from_str::<Value>(&client.line()).is_err());
    assert!(serde_json::from_str::<Value>(&client.line()).is_err());
    assert_eq!(client.answer(3)["result"]["stopReason"], "end_turn");
    let limit = client.turn("limit").1;
    assert_eq!(limit["error"]["code"], -32003);
    assert!(
        limit["error"]["message"].as_str().unwrap().starts_with("usage limit reached, resets at 20"),
        "{limit}"
    );
    let said = text(&client.turn("exit-signal REVIEW").0);
    let signal: Value = serde_json::from_str(said.trim()).unwrap();
    assert_eq!(signal["phase_completed"], "REVIEW");
    let failed = client.turn("complete done").1;
    assert!(failed["error"]["message"].as_str().unwrap().contains("no tool server"), "{failed}");
}

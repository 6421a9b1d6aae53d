//! What an editor may send that is wrong: no message, too long, or with fields that do not fit.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, wait};
use crate::task_support::text;

const SOON: Duration = Duration::from_secs(60);

/// An editor that speaks JSON-RPC by hand.
struct Raw {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Raw {
    fn start(home: &Home) -> Raw {
        let mut child = home.command(&["acp"]).stdin(Stdio::piped()).spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
        let (say, lines) = channel();
        std::thread::spawn(move || {
            BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
        });
        Raw { child, input, lines }
    }

    fn line(&mut self, line: &[u8]) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line).unwrap();
        input.write_all(b"\n").unwrap();
    }

    #[track_caller]
    fn answer(&self) -> Value {
        serde_json::from_str(&self.lines.recv_timeout(SOON).unwrap()).expect("only messages are printed")
    }

    #[track_caller]
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let id = format!("{method}-id");
        let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.line(message.to_string().as_bytes());
        let answer = self.answer();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    #[track_caller]
    fn refused(&mut self, method: &str, params: &Value, code: i64, names: &str) {
        let answer = self.ask(method, params);
        let message = text(&answer["error"]["message"]);
        assert_eq!(answer["error"]["code"], code, "{method} {params}: {answer}");
        assert!(message.contains(names), "expected {names:?}: {message}");
        assert!(message.chars().count() < 1000, "{message}");
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(wait(&mut self.child).success());
    }
}

#[test]
fn what_is_no_message_costs_nothing_but_an_answer() {
    let home = Home::new();
    let mut editor = Raw::start(&home);
    for garbage in [&b"hello"[..], b"", b"{\"a\":", b"\x00\xff\xfe", &b"[".repeat(100_000)] {
        editor.line(garbage);
    }
    editor.line(&b"x".repeat(17 << 20));
    let answer = editor.answer();
    assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{answer}");
    editor.line(b"[{\"jsonrpc\":\"2.0\"}]");
    assert_eq!(editor.answer()["error"]["code"], -32600);
    editor.line(b"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"initialize\"}");
    assert_eq!(editor.answer()["error"]["code"], -32600);
    // Answers to nothing, and notifications that nobody knows.
    editor.line(b"{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":{}}");
    editor.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":7}}");
    editor.line(b"{\"jsonrpc\":\"2.0\",\"method\":\"_x/y\"}");
    let known = editor.ask("initialize", &json!({"protocolVersion": 7}));
    assert_eq!(known["result"]["protocolVersion"], 1, "the version that is spoken");
    editor.end();
}

#[test]
fn refusals_name_the_field() {
    let home = Home::new();
    let mut editor = Raw::start(&home);
    let work = home.work().display().to_string();
    editor.refused("initialize", &json!({}), -32602, "protocolVersion: expected a number, got nothing");
    editor.refused("initialize", &json!({"protocolVersion": "1"}), -32602, "protocolVersion: ");
    editor.refused("initialize", &Value::Null, -32602, "protocolVersion: ");
    editor.refused("session/explode", &json!({}), -32601, "session/explode");
    editor.refused("session/new", &json!([]), -32602, "cwd: expected a text");
    editor.refused("session/new", &json!({"cwd": "work"}), -32602, "cwd: expected an absolute path");
    editor.refused("session/new", &json!({"cwd": "/no/such/place"}), -32602, "cwd: ");
    editor.refused("session/new", &json!({"cwd": "/".repeat(100_000) + "x"}), -32602, "cwd: ");
    editor.refused(
        "session/new",
        &json!({"cwd": work, "mcpServers": {}}),
        -32602,
        "mcpServers: expected a list",
    );
    editor.refused("session/load", &json!({"cwd": work}), -32602, "sessionId: expected a text");
    editor.refused("session/load", &json!({"cwd": work, "sessionId": "acp_1"}), -32002, "acp_1");
    editor.refused("session/prompt", &json!({"sessionId": "x", "prompt": []}), -32002, "sessionId: ");
    let session =
        editor.ask("session/new", &json!({"cwd": work, "mcpServers": []}))["result"]["sessionId"].clone();
    for (prompt, names) in [
        (json!(null), "prompt: expected a list of blocks, got nothing"),
        (json!([]), "prompt: it is empty"),
        (json!([{"type": "text", "text": 7}]), "prompt[0].text: expected a text, got 7"),
        (json!([{"type": "text", "text": "a"}, {"type": "image"}]), "prompt[1].type: "),
        (json!([{"type": "text", "text": "x".repeat(200_000)}]), "prompt: it has 200000 bytes"),
    ] {
        editor.refused("session/prompt", &json!({"sessionId": session, "prompt": prompt}), -32602, names);
    }
    // Nobody is configured but the mock, which does not count.
    let prompt = json!([{"type": "text", "text": "do it"}]);
    editor.refused(
        "session/prompt",
        &json!({"sessionId": session, "prompt": prompt}),
        -32603,
        "no agent is configured",
    );
    assert_eq!(editor.ask("session/close", &json!({"sessionId": session}))["result"], json!({}));
    editor.refused("session/close", &json!({"sessionId": session}), -32002, "sessionId: ");
    editor.end();
    assert_eq!(home.json(&["task", "ls"])["tasks"], json!([]), "nothing was made");
}

#[test]
fn without_a_data_directory_the_editor_is_told_what_to_type() {
    let home = Home::empty();
    let mut command = home.command(&["acp"]);
    command.env_remove("BATON_DATA_DIR").stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output) = (child.stdin.take(), child.stdout.take().unwrap());
    let (say, lines) = channel();
    std::thread::spawn(move || {
        BufReader::new(output).lines().map_while(Result::ok).try_for_each(|line| say.send(line))
    });
    let mut editor = Raw { child, input, lines };
    let work = home.work().display().to_string();
    editor.refused("session/new", &json!({"cwd": work}), -32602, "baton init");
    // Once there is one, it is found, without a restart.
    let mut init = home.command(&["init"]);
    assert!(init.env_remove("BATON_DATA_DIR").status().unwrap().success());
    let below = home.work().join("src");
    std::fs::create_dir(&below).unwrap();
    assert!(editor.ask("session/new", &json!({"cwd": below}))["result"]["sessionId"].is_string());
    editor.end();
}

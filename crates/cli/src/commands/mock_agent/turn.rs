//! One prompt: its words, in order, say what is done. Without such a word the prompt is said back.

use std::io::Write as _;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::{Value, json};

use super::Session;
use super::part::{self, Said};
use super::wire::Wire;

/// A prompt that is worked on.
pub(super) struct Turn {
    wire: Arc<Wire>,
    name: String,
    session: Session,
    text: String,
    /// Everything that it was told, and the part that it is asked to play.
    whole: String,
    asked: Option<String>,
}

/// How a turn goes on after a word.
enum Then {
    GoOn,
    Stop(&'static str),
    /// Nothing more is said about it.
    Nothing,
    Fail(i64, String, Value),
}

/// The pace of someone who types.
const SLOWLY: Duration = Duration::from_millis(100);

/// A reset that is far enough to be waited for and near enough to be believed.
const LIMIT_SECONDS: u64 = 3600;

/// What it was told, and what its own surroundings add to that for the parts that it plays.
fn told(blocks: &[&str]) -> String {
    format!("{}\n{}", blocks.join("\n"), std::env::var("MOCK_SAYS").unwrap_or_default())
}

impl Turn {
    pub(super) fn new(wire: Arc<Wire>, name: &str, session: Session, params: &Value) -> Self {
        // The first block alone: what Baton adds is in others.
        let text = params["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
        let blocks = params["prompt"].as_array().into_iter().flatten();
        let blocks: Vec<&str> = blocks.filter_map(|block| block["text"].as_str()).collect();
        let asked = blocks.last().and_then(|block| block.lines().next()?.strip_prefix("Asked for: "));
        let asked = asked.map(str::to_owned);
        Turn { wire, name: name.to_owned(), session, text, whole: told(&blocks), asked }
    }

    pub(super) fn run(&self, id: &Value) {
        if let Some(answer) = self.asked.as_deref().and_then(|asked| part::answer(asked, &self.whole)) {
            match answer {
                Said::Text(text) => self.say(&text),
                Said::ByTool(calls) => {
                    for (tool, arguments) in calls {
                        let said = self.call_tool(tool, &arguments);
                        self.say(&format!("{tool}: {said:?}\n"));
                    }
                    self.say("{\"challenges\": []}");
                }
            }
            return self.wire.result(id, &json!({"stopReason": "end_turn", "usage": {"totalTokens": 10}}));
        }
        let words: Vec<&str> = self.text.split_whitespace().collect();
        let mut has_done = false;
        let mut at = 0;
        while at < words.len() {
            let next = |n: usize| words.get(at + n).copied();
            let (is_known, used, then) = self.act(words[at], &next);
            has_done |= is_known;
            at += 1 + used;
            if self.is_canceled() {
                return self.wire.result(id, &json!({"stopReason": "cancelled"}));
            }
            match then {
                Then::GoOn => {}
                Then::Stop(reason) => return self.wire.result(id, &json!({"stopReason": reason})),
                Then::Nothing => return,
                Then::Fail(code, message, data) => return self.wire.error(id, code, &message, &data),
            }
        }
        if !has_done {
            for word in &words {
                self.say(&format!("{word} "));
            }
        }
        let usage =
            json!({"inputTokens": words.len(), "outputTokens": words.len(), "totalTokens": 2 * words.len()});
        self.wire.result(id, &json!({"stopReason": "end_turn", "usage": usage}));
    }

    fn is_canceled(&self) -> bool {
        self.session.is_canceled.load(Ordering::Relaxed)
    }

    /// Does what a word says. Gives whether it says anything, how many words after it belong to it, and how it goes on.
    fn act<'a>(&self, word: &str, next: &dyn Fn(usize) -> Option<&'a str>) -> (bool, usize, Then) {
        let number = |n: usize| next(n).and_then(|word| word.parse::<u32>().ok());
        let (used, then) = match word {
            "echo" => {
                self.text.split_whitespace().for_each(|word| self.say(&format!("{word} ")));
                (usize::MAX / 2, Then::GoOn)
            }
            "tool" => {
                self.tool("read", "read_file", "README.md", None);
                (0, Then::GoOn)
            }
            "write" => {
                self.write_file();
                (0, Then::GoOn)
            }
            "edit" => {
                self.edit(next(1).unwrap_or("mock.txt"));
                (1, Then::GoOn)
            }
            "fswrite" => {
                let path = self.session.cwd.join(next(1).unwrap_or("mock.txt"));
                self.ask_client(
                    "fs/write_text_file",
                    json!({"path": path, "content": "written for the mock\n"}),
                );
                (1, Then::GoOn)
            }
            "declare" => {
                let path = self.session.cwd.join(next(1).unwrap_or("mock.txt"));
                let input = json!({"path": path, "content": "written for the mock\n"});
                let intent =
                    json!({"tool_name": "write_file", "input": input, "justification": "the mock says so"});
                let said = self.call_tool("declare_intent", &intent);
                self.say(&format!("declare_intent: {said:?} "));
                (1, Then::GoOn)
            }
            "fail" => {
                let made = self.ask_client("terminal/create", json!({"command": "sleep", "args": ["1000"]}));
                if let Some(terminal) = made.as_ref().and_then(|made| made["result"].get("terminalId")) {
                    self.ask_client("terminal/kill", json!({"terminalId": terminal}));
                    self.ask_client("terminal/wait_for_exit", json!({"terminalId": terminal}));
                }
                (0, Then::GoOn)
            }
            "term" => {
                let made = self.ask_client("terminal/create", json!({"command": next(1).unwrap_or("true")}));
                if let Some(terminal) = made.as_ref().and_then(|made| made["result"].get("terminalId")) {
                    self.ask_client("terminal/wait_for_exit", json!({"terminalId": terminal}));
                }
                (1, Then::GoOn)
            }
            "shell" => {
                self.shell(next(1).unwrap_or("script.sh"));
                (1, Then::GoOn)
            }
            "plan" => {
                let entry = |content: &str, status: &str| json!({"content": content, "priority": "medium", "status": status});
                let entries = json!([entry("look around", "completed"), entry("do it", "in_progress")]);
                self.update(&json!({"sessionUpdate": "plan", "entries": entries}));
                (0, Then::GoOn)
            }
            "permission" => (0, self.ask_permission()),
            "crash" => {
                let (code, lines) = (number(1).unwrap_or(1), number(2).unwrap_or(2));
                let mut errors = std::io::stderr().lock();
                (1..=lines).for_each(|n| drop(writeln!(errors, "mock: crash line {n} of {lines}")));
                std::process::exit(i32::try_from(code).unwrap_or(1));
            }
            "signal" => {
                let _ =
                    rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
                (0, Then::Nothing)
            }
            "hang" => (0, Then::Nothing),
            "exit-signal" => {
                let phase = next(1).unwrap_or("IMPLEMENTATION");
                let signal = json!({
                    "protocol": "apm2_agent_exit", "version": "1.0.0", "phase_completed": phase,
                    "exit_reason": "completed", "notes": "said by the mock agent",
                });
                self.say(&format!("\n{signal}\n"));
                (1, Then::GoOn)
            }
            "complete" => (1, self.complete(next(1).unwrap_or("done"))),
            "slow" => {
                for n in 1..=20 {
                    if self.is_canceled() {
                        break;
                    }
                    self.say(&format!("slow {n} "));
                    std::thread::sleep(SLOWLY);
                }
                (0, Then::GoOn)
            }
            "flood" => {
                let line = "mock: flood ".repeat(85);
                let mut errors = std::io::stderr().lock();
                (0..8192).for_each(|_| drop(writeln!(errors, "{line}")));
                (0, Then::GoOn)
            }
            "garbage" => {
                self.wire.raw("this is no message\n{\"neither\": is this}\n\u{0}\u{1}\n");
                (0, Then::GoOn)
            }
            "fork" => {
                let mut child = Command::new("sleep");
                // It inherits all three streams, and outlives its parent.
                let _ = child.arg("1000").stdin(Stdio::inherit()).spawn();
                std::process::exit(3);
            }
            "limit" => {
                let at = std::time::SystemTime::now() + Duration::from_secs(LIMIT_SECONDS);
                let at = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default().as_millis();
                let at = baton_core::Timestamp::nearest(i64::try_from(at).unwrap_or(0)).to_string();
                let message = format!("usage limit reached, resets at {at}");
                (0, Then::Fail(-32003, message, json!({"errorKind": "usage_limit", "resetsAt": at})))
            }
            _ => return (false, 0, Then::GoOn),
        };
        (true, used, then)
    }

    fn update(&self, update: &Value) {
        let params = json!({"sessionId": self.name, "update": update});
        self.wire.say(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
    }

    fn say(&self, text: &str) {
        let content = json!({"type": "text", "text": text});
        self.update(&json!({"sessionUpdate": "agent_message_chunk", "content": content}));
    }

    fn tool(&self, kind: &str, name: &str, path: &str, act: Option<&dyn Fn() -> bool>) {
        let id = format!("call-{name}");
        let input = json!({"path": path});
        self.update(&json!({
            "sessionUpdate": "tool_call", "toolCallId": id, "title": name, "kind": kind,
            "status": "pending", "rawInput": input,
        }));
        self.update(&json!({"sessionUpdate": "tool_call_update", "toolCallId": id, "status": "in_progress"}));
        let is_done = act.is_none_or(|act| act());
        let status = if is_done { "completed" } else { "failed" };
        let content =
            json!([{"type": "content", "content": {"type": "text", "text": format!("{name} {path}")}}]);
        self.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content,
        }));
    }

    fn write_file(&self) {
        let path = self.session.cwd.join("mock.txt");
        let shown = path.display().to_string();
        let text = format!("{}\n", self.text);
        self.tool("edit", "write_file", &shown, Some(&|| std::fs::write(&path, &text).is_ok()));
    }

    /// Asks before it writes a file, and writes it where it may.
    fn edit(&self, name: &str) {
        let (id, content) = (format!("call-edit-{name}"), format!("{name}, written by the mock agent\n"));
        let call = json!({
            "toolCallId": id, "title": "write_file", "kind": "edit", "status": "pending",
            "rawInput": {"path": name, "content": content},
        });
        let mut announced = call.clone();
        announced["sessionUpdate"] = "tool_call".into();
        self.update(&announced);
        let options = json!([
            {"optionId": "once", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let params = json!({"sessionId": self.name, "toolCall": call, "options": options});
        let answer = self.wire.ask("session/request_permission", &params);
        let chosen = answer.as_ref().and_then(|answer| answer["result"]["outcome"]["optionId"].as_str());
        let is_done = chosen == Some("once") && std::fs::write(self.session.cwd.join(name), &content).is_ok();
        let status = if is_done { "completed" } else { "failed" };
        let text = format!("{} {name}", if is_done { "wrote" } else { "did not write" });
        let content = json!([{"type": "content", "content": {"type": "text", "text": text}}]);
        self.update(&json!({
            "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status, "content": content,
        }));
    }

    /// Asks the client for something of its own, and says what came of it.
    fn ask_client(&self, method: &str, mut params: Value) -> Option<Value> {
        params["sessionId"] = self.name.as_str().into();
        let answer = self.wire.ask(method, &params);
        let said = answer.as_ref().map_or("cancelled".to_owned(), |answer| match answer.get("error") {
            Some(error) => format!("refused: {error}"),
            None => "done".to_owned(),
        });
        self.say(&format!("{method}: {said} "));
        answer
    }

    /// Runs a script as an agent of its own will does: as a process of its own, which asks nobody.
    fn shell(&self, name: &str) {
        let exe = std::env::current_exe().unwrap_or_default();
        let ran = Command::new("sh").arg(name).current_dir(&self.session.cwd).env("BATON", exe).output();
        let said = ran.map_or_else(
            |error| error.to_string(),
            |ran| String::from_utf8_lossy(&[ran.stdout, ran.stderr].concat()).into_owned(),
        );
        self.say(&format!("{name}: {said} "));
    }

    fn ask_permission(&self) -> Then {
        let call = json!({"toolCallId": "call-permission", "title": "run_command", "kind": "execute", "status": "pending", "rawInput": {"command": "make"}});
        let mut announced = call.clone();
        announced["sessionUpdate"] = "tool_call".into();
        self.update(&announced);
        let options = json!([
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "once", "name": "Once", "kind": "allow_once"},
            {"optionId": "no", "name": "No", "kind": "reject_once"},
        ]);
        let params = json!({"sessionId": self.name, "toolCall": call, "options": options});
        let answer = self.wire.ask("session/request_permission", &params);
        let chosen = answer.as_ref().and_then(|answer| answer["result"]["outcome"]["optionId"].as_str());
        let status = if matches!(chosen, Some("once" | "always")) { "completed" } else { "failed" };
        self.update(
            &json!({"sessionUpdate": "tool_call_update", "toolCallId": "call-permission", "status": status}),
        );
        self.say(&format!("permission: {} ", chosen.unwrap_or("cancelled")));
        if answer.is_none() { Then::Stop("cancelled") } else { Then::GoOn }
    }

    /// Calls a tool of the first server that it was given.
    fn call_tool(&self, tool: &str, arguments: &Value) -> Result<String, String> {
        match self.session.servers.first() {
            None => Err("no tool server was given".to_owned()),
            Some(server) => server.call(tool, arguments),
        }
    }

    /// Reports through the first tool server that it was given, as an agent with that tool would.
    fn complete(&self, outcome: &str) -> Then {
        let report = json!({
            "outcome": outcome, "notes": "reported by the mock agent",
            "summary": "Done by the mock agent.",
            "tests": {"total": 1, "passed": 1, "failed": 0},
        });
        match self.call_tool("report_completion", &report) {
            Ok(answer) => {
                self.say(&format!("reported: {answer} "));
                Then::GoOn
            }
            Err(why) => Then::Fail(-32603, format!("the report was not taken: {why}"), Value::Null),
        }
    }
}

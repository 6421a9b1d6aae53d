//! Agents that come to their end, each in one way and at one moment: a shell script for each of two harnesses, and what must be true after every end.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use baton_core::session::{
    Answer, FailurePolicy, Hook, Rules, RunStatus, SessionEndedData, StateKind, ToolFilter, ToolsBy, View,
};
use baton_runtime::agent::Launch;
use baton_runtime::harness::Harness;
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::harness::exec::{ExecHarness, Profile};
use baton_runtime::session::{Ask, Channel, Deadlines, Item, Next, SESSION_VARIABLE, Spawn, Start};
use baton_runtime::tools::{ToolRunner, ToolSettings};
use serde_json::Value;

use crate::session::{Live, SOON};

/// A session at work has ended this long after the death at most.
pub(crate) const PROMPTLY: Duration = Duration::from_secs(1);

/// In a turn, without a word.
pub(crate) const INACTIVITY: Duration = Duration::from_millis(700);

/// Between the request to end and the end by force.
pub(crate) const GRACE: Duration = Duration::from_secs(2);

/// What both agents do in the end. They say when that is, since it may take a while to get there.
const DIE: &str = r#"
mkfifo go
dies() { date +%s%N > died; }
die() {
  case "$HOW" in
    silent|deaf) ;;
    *) read -r word < go ;;
  esac
  case "$HOW" in
    zero) dies; exit 0 ;;
    three) echo 'first line' >&2; echo 'last line' >&2; dies; exit 3 ;;
    kill) dies; kill -KILL $$ ;;
    segv) dies; kill -SEGV $$ ;;
    closed) dies; exec >&-; exec sleep 1000 ;;
    garbage) printf 'not a message\n{"a":\n\377\376\000\n\n'; dies; exit 3 ;;
    flood) yes "$(printf '%099d' 7)" | head -c 200000000 >&2; dies; exit 3 ;;
    long) head -c 100000000 /dev/zero | tr '\0' x; dies; echo; case "$HARNESS" in acp) exec sleep 1000 ;; *) exit 3 ;; esac ;;
    orphan) sleep 1000 & dies; exit 4 ;;
    stubborn) trap '' TERM; dies; while :; do sleep 1000; done ;;
    silent) dies; exec sleep 1000 ;;
    deaf) trap '' TERM; dies; while :; do sleep 1000; done ;;
  esac
}
"#;

const ACP: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":$1}}"; }
text() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
tool() { update "{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c1\",\"title\":\"write_file\",\"kind\":\"edit\",\"status\":\"pending\"}"; update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}'; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
  case "$line" in
    *'"initialize"'*) [ "$AT" = handshake ] && die; ok '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}' ;;
    *'"session/new"'*) ok '{"sessionId":"s1"}'; [ "$AT" = idle ] && die ;;
    *'"session/prompt"'*)
      case "$AT" in
        turn) text 'at it'; die ;;
        tool) tool; die ;;
        terminal)
          say "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"terminal/create\",\"params\":{\"sessionId\":\"s1\",\"command\":\"sh\",\"args\":[\"-c\",\"sleep 1000 & sleep 1000\"]}}"
          read -r line; printf '%s' "$line" > terminal; tool; die ;;
        hook) tool; update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}'; ok '{"stopReason":"end_turn"}'; die ;;
        permission)
          say '{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c2","title":"bash","kind":"execute"},"options":[{"optionId":"o","name":"O","kind":"allow_once"}]}}'
          die ;;
      esac ;;
  esac
done
"#;

const EXEC: &str = r#"
cat > /dev/null
case "$AT" in
  turn) echo '{"type":"assistant","message":{"content":[{"type":"text","text":"at it"}]}}'; die ;;
  tool) echo '{"type":"assistant","message":{"content":[{"type":"tool_use","id":"c1","name":"Write","input":{}}]}}'; die ;;
esac
"#;

/// A session whose agent will die.
pub(crate) struct Doomed {
    pub(crate) live: Live,
    pub(crate) at: &'static str,
    how: &'static str,
    name: String,
    /// Somebody who waits for an answer meanwhile.
    question: Option<Receiver<Answer>>,
}

impl Doomed {
    /// Starts an agent and brings it to where it will die.
    pub(crate) fn new(harness: &'static str, at: &'static str, how: &'static str) -> Doomed {
        let hook = Hook {
            name: "check".into(),
            command: ["sh", "-c", "sleep 1000 & sleep 1000"].map(str::to_owned).to_vec(),
            timeout_ms: 60_000,
            failure_policy: FailurePolicy::FailSession,
            tool_filter: ToolFilter::AnyMutating,
        };
        let hooks = if at == "hook" { vec![hook] } else { Vec::new() };
        let is_silent = matches!(how, "silent" | "deaf") || (harness, how) == ("exec", "closed");
        let wait = if is_silent { INACTIVITY } else { SOON };
        let deadlines = Deadlines { handshake: wait, inactivity: wait, cancel: SOON };
        let live = Live::open(Rules::new(ToolsBy::Agent, hooks), deadlines, |start| {
            start.harness = harness;
            let words = ["sh", "-c", &format!("{DIE}{}", if harness == "acp" { ACP } else { EXEC })];
            start.spawn = spawn(start, &words, &[("AT", at), ("HOW", how), ("HARNESS", harness)]);
        });
        let name = format!("{harness} {at} {how}");
        let mut doomed = Doomed { live, at, how, name, question: None };
        doomed.advance();
        doomed
    }

    fn advance(&mut self) {
        let live = &self.live;
        if self.at == "handshake" {
            return;
        }
        live.until_state(StateKind::Ready);
        if self.at == "idle" {
            return;
        }
        live.prompt("go on");
        let is_tool = |value: &Value| value["type"] == "tool_lifecycle" && value["status"] == "running";
        match self.at {
            "turn" => drop(live.until("text", |_, value| value["type"] == "text_delta")),
            "tool" | "terminal" => drop(live.until("the tool", |_, value| is_tool(value))),
            "permission" => drop(live.until("it asks", |_, value| value["type"] == "permission_requested")),
            _ => drop(live.until("the hook", |_, value| {
                value["type"] == "hook_lifecycle" && value["status"] == "running"
            })),
        }
        if self.at == "permission" {
            let (answer, answered) = sync_channel(1);
            live.handle.ask(Ask::Question { text: "which one?".into(), answer }).unwrap();
            self.question = Some(answered);
        }
    }

    /// Lets it die, and waits for the end. Gives how long that took from the death, as the agent says.
    pub(crate) fn end(&self) -> (SessionEndedData, View, Duration) {
        let dir = self.live.bench.at("work");
        if !matches!(self.how, "silent" | "deaf") {
            crate::support::wait_for("its door", || dir.join("go").exists());
            let mut go = std::fs::OpenOptions::new().write(true).open(dir.join("go")).unwrap();
            go.write_all(b"go\n").unwrap();
        }
        if self.how == "stubborn" {
            crate::support::wait_for("it is up to no good", || !when(&dir).is_zero());
            self.live.handle.ask(Ask::Stop).unwrap();
        }
        let (data, view) = self.live.end();
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
        let took = now.saturating_sub(when(&dir));
        eprintln!(
            "{:24} {:4} ms  {} by {}  {}",
            self.name,
            took.as_millis(),
            data.reason,
            data.terminated_by,
            said(&data)
        );
        (data, view, took)
    }

    /// What holds after every end, however it came.
    pub(crate) fn check(&self, data: &SessionEndedData, view: &View) {
        let name = &self.name;
        assert_eq!(view.state, StateKind::Stopped, "{name}");
        assert_eq!(view.permissions, [], "{name}");
        let runs = view.tool_runs.iter().map(|run| run.status);
        let open = if self.at == "hook" { RunStatus::Succeeded } else { RunStatus::Canceled };
        let count = usize::from(matches!(self.at, "tool" | "terminal" | "hook" | "permission"));
        assert_eq!(runs.collect::<Vec<_>>(), vec![open; count], "{name}");
        let hooks = view.hook_runs.iter().map(|run| run.status);
        assert_eq!(
            hooks.collect::<Vec<_>>(),
            vec![RunStatus::Canceled; usize::from(self.at == "hook")],
            "{name}"
        );
        if let Some(question) = &self.question {
            assert!(matches!(question.try_recv(), Ok(Answer::Canceled)), "{name}: nobody answered");
        }
        self.check_feed(data);
        let ended = self.live.bench.events("session.ended");
        assert_eq!(ended.len(), 1, "{name}");
        let mut expected = serde_json::to_value(data).unwrap();
        expected.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        assert_eq!(ended[0]["payload"], expected, "{name}");
        let seq = |event: &Value| event["seq"].as_u64().unwrap();
        let before =
            ["turn.ended", "state_changed", "permission_resolved", "tool_lifecycle", "hook_lifecycle"];
        for kind in before {
            assert!(
                self.live.bench.events(kind).iter().all(|event| seq(event) < seq(&ended[0])),
                "{name}: {kind}"
            );
        }
        assert!(self.live.handle.ask(Ask::Stop).is_err(), "{name}: it is over");
        let wanted = format!("{SESSION_VARIABLE}={}", self.live.id());
        let start = std::time::Instant::now();
        while let Some(left) = processes(wanted.as_bytes()).first() {
            assert!(start.elapsed() < PROMPTLY, "{name}: {left} is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// The last word is told once, after the end of the stream, which comes after the answers.
    fn check_feed(&self, data: &SessionEndedData) {
        let name = &self.name;
        let Next::Items(items) = self.live.handle.feed().after(0, Duration::ZERO) else {
            panic!("{name}: no feed")
        };
        let places = |is_it: &dyn Fn(&Item) -> bool| -> Vec<u64> {
            items.iter().filter(|item| is_it(item)).map(|item| item.at).collect()
        };
        let last = places(&|item| item.channel == Channel::Ended);
        assert_eq!(last, [items.last().unwrap().at], "{name}: the end is told once, and last");
        assert_eq!(*items.last().unwrap().value, serde_json::to_value(data).unwrap(), "{name}");
        let errors = places(&|item| item.channel == Channel::Stream && item.value["type"] == "error");
        let is_open = matches!(self.at, "turn" | "tool" | "terminal" | "permission");
        assert_eq!(errors.len(), usize::from(is_open), "{name}: the stream has one end");
        if let [error] = errors[..] {
            let item = items.iter().find(|item| item.at == error).unwrap();
            assert_eq!(item.value["payload"]["code"], "process_exit", "{name}");
            let answers = places(&|item| {
                item.value["type"] == "permission_resolved" || item.value["type"] == "tool_lifecycle"
            });
            assert!(answers.iter().all(|at| *at < error), "{name}: answers come before");
        }
    }
}

/// When the agent said that it dies, since 1970; zero where it did not.
fn when(dir: &Path) -> Duration {
    let text = std::fs::read_to_string(dir.join("died")).unwrap_or_default();
    Duration::from_nanos(text.trim().parse().unwrap_or(0))
}

/// The message, and what was written beside the protocol.
fn said(data: &SessionEndedData) -> String {
    let stderr = data.stderr.as_ref().and_then(|stderr| stderr.total_lines);
    let stderr = stderr.map_or_else(String::new, |lines| format!(" ({lines} lines of errors)"));
    format!("{}{stderr}", data.message.as_deref().unwrap_or("-"))
}

/// Processes that live and have this in their environment.
pub(crate) fn processes(wanted: &[u8]) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").unwrap().map_while(Result::ok);
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let has_it = |pid: &u32| {
        std::fs::read(format!("/proc/{pid}/environ"))
            .is_ok_and(|bytes| bytes.split(|byte| *byte == 0).any(|variable| variable == wanted))
    };
    numbers.filter(has_it).collect()
}

/// Starts words in one of the two harnesses, in the workspace of a session and with its mark.
pub(crate) fn spawn(start: &Start, words: &[&str], env: &[(&str, &str)]) -> Spawn {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let mut all = BTreeMap::from([
        ("PATH".to_owned(), std::env::var("PATH").unwrap()),
        (SESSION_VARIABLE.to_owned(), start.id.to_string()),
    ]);
    all.extend(env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())));
    let dir = start.workspace.clone();
    let mut tools = ToolSettings::new(&dir, start.dir.join("tmp"));
    tools.marks = BTreeMap::from([(SESSION_VARIABLE.to_owned(), start.id.to_string())]);
    let launch = move || Launch {
        words: words.clone(),
        dir: dir.clone(),
        env: all.clone(),
        stderr_lines: 50,
        stderr_copy: None,
        grace: GRACE,
    };
    match start.harness {
        "acp" => Box::new(move |tell| {
            let tools = Some(Arc::new(ToolRunner::new(tools, None)?));
            let launch = launch();
            let setup = Setup { cwd: launch.dir.clone(), terminal: true, tools, ..Setup::default() };
            Ok(Box::new(AcpHarness::start(launch, setup, tell)?) as Box<dyn Harness>)
        }),
        _ => Box::new(move |tell| {
            let prepare = Box::new(move || Ok(launch()));
            Ok(Box::new(ExecHarness::start(prepare, Profile::Claude, tell)?) as Box<dyn Harness>)
        }),
    }
}

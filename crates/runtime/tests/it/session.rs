//! Sessions with real processes that speak ACP: a small shell script, so that what it does is in plain sight.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use baton_core::session::{
    Answer, Cause, EndReason, FailurePolicy, Hook, Rules, SessionEndedData, StateKind, TerminatedBy,
    ToolFilter, ToolsBy, View,
};
use baton_core::{SessionId, Uuid7};
use baton_runtime::agent::Launch;
use baton_runtime::clock::{Clock as _, SystemClock};
use baton_runtime::harness::Harness;
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::session::{
    Actor, Ask, Channel, Deadlines, Handle, Recorder, Snapshot, Spawn, Start, Transcript, path_in,
};
use serde_json::Value;

use crate::live;
use crate::support::Bench;

pub(crate) const SOON: Duration = Duration::from_secs(30);

/// An agent that answers by the words of its prompt.
const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":$1}}"; }
text() { update "{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  ok() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
  case "$line" in
    *'"initialize"'*) ok '{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"sh","version":"1"},"authMethods":[]}' ;;
    *'"session/new"'*) [ -e refuse ] && exit 0; ok '{"sessionId":"s1"}' ;;
    *'"session/prompt"'*)
      case "$line" in
        *crash*) echo "first line" >&2; echo "last line" >&2; exit 3 ;;
        *signal*) kill -SEGV $$ ;;
        *zero*) exit 0 ;;
        *hang*) ;;
        *fork*) sleep 1000 & exit 4 ;;
        *close*) exec >&-; sleep 1000 ;;
        *garbage*) say 'not a message'; text fine; ok '{"stopReason":"enlightened"}' ;;
        *tool*)
          update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"write_file","kind":"edit","status":"pending"}'
          update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"in_progress"}'
          case "$line" in *dies*) exit 5 ;; esac
          update '{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}'
          ok '{"stopReason":"end_turn"}' ;;
        *permission*)
          prompt=$id
          say '{"jsonrpc":"2.0","id":77,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c2","title":"bash","kind":"execute"},"options":[{"optionId":"a","name":"A","kind":"allow_always"},{"optionId":"o","name":"O","kind":"allow_once"},{"optionId":"n","name":"N","kind":"reject_once"}]}}'
          read -r answer
          case "$answer" in *'"optionId":"o"'*) text allowed ;; *'"optionId":"n"'*) text denied ;; *) text canceled ;; esac
          id=$prompt; ok '{"stopReason":"end_turn"}' ;;
        *) text 'hello '; text there; ok '{"stopReason":"end_turn"}' ;;
      esac ;;
  esac
done
"#;

/// A session at work, and how it ended.
pub(crate) struct Live {
    pub(crate) bench: Bench,
    pub(crate) handle: Handle,
    ended: Receiver<(SessionEndedData, View)>,
    dir: std::path::PathBuf,
    seen: std::cell::Cell<u64>,
}

impl Live {
    fn with(hooks: Vec<Hook>, deadlines: Deadlines, words: &[&str]) -> Live {
        let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
        Live::open(Rules::new(ToolsBy::Agent, hooks), deadlines, |start| {
            start.spawn = acp(words, Setup { cwd: start.workspace.clone(), ..Setup::default() });
        })
    }

    /// Starts a session, once `prepare` has given it an agent.
    pub(crate) fn open(rules: Rules, deadlines: Deadlines, prepare: impl FnOnce(&mut Start)) -> Live {
        let bench = Bench::new();
        let clock = Arc::new(SystemClock);
        let moment = clock.moment();
        let id = SessionId::new(Uuid7::from_parts(moment.now, moment.seed));
        let ground = bench.engine.ground().clone();
        let (journal, key) = (ground.journal.clone(), ground.ledger_key.clone());
        let dir = bench.at(&format!("sessions/{id}"));
        std::fs::create_dir_all(&dir).unwrap();
        let workspace = bench.at("work");
        std::fs::create_dir_all(&workspace).unwrap();
        let recorder = Recorder::open(journal, key, id, None, moment).unwrap();
        let mut start = Start {
            gate: None,
            id,
            agent: "sh".into(),
            harness: "acp",
            rules,
            transcript: Transcript::open(&dir).unwrap(),
            snapshot: snapshot(id, &recorder, &workspace),
            recorder,
            dir: dir.clone(),
            boot: "boot".into(),
            workspace,
            deadlines,
            clock,
            tools: None,
            asks_before_tools: false,
            faults: Vec::new(),
            spawn: Box::new(|_| Err(std::io::ErrorKind::Unsupported.into())),
            signals: None,
        };
        prepare(&mut start);
        let (say, ended) = channel();
        let tell = move |data: &SessionEndedData, view: &View| drop(say.send((data.clone(), view.clone())));
        let handle = Actor::start(start, tell).unwrap();
        Live { bench, handle, ended, dir, seen: std::cell::Cell::new(0) }
    }

    pub(crate) fn new() -> Live {
        Live::hooked(Vec::new())
    }

    pub(crate) fn hooked(hooks: Vec<Hook>) -> Live {
        Live::with(hooks, patient(), &["sh", "-c", AGENT])
    }

    pub(crate) fn id(&self) -> String {
        self.handle.id().to_string()
    }

    /// Waits for the next item of the feed that this is true of.
    #[track_caller]
    pub(crate) fn until(&self, what: &str, is_it: impl Fn(Channel, &Value) -> bool) -> Value {
        live::until(&self.handle, &self.seen, what, is_it)
    }

    #[track_caller]
    pub(crate) fn until_state(&self, state: StateKind) {
        self.until(state.as_str(), |_, value| {
            value["type"] == "state_changed" && value["to"] == state.as_str()
        });
    }

    #[track_caller]
    pub(crate) fn prompt(&self, text: &str) {
        self.handle.ask(Ask::Send(text.into())).unwrap();
    }

    #[track_caller]
    pub(crate) fn end(&self) -> (SessionEndedData, View) {
        self.ended.recv_timeout(SOON).unwrap()
    }

    pub(crate) fn transcript(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(path_in(&self.dir)).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

/// An agent that speaks ACP.
pub(crate) fn acp(words: Vec<String>, setup: Setup) -> Spawn {
    let launch = Launch {
        words,
        dir: setup.cwd.clone(),
        env: BTreeMap::from([("PATH".to_owned(), std::env::var("PATH").unwrap())]),
        stderr_lines: 50,
        stderr_copy: None,
        grace: Duration::from_secs(2),
    };
    Box::new(move |tell| {
        AcpHarness::start(launch, setup, tell).map(|harness| Box::new(harness) as Box<dyn Harness>)
    })
}

/// What is kept of a session that begins.
pub(crate) fn snapshot(id: SessionId, recorder: &Recorder, workspace: &std::path::Path) -> Snapshot {
    let agent = "someone".parse().unwrap();
    Snapshot::new(id, agent, "acp", recorder.trace(), workspace.to_owned(), SystemClock.now())
}

pub(crate) fn patient() -> Deadlines {
    Deadlines { handshake: SOON, inactivity: SOON, cancel: SOON }
}

#[test]
fn a_turn_streams_its_text_and_the_end_is_recorded() {
    let live = Live::new();
    live.until_state(StateKind::Ready);
    live.prompt("good morning");
    let first =
        live.until("text", |channel, value| channel == Channel::Stream && value["type"] == "text_delta");
    assert_eq!((first["seq"].as_u64(), first["payload"]["text"].as_str()), (Some(1), Some("hello ")));
    let last = live.until("the end", |_, value| value["type"] == "completed");
    assert_eq!((last["seq"].as_u64(), &last["payload"]["reason"]), (Some(3), &"end_turn".into()));
    live.until_state(StateKind::Ready);
    live.handle.ask(Ask::Stop).unwrap();
    let (data, view) = live.end();
    assert_eq!((data.reason, data.terminated_by), (EndReason::Terminated, TerminatedBy::Daemon));
    assert_eq!(view.state, StateKind::Stopped);
    let said: Vec<String> =
        live.transcript().iter().map(|piece| piece["text"].as_str().unwrap_or("").to_owned()).collect();
    assert_eq!(said, ["good morning", "hello there"]);
    assert_eq!(live.bench.events("session.ended").len(), 1);
    assert!(live.handle.ask(Ask::Stop).is_err(), "it is over");
}

#[test]
fn every_death_is_told_with_its_reason_within_a_second() {
    for (word, code, signal, open) in [
        ("crash", Some(3), None, "in a turn"),
        ("zero", Some(0), None, "in a turn"),
        ("signal", None, Some(11), "in a turn"),
        ("fork", Some(4), None, "in a turn"),
        ("tool dies", Some(5), None, "while a tool ran"),
    ] {
        let live = Live::new();
        live.until_state(StateKind::Ready);
        let began = Instant::now();
        live.prompt(word);
        let (data, view) = live.end();
        assert!(began.elapsed() < Duration::from_secs(2), "{word}: {:?}", began.elapsed());
        assert_eq!((data.reason, data.terminated_by), (EndReason::Error, TerminatedBy::Agent), "{word}");
        assert_eq!(
            (data.exit_code, data.signal.as_ref().map(|signal| signal.number)),
            (code, signal),
            "{word}"
        );
        assert!(data.message.as_ref().unwrap().ends_with(open), "{word}: {data:?}");
        assert!(view.tool_runs.iter().all(|run| run.status.is_terminal()), "{word}");
        if word == "crash" {
            assert_eq!(data.stderr.unwrap().head.as_deref(), Some("first line\nlast line"));
        }
    }
}

#[test]
fn what_is_no_message_and_what_is_unknown_cost_no_turn() {
    let live = Live::new();
    live.until_state(StateKind::Ready);
    live.prompt("garbage");
    live.until("text", |_, value| value["payload"]["text"] == "fine");
    live.until_state(StateKind::Ready);
    let unknown = live.transcript().iter().filter(|piece| piece["kind"] == "unknown").count();
    assert_eq!(unknown, 2);
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn a_permission_is_chosen_by_its_kind() {
    for (answer, said) in [(Answer::Allow, "allowed"), (Answer::Deny, "denied")] {
        let live = Live::new();
        live.until_state(StateKind::Ready);
        live.prompt("permission");
        let asked = live.until("a question", |_, value| value["type"] == "permission_requested");
        let id = asked["id"].as_str().unwrap().to_owned();
        let again = Ask::Permit { id: id.clone(), answer: Answer::Deny, by: "operator".into() };
        live.handle.ask(Ask::Permit { id, answer, by: "operator".into() }).unwrap();
        live.until("what it says", |_, value| value["payload"]["text"] == said);
        assert!(live.handle.ask(again).is_err(), "the first answer counts");
        live.until_state(StateKind::Ready);
        live.handle.ask(Ask::Stop).unwrap();
        live.end();
    }
}

#[test]
fn a_hook_runs_after_a_mutating_tool_and_is_told_of_it() {
    let script = "cat > told.json; echo done";
    let hook = Hook {
        name: "check".into(),
        command: vec!["sh".into(), "-c".into(), script.into()],
        timeout_ms: 30_000,
        failure_policy: FailurePolicy::FailSession,
        tool_filter: ToolFilter::AnyMutating,
    };
    let live = Live::with(vec![hook], patient(), &["sh", "-c", AGENT]);
    live.until_state(StateKind::Ready);
    live.prompt("tool");
    live.until_state(StateKind::PostToolsHook);
    let ran = live
        .until("the hook", |_, value| value["type"] == "hook_lifecycle" && value["status"] == "succeeded");
    assert_eq!(ran["output"], "done\n");
    live.until_state(StateKind::Ready);
    let told: Value =
        serde_json::from_str(&std::fs::read_to_string(live.bench.at("work/told.json")).unwrap()).unwrap();
    assert_eq!(told["toolRuns"][0]["toolName"], "write_file");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn silence_is_not_waited_for_for_ever() {
    let short = Deadlines { inactivity: Duration::from_millis(300), ..patient() };
    for word in ["hang", "close"] {
        let live = Live::with(Vec::new(), short, &["sh", "-c", AGENT]);
        live.until_state(StateKind::Ready);
        live.prompt(word);
        let (data, _) = live.end();
        let cause = if word == "hang" { Cause::Timeout } else { Cause::Protocol };
        assert_eq!((data.reason, data.cause), (EndReason::Error, Some(cause)), "{word}: {data:?}");
    }
    let short = Deadlines { handshake: Duration::from_millis(300), ..patient() };
    let live = Live::with(Vec::new(), short, &["sleep", "1000"]);
    let (data, _) = live.end();
    assert_eq!(data.cause, Some(Cause::Timeout));
    assert!(data.message.unwrap().contains("the handshake"));
}

#[test]
fn what_cannot_be_started_ends_with_the_reason() {
    let live = Live::with(Vec::new(), patient(), &["no-such-agent"]);
    let (data, view) = live.end();
    assert_eq!(
        (data.reason, data.terminated_by, data.cause),
        (EndReason::Error, TerminatedBy::Daemon, Some(Cause::Spawn))
    );
    assert!(data.message.unwrap().contains("no-such-agent: not found"));
    assert_eq!(view.state, StateKind::Stopped);
    let live = Live::with(Vec::new(), patient(), &["sh", "-c", "echo nope >&2; exit 9"]);
    let (data, _) = live.end();
    assert_eq!((data.exit_code, data.terminated_by), (Some(9), TerminatedBy::Agent));
    assert!(data.message.unwrap().contains("before it took any input"));
}

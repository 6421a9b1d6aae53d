//! Agents that speak ACP in ways that few do: they go on without their past, ask for far too much, do not listen, refuse.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::session::{Cause, EndReason, Rules, StateKind, ToolsBy};
use baton_runtime::harness::acp::Setup;
use baton_runtime::session::{Ask, Deadlines};
use baton_runtime::tools::{ToolRunner, ToolSettings};

use crate::session::{Live, acp, patient};

/// An agent that answers by the words of its prompt, and writes down what it is asked.
const AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
text() { say "{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"$1\"}}}}"; }
asks() { say "{\"jsonrpc\":\"2.0\",\"id\":$1,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"s1\",\"toolCall\":{\"toolCallId\":\"c$1\",\"title\":\"bash\",\"kind\":\"execute\"},\"options\":[{\"optionId\":\"o\",\"name\":\"O\",\"kind\":\"allow_once\"}]}}"; }
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  printf '%s\n' "$line" | grep -o '"method":"[^"]*"' >> asked
  ok() { say "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$1}"; }
  case "$line" in
    *'"initialize"'*) ok "{\"protocolVersion\":1,\"agentCapabilities\":{\"sessionCapabilities\":{\"resume\":{}}},\"authMethods\":[]}" ;;
    *'"session/new"'*) ok '{"sessionId":"s1"}' ;;
    *'"session/resume"'*) ok '{}' ;;
    *'"session/cancel"'*) printf '%s\n' "$answer" > answered; id=$prompt; ok '{"stopReason":"cancelled"}' ;;
    *'"session/prompt"'*)
      case "$line" in
        *refuse*) text 'I will not'; ok '{"stopReason":"refusal"}' ;;
        *many*)
          n=0; while [ $n -lt 1000 ]; do say "{\"jsonrpc\":\"2.0\",\"id\":$n,\"method\":\"_no/such\"}"; n=$((n+1)); done
          prompt=$id; n=0; while [ $n -lt 1000 ]; do read -r answer; n=$((n+1)); done
          id=$prompt; text 'all were answered'; ok '{"stopReason":"end_turn"}' ;;
        *twice*)
          prompt=$id; asks 7; asks 7; read -r answer; text "$(printf '%s' "$answer" | tr -d '"')"
          read -r answer; id=$prompt; ok '{"stopReason":"end_turn"}' ;;
        *ask*) prompt=$id; asks 7; read -r answer ;;
        *deaf*) exec 0<&-; text 'no more'; sleep 1000 ;;
        *) text hello; ok '{"stopReason":"end_turn","usage":null}' ;;
      esac ;;
  esac
done
"#;

fn start(load: Option<&str>) -> Live {
    let load = load.map(str::to_owned);
    Live::open(Rules::new(ToolsBy::Agent, Vec::new()), patient(), |start| {
        let words = ["sh", "-c", AGENT].map(str::to_owned).to_vec();
        start.spawn = acp(words, Setup { cwd: start.workspace.clone(), load, ..Setup::default() });
    })
}

fn asked(live: &Live) -> String {
    std::fs::read_to_string(live.bench.at("work/asked")).unwrap()
}

#[test]
fn a_conversation_is_gone_on_with_without_its_past_where_the_agent_can() {
    let live = start(Some("s1"));
    live.until_state(StateKind::Ready);
    assert!(asked(&live).ends_with("\"session/resume\"\n"), "{}", asked(&live));
    assert!(live.bench.events("session.ready")[0]["payload"]["canLoad"].as_bool().unwrap());
    live.prompt("go on");
    live.until("text", |_, value| value["payload"]["text"] == "hello");
    live.until_state(StateKind::Ready);
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn whoever_chats_instead_of_shaking_hands_is_not_waited_for() {
    let script = r#"while :; do echo '{"jsonrpc":"2.0","method":"_auth/status_update","params":{}}'; sleep 0.02; done"#;
    let handshake = Duration::from_millis(300);
    let live =
        Live::open(Rules::new(ToolsBy::Agent, Vec::new()), Deadlines { handshake, ..patient() }, |start| {
            let words = ["sh", "-c", script].map(str::to_owned).to_vec();
            start.spawn = acp(words, Setup { cwd: start.workspace.clone(), ..Setup::default() });
        });
    let (data, _) = live.end();
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Timeout)), "{data:?}");
}

#[test]
fn one_that_reads_nothing_of_what_it_asks_for_is_not_heard_and_ends_by_its_silence() {
    // Answers of a megabyte each, as often as it likes.
    let script = r#"
answer() { read -r line; id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p'); printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
answer '{"protocolVersion":1,"agentCapabilities":{},"authMethods":[]}'
answer '{"sessionId":"s1"}'
read -r line
head -c 1000000 /dev/zero | tr '\0' x > big
n=0; while [ $n -lt 60 ]; do printf '{"jsonrpc":"2.0","id":%s,"method":"fs/read_text_file","params":{"sessionId":"s1","path":"%s/big"}}\n' $n "$PWD"; n=$((n+1)); done
exec sleep 1000
"#;
    let deadlines = Deadlines { inactivity: Duration::from_secs(1), ..patient() };
    let live = Live::open(Rules::new(ToolsBy::Agent, Vec::new()), deadlines, |start| {
        let tools =
            ToolRunner::new(ToolSettings::new(&start.workspace, start.dir.join("tmp")), None).unwrap();
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        let (cwd, tools) = (start.workspace.clone(), Some(Arc::new(tools)));
        start.spawn = acp(words, Setup { cwd, fs: true, tools, ..Setup::default() });
    });
    live.until_state(StateKind::Ready);
    live.prompt("go");
    let (data, _) = live.end();
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Timeout)), "{data:?}");
}

#[test]
fn a_thousand_requests_are_answered_and_cost_no_turn() {
    let live = start(None);
    live.until_state(StateKind::Ready);
    live.prompt("many");
    live.until("text", |_, value| value["payload"]["text"] == "all were answered");
    live.until_state(StateKind::Ready);
    let unknown = live.transcript().iter().filter(|piece| piece["kind"] == "unknown").count();
    assert_eq!(unknown, 0, "requests are no noise");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn a_question_under_a_name_that_is_in_use_is_refused() {
    let live = start(None);
    live.until_state(StateKind::Ready);
    live.prompt("twice");
    let said = live.until("the refusal", |_, value| value["type"] == "text_delta");
    assert!(said["payload"]["text"].as_str().unwrap().contains("not in use, got 7"), "{said}");
    assert_eq!(live.handle.view().permissions.len(), 1, "the first one waits");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn a_turn_that_is_cancelled_waits_for_no_answer() {
    let live = start(None);
    live.until_state(StateKind::Ready);
    live.prompt("ask");
    live.until("it asks", |_, value| value["type"] == "permission_requested");
    live.handle.ask(Ask::Cancel).unwrap();
    let answered = live.until("the answer", |_, value| value["type"] == "permission_resolved");
    assert_eq!(answered["answer"], "canceled");
    let end = live.until("the end of the turn", |_, value| value["type"] == "completed");
    assert_eq!(end["payload"]["reason"], "cancelled");
    live.until_state(StateKind::Ready);
    assert_eq!(live.handle.stop_reason(), "cancelled");
    let got = std::fs::read_to_string(live.bench.at("work/answered")).unwrap();
    assert!(got.contains(r#""outcome":{"outcome":"cancelled"}"#), "{got}");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

#[test]
fn one_that_does_not_listen_any_more_is_ended_for_that() {
    let live = start(None);
    live.until_state(StateKind::Ready);
    live.prompt("deaf");
    live.until("text", |_, value| value["payload"]["text"] == "no more");
    // Whatever is written next shows it; an answer would do as well.
    let began = Instant::now();
    live.handle.ask(Ask::Cancel).unwrap();
    let (data, _) = live.end();
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Protocol)));
    assert!(data.message.unwrap().starts_with("the agent closed its input"));
}

#[test]
fn a_refusal_ends_the_turn_and_is_known_as_one() {
    let live = start(None);
    live.until_state(StateKind::Ready);
    live.prompt("refuse");
    let end = live.until("the end of the turn", |_, value| value["type"] == "completed");
    assert_eq!(end["payload"]["reason"], "refusal");
    live.until_state(StateKind::Ready);
    assert_eq!(live.handle.stop_reason(), "refusal");
    live.handle.ask(Ask::Stop).unwrap();
    live.end();
}

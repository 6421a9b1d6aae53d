//! Models over HTTP, against the fake one of the test kit.

use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use baton_core::session::{Cause, EndReason, StateKind, ToolCall, ToolsBy};
use baton_runtime::harness::llm::{Api, Key, LlmHarness, LlmSetup, ToolDefinition};
use baton_runtime::harness::{Failure, Harness, Told, ToolOutput};
use baton_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use crate::live::{Kind, Live, SOON};

const BOTH: [Api; 2] = [Api::OpenAi, Api::Anthropic];
const KEY: &str = "sk-hunter2-hunter2";

fn setup(api: Api, base_url: String) -> LlmSetup {
    let schema =
        json!({"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]});
    let tool = ToolDefinition { name: "bash".into(), description: "Runs a command.".into(), schema };
    LlmSetup {
        api,
        base_url,
        model: "fake-model".into(),
        key: Some(Key::new(KEY)),
        system: Some("Be brief.".into()),
        tools: vec![tool],
        max_tokens: None,
        timeout: SOON,
    }
}

/// A harness by itself, with what it tells.
struct Talk {
    harness: LlmHarness,
    told: Receiver<Told>,
}

/// A turn as it was told.
#[derive(Debug, Default)]
struct Heard {
    text: String,
    thought: String,
    calls: Vec<ToolCall>,
    usage: Option<Value>,
    status: String,
    end: Option<Result<String, Failure>>,
}

impl Talk {
    fn with(setup: LlmSetup) -> Talk {
        let (say, told) = channel();
        let harness = LlmHarness::start(setup, move |it| drop(say.send(it))).unwrap();
        let talk = Talk { harness, told };
        assert!(matches!(talk.next(), Told::Ready(_)));
        talk
    }

    fn new(api: Api, server: &ModelServer) -> Talk {
        Talk::with(setup(api, server.base_url()))
    }

    #[track_caller]
    fn next(&self) -> Told {
        self.told.recv_timeout(SOON).unwrap()
    }

    #[track_caller]
    fn prompt(&mut self, text: &str) -> Heard {
        self.harness.prompt(&[text.to_owned()]).unwrap();
        self.hear()
    }

    #[track_caller]
    fn hear(&self) -> Heard {
        let mut heard = Heard::default();
        while heard.end.is_none() {
            match self.next() {
                Told::Text { text, is_thought: false } => heard.text.push_str(&text),
                Told::Text { text, .. } => heard.thought.push_str(&text),
                Told::Calls(call) => heard.calls.push(call),
                Told::Usage(usage) => heard.usage = Some(usage),
                Told::Status(text) => heard.status.push_str(&text),
                Told::TurnEnded { stop, .. } => heard.end = Some(Ok(stop)),
                Told::TurnFailed(failure) => heard.end = Some(Err(failure)),
                other => panic!("{other:?}"),
            }
        }
        heard
    }

    #[track_caller]
    fn failure(&mut self, text: &str) -> Failure {
        self.prompt(text).end.unwrap().unwrap_err()
    }
}

fn session(server: &ModelServer, inactivity: Duration, change: impl FnOnce(&mut LlmSetup)) -> Live {
    let mut setup = setup(Api::OpenAi, server.base_url());
    change(&mut setup);
    let kind = Kind { harness: "llm", tools_by: ToolsBy::Baton, inactivity };
    let live = Live::start(&kind, move |_, tell| {
        LlmHarness::start(setup, tell).map(|harness| Box::new(harness) as Box<dyn Harness>)
    });
    live.until_state(StateKind::Ready);
    live
}

#[test]
fn a_turn_streams_in_both_forms_and_the_conversation_goes_along() {
    let server = ModelServer::start().unwrap();
    for api in BOTH {
        let mut talk = Talk::new(api, &server);
        let heard = talk.prompt("say good morning to you");
        assert_eq!(heard.text, "good morning to you", "{api:?}");
        assert_eq!(heard.end.unwrap().unwrap(), "end_turn");
        assert!(heard.usage.unwrap().to_string().contains("11"), "{api:?}");
        let heard = talk.prompt("think hard about it");
        assert_eq!((heard.thought.as_str(), heard.text.as_str()), ("hard about it", "thought"), "{api:?}");
        let last = server.seen().pop().unwrap();
        let said = last.body["messages"].to_string();
        assert!(said.contains("good morning to you") && said.contains("think hard"), "{said}");
        let key = match api {
            Api::OpenAi => last.headers["authorization"].strip_prefix("Bearer ").unwrap(),
            Api::Anthropic => &last.headers["x-api-key"],
        };
        assert_eq!(key, KEY);
        assert!(last.body.to_string().contains("Be brief."));
    }
}

#[test]
fn tools_go_round() {
    let server = ModelServer::start().unwrap();
    for api in BOTH {
        let mut talk = Talk::new(api, &server);
        let heard = talk.prompt("run ls -l");
        assert_eq!(heard.end.unwrap().unwrap(), "tool_calls", "{api:?}");
        let [call] = &heard.calls[..] else { panic!("{heard:?}", heard = heard.calls) };
        assert_eq!((call.name.as_str(), &call.arguments), ("bash", &json!({"command": "ls -l"})));
        assert!(call.mutating);
        let output = |call: &ToolCall, text: &str| ToolOutput {
            call_id: call.call_id.clone(),
            name: call.name.clone(),
            output: text.into(),
            is_error: false,
        };
        talk.harness.outputs(&[output(call, "a.txt b.txt")]).unwrap();
        let heard = talk.hear();
        assert_eq!(heard.text, "result: a.txt b.txt", "{api:?}");
        // Arguments that are no JSON: a call all the same, and the model learns why it was not run.
        let heard = talk.prompt("call bash {\"command\": oh");
        let [call] = &heard.calls[..] else { panic!("{:?}", heard.calls) };
        assert_eq!(call.arguments, Value::String("{\"command\": oh".into()), "{api:?}");
        talk.harness.outputs(&[output(call, "not run")]).unwrap();
        let heard = talk.hear();
        assert!(heard.text.contains("its arguments are no JSON"), "{api:?}: {}", heard.text);
        // A turn that was left in the middle has no gap in what is sent.
        talk.prompt("run pwd");
        let heard = talk.prompt("say go on");
        assert_eq!(heard.text, "go on", "{api:?}");
        let last = server.seen().pop().unwrap().body["messages"].to_string();
        assert!(last.contains("error: the tool was not run"), "{last}");
    }
}

#[test]
fn a_session_tries_again_what_may_pass() {
    let server = ModelServer::start().unwrap();
    let live = session(&server, SOON, |_| {});
    for (prompt, attempts) in [("fail-500 2", 3), ("fail-529 1", 2), ("reset 1", 2), ("cut 2", 3)] {
        let before = server.seen().len();
        live.prompt(prompt);
        live.until("what it says in the end", |_, value| value["payload"]["text"] == "recovered");
        live.until_state(StateKind::Ready);
        assert_eq!(server.seen().len() - before, attempts, "{prompt}");
        let last = server.seen().pop().unwrap().body["messages"].to_string();
        assert_eq!(last.matches(prompt).count(), 1, "what is sent again is not said again: {last}");
    }
    // Beyond the budget the session is ready for something else, and nothing is lost.
    live.prompt("fail-503 9");
    live.until("the end of it", |_, value| value["reason"] == "retries_exhausted");
    assert_eq!(live.turn("say still here"), "still here");
    live.stop();
}

#[test]
fn a_busy_server_is_waited_for_and_a_limit_is_told() {
    let server = ModelServer::start().unwrap();
    for api in BOTH {
        let mut talk = Talk::new(api, &server);
        let start = Instant::now();
        // Each prompt fails once, so each has a number of its own.
        let (short, long) = if api == Api::OpenAi { (1, 3600) } else { (2, 7200) };
        let heard = talk.prompt(&format!("limit-429 {short}"));
        assert_eq!(heard.text, "recovered", "{api:?}");
        assert!(heard.status.contains("busy and is asked again in"), "{}", heard.status);
        assert!(start.elapsed() >= Duration::from_secs(1));
        let failure = talk.failure(&format!("limit-429 {long}"));
        assert_eq!((failure.cause, failure.retryable), (Some(Cause::Quota), false), "{failure:?}");
        assert!(failure.resets_at.is_some());
    }
}

#[test]
fn failures_have_their_kind() {
    let server = ModelServer::start().unwrap();
    for api in BOTH {
        let mut talk = Talk::new(api, &server);
        let failure = talk.failure("refuse-401");
        assert_eq!((failure.cause, failure.retryable), (Some(Cause::Auth), false));
        assert!(failure.message.contains("status 401 on purpose"), "{}", failure.message);
        let failure = talk.failure("fail-400 99");
        assert_eq!((failure.cause, failure.retryable), (None, false));
        for prompt in ["fail-500 99", "fail-529 99", "reset 99", "cut 99"] {
            assert!(talk.failure(prompt).retryable, "{api:?} {prompt}");
        }
        // What the server will never take is not said again; what was refused for another reason is.
        let heard = talk.prompt("say done");
        assert_eq!(heard.text, "done");
        let last = server.seen().pop().unwrap().body["messages"].to_string();
        assert!(!last.contains("fail-400") && last.contains("fail-500"), "{last}");
    }
    // Nobody listens there any more.
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut talk = Talk::with(setup(Api::OpenAi, format!("http://{gone}/v1")));
    let failure = talk.failure("say hello");
    assert!(failure.retryable && failure.message.contains("connection refused"), "{failure:?}");
}

#[test]
fn silence_is_answered_within_a_second_of_its_deadline() {
    let server = ModelServer::start().unwrap();
    let timeout = Duration::from_millis(700);
    let mut talk = Talk::with(LlmSetup { timeout, ..setup(Api::OpenAi, server.base_url()) });
    let start = Instant::now();
    let failure = talk.failure("hang");
    assert_eq!((failure.cause, failure.retryable), (Some(Cause::Timeout), true), "{failure:?}");
    assert!((timeout..timeout + Duration::from_secs(1)).contains(&start.elapsed()), "{:?}", start.elapsed());
    // The session's own deadline ends the session.
    let live = session(&server, timeout, |_| {});
    live.prompt("hang");
    let start = Instant::now();
    let (data, _) = live.end();
    assert!(start.elapsed() < timeout + Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Timeout)));
}

#[test]
fn a_turn_can_be_given_up_at_any_moment() {
    let server = ModelServer::start().unwrap();
    for api in BOTH {
        for prompt in ["slow", "hang", if api == Api::OpenAi { "limit-429 20" } else { "limit-429 21" }] {
            let mut talk = Talk::new(api, &server);
            let before = server.seen().len();
            talk.harness.prompt(&[prompt.to_owned()]).unwrap();
            if prompt == "slow" {
                assert!(matches!(talk.next(), Told::Text { .. }));
            } else {
                crate::support::wait_for("the request", || server.seen().len() > before);
            }
            assert!(talk.harness.prompt(&["more".to_owned()]).is_err(), "one request at a time");
            let start = Instant::now();
            talk.harness.cancel();
            let heard = talk.hear();
            assert_eq!(heard.end.unwrap().unwrap(), "cancelled", "{api:?} {prompt}");
            assert!(start.elapsed() < Duration::from_secs(1), "{prompt}: {:?}", start.elapsed());
            let heard = talk.prompt("say and now this");
            assert_eq!(heard.text, "and now this", "{api:?} {prompt}");
            talk.harness.stop();
            assert!(matches!(talk.next(), Told::Exited(exit) if exit.is_asked));
            assert!(talk.told.recv_timeout(Duration::from_millis(50)).is_err(), "nothing follows");
        }
    }
}

#[test]
fn a_session_stops_in_the_middle_of_an_answer() {
    let server = ModelServer::start().unwrap();
    let live = session(&server, SOON, |_| {});
    live.prompt("slow");
    live.until("text", |_, value| value["type"] == "text_delta");
    let start = Instant::now();
    let (data, view) = live.stop();
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_eq!((data.reason, view.state), (EndReason::Terminated, StateKind::Stopped));
}

#[test]
fn the_key_is_nowhere_to_be_seen() {
    let server = ModelServer::start().unwrap();
    let live = session(&server, SOON, |_| {});
    live.turn("say hello");
    live.prompt("refuse-401");
    let error = live.until("the refusal", |_, value| value["payload"]["cause"] == "auth");
    assert!(error.to_string().contains("[key]"), "the server repeats the key: {error}");
    // What was refused once would be refused again: the session ends by itself.
    live.end();
    let mut found = Vec::new();
    let mut places = vec![live.bench.data_dir.clone()];
    while let Some(place) = places.pop() {
        for entry in std::fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                places.push(path);
            } else if std::fs::read(&path)
                .is_ok_and(|bytes| bytes.windows(KEY.len()).any(|part| part == KEY.as_bytes()))
            {
                found.push(path);
            }
        }
    }
    assert!(found.is_empty(), "{found:?}");
    let baton_runtime::session::Next::Items(items) = live.handle.feed().after(0, Duration::ZERO) else {
        panic!()
    };
    assert!(items.iter().all(|item| !item.value.to_string().contains(KEY)));
}

#[test]
fn a_configuration_that_cannot_work_is_refused_at_once() {
    let setup = setup(Api::OpenAi, "http://models.example.org/v1".into());
    let kind = Kind { harness: "llm", tools_by: ToolsBy::Baton, inactivity: SOON };
    let live = Live::start(&kind, move |_, tell| {
        LlmHarness::start(setup, tell).map(|harness| Box::new(harness) as Box<dyn Harness>)
    });
    let (data, _) = live.end();
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Spawn)));
    assert!(data.message.unwrap().contains("must be https"));
}

//! What goes wrong between Baton and a model: the turn has failed within a second, and everybody knows why.

use std::time::{Duration, Instant};

use baton_core::session::{Cause, EndReason, StateKind, TerminatedBy, ToolsBy};
use baton_runtime::harness::Harness;
use baton_runtime::harness::llm::{Api, LlmHarness, LlmSetup};
use baton_testkit::model_server::ModelServer;
use serde_json::Value;

use crate::live::{Kind, Live, SOON};

const PROMPTLY: Duration = Duration::from_secs(1);

/// How long the model may be silent.
const SILENCE: Duration = Duration::from_millis(500);

/// The waits before the two other attempts.
const WAITS: [Duration; 2] = [Duration::from_millis(250), Duration::from_secs(1)];

fn session(api: Api, base_url: String) -> Live {
    let setup = LlmSetup {
        api,
        base_url,
        model: "fake-model".into(),
        key: None,
        system: None,
        tools: Vec::new(),
        max_tokens: None,
        timeout: SILENCE,
    };
    let kind = Kind { harness: "llm", tools_by: ToolsBy::Baton, inactivity: SOON };
    let live = Live::start(&kind, move |_, tell| {
        LlmHarness::start(setup, tell).map(|harness| Box::new(harness) as Box<dyn Harness>)
    });
    live.until_state(StateKind::Ready);
    live
}

fn is_error(value: &Value) -> bool {
    value["type"] == "error" && value["payload"].is_object()
}

/// A fault that may pass: each of three attempts fails promptly, then the session is ready for something else.
fn check_passing(
    api: Api,
    base_url: &str,
    prompt: &str,
    slack: Duration,
    cause: Option<&str>,
    message: &str,
) {
    let name = format!("{api:?} {prompt}");
    let live = session(api, base_url.to_owned());
    live.prompt(prompt);
    for wait in [Duration::ZERO].into_iter().chain(WAITS) {
        let began = Instant::now();
        let error = live.until("the failure", |_, value| is_error(value));
        let took = began.elapsed();
        assert!(took < wait + slack + PROMPTLY, "{name}: {took:?}");
        let payload = &error["payload"];
        eprintln!("llm {name:24} {:4} ms  {}", took.saturating_sub(wait).as_millis(), payload["message"]);
        assert_eq!(
            (&payload["recoverable"], payload["cause"].as_str()),
            (&true.into(), cause),
            "{name}: {payload}"
        );
        assert!(payload["message"].as_str().unwrap().contains(message), "{name}: {payload}");
    }
    live.until("the end of it", |_, value| value["reason"] == "retries_exhausted");
    let view = live.handle.view();
    assert_eq!(view.state, StateKind::Ready, "{name}");
    assert!(view.last_error.unwrap().message.contains(message), "{name}");
    assert_eq!(live.bench.events("turn.ended").len(), 3, "{name}");
    assert_eq!(live.bench.events("session.ended").len(), 0, "{name}: the session goes on");
    let (data, view) = live.stop();
    assert_eq!((data.reason, data.terminated_by), (EndReason::Terminated, TerminatedBy::Daemon), "{name}");
    assert_eq!(view.state, StateKind::Stopped, "{name}");
    assert_eq!(live.bench.events("session.ended").len(), 1, "{name}");
}

#[test]
fn what_may_pass_is_tried_again_and_each_failure_is_told_within_a_second() {
    let server = ModelServer::start().unwrap();
    let gone = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("http://{gone}/v1");
    let (base, none) = (server.base_url(), Duration::ZERO);
    std::thread::scope(|scope| {
        for api in [Api::OpenAi, Api::Anthropic] {
            let (base, gone) = (&base, &gone);
            scope.spawn(move || {
                check_passing(api, gone, "say hello", none, None, "connection refused");
                check_passing(api, base, "reset 99", none, None, "the model's server");
                check_passing(api, base, "cut 99", none, None, "unexpected end of file");
            });
            scope.spawn(move || {
                check_passing(api, base, "fail-500 99", none, None, "500");
                check_passing(api, base, "fail-503 99", none, None, "503");
                check_passing(api, base, "fail-429 99", none, Some("quota"), "429");
                check_passing(api, base, "hang", SILENCE, Some("timeout"), "was silent for");
            });
        }
    });
}

#[test]
fn what_will_not_pass_ends_the_session_within_a_second() {
    let server = ModelServer::start().unwrap();
    for (api, limit) in [(Api::OpenAi, "limit-429 3600"), (Api::Anthropic, "limit-429 7200")] {
        for (prompt, cause) in [("refuse-401", Cause::Auth), (limit, Cause::Quota)] {
            let live = session(api, server.base_url());
            let began = Instant::now();
            live.prompt(prompt);
            let (data, view) = live.end();
            let took = began.elapsed();
            eprintln!(
                "llm {api:?} {prompt:18} {:4} ms  {}",
                took.as_millis(),
                data.message.as_deref().unwrap_or("-")
            );
            assert!(took < PROMPTLY, "{prompt}: {took:?}");
            assert_eq!((data.reason, data.cause), (EndReason::Error, Some(cause)), "{prompt}: {data:?}");
            assert_eq!((data.exit_code, &data.signal), (None, &None), "{prompt}: there is no process");
            assert!(data.message.as_ref().unwrap().ends_with("on purpose, key none"), "{prompt}: {data:?}");
            assert_eq!(data.resets_at.is_some(), cause == Cause::Quota, "{prompt}: {data:?}");
            assert_eq!(view.state, StateKind::Stopped, "{prompt}");
            assert_eq!(live.bench.events("session.ended").len(), 1, "{prompt}");
            assert_eq!(live.bench.events("turn.ended").len(), 1, "{prompt}: it is not tried again");
        }
    }
}

#[test]
fn a_short_wait_that_the_server_asks_for_is_no_failure() {
    let server = ModelServer::start().unwrap();
    let live = session(Api::OpenAi, server.base_url());
    assert_eq!(live.turn("limit-429 1"), "recovered");
    assert_eq!(live.bench.events("turn.ended").len(), 1);
    live.stop();
}

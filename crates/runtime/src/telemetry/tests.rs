//! The fold alone: numbers, lines and what is left out of them.

use std::sync::{Arc, Mutex};

use baton_core::moment::Moment;
use baton_core::session::{Input, Machine, Rules, StateKind, StreamEnd, ToolCall, ToolsBy};
use baton_core::{SessionId, Timestamp, Uuid7};
use serde_json::json;
use tracing::Level;

use super::*;

/// What a session logs at a level when these inputs come, and the numbers after it.
fn log(level: Level, inputs: Vec<Input>) -> (Vec<String>, String) {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let sink = lines.clone();
    let written = Lines::new(level, move |line| sink.lock().unwrap().push(line.to_owned()));
    let subscriber = Watching::new(Some(written));
    let metrics = Arc::new(Metrics::default());
    tracing::subscriber::with_default(subscriber, || {
        let now = Timestamp::nearest(1_770_000_000_000);
        let id = SessionId::new(Uuid7::from_parts(now, [0; 10]));
        let mut machine = Machine::new(id, Rules::new(ToolsBy::Agent, Vec::new()));
        let mut observer = Observer::new(id, metrics.clone());
        for (n, input) in (0_u8..).zip(inputs) {
            observer.hear(&input);
            let moment = Moment { now: Timestamp::nearest(now.unix_ms() + i64::from(n) * 7), seed: [n; 10] };
            for stated in machine.handle(id, input, moment).events {
                observer.observe(&stated);
            }
        }
    });
    let lines = lines.lock().unwrap().clone();
    (lines, metrics.render())
}

fn turn() -> Vec<Input> {
    let arguments = json!({"path": "/secret"});
    let call = ToolCall { call_id: "c1".into(), name: "read_file".into(), arguments, mutating: false };
    vec![
        Input::Spawn,
        Input::HarnessReady,
        Input::UserInput { text: "the prompt".into() },
        Input::ToolRequested { call },
        Input::StreamEnded(StreamEnd::Completed { is_tree_changed: false }),
        Input::HarnessReady,
        Input::HarnessExited { code: Some(3), message: "it died".into() },
    ]
}

#[test]
fn numbers_count_what_happened_and_nothing_else() {
    let (_, text) = log(Level::INFO, turn());
    for line in [
        "# TYPE agent_state_transitions_total counter",
        "agent_state_transitions_total{from=\"ready\",to=\"calling_llm\"} 1",
        "# TYPE tool_run_duration_ms histogram",
        "tool_run_duration_ms_bucket{le=\"5\"} 0",
        "tool_run_duration_ms_bucket{le=\"10\"} 1",
        "tool_run_duration_ms_bucket{le=\"+Inf\"} 1",
        "tool_run_duration_ms_sum 7",
        "tool_run_duration_ms_count 1",
        "hook_run_duration_ms_count 0",
        "session_errors_total{code=\"state_transition_invalid\"} 1",
        "session_errors_total{code=\"harness_failed\"} 1",
    ] {
        assert!(text.lines().any(|found| found == line), "no {line} in:\n{text}");
    }
    assert!(!text.contains(" from=\"idle\",to=\"idle\""), "{text}");
    let fresh = Metrics::default();
    fresh.time_hook(10_000_000);
    fresh.count_transition(StateKind::Idle, StateKind::Stopped);
    assert!(fresh.render().contains(
        "hook_run_duration_ms_bucket{le=\"300000\"} 0\nhook_run_duration_ms_bucket{le=\"+Inf\"} 1\n"
    ));
}

#[test]
fn what_a_tool_is_called_with_is_logged_for_debugging_alone() {
    let (lines, _) = log(Level::INFO, turn());
    assert!(!lines.iter().any(|line| line.contains("secret") || line.contains("the prompt")), "{lines:#?}");
    let (lines, _) = log(Level::DEBUG, turn());
    let asked = lines.iter().find(|line| line.contains("tool requested")).unwrap();
    assert!(asked.contains(r#"arguments="{\"path\":\"/secret\"}""#), "{asked}");
    assert!(!lines.iter().any(|line| line.contains("the prompt")), "{lines:#?}");
    let (lines, _) = log(Level::ERROR, turn());
    assert!(lines.iter().all(|line| line.starts_with("level=error msg=\"session error\"")), "{lines:#?}");
    assert!(lines.iter().any(|line| line.contains("error_code=harness_failed")), "{lines:#?}");
}

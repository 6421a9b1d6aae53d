//! The sessions that are recorded.

use std::time::Duration;

use baton_core::session::{
    Answer, FailurePolicy, Hook, ProcessEnd, Rules, StateKind, StderrOutput, ToolFilter, ToolsBy,
};
use baton_runtime::harness::Progress::{Announced, Running, SaysNo, Succeeded};
use baton_runtime::harness::{Failure, Told};
use baton_runtime::session::{Ask, Start};
use serde_json::json;

use super::check;
use super::rig::Rig;
use crate::session_tools::tools;
use crate::support::sh;

fn agent() -> Rules {
    Rules::new(ToolsBy::Agent, Vec::new())
}

fn model(hooks: Vec<Hook>) -> Rules {
    Rules::new(ToolsBy::Baton, hooks)
}

fn hook(name: &str, script: &str, failure_policy: FailurePolicy) -> Hook {
    let tool_filter = ToolFilter::AnyMutating;
    Hook { name: name.into(), command: sh(script), timeout_ms: 60_000, failure_policy, tool_filter }
}

/// Tools of Baton's own, with this time for each.
fn with_tools(start: &mut Start, timeout: Duration) {
    start.harness = "llm";
    start.tools = Some(tools(start, |settings| settings.timeout = timeout));
}

#[test]
fn a_plain_turn_with_text_and_a_thought() {
    let rig = Rig::ready(agent());
    rig.prompt("good morning");
    rig.thought("Somebody is ");
    rig.thought("polite.");
    rig.tell(Told::Status("warming up".into()));
    rig.tell(Told::Plan(json!([{"content": "greet", "priority": "high", "status": "pending"}])));
    for text in ["Good ", "morning", " to you. 🌞\n"] {
        rig.text(text);
    }
    rig.tell(Told::Usage(json!({"inputTokens": 11})));
    rig.thought("Done?");
    rig.text("What now?");
    rig.done();
    check("plain-turn", &rig.stop());
}

#[test]
fn a_tool_that_runs_and_succeeds() {
    let rig = Rig::ready(agent());
    rig.prompt("read it");
    rig.text("I look.");
    rig.tool("c1", "read_file", Announced, None);
    rig.tool("c1", "read_file", Running, None);
    rig.tool("c1", "read_file", Succeeded, Some("what is in it"));
    rig.text("It says: what is in it.");
    rig.done();
    check("tool-succeeds", &rig.stop());
}

/// Does not end before it may, however often it is tried.
const PATIENT: &str = "until [ -e now ]; do sleep 0.05; done; echo at last";

/// A session whose tool has failed once.
fn failing() -> Rig {
    // Only attempts that are to fail run into it.
    let rig = Rig::prepared(model(Vec::new()), |start| with_tools(start, Duration::from_secs(4)));
    rig.prompt("run it");
    rig.call("c1", "bash", json!({"command": PATIENT}));
    rig.call("c2", "write_file", json!({"path": "once", "content": "x"}));
    rig.end_turn();
    rig.until_state(StateKind::Error);
    rig
}

#[test]
fn a_tool_that_fails_and_waits_for_another_try() {
    check("tool-waits-for-another-try", &failing().cut());
}

#[test]
fn a_tool_that_fails_and_is_tried_again_by_time_and_then_by_hand() {
    let rig = failing();
    rig.pass_ms(1000);
    rig.until_state(StateKind::ExecutingTools);
    let run = rig.until_run("bash", "failed");
    rig.until_state(StateKind::Ready);
    std::fs::write(rig.workspace().join("now"), "").unwrap();
    rig.ask(Ask::RetryTool(run["runId"].as_str().unwrap().parse().unwrap()));
    rig.until_run("bash", "succeeded");
    rig.until_state(StateKind::CallingLlm);
    rig.until_asked();
    rig.text("It took three times.");
    rig.done();
    check("tool-tried-again", &rig.stop());
}

#[test]
fn tools_at_the_same_time() {
    let rig = Rig::ready(agent());
    rig.prompt("all at once");
    for (id, name) in [("c1", "read_file"), ("c2", "bash"), ("c3", "grep"), ("c4", "fetch")] {
        rig.tool(id, name, Announced, None);
    }
    for (id, name) in [("c1", "read_file"), ("c3", "grep"), ("c2", "bash"), ("c4", "fetch")] {
        rig.tool(id, name, Running, None);
    }
    rig.text("They run.");
    rig.tool("c3", "grep", Succeeded, Some("3 matches"));
    rig.tool("c2", "bash", SaysNo, Some("exit code 1"));
    rig.tool("c1", "read_file", Succeeded, Some("text"));
    // The last one is still at it when the answer ends.
    rig.done();
    check("parallel-tools", &rig.stop());
}

#[test]
fn hooks_after_tools() {
    let hooks = vec![
        hook("format", "cat > told; echo formatted", FailurePolicy::FailSession),
        hook("lint", "echo 2 warnings; exit 3", FailurePolicy::WarnContinue),
        hook(
            "test",
            "[ -e tried ] || { touch tried; exit 1; }",
            FailurePolicy::Retry { max_attempts: 2, delay_ms: 100 },
        ),
    ];
    let rig = Rig::prepared(model(hooks), |start| with_tools(start, Duration::from_secs(60)));
    rig.prompt("change it");
    rig.call("c1", "write_file", json!({"path": "a", "content": "one two"}));
    rig.call("c2", "edit_file", json!({"path": "a", "old": "one", "new": "1"}));
    rig.call("c3", "read_file", json!({"path": "missing"}));
    rig.end_turn();
    rig.until_state(StateKind::PostToolsHook);
    rig.until_run("test", "failed");
    rig.until_state(StateKind::Error);
    rig.pass_ms(1000);
    rig.until_run("test", "succeeded");
    rig.until_state(StateKind::CallingLlm);
    rig.until_asked();
    rig.text("Changed.");
    rig.done();
    check("hooks", &rig.stop());
}

#[test]
fn a_hook_that_fails_is_tried_again_by_hand() {
    let hooks = vec![
        hook("build", "[ -e tried ] || { touch tried; echo broken; exit 1; }", FailurePolicy::FailSession),
        hook("commit", "true", FailurePolicy::FailSession),
    ];
    let rig = Rig::prepared(model(hooks), |start| with_tools(start, Duration::from_secs(60)));
    rig.prompt("change it");
    rig.call("c1", "write_file", json!({"path": "a", "content": "x"}));
    rig.end_turn();
    let run = rig.until_run("build", "failed");
    rig.until_state(StateKind::Ready);
    rig.ask(Ask::RetryHook(run["runId"].as_str().unwrap().parse().unwrap()));
    rig.until_run("commit", "succeeded");
    rig.until_state(StateKind::CallingLlm);
    rig.until_asked();
    rig.done();
    check("hook-tried-by-hand", &rig.stop());
}

#[test]
fn a_permission_that_is_asked_for_and_given() {
    let rig = Rig::ready(agent());
    rig.prompt("run the tests");
    rig.tool("c1", "bash", Announced, None);
    rig.wants("p1", "make test", Some("c1"));
    rig.permit("p1", Answer::Allow);
    rig.tool("c1", "bash", Running, None);
    rig.tool("c1", "bash", Succeeded, Some("42 passed"));
    rig.until_run("bash", "succeeded");
    let (say, answered) = std::sync::mpsc::sync_channel(1);
    rig.ask(Ask::Question { text: "Which branch?".into(), answer: say });
    rig.permit("question-1", Answer::Text("main".into()));
    assert_eq!(answered.recv().unwrap(), Answer::Text("main".into()));
    rig.text("On main, then.");
    rig.done();
    check("permission-allowed", &rig.stop());
}

#[test]
fn permissions_that_are_denied_by_a_person_by_time_and_by_the_end_of_a_turn() {
    let rig = Rig::ready(Rules { permission_ms: 300, ..agent() });
    rig.prompt("delete everything");
    rig.tool("c1", "bash", Announced, None);
    rig.wants("p1", "rm -r .", Some("c1"));
    rig.permit("p1", Answer::Deny);
    rig.tool("c1", "bash", SaysNo, Some("rejected"));
    rig.until_run("bash", "canceled");
    rig.wants("p2", "rm -r src", None);
    rig.pass_ms(1000);
    rig.until("nobody's answer", |value| value["type"] == "permission_resolved" && value["id"] == "p2");
    rig.wants("p3", "rm src/main.rs", None);
    rig.end_turn();
    rig.until_state(StateKind::Ready);
    check("permission-denied", &rig.stop());
}

#[test]
fn permissions_that_wait() {
    let rig = Rig::ready(agent());
    rig.prompt("go");
    rig.tool("c1", "bash", Announced, None);
    rig.tool("c2", "edit_file", Announced, None);
    rig.wants("p1", "make", Some("c1"));
    rig.wants("p2", "a.txt", Some("c2"));
    rig.wants("p3", "make install", None);
    rig.permit("p2", Answer::Allow);
    rig.until("an answer", |value| value["type"] == "permission_resolved");
    check("permission-pending", &rig.cut());
}

#[test]
fn two_turns_and_what_does_not_fit_between_them() {
    let rig = Rig::ready(agent());
    rig.prompt("first");
    rig.text("One.");
    rig.until("text", |value| value["type"] == "text_delta");
    assert!(rig.handle.ask(Ask::Send("not now".into())).is_err());
    rig.done();
    rig.prompt("second");
    rig.text("Two.");
    rig.tool("c1", "read_file", Running, None);
    rig.tool("c1", "read_file", Succeeded, None);
    rig.text("And a half.");
    rig.done();
    check("two-turns", &rig.stop());
}

#[test]
fn a_stop_while_it_streams() {
    let rig = Rig::ready(agent());
    rig.prompt("count to a million");
    rig.text("1 2 3");
    rig.tool("c1", "bash", Announced, None);
    rig.tool("c1", "bash", Running, None);
    rig.wants("p1", "seq 1000000", None);
    rig.text(" 4 5");
    rig.until("the last words", |value| value["payload"]["text"] == " 4 5");
    check("stop-in-stream", &rig.stop());
}

#[test]
fn a_crash_with_an_exit_code_and_what_it_wrote() {
    let rig = Rig::ready(agent());
    rig.prompt("do it");
    rig.text("I do");
    rig.tool("c1", "edit_file", Announced, None);
    rig.tool("c1", "edit_file", Running, None);
    let stderr = StderrOutput {
        head: Some("thread 'main' panicked at src/main.rs:7:\nindex out of bounds".into()),
        tail: Some("note: run with `RUST_BACKTRACE=1`".into()),
        truncated: true,
        total_lines: Some(412),
    };
    rig.exit(ProcessEnd::Exited(101), Some(stderr));
    check("crash", &rig.finish());
}

#[test]
fn an_end_by_a_signal() {
    let rig = Rig::ready(agent());
    rig.prompt("do it");
    rig.thought("Do I?");
    rig.exit(ProcessEnd::Signalled(9), None);
    check("killed", &rig.finish());
}

#[test]
fn a_start_that_fails() {
    let rig = Rig::open(agent(), |start| {
        start.spawn = Box::new(|_| Err(std::io::Error::other("there is no program gone-agent")));
    });
    check("start-fails", &rig.finish());
}

#[test]
fn a_request_that_fails_and_is_sent_again() {
    let rig = Rig::prepared(model(Vec::new()), |start| start.harness = "llm");
    rig.prompt("go");
    rig.text("I beg");
    rig.tell(Told::TurnFailed(Failure { retryable: true, ..Failure::new("overloaded") }));
    rig.until_state(StateKind::Error);
    rig.pass_ms(1000);
    rig.until_asked();
    rig.text("I begin.");
    rig.done();
    check("request-tried-again", &rig.stop());
}

#[test]
fn a_limit_that_is_reached() {
    let rig = Rig::prepared(model(Vec::new()), |start| start.harness = "llm");
    rig.prompt("go");
    rig.tell(Told::TurnFailed(Failure::new("usage limit reached, try again in 90 seconds")));
    check("limit-reached", &rig.finish());
}

#[test]
fn a_long_session() {
    let rig = Rig::ready(agent());
    for turn in 0..32 {
        rig.prompt(&format!("turn {turn}"));
        if turn % 3 == 0 {
            rig.thought(&format!("The {turn}th. "));
        }
        for word in 0..4 {
            rig.text(&format!("{turn}.{word} "));
        }
        for call in 0..turn % 3 {
            let (id, name) = (format!("c{call}"), ["read_file", "edit_file"][call % 2]);
            rig.tool(&id, name, Running, None);
            rig.tool(&id, name, if turn % 5 == 4 { SaysNo } else { Succeeded }, Some("so"));
        }
        rig.text("done\n");
        rig.done();
    }
    check("long", &rig.stop());
}

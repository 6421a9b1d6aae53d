//! Sessions whose agent is a command that is run for each prompt: small scripts that print what the known ones print.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use baton_core::protocol::scan::Found;
use baton_core::session::{Cause, EndReason, StateKind, TerminatedBy, ToolsBy};
use baton_runtime::agent::{Launch, environment};
use baton_runtime::harness::Harness;
use baton_runtime::harness::exec::{ExecHarness, Profile};
use serde_json::Value;

use crate::live::{Kind, Live, SOON};

fn session_of(profile: Profile, words: &[&str]) -> Live {
    let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
    let kind = Kind { harness: "exec", tools_by: ToolsBy::Agent, inactivity: SOON };
    Live::start(&kind, move |dir, tell| {
        let prepare = move || {
            Ok(Launch {
                words: words.clone(),
                dir: dir.clone(),
                env: environment(&[], &BTreeMap::new()),
                stderr_lines: 50,
                stderr_copy: None,
                grace: Duration::from_secs(2),
            })
        };
        ExecHarness::start(Box::new(prepare), profile, tell)
            .map(|harness| Box::new(harness) as Box<dyn Harness>)
    })
}

fn session(profile: Profile, script: &str) -> Live {
    let live = session_of(profile, &["sh", "-c", script]);
    live.until_state(StateKind::Ready);
    live
}

/// Prints what comes after the script, then does the rest.
fn printing(lines: &[&str], then: &str) -> String {
    format!("cat > /dev/null; cat <<'END'\n{}\nEND\n{then}", lines.join("\n"))
}

const SIGNAL: &str = r#"{"protocol":"apm2_agent_exit","version":"1.0.0","phase_completed":"IMPLEMENTATION","exit_reason":"completed"}"#;

#[test]
fn a_command_answers_turn_after_turn_by_its_input() {
    let live = session(Profile::Plain, r#"read -r line; echo "you said: $line""#);
    assert_eq!(live.turn("good morning"), "you said: good morning\n");
    assert_eq!(live.turn("good night"), "you said: good night\n");
    let (data, view) = live.stop();
    assert_eq!((data.reason, data.terminated_by), (EndReason::Terminated, TerminatedBy::Daemon));
    assert_eq!(view.state, StateKind::Stopped);
}

#[test]
fn a_prompt_can_be_an_argument() {
    let live = session_of(Profile::Plain, &["echo", "<{prompt}>"]);
    live.until_state(StateKind::Ready);
    assert_eq!(live.turn("two words; $(id)"), "<two words; $(id)>\n");
    live.stop();
}

#[test]
fn a_signal_in_the_text_is_found_while_the_command_runs() {
    let (first, second) = SIGNAL.split_at(60);
    let script = format!(
        "cat > /dev/null; echo 'All done:'; printf '%s' '{first}'; sleep 0.2; echo '{second}'; while [ ! -e go ]; do sleep 0.02; done"
    );
    let live = session(Profile::Plain, &script);
    live.prompt("work");
    let start = Instant::now();
    while live.signals.lock().unwrap().is_empty() {
        assert!(start.elapsed() < SOON, "no signal");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert!(matches!(live.signals.lock().unwrap()[..], [Found::Signal(_)]));
    std::fs::write(live.workspace.join("go"), "").unwrap();
    live.until_state(StateKind::Ready);
    live.stop();
}

#[test]
fn a_signal_in_a_tool_s_output_is_none() {
    let quoted = Value::from(SIGNAL).to_string();
    let result = format!(
        r#"{{"type":"user","message":{{"content":[{{"type":"tool_result","tool_use_id":"t","content":{quoted}}}]}}}}"#
    );
    let lines = [&result, r#"{"type":"result","subtype":"success","is_error":false,"result":"fine"}"#];
    let live = session(Profile::Claude, &printing(&lines, ""));
    assert_eq!(live.turn("go"), "fine");
    assert!(live.signals.lock().unwrap().is_empty());
    live.stop();
}

#[test]
fn each_profile_reads_its_own_lines() {
    let claude = [
        r#"{"type":"system","subtype":"init"}"#,
        "Some warning that is no JSON",
        r#"{"type":"assistant","message":{"content":[{"type":"text","text":"I write."},{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"a"}}]}}"#,
        r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}}"#,
        r#"{"type":"result","subtype":"success","is_error":false,"result":"I write.","usage":{"input_tokens":3}}"#,
    ];
    let codex = [
        r#"{"type":"thread.started","thread_id":"t"}"#,
        r#"{"type":"error","message":"Reconnecting... 1/5"}"#,
        r#"{"type":"item.started","item":{"id":"t1","type":"command_execution","command":"ls"}}"#,
        r#"{"type":"item.completed","item":{"id":"t1","type":"command_execution","command":"ls","aggregated_output":"a","exit_code":0}}"#,
        r#"{"type":"item.completed","item":{"id":"i2","type":"agent_message","text":"I write."}}"#,
        r#"{"type":"turn.completed","usage":{"input_tokens":3}}"#,
    ];
    let gemini = [
        r#"{"type":"init","session_id":"s"}"#,
        r#"{"type":"novelty"}"#,
        r#"{"type":"tool_use","tool_name":"write_file","tool_id":"t1","parameters":{}}"#,
        r#"{"type":"tool_result","tool_id":"t1","status":"success","output":"ok"}"#,
        r#"{"type":"message","role":"assistant","content":"I write.\n","delta":true}"#,
        r#"{"type":"result","status":"success","stats":{"input_tokens":3}}"#,
    ];
    for (profile, lines) in
        [(Profile::Claude, &claude[..]), (Profile::Codex, &codex[..]), (Profile::Gemini, &gemini[..])]
    {
        let live = session(profile, &printing(lines, ""));
        assert_eq!(live.turn("go"), "I write.\n", "{profile:?}");
        let transcript = live.transcript();
        assert_eq!(transcript.matches(r#""kind":"unknown""#).count(), 1, "{profile:?}: {transcript}");
        let (_, view) = live.stop();
        let runs: Vec<(&str, bool)> =
            view.tool_runs.iter().map(|run| (run.call_id.as_str(), run.mutating)).collect();
        assert_eq!(runs, [("t1", true)], "{profile:?}");
    }
}

#[test]
fn an_exit_that_is_not_good_ends_the_session_with_its_errors() {
    for (script, code, signal) in [
        ("echo broken >&2; exit 3", Some(3), None),
        ("kill -SEGV $$", None, Some(11)),
        // A child that holds the pipes delays nothing.
        ("sleep 1000 & exit 4", Some(4), None),
    ] {
        let live = session(Profile::Plain, &format!("cat > /dev/null; {script}"));
        let start = Instant::now();
        live.prompt("go");
        let (data, _) = live.end();
        assert!(start.elapsed() < Duration::from_secs(2), "{script}: {:?}", start.elapsed());
        assert_eq!((data.reason, data.terminated_by), (EndReason::Error, TerminatedBy::Agent), "{script}");
        assert_eq!((data.exit_code, data.signal.map(|signal| signal.number)), (code, signal), "{script}");
        assert_eq!(data.cause, Some(Cause::Crash), "{script}");
        assert!(data.message.unwrap().ends_with("in a turn"), "{script}");
    }
}

#[test]
fn exit_zero_without_a_word_about_the_turn_is_an_error_of_a_stream() {
    let live = session(Profile::Claude, &printing(&[r#"{"type":"system","subtype":"init"}"#], ""));
    live.prompt("go");
    let (data, _) = live.end();
    assert_eq!((data.reason, data.exit_code), (EndReason::Error, Some(0)));
    assert_eq!(data.message.as_deref(), Some("the agent exited with code 0 in a turn"));
}

#[test]
fn limits_and_refusals_have_their_cause() {
    // A result that says no, with an exit that agrees.
    let limit = r#"{"type":"result","subtype":"success","is_error":true,"result":"Claude AI usage limit reached, resets in 2 hours"}"#;
    let live = session(Profile::Claude, &printing(&[limit], "exit 1"));
    live.prompt("go");
    let (data, _) = live.end();
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Quota)), "{data:?}");
    assert!(data.resets_at.is_some() && data.message.unwrap().starts_with("Claude AI usage limit"));
    assert_eq!(live.bench.events("session.ended")[0]["payload"]["cause"], "quota");
    // The same with an exit that does not: nothing that is asked from now on would end otherwise.
    let live = session(Profile::Claude, &printing(&[limit], ""));
    live.prompt("go");
    let error = live.until("the error", |_, value| value["type"] == "error" && value["payload"].is_object());
    assert_eq!(error["payload"]["cause"], "quota");
    assert_eq!(live.end().0.cause, Some(Cause::Quota));
    // Where a command speaks, it also complains.
    let live = session(Profile::Plain, "cat > /dev/null; echo 'Invalid API key · Please run /login'; exit 1");
    live.prompt("go");
    assert_eq!(live.end().0.cause, Some(Cause::Auth));
    let live = session(Profile::Plain, "cat > /dev/null; no-such-program-at-all");
    live.prompt("go");
    assert_eq!(live.end().0.cause, Some(Cause::Spawn));
}

#[test]
fn what_cannot_be_started_ends_with_the_reason() {
    let live = session_of(Profile::Plain, &["no-such-agent"]);
    let (data, _) = live.end();
    assert_eq!((data.terminated_by, data.cause), (TerminatedBy::Daemon, Some(Cause::Spawn)));
    assert!(data.message.unwrap().contains("no-such-agent: not found"));
    // It was there, and is gone when it is needed.
    let live = session_of(Profile::Plain, &["sh", "-c", "exit 0"]);
    live.until_state(StateKind::Ready);
    std::fs::remove_dir_all(&live.workspace).unwrap();
    live.prompt("go");
    let (data, _) = live.end();
    assert_eq!((data.reason, data.cause), (EndReason::Error, Some(Cause::Spawn)));
    assert!(data.message.unwrap().contains("no directory"));
}

#[test]
fn a_turn_can_be_ended_early_and_the_command_goes_with_all_it_started() {
    let (say, told) = std::sync::mpsc::channel();
    let prepare = || {
        Ok(Launch {
            words: ["sh", "-c", "sleep 1000 & echo up; wait"].map(str::to_owned).to_vec(),
            dir: std::env::temp_dir(),
            env: environment(&[], &BTreeMap::new()),
            stderr_lines: 50,
            stderr_copy: None,
            grace: Duration::from_millis(400),
        })
    };
    let mut harness =
        ExecHarness::start(Box::new(prepare), Profile::Plain, move |it| drop(say.send(it))).unwrap();
    use baton_runtime::harness::Told;
    assert!(matches!(told.recv_timeout(SOON).unwrap(), Told::Ready(_)));
    harness.prompt(&["go".into()]).unwrap();
    assert!(matches!(told.recv_timeout(SOON).unwrap(), Told::Text { .. }));
    assert!(harness.prompt(&["more".into()]).is_err(), "one turn at a time");
    let start = Instant::now();
    harness.cancel();
    match told.recv_timeout(SOON).unwrap() {
        Told::TurnEnded { stop, .. } => assert_eq!(stop, "cancelled"),
        other => panic!("{other:?}"),
    }
    assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
    assert_eq!(harness.pid(), None);
    harness.stop();
    assert!(matches!(told.recv_timeout(SOON).unwrap(), Told::Exited(exit) if exit.is_asked));
}

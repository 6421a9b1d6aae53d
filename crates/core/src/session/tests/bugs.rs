//! What an earlier machine of this kind got wrong, each shown not to be so here; and the finer points of retries, stops and permissions.

use super::*;

fn any(name: &str) -> Hook {
    hook(name, FailurePolicy::FailSession, ToolFilter::AnyMutating)
}

#[test]
fn a_mutating_batch_does_not_make_the_next_one_mutating() {
    let mut rig = Rig::executing(&["write_file"], vec![any("h")]);
    let run = rig.runs()[0];
    rig.give(ended(run, RunStatus::Succeeded));
    rig.end_hook(0, RunStatus::Succeeded);
    rig.give(Input::ToolRequested { call: call("r", "read_file") });
    rig.give(completed());
    let run = rig.runs()[0];
    rig.give(Input::ToolStarted { run });
    let decision = rig.give(ended(run, RunStatus::Succeeded));
    assert_eq!(done(&decision), ["SendToHarness(outputs)"]);
}

#[test]
fn a_run_that_never_began_does_not_block_later_batches() {
    let mut rig = Rig::calling(ToolsBy::Agent, Vec::new());
    rig.give(Input::ToolRequested { call: call("a", "grep") });
    let decision = rig.give(completed());
    assert_eq!(told(&decision)[0], "grep canceled #1", "it is at its end with the turn");
    assert_eq!(rig.machine.kind(), StateKind::Ready);
    rig.give(Input::UserInput { text: "next".into() });
    rig.give(completed());
    assert_eq!(rig.machine.kind(), StateKind::Ready);
}

#[test]
fn a_mutating_batch_without_a_matching_hook_goes_on() {
    let hooks = vec![hook("h", FailurePolicy::FailSession, ToolFilter::ToolNames(vec!["bash".into()]))];
    let mut rig = Rig::executing(&["write_file"], hooks);
    let run = rig.runs()[0];
    let decision = rig.give(ended(run, RunStatus::Succeeded));
    assert_eq!(told(&decision).last().unwrap(), "executing_tools -> calling_llm (tools_completed)");
}

#[test]
fn a_hook_by_name_fires_for_a_tool_that_changes_nothing() {
    let hooks = vec![hook("h", FailurePolicy::FailSession, ToolFilter::ToolNames(vec!["grep".into()]))];
    let mut rig = Rig::executing(&["grep"], hooks);
    let run = rig.runs()[0];
    let decision = rig.give(ended(run, RunStatus::Succeeded));
    assert_eq!(done(&decision), ["RunPostToolHooks"]);
}

#[test]
fn a_failed_tool_does_not_abandon_its_siblings() {
    let mut rig = Rig::executing(&["grep", "bash", "read_file"], Vec::new());
    let runs = rig.runs();
    assert_eq!(told(&rig.give(ended(runs[1], RunStatus::Failed))), ["bash failed #1"]);
    assert_eq!(rig.machine.kind(), StateKind::ExecutingTools);
    rig.give(ended(runs[0], RunStatus::Succeeded));
    let decision = rig.give(ended(runs[2], RunStatus::Canceled));
    assert_eq!(
        told(&decision),
        ["read_file canceled #1", "error tool_execution_failed", "executing_tools -> error (tool_failed)"]
    );
}

#[test]
fn another_attempt_has_the_same_arguments_and_only_of_what_failed() {
    let mut rig = Rig::executing(&["grep", "bash"], Vec::new());
    let runs = rig.runs();
    rig.give(ended(runs[0], RunStatus::Succeeded));
    rig.give(ended(runs[1], RunStatus::Failed));
    let decision = rig.give(Input::RetryTimeout { target: RetryTarget::Tool(runs[1]) });
    let [Effect::ExecuteTools { runs: again }] = &decision.effects[..] else { panic!("{decision:?}") };
    assert_eq!(again[..], [(runs[1], call("c1", "bash"))]);
    rig.give(Input::ToolStarted { run: runs[1] });
    let decision = rig.give(ended(runs[1], RunStatus::Succeeded));
    assert_eq!(told(&decision)[0], "bash succeeded #2");
    assert_eq!(done(&decision), ["SendToHarness(outputs)"]);
}

#[test]
fn every_input_is_for_one_session() {
    let mut rig = Rig::calling(ToolsBy::Baton, Vec::new());
    let other = SessionId::new(Uuid7::from_parts(at(5), [7; 10]));
    for input in [completed(), Input::StopRequested, exited(Some(1)), Input::UserInput { text: "x".into() }] {
        let decision = rig.give_to(other, input);
        assert_eq!(told(&decision), ["error session_not_found"]);
    }
    assert_eq!(rig.machine.kind(), StateKind::CallingLlm);
}

#[test]
fn the_same_inputs_give_the_same_decisions() {
    let history = || {
        let mut rig = Rig::executing(&["write_file", "grep"], vec![any("h")]);
        let runs = rig.runs();
        let mut all =
            vec![rig.give(ended(runs[0], RunStatus::Failed)), rig.give(ended(runs[1], RunStatus::Succeeded))];
        all.push(rig.give(Input::RetryTimeout { target: RetryTarget::Tool(runs[0]) }));
        all.push(rig.give(Input::ToolStarted { run: runs[0] }));
        all.push(rig.give(ended(runs[0], RunStatus::Succeeded)));
        all.push(rig.end_hook(0, RunStatus::Succeeded));
        all.push(rig.give(exited(None)));
        all
    };
    // Ids and times too: nothing in it comes from anywhere but the inputs.
    assert_eq!(history(), history());
}

#[test]
fn there_are_two_further_attempts_at_a_request_and_then_it_is_ready() {
    let mut rig = Rig::calling(ToolsBy::Baton, Vec::new());
    let mut waits = Vec::new();
    let mut streams = vec![rig.machine.stream()];
    for _ in 0..2 {
        let decision = rig.give(failed(true));
        let Some(Effect::SetTimer { at, target: RetryTarget::Llm }) = decision.effects.first() else {
            panic!("{decision:?}")
        };
        waits.push(at.unix_ms() - rig.now.unix_ms());
        rig.give(Input::RetryTimeout { target: RetryTarget::Llm });
        streams.push(rig.machine.stream());
    }
    assert_eq!(waits, [250, 1000]);
    streams.dedup();
    assert_eq!(streams.len(), 3, "each request has a stream of its own");
    let decision = rig.give(failed(true));
    assert_eq!(
        told(&decision),
        ["error streaming_failed", "calling_llm -> error (llm_failed)", "error -> ready (retries_exhausted)"]
    );
    assert_eq!(rig.machine.last_error().unwrap().code, ErrorCode::StreamingFailed, "kept");
    rig.give(Input::UserInput { text: "again".into() });
    assert_eq!(rig.machine.last_error(), None, "a new input clears it");
    let decision = rig.give(failed(true));
    assert_eq!(done(&decision), ["SetTimer"], "with a budget of its own");
}

#[test]
fn a_person_may_always_try_a_tool_again() {
    let mut rig = Rig::executing(&["bash"], Vec::new());
    let run = rig.runs()[0];
    rig.give(ended(run, RunStatus::Failed));
    assert_eq!(done(&rig.give(Input::RetryTool { run })), ["ExecuteTools"], "without waiting for the timer");
    assert!(
        is_refused(&rig.give(Input::RetryTimeout { target: RetryTarget::Tool(run) })),
        "which is pointless now"
    );
    for attempt in 3..6 {
        rig.give(Input::ToolStarted { run });
        rig.give(ended(run, RunStatus::Failed));
        assert_eq!(rig.machine.kind(), StateKind::Ready, "by itself it is tried twice");
        assert_eq!(done(&rig.give(Input::RetryTool { run })), ["ExecuteTools"]);
        assert_eq!(rig.machine.tools[0].run.attempt, attempt);
    }
}

#[test]
fn hooks_run_in_order_and_each_policy_does_what_it_says() {
    let hooks = vec![
        hook("warns", FailurePolicy::WarnContinue, ToolFilter::AnyMutating),
        hook("tries", FailurePolicy::Retry { max_attempts: 2, delay_ms: 40 }, ToolFilter::AnyMutating),
        any("strict"),
        any("never"),
    ];
    let mut rig = Rig::executing(&["bash"], hooks);
    let run = rig.runs()[0];
    rig.give(ended(run, RunStatus::Succeeded));
    assert!(is_refused(&rig.give(Input::HookStarted { run: rig.hook_run(1) })), "in order");
    let decision = rig.end_hook(0, RunStatus::Failed);
    assert_eq!(told(&decision), ["warns failed #1", "warning hook_execution_failed"]);
    let decision = rig.end_hook(1, RunStatus::Failed);
    assert_eq!(
        told(&decision),
        ["tries failed #1", "error hook_execution_failed", "post_tools_hook -> error (hook_failed)"]
    );
    rig.give(Input::RetryTimeout { target: RetryTarget::Hook(rig.hook_run(1)) });
    assert_eq!(told(&rig.end_hook(1, RunStatus::Succeeded)), ["tries succeeded #2"]);
    let decision = rig.end_hook(2, RunStatus::Failed);
    assert_eq!(
        told(&decision),
        [
            "strict failed #1",
            "error hook_execution_failed",
            "never canceled #1",
            "post_tools_hook -> error (hook_failed)",
            "error -> ready (retries_exhausted)"
        ]
    );
    // A person's retry goes on from the hook that failed, and not from those before.
    rig.give(Input::RetryHook { run: rig.hook_run(2) });
    rig.end_hook(2, RunStatus::Succeeded);
    let decision = rig.end_hook(3, RunStatus::Succeeded);
    assert_eq!(told(&decision)[1], "post_tools_hook -> calling_llm (hooks_completed)");
}

#[test]
fn stopping_cancels_what_runs_and_says_so_first() {
    let mut rig = Rig::executing(&["bash", "grep"], Vec::new());
    let runs = rig.runs();
    rig.give(ended(runs[1], RunStatus::Succeeded));
    let decision = rig.give(Input::StopRequested);
    assert_eq!(told(&decision), ["bash canceled #1", "executing_tools -> stopping (stop_requested)"]);
    assert_eq!(done(&decision), ["CancelRuns", "StopHarness"]);
    assert_eq!(told(&rig.give(ended(runs[0], RunStatus::Failed))), [""; 0], "too late to count");
    assert_eq!(told(&rig.give(Input::StopRequested)), [""; 0]);
    let decision = rig.give(exited(None));
    assert_eq!(told(&decision), ["stopping -> stopped (harness_exited)"]);
    assert!(is_refused(&rig.give(Input::StopRequested)));
}

#[test]
fn an_agent_that_goes_away_is_an_error_unless_it_was_idle_and_said_zero() {
    for code in [Some(0), Some(3), None] {
        let mut rig = Rig::ready(ToolsBy::Agent, Vec::new());
        let decision = rig.give(exited(code));
        let expected: &[&str] = match code {
            Some(0) => &["ready -> stopped (harness_exited)"],
            _ => &[
                "error harness_failed",
                "ready -> error (harness_exited)",
                "error -> stopped (harness_exited)",
            ],
        };
        assert_eq!(told(&decision), expected, "{code:?}");
        let mut rig = Rig::calling(ToolsBy::Agent, Vec::new());
        rig.give(Input::ToolRequested { call: call("a", "bash") });
        let decision = rig.give(exited(code));
        assert_eq!(
            told(&decision),
            [
                "bash canceled #1",
                "error harness_failed",
                "calling_llm -> error (harness_exited)",
                "error -> stopped (harness_exited)"
            ],
            "{code:?}"
        );
    }
}

#[test]
fn a_permission_is_answered_once_and_at_the_latest_when_nothing_is_asked_any_more() {
    let mut rig = Rig::calling(ToolsBy::Agent, Vec::new());
    let ask = |id: &str| Input::PermissionRequested {
        id: id.into(),
        kind: PermissionKind::Tool,
        title: "write".into(),
        call_id: None,
    };
    let answer =
        |id: &str, answer| Input::PermissionAnswered { id: id.into(), answer, by: "operator".into() };
    let decision = rig.give(ask("1"));
    let [Effect::ExpirePermission { at, .. }] = &decision.effects[..] else { panic!("{decision:?}") };
    assert_eq!(at.unix_ms() - rig.now.unix_ms(), 300_000);
    rig.give(Input::StreamDelta);
    assert!(is_refused(&rig.give(ask("1"))));
    rig.give(ask("2"));
    let decision = rig.give(answer("1", Answer::Allow));
    assert_eq!(told(&decision), ["Allow to 1"]);
    assert!(is_refused(&rig.give(answer("1", Answer::Deny))), "the first answer counts");
    assert_eq!(rig.machine.kind(), StateKind::CallingLlm);
    let decision = rig.give(completed());
    assert_eq!(told(&decision)[0], "Canceled to 2");
    assert!(is_refused(&rig.give(ask("3"))), "not between turns");
}

#[test]
fn files_that_changed_without_a_tool_saying_so_make_a_turn_mutating() {
    let mut rig = Rig::calling(ToolsBy::Agent, vec![any("h")]);
    let decision = rig.give(Input::StreamEnded(StreamEnd::Completed { is_tree_changed: true }));
    assert_eq!(done(&decision), ["RunPostToolHooks"]);
    rig.end_hook(0, RunStatus::Succeeded);
    assert_eq!(rig.machine.kind(), StateKind::Ready);
}

#[test]
fn tools_are_known_by_name_and_others_by_whoever_knows_them() {
    for name in ["read_file", "list_files", "grep", "search"] {
        assert_eq!(is_mutating(name), Some(false), "{name}");
    }
    for name in
        ["edit_file", "write_file", "apply_patch", "bash", "run_command", "git_commit", "git_anything"]
    {
        assert_eq!(is_mutating(name), Some(true), "{name}");
    }
    assert_eq!(is_mutating("deploy"), None);
}

#[test]
fn events_are_stored_and_read_back_as_they_were() {
    let hooks = vec![hook("h", FailurePolicy::WarnContinue, ToolFilter::AnyMutating)];
    let mut rig = Rig::executing(&["bash"], hooks);
    let run = rig.runs()[0];
    rig.give(Input::PermissionRequested {
        id: "p".into(),
        kind: PermissionKind::Question,
        title: "which".into(),
        call_id: Some("c0".into()),
    });
    rig.give(Input::PermissionAnswered {
        id: "p".into(),
        answer: Answer::Text("this".into()),
        by: "operator".into(),
    });
    rig.give(ended(run, RunStatus::Succeeded));
    rig.end_hook(0, RunStatus::Failed);
    rig.give(exited(None));
    let types: std::collections::BTreeSet<&str> = rig.said.iter().map(SessionEvent::event_type).collect();
    assert_eq!(types, SessionEvent::TYPES.iter().copied().collect(), "each type is met");
    for event in &rig.said {
        let read = SessionEvent::read(event.event_type(), &event.fields()).unwrap().unwrap();
        assert_eq!(read, *event);
    }
    let fields = rig.said.iter().find(|event| event.event_type() == "tool_lifecycle").unwrap().fields();
    for key in ["runId", "callId", "toolName", "mutating", "status", "attempt", "startedAtMs"] {
        assert!(fields.contains_key(key), "{key}: {fields:?}");
    }
    assert!(SessionEvent::read("task.created", &fields).is_none());
}

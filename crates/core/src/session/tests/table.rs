//! The table of transitions, `../transitions.md`, row by row: a missing and an extra row both fail, and whatever no row names is refused.

use std::collections::BTreeSet;

use super::*;

/// A place to start from: its state, what is special about it, and how one gets there.
struct Start {
    when: &'static str,
    rig: fn() -> Rig,
}

fn always(policy: FailurePolicy) -> Vec<Hook> {
    vec![hook("h", policy, ToolFilter::AnyMutating)]
}

fn in_hook(policy: FailurePolicy) -> Rig {
    let mut rig = Rig::executing(&["write_file"], always(policy));
    let run = rig.runs()[0];
    rig.give(ended(run, RunStatus::Succeeded));
    let run = rig.hook_run(0);
    rig.give(Input::HookStarted { run });
    rig
}

fn asked(mut rig: Rig) -> Rig {
    let (id, title) = ("p".to_owned(), "may I".to_owned());
    rig.give(Input::PermissionRequested { id, kind: PermissionKind::Tool, title, call_id: None });
    rig
}

fn with_tool(name: &str, hooks: Vec<Hook>) -> Rig {
    let mut rig = Rig::calling(ToolsBy::Agent, hooks);
    rig.give(Input::ToolRequested { call: call("a", name) });
    let run = rig.runs()[0];
    rig.give(Input::ToolStarted { run });
    rig
}

const RETRY: FailurePolicy = FailurePolicy::Retry { max_attempts: 2, delay_ms: 5 };

/// Every place that differs from the others in what follows.
fn starts() -> Vec<Start> {
    fn start(when: &'static str, rig: fn() -> Rig) -> Start {
        Start { when, rig }
    }
    vec![
        start("", || Rig::new(ToolsBy::Baton, Vec::new())),
        start("", || {
            let mut rig = Rig::new(ToolsBy::Baton, Vec::new());
            rig.give(Input::Spawn);
            rig
        }),
        start("nothing failed", || Rig::ready(ToolsBy::Baton, Vec::new())),
        start("a tool failed last", || {
            let mut rig = Rig::executing(&["read_file"], Vec::new());
            let run = rig.runs()[0];
            rig.give(ended(run, RunStatus::Failed));
            rig.give(Input::RetryTimeout { target: RetryTarget::Tool(run) });
            rig.give(Input::ToolStarted { run });
            rig.give(ended(run, RunStatus::Failed));
            rig
        }),
        start("a hook failed last", || {
            let mut rig = in_hook(FailurePolicy::FailSession);
            let run = rig.hook_run(0);
            rig.give(Input::HookCompleted { run, status: RunStatus::Failed, error: None, output: None });
            rig
        }),
        start("no tool call", || Rig::calling(ToolsBy::Baton, Vec::new())),
        start("tool calls", || {
            let mut rig = Rig::calling(ToolsBy::Baton, Vec::new());
            rig.give(Input::ToolRequested { call: call("c0", "write_file") });
            rig
        }),
        start("last attempt", || {
            let mut rig = Rig::calling(ToolsBy::Baton, Vec::new());
            for _ in 0..2 {
                rig.give(failed(true));
                rig.give(Input::RetryTimeout { target: RetryTarget::Llm });
            }
            rig
        }),
        start("a permission is awaited", || asked(Rig::calling(ToolsBy::Baton, Vec::new()))),
        start("the agent runs a reading tool, with hooks", || {
            with_tool("read_file", always(FailurePolicy::FailSession))
        }),
        start("the agent runs a mutating tool, no hooks", || with_tool("write_file", Vec::new())),
        start("the agent runs a mutating tool, with hooks", || {
            with_tool("write_file", always(FailurePolicy::FailSession))
        }),
        start("last run, not mutating", || {
            Rig::executing(&["read_file"], always(FailurePolicy::FailSession))
        }),
        start("last run, mutating, no hook matches", || Rig::executing(&["write_file"], Vec::new())),
        start("last run, mutating", || Rig::executing(&["write_file"], always(FailurePolicy::FailSession))),
        start("not the last run", || {
            Rig::executing(&["read_file", "bash"], always(FailurePolicy::FailSession))
        }),
        start("last run, last attempt", || {
            let mut rig = Rig::executing(&["read_file"], Vec::new());
            let run = rig.runs()[0];
            rig.give(ended(run, RunStatus::Failed));
            rig.give(Input::RetryTimeout { target: RetryTarget::Tool(run) });
            rig.give(Input::ToolStarted { run });
            rig
        }),
        start("a hook, policy fail_session", || in_hook(FailurePolicy::FailSession)),
        start("a hook, policy warn_continue", || in_hook(FailurePolicy::WarnContinue)),
        start("a hook, policy retry", || in_hook(RETRY)),
        start("not the last hook", || {
            let hooks = vec![
                hook("h", FailurePolicy::FailSession, ToolFilter::AnyMutating),
                hook("i", FailurePolicy::FailSession, ToolFilter::AnyMutating),
            ];
            let mut rig = Rig::executing(&["bash"], hooks);
            let run = rig.runs()[0];
            rig.give(ended(run, RunStatus::Succeeded));
            let run = rig.hook_run(0);
            rig.give(Input::HookStarted { run });
            rig
        }),
        start("after a request", || {
            let mut rig = Rig::calling(ToolsBy::Baton, Vec::new());
            rig.give(failed(true));
            rig
        }),
        start("after a tool", || {
            let mut rig = Rig::executing(&["read_file"], Vec::new());
            let run = rig.runs()[0];
            rig.give(ended(run, RunStatus::Failed));
            rig
        }),
        start("after a hook", || {
            let mut rig = in_hook(RETRY);
            let run = rig.hook_run(0);
            rig.give(Input::HookCompleted { run, status: RunStatus::Failed, error: None, output: None });
            rig
        }),
        start("", || {
            let mut rig = Rig::executing(&["write_file"], Vec::new());
            rig.give(Input::StopRequested);
            rig
        }),
        start("", || {
            let mut rig = Rig::ready(ToolsBy::Baton, Vec::new());
            rig.give(exited(Some(0)));
            rig
        }),
    ]
}

/// Every input, as it would come to this machine.
fn inputs(rig: &Rig) -> Vec<(String, Input)> {
    let other_tool = ToolRunId::new(Uuid7::from_parts(at(1), [9; 10]));
    let other_hook = crate::ids::HookRunId::new(Uuid7::from_parts(at(1), [9; 10]));
    let tool = rig.runs().first().copied().unwrap_or(other_tool);
    let hook = rig.machine.hooks.first().map_or(other_hook, |hooked| hooked.run.run_id);
    let (id, title) = ("p".to_owned(), "may I".to_owned());
    let mut all = vec![
        ("spawn".to_owned(), Input::Spawn),
        ("HarnessReady".to_owned(), Input::HarnessReady),
        ("UserInput".to_owned(), Input::UserInput { text: "go".into() }),
        ("HarnessStream(delta)".to_owned(), Input::StreamDelta),
        ("HarnessStream(completed)".to_owned(), completed()),
        (
            "HarnessStream(completed, the work tree changed)".to_owned(),
            Input::StreamEnded(StreamEnd::Completed { is_tree_changed: true }),
        ),
        ("HarnessStream(error)".to_owned(), failed(true)),
        ("HarnessStream(error, not retryable)".to_owned(), failed(false)),
        ("ToolRequested".to_owned(), Input::ToolRequested { call: call("new", "grep") }),
        ("ToolStarted".to_owned(), Input::ToolStarted { run: tool }),
        ("HookStarted".to_owned(), Input::HookStarted { run: hook }),
        (
            "PermissionRequested".to_owned(),
            Input::PermissionRequested { id: id.clone(), kind: PermissionKind::Tool, title, call_id: None },
        ),
        (
            "PermissionAnswered".to_owned(),
            Input::PermissionAnswered { id, answer: Answer::Allow, by: "operator".into() },
        ),
        ("RetryTimeout(Llm)".to_owned(), Input::RetryTimeout { target: RetryTarget::Llm }),
        ("RetryTimeout(Tool)".to_owned(), Input::RetryTimeout { target: RetryTarget::Tool(tool) }),
        ("RetryTimeout(Hook)".to_owned(), Input::RetryTimeout { target: RetryTarget::Hook(hook) }),
        ("retry_tool".to_owned(), Input::RetryTool { run: tool }),
        ("retry_hook".to_owned(), Input::RetryHook { run: hook }),
        ("StopRequested".to_owned(), Input::StopRequested),
        ("HarnessExited(0)".to_owned(), exited(Some(0))),
        ("HarnessExited(3)".to_owned(), exited(Some(3))),
        ("HarnessExited(signal)".to_owned(), exited(None)),
    ];
    for status in [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled] {
        all.push((format!("ToolCompleted({status})"), ended(tool, status)));
        let completed = Input::HookCompleted { run: hook, status, error: None, output: None };
        all.push((format!("HookCompleted({status})"), completed));
    }
    all
}

/// The rows that the code has: state, what came, when, the way, what is done.
fn rows_of_the_code() -> Vec<[String; 5]> {
    let mut rows: Vec<[String; 5]> = Vec::new();
    for start in starts() {
        let names: Vec<String> = inputs(&(start.rig)()).into_iter().map(|(name, _)| name).collect();
        for name in names {
            let mut rig = (start.rig)();
            let from = rig.machine.kind;
            let (_, input) = inputs(&rig).into_iter().find(|(other, _)| *other == name).unwrap();
            let decision = rig.give(input);
            if is_refused(&decision) {
                continue;
            }
            let mut way = vec![];
            for stated in &decision.events {
                if let SessionEvent::StateChanged(changed) = &stated.event {
                    way.push(format!("{} ({})", changed.to, changed.reason));
                }
            }
            let way = if way.is_empty() { "stays".to_owned() } else { way.join(", ") };
            // What is still asked for is answered wherever a turn ends; the page says so once.
            let effects: Vec<String> =
                done(&decision).into_iter().filter(|effect| effect != "AnswerPermission(canceled)").collect();
            let effects = effects.join(", ");
            rows.push([from.to_string(), name, start.when.to_owned(), way, effects]);
        }
    }
    rows
}

/// One row for each outcome: with all the cases that lead to it, or with none where every case of the state does.
fn joined(rows: &[[String; 5]]) -> Vec<[String; 5]> {
    let cases =
        |state: &str| starts().iter().filter(|start| (start.rig)().machine.kind.as_str() == state).count();
    let mut kept: Vec<([String; 5], Vec<String>)> = Vec::new();
    for row in rows {
        let same = |other: &[String; 5]| other[..2] == row[..2] && other[3..] == row[3..];
        match kept.iter_mut().find(|(other, _)| same(other)) {
            Some((_, whens)) => whens.push(row[2].clone()),
            None => kept.push((row.clone(), vec![row[2].clone()])),
        }
    }
    let join = |(mut row, whens): ([String; 5], Vec<String>)| {
        row[2] = if whens.len() == cases(&row[0]) { String::new() } else { whens.join("; ") };
        row
    };
    kept.into_iter().map(join).collect()
}

fn rows_of_the_page() -> Vec<[String; 5]> {
    let page = include_str!("../transitions.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    rows.map(|line| {
        let cells: Vec<String> =
            line.trim_matches('|').split('|').map(|cell| cell.trim().replace('`', "")).collect();
        cells.try_into().expect("five columns")
    })
    .collect()
}

#[test]
fn the_table_is_what_the_machine_does() {
    let code = joined(&rows_of_the_code());
    let page = rows_of_the_page();
    let shown = |row: &[String; 5]| {
        let [from, input, when, way, effects] = row;
        format!("| `{from}` | {input} | {when} | {way} | {effects} |")
    };
    let (in_code, in_page): (BTreeSet<_>, BTreeSet<_>) =
        (code.iter().map(shown).collect(), page.iter().map(shown).collect());
    let missing: Vec<&String> = in_code.difference(&in_page).collect();
    let extra: Vec<&String> = in_page.difference(&in_code).collect();
    let all: Vec<String> = code.iter().map(shown).collect();
    assert!(
        missing.is_empty() && extra.is_empty(),
        "missing on the page: {missing:#?}\nonly on the page: {extra:#?}\nall rows:\n{}",
        all.join("\n")
    );
    assert_eq!(page.len(), in_page.len(), "no row twice");
}

#[test]
fn every_state_is_reached() {
    let reached: BTreeSet<StateKind> = starts().iter().map(|start| (start.rig)().machine.kind).collect();
    let all: BTreeSet<StateKind> =
        StateKind::ALL.iter().copied().filter(|kind| *kind != StateKind::ProcessingResponse).collect();
    assert_eq!(reached, all);
}

#[test]
fn the_example_of_the_guide_in_its_order() {
    let hooks = always(FailurePolicy::FailSession);
    let mut rig = Rig::ready(ToolsBy::Baton, hooks);
    let mut all = Vec::new();
    all.extend(told(&rig.give(Input::UserInput { text: "fix it".into() })));
    let first = rig.machine.stream();
    all.extend(told(&rig.give(Input::StreamDelta)));
    all.extend(told(&rig.give(Input::ToolRequested { call: call("c0", "edit_file") })));
    all.extend(told(&rig.give(completed())));
    let run = rig.runs()[0];
    all.extend(told(&rig.give(Input::ToolStarted { run })));
    all.extend(told(&rig.give(ended(run, RunStatus::Succeeded))));
    let run = rig.hook_run(0);
    all.extend(told(&rig.give(Input::HookStarted { run })));
    all.extend(told(&rig.give(Input::HookCompleted {
        run,
        status: RunStatus::Succeeded,
        error: None,
        output: None,
    })));
    assert_ne!(rig.machine.stream(), first, "another request, another stream");
    all.extend(told(&rig.give(Input::StreamDelta)));
    all.extend(told(&rig.give(completed())));
    assert_eq!(
        all,
        [
            "ready -> calling_llm (user_input)",
            "calling_llm -> processing_response (stream_completed)",
            "processing_response -> executing_tools (tools_requested)",
            "edit_file running #1",
            "edit_file succeeded #1",
            "executing_tools -> post_tools_hook (tools_completed)",
            "h running #1",
            "h succeeded #1",
            "post_tools_hook -> calling_llm (hooks_completed)",
            "calling_llm -> processing_response (stream_completed)",
            "processing_response -> ready (stream_completed)",
        ]
    );
}

//! Random histories: whatever comes in whatever order, everything that must hold does, after every step.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::*;

/// A choice that means an input only once the machine is known.
#[derive(Debug, Clone, Copy)]
struct Choice {
    kind: u8,
    which: u8,
}

fn pick<T: Copy>(all: &[T], which: u8) -> Option<T> {
    if all.is_empty() { None } else { all.get(usize::from(which) % all.len()).copied() }
}

fn input(rig: &Rig, Choice { kind, which }: Choice) -> Input {
    let tool = pick(&rig.runs(), which).unwrap_or(ToolRunId::new(Uuid7::from_parts(at(1), [which; 10])));
    let hooks: Vec<_> = rig.machine.hooks.iter().map(|hooked| hooked.run.run_id).collect();
    let hook = pick(&hooks, which);
    let hook = hook.unwrap_or(crate::ids::HookRunId::new(Uuid7::from_parts(at(1), [which; 10])));
    let statuses = [RunStatus::Succeeded, RunStatus::Failed, RunStatus::Canceled, RunStatus::Running];
    let status = statuses[usize::from(which / 16) % 4];
    let names = ["read_file", "write_file", "grep", "bash", "deploy"];
    let permission = || {
        let pending: Vec<&str> =
            rig.machine.permissions.iter().map(|permission| permission.id.as_str()).collect();
        pick(&pending, which).unwrap_or("none").to_owned()
    };
    match kind % 24 {
        0 => Input::Spawn,
        1 => Input::HarnessReady,
        2..=4 => Input::UserInput { text: "go".into() },
        5 => Input::StreamDelta,
        6..=7 => Input::StreamEnded(StreamEnd::Completed { is_tree_changed: which % 5 == 0 }),
        8 => failed(which % 4 != 0),
        9..=10 => {
            let name = names[usize::from(which) % names.len()];
            Input::ToolRequested { call: call(&format!("c{which}"), name) }
        }
        11..=12 => Input::ToolStarted { run: tool },
        13..=14 => ended(tool, status),
        15 => Input::HookStarted { run: hook },
        16 => Input::HookCompleted { run: hook, status, error: None, output: None },
        17 => Input::PermissionRequested {
            id: format!("p{}", which % 3),
            kind: PermissionKind::Tool,
            title: String::new(),
            call_id: None,
        },
        18 => Input::PermissionAnswered { id: permission(), answer: Answer::Allow, by: "operator".into() },
        19..=20 => match rig.machine.retry {
            Some(target) => Input::RetryTimeout { target },
            None => Input::RetryTimeout { target: RetryTarget::Llm },
        },
        21 => Input::RetryTool { run: tool },
        22 => Input::RetryHook { run: hook },
        _ if which < 20 => Input::StopRequested,
        _ if which < 40 => exited((which % 2 == 0).then_some(0)),
        _ => Input::StreamDelta,
    }
}

fn rig(shape: u8) -> Rig {
    let policies = [
        FailurePolicy::FailSession,
        FailurePolicy::WarnContinue,
        FailurePolicy::Retry { max_attempts: 3, delay_ms: 1 },
    ];
    let filters = [ToolFilter::AnyMutating, ToolFilter::ToolNames(vec!["grep".into(), "deploy".into()])];
    let hooks = (0..shape % 4)
        .map(|i| {
            let policy = policies[usize::from(shape / 4 + i) % 3];
            hook(&format!("h{i}"), policy, filters[usize::from(shape / 8 + i) % 2].clone())
        })
        .collect();
    let tools_by = if shape < 128 { ToolsBy::Baton } else { ToolsBy::Agent };
    if shape.is_multiple_of(3) { Rig::new(tools_by, hooks) } else { Rig::ready(tools_by, hooks) }
}

/// How many histories; `make soak` builds this with more.
fn histories() -> u32 {
    option_env!("BATON_SESSION_HISTORIES").and_then(|count| count.parse().ok()).unwrap_or(10_000)
}

#[test]
fn whatever_comes_the_invariants_hold() {
    let choice = (any::<u8>(), any::<u8>()).prop_map(|(kind, which)| Choice { kind, which });
    let history = (any::<u8>(), prop::collection::vec(choice, 1..60));
    let config = Config { cases: histories(), failure_persistence: None, ..Config::default() };
    let reached = std::cell::RefCell::new(std::collections::BTreeSet::new());
    let run = TestRunner::new(config).run(&history, |(shape, choices)| {
        let mut rig = rig(shape);
        for choice in choices {
            let input = input(&rig, choice);
            rig.give(input);
            reached.borrow_mut().insert(rig.machine.kind());
        }
        Ok(())
    });
    run.unwrap();
    assert_eq!(reached.borrow().len(), 9, "every state that can be rested in: {:?}", reached.borrow());
}

//! The machine by itself: whole turns with tools and hooks, divided by their steps.

use std::time::Instant;

use baton_core::ids::HookRunId;
use baton_core::moment::Moment;
use baton_core::session::{
    FailurePolicy, Hook, Input, Machine, Rules, RunStatus, StateKind, StreamEnd, ToolCall, ToolFilter,
    ToolsBy,
};
use baton_core::{SessionId, Timestamp, Uuid7};
use serde_json::json;

use crate::{Figure, Goal, median};

const ROUNDS: usize = 7;
const TURNS: u32 = 2_000;
const TOOLS: u32 = 3;
const DELTAS: u32 = 20;

/// A machine and a clock that it is given.
struct Driven {
    machine: Machine,
    id: SessionId,
    steps: u32,
}

impl Driven {
    fn new() -> Driven {
        let id = SessionId::new(Uuid7::from_parts(Timestamp::nearest(1_770_000_000_000), [1; 10]));
        let hook = |name: &str| Hook {
            name: name.into(),
            command: vec!["true".into()],
            timeout_ms: 1000,
            failure_policy: FailurePolicy::FailSession,
            tool_filter: ToolFilter::AnyMutating,
        };
        let rules = Rules::new(ToolsBy::Baton, vec![hook("format"), hook("test")]);
        let mut driven = Driven { machine: Machine::new(id, rules), id, steps: 0 };
        driven.give(Input::Spawn);
        driven.give(Input::HarnessReady);
        driven
    }

    fn give(&mut self, input: Input) {
        self.steps += 1;
        let mut seed = [0; 10];
        seed[..4].copy_from_slice(&self.steps.to_be_bytes());
        let now = Timestamp::nearest(1_770_000_000_000 + i64::from(self.steps));
        std::hint::black_box(self.machine.handle(self.id, input, Moment { now, seed }));
    }

    fn open_hook(&self) -> Option<HookRunId> {
        let mut hooks = self.machine.hook_runs();
        hooks.find(|hook| !hook.status.is_terminal()).map(|hook| hook.run_id)
    }

    /// An answer that asks for tools, the tools, the hooks, and the answer to that.
    fn turn(&mut self) {
        self.give(Input::UserInput { text: "go on".into() });
        (0..DELTAS).for_each(|_| self.give(Input::StreamDelta));
        for n in 0..TOOLS {
            let call = ToolCall {
                call_id: format!("call-{n}"),
                name: "write_file".into(),
                arguments: json!({"path": "src/lib.rs", "content": "some text"}),
                mutating: true,
            };
            self.give(Input::ToolRequested { call });
        }
        self.give(Input::StreamEnded(StreamEnd::Completed { is_tree_changed: false }));
        let runs: Vec<_> = self.machine.calls().map(|(_, run)| run.run_id).collect();
        for run in runs {
            self.give(Input::ToolStarted { run });
            self.give(Input::ToolCompleted { run, status: RunStatus::Succeeded, error: None });
        }
        while let Some(run) = self.open_hook() {
            self.give(Input::HookStarted { run });
            let status = RunStatus::Succeeded;
            self.give(Input::HookCompleted { run, status, error: None, output: None });
        }
        (0..DELTAS).for_each(|_| self.give(Input::StreamDelta));
        self.give(Input::StreamEnded(StreamEnd::Completed { is_tree_changed: false }));
        assert_eq!(self.machine.kind(), StateKind::Ready, "the turn is over");
    }
}

pub(super) fn run() -> Figure {
    let round = || {
        let mut driven = Driven::new();
        let start = Instant::now();
        (0..TURNS).for_each(|_| driven.turn());
        start.elapsed().as_secs_f64() * 1e6 / f64::from(driven.steps)
    };
    let value = median((0..ROUNDS).map(|_| round()).collect());
    Figure { name: "sessions.machine_step_us", value, goal: Goal::AtMost(2.0) }
}

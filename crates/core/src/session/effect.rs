//! What is to be done once a decision is recorded.

use super::event::Stated;
use super::model::ToolCall;
use super::permission::Answer;
use super::words::RetryTarget;
use crate::ids::{HookRunId, StreamId, ToolRunId};
use crate::time::Timestamp;

/// What has become true, in this order, and what follows from it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    pub events: Vec<Stated>,
    pub effects: Vec<Effect>,
}

/// One thing to do. Whoever does it reports by an input.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    SpawnHarness,
    SendToHarness {
        stream: StreamId,
        attempt: u32,
        sent: Sent,
    },
    /// All of them, at the same time if that suits.
    ExecuteTools {
        runs: Vec<(ToolRunId, ToolCall)>,
    },
    RunHook {
        run: HookRunId,
        /// Its place in the configuration.
        hook: usize,
        attempt: u32,
    },
    /// Their processes are ended, with all that they started.
    CancelRuns {
        tools: Vec<ToolRunId>,
        hooks: Vec<HookRunId>,
    },
    AnswerPermission {
        id: String,
        answer: Answer,
    },
    SetTimer {
        at: Timestamp,
        target: RetryTarget,
    },
    /// A deny comes at this time unless somebody answers before.
    ExpirePermission {
        at: Timestamp,
        id: String,
    },
    StopHarness,
}

/// What a request consists of, besides the conversation so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sent {
    Prompt(String),
    /// The outputs of the tools that the last answer asked for, in its order.
    ToolOutputs,
    /// The same as in the attempt before.
    Again,
}

//! What happens outside and is offered to the machine.

use super::model::{PermissionKind, ToolCall};
use super::permission::Answer;
use super::words::{RetryTarget, RunStatus};
use crate::ids::{HookRunId, ToolRunId};

/// Something that happened, or that somebody asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Input {
    /// The session is to begin.
    Spawn,
    /// The agent can take input.
    HarnessReady,
    UserInput {
        text: String,
    },
    /// Text, thoughts, parts of calls. They change nothing here.
    StreamDelta,
    /// The answer has ended, well or not.
    StreamEnded(StreamEnd),
    /// The model asks for a tool; where the agent runs its own tools, it has begun with one.
    ToolRequested {
        call: ToolCall,
    },
    ToolStarted {
        run: ToolRunId,
    },
    ToolCompleted {
        run: ToolRunId,
        status: RunStatus,
        error: Option<String>,
    },
    HookStarted {
        run: HookRunId,
    },
    HookCompleted {
        run: HookRunId,
        status: RunStatus,
        error: Option<String>,
        output: Option<String>,
    },
    PermissionRequested {
        id: String,
        kind: PermissionKind,
        title: String,
        call_id: Option<String>,
    },
    /// Somebody answers: a policy, a critic, a person, or the clock.
    PermissionAnswered {
        id: String,
        answer: Answer,
        by: String,
    },
    /// A wait before another attempt is over.
    RetryTimeout {
        target: RetryTarget,
    },
    /// A person wants another attempt.
    RetryTool {
        run: ToolRunId,
    },
    RetryHook {
        run: HookRunId,
    },
    StopRequested,
    /// The agent's process is gone, or there never was one.
    HarnessExited {
        code: Option<i32>,
        /// In a few words, where it ended badly.
        message: String,
    },
}

/// How an answer ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StreamEnd {
    /// `is_tree_changed` says that files changed in a turn whose tools did not say so.
    Completed {
        is_tree_changed: bool,
    },
    Failed {
        message: String,
        retryable: bool,
    },
}

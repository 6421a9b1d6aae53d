//! The words of a session, as they stand in events and on the wire.

use crate::ids::{HookRunId, ToolRunId};
use crate::words::words;

words!(
    /// Where a session stands.
    StateKind,
    "idle, starting, ready, calling_llm, processing_response, executing_tools, post_tools_hook, error, stopping or stopped" {
        Idle = "idle",
        Starting = "starting",
        /// Waits for input.
        Ready = "ready",
        /// A request is under way; there is never a second one.
        CallingLlm = "calling_llm",
        /// The answer is whole. Passed through, never rested in.
        ProcessingResponse = "processing_response",
        ExecutingTools = "executing_tools",
        PostToolsHook = "post_tools_hook",
        Error = "error",
        Stopping = "stopping",
        Stopped = "stopped",
    }
);

words!(
    /// Where one call of a tool, or one hook, stands.
    RunStatus, "queued, running, succeeded, failed or canceled" {
        Queued = "queued",
        Running = "running",
        Succeeded = "succeeded",
        Failed = "failed",
        Canceled = "canceled",
    }
);

impl RunStatus {
    pub fn is_terminal(self) -> bool {
        match self {
            RunStatus::Queued | RunStatus::Running => false,
            RunStatus::Succeeded | RunStatus::Failed | RunStatus::Canceled => true,
        }
    }
}

words!(
    /// Why a session went from one state to another.
    Reason, "a reason of a state change" {
        UserInput = "user_input",
        StreamCompleted = "stream_completed",
        ToolsRequested = "tools_requested",
        ToolsCompleted = "tools_completed",
        HooksCompleted = "hooks_completed",
        StopRequested = "stop_requested",
        HarnessExited = "harness_exited",
        Spawned = "spawned",
        HarnessReady = "harness_ready",
        LlmFailed = "llm_failed",
        ToolFailed = "tool_failed",
        HookFailed = "hook_failed",
        Retry = "retry",
        RetriesExhausted = "retries_exhausted",
    }
);

words!(
    /// What went wrong in a session.
    ErrorCode, "a code of a session's error" {
        SessionNotFound = "session_not_found",
        StateTransitionInvalid = "state_transition_invalid",
        HarnessFailed = "harness_failed",
        ToolExecutionFailed = "tool_execution_failed",
        HookExecutionFailed = "hook_execution_failed",
        StreamingFailed = "streaming_failed",
        HookConfigInvalid = "hook_config_invalid",
        HookConfigReadFailed = "hook_config_read_failed",
    }
);

words!(
    /// Whose fault it was.
    ErrorSource, "harness, tool, hook or orchestrator" {
        Harness = "harness",
        Tool = "tool",
        Hook = "hook",
        Orchestrator = "orchestrator",
    }
);

/// What is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryTarget {
    Llm,
    Tool(ToolRunId),
    Hook(HookRunId),
}

//! What a session is made of: calls, runs, permissions, errors.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::words::{ErrorCode, ErrorSource, RunStatus};
use crate::ids::{HookRunId, ToolRunId};

/// A call of a tool, as the model asked for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    pub call_id: String,
    pub name: String,
    pub arguments: Value,
    /// Whether it may change files, history or anything else.
    pub mutating: bool,
}

/// What became of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRun {
    pub run_id: ToolRunId,
    pub call_id: String,
    pub tool_name: String,
    pub mutating: bool,
    pub status: RunStatus,
    pub attempt: u32,
    pub started_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// What became of a hook after a batch of tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookRun {
    pub run_id: HookRunId,
    pub hook_name: String,
    pub tool_run_ids: Vec<ToolRunId>,
    pub status: RunStatus,
    pub attempt: u32,
    pub started_at_ms: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at_ms: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What it printed, bounded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Something that waits for a yes, a no or a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Permission {
    /// As the agent named it, or as Baton did where the agent's name is taken.
    pub id: String,
    pub kind: PermissionKind,
    pub title: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<String>,
    pub requested_at_ms: i64,
    /// When nobody's answer becomes a no.
    pub expires_at_ms: i64,
}

crate::words::words!(
    /// What is asked for.
    PermissionKind, "tool or question" {
        Tool = "tool",
        /// A question of an agent to a person; the answer is a text.
        Question = "question",
    }
);

/// What went wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionError {
    pub code: ErrorCode,
    pub message: String,
    pub retryable: bool,
    pub source: ErrorSource,
}

// What a session says on the wire: `docs/protocol/sessions.md`, section 5. The names are those of the Rust code.
//
// A newer server may say more than stands here. Nothing of that is refused or dropped: the reducer keeps it as it came.

import type { TerminationInfo } from "./types.js";

/** Where a session stands. */
export type StateKind =
  | "idle" | "starting" | "ready" | "calling_llm" | "processing_response" | "executing_tools" | "post_tools_hook" | "error" | "stopping" | "stopped";

/** Where one call of a tool, or one hook, stands. */
export type RunStatus = "queued" | "running" | "succeeded" | "failed" | "canceled";

/** Why a session went from one state to another. */
export type Reason =
  | "user_input" | "stream_completed" | "tools_requested" | "tools_completed" | "hooks_completed" | "stop_requested" | "harness_exited"
  | "spawned" | "harness_ready" | "llm_failed" | "tool_failed" | "hook_failed" | "retry" | "retries_exhausted";

/** What became of a call of a tool. */
export interface ToolRun {
  runId: string;
  callId: string;
  toolName: string;
  mutating: boolean;
  status: RunStatus;
  attempt: number;
  startedAtMs: number;
  finishedAtMs?: number;
  /** Also beside `succeeded`: then it is the bad news of a tool that ran. */
  error?: string;
}

/** What became of a hook after a batch of tools. */
export interface HookRun {
  runId: string;
  hookName: string;
  toolRunIds: string[];
  status: RunStatus;
  attempt: number;
  startedAtMs: number;
  finishedAtMs?: number;
  error?: string;
  /** What it printed, bounded. */
  output?: string;
}

/** Something that waits for a yes, a no or a text. */
export interface Permission {
  id: string;
  kind: "tool" | "question";
  title: string;
  callId?: string;
  requestedAtMs: number;
  /** When nobody's answer becomes a no. */
  expiresAtMs: number;
}

/** What went wrong in a session. */
export interface SessionError {
  code: string;
  message: string;
  retryable: boolean;
  source: "harness" | "tool" | "hook" | "orchestrator";
}

/** What every state event has. */
export interface Stated {
  eventId: string;
  sessionId: string;
  timestampMs: number;
}

export interface StateChanged extends Stated {
  type: "state_changed";
  from: StateKind;
  to: StateKind;
  reason: Reason;
  streamId?: string;
  exitCode?: number;
}

export interface ToolLifecycle extends Stated, ToolRun {
  type: "tool_lifecycle";
}

export interface HookLifecycle extends Stated, HookRun {
  type: "hook_lifecycle";
}

export interface SessionFailed extends Stated, SessionError {
  type: "session_error";
}

/** Something failed that stops nobody. */
export interface SessionWarned extends Stated, SessionError {
  type: "session_warning";
}

export interface PermissionRequested extends Stated, Permission {
  type: "permission_requested";
}

export interface PermissionResolved extends Stated {
  type: "permission_resolved";
  id: string;
  answer: "allow" | "deny" | "canceled" | { text: string };
  by: string;
}

/** What has become true of a session, and is in the ledger. */
export type StateEvent = StateChanged | ToolLifecycle | HookLifecycle | SessionFailed | SessionWarned | PermissionRequested | PermissionResolved;

interface Streamed<Type extends string, Payload> {
  schemaVersion: string;
  eventId: string;
  sessionId: string;
  harness: string;
  streamId: string;
  /** Counted from 1 within a stream, without a gap. */
  seq: number;
  timestampMs: number;
  type: Type;
  payload: Payload;
}

/** What passes by in a turn: words, calls, numbers. */
export type StreamEvent =
  | Streamed<"text_delta" | "thinking_delta", { text: string; role: string }>
  | Streamed<"tool_call_delta", { callId: string; toolName?: string; arguments?: unknown; status?: "pending" | "running" }>
  | Streamed<"tool_call_completed", { callId: string; toolName: string; output?: unknown; error?: unknown }>
  | Streamed<"metadata", { usage?: unknown; plan?: unknown }>
  | Streamed<"status", { message: string }>
  | Streamed<"completed", { reason: string; usage?: unknown }>
  | Streamed<"error", { message: string; code?: string; recoverable?: boolean; cause?: string; resetsAt?: string }>;

/** One item of a session's stream. `at` is its position there. */
export type SessionItem =
  | { kind: "state_event"; at: number; event: StateEvent }
  | { kind: "stream_event"; at: number; event: StreamEvent }
  /** What was before is gone. `resumeFrom` is missing where nothing but the end is left. `getSession` tells how things stand. */
  | { kind: "gap"; at: number; resumeFrom: number | undefined }
  /** The last item. `terminationInfo` is missing where nobody saw the end. */
  | { kind: "ended"; at: number; terminationInfo: TerminationInfo | undefined }
  /** Something that this version does not know. */
  | { kind: "other"; at: number; name: string; event: unknown };

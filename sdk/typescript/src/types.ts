// The types of the interface: those that are generated, and those of which more is known than the description says. The latter take the place of the
// generated ones of the same name.

import type * as generated from "./generated/types.js";
import type { HookRun, Permission, SessionError, StateKind, ToolRun } from "./session.js";

export * from "./generated/types.js";

/** How a session ended, and why: `docs/protocol/sessions.md`, section 6. */
export interface TerminationInfo extends generated.TerminationInfo {
  /** `completed`: the agent ended with nothing open; `error`: it failed; `terminated`: Baton ended it, or ended before it. */
  reason: "completed" | "error" | "terminated";
  terminated_by: "agent" | "daemon";
  /** What happened, in words. This and all that follows up to `last_tool` is there where the reason is `error`. */
  message?: string;
  /** Of the agent's process, where it exited. */
  exit_code?: number;
  /** Not in lists: `getSession` has it. */
  stderr?: StderrOutput;
  /** What killed it, where something did. */
  signal?: { number: number; name: string };
  cause?: "crash" | "spawn" | "auth" | "quota" | "oom" | "timeout" | "protocol";
  /** When a usage limit ends, where that was said. */
  resets_at?: string;
  /** The tool that ran when it ended, or the last one before. */
  last_tool?: string;
  duration_ms?: number;
  max_rss_bytes?: number;
  cpu_ms?: number;
}

/** What the agent's process wrote on its standard error: all of it in `head`, or both ends where it is long. */
export interface StderrOutput extends generated.JsonObject {
  head: string;
  tail?: string;
  truncated: boolean;
  total_lines: number;
}

/** A session: its state, what it did, what it waits for, and how it ended. */
export interface Session extends generated.Session {
  state: StateKind;
  lastError?: SessionError & generated.JsonObject;
  pendingPermissions?: Permission[];
  toolRuns?: ToolRun[];
  hookRuns?: HookRun[];
  terminationInfo?: TerminationInfo;
}

export interface Sessions extends generated.Sessions {
  sessions: Session[];
}

export interface SessionState extends generated.SessionState {
  state?: StateKind;
}

/** A record of the ledger as it is stored: `docs/protocol/ledger.md`. */
export interface LedgerRecord extends generated.Record {
  v: number;
  at: string;
  trace: string;
  task?: string;
  actor: { agent: string; role: string; key?: string };
  payload: generated.JsonObject;
}

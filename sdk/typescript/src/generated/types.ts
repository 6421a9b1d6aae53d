// Made by scripts/generate.mjs from docs/reference/openapi.json. Not to be edited.

/** An object of which nothing more is said. */
export interface JsonObject {
  [key: string]: unknown;
}

/** What went wrong (RFC 9457). `baton explain CODE` has a page about it. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  code: string;
  detail?: string;
  hint?: string;
  [more: string]: unknown;
}

export interface Health {
  status: "ok";
  [more: string]: unknown;
}

/** A task: the keys of its file, and its body. */
export interface Task {
  id: string;
  title: string;
  status: Status;
  phase: string;
  priority: string;
  routing?: JsonObject;
  dependsOn?: string[];
  parentId?: string;
  lease?: Lease;
  metadata?: JsonObject;
  rev: number;
  body?: string;
  [more: string]: unknown;
}

export type Status = "backlog" | "ready" | "in-progress" | "blocked" | "review" | "done" | "cancelled" | "deadletter";

export interface Lease {
  agent: string;
  acquiredAt?: string;
  expiresAt: string;
  renewCount?: number;
  fence: number;
  [more: string]: unknown;
}

export interface Tasks {
  tasks: Task[];
  /** Where the next page begins; absent on the last one. */
  next?: string;
  [more: string]: unknown;
}

export interface Claimed {
  taskId: string;
  agent: string;
  fence: number;
  expiresAt: string;
  runId: string;
  [more: string]: unknown;
}

export interface Beaten {
  taskId: string;
  expiresAt: string;
  [more: string]: unknown;
}

/** A message of AOF/1; what it must be is in docs/protocol/messages.md. */
export type Message = JsonObject;

export interface Sent {
  accepted: boolean;
  reason?: string;
  detail?: string;
  events: string[];
  position: number;
  [more: string]: unknown;
}

export interface Submitted {
  accepted: boolean;
  error?: string;
  phase?: string;
  next_phase?: string;
  warnings?: string[];
  [more: string]: unknown;
}

/** How a session ended, and why. */
export interface TerminationInfo {
  reason: string;
  terminated_by?: string;
  message?: string;
  exit_code?: number | null;
  stderr?: JsonObject;
  [more: string]: unknown;
}

export interface Session {
  id: string;
  agent: string;
  harness: string;
  state: string;
  taskId?: string;
  lastError?: JsonObject;
  pendingPermissions?: unknown[];
  toolRuns?: unknown[];
  hookRuns?: unknown[];
  terminationInfo?: TerminationInfo;
  [more: string]: unknown;
}

export interface SessionState {
  id: string;
  state?: string;
  [more: string]: unknown;
}

export interface Sessions {
  sessions: Session[];
  [more: string]: unknown;
}

/** An event as it is stored; docs/protocol/ledger.md describes it. */
export interface Record {
  id: string;
  pos: number;
  seq: number;
  type: string;
  [more: string]: unknown;
}

export interface Traces {
  traces: Array<{
    trace: string;
    events: number;
    head: string;
    closed: boolean;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

export interface TraceOpened {
  trace: string;
  [more: string]: unknown;
}

export interface Trace {
  trace: string;
  closed: boolean;
  size: number;
  events: Record[];
  /** `from` of the next page; absent on the last one. */
  next?: number;
  [more: string]: unknown;
}

export interface Runs {
  taskId: string;
  runs: JsonObject[];
  [more: string]: unknown;
}

/** One event, or an array of them: {type, payload, artifacts?, seen?}. */
export type Offered = JsonObject | unknown[];

export interface Appended {
  trace: string;
  events: JsonObject[];
  [more: string]: unknown;
}

export interface Report {
  verdict: "pass" | "pass-with-warnings" | "fail" | "unknown";
  subject?: JsonObject;
  checks: unknown[];
  findings: unknown[];
  [more: string]: unknown;
}

export interface Proof {
  proof: unknown;
  [more: string]: unknown;
}

export interface Checkpoint {
  checkpoint: string;
  size: number;
  root: string;
  [more: string]: unknown;
}

export interface Artifact {
  sha256: string;
  bytes: number;
  [more: string]: unknown;
}

export interface Agents {
  agents: Array<{
    id: string;
    name: string;
    harness: string;
    installed?: boolean;
    sessions?: number;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

export interface Nodes {
  nodes: JsonObject[];
  [more: string]: unknown;
}

/** The description of this interface (OpenAPI 3.1). */
export type Document = JsonObject;

/** What `listTasks` may be asked for. */
export interface ListTasksQuery {
  /** Only tasks with this status; may stand several times. */
  status?: string[];
  /** How many, at most. */
  limit?: number;
  /** Where to go on: `next` of the page before. */
  cursor?: string;
}

/** What `createTask` takes. */
export interface CreateTaskBody {
  /** What is to be done, in one line. */
  title: string;
  /** The text of the task, in Markdown. */
  body?: string;
  /** Where it begins; backlog, if nothing is said. */
  status?: "backlog" | "ready";
  /** Its first phase. */
  phase?: "DRAFT" | "IMPLEMENTATION";
  /** How urgent it is. */
  priority?: "critical" | "high" | "normal" | "low";
  /** Whom it is for: agent, role, tags. */
  routing?: JsonObject;
  /** Tasks that come first. */
  dependsOn?: string[];
  /** The task that it is a part of. */
  parentId?: string;
  /** Whether its work is recorded role by role. */
  guarded?: boolean;
  /** Keys of your own. */
  metadata?: JsonObject;
}

/** What `editTask` takes. */
export interface EditTaskBody {
  /** What is to be done, in one line. */
  title?: string;
  /** The text of the task, in Markdown. */
  body?: string;
  /** How urgent it is. */
  priority?: "critical" | "high" | "normal" | "low";
  /** Whom it is for: agent, role, tags. */
  routing?: JsonObject;
  /** Tasks that come first. */
  dependsOn?: string[];
  /** The task that it is a part of. */
  parentId?: string;
  /** When it may be handed out at the earliest. */
  notBefore?: string;
  /** Keys of your own. */
  metadata?: JsonObject;
}

/** What `moveTask` takes. */
export interface MoveTaskBody {
  /** The status that it is to have. */
  to: "backlog" | "ready" | "in-progress" | "blocked" | "review" | "done" | "cancelled" | "deadletter";
  /** Why, in a few words. */
  reason: string;
}

/** What `claimTask` takes. */
export interface ClaimTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** For how long, such as 10m. */
  ttl?: string;
}

/** What `beatTask` takes. */
export interface BeatTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** The fence that the claim gave. */
  fence: number;
}

/** What `releaseTask` takes. */
export interface ReleaseTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** The fence that the claim gave. */
  fence: number;
}

/** What `logTask` takes. */
export interface LogTaskBody {
  /** What to write down. */
  text: string;
}

/** What `approveTask` takes. */
export interface ApproveTaskBody {
  /** Through every phase that is left. */
  all?: boolean;
}

/** What `rejectTask` takes. */
export interface RejectTaskBody {
  /** Why, in a few words. */
  reason: string;
}

/** What `submitExitSignal` takes. */
export interface SubmitExitSignalBody {
  /** The task whose phase ends. */
  task: string;
  /** The session that it comes from. */
  session?: string;
  /** The signal, as docs/protocol/exit-signal.md describes it. */
  signal: JsonObject;
}

/** What `reportCi` takes. */
export interface ReportCiBody {
  /** The task that was checked. */
  task: string;
  /** Whether all is well. */
  passed: boolean;
  /** Why not, in a few words. */
  reason?: string;
  /** What the checks printed. */
  log?: string;
}

/** What `listSessions` may be asked for. */
export interface ListSessionsQuery {
  /** Only those that run. */
  live?: boolean;
}

/** What `startSession` takes. */
export interface StartSessionBody {
  /** The agent, by the name that it has in the configuration. */
  agent: string;
  /** Where it works; the workspace, if nothing is said. */
  cwd?: string;
  /** A session that has ended, whose conversation goes on. */
  resume?: string;
}

/** What `sendInput` takes. */
export interface SendInputBody {
  /** What is to be done. */
  text: string;
}

/** What `answerPermission` takes. */
export interface AnswerPermissionBody {
  /** allow, deny, or a text for a question. */
  answer: string;
}

/** What `openTrace` takes. */
export interface OpenTraceBody {
  /** What it is about. */
  title?: string;
}

/** What `getTrace` may be asked for. */
export interface GetTraceQuery {
  /** The first event of the page, by its number in the trace. */
  from?: number;
  /** How many, at most. */
  limit?: number;
}

/** What `getTaskTrace` may be asked for. */
export interface GetTaskTraceQuery {
  /** The first event of the page, by its number in the trace. */
  from?: number;
  /** How many, at most. */
  limit?: number;
}

/** What `appendEvents` may be asked for. */
export interface AppendEventsQuery {
  /** In whose name. */
  agent: string;
  /** In which role. */
  role?: "planner" | "executor" | "critic" | "auditor" | "operator";
}

/** What `exportTrace` may be asked for. */
export interface ExportTraceQuery {
  /** Whether artifacts come along; true, if nothing is said. */
  artifacts?: boolean;
}

/** What `followEvents` may be asked for. */
export interface FollowEventsQuery {
  /** Events after this position; all, if nothing is said. */
  since?: number;
  /** Only events of this type; may stand several times. */
  type?: string[];
  /** Only events about this task. */
  task?: string;
  /** Whether to wait for more at the end; true, if nothing is said. */
  follow?: boolean;
}

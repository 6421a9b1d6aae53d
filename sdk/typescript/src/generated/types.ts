// Made by scripts/generate.mjs from docs/reference/openapi.json. Not to be edited.

/** An object of which nothing more is said. */
export interface JsonObject {
  [key: string]: unknown;
}

export interface AcpServers {
  servers: Array<{
    agent: string;
    createdAtMs: number;
    serverId: string;
    /** What Baton calls the life of its process. */
    sessionId: string;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

export interface Agents {
  agents: Array<{
    harness: string;
    id: string;
    installed?: boolean;
    name: string;
    sessions?: number;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

export interface Allowed {
  allowed: boolean;
  code?: string;
  /** Why not, in the words that it would be refused with. */
  why?: string;
  [more: string]: unknown;
}

export interface Appended {
  events: JsonObject[];
  trace: string;
  [more: string]: unknown;
}

export interface Artifact {
  bytes: number;
  sha256: string;
  [more: string]: unknown;
}

export interface Beaten {
  expiresAt: string;
  taskId: string;
  [more: string]: unknown;
}

/** What is shown of a task at a glance, beside the keys of its file; what there is not is absent. */
export interface Card {
  /** The proposal, intent or claim of that run that waits for a person's review. */
  asks?: string;
  beatTtlMs?: number;
  /** The trace of the guarded run that is open. */
  guard?: string;
  /** When whoever holds it is taken for dead unless it beats again. */
  heartbeatBy?: string;
  leaseTtlMs?: number;
  /** The last attempt. */
  run?: {
    agent: string;
    endedAt?: string;
    failed?: boolean;
    id: string;
    reason?: string;
    startedAt: string;
    [more: string]: unknown;
  };
  /** The session that works on it. */
  session?: string;
  /** Of the last completion report. */
  tests?: {
    failed: number;
    passed: number;
    total: number;
    [more: string]: unknown;
  };
  /** What the last guarded run came to. */
  verified?: {
    state: string;
    trace: string;
    verdict?: string;
    [more: string]: unknown;
  };
  [more: string]: unknown;
}

export interface Checkpoint {
  checkpoint: string;
  root: string;
  size: number;
  [more: string]: unknown;
}

export interface Claimed {
  agent: string;
  expiresAt: string;
  fence: number;
  heartbeatBy?: string;
  runId: string;
  taskId: string;
  [more: string]: unknown;
}

/** The description of this interface (OpenAPI 3.1). */
export type Document = JsonObject;

export interface Health {
  /** What the token of the request opens, where it has one. */
  scope?: string;
  status: "ok";
  [more: string]: unknown;
}

/** A message of JSON-RPC 2.0. */
export type JsonRpc = JsonObject;

export interface Lease {
  acquiredAt?: string;
  agent: string;
  expiresAt: string;
  fence: number;
  renewCount?: number;
  [more: string]: unknown;
}

/** A message of AOF/1; what it must be is in docs/protocol/messages.md. */
export type Message = JsonObject;

export interface Nodes {
  nodes: Array<{
    /** Which start of which machine it is. */
    id: string;
    pid: number;
    sessions: number;
    version: string;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

/** One event, or an array of them: {type, payload, artifacts?, seen?}. */
export type Offered = JsonObject | unknown[];

/** What went wrong (RFC 9457). `baton explain CODE` has a page about it. */
export interface Problem {
  code: string;
  detail?: string;
  hint?: string;
  status: number;
  title: string;
  type: string;
  [more: string]: unknown;
}

export interface Proof {
  proof: unknown;
  [more: string]: unknown;
}

/** An event as it is stored; docs/protocol/ledger.md describes it. */
export interface Record {
  actor?: JsonObject;
  at?: string;
  id: string;
  payload?: JsonObject;
  pos: number;
  seq: number;
  task?: string;
  trace?: string;
  type: string;
  v?: number;
  [more: string]: unknown;
}

export interface Report {
  checks: unknown[];
  findings: unknown[];
  subject?: JsonObject;
  verdict: "pass" | "pass-with-warnings" | "fail" | "unknown";
  [more: string]: unknown;
}

/** One message of JSON-RPC 2.0; docs/protocol/acp-http.md describes them. */
export interface RpcMessage {
  error?: JsonObject;
  id?: string | number | null;
  jsonrpc?: "2.0";
  method?: string;
  params?: unknown;
  result?: unknown;
  [more: string]: unknown;
}

export interface Runs {
  runs: JsonObject[];
  taskId: string;
  [more: string]: unknown;
}

export interface Sent {
  accepted: boolean;
  detail?: unknown;
  events: string[];
  position: number;
  reason?: string;
  [more: string]: unknown;
}

export interface ServerStatus {
  agents: Array<{
    command?: string;
    /** Why it cannot be begun, as far as can be seen. */
    detail?: string;
    /** Its sessions that ended with an error, and its attempts at tasks that failed although their sessions did not, or that had none; of all events in `counted`. */
    failures?: number;
    harness: string;
    installed: boolean;
    lastFailureAt?: string;
    /** When a session of it was last begun, or it last took a task. */
    lastStartAt?: string;
    maxSessions?: number;
    name: string;
    /** What it said that it is when it last began, with its version; of a model, its name. Absent until it has begun once, and where it says nothing. */
    program?: string;
    sessions: number;
    [more: string]: unknown;
  }>;
  /** As `baton doctor --json` has them. */
  checks: Array<{
    advice?: string;
    check: string;
    code?: string;
    detail: string;
    fix?: string;
    see?: string;
    status: "ok" | "warn" | "fail";
    [more: string]: unknown;
  }>;
  /** How many of the ledger's events what is said of agents and of refused messages is made of. A server that has just begun reads for half a second in each request until it has all of them. */
  counted: {
    of: number;
    to: number;
    [more: string]: unknown;
  };
  ledger: {
    head?: string;
    key?: string;
    /** What the verifier said last, since the server began. */
    lastVerified?: {
      at: string;
      events: number;
      verdict: string;
      [more: string]: unknown;
    };
    root?: string;
    size: number;
    /** Why it does not read, where it does not. */
    unread?: string;
    [more: string]: unknown;
  };
  now: string;
  origin: string;
  /** Messages of AOF/1 that were refused and recorded, by reason. */
  refused: Array<{
    count: number;
    reason: string;
    [more: string]: unknown;
  }>;
  scheduler: {
    isDispatching: boolean;
    lastAt?: string;
    leases: Array<{
      agent: string;
      expiresAt: string;
      heartbeatBy?: string;
      taskId: string;
      [more: string]: unknown;
    }>;
    maxConcurrent: number;
    oldestReadyAt?: string;
    pollMs: number;
    ready: number;
    running: number;
    [more: string]: unknown;
  };
  startedAt: string;
  store: {
    bytes?: number;
    freeBytes?: number;
    /** What is behind the events that were answered for: those that a power cut could take, which are none where `durability` is `commit`, and those that no signed checkpoint covers yet. */
    journal?: {
      durability: "commit" | "interval" | "none";
      unsigned: number;
      unsynced: number;
      [more: string]: unknown;
    };
    kind: "embedded";
    /** What is behind the ledger: events that the board had not taken in when this was asked for, tasks whose files are to be written, since when the first of them waits, and those of them that could not be written. */
    projection: {
      events: number;
      failed: number;
      tasks: number;
      waitingMs: number;
      [more: string]: unknown;
    };
    [more: string]: unknown;
  };
  version: string;
  [more: string]: unknown;
}

export interface Session {
  agent: string;
  harness: string;
  hookRuns?: unknown[];
  id: string;
  lastError?: JsonObject;
  pendingPermissions?: unknown[];
  state: string;
  taskId?: string;
  terminationInfo?: TerminationInfo;
  toolRuns?: unknown[];
  [more: string]: unknown;
}

export interface SessionState {
  id: string;
  state?: string;
  [more: string]: unknown;
}

export interface Sessions {
  /** Where the next page begins; absent on the last one. */
  next?: string;
  sessions: Session[];
  [more: string]: unknown;
}

export type Status = "backlog" | "ready" | "in-progress" | "blocked" | "review" | "done" | "cancelled" | "deadletter";

export interface Submitted {
  accepted: boolean;
  error?: string;
  next_phase?: string;
  phase?: string;
  warnings?: string[];
  [more: string]: unknown;
}

/** A task: the keys of its file, and its body. */
export interface Task {
  attempts?: number;
  body?: string;
  card?: Card;
  createdAt?: string;
  dependsOn?: string[];
  id: string;
  lease?: Lease;
  metadata?: JsonObject;
  parentId?: string;
  phase: string;
  priority: string;
  rev: number;
  routing?: JsonObject;
  status: Status;
  title: string;
  traceId?: string;
  updatedAt?: string;
  [more: string]: unknown;
}

export interface TaskActions {
  approve: Allowed;
  /** One for every status but the present one. */
  moves: Array<{
    allowed: boolean;
    code?: string;
    to: Status;
    why?: string;
    [more: string]: unknown;
  }>;
  reject: Allowed;
  retry: Allowed;
  rev: number;
  taskId: string;
  [more: string]: unknown;
}

export interface TaskChanges {
  /** The commit that it is compared with. */
  base?: string;
  branch?: string;
  files: Array<{
    added: number;
    isBinary: boolean;
    /** Whether the patch is not whole, or left out for want of room. */
    isTruncated: boolean;
    oldPath?: string;
    /** A unified diff; absent where there is nothing to show line by line. */
    patch?: string;
    path: string;
    removed: number;
    status: "added" | "modified" | "deleted" | "renamed" | "untracked";
    [more: string]: unknown;
  }>;
  /** Whether there is more than this. */
  isTruncated: boolean;
  /** Why there is nothing to show, or what is shown instead. */
  note?: string;
  path?: string;
  taskId: string;
  where: "worktree" | "workspace" | "none";
  [more: string]: unknown;
}

export interface TaskFiles {
  files: Array<{
    bytes: number;
    isTruncated: boolean;
    /** Relative to the data directory. */
    name: string;
    /** Absent where it is no UTF-8. */
    text?: string;
    [more: string]: unknown;
  }>;
  /** Whether there is more than this. */
  isTruncated?: boolean;
  taskId: string;
  [more: string]: unknown;
}

export interface Tasks {
  /** Where the next page begins; absent on the last one. */
  next?: string;
  tasks: Task[];
  [more: string]: unknown;
}

/** How a session ended, and why. */
export interface TerminationInfo {
  cause?: string;
  cpu_ms?: number;
  duration_ms?: number;
  exit_code?: number;
  last_tool?: string;
  max_rss_bytes?: number;
  message?: string;
  reason: string;
  resets_at?: string;
  signal?: JsonObject;
  /** Absent in lists. */
  stderr?: JsonObject;
  terminated_by?: string;
  [more: string]: unknown;
}

export interface Trace {
  closed: boolean;
  events: Record[];
  /** `from` of the next page; absent on the last one. */
  next?: number;
  size: number;
  trace: string;
  [more: string]: unknown;
}

export interface TraceOpened {
  trace: string;
  [more: string]: unknown;
}

export interface Traces {
  /** Where the ledger does not read any more: what comes after is not listed. */
  damage?: {
    pos: number;
    why: string;
    [more: string]: unknown;
  };
  traces: Array<{
    closed: boolean;
    events: number;
    head: string;
    trace: string;
    [more: string]: unknown;
  }>;
  [more: string]: unknown;
}

export interface Transcript {
  /** Whether the beginning is left out. */
  isTruncated: boolean;
  /** What was said and what happened, in order: `at`, `kind`, and what belongs to that. */
  lines: JsonObject[];
  sessionId: string;
  [more: string]: unknown;
}

/** What `reportCi` takes. */
export interface ReportCiBody {
  /** What the checks printed. */
  log?: string;
  /** Whether all is well. */
  passed: boolean;
  /** Why not, in a few words. */
  reason?: string;
  /** The task that was checked. */
  task: string;
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

/** What `submitExitSignal` takes. */
export interface SubmitExitSignalBody {
  /** The session that it comes from. */
  session?: string;
  /** The signal, as docs/protocol/exit-signal.md describes it. */
  signal: JsonObject;
  /** The task whose phase ends. */
  task: string;
}

/** What `listSessions` may be asked for. */
export interface ListSessionsQuery {
  /** Only those that run. */
  live?: boolean;
  /** Only this session; may stand several times. */
  id?: string[];
  /** How many, at most. */
  limit?: number;
  /** Where to go on: `next` of the page before. */
  cursor?: string;
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

/** What `getTranscript` may be asked for. */
export interface GetTranscriptQuery {
  /** Only lines of this kind, such as `prompt`; may stand several times. */
  kind?: string[];
}

/** What `listTasks` may be asked for. */
export interface ListTasksQuery {
  /** Only tasks with this status; may stand several times. */
  status?: string[];
  /** Only this task; may stand several times. */
  id?: string[];
  /** How many, at most. */
  limit?: number;
  /** Where to go on: `next` of the page before. */
  cursor?: string;
}

/** What `createTask` takes. */
export interface CreateTaskBody {
  /** The text of the task, in Markdown. */
  body?: string;
  /** Tasks that come first. */
  dependsOn?: string[];
  /** Whether its work is recorded role by role. */
  guarded?: boolean;
  /** Keys of your own. */
  metadata?: JsonObject;
  /** The task that it is a part of. */
  parentId?: string;
  /** Its first phase. */
  phase?: "DRAFT" | "IMPLEMENTATION";
  /** How urgent it is. */
  priority?: "critical" | "high" | "normal" | "low";
  /** Whom it is for: agent, role, tags. */
  routing?: JsonObject;
  /** Where it begins; backlog, if nothing is said. */
  status?: "backlog" | "ready";
  /** What is to be done, in one line. */
  title: string;
}

/** What `editTask` takes. */
export interface EditTaskBody {
  /** The text of the task, in Markdown. */
  body?: string;
  /** Tasks that come first. */
  dependsOn?: string[];
  /** Keys of your own. */
  metadata?: JsonObject;
  /** When it may be handed out at the earliest. */
  notBefore?: string;
  /** The task that it is a part of. */
  parentId?: string;
  /** How urgent it is. */
  priority?: "critical" | "high" | "normal" | "low";
  /** Whom it is for: agent, role, tags. */
  routing?: JsonObject;
  /** What is to be done, in one line. */
  title?: string;
}

/** What `approveTask` takes. */
export interface ApproveTaskBody {
  /** Through every phase that is left. */
  all?: boolean;
}

/** What `beatTask` takes. */
export interface BeatTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** The fence that the claim gave. */
  fence: number;
}

/** What `claimTask` takes. */
export interface ClaimTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** For how long, such as 10m. */
  ttl?: string;
}

/** What `logTask` takes. */
export interface LogTaskBody {
  /** What to write down. */
  text: string;
}

/** What `rejectTask` takes. */
export interface RejectTaskBody {
  /** Why, in a few words. */
  reason: string;
}

/** What `releaseTask` takes. */
export interface ReleaseTaskBody {
  /** The agent that holds the task. */
  agent: string;
  /** The fence that the claim gave. */
  fence: number;
}

/** What `getTaskTrace` may be asked for. */
export interface GetTaskTraceQuery {
  /** The first event of the page, by its number in the trace. */
  from?: number;
  /** How many, at most. */
  limit?: number;
}

/** What `moveTask` takes. */
export interface MoveTaskBody {
  /** Why, in a few words. */
  reason: string;
  /** The status that it is to have. */
  to: "backlog" | "ready" | "in-progress" | "blocked" | "review" | "done" | "cancelled" | "deadletter";
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

/** What `abortTrace` takes. */
export interface AbortTraceBody {
  /** Why, in a few words. */
  reason: string;
  /** The number of the last event that was seen; where the trace has moved on, it is not aborted. */
  seen?: number;
}

/** What `exportTrace` may be asked for. */
export interface ExportTraceQuery {
  /** Whether artifacts come along; true, if nothing is said. */
  artifacts?: boolean;
  /** What it is: a bundle, or an attestation in each line; a bundle, if nothing is said. */
  format?: "bundle" | "in-toto";
}

/** What `appendEvents` may be asked for. */
export interface AppendEventsQuery {
  /** In whose name. */
  agent: string;
  /** In which role. */
  role?: "planner" | "executor" | "critic" | "auditor" | "operator";
}

/** What `reviewTrace` takes. */
export interface ReviewTraceBody {
  /** The proposal_id, the intent_id or the claim_id. */
  id: string;
  /** Why, in a few words. */
  reason: string;
  /** What is thought of it. */
  verdict: "approve" | "block";
}

// Made by scripts/generate.mjs from docs/reference/openapi.json. Not to be edited.

import type { Arguments, Bytes, CallOptions, Operation } from "../call.js";
import type { AbortTraceBody, Agents, AnswerPermissionBody, AppendEventsQuery, Appended, ApproveTaskBody, Artifact, BeatTaskBody, Beaten, Checkpoint, ClaimTaskBody, Claimed, CreateTaskBody, Document, EditTaskBody, ExportTraceQuery, GetTaskTraceQuery, GetTraceQuery, GetTranscriptQuery, Health, ListSessionsQuery, ListTasksQuery, LogTaskBody, Message, MoveTaskBody, Nodes, Offered, OpenTraceBody, Proof, RejectTaskBody, ReleaseTaskBody, Report, ReportCiBody, ReviewTraceBody, Runs, SendInputBody, Sent, ServerStatus, Session, SessionState, Sessions, StartSessionBody, SubmitExitSignalBody, Submitted, Task, TaskActions, TaskChanges, TaskFiles, Tasks, Trace, TraceOpened, Traces, Transcript } from "../types.js";

/** Every operation of the interface, by its name. */
export const OPERATIONS = {
  isAlive: { method: "GET", path: "/healthz" },
  getMetrics: { method: "GET", path: "/metrics", answer: "text" },
  isReady: { method: "GET", path: "/readyz" },
  listAgents: { method: "GET", path: "/v1/agents" },
  getArtifact: { method: "GET", path: "/v1/artifacts/{sha256}", answer: "bytes" },
  putArtifact: { method: "PUT", path: "/v1/artifacts/{sha256}", body: "bytes" },
  getCheckpoint: { method: "GET", path: "/v1/checkpoint" },
  reportCi: { method: "POST", path: "/v1/ci-reports", body: "json" },
  followEvents: { method: "GET", path: "/v1/events", answer: "events" },
  proveEvent: { method: "GET", path: "/v1/events/{id}/proof" },
  submitExitSignal: { method: "POST", path: "/v1/exit-signals", body: "json" },
  getHealth: { method: "GET", path: "/v1/health" },
  verifyLedger: { method: "POST", path: "/v1/ledger/verify", body: "empty" },
  sendMessage: { method: "POST", path: "/v1/messages", body: "json" },
  listNodes: { method: "GET", path: "/v1/nodes" },
  getDescription: { method: "GET", path: "/v1/openapi.json" },
  listSessions: { method: "GET", path: "/v1/sessions" },
  startSession: { method: "POST", path: "/v1/sessions", body: "json" },
  getSession: { method: "GET", path: "/v1/sessions/{id}" },
  followSession: { method: "GET", path: "/v1/sessions/{id}/events", answer: "events" },
  retryHook: { method: "POST", path: "/v1/sessions/{id}/hooks/{run}/retry", body: "empty" },
  sendInput: { method: "POST", path: "/v1/sessions/{id}/input", body: "json" },
  answerPermission: { method: "POST", path: "/v1/sessions/{id}/permissions/{req}", body: "json" },
  stopSession: { method: "POST", path: "/v1/sessions/{id}/stop", body: "empty" },
  retryTool: { method: "POST", path: "/v1/sessions/{id}/tools/{run}/retry", body: "empty" },
  getTranscript: { method: "GET", path: "/v1/sessions/{id}/transcript" },
  getStatus: { method: "GET", path: "/v1/status" },
  listTasks: { method: "GET", path: "/v1/tasks" },
  createTask: { method: "POST", path: "/v1/tasks", body: "json" },
  getTask: { method: "GET", path: "/v1/tasks/{id}" },
  editTask: { method: "PATCH", path: "/v1/tasks/{id}", body: "json" },
  getTaskActions: { method: "GET", path: "/v1/tasks/{id}/actions" },
  approveTask: { method: "POST", path: "/v1/tasks/{id}/approve", body: "json" },
  beatTask: { method: "POST", path: "/v1/tasks/{id}/beat", body: "json" },
  getTaskChanges: { method: "GET", path: "/v1/tasks/{id}/changes" },
  claimTask: { method: "POST", path: "/v1/tasks/{id}/claim", body: "json" },
  getTaskFiles: { method: "GET", path: "/v1/tasks/{id}/files" },
  logTask: { method: "POST", path: "/v1/tasks/{id}/log", body: "json" },
  rejectTask: { method: "POST", path: "/v1/tasks/{id}/reject", body: "json" },
  releaseTask: { method: "POST", path: "/v1/tasks/{id}/release", body: "json" },
  retryTask: { method: "POST", path: "/v1/tasks/{id}/retry", body: "empty" },
  getTaskRuns: { method: "GET", path: "/v1/tasks/{id}/runs" },
  getTaskTrace: { method: "GET", path: "/v1/tasks/{id}/trace" },
  moveTask: { method: "POST", path: "/v1/tasks/{id}/transition", body: "json" },
  listTraces: { method: "GET", path: "/v1/traces" },
  openTrace: { method: "POST", path: "/v1/traces", body: "json" },
  getTrace: { method: "GET", path: "/v1/traces/{id}" },
  abortTrace: { method: "POST", path: "/v1/traces/{id}/abort", body: "json" },
  exportTrace: { method: "GET", path: "/v1/traces/{id}/bundle", answer: "bytes" },
  appendEvents: { method: "POST", path: "/v1/traces/{id}/events", body: "json" },
  reviewTrace: { method: "POST", path: "/v1/traces/{id}/reviews", body: "json" },
  verifyTrace: { method: "POST", path: "/v1/traces/{id}/verify", body: "empty" },
  verifyBundle: { method: "POST", path: "/v1/verify", body: "bytes" },
} as const satisfies { readonly [id: string]: Operation };

/** A method for each operation that is answered at once. */
export abstract class Operations {
  /** Sends a request, and gives what it was answered with. */
  protected abstract call<T>(operation: Operation, given: Arguments, options: CallOptions): Promise<T>;

  /** Whether the process answers. Needs no token and says nothing else. */
  isAlive(options: CallOptions = {}): Promise<Health> {
    return this.call<Health>(OPERATIONS.isAlive, { path: [] }, options);
  }

  /** What is counted, as Prometheus reads it. */
  getMetrics(options: CallOptions = {}): Promise<string> {
    return this.call<string>(OPERATIONS.getMetrics, { path: [] }, options);
  }

  /** Whether requests are taken: the ledger is open and the server does not end. */
  isReady(options: CallOptions = {}): Promise<Health> {
    return this.call<Health>(OPERATIONS.isReady, { path: [] }, options);
  }

  /** The agents of the configuration. */
  listAgents(options: CallOptions = {}): Promise<Agents> {
    return this.call<Agents>(OPERATIONS.listAgents, { path: [] }, options);
  }

  /** The bytes that have this digest. */
  getArtifact(sha256: string, options: CallOptions = {}): Promise<Uint8Array> {
    return this.call<Uint8Array>(OPERATIONS.getArtifact, { path: [sha256] }, options);
  }

  /** Stores bytes under their digest. */
  putArtifact(sha256: string, body: Bytes, options: CallOptions = {}): Promise<Artifact> {
    return this.call<Artifact>(OPERATIONS.putArtifact, { path: [sha256], body }, options);
  }

  /** The ledger's last word about itself, signed. */
  getCheckpoint(options: CallOptions = {}): Promise<Checkpoint> {
    return this.call<Checkpoint>(OPERATIONS.getCheckpoint, { path: [] }, options);
  }

  /** Takes the verdict of CI about a task that waits for it. */
  reportCi(body: ReportCiBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.reportCi, { path: [], body }, options);
  }

  /** A proof that an event is in the ledger, of a few lines. */
  proveEvent(id: string, options: CallOptions = {}): Promise<Proof> {
    return this.call<Proof>(OPERATIONS.proveEvent, { path: [id] }, options);
  }

  /** Takes the signal with which an agent ends a phase. */
  submitExitSignal(body: SubmitExitSignalBody, options: CallOptions = {}): Promise<Submitted> {
    return this.call<Submitted>(OPERATIONS.submitExitSignal, { path: [], body }, options);
  }

  /** Whether the server answers, and the token is good, and for what. */
  getHealth(options: CallOptions = {}): Promise<Health> {
    return this.call<Health>(OPERATIONS.getHealth, { path: [] }, options);
  }

  /** Verifies the whole ledger, as `baton verify` does. A verdict of fail is an answer, too; `getStatus` tells of the last. */
  verifyLedger(options: CallOptions = {}): Promise<Report> {
    return this.call<Report>(OPERATIONS.verifyLedger, { path: [] }, options);
  }

  /** Routes one message of AOF/1. What is refused is answered with 422 and the reason. */
  sendMessage(body: Message, options: CallOptions = {}): Promise<Sent> {
    return this.call<Sent>(OPERATIONS.sendMessage, { path: [], body }, options);
  }

  /** The processes that work on this board: this one. */
  listNodes(options: CallOptions = {}): Promise<Nodes> {
    return this.call<Nodes>(OPERATIONS.listNodes, { path: [] }, options);
  }

  /** The description of this interface. */
  getDescription(options: CallOptions = {}): Promise<Document> {
    return this.call<Document>(OPERATIONS.getDescription, { path: [] }, options);
  }

  /** Sessions, the newest first, page by page. What one wrote on its standard error is with the session itself. */
  listSessions(query: ListSessionsQuery = {}, options: CallOptions = {}): Promise<Sessions> {
    return this.call<Sessions>(OPERATIONS.listSessions, { path: [], query: { ...query } }, options);
  }

  /** Starts an agent without a task. Answered once it takes input, or has ended. */
  startSession(body: StartSessionBody, options: CallOptions = {}): Promise<Session> {
    return this.call<Session>(OPERATIONS.startSession, { path: [], body }, options);
  }

  /** A session: its state, what it did, what it waits for, and how it ended. */
  getSession(id: string, options: CallOptions = {}): Promise<Session> {
    return this.call<Session>(OPERATIONS.getSession, { path: [id] }, options);
  }

  /** Runs a hook again that failed. */
  retryHook(id: string, run: string, options: CallOptions = {}): Promise<SessionState> {
    return this.call<SessionState>(OPERATIONS.retryHook, { path: [id, run] }, options);
  }

  /** Sends a session a prompt. */
  sendInput(id: string, body: SendInputBody, options: CallOptions = {}): Promise<SessionState> {
    return this.call<SessionState>(OPERATIONS.sendInput, { path: [id], body }, options);
  }

  /** Answers what a session asks for. The first answer counts. */
  answerPermission(id: string, req: string, body: AnswerPermissionBody, options: CallOptions = {}): Promise<SessionState> {
    return this.call<SessionState>(OPERATIONS.answerPermission, { path: [id, req], body }, options);
  }

  /** Ends a session and all that it started. */
  stopSession(id: string, options: CallOptions = {}): Promise<Session> {
    return this.call<Session>(OPERATIONS.stopSession, { path: [id] }, options);
  }

  /** Runs a tool again that failed. */
  retryTool(id: string, run: string, options: CallOptions = {}): Promise<SessionState> {
    return this.call<SessionState>(OPERATIONS.retryTool, { path: [id, run] }, options);
  }

  /** What was said in a session, also when it is over; of a long one the end. */
  getTranscript(id: string, query: GetTranscriptQuery = {}, options: CallOptions = {}): Promise<Transcript> {
    return this.call<Transcript>(OPERATIONS.getTranscript, { path: [id], query: { ...query } }, options);
  }

  /** Whether all is well: agents, what waits, the ledger, what was refused, and what `baton doctor` says. */
  getStatus(options: CallOptions = {}): Promise<ServerStatus> {
    return this.call<ServerStatus>(OPERATIONS.getStatus, { path: [] }, options);
  }

  /** Tasks in the order of their ids, page by page. */
  listTasks(query: ListTasksQuery = {}, options: CallOptions = {}): Promise<Tasks> {
    return this.call<Tasks>(OPERATIONS.listTasks, { path: [], query: { ...query } }, options);
  }

  /** Makes a task. */
  createTask(body: CreateTaskBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.createTask, { path: [], body }, options);
  }

  /** A task with its text. The ETag is for If-Match. */
  getTask(id: string, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.getTask, { path: [id] }, options);
  }

  /** Changes fields of a task, as somebody who edits its file would. */
  editTask(id: string, body: EditTaskBody = {}, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.editTask, { path: [id], body }, options);
  }

  /** What a person may do to a task now, and why not where they may not. Nothing is done. */
  getTaskActions(id: string, options: CallOptions = {}): Promise<TaskActions> {
    return this.call<TaskActions>(OPERATIONS.getTaskActions, { path: [id] }, options);
  }

  /** Says yes to what waits for a review. */
  approveTask(id: string, body: ApproveTaskBody = {}, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.approveTask, { path: [id], body }, options);
  }

  /** Says that whoever holds a task is at work. */
  beatTask(id: string, body: BeatTaskBody, options: CallOptions = {}): Promise<Beaten> {
    return this.call<Beaten>(OPERATIONS.beatTask, { path: [id], body }, options);
  }

  /** What was changed for a task: its worktree against where its branch left, with what is not committed and not tracked. */
  getTaskChanges(id: string, options: CallOptions = {}): Promise<TaskChanges> {
    return this.call<TaskChanges>(OPERATIONS.getTaskChanges, { path: [id] }, options);
  }

  /** Takes a task for an agent. Whoever holds it shows the fence. */
  claimTask(id: string, body: ClaimTaskBody, options: CallOptions = {}): Promise<Claimed> {
    return this.call<Claimed>(OPERATIONS.claimTask, { path: [id], body }, options);
  }

  /** The files of a task in the data directory: its own, and what its runs left beside it. */
  getTaskFiles(id: string, options: CallOptions = {}): Promise<TaskFiles> {
    return this.call<TaskFiles>(OPERATIONS.getTaskFiles, { path: [id] }, options);
  }

  /** Adds a line to the work log of a task. */
  logTask(id: string, body: LogTaskBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.logTask, { path: [id], body }, options);
  }

  /** Says no to what waits for a review, and why. */
  rejectTask(id: string, body: RejectTaskBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.rejectTask, { path: [id], body }, options);
  }

  /** Gives a task back. */
  releaseTask(id: string, body: ReleaseTaskBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.releaseTask, { path: [id], body }, options);
  }

  /** Gives a task another chance that failed too often, or that waits. */
  retryTask(id: string, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.retryTask, { path: [id] }, options);
  }

  /** Every attempt at a task: who, when, and how it ended. */
  getTaskRuns(id: string, options: CallOptions = {}): Promise<Runs> {
    return this.call<Runs>(OPERATIONS.getTaskRuns, { path: [id] }, options);
  }

  /** The events of a task's trace, page by page. */
  getTaskTrace(id: string, query: GetTaskTraceQuery = {}, options: CallOptions = {}): Promise<Trace> {
    return this.call<Trace>(OPERATIONS.getTaskTrace, { path: [id], query: { ...query } }, options);
  }

  /** Gives a task another status. */
  moveTask(id: string, body: MoveTaskBody, options: CallOptions = {}): Promise<Task> {
    return this.call<Task>(OPERATIONS.moveTask, { path: [id], body }, options);
  }

  /** Every trace, in the order of their first events. */
  listTraces(options: CallOptions = {}): Promise<Traces> {
    return this.call<Traces>(OPERATIONS.listTraces, { path: [] }, options);
  }

  /** Opens a trace. */
  openTrace(body: OpenTraceBody = {}, options: CallOptions = {}): Promise<TraceOpened> {
    return this.call<TraceOpened>(OPERATIONS.openTrace, { path: [], body }, options);
  }

  /** The events of a trace, page by page. */
  getTrace(id: string, query: GetTraceQuery = {}, options: CallOptions = {}): Promise<Trace> {
    return this.call<Trace>(OPERATIONS.getTrace, { path: [id], query: { ...query } }, options);
  }

  /** Aborts the work of a trace and closes it, with the operator's key. */
  abortTrace(id: string, body: AbortTraceBody, options: CallOptions = {}): Promise<Appended> {
    return this.call<Appended>(OPERATIONS.abortTrace, { path: [id], body }, options);
  }

  /** A trace with everything that it takes to verify it offline, or its attestations. */
  exportTrace(id: string, query: ExportTraceQuery = {}, options: CallOptions = {}): Promise<Uint8Array> {
    return this.call<Uint8Array>(OPERATIONS.exportTrace, { path: [id], query: { ...query } }, options);
  }

  /** Appends one event, or several as one decision: {type, payload, artifacts?, seen?}. */
  appendEvents(id: string, body: Offered, query: AppendEventsQuery, options: CallOptions = {}): Promise<Appended> {
    return this.call<Appended>(OPERATIONS.appendEvents, { path: [id], body, query: { ...query } }, options);
  }

  /** Reviews a proposal, an intent or a claim of a trace, as a critic, with the operator's key. */
  reviewTrace(id: string, body: ReviewTraceBody, options: CallOptions = {}): Promise<Appended> {
    return this.call<Appended>(OPERATIONS.reviewTrace, { path: [id], body }, options);
  }

  /** Verifies a trace of this ledger. A verdict of fail is an answer, too. */
  verifyTrace(id: string, options: CallOptions = {}): Promise<Report> {
    return this.call<Report>(OPERATIONS.verifyTrace, { path: [id] }, options);
  }

  /** Verifies a bundle, of whatever ledger. */
  verifyBundle(body: Bytes, options: CallOptions = {}): Promise<Report> {
    return this.call<Report>(OPERATIONS.verifyBundle, { path: [], body }, options);
  }
}

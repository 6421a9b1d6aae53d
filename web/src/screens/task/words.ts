// The events of a task in plain words: one line each, and what there is to read below it.

import type { LedgerRecord, TerminationInfo } from "@baton/sdk";
import { shown } from "../../state/text.js";
import { phaseName, reportOf } from "./story.js";

export interface Entry {
  key: string;
  seq: number;
  at: string;
  who: string;
  isPerson: boolean;
  tone: "plain" | "good" | "warn" | "bad";
  /** What happened. Text of agents may be in it. */
  title: string;
  /** More of it, at whatever length. */
  detail: string;
  session: string | undefined;
  trace: string | undefined;
}

type Told = Pick<Entry, "title"> & Partial<Pick<Entry, "tone" | "detail" | "trace" | "who">>;
type Payload = LedgerRecord["payload"];

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");
const lines = (...parts: readonly string[]): string => parts.filter((part) => part !== "").join("\n");
const labelled = (label: string, value: unknown): string => {
  const text = Array.isArray(value) ? value.join("; ") : textOf(value);
  return text === "" ? "" : `${label}: ${text}`;
};

const REASONS: { readonly [reason: string]: string } = {
  claimed: "claimed",
  retried: "given another chance",
  ci_failed: "the checks failed",
  stale_heartbeat_reclaim: "no sign of life, taken back",
  lease_expired_reclaim: "the lease ran out, taken back",
  verification_failed: "the verification failed",
  dependencies: "waits for what it depends on",
};

const ENDS: { readonly [end: string]: string } = {
  session_end: "its session ended", exit: "it ended its phase", stale_heartbeat: "no sign of life", lease_expired: "the lease ran out",
};

/** A reason that Baton writes as one word, in several. */
export function inPlainWords(reason: string): string {
  const known = REASONS[reason];
  if (known !== undefined) return known;
  const ended = /^(session_end|exit|stale_heartbeat|lease_expired)_(\w+)$/.exec(reason);
  if (!ended) return reason;
  return `${ENDS[ended[1] ?? ""] ?? reason}: ${ended[2]?.replaceAll("_", " ")}`;
}

/** How a process ended, in one line. */
export function endInWords(end: TerminationInfo): string {
  if (end.signal) return `died of ${end.signal.name} (signal ${end.signal.number})`;
  if (end.reason === "completed") return "ended by itself, well";
  if (end.reason === "terminated") return end.terminated_by === "daemon" ? "was ended by Baton" : "was ended";
  if (end.exit_code !== undefined) return `exited with code ${end.exit_code}`;
  return end.message ?? "failed";
}

/** How each type is told; `agent` is whose session it happened in. */
const TELL: { readonly [type: string]: (payload: Payload, agent: string) => Told } = {
  "trace.opened": () => ({ title: "The trace was opened" }),
  "trace.closed": () => ({ title: "The trace was closed" }),
  "task.created": (p) => ({ title: `Created in ${textOf(p["status"])}, ${phaseName(textOf(p["phase"]))}` }),
  "task.transitioned": (p) => ({
    title: `${textOf(p["from"])} → ${textOf(p["to"])}: ${inPlainWords(textOf(p["reason"]))}`,
    tone: p["to"] === "blocked" || p["to"] === "deadletter" ? "bad" : p["to"] === "done" ? "good" : "plain",
    detail: lines(labelled("Because", p["blockReason"]), labelled("Not before", p["notBefore"])),
  }),
  "task.phase_changed": (p) => ({ title: `${phaseName(textOf(p["from"]))} → ${phaseName(textOf(p["to"]))}` }),
  "task.edited": (p) => ({
    title: `Edited: ${Object.keys((p["fields"] ?? {}) as object).join(", ")}`, detail: shown(p["fields"]),
  }),
  "task.edit_refused": (p) => ({
    title: `An edit of the file was not taken in: ${textOf(p["reason"])}`, tone: "warn", detail: labelled("Kept in", p["quarantine"]),
  }),
  "task.logged": (p) => ({
    title: textOf(p["progress"]) || textOf(p["notes"]) || labelled("Blockers", p["blockers"]) || "Logged",
    detail: lines(p["progress"] ? labelled("Notes", p["notes"]) : "", p["progress"] || p["notes"] ? labelled("Blockers", p["blockers"]) : ""),
    tone: Array.isArray(p["blockers"]) && p["blockers"].length > 0 ? "warn" : "plain",
  }),
  "task.attempt_failed": (p) => ({
    title: `Attempt ${String(p["attempts"])} failed: ${inPlainWords(textOf(p["reason"]))}`, tone: "bad",
    detail: p["termination"] ? endDetail(p["termination"] as TerminationInfo) : "",
  }),
  "task.approved": (p) => ({
    title: `Approved: ${phaseName(textOf(p["phase"]))} → ${phaseName(textOf(p["nextPhase"]))}`, tone: "good", detail: textOf(p["notes"]),
  }),
  "task.rejected": (p) => ({ title: `Rejected: ${textOf(p["reason"])}`, tone: "warn" }),
  "ci.reported": (p) => ({
    title: p["passed"] === true ? "The checks passed" : `The checks failed${p["exitCode"] === undefined ? "" : ` with code ${String(p["exitCode"])}`}`,
    tone: p["passed"] === true ? "good" : "bad", detail: textOf(p["reason"]),
  }),
  "lease.acquired": (p) => ({ title: `${textOf(p["agent"])} took it, with fence ${String(p["fence"])}`, detail: labelled("Until", p["expiresAt"]) }),
  "lease.released": (p) => ({ title: `${textOf(p["agent"])} gave it back: ${inPlainWords(textOf(p["reason"]))}` }),
  "lease.expired": (p) => ({ title: `The lease of ${textOf(p["agent"])} ended: ${inPlainWords(textOf(p["reason"]))}`, tone: "bad" }),
  "AgentSessionCompleted": (p) => ({
    title: `Exit signal: ${phaseName(textOf(p["phase_completed"]))} is ${textOf(p["exit_reason"])}, next is ${phaseName(textOf(p["next_phase"]))}`,
    tone: p["exit_reason"] === "completed" ? "plain" : "bad", who: textOf(p["actor_id"]),
    detail: lines(textOf(p["notes"]), labelled("Pull request", p["pr_url"]), labelled("Evidence", p["evidence_bundle_ref"]),
      labelled("Warnings", p["warnings"])),
  }),
  "delegation.requested": (p) => ({
    title: `${textOf(p["fromAgent"])} asks ${textOf(p["toAgent"])} to take it, as a part of ${textOf(p["parentTaskId"])}`,
  }),
  "delegation.accepted": (p) => ({ title: `${textOf(p["agent"])} accepted the hand-off`, tone: "good" }),
  "delegation.rejected": (p) => ({ title: `${textOf(p["agent"])} rejected the hand-off: ${textOf(p["reason"])}`, tone: "warn" }),
  "protocol.message.received": (p) => ({ title: `${textOf(p["fromAgent"])} sent ${textOf(p["type"])}`, detail: messageDetail(p) }),
  "protocol.message.rejected": (p) => ({
    title: ["Refused a message", p["fromAgent"] ? ` of ${textOf(p["fromAgent"])}` : "", p["type"] ? ` (${textOf(p["type"])})` : "",
      `: ${textOf(p["reason"]).replaceAll("_", " ")}`].join(""),
    tone: "bad", detail: shown(p["detail"]),
  }),
  "protocol.message.unknown": (p) => ({ title: `A message of an unknown type: ${textOf(p["type"])}`, tone: "warn" }),
  "protocol.message.warning": (p) => ({ title: `Warning: ${textOf(p["reason"]).replaceAll("_", " ")}`, tone: "warn", detail: shown(p["detail"]) }),
  "task.guard_opened": (p) => ({ title: "A guarded run began", trace: textOf(p["trace"]), detail: labelled("Players", p["players"]) }),
  "task.verified": (p) => ({
    title: `The guarded run was verified: ${textOf(p["verdict"]) || textOf(p["state"])}`, trace: textOf(p["trace"]),
    tone: p["verdict"] === "pass" ? "good" : "warn", detail: textOf(p["why"]),
  }),
  "guard.refused": (p) => ({
    title: `The guard refused ${textOf(p["agent"])} ${textOf(p["what"])}`, tone: "bad",
    detail: lines(textOf(p["why"]), labelled("Rule", p["rule"])),
  }),
  "session.started": (p) => ({ title: `${textOf(p["agent"])} was started`, detail: labelled("In", p["cwd"]) }),
  "session.ended": (p, agent) => {
    const end = p as unknown as TerminationInfo;
    return { title: `${agent} ${endInWords(end)}`, tone: end.reason === "error" ? "bad" : "plain", detail: end.reason === "error" ? endDetail(end) : "" };
  },
  "session_error": (p, who) => ({ who, title: textOf(p["message"]), tone: "bad", detail: labelled("Code", p["code"]) }),
  "session_warning": (p, who) => ({ who, title: textOf(p["message"]), tone: "warn", detail: labelled("Code", p["code"]) }),
  "permission_requested": (p, who) => ({ who, title: `Asks: ${textOf(p["title"])}`, tone: "warn" }),
  "permission_resolved": (p) => ({ title: `Was answered: ${typeof p["answer"] === "string" ? p["answer"] : shown(p["answer"])}`, who: textOf(p["by"]) }),
};

function messageDetail(payload: Payload): string {
  const message = payload["message"];
  return typeof message === "object" && message !== null ? shown((message as Payload)["payload"]) : "";
}

/** What is known of a bad end. */
export function endDetail(end: TerminationInfo): string {
  return lines(end.message ?? "", end.exit_code === undefined ? "" : `Exit code: ${end.exit_code}`, end.signal ? `Signal: ${end.signal.name}` : "",
    labelled("Cause", end.cause), labelled("Last tool", end.last_tool), labelled("Limit ends", end.resets_at));
}

function tellReport(event: LedgerRecord): Told {
  const report = reportOf(event);
  const tests = report.tests ? `, tests ${report.tests.passed}/${report.tests.total}` : "";
  return {
    title: `Reported: ${report.outcome.replaceAll("_", " ")}${tests}`,
    tone: report.outcome === "done" ? "good" : report.outcome === "blocked" ? "bad" : "warn",
    detail: lines(report.notes, labelled("Deliverables", report.deliverables), labelled("Blockers", report.blockers), labelled("Summary", report.summary)),
  };
}

/** An event as a line of the work log. */
function entryOf(event: LedgerRecord, agents: ReadonlyMap<unknown, string>): Entry {
  const agent = agents.get(event["session"]) ?? "The agent";
  const told = event.type === "task.completed" ? tellReport(event)
    : TELL[event.type]?.(event.payload, agent) ?? { title: event.type, detail: shown(event.payload) };
  const session = event["session"];
  return {
    key: event.id, seq: event.seq, at: event.at, who: told.who || event.actor.agent, isPerson: event.actor.role === "operator",
    tone: told.tone ?? "plain", title: told.title === "" ? event.type : told.title, detail: told.detail ?? "",
    session: typeof session === "string" ? session : undefined, trace: told.trace || undefined,
  };
}

/** The work log. A message that was taken is told by what came of it, in the same moment. */
export function entriesOf(events: readonly LedgerRecord[]): readonly Entry[] {
  const isTold = (event: LedgerRecord, at: number): boolean => {
    if (event.type === "trace.opened") return true;
    if (event.type !== "protocol.message.received") return false;
    const next = events[at + 1];
    return next !== undefined && next.at === event.at && next.seq === event.seq + 1;
  };
  const agents = new Map<unknown, string>();
  for (const event of events) if (event.type === "session.started") agents.set(event["session"], textOf(event.payload["agent"]));
  return events.filter((event, at) => !isTold(event, at)).map((event) => entryOf(event, agents));
}

// A guarded run as a story: what each event says in words, where the run stands, and what waits for a person. As `baton trace show` tells it.

import { shortHash } from "../../state/format.js";
import type { TraceRecord } from "./record.js";
import type { Kind } from "./words.js";

type Payload = TraceRecord["payload"];

/** What an event says. Only `start` and the labels are ours. */
export interface Told {
  start: string;
  kind?: Kind | "dim";
  /** An agent's own words. */
  text?: string;
  below?: readonly (readonly [string, string])[];
}

const word = (payload: Payload, name: string): string => {
  const value = payload[name];
  return typeof value === "string" ? value : typeof value === "number" ? String(value) : "";
};
const words = (payload: Payload, name: string): string[] => {
  const value = payload[name];
  return Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : [];
};
const each = (label: string, items: readonly string[]) => items.map((item) => [label, item] as const);
const all = (label: string, items: readonly string[]) => (items.length > 0 ? [[label, items.join(", ")] as const] : []);
const hashes = (payload: Payload, name: string): string[] => words(payload, name).map(shortHash);

const REVIEWS: { readonly [status: string]: readonly [string, string, Kind] } = {
  approved: ["approves", "", "good"], conditional: ["approves", " on conditions", "good"], rejected: ["rejects", "", "bad"], blocked: ["blocks", "", "bad"],
};
const OUTCOMES: { readonly [status: string]: Kind } = { pass: "good", "pass-with-warnings": "warn", fail: "bad" };

/** The step of an event in words. */
export function told({ type, payload, actor, artifacts }: TraceRecord): Told {
  const who = actor.agent;
  const is = (name: string): string => word(payload, name);
  const noted = (): Told => ({ start: `${who} records ${type}`, kind: "dim", text: Object.keys(payload).length > 0 ? JSON.stringify(payload) : "" });
  switch (type) {
    case "session_initialized":
      return { start: `${who} begins the run, profile ${profileOf(payload)}`, below: Object.entries(teamOf(payload)).map(([part, agent]) => [part, agent] as const) };
    case "proposal_created":
      return {
        start: `${who} proposes ${is("proposal_id")}${is("revises") ? ` instead of ${is("revises")}` : ""}`, text: is("objective"),
        below: [...all("tools", words(payload, "required_tools")), ...each("assumes", words(payload, "assumptions")), ...each("evidence", words(payload, "expected_evidence"))],
      };
    case "proposal_reviewed": {
      const [does, how, kind] = REVIEWS[is("status")] ?? ["reviews", "", "off"];
      return {
        start: `${who} ${does} ${is("proposal_id")}${how}`, kind, text: is("rationale"),
        below: [...each("condition", words(payload, "conditions")), ...(is("risk") ? [["risk", is("risk")] as const] : [])],
      };
    }
    case "tool_intent_signed":
      return {
        start: `${who} means to run ${is("tool_name")}${is("retry_of") ? ` again, instead of ${is("retry_of")}` : ""} (${is("intent_id")}, ${is("risk_class")})`,
        text: is("justification"), below: [["for", is("proposal_id")], ["input", shortHash(is("normalized_input_hash"))]],
      };
    case "tool_intent_reviewed": {
      const [does, , kind] = REVIEWS[is("status")] ?? ["reviews", "", "off"];
      return { start: `${who} ${does} ${is("intent_id")}`, kind, text: is("rationale") };
    }
    case "tool_execution_started":
      return { start: `${who} starts ${is("intent_id")}`, below: all("input", hashes(payload, "artifacts")) };
    case "tool_execution_completed":
      return {
        start: `${who} ran ${is("intent_id")}${is("exit_status") ? `: exit ${is("exit_status")}` : ""}`, kind: payload["exit_status"] === 0 ? "good" : "warn",
        below: all("artifacts", hashes(payload, "artifacts")),
      };
    case "tool_execution_failed":
      return { start: `${is("intent_id")} failed`, kind: "bad", text: is("failure"), below: all("artifacts", hashes(payload, "artifacts")) };
    case "artifact_recorded":
      return { start: `${who} stores`, text: artifacts.map((cited) => `${cited.name} (${shortHash(cited.sha256)})`).join(", ") };
    case "claim_issued":
      return {
        start: `${who} ${is("revises") ? `revises ${is("revises")} as ${is("claim_id")}` : `claims ${is("claim_id")}`} (confidence ${is("confidence")})`, text: is("claim_text"),
        below: [...all("evidence", hashes(payload, "evidence")), ...all("rests on", words(payload, "executions"))],
      };
    case "claim_challenged":
      return { start: `${who} challenges ${is("claim_id")}`, kind: "warn", text: is("reason"), below: all("evidence", hashes(payload, "evidence")) };
    case "note":
      if (actor.role === "system" && is("work") !== "") return { start: `the executor is through with ${is("proposal_id")}`, kind: "dim" };
      return isLetStand(type, actor, payload) ? { start: `${who} lets ${is("claim_id")} stand`, kind: "good", text: is("rationale") } : noted();
    case "final_statement_signed":
      return {
        start: `${who} states`, text: is("verdict_text"),
        below: [...all("claims", words(payload, "claim_ids")), ...all("disputed", words(payload, "disputed"))],
      };
    case "verification_run_started":
      return { start: `${who} begins to verify` };
    case "verification_run_completed":
      return {
        start: `${who} verified up to ${shortHash(is("head"))}: ${is("status")}`, kind: OUTCOMES[is("status")] ?? "off", text: is("why"),
        below: all("report", [shortHash(is("report"))]),
      };
    case "trace_aborted":
      return { start: `${who} aborts`, kind: "bad", text: is("reason") };
    case "override_recorded":
      return { start: `${who} overrides what holds up ${is("target")}`, kind: "warn", text: is("reason") };
    case "key_bound":
      return { start: `${is("key")} of ${is("agent")} is bound as ${words(payload, "roles").join(", ")}`, kind: "dim" };
    case "key_rotated":
      return { start: `${is("by")} of ${is("agent")} takes the place of ${is("key")}`, kind: "dim" };
    case "key_revoked":
      return { start: `${is("key")} is revoked`, kind: "dim", text: is("reason") };
    case "trace.opened":
      return { start: "the trace is opened", kind: "dim" };
    case "trace.closed":
      return { start: "the trace is closed", kind: "dim", text: is("reason") };
    default:
      return noted();
  }
}

/** A critic says of a claim that it challenges nothing of it. */
const isLetStand = (type: string, actor: TraceRecord["actor"], payload: Payload): boolean => type === "note" && actor.role === "critic" && word(payload, "claim_id") !== "";

/** A proposal, an intent or a claim that a person is asked about. */
export interface Pending {
  id: string;
  what: "proposal" | "intent" | "claim";
  record: TraceRecord;
}

export interface Run {
  state: string;
  profile: string;
  team: { readonly [part: string]: string };
  hasEnded: boolean;
  pending: readonly Pending[];
}

const object = (value: unknown): { readonly [name: string]: unknown } =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as { readonly [name: string]: unknown }) : {};
const profileOf = (payload: Payload): string => String(object(payload["policy"])["profile"] ?? "");
const PARTS = ["planner", "executor", "critic", "auditor"];
const teamOf = (payload: Payload): { [part: string]: string } => {
  const team = object(payload["team"]);
  return Object.fromEntries(PARTS.flatMap((part) => (typeof team[part] === "string" ? [[part, team[part]]] : [])));
};

/** Whoever reviews in the name of people. */
const PERSON = "operator";

export const isRun = (records: readonly TraceRecord[]): boolean =>
  records.slice(0, 8).some((record) => record.type === "session_initialized" && record.actor.role === "system");

/** Where a guarded run stands. */
export function runOf(records: readonly TraceRecord[]): Run {
  let [state, profile, team]: [string, string, Run["team"]] = ["initialized", "", {}];
  const pending = new Map<string, Pending>();
  let [approvals, isFinal]: [number, boolean] = [1, false];
  const approved = new Map<string, number>();
  let attempt: string | undefined;
  for (const record of records) {
    const { type, payload } = record;
    attempt = record.run ?? attempt;
    const is = (name: string): string => word(payload, name);
    if (type === "session_initialized") {
      [state, profile, team] = ["planning", profileOf(payload), teamOf(payload)];
      approvals = Number(object(payload["policy"])["approvals"] ?? 1);
    } else if (type === "proposal_created") {
      if (state === "planning") state = "reviewing";
      pending.delete(is("revises"));
      pending.set(is("proposal_id"), { id: is("proposal_id"), what: "proposal", record });
    } else if (type === "proposal_reviewed") {
      const count = (approved.get(is("proposal_id")) ?? 0) + (is("status") === "rejected" ? 0 : 1);
      approved.set(is("proposal_id"), count);
      if (is("status") === "rejected" || count >= approvals) pending.delete(is("proposal_id"));
      if (state === "reviewing" && count >= approvals) state = "executing";
    } else if (type === "tool_intent_signed") {
      pending.delete(is("retry_of"));
      pending.set(is("intent_id"), { id: is("intent_id"), what: "intent", record });
    } else if (type === "tool_intent_reviewed" || type.startsWith("tool_execution_")) {
      pending.delete(is("intent_id"));
      if (state === "executing" && type === "tool_execution_completed") state = "claiming";
    } else if (type === "claim_issued") {
      if (["executing", "claiming"].includes(state)) state = "auditing";
      pending.delete(is("revises"));
      pending.set(is("claim_id"), { id: is("claim_id"), what: "claim", record });
    } else if (type === "claim_challenged" || isLetStand(type, record.actor, payload)) {
      pending.delete(is("claim_id"));
    } else if (type === "final_statement_signed") {
      isFinal = true;
    } else if (type === "verification_run_completed") {
      state = is("status") === "fail" ? "failed" : "completed";
    } else if (type === "trace_aborted") {
      state = "aborted";
    }
  }
  const hasEnded = ["completed", "failed", "aborted"].includes(state);
  // An intent of an attempt that is over is left as it is.
  const isAsked = (asked: Pending): boolean => asked.what !== "intent" || asked.record.run === attempt;
  const asked = hasEnded || isFinal || team["critic"] !== PERSON ? [] : [...pending.values()].filter(isAsked);
  return { state, profile, team, hasEnded, pending: asked };
}

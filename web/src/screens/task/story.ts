// The story of a task: which events of its trace tell it, where it has been, and what each attempt came to. Plain functions of records.

import type { LedgerRecord, TerminationInfo } from "@baton/sdk";
import type { Tests } from "../../state/model.js";
import type { Run } from "./answers.js";

/** What sessions do step by step is theirs to show. */
const LEFT_OUT = new Set(["state_changed", "tool_lifecycle", "hook_lifecycle", "turn.ended", "session.ready", "lease.renewed", "key_bound"]);

export const isStory = (record: LedgerRecord): boolean => !LEFT_OUT.has(record.type);

export const PHASES = ["DRAFT", "IMPLEMENTATION", "CI_PENDING", "READY_FOR_REVIEW", "REVIEW", "READY_FOR_MERGE", "COMPLETED"] as const;

export const phaseName = (phase: string): string => {
  const words = phase.toLowerCase().replaceAll("_", " ").replace(/^ci\b/, "CI");
  return words.charAt(0).toUpperCase() + words.slice(1);
};

/** A while in one place. */
export interface Stay {
  status: string;
  phase: string;
  from: number;
  /** Open as long as it is there. */
  until: number | undefined;
  why: string;
  who: string;
}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "");

/** Where a task has been, in order. What one decision did at once is one step. */
export function staysOf(events: readonly LedgerRecord[]): readonly Stay[] {
  const stays: Stay[] = [];
  for (const event of events) {
    const at = Date.parse(event.at);
    const { payload } = event;
    const last = stays.at(-1);
    if (event.type === "task.created") {
      stays.push({ status: textOf(payload["status"]), phase: textOf(payload["phase"]), from: at, until: undefined, why: "created", who: event.actor.agent });
    }
    if (!last || (event.type !== "task.transitioned" && event.type !== "task.phase_changed")) continue;
    const isMove = event.type === "task.transitioned";
    const to = textOf(payload["to"]);
    const why = isMove ? textOf(payload["blockReason"]) || textOf(payload["reason"]) : "";
    const change = { ...(isMove ? { status: to } : { phase: to }), who: event.actor.agent };
    if (last.from === at && stays.length > 1) {
      Object.assign(last, change, why === "" ? {} : { why });
    } else {
      last.until = at;
      stays.push({ ...last, ...change, from: at, until: undefined, why });
    }
  }
  return stays;
}

/** What stands at a phase of the path: not reached, left out, been there, or there now; and for how long. */
export interface Step {
  phase: string;
  kind: "ahead" | "over" | "been" | "here" | "blocked";
  ms: number;
  times: number;
}

/** The way through the phases. A blocked task is shown where it came from. */
export function stepsOf(stays: readonly Stay[], phase: string, before: string | undefined, now: number): readonly Step[] {
  const here = phase === "BLOCKED" ? before ?? stays.findLast((stay) => stay.phase !== "BLOCKED")?.phase ?? "IMPLEMENTATION" : phase;
  const far = PHASES.findIndex((name) => name === here);
  return PHASES.map((name, at) => {
    let ms = 0;
    let times = 0;
    let inside = false;
    for (const stay of stays) {
      const isIn = stay.phase === name;
      if (isIn && !inside) times += 1;
      if (isIn) ms += (stay.until ?? now) - stay.from;
      inside = isIn;
    }
    const kind = name === here ? (phase === "BLOCKED" ? "blocked" : "here") : times > 0 ? "been" : at < far ? "over" : "ahead";
    return { phase: name, kind, ms, times };
  });
}

/** What a report said. */
export interface Report {
  outcome: string;
  tests: Tests | undefined;
  deliverables: readonly string[];
  blockers: readonly string[];
  notes: string;
  summary: string;
}

/** An attempt with all that the trace says of it. */
export interface Attempt extends Run {
  number: number;
  report: Report | undefined;
  failed: string | undefined;
  termination: TerminationInfo | undefined;
}

const listOf = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((item): item is string => typeof item === "string") : []);
const objectOf = (value: unknown): { readonly [key: string]: unknown } =>
  (typeof value === "object" && value !== null ? value as { [key: string]: unknown } : {});

export function reportOf(event: LedgerRecord): Report {
  const report = objectOf(event.payload["report"]);
  const tests = report["tests"];
  return {
    outcome: textOf(event.payload["outcome"]),
    tests: typeof tests === "object" && tests !== null ? tests as Tests : undefined,
    deliverables: listOf(report["deliverables"]),
    blockers: listOf(report["blockers"]),
    notes: textOf(report["notes"]),
    summary: textOf(report["summaryRef"]),
  };
}

/** Attempts, the newest first. */
export function attemptsOf(runs: readonly Run[], events: readonly LedgerRecord[]): readonly Attempt[] {
  const attempts = new Map<string, Attempt>(runs.map((run, at) => [
    run.id, { ...run, number: at + 1, report: undefined, failed: undefined, termination: undefined },
  ]));
  for (const event of events) {
    const found = attempts.get(textOf(event.payload["runId"]) || textOf(event["run"]));
    if (!found) continue;
    if (event.type === "lease.acquired") {
      found.agent = textOf(event.payload["agent"]) || found.agent || "";
      found.session = textOf(event.payload["session"]) || found.session || "";
    }
    if (event.type === "task.completed") found.report = reportOf(event);
    // Several sessions may play their parts in one attempt: what counts is whoever holds the task, and what went wrong.
    if (event.type === "session.ended" && (event["session"] === found.session || event.payload["reason"] === "error")) {
      found.termination = event.payload as unknown as TerminationInfo;
    }
    if (event.type === "task.attempt_failed") {
      found.failed = textOf(event.payload["reason"]);
      const ended = event.payload["termination"];
      if (typeof ended === "object" && ended !== null) found.termination = ended as TerminationInfo;
    }
  }
  return [...attempts.values()].reverse();
}

/** A part that was handed to somebody, with what is expected of it. */
export interface Handoff {
  id: string;
  at: string;
  parent: string;
  from: string;
  to: string;
  criteria: readonly string[];
  outputs: readonly string[];
  context: readonly string[];
  constraints: readonly string[];
  dueBy: string;
  answer: "open" | "accepted" | "rejected";
  reason: string;
}

export function handoffsOf(events: readonly LedgerRecord[]): readonly Handoff[] {
  const found: Handoff[] = [];
  for (const event of events) {
    const { payload } = event;
    if (event.type === "delegation.requested") {
      const asked = objectOf(payload["handoff"]);
      found.push({
        id: event.id, at: event.at, parent: textOf(payload["parentTaskId"]), from: textOf(payload["fromAgent"]), to: textOf(payload["toAgent"]),
        criteria: listOf(asked["acceptanceCriteria"]), outputs: listOf(asked["expectedOutputs"]), context: listOf(asked["contextRefs"]),
        constraints: listOf(asked["constraints"]), dueBy: textOf(asked["dueBy"]), answer: "open", reason: "",
      });
    }
    const last = found.at(-1);
    if (last && (event.type === "delegation.accepted" || event.type === "delegation.rejected")) {
      last.answer = event.type === "delegation.accepted" ? "accepted" : "rejected";
      last.reason = textOf(payload["reason"]);
    }
  }
  return found;
}

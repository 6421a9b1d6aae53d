// What the page knows of tasks beyond the keys of their files.

import type { Card, Status, Task } from "@baton/sdk";

export type Tests = NonNullable<Card["tests"]>;
export type Verified = NonNullable<Card["verified"]>;

/** What a card shows beyond the keys of the task's file. */
export const cardOf = (task: Task): Card => task.card ?? {};

/** The columns of the board. What is cancelled or given up is shown where it is asked for. */
export const COLUMNS: readonly Status[] = ["backlog", "ready", "in-progress", "blocked", "review", "done"];
export const ENDED: readonly Status[] = ["cancelled", "deadletter"];
export const STATUSES: readonly Status[] = [...COLUMNS, ...ENDED];

/** A letter for each status, as `m` and a letter move a card. */
export const LETTERS: { readonly [letter: string]: Status } = {
  b: "backlog", r: "ready", i: "in-progress", o: "blocked", v: "review", d: "done", c: "cancelled", x: "deadletter",
};

export const PRIORITIES: readonly string[] = ["critical", "high", "normal", "low"];

/** How long a reason may be, in characters. */
export const REASON_MAX = 512;

/** Why a task does not go on, in the words of whoever stopped it. */
export function blockReason(task: Task): string | undefined {
  const reason = task.metadata?.["blockReason"];
  return typeof reason === "string" && reason !== "" ? reason : undefined;
}

export function tagsOf(task: Task): readonly string[] {
  const tags = task.routing?.["tags"];
  return Array.isArray(tags) ? tags.filter((tag): tag is string => typeof tag === "string") : [];
}

/** Who works on it, or is to. */
export function agentOf(task: Task): string | undefined {
  const routed = task.routing?.["agent"];
  return task.lease?.agent ?? (typeof routed === "string" ? routed : undefined);
}

/** When a lease ends unless its agent is heard of again. */
export function leaseEnd(task: Task): number | undefined {
  if (!task.lease) return undefined;
  const ends = [task.lease.expiresAt, cardOf(task).heartbeatBy].flatMap((text) => (text === undefined ? [] : [Date.parse(text)]));
  return Math.min(...ends.filter((end) => !Number.isNaN(end)));
}

/** How much of a lease is left, from 1 down to 0. */
export function leaseLeft(task: Task, now: number): number {
  const end = leaseEnd(task);
  if (end === undefined || !Number.isFinite(end)) return 0;
  const card = cardOf(task);
  const spans = [card.leaseTtlMs, card.beatTtlMs].filter((span) => span !== undefined);
  const began = Date.parse(task.lease?.acquiredAt ?? "");
  const span = spans.length > 0 ? Math.min(...spans) : Math.max(1, end - (Number.isNaN(began) ? now : began));
  return Math.max(0, Math.min(1, (end - now) / span));
}

export const isExpired = (task: Task, now: number): boolean => {
  const end = leaseEnd(task);
  return end !== undefined && end <= now;
};

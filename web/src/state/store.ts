// Everything that the page knows, as signals. Filled by `live.ts`, read by the screens; nothing else is kept.

import { computed, signal } from "@preact/signals";
import type { Session, Task } from "@baton/sdk";
import { needsOf } from "./needs.js";

/** How the page stands to its server. */
export type Link =
  | { kind: "connecting" }
  | { kind: "live" }
  | { kind: "waiting"; since: number; reason: string }
  | { kind: "denied"; reason: string };

export const link = signal<Link>({ kind: "connecting" });

/** Something that is fetched: nothing yet, what came, or why it did not. */
export type Fetched<T> = { kind: "loading" } | { kind: "ready"; value: T } | { kind: "broken"; error: Failure };

/** Why something did not work, in the server's words. */
export interface Failure {
  title: string;
  code: string | undefined;
  detail: string | undefined;
  hint: string | undefined;
}

/** Tasks by their ids. The map is replaced, never changed. */
export const tasks = signal<ReadonlyMap<string, Task>>(new Map());
export type Loading = { kind: "loading" } | { kind: "partly" } | { kind: "whole" } | { kind: "broken"; error: Failure };
export const tasksLoading = signal<Loading>({ kind: "loading" });

/** Sessions, the newest first: those that run, and of the others as many as were asked for. */
export const sessions = signal<readonly Session[]>([]);
/** Where the older ones go on; absent where there are none. */
export const sessionsNext = signal<string | undefined>(undefined);
export const sessionsLoading = signal<Loading>({ kind: "loading" });

/** The last position of the ledger that was heard of; and the traces that grew, with how far. */
export const position = signal(0);
export const grown = signal<ReadonlyMap<string, number>>(new Map());

/** The time, as often as it is looked at. */
export const now = signal(Date.now());

export const needs = computed(() => needsOf(tasks.value.values(), sessions.value));

/** Said to the person at the bottom of the page, for a while. */
export interface Toast {
  id: number;
  kind: "ok" | "bad";
  text: string;
}
export const toasts = signal<readonly Toast[]>([]);
let toastCount = 0;

export function tell(kind: Toast["kind"], text: string): void {
  const toast = { id: ++toastCount, kind, text };
  toasts.value = [...toasts.value.slice(-3), toast];
  setTimeout(() => dismiss(toast.id), kind === "ok" ? 5000 : 15_000);
}

export function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id);
}

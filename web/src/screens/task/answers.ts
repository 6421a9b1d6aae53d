// What the server answers about one task, as this screen reads it.

import type { LedgerRecord, TaskChanges, TaskFiles } from "@baton/sdk";
import { client } from "../../state/live.js";

export type ChangedFile = TaskChanges["files"][number];
export type StoredFile = TaskFiles["files"][number];

/** One attempt, as the server puts it together from the trace. */
export interface Run {
  id: string;
  startedAt: string;
  endedAt?: string;
  lastAt?: string;
  agent?: string;
  session?: string;
  fence?: number;
  events?: number;
  ended?: { by: string; reason?: string };
}

export const getRuns = async (id: string): Promise<readonly Run[]> => (await client.getTaskRuns(id)).runs as unknown as readonly Run[];

export interface TracePage {
  trace: string;
  events: readonly LedgerRecord[];
  next: number | undefined;
  size: number;
  closed: boolean;
}

export async function getPage(id: string, from: number, limit: number): Promise<TracePage> {
  const page = await client.getTaskTrace(id, { from, limit });
  return { trace: page.trace, events: page.events as unknown as readonly LedgerRecord[], next: page.next, size: page.size, closed: page.closed };
}

// The board: which tasks are shown, in which column, in which order. Plain functions of what is known.

import type { Status, Task } from "@baton/sdk";
import { agentOf, COLUMNS, ENDED, isExpired, PRIORITIES, STATUSES, tagsOf } from "./model.js";

/** What is asked for, as the address says it. */
export interface Filter {
  text: string;
  agent: string;
  tag: string;
  priority: string;
  /** Whether cancelled tasks and those that were given up have columns too. */
  hasEnded: boolean;
}

export function filterOf(query: URLSearchParams): Filter {
  return {
    text: query.get("q") ?? "",
    agent: query.get("agent") ?? "",
    tag: query.get("tag") ?? "",
    priority: query.get("priority") ?? "",
    hasEnded: query.get("ended") === "1",
  };
}

export function isWanted(task: Task, filter: Filter): boolean {
  if (filter.agent !== "" && agentOf(task) !== filter.agent) return false;
  if (filter.tag !== "" && !tagsOf(task).includes(filter.tag)) return false;
  if (filter.priority !== "" && task.priority !== filter.priority) return false;
  const words = filter.text.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return true;
  const text = `${task.id} ${task.title} ${agentOf(task) ?? ""} ${tagsOf(task).join(" ")} ${task.phase}`.toLowerCase();
  return words.every((word) => text.includes(word));
}

/** What has to be seen comes first: a lease that ran out, then what is urgent, then what waits longest; what is over, the newest first. */
function rank(task: Task, now: number): number {
  const urgent = PRIORITIES.indexOf(task.priority);
  return (isExpired(task, now) ? 0 : 10) + (urgent < 0 ? 2 : urgent);
}

const OVER: readonly Status[] = ["done", ...ENDED];

/** Where a task stands whose status nobody here knows. */
export const OTHER = "other";
export type Place = Status | typeof OTHER;

export interface Column {
  status: Place;
  tasks: readonly Task[];
}

/** The columns with their tasks. A last one is there where a task has a status that is none of ours: what is there is seen. */
export function columnsOf(tasks: Iterable<Task>, filter: Filter, now: number): readonly Column[] {
  const statuses = filter.hasEnded ? [...COLUMNS, ...ENDED] : COLUMNS;
  const by = new Map<Place, { task: Task; rank: number; at: string }[]>(statuses.map((status) => [status, []]));
  for (const task of tasks) {
    const at = String(task["lastTransitionAt"] ?? task.updatedAt ?? "");
    if (!isWanted(task, filter)) continue;
    if (!STATUSES.includes(task.status) && !by.has(OTHER)) by.set(OTHER, []);
    by.get(STATUSES.includes(task.status) ? task.status : OTHER)?.push({ task, rank: rank(task, now), at });
  }
  return [...by].map(([status, found]) => {
    if ((OVER as readonly Place[]).includes(status)) found.sort((a, b) => compare(b.at, a.at) || compare(a.task.id, b.task.id));
    else found.sort((a, b) => a.rank - b.rank || compare(a.at, b.at) || compare(a.task.id, b.task.id));
    return { status, tasks: found.map((one) => one.task) };
  });
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Every agent and tag that a filter can name. */
export function choicesOf(tasks: Iterable<Task>): { agents: readonly string[]; tags: readonly string[] } {
  const agents = new Set<string>();
  const tags = new Set<string>();
  for (const task of tasks) {
    const agent = agentOf(task);
    if (agent !== undefined) agents.add(agent);
    tagsOf(task).forEach((tag) => tags.add(tag));
  }
  return { agents: [...agents].sort(), tags: [...tags].sort() };
}

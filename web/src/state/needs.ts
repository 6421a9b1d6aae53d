// What waits for a person, as one list: questions and permissions of sessions, reviews, what is blocked, what was given up.

import type { Permission, Session, Task } from "@baton/sdk";
import { sessionPath, taskPath, tracePath } from "../router.js";
import { blockReason, cardOf } from "./model.js";

export interface Need {
  /** The same for as long as it is the same need. */
  key: string;
  kind: "permission" | "question" | "review" | "blocked" | "deadletter";
  title: string;
  detail: string;
  path: string;
  since: number;
}

const ORDER: readonly Need["kind"][] = ["question", "permission", "review", "blocked", "deadletter"];

/** Blocks that end by themselves: nobody has to do anything. */
const OWN_END = "dependencies";

export function needsOf(tasks: Iterable<Task>, sessions: readonly Session[]): readonly Need[] {
  const [needs, guarded]: [Need[], Set<unknown>] = [[], new Set()];
  for (const task of tasks) {
    needs.push(...sound(() => ofTask(task)));
    sound(() => (cardOf(task).guard !== undefined && guarded.add(task.id), []));
  }
  for (const session of Array.isArray(sessions) ? sessions : []) needs.push(...sound(() => ofSession(session, guarded)));
  return needs.sort((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind) || a.since - b.since || (a.key < b.key ? -1 : 1));
}

/** The list stands on every screen: what is not as it should be leaves it out, and nothing else. */
function sound(read: () => readonly Need[]): readonly Need[] {
  try {
    return read();
  } catch {
    return [];
  }
}

/** What a tool of a guarded run waits for is its review, which the task tells. */
const ofSession = (session: Session, guarded: ReadonlySet<unknown>): readonly Need[] =>
  (session.terminationInfo ? [] : session.pendingPermissions ?? [])
    .filter((asked) => asked.kind === "question" || !guarded.has(session.taskId))
    .map((asked) => ofPermission(session, asked));

function ofPermission(session: Session, asked: Permission): Need {
  return {
    key: `${session.id} ${asked.id}`,
    kind: asked.kind === "question" ? "question" : "permission",
    title: asked.title,
    detail: session.agent,
    path: sessionPath(session.id),
    since: asked.requestedAtMs,
  };
}

function ofTask(task: Task): readonly Need[] {
  const { asks, guard, run } = cardOf(task);
  if (asks !== undefined && guard !== undefined) {
    const detail = `${asks} of its guarded run waits for your review`;
    return [{ key: `${task.id} ${asks}`, kind: "review", title: task.title, detail, path: tracePath(guard), since: Date.parse(run?.startedAt ?? "") || 0 }];
  }
  const at = Date.parse(String(task["lastTransitionAt"] ?? task.updatedAt ?? ""));
  const base = { title: task.title, path: taskPath(task.id), since: Number.isNaN(at) ? 0 : at, key: `${task.id} ${task.status}` };
  switch (task.status) {
    case "review":
      // What waits for CI waits for nobody.
      return task.phase === "CI_PENDING" ? [] : [{ ...base, kind: "review", detail: "waits for your review" }];
    case "blocked": {
      const why = blockReason(task);
      return why === OWN_END ? [] : [{ ...base, kind: "blocked", detail: why ?? "blocked" }];
    }
    case "deadletter":
      return [{ ...base, kind: "deadletter", detail: `given up after ${task.attempts ?? 0} attempts` }];
    default:
      return [];
  }
}

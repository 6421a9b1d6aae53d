// Judging a task: what somebody approves or rejects is what they looked at, and nothing that took its place meanwhile. For every screen.

import { BatonError, type CallOptions, type Task } from "@baton/sdk";
import { cardOf } from "./model.js";
import { oneLine } from "./text.js";

/** What a person judges: where the task stands, and whose attempt it is. */
export interface Seen {
  rev: number;
  status: string;
  phase: string;
  run: string;
}

export const seenOf = (task: Task): Seen => ({ rev: task.rev, status: task.status, phase: task.phase, run: cardOf(task).run?.id ?? "" });

/** Whether it is the same to be judged; words may have been added. */
export const isSameToJudge = (a: Seen, b: Seen): boolean => a.status === b.status && a.phase === b.phase && a.run === b.run;

/** What became of it, in words. */
export function changeInWords(before: Seen, after: Seen): string {
  const where = ({ status, phase }: Seen): string => oneLine(`${status}, ${phase.toLowerCase().replaceAll("_", " ")}`, 80);
  return where(before) === where(after) ? "another attempt was made at it" : `it was ${where(before)}, and is ${where(after)} now`;
}

/** How often it is tried again where it was only overtaken by something that is not in its way. */
const TRIES_MAX = 8;

/**
 * Does something to the very state that a person looked at: what changed meanwhile is not judged unseen. Where only words were added, it is done all the
 * same. `look` asks how the task stands now.
 */
export async function toWhatWasSeen<T>(seen: Seen, look: () => Promise<Task>, work: (options: CallOptions) => Promise<T>): Promise<T> {
  let { rev } = seen;
  for (let tries = 1; ; tries += 1) {
    try {
      return await work({ ifMatch: { rev } });
    } catch (error) {
      if (!(error instanceof BatonError) || error.status !== 412 || tries >= TRIES_MAX) throw error;
      const now = seenOf(await look());
      if (!isSameToJudge(now, seen)) throw error;
      rev = now.rev;
    }
  }
}

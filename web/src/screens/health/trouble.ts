// What is wrong, in one list: each with what to do about it.

import { tracePath } from "../../router.js";
import { WHOLE } from "../../state/damage.js";
import { plural, span } from "../../state/format.js";
import { oneLine } from "../../state/text.js";
import type { AgentStatus, DoctorCheck, Lease, Status } from "./state.js";

export interface Trouble {
  key: string;
  kind: "bad" | "warn";
  text: string;
  /** A command that mends it, or tells more. */
  command?: string;
  /** A place in this page. */
  path?: string;
}

/** Leases that end this soon are shown as such. */
export const NEAR_MS = 60_000;
/** Polls of the scheduler that may be missed. */
const POLLS_MISSED = 10;
const POLL_MS_LEAST = 1000;

export const kindOf = (status: string): "good" | "warn" | "bad" | "off" =>
  ["ok", "pass", "good"].includes(status) ? "good" : ["warn", "warning"].includes(status) ? "warn" : ["skipped", "off", "unknown"].includes(status) ? "off" : "bad";

/** What an agent did wrong long ago is a number in its row, and keeps nobody here. */
const LATELY_MS = 24 * 3600 * 1000;
const hasFailedLately = (agent: AgentStatus, now: string): boolean =>
  (agent.failures ?? 0) > 0 && !(Date.parse(now) - Date.parse(agent.lastFailureAt ?? now) > LATELY_MS);

/** A command about a check: one that mends it, else one that says more. What is wrong is never without a way on. */
export function commandOf(check: DoctorCheck): string | undefined {
  const isWrong = ["bad", "warn"].includes(kindOf(check.status)) && check.advice === undefined;
  return check.fix ?? check.see ?? (check.code !== undefined ? `baton explain ${check.code}` : isWrong ? "baton doctor" : undefined);
}

/** When a lease ends if nothing is heard any more: at its own end, or with the beat that does not come. */
export const endOf = (lease: Lease): string =>
  lease.heartbeatBy !== undefined && Date.parse(lease.heartbeatBy) < Date.parse(lease.expiresAt) ? lease.heartbeatBy : lease.expiresAt;

export const times = (count: number): string => (count === 1 ? "once" : count === 2 ? "twice" : `${count} times`);

/** How far the disk and the signatures are behind the events. Where none is shown before it is on the disk, that is said, and not a zero. */
export function journalWords({ durability, unsynced, unsigned }: NonNullable<Status["store"]["journal"]>): string {
  const disk = durability === "commit" ? "synced before answers" : `${plural(unsynced, "event")} not synced`;
  return `${disk}; ${plural(unsigned, "event")} not signed yet`;
}

/** How far the board and the files of tasks are behind the ledger. */
export function projectionWords({ events, tasks, waitingMs }: NonNullable<Status["store"]["projection"]>): string {
  return `${plural(events, "event")} and files of ${plural(tasks, "task")} behind${waitingMs > 1000 ? `, for ${span(waitingMs)}` : ""}`;
}

/** What was found of the ledger. */
export const damagesOf = (found: ReadonlyMap<string, string>): readonly Trouble[] => [...found].map(([trace, words]) => ({
  key: `damage ${trace}`, kind: "bad", ...(trace === WHOLE ? {} : { path: tracePath(trace) }), command: "baton verify",
  text: `${trace === WHOLE ? "The ledger" : "A trace"} is damaged: copy the data directory before anything else. ${oneLine(words)}`,
}));

export function troublesOf(status: Status): readonly Trouble[] {
  const found: Trouble[] = [];
  const add = (key: string, kind: Trouble["kind"], text: string, more: Pick<Trouble, "command" | "path"> = {}) => found.push({ key, kind, text, ...more });
  for (const agent of status.agents) {
    if (!agent.installed) add(`agent ${agent.name}`, "bad", `Agent ${oneLine(agent.name, 64)} is not installed${agent.detail ? `: ${oneLine(agent.detail)}` : ""}.`, { command: `baton agent check ${agent.name}` });
    else if (hasFailedLately(agent, status.now)) add(`agent ${agent.name}`, "warn", `Agent ${oneLine(agent.name, 64)} failed ${times(agent.failures ?? 0)}.`, { path: "/sessions" });
  }
  const failed = status.store.projection?.failed ?? 0;
  if (failed > 0) add("projection", "bad", `The files of ${plural(failed, "task")} could not be written.`, { command: "baton doctor" });
  for (const check of status.checks) {
    const kind = kindOf(check.status);
    if (kind !== "bad" && kind !== "warn") continue;
    const command = commandOf(check);
    const advice = check.advice === undefined ? "" : ` ${oneLine(check.advice)}`;
    add(`check ${check.check} ${check.detail}`, kind, `${oneLine(check.check, 64)}: ${oneLine(check.detail)}.${advice}`, command === undefined ? {} : { command });
  }
  const { lastVerified } = status.ledger;
  if (lastVerified?.verdict === "fail") add("ledger", "bad", "The ledger was verified and does not hold.", { command: "baton verify" });
  const { scheduler } = status;
  const late = scheduler.lastAt === undefined ? 0 : Date.parse(status.now) - Date.parse(scheduler.lastAt);
  if (!scheduler.isDispatching) add("scheduler", "warn", "No tasks are handed out: it was started with --no-dispatch, or ends.", { command: "baton serve" });
  else if (late > POLLS_MISSED * Math.max(scheduler.pollMs, POLL_MS_LEAST)) add("scheduler", "bad", "The scheduler has not looked for tasks for a while.", { command: "baton doctor" });
  return found.sort((a, b) => (a.kind === b.kind ? 0 : a.kind === "bad" ? -1 : 1));
}

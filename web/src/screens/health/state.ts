// How Baton is: asked every few seconds as long as somebody looks.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { fetched, inWords } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { noteDamage, WHOLE } from "../../state/damage.js";
import { tell, type Fetched } from "../../state/store.js";
import type { Report } from "../trace/record.js";
import { noteReport } from "../trace/words.js";

export interface AgentStatus {
  name: string;
  harness: string;
  command?: string;
  installed: boolean;
  /** What it said that it is when it last began, with its version. */
  program?: string;
  detail?: string;
  sessions: number;
  maxSessions?: number;
  lastStartAt?: string;
  /** Sessions and attempts that failed, of all events that were counted. */
  failures?: number;
  lastFailureAt?: string;
}

export interface DoctorCheck {
  check: string;
  status: string;
  detail: string;
  /** A command that mends it, one that says more, or what only a person can do. */
  fix?: string;
  see?: string;
  advice?: string;
  code?: string;
}

export interface Lease {
  taskId: string;
  agent: string;
  expiresAt: string;
  heartbeatBy?: string;
}

/** What `GET /v1/status` gives. */
export interface Status {
  version: string;
  startedAt: string;
  now: string;
  origin: string;
  agents: AgentStatus[];
  scheduler: {
    isDispatching: boolean;
    pollMs: number;
    lastAt?: string;
    running: number;
    maxConcurrent: number;
    ready: number;
    oldestReadyAt?: string;
    leases: Lease[];
  };
  store: {
    kind: string;
    bytes?: number;
    freeBytes?: number;
    /** Events that a power cut could take, and those that no checkpoint covers. */
    journal?: { durability: string; unsynced: number; unsigned: number };
    /** Events that the board had not taken in, and tasks whose files are behind. */
    projection?: { events: number; tasks: number; failed: number; waitingMs: number };
  };
  ledger: { size: number; root?: string; head?: string; key?: string; unread?: string; lastVerified?: { at: string; verdict: Report["verdict"]; events: number } };
  refused: { reason: string; count: number }[];
  /** How many events what is said of agents and of refused messages is made of. */
  counted?: { to: number; of: number };
  checks: DoctorCheck[];
}

/** A process that works on this board. */
export interface Machine {
  id: string;
  pid: number;
  version: string;
  sessions: number;
}

const EVERY_MS = 5000;

export const status = signal<Fetched<Status>>({ kind: "loading" });
export const machines = signal<readonly Machine[]>([]);
/** When it was last answered, and why not since. */
export const answeredAt = signal(0);
export const report = signal<{ report: Report; at: number } | undefined>(undefined);
export const isVerifying = signal(false);

let isAsking = false;

export async function load(): Promise<void> {
  if (isAsking) return;
  isAsking = true;
  const [came, nodes] = await Promise.all([fetched(client.getStatus() as Promise<Status>), fetched(client.listNodes())]);
  isAsking = false;
  // What was shown stays while the server is away: how old it is stands beside it.
  if (came.kind === "broken" && status.peek().kind === "ready") return;
  if (came.kind === "ready") {
    answeredAt.value = Date.now();
    if (came.value.ledger.unread !== undefined) noteDamage(WHOLE, came.value.ledger.unread);
  }
  status.value = came;
  if (nodes.kind === "ready") machines.value = nodes.value.nodes;
}

/** Has the whole ledger verified. */
export async function verify(): Promise<void> {
  if (isVerifying.peek()) return;
  isVerifying.value = true;
  const came = await fetched(client.verifyLedger() as unknown as Promise<Report>);
  isVerifying.value = false;
  if (came.kind === "ready") {
    report.value = { report: came.value, at: Date.now() };
    noteReport(WHOLE, came.value);
  }
  if (came.kind === "broken") tell("bad", `The ledger was not verified: ${inWords(came.error)}`);
  await load();
}

/** Asks again and again as long as whoever uses this is shown, and the page is seen. */
export function useStatus(): void {
  useEffect(() => {
    void load();
    const timer = setInterval(() => { if (!document.hidden) void load(); }, EVERY_MS);
    const seen = () => { if (!document.hidden) void load(); };
    document.addEventListener("visibilitychange", seen);
    return () => {
      clearInterval(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
}

// Every trace, what each is of, and a bundle that somebody dropped.

import { computed, effect, signal } from "@preact/signals";
import { cardOf } from "../../state/model.js";
import { damage, noteDamage, WHOLE, withWords } from "../../state/damage.js";
import { failureOf, fetched } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { grown, link, position, tasks, type Fetched } from "../../state/store.js";
import type { Report, TraceRecord } from "./record.js";

export interface TraceLine {
  trace: string;
  closed: boolean;
  events: number;
  head: string;
  /** Whether the server does not list it any more. */
  isLost?: boolean;
}

/** What a trace is of. */
export interface About {
  kind: "task" | "guarded run" | "ledger" | "trace";
  title: string;
  task?: string;
}

/** Events of the ledger that are in none of the traces that were listed: every event is in one. */
export const unlisted = signal(0);
export const lines = signal<Fetched<readonly TraceLine[]>>({ kind: "loading" });

/** Between two times that the list is fetched: longer where it takes long. */
const REST_MS = 1000;
const REST_FACTOR = 10;

/** Of so many that are lost is asked at once why. */
const SOUGHT_MAX = 50;

let isLoading = false;
let isWanted = false;

export async function load(): Promise<void> {
  isWanted = true;
  if (isLoading) return;
  isLoading = true;
  while (isWanted) {
    isWanted = false;
    const began = performance.now();
    const heard = position.peek();
    const came = await fetched(client.listTraces());
    const hole = came.kind === "ready" ? came.value.damage : undefined;
    if (hole) noteDamage(WHOLE, `It does not read from event ${hole.pos} on: ${hole.why}`);
    if (came.kind === "ready") lines.value = { kind: "ready", value: whole(came.value.traces, heard) };
    // What was shown stays while the server is away.
    else if (lines.peek().kind !== "ready") lines.value = came;
    await new Promise((resolve) => setTimeout(resolve, Math.max(REST_MS, (performance.now() - began) * REST_FACTOR)));
  }
  isLoading = false;
}

/** The newest first. A list ends before a trace that does not read: those that are known from elsewhere are added as lost, and are looked up to learn why. */
function whole(listed: readonly TraceLine[], heard: number): readonly TraceLine[] {
  unlisted.value = Math.max(0, heard - listed.reduce((sum, line) => sum + line.events, 0));
  const all = [...listed].reverse();
  if (unlisted.peek() === 0) return all;
  const before = lines.peek();
  const known = new Map([...byTask.peek().keys()].map((trace): [string, TraceLine] => [trace, { trace, closed: false, events: 0, head: "" }]));
  for (const line of before.kind === "ready" ? before.value : []) known.set(line.trace, line);
  for (const { trace } of listed) known.delete(trace);
  for (const { trace } of [...known.values()].filter(({ isLost }) => !isLost).slice(0, SOUGHT_MAX)) seek(trace);
  return [...[...known.values()].map((line) => ({ ...line, isLost: true })), ...all];
}

/** Follows the list as long as it is shown. What could not be looked up is tried again once there is somebody to ask. */
export function follow(): () => void {
  const ends = [
    effect(() => {
      void grown.value;
      void link.value.kind;
      void load();
    }),
    effect(() => { if (link.value.kind === "live") lookAgain(); }),
  ];
  return () => ends.forEach((end) => end());
}

/** Looks up again what could not be. */
export const lookAgain = (): void => [...unread.peek().keys()].forEach(seek);

/** What the tasks say of traces. */
const byTask = computed<ReadonlyMap<string, About>>(() => {
  const known = new Map<string, About>([["ledger", { kind: "ledger", title: "The ledger's own trace" }]]);
  for (const task of tasks.value.values()) {
    if (task.traceId !== undefined) known.set(task.traceId, { kind: "task", title: task.title, task: task.id });
    const card = cardOf(task);
    for (const run of [card.verified?.trace, card.guard]) {
      if (run !== undefined) known.set(run, { kind: "guarded run", title: task.title, task: task.id });
    }
  }
  return known;
});

/** What the first events of traces say that no task knows of. */
const looked = signal<ReadonlyMap<string, About>>(new Map());
/** Why the others could not be looked up. */
export const unread = signal<ReadonlyMap<string, string>>(new Map());
const queue: string[] = [];
const queued = new Set<string>();
let atWork = 0;
const AT_ONCE = 4;

/** What a trace is of, as far as that is known; it is looked up where it is not. */
export function aboutOf(trace: string): About | undefined {
  const known = knownOf(trace);
  if (known === undefined && !unread.value.has(trace)) seek(trace);
  return known;
}

function seek(trace: string): void {
  if (queued.has(trace)) return;
  queued.add(trace);
  queue.push(trace);
  queueMicrotask(work);
}

/** Why a trace cannot be shown, or is not believed. */
export const whyOf = (trace: string): string | undefined => unread.value.get(trace) ?? damage.value.get(trace);

/** The same, without looking anything up. */
export const knownOf = (trace: string): About | undefined => byTask.value.get(trace) ?? looked.value.get(trace);

function work(): void {
  while (atWork < AT_ONCE && queue.length > 0) {
    // What was asked for last is in sight.
    const trace = queue.pop();
    if (trace === undefined) return;
    atWork += 1;
    void lookUp(trace).then(() => {
      queued.delete(trace);
      atWork -= 1;
      work();
    });
  }
}

async function lookUp(trace: string): Promise<void> {
  let why: string | undefined;
  try {
    const page = await client.getTrace(trace, { limit: 2 });
    const [first, second] = page.events as TraceRecord[];
    const title = first?.payload["title"];
    const isRun = second?.type === "session_initialized";
    looked.value = new Map(looked.peek()).set(trace, {
      kind: isRun ? "guarded run" : first?.task !== undefined ? "task" : "trace",
      title: typeof title === "string" ? title : "",
      ...(first?.task !== undefined ? { task: first.task } : {}),
    });
  } catch (error) {
    why = failureOf(error).title;
  }
  unread.value = withWords(unread.peek(), trace, why);
}

/** Lines that have every word of what is looked for. */
export function found(all: readonly TraceLine[], sought: string): readonly TraceLine[] {
  const words = sought.toLowerCase().split(/\s+/).filter((word) => word !== "");
  if (words.length === 0) return all;
  return all.filter((line) => {
    const about = knownOf(line.trace);
    const text = `${line.trace} ${about?.kind ?? ""} ${about?.title ?? ""} ${about?.task ?? ""} ${line.closed ? "closed" : "open"} ${line.head}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

export interface Dropped {
  name: string;
  bytes: number;
  report: Fetched<Report>;
}

export const dropped = signal<Dropped | undefined>(undefined);

/** What the server takes at most. */
const BUNDLE_BYTES_MAX = 64 * 1024 * 1024;

/** Has a file verified, whatever it is. */
export async function verifyFile(file: File): Promise<void> {
  const { name, size } = file;
  dropped.value = { name, bytes: size, report: { kind: "loading" } };
  const mine = dropped.peek();
  if (size > BUNDLE_BYTES_MAX) {
    const error = { title: "it is larger than a server takes", code: undefined, detail: undefined, hint: `baton verify ${name}` };
    dropped.value = { name, bytes: size, report: { kind: "broken", error } };
    return;
  }
  const report = (await fetched(client.verifyBundle(file))) as Fetched<Report>;
  if (dropped.peek() === mine) dropped.value = { name, bytes: size, report };
}

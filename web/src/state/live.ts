// Keeps the page in step with the ledger: whatever an event is about is fetched again, a little later and together with what else changed.
//
// The stream says that something happened and what it was about; how things stand is always asked of the server, so that there is one way to know it. The
// stream begins before anything is fetched, and goes on by itself after every break: nothing that happens in between is missed.

import { BatonError, Client, type LedgerRecord, type Task } from "@baton/sdk";
import { failureOf, fetched, inWords } from "./failure.js";
import { noteRecord, startIdentity } from "./identity.js";
import { cardOf, COLUMNS, ENDED } from "./model.js";
import { isSessionId, taken, type Known } from "./sessions.js";
import { grown, link, now, position, sessions, sessionsLoading, sessionsNext, tasks, tasksLoading, tell, type Link } from "./store.js";
import { share, type Channel } from "./tabs.js";

export const client = new Client();

/** How long changes are gathered before they are fetched. */
const GATHER_MS = 120;
/** And how long is waited after what could not be fetched. */
const AGAIN_MS = 2000;
/** Tasks or sessions that are fetched by their ids at once, and those of a page. */
const IDS_MAX = 100;
const PAGE = 500;
const FIRST_PAGE = 100;

const TASK_ID = /^TASK-\d{4}-\d{2}-\d{2}-(?:\d{3}|[a-z0-9]{4,32})$/;

let dirtyTasks = new Set<string>();
let dirtySessions = new Set<string>();
let timer: ReturnType<typeof setTimeout> | undefined;
let isFlushing = false;

/** What the tab that leads tells the others: how it stands to the server, and what an event is about. */
type Word = { link: Link } | { record: Heard };
type Heard = Pick<LedgerRecord, "pos" | "seq" | "type" | "trace"> & { hash: string; task: string | undefined; session: unknown };

/** Begins, once. */
export function startLive(): void {
  setInterval(() => { now.value = Date.now(); }, 1000);
  startIdentity(client);
  // Whoever leads is heard before the first answer comes: what happens in between is told.
  const loading = load();
  const lead = async (others: Channel<Word>, signal: AbortSignal): Promise<void> => { if (await loading) await follow(others, signal); };
  share<Word>("live", lead, (word) => ("record" in word ? take(word.record) : stand(word.link)), () => ({ link: link.value }));
}

/** Fetches everything, once there is somebody to ask; and whether there is. */
async function load(): Promise<boolean> {
  for (;;) {
    try {
      const head = await client.getCheckpoint();
      position.value = Math.max(position.value, head.size);
      void loadTasks();
      void loadSessions();
      return true;
    } catch (error) {
      if (!(await isWorthAnother(error))) return false;
    }
  }
}

/** How the page stands to its server, as it or the tab that leads has found. */
function stand(next: Link): void {
  const before = link.value.kind;
  // Whether a tab is let in it finds out by itself, and for good.
  if (before === "denied" || next.kind === "denied" || (before === "live" && next.kind === "live")) return;
  link.value = next;
  if (next.kind !== "live") return;
  // What could not be loaded before is, now that there is somebody to ask.
  if (tasksLoading.value.kind === "broken") void loadTasks();
  if (sessionsLoading.value.kind === "broken") void loadSessions();
}

async function follow(others: Channel<Word>, signal: AbortSignal): Promise<void> {
  const say = (next: Link): void => {
    stand(next);
    others.say({ link: next });
  };
  for (;;) {
    try {
      // A ledger may be shorter than it was: after a backup was restored, and `identity.ts` says so.
      position.value = Math.min(position.value, (await client.getCheckpoint()).size);
      const stream = client.followEvents({ since: position.value }, {
        signal,
        onStatus: (status) => {
          if (status.type === "live") say({ kind: "live" });
          if (status.type === "waiting") say({ kind: "waiting", since: link.value.kind === "waiting" ? link.value.since : Date.now(), reason: status.reason });
        },
      });
      for await (const { pos, seq, type, task, trace, session, hash } of stream) {
        const record: Heard = { pos, seq, type, task, trace, hash: String(hash), session };
        take(record);
        others.say({ record });
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(await isWorthAnother(error))) return;
      others.say({ link: link.value });
    }
  }
}

/** Says what went wrong, and waits a moment. A token that does not open this will not open it in a second either. */
async function isWorthAnother(error: unknown): Promise<boolean> {
  const failure = failureOf(error);
  if (error instanceof BatonError && error.status === 403) link.value = { kind: "denied", reason: failure.title };
  if (link.value.kind === "denied") return false;
  link.value = { kind: "waiting", since: link.value.kind === "waiting" ? link.value.since : Date.now(), reason: failure.title };
  await new Promise((resolve) => setTimeout(resolve, 1000));
  return true;
}

/** Notes what an event is about. */
function take(record: Heard): void {
  position.value = Math.max(position.value, record.pos);
  noteRecord(record);
  // Whoever appends by hand may name anything.
  if (record.task !== undefined && TASK_ID.test(record.task)) dirtyTasks.add(record.task);
  if (isSessionId(record.session)) dirtySessions.add(record.session);
  if (record.trace !== undefined) noteGrowth(record.trace, record.seq);
  schedule();
}

let growth = new Map<string, number>();

function noteGrowth(trace: string, seq: number): void {
  growth.set(trace, seq);
  if (growth.size > 1000) growth = new Map([...growth].slice(-500));
}

/** What takes long to fetch is fetched less often. */
let fetchingMs = 0;

function schedule(wait = Math.max(GATHER_MS, 2 * fetchingMs)): void {
  timer ??= setTimeout(() => {
    timer = undefined;
    void flush();
  }, wait);
}

async function flush(): Promise<void> {
  if (isFlushing) return schedule();
  isFlushing = true;
  const [ofTasks, ofSessions] = [dirtyTasks, dirtySessions];
  dirtyTasks = new Set();
  dirtySessions = new Set();
  grown.value = new Map(growth);
  const began = performance.now();
  try {
    await fetchNamed(ofTasks, dirtyTasks, async (id) => {
      const asked = performance.now();
      merge((await client.listTasks({ id, limit: IDS_MAX })).tasks, asked);
    });
    // Where the list itself could not be had, something that happens is a reason to ask for it again.
    if (ofSessions.size > 0 && sessionsLoading.value.kind === "broken") void loadSessions();
    await fetchNamed(ofSessions, dirtySessions, async (id) => {
      const asked = performance.now();
      takeSessions((await client.listSessions({ id, limit: IDS_MAX })).sessions, asked, id);
    });
  } finally {
    isFlushing = false;
    fetchingMs = Math.min(performance.now() - began, AGAIN_MS);
  }
}

/** Fetches what has changed by its ids. What could not be asked for is asked for again once there is somebody to ask; what is refused would be refused again. */
async function fetchNamed(named: ReadonlySet<string>, again: Set<string>, fetchSome: (ids: string[]) => Promise<void>): Promise<void> {
  const ids = [...named];
  try {
    for (let at = 0; at < ids.length; at += IDS_MAX) await fetchSome(ids.slice(at, at + IDS_MAX));
  } catch (error) {
    failureOf(error);
    const isRefused = error instanceof BatonError && error.status >= 400 && error.status < 500 && error.status !== 408 && error.status !== 429;
    if (!isRefused) ids.forEach((id) => again.add(id));
    schedule(AGAIN_MS);
  }
}

/** When each task was last asked for by itself. */
const askedAt = new Map<string, number>();

/** Takes tasks in that were asked for at a time, unless what is known of them is newer: some of it changes without another revision. */
export function merge(found: readonly Task[], at = performance.now()): void {
  if (found.length === 0) return;
  const next = new Map(tasks.value);
  for (const task of found) {
    const known = next.get(task.id);
    if (known !== undefined && (known.rev > task.rev || (known.rev === task.rev && (askedAt.get(task.id) ?? 0) > at))) continue;
    next.set(task.id, task);
    askedAt.set(task.id, at);
  }
  tasks.value = next;
}

/** Takes in the answer to a change at once; what only lists say of a task stays until they do. */
export function takeAnswer(task: Task): void {
  const known = tasks.value.get(task.id);
  merge([task.card === undefined && known ? { ...task, card: cardOf(known) } : task]);
}

/** What moves comes first, then everything else, page by page. */
export async function loadTasks(): Promise<void> {
  const asked = performance.now();
  try {
    const moving = COLUMNS.filter((status) => status !== "done" && status !== "backlog");
    const [first, rest] = await Promise.all([
      client.listTasks({ status: [...moving], limit: FIRST_PAGE }),
      client.listTasks({ status: ["backlog", "done"], limit: FIRST_PAGE }),
    ]);
    merge([...first.tasks, ...rest.tasks], asked);
    if (tasksLoading.value.kind !== "whole") tasksLoading.value = { kind: "partly" };
    for (const [statuses, start] of [[moving, first.next], [["backlog", "done"], rest.next], [ENDED, ""]] as const) {
      let cursor: string | undefined = start;
      while (cursor !== undefined) {
        const query = cursor === "" ? { limit: PAGE } : { limit: PAGE, cursor };
        const page = await client.listTasks({ status: [...statuses], ...query });
        merge(page.tasks, asked);
        cursor = page.next;
      }
    }
    tasksLoading.value = { kind: "whole" };
  } catch (error) {
    tasksLoading.value = { kind: "broken", error: failureOf(error) };
  }
}

let known: Known = { sessions: [], askedAt: new Map() };

function takeSessions(found: Known["sessions"], at: number, named?: readonly string[]): void {
  known = taken(known, found, at, named);
  sessions.value = known.sessions;
}

/** Those that run, wherever they stand in the list, and the newest; older ones where somebody asks for them. */
export async function loadSessions(): Promise<void> {
  const asked = performance.now();
  try {
    const [live, first] = await Promise.all([client.listSessions({ live: true, limit: PAGE }), client.listSessions({ limit: FIRST_PAGE })]);
    if (![live, first].every(({ sessions }) => Array.isArray(sessions))) throw new Error("not as this page knows it");
    takeSessions([...live.sessions, ...first.sessions], asked);
    // Whoever has gone further goes on from there.
    if (sessionsLoading.value.kind !== "whole") sessionsNext.value = first.next;
    sessionsLoading.value = { kind: "whole" };
  } catch (error) {
    if (sessionsLoading.value.kind !== "whole") sessionsLoading.value = { kind: "broken", error: failureOf(error) };
  }
}

/** The next page of older ones. */
export async function loadOlderSessions(cursor: string): Promise<void> {
  const asked = performance.now();
  const came = await fetched(client.listSessions({ cursor, limit: FIRST_PAGE }));
  if (came.kind === "broken") return tell("bad", inWords(came.error));
  takeSessions(came.value.sessions, asked);
  sessionsNext.value = came.value.next;
}

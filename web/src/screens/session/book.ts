// A session as its screen shows it: the SDK's view, and beside it what only a screen needs: the states over time, each attempt of a tool or hook, and
// what belongs to which turn. Plain functions; never changed, always made anew; bounded.

import {
  emptyView, reduce, viewOf, type HookRun, type Permission, type Session, type SessionError, type SessionItem, type SessionView, type StateEvent, type StateKind,
  type ToolRun,
} from "@baton/sdk";

const KEPT_MAX = 400;
const BESIDE_MAX = 200;

/** A state, from when to when. */
export interface Band {
  state: StateKind;
  reason: string;
  from: number;
  to: number | undefined;
}

/** One attempt of a tool or a hook. */
export interface Bar {
  key: string;
  kind: "tool" | "hook";
  runId: string;
  name: string;
  status: string;
  attempt: number;
  from: number;
  to: number | undefined;
  error: string | undefined;
}

/** What was answered to what was asked for. */
export interface Answered {
  asked: Permission;
  answer: string;
  by: string;
}

/** What happened in one turn beside its words. */
export interface Mark {
  streamId: string;
  at: number;
  reason: string;
  prompt: string | undefined;
  /** Whether the prompt is only what was sent here last: somebody else may have been faster. */
  isGuess: boolean;
  /** How often the prompt was looked for in the transcript. */
  looks: number;
  tools: readonly ToolRun[];
  hooks: readonly HookRun[];
  errors: readonly (SessionError & { isWarning: boolean })[];
  answers: readonly Answered[];
}

export interface Book {
  view: SessionView;
  bands: readonly Band[];
  bars: readonly Bar[];
  marks: readonly Mark[];
  /** What was written here and has no turn yet. */
  prompt: string | undefined;
  /** When its end was asked for. */
  stoppingSince: number | undefined;
}

export const emptyBook = (): Book => ({
  view: emptyView(), bands: [], bars: [], marks: [], prompt: undefined, stoppingSince: undefined,
});

/** Takes the next item in. */
export function take(book: Book, item: SessionItem): Book {
  const view = reduce(book.view, item);
  // The same item again.
  if (view === book.view) return book;
  const before = book.view;
  const next = { ...book, view };
  switch (item.kind) {
    case "state_event":
      return noteState(next, item.event, before);
    case "stream_event": {
      const { streamId, timestampMs } = item.event ?? {};
      if (typeof streamId !== "string" || book.marks.at(-1)?.streamId === streamId || book.marks.some((mark) => mark.streamId === streamId)) return next;
      return withMark(next, markOf(streamId, timestampMs, "", undefined));
    }
    case "gap":
      // It is told from its beginning: what happened is told again, what was said is here.
      return item.resumeFrom === 0 ? { ...emptyBook(), view } : next;
    case "ended":
      return withTurns(closed(next, lastMoment(next)));
    default:
      return next;
  }
}

/** What was sent, until its turn begins. */
export const withPrompt = (book: Book, prompt: string | undefined): Book => ({ ...book, prompt });

function noteState(book: Book, event: StateEvent, before: SessionView): Book {
  const at = typeof event?.timestampMs === "number" ? event.timestampMs : Date.now();
  switch (event?.type) {
    case "state_changed": {
      const band: Band = { state: event.to, reason: event.reason, from: at, to: event.to === "stopped" ? at : undefined };
      const bands = [...closed(book, at).bands.slice(1 - KEPT_MAX), band];
      const stoppingSince = event.to === "stopping" ? at : book.stoppingSince;
      const next = { ...book, bands, stoppingSince };
      if (event.to !== "calling_llm" || event.streamId === undefined) return next;
      const isOurs = event.reason === "user_input" && book.prompt !== undefined;
      const mark = markOf(event.streamId, at, event.reason, isOurs ? book.prompt : undefined);
      return withMark({ ...next, prompt: isOurs ? undefined : book.prompt }, mark);
    }
    case "tool_lifecycle": {
      const run = book.view.toolRuns.findLast((other) => other.runId === event.runId);
      const named = { ...withBar(book, "tool", event, event.toolName) };
      return run ? inMark(named, (mark) => mark.tools.some((other) => other.runId === run.runId), (mark) => ({ ...mark, tools: put(mark.tools, run) })) : named;
    }
    case "hook_lifecycle": {
      const run = book.view.hookRuns.findLast((other) => other.runId === event.runId);
      const named = { ...withBar(book, "hook", event, event.hookName) };
      return run ? inMark(named, (mark) => mark.hooks.some((other) => other.runId === run.runId), (mark) => ({ ...mark, hooks: put(mark.hooks, run) })) : named;
    }
    case "session_error":
    case "session_warning": {
      const { code, message, retryable, source } = event;
      const error = { code, message, retryable, source, isWarning: event.type === "session_warning" };
      return inMark(book, () => false, (mark) => ({ ...mark, errors: [...mark.errors.slice(1 - BESIDE_MAX), error] }));
    }
    case "permission_resolved": {
      const asked = before.pendingPermissions.find((other) => other.id === event.id);
      if (!asked) return book;
      const answer = typeof event.answer === "string" ? event.answer : String(event.answer?.text ?? "");
      const answered = { asked, answer, by: event.by };
      return inMark(book, () => false, (mark) => ({ ...mark, answers: [...mark.answers.slice(1 - BESIDE_MAX), answered] }));
    }
    default:
      return book;
  }
}

const markOf = (streamId: string, at: number, reason: string, prompt: string | undefined): Mark =>
  ({ streamId, at, reason, prompt, isGuess: prompt !== undefined, looks: 0, tools: [], hooks: [], errors: [], answers: [] });

function withMark(book: Book, mark: Mark): Book {
  const known = book.marks.findLastIndex((other) => other.streamId === mark.streamId);
  if (known >= 0) return book;
  return { ...book, marks: [...book.marks.slice(1 - KEPT_MAX), mark] };
}

/** Changes the mark that a thing is in already, or else the last one; what happens before any turn has a mark without one. */
function inMark(book: Book, isIn: (mark: Mark) => boolean, change: (mark: Mark) => Mark): Book {
  const found = book.marks.findLastIndex(isIn);
  const marks = book.marks.length > 0 ? book.marks : [markOf("", Date.now(), "spawned", undefined)];
  const at = found >= 0 ? found : marks.length - 1;
  const mark = marks[at];
  return mark ? { ...book, marks: marks.with(at, change(mark)) } : book;
}

function put<T extends { runId: string }>(runs: readonly T[], run: T): readonly T[] {
  const at = runs.findLastIndex((other) => other.runId === run.runId);
  return at >= 0 ? runs.with(at, run) : [...runs.slice(1 - KEPT_MAX), run];
}

function withBar(book: Book, kind: Bar["kind"], run: ToolRun | HookRun, name: string): Book {
  const key = `${run.runId} ${run.attempt}`;
  const bar: Bar = {
    key, kind, name, runId: run.runId, status: run.status, attempt: run.attempt, from: run.startedAtMs, to: run.finishedAtMs, error: run.error,
  };
  const at = book.bars.findLastIndex((other) => other.key === key);
  return { ...book, bars: at >= 0 ? book.bars.with(at, bar) : [...book.bars.slice(1 - KEPT_MAX), bar] };
}

/** Ends the band that is open. */
function closed(book: Book, at: number): Book {
  const last = book.bands.at(-1);
  return last && last.to === undefined ? { ...book, bands: book.bands.with(-1, { ...last, to: at }) } : book;
}

/** The last moment that anything is known of. */
function lastMoment(book: Book): number {
  return Math.max(book.bands.at(-1)?.from ?? 0, ...book.bars.map((bar) => bar.to ?? bar.from));
}

/** How a session stands, for whoever came too late for its beginning. */
export function withSession(book: Book, session: Session, now: number): Book {
  const known = viewOf(session);
  const { state, toolRuns, hookRuns, pendingPermissions, lastError } = known;
  const base: Book = { ...book, view: { ...book.view, state, toolRuns, hookRuns, pendingPermissions, lastError } };
  const tools = toolRuns.slice(-KEPT_MAX).reduce((next, run) => withBar(next, "tool", run, run.toolName), base);
  const all = hookRuns.slice(-KEPT_MAX).reduce((next, run) => withBar(next, "hook", run, run.hookName), tools);
  if (all.bands.at(-1)?.state === state) return all;
  return { ...all, bands: [...closed(all, now).bands.slice(1 - KEPT_MAX), { state, reason: "", from: now, to: undefined }] };
}

/** Turns of which only the words are known have a mark as well. */
function withTurns(book: Book): Book {
  return book.view.turns.reduce((now, turn) => withMark(now, markOf(turn.streamId, 0, "", undefined)), book);
}

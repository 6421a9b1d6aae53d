// The reducer: what a session says, folded into what is shown of it. A plain function of a view and an item; the page uses it, and so can you.
//
// State events are folded as `crates/core/src/session/view.rs` does it, so that the view is what `getSession` gives; the recordings in
// `fixtures/sessions/` say that both come to the same. Stream events become turns. What is
// not known, or does not hold what it should, is kept as it came in `unknown`. However long a session talks, its view stays small: the oldest parts go,
// and are counted. The transcript has them.

import type { HookRun, Permission, SessionError, SessionItem, StateEvent, StateKind, StreamEvent, ToolRun } from "./session.js";
import type { Session, TerminationInfo } from "./types.js";

/** Most runs of each kind, and most turns, that a view keeps; the ledger and the transcript have all. */
const KEPT_MAX = 1000;
/** Most events that nobody knows. */
const UNKNOWN_MAX = 200;
/** Most parts of all turns together, and most characters of them. */
const PARTS_MAX = 1000;
const CHARS_MAX = 1_000_000;
/** Characters of one part that is text: it goes on in another one. */
const PART_CHARS_MAX = 8192;
/** Characters of what a call was given or gave, of a message, or of an event that nobody knows. */
const VALUE_CHARS_MAX = 65_536;

/** A call of a tool, as the agent told of it. */
export interface ToolCallPart {
  kind: "tool_call";
  callId: string;
  toolName: string | undefined;
  arguments: unknown;
  status: "pending" | "running" | "completed";
  output: unknown;
  error: unknown;
}

/** A piece of a turn, in the order in which it was said. */
export type TurnPart =
  | { kind: "text"; role: string; text: string }
  | { kind: "thinking"; text: string }
  | { kind: "status"; message: string }
  | ToolCallPart;

/** One stream: a request and what was answered. */
export interface Turn {
  streamId: string;
  /** The last event that is in here. */
  seq: number;
  parts: readonly TurnPart[];
  /** How many parts before these are not here any more, where there are such. */
  leftOut?: number;
  usage: unknown;
  /** What the agent means to do, as it said last: a list, each with `content` and `status`. */
  plan?: unknown;
  /** How it ended; missing while it goes on. */
  end: { type: "completed"; reason: string } | { type: "error"; message: string; code: string | undefined } | undefined;
}

/** Something that nobody here knows, as it came. */
export interface RawEvent {
  at: number;
  /** The name that it had in the stream. */
  channel: string;
  event: unknown;
}

/** What is shown of a session. Never changed: each step gives a new one, or the same where nothing is new. */
export interface SessionView {
  /** Up to where the stream is in here. */
  readonly at: number;
  readonly state: StateKind;
  /** The stream of the last request. */
  readonly streamId: string | undefined;
  readonly toolRuns: readonly ToolRun[];
  readonly hookRuns: readonly HookRun[];
  readonly pendingPermissions: readonly Permission[];
  readonly lastError: SessionError | undefined;
  readonly warnings: readonly SessionError[];
  readonly exitCode: number | undefined;
  readonly turns: readonly Turn[];
  /** How much of the turns is here, and how many of their parts are not any more. */
  readonly held: { readonly parts: number; readonly chars: number; readonly leftOut: number };
  /** Nothing is left out of these, whatever they are, but the oldest where there are very many. */
  readonly unknown: readonly RawEvent[];
  /** Whether something before was gone when it was asked for. */
  readonly hasGap: boolean;
  readonly isEnded: boolean;
  readonly terminationInfo: TerminationInfo | undefined;
}

/** The view of a session of which nothing is known yet. */
export function emptyView(): SessionView {
  return {
    at: 0, state: "idle", streamId: undefined, toolRuns: [], hookRuns: [], pendingPermissions: [], lastError: undefined, warnings: [],
    exitCode: undefined, turns: [], held: { parts: 0, chars: 0, leftOut: 0 }, unknown: [], hasGap: false, isEnded: false, terminationInfo: undefined,
  };
}

/** The view of a session as `getSession` gives it: where to begin when its stream has a gap. What was said is not in it. */
export function viewOf(session: Session): SessionView {
  return {
    ...emptyView(),
    state: session.state,
    toolRuns: session.toolRuns ?? [],
    hookRuns: session.hookRuns ?? [],
    pendingPermissions: session.pendingPermissions ?? [],
    lastError: session.lastError,
    exitCode: session.terminationInfo?.exit_code,
    isEnded: session.terminationInfo !== undefined,
    terminationInfo: session.terminationInfo,
  };
}

/** Takes the next item of a session's stream in. An item that is in the view already changes nothing. */
export function reduce(view: SessionView, item: SessionItem): SessionView {
  switch (item.kind) {
    case "state_event":
    case "stream_event": {
      if (item.at <= view.at) return view;
      const seen = { ...view, at: item.at };
      const next = item.kind === "state_event" ? applyState(seen, item.event) : applyStream(seen, item.event);
      return next ?? keep(seen, item.kind, item.event);
    }
    case "gap":
      // A session that is over is told from its beginning, but for its words: those that are here stay.
      if (item.resumeFrom === 0) return { ...emptyView(), at: view.at, hasGap: true, turns: view.turns, held: view.held };
      return { ...view, at: Math.max(view.at, item.resumeFrom ?? 0), hasGap: true };
    case "ended":
      return { ...view, at: Math.max(view.at, item.at), state: "stopped", isEnded: true, terminationInfo: item.terminationInfo };
    case "other":
      return keep({ ...view, at: Math.max(view.at, item.at) }, item.name, item.event);
    default:
      // A kind of a newer version of this package.
      return keep(view, String((item as { kind?: unknown }).kind), item);
  }
}

function keep(view: SessionView, channel: string, event: unknown): SessionView {
  return { ...view, unknown: put(view.unknown, { at: view.at, channel, event: bounded(event) }, () => false, UNKNOWN_MAX) };
}

/** The view after a state event; nothing where it is not understood. */
function applyState(view: SessionView, event: StateEvent): SessionView | undefined {
  switch (event?.type) {
    case "state_changed": {
      if (!isText(event.to)) return undefined;
      const { to: state, reason } = event;
      const isDone = reason === "tools_completed" || reason === "hooks_completed";
      const clears = reason === "user_input" || reason === "retry" || (isDone && (state === "calling_llm" || state === "ready"));
      return {
        ...view,
        state,
        streamId: event.streamId ?? view.streamId,
        exitCode: event.exitCode ?? view.exitCode,
        lastError: clears ? undefined : view.lastError,
      };
    }
    case "tool_lifecycle":
      if (!isText(event.runId) || !isText(event.status)) return undefined;
      return { ...view, toolRuns: put(view.toolRuns, fieldsOf(event), (run) => run.runId === event.runId) };
    case "hook_lifecycle":
      if (!isText(event.runId) || !isText(event.status)) return undefined;
      return { ...view, hookRuns: put(view.hookRuns, fieldsOf(event), (run) => run.runId === event.runId) };
    case "session_error":
      if (!isText(event.message)) return undefined;
      // What did not fit changed nothing.
      return event.source === "orchestrator" ? view : { ...view, lastError: fieldsOf(event) };
    case "session_warning":
      if (!isText(event.message)) return undefined;
      return { ...view, warnings: put(view.warnings, fieldsOf(event), () => false) };
    case "permission_requested":
      if (!isText(event.id)) return undefined;
      return { ...view, pendingPermissions: put(view.pendingPermissions, fieldsOf(event), (asked) => asked.id === event.id) };
    case "permission_resolved":
      if (!isText(event.id)) return undefined;
      return { ...view, pendingPermissions: view.pendingPermissions.filter((asked) => asked.id !== event.id) };
    default:
      return undefined;
  }
}

/** The view after a stream event; nothing where it is not understood. */
function applyStream(view: SessionView, event: StreamEvent): SessionView | undefined {
  if (!isText(event?.streamId) || typeof event.seq !== "number" || typeof event.payload !== "object" || event.payload === null) return undefined;
  const before = view.turns.findLast((turn) => turn.streamId === event.streamId);
  if (before && event.seq <= before.seq) return view;
  const turn: Turn = { ...(before ?? { streamId: event.streamId, parts: [], usage: undefined, end: undefined }), seq: event.seq };
  const next = applyToTurn(turn, event);
  if (!next) return undefined;
  // The oldest turn goes where there are too many, with all that it holds.
  const gone = !before && view.turns.length >= KEPT_MAX ? view.turns[0]?.parts ?? [] : [];
  const held = {
    parts: view.held.parts + next.parts.length - turn.parts.length - gone.length,
    chars: view.held.chars + growth(turn.parts, next.parts) - growth([], gone),
    leftOut: view.held.leftOut + gone.length,
  };
  return trim({ ...view, turns: put(view.turns, next, (other) => other.streamId === next.streamId), held });
}

/** How many characters more there are in parts than before. */
function growth(before: readonly TurnPart[], after: readonly TurnPart[]): number {
  let sum = 0;
  for (let at = 0; at < after.length; at += 1) {
    const [old, part] = [before[at], after[at]];
    if (part !== old) sum += (part ? sizeOf(part) : 0) - (old ? sizeOf(old) : 0);
  }
  return sum;
}

function sizeOf(part: TurnPart): number {
  if (part.kind === "tool_call") return [part.arguments, part.output, part.error].reduce((sum: number, value) => sum + charsOf(value), 0);
  return part.kind === "status" ? part.message.length : part.text.length;
}

/** Lets the oldest parts go until the rest fits. */
function trim(view: SessionView): SessionView {
  let { parts, chars, leftOut } = view.held;
  if (parts <= PARTS_MAX && chars <= CHARS_MAX) return view;
  const turns = [...view.turns];
  for (let at = 0; at < turns.length && (parts > PARTS_MAX || chars > CHARS_MAX); at += 1) {
    const turn = turns[at];
    if (!turn) continue;
    let count = 0;
    for (const part of turn.parts) {
      if (parts <= 1 || (parts <= PARTS_MAX && chars <= CHARS_MAX)) break;
      [count, parts, chars] = [count + 1, parts - 1, chars - sizeOf(part)];
    }
    leftOut += count;
    if (count > 0) turns[at] = { ...turn, parts: turn.parts.slice(count), leftOut: (turn.leftOut ?? 0) + count };
  }
  return { ...view, turns, held: { parts, chars, leftOut } };
}

function applyToTurn(turn: Turn, event: StreamEvent): Turn | undefined {
  const { parts } = turn;
  switch (event.type) {
    case "text_delta": {
      const { text, role } = event.payload;
      return isText(text) ? withText(turn, { kind: "text", role, text }) : undefined;
    }
    case "thinking_delta": {
      const { text } = event.payload;
      return isText(text) ? withText(turn, { kind: "thinking", text }) : undefined;
    }
    case "tool_call_delta": {
      const { callId, toolName, status } = event.payload;
      if (!isText(callId)) return undefined;
      const call = callOf(turn, callId);
      const given = "arguments" in event.payload ? bounded(event.payload.arguments) : call.arguments;
      return withCall(turn, { ...call, toolName: toolName ?? call.toolName, arguments: given, status: status ?? call.status });
    }
    case "tool_call_completed": {
      const { callId, toolName, output, error } = event.payload;
      if (!isText(callId)) return undefined;
      const call = callOf(turn, callId);
      return withCall(turn, { ...call, toolName: toolName ?? call.toolName, status: "completed", output: bounded(output), error: bounded(error) });
    }
    case "metadata":
      return { ...turn, usage: bounded(event.payload.usage) ?? turn.usage, ...("plan" in event.payload ? { plan: bounded(event.payload.plan) } : {}) };
    case "status":
      if (!isText(event.payload.message)) return undefined;
      return { ...turn, parts: [...parts, { kind: "status", message: cut(event.payload.message) }] };
    case "completed":
      return { ...turn, usage: bounded(event.payload.usage) ?? turn.usage, end: { type: "completed", reason: event.payload.reason } };
    case "error":
      return { ...turn, end: { type: "error", message: cut(event.payload.message), code: event.payload.code } };
    default:
      return undefined;
  }
}

/** Adds words to the last part where that is of the same kind. */
function withText(turn: Turn, said: Exclude<TurnPart, ToolCallPart | { kind: "status" }>): Turn {
  const { parts } = turn;
  const last = parts.at(-1);
  const goesOn = last?.kind === said.kind && (last.kind !== "text" || said.kind !== "text" || last.role === said.role);
  const text = goesOn ? last.text + said.text : said.text;
  return { ...turn, parts: [...(goesOn ? parts.slice(0, -1) : parts), ...pieces(text).map((piece) => ({ ...said, text: piece }))] };
}

/** A text in pieces that are each of a bounded length, at the ends of lines where there are some; mostly one piece. */
function pieces(text: string): string[] {
  const all: string[] = [];
  let from = 0;
  while (text.length - from > PART_CHARS_MAX) {
    const line = text.lastIndexOf("\n", from + PART_CHARS_MAX - 1) + 1;
    let to = line > from + PART_CHARS_MAX / 2 ? line : from + PART_CHARS_MAX;
    // Two halves of one character stay together.
    if (/[\ud800-\udbff]/.test(text.charAt(to - 1))) to -= 1;
    all.push(text.slice(from, to));
    from = to;
  }
  all.push(from === 0 ? text : text.slice(from));
  return all;
}

/** About how long a value is as text; counting ends where it is too long. */
function charsOf(value: unknown): number {
  let sum = 0;
  const left: unknown[] = [value];
  while (left.length > 0 && sum <= VALUE_CHARS_MAX) {
    const next = left.pop();
    if (typeof next === "string") sum += next.length;
    else if (Array.isArray(next)) for (const item of next) left.push(item);
    else if (typeof next === "object" && next !== null) {
      for (const [name, item] of Object.entries(next)) {
        sum += name.length;
        left.push(item);
      }
    }
    sum += 4;
  }
  return sum;
}

/** A value as it came, or the beginning of its text where it is too long. */
function bounded(value: unknown): unknown {
  if (charsOf(value) <= VALUE_CHARS_MAX) return value;
  try {
    return cut(isText(value) ? value : JSON.stringify(value));
  } catch {
    return "…";
  }
}

function cut(text: string): string {
  return isText(text) && text.length > VALUE_CHARS_MAX ? `${text.slice(0, VALUE_CHARS_MAX)}…` : text;
}

function callOf(turn: Turn, callId: string): ToolCallPart {
  const found = turn.parts.findLast((part) => part.kind === "tool_call" && part.callId === callId);
  if (found?.kind === "tool_call") return found;
  return { kind: "tool_call", callId, toolName: undefined, arguments: undefined, status: "pending", output: undefined, error: undefined };
}

function withCall(turn: Turn, call: ToolCallPart): Turn {
  return { ...turn, parts: put(turn.parts, call, (part) => part.kind === "tool_call" && part.callId === call.callId, Infinity) };
}

/** Replaces what is the same, from the end, where it mostly is; else adds it, and lets the oldest go where there are too many. */
function put<T>(all: readonly T[], item: T, isSame: (other: T) => boolean, max = KEPT_MAX): readonly T[] {
  const at = all.findLastIndex(isSame);
  if (at >= 0) return all.with(at, item);
  return [...(all.length >= max ? all.slice(1) : all), item];
}

/** The fields of an event's type, without those that every state event has. */
function fieldsOf<T extends { type: string; eventId: string; sessionId: string; timestampMs: number }>(
  event: T,
): Omit<T, "type" | "eventId" | "sessionId" | "timestampMs"> {
  const { type: _type, eventId: _eventId, sessionId: _sessionId, timestampMs: _timestampMs, ...fields } = event;
  return fields;
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

// The last items of a session's stream as they came. Plain functions; never changed, always made anew; bounded, however fast it talks and however much of it
// comes at once.

import type { SessionItem } from "@baton/sdk";

/** Items that are kept: about as many as somebody looks through. */
export const FRAMES_MAX = 200;
/** Characters of all of them together, so that few that are large take no more than many that are small. */
export const FRAMES_CHARS_MAX = 400_000;
/** Characters of one. */
export const FRAME_CHARS_MAX = 40_000;

/** One item, with the name of its kind on the wire and what it holds as JSON. */
export interface Frame {
  /** Its place in the stream. */
  at: number;
  /** How many came before it to this page: the same item may come again. */
  key: number;
  channel: string;
  /** What it calls itself, where it does. */
  type: string;
  json: string;
  /** How long it was, where it is cut. */
  cutFrom: number | undefined;
}

export interface Wire {
  frames: readonly Frame[];
  chars: number;
  /** How many came, with those that are not here any more. */
  count: number;
}

export const emptyWire = (): Wire => ({ frames: [], chars: 0, count: 0 });

export function withItem({ frames, chars, count }: Wire, item: SessionItem): Wire {
  const frame = frameOf(item, count + 1);
  const all = [...frames, frame];
  let sum = chars + frame.json.length;
  let first = 0;
  while (all.length - first > FRAMES_MAX || (sum > FRAMES_CHARS_MAX && first < all.length - 1)) sum -= all[first++]?.json.length ?? 0;
  return { frames: first > 0 ? all.slice(first) : all, chars: sum, count: count + 1 };
}

function frameOf(item: SessionItem, key: number): Frame {
  const { kind, at, ...rest } = item as { kind: string; at: number; event?: unknown; name?: unknown };
  const json = JSON.stringify("event" in rest ? rest.event : rest) ?? "null";
  const isCut = json.length > FRAME_CHARS_MAX;
  const type = (rest.event as { type?: unknown } | null | undefined)?.type;
  return {
    at, key, channel: kind === "other" ? String(rest.name) : kind, type: typeof type === "string" ? type : "",
    json: isCut ? copied(json.slice(0, FRAME_CHARS_MAX)) : json, cutFrom: isCut ? json.length : undefined,
  };
}

/** A text of its own: a part of a long one keeps the whole of it in memory. */
const copied = (text: string): string => new TextDecoder().decode(new TextEncoder().encode(text));

/** What nearly all have, and nobody looks for in a row of them. */
const USUAL = ["schemaVersion", "eventId", "sessionId", "harness", "streamId", "timestampMs", "seq", "type"];

/** What is its own of a frame, for a row. */
export function brief({ json, cutFrom }: Frame): string {
  if (cutFrom !== undefined) return json;
  const whole: unknown = JSON.parse(json);
  if (typeof whole !== "object" || whole === null || Array.isArray(whole)) return json;
  const own = Object.entries(whole).filter(([name]) => !USUAL.includes(name));
  return JSON.stringify(own.length === 1 && own[0]?.[0] === "payload" ? own[0][1] : Object.fromEntries(own));
}

/** What a frame holds, laid out to be read; as it came, where it is cut. */
export function laidOut({ json, cutFrom }: Frame): string {
  return cutFrom === undefined ? JSON.stringify(JSON.parse(json), null, 2) : json;
}

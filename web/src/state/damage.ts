// What of the ledger was found not to hold: by a verification, or because it could not be read. It counts everywhere until the same is verified and holds.

import { signal } from "@preact/signals";

/** Stands for the ledger as a whole, beside the ids of traces. */
export const WHOLE = "";
/** What an answer says whose records do not read. */
export const DAMAGED = "L032";

/** What was found, in words, by trace. The map is replaced, never changed. */
export const damage = signal<ReadonlyMap<string, string>>(new Map());

/** Notes what was found of a trace or of all; nothing, where it holds. */
export function noteDamage(where: string, words: string | undefined): void {
  if (damage.peek().get(where) !== words) damage.value = withWords(damage.peek(), where, words);
}

/** The same map with other words, or none, at one place. */
export function withWords(map: ReadonlyMap<string, string>, where: string, words: string | undefined): ReadonlyMap<string, string> {
  const next = new Map(map);
  next.delete(where);
  return words === undefined ? next : next.set(where, words);
}

/** What takes the place of the seal of a run: what was verified once may have been changed since. */
export const sealOf = (trace: string): string | undefined => (damage.value.has(trace) ? "broken" : damage.value.has(WHOLE) ? "unproven" : undefined);

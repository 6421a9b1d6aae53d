// What went wrong, in words that can be shown, whatever it was.

import { BatonError } from "@baton/sdk";
import { DAMAGED, noteDamage, WHOLE } from "./damage.js";
import { link, tell, type Failure, type Fetched } from "./store.js";

export function failureOf(error: unknown): Failure {
  if (error instanceof BatonError) {
    const { code, title, detail, hint, status } = error;
    if (status === 401) link.value = { kind: "denied", reason: title };
    if (code === DAMAGED) noteDamage(WHOLE, title);
    return { title, code, detail, hint };
  }
  const title = error instanceof Error ? error.message : String(error);
  return { title, code: undefined, detail: undefined, hint: undefined };
}

/** One line of it. */
export const inWords = (failure: Failure): string =>
  [failure.title, failure.detail].filter((part) => part !== undefined && part !== "").join(": ") + (failure.code ? ` (${failure.code})` : "");

export const isAborted = (error: unknown): boolean => error instanceof DOMException && error.name === "AbortError";

/** Waits for something and keeps what came of it. */
export async function fetched<T>(work: Promise<T>): Promise<Exclude<Fetched<T>, { kind: "loading" }>> {
  try {
    return { kind: "ready", value: await work };
  } catch (error) {
    return { kind: "broken", error: failureOf(error) };
  }
}

/** Does what a person asked for: says what came of it, and whether it went well. */
export async function act(work: Promise<unknown>, done: string): Promise<boolean> {
  const came = await fetched(work);
  if (came.kind === "broken") tell("bad", inWords(came.error));
  else tell("ok", done);
  return came.kind === "ready";
}

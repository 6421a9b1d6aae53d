// What goes wrong: the problem documents of the server, and connections that break.

import type { Problem } from "./types.js";

/** What the server answered instead of doing what it was asked for. `baton explain CODE` has a page about each code. */
export class BatonError extends Error {
  override readonly name = "BatonError";
  /** The code, as the command line prints it, such as `T008`; `HTTP_502` and the like where something else than Baton answered. */
  readonly code: string;
  /** The status of the answer. */
  readonly status: number;
  /** What happened, in one line. */
  readonly title: string;
  /** Why, one cause on each line. */
  readonly detail: string | undefined;
  /** A command that helps. */
  readonly hint: string | undefined;

  constructor(problem: Pick<Problem, "code" | "status" | "title" | "detail" | "hint">) {
    super(`${problem.code}: ${problem.title}`);
    this.code = problem.code;
    this.status = problem.status;
    this.title = problem.title;
    this.detail = problem.detail;
    this.hint = problem.hint;
  }
}

/** The server could not be reached, or a connection broke, and no attempt is left. */
export class ConnectionError extends Error {
  override readonly name = "ConnectionError";
}

/** Whatever broke, with its cause. */
export function connectionError(error: unknown): ConnectionError {
  if (error instanceof ConnectionError) return error;
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return new ConnectionError(`no answer: ${cause instanceof Error ? cause.message : String(cause)}`, { cause: error });
}

/** Reads an answer that is no success. */
export function problemOf(response: Response, text: string): BatonError {
  let read: { [name: string]: unknown } = {};
  try {
    read = Object(JSON.parse(text)) as typeof read;
  } catch {
    // It is no document of ours: the status has to do.
  }
  const { status } = response;
  const { code, title, detail, hint } = read;
  if (typeof code !== "string" || typeof title !== "string") {
    const words = response.statusText || "the answer is no problem document";
    return new BatonError({ code: `HTTP_${status}`, status, title: words, detail: text.slice(0, 500) });
  }
  return new BatonError({
    code, title, status,
    ...(typeof detail === "string" ? { detail } : {}),
    ...(typeof hint === "string" ? { hint } : {}),
  });
}

/** Statuses of which the next attempt may know nothing: too slow, too many at once, the server is ending. */
const TRANSIENT = new Set([408, 429, 503]);
/** The same of what stands between here and the server, which answers without a code of ours. */
const TRANSIENT_BETWEEN = new Set(["HTTP_502", "HTTP_504"]);
/** The same request, with the same key, is being done at this moment. */
const IN_PROGRESS = "W012";

/** Whether it is worth asking again. */
export function isTransient(error: unknown): boolean {
  if (error instanceof BatonError) {
    return TRANSIENT.has(error.status) || TRANSIENT_BETWEEN.has(error.code) || error.code === IN_PROGRESS;
  }
  return error instanceof ConnectionError;
}

// Streams that go on by themselves: whatever breaks, they come again after the last event that was handed out.
//
// Nothing is lost, because the server is told that position; nothing comes twice, because what is not beyond it is left out. The position moves when
// an event is handed out, never before.

import { requestOf, send, type Arguments, type Connection, type Operation, type Request } from "./call.js";
import { BatonError, ConnectionError, connectionError, isTransient, problemOf } from "./error.js";
import { OPERATIONS } from "./generated/operations.js";
import { eventsOf, type ServerSentEvent } from "./sse.js";
import type { SessionItem } from "./session.js";
import type { FollowEventsQuery, LedgerRecord, TerminationInfo } from "./types.js";
import { backoffMs, sleep, type RetryPolicy } from "./wait.js";

/** What a stream may be given. */
export interface FollowOptions {
  /** Ends the stream: its iterator fails with the signal's reason. */
  signal?: AbortSignal;
  /** Goes on after this position, as if the events up to it had been seen. */
  after?: number;
  /** How often it comes again when nothing was brought, and how long it waits; for ever, and at most 5 seconds, if nothing is said. */
  retry?: Partial<RetryPolicy>;
  /** How long a connection may be silent before it is given up; 45 seconds, if nothing is said. */
  silenceMs?: number;
  /** Is told what happens to the stream beside its events. */
  onStatus?: (status: StreamStatus) => void;
}

/** What happens to a stream. */
export type StreamStatus =
  /** A connection is there, and goes on after this position. */
  | { type: "open"; after: number | undefined }
  /** Everything up to this position was brought; what comes now is new. */
  | { type: "live"; position: number }
  /** It was too slow; it comes again after this position, and has lost nothing. */
  | { type: "gap"; resumeFrom: number }
  /** The connection is gone. */
  | { type: "waiting"; failures: number; delayMs: number; reason: string };

const RETRY: RetryPolicy = { attempts: Infinity, firstMs: 100, maxMs: 5000 };
const SILENCE_MS = 45_000;
/** How long a connection has to be there to count as a good one. */
const LASTED_MS = 5000;

/** Where a stream stands. */
interface Cursor {
  last: number | undefined;
  /** Attempts in a row that brought nothing. */
  failures: number;
}

/** The ledger, record by record. Ends by itself only where it is not to follow; else it goes on until it is aborted or left. */
export async function* followLedger(connection: Connection, query: FollowEventsQuery, options: FollowOptions): AsyncGenerator<LedgerRecord, void, undefined> {
  const cursor: Cursor = { last: options.after, failures: 0 };
  for await (const event of resume(connection, OPERATIONS.followEvents, { path: [], query: { ...query } }, options, cursor)) {
    switch (event.name) {
      case "message":
        yield objectOf(event) as unknown as LedgerRecord;
        break;
      case "live": {
        const position = numberOf(objectOf(event)["position"]);
        // What a filter left out need not be looked at again.
        cursor.last = Math.max(cursor.last ?? 0, position);
        cursor.failures = 0;
        options.onStatus?.({ type: "live", position });
        if (query.follow === false) return;
        break;
      }
      case "gap": {
        const resumeFrom = numberOf(objectOf(event)["resumeFrom"]);
        cursor.last = Math.max(cursor.last ?? 0, resumeFrom);
        options.onStatus?.({ type: "gap", resumeFrom });
        break;
      }
      case "error": {
        const { title, code } = objectOf(event);
        throw new BatonError({ code: String(code ?? "W017"), status: 500, title: String(title ?? event.data) });
      }
      // Of other names, such as `end`, there is nothing to do: the connection ends, and it comes again.
    }
  }
}

/** What a session says, item by item, until it has ended. */
export async function* followOneSession(connection: Connection, id: string, options: FollowOptions): AsyncGenerator<SessionItem, void, undefined> {
  const cursor: Cursor = { last: options.after, failures: 0 };
  // What is told of a session that is over has no positions any more: it is counted on.
  let last = options.after ?? 0;
  let isCounted = false;
  let isAgain = false;
  const watched: FollowOptions = {
    ...options,
    onStatus: (status) => {
      isAgain ||= status.type === "waiting" && isCounted;
      options.onStatus?.(status);
    },
  };
  for await (const event of resume(connection, OPERATIONS.followSession, { path: [id] }, watched, cursor)) {
    const data = objectOf(event);
    if (isAgain) {
      // It broke off there, and is told from its beginning again.
      isAgain = false;
      if (event.name !== "gap") yield { kind: "gap", at: last, resumeFrom: 0 };
    }
    isCounted = event.id === undefined;
    switch (event.name) {
      case "state_event":
      case "stream_event":
        last = event.id ?? last + 1;
        yield { kind: event.name, at: last, event: data } as unknown as SessionItem;
        break;
      case "gap":
        // It goes on there in the same connection; what is gone is gone.
        last = event.id ?? last;
        yield { kind: "gap", at: last, resumeFrom: numberOf(data["resumeFrom"]) };
        break;
      case "ended":
        yield { kind: "ended", at: event.id ?? last, terminationInfo: terminationOf(data) };
        return;
      case "end":
        // The server ends; when it is back, it tells how the session ended.
        break;
      default:
        yield { kind: "other", at: event.id ?? last, name: event.name, event: data };
    }
  }
}

/** The events of a stream over as many connections as it takes. */
async function* resume(
  connection: Connection, operation: Operation, given: Arguments, options: FollowOptions, cursor: Cursor,
): AsyncGenerator<ServerSentEvent, void, undefined> {
  const policy = { ...RETRY, ...options.retry };
  const { signal, silenceMs = SILENCE_MS } = options;
  const request = requestOf(connection, operation, given, {});
  for (;;) {
    signal?.throwIfAborted();
    // Ends this connection alone: when the stream is left, or when it is silent.
    const own = new AbortController();
    const abort = (): void => own.abort(signal?.reason);
    signal?.addEventListener("abort", abort, { once: true });
    let reason = "the connection ended";
    let opened = Infinity;
    const late = setTimeout(() => own.abort(new ConnectionError(`the server did not answer within ${silenceMs} ms`)), silenceMs);
    try {
      const body = await open(connection, request, cursor.last, own.signal);
      clearTimeout(late);
      opened = performance.now();
      options.onStatus?.({ type: "open", after: cursor.last });
      for await (const event of eventsOf(body, silenceMs)) {
        if (event.id !== undefined) {
          if (cursor.last !== undefined && event.id <= cursor.last) continue;
          cursor.last = event.id;
          cursor.failures = 0;
        }
        yield event;
        signal?.throwIfAborted();
      }
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!isTransient(error)) throw error;
      reason = (error as Error).message;
    } finally {
      clearTimeout(late);
      signal?.removeEventListener("abort", abort);
      own.abort();
    }
    // A connection that was there for a while was a good one, also where nothing happened.
    if (performance.now() - opened >= LASTED_MS) cursor.failures = 0;
    cursor.failures += 1;
    if (cursor.failures >= policy.attempts) throw new ConnectionError(`the stream is gone: ${reason}`);
    const delayMs = backoffMs(policy, cursor.failures);
    options.onStatus?.({ type: "waiting", failures: cursor.failures, delayMs, reason });
    await sleep(delayMs, signal);
  }
}

async function open(
  connection: Connection, request: Request, last: number | undefined, signal: AbortSignal,
): Promise<ReadableStream<Uint8Array>> {
  const headers = last === undefined ? request.headers : { ...request.headers, "last-event-id": String(last) };
  const response = await send(connection, { ...request, headers, signal, cache: "no-store" });
  if (!response.ok) {
    const text = await response.text().catch((error: unknown) => Promise.reject(connectionError(error)));
    throw problemOf(response, text);
  }
  const kind = response.headers.get("content-type") ?? "";
  if (!response.body || !kind.startsWith("text/event-stream")) throw new ConnectionError(`expected a stream of events, got ${kind || "nothing"}`);
  return response.body;
}

function objectOf(event: ServerSentEvent): { [name: string]: unknown } {
  return Object(JSON.parse(event.data)) as { [name: string]: unknown };
}

function numberOf(value: unknown): number {
  return typeof value === "number" ? value : 0;
}

/** A live session gives the object itself, one that is over gives it under a name, or `null` where nobody saw its end. */
function terminationOf(data: { [name: string]: unknown }): TerminationInfo | undefined {
  const found = "terminationInfo" in data ? data["terminationInfo"] : data;
  return (found ?? undefined) as TerminationInfo | undefined;
}

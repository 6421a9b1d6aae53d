// The client: every operation as a method, and the two streams.

import { call, type Arguments, type CallOptions, type Connection, type Operation } from "./call.js";
import { followLedger, followOneSession, type FollowOptions } from "./follow.js";
import { Operations } from "./generated/operations.js";
import type { SessionItem } from "./session.js";
import type { FollowEventsQuery, LedgerRecord, ListSessionsQuery, ListTasksQuery, Session, Task } from "./types.js";
import type { RetryPolicy } from "./wait.js";

/** How to reach a server. */
export interface ClientOptions {
  /** Where it answers, such as `http://127.0.0.1:7433`. In a page that the server gave out it may be left out. */
  url?: string | URL;
  /** A token; `baton token new NAME --scope SCOPE` makes one. A page that the server gave out has a cookie instead. */
  token?: string;
  /** How often a call is tried whose answer is missing: 4 times, if nothing is said, with waits of up to 2 seconds. */
  retry?: Partial<RetryPolicy>;
  /** Takes the place of the global `fetch`. */
  fetch?: typeof globalThis.fetch;
}

const RETRY: RetryPolicy = { attempts: 4, firstMs: 100, maxMs: 2000 };

/**
 * A client of one server.
 *
 * The methods have the names of the operations in the OpenAPI document; their arguments are the parts of the path, the body, the query, and options. What
 * the server refuses is a `BatonError`; what does not reach it is tried again, with the same idempotency key, and is a `ConnectionError` in the end.
 */
export class Client extends Operations {
  readonly #connection: Connection;

  constructor(options: ClientOptions = {}) {
    super();
    this.#connection = {
      url: String(options.url ?? "").replace(/\/+$/, ""),
      token: options.token,
      fetch: options.fetch ?? globalThis.fetch.bind(globalThis),
      retry: { ...RETRY, ...options.retry },
    };
  }

  protected override call<T>(operation: Operation, given: Arguments, options: CallOptions): Promise<T> {
    return call<T>(this.#connection, operation, given, options);
  }

  /** The ledger, from a position on, and then what is added to it; each record once, over as many connections as it takes. */
  followEvents(query: FollowEventsQuery = {}, options: FollowOptions = {}): AsyncGenerator<LedgerRecord, void, undefined> {
    return followLedger(this.#connection, query, options);
  }

  /** What a session says until it has ended; `reduce` makes a view of it. */
  followSession(id: string, options: FollowOptions = {}): AsyncGenerator<SessionItem, void, undefined> {
    return followOneSession(this.#connection, id, options);
  }

  /** Every task, page after page. */
  eachTask(query: Omit<ListTasksQuery, "cursor"> = {}, options: CallOptions = {}): AsyncGenerator<Task, void, undefined> {
    return each(async (more) => { const { tasks, next } = await this.listTasks({ ...query, ...more }, options); return [tasks, next]; });
  }

  /** Every session, the newest first, page after page. */
  eachSession(query: Omit<ListSessionsQuery, "cursor"> = {}, options: CallOptions = {}): AsyncGenerator<Session, void, undefined> {
    return each(async (more) => { const { sessions, next } = await this.listSessions({ ...query, ...more }, options); return [sessions, next]; });
  }
}

/** What stands on all pages. */
async function* each<T>(page: (more: { cursor?: string }) => Promise<[T[], string | undefined]>): AsyncGenerator<T, void, undefined> {
  let cursor: string | undefined;
  do {
    const [found, next] = await page(cursor === undefined ? {} : { cursor });
    yield* found;
    cursor = next;
  } while (cursor !== undefined);
}

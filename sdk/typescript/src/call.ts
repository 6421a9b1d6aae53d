// One request: how it is put together, sent, tried again and read.

import { ConnectionError, connectionError, isTransient, problemOf } from "./error.js";
import { backoffMs, sleep, type RetryPolicy } from "./wait.js";

/** What is known of an operation; the table is generated. */
export interface Operation {
  readonly method: "GET" | "POST" | "PATCH" | "PUT" | "DELETE";
  /** With names in braces where the arguments go. */
  readonly path: string;
  /** None, where nothing is said. */
  readonly body?: "empty" | "json" | "bytes";
  /** JSON, where nothing is said. */
  readonly answer?: "text" | "bytes" | "events";
}

/** Bytes of an artifact or a bundle. */
export type Bytes = Uint8Array | ArrayBuffer | Blob;

/** What a method passes on. */
export interface Arguments {
  readonly path: readonly string[];
  readonly query?: { readonly [name: string]: unknown };
  readonly body?: unknown;
}

/** What every call may be given beside its own arguments. */
export interface CallOptions {
  /** Ends the call, and the waits between its attempts. */
  signal?: AbortSignal;
  /** The key of a call that changes something. One is made where none is given, and every attempt has the same. */
  idempotencyKey?: string;
  /** Of tasks: the change is made to this very state alone, else refused with `W010` (412). A task that was read before, or its ETag. */
  ifMatch?: string | { readonly rev: number };
  /** How often it is tried; where nothing is said, as the client does. */
  retry?: Partial<RetryPolicy>;
  /** Is shown each answer before it is read, for its headers. */
  onResponse?: (response: Response) => void;
}

/** How a client reaches its server. */
export interface Connection {
  /** Where the paths begin, without a slash at the end. */
  readonly url: string;
  readonly token: string | undefined;
  readonly fetch: typeof globalThis.fetch;
  readonly retry: RetryPolicy;
}

/** Sends a request until it is answered, and gives the answer. */
export async function call<T>(connection: Connection, operation: Operation, given: Arguments, options: CallOptions): Promise<T> {
  const request = requestOf(connection, operation, given, options);
  const policy = { ...connection.retry, ...options.retry };
  for (let failures = 1; ; failures += 1) {
    let retryAfterMs = 0;
    try {
      const response = await send(connection, request);
      options.onResponse?.(response);
      retryAfterMs = secondsOf(response.headers.get("retry-after")) * 1000;
      return (await read(operation, response)) as T;
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason;
      if (!isTransient(error) || failures >= policy.attempts) throw error;
    }
    await sleep(Math.max(backoffMs(policy, failures), Math.min(retryAfterMs, policy.maxMs)), options.signal);
  }
}

/** A request with everything that it is made of. */
export interface Request extends RequestInit {
  readonly url: string;
  readonly headers: { readonly [name: string]: string };
}

/** Sends one request once. What is no answer is a `ConnectionError`. */
export async function send(connection: Connection, { url, ...init }: Request): Promise<Response> {
  try {
    // Called without an object before it: browsers refuse to fetch for anybody but themselves.
    const { fetch } = connection;
    return await fetch(url, init);
  } catch (error) {
    throw connectionError(error);
  }
}

/** Puts a request together. */
export function requestOf(connection: Connection, operation: Operation, given: Arguments, options: CallOptions): Request {
  const headers: { [name: string]: string } = { accept: operation.answer === "events" ? "text/event-stream" : "application/json, */*" };
  const request: RequestInit & { url: string; headers: typeof headers } = {
    url: connection.url + pathOf(operation, given), method: operation.method, headers,
  };
  if (connection.token !== undefined) headers["authorization"] = `Bearer ${connection.token}`;
  if (options.signal) request.signal = options.signal;
  if (operation.body === "bytes") {
    headers["content-type"] = "application/octet-stream";
    request.body = given.body as BodyInit;
  } else if (operation.body) {
    headers["content-type"] = "application/json";
    request.body = JSON.stringify(operation.body === "empty" ? {} : given.body);
  }
  if (operation.method !== "GET") headers["idempotency-key"] = options.idempotencyKey ?? makeKey();
  if (options.ifMatch !== undefined) {
    headers["if-match"] = typeof options.ifMatch === "string" ? options.ifMatch : `"${options.ifMatch.rev}"`;
  }
  return request;
}

function pathOf(operation: Operation, given: Arguments): string {
  let next = 0;
  const path = operation.path.replace(/\{\w+\}/g, (name) => {
    const part = given.path[next++];
    // An empty part, or one of dots, would make the path lead to another route.
    if (!part || part === "." || part === "..") throw new TypeError(`${operation.path}: ${name} is ${JSON.stringify(part)}`);
    return encodeURIComponent(part);
  });
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(given.query ?? {})) {
    // A list is its name several times.
    for (const item of Array.isArray(value) ? value : [value]) {
      if (item !== undefined) query.append(name, String(item));
    }
  }
  const text = query.toString();
  return text === "" ? path : `${path}?${text}`;
}

async function read(operation: Operation, response: Response): Promise<unknown> {
  // What the end of a connection cuts off is no answer.
  const whole = await response.arrayBuffer().catch((error: unknown) => Promise.reject(connectionError(error)));
  if (!response.ok) return refusalOf(response, whole);
  switch (operation.answer) {
    case undefined:
      return jsonOf(whole);
    case "text":
      return new TextDecoder().decode(whole);
    case "bytes":
      return new Uint8Array(whole);
    case "events":
      throw new TypeError(`${operation.path} is followed, not called`);
  }
}

function jsonOf(bytes: ArrayBuffer): unknown {
  try {
    return JSON.parse(new TextDecoder().decode(bytes));
  } catch (error) {
    throw new ConnectionError("the answer is not JSON: somebody else than Baton gave it", { cause: error });
  }
}

/** A message or an exit signal that is refused is answered with 422, and the answer is what was asked for: whether it was accepted, and why not. */
function refusalOf(response: Response, bytes: ArrayBuffer): unknown {
  const text = new TextDecoder().decode(bytes);
  const kind = response.headers.get("content-type") ?? "";
  if (response.status === 422 && kind.startsWith("application/json")) {
    const object = jsonOf(bytes) as { accepted?: unknown } | null;
    if (object?.accepted === false) return object;
  }
  throw problemOf(response, text);
}

function secondsOf(text: string | null): number {
  const seconds = Number(text ?? 0);
  return Number.isFinite(seconds) && seconds > 0 ? seconds : 0;
}

/** A key that nobody else has. `crypto.randomUUID` is missing in pages that did not come over TLS, this is not. */
function makeKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return `sdk-${Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}

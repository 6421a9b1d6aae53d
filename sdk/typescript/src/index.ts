// The SDK of Baton. Start at `Client`.

export { Client, type ClientOptions } from "./client.js";
export type { Bytes, CallOptions, Operation } from "./call.js";
export { BatonError, ConnectionError } from "./error.js";
export type { FollowOptions, StreamStatus } from "./follow.js";
export { OPERATIONS } from "./generated/operations.js";
export { emptyView, reduce, viewOf, type RawEvent, type SessionView, type ToolCallPart, type Turn, type TurnPart } from "./reduce.js";
export type * from "./session.js";
export type * from "./types.js";
export type { RetryPolicy } from "./wait.js";

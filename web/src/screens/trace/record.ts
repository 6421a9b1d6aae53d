// A record of the ledger as it is stored, its canonical bytes, and its hash computed anew: docs/protocol/ledger.md, sections 2 and 3.

import type { LedgerRecord, Report as AnyReport } from "@baton/sdk";

export interface Artifact {
  bytes: number;
  media_type: string;
  name: string;
  sha256: string;
}

export interface TraceRecord extends LedgerRecord {
  hash: string;
  prev: string;
  artifacts: Artifact[];
  sig?: { alg: string; key: string; value: string };
  seen?: { hash: string; seq: number };
  batch?: [number, number];
  commit?: number;
  fence?: number;
  run?: string;
  session?: string;
}

/** A place of the chain: what stands there, or why that cannot be read. */
export type Row = { seq: number; record: TraceRecord } | { seq: number; record?: undefined; damage: string };

export interface Finding {
  code: string;
  severity: "critical" | "high" | "medium" | "warning";
  /** The number of the event in its trace, or the line of the journal. */
  line?: number;
  event?: string;
  expected?: string;
  found?: string;
  action: string;
}

export interface Check {
  check: string;
  status: "pass" | "warn" | "fail" | "skipped";
  count: number;
}

export interface Report extends AnyReport {
  integrity: string;
  completeness: string;
  checks: Check[];
  findings: Finding[];
  moreFindings?: number;
  firstBroken?: number;
  subject: { origin?: string | null; trace?: string; head?: string | null; events: number; guarded?: { state: string; profile: string } };
}

export const isFailure = (finding: Finding): boolean => finding.severity !== "warning";

export const FIRST_PREV = "0".repeat(64);

/** The RFC 8785 form of a value. */
export function canonical(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value) ?? "null";
  const object = value as { readonly [name: string]: unknown };
  // Names in the order of their UTF-16 code units, which is how JavaScript sorts.
  return `{${Object.keys(object).sort().map((name) => `${JSON.stringify(name)}:${canonical(object[name])}`).join(",")}}`;
}

/** Only where the page came over TLS or from this very machine. */
export const canHash = (): boolean => globalThis.crypto?.subtle !== undefined;

export async function sha256(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest = new Uint8Array(await crypto.subtle.digest("SHA-256", bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const encoder = new TextEncoder();

/** The hash that a record must have, by what it says. */
export async function hashOf(record: TraceRecord): Promise<string> {
  const { batch, commit, hash, pos, prev, seq, sig, ...body } = record;
  void hash;
  void pos;
  const bd = await sha256(encoder.encode(canonical(body)));
  const link = canonical({ batch: batch ?? null, bd, commit: commit ?? null, prev, seq, sig: sig ?? null });
  return sha256(encoder.encode(`baton/link/v1\n${link}`));
}

// One trace: its records page by page, what the page can prove of them by itself, and what the verifier said.

import { BatonError } from "@baton/sdk";
import { computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { DAMAGED, noteDamage } from "../../state/damage.js";
import { failureOf, fetched, isAborted } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { grown, link, type Failure, type Fetched } from "../../state/store.js";
import { canHash, FIRST_PREV, hashOf, isFailure, type Finding, type Report, type Row, type TraceRecord } from "./record.js";
import { noteReport } from "./words.js";

const PAGE = 500;
/** A longer trace is read this far, and further on request. */
const ROWS_MAX = 50_000;
/** Damaged records that are looked for one by one; what comes after is left out in pieces. */
const DAMAGED_MAX = 16;
/** How long hashes are computed without a pause. */
const SLICE_MS = 6;
/** Records after which the progress is shown. */
const PROGRESS = 500;

export interface Checked {
  report: Report;
  at: number;
}

export class TraceModel {
  readonly rows = signal<readonly Row[]>([]);
  readonly size = signal(0);
  readonly isClosed = signal(false);
  readonly broken = signal<Failure | undefined>(undefined);
  readonly isRead = signal(false);
  readonly limit = signal(ROWS_MAX);
  readonly checked = signal<Fetched<Checked> | undefined>(undefined);
  readonly isVerifying = signal(false);
  /** Hashes that came out otherwise, by the number of the record; and how many were computed. */
  readonly wrong = signal<ReadonlyMap<number, string>>(new Map());
  readonly proven = signal(0);
  /** The first record that does not follow from the one before it. */
  readonly cut = signal<number | undefined>(undefined);
  readonly keys = new Map<string, number>();
  readonly byId = new Map<string, number>();

  readonly findings = computed<ReadonlyMap<number, readonly Finding[]>>(() => {
    const found = new Map<number, Finding[]>();
    void this.rows.value;
    for (const finding of this.report?.findings ?? []) {
      const seq = this.placeOf(finding);
      if (seq !== undefined) found.set(seq, [...(found.get(seq) ?? []), finding]);
    }
    return found;
  });

  /** Where the proof ends: the first record that is not what it should be. */
  readonly firstBad = computed<number | undefined>(() => {
    const bad = [this.cut.value, ...this.wrong.value.keys(), this.rows.value.find((row) => !row.record)?.seq];
    for (const [seq, findings] of this.findings.value) if (findings.some(isFailure)) bad.push(seq);
    const known = bad.filter((seq) => seq !== undefined);
    return known.length > 0 ? Math.min(...known) : undefined;
  });

  private readonly stopped = new AbortController();
  private isReading = false;
  private isWanted = false;
  private isProving = false;
  private damaged = 0;

  constructor(readonly id: string) {}

  get report(): Report | undefined {
    const checked = this.checked.value;
    return checked?.kind === "ready" ? checked.value.report : undefined;
  }

  /** The record that a finding is about: reports on one trace count its events. */
  placeOf(finding: Finding): number | undefined {
    return (finding.event === undefined ? undefined : this.byId.get(finding.event)) ?? finding.line;
  }

  /** Reads, verifies, and goes on reading whenever the trace has grown or the connection is back. */
  start(): () => void {
    void this.verify();
    const end = effect(() => {
      void grown.value.get(this.id);
      void link.value.kind;
      void this.limit.value;
      void this.read();
    });
    return () => {
      end();
      this.stopped.abort();
    };
  }

  async verify(): Promise<void> {
    if (this.isVerifying.peek()) return;
    this.isVerifying.value = true;
    const came = await fetched(client.verifyTrace(this.id, { signal: this.stopped.signal }));
    this.isVerifying.value = false;
    if (this.stopped.signal.aborted) return;
    if (came.kind === "ready") noteReport(this.id, came.value as Report);
    this.checked.value = came.kind === "ready" ? { kind: "ready", value: { report: came.value as Report, at: Date.now() } } : came;
  }

  /** Reads what is not known yet. */
  async read(): Promise<void> {
    this.isWanted = true;
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (this.isWanted) {
        this.isWanted = false;
        while (this.rows.peek().length < this.limit.peek()) {
          const more = await this.piece(this.rows.peek().length + 1, PAGE);
          if (more.length === 0) break;
          this.take(more);
          if (this.rows.peek().length >= this.size.peek()) break;
        }
        this.isRead.value = true;
        this.broken.value = undefined;
      }
    } catch (error) {
      if (isAborted(error)) return;
      const failure = failureOf(error);
      // What is shown stays, and is gone on with once there is somebody to ask.
      if (this.rows.peek().length === 0) this.broken.value = failure;
    } finally {
      this.isReading = false;
    }
  }

  /** So many rows, unless the trace ends before. A page that holds a damaged record is refused as a whole: the rest of it is asked for in halves. */
  private async piece(from: number, count: number): Promise<Row[]> {
    try {
      const page = await client.getTrace(this.id, { from, limit: count }, { signal: this.stopped.signal });
      this.size.value = Math.max(page.size, this.size.peek());
      this.isClosed.value = page.closed;
      return page.events.map((record) => ({ seq: record.seq, record: record as TraceRecord }));
    } catch (error) {
      if (!(error instanceof BatonError) || error.code !== DAMAGED) throw error;
      noteDamage(this.id, failureOf(error).title);
      if (count === 1 || this.damaged >= DAMAGED_MAX) {
        this.damaged += 1;
        const last = Math.max(from, Math.min(from + count - 1, this.size.peek()));
        return Array.from({ length: last - from + 1 }, (_, at) => ({ seq: from + at, damage: error.title }));
      }
      const half = Math.floor(count / 2);
      const before = await this.whole(from, half);
      return before.length < half ? before : [...before, ...(await this.whole(from + half, count - half))];
    }
  }

  /** The same, over as many pages as it takes. */
  private async whole(from: number, count: number): Promise<Row[]> {
    const rows: Row[] = [];
    while (rows.length < count) {
      const more = await this.piece(from + rows.length, count - rows.length);
      if (more.length === 0) break;
      rows.push(...more);
    }
    return rows;
  }

  private take(more: readonly Row[]): void {
    let before = this.rows.peek().at(-1);
    for (const row of more) {
      const { record } = row;
      if (record) {
        this.byId.set(record.id, row.seq);
        const key = record.actor.key;
        if (key !== undefined && !this.keys.has(key)) this.keys.set(key, this.keys.size);
        if (linkTo(before, row) === "broken" && this.cut.peek() === undefined) {
          this.cut.value = row.seq;
          noteDamage(this.id, `Event ${row.seq} does not follow the one before it.`);
        }
      }
      before = row;
    }
    this.rows.value = [...this.rows.peek(), ...more];
    void this.prove();
  }

  /** Computes the hashes anew, with pauses in which the page lives. */
  private async prove(): Promise<void> {
    if (this.isProving || !canHash()) return;
    this.isProving = true;
    let done = this.proven.peek();
    while (done < this.rows.peek().length && !this.stopped.signal.aborted) {
      const end = performance.now() + SLICE_MS;
      const work: Promise<void>[] = [];
      for (const row of this.rows.peek().slice(done, done + 64)) {
        work.push(this.proveOne(row));
        if (performance.now() > end) break;
      }
      await Promise.all(work);
      done += work.length;
      if (done % PROGRESS < work.length) this.proven.value = done;
      await new Promise((resolve) => setTimeout(resolve));
    }
    this.proven.value = done;
    this.isProving = false;
  }

  private async proveOne({ seq, record }: Row): Promise<void> {
    if (!record) return;
    const hash = await hashOf(record);
    if (hash === record.hash) return;
    this.wrong.value = new Map(this.wrong.peek()).set(seq, hash);
    noteDamage(this.id, `Event ${seq} has another hash than it says.`);
  }
}

export type Joint = "first" | "whole" | "broken" | "unknown";

/** How a record hangs on the one before it. */
export function linkTo(before: Row | undefined, row: Row): Joint {
  if (!row.record) return "broken";
  if (row.seq === 1) return row.record.prev === FIRST_PREV ? "first" : "broken";
  if (!before?.record) return "unknown";
  return row.record.prev === before.record.hash && row.seq === before.seq + 1 ? "whole" : "broken";
}

export function useTrace(id: string): TraceModel {
  const model = useMemo(() => new TraceModel(id), [id]);
  useEffect(() => model.start(), [model]);
  return model;
}

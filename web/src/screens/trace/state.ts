// One trace: its records page by page, what the page can prove of them by itself, and what the verifier said.

import { BatonError } from "@baton/sdk";
import { batch, computed, effect, signal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import { DAMAGED, noteDamage } from "../../state/damage.js";
import { failureOf, fetched, isAborted } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { grown, link, type Failure, type Fetched } from "../../state/store.js";
import { canHash, FIRST_PREV, hashOf, isFailure, type Finding, type Report, type Row, type TraceRecord } from "./record.js";
import { isSound, noteReport } from "./words.js";

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

  /** The first record that this page finds not to be what it should be. */
  readonly ownBad = computed<number | undefined>(() => least([this.cut.value, ...this.wrong.value.keys(), this.rows.value.find((row) => !row.record)?.seq]));

  /** Where the proof ends: the first record that is not what it should be, whoever found it. */
  readonly firstBad = computed<number | undefined>(() => {
    const bad = [this.ownBad.value];
    for (const [seq, findings] of this.findings.value) if (findings.some(isFailure)) bad.push(seq);
    return least(bad);
  });

  private readonly stopped = new AbortController();
  private isReading = false;
  private isWanted = false;
  private isProving = false;
  private damaged = 0;
  /** How often everything was read anew; whether it is to be, and whether a report waits for what is found then. */
  private round = 0;
  private isStale = false;
  private isDoubted = false;

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
    if (came.kind === "broken") {
      this.checked.value = came;
      return;
    }
    const report = came.value as Report;
    this.checked.value = { kind: "ready", value: { report, at: Date.now() } };
    this.isDoubted = this.isStale = isSound(report) && this.ownBad.peek() !== undefined;
    // What the page found itself is undone only by what it finds when it looks again.
    if (this.isStale) void this.read();
    else noteReport(this.id, report);
  }

  /** Reads what is not known yet. */
  async read(): Promise<void> {
    this.isWanted = true;
    if (this.isReading) return;
    this.isReading = true;
    try {
      while (this.isWanted) {
        this.isWanted = false;
        if (this.isStale) await this.readAnew();
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
      // What is shown stays, and is gone on with once there is somebody to ask.
      this.broken.value = failureOf(error);
    } finally {
      this.isReading = false;
    }
  }

  /** Reads what was read once more: what is shown stays until all of it is there, and then only what is found in that counts. */
  private async readAnew(): Promise<void> {
    const rows: Row[] = [];
    this.damaged = 0;
    while (rows.length < this.rows.peek().length) {
      const more = await this.piece(rows.length + 1, PAGE);
      if (more.length === 0) break;
      rows.push(...more);
    }
    this.isStale = false;
    this.round += 1;
    batch(() => {
      this.byId.clear();
      this.wrong.value = new Map();
      this.cut.value = undefined;
      this.proven.value = 0;
      this.rows.value = [];
      this.take(rows);
    });
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
    if (this.isProving) return;
    this.isProving = true;
    let round = this.round;
    let done = this.proven.peek();
    while (canHash() && done < this.rows.peek().length && !this.stopped.signal.aborted) {
      const end = performance.now() + SLICE_MS;
      const work: Promise<void>[] = [];
      for (const row of this.rows.peek().slice(done, done + 64)) {
        work.push(this.proveOne(row, round));
        if (performance.now() > end) break;
      }
      await Promise.all(work);
      done += work.length;
      if (done % PROGRESS < work.length && round === this.round) this.proven.value = done;
      await new Promise((resolve) => setTimeout(resolve));
      if (round === this.round) continue;
      round = this.round;
      done = 0;
    }
    this.proven.value = done;
    this.isProving = false;
    const report = this.report;
    if (!this.isDoubted || this.isStale || !report || this.stopped.signal.aborted) return;
    this.isDoubted = false;
    if (this.ownBad.peek() === undefined) noteReport(this.id, report);
  }

  private async proveOne({ seq, record }: Row, round: number): Promise<void> {
    if (!record) return;
    const hash = await hashOf(record);
    if (hash === record.hash || round !== this.round) return;
    this.wrong.value = new Map(this.wrong.peek()).set(seq, hash);
    noteDamage(this.id, `Event ${seq} has another hash than it says.`);
  }
}

function least(all: readonly (number | undefined)[]): number | undefined {
  const known = all.filter((one) => one !== undefined);
  return known.length > 0 ? Math.min(...known) : undefined;
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

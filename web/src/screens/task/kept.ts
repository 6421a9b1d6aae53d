// Something that is fetched, and fetched again as often as it may have changed; one request at a time.

import { signal } from "@preact/signals";
import { fetched } from "../../state/failure.js";
import type { Fetched } from "../../state/store.js";

/** There is no such task: the one failure that says something of what was asked for. */
const GONE = "T001";

export class Kept<T> {
  readonly now = signal<Fetched<T>>({ kind: "loading" });
  readonly #load: () => Promise<T>;
  readonly #restMs: number;
  #isBusy = false;
  #isWanted = false;
  #isOver = false;

  /** `restMs` is how long it rests between two requests, however often it is asked. */
  constructor(load: () => Promise<T>, restMs = 0) {
    this.#load = load;
    this.#restMs = restMs;
  }

  /** What is known of it. */
  get value(): T | undefined {
    const now = this.now.value;
    return now.kind === "ready" ? now.value : undefined;
  }

  /** Begins anew: what a person asks for with "Try again". */
  readonly retry = (): void => {
    this.now.value = { kind: "loading" };
    this.refresh();
  };

  /** Asks for it. What is known stays where the answer is missing: it is asked for again when the connection is back. */
  refresh(): void {
    if (this.#isBusy) {
      this.#isWanted = true;
      return;
    }
    this.#isBusy = true;
    void this.#once();
  }

  stop(): void {
    this.#isOver = true;
  }

  async #once(): Promise<void> {
    const came = await fetched(this.#load());
    if (this.#isOver) return;
    const isMissing = came.kind === "broken" && came.error.code !== GONE && this.now.peek().kind === "ready";
    if (!isMissing) this.now.value = came;
    if (this.#restMs > 0) await new Promise((resolve) => setTimeout(resolve, this.#restMs));
    this.#isBusy = false;
    if (!this.#isWanted || this.#isOver) return;
    this.#isWanted = false;
    this.refresh();
  }
}

// What is known of one task, and how it is kept in step with the ledger. Made when the screen opens, ended when it closes.

import { computed, effect, signal } from "@preact/signals";
import type { LedgerRecord, Task, TaskActions, TaskChanges, TaskFiles } from "@baton/sdk";
import { failureOf } from "../../state/failure.js";
import { client, merge } from "../../state/live.js";
import { grown, link, tasks, type Failure } from "../../state/store.js";
import { getPage, getRuns, type Run } from "./answers.js";
import { Kept } from "./kept.js";
import { isStory } from "./story.js";

const PAGE = 500;
/** How long a place of work rests between two looks at it. */
const CHANGES_REST_MS = 1500;

/** The events of the trace that tell of the task, as far as they are read. */
export interface Story {
  events: readonly LedgerRecord[];
  /** The number of the last event that was read. */
  last: number;
  isWhole: boolean;
  isClosed: boolean;
  error: Failure | undefined;
}

/** What a person is writing: kept while tabs change, and when somebody else is faster. */
export interface Draft {
  /** The task as it was when it was opened for writing. */
  base: Task;
  title: string;
  priority: string;
  text: string;
  isSaving: boolean;
  /** What it has become meanwhile, where that is in the way. */
  other: Task | undefined;
}

export class TaskModel {
  readonly id: string;
  readonly whole: Kept<Task>;
  readonly actions: Kept<TaskActions>;
  readonly runs: Kept<readonly Run[]>;
  readonly changes: Kept<TaskChanges>;
  readonly files: Kept<TaskFiles>;
  readonly story = signal<Story>({ events: [], last: 0, isWhole: false, isClosed: false, error: undefined });
  readonly draft = signal<Draft | undefined>(undefined);
  readonly line = signal("");
  readonly tab = signal("brief");
  readonly isBusy = signal(false);
  #isReading = false;
  #isOver = false;

  constructor(id: string) {
    this.id = id;
    this.whole = new Kept(async () => {
      const task = await client.getTask(id);
      merge([task]);
      return task;
    });
    this.actions = new Kept(() => client.getTaskActions(id));
    this.runs = new Kept(() => getRuns(id), 300);
    this.changes = new Kept(() => client.getTaskChanges(id), CHANGES_REST_MS);
    this.files = new Kept(() => client.getTaskFiles(id), 300);
  }

  /** The newest that is known of it, from wherever. */
  readonly task = computed<Task | undefined>(() => {
    const listed = tasks.value.get(this.id);
    const own = this.whole.value;
    return own === undefined || (listed !== undefined && listed.rev >= own.rev) ? listed : own;
  });

  /** Its text, once it was fetched: lists come without. */
  readonly body = computed<string | undefined>(() => this.whole.value?.body ?? (this.whole.value ? "" : undefined));

  /** Begins; gives what ends it. */
  start(): () => void {
    const effects = [
      // The task itself, and what may be done to it: whenever it, or what it waits for, has changed.
      effect(() => {
        const listed = tasks.value.get(this.id);
        const known = this.whole.now.peek();
        if (known.kind === "ready" && listed !== undefined && listed.rev > known.value.rev) this.whole.refresh();
      }),
      effect(() => { if (this.#stamp.value !== "") this.actions.refresh(); }),
      // Its trace: what is new, and nothing else.
      effect(() => {
        const task = this.task.value;
        const far = Math.max(task?.rev ?? 0, grown.value.get(task?.traceId ?? "") ?? 0);
        if (far > this.story.peek().last) void this.read();
      }),
      // What a tab shows, while it is shown.
      effect(() => {
        const tab = this.tab.value;
        void this.story.value.last;
        if (tab === "runs") this.runs.refresh();
        if (tab === "changes") this.changes.refresh();
        if (tab === "raw") this.files.refresh();
      }),
      effect(() => { if (link.value.kind === "live") this.refresh(); }),
    ];
    this.whole.refresh();
    return () => {
      this.#isOver = true;
      effects.forEach((end) => end());
      [this.whole, this.actions, this.runs, this.changes, this.files].forEach((kept) => kept.stop());
    };
  }

  readonly #stamp = computed(() => {
    const task = this.task.value;
    if (task === undefined) return "";
    return [task.rev, ...(task.dependsOn ?? []).map((id) => tasks.value.get(id)?.status ?? "?")].join(" ");
  });

  /** Asks for everything again: after something was done, and when the connection is back. */
  refresh(): void {
    this.whole.refresh();
    if (this.task.peek() !== undefined) {
      this.actions.refresh();
      void this.read();
    }
  }

  /** Reads the trace on from where it was left, page by page. */
  readonly read = async (): Promise<void> => {
    if (this.#isReading || this.#isOver) return;
    this.#isReading = true;
    try {
      for (;;) {
        const before = this.story.peek();
        const page = await getPage(this.id, before.last + 1, PAGE);
        if (this.#isOver) return;
        const last = page.events.at(-1)?.seq ?? before.last;
        const fresh = page.events.filter(isStory);
        const events = fresh.length > 0 ? [...before.events, ...fresh] : before.events;
        const isWhole = page.next === undefined;
        if (last !== before.last || isWhole !== before.isWhole || before.error) {
          this.story.value = { events, last, isWhole, isClosed: page.closed, error: undefined };
        }
        const far = grown.peek().get(page.trace) ?? 0;
        if (isWhole && (far <= last || page.events.length === 0)) return;
      }
    } catch (error) {
      const failure = failureOf(error);
      if (!this.#isOver) this.story.value = { ...this.story.peek(), error: failure };
    } finally {
      this.#isReading = false;
    }
  };
}

const LOG_HEAD = /^## Work Log[ \t]*$/gm;

/** The text of a task, without the work log at its end: that has a tab of its own. */
export function textOf(body: string): string {
  const found = [...body.matchAll(LOG_HEAD)].at(-1);
  if (!found) return body;
  const rest = body.slice(found.index + found[0].length).split("\n");
  const isLog = rest.every((line) => line.trim() === "" || line.startsWith("- "));
  return isLog ? body.slice(0, found.index).trimEnd() : body;
}

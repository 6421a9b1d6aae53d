// What the board shows and what is done on it: columns, the selected card, the card that is dragged, the dialog that is open.

import { computed, effect, signal } from "@preact/signals";
import type { Status, Task, TaskActions } from "@baton/sdk";
import { ask, query } from "../../router.js";
import { getActions, moveTo } from "../../state/actions.js";
import { choicesOf, columnsOf, filterOf, OTHER, type Column, type Place } from "../../state/board.js";
import { isExpired } from "../../state/model.js";
import { now, tasks, tell, type Fetched } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { wantFocus } from "./focus.js";
import { find, step } from "./select.js";

export const filter = computed(() => filterOf(query.value));
export const isFiltered = computed(() => {
  const { text, agent, tag, priority } = filter.value;
  return text.trim() !== "" || agent !== "" || tag !== "" || priority !== "";
});
export const clearFilters = (): void => ask({ q: "", agent: "", tag: "", priority: "", ended: "" });

// Time alone changes an order only where a lease runs out: so that is all that is looked at every second.
const leased = computed(() => [...tasks.value.values()].filter((task) => task.lease));
const expired = computed(() => leased.value.filter((task) => isExpired(task, now.value)).length);

export const columns = computed<readonly Column[]>(() => {
  void expired.value;
  return columnsOf(tasks.value.values(), filter.value, now.peek());
});
export const choices = computed(() => choicesOf(tasks.value.values()));

/** The card that keys act on. */
export const selected = signal<string | undefined>(undefined);

export function select(id: string | undefined): void {
  if (selected.peek() !== id) selected.value = id;
}

/** Goes on to another card, as keys do. */
export function move(across: number, down: number): void {
  select(step(columns.value, selected.value, across, down));
  if (selected.value !== undefined) wantFocus();
  const at = find(columns.value, selected.value);
  const status = columns.value[at?.column ?? -1]?.status;
  if (status && isNarrow()) showColumn(status);
}

/** The selected task, where it is shown. */
export function selectedTask(): Task | undefined {
  return find(columns.value, selected.value) ? tasks.value.get(selected.value ?? "") : undefined;
}

/** On a narrow screen there is one column at a time. */
export const isNarrow = (): boolean => matchMedia("(max-width: 700px)").matches;
export const showColumn = (status: Place): void => ask({ column: status });
const firstShown = signal<Place | undefined>(undefined);
export const shownColumn = computed<Place>(() => columns.value.find((column) => column.status === query.value.get("column"))?.status ?? firstShown.value ?? "ready");

/** Chooses the column that a narrow screen begins with, once there is something to choose from. */
export function chooseFirstColumn(): void {
  if (firstShown.peek() !== undefined || tasks.value.size === 0) return;
  const order: readonly Place[] = ["in-progress", "review", "blocked", "ready", "backlog", "done", OTHER];
  firstShown.value = order.find((status) => columns.value.some((column) => column.status === status && column.tasks.length > 0));
}

export type Open = { kind: "move"; id: string; to?: Status } | { kind: "approve" | "reject"; id: string } | { kind: "new" };
export const open = signal<Open | undefined>(undefined);

/** Closes a dialog, unless another one has taken its place. */
export function close(which: Open): void {
  if (open.peek() !== which) return;
  open.value = undefined;
  // Once the dialog is gone: as long as it is there, nothing else can have the focus.
  setTimeout(wantFocus);
}

/** The card that is being dragged, and where it may go. */
export interface Drag {
  id: string;
  from: Status;
  actions: Fetched<TaskActions>;
}
export const drag = signal<Drag | undefined>(undefined);

export function startDrag(task: Task): void {
  const started: Drag = { id: task.id, from: task.status, actions: { kind: "loading" } };
  drag.value = started;
  // As long as something is dragged the pointer tells nothing: where it does, it was let go unseen.
  addEventListener("pointermove", endDrag, { once: true });
  void getActions(task.id).then((actions) => {
    if (drag.peek() === started) drag.value = { ...started, actions };
  });
}

export function endDrag(): void {
  drag.value = undefined;
}

// A card that goes elsewhere by itself is not dragged any more: its element is gone, and nobody hears of the end.
effect(() => {
  const dragged = drag.value;
  if (dragged && tasks.value.get(dragged.id)?.status !== dragged.from) endDrag();
});

/** Lets go of the card over a column. */
export function drop(to: Place): void {
  const dropped = drag.peek();
  drag.value = undefined;
  if (!dropped || dropped.from === to || to === OTHER) return;
  select(dropped.id);
  const action = dropped.actions.kind === "ready" ? moveTo(dropped.actions.value, to) : undefined;
  // Where it is not known yet, the dialog finds out.
  if (!action || action.allowed) open.value = { kind: "move", id: dropped.id, to };
  else tell("bad", `Not moved to ${to}: ${oneLine(action.why ?? "it cannot be", 300)}`);
}

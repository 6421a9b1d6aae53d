// Which card is selected after a key. Plain functions of the columns.

import type { Column } from "../../state/board.js";

export interface At {
  column: number;
  index: number;
}

/** Where a card stands. */
export function find(columns: readonly Column[], id: string | undefined): At | undefined {
  if (id === undefined) return undefined;
  for (const [column, { tasks }] of columns.entries()) {
    const index = tasks.findIndex((task) => task.id === id);
    if (index >= 0) return { column, index };
  }
  return undefined;
}

/** The card one further down or to the side. To the side, columns without cards are passed over; at the ends it stays. */
export function step(columns: readonly Column[], id: string | undefined, across: number, down: number): string | undefined {
  const at = find(columns, id);
  if (!at) return columns.find((column) => column.tasks.length > 0)?.tasks[0]?.id;
  if (down !== 0) {
    const tasks = columns[at.column]?.tasks ?? [];
    return tasks[Math.max(0, Math.min(tasks.length - 1, at.index + down))]?.id;
  }
  for (let column = at.column + across; column >= 0 && column < columns.length; column += across) {
    const tasks = columns[column]?.tasks ?? [];
    if (tasks.length > 0) return tasks[Math.min(at.index, tasks.length - 1)]?.id;
  }
  return id;
}

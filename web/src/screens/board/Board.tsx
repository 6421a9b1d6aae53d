// The board: every task in the column of its status, live; moved by mouse or by keys.

import { useEffect, useRef } from "preact/hooks";
import { MoveDialog } from "../../parts/MoveDialog.js";
import { ReviewDialog } from "../../parts/ReviewDialog.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { go, taskPath } from "../../router.js";
import { useKeys, type Key } from "../../state/keys.js";
import { loadTasks } from "../../state/live.js";
import { link, tasks, tasksLoading } from "../../state/store.js";
import { ColumnView } from "./ColumnView.js";
import { Filters, SEARCH_ID } from "./Filters.js";
import { useFocusWatch } from "./focus.js";
import { NewTask } from "./NewTask.js";
import {
  chooseFirstColumn, clearFilters, close, columns, isFiltered, move, open, selectedTask, showColumn, shownColumn,
} from "./state.js";
import "./board.css";

export function Board() {
  useKeys("Board", KEYS);
  // Whoever comes back finds the board, not the dialog that was left.
  useEffect(() => () => { open.value = undefined; }, []);
  return (
    <div class="board">
      <div class="board-head">
        <h1>Board</h1>
        <Filters />
        <button type="button" class="primary" title="New task (n)" onClick={newTask}>New task</button>
      </div>
      <Content />
      <Opened />
    </div>
  );
}

function newTask(): void {
  open.value = { kind: "new" };
}

/** Opens a dialog for the selected card; without one, the first is selected. */
function forSelected(kind: "move" | "approve" | "reject") {
  return () => {
    const task = selectedTask();
    if (task) open.value = { kind, id: task.id };
    else move(0, 1);
  };
}

const opensSelected = (): void => {
  const task = selectedTask();
  if (task) go(taskPath(task.id));
};

const KEYS: readonly Key[] = [
  { keys: "j", does: "next card", run: () => move(0, 1) },
  { keys: "k", does: "previous card", run: () => move(0, -1) },
  { keys: "l", does: "card in the next column", run: () => move(1, 0) },
  { keys: "h", does: "card in the previous column", run: () => move(-1, 0) },
  { keys: "ArrowDown", does: "next card", run: () => move(0, 1) },
  { keys: "ArrowUp", does: "previous card", run: () => move(0, -1) },
  { keys: "ArrowRight", does: "card in the next column", run: () => move(1, 0) },
  { keys: "ArrowLeft", does: "card in the previous column", run: () => move(-1, 0) },
  { keys: "Enter", does: "open the card", run: opensSelected },
  { keys: "m", does: "move the card", run: forSelected("move") },
  { keys: "a", does: "approve the card", run: forSelected("approve") },
  { keys: "x", does: "reject the card", run: forSelected("reject") },
  { keys: "n", does: "new task", run: newTask },
  { keys: "/", does: "search", run: () => document.getElementById(SEARCH_ID)?.focus() },
];

function Content() {
  const state = tasksLoading.value;
  const count = tasks.value.size;
  if (count === 0 && state.kind === "broken") return <Broken what="The board" error={state.error} retry={() => void loadTasks()} />;
  if (state.kind === "loading" && count === 0) {
    const { value } = link;
    return <><Loading what="the board" />{value.kind === "waiting" ? <p class="board-note dim">{value.reason}</p> : null}</>;
  }
  return (
    <>
      <Notes />
      <Columns />
    </>
  );
}

/** What has to be said of the whole board. */
function Notes() {
  const state = tasksLoading.value;
  const count = tasks.value.size;
  const isNothing = columns.value.every((column) => column.tasks.length === 0);
  if (state.kind === "broken") {
    return <p class="board-note is-bad" role="alert">Not every task could be loaded: {state.error.title}. <button type="button" onClick={() => void loadTasks()}>Try again</button></p>;
  }
  if (state.kind === "partly") return <p class="board-note dim" role="status">Loading the rest: {count} tasks so far…</p>;
  if (count === 0) {
    return (
      <Empty title="There are no tasks yet">
        <p><button type="button" class="primary" onClick={newTask}>Make the first one</button></p>
        <p>or type: <code>baton task new "what is to be done" --ready</code></p>
      </Empty>
    );
  }
  if (isNothing && isFiltered.value) return <p class="board-note" role="status">None of {count} tasks fits the filters. <button type="button" onClick={clearFilters}>Clear them</button></p>;
  return null;
}

function Columns() {
  const all = columns.value;
  useEffect(chooseFirstColumn);
  useFocusWatch();
  const strip = useRef<HTMLDivElement>(null);
  const shown = shownColumn.value;
  useEffect(() => strip.current?.querySelector("[aria-pressed=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" }), [shown]);
  return (
    <>
      <div ref={strip} class="column-strip" role="group" aria-label="Columns">
        {all.map(({ status, tasks: found }) => (
          <button key={status} type="button" aria-pressed={shown === status} onClick={() => showColumn(status)}>{status} <span class="count">{found.length}</span></button>
        ))}
      </div>
      <div class="columns">{all.map((column) => <ColumnView key={column.status} column={column} />)}</div>
    </>
  );
}

function Opened() {
  const which = open.value;
  // Each is a dialog of its own, also where one follows another at once.
  const last = useRef({ which, count: 0 });
  if (last.current.which !== which) last.current = { which, count: last.current.count + 1 };
  const key = last.current.count;
  if (!which) return null;
  if (which.kind === "new") return <NewTask key={key} which={which} />;
  if (which.kind === "move") return <MoveDialog key={key} id={which.id} to={which.to} onClose={() => close(which)} />;
  return <ReviewDialog key={key} id={which.id} kind={which.kind} onClose={() => close(which)} />;
}

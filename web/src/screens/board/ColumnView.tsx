// A column: its name, how many, the cards, and whether the card that is dragged may be dropped here.

import { useEffect, useState } from "preact/hooks";
import type { Task } from "@baton/sdk";
import { Badge } from "../../parts/Badge.js";
import { Boundary } from "../../parts/Boundary.js";
import { Windowed } from "../../parts/Windowed.js";
import { moveTo } from "../../state/actions.js";
import { OTHER, type Column, type Place } from "../../state/board.js";
import { taskPath } from "../../router.js";
import { plural } from "../../state/format.js";
import { oneLine } from "../../state/text.js";
import { Card, CARD_HEIGHT } from "./Card.js";
import { drag, drop, isFiltered, selected, shownColumn } from "./state.js";

const COMES: { readonly [status in Place]: string } = {
  backlog: "What is not to be begun yet waits here: new tasks that are not ready.",
  ready: "What is made ready comes here, and the next free agent takes it.",
  "in-progress": "A task comes here when an agent takes it.",
  blocked: "A task comes here when its agent cannot go on, when CI fails, or when it waits for another task.",
  review: "A task comes here when its agent says that it is finished.",
  done: "What was approved comes here.",
  cancelled: "What was called off comes here.",
  deadletter: "What failed too often is given up, and comes here.",
  other: "What has a status that this page does not know stands here.",
};

export function ColumnView({ column }: { column: Column }) {
  const { status, tasks } = column;
  const focus = selected.value === undefined ? -1 : tasks.findIndex((task) => task.id === selected.value);
  const [isOver, setOver] = useState(false);
  const dragged = drag.value;
  useEffect(() => { if (!dragged) setOver(false); }, [dragged]);
  const take = (event: DragEvent) => {
    if (!drag.peek()) return;
    // Also where it cannot be dropped: whoever does is told why.
    event.preventDefault();
    setOver(true);
  };
  return (
    <section class={`column ${shownColumn.value === status ? "is-shown" : ""}`} aria-label={`${status}: ${plural(tasks.length, "task")}`} data-status={status}
      onDragEnter={take} onDragOver={take}
      onDragLeave={(event) => { if (!(event.relatedTarget instanceof Node) || !event.currentTarget.contains(event.relatedTarget)) setOver(false); }}
      onDrop={(event) => { event.preventDefault(); setOver(false); drop(status); }}>
      <h2 class="column-head"><Badge status={status} /> <span class="count">{tasks.length}</span></h2>
      {tasks.length === 0 ? <p class="column-empty dim">{isFiltered.value ? "Nothing here fits the filters." : COMES[status]}</p> : (
        <Windowed class="column-cards" count={tasks.length} rowHeight={CARD_HEIGHT} label={`Tasks that are ${status}`} focus={focus < 0 ? undefined : focus}
          row={(index) => { const task = tasks[index]; return task ? <Whole key={task.id} task={task} /> : null; }} />
      )}
      {dragged ? <DropHint status={status} isOver={isOver} /> : null}
    </section>
  );
}

/** A card; where it cannot be drawn, that there is one, and where it leads. */
function Whole({ task }: { task: Task }) {
  return <Boundary what="This card" of={task} instead={<p class="card text-bad">This card cannot be shown: <a href={taskPath(String(task.id))}>{oneLine(task.id, 64)}</a></p>}><Card task={task} /></Boundary>;
}

/** Says before the card is dropped what will come of it. */
function DropHint({ status, isOver }: { status: Place; isOver: boolean }) {
  const dragged = drag.value;
  if (!dragged || dragged.from === status || status === OTHER) return null;
  const { actions } = dragged;
  const over = isOver ? "is-over" : "";
  if (actions.kind === "loading") return <p class={`drop-hint ${over}`}>…</p>;
  if (actions.kind === "broken") return <p class={`drop-hint is-no ${over}`}>Not known: {actions.error.title}</p>;
  const action = moveTo(actions.value, status);
  if (action.allowed) return <p class={`drop-hint is-yes ${over}`}><span aria-hidden="true">↓</span> Move to {status}</p>;
  return <p class={`drop-hint is-no ${over}`}><span aria-hidden="true">✕</span> {oneLine(action.why ?? "not from there", 300)}</p>;
}

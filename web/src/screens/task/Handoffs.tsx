// What a task is a part of, what are parts of it, what waits for what, and what was asked for when it was handed over.

import type { Task } from "@baton/sdk";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { Mark } from "../../parts/Badge.js";
import { Empty } from "../../parts/States.js";
import { Time } from "../../parts/Time.js";
import { tasks, tasksLoading } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { getPage } from "./answers.js";
import { TaskLink } from "./Brief.js";
import { Kept } from "./kept.js";
import type { TaskModel } from "./state.js";
import { handoffsOf, type Handoff } from "./story.js";

export function Handoffs({ model, task }: { model: TaskModel; task: Task }) {
  const all = [...tasks.value.values()];
  const children = all.filter((one) => one.parentId === task.id);
  const waiting = all.filter((one) => one.dependsOn?.includes(task.id));
  const depends = task.dependsOn ?? [];
  const own = handoffsOf(model.story.value.events);
  const isPart = task.parentId !== undefined;
  const isEmpty = !isPart && children.length === 0 && waiting.length === 0 && depends.length === 0 && own.length === 0;
  return (
    <section aria-label="Hand-offs">
      {tasksLoading.value.kind === "partly" || tasksLoading.value.kind === "loading" ? <p class="dim" role="status">Tasks are still being loaded…</p> : null}
      {isEmpty ? <Empty title="It stands alone"><p>Parts that are handed to other agents, and what it depends on, appear here.</p></Empty> : null}
      {task.parentId ? <Group title="Part of"><TaskLink id={task.parentId} /></Group> : null}
      {own.map((handoff) => <Group key={handoff.id} title="Handed over"><Asked handoff={handoff} isDone={task.status === "done"} /></Group>)}
      {children.length > 0 ? (
        <Group title="Its parts">
          <ul class="plain-list">{children.map((child) => <li key={child.id}><TaskLink id={child.id} /><Part task={child} /></li>)}</ul>
        </Group>
      ) : null}
      <Links title="Depends on" ids={depends} />
      <Links title="Wait for it" ids={waiting.map((one) => one.id)} />
    </section>
  );
}

function Group({ title, children }: { title: string; children: ComponentChildren }) {
  return <section class="panel" aria-label={title}><h2>{title}</h2>{children}</section>;
}

function Links({ title, ids }: { title: string; ids: readonly string[] }) {
  if (ids.length === 0) return null;
  return <Group title={title}><ul class="plain-list">{ids.map((id) => <li key={id}><TaskLink id={id} /></li>)}</ul></Group>;
}

/** What was asked for of a part: it stands in the part's own trace. */
function Part({ task }: { task: Task }) {
  const asked = useMemo(() => new Kept(async () => handoffsOf((await getPage(task.id, 1, 200)).events)), [task.id]);
  useEffect(() => asked.refresh(), [asked, task.rev]);
  useEffect(() => () => asked.stop(), [asked]);
  const last = asked.value?.at(-1);
  const state = asked.now.value;
  if (state.kind === "broken") return <p class="dim">What was asked for cannot be shown: {oneLine(state.error.title)}</p>;
  return last ? <Asked handoff={last} isDone={task.status === "done"} /> : null;
}

const ANSWERS = { open: "not answered yet", accepted: "accepted", rejected: "rejected" } as const;
const KINDS = { open: "off", accepted: "good", rejected: "bad" } as const;

function Asked({ handoff, isDone }: { handoff: Handoff; isDone: boolean }) {
  return (
    <div class="asked">
      <p>
        <bdi>{oneLine(handoff.from, 80)}</bdi> asked <bdi>{oneLine(handoff.to, 80)}</bdi>, <Time at={handoff.at} />{" "}
        <Mark kind={KINDS[handoff.answer]}>{ANSWERS[handoff.answer]}</Mark>
        {handoff.reason !== "" ? <> <bdi>{oneLine(handoff.reason, 512)}</bdi></> : null}
        {handoff.dueBy !== "" ? <span class="dim"> · due <Time at={handoff.dueBy} /></span> : null}
      </p>
      {handoff.criteria.length > 0 ? (
        <>
          <h3>Acceptance criteria</h3>
          <ul class="checklist">
            {handoff.criteria.map((one, at) => (
              <li key={at}><span role="img" aria-label={isDone ? "done" : "open"}>{isDone ? "☑" : "☐"}</span> <bdi>{oneLine(one, 300)}</bdi></li>
            ))}
          </ul>
          <p class="dim">They count as met when the task is done.</p>
        </>
      ) : <p class="dim">No acceptance criteria.</p>}
      <Files title="Expected" names={handoff.outputs} />
      <Files title="To read" names={handoff.context} />
      {handoff.constraints.length > 0 ? <><h3>Constraints</h3><ul>{handoff.constraints.map((one, at) => <li key={at}>{oneLine(one, 300)}</li>)}</ul></> : null}
    </div>
  );
}

function Files({ title, names }: { title: string; names: readonly string[] }) {
  if (names.length === 0) return null;
  return <><h3>{title}</h3><ul class="plain-list">{names.map((one, at) => <li key={at}><code>{oneLine(one, 300)}</code></li>)}</ul></>;
}

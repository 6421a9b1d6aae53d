// A card: what a task is, who has it, and whether it is well.

import type { Status, Task } from "@baton/sdk";
import { Mark } from "../../parts/Badge.js";
import { Id } from "../../parts/Id.js";
import { sessionPath, taskPath } from "../../router.js";
import { sealOf } from "../../state/damage.js";
import { plural, span } from "../../state/format.js";
import { agentOf, blockReason, cardOf, isExpired, leaseEnd, leaseLeft, STATUSES, tagsOf, type Tests } from "../../state/model.js";
import { now } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { useFocus } from "./focus.js";
import { drag, endDrag, open, select, selected, startDrag } from "./state.js";

export const CARD_HEIGHT = 116;

/** An id without what most of them have in common; the whole of it is in its title. */
const shortTask = (id: string): string => id.replace(/^TASK-(\d{4}-(?=\d\d-\d\d-))?/, "");
const phaseName = (phase: string): string => oneLine(phase, 60).toLowerCase().replaceAll("_", " ");

export function Card({ task }: { task: Task }) {
  const isSelected = selected.value === task.id;
  const title = oneLine(task.title);
  const link = useFocus(isSelected);
  return (
    <article class={`card ${isSelected ? "is-selected" : ""} ${drag.value?.id === task.id ? "is-dragged" : ""}`} aria-current={isSelected ? "true" : undefined}
      draggable onDragStart={(event) => { event.dataTransfer?.setData("text/plain", task.id); startDrag(task); }} onDragEnd={endDrag}>
      <header class="card-top">
        <Id id={task.id} text={shortTask(task.id)} isTabbed={false} />
        <Priority priority={task.priority} />
        <span class="grows" />
        <Tools task={task} title={title} />
      </header>
      <a ref={link} class="card-title" href={taskPath(task.id)} draggable={false} onFocus={() => select(task.id)}><bdi>{title}</bdi></a>
      <p class="card-line dim">{STATUSES.includes(task.status) ? null : <Mark kind="warn">{oneLine(task.status, 24)}</Mark>}<Who task={task} /><Phase task={task} />{task.lease ? <Attempts task={task} /> : null}</p>
      <Foot task={task} />
    </article>
  );
}

function Priority({ priority }: { priority: string }) {
  if (priority === "normal") return null;
  const sign = { critical: "▲", high: "▲", low: "▽" }[priority] ?? "";
  return <span class={`priority is-${priority}`}><span aria-hidden="true">{sign}</span> {oneLine(priority, 12)}</span>;
}

function Tools({ task, title }: { task: Task; title: string }) {
  const opens = (kind: "move" | "approve" | "reject") => () => {
    select(task.id);
    open.value = { kind, id: task.id };
  };
  return (
    <span class="card-tools">
      {task.status === "review" ? (
        <>
          <button type="button" class="quiet" title="Approve (a)" aria-label={`Approve ${title}`} onClick={opens("approve")}>✓</button>
          <button type="button" class="quiet" title="Reject (x)" aria-label={`Reject ${title}`} onClick={opens("reject")}>✕</button>
        </>
      ) : null}
      <button type="button" class="quiet" title="Move (m)" aria-label={`Move ${title}`} onClick={opens("move")}>⇄</button>
    </span>
  );
}

/** Where it is of interest who had it last. */
const WORKED_ON: readonly Status[] = ["review", "blocked", "done", "deadletter"];

/** Who has it; and the way to where it can be watched. */
function Who({ task }: { task: Task }) {
  const { session, run } = cardOf(task);
  const isWorkedOn = WORKED_ON.includes(task.status) && run !== undefined;
  const agent = task.lease || !isWorkedOn ? agentOf(task) : run.agent;
  if (agent === undefined) return <span>no agent</span>;
  const name = <bdi>{oneLine(agent, 40)}</bdi>;
  if (!task.lease) return <span>{isWorkedOn ? "by" : "for"} {name}</span>;
  return session === undefined ? <strong>{name}</strong> : <a class="card-watch" href={sessionPath(session)} draggable={false} title="Watch its session">{name}</a>;
}

const BLOCKED = "BLOCKED";

/** Its phase; of what is blocked the column says that already, and what is said below needs the room. */
function Phase({ task }: { task: Task }) {
  return task.phase === BLOCKED ? <Seal task={task} /> : <span>{phaseName(task.phase)}</span>;
}

function Attempts({ task }: { task: Task }) {
  const failed = task.attempts ?? 0;
  if (failed === 0) return null;
  return <span class="attempts">{task.lease ? `attempt ${failed + 1}` : plural(failed, "failed attempt")}</span>;
}

function Foot({ task }: { task: Task }) {
  const card = cardOf(task);
  const why = task.status === "blocked" || task.status === "deadletter" ? blockReason(task) ?? card.run?.reason : undefined;
  return (
    <footer class="card-foot">
      {why === undefined ? null : <span class="blocker" title={oneLine(why, 400)}><span aria-hidden="true">■</span> <bdi>{oneLine(why, 120)}</bdi></span>}
      {task.lease ? <Lease task={task} /> : null}
      {task.lease || why !== undefined ? null : <span class="tags dim">{tagsOf(task).slice(0, 3).map((tag) => `#${oneLine(tag, 24)}`).join(" ")}</span>}
      {task.lease ? null : <Attempts task={task} />}
      {card.tests ? <TestCount tests={card.tests} /> : null}
      {task.phase === BLOCKED ? null : <Seal task={task} />}
    </footer>
  );
}

/** The lease as a bar that drains until its agent is heard of again. */
function Lease({ task }: { task: Task }) {
  const at = now.value;
  const left = Math.round(leaseLeft(task, at) * 1000) / 10;
  const end = leaseEnd(task);
  if (isExpired(task, at)) return <Mark kind="bad">lease ran out</Mark>;
  const words = end === undefined ? "no end known" : `${span(Math.ceil((end - at) / 1000) * 1000)} left`;
  return (
    <span class={`lease ${left < 20 ? "is-low" : ""}`}>
      <span class="lease-bar" role="meter" aria-label={`Lease: ${words}`} aria-valuemin={0} aria-valuemax={100} aria-valuenow={Math.round(left)} aria-valuetext={words}>
        <span class="lease-left" style={{ width: `${left}%` }} />
      </span>
      <span class="lease-words" aria-hidden="true">{words}</span>
    </span>
  );
}

function TestCount({ tests }: { tests: Tests }) {
  const failed = tests.failed > 0;
  const words = `${plural(tests.passed, "test")} passed, ${tests.failed} failed`;
  return <span class={`tests ${failed ? "is-bad" : "is-good"}`} title={words} aria-label={words} role="img">✓{tests.passed}{failed ? ` ✕${tests.failed}` : ""}</span>;
}

/** What a guarded run came to; of one that is under way, that it is. */
function Seal({ task }: { task: Task }) {
  const { verified, guard } = cardOf(task);
  if (!verified) return guard !== undefined || task["guarded"] === true ? <Mark kind="off">guarded</Mark> : null;
  const broken = sealOf(verified.trace);
  if (broken !== undefined) return <Mark kind="bad">{broken}</Mark>;
  switch (verified.verdict) {
    case "pass":
      return <Mark kind="good">verified</Mark>;
    case "pass-with-warnings":
      return <Mark kind="warn">verified</Mark>;
    case undefined:
      return <Mark kind="off">{oneLine(verified.state, 20)}</Mark>;
    default:
      return <Mark kind="bad">not verified</Mark>;
  }
}

// The head of a task: what it is called, how it stands, and the buttons for what is possible now.

import type { Task } from "@baton/sdk";
import { useState } from "preact/hooks";
import { sessionPath, tracePath } from "../../router.js";
import { Badge, Mark } from "../../parts/Badge.js";
import { Id } from "../../parts/Id.js";
import { once } from "../../parts/once.js";
import { Time } from "../../parts/Time.js";
import { sealOf } from "../../state/damage.js";
import { plural } from "../../state/format.js";
import { agentOf, cardOf, isExpired, leaseEnd, type Verified } from "../../state/model.js";
import { now } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { approve, retry } from "./deeds.js";
import type { TaskModel } from "./state.js";
import type { Asked } from "./Task.js";

interface Props {
  model: TaskModel;
  task: Task;
  onAsk: (asked: Asked) => void;
}

export function Header({ model, task, onAsk }: Props) {
  const card = cardOf(task);
  const agent = agentOf(task);
  const end = leaseEnd(task);
  return (
    <header class="task-head" data-rev={task.rev}>
      <div class="head">
        <Id id={task.id} text={task.id} />
        <h1><bdi>{oneLine(task.title, 300)}</bdi></h1>
      </div>
      <div class="task-line">
        <Badge status={task.status} />
        <span>{task.priority} priority</span>
        <span>{agent === undefined ? "no agent" : <>agent <bdi>{oneLine(agent, 80)}</bdi></>}</span>
        {end !== undefined ? <span class={isExpired(task, now.value) ? "is-late" : "dim"}>lease ends <Time at={end} /></span> : null}
        <span class="dim">{plural(task.attempts ?? 0, "failed attempt")}</span>
        {card.tests ? <Mark kind={card.tests.failed > 0 ? "bad" : "good"}>{`${card.tests.passed} of ${card.tests.total} tests passed`}</Mark> : null}
        {card.verified ? <Seal verified={card.verified} /> : null}
        {card.guard ? <a href={tracePath(card.guard)}>guarded run is open</a> : null}
        {card.session ? <a href={sessionPath(card.session)}>session</a> : null}
        {task.traceId ? <a href={tracePath(task.traceId)}>trace</a> : null}
      </div>
      <Buttons model={model} task={task} onAsk={onAsk} />
    </header>
  );
}

/** What the last guarded run was found to be. */
function Seal({ verified }: { verified: Verified }) {
  const verdict = sealOf(verified.trace) ?? verified.verdict ?? verified.state;
  const kind = verdict === "pass" ? "good" : ["fail", "broken", "unproven"].includes(verdict) ? "bad" : "warn";
  const words = `${kind === "good" ? "verified" : "verification"}: ${oneLine(verdict, 60)}`;
  return <a class="seal" href={tracePath(verified.trace)}><Mark kind={kind}>{words}</Mark></a>;
}

function Buttons({ model, task, onAsk }: Props) {
  const state = model.actions.now.value;
  if (state.kind === "loading") return <p class="dim task-buttons" role="status">Asking what can be done…</p>;
  if (state.kind === "broken") {
    return (
      <p class="task-buttons" role="alert">What can be done is not known: {oneLine(state.error.title)}{" "}
        <button type="button" onClick={model.actions.retry}>Try again</button></p>
    );
  }
  const { approve: mayApprove, reject, retry: mayRetry, moves } = state.value;
  const isBusy = model.isBusy.value;
  const absent = [
    ...(mayApprove.allowed ? [] : [{ what: "Approve", why: mayApprove.why }]),
    ...(reject.allowed ? [] : [{ what: "Reject", why: reject.why }]),
    ...(mayRetry.allowed ? [] : [{ what: "Retry", why: mayRetry.why }]),
    ...moves.filter((move) => !move.allowed).map((move) => ({ what: `Move to ${move.to}`, why: move.why })),
  ];
  return (
    <div class="buttons task-buttons" aria-busy={state.value.rev < task.rev}>
      {mayApprove.allowed ? <button type="button" class="primary" disabled={isBusy} onClick={once(() => void approve(model, task, false))}>Approve</button> : null}
      {mayApprove.allowed && task.phase !== "READY_FOR_MERGE"
        ? <button type="button" disabled={isBusy} onClick={once(() => void approve(model, task, true))}>Approve all phases</button> : null}
      {reject.allowed ? <button type="button" class="danger" disabled={isBusy} onClick={() => onAsk("reject")}>Reject…</button> : null}
      {mayRetry.allowed ? <button type="button" disabled={isBusy} onClick={once(() => void retry(model))}>Retry</button> : null}
      {moves.some((move) => move.allowed) ? <button type="button" disabled={isBusy} onClick={() => onAsk("move")}>Move…</button> : null}
      {absent.length > 0 ? <More absent={absent} /> : null}
    </div>
  );
}

/** What is not possible now, and why. */
function More({ absent }: { absent: readonly { what: string; why: string | undefined }[] }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <div class="more-menu" onKeyDown={(event) => {
      if (event.key !== "Escape" || !isOpen) return;
      event.preventDefault();
      setOpen(false);
    }}>
      <button type="button" class="quiet" aria-expanded={isOpen} aria-controls="not-now" onClick={() => setOpen(!isOpen)}>More</button>
      {isOpen ? (
        <div class="more-list" id="not-now" role="region" aria-label="Not possible now" tabIndex={0}>
          <h2>Not possible now</h2>
          <dl class="facts">
            {absent.map(({ what, why }) => <div key={what}><dt>{what}</dt><dd>{oneLine(why ?? "it is not allowed", 300)}</dd></div>)}
          </dl>
        </div>
      ) : null}
    </div>
  );
}

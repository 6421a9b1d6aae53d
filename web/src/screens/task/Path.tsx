// The way of a task: through the phases, and through every place where it has been, with how long and why.

import type { Task } from "@baton/sdk";
import { useMemo } from "preact/hooks";
import { Badge } from "../../parts/Badge.js";
import { Time } from "../../parts/Time.js";
import { plural, span } from "../../state/format.js";
import { now } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import type { TaskModel } from "./state.js";
import { phaseName, staysOf, stepsOf, type Step } from "./story.js";
import { inPlainWords } from "./words.js";

const SHAPES = { ahead: "○", over: "–", been: "●", here: "◉", blocked: "■" } as const;
const SAID = { ahead: "not reached", over: "left out", been: "been there", here: "here now", blocked: "blocked here" } as const;
const STAYS_MAX = 200;

export function Path({ model, task }: { model: TaskModel; task: Task }) {
  const { events, isWhole } = model.story.value;
  const stays = useMemo(() => staysOf(events), [events]);
  const isOver = task.status === "done" || task.status === "cancelled";
  const end = isOver ? stays.at(-1)?.from ?? now.value : now.value;
  const before = typeof task["phaseBeforeBlock"] === "string" ? task["phaseBeforeBlock"] : undefined;
  const last = stays.at(-1);
  return (
    <section class="task-path" aria-label="Path">
      <ol class="phases">{stepsOf(stays, task.phase, before, end).map((step) => <Phase key={step.phase} step={step} />)}</ol>
      {last ? (
        <details>
          <summary>
            <span>{phrase(last.status)} {isOver || last.status === "deadletter" ? <Time at={last.from} /> : `for ${span(now.value - last.from)}`}</span>
            <span class="dim">
              {last.why === "" ? "" : `: ${oneLine(inPlainWords(last.why), 120)}`} · {plural(stays.length - 1, "move")}{isWhole ? "" : " so far"}
            </span>
          </summary>
          {stays.length > STAYS_MAX ? <p class="dim">The last {STAYS_MAX} of {stays.length}.</p> : null}
          <ol class="stays">
            {stays.slice(-STAYS_MAX).map((stay, at) => (
              <li key={at}>
                <Badge status={stay.status} />
                <span class="dim">{phaseName(stay.phase)}</span>
                <span>{stay.until === undefined ? (isOver ? "since" : `${span(now.value - stay.from)} so far`) : span(stay.until - stay.from)}</span>
                <span class="why"><bdi>{oneLine(inPlainWords(stay.why))}</bdi></span>
                <span class="dim"><bdi>{oneLine(stay.who, 80)}</bdi>, <Time at={stay.from} /></span>
              </li>
            ))}
          </ol>
        </details>
      ) : null}
    </section>
  );
}

const phrase = (status: string): string => {
  const words: { readonly [status: string]: string } = {
    backlog: "In the backlog", ready: "Ready", "in-progress": "In progress", blocked: "Blocked", review: "In review", done: "Done",
    cancelled: "Cancelled", deadletter: "Given up",
  };
  return words[status] ?? status;
};

function Phase({ step }: { step: Step }) {
  const times = step.times > 1 ? `, ${step.times} times` : "";
  return (
    <li class={`phase is-${step.kind}`} aria-current={step.kind === "here" || step.kind === "blocked" ? "step" : undefined}>
      <span class="shape" aria-hidden="true">{SHAPES[step.kind]}</span>
      <span class="phase-name">{phaseName(step.phase)}</span>
      <span class="phase-time">{step.times > 0 && step.phase !== "COMPLETED" ? `${span(step.ms)}${times}` : SAID[step.kind]}</span>
    </li>
  );
}

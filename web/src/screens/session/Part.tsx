// One part of a turn: words, thoughts, a call of a tool, a hook. Each is drawn once, and again only when it changes.

import { useSignal, type Signal } from "@preact/signals";
import type { HookRun, ToolCallPart, ToolRun, TurnPart } from "@baton/sdk";
import { Markdown } from "../../parts/Markdown.js";
import { Text } from "../../parts/Text.js";
import { span } from "../../state/format.js";
import { now } from "../../state/store.js";
import { oneLine, plain, shown } from "../../state/text.js";
import type { Answered } from "./book.js";
import { memo } from "./memo.js";
import { Sign } from "./Sign.js";
import type { Kind } from "./words.js";

type Words = Exclude<TurnPart, ToolCallPart>;

export const Said = memo(({ part, isFormatted }: { part: Words; isFormatted: boolean }) => {
  switch (part.kind) {
    case "status":
      return <p class="said is-status dim"><bdi>{oneLine(part.message, 400)}</bdi></p>;
    case "thinking":
      return (
        <Folded name="thought" row={<><span class="dim">thinking</span> <span class="fold-text dim"><bdi>{oneLine(part.text, 120)}</bdi></span></>}>
          {() => <div class="said dim" dir="auto">{plain(part.text)}</div>}
        </Folded>
      );
    case "text":
      if (isFormatted && part.role !== "user") return <div class="said is-formatted"><Markdown text={part.text} /></div>;
      return <div class={`said ${part.role === "user" ? "is-user" : ""}`} style={roomFor(part.text)} dir="auto">{plain(part.text)}</div>;
  }
});

const STEPS_MAX = 100;
const STEP_SIGNS: { readonly [status: string]: string } = { completed: "✓", in_progress: "▸" };

/** What the agent means to do, and how far it is. */
export const Plan = memo(({ plan }: { plan: unknown }) => {
  const steps = Array.isArray(plan) ? plan.slice(0, STEPS_MAX).map((step) => Object(step) as { content?: unknown; status?: unknown }) : [];
  if (steps.length === 0) return null;
  return (
    <ol class="plan" aria-label="Plan">
      {steps.map(({ content, status }, at) => (
        <li key={at} class={status === "completed" ? "dim" : ""}>
          <span aria-hidden="true">{STEP_SIGNS[String(status)] ?? "·"}</span> <bdi>{oneLine(shown(content), 400)}</bdi> <span class="dim">{oneLine(shown(status), 40).replaceAll("_", " ")}</span>
        </li>
      ))}
    </ol>
  );
});

/** About how high a long text is: so much is left for it until it is in sight, and only then it is laid out. */
function roomFor(text: string): { containIntrinsicBlockSize: string } | undefined {
  if (text.length < 1000) return undefined;
  const lines = text.split("\n").reduce((sum, line) => sum + 1 + Math.floor(line.length / 110), 0);
  return { containIntrinsicBlockSize: `auto ${lines * 20}px` };
}

const STATUSES: { readonly [status: string]: readonly [Kind, string] } = {
  queued: ["off", "queued"], pending: ["off", "asked for"], running: ["busy", "running"], succeeded: ["good", "done"], completed: ["good", "done"],
  failed: ["bad", "failed"], canceled: ["off", "canceled"],
};

export function StatusMark({ status, hasBadNews = false }: { status: string; hasBadNews?: boolean }) {
  if (hasBadNews && status === "succeeded") return <Sign kind="warn">bad news</Sign>;
  const [kind, word] = STATUSES[status] ?? ["off", status];
  return <Sign kind={kind}>{word}</Sign>;
}

/** How long a run took, or takes. */
export function Took({ run }: { run: { startedAtMs: number; finishedAtMs?: number } }) {
  if (run.finishedAtMs !== undefined) return <span class="took">{span(run.finishedAtMs - run.startedAtMs)}</span>;
  return <span class="took is-running">{span(Math.max(0, Math.floor((now.value - run.startedAtMs) / 1000) * 1000))}</span>;
}

interface CallProps {
  call: ToolCallPart | undefined;
  run: ToolRun | undefined;
  answered: Answered | undefined;
  marked: Signal<string | undefined>;
}

/** A call of a tool as a row that opens. */
export const Call = memo(({ call, run, answered, marked }: CallProps) => {
  const name = run?.toolName ?? call?.toolName ?? "tool";
  const error = run?.error ?? (call?.error ? shown(call.error) : undefined);
  const status = run?.status ?? (call?.status === "completed" && error ? "failed" : call?.status ?? "pending");
  const row = (
    <>
      <code class="fold-name"><bdi>{oneLine(name, 60)}</bdi></code>
      <span class="fold-text dim"><bdi>{call ? oneLine(inputOf(call.arguments), 160) : ""}</bdi></span>
      {run && run.attempt > 1 ? <span class="dim">attempt {run.attempt}</span> : null}
      {answered ? <span class="dim">{answered.answer === "allow" ? "allowed" : answered.answer === "deny" ? "denied" : oneLine(answered.answer, 40)} by {oneLine(answered.by, 40)}</span> : null}
      <StatusMark status={status} hasBadNews={run?.error !== undefined} />
      {run ? <Took run={run} /> : null}
    </>
  );
  return (
    <Folded name="call" row={row} runId={run?.runId} marked={marked} isWrong={status === "failed"}>
      {() => (
        <div class="call-body">
          {call ? <><h4>Input</h4><Text text={shown(call.arguments) || "none"} /></> : <p class="dim">What it was given is not in this page.</p>}
          {error ? <><h4>Error</h4><Text text={error} /></> : null}
          {call?.status === "completed" ? <><h4>Output</h4><Text text={shown(call.output) || "none"} /></> : null}
        </div>
      )}
    </Folded>
  );
});

/** A hook as a row that opens. */
export const Hook = memo(({ run, marked }: { run: HookRun; marked: Signal<string | undefined> }) => {
  const row = (
    <>
      <span class="dim">hook</span><code class="fold-name"><bdi>{oneLine(run.hookName, 60)}</bdi></code>
      <span class="fold-text dim"><bdi>{oneLine(run.error ?? run.output ?? "", 160)}</bdi></span>
      {run.attempt > 1 ? <span class="dim">attempt {run.attempt}</span> : null}
      <StatusMark status={run.status} /><Took run={run} />
    </>
  );
  return (
    <Folded name="call" row={row} runId={run.runId} marked={marked} isWrong={run.status === "failed"}>
      {() => <div class="call-body">{run.error ? <Text text={run.error} /> : null}<Text text={run.output ?? "It printed nothing."} /></div>}
    </Folded>
  );
});

/** The value that says most of what a tool was given. */
function inputOf(value: unknown): string {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return shown(value);
  const fields = value as { [name: string]: unknown };
  const best = ["command", "path", "file_path", "pattern", "glob", "url", "query"].map((name) => fields[name]).find((found) => found !== undefined);
  return Array.isArray(best) ? best.map(String).join(" ") : best === undefined ? shown(value) : shown(best);
}

interface FoldedProps {
  name: string;
  row: preact.ComponentChildren;
  children: () => preact.ComponentChildren;
  runId?: string | undefined;
  marked?: Signal<string | undefined>;
  isWrong?: boolean;
}

/** A row that opens; what is inside is made when it is opened. */
function Folded({ name, row, children, runId, marked, isWrong = false }: FoldedProps) {
  const isOpen = useSignal(false);
  const isMarked = runId !== undefined && marked?.value === runId;
  const point = (to: string | undefined) => () => { if (marked && runId !== undefined) marked.value = to; };
  return (
    <details class={`fold is-${name} ${isMarked ? "is-marked" : ""} ${isWrong ? "is-wrong" : ""}`} data-run={runId}
      onToggle={(event) => { isOpen.value = event.currentTarget.open; }}
      onPointerEnter={point(runId)} onPointerLeave={point(undefined)} onFocusCapture={point(runId)} onBlurCapture={point(undefined)}>
      <summary>{row}</summary>
      {isOpen.value ? children() : null}
    </details>
  );
}

// The attempts at a task: who, when, how long, and how each ended.

import type { TerminationInfo, Task } from "@baton/sdk";
import { sessionPath, tracePath } from "../../router.js";
import { Mark } from "../../parts/Badge.js";
import { Id } from "../../parts/Id.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { StderrText } from "../../parts/Stderr.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { bytes, span } from "../../state/format.js";
import { now } from "../../state/store.js";
import { oneLine, plain } from "../../state/text.js";
import type { TaskModel } from "./state.js";
import { attemptsOf, type Attempt } from "./story.js";
import { endInWords, inPlainWords } from "./words.js";

export function Runs({ model, task }: { model: TaskModel; task: Task }) {
  const state = model.runs.now.value;
  if (state.kind === "loading") return <Loading what="the attempts" />;
  if (state.kind === "broken") return <Broken what="The attempts" error={state.error} retry={model.runs.retry} />;
  const attempts = attemptsOf(state.value, model.story.value.events);
  if (attempts.length === 0) {
    return <Empty title="Nobody has worked on it yet"><p>An attempt begins when an agent claims the task: <code>baton run --task {task.id}</code></p></Empty>;
  }
  return (
    <section aria-label="Attempts">
      <ol class="runs" reversed>{attempts.map((attempt, at) => <Run key={attempt.id} attempt={attempt} task={task} isFirst={at === 0} />)}</ol>
    </section>
  );
}

/** How it ended, in a few words, and whether that is good. */
function verdictOf(attempt: Attempt): { kind: "good" | "warn" | "bad" | "off"; text: string } {
  const { report, failed, termination: end } = attempt;
  if (failed !== undefined) return { kind: "bad", text: "failed" };
  if (report) {
    const kind = report.outcome === "done" ? "good" : report.outcome === "blocked" ? "bad" : "warn";
    return { kind, text: `reported ${report.outcome.replaceAll("_", " ")}` };
  }
  if (end?.reason === "error") return { kind: "bad", text: "failed" };
  if (attempt.endedAt === undefined) return { kind: "off", text: "under way" };
  if (attempt.ended?.by === "lease.expired") return { kind: "bad", text: "lost its lease" };
  return { kind: "warn", text: "ended without a report" };
}

function Run({ attempt, task, isFirst }: { attempt: Attempt; task: Task; isFirst: boolean }) {
  const { report, failed, termination: end } = attempt;
  const verdict = verdictOf(attempt);
  const began = Date.parse(attempt.startedAt);
  const until = attempt.endedAt === undefined ? now.value : Date.parse(attempt.endedAt);
  const why = failed ?? end?.message ?? attempt.ended?.reason;
  return (
    <li class="panel run">
      <div class="run-line">
        <strong>Attempt {attempt.number}</strong>
        <Mark kind={verdict.kind}>{verdict.text}</Mark>
        <span><bdi>{oneLine(attempt.agent ?? "an agent", 80)}</bdi></span>
        <span class="dim"><Time at={began} />, {attempt.endedAt === undefined ? "for" : "took"} {span(until - began)}</span>
        {report?.tests ? <Mark kind={report.tests.failed > 0 ? "bad" : "good"}>{`${report.tests.passed} of ${report.tests.total} tests passed`}</Mark> : null}
        <span class="grows" />
        {attempt.session ? <a href={sessionPath(attempt.session)}>session</a> : null}
        {task.traceId ? <a href={tracePath(task.traceId)}>trace</a> : null}
        <Id id={attempt.id} />
      </div>
      {why !== undefined && why !== "" ? <p class="run-why" dir="auto">{oneLine(inPlainWords(why), 500)}</p> : null}
      {end ? <End end={end} isOpen={isFirst && end.reason === "error"} /> : null}
      {report ? (
        <dl class="facts">
          {report.notes !== "" ? (
            <><dt>Notes</dt><dd dir="auto">{report.notes.length > 600 ? <Text text={report.notes} max={5000} /> : plain(report.notes)}</dd></>
          ) : null}
          <Several name="Deliverables" texts={report.deliverables} />
          <Several name="Blockers" texts={report.blockers} />
          {report.summary !== "" ? <><dt>Summary</dt><dd><code>{oneLine(report.summary, 300)}</code></dd></> : null}
        </dl>
      ) : null}
    </li>
  );
}

function Several({ name, texts }: { name: string; texts: readonly string[] }) {
  if (texts.length === 0) return null;
  return <><dt>{name}</dt><dd><ul class="plain-list">{texts.map((one, at) => <li key={at}>{oneLine(one, 300)}</li>)}</ul></dd></>;
}

function End({ end, isOpen }: { end: TerminationInfo; isOpen: boolean }) {
  const { stderr } = end;
  const facts: readonly (readonly [string, string])[] = [
    ["Cause", end.cause ?? ""], ["Last tool", oneLine(end.last_tool ?? "", 120)], ["Limit ends", end.resets_at ?? ""],
    ["Ran for", end.duration_ms === undefined ? "" : span(end.duration_ms)], ["Processor", end.cpu_ms === undefined ? "" : span(end.cpu_ms)],
    ["Memory", end.max_rss_bytes === undefined ? "" : bytes(end.max_rss_bytes)],
  ];
  return (
    <details class="run-end" open={isOpen}>
      <summary>Its process {endInWords(end)}{end.exit_code !== undefined && end.reason !== "error" ? ` (code ${end.exit_code})` : ""}</summary>
      <dl class="facts">
        {end.exit_code !== undefined ? <><dt>Exit code</dt><dd>{end.exit_code}</dd></> : null}
        {end.signal ? <><dt>Signal</dt><dd>{end.signal.name} ({end.signal.number})</dd></> : null}
        {facts.filter(([, value]) => value !== "").map(([name, value]) => <><dt key={name}>{name}</dt><dd>{value}</dd></>)}
      </dl>
      {stderr ? <StderrText stderr={stderr} /> : null}
    </details>
  );
}

// Beside the transcript: the strip, and tabs with the tools, the hooks, the facts, the wire, standard error, and what nobody knew.

import { useComputed, useSignal } from "@preact/signals";
import type { HookRun, Session, ToolRun } from "@baton/sdk";
import { taskPath, tracePath } from "../../router.js";
import { Id } from "../../parts/Id.js";
import { StderrText } from "../../parts/Stderr.js";
import { Tabs } from "../../parts/Tabs.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { oneLine, shown } from "../../state/text.js";
import { Frames } from "./Frames.js";
import { StatusMark, Took } from "./Part.js";
import { retryable } from "./Pinned.js";
import { showRow, Strip } from "./Strip.js";
import type { SessionFile } from "./state.js";

const ROWS_MAX = 200;

export function Side({ file }: { file: SessionFile }) {
  const tab = useSignal("tools");
  const tools = useComputed(() => file.book.value.view.toolRuns).value;
  const hooks = useComputed(() => file.book.value.view.hookRuns).value;
  const unknown = useComputed(() => file.book.value.view.unknown).value;
  const tabs = [
    { id: "tools", label: `Tools ${tools.length || ""}` }, { id: "hooks", label: `Hooks ${hooks.length || ""}` }, { id: "facts", label: "Facts" },
    { id: "wire", label: "Wire" }, { id: "stderr", label: "Stderr" }, { id: "raw", label: `Raw ${unknown.length || ""}` },
  ];
  return (
    <aside class="side" aria-label="States, tools and facts">
      <section class="panel"><h2>States</h2><Strip file={file} /></section>
      <section class="panel">
        <Tabs label="About the session" tabs={tabs} current={tab.value} onChoose={(id) => { tab.value = id; }} />
        <div id="panel" role="tabpanel" aria-labelledby={`tab-${tab.value}`} tabIndex={0}>
          {tab.value === "tools" ? <Runs kind="tool" runs={tools} file={file} /> : null}
          {tab.value === "hooks" ? <Runs kind="hook" runs={hooks} file={file} /> : null}
          {tab.value === "facts" ? <Facts file={file} /> : null}
          {tab.value === "wire" ? <Frames file={file} /> : null}
          {tab.value === "stderr" ? <Stderr file={file} /> : null}
          {tab.value === "raw" ? <Raw file={file} /> : null}
        </div>
      </section>
    </aside>
  );
}

function Runs({ kind, runs, file }: { kind: "tool" | "hook"; runs: readonly (ToolRun | HookRun)[]; file: SessionFile }) {
  const again = useComputed(() => retryable(file.book.value.view)?.runId).value;
  if (runs.length === 0) return <p class="dim">{kind === "tool" ? "No tool has been called." : "No hook has run. They are named in hooks.json of the data directory."}</p>;
  const order = runs.slice(-ROWS_MAX).toReversed().sort((a, b) => Number(b.status === "failed") - Number(a.status === "failed"));
  return (
    <>
      <ul class="run-list">
        {order.map((run) => {
          const name = "toolName" in run ? run.toolName : run.hookName;
          return (
            <li key={run.runId} class={file.marked.value === run.runId ? "is-marked" : ""}
              onPointerEnter={() => { file.marked.value = run.runId; }} onPointerLeave={() => { file.marked.value = undefined; }}>
              <button type="button" class="quiet run-name" onClick={() => showRow(run.runId)}><code><bdi>{oneLine(name, 60)}</bdi></code></button>
              <StatusMark status={run.status} hasBadNews={run.error !== undefined} />
              <Took run={run} />
              <span class="dim">{run.attempt > 1 ? `attempt ${run.attempt}` : ""}{"mutating" in run && run.mutating ? " changes things" : ""}</span>
              {run.runId === again ? <button type="button" onClick={() => void file.retry(kind, run.runId)}>Retry</button> : null}
              {run.error ? <p class="run-error"><bdi>{oneLine(run.error, 400)}</bdi></p> : null}
              {"output" in run && run.output ? <Text text={run.output} max={2000} /> : null}
            </li>
          );
        })}
      </ul>
      {runs.length > ROWS_MAX ? <p class="dim">and {runs.length - ROWS_MAX} before these</p> : null}
    </>
  );
}

function Facts({ file }: { file: SessionFile }) {
  const came = file.session.value;
  const turns = useComputed(() => file.book.value.view.turns).value;
  if (came.kind === "broken") return <p class="dim">The facts cannot be had: {came.error.title}</p>;
  if (came.kind === "loading") return <p class="dim">Loading…</p>;
  const session = came.value;
  const usage = turns.findLast((turn) => turn.usage !== undefined && turn.usage !== null)?.usage;
  return (
    <dl class="facts">
      <dt>session</dt><dd><Id id={session.id} /></dd>
      <dt>agent</dt><dd>{session.agent}</dd>
      <dt>harness</dt><dd>{session.harness}</dd>
      <Fact session={session} name="program" /><Fact session={session} name="mode" />
      <Fact session={session} name="cwd" label="directory" />
      <Fact session={session} name="wall" />
      <dt>task</dt><dd>{session.taskId ? <a href={taskPath(session.taskId)}>{session.taskId}</a> : "none"}</dd>
      {typeof session["trace"] === "string" ? <><dt>trace</dt><dd><a href={tracePath(session["trace"])}>{session["trace"]}</a></dd></> : null}
      <Fact session={session} name="pid" label="process" />
      <dt>started</dt><dd><Time at={String(session["startedAt"] ?? "")} /></dd>
      {session["endedAt"] ? <><dt>ended</dt><dd><Time at={String(session["endedAt"])} /></dd></> : null}
      {typeof session["resumes"] === "string" ? <><dt>goes on with</dt><dd><a href={`/sessions/${encodeURIComponent(session["resumes"])}`}>{session["resumes"]}</a></dd></> : null}
      <dt>usage</dt><dd>{usage === undefined ? "not told" : <Usage usage={usage} />}</dd>
    </dl>
  );
}

function Fact({ session, name, label = name }: { session: Session; name: string; label?: string }) {
  const value = session[name];
  if (value === undefined || value === null || value === "") return null;
  return <><dt>{label}</dt><dd><bdi>{oneLine(shown(value), 1000)}</bdi></dd></>;
}

/** As the agent has it, of the last turn that told it. */
function Usage({ usage }: { usage: unknown }) {
  if (typeof usage !== "object" || usage === null) return <>{oneLine(shown(usage))}</>;
  return <>{Object.entries(usage).slice(0, 20).map(([name, value]) => <div key={name}>{oneLine(name, 60)}: {oneLine(shown(value), 100)}</div>)}</>;
}

function Stderr({ file }: { file: SessionFile }) {
  const info = useComputed(() => file.book.value.view.terminationInfo).value;
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  const where = <p class="dim">Where it has a process, the whole of it is in <code>sessions/{file.id}/stderr.log</code> in the data directory.</p>;
  if (!info?.stderr) {
    // A session that did not fail says nothing of it, whatever was written.
    const why = !isEnded ? "What the agent writes on its standard error is told here if the session fails."
      : !info ? "Nobody saw its end: what was on its standard error was told to nobody."
      : info.reason === "error" ? "It failed, and nothing that was written on its standard error was told with that."
        : "It did not fail: standard error is told here only of a session that did.";
    return <><p class="dim">{why}</p>{where}</>;
  }
  return <><StderrText stderr={info.stderr} />{where}</>;
}

function Raw({ file }: { file: SessionFile }) {
  const unknown = useComputed(() => file.book.value.view.unknown).value;
  if (unknown.length === 0) return <p class="dim">Everything that came was understood.</p>;
  return (
    <>
      <p class="dim">What this page does not know, as it came; the last of it.</p>
      {unknown.slice(-50).toReversed().map((event) => <div key={event.at}><h4>{event.at} <code>{oneLine(event.channel, 60)}</code></h4><Text text={shown(event.event)} max={2000} /></div>)}
    </>
  );
}

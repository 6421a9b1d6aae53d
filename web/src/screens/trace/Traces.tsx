// Every trace; and a place to drop a bundle, of whatever ledger, to have it verified.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./trace.css";
import { Mark } from "../../parts/Badge.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Windowed } from "../../parts/Windowed.js";
import { ask, go, query, tracePath } from "../../router.js";
import { bytes, plural, shortHash, shortId } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { oneLine } from "../../state/text.js";
import { Checks } from "./Checks.js";
import { useDrop } from "./drop.js";
import { aboutOf, dropped, follow, found, lines, load, lookAgain, unlisted, unread, verifyFile, whyOf, type Dropped, type TraceLine } from "./list.js";
import { Banner } from "./Verdict.js";

const ROW_HEIGHT = 40;

export function TracesScreen() {
  useEffect(follow, []);
  const isOver = useDrop();
  const state = lines.value;
  const chooser = useRef<HTMLInputElement>(null);
  return (
    <div class="screen traces">
      <header class="head">
        <h1>Traces</h1>
        {state.kind === "ready" ? <span class="dim">{plural(state.value.length, "trace")}</span> : null}
        <span class="grows" />
        <button type="button" onClick={() => chooser.current?.click()}>Verify a bundle…</button>
        <input ref={chooser} type="file" class="trace-chooser" aria-label="A bundle to verify" tabIndex={-1} onChange={(event) => {
          const file = event.currentTarget.files?.[0];
          if (file) void verifyFile(file);
          event.currentTarget.value = "";
        }} />
      </header>
      {dropped.value ? <DroppedBundle bundle={dropped.value} /> : null}
      {state.kind === "loading" ? <Loading what="the traces" /> : state.kind === "broken" ? <Broken what="The traces" error={state.error} retry={() => void load()} /> : <List all={state.value} />}
      {isOver ? <DropHint /> : null}
    </div>
  );
}

/** Over whatever screen of traces there is, as long as a file is held over it. */
export const DropHint = () => <div class="trace-drop" aria-hidden="true">Drop a bundle to verify it</div>;

function DroppedBundle({ bundle }: { bundle: Dropped }) {
  const { report } = bundle;
  const state = lines.value;
  const trace = report.kind === "ready" ? report.value.subject.trace : undefined;
  const isHere = trace !== undefined && state.kind === "ready" && state.value.some((line) => line.trace === trace && line.head === (report.kind === "ready" ? report.value.subject.head : ""));
  return (
    <section class="panel trace-dropped" aria-label="The bundle">
      <header class="head">
        <h2><bdi>{oneLine(bundle.name, 120)}</bdi></h2><span class="dim">{bytes(bundle.bytes)}</span><span class="grows" />
        <button type="button" class="quiet" aria-label="Put the bundle away" onClick={() => { dropped.value = undefined; }}>×</button>
      </header>
      {report.kind === "loading" ? <Loading what="its report" /> : report.kind === "broken" ? <Broken what="Its report" error={report.error} /> : (
        <>
          <Banner report={report.value}>
            {trace === undefined ? null : <p class="dim">Trace {oneLine(trace, 64)} of {oneLine(report.value.subject.origin ?? "an unknown ledger", 128)}. {isHere ? <a href={tracePath(trace)}>It is in this ledger</a> : null}</p>}
          </Banner>
          <Checks report={report.value} onShow={isHere ? (finding) => go(tracePath(trace, finding.event ?? String(finding.line))) : undefined} />
        </>
      )}
    </section>
  );
}

function List({ all }: { all: readonly TraceLine[] }) {
  const sought = query.value.get("q") ?? "";
  const shown = useMemo(() => found(all, sought), [all, sought]);
  const [at, setAt] = useState<number | undefined>(undefined);
  const field = useRef<HTMLInputElement>(null);
  const move = (by: number) => setAt((before) => Math.max(0, Math.min(shown.length - 1, (before ?? -1) + by)));
  useKeys("Traces", [
    { keys: "j", does: "the next trace", run: () => move(1) },
    { keys: "k", does: "the trace before", run: () => move(-1) },
    { keys: "Enter", does: "open it", run: () => { const line = shown[at ?? 0]; if (line) go(tracePath(line.trace)); } },
    { keys: "/", does: "search", run: () => field.current?.focus() },
  ]);
  const nothing = all.length <= 1;
  return (
    <>
      <div class="trace-search"><input ref={field} type="search" aria-label="Search traces" placeholder="Search: id, title, task, open, closed ( / )" value={sought}
        onInput={(event) => { ask({ q: event.currentTarget.value }); setAt(undefined); }} /></div>
      {unlisted.value === 0 ? null : (
        <p class="text-bad" role="alert">The list ends at a trace that the server cannot read: {plural(unlisted.value, "event")} more in others. Try: <code>baton verify</code></p>
      )}
      {unread.value.size === 0 ? null : <p class="text-bad">{plural(unread.value.size, "trace")} could not be read. <button type="button" onClick={lookAgain}>Try again</button></p>}
      {nothing ? <Empty title="No work was recorded yet"><p>Every task has a trace of its own: <code>baton task new "what is to be done" --ready</code></p></Empty> : null}
      {shown.length === 0 ? <Empty title="No trace has these words" /> : (
        <Windowed class="trace-list" label="Traces" count={shown.length} rowHeight={ROW_HEIGHT} focus={at} row={(index) => {
          const line = shown[index];
          return line ? <Line line={line} isMarked={index === at} /> : null;
        }} />
      )}
    </>
  );
}

function Line({ line, isMarked }: { line: TraceLine; isMarked: boolean }) {
  const about = aboutOf(line.trace);
  const why = whyOf(line.trace);
  return (
    <a class={`trace-line ${isMarked ? "is-selected" : ""}`} href={tracePath(line.trace)} aria-current={isMarked ? "true" : undefined}>
      <span class="trace-kind">{about?.kind ?? (why === undefined ? "…" : "unreadable")}</span>
      <span class={`trace-title ${why === undefined ? "" : "text-bad"}`}><bdi>{about ? oneLine(about.title) || "without a title" : ""}{about && why ? ": " : ""}{oneLine(why ?? "")}</bdi></span>
      <span class="dim trace-task">{about?.task === undefined ? "" : oneLine(about.task, 40)}</span>
      <code class="trace-id" title={line.trace}>{shortId(line.trace)}</code>
      <span class="trace-events">{plural(line.events, "event")}</span>
      <span class="trace-state">{why !== undefined || line.isLost ? <Mark kind="bad">{line.isLost ? "not listed" : "broken"}</Mark> : <Mark kind="off">{line.closed ? "closed" : "open"}</Mark>}</span>
      <code class="trace-head dim">{shortHash(line.head)}</code>
    </a>
  );
}

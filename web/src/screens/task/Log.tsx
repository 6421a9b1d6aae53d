// The work log: everything that happened to the task, in order, the newest last; and a line of one's own.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { sessionPath, tracePath } from "../../router.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { plural } from "../../state/format.js";
import { oneLine, plain } from "../../state/text.js";
import { addLine } from "./deeds.js";
import type { TaskModel } from "./state.js";
import { entriesOf, type Entry } from "./words.js";

const SHOWN = 200;
const TITLE_MAX = 300;
const DETAIL_MAX = 240;

export function Log({ model }: { model: TaskModel }) {
  const { events, isWhole, isClosed, error } = model.story.value;
  const [limit, setLimit] = useState(SHOWN);
  const entries = useMemo(() => entriesOf(events), [events]);
  const end = useFollowedEnd(entries.length);
  if (error && entries.length === 0) return <Broken what="The work log" error={error} retry={() => void model.read()} />;
  if (entries.length === 0 && !isWhole) return <Loading what="the work log" />;
  const first = Math.max(0, entries.length - limit);
  return (
    <section aria-label="Work log">
      {entries.length === 0 ? <Empty title="Nothing happened yet" /> : null}
      {first > 0 ? (
        <button type="button" class="more" onClick={() => setLimit(limit + SHOWN * 5)}>{plural(first, "earlier entry", "earlier entries")}: show</button>
      ) : null}
      <ol class="log">{entries.slice(first).map((entry) => <Line key={entry.key} entry={entry} />)}</ol>
      {isWhole ? null : <p class="dim" role="status">More is being read…</p>}
      {error && entries.length > 0 ? <p class="warned">What came after this could not be read: {oneLine(error.title)}</p> : null}
      {isClosed ? <p class="dim">The trace is closed: what is done to the task from now on is recorded in the ledger's own.</p> : null}
      <form class="log-add" onSubmit={(event) => { event.preventDefault(); void addLine(model); }}>
        <input aria-label="A line for the work log" placeholder="Add a line to the work log" maxLength={10_000} value={model.line.value}
          onInput={(event) => { model.line.value = event.currentTarget.value; }} />
        <button type="submit" disabled={model.isBusy.value || model.line.value.trim() === ""}>Add</button>
        <button type="button" class="quiet" aria-label="To the newest" onClick={() => end.current?.scrollIntoView({ block: "end" })}>↓</button>
      </form>
      <div ref={end} />
    </section>
  );
}

/** The end stays in sight where it is in sight when something is added. */
function useFollowedEnd(count: number) {
  const end = useRef<HTMLDivElement>(null);
  const isSeen = useRef(false);
  useEffect(() => {
    if (!end.current) return;
    const watcher = new IntersectionObserver(([entry]) => { isSeen.current = entry?.isIntersecting ?? false; });
    watcher.observe(end.current);
    return () => watcher.disconnect();
  }, [count > 0]);
  useLayoutEffect(() => {
    if (isSeen.current) end.current?.scrollIntoView({ block: "end" });
  }, [count]);
  return end;
}

const SHAPES = { plain: "·", good: "✓", warn: "!", bad: "✕" } as const;

function Line({ entry }: { entry: Entry }) {
  const isLong = entry.title.length > TITLE_MAX;
  const isShort = entry.detail.length <= DETAIL_MAX;
  return (
    <li class={`entry is-${entry.tone}`}>
      <span class="entry-sign" aria-hidden="true">{SHAPES[entry.tone]}</span>
      <div class="entry-body">
        <p class="entry-title"><bdi>{oneLine(entry.title, TITLE_MAX)}</bdi></p>
        {entry.detail !== "" && isShort ? <p class="entry-detail" dir="auto">{plain(entry.detail)}</p> : null}
        {isLong || !isShort ? (
          <details><summary>All of it</summary><Text text={isLong ? `${entry.title}\n\n${entry.detail}` : entry.detail} max={5000} /></details>
        ) : null}
      </div>
      <span class="entry-who dim">
        <span><bdi>{oneLine(entry.who, 80)}</bdi>{entry.isPerson ? ", a person" : ""}</span>
        <Time at={entry.at} />
        {entry.session ? <a href={sessionPath(entry.session)}>session</a> : null}
        {entry.trace ? <a href={tracePath(entry.trace)}>trace</a> : null}
      </span>
    </li>
  );
}

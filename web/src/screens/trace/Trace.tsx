// A trace and whether it holds: the verdict, the chain, the story of a guarded run, the checks, and one record at a time.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import "./trace.css";
import { Mark } from "../../parts/Badge.js";
import { copy, Id } from "../../parts/Id.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Tabs } from "../../parts/Tabs.js";
import { ask, query, taskPath } from "../../router.js";
import { damage } from "../../state/damage.js";
import { inWords } from "../../state/failure.js";
import { plural } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { oneLine } from "../../state/text.js";
import { Chain, itemsOf } from "./Chain.js";
import { Checks } from "./Checks.js";
import { useDrop } from "./drop.js";
import { canHash, type Finding, type Row, type TraceRecord } from "./record.js";
import { RecordPane } from "./RecordPane.js";
import { useTrace, type TraceModel } from "./state.js";
import { isRun } from "./steps.js";
import { Story } from "./Story.js";
import { DropHint } from "./Traces.js";
import { Verdict } from "./Verdict.js";

/** How long moving rests before the address says where. */
const REST_MS = 200;

export function TraceScreen({ id, event }: { id: string; event: string | undefined }) {
  const isOver = useDrop();
  return <><Read id={id} event={event} />{isOver ? <DropHint /> : null}</>;
}

function Read({ id, event }: { id: string; event: string | undefined }) {
  const model = useTrace(id);
  if (model.broken.value && model.rows.value.length === 0) return <Broken what="This trace" error={model.broken.value} retry={() => void model.read()} />;
  if (!model.isRead.value && model.rows.value.length === 0) return <Loading what="the trace" />;
  return <Whole model={model} event={event} />;
}

function recordsOf(rows: readonly Row[]): TraceRecord[] {
  return rows.flatMap((row) => (row.record ? [row.record] : []));
}

function Whole({ model, event }: { model: TraceModel; event: string | undefined }) {
  const rows = model.rows.value;
  const records = useMemo(() => recordsOf(rows), [rows]);
  const isGuarded = useMemo(() => isRun(records), [records]);
  const [selected, select, current] = useSelected(model, event);
  const [isFolded, setFolded] = useState(false);
  const [open, setOpen] = useState<ReadonlySet<number>>(new Set());
  const items = useMemo(() => itemsOf(rows, isFolded, open), [rows, isFolded, open]);
  const asked = query.value.get("tab");
  const tab = asked === "checks" || asked === "chain" || (asked === "story" && isGuarded) ? asked : isGuarded && event === undefined ? "story" : "chain";
  const choose = (next: string) => ask({ tab: next });
  const show = (seq: number) => {
    select(seq);
    if (tab !== "chain") ask({ tab: "chain" });
  };
  const showFinding = (finding: Finding) => {
    const seq = model.placeOf(finding);
    if (seq !== undefined) show(seq);
  };
  const command = `baton verify ${model.id}`;
  const move = (by: number) => {
    if (rows.length === 0) return;
    if (tab !== "chain") choose("chain");
    // Keys may come faster than the page is drawn.
    const here = current.current;
    const at = items.findIndex((item) => here !== undefined && here - 1 >= item.at && here - 1 < item.at + item.count);
    const next = items[at < 0 ? 0 : Math.max(0, Math.min(items.length - 1, at + by))];
    if (next) select(next.at + 1);
  };
  useKeys("This trace", [
    { keys: "j", does: "the next record", run: () => move(1) },
    { keys: "k", does: "the record before", run: () => move(-1) },
    { keys: "Enter", does: "read the record", run: () => openRecord(current.current ?? 1, show) },
    { keys: "v", does: "verify", run: () => void model.verify() },
    { keys: "y", does: "copy the command that verifies it", run: () => void copy(command, command) },
    { keys: "f", does: "fold by turn, or unfold", run: () => setFolded(!isFolded) },
  ]);
  const tabs = [{ id: "chain", label: "Chain" }, ...(isGuarded ? [{ id: "story", label: "Story" }] : []), { id: "checks", label: "Checks" }];
  const report = model.report;
  return (
    <div class="screen trace">
      <Head model={model} first={records[0]} command={command} />
      <Verdict model={model} />
      <Tabs label="Parts of the trace" tabs={tabs} current={tab} onChoose={choose} />
      <div id="panel" role="tabpanel" aria-labelledby={`tab-${tab}`} class={`trace-parts is-${tab}`}>
        {tab === "story" ? <Story model={model} records={records} onShow={show} /> : null}
        {tab === "checks" ? report ? <div class="panel"><Checks report={report} onShow={showFinding} /></div> : <Empty title="It was not verified yet" /> : null}
        {tab === "chain" ? (
          <>
            <div class="chain-side">
              <Progress model={model} isFolded={isFolded} onFold={() => setFolded(!isFolded)} />
              {rows.length === 0 ? <Empty title="There is nothing in this trace" />
                : <Chain model={model} items={items} selected={selected} onSelect={select} onUnfold={(at) => setOpen(new Set([...open, at]))} />}
            </div>
            {selected === undefined ? <p class="dim chain-hint">Choose a record to see all of it.</p>
              : <RecordPane model={model} seq={selected} onSelect={select} onClose={() => select(undefined)} />}
          </>
        ) : null}
      </div>
    </div>
  );
}

function openRecord(seq: number, show: (seq: number) => void): void {
  show(seq);
  requestAnimationFrame(() => {
    const pane = document.getElementById("record");
    pane?.focus();
    pane?.scrollIntoView({ block: "nearest" });
  });
}

/** Which record is looked at. The address follows when moving has come to rest, and leads here. */
function useSelected(model: TraceModel, event: string | undefined) {
  const [selected, setSelected] = useState<number | undefined>(undefined);
  const current = useRef<number | undefined>(undefined);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  // An event that is not read yet, or that does not read, is named by its number.
  const size = model.rows.value.length;
  const wanted = event === undefined ? undefined : model.byId.get(event) ?? (/^\d{1,9}$/.test(event) && Number(event) <= size ? Number(event) : undefined);
  useEffect(() => {
    if (timer.current !== undefined) return;
    current.current = wanted === 0 ? undefined : wanted;
    setSelected(current.current);
  }, [wanted]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const select = (seq: number | undefined) => {
    current.current = seq;
    setSelected(seq);
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      timer.current = undefined;
      const row = seq === undefined ? undefined : model.rows.peek()[seq - 1];
      ask({ event: row === undefined ? "" : row.record?.id ?? String(row.seq) });
    }, REST_MS);
  };
  return [selected, select, current] as const;
}

function Head({ model, first, command }: { model: TraceModel; first: TraceRecord | undefined; command: string }) {
  const title = first?.payload["title"];
  return (
    <header class="head">
      <h1><bdi>{typeof title === "string" && title !== "" ? oneLine(title) : model.id === "ledger" ? "The ledger's own trace" : "Trace"}</bdi></h1>
      <Id id={model.id} />
      <Mark kind="off">{model.isClosed.value ? "closed" : "open"}</Mark>
      <span class="dim">{plural(model.size.value, "event")}</span>
      {first?.task === undefined ? null : <a href={taskPath(first.task)}>{oneLine(first.task, 128)}</a>}
      <span class="grows" />
      <div class="buttons">
        <a class="button" href={`/v1/traces/${encodeURIComponent(model.id)}/bundle`} download={`${model.id}.bundle`}>Download the bundle</a>
        <button type="button" title={`${command} (y)`} onClick={() => void copy(command, command)}>Copy the command</button>
      </div>
    </header>
  );
}

/** How much was read and computed, where that takes a while. */
function Progress({ model, isFolded, onFold }: { model: TraceModel; isFolded: boolean; onFold: () => void }) {
  const [count, size] = [model.rows.value.length, model.size.value];
  const limit = model.limit.value;
  const broken = count < size ? model.broken.value : undefined;
  const readOn = () => {
    if (count >= limit) model.limit.value = limit * 2;
    else void model.read();
  };
  return (
    <div class="chain-bar">
      <span class="dim" role="status">
        {count < size ? `${count} of ${size} read. ` : ""}{provenWords(model, count < size)}
      </span>
      {broken ? <span class="text-bad" role="alert">The rest could not be read: {inWords(broken)}</span> : null}
      <span class="grows" />
      {broken || (count >= limit && count < size) ? <button type="button" class="more" onClick={readOn}>Read on</button> : null}
      <button type="button" class="quiet" aria-pressed={isFolded} onClick={onFold} title="f">{isFolded ? "Unfold turns" : "Fold by turn"}</button>
    </div>
  );
}

function provenWords(model: TraceModel, isReading: boolean): string {
  const [count, proven, wrong] = [model.rows.value.length, model.proven.value, model.wrong.value.size];
  if (!canHash()) return "Hashes are checked by the server.";
  if (wrong > 0) return `${plural(wrong, "hash", "hashes")} came out otherwise here.`;
  if (isReading || proven < count) return `${proven} hashes computed here.`;
  const damaged = model.rows.value.filter((row) => !row.record).length;
  if (damaged > 0) return `${plural(damaged, "record")} cannot be read. All other hashes were computed anew here, and are the same.`;
  if (damage.value.has(model.id)) return "What was read had its hashes; what is stored now does not verify.";
  return "All hashes were computed anew here, and are the same.";
}

// The chain: one row for each record, joined to the one before it as long as that can be proven.

import { useMemo } from "preact/hooks";
import { Mark } from "../../parts/Badge.js";
import { Time } from "../../parts/Time.js";
import { Windowed } from "../../parts/Windowed.js";
import { plural, shortHash } from "../../state/format.js";
import { tracePath } from "../../router.js";
import { oneLine } from "../../state/text.js";
import type { Row } from "./record.js";
import { linkTo, type TraceModel } from "./state.js";

const ROW_HEIGHT = 36;
/** Hues that keys are told apart by; with more keys they come again. */
export const HUES = 8;

/** A row, or so many records of one turn that are folded into one. */
export type Item = { at: number; count: number };

const single: Item[] = [];

/** Records that belong together: one actor in one session speaks until another does. */
export function itemsOf(rows: readonly Row[], isFolded: boolean, open: ReadonlySet<number>): readonly Item[] {
  if (!isFolded) {
    while (single.length < rows.length) single.push({ at: single.length, count: 1 });
    return single.slice(0, rows.length);
  }
  const items: Item[] = [];
  for (let at = 0; at < rows.length;) {
    let end = at + 1;
    while (end < rows.length && turnOf(rows[end]) === turnOf(rows[at])) end += 1;
    if (end - at < 3 || open.has(at)) for (let one = at; one < end; one += 1) items.push({ at: one, count: 1 });
    else items.push({ at, count: end - at });
    at = end;
  }
  return items;
}

const turnOf = (row: Row | undefined): string => (row?.record ? `${row.record.actor.agent} ${row.record.actor.role} ${row.record.session ?? ""}` : `${row?.seq}`);

interface Props {
  model: TraceModel;
  items: readonly Item[];
  selected: number | undefined;
  onSelect: (seq: number) => void;
  onUnfold: (at: number) => void;
}

export function Chain({ model, items, selected, onSelect, onUnfold }: Props) {
  const rows = model.rows.value;
  const firstBad = model.firstBad.value;
  const focus = useMemo(() => {
    const at = selected === undefined ? -1 : items.findIndex((item) => selected - 1 >= item.at && selected - 1 < item.at + item.count);
    return at < 0 ? undefined : at;
  }, [items, selected]);
  const row = (index: number) => {
    const item = items[index];
    const here = item === undefined ? undefined : rows[item.at];
    if (!item || !here) return null;
    const last = item.at + item.count;
    // A folded turn is broken where any of it is.
    const isBad = firstBad !== undefined && firstBad > item.at && firstBad <= last;
    const state = isBad ? "bad" : firstBad !== undefined && item.at + 1 > firstBad ? "unproven" : "good";
    const joint = isBad && item.count === 1 ? "broken" : linkTo(rows[item.at - 1], here);
    const props = { model, row: here, state, joint, isFirst: index === 0 } as const;
    if (item.count > 1) return <Turn {...props} count={item.count} onUnfold={() => onUnfold(item.at)} />;
    return <One {...props} isSelected={selected === here.seq} isTabbed={index === (focus ?? 0)} onSelect={() => onSelect(here.seq)} />;
  };
  return <Windowed class="chain" label="Records of the trace" count={items.length} rowHeight={ROW_HEIGHT} row={row} focus={focus} />;
}

interface RowProps {
  model: TraceModel;
  row: Row;
  state: "good" | "bad" | "unproven";
  joint: ReturnType<typeof linkTo>;
  isFirst: boolean;
}

/** The colour of whoever signed; hollow where nobody did. */
export function KeyDot({ model, signer }: { model: TraceModel; signer: string | undefined }) {
  const hue = signer === undefined ? undefined : model.keys.get(signer);
  return <span aria-hidden="true" class={`key-dot ${hue === undefined ? "is-unsigned" : ""}`} style={hue === undefined ? undefined : { "--hue": hue % HUES }} />;
}

function Joint({ joint, state, isFirst }: Pick<RowProps, "joint" | "state" | "isFirst">) {
  return (
    <span class={`joint is-${state}`} aria-hidden="true">
      {isFirst ? null : <span class={`joint-line is-${joint}`} />}
      <span class="joint-node">{state === "bad" ? "✕" : ""}</span>
    </span>
  );
}

function One({ model, row, state, joint, isFirst, isSelected, isTabbed, onSelect }: RowProps & { isSelected: boolean; isTabbed: boolean; onSelect: () => void }) {
  const { record } = row;
  return (
    <a class={`record is-${state} ${record ? "" : "is-damaged"} ${isSelected ? "is-selected" : ""}`} href={tracePath(model.id, record?.id ?? String(row.seq))} data-seq={row.seq} data-joint={joint}
      aria-current={isSelected ? "true" : undefined} tabIndex={isTabbed ? 0 : -1}
      onClick={(event) => {
        if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        onSelect();
      }}>
      <Joint joint={joint} state={state} isFirst={isFirst} />
      <span class="record-seq">{row.seq}</span>
      <span class="record-kind">{record ? oneLine(record.type, 64) : "does not read"}</span>
      <span class="record-state">
        {state === "bad" ? <Mark kind="bad">broken here</Mark> : state === "unproven" ? <span class="unproven">unproven</span> : null}
      </span>
      {record ? (
        <>
          <span class="record-actor"><KeyDot model={model} signer={record.actor.key} />{oneLine(record.actor.agent, 64)}<span class="record-role">/{oneLine(record.actor.role, 16)}</span></span>
          <span class="record-time"><Time at={record.at} /></span>
          <code class="record-hash">{shortHash(record.hash)}</code>
        </>
      ) : null}
    </a>
  );
}

function Turn({ model, row, state, joint, isFirst, count, onUnfold }: RowProps & { count: number; onUnfold: () => void }) {
  const { record } = row;
  return (
    <button type="button" class={`record is-turn is-${state}`} aria-expanded={false} onClick={onUnfold}>
      <Joint joint={joint} state={state} isFirst={isFirst} />
      <span class="record-seq">{row.seq}–{row.seq + count - 1}</span>
      <span class="record-kind">{plural(count, "record")}</span>
      <span class="record-state">
        {state === "bad" ? <Mark kind="bad">broken within</Mark> : state === "unproven" ? <span class="unproven">unproven</span> : null}
      </span>
      <span class="record-actor"><KeyDot model={model} signer={record?.actor.key} />{oneLine(record?.actor.agent ?? "", 64)}<span class="record-role">/{oneLine(record?.actor.role ?? "", 16)}</span></span>
      <span class="record-time"><Time at={record?.at} /></span>
      <span class="record-hash dim">unfold</span>
    </button>
  );
}

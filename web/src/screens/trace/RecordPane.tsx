// One record: who said what, its hash as stored and as computed here, its signature, what it cites, and its bytes.

import { useEffect, useState } from "preact/hooks";
import { Mark } from "../../parts/Badge.js";
import { copy, Id } from "../../parts/Id.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { sessionPath, taskPath } from "../../router.js";
import { shortHash } from "../../state/format.js";
import { oneLine } from "../../state/text.js";
import { Artifacts } from "./Artifacts.js";
import { KeyDot } from "./Chain.js";
import { Fields } from "./Fields.js";
import { canHash, canonical, hashOf, isFailure, type Finding, type Row, type TraceRecord } from "./record.js";
import { linkTo, type TraceModel } from "./state.js";

interface Props {
  model: TraceModel;
  seq: number;
  onSelect: (seq: number) => void;
  onClose: () => void;
}

export function RecordPane({ model, seq, onSelect, onClose }: Props) {
  const row = model.rows.value[seq - 1];
  if (!row) return null;
  const { record } = row;
  const findings = model.findings.value.get(seq) ?? [];
  const firstBad = model.firstBad.value;
  return (
    <section class="record-pane panel" aria-label={`Record ${seq}`} tabIndex={-1} id="record">
      <header class="head">
        <h2>{seq}. {record ? oneLine(record.type, 64) : "A record that does not read"}</h2>
        {firstBad === undefined || seq < firstBad ? null : seq === firstBad ? <Mark kind="bad">broken here</Mark> : <Mark kind="off">unproven</Mark>}
        <span class="grows" />
        {record ? <Id id={record.id} /> : null}
        <button type="button" class="quiet" aria-label="Close this record" onClick={onClose}>×</button>
      </header>
      {findings.map((finding, at) => <Found key={at} finding={finding} />)}
      {record ? <Whole model={model} record={record} before={model.rows.value[seq - 2]} row={row} onSelect={onSelect} /> : <p class="text-bad">{"damage" in row ? oneLine(row.damage, 400) : ""}</p>}
    </section>
  );
}

function Found({ finding }: { finding: Finding }) {
  return (
    <p class="record-found">
      <Mark kind={isFailure(finding) ? "bad" : "warn"}>{finding.code}</Mark>{" "}
      {finding.expected === undefined ? null : <>expected <code>{oneLine(finding.expected)}</code> </>}
      {finding.found === undefined ? null : <>found <code>{oneLine(finding.found)}</code>. </>}
      {finding.action}
    </p>
  );
}

function Whole({ model, record, row, before, onSelect }: { model: TraceModel; record: TraceRecord; row: Row; before: Row | undefined; onSelect: (seq: number) => void }) {
  return (
    <>
      <dl class="facts">
        <dt>said by</dt><dd><KeyDot model={model} signer={record.actor.key} />{oneLine(record.actor.agent, 64)} as {oneLine(record.actor.role, 16)}</dd>
        <dt>at</dt><dd>{oneLine(record.at, 30)} (<Time at={record.at} />)</dd>
        <dt>place</dt><dd>{record.seq} of this trace, {record.pos} of the ledger</dd>
        {record.task === undefined ? null : <><dt>task</dt><dd><a href={taskPath(record.task)}>{oneLine(record.task, 128)}</a></dd></>}
        {record.session === undefined ? null : <><dt>session</dt><dd><a href={sessionPath(record.session)}>{oneLine(record.session, 128)}</a></dd></>}
        {record.run === undefined ? null : <><dt>attempt</dt><dd><Id id={record.run} text={oneLine(record.run, 128)} /></dd></>}
        {record.seen === undefined ? null : <><dt>had seen</dt><dd><button type="button" class="more" onClick={() => onSelect(record.seen?.seq ?? 1)}>record {record.seen.seq}</button></dd></>}
        {record.batch === undefined ? null : <><dt>decision</dt><dd>{record.batch[0]} of {record.batch[1]} records</dd></>}
        {record.fence === undefined ? null : <><dt>fence</dt><dd>{record.fence}</dd></>}
      </dl>
      <h3>Says</h3>
      <Fields value={record.payload} />
      <h3>Hash</h3>
      <Hashes record={record} row={row} before={before} />
      <h3>Signature</h3>
      <Signature model={model} record={record} onSelect={onSelect} />
      {record.artifacts.length > 0 ? <><h3>Artifacts</h3><Artifacts key={record.id} all={record.artifacts} /></> : null}
      <Bytes key={record.id} record={record} />
    </>
  );
}

const JOINTS: { readonly [joint in ReturnType<typeof linkTo>]: readonly ["good" | "bad" | "off", string] } = {
  first: ["good", "the first one"], whole: ["good", "is the hash of the record before"], broken: ["bad", "is not the hash of the record before"],
  unknown: ["off", "the record before does not read"],
};

function Hashes({ record, row, before }: { record: TraceRecord; row: Row; before: Row | undefined }) {
  const [anew, setAnew] = useState<string | undefined>(undefined);
  useEffect(() => {
    setAnew(undefined);
    let isStill = true;
    if (canHash()) void hashOf(record).then((hash) => { if (isStill) setAnew(hash); });
    return () => { isStill = false; };
  }, [record]);
  const [kind, words] = JOINTS[linkTo(before, row)];
  return (
    <dl class="facts record-hashes">
      <dt>stored</dt><dd><code>{oneLine(record.hash, 64)}</code></dd>
      <dt>computed here</dt>
      <dd>
        {!canHash() ? <span class="dim">Browsers compute hashes only for pages from https or this machine: the verifier's findings stand above.</span>
          : anew === undefined ? <span class="dim">…</span>
            : <><code>{anew}</code> {anew === record.hash ? <Mark kind="good">the same</Mark> : <Mark kind="bad">another one</Mark>}</>}
      </dd>
      <dt>before</dt><dd><code>{oneLine(record.prev, 64)}</code> <Mark kind={kind}>{words}</Mark></dd>
    </dl>
  );
}

function Signature({ model, record, onSelect }: { model: TraceModel; record: TraceRecord; onSelect: (seq: number) => void }) {
  const { sig } = record;
  if (!sig) return <p class="dim">It is not signed.</p>;
  const binding = model.rows.value.find((row) => row.record && ((row.record.type === "key_bound" && row.record.payload["key"] === sig.key)
    || (row.record.type === "key_rotated" && row.record.payload["by"] === sig.key)));
  return (
    <dl class="facts">
      <dt>key</dt><dd><KeyDot model={model} signer={sig.key} /><Id id={sig.key} text={oneLine(sig.key, 64)} /></dd>
      <dt>bound</dt>
      <dd>{binding ? <button type="button" class="more" onClick={() => onSelect(binding.seq)}>record {binding.seq}</button> : <>by the ledger itself: <a href="/traces/ledger">its own trace</a></>}</dd>
      <dt>{oneLine(sig.alg, 16)}</dt><dd><code title={oneLine(sig.value, 100)}>{oneLine(sig.value, 100)}</code></dd>
    </dl>
  );
}

function Bytes({ record }: { record: TraceRecord }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="record-bytes" onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Canonical bytes, as stored</summary>
      {isOpen ? (
        <>
          <button type="button" class="more" onClick={() => void copy(canonical(record), `record ${shortHash(record.hash)}`)}>Copy</button>
          <Text text={canonical(record)} max={10_000} />
        </>
      ) : null}
    </details>
  );
}

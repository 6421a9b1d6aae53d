// A guarded run as it is told: who proposed, reviewed, ran, claimed and verified what; and what waits for a person.

import { once } from "../../parts/once.js";
import { useMemo, useState } from "preact/hooks";
import { Mark } from "../../parts/Badge.js";
import { Dialog } from "../../parts/Dialog.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { act } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { REASON_MAX } from "../../state/model.js";
import { oneLine } from "../../state/text.js";
import { Artifacts } from "./Artifacts.js";
import { KeyDot } from "./Chain.js";
import type { TraceRecord } from "./record.js";
import type { TraceModel } from "./state.js";
import { runOf, told, type Pending, type Run } from "./steps.js";

/** Entries that are told before more is asked for. */
const ENTRIES = 400;
const APPROVED = "approved on the page";
const NO = { proposal: "Reject", intent: "Block", claim: "Challenge" };

export function Story({ model, records, onShow }: { model: TraceModel; records: readonly TraceRecord[]; onShow: (seq: number) => void }) {
  const run = useMemo(() => runOf(records), [records]);
  const [limit, setLimit] = useState(ENTRIES);
  const [isKeys, setKeys] = useState(false);
  const entries = isKeys ? records : records.filter((record) => !record.type.startsWith("key_"));
  const hidden = Math.max(0, entries.length - limit);
  return (
    <div class="run-story">
      <Standing model={model} run={run} />
      {run.pending.map((asked) => <Review key={asked.id} model={model} asked={asked} />)}
      {hidden > 0 ? <button type="button" class="more" onClick={() => setLimit(limit + ENTRIES)}>{hidden} earlier entries: show more</button> : null}
      <ol class="steps" aria-label="The story of this run">
        {entries.slice(hidden).map((record) => <Entry key={record.id} model={model} record={record} onShow={onShow} />)}
      </ol>
      <label class="step-tick"><input type="checkbox" checked={isKeys} onChange={() => setKeys(!isKeys)} /> with the binding of keys</label>
    </div>
  );
}

function Standing({ model, run }: { model: TraceModel; run: Run }) {
  const [isAborting, setAborting] = useState(false);
  const kind = run.state === "completed" ? "good" : run.state === "failed" || run.state === "aborted" ? "bad" : "off";
  return (
    <div class="run-standing">
      <Mark kind={kind}>{run.state}</Mark>
      <span class="dim">profile {oneLine(run.profile, 20)}; {Object.entries(run.team).map(([part, agent]) => `${part} ${oneLine(agent, 64)}`).join(", ")}</span>
      <span class="grows" />
      {run.hasEnded || model.isClosed.value ? null : <button type="button" class="danger" onClick={() => setAborting(true)}>Abort…</button>}
      {isAborting ? <Abort model={model} onClose={() => setAborting(false)} /> : null}
    </div>
  );
}

function Abort({ model, onClose }: { model: TraceModel; onClose: () => void }) {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    // Not where the run has moved on since: then a person looks first.
    const isDone = await act(client.abortTrace(model.id, { reason: reason.trim(), seen: model.size.peek() }), "The run is aborted.");
    setBusy(false);
    if (isDone) onClose();
  };
  return (
    <Dialog title="Abort this run" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)}>
        <p>The run ends here and its task is cancelled. This is signed and stays in the ledger.</p>
        <label>Why <input autofocus required maxLength={REASON_MAX} value={reason} onInput={(event) => setReason(event.currentTarget.value)} /></label>
        <div class="buttons"><button type="submit" class="danger" disabled={isBusy || reason.trim() === ""}>Abort the run</button></div>
      </form>
    </Dialog>
  );
}

/** What a person is asked about: what it is, what it would be given, and the two answers. */
function Review({ model, asked }: { model: TraceModel; asked: Pending }) {
  const [reason, setReason] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { start, text, below } = told(asked.record);
  const answer = async (verdict: "approve" | "block") => {
    setBusy(true);
    const why = reason.trim() === "" ? APPROVED : reason.trim();
    const done = `${asked.id} is ${verdict === "approve" ? "approved" : asked.what === "claim" ? "challenged" : "blocked"}.`;
    await act(client.reviewTrace(model.id, { id: asked.id, verdict, reason: why }), done);
    setBusy(false);
  };
  return (
    <section class="step-review" aria-label={`Review of ${oneLine(asked.id, 64)}`}>
      <p><Mark kind="warn">waits for you</Mark> <bdi>{oneLine(start, 300)}</bdi></p>
      {text ? <Text text={text} max={4000} /> : null}
      <Below below={below} />
      {asked.record.artifacts.length > 0 ? <Artifacts all={asked.record.artifacts} isOpen /> : null}
      <div class="step-answer">
        <label>Why <input maxLength={REASON_MAX} placeholder={APPROVED} value={reason} onInput={(event) => setReason(event.currentTarget.value)} /></label>
        <button type="button" class="primary" disabled={isBusy} onClick={once(() => void answer("approve"))}>Approve {oneLine(asked.id, 64)}</button>
        <button type="button" class="danger" disabled={isBusy || reason.trim() === ""} title={reason.trim() === "" ? "Say why first" : ""} onClick={once(() => void answer("block"))}>
          {NO[asked.what]} {oneLine(asked.id, 64)}
        </button>
      </div>
      <p class="dim">Your answer is signed with the operator's key and stays in the ledger.</p>
    </section>
  );
}

function Below({ below }: { below: readonly (readonly [string, string])[] | undefined }) {
  if (!below || below.length === 0) return null;
  return <dl class="facts step-below">{below.slice(0, 100).map(([label, item], at) => <div class="payload-field" key={at}><dt>{label}</dt><dd><bdi>{oneLine(item, 1000)}</bdi></dd></div>)}</dl>;
}

function Entry({ model, record, onShow }: { model: TraceModel; record: TraceRecord; onShow: (seq: number) => void }) {
  const { start, kind, text, below } = told(record);
  const firstBad = model.firstBad.value;
  const isUnproven = firstBad !== undefined && record.seq >= firstBad;
  return (
    <li class={`step ${kind === "dim" ? "is-dim" : ""}`} data-step={record.type}>
      <button type="button" class="id" title="Show this record" onClick={() => onShow(record.seq)}>{record.seq}</button>
      <div class="step-words">
        <p>
          <KeyDot model={model} signer={record.actor.key} />
          <bdi class={kind && kind !== "dim" ? `step-said is-${kind}` : "step-said"}>{oneLine(start, 300)}</bdi>
          {isUnproven ? <span class="unproven">unproven</span> : null}
          <span class="dim step-at"><Time at={record.at} /></span>
        </p>
        {text ? (text.length > 160 || text.includes("\n") ? <Text text={text} max={4000} /> : <p class="step-text"><bdi>{oneLine(text, 160)}</bdi></p>) : null}
        <Below below={below} />
      </div>
    </li>
  );
}

// Everything as it is stored: the files of the task, and the records of its trace.

import type { LedgerRecord } from "@baton/sdk";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { bytes } from "../../state/format.js";
import { failureOf } from "../../state/failure.js";
import type { Failure } from "../../state/store.js";
import { oneLine, shown } from "../../state/text.js";
import { getPage, type StoredFile } from "./answers.js";
import type { TaskModel } from "./state.js";

export function Raw({ model }: { model: TaskModel }) {
  return (
    <>
      <section class="panel" aria-label="Files"><h2>Files</h2><Files model={model} /></section>
      <section class="panel" aria-label="Records"><h2>Records of the trace</h2><Records model={model} /></section>
    </>
  );
}

function Files({ model }: { model: TaskModel }) {
  const state = model.files.now.value;
  if (state.kind === "loading") return <Loading what="the files" />;
  if (state.kind === "broken") return <Broken what="The files" error={state.error} retry={model.files.retry} />;
  if (state.value.files.length === 0) return <Empty title="No files" />;
  return <>{state.value.files.map((file) => <File key={file.name} file={file} />)}</>;
}

function File({ file }: { file: StoredFile }) {
  return (
    <Folded title={<><span class="file-name"><bdi>{oneLine(file.name, 400)}</bdi></span> <span class="dim">{bytes(file.bytes)}</span></>}>
      {() => (
        <>
          {file.text === undefined ? <p class="dim file-note">It is no text: its bytes are not shown.</p> : <Text text={file.text} />}
          {file.isTruncated ? <p class="warned file-note">It is longer than is shown here: the rest is cut off.</p> : null}
        </>
      )}
    </Folded>
  );
}

/** What is inside is made when it is opened. */
function Folded({ title, children }: { title: ComponentChildren; children: () => ComponentChildren }) {
  const [isOpen, setOpen] = useState(false);
  return (
    <details class="file" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>{title}</summary>{isOpen ? children() : null}
    </details>
  );
}

const PAGE = 100;

/** Page by page from the first on: a trace may be long. What is added at the end is read as it comes, where the end was reached. */
function Records({ model }: { model: TaskModel }) {
  const [read, setRead] = useState<{ records: readonly LedgerRecord[]; size: number; error: Failure | undefined; isBusy: boolean }>(
    { records: [], size: 0, error: undefined, isBusy: false },
  );
  const { last } = model.story.value;
  const more = async () => {
    setRead((before) => ({ ...before, isBusy: true, error: undefined }));
    try {
      const page = await getPage(model.id, (read.records.at(-1)?.seq ?? 0) + 1, PAGE);
      setRead((before) => {
        const known = before.records.at(-1)?.seq ?? 0;
        return { records: [...before.records, ...page.events.filter((one) => one.seq > known)], size: page.size, error: undefined, isBusy: false };
      });
    } catch (error) {
      const failure = failureOf(error);
      setRead((before) => ({ ...before, isBusy: false, error: failure }));
    }
  };
  const isAtEnd = read.records.length === read.size;
  useEffect(() => { if (!read.isBusy && isAtEnd && (read.size === 0 || last > read.size)) void more(); }, [last, read.isBusy]);
  if (read.error && read.records.length === 0) return <Broken what="The records" error={read.error} retry={() => void more()} />;
  if (read.records.length === 0) return <Loading what="the records" />;
  return (
    <>
      {read.records.map((record) => <Record key={record.id} record={record} />)}
      {read.error ? <p class="warned">{oneLine(read.error.title)}</p> : null}
      {isAtEnd ? null : (
        <button type="button" class="more" disabled={read.isBusy} onClick={() => void more()}>{read.size - read.records.length} more records: show</button>
      )}
    </>
  );
}

function Record({ record }: { record: LedgerRecord }) {
  return (
    <Folded title={(
      <><code class="number">{record.seq}</code> <span class="file-name">{oneLine(record.type, 80)}</span>{" "}
        <span class="dim"><bdi>{oneLine(record.actor.agent, 80)}</bdi>, <Time at={record.at} /></span></>
    )}>
      {() => <Text text={shown(record)} />}
    </Folded>
  );
}

// One session, live: its transcript, what it asks for, its states, and how it ended.

import { useComputed, useSignal } from "@preact/signals";
import { taskPath } from "../../router.js";
import { Dialog } from "../../parts/Dialog.js";
import { Id } from "../../parts/Id.js";
import { Broken, Loading } from "../../parts/States.js";
import { Time } from "../../parts/Time.js";
import { span } from "../../state/format.js";
import { useKeys } from "../../state/keys.js";
import { now, tell } from "../../state/store.js";
import { Composer, Stopping } from "./Composer.js";
import { Ended } from "./Ended.js";
import { Again, firstAsked, Pinned } from "./Pinned.js";
import { Side } from "./Side.js";
import { Sign } from "./Sign.js";
import { useSession, type SessionFile } from "./state.js";
import { Transcript } from "./Transcript.js";
import { endingOf, stateKind, stateWord } from "./words.js";
import "./session.css";

export function SessionScreen({ id }: { id: string }) {
  const file = useSession(id);
  const isAsking = useSignal(false);
  const isFormatted = useSignal(false);
  useSessionKeys(file, () => { isAsking.value = true; });
  const isEmpty = useComputed(() => file.book.value.view.at === 0 && !file.book.value.view.isEnded).value;
  const stream = file.stream.value;
  if (stream.kind === "broken" && isEmpty) return <Broken what={`Session ${id}`} error={stream.error} retry={file.open} />;
  if (stream.kind === "opening" && file.session.value.kind === "loading") return <Loading what="the session" />;
  return (
    <div class="session">
      <Head file={file} isFormatted={isFormatted.value} onFormat={() => { isFormatted.value = !isFormatted.value; }} />
      <div class="session-left">
        <Ended file={file} />
        <Stopping file={file} />
        <Transcript file={file} isFormatted={isFormatted.value} />
        <Pinned file={file} />
        <Again file={file} />
        <Composer file={file} />
      </div>
      <Side file={file} />
      {isAsking.value ? <AskStop file={file} onClose={() => { isAsking.value = false; }} /> : null}
    </div>
  );
}

function useSessionKeys(file: SessionFile, askStop: () => void): void {
  const answer = (given: "allow" | "deny") => () => {
    const asked = firstAsked(file);
    if (asked) void file.answer(asked.id, given);
    else tell("bad", "Nothing waits for a yes or a no.");
  };
  useKeys("Session", [
    { keys: "i", does: "write to the agent", run: () => document.getElementById("composer")?.focus() },
    { keys: "s", does: "stop the session (asks)", run: () => { if (!file.book.peek().view.isEnded) askStop(); } },
    { keys: "a", does: "allow the first that is asked for", run: answer("allow") },
    { keys: "d", does: "deny the first that is asked for", run: answer("deny") },
  ]);
}

function Head({ file, isFormatted, onFormat }: { file: SessionFile; isFormatted: boolean; onFormat: () => void }) {
  const state = useComputed(() => file.book.value.view.state).value;
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  const told = useComputed(() => file.book.value.view.terminationInfo).value;
  const isAsking = useComputed(() => file.book.value.view.pendingPermissions.length > 0).value;
  const isStopping = useSignal(false);
  const came = file.session.value;
  const session = came.kind === "ready" ? came.value : undefined;
  const stream = file.stream.value;
  const ending = isEnded ? endingOf(told ?? session?.terminationInfo, session) : undefined;
  const stop = async () => {
    isStopping.value = true;
    await file.stop();
    isStopping.value = false;
  };
  return (
    <header class="head session-head">
      <h1>{session?.agent ?? "Session"}</h1>
      <Id id={file.id} />
      {ending ? <Sign kind={ending.kind}>{ending.title.toLowerCase()}</Sign> : isAsking ? <Sign kind="warn">waits for you</Sign> : <Sign kind={stateKind(state)}>{stateWord(state)}</Sign>}
      {session ? <span class="dim">started <Time at={String(session["startedAt"] ?? "")} /></span> : null}
      {session?.taskId ? <a href={taskPath(session.taskId)}>{session.taskId}</a> : null}
      {stream.kind === "waiting" ? <span class="mark is-bad" title={stream.reason}>not connected for {span(now.value - stream.since)}: trying again</span> : null}
      {stream.kind === "crowded" ? <span class="mark is-bad">not connected: other windows of this browser show sessions and have all its connections; close one of them</span> : null}
      {stream.kind === "broken" ? (
        <span role="alert"><Sign kind="bad">{stream.error.title}</Sign> <button type="button" onClick={file.open}>Try again</button></span>
      ) : null}
      <span class="grows" />
      <button type="button" class="quiet" aria-pressed={isFormatted} onClick={onFormat} title="Whether Markdown is shown as such">{isFormatted ? "formatted" : "as it came"}</button>
      {isEnded ? null : <button type="button" class="danger" disabled={isStopping.value || state === "stopping"} onClick={() => void stop()}>{isStopping.value || state === "stopping" ? "Stopping…" : "Stop"}</button>}
    </header>
  );
}

function AskStop({ file, onClose }: { file: SessionFile; onClose: () => void }) {
  return (
    <Dialog title="Stop this session?" onClose={onClose}>
      <p>The agent and everything that it started is ended. What it has done so far stays.</p>
      <div class="buttons">
        <button type="button" class="danger" autofocus onClick={() => { onClose(); void file.stop(); }}>Stop it</button>
        <button type="button" onClick={onClose}>Let it run</button>
      </div>
    </Dialog>
  );
}


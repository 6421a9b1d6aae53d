// How a session ended: why in plain words first, then what is known, and what to do next.

import { useComputed, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { StderrText } from "../../parts/Stderr.js";
import { go, sessionPath, taskPath } from "../../router.js";
import { fetched, inWords } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { tell } from "../../state/store.js";
import { plain } from "../../state/text.js";
import { Sign } from "./Sign.js";
import type { SessionFile } from "./state.js";
import { endingOf } from "./words.js";

/** Harnesses that can go on with an earlier conversation, where their agents can. */
const RESUMES = ["acp", "mock"];

export function Ended({ file }: { file: SessionFile }) {
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  const told = useComputed(() => file.book.value.view.terminationInfo).value;
  const came = file.session.value;
  const isBusy = useSignal(false);
  const box = useRef<HTMLElement>(null);
  // On a narrow screen it would be out of sight.
  useEffect(() => { if (isEnded) box.current?.scrollIntoView({ block: "nearest" }); }, [isEnded]);
  if (!isEnded) return null;
  const session = came.kind === "ready" ? came.value : undefined;
  const info = told ?? session?.terminationInfo;
  const ending = endingOf(info, session);
  const goOn = async () => {
    if (!session) return;
    isBusy.value = true;
    const started = await fetched(client.startSession({ agent: session.agent, resume: session.id, ...(typeof session["cwd"] === "string" ? { cwd: session["cwd"] } : {}) }));
    isBusy.value = false;
    if (started.kind === "ready") go(sessionPath(started.value.id));
    else if (started.kind === "broken") tell("bad", inWords(started.error));
  };
  return (
    <section ref={box} class={`panel ended is-${ending.kind}`} role="status" aria-label="How it ended">
      <h2><Sign kind={ending.kind}>{ending.title}</Sign></h2>
      <p class="ended-why"><bdi>{plain(ending.sentence)}</bdi></p>
      {ending.facts.length > 0 ? (
        <ul class="ended-facts">{ending.facts.map(([name, value]) => <li key={name}><span class="dim">{name}</span> <strong><bdi>{plain(value.slice(0, 300))}</bdi></strong></li>)}</ul>
      ) : null}
      {ending.next ? <p>{ending.next}</p> : null}
      <p class="dim">All that was said: <code>baton session show {file.id} --transcript</code></p>
      <div class="buttons">
        {session?.taskId ? <a href={taskPath(session.taskId, "runs")}>To its task</a> : null}
        {session && RESUMES.includes(session.harness) && !session.taskId ? (
          <button type="button" disabled={isBusy.value} onClick={() => void goOn()}>{isBusy.value ? "Starting…" : "Go on with this conversation"}</button>
        ) : null}
      </div>
      {info?.stderr ? <details class="fold ended-stderr" open={info.reason === "error"}><summary>Its last words</summary><StderrText stderr={info.stderr} /></details> : null}
    </section>
  );
}

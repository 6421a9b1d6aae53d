// What a session asks for, pinned until it is answered. The first answer counts, whoever gives it.

import { once } from "../../parts/once.js";
import { useComputed, useSignal } from "@preact/signals";
import type { Permission, SessionView } from "@baton/sdk";
import { Mark } from "../../parts/Badge.js";
import { Text } from "../../parts/Text.js";
import { span } from "../../state/format.js";
import { now } from "../../state/store.js";
import { oneLine, plain } from "../../state/text.js";
import type { SessionFile } from "./state.js";

/** What is longer is told to be, and shown whole where somebody wants to see it. */
const TITLE_CHARS = 2000;

export function Pinned({ file }: { file: SessionFile }) {
  const pending = useComputed(() => file.book.value.view.pendingPermissions).value;
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  if (pending.length === 0 || isEnded) return null;
  return (
    <section class="pinned" aria-label="The session asks">
      {pending.slice(0, 20).map((asked, at) => <One key={asked.id} asked={asked} isFirst={at === 0} file={file} />)}
      {pending.length > 20 ? <p class="dim">and {pending.length - 20} more</p> : null}
    </section>
  );
}

function One({ asked, isFirst, file }: { asked: Permission; isFirst: boolean; file: SessionFile }) {
  const text = useSignal("");
  const isBusy = useSignal(false);
  const isLong = asked.title.length > TITLE_CHARS;
  const left = asked.expiresAtMs - now.value;
  const answer = async (given: string) => {
    isBusy.value = true;
    await file.answer(asked.id, given);
    isBusy.value = false;
  };
  return (
    <div class="ask">
      <p class="ask-title" role="alert">
        <Mark kind="warn">{asked.kind === "question" ? "question" : "permission"}</Mark> {isLong ? null : <bdi>{plain(asked.title)}</bdi>}
      </p>
      {isLong ? <Text text={asked.title} max={TITLE_CHARS} /> : null}
      <p class="dim">{left > 0 ? `Without an answer it is a no in ${span(left)}.` : "Its time is over: it counts as a no."}</p>
      {asked.kind === "question" ? (
        <form class="buttons" onSubmit={(event) => { event.preventDefault(); void answer(text.value); }}>
          <input class="grows" aria-label="Your answer" value={text.value} onInput={(event) => { text.value = event.currentTarget.value; }} />
          <button type="submit" class="primary" disabled={isBusy.value || text.value.trim() === ""}>Answer</button>
          <button type="button" class="danger" disabled={isBusy.value} onClick={once(() => void answer("deny"))}>Deny</button>
        </form>
      ) : (
        <div class="buttons">
          <button type="button" class="primary" disabled={isBusy.value} onClick={once(() => void answer("allow"))}>Allow{isFirst ? <kbd>a</kbd> : null}</button>
          <button type="button" class="danger" disabled={isBusy.value} onClick={once(() => void answer("deny"))}>Deny{isFirst ? <kbd>d</kbd> : null}</button>
        </div>
      )}
    </div>
  );
}

/** The run that failed last and is why the session waits: it may be tried again. */
export function retryable(view: SessionView): { kind: "tool" | "hook"; runId: string; name: string; error: string | undefined } | undefined {
  if (view.isEnded || (view.state !== "ready" && view.state !== "error")) return undefined;
  if (view.lastError?.source === "tool") {
    const run = view.toolRuns.findLast((other) => other.status === "failed");
    return run && { kind: "tool", runId: run.runId, name: run.toolName, error: run.error };
  }
  if (view.lastError?.source !== "hook") return undefined;
  const run = view.hookRuns.findLast((other) => other.status === "failed");
  return run && { kind: "hook", runId: run.runId, name: run.hookName, error: run.error };
}

/** What failed, with the way to try it again. */
export function Again({ file }: { file: SessionFile }) {
  const runId = useComputed(() => retryable(file.book.value.view)?.runId).value;
  const isBusy = useSignal(false);
  const run = retryable(file.book.peek().view);
  if (runId === undefined || !run) return null;
  const retry = async () => {
    isBusy.value = true;
    await file.retry(run.kind, run.runId);
    isBusy.value = false;
  };
  return (
    <section class="again" role="status" aria-label="What failed">
      <Mark kind="bad">{`${run.kind} failed`}</Mark> <code><bdi>{oneLine(run.name, 60)}</bdi></code>
      <span class="grows"><bdi>{oneLine(run.error ?? "", 200)}</bdi></span>
      <button type="button" disabled={isBusy.value} onClick={() => void retry()}>Try it again</button>
    </section>
  );
}

/** The first permission that waits for a yes or a no. */
export const firstAsked = (file: SessionFile): Permission | undefined => file.book.value.view.pendingPermissions.find((asked) => asked.kind !== "question");

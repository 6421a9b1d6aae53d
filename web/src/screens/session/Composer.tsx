// Where a person writes to the agent, and stops it.

import { useComputed, useSignal, useSignalEffect } from "@preact/signals";
import { span } from "../../state/format.js";
import { now } from "../../state/store.js";
import type { SessionFile } from "./state.js";
import { whyNoInput } from "./words.js";

/** What was written and not sent, by session: it is still there for whoever comes back. */
const drafts = new Map<string, string>();

export function Composer({ file }: { file: SessionFile }) {
  const state = useComputed(() => file.book.value.view.state).value;
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  const stream = useComputed(() => file.stream.value.kind).value;
  const text = useSignal(drafts.get(file.id) ?? "");
  useSignalEffect(() => { drafts.set(file.id, text.value); });
  const isBusy = useSignal(false);
  if (isEnded) return null;
  const why = stream === "live" ? whyNoInput(state) : stream === "crowded" ? "There is no connection for this window." : "The connection is gone: it comes back by itself.";
  const send = async () => {
    const written = text.value.trim();
    if (written === "" || why !== undefined || isBusy.value) return;
    isBusy.value = true;
    // What is being sent is not to be sent twice; it comes back where it was not taken.
    text.value = "";
    if (!(await file.send(written)) && text.value === "") text.value = written;
    isBusy.value = false;
  };
  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); void send(); }}>
      <textarea id="composer" aria-label="What is to be done" aria-describedby="composer-why" rows={2} placeholder="What is to be done?" value={text.value}
        onInput={(event) => { text.value = event.currentTarget.value; }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
            event.preventDefault();
            void send();
          } else if (event.key === "Escape") {
            event.preventDefault();
            event.currentTarget.blur();
          }
        }} />
      <div class="buttons">
        <button type="submit" class="primary" disabled={why !== undefined || isBusy.value || text.value.trim() === ""}>Send</button>
        <span id="composer-why" class="dim grows">{why ?? "Ctrl+Enter sends."}</span>
      </div>
    </form>
  );
}

/** What happens while a session is stopped, step by step. */
export function Stopping({ file }: { file: SessionFile }) {
  const since = useComputed(() => file.book.value.stoppingSince).value;
  const isStopping = useComputed(() => file.book.value.view.state === "stopping").value;
  if (!isStopping || since === undefined) return null;
  return (
    <section class="panel stopping" aria-label="Stopping">
      <h2>Stopping{now.value - since >= 1000 ? `, for ${span(now.value - since)}` : ""}</h2>
      <ol>
        <li>What ran is canceled, and the agent's input is closed.</li>
        <li>Its process group is asked to end (SIGTERM).</li>
        <li>After the grace time it is killed (SIGKILL): <code>session.stop_grace</code>, 2 s where nothing is said.</li>
      </ol>
    </section>
  );
}

// Starts an agent without a task.

import { useSignal } from "@preact/signals";
import type { Agents } from "@baton/sdk";
import { useEffect } from "preact/hooks";
import { Dialog } from "../../parts/Dialog.js";
import { Broken, Loading } from "../../parts/States.js";
import { fetched, inWords } from "../../state/failure.js";
import { client } from "../../state/live.js";
import type { Failure, Fetched } from "../../state/store.js";

export function Start({ onClose, onStarted }: { onClose: () => void; onStarted: (id: string) => void }) {
  const agents = useSignal<Fetched<Agents>>({ kind: "loading" });
  const chosen = useSignal("");
  const cwd = useSignal("");
  const isBusy = useSignal(false);
  const failure = useSignal<Failure | undefined>(undefined);
  const load = async () => { agents.value = await fetched(client.listAgents()); };
  useEffect(() => void load(), []);
  const came = agents.value;
  const start = async () => {
    const agent = chosen.value || (came.kind === "ready" ? came.value.agents[0]?.name : undefined);
    if (agent === undefined || isBusy.value) return;
    isBusy.value = true;
    const started = await fetched(client.startSession({ agent, ...(cwd.value.trim() === "" ? {} : { cwd: cwd.value.trim() }) }));
    isBusy.value = false;
    if (started.kind === "ready") onStarted(started.value.id);
    else if (started.kind === "broken") failure.value = started.error;
  };
  return (
    <Dialog title="Start a session" onClose={onClose}>
      {came.kind === "loading" ? <Loading what="the agents" /> : null}
      {came.kind === "broken" ? <Broken what="The agents" error={came.error} retry={() => void load()} /> : null}
      {came.kind === "ready" ? (
        <form onSubmit={(event) => { event.preventDefault(); void start(); }}>
          <label>Agent
            <select value={chosen.value || came.value.agents[0]?.name} autofocus onChange={(event) => { chosen.value = event.currentTarget.value; }}>
              {came.value.agents.map((agent) => <option key={agent.name} value={agent.name}>{agent.name} ({agent.harness})</option>)}
            </select>
          </label>
          <label>Directory (the workspace, if nothing is said)
            <input value={cwd.value} placeholder="/path" onInput={(event) => { cwd.value = event.currentTarget.value; }} />
          </label>
          {failure.value ? <p role="alert" class="is-wrong">{inWords(failure.value)}{failure.value.hint ? <> Try: <code>{failure.value.hint}</code></> : null}</p> : null}
          <div class="buttons">
            <button type="submit" class="primary" disabled={isBusy.value}>{isBusy.value ? "Starting…" : "Start"}</button>
            <button type="button" onClick={onClose}>Cancel</button>
          </div>
        </form>
      ) : null}
    </Dialog>
  );
}

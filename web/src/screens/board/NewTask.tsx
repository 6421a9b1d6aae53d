// Makes a task. What was typed stays until the task is made, also when the dialog is closed in between.

import { signal } from "@preact/signals";
import type { Agents, CreateTaskBody } from "@baton/sdk";
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Dialog } from "../../parts/Dialog.js";
import { fetched, inWords } from "../../state/failure.js";
import { client, takeAnswer } from "../../state/live.js";
import { PRIORITIES } from "../../state/model.js";
import { tell, type Failure, type Fetched } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import { close, select, type Open } from "./state.js";

const TITLE_MAX = 256;
const BODY_MAX = 131_072;

const EMPTY = { title: "", body: "", priority: "normal", agent: "", isReady: true, isGuarded: false };
type Draft = typeof EMPTY;
const draft = signal<Draft>(EMPTY);

type Field = "title" | "body" | "agent" | "guarded" | "form";
type Errors = { readonly [field in Field]?: string };

/** What is wrong before anybody is asked. */
export function errorsOf({ title, body }: Draft): Errors {
  const errors: { [field in Field]?: string } = {};
  if (title.trim() === "") errors.title = "Say in a line what is to be done.";
  else if ([...title].length > TITLE_MAX) errors.title = `At most ${TITLE_MAX} characters; these are ${[...title].length}.`;
  if (body.length > BODY_MAX) errors.body = `At most ${BODY_MAX} characters; these are ${body.length}.`;
  return errors;
}

/** The field that a refusal is about, where it names one. */
export function fieldOf(failure: Failure): Field {
  const text = `${failure.title} ${failure.detail ?? ""}`.toLowerCase();
  const fields: readonly (readonly [Field, RegExp])[] = [
    ["title", /\btitle\b/], ["body", /\bbody\b|\btext of the task\b/], ["guarded", /\bguarded\b|\bteam\b/], ["agent", /\brouting\b|\bagent\b/],
  ];
  return fields.find(([, words]) => words.test(text))?.[0] ?? "form";
}

function bodyOf({ title, body, priority, agent, isReady, isGuarded }: Draft): CreateTaskBody {
  return {
    title: title.trim(),
    priority: priority as NonNullable<CreateTaskBody["priority"]>,
    status: isReady ? "ready" : "backlog",
    ...(body.trim() === "" ? {} : { body }),
    ...(agent === "" ? {} : { routing: { agent } }),
    ...(isGuarded ? { guarded: true } : {}),
  };
}

function useAgents(): Fetched<Agents> {
  const [agents, setAgents] = useState<Fetched<Agents>>({ kind: "loading" });
  useEffect(() => { void fetched(client.listAgents()).then(setAgents); }, []);
  return agents;
}

export function NewTask({ which }: { which: Extract<Open, { kind: "new" }> }) {
  const agents = useAgents();
  const [errors, setErrors] = useState<Errors>({});
  const [isBusy, setBusy] = useState(false);
  const now = draft.value;
  const change = (part: Partial<Draft>) => {
    draft.value = { ...draft.value, ...part };
    if (Object.keys(errors).length > 0) setErrors({});
  };
  const submit = async () => {
    if (isBusy) return;
    const wrong = errorsOf(draft.value);
    setErrors(wrong);
    const [first] = Object.keys(wrong);
    if (first) return document.getElementById(`new-${first}`)?.focus();
    setBusy(true);
    const came = await fetched(client.createTask(bodyOf(draft.value)));
    setBusy(false);
    if (came.kind === "broken") return setErrors({ [fieldOf(came.error)]: inWords(came.error) + (came.error.hint ? `. Try: ${came.error.hint}` : "") });
    draft.value = EMPTY;
    takeAnswer(came.value);
    select(came.value.id);
    tell("ok", `Made ${came.value.id}: ${oneLine(came.value.title, 80)}`);
    close(which);
  };
  return (
    <Dialog title="New task" onClose={() => close(which)}>
      <form noValidate onSubmit={(event) => { event.preventDefault(); void submit(); }} onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); void submit(); }
      }}>
        <Labelled name="title" label="What is to be done, in a line" error={errors.title}>
          <input id="new-title" autofocus value={now.title} {...wrong("title", errors.title)} onInput={(event) => change({ title: event.currentTarget.value })} />
        </Labelled>
        <Labelled name="body" label="More about it, in Markdown" error={errors.body}>
          <textarea id="new-body" rows={7} value={now.body} {...wrong("body", errors.body)} onInput={(event) => change({ body: event.currentTarget.value })} />
        </Labelled>
        <div class="pair">
          <label>Priority
            <select value={now.priority} onChange={(event) => change({ priority: event.currentTarget.value })}>
              {PRIORITIES.map((priority) => <option key={priority}>{priority}</option>)}
            </select>
          </label>
          <Labelled name="agent" label="For" error={errors.agent ?? (agents.kind === "broken" ? `The agents are not known: ${agents.error.title}` : undefined)}>
            <select id="new-agent" value={now.agent} {...wrong("agent", errors.agent)} onChange={(event) => change({ agent: event.currentTarget.value })}>
              <option value="">any agent</option>
              {agents.kind === "ready" ? agents.value.agents.map(({ name, installed }) => <option key={name} value={name}>{oneLine(name, 60)}{installed === false ? " (not installed)" : ""}</option>) : null}
            </select>
          </Labelled>
        </div>
        <label class="check"><input type="checkbox" checked={now.isReady} onChange={(event) => change({ isReady: event.currentTarget.checked })} /> ready: an agent may take it at once; otherwise it waits in backlog</label>
        <Labelled name="guarded" error={errors.guarded}>
          <label class="check"><input id="new-guarded" type="checkbox" checked={now.isGuarded} onChange={(event) => change({ isGuarded: event.currentTarget.checked })} /> guarded: planned, reviewed and audited by agents with keys of their own</label>
        </Labelled>
        {errors.form ? <p class="problem" role="alert">{errors.form}</p> : null}
        <div class="buttons">
          <button type="submit" class="primary" disabled={isBusy}>Make it</button>
          <button type="button" onClick={() => close(which)}>Later</button>
          <span class="dim"><kbd>Ctrl</kbd> <kbd>Enter</kbd> in the text</span>
        </div>
      </form>
    </Dialog>
  );
}

const wrong = (name: Field, error: string | undefined) => (error === undefined ? {} : { "aria-invalid": true, "aria-describedby": `new-${name}-error` });

/** A field with what is wrong with it below. */
function Labelled({ name, label, error, children }: { name: Field; label?: string; error: string | undefined; children: ComponentChildren }) {
  return (
    <div class="labelled">
      {label === undefined ? children : <label for={`new-${name}`}>{label}{children}</label>}
      {error === undefined ? null : <p id={`new-${name}-error`} class="problem" role="alert">{error}</p>}
    </div>
  );
}

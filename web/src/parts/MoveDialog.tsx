// Moves a task: every status with its letter, why it cannot go where it cannot, and the reason that is kept with the move.

import type { Allowed, Status } from "@baton/sdk";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { Badge } from "./Badge.js";
import { Dialog } from "./Dialog.js";
import { moveTo, useActions } from "../state/actions.js";
import { fetched, inWords } from "../state/failure.js";
import { client, takeAnswer } from "../state/live.js";
import { LETTERS, REASON_MAX } from "../state/model.js";
import { tasks, tell } from "../state/store.js";
import { oneLine } from "../state/text.js";

const CHANGED = "W010";

interface Props {
  id: string;
  /** Where it was dropped. */
  to?: Status | undefined;
  onClose: () => void;
}

export function MoveDialog({ id, to: first, onClose }: Props) {
  const task = tasks.value.get(id);
  const { actions, again, known: answer } = useActions(id, task?.rev);
  const [chosen, choose] = useState<Status | undefined>(first);
  const [reason, setReason] = useState("moved on the page");
  const [said, say] = useState("");
  const [isBusy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  const [began] = useState(task?.status);
  useEffect(() => {
    if (chosen === undefined) return;
    field.current?.focus();
    field.current?.select();
  }, [chosen]);
  // Letters choose wherever the focus is in the dialog, but where somebody writes: from the very next key on.
  useLayoutEffect(() => {
    const onKey = (event: KeyboardEvent) => {
      if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
      const to = LETTERS[event.key];
      if (!to) return;
      event.preventDefault();
      pick(to);
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  });
  useEffect(() => {
    if (task && began !== undefined && task.status !== began) say(`It has moved meanwhile: it is ${task.status} now.`);
  }, [task?.status]);

  const known = actions.kind === "ready" ? actions.value : undefined;
  const action: Allowed | undefined = known && chosen !== undefined ? moveTo(known, chosen) : undefined;
  const pick = (to: Status) => {
    const found = known ? moveTo(known, to) : undefined;
    if (found && !found.allowed) return say(`Not to ${to}: ${oneLine(found.why ?? "it cannot go there", 300)}`);
    say("");
    choose(to);
  };
  const submit = async () => {
    if (chosen === undefined || reason.trim() === "" || isBusy) return;
    setBusy(true);
    const asked = await answer();
    if (!asked || !moveTo(asked, chosen).allowed) return setBusy(false);
    const came = await fetched(client.moveTask(id, { to: chosen, reason: reason.trim() }, { ifMatch: { rev: asked.rev } }));
    setBusy(false);
    if (came.kind === "ready") {
      takeAnswer(came.value);
      tell("ok", `Moved to ${chosen}: ${oneLine(came.value.title, 80)}`);
      return onClose();
    }
    if (came.error.code === CHANGED) say("Not moved: the task has changed while you looked at it. This is how it stands now.");
    else say(inWords(came.error));
    again();
  };
  return (
    <Dialog title={`Move ${oneLine(task?.title ?? id, 80)}`} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        <ul class="moves" aria-label="Where to" tabIndex={-1} autofocus={first === undefined}>
          {Object.entries(LETTERS).map(([letter, to]) => (
            <MoveRow key={to} letter={letter} to={to} isHere={task?.status === to} isChosen={chosen === to} action={known ? moveTo(known, to) : undefined} onPick={() => pick(to)} />
          ))}
        </ul>
        {actions.kind === "broken" ? <p class="problem" role="alert">{inWords(actions.error)} <button type="button" onClick={again}>Try again</button></p> : null}
        {chosen === undefined ? <p class="dim">Choose where, by its letter.</p> : action && !action.allowed ? (
          <p class="problem" role="alert">Not to {chosen}: {oneLine(action.why ?? "it cannot go there", 300)}</p>
        ) : (
          <label>Why it goes to {chosen}
            <input ref={field} value={reason} maxLength={REASON_MAX} required onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        )}
        {said ? <p class="problem" role="alert">{said}</p> : null}
        <div class="buttons">
          <button type="submit" class="primary" disabled={chosen === undefined || action?.allowed === false || reason.trim() === "" || isBusy}>{chosen === undefined ? "Move" : `Move to ${chosen}`}</button>
          <button type="button" onClick={onClose}>Leave it</button>
        </div>
      </form>
    </Dialog>
  );
}

interface RowProps {
  letter: string;
  to: Status;
  isHere: boolean;
  isChosen: boolean;
  action: Allowed | undefined;
  onPick: () => void;
}

function MoveRow({ letter, to, isHere, isChosen, action, onPick }: RowProps) {
  const isOff = isHere || action?.allowed === false;
  const why = isHere ? "it is here" : action === undefined ? "…" : action.allowed ? "" : oneLine(action.why ?? "not from here", 300);
  return (
    <li>
      <button type="button" class={`move ${isChosen ? "is-chosen" : ""}`} aria-pressed={isChosen} aria-disabled={isOff} data-to={to} onClick={onPick}>
        <kbd>{letter}</kbd><Badge status={to} /><span class="why">{why}</span>
      </button>
    </li>
  );
}

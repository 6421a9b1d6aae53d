// What is asked before something is done: how far an approval goes, why something is rejected, where a task is to go.

import type { Status, Task } from "@baton/sdk";
import { useState } from "preact/hooks";
import { Badge } from "../../parts/Badge.js";
import { Dialog } from "../../parts/Dialog.js";
import { LETTERS } from "../../state/model.js";
import { approve, move, reject } from "./deeds.js";
import type { TaskModel } from "./state.js";
import { phaseName } from "./story.js";

export type Asked = "approve" | "reject" | "move";
const REASON_MAX = 512;

interface Props {
  model: TaskModel;
  task: Task;
  onClose: () => void;
}

export function Dialogs({ asked, ...props }: Props & { asked: Asked }) {
  switch (asked) {
    case "approve":
      return <Approve {...props} />;
    case "reject":
      return <Reject {...props} />;
    case "move":
      return <Move {...props} />;
  }
}

function Approve({ model, task, onClose }: Props) {
  const say = (all: boolean) => { void approve(model, all); onClose(); };
  return (
    <Dialog title={`Approve ${task.id}`} onClose={onClose}>
      <p>It is in {phaseName(task.phase)}.</p>
      <div class="buttons">
        <button type="button" class="primary" autofocus onClick={() => say(false)}>Approve</button>
        {task.phase !== "READY_FOR_MERGE" ? <button type="button" onClick={() => say(true)}>Approve all phases</button> : null}
      </div>
    </Dialog>
  );
}

function Reject({ model, task, onClose }: Props) {
  const [reason, setReason] = useState("");
  const say = async (event: Event) => {
    event.preventDefault();
    // What was written stays where it could not be sent.
    if (reason.trim() !== "" && await reject(model, reason.trim())) onClose();
  };
  return (
    <Dialog title={`Reject ${task.id}`} onClose={onClose}>
      <form onSubmit={(event) => void say(event)}>
        <label>Why: it is told to whoever does it again
          <textarea autofocus required maxLength={REASON_MAX} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        <div class="buttons"><button type="submit" class="danger" disabled={reason.trim() === "" || model.isBusy.value}>Reject</button></div>
      </form>
    </Dialog>
  );
}

const letterOf = (status: Status): string => Object.entries(LETTERS).find(([, to]) => to === status)?.[0] ?? "";

function Move({ model, task, onClose }: Props) {
  const [reason, setReason] = useState("");
  const moves = model.actions.value?.moves.filter((one) => one.allowed) ?? [];
  const say = async (to: Status) => { if (await move(model, to, reason)) onClose(); };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
    const found = moves.find((one) => letterOf(one.to) === event.key);
    if (!found) return;
    event.preventDefault();
    void say(found.to);
  };
  return (
    <Dialog title={`Move ${task.id}`} onClose={onClose}>
      <div class="move" onKeyDown={onKeyDown}>
        <p>It is in <Badge status={task.status} />. Where to? What cannot follow is in “More”.</p>
        <ul class="move-choices">
          {moves.map((one, at) => (
            <li key={one.to}>
              <button type="button" autofocus={at === 0} disabled={model.isBusy.value} onClick={() => void say(one.to)}>
                <Badge status={one.to} /> <kbd>{letterOf(one.to)}</kbd>
              </button>
            </li>
          ))}
        </ul>
        <label>Why (if you like)
          <input maxLength={REASON_MAX} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
      </div>
    </Dialog>
  );
}

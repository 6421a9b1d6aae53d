// What is asked before something is done: how far an approval goes, why something is rejected, where a task is to go.

import type { Task } from "@baton/sdk";
import { useState } from "preact/hooks";
import { Dialog } from "../../parts/Dialog.js";
import { MoveDialog } from "../../parts/MoveDialog.js";
import { REASON_MAX } from "../../state/model.js";
import { approve, reject } from "./deeds.js";
import type { TaskModel } from "./state.js";
import { phaseName } from "./story.js";

export type Asked = "approve" | "reject" | "move";

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
      return <MoveDialog id={props.task.id} onClose={props.onClose} />;
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

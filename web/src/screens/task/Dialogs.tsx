// What is asked before something is done: how far an approval goes, why something is rejected, where a task is to go.

import type { Task } from "@baton/sdk";
import { useState } from "preact/hooks";
import { Dialog } from "../../parts/Dialog.js";
import { MoveDialog } from "../../parts/MoveDialog.js";
import { Changed, useSeen } from "../../parts/Seen.js";
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
  const { seen, change, lookAgain } = useSeen(task);
  const say = (all: boolean) => {
    if (seen) void approve(model, seen, all);
    onClose();
  };
  return (
    <Dialog title={`Approve ${task.id}`} onClose={onClose}>
      {change === undefined ? <p>It is in {phaseName(task.phase)}.</p> : <Changed words={change} onLook={lookAgain} />}
      <div class="buttons">
        <button type="button" class="primary" autofocus disabled={change !== undefined} onClick={() => say(false)}>Approve</button>
        {task.phase !== "READY_FOR_MERGE" ? <button type="button" disabled={change !== undefined} onClick={() => say(true)}>Approve all phases</button> : null}
      </div>
    </Dialog>
  );
}

function Reject({ model, task, onClose }: Props) {
  const [reason, setReason] = useState("");
  const { seen, change, lookAgain } = useSeen(task);
  const isBusy = model.isBusy.value;
  const say = async (event: Event) => {
    event.preventDefault();
    if (seen === undefined || change !== undefined || reason.trim() === "") return;
    // What was written stays where it could not be sent.
    if (await reject(model, seen, reason.trim())) onClose();
  };
  return (
    <Dialog title={`Reject ${task.id}`} onClose={onClose}>
      <form onSubmit={(event) => void say(event)}>
        <label>Why: it is told to whoever does it again
          <textarea autofocus required maxLength={REASON_MAX} value={reason} onInput={(event) => setReason(event.currentTarget.value)} />
        </label>
        {change === undefined || isBusy ? null : <Changed words={change} onLook={lookAgain} />}
        <div class="buttons"><button type="submit" class="danger" disabled={reason.trim() === "" || change !== undefined || isBusy}>Reject</button></div>
      </form>
    </Dialog>
  );
}

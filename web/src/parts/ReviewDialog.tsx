// Says yes or no to a task in review: to what was looked at when it was opened.

import { useState } from "preact/hooks";
import { Dialog } from "./Dialog.js";
import { Changed, useSeen } from "./Seen.js";
import { useActions } from "../state/actions.js";
import { fetched, inWords } from "../state/failure.js";
import { client, takeAnswer } from "../state/live.js";
import { REASON_MAX } from "../state/model.js";
import { toWhatWasSeen } from "../state/seen.js";
import { tasks, tell } from "../state/store.js";
import { oneLine } from "../state/text.js";

const STEPWISE = ["READY_FOR_REVIEW", "REVIEW"];

export function ReviewDialog({ id, kind, onClose }: { id: string; kind: "approve" | "reject"; onClose: () => void }) {
  const task = tasks.value.get(id);
  const { actions, again, known } = useActions(id, task?.rev);
  const { seen, change, lookAgain } = useSeen(task);
  const [reason, setReason] = useState("");
  const [isAll, setAll] = useState(false);
  const [said, say] = useState("");
  const [isBusy, setBusy] = useState(false);
  const action = actions.kind === "ready" ? actions.value[kind] : undefined;
  const isYes = kind === "approve";
  const isWanting = change !== undefined || (!isYes && reason.trim() === "");
  const submit = async () => {
    if (isBusy || seen === undefined || isWanting) return;
    setBusy(true);
    const asked = await known();
    if (!asked?.[kind].allowed) return setBusy(false);
    const came = await fetched(toWhatWasSeen(seen, () => client.getTask(id), (options) =>
      (isYes ? client.approveTask(id, isAll ? { all: true } : {}, options) : client.rejectTask(id, { reason: reason.trim() }, options))));
    setBusy(false);
    if (came.kind === "ready") {
      takeAnswer(came.value);
      tell("ok", `${isYes ? "Approved" : "Rejected"}: ${oneLine(came.value.title, 80)}, now ${came.value.status}`);
      return onClose();
    }
    say(came.error.code === "W010" ? "Not done: the task has changed while you looked at it. Look again." : inWords(came.error));
    again();
  };
  return (
    <Dialog title={`${isYes ? "Approve" : "Reject"} ${oneLine(task?.title ?? id, 80)}`} onClose={onClose}>
      <form onSubmit={(event) => { event.preventDefault(); void submit(); }}>
        {action && !action.allowed ? <p class="problem" role="alert">Not possible: {oneLine(action.why ?? "not now", 300)}</p> : null}
        {change === undefined || isBusy ? null : <Changed words={change} onLook={() => { say(""); lookAgain(); }} />}
        {actions.kind === "broken" ? <p class="problem" role="alert">{inWords(actions.error)} <button type="button" onClick={again}>Try again</button></p> : null}
        {isYes && STEPWISE.includes(task?.phase ?? "") ? (
          <label class="check"><input type="checkbox" checked={isAll} onChange={(event) => setAll(event.currentTarget.checked)} /> through every phase that is left, to done</label>
        ) : null}
        {isYes ? null : (
          <label>What is wrong with it, for whoever takes it up again
            <input value={reason} autofocus maxLength={REASON_MAX} required onInput={(event) => setReason(event.currentTarget.value)} />
          </label>
        )}
        {said ? <p class="problem" role="alert">{said}</p> : null}
        <div class="buttons">
          <button type="submit" class="primary" autofocus={isYes} aria-disabled={action?.allowed === false || isWanting}>{isYes ? "Approve" : "Reject"}</button>
          <button type="button" onClick={onClose}>Leave it</button>
        </div>
      </form>
    </Dialog>
  );
}

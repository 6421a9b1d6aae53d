// What a person does to a task from this screen.

import { BatonError, type EditTaskBody, type Task } from "@baton/sdk";
import { act, failureOf, inWords } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { seenOf, toWhatWasSeen } from "../../state/seen.js";
import { tell } from "../../state/store.js";
import { textOf, type Draft, type TaskModel } from "./state.js";

/** Does one thing at a time, says what came of it, and looks at the task again. */
async function change(model: TaskModel, work: () => Promise<unknown>, done: string): Promise<boolean> {
  if (model.isBusy.value) return false;
  model.isBusy.value = true;
  const isDone = await act(work(), done);
  model.isBusy.value = false;
  model.refresh();
  return isDone;
}

/** Approves what is shown, in one click; `ReviewDialog` does what is asked before. */
export function approve(model: TaskModel, shown: Task, all: boolean): Promise<boolean> {
  const work = () => toWhatWasSeen(seenOf(shown), () => client.getTask(model.id), (options) => client.approveTask(model.id, all ? { all } : {}, options));
  return change(model, work, all ? "Approved, through every phase" : "Approved");
}

export const retry = (model: TaskModel): Promise<boolean> => change(model, () => client.retryTask(model.id), "It gets another chance");

export async function addLine(model: TaskModel): Promise<void> {
  const text = model.line.value.trim();
  if (text === "") return;
  if (await change(model, () => client.logTask(model.id, { text }), "Added to the work log")) model.line.value = "";
}

/** Says something about a file to whoever works on the task next: reasons and remarks are told to them from the work log. */
export const comment = (model: TaskModel, path: string, text: string): Promise<boolean> =>
  change(model, () => client.logTask(model.id, { text: `${path}: ${text}` }), "Added to the work log");

export function openDraft(model: TaskModel): void {
  const base = model.whole.value;
  if (!base) return;
  model.draft.value = { base, title: base.title, priority: base.priority, text: textOf(base.body ?? ""), isSaving: false, other: undefined };
}

type Field = "title" | "priority" | "text";
const valueOf = (task: Task, field: Field): string => (field === "text" ? textOf(task.body ?? "") : task[field]);

/** Fields that differ between two states of a task. */
export const differences = (before: Task, after: Task): readonly Field[] =>
  (["title", "priority", "text"] as const).filter((field) => valueOf(before, field).trimEnd() !== valueOf(after, field).trimEnd());

/** How often a change is made again that was only overtaken by something that is not in its way. */
const TRIES_MAX = 8;

/** Saves what was written, to the very state that it was written for. `over` is the state that a person wants to write over. */
export async function save(model: TaskModel, over?: Task): Promise<void> {
  const draft = model.draft.value;
  if (!draft || draft.isSaving) return;
  const wanted = wishOf(draft);
  if (Object.keys(wanted).length === 0) {
    model.draft.value = undefined;
    return;
  }
  model.draft.value = { ...draft, isSaving: true };
  const put = (changes: Partial<Draft>) => {
    if (model.draft.value) model.draft.value = { ...model.draft.value, isSaving: false, ...changes };
  };
  let state = over ?? draft.base;
  for (let tries = 1; ; tries += 1) {
    try {
      await client.editTask(model.id, wanted, { ifMatch: state });
      model.draft.value = undefined;
      tell("ok", "Saved");
      break;
    } catch (error) {
      if (!(error instanceof BatonError && error.status === 412)) {
        tell("bad", `Not saved, your text is still here: ${inWords(failureOf(error))}`);
        put({});
        break;
      }
    }
    try {
      const fresh = await client.getTask(model.id);
      // A beat or a line of the log changes nothing that is written here.
      if (differences(over ?? draft.base, fresh).length > 0 || tries >= TRIES_MAX) {
        put({ other: fresh });
        break;
      }
      state = fresh;
    } catch (error) {
      tell("bad", `Not saved, your text is still here: ${inWords(failureOf(error))}`);
      put({});
      break;
    }
  }
  model.refresh();
}

/** Only what was changed is sent. */
function wishOf({ base, title, priority, text }: Draft): EditTaskBody {
  return {
    ...(title !== base.title ? { title } : {}),
    ...(priority !== base.priority ? { priority: priority as NonNullable<EditTaskBody["priority"]> } : {}),
    ...(text !== textOf(base.body ?? "") ? { body: text } : {}),
  };
}

// Writing: title, priority and text. Where somebody else was faster, what was written stays, and what changed is shown beside it.

import type { Task } from "@baton/sdk";
import { Time } from "../../parts/Time.js";
import { bytes } from "../../state/format.js";
import { PRIORITIES } from "../../state/model.js";
import { oneLine } from "../../state/text.js";
import { differences, openDraft, save } from "./deeds.js";
import { lineChanges } from "./diff.js";
import { Lines } from "./Changes.js";
import { textOf, type Draft, type TaskModel } from "./state.js";

const TITLE_MAX = 256;
const TEXT_MAX = 131_072;

export function Edit({ model, draft }: { model: TaskModel; draft: Draft }) {
  const put = (changes: Partial<Draft>) => { model.draft.value = { ...draft, ...changes }; };
  const onSubmit = (event: Event) => {
    event.preventDefault();
    void save(model, draft.other);
  };
  return (
    <section class="panel" aria-label="Edit">
      {draft.other ? <Conflict model={model} draft={draft} other={draft.other} /> : null}
      <form class="stack" onSubmit={onSubmit} onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) onSubmit(event);
      }}>
        <label>Title <input required maxLength={TITLE_MAX} value={draft.title} onInput={(event) => put({ title: event.currentTarget.value })} /></label>
        <label>Priority
          <select value={draft.priority} onChange={(event) => put({ priority: event.currentTarget.value })}>
            {PRIORITIES.map((one) => <option key={one} value={one}>{one}</option>)}
          </select>
        </label>
        <label>Text, in Markdown
          <textarea class="edit-text" rows={16} maxLength={TEXT_MAX} value={draft.text} onInput={(event) => put({ text: event.currentTarget.value })} />
        </label>
        <div class="buttons">
          <button type="submit" class="primary" disabled={draft.isSaving || draft.title.trim() === ""}>{draft.other ? "Save mine over it" : "Save"}</button>
          <button type="button" disabled={draft.isSaving} onClick={() => { model.draft.value = undefined; }}>Cancel</button>
          <span class="grows" />
          <span class="dim">{bytes(draft.text.length)}; the work log stays as it is</span>
        </div>
      </form>
    </section>
  );
}

function Conflict({ model, draft, other }: { model: TaskModel; draft: Draft; other: Task }) {
  const fields = differences(draft.base, other);
  const edits = model.story.value.events.filter((event) => event.type === "task.edited" && event.seq > draft.base.rev);
  const last = edits.at(-1);
  const names = fields.length === 0 ? "something else about it" : fields.join(" and ");
  const takeTheirs = () => {
    model.whole.now.value = { kind: "ready", value: other };
    openDraft(model);
  };
  return (
    <div class="conflict" role="alert">
      <h2>Not saved: {names} changed meanwhile</h2>
      <p>Your text is below, as you wrote it.{last ? <> The last edit was by <bdi>{oneLine(last.actor.agent, 80)}</bdi>, <Time at={last.at} />.</> : null}</p>
      {fields.includes("title") ? <p>The title is now “<bdi>{oneLine(other.title, 300)}</bdi>”.</p> : null}
      {fields.includes("priority") ? <p>The priority is now {oneLine(other.priority, 40)}.</p> : null}
      {fields.includes("text") ? (
        <>
          <p>The text was changed in these lines:</p>
          <Lines label="What changed in the text" lines={lineChanges(textOf(draft.base.body ?? ""), textOf(other.body ?? ""))} />
        </>
      ) : null}
      <div class="buttons"><button type="button" onClick={takeTheirs}>Take theirs, drop mine</button></div>
    </div>
  );
}

// What is to be done: the text of the task, where its file is, what it belongs to, and what is known of it.

import type { Task } from "@baton/sdk";
import { taskPath } from "../../router.js";
import { Badge } from "../../parts/Badge.js";
import { copy } from "../../parts/Id.js";
import { Markdown } from "../../parts/Markdown.js";
import { Empty, Loading } from "../../parts/States.js";
import { Text } from "../../parts/Text.js";
import { Time } from "../../parts/Time.js";
import { tasks } from "../../state/store.js";
import { tagsOf } from "../../state/model.js";
import { oneLine, shown } from "../../state/text.js";
import { openDraft } from "./deeds.js";
import { Edit } from "./Edit.js";
import { textOf, type TaskModel } from "./state.js";

export function Brief({ model, task }: { model: TaskModel; task: Task }) {
  const body = model.body.value;
  const draft = model.draft.value;
  return (
    <div class="brief">
      <div class="brief-text">
        {draft ? <Edit model={model} draft={draft} /> : body === undefined ? <Loading what="the text" /> : (
          <section class="panel" aria-label="Text">
            <div class="buttons brief-bar">
              <FilePath task={task} />
              <span class="grows" />
              <button type="button" onClick={() => openDraft(model)}>Edit</button>
            </div>
            {textOf(body).trim() === "" ? <Empty title="No text"><p>The title is all that is said.</p></Empty> : <Markdown text={textOf(body)} />}
          </section>
        )}
      </div>
      <Facts task={task} />
    </div>
  );
}

/** Where its file is, in the data directory. */
function FilePath({ task }: { task: Task }) {
  const path = `tasks/${task.status}/${task.id}.md`;
  return <button type="button" class="id path" title={`${path}: copy`} onClick={() => void copy(path, "The path")}>{path}</button>;
}

/** A task by its id, as a link, with how it stands where that is known. */
export function TaskLink({ id }: { id: string }) {
  const found = tasks.value.get(id);
  return (
    <span class="task-link">
      <a href={taskPath(id)}>{id}</a>{" "}
      {found ? <><Badge status={found.status} /> <bdi class="dim">{oneLine(found.title, 80)}</bdi></> : null}
    </span>
  );
}

function Facts({ task }: { task: Task }) {
  const depends = task.dependsOn ?? [];
  const tags = tagsOf(task);
  const role = task.routing?.["role"];
  const metadata = Object.entries(task.metadata ?? {});
  const by = task["createdBy"];
  return (
    <section class="panel" aria-label="Facts">
      <dl class="facts">
        <dt>Created</dt><dd><Time at={task.createdAt} />{typeof by === "string" ? <> by <bdi>{oneLine(by, 80)}</bdi></> : null}</dd>
        <dt>Changed</dt><dd><Time at={task.updatedAt} /></dd>
        {typeof task["notBefore"] === "string" ? <><dt>Not before</dt><dd><Time at={task["notBefore"]} /></dd></> : null}
        {task.parentId ? <><dt>Part of</dt><dd><TaskLink id={task.parentId} /></dd></> : null}
        <dt>Depends on</dt>
        <dd>{depends.length === 0 ? "nothing" : depends.map((id) => <div key={id}><TaskLink id={id} /></div>)}</dd>
        {typeof role === "string" ? <><dt>Role</dt><dd>{oneLine(role, 80)}</dd></> : null}
        {tags.length > 0 ? <><dt>Tags</dt><dd>{oneLine(tags.join(", "), 300)}</dd></> : null}
        {task["guarded"] === true ? <><dt>Guarded</dt><dd>yes: its work is recorded role by role</dd></> : null}
        {metadata.map(([name, value]) => <><dt key={name}>{oneLine(name, 60)}</dt><dd><Value value={value} /></dd></>)}
      </dl>
    </section>
  );
}

function Value({ value }: { value: unknown }) {
  const text = shown(value);
  return text.length > 120 || text.includes("\n") ? <Text text={text} max={2000} /> : <bdi>{oneLine(text)}</bdi>;
}

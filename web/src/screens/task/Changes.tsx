// What was changed in the place where the task is worked on, file by file.

import { useState } from "preact/hooks";
import { copy } from "../../parts/Id.js";
import { Broken, Empty, Loading } from "../../parts/States.js";
import { plural, shortHash } from "../../state/format.js";
import { oneLine, plain } from "../../state/text.js";
import type { ChangedFile } from "./answers.js";
import { comment } from "./deeds.js";
import { linesOf, type Line } from "./diff.js";
import type { TaskModel } from "./state.js";

export function Changes({ model }: { model: TaskModel }) {
  const state = model.changes.now.value;
  if (state.kind === "loading") return <Loading what="the changes" />;
  if (state.kind === "broken") return <Broken what="The changes" error={state.error} retry={model.changes.retry} />;
  const { where, path, branch, base, note, files, isTruncated } = state.value;
  const added = files.reduce((sum, file) => sum + file.added, 0);
  const removed = files.reduce((sum, file) => sum + file.removed, 0);
  return (
    <section aria-label="Changes">
      <div class="buttons changes-bar">
        {files.length > 0 ? <strong>{plural(files.length, "file")}</strong> : null}
        {files.length > 0 ? <Counts added={added} removed={removed} /> : null}
        {where === "none" ? null : (
          <span class="dim">
            in the {where}{branch ? <> on <code>{oneLine(branch, 120)}</code></> : null}{base ? <> since <code>{shortHash(base)}</code></> : null}
          </span>
        )}
        {path ? <button type="button" class="id path" title="copy" onClick={() => void copy(path, "The path")}>{oneLine(path, 300)}</button> : null}
        <span class="grows" />
        <button type="button" onClick={() => model.changes.refresh()}>Look again</button>
      </div>
      {note ? <p class="dim">{plain(note)}</p> : null}
      {files.length === 0 && !note ? <Empty title="Nothing is changed"><p>What an agent writes in the task's place of work appears here.</p></Empty> : null}
      {files.map((file) => <File key={file.path} model={model} file={file} isOpen={files.length === 1} />)}
      {isTruncated ? <p class="warned">There is more than is shown here: look at the folder itself.</p> : null}
    </section>
  );
}

function Counts({ added, removed }: { added: number; removed: number }) {
  return <span class="counts"><span class="is-added">+{added}</span> <span class="is-removed">−{removed}</span></span>;
}

function File({ model, file, isOpen: isFirstOpen }: { model: TaskModel; file: ChangedFile; isOpen: boolean }) {
  const [isOpen, setOpen] = useState(isFirstOpen);
  const name = file.oldPath ? `${file.oldPath} → ${file.path}` : file.path;
  return (
    <details class="file" open={isOpen} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="file-name"><bdi>{oneLine(name, 400)}</bdi></span>
        <span class="dim">{file.status}</span>
        {file.isBinary ? <span class="dim">binary</span> : <Counts added={file.added} removed={file.removed} />}
        {file.isTruncated ? <span class="warned">cut</span> : null}
      </summary>
      {isOpen ? <><Patch file={file} /><Comment model={model} path={file.path} /></> : null}
    </details>
  );
}

function Patch({ file }: { file: ChangedFile }) {
  const lines = file.patch ? linesOf(file.patch) : [];
  return (
    <>
      {file.isBinary ? <p class="dim file-note">A binary file: its bytes are not shown.</p> : null}
      {lines.length > 0 ? <Lines label={`Changes of ${oneLine(file.path)}`} lines={lines} /> : null}
      {lines.length === 0 && !file.isBinary ? <p class="dim file-note">No lines to show.</p> : null}
      {file.isTruncated ? <p class="warned file-note">It is longer than is shown here: the rest is cut off.</p> : null}
    </>
  );
}

/** A remark about a file, for whoever works on it next. */
function Comment({ model, path }: { model: TaskModel; path: string }) {
  const [text, setText] = useState("");
  const say = async (event: Event) => {
    event.preventDefault();
    if (text.trim() !== "" && await comment(model, path, text.trim())) setText("");
  };
  return (
    <form class="comment" onSubmit={(event) => void say(event)}>
      <input aria-label={`A comment on ${oneLine(path)}`} placeholder="Comment: it goes to the work log, for whoever works on it next" maxLength={9000}
        value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="submit" disabled={model.isBusy.value || text.trim() === ""}>Comment</button>
    </form>
  );
}

const SIGNS = { same: " ", added: "+", removed: "−", hunk: "", note: "" } as const;
const SAID = { same: "", added: "added", removed: "removed", hunk: "", note: "" } as const;
const LINES_MAX = 1000;
const CHARS_MAX = 2000;

/** Lines of a diff, as a table. */
export function Lines({ label, lines }: { label: string; lines: readonly Line[] }) {
  const [limit, setLimit] = useState(LINES_MAX);
  return (
    <div class="scrolls" role="region" aria-label={label} tabIndex={0}>
      <table class="diff">
        <thead class="aside"><tr><th>before</th><th>after</th><th>sign</th><th>text</th></tr></thead>
        <tbody>
          {lines.slice(0, limit).map((line, at) => (
            <tr key={at} class={`is-${line.kind}`}>
              <td class="number">{line.before}</td>
              <td class="number">{line.after}</td>
              <td class="sign"><span aria-hidden="true">{SIGNS[line.kind]}</span><span class="aside">{SAID[line.kind]}</span></td>
              <td class="code"><Cut text={line.text} /></td>
            </tr>
          ))}
        </tbody>
      </table>
      {lines.length > limit
        ? <button type="button" class="more" onClick={() => setLimit(limit + LINES_MAX * 4)}>{plural(lines.length - limit, "more line")}: show</button> : null}
    </div>
  );
}

/** A line, cut where it is very long. */
function Cut({ text }: { text: string }) {
  const [limit, setLimit] = useState(CHARS_MAX);
  return (
    <>
      {plain(text.slice(0, limit))}
      {text.length > limit
        ? <button type="button" class="more" onClick={() => setLimit(limit + 50_000)}>{text.length - limit} more characters: show</button> : null}
    </>
  );
}

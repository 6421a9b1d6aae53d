// What is asked for on the board. It all stands in the address.

import { ask } from "../../router.js";
import { PRIORITIES } from "../../state/model.js";
import { oneLine } from "../../state/text.js";
import { choices, clearFilters, filter, isFiltered, move, selected } from "./state.js";

export const SEARCH_ID = "board-search";

export function Filters() {
  const { text, agent, tag, priority, hasEnded } = filter.value;
  const { agents, tags } = choices.value;
  return (
    <div class="filters" role="search" aria-label="Filters">
      <input id={SEARCH_ID} type="search" placeholder="Search (/)" aria-label="Search in ids, titles, agents, tags and phases" value={text}
        onInput={(event) => ask({ q: event.currentTarget.value })}
        onKeyDown={(event) => {
          if (event.key !== "Escape" && event.key !== "Enter" && event.key !== "ArrowDown") return;
          event.preventDefault();
          event.currentTarget.blur();
          if (event.key !== "Escape") { selected.value = undefined; move(0, 1); }
        }} />
      <Choice name="agent" value={agent} values={agents} />
      {tags.length > 0 || tag !== "" ? <Choice name="tag" value={tag} values={tags} /> : null}
      <Choice name="priority" value={priority} values={PRIORITIES} />
      <label class="check" title="Columns for what was cancelled and what was given up"><input type="checkbox" checked={hasEnded} onChange={(event) => ask({ ended: event.currentTarget.checked ? "1" : "" })} /> ended</label>
      {isFiltered.value || hasEnded ? <button type="button" class="quiet" onClick={clearFilters}>Clear</button> : null}
    </div>
  );
}

function Choice({ name, value, values }: { name: string; value: string; values: readonly string[] }) {
  const shown = value === "" || values.includes(value) ? values : [value, ...values];
  return (
    <select aria-label={name} value={value} class={value === "" ? "" : "is-set"} onChange={(event) => ask({ [name]: event.currentTarget.value })}>
      <option value="">{name}: any</option>
      {shown.map((one) => <option key={one} value={one}>{oneLine(one, 60)}</option>)}
    </select>
  );
}

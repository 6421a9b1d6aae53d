// What a payload says, as fields to be read. All of it is somebody else's text.

import { Text } from "../../parts/Text.js";
import { oneLine, plain, shown } from "../../state/text.js";

const DEPTH_MAX = 4;
const FIELDS_MAX = 200;
const SHORT = 120;
const LIST_MAX = 50;

export function Fields({ value, depth = 0 }: { value: { readonly [name: string]: unknown }; depth?: number }) {
  const names = Object.keys(value);
  if (names.length === 0) return <p class="dim">nothing</p>;
  return (
    <dl class="facts payload-fields">
      {names.slice(0, FIELDS_MAX).map((name) => (
        <div key={name} class="payload-field"><dt><bdi>{oneLine(name, 80)}</bdi></dt><dd><Value value={value[name]} depth={depth} /></dd></div>
      ))}
      {names.length > FIELDS_MAX ? <div class="payload-field"><dt>…</dt><dd class="dim">{names.length - FIELDS_MAX} more: see the bytes</dd></div> : null}
    </dl>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (typeof value === "string") {
    const isShort = value.length <= SHORT && !value.includes("\n");
    return isShort ? <bdi class="payload-text">{value === "" ? <span class="dim">empty</span> : plain(value)}</bdi> : <Text text={value} />;
  }
  if (typeof value !== "object" || value === null) return <code>{String(value)}</code>;
  if (depth >= DEPTH_MAX) return <Text text={shown(value)} />;
  if (!Array.isArray(value)) return <Fields value={value as { readonly [name: string]: unknown }} depth={depth + 1} />;
  if (value.length === 0) return <span class="dim">none</span>;
  return (
    <ol class="payload-list">
      {value.slice(0, LIST_MAX).map((item, at) => <li key={at}><Value value={item} depth={depth + 1} /></li>)}
      {value.length > LIST_MAX ? <li class="dim">{value.length - LIST_MAX} more: see the bytes</li> : null}
    </ol>
  );
}

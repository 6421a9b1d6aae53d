// Text of whatever origin and length, as text: cut where it is long, with more of it on request.

import { useState } from "preact/hooks";
import { bytes } from "../state/format.js";
import { plain, SHOWN_MAX } from "../state/text.js";

export function Text({ text, class: name = "", max = SHOWN_MAX }: { text: string; class?: string; max?: number }) {
  const [limit, setLimit] = useState(max);
  const rest = text.length - limit;
  return (
    <>
      <pre class={`text ${name}`} dir="auto" tabIndex={0}>{plain(text.slice(0, limit))}</pre>
      {rest > 0 ? (
        <button type="button" class="more" onClick={() => setLimit(limit + Math.max(max, 100_000))}>
          {bytes(rest)} more: show
        </button>
      ) : null}
    </>
  );
}

// The wire: the last items of the stream as they came, the newest last, each of which opens.

import { useSignal } from "@preact/signals";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Text } from "../../parts/Text.js";
import { bytes, plural } from "../../state/format.js";
import { oneLine } from "../../state/text.js";
import { memo } from "./memo.js";
import type { SessionFile } from "./state.js";
import { brief, laidOut, type Frame, type Wire } from "./wire.js";

/** So near to the end counts as there. */
const NEAR_PX = 24;

export function Frames({ file }: { file: SessionFile }) {
  const box = useRef<HTMLOListElement>(null);
  const isAtEnd = useRef(true);
  // Whoever reads one wants it to stay where it is.
  const held = useSignal<Wire | undefined>(undefined);
  const wire = held.value ?? file.wire.value;
  useLayoutEffect(() => { if (box.current && isAtEnd.current) box.current.scrollTop = box.current.scrollHeight; }, [wire]);
  if (wire.count === 0) return <p class="dim">Nothing has come yet.</p>;
  const before = wire.count - wire.frames.length;
  return (
    <>
      <div class="wire-head">
        <span class="dim">As it came, the newest last{before > 0 ? `; ${plural(before, "item")} before these are not here any more` : ""}.</span>
        <button type="button" class="quiet" aria-pressed={held.value !== undefined} onClick={() => { held.value = held.value ? undefined : file.wire.peek(); }}>{held.value ? "held" : "hold"}</button>
      </div>
      <ol ref={box} class="wire" aria-label="Frames" tabIndex={0} onScroll={({ currentTarget: list }) => { isAtEnd.current = list.scrollTop + list.clientHeight >= list.scrollHeight - NEAR_PX; }}>
        {wire.frames.map((frame) => <One key={frame.key} frame={frame} />)}
      </ol>
    </>
  );
}

const One = memo(({ frame }: { frame: Frame }) => {
  const isOpen = useSignal(false);
  return (
    <li>
      <details class="fold" onToggle={(event) => { isOpen.value = event.currentTarget.open; }}>
        <summary>
          <span class="dim wire-at">{frame.at}</span>
          <code class="fold-name"><bdi>{oneLine(frame.type || frame.channel, 60)}</bdi></code>
          <span class="fold-text dim"><bdi>{oneLine(brief(frame), 160)}</bdi></span>
        </summary>
        {isOpen.value && frame.cutFrom !== undefined ? <p class="dim">The first {bytes(frame.json.length)} of {bytes(frame.cutFrom)}.</p> : null}
        {isOpen.value ? <Text text={laidOut(frame)} /> : null}
      </details>
    </li>
  );
});

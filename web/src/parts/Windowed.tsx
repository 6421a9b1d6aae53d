// A long list of which only what is seen is drawn. Rows are all as high as each other.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

const BEYOND = 6;

interface Props {
  count: number;
  rowHeight: number;
  label: string;
  row: (index: number) => ComponentChildren;
  /** Is brought into sight when it changes. */
  focus?: number | undefined;
  class?: string;
  /** Whether the end is followed as long as it is in sight. */
  sticks?: boolean;
}

export function Windowed({ count, rowHeight, label, row, focus, class: name = "", sticks = false }: Props) {
  const element = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState({ top: 0, height: 800 });
  const atEnd = useRef(true);
  const look = () => {
    const box = element.current;
    if (!box) return;
    atEnd.current = box.scrollTop + box.clientHeight >= box.scrollHeight - rowHeight;
    setSeen((before) => (before.top === box.scrollTop && before.height === box.clientHeight ? before : { top: box.scrollTop, height: box.clientHeight }));
  };
  useEffect(() => {
    const box = element.current;
    if (!box) return;
    const watcher = new ResizeObserver(look);
    watcher.observe(box);
    return () => watcher.disconnect();
  }, []);
  useLayoutEffect(() => {
    const box = element.current;
    if (!box || focus === undefined) return;
    const top = focus * rowHeight;
    if (top < box.scrollTop) box.scrollTop = top;
    else if (top + rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = top + rowHeight - box.clientHeight;
  }, [focus, rowHeight]);
  useLayoutEffect(() => {
    const box = element.current;
    if (box && sticks && atEnd.current) box.scrollTop = box.scrollHeight;
  }, [count]);
  const first = Math.max(0, Math.floor(seen.top / rowHeight) - BEYOND);
  const last = Math.min(count, Math.ceil((seen.top + seen.height) / rowHeight) + BEYOND);
  const rows = [];
  for (let index = first; index < last; index += 1) {
    rows.push(
      <div key={index} role="listitem" aria-setsize={count} aria-posinset={index + 1} class="row" style={{ top: `${index * rowHeight}px`, height: `${rowHeight}px` }}>
        {row(index)}
      </div>,
    );
  }
  return (
    <div ref={element} class={`windowed ${name}`} role="group" aria-label={label} tabIndex={0} onScroll={look}>
      <div role="list" aria-label={label} class="rows" style={{ height: `${count * rowHeight}px` }}>{rows}</div>
    </div>
  );
}

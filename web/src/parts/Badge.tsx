// A status: colour, shape and word, so that none of them has to be seen alone.

const SHAPES: { readonly [status: string]: string } = {
  backlog: "○", ready: "◔", "in-progress": "◑", blocked: "■", review: "◇", done: "●", cancelled: "×", deadletter: "▲",
};

export function Badge({ status }: { status: string }) {
  return <span class={`badge is-${status}`}><span aria-hidden="true">{SHAPES[status] ?? "·"}</span> {status}</span>;
}

/** How well something is: passed, warned of, failed, or not known. */
export function Mark({ kind, children }: { kind: "good" | "warn" | "bad" | "off"; children: string }) {
  const shape = { good: "✓", warn: "!", bad: "✕", off: "·" }[kind];
  return <span class={`mark is-${kind}`}><span aria-hidden="true">{shape}</span> {children}</span>;
}

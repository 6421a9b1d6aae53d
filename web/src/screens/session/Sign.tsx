// How something is, as a mark of the page; and that it is at work.

import { Mark } from "../../parts/Badge.js";
import type { Kind } from "./words.js";

export function Sign({ kind, children }: { kind: Kind; children: string }) {
  if (kind !== "busy") return <Mark kind={kind}>{children}</Mark>;
  return <span class="mark is-busy"><span aria-hidden="true">◑</span> {children}</span>;
}

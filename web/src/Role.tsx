// That whoever is in may look and no more, where it is so.

import { signal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { client } from "./state/live.js";
import { link } from "./state/store.js";

/** What the token opens: asked for anew with each connection. */
const scope = signal<string | undefined>(undefined);

/** Said where it is so. */
export const looksOnly = (): string | undefined =>
  scope.value === "viewer" || scope.value === "ci" ? `Your token (${scope.value}) shows everything and changes nothing: what would is refused.` : undefined;

export function Role() {
  const isLive = link.value.kind === "live";
  useEffect(() => {
    // Where it is not known nothing is said of it, and what is refused says why.
    if (isLive) void client.getHealth().then((found) => { scope.value = found.scope; }, () => {});
  }, [isLive]);
  const why = looksOnly();
  return why === undefined ? null : <span class="mark is-warn" title={why}>view only</span>;
}

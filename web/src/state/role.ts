// What the token of whoever is in opens: asked for anew with each connection.

import { effect, signal } from "@preact/signals";
import { client } from "./live.js";
import { link } from "./store.js";

const scope = signal<string | undefined>(undefined);

export function startRole(): void {
  effect(() => {
    // Where it is not known nothing is said of it, and what is refused says why.
    if (link.value.kind === "live") void client.getHealth().then((found) => { scope.value = found.scope; }, () => {});
  });
}

/** Said where whoever is in may look and no more. */
export const looksOnly = (): string | undefined =>
  scope.value === "viewer" || scope.value === "ci" ? `Your token (${scope.value}) shows everything and changes nothing: what would is refused.` : undefined;

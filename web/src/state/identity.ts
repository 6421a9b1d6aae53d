// Whether the ledger is still the one that the page knows: a server that comes back may serve another one, or an older state of it from a backup.
//
// What the page remembers is the last event that it heard of, by its position and its hash. Where that is not in the ledger any more, nothing that is
// known counts: the page begins anew, and says why.

import { effect } from "@preact/signals";
import type { Client } from "@baton/sdk";
import { link, tell } from "./store.js";

/** What the entry of the history says of a page that began anew: it outlives the reload, and nothing else. */
const ANEW = "anew";

interface Seen {
  pos: number;
  hash: string;
}
/** The last event of which it is sure that the page's ledger has it; and the last that came over this connection. */
let seen: Seen | undefined;
let heard: Seen | undefined;
/** Whether this connection leads to the ledger that the page knows: after a break what comes may be of another one. */
let isSure = false;
let looks = 0;

/** Remembers an event of the stream. */
export function noteRecord({ pos, hash }: { pos: number; hash: string }): void {
  heard = { pos, hash };
}

/** Looks whenever the connection is there again. */
export function startIdentity(client: Client): void {
  if (history.state === ANEW) {
    history.replaceState(null, "");
    tell("bad", "This is another ledger than before, or an older state of it: everything was loaded anew.");
  }
  effect(() => {
    looks += 1;
    // Where nobody answers, or the event does not read, that is told elsewhere.
    if (link.value.kind === "live") return void look(client, looks).catch(() => undefined);
    if (heard && (isSure || !seen)) seen = heard;
    heard = undefined;
    isSure = false;
  });
}

async function look(client: Client, mine: number): Promise<void> {
  const { size } = await client.getCheckpoint();
  const { pos } = seen ?? { pos: size };
  const hash = pos > size ? "" : await hashAt(client, pos);
  if (mine !== looks) return;
  if (seen && seen.hash !== hash) {
    history.replaceState(ANEW, "");
    return location.reload();
  }
  seen = { pos, hash };
  isSure = true;
}

/** The hash of the event at a position. */
async function hashAt(client: Client, pos: number): Promise<string> {
  for await (const record of client.followEvents({ since: pos - 1, follow: false }, { retry: { attempts: 3 } })) return String(record["hash"]);
  return "";
}

// Whether the ledger is still the one that the page knows: a server that comes back may serve another one, or an older state of it from a backup.
//
// What the page remembers is the last event that it heard of, by its position and its hash. Where that is not in the ledger any more, nothing that is
// known counts: the page begins anew, and says why.

import { effect } from "@preact/signals";
import type { Client, LedgerRecord } from "@baton/sdk";
import { link, tell } from "./store.js";

/** What the entry of the history says of a page that began anew: it outlives the reload, and nothing else. */
const ANEW = "anew";

interface Seen {
  origin: string;
  pos: number;
  hash: string;
}
let seen: Seen | undefined;
/** After a break nothing is remembered until it was looked: what comes may be of another ledger. */
let isSure = false;

/** Remembers an event of the stream: the last is what counts. */
export function noteRecord({ pos, hash }: LedgerRecord): void {
  if (seen && isSure) seen = { ...seen, pos, hash: String(hash) };
}

/** Looks whenever the connection is there again. */
export function startIdentity(client: Client): void {
  if (history.state === ANEW) {
    history.replaceState(null, "");
    tell("bad", "This is another ledger than before, or an older state of it: everything was loaded anew.");
  }
  effect(() => {
    isSure = false;
    // Where nobody answers, or the event does not read, that is told elsewhere.
    if (link.value.kind === "live") look(client).catch(() => undefined);
  });
}

async function look(client: Client): Promise<void> {
  const { size, checkpoint } = await client.getCheckpoint();
  const origin = checkpoint.split("\n", 1)[0] ?? "";
  const before = seen;
  if (!before) {
    seen = { origin, pos: size, hash: await hashAt(client, size) };
  } else if (origin !== before.origin || size < before.pos || (await hashAt(client, before.pos)) !== before.hash) {
    history.replaceState(ANEW, "");
    location.reload();
    return;
  }
  isSure = link.peek().kind === "live";
}

/** The hash of the event at a position. */
async function hashAt(client: Client, pos: number): Promise<string> {
  for await (const record of client.followEvents({ since: pos - 1, follow: false }, { retry: { attempts: 3 } })) return String(record["hash"]);
  return "";
}

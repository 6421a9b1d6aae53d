// One session, followed while its screen is shown; and what a person may do to it.

import { signal, type ReadonlySignal, type Signal } from "@preact/signals";
import type { Session, SessionItem } from "@baton/sdk";
import { useEffect, useState } from "preact/hooks";
import { act, failureOf, fetched, inWords } from "../../state/failure.js";
import { client } from "../../state/live.js";
import { inPlace, seen } from "../../state/tabs.js";
import { tell, type Failure, type Fetched } from "../../state/store.js";
import { emptyBook, take, withPrompt, withSession, type Book } from "./book.js";
import { lacksPrompt, withoutGuess, withPrompts, withTail } from "./kept.js";
import { emptyWire, withItem, type Wire } from "./wire.js";

/** How the stream of the session is. */
export type Stream =
  | { kind: "opening" }
  | { kind: "live" }
  | { kind: "waiting"; since: number; reason: string }
  /** Other tabs have all the connections that a browser opens. */
  | { kind: "crowded" }
  | { kind: "over" }
  | { kind: "broken"; error: Failure };

export interface SessionFile {
  id: string;
  book: ReadonlySignal<Book>;
  /** The last of its stream, as it came. */
  wire: ReadonlySignal<Wire>;
  session: ReadonlySignal<Fetched<Session>>;
  stream: ReadonlySignal<Stream>;
  /** The run that is pointed at, in the strip or in the transcript. */
  marked: Signal<string | undefined>;
  open(): void;
  close(): void;
  send(text: string): Promise<boolean>;
  stop(): Promise<boolean>;
  answer(permission: string, answer: string): Promise<void>;
  retry(kind: "tool" | "hook", run: string): Promise<boolean>;
}

/** Items are taken for so long before the page may draw and hear its person. */
const SLICE_MS = 12;
/** Prompts are read together, a moment after their turn began; and again, less and less often, where they are not there yet. */
const READ_MS = 200;
const READ_MAX_MS = 3000;
/** The screen is drawn anew no more often than the browser draws, and in a tab that is not seen this often. */
const HIDDEN_MS = 100;

export function useSession(id: string): SessionFile {
  const [file] = useState(() => openFile(id));
  useEffect(() => {
    file.open();
    return () => file.close();
  }, [file]);
  return file;
}

function openFile(id: string): SessionFile {
  const book = signal(emptyBook());
  const wire = signal(emptyWire());
  const session = signal<Fetched<Session>>({ kind: "loading" });
  const stream = signal<Stream>({ kind: "opening" });
  let known = emptyBook();
  let heard = emptyWire();
  let abort: AbortController | undefined;
  let asking: Promise<Session | undefined> | undefined;

  const publish = atFrames(() => {
    book.value = known;
    wire.value = heard;
  });
  const ask = async (): Promise<Session | undefined> => {
    const came = await fetched(client.getSession(id));
    // What is known stays when it cannot be asked for again.
    if (came.kind === "ready" || session.value.kind !== "ready") session.value = came as Fetched<Session>;
    return came.kind === "ready" ? (came.value as Session) : undefined;
  };
  const look = (): Promise<Session | undefined> => (asking ??= ask().finally(() => { asking = undefined; }));

  /** What a turn was told is not in its stream, but in the transcript. */
  let reading: ReturnType<typeof setTimeout> | undefined;
  const readPrompts = (wait = READ_MS): void => {
    reading ??= setTimeout(async () => {
      const came = await fetched(client.getTranscript(id, { kind: ["prompt"] }));
      reading = undefined;
      if (came.kind === "ready") known = withPrompts(known, came.value.lines);
      publish();
      if (lacksPrompt(known) && !abort?.signal.aborted) readPrompts(Math.min(2 * wait, READ_MAX_MS));
    }, wait);
  };

  const one = async (item: SessionItem): Promise<void> => {
    const state = known.view.state;
    known = take(known, item);
    heard = withItem(heard, item);
    publish();
    if (item.kind === "state_event" && lacksPrompt(known)) readPrompts();
    if (item.kind === "gap" && item.resumeFrom !== 0) {
      // What was asked for before may be from before.
      await asking;
      const now = await look();
      if (now) known = withSession(known, now, Date.now());
      publish();
    } else if (item.kind === "ended" || (known.view.state !== state && (known.view.state === "ready" || state === "starting"))) {
      void look();
    }
  };

  const follow = async (signal: AbortSignal): Promise<void> => {
    let since = performance.now();
    let isBroken = known.view.at > 0;
    const items = client.followSession(id, {
      signal,
      ...(known.view.at > 0 ? { after: known.view.at } : {}),
      onStatus: (status) => {
        if (status.type === "open") stream.value = { kind: "live" };
        if (status.type !== "waiting") return;
        isBroken = true;
        wait(status.reason);
      },
    });
    for await (const item of items) {
      await one(item);
      if (performance.now() - since > SLICE_MS) {
        await turn();
        since = performance.now();
      }
    }
    // A connection that was lost may have missed the last words.
    if (isBroken && known.view.turns.length > 0) {
      const past = await fetched(client.getTranscript(id));
      if (past.kind === "ready") known = withTail(known, past.value.lines);
      publish();
    }
    stream.value = { kind: "over" };
  };

  const wait = (reason: string): void => {
    const since = stream.value.kind === "waiting" ? stream.value.since : Date.now();
    stream.value = { kind: "waiting", since, reason };
  };

  /** Follows it to its end; a tab that nobody looks at may have to leave its place to others, and goes on when it is looked at. */
  const followInPlace = async (signal: AbortSignal): Promise<void> => {
    while (!signal.aborted && stream.value.kind !== "over" && stream.value.kind !== "broken") {
      await inPlace(signal, () => { stream.value = { kind: "crowded" }; }, async (own) => {
        await follow(own).catch((error: unknown) => { if (!own.aborted) stream.value = { kind: "broken", error: failureOf(error) }; });
      });
      await seen(signal);
    }
  };

  const open = (): void => {
    abort?.abort();
    abort = new AbortController();
    known = emptyBook();
    book.value = known;
    heard = emptyWire();
    wire.value = heard;
    stream.value = { kind: "opening" };
    void look();
    void followInPlace(abort.signal);
  };

  const send = async (text: string): Promise<boolean> => {
    known = withPrompt(known, text);
    const came = await fetched(client.sendInput(id, { text }));
    if (came.kind === "ready") return true;
    known = withoutGuess(known);
    publish();
    if (lacksPrompt(known)) readPrompts();
    tell("bad", inWords(came.error));
    return false;
  };

  const answer = async (permission: string, given: string): Promise<void> => {
    const asked = known.view.pendingPermissions.find((other) => other.id === permission);
    const came = await fetched(client.answerPermission(id, permission, { answer: given }));
    if (came.kind === "ready") return tell("ok", `${given === "allow" ? "Allowed" : given === "deny" ? "Denied" : "Answered"}: ${asked?.title ?? permission}`);
    const isLate = came.error.code === "A008" || !known.view.pendingPermissions.some((other) => other.id === permission);
    tell("bad", isLate ? `Too late: it was answered already, or ran out; the first answer counts. ${inWords(came.error)}` : inWords(came.error));
  };

  return {
    id, book, wire, session, stream, marked: signal(undefined), open, send, answer,
    close: () => abort?.abort(),
    stop: () => act(client.stopSession(id), "The session has ended."),
    retry: (kind, run) => act(kind === "tool" ? client.retryTool(id, run) : client.retryHook(id, run), "It is tried again."),
  };
}

/** Lets everything else have its turn. */
function turn(): Promise<void> {
  return new Promise((resolve) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      resolve();
    };
    port2.postMessage(undefined);
  });
}

/** Does something once for each frame in which it was asked for; by the clock where there are no frames. */
function atFrames(run: () => void): () => void {
  let isAsked = false;
  return () => {
    if (isAsked) return;
    isAsked = true;
    const once = (): void => {
      if (!isAsked) return;
      isAsked = false;
      cancelAnimationFrame(frame);
      clearTimeout(timer);
      run();
    };
    const frame = requestAnimationFrame(once);
    const timer = setTimeout(once, HIDDEN_MS);
  };
}

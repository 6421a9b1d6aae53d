// A browser opens six connections to a host and no more, for all its tabs together: what each tab would keep open for itself is shared.
//
// One tab leads: it follows the ledger and tells the others what it hears; when it goes, another one does. Streams of sessions have a few places, and a tab
// that nobody looks at gives its own up when it is needed. Where a browser has no locks (they need https, or this machine) every tab is by itself.

const locks = globalThis.navigator?.locks as LockManager | undefined;

/** Something that a leader says to all tabs, and hears from none. */
export interface Channel<T> {
  say(word: T): void;
}

/** A leader that is silent for so long has been stopped: a tab in the background is still given a moment in every minute. */
const SILENT_MS = 150_000;
const BEAT_MS = 10_000;

/**
 * Leads, or hears. `lead` is called once this tab leads, and runs until it is aborted; `hear` is told what the leader says; `state` is what a leader says to
 * whoever comes.
 */
export function share<T extends object>(name: string, lead: (channel: Channel<T>, signal: AbortSignal) => Promise<void>, hear: (word: T) => void, state: () => T): void {
  if (!locks) return void lead({ say: () => {} }, new AbortController().signal);
  const channel = new BroadcastChannel(name);
  let isLeading = false;
  let heardAt = Date.now();
  channel.onmessage = ({ data }: MessageEvent<{ word: T } | "hello">) => {
    if (data !== "hello") {
      heardAt = Date.now();
      if (!isLeading) hear(data.word);
    } else if (isLeading) {
      channel.postMessage({ word: state() });
    }
  };
  const say = (word: T): void => channel.postMessage({ word });
  let waiting = new AbortController();
  const run = async (): Promise<void> => {
    for (let steal = false; ; ) {
      const own = new AbortController();
      waiting = new AbortController();
      try {
        await locks.request(name, steal ? { steal } : { signal: waiting.signal }, () => {
          isLeading = true;
          return lead({ say }, own.signal);
        });
        // There is nothing to lead in any more.
        return;
      } catch {
        // Another tab took over, or this one is to.
      } finally {
        isLeading = false;
        own.abort();
      }
      steal = waiting.signal.aborted;
      heardAt = Date.now();
    }
  };
  setInterval(() => {
    if (isLeading) say(state());
    else if (Date.now() - heardAt > SILENT_MS) waiting.abort();
  }, BEAT_MS);
  void run();
  channel.postMessage("hello");
}

const PLACES = 4;
const PLACE_NAME = "baton place";

/** Runs something that keeps a connection once there is a place for it, and until it is aborted: by `signal`, or because the place is needed elsewhere. */
export async function inPlace(signal: AbortSignal, onFull: () => void, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  if (!locks) return run(signal);
  const own = new AbortController();
  const waiting = new AbortController();
  const channel = new BroadcastChannel(PLACE_NAME);
  const stop = (): void => {
    own.abort(signal.reason);
    waiting.abort(signal.reason);
  };
  signal.addEventListener("abort", stop, { once: true });
  let isIn = false;
  channel.onmessage = () => { if (isIn && document.hidden) own.abort(); };
  const taken = async (): Promise<void> => {
    if (isIn) return;
    isIn = true;
    waiting.abort();
    await run(own.signal);
  };
  try {
    for (let place = 0; place < PLACES && !isIn; place += 1) {
      await locks.request(`${PLACE_NAME} ${place}`, { ifAvailable: true }, (lock) => (lock ? taken() : undefined));
    }
    if (isIn || signal.aborted) return;
    onFull();
    channel.postMessage("needed");
    await Promise.allSettled(Array.from({ length: PLACES }, (_, place) => locks.request(`${PLACE_NAME} ${place}`, { signal: waiting.signal }, taken)));
  } finally {
    signal.removeEventListener("abort", stop);
    channel.close();
  }
}

/** Waits until somebody looks at this tab. */
export function seen(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      if (document.hidden && !signal.aborted) return;
      document.removeEventListener("visibilitychange", look);
      signal.removeEventListener("abort", look);
      resolve();
    };
    document.addEventListener("visibilitychange", look);
    signal.addEventListener("abort", look);
    look();
  });
}

// A browser opens six connections to a host and no more, for all its tabs together: what each tab would keep open for itself is shared.
//
// One tab leads: it follows the ledger and tells the others what it hears; when it goes, another one does. Streams of sessions have a few places, and a tab
// that nobody looks at gives its own up when it is needed. Where a browser has no locks (they need https, or this machine) every tab is by itself.

const locks = globalThis.navigator?.locks as LockManager | undefined;

/** Tabs of another build may say other things: each has names of its own. */
function named(name: string): string {
  return `baton ${name} ${import.meta.url}`;
}

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
  const lock = named(name);
  const channel = new BroadcastChannel(lock);
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
        await locks.request(lock, steal ? { steal } : { signal: waiting.signal }, () => {
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
const placeName = (place: number): string => named(`place ${place}`);

/**
 * Runs something that keeps a connection once there is a place for it, and until it is aborted: by `signal`, or because nobody looks at this tab and the
 * place is needed elsewhere.
 */
export async function inPlace(signal: AbortSignal, onFull: () => void, run: (signal: AbortSignal) => Promise<void>): Promise<void> {
  if (!locks) return run(signal);
  const own = new AbortController();
  const waiting = new AbortController();
  const channel = new BroadcastChannel(named("place"));
  const stop = (): void => {
    own.abort(signal.reason);
    waiting.abort(signal.reason);
  };
  let mine: string | undefined;
  // Whoever is looked at and has none asks for it; whoever goes to the back looks whether somebody waits.
  const leave = async (): Promise<void> => {
    if (mine === undefined || !document.hidden) return;
    const { pending = [] } = await locks.query();
    if (document.hidden && pending.some((other) => other.name === mine)) own.abort();
  };
  const look = (): void => {
    if (mine === undefined && !document.hidden) channel.postMessage("needed");
    void leave();
  };
  channel.onmessage = () => void leave();
  const taken = (place: number) => async (): Promise<void> => {
    if (mine !== undefined) return;
    mine = placeName(place);
    waiting.abort();
    await run(own.signal);
  };
  signal.addEventListener("abort", stop, { once: true });
  document.addEventListener("visibilitychange", look);
  try {
    for (let place = 0; place < PLACES && mine === undefined; place += 1) {
      await locks.request(placeName(place), { ifAvailable: true }, (lock) => (lock ? taken(place)() : undefined));
    }
    if (mine !== undefined || signal.aborted) return;
    onFull();
    const asked = Array.from({ length: PLACES }, (_, place) => locks.request(placeName(place), { signal: waiting.signal }, taken(place)));
    look();
    await Promise.allSettled(asked);
  } finally {
    signal.removeEventListener("abort", stop);
    document.removeEventListener("visibilitychange", look);
    channel.close();
  }
}

const LOOKED_AT = named("looked at");

/** Says, as long as somebody looks at this tab, that it is so. */
export function tellLooks(): void {
  let leave: (() => void) | undefined;
  const look = (): void => {
    const isLooking = !document.hidden && document.hasFocus();
    if (isLooking && !leave) {
      const left = new Promise<void>((resolve) => { leave = resolve; });
      void locks?.request(LOOKED_AT, { mode: "shared" }, () => left);
    } else if (!isLooking) {
      leave?.();
      leave = undefined;
    }
  };
  for (const name of ["focus", "blur", "visibilitychange"]) addEventListener(name, look, true);
  look();
}

/** Whether somebody looks at any tab of Baton. */
export async function isLookedAt(): Promise<boolean> {
  if (!locks) return !document.hidden;
  return (await locks.query()).held?.some((lock) => lock.name === LOOKED_AT) ?? false;
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

// Times, sizes and names as they are shown.

const STEPS: readonly (readonly [number, string])[] = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];

/** How long something took or is away, in its two largest parts at most. */
export function span(ms: number): string {
  if (!Number.isFinite(ms)) return "";
  const whole = Math.max(0, ms);
  if (whole < 1000) return `${Math.round(whole)} ms`;
  const at = STEPS.findIndex(([size]) => whole >= size);
  const [size, name] = STEPS[at] ?? [1000, "s"];
  const count = Math.floor(whole / size);
  const [nextSize, nextName] = STEPS[at + 1] ?? [0, ""];
  const rest = nextSize > 0 && count < 10 ? Math.floor((whole % size) / nextSize) : 0;
  return rest > 0 ? `${count} ${name} ${rest} ${nextName}` : `${count} ${name}`;
}

/** A moment as seen from now. */
export function ago(at: number, now: number): string {
  const away = now - at;
  if (Math.abs(away) < 5000) return "now";
  const words = rough(Math.abs(away));
  return away > 0 ? `${words} ago` : `in ${words}`;
}

function rough(ms: number): string {
  const [size, name] = STEPS.find(([step]) => ms >= step) ?? [1000, "s"];
  return `${Math.round(ms / size)} ${name}`;
}

export function bytes(count: number): string {
  const names = ["B", "kB", "MB", "GB", "TB"];
  let at = 0;
  let rest = count;
  while (rest >= 1000 && at < names.length - 1) {
    rest /= 1000;
    at += 1;
  }
  return `${at === 0 || rest >= 100 ? Math.round(rest) : rest.toFixed(1)} ${names[at]}`;
}

/** The part of an id that tells it from others: time comes first in ours, so that is the end of it. */
export function shortId(id: string): string {
  const bare = id.replace(/^(sess|trc|run|evt|tool|hook)_/, "");
  return bare.length > 12 && /^[0-9a-f-]+$/i.test(bare) ? bare.slice(-8) : id;
}

export const shortHash = (hash: string): string => hash.replace(/^sha256:/, "").slice(0, 10);

export function plural(count: number, one: string, many = `${one}s`): string {
  return `${count} ${count === 1 ? one : many}`;
}

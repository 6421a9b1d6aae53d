// A moment as seen from now; exactly, on hover.

import { ago } from "../state/format.js";
import { now } from "../state/store.js";

export function Time({ at }: { at: number | string | undefined }) {
  const ms = typeof at === "string" ? Date.parse(at) : at;
  const date = new Date(ms ?? NaN);
  if (ms === undefined || Number.isNaN(date.getTime())) return <span>–</span>;
  const exact = date.toISOString();
  return <time dateTime={exact} title={exact}>{ago(ms, now.value)}</time>;
}

// Where a moment stands on the strip: times in proportion, long waits folded to a little of it. Plain functions.

import type { Band, Bar } from "./book.js";

/** A wait that takes more than this part of everything else is folded to so much. */
const FOLDED_PART = 0.06;
const WAITS = ["ready", "idle"];

export interface Piece {
  from: number;
  to: number;
  /** How wide it is drawn, in the same unit as the others. */
  weight: number;
  isFolded: boolean;
}

export interface Scale {
  pieces: readonly Piece[];
  total: number;
}

/** The pieces of the time axis, up to `end`. */
export function scaleOf(bands: readonly Band[], bars: readonly Bar[], end: number, folds: boolean): Scale {
  const first = bands[0]?.from ?? bars[0]?.from ?? end;
  const from = Math.min(first, ...bars.map((bar) => bar.from));
  const pieces: Piece[] = from < first ? [{ from, to: first, weight: first - from, isFolded: false }] : [];
  const lengths = bands.map((band) => Math.max(0, (band.to ?? end) - band.from));
  const busy = bands.reduce((sum, band, at) => sum + (WAITS.includes(band.state) ? 0 : lengths[at] ?? 0), 0);
  bands.forEach((band, at) => {
    const length = lengths[at] ?? 0;
    const isFolded = folds && WAITS.includes(band.state) && busy > 0 && length > busy * FOLDED_PART;
    pieces.push({ from: band.from, to: band.from + length, weight: isFolded ? busy * FOLDED_PART : length, isFolded });
  });
  const last = pieces.at(-1);
  if (last && last.to < end) pieces.push({ from: last.to, to: end, weight: end - last.to, isFolded: false });
  return { pieces, total: pieces.reduce((sum, piece) => sum + piece.weight, 0) };
}

/** From 0 at the beginning to 1 at the end. */
export function placeOf(scale: Scale, at: number): number {
  if (scale.total <= 0) return at > (scale.pieces[0]?.from ?? 0) ? 1 : 0;
  let sum = 0;
  for (const piece of scale.pieces) {
    if (at < piece.to) {
      const part = piece.to > piece.from ? Math.max(0, at - piece.from) / (piece.to - piece.from) : 0;
      return (sum + part * piece.weight) / scale.total;
    }
    sum += piece.weight;
  }
  return 1;
}

/** Bars that overlap stand below each other. Gives the lane of each, and how many there are. */
export function lanesOf(bars: readonly Bar[], end: number, max: number): { lanes: readonly number[]; count: number } {
  const ends: number[] = [];
  const lanes = bars.map((bar) => {
    let lane = ends.findIndex((free) => free <= bar.from);
    if (lane < 0) lane = ends.length < max ? ends.length : max - 1;
    ends[lane] = bar.to ?? end;
    return lane;
  });
  return { lanes, count: ends.length };
}

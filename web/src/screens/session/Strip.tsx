// The state strip: the states of the session over time, and its tools and hooks below on the same axis.

import { useComputed, useSignal, type Signal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { span } from "../../state/format.js";
import { now } from "../../state/store.js";
import { oneLine } from "../../state/text.js";
import type { Band, Bar } from "./book.js";
import { lanesOf, placeOf, scaleOf, type Scale } from "./scale.js";
import { Sign } from "./Sign.js";
import type { SessionFile } from "./state.js";
import { reasonWord, stateKind, stateWord } from "./words.js";

const BAND_HEIGHT = 26;
const LANE_HEIGHT = 13;
const LANES_MAX = 8;
const BARS_DRAWN = 200;
/** A band that is so wide has its name on it: pixels for a character, and beside it. */
const CHAR_PX = 6.6;
const PAD_PX = 10;

export function Strip({ file }: { file: SessionFile }) {
  const bands = useComputed(() => file.book.value.bands).value;
  const allBars = useComputed(() => file.book.value.bars).value;
  const isEnded = useComputed(() => file.book.value.view.isEnded).value;
  const folds = useSignal(true);
  const isTable = useSignal(false);
  const bars = useMemo(() => allBars.slice(-BARS_DRAWN), [allBars]);
  if (bands.length === 0 && bars.length === 0) return <p class="dim">No state is known yet.</p>;
  const lastKnown = Math.max(bands.at(-1)?.to ?? bands.at(-1)?.from ?? 0, ...bars.map((bar) => bar.to ?? bar.from));
  const end = isEnded ? lastKnown : Math.max(now.value, lastKnown);
  const scale = scaleOf(bands, bars, end, folds.value);
  const current = bands.at(-1);
  return (
    <>
      <div class="strip-head">
        {current ? <Sign kind={stateKind(current.state)}>{stateWord(current.state)}</Sign> : null}
        {current && !isEnded && end - current.from >= 1000 ? <span class="dim">for {span(end - current.from)}</span> : null}
        <span class="grows" />
        {scale.pieces.some((piece) => piece.isFolded) || !folds.value ? (
          <button type="button" class="quiet" aria-pressed={folds.value} onClick={() => { folds.value = !folds.value; }}>{folds.value ? "waits are folded" : "waits are shown whole"}</button>
        ) : null}
      </div>
      <Drawing bands={bands} bars={bars} scale={scale} end={end} isEnded={isEnded} marked={file.marked} />
      <p class="strip-times dim"><span>{timeOf(scale.pieces[0]?.from ?? end)}</span><span>{isEnded ? timeOf(end) : "now"}</span></p>
      <details class="fold" onToggle={(event) => { isTable.value = event.currentTarget.open; }}>
        <summary>The same as a table</summary>
        {isTable.value ? <Tables bands={bands} bars={bars} end={end} /> : null}
      </details>
    </>
  );
}

const timeOf = (at: number): string => new Date(at).toLocaleTimeString();

interface DrawingProps {
  bands: readonly Band[];
  bars: readonly Bar[];
  scale: Scale;
  end: number;
  isEnded: boolean;
  marked: Signal<string | undefined>;
}

function Drawing({ bands, bars, scale, end, isEnded, marked }: DrawingProps) {
  const box = useRef<SVGSVGElement>(null);
  const width = useSignal(420);
  const stop = useSignal("");
  useEffect(() => {
    const element = box.current;
    if (!element) return;
    const watcher = new ResizeObserver(() => { width.value = Math.max(120, element.clientWidth); });
    watcher.observe(element);
    return () => watcher.disconnect();
  }, []);
  const { lanes, count } = lanesOf(bars, end, LANES_MAX);
  const x = (at: number) => placeOf(scale, at) * (width.value - 2) + 1;
  const height = BAND_HEIGHT + 10 + count * LANE_HEIGHT;
  const step = (by: number) => {
    const at = bars.findIndex((bar) => bar.key === stop.value);
    const next = bars[Math.max(0, Math.min(bars.length - 1, (at < 0 ? bars.length - 1 : at) + by))];
    if (!next) return;
    stop.value = next.key;
    box.current?.querySelector<SVGElement>(`[data-key="${CSS.escape(next.key)}"]`)?.focus();
  };
  const stopKey = bars.some((bar) => bar.key === stop.value) ? stop.value : bars.at(-1)?.key;
  return (
    <svg ref={box} class="state-strip" height={height} role="group" aria-label="States over time, with tools and hooks below"
      onKeyDown={(event) => {
        if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
        event.preventDefault();
        step(event.key === "ArrowLeft" ? -1 : 1);
      }}>
      {bands.map((band, at) => {
        const [from, to] = [x(band.from), x(band.to ?? end)];
        const word = stateWord(band.state);
        const isCurrent = at === bands.length - 1 && !isEnded;
        return (
          <g key={`${band.from} ${at}`} class={`band is-${band.state} ${isCurrent ? "is-current" : ""}`}>
            <title>{`${word}, ${span((band.to ?? end) - band.from)}${band.reason ? `: ${reasonWord(band.reason)}` : ""}`}</title>
            <rect x={from} y={4} width={Math.max(1, to - from)} height={BAND_HEIGHT - 6} />
            {to - from > word.length * CHAR_PX + PAD_PX ? <text x={from + 5} y={BAND_HEIGHT - 9}>{word}</text> : null}
            {band.reason === "retry" ? <path class="retry" d={`M ${from} 0 l 5 5 l -10 0 z`} /> : null}
          </g>
        );
      })}
      {isEnded ? null : <line class="strip-now" x1={x(end)} x2={x(end)} y1={0} y2={BAND_HEIGHT} />}
      {bars.map((bar, at) => {
        const [from, to] = [x(bar.from), x(bar.to ?? end)];
        const y = BAND_HEIGHT + 6 + (lanes[at] ?? 0) * LANE_HEIGHT;
        const point = (to: string | undefined) => () => { marked.value = to; };
        return (
          <g key={bar.key} data-key={bar.key} class={`bar is-${bar.kind} is-${bar.status} ${marked.value === bar.runId ? "is-marked" : ""}`} role="button"
            tabIndex={bar.key === stopKey ? 0 : -1} aria-label={barWords(bar, end)}
            onPointerEnter={point(bar.runId)} onPointerLeave={point(undefined)} onFocus={() => { stop.value = bar.key; marked.value = bar.runId; }} onBlur={point(undefined)}
            onClick={() => showRow(bar.runId)} onKeyDown={(event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); showRow(bar.runId); } }}>
            <title>{barWords(bar, end)}</title>
            <rect class="bar-reach" x={from - 2} y={y - 1} width={Math.max(8, to - from + 4)} height={LANE_HEIGHT} />
            <rect class="bar-body" x={from} y={y} width={Math.max(3, to - from)} height={LANE_HEIGHT - 4} rx={bar.kind === "hook" ? 4 : 0} />
            {bar.attempt > 1 ? <path class="retry" d={`M ${from} ${y - 2} l 4 5 l -8 0 z`} /> : null}
          </g>
        );
      })}
    </svg>
  );
}

const barWords = (bar: Bar, end: number): string =>
  `${bar.kind} ${oneLine(bar.name, 60)}, ${bar.status}${bar.attempt > 1 ? `, attempt ${bar.attempt}` : ""}, ${span((bar.to ?? end) - bar.from)}`;

/** Brings the row of a run into sight. */
export function showRow(runId: string): void {
  const row = document.querySelector(`.transcript [data-run="${CSS.escape(runId)}"]`);
  row?.scrollIntoView({ block: "center" });
  row?.querySelector<HTMLElement>("summary")?.focus({ preventScroll: true });
}

function Tables({ bands, bars, end }: { bands: readonly Band[]; bars: readonly Bar[]; end: number }) {
  return (
    <div class="scrolls" tabIndex={0} role="region" aria-label="States and runs">
      <table>
        <caption class="dim">States</caption>
        <thead><tr><th>state</th><th>because</th><th>at</th><th>for</th></tr></thead>
        <tbody>{bands.slice(-BARS_DRAWN).map((band, at) => (
          <tr key={at}><td>{stateWord(band.state)}</td><td>{reasonWord(band.reason)}</td><td>{timeOf(band.from)}</td><td>{span((band.to ?? end) - band.from)}</td></tr>
        ))}</tbody>
      </table>
      <table>
        <caption class="dim">Tools and hooks</caption>
        <thead><tr><th>run</th><th>status</th><th>attempt</th><th>at</th><th>for</th></tr></thead>
        <tbody>{bars.map((bar) => (
          <tr key={bar.key}><td>{bar.kind} <bdi>{oneLine(bar.name, 60)}</bdi></td><td>{bar.status}</td><td>{bar.attempt}</td><td>{timeOf(bar.from)}</td><td>{span((bar.to ?? end) - bar.from)}</td></tr>
        ))}</tbody>
      </table>
    </div>
  );
}

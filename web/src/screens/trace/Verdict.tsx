// What the verifier said, first of all: the verdict, one sentence, when, and of which head.

import type { ComponentChildren } from "preact";
import { Mark } from "../../parts/Badge.js";
import { Time } from "../../parts/Time.js";
import { inWords } from "../../state/failure.js";
import { plural } from "../../state/format.js";
import type { Report } from "./record.js";
import type { TraceModel } from "./state.js";
import { isUnderWay, sentence, VERDICTS } from "./words.js";

export function Verdict({ model }: { model: TraceModel }) {
  const checked = model.checked.value;
  const isBusy = model.isVerifying.value;
  const button = (
    <button type="button" onClick={() => void model.verify()} disabled={isBusy} title="v">{isBusy ? "Verifying…" : checked ? "Verify again" : "Verify"}</button>
  );
  if (checked === undefined) {
    return <section class="trace-verdict is-off" aria-label="Verdict" role="status"><p class="is-loading">Verifying…</p></section>;
  }
  if (checked.kind !== "ready") {
    const why = checked.kind === "broken" ? inWords(checked.error) : "";
    return <section class="trace-verdict is-off" aria-label="Verdict"><p><Mark kind="off">Cannot tell</Mark> It was not verified: {why}</p>{button}</section>;
  }
  const { report, at } = checked.value;
  const since = model.size.value - report.subject.events;
  // What the page found by itself counts, whatever was said before.
  const own = report.verdict !== "fail" ? model.firstBad.value : undefined;
  return (
    <Banner report={report} isWorse={own !== undefined} before={<div class="buttons">{button}</div>}>
      {own !== undefined ? <p class="text-bad">This page finds that record {own} is not what it should be. Verify again.</p> : null}
      <p class="dim">
        Checked <Time at={at} />{isUnderWay(report) ? "." : `; integrity ${report.integrity}, completeness ${report.completeness}.`}
        {since > 0 ? <> <Mark kind="warn">older head</Mark> {plural(since, "event")} came since.</> : null}
      </p>
    </Banner>
  );
}

interface BannerProps {
  report: Report;
  /** Whether something is known that the report does not say. */
  isWorse?: boolean;
  before?: ComponentChildren;
  children?: ComponentChildren;
}

/** A report in short. */
export function Banner({ report, isWorse = false, before, children }: BannerProps) {
  const [kind, word] = isUnderWay(report) ? (["off", "Under way"] as const) : (VERDICTS[report.verdict] ?? VERDICTS.unknown);
  return (
    <section class={`trace-verdict is-${isWorse ? "bad" : kind}`} aria-label="Verdict" role="status">
      {before}
      <p class="trace-verdict-line"><Mark kind={kind}>{word}</Mark> <span>{sentence(report)}</span></p>
      {children}
    </section>
  );
}

// What was checked, how often, and everything that was found, with the record that it was found at.

import { Mark } from "../../parts/Badge.js";
import { copy, Id } from "../../parts/Id.js";
import { oneLine } from "../../state/text.js";
import type { Finding, Report } from "./record.js";
import { CODES, STATUSES } from "./words.js";

interface Props {
  report: Report;
  /** Shows the record that a finding is about, where there is one here. */
  onShow?: ((finding: Finding) => void) | undefined;
}

export function Checks({ report, onShow }: Props) {
  const noun = report.subject.trace === undefined ? "line" : "event";
  return (
    <>
      <div class="scrolls" tabIndex={0} role="region" aria-label="Checks">
        <table class="report-checks">
          <thead><tr><th>check</th><th>status</th><th class="is-number">count</th><th>found</th></tr></thead>
          <tbody>
            {report.checks.map((check) => (
              <tr key={check.check}>
                <td><code>{check.check}</code></td>
                <td><Mark kind={STATUSES[check.status] ?? "off"}>{check.status}</Mark></td>
                <td class="is-number">{check.count}</td>
                <td>{check.status === "fail" || check.status === "warn" ? <Offenders check={check.check} report={report} onShow={onShow} /> : null}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {report.findings.length === 0 ? <p class="dim">Nothing was found.</p> : (
        <ul class="report-findings" aria-label="Findings">
          {report.findings.map((finding, at) => <One key={at} finding={finding} noun={noun} onShow={onShow} />)}
        </ul>
      )}
      {report.moreFindings ? <p class="dim">and {report.moreFindings} more that are not listed</p> : null}
    </>
  );
}

function Offenders({ check, report, onShow }: { check: string } & Props) {
  const mine = report.findings.filter((finding) => CODES[finding.code]?.[0] === check);
  const shown = mine.slice(0, 5);
  return (
    <>
      {shown.map((finding, at) => (
        <span key={at}>{at > 0 ? ", " : ""}<Place finding={finding} onShow={onShow} text={finding.line === undefined ? finding.code : `#${finding.line}`} /></span>
      ))}
      {mine.length > shown.length ? `, ${mine.length - shown.length} more` : ""}
    </>
  );
}

function Place({ finding, onShow, text }: { finding: Finding; onShow: Props["onShow"]; text: string }) {
  if (!onShow || (finding.line === undefined && finding.event === undefined)) return <>{text}</>;
  return <button type="button" class="more" onClick={() => onShow(finding)}>{text}</button>;
}

function One({ finding, noun, onShow }: { finding: Finding; noun: string; onShow: Props["onShow"] }) {
  const command = `baton explain ${finding.code}`;
  return (
    <li>
      <p>
        <Mark kind={finding.severity === "warning" ? "warn" : "bad"}>{finding.severity}</Mark> <strong class="code">{finding.code}</strong>{" "}
        {finding.line === undefined ? null : <Place finding={finding} onShow={onShow} text={`${noun} ${finding.line}`} />}{" "}
        {finding.event === undefined ? null : <Id id={finding.event} />}
      </p>
      <dl class="facts">
        {finding.expected === undefined ? null : <><dt>expected</dt><dd><code>{oneLine(finding.expected)}</code></dd></>}
        {finding.found === undefined ? null : <><dt>found</dt><dd><code>{oneLine(finding.found)}</code></dd></>}
        <dt>do</dt><dd>{finding.action}</dd>
        <dt>more</dt><dd><button type="button" class="id" title="Copy this command" onClick={() => void copy(command, command)}>{command}</button></dd>
      </dl>
    </li>
  );
}

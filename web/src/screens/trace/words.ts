// What a report comes to, in a sentence.

import { noteDamage } from "../../state/damage.js";
import { plural } from "../../state/format.js";
import { oneLine } from "../../state/text.js";
import { isFailure, type Check, type Finding, type Report } from "./record.js";

export type Kind = "good" | "warn" | "bad" | "off";

export const VERDICTS: { readonly [verdict in Report["verdict"]]: readonly [Kind, string] } = {
  pass: ["good", "Passed"],
  "pass-with-warnings": ["warn", "Passed with warnings"],
  fail: ["bad", "Failed"],
  unknown: ["off", "Cannot tell"],
};

export const STATUSES: { readonly [status in Check["status"]]: Kind } = { pass: "good", warn: "warn", fail: "bad", skipped: "off" };

/** What each code says of the record that it was found at. */
const FAULTS: { readonly [code: string]: string } = {
  HASH_MISMATCH: "its content is not what was hashed",
  CHAIN_BREAK: "it does not follow from the record before it",
  SEQUENCE_GAP: "something is missing before it, or stands twice",
  SIG_INVALID: "its signature is not that of its key",
  SIG_MISSING: "it has no signature and must have one",
  KEY_UNKNOWN: "nobody bound the key that signed it",
  KEY_REVOKED: "its key was not valid any more",
  ROLE_VIOLATION: "its actor had no right to say it",
  ORDER_VIOLATION: "it stands where it may not",
  STATE_VIOLATION: "the run had no place for it",
  UNAPPROVED_ACTION: "nobody had approved it",
  CLAIM_UNPROVEN: "a claim rests on too little",
  CLAIM_DISPUTED: "a challenge was not answered",
  SCHEMA_INVALID: "it has not the form of a record",
  ARTIFACT_MISSING: "what it cites is not there",
  ARTIFACT_HASH_MISMATCH: "what it cites was changed",
  FINALIZATION_INCOMPLETE: "the run has no proper end",
  TAIL_CUT: "its end was cut off",
  CHECKPOINT_MISMATCH: "it is not what was signed at a checkpoint",
  REPORT_MISMATCH: "its own report does not fit",
};

const WARNINGS: { readonly [code: string]: string } = {
  NO_CHECKPOINT: "nothing kept elsewhere vouches for its end",
  KEY_UNPINNED: "its key is known only from the ledger itself",
  TORN_TAIL: "its last write was torn",
  ARTIFACT_UNCHECKED: "artifacts were not there to be checked",
  FINALIZATION_INCOMPLETE: "the run has not ended",
  CLAIM_DISPUTED: "a challenge was not answered",
  OVERRIDE_RECORDED: "a person overrode a rule",
};

const listed = (words: readonly string[]): string =>
  words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words.at(-1)}`;

const unique = (words: readonly string[]): string[] => [...new Set(words)];

const placed = (finding: Finding, noun: string): string => (finding.line === undefined ? "" : ` at ${noun} ${finding.line}`);

/** Whether nothing is wrong with a run but that it has not ended. */
export const isUnderWay = ({ subject, findings }: Report): boolean => {
  const failures = findings.filter(isFailure);
  const isOpen = subject.guarded !== undefined && !["completed", "failed", "aborted"].includes(subject.guarded.state);
  return isOpen && failures.length === 1 && failures[0]?.code === "FINALIZATION_INCOMPLETE";
};

/** Whether a report says that nothing is damaged. */
export const isSound = (report: Report): boolean => report.verdict !== "unknown" && (report.verdict !== "fail" || isUnderWay(report));

/** Notes what a report says of a trace, or of all: what could not be judged changes nothing. */
export function noteReport(where: string, report: Report): void {
  if (report.verdict !== "unknown") noteDamage(where, isSound(report) ? undefined : sentence(report));
}

/** One sentence about a report. */
export function sentence(report: Report): string {
  const count = plural(report.subject.events, "event");
  const noun = report.subject.trace === undefined ? "line" : "event";
  switch (report.verdict) {
    case "pass":
      return `${count}: unaltered, and nothing is missing at the end.`;
    case "pass-with-warnings": {
      const words = unique(report.findings.map((finding) => WARNINGS[finding.code] ?? finding.code));
      return `${count}: unaltered, but ${listed(words)}.`;
    }
    case "fail": {
      const first = report.findings.find(isFailure);
      if (!first) return "Something does not hold.";
      if (first.code === "FINALIZATION_INCOMPLETE" && isUnderWay(report)) return `${count}: the run has not ended. Until it has, a strict one does not pass.`;
      const after = report.firstBroken === undefined ? "" : ` Everything from ${noun} ${report.firstBroken} on is unproven.`;
      return `${first.code}${placed(first, noun)}: ${FAULTS[first.code] ?? "it does not hold"}.${after}`;
    }
    case "unknown": {
      const first = report.findings[0];
      return first ? `${first.code}: ${oneLine(first.found ?? first.action)}` : "There is nothing that could be judged.";
    }
  }
}

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

/** The check that a code belongs to, as the verifier has it; what it says of the record that it was found at; and what it says as a warning. */
export const CODES: { readonly [code: string]: readonly [check: string, fault?: string | undefined, warning?: string] } = {
  SCHEMA_INVALID: ["SCHEMA", "it has not the form of a record"],
  HASH_MISMATCH: ["EVENT_HASH", "its content is not what was hashed"],
  CHAIN_BREAK: ["CHAIN", "it does not follow from the record before it"],
  SEQUENCE_GAP: ["SEQUENCE", "something is missing before it, or stands twice"],
  SIG_INVALID: ["SIGNATURE", "its signature is not that of its key"],
  SIG_MISSING: ["SIGNATURE", "it has no signature and must have one"],
  KEY_UNKNOWN: ["KEY_STATUS", "nobody bound the key that signed it"],
  KEY_REVOKED: ["KEY_STATUS", "its key was not valid any more"],
  KEY_UNPINNED: ["KEY_STATUS", undefined, "its key is known only from the ledger itself"],
  ROLE_VIOLATION: ["ROLE", "its actor had no right to say it"],
  ORDER_VIOLATION: ["ORDER", "it stands where it may not"],
  STATE_VIOLATION: ["STATE", "the run had no place for it"],
  ARTIFACT_MISSING: ["ARTIFACT_EXISTS", "what it cites is not there"],
  ARTIFACT_UNCHECKED: ["ARTIFACT_EXISTS", undefined, "artifacts were not there to be checked"],
  ARTIFACT_HASH_MISMATCH: ["ARTIFACT_HASH", "what it cites was changed"],
  CLAIM_UNPROVEN: ["EVIDENCE", "a claim rests on too little"],
  CLAIM_DISPUTED: ["FINALIZATION", "a challenge was not answered", "a challenge was not answered"],
  UNAPPROVED_ACTION: ["APPROVAL", "nobody had approved it"],
  OVERRIDE_RECORDED: ["APPROVAL", undefined, "a person overrode a rule"],
  FINALIZATION_INCOMPLETE: ["FINALIZATION", "the run has no proper end", "the run has not ended"],
  NO_CHECKPOINT: ["CHECKPOINT", undefined, "nothing kept elsewhere vouches for its end"],
  CHECKPOINT_MISMATCH: ["CHECKPOINT", "it is not what was signed at a checkpoint"],
  TAIL_CUT: ["CHECKPOINT", "its end was cut off"],
  TORN_TAIL: ["CHECKPOINT", undefined, "its last write was torn"],
  REPORT_MISMATCH: ["CHECKPOINT", "its own report does not fit"],
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
      const words = unique(report.findings.map((finding) => CODES[finding.code]?.[2] ?? finding.code));
      return `${count}: unaltered, but ${listed(words)}.`;
    }
    case "fail": {
      const first = report.findings.find(isFailure);
      if (!first) return "Something does not hold.";
      if (isUnderWay(report)) return `${count}: the run has not ended. Until it has, a strict one does not pass.`;
      const after = report.firstBroken === undefined ? "" : ` Everything from ${noun} ${report.firstBroken} on is unproven.`;
      return `${first.code}${placed(first, noun)}: ${CODES[first.code]?.[1] ?? "it does not hold"}.${after}`;
    }
    case "unknown": {
      const first = report.findings[0];
      return first ? `${first.code}: ${oneLine(first.found ?? first.action)}` : "There is nothing that could be judged.";
    }
  }
}

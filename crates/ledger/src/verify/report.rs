//! What the verifier says: findings with their codes, checks with counts, a verdict, and two separate answers.

use std::collections::BTreeMap;

use baton_core::guard::{Profile, State};
use baton_core::limits::FINDINGS_MAX;
use baton_core::{Digest, EventId, TraceId};
use serde_json::{Map, Value, json};

use super::code::{Check, Code, Severity};

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub code: Code,
    pub severity: Severity,
    /// The line of the journal, or the number of the event in a bundle, from 1; 0 where it concerns none.
    pub line: u64,
    pub event: Option<EventId>,
    pub expected: Option<String>,
    pub found: Option<String>,
}

impl Finding {
    pub fn new(code: Code) -> Self {
        Finding { code, severity: code.severity(), line: 0, event: None, expected: None, found: None }
    }

    /// Where its severity is not that of its code.
    pub fn severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    pub fn at(mut self, line: u64) -> Self {
        self.line = line;
        self
    }

    pub fn event(mut self, event: EventId) -> Self {
        self.event = Some(event);
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better without & at the call")]
    pub fn expected(mut self, expected: impl ToString) -> Self {
        self.expected = Some(bounded(&expected.to_string()));
        self
    }

    #[expect(clippy::needless_pass_by_value, reason = "reads better without & at the call")]
    pub fn found(mut self, found: impl ToString) -> Self {
        self.found = Some(bounded(&found.to_string()));
        self
    }

    fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("code".into(), self.code.as_str().into());
        out.insert("severity".into(), self.severity.as_str().into());
        if self.line > 0 {
            out.insert("line".into(), self.line.into());
        }
        let optional = [
            ("event", self.event.map(|event| event.to_string())),
            ("expected", self.expected.clone()),
            ("found", self.found.clone()),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                out.insert(name.into(), value.into());
            }
        }
        out.insert("action".into(), self.code.action().into());
        Value::Object(out)
    }
}

/// What a line can carry into a report is bounded and printable.
fn bounded(text: &str) -> String {
    text.chars().take(200).map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

/// The conclusion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Pass,
    PassWithWarnings,
    Fail,
    Unknown,
}

impl Verdict {
    pub fn as_str(self) -> &'static str {
        match self {
            Verdict::Pass => "pass",
            Verdict::PassWithWarnings => "pass-with-warnings",
            Verdict::Fail => "fail",
            Verdict::Unknown => "unknown",
        }
    }
}

/// What was verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Subject {
    pub origin: Option<String>,
    pub trace: Option<TraceId>,
    pub head: Option<Digest>,
    pub events: u64,
    /// Where the guarded run stands that the trace is, and by which rules, if it is one.
    pub run: Option<(State, Profile)>,
}

/// Collects findings and counts while verifying.
#[derive(Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    /// Findings beyond the bound, counted only.
    more: u64,
    worst_line: Option<u64>,
    /// Every code that was found, also beyond the bound, and how bad it was at worst.
    codes: BTreeMap<Code, Severity>,
}

impl Findings {
    pub fn push(&mut self, finding: Finding) {
        if finding.severity > Severity::Warning && finding.line > 0 {
            self.worst_line = Some(self.worst_line.map_or(finding.line, |line| line.min(finding.line)));
        }
        let worst = self.codes.entry(finding.code).or_insert(finding.severity);
        *worst = finding.severity.max(*worst);
        // The first ones in the ledger's order are the ones that matter, so a full list drops its last.
        if self.list.len() < FINDINGS_MAX {
            self.list.push(finding);
            return;
        }
        self.more += 1;
        let last = self.list.iter_mut().max_by_key(|finding| order(finding));
        if let Some(last) = last.filter(|last| order(&finding) < order(last)) {
            *last = finding;
        }
    }

    pub fn extend(&mut self, findings: impl IntoIterator<Item = Finding>) {
        findings.into_iter().for_each(|finding| self.push(finding));
    }

    pub fn has_failure(&self) -> bool {
        self.codes.values().any(|severity| *severity > Severity::Warning)
    }
}

/// Failures of lines in their order, then those of the whole, then warnings.
fn order(finding: &Finding) -> (bool, u64, Code) {
    let line = if finding.line == 0 { u64::MAX } else { finding.line };
    (finding.severity == Severity::Warning, line, finding.code)
}

/// How many things each check looked at.
#[derive(Debug, Clone, Default)]
pub struct Counts([u64; Check::ALL.len()]);

impl Counts {
    pub fn add(&mut self, check: Check, count: u64) {
        self.0[check as usize] += count;
    }
}

/// The verifier's answer. The same input gives the same report.
#[derive(Debug, Clone)]
pub struct Report {
    pub verdict: Verdict,
    pub subject: Subject,
    pub integrity: &'static str,
    pub completeness: &'static str,
    pub checks: Vec<CheckResult>,
    pub findings: Vec<Finding>,
    /// Findings beyond those listed.
    pub more: u64,
    /// The first line that does not check; everything before it can be trusted.
    pub first_broken: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckResult {
    pub check: Check,
    pub status: &'static str,
    pub count: u64,
}

/// What vouches for the end of what was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vouched {
    /// A checkpoint given by the reader covers the last event.
    pub by_checkpoint: bool,
    /// The ledger's key is one that the reader trusts.
    pub by_key: bool,
}

impl Report {
    pub fn conclude(subject: Subject, counts: &Counts, findings: Findings, vouched: Vouched) -> Report {
        let Findings { mut list, more, worst_line, codes } = findings;
        list.sort_by_key(order);
        let failed = codes.iter().any(|(code, severity)| *severity > Severity::Warning && !code.is_unknown());
        let unknown = codes.keys().any(|code| code.is_unknown());
        // A line that is broken before the one that cannot be judged decides.
        let verdict = match list.first() {
            Some(first) if first.code.is_unknown() || (unknown && !failed) => Verdict::Unknown,
            _ if failed => Verdict::Fail,
            Some(_) => Verdict::PassWithWarnings,
            None => Verdict::Pass,
        };
        // A run that has not ended lacks something, and nothing of it is altered: that finding is about no line.
        let lacks_end = |finding: &Finding| finding.code == Code::FinalizationIncomplete && finding.line == 0;
        let is_altered = |code: Code| match code {
            Code::TailCut => false,
            Code::FinalizationIncomplete => {
                list.iter().any(|finding| finding.code == code && !lacks_end(finding))
            }
            _ => true,
        };
        let mut failing = codes.iter().filter(|(_, severity)| **severity > Severity::Warning);
        let is_broken = failing.any(|(code, _)| is_altered(*code));
        let is_open = failed && !is_broken && list.iter().any(lacks_end);
        let completeness =
            if codes.contains_key(&Code::TailCut) || codes.contains_key(&Code::TornTail) || is_open {
                "incomplete"
            } else if matches!(verdict, Verdict::Unknown | Verdict::Fail) {
                // What is missing at the end of something altered is nobody's to say.
                "unknown"
            } else if vouched.by_checkpoint && vouched.by_key {
                "complete"
            } else {
                "self-consistent"
            };
        let integrity = match verdict {
            Verdict::Unknown => "unknown",
            _ if is_broken => "broken",
            _ => "intact",
        };
        let checks = Check::ALL
            .into_iter()
            .map(|check| {
                let mine = || codes.iter().filter(|(code, _)| code.check() == check);
                let status = if mine().any(|(_, severity)| *severity > Severity::Warning) {
                    "fail"
                } else if mine().next().is_some() {
                    "warn"
                } else if counts.0[check as usize] == 0 {
                    "skipped"
                } else {
                    "pass"
                };
                CheckResult { check, status, count: counts.0[check as usize] }
            })
            .collect();
        Report {
            verdict,
            subject,
            integrity,
            completeness,
            checks,
            findings: list,
            more,
            first_broken: worst_line,
        }
    }

    /// A report on something that could not be looked at.
    pub fn cannot_tell(code: Code, why: impl ToString) -> Report {
        let mut findings = Findings::default();
        findings.push(Finding::new(code).found(why));
        Report::conclude(Subject::default(), &Counts::default(), findings, Vouched::default())
    }

    pub fn to_json(&self) -> Value {
        let mut subject = Map::new();
        subject.insert("origin".into(), self.subject.origin.clone().into());
        if let Some(trace) = self.subject.trace {
            subject.insert("trace".into(), trace.to_string().into());
        }
        subject.insert("head".into(), self.subject.head.map(|head| head.to_string()).into());
        subject.insert("events".into(), self.subject.events.into());
        if let Some((state, profile)) = self.subject.run {
            let run = json!({"state": state.as_str(), "profile": profile.as_str()});
            subject.insert("guarded".into(), run);
        }
        let checks: Vec<Value> = self
            .checks
            .iter()
            .map(|c| json!({"check": c.check.as_str(), "status": c.status, "count": c.count}))
            .collect();
        let findings: Vec<Value> = self.findings.iter().map(Finding::to_json).collect();
        let mut out = json!({
            "v": 1,
            "verdict": self.verdict.as_str(),
            "subject": subject,
            "integrity": self.integrity,
            "completeness": self.completeness,
            "checks": checks,
            "findings": findings,
        });
        if self.more > 0 {
            out["moreFindings"] = self.more.into();
        }
        if let Some(line) = self.first_broken {
            out["firstBroken"] = line.into();
            out["lastTrusted"] = (line - 1).into();
        }
        out
    }
}

//! The verifier's report for people: what was verified, each check, each finding with what to do, and the two answers.

use baton_core::guard::State;
use baton_ledger::verify::{Finding, Report, Severity, Verdict};

use crate::error::Stop;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::table::{Align, Table};
use crate::ui::text::{count, printable};

pub(super) fn report(ui: &mut Ui, report: &Report) -> Result<(), Stop> {
    subject(ui, report)?;
    let mut table = Table::new(&[("check", Align::Left), ("status", Align::Left), ("count", Align::Right)]);
    for check in &report.checks {
        table.row(vec![check.check.as_str().into(), ui.paint.status(check.status), check.count.to_string()]);
    }
    for line in table.lines(None) {
        ui.line(&line)?;
    }
    ui.line("")?;
    for found in &report.findings {
        finding(ui, found, noun(report))?;
    }
    if report.more > 0 {
        ui.line(&format!("… and {} that are not listed", count(report.more, "more finding")))?;
        ui.line("")?;
    }
    if let Some(line) = report.first_broken {
        let noun = noun(report);
        ui.line(&format!("first broken  {noun} {line}"))?;
        let trusted = if line > 1 { format!("{noun} {}", line - 1) } else { "none".to_owned() };
        ui.line(&format!("last trusted  {trusted}"))?;
    }
    let verdict = match report.verdict {
        Verdict::Pass => ui.paint.mark(Mark::Good, "pass"),
        Verdict::PassWithWarnings => ui.paint.mark(Mark::Warn, "pass, with warnings"),
        Verdict::Fail => ui.paint.mark(Mark::Bad, "fail"),
        Verdict::Unknown => ui.paint.mark(Mark::Bad, "unknown: this cannot be verified"),
    };
    ui.line(&format!("integrity     {}", ui.paint.status(report.integrity)))?;
    ui.line(&format!("completeness  {}", ui.paint.status(report.completeness)))?;
    ui.line(&format!("verdict       {verdict}"))?;
    match report.subject.run {
        Some((state @ (State::Failed | State::Aborted), _)) => ui.line(&format!(
            "the run       {state}: the verdict is about the record of it, not about the work"
        )),
        _ => Ok(()),
    }
}

fn subject(ui: &mut Ui, report: &Report) -> Result<(), Stop> {
    let subject = &report.subject;
    let Some(origin) = &subject.origin else { return Ok(()) };
    ui.line(&format!("ledger        {}", printable(origin)))?;
    if let Some(trace) = subject.trace {
        ui.line(&format!("trace         {trace}"))?;
    }
    ui.line(&format!("events        {}", subject.events))?;
    if let Some(head) = subject.head {
        ui.line(&format!("head          {head}"))?;
    }
    if let Some((state, profile)) = subject.run {
        ui.line(&format!("guarded       {state}, profile {profile}"))?;
    }
    ui.line("")
}

/// What is counted: lines of a journal, or the events of one trace.
fn noun(report: &Report) -> &'static str {
    if report.subject.trace.is_some() { "event" } else { "line" }
}

fn finding(ui: &mut Ui, finding: &Finding, noun: &str) -> Result<(), Stop> {
    let severity = finding.severity;
    let mark = if severity == Severity::Warning { Mark::Warn } else { Mark::Bad };
    let mut head = format!("{} {}", ui.paint.mark(mark, severity.as_str()), finding.code.as_str());
    if finding.line > 0 {
        head.push_str(&format!(", {noun} {}", finding.line));
    }
    if let Some(event) = finding.event {
        head.push_str(&format!(", {event}"));
    }
    ui.line(&head)?;
    if let Some(expected) = &finding.expected {
        ui.line(&format!("  expected  {}", printable(expected)))?;
    }
    if let Some(found) = &finding.found {
        ui.line(&format!("  found     {}", printable(found)))?;
    }
    ui.line(&format!("  do        {}", finding.code.action()))?;
    ui.line("")
}

//! The auditor: verifies what was recorded, signs up to where, and once the run is closed verifies that too.

use std::io;

use baton_core::event::{Payload, Seen};
use baton_core::guard::{Audit, Bare, Outcome, Step};
use baton_core::ids::{Digest, Token, TraceId};
use baton_core::{Role, limits};
use baton_ledger::canonical;
use baton_ledger::note::TraceHead;
use baton_ledger::seal::{Proposal, Refusal};
use baton_ledger::verify::{Artifacts, Options, Report, Segments, Severity, Verdict, verify_trace};
use baton_store::AppendError;
use baton_store::Journal;
use baton_store::registry::signed_own;
use baton_store::tasks::fold::LINES_AT_ONCE;

use super::scene::{Scene, Unsaid, work};
use super::stage::Stage;
use crate::engine::Fault;

/// What was verified and what came of it, ready to be signed.
#[derive(Debug)]
pub(super) struct Verified {
    pub(super) head: Seen,
    pub(super) status: Outcome,
    pub(super) report: Vec<u8>,
    /// In a few words, where it failed.
    pub(super) why: Option<String>,
}

impl Stage {
    /// Records that the verification begins, unless it has.
    pub(super) fn start_audit(&self) -> Result<(), Unsaid> {
        let standing = self.scene.look()?;
        if standing.run.is_audit_open() {
            return Ok(());
        }
        let step = Step::AuditStarted(Bare {});
        self.scene.say(&self.team, (self.agent(Role::Auditor), Role::Auditor), &step, &[], standing.head)
    }

    /// Signs what was verified, up to the head that it was verified to.
    pub(super) fn sign_audit(&self, verified: &Verified) -> Result<(), Unsaid> {
        let report = self.scene.store(&verified.report, "application/json", "verification-report.json")?;
        let audit = Audit { status: verified.status, report: report.sha256, head: verified.head.hash };
        let mut payload = Step::Audited(audit).to_payload();
        if let (Payload::Other { fields, .. }, Some(why)) = (&mut payload, &verified.why) {
            let why: String = why.chars().take(limits::GUARD_TEXT_CHARS_MAX).collect();
            fields.insert("why".to_owned(), why.into());
        }
        let auditor = (self.agent(Role::Auditor), Role::Auditor);
        self.scene.say_all(&self.team, auditor, vec![(payload, vec![report])], verified.head)
    }
}

impl Scene {
    /// Verifies the run up to its present end. `failed` is why it fails whatever the verifier says.
    pub(super) fn verify(&self, failed: Option<&str>) -> Result<Verified, Fault> {
        let standing = self.look()?;
        let report = self.report(standing.head)?;
        let (status, why) = match (failed, report.verdict) {
            (Some(why), _) => (Outcome::Fail, Some(why.to_owned())),
            (None, Verdict::Pass) => (Outcome::Pass, None),
            (None, Verdict::PassWithWarnings) => (Outcome::Warnings, None),
            (None, Verdict::Fail | Verdict::Unknown) => (Outcome::Fail, first_finding(&report)),
        };
        let json = report.to_json();
        let bytes = canonical::to_bytes(&json).unwrap_or_else(|_| json.to_string().into_bytes());
        Ok(Verified { head: standing.head, status, report: bytes, why })
    }

    /// The verifier's report on the trace, whose end is known to be this one.
    pub(super) fn report(&self, head: Seen) -> Result<Report, Fault> {
        let ground = self.engine.ground();
        let ledger = ground.journal.ledger();
        let end =
            TraceHead { origin: ledger.origin.clone(), trace: self.trace, seq: head.seq, hash: head.hash };
        let options = Options {
            trust: Some(vec![ledger.key]),
            checkpoint: Some(end.sign(&ground.ledger_key).into_bytes()),
            audits: true,
            ..Options::default()
        };
        let (trace, journal) = (self.trace, &ground.journal);
        let open = || -> Result<Box<dyn Segments>, String> {
            Ok(Box::new(TraceLines::new(journal.clone(), trace, head.seq)))
        };
        let artifacts: &dyn Artifacts = &ground.artifacts;
        Ok(verify_trace(&open, Some(artifacts), &options, trace, ledger))
    }

    /// Ends the trace.
    pub(super) fn close(&self, reason: &str) -> Result<(), Fault> {
        let ground = self.engine.ground();
        let closed = Payload::TraceClosed { reason: reason.to_owned() };
        let events = vec![signed_own(self.trace, closed, &ground.ledger_key)?];
        match ground.journal.append(Proposal { events, decided_on: Vec::new() }) {
            Ok(_) | Err(AppendError::Refused(Refusal::Closed(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Records that the executor is through with a proposal, where its report does not say so: whoever goes on with the run does not have it done again.
    /// Or that what was reported so far is about another proposal than is to be worked on now.
    pub(super) fn note_work(&self, how: &str, on: &Token) -> Result<(), Fault> {
        let ground = self.engine.ground();
        let note = Payload::note(work(how, on));
        let events = vec![signed_own(self.trace, note, &ground.ledger_key)?];
        match ground.journal.append(Proposal { events, decided_on: Vec::new() }) {
            Ok(_) | Err(AppendError::Refused(Refusal::Closed(_) | Refusal::Guard(_))) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// The last event of the trace.
    pub(super) fn head(&self) -> Result<Digest, Fault> {
        Ok(self.look()?.head.hash)
    }
}

/// What speaks against a run, in a few words.
pub(super) fn first_finding(report: &Report) -> Option<String> {
    let finding = report.findings.iter().find(|finding| finding.severity != Severity::Warning)?;
    let what = finding.found.as_deref().unwrap_or_default();
    Some(format!("{}: {what}", finding.code.as_str()))
}

/// The lines of one trace up to a number, as the verifier reads a journal.
struct TraceLines {
    journal: std::sync::Arc<dyn Journal>,
    trace: TraceId,
    next: u64,
    last: u64,
    bytes: io::Cursor<Vec<u8>>,
    is_started: bool,
}

impl TraceLines {
    fn new(journal: std::sync::Arc<dyn Journal>, trace: TraceId, last: u64) -> Self {
        TraceLines { journal, trace, next: 1, last, bytes: io::Cursor::default(), is_started: false }
    }
}

impl Segments for TraceLines {
    fn next_segment(&mut self) -> Result<Option<u64>, String> {
        Ok((!std::mem::replace(&mut self.is_started, true)).then_some(1))
    }

    fn read(&mut self, buffer: &mut [u8]) -> Result<usize, String> {
        let count = io::Read::read(&mut self.bytes, buffer).map_err(|error| error.to_string())?;
        if count > 0 || self.next > self.last {
            return Ok(count);
        }
        let most = (self.last - self.next + 1).min(LINES_AT_ONCE as u64);
        let lines = self
            .journal
            .read_trace(self.trace, self.next, most as usize)
            .map_err(|error| error.to_string())?;
        if lines.is_empty() {
            return Err(format!("number {} of {} is missing", self.next, self.trace));
        }
        self.next += lines.len() as u64;
        let text: String = lines.iter().map(|line| format!("{}\n", line.text)).collect();
        self.bytes = io::Cursor::new(text.into_bytes());
        self.read(buffer)
    }
}

//! A guarded run as a story: who proposed, reviewed, ran, claimed and verified what, an entry for each event.
//!
//! What a step says is put into words in [`told`]; how an entry looks is [`Teller`]'s matter. Whatever agents wrote is shown as something hostile.

use std::sync::Arc;

use baton_core::event::NOTE;
use baton_core::guard::{
    Answer, Claim, Execution, Intent, Outcome, Proposal, ProposalReview, RUN_BEGINS, Review, Run, State, Step,
};
use baton_core::{Digest, Payload, Role};
use baton_ledger::guard::{Heard, Speaker};
use baton_ledger::record::Line;
use baton_store::{History as _, TraceSummary, Visit};

use super::show::each_line;
use crate::commands::events::parse;
use crate::error::Stop;
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::{printable, shorten};
use crate::ui::time::exact;

/// Characters of an agent's text that are shown at least, however narrow the terminal is.
const TEXT_CHARS_MIN: usize = 48;

/// Characters before that text which are shown of ids and names of tools at a terminal.
const START_CHARS_MAX: usize = 160;

/// Digits of a hash that tell it from others, for people.
const HASH_DIGITS: usize = 12;

/// Columns before what stands below a sentence.
const DETAIL_COLUMN: usize = 18;

/// The run that a trace is, as far as it has come; `None` where it is none.
pub(super) fn run_of(visit: &Visit, summary: &TraceSummary) -> Result<Option<Arc<Run>>, Stop> {
    let mut run = None;
    // Nothing begins a run later, so that a long trace of another kind is not read for this.
    for stored in visit.reader.read_trace(summary.trace, 1, RUN_BEGINS as usize)? {
        take_in(&mut run, &parse(&stored)?);
    }
    if run.take().is_none() {
        return Ok(None);
    }
    each_line(visit, summary, &mut |stored| {
        take_in(&mut run, &parse(stored)?);
        Ok(())
    })?;
    Ok(run)
}

fn take_in(run: &mut Option<Arc<Run>>, line: &Line<'_>) {
    // In another role it begins nothing.
    if run.is_some() || line.role == Role::System {
        Heard::of_line(line).apply(run, &Speaker::of_line(line));
    }
}

/// Where the run stands, by which rules it is done, and who plays which part.
pub(super) fn standing(ui: &Ui, run: &Run) -> String {
    let team = run.team();
    let parts = [
        ("planner", &team.planner),
        ("executor", &team.executor),
        ("critic", &team.critic),
        ("auditor", &team.auditor),
    ];
    let parts = list(parts.iter().map(|(part, agent)| format!("{part} {agent}")));
    let state = match run.state() {
        State::Completed => ui.paint.mark(Mark::Good, "completed"),
        end @ (State::Failed | State::Aborted) => ui.paint.mark(Mark::Bad, end.as_str()),
        under_way => under_way.to_string(),
    };
    format!("{state}, profile {}; {parts}", run.policy().profile)
}

/// Tells the events of a run, in order and in bounded memory.
pub(super) fn tell(ui: &mut Ui, visit: &Visit, summary: &TraceSummary) -> Result<(), Stop> {
    let mut teller = Teller::default();
    each_line(visit, summary, &mut |stored| teller.tell(ui, &parse(stored)?))
}

/// What an event says, in words.
#[derive(Default)]
struct Told {
    /// Ours, with names and ids; coloured.
    start: String,
    mark: Option<Mark>,
    /// An agent's own words, if there are any.
    text: String,
    /// Ours again.
    rest: String,
    /// What belongs to it: a word of ours, and what it introduces.
    below: Vec<(&'static str, String)>,
}

impl Told {
    fn new(start: String, text: &str) -> Told {
        Told { start, text: text.to_owned(), ..Told::default() }
    }

    fn marked(mut self, mark: Mark) -> Told {
        self.mark = Some(mark);
        self
    }

    /// One line for each.
    fn each(mut self, label: &'static str, items: &[String]) -> Told {
        self.below.extend(items.iter().map(|item| (label, item.clone())));
        self
    }

    /// All in one line, if there are any.
    fn all(mut self, label: &'static str, items: String) -> Told {
        if !items.is_empty() {
            self.below.push((label, items));
        }
        self
    }
}

fn list<T: ToString>(items: impl IntoIterator<Item = T>) -> String {
    items.into_iter().map(|item| item.to_string()).collect::<Vec<_>>().join(", ")
}

fn short(hash: &Digest) -> String {
    hash.to_string().chars().take(HASH_DIGITS).collect()
}

fn hashes(hashes: &[Digest]) -> String {
    list(hashes.iter().map(short))
}

/// The step of an event in words; whatever is no step, or does not read as one, as far as it goes.
fn told(line: &Line<'_>) -> Told {
    let who = line.agent;
    let step = match Heard::of_line(line).step.map(|step| *step) {
        Some(Ok(step)) => step,
        Some(Err(why)) => {
            let start = format!("{who} says {}, which does not read", line.event_type);
            return Told::new(start, &why).marked(Mark::Warn);
        }
        None => return told_beside(line),
    };
    match step {
        Step::Begun(begun) => {
            Told::new(format!("{who} begins the run, profile {}", begun.policy.profile), "")
        }
        Step::Proposed(proposal) => told_proposal(who, &proposal),
        Step::Reviewed(review) => told_review(who, &review),
        Step::Intended(intent) => told_intent(who, &intent),
        Step::IntentReviewed(review) => {
            let (does, mark) = match review.status {
                Answer::Approved => ("approves", Mark::Good),
                Answer::Blocked => ("blocks", Mark::Bad),
            };
            Told::new(format!("{who} {does} {}", review.intent_id), &review.rationale).marked(mark)
        }
        Step::Started(execution) => Told::new(format!("{who} starts {}", execution.intent_id), "")
            .all("input", hashes(&execution.artifacts)),
        Step::Completed(execution) => told_end(who, &execution),
        Step::Failed(execution) => {
            let failure = execution.failure.as_deref().unwrap_or_default();
            Told::new(format!("{} failed", execution.intent_id), failure)
                .marked(Mark::Bad)
                .all("artifacts", hashes(&execution.artifacts))
        }
        Step::Recorded(_) => {
            let cited = line.artifacts.iter();
            let cited = cited.map(|cited| format!("{} ({})", cited.name.unescaped(), short(&cited.sha256)));
            Told::new(format!("{who} stores"), &list(cited))
        }
        Step::Claimed(claim) => told_claim(who, &claim),
        Step::Challenged(challenge) => {
            Told::new(format!("{who} challenges {}", challenge.claim_id), &challenge.reason)
                .marked(Mark::Warn)
                .all("evidence", hashes(&challenge.evidence))
        }
        Step::Finished(statement) => {
            let disputed = match &*statement.disputed {
                [] => String::new(),
                disputed => format!("; disputed {}", list(disputed)),
            };
            let rest = format!(" (claims {}{disputed})", list(&statement.claim_ids));
            Told { rest, ..Told::new(format!("{who} states"), &statement.verdict_text) }
        }
        Step::AuditStarted(_) => Told::new(format!("{who} begins to verify"), ""),
        Step::Audited(audit) => {
            let mark = match audit.status {
                Outcome::Pass => Mark::Good,
                Outcome::Warnings => Mark::Warn,
                Outcome::Fail => Mark::Bad,
            };
            // Beside what the rules know, it may say why.
            let fields = line.to_payload().map(|payload| payload.fields().into_owned()).unwrap_or_default();
            let why = fields.get("why").and_then(serde_json::Value::as_str).unwrap_or_default().to_owned();
            Told::new(format!("{who} verified up to {}: {}", short(&audit.head), audit.status), &why)
                .marked(mark)
                .all("report", short(&audit.report))
        }
        Step::Aborted(abort) => Told::new(format!("{who} aborts"), &abort.reason).marked(Mark::Bad),
        Step::Overridden(over) => {
            Told::new(format!("{who} overrides what holds up {}", over.target), &over.reason)
                .marked(Mark::Warn)
        }
    }
}

fn told_proposal(who: &str, proposal: &Proposal) -> Told {
    let revises = proposal.revises.as_ref().map(|id| format!(" instead of {id}")).unwrap_or_default();
    Told::new(format!("{who} proposes {}{revises}", proposal.proposal_id), &proposal.objective)
        .all("tools", list(&proposal.required_tools))
        .each("assumes", &proposal.assumptions)
        .each("evidence", &proposal.expected_evidence)
}

fn told_review(who: &str, review: &ProposalReview) -> Told {
    let (does, how, mark) = match review.status {
        Review::Approved => ("approves", "", Mark::Good),
        Review::Conditional => ("approves", " on conditions", Mark::Good),
        Review::Rejected => ("rejects", "", Mark::Bad),
    };
    Told::new(format!("{who} {does} {}{how}", review.proposal_id), &review.rationale)
        .marked(mark)
        .each("condition", &review.conditions)
        .all("risk", review.risk.clone())
}

fn told_intent(who: &str, intent: &Intent) -> Told {
    let again = intent.retry_of.as_ref().map(|id| format!(" again, instead of {id}")).unwrap_or_default();
    // The name of a tool is an agent's word too.
    let tool = printable(&intent.tool_name);
    let class = format!("({}, {})", intent.intent_id, intent.risk_class);
    Told::new(format!("{who} means to run {tool}{again} {class}"), &intent.justification)
        .all("for", intent.proposal_id.to_string())
        .all("input", stored(&intent.normalized_input_hash))
}

/// Where an artifact is, in the data directory: what is to be judged can be read there.
pub(in crate::commands) fn stored(hash: &Digest) -> String {
    let text = hash.to_string();
    format!("artifacts/sha256/{}/{text}", text.get(..2).unwrap_or_default())
}

fn told_end(who: &str, execution: &Execution) -> Told {
    let exit = execution.exit_status.map(|status| format!(": exit {status}")).unwrap_or_default();
    let mark = if execution.exit_status == Some(0) { Mark::Good } else { Mark::Warn };
    Told::new(format!("{who} ran {}{exit}", execution.intent_id), "")
        .marked(mark)
        .all("artifacts", hashes(&execution.artifacts))
}

fn told_claim(who: &str, claim: &Claim) -> Told {
    let claims = match &claim.revises {
        Some(revised) => format!("revises {revised} as {}", claim.claim_id),
        None => format!("claims {}", claim.claim_id),
    };
    Told::new(format!("{who} {claims} (confidence {})", claim.confidence), &claim.claim_text)
        .all("evidence", hashes(&claim.evidence))
        .all("rests on", list(&claim.executions))
}

/// What stands between the steps: keys, the end, and whatever else was recorded.
fn told_beside(line: &Line<'_>) -> Told {
    let (start, text) = match line.to_payload() {
        Ok(Payload::KeyBound(grant)) => {
            (format!("{} of {} is bound as {}", grant.key, grant.agent, list(&grant.roles)), String::new())
        }
        Ok(Payload::KeyRotated { old, new }) => {
            (format!("{} of {} takes the place of {old}", new.key, new.agent), String::new())
        }
        Ok(Payload::KeyRevoked { key, reason }) => (format!("{key} is revoked"), reason),
        Ok(Payload::TraceOpened { .. }) => ("the trace is opened".to_owned(), String::new()),
        Ok(Payload::TraceClosed { reason }) => ("the trace is closed".to_owned(), reason),
        Ok(Payload::Other { fields, .. }) if is_through(line, &fields) => {
            let word = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            (format!("the executor is through with {}", word("proposal_id")), String::new())
        }
        Ok(Payload::Other { fields, .. }) if is_let_stand(line, &fields) => {
            let word = |name: &str| fields.get(name).and_then(serde_json::Value::as_str).unwrap_or_default();
            let start = format!("{} lets {} stand", line.agent, word("claim_id"));
            return Told::new(start, word("rationale")).marked(Mark::Good);
        }
        _ => {
            let payload = if line.payload == "{}" { "" } else { line.payload };
            (format!("{} records {}", line.agent, line.event_type), payload.to_owned())
        }
    };
    Told::new(start, &text).marked(Mark::Dim)
}

/// Whether Baton notes that the executor has done what was let through.
fn is_through(line: &Line<'_>, fields: &serde_json::Map<String, serde_json::Value>) -> bool {
    line.event_type == NOTE && line.role == Role::System && fields.contains_key("work")
}

/// Whether a critic says of a claim that it challenges nothing of it.
fn is_let_stand(line: &Line<'_>, fields: &serde_json::Map<String, serde_json::Value>) -> bool {
    line.event_type == NOTE && line.role == Role::Critic && fields.contains_key("claim_id")
}

/// Prints entries; a new day stands before the first of its events.
#[derive(Debug, Default)]
pub(in crate::commands) struct Teller {
    day: String,
}

impl Teller {
    pub(in crate::commands) fn tell(&mut self, ui: &mut Ui, line: &Line<'_>) -> Result<(), Stop> {
        let at = exact(line.at);
        let (day, time) = at.split_once(' ').unwrap_or(("", &at));
        if self.day != day {
            day.clone_into(&mut self.day);
            let day = ui.paint.mark(Mark::Dim, day);
            ui.line(&format!("       {day}"))?;
        }
        let actor = format!("{}/{}", line.agent, line.role);
        let signed = if line.sig.is_some() { "signed" } else { "" };
        let before = format!("{:>5}  {time}  {actor:<20}  {signed:<6}  ", line.seq);
        let mut told = told(line);
        if ui.width().is_some() {
            told.start = shorten(&told.start, START_CHARS_MAX);
        }
        let used = before.chars().count() + told.start.chars().count() + told.rest.chars().count() + 2;
        let text = fitted(ui, &told.text, used);
        let text = if text.is_empty() { text } else { format!(": {text}") };
        let sentence = match told.mark {
            Some(Mark::Dim) => ui.paint.mark(Mark::Dim, &format!("{}{text}", told.start)),
            Some(mark) => format!("{}{text}", ui.paint.mark(mark, &told.start)),
            None => format!("{}{text}", told.start),
        };
        let before = before.replacen(time, &ui.paint.mark(Mark::Dim, time), 1);
        ui.line(&format!("{before}{sentence}{}", told.rest))?;
        for (label, text) in &told.below {
            let text = fitted(ui, text, DETAIL_COLUMN + 11);
            let label = ui.paint.mark(Mark::Dim, &format!("{label:<9}"));
            ui.line(&format!("{:DETAIL_COLUMN$}{label}  {text}", ""))?;
        }
        Ok(())
    }
}

/// A text without anything that a terminal obeys, as long as the rest of the line is; what is piped is not cut.
fn fitted(ui: &Ui, text: &str, used: usize) -> String {
    let text = printable(text);
    match ui.width() {
        Some(width) => shorten(&text, width.saturating_sub(used).max(TEXT_CHARS_MIN)),
        None => text,
    }
}

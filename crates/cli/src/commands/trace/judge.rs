//! `baton trace review` and `baton trace abort`: what a person says about the work of a trace, signed with the operator's key.
//!
//! A review is said in role critic, and a trace is aborted in role operator. What the states of the protocol allow is not judged here; that the trace has what
//! is reviewed, and that its work has not ended, is.

use std::collections::BTreeMap;

use baton_core::guard::Rule;
use baton_core::ids::Token;
use baton_core::{EventType, KeyId, Payload, Role, Seen, TraceId};
use baton_ledger::record::Line;
use baton_ledger::seal::{Receipt, Refusal};
use baton_runtime::engine::OperatorKey as _;
use baton_store::registry::{self, AgentKey, signed_own};
use baton_store::{History, ReadError, Workspace};
use serde_json::{Map, Value, json};

use super::change::{expect_length, expect_own_end};
use super::receipts_json;
use super::speaker::Speaker;
use crate::commands::Ended;
use crate::commands::events::parse;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::ids;
use crate::input::{Decision, Draft};
use crate::limits::{DECISIONS_MAX, READ_LINES, REASON_CHARS_MAX};
use crate::trace_args::{TraceAbort, TraceReview, Verdict};
use crate::ui::Ui;
use crate::ui::text::shorten;

/// Characters of a name that is not found, as it is repeated.
const NAME_CHARS: usize = 80;

pub(super) fn review(ctx: &Context, ui: &mut Ui, args: &TraceReview) -> Ended {
    expect_length("the reason", &args.reason, REASON_CHARS_MAX)?;
    let trace = ctx.trace(&args.id.trace)?;
    let writing = ctx.write(ui)?;
    let recorded = append_review(ctx, &writing, trace, args);
    end(ui, writing, trace, recorded, &format!("{} {}", args.verdict.done(), args.subject))
}

pub(super) fn abort(ctx: &Context, ui: &mut Ui, args: &TraceAbort) -> Ended {
    expect_length("the reason", &args.reason, REASON_CHARS_MAX)?;
    let read = ctx.board()?;
    let trace = ids::trace(&read.visit.reader, &args.id.trace)?;
    expect_own_end(&read.board, trace)?;
    let is_run = read.board.tasks().any(|task| task.guard == Some(trace));
    let writing = ctx.write(ui)?;
    let recorded = append_abort(ctx, &writing, trace, args);
    let exit = end(ui, writing, trace, recorded, &format!("aborted {trace}"))?;
    if is_run {
        // The task of a run that nobody plays is cancelled here; whoever plays one does so itself.
        let tasks = ctx.tasks(ui)?;
        let cited =
            tasks.cite_aborted(trace, &args.reason).map_err(|fault| Stop::from(CliError::from(fault)));
        tasks.finish(ui, cited)?;
    }
    Ok(exit)
}

/// Says what was recorded.
fn tell(ui: &mut Ui, trace: TraceId, receipts: &Recorded, said: &str) -> Result<(), Stop> {
    if ui.json {
        ui.object(&receipts_json(trace, receipts.iter().map(|(receipt, _)| receipt)))?;
    } else {
        ui.line(said)?;
    }
    ui.flush()
}

/// What was recorded, with the type of each.
type Recorded = Vec<(Receipt, String)>;

/// Says what was recorded and gives the data directory back, whichever way it went.
fn end(
    ui: &mut Ui,
    writing: Writing,
    trace: TraceId,
    recorded: Result<Recorded, CliError>,
    said: &str,
) -> Ended {
    let receipts = match recorded {
        Ok(receipts) => receipts,
        Err(error) => {
            writing.abandon();
            return Err(error.into());
        }
    };
    tell(ui, trace, &receipts, said)?;
    writing.close(ui)?;
    Ok(Exit::Ok)
}

/// Reviews what the trace has by this name. Others may append meanwhile: what was seen stays seen.
fn append_review(
    ctx: &Context,
    workspace: &Workspace,
    trace: TraceId,
    args: &TraceReview,
) -> Result<Recorded, CliError> {
    let speaker = Speaker { ctx, trace, agent: None, role: Some(Role::Critic) };
    let mut tries = 0;
    loop {
        let key = operator_key(workspace, Role::Critic)?;
        let past = Past::read(&*workspace.journal, trace, key.public.id(), &args.subject)?;
        past.expect_open(trace)?;
        if past.is_finished {
            return Err(ended(trace, "its final statement is signed"));
        }
        if past.is_executor {
            let what = format!("the operator's key executed in {trace}, and so cannot review in it");
            return Err(CliError::new(Code::OwnWork, what)
                .hint("let another agent review it: baton trace append --help"));
        }
        let subject = past.subject(trace, &args.subject)?;
        let lets_stand = subject == Subject::Claim && args.verdict == Verdict::Approve;
        if let Some(how) = past.answered.filter(|_| lets_stand) {
            let what = format!("{} {how}; this review is not recorded", shorten(&args.subject, NAME_CHARS));
            return Err(CliError::new(Code::Guard, what).hint(format!("baton trace show {trace}")));
        }
        let (event_type, payload) = subject.review(args);
        let head = past.head.seq;
        let draft = Draft { task: past.task.clone(), ..draft(event_type, payload, past.head)? };
        let decision = Decision { events: vec![draft] };
        tries += 1;
        match speaker.append_on(workspace, &mut BTreeMap::new(), decision, Some(head), None) {
            // Something was recorded meanwhile: looked at anew, because it may have been the final statement.
            Err(error) if error.code == Code::HeadMoved && tries < DECISIONS_MAX => {}
            Err(error) if is_late(&error) => return Err(past.late(trace, &args.subject, error)),
            ended => return ended,
        }
    }
}

/// Whether the rules of a run refuse a review because what it is about waits for none any more.
fn is_late(error: &CliError) -> bool {
    error.code == Code::Guard && error.causes == [Rule::Subject.remedy()]
}

/// Aborts the trace and closes it in one decision, so that nothing can follow. Whoever aborts must have seen the head.
fn append_abort(
    ctx: &Context,
    workspace: &Workspace,
    trace: TraceId,
    args: &TraceAbort,
) -> Result<Recorded, CliError> {
    let key = operator_key(workspace, Role::Operator)?;
    let past = Past::read(&*workspace.journal, trace, key.public.id(), "")?;
    past.expect_open(trace)?;
    let Seen { seq, hash } = past.head;
    if let Some(expected) = args.seen.filter(|seen| *seen != seq) {
        return Err(Refusal::HeadMoved { trace, expected, seq, hash }.into());
    }
    let payload = Map::from_iter([("reason".to_owned(), args.reason.clone().into())]);
    let draft = Draft { task: past.task.clone(), ..draft("trace_aborted", payload, past.head)? };
    let closed = Payload::TraceClosed { reason: "aborted".to_owned() };
    let closed = signed_own(trace, closed, &workspace.ledger_key)?;
    let speaker = Speaker { ctx, trace, agent: None, role: Some(Role::Operator) };
    let decision = Decision { events: vec![draft] };
    let receipts = speaker.append_on(workspace, &mut BTreeMap::new(), decision, None, Some(closed))?;
    // The head note can be made again at any time; the event is what counts.
    let _ = workspace.exporter().trace_head(trace);
    Ok(receipts)
}

/// The person's key, which is made when it is first needed. It must be bound for the role.
fn operator_key(workspace: &Workspace, role: Role) -> Result<AgentKey, CliError> {
    let name = baton_core::task::decide::operator().agent;
    let key = match registry::agent_key(&*workspace.journal, &name)? {
        Some(key) => key,
        None => workspace.keys.get(&*workspace.journal, &workspace.ledger_key)?.1,
    };
    if key.roles.contains(&role) {
        return Ok(key);
    }
    let roles: Vec<&str> = key.roles.iter().chain([&role]).map(|role| role.as_str()).collect();
    let what = format!("the operator's key {} is not bound for role {role}", key.public.id());
    let hint = format!("baton agent key {name} --rotate --role {}", roles.join(","));
    Err(CliError::new(Code::KeyNotAllowed, what).hint(hint))
}

fn draft(event_type: &str, payload: Map<String, Value>, seen: Seen) -> Result<Draft, CliError> {
    let event_type: EventType =
        event_type.parse().map_err(|error| CliError::new(Code::EventForm, format!("{error}")))?;
    Ok(Draft {
        event_type,
        payload,
        artifacts: Vec::new(),
        seen: Some(seen),
        task: None,
        run: None,
        session: None,
        fence: None,
        id: None,
        at: None,
        actor: None,
        trace: None,
        sig: None,
    })
}

/// What is reviewed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subject {
    Proposal,
    Intent,
    Claim,
}

impl Subject {
    fn word(self) -> &'static str {
        match self {
            Subject::Proposal => "a proposal",
            Subject::Intent => "an intent",
            Subject::Claim => "a claim",
        }
    }

    /// The type and the payload of a review of it.
    fn review(self, args: &TraceReview) -> (&'static str, Map<String, Value>) {
        let (event_type, payload) = match self {
            Subject::Proposal => {
                let status = if args.verdict == Verdict::Approve { "approved" } else { "rejected" };
                // A yes or a no has no conditions, and nobody was asked how risky it is.
                let payload = json!({
                    "proposal_id": args.subject, "status": status, "conditions": [], "risk": "unstated",
                    "rationale": args.reason,
                });
                ("proposal_reviewed", payload)
            }
            Subject::Intent => {
                let status = if args.verdict == Verdict::Approve { "approved" } else { "blocked" };
                let payload = json!({"intent_id": args.subject, "status": status, "rationale": args.reason});
                ("tool_intent_reviewed", payload)
            }
            Subject::Claim if args.verdict == Verdict::Approve => {
                // No rule asks for it, so that it is a note: whoever plays the run waits for it where a person is the critic.
                let payload =
                    json!({"claim_id": args.subject, "status": "unchallenged", "rationale": args.reason});
                ("note", payload)
            }
            Subject::Claim => {
                let payload = json!({"claim_id": args.subject, "reason": args.reason, "evidence": []});
                ("claim_challenged", payload)
            }
        };
        let Value::Object(payload) = payload else { return (event_type, Map::new()) };
        (event_type, payload)
    }
}

/// What the events of a trace say, as far as it matters here.
#[derive(Debug)]
struct Past {
    head: Seen,
    /// Of a claim: why nobody can let it stand any more.
    answered: Option<&'static str>,
    /// What it names: more than one thing where nobody looks after names.
    subjects: Vec<Subject>,
    /// Whether the operator's key acted as executor.
    is_executor: bool,
    is_finished: bool,
    /// The task whose guarded run it is. What is said about a run names it, so that whoever follows the task hears of it.
    task: Option<Token>,
    /// The last review of it: whose, and what it says.
    reviewed: Option<(String, String)>,
    /// Why its work is over.
    end: Option<&'static str>,
}

impl Past {
    /// Reads a trace up to its present head.
    fn read(journal: &dyn History, trace: TraceId, key: KeyId, subject: &str) -> Result<Past, CliError> {
        let Some(summary) = journal.trace(trace) else {
            return Err(CliError::new(Code::NoTrace, format!("no trace {trace}")).hint("baton trace ls"));
        };
        let mut past = Past {
            head: Seen { seq: summary.seq, hash: summary.head },
            answered: None,
            subjects: Vec::new(),
            is_executor: false,
            is_finished: false,
            task: None,
            reviewed: None,
            end: summary.is_closed.then_some("it is closed"),
        };
        let mut seq = 1;
        while seq <= summary.seq && past.end.is_none() {
            let lines = journal.read_trace(trace, seq, READ_LINES)?;
            if lines.is_empty() {
                let why = format!("number {seq} of {trace} is missing");
                return Err(ReadError::Damaged { pos: summary.last_pos, why }.into());
            }
            seq += lines.len() as u64;
            for stored in &lines {
                past.note(&parse(stored)?, key, subject);
            }
        }
        Ok(past)
    }

    fn note(&mut self, line: &Line<'_>, key: KeyId, subject: &str) {
        let is_named = |member: &str| {
            matches!(line.to_payload(), Ok(Payload::Other { fields, .. })
                if fields.get(member).and_then(Value::as_str) == Some(subject))
        };
        match line.event_type {
            "proposal_created" if is_named("proposal_id") => self.add(Subject::Proposal),
            "tool_intent_signed" if is_named("intent_id") => self.add(Subject::Intent),
            "claim_issued" if is_named("claim_id") => self.add(Subject::Claim),
            "claim_issued" if is_named("revises") => self.answered = Some("was revised"),
            "claim_challenged" if is_named("claim_id") => {
                self.answered.get_or_insert("is challenged, and waits for an answer");
            }
            "proposal_reviewed" if is_named("proposal_id") => self.reviewed = reviewed(line),
            "tool_intent_reviewed" if is_named("intent_id") => self.reviewed = reviewed(line),
            "override_recorded" if is_named("target") => self.answered = None,
            "session_initialized" if line.role == Role::System => {
                self.task = line.task.and_then(|task| task.parse().ok());
            }
            "final_statement_signed" => self.is_finished = true,
            "verification_run_completed" => self.end = Some("its verification is completed"),
            "trace_aborted" => self.end = Some("it is aborted"),
            _ => {}
        }
        self.is_executor |= line.role == Role::Executor && line.sig.is_some_and(|sig| sig.key == key);
    }

    fn add(&mut self, subject: Subject) {
        if !self.subjects.contains(&subject) {
            self.subjects.push(subject);
        }
    }

    /// That a review comes too late, and what came before it.
    fn late(&self, trace: TraceId, subject: &str, refused: CliError) -> CliError {
        let subject = shorten(subject, NAME_CHARS);
        let error = match &self.reviewed {
            Some((by, status)) => {
                CliError::new(Code::Guard, format!("{subject} is decided already: {by} said {status}"))
                    .cause("another review came first; this one is not recorded")
            }
            None => CliError::new(Code::Guard, refused.what)
                .cause("it waits for no review any more; this one is not recorded"),
        };
        error.hint(format!("baton trace show {trace}"))
    }

    fn expect_open(&self, trace: TraceId) -> Result<(), CliError> {
        self.end.map_or(Ok(()), |why| Err(ended(trace, why)))
    }

    fn subject(&self, trace: TraceId, name: &str) -> Result<Subject, CliError> {
        let name = shorten(name, NAME_CHARS);
        match *self.subjects {
            [subject] => Ok(subject),
            [] => {
                let what = format!("no proposal, intent or claim {name} in {trace}");
                Err(CliError::new(Code::NoSubject, what).hint(format!("baton trace show {trace}")))
            }
            [one, other, ..] => {
                let what = format!("{name} names {} and {} of {trace}", one.word(), other.word());
                Err(CliError::new(Code::Ambiguous, what).hint("baton trace append --help"))
            }
        }
    }
}

/// Whose review it is, and what it says.
fn reviewed(line: &Line<'_>) -> Option<(String, String)> {
    let Ok(Payload::Other { fields, .. }) = line.to_payload() else { return None };
    Some((line.agent.to_owned(), fields.get("status")?.as_str()?.to_owned()))
}

fn ended(trace: TraceId, why: &str) -> CliError {
    CliError::new(Code::TraceClosed, format!("the work of {trace} has ended"))
        .cause(why)
        .hint(format!("baton trace show {trace}"))
}

//! `baton run`: one attempt at one task, followed to its end.

use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use baton_core::AgentName;
use baton_core::limits::TITLE_CHARS_MAX;
use baton_core::session::EndReason;
use baton_core::task::decide::New;
use baton_core::task::{Refusal, Routing, Status, Task};
use baton_runtime::Fault;
use baton_runtime::session::NotBegun;
use baton_runtime::work::{Attempt, NotStarted, Outcome, RunEnd};
use baton_store::lock;
use serde_json::{Map, Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::driven::Driver;
use super::ending::{Stopped, ending_lines};
use super::follow::{Answers, Follower};
use super::guarded;
use crate::commands::Ended;
use crate::commands::house::House;
use crate::console::Stdin;
use crate::context::{Context, Writing};
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::serve::{Owner, ends_with_sessions};
use crate::session_args::Run;
use crate::task_names;
use crate::ui::Ui;
use crate::ui::shell;
use crate::ui::text::printable;
use crate::ui::time::{duration, exact};

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &Run) -> Ended {
    // Where somebody is to be asked, what they type goes along.
    let (answers, driven) = match (args.driven, args.yes) {
        // It is read once it is known that this process does it.
        (true, _) => (Answers::Nobody, Some(ctx.stdin()?)),
        (false, true) => {
            ctx.reach()?;
            (Answers::Yes, None)
        }
        (false, false) => {
            let stdin = ctx.stdin()?;
            (if stdin.is_terminal() { Answers::of_person(stdin) } else { Answers::Nobody }, None)
        }
    };
    if ctx.is_served() {
        let Writing::Shared(owner) = ctx.write(ui)? else {
            return Err(CliError::new(Code::NotServed, "this process owns nothing").into());
        };
        return work(ctx, ui, &owner, args, answers, driven);
    }
    let fail = |error: std::io::Error| CliError::io("serve", std::path::Path::new("."), &error);
    let (stopped, stop) = UnixStream::pair().map_err(fail)?;
    heed_interruption(ctx).map_err(fail)?;
    let house = match House::open(ctx, ui, stopped, false, None) {
        // Somebody else has just come to own it: they do this.
        Err(Stop::Error(error)) if error.code == Code::LockHeld => {
            ctx.reach()?;
            return Err(Stop::Error(error));
        }
        opened => opened?,
    };
    house.serve_beside(ui, &stop, |owner, ui| work(ctx, ui, owner, args, answers, driven)).map_err(fail)?
}

/// The first signal ends the attempt; the second ends the process at once.
fn heed_interruption(ctx: &Context) -> std::io::Result<()> {
    let (flag, code) = (&ctx.ends_at_once, i32::from(Exit::Interrupted.code()));
    flag.store(false, Ordering::Relaxed);
    signal_hook::flag::register_conditional_shutdown(SIGTERM, code, flag.clone())?;
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, flag.clone())?;
    }
    Ok(())
}

fn work(
    ctx: &Context,
    ui: &mut Ui,
    owner: &Arc<Owner>,
    args: &Run,
    answers: Answers,
    driven: Option<Stdin>,
) -> Ended {
    let began = Instant::now();
    let mut driver = driven.map(Driver::start).transpose()?;
    let wanted = Wanted::of(args, driver.as_mut())?;
    let turn = owner.crew.turn();
    let (task, agent) = task_and_agent(ctx, owner, args, &wanted)?;
    let mut begun = begin(owner, &task, &agent);
    drop(turn);
    if let Some(driver) = &mut driver {
        let mut is_said = false;
        while let Err(why @ NotStarted::Occupied { .. }) = &begun {
            if !std::mem::replace(&mut is_said, true) {
                waiting_line(ui, &task, &why.to_string())?;
            }
            if driver.leaves_within(WORKSPACE_LOOK) || !is_wanted(ctx) || ctx.is_abandoned() {
                stopped_line(ui, &task)?;
                return Ok(Exit::Interrupted);
            }
            begun = begin(owner, &task, &agent);
        }
    }
    let attempt = begun.map_err(|why| {
        let error = not_started(why, &task);
        match wanted.prompt {
            Some(_) => error.cause(format!("{} was made for it, and waits", task.id)),
            None => error,
        }
    })?;
    let answers = driver.map_or(answers, Answers::Program);
    let end =
        began_line(ui, &task, &attempt, &agent).and_then(|()| follow(ctx, ui, owner, &attempt, answers));
    let (end, usage) = match end {
        Ok(ended) => ended,
        Err(stop) => {
            // Whoever reads this has gone: the attempt was theirs.
            attempt.stop();
            attempt.wait();
            return Err(stop);
        }
    };
    finish(ui, owner, &attempt, &end, usage.as_ref(), began)
}

/// What is to be done, where no task is named: what was typed, or what the program says that drives this.
#[derive(Default)]
struct Wanted {
    prompt: Option<String>,
    metadata: Map<String, Value>,
}

impl Wanted {
    fn of(args: &Run, driver: Option<&mut Driver>) -> Result<Wanted, CliError> {
        let is_named = args.prompt.is_some() || args.task.is_some();
        match driver.filter(|_| !is_named) {
            Some(driver) => {
                let (prompt, metadata) = driver.prompt()?;
                Ok(Wanted { prompt: Some(prompt), metadata })
            }
            None => Ok(Wanted { prompt: args.prompt.clone(), metadata: Map::new() }),
        }
    }
}

/// How often it is looked whether the workspace is free.
const WORKSPACE_LOOK: Duration = Duration::from_millis(100);

/// Begins an attempt, or finds the one that whoever hands out work began with the same agent a moment before.
fn begin(owner: &Arc<Owner>, task: &Task, agent: &AgentName) -> Result<Arc<Attempt>, NotStarted> {
    let why = match owner.crew.begin(&task.id, agent) {
        Ok(attempt) => return Ok(attempt),
        Err(why) => why,
    };
    let attempt = owner.crew.attempt(&task.id).filter(|attempt| is_held(&why) && *attempt.agent() == *agent);
    attempt.ok_or(why)
}

/// That it waits, and for whom.
fn waiting_line(ui: &mut Ui, task: &Task, why: &str) -> Result<(), Stop> {
    if !ui.json {
        ui.note(&format!("{} waits: {}", task.id, printable(why)));
        return Ok(());
    }
    ui.object(&json!({"v": 1, "type": "run.waiting", "taskId": task.id.as_str(), "why": why}))?;
    ui.flush()
}

/// The last word of a run that never began.
fn stopped_line(ui: &mut Ui, task: &Task) -> Result<(), Stop> {
    let outcome = Outcome::Stopped.as_str();
    match ui.json {
        true => {
            ui.object(&json!({"v": 1, "type": "run.ended", "taskId": task.id.as_str(), "outcome": outcome}))
        }
        false => ui.line(&format!("{outcome}; {} waits", task.id)),
    }
}

/// What was begun: names for whoever reads along, before anything else.
fn began_line(ui: &mut Ui, task: &Task, attempt: &Attempt, agent: &AgentName) -> Result<(), Stop> {
    let session = attempt.session().to_string();
    if !ui.json {
        ui.note(&format!("{}  {session}  {agent}", task.id));
        return Ok(());
    }
    ui.object(&json!({
        "v": 1,
        "type": "run.started",
        "taskId": task.id.as_str(),
        "sessionId": session,
        "agent": agent.as_str(),
    }))?;
    ui.flush()
}

fn is_held(why: &NotStarted) -> bool {
    matches!(why, NotStarted::Fault(Fault::Refused(Refusal::Held { .. })))
}

fn not_started(why: NotStarted, task: &Task) -> CliError {
    match why {
        NotStarted::Fault(fault) => CliError::about(fault, &task.id, Some(task)),
        NotStarted::Occupied { .. } => {
            CliError::new(Code::Occupied, why.to_string()).hint("baton session ls --live")
        }
        NotStarted::Session(why) => not_begun(why),
        NotStarted::Team { .. } => {
            CliError::new(Code::NotStarted, why.to_string()).hint("baton policy check")
        }
        NotStarted::Worktree { .. } => CliError::new(Code::NotStarted, why.to_string()).hint("baton doctor"),
    }
}

/// Why no session began, and what helps.
pub(super) fn not_begun(why: NotBegun) -> CliError {
    let hint = match &why {
        NotBegun::NoDirectory(dir) => format!("mkdir -p {}", shell::path(dir)),
        NotBegun::NotResumable(session, _) => format!("baton session show {session}"),
        NotBegun::UnknownAgent(_) | NotBegun::NotRelayable(..) => "baton agent ls".to_owned(),
        NotBegun::Ending => "baton serve".to_owned(),
        NotBegun::Io(..) => "baton doctor".to_owned(),
        NotBegun::TooMany { .. } | NotBegun::TooManyOfAgent { .. } | NotBegun::Append(_) => {
            "baton session ls --live".to_owned()
        }
    };
    match why {
        NotBegun::Append(error) => error.into(),
        _ => CliError::new(Code::NotStarted, why.to_string()).hint(hint),
    }
}

/// The task that is worked on, made where there is none, and who does it.
fn task_and_agent(
    ctx: &Context,
    owner: &Owner,
    args: &Run,
    wanted: &Wanted,
) -> Result<(Task, AgentName), CliError> {
    let named = args.task.as_deref().map(|word| {
        let id = owner.engine.look(|board| task_names::find(board, word)).map_err(CliError::from)??;
        Ok::<_, CliError>(owner.engine.task(&id)?.0)
    });
    let named = named.transpose()?;
    // What is made of a prompt may be guarded without being asked to.
    let is_guarded = named.as_ref().map_or_else(|| owner.engine.guards(), Task::is_held_to_rules);
    let executor = owner.crew.executor().filter(|_| is_guarded);
    let routed = executor.clone().or_else(|| named.as_ref().and_then(|task| task.routing.agent.clone()));
    if let (Some(executor), Some(asked)) = (&executor, &args.agent)
        && executor != asked
    {
        let what = format!("{executor} executes guarded tasks (team.executor), and not {asked}");
        return Err(CliError::new(Code::Value, what).hint("leave out --agent"));
    }
    let agent = match (args.agent.clone().or(routed), &named) {
        (Some(agent), _) => agent,
        // What a guarded run came to is for somebody else to judge: nobody is taken for that unasked.
        (None, Some(task)) if task.guarded && !is_guarded => return Err(waits_for_judgement(task)),
        (None, _) => only_agent(owner, &with_mock(args))?,
    };
    if !owner.broker.agents().contains_key(&agent) {
        return Err(unknown_agent(ctx, owner, &agent));
    }
    let Some(prompt) = &wanted.prompt else {
        return Ok((named.ok_or_else(|| CliError::new(Code::Usage, "no prompt and no task"))?, agent));
    };
    let (title, body) = title_and_body(prompt);
    if title.is_empty() {
        return Err(CliError::new(Code::Usage, "the prompt is empty: say what is to be done")
            .hint("baton run \"what is to be done\""));
    }
    let routing = Routing { agent: Some(agent.clone()), ..Routing::default() };
    let new =
        New { body, status: Status::Ready, routing, metadata: wanted.metadata.clone(), ..New::titled(title) };
    Ok((owner.engine.create(&new)?.0, agent))
}

fn waits_for_judgement(task: &Task) -> CliError {
    let id = shell::word(task.id.as_str());
    CliError::new(Code::NoAgent, format!("{} waits for somebody to judge it: its work is done", task.id))
        .cause("a person approves or rejects it; an agent that should review it is named with --agent")
        .hint(format!("baton task approve {id}"))
}

/// The first line as the title; the whole as the body, where that says more.
fn title_and_body(prompt: &str) -> (String, String) {
    let prompt = prompt.trim();
    let first = prompt.lines().next().unwrap_or_default().trim();
    let title: String = first.chars().take(TITLE_CHARS_MAX).collect();
    let body = if title == prompt { String::new() } else { prompt.to_owned() };
    (title, body)
}

/// The same command, for the agent that is always there.
fn with_mock(args: &Run) -> String {
    match (&args.prompt, &args.task) {
        (_, Some(task)) => format!("baton run --task {} --agent mock", shell::word(task)),
        (Some(prompt), None) => format!("baton run {} --agent mock", shell::word(prompt)),
        (None, None) => "baton run --driven --agent mock".to_owned(),
    }
}

/// The agent that is meant where none is named; `with_mock` is what to type where there is none but the mock.
pub(super) fn only_agent(owner: &Owner, with_mock: &str) -> Result<AgentName, CliError> {
    let mut agents = owner.broker.agents().values().filter(|spec| spec.takes_any());
    match (agents.next(), agents.next()) {
        (Some(only), None) => Ok(only.name.clone()),
        (None, _) => Err(CliError::new(Code::NoAgent, "no agent is configured")
            .cause(
                "`baton agent add NAME -- COMMAND` adds one; `mock` is always there, for trying things out",
            )
            .hint(with_mock)),
        _ => Err(CliError::new(Code::NoAgent, "several agents are configured: which one should do it?")
            .hint("baton agent ls")),
    }
}

pub(super) fn unknown_agent(ctx: &Context, owner: &Owner, agent: &AgentName) -> CliError {
    let root = owner.workspace.layout.root();
    if ctx.settings(Some(root)).is_ok_and(|settings| settings.agents.contains_key(agent)) {
        return started_before(owner, agent);
    }
    let names = owner.broker.agents().keys().map(AgentName::as_str);
    let near = crate::config::did_you_mean(agent.as_str(), names);
    CliError::new(Code::NoAgent, format!("there is no agent {agent}{near}")).hint("baton agent ls")
}

/// The configuration has the agent, and the process that would start it was told of it never.
fn started_before(owner: &Owner, agent: &AgentName) -> CliError {
    let pid = std::process::id();
    let holder = lock::holder(&owner.workspace.layout).ok().flatten();
    let what = format!("agent {agent} is not known to process {pid}, which does this");
    let error = CliError::new(Code::NoAgent, what);
    if ends_with_sessions() {
        // Whoever ended it would end a session that somebody talks to.
        return error
            .cause("it was started for a session, before the agent was added, and ends with its last one")
            .hint("baton session ls --live");
    }
    match holder.is_some_and(|holder| holder.command.contains("serve")) {
        true => error
            .cause("it was started before the agent was added: end it, and start it again")
            .hint(format!("kill {pid}; baton serve")),
        false => error
            .cause("it was started before the agent was added: try again when it has ended")
            .hint("baton session ls --live"),
    }
}

/// Whether nobody interrupted it.
pub(super) fn is_wanted(ctx: &Context) -> bool {
    !ctx.ends_at_once.load(Ordering::Relaxed) || ctx.is_served()
}

fn follow(
    ctx: &Context,
    ui: &mut Ui,
    owner: &Owner,
    attempt: &Attempt,
    answers: Answers,
) -> Result<(RunEnd, Option<Value>), Stop> {
    if let Some(playing) = attempt.playing() {
        return Ok((guarded::follow(ctx, ui, owner, attempt, &playing)?, None));
    }
    let Some(live) = attempt.live() else { return Ok((attempt.wait(), None)) };
    let mut follower = Follower::new(live, answers, "operator");
    let mut is_stopped = false;
    loop {
        let goes_on = follower.step(ui)?;
        let is_left = ctx.is_abandoned() || follower.is_left();
        if (!is_wanted(ctx) || is_left) && !std::mem::replace(&mut is_stopped, true) {
            attempt.stop();
        }
        if !goes_on {
            return Ok((attempt.wait(), follower.usage().cloned()));
        }
    }
}

/// The last word.
fn finish(
    ui: &mut Ui,
    owner: &Owner,
    attempt: &Attempt,
    end: &RunEnd,
    usage: Option<&Value>,
    began: Instant,
) -> Ended {
    let task = &attempt.bound().task;
    let exit = match end.outcome {
        Outcome::Done | Outcome::NeedsReview | Outcome::Partial => Exit::Ok,
        Outcome::Blocked => Exit::Refused,
        Outcome::Failed | Outcome::Limited => Exit::AgentFailed,
        Outcome::Stopped => Exit::Interrupted,
        Outcome::Lost => Exit::Conflict,
    };
    if ui.json {
        let mut last = json!({
            "v": 1,
            "type": "run.ended",
            "taskId": task.as_str(),
            "sessionId": attempt.session().to_string(),
            "outcome": end.outcome.as_str(),
        });
        let details = [
            ("why", end.why.clone().map(Value::String)),
            ("usage", usage.cloned()),
            ("terminationInfo", end.termination.as_ref().and_then(|data| serde_json::to_value(data).ok())),
        ];
        for (key, value) in details {
            if let Some(value) = value {
                last[key] = value;
            }
        }
        ui.object(&last)?;
        return Ok(exit);
    }
    let stands = owner.engine.look(|board| board.get(task).map(|task| (task.status, task.not_before)));
    let stands = stands.ok().flatten();
    let status = stands.map_or_else(String::new, |(status, _)| format!("; {task} is in {status}"));
    let until = stands.and_then(|(_, until)| until.filter(|_| end.outcome == Outcome::Limited));
    let until = until.map_or_else(String::new, |until| format!(", and waits until {}", exact(until)));
    let took = duration(began.elapsed().as_secs());
    if let (Some(data), Exit::AgentFailed) = (&end.termination, exit)
        && data.reason == EndReason::Error
    {
        // What the last line says is not said twice.
        let said = usize::from(end.why == data.message);
        ending_lines(data, &Stopped::Unknown).iter().skip(said).for_each(|line| ui.note(line));
    }
    let why = end.why.as_deref().map(|why| format!(": {}", printable(why))).unwrap_or_default();
    ui.line(&format!("{}{why}  ({took}{}){status}{until}", end.outcome.as_str(), cost(usage)))?;
    if !matches!(end.outcome, Outcome::Done | Outcome::Stopped | Outcome::Lost) {
        ui.hint(&format!("baton task show {task}"));
    }
    Ok(exit)
}

/// What it cost, as far as the agent said so.
fn cost(usage: Option<&Value>) -> String {
    let Some(usage) = usage else { return String::new() };
    let number = |keys: &[&str]| keys.iter().find_map(|key| usage.get(*key).and_then(Value::as_u64));
    let mut parts = Vec::new();
    parts.extend(number(&["inputTokens", "input_tokens", "prompt_tokens"]).map(|n| format!("{n} tokens in")));
    parts.extend(number(&["outputTokens", "output_tokens", "completion_tokens"]).map(|n| format!("{n} out")));
    let amount = usage.pointer("/cost/amount").or_else(|| usage.get("total_cost_usd"));
    parts.extend(amount.and_then(Value::as_f64).map(|amount| format!("cost {amount:.4}")));
    parts.iter().map(|part| format!(", {part}")).collect()
}

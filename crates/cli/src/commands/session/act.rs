//! What changes a session: starting, sending, answering, ending.

use std::process::{Command, Stdio};
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use baton_core::ids::SessionId;
use baton_core::session::{Answer, EndReason, PermissionKind, RunStatus, StateKind};
use baton_runtime::session::{Ask, Begin, Live};
use serde_json::json;

use super::led::Led;
use super::show::{Seen, print, retryable};
use super::{board, owner, running};
use crate::commands::Ended;
use crate::commands::ending::{Stopped, ending_lines};
use crate::commands::follow::{Answers, Follower};
use crate::commands::run::{not_begun, only_agent, unknown_agent};
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::input::read_text;
use crate::limits::{CANDIDATES_MAX, QUESTION_WAIT, SERVE_START_WAIT, SOCKET_RETRY_MS};
use crate::serve::UNTIL_IDLE;
use crate::session_args::{Permit, RetryHook, RetryTool, SessionAsk, SessionOne, SessionSend, SessionStart};
use crate::sessions::{self, own_program};
use crate::ui::Ui;
use crate::ui::shell;

pub(super) fn start(ctx: &Context, ui: &mut Ui, args: &SessionStart) -> Ended {
    let Some(owner) = owner(ctx, ui)? else { return serve_and_retry(ctx) };
    let agent = match &args.agent {
        Some(agent) => agent.clone(),
        None => only_agent(&owner, "baton session start --agent mock")?,
    };
    if !owner.broker.agents().contains_key(&agent) {
        return Err(unknown_agent(ctx, &owner, &agent).into());
    }
    let cwd = match &args.cwd {
        Some(dir) => ctx.path(dir),
        None => owner.engine.ground().workspace.clone(),
    };
    let cwd = cwd.canonicalize().or_else(|_| std::path::absolute(&cwd)).unwrap_or(cwd);
    let dir = sessions::dir_of(&owner.workspace.layout);
    let resumes = args.resume.as_deref().map(|word| sessions::find(&dir, word).map(|found| found.id));
    let resumes = resumes.transpose()?;
    let begin = Begin { agent, cwd, bound: None, id: None, resumes, signals: None, gate: None, part: None };
    let live = owner.broker.begin(begin, Box::new(|_, _| {})).map_err(not_begun)?;
    let id = live.handle.id();
    wait_until_ready(&live);
    let snapshot = sessions::find(&dir, &id.to_string())?;
    if !ui.json && snapshot.ended.is_none() {
        ui.line(&id.to_string())?;
        ui.hint(&format!("baton session send {id} \"what is to be done\""));
        return Ok(Exit::Ok);
    }
    let exit = if snapshot.ended.is_some() { Exit::AgentFailed } else { Exit::Ok };
    print(ui, &snapshot, &Seen::of(ctx, &snapshot, Some(&live))?)?;
    Ok(exit)
}

/// Waits until a session takes input, or does not. The deadline of the handshake is the session's own.
fn wait_until_ready(live: &Live) {
    let mut position = 0;
    let is_on_its_way = |state| matches!(state, StateKind::Idle | StateKind::Starting | StateKind::Error);
    while is_on_its_way(live.handle.state()) {
        match live.handle.feed().after(position, Duration::from_secs(1)) {
            baton_runtime::session::Next::Items(items) => {
                position = items.last().map_or(position, |item| item.at);
            }
            baton_runtime::session::Next::Over => return,
            _ => {}
        }
    }
    if live.handle.state() == StateKind::Stopped {
        // What is kept of its end is written before this.
        live.handle.feed().wait_for_end();
    }
}

/// Starts a process that serves until its last session has ended, and hands the command over to it.
fn serve_and_retry(ctx: &Context) -> Ended {
    use std::os::unix::process::CommandExt as _;
    let layout = ctx.layout()?;
    let failed = |error: std::io::Error| CliError::io("serve", layout.root(), &error);
    let mut command = Command::new(own_program());
    // In this order: the first words are what others see of whoever owns the data directory.
    command.arg("serve").arg(UNTIL_IDLE).arg("--no-dispatch").arg("--data-dir").arg(layout.root());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).process_group(0);
    let mut child = command.spawn().map_err(failed)?;
    let until = Instant::now() + SERVE_START_WAIT;
    while Instant::now() < until {
        ctx.reach()?;
        if child.try_wait().map_err(failed)?.is_some_and(|status| !status.success()) {
            break;
        }
        std::thread::sleep(Duration::from_millis(SOCKET_RETRY_MS));
    }
    ctx.reach()?;
    Err(CliError::new(Code::NotServed, "no process serves the data directory, and none could be started")
        .hint("baton serve")
        .into())
}

/// Asks for something; `refused` says what it means where that does not fit.
fn tell(ui: &mut Ui, live: &Live, ask: Ask, refused: impl FnOnce(String) -> CliError) -> Ended {
    let id = live.handle.id();
    live.handle.ask(ask).map_err(refused)?;
    if ui.json {
        ui.object(&json!({"v": 1, "id": id.to_string(), "state": live.handle.state().as_str()}))?;
    }
    Ok(Exit::Ok)
}

pub(super) fn send(ctx: &Context, ui: &mut Ui, args: &SessionSend) -> Ended {
    if args.text.trim().is_empty() {
        return Err(CliError::new(Code::Usage, "the text is empty: say what is to be done")
            .hint(format!("baton session send {} \"what is to be done\"", shell::word(&args.one.session)))
            .into());
    }
    let (_, live) = running(ctx, ui, &args.one.session)?;
    let id = live.handle.id();
    tell(ui, &live, Ask::Send(args.text.clone()), |why| {
        let what = match live.handle.state() {
            StateKind::Stopping | StateKind::Stopped => format!("session {id}: {why}"),
            state => format!("session {id} is in {state}: it takes input when it is ready"),
        };
        CliError::new(Code::SessionRefused, what).hint(format!("baton session attach {id}"))
    })
}

pub(super) fn stop(ctx: &Context, ui: &mut Ui, one: &SessionOne) -> Ended {
    if let Some(led) = Led::find(ctx, ui, &one.session)? {
        return led.stop(ctx, ui);
    }
    let (owner, live) = running(ctx, ui, &one.session)?;
    let attempt = live.bound.as_ref().and_then(|bound| owner.crew.attempt(&bound.task));
    match attempt.filter(|attempt| attempt.session() == live.handle.id()) {
        Some(attempt) => {
            attempt.stop();
            attempt.wait();
        }
        None => {
            live.handle.ask(Ask::Stop).map_err(|why| CliError::new(Code::SessionRefused, why))?;
            live.handle.feed().wait_for_end();
        }
    }
    let snapshot = sessions::find(&sessions::dir_of(&owner.workspace.layout), &live.handle.id().to_string())?;
    print(ui, &snapshot, &Seen::of(ctx, &snapshot, Some(&live))?)
}

pub(super) fn retry_tool(ctx: &Context, ui: &mut Ui, args: &RetryTool) -> Ended {
    let (_, live) = running(ctx, ui, &args.one.session)?;
    let runs = live.handle.view().tool_runs;
    let known = runs.iter().find(|run| run.run_id == args.run).map(|run| (run.tool_name.clone(), run.status));
    let Some((name, status)) = known else { return Err(no_run(&live, "tool", &args.run.to_string()).into()) };
    tell(ui, &live, Ask::RetryTool(args.run), |_| not_retried(&live, &format!("tool {name}"), status))
}

pub(super) fn retry_hook(ctx: &Context, ui: &mut Ui, args: &RetryHook) -> Ended {
    let (_, live) = running(ctx, ui, &args.one.session)?;
    let runs = live.handle.view().hook_runs;
    let known = runs.iter().find(|run| run.run_id == args.run).map(|run| (run.hook_name.clone(), run.status));
    let Some((name, status)) = known else { return Err(no_run(&live, "hook", &args.run.to_string()).into()) };
    tell(ui, &live, Ask::RetryHook(args.run), |_| not_retried(&live, &format!("hook {name}"), status))
}

fn no_run(live: &Live, what: &str, run: &str) -> CliError {
    let id = live.handle.id();
    let error = CliError::new(Code::NoRequest, format!("session {id} has no run {run} of a {what}"));
    match retryable(&live.handle.view()) {
        Some((verb, run)) => error.hint(format!("baton session {verb} {id} {run}")),
        None => error.hint(format!("baton session show {id}")),
    }
}

/// Why a run that there is cannot be tried again now.
fn not_retried(live: &Live, name: &str, status: RunStatus) -> CliError {
    let (id, view) = (live.handle.id(), live.handle.view());
    let refused =
        |why: String| CliError::new(Code::SessionRefused, format!("{name} is not run again: {why}"));
    if status != RunStatus::Failed {
        return refused(format!("it did not fail, it is {}", status.as_str()))
            .hint(format!("baton session show {id}"));
    }
    match retryable(&view) {
        Some((verb, run)) => refused("only what the last error is about can be retried".to_owned())
            .hint(format!("baton session {verb} {id} {run}")),
        None if matches!(view.state, StateKind::Ready | StateKind::Error) => refused(
            "only what the last error is about can be retried, and the session went on since".to_owned(),
        )
        .hint(format!("baton session show {id}")),
        None => refused(format!("the session is in {}, and a retry is for one that waits", view.state))
            .hint(format!("baton session attach {id}")),
    }
}

pub(super) fn permit(ctx: &Context, ui: &mut Ui, args: Permit) -> Ended {
    let (_, live) = running(ctx, ui, &args.one.session)?;
    let pending = live.handle.view().permissions;
    if !pending.iter().any(|asked| asked.id == args.request) {
        return Err(no_request(&live, &args.request).into());
    }
    let answer = match args.answer.as_str() {
        "allow" => Answer::Allow,
        "deny" => Answer::Deny,
        _ => Answer::Text(args.answer),
    };
    let is_question =
        pending.iter().any(|asked| asked.id == args.request && asked.kind == PermissionKind::Question);
    if matches!(answer, Answer::Text(_)) && !is_question {
        let what = format!("{}: expected allow or deny; only a question is answered by a text", args.request);
        return Err(CliError::new(Code::Value, what)
            .hint(format!("baton session show {}", live.handle.id()))
            .into());
    }
    if let Some(part) = live.part.filter(|_| !is_question) {
        // Else it would be kept from running without a word in the run.
        let (what, trace) = (&args.request, part.trace);
        let what = format!("{what}: a tool of a guarded run is let through or blocked by its critic");
        let hint =
            format!("baton trace review {trace} INTENT approve --reason \"…\" (baton trace show {trace})");
        return Err(CliError::new(Code::Guard, what).hint(hint).into());
    }
    let answer = match answer {
        Answer::Allow if is_question => Answer::Text("allow".to_owned()),
        answer => answer,
    };
    let request = args.request.clone();
    // Somebody else was quicker.
    let gone = |_| no_request(&live, &request);
    tell(ui, &live, Ask::Permit { id: args.request, answer, by: "operator".to_owned() }, gone)
}

fn no_request(live: &Live, request: &str) -> CliError {
    let (id, pending) = (live.handle.id(), live.handle.view().permissions);
    let error =
        CliError::new(Code::NoRequest, format!("session {id} asks for nothing that is called {request}"));
    match pending.first() {
        None => error.cause("it waits for no answer").hint(format!("baton session show {id}")),
        Some(first) => {
            let waiting = pending.iter().take(CANDIDATES_MAX);
            let error = waiting.fold(error, |error, asked| {
                error.cause(format!("it waits for {}  {}", asked.id, asked.title))
            });
            error.hint(format!("baton session permit {id} {} allow", shell::word(&first.id)))
        }
    }
}

/// Puts a question of an agent to whoever is there, and waits for the answer.
pub(super) fn ask(ctx: &Context, ui: &mut Ui, args: &SessionAsk) -> Ended {
    let text = match args.text.as_str() {
        "-" => read_text(ctx, std::path::Path::new("-"))?,
        text => text.to_owned(),
    };
    let (_, live) = running(ctx, ui, &args.one.session)?;
    let (send, answered) = sync_channel(1);
    live.handle
        .ask(Ask::Question { text, answer: send })
        .map_err(|why| CliError::new(Code::SessionRefused, why))?;
    let answer = answered.recv_timeout(QUESTION_WAIT).ok();
    let text = match answer {
        Some(Answer::Text(text)) => Some(text),
        _ => None,
    };
    if ui.json {
        let mut object = json!({"v": 1, "answered": text.is_some()});
        if let Some(text) = text {
            object["text"] = text.into();
        }
        ui.object(&object)?;
    } else {
        ui.line(text.as_deref().unwrap_or("nobody answered"))?;
    }
    Ok(Exit::Ok)
}

/// Hands in what a player of a guarded run says.
pub(super) fn submit(ctx: &Context, ui: &mut Ui, one: &SessionOne) -> Ended {
    let text = read_text(ctx, std::path::Path::new("-"))?;
    let object = match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(object)) => object,
        Ok(_) => return Err(CliError::new(Code::InputForm, "expected a JSON object").into()),
        Err(error) => {
            return Err(CliError::new(Code::InputForm, "expected a JSON object")
                .cause(error.to_string())
                .into());
        }
    };
    let (owner, live) = running(ctx, ui, &one.session)?;
    let taken = owner.crew.submit(live.handle.id(), &object);
    let said = taken.map_err(|why| CliError::new(Code::Guard, why).hint("baton explain G001"))?;
    if ui.json {
        ui.object(&json!({"v": 1, "accepted": true, "said": said}))?;
    } else {
        ui.line(&said)?;
    }
    Ok(Exit::Ok)
}

pub(super) fn attach(ctx: &Context, ui: &mut Ui, one: &SessionOne) -> Ended {
    let stdin = ctx.stdin()?;
    let is_terminal = stdin.is_terminal();
    if let Some(led) = Led::find(ctx, ui, &one.session)? {
        return led.attach(ctx, ui);
    }
    let (_, live) = running(ctx, ui, &one.session)?;
    let answers = if is_terminal { Answers::of_person(stdin) } else { Answers::Others };
    let id = live.handle.id();
    let mut follower = Follower::new(live, answers, "operator").talking();
    if is_terminal {
        ui.note("what you type is sent once it is ready; y or n answers what it asks for; Ctrl-C leaves it running");
    }
    let follow = |follower: &mut Follower, ui: &mut Ui| -> Result<(), Stop> {
        while follower.step(ui)? && !ctx.is_abandoned() {}
        Ok(())
    };
    follow(&mut follower, ui)?;
    end_of(ctx, ui, id)
}

/// Says how a session ended that was followed, if it has.
pub(super) fn end_of(ctx: &Context, ui: &mut Ui, id: SessionId) -> Ended {
    let snapshot = sessions::find(&sessions::dir_of(&ctx.layout()?), &id.to_string())?;
    let stopped = Stopped::on(&board(ctx), &snapshot);
    let Some(data) = snapshot.ended else { return Ok(Exit::Ok) };
    if !ui.json {
        ending_lines(&data, &stopped).iter().try_for_each(|line| ui.line(line))?;
    }
    Ok(if data.reason == EndReason::Error { Exit::AgentFailed } else { Exit::Ok })
}

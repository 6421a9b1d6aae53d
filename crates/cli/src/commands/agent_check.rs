//! `baton agent check`: really starts an agent, and says what works.

use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use baton_core::AgentName;
use baton_core::session::ProcessEnd;
use baton_runtime::agent::{Exit as ProcessExit, Launch};
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::harness::exec::ExecHarness;
use baton_runtime::harness::llm::{Key, LlmHarness, LlmSetup};
use baton_runtime::harness::{AgentSpec, Drive, Failure, Harness, Ready, Told};
use baton_runtime::session::Tell;
use serde_json::{Value, json};

use crate::args::AgentCheck;
use crate::commands::Ended;
use crate::config::Settings;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::repository::no_worktrees_in;
use crate::sessions::{agents, own_program};
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::shell;
use crate::ui::text::printable;

/// What was found of an agent: shown as it is found, since an agent that does not answer takes its time; for scripts at the end, in one piece.
struct Found<'a> {
    ui: &'a mut Ui,
    rows: Vec<(&'static str, bool, String)>,
    /// Why it could not be shown.
    stop: Option<Stop>,
    /// It runs, and does not answer as agents that speak ACP do.
    is_mute: bool,
}

impl Found<'_> {
    fn good(&mut self, what: &'static str, detail: impl Into<String>) {
        self.put(what, true, detail.into());
    }

    fn bad(&mut self, what: &'static str, detail: impl Into<String>) {
        self.put(what, false, detail.into());
    }

    fn put(&mut self, what: &'static str, is_good: bool, detail: String) {
        if !self.ui.json && self.stop.is_none() {
            let (word, mark) = if is_good { ("ok", Mark::Good) } else { ("failed", Mark::Bad) };
            let line = format!("{what:<10} {}  {}", self.ui.paint.mark(mark, word), printable(&detail));
            self.stop = self.ui.line(&line).and_then(|()| self.ui.flush()).err();
        }
        self.rows.push((what, is_good, detail));
    }
}

pub(super) fn check(ctx: &Context, ui: &mut Ui, args: &AgentCheck) -> Ended {
    let root = ctx.find_data_dir();
    let settings = ctx.settings(root.as_deref())?;
    let specs = agents(&settings, &own_program());
    let Some(spec) = specs.get(&args.agent) else {
        let what = format!("there is no agent {}", args.agent);
        return Err(CliError::new(Code::NoAgent, what).hint("baton agent ls").into());
    };
    let work = match &root {
        Some(root) => ctx.work_dir(root),
        None => ctx.here().map_err(|error| CliError::io("find", Path::new("."), &error))?,
    };
    let mut found = Found { ui: &mut *ui, rows: Vec::new(), stop: None, is_mute: false };
    if spec.worktree && root.is_some() {
        match no_worktrees_in(&work) {
            None => found.good("worktree", "git can make one for each task"),
            Some(why) => found.bad("worktree", format!("each task gets one, and {why}")),
        }
    }
    really_start(&found_from(spec, &work), &settings, args.turn, &mut found)?;
    let Found { rows, stop, is_mute, .. } = found;
    if let Some(stop) = stop {
        return Err(stop);
    }
    let is_good = rows.iter().all(|(_, is_good, _)| *is_good);
    if ui.json {
        let checks: Vec<Value> = rows
            .iter()
            .map(|(what, is_good, detail)| json!({"check": what, "status": if *is_good { "ok" } else { "failed" }, "detail": detail}))
            .collect();
        ui.object(&json!({"v": 1, "agent": args.agent.as_str(), "works": is_good, "checks": checks}))?;
    } else if let (true, Drive::Acp { command }) = (is_mute, &spec.drive) {
        // The name is taken: the hint is about another one.
        let name = format!("{}-plain", args.agent).parse::<AgentName>().ok();
        if let Some(name) = name.filter(|name| !specs.contains_key(name)) {
            ui.note(
                "it does not speak ACP as expected; a program that is run once for each prompt is added so:",
            );
            ui.hint(&format!("baton agent add {name} --profile plain -- {}", shell::words(command)));
        }
    }
    Ok(if is_good { Exit::Ok } else { Exit::AgentFailed })
}

/// The agent with the paths of its command as a session finds them: the check does not run in the workspace.
fn found_from(spec: &AgentSpec, work: &Path) -> AgentSpec {
    let mut spec = spec.clone();
    if let Drive::Acp { command } | Drive::Exec { command, .. } = &mut spec.drive {
        for (i, word) in command.iter_mut().enumerate() {
            let path = work.join(&*word);
            let is_relative = word.contains('/') && Path::new(word).is_relative();
            if is_relative
                && (i == 0 || path.exists())
                && let Some(path) = path.to_str()
            {
                *word = path.to_owned();
            }
        }
    }
    spec
}

fn own_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Starts it in an empty directory, shakes hands, and ends it. What has no handshake gets a small prompt, since nothing else would start it.
fn really_start(
    spec: &AgentSpec,
    settings: &Settings,
    has_turn: bool,
    found: &mut Found<'_>,
) -> Result<(), Stop> {
    // A name that nobody can have taken before.
    let name: String = baton_store::clock::random().iter().map(|byte| format!("{byte:02x}")).collect();
    let dir = std::env::temp_dir().join(format!("baton-check-{name}"));
    let io = |error: std::io::Error| CliError::io("use", &dir, &error);
    std::fs::DirBuilder::new().mode(0o700).create(&dir).map_err(io)?;
    let (tell, told) = sync_channel(TOLD_AT_ONCE);
    let began = Instant::now();
    match harness(spec, settings, &dir, Box::new(move |said| drop(tell.send(said)))) {
        Err(error) => found.bad("start", error.to_string()),
        Ok(mut harness) => {
            found.good("start", harness.pid().map_or("ready".to_owned(), |pid| format!("process {pid}")));
            let has_handshake = matches!(spec.drive, Drive::Acp { .. } | Drive::Mock { .. });
            let mut talk = Talk { told: &told, harness: &mut *harness, until: began + spec.waits.handshake };
            if talk.shake_hands(found, began) && (has_turn || !has_handshake) {
                talk.until = Instant::now() + spec.waits.inactivity;
                talk.turn(found);
            }
            talk.end(found);
        }
    }
    let _ = std::fs::remove_dir_all(&dir);
    Ok(())
}

/// What drives it, as a session would have it but for Baton's own tools.
fn harness(
    spec: &AgentSpec,
    settings: &Settings,
    dir: &Path,
    tell: Tell,
) -> std::io::Result<Box<dyn Harness>> {
    let (env, dir, grace) = (spec.environment(own_variable), dir.to_owned(), spec.waits.exit);
    let cwd = dir.clone();
    let launch = move |words: &[String]| Launch {
        words: words.to_vec(),
        dir: dir.clone(),
        env: env.clone(),
        stderr_lines: 10,
        stderr_copy: None,
        grace,
    };
    Ok(match &spec.drive {
        Drive::Acp { command } | Drive::Mock { command } => {
            let setup = Setup { cwd, mode: spec.mode.clone(), ..Setup::default() };
            Box::new(AcpHarness::start(launch(command), setup, tell)?)
        }
        Drive::Exec { command, profile } => {
            let command = command.clone();
            Box::new(ExecHarness::start(Box::new(move || Ok(launch(&command))), *profile, tell)?)
        }
        Drive::Llm { api, base_url, model, api_key_env } => Box::new(LlmHarness::start(
            LlmSetup {
                api: *api,
                base_url: base_url.clone().unwrap_or_else(|| api.own_server().to_owned()),
                model: model.clone(),
                key: api_key_env.as_deref().map(Key::from_env).transpose()?,
                system: None,
                tools: Vec::new(),
                max_tokens: None,
                timeout: settings.session.llm_timeout,
            },
            tell,
        )?),
    })
}

/// What waits to be looked at, and bytes of an answer that are.
const TOLD_AT_ONCE: usize = 16;
const TEXT_LOOKED_AT: usize = 4096;

struct Talk<'a> {
    told: &'a std::sync::mpsc::Receiver<Told>,
    harness: &'a mut dyn Harness,
    until: Instant,
}

impl Talk<'_> {
    fn next(&self) -> Result<Told, RecvTimeoutError> {
        self.told.recv_timeout(self.until.saturating_duration_since(Instant::now()))
    }

    fn shake_hands(&mut self, found: &mut Found<'_>, began: Instant) -> bool {
        loop {
            match self.next() {
                Ok(Told::Ready(ready)) => {
                    let Ready { agent, can_load, mode, .. } = ready;
                    let took = began.elapsed().as_millis();
                    found.good(
                        "handshake",
                        format!("{} in {took} ms", agent.unwrap_or_else(|| "no name".into())),
                    );
                    found.good("session", mode.map_or("no modes".to_owned(), |mode| format!("mode {mode}")));
                    found.good("resume", if can_load { "it can load a session" } else { "not offered" });
                    return true;
                }
                Ok(Told::Broken(Failure { message, .. })) => {
                    found.is_mute = true;
                    found.bad("handshake", message);
                    return false;
                }
                Ok(Told::Exited(exit)) => {
                    found.is_mute = !matches!(exit.process, ProcessEnd::NotSpawned(_));
                    found.bad("handshake", exit_words(&exit));
                    return false;
                }
                Ok(_) => {}
                Err(_) => {
                    found.is_mute = true;
                    found.bad("handshake", "no answer in time");
                    return false;
                }
            }
        }
    }

    fn turn(&mut self, found: &mut Found<'_>) {
        let prompt = "Reply with the single word OK and use no tools.".to_owned();
        if let Err(failure) = self.harness.prompt(&[prompt]) {
            return found.bad("turn", failure.message);
        }
        let mut text = String::new();
        loop {
            match self.next() {
                // The first line is shown, and not all of that.
                Ok(Told::Text { text: more, is_thought: false }) if text.len() < TEXT_LOOKED_AT => {
                    text.push_str(&more);
                }
                Ok(Told::TurnEnded { stop, .. }) => {
                    return found.good(
                        "turn",
                        format!(
                            "{stop}: {}",
                            text.lines().next().unwrap_or_default().chars().take(80).collect::<String>()
                        ),
                    );
                }
                Ok(Told::TurnFailed(failure)) => return found.bad("turn", failure.message),
                Ok(Told::Asked(asked)) => {
                    self.harness.answer(&asked.id, &baton_core::session::Answer::Deny);
                }
                Ok(Told::Exited(exit)) => return found.bad("turn", exit_words(&exit)),
                Ok(_) => {}
                Err(_) => return found.bad("turn", "no end in time"),
            }
        }
    }

    fn end(&mut self, found: &mut Found<'_>) {
        self.harness.stop();
        self.until = Instant::now() + Duration::from_secs(20);
        loop {
            match self.next() {
                Ok(Told::Exited(exit)) => return found.good("end", exit_words(&exit)),
                Ok(_) => {}
                // It ended before, and that was told.
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => return found.bad("end", "it does not end"),
            }
        }
    }
}

fn exit_words(exit: &ProcessExit) -> String {
    let how = match &exit.process {
        ProcessEnd::Exited(code) => format!("exit code {code}"),
        ProcessEnd::Signalled(signal) => format!("signal {signal}"),
        ProcessEnd::NotSpawned(why) | ProcessEnd::Lost(why) => why.clone(),
        ProcessEnd::Absent => "no process".to_owned(),
    };
    let stderr = exit.stderr.as_ref().and_then(|stderr| stderr.tail.clone().or_else(|| stderr.head.clone()));
    match stderr {
        Some(stderr) => format!("{how}; it wrote: {}", stderr.lines().last().unwrap_or_default()),
        None => how,
    }
}

//! `baton agent ls`, `add` and `check`.

use std::io::Write as _;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use baton_core::session::ProcessEnd;
use baton_runtime::agent::{Exit as ProcessExit, Launch};
use baton_runtime::harness::acp::{AcpHarness, Setup};
use baton_runtime::harness::exec::ExecHarness;
use baton_runtime::harness::llm::{Key, LlmHarness, LlmSetup};
use baton_runtime::harness::{AgentSpec, Drive, Failure, Harness, Ready, Told};
use baton_runtime::session::Tell;
use serde_json::{Value, json};

use crate::args::{AgentAdd, AgentCheck};
use crate::commands::Ended;
use crate::config::{self, Settings};
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::repository::no_worktrees_in;
use crate::sessions::{agents, own_program};
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;

/// How each agent is started, in one line.
fn started_by(spec: &AgentSpec) -> String {
    match &spec.drive {
        Drive::Acp { command } | Drive::Exec { command, .. } => command.join(" "),
        Drive::Llm { model, base_url, .. } => {
            format!("{model} at {}", base_url.as_deref().unwrap_or("the provider's own server"))
        }
        Drive::Mock { .. } => "built in".to_owned(),
    }
}

pub(super) fn list(ctx: &Context, ui: &mut Ui) -> Ended {
    let root = ctx.find_data_dir();
    let settings = ctx.settings(root.as_deref())?;
    let specs = agents(&settings, &own_program());
    if ui.json {
        let all: Vec<Value> = specs
            .values()
            .map(|spec| {
                json!({
                    "name": spec.name.as_str(),
                    "harness": spec.harness(),
                    "start": started_by(spec),
                    "roles": spec.roles,
                    "workspace": if spec.worktree { "worktree" } else { "shared" },
                })
            })
            .collect();
        ui.object(&json!({"v": 1, "agents": all}))?;
        return Ok(Exit::Ok);
    }
    let left = Align::Left;
    let mut table = Table::new(&[("agent", left), ("harness", left), ("roles", left), ("started by", left)]);
    for spec in specs.values() {
        let roles = spec.roles.join(",");
        table.row(vec![
            spec.name.to_string(),
            spec.harness().to_owned(),
            roles,
            printable(&started_by(spec)),
        ]);
    }
    ui.table(table)?;
    Ok(Exit::Ok)
}

pub(super) fn add(ctx: &Context, ui: &mut Ui, args: &AgentAdd) -> Ended {
    // Where somebody owns the data directory, they see who asks for this.
    ctx.reach()?;
    let layout = ctx.layout()?;
    let path = layout.config();
    let settings = ctx.settings(Some(layout.root()))?;
    if settings.agents.contains_key(&args.name) {
        let what = format!("there is an agent {} already", args.name);
        return Err(CliError::new(Code::Config, what).hint("baton agent ls").into());
    }
    let table = table_of(args);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let text = format!(
        "{}{table}",
        if before.is_empty() || before.ends_with('\n') { before.clone() } else { before.clone() + "\n" }
    );
    // Read before it is written: what would not be understood never gets there.
    config::of_text(&text)?;
    let failed = |error: std::io::Error| CliError::io("write", &path, &error);
    write_whole(&path, &text).map_err(failed)?;
    if ui.json {
        ui.object(&json!({"v": 1, "added": args.name.as_str(), "file": path.display().to_string()}))?;
    } else {
        ui.line(&format!("{} added to {}", args.name, path.display()))?;
        if ctx.is_served() {
            // That is this very process: the command was handed over to it.
            let pid = std::process::id();
            ui.note(&format!(
                "process {pid}, which owns the data directory, knows it once it is started again"
            ));
        }
        ui.hint(&format!("baton agent check {}", args.name));
    }
    Ok(Exit::Ok)
}

fn table_of(args: &AgentAdd) -> String {
    let quoted = |text: &str| config::Value::Text(text.to_owned()).to_toml();
    let words: Vec<String> = args.command.iter().map(|word| quoted(word)).collect();
    let mut text = format!("\n[agents.{}]\n", config::quoted_key(args.name.as_str()));
    let mut put = |key: &str, value: String| text.push_str(&format!("{key} = {value}\n"));
    match (&args.api, &args.profile) {
        (Some(api), _) => {
            put("harness", quoted("llm"));
            put("api", quoted(api));
            args.base_url.iter().for_each(|url| put("base_url", quoted(url)));
            args.model.iter().for_each(|model| put("model", quoted(model)));
            args.api_key_env.iter().for_each(|name| put("api_key_env", quoted(name)));
        }
        (None, Some(profile)) => {
            put("harness", quoted("exec"));
            put("profile", quoted(profile));
            put("command", format!("[{}]", words.join(", ")));
        }
        (None, None) => {
            put("harness", quoted("acp"));
            put("command", format!("[{}]", words.join(", ")));
        }
    }
    text
}

fn write_whole(path: &Path, text: &str) -> std::io::Result<()> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile_in(dir)?;
    file.1.write_all(text.as_bytes())?;
    file.1.sync_all()?;
    std::fs::rename(&file.0, path)
}

fn tempfile_in(dir: &Path) -> std::io::Result<(std::path::PathBuf, std::fs::File)> {
    let path = dir.join(format!(".baton.toml.{}.tmp", std::process::id()));
    let file = std::fs::File::create(&path)?;
    Ok((path, file))
}

/// What was found of an agent.
#[derive(Default)]
struct Found {
    rows: Vec<(&'static str, bool, String)>,
}

impl Found {
    fn good(&mut self, what: &'static str, detail: impl Into<String>) {
        self.rows.push((what, true, detail.into()));
    }

    fn bad(&mut self, what: &'static str, detail: impl Into<String>) {
        self.rows.push((what, false, detail.into()));
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
    let mut found = Found::default();
    if let (true, Some(root)) = (spec.worktree, &root) {
        match no_worktrees_in(&ctx.work_dir(root)) {
            None => found.good("worktree", "git can make one for each task"),
            Some(why) => found.bad("worktree", format!("each task gets one, and {why}")),
        }
    }
    really_start(spec, &settings, args.turn, &mut found)?;
    let is_good = found.rows.iter().all(|(_, is_good, _)| *is_good);
    if ui.json {
        let checks: Vec<Value> = found
            .rows
            .iter()
            .map(|(what, is_good, detail)| json!({"check": what, "status": if *is_good { "ok" } else { "failed" }, "detail": detail}))
            .collect();
        ui.object(&json!({"v": 1, "agent": args.agent.as_str(), "works": is_good, "checks": checks}))?;
    } else {
        for (what, is_good, detail) in &found.rows {
            let (word, mark) = if *is_good { ("ok", Mark::Good) } else { ("failed", Mark::Bad) };
            ui.line(&format!("{what:<10} {}  {}", ui.paint.mark(mark, word), printable(detail)))?;
        }
    }
    Ok(if is_good { Exit::Ok } else { Exit::AgentFailed })
}

fn own_variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Starts it in an empty directory, shakes hands, and ends it. What has no handshake gets a small prompt, since nothing else would start it.
fn really_start(
    spec: &AgentSpec,
    settings: &Settings,
    has_turn: bool,
    found: &mut Found,
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

    fn shake_hands(&mut self, found: &mut Found, began: Instant) -> bool {
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
                    found.bad("handshake", message);
                    return false;
                }
                Ok(Told::Exited(exit)) => {
                    found.bad("handshake", exit_words(&exit));
                    return false;
                }
                Ok(_) => {}
                Err(_) => {
                    found.bad("handshake", "no answer in time");
                    return false;
                }
            }
        }
    }

    fn turn(&mut self, found: &mut Found) {
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

    fn end(&mut self, found: &mut Found) {
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

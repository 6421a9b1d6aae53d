//! `baton agent ls` and `add`.

use std::io::Write as _;
use std::path::Path;

use baton_runtime::harness::{AgentSpec, Drive};
use serde_json::{Value, json};

use crate::args::AgentAdd;
use crate::commands::Ended;
use crate::config;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::serve::ends_with_sessions;
use crate::sessions::{agents, own_program};
use crate::ui::Ui;
use crate::ui::shell;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;

/// How each agent is started, in one line.
fn started_by(spec: &AgentSpec) -> String {
    match &spec.drive {
        Drive::Acp { command } | Drive::Exec { command, .. } => shell::words(command),
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
            ui.note(&match ends_with_sessions() {
                true => format!("process {pid} does not know it; that ends with its last session"),
                false => {
                    format!("process {pid}, which owns the data directory, knows it once it is started again")
                }
            });
        }
        if let Some((vendor, variable)) = keyless(args) {
            ui.note(&format!(
                "{vendor} wants a key, and none is named: `api_key_env = \"{variable}\"` in its table names the \
                 variable that holds it (`--api-key-env {variable}` when an agent is added)"
            ));
        }
        ui.hint(&format!("baton agent check {}", args.name));
    }
    Ok(Exit::Ok)
}

/// Servers that answer nobody without a key, and the variable that it is mostly kept in.
const VENDORS: [(&str, &str); 7] = [
    ("api.openai.com", "OPENAI_API_KEY"),
    ("api.anthropic.com", "ANTHROPIC_API_KEY"),
    ("generativelanguage.googleapis.com", "GEMINI_API_KEY"),
    ("openrouter.ai", "OPENROUTER_API_KEY"),
    ("api.mistral.ai", "MISTRAL_API_KEY"),
    ("api.deepseek.com", "DEEPSEEK_API_KEY"),
    ("api.groq.com", "GROQ_API_KEY"),
];

/// The server that a model without a key is at, where it is known that it wants one.
fn keyless(args: &AgentAdd) -> Option<(&'static str, &'static str)> {
    let host = match (args.api.as_deref()?, &args.base_url) {
        (_, Some(url)) => {
            let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
            rest.split(['/', ':']).next().unwrap_or_default()
        }
        ("anthropic", None) => "api.anthropic.com",
        (_, None) => "api.openai.com",
    };
    VENDORS.into_iter().find(|(vendor, _)| *vendor == host && args.api_key_env.is_none())
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

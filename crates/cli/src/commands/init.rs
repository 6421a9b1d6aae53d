//! `baton init`: a data directory with an empty ledger, its key, and a configuration that names the agents found on PATH.

use std::fs;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_server::access::Tokens;
use baton_store::disk::write_atomic;
use baton_store::keys::KeyStore;
use baton_store::tasks::files::TaskFiles;
use baton_store::tasks::tree::RealTree;
use baton_store::{History as _, Layout, Workspace};
use serde_json::json;

use crate::commands::Ended;
use crate::context::{Context, Writing, disk};
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::shell;
use crate::ui::text::printable;

/// What may be there already: a configuration written beforehand, or what an earlier attempt left.
const OURS: [&str; 15] = [
    ".gitignore",
    "artifacts",
    "baton.toml",
    "checkpoints",
    "events",
    "hooks.json",
    "index",
    "keys",
    "lock",
    "quarantine",
    "runs",
    "server",
    "sessions",
    "tasks",
    ".DS_Store",
];

pub(super) fn run(ctx: &Context, ui: &mut Ui) -> Ended {
    let root = ctx.new_data_dir();
    let layout = Layout::new(&root);
    refuse_taken(&layout)?;
    let state_dir = ctx.state_dir()?;
    let wait = ctx.lock_wait()?;
    let options = ctx.options(&root)?;
    fs::create_dir_all(&root).map_err(|error| CliError::io("make", &root, &error))?;
    // First of all, so that whatever follows is never committed by accident.
    write_new(&root.join(".gitignore"), "*\n")?;
    if let Some(outer) = around(ctx, &root) {
        let what = format!("another data directory lies above: {}", outer.display());
        ui.warn(&format!("{what}; from here on down this new one is used instead"));
    }
    if let Some(server) = crate::remote::elsewhere() {
        ui.warn(&format!("BATON_SERVER is set: commands go to {server}, not to this data directory"));
    }
    let agents = find_agents(ctx);
    write_new(&layout.config(), &config_text(&agents))?;
    let workspace = Workspace::create(&layout, &state_dir, options, wait)?;
    let ledger = workspace.journal.ledger();
    RealTree::open(&root)
        .and_then(|tree| TaskFiles::new(Arc::new(tree)).prepare())
        .map_err(|error| CliError::io("make the folders of tasks in", &root, &error))?;
    Tokens::new(workspace.keys.dir()).own().map_err(CliError::from)?;
    Writing::new(workspace, options.durability).close(ui)?;

    let shown = fs::canonicalize(&root).unwrap_or(root);
    if ui.json {
        let agents: Vec<&str> = agents.iter().map(|agent| agent.name).collect();
        let secret = KeyStore::new(&state_dir, &ledger.origin).path(ledger.key.id());
        ui.object(&json!({
            "v": 1,
            "dataDir": shown.display().to_string(),
            "origin": ledger.origin.as_str(),
            "key": ledger.key.id().to_string(),
            "public": ledger.key.to_text().as_str(),
            "secret": secret.display().to_string(),
            "agents": agents,
        }))?;
        return Ok(Exit::Ok);
    }
    ui.line(&format!("data directory  {}", shown.display()))?;
    ui.line(&format!("ledger          {}", ledger.origin))?;
    ui.line(&format!("public key      {}", ledger.key.to_text().as_str()))?;
    ui.line(&format!("private keys    {}", state_dir.display()))?;
    let names: Vec<&str> = agents.iter().map(|agent| agent.name).collect();
    ui.line(&format!(
        "agents          {}",
        if names.is_empty() { "none found on PATH".into() } else { names.join(", ") }
    ))?;
    if !ui.is_quiet() {
        ui.line("")?;
        let next = ui.command("baton task new \"what is to be done\" --ready");
        ui.line(&format!("Next: {}", printable(&next)))?;
    }
    Ok(Exit::Ok)
}

/// A data directory above the new one, which commands typed here have used until now, or that it would lie in.
fn around(ctx: &Context, root: &Path) -> Option<PathBuf> {
    let root = ctx.here().ok()?.join(root);
    let is_found_by_name = root.file_name().is_some_and(|name| name == ".baton");
    let is_ledger = |dir: &Path| Layout::new(dir).events().is_dir() && Layout::new(dir).config().is_file();
    root.parent()?.ancestors().find_map(|dir| {
        let beside = Some(dir.join(".baton")).filter(|beside| is_found_by_name && *beside != root);
        [Some(dir.to_owned()), beside].into_iter().flatten().find(|dir| is_ledger(dir))
    })
}

/// Refuses before anything is touched: a second ledger in the same place, or a directory that is used for something else.
fn refuse_taken(layout: &Layout) -> Result<(), CliError> {
    let root = layout.root();
    let list = |dir: &Path| match baton_store::disk::Disk::list(&*disk(), dir) {
        Ok(names) => Ok(names),
        Err(error) => Err(CliError::io("list", dir, &error)),
    };
    let segments = list(&layout.events())?;
    if segments.iter().any(|name| name.ends_with(".jsonl")) {
        let what = format!("{} already holds a ledger", root.display());
        return Err(CliError::new(Code::LedgerExists, what).cause("nothing was changed").hint("baton"));
    }
    if let Some(other) = list(root)?.into_iter().find(|name| !is_ours(name)) {
        let what = format!("{} is not empty", root.display());
        return Err(CliError::new(Code::NotEmpty, what)
            .cause(format!("it holds {other}, and a data directory keeps git from seeing everything in it"))
            .hint(format!("baton init --data-dir {}", shell::path(&root.join(".baton")))));
    }
    Ok(())
}

/// What may lie in a directory that becomes a data directory: our own names, and what an interrupted `init` left.
fn is_ours(name: &str) -> bool {
    OURS.contains(&name) || (name.starts_with('.') && name.ends_with(".tmp"))
}

/// Writes a file that a person may have written before us; theirs stays. Whole or not at all, so that an interrupted `init` can be done again.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    if path.symlink_metadata().is_ok() {
        return Ok(());
    }
    write_atomic(&*disk(), path, text.as_bytes()).map_err(|error| CliError::io("write", path, &error))
}

/// An agent that Baton knows how to start.
struct KnownAgent {
    name: &'static str,
    /// The better one first; the first whose program is there is written.
    ways: &'static [Way],
}

/// One way to start an agent. The first word is the program, which is looked for on PATH.
struct Way {
    /// For a command that prints its own stream; the others speak ACP.
    profile: Option<&'static str>,
    command: &'static [&'static str],
    /// The variable by which it can be given a key. Nobody is given one unasked.
    key: Option<&'static str>,
}

const fn acp(command: &'static [&'static str], key: Option<&'static str>) -> Way {
    Way { profile: None, command, key }
}

const ANTHROPIC: Option<&str> = Some("ANTHROPIC_API_KEY");
const OPENAI: Option<&str> = Some("OPENAI_API_KEY");

/// An agent by its adapter asks before it does something; by itself, as a command, it cannot.
const CLAUDE: &[Way] = &[
    acp(&["claude-agent-acp"], ANTHROPIC),
    acp(&["claude-code-acp"], ANTHROPIC),
    Way {
        profile: Some("claude"),
        command: &["claude", "-p", "--output-format", "stream-json", "--verbose"],
        key: ANTHROPIC,
    },
];
const CODEX: &[Way] = &[
    acp(&["codex-acp"], OPENAI),
    Way { profile: Some("codex"), command: &["codex", "exec", "--json", "-"], key: OPENAI },
];

/// How each is started; `docs/reference/harnesses.md` says what is known of them.
const KNOWN: [KnownAgent; 9] = [
    KnownAgent { name: "claude", ways: CLAUDE },
    KnownAgent { name: "codex", ways: CODEX },
    KnownAgent { name: "gemini", ways: &[acp(&["gemini", "--acp"], Some("GEMINI_API_KEY"))] },
    KnownAgent { name: "opencode", ways: &[acp(&["opencode", "acp"], None)] },
    KnownAgent { name: "qwen", ways: &[acp(&["qwen", "--acp"], OPENAI)] },
    KnownAgent { name: "copilot", ways: &[acp(&["copilot", "--acp"], None)] },
    KnownAgent { name: "cline", ways: &[acp(&["cline", "--acp"], None)] },
    KnownAgent { name: "vibe", ways: &[acp(&["vibe-acp"], Some("MISTRAL_API_KEY"))] },
    KnownAgent { name: "goose", ways: &[acp(&["goose", "acp"], None)] },
];

/// An agent that was found, and how it is started here.
struct FoundAgent {
    name: &'static str,
    way: &'static Way,
}

fn find_agents(ctx: &Context) -> Vec<FoundAgent> {
    use std::os::unix::fs::PermissionsExt as _;
    let path = ctx.env.get("PATH").unwrap_or_default();
    let is_program = |path: &Path| {
        fs::metadata(path).is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    };
    let is_there = |way: &&Way| std::env::split_paths(&path).any(|dir| is_program(&dir.join(way.command[0])));
    let found = |agent: &KnownAgent| {
        let way = agent.ways.iter().find(is_there)?;
        Some(FoundAgent { name: agent.name, way })
    };
    KNOWN.iter().filter_map(found).collect()
}

fn config_text(agents: &[FoundAgent]) -> String {
    let mut text = String::from(
        "# Configuration of this data directory. What is commented out is the default.\n\
         # BATON_LEDGER_DURABILITY and so on override it. `baton config show --origin` prints every key and where\n\
         # its value comes from; `baton config schema` prints the schema of this file for editors.\n\n\
         [ledger]\n\
         # durability = \"commit\"        # \"commit\": on the disk before it is acknowledged; \"interval\": within a second; \"none\"\n\
         # segment_bytes = 67108864     # a new file after this many bytes\n\
         # checkpoint_every = 1024      # a signed checkpoint after this many events\n",
    );
    for FoundAgent { name, way } in agents {
        let command: Vec<String> = way.command.iter().map(|word| format!("\"{word}\"")).collect();
        let harness = if way.profile.is_some() { "exec" } else { "acp" };
        text.push_str(&format!("\n[agents.{name}]\nharness = \"{harness}\"\n"));
        text.extend(way.profile.map(|profile| format!("profile = \"{profile}\"\n")));
        text.push_str(&format!("command = [{}]\n", command.join(", ")));
        let passed = |key| format!("# env_pass = [\"{key}\"]   # where it needs a key of yours\n");
        text.extend(way.key.map(passed));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_command_is_in_the_reference() {
        let page = include_str!("../../../../docs/reference/harnesses.md");
        for way in KNOWN.iter().flat_map(|known| known.ways) {
            // The adapter's earlier name is taken and not advertised.
            let command = way.command.join(" ");
            assert!(command == "claude-code-acp" || page.contains(&format!("`{command}`")), "{command}");
        }
    }

    #[test]
    fn the_configuration_that_is_written_can_be_read() {
        let all = KNOWN.iter().flat_map(|known| known.ways.iter().map(|way| (known.name, way)));
        for (name, way) in all {
            let text = config_text(&[FoundAgent { name, way }]);
            let key = way.key.map(|key| format!("\nenv_pass = [\"{key}\"]")).unwrap_or_default();
            for text in [text.clone(), text.replace("\n# env_pass", "\nenv_pass")] {
                let settings = crate::config::of_text(&text).unwrap();
                assert!(settings.agents.contains_key(&name.parse().unwrap()), "{text}");
            }
            assert!(text.replace("\n# env", "\nenv").contains(&key), "{text}");
        }
        let text = config_text(&[]);
        let settings = crate::config::of_text(&text).unwrap();
        // What is commented out is what is built in.
        let commented = text.replace("\n# durability", "\ndurability").replace("\n# segment", "\nsegment");
        let commented = commented.replace("\n# checkpoint", "\ncheckpoint");
        assert!(commented.contains("\ncheckpoint_every = "));
        assert_eq!(crate::config::of_text(&commented).unwrap().ledger, settings.ledger);
    }
}

//! Real agents that `make agents` has installed, each with a home of its own and the fake model behind it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::json;

use crate::model_server::ModelServer;

/// An agent as it is started.
#[derive(Debug, Clone)]
pub struct Installed {
    pub words: Vec<String>,
    /// What it needs in its environment, the path to its programs first of all.
    pub env: BTreeMap<String, String>,
    /// The mode in which it asks before it does something.
    pub mode: Option<String>,
}

/// Finds an agent and makes it a home. Without the variable that names its program there is none.
pub type Find = fn(&Path, &ModelServer) -> io::Result<Option<Installed>>;

/// All of them, with the names that configurations give them.
pub const AGENTS: [(&str, Find); 2] = [("opencode", opencode), ("qwen", qwen)];

/// A variable that `make agents` sets.
fn named(variable: &str) -> Option<String> {
    let value = std::env::var(variable).ok();
    if value.is_none() {
        println!("skipped: {variable} is not set");
    }
    value
}

fn surroundings(home: &Path) -> io::Result<BTreeMap<String, String>> {
    let own = std::env::var("PATH").unwrap_or_default();
    let path = format!("{}:{own}", named("BATON_NODE_BIN").unwrap_or_default());
    let mut env = BTreeMap::from([("PATH".to_owned(), path)]);
    for (name, place) in [
        ("HOME", ""),
        ("XDG_DATA_HOME", "data"),
        ("XDG_CONFIG_HOME", "config"),
        ("XDG_CACHE_HOME", "cache"),
        ("XDG_STATE_HOME", "state"),
    ] {
        let place = home.join(place);
        fs::create_dir_all(&place)?;
        env.insert(name.to_owned(), place.display().to_string());
    }
    Ok(env)
}

pub fn opencode(home: &Path, server: &ModelServer) -> io::Result<Option<Installed>> {
    let Some(program) = named("BATON_OPENCODE") else { return Ok(None) };
    let mut env = surroundings(home)?;
    let file = home.join("opencode.json");
    let model = json!({"tool_call": true, "limit": {"context": 100_000, "output": 4096}});
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": server.base_url(), "apiKey": "x"},
        "models": {"fake-model": model},
    });
    let config = json!({
        "model": "fake/fake-model",
        "small_model": "fake/fake-model",
        "provider": {"fake": provider},
        "permission": {"edit": "ask", "bash": "ask"},
    });
    fs::write(&file, config.to_string())?;
    env.insert("OPENCODE_CONFIG".to_owned(), file.display().to_string());
    for name in ["MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD"] {
        env.insert(format!("OPENCODE_DISABLE_{name}"), "1".to_owned());
    }
    Ok(Some(Installed { words: vec![program, "acp".to_owned()], env, mode: None }))
}

pub fn qwen(home: &Path, server: &ModelServer) -> io::Result<Option<Installed>> {
    let Some(program) = named("BATON_QWEN") else { return Ok(None) };
    let mut env = surroundings(home)?;
    fs::create_dir_all(home.join(".qwen"))?;
    let settings = json!({"security": {"auth": {"selectedType": "openai"}}});
    fs::write(home.join(".qwen/settings.json"), settings.to_string())?;
    env.insert("OPENAI_API_KEY".to_owned(), "x".to_owned());
    env.insert("OPENAI_BASE_URL".to_owned(), server.base_url());
    env.insert("OPENAI_MODEL".to_owned(), "fake-model".to_owned());
    // It starts in a mode that asks for nothing.
    Ok(Some(Installed { words: vec![program, "--acp".to_owned()], env, mode: Some("default".to_owned()) }))
}

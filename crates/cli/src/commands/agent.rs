//! `baton agent key A`: makes, shows, rotates and revokes the key of an agent. The trace `ledger` is the register.

use std::path::Path;

use baton_core::limits::SMALL_FILE_BYTES_MAX;
use baton_core::roles::is_own_name;
use baton_core::{AgentName, KeyId, Payload, Role, TraceId};
use baton_ledger::key::PublicKey;
use baton_store::keys::{self, KeyStore};
use baton_store::registry::{self, AgentKey as Registered};
use baton_store::{AppendError, History, Workspace};
use serde_json::json;

use crate::args::AgentKey;
use crate::commands::Ended;
use crate::commands::events::parse;
use crate::commands::trace::expect_length;
use crate::context::Context;
use crate::error::{CliError, Code, Stop};
use crate::exit::Exit;
use crate::input::file::Named;
use crate::limits::{READ_LINES, REASON_CHARS_MAX};
use crate::ui::Ui;
use crate::ui::shell;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: &AgentKey) -> Ended {
    let agent = &args.agent;
    if is_own_name(agent.as_str()) {
        return Err(CliError::from(registry::Error::OwnName(agent.clone()))
            .hint("baton agent key NAME")
            .into());
    }
    if let Some(reason) = &args.reason {
        expect_length("the reason", reason, REASON_CHARS_MAX)?;
    }
    let public = args.public.as_deref().map(|path| read_public(&ctx.name(path))).transpose()?;
    // Looking at a key changes nothing, so it takes no lock.
    let visit = ctx.visit()?;
    let known = latest(&visit.reader, agent)?;
    let is_asked = args.rotate || args.revoke || public.is_some() || !args.role.is_empty();
    if let (None, false, Some(hint)) = (&known, is_asked, verb_hint(agent.as_str())) {
        return Err(not_an_agent(agent, hint).into());
    }
    let key = match known {
        Some(known) if !is_asked || is_same(args, public.as_ref(), &known) => known,
        known => change(ctx, ui, args, public, known.as_ref())?,
    };
    let keys = KeyStore::new(&ctx.state_dir()?, &visit.reader.ledger().origin);
    show(ui, &key, keys.has(key.public.id()).then(|| keys.path(key.public.id())).as_deref())?;
    if key.status == Status::Revoked && !args.revoke {
        ui.hint(&new_key(agent, &key.roles));
    }
    Ok(Exit::Ok)
}

/// What was probably meant by a word that other commands have as a verb: `agent key` takes a name in its place.
fn verb_hint(word: &str) -> Option<&'static str> {
    let hint = match word {
        "ls" | "list" => "baton events --type key_bound --type key_rotated --type key_revoked --json",
        "new" | "add" | "create" | "make" | "show" | "get" => "baton agent key NAME",
        "rotate" => "baton agent key NAME --rotate",
        "revoke" | "rm" | "remove" | "delete" => "baton agent key NAME --revoke --reason \"why\"",
        "help" => "baton agent key --help",
        _ => return None,
    };
    Some(hint)
}

/// Nobody gets a key by a slip of the pen; whoever is really called so gets one with its role.
fn not_an_agent(agent: &AgentName, hint: &str) -> CliError {
    CliError::new(Code::Value, format!("expected the name of an agent, got the verb {agent}"))
        .cause(format!("for an agent that is called so: baton agent key {agent} --role executor"))
        .hint(hint)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Status {
    Active,
    Rotated,
    Revoked,
}

/// A key of an agent and what became of it.
#[derive(Debug, Clone)]
pub(super) struct Known {
    agent: AgentName,
    public: PublicKey,
    pub(super) roles: Vec<Role>,
    status: Status,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Status::Active => "active",
            Status::Rotated => "rotated",
            Status::Revoked => "revoked",
        }
    }
}

/// Whether what is asked for is there already, so that asking twice is the same as once.
fn is_same(args: &AgentKey, public: Option<&PublicKey>, known: &Known) -> bool {
    !args.rotate
        && !args.revoke
        && known.status == Status::Active
        && public.is_none_or(|public| *public == known.public)
        && (args.role.is_empty() || sorted(&args.role) == sorted(&known.roles))
}

fn sorted(roles: &[Role]) -> Vec<Role> {
    let mut roles = roles.to_vec();
    roles.sort_unstable();
    roles.dedup();
    roles
}

fn change(
    ctx: &Context,
    ui: &Ui,
    args: &AgentKey,
    public: Option<PublicKey>,
    known: Option<&Known>,
) -> Result<Known, Stop> {
    let agent = &args.agent;
    let active = known.filter(|known| known.status == Status::Active);
    if let Some(active) = active.filter(|_| !args.rotate && !args.revoke) {
        let roles = join(&active.roles);
        let what = format!("agent {agent} already has the key {} for {roles}", active.public.id());
        return Err(CliError::new(Code::HasKey, what).hint(rotate_hint(args)).into());
    }
    let writing = ctx.write(ui)?;
    if args.revoke {
        let reason = args.reason.as_deref().unwrap_or_default();
        let missing = |error| tell_missing(error, args, known);
        registry::revoke(&*writing.journal, &writing.ledger_key, agent, reason).map_err(missing)?;
        writing.close(ui)?;
        let Some(active) = active else { return Err(missing(registry::Error::NoKey(agent.clone()))) };
        return Ok(Known { status: Status::Revoked, ..active.clone() });
    }
    let roles = match (args.role.as_slice(), active) {
        ([], Some(active)) => active.roles.clone(),
        ([], None) => vec![Role::Executor],
        (roles, _) => sorted(roles),
    };
    if args.rotate && registry::agent_key(&*writing.journal, agent)?.is_none() {
        return Err(tell_missing(registry::Error::NoKey(agent.clone()), args, known));
    }
    let public = register(&writing, agent, public, &roles, args.rotate)?;
    keys::publish(&writing.layout.keys(), &public, agent.as_str())
        .map_err(|error| CliError::io("write", &writing.layout.keys(), &error))?;
    writing.close(ui)?;
    Ok(Known { agent: agent.clone(), public, roles, status: Status::Active })
}

/// Registers a key that was given, or one that is made now; a made one that cannot be registered leaves nothing behind.
fn register(
    workspace: &Workspace,
    agent: &AgentName,
    given: Option<PublicKey>,
    roles: &[Role],
    rotate: bool,
) -> Result<PublicKey, Stop> {
    let (journal, ledger_key) = (&*workspace.journal, &workspace.ledger_key);
    let public = match given {
        Some(public) => public,
        None => *workspace.keys.create()?.public(),
    };
    let registered = if rotate {
        registry::rotate(journal, ledger_key, agent, &public, roles)
    } else {
        registry::bind(journal, ledger_key, agent, &public, roles)
    };
    if let Err(error) = registered {
        let is_unknown = matches!(&error, registry::Error::Append(AppendError::Poisoned(_)));
        if given.is_none() && !is_unknown {
            // A key that nobody knows of is of no use; the error that matters is the other one.
            let _ = std::fs::remove_file(workspace.keys.path(public.id()));
        }
        return Err(error.into());
    }
    Ok(public)
}

/// The command that gives an agent without a valid key a new one.
pub(super) fn new_key(agent: &AgentName, roles: &[Role]) -> String {
    let roles: Vec<&str> = roles.iter().map(|role| role.as_str()).collect();
    match roles[..] {
        [] => format!("baton agent key {agent}"),
        _ => format!("baton agent key {agent} --role {}", roles.join(",")),
    }
}

/// Nothing to rotate or to revoke: says how the agent gets a key, for what was asked for, else for what its last key was for.
fn tell_missing(error: registry::Error, args: &AgentKey, known: Option<&Known>) -> Stop {
    let is_missing = matches!(error, registry::Error::NoKey(_));
    let error = CliError::from(error);
    if !is_missing {
        return error.into();
    }
    let last = known.map(|known| known.roles.as_slice()).unwrap_or_default();
    let roles = if args.role.is_empty() { last } else { &args.role };
    let mut hint = new_key(&args.agent, roles);
    if let Some(public) = &args.public {
        hint.push_str(&format!(" --public {}", shell::path(public)));
    }
    error.hint(hint).into()
}

fn rotate_hint(args: &AgentKey) -> String {
    let mut hint = format!("baton agent key {} --rotate", args.agent);
    args.role.iter().for_each(|role| hint.push_str(&format!(" --role {role}")));
    if let Some(public) = &args.public {
        hint.push_str(&format!(" --public {}", shell::path(public)));
    }
    hint
}

fn read_public(file: &Named) -> Result<PublicKey, CliError> {
    let refuse = |why: String| {
        let what = format!("{} holds no public key that can be used", file.shown.display());
        CliError::new(Code::PublicKey, what).cause(why)
    };
    let bytes = file.read_small(SMALL_FILE_BYTES_MAX)?;
    let bytes = bytes.ok_or_else(|| refuse(format!("it has more than {SMALL_FILE_BYTES_MAX} bytes")))?;
    let text = String::from_utf8(bytes).map_err(|_| refuse("it is not text".into()))?;
    if text.contains("PRIVATE KEY") || text.starts_with("ed25519-secret:") {
        return Err(refuse("it is a private key; the public half is what is registered".into()));
    }
    PublicKey::parse_file(&text).map_err(|error| refuse(error.to_string()))
}

/// The agent's valid key, else the last one it had.
pub(super) fn latest(journal: &dyn History, agent: &AgentName) -> Result<Option<Known>, CliError> {
    let all: Vec<Registered> =
        registry::agent_keys(journal)?.into_iter().filter(|key| key.agent == *agent).collect();
    let to_known = |key: &Registered, status| Known {
        agent: agent.clone(),
        public: key.public,
        roles: key.roles.clone(),
        status,
    };
    if let Some(active) = all.iter().find(|key| key.is_valid) {
        return Ok(Some(to_known(active, Status::Active)));
    }
    if all.is_empty() {
        return Ok(None);
    }
    let ended = last_ended(journal, &|key| all.iter().any(|known| known.public.id() == key))?;
    let found = ended.and_then(|(key, status)| {
        all.iter().find(|known| known.public.id() == key).map(|known| to_known(known, status))
    });
    Ok(found)
}

/// Of the keys in question, the one whose end was recorded last.
fn last_ended(
    journal: &dyn History,
    is_wanted: &dyn Fn(KeyId) -> bool,
) -> Result<Option<(KeyId, Status)>, CliError> {
    let Some(summary) = journal.trace(TraceId::Ledger) else { return Ok(None) };
    let mut last = summary.seq;
    while last > 0 {
        let from = last.saturating_sub(READ_LINES as u64) + 1;
        let lines = journal.read_trace(TraceId::Ledger, from, (last - from + 1) as usize)?;
        for stored in lines.iter().rev() {
            let line = parse(stored)?;
            if !line.event_type.starts_with("key_") {
                continue;
            }
            let ended = match line.to_payload() {
                Ok(Payload::KeyRotated { old, .. }) => Some((old, Status::Rotated)),
                Ok(Payload::KeyRevoked { key, .. }) => Some((key, Status::Revoked)),
                _ => None,
            };
            if let Some(ended) = ended.filter(|(key, _)| is_wanted(*key)) {
                return Ok(Some(ended));
            }
        }
        last = from - 1;
    }
    Ok(None)
}

fn join(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}

fn show(ui: &mut Ui, key: &Known, secret: Option<&Path>) -> Result<(), Stop> {
    let roles: Vec<&str> = key.roles.iter().map(|role| role.as_str()).collect();
    if ui.json {
        return ui.object(&json!({
            "v": 1,
            "agent": key.agent.as_str(),
            "key": key.public.id().to_string(),
            "public": key.public.to_text().as_str(),
            "roles": roles,
            "status": key.status.as_str(),
            "secret": secret.map(|path| path.display().to_string()),
        }));
    }
    let status = ui.paint.status(key.status.as_str());
    ui.line(&format!("agent        {}", key.agent))?;
    ui.line(&format!("key          {}", key.public.id()))?;
    ui.line(&format!("public key   {}", key.public.to_text().as_str()))?;
    ui.line(&format!("roles        {}", roles.join(", ")))?;
    ui.line(&format!("status       {status}"))?;
    match secret {
        Some(path) => ui.line(&format!("private key  {}", path.display())),
        None => ui.line("private key  not on this machine"),
    }
}

//! `baton token …`: who may ask the server over HTTP, and for what.

use baton_server::access::{NewToken, Scope, Tokens};
use baton_store::History as _;
use baton_store::clock;
use baton_store::keys::KeyStore;
use serde_json::json;

use crate::args::Tokens as Command;
use crate::commands::Ended;
use crate::context::Context;
use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::ui::Ui;
use crate::ui::table::{Align, Table};
use crate::ui::text::printable;

/// Characters of a token's name.
const NAME_CHARS_MAX: usize = 64;

pub(super) fn run(ctx: &Context, ui: &mut Ui, command: Command) -> Ended {
    // Nothing is appended, but it is for people: whoever owns the data directory knows whether an agent asks.
    let writing = match command {
        Command::Ls => None,
        Command::New(_) | Command::Revoke(_) => Some(ctx.write(ui)?),
    };
    let ended = done(ctx, ui, command);
    match writing {
        Some(writing) if ended.is_ok() => writing.close(ui).map_err(Into::into).and(ended),
        Some(writing) => {
            writing.abandon();
            ended
        }
        None => ended,
    }
}

fn done(ctx: &Context, ui: &mut Ui, command: Command) -> Ended {
    let tokens = tokens(ctx)?;
    match command {
        Command::Ls => list(ui, &tokens),
        Command::Revoke(args) => {
            tokens.revoke(&args.token).map_err(CliError::from)?;
            ui.note(&format!("{} opens nothing any more.", printable(&args.token)));
            Ok(Exit::Ok)
        }
        Command::New(args) => {
            let name = args.name.token;
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
            if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(is_name) {
                let what = format!(
                    "NAME: expected letters, digits, - _ and . ({NAME_CHARS_MAX} at most), got {name:?}"
                );
                return Err(CliError::new(Code::Value, what).into());
            }
            let Some(scope) = Scope::parse(&args.scope) else {
                return Err(CliError::new(Code::Value, format!("--scope: {:?} is none", args.scope)).into());
            };
            if scope != Scope::Agent && (args.agent.is_some() || args.task.is_some()) {
                let what = format!("--agent and --task go with --scope agent, not with {}", scope.as_str());
                let hint = format!("baton token new {name} --scope agent --agent NAME");
                return Err(CliError::new(Code::Value, what).hint(hint).into());
            }
            let expires_at = args
                .expires
                .map(|time| clock::now().plus_ms(i64::try_from(time.as_millis()).unwrap_or(i64::MAX)));
            let new = NewToken { name: name.clone(), scope, agent: args.agent, task: args.task, expires_at };
            let token = tokens.add(new).map_err(CliError::from)?;
            if ui.json {
                ui.object(&json!({
                    "v": 1, "name": name, "scope": scope.as_str(), "token": token,
                    "expiresAt": expires_at.map(|at| at.to_string()),
                }))?;
            } else {
                ui.line(&token)?;
                ui.note("It is shown this once; only its digest is kept.");
            }
            Ok(Exit::Ok)
        }
    }
}

/// The tokens of the data directory in use.
pub(super) fn tokens(ctx: &Context) -> Result<Tokens, crate::error::Stop> {
    let visit = ctx.visit()?;
    let keys = KeyStore::new(&ctx.state_dir()?, &visit.reader.ledger().origin);
    Ok(Tokens::new(keys.dir()))
}

fn list(ui: &mut Ui, tokens: &Tokens) -> Ended {
    let all = tokens.all().map_err(CliError::from)?;
    let scope = |scope: Option<Scope>| scope.map_or("?", Scope::as_str);
    if ui.json {
        let list: Vec<_> = all
            .iter()
            .map(|entry| {
                json!({
                    "name": entry.name, "scope": scope(entry.scope()), "agent": entry.agent, "task": entry.task,
                    "createdAt": entry.created_at.to_string(),
                    "expiresAt": entry.expires_at.map(|at| at.to_string()),
                })
            })
            .collect();
        ui.object(&json!({"v": 1, "tokens": list}))?;
        return Ok(Exit::Ok);
    }
    if all.is_empty() {
        ui.note("There are no tokens yet.");
        ui.hint("baton token new dashboard --scope viewer");
        return Ok(Exit::Ok);
    }
    let now = clock::now();
    let columns = ["name", "scope", "agent", "task", "expires"].map(|name| (name, Align::Left));
    let mut table = Table::new(&columns);
    for entry in &all {
        table.row(vec![
            printable(&entry.name),
            scope(entry.scope()).to_owned(),
            entry.agent.as_ref().map(ToString::to_string).unwrap_or_default(),
            entry.task.as_ref().map(ToString::to_string).unwrap_or_default(),
            match entry.expires_at {
                None => "never".to_owned(),
                Some(at) if at <= now => format!("{at} (over)"),
                Some(at) => at.to_string(),
            },
        ]);
    }
    ui.table(table)?;
    Ok(Exit::Ok)
}

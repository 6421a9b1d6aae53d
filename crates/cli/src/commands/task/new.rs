//! `baton task new`.

use baton_core::AgentName;
use baton_core::task::decide::{HEARTBEAT_TTL, LEASE_TTL, New};
use baton_core::task::{Routing, Status};
use serde_json::Value;

use super::to_json;
use crate::commands::Ended;
use crate::config::did_you_mean;
use crate::context::Context;
use crate::error::CliError;
use crate::exit::Exit;
use crate::input::read_text;
use crate::task_args::TaskNew;
use crate::task_names::other;
use crate::tasks::Tasks;
use crate::ui::Ui;

pub(super) fn run(ctx: &Context, ui: &mut Ui, args: TaskNew) -> Ended {
    let body = args.file.as_deref().map(|path| read_text(ctx, path)).transpose()?.unwrap_or_default();
    let mut metadata = serde_json::Map::new();
    if args.no_review {
        metadata.insert("reviewRequired".into(), Value::Bool(false));
    }
    let ttls = [(LEASE_TTL, args.lease_ttl), (HEARTBEAT_TTL, args.heartbeat_ttl)];
    for (key, time) in ttls.into_iter().filter_map(|(key, time)| Some((key, time?))) {
        metadata.insert(key.to_owned(), baton_core::duration::format(time).into());
    }
    let tasks = ctx.tasks(ui)?;
    if let Some(agent) = &args.agent {
        tell_of_unknown(ctx, ui, &tasks, agent);
    } else if let Some(role) = &args.role {
        tell_of_role(ctx, ui, &role.to_string());
    }
    let others = tasks.look(|board| {
        let parent = args.parent.as_deref().map(|text| other(board, text)).transpose()?;
        let depends_on =
            args.depends_on.iter().map(|text| other(board, text)).collect::<Result<Vec<_>, _>>()?;
        Ok::<_, CliError>((parent, depends_on))
    });
    let (parent, depends_on) = match others.map_err(CliError::from).and_then(|others| others) {
        Ok(others) => others,
        Err(error) => return tasks.finish(ui, Err(error.into())),
    };
    let new = New {
        id: args.id,
        body,
        status: if args.ready { Status::Ready } else { Status::Backlog },
        phase: args.phase,
        priority: args.priority,
        routing: Routing { agent: args.agent, role: args.role.map(|role| role.to_string()), tags: args.tag },
        depends_on,
        parent,
        guarded: args.guarded,
        metadata,
        ..New::titled(args.title)
    };
    let made = tasks.create_as(&new, &ctx.actor()).map_err(Into::into);
    let (task, papers) = tasks.finish(ui, made)?;
    if ui.json {
        ui.object(&to_json(&task, &papers))?;
    } else {
        ui.line(task.id.as_str())?;
        if task.status == Status::Backlog {
            ui.hint(&format!("baton task move {} ready --reason \"worth doing now\"", task.id));
        }
    }
    Ok(Exit::Ok)
}

/// Nobody is given a task of a role that no agent takes.
fn tell_of_role(ctx: &Context, ui: &Ui, role: &str) {
    let Ok(settings) = ctx.settings(ctx.find_data_dir().as_deref()) else { return };
    if !settings.agents.values().any(|agent| agent.roles.iter().any(|other| other == role)) {
        ui.note(&format!(
            "no agent takes the role {role}; who claims the task gets it, and `roles = [\"{role}\"]` in an \
             agent's table makes it one that does"
        ));
    }
}

/// An agent that is not configured may be a script that claims its tasks; or its name is a slip of the pen.
fn tell_of_unknown(ctx: &Context, ui: &Ui, tasks: &Tasks, agent: &AgentName) {
    let Ok(settings) = ctx.settings(ctx.find_data_dir().as_deref()) else { return };
    if !settings.agents.contains_key(agent) {
        let near = did_you_mean(agent.as_str(), settings.agents.keys().map(AgentName::as_str));
        return ui
            .note(&format!("no agent {agent} is configured{near}; who claims tasks by that name gets it"));
    }
    match tasks {
        Tasks::Shared(owner) if !owner.broker.agents().contains_key(agent) => {
            let pid = std::process::id();
            ui.note(&format!(
                "process {pid} was started before agent {agent} was added, and does not know it"
            ));
        }
        _ => {}
    }
}

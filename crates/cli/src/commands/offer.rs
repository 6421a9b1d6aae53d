//! Who could work on a task now, as a command.

use baton_core::AgentName;
use baton_core::task::Task;

use crate::config::{Agent, Harness, Settings};
use crate::context::Context;

/// The command with which a ready task is begun: with an agent that is configured and would take it, else by hand.
pub(super) fn begin(ctx: &Context, task: &Task) -> String {
    if task.is_held_to_rules() {
        // Its team does it.
        return format!("baton run --task {}", task.id);
    }
    let settings = ctx.layout().and_then(|layout| ctx.settings(Some(layout.root())));
    let run = settings.ok().and_then(|settings| run(&settings, task));
    run.unwrap_or_else(|| format!("baton task claim {} --agent NAME", task.id))
}

fn run(settings: &Settings, task: &Task) -> Option<String> {
    let id = &task.id;
    let routing = &task.routing;
    if let Some(agent) = &routing.agent {
        return settings.agents.contains_key(agent).then(|| format!("baton run --task {id}"));
    }
    // The mock does only what it is asked by name.
    let all: Vec<(&AgentName, &Agent)> =
        settings.agents.iter().filter(|(_, agent)| agent.harness != Harness::Mock).collect();
    let fits = |agent: &Agent| routing.role.as_ref().is_none_or(|role| agent.roles.contains(role));
    let (name, _) = all.iter().find(|(_, agent)| fits(agent))?;
    Some(match all.len() {
        1 => format!("baton run --task {id}"),
        _ => format!("baton run --task {id} --agent {name}"),
    })
}

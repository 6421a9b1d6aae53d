//! `baton task claim`, `beat`, `release`: leases by hand, for agents that are scripts.

use baton_core::task::decide::Holder;
use serde_json::json;

use super::{change, named};
use crate::commands::Ended;
use crate::context::Context;
use crate::exit::Exit;
use crate::task_args::{TaskClaim, TaskHolder};
use crate::ui::Ui;
use crate::ui::time::exact;

pub(super) fn claim(ctx: &Context, ui: &mut Ui, args: &TaskClaim) -> Ended {
    let ttl_ms = args.ttl.map(|ttl| i64::try_from(ttl.as_millis()).unwrap_or(i64::MAX));
    let tasks = ctx.tasks(ui)?;
    let mut offered_to = None;
    let answer = named(&tasks, &args.name.task, |id| {
        offered_to = tasks.look(|board| board.get(&id).and_then(|task| task.routing.agent.clone()))?;
        tasks.claim(&id, &args.agent, ttl_ms, None)
    });
    let claimed = tasks.finish(ui, answer)?;
    if let Some(other) = offered_to.filter(|other| *other != args.agent) {
        ui.warn(&format!("{} was offered to {other}; {} has it now", claimed.task, args.agent));
    }
    let lease = &claimed.lease;
    if ui.json {
        ui.object(&json!({
            "v": 1,
            "taskId": claimed.task.as_str(),
            "agent": lease.agent.as_str(),
            "fence": lease.fence,
            "expiresAt": lease.expires_at.to_string(),
            "heartbeatBy": lease.beat_until.to_string(),
            "runId": claimed.run.to_string(),
        }))?;
    } else {
        ui.line(&format!("{} is {}'s with fence {}", claimed.task, lease.agent, lease.fence))?;
        ui.note(&format!("Beat before {}, or it is somebody else's to take.", exact(lease.ends_at())));
        ui.hint(&format!("baton task beat {} --agent {} --fence {}", claimed.task, lease.agent, lease.fence));
    }
    Ok(Exit::Ok)
}

pub(super) fn beat(ctx: &Context, ui: &mut Ui, args: &TaskHolder) -> Ended {
    let tasks = ctx.tasks(ui)?;
    let answer = named(&tasks, &args.name.task, |task| {
        let holder =
            Holder { task: task.clone(), agent: args.agent.clone(), fence: args.fence, beaten_until: None };
        Ok((task, tasks.beat(&holder)?))
    });
    let (task, until) = tasks.finish(ui, answer)?;
    if ui.json {
        ui.object(&json!({
            "v": 1,
            "taskId": task.as_str(),
            "agent": args.agent.as_str(),
            "fence": args.fence,
            "expiresAt": until.to_string(),
        }))?;
    } else {
        ui.line(&format!("{task} is {}'s until {}", args.agent, exact(until)))?;
    }
    Ok(Exit::Ok)
}

pub(super) fn release(ctx: &Context, ui: &mut Ui, args: &TaskHolder) -> Ended {
    change(ctx, ui, &args.name.task, |tasks, task| {
        tasks.release(&Holder { task, agent: args.agent.clone(), fence: args.fence, beaten_until: None })
    })
}

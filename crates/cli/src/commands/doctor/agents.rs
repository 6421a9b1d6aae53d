//! Whether agents can work here as they are configured: the hooks after their tools, and the places of those that work apart.

use baton_core::session::Hook;
use baton_runtime::hooks;
use baton_runtime::process::Command;
use baton_store::Layout;

use super::{Status, Verdict};
use crate::config::AgentWorkspace;
use crate::context::Context;
use crate::repository::no_worktrees_in;
use crate::ui::text::count;

pub(super) fn checks(ctx: &Context, layout: &Layout) -> Vec<Verdict> {
    let mut verdicts = vec![hooks_of(ctx, layout)];
    verdicts.extend(agents(ctx, layout));
    verdicts
}

/// A hook that does not read is not run, and nobody who works here hears of it.
fn hooks_of(ctx: &Context, layout: &Layout) -> Verdict {
    let hooks = match hooks::load(&layout.hooks()) {
        Ok(hooks) => hooks,
        Err(error) => {
            let detail = format!("sessions run without any: {}", error.message);
            return Verdict::new("hooks", Status::Fail, detail).see("baton hooks check");
        }
    };
    let dir = ctx.work_dir(layout.root());
    let is_missing = |hook: &&Hook| {
        let wait = std::time::Duration::from_millis(hook.timeout_ms);
        !Command::new(hook.command.clone(), &dir, wait).is_found()
    };
    let missing: Vec<&str> = hooks.iter().filter(is_missing).map(|hook| hook.name.as_str()).collect();
    match (hooks.len(), missing.is_empty()) {
        (0, _) => Verdict::new("hooks", Status::Ok, "there are none"),
        (all, true) => Verdict::new("hooks", Status::Ok, count(all as u64, "hook")),
        (_, false) => {
            let detail = format!("the programs of these are not found: {}", missing.join(", "));
            Verdict::new("hooks", Status::Warn, detail).see("baton hooks check")
        }
    }
}

/// What is wrong with the configuration itself has a verdict of its own.
fn agents(ctx: &Context, layout: &Layout) -> Option<Verdict> {
    let settings = ctx.settings(Some(layout.root())).ok()?;
    let apart = settings.agents.iter().filter(|(_, agent)| agent.workspace == AgentWorkspace::Worktree);
    let apart: Vec<&str> = apart.map(|(name, _)| name.as_str()).collect();
    let why = (!apart.is_empty()).then(|| no_worktrees_in(&ctx.work_dir(layout.root()))).flatten();
    Some(match why {
        Some(why) => {
            let verb = if apart.len() == 1 { "works" } else { "work" };
            let detail = format!("{} {verb} in git worktrees, and {why}", apart.join(", "));
            Verdict::new("agents", Status::Warn, detail).advice(
                "`git init` and a first commit make the workspace a repository; or set workspace = \"shared\"",
            )
        }
        None => Verdict::new(
            "agents",
            Status::Ok,
            format!("{} configured", count(settings.agents.len() as u64, "agent")),
        ),
    })
}

//! The gate of whoever only looks, and what a tool is called: an agent names its tools as it likes.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use baton_core::Role;
use baton_core::guard::{OWN_TOOLS, Policy};
use baton_core::ids::AgentName;

use super::scene::Scene;
use crate::session::{Entry, Gave, ToolGate, Wish};

/// What rules call a tool: the worst of what it was called. Of what it was called later, only what the policy knows is a name.
pub(super) fn name_of(policy: &Policy, wish: &Wish) -> String {
    let harm = |name: &String| (policy.class_of(name), policy.changes_something(name));
    let worst = wish.others.iter().filter(|name| policy.knows(name)).max_by_key(|name| harm(name));
    worst.filter(|worst| harm(worst) > harm(&wish.tool)).unwrap_or(&wish.tool).clone()
}

/// Baton's own tools, by which an agent reports: they are checked where they are taken. By the names that agents are known to give them, and only where
/// nothing else was said of the call.
pub(super) fn is_own_tool(policy: &Policy, wish: &Wish) -> bool {
    let is_own = |name: &str| {
        let starts = ["mcp__baton__", "baton__", "baton_", "baton."];
        let own = starts.iter().find_map(|start| name.strip_prefix(start));
        own.is_some_and(|own| OWN_TOOLS.contains(&own))
    };
    let mut others = wish.others.iter().filter(|other| policy.knows(other));
    is_own(&wish.tool) && others.all(|other| !policy.changes_something(other))
}

/// The gate of a planner, a critic, an auditor. What changes something is not theirs to run.
#[derive(Debug)]
pub(super) struct Onlooker {
    pub(super) scene: Arc<Scene>,
    pub(super) agent: AgentName,
    pub(super) role: Role,
}

impl Onlooker {
    fn judge(&self, wish: &Wish) -> Result<Entry, String> {
        let standing = self.scene.look().map_err(|error| error.to_string())?;
        let policy = standing.run.policy();
        let tool = name_of(policy, wish);
        match is_own_tool(policy, wish) || !policy.changes_something(&tool) {
            true => Ok(Entry(None)),
            false => Err(format!("a {} changes nothing, and {tool} may", self.role)),
        }
    }

    fn note(&self, wish: &Wish, why: String) -> String {
        self.scene.note_refused(&self.agent, &wish.tool, None, &why);
        why
    }
}

impl ToolGate for Onlooker {
    fn enter(&self, wish: &Wish, _stop: &AtomicBool) -> Result<Entry, String> {
        self.judge(wish).map_err(|why| self.note(wish, why))
    }

    fn observe(&self, wish: &Wish, has_ended: bool) -> Result<Option<Entry>, String> {
        match self.judge(wish) {
            Ok(entry) => Ok(Some(entry)),
            Err(_) if !has_ended => Ok(None),
            Err(why) => Err(self.note(wish, why)),
        }
    }

    fn is_worse(&self, _entered: &Wish, now: &Wish) -> bool {
        // What was let through changed nothing.
        self.judge(now).is_err_and(|why| !self.note(now, why).is_empty())
    }

    fn leave(&self, _entry: Entry, _gave: &Gave) {}
}

#[cfg(test)]
mod tests {
    use baton_core::guard::Profile;

    use super::*;

    fn wish(tool: &str, kind: Option<&str>) -> Wish {
        Wish {
            tool: tool.to_owned(),
            others: kind.into_iter().map(str::to_owned).collect(),
            ..Wish::default()
        }
    }

    #[test]
    fn a_kind_that_is_worse_than_a_name_is_what_counts() {
        let policy = Policy::of(Profile::Default);
        for (tool, kind, expected) in [
            ("read", Some("execute"), "execute"),
            ("think", Some("edit"), "edit"),
            ("Bash", Some("execute"), "execute"),
            ("run_command", Some("read"), "run_command"),
            ("write_file", Some("edit"), "write_file"),
            ("write_file", None, "write_file"),
            ("read_file", Some("read"), "read_file"),
            // What an agent shows to people while it reads.
            ("read", Some("README.md"), "read"),
            ("whatever", Some("read"), "whatever"),
        ] {
            assert_eq!(name_of(&policy, &wish(tool, kind)), expected, "{tool} {kind:?}");
        }
    }

    #[test]
    fn only_what_is_baton_s_own_passes_as_that() {
        let policy = Policy::of(Profile::Default);
        for tool in ["mcp__baton__report_completion", "baton_get_task", "baton.submit_claim"] {
            for later in [None, Some("read"), Some("Reported"), Some("README.md")] {
                assert!(is_own_tool(&policy, &wish(tool, later)), "{tool} {later:?}");
            }
            assert!(!is_own_tool(&policy, &wish(tool, Some("execute"))), "{tool}");
        }
        for tool in
            ["baton-heartbeat", "report_completion", "mcp__other__get_task", "baton_rm", "xbaton_get_task"]
        {
            assert!(!is_own_tool(&policy, &wish(tool, None)), "{tool}");
        }
    }
}

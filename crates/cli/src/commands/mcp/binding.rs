//! In whose name tools act, and on what: what a session bound this process to, or what a person said.

use baton_core::{AgentName, Role, TaskId, Token, TraceId};
use baton_runtime::session::GUARD_VARIABLE;

use crate::args::Mcp;
use crate::context::Environment;
use crate::error::{CliError, Code};

/// Who acts, in which role, and on which task alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Binding {
    pub(super) agent: Option<AgentName>,
    pub(super) role: Role,
    pub(super) task: Option<Bound>,
    /// The session that this process belongs to: who asks a person asks through it.
    pub(super) session: Option<Token>,
    /// The trace of the guarded run that the session plays a part in.
    pub(super) guard: Option<TraceId>,
}

/// The one task of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Bound {
    pub(super) task: TaskId,
    pub(super) fence: u64,
}

impl Binding {
    /// Reads the environment that a session gives, else the arguments.
    pub(super) fn read(env: &Environment, args: &Mcp) -> Result<Self, CliError> {
        let named = variable(env, "BATON_AGENT")?;
        let task: Option<TaskId> = variable(env, "BATON_TASK_ID")?;
        let fence: Option<u64> = variable(env, "BATON_FENCE")?;
        let session = variable(env, "BATON_SESSION_ID")?;
        let guard = variable(env, GUARD_VARIABLE)?;
        let role = args.role.map_or_else(|| variable(env, "BATON_ROLE"), |role| Ok(Some(role)))?;
        let role = role.unwrap_or(Role::Executor);
        let Some(task) = task else {
            return Ok(Binding { agent: args.agent.clone().or(named), role, task: None, session, guard });
        };
        let (Some(agent), Some(fence)) = (named, fence) else {
            let what = "BATON_TASK_ID binds to a task only together with BATON_AGENT and BATON_FENCE";
            return Err(CliError::new(Code::Value, what).hint("baton mcp --help"));
        };
        if args.agent.as_ref().is_some_and(|other| *other != agent) {
            let what = format!("a session bound this to {agent}; --agent cannot name another");
            return Err(CliError::new(Code::Value, what).hint("baton mcp --help"));
        }
        Ok(Binding { agent: Some(agent), role, task: Some(Bound { task, fence }), session, guard })
    }
}

/// A variable that is set must read well: what is bound to something else than was meant does harm in silence.
fn variable<T: std::str::FromStr<Err: std::fmt::Display>>(
    env: &Environment,
    name: &str,
) -> Result<Option<T>, CliError> {
    let Some(text) = env.get(name) else { return Ok(None) };
    let read = text.parse().map_err(|error: T::Err| {
        CliError::new(Code::Value, format!("the variable {name} does not read"))
            .cause(error.to_string())
            .hint("baton mcp --help")
    });
    read.map(Some)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    fn read(env: &[(&str, &str)], agent: Option<&str>) -> Result<Binding, CliError> {
        let captured: BTreeMap<_, _> =
            env.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let env = Environment { captured: Some(captured) };
        Binding::read(&env, &Mcp { agent: agent.map(|name| name.parse().unwrap()), role: None })
    }

    #[test]
    fn a_session_binds_to_its_task_and_a_person_only_says_who_acts() {
        let task = ("BATON_TASK_ID", "TASK-2026-02-09-057");
        let bound = read(&[task, ("BATON_AGENT", "ada"), ("BATON_FENCE", "3")], None).unwrap();
        assert_eq!(bound.task.as_ref().map(|bound| bound.fence), Some(3));
        assert_eq!((bound.agent.unwrap().as_str(), bound.role), ("ada", Role::Executor));
        let free = read(&[("BATON_AGENT", "ada"), ("BATON_ROLE", "critic")], Some("bob")).unwrap();
        assert_eq!((free.agent.unwrap().as_str(), free.role, free.task), ("bob", Role::Critic, None));
        assert_eq!(read(&[], None).unwrap().agent, None);
    }

    #[test]
    fn half_a_binding_and_one_that_does_not_read_are_refused() {
        let task = ("BATON_TASK_ID", "TASK-2026-02-09-057");
        let (ada, fence) = (("BATON_AGENT", "ada"), ("BATON_FENCE", "3"));
        for env in [
            &[task][..],
            &[task, ada],
            &[task, fence],
            &[("BATON_TASK_ID", "7"), ada, fence],
            &[task, ada, ("BATON_FENCE", "-1")],
            &[("BATON_ROLE", "king")],
        ] {
            assert_eq!(read(env, None).unwrap_err().code, Code::Value, "{env:?}");
        }
        assert_eq!(read(&[task, ada, fence], Some("bob")).unwrap_err().code, Code::Value);
    }
}

//! Who should take which task next: by priority, then age, under limits. Decides nothing: a claim does.

use std::collections::{BTreeMap, BTreeSet};

use super::{Board, Status, Task};
use crate::ids::{AgentName, TaskId};
use crate::time::Timestamp;

/// An agent that can be given work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Willing {
    pub name: AgentName,
    pub roles: Vec<String>,
    /// Sessions that it runs at most.
    pub max_sessions: usize,
    /// Whether it takes what is nobody's in particular.
    pub takes_any: bool,
    /// Whether it works where others work too: then one task at a time is worked on there.
    pub is_shared: bool,
}

/// What is running already, and how much may.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Load {
    pub max_concurrent: usize,
    /// Sessions of each agent.
    pub running: BTreeMap<AgentName, usize>,
    /// Whether somebody works in the shared workspace.
    pub is_shared_taken: bool,
    /// Tasks that could not be begun a moment ago. They take nobody's place meanwhile.
    pub set_aside: BTreeSet<TaskId>,
    /// Who executes guarded tasks, whoever they are for.
    pub executor: Option<AgentName>,
}

/// A task for an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assignment {
    pub task: TaskId,
    pub agent: AgentName,
}

impl Board {
    /// The next tasks to start, the most urgent first, each with the agent that should take it.
    pub fn dispatch(&self, agents: &[Willing], load: &Load, now: Timestamp) -> Vec<Assignment> {
        let mut running = load.running.clone();
        let mut free = load.max_concurrent.saturating_sub(running.values().sum());
        let may_start = |task: &&Task| self.is_due(task, now) && !load.set_aside.contains(&task.id);
        let mut ready: Vec<&Task> = self.with_status(Status::Ready).filter(may_start).collect();
        ready.sort_by(|a, b| (a.priority, a.created_at, &a.id).cmp(&(b.priority, b.created_at, &b.id)));
        let mut is_shared_taken = load.is_shared_taken;
        let mut out = Vec::new();
        for task in ready {
            if free == 0 {
                break;
            }
            let has_room =
                |agent: &&Willing| running.get(&agent.name).copied().unwrap_or(0) < agent.max_sessions;
            let executor = load.executor.as_ref().filter(|_| task.is_held_to_rules());
            let fits = |agent: &&Willing| match (executor.or(task.routing.agent.as_ref()), &task.routing.role)
            {
                (Some(name), _) => *name == agent.name,
                (None, Some(role)) => agent.roles.contains(role),
                (None, None) => agent.takes_any,
            };
            let has_place = |agent: &&Willing| !agent.is_shared || !is_shared_taken;
            // The one with the least to do: work spreads by itself.
            let least = |agent: &&Willing| running.get(&agent.name).copied().unwrap_or(0);
            let free_ones = agents.iter().filter(has_room).filter(has_place).filter(fits);
            let Some(agent) = free_ones.min_by_key(least) else { continue };
            is_shared_taken |= agent.is_shared;
            *running.entry(agent.name.clone()).or_default() += 1;
            free -= 1;
            out.push(Assignment { task: task.id.clone(), agent: agent.name.clone() });
        }
        out
    }

    /// Whether a ready task may start now: its dependencies are done, and it has waited long enough.
    fn is_due(&self, task: &Task, now: Timestamp) -> bool {
        task.not_before.is_none_or(|at| at <= now) && self.open_dependencies(task).next().is_none()
    }

    /// When the next ready task that waits may start.
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        self.with_status(Status::Ready).filter_map(|task| task.not_before).filter(|at| *at > now).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::apply::At;
    use crate::task::decide::{Moment, New, operator};
    use crate::task::{Priority, Routing};

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_unix_ms(1_770_000_000_000 + ms).unwrap()
    }

    /// A board with ready tasks, one a second.
    fn board(tasks: Vec<New>) -> Board {
        let mut board = Board::default();
        for (n, mut new) in tasks.into_iter().enumerate() {
            new.status = Status::Ready;
            let moment = Moment { now: at(n as i64 * 1000), seed: [n as u8; 10] };
            let (_, decided) = board.create(&new, &operator(), moment).unwrap();
            for (i, event) in decided.events.iter().enumerate() {
                let at = At { pos: board.pos() + 1, trace: event.trace, seq: i as u64 + 1, time: event.at };
                board.apply(event.task.as_ref().map(|t| t.as_str()), &event.payload, at).unwrap();
            }
        }
        board
    }

    fn new(title: &str, priority: Priority) -> New {
        New { priority, ..New::titled(title) }
    }

    fn agent(name: &str, roles: &[&str], max_sessions: usize) -> Willing {
        let roles = roles.iter().map(|role| (*role).to_owned()).collect();
        Willing { name: name.parse().unwrap(), roles, max_sessions, takes_any: true, is_shared: false }
    }

    fn check(board: &Board, agents: &[Willing], load: &Load, expected: &[(&str, &str)]) {
        let title = |id: &TaskId| board.get(id).unwrap().title.clone();
        let got: Vec<(String, String)> = board
            .dispatch(agents, load, at(1_000_000))
            .into_iter()
            .map(|a| (title(&a.task), a.agent.to_string()))
            .collect();
        let expected: Vec<(String, String)> =
            expected.iter().map(|(task, agent)| ((*task).to_owned(), (*agent).to_owned())).collect();
        assert_eq!(got, expected);
    }

    fn load(max_concurrent: usize) -> Load {
        Load { max_concurrent, ..Load::default() }
    }

    #[test]
    fn what_was_set_aside_takes_nobody_s_place() {
        let board = board(vec![new("a", Priority::Critical), new("b", Priority::Normal)]);
        let first = board.dispatch(&[agent("x", &[], 1)], &load(1), at(1_000_000)).remove(0).task;
        let load = Load { set_aside: BTreeSet::from([first]), ..load(1) };
        check(&board, &[agent("x", &[], 1)], &load, &[("b", "x")]);
    }

    #[test]
    fn the_most_urgent_goes_first_and_among_equals_the_oldest() {
        let tasks = vec![
            new("a", Priority::Normal),
            new("b", Priority::Critical),
            new("c", Priority::Normal),
            new("d", Priority::Low),
        ];
        let one = [agent("x", &[], 10)];
        check(&board(tasks.clone()), &one, &load(10), &[("b", "x"), ("a", "x"), ("c", "x"), ("d", "x")]);
        check(&board(tasks), &one, &load(2), &[("b", "x"), ("a", "x")]);
    }

    #[test]
    fn routing_chooses_the_agent_then_the_role_then_whoever_has_least_to_do() {
        let routed = |title: &str, agent: Option<&str>, role: Option<&str>| New {
            routing: Routing {
                agent: agent.map(|name| name.parse().unwrap()),
                role: role.map(str::to_owned),
                tags: Vec::new(),
            },
            ..new(title, Priority::Normal)
        };
        let tasks = vec![
            routed("for y", Some("y"), None),
            routed("for qa", None, Some("qa")),
            routed("for z", Some("z"), None),
            routed("for any", None, None),
        ];
        let agents = [agent("x", &["qa"], 2), agent("y", &[], 1)];
        check(&board(tasks), &agents, &load(9), &[("for y", "y"), ("for qa", "x"), ("for any", "x")]);
    }

    #[test]
    fn limits_of_all_and_of_each_agent_hold_with_what_runs_already() {
        let tasks = vec![new("a", Priority::Normal), new("b", Priority::Normal), new("c", Priority::Normal)];
        let agents = [agent("x", &[], 2), agent("y", &[], 2)];
        let running = BTreeMap::from([("x".parse().unwrap(), 2), ("y".parse().unwrap(), 1)]);
        check(&board(tasks.clone()), &agents, &Load { running: running.clone(), ..load(9) }, &[("a", "y")]);
        check(&board(tasks), &agents, &Load { max_concurrent: 3, running, ..Load::default() }, &[]);
    }

    #[test]
    fn one_task_at_a_time_where_the_workspace_is_shared() {
        let tasks =
            || vec![new("a", Priority::Normal), new("b", Priority::Normal), new("c", Priority::Normal)];
        let shared = Willing { is_shared: true, ..agent("x", &[], 9) };
        check(&board(tasks()), std::slice::from_ref(&shared), &load(9), &[("a", "x")]);
        let apart = agent("y", &[], 9);
        let both = [shared, apart];
        check(&board(tasks()), &both, &load(9), &[("a", "x"), ("b", "y"), ("c", "y")]);
        let taken = Load { is_shared_taken: true, ..load(9) };
        check(&board(tasks()), &both, &taken, &[("a", "y"), ("b", "y"), ("c", "y")]);
    }

    #[test]
    fn some_come_only_when_they_are_called() {
        let shy = [Willing { takes_any: false, ..agent("mock", &[], 9) }];
        let mut called = new("b", Priority::Normal);
        called.routing.agent = Some("mock".parse().unwrap());
        check(&board(vec![new("a", Priority::Normal), called]), &shy, &load(9), &[("b", "mock")]);
    }

    #[test]
    fn a_guarded_task_is_for_its_executor() {
        let guarded = New { guarded: true, ..new("b", Priority::Normal) };
        let shy = Willing { takes_any: false, ..agent("exec", &[], 9) };
        let agents = [agent("x", &[], 9), shy];
        let load = Load { executor: Some("exec".parse().unwrap()), ..load(9) };
        check(
            &board(vec![new("a", Priority::Normal), guarded]),
            &agents,
            &load,
            &[("a", "x"), ("b", "exec")],
        );
    }

    #[test]
    fn what_depends_on_something_open_or_waits_is_left_alone() {
        let mut first = board(vec![new("a", Priority::Low)]);
        let on = first.tasks().next().unwrap().id.clone();
        let moment = Moment { now: at(5000), seed: [9; 10] };
        let waiting = New { status: Status::Ready, depends_on: vec![on], ..new("b", Priority::Critical) };
        let (_, decided) = first.create(&waiting, &operator(), moment).unwrap();
        for (i, event) in decided.events.iter().enumerate() {
            let at = At { pos: first.pos() + 1, trace: event.trace, seq: i as u64 + 1, time: event.at };
            first.apply(event.task.as_ref().map(|t| t.as_str()), &event.payload, at).unwrap();
        }
        check(&first, &[agent("x", &[], 9)], &load(9), &[("a", "x")]);
    }
}

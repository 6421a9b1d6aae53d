//! A day of scheduling on a clock that a test turns: agents take tasks, finish them or die; everything comes to an end, at the right moment.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use baton_core::task::decide::New;
use baton_core::task::dispatch::{Assignment, Load, Willing};
use baton_core::task::{Board, Status};
use baton_core::{AgentName, TaskId, Timestamp};
use baton_runtime::clock::{Clock as _, VirtualClock};
use baton_runtime::dispatch::{Dispatcher, dispatch};
use baton_runtime::{Engine, Fault};
use baton_store::History as _;
use baton_testkit::builders::agent;
use baton_testkit::rng::Rng;
use serde_json::json;

use crate::world::World;

const MINUTE_MS: i64 = 60_000;
const TASKS: usize = 60;

/// What an agent will do with a task it was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    ReportsAt(Timestamp),
    /// Says nothing ever again.
    Dies,
}

/// Agents that exist in this test alone: they claim, and later report or do not.
struct Crew<'a> {
    engine: &'a Engine,
    clock: Arc<VirtualClock>,
    rng: Mutex<Rng>,
    at_work: Mutex<BTreeMap<TaskId, (AgentName, Fate)>>,
}

impl Dispatcher for Crew<'_> {
    fn willing(&self) -> Vec<Willing> {
        let willing = |name| Willing {
            name: agent(name),
            roles: Vec::new(),
            max_sessions: 3,
            takes_any: true,
            is_shared: false,
        };
        ["ada", "bob"].map(willing).to_vec()
    }

    fn load(&self) -> Load {
        let mut running = BTreeMap::new();
        for (name, _) in self.at_work.lock().unwrap().values() {
            *running.entry(name.clone()).or_default() += 1;
        }
        Load { max_concurrent: 4, running, ..Load::default() }
    }

    fn start(&self, assignment: &Assignment) -> Result<bool, Fault> {
        self.engine.claim(&assignment.task, &assignment.agent, None, None)?;
        let mut rng = self.rng.lock().unwrap();
        let fate = match rng.chance(3) {
            true => Fate::Dies,
            // Sooner than its heartbeat runs out: this agent does not beat.
            false => Fate::ReportsAt(self.clock.now().plus_ms(MINUTE_MS * (1 + rng.below(4).cast_signed()))),
        };
        self.at_work.lock().unwrap().insert(assignment.task.clone(), (assignment.agent.clone(), fate));
        Ok(true)
    }
}

impl Crew<'_> {
    /// Reports that are due now.
    fn report(&self) {
        let now = self.clock.now();
        let due: Vec<(TaskId, AgentName)> = self
            .at_work
            .lock()
            .unwrap()
            .iter()
            .filter(|(_, (_, fate))| matches!(fate, Fate::ReportsAt(at) if *at <= now))
            .map(|(id, (name, _))| (id.clone(), name.clone()))
            .collect();
        for (id, name) in due {
            let message = json!({
                "protocol": "aof", "version": 1, "type": "completion.report", "taskId": id.as_str(),
                "fromAgent": name.as_str(), "toAgent": "dispatcher", "sentAt": now.to_string(),
                "payload": {"outcome": "done", "summaryRef": "outputs/summary.md", "notes": "done",
                            "tests": {"total": 1, "passed": 1, "failed": 0}},
            });
            let sent = self.engine.send(message.to_string().as_bytes()).unwrap();
            assert_eq!(sent.rejected, None, "{id}");
            self.at_work.lock().unwrap().remove(&id);
        }
    }

    fn next_report(&self) -> Option<Timestamp> {
        let at_work = self.at_work.lock().unwrap();
        at_work
            .values()
            .filter_map(|(_, fate)| if let Fate::ReportsAt(at) = fate { Some(*at) } else { None })
            .min()
    }

    /// Those who died and lost their task are at work no more.
    fn bury(&self, board: &Board) {
        let lost = |id: &TaskId| board.get(id).is_none_or(|task| task.lease.is_none());
        self.at_work.lock().unwrap().retain(|id, _| !lost(id));
    }
}

#[test]
fn a_day_of_scheduling_ends_every_task_on_time_and_takes_no_time() {
    let started = Instant::now();
    let world = World::new(7);
    let (journal, engine) = world.open("a day");
    let engine = engine.unwrap();
    for n in 0..TASKS {
        let mut new = New::titled(format!("task {n}"));
        new.status = Status::Ready;
        new.metadata.insert("reviewRequired".into(), false.into());
        if n % 5 == 4 {
            new.status = Status::Backlog;
            new.depends_on
                .extend(engine.look(|board| board.tasks().last().map(|task| task.id.clone())).unwrap());
        }
        engine.create(&new).unwrap();
    }
    let crew = Crew {
        engine: &engine,
        clock: world.clock.clone(),
        rng: Mutex::new(Rng::new(7)),
        at_work: Mutex::default(),
    };
    let end = world.clock.now().plus_ms(24 * 60 * MINUTE_MS);
    let mut rounds = 0;
    while world.clock.now() < end {
        rounds += 1;
        crew.report();
        let ticked = engine.tick().unwrap();
        let (now, board) = (engine.now(), engine.look(Board::clone).unwrap());
        crew.bury(&board);
        // Nothing that has run out is still held, and no more run than may.
        let in_progress: Vec<_> = board.with_status(Status::InProgress).collect();
        for task in &in_progress {
            let lease = task.lease.as_ref().expect("whoever works holds a lease");
            assert!(lease.ends_at() > now, "{} is held although its time is over", task.id);
        }
        assert!(in_progress.len() <= 4);
        let started = dispatch(&engine, &crew).unwrap();
        for assignment in &started {
            let task = board.get(&assignment.task).unwrap();
            assert!(task.not_before.is_none_or(|at| at <= now), "{} starts before its time", task.id);
            assert_eq!(
                board.open_dependencies(task).next(),
                None,
                "{} starts before what it depends on",
                task.id
            );
        }
        let after = engine.tick().unwrap();
        let next = [
            ticked.next,
            after.next,
            crew.next_report(),
            engine.look(|board| board.next_start(now)).unwrap(),
        ];
        match next.into_iter().flatten().filter(|at| *at > now).min() {
            Some(next) => world.clock.set(next.min(end)),
            None => break,
        }
    }
    let board = engine.look(Board::clone).unwrap();
    let count = |status| board.count(status);
    println!(
        "{rounds} rounds, {} events: {} done, {} given up, {} waiting for those, in {:?}",
        journal.size(),
        count(Status::Done),
        count(Status::Deadletter),
        count(Status::Backlog),
        started.elapsed()
    );
    assert_eq!(
        count(Status::InProgress) + count(Status::Ready) + count(Status::Review),
        0,
        "everything came to an end"
    );
    assert_eq!(count(Status::Done) + count(Status::Deadletter) + count(Status::Backlog), TASKS);
    for task in board.with_status(Status::Deadletter) {
        assert_eq!(task.attempts, 3, "{}", task.id);
    }
    for task in board.with_status(Status::Backlog) {
        let open: Vec<Status> =
            board.open_dependencies(task).map(|id| board.get(id).unwrap().status).collect();
        assert!(
            open.iter().all(|status| matches!(status, Status::Deadletter | Status::Backlog)),
            "{}: {open:?}",
            task.id
        );
    }
    assert!(count(Status::Done) > TASKS / 2);
}

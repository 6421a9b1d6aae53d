//! Guarded runs as far as their tasks are concerned: begun, cited at their end, and what was refused in between.

use baton_core::guard::State;
use baton_core::task::decide::{GuardBegins, GuardEnded};
use baton_core::{AgentName, TaskId, TraceId};

use super::{Engine, Fault};

impl Engine {
    /// Whether new tasks are guarded without being asked to.
    pub fn guards(&self) -> bool {
        self.settings.guards
    }

    /// Begins a guarded run, or gives the trace of the one that was begun before.
    pub fn begin_guard(&self, begins: &GuardBegins) -> Result<TraceId, Fault> {
        let mut state = self.lock();
        let moment = self.ground.clock.moment();
        let (trace, _) = self.act(&mut state, |board, _| Ok(board.begin_guard(begins, moment)?))?;
        Ok(trace)
    }

    /// Cites what a guarded run came to, and moves its task.
    pub fn end_guard(&self, ended: &GuardEnded) -> Result<(), Fault> {
        let mut state = self.lock();
        let moment = self.ground.clock.moment();
        self.act(&mut state, |board, settings| Ok(((), board.end_guard(ended, settings.rules, moment)?)))?;
        self.tick_locked(&mut state)?;
        Ok(())
    }

    /// Cites the abort of a run that nobody plays at the moment; whoever plays one does so itself.
    pub fn cite_aborted(&self, trace: TraceId, why: &str) -> Result<(), Fault> {
        let found = self.look(|board| {
            let task = board.tasks().find(|task| task.guard == Some(trace) && task.lease.is_none())?;
            Some((task.id.clone(), task.run.as_ref()?.id))
        })?;
        let head = self.ground.journal.trace(trace).map(|summary| summary.head);
        let (Some((task, run)), Some(head)) = (found, head) else { return Ok(()) };
        let (state, why) = (State::Aborted, why.to_owned());
        self.end_guard(&GuardEnded { task, run, trace, head, state, verdict: None, why })
    }

    /// Records what an agent was kept from, wherever it plays a part.
    pub fn refuse_player(&self, agent: &AgentName, what: &str, why: &str) -> Result<(), Fault> {
        let tasks: Vec<TaskId> =
            self.look(|board| board.runs_of(agent).map(|task| task.id.clone()).collect())?;
        tasks.iter().try_for_each(|task| self.refuse_guarded(task, agent, what, None, why))
    }

    /// Records what the rules of guarded work kept somebody from.
    pub fn refuse_guarded(
        &self,
        task: &TaskId,
        agent: &AgentName,
        what: &str,
        rule: Option<&str>,
        why: &str,
    ) -> Result<(), Fault> {
        let mut state = self.lock();
        let moment = self.ground.clock.moment();
        self.act(&mut state, |board, _| {
            Ok(((), board.refuse_guarded(task, agent, what, rule, why, moment)?))
        })?;
        Ok(())
    }
}

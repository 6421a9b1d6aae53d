//! Guarded tasks: one claim, one attempt, and a conductor that plays the run through its sessions.

use std::sync::Arc;

use baton_core::Role;
use baton_core::guard::Team;
use baton_core::ids::{AgentName, SessionId};
use baton_core::task::Task;
use serde_json::{Map, Value};

use super::{Attempt, Crew, NotStarted};
use crate::conduct::{self, Conductor};
use crate::harness::{AgentSpec, Drive};
use crate::session::{Bound, NotBegun, token};

impl Crew {
    /// Claims a guarded task for its executor and plays its run. The attempt goes on by itself.
    pub(super) fn begin_guarded(
        self: &Arc<Self>,
        task: &Task,
        agent: &AgentName,
    ) -> Result<Arc<Attempt>, NotStarted> {
        let team = self.team_for(task, agent)?;
        let spec = self.spec_of(task, &team)?;
        // What nobody here can sign, nobody here can play.
        for (agent, role) in [(&team.executor, Role::Executor), (&team.auditor, Role::Auditor)] {
            conduct::expect_key(&self.engine, &self.guarding, &team, (agent, role))
                .map_err(|why| NotStarted::Team { task: task.id.clone(), why })?;
        }
        let id = self.broker.new_id();
        let place = self.place(&task.id, spec.worktree, id)?;
        let claimed = self.engine.claim(&task.id, &team.executor, None, token(id))?;
        let (run, fence, trace) = (claimed.run, claimed.lease.fence, task.trace);
        let bound = Bound { task: task.id.clone(), run, fence, trace };
        let attempt = Arc::new(Attempt::new(bound.clone(), team.executor.clone(), id));
        let playing = match conduct::open(&self.engine, &self.guarding, &bound, team) {
            Ok(playing) => playing,
            Err(fault) => {
                conduct::give_up(&self.engine, &bound, &fault.to_string())?;
                return Err(fault.into());
            }
        };
        attempt.set_playing(playing.clone());
        self.attempts().insert(task.id.clone(), attempt.clone());
        let (crew, working, dir) = (self.clone(), attempt.clone(), place.dir.clone());
        let work = move || {
            let end = Conductor::new(&crew, working.clone(), &playing, dir).conduct(&spec);
            drop(place.guard);
            crew.attempts().remove(&working.bound().task);
            working.finish(end);
            crew.wake.wake();
        };
        if let Err(error) = std::thread::Builder::new().name("conductor".into()).spawn(work) {
            self.attempts().remove(&task.id);
            conduct::give_up(&self.engine, &bound, "no thread for it")?;
            return Err(NotBegun::Io(self.workspace.dir().to_owned(), error).into());
        }
        Ok(attempt)
    }

    /// The team of a run that was begun, or of one that begins now.
    fn team_for(&self, task: &Task, agent: &AgentName) -> Result<Team, NotStarted> {
        let begun = task.guard.and_then(|trace| conduct::team_of(&self.engine, trace));
        let refuse = |why| NotStarted::Team { task: task.id.clone(), why };
        begun.map_or_else(|| self.guarding.team.team(&self.guarding.policy, agent).map_err(refuse), Ok)
    }

    /// The executor, where everybody of the team is there and its tools can be held back.
    fn spec_of(&self, task: &Task, team: &Team) -> Result<AgentSpec, NotStarted> {
        let own = baton_core::roles::is_own_name;
        let is_agent =
            |name: &&AgentName| !own(name.as_str()) && name.as_str() != baton_core::roles::OPERATOR;
        let all = [&team.planner, &team.critic, &team.auditor, &team.executor];
        for name in all.into_iter().filter(is_agent) {
            let spec = self.broker.agents().get(name).ok_or_else(|| NotBegun::UnknownAgent(name.clone()))?;
            if matches!(spec.drive, Drive::Exec { .. }) {
                let why = format!(
                    "{name} runs its tools before anybody could be asked (harness exec): a player speaks ACP, or is a model"
                );
                return Err(NotStarted::Team { task: task.id.clone(), why });
            }
        }
        let spec = self.broker.agents().get(&team.executor).cloned();
        Ok(spec.ok_or_else(|| NotBegun::UnknownAgent(team.executor.clone()))?)
    }

    /// Who executes guarded tasks, where somebody is named for it.
    pub fn executor(&self) -> Option<AgentName> {
        self.guarding.team.executor.clone()
    }

    /// Takes what a session of a guarded run submits.
    pub fn submit(&self, session: SessionId, answer: &Map<String, Value>) -> Result<String, String> {
        let bound = self.broker.get(session).and_then(|live| live.bound);
        let attempt = bound.and_then(|bound| self.attempt(&bound.task));
        let playing = attempt.and_then(|attempt| attempt.playing());
        let playing = playing.ok_or_else(|| format!("{session} plays no part in a guarded run"))?;
        playing.submit(session, answer)
    }
}

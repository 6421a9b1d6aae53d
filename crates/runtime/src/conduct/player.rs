//! A player that is an agent: its session, begun when it is first needed, and its turns.

use std::sync::Arc;
use std::time::Duration;

use baton_core::session::{SessionEndedData, StateKind};
use baton_core::{AgentName, Role, Seen};

use super::onlooker::Onlooker;
use super::play::Conductor;
use super::{Failed, Halt};
use crate::harness::cut_short;
use crate::limits::{ATTEMPT_LOOK, GUARD_TEXT_BYTES_MAX};
use crate::session::{Ask, Begin, Channel, Live, Next, NotBegun, Part, ToolGate};
use crate::work::{Outcome, Watched, ending_of};

/// The session of one part.
#[derive(Debug, Clone)]
pub(super) struct Player {
    pub(super) live: Live,
    pub(super) ended: Arc<std::sync::Mutex<Option<SessionEndedData>>>,
    position: u64,
}

impl Player {
    fn end(&self) -> Option<SessionEndedData> {
        self.ended.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Conductor<'_> {
    /// The session of a part; begun where there is none.
    fn player(&mut self, role: Role) -> Result<Player, Halt> {
        if let Some(player) = self.players.get(&role) {
            return Ok(player.clone());
        }
        let agent = self.stage.agent(role).clone();
        self.wait_for_place(role, &agent)?;
        let scene = self.stage.scene.clone();
        let gate: Arc<dyn ToolGate> = match role {
            Role::Executor => self.stage.gate.clone(),
            _ => Arc::new(Onlooker { scene, agent: agent.clone(), role }),
        };
        let is_executor = role == Role::Executor;
        // The lease names the first session of the executor; another one follows only where that is gone.
        let is_first = is_executor && !std::mem::replace(&mut self.has_executor, true);
        let id = if is_first { self.attempt.session() } else { self.crew.broker().new_id() };
        let begin = Begin {
            agent: agent.clone(),
            cwd: self.dir.clone(),
            bound: Some(self.attempt.bound().clone()),
            id: Some(id),
            resumes: None,
            signals: None,
            gate: Some(gate),
            part: Some(Part { role, trace: self.stage.scene.trace }),
        };
        self.stage.enter(id, role);
        let ended = Arc::<std::sync::Mutex<Option<SessionEndedData>>>::default();
        let (telling, attempt) = (ended.clone(), self.attempt.clone());
        let told = move |data: &SessionEndedData, _: &_| {
            *telling.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(data.clone());
            if is_executor {
                attempt.session_ended(data.clone());
            }
        };
        let live = self.crew.broker().begin(begin, Box::new(told)).map_err(|why| {
            let why = format!("the session of the {role} {agent} did not begin: {why}");
            Halt::player(Watched::Gone, why)
        })?;
        if is_executor {
            self.attempt.set_live(live.clone());
        }
        let player = Player { live, ended, position: 0 };
        self.players.insert(role, player.clone());
        Ok(player)
    }

    /// Waits until another session may begin. Whoever of this run has nothing to do makes room first.
    fn wait_for_place(&mut self, role: Role, agent: &AgentName) -> Result<(), Halt> {
        loop {
            match self.crew.broker().has_place(agent) {
                Ok(()) | Err(NotBegun::UnknownAgent(_) | NotBegun::Ending) => return Ok(()),
                Err(why) => {
                    let idle = [Role::Planner, Role::Critic, Role::Auditor].into_iter();
                    match idle.filter(|idle| *idle != role).find(|idle| self.players.contains_key(idle)) {
                        Some(idle) => self.dismiss(idle, || Ask::Finish),
                        None => self.tell_once(agent.as_str(), &format!("the {role} waits: {why}")),
                    }
                    self.pulse()?;
                    self.stage.scene.wait(ATTEMPT_LOOK);
                }
            }
        }
    }

    /// One turn of a player: prompted, followed to its end; gives the end of what it said. `meanwhile` is done again and again.
    pub(super) fn turn(
        &mut self,
        role: Role,
        (blocks, shown): (Vec<String>, Seen),
        meanwhile: &mut dyn FnMut(&mut Self) -> Result<(), Halt>,
    ) -> Result<String, Halt> {
        let player = self.player(role)?;
        let Player { live, mut position, .. } = player.clone();
        let (mut said, mut blocks, mut is_prompted) = (String::new(), Some(blocks), false);
        loop {
            match live.handle.feed().after(position, wait_for(role)) {
                Next::Items(items) => {
                    for item in items.iter().filter(|_| is_prompted) {
                        if item.channel == Channel::Stream && item.value["type"] == "text_delta" {
                            said.push_str(item.value["payload"]["text"].as_str().unwrap_or_default());
                        }
                    }
                    position = items.last().map_or(position, |item| item.at);
                    keep_end(&mut said);
                }
                Next::Gap(first) => position = first - 1,
                Next::Nothing => {}
                Next::Over => return Err(self.gone(role, &player)),
            }
            self.pulse()?;
            if self.stage.scene.look()?.run.state().is_end() {
                return Err(Halt::Over);
            }
            meanwhile(self)?;
            if live.handle.state() != StateKind::Ready || live.handle.feed().last() > position {
                continue;
            }
            if is_prompted {
                break;
            }
            let Some(asked) = blocks.take() else { break };
            self.stage.show(role, shown);
            match live.handle.ask(Ask::Prompt(asked.clone())) {
                Ok(()) => is_prompted = true,
                Err(_) if live.handle.state() == StateKind::Stopped => return Err(self.gone(role, &player)),
                // Somebody else was quicker: their turn comes first.
                Err(_) => blocks = Some(asked),
            }
        }
        if let Some(player) = self.players.get_mut(&role) {
            player.position = position;
        }
        if let Some(error) = live.handle.view().last_error {
            let why = format!("the {role} erred: {}", error.message);
            return Err(Halt::player(Watched::Erred(error), why));
        }
        match cut_short(&live.handle.stop_reason()) {
            Some(why) => Err(Halt::player(Watched::CutShort(why), format!("the {role}: {why}"))),
            None => Ok(said),
        }
    }

    fn gone(&self, role: Role, player: &Player) -> Halt {
        let ended = player.end();
        if let Some(violation) = self.stage.gate.violation() {
            return Halt::Failed(violation);
        }
        let (_, outcome, why) = ending_of(ended.as_ref());
        let why = why.unwrap_or_else(|| "its session ended".to_owned());
        let watched = if outcome == Outcome::Stopped { Watched::Stopped } else { Watched::Gone };
        let why = format!("the {role} is gone: {why}");
        Halt::Player(Box::new(Failed { watched, why, ended }))
    }

    /// Ends a player's session, and waits for that.
    pub(super) fn dismiss(&mut self, role: Role, how: fn() -> Ask) {
        if let Some(player) = self.players.remove(&role) {
            // One that has ended meanwhile needs nothing.
            let _ = player.live.handle.ask(how());
            player.live.handle.feed().wait_for_end();
        }
    }
}

/// An executor may wait for a review, which is made between two looks.
fn wait_for(role: Role) -> Duration {
    if role == Role::Executor { ATTEMPT_LOOK / 4 } else { ATTEMPT_LOOK }
}

/// Keeps the end of a long text.
fn keep_end(text: &mut String) {
    if text.len() > GUARD_TEXT_BYTES_MAX {
        let cut = text.ceil_char_boundary(text.len() - GUARD_TEXT_BYTES_MAX);
        text.drain(..cut);
    }
}

//! The critic's part: proposals and intents, reviewed by an agent, by the rules, or by a person who is waited for.

use baton_core::Role;
use baton_core::guard::Step;
use baton_core::ids::Token;

use super::play::Conductor;
use super::scene::{Standing, Unsaid};
use super::stage::Stage;
use super::{Halt, Own, own_player, prompt};
use crate::limits::GUARD_LOOK;

impl Conductor<'_> {
    pub(super) fn review(&mut self, standing: &Standing, id: &Token) -> Result<(), Halt> {
        let Some(proposed) = standing.run.proposal(id) else { return Ok(()) };
        let critic = self.stage.agent(Role::Critic).clone();
        let has_spoken = proposed.reviews.iter().any(|(by, ..)| *by == critic);
        match own_player(&self.stage.team, Role::Critic) {
            _ if has_spoken => self.wait_for_person(standing, id),
            Some(Own::Person) => self.wait_for_person(standing, id),
            Some(_) => {
                let step = Step::Reviewed(standing.run.review_by_rules(proposed));
                self.say_by_rules(standing, &step)
            }
            None => {
                let asked = prompt::review(&self.task_text()?, proposed);
                let (known, id) = (proposed.reviews.len(), id.clone());
                let is_there = move |now: &Standing, _: &Stage| {
                    now.run.proposal(&id).is_none_or(|proposed| proposed.reviews.len() > known)
                };
                self.ask_for(Role::Critic, (&asked, standing.head), &is_there)
            }
        }
    }

    pub(super) fn review_intent(&mut self, standing: &Standing, id: &Token) -> Result<(), Halt> {
        let Some(intended) = standing.run.intent(id) else { return Ok(()) };
        match own_player(&self.stage.team, Role::Critic) {
            Some(Own::Person) => self.tell_person(id),
            Some(_) => {
                let step = Step::IntentReviewed(standing.run.review_intent_by_rules(intended));
                self.say_by_rules(standing, &step)?;
            }
            None => {
                let store = &self.stage.scene.engine.ground().artifacts;
                let input = prompt::input(store, &intended.intent.normalized_input_hash);
                let asked = prompt::review_intent(&standing.run, intended, &input);
                let id = id.clone();
                let is_there = move |now: &Standing, _: &Stage| {
                    now.run.intent(&id).is_none_or(|intended| intended.answer.is_some())
                };
                self.ask_for(Role::Critic, (&asked, standing.head), &is_there)?;
            }
        }
        Ok(())
    }

    /// What the rules say as the critic. A person may have been faster, so that it is no longer allowed: then there is nothing to say, and nobody is to blame.
    pub(super) fn say_by_rules(&self, standing: &Standing, step: &Step) -> Result<(), Halt> {
        let (stage, role) = (&self.stage, Role::Critic);
        let critic = (stage.agent(role), role);
        match stage.scene.say(&stage.team, critic, step, &[], standing.head) {
            Err(Unsaid::HeadMoved) => Ok(()),
            Err(Unsaid::Forbidden { .. }) if stage.scene.look()?.head != standing.head => Ok(()),
            said => Ok(said?),
        }
    }

    /// Tells somebody something about the run, once.
    pub(super) fn tell_once(&mut self, about: &str, what: &str) {
        if about.parse().is_ok_and(|about| self.told.insert(about)) {
            self.crew.notice(format!("{}: {what}", self.attempt.bound().task));
        }
    }

    /// Says once that a person has to review something.
    fn tell_person(&mut self, id: &Token) {
        if self.told.insert(id.clone()) {
            let (task, trace) = (&self.attempt.bound().task, self.stage.scene.trace);
            let what =
                format!("{id} waits for a person: baton trace review {trace} {id} approve --reason \"…\"");
            // Whoever follows the run is told as it goes on; everybody else by whoever serves.
            match self.stage.is_followed() {
                true => self.stage.note(what),
                false => self.crew.notice_now(format!("{task}: {what}")),
            }
        }
    }

    pub(super) fn wait_for_person(&mut self, standing: &Standing, id: &Token) -> Result<(), Halt> {
        self.tell_person(id);
        while self.stage.scene.look()?.head == standing.head {
            self.pulse()?;
            self.stage.scene.wait(GUARD_LOOK);
        }
        Ok(())
    }
}

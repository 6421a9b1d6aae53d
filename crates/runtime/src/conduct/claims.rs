//! What comes of the work: claims, what the critic thinks of them, answers to that, and the final statement.

use baton_core::Role;
use baton_core::guard::{Claim, Claimed, Disputes, FinalStatement, Step};
use baton_core::ids::Token;
use baton_core::limits::GUARD_TEXT_CHARS_MAX;
use baton_core::task::{Outcome, Reported, TaskEvent};
use baton_store::tasks::fold::Fact;
use serde_json::{Map, Value};

use super::play::Conductor;
use super::scene::{Standing, Unsaid};
use super::stage::Stage;
use super::{Halt, Own, done, evidence_of, own_player, prompt};
use crate::limits::GUARD_CLAIMINGS_MAX;
use crate::session::Ask;

impl Conductor<'_> {
    /// Issues the claim of a completion report; without one the executor is asked for its claims.
    pub(super) fn claim(&mut self, standing: &Standing) -> Result<(), Halt> {
        self.claimings += 1;
        if self.claimings > GUARD_CLAIMINGS_MAX {
            let why = format!("the executor ran something again after each of {GUARD_CLAIMINGS_MAX} claims");
            return Err(Halt::Failed(why));
        }
        let Some(Reported { outcome, pos, .. }) = self.reported()? else {
            let (asked, before) = (prompt::claims(standing), standing.run.claims().count());
            return self.ask_for(Role::Executor, (&asked, standing.head), &move |now, _| {
                now.run.claims().count() > before
            });
        };
        let report = self.report_at(pos)?;
        let _floor = self.stage.floor();
        if self.stage.scene.look()?.head != standing.head {
            // Something was said meanwhile, perhaps a claim.
            return Ok(());
        }
        let bytes = super::scene::normalized(&Value::Object(report.clone()));
        let stored = self.stage.scene.store(&bytes, "application/json", "completion-report.json")?;
        let executions = done(&standing.run);
        if executions.is_empty() {
            return Err(Halt::Failed("no tool ran to its end, so nothing can be claimed".to_owned()));
        }
        let mut evidence = evidence_of(standing, &executions);
        let mut cited: Vec<_> = evidence.iter().map(|hash| self.stage.scene.cite(standing, hash)).collect();
        evidence.push(stored.sha256);
        cited.push(stored);
        let notes = report.get("notes").and_then(Value::as_str).unwrap_or_default();
        let text = if notes.trim().is_empty() { String::new() } else { format!(": {}", notes.trim()) };
        let claim = Claim {
            claim_id: standing.run.fresh("c", 0),
            claim_text: format!("The executor reports {outcome}{text}")
                .chars()
                .take(GUARD_TEXT_CHARS_MAX)
                .collect(),
            confidence: match outcome {
                Outcome::Done => 0.9,
                Outcome::NeedsReview => 0.7,
                Outcome::Partial | Outcome::Blocked => 0.5,
            },
            evidence,
            executions,
            revises: None,
        };
        Ok(self.stage.say(Role::Executor, standing, &Step::Claimed(claim), &cited)?)
    }

    /// A report as it was recorded, also in an attempt before this one.
    fn report_at(&self, pos: u64) -> Result<Map<String, Value>, Halt> {
        let stored = self.stage.scene.engine.ground().journal.read(pos, 1)?;
        let event = stored.first().map(Fact::read).transpose()?.and_then(|fact| fact.event());
        Ok(match event {
            Some(TaskEvent::Completed(completed)) => completed.report,
            _ => Map::new(),
        })
    }

    pub(super) fn examine(&mut self, standing: &Standing, ids: &[Token]) -> Result<(), Halt> {
        let new: Vec<&Claimed> = ids
            .iter()
            .filter(|id| !self.examined.contains(*id))
            .filter_map(|id| standing.run.claim(id))
            .collect();
        match own_player(&self.stage.team, Role::Critic) {
            // It lets each of them stand, or challenges it: one word, and it is asked again what comes next.
            Some(Own::Person) => return self.wait_for_word(standing, ids),
            Some(_) => {
                for challenge in new.iter().filter_map(|claimed| standing.run.challenge_by_rules(claimed)) {
                    self.say_by_rules(standing, &Step::Challenged(challenge))?;
                }
            }
            None => {
                let store = &self.stage.scene.engine.ground().artifacts;
                let asked = prompt::examine(&self.task_text()?, standing, &new, store);
                let before = self.stage.settled(Role::Critic);
                self.ask_for(Role::Critic, (&asked, standing.head), &move |_, stage| {
                    stage.settled(Role::Critic) > before
                })?;
            }
        }
        self.examined.extend(ids.iter().cloned());
        Ok(())
    }

    fn wait_for_word(&mut self, standing: &Standing, ids: &[Token]) -> Result<(), Halt> {
        let waits = |id: &&Token| {
            let is_challenged = standing.run.claim(id).is_some_and(|claimed| claimed.open_challenges > 0);
            !is_challenged && !standing.aside.stands.contains(*id)
        };
        match ids.iter().find(waits) {
            Some(id) => self.wait_for_person(standing, id),
            None => Ok(()),
        }
    }

    pub(super) fn answer(&mut self, standing: &Standing, id: &Token) -> Result<(), Halt> {
        let Some(claimed) = standing.run.claim(id) else { return Ok(()) };
        self.rounds += 1;
        let asked = prompt::answer(claimed, prompt::word(standing, id));
        let (wanted, before) = (id.clone(), self.stage.settled(Role::Executor));
        let is_there = move |now: &Standing, stage: &Stage| {
            now.run.claim(&wanted).is_none_or(|claimed| claimed.is_revised || claimed.open_challenges == 0)
                || stage.settled(Role::Executor) > before
        };
        self.ask_for(Role::Executor, (&asked, standing.head), &is_there)?;
        self.answered.insert(id.clone());
        Ok(())
    }

    pub(super) fn finish(&mut self, standing: &Standing) -> Result<(), Halt> {
        // Whoever works is gone before it is stated that the work is done, and what it did on its way out is looked at first.
        if self.players.contains_key(&Role::Executor) {
            self.dismiss(Role::Executor, || Ask::Finish);
            return Ok(());
        }
        // What rests on nothing but work that was rejected since is not stated.
        let is_carried = |claimed: &&Claimed| !claimed.is_revised && !standing.run.is_groundless(claimed);
        let mut standing_claims: Vec<&Claimed> = standing.run.claims().filter(is_carried).collect();
        standing_claims.sort_unstable_by_key(|claimed| claimed.seq);
        if standing_claims.is_empty() {
            return Err(Halt::Failed("every claim rests on work that was rejected since".to_owned()));
        }
        let ids: Vec<Token> = standing_claims.iter().map(|claimed| claimed.claim.claim_id.clone()).collect();
        let disputed: Vec<Token> = standing.run.disputed().cloned().collect();
        if standing.run.policy().open_disputes == Disputes::Fail && !disputed.is_empty() {
            let names: Vec<&str> = disputed.iter().map(Token::as_str).collect();
            return Err(Halt::Failed(format!("nobody answered the challenge of {}", names.join(", "))));
        }
        let texts: Vec<&str> =
            standing_claims.iter().map(|claimed| claimed.claim.claim_text.as_str()).collect();
        let verdict_text: String = texts.join("; ").chars().take(GUARD_TEXT_CHARS_MAX).collect();
        let statement = FinalStatement { claim_ids: ids, verdict_text, disputed };
        let executor = self.stage.agent(Role::Executor).clone();
        let said = self.stage.scene.say(
            &self.stage.team,
            (&executor, Role::Executor),
            &Step::Finished(statement),
            &[],
            standing.head,
        );
        match said {
            // Somebody said something meanwhile: it is looked at first.
            Ok(()) | Err(Unsaid::HeadMoved) => Ok(()),
            Err(unsaid) => Err(unsaid.into()),
        }
    }
}

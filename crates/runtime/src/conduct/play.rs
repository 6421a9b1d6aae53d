//! The conductor: asks the run what comes next, has it done, and asks again, until the run is closed and cited.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::guard::{Claimed, Known, Next, Outcome as Verdict, Proposed, Reply};
use baton_core::ids::Token;
use baton_core::task::{Outcome as Reports, Papers, Reported, Task};
use baton_core::{Role, Seen};

use super::audit::Verified;
use super::gate::{is_at_work, settle};
use super::player::Player;
use super::scene::{ENDED, REPORTED, Standing, Unsaid};
use super::stage::{NotTaken, Stage};
use super::{Failed, Halt, Own, Playing, cite, give_up, own_player, prompt};
use crate::harness::AgentSpec;
use crate::limits::{
    GUARD_AUDITS_MAX, GUARD_CORRECTIONS_MAX, GUARD_LOOK, GUARD_PROPOSALS_MAX, GUARD_ROUNDS_MAX,
    GUARD_TURNS_MAX, SETTLE,
};
use crate::session::{Ask, Gave};
use crate::work::{Attempt, Crew, Outcome, Pulse, RunEnd, Watched, text_of};

/// Plays one guarded run in one attempt.
#[derive(Debug)]
pub(crate) struct Conductor<'a> {
    pub(super) crew: &'a Crew,
    pub(super) attempt: Arc<Attempt>,
    pub(super) stage: Arc<Stage>,
    /// Where the work is.
    pub(super) dir: PathBuf,
    pub(super) players: BTreeMap<Role, Player>,
    pulse: Pulse,
    /// How often the executor was set to work.
    turns: usize,
    /// Claims that the critic has looked at, and challenges that the executor was asked about.
    pub(super) examined: BTreeSet<Token>,
    pub(super) answered: BTreeSet<Token>,
    pub(super) rounds: usize,
    /// How often the executor was asked what came of its work.
    pub(super) claimings: usize,
    /// What somebody was told to do, so that it is told once.
    pub(super) told: BTreeSet<Token>,
    tokens: Tokens,
    /// Whether the executor had a session.
    pub(super) has_executor: bool,
    /// Whether the run has failed, and nothing is left but to say so.
    has_failed: bool,
}

/// What the sessions of a run have used, as far as they say.
#[derive(Debug, Default)]
struct Tokens {
    read: u64,
    used: u64,
}

/// Nothing that is to be done meanwhile.
fn nothing(_: &mut Conductor<'_>) -> Result<(), Halt> {
    Ok(())
}

impl<'a> Conductor<'a> {
    pub(crate) fn new(crew: &'a Crew, attempt: Arc<Attempt>, playing: &Playing, dir: PathBuf) -> Self {
        Conductor {
            crew,
            attempt,
            stage: playing.0.clone(),
            dir,
            players: BTreeMap::new(),
            pulse: Pulse::new(),
            turns: 0,
            examined: BTreeSet::new(),
            answered: BTreeSet::new(),
            rounds: 0,
            claimings: 0,
            told: BTreeSet::new(),
            tokens: Tokens::default(),
            has_executor: false,
            has_failed: false,
        }
    }

    /// The whole attempt: from wherever the run stands to its end, or to why it did not get there.
    pub(crate) fn conduct(mut self, spec: &AgentSpec) -> RunEnd {
        let mut played = self.play();
        if let Err(Halt::Failed(why)) = &played {
            let why = why.clone();
            self.dismiss_all(|| Ask::Finish);
            played = self.end_badly(&why);
        }
        let ended = match played {
            Ok(()) | Err(Halt::Over) => {
                self.dismiss_all(|| Ask::Finish);
                self.close().and_then(|()| Ok(cite(&self.stage.scene)?))
            }
            Err(halt) => Err(halt),
        };
        let end = match ended {
            Ok(end) => end,
            Err(Halt::Asked(watched)) => {
                let how = match watched {
                    Watched::Leaving => || Ask::Leave,
                    Watched::Stopped => || Ask::Stop,
                    _ => || Ask::Finish,
                };
                self.dismiss_all(how);
                self.attempt.judge(self.crew, spec, watched, None)
            }
            Err(Halt::Player(failed)) => {
                self.dismiss_all(|| Ask::Finish);
                let Failed { watched, why, ended } = *failed;
                self.crew.notice(format!("{}: {why}", self.attempt.bound().task));
                match (&watched, ended) {
                    // How its session ended says whether another attempt makes sense, and when.
                    (_, Some(ended)) => RunEnd {
                        why: Some(why),
                        ..self.attempt.judge(self.crew, spec, watched, Some(&ended))
                    },
                    (Watched::Stopped, None) => self.attempt.judge(self.crew, spec, watched, None),
                    _ => self.failed(&why),
                }
            }
            Err(Halt::Failed(why)) => {
                self.dismiss_all(|| Ask::Finish);
                self.failed(&why)
            }
            Err(Halt::Over) => self.failed("the run was ended by somebody else"),
            Err(Halt::Fault(fault)) => {
                self.dismiss_all(|| Ask::Finish);
                self.failed(&fault.to_string())
            }
        };
        self.crew.tidy(&self.attempt.bound().task);
        end
    }

    fn failed(&self, why: &str) -> RunEnd {
        if let Err(fault) = give_up(&self.stage.scene.engine, self.attempt.bound(), why) {
            self.crew.notice(format!("{}: {fault}", self.attempt.bound().task));
        }
        RunEnd { outcome: Outcome::Failed, why: Some(why.to_owned()), termination: None }
    }

    fn dismiss_all(&mut self, how: fn() -> Ask) {
        // The executor first: what it left running is settled before anybody else goes.
        for role in [Role::Executor, Role::Planner, Role::Critic, Role::Auditor] {
            self.dismiss(role, how);
        }
    }

    /// Step by step to the end of the trace.
    fn play(&mut self) -> Result<(), Halt> {
        loop {
            self.pulse()?;
            let standing = self.stage.scene.look()?;
            if standing.is_closed {
                return Ok(());
            }
            let next = standing.run.next(self.known(&standing, false)?);
            // It may have said so before a crash.
            if matches!(next, Next::Claim | Next::Examine(_) | Next::Stuck) {
                self.expect_unblocked()?;
            }
            match next {
                Next::Propose { instead_of } => self.propose(&standing, instead_of.as_ref())?,
                Next::Review(id) => self.review(&standing, &id)?,
                Next::ReviewIntent(id) => self.review_intent(&standing, &id)?,
                Next::Settle(id) => self.settle(&id)?,
                Next::Execute => self.execute(&standing)?,
                Next::Claim => self.claim(&standing)?,
                Next::Examine(ids) => self.examine(&standing, &ids)?,
                Next::Answer(id) => self.answer(&standing, &id)?,
                Next::Finish => self.finish(&standing)?,
                Next::Audit => self.audit(None)?,
                Next::Close => self.close()?,
                Next::Stuck if standing.run.may_fall_back() => self.propose(&standing, None)?,
                Next::Stuck => {
                    return Err(Halt::Failed("the executor ran nothing that could be claimed".to_owned()));
                }
            }
        }
    }

    fn known(&self, standing: &Standing, is_executing: bool) -> Result<Known, Halt> {
        let claims = || standing.run.claims().filter(|claimed| !claimed.is_revised);
        let id = |claimed: &Claimed| claimed.claim.claim_id.clone();
        let is_person = own_player(&self.stage.team, Role::Critic) == Some(Own::Person);
        Ok(Known {
            is_executing,
            // Also before a crash: what was done is not worked on again.
            has_report: standing.is_through() || self.reported()?.is_some(),
            // What is challenged was looked at, by whoever did so.
            is_examined: claims().all(|claimed| {
                let id = id(claimed);
                let is_let_stand = is_person && standing.aside.stands.contains(&id);
                claimed.open_challenges > 0 || is_let_stand || self.examined.contains(&id)
            }),
            is_answered: self.rounds >= GUARD_ROUNDS_MAX
                || claims()
                    .filter(|claimed| claimed.open_challenges > 0)
                    .all(|claimed| self.answered.contains(&id(claimed))),
        })
    }

    /// Beats, hears of whoever ends the attempt, and stops at budgets.
    pub(super) fn pulse(&mut self) -> Result<(), Halt> {
        if let Some(watched) = self.attempt.pulse(self.crew, &mut self.pulse) {
            return Err(Halt::Asked(watched));
        }
        let standing = self.stage.scene.look()?;
        let run = &standing.run;
        if run.state().is_end() || run.is_final() || self.has_failed {
            return Ok(());
        }
        if let Some(violation) = self.stage.gate.violation() {
            return Err(Halt::Failed(violation));
        }
        if let Some(fault) = self.stage.gate.fault() {
            return Err(Halt::player(Watched::Gone, fault));
        }
        let budgets = run.policy().budgets;
        let took = self.stage.scene.engine.now().unix_ms() - standing.began.unix_ms();
        let tokens = if budgets.tokens.is_some() { self.tokens_used()? } else { 0 };
        match budgets.overspent(u64::try_from(took).unwrap_or(0), tokens) {
            Some(why) => Err(Halt::Failed(why)),
            None => Ok(()),
        }
    }

    /// What all sessions of the run have used, as their turns say: those before a crash too.
    fn tokens_used(&mut self) -> Result<u64, Halt> {
        let (journal, trace) = (&self.stage.scene.engine.ground().journal, self.attempt.bound().trace);
        if self.tokens.read == 0 {
            // What was used before the run began is none of its own.
            self.tokens.read = journal.trace(self.stage.scene.trace).map_or(0, |run| run.first_pos);
        }
        let tokens = &mut self.tokens;
        super::player_usage(&**journal, trace, &mut tokens.read, &mut tokens.used)?;
        Ok(self.tokens.used)
    }

    pub(super) fn task(&self) -> Result<(Task, Papers), Halt> {
        Ok(self.stage.scene.engine.task(&self.attempt.bound().task)?)
    }

    pub(super) fn task_text(&self) -> Result<String, Halt> {
        let (task, papers) = self.task()?;
        Ok(text_of(&task, &papers))
    }

    /// Has a player asked until its answer is taken, or has been corrected often enough. `is_there` says whether what is wanted has been said.
    pub(super) fn ask_for(
        &mut self,
        role: Role,
        (asked, shown): (&[String], Seen),
        is_there: &dyn Fn(&Standing, &Stage) -> bool,
    ) -> Result<(), Halt> {
        let (mut blocks, mut last) = (asked.to_vec(), String::new());
        for _ in 0..=GUARD_CORRECTIONS_MAX {
            let before = self.stage.answers(role);
            // An executor may run tools in whatever turn it has.
            let said = match role {
                Role::Executor => {
                    self.turn(role, (blocks, shown), &mut |this: &mut Self| this.judge_intents())?
                }
                _ => self.turn(role, (blocks, shown), &mut nothing)?,
            };
            // Through a tool, or signed elsewhere.
            let standing = self.stage.scene.look()?;
            if is_there(&standing, &self.stage) || standing.is_closed || standing.run.state().is_end() {
                return Ok(());
            }
            let why = match Reply::find(&said) {
                Some(object) => match self.stage.take(role, &object) {
                    Ok(_) if is_there(&self.stage.scene.look()?, &self.stage) => return Ok(()),
                    Ok(_) => "it is not what was asked for".to_owned(),
                    Err(NotTaken::Unfit(why)) => why,
                    Err(NotTaken::Fault(fault)) => return Err(fault.into()),
                },
                None if self.stage.answers(role) > before => {
                    "what was submitted is not what was asked for".to_owned()
                }
                None => "there is no JSON object in it of the form that was asked for".to_owned(),
            };
            blocks = prompt::correct(asked, &why);
            last = why;
        }
        let agent = self.stage.agent(role);
        let why = format!(
            "the {role} {agent} gave no answer that fits, after {GUARD_CORRECTIONS_MAX} corrections: {last}"
        );
        Err(Halt::player(Watched::Gone, why))
    }

    fn propose(&mut self, standing: &Standing, instead_of: Option<&Token>) -> Result<(), Halt> {
        let rejected = standing.run.proposals().filter(|proposed| proposed.is_rejected).count();
        if rejected >= GUARD_PROPOSALS_MAX {
            return Err(Halt::Failed(format!("{rejected} proposals were rejected")));
        }
        let made = standing.run.proposals().count();
        let most = 1 + standing.run.policy().max_fallbacks as usize + GUARD_PROPOSALS_MAX;
        if made >= most {
            return Err(Halt::Failed(format!("{made} proposals were made, and none of them led to an end")));
        }
        let before = instead_of.and_then(|id| standing.run.proposal(id));
        let before =
            before.map(|proposed| (proposed, prompt::word(standing, &proposed.proposal.proposal_id)));
        let failed = standing.run.intents().filter(|intended| intended.has_failed);
        let failed = failed.map(|intended| {
            format!("{}: {}", intended.intent.tool_name, prompt::word(standing, &intended.intent.intent_id))
        });
        let failed: Vec<String> = failed.collect();
        let asked = prompt::propose(&self.task_text()?, &self.tools(), before, &failed);
        self.ask_for(Role::Planner, (&asked, standing.head), &|now, _| now.run.proposals().count() > made)
    }

    /// The names by which the executor's tools are known.
    fn tools(&self) -> Vec<String> {
        use crate::harness::Drive;
        let spec = self.crew.broker().agents().get(self.stage.agent(Role::Executor));
        match spec.map(|spec| &spec.drive) {
            Some(Drive::Llm { .. }) => {
                crate::tools::definitions().iter().map(|tool| tool.name.to_owned()).collect()
            }
            _ => [
                "read",
                "edit",
                "delete",
                "move",
                "search",
                "execute",
                "fetch",
                "read_file",
                "write_file",
                "run_command",
            ]
            .map(str::to_owned)
            .to_vec(),
        }
    }

    /// Nobody waits for it any more. What still runs ends with the executor's session, and says how; of what does not, nobody knows it.
    fn settle(&mut self, id: &Token) -> Result<(), Halt> {
        if self.players.contains_key(&Role::Executor) {
            self.dismiss(Role::Executor, || Ask::Finish);
            let until = std::time::Instant::now() + SETTLE;
            let is_open =
                |standing: &Standing| standing.run.intent(id).is_some_and(|known| known.ended.is_none());
            while is_open(&self.stage.scene.look()?) && std::time::Instant::now() < until {
                self.stage.scene.wait(GUARD_LOOK);
            }
            if !is_open(&self.stage.scene.look()?) {
                return Ok(());
            }
        }
        let failed = Some("it was cut short, and nobody knows how it ended".to_owned());
        Ok(settle(&self.stage.scene, &self.stage.team, id, &Gave { failed, ..Gave::default() })?)
    }

    fn execute(&mut self, standing: &Standing) -> Result<(), Halt> {
        let most = GUARD_TURNS_MAX + standing.run.policy().max_fallbacks as usize;
        if self.turns >= most {
            return Err(Halt::Failed(format!(
                "the executor was set to work {most} times, and is not through"
            )));
        }
        self.turns += 1;
        let Some(on) = standing.run.approved().map(|proposed| proposed.proposal.proposal_id.clone()) else {
            return Ok(());
        };
        // It has nothing more to do, unless it is asked for another one.
        self.dismiss(Role::Planner, || Ask::Finish);
        let executor = self.stage.agent(Role::Executor).clone();
        let takes_mcp = self.crew.broker().agents().get(&executor).is_some_and(AgentSpec::takes_mcp);
        let asked = prompt::execute(&self.task_text()?, standing, takes_mcp);
        let mut meanwhile = |this: &mut Self| this.judge_intents();
        match self.turn(Role::Executor, (asked, standing.head), &mut meanwhile) {
            Ok(_) => {}
            // Whoever reports and leaves has said what there is to say.
            Err(Halt::Player(failed))
                if matches!(failed.watched, Watched::Gone) && self.reported()?.is_some() =>
            {
                self.players.remove(&Role::Executor);
            }
            Err(halt) => return Err(halt),
        }
        let now = self.stage.scene.look()?;
        let is_on = |proposed: &Proposed| proposed.proposal.proposal_id == on;
        if !now.run.approved().is_some_and(is_on) {
            // Meanwhile something else was let through, or nothing any more. What was reported is not about that.
            if now.run.approved().is_some() && self.reported()?.is_some() {
                self.stage.scene.note_work(REPORTED, &on)?;
            }
            return Ok(());
        }
        if self.reported()?.is_none() {
            self.stage.scene.note_work(ENDED, &on)?;
        }
        if takes_mcp && self.reported()?.is_none() && now.run.claims().next().is_none() {
            self.turn(Role::Executor, (prompt::remind(), standing.head), &mut meanwhile)?;
        }
        self.expect_unblocked()
    }

    /// Reviews what waits while the executor is at work.
    fn judge_intents(&mut self) -> Result<(), Halt> {
        loop {
            let standing = self.stage.scene.look()?;
            if !is_at_work(&standing.run) {
                return Ok(());
            }
            let Next::ReviewIntent(id) = standing.run.next(self.known(&standing, true)?) else {
                return Ok(());
            };
            self.review_intent(&standing, &id)?;
            if self.told.contains(&id) {
                return Ok(());
            }
        }
    }

    /// What the executor has reported of the proposal that is worked on, in this attempt or before.
    pub(super) fn reported(&self) -> Result<Option<Reported>, Halt> {
        let approved = self.stage.scene.look()?.approved;
        let (task, _) = self.task()?;
        Ok(task.said.report.filter(|report| report.pos > approved))
    }

    /// Whoever reports that it is blocked ends the run.
    fn expect_unblocked(&self) -> Result<(), Halt> {
        match self.reported()?.filter(|report| report.outcome == Reports::Blocked) {
            None => Ok(()),
            Some(Reported { reason, .. }) => {
                let why = if reason.is_empty() { "it does not say why".to_owned() } else { reason };
                Err(Halt::Failed(format!("the executor is blocked: {why}")))
            }
        }
    }

    /// Verifies the run and signs what was verified; again where the run went on meanwhile.
    fn audit(&mut self, failed: Option<&str>) -> Result<(), Halt> {
        // Whoever worked may not say anything any more, and its session need not wait for the verdict.
        self.dismiss(Role::Executor, || Ask::Finish);
        for _ in 0..GUARD_AUDITS_MAX {
            self.stage.start_audit()?;
            let violation = self.stage.gate.violation();
            let mut verified = self.stage.scene.verify(failed.or(violation.as_deref()))?;
            // Of what has failed already nobody could say anything worse.
            if own_player(&self.stage.team, Role::Auditor).is_none() && verified.status != Verdict::Fail {
                self.hear_auditor(&mut verified)?;
            }
            match self.stage.sign_audit(&verified) {
                Ok(()) => return Ok(()),
                Err(Unsaid::HeadMoved) => {}
                Err(Unsaid::Closed) => return Ok(()),
                Err(unsaid) => return Err(unsaid.into()),
            }
        }
        Err(Halt::player(Watched::Gone, "the run went on again and again while it was verified".to_owned()))
    }

    /// An auditor that is an agent may be stricter than the verifier.
    fn hear_auditor(&mut self, verified: &mut Verified) -> Result<(), Halt> {
        let report = String::from_utf8_lossy(&verified.report).into_owned();
        let before = self.stage.settled(Role::Auditor);
        let is_there = move |_: &Standing, stage: &Stage| stage.settled(Role::Auditor) > before;
        self.ask_for(Role::Auditor, (&prompt::verdict(&report), verified.head), &is_there)?;
        if let Some((status, summary)) = self.stage.take_verdict()
            && status > verified.status
        {
            verified.status = status;
            if status == Verdict::Fail {
                verified.why = Some(summary);
            }
        }
        Ok(())
    }

    /// Ends the trace of a run that has ended.
    fn close(&self) -> Result<(), Halt> {
        let standing = self.stage.scene.look()?;
        if !standing.is_closed {
            self.stage.scene.close(standing.run.state().as_str())?;
        }
        Ok(())
    }

    /// The run has failed: what still runs is settled, the auditor says so, and it is closed.
    fn end_badly(&mut self, why: &str) -> Result<(), Halt> {
        self.has_failed = true;
        loop {
            let standing = self.stage.scene.look()?;
            if standing.is_closed {
                return Ok(());
            }
            match standing.run.next(Known::default()) {
                Next::Close => self.close()?,
                Next::Settle(id) => match self.settle(&id) {
                    // Nobody may sign for the executor any more, as where its key was revoked: the run ends all the same.
                    Err(Halt::Failed(_) | Halt::Player(_)) => self.audit(Some(why))?,
                    settled => settled?,
                },
                _ => self.audit(Some(why))?,
            }
        }
    }
}

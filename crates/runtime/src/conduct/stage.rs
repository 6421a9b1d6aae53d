//! What players say, made steps: through a tool of Baton's or as an object in their text, the same in both cases.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::Role;
use baton_core::event::{ArtifactRef, Seen};
use baton_core::guard::{Claim, Outcome, Proposal, Reply, Rule, Step, Team};
use baton_core::ids::{AgentName, Digest, SessionId, Token};
use baton_store::ArtifactStore as _;
use serde_json::{Map, Value};

use super::gate::Gate;
use super::scene::{Scene, Standing, Unsaid};
use crate::engine::Fault;

/// Where the parts of one run are played.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) scene: Arc<Scene>,
    pub(super) team: Team,
    pub(super) gate: Arc<Gate>,
    heard: Mutex<Heard>,
    /// Held while an answer is made a step: ids are given by what the run has, and two answers at once would be given the same.
    floor: Mutex<()>,
}

#[derive(Debug, Default)]
struct Heard {
    /// Who plays what.
    sessions: BTreeMap<SessionId, Role>,
    /// Up to where each of them was shown the run.
    shown: BTreeMap<Role, Seen>,
    /// What an auditor that is an agent says of the verification.
    verdict: Option<(Outcome, String)>,
    /// What whoever follows the run should be told.
    notes: Vec<String>,
    is_followed: bool,
    /// How many answers of each of them were taken, and how many of those settle what only an answer can: challenges, a claim that stands, a verdict.
    answers: BTreeMap<Role, u64>,
    settled: BTreeMap<Role, u64>,
}

/// Why an answer was not taken.
#[derive(Debug)]
pub(super) enum NotTaken {
    /// It does not fit, or is forbidden: what whoever said it is told.
    Unfit(String),
    Fault(Fault),
}

impl Stage {
    pub(super) fn new(scene: Arc<Scene>, team: Team) -> Arc<Stage> {
        let gate = Gate::new(scene.clone(), team.clone());
        Arc::new(Stage { scene, team, gate, heard: Mutex::default(), floor: Mutex::default() })
    }

    pub(super) fn agent(&self, role: Role) -> &AgentName {
        match role {
            Role::Planner => &self.team.planner,
            Role::Critic => &self.team.critic,
            Role::Auditor => &self.team.auditor,
            Role::Executor | Role::Operator | Role::System => &self.team.executor,
        }
    }

    pub(super) fn enter(&self, session: SessionId, role: Role) {
        self.heard().sessions.insert(session, role);
    }

    pub(super) fn role_of(&self, session: SessionId) -> Option<Role> {
        self.heard().sessions.get(&session).copied()
    }

    /// Notes what a player knows from now on.
    pub(super) fn show(&self, role: Role, head: Seen) {
        self.heard().shown.insert(role, head);
    }

    pub(super) fn answers(&self, role: Role) -> u64 {
        self.heard().answers.get(&role).copied().unwrap_or(0)
    }

    pub(super) fn settled(&self, role: Role) -> u64 {
        self.heard().settled.get(&role).copied().unwrap_or(0)
    }

    pub(super) fn note(&self, text: String) {
        self.heard().notes.push(text);
    }

    pub(super) fn take_notes(&self) -> Vec<String> {
        let mut heard = self.heard();
        heard.is_followed = true;
        std::mem::take(&mut heard.notes)
    }

    /// Whether somebody reads the notes.
    pub(super) fn is_followed(&self) -> bool {
        self.heard().is_followed
    }

    pub(super) fn take_verdict(&self) -> Option<(Outcome, String)> {
        self.heard().verdict.take()
    }

    /// Takes what a session submits through a tool.
    pub(super) fn submit(&self, session: SessionId, answer: &Map<String, Value>) -> Result<String, NotTaken> {
        let role = self
            .role_of(session)
            .ok_or_else(|| NotTaken::Unfit(format!("{session} plays no part in this run")))?;
        self.take(role, answer)
    }

    /// Takes an answer of a player: reads it, says it in the run, and tells what came of it.
    pub(super) fn take(&self, role: Role, answer: &Map<String, Value>) -> Result<String, NotTaken> {
        let taken = {
            let _floor = self.floor();
            self.take_unless_unfit(role, answer)
        };
        // What somebody means to do answers nothing that it was asked.
        if taken.is_ok() && !answer.contains_key("intent") {
            *self.heard().answers.entry(role).or_default() += 1;
            if ["challenges", "stands", "verdict"].iter().any(|kind| answer.contains_key(*kind)) {
                *self.heard().settled.entry(role).or_default() += 1;
            }
        }
        taken
    }

    fn take_unless_unfit(&self, role: Role, answer: &Map<String, Value>) -> Result<String, NotTaken> {
        let standing = self.scene.look().map_err(NotTaken::Fault)?;
        let reply = match Reply::read(answer, &standing.run) {
            Ok(reply) => reply,
            Err(error) => {
                let why = error.to_string();
                return Err(NotTaken::Unfit(why.strip_prefix("payload.").unwrap_or(&why).to_owned()));
            }
        };
        match (role, reply) {
            (Role::Planner, Reply::Proposal(proposal)) => {
                let step = Step::Proposed(revising(&standing, proposal));
                self.say(role, &standing, &step, &[]).map(|()| "the proposal is recorded".to_owned())
            }
            (Role::Critic, Reply::Review(review)) => self
                .say(role, &standing, &Step::Reviewed(review), &[])
                .map(|()| "the review is recorded".to_owned()),
            (Role::Critic, Reply::IntentReview(review)) => self
                .say(role, &standing, &Step::IntentReviewed(review), &[])
                .map(|()| "the review is recorded".to_owned()),
            (Role::Critic, Reply::Challenges(challenges)) => {
                // One that stands already is not said again, should the answer be given anew.
                let is_new =
                    |id: &Token| standing.run.claim(id).is_none_or(|known| known.open_challenges == 0);
                let count = challenges.len();
                let mut steps = Vec::new();
                for challenge in challenges.into_iter().filter(|challenge| is_new(&challenge.claim_id)) {
                    self.expect_stored(role, "claim_challenged", &challenge.evidence)?;
                    let cited = challenge.evidence.iter().map(|hash| self.scene.cite(&standing, hash));
                    let cited = cited.collect();
                    steps.push((Step::Challenged(challenge), cited));
                }
                self.say_all(role, &standing, &steps).map(|()| format!("{count} recorded"))
            }
            (Role::Executor, Reply::Intent(declared)) => {
                self.gate.declare(&declared).map_err(NotTaken::Unfit)
            }
            (Role::Executor, Reply::Claims(claims)) => {
                let is_given = |i: usize| answer["claims"][i].get("evidence").is_some();
                // The same once more, should the answer be given anew; what revises something is never that.
                let is_new = |claim: &Claim| {
                    let is_same = |known: &Claim| {
                        (&known.claim_text, &known.executions, &known.evidence)
                            == (&claim.claim_text, &claim.executions, &claim.evidence)
                    };
                    let mut standing = standing.run.claims().filter(|known| !known.is_revised);
                    claim.revises.is_some() || !standing.any(|known| is_same(&known.claim))
                };
                let mut steps = Vec::new();
                for (i, claim) in claims.into_iter().enumerate() {
                    let (claim, cited) = self.claimed(&standing, claim, is_given(i))?;
                    if is_new(&claim) {
                        steps.push((Step::Claimed(claim), cited));
                    }
                }
                self.say_all(role, &standing, &steps).map(|()| "recorded".to_owned())
            }
            (Role::Executor, Reply::Stands(why)) => Ok(format!("it stands, disputed: {why}")),
            (Role::Auditor, Reply::Verdict { status, summary }) => {
                self.heard().verdict = Some((status, summary));
                Ok("taken".to_owned())
            }
            (role, _) => {
                let expected = match role {
                    Role::Planner => "proposal",
                    Role::Critic => "review or challenges",
                    Role::Auditor => "verdict",
                    _ => "intent, claims or stands",
                };
                let why = format!("answer: expected {expected} from the {role}, got something else");
                self.scene.note_refused(
                    self.agent(role),
                    "an answer of another role",
                    Some(Rule::RoleTable),
                    &why,
                );
                Err(NotTaken::Unfit(why))
            }
        }
    }

    /// A claim as it is issued. Where nothing is said of its evidence, that is what the executions left that it rests on.
    fn claimed(
        &self,
        standing: &Standing,
        mut claim: Claim,
        is_given: bool,
    ) -> Result<(Claim, Vec<ArtifactRef>), NotTaken> {
        if !is_given {
            if claim.executions.is_empty() {
                claim.executions = super::done(&standing.run);
            }
            claim.evidence = super::evidence_of(standing, &claim.executions);
        }
        self.expect_stored(Role::Executor, "claim_issued", &claim.evidence)?;
        let cited = claim.evidence.iter().map(|hash| self.scene.cite(standing, hash)).collect();
        Ok((claim, cited))
    }

    /// Has an answer corrected that rests on something that is not there. No rule: the append counts references alone, and who hands in such a claim
    /// without being asked (`trace append`) has it fail in the audit.
    fn expect_stored(&self, role: Role, what: &str, evidence: &[Digest]) -> Result<(), NotTaken> {
        let artifacts = &self.scene.engine.ground().artifacts;
        for hash in evidence {
            if artifacts.length(hash).ok().flatten().is_none() {
                let why = format!("evidence: expected artifacts that are stored, got {hash}");
                self.scene.note_refused(self.agent(role), what, None, &why);
                return Err(NotTaken::Unfit(why));
            }
        }
        Ok(())
    }

    /// Says a step for a player, who knows what it was shown. An executor knows what Baton does for it.
    pub(super) fn say(
        &self,
        role: Role,
        standing: &Standing,
        step: &Step,
        artifacts: &[ArtifactRef],
    ) -> Result<(), NotTaken> {
        self.say_all(role, standing, &[(step.clone(), artifacts.to_vec())])
    }

    /// The same for several: of an answer all stands, or nothing.
    fn say_all(
        &self,
        role: Role,
        standing: &Standing,
        steps: &[(Step, Vec<ArtifactRef>)],
    ) -> Result<(), NotTaken> {
        let Some((first, _)) = steps.first() else { return Ok(()) };
        let name = first.event_type();
        let shown = self.heard().shown.get(&role).copied();
        let seen = shown.filter(|_| role != Role::Executor).unwrap_or(standing.head);
        let agent = self.agent(role);
        let said = steps.iter().map(|(step, cited)| (step.to_payload(), cited.clone())).collect();
        match self.scene.say_all(&self.team, (agent, role), said, seen) {
            Ok(()) => Ok(()),
            Err(Unsaid::Forbidden { rule, why }) => {
                self.scene.note_refused(agent, name, rule, &why);
                Err(NotTaken::Unfit(why))
            }
            Err(Unsaid::NoKey(why)) => {
                self.scene.note_refused(agent, name, None, &why);
                Err(NotTaken::Unfit(why))
            }
            Err(Unsaid::HeadMoved) => {
                Err(NotTaken::Unfit("the run went on meanwhile: answer anew".to_owned()))
            }
            Err(Unsaid::KeyElsewhere) => {
                let id = self.scene.trace;
                Err(NotTaken::Unfit(format!(
                    "your key is not on this machine: sign the {name} and hand it in with `baton trace append {id}`"
                )))
            }
            Err(Unsaid::Closed) => Err(NotTaken::Unfit("the run has ended".to_owned())),
            Err(Unsaid::Fault(fault)) => Err(NotTaken::Fault(fault)),
        }
    }

    /// Lets nobody else's answer in between; nothing waits while it is held but for the ledger.
    pub(super) fn floor(&self) -> MutexGuard<'_, ()> {
        self.floor.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn heard(&self) -> MutexGuard<'_, Heard> {
        self.heard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As long as nothing is approved, or nothing any more, a proposal takes the place of the one before it.
fn revising(standing: &Standing, proposal: Proposal) -> Proposal {
    let last = standing.run.proposals().max_by_key(|proposed| proposed.seq);
    let before = last.filter(|_| standing.run.approved().is_none() && proposal.revises.is_none());
    match before {
        Some(before) => Proposal { revises: Some(before.proposal.proposal_id.clone()), ..proposal },
        None => proposal,
    }
}

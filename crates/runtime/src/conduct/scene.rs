//! One guarded run in its trace: how it stands, and how something is said in it. Everybody who plays a part in this process speaks through here.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::event::{Actor, ArtifactRef, Event, NOTE, Payload, Seen};
use baton_core::guard::{Rule, Run, Step, Team};
use baton_core::ids::{AgentName, Digest, Token, TraceId};
use baton_core::moment::Ids;
use baton_core::roles::closes;
use baton_core::{Role, Timestamp};
use baton_ledger::body::Body;
use baton_ledger::canonical;
use baton_ledger::guard::{Heard, Speaker};
use baton_ledger::record::Line;
use baton_ledger::seal::{Checked, Proposal, Refusal};
use baton_store::tasks::fold::LINES_AT_ONCE;
use baton_store::{AppendError, ArtifactStore as _, ReadError, registry};
use serde_json::{Map, Value};

use super::asks::let_stand;
use super::cast::{Guarding, NoKey};
use crate::engine::{Engine, Fault};
use crate::limits::{GUARD_REFUSALS_MAX, GUARD_SAYINGS_MAX};
use crate::session::Bound;

/// A run and the trace that it is told in.
#[derive(Debug)]
pub(super) struct Scene {
    pub(super) engine: Arc<Engine>,
    pub(super) guarding: Guarding,
    pub(super) bound: Bound,
    pub(super) trace: TraceId,
    folded: Mutex<Folded>,
    /// How often somebody was refused something, in this attempt.
    refused: AtomicUsize,
}

/// What its events have told so far.
#[derive(Debug, Default)]
struct Folded {
    run: Option<Arc<Run>>,
    head: Option<Seen>,
    began: Option<Timestamp>,
    approved: u64,
    /// The proposal that the executor was last said to be through with.
    through: Option<Token>,
    is_closed: bool,
    aside: Arc<Aside>,
}

/// What the rules do not need, and whoever plays a part does.
#[derive(Debug, Clone, Default)]
pub(super) struct Aside {
    /// What was last said of a proposal, an intent or a claim by whoever judged it.
    pub(super) words: BTreeMap<Token, String>,
    /// What each execution left.
    pub(super) outputs: BTreeMap<Token, Vec<ArtifactRef>>,
    /// Why the run did not end well, as its auditor or whoever aborted it says.
    pub(super) why: Option<String>,
    /// The claims that a person lets stand who is the critic.
    pub(super) stands: BTreeSet<Token>,
    /// Everything that was cited.
    pub(super) artifacts: BTreeMap<Digest, ArtifactRef>,
}

/// How a run stands.
#[derive(Debug, Clone)]
pub(super) struct Standing {
    pub(super) run: Arc<Run>,
    pub(super) head: Seen,
    pub(super) began: Timestamp,
    /// Where in the ledger a proposal was last let through; nothing that was reported before is about it.
    pub(super) approved: u64,
    through: Option<Token>,
    pub(super) is_closed: bool,
    pub(super) aside: Arc<Aside>,
}

impl Standing {
    /// Whether the executor has done what was last let through.
    pub(super) fn is_through(&self) -> bool {
        let approved = self.run.approved().map(|proposed| &proposed.proposal.proposal_id);
        approved.is_some() && self.through.as_ref() == approved
    }
}

/// Why something was not said.
#[derive(Debug)]
pub(super) enum Unsaid {
    /// A rule forbids it.
    Forbidden {
        rule: Option<Rule>,
        why: String,
    },
    /// Whoever closes something did not know everything: to be said again.
    HeadMoved,
    /// Whoever should say it holds the key elsewhere.
    KeyElsewhere,
    /// Whoever should say it has no key for that.
    NoKey(String),
    /// The trace has ended.
    Closed,
    Fault(Fault),
}

impl<E: Into<Fault>> From<E> for Unsaid {
    fn from(error: E) -> Self {
        Unsaid::Fault(error.into())
    }
}

impl Scene {
    pub(super) fn new(engine: Arc<Engine>, guarding: Guarding, bound: Bound, trace: TraceId) -> Scene {
        Scene { engine, guarding, bound, trace, folded: Mutex::default(), refused: AtomicUsize::new(0) }
    }

    /// The run as it stands now.
    pub(super) fn look(&self) -> Result<Standing, Fault> {
        let mut folded = self.folded.lock().unwrap_or_else(PoisonError::into_inner);
        let journal = &self.engine.ground().journal;
        loop {
            let next = folded.head.map_or(1, |head| head.seq + 1);
            let lines = journal.read_trace(self.trace, next, LINES_AT_ONCE)?;
            for stored in &lines {
                let damaged = |why: String| ReadError::Damaged { pos: stored.pos, why };
                let line = Line::parse(stored.text.as_bytes()).map_err(|flaw| damaged(flaw.to_string()))?;
                folded.take(&line);
            }
            if lines.len() < LINES_AT_ONCE {
                break;
            }
        }
        let missing = || ReadError::Damaged { pos: 0, why: format!("{} begins no guarded run", self.trace) };
        let (Some(run), Some(head), Some(began)) = (folded.run.clone(), folded.head, folded.began) else {
            return Err(missing().into());
        };
        let Folded { approved, is_closed, .. } = *folded;
        let through = folded.through.clone();
        Ok(Standing { run, head, began, approved, through, is_closed, aside: folded.aside.clone() })
    }

    /// Waits until something was appended, at most for so long.
    pub(super) fn wait(&self, time: Duration) {
        let journal = &self.engine.ground().journal;
        journal.wait_beyond(journal.size(), time);
    }

    /// Says something in somebody's name, signed with that one's key.
    pub(super) fn say(
        &self,
        team: &Team,
        by: (&AgentName, Role),
        step: &Step,
        artifacts: &[ArtifactRef],
        seen: Seen,
    ) -> Result<(), Unsaid> {
        self.say_all(team, by, vec![(step.to_payload(), artifacts.to_vec())], seen)
    }

    /// Says all of it or, where a rule forbids any of it, nothing.
    pub(super) fn say_all(
        &self,
        team: &Team,
        (agent, role): (&AgentName, Role),
        mut said: Vec<(Payload, Vec<ArtifactRef>)>,
        seen: Seen,
    ) -> Result<(), Unsaid> {
        for (payload, _) in &mut said {
            if let Payload::Other { fields, .. } = payload {
                fields.values_mut().for_each(canonical::settle);
            }
        }
        let is_closing = said.iter().any(|(payload, _)| closes(payload.event_type()));
        let ground = self.engine.ground();
        let mut tries = 0;
        loop {
            let signer = self.guarding.signer(&*ground.journal, &ground.ledger_key, team, (agent, role));
            let signer = signer.map_err(|why| match why {
                NoKey::Elsewhere => Unsaid::KeyElsewhere,
                NoKey::NotFor(why) => Unsaid::NoKey(why),
                NoKey::Fault(fault) => Unsaid::Fault(fault),
            })?;
            let moment = ground.clock.moment();
            let mut ids = Ids::new(moment);
            let decided_on = is_closing.then_some((self.trace, seen.seq)).into_iter().collect();
            let mut proposal = Proposal { events: Vec::new(), decided_on };
            let (journal, key) = (&*ground.journal, &ground.ledger_key);
            registry::preface(journal, key, self.trace, &signer.registered, &mut proposal)?;
            for (payload, artifacts) in &said {
                let event = Event {
                    trace: self.trace,
                    id: ids.event(),
                    at: moment.now,
                    actor: Actor { agent: agent.clone(), role, key: None },
                    task: Some(self.bound.task.to_token()),
                    run: self.bound.run.to_string().parse().ok(),
                    session: None,
                    fence: Some(self.bound.fence),
                    payload: payload.clone(),
                    artifacts: artifacts.clone(),
                    seen: Some(seen),
                };
                let body = Body::signed(event, &signer.secret)
                    .map_err(|error| Unsaid::Forbidden { rule: None, why: error.to_string() })?;
                proposal.events.push(Checked::just_signed(body, &signer.secret));
            }
            match journal.append(proposal) {
                Ok(_) => return Ok(()),
                // A key was bound or rotated in the same moment.
                Err(AppendError::Refused(Refusal::HeadMoved { trace, .. }))
                    if trace == TraceId::Ledger && tries < GUARD_SAYINGS_MAX =>
                {
                    tries += 1;
                }
                Err(AppendError::Refused(Refusal::HeadMoved { .. })) => return Err(Unsaid::HeadMoved),
                Err(AppendError::Refused(Refusal::Closed(_))) => return Err(Unsaid::Closed),
                Err(AppendError::Refused(Refusal::Guard(breach))) => {
                    let why = format!("{breach}. {}", breach.rule.remedy());
                    return Err(Unsaid::Forbidden { rule: Some(breach.rule), why });
                }
                Err(AppendError::Refused(
                    refusal @ (Refusal::Key(_) | Refusal::Form(_) | Refusal::Seen { .. }),
                )) => {
                    return Err(Unsaid::Forbidden { rule: None, why: refusal.to_string() });
                }
                Err(error) => return Err(Unsaid::Fault(error.into())),
            }
        }
    }

    /// Stores bytes that an event will cite.
    pub(super) fn store(&self, bytes: &[u8], media_type: &str, name: &str) -> Result<ArtifactRef, Fault> {
        self.engine.store_bytes(bytes, media_type, name)
    }

    /// An artifact by its hash, as it was cited before or as it is stored. Of one that is neither, nothing is known but its name.
    pub(super) fn cite(&self, standing: &Standing, hash: &Digest) -> ArtifactRef {
        if let Some(known) = standing.aside.artifacts.get(hash) {
            return known.clone();
        }
        let bytes = self.engine.ground().artifacts.length(hash).ok().flatten().unwrap_or(0);
        let (media_type, name) = ("application/octet-stream".to_owned(), "evidence".to_owned());
        ArtifactRef { sha256: *hash, bytes, media_type, name }
    }

    /// Records that somebody was kept from something. What cannot be recorded was not done all the same.
    pub(super) fn note_refused(&self, agent: &AgentName, what: &str, rule: Option<Rule>, why: &str) {
        let rule = rule.map(Rule::as_str);
        if self.refused.fetch_add(1, Ordering::Relaxed) >= GUARD_REFUSALS_MAX {
            // It ends the run, and is recorded often enough.
            return;
        }
        let _ = self.engine.refuse_guarded(&self.bound.task, agent, what, rule, why);
    }
}

impl Scene {
    pub(super) fn refusals(&self) -> usize {
        self.refused.load(Ordering::Relaxed)
    }
}

impl Folded {
    fn take(&mut self, line: &Line<'_>) {
        let heard = Heard::of_line(line);
        heard.apply(&mut self.run, &Speaker::of_line(line));
        self.head = Some(Seen { seq: line.seq, hash: line.hash });
        let approved = self.run.as_ref().and_then(|run| run.approved()?.approved);
        if approved == Some(line.seq) {
            self.approved = line.pos;
        }
        match noted(line) {
            Some((true, on)) => self.through = Some(on),
            Some((false, _)) => self.approved = line.pos,
            None => {}
        }
        self.is_closed |= line.event_type == "trace.closed";
        if line.event_type == "session_initialized" {
            self.began.get_or_insert(line.at);
        }
        let aside = Arc::make_mut(&mut self.aside);
        for artifact in &line.artifacts {
            let known = ArtifactRef {
                sha256: artifact.sha256,
                bytes: artifact.bytes,
                media_type: artifact.media_type.unescaped(),
                name: artifact.name.unescaped(),
            };
            aside.artifacts.insert(artifact.sha256, known);
        }
        if line.event_type == "verification_run_completed" {
            let said = line.to_payload().ok().map(|payload| payload.fields().into_owned());
            aside.why = said.and_then(|fields| Some(fields.get("why")?.as_str()?.to_owned()));
        }
        aside.stands.extend(let_stand(line));
        let Some(Ok(step)) = heard.step.as_deref() else { return };
        match step {
            Step::Reviewed(review) => {
                drop(aside.words.insert(review.proposal_id.clone(), review.rationale.clone()));
            }
            Step::IntentReviewed(review) => {
                drop(aside.words.insert(review.intent_id.clone(), review.rationale.clone()));
            }
            Step::Challenged(challenge) => {
                drop(aside.words.insert(challenge.claim_id.clone(), challenge.reason.clone()));
            }
            Step::Aborted(abort) => aside.why = Some(abort.reason.clone()),
            // Whoever sets a judgement of it aside has said what there is to say.
            Step::Overridden(over) => drop(aside.stands.insert(over.target.clone())),
            Step::Completed(ended) | Step::Failed(ended) => {
                let cited = ended.artifacts.iter().filter_map(|hash| aside.artifacts.get(hash).cloned());
                let cited = cited.collect();
                if let Some(failure) = &ended.failure {
                    aside.words.insert(ended.intent_id.clone(), failure.clone());
                }
                aside.outputs.insert(ended.intent_id.clone(), cited);
            }
            _ => {}
        }
    }
}

/// How Baton notes that the executor is through with a proposal.
pub(super) const ENDED: &str = "ended";

/// How it notes that what was reported so far is about a proposal that is not the one to be worked on any more.
pub(super) const REPORTED: &str = "reported";

/// What Baton notes of the work for a proposal.
pub(super) fn work(how: &str, on: &Token) -> Map<String, Value> {
    Map::from_iter([("work".to_owned(), how.into()), ("proposal_id".to_owned(), on.as_str().into())])
}

/// Whether a line is such a note: whether the work has ended, and of which proposal.
fn noted(line: &Line<'_>) -> Option<(bool, Token)> {
    let payload = line.to_payload().ok().filter(|_| line.event_type == NOTE && line.role == Role::System)?;
    let fields = payload.fields();
    let on = fields.get("proposal_id")?.as_str()?.parse().ok()?;
    Some((fields.get("work")?.as_str()? == ENDED, on))
}

/// The bytes by which an input is known: the same for the same input, however it was written.
pub(super) fn normalized(input: &Value) -> Vec<u8> {
    let mut input = input.clone();
    canonical::settle(&mut input);
    canonical::to_bytes(&input).unwrap_or_else(|_| input.to_string().into_bytes())
}

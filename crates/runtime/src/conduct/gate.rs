//! The gate between an executor and its tools: an intent is signed, reviewed where it must be, and begun in the ledger before the tool runs.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::event::ArtifactRef;
use baton_core::guard::{Answer, Declared, Execution, Intended, Intent, Rule, Run, State, Step, Team};
use baton_core::ids::{AgentName, Digest, Token};
use baton_core::{Role, limits};

use super::onlooker::{is_own_tool, name_of};
use super::scene::{Scene, Unsaid, normalized};
use crate::engine::Fault;
use crate::limits::{GUARD_LOOK, GUARD_REFUSALS_MAX};
use crate::session::{Entry, Gave, ToolGate, Wish};

/// What an executor's tools go through.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) scene: Arc<Scene>,
    pub(super) team: Team,
    /// What the agent did without being allowed to.
    violation: Mutex<Option<String>>,
    /// Why nothing of what it does can be recorded: the machine's fault, and not its own.
    fault: Mutex<Option<String>>,
    /// Held by whoever signs an intent, so that two calls do not take the same name; and the intents that calls wait with.
    signing: Mutex<BTreeSet<Token>>,
    /// Calls that wait for a review.
    waiting: AtomicUsize,
}

impl Gate {
    pub(super) fn new(scene: Arc<Scene>, team: Team) -> Arc<Gate> {
        let (violation, fault) = (Mutex::default(), Mutex::default());
        let (signing, waiting) = (Mutex::default(), AtomicUsize::new(0));
        Arc::new(Gate { scene, team, violation, fault, signing, waiting })
    }

    /// Why the run cannot go on: what the agent did without being allowed to, or that it tries again and again.
    pub(super) fn violation(&self) -> Option<String> {
        let violation = self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let refused = self.scene.refusals();
        let insists = || format!("{refused} attempts were refused, which is enough");
        violation.or_else(|| (refused >= GUARD_REFUSALS_MAX).then(insists))
    }

    /// Why the attempt cannot go on, where nobody is to blame for it: nothing can be recorded.
    pub(super) fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn executor(&self) -> (&AgentName, Role) {
        (&self.team.executor, Role::Executor)
    }

    /// Signs an intent for a tool, or takes the one that was declared for it. Gives its id and the stored input.
    fn intend(&self, wish: &Wish, declared: Option<&Declared>) -> Result<(Token, ArtifactRef), Held> {
        let bytes = normalized(&wish.whole());
        let input = self.scene.store(&bytes, "application/json", "input.json")?;
        let mut waiting = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = self.scene.look()?;
        let run = &standing.run;
        let tool = name_of(run.policy(), wish);
        let approved = run.approved();
        if declared.is_none()
            && let Some(known) = run.intents().find(|known| {
                let is_current =
                    approved.is_some_and(|now| now.proposal.proposal_id == known.intent.proposal_id);
                is_current
                    && is_declared(known, &tool, &input.sha256)
                    && !waiting.contains(&known.intent.intent_id)
            })
        {
            let id = known.intent.intent_id.clone();
            waiting.insert(id.clone());
            return Ok((id, input));
        }
        let Some(proposed) = approved else {
            return Err(self.held(
                &format!("intent to run {tool}"),
                Rule::ProposalApproved,
                "no proposal is approved",
            ));
        };
        let class = run.policy().class_of(&tool);
        let why = declared.map_or(wish.why.as_str(), |declared| declared.justification.as_str());
        let why = if why.trim().is_empty() { "the executor calls it" } else { why };
        let intent = Intent {
            intent_id: run.fresh("i", 0),
            proposal_id: proposed.proposal.proposal_id.clone(),
            tool_name: tool.clone(),
            normalized_input_hash: input.sha256,
            risk_class: declared
                .and_then(|declared| declared.risk_class)
                .map_or(class, |said| said.max(class)),
            justification: why.chars().take(limits::GUARD_TEXT_CHARS_MAX).collect(),
            retry_of: declared
                .and_then(|declared| declared.retry_of.clone())
                .or_else(|| taken_back(run, &tool)),
        };
        let id = intent.intent_id.clone();
        let (step, cited) = (Step::Intended(intent), std::slice::from_ref(&input));
        let said = self.scene.say(&self.team, self.executor(), &step, cited, standing.head);
        said.map_err(|unsaid| self.unsaid(&format!("intent to run {tool}"), unsaid))?;
        if declared.is_none() {
            waiting.insert(id.clone());
        }
        Ok((id, input))
    }

    /// Signs an intent that the executor declares before it calls the tool.
    pub(super) fn declare(&self, declared: &Declared) -> Result<String, String> {
        let wish = Wish {
            tool: declared.tool_name.clone(),
            input: declared.input.clone(),
            why: declared.justification.clone(),
            ..Wish::default()
        };
        let (id, _) = self.intend(&wish, Some(declared)).map_err(|held| held.why)?;
        let standing = self.scene.look().map_err(|error| error.to_string())?;
        let waits = standing.run.intent(&id).is_some_and(|intended| intended.is_risky);
        let then = match waits {
            true => "it waits for a review, which the call itself waits for too",
            false => "call the tool now",
        };
        Ok(format!("intent {id} is signed; {then}"))
    }

    /// Waits for the review of an intent that needs one.
    fn wait_for_review(&self, id: &Token, stop: &AtomicBool) -> Result<(), Held> {
        loop {
            let standing = self.scene.look()?;
            let Some(intended) = standing.run.intent(id) else {
                return Err(Held::by(format!("{id} is gone")));
            };
            let what = || format!("{} ({id})", intended.intent.tool_name);
            match intended.answer {
                Some((Answer::Approved, _)) => return Ok(()),
                Some((Answer::Blocked, _)) => {
                    let why = standing.aside.words.get(id).cloned().unwrap_or_default();
                    self.scene.note_refused(&self.team.executor, &what(), Some(Rule::IntentBlocked), &why);
                    return Err(Held::by(format!(
                        "{id} was blocked: {why}. What was blocked stays blocked: do it in another way, or not at all"
                    )));
                }
                None if !intended.is_risky => return Ok(()),
                None => {}
            }
            if standing.run.state().is_end() || standing.run.is_final() || standing.is_closed {
                return Err(self.held(&what(), Rule::AfterFinal, "the run has ended"));
            }
            if stop.load(Ordering::Relaxed) {
                return Err(Held::by(format!("nobody waits for the review of {id} any more")));
            }
            self.scene.wait(GUARD_LOOK);
        }
    }

    fn is_own(&self, wish: &Wish) -> bool {
        self.scene.look().is_ok_and(|standing| is_own_tool(standing.run.policy(), wish))
    }

    /// Whether a tool waits for a review, as far as its name and its kind tell.
    fn needs_review(&self, wish: &Wish) -> bool {
        let Ok(standing) = self.scene.look() else { return true };
        let (run, policy) = (&standing.run, standing.run.policy());
        let tool = name_of(policy, wish);
        let is_foreseen =
            run.approved().is_some_and(|proposed| proposed.proposal.required_tools.contains(&tool));
        policy.needs_review(&tool, policy.class_of(&tool), is_foreseen)
    }

    /// Records that a tool begins. After this it may run, and not before.
    fn begin(&self, id: &Token, tool: &str, input: ArtifactRef) -> Result<Entry, Held> {
        let standing = self.scene.look()?;
        let execution = Execution {
            intent_id: id.clone(),
            artifacts: vec![input.sha256],
            exit_status: None,
            failure: None,
        };
        let step = Step::Started(execution);
        match self.scene.say(&self.team, self.executor(), &step, &[input], standing.head) {
            Ok(()) => Ok(Entry(Some(id.clone()))),
            Err(unsaid) => Err(self.unsaid(&format!("running {tool} ({id})"), unsaid)),
        }
    }

    /// What a rule forbids; recorded.
    fn held(&self, what: &str, rule: Rule, why: &str) -> Held {
        self.scene.note_refused(&self.team.executor, what, Some(rule), why);
        Held::by(why.to_owned())
    }

    /// What was not let through, and is recorded where a rule forbids it.
    fn unsaid(&self, what: &str, unsaid: Unsaid) -> Held {
        let (why, rule, cause) = match unsaid {
            Unsaid::Forbidden { rule, why } => (why, rule, Cause::Forbidden),
            Unsaid::HeadMoved => ("the run went on meanwhile".to_owned(), None, Cause::Late),
            Unsaid::KeyElsewhere => {
                ("the executor's key is not on this machine".to_owned(), None, Cause::Fault)
            }
            Unsaid::NoKey(why) => (why, None, Cause::Fault),
            Unsaid::Closed => ("the run has ended".to_owned(), Some(Rule::AfterAudit), Cause::Forbidden),
            Unsaid::Fault(fault) => return fault.into(),
        };
        if cause == Cause::Forbidden {
            self.scene.note_refused(&self.team.executor, what, rule, &why);
        }
        Held { why, cause }
    }

    /// What whoever calls a tool is told that does not run. Where nothing can be recorded, the attempt ends.
    fn answer(&self, held: Held) -> String {
        if held.cause == Cause::Fault {
            let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
            fault.get_or_insert_with(|| format!("what the executor does: {}", held.why));
        }
        held.why
    }

    fn forget(&self, id: &Token) {
        self.signing.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// Why a tool does not run.
#[derive(Debug)]
struct Held {
    why: String,
    cause: Cause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// It may not.
    Forbidden,
    /// The run went on meanwhile.
    Late,
    /// It cannot be recorded: no fault of whoever runs the tool.
    Fault,
}

impl Held {
    fn by(why: String) -> Held {
        Held { why, cause: Cause::Forbidden }
    }
}

impl From<Fault> for Held {
    fn from(fault: Fault) -> Self {
        Held { why: format!("it cannot be recorded: {fault}"), cause: Cause::Fault }
    }
}

impl ToolGate for Gate {
    fn enter(&self, wish: &Wish, stop: &AtomicBool) -> Result<Entry, String> {
        if self.is_own(wish) {
            return Ok(Entry(None));
        }
        let (id, input) = self.intend(wish, None).map_err(|held| self.answer(held))?;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let entered = self.wait_for_review(&id, stop).and_then(|()| self.begin(&id, &wish.tool, input));
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        self.forget(&id);
        entered.map_err(|held| self.answer(held))
    }

    fn observe(&self, wish: &Wish, has_ended: bool) -> Result<Option<Entry>, String> {
        if self.is_own(wish) {
            return Ok(Some(Entry(None)));
        }
        if !has_ended && self.needs_review(wish) {
            return Ok(None);
        }
        let begun = self.intend(wish, None).and_then(|(id, input)| {
            let begun = self.begin(&id, &wish.tool, input);
            self.forget(&id);
            begun
        });
        if let Err(Held { why, cause: Cause::Forbidden }) = &begun {
            let text = format!("{} ran {} without being allowed to: {why}", self.team.executor, wish.tool);
            self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        }
        begun.map(Some).map_err(|held| self.answer(held))
    }

    fn is_worse(&self, entered: &Wish, now: &Wish) -> bool {
        // What cannot be told is not let be.
        let Ok(standing) = self.scene.look() else { return true };
        let policy = standing.run.policy();
        let (before, after) = (name_of(policy, entered), name_of(policy, now));
        let is_named = |name: &String| *name == entered.tool || entered.others.contains(name);
        let is_new = |name: &&String| policy.knows(name) && policy.changes_something(name) && !is_named(name);
        let is_worse = policy.class_of(&after) > policy.class_of(&before)
            || now.others.iter().chain([&now.tool]).any(|name| is_new(&name))
            || is_own_tool(policy, entered) && !is_own_tool(policy, now);
        // What only looks may tell bit by bit what it looks at.
        let is_other =
            policy.changes_something(&before) && !is_own_tool(policy, entered) && !entered.covers(now);
        if is_worse || is_other {
            let text = match is_worse {
                true => format!("{} was let run {before}, and ran {after}", self.team.executor),
                false => format!("{} was let run {before}, and gave it something else", self.team.executor),
            };
            self.scene.note_refused(&self.team.executor, &after, Some(Rule::SameInput), &text);
            self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        }
        is_worse || is_other
    }

    fn missed(&self, wish: &Wish) {
        if !self.is_own(wish) && self.needs_review(wish) {
            let why = "it says that this ran and failed, and it never asked for it";
            self.scene.note_refused(&self.team.executor, &wish.tool, Some(Rule::IntentFirst), why);
        }
    }

    fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) > 0
    }

    fn leave(&self, entry: Entry, gave: &Gave) {
        let Entry(Some(id)) = entry else { return };
        // What is not recorded is settled by whoever goes on with the run.
        let _ = settle(&self.scene, &self.team, &id, gave);
    }
}

/// Records how a tool ended, with what it left.
pub(super) fn settle(scene: &Scene, team: &Team, id: &Token, gave: &Gave) -> Result<(), Unsaid> {
    let standing = scene.look()?;
    let output = match gave.whole {
        Some((sha256, bytes)) => {
            let (media_type, name) = ("text/plain".to_owned(), "output.txt".to_owned());
            ArtifactRef { sha256, bytes, media_type, name }
        }
        None => scene.store(gave.output.as_bytes(), "text/plain", "output.txt")?,
    };
    let execution = Execution {
        intent_id: id.clone(),
        artifacts: vec![output.sha256],
        // Of what an agent ran by itself nothing is known but what it says of it.
        exit_status: gave
            .failed
            .is_none()
            .then(|| gave.exit_code.map_or(i64::from(gave.is_error), i64::from)),
        failure: gave.failed.clone(),
    };
    let step = if gave.failed.is_some() { Step::Failed(execution) } else { Step::Completed(execution) };
    match scene.say(team, (&team.executor, Role::Executor), &step, &[output], standing.head) {
        // Somebody else has said how it ended.
        Err(Unsaid::Forbidden { rule: Some(Rule::RunOnce), .. }) => Ok(()),
        said => said,
    }
}

/// An intent that was signed for exactly this, and waits to be run.
fn is_declared(known: &Intended, tool: &str, input: &Digest) -> bool {
    let is_blocked = matches!(known.answer, Some((Answer::Blocked, _)));
    known.intent.tool_name == tool
        && known.intent.normalized_input_hash == *input
        && known.started.is_none()
        && !known.is_retried
        && !is_blocked
}

/// The intent before, where it was for the same tool, was blocked or failed, and nothing took its place: what follows at once is meant to.
fn taken_back(run: &Run, tool: &str) -> Option<Token> {
    let before = run.intents().max_by_key(|known| known.seq)?;
    let is_blocked = matches!(before.answer, Some((Answer::Blocked, _)));
    let is_over = (is_blocked || before.has_failed) && !before.is_retried;
    (is_over && before.intent.tool_name == tool).then(|| before.intent.intent_id.clone())
}

/// Whether work can still be begun in a run.
pub(super) fn is_at_work(run: &Run) -> bool {
    (State::Executing..State::Completed).contains(&run.state()) && !run.is_final()
}

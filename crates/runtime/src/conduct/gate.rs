//! The gate between an executor and its tools: an intent is signed, reviewed where it must be, and begun in the ledger before the tool runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::event::ArtifactRef;
use baton_core::guard::{Answer, Declared, Execution, Intended, Intent, Run, State, Step, Team};
use baton_core::ids::{AgentName, Digest, Token};
use baton_core::{Role, limits};

use super::scene::{Scene, Standing, Unsaid, normalized};
use crate::limits::GUARD_LOOK;
use crate::session::{Entry, Gave, ToolGate, Wish};

/// What an executor's tools go through.
#[derive(Debug)]
pub(super) struct Gate {
    pub(super) scene: Arc<Scene>,
    pub(super) team: Team,
    /// What the agent did without being allowed to.
    violation: Mutex<Option<String>>,
    /// Held by whoever signs an intent, so that two calls do not take the same name.
    signing: Mutex<()>,
}

impl Gate {
    pub(super) fn new(scene: Arc<Scene>, team: Team) -> Arc<Gate> {
        Arc::new(Gate { scene, team, violation: Mutex::default(), signing: Mutex::default() })
    }

    pub(super) fn violation(&self) -> Option<String> {
        self.violation.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn executor(&self) -> (&AgentName, Role) {
        (&self.team.executor, Role::Executor)
    }

    /// Signs an intent for a tool, or takes the one that was declared for it. Gives its id and the stored input.
    fn intend(&self, wish: &Wish, declared: Option<&Declared>) -> Result<(Token, ArtifactRef), String> {
        let bytes = normalized(&wish.input);
        let fault = |error: &dyn std::fmt::Display| format!("it cannot be recorded: {error}");
        let input =
            self.scene.store(&bytes, "application/json", "input.json").map_err(|error| fault(&error))?;
        let _one = self.signing.lock().unwrap_or_else(PoisonError::into_inner);
        let standing = self.scene.look().map_err(|error| fault(&error))?;
        let run = &standing.run;
        if declared.is_none()
            && let Some(known) = run.intents().find(|known| is_declared(known, &wish.tool, &input.sha256))
        {
            return Ok((known.intent.intent_id.clone(), input));
        }
        let Some(proposed) = run.approved() else { return Err("no proposal is approved".to_owned()) };
        let class = run.policy().class_of(&wish.tool);
        let why = declared.map_or(wish.why.as_str(), |declared| declared.justification.as_str());
        let why = if why.trim().is_empty() { "the executor calls it" } else { why };
        let intent = Intent {
            intent_id: run.fresh("i", 0),
            proposal_id: proposed.proposal.proposal_id.clone(),
            tool_name: wish.tool.clone(),
            normalized_input_hash: input.sha256,
            risk_class: declared
                .and_then(|declared| declared.risk_class)
                .map_or(class, |said| said.max(class)),
            justification: why.chars().take(limits::GUARD_TEXT_CHARS_MAX).collect(),
            retry_of: declared
                .and_then(|declared| declared.retry_of.clone())
                .or_else(|| taken_back(run, &wish.tool)),
        };
        let id = intent.intent_id.clone();
        let said = self.scene.say(
            &self.team,
            self.executor(),
            &Step::Intended(intent),
            std::slice::from_ref(&input),
            standing.head,
        );
        said.map_err(|unsaid| self.refused(&format!("intent to run {}", wish.tool), unsaid))?;
        Ok((id, input))
    }

    /// Signs an intent that the executor declares before it calls the tool.
    pub(super) fn declare(&self, declared: &Declared) -> Result<String, String> {
        let wish = Wish {
            tool: declared.tool_name.clone(),
            input: declared.input.clone(),
            why: declared.justification.clone(),
        };
        let (id, _) = self.intend(&wish, Some(declared))?;
        let standing = self.scene.look().map_err(|error| error.to_string())?;
        let waits = standing.run.intent(&id).is_some_and(|intended| intended.is_risky);
        let then = if waits {
            "it waits for a review, which the call itself waits for too"
        } else {
            "call the tool now"
        };
        Ok(format!("intent {id} is signed; {then}"))
    }

    /// Waits for the review of an intent that needs one.
    fn wait_for_review(&self, id: &Token, stop: &AtomicBool) -> Result<(), String> {
        loop {
            let standing = self.scene.look().map_err(|error| error.to_string())?;
            let Some(intended) = standing.run.intent(id) else { return Err(format!("{id} is gone")) };
            match intended.answer {
                Some((Answer::Approved, _)) => return Ok(()),
                Some((Answer::Blocked, _)) => {
                    let why = standing.aside.words.get(id).cloned().unwrap_or_default();
                    self.scene.note_refused(
                        &self.team.executor,
                        &format!("{} ({id})", intended.intent.tool_name),
                        Some(baton_core::guard::Rule::IntentBlocked),
                        &why,
                    );
                    return Err(format!(
                        "{id} was blocked: {why}. What was blocked stays blocked: do it in another way, or not at all"
                    ));
                }
                None if !intended.is_risky => return Ok(()),
                None => {}
            }
            if standing.run.state().is_end() || standing.run.is_final() || standing.is_closed {
                return Err("the run has ended".to_owned());
            }
            if stop.load(Ordering::Relaxed) {
                return Err(format!("nobody waits for the review of {id} any more"));
            }
            self.scene.wait(GUARD_LOOK);
        }
    }

    /// Whether a tool waits for a review, as far as its name tells.
    fn needs_review(&self, tool: &str) -> bool {
        let Ok(standing) = self.scene.look() else { return true };
        let (run, policy) = (&standing.run, standing.run.policy());
        let is_foreseen = run
            .approved()
            .is_some_and(|proposed| proposed.proposal.required_tools.iter().any(|known| known == tool));
        policy.needs_review(tool, policy.class_of(tool), is_foreseen)
    }

    /// Records that a tool begins. After this it may run, and not before.
    fn begin(&self, id: &Token, tool: &str, input: ArtifactRef) -> Result<Entry, String> {
        let standing = self.scene.look().map_err(|error| error.to_string())?;
        let execution = Execution {
            intent_id: id.clone(),
            artifacts: vec![input.sha256],
            exit_status: None,
            failure: None,
        };
        let step = Step::Started(execution);
        match self.scene.say(&self.team, self.executor(), &step, &[input], standing.head) {
            Ok(()) => Ok(Entry(Some(id.clone()))),
            Err(unsaid) => Err(self.refused(&format!("running {tool} ({id})"), unsaid)),
        }
    }

    /// What the agent is told of something that was not let through, which is recorded where a rule forbids it.
    fn refused(&self, what: &str, unsaid: Unsaid) -> String {
        match unsaid {
            Unsaid::Forbidden { rule, why } => {
                self.scene.note_refused(&self.team.executor, what, rule, &why);
                why
            }
            Unsaid::HeadMoved => "the run went on meanwhile".to_owned(),
            Unsaid::KeyElsewhere => "the executor's key is not on this machine".to_owned(),
            Unsaid::Closed => "the run has ended".to_owned(),
            Unsaid::Fault(fault) => format!("it cannot be recorded: {fault}"),
        }
    }
}

impl ToolGate for Gate {
    fn enter(&self, wish: &Wish, stop: &AtomicBool) -> Result<Entry, String> {
        if is_own_tool(&wish.tool) {
            return Ok(Entry(None));
        }
        let (id, input) = self.intend(wish, None)?;
        self.wait_for_review(&id, stop)?;
        self.begin(&id, &wish.tool, input)
    }

    fn observe(&self, wish: &Wish, has_ended: bool) -> Result<Option<Entry>, String> {
        if is_own_tool(&wish.tool) {
            return Ok(Some(Entry(None)));
        }
        if !has_ended && self.needs_review(&wish.tool) {
            return Ok(None);
        }
        let entered = self.intend(wish, None).and_then(|(id, input)| self.begin(&id, &wish.tool, input));
        if let Err(why) = &entered {
            let text = format!("{} ran {} without being allowed to: {why}", self.team.executor, wish.tool);
            self.violation.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(text);
        }
        entered.map(Some)
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
        exit_status: gave.failed.is_none().then_some(i64::from(gave.is_error)),
        failure: gave.failed.clone(),
    };
    let step = if gave.failed.is_some() { Step::Failed(execution) } else { Step::Completed(execution) };
    scene.say(team, (&team.executor, Role::Executor), &step, &[output], standing.head)
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

/// The last intent for the same tool that was blocked or failed, and that nothing took the place of.
fn taken_back(run: &Run, tool: &str) -> Option<Token> {
    let is_over = |known: &&Intended| {
        let is_blocked = matches!(known.answer, Some((Answer::Blocked, _)));
        known.intent.tool_name == tool && (is_blocked || known.has_failed) && !known.is_retried
    };
    run.intents().filter(is_over).max_by_key(|known| known.seq).map(|known| known.intent.intent_id.clone())
}

/// Baton's own tools, by which an agent reports: they are checked where they are taken.
fn is_own_tool(tool: &str) -> bool {
    const OWN: [&str; 14] = [
        "get_task",
        "heartbeat",
        "report_progress",
        "report_completion",
        "request_handoff",
        "answer_handoff",
        "create_task",
        "ask_human",
        "verify_trace",
        "submit_proposal",
        "submit_review",
        "declare_intent",
        "submit_claim",
        "challenge_claim",
    ];
    tool.contains("baton") && OWN.iter().any(|own| tool.contains(own))
}

/// The gate of whoever only looks: a planner, a critic, an auditor. What changes something is not theirs to run.
#[derive(Debug)]
pub(super) struct Onlooker {
    pub(super) scene: Arc<Scene>,
    pub(super) agent: AgentName,
    pub(super) role: Role,
}

impl ToolGate for Onlooker {
    fn observe(&self, wish: &Wish, has_ended: bool) -> Result<Option<Entry>, String> {
        match self.enter(wish, &AtomicBool::new(false)) {
            Ok(entry) => Ok(Some(entry)),
            Err(_) if !has_ended => Ok(None),
            Err(why) => Err(why),
        }
    }

    fn enter(&self, wish: &Wish, _stop: &AtomicBool) -> Result<Entry, String> {
        let standing: Standing = self.scene.look().map_err(|error| error.to_string())?;
        if is_own_tool(&wish.tool) || !standing.run.policy().changes_something(&wish.tool) {
            return Ok(Entry(None));
        }
        let why = format!("a {} changes nothing, and {} may", self.role, wish.tool);
        self.scene.note_refused(&self.agent, &wish.tool, None, &why);
        Err(why)
    }

    fn leave(&self, _entry: Entry, _gave: &Gave) {}
}

/// Whether work can still be begun in a run.
pub(super) fn is_at_work(run: &Run) -> bool {
    (State::Executing..State::Completed).contains(&run.state()) && !run.is_final()
}

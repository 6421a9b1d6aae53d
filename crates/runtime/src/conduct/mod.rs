//! Guarded tasks at work: planner, critic, executor and auditor each in a session of their own, and one conductor that asks the run what comes next.
//!
//! ```text
//!            ┌──────────────── Run::next ◄──────────────┐
//!            ▼                                          │
//! conductor ─► player (a session, the rules, a person) ─► Stage ─► Scene ─► ledger
//!                           executor's tools ─► Gate ───────────────┘
//! ```
//!
//! The conductor has no state that matters: after a crash the same question to the same trace goes on with the same step. Start at
//! [`Conductor::conduct`]; [`scene`] is how something is said, [`stage`] what players say, [`gate`] what stands before tools.

mod asks;
mod audit;
mod cast;
mod claims;
mod gate;
mod onlooker;
mod play;
mod player;
mod prompt;
mod reviews;
mod scene;
mod stage;

use std::sync::Arc;

use baton_core::event::ArtifactRef;
use baton_core::guard::{Outcome as Verdict, Run, State, Team};
use baton_core::ids::{AgentName, Digest, SessionId, Token};
use baton_core::limits::ARTIFACTS_MAX;
use baton_core::session::SessionEndedData;
use baton_core::task::decide::{Ending, GuardBegins, GuardEnded, SessionEnded};
use baton_core::{Role, guard};
use serde_json::{Map, Value};

pub use asks::Asks;
pub use cast::{Guarding, TeamNames};
pub(crate) use play::Conductor;

use self::cast::NoKey;
use self::scene::{Scene, Standing, Unsaid};
use self::stage::{NotTaken, Stage};
use crate::engine::{Engine, Fault};
use crate::session::{Bound, Part};
use crate::work::{Outcome, RunEnd, Watched};

/// A guarded run that is being played, as others reach it.
#[derive(Debug, Clone)]
pub struct Playing(Arc<Stage>);

impl Playing {
    /// Takes what a session of the run submits through a tool.
    pub fn submit(&self, session: SessionId, answer: &Map<String, Value>) -> Result<String, String> {
        self.0.submit(session, answer).map_err(|not| match not {
            NotTaken::Unfit(why) => why,
            NotTaken::Fault(fault) => fault.to_string(),
        })
    }

    /// The part that a session plays.
    pub fn part(&self, session: SessionId) -> Option<Part> {
        Some(Part { role: self.0.role_of(session)?, trace: self.trace() })
    }

    /// What whoever follows it should be told, once.
    pub fn take_notes(&self) -> Vec<String> {
        self.0.take_notes()
    }

    /// The trace of the run.
    pub fn trace(&self) -> baton_core::TraceId {
        self.0.scene.trace
    }
}

/// Begins the guarded run of a task under its lease, or takes up the one that did not come to its end.
pub(crate) fn open(
    engine: &Arc<Engine>,
    guarding: &Guarding,
    bound: &Bound,
    team: Team,
) -> Result<Playing, Fault> {
    let begun = guard::Begun { policy: guarding.policy.clone(), team };
    let begins = GuardBegins { task: bound.task.clone(), fence: bound.fence, begun };
    let trace = engine.begin_guard(&begins)?;
    let scene = Arc::new(Scene::new(engine.clone(), guarding.clone(), bound.clone(), trace));
    // The rules and the team of a run are those that it began with, whatever the configuration says by now.
    let team = scene.look()?.run.team().clone();
    Ok(Playing(Stage::new(scene, team)))
}

/// Whether somebody's key is here, and for its part; made where there is none.
pub(crate) fn expect_key(
    engine: &Engine,
    guarding: &Guarding,
    team: &Team,
    (agent, role): (&AgentName, Role),
) -> Result<(), String> {
    let ground = engine.ground();
    match guarding.signer(&*ground.journal, &ground.ledger_key, team, (agent, role)) {
        Ok(_) => Ok(()),
        Err(NoKey::Elsewhere) => Err(format!(
            "the key of {agent} is not on this machine, and Baton signs for the {role} what its tools do or what was verified"
        )),
        Err(NoKey::NotFor(why)) => Err(why),
        Err(NoKey::Fault(fault)) => Err(fault.to_string()),
    }
}

/// The team of a run that was begun.
pub(crate) fn team_of(engine: &Engine, trace: baton_core::TraceId) -> Option<Team> {
    let lines = engine.ground().journal.read_trace(trace, 1, guard::RUN_BEGINS as usize).ok()?;
    lines.iter().find_map(|stored| {
        let line = baton_ledger::record::Line::parse(stored.text.as_bytes()).ok()?;
        match *baton_ledger::guard::Heard::of_line(&line).step? {
            Ok(guard::Step::Begun(begun)) => Some(begun.team),
            _ => None,
        }
    })
}

/// Why the conductor does not go on.
#[derive(Debug)]
pub(crate) enum Halt {
    /// A person, the end of Baton, or the lease.
    Asked(Watched),
    /// A player failed: the attempt has, and another one goes on with the run.
    Player(Box<Failed>),
    /// The run itself has failed: that is recorded as its end.
    Failed(String),
    /// Somebody else has ended the run.
    Over,
    Fault(Fault),
}

/// What became of a player.
#[derive(Debug)]
pub(crate) struct Failed {
    watched: Watched,
    why: String,
    /// How its session ended, where it has.
    ended: Option<SessionEndedData>,
}

impl Halt {
    fn player(watched: Watched, why: String) -> Halt {
        Halt::Player(Box::new(Failed { watched, why, ended: None }))
    }
}

impl<E: Into<Fault>> From<E> for Halt {
    fn from(error: E) -> Self {
        Halt::Fault(error.into())
    }
}

impl From<NotTaken> for Halt {
    fn from(not: NotTaken) -> Self {
        match not {
            NotTaken::Unfit(why) => Halt::Failed(why),
            NotTaken::Fault(fault) => Halt::Fault(fault),
        }
    }
}

/// The executions that ran to their end, in order.
fn done(run: &Run) -> Vec<Token> {
    let mut ended: Vec<_> = run.done().collect();
    ended.sort_unstable_by_key(|known| known.seq);
    let most = baton_core::limits::GUARD_ITEMS_MAX;
    let skipped = ended.len().saturating_sub(most);
    ended.into_iter().skip(skipped).map(|known| known.intent.intent_id.clone()).collect()
}

/// What executions left, the last of it where it is too much to cite.
fn evidence_of(standing: &Standing, executions: &[Token]) -> Vec<Digest> {
    let left = executions.iter().filter_map(|id| standing.aside.outputs.get(id)).flatten();
    let mut hashes: Vec<Digest> = Vec::new();
    for ArtifactRef { sha256, .. } in left {
        if !hashes.contains(sha256) {
            hashes.push(*sha256);
        }
    }
    let skipped = hashes.len().saturating_sub(ARTIFACTS_MAX / 2);
    hashes.split_off(skipped)
}

/// Cites the end of a run in its task, and gives what that is for whoever waits.
fn cite(scene: &Scene) -> Result<RunEnd, Fault> {
    let standing = scene.look()?;
    let mut why = standing.aside.why.clone().unwrap_or_default();
    let (state, verdict) = match standing.run.state() {
        State::Completed => {
            let report = scene.report(standing.head)?;
            match report.verdict {
                baton_ledger::verify::Verdict::Pass => (State::Completed, Some(Verdict::Pass)),
                baton_ledger::verify::Verdict::PassWithWarnings => {
                    (State::Completed, Some(Verdict::Warnings))
                }
                // What was signed does not hold: nobody goes on with it.
                _ => {
                    why = audit::first_finding(&report).unwrap_or(why);
                    (State::Failed, Some(Verdict::Fail))
                }
            }
        }
        State::Aborted => (State::Aborted, None),
        _ => (State::Failed, Some(Verdict::Fail)),
    };
    let ended = GuardEnded {
        task: scene.bound.task.clone(),
        run: scene.bound.run,
        trace: scene.trace,
        head: scene.head()?,
        state,
        verdict,
        why: why.clone(),
    };
    let report = scene.engine.look(|board| {
        let task = board.get(&scene.bound.task)?;
        task.said.report.as_ref().map(|report| report.outcome)
    })?;
    scene.engine.end_guard(&ended)?;
    let outcome = match (state, report) {
        (State::Completed, Some(baton_core::task::Outcome::Done)) => Outcome::Done,
        (State::Completed, Some(baton_core::task::Outcome::Partial)) => Outcome::Partial,
        (State::Completed, _) => Outcome::NeedsReview,
        (State::Aborted, _) => Outcome::Stopped,
        _ => Outcome::Blocked,
    };
    let why = (!why.is_empty()).then_some(why);
    Ok(RunEnd { outcome, why, termination: None })
}

/// Judges an attempt that did not bring its run to an end.
pub(crate) fn give_up(engine: &Engine, bound: &Bound, cause: &str) -> Result<(), Fault> {
    let ended = SessionEnded {
        task: bound.task.clone(),
        run: bound.run,
        fence: bound.fence,
        ending: Ending::Failed { cause: cause.to_owned() },
        result: None,
        termination: Value::Null,
    };
    match engine.session_end(&ended) {
        Ok(_) | Err(Fault::Refused(_)) => Ok(()),
        Err(fault) => Err(fault),
    }
}

/// Who plays a part where no agent does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Own {
    Rules,
    Person,
    Verifier,
}

/// Whether a part of a team is played by Baton itself or by a person.
pub(crate) fn own_player(team: &Team, role: Role) -> Option<Own> {
    use baton_core::roles::{OPERATOR, RULES, VERIFIER};
    match (role, team.critic.as_str(), team.auditor.as_str()) {
        (Role::Critic, RULES, _) => Some(Own::Rules),
        (Role::Critic, OPERATOR, _) => Some(Own::Person),
        (Role::Auditor, _, VERIFIER) => Some(Own::Verifier),
        _ => None,
    }
}

impl From<Unsaid> for Halt {
    fn from(unsaid: Unsaid) -> Self {
        match unsaid {
            Unsaid::Forbidden { why, .. } | Unsaid::NoKey(why) => Halt::Failed(why),
            Unsaid::HeadMoved | Unsaid::Closed => {
                Halt::Failed("the run went on without the conductor".to_owned())
            }
            // It may come back: the attempt has failed, and the run has not.
            Unsaid::KeyElsewhere => {
                let why = "a key that Baton would sign with is not on this machine".to_owned();
                Halt::player(Watched::Gone, why)
            }
            Unsaid::Fault(fault) => Halt::Fault(fault),
        }
    }
}

/// Adds up what the turns of a task's sessions used, from a position on.
pub(crate) fn player_usage(
    history: &dyn baton_store::History,
    trace: baton_core::TraceId,
    read: &mut u64,
    used: &mut u64,
) -> Result<(), Fault> {
    let Some(summary) = history.trace(trace) else { return Ok(()) };
    if summary.last_pos <= *read {
        return Ok(());
    }
    // By positions: the task's own trace has what came before the run too.
    let mut from = *read + 1;
    while from <= summary.last_pos {
        let lines = history.read(from, baton_store::tasks::fold::LINES_AT_ONCE)?;
        if lines.is_empty() {
            break;
        }
        for stored in &lines {
            from = stored.pos + 1;
            if !stored.text.contains("\"turn.ended\"") {
                continue;
            }
            let event: Value = serde_json::from_str(&stored.text).unwrap_or_default();
            if event["type"] == "turn.ended" && event["trace"] == trace.to_string() {
                *used += tokens_of(&event["payload"]["payload"]["usage"]);
            }
        }
    }
    *read = from - 1;
    Ok(())
}

/// How many tokens a turn used, by the names that agents and models have for it.
fn tokens_of(usage: &Value) -> u64 {
    let number = |names: &[&str]| names.iter().find_map(|name| usage[name].as_u64());
    let total = number(&["totalTokens", "total_tokens"]);
    total.unwrap_or_else(|| {
        let input = number(&["inputTokens", "input_tokens", "prompt_tokens"]).unwrap_or(0);
        input + number(&["outputTokens", "output_tokens", "completion_tokens"]).unwrap_or(0)
    })
}

//! One attempt: from the prompt to the judgement. Watches its session, beats for its lease, and says at the end what came of it.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use baton_core::ids::{AgentName, SessionId};
use baton_core::protocol::exit_signal::{ExitReason, ExitSignal};
use baton_core::session::{Cause, EndReason, ErrorSource, SessionEndedData, SessionError, StateKind};
use baton_core::task::decide::{Ending, Holder, SessionEnded};
use baton_core::task::{Outcome as Reported, Phase, Task};
use serde_json::Value;

use super::{Crew, prompt};
use crate::conduct::Playing;
use crate::engine::{Fault, From};
use crate::harness::{AgentSpec, cut_short};
use crate::limits::{ATTEMPT_LOOK, LEASE_LOOK};
use crate::session::{Ask, Bound, Live, Next, token};

/// One attempt at a task, while it is made and after.
#[derive(Debug)]
pub struct Attempt {
    bound: Bound,
    agent: AgentName,
    session: SessionId,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    live: Option<Live>,
    playing: Option<Playing>,
    /// How the session ended.
    ended: Option<SessionEndedData>,
    /// Whether a person wants it to end.
    stops: bool,
    /// Whether Baton ends.
    leaves: bool,
    /// The last valid signal, and when the first one came.
    signal: Option<(ExitSignal, Instant)>,
    end: Option<RunEnd>,
}

/// What came of an attempt.
#[derive(Debug, Clone, PartialEq)]
pub struct RunEnd {
    pub outcome: Outcome,
    /// In a few words, where it did not end well.
    pub why: Option<String>,
    pub termination: Option<SessionEndedData>,
}

/// What came of an attempt, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Done,
    Partial,
    NeedsReview,
    Blocked,
    Failed,
    /// A usage limit is reached; the task waits until it ends.
    Limited,
    Stopped,
    /// Somebody else has the task now.
    Lost,
}

impl Outcome {
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Partial => "partial",
            Outcome::NeedsReview => "needs_review",
            Outcome::Blocked => "blocked",
            Outcome::Failed => "failed",
            Outcome::Limited => "limited",
            Outcome::Stopped => "stopped",
            Outcome::Lost => "lost",
        }
    }
}

/// When a lease is beaten for and looked at the next time.
#[derive(Debug)]
pub(crate) struct Pulse {
    beat_at: Instant,
    look_at: Instant,
}

impl Pulse {
    pub(crate) fn new() -> Pulse {
        Pulse { beat_at: Instant::now(), look_at: Instant::now() + LEASE_LOOK }
    }
}

/// Why the watching ended.
#[derive(Debug)]
pub(crate) enum Watched {
    /// The turn is over, and there is a report, a signal, or nothing even after a reminder.
    Finished,
    /// The turn is over, and what went wrong in it stays.
    Erred(SessionError),
    /// The turn did not come to an end of its own, and there is no report.
    CutShort(&'static str),
    /// The session ended by itself.
    Gone,
    Stopped,
    /// The lease is somebody else's, or nobody's.
    Lost,
    /// Baton ends: whoever serves next begins anew.
    Leaving,
}

impl Attempt {
    pub(super) fn new(bound: Bound, agent: AgentName, session: SessionId) -> Self {
        Attempt { bound, agent, session, state: Mutex::default(), changed: Condvar::new() }
    }

    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    pub fn agent(&self) -> &AgentName {
        &self.agent
    }

    pub fn session(&self) -> SessionId {
        self.session
    }

    /// The guarded run that it plays, where its task is one.
    pub fn playing(&self) -> Option<Playing> {
        self.state().playing.clone()
    }

    pub(super) fn set_playing(&self, playing: Playing) {
        self.state().playing = Some(playing);
    }

    pub fn live(&self) -> Option<Live> {
        self.state().live.clone()
    }

    /// Ends it because a person wants that: the task waits again, and no attempt is counted.
    pub fn stop(&self) {
        self.state().stops = true;
        self.changed.notify_all();
    }

    /// Ends it because Baton ends.
    pub(super) fn leave(&self) {
        self.state().leaves = true;
        self.changed.notify_all();
    }

    /// Waits for its end.
    pub fn wait(&self) -> RunEnd {
        let mut state = self.state();
        loop {
            if let Some(end) = &state.end {
                return end.clone();
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Its end, where it has come.
    pub fn end(&self) -> Option<RunEnd> {
        self.state().end.clone()
    }

    /// Takes a signal that the agent wrote: the last one counts.
    pub fn take_signal(&self, signal: ExitSignal) {
        let mut state = self.state();
        let since = state.signal.as_ref().map_or_else(Instant::now, |(_, since)| *since);
        state.signal = Some((signal, since));
        drop(state);
        self.changed.notify_all();
    }

    pub(crate) fn set_live(&self, live: Live) {
        self.state().live = Some(live);
    }

    pub(crate) fn session_ended(&self, data: SessionEndedData) {
        self.state().ended = Some(data);
        self.changed.notify_all();
    }

    pub(super) fn finish(&self, end: RunEnd) {
        self.state().end = Some(end);
        self.changed.notify_all();
    }

    pub(super) fn holder(&self) -> Holder {
        let Bound { task, fence, .. } = &self.bound;
        Holder { task: task.clone(), agent: self.agent.clone(), fence: *fence, beaten_until: None }
    }

    /// The whole attempt.
    pub(super) fn work(&self, crew: &Crew, spec: &AgentSpec) -> RunEnd {
        let Some(live) = self.live() else {
            return RunEnd { outcome: Outcome::Failed, why: None, termination: None };
        };
        let watched = self.watch(crew, spec, &live);
        // One that has ended meanwhile needs nothing.
        let _ = match watched {
            Watched::Gone => Ok(()),
            Watched::Leaving => live.handle.ask(Ask::Leave),
            Watched::Stopped => live.handle.ask(Ask::Stop),
            _ => live.handle.ask(Ask::Finish),
        };
        let ended = self.wait_for_session();
        let end = self.judge(crew, spec, watched, ended.as_ref());
        crew.tidy(&self.bound.task);
        end
    }

    /// What ends an attempt from outside: a person, the end of Baton, or a lease that is not its own any more. Beats where it is time to.
    pub(crate) fn pulse(&self, crew: &Crew, pulse: &mut Pulse) -> Option<Watched> {
        if let Some(asked) = self.asked(crew) {
            return Some(asked);
        }
        if Instant::now() >= pulse.beat_at {
            match crew.engine.beat(&self.holder()) {
                Ok(_) => pulse.beat_at = Instant::now() + self.beat_every(crew),
                Err(Fault::Refused(_)) => return Some(self.unless_signalled(Watched::Lost)),
                // The disk may have room again in a while; the lease says how long that may take.
                Err(fault) => {
                    crew.notice(format!("{}: no beat: {fault}", self.bound.task));
                    pulse.beat_at = Instant::now() + LEASE_LOOK;
                }
            }
        }
        if Instant::now() >= pulse.look_at {
            pulse.look_at = Instant::now() + LEASE_LOOK;
            if !self.is_ours(crew) {
                return Some(Watched::Lost);
            }
        }
        None
    }

    /// Prompts, reminds and beats until there is something to judge.
    fn watch(&self, crew: &Crew, spec: &AgentSpec, live: &Live) -> Watched {
        let (mut position, mut is_prompted) = (0, false);
        let mut is_reminded = !spec.can_be_reminded();
        let mut pulse = Pulse::new();
        loop {
            match live.handle.feed().after(position, ATTEMPT_LOOK) {
                Next::Items(items) => position = items.last().map_or(position, |item| item.at),
                Next::Gap(first) => position = first - 1,
                Next::Nothing => {}
                Next::Over => return Watched::Gone,
            }
            if let Some(ended) = self.pulse(crew, &mut pulse) {
                return ended;
            }
            if live.handle.state() != StateKind::Ready {
                continue;
            }
            if is_prompted && let Some(error) = live.handle.view().last_error {
                return Watched::Erred(error);
            }
            let Ok((task, papers)) = crew.engine.task(&self.bound.task) else { return Watched::Lost };
            let cut = cut_short(&live.handle.stop_reason()).filter(|_| is_prompted && !self.has_word(&task));
            if let Some(why) = cut {
                return Watched::CutShort(why);
            }
            let ask = match (is_prompted, is_reminded) {
                (false, _) => Ask::Prompt(prompt::first(&task, &papers, spec)),
                (true, false) if !self.has_word(&task) => {
                    Ask::Remind(prompt::reminder(&task, spec), "there is no report yet: it is reminded, once")
                }
                (true, _) => return Watched::Finished,
            };
            match live.handle.ask(ask) {
                Ok(()) => {
                    is_reminded |= is_prompted;
                    is_prompted = true;
                }
                Err(_) if live.handle.state() == StateKind::Stopped => return Watched::Gone,
                // Somebody else was quicker: their turn comes first.
                Err(_) => {}
            }
        }
    }

    /// What somebody else wants of the attempt: a person, the end of Baton, or a signal whose grace is over.
    fn asked(&self, crew: &Crew) -> Option<Watched> {
        let state = self.state();
        if state.stops {
            return Some(Watched::Stopped);
        }
        if state.leaves {
            return Some(Watched::Leaving);
        }
        let grace = crew.broker.bounds().exit_grace;
        let is_over = state.signal.as_ref().is_some_and(|(_, since)| since.elapsed() >= grace);
        is_over.then_some(Watched::Finished)
    }

    fn unless_signalled(&self, watched: Watched) -> Watched {
        if self.state().signal.is_some() { Watched::Finished } else { watched }
    }

    /// Whether the agent has said what came of its task.
    fn has_word(&self, task: &Task) -> bool {
        let has_report = task.said.report.is_some() || task.said.signal.is_some();
        has_report || self.state().signal.is_some()
    }

    fn is_ours(&self, crew: &Crew) -> bool {
        let is_ours = crew.engine.look(|board| {
            let task = board.get(&self.bound.task);
            let lease = task.and_then(|task| task.lease.as_ref());
            lease.is_some_and(|lease| lease.run == self.bound.run && lease.fence == self.bound.fence)
        });
        // Where the ledger cannot be read now, nothing is known against it.
        is_ours.unwrap_or(true)
    }

    fn beat_every(&self, crew: &Crew) -> Duration {
        let lease = crew.engine.look(|board| board.get(&self.bound.task)?.lease.clone()).ok().flatten();
        let ttl_ms = lease.map_or(3000, |lease| lease.ttl_ms.min(lease.beat_ttl_ms));
        Duration::from_millis(u64::try_from(ttl_ms / 4).unwrap_or(0).max(20))
    }

    fn wait_for_session(&self) -> Option<SessionEndedData> {
        let mut state = self.state();
        while state.ended.is_none() {
            // The session's owner always comes to its end: every wait of it has a bound.
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.ended.clone()
    }

    /// Says to the task what became of the attempt.
    pub(crate) fn judge(
        &self,
        crew: &Crew,
        spec: &AgentSpec,
        watched: Watched,
        ended: Option<&SessionEndedData>,
    ) -> RunEnd {
        let end = |outcome, why: Option<String>| RunEnd { outcome, why, termination: ended.cloned() };
        let signal = self.state().signal.clone();
        if let Some((signal, _)) = signal.filter(|_| !matches!(watched, Watched::Stopped)) {
            match self.submit(crew, &signal) {
                Ok(()) => {
                    return end(outcome_of(signal.exit_reason), signal.notes.clone());
                }
                Err(why) => crew.notice(format!("{}: the exit signal was refused: {why}", self.bound.task)),
            }
        }
        let report = crew.engine.look(|board| {
            let task = board.get(&self.bound.task)?;
            // A report alone ends no guarded run.
            let report = task.said.report.as_ref().filter(|_| task.guard.is_none());
            report.map(|report| (report.outcome, report.reason.clone()))
        });
        let report = report.ok().flatten();
        let (ending, outcome, why) = match watched {
            Watched::Lost => {
                let (outcome, why) = self.left(crew);
                return end(outcome, why);
            }
            Watched::Leaving => (Ending::Stopped, Outcome::Stopped, Some("Baton ended".to_owned())),
            Watched::Stopped => (Ending::Held, Outcome::Stopped, None),
            Watched::Finished => {
                let needs_signal = spec.exit_protocol && crew.heeds_signals;
                let (outcome, why) = match needs_signal {
                    true => (Outcome::Failed, Some("it ended without its exit signal".to_owned())),
                    false => (Outcome::NeedsReview, None),
                };
                (Ending::Finished { is_reminded: true, needs_signal }, outcome, why)
            }
            Watched::Erred(error) if error.source == ErrorSource::Hook => {
                let cause = error.message.clone();
                (Ending::Refused { cause: error.message }, Outcome::Failed, Some(cause))
            }
            // What the end of the agent says is more than what its turn said.
            Watched::Erred(_) if ended.is_some_and(|data| data.reason == EndReason::Error) => {
                ending_of(ended)
            }
            Watched::CutShort(why) => {
                (Ending::Failed { cause: why.to_owned() }, Outcome::Failed, Some(why.to_owned()))
            }
            Watched::Erred(error) => {
                (Ending::Failed { cause: error.message.clone() }, Outcome::Failed, Some(error.message))
            }
            Watched::Gone => ending_of(ended),
        };
        let is_refused = matches!(ending, Ending::Refused { .. });
        let (outcome, why) = match report.filter(|_| !is_refused) {
            Some((Reported::Done, _)) => (Outcome::Done, None),
            Some((Reported::Partial, _)) => (Outcome::Partial, None),
            Some((Reported::NeedsReview, _)) => (Outcome::NeedsReview, None),
            Some((Reported::Blocked, reason)) => (Outcome::Blocked, Some(reason)),
            None => (outcome, why),
        };
        let session_ended = SessionEnded {
            task: self.bound.task.clone(),
            run: self.bound.run,
            fence: self.bound.fence,
            ending,
            result: None,
            termination: ended.and_then(|data| serde_json::to_value(data).ok()).unwrap_or(Value::Null),
        };
        match crew.engine.session_end(&session_ended) {
            Ok(_) => end(outcome, why),
            // What came of it is for nobody any more.
            Err(Fault::Refused(_)) => {
                let (outcome, why) = self.left(crew);
                end(outcome, why)
            }
            Err(fault) => {
                let why = format!("the end of its session was not taken in: {fault}");
                crew.notice(format!("{}: {why}", self.bound.task));
                end(Outcome::Lost, Some(why))
            }
        }
    }

    /// What became of a task whose lease is gone: the agent may have ended its phase itself.
    fn left(&self, crew: &Crew) -> (Outcome, Option<String>) {
        let signalled = crew.engine.look(|board| {
            let task = board.get(&self.bound.task)?;
            let is_own = task.run.as_ref().is_some_and(|run| run.id == self.bound.run);
            task.said.signal.as_ref().filter(|_| is_own).map(|signal| signal.next_phase)
        });
        match signalled.ok().flatten() {
            // An error blocks the task as well.
            Some(Phase::Blocked) => (Outcome::Blocked, None),
            Some(_) => (Outcome::Done, None),
            None => (Outcome::Lost, Some("the lease is not this attempt's any more".to_owned())),
        }
    }

    fn submit(&self, crew: &Crew, signal: &ExitSignal) -> Result<(), Fault> {
        let from = From {
            session: token(self.session),
            agent: Some(self.agent.clone()),
            fence: Some(self.bound.fence),
        };
        crew.engine.submit(&self.bound.task, &from, signal).map(drop)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an exit signal says of the attempt.
fn outcome_of(reason: ExitReason) -> Outcome {
    match reason {
        ExitReason::Completed => Outcome::Done,
        ExitReason::Blocked => Outcome::Blocked,
        ExitReason::Error => Outcome::Failed,
    }
}

/// What the end of an agent means for its task.
pub(crate) fn ending_of(ended: Option<&SessionEndedData>) -> (Ending, Outcome, Option<String>) {
    let why = ended.and_then(|data| data.message.clone());
    let cause = why.clone().unwrap_or_else(|| "the session ended".to_owned());
    let ending = match ended {
        Some(data) if data.reason == EndReason::Terminated => (Ending::Held, Outcome::Stopped),
        Some(SessionEndedData { cause: Some(Cause::Quota), resets_at: Some(until), .. }) => {
            (Ending::Limited { until: *until }, Outcome::Limited)
        }
        Some(data) if matches!(data.cause, Some(Cause::Spawn | Cause::Auth)) => {
            (Ending::Permanent { cause }, Outcome::Failed)
        }
        _ => (Ending::Failed { cause }, Outcome::Failed),
    };
    (ending.0, ending.1, why)
}

//! What a session waits for, and for how long: nothing in any protocol says so.

use std::time::{Duration, Instant};

use baton_core::Timestamp;
use baton_core::session::{Answer, Cause, Input, StateKind};
use baton_store::AppendError;

use super::actor::{Deadlines, Letter, Running};
use crate::harness::{Failure, Told};

impl Running {
    /// Asks the agent to end its turn, and waits for that within its time.
    pub(super) fn cancel(&mut self) -> Result<Result<(), String>, AppendError> {
        if self.machine.kind() != StateKind::CallingLlm {
            return Ok(Err(format!("a session in {} has no turn to cancel", self.machine.kind())));
        }
        if self.is_turn_ending() {
            return Ok(Ok(()));
        }
        if self.drop_look()? {
            // The agent was not asked anything yet, and never will be.
            let ended = Told::TurnEnded { stop: "cancelled".to_owned(), usage: None };
            self.own.push_back(Letter::Told(ended));
            return Ok(Ok(()));
        }
        // Whoever waits for a yes would not end the turn before it has an answer.
        let asked: Vec<String> = self.machine.permissions().iter().map(|asked| asked.id.clone()).collect();
        for id in asked {
            let by = "baton".to_owned();
            self.decide(Input::PermissionAnswered { id, answer: Answer::Canceled, by })?;
        }
        if let Some(harness) = &mut self.harness {
            harness.cancel();
        }
        self.cancelled.get_or_insert_with(|| Instant::now() + self.start.deadlines.cancel);
        Ok(Ok(()))
    }

    /// Ends the agent for what it did or did not do; that was said before.
    pub(super) fn condemn(&mut self) {
        self.is_condemned = true;
        if let Some(harness) = &mut self.harness {
            harness.end();
        }
    }

    /// How long silence is allowed from now on.
    pub(super) fn watch_silence(&mut self) {
        let Deadlines { handshake, inactivity, .. } = self.start.deadlines;
        if self.machine.kind() != StateKind::CallingLlm {
            self.cancelled = None;
        }
        let wanted = match self.machine.kind() {
            // It is not the agent that is waited for.
            _ if self.looking.is_some() => None,
            StateKind::Starting => Some((handshake, "the handshake")),
            // Whoever waits for a person may be silent.
            StateKind::CallingLlm if self.machine.permissions().is_empty() => Some((inactivity, "the turn")),
            _ => None,
        };
        match (wanted, &self.silence) {
            (None, _) => self.silence = None,
            (Some((time, what)), None) => self.silence = Some((Instant::now() + time, what)),
            (Some((time, what)), Some((_, before))) if *before != what => {
                self.silence = Some((Instant::now() + time, what));
            }
            (Some(_), Some(_)) => {}
        }
    }

    pub(super) fn next_deadline(&self) -> Duration {
        let now = self.start.clock.now();
        let until =
            |at: &Timestamp| Duration::from_millis(u64::try_from(at.unix_ms() - now.unix_ms()).unwrap_or(0));
        let retry = self.retry.as_ref().map(|(at, _)| until(at));
        let permission = self.permissions.iter().map(|(at, _)| until(at)).min();
        let silence = self.silence.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let closed = self.closed.map(|(at, _)| at.saturating_duration_since(Instant::now()));
        let cancelled = self.cancelled.map(|at| at.saturating_duration_since(Instant::now()));
        let looking = self.looking.as_ref().map(|looking| looking.until);
        let looking = looking.map(|at| at.saturating_duration_since(Instant::now()));
        let said = self.start.transcript.due().map(|at| at.saturating_duration_since(Instant::now()));
        let all = [retry, permission, silence, closed, cancelled, looking, said];
        all.into_iter().flatten().min().unwrap_or(Duration::from_secs(3600))
    }

    pub(super) fn do_what_is_due(&mut self) -> Result<(), AppendError> {
        let now = self.start.clock.now();
        // What cannot be written is missing from the transcript; the turn goes on.
        let _ = self.start.transcript.write_due(now);
        if let Some((_, target)) = self.retry.take_if(|(at, _)| *at <= now) {
            self.decide(Input::RetryTimeout { target })?;
        }
        while let Some(at) = self.permissions.iter().position(|(at, _)| *at <= now) {
            let (_, id) = self.permissions.remove(at);
            let by = "baton".to_owned();
            self.decide(Input::PermissionAnswered { id, answer: Answer::Deny, by })?;
        }
        self.give_up_look()?;
        if self.cancelled.take_if(|at| *at <= Instant::now()).is_some() {
            let message = "the agent did not end the turn that was cancelled";
            self.blamed.get_or_insert_with(|| Failure::of(Cause::Timeout, message));
            self.condemn();
        }
        if let Some((at, _)) = &mut self.silence
            && self.start.gate.as_ref().is_some_and(|gate| gate.is_waiting())
        {
            // It is not the agent that is waited for.
            *at = Instant::now() + self.start.deadlines.inactivity;
        }
        let is_silent = self.silence.is_some_and(|(at, _)| at <= Instant::now());
        if let Some((_, what)) = self.closed.take_if(|(at, _)| is_silent || *at <= Instant::now()) {
            let message = format!("the agent closed its {what}");
            self.blamed.get_or_insert_with(|| Failure::of(Cause::Protocol, message));
            self.condemn();
        }
        if let Some((_, what)) = self.silence.take_if(|(at, _)| *at <= Instant::now()) {
            let message = format!("the agent was silent in {what} for too long");
            // What was said before it became silent says more.
            self.blamed.get_or_insert_with(|| Failure::of(Cause::Timeout, message));
            // It is not asked any more: what does not answer does not end by itself.
            self.condemn();
        }
        Ok(())
    }
}

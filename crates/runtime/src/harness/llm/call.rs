//! One request, in a thread of its own: sent, listened to, and ended once.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::session::Cause;
use serde_json::Value;

use super::answer::{Answer, Piece};
use super::http::{Client, Refused};
use super::{Api, Shared, anthropic, openai, sse};
use crate::harness::{Failure, Told};
use crate::limits::{LLM_ANSWER_BYTES_MAX, LLM_WAIT_MAX, LLM_WAIT_MIN};
use crate::process::short;

/// A request that is under way, or over.
#[derive(Debug)]
pub(super) struct Call {
    client: Client,
    /// Whoever holds this may tell of the request, for as long as it is not over.
    state: Mutex<State>,
    is_interrupted: AtomicBool,
    /// Over, or interrupted.
    changed: Condvar,
    is_over: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    is_over: bool,
    /// The text so far.
    said: String,
}

impl Call {
    pub(super) fn new(client: &Client) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        // A client of its own: to interrupt a request is to end its connections.
        let client = client.fresh();
        Call { client, state, is_interrupted: false.into(), changed, is_over: false.into() }
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Wakes its thread, whatever that waits for. Does not wait.
    pub(super) fn interrupt(&self) {
        self.is_interrupted.store(true, Ordering::Release);
        self.client.shutdown();
        self.changed.notify_all();
    }

    /// Ends it, if nobody has: the function is called with the text so far, and nothing is told of it after that.
    pub(super) fn end(&self, last: impl FnOnce(&str)) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over {
            state.is_over = true;
            self.is_over.store(true, Ordering::Release);
            last(&state.said);
        }
    }

    /// Tells something of it; whether that is still wanted.
    fn tell(&self, shared: &Shared, piece: Piece) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.is_over || self.is_interrupted.load(Ordering::Acquire) {
            return false;
        }
        let Piece { text, is_thought } = piece;
        if !is_thought {
            state.said.push_str(&text);
        }
        (shared.tell)(Told::Text { text, is_thought });
        true
    }

    /// Does something unless it is over.
    fn unless_over(&self, act: impl FnOnce()) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.is_over && !self.is_interrupted.load(Ordering::Acquire) {
            act();
        }
    }

    /// Waits, unless it is interrupted.
    fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || state.is_over || self.is_interrupted.load(Ordering::Acquire) {
                return;
            }
            // In short steps: an interruption takes no lock, so it may come between the look and the wait.
            let step = left.min(Duration::from_millis(100));
            state = self.changed.wait_timeout(state, step).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// Starts the thread of a request.
pub(super) fn start(shared: Arc<Shared>, call: Arc<Call>, request: Value) -> io::Result<()> {
    let work = move || {
        let outcome = exchange(&shared, &call, &request);
        // Whoever does not want it any more tells of its end; what came of it is of no interest then.
        if !call.is_interrupted.load(Ordering::Acquire) {
            call.end(|_| finish(&shared, outcome));
        }
    };
    std::thread::Builder::new().name("llm-call".into()).spawn(work).map(drop)
}

/// Tells what came of a request, after it has become part of the conversation.
fn finish(shared: &Shared, outcome: Result<Answer, Refused>) {
    match outcome {
        Ok(answer) => {
            let calls = shared.conversation().hear(&answer);
            let tell = &shared.tell;
            // Only now: the answer is whole, and nothing of it will be taken back.
            calls.into_iter().for_each(|call| tell(Told::Calls(call)));
            if let Some(usage) = &answer.usage {
                tell(Told::Usage(usage.clone()));
            }
            tell(Told::TurnEnded { stop: answer.stop.unwrap_or_default(), usage: answer.usage });
        }
        Err(Refused { failure, is_for_good, .. }) => {
            if is_for_good {
                shared.conversation().refuse();
            }
            (shared.tell)(Told::TurnFailed(failure));
        }
    }
}

/// Sends a request and listens to the answer. A server that asks for a moment of patience gets it.
fn exchange(shared: &Shared, call: &Call, request: &Value) -> Result<Answer, Refused> {
    let mut patience = LLM_WAIT_MAX;
    loop {
        let refused = match call.client.post(&shared.setup, request) {
            Ok(body) => return listen(shared, call, body).map_err(Refused::from),
            Err(refused) => refused,
        };
        // A server that asks for no wait at all would be asked again at once, for as long as it likes.
        match refused.after.map(|after| after.max(LLM_WAIT_MIN)) {
            Some(after) if after <= patience => {
                patience -= after;
                let busy = format!("the model's server is busy and is asked again in {}", short(after));
                call.unless_over(|| (shared.tell)(Told::Status(busy)));
                call.wait(after);
                if call.is_interrupted.load(Ordering::Acquire) {
                    return Err(refused);
                }
            }
            _ => return Err(refused),
        }
    }
}

fn listen(shared: &Shared, call: &Call, body: impl io::Read) -> Result<Answer, Failure> {
    let timeout = shared.setup.timeout;
    let (mut events, mut answer) = (sse::Events::new(body), Answer::default());
    let mut progress = Instant::now();
    while !answer.is_whole {
        let Some(data) = events.next().map_err(|error| shared.client.failure_of_read(&error, timeout))?
        else {
            break;
        };
        if data.is_empty() {
            // A sign of life that says nothing is not waited on for ever.
            if progress.elapsed() > timeout {
                return Err(shared.client.silence(timeout));
            }
            continue;
        }
        progress = Instant::now();
        let pieces = match shared.setup.api {
            Api::OpenAi => openai::hear(&mut answer, &data),
            Api::Anthropic => anthropic::hear(&mut answer, &data),
        };
        let pieces = pieces.map_err(|failure| shared.client.scrub(&failure))?;
        if answer.bytes > LLM_ANSWER_BYTES_MAX {
            let message = format!("the answer is longer than {LLM_ANSWER_BYTES_MAX} bytes");
            return Err(Failure::of(Cause::Protocol, message));
        }
        for piece in pieces {
            if !call.tell(shared, piece) {
                return Err(Failure::new("the request was interrupted"));
            }
        }
    }
    if answer.stop.is_none() {
        let message = "the model's answer broke off".to_owned();
        return Err(Failure { retryable: true, ..Failure::new(message) });
    }
    Ok(answer)
}

//! One prompt: a run does it, and everything that it tells and asks goes to the editor and back.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::program::{self, Program, lines_of};
use super::server::Session;
use super::translate::{Act, Translator, chunk};
use super::wire::{INTERNAL, Refusal, Wire, told};
use super::{CWD_KEY, SESSION_KEY};
use crate::limits::{ACP_STDERR_BYTES_MAX, ACP_STOP_WAIT};

/// What an editor may choose.
const ALLOW: &str = "allow";
const DENY: &str = "deny";

/// A prompt that is worked on.
pub(super) struct Turn {
    pub(super) wire: Wire,
    pub(super) program: Arc<Program>,
    pub(super) session: Arc<Session>,
    pub(super) text: String,
    /// Told when the editor cancels it.
    pub(super) canceled: watch::Receiver<bool>,
}

/// What the editor was asked and has not answered: by the name of the permission, the name of the question.
type Open = BTreeMap<String, u64>;

impl Turn {
    /// Does it, and gives the answer to the prompt.
    pub(super) async fn run(self) -> Result<Value, Refusal> {
        let place = self.session.place.clone();
        self.program.enter(&place).await;
        let mut run = Translator::default();
        let answer = match self.program.start_run(&place) {
            Ok(mut child) => {
                let stderr = self.follow(&mut child, &mut run).await;
                self.answer(&run, &stderr).await
            }
            Err(refusal) => Err(refusal),
        };
        self.program.leave(&place).await;
        answer
    }

    /// Brings everything to and fro until the run has ended; gives what it said on standard error.
    async fn follow(&self, child: &mut Child, run: &mut Translator) -> String {
        let (Some(stdout), Some(stderr)) = (child.stdout.take(), child.stderr.take()) else {
            return String::new();
        };
        let mut input = child.stdin.take();
        let errors = tokio::spawn(async move {
            let mut kept = Vec::new();
            let mut stderr = stderr;
            let _ = (&mut stderr).take(ACP_STDERR_BYTES_MAX as u64).read_to_end(&mut kept).await;
            // What is more is for nobody, and must not hold it up.
            let _ = tokio::io::copy(&mut stderr, &mut tokio::io::sink()).await;
            String::from_utf8_lossy(&kept).into_owned()
        });
        let mut lines = lines_of(stdout);
        let metadata =
            json!({SESSION_KEY: self.session.id, CWD_KEY: self.session.place.cwd.display().to_string()});
        say(&mut input, &json!({"prompt": self.session.with_history(&self.text), "metadata": metadata}))
            .await;
        let (mut gone, mut canceled) = (self.wire.gone(), self.canceled.clone());
        let (mut open, mut answers) = (Open::new(), JoinSet::new());
        let mut until: Option<Instant> = None;
        loop {
            let is_stopping = until.is_some();
            tokio::select! {
                line = lines.recv() => {
                    let Some(line) = line else { break };
                    let Ok(line) = serde_json::from_slice::<Value>(&line) else { continue };
                    for act in run.take(&line) {
                        self.act(act, &mut open, &mut answers).await;
                    }
                }
                Some(answered) = answers.join_next(), if !answers.is_empty() => {
                    let Ok((id, Some(answer))) = answered else { continue };
                    if open.remove(&id).is_some() {
                        say(&mut input, &json!({"permit": id, "answer": answer})).await;
                    }
                }
                () = told(&mut canceled), if !is_stopping => {
                    (input, until) = (None, Some(Instant::now() + ACP_STOP_WAIT));
                }
                () = told(&mut gone), if !is_stopping => {
                    (input, until) = (None, Some(Instant::now() + ACP_STOP_WAIT));
                }
                () = sleep_until(until.unwrap_or_else(Instant::now)), if is_stopping => break,
            }
        }
        drop(input);
        for asked in open.into_values() {
            self.wire.take_back(asked).await;
        }
        if until.is_some_and(|until| until <= Instant::now()) {
            // Its owner notices that it has gone, and stops the attempt.
            let _ = child.kill().await;
        }
        program::end(child).await;
        errors.await.unwrap_or_default()
    }

    async fn act(&self, act: Act, open: &mut Open, answers: &mut JoinSet<(String, Option<&'static str>)>) {
        match act {
            Act::Update(update) => self.wire.update(&self.session.id, &update).await,
            Act::Ask { id, title, call } => {
                let options = json!([
                    {"optionId": ALLOW, "name": "Allow once", "kind": "allow_once"},
                    {"optionId": DENY, "name": "Deny", "kind": "reject_once"},
                ]);
                let mut call = call;
                call["title"] = title.into();
                let params = json!({"sessionId": self.session.id, "toolCall": call, "options": options});
                let (asked, answer) = self.wire.ask("session/request_permission", &params).await;
                open.insert(id.clone(), asked);
                answers.spawn(async move { (id, answer.await.ok().map(|answer| chosen(&answer))) });
            }
            Act::Answered(id) => {
                if let Some(asked) = open.remove(&id) {
                    // Somebody else was quicker, or it was given up.
                    self.wire.take_back(asked).await;
                }
            }
        }
    }

    /// What the editor is told at the end.
    async fn answer(&self, run: &Translator, stderr: &str) -> Result<Value, Refusal> {
        let is_canceled = *self.canceled.borrow();
        self.session.remember(&self.text, run.said());
        let task = run.ended().and_then(|ended| ended["taskId"].as_str());
        let Some(last) = run.last(is_canceled) else {
            if is_canceled {
                return Ok(json!({"stopReason": "cancelled"}));
            }
            let refusal = program::refusal(stderr);
            let message = format!("no agent began to work on it: {}", refusal.message);
            return Err(Refusal { code: INTERNAL, message, data: refusal.data });
        };
        if !last.words.is_empty() {
            self.wire.update(&self.session.id, &chunk("agent_message_chunk", &last.words)).await;
        }
        let is_stopped = run.ended().is_some_and(|ended| ended["outcome"] == "stopped");
        if let Some(task) = task.filter(|_| is_canceled && is_stopped) {
            // Whoever asked for it has called it off: nobody should take it up again.
            let args = ["task", "move", task, "cancelled", "--reason", "cancelled in the editor"];
            if let Err(refusal) = self.program.ask(&self.session.place, &args).await {
                tracing::warn!("{task} was stopped, and not cancelled: {}", refusal.message);
            }
        }
        let mut about = run.ended().cloned().unwrap_or_default();
        if let Some(about) = about.as_object_mut() {
            about.retain(|key, _| !matches!(key.as_str(), "v" | "type"));
        }
        Ok(json!({"stopReason": last.stop, "_meta": {"baton": about}}))
    }
}

/// What the editor chose. Everything that is no yes is a no.
fn chosen(answer: &Value) -> &'static str {
    let outcome = &answer["result"]["outcome"];
    if outcome["outcome"] == "selected" && outcome["optionId"] == ALLOW { ALLOW } else { DENY }
}

/// Says something to the run. One that does not listen any more tells its end.
async fn say(input: &mut Option<ChildStdin>, message: &Value) {
    if let Some(pipe) = input {
        let _ = pipe.write_all(format!("{message}\n").as_bytes()).await;
        let _ = pipe.flush().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_a_yes() {
        let selected =
            |option: &str| json!({"result": {"outcome": {"outcome": "selected", "optionId": option}}});
        assert_eq!(chosen(&selected(ALLOW)), ALLOW);
        for other in [
            selected(DENY),
            selected("allow_always"),
            json!({"result": {"outcome": {"outcome": "cancelled"}}}),
            json!({"error": {"code": -32601, "message": "no such method"}}),
            json!({"result": {"outcome": "allow"}}),
        ] {
            assert_eq!(chosen(&other), DENY, "{other}");
        }
    }
}

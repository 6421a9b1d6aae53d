//! Who is told: a command, or a webhook.

use std::fmt;
use std::path::PathBuf;

use baton_core::Timestamp;
use std::time::Duration;

use super::letter::{DELIVERY_VARIABLE, Kept, Letter};
use super::pace::Pace;
use super::webhook::Webhook;
use crate::process::{Command, Ended, Ran, end_leftovers, short};

/// A receiver of notifications.
#[derive(Debug, Clone)]
pub enum Sink {
    /// Run for each one, which it gets as JSON on its standard input and in `BATON_*` variables. Run once: only its author knows whether it may be repeated.
    Command { words: Vec<String>, dir: PathBuf, warden: Option<PathBuf> },
    /// Posted, and tried again where that may help.
    Webhook(Webhook),
}

/// Which of the two; their names stand in files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SinkKind {
    Command,
    Webhook,
}

impl SinkKind {
    pub fn as_str(self) -> &'static str {
        match self {
            SinkKind::Command => "command",
            SinkKind::Webhook => "webhook",
        }
    }

    pub(super) fn parse(text: &str) -> Option<Self> {
        [SinkKind::Command, SinkKind::Webhook].into_iter().find(|kind| kind.as_str() == text)
    }
}

impl fmt::Display for SinkKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What became of one attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Outcome {
    Delivered,
    /// It may work later, after the wait that the receiver asked for.
    Again {
        why: String,
        after: Option<Duration>,
    },
    /// It will not work.
    Never(String),
    /// Baton ends; the letter stays where it is.
    Stopped,
}

impl Sink {
    pub fn kind(&self) -> SinkKind {
        match self {
            Sink::Command { .. } => SinkKind::Command,
            Sink::Webhook(_) => SinkKind::Webhook,
        }
    }

    /// Makes it ready for many attempts, in one thread.
    pub(super) fn open(self, pace: &Pace) -> Open {
        match self {
            Sink::Command { words, dir, warden } => Open::Command { words, dir, warden },
            Sink::Webhook(webhook) => Open::Webhook { agent: webhook.agent(pace.webhook_timeout), webhook },
        }
    }
}

/// A receiver in use.
pub(super) enum Open {
    Command { words: Vec<String>, dir: PathBuf, warden: Option<PathBuf> },
    Webhook { webhook: Webhook, agent: ureq::Agent },
}

impl Open {
    pub(super) fn attempt(
        &self,
        letter: &Letter,
        now: Timestamp,
        pace: &Pace,
        stop: &mut dyn FnMut() -> bool,
    ) -> Outcome {
        match self {
            Open::Webhook { webhook, agent } => webhook.post(agent, letter, now, pace.webhook_timeout),
            Open::Command { words, dir, warden } => {
                let mut command = Command::new(words.clone(), dir, pace.command_timeout);
                (command.env, command.stdin) = (letter.variables(), letter.body());
                (command.grace, command.warden) = (pace.command_grace, warden.clone());
                if letter.kept == Kept::Left {
                    // Whoever ran it before has died, and what it started may still be at work: two at once is not what its author expects.
                    end_leftovers(DELIVERY_VARIABLE, &letter.delivery, pace.command_grace);
                }
                let ran = command.run(None, stop);
                if matches!(&ran, Ok(Ran { ended: Ended::TimedOut | Ended::Stopped, .. })) {
                    // The group is gone; what had left the group goes too.
                    end_leftovers(DELIVERY_VARIABLE, &letter.delivery, Duration::ZERO);
                }
                match ran {
                    Ok(Ran { ended: Ended::Exit(0), .. }) => Outcome::Delivered,
                    Ok(Ran { ended: Ended::Exit(code), .. }) => Outcome::Never(format!("exit {code}")),
                    Ok(Ran { ended: Ended::Signal(signal), .. }) => {
                        Outcome::Never(format!("ended by signal {signal}"))
                    }
                    Ok(Ran { ended: Ended::TimedOut, .. }) => {
                        Outcome::Never(format!("timed out after {}", short(pace.command_timeout)))
                    }
                    Ok(Ran { ended: Ended::Stopped, .. }) => Outcome::Stopped,
                    Err(error) => Outcome::Never(error.to_string()),
                }
            }
        }
    }
}

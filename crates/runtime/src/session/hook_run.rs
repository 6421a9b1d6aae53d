//! Runs one hook: in the workspace, with the environment that every command gets, told on its standard input what happened.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::ids::HookRunId;
use baton_core::session::{Hook, Input, RunStatus};
use serde_json::Value;

use crate::limits::TOOL_GRACE;
use crate::process::{Command, Ended, Fate, short};

/// A hook that is to be run.
#[derive(Debug)]
pub(super) struct HookRunner {
    pub(super) run: HookRunId,
    pub(super) hook: Hook,
    pub(super) workspace: PathBuf,
    /// The session and its tools.
    pub(super) told: Value,
    pub(super) env: Vec<(String, String)>,
    /// Ends it should Baton be gone.
    pub(super) warden: Option<PathBuf>,
    /// Ends it with the session.
    pub(super) fate: Arc<Fate>,
    pub(super) stop: Arc<AtomicBool>,
}

impl HookRunner {
    /// Runs it to its end and says what came of it.
    pub(super) fn run(self, tell: &dyn Fn(Input)) {
        let HookRunner { run, hook, workspace, told, env, warden, fate, stop } = self;
        tell(Input::HookStarted { run });
        let timeout = Duration::from_millis(hook.timeout_ms);
        let mut command = Command::new(hook.command, workspace, timeout);
        command.env.extend(env);
        (command.warden, command.fate, command.grace) = (warden, Some(fate), TOOL_GRACE);
        command.stdin = format!("{told}\n").into_bytes();
        let ran = command.run(None, &mut || stop.load(Ordering::Relaxed));
        let (status, error, output) = match ran {
            Ok(ran) => {
                let (status, error) = match ran.ended {
                    Ended::Exit(0) => (RunStatus::Succeeded, None),
                    Ended::Exit(code) => (RunStatus::Failed, Some(format!("exit {code}"))),
                    Ended::Signal(signal) => (RunStatus::Failed, Some(format!("ended by signal {signal}"))),
                    Ended::TimedOut => {
                        (RunStatus::Failed, Some(format!("timed out after {}", short(timeout))))
                    }
                    Ended::Stopped => (RunStatus::Canceled, Some("the session was stopped".to_owned())),
                };
                (status, error, Some(ran.output.text()).filter(|text| !text.is_empty()))
            }
            Err(error) => (RunStatus::Failed, Some(error.to_string()), None),
        };
        tell(Input::HookCompleted { run, status, error, output });
    }
}

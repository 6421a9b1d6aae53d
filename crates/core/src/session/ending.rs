//! How a session ended, and who is to blame: told to everyone in the same words.

use serde::{Deserialize, Serialize};

use super::stderr::StderrOutput;
use crate::time::Timestamp;
use crate::words::words;

words!(
    /// What kind of end it was.
    EndReason, "completed, error or terminated" {
        Completed = "completed",
        Error = "error",
        Terminated = "terminated",
    }
);

words!(
    /// Who ended it.
    TerminatedBy, "agent or daemon" {
        Agent = "agent",
        Daemon = "daemon",
    }
);

words!(
    /// What an error comes from, as far as it is known.
    Cause, "crash, spawn, auth, quota, oom, timeout or protocol" {
        Crash = "crash",
        /// It could not be started.
        Spawn = "spawn",
        /// The model's side refused the credentials.
        Auth = "auth",
        /// A usage limit is reached.
        Quota = "quota",
        /// The kernel ended it for want of memory.
        Oom = "oom",
        /// It did not answer in time.
        Timeout = "timeout",
        /// It did not speak the protocol.
        Protocol = "protocol",
    }
);

/// A signal that ended a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Signal {
    pub number: i32,
    pub name: String,
}

impl Signal {
    pub fn new(number: i32) -> Self {
        let name = match number {
            1 => "SIGHUP",
            2 => "SIGINT",
            3 => "SIGQUIT",
            4 => "SIGILL",
            6 => "SIGABRT",
            7 => "SIGBUS",
            8 => "SIGFPE",
            9 => "SIGKILL",
            11 => "SIGSEGV",
            13 => "SIGPIPE",
            14 => "SIGALRM",
            15 => "SIGTERM",
            24 => "SIGXCPU",
            25 => "SIGXFSZ",
            31 => "SIGSYS",
            _ => return Signal { number, name: format!("signal {number}") },
        };
        Signal { number, name: name.to_owned() }
    }
}

/// The end of a session, as it is stored and told.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionEndedData {
    pub reason: EndReason,
    pub terminated_by: TerminatedBy,
    /// Where the reason is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stderr: Option<StderrOutput>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Signal>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    /// When a limit that was reached ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resets_at: Option<Timestamp>,
    /// The tool that ran when it ended, or the last one before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_tool: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_rss_bytes: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu_ms: Option<u64>,
}

/// How the process behind a session came to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessEnd {
    Exited(i32),
    Signalled(i32),
    /// There never was one.
    NotSpawned(String),
    /// What became of it cannot be known.
    Lost(String),
    /// None is needed: the agent is a model somewhere else.
    Absent,
}

/// What is known at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    pub process: ProcessEnd,
    /// Whether Baton asked for it.
    pub is_asked: bool,
    /// What was under way: a turn, a tool, a permission, the handshake.
    pub open: Option<&'static str>,
    /// Where something before the end says more than the end itself.
    pub cause: Option<Cause>,
    /// When a limit ends, where that is the cause.
    pub resets_at: Option<Timestamp>,
    /// In which words.
    pub told: Option<String>,
    pub stderr: Option<StderrOutput>,
    pub last_tool: Option<String>,
    pub duration_ms: Option<u64>,
    pub max_rss_bytes: Option<u64>,
    pub cpu_ms: Option<u64>,
}

impl Ended {
    pub fn new(process: ProcessEnd) -> Self {
        Ended {
            process,
            is_asked: false,
            open: None,
            cause: None,
            resets_at: None,
            told: None,
            stderr: None,
            last_tool: None,
            duration_ms: None,
            max_rss_bytes: None,
            cpu_ms: None,
        }
    }

    /// Says what kind of end it was.
    pub fn classify(self) -> SessionEndedData {
        let Ended { process, open, .. } = &self;
        let (reason, by) = match process {
            _ if self.is_asked => (EndReason::Terminated, TerminatedBy::Daemon),
            ProcessEnd::Exited(0) | ProcessEnd::Absent if open.is_none() && self.cause.is_none() => {
                (EndReason::Completed, TerminatedBy::Agent)
            }
            ProcessEnd::Exited(_) | ProcessEnd::Signalled(_) | ProcessEnd::Absent => {
                (EndReason::Error, TerminatedBy::Agent)
            }
            ProcessEnd::NotSpawned(_) | ProcessEnd::Lost(_) => (EndReason::Error, TerminatedBy::Daemon),
        };
        let (duration_ms, max_rss_bytes, cpu_ms) = (self.duration_ms, self.max_rss_bytes, self.cpu_ms);
        let mut data = SessionEndedData {
            reason,
            terminated_by: by,
            message: None,
            exit_code: None,
            stderr: None,
            signal: None,
            cause: None,
            resets_at: None,
            last_tool: None,
            duration_ms,
            max_rss_bytes,
            cpu_ms,
        };
        if reason != EndReason::Error {
            return data;
        }
        let what = match process {
            ProcessEnd::Exited(code) => format!("the agent exited with code {code}"),
            ProcessEnd::Signalled(number) => format!("the agent was ended by {}", Signal::new(*number).name),
            ProcessEnd::NotSpawned(why) => format!("the agent could not be started: {why}"),
            ProcessEnd::Lost(why) => format!("what became of the agent is not known: {why}"),
            ProcessEnd::Absent => "the conversation ended".to_owned(),
        };
        let what = match (open, process) {
            // What was never there was in the middle of nothing.
            (None, _) | (_, ProcessEnd::NotSpawned(_)) => what,
            (Some(open), _) => format!("{what} {open}"),
        };
        let is_given_up = matches!(self.cause, Some(Cause::Quota | Cause::Auth));
        data.message = Some(match &self.told {
            // Where there is no process, its end says nothing more.
            Some(told) if *process == ProcessEnd::Absent => told.clone(),
            // Nor where it was given up for that: the signal was Baton's.
            Some(told) if is_given_up && matches!(process, ProcessEnd::Signalled(_)) => told.clone(),
            Some(told) => format!("{told}; {what}"),
            None => what,
        });
        (data.exit_code, data.signal, data.cause) = match process {
            ProcessEnd::Exited(code) => (Some(*code), None, Some(Cause::Crash)),
            ProcessEnd::Signalled(number) => (None, Some(Signal::new(*number)), Some(Cause::Crash)),
            ProcessEnd::NotSpawned(_) => (None, None, Some(Cause::Spawn)),
            ProcessEnd::Lost(_) | ProcessEnd::Absent => (None, None, None),
        };
        data.cause = self.cause.or(data.cause);
        data.resets_at = self.resets_at;
        (data.stderr, data.last_tool) = (self.stderr, self.last_tool);
        data
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(process: ProcessEnd, change: impl FnOnce(&mut Ended)) -> SessionEndedData {
        let mut ended = Ended::new(process);
        let output =
            StderrOutput { head: Some("x".into()), tail: None, truncated: false, total_lines: Some(1) };
        ended.stderr = Some(output);
        change(&mut ended);
        ended.classify()
    }

    #[test]
    fn each_end_has_its_reason_and_the_one_to_blame() {
        use EndReason::{Completed, Error, Terminated};
        use TerminatedBy::{Agent, Daemon};
        let ends = [
            (ended(ProcessEnd::Exited(0), |_| {}), Completed, Agent),
            (ended(ProcessEnd::Exited(0), |e| e.open = Some("in a turn")), Error, Agent),
            (ended(ProcessEnd::Exited(3), |_| {}), Error, Agent),
            (ended(ProcessEnd::Signalled(9), |_| {}), Error, Agent),
            (ended(ProcessEnd::Signalled(15), |e| e.is_asked = true), Terminated, Daemon),
            (ended(ProcessEnd::Exited(1), |e| e.is_asked = true), Terminated, Daemon),
            (ended(ProcessEnd::NotSpawned("no such file".into()), |_| {}), Error, Daemon),
            (ended(ProcessEnd::Lost("no child".into()), |_| {}), Error, Daemon),
            (ended(ProcessEnd::Absent, |e| e.is_asked = true), Terminated, Daemon),
            (ended(ProcessEnd::Absent, |e| e.cause = Some(Cause::Auth)), Error, Agent),
        ];
        for (data, reason, by) in ends {
            assert_eq!((data.reason, data.terminated_by), (reason, by), "{data:?}");
            let is_error = reason == Error;
            assert_eq!(data.message.is_some(), is_error, "{data:?}");
            assert_eq!(data.stderr.is_some(), is_error, "{data:?}");
        }
    }

    #[test]
    fn an_exit_with_zero_in_a_turn_says_so() {
        let data = ended(ProcessEnd::Exited(0), |e| e.open = Some("in a turn"));
        assert_eq!(data.exit_code, Some(0));
        assert_eq!(data.message.as_deref(), Some("the agent exited with code 0 in a turn"));
        assert_eq!(data.cause, Some(Cause::Crash));
    }

    #[test]
    fn a_signal_has_a_number_and_a_name_and_no_code() {
        let data = ended(ProcessEnd::Signalled(11), |_| {});
        assert_eq!(
            (data.exit_code, data.signal),
            (None, Some(Signal { number: 11, name: "SIGSEGV".into() }))
        );
    }

    #[test]
    fn what_was_told_before_the_end_is_the_cause() {
        let data = ended(ProcessEnd::Exited(1), |e| {
            (e.cause, e.told) = (Some(Cause::Quota), Some("usage limit reached".into()));
        });
        assert_eq!(data.cause, Some(Cause::Quota));
        assert_eq!(data.message.as_deref(), Some("usage limit reached; the agent exited with code 1"));
        let data = ended(ProcessEnd::Signalled(15), |e| {
            (e.cause, e.told) = (Some(Cause::Quota), Some("usage limit reached".into()));
        });
        assert_eq!(data.message.as_deref(), Some("usage limit reached"));
    }

    #[test]
    fn what_was_never_there_has_no_code_and_was_in_the_middle_of_nothing() {
        let data = ended(ProcessEnd::NotSpawned("x: not found".into()), |e| e.open = Some("in a turn"));
        assert_eq!(data.message.as_deref(), Some("the agent could not be started: x: not found"));
        let data = ended(ProcessEnd::Absent, |e| {
            (e.cause, e.told) = (Some(Cause::Auth), Some("no such key".into()));
        });
        assert_eq!((data.message.as_deref(), data.exit_code), (Some("no such key"), None));
    }

    #[test]
    fn the_keys_are_those_of_the_notification() {
        let data = ended(ProcessEnd::Exited(1), |e| e.duration_ms = Some(5));
        let json = serde_json::to_value(&data).unwrap();
        let mut keys: Vec<&String> = json.as_object().unwrap().keys().collect();
        keys.sort_unstable();
        assert_eq!(
            keys,
            ["cause", "duration_ms", "exit_code", "message", "reason", "stderr", "terminated_by"]
        );
        assert_eq!(json["stderr"]["total_lines"], 1);
        assert_eq!(serde_json::from_value::<SessionEndedData>(json).unwrap(), data);
    }
}

//! How a session ended, in words for people. What is recorded stays as it is; here it is said what that means.

use baton_core::session::{Cause, EndReason, SessionEndedData};
use baton_core::task::{Board, Task};
use baton_runtime::session::Snapshot;

use crate::ui::text::{count, printable};

/// The reason of a run that ended because somebody wanted that.
const STOPPED: &str = "stopped";

/// What is known, beside its own record, of why Baton stopped a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The agent had said what came of its task.
    AfterWork,
    /// Its task says why the run ended.
    Because(String),
    /// Somebody wanted it to end.
    ByHand,
    /// Its server ended.
    WithServer,
    /// Nothing more: its task has gone on since.
    Unknown,
}

impl Stopped {
    /// Looks it up on the board.
    pub(super) fn on(board: &Board, snapshot: &Snapshot) -> Stopped {
        match &snapshot.task {
            _ if snapshot.is_cut_short => Stopped::WithServer,
            _ if snapshot.is_by_person => Stopped::ByHand,
            Some(id) => board.get(id).map_or(Stopped::Unknown, |task| Stopped::of(task, snapshot)),
            None => Stopped::ByHand,
        }
    }

    /// Looks it up at its task, which knows of its last run.
    pub(super) fn of(task: &Task, snapshot: &Snapshot) -> Stopped {
        if snapshot.is_cut_short {
            return Stopped::WithServer;
        }
        if snapshot.is_by_person {
            return Stopped::ByHand;
        }
        let run = task.run.as_ref().filter(|run| snapshot.run == Some(run.id));
        let Some(end) = run.and_then(|run| run.ended.as_ref()) else { return Stopped::Unknown };
        let has_spoken = task.said.report.is_some() || task.said.signal.is_some();
        match end.failed || !has_spoken {
            true if end.reason == STOPPED => Stopped::ByHand,
            true => Stopped::Because(end.reason.clone()),
            false => Stopped::AfterWork,
        }
    }
}

/// Whether Baton ended an agent because it could do nothing any more: then the signal was Baton's, and says nothing.
fn is_given_up(data: &SessionEndedData) -> bool {
    matches!(data.cause, Some(Cause::Quota | Cause::Auth))
}

/// How a session ended, in a line.
pub(super) fn ending(data: &SessionEndedData, stopped: &Stopped) -> String {
    if let Some(message) = &data.message {
        return printable(message);
    }
    match (data.reason, stopped) {
        (EndReason::Completed, _) => "the agent ended by itself".to_owned(),
        (EndReason::Error, _) => format!("{} by {}", data.reason, data.terminated_by),
        // Only an end that nobody saw has no duration.
        (EndReason::Terminated, _) if data.duration_ms.is_none() => {
            "cut short: Baton itself ended while it ran".to_owned()
        }
        (EndReason::Terminated, Stopped::AfterWork) => "stopped by Baton after its work".to_owned(),
        (EndReason::Terminated, Stopped::Because(why)) => format!("stopped by Baton: {}", printable(why)),
        (EndReason::Terminated, Stopped::ByHand) => "stopped by a person".to_owned(),
        (EndReason::Terminated, Stopped::WithServer) => "stopped with its server".to_owned(),
        (EndReason::Terminated, Stopped::Unknown) => "stopped by Baton".to_owned(),
    }
}

/// The same, and what is known beside it: how its process ended, and what it wrote last.
pub(super) fn ending_lines(data: &SessionEndedData, stopped: &Stopped) -> Vec<String> {
    let mut lines = vec![ending(data, stopped)];
    let mut facts = Vec::new();
    facts.extend(data.exit_code.map(|code| format!("exit code {code}")));
    let signal = data.signal.as_ref().filter(|_| !is_given_up(data));
    facts.extend(signal.map(|signal| format!("signal {} ({})", signal.number, signal.name)));
    facts.extend(data.cause.map(|cause| format!("cause {cause}")));
    facts.extend(data.last_tool.as_ref().map(|tool| format!("last tool {}", printable(tool))));
    facts.extend(data.duration_ms.map(|ms| format!("after {}.{:03} s", ms / 1000, ms % 1000)));
    if !facts.is_empty() {
        lines.push(facts.join(", "));
    }
    if let Some(stderr) = &data.stderr {
        lines.push(format!("standard error, {}:", count(stderr.total_lines.unwrap_or(0), "line")));
        let shown = |part: &Option<String>| {
            let text = part.clone().unwrap_or_default();
            text.lines().map(|line| format!("  {}", printable(line))).collect::<Vec<_>>()
        };
        lines.extend(shown(&stderr.head));
        if stderr.truncated {
            lines.push("  …".to_owned());
        }
        lines.extend(shown(&stderr.tail));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::session::{Ended, ProcessEnd};

    #[test]
    fn an_end_that_baton_made_says_what_it_was_for() {
        let check = |duration_ms, stopped: Stopped, expected: &str| {
            let mut ended = Ended::new(ProcessEnd::Exited(0));
            (ended.is_asked, ended.duration_ms) = (true, duration_ms);
            assert_eq!(ending(&ended.classify(), &stopped), expected);
        };
        check(Some(5), Stopped::AfterWork, "stopped by Baton after its work");
        check(Some(5), Stopped::Because("hook tests failed".into()), "stopped by Baton: hook tests failed");
        check(Some(5), Stopped::ByHand, "stopped by a person");
        check(Some(5), Stopped::WithServer, "stopped with its server");
        check(Some(5), Stopped::Unknown, "stopped by Baton");
        check(None, Stopped::WithServer, "cut short: Baton itself ended while it ran");
        let mut limited = Ended::new(ProcessEnd::Signalled(15));
        (limited.cause, limited.told) = (Some(Cause::Quota), Some("usage limit reached".into()));
        let lines = ending_lines(&limited.classify(), &Stopped::Unknown);
        assert_eq!(lines, ["usage limit reached", "cause quota"]);
        let by_itself = Ended::new(ProcessEnd::Exited(0)).classify();
        assert_eq!(ending(&by_itself, &Stopped::ByHand), "the agent ended by itself");
    }
}

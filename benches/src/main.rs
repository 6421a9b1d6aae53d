//! `make bench`: one line a figure, `bench: NAME VALUE goal OP GOAL met|SHORT`; exit 1 if any falls short.
//!
//! Everything is a ratio between two things measured in the same run, taken in turns, as the median of several rounds: the machine may be noisy, both
//! sides feel it. Nothing here asserts a time.

#![expect(clippy::expect_used, reason = "a bench that cannot set itself up should stop with a sentence")]

mod append;
mod fixture;
mod guarded;
mod open;
mod server;
mod sessions;
mod tasks;
mod verify;

use std::process::ExitCode;

/// A figure with its goal.
#[derive(Debug)]
pub(crate) struct Figure {
    name: &'static str,
    value: f64,
    goal: Goal,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Goal {
    AtLeast(f64),
    AtMost(f64),
    /// Printed for comparison; nothing depends on it.
    None,
}

impl Figure {
    fn print(&self) -> bool {
        let (shown, met) = match self.goal {
            Goal::AtLeast(goal) => (format!(">= {goal}"), self.value >= goal),
            Goal::AtMost(goal) => (format!("<= {goal}"), self.value <= goal),
            Goal::None => ("none -".to_owned(), true),
        };
        let verdict = if met { "met" } else { "SHORT" };
        println!("bench: {} {:.3} goal {shown} {verdict}", self.name, self.value);
        met
    }
}

/// The middle of several measurements.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Memory is measured in processes of its own, which come back here.
    if let [command, path] = &arguments[..]
        && command == "verify-memory"
    {
        return verify::memory_child(path);
    }
    if let [command, count] = &arguments[..]
        && command == "sessions-many"
    {
        return sessions::many_child(count);
    }
    if let [command, body] = &arguments[..]
        && command == "server-bare"
    {
        return server::bare_child(body);
    }
    let wanted = |group: &str| arguments.is_empty() || arguments.iter().any(|a| a == group);
    let mut all_met = true;
    let mut report = |figures: Vec<Figure>| {
        for figure in figures {
            all_met &= figure.print();
        }
    };
    if arguments.first().is_some_and(|a| a == "profile-tasks") {
        tasks::profile();
        return ExitCode::SUCCESS;
    }
    if arguments.first().is_some_and(|a| a == "profile") {
        append::profile();
        return ExitCode::SUCCESS;
    }
    if wanted("tasks") {
        report(tasks::run());
    }
    if wanted("sessions") {
        report(sessions::run());
    }
    if wanted("server") {
        report(server::run());
    }
    if wanted("guarded") {
        report(guarded::run());
    }
    if wanted("append") {
        report(append::run());
    }
    if wanted("verify") || wanted("open") {
        let large = fixture::large();
        let small = fixture::small();
        if wanted("verify") {
            report(verify::run(&small, &large));
        }
        if wanted("open") {
            report(open::run(&small, &large));
        }
    }
    if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

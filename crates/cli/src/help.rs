//! How the help reads: commands grouped by what people come for. The words themselves are in [`crate::args`].

use std::ffi::OsString;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::args::{Cli, set_flag};
use crate::config::Flag;

/// The commands by what people come for.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Work", &["init", "demo", "run", "task", "send", "exit", "ci", "trace", "agent"]),
    ("Watch", &["session", "events"]),
    ("Prove", &["verify", "replay"]),
    (
        "Operate",
        &["serve", "token", "config", "hooks", "policy", "doctor", "notify", "explain", "completions", "man"],
    ),
    ("Speak", &["mcp", "acp", "mock-agent"]),
];

/// The whole command, with its help grouped by intent.
pub(crate) fn command() -> clap::Command {
    let command = with_set(Cli::command());
    let mut list = String::new();
    for (group, names) in GROUPS {
        list.push_str(&format!("{group}:\n"));
        for name in names {
            let found = command.get_subcommands().find(|subcommand| subcommand.get_name() == *name);
            let about = found.and_then(clap::Command::get_about).map(ToString::to_string).unwrap_or_default();
            list.push_str(&format!("  {name:<12} {about}\n"));
        }
        list.push('\n');
    }
    let more = "`baton COMMAND --help` tells more about a command, `baton explain CODE` about an error.";
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{list}Options:\n{{options}}\n\n{more}\n"
    ))
}

fn with_set(command: clap::Command) -> clap::Command {
    command.arg(set_flag()).mut_subcommands(with_set)
}

/// Reads the arguments, or gives clap's own words about them.
pub(crate) fn parse(words: &[OsString]) -> Result<Cli, clap::Error> {
    let matches = command().try_get_matches_from(words)?;
    let mut cli = Cli::from_arg_matches(&matches)?;
    cli.globals.set = settings(&matches);
    Ok(cli)
}

/// What `--set` says, before and behind every command; the last one counts.
fn settings(matches: &clap::ArgMatches) -> Vec<Flag> {
    let here = matches.get_many::<Flag>("set").into_iter().flatten().cloned();
    let below = matches.subcommand().map(|(_, inner)| settings(inner)).unwrap_or_default();
    here.chain(below).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(command: &clap::Command, check: &mut dyn FnMut(&clap::Command)) {
        check(command);
        command.get_subcommands().for_each(|subcommand| each(subcommand, check));
    }

    #[test]
    fn the_arguments_hold_together() {
        command().debug_assert();
    }

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = Cli::command();
        let mut known: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        known.sort_unstable();
        assert_eq!(grouped, known);
    }

    #[test]
    fn help_fits_a_terminal_and_shows_an_example() {
        let mut check = |command: &clap::Command| {
            let (name, about) = (command.get_name(), command.get_long_about());
            let about = about.map(ToString::to_string).unwrap_or_default();
            assert!(about.contains("\nExample:\n  "), "{name} has no example");
            // Wider lines would be broken a second time.
            let wide = about.lines().find(|line| line.chars().count() > 80);
            assert_eq!(wide, None, "{name}");
        };
        each(&Cli::command(), &mut check);
    }

    #[test]
    fn first_help_lines_are_short_and_have_no_full_stop() {
        let mut check = |command: &clap::Command| {
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            assert!(!about.is_empty() && about.len() < 70, "{}: {about}", command.get_name());
            assert!(!about.ends_with('.') && !about.contains('\n'), "{}: {about}", command.get_name());
        };
        each(&Cli::command(), &mut check);
    }
}

//! What is said about a command line that does not read: clap's own words, and the command that was probably meant.

use std::ffi::OsString;
use std::io::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::error::{CliError, Code};
use crate::exit::Exit;
use crate::help;
use crate::ui::color::{Paint, When};
use crate::ui::shell::{self, Place};
use crate::ui::text::{printable, printable_lines};

/// Words that people try, below which command, and what does what they mean. ID stands for what was typed behind the word.
const MEANT: [(&str, &[&str], &str); 10] = [
    ("task", &["create", "add", "make"], "baton task new \"…\""),
    ("task", &["list", "all"], "baton task ls"),
    ("task", &["delete", "remove", "rm", "cancel", "abort"], "baton task move ID cancelled --reason \"…\""),
    ("task", &["done", "complete", "finish", "close"], "baton task approve ID"),
    ("task", &["start", "take", "begin"], "baton task claim ID --agent NAME"),
    ("task", &["status", "get", "view"], "baton task show ID"),
    ("", &["status", "st", "info"], "baton"),
    ("", &["ls", "list", "tasks"], "baton task ls"),
    ("", &["new", "create", "add"], "baton task new \"…\""),
    ("", &["version"], "baton --version"),
];

/// Commands whose last argument is a text, and how many arguments stand before it.
const TEXTS: [(&[&str], usize); 2] = [(&["task", "new"], 0), (&["task", "log"], 1)];

/// Says what is wrong, as JSON where that was asked for as far as can be told.
pub(crate) fn fail(error: &clap::Error, argv: &[OsString]) -> u8 {
    let words: Vec<String> = argv.iter().skip(1).map(|word| word.to_string_lossy().into_owned()).collect();
    let meant = meant(error, &words);
    let is_json = words.iter().take_while(|word| *word != "--").any(|word| word == "--json");
    let rendered = error.render().to_string();
    if is_json {
        let hint = meant.unwrap_or_else(|| format!("{} --help", command(&path(&words))));
        let mut error = CliError::new(Code::Usage, in_a_line(error.kind(), &rendered)).hint(hint);
        error.causes = tips(&rendered);
        let paint = Paint::decide(When::Never, false, false, false);
        error.print(std::io::stderr(), true, paint, &Place::default());
        return error.exit().code();
    }
    // It repeats arguments as they came. There is nowhere to report that standard error is gone.
    let mut text = printable_lines(&rendered);
    if let Some(meant) = meant {
        text.push_str(&format!("hint: {}\n", printable(&meant)));
    }
    let _ = std::io::stderr().write_all(text.as_bytes());
    Exit::Usage.code()
}

/// The first paragraph of clap's words in one line.
fn in_a_line(kind: ErrorKind, rendered: &str) -> String {
    if kind == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        return "a command or an argument is missing".to_owned();
    }
    let lines = rendered.trim_start_matches("error: ").lines().take_while(|line| !line.trim().is_empty());
    lines.map(str::trim).collect::<Vec<_>>().join(" ")
}

/// What clap thinks was meant.
fn tips(rendered: &str) -> Vec<String> {
    rendered.lines().filter_map(|line| line.trim_start().strip_prefix("tip: ")).map(str::to_owned).collect()
}

/// The commands that were named.
fn path(words: &[String]) -> Vec<String> {
    let mut here = help::command();
    let mut path = Vec::new();
    for word in words {
        let Some(inner) = here.find_subcommand(word).cloned() else { continue };
        path.push(word.clone());
        here = inner;
    }
    path
}

fn command(path: &[String]) -> String {
    std::iter::once("baton").chain(path.iter().map(String::as_str)).collect::<Vec<_>>().join(" ")
}

/// The command that was probably meant.
fn meant(error: &clap::Error, words: &[String]) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.as_str()),
        _ => None,
    };
    let path = path(words);
    match error.kind() {
        ErrorKind::InvalidSubcommand => {
            let word = text(ContextKind::InvalidSubcommand)?;
            let parent = path.first().map(String::as_str).unwrap_or_default();
            let (_, _, meant) = MEANT.iter().find(|(of, tried, _)| *of == parent && tried.contains(&word))?;
            let behind = words.iter().skip_while(|given| *given != word).nth(1);
            match behind.filter(|id| !id.starts_with('-')) {
                Some(id) => Some(meant.replace("ID", &shell::word(id))),
                None => Some((*meant).to_owned()),
            }
        }
        ErrorKind::UnknownArgument => {
            let (_, before) = TEXTS.iter().find(|(of, _)| path.iter().eq(of.iter()))?;
            text(ContextKind::InvalidArg).filter(|word| !word.starts_with('-'))?;
            let given: Vec<&str> = words
                .iter()
                .skip_while(|word| *word != path.last().unwrap_or(word))
                .skip(1)
                .map(String::as_str)
                .collect();
            let plain = given.iter().take_while(|word| !word.starts_with('-')).count();
            let (ahead, rest) = (given.get(..*before)?, given.get(plain..)?);
            let quoted = given.get(*before..plain).filter(|words| words.len() > 1)?.join(" ");
            let all = ahead.iter().copied().chain([quoted.as_str()]).chain(rest.iter().copied());
            Some(format!("{} {}", command(&path), all.map(shell::word).collect::<Vec<_>>().join(" ")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_probably_meant_is_said() {
        let check = |line: &str, expected: Option<&str>| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let argv: Vec<OsString> =
                std::iter::once("baton".into()).chain(words.iter().map(Into::into)).collect();
            let error = help::parse(&argv).unwrap_err();
            assert_eq!(meant(&error, &words).as_deref(), expected, "{line}");
        };
        check("task new Fix the login", Some("baton task new 'Fix the login'"));
        check("task new Fix the login --ready", Some("baton task new 'Fix the login' --ready"));
        check("task log TASK-1 talked to them", Some("baton task log TASK-1 'talked to them'"));
        check("task create", Some("baton task new \"…\""));
        check("task delete TASK-1", Some("baton task move TASK-1 cancelled --reason \"…\""));
        check("task cancel", Some("baton task move ID cancelled --reason \"…\""));
        check("task done TASK-1", Some("baton task approve TASK-1"));
        check("--json task start TASK-1", Some("baton task claim TASK-1 --agent NAME"));
        check("status", Some("baton"));
        check("ls", Some("baton task ls"));
        check("version", Some("baton --version"));
        check("frob", None);
        check("events --folow", None);
    }

    #[test]
    fn every_word_that_is_tried_is_no_command() {
        for (parent, tried, _) in MEANT {
            let root = help::command();
            let of = if parent.is_empty() { &root } else { root.find_subcommand(parent).unwrap() };
            assert!(tried.iter().all(|word| of.find_subcommand(word).is_none()), "{parent} {tried:?}");
        }
    }
}

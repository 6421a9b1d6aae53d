//! Commands that a server elsewhere does: the very same command, with the streams of this process. `--server URL`.
//!
//! What is a file here is not one there: what a command reads is sent along, and what it would write into a file comes back and is written here.

mod place;
mod talk;

use std::ffi::OsString;
use std::fs::File;
use std::io::IsTerminal as _;

pub(crate) use place::{Place, place};

use crate::args::{Cli, Command};
use crate::commands::tell_fetched;
use crate::error::{CliError, Code, Stop};
use crate::input::file::file_error;
use crate::trace_args::{Format, Trace};
use crate::ui::Ui;
use crate::ui::color::When;
use place::{Fed, fed, only_looks};
use talk::Errand;

/// The server that is to do a command, if one is named and the command is none that is done here.
pub(crate) fn wanted(cli: &Cli) -> Result<Option<String>, CliError> {
    let place = place(cli.command.as_ref());
    if let (Place::Own(name), Some(server)) = (place, &cli.globals.server) {
        let what = format!("--server: `baton {name}` works on this machine, not at {server}");
        return Err(CliError::new(Code::Value, what).hint(format!("baton {name}")));
    }
    let named = cli.globals.server.clone().or_else(elsewhere);
    Ok(named.filter(|_| !matches!(place, Place::Here | Place::Own(_))))
}

/// The server that commands go to where none is named.
pub(crate) fn elsewhere() -> Option<String> {
    variable("BATON_SERVER")
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// Has a command done, and gives its exit code.
pub(crate) fn run(argv: &[OsString], cli: &Cli, ui: &mut Ui, server: &str) -> Result<u8, CliError> {
    if let Place::Nowhere(why) = place(cli.command.as_ref()) {
        let what = "this command cannot be done by a server elsewhere";
        return Err(CliError::new(Code::NotServed, what).cause(why));
    }
    let token = cli.globals.token.clone().or_else(|| variable("BATON_TOKEN"));
    let token = token.ok_or_else(|| {
        CliError::new(Code::Token, "a token is needed: --token or BATON_TOKEN")
            .hint("baton token new NAME --scope operator")
    })?;
    let input = match fed(cli.command.as_ref()) {
        Fed::Nothing => None,
        Fed::Stdin => Some(Input::Stdin),
        Fed::File(path) => {
            let file = File::open(path).map_err(|error| file_error(path, &error))?;
            Some(Input::File(file))
        }
    };
    let (args, output) = match &cli.command {
        Some(Command::Trace(Trace::Export(args))) if args.output.as_os_str() != "-" => {
            let mut words = vec!["trace".to_owned(), "export".to_owned(), "-o".to_owned(), "-".to_owned()];
            words.extend(args.no_artifacts.then(|| "--no-artifacts".to_owned()));
            if args.format == Format::InToto {
                words.push("--format=in-toto".to_owned());
            }
            words.extend(["--".to_owned(), args.id.trace.clone()]);
            let file = File::create_new(&args.output);
            let file = file.map_err(|error| CliError::io("write", &args.output, &error))?;
            (words, Some((file, args.output.clone(), args.format)))
        }
        _ => (passed_on(argv, cli)?, None),
    };
    let to = output.as_ref().map(|(file, ..)| file.try_clone()).transpose();
    let to = to.map_err(|error| CliError::new(Code::Output, error.to_string()))?;
    let (is_terminal, only_looks) = (std::io::stdin().is_terminal(), only_looks(cli.command.as_ref()));
    let errand = Errand { server, token: &token, args, is_terminal, only_looks, input, to };
    let ended = errand.run();
    match (output, &ended) {
        (Some((_, path, format)), Ok(0)) => {
            if let Err(Stop::Error(error)) = tell_fetched(ui, &path, format).and_then(|()| ui.flush()) {
                return Err(*error);
            }
        }
        // Half an export is of no use to anybody.
        (Some((_, path, _)), _) => drop(std::fs::remove_file(path)),
        (None, _) => {}
    }
    ended
}

/// What a command reads, sent along.
#[derive(Debug)]
pub(crate) enum Input {
    Stdin,
    File(File),
}

/// The arguments without those that say where.
fn passed_on(argv: &[OsString], cli: &Cli) -> Result<Vec<String>, CliError> {
    let mut args = Vec::new();
    let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if cli.globals.color == When::Auto && std::io::stdout().is_terminal() && !is_plain {
        args.push("--color=always".to_owned());
    }
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        let word = word.to_str().ok_or_else(|| {
            CliError::new(Code::Value, format!("{}: expected text that is UTF-8", word.display()))
        })?;
        match word {
            "--" => {
                args.push(word.to_owned());
                args.extend(words.by_ref().map(|word| word.to_string_lossy().into_owned()));
            }
            "--server" | "--token" => drop(words.next()),
            _ if word.starts_with("--server=") || word.starts_with("--token=") => {}
            _ => args.push(word.to_owned()),
        }
    }
    Ok(args)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_to_go_is_not_passed_on() {
        let argv: Vec<OsString> =
            ["baton", "--server", "http://x", "task", "log", "--token=t", "ID", "--", "--server"]
                .iter()
                .map(OsString::from)
                .collect();
        let cli = crate::help::parse(&argv).unwrap();
        assert_eq!(passed_on(&argv, &cli).unwrap(), ["task", "log", "ID", "--", "--server"]);
    }
}

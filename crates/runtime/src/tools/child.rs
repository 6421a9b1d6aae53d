//! Tools that run programs: in a group of their own, within their time, behind the wall.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::args::Args;
use super::files::at;
use super::wall::{Wall, carried};
use super::{Gave, ToolRunner, ToolSettings, output};
use crate::limits::TOOL_GRACE;
use crate::process::{self, Command, Ended, short};

/// A program that ran.
pub(super) struct Ran {
    pub(super) output: File,
    pub(super) exit_code: Option<i32>,
    pub(super) is_error: bool,
    pub(super) failed: Option<String>,
}

/// Whether this can be a command of git: its name and nothing else, so that no option of git itself comes before.
pub(super) fn is_git_command(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'_' | b'-'))
        && !name.starts_with(['-', '_'])
}

impl ToolRunner {
    pub(super) fn bash(&self, args: Args<'_>, timeout: Duration, stop: &AtomicBool) -> Gave {
        let read = |mut args: Args<'_>| {
            let script = args.expect_text("command")?.to_owned();
            args.done()?;
            if script.contains('\0') {
                return Err("command: expected text without NUL, got some with it".to_owned());
            }
            Ok(script)
        };
        match read(args) {
            Err(why) => Gave::Text(Err(why)),
            Ok(script) => self.give(
                vec!["bash".into(), "-c".into(), script],
                self.root.path().to_owned(),
                None,
                timeout,
                stop,
            ),
        }
    }

    pub(super) fn run_command(&self, args: Args<'_>, timeout: Duration, stop: &AtomicBool) -> Gave {
        let read = |mut args: Args<'_>| {
            let words = args.words("command")?.filter(|words| !words.is_empty());
            let words =
                words.ok_or("command: expected a program and its arguments, got nothing".to_owned())?;
            let dir = self.place(Path::new(args.path("dir")?.unwrap_or("."))).map_err(at("dir"))?;
            let stdin = args.text("stdin")?.map(str::to_owned);
            args.done()?;
            Ok((words, dir, stdin))
        };
        match read(args) {
            Err(why) => Gave::Text(Err(why)),
            Ok((words, dir, stdin)) => self.give(words, dir, stdin, timeout, stop),
        }
    }

    pub(super) fn git(&self, command: &str, args: Args<'_>, timeout: Duration, stop: &AtomicBool) -> Gave {
        let read = |mut args: Args<'_>| {
            let words = args.words("args")?.unwrap_or_default();
            let stdin = args.text("stdin")?.map(str::to_owned);
            args.done()?;
            Ok((words, stdin))
        };
        match read(args) {
            Err(why) => Gave::Text(Err(why)),
            Ok((words, stdin)) => {
                let mut all = vec!["git".to_owned(), "--no-pager".into(), command.replace('_', "-")];
                all.extend(words);
                self.give(all, self.root.path().to_owned(), stdin, timeout, stop)
            }
        }
    }

    fn give(
        &self,
        words: Vec<String>,
        dir: PathBuf,
        stdin: Option<String>,
        timeout: Duration,
        stop: &AtomicBool,
    ) -> Gave {
        let mut command = self.command(words, dir, timeout, &BTreeMap::new());
        command.stdin = stdin.unwrap_or_default().into_bytes();
        match self.follow(&command, stop) {
            Ok(ran) => Gave::Program(ran),
            Err(bad) => Gave::Text(Err(bad)),
        }
    }

    /// A program with what it gets and with what stands around it. `env` is for the program alone, and was judged before.
    pub(crate) fn command(
        &self,
        words: Vec<String>,
        dir: PathBuf,
        timeout: Duration,
        env: &BTreeMap<String, String>,
    ) -> Command {
        let mut command = Command::new(words, dir, timeout);
        (command.grace, command.fate) = (TOOL_GRACE, Some(self.fate.clone()));
        let (home, tmp) = (self.settings.tmp.join("home"), self.settings.tmp.join("tmp"));
        let below = |name: &str| home.join(name).display().to_string();
        let home_text = home.display().to_string();
        let tmp = tmp.display().to_string();
        let own = [
            ("HOME", home_text),
            ("TMPDIR", tmp.clone()),
            ("XDG_CACHE_HOME", below(".cache")),
            ("XDG_CONFIG_HOME", below(".config")),
            ("XDG_DATA_HOME", below(".local/share")),
            ("XDG_RUNTIME_DIR", tmp),
            // Nobody is there to page through something or to be asked.
            ("PAGER", "cat".to_owned()),
            ("GIT_PAGER", "cat".to_owned()),
            ("GIT_EDITOR", "true".to_owned()),
            ("GIT_TERMINAL_PROMPT", "0".to_owned()),
            ("GIT_ASKPASS", "true".to_owned()),
            ("SSH_ASKPASS_REQUIRE", "never".to_owned()),
        ];
        command.env.extend(own.map(|(name, value)| (name.to_owned(), value)));
        command.env.extend(self.identity().iter().cloned());
        let inside = self.settings.env.iter().chain(env);
        match &self.settings.myself {
            Some(myself) => {
                command.env.extend(inside.map(|(name, value)| (carried(name), value.clone())));
                self.wall().around(myself, &mut command);
            }
            None => command.env.extend(inside.map(|(name, value)| (name.clone(), value.clone()))),
        }
        command.env.extend(self.settings.marks.clone());
        command
    }

    /// What programs may do here. In a work tree whose repository is elsewhere they may commit, and read the rest of it.
    fn wall(&self) -> Wall {
        let ToolSettings { root, tmp, home_read, own, .. } = &self.settings;
        let mut wall =
            Wall { write: vec![root.clone(), tmp.clone()], read: home_read.clone(), own: own.clone() };
        if let Some(git) = &self.git {
            wall.write.extend(git.written());
            wall.read.push(git.common.clone());
        }
        wall
    }

    /// Runs a program to its end. What it was asked to run and is not there is bad news for the model, not a failure.
    fn follow(&self, command: &Command, stop: &AtomicBool) -> Result<Ran, String> {
        let failed = |why: String| Err(why);
        let Ok(mut output) = output::unnamed(&self.settings.tmp) else {
            return failed(format!("{} cannot be written", self.settings.tmp.display()));
        };
        let ran = match command.run(Some(&mut output), &mut || stop.load(Ordering::Relaxed)) {
            Ok(ran) => ran,
            Err(error @ (process::Error::NotFound(_) | process::Error::NotExecutable(_))) => {
                return failed(error.to_string());
            }
            Err(error) => {
                let failed = Some(error.to_string());
                return Ok(Ran { output, exit_code: None, is_error: true, failed });
            }
        };
        let (said, failed) = match ran.ended {
            Ended::Exit(0) => (None, None),
            Ended::Exit(code) => (Some(format!("exit {code}")), None),
            Ended::Signal(signal) => (Some(format!("ended by signal {signal}")), None),
            Ended::TimedOut => {
                let why = format!("timed out after {}", short(command.timeout));
                (Some(why.clone()), Some(why))
            }
            Ended::Stopped => (Some("stopped".to_owned()), Some("it was stopped".to_owned())),
        };
        if let Some(said) = &said {
            // At the end, where it is read.
            let _ = std::io::Write::write_all(&mut output, format!("\n[{said}]\n").as_bytes());
        }
        Ok(Ran { output, exit_code: ran.ended.exit_code(), is_error: said.is_some(), failed })
    }

    /// Who commits, as git has it outside the wall: the user's own settings are not readable inside.
    fn identity(&self) -> &[(String, String)] {
        self.identity.get_or_init(|| {
            let ask = |key: &str| {
                let words = ["git", "config", "--get", key].map(str::to_owned).to_vec();
                let mut command = Command::new(words, self.root.path(), Duration::from_secs(5));
                command.fate = Some(self.fate.clone());
                let ran = command.run(None, &mut || false).ok().filter(|ran| ran.ended == Ended::Exit(0))?;
                Some(ran.output.text().trim().to_owned()).filter(|text| !text.is_empty())
            };
            let names = [
                ("user.name", ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"]),
                ("user.email", ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"]),
            ];
            let mut found = Vec::new();
            for (key, variables) in names {
                if let Some(value) = ask(key) {
                    found.extend(variables.map(|variable| (variable.to_owned(), value.clone())));
                }
            }
            found
        })
    }
}

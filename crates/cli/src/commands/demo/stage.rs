//! Where the demo plays: a directory that nobody else uses, the processes in it, and what is shown of them.

use std::fs;
use std::io::{BufRead as _, BufReader, PipeReader};
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::error::{CliError, Code, Stop};
use crate::ui::Ui;
use crate::ui::color::Mark;
use crate::ui::text::printable_lines;

/// How long the story waits for something that should happen by itself.
const PATIENCE: Duration = Duration::from_secs(15);

/// How long a server that was asked to stop may take.
const STOP_GRACE: Duration = Duration::from_secs(5);

/// Pause between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Why the story ends early.
pub(super) enum Broken {
    /// Somebody pressed Ctrl-C, or ended the process.
    Interrupted,
    Stop(Stop),
}

impl<E: Into<Stop>> From<E> for Broken {
    fn from(error: E) -> Self {
        Broken::Stop(error.into())
    }
}

pub(super) type Told<T> = Result<T, Broken>;

/// A process that goes on beside the story. Killed, where the story forgets it.
pub(super) struct Beside {
    child: Child,
    said: BufReader<PipeReader>,
    /// Open as long as the story goes on: a script that waits for input ends with it.
    _stdin: Option<ChildStdin>,
    line: String,
}

/// The directory and everything that runs in it.
pub(super) struct Stage<'a> {
    ui: &'a mut Ui,
    dir: PathBuf,
    exe: PathBuf,
    server: Option<Beside>,
    interrupted: Arc<AtomicBool>,
    heading: String,
    steps: u64,
}

impl<'a> Stage<'a> {
    /// Makes the directory.
    pub(super) fn set(ui: &'a mut Ui, interrupted: Arc<AtomicBool>) -> Result<Self, Stop> {
        let exe =
            std::env::current_exe().map_err(|error| broken("this program does not find itself", &error))?;
        let dir = make_dir().map_err(|error| broken("no directory for the demo", &error))?;
        let stage = Stage { ui, dir, exe, server: None, interrupted, heading: String::new(), steps: 0 };
        let bin = stage.dir.join("bin");
        fs::create_dir(&bin)
            .and_then(|()| symlink(&stage.exe, bin.join("baton")))
            .map_err(|error| broken("the demo's directory cannot be filled", &error))?;
        Ok(stage)
    }

    /// Stops what runs and removes the directory.
    pub(super) fn clear(mut self) -> Result<(), CliError> {
        if let Some(server) = self.server.take() {
            server.stop();
        }
        let dir = std::mem::take(&mut self.dir);
        fs::remove_dir_all(&dir).map_err(|error| broken("the demo's directory cannot be removed", &error))
    }

    /// Begins a part of the story.
    pub(super) fn heading(&mut self, text: &str) -> Told<()> {
        text.clone_into(&mut self.heading);
        if !self.ui.json {
            let heading = self.ui.paint.mark(Mark::Id, &format!("# {text}"));
            let gap = if self.steps == 0 { "" } else { "\n" };
            self.ui.raw(&format!("{gap}{heading}\n"))?;
            self.ui.flush()?;
        }
        Ok(())
    }

    /// Writes a file for the commands that follow.
    pub(super) fn file(&mut self, path: &str, text: &str) -> Told<()> {
        let place = self.dir.join(path);
        let made = place.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&place, text));
        made.map_err(|error| broken(&format!("{path} cannot be written"), &error))?;
        Ok(())
    }

    /// Runs a line that must succeed, and gives what it printed.
    pub(super) fn run(&mut self, line: &str) -> Told<String> {
        self.run_to(0, line)
    }

    /// Runs a line that must end with this exit code.
    pub(super) fn run_to(&mut self, expected: i32, line: &str) -> Told<String> {
        let ended = self.command("sh", &["-c", line]).stdin(Stdio::null()).output();
        let ended = ended.map_err(|error| broken("sh cannot be started", &error))?;
        let text = |bytes: &[u8]| self.relative(&String::from_utf8_lossy(bytes));
        let (stdout, stderr) = (text(&ended.stdout), text(&ended.stderr));
        self.expect_calm()?;
        let code = ended.status.code();
        self.show(line, &stdout, &stderr, code)?;
        if code != Some(expected) {
            let got = code.map_or("none".to_owned(), |code| code.to_string());
            let what = format!("`{line}` ended with exit code {got}, the story says {expected}");
            return Err(failed(what).into());
        }
        Ok(stdout)
    }

    /// Asks for JSON without showing it.
    pub(super) fn look(&self, args: &[&str]) -> Told<Value> {
        let ended = self.command("baton", args).arg("--json").stdin(Stdio::null()).output();
        let ended = ended.map_err(|error| broken("this program cannot be started", &error))?;
        self.expect_calm()?;
        let stdout = String::from_utf8_lossy(&ended.stdout);
        let first = stdout.lines().next().unwrap_or_default();
        serde_json::from_str(first).map_err(|_| {
            let stderr = self.relative(&String::from_utf8_lossy(&ended.stderr));
            failed(format!("baton {} gave no JSON", args.join(" "))).cause(stderr.trim()).into()
        })
    }

    /// Looks again and again until something holds; `false` where it does not within the time.
    pub(super) fn holds_within(
        &mut self,
        time: Duration,
        mut holds: impl FnMut(&mut Self) -> Told<bool>,
    ) -> Told<bool> {
        let start = Instant::now();
        while !holds(self)? {
            if start.elapsed() > time {
                return Ok(false);
            }
            std::thread::sleep(LOOK_EVERY);
            self.expect_calm()?;
        }
        Ok(true)
    }

    /// Waits for something that must come by itself.
    pub(super) fn wait(&mut self, what: &str, holds: impl FnMut(&mut Self) -> Told<bool>) -> Told<()> {
        if self.holds_within(PATIENCE, holds)? {
            return Ok(());
        }
        Err(failed(format!("{what}: still not after {} s", PATIENCE.as_secs())).into())
    }

    /// Refuses a story that is not true.
    pub(super) fn expect(&self, holds: bool, what: &str) -> Told<()> {
        if holds { Ok(()) } else { Err(failed(format!("the story says: {what}; it is not so")).into()) }
    }

    /// Starts the server, and waits until it takes commands.
    pub(super) fn serve(&mut self, line: &str) -> Told<()> {
        let mut server = self.start(line)?;
        let first = server.next_line();
        let first = self.relative(&first);
        self.server = Some(server);
        self.expect_calm()?;
        self.show(&format!("{line} &"), &first, "", Some(0))?;
        self.expect(first.contains("taking commands"), "the server takes commands")
    }

    /// Serves the page with everything that happened, until somebody ends it.
    pub(super) fn show_page(&mut self) -> Told<()> {
        let line = "baton serve --no-dispatch --listen 127.0.0.1:0";
        let mut server = self.start(line)?;
        let (taking, answering) = (server.next_line(), server.next_line());
        self.server = Some(server);
        let said = self.relative(&format!("{taking}{answering}"));
        self.expect_calm()?;
        self.show(&format!("{line} &"), &said, "", Some(0))?;
        self.expect(answering.contains("?token="), "the server answers with its page")?;
        let link = answering.split_whitespace().last().unwrap_or_default().to_owned();
        self.note(&format!("Open {link} in a browser; Ctrl-C ends the demo."), "", None)?;
        while !self.interrupted.load(Ordering::Relaxed) {
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Stops the server as a person would, and shows what it told meanwhile.
    pub(super) fn stop_server(&mut self) -> Told<()> {
        let Some(server) = self.server.take() else { return Ok(()) };
        let (code, said) = server.stop();
        let said = self.relative(&said);
        self.note("The server is asked to stop (SIGTERM). It had told:", &said, code)?;
        self.expect(code == Some(0), "the server ends with exit code 0")
    }

    /// Starts something that goes on beside the story.
    pub(super) fn start(&self, line: &str) -> Told<Beside> {
        let (reader, writer) = std::io::pipe().map_err(|error| broken("no pipe", &error))?;
        let both = writer.try_clone().map_err(|error| broken("no pipe", &error))?;
        let mut command = self.command("sh", &["-c", &format!("exec {line}")]);
        command.stdin(Stdio::piped()).stdout(writer).stderr(both);
        let mut child = command.spawn().map_err(|error| broken("sh cannot be started", &error))?;
        let stdin = child.stdin.take();
        Ok(Beside { child, said: BufReader::new(reader), _stdin: stdin, line: line.to_owned() })
    }

    /// Lets a script work until it says that it thinks, and then kills it.
    pub(super) fn kill_when_thinking(&mut self, mut agent: Beside) -> Told<()> {
        let mut said = String::new();
        while !said.ends_with("thinking\n") {
            let line = agent.next_line();
            if line.is_empty() {
                self.expect_calm()?;
                let what = format!("`{}` ended before it was killed", agent.line);
                return Err(failed(what).cause(self.relative(said.trim())).into());
            }
            said.push_str(&line);
        }
        self.expect_calm()?;
        let said = self.relative(&said);
        let line = format!("{} &", agent.line);
        agent.kill();
        self.show(&line, &said, "", Some(0))?;
        self.note("The agent is killed (SIGKILL).", "", None)
    }

    /// A command in the directory, with nothing of the surroundings that could change the story.
    fn command(&self, program: &str, args: &[&str]) -> Command {
        let bin = self.dir.join("bin");
        let mut command = if program == "baton" { Command::new(&self.exe) } else { Command::new(program) };
        command
            .args(args)
            .current_dir(&self.dir)
            .env_clear()
            .env("PATH", format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display()))
            .env("HOME", &self.dir)
            .env("BATON_STATE_DIR", self.dir.join("secrets"))
            .env("NO_COLOR", "1");
        command
    }

    fn show(&mut self, line: &str, stdout: &str, stderr: &str, code: Option<i32>) -> Told<()> {
        self.steps += 1;
        if self.ui.json {
            self.ui.object(&json!({
                "v": 1,
                "step": self.steps,
                "heading": self.heading,
                "command": line,
                "exit": code,
                "stdout": stdout,
                "stderr": stderr,
            }))?;
        } else {
            self.ui.line(&format!("$ {line}"))?;
            self.ui.raw(&printable_lines(stdout))?;
            self.ui.raw(&printable_lines(stderr))?;
            if let Some(code) = code.filter(|code| *code != 0) {
                self.ui.line(&format!("(exit code {code})"))?;
            }
        }
        self.ui.flush()?;
        Ok(())
    }

    /// Says what the demo itself did, which is no command, and what came of it.
    fn note(&mut self, text: &str, said: &str, code: Option<i32>) -> Told<()> {
        self.steps += 1;
        if self.ui.json {
            let step = json!({
                "v": 1,
                "step": self.steps,
                "heading": self.heading,
                "note": text,
                "exit": code,
                "stdout": said,
            });
            self.ui.object(&step)?;
        } else {
            self.ui.line(&format!("({text})"))?;
            self.ui.raw(&printable_lines(said))?;
        }
        self.ui.flush()?;
        Ok(())
    }

    /// A text without the place of the demo's directory.
    fn relative(&self, text: &str) -> String {
        let dir = self.dir.display().to_string();
        text.replace(&format!("{dir}/"), "").replace(&dir, ".")
    }

    fn expect_calm(&self) -> Told<()> {
        if self.interrupted.load(Ordering::Relaxed) { Err(Broken::Interrupted) } else { Ok(()) }
    }
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        // Only where nobody cleared the stage: a panic, or an error while it was set.
        if let Some(mut server) = self.server.take() {
            server.kill();
        }
        if self.dir != Path::new("") {
            let _ = fs::remove_dir_all(&self.dir);
        }
    }
}

impl Beside {
    /// The next line that it prints; empty at its end.
    fn next_line(&mut self) -> String {
        let mut line = String::new();
        // What is no text ends the story as an end does.
        let _ = self.said.read_line(&mut line);
        line
    }

    /// Ends it without asking.
    fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks it to end, and gives its exit code and what it had said.
    fn stop(mut self) -> (Option<i32>, String) {
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
        let start = Instant::now();
        let code = loop {
            match self.child.try_wait() {
                Ok(Some(status)) => break status.code(),
                Ok(None) if start.elapsed() < STOP_GRACE => std::thread::sleep(LOOK_EVERY),
                _ => {
                    self.kill();
                    break None;
                }
            }
        };
        let mut said = String::new();
        loop {
            let line = self.next_line();
            if line.is_empty() {
                return (code, said);
            }
            said.push_str(&line);
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.kill();
    }
}

/// A new directory of the user's own, by its real name.
fn make_dir() -> std::io::Result<PathBuf> {
    let base = fs::canonicalize(std::env::temp_dir())?;
    let mut tries = 0_u32;
    loop {
        let dir = base.join(format!("baton-demo-{}-{tries}", std::process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&dir) {
            Ok(()) => return Ok(dir),
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && tries < 1000 => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

fn failed(what: impl Into<String>) -> CliError {
    CliError::new(Code::DemoFailed, what).hint("baton demo -v")
}

fn broken(what: &str, error: &std::io::Error) -> CliError {
    CliError::new(Code::DemoFailed, what).cause(error.to_string())
}

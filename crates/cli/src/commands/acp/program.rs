//! Commands of this very program as processes: short ones that are heard to their end, runs that are followed, and one that owns a data directory
//! for as long as something is worked on in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;

use baton_core::AgentName;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::sync::mpsc::{Receiver, channel};

use super::wire::{INTERNAL, Refusal};
use crate::commands::runner::{Invocation, Runner};
use crate::limits::{ACP_CALL_WAIT, ACP_END_WAIT, ACP_EVENT_BYTES_MAX, ACP_WAITING_MAX, SERVE_START_WAIT};
use crate::serve::UNTIL_EOF;

/// Where something is done: a data directory, and the directory that the editor named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) data_dir: PathBuf,
    pub(super) cwd: PathBuf,
}

/// Our own program.
#[derive(Debug)]
pub(super) struct Program {
    exe: PathBuf,
    agent: Option<AgentName>,
    /// The owners of data directories that were started here, and for how many.
    owners: Mutex<BTreeMap<PathBuf, Owner>>,
}

/// A process that owns a data directory; none where somebody else does.
#[derive(Debug, Default)]
struct Owner {
    users: usize,
    child: Option<Child>,
}

impl Program {
    pub(super) fn new(exe: PathBuf, agent: Option<AgentName>) -> Self {
        Program { exe, agent, owners: Mutex::default() }
    }

    fn command(&self, place: &Place, args: &[&str]) -> Command {
        let mut data_dir = OsString::from("--data-dir=");
        data_dir.push(&place.data_dir);
        let mut command = Command::new(&self.exe);
        command.arg("--json").arg(data_dir).args(args).current_dir(&place.cwd).kill_on_drop(true);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        command
    }

    /// A run that is told what to do on its standard input.
    pub(super) fn start_run(&self, place: &Place) -> Result<Child, Refusal> {
        let mut command = self.command(place, &["run", "--driven"]);
        if let Some(agent) = &self.agent {
            command.arg("--agent").arg(agent.as_str());
        }
        command.stderr(Stdio::piped()).spawn().map_err(|error| failed(&error.to_string()))
    }

    /// Runs a command to its end and gives what it printed, an object for each line.
    pub(super) async fn ask(&self, place: &Place, args: &[&str]) -> Result<Vec<Value>, Refusal> {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        let runner = Runner::new(self.exe.clone(), place.data_dir.clone());
        let asked = Invocation { args, stdin: String::new(), wait: ACP_CALL_WAIT };
        let ran = runner.run(asked).await.map_err(|why| failed(&why))?;
        if ran.code != Some(0) {
            return Err(refusal(&ran.stderr));
        }
        Ok(ran.stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect())
    }

    /// Sees to it that the data directory has an owner until [`Program::leave`]: a run that was the owner would take those beside it along at its
    /// end. Where there is one already, or none can be started, the run itself says what there is to say.
    pub(super) async fn enter(&self, place: &Place) {
        let mut owners = self.owners.lock().await;
        let owner = owners.entry(place.data_dir.clone()).or_default();
        owner.users += 1;
        let lives = owner.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)));
        if !lives {
            owner.child = self.start_owner(place).await;
        }
    }

    async fn start_owner(&self, place: &Place) -> Option<Child> {
        let mut command = self.command(place, &["--quiet", "serve", UNTIL_EOF, "--no-dispatch"]);
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let mut lines = lines_of(child.stdout.take()?);
        let first = tokio::time::timeout(SERVE_START_WAIT, lines.recv()).await.ok().flatten();
        // What it says later is for nobody, and must not hold it up.
        tokio::spawn(async move { while lines.recv().await.is_some() {} });
        first.map(|_| child)
    }

    /// The last one to leave ends the owner that was started here.
    pub(super) async fn leave(&self, place: &Place) {
        let mut owners = self.owners.lock().await;
        let Some(owner) = owners.get_mut(&place.data_dir) else { return };
        owner.users -= 1;
        if owner.users > 0 {
            return;
        }
        let Some(Owner { child: Some(mut child), .. }) = owners.remove(&place.data_dir) else { return };
        drop(child.stdin.take());
        end(&mut child).await;
    }
}

/// Waits for the end of a process whose work is done. One that does not end is killed.
pub(super) async fn end(child: &mut Child) {
    if tokio::time::timeout(ACP_END_WAIT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

/// The lines that a process prints, until its output ends. One that is too long is left out.
pub(super) fn lines_of(pipe: impl AsyncRead + Unpin + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, lines) = channel(ACP_WAITING_MAX);
    tokio::spawn(async move {
        let mut pipe = BufReader::new(pipe);
        let mut is_cut = false;
        loop {
            let mut line = Vec::new();
            match (&mut pipe).take(ACP_EVENT_BYTES_MAX as u64).read_until(b'\n', &mut line).await {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let is_whole = line.last() == Some(&b'\n');
            let is_rest = std::mem::replace(&mut is_cut, !is_whole && line.len() == ACP_EVENT_BYTES_MAX);
            if !is_cut && !is_rest && send.send(line).await.is_err() {
                return;
            }
        }
    });
    lines
}

/// Why a command did not do it, as it says on standard error.
pub(super) fn refusal(stderr: &str) -> Refusal {
    let error = stderr.lines().rev().find_map(|line| {
        let said: Value = serde_json::from_str(line).ok()?;
        said.get("error").filter(|error| error["message"].is_string()).cloned()
    });
    let Some(error) = error else {
        let last = stderr.lines().last().unwrap_or("it says nothing").chars().take(400).collect::<String>();
        return failed(&last);
    };
    let mut message = error["message"].as_str().unwrap_or_default().to_owned();
    for cause in error["causes"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        message.push_str(&format!("; {cause}"));
    }
    if let Some(hint) = error["hint"].as_str() {
        message.push_str(&format!(" (try: {hint})"));
    }
    Refusal { code: INTERNAL, message, data: Some(error) }
}

fn failed(why: &str) -> Refusal {
    Refusal::new(INTERNAL, format!("a command of Baton failed: {why}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::commands::runner::tests::block_on;

    #[test]
    fn refusals_say_what_the_command_said() {
        let stderr = "{\"warning\":{\"message\":\"w\"}}\n{\"error\":{\"code\":\"A001\",\"message\":\"no agent\",\
                      \"causes\":[\"none\"],\"hint\":\"baton agent ls\"}}\n";
        let refused = refusal(stderr);
        assert_eq!(refused.message, "no agent; none (try: baton agent ls)");
        assert_eq!(refused.data.unwrap()["code"], json!("A001"));
        assert!(refusal("thread panicked").message.ends_with("thread panicked"));
    }

    #[test]
    fn a_line_that_is_too_long_is_left_out() {
        let text = format!("one\n{}\nthree\n", "x".repeat(2 * ACP_EVENT_BYTES_MAX + 5));
        let all = block_on(async {
            let mut lines = lines_of(std::io::Cursor::new(text.into_bytes()));
            let mut all = Vec::new();
            while let Some(line) = lines.recv().await {
                all.push(line);
            }
            all
        });
        assert_eq!(all, [b"one\n".to_vec(), b"three\n".to_vec()]);
    }
}
